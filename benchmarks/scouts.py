"""All scout parameters of an archive, against baselines on the same Parquet files, whose rows are shuffled.

``ours``      ``scouts.estimate`` on the files as an archive gives them: every parameter, tags and counts of every task.
``bare``      a bare DuckDB join of jobs, summed files and queues with seven aggregates like those of the
              scouts per task: no rule, no null, no tag.
``floor``     a bare DuckDB ``quantile_cont ... GROUP BY`` over two columns of ``jobs``: no join, no rule.
``pandas``    what an analyst writes: join, two derived columns, ``groupby.quantile`` (four parameters).
``per_task``  a plain Python function called once per task, as the deployed system works; measured on a
              sample of tasks with the rows at hand and scaled to all of them.

What they import is there before they are measured; ``benchmarks.commands`` measures how long brokerlab takes to start.
"""

from __future__ import annotations

import time
from pathlib import Path

import duckdb
import numpy as np
import pandas as pd
import polars as pl

from benchmarks.sides import Figures, Line, main, million
from brokerlab import scouts

SIZE = 5_000_000
JOBS_PER_TASK = 100
SAMPLE_TASKS = 500
PART_JOBS = 2_000_000


def make(folder: Path, jobs: int, seed: int = 1) -> None:
    """Write random tables of the shapes that scouts read; not meant to look like PanDA."""
    rng = np.random.default_rng(seed)
    n_tasks = max(jobs // JOBS_PER_TASK, 1)
    queues = [f"QUEUE_{i}" for i in range(200)]
    pl.DataFrame(
        {
            "panda_queue": queues,
            "atlas_site": queues,
            "corepower": rng.uniform(8, 20, 200).round(2),
            "maxinputsize": 10_000,
            "direct_access_lan": True,
        }
    ).write_parquet(folder / "queues.parquet")
    ids = np.arange(1, n_tasks + 1)
    pl.DataFrame(
        {
            "jeditaskid": ids,
            "prodsourcelabel": "managed",
            "status": "done",
            "splitrule": "US=3,SS=5",
            "ramunit": "MBPerCore",
            "baseramcount": 500,
            "outdiskunit": "kBPerEvent",
            "cputimeunit": "HS06sPerEvent",
            "cpuefficiency": 90,
            "basewalltime": 600,
        }
    ).write_parquet(folder / "tasks.parquet")
    pl.DataFrame(
        {
            "jeditaskid": ids,
            "datasetid": ids,
            "type": "input",
            "masterid": pl.Series([None] * n_tasks, dtype=pl.Int64),
            "nfiles": JOBS_PER_TASK,
            "nfilesused": JOBS_PER_TASK,
            "nfilesfinished": JOBS_PER_TASK,
        }
    ).write_parquet(folder / "datasets.parquet")
    for table in ("jobs", "files"):
        (folder / table).mkdir()
    shuffled = rng.permutation(n_tasks * JOBS_PER_TASK)
    for part, first in enumerate(range(0, shuffled.size, PART_JOBS)):
        _write_part(folder, part, shuffled[first : first + PART_JOBS], rng, queues)


def _write_part(
    folder: Path, part: int, job: np.ndarray, rng: np.random.Generator, queues: list[str]
) -> None:
    n, pandaid, task = job.size, job + 1, job // JOBS_PER_TASK + 1
    wall = np.exp(rng.normal(8.5, 0.3, n)).astype(np.int64)
    start = np.datetime64("2026-03-01", "us") + (task * 7).astype("timedelta64[s]")
    end = start + wall.astype("timedelta64[s]")
    events = rng.integers(500, 2000, n)
    size = rng.integers(10**8, 10**10, n)
    pl.DataFrame(
        {
            "pandaid": pandaid,
            "jeditaskid": task,
            "jobstatus": "finished",
            "computingsite": np.array(queues)[rng.integers(0, 200, n)],
            "creationtime": start,
            "starttime": start,
            "endtime": end,
            "modificationtime": end,
            "cpuconsumptiontime": wall * 7,
            "actualcorecount": 8,
            "corecount": 8,
            "jobmetrics": pl.select(
                pl.format("coreCount=8 workDirSize={}", pl.Series(rng.integers(10**9, 10**10, n)))
            ).to_series(),
            "maxpss": (np.exp(rng.normal(16.5, 0.1, n))).astype(np.int64),
            "nevents": events,
            "outputfilebytes": rng.integers(10**8, 10**9, n),
            "inputfilebytes": size,
            "totrbytes": rng.integers(10**6, 10**7, n),
            "totwbytes": rng.integers(10**6, 10**7, n),
            "memory_leak": rng.integers(-100, 100, n),
            "memory_leak_x2": rng.uniform(0, 1000, n),
        }
    ).write_parquet(folder / "jobs" / f"part-{part:05d}.parquet", row_group_size=250_000)
    pl.DataFrame(
        {
            "jeditaskid": task,
            "datasetid": task,
            "pandaid": pandaid,
            "type": "input",
            "status": "finished",
            "fsize": size,
            "nevents": events,
            "attemptnr": 1,
            "maxattempt": 3,
            "failedattempt": 0,
        }
    ).write_parquet(folder / "files" / f"part-{part:05d}.parquet", row_group_size=250_000)


def run_ours(folder: Path) -> Figures:
    """Estimate every parameter of every task."""
    large = {name: pl.scan_parquet(folder / name) for name in ("jobs", "files")}
    small = {
        name: pl.scan_parquet(folder / f"{name}.parquet")
        for name in ("tasks", "datasets", "queues")
    }
    result = scouts.estimate(large | small)
    return {"sum": float(result.parameters["ramcount"].sum())}


def run_bare(folder: Path) -> Figures:
    """Join and aggregate in one query."""
    connection = duckdb.connect()
    for name in ("jobs", "files"):
        connection.read_parquet(str(folder / name / "*.parquet")).create_view(name)
    connection.read_parquet(str(folder / "queues.parquet")).create_view("queues")
    query = """
        WITH sums AS (
            SELECT jeditaskid, pandaid, sum(fsize) AS bytes, sum(nevents) AS events
            FROM files WHERE type = 'input' AND status = 'finished' GROUP BY ALL),
        used AS (
            SELECT jobs.*, bytes, events, corepower, epoch(endtime) - epoch(starttime) AS seconds
            FROM jobs JOIN sums USING (jeditaskid, pandaid) JOIN queues ON computingsite = panda_queue
            WHERE jobstatus = 'finished')
        SELECT jeditaskid,
            quantile_cont(seconds * corepower * actualcorecount * 0.9 / events, 0.95) AS cputime,
            quantile_cont((maxpss - 512000) / actualcorecount, 0.75) AS ram,
            quantile_cont(outputfilebytes / events, 0.75) AS outdisk,
            max(cpuconsumptiontime) AS walltime,
            max((bytes + outputfilebytes) / 1024 / seconds) AS io,
            avg((totrbytes + totwbytes) / seconds) AS diskio,
            avg(memory_leak) AS leak
        FROM used GROUP BY jeditaskid
    """
    return {"sum": float(connection.sql(query).pl()["ram"].sum())}


def run_floor(folder: Path) -> Figures:
    """Take two percentiles per task, nothing else."""
    query = """
        SELECT sum(a), sum(b) FROM (
            SELECT jeditaskid, quantile_cont(maxpss, 0.75) AS a, quantile_cont(cpuconsumptiontime, 0.95) AS b
            FROM read_parquet($files) GROUP BY jeditaskid)
    """
    found = duckdb.sql(query, params={"files": str(folder / "jobs" / "*.parquet")}).fetchall()
    return {"sum": float(found[0][0])}


def run_pandas(folder: Path) -> Figures:
    """Do what an analyst does with pandas: four of the parameters."""
    jobs = pd.read_parquet(folder / "jobs")
    files = pd.read_parquet(folder / "files", columns=["jeditaskid", "pandaid", "fsize", "nevents"])
    queues = pd.read_parquet(folder / "queues.parquet")
    per_job = files.groupby(["jeditaskid", "pandaid"], as_index=False).sum()
    jobs = jobs.merge(per_job, on=["jeditaskid", "pandaid"], suffixes=("", "_file"))
    jobs = jobs.merge(queues, left_on="computingsite", right_on="panda_queue")
    wall = (jobs["endtime"] - jobs["starttime"]).dt.total_seconds()
    jobs["ram"] = (jobs["maxpss"] - 500 * 1024) / jobs["actualcorecount"]
    jobs["hs06"] = (
        (wall - 600) * jobs["corepower"] * jobs["actualcorecount"] * 0.9 / jobs["nevents_file"]
    )
    jobs["io"] = (jobs["fsize"] + jobs["outputfilebytes"]) / 1024 / wall
    jobs["out"] = jobs["outputfilebytes"] / jobs["nevents_file"]
    task = jobs.groupby("jeditaskid")
    ram = task["ram"].quantile(0.75)
    task["hs06"].quantile(0.95), task["out"].quantile(0.75), task["io"].max()
    return {"sum": float(ram.sum())}


def run_per_task(folder: Path) -> Figures:
    """Call one plain function per task on its rows; the seconds are those of the calls alone."""
    from benchmarks.per_task import parameters_of

    tasks = pl.read_parquet(folder / "tasks.parquet").head(SAMPLE_TASKS)
    jobs = pl.scan_parquet(folder / "jobs").filter(pl.col("jeditaskid") <= SAMPLE_TASKS).collect()
    files = pl.scan_parquet(folder / "files").filter(pl.col("jeditaskid") <= SAMPLE_TASKS).collect()
    power = dict(
        pl.read_parquet(folder / "queues.parquet").select("panda_queue", "corepower").rows()
    )
    by_task = {
        key[0]: (part.rows(named=True), inputs.rows(named=True))
        for (key, part), (_, inputs) in zip(
            jobs.partition_by("jeditaskid", as_dict=True).items(),
            files.partition_by("jeditaskid", as_dict=True).items(),
            strict=True,
        )
    }
    begin = time.process_time()
    total = 0.0
    for task in tasks.iter_rows(named=True):
        total += parameters_of(task, *by_task[task["jeditaskid"]], power)["ramcount"]
    return {"sum": total, "cpu_s": time.process_time() - begin}


SIDES = {
    "ours": run_ours,
    "bare": run_bare,
    "floor": run_floor,
    "pandas": run_pandas,
    "per_task": run_per_task,
}


def lines(figures: dict[str, Figures], size: int) -> list[Line]:
    """Compare the CPU seconds of ours with those of all others."""
    ours, n_tasks = figures["ours"], max(size // JOBS_PER_TASK, 1)
    scale = n_tasks / min(SAMPLE_TASKS, n_tasks)
    loop_s = figures["per_task"]["cpu_s"] * scale
    others = {
        "ours / bare DuckDB join with seven aggregates": (ours["cpu_s"], figures["bare"], "at most 2"),
        "ours / two bare DuckDB quantiles": (ours["cpu_s"], figures["floor"], ""),
        "ours / pandas, four parameters": (ours["cpu_s"], figures["pandas"], ""),
    }  # fmt: skip
    what = f"scout parameters of {million(size)} jobs, shuffled"
    told = {"what": what, "cpu_s": ours["cpu_s"], "peak_gb": ours["peak_gb"]}
    speed = f"{million(size / ours['wall_s'])} jobs/s"
    return [
        *(
            Line(ours=speed, against=against, ratio=mine / other["cpu_s"], asked=asked, **told)
            for against, (mine, other, asked) in others.items()
        ),
        Line(
            ours=speed,
            against="a Python call per task / ours (extrapolated)",
            ratio=loop_s / ours["cpu_s"],
            **told,
        ),
    ]


if __name__ == "__main__":
    main("benchmarks.scouts", __doc__)
