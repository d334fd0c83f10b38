"""Why a task was, or was not, given to a nucleus."""

from __future__ import annotations

import difflib
from typing import Any

import polars as pl

from brokerlab.brokerage.engine.rule import Rule
from brokerlab.brokerage.explaining.answer import Explanation, Obstacle, Setting, obstacle
from brokerlab.brokerage.explaining.selection import Subject, subject
from brokerlab.brokerage.production_tasks.decisions import TaskDecisions
from brokerlab.brokerage.words import counted, listed, number

ENDED = {
    "input_not_readable": "no site can send its input",
    "parent_missing": "its parent task is not known",
    "abort": "a nucleus before it has no endpoint for an output, at which the deployed code gives up",
    "no_queue_at_all": "no queue could run it",
    "no_candidates": "no nucleus passed all checks",
}


def explain_nucleus(
    decisions: TaskDecisions, jeditaskid: int, nucleus: str, snapshot: int | None = None
) -> Explanation:
    """Answer why a task was, or was not, given to a nucleus; see :func:`brokerlab.brokerage.explain`."""
    who = subject(decisions.tasks, jeditaskid, snapshot)

    def answer(outcome: str, *says: str, check: str | None = None, **more: Any) -> Explanation:
        return Explanation(
            who.jeditaskid, who.snapshot, nucleus, outcome, check, (*says, *who.again()), **more
        )

    rows = decisions.nuclei.filter(
        pl.col("jeditaskid") == jeditaskid, pl.col("snapshot") == who.snapshot
    )
    here = rows.filter(pl.col("nucleus") == nucleus)
    if who.row["already_assigned"]:
        return answer(
            "task_ended",
            f"{who.text} had its nucleus already, {who.row['nucleus']}: nothing was checked.",
        )
    if not rows.height:
        return answer("task_ended", f"{who.text} was given to no nucleus: {_why(who.row)}.")
    if not here.height:
        return answer("unknown", _unknown(rows, nucleus, who))
    row = here.row(0, named=True)
    if row["skip_reason"] is not None:
        obstacles = _obstacles(decisions, here)
        return answer(
            "skipped",
            f"{who.text} was not given to {nucleus}: {obstacles[0].text}.",
            *_others(obstacles[1:]),
            check=row["skip_reason"],
            obstacles=tuple(obstacles),
        )
    if not row["passed"]:
        return answer(
            "task_ended", f"{who.text} was not given to {nucleus}: {_why(who.row)}.",
            "What was checked of this nucleus, it passed.",
        )  # fmt: skip
    return answer("candidate", *_candidate(who, nucleus, row), numbers=_numbers(row))


def _why(row: dict[str, Any]) -> str:
    return f"{ENDED.get(row['outcome'], row['outcome'])} ({row['outcome']})"


def _unknown(rows: pl.DataFrame, nucleus: str, who: Subject) -> str:
    names = rows["nucleus"].to_list()
    close = difflib.get_close_matches(nucleus, names, n=3)
    hint = f"did you mean {' or '.join(close)}?" if close else f"they are {listed(names)}."
    return f"{nucleus} is not among the {counted(len(names), 'nucleus', 'nuclei')} of {who.text.lower()}; {hint}"


def _obstacles(decisions: TaskDecisions, here: pl.DataFrame) -> list[Obstacle]:
    """Return all checks that the nucleus fails, the reason of the skip first."""
    row = here.row(0, named=True)
    found: list[Rule] = [check for check in decisions.checks if row[check.name]]
    found.sort(key=lambda check: check.name != row["skip_reason"])
    told = []
    for check in found:
        values = here.with_columns(**check.numbers).row(0, named=True)
        settings = [Setting(key, None, "", is_default=False) for key in check.keys]
        told.append(obstacle(check, check.clause(values), settings))
    return told


def _others(obstacles: list[Obstacle]) -> list[str]:
    if not obstacles:
        return ["No other check stands in the way."]
    verb = "stands" if len(obstacles) == 1 else "stand"
    lines = [f"  - {each.text}" for each in obstacles]
    return [f"{counted(len(obstacles), 'other check')} {verb} in the way as well:", *lines]


def _numbers(row: dict[str, Any]) -> dict[str, Any]:
    names = ("weight", "probability", "work", "data", "tape", "space_fraction", "space_amount")
    return {name: row[name] for name in names}


def _candidate(who: Subject, nucleus: str, row: dict[str, Any]) -> list[str]:
    chosen = who.row["nucleus"]
    chance = f"{100 * row['probability']:.3g} %"
    head = f"{who.text} was given to {nucleus}: it was drawn with a chance of {chance}"
    if nucleus != chosen:
        head = f"{who.text} could have gone to {nucleus} with a chance of {chance}, but {chosen} was drawn"
    return [
        f"{head} among {counted(who.row['n_passed'], 'nucleus', 'nuclei')} (weight {number(row['weight'])}).",
        "The weight is the product of",
        f"  work {number(row['work'])}: {number(row['rw_prio'])} HS06 s of work are left there at this priority and above",
        f"  data {number(row['data'])}: {_data(row)}",
        f"  tape {number(row['tape'])}",
        f"  space fraction {number(row['space_fraction'])}: {_space(row)}",
        f"  space amount {number(row['space_amount'])} TB, at most {number(row['free_disk_cutoff_tb'])} TB count",
    ]


def _space(row: dict[str, Any]) -> str:
    free, expired, total, demand = (
        number(row[name]) if row[name] is not None else "unknown"
        for name in ("space_free", "space_expired", "space_total", "demand_gb")
    )
    return (
        f"{free} GB free and {expired} GB expired of {total} GB, work assigned asks for {demand} GB"
    )


def _data(row: dict[str, Any]) -> str:
    if not row["tot_size"]:
        return "the task has no input that counts"
    return f"{number(row['ava_size_any'])} of {number(row['tot_size'])} B of the input are there"
