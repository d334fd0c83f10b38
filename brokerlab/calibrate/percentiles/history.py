"""What a back-test of scout parameters reads: tasks, what their jobs say by chunk, queues and settings of an archive.

`sample_of` makes of a chunk what is replayed: scouts' values, scored jobs, facts of every task.
"""

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
from brokerlab.calibrate.percentiles.parameters import PARAMETERS, Assumptions, Parameter
from brokerlab.carry import Chunk, Chunks
from brokerlab.errors import InsufficientDataError
from brokerlab.frames import columns_of, latest
from brokerlab.gdpconfig import Config
from brokerlab.numerics import SortedGroups
from brokerlab.scouts import ScoutRules
from brokerlab.scouts.estimate import quantities
from brokerlab.scouts.per_job import deal
from brokerlab.scouts.quantities import core_count, has_scout_mark, kill_cause
from brokerlab.scouts.triggers import LATE_FINISHED, first_trigger, mark_scouts
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
        tasks: Those that are looked at, see :func:`with_creation`.
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
    created, inside = pl.col("created_at"), dict[str, pl.Expr]()
    if start is not None:
        inside[f"created from {start}"] = created >= start
    if end is not None:
        inside[f"created before {end}"] = created < end
    tasks = with_creation(chosen.pl(), history).filter(*inside.values()).sort("jeditaskid")
    asked_for = {"gshare": gshare, "processingtype": processingtype}
    filters = {name: value for name, value in asked_for.items() if value}
    if tasks.is_empty():
        asked = ", ".join([*inside, *(f"{name} {value}" for name, value in filters.items())])
        narrow = f" among those asked for ({asked})" if asked else ""
        raise InsufficientDataError(f"no task with finished jobs{narrow}")
    first, last = tasks.select(first=created.min(), last=created.max()).row(0)
    if first is None:
        raise InsufficientDataError(
            "no task with finished jobs has a creation time: tasks.creationdate and jobs.creationtime are null"
        )
    return Inputs(
        archive=opened,
        tasks=tasks,
        history=history,
        queues=latest(queues.pl()),
        window=(first, last),
        rules=rule_set,
        config=Config.recorded(opened, last),
        filters=filters,
    )


def _history(chunk: Chunk, choice: Choice) -> JobHistory:
    """Return what the finished jobs of a chunk say, and the columns of all its jobs that a back-test reads."""
    return JobHistory(
        quantities(chunk, choice).sort("jeditaskid", "pandaid", maintain_order=True),
        chunk["jobs"].select(*JOB_COLUMNS),
    )


# --- from tables to the arrays of a back-test -------------------------------------------------------------------------


GIVEN = tuple(p.limit.column for p in PARAMETERS.values() if p.limit)
JOB_COLUMNS: dict[str, pl.DataType] = {
    **dict.fromkeys(["pandaid", "jeditaskid"], pl.Int64()),
    "jobstatus": pl.String(),
    **dict.fromkeys(["creationtime", "starttime", "endtime"], pl.Datetime("us")),
    **dict.fromkeys(
        ["actualcorecount", "corecount", "maxpss", "piloterrorcode", "parentid", *GIVEN], pl.Int64()
    ),
    **dict.fromkeys(
        ["specialhandling", "processingtype", "jobmetrics", "computingsite"], pl.String()
    ),
}
"""Columns of the jobs table that are read."""
TASK_COLUMNS: dict[str, pl.DataType] = {
    "jeditaskid": pl.Int64(),
    **dict.fromkeys(["baseramcount", "basewalltime", "cpuefficiency"], pl.Float64()),
    **dict.fromkeys(["processingtype", "gshare", "cputimeunit", "orig_cputimeunit"], pl.String()),
}


