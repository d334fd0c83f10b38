"""Curves of throughput: the fitted step curve, what its steps tell apart, the logarithm in steps, curves for drawing.

The fitted curve is a monotone tree with few leaves: scikit-learn's regression tree finds the edges (``max_leaf_nodes``) and keeps
the heights ascending (``monotonic_cst``); how many steps there are is chosen by the error on links that a fit has not seen.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import polars as pl

from brokerlab.brokerage.network_weight import ThroughputCurve, throughput_curve
from brokerlab.brokerage.rules import ProductionRules
from brokerlab.errors import ConfigError, DataError, InsufficientDataError
from brokerlab.intervals import CONFIDENCE, bootstrap_weights, percentile_interval
from brokerlab.numerics import FloatArray, IntArray
from brokerlab.rulesets import RuleSetName

MOST_STEPS = 8
"""Edges of the document's curve; a fitted one has no more."""
LEAST = 0.005
"""Below the smallest throughput that the metrics can show [MB/s]; stands for 0 in a logarithm."""
FOLDS = 5
FEWEST_GROUPS = 40
"""Links that are not mirrors of each other, below which no curve is fitted."""
FEWEST_IN_STEP = 10
SMALLEST_STEP = 0.02
"""Share of the rows that a step holds at least [1]; a step of a handful of links would be their chance."""


@dataclass(frozen=True)
class StepFit:
    """A fitted step curve and how sure it is.

    Attributes:
        curve: Edges with two digits, weights with two decimals.
        by_size: One row per number of steps tried, 0 = no curve: ``n_steps``, ``error`` (mean squared error
            of ln(MB/s) on unseen links), ``above_best, above_best_se`` (error less the least one), ``chosen``.
        band: ``mbps``, ``weight, weight_lo, weight_hi`` on a grid.
        n_links: Links, mirrored ones counted once.
        useful: Whether the curve predicts unseen links better than no curve, beyond one standard error.
    """

    curve: ThroughputCurve
    by_size: pl.DataFrame
    band: pl.DataFrame
    n_links: int
    useful: bool


@dataclass(frozen=True)
class _Tree:
    """Edges [ln MB/s] and heights [ln MB/s], ascending."""

    edges: FloatArray
    heights: FloatArray

    def at(self, x: FloatArray) -> FloatArray:
        return self.heights[np.searchsorted(self.edges, x, side="left")]

    def weights(self, x: FloatArray) -> FloatArray:
        """Return the heights, moved to 1 for the lowest and 2 for the highest, as in the document."""
        span = float(self.heights[-1] - self.heights[0]) or np.inf
        return np.asarray(1 + (self.at(x) - self.heights[0]) / span)

    def curve(self) -> ThroughputCurve:
        """Return the curve with rounded edges and weights."""
        if not len(self.edges):
            raise InsufficientDataError(
                "no edge splits the links into two steps that are large enough"
            )
        weights = np.round(self.weights(np.append(self.edges, self.edges[-1] + 1)), 2).tolist()
        edges = [float(f"{edge:.2g}") for edge in np.exp(self.edges)]
        if len(set(edges)) < len(
            edges
        ):  # so near each other that two digits do not tell them apart
            edges = [float(f"{edge:.6g}") for edge in np.exp(self.edges)]
        return ThroughputCurve(tuple(edges), tuple(weights[1:]), weights[0])


def logged(mbps: FloatArray) -> FloatArray:
    """Return ln(MB/s); 0 counts as half of the smallest value that the metrics can show."""
    return np.asarray(np.log(np.maximum(mbps, LEAST)))


FINITE = pl.all_horizontal(pl.col("mbps", "outcome").is_finite())
"""Links of which a curve can be made: of a throughput and an outcome that are known."""


def usable(rows: pl.DataFrame) -> pl.DataFrame:
    """Keep links with a throughput that later delivered something; refuse too few, and those that nothing tells apart."""
    kept = rows.filter(FINITE, pl.col("outcome") > 0)
    n = kept["group"].n_unique()
    if n < FEWEST_GROUPS:
        raise InsufficientDataError(
            f"{n} links have a throughput and delivered something later, {FEWEST_GROUPS} are needed; "
            "mirrored links count once"
        )
    for name, what in (("mbps", "throughput"), ("outcome", "later throughput")):
        if kept[name].n_unique() == 1:
            raise InsufficientDataError(
                f"every link has the same {what}, {kept[name][0]:g} MB/s; nothing tells links apart"
            )
    return kept


def step_curve(rows: pl.DataFrame, *, most: int = MOST_STEPS, seed: int = 1) -> ThroughputCurve:
    """Return the curve of :func:`fit_steps` without its certainty, also from few links."""
    x, y, codes = _arrays(rows)
    return _grow(x, y, _choose_size(x, y, codes, most, seed)[1]).curve()


