"""What the workflow-pilots report says, from what was found."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import polars as pl

from brokerlab.report.content import Verdict
from brokerlab.report.workflow_pilots.study import (
    NOTES,
    ONE_JOB,
    PAPER,
    PER_TASK,
    Study,
)
from brokerlab.words import listed, measured, number, percent, thin
from brokerlab.workflows.compare import costs
from brokerlab.workflows.compare import hour_waits as estimated_hour

NAMES: Mapping[str, str] = {
    NOTES: "grouping (notes)",
    PAPER: "grouping (paper)",
    "pilot_levels:paper_serial": "grouping (paper) without overlap",
    "pilot_levels:paper_idle": "grouping (paper), idle cancelled",
    "pilot_levels:peer": "grouping (peer)",
    ONE_JOB: "one job",
    "one_job_best": "one job, best width",
    PER_TASK: "one job per task",
    "level": "one job per level",
    "level_overlap": "job per level, overlapping",
    "best_partition": "best partition (hindsight)",
}
"""How pages name the strategies."""


LONG_H = 24.0
"""Median wait of a small request above which a queue is called saturated [h]."""


def name_of(strategy: str) -> str:
    """Return how the page names a strategy."""
    return NAMES.get(strategy, strategy)


def times(row: Mapping[str, Any] | None) -> str:
    """Write a ratio with its interval.

    Example:
        >>> times({"ratio": 1.52, "ratio_lo": 1.31, "ratio_hi": 1.76})
        '1.52 (1.31 to 1.76)'
    """
    if row is None:
        return "an unknown number of"
    places = 2 if row["ratio"] < 20 else 0
    return measured(row["ratio"], row["ratio_lo"], row["ratio_hi"], places)


def ratio_of(frame: pl.DataFrame, strategy: str, reference: str) -> dict[str, Any] | None:
    """Return the row of a strategy held against another; None where there is none."""
    found = frame.filter(pl.col("strategy") == strategy, pl.col("reference") == reference)
    return found.row(0, named=True) if found.height else None


def sample(study: Study) -> str:
    """Say how much was run."""
    inputs = study.inputs
    return thin(
        f"{_count(len(inputs.systems), 'queue')}, {_count(len(inputs.workflows), 'workflow')}, "
        f"{study.n_times} instants each: n = {study.runs.height:,} runs"
    )


def verdict(study: Study) -> Verdict:
    """Answer the question of the page."""
    return Verdict(
        kind="finding",
        sentence=thin(f"{_advice(study)} {_against_simple(study)}"),
    )


def _advice(study: Study) -> str:
    """Say which rule set is the better, queue by queue."""
    found = study.by_queue.filter(pl.col("strategy") == NOTES)
    rows = found.sort("ratio", "system", descending=[True, False]).to_dicts()
    if not rows:
        return "The two rules of grouping could not be compared."
    longer = [row["ratio_lo"] is not None and row["ratio_lo"] > 1 for row in rows]
    shorter = [row["ratio_hi"] is not None and row["ratio_hi"] < 1 for row in rows]
    lead = {
        (True, True): "Which rule of grouping is right hangs on the queue",
        (True, False): "Group by the paper's rule",
        (False, True): "Keep the rule of the notes",
        (False, False): "The two rules of grouping cannot be told apart",
    }[any(longer), any(shorter)]
    said = [f"{times(row)} at {row['system']}" for row in rows]
    return (
        f"{lead}: with the notes' rule taken literally (rules=notes, the default) workflows take so many times as long as with "
        f"the paper's (rules=paper): {listed(said)}."
    )


def _against_simple(study: Study) -> str:
    """Say what grouping gains over the simple ways."""
    said = []
    for rules in ("paper", "notes"):
        wins = _wins(study, rules)
        said.append(f"by the {rules}'s rules" if rules == "paper" else "by the notes'")
        said[-1] += (
            f" sooner at {wins['sooner']} and later at {wins['later']} of {sum(wins.values())} places"
        )
    return (
        f"Against the better of one job and one job per task, grouping ends {'; '.join(said)} (95 % intervals, "
        f"{study.n_times} instants each)."
    )


def strategies(study: Study) -> Verdict:
    """Say what grouping does against one job and one job per task."""
    job = ratio_of(study.against, PAPER, ONE_JOB)
    task = ratio_of(study.against, PAPER, PER_TASK)
    return Verdict(
        kind="finding",
        subject="strategies",
        sentence=thin(
            f"Over all queues grouping by the paper's rules takes {times(job)} of the time of one job for the whole workflow "
            f"and {times(task)} of that of one job per task (geometric means of turnarounds at the same instants, "
            f"95 % intervals). {_against_simple(study)} {_best(study)}"
        ),
    )


def _best(study: Study) -> str:
    """Name the strategy with the shortest turnarounds over all queues."""
    best = costs(study.runs)["strategy"][0]
    if best == PAPER:
        return "No strategy is shorter over all queues than grouping by the paper's rules."
    ratios = study.by_queue.filter(pl.col("strategy") == best)["ratio"].to_list()
    return (
        f"Shortest over all queues: {name_of(best)}, {number(min(ratios), 2)} to {number(max(ratios), 2)} of the time of grouping "
        "by the paper's rules, by queue."
    )


def rules(study: Study) -> Verdict:
    """Say what the difference between the two rule sets does."""
    return Verdict(
        kind="finding",
        subject="rules",
        sentence=thin(
            f"{_advice(study)} Under the notes {_went(study, NOTES)}; under the paper {_went(study, PAPER)}. Where all levels "
            "are taken and the wait is more than twice the run time, the notes send one wide job and the paper goes task by "
            "task, which waits again at every level."
        ),
    )


def _went(study: Study, strategy: str) -> str:
    """Say how the runs under a rule set went."""
    shapes = study.runs.filter(pl.col("strategy") == strategy)["shape"]
    one, alone = (float((shapes == shape).mean() or 0.0) for shape in ("one job", "task by task"))  # type: ignore[arg-type]
    return (
        f"{percent(one)} of the runs become one job, {percent(alone)} go task by task from the start and "
        f"{percent(max(0.0, 1 - one - alone))} have several pilots"
    )


def waits(study: Study) -> Verdict:
    """Say how waits depend on what is asked for."""
    parts = []
    for system in study.inputs.systems:
        small, large = hour_waits(study, system)
        parts.append(f"{system}: {number(small, 1)} h on 1 host, {number(large, 1)} h on all")
    rows = study.by_queue.filter(pl.col("strategy") == ONE_JOB).iter_rows(named=True)
    whole = {row["system"]: row for row in rows}
    ratios = [f"{times(whole[name])} at {name}" for name in study.inputs.systems if name in whole]
    return Verdict(
        kind="finding",
        subject="waits",
        sentence=thin(
            f"Median estimated wait of a request of one hour: {'; '.join(parts)}. One job as wide as the workflow takes "
            f"{listed(ratios) or 'an unknown number'} times as long as grouping by the paper's rules."
        ),
    )


def hour_waits(study: Study, system: str) -> tuple[float, float]:
    """Return the median estimated wait of an hour on one host and on all hosts of a machine [h]."""
    row = estimated_hour(study.waits).filter(pl.col("system") == system).row(0, named=True)
    return row["one_host_h"], row["all_hosts_h"]


def example(study: Study) -> Verdict | None:
    """Say what the example shows."""
    found = study.example
    if found is None:
        return None
    ends = {name: done.metrics["turnaround"] / 3600 for name, done in found.runs.items()}
    order = sorted(ends, key=lambda name: (ends[name], name))
    return Verdict(
        kind="finding",
        subject="one instant",
        sentence=thin(
            f"{found.workflow} at {found.system}, submitted {number(found.submit_time / 86400, 1)} days into the log, ends "
            f"first with {name_of(order[0])} ({number(ends[order[0]], 1)} h) and last with {name_of(order[-1])} "
            f"({number(ends[order[-1]], 1)} h). One instant proves nothing; it shows what the strategies do."
        ),
    )


def published(study: Study) -> Verdict:
    """Say how many of the published shapes are seen here."""
    named = {
        outcome: part["check"].to_list()
        for (outcome,), part in study.published.group_by("outcome", maintain_order=True)
    }
    said = [f"{listed(named[o])} {w}" for o, w in (("holds", "can be seen"), ("fails", "cannot"), ("not tested", "could not be tested")) if o in named]  # fmt: skip
    return Verdict(
        kind="finding",
        subject="published results",
        sentence=f"Of the shapes of the published results, {'; '.join(said)} on these logs.",
    )


def _wins(study: Study, rules: str) -> dict[str, int]:
    rows = study.ratios.filter(pl.col("rules") == rules)
    counts = dict.fromkeys(("sooner", "later", "same"), 0)
    return counts | dict(rows.group_by("outcome").len().rows())


def degenerate(study: Study) -> str:
    """Say where grouping is no grouping."""
    rows = study.ratios.filter(pl.col("rules") == "paper")
    often = rows.filter(pl.col("one_job") > 0.5)
    alone = rows.filter(pl.col("task_by_task") > 0.5)
    said = [
        f"one job in most runs at {often.height} of {rows.height} places ({_places(often)})" if often.height else "one job in most runs nowhere",
        f"task by task from the start in most runs at {alone.height} ({_places(alone)})" if alone.height else "task by task from the start in most runs nowhere",
    ]  # fmt: skip
    return thin(f"By the paper's rules grouping degenerates to {listed(said)}.")


def _places(rows: pl.DataFrame, most: int = 4) -> str:
    names = [f"{workflow} at {system}" for workflow, system in rows.select("workflow", "system").rows()]  # fmt: skip
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more


def certainty(study: Study) -> str:
    """Say what the intervals are made of."""
    return thin(
        f"All strategies start from the same {study.n_times} states of each queue, drawn at random over the log less a tenth "
        "at either end (runs started in the last days see a queue that drains). Intervals draw instants again, not workflows "
        "or machines, and are wider where neighbouring instants are alike: they say what other days of these machines would have given, not what other machines would."
    )


def cannot_tell(study: Study) -> tuple[str, ...]:
    """Collect what cannot be told, from what was found."""
    inputs, told = study.inputs, list(study.inputs.caveats)
    for label, why in study.comparison.missing.items():
        told.append(f"Runs are missing: {label}, {why}. Run it again with the same store to fill them in.")  # fmt: skip
    without = study.comparison.runs.filter(pl.col("problem").is_not_null())
    for (why,), part in without.group_by("problem", maintain_order=True):
        told.append(f"{part.height} runs were not possible: {why}.")
    if any(system.policy == "easy" for system in inputs.systems.values()):
        told.append(
            "Under EASY the estimated start is no bound: jobs that come later may pass and delay every job but the first in "
            "line. The strategies decide by such estimates, as they would at a real site."
        )
    for name in inputs.systems:
        one, _ = hour_waits(study, name)
        if one > LONG_H:
            told.append(
                f"{name}: even an hour on one host waits {number(one)} h in the median. No site would run so; it stands for "
                "queues where everybody waits alike."
            )
    told.append(
        "Run times of tasks are known to the scheduler here, and are those of the machine where the workflow was recorded: "
        "estimates as poor as users' requests would make more pilots expire. Data transfers between tasks cost nothing."
    )
    told.append(
        "The other users do not react: nobody submits less when the queue is long, and the priority of the workflow's owner "
        "does not fall with use, as fair share would have it."
    )
    return tuple(thin(sentence) for sentence in told)


def _count(n: int, word: str) -> str:
    return f"{n} {word}{'' if n == 1 else 's'}"
