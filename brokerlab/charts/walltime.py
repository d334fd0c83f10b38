"""Charts of the estimation of wall times, one function each; every frame is aggregated already."""

from __future__ import annotations

import altair as alt
import polars as pl

from brokerlab.charts.frames import need
from brokerlab.charts.theme import CURRENT, GRID, LIMIT, OTHER, PROPOSED, SOFT, WIDTH, title

__all__ = ["errors_chart", "misses_chart", "power_chart"]
ROW = 18
"""Height of a line of a chart [px]."""
LABELS = 200
"""Room for the names left of a panel [px]."""
ROLES = {"ours": PROPOSED, "best": CURRENT, "other": "#9aa5b0"}
"""Who a method is, and its colour."""


def _ticks(low: float, high: float) -> list[float]:
    """Return round numbers within bounds: room for labels on a logarithmic axis."""
    steps = [round(m * 10.0**e, 6) for e in range(-2, 4) for m in (1, 2, 5)]
    return [tick for tick in steps if low <= tick <= high]


def _title(finding: str, sample: str) -> alt.Title:
    """Return the title, beginning where the names of the lines begin: they are long."""
    found = title(finding, sample)
    found.frame = "bounds"
    return found


def errors_chart(errors: pl.DataFrame, *, finding: str, sample: str) -> alt.VConcatChart:
    """Draw mean errors over that of the best simple rule, a panel per log, a line per method.

    Args:
        errors: ``log``, ``method``, ``role`` (a key of `ROLES`), ``ratio, lo, hi`` (above 0); panels and lines in the order of
            appearance.
        finding: Title.
        sample: Subtitle.
    """
    need(errors, "log method role ratio lo hi")
    ends = [1.0, *errors["lo"].drop_nulls(), *errors["hi"].drop_nulls()]
    low, high = 0.95 * min(ends), 1.05 * max(ends)
    scale = alt.Scale(type="log", domain=[low, high], nice=False)
    color = alt.Color("role:N", scale=alt.Scale(domain=list(ROLES), range=list(ROLES.values())), legend=None)  # fmt: skip
    logs = errors["log"].unique(maintain_order=True).to_list()
    panels = []
    for log in logs:
        rows, last = errors.filter(pl.col("log") == log), log == logs[-1]
        names = rows["method"].to_list()
        axis = alt.Axis(values=_ticks(low, high), format="~g", labels=last, ticks=last)
        shown = "mean error over that of the best simple rule [ratio]" if last else None
        y = alt.Y("method:N", title=None, sort=names, axis=alt.Axis(labelLimit=LABELS))
        base = alt.Chart(rows).encode(y=y)
        lines = base.mark_rule(color=GRID)
        spread = base.mark_rule(strokeWidth=2).encode(x=alt.X("lo:Q", scale=scale), x2="hi:Q", color=color)  # fmt: skip
        points = base.mark_point(filled=True, size=60, opacity=1).encode(
            x=alt.X("ratio:Q", title=shown, scale=scale, axis=axis), color=color
        )
        even = alt.Chart(pl.DataFrame({"even": [1.0]})).mark_rule(color=SOFT, strokeDash=[4, 3]).encode(
            x=alt.X("even:Q", scale=scale)
        )  # fmt: skip
        panels.append(
            alt.layer(lines, even, spread, points).properties(
                width=WIDTH - LABELS,
                height=alt.Step(ROW),
                title=alt.Title(log, fontSize=12, offset=2),
            )
        )
    return alt.vconcat(*panels, spacing=6).properties(title=_title(finding, sample))


