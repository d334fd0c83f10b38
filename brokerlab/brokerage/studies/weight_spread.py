"""What orders the queues that no check removed: the share of each factor in the spread of their weights."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import polars as pl

from brokerlab.brokerage.engine.decisions import TASK
from brokerlab.brokerage.production_jobs.ranking import Decisions
from brokerlab.brokerage.studies.removal import NO_SHARE
from brokerlab.intervals import shares, sums_of

FACTORS = ("work", "data", "network", "t1", "preference")
"""Factors of the weight of a queue (production-jobs.md 7)."""


def competing_queues(decisions: Decisions) -> pl.DataFrame:
    """Return the rows of ``decisions.weighed`` that compete by weight: not removed, or only for being beyond the best ten.

    All factors are positive; ``weight`` is their product.
    """
    competes = pl.col("check").is_null() | (pl.col("check").cast(pl.String) == "rank")
    product = pl.lit(1.0)
    for name in FACTORS:
        product = product * pl.col(name).cast(pl.Float64)
    rows = decisions.weighed.filter(competes & ~pl.col("bootstrap")).with_columns(weight=product)
    return rows.filter(pl.col("weight") > 0, pl.col("weight").is_finite())


def divide_spread(rows: pl.DataFrame, factors: Sequence[str], place: str) -> pl.DataFrame:
    """Divide the spread of the log weight within each brokerage among the factors.

    With `x` the log of a factor and `y` that of the weight, each less its mean over the brokerage's places, the
    factor's part is the sum of ``x y``; the parts add up to the sum of ``y²``, as ``y`` is the sum of the ``x``. A part
    below 0 belongs to a factor that works against the others.

    Returns:
        One row per brokerage with two or more places: ``jeditaskid, snapshot``, one column per factor, ``spread`` (their
        sum); sorted.
    """
    names = list(factors)
    table = rows.sort(*TASK, pl.col(place).cast(pl.String)).select(
        *TASK, *(pl.col(name).cast(pl.Float64).log() for name in names)
    )
    sums, starts = sums_of(table, TASK, names)
    if not table.height:
        return table.with_columns(spread=pl.lit(0.0))
    sizes = np.diff(np.append(starts, table.height))
    logs = table.select(names).to_numpy()
    x = logs - np.repeat(sums / sizes[:, None], sizes, axis=0)
    parts = np.add.reduceat(x * x.sum(axis=1, keepdims=True), starts, axis=0)
    columns = [pl.Series(name, parts[:, i]) for i, name in enumerate(names)]
    result = table.select(TASK)[starts].hstack(columns)
    return result.with_columns(spread=pl.Series(parts.sum(axis=1))).filter(pl.Series(sizes > 1))


def weight_spread(decisions: Decisions, tasks: pl.DataFrame) -> pl.DataFrame:
    """Return :func:`divide_spread` of the queues that compete by weight, with ``gshare``."""
    facts = tasks.select(*TASK, pl.col("gshare").fill_null(NO_SHARE))
    spread = divide_spread(competing_queues(decisions), FACTORS, "panda_queue")
    return spread.join(facts, on=TASK, maintain_order="left")


def factor_shares(
    spread: pl.DataFrame, factors: Sequence[str] = FACTORS, *, by: Sequence[str] = (), **dice: Any
) -> pl.DataFrame:
    """Return the share of each factor in the spread of the log weight (:func:`divide_spread`), see :func:`brokerlab.intervals.shares`.

    Parts are the factors; empty where nowhere two places compete.
    """
    return shares(spread, factors, "spread", unit=TASK[0], by=by, **dice)
