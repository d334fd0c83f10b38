"""The ``tasks``, ``datasets`` and ``files`` rows of a block, and logs of the status of jobs and tasks, written from their times."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl

from brokerlab.numerics import BoolArray, IntArray
from brokerlab.units import DAY_S
from brokerlab.worlds.block import Block
from brokerlab.worlds.chains import (
    BUILD,
    FINISHED,
    MAX_ATTEMPT,
    MERGED,
    SCOUT,
    merge_keys,
    number_in_task,
)
from brokerlab.worlds.frames_jobs import known, owner_columns, texts
from brokerlab.worlds.jobtypes import JOB_TYPES, MERGE, of_kind
from brokerlab.worlds.queues import HIMEM_MB, RESOURCE_TYPES, conform
from brokerlab.worlds.world import World

DATASETS_PER_TASK = 8
"""Room for dataset ids of one task: input, output, log, unmerged output."""
FILES_PER_BLOCK = 1 << 24
"""Room for file ids of one block."""
FILE_STATUS = ("ready", "finished", "picked", "running", "failed")


@dataclass(frozen=True)
class Ends:
    """The last attempt of every job in the archive, in the order of the rows: ``plain`` is neither merge nor build, ``ok`` finished.

    ``open``: 0 it is over, 1 it waits, 2 it runs.
    """

    row: IntArray
    root: IntArray
    task: IntArray
    merge: BoolArray
    plain: BoolArray
    ok: BoolArray
    open: IntArray


def ends_of(block: Block, live: pl.DataFrame) -> Ends:
    """Find the last attempt of every job; rows are ordered by job and attempt, ``live`` are the jobs that are not over."""
    root = block.rows.root
    row = np.flatnonzero(np.append(root[1:] != root[:-1], True))
    root = root[row]
    phase = block.roots.phase[root]
    waits, runs = (
        np.isin(block.pandaid[row], live.filter(jobstatus=status)["pandaid"].to_numpy())
        for status in ("activated", "running")
    )
    return Ends(
        row=row,
        root=root,
        task=block.roots.task[root],
        merge=phase == MERGED,
        plain=(phase != MERGED) & (phase != BUILD),
        ok=block.rows.outcome[row] == FINISHED,
        open=waits + 2 * runs,
    )


def files_frame(block: Block, ends: Ends) -> pl.DataFrame:
    """Return the primary input files of every job, pointing at the last job that used them, and the unmerged outputs of merging tasks."""
    inputs = _inputs(block, ends)
    unmerged = _unmerged(block, ends, first=len(inputs))
    return conform("files", pl.concat([inputs, unmerged], how="diagonal_relaxed"))


def _inputs(block: Block, ends: Ends) -> pl.DataFrame:
    """Return the primary input files, the first rows of a task first."""
    tasks = block.tasks
    chosen = np.flatnonzero(ends.plain)
    job = np.repeat(chosen, tasks.files_per_job[ends.task[chosen]])
    t, row, root = ends.task[job], ends.row[job], ends.root[job]
    number = np.arange(len(job)) - np.searchsorted(job, job)
    n_files = tasks.files_per_job[t]
    events = block.roots.events[root]
    share = events // n_files + (number < events % n_files)
    ranges = of_kind(tasks.kind[t], lambda k: k.event_ranges).astype(np.int64)
    seq = number_in_task(tasks, block.roots)[root]
    start = (seq % ranges) * share
    pseudo = of_kind(tasks.kind[t], lambda k: k.pseudo) > 0
    size = block.measures.input_bytes[row] // n_files
    used_up = block.rows.last[row] & (block.rows.attempt[row] < MAX_ATTEMPT)
    status = np.where(ends.ok[job], 1, np.where(used_up, 4, 0))
    now = ends.open[job]
    raised = block.rows.ram_scale[row] > 1
    ram = (block.requests.ram_mb[t] * block.rows.ram_scale[row]).astype(np.int64)
    attempt = block.rows.attempt[row]
    frame = pl.DataFrame(
        {
            "jeditaskid": block.taskid[t],
            "datasetid": block.taskid[t] * DATASETS_PER_TASK,
            "fileid": block.index * FILES_PER_BLOCK + np.arange(len(job)),
            "pandaid": block.pandaid[row],
            "number": (seq * n_files + number) // ranges,
            "scope": texts(["synth"], np.zeros(len(job), np.int64)),
            "type": texts(["input", "pseudo_input"], pseudo.astype(np.int64)),
            "status": texts(FILE_STATUS, np.where(now > 0, 1 + now, status)),
            "fsize": known(size, ~pseudo),
            "nevents": known(share * ranges, tasks.has_events[t]),
            "startevent": known(start, tasks.has_events[t]),
            "endevent": known(start + share - 1, tasks.has_events[t]),
            "attemptnr": attempt,
            "maxattempt": np.full(len(job), MAX_ATTEMPT),
            "failedattempt": attempt - (ends.ok[job] | (now > 0)),
            "ramcount": known(ram, raised & (ram > 0)),
        }
    )
    return frame.with_columns(lfn=pl.format("synth.{}._{}.root", "jeditaskid", "number")).drop("number")  # fmt: skip


def _unmerged(block: Block, ends: Ends, *, first: int) -> pl.DataFrame:
    """Return the outputs waiting for or taken by merge jobs."""
    tasks = block.tasks
    group = tasks.merge_group[ends.task]
    made = np.flatnonzero(ends.plain & ends.ok & (group > 0))
    t, root = ends.task[made], ends.root[made]
    keys, merges = merge_keys(tasks, block.roots), np.flatnonzero(ends.merge)
    key, merge_key = keys[root], keys[ends.root[merges]]
    place = np.searchsorted(merge_key, key)
    has_merge = place < len(merge_key)
    place = np.where(has_merge, place, 0)
    has_merge &= merge_key[place] == key if len(merge_key) else False
    by = merges[place] if len(merges) else np.zeros(len(made), np.int64)
    status = np.where(has_merge, np.where(ends.open[by] > 0, 1 + ends.open[by], ends.ok[by]), 0)
    return pl.DataFrame(
        {
            "jeditaskid": block.taskid[t],
            "datasetid": block.taskid[t] * DATASETS_PER_TASK + 3,
            "fileid": block.index * FILES_PER_BLOCK + first + np.arange(len(made)),
            "pandaid": known(block.pandaid[ends.row[by]], has_merge),
            "scope": texts(["synth"], np.zeros(len(made), np.int64)),
            "type": texts(["trn_output"], np.zeros(len(made), np.int64)),
            "status": texts(FILE_STATUS, status),
            "fsize": block.measures.output_bytes[ends.row[made]],
            "nevents": np.full(len(made), round(MERGE.events)),
            "attemptnr": np.where(has_merge, block.rows.attempt[ends.row[by]], 0),
            "maxattempt": np.full(len(made), MAX_ATTEMPT),
        }
    )


@dataclass(frozen=True)
class Totals:
    """Sums per task over the jobs that are in the archive."""

    rows: IntArray
    jobs: IntArray
    ok: IntArray
    bulk: IntArray
    open: IntArray
    first_s: IntArray
    last_s: IntArray


def totals_of(block: Block, ends: Ends) -> Totals:
    """Add up jobs by task; tasks without rows have zeros."""
    n = block.tasks.n
    end = block.created + block.rows.queue_s + block.rows.wall_s + block.rows.report_s
    first = np.full(n, np.iinfo(np.int64).max)
    last = np.zeros(n, np.int64)
    np.minimum.at(first, block.row_task, block.created + block.rows.queue_s)
    np.maximum.at(last, block.row_task, end)
    plain = ends.plain
    bulk = plain & (block.roots.phase[ends.root] != SCOUT)
    return Totals(
        rows=np.bincount(block.row_task, minlength=n),
        jobs=np.bincount(ends.task[plain], minlength=n),
        ok=np.bincount(ends.task[plain & ends.ok], minlength=n),
        bulk=np.bincount(ends.task[bulk], minlength=n),
        open=np.bincount(ends.task[plain & (ends.open > 0)], minlength=n),
        first_s=first,
        last_s=last,
    )


STATUS = ("done", "finished", "running", "scouting", "broken")


def status_of(world: World, block: Block, totals: Totals) -> IntArray:
    """Return the index in ``STATUS`` of every task: of drawn ones without bulk jobs, scouts are not over."""
    all_jobs = block.tasks.n_jobs
    code = np.where(totals.ok == all_jobs, 0, 1)
    code = np.where(totals.ok == 0, 4, code)
    late = totals.last_s > world.settings.days * DAY_S
    code = np.where(late | ~block.complete, 2, code)
    undecided = block.decided_s >= world.settings.days * DAY_S
    waiting = (
        (undecided | (not world.settings.lived))
        & ~block.complete
        & (totals.bulk == 0)
        & (all_jobs > block.tasks.n_scouts)
    )
    return np.where(waiting, 3, code)


def tasks_frame(world: World, block: Block, totals: Totals) -> pl.DataFrame:
    """Return the block's rows of ``tasks`` with a job in the archive: as submitted, and what the scouts made of it."""
    code = status_of(world, block, totals)
    columns = {
        **_submitted(world, block),
        **_progress(world, block, totals, code),
        **_parameters(block, code),
    }
    merge = pl.when(pl.col("mergeoutput") == 1).then(pl.lit(",MO=1")).otherwise(pl.lit(""))
    frame = pl.DataFrame(columns).with_columns(
        pl.when("ended").then("endtime").alias("endtime"),
        taskname=pl.format("synth.{}.{}", "processingtype", "jeditaskid"),
        splitrule=pl.format("US={},SS=5,NF={}{}", "usescout", "nfilesperjob", merge),
    )
    return conform("tasks", frame[np.flatnonzero(totals.rows > 0)])


