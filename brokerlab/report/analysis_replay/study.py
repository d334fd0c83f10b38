"""Replay user tasks over a period and sum up: who is held back, what removes queues, whom the weights serve."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import polars as pl

from brokerlab.brokerage.analysis_jobs import AnalysisDecisions, decide
from brokerlab.brokerage.studies import user_tasks
from brokerlab.brokerage.studies.user_tasks.outcomes import FAMILIES, PASSED
from brokerlab.report.analysis_replay import shapes
from brokerlab.report.analysis_replay.inputs import Inputs
from brokerlab.report.analysis_replay.shapes import Weights
from brokerlab.report.replays import history, removal, rulesets
from brokerlab.report.replays.odd import noted
from brokerlab.report.replays.period import grain
from brokerlab.report.replays.rulesets import RuleSets
from brokerlab.report.replays.settings import Settings
from brokerlab.report.replays.settings import studied as settings_of
from brokerlab.report.replays.shares import N_BOOT


@dataclass(frozen=True, kw_only=True)
class Study:
    """What the replay of a period says of user tasks.

    Attributes:
        inputs: What it was made from.
        decisions: Of the analysis brokerage, under the rule set asked for.
        rows: One row per brokerage, see `user_tasks.outcomes`.
        by_rule, by_class, by_gshare, by_time: Shares of brokerages held back.
        margins: How near the limits are.
        units: Users and groups, and what holds them back.
        order: Every check in the order of removal, candidates last.
        by_loop: Shares of pairs that each check removes, by locality loop.
        by_check: The same of the loop that decided.
        routes: Shares of brokerages by their way through the loops.
        stuck, stuck_by_gshare: Shares of brokerages that leave their task without a queue.
        limits: What the stabilizer does and by what its limits are set.
        limits_by_queue: Its state queue by queue.
        weights: Old against new basic weight.
        users: What each user asked for and got.
        indices: Jain's index of it.
        waits: Mean wait of jobs that really ran, by class of task.
        agreement, against: How the replay agrees with where jobs really ran.
        rule_sets: Document against production rules.
        settings: Sensitivity of the keys.
        odd: What was odd in the input and how it was taken, each said once.
    """

    inputs: Inputs
    decisions: AnalysisDecisions
    rows: pl.DataFrame
    by_rule: pl.DataFrame
    by_class: pl.DataFrame
    by_gshare: pl.DataFrame
    by_time: pl.DataFrame
    margins: pl.DataFrame
    units: pl.DataFrame
    order: list[str]
    by_loop: pl.DataFrame
    by_check: pl.DataFrame
    routes: pl.DataFrame
    stuck: pl.DataFrame
    stuck_by_gshare: pl.DataFrame
    limits: pl.DataFrame
    limits_by_queue: pl.DataFrame
    weights: Weights
    users: pl.DataFrame
    indices: pl.DataFrame
    waits: pl.DataFrame
    agreement: pl.DataFrame
    against: pl.DataFrame
    rule_sets: RuleSets
    settings: Settings
    odd: tuple[str, ...] = ()

    @property
    def n_brokerages(self) -> int:
        """Brokerages replayed."""
        return self.rows.height

    @property
    def n_tasks(self) -> int:
        """Tasks replayed."""
        return int(self.rows["jeditaskid"].n_unique())

    @property
    def n_users(self) -> int:
        """Users of these tasks."""
        return int(self.rows["user"].n_unique())

    @property
    def n_pairs(self) -> int:
        """(Task, queue) pairs looked at in the loop that decided."""
        return self.decisions.queues.height


def study(
    inputs: Inputs,
    *,
    keys: Sequence[str],
    points: int = 5,
    switch_sample: int = 60,
    n_boot: int = N_BOOT,
    seed: int = 1,
) -> Study:
    """Replay the period.

    Args:
        inputs: From `load`.
        keys: gdpconfig keys whose sensitivity is asked.
        points: Values tried per key, besides its own, its half and its double.
        switch_sample: Brokerages on which single differences of the rule sets are tried; 0: none are.
        n_boot: Bootstrap replicates over users or tasks.
        seed: Of every draw.

    Returns:
        The study.

    Raises:
        ConfigError: Unknown keys, or keys that no check and no weight reads.
    """
    with noted() as odd:
        found = _study(
            inputs, keys, points=points, switch_sample=switch_sample, n_boot=n_boot, seed=seed
        )
    return replace(found, odd=tuple(dict.fromkeys(odd)))


def _study(
    inputs: Inputs, keys: Sequence[str], *, points: int, switch_sample: int, n_boot: int, seed: int
) -> Study:
    replay = inputs.replay
    dice = {"n_boot": n_boot, "seed": seed}
    decisions = decide(replay.for_analysis(), rules=inputs.rules, config=replay.config)
    rows = user_tasks.outcomes(decisions)
    order = removal.order(decisions)
    state = user_tasks.stabilizer_state(decisions, rows)
    best = removal.best_of_queue(decisions, replay.tables["queues"])
    placed = history.placed(inputs.ran, replay.tasks, best)
    ran = user_tasks.jobs_with_users(inputs.ran, replay.tasks, rows)
    users = user_tasks.totals_by_user(rows, ran)
    counts = removal.counted(decisions, replay.tasks)
    families = {name: name for name in (*FAMILIES, PASSED)}
    by_class, by_gshare = (
        shapes.long(user_tasks.held_by(rows, name, **dice), [name], families, "brokerages")
        for name in ("task_class", "gshare")
    )
    waits = user_tasks.mean_waits(ran, **dice)
    indices = user_tasks.jain_indices(users, **dice).drop("resampled")
    return Study(
        inputs=inputs,
        decisions=decisions,
        rows=rows,
        by_rule=shapes.parts(user_tasks.held_by_rule(rows, **dice)),
        by_class=by_class,
        by_gshare=by_gshare,
        by_time=shapes.parts(user_tasks.held_over_time(rows, grain(inputs.window), **dice)),
        margins=user_tasks.limit_margins(decisions),
        units=user_tasks.held_by_unit(rows),
        order=order,
        by_loop=shapes.parts(user_tasks.removed_by_loop(decisions, **dice)),
        by_check=removal.by_check(counts, order, **dice),
        routes=shapes.parts(user_tasks.loop_routes(rows, **dice)),
        stuck=removal.stuck(decisions, replay.tasks, [], **dice),
        stuck_by_gshare=removal.stuck(decisions, replay.tasks, ["gshare"], **dice),
        limits=shapes.parts(user_tasks.stabilizer_shares(state, **dice)),
        limits_by_queue=user_tasks.stabilizer_by_queue(state),
        weights=shapes.weights(user_tasks.compare_basic_weights(decisions, rows, **dice)),
        users=users,
        indices=indices.rename({"index_lo": "lo", "index_hi": "hi", "n_units": "n_users"}),
        waits=shapes.long(waits, ["task_class"], {n: n for n in ("wait_h", "core_h")}, "n_jobs"),
        agreement=history.agreement(placed, **dice),
        against=history.against(placed, **dice),
        rule_sets=rulesets.studied(replay, decisions, sample=switch_sample, **dice),
        settings=settings_of(decisions, None, keys, points=points, replay=replay, **dice),
    )
