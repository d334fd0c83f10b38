"""The weight of links without throughput: the closeness line against what close links deliver."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import polars as pl

from brokerlab.brokerage.curves import ThroughputCurve
from brokerlab.brokerage.network_weight import MAX_CLOSENESS, UNKNOWN_CLOSENESS
from brokerlab.calibrate.network_curve.scores import Scores, compare
from brokerlab.errors import InsufficientDataError
from brokerlab.intervals import CONFIDENCE, bootstrap_weights, percentile_interval
from brokerlab.numerics import FloatArray

BLOCKED = -1
FEWEST_GROUPS = 40
FEWEST_LEVELS = 2
WEIGHT_DECIMALS = 2


@dataclass(frozen=True)
class FallbackFit:
    """What links of each closeness deliver, in the unit of the throughput weight.

    Attributes:
        table: One row per closeness, null = missing: ``closeness``, ``line`` (weight of the document),
            ``weight, weight_lo, weight_hi`` (fitted), ``n_links``, ``q50`` of the later throughput [MB/s],
            ``share_known``: share of all links of that closeness that have a throughput [1].
        weights: Closeness -> weight, with null for a missing one.
    """

    table: pl.DataFrame
    weights: Mapping[float | None, float]

    def by_setting(self, fitted: str) -> pl.DataFrame:
        """Return the document's line and the fitted weights one below the other, for drawing.

        Args:
            fitted: What the fitted ones are called: proposed only where they are.

        Returns:
            ``level`` (closeness in words), ``setting`` (current, `fitted`), ``weight, weight_lo, weight_hi`` (ends of the
            fitted one).
        """
        level = pl.col("closeness").cast(pl.String).str.strip_suffix(".0").fill_null("missing")
        now = self.table.select(level=level, setting=pl.lit("current"), weight="line")
        ends = ("weight", "weight_lo", "weight_hi")
        learnt = self.table.select(level.alias("level"), pl.lit(fitted).alias("setting"), *ends)
        return pl.concat([now, learnt], how="diagonal")

    def at(self, closeness: pl.Series) -> FloatArray:
        """Return the fitted weight at each closeness; one between or beyond the levels seen is interpolated."""
        known = sorted((c, w) for c, w in self.weights.items() if c is not None)
        at = np.interp(closeness.fill_null(UNKNOWN_CLOSENESS).to_numpy(), *np.array(known).T)
        missing = self.weights.get(None)
        return at if missing is None else np.where(closeness.is_null().to_numpy(), missing, at)


def line(closeness: pl.Series) -> FloatArray:
    """Return the closeness weight of the document.

    Source: network-weight.md 2.4.

    Example:
        >>> line(pl.Series([0, 11, None], dtype=pl.Float64)).tolist()
        [2.0, 1.0, 1.3]
    """
    distance = closeness.fill_null(UNKNOWN_CLOSENESS).to_numpy()
    return np.asarray(1 + (MAX_CLOSENESS - distance) / MAX_CLOSENESS)


def fit_fallback(
    rows: pl.DataFrame, curve: ThroughputCurve, *, n_boot: int = 500, seed: int = 1
) -> FallbackFit:
    """Fit the weight of a closeness: the mean weight that the later throughput of such links would earn.

    Falling with closeness (isotonic regression); links of unknown closeness have a mean of their own.
    Blocked links (-1) are left out.

    Args:
        rows: ``closeness, outcome`` [MB/s], ``group``; rows without outcome only count for ``share_known``.
        curve: Turns throughput into weight.
        n_boot: Bootstrap replicates over groups of mirrored links.
        seed: Of the bootstrap.

    Raises:
        InsufficientDataError: Too few links with closeness and a later throughput, or one closeness only.

    Source: network-weight.md 2.4.
    """
    open_links = rows.filter(pl.col("closeness").fill_null(0) != BLOCKED)
    kept = open_links.filter(pl.col("outcome") > 0).sort("group", "closeness", "outcome")
    levels = kept["closeness"].drop_nulls().unique().sort().to_list()
    n = kept["group"].n_unique()
    if n < FEWEST_GROUPS or len(levels) < FEWEST_LEVELS:
        raise InsufficientDataError(
            f"{n} links with a later throughput have {len(levels)} values of closeness; "
            f"{FEWEST_GROUPS} links and {FEWEST_LEVELS} values are needed"
        )
    earned = curve.weights(kept["outcome"].to_numpy())
    index = kept["closeness"].replace_strict(levels, range(len(levels)), default=len(levels), return_dtype=pl.Int64).to_numpy()  # fmt: skip
    codes = (kept["group"].rank("dense") - 1).cast(pl.Int64).to_numpy()
    fitted = _means(earned, index, np.ones(len(earned)), len(levels))
    replicates = [
        _means(earned, index, counts[codes], len(levels))
        for block in bootstrap_weights(int(codes[-1]) + 1, n_boot=n_boot, seed=seed)
        for counts in block
    ]
    low, high = percentile_interval(np.array(replicates), CONFIDENCE, n_tasks=n)
    named = pl.Series([*levels, None], dtype=pl.Float64)
    table = pl.DataFrame(
        {"closeness": named, "line": line(named), "weight": fitted, "weight_lo": low, "weight_hi": high}
    ).with_columns(pl.col("weight").round(WEIGHT_DECIMALS))  # fmt: skip
    counted = kept.group_by("closeness").agg(
        n_links=pl.col("group").n_unique(), q50=pl.col("outcome").median()
    )
    known = open_links.group_by("closeness").agg(share_known=pl.col("mbps").is_not_null().mean())
    for facts in (counted, known):
        table = table.join(facts, on="closeness", how="left", nulls_equal=True, maintain_order="left")  # fmt: skip
    table = table.filter(pl.col("n_links").is_not_null())
    return FallbackFit(table, dict(table.select("closeness", "weight").iter_rows()))


def _means(earned: FloatArray, index: np.ndarray, counts: FloatArray, n: int) -> FloatArray:
    """Return the falling mean weight per level, and that of unknown closeness; NaN where none was drawn."""
    from sklearn.isotonic import IsotonicRegression

    size = np.bincount(index, weights=counts, minlength=n + 1)
    with np.errstate(all="ignore"):
        mean = np.bincount(index, weights=counts * earned, minlength=n + 1) / size
    drawn = size[:n] > 0
    levels = np.arange(n)
    fit = IsotonicRegression(increasing=False)
    fit.fit(levels[drawn], mean[:n][drawn], sample_weight=size[:n][drawn])
    falling = np.interp(levels, levels[drawn], fit.predict(levels[drawn]))
    return np.append(falling, mean[n])


def prove_fallback(
    rows: pl.DataFrame,
    curve: ThroughputCurve,
    fit: FallbackFit,
    *,
    hidden_share: float = 0.5,
    n_boot: int = 500,
    seed: int = 1,
) -> Scores:
    """Score the fallback on links whose throughput is hidden, ranked among those whose is not.

    Links that have no throughput deliver nothing that could be compared; so a part of those that do is
    treated as if it had none.

    Args:
        rows: ``mbps, outcome, closeness, group, query, dst`` of links with throughput, closeness not -1.
        curve: Weight of the others.
        fit: The fitted fallback.
        hidden_share: Share of the links whose throughput is hidden [1].
        n_boot: Bootstrap replicates.
        seed: Of the draw and of the bootstrap.
    """
    kept = rows.filter(
        pl.col("closeness").fill_null(0) != BLOCKED, pl.col("mbps").is_not_null(), pl.col("outcome") > 0
    )  # fmt: skip
    hidden = np.random.default_rng(seed).random(kept.height) < hidden_share
    shown = curve.weights(kept["mbps"].to_numpy())
    weights = {
        "line": np.where(hidden, line(kept["closeness"]), shown),
        "fitted": np.where(hidden, fit.at(kept["closeness"]), shown),
        "lowest": np.where(hidden, curve.lowest, shown),
        "nothing_hidden": shown,
    }
    return compare(kept, weights, reference="line", n_boot=n_boot, seed=seed)
