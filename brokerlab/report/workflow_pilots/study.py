"""Run every strategy from the same states of the queues, and sum up."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from brokerlab.errors import InsufficientDataError
from brokerlab.report.workflow_pilots.inputs import Inputs
from brokerlab.workflows.compare import (
    Comparison,
    Example,
    against_better,
    against_each,
    compare,
    estimated_waits,
    example,
    means,
    ratios,
    score_predictions,
    shape_checks,
    shapes_by_place,
)
from brokerlab.workflows.compare.summaries import NOTES, ONE_JOB, PAPER, PER_TASK

__all__ = ["NOTES", "ONE_JOB", "PAPER", "PER_TASK", "Study", "study"]
USUAL = (NOTES, PAPER, "pilot_levels:paper_serial", ONE_JOB, "one_job_best", PER_TASK, "level", "level_overlap")  # fmt: skip
"""Strategies that are compared where nothing else is said."""
NEEDED = (NOTES, PAPER, ONE_JOB, PER_TASK)
"""Strategies that the page speaks of."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Study:
    """What was found.

    Attributes:
        inputs: What it was made from.
        comparison: Every run.
        means: Mean and median turnaround by machine, workflow and strategy [s].
        ratios: By machine and workflow, and rule set (``notes``, ``paper``): its turnaround over that of the better of one
            job and one job per task (``against``), and the shares of runs that became one job or went task by task.
        by_queue: The ratios of every strategy's turnaround to that of ``paper``, by machine.
        against: The ratios of the turnaround of ``paper`` to those of one job and of one job per task.
        rules: What the rules of the notes do against those of the paper, by machine and workflow.
        modes: How runs of grouping went.
        published: The shapes of the published results.
        waits: Estimated wait by machine, hosts and run time [s].
        predictions: How well waits are told, by machine and way of telling.
        example: One instant, every strategy.
        dice: Replicates and seed of the bootstrap.
    """

    inputs: Inputs
    comparison: Comparison
    means: pl.DataFrame
    ratios: pl.DataFrame
    by_queue: pl.DataFrame
    against: pl.DataFrame
    rules: pl.DataFrame
    modes: pl.DataFrame
    published: pl.DataFrame
    waits: pl.DataFrame
    predictions: pl.DataFrame
    example: Example | None
    dice: dict[str, Any]

    @property
    def runs(self) -> pl.DataFrame:
        """The runs that there are."""
        return self.comparison.done

    @property
    def places(self) -> list[tuple[str, str]]:
        """Machines and workflows, in the order of the inputs."""
        return [(s, w) for s in self.inputs.systems for w in self.inputs.workflows]

    @property
    def n_times(self) -> int:
        """Instants per machine."""
        return max(len(times) for times in self.comparison.plan.times.values())


def study(
    inputs: Inputs,
    *,
    strategies: Sequence[str] = USUAL,
    times: int = 30,
    workers: int = 2,
    store: str = "",
    n_boot: int = 1000,
    seed: int = 1,
) -> Study:
    """Compare the strategies.

    Args:
        inputs: From `load`.
        strategies: What is compared, besides those that the page speaks of.
        times: Instants per machine.
        workers: Processes.
        store: Folder in which finished parts are kept and found again, empty for none.
        n_boot: Replicates of the bootstrap over instants.
        seed: Of instants and bootstrap.

    Returns:
        What was found.

    Raises:
        InsufficientDataError: No workflow fits on any machine.
    """
    found = compare(
        inputs.workflows,
        inputs.systems,
        strategies=list(dict.fromkeys((*strategies, *NEEDED))),
        times=times,
        seed=seed,
        workers=workers,
        store=store or None,
    )
    if found.done.is_empty():
        why = found.runs["problem"].drop_nulls().unique().sort().to_list()[:3]
        raise InsufficientDataError(f"no run came to its end: {'; '.join(why) or dict(found.missing)}")  # fmt: skip
    dice: dict[str, Any] = {"n_boot": n_boot, "seed": seed}
    runs = found.done
    return Study(
        inputs=inputs,
        comparison=found,
        means=means(runs, "turnaround", **dice),
        ratios=against_better(runs, **dice),
        by_queue=ratios(runs, reference=PAPER, by=("system",), **dice),
        against=against_each(runs, **dice),
        rules=found.rules_difference(**dice),
        modes=shapes_by_place(runs),
        published=shape_checks(found, **dice),
        waits=estimated_waits(inputs.systems, found.plan.times),
        predictions=score_predictions(inputs.systems),
        example=example(found),
        dice=dice,
    )
