"""The tables of the walltime-estimator report on core power and sites."""

from __future__ import annotations

from typing import Any

import polars as pl

from brokerlab.estimators.walltime.power import PowerStudy
from brokerlab.estimators.walltime.sites import NO_POWER
from brokerlab.report.content import Column, Num, Row, Table

MOST = 12
"""Tasks of a table; those at most queues."""


def _of_most_queues(frame: pl.DataFrame, *by: str) -> list[dict[str, Any]]:
    """Return the rows of the tasks at most queues."""
    chosen = frame.group_by("jeditaskid").agg(pl.col("queues").max())
    chosen = chosen.sort("queues", "jeditaskid", descending=[True, False]).head(MOST)
    order = chosen.select("jeditaskid").with_row_index("place")
    return frame.join(order, on="jeditaskid").sort("place", *by).to_dicts()


def _interval(row: dict[str, Any], value: str, by: float = 1.0) -> Num:
    found = (row[f"{value}{end}"] for end in ("", "_lo", "_hi"))
    value_, lo_, hi_ = (None if each is None else by * each for each in found)
    return Num(value=value_, lo=lo_, hi=hi_, decimals=0 if by == 100 else 2)


def slopes(study: PowerStudy) -> Table | None:
    """Lay out the slopes on core power."""
    rows = [
        Row(
            cells={
                "task": str(row["jeditaskid"]),
                "time": f"{row['time']} time",
                "jobs": Num(value=row["jobs"], decimals=0),
                "queues": Num(value=row["queues"], decimals=0),
                "slope": _interval(row, "slope") if row["missing"] is None else row["missing"],
                "between": Num(value=row["between_sd"], decimals=2),
                "within": Num(value=row["within_sd"], decimals=2),
            }
        )
        for row in _of_most_queues(study.slopes, "time")
    ]
    if not rows:
        return None
    return Table(
        name="slopes",
        caption="Log-log slope of core time per event on configured core power",
        columns=(
            Column(key="task", label="Task"),
            Column(key="time", label="Of"),
            Column(key="jobs", label="Jobs"),
            Column(key="queues", label="Queues"),
            Column(key="slope", label="Slope (the rule takes −1)"),
            Column(key="between", label="Left between queues", unit="sd of ln"),
            Column(key="within", label="Inside queues", unit="sd of ln"),
        ),
        rows=tuple(rows),
        footnote="In brackets: 95 % intervals. Linear mixed model, a random effect per queue; ln(events) beside it where jobs differ in it.",
    )


def shares(study: PowerStudy) -> Table | None:
    """Lay out how much of the spread lies between queues, before and after scaling."""
    rows = [
        Row(
            cells={
                "task": str(row["jeditaskid"]),
                "time": f"{row['time']} time{' x core power' if row['scaled'] else ''}",
                "queues": Num(value=row["queues"], decimals=0),
                "sd": _interval(row, "sd"),
                "within": Num(value=row["within_sd"], decimals=2),
                "share": _interval(row, "share", by=100),
            }
        )
        for row in _of_most_queues(study.shares, "time", "scaled")
    ]
    if not rows:
        return None
    return Table(
        name="queue_shares",
        caption="Spread of ln(time of a job), before and after it is multiplied by core power",
        columns=(
            Column(key="task", label="Task"),
            Column(key="time", label="Of"),
            Column(key="queues", label="Queues"),
            Column(key="sd", label="Spread", unit="sd of ln"),
            Column(key="within", label="Inside queues", unit="sd of ln"),
            Column(key="share", label="Of the variance, between queues", unit="%"),
        ),
        rows=tuple(rows),
        footnote="In brackets: 95 % intervals over queues. If core power explained what differs between queues, the share would fall.",
    )


def gain(study: PowerStudy) -> Table | None:
    """Lay out how well times of other queues carry over."""
    rows = [
        Row(
            cells={
                "task": str(row["jeditaskid"]),
                "time": f"{row['time']} time",
                "way": row["way"],
                "error": Num(value=row["error"], decimals=3),
                "ratio": None if row["way"] == NO_POWER else _interval(row, "ratio"),
                "jobs": Num(value=row["job_ratio"], decimals=2),
            },
            note="beyond doubt" if row["way"] != NO_POWER and (row["ratio_hi"] < 1 or row["ratio_lo"] > 1) else "",
        )
        for row in _of_most_queues(study.gain, "time")
    ]  # fmt: skip
    if not rows:
        return None
    return Table(
        name="power_gain",
        caption="Times at a queue told from the other queues of the task",
        columns=(
            Column(key="task", label="Task"),
            Column(key="time", label="Of"),
            Column(key="way", label="Scaled by"),
            Column(key="error", label="Mean error", unit="of ln"),
            Column(key="ratio", label="Over that without core power", unit="ratio"),
            Column(key="jobs", label="The same, every job alike", unit="ratio"),
        ),
        rows=tuple(rows),
        footnote="In brackets: 95 % intervals over queues; every queue counts the same, but in the last column.",
    )