def fit_steps(
    rows: pl.DataFrame, *, most: int = MOST_STEPS, n_boot: int = 500, seed: int = 1
) -> StepFit:
    """Fit a monotone step curve that predicts what links later deliver.

    The fewest steps are taken whose error on unseen links is not above the least error by more than the
    standard error of that difference. Weights are the expected ln(MB/s) of a step, moved to 1 for the lowest and 2 for the
    highest. Links (``mbps, outcome`` [MB/s], ``group``) without one of the two are left out; replicates are over groups.

    Raises:
        ConfigError: ``most`` steps below 1.
        InsufficientDataError: See :func:`usable`.

    Source: network-weight.md 1.
    """
    x, y, codes = _arrays(usable(rows))
    by_size, size, useful = _choose_size(x, y, codes, most, seed)
    tree, n = _grow(x, y, size), int(codes[-1]) + 1
    grid = np.linspace(x.min(), x.max(), 200)
    drawn = [
        _grow(x, y, size, counts[codes]).weights(grid)
        for block in bootstrap_weights(n, n_boot=n_boot, seed=seed)
        for counts in block
    ]
    low, high = percentile_interval(np.array(drawn), CONFIDENCE, n_tasks=n)
    band = {"mbps": np.exp(grid), "weight": tree.weights(grid), "weight_lo": low, "weight_hi": high}
    return StepFit(tree.curve(), by_size, pl.DataFrame(band), n, useful)


def _arrays(rows: pl.DataFrame) -> tuple[FloatArray, FloatArray, IntArray]:
    """Return ln of throughput and of outcome, and the number of the link, in the order of links."""
    if lost := rows.height - rows.filter(FINITE).height:
        raise DataError(
            f"{lost} of {rows.height} links without a finite mbps and outcome; leave them out"
        )
    kept = rows.sort("group", "mbps", "outcome")
    codes = (kept["group"].rank("dense") - 1).cast(pl.Int64).to_numpy()
    return logged(kept["mbps"].to_numpy()), logged(kept["outcome"].to_numpy()), codes


def _grow(x: FloatArray, y: FloatArray, n_steps: int, weight: FloatArray | None = None) -> _Tree:
    """Fit the tree with so many edges; rows of weight 0 do not exist."""
    from sklearn.tree import DecisionTreeRegressor

    if weight is not None:
        drawn = weight > 0
        x, y, weight = x[drawn], y[drawn], weight[drawn]
    least = max(FEWEST_IN_STEP, math.ceil(SMALLEST_STEP * len(x)))
    tree = DecisionTreeRegressor(
        max_leaf_nodes=n_steps + 1, min_samples_leaf=least, monotonic_cst=[1], random_state=0
    ).fit(x[:, None].astype(np.float32), y, sample_weight=weight, check_input=False)
    edges = np.sort(tree.tree_.threshold[tree.tree_.children_left >= 0])
    if not len(edges):
        return _Tree(edges, np.array([np.average(y, weights=weight)]))
    middles = np.concatenate([edges[:1] - 1, (edges[:-1] + edges[1:]) / 2, edges[-1:] + 1])
    return _Tree(edges, tree.predict(middles[:, None]))


def _choose_size(
    x: FloatArray, y: FloatArray, codes: IntArray, most: int, seed: int
) -> tuple[pl.DataFrame, int, bool]:
    """Return the error by number of steps, the number chosen, and whether it beats no curve."""
    from sklearn.model_selection import GroupKFold

    if most < 1:
        raise ConfigError(f"steps={most}: must be 1 or more")
    if codes.size == 0 or codes[-1] + 1 < FOLDS:
        raise InsufficientDataError(f"{FOLDS} links are needed to choose a number of steps")
    squared = np.empty((most + 1, len(x)))
    for train, test in GroupKFold(FOLDS, shuffle=True, random_state=seed).split(x, y, codes):
        squared[0, test] = (y[test] - y[train].mean()) ** 2
        for size in range(1, most + 1):
            squared[size, test] = (y[test] - _grow(x[train], y[train], size).at(x[test])) ** 2
    error = squared.mean(axis=1)
    best = int(np.argmin(error))
    # the rows of one link rise and fall together; so do two curves on the same link
    n = np.bincount(codes)
    over_best = np.array([np.bincount(codes, row - squared[best]) for row in squared])
    residual = over_best - (error - error[best])[:, None] * n
    se = np.sqrt((residual**2).sum(axis=1)) / n.sum()
    near = error - se <= error[best]
    size = max(1, int(np.argmax(near)))
    frame = pl.DataFrame(
        {
            "n_steps": range(most + 1),
            "error": error,
            "above_best": error - error[best],
            "above_best_se": se,
            "chosen": np.arange(most + 1) == size,
        }
    )
    return frame, size, not bool(near[0])


# --- curves beside each other -----------------------------------------------------------------------------------------


LOG_STEPS = 20
"""Steps of the logarithm written as a curve."""


def curve_of(rules: RuleSetName) -> ThroughputCurve:
    """Return the steps of a rule set."""
    return throughput_curve(ProductionRules(rules))


