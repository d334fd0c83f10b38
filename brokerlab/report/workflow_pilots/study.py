"""Run every strategy from the same states of the queues, and sum up."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from brokerlab.errors import InsufficientDataError
from brokerlab.report.workflow_pilots.examples import Example, example
from brokerlab.report.workflow_pilots.inputs import Inputs
from brokerlab.report.workflow_pilots.predictions import scored
from brokerlab.workflows import batch
from brokerlab.workflows.compare import Comparison, compare, differences, means, shape_checks
from brokerlab.workflows.compare.plan import BESIDE, BatchSystem

NOTES, PAPER = BESIDE
ONE_JOB, PER_TASK = "one_job", "one_job_per_task"
USUAL = (NOTES, PAPER, "pilot_levels:paper_serial", ONE_JOB, "one_job_best", PER_TASK, "level", "level_overlap")  # fmt: skip
"""Strategies that are compared where nothing else is said."""
NEEDED = (NOTES, PAPER, ONE_JOB, PER_TASK)
"""Strategies that the page speaks of."""
LEAST_S = 1.0
"""A shorter turnaround counts as this long where turnarounds are divided."""
RUN_H = (0.1, 0.3, 1.0, 3.0, 10.0, 30.0)
"""Run times whose waits are asked for [h]."""


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
        cell=max(1, -(-times // (2 * workers))),
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
        ratios=_ratios(runs, dice),
        by_queue=ratios_to(runs, PAPER, ("system",), dice),
        against=_against(runs, dice),
        rules=found.rules_difference(**dice),
        modes=_modes(runs),
        published=shape_checks(found, **dice),
        waits=pl.concat(waits(n, s, found.plan.times[n]) for n, s in inputs.systems.items()),
        predictions=scored(inputs.systems),
        example=example(found),
        dice=dice,
    )


def ratios_to(
    runs: pl.DataFrame, reference: str, by: Sequence[str], dice: dict[str, Any]
) -> pl.DataFrame:
    """Return the geometric mean of turnaround ratios at the same instants.

    Returns:
        One row per ``by`` and other strategy: ``strategy, reference, n``, ``ratio, lo, hi`` (95 % interval).
    """
    logs = runs.with_columns(log=pl.col("turnaround").clip(LEAST_S).log())
    found = differences(logs, "log", reference=reference, by=by, **dice)
    ratios = (pl.col(c).exp().alias(n) for c, n in (("diff", "ratio"), ("lo", "lo"), ("hi", "hi")))
    return found.select(*by, "strategy", "reference", "n", *ratios)


def _against(runs: pl.DataFrame, dice: dict[str, Any]) -> pl.DataFrame:
    """Hold grouping by the paper's rules against one job, and against one job per task."""
    bases = (ONE_JOB, PER_TASK)
    return pl.concat(ratios_to(_only(runs, PAPER, base), base, (), dice) for base in bases)


def _ratios(runs: pl.DataFrame, dice: dict[str, Any]) -> pl.DataFrame:
    """Hold both rule sets against the better of one job and one job per task, place by place."""
    rows = []
    for (system, workflow), part in runs.group_by("system", "workflow", maintain_order=True):
        mean = dict(part.group_by("strategy").agg(pl.col("turnaround").clip(LEAST_S).log().mean()).rows())  # fmt: skip
        best = min((ONE_JOB, PER_TASK), key=lambda name: mean.get(name, np.inf))
        for rules, name in (("notes", NOTES), ("paper", PAPER)):
            ratio = ratios_to(_only(part, name, best), best, (), dice)
            shapes = part.filter(pl.col("strategy") == name)["shape"]
            if ratio.height:
                rows.append(
                    {"system": system, "workflow": workflow, "rules": rules, "against": best}
                    | {key: ratio[key][0] for key in ("n", "ratio", "lo", "hi")}
                    | {"one_job": _share(shapes == "one job"), "task_by_task": _share(shapes == "task by task")}
                )  # fmt: skip
    numbers = dict.fromkeys(("ratio", "lo", "hi", "one_job", "task_by_task"), pl.Float64)
    words = dict.fromkeys(("system", "workflow", "rules", "against"), pl.String)
    return pl.DataFrame(rows, schema={**words, "n": pl.Int64, **numbers})


def _share(hits: pl.Series) -> float:
    return float(hits.mean() or 0.0)  # type: ignore[arg-type]


def _only(runs: pl.DataFrame, *strategies: str) -> pl.DataFrame:
    return runs.filter(pl.col("strategy").is_in(strategies))


def _modes(runs: pl.DataFrame) -> pl.DataFrame:
    """Return the share of every way that runs of grouping went, by machine, workflow and rule set."""
    grouped = runs.filter(pl.col("strategy").str.starts_with("pilot_levels"))
    key = ["system", "workflow", "strategy"]
    counts = grouped.group_by(*key, "shape").agg(n=pl.len())
    return counts.with_columns(share=pl.col("n") / pl.col("n").sum().over(key)).sort(*key, "shape")


def waits(name: str, system: BatchSystem, times: Sequence[float]) -> pl.DataFrame:
    """Ask at some instants how long requests of several sizes would wait.

    Returns:
        One row per number of hosts and run time: ``system, hosts, size`` (in words), ``run_s``, ``p25, p50, p75`` of the
        estimated wait over the instants [s].
    """
    shares = {"1 host": 1, "a tenth": max(1, system.hosts // 10), "half": max(1, system.hosts // 2), "all": system.hosts}  # fmt: skip
    sizes = {hosts: f"{word} ({hosts})" if hosts > 1 else word for word, hosts in reversed(shares.items())}  # fmt: skip
    grid = [(hosts, run * 3600) for hosts in sorted(sizes) for run in RUN_H]
    sim = batch.start(system.background, hosts=system.hosts, policy=system.policy)
    asked = []
    for at in times:
        batch.advance(sim, at)
        starts = batch.estimate_starts(sim, [n for n, _ in grid], [run for _, run in grid])
        asked.append(np.maximum(starts - at, 0.0))
    low, middle, high = np.percentile(np.array(asked), [25, 50, 75], axis=0)
    return pl.DataFrame(
        {
            "system": name,
            "hosts": [n for n, _ in grid],
            "size": [sizes[n] for n, _ in grid],
            "run_s": [run for _, run in grid],
            "p25": low,
            "p50": middle,
            "p75": high,
        }
    )