def _submitted(world: World, block: Block) -> dict[str, pl.Series | IntArray]:
    """Return what was known when the task was submitted."""
    tasks, kind = block.tasks, block.tasks.kind
    return {
        "jeditaskid": block.taskid,
        "reqid": block.taskid // 7,
        "parent_tid": block.taskid,
        "vo": texts(["atlas"], kind * 0),
        "prodsourcelabel": texts([k.label for k in JOB_TYPES], kind),
        "tasktype": texts(["prod", "anal"], tasks.user.astype(np.int64)),
        "processingtype": texts([k.processingtype for k in JOB_TYPES], kind),
        "campaign": texts(["SYNTH-a", "SYNTH-b"], tasks.late.astype(np.int64)),
        "workqueue_id": kind + 1,
        **owner_columns(block, np.arange(tasks.n)),
        "taskpriority": tasks.priority,
        "currentpriority": tasks.priority,
        "corecount": tasks.cores,
        "cpuefficiency": np.full(tasks.n, 90),
        "basewalltime": tasks.base_wall_s,
        "baseramcount": tasks.base_ram_mb,
        "ramunit": texts(["MB", "MBPerCore"], tasks.per_core.astype(np.int64)),
        "orig_ramcount": _submitted_ram(block),
        "orig_cputimeunit": texts(["HS06sPerEvent"], kind * 0),
        "transpath": texts([k.transpath for k in JOB_TYPES], kind),
        "architecture": texts(["x86_64-centos7-gcc11-opt"], kind * 0),
        "goal": np.full(tasks.n, 1000),
        "scoutsuccessrate": np.full(tasks.n, 5),
        "nfilesperjob": tasks.files_per_job,
        "mergeoutput": known(np.ones(tasks.n, np.int64), tasks.merge_group > 0),
        "creationdate": world.times(np.floor(tasks.created_s).astype(np.int64)),
    }


