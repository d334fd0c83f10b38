"""Charts of the replay of user tasks, one function each; every frame is aggregated already.

Shares are numbers from 0 to 1 in the frames and per cent on the axes; intervals are drawn wherever there are any.
"""

from __future__ import annotations

import altair as alt
import polars as pl

from brokerlab.charts.frames import need, percent
from brokerlab.charts.theme import (
    CURRENT,
    GRID,
    INK,
    LIMIT,
    OTHER,
    PROPOSED,
    WIDTH,
    title,
)

Chart = alt.LayerChart | alt.FacetChart
"""What a layered chart is to the type checker."""

__all__ = ["classes_chart", "dots_chart", "limits_chart", "loops_chart", "lorenz_chart"]
ROW = 22
"""Height of a line of a chart [px]."""
WHOLE_TICKS = {"values": [0, 50, 100]}
LETTER = 6.6
"""Width of a letter of a label [px]."""
SIDES = {"old": (CURRENT, "circle", 9), "new": (PROPOSED, "diamond", 19)}
"""Colour, shape and place within its line of either weight [px]."""


def loops_chart(
    loops: pl.DataFrame, *, finding: str, sample: str, removed_title: str
) -> alt.HConcatChart:
    """Draw what each check removes in either locality loop, side by side.

    Args:
        loops: ``loop`` (text, the title of its panel), ``check``, ``share, lo, hi`` [1] removed by it, ``left`` [1]
            after it; both in order of appearance.
        finding: Title.
        sample: Subtitle.
        removed_title: Title of the x axes with its unit in brackets.
    """
    need(loops, "loop check share lo hi left")
    shown = percent(loops, "share", "lo", "hi", "left").with_columns(
        words=pl.format("{} → {}", _short("share"), _short("left")),
        edge=pl.max_horizontal("share", "hi"),
    )
    checks = shown["check"].unique(maintain_order=True).to_list()
    names = shown["loop"].unique(maintain_order=True).to_list()
    label_px = int(min(260, LETTER * max(len(name) for name in checks)))
    width = (WIDTH + 60 - label_px) // max(len(names), 1) - 14
    highest = 1.75 * max([1.0, *shown["edge"].to_list()])
    panels = [
        _panel_of_loop(
            shown.filter(pl.col("loop") == name), name, checks, width, highest, removed_title, first=not place
        )
        for place, name in enumerate(names)
    ]  # fmt: skip
    return alt.hconcat(*panels, spacing=14).properties(title=title(finding, sample))


def _panel_of_loop(
    rows: pl.DataFrame, name: str, checks: list[str], width: int, highest: float, removed_title: str, *, first: bool
) -> Chart:  # fmt: skip
    axis = alt.Axis(labels=first, ticks=first, grid=False)
    y = alt.Y("check:N", title=None, axis=axis, scale=alt.Scale(domain=checks))
    scale = alt.Scale(domain=[0, highest], nice=False)
    ticks = alt.Axis(**(WHOLE_TICKS if highest > 80 else {"tickCount": 4}), grid=True)
    x = alt.X("share:Q", title=removed_title, scale=scale, axis=ticks)
    base = alt.Chart(rows).encode(y=y)
    bars = base.mark_bar(color=OTHER, height=ROW - 8).encode(x=x)
    ends = base.mark_rule(color=INK, strokeWidth=1.5).encode(x="lo:Q", x2="hi:Q")
    words = base.mark_text(align="left", dx=5, fontSize=11).encode(x="edge:Q", text="words:N")
    return alt.layer(bars, ends, words).properties(
        width=width, height=alt.Step(ROW), title=alt.Title(name, fontSize=12, offset=4)
    )