@dataclass(frozen=True)
class Sample:
    """Everything a back-test needs about the tasks it can use, tasks numbered by rising jeditaskid.

    Attributes:
        tasks: One row per task: ``task`` (number), ``jeditaskid, processingtype, gshare, cores``
            (median of its scored jobs), ``n_scouts, n_scored``.
        values: The used scouts' values by task.
        scored: Scored jobs with ``task``, ``censored`` and the task's settings.
        gap: See :func:`scout_gap`.
        counts: What was left out or filled in, by name, for the caveats.
    """

    tasks: pl.DataFrame
    values: SortedGroups
    scored: pl.DataFrame
    gap: pl.DataFrame
    counts: dict[str, int]


def sample_of(
    quantities: pl.DataFrame,
    tasks: pl.DataFrame,
    jobs: pl.DataFrame,
    parameter: Parameter,
    made: Assumptions,
) -> Sample:
    """Join, divide into scouts and rest, and keep the tasks that can be scored, which may be none.

    Jobs that failed and were retried are left out: the retry says what they needed, or is itself here.
    """
    facts, every = _task_facts(tasks, parameter), columns_of(jobs, JOB_COLUMNS)
    merge = pl.col("processingtype") == "pmerge"  # scouts do not speak of merge jobs
    failed = every.filter(pl.col("jobstatus") == "failed", ~merge.fill_null(value=False))
    failed = failed.join(facts, on="jeditaskid", how="semi")
    final = failed.join(
        every.drop_nulls("parentid"), left_on="pandaid", right_on="parentid", how="anti"
    )
    mine = quantities.join(facts, on="jeditaskid").join(
        every.filter(merge), on="pandaid", how="anti"
    )
    # tasks without any finished job need no trigger
    roles = _roles(mine, final.join(mine, on="jeditaskid", how="semi"), made)
    mine = mine.join(roles, on=["jeditaskid", "pandaid"], how="left").with_columns(
        value=parameter.value.cast(pl.Float64), censored=pl.lit(value=False)
    )
    rest = mine.filter(pl.col("role") == "rest")
    scored, killed = rest.filter(parameter.scorable), _killed(final)
    if made.killed_as == "lower_bound":
        scored = _with_killed(scored, killed, facts, roles, parameter)
    usable = mine.filter((pl.col("role") == "scout") & pl.col("value").is_not_null())
    kept = _kept_tasks(facts, usable, scored, made)
    counts = {
        "n_tasks_given": facts.height,
        "n_failed": failed.height,
        **_counts(mine, rest, scored, killed, kept),
        **_enforced(scored, every, failed, kept, parameter),
    }
    number = kept.select("jeditaskid", "task")
    usable = usable.join(number, on="jeditaskid").sort("task", "pandaid")
    return Sample(
        tasks=kept,
        values=SortedGroups.of(usable["task"].to_numpy(), usable["value"].to_numpy(), kept.height),
        scored=scored.join(number, on="jeditaskid").sort("task", "pandaid"),
        gap=scout_gap(mine.join(number, on="jeditaskid")),
        counts=counts,
    )


def _task_facts(tasks: pl.DataFrame, parameter: Parameter) -> pl.DataFrame:
    """Select the task columns, absent ones as null; leave out tasks that scouts may not write to."""
    facts = columns_of(tasks, TASK_COLUMNS).unique("jeditaskid", keep="last", maintain_order=True)
    if parameter.name != "cputime":
        return facts
    # efficiency 0 switches the scaling with events off: there is no limit to score (scouts.md 5.1)
    fixed = pl.coalesce("orig_cputimeunit", "cputimeunit").str.ends_with("Fixed")
    scaled = pl.col("cpuefficiency").ne_missing(0.0)
    return facts.filter(~fixed.fill_null(value=False) & scaled)


def _killed(failed: pl.DataFrame) -> pl.DataFrame:
    """Keep what was killed at a limit, with the cause and what is known of its use."""
    span = (pl.col("endtime") - pl.col("starttime")).dt.total_seconds()
    return (
        failed.select(
            *("jeditaskid", "pandaid", "computingsite"),
            cause=kill_cause(),
            cores=core_count().cast(pl.Float64),
            duration_s=span.cast(pl.Int64),
            maxpss_kb=pl.col("maxpss").cast(pl.Float64),
        )
        .drop_nulls("cause")
        .sort("jeditaskid", "pandaid")
    )


