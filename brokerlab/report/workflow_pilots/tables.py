"""The tables of the workflow-pilots report."""

from __future__ import annotations

import polars as pl

from brokerlab.report.content import Column, Num, Row, Table
from brokerlab.report.workflow_pilots.sentences import name_of, times
from brokerlab.report.workflow_pilots.study import NOTES, PAPER, Study
from brokerlab.words import number, percent
from brokerlab.workflows.compare import costs, shapes_by_rules

INTERVALS = "In brackets: 95 % intervals from resampling instants."
HOUR = 3600.0


def by_strategy(study: Study) -> Table:
    """Lay out, for every strategy, its turnaround against grouping by the paper's rules, and what it costs."""
    ratios = {(row["strategy"], row["system"]): row for row in study.by_queue.iter_rows(named=True)}
    rows = [
        Row(
            cells={
                "strategy": name_of(row["strategy"]),
                **{
                    system: "1" if row["strategy"] == PAPER else times(ratios.get((row["strategy"], system)))
                    for system in study.inputs.systems
                },
                "jobs": Num(value=row["jobs"], decimals=1),
                "expired": Num(value=row["expirations"], decimals=2),
                "waste": Num(value=100 * row["waste"], decimals=0),
            },
            note="reference" if row["strategy"] == PAPER else "",
        )
        for row in costs(study.runs).iter_rows(named=True)
    ]  # fmt: skip
    return Table(
        name="strategies",
        caption="Turnaround over that of grouping by the paper's rules, and what it costs",
        columns=(
            Column(key="strategy", label="Strategy"),
            *(Column(key=system, label=system, unit="ratio") for system in study.inputs.systems),
            Column(key="jobs", label="Jobs", unit="per run"),
            Column(key="expired", label="Expired", unit="per run"),
            Column(key="waste", label="Idle or lost", unit="% of useful host time"),
        ),
        rows=tuple(rows),
        footnote=f"{INTERVALS} Geometric means over the workflows at the same instants; below 1: ends sooner.",
    )


def by_place(study: Study) -> Table:
    """Lay out grouping against the better of one job and one job per task, place by place."""
    worst = max([1.0, *study.ratios.filter(pl.col("rules") == "paper")["ratio"]])
    rows = []
    for system, workflow in study.places:
        found = {
            row["rules"]: row
            for row in study.ratios.filter(
                pl.col("system") == system, pl.col("workflow") == workflow
            ).iter_rows(named=True)
        }
        if not found:
            continue
        paper, notes = found.get("paper"), found.get("notes")
        cells: dict[str, Num | str | None] = {
            "place": f"{workflow}, {system}",
            "best": name_of(next(iter(found.values()))["against"]),
        }
        for name, row in (("paper", paper), ("notes", notes)):
            cells[name] = times(row)
            cells[f"{name}_modes"] = (
                f"{percent(row['one_job'])} / {percent(row['task_by_task'])}" if row else None
            )
        note = "worst for grouping" if paper and paper["ratio"] == worst > 1 else ""
        rows.append(Row(cells=cells, note=note))
    return Table(
        name="places",
        caption="Turnaround of grouping over that of the better simple way",
        columns=(
            Column(key="place", label="Workflow, queue"),
            Column(key="best", label="Better simple way"),
            Column(key="paper", label="Paper", unit="ratio"),
            Column(key="paper_modes", label="One job / task by task"),
            Column(key="notes", label="Notes", unit="ratio"),
            Column(key="notes_modes", label="One job / task by task"),
        ),
        rows=tuple(rows),
        footnote=f"{INTERVALS} Below 1: grouping ends sooner. The shares are of the runs that became a single job, and of "
        "those that went task by task from the start; the others had pilots.",
    )


def rules(study: Study) -> Table:
    """Lay out how runs of grouping went, by rule set."""
    shapes = {
        "one_job": "One job",
        "pilots": "Pilots",
        "pilots_then_tasks": "Pilots, then task by task",
        "task_by_task": "Task by task",
    }
    rows = [
        Row(
            cells={
                "rules": name_of(row["strategy"]),
                **{s: Num(value=100 * row[s], decimals=0) for s in shapes},
                "expired": Num(value=row["expirations"], decimals=2),
            }
        )
        for row in shapes_by_rules(study.runs).iter_rows(named=True)
    ]
    return Table(
        name="rules",
        caption="How runs of grouping went",
        columns=(
            Column(key="rules", label="Rules"),
            *(Column(key=s, label=label, unit="% of runs") for s, label in shapes.items()),
            Column(key="expired", label="Expired pilots", unit="per run"),
        ),
        rows=tuple(rows),
    )


def machines(study: Study) -> Table:
    """Lay out the queues."""
    rows = []
    for name, system in study.inputs.systems.items():
        found = study.by_queue.filter(pl.col("system") == name, pl.col("strategy") == NOTES)
        notes = found.to_dicts()
        rows.append(
            Row(
                cells={
                    "system": name,
                    "hosts": Num(value=system.hosts, decimals=0),
                    "jobs": Num(value=system.background.height, decimals=0),
                    "days": Num(value=(system.span[1] - system.span[0]) / 86400, decimals=0),
                    "load": Num(value=system.load, decimals=2),
                    "asked": Num(value=system.requested_load / system.load if system.load else None, decimals=1),
                    "notes": times(notes[0]) if notes else None,
                }
            )
        )  # fmt: skip
    return Table(
        name="machines",
        caption="The queues",
        columns=(
            Column(key="system", label="Queue"),
            Column(key="hosts", label="Hosts"),
            Column(key="jobs", label="Background jobs"),
            Column(key="days", label="Length", unit="d"),
            Column(key="load", label="Load"),
            Column(key="asked", label="Asked over used host time", unit="ratio"),
            Column(key="notes", label="Turnaround, notes over paper", unit="ratio"),
        ),
        rows=tuple(rows),
        footnote=INTERVALS,
    )


