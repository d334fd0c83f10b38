"""Charts of memory estimates, one function each; every frame is aggregated already."""

from __future__ import annotations

import altair as alt
import polars as pl

from brokerlab.charts import primitives
from brokerlab.charts.frames import need
from brokerlab.charts.theme import GRID, INK, LIMIT, PROPOSED, WIDTH, title

PEER = "#8a98a6"
"""Methods that ours is held against."""


def waste_ratios(ratios: pl.DataFrame, *, target: float) -> primitives.Chart:
    """Draw what every method wastes over the best peer, a row per trace.

    Args:
        ratios: ``trace, role, ratio`` (above 0) and ``ratio_lo, ratio_hi`` (null: none), traces in their order.
        target: Highest ratio that is asked for.
    """
    return primitives.dots(
        ratios,
        "ratio",
        "trace",
        title="waste over that of the best peer [ratio]",
        colour="role",
        references={"best peer": 1.0, f"target {target:g}": target},
        log=True,
    )


def ratios_chart(
    ratios: pl.DataFrame, *, target: float, finding: str, sample: str
) -> alt.LayerChart | alt.FacetChart:
    """Draw what every method wastes over the best peer, a line per trace.

    Args:
        ratios: ``trace``, ``role`` (``ours``, ``knowing`` or ``peer``), ``method``, ``ratio`` (above 0), ``lo, hi`` (null:
            none); traces in the order of appearance.
        target: Highest ratio that is asked for.
        finding: Title.
        sample: Subtitle.
    """
    need(ratios, "trace role method ratio lo hi")
    order = ratios["trace"].unique(maintain_order=True).to_list()
    ends = [target, 1.0, *ratios["ratio"], *ratios["lo"].drop_nulls(), *ratios["hi"].drop_nulls()]
    low, high = 0.9 * min(ends), min(30.0, 1.1 * max(ends))
    scale = alt.Scale(type="log", domain=[low, high], nice=False, clamp=True)
    ticks = [t for t in (0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20) if low <= t <= high]
    x = alt.X(
        "ratio:Q",
        title="waste over that of the best peer [ratio]",
        scale=scale,
        axis=alt.Axis(values=ticks, format="~g"),
    )
    y = alt.Y("trace:N", title=None, sort=order, axis=alt.Axis(grid=True, gridColor=GRID))
    parts = {
        role: alt.Chart(ratios.filter(pl.col("role") == role)).encode(y=y)
        for role in ("peer", "knowing", "ours")
    }
    peers = parts["peer"].mark_tick(color=PEER, thickness=2, height=16).encode(x=x)
    knowing = parts["knowing"].mark_point(size=90, shape="diamond", color=PROPOSED, strokeWidth=1.5).encode(x=x)  # fmt: skip
    spread = parts["ours"].mark_rule(color=PROPOSED, strokeWidth=2).encode(
        x=alt.X("lo:Q", scale=scale), x2="hi:Q"
    )  # fmt: skip
    ours = (
        parts["ours"]
        .mark_point(filled=True, size=130, shape="diamond", color=PROPOSED, opacity=1)
        .encode(x=x)
    )
    lines = [
        alt.Chart(pl.DataFrame({"at": [at]})).mark_rule(color=colour, strokeDash=dash).encode(
            x=alt.X("at:Q", scale=scale)
        )
        for at, colour, dash in ((1.0, INK, [1, 0]), (target, LIMIT, [6, 3]))
    ]  # fmt: skip
    return alt.layer(*lines, peers, knowing, spread, ours).properties(
        width=WIDTH - 60, height=alt.Step(38), title=title(finding, sample)
    )