def _with_killed(
    scored: pl.DataFrame,
    killed: pl.DataFrame,
    facts: pl.DataFrame,
    roles: pl.DataFrame,
    parameter: Parameter,
) -> pl.DataFrame:
    """Add the jobs killed at the limit of this parameter: what they used is less than they needed.

    Scouts are left out: their limit was the one from before scouting.
    """
    limit = parameter.limit
    if limit is None or killed.is_empty():
        return scored
    typical = scored.group_by("jeditaskid").agg(
        *(pl.col(c).first() for c in ("ram_per_core",) if c in scored.columns),
        *(pl.col(c).median() for c in ("n_events", "corepower") if c in scored.columns),
    )
    more = (
        killed.filter(pl.col("cause") == limit.cause)
        .join(typical, on="jeditaskid")
        .join(facts, on="jeditaskid")
        .join(roles.filter(pl.col("role") == "rest"), on=["jeditaskid", "pandaid"])
        .with_columns(censored=pl.lit(value=True))
        .filter(parameter.scorable)
    )
    return pl.concat(
        [scored, more.select(c for c in more.columns if c in scored.columns)],
        how="diagonal_relaxed",
    )


def _kept_tasks(
    facts: pl.DataFrame, usable: pl.DataFrame, scored: pl.DataFrame, made: Assumptions
) -> pl.DataFrame:
    """Number the tasks with enough scouts and scored jobs."""
    scouts = usable.group_by("jeditaskid").agg(n_scouts=pl.len().cast(pl.Int64))
    rest = scored.group_by("jeditaskid").agg(
        n_scored=pl.len().cast(pl.Int64),
        n_censored=pl.col("censored").sum().cast(pl.Int64),
        cores=pl.col("cores").median().round().cast(pl.Int64),
    )
    return (
        facts.select("jeditaskid", "processingtype", "gshare")
        .join(scouts, on="jeditaskid")
        .join(rest, on="jeditaskid")
        .filter(
            pl.col("n_scouts") >= max(made.min_scouts, 1),
            pl.col("n_scored") >= max(made.min_scored, 1),
        )
        .sort("jeditaskid")
        .with_columns(task=pl.int_range(pl.len(), dtype=pl.Int64))
    )


def _counts(
    mine: pl.DataFrame,
    rest: pl.DataFrame,
    scored: pl.DataFrame,
    killed: pl.DataFrame,
    kept: pl.DataFrame,
) -> dict[str, int]:
    """Count what a reader must know about."""
    of_kept, rest, scored = (
        jobs.join(kept, on="jeditaskid", how="semi") for jobs in (mine, rest, scored)
    )
    marks = of_kept.group_by("jeditaskid").agg(pl.col("marked").first())
    scouts = of_kept.filter(pl.col("role") == "scout")
    return {
        "n_tasks": kept.height,
        "n_tasks_with_jobs": mine["jeditaskid"].n_unique(),
        "n_tasks_marked": int(marks["marked"].sum()),
        "n_scored": scored.height,
        "n_unscorable": rest.height - scored.filter(~pl.col("censored")).height,
        "n_scouts_without_value": int(scouts["value"].null_count()),
        "n_censored": int(scored["censored"].sum()),
        "n_after_second": int(scored["after_second"].sum()),
        "n_killed": killed.height,
        "n_killed_memory": killed.filter(pl.col("cause") == "memory").height,
        "n_killed_walltime": killed.filter(pl.col("cause") == "walltime").height,
    }


def _enforced(
    scored: pl.DataFrame,
    jobs: pl.DataFrame,
    failed: pl.DataFrame,
    kept: pl.DataFrame,
    parameter: Parameter,
) -> dict[str, int]:
    """Count who used more than was recorded as given and finished all the same, and who was killed, retried or not."""
    limit = parameter.limit
    if limit is None:
        return {"n_outgrown": 0, "n_kills": 0}
    given = jobs.filter(pl.col("jobstatus") == "finished", pl.col(limit.column) > 0)
    mine = scored.filter(~pl.col("censored")).join(kept, on="jeditaskid", how="semi")
    outgrown = mine.join(given.select("pandaid", given=limit.column), on="pandaid")
    kills = failed.filter(kill_cause() == limit.cause).join(kept, on="jeditaskid", how="semi")
    return {
        "n_outgrown": outgrown.filter(limit.used > pl.col("given")).height,
        "n_kills": kills.height,
    }


