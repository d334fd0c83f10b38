"""What became of a task, in words."""

from __future__ import annotations

import polars as pl

from brokerlab.brokerage.engine.decisions import PLACED, TASK, TEMPORARY, PlaceDecisions
from brokerlab.brokerage.explaining.answer import TaskExplanation
from brokerlab.brokerage.explaining.question import Question
from brokerlab.brokerage.funnels import funnel
from brokerlab.brokerage.obstacles import what_would_help
from brokerlab.brokerage.words import counted, number

_HINTS = 3


def what_became(asked: Question) -> TaskExplanation:
    """Answer what became of a task; see :func:`brokerlab.brokerage.explain_task`."""
    who, outcome = asked.who, asked.who.row["outcome"]
    seen = asked.decisions.of_tasks(pl.DataFrame({name: [who.row[name]] for name in TASK}))
    table = funnel(seen).filter(pl.col("n_pairs") > 0)
    says = [_head(asked, seen), *asked.remarks(), *_removed(asked, table, seen)]
    if outcome not in PLACED and seen.pairs.height:
        says += _hints(asked)
    return TaskExplanation(
        jeditaskid=who.jeditaskid,
        snapshot=who.snapshot,
        outcome=outcome,
        sentences=(*says, *who.again()),
        funnel=tuple(table.to_dicts()),
    )


def _head(asked: Question, seen: PlaceDecisions) -> str:
    who, stage = asked.who, asked.who.row["stage"]
    if who.row["outcome"] in PLACED:
        return f"{who.text} {asked.goes_to(seen)}"
    last = f"; the last were removed by {stage}" if stage else ""
    if stage == TEMPORARY:
        last = "; what was left had a temporary problem"
    return " ".join([f"{who.text} finds no place: {asked.ending()}{last}.", *who.tried_again()])


def _removed(asked: Question, table: pl.DataFrame, seen: PlaceDecisions) -> list[str]:
    """Return the funnel in words."""
    looked_at, left = seen.pairs.height, seen.pairs["check"].null_count()
    if not looked_at:
        return [f"No {asked.NOUN[0]} was looked at."]
    of = counted(looked_at, *asked.NOUN)
    if not table.height:
        return [f"No check removed any of {of}."]
    lines = [
        f"  {check} removed {number(n)}{' (temporary)' if kind == 'temporary' else ''}, {number(rest)} left"
        for check, kind, n, rest in table.select("check", "kind", "n_pairs", "n_left").iter_rows()
    ]
    return [f"Of {of}, {number(left)} {'is' if left == 1 else 'are'} left:", *lines]


def _hints(asked: Question) -> list[str]:
    """Return which single checks stand in the way."""
    who = asked.who
    table = what_would_help(asked.decisions, jeditaskid=who.jeditaskid, snapshot=who.snapshot)
    alone = table.filter(pl.col("n_gained") > 0)
    if not alone.height:
        return ["No single check stands in the way: wherever it might go, at least two do."]
    lines = [
        f"  {check}: {counted(n, *asked.NOUN)} more{f' (it reads {change})' if change else ''}"
        for check, n, change in alone.head(_HINTS).select("check", "n_gained", "change").iter_rows()
    ]
    return ["Without one of these checks it would find a place:", *lines]
