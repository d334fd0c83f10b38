"""Charts of waiting and its limits, one function each; every frame is aggregated already.

Intervals are drawn wherever there are any.
"""

from __future__ import annotations

from typing import Literal

import altair as alt
import polars as pl

from brokerlab.charts.frames import closed, need, percent
from brokerlab.charts.theme import BARE, CURRENT, GRID, INK, OTHER, PROPOSED, SOFT, WIDTH, title

Chart = alt.LayerChart | alt.FacetChart
"""What a layered chart is to the type checker."""

__all__ = [
    "firing_chart",
    "instants_chart",
    "keys_chart",
    "limits_chart",
    "outcomes_chart",
    "over_time_chart",
]
ROW = 22
"""Height of a line of a chart [px]."""
SHORT = "datum.value >= 1e6 ? datum.value / 1e6 + 'M' : datum.value >= 1e4 ? datum.value / 1e3 + 'k' : datum.value"
"""Labels of numbers: thousands and millions are shortened."""
PANEL = (WIDTH - 60) // 2
"""Width of a panel, two in a row [px]."""
OUTCOMES = {
    "went on soon": "#c77700",
    "went on later": "#33475b",
    "came to nothing": BARE,
    "still waits": "#cfd6dd",
    "nobody knows yet": GRID,
}
"""What becomes of a job after a rule would have fired, and its colour."""
POINTS = {"halved": ("#5b9bd0", "triangle-up"), "as set": (CURRENT, "circle"),
          "doubled": (PROPOSED, "diamond"), "other": (OTHER, "square")}  # fmt: skip
"""Limits, their colours and shapes."""


def firing_chart(firing: pl.DataFrame, *, finding: str, sample: str, jobs_title: str) -> Chart:
    """Draw how many jobs each line counts, with a few words behind the bar.

    Args:
        firing: ``name``, ``jobs, lo, hi`` [jobs] (null ends: unknown), ``words``; in order.
        finding: Title.
        sample: Subtitle.
        jobs_title: Title of the x axis with its unit in brackets.
    """
    need(firing, "name jobs lo hi words")
    shown = firing.with_columns(edge=pl.max_horizontal("jobs", "hi"))
    y = alt.Y("name:N", title=None, sort=shown["name"].to_list())
    highest = 1.5 * max([1.0, *shown["edge"].drop_nulls()])
    scale = alt.Scale(domain=[0, highest], nice=False)
    axis = alt.Axis(labelExpr=SHORT, tickCount=6)
    base = alt.Chart(shown).encode(y=y)
    bars = base.mark_bar(color=OTHER, height=ROW - 8).encode(
        x=alt.X("jobs:Q", title=jobs_title, scale=scale, axis=axis)
    )
    ends = base.mark_rule(color=INK, strokeWidth=1.5).encode(x="lo:Q", x2="hi:Q")
    words = base.mark_text(align="left", dx=6, fontSize=11).encode(x="edge:Q", text="words:N")
    return alt.layer(bars, ends, words).properties(
        width=WIDTH - 60, height=alt.Step(ROW), title=title(finding, sample)
    )


def over_time_chart(
    jobs: pl.DataFrame, *, finding: str, sample: str, jobs_title: str
) -> alt.ConcatChart:
    """Draw how many jobs each rule would time out over time, a panel per rule.

    Args:
        jobs: ``rule``, ``time`` (beginning of a step), ``jobs, jobs_lo, jobs_hi`` [jobs]; the panels stand in the order of appearance.
        finding: Title.
        sample: Subtitle.
        jobs_title: Title of the y axes with its unit in brackets.
    """
    need(jobs, "rule time jobs jobs_lo jobs_hi")
    panels = []
    for name in jobs["rule"].unique(maintain_order=True):
        rows = closed(jobs.filter(pl.col("rule") == name))
        x = alt.X("time:T", title=None, axis=alt.Axis(format="%d %b", tickCount=5, grid=False))
        axis = alt.Axis(minExtent=34, tickCount=4, labelExpr=SHORT)
        highest = max([1.0, *rows["jobs_hi"].drop_nulls(), *rows["jobs"]])
        base = alt.Chart(rows).encode(x=x)
        band = base.mark_area(color=GRID, interpolate="step-after").encode(
            y=alt.Y("jobs_lo:Q", title=jobs_title, axis=axis, scale=alt.Scale(domain=[0, highest])),
            y2="jobs_hi:Q",
        )
        line = base.mark_line(color=INK, strokeWidth=1.6, interpolate="step-after")
        panels.append(
            alt.layer(band, line.encode(y=alt.Y("jobs:Q", title=jobs_title, axis=axis))).properties(
                width=PANEL, height=90, title=alt.Title(name, fontSize=12, offset=4)
            )
        )
    return alt.concat(*panels, columns=2, spacing=14).properties(title=title(finding, sample))


