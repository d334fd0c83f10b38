"""The tables of the brokerage replay report."""

from __future__ import annotations

from collections.abc import Mapping

import polars as pl

from brokerlab.brokerage.production_jobs.late import late_reasons
from brokerlab.report.brokerage_replay.sentences import FACTORS
from brokerlab.report.brokerage_replay.study import Study
from brokerlab.report.content import Column, Row, Table
from brokerlab.report.replays.cells import INTERVALS, count, pct, row_pct
from brokerlab.report.replays.removal import CANDIDATE
from brokerlab.report.replays.words import largest
from brokerlab.words import instant, number, percent

SMALL = 0.001
"""Checks that remove a smaller share of the pairs are left to the tables beside the page."""
REASONS_SHOWN = 3
"""Reasons named for a share or a queue."""


def checks(study: Study) -> Table:
    """Lay out what each check removes, in order, and which keys it reads."""
    world = study.decisions.world
    reasons = (*study.decisions.checks, *late_reasons(world.rules, world.settings))
    about = {reason.name: reason for reason in reasons}
    shown = study.by_check.filter(pl.col("share") >= SMALL)
    rows = [
        Row(
            cells={
                "check": row["part"],
                "removed": row_pct(row),
                "left": pct(max(row["left"], 0.0)) if row["part"] != CANDIDATE else None,
                "kind": about[row["part"]].kind if row["part"] in about else "",
                "keys": ", ".join(about[row["part"]].keys) if row["part"] in about else "",
            }
        )
        for row in shown.iter_rows(named=True)
    ]
    missing = study.by_check.filter(pl.col("share") < SMALL, pl.col("total") > 0).height
    idle = study.by_check.filter(pl.col("total") == 0)["part"].to_list()
    return Table(
        name="check_by_check",
        caption=f"What each check removes, in order, of {number(study.n_pairs)} pairs",
        columns=(
            Column(key="check", label="Check"),
            Column(key="removed", label="Removed", unit="% of pairs"),
            Column(key="left", label="Left after it", unit="% of pairs"),
            Column(key="kind", label="Kind"),
            Column(key="keys", label="Keys it reads"),
        ),
        rows=tuple(rows),
        footnote=(
            f"{INTERVALS} A pair counts for the check that removed it, the first one it fails (temporary ones: the "
            f"last). {missing} checks that remove less than 0.1 % are in the tables; never: {', '.join(idle) or 'none'}."
        ),
    )


def reasons(frame: pl.DataFrame, level: str, name: str) -> str:
    """Name the largest reasons of a level."""
    rows = largest(frame.filter(pl.col(level) == name), REASONS_SHOWN)
    return ", ".join(f"{row['part']} {percent(row['share'])}" for row in rows)


def gshares(study: Study) -> Table:
    """Lay out what becomes of the pairs of each gshare, and how often its tasks get no queue."""
    stuck = study.stuck_by_gshare.filter(pl.col("part") == "stuck").sort(
        "share", "gshare", descending=[True, False]
    )
    passed = {
        r["gshare"]: r for r in study.by_gshare.filter(pl.col("part") == CANDIDATE).to_dicts()
    }
    rows = [
        Row(
            cells={
                "gshare": row["gshare"],
                "tasks": count(row["n_tasks"]),
                "brokerages": count(row["whole"]),
                "stuck": row_pct(row),
                "passed": row_pct(passed[row["gshare"]]) if row["gshare"] in passed else None,
                "reasons": reasons(study.by_gshare, "gshare", row["gshare"]),
            },
            note="most often without a queue" if not place and row["total"] else "",
        )
        for place, row in enumerate(stuck.iter_rows(named=True))
    ]
    return Table(
        name="gshares",
        caption="By gshare",
        columns=(
            Column(key="gshare", label="gshare"),
            Column(key="tasks", label="Tasks"),
            Column(key="brokerages", label="Brokerages"),
            Column(key="stuck", label="Without a queue", unit="% of brokerages"),
            Column(key="passed", label="Candidates", unit="% of pairs"),
            Column(key="reasons", label="Most removed by", unit="% of pairs"),
        ),
        rows=tuple(rows),
        footnote=INTERVALS,
    )


def queues(study: Study) -> Table:
    """Lay out, for the queues where most jobs ran, how often they are candidates and what else they are."""
    jobs = dict(study.inputs.ran.group_by("computingsite").agg(pl.col("n_jobs").sum()).iter_rows())
    passed = study.by_queue.filter(pl.col("part") == CANDIDATE).to_dicts()
    passed.sort(key=lambda row: (-jobs.get(row["queue"], 0), row["queue"]))
    least = min((row["share"] for row in passed), default=None)
    rows = [
        Row(
            cells={
                "queue": row["queue"],
                "jobs": count(jobs.get(row["queue"], 0)),
                "passed": row_pct(row),
                "reasons": reasons(study.by_queue, "queue", row["queue"]),
            },
            note="least often a candidate" if row["share"] == least else "",
        )
        for row in passed
    ]
    return Table(
        name="queues",
        caption="By queue, those where most jobs ran",
        columns=(
            Column(key="queue", label="Queue"),
            Column(key="jobs", label="Jobs that ran"),
            Column(key="passed", label="Candidate", unit="% of brokerages"),
            Column(key="reasons", label="Most removed by", unit="% of brokerages"),
        ),
        rows=tuple(rows),
        footnote=(
            f"{INTERVALS} A unified queue counts once per brokerage, by that of its pseudo-queues which came furthest; "
            "a queue is not counted where it was no candidate to begin with."
        ),
    )


def worst(study: Study) -> Table | None:
    """Explain the tasks without a queue whose jobs were most; none where every task has one."""
    if study.worst.is_empty():
        return None
    rows = [
        Row(
            cells={
                "task": str(row["jeditaskid"]),
                "at": instant(row["at"]),
                "jobs": count(row["n_jobs"]),
                "queue": row["queue"],
                "why": row["why"],
                "help": row["help"],
            }
        )
        for row in study.worst.iter_rows(named=True)
    ]
    return Table(
        name="worst",
        caption="Tasks without a queue in the replay whose jobs ran all the same",
        columns=(
            Column(key="task", label="Task"),
            Column(key="at", label="At"),
            Column(key="jobs", label="Jobs that ran"),
            Column(key="queue", label="Most of them at"),
            Column(key="why", label="Why not there"),
            Column(key="help", label="What would give it a queue"),
        ),
        rows=tuple(rows),
    )


def composition(
    frame: pl.DataFrame, name: str, caption: str, words: Mapping[str, str] = FACTORS
) -> Table:
    """Lay out the shares of the factors in the spread of the log weight."""
    rows = [
        Row(cells={"factor": row["part"], "what": words[row["part"]], "share": row_pct(row)})
        for row in frame.iter_rows(named=True)
    ]
    return Table(
        name=name,
        caption=caption,
        columns=(
            Column(key="factor", label="Factor"),
            Column(key="what", label="It stands for"),
            Column(key="share", label="Share", unit="% of the variance"),
        ),
        rows=tuple(rows),
        footnote=(
            f"{INTERVALS} Covariance of the factor's log with the log weight, within each brokerage, over its variance: "
            "the shares add up to 100 %; below 0, a factor works against the others."
        ),
    )
