"""How long requests wait on machines, and how well that is known when they are submitted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl

from brokerlab.errors import InsufficientDataError
from brokerlab.workflows import batch
from brokerlab.workflows.compare.plan import BatchSystem
from brokerlab.workflows.predictors import Nearest, QuantileBound, carry_forward, predict, score

RUN_H = (0.1, 0.3, 1.0, 3.0, 10.0, 30.0)  # run times whose waits are asked for [h]
HOUR_S = 3600.0
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
