"""Charts of the network weight's curves, one function each; every frame is aggregated already."""

from __future__ import annotations

import altair as alt
import numpy as np
import polars as pl

from brokerlab.charts.frames import need, percent
from brokerlab.charts.theme import (
    CURRENT,
    GRID,
    INK,
    OTHER,
    PROPOSED,
    SOFT,
    WIDTH,
    title,
)

Chart = alt.LayerChart | alt.FacetChart
"""What a layered chart is to the type checker."""
ROW = 24
"""Height of a line of a chart [px]."""
NAMES = {"document": CURRENT, "fitted": PROPOSED}
"""Colour of the curves; the document's is the current one."""
LETTER = 6.6
"""Width of a letter of a label [px]."""
MBPS_LABELS = "datum.value >= 1 ? format(datum.value, ',') : format(datum.value, '~g')"


def _least(*columns: pl.Series) -> float:
    return float(np.min([column.to_numpy().min() for column in columns]))


def _most(*columns: pl.Series) -> float:
    return float(np.max([column.to_numpy().max() for column in columns]))


def _log(low: float, high: float) -> alt.Scale:
    return alt.Scale(type="log", domain=[low, high], nice=False)


def _ticks(low: float, high: float) -> list[float]:
    """Return powers of ten inside the bounds."""
    return [10.0**k for k in range(-4, 6) if low <= 10.0**k <= high]


def _colour(present: list[str]) -> alt.Color:
    shown = [name for name in NAMES if name in present]
    return alt.Color(
        "curve:N",
        scale=alt.Scale(domain=shown, range=[NAMES[name] for name in shown]),
        legend=alt.Legend(title=None),
    )


def curves_chart(
    curves: pl.DataFrame, band: pl.DataFrame, links: pl.DataFrame, *, finding: str, sample: str
) -> alt.VConcatChart:
    """Draw step curves over throughput, the interval of the fitted one, and below where the links are.

    Args:
        curves: ``curve`` (document, fitted), ``mbps`` [MB/s], ``weight``: points of steps, edge by edge.
        band: ``mbps, weight_lo, weight_hi`` of the fitted curve.
        links: ``mbps_lo, mbps_hi`` [MB/s] of a bin, ``share`` of the links [1].
        finding: Title.
        sample: Subtitle.
    """
    need(curves, "curve mbps weight")
    need(band, "mbps weight_lo weight_hi")
    need(links, "mbps_lo mbps_hi share")
    low = _least(curves["mbps"], links["mbps_lo"])
    high = _most(curves["mbps"], links["mbps_hi"])
    scale, ticks = _log(low, high), _ticks(low, high)
    axis = alt.Axis(values=ticks, labelExpr=MBPS_LABELS)
    bare = alt.Axis(values=ticks, labels=False, title=None)
    x = alt.X("mbps:Q", scale=scale, axis=bare)
    weights = alt.Scale(domain=[0.97, 2.03], nice=False)
    y = alt.Y("weight:Q", title="throughput weight [1]", scale=weights, axis=alt.Axis(minExtent=30))
    shade = (
        alt.Chart(band)
        .mark_area(color=PROPOSED, opacity=0.18)
        .encode(x=x, y=alt.Y("weight_lo:Q", title="throughput weight [1]", scale=weights), y2="weight_hi:Q")
    )  # fmt: skip
    lines = (
        alt.Chart(curves)
        .mark_line(interpolate="step-after", strokeWidth=2.2)
        .encode(
            x=x,
            y=y,
            color=_colour(curves["curve"].unique().to_list()),
            strokeDash=alt.StrokeDash(
                "curve:N",
                scale=alt.Scale(domain=list(NAMES), range=[[5, 3], [1, 0]]),
                legend=None,
            ),
        )
    )
    bars = _where_links_are(links, scale, axis)
    return alt.vconcat(
        alt.layer(shade, lines).properties(width=WIDTH, height=220),
        bars.properties(width=WIDTH, height=70),
        spacing=6,
    ).properties(title=title(finding, sample))


def _where_links_are(links: pl.DataFrame, scale: alt.Scale, axis: alt.Axis) -> alt.Chart:
    """Draw the share of the links in each bin."""
    x_title = "throughput when the weight is taken [MB/s]"
    bars: alt.Chart = (
        alt.Chart(percent(links, "share"))
        .mark_rect(color=OTHER, stroke="white", strokeWidth=0.6)
        .encode(
            x=alt.X("mbps_lo:Q", title=x_title, scale=scale, axis=axis),
            x2="mbps_hi:Q",
            y=alt.Y("share:Q", title="links [%]", axis=alt.Axis(tickCount=3, minExtent=30)),
            y2=alt.datum(0),
        )
    )
    return bars


