"""What the report says on grid tasks, from what was found."""

from __future__ import annotations

from typing import Any

import polars as pl

from brokerlab.estimators.sources.source import At
from brokerlab.estimators.trial import Trial
from brokerlab.report.content import Verdict
from brokerlab.report.estimates import CLOCKS
from brokerlab.report.estimates.trust import sentences as of_doubts
from brokerlab.report.walltime_estimator.tasks import CHEAPEST, FEW, OURS, TaskStudy, row_of
from brokerlab.words import listed, measured, number, percent, thin


def verdict(study: TaskStudy) -> Verdict:
    """Say what ours wastes against the deployed rule, what it allocates at its exceed rate, and whether its bound holds."""
    said = f"{headline(study)} {at_deployed(study)} {coverage(study)}"
    subject = "synthetic archive" if study.inputs.synthetic else study.inputs.said
    return Verdict(kind="finding", subject=subject, sentence=thin(said))


def headline(study: TaskStudy) -> str:
    """Say in one sentence what the cheapest allocation wastes against the deployed rule."""
    said = []
    for at, found in study.trials.items():
        row = paired(found, CHEAPEST, "waste_per_usage")
        ours, rule = found.comparison.row(CHEAPEST), found.deployed
        said.append(
            f"{ratio_of(row)} {CLOCKS[at]} ({percent(ours['exceed'])} of the jobs beyond it against {percent(rule['exceed'])})"
        )
    first = next(iter(study.trials.values()))
    kind = "generated tasks of the archive" if study.inputs.synthetic else "tasks"
    return (
        f"On {number(first.comparison.counts['jobs'])} jobs of {first.comparison.counts['tasks']} {kind}, limits of least expected "
        f"cost from what the hierarchy expects waste so many times the core hours that {first.comparison.reference} (deployed) "
        f"wastes, retries counted: {listed(said)}; {_sure(study)}."
    )


def brief(study: TaskStudy) -> str:
    """Say the most important of it in one sentence: what ours does when jobs are submitted."""
    at, found = next(iter(study.trials.items()))
    ours, counts = row_of(study.points, at, OURS), found.comparison.counts
    limits = found.comparison.row(CHEAPEST)
    kind = "Generated tasks" if study.inputs.synthetic else "Grid tasks"
    return (
        f"{kind} ({counts['jobs']:,} jobs of {counts['tasks']}, decided {CLOCKS[at]}): the hierarchy's guess is off by {number(100 * ours['error'])} % of the "
        f"time run, {measured(ours['ratio'], ours['ratio_lo'], ours['ratio_hi'], 2)} times the error of the best rule, and limits of least expected cost from "
        f"it waste {ratio_of(paired(found, CHEAPEST, 'waste_per_usage'))} times what the deployed rule wastes, {percent(limits['exceed'])} of the jobs "
        f"beyond them against {percent(found.deployed['exceed'])} ({_sure(study)})."
    )


def at_deployed(study: TaskStudy) -> str:
    """Say what ours allocates for nothing where jobs exceed no more often than under the deployed rule."""
    said = []
    for at, found in study.trials.items():
        rows = found.at_deployed.filter(average="jobs", chosen_on="other tasks")
        rows = rows.filter(pl.col("estimator").is_in([OURS, CHEAPEST]))
        if rows.is_empty():
            continue
        best = rows.sort("over_allocation").row(0, named=True)
        kept = "" if best["no_higher"] else f", though {percent(best['exceed'])} instead of {percent(best['exceed_reference'])} are beyond it"  # fmt: skip
        said.append(f"{measured(best['ratio'], best['ratio_lo'], best['ratio_hi'], 2)} times as much {CLOCKS[at]}{kept}")  # fmt: skip
    if not said:
        return ""
    return (
        "Where the level or price is chosen on other tasks so that no more jobs run into their limit than under the deployed rule, it "
        f"allocates {listed(said)} for nothing."
    )


def coverage(study: TaskStudy) -> str:
    """Say whether the bound keeps its promise."""
    said = []
    for at, found in study.trials.items():
        row = found.comparison.row(OURS)
        said.append(
            f"{percent(row['coverage'], row['cluster_lo'], row['cluster_hi'])} {CLOCKS[at]}"
        )
    level = next(iter(study.trials.values())).comparison.level
    return f"The hierarchy's bound of {100 * level:g} % holds for {listed(said)}."


def guesses(study: TaskStudy) -> str:
    """Say how good single guesses are."""
    said = []
    for at in study.trials:
        ours = row_of(study.points, at, OURS)
        said.append(
            f"{CLOCKS[at]} {number(100 * ours['error'])} % of the time run, {measured(ours['ratio'], ours['ratio_lo'], ours['ratio_hi'], 2)} times that of "
            f"the best rule ({ours['best_rule']})"
        )
    return thin(f"As a single guess the hierarchy is off by {'; '.join(said)} (means over tasks).")


