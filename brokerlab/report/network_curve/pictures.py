"""The charts of the network curve report: their frames, and titles that say what was found."""

from __future__ import annotations

from pathlib import Path

import polars as pl

from brokerlab.brokerage.network_weight import throughput_curve
from brokerlab.calibrate.network_curve import Scores, bounds_of, corners, throughput_histogram
from brokerlab.calibrate.network_curve.scores import MEASURES
from brokerlab.calibrate.network_curve.steps import LEAST
from brokerlab.charts import network as charts
from brokerlab.charts import theme
from brokerlab.report.content import Picture
from brokerlab.report.network_curve import sentences as say
from brokerlab.report.network_curve.study import (
    DOCUMENT,
    FITTED,
    LABELS,
    PRODUCTION,
    Curve,
    Exchange,
    Fallback,
    Study,
)
from brokerlab.report.network_curve.tables import SHORT
from brokerlab.report.replays.pictures import Drawn
from brokerlab.words import number, percent, thin

BINS_PER_DECADE = 4
NEARLY = 0.9
"""Part of what the best number of steps brings, named in the chart of sizes [1]."""


def draw(study: Study, folder: Path) -> dict[str, Picture]:
    """Draw every chart that the study has numbers for, and save it.

    Args:
        study: The study.
        folder: Where the charts go.

    Returns:
        Pictures by chart; those of a curve begin with the name of its source.
    """
    drawn: dict[str, Drawn] = {}
    for name, found in study.curves.items():
        if isinstance(found, Curve):
            drawn |= {
                f"{name}_curve": curves(found),
                f"{name}_scores": curve_scores(found),
                f"{name}_resolution": steps(found),
                f"{name}_sizes": sizes(found),
            }
    if isinstance(study.fallback, Fallback):
        drawn["fallback"] = fallback(study.fallback)
    if isinstance(study.exchange, Exchange):
        drawn["exchange"] = exchange(study.exchange)
    pictures = {}
    for name, (chart, finding) in drawn.items():
        theme.save(chart, folder, name)
        pictures[name] = Picture(chart=name, alt=finding)
    return pictures


def curves(found: Curve) -> Drawn:
    """Draw both step curves over the throughputs that occur."""
    mbps = found.evidence.rows["mbps"]
    low, high = bounds_of(mbps)
    drawn = {DOCUMENT: throughput_curve(), FITTED: found.fit.curve}
    points = pl.concat(
        corners(curve, low, high).with_columns(curve=pl.lit(name)) for name, curve in drawn.items()
    )
    bins = throughput_histogram(mbps, low, high).rename(
        {"mbps_from": "mbps_lo", "mbps_to": "mbps_hi"}
    )
    lowest = found.evidence.facts["share_at_most_1"]
    finding = thin(
        f"{percent(lowest)} of the links with a throughput share the document's lowest step; a fitted curve has its "
        f"first edge at {found.fit.curve.mbps_above[0]:g} MB/s and its last at {found.fit.curve.mbps_above[-1]:g}"
    )
    words = (
        f"Grey: document; blue: fitted on {number(found.fit.n_links)} links, band: 95 % interval. Below: where the links "
        f"with a throughput are. {found.evidence.stages['choice']}"
    )
    band = found.fit.band.filter(pl.col("mbps") >= low)
    return charts.curves_chart(points, band, bins, finding=finding, sample=thin(words)), finding


def curve_scores(found: Curve) -> Drawn:
    """Draw how well every weight ranks links."""
    first, then = found.scores.of(DOCUMENT)["value"], found.scores.of(FITTED)["value"]
    finding = thin(
        f"Rank correlation with what links later deliver: document {say.score(first)}, fitted {say.score(then)}, "
        f"difference {say.difference(found.judgement)}"
    )
    return charts.scores_chart(_scored(found.scores, DOCUMENT), finding=finding, sample=thin(say.sample(found))), finding  # fmt: skip


def _scored(scores: Scores, current: str) -> pl.DataFrame:
    """Return the rows of a chart of scores; the production curve ranks as the document's does."""
    frame = scores.table.filter(pl.col("name") != PRODUCTION)
    role = (
        pl.when(pl.col("name") == current)
        .then(pl.lit("current"))
        .when(pl.col("name") == FITTED)
        .then(pl.lit("proposed"))
        .otherwise(pl.lit("other"))
    )
    order = {name: i for i, name in enumerate(MEASURES)}
    return (
        frame.with_columns(role=role, _order=pl.col("measure").replace_strict(order))
        .sort("_order", maintain_order=True)
        .select(
            pl.col("name").replace(LABELS),
            pl.col("measure").replace(SHORT),
            "value",
            "role",
            lo="value_lo",
            hi="value_hi",
        )
    )


