"""Charts of a brokerage replay, one function each; every frame is aggregated already.

Shares are numbers from 0 to 1 in the frames and per cent on the axes; intervals are drawn wherever there are any.
"""

from __future__ import annotations

import math

import altair as alt
import polars as pl

from brokerlab.charts.frames import need, percent
from brokerlab.charts.theme import (
    CURRENT,
    GRID,
    INK,
    OTHER,
    PROPOSED,
    SHARE_RANGE,
    WIDTH,
    title,
)

Chart = alt.LayerChart | alt.FacetChart
"""What a layered chart is to the type checker."""

__all__ = [
    "composition_chart",
    "differences_chart",
    "funnel_chart",
    "history_chart",
    "over_time_chart",
    "reasons_chart",
    "sensitivity_chart",
]
ROW = 22
"""Height of a line of a chart [px]."""
SHORT = "datum.value >= 1e6 ? datum.value / 1e6 + 'M' : datum.value >= 1e3 ? datum.value / 1e3 + 'k' : datum.value"
"""Labels of a key's values: thousands and millions are shortened."""
LETTER = 6.6
"""Width of a letter of a label [px]."""


def funnel_chart(funnel: pl.DataFrame, *, finding: str, sample: str, removed_title: str) -> Chart:
    """Draw what each check removes, in the order in which they run, and what is left after it.

    Args:
        funnel: ``check`` (text), ``share, lo, hi`` [1] removed by it (null ends: unknown), ``left`` [1] after it.
        finding: Title.
        sample: Subtitle.
        removed_title: Title of the x axis with its unit in brackets.
    """
    need(funnel, "check share lo hi left")
    shown = percent(funnel, "share", "lo", "hi", "left").with_columns(
        words=pl.format("{} → {} left", _short("share"), _short("left")),
        edge=pl.max_horizontal("share", "hi"),
    )
    y = _names(shown, "check")
    highest = 1.32 * max([1.0, *shown["edge"].to_list()])
    x = alt.X("share:Q", title=removed_title, scale=alt.Scale(domain=[0, highest], nice=False))
    base = alt.Chart(shown).encode(y=y)
    bars = base.mark_bar(color=OTHER, height=ROW - 8).encode(x=x)
    ends = base.mark_rule(color=INK, strokeWidth=1.5).encode(x="lo:Q", x2="hi:Q")
    words = base.mark_text(align="left", dx=6, fontSize=11).encode(x="edge:Q", text="words:N")
    return alt.layer(bars, ends, words).properties(
        width=WIDTH - 40, height=alt.Step(ROW), title=title(finding, sample)
    )


def over_time_chart(
    shares: pl.DataFrame, *, finding: str, sample: str, share_title: str
) -> alt.ConcatChart:
    """Draw how the share that each check removes changes with time, a panel per check.

    Args:
        shares: ``time``, ``check``, ``share, lo, hi`` [1]; the panels stand in the order in which checks appear.
        finding: Title.
        sample: Subtitle.
        share_title: Title of the y axes with its unit in brackets.
    """
    need(shares, "time check share lo hi")
    shown = percent(shares, "share", "lo", "hi")
    panels = [
        _panel_over_time(shown.filter(pl.col("check") == name), name, share_title)
        for name in shown["check"].unique(maintain_order=True)
    ]
    return alt.concat(*panels, columns=2, spacing=14).properties(title=title(finding, sample))


def _panel_over_time(rows: pl.DataFrame, name: str, share_title: str) -> Chart:
    x = alt.X("time:T", title=None, axis=alt.Axis(format="%d %b", tickCount=5, grid=False))
    highest = max([1.0, *rows["hi"].drop_nulls(), *rows["share"].drop_nulls()])
    aligned = alt.Axis(minExtent=24)
    y = alt.Y("share:Q", title=share_title, scale=alt.Scale(domain=[0, highest]), axis=aligned)
    base = alt.Chart(rows).encode(x=x)
    band = base.mark_area(color=GRID).encode(
        y=alt.Y("lo:Q", title=share_title, axis=aligned), y2="hi:Q"
    )
    line = base.mark_line(color=INK, strokeWidth=1.6, point={"size": 14, "color": INK})
    return alt.layer(band, line.encode(y=y)).properties(
        width=(WIDTH - 60) // 2, height=96, title=alt.Title(name, fontSize=12, offset=4)
    )