def limits_chart(limits: pl.DataFrame, *, finding: str, sample: str, jobs_title: str) -> Chart:
    """Draw, queue by queue, how many jobs of a user may wait and how many do.

    Args:
        limits: ``queue``, ``max_q_len, max_q_len_lo, max_q_len_hi`` (median, 1st and 9th decile), ``u_queued_hi`` (9th
            decile of the user's jobs waiting), ``nq`` (median of all jobs waiting) [jobs]; ``words`` on the right.
        finding: Title.
        sample: Subtitle.
        jobs_title: Title of the x axis with its unit in brackets.
    """
    need(limits, "queue max_q_len max_q_len_lo max_q_len_hi u_queued_hi nq words")
    numbers = ("max_q_len_hi", "u_queued_hi", "nq")
    highest = max([10.0, *(v for name in numbers for v in limits[name].drop_nulls())])
    powers = [10**n for n in range(8) if 10**n <= 3 * highest]
    scale = alt.Scale(type="symlog", constant=1, domain=[0, 1.3 * highest], nice=False)
    axis = alt.Axis(values=[0, *powers], grid=True, labelOverlap=True)
    label_px = int(min(260, LETTER * max(len(name) for name in limits["queue"])))
    y = alt.Y("queue:N", title=None, sort=limits["queue"].to_list(), axis=alt.Axis(grid=False))
    base = alt.Chart(limits).encode(y=y)

    def at(column: str) -> alt.X:
        return alt.X(f"{column}:Q", title=jobs_title, scale=scale, axis=axis)

    span = base.mark_rule(color=LIMIT, strokeWidth=2).encode(
        x=at("max_q_len_lo"), x2="max_q_len_hi:Q"
    )
    limit = base.mark_tick(color=LIMIT, thickness=3, size=ROW - 8).encode(x=at("max_q_len"))
    every = base.mark_point(filled=True, size=45, color=OTHER, shape="square", opacity=1)
    mine = base.mark_point(filled=True, size=60, color=INK, opacity=1)
    words = base.mark_text(align="left", dx=6, fontSize=11).encode(
        x=alt.value("width"), text="words:N"
    )
    return alt.layer(
        span, limit, every.encode(x=at("nq")), mine.encode(x=at("u_queued_hi")), words
    ).properties(
        width=WIDTH - 40 - label_px, height=alt.Step(ROW), title=title(finding, sample)
    )  # fmt: skip


def classes_chart(
    classes: pl.DataFrame, *, finding: str, sample: str, share_title: str
) -> alt.HConcatChart:
    """Draw where the jobs of each class of tasks go under either weight, a panel per class of queues.

    Args:
        classes: ``level`` (class of tasks), ``part`` (class of queues), ``weight`` (old, new), ``share, lo, hi`` [1];
            levels and parts in order of appearance.
        finding: Title.
        sample: Subtitle.
        share_title: Title of the x axes with its unit in brackets.
    """
    need(classes, "level part weight share lo hi")
    shown = percent(classes, "share", "lo", "hi")
    parts = shown["part"].unique(maintain_order=True).to_list()
    levels = shown["level"].unique(maintain_order=True).to_list()
    label_px = int(min(260, LETTER * max(len(name) for name in levels)))
    width = (WIDTH + 60 - label_px) // len(parts) - 14
    panels = [
        _panel_of_part(
            shown.filter(pl.col("part") == name), name, levels, width, share_title, first=not place
        )
        for place, name in enumerate(parts)
    ]
    return alt.hconcat(*panels, spacing=14).properties(title=title(finding, sample))


