"""The weight of a queue for user tasks told factor by factor, with the counts and classes that made it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import polars as pl

from brokerlab.brokerage.analysis_jobs.rules import AnalysisRules
from brokerlab.brokerage.analysis_jobs.weights import BY_CLASS, MOST_WORKERS, SITE_CLASSES
from brokerlab.brokerage.words import counted, number, worded
from brokerlab.units import GB

TASK_CLASSES = {2: "S", 1: "A", 0: "B", -1: "C"}
Row = Mapping[str, Any]


def new_column(rules: AnalysisRules) -> str:
    """Return the column of the new basic weight of the rules."""
    return "new" if rules.new_weight == "budgets" else "new_document"


def in_use(rules: AnalysisRules) -> str:
    """Return the column of the basic weight that ranks."""
    return "orig" if rules.basic_weight == "original" else new_column(rules)


def numbers(row: Row, rules: AnalysisRules) -> dict[str, Any]:
    """Return what is told of a weight: rank, weight, factors, classes and the stabilizer's state."""
    names = (
        *("rank", "weight", "basic", "orig", "data_factor", "running", "t_class", "s_class"),
        *("budget_hi", "budget_mid", "budget_lo", "max_q_len", "nq_max", "user_share", "trr"),
        *("u_queued", "u_running", "rem_q_len", "looked_at", "loop"),
    )
    queued = {"queued": row["x_nq"], "new": row[new_column(rules)]}
    return {name: row[name] for name in names if name in row} | queued


def factors(row: Row, rules: AnalysisRules, user: str | None) -> list[str]:
    """Return the factors of the weight and the basic weight that is not in use.

    Args:
        row: Row of the ranking.
        rules: Which basic weight is in use.
        user: The task's user.

    Source: analysis-job-brokerage.md 6.
    """
    original = rules.basic_weight == "original"
    used, unused = (("original", _original), ("new", _new))[:: 1 if original else -1]
    columns = (in_use(rules), new_column(rules) if original else "orig")
    return [
        f"The weight is the {used[0]} basic weight times the data factor:",
        f"  {used[0]} basic weight {number(row[columns[0]])}: {used[1](row, rules, user)}",
        f"  data factor {number(row['data_factor'])}: {_data(row)}",
        f"  ({unused[0]} basic weight, not in use, {number(row[columns[1]])}: {unused[1](row, rules, user)})",
    ]


def _original(row: Row, rules: AnalysisRules, user: str | None) -> str:  # noqa: ARG001
    running = counted(row["running"], "running job")
    if row["running"] != row["x_nr"]:
        running += f" ({number(row['x_nr'])} really run; {_why_more(row)})"
    return f"({running} + 1) / ({number(row['x_nq'])} waiting + 1), of the share"


def _why_more(row: Row) -> str:
    said = []
    if row["x_numslots"] is not None:
        said.append(counted(row["x_numslots"], "slot") + " set")
    if row["s_workers"]:
        workers = counted(row["s_workers"], "batch worker")
        said.append(f"{workers}, at most {MOST_WORKERS} of which count")
    if row["x_starting"]:
        said.append(f"{number(row['x_starting'])} starting")
    return ", ".join(said)


def _new(row: Row, rules: AnalysisRules, user: str | None) -> str:
    """Say how many of the task's jobs the queue's class gets, and which part of them the queue takes."""
    jobs = counted(row["t_n_jobs"], "job")
    by_class = row["t_gshare"] in BY_CLASS
    budgets = by_class and rules.new_weight == "budgets"
    room = (
        f"{worded(user)} may have {number(row['rem_q_len'])} more jobs waiting there (max_q_len "
        f"{number(row['max_q_len'])} - {number(row['u_queued'])}), {number(row['q_class' if budgets else 'q_all'])} at all "
        f"candidates{' of its class' if budgets else ''}"
    )
    if not by_class:
        return f"{jobs} to make, for queues of every class alike; {room}"
    own, site = TASK_CLASSES[row["t_class"]], SITE_CLASSES[row["s_class"]]
    if not budgets:
        return f"{jobs} to make, a task of class {own} at a queue of class {site}; {room}"
    table = ", ".join(f"{name} {number(row[f'budget_{name}'])}" for name in SITE_CLASSES.values())
    return f"of {jobs} to make for a task of class {own}, queues of class {table} get as many, and this is class {site}; {room}"


def _data(row: Row) -> str:
    """Say what of the input is there."""
    if not row["t_has_input"]:
        return "the task has no input"
    if row["t_local"] and not row["t_union"]:
        if not row["x_data_weight"]:
            return "no dataset of the input counts there"
        return "1 for each dataset of the input on disk there, 0.001 for each on tape only"
    total, here = row["t_total"] // GB, row["x_avail"] // GB
    if not total:
        return "the task has no input of 1 GB or more"
    return f"1 + {number(here)} GB of the input on disk there / 10"


def other_rank(candidates: pl.DataFrame, row: Row, rules: AnalysisRules) -> str:
    """Say where the queue would rank by the basic weight that is not in use.

    Args:
        candidates: The ranked rows of the task.
        row: Row of the queue.
        rules: Which basic weight is in use.
    """
    name, column = ("new", new_column(rules)) if in_use(rules) == "orig" else ("original", "orig")
    weights = candidates[column] * candidates["data_factor"]
    own = row[column] * row["data_factor"]
    place = 1 + int((weights > own).sum())
    return f"By the {name} basic weight it would rank {number(place)}, with weight {number(own)}."


def against(row: Row, best: Row, rules: AnalysisRules) -> str:
    """Say in which factor another queue is ahead most."""
    words = {"basic": f"{rules.basic_weight} basic weight", "data_factor": "data factor"}
    ahead = {name: best[name] / row[name] for name in words if row[name] and best[name] > row[name]}
    if not ahead:
        return ""
    name = max(ahead, key=lambda each: ahead[each])
    return f"mostly by its {words[name]} ({number(best[name])} against {number(row[name])})"
