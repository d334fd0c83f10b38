"""Charts of a scout calibration, one function each; every frame is aggregated already.

Shares are numbers from 0 to 1 in the frames and per cent on the axes. Intervals are drawn wherever the
frame has them. The column ``setting`` is ``current`` or ``proposed``.
"""

from typing import Any

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
    SETTINGS,
    WIDTH,
    setting_colour,
    setting_shape,
    title,
)

Chart = alt.LayerChart | alt.FacetChart
"""What a layered chart is to the type checker."""

SETTING_ORDER = list(SETTINGS)


def frontier_chart(
    settings: pl.DataFrame,
    *,
    limit: float,
    finding: str,
    sample: str,
    waste_title: str,
) -> Chart:
    """Draw what every setting costs against how often it kills, with the limit between them.

    Args:
        settings: One row per setting: ``label`` (text), ``setting`` (current, proposed, or null for the
            others), ``waste_pct`` [%], ``exceed_rate, exceed_lo, exceed_hi`` [1], ``frontier`` (bool: no
            other setting is better in both).
        limit: Highest allowed exceed rate [1].
        finding: Title.
        sample: Subtitle.
        waste_title: Title of the x axis with its unit in brackets.

    Returns:
        The chart; settings far above limit and current setting are outside the picture.

    Raises:
        SchemaError: A column is missing or there are too many rows.
    """
    need(settings, "label setting waste_pct exceed_rate exceed_lo exceed_hi frontier")
    shown = percent(settings, "exceed_rate", "exceed_lo", "exceed_hi")
    named = shown.filter(pl.col("setting").is_not_null())
    highest = max([limit * 100, *named["exceed_hi"].drop_nulls().to_list()]) * 1.6
    shown = shown.filter((pl.col("exceed_rate") <= highest) | pl.col("setting").is_not_null())
    x = alt.X("waste_pct:Q", title=waste_title, scale=alt.Scale(zero=False))
    y = alt.Y(
        "exceed_rate:Q",
        title="jobs that exceed their request [%]",
        scale=alt.Scale(domain=[0, highest], clamp=True),
    )
    base = alt.Chart(shown)
    others = base.transform_filter("datum.setting === null").mark_circle(
        size=16, color=OTHER, opacity=0.7
    )
    edge = base.transform_filter("datum.frontier").mark_line(
        color=INK, strokeWidth=1, interpolate="linear"
    )
    marked = alt.Chart(shown.filter(pl.col("setting").is_not_null()))
    bars = marked.mark_rule(strokeWidth=2).encode(
        x=x, y=alt.Y("exceed_lo:Q"), y2="exceed_hi:Q", color=setting_colour(named["setting"])
    )
    points = marked.mark_point(filled=True, size=130, opacity=1).encode(
        x=x, y=y, color=setting_colour(named["setting"]), shape=setting_shape(named["setting"])
    )
    names = _text(
        marked.encode(x=x, y=y, text="label:N"),
        setting_colour(named["setting"]),
        align="left",
        dx=10,
        dy=-9,
    )
    line, text = _reference(limit * 100, f"limit {limit * 100:g} %", vertical=False)
    return alt.layer(
        others.encode(x=x, y=y),
        edge.encode(x=x, y=y, order="waste_pct:Q"),
        line,
        text,
        bars,
        points,
        names,
    ).properties(width=WIDTH, height=320, title=title(finding, sample))


def strata_chart(
    strata: pl.DataFrame, *, limit: float, finding: str, sample: str
) -> alt.VConcatChart:
    """Draw the exceed rate of every stratum with its interval, current beside proposed.

    Args:
        strata: ``stratum`` (such as processing type), ``level`` (its value), ``setting``,
            ``exceed_rate, exceed_lo, exceed_hi`` [1], ``n_tasks``; worst level first.
        limit: Highest allowed exceed rate [1].
        finding: Title.
        sample: Subtitle.
    """
    need(strata, "stratum level setting exceed_rate exceed_lo exceed_hi n_tasks")
    shown = percent(strata, "exceed_rate", "exceed_lo", "exceed_hi").with_columns(
        name=pl.format("{}  ({} tasks)", "level", "n_tasks"), limit=pl.lit(limit * 100)
    )
    highest = max([100 * limit * 1.5, *shown["exceed_hi"].drop_nulls().to_list()])
    label_px = int(min(260, 6.5 * max(len(name) for name in shown["name"])))  # panels share an axis
    names = shown["stratum"].unique(maintain_order=True).to_list()
    panels = [
        _stratum_panel(
            shown.filter(pl.col("stratum") == name),
            name,
            highest,
            label_px=label_px,
            last=name == names[-1],
        )
        for name in names
    ]
    return alt.vconcat(*panels, spacing=8).properties(
        title=title(finding, f"{sample}. Red dashes: limit {limit * 100:g} %.")
    )


