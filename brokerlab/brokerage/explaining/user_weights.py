"""The weight of a queue for user tasks told factor by factor, and the Analysis Stabilizer step by step."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import polars as pl

from brokerlab.brokerage.analysis_jobs.rules import AnalysisRules
from brokerlab.brokerage.analysis_jobs.weights import BY_CLASS, SITE_CLASSES
from brokerlab.brokerage.engine.rule import SETTING
from brokerlab.brokerage.explaining.weights import running
from brokerlab.brokerage.words import counted, filled, number, worded
from brokerlab.units import GB

TASK_CLASSES = {2: "S", 1: "A", 0: "B", -1: "C"}
STABILIZER_KEYS = (
    *(
        "BASE_QUEUE_LENGTH_PER_PQ",
        "BASE_EXPECTED_WAIT_HOUR_ON_PQ",
        "STATIC_MAX_QUEUE_RUNNING_RATIO",
    ),
    *("MAX_EXPECTED_WAIT_HOUR", "BASE_DEFAULT_QUEUE_LENGTH_PER_PQ_USER", "BASE_QUEUE_RATIO_ON_PQ"),
)
Row = Mapping[str, Any]


def _basic_weights(rules: AnalysisRules) -> dict[str, str]:
    """Return the basic weights, the one that ranks first, and their columns."""
    columns = {
        "original": "orig",
        "new": "new" if rules.new_weight == "budgets" else "new_document",
    }
    return dict(sorted(columns.items(), key=lambda each: each[0] != rules.basic_weight))


def factors(row: Row, rules: AnalysisRules, user: str | None) -> list[str]:
    """Return the factors of the weight and the basic weight that is not in use.

    Source: analysis-jobs.md 7.
    """
    made_of = {"original": _original(row, rules), "new": _new(row, rules, user)}
    told = {
        name: (number(row[column]), made_of[name]) for name, column in _basic_weights(rules).items()
    }
    (used, (value, why)), (unused, (other, other_why)) = told.items()
    return [
        f"The weight is the {used} basic weight times the data factor:",
        f"  {used} basic weight {value}: {why}",
        f"  data factor {number(row['data_factor'])}: {_data(row, rules)}",
        f"  ({unused} basic weight, not in use, {other}: {other_why})",
    ]


def _original(row: Row, rules: AnalysisRules) -> str:
    whose = "of the share" if rules.counted_jobs == "share" else "of the queue"
    runs = running(row, "really_running", "starting")
    return f"({runs} + 1) / ({number(row['waiting'])} waiting + 1), {whose}"


def _new(row: Row, rules: AnalysisRules, user: str | None) -> str:
    """Say how many of the task's jobs the queue's class gets, and which part of them the queue takes."""
    by_class = row["t_gshare"] in BY_CLASS
    budgets = by_class and rules.new_weight == "budgets"
    values = dict(row) | {"who": worded(user), "all": row["q_class" if budgets else "q_all"]}
    room = filled(
        "{who} may have {rem_q_len} more jobs waiting there (max_q_len {max_q_len} - {u_queued}), {all} at all candidates",
        values,
    )
    jobs = counted(row["t_n_jobs"], "job")
    if not by_class:
        return f"{jobs} to make, for queues of every class alike; {room}"
    own, site = TASK_CLASSES[row["t_class"]], SITE_CLASSES[row["s_class"]]
    if not budgets:
        return f"{jobs} to make, a task of class {own} at a queue of class {site}; {room}"
    table = ", ".join(f"{name} {number(row[f'budget_{name}'])}" for name in SITE_CLASSES.values())
    return (
        f"of {jobs} to make for a task of class {own}, queues of class {table} get as many, and this is class {site}; "
        f"{room} of its class"
    )


def _data(row: Row, rules: AnalysisRules) -> str:
    if not rules.data_factor:
        return "the page has no such factor"
    if not row["t_has_input"]:
        return "the task has no input"
    if row["t_local"] and not row["t_union"]:
        if not row["x_data_weight"]:
            return "no dataset of the input counts there"
        return "1 for each dataset of the input on disk there, 0.001 for each on tape only"
    if row["t_total"] < GB:
        return "the task has no input of 1 GB or more"
    return f"1 + {number(row['x_avail'] // GB)} GB of the input on disk there / 10"


def other_rank(candidates: pl.DataFrame, row: Row, rules: AnalysisRules) -> str:
    """Say where the queue would rank, among the ranked rows of the task, by the basic weight that is not in use."""
    *_, (name, column) = _basic_weights(rules).items()
    own = row[column] * row["data_factor"]
    place = 1 + int((candidates[column] * candidates["data_factor"] > own).sum())
    return f"By the {name} basic weight it would rank {number(place)}, with weight {number(own)}."


def stabilizer(row: Row, user: str | None, rules: AnalysisRules) -> list[str]:
    """Return how many jobs a user may have waiting at a queue, and why, a line each.

    Source: analysis-jobs.md 5.
    """
    length, wait_h, ratio, longest_h, length_user, ratio_user = (
        row[f"{SETTING}{key}"] for key in STABILIZER_KEYS
    )
    base, rate = counted(length, "job"), f"{number(row['trr'])} jobs/h that start"
    values = dict(row) | {
        "who": worded(user),
        "larger": f"the larger of {base} and {number(wait_h)} h x {rate}",
        "percent": f"{number(100 * row['user_share'])} %",
        "runs": counted(row["running_users"], "running job"),
        "rate": rate,
        "base": base,
        "wait": longest_h,
        "base_user": counted(length_user, "job"),
        "ratio": ratio,
        "ratio_user": ratio_user,
        "least": max(length, wait_h * row["trr"]),
        "so": _so(row, worded(user), rules),
    }
    lines = (
        "The stabilizer lets {who} have {max_q_len} jobs waiting there (max_q_len); {u_queued} wait.",
        "  it acts from {least} waiting jobs of the share on ({larger}); {x_nq} wait{so}",
        "  nQ_max {nq_max}: the largest of {base}, {ratio} x {runs} and {wait} h x {rate}",
        f"  part of {{who}} {{percent}}: {_part(row, rules)}",
        "  max_q_len {max_q_len}: the largest of {base_user}, {ratio_user} x {runs} and {percent} of nQ_max",
    )
    return [filled(line, values) for line in lines]


def _so(row: Row, who: str, rules: AnalysisRules) -> str:
    if row["t_merging"] and rules.code_only_exemptions:
        return ", but merge jobs are not held back"
    if row["looked_at"]:
        return ", so it acts"
    if rules.bad_jobs_mode == "after_stabilizer" and not row["u_known"]:
        return f", but {who} has no job there, so it does not act"
    return ", so it does not act"


def _part(row: Row, rules: AnalysisRules) -> str:
    """Say what the user's part of the queue is, with names in braces."""
    if not row["x_users"]:
        return "no user has jobs of the share there"
    total = " and the row of totals" if rules.count_total_row else ""
    users = counted(row["x_users"], "user")
    return f"the larger of one of {users}{total}, and {{u_running}} of {{runs}} are of {{who}}"
