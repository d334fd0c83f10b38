"""Weights that rank links, each a value: a name and how it is made, from links that were seen if it is fitted; how well they rank.

How well a weight ranks links by what they later delivered is taken apart into one value per row: the mean of the values is the
measure and their spread its standard error; each is the measure plus its derivative by the weight of the row (the
infinitesimal jackknife). So the one judge of settings, which knows means over units, judges rankings.

Source: Efron, The Jackknife, the Bootstrap and Other Resampling Plans (1982), chapter 6,
doi:10.1137/1.9781611970319; DeLong et al., Biometrics 44 (1988) 837, doi:10.2307/2531595, for `top_values`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import polars as pl

from brokerlab.brokerage.network_weight import (
    MAX_CLOSENESS,
    UNKNOWN_CLOSENESS,
    NetworkSettings,
    ThroughputCurve,
    files_to_one,
    queued_weights,
)
from brokerlab.brokerage.rules import ProductionRules
from brokerlab.calibrate.judge import MIN_UNITS, Question, cap_weights
from brokerlab.calibrate.network_curve.curves import MOST_STEPS, curve_of, logged, step_curve
from brokerlab.errors import InsufficientDataError
from brokerlab.intervals import CONFIDENCE, ENDS, bootstrap_totals, percentile_interval
from brokerlab.numerics import FloatArray, IntArray
from brokerlab.rulesets import RuleSetName

Weigh = Callable[[pl.DataFrame, pl.DataFrame], FloatArray]
"""Takes links to rank and links that were seen, with their ``outcome``; returns one weight for each link to rank."""
IMPORTANCES = tuple(round(0.05 * i, 2) for i in range(1, 20))
"""NW_QUEUE_IMPORTANCE that are tried [1]; one beyond them would leave one part of the weight alone."""
FOLDS = 5
"""Parts of the links of the first span."""


@dataclass(frozen=True)
class Weight:
    """A weight of links: its name, what it is called on a page, how it is made; one not ``offered`` is only compared with."""

    name: str
    label: str
    weigh: Weigh
    offered: bool = True


# --- throughput ---------------------------------------------------------------------------------------------------------


def throughput_weights(
    rows: pl.DataFrame,
    *,
    rules: RuleSetName = "document",
    most_steps: int = MOST_STEPS,
    seed: int = 1,
) -> list[Weight]:
    """Return the weights of links with throughput, that of the rule set first: curves of it, and what they have to beat."""

    def steps(rows: pl.DataFrame, seen: pl.DataFrame) -> FloatArray:
        try:
            curve = step_curve(seen, most=most_steps, seed=seed)
        except InsufficientDataError:  # no step yet
            return np.ones(rows.height)
        return curve.weights(rows["mbps"].to_numpy())

    def published(name: RuleSetName, *, offered: bool = True) -> Weight:
        return Weight(name, f"{name}'s curve", _by(curve_of(name)), offered=offered)

    def log(name: str) -> Weigh:
        return lambda rows, _: _log(rows[name])

    other: RuleSetName = "document" if rules == "production" else "production"
    weights = [
        published(rules),
        Weight("steps", "fitted steps", steps),
        Weight("isotonic", "finest rising curve", isotonic),
        Weight("log_throughput", "log throughput", log("mbps")),
        Weight("log_throughput_long", "log throughput, longest window", log("mbps_long")),
        published(other, offered=False),
        Weight("closeness", "closeness alone", lambda r, _: line(r["closeness"]), offered=False),
        Weight("sites", "names of the sites alone", sites, offered=False),
    ]
    absent = {
        "log_throughput_long": rows["mbps"].equals(rows["mbps_long"]),
        "closeness": not rows["closeness"].count(),
    }
    return [weight for weight in weights if not absent.get(weight.name)]


def _by(curve: ThroughputCurve) -> Weigh:
    return lambda rows, _: curve.weights(rows["mbps"].to_numpy())


def _log(mbps: pl.Series) -> FloatArray:
    """Return ln(MB/s), the ranking without any step."""
    return logged(mbps.fill_null(0.0).to_numpy())


def isotonic(rows: pl.DataFrame, seen: pl.DataFrame) -> FloatArray:
    """Return the finest monotone curve of links that were seen, at other links."""
    from sklearn.isotonic import IsotonicRegression

    fit = IsotonicRegression(out_of_bounds="clip")
    fit.fit(_log(seen["mbps"]), _log(seen["outcome"]))
    return np.asarray(fit.predict(_log(rows["mbps"])))


def sites(rows: pl.DataFrame, seen: pl.DataFrame) -> FloatArray:
    """Return what the names of source and destination alone predict, from other links of theirs.

    A ridge regression of ln(MB/s) on both names: how much a site sends and another one receives in all. Where it
    ranks links well without having seen them, throughput is the size of sites rather than the capability of
    a link.
    """
    from sklearn.linear_model import Ridge
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder

    names = ["src", "dst"]
    model = make_pipeline(OneHotEncoder(handle_unknown="ignore"), Ridge(alpha=1.0))
    model.fit(seen.select(names).to_numpy(), _log(seen["outcome"]))
    return np.asarray(model.predict(rows.select(names).to_numpy()))


# --- links without throughput -------------------------------------------------------------------------------------------


def line(closeness: pl.Series) -> FloatArray:
    """Return the closeness weight of the document; a missing closeness is 7.7.

    Source: network-weight.md 1.

    Example:
        >>> line(pl.Series([0, 11, None], dtype=pl.Float64)).tolist()
        [2.0, 1.0, 1.3]
    """
    distance = closeness.fill_null(UNKNOWN_CLOSENESS).to_numpy()
    return np.asarray(1 + (MAX_CLOSENESS - distance) / MAX_CLOSENESS)


def earned(seen: pl.DataFrame, curve: ThroughputCurve) -> pl.DataFrame:
    """Return the mean weight that the later throughput of links of each closeness (null last) would earn: ``closeness, weight``.

    Falling with closeness (isotonic regression); links of unknown closeness have a mean of their own.
    """
    closeness, place = _levels(seen)
    worth = np.bincount(place, curve.weights(seen["outcome"].to_numpy())).astype(np.float64)
    mean = _falling(worth, np.bincount(place).astype(np.float64), closeness.count())
    return pl.DataFrame({"closeness": closeness, "weight": mean})


def _levels(rows: pl.DataFrame) -> tuple[pl.Series, IntArray]:
    """Return the values of closeness, null last, and the place of each row among them."""
    closeness = rows["closeness"].unique().sort(nulls_last=True)
    place = (rows["closeness"].rank("dense") - 1).fill_null(closeness.count())
    return closeness, place.cast(pl.Int64).to_numpy()


def _falling(worth: FloatArray, n: FloatArray, n_known: int) -> FloatArray:
    """Return the mean of each level from sums, falling over the known ones; NaN without links.

    Rounded far below what matters: the order of a sum must not decide which links tie.
    """
    from sklearn.isotonic import isotonic_regression

    mean = np.full(len(n), np.nan)
    np.divide(worth, n, out=mean, where=n > 0)
    known = np.flatnonzero(n[:n_known])
    if known.size:
        mean[known] = isotonic_regression(mean[known], sample_weight=n[known], increasing=False)
    return mean.round(12)


def levels(
    rows: pl.DataFrame,
    links: pl.DataFrame,
    curve: ThroughputCurve,
    *,
    n_boot: int = 500,
    seed: int = 1,
) -> pl.DataFrame:
    """Return what links of each closeness (null = missing) deliver, in the unit of the throughput weight.

    ``closeness``, ``weight`` (earned), ``line`` (weight of the document), ``weight_lo, weight_hi`` (ends of the earned one),
    ``n_links``, ``q50`` of the later throughput [MB/s], ``share_known``: share of all links of that closeness that have a
    throughput [1].
    """
    closeness, place = _levels(rows)
    units = (rows["unit"].rank("dense") - 1).cast(pl.Int64).to_numpy()
    n_units, n_levels = int(units.max()) + 1, len(closeness)
    cells = np.zeros((n_units, 2 * n_levels))  # sum and number of each unit's rows
    np.add.at(cells, (units, place), curve.weights(rows["outcome"].to_numpy()))
    np.add.at(cells, (units, n_levels + place), 1)
    drawn = [
        _falling(again[:n_levels], again[n_levels:], closeness.count())
        for again in bootstrap_totals(cells, n_boot=n_boot, seed=seed)
    ]
    low, high = percentile_interval(np.array(drawn), CONFIDENCE, n_tasks=n_units)
    table = earned(rows, curve).with_columns(
        line=pl.Series(line(closeness)), weight_lo=low, weight_hi=high
    )
    counted = rows.group_by("closeness").agg(
        n_links=pl.col("unit").n_unique(), q50=pl.col("outcome").median()
    )
    known = links.group_by("closeness").agg(share_known=pl.col("mbps").is_not_null().mean())
    for facts in (counted, known):
        table = table.join(
            facts, on="closeness", how="left", nulls_equal=True, maintain_order="left"
        )
    return table


def levels_by_setting(table: pl.DataFrame, fitted: str) -> pl.DataFrame:
    """Return the document's line and the fitted weights one below the other, for drawing.

    ``level`` (closeness in words), ``setting`` (current, `fitted`), ``weight, weight_lo, weight_hi`` (ends of the fitted one).
    """
    level = pl.col("closeness").cast(pl.String).str.strip_suffix(".0").fill_null("missing")
    now = table.select(level=level, setting=pl.lit("current"), weight="line")
    ends = ("weight", "weight_lo", "weight_hi")
    return pl.concat(
        [now, table.select(*ends, level=level, setting=pl.lit(fitted))], how="diagonal"
    )


def at(levels: pl.DataFrame, closeness: pl.Series) -> FloatArray:
    """Return the weight at each closeness, interpolated between levels as of :func:`earned`.

    Null closeness: the weight of links of unknown closeness, else as 7.7.
    """
    known = levels.drop_nulls("closeness")
    missing = levels.filter(pl.col("closeness").is_null())["weight"]
    if known.is_empty():
        return np.full(len(closeness), missing[0])
    weight = np.interp(closeness.fill_null(UNKNOWN_CLOSENESS), known["closeness"], known["weight"])
    gone = closeness.is_null().to_numpy()
    return np.where(gone, missing[0], weight) if len(missing) else np.asarray(weight)


def fallback_weights(curve: ThroughputCurve) -> list[Weight]:
    """Return the weights of links without throughput, ranked among those with one (``hidden`` links have none), the line first."""
    shown = _by(curve)

    def hidden(weigh: Weigh) -> Weigh:
        return lambda rows, seen: np.where(rows["hidden"], weigh(rows, seen), shown(rows, seen))

    def fitted(rows: pl.DataFrame, seen: pl.DataFrame) -> FloatArray:
        return at(earned(seen, curve), rows["closeness"])

    lowest = hidden(lambda rows, _: np.full(rows.height, curve.lowest))
    return [
        Weight("line", "document's line", hidden(lambda rows, _: line(rows["closeness"]))),
        Weight("earned", "fitted weights", hidden(fitted)),
        Weight("lowest", "lowest weight for all", lowest),
        Weight("nothing_hidden", "nothing hidden", shown, offered=False),
    ]


# --- waiting files against throughput -----------------------------------------------------------------------------------


def files_per_unit(settings: NetworkSettings, rules: RuleSetName = "document") -> float:
    """Return how many waiting files weigh as much as one unit of throughput weight.

    The network weight is ``i q(n) + (1 - i) t``; the queued weight ``q`` falls by 1 over 300 files (``document``) or over
    NQUEUED_SAT_CAP of them (``production``), see :func:`.network_weight.queued_weights`. On that line the order of links depends
    on ``t - n / F`` only, with ``F = 300 (1 - i) / i`` or ``cap (1 - i) / i`` files.

    Example:
        >>> files_per_unit(NetworkSettings()), files_per_unit(NetworkSettings(), "production")
        (300.0, 150.0)
    """
    share, cap = settings.queue_importance, settings.link_cap
    falls_by_1 = files_to_one(cap, ProductionRules(rules)) * cap
    return float("inf") if share == 0 else falls_by_1 * (1 - share) / share


def exchange_weights(
    settings: NetworkSettings, rules: RuleSetName = "document", also: Sequence[float] = ()
) -> list[Weight]:
    """Return the network weight with each importance of the queue that is tried, named by it, and its parts alone."""
    switches = ProductionRules(rules)

    def with_importance(share: float) -> Weigh:
        def weigh(rows: pl.DataFrame, _: pl.DataFrame) -> FloatArray:
            queued = queued_weights(rows["n_queued"].to_numpy(), settings.link_cap, switches)
            return np.asarray(share * queued + (1 - share) * rows["throughput_weight"].to_numpy())

        return weigh

    def log_ratio(rows: pl.DataFrame, _: pl.DataFrame) -> FloatArray:
        return np.asarray(_log(rows["mbps"]) - np.log(rows["n_queued"].to_numpy()))

    tried = sorted({*IMPORTANCES, settings.queue_importance, *also})
    return [
        *(Weight(f"{i:g}", f"importance {i:g}", with_importance(i)) for i in tried),
        Weight("queue_only", "waiting files alone", with_importance(1.0), offered=False),
        Weight("throughput_only", "throughput weight alone", with_importance(0.0), offered=False),
        Weight("log_ratio", "log throughput − log files", log_ratio, offered=False),
    ]


def predict(rows: pl.DataFrame, weights: Sequence[Weight]) -> FloatArray:
    """Return what every weight says of every link, (n_rows, n_weights), fitted on links of earlier spans only.

    Links of the first span are weighed by fits on other links of it: five parts, each by the other four.
    """
    first = rows["span"].min()
    part = pl.when(pl.col("span") == first).then(pl.col("unit").rank("dense") % FOLDS)
    fold = rows.select(fold=part.over("span"))["fold"]
    outcome = rows["outcome"].is_not_null()
    predicted = np.empty((rows.height, len(weights)))
    for span, number in sorted(set(zip(rows["span"], fold, strict=True)), key=str):
        here = (rows["span"] == span) & fold.eq_missing(number)
        earlier = ~here & (rows["span"] == span) if span == first else rows["span"] < span
        seen = rows.filter(earlier & outcome)
        for place, weight in enumerate(weights):
            predicted[here.to_numpy(), place] = weight.weigh(rows.filter(here), seen)
    return predicted


# --- how well they rank -----------------------------------------------------------------------------------------------


COVERAGE = {50: 0.958, 200: 0.945, 800: 0.942}
"""Links to the share of nominal 95 % intervals of a difference in rank correlation that held the truth ..."""
COVERAGE_SOURCE = (
    "400 draws of 50, 200 and 800 links from 6,621 real ones (ATLAS transfers, February 2019), logarithm of throughput "
    "against the document's curve"
)
"""... and how that was measured."""
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
