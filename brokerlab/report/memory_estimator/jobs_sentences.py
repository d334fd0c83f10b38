"""What the report says on jobs of whole tasks, real ones or of an archive, from what was found."""

from __future__ import annotations

from typing import Any

import polars as pl

from brokerlab.estimators.memory_tasks import OURS, SENT
from brokerlab.estimators.sources.source import At
from brokerlab.estimators.trial import Trial
from brokerlab.report.content import Verdict
from brokerlab.report.estimates import CLOCKS
from brokerlab.report.estimates.tables import stratum_name
from brokerlab.report.memory_estimator.jobs import JobStudy
from brokerlab.words import number, percent, thin

SAVED = 0.3
"""Part of the over-allocated memory that is to be saved at the deployed rule's exceed rate."""
OTHERS = "other tasks"
FEW = 8


def verdict(study: JobStudy) -> Verdict:
    """Say what the estimators gain on the rule that is deployed."""
    trial = study.main
    parts = [headline(study), _equal(trial), _target(trial)]
    return Verdict(
        kind="finding",
        subject=study.called,
        sentence=thin(" ".join(part for part in parts if part)),
    )


def more(study: JobStudy) -> str:
    """Say what settings chosen on other tasks give, and what can be had at the exceed rate of what was sent."""
    trial = study.main
    return thin(" ".join(part for part in (_chosen(trial), _sent(trial)) if part))


def whose(study: JobStudy) -> str:
    """Say whose jobs were judged."""
    counts = study.main.comparison.counts
    word = "real tasks" if study.kind == "tasks" else f"later tasks of the {study.called}"
    return f"{counts['jobs']:,} jobs of {counts['tasks']} {word}"


def headline(study: JobStudy) -> str:
    """Say in one sentence what ours wastes against the deployed rule, retries counted."""
    row = paired(study.main, OURS, "waste_per_usage")
    if row is None:
        return "Nothing can be compared with the deployed rule."
    return (
        f"On {whose(study)}, {OURS} {_how(row)} the scouts' rule, killed attempts and retries counted: {percent(row['value'])} of the "
        f"use against {percent(row['reference'])}, {change(row)}{_exceeding(study.main)}."
    )


def _how(row: dict[str, Any]) -> str:
    """Say which wastes less, if that can be told."""
    low, high = row["ratio_lo"], row["ratio_hi"]
    if row["few_tasks"] and row["without_lo"] is not None:
        low, high = row["without_lo"], row["without_hi"]
    if low is not None and high is not None and high < 1:
        return "wastes less memory than"
    if low is not None and high is not None and low > 1:
        return "wastes more memory than"
    return "cannot be told apart in what it wastes from"


def _exceeding(trial: Trial) -> str:
    """Say how often the first allocation is too small."""
    row = paired(trial, OURS, "exceed_task_mean")
    if row is None:
        return ""
    return (
        f"; {percent(row['value'])} of the jobs are above their first allocation, {percent(row['reference'])} under the rule "
        "(means of the tasks)"
    )


def _equal(trial: Trial) -> str:
    """Say what can be had at the exceed rate of the deployed rule."""
    deployed = trial.deployed
    matched = trial.matched(deployed["exceed_task_mean"])
    models = matched.filter(pl.col("estimator").is_in([*trial.models, *trial.policies]))
    limit = trial.limit(deployed["exceed_task_mean"])
    theirs = deployed["over_allocation_task_mean"]
    start = (
        f"At the rule's own exceed rate ({percent(deployed['exceed_task_mean'])} of jobs above it, mean of the tasks) it "
        f"allocates {percent(theirs)} of the use for nothing"
    )
    if models.is_empty():
        said = "no setting of any model exceeds as rarely"
    else:
        best = models.row(0, named=True)
        ours = best["over_allocation_task_mean"]
        said = f"the best model, {best['estimator']}, {percent(ours)} ({_signed(ours / theirs - 1)}, setting chosen with hindsight)"
    return (
        f"{start}, {said}; one allocation per task, queue and number of cores that knows every use beforehand "
        f"{percent(limit)} ({_signed(limit / theirs - 1)})."
    )


