"""Charts of the classes of queues, tasks and shares, one function each; every frame is aggregated already.

Shares are numbers from 0 to 1 in the frames and per cent on the axes, times are seconds in the frames and hours on the
axes; intervals are drawn wherever there are any.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import altair as alt
import polars as pl

from brokerlab.charts.frames import closed, need, percent
from brokerlab.charts.theme import CURRENT, GRID, INK, LIMIT, SOFT, WIDTH, title
from brokerlab.units import HOUR_S

Chart = alt.LayerChart | alt.FacetChart
"""What a layered chart is to the type checker."""

__all__ = [
    "QUEUE_COLOURS",
    "TASK_COLOURS",
    "limits_chart",
    "means_chart",
    "stacked_chart",
    "strip_chart",
    "usage_chart",
    "waits_chart",
]
QUEUE_COLOURS: Mapping[str, str] = {
    "hi": "#01665e",
    "mid": "#8fc0b8",
    "lo": "#c98a3b",
    "none": "#eceff2",
}
"""Colours of the classes of queues; dark, light and middle, so that they differ in print too."""
TASK_COLOURS: Mapping[str, str] = {
    "S": "#01665e",
    "A": "#7cc4ba",
    "B": "#e0bd75",
    "C": "#8c510a",
    "not rated": "#dfe3e8",
}
"""Colours of the classes of tasks."""
ROW = 17
"""Height of a queue's strip [px]."""
HOUR_TICKS = (1 / 60, 1 / 6, 1, 3, 10, 24, 72, 168)
HOUR_LABELS = (
    "datum.value < 0.9 ? format(datum.value * 60, '.0f') + ' min' : "
    "datum.value < 47 ? format(datum.value, '.0f') + ' h' : format(datum.value / 24, '.0f') + ' d'"
)
"""Labels of an axis of hours."""
LETTER = 6.6
"""Width of a letter of a label [px]."""


def strip_chart(spells: pl.DataFrame, *, finding: str, sample: str) -> alt.Chart:
    """Draw from when to when each queue had which class, a strip per queue.

    Args:
        spells: ``queue`` (in the order of appearance), ``class_name``, ``start, end``.
        finding: Title.
        sample: Subtitle.
    """
    need(spells, "queue class_name start end")
    queues = spells["queue"].unique(maintain_order=True).to_list()
    width = WIDTH + 40 - _label_px(queues)
    chart: alt.Chart = (
        alt.Chart(spells)
        .mark_bar(height=ROW - 4)
        .encode(
            x=alt.X("start:T", title=None, axis=_days()),
            x2="end:T",
            y=alt.Y("queue:N", title=None, sort=queues, axis=alt.Axis(ticks=False, domain=False)),
            color=_colour(spells["class_name"].to_list(), QUEUE_COLOURS),
        )
        .properties(width=width, height=alt.Step(ROW), title=title(finding, sample))
    )
    return chart


def limits_chart(
    limits: pl.DataFrame, *, hi_hours: float, lo_hours: float, finding: str, sample: str
) -> Chart:
    """Draw the two percentiles over time, and the hours that they count from.

    Args:
        limits: ``time``, ``name`` (of the percentile), ``class_name`` (hi or lo), ``limit_s`` [s].
        hi_hours: Least limit of hi [h].
        lo_hours: Least limit of lo [h].
        finding: Title.
        sample: Subtitle.
    """
    need(limits, "time name class_name limit_s")
    shown = limits.with_columns(limit_h=pl.col("limit_s") / HOUR_S)
    values = [*shown["limit_h"].drop_nulls(), hi_hours, lo_hours]
    y_title = "wait that a job must expect [h]"
    y = alt.Y("limit_h:Q", title=y_title, scale=_log(values), axis=_hours(values))
    x = alt.X("time:T", title=None, axis=_days())
    colour = _colour(shown["class_name"].to_list(), QUEUE_COLOURS, "limit of", symbol="stroke")
    base = alt.Chart(shown)
    lines = base.mark_line(strokeWidth=2).encode(x=x, y=y, color=colour, detail="name:N")
    marks = pl.DataFrame({"class_name": ["hi", "lo"], "hours": [hi_hours, lo_hours]})
    rules = (
        alt.Chart(marks.filter(pl.col("hours") > 0))
        .mark_rule(strokeDash=[5, 3], strokeWidth=1.5)
        .encode(y=alt.Y("hours:Q", title=y_title), color=colour)
    )
    return alt.layer(rules, lines).properties(
        width=WIDTH - 40, height=220, title=title(finding, sample)
    )


