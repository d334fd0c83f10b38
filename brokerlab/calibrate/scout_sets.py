"""Which jobs of a task were its scouts, which of them had finished at the first trigger, which are the rest."""

from __future__ import annotations

from typing import Literal

import polars as pl

from brokerlab.scouts.triggers import LATE_FINISHED, first_trigger, mark_scouts

ScoutsUsed = Literal["half", "all"]


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
