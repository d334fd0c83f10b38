"""Work that a nucleus still has to do, in HS06 s (chapter section 1, ``remaining_work``)."""

from __future__ import annotations

import polars as pl

from brokerlab.brokerage.production_tasks.held import held_left
from brokerlab.brokerage.rules import ProductionRules

CPUTIME_UNKNOWN = 300  # HS06 s per event
_SUMMED = ("snapshot", "nucleus", "workqueue_name", "currentpriority_min")


def work_left(rules: ProductionRules | None = None) -> pl.Expr:
    """Return what is left of a task [HS06 s]: (nevents - neventsused) * cputime of its master input.

    Args:
        rules: Switch ``milli_units_converted`` says whether mHS06 counts as a thousandth. Null: it does, as
            in ``task_rw`` under either rule set.

    Source: production-task-brokerage.md 1 (``task_rw``, ``remaining_work``), row T18.
    """
    events = pl.col("nevents").fill_null(0) - pl.col("neventsused").fill_null(0)
    work = events * pl.col("cputime").fill_null(CPUTIME_UNKNOWN)
    if rules is not None and not rules.milli_units_converted:
        return work
    milli = pl.col("cputimeunit").str.starts_with("mHS06").fill_null(value=False)
    known = milli & pl.col("cputime").is_not_null()
    return work / pl.when(known).then(1000.0).otherwise(1.0)


def remaining_work(
    tasks: pl.DataFrame, priorities: pl.DataFrame, *, rules: ProductionRules
) -> pl.DataFrame:
    """Sum the work left at nuclei as the brokerage asks for it.

    Args:
        tasks: Tasks in ready, scouting, running or pending with files left, one row per task and instant:
            ``snapshot, nucleus, workqueue_name, currentpriority, nevents, neventsused, cputime, cputimeunit``
            of the master input.
        priorities: ``snapshot, workqueue_name, currentpriority`` of the tasks to be brokered.
        rules: Switch ``milli_units_converted``.

    Returns:
        Table ``remaining_work``: per nucleus all work (null queue and priority), and per work queue and priority
        asked for the work of that queue at that priority or above. Sorted by its key.

    Source: production-task-brokerage.md 1.
    """
    there = tasks.filter(pl.col("nucleus").is_not_null()).with_columns(rw=work_left(rules))
    everything = there.with_columns(
        workqueue_name=pl.lit(None, pl.String), currentpriority_min=pl.lit(None, pl.Int64)
    )
    asked = priorities.select(
        "snapshot", "workqueue_name", currentpriority_min="currentpriority"
    ).unique()
    of_queue = there.join(asked, on=["snapshot", "workqueue_name"]).filter(
        pl.col("currentpriority") >= pl.col("currentpriority_min")
    )
    parts = [
        part.select(*_SUMMED, pl.col("rw").cast(pl.Float64)) for part in (everything, of_queue)
    ]
    ordered = pl.concat(parts).sort(*_SUMMED, "rw")
    return ordered.group_by(_SUMMED, maintain_order=True).agg(pl.col("rw").sum())


def with_remaining_work(pairs: pl.DataFrame, work: pl.DataFrame) -> pl.DataFrame:
    """Join ``rw_all`` and ``rw_prio`` [HS06 s] to pairs of task and nucleus; missing is 0.

    Args:
        pairs: ``snapshot, nucleus, workqueue_name, currentpriority`` and more.
        work: Contract ``RemainingWork``.
    """
    summed = work.group_by(_SUMMED, maintain_order=True).agg(pl.col("rw").sum())
    every = pl.col("workqueue_name").is_null() & pl.col("currentpriority_min").is_null()
    of_all = summed.filter(every).select("snapshot", "nucleus", rw_all="rw")
    of_queue = summed.filter(~every).select(
        "snapshot",
        "nucleus",
        "workqueue_name",
        currentpriority="currentpriority_min",
        rw_prio="rw",
    )
    joined = held_left(pairs, of_all, ["nucleus"], ["snapshot"])
    joined = held_left(
        joined, of_queue, ["nucleus", "workqueue_name", "currentpriority"], ["snapshot"]
    )
    return joined.with_columns(pl.col("rw_all", "rw_prio").fill_null(0.0))
