"""Charts of estimators of memory and walltime, one function each; every frame is aggregated already."""

from __future__ import annotations

import math

import altair as alt
import polars as pl

from brokerlab.charts import primitives
from brokerlab.charts.frames import need, percent
from brokerlab.charts.theme import CURRENT, INK, LIMIT, PROPOSED, WIDTH, title

ROLES = {
    "deployed": CURRENT,
    "ours": PROPOSED,
    "model": "#5b9bc8",
    "rule": "#8a98a6",
    "limit": LIMIT,
}
"""What an estimator is to the page, and its colour."""
HEIGHT = 330
SYMLOG = 0.5
"""Exceed rates below it are drawn evenly, above it by their logarithm [%]."""
LETTER = 5.8
"""Width of a letter of a name [px]."""
DASHES = {"deployed": [5, 3], "ours": [1, 0], "model": [2, 2], "rule": [1, 0], "limit": [7, 3]}


def exceed_frontier(
    points: pl.DataFrame,
    *,
    marks: pl.DataFrame,
    over_title: str = "over-allocated [% of use]",
    exceed_title: str = "jobs above their allocation [%]",
) -> primitives.Chart:
    """Draw how often jobs exceed against what is over-allocated, a line per estimator, its settings along it.

    Args:
        points: ``line`` (``current``, ``proposed`` or an estimator's name), ``exceed, over_allocation`` [1].
        marks: The same numbers of points that are named, and their ``label``.
        over_title: Of the x axis.
        exceed_title: Of the y axis.
    """
    return primitives.line(
        points,
        "over_allocation",
        "exceed",
        x_title=over_title,
        y_title=exceed_title,
        colour="line",
        marks=marks,
        height=260,
    )


def coverage_by_known(coverage: pl.DataFrame, *, level: float) -> primitives.Chart:
    """Draw how many jobs stay within their bound by how many finished jobs of their task were known.

    Args:
        coverage: ``known`` (in words, in order), ``estimator``, ``coverage, coverage_lo, coverage_hi`` [1].
        level: What the bound promises [1].
    """
    return primitives.dots(
        coverage,
        "coverage",
        "known",
        title="jobs within their bound [%]",
        colour="estimator",
        references={f"asked for: {100 * level:g} %": 100 * level},
    )


def frontier_chart(
    curves: pl.DataFrame,
    *,
    over_title: str,
    exceed_title: str,
    finding: str,
    sample: str,
    most_exceed: float = 0.2,
) -> alt.ConcatChart:
    """Draw how often jobs exceed against what is allocated for nothing, a panel per clock, a line per estimator.

    Args:
        curves: ``panel``, ``estimator``, ``role`` (a key of `ROLES`), ``exceed`` and ``over`` [1], ``named`` (bool: a
            point that is marked and carries the name). An estimator with one row is a point.
        over_title: Of the x axis, with its unit in brackets.
        exceed_title: Of the y axis.
        finding: Title.
        sample: Subtitle.
        most_exceed: Larger exceed rates are not drawn [1].
    """
    need(curves, "panel estimator role exceed over named")
    names = curves["panel"].unique(maintain_order=True).to_list()
    shown = percent(curves.filter(pl.col("exceed") <= most_exceed), "exceed", "over")
    wide = shown.filter(pl.col("named"))["over"].to_list() or shown["over"].to_list() or [1.0]
    most = 1.25 * max(wide)
    x = alt.X("over:Q", title=over_title, scale=alt.Scale(domain=[0, most], nice=False))
    y = alt.Y(
        "exceed:Q",
        title=exceed_title,
        scale=alt.Scale(type="symlog", constant=SYMLOG, domain=[0, 100 * most_exceed], nice=False),
        axis=alt.Axis(values=[0, 0.2, 0.5, 1, 2, 5, 10, 20, 50], format="~g"),
    )
    width = (WIDTH + 20) // max(1, len(names)) - 40
    panels = []
    for name in names:
        rows = shown.filter(pl.col("panel") == name, pl.col("over") <= most)
        labels = _placed(rows.filter(pl.col("named")), most, 100 * most_exceed, width)
        panels.append(
            _frontier(rows, labels, x, y).properties(
                width=width, height=HEIGHT, title=alt.Title(name, fontSize=12, offset=4)
            )
        )
    return alt.concat(*panels, columns=2, spacing=16).properties(title=_title(finding, sample))


