"""The choice of the nucleus: what removes nuclei, how tasks end, what the weight is made of."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import polars as pl

from brokerlab.brokerage.engine.decisions import TASK
from brokerlab.brokerage.production_jobs.brokerage import BROKERAGE as JOBS
from brokerlab.brokerage.production_jobs.brokerage import hint_queues
from brokerlab.brokerage.production_tasks import TaskDecisions
from brokerlab.brokerage.production_tasks.brokerage import BROKERAGE
from brokerlab.brokerage.replaying import Replay
from brokerlab.brokerage.rules import JobRules, ProductionRules
from brokerlab.brokerage.studies.removal import (
    count_removals,
    removal_order,
    removal_shares,
    with_flags,
)
from brokerlab.brokerage.studies.rule_sets import try_switches
from brokerlab.brokerage.studies.weights import divide_spread, factor_shares
from brokerlab.intervals import N_BOOT, shares

FACTORS = ("work", "data", "tape", "space_fraction", "space_amount")
"""Factors of the weight of a nucleus (production-tasks.md 4)."""
SWITCHES = {*(ProductionRules.SWITCHES.keys() - JobRules.SWITCHES.keys()), "other_status_up"}
"""Switches that the choice can see."""
OUTCOMES = (
    "nucleus",
    "no_candidates",
    "no_queue_at_all",
    "input_not_readable",
    "parent_missing",
    "abort",
)


@dataclass(frozen=True, kw_only=True)
class NucleusChoice:
    """What the replay says of the choice of the nucleus.

    Attributes:
        decisions: The decisions.
        checks: See `removal.removal_shares`, of (task, nucleus) pairs.
        outcomes: See :func:`brokerlab.intervals.shares`, as all below: tasks by outcome.
        factors: The factors' shares in the spread of the log weight.
        history: Tasks, those that ended before any nucleus was looked at among them, whose nucleus of history ``passed``, would be ``drawn`` (mean probability), and would be drawn
            ``by_chance``.
        switches: Of every switch of the choice: see :func:`brokerlab.rulesets.switch_by_switch`, rows are pairs of task and
            nucleus, with ``shift`` [1] (mean over tasks with nuclei of the chance that it alone leads to another nucleus, or to
            none).
    """

    decisions: TaskDecisions
    checks: pl.DataFrame
    outcomes: pl.DataFrame
    factors: pl.DataFrame
    history: pl.DataFrame
    switches: pl.DataFrame


def choose_nuclei(
    replay: Replay,
    tasks: pl.DataFrame,
    *,
    rules: ProductionRules,
    sample: int = 60,
    n_boot: int = N_BOOT,
    seed: int = 1,
) -> NucleusChoice:
    """Choose nuclei and sum up why; ``tasks``: ``jeditaskid``, ``nucleus`` of history; switches are tried on ``sample`` of them."""
    dice: dict[str, Any] = {"n_boot": n_boot, "seed": seed}
    config = replay.config

    def hinted(seen: Replay) -> pl.DataFrame:
        return hint_queues(seen.tables_of(JOBS.tables), rules=rules, config=config)

    asked: dict[str, Any] = {"hint_queues": pl.concat(replay.map(hinted)), "seed": seed}
    tables = replay.tables_of(BROKERAGE.tables)
    decisions = BROKERAGE.decide(tables, rules=rules, config=config, **asked)
    passed = decisions.nuclei.filter(
        pl.col("check").is_null(), *(pl.col(name) > 0 for name in FACTORS)
    )
    spread = divide_spread(passed, FACTORS, "nucleus")
    counts = count_removals(decisions, replay.tasks)
    ends = with_flags(decisions.tasks, "outcome", OUTCOMES).with_columns(tasks=pl.lit(1))
    return NucleusChoice(
        decisions=decisions,
        checks=removal_shares(counts, removal_order(decisions), **dice),
        outcomes=shares(ends, OUTCOMES, "tasks", unit="jeditaskid", **dice),
        factors=factor_shares(spread, FACTORS, **dice),
        history=_history_shares(decisions, tasks, **dice),
        switches=try_switches(
            BROKERAGE,
            replay,
            rules,
            only=SWITCHES,
            texts=False,
            sample=sample,
            seed=seed,
            options=asked,
        )[0],
    )


def _history_shares(decisions: TaskDecisions, tasks: pl.DataFrame, **dice: Any) -> pl.DataFrame:
    """Return how often the nucleus of history passed, and how likely it was to be drawn."""
    real = tasks.select("jeditaskid", real="nucleus").drop_nulls()
    passed = pl.col("check").is_null()
    chance = pl.col("probability").fill_null(0.0)
    is_real = pl.col("nucleus") == pl.col("real")
    sums = (
        decisions.nuclei.join(real, on="jeditaskid")
        .group_by(TASK)
        .agg(
            passed=(is_real & passed).sum().cast(pl.Float64),
            drawn=chance.filter(is_real).sum(),
            by_chance=passed.mean(),
        )
    )
    every = decisions.tasks.select(TASK).join(real.select("jeditaskid"), on="jeditaskid")
    table = every.join(sums, on=TASK, how="left").fill_null(0.0).with_columns(tasks=pl.lit(1))
    parts = ["passed", "drawn", "by_chance"]
    return shares(table, parts, "tasks", unit="jeditaskid", **dice)
