"""Batch logs of a folder: every predictor on the same jobs, and where the bound of like jobs is exceeded."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from brokerlab.errors import InsufficientDataError
from brokerlab.estimators.walltime.comparison import (
    all_predictors,
    compare_predicted,
    second_half,
)
from brokerlab.estimators.walltime.likejobs import LikeJobs
from brokerlab.estimators.walltime.online import predict_log, usable_jobs
from brokerlab.estimators.walltime.running import ROUNDING
from brokerlab.units import DAY_S
from brokerlab.workflows import swf

PATTERN = "swf-logs/*.swf.gz"
MEDIAN, BOUND = LikeJobs().names
"""Names of the median and of the bound of like jobs."""
LEVEL = LikeJobs().levels[0]
"""Level of that bound [1]."""
MANY_JOBS = 100
"""Scored jobs from which on the miss rate of a single user is looked at."""
EXPERIENCE = {"1 to 5": (0, 5), "6 to 50": (5, 50), "51 or more": (50, None)}
"""Which job of its user a job is: earlier ones from, to below."""
WORST_USER = "worst user"
NEAR = 0.01
"""A bound is kept whose misses are so near what was asked for [share of jobs]."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Log:
    """A log as it is scored.

    Attributes:
        name: Of the file.
        jobs: As :func:`online.usable_jobs` takes them, the first by submission.
        n_read: Jobs in the file.
        knows_waits: Whether the log says how long jobs waited; else they start when they are submitted.
    """

    name: str
    jobs: pl.DataFrame
    n_read: int
    knows_waits: bool


@dataclass(frozen=True, kw_only=True, eq=False)
class LogComparison:
    """All predictors on the later half of every log.

    Attributes:
        methods: One row per log and method: ``log, users, days`` (scored) and the columns of
            :func:`comparison.compare`.
        strata: ``log, stratum`` (a key of `EXPERIENCE`, or `WORST_USER`: the one with most misses), ``user`` (null: all), ``jobs,
            users, under`` (share beyond the bound), ``ratio`` (mean absolute error of the median / that of the best simple
            rule; null where that is 0).
        campaigns: One row per log: ``log, user, jobs, largest`` (misses of the user and day with most), ``missed`` (of all).
    """

    methods: pl.DataFrame
    strata: pl.DataFrame
    campaigns: pl.DataFrame

    def row(self, log: str, method: str) -> dict[str, Any]:
        """Return the row of a method on a log."""
        return self.methods.filter(log=log, method=method).row(0, named=True)

    def each(self, method: str) -> pl.DataFrame:
        """Return the rows of a method, log by log."""
        return self.methods.filter(method=method)

    @property
    def kept(self) -> pl.DataFrame:
        """The rows of the bound of like jobs on logs where its misses are within a hundredth of what was asked for."""
        return self.each(BOUND).filter((pl.col("under") - (1 - LEVEL)).abs() <= NEAR)

    @property
    def guesses(self) -> pl.DataFrame:
        """``methods`` that are no bounds, the least ``ratio`` first, with their ``role``: ``proposed`` (like jobs), ``simple rule``."""
        method = pl.col("method")
        rows = self.methods.filter(method != BOUND, ~method.str.contains("conformal"))
        role = pl.when(method == MEDIAN).then(pl.lit("proposed")).otherwise(pl.lit("simple rule"))
        return rows.sort("ratio", "method").with_columns(role=role)


def read_logs(folder: Path, *, max_jobs: int) -> tuple[dict[str, Log], dict[str, str]]:
    """Read every log of a folder whose jobs have a user, a run time and a request.

    Args:
        folder: Of real data; logs are ``swf-logs/*.swf.gz`` in it.
        max_jobs: Jobs taken of a log, the first by submission.

    Returns:
        Logs by name, and why others were left out, by name.

    Raises:
        DataError: A file cannot be read.
    """
    logs: dict[str, Log] = {}
    left_out: dict[str, str] = {}
    for path in sorted(folder.glob(PATTERN)):
        jobs = swf.read(path).jobs
        name = path.name.removesuffix(".swf.gz")
        knows_waits = jobs["wait_s"].null_count() < jobs.height
        timed = jobs if knows_waits else jobs.with_columns(wait_s=pl.lit(0.0))
        first = timed.sort("submit_s", maintain_order=True).head(max_jobs)
        try:
            usable_jobs(first)
        except InsufficientDataError as why:
            left_out[name] = str(why)
            continue
        logs[name] = Log(name=name, jobs=first, n_read=jobs.height, knows_waits=knows_waits)
    return logs, left_out


