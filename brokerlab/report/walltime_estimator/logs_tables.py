"""The tables of the walltime-estimator report on batch logs."""

from __future__ import annotations

from brokerlab.report.content import Column, Num, Row, Table
from brokerlab.report.walltime_estimator.logs import BOUND, LEVEL, MEDIAN, LogStudy

INTERVALS = "In brackets: 95 % intervals over users."


def by_method(study: LogStudy, log: str) -> Table:
    """Lay out every method on one log, the least mean error first."""
    rows = [
        Row(
            cells={
                "method": row["method"],
                "mae": Num(value=row["mae_s"] / 60, decimals=1),
                "median": Num(value=row["median_s"] / 60, decimals=1),
                "ratio": Num(value=row["ratio"], lo=row["ratio_lo"], hi=row["ratio_hi"], decimals=2),
                "accuracy": Num(value=100 * row["accuracy"], decimals=1),
                "under": Num(value=100 * row["under"], lo=100 * row["under_lo"], hi=100 * row["under_hi"], decimals=1),
                "over": Num(value=row["over_allocation"], decimals=2),
            },
            note={MEDIAN: "ours", BOUND: "ours, bound", row["best_peer"]: "best simple rule"}.get(row["method"], ""),
        )
        for row in study.table.filter(log=log).sort("mae_s", "method").iter_rows(named=True)
    ]  # fmt: skip
    return Table(
        name=f"log_{log}",
        caption=f"{log}: run times told at submission",
        columns=(
            Column(key="method", label="Method"),
            Column(key="mae", label="Mean error", unit="min"),
            Column(key="median", label="Median error", unit="min"),
            Column(key="ratio", label="Mean error over that of the best simple rule", unit="ratio"),
            Column(key="accuracy", label="Accuracy", unit="%"),
            Column(key="under", label="Ran longer than told", unit="% of jobs"),
            Column(key="over", label="Told and not used", unit="of time run"),
        ),
        rows=tuple(rows),
        footnote=f"{INTERVALS} Accuracy: mean of the smaller over the larger of told and taken.",
    )


def by_stratum(study: LogStudy) -> Table:
    """Lay out where the bound is exceeded, and where ours errs more."""
    rows = [
        Row(
            cells={
                "stratum": f"{row['log']}: {row['stratum']}",
                "jobs": Num(value=row["jobs"], decimals=0),
                "users": Num(value=row["users"], decimals=0),
                "under": Num(value=100 * row["under"], decimals=1),
                "ratio": Num(value=row["ratio"], decimals=2),
            },
            note="errs more than the best rule" if row["ratio"] and row["ratio"] > 1 else "",
        )
        for row in study.strata.iter_rows(named=True)
    ]
    return Table(
        name="strata",
        caption=f"Whose jobs: the bound of level {LEVEL:g}, and the error of the median",
        columns=(
            Column(key="stratum", label="Jobs"),
            Column(key="jobs", label="Scored", unit="jobs"),
            Column(key="users", label="Users"),
            Column(key="under", label="Beyond the bound", unit="% of jobs"),
            Column(key="ratio", label="Mean error over the best rule's", unit="ratio"),
        ),
        rows=tuple(rows),
        footnote="Without intervals: most rows are few users, whose jobs are alike.",
    )
