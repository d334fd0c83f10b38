"""Charts of threshold calibration, one function each; every frame is aggregated already."""

from __future__ import annotations

import math

import altair as alt
import polars as pl

from brokerlab.charts.frames import need, percent
from brokerlab.charts.theme import CURRENT, INK, LIMIT, OTHER, PROPOSED, WIDTH, title

__all__ = ["effects_chart", "pareto_chart", "screen_chart"]
Chart = alt.LayerChart | alt.FacetChart
"""What a layered chart is to the type checker."""
ROW = 20
"""Height of a line of a chart [px]."""
STATES = {
    "tried": (OTHER, "circle"),
    "on the front": (INK, "circle"),
    "now": (CURRENT, "square"),
    "chosen": (PROPOSED, "diamond"),
}
"""What a setting is, its colour and shape; the order in which they are drawn."""
JUDGES = {"can be simulated": "#33475b", "screened only": OTHER}
"""What can be done about a key, and its colour."""
EVEN = 5
"""Effects up to so many per cent are drawn evenly, larger ones by factors [%]."""
TICKS = (0, 5, 10, 20, 50, 100, 200, 500, 1000)
SHORT = "datum.value >= 1000 ? format(datum.value, '~s') : format(datum.value, '~g')"


def effects_chart(effects: pl.DataFrame, *, finding: str, sample: str, effect_title: str) -> alt.ConcatChart:  # fmt: skip
    """Draw what each value of each key does to the objective, against now, a panel per key.

    Args:
        effects: ``key``, ``unit``, ``value`` and ``current`` [unit; current null: none], ``scale`` (linear, log), ``effect,
            lo, hi`` [1], ``state`` (a key of `STATES`); keys in order of appearance.
        finding: Title.
        sample: Subtitle.
        effect_title: Title of the y axes with its unit in brackets.
    """
    need(effects, "key unit value current scale effect lo hi state")
    shown = percent(effects, "effect", "lo", "hi")
    ends = [0.0, *shown["lo"].drop_nulls(), *shown["hi"].drop_nulls(), *shown["effect"]]
    span = [min(ends), max(ends)]
    panels = [
        _panel_of_key(shown.filter(pl.col("key") == name), span, effect_title)
        for name in shown["key"].unique(maintain_order=True)
    ]
    return alt.concat(*panels, columns=2, spacing=16).properties(title=title(finding, sample))


def _panel_of_key(rows: pl.DataFrame, span: list[float], effect_title: str) -> Chart:
    """Draw one key; what is now is grey: a line at its value, and one at no difference."""
    row = rows.row(0, named=True)
    x_title = f"value [{row['unit'] or '1'}]"
    values = [*rows["value"], *([] if row["current"] is None else [row["current"]])]
    scale, axis = _axis_of_values(min(values), max(values), log=row["scale"] == "log")
    x = alt.X("value:Q", title=x_title, scale=scale, axis=axis)
    y_scale = alt.Scale(type="symlog", constant=EVEN, domain=span, padding=6, nice=False)
    ticks = sorted({sign * tick for tick in TICKS for sign in (-1, 1)})
    y_axis = alt.Axis(values=[tick for tick in ticks if span[0] <= tick <= span[1]])
    base = alt.Chart(rows).encode(x=x)
    bars = base.mark_rule(strokeWidth=1.5, color=INK).encode(
        y=alt.Y("lo:Q", title=effect_title, scale=y_scale, axis=y_axis), y2="hi:Q"
    )
    points = base.mark_point(filled=True, size=60, opacity=1).encode(
        y=alt.Y("effect:Q", title=effect_title, scale=y_scale, axis=y_axis), **_look(rows)
    )
    zero = alt.Chart(pl.DataFrame({"zero": [0.0]})).mark_rule(color=CURRENT, strokeWidth=1.5)
    layers = [
        zero.encode(y=alt.Y("zero:Q", title=effect_title, scale=y_scale, axis=y_axis)),
        bars,
        points,
    ]
    if row["current"] is not None:
        here = alt.Chart(rows.head(1)).mark_rule(color=CURRENT, strokeWidth=2, strokeDash=[5, 3])
        layers.insert(0, here.encode(x=alt.X("current:Q", title=x_title)))
    return alt.layer(*layers).properties(
        width=(WIDTH - 60) // 2, height=130, title=alt.Title(row["key"], fontSize=12, offset=4)
    )


