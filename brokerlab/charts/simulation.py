"""Charts of the grid simulator, one function each; every frame is aggregated already."""

from __future__ import annotations

import altair as alt
import polars as pl

from brokerlab.charts.frames import need
from brokerlab.charts.theme import CURRENT, INK, LIMIT, OTHER, SOFT, WIDTH, title

__all__ = ["reasons_chart", "waits_chart"]
PANEL = (WIDTH - 90) // 2
"""Size of a panel, two in a row [px]."""
STATES = {
    "within limits": ("#33475b", "circle"),
    "beyond a limit": (LIMIT, "cross"),
    "too few jobs": (OTHER, "square"),
}
"""What is said of a queue, its colour and shape."""


def waits_chart(waits: pl.DataFrame, *, finding: str, sample: str) -> alt.ConcatChart:
    """Draw simulated against observed waits, a point per queue, a panel per percentile; equal ones lie on the line.

    Args:
        waits: ``panel``, ``queue``, ``observed_h``, ``simulated_h`` [h], ``state`` (a key of `STATES`); the panels stand
            in the order of appearance.
        finding: Title.
        sample: Subtitle.
    """
    need(waits, "panel queue observed_h simulated_h state")
    highest = max([1.0, *waits["observed_h"], *waits["simulated_h"]])
    scale = alt.Scale(type="symlog", constant=0.1, domain=[0, highest], nice=False)
    ticks = [0, 0.1, 0.3, 1, 3, 10, 30, 100, 300]
    axis = alt.Axis(values=[tick for tick in ticks if tick <= highest], format="~g")
    color = alt.Color(
        "state:N",
        title=None,
        scale=alt.Scale(domain=list(STATES), range=[look[0] for look in STATES.values()]),
    )
    shape = alt.Shape(
        "state:N",
        title=None,
        scale=alt.Scale(domain=list(STATES), range=[look[1] for look in STATES.values()]),
    )
    same = pl.DataFrame({"observed_h": [0.0, highest], "simulated_h": [0.0, highest]})
    panels = []
    for name in waits["panel"].unique(maintain_order=True):
        x = alt.X("observed_h:Q", title="observed wait [h]", scale=scale, axis=axis)
        y = alt.Y("simulated_h:Q", title="simulated wait [h]", scale=scale, axis=axis)
        line = alt.Chart(same).mark_line(color=SOFT, strokeDash=[4, 3]).encode(x=x, y=y)
        points = alt.Chart(waits.filter(pl.col("panel") == name)).mark_point(
            filled=True, size=55, opacity=0.75
        )
        panels.append(
            alt.layer(line, points.encode(x=x, y=y, color=color, shape=shape)).properties(
                width=PANEL, height=PANEL, title=alt.Title(name, fontSize=12, offset=4)
            )
        )
    return alt.concat(*panels, columns=2, spacing=18).properties(title=title(finding, sample))


def reasons_chart(
    reasons: pl.DataFrame, *, finding: str, sample: str
) -> alt.LayerChart | alt.FacetChart:
    """Draw at how many queues each limit is broken.

    Args:
        reasons: ``reason``, ``queues`` [queues], ``words`` behind the bar; in order.
        finding: Title.
        sample: Subtitle.
    """
    need(reasons, "reason queues words")
    y = alt.Y("reason:N", title=None, sort=reasons["reason"].to_list())
    highest = 1.4 * max([1, *reasons["queues"]])
    x = alt.X(
        "queues:Q",
        title="queues beyond the limit [queues]",
        scale=alt.Scale(domain=[0, highest], nice=False),
        axis=alt.Axis(tickMinStep=1, tickCount=6),
    )
    base = alt.Chart(reasons).encode(y=y)
    bars = base.mark_bar(color=CURRENT, height=14).encode(x=x)
    words = base.mark_text(align="left", dx=6, color=INK).encode(x="queues:Q", text="words:N")
    return alt.layer(bars, words).properties(
        width=WIDTH - 100, height=alt.Step(24), title=title(finding, sample)
    )
