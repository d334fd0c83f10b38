"""Outputs on their way, where inputs lie, and the logs of status: what is derived from the jobs of a block."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import polars as pl
from scipy.special import ndtri

from brokerlab.archive.synthetic.block import Block
from brokerlab.archive.synthetic.chains import BULK, FINISHED
from brokerlab.archive.synthetic.frames_jobs import scatter, times
from brokerlab.archive.synthetic.frames_tasks import Totals
from brokerlab.archive.synthetic.grid import Grid, generator
from brokerlab.archive.synthetic.jobtypes import per_type
from brokerlab.archive.synthetic.settings import SynthSettings
from brokerlab.archive.synthetic.storage import endpoint, has_tape
from brokerlab.archive.synthetic.world import conform
from brokerlab.numerics import IntArray

TRANSFER_S, TRANSFER_LN_SD, LONGEST_TRANSFER_S = 14_000, 0.8, 2 * 86_400
"""Median and sd of ln of the time that outputs of slow sites travel [s], and the most."""


def delayed(block: Block, grid: Grid) -> Block:
    """Let the outputs of bulk jobs at slow sites travel for hours after the job has ended.

    Only jobs that nothing waits for are delayed: no scouts, no tasks that merge, no analysis; so
    whatever else was drawn stays.

    Args:
        block: What was drawn.
        grid: Names the queues at slow sites.

    Returns:
        The block; ``report_s``, the time from the end of a job to its last change, has grown there.
    """
    rows, tasks, t = block.rows, block.tasks, block.row_task
    slow = grid.slow[tasks.slots.queue[t, rows.slot]]
    managed = per_type(lambda k: k.label == "managed")[tasks.kind[t]] > 0
    hit = slow & managed & (rows.outcome == FINISHED) & (tasks.merge_group[t] == 0)
    hit &= block.roots.phase[rows.root] == BULK
    z = ndtri(np.clip(scatter(block.pandaid), 1e-6, 1 - 1e-6))
    travel = np.minimum(TRANSFER_S * np.exp(TRANSFER_LN_SD * z), LONGEST_TRANSFER_S)
    report = np.where(hit, rows.report_s + np.round(travel).astype(np.int64), rows.report_s)
    return replace(block, rows=replace(rows, report_s=report))


def replicas(
    settings: SynthSettings, grid: Grid, block: Block, files: pl.DataFrame
) -> pl.DataFrame:
    """Draw where the input of production tasks lies: near where it is read, at a nucleus, on tape.

    Most tasks have a complete copy on disk; some only on tape, few nowhere. Incomplete copies miss
    a few files, or most of them.

    Args:
        settings: The seed.
        grid: The sites.
        block: The block.
        files: Its rows of ``files``; number and bytes of a dataset are those of its distinct files.

    Returns:
        All columns of ``replicas``, sorted by dataset and endpoint.
    """
    rng = generator(settings, 101, block.index)
    tasks = block.tasks
    managed = per_type(lambda k: (k.label == "managed") and not k.pseudo)[tasks.kind] > 0
    content = (
        files.lazy()
        .filter(pl.col("type") == "input")
        .unique(["jeditaskid", "lfn"], keep="first", maintain_order=True)
        .group_by("jeditaskid")
        .agg(total=pl.len().cast(pl.Int64), bytes=pl.col("fsize").sum())
        .filter(pl.col("jeditaskid").is_in(pl.Series(block.taskid[managed]).implode()))
        .sort("jeditaskid")
        .collect()
    )
    rows = []
    for taskid, total, size in content.iter_rows():
        places = _places(rng, grid, tasks.slots.queue[taskid - block.taskid[0]])
        for (site, kind), complete in places.items():
            found = total if complete else _part(rng, total)
            rows.append((f"synth.{taskid}.input", endpoint(grid.sites[site], kind), found, total,
                         size * found // total, kind == "DATATAPE", bool(rng.random() < 0.02)))  # fmt: skip
    names = ["datasetname", "ddm_endpoint_name", "found", "total", "bytes", "is_tape", "vp"]
    frame = pl.DataFrame(rows, schema=names, orient="row")
    return conform("replicas", frame.sort("datasetname", "ddm_endpoint_name"))


def _places(rng: np.random.Generator, grid: Grid, queues: IntArray) -> dict[tuple[int, str], bool]:
    """Draw the endpoints of one dataset and whether its copy there is complete."""
    u = rng.random(6)
    nuclei = np.flatnonzero(grid.nucleus)
    tapes = np.flatnonzero(grid.nucleus & has_tape(grid))
    lost = u[0] < 0.02
    places: dict[tuple[int, str], bool] = {}
    if u[1] < 0.65:
        places[int(rng.choice(nuclei)), "DATADISK"] = not lost and u[2] < 0.95
    if u[3] < 0.30:
        places[int(rng.choice(tapes)), "DATATAPE"] = not lost
    for queue in queues[: int(u[4] * 4)].tolist():
        places[int(grid.storage[grid.site[queue]]), "DATADISK"] = bool(
            not lost and rng.random() < 0.88
        )
    if not places or not (lost or any(places.values())):
        places[int(nuclei[int(u[5] * len(nuclei))]), "DATADISK"] = not lost
    return places


def _part(rng: np.random.Generator, total: int) -> int:
    """Draw how many files an incomplete copy has: most often nearly all."""
    missing = rng.integers(1, 12) if rng.random() < 0.6 else round(total * rng.uniform(0.15, 0.9))
    return max(total - max(int(missing), 1), 0)


def job_status_log(grid: Grid, jobs: pl.DataFrame) -> pl.DataFrame:
    """Write the log of jobs at queues that push: their times, and the states that times do not tell.

    Args:
        grid: Says which queues push.
        jobs: Rows of ``jobs``.

    Returns:
        All columns of ``job_status_log``, sorted by job and time: defined, assigned, activated, starting,
        running, then holding or transferring, then the last one.
    """
    logged = grid.queues.filter(pl.col("workflow") == "push")["panda_queue"]
    mine = jobs.filter(pl.col("computingsite").is_in(logged.implode()))
    created, active, begun = pl.col("creationtime"), pl.col("activatedtime"), pl.col("starttime")
    half_wait_s = (begun - active).dt.total_seconds().clip(upper_bound=600) // 2
    brief = pl.duration(seconds=5)
    moments = {
        "defined": created,
        "assigned": pl.min_horizontal(created + brief, active),
        "activated": active,
        "starting": begun - pl.duration(seconds=half_wait_s),
        "running": begun,
        "after": pl.col("endtime"),
        "last": pl.col("modificationtime"),
    }
    base = ["pandaid", "computingsite", "prodsourcelabel"]
    wide = mine.select(*base, "jobstatus", "nucleus", **moments)
    long = wide.unpivot(
        list(moments), index=[*base, "jobstatus", "nucleus"], variable_name="step",
        value_name="modificationtime",
    )  # fmt: skip
    sent = (pl.col("jobstatus") == "finished") & pl.col("nucleus").is_not_null()
    status = (
        pl.when(pl.col("step") == "last").then("jobstatus")
        .when(pl.col("step") != "after").then("step")
        .when(sent).then(pl.lit("transferring")).otherwise(pl.lit("holding"))
    )  # fmt: skip
    step = pl.col("step").replace_strict(
        {m: i for i, m in enumerate(moments)}, return_dtype=pl.Int8
    )
    ordered = long.with_columns(order=step, jobstatus=status).sort("pandaid", "order")
    return conform("job_status_log", ordered)


def task_status_log(
    settings: SynthSettings, block: Block, totals: Totals, tasks: pl.DataFrame
) -> pl.DataFrame:
    """Write when production tasks were registered, assigned to a nucleus, scouted, decided, ended.

    Args:
        settings: First instant.
        block: The block.
        totals: Sums per task.
        tasks: Its rows of ``tasks``.

    Returns:
        All columns of ``task_status_log``, sorted by task and time.
    """
    first = np.full(block.tasks.n, np.iinfo(np.int64).max)
    np.minimum.at(first, block.row_task, block.created)
    keep = totals.rows > 0
    clock = pl.DataFrame(
        {
            "jeditaskid": block.taskid[keep],
            "scouting": times(settings, first[keep]),
            "decided": times(settings, np.ceil(block.decided_s[keep]).astype(np.int64)),
        }
    )
    mine = tasks.filter(pl.col("prodsourcelabel") == "managed").join(clock, on="jeditaskid")
    made, end = pl.col("creationdate"), pl.col("endtime")
    moments = {
        "registered": made,
        "defined": made + pl.duration(seconds=30),
        "assigning": made + pl.duration(seconds=120),
        "ready": pl.col("scouting") - pl.duration(seconds=60),
        "scouting": pl.col("scouting"),
        "running": pl.when(pl.col("status") != "scouting").then(pl.min_horizontal("decided", pl.coalesce(end, "decided"))),
        "last": end,
    }  # fmt: skip
    long = mine.select("jeditaskid", final="status", **moments).unpivot(
        list(moments), index=["jeditaskid", "final"], variable_name="status",
        value_name="modificationtime",
    )  # fmt: skip
    step = pl.col("status").replace_strict(
        {m: i for i, m in enumerate(moments)}, return_dtype=pl.Int8
    )
    status = pl.when(pl.col("status") == "last").then("final").otherwise("status")
    ordered = long.drop_nulls("modificationtime").with_columns(
        order=step, status=status, attemptnr=1
    )
    return conform("task_status_log", ordered.sort("jeditaskid", "order"))
