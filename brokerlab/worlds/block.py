"""One block of an archive: its tasks, scouts, what these make of it, bulk jobs, merges, cut to the row.

The rule of the scouts is written apart from ``brokerlab.scouts`` on purpose: a second, plain writing of it (scouts.md 5.1 to
5.7), vectorised over tasks, lets the generator's requests be checked against it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy.special import ndtri

from brokerlab.errors import DataError
from brokerlab.numerics import BoolArray, FloatArray, IntArray, SortedGroups
from brokerlab.units import KB, MB
from brokerlab.worlds.chains import (
    BUILD,
    BULK,
    FINISHED,
    MERGED,
    SCOUT,
    Attempts,
    Limits,
    Roots,
    draw_roots,
    join,
    merge_keys,
    no_limits,
    rule_events,
    run,
    take,
)
from brokerlab.worlds.jobtypes import BUILD_TYPE, MERGE, of_kind
from brokerlab.worlds.queues import generator
from brokerlab.worlds.tasks import MAX_BLOCK_TASKS, Owners, Tasks, draw_owners, draw_tasks
from brokerlab.worlds.world import World

CPUTIME_RANK = 95
"""Percentile rank of the rule of CPU time."""


@dataclass(frozen=True)
class Requests:
    """Task parameters after scouting, one entry per task; -1 = not set."""

    ram_mb: IntArray  # ``ramcount`` [MB], per core where the task asks per core
    cputime: IntArray  # ``cputime`` [HS06 s per event], or where ``milli`` [mHS06 s per event]
    milli: BoolArray
    outdisk_kb: IntArray  # ``outdiskcount`` [kB per event]
    workdisk_mb: IntArray
    iointensity: IntArray  # [kB/s]
    diskio: IntArray  # [kB/s]
    walltime: IntArray  # [s per MB]

    def limit_hs06(self) -> FloatArray:
        """Return the CPU time per event in HS06 seconds; 0 = no scaling, -1 = not set."""
        return np.where(self.milli, self.cputime / 1000, self.cputime)


def _largest(group: IntArray, values: FloatArray, n: int) -> FloatArray:
    """Return the largest value of every group, 0 for empty groups."""
    result = np.zeros(n)
    np.maximum.at(result, group, values)
    return result


def _whole(values: FloatArray, known: BoolArray) -> IntArray:
    """Truncate to integers, -1 where not known."""
    return np.where(known, np.nan_to_num(values), -1).astype(np.int64)


FIRST_TASK = 40_000_000
"""Task ids start here; block b has FIRST_TASK + b * TASKS_PER_BLOCK upward, in the order of creation."""
TASKS_PER_BLOCK = 2 * MAX_BLOCK_TASKS
"""Room between the task ids of blocks: for those drawn, and for those laid out one by one."""
FIRST_JOB = 7_000_000_000
"""Job ids start here and grow with the second of creation."""
IDS_PER_SECOND = 1024
"""Job ids of one block within one second of creation."""
TASK_IDS, PROBE_IDS, PLANTED_IDS = (0, 896), (896, 64), (960, 64)
"""First and number of those for jobs of tasks that are drawn, for probes, for tasks that are laid out."""
FILE_SD = 0.03
"""sd of ln(file size) inside a task."""
TRANSFER_S, TRANSFER_LN_SD, LONGEST_TRANSFER_S = 14_000, 0.8, 2 * 86_400
"""Median and sd of ln of the time that outputs of slow sites travel [s], and the most."""


@dataclass(frozen=True)
class Measures:
    """What is recorded about each attempt, in the units that the names say."""

    cpu_s: IntArray
    maxpss_kb: IntArray
    output_bytes: IntArray
    input_bytes: IntArray
    read_kb: IntArray
    write_kb: IntArray
    workdir_bytes: IntArray


@dataclass(frozen=True)
class Block:
    """Everything drawn for one block; ``rows`` is ordered by task, phase, job and attempt."""

    index: int
    tasks: Tasks
    owners: Owners
    roots: Roots
    rows: Attempts
    requests: Requests
    decided_s: FloatArray
    measures: Measures
    pandaid: IntArray
    created: IntArray
    complete: BoolArray
    taskid: IntArray

    @property
    def row_task(self) -> IntArray:
        """Index of the task of every row."""
        return self.roots.task[self.rows.root]


def draw_block(world: World, *, index: int, n_blocks: int, quota: int) -> Block:
    """Draw one block of ``quota`` rows of ``jobs``, later blocks with later tasks; it depends on the seed and its number only.

    Raises:
        DataError: The settings make tasks so small that a block cannot reach its rows.
    """
    rng = generator(world.settings, 1, index)
    length = world.settings.submit_s / n_blocks
    tasks = draw_tasks(
        world, rng,
        quota=quota, begin_s=index * length, length_s=length,
    )  # fmt: skip
    roots, rows, requests, decided = _run_phases(world, rng, tasks)
    owners = draw_owners(generator(world.settings, 3, index), tasks)
    order = np.lexsort(
        (rows.attempt, roots.seq[rows.root], roots.phase[rows.root], roots.task[rows.root])
    )
    if len(order) < quota:
        raise DataError(
            f"synthetic archive: block {index} drew {len(order)} jobs, {quota} are needed; "
            "raise max_task_jobs"
        )
    total = np.bincount(roots.task[rows.root], minlength=tasks.n)
    rows = take(rows, order[:quota])
    kept = np.bincount(roots.task[rows.root], minlength=tasks.n)
    created, pandaid = identify(rows.created_s, index=index, n_blocks=n_blocks)
    return Block(
        index=index,
        tasks=tasks,
        owners=owners,
        roots=roots,
        rows=rows,
        requests=requests,
        decided_s=decided,
        measures=measure(tasks, roots, rows),
        pandaid=pandaid,
        created=created,
        complete=kept == total,
        taskid=FIRST_TASK + index * TASKS_PER_BLOCK + np.arange(tasks.n),
    )


def with_others(block: Block, created_s: IntArray) -> tuple[Block, IntArray]:
    """Number the block's tasks and others, made at ``created_s``, together in the order of their creation."""
    own = np.floor(block.tasks.created_s).astype(np.int64)
    place = np.empty(len(own) + len(created_s), dtype=np.int64)
    place[np.argsort(np.concatenate([own, created_s]), kind="stable")] = np.arange(len(place))
    ids = FIRST_TASK + block.index * TASKS_PER_BLOCK + place
    return replace(block, taskid=ids[: len(own)]), ids[len(own) :]