def waits_chart(above: pl.DataFrame, *, finding: str, sample: str) -> Chart:
    """Draw the share of jobs that still wait, against time, by class of their queue.

    Args:
        above: ``class_name``, ``time_s`` [s], ``share, lo, hi`` [1].
        finding: Title.
        sample: Subtitle.
    """
    need(above, "class_name time_s share lo hi")
    shown = percent(above, "share", "lo", "hi").with_columns(time_h=pl.col("time_s") / HOUR_S)
    times = shown["time_h"].to_list()
    y_title = "jobs that still wait [%]"
    x = alt.X("time_h:Q", title="time since activation [h]", scale=_log(times), axis=_hours(times))
    colour = _colour(
        shown["class_name"].to_list(), {**QUEUE_COLOURS, "none": CURRENT}, "class of the queue"
    )
    base = alt.Chart(shown).encode(x=x, color=colour)
    bands = base.mark_area(opacity=0.22).encode(
        y=alt.Y("lo:Q", title=y_title, scale=alt.Scale(domain=[0, 100])), y2="hi:Q",
        fill=colour, stroke=alt.value(None),
    )  # fmt: skip
    lines = base.mark_line(strokeWidth=2.2).encode(y=alt.Y("share:Q", title=y_title))
    return alt.layer(bands, lines).properties(
        width=WIDTH - 40, height=250, title=title(finding, sample)
    )


def means_chart(queues: pl.DataFrame, *, finding: str, sample: str) -> Chart:
    """Draw the upper limit of one wait against the mean wait, a point per queue.

    Args:
        queues: ``queue``, ``class_name``, ``w_mean, w_cl95upp`` [s], ``sum_of_weights`` [jobs].
        finding: Title.
        sample: Subtitle.
    """
    need(queues, "queue class_name w_mean w_cl95upp sum_of_weights")
    shown = queues.with_columns(
        mean_h=pl.col("w_mean") / HOUR_S, limit_h=pl.col("w_cl95upp") / HOUR_S
    )
    means, uppers = shown["mean_h"].to_list(), shown["limit_h"].to_list()
    x = alt.X("mean_h:Q", title="weighted mean wait [h]", scale=_log(means), axis=_hours(means))
    y = alt.Y(
        "limit_h:Q", title="weighted upper limit [h]", scale=_log(uppers), axis=_hours(uppers)
    )
    size = alt.Size(
        "sum_of_weights:Q",
        title="sum of weights [jobs]",
        scale=alt.Scale(type="sqrt", range=[25, 320]),
        legend=alt.Legend(symbolFillColor=SOFT, symbolStrokeWidth=0, tickCount=4),
    )
    points = (
        alt.Chart(shown)
        .mark_point(filled=True, opacity=0.9, stroke=INK, strokeWidth=0.6)
        .encode(
            x=x,
            y=y,
            size=size,
            color=_colour(shown["class_name"].to_list(), QUEUE_COLOURS, "usual class"),
        )
    )
    ends = [max(min(means), min(uppers)), min(max(means), max(uppers))]
    equal = alt.Chart(pl.DataFrame({"mean_h": ends, "limit_h": ends})).mark_line(
        color=CURRENT, strokeDash=[5, 3], strokeWidth=1.5
    )
    drawn = [equal.encode(x=x, y=y), points] if ends[0] < ends[1] else [points]
    return alt.layer(*drawn).properties(width=WIDTH - 60, height=300, title=title(finding, sample))


