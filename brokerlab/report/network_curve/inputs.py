"""Load the evidence on links: from an archive folder, or from files as they were dumped."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

import duckdb

from brokerlab.archive.ingestion import ingest
from brokerlab.archive.store import Archive, open_archive
from brokerlab.brokerage.network_weight import NetworkSettings
from brokerlab.brokerage.replay.plan import time_of
from brokerlab.calibrate.network_curve import Evidence, from_metrics, from_transfers
from brokerlab.errors import DataError, InsufficientDataError
from brokerlab.gdpconfig import Config

MATRIX = """
select src, dst, key, value, ts from network_matrix
where ($start is null or ts >= $start) and ($end is null or ts < $end)
"""
TRANSFERS = """
select src_site, dst_site, from_date, to_date, bytes_xs from transfers
where ($start is null or from_date >= $start) and ($end is null or to_date <= $end)
"""
MANIFEST = "manifest.json"


@dataclass(frozen=True, kw_only=True)
class Inputs:
    """What links showed and what they delivered later.

    Attributes:
        evidence: By source: ``metrics``, ``transfers``; those that can be used.
        refused: Source -> why it cannot be used.
        settings: What the configuration says about the formula.
        config: The configuration; empty = the defaults of the catalogue.
        active: NW_ACTIVE.
        sources: What was read, in words.
        digests: Of what was read.
        synthetic: Whether any of it was generated.
    """

    evidence: dict[str, Evidence]
    refused: dict[str, str]
    settings: NetworkSettings
    config: Config
    active: bool
    sources: tuple[str, ...]
    digests: tuple[str, ...]
    synthetic: bool


@dataclass
class _Reading:
    """What was found so far."""

    evidence: dict[str, Evidence] = field(default_factory=dict)
    refused: dict[str, str] = field(default_factory=dict)
    config: Config = field(default_factory=Config.empty)
    sources: list[str] = field(default_factory=list)
    digests: list[str] = field(default_factory=list)
    synthetic: bool = False


def load(archive: str, *, transfers: str = "", start: str = "", end: str = "") -> Inputs:
    """Load metrics of links and matrices of transfers.

    Args:
        archive: Archive folder; or a file or folder of network metrics (JSON, or the flat table) or transfer
            matrices as dumped; empty: none.
        transfers: More transfers: a file, a folder or an archive; empty: none.
        start: Metrics from here on, windows of transfers that begin here or later; ISO 8601, UTC; empty: no bound.
        end: Metrics before it, windows that end here or earlier; empty: no bound.

    Raises:
        ConfigError: A time that is not ISO 8601.
        DataError: A source cannot be read, or none holds metrics of links or transfers.
    """
    bounds = {"start": time_of(start or None, "start"), "end": time_of(end or None, "end")}
    found = _Reading()
    for path in (archive, transfers):
        if path:
            _read(path, bounds, found)
    if not found.evidence and not found.refused:
        raise DataError(
            f"{' and '.join(found.sources)}: neither metrics of links (table network_matrix) nor transfers"
        )
    return Inputs(
        evidence=found.evidence,
        refused=found.refused,
        settings=NetworkSettings.of(found.config),
        config=found.config,
        active=bool(found.config.get("NW_ACTIVE", app="jedi", component="jobbroker", vo="atlas")),
        sources=tuple(found.sources),
        digests=tuple(found.digests),
        synthetic=found.synthetic,
    )


def _read(path: str, bounds: dict[str, datetime | None], found: _Reading) -> None:
    """Read an archive; files go through the archive's own readers into a folder that is thrown away."""
    if (Path(path) / MANIFEST).is_file():
        _use(open_archive(path), path, bounds, found)
        return
    if not Path(path).exists():
        raise DataError(f"{path}: there is no such archive, file or folder")
    with tempfile.TemporaryDirectory(prefix="brokerlab-links-") as folder:
        target = Path(folder) / "archive"
        ingest([path], target)
        _use(open_archive(target), path, bounds, found)


def _use(opened: Archive, path: str, bounds: dict[str, datetime | None], found: _Reading) -> None:
    """Turn the tables of an archive into evidence."""
    makers: dict[str, tuple[str, str, Callable[[duckdb.DuckDBPyRelation], Evidence]]] = {
        "metrics": ("network_matrix", MATRIX, from_metrics),
        "transfers": ("transfers", TRANSFERS, from_transfers),
    }
    for name, (table, query, make) in makers.items():
        if name in found.evidence or not opened.has(table):
            continue
        try:
            found.evidence[name] = make(opened.sql(query, bounds))
            found.refused.pop(name, None)
        except InsufficientDataError as problem:
            found.refused[name] = str(problem)
    if opened.has("gdpconfig"):
        config = Config.from_frame(opened.gdpconfig)
        at = bounds["end"] or _latest(opened)
        found.config = config.at(at) if config.has_history and at else config
    found.sources.append(Path(path).as_posix())
    found.digests.append(opened.digest)
    found.synthetic |= opened.synthetic


def _latest(opened: Archive) -> datetime | None:
    """Return the time of the newest metric."""
    if not opened.has("network_matrix"):
        return None
    newest: datetime | None = opened.sql("select max(ts) from network_matrix").fetchall()[0][0]
    return newest
