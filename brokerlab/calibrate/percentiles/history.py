"""What a back-test of scout parameters reads: tasks, what their jobs say by chunk, queues and settings of an archive."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property, partial
from pathlib import Path
from typing import NamedTuple

import narwhals.stable.v2 as nw
import polars as pl

from brokerlab.archive import approximate
from brokerlab.archive.store import Archive, open_archive
from brokerlab.calibrate.percentiles.sample import JOB_COLUMNS
from brokerlab.calibrate.settings import settings_at
from brokerlab.carry import Chunk, Chunks
from brokerlab.errors import InsufficientDataError
from brokerlab.frames import latest
from brokerlab.gdpconfig import Config
from brokerlab.scouts import ScoutRules
from brokerlab.scouts.estimate import quantities
from brokerlab.scouts.per_job import deal
from brokerlab.scouts.used_jobs import Choice, all_settings, queue_settings
from brokerlab.times import time_of

MERGES_UNKNOWN = (
    "No job says its processing type: merge jobs cannot be told from others and count as ordinary ones, which can raise what "
    "is said of memory and kills."
)
TASKS_OF = """
select * from tasks
where ($gshare = '' or gshare = $gshare) and ($processingtype = '' or processingtype = $processingtype)
"""


READ = ("piloterrorcode", "parentid", "minramcount", "maxwalltime")
READ_TEXT = ("processingtype",)
"""Columns of jobs that a back-test reads and scouts do not."""


class JobHistory(NamedTuple):
    """Jobs of some tasks: the finished ones as ``scouts.job_quantities``; the jobs table."""

    quantities: pl.DataFrame
    jobs: pl.DataFrame


History = Chunks[JobHistory]
"""Job histories by chunk of tasks."""


def with_creation(tasks: pl.DataFrame, history: History) -> pl.DataFrame:
    """Return the tasks with finished jobs, in their order, with ``created_at`` (UTC): the first of those jobs stands in for a null."""
    first = pl.col("creationtime").min().alias("created_at")
    jobs = pl.concat(history.map(lambda h: h.quantities.group_by("jeditaskid").agg(first)))
    dated = tasks.join(jobs, on="jeditaskid", maintain_order="left")
    known = [name for name in ("creationdate", "created_at") if name in dated.columns]
    return dated.with_columns(created_at=pl.coalesce(known))


@dataclass(frozen=True, kw_only=True)
class Inputs:
    """The tables of one study.

    Attributes:
        archive: Where they come from.
        tasks: Those that are looked at.
        history: What their jobs say, by chunk.
        window: First and last creation of a task.
        config: The configuration that acts.
        filters: Which part of the tasks was taken, such as gshare to its name.
    """

    archive: Archive
    tasks: pl.DataFrame
    history: History
    queues: pl.DataFrame
    window: tuple[datetime, datetime]
    rules: ScoutRules
    config: Config
    filters: dict[str, str] = field(default_factory=dict)

    @cached_property
    def caveats(self) -> list[str]:
        """Which tables were made from the jobs, and whether merge jobs are known; empty where nothing is amiss."""
        sentences = [approximate.caveat(self.archive.derived)] if self.archive.derived else []
        jobs = self.archive.scan("jobs")
        any_type = pl.lit(value=False)
        if "processingtype" in jobs.collect_schema().names():
            any_type = pl.col("processingtype").is_not_null().any()
        known: bool = jobs.select(any_type).collect(engine="streaming").item()
        return sentences if known else [*sentences, MERGES_UNKNOWN]

    @property
    def quantities(self) -> pl.DataFrame:
        """What every finished job of the tasks says, see ``scouts.job_quantities``: one row per job, to look at."""
        ids = self.tasks.select("jeditaskid")
        rows = self.history.map(lambda h: h.quantities.join(ids, on="jeditaskid", how="semi"))
        return pl.concat(rows).sort("jeditaskid", "pandaid", maintain_order=True)


def load(
    archive: str | Path | Archive,
    *,
    start: datetime | str | None = None,
    end: datetime | str | None = None,
    gshare: str = "",
    processingtype: str = "",
    rules: str | ScoutRules = "document",
) -> Inputs:
    """Load the tasks of a window and what their finished jobs say; arguments as :func:`brokerlab.calibrate.backtest`.

    Raises:
        ConfigError: An unknown rule set, a time that is none or has a zone.
        DataError: The archive cannot be read or lacks a table.
        InsufficientDataError: No task is left.
    """
    rule_set = rules if isinstance(rules, ScoutRules) else ScoutRules(rules=rules)
    start, end = time_of(start, "start"), time_of(end, "end")
    opened = archive if isinstance(archive, Archive) else open_archive(archive)
    chosen = opened.sql(TASKS_OF, {"gshare": gshare, "processingtype": processingtype})
    queues = opened.queues
    settings = all_settings(chosen, opened.datasets, Config.empty(), rule_set)
    chunks = deal(
        opened.lazy("jobs"),
        opened.lazy("files"),
        opened.datasets,
        {"tasks": settings},
        history=True,
        more=dict.fromkeys(READ, nw.Int64()) | dict.fromkeys(READ_TEXT, nw.String()),
    )
    choice = Choice(rules=rule_set, sites=queue_settings(queues))
    history = chunks.keep(partial(_history, choice=choice))
    created, inside = pl.col("created_at"), pl.lit(value=True)
    if start is not None:
        inside &= created >= start
    if end is not None:
        inside &= created < end
    tasks = with_creation(chosen.pl(), history).filter(inside).sort("jeditaskid")
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
    first, last = tasks.select(first=created.min(), last=created.max()).row(0)
    if first is None:
        raise InsufficientDataError(
            "no task with finished jobs has a creation time: tasks.creationdate and jobs.creationtime are null"
        )
    return Inputs(
        archive=opened,
        tasks=tasks.drop("created_at"),
        history=history,
        queues=latest(queues.pl()),
        window=(first, last),
        rules=rule_set,
        config=settings_at(opened, last),
        filters=filters,
    )


def _history(chunk: Chunk, choice: Choice) -> JobHistory:
    """Return what the finished jobs of a chunk say, and the columns of all its jobs that a back-test reads."""
    return JobHistory(
        quantities(chunk, choice).sort("jeditaskid", "pandaid", maintain_order=True),
        chunk["jobs"].select(*JOB_COLUMNS),
    )
