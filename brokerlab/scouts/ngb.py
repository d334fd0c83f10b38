"""nGBPerJob from the jobs that defined outDiskCount (docs/rules/scouts.md 5.10)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import narwhals.stable.v2 as nw
import polars as pl

from brokerlab.scouts.parameters import Jobs, Percentile
from brokerlab.scouts.rules import ScoutRules
from brokerlab.scouts.tables import JOBS_FILES_COLUMNS, narrow, raise_for
from brokerlab.units import GB, KB, MB

SAFETY_BYTES = 300 * MB
POOL_BYTES = 1500 * MB
MAX_GB = 100


@dataclass(frozen=True)
class Origin:
    """One job that defined outDiskCount, and what its task asks for."""

    out_total: int  # bytes of all outputs, logs excluded
    out_big: int  # bytes of the largest output dataset
    target_gb: int  # wanted size of the largest output, ``TN`` [GB]
    outdiskcount: int  # new outDiskCount [kB per event or MB]
    workdiskcount: int  # new workDiskCount [MB]
    per_event: bool  # the unit of outDiskCount is per event
    input_mb: float | None  # effective primary input [MB]
    n_events: int | None  # effective events
    inputfilebytes: int | None  # all input of the job [B]
    plain_bytes: int  # plain size of the primary input [B]


def gb_per_job(origin: Origin, rules: ScoutRules) -> int | None:
    """Compute nGBPerJob from one origin; null where something needed is missing.

    Source: docs/rules/scouts.md 5.10.

    Example:
        >>> job = Origin(4 * GB, 2 * GB, 5, 100, 2000, False, 1000.0, 10, 10**9, 10**9)
        >>> gb_per_job(job, ScoutRules("production"))
        100
    """
    if not origin.out_total or not origin.out_big:
        return None
    expected = origin.out_total * origin.target_gb * GB // origin.out_big
    steps = expected // (origin.outdiskcount * 1024 or 1)
    if origin.per_event:
        needed = origin.input_mb, origin.inputfilebytes, origin.n_events
        if None in needed or not origin.n_events:
            return None
        own = (origin.input_mb or 0.0) * (MB if rules.ng_input_in_bytes else 1)
        whole = own + (origin.inputfilebytes or 0) - origin.plain_bytes
        read = whole * steps // origin.n_events
        work = origin.workdiskcount * MB + SAFETY_BYTES
        total = expected + read + work - POOL_BYTES
    else:
        total = expected + steps * MB - POOL_BYTES
    size = total / GB
    number = int(1 if size <= 0 else min(size, MAX_GB))
    return max(number, 1) if rules.ng_at_least_one else number


def new_ng(origins: pl.DataFrame, outputs: Any, rules: ScoutRules) -> pl.DataFrame:
    """Compute nGBPerJob of every task that sets a target size of its output.

    ``jeditaskid, newng`` [GB] of the tasks where it is set. The last valid origin wins.
    """
    sized = origins.join(_output_sizes(outputs, origins["pandaid"]), on="pandaid", how="inner")
    result = [
        (row.pop("jeditaskid"), row.pop("order"), gb_per_job(Origin(**row), rules))
        for row in sized.drop("pandaid").iter_rows(named=True)
    ]
    schema = {"jeditaskid": pl.Int64, "order": pl.Int64, "newng": pl.Int64}
    return (
        pl.DataFrame(result, schema=schema, orient="row")
        .drop_nulls("newng")
        .sort("jeditaskid", "order")
        .group_by("jeditaskid")
        .agg(pl.col("newng").last())
    )


def origins_of(tasks: pl.DataFrame, jobs: Jobs, outdisk: Percentile) -> pl.DataFrame:
    """Return one row per (task with a target size, origin), lower origin first."""
    per_task = tasks.select(
        "jeditaskid",
        target_gb="TN",
        outdiskcount="outdiskcount",
        workdiskcount="workdiskcount",
        per_event="outdisk_per_event",
    )
    parts = []
    for order, rows in enumerate((outdisk.lower_row, outdisk.upper_row)):
        chosen = per_task.with_columns(job=pl.Series(rows), order=pl.lit(order))
        parts.append(
            chosen.filter(
                (pl.col("job") >= 0)
                & (pl.col("target_gb").fill_null(0) != 0)
                & pl.col("workdiskcount").is_not_null()
            )
        )
    chosen = pl.concat(parts).unique(["jeditaskid", "job"], keep="first", maintain_order=True)
    job = jobs.frame.select(
        "pandaid", "input_mb", "n_events", "inputfilebytes", "plain_bytes"
    ).with_columns(job=pl.int_range(pl.len(), dtype=pl.Int64))
    return chosen.join(job, on="job", how="inner").drop("job")


def _output_sizes(outputs: Any, jobs: pl.Series) -> pl.DataFrame:
    """Return the bytes of all outputs and of the largest output dataset of each job."""
    problems: list[str] = []
    lazy = narrow(outputs, "jobs_files", JOBS_FILES_COLUMNS, problems)
    raise_for(problems)
    per_dataset = (
        lazy.filter((nw.col("type") == "output") & nw.col("pandaid").is_in(jobs.unique().to_list()))
        .group_by("pandaid", "dataset")
        .agg(nw.col("fsize").sum().cast(nw.Int64).alias("bytes"))
    )
    sizes: pl.DataFrame = (
        per_dataset.group_by("pandaid")
        .agg(
            nw.col("bytes").sum().cast(nw.Int64).alias("out_total"),
            nw.col("bytes").max().alias("out_big"),
        )
        .collect("polars")
        .to_native()
    )
    return sizes


def jobs_of_files(
    sizes: Sequence[int],
    events: Sequence[int],
    *,
    limit_gb: float,
    outdiskcount: int,
    workdiskcount: int,
    per_event: bool,
) -> list[int]:
    """Deal the input files of a task to jobs whose expected disk usage is less than nGBPerJob.

    A job takes files in order as long as input, output and work directory together stay below the limit; a file that
    does not fit even alone makes a job by itself.

    Source: 003, nGBPerJob.
    """
    numbers: list[int] = []
    job, used = 0, 0.0
    for size, n_events in zip(sizes, events, strict=True):
        amount = n_events if per_event else size / MB
        need = size + outdiskcount * KB * amount
        full = used + need + workdiskcount * MB >= limit_gb * GB
        if numbers and numbers[-1] == job and full:
            job, used = job + 1, 0.0
        numbers.append(job)
        used += need
    return numbers
