"""The decisions of the analysis brokerage as tables: one row per (task, queue), one row per task."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

import polars as pl

from brokerlab.brokerage.analysis_jobs import ranking
from brokerlab.brokerage.analysis_jobs.rules import AnalysisRules
from brokerlab.brokerage.engine.decisions import QueueDecisions
from brokerlab.brokerage.engine.pairs import matched
from brokerlab.brokerage.engine.steps import names_of
from brokerlab.brokerage.engine.world import Part, World
from brokerlab.brokerage.production_jobs.ranking import shares

KEYS = ("jeditaskid", "snapshot", "panda_queue")
PREASSIGNED = "nonpreassigned"


@dataclass(frozen=True, repr=False)
class AnalysisDecisions(QueueDecisions):
    """What the analysis brokerage decided.

    Attributes:
        places: One row per (task, queue) that was a candidate in the last loop, sorted by task and name:
            ``jeditaskid, snapshot, panda_queue`` (Enum), ``loop`` (1: with locality; 2: without), ``check`` (Enum: why
            it was skipped; null: it was not), ``weight``, ``rank``, ``failed`` (i64: bit i is set where check i alone
            says skip).
        first_loop: The same for the first loop of tasks that went on to the second.
        weighed: The queues that no single check removed: state of the stabilizer, weights and marks, ``share`` of the
            task's jobs expected at each candidate; same keys.
        tasks: One row per task: ``outcome`` (candidates, temporary_error, fatal, throttled_waiting), ``throttle``
            (rule that held it back), ``stage`` that emptied the list, ``loop``, ``n_queues`` looked at,
            ``n_candidates``, ``pending_until``.
        world: What was decided on.
    """

    first_loop: pl.DataFrame

    @classmethod
    def of(cls, world: World, parts: Iterable[Part]) -> AnalysisDecisions:
        """Put the loops together: the last one of each task counts."""
        queues = world.facts.queues
        named = pl.Enum(queues["panda_queue"].unique().sort())
        names = queues.select("q", pl.col("panda_queue").cast(named))
        keys = world.tasks.select("t", "jeditaskid", "snapshot")

        def with_names(frame: pl.DataFrame) -> pl.DataFrame:
            return (
                frame.join(names, on="q", how="left", maintain_order="left")
                .join(keys, on="t", how="left", maintain_order="left")
                .select(*KEYS, pl.exclude("t", "q", *KEYS))
            )

        made = [
            (part.pairs.with_columns(loop=loop), late.with_columns(loop=loop))
            for part in parts
            if (late := part.late) is not None
            for loop in (pl.lit(part.loop),)
        ]
        pairs, late = (pl.concat(each) for each in zip(*made, strict=True))
        again = pairs.filter(pl.col("loop") > 1).select("t").unique()
        gone = pairs.join(again, on="t", how="semi", maintain_order="left").filter(
            pl.col("loop") == 1
        )
        pairs, late = (_last(frame, again) for frame in (pairs, late))
        share = shares(pl.when(pl.col("rank").is_not_null()).then("weight"))
        reported = late.select("t", "q", "loop", "check", "rank", *REPORTED, share=share)
        shown = ("t", "q", "failed", "check", "loop", "weight", "rank")
        return cls(
            with_names(pairs.select(shown)), _of_tasks(world, pairs), world, with_names(reported),
            with_names(gone.select("t", "q", "failed", "check", "loop")),
        )  # fmt: skip

    @cached_property
    def known(self) -> dict[int, pl.DataFrame]:
        """See :attr:`~brokerlab.brokerage.engine.decisions.QueueDecisions.known`."""
        facts, keys = self.world.facts, ["jeditaskid", "snapshot"]
        # the tables have names in the place of numbers, in the order of the numbers
        last = matched(facts).hstack(self.queues.select("loop", "failed"))
        gone = self.world.tasks.join(self.first_loop, on=keys, how="semi").select("t")
        first = matched(facts.of_tasks(gone)).hstack(self.first_loop.select("failed"))
        one, two = (last.filter(pl.col("loop") == loop).drop("loop") for loop in (1, 2))
        return {1: pl.concat([one, first]).sort("t", "q"), 2: two}


def _last(frame: pl.DataFrame, again: pl.DataFrame) -> pl.DataFrame:
    """Return the rows of the last loop of each task; those of ``again`` went through two."""
    second = frame["t"].is_in(again["t"].implode())
    return frame.filter((pl.col("loop") > 1) | ~second).sort("t", "q")


REPORTED = (
    "weight", "basic", "orig", "new", "new_document", "data_factor", "running", "really_running", "waiting", "starting",
    "x_nq", "x_nr", "trr",
    "s_class", "t_class", "max_q_len", "u_queued", "u_running", "rem_q_len", "nq_max", "user_share",
    "looked_at", "budget_hi", "budget_mid", "budget_lo", "overloaded", *ranking.MARKS, "x_used", "s_running", "s_rate",
    "t_grand", "x_data_weight",
)  # fmt: skip
"""Numbers of the table ``weighed``."""


def _of_tasks(world: World, pairs: pl.DataFrame) -> pl.DataFrame:
    """Sum up the tasks."""
    passed = pl.col("check").is_null()
    names = names_of(world.checks, world.steps)  # an organisation may do without it
    last = names.index(PREASSIGNED) if PREASSIGNED in names else len(names)
    summed = pairs.group_by("t").agg(
        n_queues=pl.len().cast(pl.Int64),
        n_candidates=passed.sum().cast(pl.Int64),
        stage=pl.col("check").cast(pl.String).sort_by(pl.col("check").to_physical()).last(),
        loop=pl.col("loop").first(),
        stranger=(pl.col("check").to_physical() == last).any(),
        past=(pl.col("check").to_physical() > last).any(),
    )
    found = (
        world.tasks.select("t", "jeditaskid", "snapshot", "at", "t_preassigned")
        .join(summed, on="t", how="left")
        .join(world.outcomes, on="t", how="left")
        .with_columns(pl.col("n_queues", "n_candidates").fill_null(0))
    )
    return found.with_columns(outcome=outcome(world.rules)).sort("t").select(
        "jeditaskid", "snapshot", "at", "outcome", "throttle",
        stage=pl.when(pl.col("n_candidates") == 0).then("stage"), loop="loop",
        n_queues="n_queues", n_candidates="n_candidates",
        pending_until=pl.when(pl.col("outcome") != "candidates").then(
            pl.col("at") + pl.duration(minutes=world.rules.pending_min)
        ),
    )  # fmt: skip


def outcome(rules: AnalysisRules) -> pl.Expr:
    """Return how a task ends (switch ``preassigned_failure``).

    It reads ``outcome`` (how it ended before any queue was looked at), ``n_candidates``, ``t_preassigned``,
    ``stranger`` (some queue was skipped as :data:`PREASSIGNED`) and ``past`` (some by a later check).
    """
    ends = pl.lit(value=rules.preassigned_failure == "fatal")
    filtered = ends & pl.col("t_preassigned") & pl.col("stranger") & ~pl.col("past")
    return pl.coalesce(
        "outcome",
        pl.when(pl.col("n_candidates") > 0).then(pl.lit("candidates")),
        pl.when(filtered).then(pl.lit("fatal")),
        pl.lit("temporary_error"),
    )
