"""The chart of proposals: what each promises, with its interval."""

from __future__ import annotations

import altair as alt
import polars as pl

from brokerlab.charts.frames import need
from brokerlab.charts.theme import CURRENT, PROPOSED, WIDTH, title

Chart = alt.VConcatChart
ROW = 24
"""Height of a line [px]."""
LETTER = 6.6
"""Width of a letter of a label [px]."""
LONGEST = 250
"""Widest label [px]."""
WORDS = 150
"""Room for the numbers at the right [px]."""
FARTHEST = 150.0
"""Changes beyond are drawn at the edge [%]; the numbers stand beside them."""


def effects_chart(effects: pl.DataFrame, *, finding: str, sample: str) -> Chart:
    """Draw what proposals promise as a forest plot, a panel for each proposal.

    Args:
        effects: ``proposal`` (heading of its panel), ``quantity``, ``diff_pct, lo_pct, hi_pct`` [% of the present value]
            (null = no interval), ``words`` (the numbers in words), ``sure`` (the interval does not include 0).
        finding: Title.
        sample: Subtitle.
    """
    need(effects, "proposal quantity diff_pct lo_pct hi_pct words sure")
    ends = [end for name in ("diff_pct", "lo_pct", "hi_pct") for end in effects[name].drop_nulls()]
    known = [min(FARTHEST, max(-FARTHEST, end)) for end in ends]
    low, high = min([0.0, *known]), max([0.0, *known])
    edge = 0.05 * max(high - low, 1.0)
    label_px = int(min(LONGEST, LETTER * max(len(name) for name in effects["quantity"])))
    names = effects["proposal"].unique(maintain_order=True).to_list()
    panels = [
        _panel(
            effects.filter(proposal=name),
            name,
            (low - edge, high + edge),
            label_px=label_px,
            last=name == names[-1],
        )
        for name in names
    ]
    return alt.vconcat(*panels, spacing=10).properties(title=title(finding, sample))


def _panel(
    rows: pl.DataFrame, name: str, domain: tuple[float, float], *, label_px: int, last: bool
) -> alt.LayerChart | alt.FacetChart:
    """Draw the effects of one proposal, one line each."""
    width = WIDTH - label_px + 60 - WORDS
    scale = alt.Scale(domain=list(domain), nice=False, clamp=True)
    base = alt.Chart(rows).encode(
        y=alt.Y(
            "quantity:N",
            title=None,
            sort=rows["quantity"].to_list(),
            axis=alt.Axis(minExtent=label_px, maxExtent=label_px, labelLimit=label_px),
        )
    )
    x = alt.X(
        "diff_pct:Q",
        title="change [% of the present value]" if last else None,
        axis=alt.Axis(labels=last, ticks=last, tickCount=6),
        scale=scale,
    )
    zero = alt.Chart(rows.head(1)).mark_rule(color=CURRENT, strokeWidth=1.5).encode(x=alt.datum(0))
    bars = base.mark_rule(strokeWidth=2, color=PROPOSED).encode(
        x=alt.X("lo_pct:Q", scale=scale), x2="hi_pct:Q"
    )
    points = base.mark_point(size=80, opacity=1, shape="diamond", color=PROPOSED).encode(
        x=x,
        fill=alt.Fill(
            "sure:N",
            scale=alt.Scale(domain=[True, False], range=[PROPOSED, "white"]),
            legend=None,
        ),
    )
    words = base.mark_text(align="left").encode(x=alt.value(width + 10), text="words:N")
    return alt.layer(zero, bars, points, words).properties(
        width=width,
        height=ROW * rows.height,
        title=alt.Title(name, fontSize=12, offset=2),
    )