def stacked_chart(
    numbers: pl.DataFrame,
    *,
    colours: Mapping[str, str],
    finding: str,
    sample: str,
    number_title: str,
) -> alt.VConcatChart:
    """Draw numbers by class over time, stacked, a panel per level.

    Args:
        numbers: ``time``, ``level`` (such as a share, in the order of appearance), ``class_name``, ``number``.
        colours: Colours by class, the lowest last; `QUEUE_COLOURS` or `TASK_COLOURS`.
        finding: Title.
        sample: Subtitle.
        number_title: Title of the y axes with its unit in brackets.
    """
    need(numbers, "time level class_name number")
    order = list(colours)
    places = {name: place for place, name in enumerate(order)}
    shown = closed(numbers).with_columns(
        place=pl.col("class_name").replace_strict(places, return_dtype=pl.Int64)
    )
    levels = shown["level"].unique(maintain_order=True).to_list()
    colour = _colour(shown["class_name"].to_list(), colours)
    panels = []
    for level in levels:
        areas = (
            alt.Chart(shown.filter(pl.col("level") == level))
            .mark_area(interpolate="step-after")
            .encode(
                x=alt.X("time:T", title=None, axis=_days()),
                y=alt.Y("number:Q", title=number_title, stack="zero", axis=alt.Axis(minExtent=34)),
                color=colour,
                order=alt.Order("place:Q", sort="descending"),
            )
        )
        heading = alt.Title(level, fontSize=12, offset=4) if len(levels) > 1 else alt.Title("")
        panels.append(areas.properties(width=WIDTH - 40, height=150, title=heading))
    stacked: alt.VConcatChart = alt.vconcat(*panels, spacing=14)
    return stacked.properties(title=title(finding, sample))


def usage_chart(usage: pl.DataFrame, *, finding: str, sample: str) -> alt.ConcatChart:
    """Draw what runs against the target over time, a panel per share; the dashed line is the target.

    Args:
        usage: ``gshare`` (in the order of appearance), ``time``, ``usage`` [1].
        finding: Title.
        sample: Subtitle.
    """
    need(usage, "gshare time usage")
    shown = percent(closed(usage), "usage")
    panels = [
        _panel_of_share(shown.filter(pl.col("gshare") == name), name)
        for name in shown["gshare"].unique(maintain_order=True)
    ]
    return alt.concat(*panels, columns=2, spacing=14).properties(title=title(finding, sample))


def _panel_of_share(rows: pl.DataFrame, name: str) -> Chart:
    y_title = "[% of target]"
    axis = alt.Axis(minExtent=30, tickCount=4)
    highest = 1.06 * max([115.0, *rows["usage"].drop_nulls()])
    scale = alt.Scale(domain=[0, highest], nice=False)  # no label at the top: panels stay in line
    y = alt.Y("usage:Q", title=y_title, scale=scale, axis=axis)
    x = alt.X("time:T", title=None, axis=_days(4))
    base = alt.Chart(rows)
    area = base.mark_area(color=GRID, interpolate="step-after").encode(x=x, y=y)
    line = base.mark_line(color=INK, strokeWidth=1.5, interpolate="step-after").encode(x=x, y=y)
    target = (
        alt.Chart(pl.DataFrame({"usage": [100.0]}))
        .mark_rule(color=LIMIT, strokeDash=[5, 3], strokeWidth=1.5)
        .encode(y=alt.Y("usage:Q", title=y_title))
    )
    return alt.layer(area, line, target).properties(
        width=(WIDTH - 70) // 2, height=96, title=alt.Title(name, fontSize=12, offset=4)
    )


def _colour(
    present: Sequence[str],
    colours: Mapping[str, str],
    heading: str | None = None,
    *,
    symbol: str = "square",
) -> alt.Color:
    """Return the colour channel of a column ``class_name``, of the classes that are there."""
    shown = [name for name in colours if name in set(present)]
    scale = alt.Scale(domain=shown, range=[colours[name] for name in shown])
    legend = alt.Legend(title=heading, symbolType=symbol, symbolOpacity=1, symbolSize=140)
    return alt.Color("class_name:N", scale=scale, legend=legend)


def _days(count: int = 8) -> alt.Axis:
    return alt.Axis(format="%d %b", tickCount=count, grid=False, labelOverlap=True)


def _log(values: Sequence[float]) -> alt.Scale:
    """Return a logarithmic scale around positive values."""
    kept = [value for value in values if value and value > 0] or [1.0]
    return alt.Scale(type="log", domain=[min(kept) / 1.2, max(kept) * 1.2], nice=False)


def _hours(values: Sequence[float]) -> alt.Axis:
    """Return an axis of hours with ticks that people count in."""
    kept = [value for value in values if value and value > 0] or [1.0]
    inside = [tick for tick in HOUR_TICKS if min(kept) / 1.2 <= tick <= max(kept) * 1.2]
    return alt.Axis(values=inside or [kept[0]], labelExpr=HOUR_LABELS)


def _label_px(names: Sequence[str]) -> int:
    return int(min(260, LETTER * max(len(name) for name in names)))
