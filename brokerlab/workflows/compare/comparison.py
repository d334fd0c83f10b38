"""Compare strategies, and look at one instant closely."""

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
from brokerlab.workflows import batch
from brokerlab.workflows.compare.cells import (
    BESIDE,
    SCHEMA,
    BatchSystem,
    Cell,
    Plan,
    chosen,
    finish,
    instants,
)
from brokerlab.workflows.compare.paired import differences
from brokerlab.workflows.dag import Dag
from brokerlab.workflows.manager import run
from brokerlab.workflows.queues import BatchQueue
from brokerlab.workflows.runs import Run
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
        result, lost = finish(plan, left, kept, workers=workers, advance=bar.advance)
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

    def advance(self, cell: Cell) -> None:  # noqa: ARG002 - every cell counts the same
        self._progress.advance(self._task)


MOST_LEVELS = 12  # levels of a workflow whose runs can be drawn line by line
BARS = {
    "job": pl.String,
    "first_level": pl.Int64,
    "last_level": pl.Int64,
    "hosts": pl.Int64,
    "n_jobs": pl.Int64,
    "phase": pl.String,
    "begin_s": pl.Float64,
    "end_s": pl.Float64,
}


@dataclass(frozen=True, kw_only=True, eq=False)
class Example:
    """Every strategy at one instant at which it came to an end."""

    system: str  # name of the machine
    workflow: str  # name of the workflow
    submit_time: float  # the instant [s]
    runs: Mapping[str, Run]  # by strategy, the first to end first

    def summary(self) -> pl.DataFrame:
        """Return one row per ``strategy``, the first to end first: the metrics of `Run.metrics`, ``shape``."""
        rows = [
            {"strategy": name, **done.metrics, "shape": done.shape}
            for name, done in self.runs.items()
        ]
        return pl.DataFrame(rows)

    def timelines(self) -> dict[str, pl.DataFrame]:
        """Return ``jobs``, ``tasks`` and ``decisions`` of all strategies together, with ``strategy``."""
        frames = {
            "jobs": Run.jobs_frame,
            "tasks": Run.tasks_frame,
            "decisions": Run.decisions_frame,
        }
        return {
            name: pl.concat(
                frame(done).select(pl.lit(label).alias("strategy"), pl.all())
                for label, done in self.runs.items()
            )
            for name, frame in frames.items()
        }

    def bars(self) -> pl.DataFrame:
        """Return `bars` of all strategies together, with ``strategy``."""
        return pl.concat(
            bars(done).select(pl.lit(label).alias("strategy"), pl.all())
            for label, done in self.runs.items()
        )


def example(comparison: Comparison) -> Example | None:
    """Look closely at the run with most pilots under the rules of the paper: there the strategies differ in what they do."""
    plan = comparison.plan
    low = [name for name, dag in plan.workflows.items() if len(dag.levels) <= MOST_LEVELS]
    seen = comparison.done.filter(
        pl.col("strategy") == BESIDE[1], pl.col("workflow").is_in(low or list(plan.workflows))
    )
    if seen.is_empty():
        return None
    order = ["splits", "jobs_submitted", "system", "workflow", "instant"]
    chosen = seen.sort(order, descending=[True, True, False, False, False]).row(0, named=True)
    place = {name: chosen[name] for name in ("system", "workflow", "instant")}
    ran = comparison.done.filter(**place)["strategy"].to_list()  # the others came to no end there
    system, at = plan.systems[chosen["system"]], chosen["submit_time"]
    sim = batch.start(system.background, hosts=system.hosts, policy=system.policy)
    batch.advance(sim, at)
    runs = {
        label: run(plan.workflows[chosen["workflow"]], BatchQueue(sim.copy()), how, submit_time=at)
        for label, how in plan.strategies.items()
        if how is not None and label in ran
    }
    ordered = sorted(runs.items(), key=lambda item: (item[1].metrics["turnaround"], item[0]))
    return Example(
        system=chosen["system"], workflow=chosen["workflow"], submit_time=at, runs=dict(ordered)
    )


def bars(done: Run) -> pl.DataFrame:
    """Return when the jobs of a run waited and ran, pilots one by one, single tasks a level at a time.

    One row per phase, in the order of the jobs: ``job`` (of a pilot; null: the single tasks of a level),
    ``first_level, last_level`` (from 1), ``hosts`` (null for single tasks), ``n_jobs``, ``phase`` (waits, runs,
    expires, cancelled), ``begin_s, end_s`` [s since the submission], ``line`` (the pilot, or the level, in words).
    """
    jobs = done.jobs_frame().with_columns(
        pl.col("submit", "start", "end") - done.submit_time, pl.col("first_level", "last_level") + 1
    )
    pilots = jobs.filter(~pl.col("individual")).with_columns(n_jobs=pl.lit(1, dtype=pl.Int64))
    levels = (
        jobs.filter(pl.col("individual"))
        .group_by("first_level", "last_level")
        .agg(pl.col("submit", "start").min(), pl.col("end").max(), n_jobs=pl.len().cast(pl.Int64))
        .sort("first_level")
    )
    rows = pl.concat([pilots, levels], how="diagonal_relaxed").iter_rows(named=True)
    phases = pl.DataFrame([phase for row in rows for phase in _phases(row)], schema=BARS)
    return phases.with_columns(line=_line())


def _line() -> pl.Expr:
    """Name a pilot, or the single tasks of a level."""
    first, last = pl.col("first_level"), pl.col("last_level")
    several = pl.format("levels {} to {}", first, last)
    levels = pl.when(first == last).then(pl.format("level {}", first)).otherwise(several)
    pilot = pl.format("{}: {}, hosts: {}", "job", levels, "hosts")
    single = pl.format("level {}, single tasks: {}", first, "n_jobs")
    return pl.when(pl.col("job").is_null()).then(single).otherwise(pilot)


def _phases(row: Mapping[str, object]) -> list[dict[str, object]]:
    """Return the phases of a job, or of the single tasks of a level together."""
    known = {name: row[name] for name in ("job", "first_level", "last_level", "hosts", "n_jobs")}
    submit, start, end = row["submit"], row["start"], row["end"]
    if start is None:
        return [known | {"phase": "cancelled", "begin_s": submit, "end_s": end}]
    ends = "expires" if row["outcome"] == "expired" else "runs"
    return [
        known | {"phase": "waits", "begin_s": submit, "end_s": start},
        known | {"phase": ends, "begin_s": start, "end_s": end},
    ]
