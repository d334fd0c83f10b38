"""How long queues keep their class: shares of the instants, and changes per day."""

from __future__ import annotations

from functools import partial

import polars as pl

from brokerlab.report.replays.shares import DAY, QUEUE, shares
from brokerlab.report.site_classes.rating import CLASSES, KEYS, NONE

PARTS = (*CLASSES, NONE)


def flags(rows: pl.DataFrame) -> pl.DataFrame:
    """Mark, in every cell, its class, and whether it changed since the instant before.

    Returns:
        The cells with ``hi, mid, lo, none`` (0 or 1), ``modal`` (the class that the queue has most of the time; ties: the
        better), ``in_modal``, ``change, up, down, jump`` (between hi and lo), ``cell`` (always 1) and ``watched`` (1; 0 at
        the first instant, before which no change can be seen).
    """
    place = {"hi": 0, "mid": 1, "lo": 2}
    counts = rows.group_by("queue", "used").len("n")
    rank = pl.col("used").replace_strict(place, return_dtype=pl.Int64)
    modal = (
        counts.sort("queue", "n", rank, descending=[False, True, False])
        .group_by("queue", maintain_order=True)
        .agg(modal=pl.col("used").first())
    )
    before = rank.shift(1).over("queue", order_by="snapshot")
    step = (rank - before).fill_null(0)
    marked = rows.join(modal, on="queue", how="left").with_columns(
        *((pl.col("class_name") == name).cast(pl.Int64).alias(name) for name in PARTS),
        cell=pl.lit(1),
        step=step,
        watched=before.is_not_null().cast(pl.Int64),
        in_modal=(pl.col("used") == pl.col("modal")).cast(pl.Int64),
    )
    moves = {"change": pl.col("step") != 0, "up": pl.col("step") < 0, "down": pl.col("step") > 0}
    moves["jump"] = pl.col("step").abs() == 2
    return marked.with_columns(**{name: e.cast(pl.Int64) for name, e in moves.items()}).sort(KEYS)


def by_queue(marked: pl.DataFrame, step_days: float, *, n_boot: int, seed: int) -> pl.DataFrame:
    """Return shares of the instants per queue: each class, the modal one, and changes per day.

    Args:
        marked: From `flags`.
        step_days: Step of the instants [d].
        n_boot: Bootstrap replicates over days.
        seed: Of the bootstrap.

    Returns:
        `shares` by ``queue``; the part ``per_day`` is a number of changes, not a share.
    """
    table = marked.with_columns(days=pl.col("watched") * step_days)
    divided = partial(shares, by=["queue"], unit=DAY, n_boot=n_boot, seed=seed)
    some = divided(table, [*PARTS, "in_modal"], "cell")
    rate = divided(table, ["change"], "days")
    return pl.concat([some, rate.with_columns(part=pl.lit("per_day"))]).sort(
        "queue", maintain_order=True
    )


def overall(marked: pl.DataFrame, step_days: float, *, n_boot: int, seed: int) -> pl.DataFrame:
    """Return shares over all queues, with intervals over days and, to compare, over queues.

    Returns:
        `shares` with ``over`` (`DAY` or `QUEUE`), ``n`` (how many of them): each class, ``in_modal``, ``per_day``
        (changes per queue and day), ``up, down, jump`` (shares of the changes), and the same of slots and jobs:
        ``slots_hi``, ``jobs_none``, ...
    """
    weighed = {
        f"{what}_{name}": pl.col(what) * pl.col(name)
        for what in ("slots", "jobs")
        for name in PARTS
    }
    table = marked.with_columns(days=pl.col("watched") * step_days, **weighed)
    parts = []
    for unit in (DAY, QUEUE):
        divided = partial(shares, unit=unit, n_boot=n_boot, seed=seed)
        rows = [
            divided(table, [*PARTS, "in_modal"], "cell"),
            divided(table, ["change"], "days").with_columns(part=pl.lit("per_day")),
            divided(table, ["up", "down", "jump"], "change"),
            *(divided(table, [f"{w}_{n}" for n in PARTS], w) for w in ("slots", "jobs")),
        ]
        count = rows[0].columns[-1]
        parts.append(pl.concat(rows).rename({count: "n"}).with_columns(over=pl.lit(unit)))
    return pl.concat(parts)


def spells(rows: pl.DataFrame, queues: list[str], *, most: int) -> pl.DataFrame:
    """Return from when to when queues had which class, on a grid coarse enough for a chart.

    Args:
        rows: Rated cells.
        queues: Which, in order.
        most: Spells at most; with more the commonest class of 2, 3, 4, ... instants stands for all of them.

    Returns:
        ``queue, class_name, start, end``, sorted by the order of the queues, then by time; ``instants`` per step.
    """
    times = rows["at"].unique().sort()
    step = times[1] - times[0] if len(times) > 1 else None
    shown = rows.filter(pl.col("queue").is_in(queues))
    places = pl.DataFrame({"queue": queues}).with_row_index("row")
    for size in (1, 2, 3, 4, 6, 8, 12, 24, 48, 96, 192, len(times)):
        grouped = (
            shown.group_by("queue", (pl.col("snapshot") // size).alias("place"))
            .agg(
                pl.col("class_name").sort().mode().sort().first(),
                start=pl.col("at").min(),
                last=pl.col("at").max(),
            )
            .sort("queue", "place")
            .with_columns(run=pl.col("class_name").rle_id().over("queue"))
        )
        found = grouped.group_by("queue", "run", "class_name").agg(
            start=pl.col("start").min(), end=pl.col("last").max()
        )
        if found.height <= most:
            break
    ended = found.with_columns(end=pl.col("end") + step) if step is not None else found
    return (
        ended.join(places, on="queue")
        .sort("row", "start")
        .select("queue", "class_name", "start", "end", instants=pl.lit(size))
    )
