"""The tables of the walltime-estimator report on grid tasks that other reports do not share."""

from __future__ import annotations

import polars as pl

from brokerlab.estimators.sources.source import At
from brokerlab.report.content import Column, Num, Row, Table
from brokerlab.report.estimates import CLOCKS
from brokerlab.report.walltime_estimator.tasks import FEW, OURS, TaskStudy


def points(study: TaskStudy, at: At) -> Table:
    """Lay out how far off single guesses are."""
    rows = [
        Row(
            cells={
                "estimator": row["estimator"],
                "error": Num(value=100 * row["error"], decimals=0),
                "ratio": Num(value=row["ratio"], lo=row["ratio_lo"], hi=row["ratio_hi"], decimals=2),
                "mae": Num(value=row["mae_s"] / 60, decimals=1),
                "median": Num(value=row["median_s"] / 60, decimals=1),
                "accuracy": Num(value=100 * row["accuracy"], decimals=1),
            },
            note="ours" if row["estimator"] == OURS else "best rule" if row["estimator"] == row["best_rule"] else "",
        )
        for row in study.points.filter(pl.col("at") == at).iter_rows(named=True)
    ]  # fmt: skip
    few = study.trials[at].comparison.counts["tasks"] < FEW
    how = "range without one of the tasks" if few else "95 % intervals over tasks"
    return Table(
        name=f"points_{study.inputs.name}_{at}",
        caption=f"As a single guess of the run time, decided {CLOCKS[at]}",
        columns=(
            Column(key="estimator", label="Estimator"),
            Column(key="error", label="Error", unit="% of time run, mean of tasks"),
            Column(key="ratio", label="Over that of the best rule", unit="ratio"),
            Column(key="mae", label="Mean error", unit="min, all jobs"),
            Column(key="median", label="Median error", unit="min"),
            Column(key="accuracy", label="Accuracy", unit="%"),
        ),
        rows=tuple(rows),
        footnote=f"In brackets: {how}. Models guess their median, rules their limit. Jobs that ended by themselves.",
    )


def at_deployed(study: TaskStudy) -> Table | None:
    """Lay out what models allocate at the deployed rule's exceed rate, the level chosen on other tasks."""
    rows = []
    for at, found in study.trials.items():
        told = found.at_deployed.filter(chosen_on="other tasks").sort("average", "estimator")
        rows += [
            Row(
                cells={
                    "estimator": f"{row['estimator']}, {CLOCKS[at]}",
                    "average": "all jobs alike" if row["average"] == "jobs" else "mean of tasks",
                    "level": Num(value=row["level"], decimals=1 if row["level"] > 1 else 3),
                    "exceed": Num(value=100 * row["exceed"], decimals=1),
                    "rule": Num(value=100 * row["exceed_reference"], decimals=1),
                    "ratio": Num(value=row["ratio"], lo=row["ratio_lo"], hi=row["ratio_hi"], decimals=2),
                },
                note="" if row["no_higher"] else "exceeds more often",
            )
            for row in told.iter_rows(named=True)
        ]  # fmt: skip
    if not rows:
        return None
    return Table(
        name=f"at_deployed_{study.inputs.name}",
        caption="At the deployed rule's exceed rate, the level (of the allocation: the price) chosen on other tasks",
        columns=(
            Column(key="estimator", label="Model"),
            Column(key="average", label="Average over"),
            Column(key="level", label="Level or price"),
            Column(key="exceed", label="Beyond it", unit="% of jobs"),
            Column(key="rule", label="Beyond the deployed rule", unit="% of jobs"),
            Column(key="ratio", label="Allocated for nothing, over the deployed rule's", unit="ratio"),
        ),
        rows=tuple(rows),
        footnote="In brackets: 95 % intervals over tasks. The level is chosen for each task on all others, as one who runs the system "
        "could; that it exceeds no more often is then not certain.",
    )  # fmt: skip
