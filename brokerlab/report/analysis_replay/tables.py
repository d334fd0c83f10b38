"""The tables of the report on user tasks: throttle, loops, stabilizer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import polars as pl

from brokerlab.brokerage.studies.user_tasks.outcomes import CLASS_ORDER, FAMILIES, PASSED, RULES
from brokerlab.brokerage.view import view
from brokerlab.report.analysis_replay.sentences import FIRST, SECOND
from brokerlab.report.analysis_replay.study import Study
from brokerlab.report.content import Column, Num, Row, Table
from brokerlab.report.replays.cells import count, pct, row_pct
from brokerlab.report.replays.removal import CANDIDATE
from brokerlab.words import number, percent

OVER_USERS = "In brackets: 95 % intervals from resampling users."
OVER_TASKS = "In brackets: 95 % intervals from resampling tasks."
SMALL = 0.001
"""Checks that remove a smaller share in both loops are left to the tables beside the page."""
UNITS_SHOWN = 12
QUEUES_SHOWN = 15


def rules(study: Study) -> Table:
    """Lay out what each rule holds back, and how near tasks come to its limit."""
    margins = {row["rule"]: row for row in study.margins.to_dicts()}
    rows = [
        Row(
            cells={
                "rule": row["part"],
                "held": row_pct(row),
                "jobs": count(row["jobs"]),
                "units": count(row["units"]),
                "median": _of_limit(margins.get(row["part"], {}).get("median")),
                "largest": _of_limit(margins.get(row["part"], {}).get("largest")),
            }
        )
        for row in study.by_rule.filter(pl.col("part").is_in(RULES)).iter_rows(named=True)
        if row["total"] or margins.get(row["part"], {}).get("largest") is not None
    ]
    never = [
        row["part"]
        for row in study.by_rule.iter_rows(named=True)
        if row["part"] in RULES
        and not row["total"]
        and margins.get(row["part"], {}).get("largest") is None
    ]
    return Table(
        name="held_rules",
        caption=f"What holds user tasks back, in order, of {number(study.n_brokerages)} brokerages",
        columns=(
            Column(key="rule", label="Rule"),
            Column(key="held", label="Held back", unit="% of brokerages"),
            Column(key="jobs", label="Jobs"),
            Column(key="units", label="Users, groups"),
            Column(key="median", label="Median", unit="% of limit"),
            Column(key="largest", label="Nearest or most", unit="% of limit"),
        ),
        rows=tuple(rows),
        footnote=(
            f"{OVER_USERS} A brokerage counts for the first rule that holds. Per cent of limit: the number that the rule "
            "compares, over its limit, where both are known; over 100 it holds. Never, and nothing known of a limit: "
            f"{', '.join(never) or 'none'}."
        ),
    )


def _of_limit(value: float | None) -> Num | None:
    return None if value is None else Num(value=100 * value, decimals=0)


def levels(study: Study, frame: pl.DataFrame, column: str, name: str, caption: str) -> Table:
    """Lay out how often tasks of each level are held back, by family of rules."""
    order = _ordered(frame, column)
    found = {(row[column], row["part"]): row for row in frame.to_dicts()}
    jobs = dict(
        study.rows.group_by(column).agg(pl.col("jobs").sum()).select(column, "jobs").iter_rows()
    )
    shown = [family for family in FAMILIES if any(found[level, family]["total"] for level in order)]
    rows = [
        Row(
            cells={
                "level": level,
                "users": count(found[level, PASSED]["n_users"]),
                "brokerages": count(found[level, PASSED]["whole"]),
                "jobs": count(jobs.get(level)),
                **{family: row_pct(found[level, family]) for family in shown},
                "passed": row_pct(found[level, PASSED]),
            }
        )
        for level in order
    ]
    return Table(
        name=name,
        caption=caption,
        columns=(
            Column(key="level", label=column.replace("_", " ").capitalize() if column != "gshare" else "gshare"),
            Column(key="users", label="Users"),
            Column(key="brokerages", label="Brokerages"),
            Column(key="jobs", label="Jobs asked for"),
            *(Column(key=family, label=f"Held by {family}", unit="%") for family in shown),
            Column(key="passed", label="Passed", unit="%"),
        ),
        rows=tuple(rows),
        footnote=OVER_USERS,
    )  # fmt: skip


def _ordered(frame: pl.DataFrame, column: str) -> list[str]:
    """Return the levels: classes in their order, others by brokerages."""
    there = frame.unique(column).sort("whole", column, descending=[True, False])[column].to_list()
    if column == "task_class":
        return [name for name in CLASS_ORDER if name in there]
    return there


def units(study: Study) -> Table | None:
    """Lay out the users and groups that are held back most; none where nobody is."""
    held = study.units.filter(pl.col("held") > 0)
    if held.is_empty():
        return None
    rows = [
        Row(
            cells={
                "unit": row["unit"],
                "brokerages": count(row["brokerages"]),
                "held": pct(row["share"]),
                "jobs": count(row["jobs"]),
                "jobs_held": count(row["jobs_held"]),
                "why": ", ".join(f"{rule} {row[rule]}" for rule in RULES if row[rule]),
            }
        )
        for row in held.head(UNITS_SHOWN).iter_rows(named=True)
    ]
    others = held.height - len(rows)
    more = f" {others} others are held back too, see the tables." if others > 0 else ""
    return Table(
        name="held_users",
        caption="Users and working groups held back, those with most jobs first",
        columns=(
            Column(key="unit", label="User or group"),
            Column(key="brokerages", label="Brokerages"),
            Column(key="held", label="Held back", unit="%"),
            Column(key="jobs", label="Jobs asked for"),
            Column(key="jobs_held", label="of them held back"),
            Column(key="why", label="By", unit="brokerages"),
        ),
        rows=tuple(rows),
        footnote=(
            "Jobs asked for count once per brokerage: what is held back is asked for again at the next."
            + more
        ),
    )


def loops(study: Study) -> Table:
    """Lay out what each check removes in either loop."""
    kinds = dict(
        view(study.decisions).steps.select(pl.col("check").cast(pl.String), "kind").iter_rows()
    )
    found = {(row["loop"], row["part"]): row for row in study.by_loop.to_dicts()}
    there = [loop for loop in (FIRST, SECOND) if any(key[0] == loop for key in found)]
    shown = [
        name for name in study.order
        if any(found[loop, name]["share"] >= SMALL for loop in there) or name == CANDIDATE
    ]  # fmt: skip
    never = [name for name in study.order if not any(found[loop, name]["total"] for loop in there)]
    rows = [
        Row(
            cells={
                "check": name,
                **{f"removed{loop}": row_pct(found[loop, name]) for loop in there},
                **{
                    f"left{loop}": None
                    if name == CANDIDATE
                    else pct(max(found[loop, name]["left"], 0.0))
                    for loop in there
                },
                "kind": kinds.get(name, ""),
            }
        )
        for name in shown
    ]
    words = {FIRST: "with locality", SECOND: "without"}
    columns = [Column(key="check", label="Check")]
    for loop in there:
        columns += [
            Column(key=f"removed{loop}", label=f"Removed {words[loop]}", unit="% of pairs"),
            Column(key=f"left{loop}", label="Left", unit="%"),
        ]
    return Table(
        name="loops",
        caption="What each check removes, in order, in the loop with locality and in the one without",
        columns=(*columns, Column(key="kind", label="Kind")),
        rows=tuple(rows),
        footnote=(
            f"{OVER_TASKS} {_pairs(study, there)} A pair counts for the first check it fails. badsite: marked by the "
            f"stabilizer, bad jobs or no running job. Less than 0.1 % in both: see the tables; never: {', '.join(never) or 'none'}."
        ),
    )


def _pairs(study: Study, loops: Sequence[int]) -> str:
    """Say how many pairs were looked at."""
    whole = dict(study.by_loop.unique("loop").select("loop", "whole").iter_rows())
    names = {FIRST: "with locality", SECOND: "without"}
    return " ".join(f"{number(whole[loop])} pairs {names[loop]}." for loop in loops)


def gshares(study: Study) -> Table:
    """Lay out how often the tasks of each share end without a queue, and how."""
    parts = ("throttled_waiting", "temporary_error", "fatal", "stuck")
    found = {(row["gshare"], row["part"]): row for row in study.stuck_by_gshare.to_dicts()}
    order = study.stuck_by_gshare.unique("gshare").sort("whole", "gshare", descending=[True, False])
    rows = [
        Row(
            cells={
                "gshare": name,
                "tasks": count(found[name, "stuck"]["n_tasks"]),
                "brokerages": count(found[name, "stuck"]["whole"]),
                **{part: row_pct(found[name, part]) for part in parts},
            }
        )
        for name in order["gshare"]
    ]
    labels = ("Held back", "Temporary error", "Fatal", "Without a queue")
    return Table(
        name="gshares",
        caption="How brokerages end without a queue, by gshare",
        columns=(
            Column(key="gshare", label="gshare"),
            Column(key="tasks", label="Tasks"),
            Column(key="brokerages", label="Brokerages"),
            *(Column(key=part, label=label, unit="%") for part, label in zip(parts, labels, strict=True)),
        ),
        rows=tuple(rows),
        footnote=OVER_TASKS,
    )  # fmt: skip


def stabilizer(study: Study) -> Table:
    """Lay out the state of the stabilizer, the queues that it takes most first."""
    rows = [
        Row(
            cells={
                "queue": row["queue"],
                "pairs": count(row["pairs"]),
                "throttled": pct(row["throttled"]),
                "marked": pct(row["marked_share"]),
                "nq": count(row["nq"]),
                "nr": count(row["nr"]),
                "trr": Num(value=row["trr"], decimals=1),
                "nq_max": count(row["nq_max"]),
                "user_share": pct(row["user_share"]),
                "max_q_len": count(row["max_q_len"]),
            }
        )
        for row in study.limits_by_queue.head(QUEUES_SHOWN).iter_rows(named=True)
    ]
    return Table(
        name="stabilizer_queues",
        caption="The Analysis Stabilizer by queue, those that it takes most often first",
        columns=(
            Column(key="queue", label="Queue"),
            Column(key="pairs", label="Pairs"),
            Column(key="throttled", label="Can be throttled", unit="%"),
            Column(key="marked", label="Marked", unit="%"),
            Column(key="nq", label="Waiting", unit="jobs"),
            Column(key="nr", label="Running", unit="jobs"),
            Column(key="trr", label="To-running rate", unit="jobs/h"),
            Column(key="nq_max", label="nQ_max", unit="jobs"),
            Column(key="user_share", label="Percentage", unit="%"),
            Column(key="max_q_len", label="max_q_len", unit="jobs"),
        ),
        rows=tuple(rows),
        footnote=(
            "Pairs of task and queue that no check removed before; numbers of the task's share: medians. Percentage: the "
            f"user's part of nQ_max. {_what_sets(study)}"
        ),
    )


def _what_sets(study: Study) -> str:
    """Say what sets max_q_len."""
    words = {
        "base_user": "BASE_DEFAULT_QUEUE_LENGTH_PER_PQ_USER",
        "ratio": "BASE_QUEUE_RATIO_ON_PQ",
        "percentage": "the percentage of nQ_max",
    }
    rows: dict[str, dict[str, Any]] = {row["part"]: row for row in study.limits.to_dicts()}
    told = [
        f"{word} {percent(rows[name]['share'], rows[name]['lo'], rows[name]['hi'])}"
        for name, word in words.items()
        if name in rows
    ]
    return f"max_q_len is set by: {', '.join(told)}." if told else ""
