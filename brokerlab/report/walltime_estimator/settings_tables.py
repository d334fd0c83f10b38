"""The tables of the walltime-estimator report on settings."""

from __future__ import annotations

from typing import Any

from brokerlab.calibrate.nearest_setting import Translation
from brokerlab.calibrate.nearest_setting.translation import PERIODS
from brokerlab.report.content import Column, Num, Row, Table
from brokerlab.report.walltime_estimator.settings_sentences import WHERE


def sides(part: str, found: Translation) -> Table:
    """Lay out the estimator, the nearest setting and the current one."""
    rows = [
        Row(
            cells={
                "who": f"{row['who']}: {row['label']}",
                "exceed": _share(row, "exceed_rate", "exceed_lo", "exceed_hi"),
                "over": Num(value=row["over_allocation"], decimals=2),
                "killed": Num(value=100 * row["killed_coreh"] / row["work_coreh"], decimals=1),
                "loss": Num(value=row["loss"], lo=row["loss_lo"], hi=row["loss_hi"], decimals=3),
            },
            note="current" if row["who"] == "current" else "",
        )
        for row in found.table.filter(period=found.scored_on).iter_rows(named=True)
    ]
    return Table(
        name=f"settings_{part}",
        caption=f"{WHERE.get(part, part)}, {PERIODS[found.scored_on]}",
        columns=(
            Column(key="who", label="Who"),
            Column(key="exceed", label="Beyond their limit", unit="% of jobs"),
            Column(key="over", label="Limit not used", unit="of time used"),
            Column(key="killed", label="Killed work", unit="% of work"),
            Column(key="loss", label="Loss", unit="core h per core h of work"),
        ),
        rows=tuple(rows),
        footnote="In brackets: 95 % intervals over tasks; none where tasks are few. The loss weighs killed work, a new try and slots out of reach.",
    )


def _share(row: dict[str, Any], *names: str) -> Num:
    value, lo, hi = (None if row[name] is None else 100 * row[name] for name in names)
    return Num(value=value, lo=lo, hi=hi, decimals=1)
