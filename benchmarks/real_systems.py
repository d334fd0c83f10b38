"""Records of every real system in a folder of data: workflow traces, recorded workflows, batch logs, PanDA tasks."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from brokerlab.errors import InsufficientDataError
from brokerlab.estimators.records import Quantity, checked
from brokerlab.estimators.sources import of_log, of_trace, read_runs, real_tasks
from brokerlab.units import MB
from brokerlab.workflows import swf

FEWEST = 200
"""Jobs below which a system is too small to be judged."""


@dataclass(frozen=True)
class System:
    """One system and what its jobs used.

    Attributes:
        name: Of the file or folder.
        kind: ``PanDA tasks``, ``workflow trace``, ``recorded workflow`` or ``batch log``.
        records: Its jobs; tasks of different systems have different numbers.
    """

    name: str
    kind: str
    records: pl.DataFrame


def systems(
    folder: Path, quantity: Quantity, *, most_of_task: int, most_of_system: int
) -> list[System]:
    """Read every system of a folder that has enough jobs of a quantity; tasks and jobs are numbered anew.

    Args:
        folder: Of real data.
        quantity: ``memory`` or ``walltime``.
        most_of_task: Jobs taken of a task, the first by decision; of a log's user all.
        most_of_system: Jobs taken of a system, likewise.
    """
    found = []
    for name, kind, every in _read(folder, quantity):
        most = most_of_system if kind == "batch log" else most_of_task
        number = pl.int_range(pl.len()).over("jeditaskid")
        records = checked(every).filter(number < most).head(most_of_system)
        if records.height < FEWEST:
            continue
        apart = pl.lit(10**9 * (len(found) + 1))
        task = pl.col("jeditaskid").rank("dense").cast(pl.Int64)
        job = pl.int_range(pl.len(), dtype=pl.Int64)
        found.append(System(name, kind, records.with_columns(pandaid=job + apart, jeditaskid=task + apart)))  # fmt: skip
    return found


def _read(folder: Path, quantity: Quantity) -> Iterator[tuple[str, str, pl.DataFrame]]:
    if tasks := real_tasks(folder, quantity):
        yield "panda-invex-jobs", "PanDA tasks", tasks["submit"].records
    for path in sorted(folder.glob("nfcore-traces/trace_*.csv.gz")):
        name = path.name.removeprefix("trace_").removesuffix(".csv.gz")
        yield name, "workflow trace", of_trace(read_runs(path), quantity).records
    for part in ("makeflow/*", "nextflow", "pegasus/*"):
        for place in sorted(folder.glob(f"wfinstances/{part}")):
            try:
                records = of_instances(sorted(place.glob("*.json.gz")), quantity)
            except InsufficientDataError:
                continue
            yield place.name, "recorded workflow", records
    if quantity == "walltime":
        for path in sorted(folder.glob("swf-logs/*.swf.gz")):
            jobs = swf.read(path).jobs
            unknown = 0.0 if jobs["wait_s"].null_count() == jobs.height else None
            records = of_log(jobs, unknown_wait_s=unknown).records
            yield path.name.removesuffix(".swf.gz"), "batch log", records


def of_instances(paths: list[Path], quantity: Quantity) -> pl.DataFrame:
    """Read recorded workflows of one kind (WfCommons), one after the other; the task is the program.

    They say how long jobs ran, not when: each job is decided when the one before it has ended.

    Raises:
        InsufficientDataError: No job has what is asked for.
    """
    rows = [row for path in paths for row in _instance(path)]
    used = "memory_mb" if quantity == "memory" else "wall_s"
    rows = [row for row in rows if row["wall_s"] > 0 and row[used] > 0]
    if not rows:
        raise InsufficientDataError(f"{len(paths)} recorded workflows: no job with {quantity}")
    frame = pl.DataFrame(rows)
    end_s = pl.col("wall_s").cum_sum()
    return checked(
        frame.select(
            pandaid=pl.int_range(pl.len(), dtype=pl.Int64),
            jeditaskid=pl.col("program").rank("dense").cast(pl.Int64),
            kind="program",
            cores=pl.lit(1, dtype=pl.Int64),
            input_mb="input_mb",
            is_scout=pl.lit(value=False),
            decided_s=end_s - pl.col("wall_s"),
            ended_s=end_s,
            used=pl.col(used),
            censored=pl.lit(value=False),
            wall_s="wall_s",
        )
    )


def _instance(path: Path) -> Iterator[dict[str, Any]]:
    with gzip.open(path) as file:
        workflow = json.load(file)["workflow"]
    for task in workflow.get("execution", workflow)["tasks"]:
        words = str(task.get("id", "")).replace(".", "_").split("_")
        yield {
            "program": "_".join(word for word in words if not word.removeprefix("ID").isdigit()),
            "wall_s": float(task.get("runtimeInSeconds", np.nan)),
            "memory_mb": float(task.get("memoryInBytes", np.nan)) / MB,
            "input_mb": float(task.get("readBytes", 0)) / MB,
        }
