"""Compare strategies."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np
import polars as pl

from brokerlab.errors import ConfigError, nearest, warn_once
from brokerlab.long_work import Kept
from brokerlab.results import Result, Shows
from brokerlab.workflows.compare.cells import SCHEMA, finish
from brokerlab.workflows.compare.paired import differences
from brokerlab.workflows.compare.plan import BESIDE, BatchSystem, Cell, Plan, chosen, instants
from brokerlab.workflows.dag import Dag
from brokerlab.workflows.strategies import Strategy

USUAL = (*BESIDE, "one_job", "one_job_per_task", "level", "level_overlap")
"""Strategies that are compared where nothing else is said."""
KEY = ("system", "workflow", "strategy", "instant")


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Comparison(Result):
    """Runs of workflows in several ways, all from the same states of the queues.

    Attributes:
        plan: What was compared.
        runs: One row per machine, workflow, strategy and instant: the metrics, ``shape``, ``problem`` where there is no
            run; sorted.
        missing: Cells that did not come to their end, in words, and why; empty where all did.
        seed: Of the instants.
    """

    shows = Shows(
        about="runs of workflows in several ways, one row per machine, workflow, strategy and instant",
        keys=("system", "workflow", "strategy", "instant"),
        next=(".done", ".problems"),
    )

    plan: Plan
    runs: pl.DataFrame
    missing: Mapping[str, str]
    seed: int

    @property
    def done(self) -> pl.DataFrame:
        """The runs that there are."""
        return self.runs.filter(pl.col("problem").is_null())

    @property
    def problems(self) -> dict[str, int]:
        """Why runs were not possible, in words, and how many; sorted."""
        counts = self.runs.drop_nulls("problem").group_by("problem").len()
        return dict(counts.sort("problem").rows())

    @property
    def complete(self) -> bool:
        """Whether every cell came to its end."""
        return not self.missing

    def rules_difference(self, *, n_boot: int = 1000, seed: int = 1) -> pl.DataFrame:
        """Return what the rules of ``notes`` do against those of ``paper``, from the same states.

        `differences` of the turnaround [s] with ``paper`` as the reference, ``strategy`` being ``notes``, and the shares of
        ``one_job_notes, one_job_paper, task_by_task_notes, task_by_task_paper``.
        """
        both = self.done.filter(pl.col("strategy").is_in(BESIDE))
        notes, paper = BESIDE
        result = differences(both, "turnaround", reference=paper, n_boot=n_boot, seed=seed)
        shapes = both.group_by("system", "workflow", "strategy").agg(
            one_job=(pl.col("shape") == "one job").mean(),
            task_by_task=(pl.col("shape") == "task by task").mean(),
        )
        key = ["system", "workflow"]
        for name, suffix in ((notes, "_notes"), (paper, "_paper")):
            side = shapes.filter(pl.col("strategy") == name).drop("strategy")
            renamed = side.rename({c: c + suffix for c in ("one_job", "task_by_task")})
            result = result.join(renamed, on=key, how="left", maintain_order="left")
        return result

    def to_dict(self) -> dict[str, Any]:
        """Return what was compared, in numbers."""
        return {
            "workflows": list(self.plan.workflows),
            "systems": list(self.plan.systems),
            "strategies": list(self.plan.strategies),
            "n_runs": self.done.height,
            "n_without": self.runs.height - self.done.height,
            "missing": dict(self.missing),
            "seed": self.seed,
        }


def compare(
    workflows: Mapping[str, Dag],
    systems: Mapping[str, BatchSystem],
    *,
    strategies: Sequence[str | Strategy] = USUAL,
    times: int | Mapping[str, Sequence[float]] = 100,
    seed: int = 1,
    workers: int = 2,
    store: str | Path | None = None,
    cell: int | None = None,
    partition_levels: int = 5,
    progress: bool = False,
) -> Comparison:
    """Run workflows in several ways on several machines, always from the same states of the queues.

    Args:
        workflows: By name.
        systems: By name.
        strategies: Names (`brokerlab.workflows.strategies.NAMES`) or strategies. Where levels are grouped, the rule sets
            ``notes`` and ``paper`` are both run.
        times: Random instants per machine, or the instants by machine [s].
        seed: Of the random instants; machines with the same load get the same ones.
        workers: Processes; 1 runs everything here.
        store: Folder where finished cells are kept and found again; None keeps nothing.
        cell: Instants of a cell; None: so many that every process gets two cells of a machine.
        partition_levels: Levels of a workflow whose partitions are tried at most (``best_partition``).
        progress: Show a progress bar.

    Returns:
        The runs. A workflow with a task wider than a machine has no runs there, and says so.

    Raises:
        ConfigError: Nothing to compare, or impossible numbers.

    Source: workflows.md 10, 11.
    """
    _refuse(workflows, systems, strategies, workers=workers, cell=1 if cell is None else cell)
    given = _times(systems, times, seed)
    most = max(len(result) for result in given.values())
    size = max(1, -(-most // (2 * workers))) if cell is None else cell
    plan = Plan(
        workflows=workflows,
        systems=systems,
        strategies=chosen(strategies),
        times={name: tuple(sorted(result)) for name, result in given.items()},
        partition_levels=partition_levels,
    )
    kept, cells = Kept(store), plan.cells(size)
    stored = ((part, kept.load(plan.key(part))) for part in cells)
    known = {
        part: frame
        for part, frame in stored
        if frame is not None and dict(frame.schema) == SCHEMA  # else of another version
    }
    left = [part for part in cells if part not in known]
    with _Bar(len(left), shown=progress) as bar:
        result, lost = finish(plan, left, kept, workers=workers, message=bar.told)
    runs = pl.concat([pl.DataFrame(schema=SCHEMA), *known.values(), *result]).sort(KEY)
    missing = {part.label: why for part, why in sorted(lost.items(), key=lambda kv: kv[0].label)}
    return Comparison(plan=plan, runs=runs, missing=missing, seed=seed)


def _times(
    systems: Mapping[str, BatchSystem], times: int | Mapping[str, Sequence[float]], seed: int
) -> dict[str, tuple[float, ...]]:
    """Return the instants of every machine; say where the queue is empty or drains."""
    if not isinstance(times, Mapping):
        if not isinstance(times, int | np.integer) or times < 1:
            raise ConfigError(
                f"comparison: times={times}: must be at least 1, and whole, or the instants by machine"
            )
        spans = list(dict.fromkeys(system.span for system in systems.values()))
        return {n: instants(s, times, seed=seed + spans.index(s.span)) for n, s in systems.items()}
    problems = [
        f"'{name}' is no machine: {nearest(name, systems)}" for name in times if name not in systems
    ]
    absent = [name for name in systems if not times.get(name)]
    problems += [f"none are given for {', '.join(absent)}"] if absent else []
    if problems:
        raise ConfigError("times: " + "; ".join(problems))
    for name, system in systems.items():
        first, last = system.span
        outside = [at for at in times[name] if not first <= at <= last]
        if outside:
            warn_once(
                f"times: {len(outside)} instants of {name} are before the first or after the last submission of its load "
                f"({first:g} to {last:g} s): the queue is empty there, or drains as no real one does",
                stacklevel=3,
            )
    return {name: tuple(times[name]) for name in systems}


def _refuse(
    workflows: Mapping[str, Dag],
    systems: Mapping[str, BatchSystem],
    strategies: Sequence[str | Strategy],
    **numbers: int,
) -> None:
    given = {"workflows": workflows, "systems": systems, "strategies": strategies}
    problems = [f"{name}: nothing is given" for name, result in given.items() if not result]
    problems += [f"{name}={n}: must be at least 1" for name, n in numbers.items() if n < 1]
    if problems:
        raise ConfigError("comparison: " + "; ".join(problems))


class _Bar:
    """A progress bar, or none."""

    def __init__(self, total: int, *, shown: bool) -> None:
        from rich.progress import Progress

        self._progress = Progress(disable=not shown)
        self._total = total

    def __enter__(self) -> Self:
        self._progress.start()
        self._task = self._progress.add_task("runs", total=self._total)
        return self

    def __exit__(self, *problem: object) -> None:
        self._progress.stop()

    def told(self, cell: Cell) -> None:  # noqa: ARG002 - every cell counts the same
        self._progress.advance(self._task)
