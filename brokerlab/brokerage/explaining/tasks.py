"""What became of a task, in words."""

from __future__ import annotations

from typing import Any

import polars as pl

from brokerlab.brokerage.analysis_jobs import AnalysisDecisions
from brokerlab.brokerage.explaining.answer import TaskExplanation
from brokerlab.brokerage.explaining.held import until
from brokerlab.brokerage.explaining.nuclei import ENDED as NUCLEUS_ENDED
from brokerlab.brokerage.explaining.queues import ENDED as QUEUE_ENDED
from brokerlab.brokerage.explaining.selection import Subject, subject
from brokerlab.brokerage.explaining.user_tasks import user_ending, user_remarks
from brokerlab.brokerage.funnels import funnel_of
from brokerlab.brokerage.obstacles import what_would_help
from brokerlab.brokerage.production_jobs.decisions import TEMPORARY
from brokerlab.brokerage.production_tasks.decisions import TaskDecisions
from brokerlab.brokerage.view import PLACED, TASK, AnyDecisions, View, view
from brokerlab.brokerage.words import counted, listed, number

_HINTS = 3


def explain_one_task(
    decisions: AnyDecisions, jeditaskid: int, snapshot: int | None = None
) -> TaskExplanation:
    """Answer what became of a task; see :func:`brokerlab.brokerage.explain_task`."""
    who = subject(decisions.tasks, jeditaskid, snapshot)
    one = pl.DataFrame({name: [who.row[name]] for name in TASK})
    seen = view(decisions).of_tasks(one)
    table = funnel_of(seen).filter(pl.col("n_pairs") > 0)
    looked_at = seen.pairs.height
    sentences = [_head(decisions, who, seen)]
    if isinstance(decisions, AnalysisDecisions):
        sentences += user_remarks(decisions, who)
    sentences += _removed(table, looked_at, seen)
    if who.row["outcome"] not in PLACED and looked_at:
        sentences += _hints(decisions, who)
    return TaskExplanation(
        who.jeditaskid,
        who.snapshot,
        who.row["outcome"],
        (*sentences, *who.again()),
        tuple(table.to_dicts()),
    )


def _head(decisions: AnyDecisions, who: Subject, seen: View) -> str:
    row = who.row
    if row["outcome"] == "nucleus":
        if row["already_assigned"]:
            return f"{who.text} had its nucleus already, {row['nucleus']}: nothing was checked."
        n = counted(row["n_passed"], "nucleus", "nuclei")
        return f"{who.text} goes to nucleus {row['nucleus']}, drawn from {n} of {number(row['n_nuclei'])}."
    if row["outcome"] == "candidates":
        names = _best(seen)
        few = "" if len(names) <= 1 else f", the best are {listed(names, most=3)}"
        n = counted(row["n_candidates"], "queue")
        return f"{who.text} may go to {n} of {number(row['n_queues'])}{few if len(names) > 1 else ': ' + names[0] if names else ''}."
    sentences = [f"{who.text} finds no place: {_ending(decisions, who)}{_stage(row)}."]
    return " ".join(sentences + until(row["pending_until"]))


def _ending(decisions: AnyDecisions, who: Subject) -> str:
    """Say in a clause why a task found no place."""
    if isinstance(decisions, AnalysisDecisions):
        return user_ending(decisions, who)
    outcome = who.row["outcome"]
    why = {**NUCLEUS_ENDED, **QUEUE_ENDED, "no_candidates": "nothing passed all checks"}[outcome]
    detail = f": {who.row['detail']}" if who.row.get("detail") else ""
    return f"{why} ({outcome}){detail}"


def _stage(row: dict[str, Any]) -> str:
    if not row["stage"]:
        return ""
    if row["stage"] == TEMPORARY:
        return "; what was left had a temporary problem"
    return f"; the last were removed by {row['stage']}"


def _best(seen: View) -> list[str]:
    return [str(name) for name in seen.shares[seen.place]]


def _removed(table: pl.DataFrame, looked_at: int, seen: View) -> list[str]:
    """Return the funnel in words."""
    one, several = ("queue", "queues") if seen.place == "panda_queue" else ("nucleus", "nuclei")
    if not looked_at:
        return [f"No {one} was looked at."]
    n_left = seen.pairs["check"].null_count()
    left = f"{number(n_left)} {'is' if n_left == 1 else 'are'} left"
    if not table.height:
        return [f"No check removed any of {counted(looked_at, one, several)}."]
    lines = [
        f"  {check} removed {number(n)}{' (temporary)' if kind == 'temporary' else ''}, {number(rest)} left"
        for check, kind, n, rest in table.select("check", "kind", "n_pairs", "n_left").iter_rows()
    ]
    return [f"Of {counted(looked_at, one, several)}, {left}:", *lines]


def _hints(decisions: AnyDecisions, who: Subject) -> list[str]:
    """Return what single checks stand in the way."""
    table = what_would_help(decisions, jeditaskid=who.jeditaskid, snapshot=who.snapshot)
    alone = table.filter(pl.col("n_gained") > 0)
    if not alone.height:
        return ["No single check stands in the way: wherever it might go, at least two do."]
    noun = ("nucleus", "nuclei") if isinstance(decisions, TaskDecisions) else ("queue", "queues")
    lines = [
        f"  {check}: {counted(n, *noun)} more{f' (it reads {change})' if change else ''}"
        for check, n, change in alone.head(_HINTS).select("check", "n_gained", "change").iter_rows()
    ]
    return ["Without one of these checks it would find a place:", *lines]