def misses_chart(
    misses: pl.DataFrame, *, promised_pct: float, finding: str, sample: str
) -> alt.LayerChart | alt.FacetChart:
    """Draw which share of the jobs exceeds a bound, a line per bound, with what was promised.

    Args:
        misses: ``name`` (of the line), ``role`` (a key of `ROLES`), ``missed_pct, lo, hi`` [%]; in order.
        promised_pct: Share that may exceed the bound [%].
        finding: Title.
        sample: Subtitle.
    """
    need(misses, "name role missed_pct lo hi")
    high = 1.05 * max([2 * promised_pct, *misses["hi"]])
    scale = alt.Scale(domain=[0, high], nice=False)
    color = alt.Color("role:N", scale=alt.Scale(domain=list(ROLES), range=list(ROLES.values())), legend=None)  # fmt: skip
    y = alt.Y("name:N", title=None, sort=misses["name"].to_list(), axis=alt.Axis(labelLimit=260))
    base = alt.Chart(misses).encode(y=y)
    lines = base.mark_rule(color=GRID)
    spread = base.mark_rule(strokeWidth=2).encode(x=alt.X("lo:Q", scale=scale), x2="hi:Q", color=color)  # fmt: skip
    points = base.mark_point(filled=True, size=60, opacity=1).encode(
        x=alt.X("missed_pct:Q", title="jobs beyond their bound [%]", scale=scale), color=color
    )
    line = pl.DataFrame({"promised": [promised_pct]})
    promised = alt.Chart(line).mark_rule(color=LIMIT, strokeDash=[6, 3]).encode(
        x=alt.X("promised:Q", scale=scale)
    )  # fmt: skip
    return alt.layer(lines, promised, spread, points).properties(
        width=WIDTH - 260, height=alt.Step(ROW), title=_title(finding, sample)
    )


def power_chart(
    queues: pl.DataFrame, lines: pl.DataFrame, *, finding: str, sample: str
) -> alt.ConcatChart:
    """Draw time per event against core power, a panel per task and time, a point per queue.

    Args:
        queues: ``panel``, ``queue``, ``jobs``, ``corepower`` [HS06 per core, above 0], ``factor`` (time per event over the task's
            middle, above 0); panels in the order of appearance.
        lines: ``panel``, ``kind`` (fitted, rule), ``corepower``, ``factor``: two ends per line.
        finding: Title.
        sample: Subtitle.
    """
    need(queues, "panel queue jobs corepower factor")
    need(lines, "panel kind corepower factor")
    power = [float(queues["corepower"].min()), float(queues["corepower"].max())]  # type: ignore[arg-type]
    factor = [0.9 * float(queues["factor"].min()), 1.1 * float(queues["factor"].max())]  # type: ignore[arg-type]
    across = alt.X(
        "corepower:Q",
        title="core power [HS06 per core]",
        scale=alt.Scale(type="log", domain=[0.95 * power[0], 1.05 * power[1]], nice=False),
        axis=alt.Axis(values=[t for t in (2, 4, 6, 8, 10, 12, 15, 20, 30, 50) if 0.95 * power[0] <= t <= 1.05 * power[1]]),
    )  # fmt: skip
    upright = alt.Scale(type="log", domain=factor, nice=False)
    axis = alt.Axis(values=_ticks(*factor), format="~g")
    size = alt.Size("jobs:Q", scale=alt.Scale(range=[20, 260], type="sqrt"), legend=None)
    kinds = {"fitted": (PROPOSED, [1, 0]), "rule": (CURRENT, [6, 4])}
    panels = []
    for name in queues["panel"].unique(maintain_order=True).to_list():
        points = alt.Chart(queues.filter(pl.col("panel") == name)).mark_point(
            filled=True, color=OTHER, stroke="#5d6b78", strokeWidth=0.8, opacity=0.9
        ).encode(
            x=across, size=size,
            y=alt.Y("factor:Q", title="time per event over the task's middle [ratio]", scale=upright, axis=axis),
        )  # fmt: skip
        drawn = [
            alt.Chart(lines.filter(pl.col("panel") == name, pl.col("kind") == kind))
            .mark_line(color=color, strokeDash=dash, strokeWidth=2, clip=True)
            .encode(x=across, y=alt.Y("factor:Q", scale=upright, axis=axis))
            for kind, (color, dash) in kinds.items()
        ]
        panels.append(
            alt.layer(points, *drawn).properties(
                width=(WIDTH - 100) // 2, height=190, title=alt.Title(name, fontSize=12, offset=4)
            )
        )
    return alt.concat(*panels, columns=2, spacing=18).properties(title=_title(finding, sample))