def _roles(finished: pl.DataFrame, failed: pl.DataFrame, made: Assumptions) -> pl.DataFrame:
    """Divide the jobs of every task into scouts and rest; never by chance.

    Marked jobs are the scouts. A task without a mark gets those it would have had: the first ten created.
    The first trigger comes when half of the scouts finished; every scout finished by then is used. Where
    fewer than half ever finish, all that did are used.

    One row per job, finished or not: ``jeditaskid, pandaid, role`` (``scout`` used, ``late_scout`` not
    finished at the trigger or at all, ``rest``), ``marked`` (the task's scouts were marked),
    ``after_second`` (created after the second trigger, the 100th job finished after
    the first: its request was another).

    Source: scouts.md section 7, T1; "Dynamic Optimization of Task Parameters", triggers.
    """
    key, end = ["jeditaskid", "pandaid"], pl.col("modificationtime")
    done = finished.select(
        *(*key, "creationtime"),
        is_scout=pl.col("is_scout").fill_null(value=False),
        modificationtime=pl.coalesce("finish_time", "endtime"),
        jobstatus=pl.lit("finished"),
    )
    never = pl.lit(None, done.schema["modificationtime"]).alias("modificationtime")
    lost = failed.select(
        *key, "creationtime", has_scout_mark().alias("is_scout"), never, "jobstatus"
    )
    jobs = pl.concat([done, lost], how="vertical_relaxed")
    scouts = mark_scouts(jobs)
    trigger = first_trigger(scouts, made.trigger_period_s).select("jeditaskid", trigger_at="at")
    after = jobs.join(trigger, on="jeditaskid").filter(end > pl.col("trigger_at"))
    hundredth = end.sort().get(LATE_FINISHED - 1, null_on_oob=True)
    second = after.group_by("jeditaskid").agg(second_at=hundredth)
    in_time = (end <= pl.col("trigger_at")).fill_null(pl.col("trigger_at").is_null())
    used = (pl.col("jobstatus") == "finished") & (in_time | (made.scouts_used == "all"))
    role = pl.when(used).then(pl.lit("scout")).otherwise(pl.lit("late_scout"))
    result = scouts.join(trigger, on="jeditaskid", how="left").select(*key, role=role)
    marked = scouts.group_by("jeditaskid").agg(marked=pl.col("is_scout").any())
    return (
        jobs.join(result, on=key, how="left")
        .join(marked, on="jeditaskid", how="left")
        .join(second, on="jeditaskid", how="left")
        .select(
            *(*key, "marked"),
            role=pl.col("role").fill_null("rest"),
            after_second=(pl.col("creationtime") > pl.col("second_at")).fill_null(value=False),
        )
        .sort(key)
    )


def scout_gap(jobs: pl.DataFrame) -> pl.DataFrame:
    """Compare the used scouts with the rest of each task, by their ``value`` (null and negative ones left out).

    One row per task with both, sorted: ``n_scouts, n_rest``, ``ratio_median`` (scouts over rest).
    """
    sides = {"scouts": pl.col("role") == "scout", "rest": pl.col("role") == "rest"}
    values = {name: pl.col("value").filter(here) for name, here in sides.items()}
    counts = {f"n_{name}": value.len().cast(pl.Int64) for name, value in values.items()}
    ratio = values["scouts"].median() / values["rest"].median()
    result = (
        jobs.filter(pl.col("value") > 0).group_by("jeditaskid").agg(**counts, ratio_median=ratio)
    )
    return result.filter(pl.col("n_scouts") > 0, pl.col("n_rest") > 0).sort("jeditaskid")
