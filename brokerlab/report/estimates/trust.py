"""Where a model should not be trusted: every check on one trial, and what it says in sentences."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import polars as pl

from brokerlab.errors import InsufficientDataError
from brokerlab.estimators import trust
from brokerlab.report.content import Column, Num, Row, Table
from brokerlab.report.estimates.tables import stratum_name
from brokerlab.report.estimates.trial import Trial
from brokerlab.words import listed, number, percent, thin

MOST_NAMED = 3
"""Strata, tasks or features that a sentence names."""
MOST_ROWS = 12
NEEDED = ("queue", "cores", "kind", "events", "input_mb", "corepower", "requested")
"""What jobs are looked at for: unlike those learnt from."""


@dataclass(frozen=True, kw_only=True)
class Doubts:
    """What the checks found of one model.

    Attributes:
        model: Its name.
        level: Of the bounds that were checked.
        strata: Coverage of every stratum of 200 jobs: :func:`trust.coverage_by`.
        tasks: One row per task: ``jeditaskid, n, missed, p, verdict`` of :func:`trust.largest_deviation`, ``log10_largest,
            bet`` of :func:`trust.bet_against`.
        scouts: :func:`trust.scouts_against_rest` per core; empty where no task has scouts that are marked.
        support: :func:`trust.support`, with ``jeditaskid`` in front; null: all tasks together.
    """

    model: str
    level: float
    strata: pl.DataFrame
    tasks: pl.DataFrame
    scouts: pl.DataFrame
    support: pl.DataFrame


def doubts(
    trial: Trial, model: str, learnt: Callable[[int | None], pl.DataFrame], *, by_task: bool
) -> Doubts:
    """Check a model on the jobs of a trial that are no scouts.

    Args:
        trial: The trial.
        model: Name of the model.
        learnt: Returns what the model had learnt from when it was tested on a task, or on all (None).
        by_task: Each task had its own model.
    """
    judged, predicted, level = trial.production, trial.predicted[model], trial.comparison.level
    rows = []
    for (task,), part in judged.filter(~pl.col("censored")).group_by(
        "jeditaskid", maintain_order=True
    ):
        found = _or_none(lambda part=part: trust.largest_deviation(part, predicted, level))  # type: ignore[misc]
        bet = _or_none(lambda part=part: trust.bet_against(part, predicted))  # type: ignore[misc]
        if found is not None and bet is not None:
            row = found.select("n", "missed", "p", "verdict").row(0, named=True)
            rows.append({"jeditaskid": task, **row, "log10_largest": bet["log10_largest"][0], "bet": bet["verdict"][0]})  # fmt: skip
    scouts = _or_none(lambda: trust.scouts_against_rest(trial.records, per_core=True))
    which = judged["jeditaskid"].unique(maintain_order=True).to_list() if by_task else [None]
    supports = [
        trust.support(
            learnt(task), judged if task is None else judged.filter(pl.col("jeditaskid") == task)
        ).select(pl.lit(task, dtype=pl.Int64).alias("jeditaskid"), pl.all())
        for task in which
    ]
    return Doubts(
        model=model,
        level=level,
        strata=trial.comparison.strata.filter(estimator=model),
        tasks=pl.DataFrame(rows, schema=_TASKS),
        scouts=pl.DataFrame() if scouts is None else scouts,
        support=pl.concat(supports),
    )


_TASKS = {
    "jeditaskid": pl.Int64,
    "n": pl.Int64,
    "missed": pl.Int64,
    "p": pl.Float64,
    "verdict": pl.String,
    "log10_largest": pl.Float64,
    "bet": pl.String,
}


def _or_none(check: Callable[[], pl.DataFrame]) -> pl.DataFrame | None:
    """Return what a check found; None where there is nothing to check."""
    try:
        return check()
    except InsufficientDataError:
        return None


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
