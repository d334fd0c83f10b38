"""What orders the queues that no check removed: the share of each factor in the spread of their weights."""

from __future__ import annotations

import polars as pl

from brokerlab.brokerage.production_jobs.decisions import Decisions
from brokerlab.brokerage.replay import Replay
from brokerlab.report.brokerage_replay.removal import KEYS, NO_SHARE
from brokerlab.report.brokerage_replay.shares import shares

FACTORS = ("work", "data", "network", "t1", "preference")
"""Factors of the weight of a queue (production-job-brokerage.md 6.3)."""


def weighed(decisions: Decisions) -> pl.DataFrame:
    """Return the pairs that compete by weight: not removed, or only for being beyond the best ten.

    Returns:
        Rows of ``decisions.weighed`` with positive factors only; ``weight`` is the product of the factors.
    """
    competes = pl.col("check").is_null() | (pl.col("check").cast(pl.String) == "rank")
    product = pl.lit(1.0)
    for name in FACTORS:
        product = product * pl.col(name).cast(pl.Float64)
    rows = decisions.weighed.filter(competes & ~pl.col("bootstrap")).with_columns(weight=product)
    return rows.filter(pl.col("weight") > 0, pl.col("weight").is_finite())


def spread(decisions: Decisions, replay: Replay) -> pl.DataFrame:
    """Divide the spread of the log weight within each brokerage among the factors.

    With `x` the log of a factor and `y` that of the weight, each less its mean over the brokerage's queues, the
    factor's part is the sum of ``x y``; the parts add up to the sum of ``y²`` exactly, as ``y`` is the sum of the ``x``.
    A part below 0 belongs to a factor that works against the others.

    Returns:
        One row per brokerage with two or more competing queues: ``jeditaskid, snapshot, gshare``, one column per
        factor, ``spread`` (their sum) and ``n_queues``.
    """
    rows = weighed(decisions)
    logs = [pl.col(name).cast(pl.Float64).log().alias(name) for name in FACTORS]
    table = rows.select(*KEYS, *logs, y=pl.col("weight").log())
    mean = table.with_columns(
        (pl.col(name) - pl.col(name).mean().over(KEYS)).alias(name) for name in (*FACTORS, "y")
    )
    parts = mean.group_by(KEYS).agg(
        *((pl.col(name) * pl.col("y")).sum().alias(name) for name in FACTORS), n_queues=pl.len()
    )
    facts = replay.tasks.select(*KEYS, pl.col("gshare").fill_null(NO_SHARE))
    total = pl.sum_horizontal(FACTORS)
    return (
        parts.filter(pl.col("n_queues") > 1)
        .with_columns(spread=total)
        .join(facts, on=KEYS)
        .sort(KEYS)
    )


def composition(
    decisions: Decisions, replay: Replay, *, by: list[str], n_boot: int, seed: int
) -> pl.DataFrame:
    """Return the share of each factor in the spread of the log weight.

    Args:
        decisions: Of the job brokerage.
        replay: What it saw.
        by: ``gshare``, or nothing.
        n_boot: Bootstrap replicates.
        seed: Of the bootstrap.

    Returns:
        `shares` with ``part`` the factor; empty where nowhere two queues compete.
    """
    table = spread(decisions, replay)
    return shares(table, FACTORS, "spread", by=by, n_boot=n_boot, seed=seed)
