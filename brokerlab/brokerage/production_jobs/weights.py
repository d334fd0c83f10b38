"""The weight of a queue that passed its checks (production-jobs.md 7)."""

from __future__ import annotations

import polars as pl

from brokerlab.brokerage.rules import ProductionRules
from brokerlab.units import MB

MOST_WORKERS = 20
"""Batch workers that count as running jobs at most, and running jobs below which they do."""
QUEUE_OFFSET = 10


def counted(rules: ProductionRules) -> dict[str, pl.Expr]:
    """Return ``running`` (R), the number of running jobs that counts.

    Source: 002, ATLAS Production Job Brokerage: "The brokerage uses the largest one as the number of running jobs among the
        following numbers".
    """
    real = pl.col("x_running")
    workers = pl.min_horizontal("s_workers", MOST_WORKERS)
    few = (real < MOST_WORKERS) & (workers > real)
    slots = pl.col("x_numslots")
    filled = slots // pl.max_horizontal("q_corecount", 1) if rules.slots_per_core else slots
    filled = filled.fill_null(0)
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


def product(rules: ProductionRules) -> pl.Expr:  # noqa: ARG001 - see Brokerage.own_weight
    """Return the weight: the product of its factors; those of the code alone are 1 under ``document``.

    Source: 002, ATLAS Production Job Brokerage: "weight = weight × networkWeight".
    """
    return (
        pl.col("work_factor")
        * pl.col("data_factor")
        * pl.col("t1_factor")
        * pl.col("network_factor")
        * pl.col("preference_factor")
    )


def many_assigned(rules: ProductionRules) -> pl.Expr:
    """Return how much jobs that wait for their input weigh against those that have it, 1 to 2 (switch ``many_assigned_plus_one``).

    Without the switch 0 activated jobs make 2, or 1 if none is assigned either.

    Source: 002, ATLAS Production Job Brokerage: "manyAssigned = max(1, min(2, assigned / activated))".
    """
    assigned, activated = pl.col("x_assigned"), pl.col("x_activated")
    if rules.many_assigned_plus_one:
        return ((assigned + 1) / (activated + 1)).clip(1, 2)
    no_job = pl.when(assigned > 0).then(2.0).otherwise(1.0)
    return pl.when(activated > 0).then((assigned / activated).clip(1, 2)).otherwise(no_job)


def factors(rules: ProductionRules) -> list[dict[str, pl.Expr]]:
    """Return the weight's factors in steps; needs ``running``.

    Source: 002, ATLAS Production Job Brokerage: "weight = (running + 1) / ((activated + assigned + starting + defined + 10) ×
        manyAssigned)" and "weight = weight × (availableSize + totalSize) / (totalSize × (numMissingFiles / 100 + 1))".
    """
    total, avail = pl.col("t_total"), pl.col("x_avail")
    queued = pl.col("x_activated") + pl.col("x_starting") + pl.col("defined")
    missing = pl.col("t_nfiles") - pl.col("x_navail")
    nearness, preference = pl.lit(1), pl.lit(1.0)
    if rules.nucleus_preferred:
        nearness = pl.when("x_near").then("t_t1_factor").otherwise(1)
    if rules.hardware_preferred:
        preference = pl.col("x_preference")
    return [
        {
            "defined": pl.col("x_defined") + pl.col("s_live"),
            "local": (total == 0) | (avail >= total),
            "many_assigned": many_assigned(rules),
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
            "t1_factor": nearness,
            "network_factor": pl.when("t_network").then("l_weight").otherwise(1.0),
            "preference_factor": preference,
        },
    ]
