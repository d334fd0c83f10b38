"""Work that a nucleus still has to do, in HS06 s (production-tasks.md 1)."""

from __future__ import annotations

import polars as pl

from brokerlab.brokerage.inputs.valid import first_valid_for, valid_for
from brokerlab.brokerage.rules import ProductionRules

CPUTIME_UNKNOWN = 300  # HS06 s per event
_KEY = ("snapshot", "nucleus", "workqueue_name", "currentpriority_min")


def work_left(rules: ProductionRules | None = None) -> pl.Expr:
    """Return what is left of a task [HS06 s]: (nevents - neventsused) * cputime of its master input (production-tasks.md 1, T18).

    mHS06 count as a thousandth, as in ``task_rw`` under either rule set, unless the switch ``milli_units_converted`` is off.
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
    """Sum the work left at nuclei as the brokerage asks for it: table ``remaining_work``, sorted by its key.

    ``tasks``: those in ready, scouting, running or pending with files left, one row per task and instant, with their master
    input; ``priorities`` those of the tasks to be brokered. Per nucleus there is all work (null queue and priority), and per
    work queue and priority asked for the work of that queue at that priority or above.
    """
    there = tasks.filter(pl.col("nucleus").is_not_null()).with_columns(rw=work_left(rules))
    everything = there.with_columns(
        workqueue_name=pl.lit(None, pl.String), currentpriority_min=pl.lit(None, pl.Int64)
    )
    asked = priorities.select(
        "snapshot", "workqueue_name", currentpriority_min=pl.col("currentpriority").cast(pl.Int64)
    ).unique()
    of_queue = there.join(asked, on=["snapshot", "workqueue_name"]).filter(
        pl.col("currentpriority") >= pl.col("currentpriority_min")
    )
    parts = [part.select(*_KEY, pl.col("rw").cast(pl.Float64)) for part in (everything, of_queue)]
    ordered = pl.concat(parts).sort(*_KEY, "rw")
    return ordered.group_by(_KEY, maintain_order=True).agg(pl.col("rw").sum())


def with_all_work(nuclei: pl.DataFrame, work: pl.DataFrame) -> pl.DataFrame:
    """Join ``rw_all``, all work left [HS06 s], to nuclei at instants; missing is 0."""
    summed, every = _summed(work)
    of_all = summed.filter(every).select("snapshot", "nucleus", rw_all="rw")
    joined = first_valid_for(nuclei, of_all, ["nucleus"], ["snapshot"])
    return joined.with_columns(pl.col("rw_all").fill_null(0.0))


def work_of_queues(asked: pl.DataFrame, work: pl.DataFrame) -> pl.DataFrame:
    """Return ``rw_prio``, the work left of a work queue at a priority and above [HS06 s], at each nucleus that has some.

    ``t_work, nucleus, rw_prio``.
    """
    summed, every = _summed(work)
    of_queue = summed.filter(~every).rename({"currentpriority_min": "currentpriority"})
    rows = valid_for(asked, of_queue, ["workqueue_name", "currentpriority"], ["snapshot"])
    rows = rows.unique(["t_work", "nucleus"], keep="first", maintain_order=True)
    return rows.select("t_work", "nucleus", rw_prio="rw")


def _summed(work: pl.DataFrame) -> tuple[pl.DataFrame, pl.Expr]:
    """Return the work of each key, and which rows are about all of it."""
    summed = work.group_by(_KEY, maintain_order=True).agg(pl.col("rw").sum())
    return summed, pl.col("workqueue_name").is_null() & pl.col("currentpriority_min").is_null()
