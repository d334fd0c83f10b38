"""Everything that a replayed period says of the tasks of a brokerage, in one call."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import polars as pl

from brokerlab.brokerage.replaying import Replay
from brokerlab.brokerage.studies import (
    fairness,
    history,
    loops,
    removal,
    throttle,
    users,
    weight_spread,
)
from brokerlab.brokerage.studies.basic_weights import WeightComparison, compare_basic_weights
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
class _Tasks:
    """What a brokerage of queues did to the tasks of a period.

    Attributes:
        decisions: Of the brokerage.
        removed: What each check removes (of user tasks: in the loop that decided), see `removal.removal_shares`.
        without_queue, without_queue_by_gshare: See `removal.shares_without_queue`.
        agreement, disagreement: With where jobs ran, see `history`.
    """

    decisions: Any
    removed: pl.DataFrame
    without_queue: pl.DataFrame
    without_queue_by_gshare: pl.DataFrame
    agreement: pl.DataFrame
    disagreement: pl.DataFrame


@dataclass(frozen=True, kw_only=True)
class ProductionTasks(_Tasks):
    """What the brokerages did to the production tasks of a period.

    Attributes:
        removed_over_time, removed_by_gshare, removed_by_queue: As ``removed``, by ``time`` (start of a day or week), by
            ``gshare``, and by ``queue`` for the busiest; queues count once per brokerage, by that of their pseudo-queues
            which came furthest.
        last_stages: ``stage``, ``n``: what removed the last queues of brokerages without one, the most frequent first.
        factors, factors_by_gshare: What the weights are made of, see `weight_spread.factor_shares`.
        n_weighed: Brokerages in which two or more queues compete by weight.
        nuclei: The choice of the nucleus; null where it is not replayed.
        stranded: See `stranded.explain_stranded`.
    """

    removed_over_time: pl.DataFrame
    removed_by_gshare: pl.DataFrame
    removed_by_queue: pl.DataFrame
    last_stages: pl.DataFrame
    factors: pl.DataFrame
    factors_by_gshare: pl.DataFrame
    n_weighed: int
    nuclei: NucleusChoice | None
    stranded: pl.DataFrame


@dataclass(frozen=True, kw_only=True)
class UserTasks(_Tasks):
    """What the analysis brokerage did to the user tasks of a period.

    Attributes:
        rows: One row per brokerage, see `users.outcomes`.
        held_by_rule, held_by_level, held_over_time, held_by_unit: Who is held back, see the functions of `throttle`.
        margins: How near tasks come to the limits, see `throttle.limit_margins`.
        removed_by_loop, routes: What is removed in each locality loop, and ways through them, see `loops`.
        stabilizer, stabilizer_queues: See `loops.stabilizer_shares`, `loops.stabilizer_by_queue`.
        weights: The original against the new basic weight.
        users: What each user asked for and got, see `fairness.totals_by_user`.
        indices: Jain's index of it, see `fairness.jain_indices`.
        waits: Of the jobs that ran, see `fairness.mean_waits`.
    """

    rows: pl.DataFrame
    held_by_rule: pl.DataFrame
    held_by_level: pl.DataFrame
    held_over_time: pl.DataFrame
    held_by_unit: pl.DataFrame
    margins: pl.DataFrame
    removed_by_loop: pl.DataFrame
    routes: pl.DataFrame
    stabilizer: pl.DataFrame
    stabilizer_queues: pl.DataFrame
    weights: WeightComparison
    users: pl.DataFrame
    indices: pl.DataFrame
    waits: pl.DataFrame


@dataclass(frozen=True)
class _Again:
    """The tasks of a period, decided again.

    Attributes:
        decisions: The decisions.
        counts: See `removal.count_removals`.
        order: See `removal.removal_order`.
        best: See `removal.best_pseudo_queues`.
        matched: See `history.match_jobs`.
    """

    decisions: Any
    counts: pl.DataFrame
    order: list[str]
    best: pl.DataFrame
    matched: pl.DataFrame

    @classmethod
    def of(cls, period: Period) -> _Again:
        """Decide again.

        Raises:
            InsufficientDataError: No brokerage comes to look at a queue.
        """
        replay, kind = period.replay, period.kind
        decisions = kind.decide(kind.tables(replay), rules=period.rules, config=replay.config)
        if decisions.queues.is_empty():
            tasks = decisions.tasks
            column, how = ("outcome", "end as {}; one that does")
            if "throttle" in tasks.columns:
                column, how = ("throttle", "are held back by {}; one that passes")
            reasons = listed(tasks[column].drop_nulls().unique().sort().to_list())
            raise InsufficientDataError(
                f"None of {tasks.height} brokerages looks at a queue; they {how.format(reasons or 'nothing known')} would do"
            )
        best = removal.best_pseudo_queues(decisions, replay.tables["queues"])
        return cls(
            decisions=decisions,
            counts=removal.count_removals(decisions, replay.tasks),
            order=removal.removal_order(decisions),
            best=best,
            matched=history.match_jobs(period.ran, replay.tasks, best),
        )

    def removed(self, counts: pl.DataFrame, by: str, **dice: Any) -> pl.DataFrame:
        """Return what each check removes, by a column of the counts."""
        return removal.removal_shares(counts, self.order, by=[by], **dice)

    def summed(self, tasks: pl.DataFrame, **dice: Any) -> dict[str, Any]:
        """Return what is said of every brokerage of queues, see `_Tasks`."""
        decided = self.decisions
        return {
            "decisions": decided,
            "removed": removal.removal_shares(self.counts, self.order, **dice),
            "without_queue": removal.shares_without_queue(decided, tasks, **dice),
            "without_queue_by_gshare": removal.shares_without_queue(
                decided, tasks, by=["gshare"], **dice
            ),
            "agreement": history.agreement_shares(self.matched, **dice),
            "disagreement": history.disagreement_shares(self.matched, **dice),
        }


def study_production_tasks(
    period: Period,
    nuclei: Replay | None = None,
    *,
    switch_sample: int = 60,
    n_boot: int = N_BOOT,
    seed: int = 1,
) -> ProductionTasks:
    """Decide the production tasks of a period again, and sum up.

    Args:
        period: Of the production brokerage, from `period.replay_period`.
        nuclei: What the choice of the nucleus saw, from `period.replay_nuclei`; null: it is left out.
        switch_sample: Tasks at most that the switches of that choice are tried on.
        n_boot: Bootstrap replicates over tasks.
        seed: Of the draws of nuclei and of the replicates.

    Raises:
        InsufficientDataError: No brokerage comes to look at a queue.
    """
    dice: dict[str, Any] = {"n_boot": n_boot, "seed": seed}
    again, tasks = _Again.of(period), period.replay.tasks
    totals = again.matched.group_by("queue").agg(pl.col("n_jobs").sum())
    busiest = totals.sort("n_jobs", "queue", descending=[True, False]).head(BUSIEST)
    timed = again.counts.with_columns(time=pl.col("at").dt.truncate(grain(period.window)))
    without = again.decisions.tasks.filter(pl.col("outcome") != "candidates").drop_nulls("stage")
    stages = without.group_by(pl.col("stage").cast(pl.String)).len("n")
    spread = weight_spread.weight_spread(again.decisions, tasks)
    choice = None
    if nuclei is not None:
        known = period.archive.scan("tasks").select("jeditaskid", "nucleus").collect()
        choice = choose_nuclei(nuclei, known, rules=period.rules, sample=switch_sample, **dice)
    return ProductionTasks(
        **again.summed(tasks, **dice),
        removed_over_time=again.removed(timed, "time", **dice),
        removed_by_gshare=again.removed(again.counts, "gshare", **dice),
        removed_by_queue=again.removed(
            again.best.join(busiest, on="queue", how="semi"), "queue", **dice
        ),
        last_stages=stages.sort("n", "stage", descending=[True, False]),
        factors=weight_spread.factor_shares(spread, **dice),
        factors_by_gshare=weight_spread.factor_shares(spread, by=["gshare"], **dice),
        n_weighed=spread.height,
        nuclei=choice,
        stranded=explain_stranded(again.decisions, again.matched),
    )


def study_user_tasks(period: Period, *, n_boot: int = N_BOOT, seed: int = 1) -> UserTasks:
    """Decide the user tasks of a period again, and sum up.

    Args:
        period: Of the analysis brokerage, from `period.replay_period`.
        n_boot: Bootstrap replicates over users or tasks.
        seed: Of the replicates.

    Raises:
        InsufficientDataError: Every brokerage is held back before it looks at a queue.
    """
    dice: dict[str, Any] = {"n_boot": n_boot, "seed": seed}
    again, tasks = _Again.of(period), period.replay.tasks
    decisions = again.decisions
    rows = users.outcomes(decisions)
    state = loops.stabilizer_state(decisions, rows)
    jobs = fairness.jobs_with_users(period.ran, tasks, rows)
    totals = fairness.totals_by_user(rows, jobs)
    return UserTasks(
        **again.summed(tasks, **dice),
        rows=rows,
        held_by_rule=throttle.held_by_rule(rows, **dice),
        held_by_level=throttle.held_by_level(rows, **dice),
        held_over_time=throttle.held_over_time(rows, grain(period.window), **dice),
        held_by_unit=throttle.held_by_unit(rows),
        margins=throttle.limit_margins(decisions),
        removed_by_loop=loops.removed_by_loop(decisions, **dice),
        routes=loops.loop_routes(rows, **dice),
        stabilizer=loops.stabilizer_shares(state, **dice),
        stabilizer_queues=loops.stabilizer_by_queue(state),
        weights=compare_basic_weights(decisions, rows, **dice),
        users=totals,
        indices=fairness.jain_indices(totals, **dice),
        waits=fairness.mean_waits(jobs, **dice),
    )
