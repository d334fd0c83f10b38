"""What is kept of decisions on queues for production tasks."""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from brokerlab.brokerage.engine.decisions import QueueDecisions, Results
from brokerlab.brokerage.engine.world import World
from brokerlab.brokerage.production_jobs.ranking import reported

PENDING_MIN = 60
"""A task without candidates waits as long [min]."""


@dataclass(frozen=True, repr=False)
class Decisions(QueueDecisions):
    """What the production job brokerage decided.

    Attributes:
        places: See there; ``rank`` is 1 to 10, ``jumbo``: it stays a candidate for jumbo jobs.
        weighed: The queues that reached the weight: factors, counts, caps; same keys.
        tasks: One row per task: ``outcome`` (candidates, no_candidates, input_incomplete, unknown_nucleus), ``stage``
            that emptied the list, ``detail``, ``n_queues`` looked at, ``n_candidates``, ``pending_until`` (null in
            hint mode, which leaves the task where it is).
    """

    @staticmethod
    def results(world: World) -> Results:
        """Return what is kept of decisions."""
        some = pl.when(pl.col("n_candidates") > 0).then(pl.lit("candidates"))
        return Results(
            weighed=reported(world.rules),
            outcome=pl.coalesce("outcome", some, pl.lit("no_candidates")),
            pending_min=PENDING_MIN,
            tasks=("outcome", "stage", "detail", "n_queues", "n_candidates", "pending_until"),
        )
