"""The decisions as tables: one row per (task, queue), one row per task."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from brokerlab.brokerage.check import Check
from brokerlab.brokerage.production_jobs import ranking
from brokerlab.brokerage.production_jobs.facts import World

PENDING_MIN = 60
"""A task without candidates waits as long [min]."""
TEMPORARY = "temporary problem"
"""Stage at which queues with a temporary mark are removed."""


@dataclass(frozen=True)
class Part:
    """The decisions on some tasks.

    Attributes:
        pairs: ``t, q, failed, check``, sorted by t, q.
        late: What :func:`~.ranking.ranked` says of the pairs that no persistent check removed; null in hint mode.
    """

    pairs: pl.DataFrame
    late: pl.DataFrame | None


@dataclass(frozen=True)
class Decisions:
    """What a brokerage decided.

    Attributes:
        queues: One row per (task, queue) that was a candidate at all, sorted by task and name: ``jeditaskid``,
            ``snapshot``, ``panda_queue`` (Enum), ``check`` (Enum: why it was skipped; null: it was not), ``weight``,
            ``rank`` (1 to 10), ``failed`` (i64: bit i is set where check i alone says skip).
        weighed: The queues that reached the weight: factors, counts, caps; same keys.
        tasks: One row per task: ``outcome`` (candidates, no_candidates, input_incomplete, unknown_nucleus), ``stage``
            that emptied the list, ``detail``, ``n_queues`` looked at, ``n_candidates``, ``pending_until`` (null in
            hint mode, which leaves the task where it is).
        checks: The checks of single queues, in order.
        world: What was decided on.
    """

    queues: pl.DataFrame
    weighed: pl.DataFrame
    tasks: pl.DataFrame
    checks: tuple[Check, ...]
    world: World

    @classmethod
    def of(cls, world: World, checks: Sequence[Check], parts: Sequence[Part]) -> Decisions:
        """Name tasks and queues and sum up the tasks."""
        facts = world.facts
        names = pl.Enum(facts.queues["panda_queue"].unique().sort())
        named = facts.queues.select("q", pl.col("panda_queue").cast(names))
        keys = facts.tasks.select("t", "jeditaskid", "snapshot")
        found = [part.late for part in parts if part.late is not None]
        late = pl.concat(found) if found else None
        pairs = pl.concat(part.pairs for part in parts)
        ranks = {"weight": pl.Float64, "rank": pl.Int64, "jumbo": pl.Boolean}
        if late is None:
            pairs = pairs.with_columns(pl.lit(None, dtype=d).alias(n) for n, d in ranks.items())
        else:
            pairs = pairs.join(
                late.select("t", "q", *ranks), on=["t", "q"], how="left", maintain_order="left"
            )

        def with_names(frame: pl.DataFrame) -> pl.DataFrame:
            return (
                frame.join(named, on="q", how="left", maintain_order="left")
                .join(keys, on="t", how="left", maintain_order="left")
                .select("jeditaskid", "snapshot", "panda_queue", pl.exclude("t", "q", *KEYS))
            )

        queues = with_names(pairs)
        weighed = (
            with_names(ranking.reported(late, rules=world.rules))
            if late is not None
            else pl.DataFrame()
        )
        return cls(queues, weighed, _of_tasks(world, pairs, checks), tuple(checks), world)

    def to_frame(self) -> pl.DataFrame:
        """Return the decisions on queues."""
        return self.queues

    def to_dict(self) -> dict[str, Any]:
        """Return both tables and their provenance as plain Python values."""
        return {
            "queues": self.queues.to_dicts(),
            "tasks": self.tasks.to_dicts(),
            "brokerage": self.world.recipe.name,
            "rules": self.world.rules.to_dict(),
            "matching": self.world.matching.to_dict(),
            "config_digest": self.world.config.digest,
        }

    def _repr_html_(self) -> str:
        return self.tasks._repr_html_()


KEYS = ("jeditaskid", "snapshot", "panda_queue")


def check_order(checks: Sequence[Check]) -> list[str]:
    """Return the names of all checks, those of single queues first."""
    return [check.name for check in checks] + list(ranking.LATE_CHECKS)


def stages(checks: Sequence[Check]) -> pl.DataFrame:
    """Return at which step each check removes queues: ``check, stage, step``.

    Temporary problems are removed together, after ``input_to_move``.
    """
    order = check_order(checks)
    temporary = {check.name for check in checks if check.kind == "temporary"}
    first_late = len(checks)
    rows = [
        (name, TEMPORARY, first_late + 0.5) if name in temporary else (name, name, float(step))
        for step, name in enumerate(order)
    ]
    frame = pl.DataFrame(rows, schema=["check", "stage", "step"], orient="row")
    return frame.with_columns(pl.col("check").cast(pl.Enum(order)))


def _of_tasks(world: World, pairs: pl.DataFrame, checks: Sequence[Check]) -> pl.DataFrame:
    """Sum up the tasks."""
    removed = pairs.lazy().join(stages(checks).lazy(), on="check", how="left")
    passed = pl.col("check").is_null()
    last = pl.col("stage").sort_by("step", nulls_last=False).last()
    summed = removed.group_by("t").agg(
        n_queues=pl.len().cast(pl.Int64), n_candidates=passed.sum().cast(pl.Int64), stage=last
    )
    outcome = pl.when(pl.col("n_candidates") > 0).then(pl.lit("candidates"))
    tasks = (
        world.tasks.lazy()
        .join(summed, on="t", how="left")
        .join(world.outcomes.lazy(), on="t", how="left")
        .with_columns(pl.col("n_queues", "n_candidates").fill_null(0))
        .with_columns(outcome=pl.coalesce("outcome", outcome, pl.lit("no_candidates")))
        .with_columns(
            stage=pl.when(pl.col("outcome") == "no_candidates").then("stage"),
            pending_until=pl.when((pl.col("outcome") != "candidates") & (not world.hint)).then(
                pl.col("at") + pl.duration(minutes=PENDING_MIN)
            ),
        )
    )
    columns = (
        "jeditaskid", "snapshot", "at", "outcome", "stage", "detail", "n_queues", "n_candidates",
        "pending_until",
    )  # fmt: skip
    return tasks.sort("t").select(columns).collect()