def _run_phases(
    world: World, rng: np.random.Generator, tasks: Tasks
) -> tuple[Roots, Attempts, Requests, FloatArray]:
    """Run scouts, decide, run the bulk with the requests decided, run the merges."""
    builds, ran_builds = _builds(world, rng, tasks)
    task, seq = _enumerate(tasks.n_scouts)
    submit = tasks.created_s + rng.uniform(300, 1800, tasks.n)
    np.maximum.at(submit, builds.task[ran_builds.root], ran_builds.done_s + 20)
    scouts = draw_roots(
        tasks, rng, phase=SCOUT, task=task, seq=seq,
        created_s=submit[task] + rng.uniform(0, 20, len(task)),
    )  # fmt: skip
    ran = run(tasks, world, rng, scouts, no_limits(len(task)))
    decided = _decision(rng, tasks, scouts, ran)
    known = ran.last & (ran.outcome == FINISHED) & (ran.done_s <= decided[scouts.task[ran.root]])
    requests = decide(world, tasks, scouts, take(ran, np.flatnonzero(known)))
    broken = np.bincount(scouts.task[ran.root[known]], minlength=tasks.n) == 0
    task, seq = _enumerate(np.where(broken, 0, tasks.n_jobs - tasks.n_scouts))
    rate = np.maximum(tasks.n_jobs, 60) / rng.uniform(120, 900, tasks.n)
    bulk = draw_roots(
        tasks, rng, phase=BULK, task=task, seq=seq,
        created_s=decided[task] + rng.uniform(60, 600, tasks.n)[task] + seq / rate[task],
    )  # fmt: skip
    ran_bulk = run(tasks, world, rng, bulk, limits_of(tasks, requests, bulk))
    all_roots, all_rows = _stack([scouts, bulk], [ran, ran_bulk])
    merges = _merges(rng, tasks, all_roots, all_rows)
    ran_merges = run(tasks, world, rng, merges, no_limits(len(merges.task)))
    parts = _stack([all_roots, merges, builds], [all_rows, ran_merges, ran_builds])
    return *parts, requests, decided


def _builds(world: World, rng: np.random.Generator, tasks: Tasks) -> tuple[Roots, Attempts]:
    """Run the builds of user tasks; the scouts wait for them, whatever comes out."""
    task = np.flatnonzero(tasks.user & (rng.random(tasks.n) < BUILD_TYPE.task_share))
    roots = draw_roots(
        tasks, rng, phase=BUILD, task=task, seq=np.zeros(len(task), np.int64),
        created_s=tasks.created_s[task] + rng.uniform(60, 300, len(task)),
    )  # fmt: skip
    return roots, run(tasks, world, rng, roots, no_limits(len(task)))


