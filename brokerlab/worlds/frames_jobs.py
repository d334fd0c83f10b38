"""The ``jobs`` rows of a block."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import polars as pl

from brokerlab.numerics import BoolArray, FloatArray, IntArray
from brokerlab.units import MB
from brokerlab.worlds.block import Block, scatter
from brokerlab.worlds.chains import (
    BUILD,
    FAILED,
    FINISHED,
    LOST,
    MAX_ATTEMPT,
    MEMORY_KILL,
    MERGED,
    SCOUT,
    WALL_KILL,
    rule_events,
)
from brokerlab.worlds.jobtypes import BUILD_TYPE, EXPRESS, JOB_TYPES, MERGE, of_kind
from brokerlab.worlds.queues import CPU_MODELS, HIMEM_MB, NODES_PER_QUEUE, RESOURCE_TYPES, conform
from brokerlab.worlds.tasks import GROUPS, PRODUCTION_USER, USERS, registered
from brokerlab.worlds.world import World

MERGE_PRIORITY, BUILD_PRIORITY = 5000, 2000
SCOUT_PRIORITY = 901
COMPENSATION = 0.95
"""Factor from the task's memory to ``minramcount``; real ones are 0.90 and 0.95."""
PRE_WALL_S = 86_400
"""Wall time limit of scouts [s]."""
NO_CORES_SHARE = 0.0005
"""Share of jobs without a recorded core count (statistics section 10, item 9)."""


def texts(values: Sequence[str | None], index: IntArray) -> pl.Series:
    """Look texts up by index."""
    return pl.Series(values, dtype=pl.String)[pl.Series(index)]


def known(values: IntArray | pl.Series, known: BoolArray) -> pl.Series:
    """Return values that are null where not known."""
    return pl.DataFrame({"v": values, "k": known}).select(pl.when("k").then("v").otherwise(None))[
        "v"
    ]


def jobs_frame(world: World, block: Block) -> pl.DataFrame:
    """Return the block's rows of ``jobs``, one per attempt, in the order of ``pandaid``."""
    columns = {
        **_identity(world, block),
        **_clock(world, block),
        **_usage(world, block),
        **_limits(world, block),
        **_errors(block),
    }
    return conform("jobs", pl.DataFrame(columns)).sort("pandaid")


LIVE = {"pandaid": pl.Int64, "jobstatus": pl.String}
"""Jobs that are not over at the end of an archive, and their status then."""
UNKNOWN_YET = (
    *("endtime", "cpuconsumptiontime", "hs06sec", "maxpss", "avgpss", "maxrss", "avgrss"),
    *("maxvmem", "outputfilebytes", "jobmetrics", "pilottiming"),
)
"""Columns of ``jobs`` that only a job that is over has."""
SINCE_START = ("starttime", "actualcorecount", "modificationhost", "cpuconsumptionunit")
"""Columns that only a job that has started has."""


def not_over(jobs: pl.DataFrame, live: pl.DataFrame) -> pl.DataFrame:
    """Return rows of ``jobs`` without what will only be known when the ones of `LIVE` among them are over."""
    if live.is_empty():
        return jobs
    now = pl.col("now")
    started = {name: pl.when(now != "activated").then(name) for name in SINCE_START}
    last = pl.coalesce(started["starttime"], "activatedtime", "creationtime")
    known = jobs.join(
        live.select("pandaid", now="jobstatus"), on="pandaid", how="left", maintain_order="left"
    )
    open_ = now.is_not_null()
    changes = {
        "jobstatus": now,
        "modificationtime": last,
        "statechangetime": last,
        **dict.fromkeys(("piloterrorcode", "jobdispatchererrorcode"), pl.lit(0)),
        **started,
        **dict.fromkeys(UNKNOWN_YET, pl.lit(None)),
    }
    return known.with_columns(
        pl.when(open_).then(value).otherwise(name).cast(jobs.schema[name]).alias(name)
        for name, value in changes.items()
    ).drop("now")


