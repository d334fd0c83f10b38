"""The tables of the report."""

from __future__ import annotations

from typing import Any

import polars as pl

from brokerlab.report.content import Column, Num, Row, Table
from brokerlab.report.simulation_validation.study import Study

SHOWN = 15
"""Queues in a table, the worst ones; all are in the tables of the run."""
MEANING = {
    "placement": "the brokerage sends another number of jobs",
    "waiting": "waits differ by more hours",
    "shape": "waits are spread otherwise (Kolmogorov-Smirnov)",
    "timing": "other jobs wait than waited (rank correlation)",
    "unexplained": "fitted start-up delays, not slots, make the waits",
    "utilisation": "slots are used otherwise",
    "kills": "other shares of jobs are killed",
}
"""The limits and what breaking them means."""


def reasons(study: Study) -> pl.DataFrame:
    """Return the limits that are broken, most often first: ``reason``, ``queues``, ``jobs``."""
    broken = study.validation.broken_limits().filter(pl.col("n_queues") > 0)
    return broken.select(reason="limit", queues="n_queues", jobs="n_jobs")


def limits(study: Study) -> Table:
    """Lay out every limit and at how many queues it is broken."""
    held, broken = study.validation.limits, dict(reasons(study).select("reason", "queues").rows())
    said = {
        "placement": f"{100 * held.placement:.0f} % of the jobs seen",
        "waiting": f"{held.wasserstein_h:g} h or {100 * held.relative:.0f} % of the mean wait, whichever is more",
        "shape": f"{held.ks:g}",
        "timing": f"at least {held.correlation:g}, where the mean wait is above {held.wasserstein_h:g} h",
        "unexplained": f"{held.delay_h:g} h of start-up on average",
        "utilisation": f"{held.utilisation:g}",
        "kills": f"{held.kills:g} of the jobs",
    }
    rows = [
        Row(
            cells={
                "limit": name,
                "means": MEANING[name],
                "value": said[name],
                "queues": Num(value=broken.get(name, 0), decimals=0),
            },
            note="limit" if broken.get(name) else "",
        )
        for name in MEANING
        if name != "placement" or study.world is not None
    ]
    return Table(
        name="limits",
        caption="What the simulation is held to",
        columns=(
            Column(key="limit", label="Limit"),
            Column(key="means", label="Broken where"),
            Column(key="value", label="Value"),
            Column(key="queues", label="Queues beyond it"),
        ),
        rows=tuple(rows),
        footnote=f"Queues with fewer than {held.least_jobs} jobs in the period are not judged."
        + (
            ""
            if study.world is None
            else " Where the simulated runs are farther from one another than a limit, what was seen may be as far from them."
        ),
    )


def distances(
    study: Study, frame: pl.DataFrame, column: str, label: str, *, name: str, caption: str
) -> Table:
    """Lay out the distances by queue or by share, the most distant first."""
    worst = frame.sort("wasserstein_h", column, descending=[True, False], nulls_last=False)
    rows = [_row(row, column, place) for place, row in enumerate(worst.head(SHOWN).to_dicts())]
    columns = [
        Column(key="level", label=label),
        Column(key="jobs", label="Jobs"),
        Column(key="observed", label="Mean wait observed", unit="h"),
        Column(key="simulated", label="simulated", unit="h"),
        Column(key="distance", label="Wasserstein distance", unit="h"),
        Column(key="ks", label="KS"),
        Column(key="correlation", label="Rank correlation"),
    ]
    if study.world is not None:
        columns.insert(2, Column(key="simulated_jobs", label="simulated"))
    if "fails" in frame.columns:
        columns.append(Column(key="fails", label="Beyond its limit"))
    rest = max(frame.height - SHOWN, 0)
    return Table(
        name=name,
        caption=caption,
        columns=tuple(columns),
        rows=tuple(rows),
        footnote=f"95 %, bootstrap over tasks ({study.repeats} repeats); a distance is never negative, so its interval may lie "
        f"above it.{f' {rest} more are in the tables.' if rest else ''}",
    )


def _row(row: dict[str, Any], column: str, place: int) -> Row:
    cells: dict[str, Num | str | None] = {
        "level": row[column] or "unknown",
        "jobs": Num(value=row["n_jobs"], decimals=0),
        "simulated_jobs": Num(value=row["n_simulated"], decimals=0),
        "observed": Num(value=row["mean_observed_h"], decimals=2),
    }
    if row["n_simulated"] > 0:
        cells |= {
            "simulated": Num(value=row["mean_simulated_h"], decimals=2),
            "distance": Num(
                value=row["wasserstein_h"],
                lo=row["wasserstein_low_h"],
                hi=row["wasserstein_high_h"],
                decimals=2,
            ),
            "ks": Num(value=row["ks"], decimals=2),
            "correlation": Num(value=row["correlation"], decimals=2),
        }
    if "fails" in row:
        cells["fails"] = row["fails"] or ("none" if row["judged"] else "not judged")
    return Row(cells=cells, note="worst" if place == 0 else "")
