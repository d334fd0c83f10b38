"""Everything that a replayed period says of production tasks, in one call."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import polars as pl

from brokerlab.brokerage.production_jobs.decide import decide
from brokerlab.brokerage.production_jobs.decisions import Decisions
from brokerlab.brokerage.replay import Replay
from brokerlab.brokerage.studies import history, removal, weight_spread
from brokerlab.brokerage.studies.nuclei import NucleusChoice, choose_nuclei
from brokerlab.brokerage.studies.period import Period
from brokerlab.brokerage.studies.stranded import explain_stranded
from brokerlab.errors import InsufficientDataError
from brokerlab.intervals import N_BOOT
from brokerlab.times import grain
from brokerlab.words import listed

BUSIEST = 12
"""Queues looked at one by one, those where most jobs ran."""


@dataclass(frozen=True, kw_only=True)
class ProductionTasks:
    """What the brokerages did to the production tasks of a period.

    Attributes:
        decisions: Of the job brokerage.
        removed: What each check removes, see `removal.removal_shares`.
        removed_over_time, removed_by_gshare, removed_by_queue: The same by ``time`` (start of a day or week), by
            ``gshare``, and by ``queue`` for the busiest; queues count once per brokerage, by that of their pseudo-queues
            which came furthest.
        without_queue, without_queue_by_gshare: See `removal.shares_without_queue`.
        last_stages: ``stage``, ``n``: what removed the last queues of brokerages without one, the most frequent first.
        agreement, disagreement: With where jobs ran, see `history`.
        factors, factors_by_gshare: What the weights are made of, see `weight_spread.factor_shares`.
        n_weighed: Brokerages in which two or more queues compete by weight.
        nuclei: The choice of the nucleus; null where it is not replayed.
        stranded: See `stranded.explain_stranded`.
    """

    decisions: Decisions
    removed: pl.DataFrame
    removed_over_time: pl.DataFrame
    removed_by_gshare: pl.DataFrame
    removed_by_queue: pl.DataFrame
    without_queue: pl.DataFrame
    without_queue_by_gshare: pl.DataFrame
    last_stages: pl.DataFrame
    agreement: pl.DataFrame
    disagreement: pl.DataFrame
    factors: pl.DataFrame
    factors_by_gshare: pl.DataFrame
    n_weighed: int
    nuclei: NucleusChoice | None
    stranded: pl.DataFrame


def study_production_tasks(
    period: Period, nuclei: Replay | None = None, *, n_boot: int = N_BOOT, seed: int = 1
) -> ProductionTasks:
    """Decide the production tasks of a period again, and sum up.

    Args:
        period: Of the production brokerage, from `period.replay_period`.
        nuclei: What the choice of the nucleus saw, from `period.replay_nuclei`; null: it is left out.
        n_boot: Bootstrap replicates over tasks.
        seed: Of the draws of nuclei and of the replicates.

    Raises:
        InsufficientDataError: No brokerage comes to look at a queue.
    """
    dice: dict[str, Any] = {"n_boot": n_boot, "seed": seed}
    replay, tasks = period.replay, period.replay.tasks
    decisions = decide(replay.for_jobs(), rules=period.rules, config=replay.config)
    if decisions.queues.is_empty():
        outcomes = decisions.tasks["outcome"].unique().sort().to_list()
        raise InsufficientDataError(
            f"None of {decisions.tasks.height} brokerages looks at a queue; they end as {listed(outcomes)}; one that "
            "does would do"
        )
    counts, order = removal.count_removals(decisions, tasks), removal.removal_order(decisions)
    timed = counts.with_columns(time=pl.col("at").dt.truncate(grain(period.window)))
    best = removal.best_pseudo_queues(decisions, replay.tables["queues"])
    matched = history.match_jobs(period.ran, tasks, best)
    busiest = best.join(_busiest(matched), on="queue", how="semi")
    spread = weight_spread.weight_spread(decisions, tasks)
    return ProductionTasks(
        decisions=decisions,
        removed=removal.removal_shares(counts, order, **dice),
        removed_over_time=removal.removal_shares(timed, order, by=["time"], **dice),
        removed_by_gshare=removal.removal_shares(counts, order, by=["gshare"], **dice),
        removed_by_queue=removal.removal_shares(busiest, order, by=["queue"], **dice),
        without_queue=removal.shares_without_queue(decisions, tasks, **dice),
        without_queue_by_gshare=removal.shares_without_queue(
            decisions, tasks, by=["gshare"], **dice
        ),
        last_stages=_last_stages(decisions),
        agreement=history.agreement_shares(matched, **dice),
        disagreement=history.disagreement_shares(matched, **dice),
        factors=weight_spread.factor_shares(spread, **dice),
        factors_by_gshare=weight_spread.factor_shares(spread, by=["gshare"], **dice),
        n_weighed=spread.height,
        nuclei=None if nuclei is None else _nuclei(period, nuclei, **dice),
        stranded=explain_stranded(decisions, matched),
    )


def _busiest(matched: pl.DataFrame) -> pl.DataFrame:
    """Return the queues where most jobs ran."""
    totals = matched.group_by("queue").agg(pl.col("n_jobs").sum())
    return totals.sort("n_jobs", "queue", descending=[True, False]).head(BUSIEST)


def _last_stages(decisions: Decisions) -> pl.DataFrame:
    without = decisions.tasks.filter(pl.col("outcome") != "candidates").drop_nulls("stage")
    stages = without.group_by(pl.col("stage").cast(pl.String)).len("n")
    return stages.sort("n", "stage", descending=[True, False])


def _nuclei(period: Period, nuclei: Replay, **dice: Any) -> NucleusChoice:
    tasks = period.archive.scan("tasks").select("jeditaskid", "nucleus").collect()
    return choose_nuclei(nuclei, tasks, rules=period.rules, **dice)
