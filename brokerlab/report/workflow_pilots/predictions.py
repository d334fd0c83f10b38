"""How well the wait of a job can be told at its submission: estimators scored on the later half of every machine's load."""

from __future__ import annotations

from collections.abc import Mapping

import polars as pl

from brokerlab.workflows.compare import BatchSystem
from brokerlab.workflows.predictors import (
    Nearest,
    QuantileBound,
    carry_forward,
    predict,
    score,
)

CARRIED, BOUND, MIDDLE, NEAREST = "carried forward", "bound_95", "bound_50", "nearest"
SCORES = ("n_predicted", "coverage_pct", "tightness", "within_two_pct")


def scored(systems: Mapping[str, BatchSystem]) -> pl.DataFrame:
    """Predict and score the waits of the load's own jobs, simulated alone on the machine.

    Args:
        systems: Machines by name; of those with the same load the first is taken.

    Returns:
        One row per ``system, method``: ``n_jobs``, and of all jobs and (``_waited``) of those that waited
        ``n_predicted, coverage_pct, tightness, within_two_pct`` as `brokerlab.workflows.predictors.score` has them.

    Source: workflow-batch-scheduling.md 4.1, 4.2.
    """
    first: dict[str, str] = {}
    for name, system in systems.items():
        first.setdefault(system.cluster or name, name)
    return pl.concat([_of(name, systems[name]) for name in first.values()])


def _of(name: str, system: BatchSystem) -> pl.DataFrame:
    carried = carry_forward(system.background, hosts=system.hosts, policy=system.policy)
    later = float(carried["submit_s"].median())  # type: ignore[arg-type]
    jobs = carried.with_columns(start_s=pl.col("submit_s") + pl.col("wait_s"))
    fitted = predict(
        jobs.select("job_id", "submit_s", "start_s", "hosts", "requested_s"),
        {
            BOUND: QuantileBound(quantile=0.95),
            MIDDLE: QuantileBound(quantile=0.5, run_limit=10),
            NEAREST: Nearest(),
        },
        since_s=later,
    )
    found = score(pl.concat([carried.filter(pl.col("submit_s") >= later), fitted]))
    every = found.filter(pl.col("jobs") == "all").select("method", "n_jobs", *SCORES)
    waited = found.filter(pl.col("jobs") == "that waited").select("method", *SCORES)
    both = every.join(waited, on="method", how="left", suffix="_waited", maintain_order="left")
    return both.select(pl.lit(name).alias("system"), pl.all())