def _placed(points: pl.DataFrame, most_over: float, most_exceed: float, width: int) -> pl.DataFrame:
    """Choose where the name of each point goes; names that would lie on others are left out.

    Returns:
        The points that are named, with ``side`` (left or right) and ``below``.
    """
    rank = {
        role: place for place, role in enumerate(("deployed", "ours", "limit", "model", "rule"))
    }
    taken: list[tuple[float, float, float, float]] = []
    found = []
    top = math.log1p(most_exceed / SYMLOG)
    for row in sorted(points.to_dicts(), key=lambda r: (rank[r["role"]], r["estimator"])):
        x = width * row["over"] / most_over
        y = HEIGHT * (1 - math.log1p(row["exceed"] / SYMLOG) / top)
        reach = LETTER * len(row["estimator"]) + 7
        for below, side in ((False, "right"), (True, "right"), (False, "left"), (True, "left")):
            left = x + 7 if side == "right" else x - reach
            upper = y + 4 if below else y - 14
            box = (left, left + reach - 7, upper, upper + 12)
            inside = box[0] >= 0 and box[1] <= width + 60 and box[2] >= 0 and box[3] <= HEIGHT
            if inside and not any(_overlap(box, other) for other in taken):
                taken.append(box)
                found.append({**row, "side": side, "below": below})
                break
    schema = pl.Schema({**points.schema, "side": pl.String(), "below": pl.Boolean()})
    return pl.DataFrame(found, schema=schema)


def _overlap(one: tuple[float, ...], other: tuple[float, ...]) -> bool:
    return one[0] < other[1] and other[0] < one[1] and one[2] < other[3] and other[2] < one[3]


def _frontier(
    rows: pl.DataFrame, labels: pl.DataFrame, x: alt.X, y: alt.Y
) -> alt.LayerChart | alt.FacetChart:
    """Layer lines, points and names of one panel."""
    base = alt.Chart(rows).encode(x=x, y=y, color=_colour())
    lines = base.mark_line(strokeWidth=2, interpolate="linear", clip=True).encode(
        detail="estimator:N",
        order=alt.Order("over:Q"),
        strokeDash=alt.StrokeDash(
            "role:N", scale=alt.Scale(domain=list(DASHES), range=list(DASHES.values())), legend=None
        ),
    )
    marked = alt.Chart(rows.filter(pl.col("named"))).encode(x=x, y=y, color=_colour())
    names = [
        alt.Chart(part)
        .mark_text(
            align="left" if side == "right" else "right",
            baseline="middle",
            dx=7 if side == "right" else -7,
            dy=10 if below else -8,
            fontSize=11,
        )
        .encode(x=x, y=y, color=_colour(), text="estimator:N")
        for (side, below), part in labels.group_by("side", "below", maintain_order=True)
    ]
    return alt.layer(lines, marked.mark_point(filled=True, size=70, opacity=1), *names)


def coverage_chart(
    coverage: pl.DataFrame, *, level: float, finding: str, sample: str
) -> alt.LayerChart | alt.FacetChart:
    """Draw how many jobs stay below a bound by how many jobs of their task were known, estimator by estimator.

    Args:
        coverage: ``known`` (in words, in order), ``estimator``, ``role`` (a key of `ROLES`), ``coverage, lo, hi`` [1].
        level: What the bound promises [1].
        finding: Title.
        sample: Subtitle.
    """
    need(coverage, "known estimator role coverage lo hi")
    shown = percent(coverage, "coverage", "lo", "hi")
    order = shown["known"].unique(maintain_order=True).to_list()
    estimators = shown["estimator"].unique(maintain_order=True).to_list()
    roles = dict(shown.select("estimator", "role").rows())
    scale = alt.Scale(domain=estimators, range=[ROLES[roles[name]] for name in estimators])
    colour = alt.Color("estimator:N", title=None, scale=scale, sort=estimators)
    base = alt.Chart(shown).encode(
        x=alt.X("known:N", title="finished jobs of the task that were known [1]", sort=order, axis=alt.Axis(labelAngle=0)),
        xOffset=alt.XOffset("estimator:N", sort=estimators),
        color=colour,
    )  # fmt: skip
    lowest = min([100 * level - 5, *shown["lo"].drop_nulls()])
    bottom = alt.Scale(domain=[max(0.0, lowest - 2), 100], nice=False)
    y = alt.Y("coverage:Q", title="jobs within their bound [%]", scale=bottom)
    spread = base.mark_rule(strokeWidth=2).encode(y=alt.Y("lo:Q", scale=bottom), y2="hi:Q")
    shape = alt.Shape("estimator:N", title=None, sort=estimators)
    dots = base.mark_point(filled=True, size=60, opacity=1).encode(y=y, shape=shape)
    line = alt.Chart(pl.DataFrame({"level": [100 * level]})).mark_rule(color=INK, strokeDash=[6, 3]).encode(
        y=alt.Y("level:Q", scale=bottom)
    )  # fmt: skip
    return alt.layer(line, spread, dots).properties(
        width=WIDTH - 40, height=260, title=title(finding, sample)
    )


def _colour() -> alt.Color:
    return alt.Color(
        "role:N", scale=alt.Scale(domain=list(ROLES), range=list(ROLES.values())), legend=None
    )


def _title(finding: str, sample: str) -> alt.Title:
    found = title(finding, sample)
    found.frame = "bounds"
    return found
