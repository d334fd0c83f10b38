"""What is kept of decisions on queues for user tasks."""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from brokerlab.brokerage.analysis_jobs import ranking
from brokerlab.brokerage.analysis_jobs.rules import AnalysisRules
from brokerlab.brokerage.engine.decisions import QueueDecisions, Results
from brokerlab.brokerage.engine.steps import names_of
from brokerlab.brokerage.engine.world import World
from brokerlab.brokerage.production_jobs.ranking import shares

PREASSIGNED = "nonpreassigned"
REPORTED = (
    "weight", "basic", "orig", "new", "new_document", "data_factor", "running", "really_running", "waiting", "starting",
    "x_nq", "x_nr", "trr",
    "s_class", "t_class", "max_q_len", "u_queued", "u_running", "rem_q_len", "nq_max", "user_share",
    "looked_at", "budget_hi", "budget_mid", "budget_lo", "overloaded", *ranking.MARKS, "x_used", "s_running", "s_rate",
    "t_grand", "x_data_weight",
)  # fmt: skip
"""Numbers of the table ``weighed``."""


@dataclass(frozen=True, repr=False)
class AnalysisDecisions(QueueDecisions):
    """What the analysis brokerage decided.

    Attributes:
        places: See there; ``loop``: 1 with locality; 2 without.
        first_loop: The same, without weights, for the first loop of tasks that went on to the second.
        weighed: The queues that no single check removed: state of the stabilizer, weights and marks, ``share`` of the
            task's jobs expected at each candidate; same keys.
        tasks: One row per task: ``outcome`` (candidates, temporary_error, fatal, throttled_waiting), ``throttle``
            (rule that held it back), ``stage`` that emptied the list, ``loop``, ``n_queues`` looked at,
            ``n_candidates``, ``pending_until``.
    """

    @staticmethod
    def results(world: World) -> Results:
        """Return what is kept of decisions."""
        names = names_of(world.checks, world.steps)  # an organisation may do without it
        last = names.index(PREASSIGNED) if PREASSIGNED in names else len(names)
        code = pl.col("check").to_physical()
        share = shares(pl.when(pl.col("rank").is_not_null()).then("weight"))
        return Results(
            weighed={name: pl.col(name) for name in ("check", "rank", *REPORTED)} | {"share": share},
            sums={"stranger": (code == last).any(), "past": (code > last).any()},
            outcome=outcome(world.rules),
            pending_min=world.rules.pending_min,
            tasks=(
                "outcome", "throttle", "stage", "loop", "n_queues", "n_candidates", "pending_until",
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