def _decision(rng: np.random.Generator, tasks: Tasks, scouts: Roots, ran: Attempts) -> FloatArray:
    """Return when the task was decided: half of its scouts finished, looked at within 10 minutes."""
    last = np.flatnonzero(ran.last)
    end = np.full((tasks.n, 10), np.inf)
    root = ran.root[last]
    t, s = scouts.task[root], scouts.seq[root]
    end[t, s] = np.where(ran.outcome[last] == FINISHED, ran.done_s[last], np.inf)
    latest = np.zeros(tasks.n)
    np.maximum.at(latest, t, ran.done_s[last])
    half = (tasks.n_scouts + 1) // 2
    at = np.sort(end, axis=1)[np.arange(tasks.n), half - 1]
    return np.where(np.isfinite(at), at, latest) + rng.uniform(0, 600, tasks.n)


def decide(world: World, tasks: Tasks, roots: Roots, rows: Attempts) -> Requests:
    """Apply the production rule to every task at once; the rows are its finished scouts that are known at the decision.

    Source:
        scouts.md sections 5.1 to 5.7, production column.
    """
    n, t, settings = tasks.n, roots.task[rows.root], world.settings
    seen, wall_s, cores = measure(tasks, roots, rows), rows.wall_s, rows.cores
    events = rule_events(tasks, roots)[rows.root]
    pseudo = of_kind(tasks.kind[t], lambda k: k.pseudo) > 0
    part = np.trunc(seen.input_bytes / of_kind(tasks.kind[t], lambda k: k.event_ranges))
    input_mb = np.where(pseudo, tasks.files_per_job[t], part / MB)
    per_core = np.ceil((seen.maxpss_kb - tasks.base_ram_mb[t] * 1024) / cores)
    kb = np.where(tasks.per_core[t], per_core, seen.maxpss_kb)
    memory = SortedGroups.of(t, kb, n).percentile(settings.ram_rank)
    ram = np.floor_divide(memory * (100 + settings.ram_margin_pct), 100) / 1024
    busy = np.maximum(wall_s - tasks.base_wall_s[t], 0)
    hs06 = busy * world.corepower[tasks.slots.queue[t, rows.slot]] * cores * 90 / 100
    eligible = (events >= 10 * cores) | pseudo | (wall_s > 6 * 3600)
    used = SortedGroups.of(t[eligible], (hs06 / events)[eligible], n).percentile(CPUTIME_RANK) * 1.5
    milli = used < 10
    big = events >= 10
    per_event = np.ceil(seen.output_bytes / events)
    out = SortedGroups.of(t[big], per_event[big], n).percentile(75) / KB
    io = (input_mb * 1024 + seen.output_bytes / KB) / wall_s / cores
    some = np.bincount(t, minlength=n)
    disk = np.bincount(t, (seen.read_kb + seen.write_kb) / wall_s, minlength=n)
    cpu = _largest(t, seen.cpu_s.astype(np.float64), n)
    wall = np.ceil(np.where(cpu < 3600, 0, cpu) / np.maximum(_largest(t, input_mb, n), 1e-9) * 1.5)
    return Requests(
        ram_mb=_whole(np.maximum(np.trunc(ram), 1), ~np.isnan(memory)),
        cputime=_whole(np.ceil(np.where(milli, used * 1000, used)), ~np.isnan(used)),
        milli=milli,
        outdisk_kb=_whole(np.minimum(out, 10240), ~np.isnan(out)),
        workdisk_mb=_whole(_largest(t, seen.workdir_bytes / MB, n), some > 0),
        iointensity=_whole(np.ceil(_largest(t, io, n)), some > 0),
        diskio=_whole(np.floor_divide(disk, np.maximum(some, 1.0)), some > 0),
        walltime=_whole(np.minimum(wall, 999_999_999), some > 0),
    )


def measure(tasks: Tasks, roots: Roots, rows: Attempts) -> Measures:
    """Turn what attempts needed into what is recorded; a pure function, so scouts and record agree."""
    r = rows.root
    t = roots.task[r]
    merge, build = roots.phase[r] == MERGED, roots.phase[r] == BUILD
    file_bytes = np.round(tasks.file_mb[t] * MB * np.exp(FILE_SD * roots.size[r]))
    merged_bytes = MERGE.input_mb * MB * roots.events[r] / MERGE.events
    input_bytes = np.where(merge, np.round(merged_bytes), tasks.files_per_job[t] * file_bytes)
    input_bytes = np.where(build, 0, input_bytes)
    output = tasks.out_bytes[t] * roots.events[r] * np.exp(tasks.out_sd[t] * roots.out[r])
    merged_out = MERGE.output_mb * MB * roots.events[r] / MERGE.events
    built = BUILD_TYPE.output_mb * MB * np.exp(0.5 * roots.out[r])
    output = np.ceil(np.where(merge, merged_out, np.where(build, built, output)))
    factor = np.where(merge, 1.0, of_kind(tasks.kind[t], lambda k: k.read_factor))
    read = factor * np.maximum(input_bytes, MB) * np.exp(0.1 * roots.size[r]) / KB
    whole = [rows.eff * rows.wall_s * rows.cores, rows.mem_mb * KB, output, input_bytes, read]
    cpu, pss, out, inp, read_kb = (np.round(w).astype(np.int64) for w in whole)
    return Measures(
        cpu_s=cpu,
        maxpss_kb=np.maximum(pss, 1),
        output_bytes=out,
        input_bytes=inp,
        read_kb=read_kb,
        write_kb=out * 3 // (2 * KB),
        workdir_bytes=out * 2 + 10 * MB,
    )


