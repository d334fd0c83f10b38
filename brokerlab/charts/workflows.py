"""Charts of workflows on batch queues, one function each; every frame is aggregated already."""

from __future__ import annotations

import altair as alt
import polars as pl

from brokerlab.charts.frames import need
from brokerlab.charts.theme import CURRENT, GRID, INK, LIMIT, OTHER, PROPOSED, SOFT, WIDTH, title

__all__ = ["gantt_chart", "rules_chart", "turnarounds_chart", "waits_chart", "where_chart"]
ROW = 17
"""Height of a line of a chart [px]."""
LABELS = 190
"""Room for the names left of a panel [px]."""
ROLES = {"notes": CURRENT, "paper": PROPOSED, "other": "#8a98a6"}
"""Rule sets and the strategies beside them, and their colours."""
WINS, EVEN, LOSES = "#7fb2d6", "#f7f7f7", "#eab56f"
"""Ends sooner, the same, later."""
PHASES = {"waits": OTHER, "runs": "#33475b", "expires": LIMIT, "cancelled": "#c77700"}
"""What a job does, and its colour."""
SIZES = ("#9fc4df", "#4f94c4", "#0065a8", "#00345a")
"""Colours of numbers of hosts, few to many."""
HOURS = "datum.value >= 10000 ? datum.value / 1000 + 'k' : format(datum.value, '~g')"


def _decades(low: float, high: float) -> list[float]:
    """Return one and three of every power of ten within bounds: room for labels on a logarithmic axis."""
    ticks = [round(m * 10.0**e, 6) for e in range(-3, 6) for m in (1, 3)]
    return [tick for tick in ticks if 0.8 * low <= tick <= 1.2 * high]


def _two_lines(width: float) -> alt.Axis:
    """Return an axis of names such as "KTH, easy" over columns of a width, in pixels; longer words are cut."""
    return alt.Axis(
        orient="top", labelAngle=0, labelPadding=20, ticks=False, labelOverlap=False, labelFontSize=11,
        labelLimit=width - 4, labelExpr="split(datum.label, ', ')",
    )  # fmt: skip


def _title(finding: str, sample: str) -> alt.Title:
    """Return the title, beginning where the names of the lines begin: they are long."""
    found = title(finding, sample)
    found.frame = "bounds"
    return found


