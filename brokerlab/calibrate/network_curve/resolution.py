"""What a step curve can tell apart: how many links share a step, and what they deliver later; curves for drawing."""

from __future__ import annotations

import numpy as np
import polars as pl

from brokerlab.brokerage.curves import ThroughputCurve
from brokerlab.brokerage.network_weight import NetworkSettings, throughput_curve
from brokerlab.brokerage.rules import ProductionRules
from brokerlab.calibrate.judge import Judgement
from brokerlab.calibrate.network_curve.steps import LEAST, StepFit, edge_in_words
from brokerlab.calibrate.network_curve.weights import earned, files_per_unit, line
from brokerlab.intervals import CONFIDENCE, bootstrap_weights, percentile_interval, t_factor
from brokerlab.numerics import FloatArray
from brokerlab.rulesets import RuleSetName

LOG_STEPS = 20
"""Steps of the logarithm written as a curve."""


def resolution(rows: pl.DataFrame, curve: ThroughputCurve, other: ThroughputCurve) -> pl.DataFrame:
    """Return what the links of each step delivered later, and what they would weigh under another curve.

    Args:
        rows: ``mbps, outcome`` [MB/s], both not null.
        curve: The steps.
        other: The other curve.

    Returns:
        One row per step, the lowest first: ``step``, ``mbps_above`` (null: the lowest), ``edge`` (in words), ``weight``, ``n_rows``,
        ``share`` of the links [1], ``q10, q50, q90`` of ``outcome`` [MB/s], ``beats_below``: how often a link of this step delivers
        more later than one of the next step below that has links [1]; 0.5 = the edge tells nothing; ``other, other_lo,
        other_hi``: mean, least and largest weight under the other curve. Null without links.
    """
    mbps, outcome = rows["mbps"].to_numpy(), rows["outcome"].to_numpy()
    steps = np.searchsorted(np.array(curve.mbps_above), mbps, side="left")
    weights = other.weights(np.maximum(mbps, LEAST))
    described = []
    below: FloatArray | None = None
    for step, (edge, weight) in enumerate(curve.frame().rows()):
        here, then = outcome[steps == step], weights[steps == step]
        known = len(here) > 0
        quantiles = np.quantile(here, (0.1, 0.5, 0.9)) if known else [None] * 3
        again = (then.mean(), then.min(), then.max()) if known else [None] * 3
        described.append(
            {
                "step": step,
                "mbps_above": edge,
                "weight": weight,
                "n_rows": len(here),
                "share": len(here) / max(len(steps), 1),
                **dict(zip(("q10", "q50", "q90"), quantiles, strict=True)),
                "beats_below": _beats(here, below),
                **dict(zip(("other", "other_lo", "other_hi"), again, strict=True)),
            }
        )
        below = here if known else below
    return pl.DataFrame(described, infer_schema_length=None).with_columns(edge_in_words())


def _beats(above: FloatArray, below: FloatArray | None) -> float | None:
    """Return how often a value of the one is larger than one of the other; ties count half."""
    if below is None or not len(above) or not len(below):
        return None
    ordered = np.sort(below)
    wins = np.searchsorted(ordered, above, side="left") + np.searchsorted(
        ordered, above, side="right"
    )
    return float(wins.mean() / (2 * len(below)))


def tied_share(weights: FloatArray) -> float:
    """Return the share of all pairs of links that have the same weight [1].

    Example:
        >>> tied_share(np.array([1.0, 1.0, 2.0, 2.0])) == 2 / 6
        True
    """
    n, (_, sizes) = len(weights), np.unique(weights, return_counts=True)
    return float((sizes * (sizes - 1)).sum() / max(n * (n - 1), 1))


def bounds_of(mbps: pl.Series) -> tuple[float, float]:
    """Return whole powers of ten around throughputs [MB/s], at least up to 1000."""
    known = np.maximum(mbps.drop_nulls().to_numpy(), LEAST)
    low = 10 ** np.floor(np.log10(known.min()))
    return float(low), max(float(10 ** np.ceil(np.log10(known.max()))), 1000.0)


def beside_current(
    fit: StepFit,
    mbps: pl.Series,
    *,
    rules: RuleSetName = "document",
    fitted: str = "fitted",
    logarithm: str = "",
) -> pl.DataFrame:
    """Return the curve of a rule set and a fitted one with its interval, for drawing over the throughputs that occur.

    Args:
        fit: The fitted curve.
        mbps: Throughputs [MB/s].
        rules: The rule set.
        fitted: What the fitted curve is called.
        logarithm: What the logarithm is called; empty: it is not drawn.

    Returns:
        ``mbps`` [MB/s], ``weight, weight_lo, weight_hi`` (ends of the fitted one), ``curve`` (current, and as called).
    """
    low, high = bounds_of(mbps)
    parts = [
        corners(throughput_curve(ProductionRules(rules)), low, high).with_columns(
            curve=pl.lit("current")
        ),
        fit.band.filter(pl.col("mbps") >= low).with_columns(curve=pl.lit(fitted)),
    ]
    if logarithm:
        drawn = corners(log_curve(low, high), low, high)
        parts.append(drawn.with_columns(curve=pl.lit(logarithm)))
    return pl.concat(parts, how="diagonal")