def steps(found: Curve) -> Drawn:
    """Draw what the links of each step later deliver."""
    rows = found.steps.drop_nulls("q50").sort("curve", "step", maintain_order=True)
    label = (
        pl.when(pl.col("mbps_above").is_null())
        .then(pl.lit("lowest"))
        .otherwise(pl.format("> {}", pl.col("mbps_above").map_elements("{:g}".format, return_dtype=pl.String)))
    )  # fmt: skip
    frame = rows.select(
        "curve",
        pl.format(
            "{} ({})",
            label,
            pl.col("weight").map_elements("{:.2f}".format, return_dtype=pl.String),
        ).alias("label"),
        *(pl.max_horizontal(pl.col(q), pl.lit(LEAST)).alias(q) for q in ("q10", "q50", "q90")),
        words=pl.format(
            "{} %", (100 * pl.col("share")).map_elements("{:.1f}".format, return_dtype=pl.String)
        ),
    )
    now = found.told[DOCUMENT]
    finding = thin(
        f"The document's curve ties {percent(now['tied'])} of the pairs of links; {percent(now['right'])} of the others "
        "come out in its order"
    )
    words = f"{say.sample(found).partition(';')[0]}. Point: median, line: 10 to 90 %, number: share of the links; left: step [MB/s] and weight"
    return charts.steps_chart(frame, finding=finding, sample=thin(words)), finding


def sizes(found: Curve) -> Drawn:
    """Draw the error by number of steps."""
    frame = found.fit.by_size.rename({"error_lo": "lo", "error_hi": "hi"})
    chosen = int(frame.filter("chosen")["n_steps"][0])
    error = frame["error"].to_numpy()
    gained = error[0] - error.min()
    most = found.fit.steps_for(NEARLY)
    finding = thin(
        f"{chosen} steps are chosen; {most} already bring nine tenths of what the best number brings"
        if gained > 0 and found.fit.useful
        else "No number of steps predicts better than none"
    )
    words = "Error of ln(MB/s) in five folds of links; bars: standard error of the difference from the least"
    return charts.sizes_chart(frame, finding=finding, sample=words), finding


def fallback(found: Fallback) -> Drawn:
    """Draw the weight by closeness."""
    table = found.fit.table
    frame = table.select(
        closeness=pl.Series(["missing" if c is None else f"{c:g}" for c in table["closeness"]]),
        line="line",
        weight="weight",
        weight_lo="weight_lo",
        weight_hi="weight_hi",
        words=pl.col("n_links").cast(pl.String),
    )
    over = float((table["line"] > table["weight_hi"]).sum())
    finding = thin(
        f"At {number(over)} of {number(table.height)} values of closeness the document's line stands above the interval "
        "of what such links earn"
    )
    words = (
        "Grey: document; blue: mean weight that the later throughput earns, with 95 % interval; number: links. "
        f"Rank correlation with half of the throughputs hidden: {say.ranks(found.judgement)}"
    )
    return charts.fallback_chart(frame, finding=finding, sample=thin(words)), finding


def exchange(found: Exchange) -> Drawn:
    """Draw the score by the exchange of files against throughput weight."""
    fit = found.fit
    table = fit.table.rename({"score_lo": "lo", "score_hi": "hi"})
    top = float(table["hi"].max())  # type: ignore[arg-type]
    low = float(table["lo"].min())  # type: ignore[arg-type]
    marks = pl.DataFrame(
        {
            "files": [fit.current, fit.files],
            "role": ["current", "proposed"],
            "words": [f"current: {number(fit.current)}", f"best: {number(fit.files)}"],
            "place": [top, top - 0.08 * (top - low)],
        }
    ).filter(pl.col("files").is_between(fit.table["files"].min(), fit.table["files"].max()))
    finding = thin(
        f"Ranking is best where {say.files(found)} waiting files weigh 1 of throughput weight; now: "
        f"{number(fit.current)}"
    )
    words = f"{number(fit.n_links)} links with files waiting that the fit saw. Rank correlation of the network weight with how soon the queue of a link is delivered; band: 95 % interval over links"
    return charts.exchange_chart(table, marks, finding=finding, sample=thin(words)), finding
