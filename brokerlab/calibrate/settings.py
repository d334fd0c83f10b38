"""What every calibration reads of a source: tables whose rows stand once, and the settings that acted."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

import polars as pl

from brokerlab.archive import Archive
from brokerlab.archive.given import Source, check_once, scans_of
from brokerlab.errors import InsufficientDataError
from brokerlab.gdpconfig import Config


def scans_once(
    source: Source, needed: Sequence[str], optional: Sequence[str] = ()
) -> dict[str, pl.LazyFrame]:
    """Return tables by name; rows given twice, which would count twice and which no archive has, are refused."""
    tables = scans_of(source, needed, optional)
    for name, table in tables.items() if not isinstance(source, Archive) else ():
        if name != "files":  # they are held to it wherever tables are given by name
            check_once(name, table)
    return tables


def settings_at(source: Source, at: datetime) -> Config:
    """Return the configuration that acts at a time; where none is recorded the catalogue's defaults."""
    recorded = scans_of(source, (), ["gdpconfig"])
    if not recorded:
        return Config.empty()
    return Config.from_frame(recorded["gdpconfig"].collect()).at(at)


def last_change(source: Source) -> datetime:
    """Return when a job changed last."""
    jobs = scans_of(source, ["jobs"])["jobs"]
    last: datetime | None = jobs.select(pl.col("modificationtime").max()).collect().item()
    if last is None:
        raise InsufficientDataError("no job has a time of its last change")
    return last
