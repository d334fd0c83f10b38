"""The tables on jobs of whole tasks that no other report has."""

from __future__ import annotations

from brokerlab.estimators.memory_tasks import OURS
from brokerlab.report.content import Column, Num, Row, Table
from brokerlab.report.memory_estimator.jobs import JobStudy


def speeds(study: JobStudy) -> Table | None:
    """Lay out what the inferred clock changes; None where times were recorded."""
    if study.speeds.is_empty():
        return None
    rows = [
        Row(
            cells={
                "speed": f"{row['ids_per_s']:g}",
                "estimator": row["estimator"],
                "exceed": Num(value=100 * row["exceed_task_mean"], decimals=1),
                "over": Num(value=100 * row["over_allocation_task_mean"], decimals=1),
            },
            note="ours" if row["estimator"] == OURS else "",
        )
        for row in study.speeds.sort("ids_per_s", maintain_order=True).iter_rows(named=True)
    ]
    return Table(
        name="speeds",
        caption="By the speed at which the whole system numbers its jobs, decided at submission",
        columns=(
            Column(key="speed", label="Speed", unit="jobs per s"),
            Column(key="estimator", label="Estimator"),
            Column(key="exceed", label="Jobs above it", unit="%"),
            Column(key="over", label="For nothing", unit="% of use"),
        ),
        rows=tuple(rows),
        footnote="Means over tasks. Where no job of a task had ended, a rule gives what was requested, and a model what other "
        "tasks did; that the recorded requests follow from finished scouts speaks against such speeds.",
    )
