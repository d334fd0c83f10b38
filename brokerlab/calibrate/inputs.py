"""Load what a scout calibration needs from an archive."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

import polars as pl

from brokerlab.archive.store import Archive, open_archive
from brokerlab.calibrate.periods import Periods, split_periods
from brokerlab.errors import InsufficientDataError
from brokerlab.gdpconfig import Config
from brokerlab.scouts import ScoutRules, job_quantities

TASKS_OF = """
select * from tasks
where ($gshare = '' or gshare = $gshare) and ($processingtype = '' or processingtype = $processingtype)
"""


@dataclass(frozen=True, kw_only=True)
class Inputs:
    """The tables of one study: tasks of the window, what their jobs say, the queues."""

    archive: Archive
    tasks: pl.DataFrame
    quantities: pl.DataFrame
    queues: pl.DataFrame | None
    periods: Periods
    rules: ScoutRules
    config: Config
    filters: str

    @property
    def window(self) -> tuple[datetime, datetime]:
        """First and last creation of a task."""
        early, late = self.periods.early_window, self.periods.late_window
        spans = [span for span in (early, late) if span is not None]
        return spans[0][0], spans[-1][1]


def load(
    archive: str | Path | Archive,
    *,
    start: datetime | None = None,
    end: datetime | None = None,
    gshare: str = "",
    processingtype: str = "",
    rules: str = "document",
    early_share: float = 0.5,
) -> Inputs:
    """Load the tasks of a window and what their finished jobs say.

    Args:
        archive: Archive folder, or an opened archive.
        start: First creation time of a task, UTC; null: no bound.
        end: Tasks created at or after it are left out; null: no bound.
        gshare: Only this share; empty: all.
        processingtype: Only this processing type; empty: all.
        rules: ``document`` or ``production``.
        early_share: Share of the tasks that the choice is made on; the later ones prove it.

    Raises:
        ConfigError: An unknown rule set.
        DataError: The archive cannot be read or lacks a table.
        InsufficientDataError: No task is left.
    """
    rule_set = ScoutRules(rules=rules)
    opened = archive if isinstance(archive, Archive) else open_archive(archive)
    chosen = opened.sql(TASKS_OF, {"gshare": gshare, "processingtype": processingtype})
    queues = opened.queues
    quantities = job_quantities(
        opened.jobs, opened.files, chosen, opened.datasets, queues, rules=rule_set
    )
    tasks = _in_window(chosen.pl(), quantities, start, end)
    filters = ", ".join(
        f"{name} {value}"
        for name, value in (("gshare", gshare), ("processing type", processingtype))
        if value
    )
    if tasks.is_empty():
        asked = [
            *([f"created from {start}"] if start else []),
            *([f"created before {end}"] if end else []),
            *([filters] if filters else []),
        ]
        narrow = f" among those asked for ({', '.join(asked)})" if asked else ""
        raise InsufficientDataError(f"no task with finished jobs{narrow}")
    kept = quantities.join(tasks.select("jeditaskid"), on="jeditaskid", how="semi")
    periods = split_periods(tasks, kept, fraction=early_share)
    return Inputs(
        archive=opened,
        tasks=tasks,
        quantities=kept,
        queues=queues.pl(),
        periods=periods,
        rules=rule_set,
        config=_config(opened, periods),
        filters=filters,
    )


def _config(archive: Archive, periods: Periods) -> Config:
    """Return the configuration at the end of the window; the catalogue's defaults where there is none."""
    if not archive.has("gdpconfig"):
        return Config.empty()
    config = Config.from_frame(archive.gdpconfig)
    return (
        config.at((periods.late_window or (periods.at, periods.at))[1])
        if config.has_history
        else config
    )


def _in_window(
    tasks: pl.DataFrame,
    quantities: pl.DataFrame,
    start: datetime | None,
    end: datetime | None,
) -> pl.DataFrame:
    """Keep tasks with finished jobs that were created in the window; the first job stands in for a null."""
    first = quantities.group_by("jeditaskid").agg(first_job=pl.col("creationtime").min())
    created = pl.coalesce("creationdate", "first_job")
    inside = pl.lit(value=True)
    if start is not None:
        inside &= created >= start
    if end is not None:
        inside &= created < end
    return (
        tasks.join(first, on="jeditaskid", how="inner")
        .filter(inside)
        .drop("first_job")
        .sort("jeditaskid")
    )