def _stratum_panel(
    levels: pl.DataFrame, stratum: str, highest: float, *, label_px: int, last: bool
) -> Chart:
    """Draw the levels of one stratum, one line each, current above proposed."""
    settings = levels["setting"].unique().to_list()
    axis = alt.Axis(minExtent=label_px, maxExtent=label_px)
    x = alt.X(
        "exceed_lo:Q",
        title="jobs that exceed their request [%]" if last else None,
        axis=alt.Axis(labels=last, ticks=last),
        scale=alt.Scale(domain=[0, highest], nice=True),
    )
    base = alt.Chart(levels).encode(
        y=alt.Y(
            "name:N",
            title=None,
            sort=levels["name"].unique(maintain_order=True).to_list(),
            axis=axis,
        ),
        yOffset=alt.YOffset("setting:N", sort=SETTING_ORDER),
        color=setting_colour(settings),
    )
    bars = base.mark_rule(strokeWidth=2).encode(x=x, x2="exceed_hi:Q")
    points = base.mark_point(filled=True, size=60, opacity=1).encode(
        x="exceed_rate:Q", shape=setting_shape(settings)
    )
    line = alt.Chart(levels.head(1)).mark_rule(color=LIMIT, strokeDash=[6, 3], strokeWidth=1.5)
    return alt.layer(line.encode(x="limit:Q"), bars, points).properties(
        width=WIDTH - label_px + 60,
        height=26 * levels["name"].n_unique(),
        title=alt.Title(stratum, fontSize=12, offset=2),
    )


def coverage_chart(coverage: pl.DataFrame, *, limit: float, finding: str, sample: str) -> Chart:
    """Draw, by number of scouts, the coverage that theory promises and the one observed.

    Args:
        coverage: ``n_scouts``, ``promised_lo, promised, promised_hi`` [1] (no margin), ``setting``,
            ``observed, observed_lo, observed_hi`` [1].
        limit: Highest allowed exceed rate [1]; the wanted coverage is one minus it.
        finding: Title.
        sample: Subtitle.
    """
    need(
        coverage,
        "n_scouts promised_lo promised promised_hi setting observed observed_lo observed_hi",
    )
    shares = [name for name in coverage.columns if name.startswith(("promised", "observed"))]
    shown = percent(coverage, *shares)
    x = alt.X("n_scouts:O", title="scouts used for the estimate [1]", axis=alt.Axis(labelAngle=0))
    settings = shown["setting"].unique().to_list()
    promise = shown.unique("n_scouts").sort("n_scouts")
    ticks = (
        alt.Chart(promise)
        .mark_bar(color=GRID, width={"band": 0.86})
        .encode(
            x=x,
            y=alt.Y(
                "promised_lo:Q", title="jobs within their request [%]", scale=alt.Scale(zero=False)
            ),
            y2="promised_hi:Q",
        )
    )
    middle = (
        alt.Chart(promise)
        .mark_tick(color=INK, thickness=1.5, width={"band": 0.86})
        .encode(x=x, y="promised:Q")
    )
    base = alt.Chart(shown).encode(
        x=x,
        xOffset=alt.XOffset("setting:N", sort=SETTING_ORDER),
        color=setting_colour(settings),
    )
    bars = base.mark_rule(strokeWidth=2).encode(y="observed_lo:Q", y2="observed_hi:Q")
    points = base.mark_point(filled=True, size=70, opacity=1).encode(
        y="observed:Q", shape=setting_shape(settings)
    )
    line, text = _reference(100 * (1 - limit), f"wanted {100 * (1 - limit):g} %", vertical=False)
    note = (
        "Points: observed. Band and tick: what the current rank of n scouts like the rest promises on average, "
        "without margin."
    )
    return alt.layer(ticks, middle, line, text, bars, points).properties(
        width=min(WIDTH, 140 * promise.height + 60),
        height=280,
        title=title(finding, f"{sample}. {note}"),
    )


def task_spread_chart(
    spread: pl.DataFrame, *, finding: str, sample: str, ratio_title: str
) -> Chart:
    """Draw the distribution over tasks of request over need, current and proposed.

    Args:
        spread: ``setting``, ``share_of_tasks`` [1] rising, ``ratio`` [1]: that share of the tasks has at
            most this ratio.
        finding: Title.
        sample: Subtitle.
        ratio_title: Title of the x axis with its unit in brackets.
    """
    need(spread, "setting share_of_tasks ratio")
    shown = percent(spread, "share_of_tasks")
    settings = shown["setting"].unique().to_list()
    dash = alt.StrokeDash(
        "setting:N",
        scale=alt.Scale(domain=["current", "proposed"], range=[[5, 3], [1, 0]]),
        legend=None,
    )
    curves = (
        alt.Chart(shown)
        .mark_line(strokeWidth=2.2, interpolate="linear")
        .encode(
            x=alt.X("ratio:Q", title=ratio_title, scale=alt.Scale(type="log", nice=False)),
            y=alt.Y(
                "share_of_tasks:Q", title="tasks at or below [%]", scale=alt.Scale(domain=[0, 100])
            ),
            color=setting_colour(settings),
            strokeDash=dash,
        )
    )
    line, text = _reference(1.0, "request = use", vertical=True, colour=INK)
    return alt.layer(line, text, curves).properties(
        width=WIDTH, height=260, title=title(finding, sample)
    )