def _progress(
    world: World, block: Block, totals: Totals, code: IntArray
) -> dict[str, pl.Series | IntArray | BoolArray]:
    """Return how far the task has come."""
    n = block.tasks.n
    return {
        "status": texts(STATUS, code),
        "attemptnr": np.ones(n, np.int64),
        "modificationtime": world.times(totals.last_s + 300),
        "starttime": world.times(np.where(totals.rows > 0, totals.first_s, 0)),
        "endtime": world.times(totals.last_s),
        "statechangetime": world.times(totals.last_s + 300),
        "t_done_jobs": totals.ok,
        "usescout": np.where(code == STATUS.index("scouting"), 2, 3),
        "ended": np.isin(code, [STATUS.index(s) for s in ("done", "finished", "broken")]),
    }


def _submitted_ram(block: Block) -> IntArray:
    """Return the memory asked for at submission [MB]: per core, or of the whole job."""
    tasks = block.tasks
    return tasks.pre_ram_mb * np.where(tasks.per_core, 1, tasks.ref_cores)


def _parameters(block: Block, code: IntArray) -> dict[str, pl.Series | IntArray]:
    """Return the task parameters: submitted ones before the decision, the scouts' ones after it."""
    tasks, req = block.tasks, block.requests
    decided = code != STATUS.index("scouting")
    ram = np.where(decided & (req.ram_mb > 0), req.ram_mb, _submitted_ram(block))
    set_cpu = decided & (req.cputime >= 0)
    per_core = np.where(tasks.per_core, ram, ram // tasks.ref_cores)
    units = [None, "HS06sPerEvent", "mHS06sPerEvent"]
    some = req.workdisk_mb >= 0
    size = {
        "outdiskcount": known(req.outdisk_kb, decided & (req.outdisk_kb >= 0)),
        "workdiskcount": known(req.workdisk_mb, decided & some),
        "iointensity": known(req.iointensity, decided & some),
        "diskio": known(req.diskio, decided & some),
        "walltime": known(req.walltime, decided & some),
    }
    yes = (decided & some).astype(np.int64)
    return {
        **size,
        "ramcount": ram,
        "cputime": known(req.cputime, set_cpu),
        "cputimeunit": texts(units, np.where(set_cpu, np.where(req.milli, 2, 1), 0)),
        "outdiskunit": texts(["kBPerEvent"], tasks.kind * 0),
        "workdiskunit": texts([None, "MB"], yes),
        "iointensityunit": texts([None, "kBPerS"], yes),
        "diskiounit": texts([None, "kBPerS"], yes),
        "walltimeunit": texts([None, "kSI2kseconds"], yes),
        "resource_type": texts(
            RESOURCE_TYPES, 2 * (tasks.ref_cores > 1) + (per_core > HIMEM_MB).astype(np.int64)
        ),
    }


def datasets_frame(world: World, block: Block, totals: Totals) -> pl.DataFrame:
    """Return the block's rows of ``datasets``: input, output, log and, if merging, unmerged output."""
    tasks, n = block.tasks, block.tasks.n
    per_job = tasks.files_per_job
    pseudo = of_kind(tasks.kind, lambda k: k.pseudo).astype(np.int64)
    zero = np.zeros(n, np.int64)
    common = {
        "jeditaskid": block.taskid,
        "creationtime": world.times(np.floor(tasks.created_s).astype(np.int64)),
        "modificationtime": world.times(totals.last_s + 300),
        "keep": totals.rows > 0,
    }
    events = np.round(tasks.n_jobs * tasks.events).astype(np.int64)
    parts = []
    for place, (kind, done, total) in enumerate(
        [
            ("input", totals.ok * per_job, tasks.n_jobs * per_job),
            ("output", totals.ok, tasks.n_jobs),
            ("log", totals.ok, tasks.n_jobs),
            ("trn_output", totals.ok, tasks.n_jobs),
        ]
    ):
        names = ["input", "pseudo_input"] if place == 0 else [kind]
        used = totals.jobs * per_job if place == 0 else done
        part = pl.DataFrame(
            {
                **common,
                "datasetid": block.taskid * DATASETS_PER_TASK + place,
                "type": texts(names, pseudo if place == 0 else zero),
                "nfiles": total,
                "nfilestobeused": total,
                "nfilesused": used,
                "nfilesfinished": done,
                "nfilesfailed": used - done - (totals.open * per_job if place == 0 else 0),
                "nevents": known(events, tasks.has_events & (place == 0)),
                "wanted": np.full(n, place < 3) | (tasks.merge_group > 0),
            }
        )
        parts.append(part.with_columns(datasetname=pl.format("synth.{}." + kind, "jeditaskid")))
    frame = pl.concat(parts).filter(pl.col("keep") & pl.col("wanted"))
    frame = frame.with_columns(status=pl.lit("ready"), state=pl.lit("closed"))
    return conform("datasets", frame.sort("jeditaskid", "datasetid"))


def job_status_log(world: World, jobs: pl.DataFrame) -> pl.DataFrame:
    """Write ``job_status_log`` of jobs at queues that push: their times, and the states that times do not tell.

    Sorted by job and time: defined, assigned, activated, starting, running, then holding or transferring, then the last one.
    """
    logged = world.queues.filter(pl.col("workflow") == "push")["panda_queue"]
    mine = jobs.filter(pl.col("computingsite").is_in(logged.implode()))
    created, active, begun = pl.col("creationtime"), pl.col("activatedtime"), pl.col("starttime")
    half_wait_s = (begun - active).dt.total_seconds().clip(upper_bound=600) // 2
    brief = pl.duration(seconds=5)
    moments = {
        "defined": created,
        "assigned": pl.min_horizontal(created + brief, active),
        "activated": active,
        "starting": pl.when(_hangs_starting(world))
        .then(active + pl.duration(seconds=60))
        .otherwise(begun - pl.duration(seconds=half_wait_s)),
        "running": begun,
        "after": pl.col("endtime"),
        "last": pl.col("modificationtime"),
    }
    base = ["pandaid", "computingsite", "prodsourcelabel", "jobstatus", "nucleus"]
    sent = (pl.col("jobstatus") == "finished") & pl.col("nucleus").is_not_null()
    status = (
        pl.when(pl.col("step") == "last").then("jobstatus")
        .when(pl.col("step") != "after").then("step")
        .when(sent).then(pl.lit("transferring")).otherwise(pl.lit("holding"))
    )  # fmt: skip
    ordered = _steps(mine, base, moments).with_columns(jobstatus=status).sort("pandaid", "order")
    reached = ordered.drop_nulls("modificationtime")  # not all of them by live jobs
    return conform(
        "job_status_log",
        reached.unique(["pandaid", "jobstatus"], keep="first", maintain_order=True),
    )


def _hangs_starting(world: World) -> pl.Expr:
    """Decide whether a job waits for its queue in ``starting``."""
    second = (pl.col("creationtime").cast(pl.Int64) - world.settings.start_us) // 1_000_000
    hangs = pl.lit(value=False)
    for spell in world.spells:
        if spell.status == "starting":
            there = pl.col("computingsite") == world.names[spell.queue]
            hangs |= there & second.is_between(spell.begin_s, spell.end_s - 900)
    return hangs


def task_status_log(
    world: World, block: Block, totals: Totals, tasks: pl.DataFrame
) -> pl.DataFrame:
    """Write when tasks were registered, assigned to a nucleus (production), scouted, decided, ended, by task and time."""
    first = np.full(block.tasks.n, np.iinfo(np.int64).max)
    np.minimum.at(first, block.row_task, block.created)
    keep = totals.rows > 0
    clock = pl.DataFrame(
        {
            "jeditaskid": block.taskid[keep],
            "scouting": world.times(first[keep]),
            "decided": world.times(np.ceil(block.decided_s[keep]).astype(np.int64)),
        }
    )
    mine = tasks.join(clock, on="jeditaskid")
    made, end = pl.col("creationdate"), pl.col("endtime")
    production = pl.col("prodsourcelabel") == "managed"
    moments = {
        "registered": made,
        "defined": made + pl.duration(seconds=30),
        "assigning": pl.when(production).then(made + pl.duration(seconds=120)),
        "ready": pl.max_horizontal(
            pl.col("scouting") - pl.duration(seconds=60), made + pl.duration(seconds=30)
        ),
        "scouting": pl.col("scouting"),
        "running": pl.when(pl.col("status") != "scouting").then(pl.min_horizontal("decided", pl.coalesce(end, "decided"))),
        "last": end,
    }  # fmt: skip
    long = _steps(mine, ["jeditaskid", "status"], moments).drop_nulls("modificationtime")
    status = pl.when(pl.col("step") == "last").then("status").otherwise("step")
    ordered = long.with_columns(status=status, attemptnr=1).sort("jeditaskid", "order")
    return conform("task_status_log", ordered)


def _steps(rows: pl.DataFrame, base: list[str], moments: dict[str, pl.Expr]) -> pl.DataFrame:
    """Return a row per moment of each row: ``step`` and ``order`` say which, ``modificationtime`` when."""
    long = rows.select(*base, **moments).unpivot(
        list(moments), index=base, variable_name="step", value_name="modificationtime"
    )
    order = {step: place for place, step in enumerate(moments)}
    return long.with_columns(order=pl.col("step").replace_strict(order, return_dtype=pl.Int8))
