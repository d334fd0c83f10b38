"""The settings that acted in an archive."""

from __future__ import annotations

from datetime import datetime

import polars as pl

from brokerlab.archive.given import Source, scans_of
from brokerlab.errors import InsufficientDataError
from brokerlab.gdpconfig import Config


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