def _chosen(trial: Trial) -> str:
    """Say what a level chosen on other tasks gives."""
    row = best_chosen(trial)
    if row is None:
        return ""
    came = "no more often" if row["no_higher"] else "more often"
    return (
        f"With the setting of each task chosen on the other tasks, {row['estimator']} exceeds {came} ({percent(row['exceed'])} "
        f"against {percent(row['exceed_reference'])}) and allocates {_signed(row['ratio'] - 1)} for nothing."
    )


def best_chosen(trial: Trial) -> dict[str, Any] | None:
    """Return the estimator that, with settings chosen on other tasks, allocates least for nothing.

    Of those that exceed no more often than the rule; where there is none, the one that exceeds most rarely.
    """
    rows = trial.at_deployed.filter(
        pl.col("average") == "tasks", pl.col("chosen_on") == OTHERS, pl.col("ratio").is_not_null(),
        pl.col("jobs") >= ENOUGH * trial.comparison.counts["jobs"],
    )  # fmt: skip
    within = rows.filter("no_higher").sort("ratio", "estimator")
    found = within if within.height else rows.sort("exceed", "estimator")
    return found.row(0, named=True) if found.height else None


ENOUGH = 0.95
"""Share of the jobs on which two estimators must both be judged."""


def _sent(trial: Trial) -> str:
    """Say what can be had at the exceed rate of what was really sent."""
    sent = trial.comparison.row(SENT)
    if sent["share_without"] == 1 or sent["over_allocation_task_mean"] is None:
        return ""
    models = trial.matched(sent["exceed_task_mean"]).filter(pl.col("estimator").is_in(trial.models))
    if models.is_empty():
        return ""
    best, theirs = models.row(0, named=True), sent["over_allocation_task_mean"]
    ours = best["over_allocation_task_mean"]
    return (
        f"At the rate of what was really sent ({percent(sent['exceed_task_mean'])} above it), {best['estimator']} allocates "
        f"{percent(ours)} for nothing against {percent(theirs)} ({_signed(ours / theirs - 1)})."
    )


def _target(trial: Trial) -> str:
    """Hold what was found to what was asked for."""
    deployed = trial.deployed
    exceed, theirs = deployed["exceed_task_mean"], deployed["over_allocation_task_mean"]
    models = trial.matched(exceed).filter(
        pl.col("estimator").is_in([*trial.models, *trial.policies])
    )
    least = float(models["over_allocation_task_mean"][0]) if models.height else float("inf")
    if least <= (1 - SAVED) * theirs:
        return f"The target ({100 * SAVED:.0f} % less at no higher exceed rate) is met."
    within = trial.limit(exceed) <= (1 - SAVED) * theirs
    why = (
        "no model reaches it, the allocation that knows the uses beforehand does"
        if within
        else "even the allocation that knows the uses beforehand does not reach it"
    )
    return f"The target ({100 * SAVED:.0f} % less at no higher exceed rate) is not met: {why}."


def clocks(study: JobStudy) -> str:
    """Say what deciding at the start of a job would change."""
    rows = {at: paired(trial, OURS, "waste_per_usage") for at, trial in study.trials.items()}
    said = [
        f"decided {CLOCKS[at]}, {OURS} wastes {percent(row['value'])} of the use and the scouts' rule {percent(row['reference'])}"
        for at, row in rows.items()
        if row is not None
    ]
    if len(said) < 2:
        return ""
    return thin(
        f"Two clocks: {'; '.join(said)}. A request is fixed when a job is created today; were it fixed when a pilot fetches the "
        "job, more jobs of its task would have ended by then."
    )


def speeds(study: JobStudy) -> str:
    """Say how much hangs on the clock that was inferred."""
    if study.speeds.is_empty():
        return ""
    told = (
        "No times of day are recorded: jobs are taken to be created in the order of their numbers, so many of them per second "
        "in the whole system. The faster, the earlier the jobs that follow scouts were created, and the fewer scouts had ended."
    )
    ours = study.speeds.filter(estimator=OURS).sort("over_allocation_task_mean", "ids_per_s")
    worst = ours.row(-1, named=True)
    if worst["over_allocation_task_mean"] > 2 * ours["over_allocation_task_mean"][0]:
        told += (
            f" At {number(worst['ids_per_s'])} per second most jobs of some tasks are decided before any of their task has ended: "
            "there a model that knows a handful of other tasks says little, and the request stays the better answer."
        )
    return told


