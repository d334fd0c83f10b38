"""Links that repeat the numbers of another one: sites that share a storage."""

from __future__ import annotations

import numpy as np
import polars as pl

from brokerlab.numerics import IntArray


def mirror_groups(values: pl.DataFrame) -> pl.Series:
    """Number links so that those with the same values share a number.

    Metrics are attached to storages: sites with a common storage show the same values. Such links are one
    observation, not several. A link without any value is a group of its own.

    Args:
        values: One row per link, its numbers; null = none.

    Returns:
        i64, one number per row, from 0.

    Example:
        >>> a, b, c, d = mirror_groups(pl.DataFrame({"x": [1.0, 1.0, None, None], "y": [2.0, 2.0, None, None]}))
        >>> a == b, len({a, c, d})
        (True, 3)
    """
    names = values.columns
    silent = pl.all_horizontal(pl.col(names).is_null())
    own = pl.when(silent).then(pl.int_range(pl.len()))
    keyed = values.with_columns(_own=own)
    return keyed.select(
        (pl.struct(*names, "_own").rank("dense") - 1).cast(pl.Int64).alias("group")
    ).to_series()


def unseen(groups: IntArray, *, share: float, seed: int) -> np.ndarray:
    """Choose groups that a choice never sees; a mirrored link is never on both sides.

    Args:
        groups: Number of each row's group.
        share: Share of the groups that stay unseen [1].
        seed: Of the draw.

    Returns:
        Whether each row's group is unseen.
    """
    distinct = np.unique(groups)
    hidden = np.random.default_rng(seed).permutation(distinct)[: round(share * len(distinct))]
    return np.isin(groups, hidden)
