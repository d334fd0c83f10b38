"""The tables of the choice of the nucleus."""

from __future__ import annotations

import polars as pl

from brokerlab.brokerage import production_tasks
from brokerlab.report.brokerage_replay.nuclei import NOT_REACHED, Nuclei
from brokerlab.report.content import Column, Row, Table
from brokerlab.report.replays.cells import INTERVALS, count, row_pct
from brokerlab.report.replays.removal import CANDIDATE


def nucleus_checks(found: Nuclei) -> Table:
    """Lay out what removes nuclei."""
    about = {check.name: check for check in production_tasks.checks(found.decisions.rules)}
    rows = [
        Row(
            cells={
                "check": row["part"],
                "removed": row_pct(row),
                "keys": ", ".join(about[row["part"]].keys) if row["part"] in about else "",
            }
        )
        for row in found.by_check.filter(
            (pl.col("total") > 0) | (pl.col("part") == CANDIDATE)
        ).iter_rows(named=True)
    ]
    idle = found.by_check.filter(
        pl.col("total") == 0, ~pl.col("part").is_in([CANDIDATE, NOT_REACHED])
    )
    return Table(
        name="nucleus_checks",
        caption="Why nuclei were skipped",
        columns=(
            Column(key="check", label="Check"),
            Column(key="removed", label="Removed", unit="% of pairs"),
            Column(key="keys", label="Keys it reads"),
        ),
        rows=tuple(rows),
        footnote=f"{INTERVALS} Never: {', '.join(idle['part']) or 'none'}.",
    )


def nucleus_tasks(found: Nuclei) -> Table:
    """Lay out how tasks end, what becomes of data locality, and the agreement with history."""
    parts = [
        ("task", found.outcomes.filter(pl.col("total") > 0)),
        ("data locality", found.locality),
        ("nucleus of history", found.history),
    ]
    words = {
        "nucleus": "gets a nucleus", "held": "checked", "off_period": "off: waited too long",
        "passed": "is a candidate", "drawn": "mean chance in the draw", "by_chance": "a candidate, drawn at random",
    }  # fmt: skip
    rows = [
        Row(
            cells={
                "what": f"{what}: {words.get(row['part'], row['part'])}",
                "tasks": count(row["whole"]),
                "share": row_pct(row),
            }
        )
        for what, frame in parts
        for row in frame.iter_rows(named=True)
    ]
    return Table(
        name="nucleus_tasks",
        caption="Tasks and their nucleus",
        columns=(
            Column(key="what", label="What"),
            Column(key="tasks", label="Of tasks"),
            Column(key="share", label="Share", unit="%"),
        ),
        rows=tuple(rows),
        footnote=f"{INTERVALS} Data locality: tasks with input that came to the checks.",
    )