def finding(trials: dict[At, Trial]) -> str:
    """Return the title of the frontier."""
    trial = next(iter(trials.values()))
    row = paired(trial, OURS, "over_allocation_task_mean")
    exceed = paired(trial, OURS, "exceed_task_mean")
    if row is None or exceed is None:
        return "How often jobs exceed, and what is allocated for nothing"
    return thin(
        f"{OURS[:1].upper()}{OURS[1:]} gives {_signed(row['ratio'] - 1)} for nothing and is exceeded by "
        f"{percent(exceed['value'])} of the jobs, the scouts' rule by {percent(exceed['reference'])}"
    )


def sample(study: JobStudy) -> str:
    """Say how much was judged, and what the lines are."""
    return thin(
        f"n = {whose(study)}, means over tasks. Blue: {OURS}, by the price of a failure; light blue: bounds of models, by their "
        "level; grey: the scouts' rule, dashed with other margins; red: one allocation per task, queue and cores that knows the uses."
    )


def coverage_finding(trial: Trial, model: str) -> str:
    """Return the title of the chart of coverage by what was known."""
    rows = trial.comparison.by_scouts.filter(
        pl.col("estimator") == model, pl.col("level") == trial.comparison.level
    ).sort("coverage")
    if rows.is_empty():
        return "Coverage by what was known"
    worst = rows.row(0, named=True)
    return thin(
        f"Of the jobs of which {worst['known'].replace('-', ' to ').replace('+', ' or more')} others were known, "
        f"{percent(worst['coverage'])} stay within the {100 * trial.comparison.level:g} % bound of {model}: the least"
    )


def worst(study: JobStudy) -> str:
    """Name the stratum with the lowest coverage, and the task that loses most."""
    trial, level = study.main, study.doubts.level
    strata = study.doubts.strata.filter(pl.col("stratum_by") != "all").sort("coverage", "stratum")
    told = []
    if strata.height:
        row = strata.row(0, named=True)
        told.append(
            f"The worst stratum of {study.doubts.model}'s {100 * level:g} % bound is {stratum_name(row)}: "
            f"{percent(row['coverage'])} of {row['n']:,} jobs stay within it."
        )
    tasks = trial.comparison.tasks
    deployed = tasks.filter(estimator=trial.comparison.reference)
    both = tasks.filter(estimator=OURS).join(deployed, on="jeditaskid", suffix="_rule")
    loses = both.with_columns(more=pl.col("waste_per_usage") - pl.col("waste_per_usage_rule")).drop_nulls("more")  # fmt: skip
    loses = loses.sort("more", "jeditaskid", descending=[True, False])
    if loses.height:
        row = loses.row(0, named=True)
        word = "loses most" if row["more"] > 0 else "gains least"
        told.append(
            f"Task {row['jeditaskid']} {word}: {percent(row['waste_per_usage'])} of its use wasted with ours, retries counted, "
            f"{percent(row['waste_per_usage_rule'])} under the scouts' rule."
        )
    return thin(" ".join(told))


def coverage(study: JobStudy) -> str:
    """Hold the bound of the model to its promise in every stratum, by either clock."""
    said = []
    for at, trial in study.trials.items():
        strata = trial.comparison.strata.filter(estimator=study.doubts.model)
        parts = strata.filter(pl.col("stratum_by") != "all")
        often = parts.filter(verdict="misses too often").height
        said.append(
            f"decided {CLOCKS[at]} {parts.filter('inside').height} of {parts.height} are inside what chance allows, {often} are "
            f"missed too often and {parts.filter(verdict='misses too rarely').height} too rarely"
        )
    return thin(
        f"The {100 * study.doubts.level:g} % bound of {study.doubts.model} in every stratum of 200 jobs or more (task, queue, cores, "
        f"and all three): {'; '.join(said)}."
    )