def _identity(world: World, block: Block) -> dict[str, pl.Series | IntArray]:
    """Say who a job is, for whom and where it ran."""
    t, rows, roots = block.row_task, block.rows, block.roots
    phase = roots.phase[rows.root]
    kind = block.tasks.kind[t]
    merge, scout, build = phase == MERGED, phase == SCOUT, phase == BUILD
    first = rows.attempt == 1
    parent = np.roll(block.pandaid, 1)
    priority = block.tasks.priority[t]
    priority = np.where(scout, np.maximum(SCOUT_PRIORITY, priority + 1), priority)
    priority = np.where(merge, MERGE_PRIORITY, priority)
    priority = np.where(build, BUILD_PRIORITY, priority)
    queue = block.tasks.slots.queue[t, rows.slot]
    node = (scatter(block.pandaid) * NODES_PER_QUEUE).astype(np.int64)
    model = world.node_model[queue, node]
    owner = owner_columns(block, t)
    hosts = [f"slot1@wn{i:02d}.{n.lower()}" for n in world.names for i in range(NODES_PER_QUEUE)]
    return {
        "pandaid": block.pandaid,
        "jeditaskid": block.taskid[t],
        "parentid": known(parent, ~first),
        "attemptnr": rows.attempt,
        "maxattempt": np.full(len(t), MAX_ATTEMPT),
        "jobstatus": texts(["finished", "failed"], (rows.outcome != FINISHED).astype(np.int64)),
        "vo": texts(["atlas"], np.zeros(len(t), np.int64)),
        "prodsourcelabel": texts(
            [*[k.label for k in JOB_TYPES], BUILD_TYPE.label], np.where(build, len(JOB_TYPES), kind)
        ),
        "processingtype": texts(
            [*[k.processingtype for k in JOB_TYPES], "pmerge"],
            np.where(merge, len(JOB_TYPES), kind),
        ),
        "produsername": owner["username"],
        "workinggroup": owner["workinggroup"],
        "gshare": owner["gshare"],
        "workqueue_id": kind + 1,
        "currentpriority": priority,
        "assignedpriority": priority,
        "computingsite": texts(world.names, queue),
        "cloud": texts(world.queues["cloud"].to_list(), queue),
        "transformation": texts(
            [*[k.transpath for k in JOB_TYPES], BUILD_TYPE.transformation],
            np.where(build, len(JOB_TYPES), kind),
        ),
        "cmtconfig": texts(["x86_64-centos7-gcc11-opt"], np.zeros(len(t), np.int64)),
        "specialhandling": texts([None, "sj"], scout.astype(np.int64)),
        "lockedby": texts(["jedi"], np.zeros(len(t), np.int64)),
        "modificationhost": texts(hosts, queue * NODES_PER_QUEUE + node),
        "cpuconsumptionunit": texts([f"s+{m}" for m in CPU_MODELS], model),
    }


def owner_columns(block: Block, task: IntArray) -> dict[str, pl.Series]:
    """Return owner, as registered and as cleaned, working group and share of tasks or of their jobs."""
    owners, kind = block.owners, block.tasks.kind[task]
    share = np.where(owners.express[task], len(JOB_TYPES), kind)
    names = [*USERS, PRODUCTION_USER]
    return {
        "username": texts(names, owners.user[task] % len(names)),
        "origusername": texts(
            [*[registered(u) for u in range(len(USERS))], PRODUCTION_USER],
            owners.user[task] % len(names),
        ),
        "workinggroup": texts([*GROUPS, None], owners.group[task] % (len(GROUPS) + 1)),
        "gshare": texts([*[k.gshare for k in JOB_TYPES], EXPRESS], share),
    }


def _clock(world: World, block: Block) -> dict[str, pl.Series]:
    """Say when a job was made, started, ended, was last changed."""
    rows = block.rows
    start = block.created + rows.queue_s
    end = start + rows.wall_s
    changed = end + rows.report_s
    return {
        "creationtime": world.times(block.created),
        "modificationtime": world.times(changed),
        "statechangetime": world.times(changed),
        "starttime": world.times(start),
        "endtime": world.times(end),
        "activatedtime": world.times(block.created + rows.active_s),
    }


