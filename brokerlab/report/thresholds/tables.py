"""The tables of the thresholds report."""

from __future__ import annotations

from typing import Any

import polars as pl

from brokerlab.calibrate.thresholds import OBJECTIVES, QUANTITIES, Calibration, threshold_of
from brokerlab.calibrate.thresholds.choice import RELATIVE
from brokerlab.calibrate.thresholds.screening import CHANGES, NOT_READ, NOTHING, UNTOLD
from brokerlab.calibrate.thresholds.settings import Key, shown
from brokerlab.calibrate.thresholds.verdict import days
from brokerlab.report.content import Column, Num, Row, Table
from brokerlab.report.thresholds import sentences as say
from brokerlab.report.thresholds.study import Study
from brokerlab.words import number

ROWS = 12
"""Settings, levels or queues in a table; the rest is in the files."""
FOLLOWS = {
    (CHANGES, True): "simulate",
    (CHANGES, False): "screened only",
    (NOTHING, False): "keep",
    (NOT_READ, False): "keep: not read",
    (UNTOLD, False): "cannot be told",
}
"""What follows from the screen, by state and whether the simulator can judge."""
INTERVAL = "In brackets: intervals of the difference."


def screened(study: Study) -> Table:
    """Lay out the screen: what is now, what could change, what follows."""
    frame = study.calibration.screened
    order = frame.with_row_index("place").sort(
        pl.col("state") == CHANGES,
        pl.col("shift").fill_null(-1.0),
        "place",
        descending=[True, True, False],
    )
    now = {key.name: _now(key) for key in study.space.keys}
    rows = [
        Row(
            cells={
                "key": row["key"],
                "now": now[row["key"]],
                "share": _percent(row["shift"]) if row["state"] == CHANGES else None,
                "at": None if row["at"] is None else f"{row['at']:g}",
                "tasks": _count(row["n_tasks"], row["n_jobs"]),
                "told": FOLLOWS[(row["state"], row["simulate"])],
            }
        )
        for row in order.iter_rows(named=True)
    ]
    return Table(
        name="screened",
        caption=f"Does any value of a key change any decision? Brokerages of {days(study.screened)}",
        columns=(
            Column(key="key", label="Key"),
            Column(key="now", label="Now"),
            Column(key="share", label="Jobs elsewhere", unit="%"),
            Column(key="at", label="at"),
            Column(key="tasks", label="Decided differently"),
            Column(key="told", label="What follows"),
        ),
        rows=tuple(rows),
        footnote="Jobs elsewhere: part of the expected jobs, at the value that changes most brokerages. Of the fast rebrokerage: "
        "jobs given back otherwise. Keep: no value that was tried changes a decision; not read: these settings switch off what "
        "reads it.",
    )


def _now(key: Key) -> str:
    """Write the value in force with its unit."""
    if key.mixed:
        return "mixed"
    unit = key.threshold.row.unit
    plain = key.current is None or unit in ("ratio", "fraction", "weight")
    return shown(key.current) if plain else f"{shown(key.current)} {unit}"


def _percent(share: float | None) -> Num | None:
    return None if share is None else Num(value=100 * share, decimals=1)


def _count(n_tasks: int | None, n_jobs: int | None) -> str | None:
    if n_jobs is not None:
        return f"{number(n_jobs)} jobs"
    return None if n_tasks is None else number(n_tasks)


def trades(study: Study) -> Table:
    """Lay out what each key trades."""
    rows = []
    for key in study.space.keys:
        known = threshold_of(key.name)
        low, high = known.rails
        rows.append(
            Row(
                cells={
                    "key": key.name,
                    "grows": known.grows,
                    "shrinks": known.shrinks,
                    "rails": f"{number(low, 1 if low % 1 else 0)} to {number(high)} {known.row.unit}",
                }
            )
        )
    return Table(
        name="trades",
        caption="What is traded",
        columns=(
            Column(key="key", label="Key"),
            Column(key="grows", label="Raised, it lets grow"),
            Column(key="shrinks", label="and shrink"),
            Column(key="rails", label="Guard rails"),
        ),
        rows=tuple(rows),
    )


def before_after(found: Calibration) -> Table | None:
    """Lay out every quantity before and after, on the proof period."""
    proof = found.proof
    if proof is None or proof.table.is_empty():
        return None
    limits = {
        RELATIVE.get(name, name): (name, value) for name, value in found.limits.values().items()
    }
    rows = []
    for row in proof.table.filter(pl.col("before").is_not_null()).iter_rows(named=True):
        named = limits.get(row["quantity"])
        limit = "" if named is None else f"+{named[1]:g}{' %' if named[0] in RELATIVE else ''}"
        rows.append(
            Row(
                cells={
                    "quantity": f"{row['label']} [{row['unit']}]",
                    "before": Num(value=row["before"]),
                    "after": Num(value=row["after"]),
                    "diff": Num(value=row["diff"], lo=row["lo"], hi=row["hi"]),
                    "pct": None if row["pct"] is None else Num(value=row["pct"], lo=row["pct_lo"], hi=row["pct_hi"]),
                    "limit": limit,
                },
                note="objective" if row["quantity"] == found.objective else "",
            )
        )  # fmt: skip
    return Table(
        name="before_after",
        caption=f"As it is, and {proof.setting.name}: {days(proof.period)}, {proof.n_tasks} tasks, {proof.replications} "
        "simulations of each",
        columns=(
            Column(key="quantity", label="Quantity"),
            Column(key="before", label="Now"),
            Column(key="after", label="Then"),
            Column(key="diff", label="Difference"),
            Column(key="pct", label="Difference", unit="%"),
            Column(key="limit", label="Limit"),
        ),
        rows=tuple(rows),
        footnote=INTERVAL,
    )