def certainty(study: JobStudy) -> str:
    """Say how the test was made and what intervals mean."""
    tasks = study.main.comparison.counts["tasks"]
    if study.kind == "tasks":
        made = (
            "Each task is tested by estimators fitted on the other tasks only (the earlier two thirds of them, calibrated on the "
            "latest third); what its own jobs used is seen as they end, never earlier. Rules learn nothing from other tasks."
        )
    else:
        rows = study.division.iter_rows()
        parts = [f"{name} {n} tasks ({jobs:,} jobs)" for name, n, jobs in rows]
        made = f"In the order of their first decisions: {', '.join(parts)}; jobs that ended after the first tested decision teach nothing."
    few = (
        f"{tasks} tasks are too few for an interval: in brackets is the range when any one of them is left out."
        if tasks < FEW
        else "Intervals draw tasks again, not jobs: jobs of one task rise and fall together."
    )
    return thin(f"{made} {few}")


def cannot_tell(study: JobStudy) -> list[str]:
    """Collect what these jobs cannot tell."""
    trial, told = (
        study.main,
        [
            f"{name} says the same as {other} on the {study.called}: there are too few tasks to learn more than constants from; it is shown once."
            for name, other in study.alike.items()
        ],
    )
    counts = trial.comparison.counts
    if study.kind == "tasks":
        if counts["killed"] == 0:
            told.append(
                "The real tasks hold no job that is known to be killed for its memory: jobs that would have needed more than "
                "they could get are missing, and every exceed rate is that of survivors."
            )
        largest = trial.production.group_by("jeditaskid").len().sort("len", descending=True)
        share = float(largest["len"][0]) / counts["jobs"]
        if share > 0.5 and counts["tasks"] > 1:
            told.append(
                f"Task {largest['jeditaskid'][0]} has {percent(share)} of the jobs of the {counts['tasks']} real tasks: figures over "
                "all jobs are mostly its own, those that are means of tasks count it as one."
            )
    without = trial.comparison.table.filter(pl.col("share_without") > 0.01)
    for name, part in without.group_by("estimator", maintain_order=True):
        least = part.sort("share_without").row(-1, named=True)
        level = "" if least["level"] is None else f" at {100 * least['level']:g} %"
        told.append(
            f"{name[0]}{level} has no answer for {percent(least['share_without'])} of the jobs of the "
            f"{study.called}, decided {CLOCKS[trial.at]}: too few tasks calibrate it."
        )
    return told


def paired(trial: Trial, name: str, measure: str) -> dict[str, Any] | None:
    """Return how an estimator compares with the deployed rule, of a model at the level that is compared."""
    found = trial.comparison.paired.filter(
        pl.col("estimator") == name, pl.col("measure") == measure, pl.col("ratio").is_not_null()
    )
    fits = pl.col("level").is_null() | (pl.col("level") == trial.comparison.level)
    rows = found.filter(fits)
    return rows.row(0, named=True) if rows.height else None


def change(row: dict[str, Any]) -> str:
    """Write a ratio to the deployed rule as a change in per cent, with what is known of its certainty."""
    value = 100 * (row["ratio"] - 1)
    if row["few_tasks"] and row["without_lo"] is not None:
        ends = [100 * (row[name] - 1) for name in ("without_lo", "without_hi")]
        said = "when one task is left out"
    elif row["ratio_lo"] is None:
        return f"{_plus(value)} %"
    else:
        ends = [100 * (row[name] - 1) for name in ("ratio_lo", "ratio_hi")]
        said = "95 % interval over tasks"
    return f"{_plus(value)} % ({_plus(ends[0])} to {_plus(ends[1])}, {said})"


def _plus(value: float) -> str:
    """Write a change with its sign, also where it is more."""
    return f"{'+' if round(value) > 0 else ''}{number(value)}"


def _signed(part: float) -> str:
    """Write a change in per cent with its direction.

    Example:
        >>> _signed(-0.254), _signed(0.1)
        ('25 % less', '10 % more')
    """
    return f"{number(100 * abs(part))} % {'less' if part < 0 else 'more'}"
