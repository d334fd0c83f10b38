"""Charts of a table of jobs, as `brokerlab.archive.explore` and `brokerlab.lifecycle.states` count it."""

import itertools

import altair as alt
import polars as pl

from brokerlab.archive.explore import OTHER
from brokerlab.charts import theme
from brokerlab.charts.primitives import Chart, bars, histogram
from brokerlab.charts.theme import PALETTE
from brokerlab.lifecycle.states import WAITING

STATUSES = {"finished": PALETTE[1], "failed": PALETTE[0]}
"""Colours of how jobs end; all other statuses take the next ones."""
HEIGHT = 110
"""Of one of several histograms [px]."""


def jobs_over_time(counted: pl.DataFrame, *, title: str = "jobs created") -> Chart:
    """Draw how many ``jobs`` there are of each ``level`` from each instant ``at`` to the next one."""
    levels = (
        counted["level"].unique(maintain_order=True).to_list() if "level" in counted.columns else []
    )
    left = [colour for colour in PALETTE if colour not in STATUSES.values()]
    if not STATUSES.keys() & set(levels):
        left = list(PALETTE)
    others = [name for name in levels if name not in STATUSES and name != OTHER]
    states = STATUSES | dict(zip(others, itertools.cycle(left))) | {OTHER: theme.OTHER}
    return bars(
        counted, "jobs", "at", title=title, colour="level", vertical=True, height=240, states=states
    )


def distributions(bins: pl.DataFrame) -> Chart:
    """Draw ``jobs`` in bins from ``lower`` to ``upper``, a panel with an axis of its own for each quantity ``what``."""
    panels = [
        histogram(part, "lower", "upper", "jobs", x_title=str(what), y_title="jobs", x_log=True)
        for (what,), part in bins.group_by("what", maintain_order=True)
    ]
    together: Chart = alt.vconcat(*(panel.properties(height=HEIGHT) for panel in panels), spacing=8)
    return together


def waiting_states(spent: pl.DataFrame, *, most: int = 10) -> Chart:
    """Draw the ``hours`` that jobs waited at each ``level``, the first ones, by ``state``."""
    shown = spent
    if "level" in spent.columns:
        first = spent["level"].unique(maintain_order=True).head(most)
        shown = spent.filter(pl.col("level").is_in(first.implode()))
    states = dict(zip(WAITING, PALETTE, strict=False))
    return bars(shown, "hours", "level", title="waited [h]", colour="state", states=states)
