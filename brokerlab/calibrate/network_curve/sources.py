"""Read the evidence on links: from an archive folder, or from files as they were dumped."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path

import duckdb
import polars as pl

from brokerlab.archive.ingestion import ingest
from brokerlab.archive.store import Archive, open_archive
from brokerlab.brokerage.network_weight import NetworkSettings
from brokerlab.calibrate.network_curve.evidence import Evidence
from brokerlab.calibrate.network_curve.metrics import from_metrics
from brokerlab.calibrate.network_curve.periods import from_transfers
from brokerlab.errors import DataError, InsufficientDataError
from brokerlab.gdpconfig import Config
from brokerlab.rulesets import RuleSetName
from brokerlab.temporary import TemporaryFolder

METRICS_QUERY = """
select src, dst, key, value, ts from network_matrix
where ($start is null or ts >= $start) and ($end is null or ts < $end)
"""
TRANSFERS_QUERY = """
select src_site, dst_site, from_date, to_date, bytes_xs from transfers
where ($start is null or from_date >= $start) and ($end is null or to_date <= $end)
"""
MANIFEST = "manifest.json"
Bounds = Mapping[str, datetime | None]


@dataclass(frozen=True, kw_only=True)
class Links:
    """What links showed and what they delivered later.

    Attributes:
        evidence: By source: ``metrics``, ``transfers``; those that can be used.
        refused: Source -> why it cannot be used.
        config: The configuration at the end of the data; empty = the defaults of the catalogue.
        rules: Rule set that weighs links.
        sources: Paths that were read.
        digests: Of what was read, in the same order.
        synthetic: Whether any of it was generated.
        archive: The first path, where it is an archive folder; null: files.
    """

    evidence: Mapping[str, Evidence]
    refused: Mapping[str, str]
    config: Config
    rules: RuleSetName = "document"
    sources: tuple[str, ...] = ()
    digests: tuple[str, ...] = ()
    synthetic: bool = False
    archive: Archive | None = None

    @property
    def settings(self) -> NetworkSettings:
        """What the configuration says about the formula."""
        return NetworkSettings.of(self.config)

    @property
    def active(self) -> bool:
        """NW_ACTIVE: whether production multiplies by the network weight at all."""
        return bool(self.config.get("NW_ACTIVE", app="jedi", component="jobbroker", vo="atlas"))


def read_links(
    *paths: str | Path,
    start: datetime | None = None,
    end: datetime | None = None,
    rules: RuleSetName = "document",
) -> Links:
    """Read metrics of links and matrices of transfers.

    Args:
        paths: Archive folders; or files or folders of network metrics (JSON, or the flat table) or transfer matrices
            as dumped. Of two that hold the same kind the first usable one counts; the configuration is that of the last.
        start: Metrics from here on, windows of transfers that begin here or later; UTC; null: no bound.
        end: Metrics before it, windows that end here or earlier; null: no bound.
        rules: Rule set that weighs links.

    Raises:
        DataError: A path is not there or cannot be read.
        InsufficientDataError: None of them holds metrics of links or transfers.
    """
    links = Links(evidence={}, refused={}, config=Config.empty(), rules=rules)
    for path in map(Path, paths):
        links = _add(links, path, {"start": start, "end": end})
    if not links.evidence and not links.refused:
        raise InsufficientDataError(
            "neither metrics of links nor transfers; one of the tables network_matrix and transfers is needed"
        )
    return links


def _add(links: Links, path: Path, bounds: Bounds) -> Links:
    """Read an archive; files go through the archive's own readers into a folder that is thrown away."""
    if (path / MANIFEST).is_file():
        opened = open_archive(path)
        named = links.archive or (None if links.sources else opened)
        return _use(replace(links, archive=named), opened, path, bounds)
    if not path.exists():
        raise DataError(f"{path}: there is no such archive, file or folder")
    with TemporaryFolder() as folder:
        ingest([path], folder / "archive")
        return _use(links, open_archive(folder / "archive"), path, bounds)


def _use(links: Links, opened: Archive, path: Path, bounds: Bounds) -> Links:
    """Turn the tables of an archive into evidence."""
    evidence, refused, config = dict(links.evidence), dict(links.refused), links.config
    makers: dict[str, tuple[str, str, Callable[[duckdb.DuckDBPyRelation], Evidence]]] = {
        "metrics": ("network_matrix", METRICS_QUERY, from_metrics),
        "transfers": ("transfers", TRANSFERS_QUERY, from_transfers),
    }
    for name, (table, query, make) in makers.items():
        if name in evidence or not opened.has(table):
            continue
        try:
            evidence[name] = make(opened.sql(query, dict(bounds)))
            refused.pop(name, None)
        except InsufficientDataError as problem:
            refused[name] = str(problem)
    if opened.has("gdpconfig"):
        config = Config.from_frame(opened.gdpconfig)
        at = bounds["end"] or _latest(opened)
        config = config.at(at) if config.has_history and at else config
    return replace(
        links,
        evidence=evidence,
        refused=refused,
        config=config,
        sources=(*links.sources, path.as_posix()),
        digests=(*links.digests, opened.digest),
        synthetic=links.synthetic or opened.synthetic,
    )


def _latest(opened: Archive) -> datetime | None:
    """Return the time of the newest metric, or the end of the last window of transfers."""
    for table, column in (("network_matrix", "ts"), ("transfers", "to_date")):
        if opened.has(table):
            newest: datetime | None = (
                opened.scan(table).select(pl.col(column).max()).collect().item()
            )
            if newest is not None:
                return newest
    return None