def compare_logs(logs: Mapping[str, Log], *, n_boot: int = 2000, seed: int = 0) -> LogComparison:
    """Predict every log by all methods, and compare them on its later half.

    Args:
        logs: By name, at least one.
        n_boot: Draws of users for intervals.
        seed: Of the draws.
    """
    methods, strata, campaigns = [], [], []
    for name, log in logs.items():
        predicted = predict_log(log.jobs, all_predictors())
        compared = compare_predicted(predicted, n_boot=n_boot, seed=seed)
        half = second_half(predicted)
        first_s, last_s = half["submit_s"].min(), half["submit_s"].max()
        log_name = pl.lit(name).alias("log")
        methods.append(
            compared.select(
                log_name,
                pl.lit(half["user"].n_unique()).alias("users"),
                pl.lit((last_s - first_s) / DAY_S).alias("days"),  # type: ignore[operator]
                pl.all(),
            )
        )
        scored = _scored_jobs(predicted, compared["best_peer"][0])
        strata.append(_strata(scored).select(log_name, pl.all()))
        campaigns.append(_worst_day(scored).select(log_name, pl.all()))
    return LogComparison(
        methods=pl.concat(methods), strata=pl.concat(strata), campaigns=pl.concat(campaigns)
    )


def _scored_jobs(predicted: pl.DataFrame, best: str) -> pl.DataFrame:
    """Return scored jobs with two errors, misses, and how many jobs the user had submitted before."""
    run = pl.col("run_s")
    counted = predicted.with_columns(earlier=pl.int_range(pl.len()).over("user"))
    return second_half(counted).select(
        "user",
        "submit_s",
        "earlier",
        error=(pl.col(MEDIAN) - run).abs(),
        best_error=(pl.col(best) - run).abs(),
        missed=run > pl.col(BOUND) * ROUNDING,
    )


def _strata(scored: pl.DataFrame) -> pl.DataFrame:
    """Sum up by how many jobs of the user came before, and of the user with most misses."""
    earlier = pl.col("earlier")
    parts = [
        (name, None, scored.filter(earlier >= least, earlier < (below or 2**62)))
        for name, (least, below) in EXPERIENCE.items()
    ]
    users = scored.group_by("user").agg(pl.len().alias("n"), pl.col("missed").mean())
    many = users.filter(pl.col("n") >= MANY_JOBS).sort("missed", "user", descending=[True, False])
    parts += [(WORST_USER, user, scored.filter(user=user)) for user in many["user"].head(1)]
    schema = {
        "stratum": pl.String,
        "user": pl.Int64,
        "jobs": pl.Int64,
        "users": pl.Int64,
        "under": pl.Float64,
        "ratio": pl.Float64,
    }
    rows = [_summed(name, user, part) for name, user, part in parts if part.height]
    return pl.DataFrame(rows, schema=schema)


def _summed(name: str, user: int | None, part: pl.DataFrame) -> dict[str, Any]:
    """Return one row of the strata."""
    ours, best = float(part["error"].sum()), float(part["best_error"].sum())
    return {
        "stratum": name,
        "user": user,
        "jobs": part.height,
        "users": part["user"].n_unique(),
        "under": part["missed"].mean(),
        "ratio": ours / best if best > 0 else None,
    }


def _worst_day(scored: pl.DataFrame) -> pl.DataFrame:
    """Return how many of all misses are of one user on one day."""
    by_day = scored.group_by("user", day=pl.col("submit_s") // DAY_S).agg(
        pl.col("missed").sum().cast(pl.Int64), jobs=pl.len().cast(pl.Int64)
    )
    top = by_day.sort("missed", "user", "day", descending=[True, False, False]).head(1)
    return top.select(
        "user", "jobs", largest="missed", missed=pl.lit(int(scored["missed"].sum()), pl.Int64)
    )
