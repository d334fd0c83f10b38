"""Decide which queues may receive the jobs of user tasks: one task or a month of them, the same way."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import polars as pl

from brokerlab.brokerage.analysis_jobs import ranking
from brokerlab.brokerage.analysis_jobs.checks import queue_checks
from brokerlab.brokerage.analysis_jobs.contracts import TABLES
from brokerlab.brokerage.analysis_jobs.facts import World, in_loop, prepare
from brokerlab.brokerage.analysis_jobs.rules import AnalysisRules
from brokerlab.brokerage.check import Check
from brokerlab.brokerage.production_jobs.decide import in_parts
from brokerlab.brokerage.production_jobs.evaluation import evaluated
from brokerlab.brokerage.production_jobs.pairs import ToEngine, paired, solid
from brokerlab.frames import prepared
from brokerlab.gdpconfig import Config
from brokerlab.matching.rules import MatchingRules
from brokerlab.numerics import IntArray

KEYS = ("jeditaskid", "snapshot", "panda_queue")
AGAIN = "tmp_user_problem"
PREASSIGNED = "nonpreassigned"


@dataclass(frozen=True)
class Loop:
    """What one locality loop decided.

    Attributes:
        pairs: ``t, q, failed, check``, sorted by t, q.
        late: What :func:`~.ranking.ranked` says of the pairs that no single check removed.
    """

    pairs: pl.DataFrame
    late: pl.DataFrame

    def left(self) -> pl.DataFrame:
        """Return ``t`` of the tasks that had a queue left for the final list, whatever that did to it."""
        listed = pl.col("check").is_null() | pl.col("check").is_in(ranking.FINAL_CHECKS)
        return self.pairs.filter(listed).select("t").unique()


@dataclass(frozen=True)
class AnalysisDecisions:
    """What the analysis brokerage decided.

    Attributes:
        queues: One row per (task, queue) that was a candidate in the last loop, sorted by task and name:
            ``jeditaskid, snapshot, panda_queue`` (Enum), ``loop`` (1: with locality; 2: without), ``check`` (Enum: why
            it was skipped; null: it was not), ``weight``, ``rank``, ``failed`` (i64: bit i is set where check i alone
            says skip).
        first_loop: The same for the first loop of tasks that went on to the second.
        weighed: The queues that reached the weight: state of the stabilizer, weights and marks; same keys.
        tasks: One row per task: ``outcome`` (candidates, temporary_error, fatal, throttled_waiting), ``throttle``
            (rule that held it back), ``stage`` that emptied the list, ``loop``, ``n_queues`` looked at,
            ``n_candidates``, ``pending_until``.
        checks: The checks of single queues, in order.
        world: What was decided on.
    """

    queues: pl.DataFrame
    first_loop: pl.DataFrame
    weighed: pl.DataFrame
    tasks: pl.DataFrame
    checks: tuple[Check, ...]
    world: World

    def to_frame(self) -> pl.DataFrame:
        """Return the decisions on queues."""
        return self.queues

    def to_dict(self) -> dict[str, Any]:
        """Return the tables and their provenance as plain Python values."""
        return {
            "queues": self.queues.to_dicts(),
            "tasks": self.tasks.to_dicts(),
            "rules": self.world.rules.to_dict(),
            "matching": self.world.matching.to_dict(),
            "config_digest": self.world.config.digest,
        }

    def _repr_html_(self) -> str:
        return self.tasks._repr_html_()


def decide(
    tables: Mapping[str, Any],
    *,
    rules: AnalysisRules | None = None,
    matching: MatchingRules | None = None,
    config: Config | None = None,
    into: ToEngine | None = None,
) -> AnalysisDecisions:
    """Decide for every task and every candidate queue.

    Args:
        tables: Input tables by name, see :data:`~.contracts.TABLES`; frames of any engine.
        rules: Rule set; null = ``document``.
        matching: Rule set of the text rules; null = the set of the same name.
        config: Settings; null = defaults.
        into: Engine in which the checks run, see :func:`brokerlab.brokerage.production_jobs.decide.decide`.

    Returns:
        The decisions.

    Raises:
        SchemaError: Unknown tables, values of another type.

    Source:
        analysis-job-brokerage.md.
    """
    rules = rules or AnalysisRules()
    world = prepare(
        prepared(tables, TABLES),
        rules=rules,
        matching=matching or MatchingRules(rules.rules),
        config=config or Config.empty(),
    )
    checks = queue_checks(rules, world.settings)
    tasks = world.facts.tasks
    suppressed = pl.lit(value=False)
    if rules.locality_mode == "suppress":
        suppressed = pl.col("t_relaxed").is_not_null() & pl.col("t_second")
    first = _loop(world, checks, tasks.filter(~suppressed).select("t"), into, local=True)
    lost = tasks.filter(~suppressed & pl.col("t_second")).join(first.left(), on="t", how="anti")
    others = pl.concat([tasks.filter(suppressed).select("t"), lost.select("t")])
    second = _loop(world, checks, others, into, local=False)
    return _decisions(world, checks, first, second)


def _loop(
    world: World, checks: Sequence[Check], tasks: pl.DataFrame, into: ToEngine | None, *, local: bool
) -> Loop:  # fmt: skip
    """Decide one locality loop."""
    facts = in_loop(world.facts, tasks, local=local)
    parts = [_settled(world, checks, part, into) for part in in_parts(facts)]
    return Loop(
        pl.concat(part.pairs for part in parts), pl.concat(part.late for part in parts)
    )  # fmt: skip


def _settled(world: World, checks: Sequence[Check], facts: Any, into: ToEngine | None) -> Loop:
    """Turn failed checks into reasons, and weigh and rank what is left."""
    pairs = evaluated(facts, checks, into)
    first = first_failed(pairs["failed"].to_numpy())
    left = pairs.select("t", "q").filter(pl.Series(first < 0))
    few = replace(facts, tasks=facts.tasks.join(left, on="t", how="semi"), listed=left)
    numbers = solid(paired(few, ranking.INPUTS).collect("polars").to_native())
    late = ranking.ranked(
        left.join(numbers, on=["t", "q"]), rules=world.rules, settings=world.settings
    )
    names = pl.Enum(check_order(checks))
    late = late.with_columns(pl.col("check").cast(names))
    codes = first.copy()  # `late` has the rows of `left`, in the same order: by t and q
    codes[first < 0] = late["check"].to_physical().cast(pl.Int64).fill_null(-1).to_numpy()
    numbered = pl.Series(codes)
    check = numbered.set(numbered < 0, None).cast(pl.UInt8).cat.to(names)
    return Loop(pairs.with_columns(check=check), late)


def check_order(checks: Sequence[Check]) -> list[str]:
    """Return the names of all checks, those of single queues first; a name may be of both kinds."""
    return list(dict.fromkeys([*(check.name for check in checks), *ranking.LATE_CHECKS]))


def first_failed(failed: IntArray) -> IntArray:
    """Return the number of the first check that failed; -1: none."""
    _, exponent = np.frexp((failed & -failed).astype(np.float64))
    return np.asarray(exponent, dtype=np.int64) - 1


def _decisions(
    world: World, checks: tuple[Check, ...], first: Loop, second: Loop
) -> AnalysisDecisions:
    """Put the loops together: the last one of each task counts."""
    queues = world.facts.queues
    named = pl.Enum(queues["panda_queue"].unique().sort())
    names = queues.select("q", pl.col("panda_queue").cast(named))
    keys = world.tasks.select("t", "jeditaskid", "snapshot")
    again = second.pairs.select("t").unique()

    def parts(frame: str) -> tuple[pl.DataFrame, pl.DataFrame]:
        one, two = getattr(first, frame), getattr(second, frame)
        one, two = one.with_columns(loop=pl.lit(1)), two.with_columns(loop=pl.lit(2))
        last = pl.concat([one.join(again, on="t", how="anti"), two]).sort("t", "q")
        return last, one.join(again, on="t", how="semi")

    def with_names(frame: pl.DataFrame) -> pl.DataFrame:
        return (
            frame.join(names, on="q", how="left", maintain_order="left")
            .join(keys, on="t", how="left", maintain_order="left")
            .select(*KEYS, pl.exclude("t", "q", *KEYS))
        )

    pairs, before = parts("pairs")
    late, _ = parts("late")
    ranks = late.select("t", "q", "weight", "rank")
    pairs = pairs.join(ranks, on=["t", "q"], how="left", maintain_order="left")
    reported = late.select("t", "q", "loop", "check", "rank", *REPORTED)
    return AnalysisDecisions(
        with_names(pairs), with_names(before), with_names(reported), _of_tasks(world, pairs),
        checks, world,
    )  # fmt: skip


REPORTED = (
    "weight", "basic", "orig", "new", "new_document", "data_factor", "running", "x_nq", "x_nr", "trr",
    "s_class", "t_class", "max_q_len", "u_queued", "u_running", "rem_q_len", "nq_max", "user_share",
    "looked_at", "budget_hi", "budget_mid", "budget_lo", "overloaded", *ranking.MARKS, "x_used", "s_running", "s_rate",
    "t_grand", "x_data_weight",
)  # fmt: skip
"""Numbers of the table ``weighed``."""


def _of_tasks(world: World, pairs: pl.DataFrame) -> pl.DataFrame:
    """Sum up the tasks."""
    passed = pl.col("check").is_null()
    summed = pairs.group_by("t").agg(
        n_queues=pl.len().cast(pl.Int64),
        n_candidates=passed.sum().cast(pl.Int64),
        stage=pl.col("check").cast(pl.String).sort_by(pl.col("check").to_physical()).last(),
        loop=pl.col("loop").first(),
        stranger=(pl.col("check") == PREASSIGNED).any(),
    )
    found = (
        world.tasks.select("t", "jeditaskid", "snapshot", "at", "t_preassigned")
        .join(summed, on="t", how="left")
        .join(world.outcomes, on="t", how="left")
        .with_columns(pl.col("n_queues", "n_candidates").fill_null(0))
    )
    lost = pl.when(pl.col("t_preassigned") & pl.col("stranger")).then(pl.lit("fatal"))
    outcome = pl.coalesce(
        "outcome",
        pl.when(pl.col("n_candidates") > 0).then(pl.lit("candidates")),
        lost,
        pl.lit("temporary_error"),
    )
    return found.with_columns(outcome=outcome).sort("t").select(
        "jeditaskid", "snapshot", "at", "outcome", "throttle",
        stage=pl.when(pl.col("n_candidates") == 0).then("stage"), loop="loop",
        n_queues="n_queues", n_candidates="n_candidates",
        pending_until=pl.when(pl.col("outcome") != "candidates").then(
            pl.col("at") + pl.duration(minutes=world.rules.pending_min)
        ),
    )  # fmt: skip
