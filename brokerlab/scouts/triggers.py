"""When scouts are read: the trigger instants of every task, rebuilt from its job history (docs/rules/scouts.md 7)."""

from __future__ import annotations

from functools import partial
from typing import Any

import polars as pl

from brokerlab.archive.contracts.jobs import OVER
from brokerlab.carry import Chunk
from brokerlab.scouts.per_job import deal, rows
from brokerlab.scouts.quantities import has_scout_mark
from brokerlab.scouts.rules import ScoutRules
from brokerlab.scouts.tables import TASK_COLUMNS, small

FIRST_JOBS = 10  # scouts are ten chunks of input
EARLY_FINISHED = 5
LATE_FINISHED = 100


def triggers(
    jobs: Any,
    files: Any,
    tasks: Any,
    datasets: Any,
    *,
    rules: ScoutRules | str | None = None,
    trigger_period_s: int = 0,
) -> pl.DataFrame:
    """Find the instants at which the scouts of each task were, or would have been, read.

    The scouts of a task are the jobs marked ``sj``; where none is marked, its first ten jobs. T1 is the
    instant at which half of them had finished; T1b, where that never happened, at which all had ended.
    T2a and T2b (production) are the 5th and the 100th finished job of the task, scouts included; T2
    (document) is the 100th job that finished after the first trigger.

    ``jeditaskid, trigger, at`` [UTC], sorted by both first; a trigger that never came has no row.

    A job ends at ``modificationtime`` [UTC]; of ``tasks`` only the ids are read. With ``trigger_period_s`` the first trigger is
    looked at only every so many seconds; 0: at once.

    Source: 003, introduction; docs/rules/scouts.md 7.
    """
    rules = ScoutRules.of(rules)
    wanted = small(tasks, "tasks", {"jeditaskid": TASK_COLUMNS["jeditaskid"]})
    chunks = deal(jobs, files, datasets, {"tasks": wanted}, history=True)
    parts = chunks.map(partial(_of_chunk, rules=rules, period_s=trigger_period_s))
    return pl.concat(parts).sort("jeditaskid", "trigger")


def _of_chunk(chunk: Chunk, rules: ScoutRules, period_s: int) -> pl.DataFrame:
    """Find the triggers of a chunk of tasks."""
    known = rows(chunk).filter(pl.col("jobstatus").is_not_null())
    known = known.join(chunk["tasks"], on="jeditaskid", how="semi")
    first = first_trigger(mark_scouts(known), period_s)
    done = known.filter((pl.col("n_ok") > 0) & pl.col("is_finished"))
    done = done.select("jeditaskid", "pandaid", at="modificationtime")
    if rules.second_trigger_counts == "whole_task":
        later = [_nth(done, EARLY_FINISHED, "T2a"), _nth(done, LATE_FINISHED, "T2b")]
    else:
        after = done.join(first.select("jeditaskid", first="at"), on="jeditaskid")
        later = [_nth(after.filter(pl.col("at") > pl.col("first")), LATE_FINISHED, "T2")]
    return pl.concat([first, *later])


def mark_scouts(jobs: pl.DataFrame) -> pl.DataFrame:
    """Keep the scouts of each task: the marked jobs, or its first ten where none is marked.

    ``jobs`` has ``jeditaskid, pandaid, creationtime`` [UTC] and ``specialhandling``, or ``is_scout`` in its place.
    """
    marked = pl.col("is_scout") if "is_scout" in jobs.columns else has_scout_mark()
    ordered = jobs.sort("jeditaskid", "creationtime", "pandaid", nulls_last=True).with_columns(
        marked=marked,
        any_marked=marked.any().over("jeditaskid"),
        order=pl.int_range(pl.len()).over("jeditaskid"),
    )
    early = ~pl.col("any_marked") & (pl.col("order") < FIRST_JOBS)
    return ordered.filter(pl.col("marked") | early).drop("marked", "any_marked", "order")


def first_trigger(scouts: pl.DataFrame, period_s: int = 0) -> pl.DataFrame:
    """Find T1, or T1b where fewer than half of the scouts finished.

    ``jeditaskid, trigger, at``; tasks of which scouts still run and less than half finished have no row.
    """
    finished = pl.col("jobstatus") == "finished"
    times = pl.col("modificationtime").filter(finished).sort()
    needed = (pl.len() + 1) // 2  # the least whole number of at least half
    per_task = scouts.group_by("jeditaskid").agg(
        half=times.get(needed - 1, null_on_oob=True),
        ended=pl.col("modificationtime").max(),
        all_ended=pl.col("jobstatus").is_in(OVER).all(),
    )
    at = pl.coalesce("half", pl.when("all_ended").then("ended"))
    if period_s:
        step = period_s * 1_000_000
        at = (-(-at.cast(pl.Int64) // step) * step).cast(pl.Datetime("us"))
    return per_task.select(
        "jeditaskid",
        trigger=pl.when(pl.col("half").is_not_null()).then(pl.lit("T1")).otherwise(pl.lit("T1b")),
        at=at,
    ).drop_nulls("at")


def _nth(done: pl.DataFrame, n: int, trigger: str) -> pl.DataFrame:
    """Return the instant of the n-th finished job of each task that has as many."""
    ordered = done.sort("jeditaskid", "at", "pandaid")
    nth = ordered.group_by("jeditaskid", maintain_order=True).agg(
        pl.col("at").get(n - 1, null_on_oob=True)
    )
    return nth.drop_nulls("at").select("jeditaskid", trigger=pl.lit(trigger), at="at")
