"""Everything that a replayed period says of the tasks of a brokerage, in one call, and of the choice of the nucleus."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import polars as pl

from brokerlab.brokerage.analysis_jobs.brokerage import BROKERAGE as ANALYSIS
from brokerlab.brokerage.engine.decisions import TASK
from brokerlab.brokerage.production_jobs.brokerage import BROKERAGE as JOBS
from brokerlab.brokerage.production_jobs.brokerage import decide, hint_queues
from brokerlab.brokerage.production_tasks import TaskDecisions
from brokerlab.brokerage.production_tasks.brokerage import BROKERAGE as NUCLEI
from brokerlab.brokerage.replaying import Replay
from brokerlab.brokerage.rules import JobRules, ProductionRules
from brokerlab.brokerage.sensitivities import Sensitivity, WhatIf
from brokerlab.brokerage.studies import alternatives, removal, users, weights
from brokerlab.brokerage.studies.alternatives import try_switches
from brokerlab.brokerage.studies.period import PRODUCTION, JobDecisions, Period
from brokerlab.brokerage.studies.removal import (
    count_removals,
    explain_stranded,
    removal_order,
    removal_shares,
    with_flags,
)
from brokerlab.brokerage.studies.weights import WeightComparison, divide_spread, factor_shares
from brokerlab.errors import InsufficientDataError, writing
from brokerlab.intervals import N_BOOT, shares
from brokerlab.temporary import TemporaryFolder
from brokerlab.times import grain
from brokerlab.words import listed

NUCLEUS_FACTORS = ("work", "data", "tape", "space_fraction", "space_amount")
"""Factors of the weight of a nucleus (production-tasks.md 4)."""
NUCLEUS_SWITCHES = {
    *(ProductionRules.SWITCHES.keys() - JobRules.SWITCHES.keys()),
    "other_status_up",
}
"""Switches that the choice can see."""
NUCLEUS_OUTCOMES = (
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
    tables = replay.tables_of(NUCLEI.tables)
    decisions = NUCLEI.decide(tables, rules=rules, config=config, **asked)
    passed = decisions.nuclei.filter(
        pl.col("check").is_null(), *(pl.col(name) > 0 for name in NUCLEUS_FACTORS)
    )
    spread = divide_spread(passed, NUCLEUS_FACTORS, "nucleus")
    counts = count_removals(decisions, replay.tasks)
    ends = with_flags(decisions.tasks, "outcome", NUCLEUS_OUTCOMES).with_columns(tasks=pl.lit(1))
    return NucleusChoice(
        decisions=decisions,
        checks=removal_shares(counts, removal_order(decisions), **dice),
        outcomes=shares(ends, NUCLEUS_OUTCOMES, "tasks", unit="jeditaskid", **dice),
        factors=factor_shares(spread, NUCLEUS_FACTORS, **dice),
        history=_history_shares(decisions, tasks, **dice),
        switches=try_switches(
            NUCLEI,
            replay,
            rules,
            only=NUCLEUS_SWITCHES,
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


BUSIEST = 12
"""Queues looked at one by one, those where most jobs ran."""


@dataclass(frozen=True, kw_only=True)
class _Tasks:
    """What a brokerage of queues did to the tasks of a period.

    Attributes:
        decided_tasks: One row per brokerage, as decided.
        n_pairs: Pairs of task and queue looked at.
        removed: What each check removes (of user tasks: in the loop that decided), see `removal.removal_shares`.
        without_queue, without_queue_by_gshare: See `removal.shares_without_queue`.
        agreement, disagreement: With where jobs ran, see `removal`.
    """

    decided_tasks: pl.DataFrame
    n_pairs: int
    removed: pl.DataFrame
    without_queue: pl.DataFrame
    without_queue_by_gshare: pl.DataFrame
    agreement: pl.DataFrame
    disagreement: pl.DataFrame


@dataclass(frozen=True, kw_only=True)
class ProductionTasks(_Tasks):
    """What the brokerages did to the production tasks of a period.

    Attributes:
        removed_by_gshare, removed_by_queue: As ``removed``, by ``gshare``, and by ``queue`` for the busiest; queues count once per brokerage, by that of their pseudo-queues
            which came furthest.
        last_stages: ``stage``, ``n``: what removed the last queues of brokerages without one, the most frequent first.
        factors: What the weights are made of, see `weights.factor_shares`.
        n_weighed: Brokerages in which two or more queues compete by weight.
        nuclei: The choice of the nucleus; null where it is not replayed.
        stranded: See `removal.explain_stranded`.
        rule_sets: The rule set against the other one.
        keys: Which keys matter.
        pairs: Folder of Parquet files of all pairs as decided, see :meth:`write_pairs`.
    """

    removed_by_gshare: pl.DataFrame
    removed_by_queue: pl.DataFrame
    last_stages: pl.DataFrame
    factors: pl.DataFrame
    n_weighed: int
    nuclei: NucleusChoice | None
    stranded: pl.DataFrame
    rule_sets: alternatives.RuleSetComparison
    keys: alternatives.KeyEffects
    pairs: TemporaryFolder

    def write_pairs(self, path: Path) -> None:
        """Write every pair of task and queue as decided, as Parquet; they never come together in memory."""
        parts = [pl.scan_parquet(part) for part in sorted(self.pairs.path.glob("*.parquet"))]
        # a chunk names the queues that there are at its instants
        kinds = [part.collect_schema()["panda_queue"] for part in parts]
        names = {name for kind in kinds if isinstance(kind, pl.Enum) for name in kind.categories}
        pl.concat(
            part.cast({"panda_queue": pl.Enum(sorted(names))}) for part in parts
        ).sink_parquet(path)


@dataclass(frozen=True, kw_only=True)
class UserTasks(_Tasks):
    """What the analysis brokerage did to the user tasks of a period.

    Attributes:
        decisions: Of the brokerage.
        rows: One row per brokerage, see `users.outcomes`.
        held_by_rule, held_by_level, held_over_time, held_by_unit: Who is held back, see the functions of `users`.
        margins: How near tasks come to the limits, see `users.limit_margins`.
        removed_by_loop: What is removed in each locality loop, see `users`.
        stabilizer, stabilizer_queues: See `users.stabilizer_shares`, `users.stabilizer_by_queue`.
        weights: The original against the new basic weight.
        users: What each user asked for and got, see `users.totals_by_user`.
        indices: Jain's index of it, see `users.jain_indices`.
    """

    decisions: Any
    rows: pl.DataFrame
    held_by_rule: pl.DataFrame
    held_by_level: pl.DataFrame
    held_over_time: pl.DataFrame
    held_by_unit: pl.DataFrame
    margins: pl.DataFrame
    removed_by_loop: pl.DataFrame
    stabilizer: pl.DataFrame
    stabilizer_queues: pl.DataFrame
    weights: WeightComparison
    users: pl.DataFrame
    indices: pl.DataFrame


def _gather(
    decisions: JobDecisions, replay: Replay, ran: pl.DataFrame, queues: pl.Series | None = None
) -> dict[str, pl.DataFrame]:
    """Return what is summed up of the decisions on some tasks, by name: rows of brokerages.

    ``decided`` (table of tasks), ``counts`` (`removal.count_removals`), ``matched`` (`removal.match_jobs`), ``queues``: of
    some queues `removal.best_pseudo_queues`.
    """
    best = removal.best_pseudo_queues(decisions)
    return {
        "decided": decisions.tasks,
        "counts": removal.count_removals(decisions, replay.tasks),
        "matched": removal.match_jobs(ran, replay.tasks, best),
        "queues": best.clear()
        if queues is None
        else best.filter(pl.col("queue").is_in(queues.implode())),
    }


def _sum(
    frames: Mapping[str, pl.DataFrame], order: Sequence[str], period: Period, **dice: Any
) -> dict[str, Any]:
    """Return what is said of every brokerage of queues, see `_Tasks`."""
    decided, counts, matched = (frames[name] for name in ("decided", "counts", "matched"))
    if counts.is_empty():
        column, how = ("outcome", "end as {}; one that does")
        if "throttle" in decided.columns:
            column, how = ("throttle", "are held back by {}; one that passes")
        reasons = listed(decided[column].drop_nulls().unique().sort().to_list())
        raise InsufficientDataError(
            f"None of {decided.height} brokerages looks at a queue; they {how.format(reasons or 'nothing known')} would do"
        )
    about = decided, period.replay.tasks, period.kind
    return {
        "decided_tasks": decided,
        "n_pairs": int(counts["n"].sum()),
        "removed": removal.removal_shares(counts, order, **dice),
        "without_queue": removal.shares_without_queue(*about, **dice),
        "without_queue_by_gshare": removal.shares_without_queue(*about, by=["gshare"], **dice),
        "agreement": removal.agreement_shares(matched, **dice),
        "disagreement": removal.disagreement_shares(matched, **dice),
    }


@dataclass(frozen=True)
class _Part:
    """What is summed up of the production tasks of a chunk.

    Attributes:
        frames: See `_gather`; and ``spread`` (`weights.weight_spread`), and of `alternatives.differences`.
        order: See `removal.removal_order`.
        tried: Key to what it changes.
        pairs: Parquet file of the pairs as decided.
    """

    frames: dict[str, pl.DataFrame]
    order: list[str]
    tried: dict[str, WhatIf]
    pairs: bytes


def _decide_chunk(
    replay: Replay,
    ran: pl.DataFrame,
    *,
    rules: ProductionRules,
    queues: pl.Series,
    tries: Sequence[alternatives.Try],
) -> _Part | None:
    """Decide the tasks of a chunk, under either rule set and with other values of keys; null: it has none."""
    if replay.tasks.is_empty():
        return None
    tables, other = replay.tables_of(JOBS.tables), alternatives.other_rules(rules)
    decisions = decide(tables, rules=rules, config=replay.config)
    there = decide(tables, rules=other, config=replay.config)
    frames = {
        **_gather(decisions, replay, ran, queues),
        **alternatives.differences(decisions, there),
        "spread": weights.weight_spread(decisions, replay.tasks),
    }
    file = io.BytesIO()
    decisions.queues.write_parquet(file)
    tried = alternatives.try_keys(Sensitivity.of(decisions), tries)
    return _Part(frames, removal.removal_order(decisions), tried, file.getvalue())


def study_production_tasks(
    period: Period,
    nuclei: Replay | None = None,
    *,
    keys: Sequence[str] = PRODUCTION.usual_keys,
    points: int = 5,
    switch_sample: int = 60,
    n_boot: int = N_BOOT,
    seed: int = 1,
) -> ProductionTasks:
    """Decide the production tasks of a period again, chunk by chunk, and sum up.

    ``nuclei``: what the choice of the nucleus saw; null: it is left out. Of ``keys`` other values are tried, ``points`` of each
    (`alternatives.which_keys_matter`); single switches on ``switch_sample`` brokerages at most, and tasks for those of that
    choice.
    """
    dice: dict[str, Any] = {"n_boot": n_boot, "seed": seed}
    alternatives.check_keys(keys)
    replay, tasks, rules = period.replay, period.replay.tasks, period.rules
    given = {alternatives.JOBS: tasks}
    if nuclei is not None:
        given[alternatives.NUCLEI] = nuclei.tasks
    tries = alternatives.plan_tries(keys, PRODUCTION, given, replay.config, points=points)
    totals = removal.brokerages_of_jobs(period.ran, tasks).group_by(queue="computingsite")
    busiest = totals.agg(pl.col("n_jobs").sum()).sort("n_jobs", "queue", descending=[True, False])
    chunk = partial(_decide_chunk, rules=rules, queues=busiest["queue"].head(BUSIEST), tries=tries)
    parts, pairs = list[_Part](), TemporaryFolder()
    for number, part in enumerate(replay.each(chunk, ran=period.ran)):
        if part is not None:
            with writing(pairs.path):
                (pairs.path / f"{number:09}.parquet").write_bytes(part.pairs)
            parts.append(replace(part, pairs=b""))
    frames = {name: pl.concat(part.frames[name] for part in parts) for name in parts[0].frames}
    frames["decided"] = frames["decided"].sort(TASK)
    order, counts = parts[0].order, frames["counts"]
    summed = _sum(frames, order, period, **dice)

    def removed_by(name: str, rows: pl.DataFrame) -> pl.DataFrame:
        return removal.removal_shares(rows, order, by=[name], **dice)

    tried = {key: WhatIf.joined([part.tried[key] for part in parts]) for key in parts[0].tried}
    choice = None
    if nuclei is not None:
        known = period.archive.scan("tasks").select("jeditaskid", "nucleus").collect()
        choice = choose_nuclei(nuclei, known, rules=rules, sample=switch_sample, **dice)
        seen = Sensitivity.of(nuclei, rules=rules)
        tried |= alternatives.try_keys(seen, tries, alternatives.NUCLEI)
    switches = alternatives.try_switches(
        JOBS, replay, rules, only=PRODUCTION.switches, sample=switch_sample, seed=seed
    )
    without = frames["decided"].filter(pl.col("outcome") != "candidates").drop_nulls("stage")
    stages = without.group_by(pl.col("stage").cast(pl.String)).len("n")
    spread = frames["spread"].sort(TASK)
    return ProductionTasks(
        **summed,
        removed_by_gshare=removed_by("gshare", counts),
        removed_by_queue=removed_by("queue", frames["queues"]),
        last_stages=stages.sort("n", "stage", descending=[True, False]),
        factors=weights.factor_shares(spread, **dice),
        n_weighed=spread.height,
        nuclei=choice,
        stranded=explain_stranded(replay, frames["decided"], frames["matched"], rules),
        rule_sets=alternatives.sum_up_differences(frames, rules, switches, **dice),
        keys=alternatives.sum_up_keys(tries, tried, **dice),
        pairs=pairs,
    )


def study_user_tasks(period: Period, *, n_boot: int = N_BOOT, seed: int = 1) -> UserTasks:
    """Decide the user tasks of a period again, and sum up; replicates are over users or tasks."""
    dice: dict[str, Any] = {"n_boot": n_boot, "seed": seed}
    replay, tasks = period.replay, period.replay.tasks
    tables = replay.tables_of(ANALYSIS.tables)
    decisions = ANALYSIS.decide(tables, rules=period.rules, config=replay.config)
    order = removal.removal_order(decisions)
    summed = _sum(_gather(decisions, replay, period.ran), order, period, **dice)
    rows = users.outcomes(decisions)
    state = users.stabilizer_state(decisions, rows)
    jobs = users.jobs_with_users(period.ran, tasks, rows)
    totals = users.totals_by_user(rows, jobs)
    return UserTasks(
        **summed,
        decisions=decisions,
        rows=rows,
        held_by_rule=users.held_by_rule(rows, **dice),
        held_by_level=users.held_by_level(rows, **dice),
        held_over_time=users.held_over_time(rows, grain(period.window), **dice),
        held_by_unit=users.held_by_unit(rows),
        margins=users.limit_margins(decisions),
        removed_by_loop=users.removed_by_loop(decisions, **dice),
        stabilizer=users.stabilizer_shares(state, **dice),
        stabilizer_queues=users.stabilizer_by_queue(state),
        weights=weights.compare_basic_weights(decisions, rows, **dice),
        users=totals,
        indices=users.jain_indices(totals, **dice),
    )
