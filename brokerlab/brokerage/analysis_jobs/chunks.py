"""How many jobs the input of a user task splits into (analysis-jobs.md 7)."""

from __future__ import annotations

import numpy as np
import polars as pl

from brokerlab.brokerage.inputs import units
from brokerlab.brokerage.inputs.atoms import ends_of, ints, number_tasks
from brokerlab.brokerage.inputs.frames import TASK, Schema, for_tasks, read, yes
from brokerlab.units import GB, MB

MAX_FILES, MAX_FILES_IN_TOTAL = 200, 1000
RESERVE_MB, SCOUT_LIMIT_MB, LIMIT_MB = 1500, 50_000, 500_000
REFERENCE_POWER = 10
"""Core power with which events turn into wall time [HS06/core]."""

_INTEGERS = (
    "outdiskcount", "workdiskcount", "corecount", "nfilesperjob", "nmaxfilesperjob", "ngbperjob",
)  # fmt: skip
_TASKS: Schema = {
    **dict.fromkeys(_INTEGERS, pl.Int64),
    **dict.fromkeys(("cputime", "cpuefficiency", "basewalltime"), pl.Float64),
    **dict.fromkeys(("outdiskunit", "workdiskunit", "cputimeunit"), pl.String),
    "usescout": pl.Boolean,
}
_DATASETS: Schema = {"datasetname": pl.String}
_FILES: Schema = {"datasetname": pl.String, "lfn": pl.String}
_FILE_FACTS: Schema = {
    **TASK,
    **dict.fromkeys(("fsize", "nevents", "startevent", "endevent"), pl.Int64),
}


def n_jobs(
    tasks: pl.DataFrame, datasets: pl.DataFrame | None, files: pl.DataFrame | None
) -> pl.DataFrame:
    """Return N_j, the number of jobs that each chunk splits into; the first row of a task counts, files come in their order.

    Null ``fsize`` is 0; datasets and files without ``jeditaskid`` are of every task. Splitting by lumi block, boundary and
    event is not looked at.

    Returns:
        ``jeditaskid, n_jobs_to_submit`` (i64), sorted; 0 without files.

    Source:
        analysis-jobs.md 7.

    Example:
        >>> files = pl.DataFrame({"datasetname": "D", "lfn": ["a", "b", "c"], "fsize": [10, 20, 40]})
        >>> datasets = pl.DataFrame({"datasetname": ["D"], "is_master": [True]})
        >>> task = pl.DataFrame({"jeditaskid": [1], "nfilesperjob": [2]})
        >>> n_jobs(task, datasets, files).rows()
        [(1, 2)]
    """
    from brokerlab.brokerage.inputs.atom_kernel import Limits, MasterFiles, count_jobs

    asked = number_tasks(tasks, _TASKS)
    rows = _masters(asked, datasets, files)
    limits = (
        asked.join(ends_of(rows, "task"), on="task", how="left").sort("task").select(**_limits())
    )

    result = np.zeros(asked.height, dtype=np.int64)
    whole = ("begin", "end", "max_files", "max_all", "work_b", "limit_b")
    count_jobs(
        MasterFiles(*(ints(rows, name) for name in MasterFiles._fields)),
        Limits(
            base_s=limits["base_s"].to_numpy(), by_time=limits["by_time"].to_numpy(),
            **{name: ints(limits, name) for name in whole},
        ),
        result,
    )  # fmt: skip
    return asked.select("jeditaskid", n_jobs_to_submit=pl.Series(result))


def _limits() -> dict[str, pl.Expr]:
    """Return the limits of a job; with nfilesperjob the number of files alone."""
    fixed = pl.col("nfilesperjob").is_not_null()
    work = units.work_bytes(adds=True)
    by_size = pl.col("ngbperjob") * GB + RESERVE_MB * MB + work
    every = pl.when(yes("usescout")).then(SCOUT_LIMIT_MB * MB).otherwise(LIMIT_MB * MB)
    free = pl.lit(2**62, dtype=pl.Int64)
    return {
        "begin": pl.col("begin"),
        "end": pl.col("end"),
        "max_files": pl.coalesce("nfilesperjob", "nmaxfilesperjob", pl.lit(MAX_FILES)),
        "max_all": pl.when(fixed).then(free).otherwise(MAX_FILES_IN_TOTAL),
        "work_b": work,
        "limit_b": pl.when(fixed).then(free).otherwise(pl.coalesce(by_size, every)),
        "base_s": pl.col("basewalltime").fill_null(0.0).cast(pl.Float64),
        "by_time": units.hs06() & ~fixed,
    }


def _masters(
    asked: pl.DataFrame, datasets: pl.DataFrame | None, files: pl.DataFrame | None
) -> pl.DataFrame:
    """Return the master files in order, each with the files of secondary datasets that come with it."""
    key = ["jeditaskid", "datasetname"]
    given = read("datasets", datasets, _DATASETS, {**TASK, "is_master": pl.Boolean})
    parts = for_tasks(given, asked).select(*key, master=yes("is_master")).unique(
        key, keep="first", maintain_order=True
    )  # fmt: skip
    placed = (
        for_tasks(read("files", files, _FILES, _FILE_FACTS), asked)
        .with_row_index("stored")
        .join(parts, on=key)
        .sort("stored")
        .with_columns(nth=pl.int_range(pl.len()).over(key))
    )
    more = placed.filter(~pl.col("master")).group_by("jeditaskid", "nth").agg(
        secondary_b=pl.col("fsize").fill_null(0).sum(), n_secondary=pl.len().cast(pl.Int64)
    )  # fmt: skip
    about = asked.select(
        "task", "jeditaskid", out_b=units.out_bytes(), cpu_s=units.cputime_s(),
        cores=pl.max_horizontal(pl.col("corecount").fill_null(1), 1).cast(pl.Float64),
        power=pl.lit(float(REFERENCE_POWER)), percent=pl.lit(100.0),
        efficiency=pl.col("cpuefficiency").fill_null(90).cast(pl.Float64),
    )  # fmt: skip
    rows = pl.DataFrame(about.get_columns()).join(placed.filter("master"), on="jeditaskid")
    time = (
        pl.col("cpu_s") * units.nevents() / pl.col("cores") / pl.col("power")
        / (pl.col("efficiency") / pl.col("percent"))
    )  # fmt: skip
    return (
        rows.join(more, on=["jeditaskid", "nth"], how="left")
        .sort("task", "stored")
        .select(
            "task",
            "secondary_b",
            "n_secondary",
            size_b=pl.col("fsize").fill_null(0),
            output_b=(pl.col("out_b") * units.effective_mb())
            .clip(upper_bound=units.MOST_B // 2)
            .cast(pl.Int64),
            walltime_s=pl.when(time.is_finite()).then(time).fill_null(0.0).cast(pl.Int64),
        )
    )
