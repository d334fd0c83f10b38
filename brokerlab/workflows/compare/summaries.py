"""Summaries of a comparison: grouping against the simple ways, costs, how runs went, and waits estimated and predicted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from brokerlab.errors import InsufficientDataError
from brokerlab.units import HOUR_S
from brokerlab.workflows import batch
from brokerlab.workflows.compare.cells import BESIDE, BatchSystem
from brokerlab.workflows.compare.paired import PLACE, log_turnaround, ratios
from brokerlab.workflows.predictors import Nearest, QuantileBound, carry_forward, predict, score

NOTES, PAPER = BESIDE
ONE_JOB, PER_TASK = "one_job", "one_job_per_task"
SIMPLE = (ONE_JOB, PER_TASK)  # what grouping is held against
RULE_SETS = {"notes": NOTES, "paper": PAPER}
SHAPES = ("one job", "pilots", "pilots, then task by task", "task by task")
"""How a run of grouping can go."""
MOST = 0.5  # A way that more than this share of the runs went is what became of them [1]


class CostsByQueue(NamedTuple):
    """What strategies take, and which column holds the ratios at a machine."""

    frame: pl.DataFrame
    columns: dict[str, str]


def against_each(runs: pl.DataFrame, *, n_boot: int = 1000, seed: int = 1) -> pl.DataFrame:
    """Hold grouping by the paper's rules against one job, and against one job per task, everything together.

    `ratios`, one row per simple way (``reference``).
    """
    parts = [
        ratios(_only(runs, PAPER, base), reference=base, by=(), n_boot=n_boot, seed=seed)
        for base in SIMPLE
    ]
    return pl.concat(parts)


def against_better(runs: pl.DataFrame, *, n_boot: int = 1000, seed: int = 1) -> pl.DataFrame:
    """Hold grouping by either rule set against the better of one job and one job per task, place by place.

    One row per ``system, workflow, rules`` (notes, paper): ``against`` (the simple way with the shorter geometric
    mean turnaround), ``n`` (instants), ``ratio, ratio_lo, ratio_hi`` (below 1: grouping ends sooner), ``outcome``
    (sooner, later, same: the interval includes 1 or is unknown), ``one_job, task_by_task`` (shares of the runs
    that became a single job, that went task by task from the start), ``became`` (one job, task by task: most runs;
    pilots: most of them; mixed).
    """
    rows = []
    for (system, workflow), part in runs.group_by(PLACE, maintain_order=True):
        mean = dict(part.group_by("strategy").agg(log_turnaround().mean()).rows())
        best = min(SIMPLE, key=lambda name: mean.get(name, np.inf))
        for rules, name in RULE_SETS.items():
            ratio = ratios(_only(part, name, best), reference=best, by=(), n_boot=n_boot, seed=seed)
            shapes = part.filter(pl.col("strategy") == name)["shape"]
            if ratio.height:
                rows.append(
                    {"system": system, "workflow": workflow, "rules": rules, "against": best}
                    | ratio.select("n", "ratio", "ratio_lo", "ratio_hi").row(0, named=True)
                    | {"one_job": _share(shapes, "one job"), "task_by_task": _share(shapes, "task by task")}
                )  # fmt: skip
    words = dict.fromkeys(("system", "workflow", "rules", "against"), pl.String)
    numbers = ("ratio", "ratio_lo", "ratio_hi", "one_job", "task_by_task")
    schema = {**words, "n": pl.Int64, **dict.fromkeys(numbers, pl.Float64)}
    return pl.DataFrame(rows, schema=schema).with_columns(outcome=_outcome(), became=_became())


def costs(runs: pl.DataFrame) -> pl.DataFrame:
    """Return what every strategy takes, over all machines and workflows.

    One row per ``strategy``, the shortest first: ``turnaround`` (geometric mean of its runs [s]), ``ratio`` (geometric
    mean of its turnarounds over those of grouping by the paper's rules at the same instants, by which rows are sorted:
    not every strategy runs everywhere; null: nowhere together), ``jobs``, ``expirations`` (mean per run), ``waste``
    (host time idle or lost over useful host time [1]).
    """
    log, here = log_turnaround(), [*PLACE, "instant"]
    paper = _only(runs, PAPER).select(*here, paper=log)
    return (
        runs.join(paper, on=here, how="left")
        .group_by("strategy")
        .agg(
            turnaround=log.mean().exp(),
            ratio=(log - pl.col("paper")).mean().exp(),
            jobs=pl.col("jobs_submitted").mean(),
            expirations=pl.col("expirations").mean(),
            waste=pl.col("wasted").sum() / pl.col("useful").sum(),
        )
        .sort("ratio", "strategy", nulls_last=True)
    )


def costs_by_queue(runs: pl.DataFrame, by_queue: pl.DataFrame) -> CostsByQueue:
    """Return `costs`, with the ratio of turnarounds at every machine beside them.

    `costs` and ``ratio_0, ratio_0_lo, ratio_0_hi, ratio_1, ...`` (null: the strategy is the reference, or has no run
    there); the columns by machine, in the order of the runs.
    """
    frame, columns = costs(runs), {}
    for place, system in enumerate(runs["system"].unique(maintain_order=True)):
        columns[system] = f"ratio_{place}"
        ends = {f"ratio_{place}{end}": f"ratio{end}" for end in ("", "_lo", "_hi")}
        mine = by_queue.filter(system=system).select("strategy", **ends)
        frame = frame.join(mine, on="strategy", how="left", maintain_order="left")
    return CostsByQueue(frame, columns)


def longer_and_shorter(ratios: pl.DataFrame) -> dict[str, int]:
    """Count the rows of `ratios` whose interval lies above 1 (``longer``), below 1 (``shorter``), and all (``n``)."""
    longer, shorter = _apart(ratios)
    return {"longer": longer.height, "shorter": shorter.height, "n": ratios.height}


def decisive(ratios: pl.DataFrame) -> pl.DataFrame:
    """Return the row that decides: of those whose interval lies above 1 the first, else of those below 1 the last."""
    longer, shorter = _apart(ratios)
    return (
        longer.head(1) if longer.height else shorter.tail(1) if shorter.height else ratios.head(1)
    )


def _apart(ratios: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    return ratios.filter(pl.col("ratio_lo") > 1), ratios.filter(pl.col("ratio_hi") < 1)


def shapes_by_place(runs: pl.DataFrame) -> pl.DataFrame:
    """Return how runs of grouping went.

    One row per ``system, workflow, strategy, shape``: ``n``, ``share`` of the runs [1]; sorted.
    """
    key = [*PLACE, "strategy"]
    counts = _grouping(runs).group_by(*key, "shape").agg(n=pl.len())
    return counts.with_columns(share=pl.col("n") / pl.col("n").sum().over(key)).sort(*key, "shape")


def shapes_by_rules(runs: pl.DataFrame) -> pl.DataFrame:
    """Return how runs of grouping went, over all machines and workflows.

    One row per ``strategy``: ``n`` (runs), ``one_job, pilots, pilots_then_tasks, task_by_task`` (shares [1]),
    ``expirations`` (mean per run); sorted.
    """
    names = ("one_job", "pilots", "pilots_then_tasks", "task_by_task")
    shares = {
        name: (pl.col("shape") == shape).mean() for name, shape in zip(names, SHAPES, strict=True)
    }
    expired = pl.col("expirations").mean()
    grouped = _grouping(runs).group_by("strategy")
    return grouped.agg(n=pl.len(), **shares, expirations=expired).sort("strategy")


def _grouping(runs: pl.DataFrame) -> pl.DataFrame:
    return runs.filter(pl.col("strategy").str.starts_with("pilot_levels"))


def _only(runs: pl.DataFrame, *strategies: str) -> pl.DataFrame:
    return runs.filter(pl.col("strategy").is_in(strategies))


def _share(shapes: pl.Series, shape: str) -> float:
    return float((shapes == shape).mean() or 0.0)  # type: ignore[arg-type]


def _outcome() -> pl.Expr:
    sooner, later = pl.col("ratio_hi") < 1, pl.col("ratio_lo") > 1
    return pl.when(sooner).then(pl.lit("sooner")).when(later).then(pl.lit("later")).otherwise(pl.lit("same"))  # fmt: skip


def _became() -> pl.Expr:
    one, alone = pl.col("one_job"), pl.col("task_by_task")
    return (
        pl.when(one > MOST)
        .then(pl.lit("one job"))
        .when(alone > MOST)
        .then(pl.lit("task by task"))
        .when(one + alone < MOST)
        .then(pl.lit("pilots"))
        .otherwise(pl.lit("mixed"))
    )


RUN_H = (0.1, 0.3, 1.0, 3.0, 10.0, 30.0)  # run times whose waits are asked for [h]
SCORES = ("n_predicted", "coverage_pct", "tightness", "within_two_pct")


def estimated_waits(
    systems: Mapping[str, BatchSystem], times: Mapping[str, Sequence[float]]
) -> pl.DataFrame:
    """Ask at some instants how long requests of several sizes would wait.

    One row per ``system``, number of hosts and run time: ``hosts``, ``size`` (1 host, a tenth, half, all; the
    first that applies), ``run_s``, ``p25, p50, p75`` of the estimated wait over the instants [s].
    """
    return pl.concat(_waits(name, system, times[name]) for name, system in systems.items())


def hour_waits(waits: pl.DataFrame) -> pl.DataFrame:
    """Return the median estimated wait of a request of one hour.

    One row per ``system``: ``one_host_h``, ``all_hosts_h`` [h].
    """
    hour = waits.filter(pl.col("run_s") == HOUR_S).sort("hosts", maintain_order=True)
    median = pl.col("p50") / HOUR_S
    return hour.group_by("system", maintain_order=True).agg(
        one_host_h=median.first(), all_hosts_h=median.last()
    )


def score_predictions(systems: Mapping[str, BatchSystem]) -> pl.DataFrame:
    """Predict and score the waits of the load's own jobs, simulated alone on the machine, on the later half of the load.

    One row per ``system, method`` (carried forward; bound_95, bound_50: bounds of quantiles with 95 % confidence;
    nearest: median of the 50 nearest): ``n_jobs``, and of all jobs and (``waited_...``) of those that waited
    ``n_predicted, coverage_pct, tightness, within_two_pct`` as `brokerlab.workflows.predictors.score` has them.

    Source: workflows.md 4.1, 4.2.
    """
    first: dict[str, str] = {}
    for name, system in systems.items():
        first.setdefault(system.cluster or name, name)
    return pl.concat([_scores(name, systems[name]) for name in first.values()])


def _waits(name: str, system: BatchSystem, times: Sequence[float]) -> pl.DataFrame:
    shares = {"1 host": 1, "a tenth": max(1, system.hosts // 10), "half": max(1, system.hosts // 2), "all": system.hosts}  # fmt: skip
    sizes = {hosts: word for word, hosts in reversed(shares.items())}
    grid = [(hosts, run * HOUR_S) for hosts in sorted(sizes) for run in RUN_H]
    sim = batch.start(system.background, hosts=system.hosts, policy=system.policy)
    asked = []
    for at in times:
        batch.advance(sim, at)
        batch.arrive(sim)
        asked.append([max(batch.estimate_start(sim, *ask) - at, 0.0) for ask in grid])
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


def _scores(name: str, system: BatchSystem) -> pl.DataFrame:
    machine: dict[str, Any] = {"hosts": system.hosts, "policy": system.policy}
    jobs = batch.run(system.background, **machine)
    if jobs.is_empty():
        raise InsufficientDataError(
            f"{name}: there is no job in its load whose wait could be predicted"
        )
    later = float(jobs["submit_s"].median())  # type: ignore[arg-type]
    carried = carry_forward(system.background, **machine, since_s=later)
    fitted = predict(
        jobs.select("job_id", "submit_s", "start_s", "hosts", "requested_s"),
        {
            "bound_95": QuantileBound(quantile=0.95),
            "bound_50": QuantileBound(quantile=0.5, run_limit=10),
            "nearest": Nearest(),
        },
        since_s=later,
    )
    result = score(pl.concat([carried, fitted]))
    every = result.filter(pl.col("jobs") == "all").select("method", "n_jobs", *SCORES)
    waited = result.filter(pl.col("jobs") == "that waited").select(
        "method", *(pl.col(name).alias(f"waited_{name}") for name in SCORES)
    )
    both = every.join(waited, on="method", how="left", maintain_order="left")
    return both.select(pl.lit(name).alias("system"), pl.all())
