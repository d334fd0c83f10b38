"""What orders the queues that no check removed: the share of each factor in the spread of their weights."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import polars as pl

from brokerlab.brokerage.production_jobs.decisions import Decisions
from brokerlab.brokerage.replay import Replay
from brokerlab.report.replays.removal import KEYS, NO_SHARE
from brokerlab.report.replays.shares import shares, sums_of

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


def spread_of(rows: pl.DataFrame, factors: Sequence[str], place: str) -> pl.DataFrame:
    """Divide the spread of the log weight within each brokerage among the factors.

    With `x` the log of a factor and `y` that of the weight, each less its mean over the brokerage's places, the
    factor's part is the sum of ``x y``; the parts add up to the sum of ``y²``, as ``y`` is the sum of the ``x``. A part
    below 0 belongs to a factor that works against the others.

    Args:
        rows: ``jeditaskid, snapshot``, the place, and positive factors.
        factors: Their columns.
        place: ``panda_queue`` or ``nucleus``.

    Returns:
        One row per brokerage with two or more places: ``jeditaskid, snapshot``, one column per factor, ``spread`` (their
        sum); sorted.
    """
    names = list(factors)
    table = rows.sort(*KEYS, pl.col(place).cast(pl.String)).select(
        *KEYS, *(pl.col(name).cast(pl.Float64).log() for name in names)
    )
    sums, starts = sums_of(table, KEYS, names)
    if not table.height:
        return table.with_columns(spread=pl.lit(0.0))
    sizes = np.diff(np.append(starts, table.height))
    logs = table.select(names).to_numpy()
    x = logs - np.repeat(sums / sizes[:, None], sizes, axis=0)
    parts = np.add.reduceat(x * x.sum(axis=1, keepdims=True), starts, axis=0)
    found = table.select(KEYS)[starts].hstack(
        [pl.Series(name, parts[:, i]) for i, name in enumerate(names)]
    )
    return found.with_columns(spread=pl.Series(parts.sum(axis=1))).filter(pl.Series(sizes > 1))


def spread(decisions: Decisions, replay: Replay) -> pl.DataFrame:
    """Return :func:`spread_of` the queues that compete by weight, with ``gshare``."""
    facts = replay.tasks.select(*KEYS, pl.col("gshare").fill_null(NO_SHARE))
    return spread_of(weighed(decisions), FACTORS, "panda_queue").join(
        facts, on=KEYS, maintain_order="left"
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