def outcomes_chart(outcomes: pl.DataFrame, *, finding: str, sample: str) -> alt.Chart:
    """Draw what became of the jobs after each rule would have fired.

    Args:
        outcomes: ``name``, ``outcome`` (a key of `OUTCOMES`), ``share`` [1] of the jobs; names in order.
        finding: Title.
        sample: Subtitle.
    """
    need(outcomes, "name outcome share")
    present = [name for name in OUTCOMES if name in set(outcomes["outcome"])]
    place = {name: i for i, name in enumerate(OUTCOMES)}
    shown = percent(outcomes, "share").with_columns(
        place=pl.col("outcome").replace_strict(place, return_dtype=pl.Int64)
    )
    scale = alt.Scale(domain=present, range=[OUTCOMES[name] for name in present])
    chart: alt.Chart = (
        alt.Chart(shown)
        .mark_bar(height=ROW - 6, stroke="white", strokeWidth=1)
        .encode(
            y=alt.Y("name:N", title=None, sort=shown["name"].unique(maintain_order=True).to_list()),
            x=alt.X("share:Q", title="share of the jobs [%]", scale=alt.Scale(domain=[0, 100])),
            color=alt.Color("outcome:N", scale=scale, sort=present, legend=alt.Legend(title=None)),
            order=alt.Order("place:Q"),
        )
        .properties(width=WIDTH - 60, height=alt.Step(ROW), title=title(finding, sample))
    )
    return chart


def limits_chart(limits: pl.DataFrame, *, finding: str, sample: str) -> alt.ConcatChart:
    """Draw what shorter and longer limits would do, a panel per rule: waiting ended against jobs interrupted for nothing.

    Args:
        limits: ``rule``, ``scale`` [1], ``limit`` (text), ``soon, soon_lo, soon_hi`` [jobs], ``after_h, after_h_lo,
            after_h_hi`` [h]; points without text have none beside them; the panels stand in the order of appearance, points of a panel by scale.
        finding: Title.
        sample: Subtitle.
    """
    need(limits, "rule scale limit soon soon_lo soon_hi after_h after_h_lo after_h_hi")
    kind = (
        pl.when(pl.col("scale") == 0.5).then(pl.lit("halved"))
        .when(pl.col("scale") == 1).then(pl.lit("as set"))
        .when(pl.col("scale") == 2).then(pl.lit("doubled"))
        .otherwise(pl.lit("other"))
    )  # fmt: skip
    shown = limits.with_columns(kind=kind)
    panels = [
        _panel_of_limits(shown.filter(pl.col("rule") == name), name)
        for name in shown["rule"].unique(maintain_order=True)
    ]
    return alt.concat(*panels, columns=2, spacing=16).properties(title=title(finding, sample))


def _panel_of_limits(rows: pl.DataFrame, name: str) -> Chart:
    x_title, y_title = "interrupted for nothing [jobs]", "waiting ended [h]"
    known = rows.filter(pl.col("kind") != "other")
    ends = [*known["soon_hi"].drop_nulls(), *rows["soon"], 1.0]
    tops = [*known["after_h_hi"].drop_nulls(), *rows["after_h"], 1.0]
    x = alt.X(
        "soon:Q",
        title=x_title,
        scale=alt.Scale(domain=[0, 1.1 * max(ends)], nice=False),
        axis=alt.Axis(tickCount=4, labelExpr=SHORT),
    )
    y = alt.Y(
        "after_h:Q",
        title=y_title,
        scale=alt.Scale(domain=[0, 1.15 * max(tops)], nice=False),
        axis=alt.Axis(tickCount=4, labelExpr=SHORT, minExtent=30),
    )
    base, sure = alt.Chart(rows).encode(x=x, y=y), alt.Chart(known)
    shape = alt.Scale(domain=list(POINTS), range=[look[1] for look in POINTS.values()])
    colour = alt.Scale(domain=list(POINTS), range=[look[0] for look in POINTS.values()])
    hue = alt.Color("kind:N", scale=colour, legend=alt.Legend(title="limit"))
    line = base.mark_line(color=SOFT, strokeWidth=1, strokeDash=[3, 3]).encode(order="scale:Q")
    across = sure.mark_rule(strokeWidth=1.3).encode(
        x=alt.X("soon_lo:Q", title=x_title), x2="soon_hi:Q", y=y, color=hue
    )
    along = sure.mark_rule(strokeWidth=1.3).encode(
        x=x, y=alt.Y("after_h_lo:Q", title=y_title), y2="after_h_hi:Q", color=hue
    )
    points = base.mark_point(filled=True, size=62, opacity=1).encode(
        color=hue, shape=alt.Shape("kind:N", scale=shape, legend=alt.Legend(title="limit"))
    )
    beyond = rows["soon"] > 0.6 * max(ends)
    sides: tuple[tuple[pl.Series, Literal["left", "right"]], ...] = (
        (~beyond, "left"),
        (beyond, "right"),
    )
    words = [_words(rows.filter(far), x, y, align=align) for far, align in sides if far.any()]
    return alt.layer(line, across, along, points, *words).properties(
        width=PANEL, height=150, title=alt.Title(name, fontSize=12, offset=4)
    )


