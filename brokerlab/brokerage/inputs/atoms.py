"""The smallest job that a task allows, the longest run of its events, and how many jobs the input of a user task splits into.

Source: production-jobs.md 5; analysis-jobs.md 7.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from brokerlab.brokerage.inputs.data import (
    MOST_B,
    cputime_s,
    effective_mb,
    hs06,
    nevents,
    out_bytes,
    work_bytes,
)
from brokerlab.brokerage.inputs.frames import TASK, Schema, for_tasks, read, yes
from brokerlab.numerics import FloatArray, IntArray
from brokerlab.units import GB, MB

if TYPE_CHECKING:
    from brokerlab.brokerage.inputs.atom_kernel import Files, Jobs, Secondaries

MAX_FILES = 200
MAX_FILES_MERGE = 50

_RULES = (
    "nfilesperjob",
    "nfilespermergejob",
    "neventsperjob",
    "neventspermergejob",
    "nmaxfilesperjob",
    "nmaxfilespermergejob",
)
_TASKS: Schema = {"is_merging": pl.Boolean, **dict.fromkeys(_RULES, pl.Int64)}
_DATASETS: Schema = {"datasetname": pl.String}
_DATASET_FACTS: Schema = {
    **TASK,
    "position": pl.Int64,
    "datasetid": pl.Int64,
    "is_master": pl.Boolean,
    "ratio": pl.Float64,
    "nosplit": pl.Boolean,
}
_FILES: Schema = {"datasetname": pl.String, "lfn": pl.String}
_NUMBERS = ("fsize", "nevents", "startevent", "endevent")
_FILE_FACTS: Schema = {**TASK, **dict.fromkeys(("position", "fileid", *_NUMBERS), pl.Int64)}
_DATASET_ORDER = ["position", "datasetid", "datasetname"]
_FILE_ORDER = ["position", "fileid", "lfn", "startevent", "endevent", "fsize", "nevents"]


def atoms(
    tasks: pl.DataFrame, datasets: pl.DataFrame | None, files: pl.DataFrame | None
) -> pl.DataFrame:
    """Cut the files of each task into the smallest jobs that it allows and take the maximum of each measure.

    The number of files is nfilesperjob (nfilespermergejob); without it, and with neventsperjob
    (neventspermergejob), as many files as hold these events without a gap; without both, 1. Jobs by events
    have at most nmaxfilesperjob master files (200 if unset; merging: nmaxfilespermergejob, 50) and 1000 files
    in all, and count the events of event ranges in the master, else of files of the first split secondary
    dataset. **Where neither has events there is nothing to count, and only the limits on files cut.**
    A secondary dataset gives ``ratio`` (null: 1) files per master file, rounded up, until it is used up, or all in
    every job (``nosplit``). 0 files or events per job is no number: jobs then also end at 18.5 GB of input. Grouping by
    boundary, lumi block or field of the name is not looked at, nor are secondary datasets that begin again when they are used up.

    Datasets and files without ``jeditaskid`` are of every task. Datasets are ordered by ``position``, ``datasetid``, name, files
    by ``position``, ``fileid``, name, first event; of a task that stands twice the first row counts.

    Returns:
        One row per task, sorted by ``jeditaskid``: ``atom_size`` [B] i64 (all datasets, each name once per job),
        ``atom_size_effective`` [MB] f64, ``atom_nevents`` i64, ``max_consecutive_events`` i64 (these three: master
        only); 0 without files.

    Source: production-jobs.md 5.
    """
    from brokerlab.brokerage.inputs.atom_kernel import walk

    asked = number_tasks(tasks, _TASKS)
    parts = _parts(asked, datasets)
    rows = _rows(asked, parts, files)
    counts = np.zeros((asked.height, 3), dtype=np.int64)
    effective = np.zeros(asked.height)
    n_names = int(rows["name"].n_unique()) if rows.height else 0
    walk(_files(rows), *_jobs(asked, parts, rows), n_names, counts, effective)
    return asked.select("jeditaskid").with_columns(
        atom_size=pl.Series(counts[:, 0]),
        atom_size_effective=pl.Series(effective),
        atom_nevents=pl.Series(counts[:, 1]),
        max_consecutive_events=pl.Series(counts[:, 2]),
    )


def number_tasks(tasks: pl.DataFrame, columns: Schema) -> pl.DataFrame:
    """Return the tasks, sorted, with their number ``task``; of one that stands twice the first row counts."""
    once = read("tasks", tasks, TASK, columns).unique(
        "jeditaskid", keep="first", maintain_order=True
    )
    return once.sort("jeditaskid").with_row_index("task")


def ends_of(rows: pl.DataFrame, *by: str) -> pl.DataFrame:
    """Return where the rows of each group, which stand together, ``begin`` and ``end``."""
    row = pl.col("row")
    return rows.with_row_index("row").group_by(by).agg(begin=row.min(), end=row.max() + 1)


def ints(frame: pl.DataFrame, name: str, null: int = 0) -> IntArray:
    """Return a column as whole numbers, another one for null."""
    return frame[name].cast(pl.Int64).fill_null(null).to_numpy()


def _parts(asked: pl.DataFrame, datasets: pl.DataFrame | None) -> pl.DataFrame:
    """Return the datasets of the tasks in order: the master as part 0, secondaries from 1 on."""
    rows = for_tasks(read("datasets", datasets, _DATASETS, _DATASET_FACTS), asked)
    return (
        rows.unique(["jeditaskid", "datasetname"], keep="first", maintain_order=True)
        .join(asked.select("task", "jeditaskid"), on="jeditaskid")
        .sort("task", *_DATASET_ORDER, nulls_last=True)
        .with_columns(secondary=~yes("is_master"))
        .with_columns(
            part=pl.when("secondary").then(pl.col("secondary").cum_sum().over("task")).otherwise(0)
        )
        .select("task", "jeditaskid", "datasetname", "part", "ratio", "nosplit")
    )


def _rows(asked: pl.DataFrame, parts: pl.DataFrame, files: pl.DataFrame | None) -> pl.DataFrame:
    """Return the files by task and part, in their order, with measures and numbered names."""
    rows = for_tasks(read("files", files, _FILES, _FILE_FACTS), asked)
    placed = rows.join(
        parts.select("task", "part", "jeditaskid", "datasetname"),
        on=["jeditaskid", "datasetname"],
        how="inner",
    ).sort("task", "part", *_FILE_ORDER, nulls_last=True)
    return placed.select(
        "task",
        "part",
        *_NUMBERS,
        name=pl.col("lfn").rank("dense") - 1,
        effective_mb=effective_mb(),
        events=nevents(),
    )


def _files(rows: pl.DataFrame) -> Files:
    from brokerlab.brokerage.inputs.atom_kernel import UNKNOWN, Files

    return Files(
        lfn=ints(rows, "name"),
        size_b=ints(rows, "fsize"),
        effective_mb=rows["effective_mb"].to_numpy(),
        events=ints(rows, "events", 1),
        start=ints(rows, "startevent", UNKNOWN),
        last=ints(rows, "endevent", UNKNOWN),
        nevents=ints(rows, "nevents", UNKNOWN),
    )


def _jobs(asked: pl.DataFrame, parts: pl.DataFrame, rows: pl.DataFrame) -> tuple[Secondaries, Jobs]:
    """Return where the files of each dataset and task stand, and how the task is cut."""
    from brokerlab.brokerage.inputs.atom_kernel import Jobs, Secondaries

    places, cutting = ends_of(rows, "task", "part"), _cutting()
    masters = asked.join(places.filter(pl.col("part") == 0), on="task", how="left").sort("task")
    masters = masters.with_columns(**cutting)
    secondaries = (
        parts.filter(pl.col("part") > 0)
        .join(places, on=["task", "part"], how="inner")
        .sort("task", "part")
    )
    tasks = np.arange(asked.height)
    owner = secondaries["task"].to_numpy()

    ratio: FloatArray = secondaries["ratio"].fill_null(1.0).to_numpy()
    return (
        Secondaries(
            begin=ints(secondaries, "begin"),
            end=ints(secondaries, "end"),
            ratio=ratio,
            whole=secondaries["nosplit"].fill_null(value=False).to_numpy(),
        ),
        Jobs(
            master_begin=ints(masters, "begin"),
            master_end=ints(masters, "end"),
            first_secondary=np.searchsorted(owner, tasks, side="left").astype(np.int64),
            end_secondary=np.searchsorted(owner, tasks, side="right").astype(np.int64),
            **{name: ints(masters, name) for name in cutting},
        ),
    )


def _cutting() -> dict[str, pl.Expr]:
    """Return the fixed number of files (0 = none), and the limits on files and events of jobs without it."""

    def rule(name: str) -> pl.Expr:
        merging = name.replace("perjob", "permergejob")
        return pl.when(yes("is_merging")).then(merging).otherwise(name)

    files, events = rule("nfilesperjob"), rule("neventsperjob")
    default = pl.when(yes("is_merging")).then(MAX_FILES_MERGE).otherwise(MAX_FILES)
    return {
        "fixed_files": pl.coalesce(files, pl.when(events.is_null()).then(1)).fill_null(0),
        "max_files": pl.coalesce(rule("nmaxfilesperjob"), default),
        "max_events": pl.when(files.is_null()).then(events).fill_null(0),
    }


MAX_FILES_IN_TOTAL = 1000
RESERVE_MB, SCOUT_LIMIT_MB, LIMIT_MB = 1500, 50_000, 500_000
REFERENCE_POWER = 10
"""Core power with which events turn into wall time [HS06/core]."""

_WHOLE = (
    "outdiskcount", "workdiskcount", "corecount", "nfilesperjob", "nmaxfilesperjob", "ngbperjob",
)  # fmt: skip
_USER_TASKS: Schema = {
    **dict.fromkeys(_WHOLE, pl.Int64),
    **dict.fromkeys(("cputime", "cpuefficiency", "basewalltime"), pl.Float64),
    **dict.fromkeys(("outdiskunit", "workdiskunit", "cputimeunit"), pl.String),
    "usescout": pl.Boolean,
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

    asked = number_tasks(tasks, _USER_TASKS)
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
    work = work_bytes(adds=True)
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
        "by_time": hs06() & ~fixed,
    }


def _masters(
    asked: pl.DataFrame, datasets: pl.DataFrame | None, files: pl.DataFrame | None
) -> pl.DataFrame:
    """Return the master files in order, each with the files of secondary datasets that come with it."""
    key = ["jeditaskid", "datasetname"]
    given = read("datasets", datasets, _DATASETS, _DATASET_FACTS)
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
        "task", "jeditaskid", out_b=out_bytes(), cpu_s=cputime_s(),
        cores=pl.max_horizontal(pl.col("corecount").fill_null(1), 1).cast(pl.Float64),
        power=pl.lit(float(REFERENCE_POWER)), percent=pl.lit(100.0),
        efficiency=pl.col("cpuefficiency").fill_null(90).cast(pl.Float64),
    )  # fmt: skip
    rows = pl.DataFrame(about.get_columns()).join(placed.filter("master"), on="jeditaskid")
    time = (
        pl.col("cpu_s") * nevents() / pl.col("cores") / pl.col("power")
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
            output_b=(pl.col("out_b") * effective_mb())
            .clip(upper_bound=MOST_B // 2)
            .cast(pl.Int64),
            walltime_s=pl.when(time.is_finite()).then(time).fill_null(0.0).cast(pl.Int64),
        )
    )