def _axis_of_values(low: float, high: float, *, log: bool) -> tuple[alt.Scale, alt.Axis]:
    """Return scale and axis: linear, or a tick per power of ten, and 0 where it is a value."""
    if not log:
        axis = alt.Axis(tickCount=5, grid=False, labelExpr=SHORT)
        return alt.Scale(domain=[low, high], nice=False, padding=6), axis
    first = math.floor(math.log10(low)) if low > 0 else 0
    powers = [10**n for n in range(first, math.ceil(math.log10(max(high, 1))) + 1)]
    ticks = [value for value in ([0] if low <= 0 else []) + powers if low <= value <= high]
    axis = alt.Axis(values=ticks, grid=False, labelExpr=SHORT, labelOverlap=True)
    if low > 0:
        return alt.Scale(type="log", domain=[low, high], nice=False, padding=6), axis
    return alt.Scale(type="symlog", constant=1, domain=[low, high], nice=False, padding=6), axis


def _look(rows: pl.DataFrame) -> dict[str, alt.Color | alt.Shape]:
    """Return colour and shape of the states that occur."""
    states = [name for name in STATES if name in set(rows["state"])]
    colours, shapes = ([STATES[name][part] for name in states] for part in (0, 1))
    return {
        "color": alt.Color("state:N", title=None, scale=alt.Scale(domain=states, range=colours)),
        "shape": alt.Shape("state:N", title=None, scale=alt.Scale(domain=states, range=shapes)),
    }


def pareto_chart(
    settings: pl.DataFrame, *, finding: str, sample: str, x_title: str, y_title: str
) -> Chart:
    """Draw settings by two objectives, those that nothing beats marked.

    Args:
        settings: ``x``, ``y``, ``state`` (a key of `STATES`), ``limit`` (value of x that must not be passed; null: none).
        finding: Title.
        sample: Subtitle.
        x_title: Title of the x axis with its unit in brackets.
        y_title: The same of the y axis.
    """
    need(settings, "x y state limit")
    order = pl.DataFrame({"state": list(STATES)}).with_row_index("place")
    shown = settings.join(order, on="state").sort("place")
    scale = alt.Scale(zero=False, padding=10)
    points = (
        alt.Chart(shown)
        .mark_point(filled=True, size=70, opacity=0.9)
        .encode(
            x=alt.X("x:Q", title=x_title, scale=scale, axis=alt.Axis(tickCount=7)),
            y=alt.Y("y:Q", title=y_title, scale=scale),
            **_look(shown),
        )
    )
    layers: list[alt.Chart] = [points]
    limit = shown["limit"].drop_nulls()
    if len(limit):
        line = alt.Chart(pl.DataFrame({"limit": [float(limit[0])]}))
        layers.append(
            line.mark_rule(color=LIMIT, strokeWidth=2, strokeDash=[2, 2]).encode(
                x=alt.X("limit:Q", title=x_title, scale=scale)
            )
        )
    return alt.layer(*layers).properties(width=WIDTH - 20, height=280, title=title(finding, sample))


def screen_chart(screened: pl.DataFrame, *, finding: str, sample: str) -> Chart:
    """Draw how many of the expected jobs each key could send elsewhere, at most.

    Args:
        screened: ``key``, ``share`` [1], ``judge`` (a key of `JUDGES`), ``words`` behind the bar; in order.
        finding: Title.
        sample: Subtitle.
    """
    need(screened, "key share judge words")
    shown = percent(screened, "share")
    y = alt.Y("key:N", title=None, sort=shown["key"].to_list(), axis=alt.Axis(labelLimit=320))
    highest = 1.22 * max(1.0, *shown["share"])
    x = alt.X(
        "share:Q",
        title="expected jobs that go elsewhere, at most [%]",
        scale=alt.Scale(domain=[0, highest], nice=False),
    )
    judges = [name for name in JUDGES if name in set(shown["judge"])]
    colour = alt.Color(
        "judge:N",
        title=None,
        scale=alt.Scale(domain=judges, range=[JUDGES[name] for name in judges]),
    )
    base = alt.Chart(shown).encode(y=y)
    bars = base.mark_bar(height=ROW - 7).encode(x=x, color=colour)
    words = base.mark_text(align="left", dx=5, color=INK, fontSize=11).encode(x="share:Q", text="words:N")  # fmt: skip
    return alt.layer(bars, words).properties(
        width=WIDTH - 160, height=alt.Step(ROW), title=title(finding, sample)
    )
