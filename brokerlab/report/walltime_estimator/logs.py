"""Batch logs: every way to predict on the same jobs, and where the bound is exceeded."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from brokerlab.errors import InsufficientDataError
from brokerlab.estimators.walltime import (
    LikeJobs,
    all_predictors,
    compare_predicted,
    predict_log,
    second_half,
    usable_jobs,
)
from brokerlab.estimators.walltime.running import ROUNDING
from brokerlab.workflows import swf

PATTERN = "swf-logs/*.swf.gz"
MEDIAN, BOUND = LikeJobs().names
LEVEL = LikeJobs().levels[0]
MANY_JOBS = 100
"""Scored jobs of a user from which on the user is told by itself."""
DAY_S = 86400.0
EARLIER = {"the first five of a user": (0, 5), "the next 45": (5, 50), "later ones": (50, None)}
"""Jobs by how many the user had submitted before: from, to below."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Log:
    """A log as it is scored.

    Attributes:
        name: Of the page.
        jobs: As :func:`walltime.usable_jobs` takes them, the first by submission.
        found: Jobs in the file.
        waits: Whether the log knows how long jobs waited; else they start when they come.
    """

    name: str
    jobs: pl.DataFrame
    found: int
    waits: bool


@dataclass(frozen=True, kw_only=True, eq=False)
class LogStudy:
    """What logs showed.

    Attributes:
        logs: By name.
        table: One row per log and method: ``log``, users and days of it, and the columns of
            :func:`walltime.compare`.
        strata: ``log, stratum, jobs, users, under`` (share beyond the bound), ``ratio`` (mean absolute error of the median over that
            of the best rule).
        campaigns: One row per log: ``log, missed, largest`` (misses of the user and day with most), ``user, jobs`` (of it).
    """

    logs: Mapping[str, Log]
    table: pl.DataFrame
    strata: pl.DataFrame
    campaigns: pl.DataFrame

    def of(self, log: str, method: str) -> dict[str, Any]:
        """Return the row of a method on a log."""
        return self.table.filter(log=log, method=method).row(0, named=True)

    def best(self, log: str) -> dict[str, Any]:
        """Return the row of the best simple rule on a log."""
        return self.of(log, self.table.filter(log=log)["best_peer"][0])


def read_logs(folder: Path, *, max_jobs: int) -> tuple[dict[str, Log], dict[str, str]]:
    """Read every log that tells whose jobs ran for how long, and what they asked for.

    Args:
        folder: Of real data.
        max_jobs: Jobs taken of a log, the first by submission.

    Returns:
        Logs by name, and why others were left out.
    """
    logs: dict[str, Log] = {}
    without: dict[str, str] = {}
    for path in sorted(folder.glob(PATTERN)):
        jobs = swf.read(path).jobs
        name = path.name.removesuffix(".swf.gz")
        waits = jobs["wait_s"].null_count() < jobs.height
        known = jobs if waits else jobs.with_columns(wait_s=pl.lit(0.0))
        known = known.sort("submit_s", maintain_order=True).head(max_jobs)
        try:
            usable_jobs(known)
        except InsufficientDataError as why:
            without[name] = str(why)
            continue
        logs[name] = Log(name=name, jobs=known, found=jobs.height, waits=waits)
    return logs, without


def study_logs(logs: Mapping[str, Log], *, n_boot: int, seed: int) -> LogStudy:
    """Predict every log by all methods, and sum up.

    Args:
        logs: By name, at least one.
        n_boot: Draws of users for intervals.
        seed: Of the draws.
    """
    tables, strata, campaigns = [], [], []
    for name, log in logs.items():
        predicted = predict_log(log.jobs, all_predictors())
        table = compare_predicted(predicted, n_boot=n_boot, seed=seed)
        half = second_half(predicted)
        span = (half["submit_s"].max() - half["submit_s"].min()) / DAY_S  # type: ignore[operator]
        head = (pl.lit(name).alias("log"), pl.lit(half["user"].n_unique()).alias("users"))
        tables.append(table.select(*head, pl.lit(span).alias("days"), pl.all()))
        marked = _marked(predicted, table["best_peer"][0])
        strata.append(_strata(marked).select(head[0], pl.all()))
        campaigns.append(_campaign(marked).select(head[0], pl.all()))
    return LogStudy(
        logs=logs, table=pl.concat(tables), strata=pl.concat(strata), campaigns=pl.concat(campaigns)
    )


def _marked(predicted: pl.DataFrame, best: str) -> pl.DataFrame:
    """Return scored jobs with errors, misses, and how many jobs the user had submitted before."""
    run = pl.col("run_s")
    earlier = predicted.with_columns(earlier=pl.int_range(pl.len()).over("user"))
    return second_half(earlier).select(
        "user",
        "submit_s",
        "earlier",
        ours=(pl.col(MEDIAN) - run).abs(),
        theirs=(pl.col(best) - run).abs(),
        missed=run > pl.col(BOUND) * ROUNDING,
    )


def _strata(marked: pl.DataFrame) -> pl.DataFrame:
    """Sum up by how much is known of the user, and user by user where there are many jobs."""
    parts = {
        name: marked.filter(pl.col("earlier").is_between(low, high or 2**62, closed="left"))
        for name, (low, high) in EARLIER.items()
    }
    users = marked.group_by("user").agg(pl.len(), pl.col("missed").mean())
    many = users.filter(pl.col("len") >= MANY_JOBS).sort("missed", "user", descending=[True, False])
    if many.height:
        worst = many["user"][0]
        parts[f"user {worst}, the one missed most (of {many.height} with {MANY_JOBS} or more jobs)"] = marked.filter(user=worst)  # fmt: skip
    rows = [_summed(name, part) for name, part in parts.items() if part.height]
    schema = {"stratum": pl.String, "jobs": pl.Int64, "users": pl.Int64, "under": pl.Float64, "ratio": pl.Float64}  # fmt: skip
    return pl.DataFrame(rows, schema=schema)


def _summed(name: str, part: pl.DataFrame) -> dict[str, Any]:
    ours, theirs = (float(part[each].sum()) for each in ("ours", "theirs"))
    return {
        "stratum": name,
        "jobs": part.height,
        "users": part["user"].n_unique(),
        "under": part["missed"].mean(),
        "ratio": ours / theirs if theirs > 0 else None,
    }


def _campaign(marked: pl.DataFrame) -> pl.DataFrame:
    """Return how many of all misses are of one user on one day."""
    by_day = marked.group_by("user", day=pl.col("submit_s") // DAY_S).agg(
        pl.col("missed").sum().cast(pl.Int64), jobs=pl.len().cast(pl.Int64)
    )
    top = by_day.sort("missed", "user", "day", descending=[True, False, False]).head(1)
    return top.select(
        "user", "jobs", largest="missed", missed=pl.lit(int(marked["missed"].sum()), pl.Int64)
    )
