"""From tables to the arrays of a back-test: scouts' values, scored jobs, facts of every task."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import narwhals.stable.v2 as nw
import polars as pl

from brokerlab.calibrate.percentiles.needs import scorable
from brokerlab.calibrate.percentiles.parameters import Assumptions, KilledAs, ScoutsUsed
from brokerlab.errors import SchemaError, nearest
from brokerlab.numerics import SortedGroups
from brokerlab.scouts.kills import kill_cause
from brokerlab.scouts.quantities import core_count, has_scout_mark
from brokerlab.scouts.triggers import LATE_FINISHED, first_trigger, mark_scouts
from brokerlab.units import KB

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
REQUIRED = ("pandaid", "jeditaskid", "jobstatus", "creationtime", "starttime", "endtime")
OPTIONAL: dict[str, pl.DataType] = {
    **dict.fromkeys(
        ["actualcorecount", "corecount", "maxpss", "piloterrorcode", "parentid"], pl.Int64()
    ),
    **dict.fromkeys(
        ["specialhandling", "processingtype", "jobmetrics", "computingsite"], pl.String()
    ),
}
GIVEN = {"pandaid": pl.Int64(), "given": pl.Int64()}
TASK_COLUMNS: dict[str, pl.DataType] = {
    "jeditaskid": pl.Int64(),
    **dict.fromkeys(["baseramcount", "basewalltime", "cpuefficiency"], pl.Float64()),
    **dict.fromkeys(["processingtype", "gshare", "cputimeunit", "orig_cputimeunit"], pl.String()),
}


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


# ---- which jobs are scouts


def scout_sets(
    quantities: pl.DataFrame,
    others: pl.DataFrame | None = None,
    *,
    scouts_used: ScoutsUsed = "half",
    trigger_period_s: int = 0,
) -> pl.DataFrame:
    """Divide the finished jobs of every task into scouts and rest; never by chance.

    Marked jobs are the scouts. A task without a mark gets those it would have had: the first ten created.
    The first trigger comes when half of the scouts finished; every scout finished by then is used. Where
    fewer than half ever finish, all that did are used.

    Args:
        quantities: Finished jobs: ``jeditaskid, pandaid, is_scout, creationtime, endtime, finish_time``.
        others: Jobs that did not finish and were not retried, with ``jeditaskid, pandaid, is_scout,
            creationtime``: they count among the scouts of which half must finish. None: not known.
        scouts_used: ``half`` (the documented first trigger) or ``all`` finished scouts.
        trigger_period_s: The trigger is looked at only every so many seconds; 0: at once.

    Returns:
        One row per job, finished or not: ``jeditaskid, pandaid, role`` (``scout`` used, ``late_scout`` not
        finished at the trigger or at all, ``rest``), ``marked`` (the task's scouts were marked),
        ``after_second`` (created after the second trigger, the 100th job finished after
        the first: its request was another).

    Source: scouts.md section 7, T1; "Dynamic Optimization of Task Parameters", triggers.
    """
    key = ["jeditaskid", "pandaid"]
    mark = pl.col("is_scout").fill_null(value=False)
    jobs = quantities.select(
        *key,
        "creationtime",
        mark,
        modificationtime=pl.coalesce("finish_time", "endtime"),
        jobstatus=pl.lit("finished"),
    )
    if others is not None:
        never = pl.lit(None, jobs.schema["modificationtime"])
        open_ended = others.select(
            *key, "creationtime", mark, modificationtime=never, jobstatus=pl.lit("failed")
        )
        jobs = pl.concat([jobs, open_ended], how="vertical_relaxed")
    scouts = mark_scouts(jobs)
    trigger = first_trigger(scouts, trigger_period_s).select("jeditaskid", trigger_at="at")
    totals = scouts.group_by("jeditaskid").agg(marked=pl.col("is_scout").any())
    finished = pl.col("jobstatus") == "finished"
    used = finished if scouts_used == "all" else finished & _by_trigger()
    scouts = scouts.join(trigger, on="jeditaskid", how="left").select(
        *key, role=pl.when(used).then(pl.lit("scout")).otherwise(pl.lit("late_scout"))
    )
    second = _second_trigger(jobs, trigger)
    return (
        jobs.join(scouts, on=key, how="left")
        .join(totals, on="jeditaskid", how="left")
        .join(second, on="jeditaskid", how="left")
        .select(
            *key,
            "marked",
            role=pl.col("role").fill_null("rest"),
            after_second=(pl.col("creationtime") > pl.col("second_at")).fill_null(value=False),
        )
        .sort(key)
    )


def _second_trigger(jobs: pl.DataFrame, trigger: pl.DataFrame) -> pl.DataFrame:
    """Return when the 100th job after the first trigger had finished: ``jeditaskid, second_at``."""
    after = jobs.join(trigger, on="jeditaskid").filter(
        pl.col("modificationtime") > pl.col("trigger_at")
    )
    hundredth = pl.col("modificationtime").sort().get(LATE_FINISHED - 1, null_on_oob=True)
    return after.group_by("jeditaskid").agg(second_at=hundredth)


def _by_trigger() -> pl.Expr:
    """Tell which scouts had finished at the trigger; all, if the trigger has no time."""
    in_time = pl.col("modificationtime") <= pl.col("trigger_at")
    return in_time.fill_null(pl.col("trigger_at").is_null())


# ---- jobs that never showed what they needed


@dataclass(frozen=True)
class Unfinished:
    """What the jobs table says beyond the finished jobs.

    Attributes:
        scouts: Failed jobs without a retry: they count among the scouts of which half must finish.
        killed: Of these, those killed at a limit: ``jeditaskid, pandaid, cause`` (``memory`` or
            ``walltime``), ``cores, duration_s, maxpss_kb, computingsite``.
        kills: ``jeditaskid, cause`` of every job killed at a limit, retried or not.
        merge: ``pandaid`` of merge jobs, which scouts do not speak of.
        given: ``pandaid, given``: the limit that finished jobs were recorded with, where there is one.
        n_failed: Failed jobs in all, retried or not.
        known: False if no jobs table was given.
    """

    scouts: pl.DataFrame | None
    killed: pl.DataFrame
    kills: pl.DataFrame
    merge: pl.Series
    given: pl.DataFrame
    n_failed: int
    known: bool


def unfinished(jobs: Any | None, tasks: pl.DataFrame, *, limit: str | None = None) -> Unfinished:
    """Collect the failed jobs of the tasks, told apart by what ended them.

    A failed job that was retried is left out: the retry says what it needed, or is itself here.

    Args:
        jobs: The jobs table in any engine; None: not given.
        tasks: ``jeditaskid`` of the tasks looked at.
        limit: Column of ``jobs`` that goes to ``given``; None, or not there: no limits.

    Raises:
        SchemaError: A required column is missing.
    """
    if jobs is None:
        no, given = _killed(_nothing()), pl.DataFrame(schema=GIVEN)
        return Unfinished(None, no, no, no["pandaid"], given, 0, known=False)
    lazy = nw.from_native(jobs).lazy()
    present = lazy.collect_schema().names()
    missing = [
        f"jobs.{c}: column missing, {nearest(c, present)}" for c in REQUIRED if c not in present
    ]
    if missing:
        raise SchemaError("the back-test cannot read its tables: " + "; ".join(missing))
    columns = [name for name in (*REQUIRED, *OPTIONAL) if name in present]
    failed = _collect(lazy.filter(nw.col("jobstatus") == "failed").select(columns))
    for name, dtype in OPTIONAL.items():
        cast = (
            pl.col(name).cast(dtype) if name in failed.columns else pl.lit(None, dtype).alias(name)
        )
        failed = failed.with_columns(cast)
    mine = failed.join(tasks.select("jeditaskid"), on="jeditaskid", how="semi")
    payload = mine.filter(pl.col("processingtype").ne_missing("pmerge"))
    final = payload
    if "parentid" in present:
        parents = _collect(
            lazy.select(nw.col("parentid").cast(nw.Int64()))
            .filter(~nw.col("parentid").is_null())
            .unique()
        )
        final = payload.join(parents, left_on="pandaid", right_on="parentid", how="anti")
    merge = pl.Series("pandaid", [], pl.Int64)
    if "processingtype" in present:
        merge = _collect(lazy.filter(nw.col("processingtype") == "pmerge").select("pandaid"))[
            "pandaid"
        ]
    scouts = final.select("jeditaskid", "pandaid", "creationtime", is_scout=has_scout_mark())
    given = pl.DataFrame(schema=GIVEN)
    if limit is not None and limit in present:
        finished = lazy.filter((nw.col("jobstatus") == "finished") & (nw.col(limit) > 0))
        given = _collect(finished.select("pandaid", nw.col(limit).cast(nw.Int64).alias("given")))
    return Unfinished(
        scouts=scouts,
        killed=_killed(final),
        kills=_killed(payload),
        merge=merge,
        given=given,
        n_failed=payload.height,
        known=True,
    )


def _killed(failed: pl.DataFrame) -> pl.DataFrame:
    """Keep what was killed at a limit, with the cause."""
    span = (pl.col("endtime") - pl.col("starttime")).dt.total_seconds()
    return (
        failed.select(
            "jeditaskid",
            "pandaid",
            "computingsite",
            cause=kill_cause(),
            cores=core_count().cast(pl.Float64),
            duration_s=span.cast(pl.Int64),
            maxpss_kb=pl.col("maxpss").cast(pl.Float64),
        )
        .filter(pl.col("cause").is_not_null())
        .sort("jeditaskid", "pandaid")
    )


def _nothing() -> pl.DataFrame:
    """Return an empty table of failed jobs."""
    times = dict.fromkeys(["creationtime", "starttime", "endtime"], pl.Datetime("us"))
    ids = dict.fromkeys(["pandaid", "jeditaskid"], pl.Int64())
    return pl.DataFrame(schema={**ids, "jobstatus": pl.String(), **times, **OPTIONAL})


def _collect(lazy: nw.LazyFrame[Any]) -> pl.DataFrame:
    """Bring a small part of a table into Polars."""
    collected: pl.DataFrame = lazy.collect("polars").to_native()
    return collected
