"""The decisions as tables: one row per (task, queue), one row per task."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import polars as pl

from brokerlab.brokerage.engine.decisions import QueueDecisions
from brokerlab.brokerage.engine.pairs import Facts, positions
from brokerlab.brokerage.engine.rule import Rule
from brokerlab.brokerage.engine.steps import Step, names_of
from brokerlab.brokerage.engine.world import Part, World
from brokerlab.brokerage.production_jobs import ranking

PENDING_MIN = 60
"""A task without candidates waits as long [min]."""
TEMPORARY = "temporary problem"
"""Stage at which queues with a temporary mark are removed."""


@dataclass(frozen=True, repr=False)
class Decisions(QueueDecisions):
    """What the production job brokerage decided.

    Attributes:
        places: One row per (task, queue) that was a candidate at all, sorted by task and name: ``jeditaskid``,
            ``snapshot``, ``panda_queue`` (Enum), ``check`` (Enum: why it was skipped; null: it was not), ``weight``,
            ``rank`` (1 to 10), ``failed`` (i64: bit i is set where check i alone says skip).
        weighed: The queues that reached the weight: factors, counts, caps; same keys.
        tasks: One row per task: ``outcome`` (candidates, no_candidates, input_incomplete, unknown_nucleus), ``stage``
            that emptied the list, ``detail``, ``n_queues`` looked at, ``n_candidates``, ``pending_until`` (null in
            hint mode, which leaves the task where it is).
        world: What was decided on.
    """

    @classmethod
    def of(cls, world: World, parts: Iterable[Part]) -> Decisions:
        """Name tasks and queues and sum up the tasks; a part is let go before the next is asked for."""
        steps = stages(world.checks, world.steps)
        queues, weighed, summed = [], [], []
        for part in parts:
            queues.append(_with_names(world.facts, part.pairs))
            summed.append(_summed(part.pairs, steps["step"]))
            if part.late is not None:
                weighed.append(
                    _with_names(world.facts, ranking.reported(part.late, rules=world.rules))
                )
        tasks = _of_tasks(world, pl.concat(summed), steps)
        told = pl.concat(weighed) if weighed else pl.DataFrame()
        return cls(pl.concat(queues), tasks, world, told)


def _with_names(facts: Facts, frame: pl.DataFrame) -> pl.DataFrame:
    """Put the keys of the decision in the place of the numbers ``t, q``."""
    names = facts.queues["panda_queue"]
    queues = names.cast(pl.Enum(names.unique().sort())).to_frame()
    tasks = facts.tasks.select("jeditaskid", "snapshot")
    task = positions(facts.tasks["t"], frame["t"])
    queue = positions(facts.queues["q"], frame["q"])
    keys = tasks[pl.Series(task)].hstack(queues[pl.Series(queue)])
    return keys.hstack(frame.drop("t", "q"))


def stages(checks: Sequence[Rule], steps: Sequence[Step]) -> pl.DataFrame:
    """Return at which step each check removes queues: ``check, stage, step``.

    Temporary problems are removed together, after ``input_to_move``.
    """
    order = names_of(checks, steps)
    temporary = {check.name for check in checks if check.kind == "temporary"}
    first_late = len(checks)
    rows = [
        (name, TEMPORARY, first_late + 0.5) if name in temporary else (name, name, float(step))
        for step, name in enumerate(order)
    ]
    frame = pl.DataFrame(rows, schema=["check", "stage", "step"], orient="row")
    return frame.with_columns(pl.col("check").cast(pl.Enum(order)))


def _summed(pairs: pl.DataFrame, steps: pl.Series) -> pl.DataFrame:
    """Return ``t, n_queues, n_candidates, step`` of the tasks; ``step`` is the last one that removed a queue.

    Args:
        pairs: ``t, check``.
        steps: The step of each check, in order.
    """
    step = steps.gather(pairs["check"].to_physical())
    return (
        pairs.select("t", step)
        .group_by("t", maintain_order=True)
        .agg(
            n_queues=pl.len().cast(pl.Int64),
            n_candidates=pl.col("step").null_count().cast(pl.Int64),
            step=pl.col("step").max(),
        )
    )


def _of_tasks(world: World, summed: pl.DataFrame, steps: pl.DataFrame) -> pl.DataFrame:
    """Tell how the tasks ended.

    Args:
        world: What was decided on.
        summed: Results of :func:`_summed`.
        steps: Result of :func:`stages`.
    """
    named = steps.select("stage", "step").unique()
    outcome = pl.when(pl.col("n_candidates") > 0).then(pl.lit("candidates"))
    tasks = (
        world.tasks.lazy()
        .join(summed.lazy(), on="t", how="left")
        .join(named.lazy(), on="step", how="left")
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
