"""Everything that a replayed period says of user tasks, in one call."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import polars as pl

from brokerlab.brokerage.analysis_jobs import AnalysisDecisions, decide
from brokerlab.brokerage.studies import history, removal
from brokerlab.brokerage.studies.period import Period
from brokerlab.brokerage.studies.user_tasks import fairness, held, queues
from brokerlab.brokerage.studies.user_tasks.outcomes import PASSED, outcomes
from brokerlab.brokerage.studies.user_tasks.weights import WeightComparison, compare_basic_weights
from brokerlab.errors import InsufficientDataError
from brokerlab.intervals import N_BOOT
from brokerlab.times import grain
from brokerlab.words import listed


@dataclass(frozen=True, kw_only=True)
class UserTasks:
    """What the analysis brokerage did to the user tasks of a period.

    Attributes:
        decisions: Of the analysis brokerage.
        rows: One row per brokerage, see `outcomes`.
        held_by_rule, held_by_level, held_over_time, held_by_unit: Who is held back, see the functions of `held`.
        margins: How near tasks come to the limits, see `held.limit_margins`.
        removed: What each check removes in the loop that decided, see `removal.removal_shares`.
        removed_by_loop: The same by locality loop.
        routes: Ways through the loops, see `queues.loop_routes`.
        without_queue, without_queue_by_gshare: See `removal.shares_without_queue`.
        stabilizer, stabilizer_queues: See `queues.stabilizer_shares`, `queues.stabilizer_by_queue`.
        weights: The original against the new basic weight.
        users: What each user asked for and got, see `fairness.totals_by_user`.
        indices: Jain's index of it, see `fairness.jain_indices`.
        waits: Of the jobs that ran, see `fairness.mean_waits`.
        agreement, disagreement: With where jobs ran, see `history`.
    """

    decisions: AnalysisDecisions
    rows: pl.DataFrame
    held_by_rule: pl.DataFrame
    held_by_level: pl.DataFrame
    held_over_time: pl.DataFrame
    held_by_unit: pl.DataFrame
    margins: pl.DataFrame
    removed: pl.DataFrame
    removed_by_loop: pl.DataFrame
    routes: pl.DataFrame
    without_queue: pl.DataFrame
    without_queue_by_gshare: pl.DataFrame
    stabilizer: pl.DataFrame
    stabilizer_queues: pl.DataFrame
    weights: WeightComparison
    users: pl.DataFrame
    indices: pl.DataFrame
    waits: pl.DataFrame
    agreement: pl.DataFrame
    disagreement: pl.DataFrame


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
    replay, tasks = period.replay, period.replay.tasks
    decisions = decide(replay.for_analysis(), rules=period.rules, config=replay.config)
    rows = outcomes(decisions)
    if decisions.queues.is_empty():
        rules = rows.filter(pl.col("rule") != PASSED)["rule"].unique().sort().to_list()
        raise InsufficientDataError(
            f"None of {rows.height} brokerages looks at a queue; "
            f"they are held back by {listed(rules) or 'nothing known'}; one that passes would do"
        )
    state = queues.stabilizer_state(decisions, rows)
    best = removal.best_pseudo_queues(decisions, replay.tables["queues"])
    matched = history.match_jobs(period.ran, tasks, best)
    jobs = fairness.jobs_with_users(period.ran, tasks, rows)
    users = fairness.totals_by_user(rows, jobs)
    counts = removal.count_removals(decisions, tasks)
    return UserTasks(
        decisions=decisions,
        rows=rows,
        held_by_rule=held.held_by_rule(rows, **dice),
        held_by_level=held.held_by_level(rows, ["task_class", "gshare"], **dice),
        held_over_time=held.held_over_time(rows, grain(period.window), **dice),
        held_by_unit=held.held_by_unit(rows),
        margins=held.limit_margins(decisions),
        removed=removal.removal_shares(counts, removal.removal_order(decisions), **dice),
        removed_by_loop=queues.removed_by_loop(decisions, **dice),
        routes=queues.loop_routes(rows, **dice),
        without_queue=removal.shares_without_queue(decisions, tasks, **dice),
        without_queue_by_gshare=removal.shares_without_queue(
            decisions, tasks, by=["gshare"], **dice
        ),
        stabilizer=queues.stabilizer_shares(state, **dice),
        stabilizer_queues=queues.stabilizer_by_queue(state),
        weights=compare_basic_weights(decisions, rows, **dice),
        users=users,
        indices=fairness.jain_indices(users, **dice),
        waits=fairness.mean_waits(jobs, **dice),
        agreement=history.agreement_shares(matched, **dice),
        disagreement=history.disagreement_shares(matched, **dice),
    )
