"""Replay a period and sum up what decided: checks, weights, settings, rule sets, nuclei."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import polars as pl

from brokerlab.brokerage.production_jobs.decide import decide
from brokerlab.brokerage.production_jobs.decisions import Decisions
from brokerlab.report.brokerage_replay import composition, nuclei
from brokerlab.report.brokerage_replay.inputs import Inputs
from brokerlab.report.brokerage_replay.nuclei import Nuclei
from brokerlab.report.brokerage_replay.worst import explained
from brokerlab.report.replays import history, removal, rulesets
from brokerlab.report.replays.odd import noted
from brokerlab.report.replays.period import grain
from brokerlab.report.replays.rulesets import RuleSets
from brokerlab.report.replays.settings import Settings
from brokerlab.report.replays.settings import studied as settings_of
from brokerlab.report.replays.shares import N_BOOT

CHECKS_SHOWN = 8
"""Checks in charts over time and in tables of shares, those that remove most."""
QUEUES_SHOWN = 12
"""Queues shown, those where most jobs ran."""
WORST_SHOWN = 5
"""Tasks without a queue that are explained."""


@dataclass(frozen=True, kw_only=True)
class Study:
    """What the replay of a period says.

    Attributes:
        inputs: What it was made from.
        decisions: Of the job brokerage, under the rule set asked for.
        counts: Pairs by brokerage and check, see `removal.counted`.
        order: Every check in the order of removal, candidates last.
        top: Checks that remove most.
        by_check, by_time, by_gshare, by_queue: Shares of pairs removed; queues count once per brokerage, by that of
            their pseudo-queues which came furthest.
        stuck, stuck_by_gshare: Shares of brokerages that leave their task without a queue.
        agreement, against: How the replay agrees with where jobs really ran.
        composition, composition_by_gshare: Shares of the factors in the spread of the log weight.
        n_weighed: Brokerages in which two or more queues compete by weight.
        settings: Sensitivity of the keys.
        rule_sets: Document against production rules.
        nuclei: The choice of the nucleus; None where the archive cannot tell.
        worst: Brokerages that left most jobs without a queue, explained.
        odd: What was odd in the input and how it was taken, each said once.
    """

    inputs: Inputs
    decisions: Decisions
    counts: pl.DataFrame
    order: list[str]
    top: list[str]
    by_check: pl.DataFrame
    by_time: pl.DataFrame
    by_gshare: pl.DataFrame
    by_queue: pl.DataFrame
    stuck: pl.DataFrame
    stuck_by_gshare: pl.DataFrame
    agreement: pl.DataFrame
    against: pl.DataFrame
    composition: pl.DataFrame
    composition_by_gshare: pl.DataFrame
    n_weighed: int
    settings: Settings
    rule_sets: RuleSets
    nuclei: Nuclei | None
    worst: pl.DataFrame
    odd: tuple[str, ...] = ()

    @property
    def n_brokerages(self) -> int:
        """Brokerages replayed."""
        return self.decisions.tasks.height

    @property
    def n_tasks(self) -> int:
        """Tasks replayed."""
        return int(self.decisions.tasks["jeditaskid"].n_unique())

    @property
    def n_pairs(self) -> int:
        """(Task, queue) pairs looked at."""
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
        n_boot: Bootstrap replicates over tasks.
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
    replay = inputs.jobs
    dice = {"n_boot": n_boot, "seed": seed}
    decisions = decide(replay.for_jobs(), rules=inputs.rules, config=replay.config)
    counts, order = removal.counted(decisions, replay.tasks), removal.order(decisions)
    by_check = removal.by_check(counts, order, **dice)
    top = _largest(by_check)
    best = removal.best_of_queue(decisions, replay.tables["queues"])
    ran = history.placed(inputs.ran, replay.tasks, best)
    return Study(
        inputs=inputs,
        decisions=decisions,
        counts=counts,
        order=order,
        top=top,
        by_check=by_check,
        by_time=removal.over_time(counts, top, grain(inputs.window), **dice),
        by_gshare=removal.by_gshare(counts, order, **dice),
        by_queue=removal.by_queue(best, order, _busiest(ran), **dice),
        stuck=removal.stuck(decisions, replay.tasks, [], **dice),
        stuck_by_gshare=removal.stuck(decisions, replay.tasks, ["gshare"], **dice),
        agreement=history.agreement(ran, **dice),
        against=history.against(ran, **dice),
        composition=composition.composition(decisions, replay, by=[], **dice),
        composition_by_gshare=composition.composition(decisions, replay, by=["gshare"], **dice),
        n_weighed=composition.spread(decisions, replay).height,
        settings=settings_of(
            decisions, inputs.nuclei, keys, points=points, n_boot=n_boot, seed=seed
        ),
        rule_sets=rulesets.studied(replay, decisions, sample=switch_sample, **dice),
        nuclei=_nuclei(inputs, **dice),
        worst=explained(decisions, ran, most=WORST_SHOWN),
    )


def _largest(by_check: pl.DataFrame) -> list[str]:
    """Return the checks that remove most pairs, in their order."""
    removed = by_check.filter(pl.col("part") != removal.CANDIDATE, pl.col("total") > 0)
    chosen = (
        removed.sort("total", "part", descending=[True, False])["part"].head(CHECKS_SHOWN).to_list()
    )
    return [name for name in by_check["part"] if name in chosen]


def _busiest(ran: pl.DataFrame) -> list[str]:
    """Return the queues where most jobs ran."""
    totals = ran.group_by("queue").agg(pl.col("n_jobs").sum())
    return (
        totals.sort("n_jobs", "queue", descending=[True, False])["queue"]
        .head(QUEUES_SHOWN)
        .to_list()
    )


def _nuclei(inputs: Inputs, *, n_boot: int, seed: int) -> Nuclei | None:
    if inputs.nuclei is None:
        return None
    tasks = inputs.archive.scan("tasks").select("jeditaskid", "nucleus").collect()
    return nuclei.studied(inputs.nuclei, tasks, rules=inputs.rules, n_boot=n_boot, seed=seed)