def _panel_of_part(
    rows: pl.DataFrame, name: str, levels: list[str], width: int, share_title: str, *, first: bool
) -> Chart:
    axis = alt.Axis(labels=first, ticks=first, grid=True)
    y = alt.Y("level:N", title=None, sort=levels, axis=axis)
    ticks = alt.Axis(values=[0, 50, 100])
    x = alt.X("share:Q", title=share_title, scale=alt.Scale(domain=[0, 100]), axis=ticks)
    lower = alt.X("lo:Q", title=share_title, axis=ticks)
    layers = []
    for side, (colour, shape, beside) in SIDES.items():
        base = alt.Chart(rows.filter(pl.col("weight") == side)).encode(
            y=y, yOffset=alt.value(beside)
        )
        layers += [
            base.mark_rule(color=colour, strokeWidth=2).encode(x=lower, x2="hi:Q"),
            base.mark_point(filled=True, size=60, shape=shape, color=colour, opacity=1).encode(x=x),
        ]
    return alt.layer(*layers).properties(
        width=width, height=alt.Step(ROW + 6), title=alt.Title(name, fontSize=12, offset=4)
    )


def lorenz_chart(curves: pl.DataFrame, *, finding: str, sample: str) -> Chart:
    """Draw how unevenly something is divided among users, a line per quantity.

    Args:
        curves: ``quantity`` (text, in order of appearance: the first grey, the second blue, the third black),
            ``users`` and ``part`` [1]: the part that the least users together have.
        finding: Title.
        sample: Subtitle.
    """
    need(curves, "quantity users part")
    shown = percent(curves, "users", "part")
    names = shown["quantity"].unique(maintain_order=True).to_list()
    colours, dashes = [CURRENT, PROPOSED, INK], [[6, 3], [1, 0], [2, 2]]
    whole = alt.Scale(domain=[0, 100])
    legend = alt.Legend(title=None, symbolStrokeWidth=2.5, symbolSize=300, labelLimit=400)
    lines = (
        alt.Chart(shown)
        .mark_line(strokeWidth=2)
        .encode(
            x=alt.X("users:Q", title="users, those with least first [%]", scale=whole),
            y=alt.Y("part:Q", title="their part [%]", scale=whole),
            color=alt.Color("quantity:N", legend=legend, scale=alt.Scale(domain=names, range=colours[: len(names)])),
            strokeDash=alt.StrokeDash("quantity:N", legend=legend, scale=alt.Scale(domain=names, range=dashes[: len(names)])),
        )
    )  # fmt: skip
    ends = pl.DataFrame({"users": [0.0, 100.0], "part": [0.0, 100.0]})
    equal = alt.Chart(ends).mark_line(color=GRID, strokeWidth=2).encode(x="users:Q", y="part:Q")
    return alt.layer(equal, lines).properties(
        width=WIDTH - 220, height=WIDTH - 300, title=title(finding, sample)
    )


def dots_chart(dots: pl.DataFrame, *, finding: str, sample: str, value_title: str) -> Chart:
    """Draw numbers with their intervals, one line each.

    Args:
        dots: ``name``, ``value, lo, hi`` [unit of the axis].
        finding: Title.
        sample: Subtitle.
        value_title: Title of the x axis with its unit in brackets.
    """
    need(dots, "name value lo hi")
    y = alt.Y("name:N", title=None, sort=dots["name"].to_list())
    highest = max([0.0, *dots["value"].drop_nulls(), *dots["hi"].drop_nulls()])
    scale = alt.Scale(domain=[0, 1.05 * highest or 1.0], nice=False)
    base = alt.Chart(dots).encode(y=y)
    ends = base.mark_rule(color=INK, strokeWidth=2).encode(
        x=alt.X("lo:Q", title=value_title, scale=scale), x2="hi:Q"
    )
    points = base.mark_point(filled=True, size=65, color=INK, opacity=1)
    return alt.layer(ends, points.encode(x=alt.X("value:Q", title=value_title, scale=scale))).properties(
        width=WIDTH - 60, height=alt.Step(ROW + 2), title=title(finding, sample)
    )  # fmt: skip


def _short(column: str) -> pl.Expr:
    """Write per cents for labels: one decimal below ten."""
    value = pl.col(column).clip(lower_bound=0.0)
    text = pl.when(value >= 10).then(value.round(0).cast(pl.Int64).cast(pl.String))
    return pl.format("{} %", text.otherwise(value.round(1).cast(pl.String)))