def reasons_chart(reasons: pl.DataFrame, *, finding: str, sample: str, share_title: str) -> Chart:
    """Draw a table of shares: what became of the queues, level by level.

    Args:
        reasons: ``level`` (such as a gshare), ``check``, ``share`` [1]; both in the order of appearance.
        finding: Title.
        sample: Subtitle.
        share_title: Title of the colour scale with its unit in brackets.
    """
    need(reasons, "level check share")
    shown = percent(reasons, "share").with_columns(
        words=pl.when(pl.col("share") >= 0.5)
        .then(pl.col("share").round(0).cast(pl.Int64).cast(pl.String))
        .otherwise(pl.lit("")),
    )
    levels = shown["level"].unique(maintain_order=True).to_list()
    checks = shown["check"].unique(maintain_order=True).to_list()
    label_px = int(min(260, LETTER * max(len(name) for name in levels)))
    base = alt.Chart(shown).encode(
        x=alt.X(
            "check:N",
            title=None,
            sort=checks,
            axis=alt.Axis(orient="top", labelAngle=-35, grid=False),
        ),
        y=alt.Y("level:N", title=None, sort=levels, axis=alt.Axis(grid=False)),
    )
    cells = base.mark_rect(stroke="white", strokeWidth=1.5).encode(
        color=alt.Color(
            "share:Q",
            scale=alt.Scale(domain=[0, 100], range=list(SHARE_RANGE)),
            legend=alt.Legend(title=share_title, orient="bottom", gradientLength=160),
        )
    )
    words = base.mark_text(fontSize=11).encode(
        text="words:N",
        color=alt.condition("datum.share > 55", alt.value("white"), alt.value(INK)),
    )
    return alt.layer(cells, words).properties(
        width=WIDTH + 30 - label_px, height=alt.Step(ROW), title=title(finding, sample)
    )