def log_curve(low: float, high: float) -> ThroughputCurve:
    """Return the logarithm of throughput between two bounds [MB/s] as a curve of steps, from 1 to 2 by 0.05."""
    edges = np.geomspace(low, high, LOG_STEPS + 1)[1:]
    weights = np.round(np.linspace(1, 2, LOG_STEPS + 1), 2).tolist()
    return ThroughputCurve(tuple(float(f"{e:.3g}") for e in edges), tuple(weights[1:]), weights[0])


def corners(curve: ThroughputCurve, low: float, high: float) -> pl.DataFrame:
    """Return the corners of a step curve between two throughputs.

    Returns:
        ``mbps`` [MB/s], ascending from ``low`` to ``high``; ``weight`` from there up to the next row.
    """
    inside = [edge for edge in curve.mbps_above if low < edge < high]
    at = np.array([low, *inside, high])
    return pl.DataFrame(
        {"mbps": at, "weight": curve.weights(np.append(np.nextafter(at[:-1], np.inf), high))}
    )


def levels(
    rows: pl.DataFrame,
    links: pl.DataFrame,
    curve: ThroughputCurve,
    *,
    n_boot: int = 500,
    seed: int = 1,
) -> pl.DataFrame:
    """Return what links of each closeness deliver, in the unit of the throughput weight.

    Args:
        rows: ``closeness, outcome`` [MB/s], ``unit``.
        links: All links: ``closeness, mbps``.
        curve: Turns throughput into weight.
        n_boot: Bootstrap replicates over units.
        seed: Of the bootstrap.

    Returns:
        One row per closeness, null = missing: ``closeness``, ``line`` (weight of the document),
        ``weight, weight_lo, weight_hi`` (earned), ``n_links``, ``q50`` of the later throughput [MB/s],
        ``share_known``: share of all links of that closeness that have a throughput [1].
    """
    fitted = earned(rows, curve)
    codes = (rows["unit"].rank("dense") - 1).cast(pl.Int64).to_numpy()
    n, drawn = int(codes.max()) + 1, []
    for block in bootstrap_weights(n, n_boot=n_boot, seed=seed):
        for counts in block.astype(np.int64):
            again = earned(rows[np.repeat(np.arange(rows.height), counts[codes])], curve)
            drawn.append(fitted.join(again, on="closeness", how="left", nulls_equal=True, maintain_order="left")["weight_right"])  # fmt: skip
    low, high = percentile_interval(
        np.array([one.to_numpy() for one in drawn]), CONFIDENCE, n_tasks=n
    )
    table = fitted.with_columns(
        line=pl.Series(line(fitted["closeness"])), weight_lo=low, weight_hi=high
    )
    counted = rows.group_by("closeness").agg(n_links=pl.col("unit").n_unique(), q50=pl.col("outcome").median())  # fmt: skip
    known = links.group_by("closeness").agg(share_known=pl.col("mbps").is_not_null().mean())
    for facts in (counted, known):
        table = table.join(facts, on="closeness", how="left", nulls_equal=True, maintain_order="left")  # fmt: skip
    return table


def levels_by_setting(table: pl.DataFrame, fitted: str) -> pl.DataFrame:
    """Return the document's line and the fitted weights one below the other, for drawing.

    Args:
        table: Of :func:`levels`.
        fitted: What the fitted ones are called: proposed only where they are.

    Returns:
        ``level`` (closeness in words), ``setting`` (current, `fitted`), ``weight, weight_lo, weight_hi`` (ends of the
        fitted one).
    """
    level = pl.col("closeness").cast(pl.String).str.strip_suffix(".0").fill_null("missing")
    now = table.select(level=level, setting=pl.lit("current"), weight="line")
    ends = ("weight", "weight_lo", "weight_hi")
    learnt = table.select(level.alias("level"), pl.lit(fitted).alias("setting"), *ends)
    return pl.concat([now, learnt], how="diagonal")


def exchange_table(judgement: Judgement, cap: float, rules: RuleSetName) -> pl.DataFrame:
    """Return every importance that was tried, over all links.

    Args:
        judgement: Its settings are importances, its objective is 1 - rank correlation.
        cap: NQUEUED_SAT_CAP [files].
        rules: Rule set of the queued weight.

    Returns:
        One row each, by ``files`` that weigh as much as one unit of throughput weight (null: any number): ``importance``,
        ``score, score_lo, score_hi`` (rank correlation with how soon the files that wait are delivered), ``is_current``,
        ``is_best``.
    """
    rows = judgement.candidates
    reach = t_factor(judgement.n_units, judgement.question.confidence) * pl.col("loss_se")
    shares = [float(judgement.settings[place]) for place in rows["place"]]
    files = [files_per_unit(NetworkSettings(share, cap), rules) for share in shares]
    return rows.select(
        pl.Series("files", files).replace(float("inf"), None),
        pl.Series("importance", shares),
        score=1 - pl.col("loss"),
        score_lo=1 - pl.col("loss") - reach,
        score_hi=1 - pl.col("loss") + reach,
        is_current="is_current",
        is_best="is_best",
    ).sort("files", nulls_last=True)


def marks(table: pl.DataFrame, best: str) -> pl.DataFrame:
    """Return the exchanges that are named in a chart, the current one and the best: ``files, score, label``; none with one part.

    Args:
        table: Of :func:`exchange_table`.
        best: What the best one is called, unless it is the current one.
    """
    label = pl.when("is_current").then(pl.lit("current")).when("is_best").then(pl.lit(best))
    named = table.filter(pl.col("files") > 0).select("files", "score", label=label)
    return named.drop_nulls("label")