def _words(rows: pl.DataFrame, x: alt.X, y: alt.Y, *, align: Literal["left", "right"]) -> alt.Chart:
    """Write the limits beside their points, on the side where there is room."""
    marks = alt.Chart(rows).mark_text(
        align=align, dx=7 if align == "left" else -7, dy=-8, fontSize=11
    )
    text: alt.Chart = marks.encode(x=x, y=y, text="limit:N")
    return text


def instants_chart(instants: pl.DataFrame, *, finding: str, sample: str) -> alt.Chart:
    """Draw how many jobs fast rebrokerage would move at the instants of a period.

    Args:
        instants: ``at``, ``to_move`` [jobs].
        finding: Title.
        sample: Subtitle.
    """
    need(instants, "at to_move")
    chart: alt.Chart = (
        alt.Chart(instants)
        .mark_area(color=OTHER, line={"color": INK, "strokeWidth": 1.2}, interpolate="step-after")
        .encode(
            x=alt.X("at:T", title=None, axis=alt.Axis(format="%d %b", tickCount=8, grid=False)),
            y=alt.Y("to_move:Q", title="would move at the instant [jobs]"),
        )
        .properties(width=WIDTH - 20, height=150, title=title(finding, sample))
    )
    return chart


def keys_chart(keys: pl.DataFrame, *, finding: str, sample: str) -> alt.ConcatChart:
    """Draw what each key of fast rebrokerage does over its values, the current one marked.

    Args:
        keys: ``key``, ``unit``, ``value, current`` [unit], ``to_move, to_move_lo, to_move_hi`` [jobs per instant].
        finding: Title.
        sample: Subtitle.
    """
    need(keys, "key unit value current to_move to_move_lo to_move_hi")
    highest = max([1.0, *keys["to_move_hi"].drop_nulls(), *keys["to_move"]])
    panels = []
    for name in keys["key"].unique(maintain_order=True):
        rows = keys.filter(pl.col("key") == name)
        unit = rows["unit"][0]
        ticks = sorted({*rows["value"]})[:: max(1, rows.height // 5)]
        axis = alt.Axis(values=ticks, grid=False, labelOverlap=True, format="~g")
        x_title, y_title = f"value [{unit}]", "moved [jobs per instant]"
        x = alt.X("value:Q", title=x_title, scale=alt.Scale(type="log", nice=False), axis=axis)
        base = alt.Chart(rows).encode(x=x)
        scale = alt.Scale(domain=[0, highest], nice=False)
        band = base.mark_area(color=PROPOSED, opacity=0.18).encode(
            y=alt.Y("to_move_lo:Q", title=y_title, scale=scale), y2="to_move_hi:Q"
        )
        line = base.mark_line(
            color=PROPOSED, strokeWidth=2, point={"size": 30, "color": PROPOSED}
        ).encode(y=alt.Y("to_move:Q", title=y_title))
        here = alt.Chart(rows.head(1)).mark_rule(color=CURRENT, strokeWidth=2, strokeDash=[5, 3])
        mark = here.encode(x=alt.X("current:Q", title=x_title))
        short = name.removeprefix("FAST_REBRO_THRESHOLD_")
        panels.append(
            alt.layer(band, line, mark).properties(
                width=(WIDTH - 130) // 3, height=120, title=alt.Title(short, fontSize=12, offset=4)
            )
        )
    return alt.concat(*panels, columns=3, spacing=14).properties(title=title(finding, sample))
