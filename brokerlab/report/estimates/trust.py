"""Where a model should not be trusted, in sentences."""

from __future__ import annotations

from typing import Any

import polars as pl

from brokerlab.estimators.doubts import Doubts
from brokerlab.report.content import Column, Num, Row, Table
from brokerlab.report.estimates.tables import stratum_name
from brokerlab.words import listed, number, percent, thin

MOST_NAMED = 3
"""Strata, tasks or features that a sentence names."""
MOST_ROWS = 12
NEEDED = ("queue", "cores", "kind", "events", "input_mb", "corepower", "requested")
"""What jobs are looked at for: unlike those learnt from."""


def sentences(found: Doubts) -> tuple[str, ...]:
    """Say where the model should not be trusted; never nothing, for strata that are not seen are never safe."""
    told = [
        _strata(found),
        _drift(found),
        _scouts(found),
        *_support(found),
        "Jobs of queues, kinds and sizes that nobody ran so far: nothing here was tested on them.",
    ]
    return tuple(thin(sentence) for sentence in told if sentence)


def _strata(found: Doubts) -> str:
    parts = found.strata.filter(pl.col("stratum_by") != "all")
    bad = parts.filter(verdict="misses too often").sort("coverage", "stratum")
    single = bad.filter(~pl.col("stratum_by").str.contains("/"))
    if bad.is_empty():
        return ""
    named = [
        f"{stratum_name(row)} ({percent(row['coverage'])} of {row['n']:,} jobs)"
        for row in (single if single.height else bad).head(MOST_NAMED).iter_rows(named=True)
    ]
    return (
        f"Its bound of {100 * found.level:g} % is missed more often than chance allows in {bad.height} of {parts.height} strata "
        f"of 200 jobs or more; the worst: {listed(named)}."
    )


def _drift(found: Doubts) -> str:
    often = found.tasks.filter(verdict="misses too often").sort("p", "jeditaskid")
    bets = found.tasks.filter(bet="not as expected")
    if often.is_empty() and bets.is_empty():
        return ""
    names = [str(task) for task in often["jeditaskid"].head(MOST_NAMED)]
    word = "such as " if often.height > MOST_NAMED else ""
    more = f" ({word}{listed(names)})" if names else ""
    return (
        f"Misses come in runs: in {often.height} of {found.tasks.height} tasks{more} the bound is missed too often up to some "
        f"job, and bets against the expected distribution win in {bets.height}."
    )


def _scouts(found: Doubts) -> str:
    if found.scouts.is_empty():
        return ""
    other = found.scouts.filter(pl.col("verdict") != "alike")
    if other.is_empty():
        return ""
    named = [
        f"{row['jeditaskid']} ({row['verdict']}, {percent(row['exceeds'])} of pairs above)"
        for row in other.sort("p_adjusted", "jeditaskid").head(MOST_NAMED).iter_rows(named=True)
    ]
    return (
        f"Scouts are not like the rest of their task in {other.height} of {found.scouts.height} tasks, per core: {listed(named)}. "
        "A bound that holds for random draws says nothing there."
    )


def _support(found: Doubts) -> list[str]:
    wide = found.support.filter(pl.col("feature").is_in(NEEDED), pl.col("verdict") != "learnt")
    if wide.is_empty():
        return []
    jobs = wide.group_by("feature", maintain_order=True).agg(pl.col("outside").sum())
    total = found.support.group_by("feature").agg(pl.col("n").sum())
    both = jobs.join(total, on="feature").with_columns(share=pl.col("outside") / pl.col("n"))
    named = [
        f"{row['feature'].replace('_mb', '')} ({percent(row['share'])} of the jobs)"
        for row in both.sort("share", "feature", descending=[True, False]).head(4).iter_rows(named=True)
    ]  # fmt: skip
    return [f"Jobs are outside what the model had learnt from when it was tested: {listed(named)}."]


def table(found: Doubts, *, name: str) -> Table:
    """Lay out the tasks in which misses or the expected distribution went wrong, the clearest first."""
    shown = found.tasks.sort("log10_largest", "jeditaskid", descending=[True, False]).head(
        MOST_ROWS
    )
    scouts = {row["jeditaskid"]: row for row in found.scouts.iter_rows(named=True)}
    rows = [
        Row(
            cells={
                "task": str(row["jeditaskid"]),
                "n": Num(value=row["n"], decimals=0),
                "missed": Num(value=100 * row["missed"] / row["n"], decimals=1),
                "drift": row["verdict"],
                "bet": f"10 to the {number(row['log10_largest'], 1)}",
                "scouts": _told(scouts.get(row["jeditaskid"])),
            },
            note="not as expected" if row["bet"] == "not as expected" else "",
        )
        for row in shown.iter_rows(named=True)
    ]  # fmt: skip
    return Table(
        name=name,
        caption=f"Is {found.model} right about its own uncertainty, task by task",
        columns=(
            Column(key="task", label="Task"),
            Column(key="n", label="Jobs"),
            Column(key="missed", label=f"Above the {100 * found.level:g} % bound", unit="%"),
            Column(key="drift", label="Misses over time"),
            Column(key="bet", label="Won by betting against it", unit="stake"),
            Column(key="scouts", label="Scouts against the rest, per core"),
        ),
        rows=tuple(rows),
        footnote=f"{found.tasks.height} tasks, the clearest evidence first. Winning 20 times the stake has a chance of at most "
        "1 in 20 if the model is right; jobs of a task err together, so it is the model as a whole that is doubted. Scouts: "
        "Brunner and Munzel's test, corrected for the number of tasks.",
    )


def _told(row: dict[str, Any] | None) -> str:
    return "not marked" if row is None else f"{row['verdict']} ({percent(row['exceeds'])} above)"
