"""The choice of the nucleus: what removes nuclei, what waives locality, what the weight is made of."""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from brokerlab.brokerage import production_tasks
from brokerlab.brokerage.hints import hint_queues
from brokerlab.brokerage.production_tasks import TaskDecisions
from brokerlab.brokerage.replay import Replay
from brokerlab.brokerage.rules import ProductionRules
from brokerlab.report.brokerage_replay.composition import spread_of
from brokerlab.report.replays.removal import CANDIDATE, KEYS, wide
from brokerlab.report.replays.shares import shares

FACTORS = ("work", "data", "tape", "space_fraction", "space_amount")
"""Factors of the weight of a nucleus (production-task-brokerage.md 5)."""
NOT_REACHED = "not_reached"
"""The task ended before the nucleus was looked at further."""
OUTCOMES = (
    "nucleus",
    "no_candidates",
    "no_queue_at_all",
    "input_not_readable",
    "parent_missing",
    "abort",
)


@dataclass(frozen=True, kw_only=True)
class Nuclei:
    """What the replay says of the choice of the nucleus.

    Attributes:
        decisions: The decisions.
        by_check: `shares` of (task, nucleus) pairs by check, in order, with ``left``.
        outcomes: `shares` of tasks by outcome.
        locality: `shares` of tasks whose locality check was ``waived``, ended by its period (``off_period``) or
            ``held``, among those that came to it with input.
        composition: `shares` of the factors in the spread of the log weight.
        history: `shares` of tasks whose nucleus of history passed (``passed``), would be drawn (``drawn``: mean
            probability), and would be drawn by chance (``by_chance``).
    """

    decisions: TaskDecisions
    by_check: pl.DataFrame
    outcomes: pl.DataFrame
    locality: pl.DataFrame
    composition: pl.DataFrame
    history: pl.DataFrame


def studied(
    replay: Replay, tasks: pl.DataFrame, *, rules: ProductionRules, n_boot: int, seed: int
) -> Nuclei:
    """Choose nuclei and sum up why.

    Args:
        replay: What the choice of the nucleus saw.
        tasks: ``jeditaskid``, ``nucleus`` of history.
        rules: Rule set.
        n_boot: Bootstrap replicates.
        seed: Of the draws and of the bootstrap.
    """
    hints = hint_queues(replay.for_jobs(), rules=rules, config=replay.config)
    found = production_tasks.decide(
        replay.for_tasks(), rules=rules, config=replay.config, hint_queues=hints, seed=seed
    )
    return Nuclei(
        decisions=found,
        by_check=by_check(found, n_boot=n_boot, seed=seed),
        outcomes=outcomes(found, n_boot=n_boot, seed=seed),
        locality=locality(found, n_boot=n_boot, seed=seed),
        composition=composition(found, n_boot=n_boot, seed=seed),
        history=history(found, tasks, n_boot=n_boot, seed=seed),
    )


def by_check(found: TaskDecisions, *, n_boot: int, seed: int) -> pl.DataFrame:
    """Return the share of (task, nucleus) pairs that each check removes, in order."""
    names = [check.name for check in production_tasks.checks(found.rules)]
    reason = (
        pl.when("passed")
        .then(pl.lit(CANDIDATE))
        .otherwise(pl.col("skip_reason").fill_null(NOT_REACHED))
    )
    counts = found.nuclei.group_by(*KEYS, check=reason).len("n")
    order = [*names, NOT_REACHED, CANDIDATE]
    table = shares(wide(counts, order), order, "looked_at", n_boot=n_boot, seed=seed)
    return table.with_columns(left=1 - pl.col("share").cum_sum())


def outcomes(found: TaskDecisions, *, n_boot: int, seed: int) -> pl.DataFrame:
    """Return the share of tasks with each outcome."""
    table = (
        found.tasks.with_columns(
            *((pl.col("outcome") == name).cast(pl.Int64).alias(name) for name in OUTCOMES),
            tasks=pl.lit(1),
        )
        .drop("nucleus")
        .with_columns(nucleus=(pl.col("outcome") == "nucleus").cast(pl.Int64))
    )
    return shares(table, OUTCOMES, "tasks", n_boot=n_boot, seed=seed)


def locality(found: TaskDecisions, *, n_boot: int, seed: int) -> pl.DataFrame:
    """Return how the check of locality ended for tasks that had input and were looked at."""
    asked = found.tasks.filter(pl.col("tot_size_gb") > 0, pl.col("n_nuclei") > 0)
    how = pl.col("locality").fill_null("held")
    table = asked.with_columns(
        *((how == name).cast(pl.Int64).alias(name) for name in ("held", "waived", "off_period")),
        tasks=pl.lit(1),
    )
    return shares(table, ["held", "waived", "off_period"], "tasks", n_boot=n_boot, seed=seed)


def composition(found: TaskDecisions, *, n_boot: int, seed: int) -> pl.DataFrame:
    """Return the share of each factor in the spread of the log weight, as `composition.spread_of` does for queues."""
    rows = found.nuclei.filter("passed", pl.all_horizontal(pl.col(name) > 0 for name in FACTORS))
    table = spread_of(rows, FACTORS, "nucleus")
    return shares(table, FACTORS, "spread", n_boot=n_boot, seed=seed)


def history(found: TaskDecisions, tasks: pl.DataFrame, *, n_boot: int, seed: int) -> pl.DataFrame:
    """Return how often the nucleus of history passed, and how likely it was to be drawn."""
    real = tasks.select("jeditaskid", real="nucleus").drop_nulls()
    chance = pl.when("passed").then(pl.col("probability")).otherwise(0.0).fill_null(0.0)
    there = pl.col("nucleus") == pl.col("real")
    told = (
        found.nuclei.join(real, on="jeditaskid")
        .group_by(KEYS)
        .agg(
            passed=(there & pl.col("passed")).sum().cast(pl.Float64),
            drawn=chance.filter(there).sum(),
            by_chance=pl.col("passed").mean(),
            tasks=pl.lit(1),
        )
    )
    return shares(told, ["passed", "drawn", "by_chance"], "tasks", n_boot=n_boot, seed=seed)