def before_after_chart(effects: pl.DataFrame, *, finding: str, sample: str) -> Chart:
    """Draw the differences on the proof period with their intervals.

    Args:
        effects: ``quantity`` (text), ``difference_pct, lo_pct, hi_pct`` [% of the current value].
        finding: Title.
        sample: Subtitle.
    """
    need(effects, "quantity difference_pct lo_pct hi_pct")
    y = alt.Y("quantity:N", title=None, sort=effects["quantity"].to_list())
    x_title = "proposed minus current [% of current]"
    base = alt.Chart(effects).encode(y=y)
    bars = base.mark_rule(strokeWidth=2, color=PROPOSED).encode(
        x=alt.X("lo_pct:Q", title=x_title, scale=alt.Scale(padding=12)), x2="hi_pct:Q"
    )
    points = base.mark_point(
        filled=True, size=90, shape="diamond", color=PROPOSED, opacity=1
    ).encode(x="difference_pct:Q")
    zero = (
        alt.Chart(pl.DataFrame({"zero": [0.0]}))
        .mark_rule(color=CURRENT, strokeWidth=2)
        .encode(x=alt.X("zero:Q", title=x_title))
    )
    return alt.layer(zero, bars, points).properties(
        width=WIDTH - 60, height=alt.Step(30), title=title(finding, sample)
    )


def gap_chart(gap: pl.DataFrame, *, finding: str, sample: str) -> Chart:
    """Draw how much heavier or lighter the scouts are than the rest of their task.

    Args:
        gap: ``level`` (such as a processing type), ``difference_pct, lo_pct, hi_pct`` [%] (scouts over
            the rest, minus one), ``n_tasks``.
        finding: Title.
        sample: Subtitle.
    """
    need(gap, "level difference_pct lo_pct hi_pct n_tasks")
    shown = gap.with_columns(name=pl.format("{}  ({} tasks)", "level", "n_tasks"))
    y = alt.Y("name:N", title=None, sort=shown["name"].to_list())
    x_title = "scouts against the rest of their task [%]"
    bars = (
        alt.Chart(shown)
        .mark_rule(strokeWidth=2, color=INK)
        .encode(x=alt.X("lo_pct:Q", title=x_title, scale=alt.Scale(padding=12)), x2="hi_pct:Q", y=y)
    )
    points = (
        alt.Chart(shown)
        .mark_point(filled=True, size=70, color=INK, opacity=1)
        .encode(x="difference_pct:Q", y=y)
    )
    zero = (
        alt.Chart(pl.DataFrame({"zero": [0.0]}))
        .mark_rule(color=CURRENT, strokeWidth=2)
        .encode(x=alt.X("zero:Q", title=x_title))
    )
    return alt.layer(zero, bars, points).properties(
        width=WIDTH - 60, height=alt.Step(24), title=title(finding, sample)
    )


def _reference(
    value: float, words: str, *, vertical: bool, colour: str = LIMIT
) -> tuple[alt.Chart, Chart]:
    """Return a dashed line, red for a limit, and its name at the edge with most room."""
    data = alt.Chart(pl.DataFrame({"limit": [value], "words": [words]}))
    line = data.mark_rule(color=colour, strokeDash=[6, 3], strokeWidth=1.5)
    if vertical:
        placed = data.encode(x="limit:Q", y=alt.value(8), text="words:N")
        return line.encode(x="limit:Q"), _text(placed, alt.value(colour), align="left", dx=5)
    placed = data.encode(x=alt.value("width"), y="limit:Q", text="words:N")
    return line.encode(y="limit:Q"), _text(placed, alt.value(colour), align="right", dx=-2, dy=-7)


def _text(placed: alt.Chart, colour: Any, *, align: str, dx: int, dy: int = 0) -> Chart:
    """Write bold text on a white edge, readable over dots and lines."""
    mark: Any = {"fontWeight": "bold", "align": align, "dx": dx, "dy": dy}
    edge = placed.mark_text(
        **mark, color="white", stroke="white", strokeWidth=4, strokeJoin="round"
    )
    return alt.layer(edge, placed.mark_text(**mark).encode(color=colour))