def finding(study: TaskStudy) -> str:
    """Return the title of the picture."""
    said = []
    for at, found in study.trials.items():
        row = paired(found, CHEAPEST, "waste_per_usage")
        said.append(f"{number(row['ratio'], 2)} {CLOCKS[at]}" if row else f"unknown {CLOCKS[at]}")
    return thin(f"Limits of least expected cost waste {listed(said)} times what the deployed rule wastes")  # fmt: skip


def sample(study: TaskStudy) -> str:
    """Say how much was judged."""
    return thin(
        f"{size(study)}; all jobs alike. Solid: limits of least "
        "cost by the price of a kill; dotted: bounds of the hierarchy by level. Red: best limit per task, queue and cores, known afterwards."
    )


def size(study: TaskStudy) -> str:
    """Say how many jobs and tasks."""
    counts = next(iter(study.trials.values())).comparison.counts
    return thin(f"n = {counts['jobs']:,} jobs of {counts['tasks']} tasks, scouts not counted")


def certainty(study: TaskStudy) -> str:
    """Say what the intervals are made of."""
    first = next(iter(study.trials.values()))
    n = first.comparison.counts["tasks"]
    how = (
        "Each task is judged by models that learnt from the other tasks only"
        if study.inputs.left_out
        else "Models learn from the earlier two thirds of the tasks and are judged on the later third"
    )
    few = (
        f" {n} tasks are few: ranges show what is left when one of them is taken away, and other kinds of tasks may behave "
        "otherwise."
        if n < FEW
        else " Intervals draw tasks again: jobs of one task err together."
    )
    return thin(f"{how}; deployed rules learn nothing from other tasks.{few}")


def doubts(study: TaskStudy) -> list[str]:
    """Say where ours should not be trusted."""
    by_clock = {at: of_doubts(found) for at, found in study.doubts.items()}
    clocks: dict[str, list[At]] = {}
    for at, said in by_clock.items():
        for sentence in said:
            clocks.setdefault(sentence, []).append(at)
    told = [
        sentence if len(when) == len(by_clock) else f"{CLOCKS[when[0]].capitalize()}: {sentence}"
        for sentence, when in clocks.items()
    ]
    last = next(iter(by_clock.values()))[-1]
    return [*(sentence for sentence in told if sentence != last), last]


def cannot_tell(study: TaskStudy) -> list[str]:
    """Collect what the tasks cannot tell."""
    source = study.inputs.sources["submit"]
    left = source.counts.filter(pl.col("reason") != "kept")
    what = "the archive" if study.inputs.synthetic else study.inputs.said
    told = []
    if left.height:
        reasons = [f"{row['reason']} ({row['rows']:,})" for row in left.iter_rows(named=True)]
        told.append(f"Left out of {what}: {'; '.join(reasons)}.")
    told += [f"{note[:1].upper()}{note[1:]}." for note in source.notes]
    killed = int(source.records["censored"].sum())
    if not killed:
        told.append(
            f"No job of {what} is known to have been killed at its limit: those that were are missing, so that the longest runs "
            "may be missing, too."
        )
    if study.inputs.synthetic:
        told.append("What holds on generated tasks holds for the way they were generated; it proves that the machinery works, no more.")  # fmt: skip
    return told


def paired(found: Trial, name: str, measure: str) -> dict[str, Any] | None:
    """Return the comparison of an estimator with the deployed rule."""
    rows = found.comparison.paired.filter(
        pl.col("estimator") == name,
        pl.col("measure") == measure,
        pl.col("level").is_null() | (pl.col("level") == found.comparison.level),
    )
    return rows.row(0, named=True) if rows.height else None


def ratio_of(row: dict[str, Any] | None) -> str:
    """Write the ratio to the deployed rule, with its interval, or with few tasks the range without one of them."""
    if row is None or row["ratio"] is None:
        return "an unknown number of times"
    if not row["few_tasks"]:
        return measured(row["ratio"], row["ratio_lo"], row["ratio_hi"], 2)
    if row["without_lo"] is None:
        return number(row["ratio"], 2)
    return measured(row["ratio"], row["without_lo"], row["without_hi"], 2)


def _sure(study: TaskStudy) -> str:
    first = next(iter(study.trials.values()))
    few = first.comparison.counts["tasks"] < FEW
    return "in brackets: least and most when one task is left out" if few else "95 % intervals over tasks"  # fmt: skip


UNUSED = (
    "A limit that is longer than the run burns nothing by itself: what it leaves unused is counted as the chapter counts it, as what a "
    "slot was promised for. What it costs is the slots with shorter limits that the job could not use, and that is not in these numbers."
)
"""What the waste of time limits means."""