def resolution(rows: pl.DataFrame, curve: ThroughputCurve, other: ThroughputCurve) -> pl.DataFrame:
    """Return what the links of each step delivered later, the lowest step first, and what they would weigh under another curve.

    ``step``, ``mbps_above`` (null: the lowest), ``weight``, ``n_rows``, ``share`` of the links [1], ``q10, q50, q90`` of
    ``outcome`` [MB/s], ``beats_below``: how often a link of this step delivers more later than one of the next step below that
    has links [1]; ``other, other_lo, other_hi``: mean, least and largest weight under the other curve; ``edge``: in words. Null
    without links.
    """
    mbps, outcome = rows["mbps"].to_numpy(), rows["outcome"].to_numpy()
    steps = np.searchsorted(np.array(curve.mbps_above), mbps, side="left")
    weights = other.weights(np.maximum(mbps, LEAST))
    table = curve.frame()
    described = []
    below = outcome[:0]
    for step in range(table.height):
        here, then = outcome[steps == step], weights[steps == step]
        known = len(here) > 0
        numbers = np.quantile(here, (0.1, 0.5, 0.9)) if known else [None] * 3
        again = (then.mean(), then.min(), then.max()) if known else [None] * 3
        beats = _beats(here, below) if known and len(below) else None
        described.append((step, len(here), len(here) / max(len(steps), 1), *numbers, beats, *again))
        below = here if known else below
    floats = ("share", "q10", "q50", "q90", "beats_below", "other", "other_lo", "other_hi")
    schema = dict.fromkeys(("step", "n_rows"), pl.Int64) | dict.fromkeys(floats, pl.Float64)
    above = pl.format("above {}", pl.col("mbps_above").cast(pl.String).str.strip_suffix(".0"))
    edge = pl.when(pl.col("mbps_above").is_null()).then(pl.lit("lowest")).otherwise(above)
    return pl.concat(
        [pl.DataFrame(described, schema=schema, orient="row"), table], how="horizontal"
    ).select("step", "mbps_above", "weight", "n_rows", *floats, edge=edge)


def _beats(above: FloatArray, below: FloatArray) -> float:
    """Return how often a value of the one is larger than one of the other; ties count half (Mann and Whitney's U)."""
    n = len(above)
    ranks = pl.Series(np.concatenate([above, below])).rank().to_numpy()[:n]
    return float((ranks.sum() - n * (n + 1) / 2) / n / len(below))


def tied_share(weights: FloatArray) -> float:
    """Return the share of all pairs of links that have the same weight [1]."""
    n, (_, sizes) = len(weights), np.unique(weights, return_counts=True)
    return float((sizes * (sizes - 1)).sum() / max(n * (n - 1), 1))


def beside_current(
    fit: StepFit,
    mbps: pl.Series,
    *,
    rules: RuleSetName = "document",
    fitted: str = "fitted",
    logarithm: str = "",
) -> pl.DataFrame:
    """Return the curve of a rule set and a fitted one with its interval, for drawing over the throughputs that occur.

    ``mbps`` [MB/s], ``weight, weight_lo, weight_hi`` (ends of the fitted one), ``curve`` (current, and as called).
    """
    low, high = bounds_of(mbps)
    drawn = {
        "current": corners(curve_of(rules), low, high),
        fitted: fit.band.filter(pl.col("mbps") >= low),
    }
    if logarithm:
        drawn[logarithm] = corners(log_curve(low, high), low, high)
    named = [frame.with_columns(curve=pl.lit(name)) for name, frame in drawn.items()]
    return pl.concat(named, how="diagonal")


def bounds_of(mbps: pl.Series) -> tuple[float, float]:
    """Return whole powers of ten around throughputs [MB/s], at least up to 1000."""
    known = np.maximum(mbps.drop_nulls().to_numpy(), LEAST)
    low = 10 ** np.floor(np.log10(known.min()))
    return float(low), max(float(10 ** np.ceil(np.log10(known.max()))), 1000.0)


def log_curve(low: float, high: float) -> ThroughputCurve:
    """Return the logarithm of throughput between two bounds [MB/s] as a curve of steps, from 1 to 2 by 0.05."""
    edges = np.geomspace(low, high, LOG_STEPS + 1)[1:]
    weights = np.round(np.linspace(1, 2, LOG_STEPS + 1), 2).tolist()
    return ThroughputCurve(tuple(float(f"{e:.3g}") for e in edges), tuple(weights[1:]), weights[0])


def corners(curve: ThroughputCurve, low: float, high: float) -> pl.DataFrame:
    """Return the corners of a step curve: ``mbps``, ascending from ``low`` to ``high`` [MB/s]; ``weight`` up to the next row."""
    inside = [edge for edge in curve.mbps_above if low < edge < high]
    at = np.array([low, *inside, high])
    return pl.DataFrame(
        {"mbps": at, "weight": curve.weights(np.append(np.nextafter(at[:-1], np.inf), high))}
    )
