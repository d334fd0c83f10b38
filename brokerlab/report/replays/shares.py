"""Shares with intervals over tasks, users, days or queues: what is of one such unit rises and falls together."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import polars as pl

from brokerlab.intervals import bootstrap_totals, percentile_interval
from brokerlab.numerics import FloatArray, IntArray

CONFIDENCE = 0.95
"""Of every interval of the report."""
N_BOOT = 1000
"""Bootstrap replicates."""
TASK, USER, DAY, QUEUE = "jeditaskid", "user", "day", "queue"
"""Units of chance."""
COUNTS = {TASK: "n_tasks", USER: "n_users", DAY: "n_days", QUEUE: "n_queues"}
"""How many units there are is told in this column."""


def shares(
    frame: pl.DataFrame,
    parts: Sequence[str],
    whole: str,
    *,
    by: Sequence[str] = (),
    unit: str = TASK,
    n_boot: int = N_BOOT,
    seed: int = 1,
) -> pl.DataFrame:
    """Divide sums by a sum, with bootstrap intervals over tasks, or other units of chance.

    Args:
        frame: The column of `unit`, those of `by`, and numbers `parts` and `whole`; several rows per unit add up.
        parts: Columns of numerators.
        whole: Column of the denominator.
        by: Groups; none: one.
        unit: Unit of chance, one of `COUNTS`.
        n_boot: Replicates.
        seed: Same seed, same replicates.

    Returns:
        One row per group and part, sorted by group, parts in the given order: the columns of `by`, ``part``,
        ``total`` and ``whole`` (sums), ``share, lo, hi`` (null bounds with fewer than two units; null share where
        the denominator is 0), ``n_tasks`` (other units: see `COUNTS`).

    Example:
        >>> jobs = pl.DataFrame({"jeditaskid": [1, 2, 2], "good": [1, 0, 2], "all": [2, 1, 3]})
        >>> shares(jobs, ["good"], "all", n_boot=50).select("part", "share", "n_tasks").rows()
        [('good', 0.5, 2)]
    """
    per_task = summed(frame, [*by, unit], [*parts, whole])
    rows: list[dict[str, object]] = []
    for key, group in _groups(per_task, by):
        ordered = group.sort(unit)
        totals = ordered.select(*parts, whole).to_numpy().astype(np.float64)
        lows, highs = _bounds(totals, n_boot=n_boot, seed=seed)
        sums = totals.sum(axis=0)
        for place, part in enumerate(parts):
            known = sums[-1] > 0
            rows.append(
                dict(zip(by, key, strict=True))
                | {
                    "part": part,
                    "total": sums[place],
                    "whole": sums[-1],
                    "share": sums[place] / sums[-1] if known else None,
                    "lo": lows[place] if known and lows is not None else None,
                    "hi": highs[place] if known and highs is not None else None,
                    COUNTS[unit]: len(ordered),
                }
            )
    numbers = dict.fromkeys(("total", "whole", "share", "lo", "hi"), pl.Float64)
    schema = {name: frame.schema[name] for name in by}
    return pl.DataFrame(
        rows, schema=schema | {"part": pl.String} | numbers | {COUNTS[unit]: pl.Int64}
    )


def as_before(frame: pl.DataFrame) -> pl.DataFrame:
    """Return shares of :func:`brokerlab.intervals.shares` over tasks with the columns of `shares`."""
    names = {"share_lo": "lo", "share_hi": "hi", "n_units": COUNTS[TASK]}
    return frame.rename(names).drop("resampled")


def summed(frame: pl.DataFrame, keys: Sequence[str], columns: Sequence[str]) -> pl.DataFrame:
    """Sum columns by group, bit for bit the same in any order of the rows.

    Args:
        frame: Keys and numbers.
        keys: Columns that name the groups.
        columns: Columns to sum.

    Returns:
        One row per group, sorted: keys and sums (Float64).
    """
    names = list(dict.fromkeys(columns))
    rows = frame.select(*keys, pl.col(names).cast(pl.Float64)).sort(*keys, *names)
    sums, starts = sums_of(rows, keys, names)
    found = rows.select(keys)[starts] if rows.height else rows.select(keys)
    return found.hstack([pl.Series(name, sums[:, i]) for i, name in enumerate(names)])


def sums_of(
    rows: pl.DataFrame, keys: Sequence[str], columns: Sequence[str]
) -> tuple[FloatArray, IntArray]:
    """Sum columns of rows that are sorted by their keys, one after the other.

    Returns:
        (n_groups, n_columns) sums, and the first row of each group.
    """
    numbers = rows.select(columns).to_numpy().astype(np.float64).reshape(rows.height, len(columns))
    if not rows.height:
        return numbers, np.empty(0, dtype=np.int64)
    number = rows.select(pl.struct(keys).rle_id()).to_series().to_numpy()
    starts = np.flatnonzero(np.diff(number, prepend=-1)).astype(np.int64)
    return np.add.reduceat(numbers, starts, axis=0), starts


def _groups(
    per_task: pl.DataFrame, by: Sequence[str]
) -> list[tuple[tuple[object, ...], pl.DataFrame]]:
    """Return the groups in order; one group where none is asked for."""
    if not by:
        return [((), per_task)] if per_task.height else []
    found = per_task.partition_by(*by, as_dict=True, include_key=True)
    return sorted(found.items(), key=lambda item: tuple(str(part) for part in item[0]))


def _bounds(
    totals: FloatArray, *, n_boot: int, seed: int
) -> tuple[FloatArray | None, FloatArray | None]:
    """Return the ends of the intervals of every part."""
    if len(totals) < 2:
        return None, None
    drawn = bootstrap_totals(totals, n_boot=n_boot, seed=seed)
    with np.errstate(invalid="ignore", divide="ignore"):
        ratios = np.where(drawn[:, -1:] > 0, drawn[:, :-1] / drawn[:, -1:], np.nan)
    return percentile_interval(ratios, CONFIDENCE, n_tasks=len(totals))
