"""Read the evidence on links: from an archive folder, or from files as they were dumped."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from brokerlab.archive.ingestion import ingest
from brokerlab.archive.store import Archive, open_archive
from brokerlab.brokerage.network_weight import NetworkSettings
from brokerlab.calibrate.network_curve.evidence import Evidence, from_transfers
from brokerlab.calibrate.network_curve.metrics import from_metrics
from brokerlab.errors import DataError, InsufficientDataError
from brokerlab.gdpconfig import Config
from brokerlab.rulesets import RuleSetName
from brokerlab.temporary import TemporaryFolder

METRICS = """
select src, dst, key, value, ts from network_matrix
where ($start is null or ts >= $start) and ($end is null or ts < $end)
"""
TRANSFERS = """
select src_site, dst_site, from_date, to_date, bytes_xs from transfers
where ($start is null or from_date >= $start) and ($end is null or to_date <= $end)
"""
SOURCES: dict[str, tuple[str, str, Any]] = {
    "metrics": ("network_matrix", METRICS, from_metrics),
    "transfers": ("transfers", TRANSFERS, from_transfers),
}
"""Name to its table, what is read of it, and what makes evidence of that."""
DATA_END = {
    "network_matrix": "select max(ts) from network_matrix",
    "transfers": "select max(to_date) from transfers",
}
"""Table to what tells when the data end; the first that does counts."""
MANIFEST = "manifest.json"


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
    evidence: dict[str, Evidence] = {}
    refused: dict[str, str] = {}
    config, read = Config.empty(), []
    for path in map(Path, paths):
        with ExitStack() as stack:
            opened = _opened(path, stack)
            read.append(opened)
            for name, (table, query, make) in SOURCES.items():
                if name in evidence or not opened.has(table):
                    continue
                try:
                    evidence[name] = make(opened.sql(query, {"start": start, "end": end}))
                    refused.pop(name, None)
                except InsufficientDataError as problem:
                    refused[name] = str(problem)
            if opened.has("gdpconfig"):
                config = Config.from_frame(opened.gdpconfig)
                at = end or _data_end(opened)
                config = config.at(at) if at else config
    if not evidence and not refused:
        raise InsufficientDataError(
            "neither metrics of links nor transfers; one of the tables network_matrix and transfers is needed"
        )
    return Links(
        evidence=evidence,
        refused=refused,
        config=config,
        rules=rules,
        sources=tuple(Path(path).as_posix() for path in paths),
        digests=tuple(one.digest for one in read),
        synthetic=any(one.synthetic for one in read),
        archive=read[0] if read[0].path == Path(paths[0]) else None,
    )


def _opened(path: Path, stack: ExitStack) -> Archive:
    """Open an archive; files go through the archive's own readers into a folder that is thrown away."""
    if (path / MANIFEST).is_file():
        return open_archive(path)
    if not path.exists():
        raise DataError(f"{path}: there is no such archive, file or folder")
    folder = stack.enter_context(TemporaryFolder()) / "archive"
    ingest([path], folder)
    return open_archive(folder)


def _data_end(opened: Archive) -> datetime | None:
    """Return the time of the newest metric, or the end of the last window of transfers."""
    for table, query in DATA_END.items():
        newest: datetime | None = opened.sql(query).fetchall()[0][0] if opened.has(table) else None
        if newest is not None:
            return newest
    return None
