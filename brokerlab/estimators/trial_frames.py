"""What a trial showed, frame by frame: every estimator, at equal exceed rates, task by task, by what was known."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl

from brokerlab.estimators.allocation import PRICE
from brokerlab.estimators.evaluation import Evaluation
from brokerlab.estimators.offered import LEVEL, WORST, coverage, defaults
from brokerlab.estimators.scoring.judged import FEW_TASKS, Judged
from brokerlab.estimators.scoring.settings import ENOUGH, OTHERS
from brokerlab.estimators.sources.source import At
from brokerlab.estimators.trial import Trial, with_range

LEAST_REFERENCE = 1e-3
"""Of use: an over-allocation that is smaller than that has no change in per cent."""
CLOCKS: Mapping[At, str] = {"submit": "at submission", "start": "at the start"}
"""When a job is decided, in words."""
FARTHEST = 3.0  # points that over-allocate more times what the deployed rule does are left out
LIMIT = "best per group, in hindsight"
"""Name of the limit among the estimators: one allocation per task, queue and number of cores that knows the uses."""


def role(trial: Trial) -> pl.Expr:
    """Say what an estimator is: ``current`` (the deployed rule), ``proposed`` (a cheapest allocation that is offered), ``model`` or ``rule``."""
    offered = trial.offers.filter("offered")["estimator"].to_list()
    roles = {
        **dict.fromkeys(trial.models, "model"),
        **{name: "proposed" if name in offered else "model" for name in trial.policies},
        trial.comparison.reference: "current",
    }
    return pl.col("estimator").replace_strict(roles, default="rule", return_dtype=pl.String)


def mark(trial: Trial) -> pl.Expr:
    """Keep of `role` what marks a row of a table: ``current`` and ``proposed``."""
    return pl.when(role(trial).is_in(["current", "proposed"])).then(role(trial))


def why_not_offered(offers: pl.DataFrame, estimator: str) -> str | None:
    """Say, in a clause, why an estimator is not offered as default; None: it is."""
    row = offers.filter(estimator=estimator).row(0, named=True)
    if row["offered"]:
        return None
    if row["silent"]:
        return "says nothing"
    if row["worst"] is None:
        return "cannot be compared"
    if row["worst"] > WORST:
        on = f" on {row['worst_on']}" if row["worst_on"] else ""
        return f"wastes {row['worst']:.2f} times as much{on}"
    if len(row["short"]):
        return f"keeps its {100 * LEVEL:g} % bounds too rarely"
    return "was not judged on all"


def default_of(offers: pl.DataFrame) -> str | None:
    """Return the default of one kind of systems; None: no rule says anything, and no model is offered."""
    return next(iter(defaults(offers)["estimator"]), None)


def change_of(trial: Trial, estimator: str, measure: str) -> dict[str, Any] | None:
    """Return how an estimator changes an over-allocation or a waste of the deployed rule.

    As :meth:`Trial.against_deployed`, with ``change, change_lo, change_hi`` (ratio - 1); None where they cannot be compared,
    or the rule has less than 0.1 % of use.
    """
    row = trial.against_deployed(estimator, measure)
    if row is None or row["reference"] < LEAST_REFERENCE:
        return None
    ends = ("", "_lo", "_hi")
    ratios = (row[f"ratio{end}"] for end in ends)
    changes = (None if ratio is None else ratio - 1 for ratio in ratios)
    return row | {f"change{end}": each for end, each in zip(ends, changes, strict=True)}


def every_estimator(trial: Trial, *others: Trial) -> pl.DataFrame:
    """Return how often jobs exceed each estimator, what it over-allocates, and what retries cost.

    One row per (estimator, level) in the order of the comparison: ``estimator, level`` (null: it has none), ``mark``, ``jobs,
    share_without`` (of the jobs, without an answer), ``exceed_task_mean, exceed`` (share of jobs), ``over_allocation_task_mean,
    over_allocation`` (of use), ``change, change_lo, change_hi`` (of the mean of tasks against the deployed rule on the same jobs [1];
    the interval over tasks, with few tasks the range without one of them; null where the rule over-allocates less than 0.1 %),
    ``waste_per_usage``, and that of trials of the same jobs by other clocks, such as ``start_waste_per_usage``.
    """
    paired = with_range(trial.comparison.paired).filter(
        pl.col("measure") == "over_allocation_task_mean", pl.col("reference") >= LEAST_REFERENCE
    )
    change = paired.select(
        "estimator",
        "level",
        *((pl.col(f"ratio{end}") - 1).alias(f"change{end}") for end in ("", "_lo", "_hi")),
    )
    keys = ["estimator", "level"]
    rows = trial.comparison.table.join(
        change, on=keys, how="left", nulls_equal=True, maintain_order="left"
    ).select(
        *("estimator", "level"),
        mark(trial).alias("mark"),
        *("jobs", "share_without", "exceed_task_mean", "exceed"),
        *("over_allocation_task_mean", "over_allocation", "change", "change_lo", "change_hi"),
        "waste_per_usage",
    )
    for other in others:
        waste = pl.col("waste_per_usage").alias(f"{other.at}_waste_per_usage")
        theirs = other.comparison.table.select(*keys, waste)
        rows = rows.join(theirs, on=keys, how="left", nulls_equal=True, maintain_order="left")
    return rows


def at_equal_exceed(trial: Trial) -> pl.DataFrame:
    """Return every estimator at the setting, chosen with hindsight, that exceeds no more often than the deployed rule, means over tasks.

    ``estimator, role, setting`` (a level, a price, a margin; null: it has none, or none exceeds as rarely), ``exceed,
    over_allocation`` (null: none exceeds as rarely, or has an answer for nearly all jobs), ``change`` (against the rule [1]),
    ``mark`` (its role, of models and other rules null); the least first, `LIMIT` with role ``limit`` among them.
    """
    rule = trial.deployed
    exceed, over = rule["exceed_task_mean"], rule["over_allocation_task_mean"]
    matched = trial.matched(exceed).select(
        "estimator",
        "setting",
        exceed="exceed_task_mean",
        over_allocation="over_allocation_task_mean",
    )
    names = trial.curves.select(pl.col("estimator").unique(maintain_order=True))
    rows = names.join(matched, on="estimator", how="left", maintain_order="left").with_columns(
        role(trial).alias("role")
    )
    limit = pl.DataFrame(
        {
            "estimator": [LIMIT],
            "role": ["limit"],
            "exceed": [exceed],
            "over_allocation": [trial.limit(exceed)],
        },
        schema_overrides={"exceed": pl.Float64, "over_allocation": pl.Float64},
    )
    enough = over is not None and over >= LEAST_REFERENCE
    change = pl.col("over_allocation") / over - 1 if enough else pl.lit(None, dtype=pl.Float64)
    every = pl.concat([rows, limit], how="diagonal").sort("over_allocation", nulls_last=True)
    marked = pl.when(pl.col("role").is_in(["current", "proposed", "limit"])).then("role")
    return every.select(
        *("estimator", "role", "setting", "exceed", "over_allocation"),
        change.alias("change"),
        marked.alias("mark"),
    )


def best_model(matched: pl.DataFrame) -> dict[str, Any] | None:
    """Return the model, or its cheapest allocation, that over-allocates least of `at_equal_exceed`; None of none."""
    models = matched.filter(pl.col("role").is_in(["model", "proposed"])).drop_nulls("change")
    return models.row(0, named=True) if models.height else None


def chosen_elsewhere(trial: Trial, *, average: str = "tasks") -> pl.DataFrame:
    """Return models at settings that exceed no more often than the deployed rule, chosen for each task on all other tasks.

    Rows of ``trial.at_deployed``; the ends of ``ratio`` are null with fewer than 8 tasks.
    """
    rows = trial.at_deployed.filter(average=average, chosen_on=OTHERS)
    enough = pl.col("tasks") >= FEW_TASKS
    ends = (pl.when(enough).then(f"ratio_{end}").alias(f"ratio_{end}") for end in ("lo", "hi"))
    return rows.with_columns(*ends)


def task_by_task(trial: Trial, ours: str) -> pl.DataFrame:
    """Return each task under the deployed rule and under another estimator; the largest loss first.

    ``jeditaskid, jobs``; ``exceed, over_allocation, waste_per_usage`` of the rule, with ``our_`` in front of the other;
    ``difference`` (of waste per usage, null where one cannot be told), ``mark`` (``worst`` for the largest loss).
    """
    measures = ("exceed", "over_allocation", "waste_per_usage")
    tasks = trial.comparison.tasks.filter(trial.compared)
    mine = tasks.filter(estimator=ours).select(
        "jeditaskid", *(pl.col(name).alias(f"our_{name}") for name in measures)
    )
    difference = pl.col("our_waste_per_usage") - pl.col("waste_per_usage")
    both = (
        tasks.filter(estimator=trial.comparison.reference)
        .select("jeditaskid", "jobs", *measures)
        .join(mine, on="jeditaskid")
        .with_columns(difference=difference)
        .sort("difference", "jeditaskid", descending=[True, False], nulls_last=True)
    )
    worst = (pl.int_range(pl.len()) == 0) & (pl.col("difference") > 0)
    return both.with_columns(mark=pl.when(worst).then(pl.lit("worst")))


def by_known(trial: Trial) -> pl.DataFrame:
    """Return coverage by how many finished jobs of the task were known, of the deployed rule, models and cheapest allocations.

    ``estimator, mark, known`` (such as ``1-4``), ``known_least, tasks, jobs, coverage, coverage_lo, coverage_hi`` (interval over
    tasks), ``over_allocation``.
    """
    names = [trial.comparison.reference, *trial.models, *trial.policies]
    rows = trial.comparison.by_scouts.filter(trial.compared, pl.col("estimator").is_in(names))
    return rows.sort("known_least", maintain_order=True).select(
        "estimator",
        mark(trial).alias("mark"),
        *("known", "known_least", "tasks", "jobs", "coverage"),
        pl.col("cluster_lo").alias("coverage_lo"),
        pl.col("cluster_hi").alias("coverage_hi"),
        "over_allocation",
    )


def coverage_by_clock(trials: Mapping[At, Trial], model: str) -> pl.DataFrame:
    """Hold the bound of a model to its level, over all jobs that have one and in every stratum of 200 or more, clock by clock.

    ``at, decided`` (of `CLOCKS`), ``level, jobs, promised`` (share of the jobs that have a bound: elsewhere it is refused),
    ``coverage, coverage_lo, coverage_hi`` of these (interval over tasks; null with fewer than 8), ``strata``, of which ``inside``
    what chance allows, ``too_often`` and ``too_rarely`` missed; ``own``: coverage of the bound that the model itself tells,
    which nothing holds to its level, over all jobs. Null: none is known.
    """
    rows = []
    for at, trial in trials.items():
        row, level = trial.comparison.row(model), trial.comparison.level
        judged = Judged.of(trial.records, trial.quantity, "production")
        strata = trial.comparison.strata.filter(
            pl.col("estimator") == model, pl.col("level") == level, pl.col("stratum_by") != "all"
        )
        rows.append(
            {
                "at": at,
                "decided": CLOCKS[at],
                "level": level,
                "jobs": row["jobs"],
                "promised": 1 - row["share_without"],
                "coverage": row["coverage"],
                "coverage_lo": None if trial.few_tasks else row["cluster_lo"],
                "coverage_hi": None if trial.few_tasks else row["cluster_hi"],
                "strata": strata.height,
                "inside": strata.filter("inside").height,
                "too_often": strata.filter(verdict="misses too often").height,
                "too_rarely": strata.filter(verdict="misses too rarely").height,
                "own": coverage(judged, trial.predicted[model], level)["coverage"],
            }
        )
    ends = dict.fromkeys(("coverage", "coverage_lo", "coverage_hi", "own"), pl.Float64)
    return pl.DataFrame(rows, schema_overrides=ends)


def frontier_points(
    trial: Trial,
    *,
    variants: Sequence[str] = (),
    averaged: bool = True,
    answered: float = ENOUGH,
) -> pl.DataFrame:
    """Return every setting that ``answered`` enough jobs as a point of a line: how often jobs exceed against what is over-allocated; and the limit.

    ``variants`` are the deployed rule with other settings and take its role. ``estimator, role`` (as `role`, or ``limit``),
    ``setting, exceed, over_allocation, named`` (the one point of a line that stands for it: a rule itself, a model at the
    compared level, an allocation at the usual price).
    """
    end = "_task_mean" if averaged else ""
    most = trial.deployed[f"over_allocation{end}"]
    points = trial.curves.filter(pl.col("answered") >= answered).select(
        "estimator",
        pl.when(pl.col("estimator").is_in(list(variants)))
        .then(pl.lit("current"))
        .otherwise(role(trial))
        .alias("role"),
        "setting",
        exceed=f"exceed{end}",
        over_allocation=f"over_allocation{end}",
    )
    if most is not None:
        points = points.filter(pl.col("over_allocation") <= FARTHEST * most)
    at = {"proposed": PRICE, "model": trial.comparison.level}
    chosen = pl.col("setting") == pl.col("role").replace_strict(at, default=None)
    limits = trial.limits if averaged else trial.limits_pooled
    limit = limits.select(
        pl.lit(LIMIT).alias("estimator"),
        pl.lit("limit").alias("role"),
        pl.lit(None, dtype=pl.Float64).alias("setting"),
        "exceed",
        "over_allocation",
    )
    named = pl.col("setting").is_null() | chosen.fill_null(value=False)
    return pl.concat(
        [points.with_columns(named=named), limit.with_columns(named=pl.int_range(pl.len()) == 0)]
    )


def written(evaluation: Evaluation, *, average: str = "tasks") -> dict[str, pl.DataFrame]:
    """Return everything that an evaluation showed, by name, to be written as files.

    Frames of each trial begin with its clock: ``submit_estimators``, ``submit_by_task``, ...; of both ``matched`` (settings at the
    deployed rule's exceed rate) and ``chosen`` (on other tasks: means over ``tasks``, or over all ``jobs``); of the doubts
    ``strata, doubts, scouts, support``.
    """
    frames: dict[str, pl.DataFrame] = {}
    chosen = []
    for at, trial in evaluation.trials.items():
        compared = trial.comparison
        frames |= {
            f"{at}_estimators": compared.table,
            f"{at}_by_task": compared.tasks,
            f"{at}_by_scouts": compared.by_scouts,
            f"{at}_paired": compared.paired,
            f"{at}_at_deployed": trial.at_deployed,
            f"{at}_strata": compared.strata,
            f"{at}_curves": trial.curves,
            f"{at}_limits": trial.limits,
        }
        decided = pl.lit(CLOCKS[at]).alias("decided")
        chosen.append(chosen_elsewhere(trial, average=average).with_columns(decided))
    doubts = evaluation.doubts
    return frames | {
        "matched": at_equal_exceed(evaluation.main).drop_nulls("over_allocation"),
        "chosen": pl.concat(chosen),
        "strata": doubts.strata,
        "doubts": doubts.by_task,
        "scouts": doubts.scouts,
        "support": doubts.support,
    }