def _usage(world: World, block: Block) -> dict[str, pl.Series | IntArray | FloatArray]:
    """Say what a job used; a job lost without record used nothing that was written down."""
    rows, m, t = block.rows, block.measures, block.row_task
    seen = rows.outcome != LOST
    done = rows.outcome == FINISHED
    phase = block.roots.phase[rows.root]
    merge, kind = phase == MERGED, block.tasks.kind[t]
    power = world.corepower[block.tasks.slots.queue[t, rows.slot]]
    rss, avg, vmem = _memory_ratios(block, merge, kind)
    maxrss = (m.maxpss_kb / rss).astype(np.int64)
    payload, timing = _stages(block, kind)
    has_cores = scatter(block.pandaid) >= NO_CORES_SHARE
    build = phase == BUILD
    n_files = np.where(
        merge, np.maximum(block.tasks.merge_group[t], 1), block.tasks.files_per_job[t]
    )
    events = np.where(
        (block.tasks.has_events[t] & ~build) | merge, block.roots.events[rows.root], 0
    )
    pseudo = (of_kind(kind, lambda k: k.pseudo) > 0) & ~merge
    leak = np.round(30 * block.roots.size[rows.root]).astype(np.int64)
    metrics = _metrics(block, (maxrss * vmem).astype(np.int64))
    return {
        "corecount": rows.cores,
        "actualcorecount": known(rows.cores, has_cores),
        "cpuconsumptiontime": np.where(seen, m.cpu_s, 0),
        "hs06": np.round(power * rows.cores).astype(np.int64),
        "hs06sec": np.minimum(rows.wall_s * power * rows.cores, 999_999_999).astype(np.int64),
        "maxpss": known(m.maxpss_kb, seen),
        "avgpss": known((m.maxpss_kb * avg).astype(np.int64), seen),
        "maxrss": known(maxrss, seen),
        "avgrss": known((maxrss * avg).astype(np.int64), seen),
        "maxvmem": known((maxrss * vmem).astype(np.int64), seen),
        "memory_leak": known(leak, done),
        "totrbytes": known(m.read_kb, seen),
        "totwbytes": known(m.write_kb, seen),
        "raterbytes": known(m.read_kb * 1000 // payload, seen),
        "ratewbytes": known(m.write_kb * 1000 // payload, seen),
        "nevents": np.where(done, events, 0),
        "ninputdatafiles": np.where(build, 0, n_files),
        "inputfilebytes": known(m.input_bytes, ~pseudo),
        "noutputdatafiles": np.where(done, 2, 0),
        "outputfilebytes": known(m.output_bytes, done),
        "jobmetrics": known(metrics, seen),
        "pilottiming": known(timing, seen),
    }


def _metrics(block: Block, peak_kb: IntArray) -> pl.Series:
    """Return the ``jobmetrics`` text."""
    frame = pl.DataFrame({"c": block.rows.cores, "w": block.measures.workdir_bytes, "v": peak_kb})
    return frame.select(
        pl.format("coreCount={} workDirSize={} vmPeakMax={}", "c", "w", "v")
    ).to_series()


def _memory_ratios(
    block: Block, merge: BoolArray, kind: IntArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return maxpss/maxrss, avgpss/maxpss and maxvmem/maxrss of every row."""
    wiggle = 0.03 * block.roots.size[block.rows.root]
    rss = np.where(merge, MERGE.rss_ratio, of_kind(kind, lambda k: k.rss_ratio)) * (1 + wiggle)
    avg = np.where(merge, MERGE.avg_ratio, of_kind(kind, lambda k: k.avg_ratio)) * (1 - wiggle)
    return np.minimum(rss, 1.0), np.minimum(avg, 1.0), of_kind(kind, lambda k: k.vmem_ratio)


def _stages(block: Block, kind: IntArray) -> tuple[IntArray, pl.Series]:
    """Return the payload's time [s] and PanDA's ``pilottiming`` text; the parts sum to the wall time.

    Pilot overhead is 80 to 140 s, stage-in depends on the bytes; both give way in very short jobs.
    """
    rows = block.rows
    noise, other = block.roots.size[rows.root], block.roots.out[rows.root]
    overhead = np.clip(112 * np.exp(0.15 * other), 70, 180)
    rate = np.where(kind < 3, 45.0, 8.0) * np.exp(0.4 * noise)
    stage_in = 15 + block.measures.input_bytes / MB / rate
    stage_out = 10 + 0.4 * overhead * np.exp(0.3 * noise) * 0.4
    total = overhead + stage_in + stage_out
    shrink = np.minimum(1.0, 0.6 * rows.wall_s / total)
    parts = [np.floor(x * shrink).astype(np.int64) for x in (overhead, stage_in, stage_out)]
    getjob = parts[0] // 20
    payload = np.maximum(rows.wall_s - sum(parts), 1)
    frame = pl.DataFrame(
        {"g": getjob, "i": parts[1], "p": payload, "o": parts[2], "s": parts[0] - getjob}
    )
    return payload, frame.select(pl.format("{}|{}|{}|{}|{}", "g", "i", "p", "o", "s")).to_series()


def _limits(world: World, block: Block) -> dict[str, pl.Series | IntArray]:
    """Say what a job was given: before scouting, after it, nothing for merges and builds, more after a kill."""
    t, rows, tasks, req = block.row_task, block.rows, block.tasks, block.requests
    phase = block.roots.phase[rows.root]
    scout, free = phase == SCOUT, (phase == MERGED) | (phase == BUILD)
    decided = ~scout & (req.ram_mb[t] > 0)
    core_mb = np.where(decided, req.ram_mb[t], tasks.pre_ram_mb[t])
    base = np.where(decided, tasks.base_ram_mb[t], 0)
    scaled = np.where(tasks.per_core[t], rows.cores, np.where(decided, 1, rows.cores))
    ram = ((core_mb * scaled + base) * COMPENSATION * rows.ram_scale).astype(np.int64)
    ram = np.where(free, 0, ram)
    queue = tasks.slots.queue[t, rows.slot]
    hs06 = req.limit_hs06()[t]
    power = world.corepower[queue] * rows.cores * 0.9
    per_job = hs06 * rule_events(tasks, block.roots)[rows.root] / power + tasks.base_wall_s[t]
    limit = np.where(hs06 >= 0, per_job * rows.wall_scale, world.maxtime_s[queue])
    limit = np.where(scout, PRE_WALL_S, limit)
    limit = np.where(free, 0, limit).astype(np.int64)
    himem = ram > HIMEM_MB * rows.cores
    size = block.measures.input_bytes + block.measures.output_bytes
    return {
        "resource_type": texts(RESOURCE_TYPES, 2 * (rows.cores > 1) + himem),
        "maxcpucount": limit,
        "maxwalltime": limit,
        "minramcount": ram,
        "maxdiskcount": size // MB + 300,
        "diskio": known(np.maximum(req.diskio[t], 0), ~scout & (req.diskio[t] >= 0)),
    }


def _errors(block: Block) -> dict[str, IntArray | pl.Series]:
    """Say why a job failed; the kind of a site failure varies with the job."""
    outcome = block.rows.outcome
    site = outcome == FAILED
    which = (scatter(block.pandaid) * 3).astype(np.int64)
    pilot = np.where(site & (which == 0), 1305, 0)
    pilot = np.where(outcome == MEMORY_KILL, 1212, np.where(outcome == WALL_KILL, 1213, pilot))
    return {
        "piloterrorcode": pilot,
        "exeerrorcode": np.where(site & (which != 2), 65, 0),
        "ddmerrorcode": np.where(site & (which == 2), 200, 0),
        "jobdispatchererrorcode": np.where(outcome == LOST, 100, 0),
        "superrorcode": np.zeros(len(outcome), np.int64),
        "brokerageerrorcode": np.zeros(len(outcome), np.int64),
        "taskbuffererrorcode": np.zeros(len(outcome), np.int64),
        "transexitcode": texts(["0", "65"], (site & (which != 2)).astype(np.int64)),
    }