def scores_chart(scores: pl.DataFrame, *, finding: str, sample: str) -> alt.HConcatChart:
    """Draw how well weights rank links, a panel per measure.

    Args:
        scores: ``name`` in the order of drawing, ``measure`` (words), ``value, lo, hi`` [1], ``role`` (current,
            proposed, other).
        finding: Title.
        sample: Subtitle.
    """
    need(scores, "name measure value lo hi role")
    names = scores["name"].unique(maintain_order=True).to_list()
    measures = scores["measure"].unique(maintain_order=True).to_list()
    label_px = int(min(260, LETTER * max(len(name) for name in names)))
    width = max(90, (WIDTH + 40 - label_px) // len(measures) - 14)
    scale = alt.Scale(domain=["current", "proposed", "other"], range=[CURRENT, PROPOSED, SOFT])
    shapes = alt.Scale(
        domain=["current", "proposed", "other"], range=["circle", "diamond", "circle"]
    )
    panels = []
    for i, measure in enumerate(measures):
        rows = scores.filter(pl.col("measure") == measure)
        lowest = min(0.0, _least(rows["lo"]))
        base = alt.Chart(rows).encode(
            y=alt.Y(
                "name:N",
                title=None,
                sort=names,
                axis=alt.Axis(labels=i == 0, ticks=False, grid=True, domain=False),
            ),
            color=alt.Color("role:N", scale=scale, legend=None),
        )
        ends = base.mark_rule(strokeWidth=1.6).encode(
            x=alt.X(
                "lo:Q",
                scale=alt.Scale(domain=[lowest, 1], nice=False),
                title=f"{measure} [1]",
                axis=alt.Axis(values=[0, 0.5, 1], format=".1f"),
            ),
            x2="hi:Q",
        )
        points = base.mark_point(filled=True, size=70, opacity=1).encode(
            x="value:Q", shape=alt.Shape("role:N", scale=shapes, legend=None)
        )
        reference = rows.filter(pl.col("role") == "current")["value"].to_list()
        line = (
            alt.Chart(pl.DataFrame({"value": reference}))
            .mark_rule(color=CURRENT, strokeDash=[4, 3])
            .encode(x="value:Q")
        )
        panels.append(alt.layer(line, ends, points).properties(width=width, height=alt.Step(ROW)))
    return alt.hconcat(*panels, spacing=14).properties(title=title(finding, sample))


def steps_chart(steps: pl.DataFrame, *, finding: str, sample: str) -> alt.HConcatChart:
    """Draw what the links of each step later deliver, a panel per curve.

    Args:
        steps: ``curve``, ``label`` (of the step, lowest first), ``q10, q50, q90`` [MB/s], ``words`` beside it.
        finding: Title.
        sample: Subtitle.
    """
    need(steps, "curve label q10 q50 q90 words")
    low, high = _least(steps["q10"]), _most(steps["q90"])
    panels = []
    for name in steps["curve"].unique(maintain_order=True):
        rows = steps.filter(pl.col("curve") == name)
        labels = rows["label"].to_list()[::-1]
        colour = NAMES.get(name, SOFT)
        scale = _log(low * 0.6, high * 8)
        base = alt.Chart(rows).encode(y=alt.Y("label:N", title=None, sort=labels))
        x = alt.X(
            "q10:Q",
            scale=scale,
            title="later throughput [MB/s]",
            axis=alt.Axis(values=_ticks(low, high)[::2], labelExpr=MBPS_LABELS),
        )
        spread = base.mark_rule(color=colour, strokeWidth=3, opacity=0.45).encode(x=x, x2="q90:Q")
        middle = base.mark_point(filled=True, size=60, color=colour, opacity=1).encode(x="q50:Q")
        words = base.mark_text(align="left", dx=6, fontSize=11).encode(x="q90:Q", text="words:N")
        panels.append(
            alt.layer(spread, middle, words).properties(
                width=(WIDTH - 130) // 2,
                height=alt.Step(ROW),
                title=alt.Title(f"{name} curve", fontSize=12, offset=4),
            )
        )
    return alt.hconcat(*panels, spacing=16).properties(title=title(finding, sample))


def sizes_chart(sizes: pl.DataFrame, *, finding: str, sample: str) -> Chart:
    """Draw the error on unseen links by number of steps.

    Args:
        sizes: ``n_steps``, ``error, lo, hi`` [ln(MB/s)²], ``chosen``.
        finding: Title.
        sample: Subtitle.
    """
    need(sizes, "n_steps error lo hi chosen")
    base = alt.Chart(sizes).encode(
        x=alt.X("n_steps:O", title="steps [edges]", axis=alt.Axis(labelAngle=0))
    )
    y = alt.Y("error:Q", title="error on unseen links [(ln MB/s)²]", scale=alt.Scale(zero=False))
    line = base.mark_line(color=SOFT, strokeWidth=1.4).encode(y=y)
    ends = base.mark_rule(color=SOFT, strokeWidth=1.4).encode(y="lo:Q", y2="hi:Q")
    colour = alt.condition("datum.chosen", alt.value(PROPOSED), alt.value(SOFT))
    points = base.mark_point(filled=True, size=70, opacity=1).encode(y=y, color=colour)
    return alt.layer(line, ends, points).properties(
        width=WIDTH, height=180, title=title(finding, sample)
    )


def fallback_chart(fallback: pl.DataFrame, *, finding: str, sample: str) -> Chart:
    """Draw the weight by closeness: the document's line, and what such links earn.

    Args:
        fallback: ``closeness`` (text, in order; "missing" last), ``line``, ``weight, weight_lo, weight_hi`` [1],
            ``words`` (number of links).
        finding: Title.
        sample: Subtitle.
    """
    need(fallback, "closeness line weight weight_lo weight_hi words")
    order = fallback["closeness"].to_list()
    x = alt.X("closeness:N", title="closeness [1]", sort=order, axis=alt.Axis(labelAngle=0))
    scale = alt.Scale(domain=[0.97, 2.08], nice=False)
    base = alt.Chart(fallback).encode(x=x)
    y = alt.Y("weight:Q", title="weight without throughput [1]", scale=scale)
    ends = base.mark_rule(color=PROPOSED, strokeWidth=2).encode(
        y=alt.Y("weight_lo:Q", scale=scale, title="weight without throughput [1]"),
        y2="weight_hi:Q",
    )
    fitted = base.mark_point(
        filled=True, size=80, color=PROPOSED, shape="diamond", opacity=1
    ).encode(y=y)
    current = base.mark_point(filled=True, size=70, color=CURRENT, opacity=1).encode(
        y=alt.Y("line:Q", scale=scale)
    )
    count = base.mark_text(dy=-12, fontSize=11, color=SOFT).encode(
        y=alt.Y("weight_hi:Q", scale=scale), text="words:N"
    )
    return alt.layer(ends, current, fitted, count).properties(
        width=WIDTH, height=220, title=title(finding, sample)
    )


def exchange_chart(tried: pl.DataFrame, marks: pl.DataFrame, *, finding: str, sample: str) -> Chart:
    """Draw how well the network weight ranks links by how many files weigh one unit of throughput weight.

    Args:
        tried: ``files`` [files], ``score, lo, hi`` [1].
        marks: ``files`` of the lines to draw, ``role`` (current, proposed), ``words``, and
            ``place`` of the words on the y axis.
        finding: Title.
        sample: Subtitle.
    """
    need(tried, "files score lo hi")
    need(marks, "files role words place")
    low, high = _least(tried["files"]), _most(tried["files"])
    axis = alt.Axis(values=_ticks(low, high), labelExpr=MBPS_LABELS)
    x = alt.X(
        "files:Q",
        title="waiting files that weigh as much as 1 of throughput weight [files]",
        scale=_log(low, high),
        axis=axis,
    )
    base = alt.Chart(tried).encode(x=x)
    name = "rank correlation [1]"
    scale = alt.Scale(zero=False)
    band = base.mark_area(color=GRID).encode(y=alt.Y("lo:Q", title=name, scale=scale), y2="hi:Q")
    line = base.mark_line(color=INK, strokeWidth=1.8).encode(
        y=alt.Y("score:Q", title=name, scale=scale)
    )
    colours = alt.Scale(domain=["current", "proposed"], range=[CURRENT, PROPOSED])
    rules = alt.Chart(marks).encode(x=x, color=alt.Color("role:N", scale=colours, legend=None))
    lines = rules.mark_rule(strokeWidth=2, strokeDash=[5, 3])
    text = {"y": alt.Y("place:Q"), "text": "words:N"}
    first = f"datum.files <= {_least(marks['files'])}" if marks.height else "true"
    left = rules.transform_filter(first).mark_text(align="right", dx=-4, fontSize=11)
    right = rules.transform_filter(f"!({first})").mark_text(align="left", dx=4, fontSize=11)
    words = (left.encode(**text), right.encode(**text))
    return alt.layer(band, line, lines, *words).properties(
        width=WIDTH, height=220, title=title(finding, sample)
    )
