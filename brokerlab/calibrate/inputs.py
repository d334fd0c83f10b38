"""Load what a scout calibration needs from an archive."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from functools import partial
from pathlib import Path

import narwhals.stable.v2 as nw
import polars as pl

from brokerlab.archive.store import Archive, open_archive
from brokerlab.calibrate.censoring import OPTIONAL, REQUIRED
from brokerlab.calibrate.sample import LIMITS, History, JobHistory, first_creation, with_creation
from brokerlab.carry import Chunk
from brokerlab.errors import InsufficientDataError
from brokerlab.gdpconfig import Config
from brokerlab.scouts import ScoutRules
from brokerlab.scouts.estimate import quantities
from brokerlab.scouts.tables import deal
from brokerlab.scouts.used_jobs import Choice, all_settings, queue_settings

TASKS_OF = """
select * from tasks
where ($gshare = '' or gshare = $gshare) and ($processingtype = '' or processingtype = $processingtype)
"""


READ = ("piloterrorcode", "parentid", "minramcount", "maxwalltime")
READ_TEXT = ("processingtype",)
"""Columns of jobs that a back-test reads and scouts do not."""


@dataclass(frozen=True, kw_only=True)
class Inputs:
    """The tables of one study: tasks of the window (first and last creation), what their jobs say by chunk, the queues."""

    archive: Archive
    tasks: pl.DataFrame
    history: History
    queues: pl.DataFrame | None
    window: tuple[datetime, datetime]
    rules: ScoutRules
    config: Config
    filters: dict[str, str]

    @property
    def quantities(self) -> pl.DataFrame:
        """What every finished job of the tasks says, see ``scouts.job_quantities``: one row per job, to look at."""
        ids = self.tasks.select("jeditaskid")
        rows = self.history.map(lambda h: h.quantities.join(ids, on="jeditaskid", how="semi"))
        return pl.concat(rows).sort("jeditaskid", "pandaid", maintain_order=True)


def load(
    archive: str | Path | Archive,
    *,
    start: datetime | None = None,
    end: datetime | None = None,
    gshare: str = "",
    processingtype: str = "",
    rules: str = "document",
) -> Inputs:
    """Load the tasks of a window and what their finished jobs say.

    Args:
        archive: Archive folder, or an opened archive.
        start: First creation time of a task, UTC; null: no bound.
        end: Tasks created at or after it are left out; null: no bound.
        gshare: Only this share; empty: all.
        processingtype: Only this processing type; empty: all.
        rules: ``document`` or ``production``.

    Raises:
        ConfigError: An unknown rule set.
        DataError: The archive cannot be read or lacks a table.
        InsufficientDataError: No task is left.
    """
    rule_set = ScoutRules(rules=rules)
    opened = archive if isinstance(archive, Archive) else open_archive(archive)
    chosen = opened.sql(TASKS_OF, {"gshare": gshare, "processingtype": processingtype})
    queues = opened.queues
    settings = all_settings(chosen, opened.datasets, Config.empty(), rule_set)
    chunks = deal(
        opened.jobs,
        opened.files,
        opened.datasets,
        {"tasks": settings},
        history=True,
        more=dict.fromkeys(READ, nw.Int64()) | dict.fromkeys(READ_TEXT, nw.String()),
    )
    choice = Choice(rules=rule_set, sites=queue_settings(queues))
    history = chunks.keep(partial(_history, choice=choice))
    tasks = _in_window(chosen.pl(), first_creation(history), start, end)
    asked_for = {"gshare": gshare, "processingtype": processingtype}
    filters = {name: value for name, value in asked_for.items() if value}
    if tasks.is_empty():
        asked = [
            *([f"created from {start}"] if start else []),
            *([f"created before {end}"] if end else []),
            *(f"{name} {value}" for name, value in filters.items()),
        ]
        narrow = f" among those asked for ({', '.join(asked)})" if asked else ""
        raise InsufficientDataError(f"no task with finished jobs{narrow}")
    window = window_of(tasks)
    return Inputs(
        archive=opened,
        tasks=tasks.drop("created_at"),
        history=history,
        queues=queues.pl(),
        window=window,
        rules=rule_set,
        config=config_at(opened, window[1]),
        filters=filters,
    )


def window_of(tasks: pl.DataFrame) -> tuple[datetime, datetime]:
    """Return first and last ``created_at`` of tasks.

    Raises:
        InsufficientDataError: None is known.
    """
    first, last = tasks.select(pl.col("created_at").min(), last=pl.col("created_at").max()).row(0)
    if first is None:
        raise InsufficientDataError(
            "no task with finished jobs has a creation time: tasks.creationdate and jobs.creationtime are null"
        )
    return first, last


def config_at(archive: Archive, at: datetime) -> Config:
    """Return the configuration of an archive at an instant; the catalogue's defaults where there is none."""
    if not archive.has("gdpconfig"):
        return Config.empty()
    config = Config.from_frame(archive.gdpconfig)
    return config.at(at) if config.has_history else config


def _history(chunk: Chunk, choice: Choice) -> JobHistory:
    """Return what the finished jobs of a chunk say, and the columns of all its jobs that a back-test reads."""
    limits = [limit.column for limit in LIMITS.values()]
    return JobHistory(
        quantities(chunk, choice).sort("jeditaskid", "pandaid", maintain_order=True),
        chunk["jobs"].select(*REQUIRED, *OPTIONAL, *limits),
    )


def _in_window(
    tasks: pl.DataFrame,
    first: pl.DataFrame,
    start: datetime | None,
    end: datetime | None,
) -> pl.DataFrame:
    """Keep tasks with finished jobs that were created in the window, with ``created_at``."""
    created, inside = pl.col("created_at"), pl.lit(value=True)
    if start is not None:
        inside &= created >= start
    if end is not None:
        inside &= created < end
    return with_creation(tasks, first).filter(inside).sort("jeditaskid")
