"""The weight of a queue that passed its checks (production-job-brokerage.md 6)."""

from __future__ import annotations

import polars as pl

from brokerlab.brokerage.rules import ProductionRules
from brokerlab.units import MB

MOST_WORKERS = 20
"""Batch workers that count as running jobs at most, and running jobs below which they do."""
QUEUE_OFFSET = 10


def counted(rules: ProductionRules) -> dict[str, pl.Expr]:
    """Return ``running`` (R), the number of running jobs that counts (6.2)."""
    real = pl.col("x_running")
    workers = pl.min_horizontal("s_workers", MOST_WORKERS)
    few = (real < MOST_WORKERS) & (workers > real)
    cores = pl.max_horizontal("q_corecount", 1)
    slots = pl.col("x_numslots")
    filled = (slots // cores).fill_null(0)
    if rules.running_count == "largest":
        none_set = (slots == 0).fill_null(value=False)
        return {
            "running": pl.max_horizontal(
                real,
                pl.when(few).then(workers).otherwise(0),
                filled,
                pl.when(none_set).then("x_starting").otherwise(0),
            )
        }
    low = pl.col("t_may_bootstrap")
    pilots = (pl.col("s_pilots") > 0) & ~pl.col("t_listed")
    boots = few & pilots & pl.col("q_streams") & low
    base = pl.when(boots).then(workers).otherwise(real)
    with_slots = (
        pl.when(slots == 0)
        .then(base + pl.col("x_starting"))
        .otherwise(pl.max_horizontal(filled, base))
    )
    return {"running": pl.when(low & slots.is_not_null()).then(with_slots).otherwise(base)}


def product(rules: ProductionRules) -> pl.Expr:  # noqa: ARG001 - see Recipe
    """Return the weight: the product of its factors (6.3)."""
    return (
        pl.col("work_factor")
        * pl.col("data_factor")
        * pl.col("t1_factor")
        * pl.col("network_factor")
        * pl.col("preference_factor")
    )


def factors() -> list[dict[str, pl.Expr]]:
    """Return the weight's factors in steps (6.3); needs ``running``."""
    total, avail = pl.col("t_total"), pl.col("x_avail")
    queued = pl.col("x_activated") + pl.col("x_starting") + pl.col("defined")
    many = ((pl.col("x_assigned") + 1) / (pl.col("x_activated") + 1)).clip(1, 2)
    missing = pl.col("t_nfiles") - pl.col("x_navail")
    return [
        {
            "defined": pl.col("x_defined") + pl.col("s_live"),
            "local": (total == 0) | (avail >= total),
            "many_assigned": many,
            "missing_files": missing,
            "missing_mb": ((total - avail) / MB).cast(pl.Int64),
        },
        {
            "work_factor": pl.when("local")
            .then((pl.col("running") + 1) / (queued + QUEUE_OFFSET))
            .otherwise(
                (pl.col("running") + 1)
                / (queued + pl.col("x_assigned") + QUEUE_OFFSET)
                / pl.col("many_assigned")
            ),
            "data_factor": pl.when(total > 0)
            .then((total + avail) / total / (missing / pl.col("t_percent") + 1))
            .otherwise(1.0),
            "t1_factor": pl.when("x_near").then("t_t1_factor").otherwise(1),
            "network_factor": pl.when("t_network").then("l_weight").otherwise(1.0),
            "preference_factor": pl.col("x_preference"),
        },
    ]
