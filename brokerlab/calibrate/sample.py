"""From tables to the arrays of a back-test: scouts' values, scored jobs, facts of every task."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import polars as pl

from brokerlab.calibrate.censoring import Unfinished, unfinished
from brokerlab.calibrate.needs import scorable
from brokerlab.calibrate.scout_sets import scout_sets
from brokerlab.carry import Chunks, whole
from brokerlab.errors import SchemaError, nearest
from brokerlab.numerics import SortedGroups
from brokerlab.units import KB

if TYPE_CHECKING:
    from brokerlab.calibrate.assumptions import Assumptions

KilledAs = Literal["lower_bound", "exclude"]
Cause = Literal["memory", "walltime"]

COMMON = (
    *("jeditaskid", "pandaid", "computingsite", "cores", "duration_s", "is_scout"),
    *("creationtime", "endtime", "finish_time"),
)
VALUES = {
    "ramcount": ("ram_kb", ("ram_kb", "ram_per_core", "maxpss_kb")),
    "cputime": ("cputime_hs06s", ("cputime_hs06s", "cputime_eligible", "corepower", "n_events")),
    "outdiskcount": (
        "outdisk_bytes",
        ("outdisk_bytes", "outdisk_per_event", "outputfilebytes", "n_events", "input_mb"),
    ),
}
TASK_COLUMNS: dict[str, pl.DataType] = {
    "jeditaskid": pl.Int64(),
    **dict.fromkeys(["baseramcount", "basewalltime", "cpuefficiency"], pl.Float64()),
    **dict.fromkeys(["processingtype", "gshare", "cputimeunit", "orig_cputimeunit"], pl.String()),
}


class JobHistory(NamedTuple):
    """Jobs of some tasks: the finished ones as ``scouts.job_quantities``; the jobs table in any engine, or None."""

    quantities: pl.DataFrame
    jobs: Any


History = Chunks[JobHistory]
"""Job histories by chunk of tasks."""


def history_of(quantities: pl.DataFrame | History, jobs: Any | None = None) -> History:
    """Return frames as one chunk, and chunks as they are."""
    if isinstance(quantities, Chunks):
        return quantities
    return whole(JobHistory(quantities, jobs))


def first_creation(history: History) -> pl.DataFrame:
    """Return the first ``creationtime`` (UTC) of the finished jobs of each task: ``jeditaskid, creationtime``."""
    first = pl.col("creationtime").min()
    return pl.concat(history.map(lambda h: h.quantities.group_by("jeditaskid").agg(first)))


def with_creation(tasks: pl.DataFrame, quantities: pl.DataFrame) -> pl.DataFrame:
    """Return the tasks with finished jobs, in their order, with ``created_at``: the first of those jobs stands in for a null.

    Args:
        tasks: ``jeditaskid``, and ``creationdate`` where it is known.
        quantities: ``jeditaskid, creationtime`` of the finished jobs.
    """
    first = quantities.group_by("jeditaskid").agg(created_at=pl.col("creationtime").min())
    dated = tasks.join(first, on="jeditaskid", maintain_order="left")
    known = [name for name in ("creationdate", "created_at") if name in dated.columns]
    return dated.with_columns(created_at=pl.coalesce(known))


@dataclass(frozen=True)
class Limit:
    """The limit that a parameter becomes.

    Attributes:
        cause: What a kill at it is called.
        column: Of ``jobs``: what a job was given.
        used: Of the quantities, in the unit of ``column``.
    """

    cause: Cause
    column: str
    used: pl.Expr


LIMITS = {
    "ramcount": Limit("memory", "minramcount", pl.col("maxpss_kb") / KB),
    "cputime": Limit("walltime", "maxwalltime", pl.col("duration_s")),
}


@dataclass(frozen=True)
class Sample:
    """Everything a back-test needs about the tasks it can use, tasks numbered by rising jeditaskid.

    Attributes:
        tasks: One row per task: ``task`` (number), ``jeditaskid, processingtype, gshare, cores``
            (median of its scored jobs), ``n_scouts, n_scored``.
        values: The used scouts' values by task.
        scored: Scored jobs with ``task``, ``censored`` and the task's settings.
        jobs: All finished jobs with ``task, role, value``, for the gap between scouts and rest.
        counts: What was left out or filled in, by name, for the caveats.
    """

    tasks: pl.DataFrame
    values: SortedGroups
    scored: pl.DataFrame
    jobs: pl.DataFrame
    counts: dict[str, int]


def sample_of(
    quantities: pl.DataFrame,
    tasks: pl.DataFrame,
    jobs: Any | None,
    parameter: str,
    made: Assumptions,
) -> Sample:
    """Join, divide into scouts and rest, and keep the tasks that can be scored, which may be none.

    Raises:
        SchemaError: Columns missing.
    """
    check_columns(quantities, tasks, parameter)
    facts = _task_facts(tasks, parameter)
    limit = LIMITS.get(parameter)
    failed = unfinished(jobs, facts, limit=limit.column if limit else None)
    mine = quantities.join(facts, on="jeditaskid", how="inner").filter(
        ~pl.col("pandaid").is_in(failed.merge.implode())
    )
    scouts = failed.scouts
    if scouts is not None:  # tasks without any finished job need no trigger
        scouts = scouts.join(mine.select("jeditaskid").unique(), on="jeditaskid", how="semi")
    roles = scout_sets(
        mine, scouts, scouts_used=made.scouts_used, trigger_period_s=made.trigger_period_s
    )
    value = pl.col(VALUES[parameter][0])
    if parameter == "cputime":
        value = pl.when("cputime_eligible").then(value)
    mine = mine.join(roles, on=["jeditaskid", "pandaid"], how="left").with_columns(
        value=value.cast(pl.Float64), censored=pl.lit(value=False)
    )
    rest = mine.filter(pl.col("role") == "rest")
    scored = _with_killed(
        rest.filter(scorable(parameter)), failed, facts, roles, parameter, made.killed_as
    )
    usable = mine.filter((pl.col("role") == "scout") & pl.col("value").is_not_null())
    kept = _kept_tasks(
        facts, usable, scored, min_scored=made.min_scored, min_scouts=made.min_scouts
    )
    counts = _counts(mine, rest, scored, failed, kept, facts) | _enforced(
        scored, failed, kept, limit
    )
    number = kept.select("jeditaskid", "task")
    usable = usable.join(number, on="jeditaskid").sort("task", "pandaid")
    values = SortedGroups.of(usable["task"].to_numpy(), usable["value"].to_numpy(), kept.height)
    return Sample(
        tasks=kept,
        values=values,
        scored=scored.join(number, on="jeditaskid").sort("task", "pandaid"),
        jobs=mine.join(number, on="jeditaskid"),
        counts=counts,
    )


def check_columns(quantities: pl.DataFrame, tasks: pl.DataFrame, parameter: str) -> None:
    """Report every missing column at once."""
    wanted = (*COMMON, *VALUES[parameter][1])
    missing = [
        f"quantities.{c}: column missing, {nearest(c, quantities.columns)}"
        for c in wanted
        if c not in quantities.columns
    ]
    if "jeditaskid" not in tasks.columns:
        missing.append("tasks.jeditaskid: column missing")
    if missing:
        raise SchemaError("the back-test cannot read its tables: " + "; ".join(missing))


def _task_facts(tasks: pl.DataFrame, parameter: str) -> pl.DataFrame:
    """Select the task columns, absent ones as null; leave out tasks that scouts may not write to."""
    facts = tasks.select(
        (pl.col(name) if name in tasks.columns else pl.lit(None)).cast(dtype).alias(name)
        for name, dtype in TASK_COLUMNS.items()
    ).unique("jeditaskid", keep="last", maintain_order=True)
    if parameter != "cputime":
        return facts
    # efficiency 0 switches the scaling with events off: there is no limit to score (scouts.md 5.1)
    fixed = pl.coalesce("orig_cputimeunit", "cputimeunit").str.ends_with("Fixed")
    scaled = pl.col("cpuefficiency").ne_missing(0.0)
    return facts.filter(~fixed.fill_null(value=False) & scaled)


def _with_killed(
    scored: pl.DataFrame,
    failed: Unfinished,
    facts: pl.DataFrame,
    roles: pl.DataFrame,
    parameter: str,
    killed_as: KilledAs,
) -> pl.DataFrame:
    """Add the jobs killed at the limit of this parameter: what they used is less than they needed.

    Scouts are left out: their limit was the one from before scouting.
    """
    limit = LIMITS.get(parameter)
    if killed_as == "exclude" or limit is None or failed.killed.is_empty():
        return scored
    typical = scored.group_by("jeditaskid").agg(
        *(pl.col(c).first() for c in ("ram_per_core",) if c in scored.columns),
        *(pl.col(c).median() for c in ("n_events", "corepower") if c in scored.columns),
    )
    killed = (
        failed.killed.filter(pl.col("cause") == limit.cause)
        .join(typical, on="jeditaskid")
        .join(facts, on="jeditaskid")
        .join(roles.filter(pl.col("role") == "rest"), on=["jeditaskid", "pandaid"])
        .with_columns(censored=pl.lit(value=True))
        .filter(scorable(parameter))
    )
    return pl.concat(
        [scored, killed.select(c for c in killed.columns if c in scored.columns)],
        how="diagonal_relaxed",
    )


def _kept_tasks(
    facts: pl.DataFrame,
    usable: pl.DataFrame,
    scored: pl.DataFrame,
    *,
    min_scored: int,
    min_scouts: int,
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
            (pl.col("n_scouts") >= max(min_scouts, 1)) & (pl.col("n_scored") >= max(min_scored, 1))
        )
        .sort("jeditaskid")
        .with_columns(task=pl.int_range(pl.len(), dtype=pl.Int64))
    )


def _counts(
    mine: pl.DataFrame,
    rest: pl.DataFrame,
    scored: pl.DataFrame,
    failed: Unfinished,
    kept: pl.DataFrame,
    facts: pl.DataFrame,
) -> dict[str, int]:
    """Count what a reader must know about."""
    of_kept = mine.join(kept.select("jeditaskid"), on="jeditaskid", how="semi")
    scouts = of_kept.filter(pl.col("role") == "scout")
    marks = of_kept.group_by("jeditaskid").agg(pl.col("marked").first())
    rest_kept = rest.join(kept.select("jeditaskid"), on="jeditaskid", how="semi")
    scored_kept = scored.join(kept.select("jeditaskid"), on="jeditaskid", how="semi")
    return {
        "n_tasks_given": facts.height,
        "n_tasks": kept.height,
        "n_tasks_with_jobs": mine["jeditaskid"].n_unique(),
        "n_tasks_marked": int(marks["marked"].sum()),
        "n_scored": scored_kept.height,
        "n_unscorable": rest_kept.height - scored_kept.filter(~pl.col("censored")).height,
        "n_scouts_without_value": int(scouts["value"].null_count()),
        "n_censored": int(scored_kept["censored"].sum()),
        "n_after_second": int(scored_kept["after_second"].sum()),
        "n_killed": failed.killed.height,
        "n_killed_memory": failed.killed.filter(pl.col("cause") == "memory").height,
        "n_killed_walltime": failed.killed.filter(pl.col("cause") == "walltime").height,
        "n_failed": failed.n_failed,
        "failures_known": int(failed.known),
    }


def _enforced(
    scored: pl.DataFrame, failed: Unfinished, kept: pl.DataFrame, limit: Limit | None
) -> dict[str, int]:
    """Count who used more than was recorded as given, and finished all the same or was killed."""
    if limit is None:
        return {"n_outgrown": 0, "n_kills": 0}
    mine = scored.filter(~pl.col("censored")).join(failed.given, on="pandaid")
    outgrown = mine.join(kept.select("jeditaskid"), on="jeditaskid", how="semi").filter(
        limit.used > pl.col("given")
    )
    kills = failed.kills.filter(pl.col("cause") == limit.cause)
    return {
        "n_outgrown": outgrown.height,
        "n_kills": kills.join(kept.select("jeditaskid"), on="jeditaskid", how="semi").height,
    }


def nothing_left(parameter: str, counts: dict[str, int], min_scored: int, min_scouts: int) -> str:
    """Say why no task can be scored."""
    return (
        f"back-test of {parameter}: none of {counts['n_tasks_given']} tasks has at least {min_scouts} "
        f"scouts with a value and {min_scored} other jobs that can be scored "
        f"({counts['n_tasks_with_jobs']} tasks have finished jobs at all); widen the window or lower "
        "min_scored"
    )