def limits_of(tasks: Tasks, requests: Requests, roots: Roots) -> Limits:
    """Return the limits of jobs created after the decision; kills act on the uncompensated request."""
    t = roots.task
    ram = np.where(requests.ram_mb[t] > 0, requests.ram_mb[t].astype(np.float64), np.inf)
    per_core = tasks.per_core[t]
    hs06 = requests.limit_hs06()[t]
    return Limits(
        ram_mb=np.where(per_core, tasks.base_ram_mb[t], ram),
        ram_core_mb=np.where(per_core, ram, 0.0),
        hs06_per_event=np.where(hs06 > 0, hs06, np.inf),
    )


def _merges(rng: np.random.Generator, tasks: Tasks, roots: Roots, rows: Attempts) -> Roots:
    """Draw merge jobs: one per group of outputs, made when the last of the group has ended."""
    last = np.flatnonzero(rows.last)
    root = rows.root[last]
    t = roots.task[root]
    merged = (tasks.merge_group[t] > 0) & (rows.outcome[last] == FINISHED)
    end = rows.done_s[last][merged]
    groups, which = np.unique(merge_keys(tasks, roots)[root[merged]], return_inverse=True)
    ready = np.zeros(len(groups))
    np.maximum.at(ready, which, end)
    return draw_roots(
        tasks, rng, phase=MERGED, task=groups >> 32, seq=groups & 0xFFFFFFFF,
        created_s=ready + rng.uniform(60, 600, len(groups)),
    )  # fmt: skip


def _stack(roots: list[Roots], rows: list[Attempts]) -> tuple[Roots, Attempts]:
    """Join phases; rows of later phases point at the joined roots."""
    start = np.cumsum([0, *[len(r.task) for r in roots[:-1]]])
    moved = [replace(a, root=a.root + s) for a, s in zip(rows, start, strict=True)]
    return join(roots), join(moved)


def _enumerate(count: IntArray) -> tuple[IntArray, IntArray]:
    """Return the task and the number of every job, given the jobs per task: of 2, 0, 1 tasks 0, 0, 2 and numbers 0, 1, 0."""
    task = np.repeat(np.arange(len(count)), count)
    first = np.cumsum(count) - count
    return task, np.arange(len(task)) - first[task]


def identify(
    created_s: FloatArray, *, index: int, n_blocks: int, room: tuple[int, int] = TASK_IDS
) -> tuple[IntArray, IntArray]:
    """Return second of creation and ``pandaid``: ids grow with creation and are unique over blocks.

    Where a second is full, of as many ids as it has room for (first and number), creation is the next one.
    """
    second = np.floor(created_s).astype(np.int64)
    first, many = room
    while True:
        order = np.argsort(second, kind="stable")
        ordered = second[order]
        begin = np.searchsorted(ordered, ordered, side="left")
        rank = np.empty(len(second), dtype=np.int64)
        rank[order] = np.arange(len(second)) - begin
        full = rank >= many
        if not full.any():
            break
        second = second + full
    place = first + rank
    return second, FIRST_JOB + (second * n_blocks + index) * IDS_PER_SECOND + place


def scatter(ids: IntArray) -> FloatArray:
    """Spread ids evenly over 0 .. 1 (Fibonacci hashing): a property of the job, not a draw."""
    mixed = ids.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    return (mixed >> np.uint64(40)).astype(np.float64) / 2.0**24


def delayed(block: Block, world: World) -> Block:
    """Let the outputs of bulk jobs at slow sites travel for hours after the job has ended: ``report_s`` grows.

    Only jobs that nothing waits for are delayed: no scouts, no tasks that merge, no analysis; so
    whatever else was drawn stays.
    """
    rows, tasks, t = block.rows, block.tasks, block.row_task
    slow = world.slow[tasks.slots.queue[t, rows.slot]]
    hit = slow & tasks.managed[t] & (rows.outcome == FINISHED) & (tasks.merge_group[t] == 0)
    hit &= block.roots.phase[rows.root] == BULK
    z = ndtri(np.clip(scatter(block.pandaid), 1e-6, 1 - 1e-6))
    travel = np.minimum(TRANSFER_S * np.exp(TRANSFER_LN_SD * z), LONGEST_TRANSFER_S)
    report = np.where(hit, rows.report_s + np.round(travel).astype(np.int64), rows.report_s)
    return replace(block, rows=replace(rows, report_s=report))
