"""The decisions of the analysis brokerage as tables: one row per (task, queue), one row per task."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from brokerlab.brokerage.analysis_jobs import ranking
from brokerlab.brokerage.analysis_jobs.facts import World
from brokerlab.brokerage.engine.rule import Rule
from brokerlab.brokerage.engine.steps import marks_of, rules_of
from brokerlab.brokerage.production_jobs.ranking import shares

KEYS = ("jeditaskid", "snapshot", "panda_queue")
AGAIN = "tmp_user_problem"
PREASSIGNED = "nonpreassigned"


@dataclass(frozen=True)
class Loop:
    """What one locality loop decided.

    Attributes:
        number: 1: with locality; 2: without.
        pairs: ``t, q, failed, check``, sorted by t, q.
        late: What :func:`~.ranking.steps` make of the pairs that no single check removed.
    """

    number: int
    pairs: pl.DataFrame
    late: pl.DataFrame

    def left(self, final: Sequence[str]) -> pl.DataFrame:
        """Return ``t`` of the tasks that had a queue left for the final list, whatever that did to it.

        Args:
            final: Reasons of the final list.
        """
        listed = pl.col("check").is_null() | pl.col("check").is_in(final)
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
        weighed: The queues that no single check removed: state of the stabilizer, weights and marks, ``share`` of the
            task's jobs expected at each candidate; same keys.
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
    checks: tuple[Rule, ...]
    world: World

    @property
    def reasons(self) -> tuple[Rule, ...]:
        """Every reason for which a queue may be skipped, in order; ``notincluded`` is there twice, of single queues first."""
        return (*self.checks, *rules_of(self.world.steps))

    @property
    def marks(self) -> tuple[Rule, ...]:
        """Why queues are marked problematic, and skipped as ``badsite``."""
        return marks_of(self.world.steps)

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


def put_together(
    world: World, checks: tuple[Rule, ...], first: Loop, second: Loop
) -> AnalysisDecisions:
    """Put the loops together: the last one of each task counts."""
    queues = world.facts.queues
    named = pl.Enum(queues["panda_queue"].unique().sort())
    names = queues.select("q", pl.col("panda_queue").cast(named))
    keys = world.tasks.select("t", "jeditaskid", "snapshot")
    again = second.pairs.select("t").unique()

    def parts(frame: str) -> tuple[pl.DataFrame, pl.DataFrame]:
        one, two = (
            getattr(loop, frame).with_columns(loop=pl.lit(loop.number)) for loop in (first, second)
        )
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
    share = shares(pl.when(pl.col("rank").is_not_null()).then("weight"))
    reported = late.select("t", "q", "loop", "check", "rank", *REPORTED, share=share)
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
    last = pl.Series([PREASSIGNED], dtype=pairs.schema["check"]).to_physical().item()
    summed = pairs.group_by("t").agg(
        n_queues=pl.len().cast(pl.Int64),
        n_candidates=passed.sum().cast(pl.Int64),
        stage=pl.col("check").cast(pl.String).sort_by(pl.col("check").to_physical()).last(),
        loop=pl.col("loop").first(),
        stranger=(pl.col("check") == PREASSIGNED).any(),
        past=(pl.col("check").to_physical() > last).any(),
    )
    found = (
        world.tasks.select("t", "jeditaskid", "snapshot", "at", "t_preassigned")
        .join(summed, on="t", how="left")
        .join(world.outcomes, on="t", how="left")
        .with_columns(pl.col("n_queues", "n_candidates").fill_null(0))
    )
    return found.with_columns(outcome=outcome()).sort("t").select(
        "jeditaskid", "snapshot", "at", "outcome", "throttle",
        stage=pl.when(pl.col("n_candidates") == 0).then("stage"), loop="loop",
        n_queues="n_queues", n_candidates="n_candidates",
        pending_until=pl.when(pl.col("outcome") != "candidates").then(
            pl.col("at") + pl.duration(minutes=world.rules.pending_min)
        ),
    )  # fmt: skip


def outcome() -> pl.Expr:
    """Return how a task ends.

    It reads ``outcome`` (how it ended before any queue was looked at), ``n_candidates``, ``t_preassigned``,
    ``stranger`` (some queue was skipped as :data:`PREASSIGNED`) and ``past`` (some by a later check).
    """
    filtered = pl.col("t_preassigned") & pl.col("stranger") & ~pl.col("past")
    return pl.coalesce(
        "outcome",
        pl.when(pl.col("n_candidates") > 0).then(pl.lit("candidates")),
        pl.when(filtered).then(pl.lit("fatal")),
        pl.lit("temporary_error"),
    )
