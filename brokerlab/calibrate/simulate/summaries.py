"""Sum up a simulation: how long jobs waited, and how evenly users and shares were served."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import polars as pl

from brokerlab.errors import ConfigError, SchemaError, nearest
from brokerlab.numerics import FloatArray, SortedGroups

RANKS = (25.0, 50.0, 75.0, 90.0, 95.0)


def waiting_quantiles(
    attempts: pl.DataFrame,
    *,
    by: Sequence[str] = ("computingsite", "gshare"),
    ranks: Sequence[float] = RANKS,
) -> pl.DataFrame:
    """Return percentiles of the waiting time of the first attempts of every group.

    Args:
        attempts: ``Simulated.attempts``, or a table with ``attempt``, ``outcome``, ``waiting_s`` and the group columns.
        by: Columns that make the groups; null is a group of its own.
        ranks: Percentile ranks, 0 to 100.

    Returns:
        The group columns, ``n`` jobs, ``n_waiting`` of them not started (their waiting so far counts, so that a
        percentile above the started share is a lower bound), ``rank``, ``waiting_s``; sorted by group and rank.

    Raises:
        SchemaError: A column is missing.
        ConfigError: No group column, or a rank outside 0 to 100.
    """
    _check(attempts, [*by, "attempt", "outcome", "waiting_s"])
    if not by or any(not 0 <= rank <= 100 for rank in ranks):
        raise ConfigError(
            f"by is {list(by)}, ranks are {list(ranks)}: name columns and ranks 0..100"
        )
    first = attempts.filter(pl.col("attempt") == 1).sort(*by, "waiting_s")
    groups = first.group_by(by, maintain_order=True).agg(
        n=pl.len(), n_waiting=(pl.col("outcome") == "waiting").sum()
    )
    number = np.repeat(np.arange(groups.height), groups["n"].to_numpy())
    values = SortedGroups.of(number, first["waiting_s"].to_numpy(), groups.height)
    parts = [
        groups.with_columns(rank=pl.lit(float(rank)), waiting_s=values.percentile(rank))
        for rank in ranks
    ]
    empty = groups.clear().with_columns(rank=pl.lit(0.0), waiting_s=pl.lit(0.0))
    return pl.concat([empty, *parts]).sort(*by, "rank")


def jain(values: FloatArray) -> float:
    """Return Jain's index of fairness: (sum x)^2 / (n sum x^2), 1 when all are equal, 1/n when one has all.

    Args:
        values: What each user or share received, 0 or more; NaN where there are none or all are 0.

    Source: Jain, Chiu, Hawe, DEC Research Report TR-301 (1984).

    Example:
        >>> jain(np.array([1.0, 1.0, 1.0, 1.0])), jain(np.array([1.0, 0.0, 0.0, 0.0]))
        (1.0, 0.25)
    """
    square = float((values**2).sum())
    return float(values.sum()) ** 2 / (len(values) * square) if square > 0 else float("nan")


def _check(frame: pl.DataFrame, columns: Sequence[str]) -> None:
    missing = [name for name in columns if name not in frame.columns]
    if missing:
        hints = "; ".join(f"{name}: {nearest(name, frame.columns)}" for name in missing)
        raise SchemaError(f"attempts: columns are missing: {hints}")
