"""How well a weight ranks links by what they later delivered, taken apart into one value per row.

The mean of the values is the measure and their spread its standard error: each is the measure plus its derivative by the
weight of the row (the infinitesimal jackknife). So the one judge of settings, which knows means over units, judges rankings.

Source: Efron, The Jackknife, the Bootstrap and Other Resampling Plans (1982), chapter 6,
doi:10.1137/1.9781611970319; DeLong et al., Biometrics 44 (1988) 837, doi:10.2307/2531595, for `top_values`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import polars as pl

from brokerlab.calibrate.judge import MIN_UNITS, Question, cap_weights
from brokerlab.numerics import FloatArray

COVERAGE = {50: 0.958, 200: 0.945, 800: 0.942}
"""Links to the share of nominal 95 % intervals of a difference in rank correlation that held the truth ..."""
COVERAGE_SOURCE = (
    "400 draws of 50, 200 and 800 links from 6,621 real ones (ATLAS transfers, February 2019), logarithm of throughput "
    "against the document's curve"
)
"""... and how that was measured."""
ENDS = ("", "_lo", "_hi")
TOP_SHARE = 0.1
"""The links that deliver most, whose places are looked at by themselves [1]."""


@dataclass(frozen=True)
class Ranked:
    """Links as weights rank them, each span by itself.

    Attributes:
        rows: ``unit, span, query, src, dst, outcome``, none of them null.
        predicted: (n_rows, n_weights).
        share: (n_rows,) weight of each row: links have as many rows as they have, at most the median count.
        ranks: (n_rows, n_weights) of :func:`rank_values`.
    """

    rows: pl.DataFrame
    predicted: FloatArray
    share: FloatArray
    ranks: FloatArray

    @classmethod
    def of(cls, rows: pl.DataFrame, predicted: FloatArray) -> Ranked:
        """Rank the links of each span."""
        if rows.is_empty():
            return cls(rows, predicted, np.ones(0), predicted)
        _, code, sizes = np.unique(rows["unit"], return_inverse=True, return_counts=True)
        share = (cap_weights(sizes.astype(np.float64)) / sizes)[code]
        ranked = cls(rows, predicted, share, predicted)
        return replace(ranked, ranks=ranked.each(rank_values, ["span"]))

    def each(
        self, measure: Callable[..., FloatArray], by: Sequence[str], fewest: int = 1
    ) -> FloatArray:
        """Return the values of a measure inside groups, NaN in groups of fewer links."""
        outcome = self.rows["outcome"].cast(pl.Float64).to_numpy()
        values = np.full(self.predicted.shape, np.nan)
        places = self.rows.with_row_index("place").group_by(by, maintain_order=True).agg("place")
        for group in places["place"]:
            here = group.to_numpy()
            for i in range(self.predicted.shape[1] if len(here) >= fewest else 0):
                values[here, i] = measure(outcome[here], self.predicted[here, i], self.share[here])
        return values

    def by(self, unit: str, values: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return weight and mean of each unit, in the order in which units stand; rows without values are left out."""
        kept = np.isfinite(values).all(axis=1)
        names = self.rows[unit].filter(pl.Series(kept))
        code = names.rle_id() if unit == "unit" else names.rank("dense") - 1
        index, share = code.cast(pl.Int64).to_numpy(), self.share[kept]
        weight = np.zeros(int(index.max()) + 1 if index.size else 0)
        sums = np.zeros((weight.size, values.shape[1]))
        np.add.at(weight, index, share)
        np.add.at(sums, index, share[:, None] * values[kept])
        return weight, sums / weight[:, None]

    def take(self, kept: FloatArray) -> Ranked:
        """Keep some rows, as they were ranked among all."""
        return Ranked(
            self.rows.filter(kept), self.predicted[kept], self.share[kept], self.ranks[kept]
        )

    def contrast(
        self, unit: str, values: FloatArray, question: Question, *, fewest: int = MIN_UNITS
    ) -> dict[str, Any]:
        """Compare both columns of values: ``before, after, diff`` with their ends; null without any."""
        weight, means = self.by(unit, values)
        if not weight.size:
            return dict.fromkeys(f"{k}{end}" for k in ("before", "after", "diff") for end in ENDS)
        return question.paired(means[:, 0], means[:, 1], weight, enough=weight.size >= fewest)


def rank_values(outcome: FloatArray, weight: FloatArray, rows: FloatArray) -> FloatArray:
    """Return values, one per row, whose mean weighted by ``rows`` is Spearman's rank correlation; equals share their mean rank.

    They are 0 everywhere where all outcomes or all weights are equal: they rank nothing.

    Example:
        >>> float(rank_values(np.arange(4.0), np.array([1.0, 1, 2, 3]), np.ones(4)).mean().round(4))
        0.9487
    """
    if np.ptp(outcome) == 0 or np.ptp(weight) == 0:
        return np.zeros(len(outcome))
    n = rows.sum()
    a, b = (n - _from_above(values, rows) for values in (outcome, weight))  # ranks
    a, b = a - rows @ a / n, b - rows @ b / n
    squares = float(rows @ a**2), float(rows @ b**2)
    scale = np.sqrt(squares[0] * squares[1])
    rho = float(rows @ (a * b)) / scale
    # one more row adds its own product, and raises the ranks of all that lie above it
    product = a * b + _from_above(outcome, rows * b) + _from_above(weight, rows * a)
    of_a = a**2 + 2 * _from_above(outcome, rows * a)
    of_b = b**2 + 2 * _from_above(weight, rows * b)
    spread = (of_a / squares[0] + of_b / squares[1]) / 2
    return np.asarray(rho + n * (product / scale - rho * spread))


def top_values(outcome: FloatArray, weight: FloatArray, rows: FloatArray) -> FloatArray:
    """Return values, one per row, whose mean says how often a link of the top tenth by outcome is ranked above another.

    Their mean, weighted by ``rows``, is the area under the ROC curve: 1 where all of them are ranked first, 0.5 by chance; equal
    weights count half. Where all outcomes are equal, 0.5 everywhere.

    Example:
        >>> float(top_values(np.arange(20.0), -np.arange(20.0), np.ones(20)).mean())
        0.0
    """
    above = _from_above(outcome, rows) - _level(outcome, rows) / 2  # what delivers more
    top = above < TOP_SHARE * rows.sum()
    n, n_top = rows.sum(), rows @ top
    if n_top == n:
        return np.full(len(outcome), 0.5)
    placed = np.where(
        top,
        1 - _from_above(weight, rows * ~top) / (n - n_top),
        _from_above(weight, rows * top) / n_top,
    )
    area = float(rows @ (placed * top)) / n_top
    return np.asarray(area + (placed - area) * np.where(top, n / n_top, n / (n - n_top)))


def _from_above(values: FloatArray, amounts: FloatArray) -> FloatArray:
    """Sum for each row the amounts of rows with a larger value, and half of those with the same."""
    _, level = np.unique(values, return_inverse=True)
    sums = np.bincount(level, amounts)
    return np.asarray((sums.sum() - np.cumsum(sums) + sums / 2)[level])


def _level(values: FloatArray, amounts: FloatArray) -> FloatArray:
    _, level = np.unique(values, return_inverse=True)
    return np.asarray(np.bincount(level, amounts)[level])