def composition_chart(composition: pl.DataFrame, *, finding: str, sample: str) -> alt.HConcatChart:
    """Draw the share of each factor in the spread of the weights, a panel per factor.

    Args:
        composition: ``level`` (all, or a gshare), ``factor``, ``share, lo, hi`` [1], ``n_tasks``; in order.
        finding: Title.
        sample: Subtitle.
    """
    need(composition, "level factor share lo hi n_tasks")
    shown = percent(composition, "share", "lo", "hi").with_columns(
        name=pl.format("{}  ({} tasks)", "level", "n_tasks")
    )
    factors = shown["factor"].unique(maintain_order=True).to_list()
    label_px = int(min(260, LETTER * max(len(name) for name in shown["name"])))
    width = max(70, (WIDTH + 60 - label_px) // len(factors) - 12)
    ends = [*shown["lo"].drop_nulls(), *shown["hi"].drop_nulls(), *shown["share"].drop_nulls()]
    domain = [min(0.0, *ends), max(100.0, *ends)]
    panels = [
        _panel_of_factor(
            shown.filter(pl.col("factor") == name), name, width, domain, first=not place
        )
        for place, name in enumerate(factors)
    ]
    return alt.hconcat(*panels, spacing=12).properties(title=title(finding, sample))


def _panel_of_factor(
    rows: pl.DataFrame, name: str, width: int, domain: list[float], *, first: bool
) -> Chart:
    axis = alt.Axis(labels=first, ticks=first, grid=True)
    y = alt.Y("name:N", title=None, sort=rows["name"].to_list(), axis=axis)
    x = alt.X(
        "share:Q", title="share [%]", scale=alt.Scale(domain=domain), axis=alt.Axis(tickCount=3)
    )
    base = alt.Chart(rows).encode(y=y)
    ends = base.mark_rule(color=INK, strokeWidth=2).encode(
        x=alt.X("lo:Q", title="share [%]"), x2="hi:Q"
    )
    points = base.mark_point(filled=True, size=55, color=INK, opacity=1).encode(x=x)
    return alt.layer(_line_at_zero("share [%]"), ends, points).properties(
        width=width, height=alt.Step(ROW), title=alt.Title(name, fontSize=12, offset=4)
    )


def differences_chart(
    differences: pl.DataFrame, *, finding: str, sample: str, difference_title: str
) -> Chart:
    """Draw differences with their intervals, one line each, against zero.

    Args:
        differences: ``name`` (text), ``share, lo, hi`` [1].
        finding: Title.
        sample: Subtitle.
        difference_title: Title of the x axis with its unit in brackets.
    """
    need(differences, "name share lo hi")
    shown = percent(differences, "share", "lo", "hi")
    base = alt.Chart(shown).encode(y=_names(shown, "name"))
    ends = base.mark_rule(color=PROPOSED, strokeWidth=2).encode(
        x=alt.X("lo:Q", title=difference_title, scale=alt.Scale(padding=12)), x2="hi:Q"
    )
    points = base.mark_point(filled=True, size=80, shape="diamond", color=PROPOSED, opacity=1)
    return alt.layer(_line_at_zero(difference_title), ends, points.encode(x="share:Q")).properties(
        width=WIDTH - 60, height=alt.Step(ROW + 2), title=title(finding, sample)
    )


def history_chart(history: pl.DataFrame, *, chance: float, finding: str, sample: str) -> Chart:
    """Draw where jobs really ran, by what the replay says of the queue.

    Args:
        history: ``name`` (candidate, or the check that says skip), ``share, lo, hi`` [1].
        chance: Share of jobs at a candidate if queues had been drawn at random [1].
        finding: Title.
        sample: Subtitle.
    """
    need(history, "name share lo hi")
    shown = percent(history, "share", "lo", "hi")
    x_title = "jobs that ran [%]"
    base = alt.Chart(shown).encode(y=_names(shown, "name"))
    bars = base.mark_bar(color=OTHER, height=ROW - 8).encode(
        x=alt.X("share:Q", title=x_title, scale=alt.Scale(domainMin=0))
    )
    ends = base.mark_rule(color=INK, strokeWidth=1.5).encode(x="lo:Q", x2="hi:Q")
    first = shown.head(1).select("name", chance=pl.lit(100 * chance))
    mark = (
        alt.Chart(first)
        .mark_tick(color=CURRENT, thickness=3, size=ROW)
        .encode(x="chance:Q", y=_names(shown, "name"))
    )
    return alt.layer(bars, ends, mark).properties(
        width=WIDTH - 60, height=alt.Step(ROW), title=title(finding, sample)
    )


def sensitivity_chart(
    curves: pl.DataFrame, *, finding: str, sample: str, share_title: str
) -> alt.ConcatChart:
    """Draw what each key would change over its range, a panel per key, the current value marked.

    Args:
        curves: ``key``, ``unit``, ``value`` and ``current`` [unit], ``scale`` (``linear`` or ``log``), ``share, lo, hi``
            [1]; keys in order of appearance.
        finding: Title.
        sample: Subtitle.
        share_title: Title of the y axes with its unit in brackets.
    """
    need(curves, "key unit value current scale share lo hi")
    shown = percent(curves, "share", "lo", "hi")
    highest = max([1.0, *shown["hi"].drop_nulls(), *shown["share"].drop_nulls()])
    panels = [
        _panel_of_key(shown.filter(pl.col("key") == name), highest, share_title)
        for name in shown["key"].unique(maintain_order=True)
    ]
    return alt.concat(*panels, columns=2, spacing=16).properties(title=title(finding, sample))


def _panel_of_key(rows: pl.DataFrame, highest: float, share_title: str) -> Chart:
    """Draw one key; the current value is a grey line."""
    row = rows.row(0, named=True)
    values = [*rows["value"], row["current"]]
    x_title = f"value [{row['unit'] or '1'}]"
    scale, axis = _axis_of_values(min(values), max(values), log=row["scale"] == "log")
    x = alt.X("value:Q", title=x_title, scale=scale, axis=axis)
    y = alt.Y("share:Q", title=share_title, scale=alt.Scale(domain=[0, highest]))
    base = alt.Chart(rows).encode(x=x)
    band = base.mark_area(color=PROPOSED, opacity=0.18).encode(
        y=alt.Y("lo:Q", title=share_title), y2="hi:Q"
    )
    line = base.mark_line(color=PROPOSED, strokeWidth=2, point={"size": 30, "color": PROPOSED})
    here = alt.Chart(rows.head(1)).mark_rule(color=CURRENT, strokeWidth=2, strokeDash=[5, 3])
    mark = here.encode(x=alt.X("current:Q", title=x_title))
    return alt.layer(band, line.encode(y=y), mark).properties(
        width=(WIDTH - 60) // 2, height=110, title=alt.Title(row["key"], fontSize=12, offset=4)
    )


def _axis_of_values(low: float, high: float, *, log: bool) -> tuple[alt.Scale, alt.Axis]:
    """Return scale and axis of a key's values: linear, or one tick per power of ten, and 0 where it is one of them."""
    if not log:
        axis = alt.Axis(tickCount=5, grid=False, labelExpr=SHORT)
        return alt.Scale(domain=[low, high], nice=False), axis
    first = math.floor(math.log10(low)) if low > 0 else 0
    powers = [10**n for n in range(first, math.ceil(math.log10(high)) + 1)]
    ticks = [value for value in ([0] if low <= 0 else []) + powers if low <= value <= high]
    axis = alt.Axis(values=ticks, grid=False, labelExpr=SHORT, labelOverlap=True)
    if low > 0:
        return alt.Scale(type="log", domain=[low, high], nice=False), axis
    return alt.Scale(type="symlog", constant=1, domain=[low, high], nice=False), axis


def _names(shown: pl.DataFrame, column: str) -> alt.Y:
    """Return the axis of names, in their order."""
    return alt.Y(f"{column}:N", title=None, sort=shown[column].to_list())


def _line_at_zero(x_title: str) -> alt.Chart:
    zero = alt.Chart(pl.DataFrame({"zero": [0.0]}))
    line: alt.Chart = zero.mark_rule(color=CURRENT, strokeWidth=1.5).encode(
        x=alt.X("zero:Q", title=x_title)
    )
    return line


def _short(column: str) -> pl.Expr:
    """Write per cents for labels: one decimal below ten."""
    value = pl.col(column)
    text = pl.when(value >= 10).then(value.round(0).cast(pl.Int64).cast(pl.String))
    return pl.format("{} %", text.otherwise(value.round(1).cast(pl.String)))