def candidates(found: Calibration) -> Table | None:
    """Lay out the best settings of the calibration period."""
    if not found.choices or found.choices[0].candidates.is_empty():
        return None
    frame = found.choices[0].candidates
    rows = [
        Row(
            cells={
                "setting": row["setting"],
                "after": Num(value=row["after"]),
                "pct": None if row["pct"] is None else Num(value=row["pct"], lo=row["pct_lo"], hi=row["pct_hi"]),
                "limits": row["broken"] or "kept",
                "lowers": "yes" if row["lowers"] else "no",
            },
            note="chosen" if row["setting"] == found.choices[0].setting.name else "",
        )
        for row in frame.head(ROWS).iter_rows(named=True)
    ]  # fmt: skip
    unit = next(q.unit for q in QUANTITIES if q.name == found.objective)
    return Table(
        name="candidates",
        caption=f"The best of {frame.height} settings on the calibration period ({days(found.calibration)})",
        columns=(
            Column(key="setting", label="Setting"),
            Column(key="after", label=say.objective_label(found), unit=unit),
            Column(key="pct", label="Difference from now", unit="%"),
            Column(key="limits", label="Limits broken"),
            Column(key="lowers", label="Lower beyond doubt"),
        ),
        rows=tuple(rows),
        footnote=f"{INTERVAL} A key is changed only if that lowers the objective beyond doubt in simulations that nothing was "
        "chosen on: the best of many settings was lucky, too.",
    )


def strata(found: Calibration) -> Table | None:
    """Lay out who gains and who loses."""
    proof = found.proof
    if proof is None or proof.strata.is_empty():
        return None
    worst = proof.strata.sort("pct", descending=True, nulls_last=True)
    rows = [
        Row(
            cells={
                "level": f"{row['stratum'].replace('_', ' ')} {row['level']}",
                "tasks": Num(value=row["n_tasks"], decimals=0),
                "before": Num(value=row["before"]),
                "diff": Num(value=row["diff"], lo=row["lo"], hi=row["hi"]),
                "verdict": row["verdict"],
            },
            note="worst" if place == 0 else "",
        )
        for place, row in enumerate(worst.head(ROWS).iter_rows(named=True))
    ]
    return Table(
        name="strata",
        caption=f"{say.objective_label(found)}, by who it is, worst first",
        columns=(
            Column(key="level", label="Who"),
            Column(key="tasks", label="Tasks"),
            Column(key="before", label="Now"),
            Column(key="diff", label="Difference"),
            Column(key="verdict", label="Verdict"),
        ),
        rows=tuple(rows),
        footnote=f"{INTERVAL} Of many levels some seem to gain or lose by chance.",
    )


def queues(found: Calibration) -> Table | None:
    """Lay out which queues get fuller and emptier."""
    proof = found.proof
    if proof is None or proof.queues.is_empty():
        return None
    rows = [
        Row(
            cells={
                "queue": row["panda_queue"],
                "jobs": Num(value=row["n_jobs_before"], decimals=0),
                "then": Num(value=row["n_jobs_after"], decimals=0),
                "used": Num(value=100 * row["used_before"], decimals=1),
                "diff": _points(row),
                "verdict": row["verdict"],
            }
        )
        for row in proof.queues.head(ROWS).iter_rows(named=True)
    ]
    return Table(
        name="queues",
        caption="Queues whose use changes most",
        columns=(
            Column(key="queue", label="Queue"),
            Column(key="jobs", label="Jobs now"),
            Column(key="then", label="then"),
            Column(key="used", label="Slots used now", unit="%"),
            Column(key="diff", label="Difference", unit="% points"),
            Column(key="verdict", label="Verdict"),
        ),
        rows=tuple(rows),
        footnote="In brackets: intervals over simulations.",
    )


def _points(row: dict[str, Any]) -> Num:
    parts = [None if row[name] is None else 100 * row[name] for name in ("diff", "lo", "hi")]
    return Num(value=parts[0], lo=parts[1], hi=parts[2])


def front(found: Calibration) -> Table | None:
    """Lay out the settings that nothing beats in every respect."""
    if found.pareto.is_empty():
        return None
    known = [name for name in OBJECTIVES if found.pareto[name].null_count() == 0]
    units = {q.name: q for q in QUANTITIES}
    kept = found.pareto.filter("on_front").sort(known[0])
    rows = [
        Row(
            cells={"setting": row["setting"], **{name: Num(value=row[name]) for name in known}},
            note="now" if row["setting"] == "as it is" else "",
        )
        for row in kept.head(ROWS).iter_rows(named=True)
    ]
    return Table(
        name="front",
        caption=f"{kept.height} of {found.pareto.height} settings that no other beats in every respect",
        columns=(
            Column(key="setting", label="Setting"),
            *(Column(key=name, label=units[name].label, unit=units[name].unit) for name in known),
        ),
        rows=tuple(rows),
        footnote="Means of the calibration period; some differ by less than their uncertainty.",
    )


def limits(found: Calibration) -> Table | None:
    """Lay out the choice under halved and doubled limits; nothing where they leave it as it is."""
    frames = [choice.sensitivity for choice in found.choices if not choice.stable]
    if not frames:
        return None
    rows = [
        Row(
            cells={
                "limit": row["limit"],
                "factor": "halved" if row["factor"] < 1 else "doubled",
                "setting": row["setting"],
            }
        )
        for row in frames[0].iter_rows(named=True)
    ]
    return Table(
        name="limits",
        caption="The choice with each limit halved and doubled",
        columns=(
            Column(key="limit", label="Limit"),
            Column(key="factor", label=""),
            Column(key="setting", label="Choice"),
        ),
        rows=tuple(rows),
    )