def predictions(study: Study) -> Table:
    """Lay out how well waits are told at submission."""
    names = {
        "carried forward": "queue carried forward",
        "bound_95": "bound of the 95 % quantile",
        "bound_50": "bound of the median",
        "nearest": "median of the 50 nearest",
    }
    rows = [
        Row(
            cells={
                "system": row["system"],
                "method": names[row["method"]],
                "n": Num(value=row["n_predicted"], decimals=0),
                "coverage": Num(value=row["coverage_pct"], decimals=1),
                "waited": Num(value=row["n_predicted_waited"], decimals=0),
                "coverage_waited": Num(value=row["coverage_pct_waited"], decimals=1),
                "tightness": Num(value=row["tightness_waited"], decimals=2),
                "two": Num(value=row["within_two_pct_waited"], decimals=0),
            }
        )
        for row in study.predictions.iter_rows(named=True)
    ]
    return Table(
        name="predictions",
        caption="Waits told at submission, scored on the later half of each load",
        columns=(
            Column(key="system", label="Queue"),
            Column(key="method", label="Told by"),
            Column(key="n", label="Jobs"),
            Column(key="coverage", label="Waited no longer", unit="%"),
            Column(key="waited", label="Jobs that waited"),
            Column(key="coverage_waited", label="of them no longer", unit="%"),
            Column(key="tightness", label="Told over waited", unit="median ratio"),
            Column(key="two", label="Within a factor of two", unit="%"),
        ),
        rows=tuple(rows),
        footnote="The load's own jobs, simulated alone. Fitted ways learn a wait when the job starts, never before; bounds have "
        "95 % confidence. The last two columns are of the jobs that waited, times being 1 s longer. Without intervals: jobs in "
        "a row wait alike.",
    )


def workflows(study: Study) -> Table:
    """Lay out the workflows."""
    rows = [
        Row(
            cells={
                "workflow": name,
                "tasks": Num(value=len(dag), decimals=0),
                "levels": Num(value=len(dag.levels), decimals=0),
                "width": Num(value=max(dag.widths), decimals=0),
                "work": Num(value=dag.work / HOUR, decimals=1),
                "path": Num(value=dag.longest_path / HOUR, decimals=2),
            }
        )
        for name, dag in study.inputs.workflows.items()
    ]
    return Table(
        name="workflows",
        caption="The workflows",
        columns=(
            Column(key="workflow", label="Workflow"),
            Column(key="tasks", label="Tasks"),
            Column(key="levels", label="Levels"),
            Column(key="width", label="Widest level", unit="hosts"),
            Column(key="work", label="Work", unit="host h"),
            Column(key="path", label="Longest path", unit="h"),
        ),
        rows=tuple(rows),
    )


def example(study: Study) -> Table | None:
    """Lay out the example, strategy by strategy."""
    if study.example is None:
        return None
    rows = [
        Row(
            cells={
                "strategy": name_of(name),
                "turnaround": Num(value=done.metrics["turnaround"] / HOUR, decimals=2),
                "jobs": Num(value=done.metrics["jobs_submitted"], decimals=0),
                "went": done.shape,
                "expired": Num(value=done.metrics["expirations"], decimals=0),
                "waste": Num(value=done.metrics["wasted"] / HOUR, decimals=1),
            }
        )
        for name, done in study.example.runs.items()
    ]
    return Table(
        name="example",
        caption="The same instant, strategy by strategy",
        columns=(
            Column(key="strategy", label="Strategy"),
            Column(key="turnaround", label="Turnaround", unit="h"),
            Column(key="jobs", label="Jobs"),
            Column(key="went", label="How it went"),
            Column(key="expired", label="Expired pilots"),
            Column(key="waste", label="Idle or lost", unit="host h"),
        ),
        rows=tuple(rows),
        footnote=f"Useful: {number(study.inputs.workflows[study.example.workflow].work / HOUR, 1)} host h in every case.",
    )


def published(study: Study) -> Table:
    """Lay out the shapes of the published results."""
    rows = [
        Row(
            cells={key: row[key] for key in ("check", "claim", "found", "outcome")},
            note={"fails": "does not hold", "not tested": "not tested"}.get(row["outcome"], ""),
        )
        for row in study.published.iter_rows(named=True)
    ]
    return Table(
        name="published",
        caption="Shapes of the published results (chapter 12.3)",
        columns=(
            Column(key="check", label="Check"),
            Column(key="claim", label="Published, or expected"),
            Column(key="found", label="Found here"),
            Column(key="outcome", label="Outcome"),
        ),
        rows=tuple(rows),
        footnote="A check that fails is a result. Logs, workflows and weights of the publication are not public: only shapes "
        "can be compared. Grouping stands for grouping by the paper's rules; queues without backfilling are left out, as the publication has none.",
    )