def where_chart(cells: pl.DataFrame, *, finding: str, sample: str) -> alt.VConcatChart:
    """Draw a table per rule set: turnaround of grouping against the better of one job and one job per task.

    Args:
        cells: ``rules`` (of a panel), ``workflow``, ``system``, ``ratio`` (below 1: grouping ends sooner), ``words`` in
            the cell, ``more`` below them; panels, lines and columns in the order of appearance.
        finding: Title.
        sample: Subtitle.
    """
    need(cells, "rules workflow system ratio words more")
    flows, systems = (cells[name].unique(maintain_order=True).to_list() for name in ("workflow", "system"))  # fmt: skip
    scale = alt.Scale(type="log", domain=[0.5, 1, 2], range=[WINS, EVEN, LOSES], clamp=True)
    names = cells["rules"].unique(maintain_order=True).to_list()
    width = min(110, (WIDTH - LABELS + 60) // max(1, len(systems)))
    panels = []
    for name in names:
        base = alt.Chart(cells.filter(pl.col("rules") == name)).encode(
            x=alt.X("system:N", title=None, sort=systems, axis=_two_lines(width) if name == names[0] else None),
            y=alt.Y("workflow:N", title=None, sort=flows, axis=alt.Axis(labelLimit=LABELS)),
        )  # fmt: skip
        boxes = base.mark_rect(stroke="white", strokeWidth=2).encode(
            color=alt.Color("ratio:Q", scale=scale, legend=None)
        )
        words = base.mark_text(dy=-6, fontWeight="bold", color=INK).encode(text="words:N")
        more = base.mark_text(dy=8, fontSize=10, color=INK).encode(text="more:N")
        panels.append(
            alt.layer(boxes, words, more).properties(
                width=alt.Step(width),
                height=alt.Step(34),
                title=alt.Title(name, fontSize=12, offset=6),
            )
        )
    return alt.vconcat(*panels, spacing=12).properties(title=_title(finding, sample))


def turnarounds_chart(spread: pl.DataFrame, *, finding: str, sample: str) -> alt.VConcatChart:
    """Draw how turnarounds are spread over the instants, a panel per workflow, a line per strategy.

    Args:
        spread: ``workflow``, ``strategy``, ``role`` (a key of `ROLES`), ``p10, p25, p50, p75, p90`` [h, above 0],
            ``dedicated_h`` [h]; panels and lines in the order of appearance.
        finding: Title.
        sample: Subtitle.
    """
    need(spread, "workflow strategy role p10 p25 p50 p75 p90 dedicated_h")
    low = 0.9 * min([1.0, *spread["p10"], *spread["dedicated_h"]])
    high = 1.1 * max([1.0, *spread["p90"]])
    scale = alt.Scale(type="log", domain=[low, high], nice=False)
    names = spread["strategy"].unique(maintain_order=True).to_list()
    flows = spread["workflow"].unique(maintain_order=True).to_list()
    color = alt.Color("role:N", scale=alt.Scale(domain=list(ROLES), range=list(ROLES.values())), legend=None)  # fmt: skip
    panels = []
    for flow in flows:
        last = flow == flows[-1]
        axis = alt.Axis(labelExpr=HOURS, values=_decades(low, high), labels=last, ticks=last)
        x = alt.X("p10:Q", title="turnaround [h]" if last else None, scale=scale, axis=axis)
        y = alt.Y("strategy:N", title=None, sort=names, axis=alt.Axis(labelLimit=LABELS))
        rows = spread.filter(pl.col("workflow") == flow)
        base = alt.Chart(rows).encode(y=y, color=color)
        whole = base.mark_rule(strokeWidth=1.5).encode(x=x, x2="p90:Q")
        half = base.mark_bar(height=9).encode(x=alt.X("p25:Q", scale=scale), x2="p75:Q")
        middle = base.mark_tick(color="white", thickness=2, height=9).encode(
            x=alt.X("p50:Q", scale=scale), color=alt.value("white")
        )
        bound = alt.Chart(rows.head(1)).mark_rule(color=SOFT, strokeDash=[4, 3]).encode(
            x=alt.X("dedicated_h:Q", scale=scale)
        )  # fmt: skip
        panels.append(
            alt.layer(bound, whole, half, middle).properties(
                width=WIDTH - LABELS,
                height=alt.Step(ROW),
                title=alt.Title(flow, fontSize=12, offset=2),
            )
        )
    return alt.vconcat(*panels, spacing=6).properties(title=_title(finding, sample))


def waits_chart(waits: pl.DataFrame, *, finding: str, sample: str) -> alt.ConcatChart:
    """Draw the estimated wait against the run time asked for, a panel per machine, a line per number of hosts.

    Args:
        waits: ``panel``, ``size`` (of hosts, in words), ``run_h`` [h, above 0], ``p50, p75`` [h]; panels and sizes
            in the order of appearance, at most four sizes.
        finding: Title.
        sample: Subtitle.
    """
    need(waits, "panel size run_h p50 p75")
    sizes = waits["size"].unique(maintain_order=True).to_list()
    highest = max([1.0, *waits["p75"]])
    scale = alt.Scale(type="symlog", constant=0.1, domain=[0, 1.05 * highest], nice=False)
    ticks = [t for t in (0, 0.1, 0.3, 1, 3, 10, 30, 100, 300, 1000) if t <= highest]
    longest = [float(waits["run_h"].min() or 0.1), float(waits["run_h"].max() or 1.0)]  # type: ignore[arg-type]
    across = alt.X(
        "run_h:Q",
        title="run time asked for [h]",
        scale=alt.Scale(type="log", domain=longest, nice=False),
        axis=alt.Axis(values=sorted(set(waits["run_h"])), format="~g"),
    )
    color = alt.Color(
        "size:N", title="hosts", sort=sizes, scale=alt.Scale(domain=sizes, range=list(SIZES[-len(sizes):]))
    )  # fmt: skip
    line = pl.DataFrame({"run_h": longest, "wait_h": longest})
    panels = []
    for name in waits["panel"].unique(maintain_order=True):
        up = alt.Axis(values=ticks, labelExpr="datum.value")
        base = alt.Chart(waits.filter(pl.col("panel") == name)).encode(x=across, color=color)
        middle = base.mark_line(strokeWidth=2.5).encode(
            y=alt.Y("p50:Q", title="estimated wait [h]", scale=scale, axis=up)
        )
        long = base.mark_line(strokeWidth=1.2, strokeDash=[2, 2]).encode(
            y=alt.Y("p75:Q", scale=scale, axis=up)
        )
        same = alt.Chart(line).mark_line(color=SOFT, strokeDash=[8, 4], strokeWidth=1, clip=True).encode(
            x=across, y=alt.Y("wait_h:Q", scale=scale)
        )  # fmt: skip
        panels.append(
            alt.layer(same, long, middle).properties(
                width=(WIDTH - 90) // 2, height=190, title=alt.Title(name, fontSize=12, offset=4)
            )
        )
    return alt.concat(*panels, columns=2, spacing=18).properties(title=_title(finding, sample))


def gantt_chart(bars: pl.DataFrame, *, finding: str, sample: str) -> alt.VConcatChart:
    """Draw one run per strategy: when its jobs waited and ran, a line per job or per level.

    Args:
        bars: ``strategy``, ``line`` (job or level, in words), ``phase`` (a key of `PHASES`), ``begin_h``, ``end_h`` [h
            since the submission], ``end_all_h`` (of the run) [h]; panels and lines in the order of appearance.
        finding: Title.
        sample: Subtitle.
    """
    need(bars, "strategy line phase begin_h end_h end_all_h")
    scale = alt.Scale(domain=[0, 1.02 * max([0.1, *bars["end_h"]])], nice=False)
    present = [name for name in PHASES if name in set(bars["phase"])]
    color = alt.Color(
        "phase:N",
        title=None,
        scale=alt.Scale(domain=present, range=[PHASES[name] for name in present]),
    )
    names = bars["strategy"].unique(maintain_order=True).to_list()
    panels = []
    for name in names:
        rows = bars.filter(pl.col("strategy") == name)
        last = name == names[-1]
        axis = alt.Axis(labels=last, ticks=last, tickCount=8)
        x = alt.X("begin_h:Q", title="time since submission [h]" if last else None, scale=scale, axis=axis)  # fmt: skip
        lines = rows["line"].unique(maintain_order=True).to_list()
        y = alt.Y("line:N", title=None, sort=lines, axis=alt.Axis(labelLimit=LABELS, labelFontSize=10, labelOverlap=False))  # fmt: skip
        drawn = alt.Chart(rows).mark_bar(height=8).encode(x=x, x2="end_h:Q", y=y, color=color)
        end = alt.Chart(rows.head(1)).mark_rule(color=INK, strokeWidth=1).encode(
            x=alt.X("end_all_h:Q", scale=scale)
        )  # fmt: skip
        panels.append(
            alt.layer(drawn, end).properties(
                width=WIDTH - LABELS,
                height=alt.Step(12),
                title=alt.Title(name, fontSize=12, offset=2),
            )
        )
    return alt.vconcat(*panels, spacing=4).properties(title=_title(finding, sample))


def rules_chart(
    places: pl.DataFrame, *, finding: str, sample: str
) -> alt.LayerChart | alt.FacetChart:
    """Draw how much longer one rule set takes than the other, a line per workflow and machine, with intervals.

    Args:
        places: ``place``, ``ratio, lo, hi`` (of turnarounds, above 0; null ends: unknown); in order.
        finding: Title.
        sample: Subtitle.
    """
    need(places, "place ratio lo hi")
    ends = [1.0, *places["ratio"], *places["lo"].drop_nulls(), *places["hi"].drop_nulls()]
    scale = alt.Scale(type="log", domain=[0.9 * min(ends), 1.1 * max(ends)], nice=False)
    y = alt.Y("place:N", title=None, sort=places["place"].to_list(), axis=alt.Axis(labelLimit=320))
    x = alt.X(
        "ratio:Q",
        title="turnaround, notes over paper [ratio]",
        scale=scale,
        axis=alt.Axis(format="~g", values=_decades(min(ends), max(ends))),
    )
    base = alt.Chart(places).encode(y=y)
    spread = base.mark_rule(color=CURRENT, strokeWidth=2).encode(x=alt.X("lo:Q", scale=scale), x2="hi:Q")  # fmt: skip
    points = base.mark_point(filled=True, size=60, color=CURRENT, opacity=1).encode(x=x)
    even = alt.Chart(pl.DataFrame({"even": [1.0]})).mark_rule(color=PROPOSED, strokeDash=[4, 3]).encode(
        x=alt.X("even:Q", scale=scale)
    )  # fmt: skip
    grid = alt.Chart(places).mark_rule(color=GRID).encode(y=y)
    return alt.layer(grid, even, spread, points).properties(
        width=WIDTH - 200, height=alt.Step(20), title=_title(finding, sample)
    )
