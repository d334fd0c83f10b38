"""The tables of the site classes report: rule sets, tasks and shares."""

from __future__ import annotations

import polars as pl

from brokerlab.report.content import Column, Num, Row, Table
from brokerlab.report.replays.cells import count, pct, row_pct
from brokerlab.report.site_classes.rating import CLASSES, NONE
from brokerlab.report.site_classes.study import Study
from brokerlab.report.site_classes.targets import Targets
from brokerlab.report.site_classes.tasks import NOT_RATED, TASK_CLASSES, Tasks
from brokerlab.report.site_classes.words import INTERVALS

USERS_SHOWN = 12
"""Users in the table of the page; all are in the files."""


def matrix(study: Study) -> Table:
    """Lay out the classes under both rule sets against each other."""
    found = study.rule_sets
    cells = {(row["here"], row["there"]): row["cells"] for row in found.matrix.to_dicts()}
    every = max(sum(cells.values()), 1)
    names = (*CLASSES, NONE)
    rows = [
        Row(
            cells={
                "here": f"{here} by the {found.current} rules",
                **{there: pct(cells.get((here, there), 0) / every) for there in names},
            }
        )
        for here in names
    ]
    return Table(
        name="matrix",
        caption=f"Classes by the {found.current} rules against the {found.other} rules",
        columns=(
            Column(key="here", label="Class"),
            *(
                Column(key=name, label=f"{name} by the {found.other} rules", unit="%")
                for name in names
            ),
        ),
        rows=tuple(rows),
        footnote="Per cent of all queues and instants.",
    )


def switches(study: Study) -> Table | None:
    """Lay out what every single difference of the rule sets moves; none where there is no difference."""
    found = study.rule_sets
    if found.switches.is_empty():
        return None
    rows = [
        Row(
            cells={
                "switch": row["switch"],
                "row": row["row"],
                "here": row["here"],
                "there": row["there"],
                "moved": row_pct(row),
                "explained": pct(row["explained"]),
            }
        )
        for row in found.switches.iter_rows(named=True)
    ]
    return Table(
        name="switches",
        caption=f"Each difference alone: the {found.current} rules with one switch as in the {found.other} rules",
        columns=(
            Column(key="switch", label="Switch"),
            Column(key="row", label="Row of the chapter"),
            Column(key="here", label=found.current),
            Column(key="there", label=found.other),
            Column(key="moved", label="Moves of the queues and instants", unit="%"),
            Column(key="explained", label="Brings about, of all differences", unit="%"),
        ),
        rows=tuple(rows),
        footnote=f"{INTERVALS} The last column need not add up to 100 %: differences act together.",
    )


def gshares(found: Tasks) -> Table:
    """Lay out the classes of tasks by share."""
    names = [*TASK_CLASSES, NOT_RATED]
    rows = []
    for name, frame in (("all", found.by_class), *_groups(found.by_gshare)):
        parts = {row["part"]: row for row in frame.iter_rows(named=True)}
        tasks = found.rows if name == "all" else found.rows.filter(pl.col("gshare") == name)
        cells: dict[str, Num | str | None] = {"gshare": name}
        cells |= {"tasks": count(tasks["jeditaskid"].n_unique())}
        cells |= {part: row_pct(parts[part]) for part in names}
        rows.append(Row(cells=cells))
    return Table(
        name="task_classes",
        caption="Classes of tasks, over the instants at which they were active",
        columns=(
            Column(key="gshare", label="gshare"),
            Column(key="tasks", label="Tasks"),
            *(Column(key=name, label=name, unit="%") for name in names),
        ),
        rows=tuple(rows),
        footnote=INTERVALS,
    )


def _groups(frame: pl.DataFrame) -> list[tuple[str, pl.DataFrame]]:
    names = frame["gshare"].unique().sort().to_list()
    return [(name, frame.filter(pl.col("gshare") == name)) for name in names]


def users(found: Tasks) -> Table:
    """Lay out the users who occupied most slots at hi and mid queues, and the classes of their tasks."""
    parts = {(row["user"], row["part"]): row for row in found.by_user.iter_rows(named=True)}
    rows = []
    for row in found.users.head(USERS_SHOWN).iter_rows(named=True):
        user = row["user"]
        cells: dict[str, Num | str | None] = {"user": user, "tasks": count(row["tasks"])}
        cells |= {name: Num(value=row[f"slots_{name}"], decimals=1) for name in CLASSES}
        cells |= {name: count(row[name]) for name in ("peak_a", "peak_b")}
        for name in TASK_CLASSES:
            part = parts.get((user, name))
            cells[f"class_{name}"] = None if part is None else pct(part["share"])
        rows.append(Row(cells=cells))
    a, b = found.thresholds or (None, None)
    return Table(
        name="users",
        caption="Users with most slots at hi and mid queues",
        columns=(
            Column(key="user", label="User"),
            Column(key="tasks", label="Tasks"),
            *(Column(key=name, label=f"at {name} queues, mean", unit="slots") for name in CLASSES),
            Column(key="peak_a", label=f"at hi, most (A: {a or 0:g})", unit="slots"),
            Column(key="peak_b", label=f"at hi and mid, most (B: {b or 0:g})", unit="slots"),
            *(
                Column(key=f"class_{name}", label=f"{name} tasks", unit="%")
                for name in TASK_CLASSES
            ),
        ),
        rows=tuple(rows),
        footnote="Slots that run at GRID queues with a class, User Analysis and Express Analysis; means over the instants at which the user had active jobs. The last columns: of the user's tasks and instants.",
    )


def targets(found: Targets) -> Table:
    """Lay out what runs in every leaf share against its target."""
    above = {row["gshare"]: row for row in found.above.iter_rows(named=True)}
    hs = {row["gshare"]: row for row in found.hs.iter_rows(named=True)}
    rows = [
        Row(
            cells={
                "gshare": row["gshare"],
                "target": Num(value=hs[row["gshare"]]["target_hs"], decimals=0),
                "running": Num(value=hs[row["gshare"]]["running_hs"], decimals=0),
                "queuing": Num(value=hs[row["gshare"]]["queuing_hs"], decimals=0),
                "usage": row_pct(row),
                "above": row_pct(above[row["gshare"]]),
            }
        )
        for row in found.leaves.sort(
            "share", "gshare", descending=[True, False], nulls_last=True
        ).iter_rows(named=True)
    ]
    return Table(
        name="targets",
        caption="Leaf shares against their targets",
        columns=(
            Column(key="gshare", label="gshare"),
            Column(key="target", label="Target, mean", unit="HS06"),
            Column(key="running", label="Runs, mean", unit="HS06"),
            Column(key="queuing", label="Queues, mean", unit="HS06"),
            Column(key="usage", label="Runs", unit="% of target"),
            Column(key="above", label="Above target", unit="% of instants"),
        ),
        rows=tuple(rows),
        footnote=f"{INTERVALS} Targets share out what runs: they follow it.",
    )
