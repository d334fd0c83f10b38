"""Replay user tasks over a period and sum up: who is held back, what removes queues, whom the weights serve."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import polars as pl

from brokerlab.brokerage.analysis_jobs import AnalysisDecisions, decide
from brokerlab.report.analysis_replay import fairness, held, loops, stabilizer, weights
from brokerlab.report.analysis_replay.brokerages import brokerages
from brokerlab.report.analysis_replay.inputs import Inputs
from brokerlab.report.analysis_replay.weights import Weights
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
        rows: One row per brokerage, see `brokerages.brokerages`.
        by_rule, by_class, by_gshare, by_time: Shares of brokerages held back; see `held`.
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
    rows = brokerages(decisions)
    order = removal.order(decisions)
    seen = stabilizer.state(decisions, rows)
    best = removal.best_of_queue(decisions, replay.tables["queues"])
    placed = history.placed(inputs.ran, replay.tasks, best)
    ran = fairness.rated(inputs.ran, replay.tasks, rows)
    users = fairness.of_users(rows, ran)
    counts = removal.counted(decisions, replay.tasks)
    return Study(
        inputs=inputs,
        decisions=decisions,
        rows=rows,
        by_rule=held.by_rule(rows, **dice),
        by_class=held.by(rows, "task_class", **dice),
        by_gshare=held.by(rows, "gshare", **dice),
        by_time=held.over_time(rows, grain(inputs.window), **dice),
        margins=held.margins(decisions),
        units=held.of_users(rows),
        order=order,
        by_loop=loops.by_loop(loops.pairs(decisions), order, **dice),
        by_check=removal.by_check(counts, order, **dice),
        routes=loops.routes(rows, **dice),
        stuck=removal.stuck(decisions, replay.tasks, [], **dice),
        stuck_by_gshare=removal.stuck(decisions, replay.tasks, ["gshare"], **dice),
        limits=stabilizer.totals(seen, **dice),
        limits_by_queue=stabilizer.by_queue(seen),
        weights=weights.studied(decisions, rows, **dice),
        users=users,
        indices=fairness.indices(users, **dice),
        waits=fairness.waits(ran, **dice),
        agreement=history.agreement(placed, **dice),
        against=history.against(placed, **dice),
        rule_sets=rulesets.studied(replay, decisions, sample=switch_sample, **dice),
        settings=settings_of(decisions, None, keys, points=points, replay=replay, **dice),
    )
