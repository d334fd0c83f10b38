"""Predict the wait of every job of a log at its submission, and score that.

An estimator learns a wait when the job starts, never before: what is predicted at an instant cannot know waits that end
later, by construction.

Source: workflows.md 4.1 and 4.2.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Mapping
from typing import Any

import dataframely as dy
import narwhals.stable.v2 as nw
import polars as pl

from brokerlab.archive.contracts._columns import f64, i64, text
from brokerlab.errors import DataError, InsufficientDataError
from brokerlab.frames import prepared
from brokerlab.workflows import batch
from brokerlab.workflows.predictors.estimators import Estimator

PREDICTED = {
    "method": pl.String,
    "job_id": pl.String,
    "submit_s": pl.Float64,
    "hosts": pl.Int64,
    "requested_s": pl.Float64,
    "wait_s": pl.Float64,
    "predicted_s": pl.Float64,
    "based_on": pl.Int64,
    "category": pl.String,
}
"""Columns of predictions."""


class SeenJobs(dy.Schema):
    """Jobs whose waits are known, or will be."""

    job_id = text("job", required=True)
    submit_s = f64("when it was submitted", "s", required=True)
    start_s = f64("when it started", "s", null="never, or not yet")
    hosts = i64("hosts that it held", "hosts", required=True)
    requested_s = f64("its limit", "s", required=True)


_NEEDED = tuple(SeenJobs.columns())


def fit(jobs: Any, estimator: Estimator, *, at_s: float) -> None:
    """Let an estimator learn every wait that is known at an instant, in the order of starts.

    ``jobs``: ``job_id, submit_s, start_s`` [s; null: never], ``hosts, requested_s`` [s]. Of jobs that start at ``at_s`` [s] or later
    nothing is learnt, nor of those that still wait, which makes estimates short where waits grow. Other types and nulls are a
    SchemaError; missing columns, starts before submissions and values that no job can have a DataError.
    """
    known = _check(jobs).filter(pl.col("start_s") < at_s).sort("start_s", maintain_order=True)
    for submit, start, hosts, requested in known.select(_NEEDED[1:]).iter_rows():
        estimator.learn(hosts, requested, start - submit)


def predict(jobs: Any, estimators: Mapping[str, Estimator], *, since_s: float) -> pl.DataFrame:
    """Predict every job at its submission, from the waits that are known then.

    `PREDICTED`, one row per method and job that started, in the order of submission; ``predicted_s`` is null where
    the estimator knew too little.

    ``jobs`` and errors are those of `fit`; only jobs submitted from ``since_s`` [s] on are predicted, without any it is an
    InsufficientDataError.
    """
    rows = []
    started: list[tuple[float, int, tuple[int, float, float]]] = []
    ordered = _check(jobs).sort("submit_s", maintain_order=True)
    for place, (job_id, submit, start, hosts, requested) in enumerate(ordered.iter_rows()):
        while started and started[0][0] < submit:
            known = heapq.heappop(started)[2]
            for estimator in estimators.values():
                estimator.learn(*known)
        if start is None:
            continue
        wait = start - submit
        heapq.heappush(started, (start, place, (hosts, requested, wait)))
        if submit < since_s:
            continue
        for method, estimator in estimators.items():
            estimated = estimator.estimate(hosts, requested)
            columns = (
                (None, None, None)
                if estimated is None
                else (estimated.wait_s, estimated.based_on, estimated.category)
            )
            rows.append((method, job_id, submit, hosts, requested, wait, *columns))
    if not rows:
        raise InsufficientDataError(f"no job that started was submitted from {since_s} s on")
    return pl.DataFrame(rows, schema=PREDICTED, orient="row")


def carry_forward(
    jobs: Any, *, hosts: int, policy: str = "easy", since_s: float = -math.inf
) -> pl.DataFrame:
    """Simulate a log, and at each submission carry the queue forward with requested times.

    `PREDICTED` with method ``carried forward``; ``wait_s`` is the simulated wait.
    """
    sim = batch.start(jobs, hosts=hosts, policy=policy)
    expected = pl.Series(batch.run_asking(sim, since_s))
    asked = batch.results(sim).with_columns(predicted_s=expected - pl.col("submit_s"))
    columns = {"method": pl.lit("carried forward"), "based_on": None, "category": None}
    return (
        asked.filter(pl.col("submit_s") >= since_s)
        .with_columns(**columns)
        .select(pl.col(name).cast(dtype) for name, dtype in PREDICTED.items())
    )


def score(predictions: pl.DataFrame, *, by: tuple[str, ...] = ()) -> pl.DataFrame:
    """Compare predicted with seen waits.

    One row per ``method``, ``jobs`` ("all", "that waited") and group: ``n_jobs``, ``n_predicted``, ``coverage_pct``
    (waited no longer than predicted), ``tightness`` (median of (1 + predicted) / (1 + wait)), ``mae_s``,
    ``within_two_pct`` (1 + predicted at most twice and at least half of 1 + wait), ``median_wait_s``,
    ``median_predicted_s``.
    """
    predicted = pl.col("predicted_s").is_not_null()
    ratio = (1 + pl.col("predicted_s")) / (1 + pl.col("wait_s"))
    covered = (pl.col("wait_s") <= pl.col("predicted_s")).filter(predicted)
    waited = predictions.filter(pl.col("wait_s") > 0).with_columns(jobs=pl.lit("that waited"))
    both = pl.concat([predictions.with_columns(jobs=pl.lit("all")), waited])
    return (
        both.group_by("method", "jobs", *by)
        .agg(
            n_jobs=pl.len(),
            n_predicted=predicted.sum(),
            coverage_pct=covered.mean() * 100,
            tightness=ratio.median(),
            mae_s=(pl.col("predicted_s") - pl.col("wait_s")).abs().mean(),
            within_two_pct=ratio.is_between(0.5, 2).filter(predicted).mean() * 100,
            median_wait_s=pl.col("wait_s").median(),
            median_predicted_s=pl.col("predicted_s").median(),
        )
        .sort("method", "jobs", *by)
    )


def _check(jobs: Any) -> pl.DataFrame:
    """Return the columns that are needed, or say everything that is wrong."""
    table: pl.DataFrame = nw.from_native(jobs).lazy().collect("polars").to_native()
    absent = [name for name in _NEEDED if name not in table.columns]
    if absent:
        raise DataError(f"jobs: no column {', '.join(absent)}; needed: {', '.join(_NEEDED)}")
    table = prepared({"jobs": table}, {"jobs": SeenJobs})["jobs"]
    tests = {
        f"{name} is no number": ~pl.col(name).is_finite()
        for name in ("submit_s", "start_s", "requested_s")
    } | {
        "start_s is before submit_s": pl.col("start_s") < pl.col("submit_s"),
        "hosts is below 1": pl.col("hosts") < 1,
        "requested_s is negative": pl.col("requested_s") < 0,
    }
    problems = []
    for what, test in tests.items():
        bad = table.filter(test)["job_id"]
        if len(bad):
            problems.append(f"{what} in {len(bad)} rows ({', '.join(map(str, bad.head(3)))})")
    if problems:
        raise DataError(f"jobs: {'; '.join(problems)}; mend or leave out those rows")
    return table
