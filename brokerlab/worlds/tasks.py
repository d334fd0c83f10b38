"""Draw the tasks of one block: sizes, their own distributions, and the queues they run at."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import ndtri

from brokerlab.numerics import BoolArray, FloatArray, IntArray
from brokerlab.worlds.jobtypes import JOB_TYPES, JobType, Range, of_kind, per_type, range_of_kind
from brokerlab.worlds.places import MAX_SLOTS, Slots, draw_slots
from brokerlab.worlds.world import World

MAX_BLOCK_TASKS = 8192
"""Most tasks of one block: the room between the task ids of blocks."""
N_SCOUTS = 10
QUEUE_SHARE_OF_MEMORY = 0.17
"""Share of the variance of ln(peak memory) inside a task that lies between queues (section 4)."""
LEVELS: FloatArray = ndtri((np.arange(9) + 0.5) / 9)
"""Standard normal levels, equally likely, of the events of a job: finite so that the truth is exact."""
TAIL_SHARE, TAIL_SCALE = 0.015, 0.3
"""Heavy right tail of ln(wall time): share of jobs and mean size (section 10, item 2)."""
OUT_TASK_SD, OUT_JOB_SD = 0.15, 0.075
"""In a calm world sd of ln(output per event) at most so much between tasks of a kind, and at least so much inside one, about as
inputs have it (8 %, section 3): else few tasks with large output decide what a rank of outdiskcount costs."""
FILES_LN_MEAN, FILES_LN_SD = 5.10, 1.54
"""Mean and sd of ln(input files of a task)."""
DRIFT_AT = 0.6
"""Part of the period after which the new campaign starts."""
WALL_BOUNDS_S = (150.0, 80_000.0)
"""Shortest and longest median wall time of a task [s]."""


@dataclass(frozen=True)
class Tasks:
    """The tasks of one block, one entry per task; names as in ``JobType`` where they are the same."""

    kind: IntArray
    created_s: FloatArray
    late: BoolArray
    files_per_job: IntArray
    n_jobs: IntArray
    merge_group: IntArray
    cores: IntArray
    ref_cores: IntArray
    events: FloatArray
    events_sd: FloatArray
    has_events: BoolArray
    file_mb: FloatArray
    out_bytes: FloatArray
    out_sd: FloatArray
    wall_s: FloatArray
    wall_sd: FloatArray
    startup: FloatArray
    eff: FloatArray
    eff_sd: FloatArray
    mem_base_mb: FloatArray
    mem_core_mb: FloatArray
    mem_event_mb: FloatArray
    mem_sd: FloatArray
    mem_queue_sd: FloatArray
    light_share: FloatArray
    light_scale: FloatArray
    gap_mem: FloatArray
    gap_wall: FloatArray
    base_ram_mb: IntArray
    pre_ram_mb: IntArray
    base_wall_s: IntArray
    per_core: BoolArray
    priority: IntArray
    slots: Slots

    @property
    def n(self) -> int:
        """Number of tasks."""
        return len(self.kind)

    @property
    def user(self) -> BoolArray:
        """Tasks of users."""
        return of_kind(self.kind, lambda t: t.label == "user") > 0

    @property
    def managed(self) -> BoolArray:
        """Tasks of production."""
        return ~self.user

    @property
    def n_scouts(self) -> IntArray:
        """Scout jobs of each task: ten, or all jobs of a smaller task."""
        return np.minimum(self.n_jobs, N_SCOUTS)


def draw_tasks(
    world: World, rng: np.random.Generator, *, quota: int, begin_s: float, length_s: float
) -> Tasks:
    """Draw the tasks of one block in the order of their creation, until they hold a little more jobs than ``quota``."""
    sizes = _draw_sizes(world, rng, quota)
    kind, n = sizes["kind"], len(sizes["kind"])
    created = begin_s + np.sort(rng.random(n)) * length_s
    late = created >= DRIFT_AT * world.settings.submit_s
    drift = np.where(late, world.settings.drift, 0.0)
    cores, ref = _draw_cores(rng, kind)
    memory = _draw_memory(rng, kind, drift)
    user = of_kind(kind, lambda t: t.label == "user") > 0
    slots = draw_slots(
        world, rng, kind=kind, cores=cores, n_jobs=sizes["n_jobs"],
        need_mb=(memory["mem_base_mb"], memory["mem_core_mb"]), mem_queue_sd=memory["mem_queue_sd"],
        most=world.n if world.settings.lived else MAX_SLOTS,
    )  # fmt: skip
    return Tasks(
        **sizes,
        **memory,
        **_draw_wall(world, rng, kind, ref, drift),
        **_draw_data(world, rng, kind, sizes["files_per_job"]),
        created_s=created,
        late=late,
        cores=cores,
        ref_cores=ref,
        has_events=rng.random(n) >= of_kind(kind, lambda t: t.no_events_share),
        base_ram_mb=of_kind(kind, lambda t: t.base_ram_mb).astype(np.int64),
        pre_ram_mb=of_kind(kind, lambda t: t.pre_ram_mb).astype(np.int64),
        base_wall_s=np.where(user, 60, 600),
        per_core=~user,
        priority=np.where(user, 1000, rng.choice([500, 560, 700, 880, 895, 1100], n)),
        slots=slots,
    )


def _draw_cores(rng: np.random.Generator, kind: IntArray) -> tuple[IntArray, IntArray]:
    """Return the tasks' core counts, 0 = the queue's, and those at which their truth is quoted."""
    u = rng.random(len(kind))
    pairs = zip((JOB_TYPES[k] for k in kind), u, strict=True)
    cores = np.array([t.cores[_pick(t.cores_share, x)] for t, x in pairs], dtype=np.int64)
    usual = of_kind(kind, lambda t: t.ref_cores).astype(np.int64)
    return cores, np.where(cores > 0, cores, usual)


def _draw_memory(rng: np.random.Generator, kind: IntArray, drift: FloatArray) -> dict[str, Any]:
    """Draw the peak memory of each task: level, spread, left tail, gap of its scouts."""
    z = rng.standard_normal((2, len(kind)))
    level = np.exp(of_kind(kind, lambda t: t.mem_task_sd) * z[0] + drift)
    sd = _uniform(rng, kind, lambda t: t.mem_sd)
    gap, gap_sd = range_of_kind(kind, lambda t: t.gap_mem)
    return {
        "mem_base_mb": of_kind(kind, lambda t: t.mem_base_mb) * level,
        "mem_core_mb": of_kind(kind, lambda t: t.mem_core_mb) * level,
        "mem_event_mb": of_kind(kind, lambda t: t.mem_event_mb) * level,
        "mem_sd": np.sqrt(1 - QUEUE_SHARE_OF_MEMORY) * sd,
        "mem_queue_sd": np.sqrt(QUEUE_SHARE_OF_MEMORY) * sd,
        "light_share": of_kind(kind, lambda t: t.light_share),
        "light_scale": of_kind(kind, lambda t: t.light_scale),
        "gap_mem": gap + gap_sd * z[1] - drift / 2,
    }


def _draw_wall(
    world: World, rng: np.random.Generator, kind: IntArray, ref_cores: IntArray, drift: FloatArray
) -> dict[str, Any]:
    """Draw the wall time and efficiency of each task; ``wall_s`` is at its ``ref_cores``."""
    z = rng.standard_normal((3, len(kind)))
    usual = _spread(kind, lambda t: t.wall_s, lambda t: t.wall_task_sd, z[0])
    startup = of_kind(kind, lambda t: t.startup)
    scale = of_kind(kind, lambda t: t.ref_cores) / ref_cores
    gap, gap_sd = range_of_kind(kind, lambda t: t.gap_wall)
    wall_s = np.clip(usual * (startup + (1 - startup) * scale), *WALL_BOUNDS_S) * np.exp(drift)
    return {
        "wall_s": wall_s,
        "wall_sd": _uniform(rng, kind, lambda t: t.wall_sd),
        "startup": startup,
        "eff": np.minimum(of_kind(kind, lambda t: t.eff) * np.exp(0.03 * z[1]), 0.97),
        "eff_sd": of_kind(kind, lambda t: t.eff_sd),
        "gap_wall": gap + world.settings.apart * gap_sd * z[2],
    }


def _draw_data(
    world: World, rng: np.random.Generator, kind: IntArray, files_per_job: IntArray
) -> dict[str, Any]:
    """Draw the events and the bytes of each task."""
    z = rng.standard_normal((2, len(kind)))
    events = of_kind(kind, lambda t: t.events_per_file) * files_per_job
    between = of_kind(kind, lambda t: t.out_task_sd)
    inside = of_kind(kind, lambda t: t.out_job_sd)
    if world.settings.calm:
        between, inside = np.minimum(between, OUT_TASK_SD), np.maximum(inside, OUT_JOB_SD)
    return {
        "events": np.maximum(1.0, np.round(events)),
        "events_sd": of_kind(kind, lambda t: t.events_job_sd),
        "file_mb": of_kind(kind, lambda t: t.file_mb) * np.exp(0.3 * z[0]),
        "out_bytes": of_kind(kind, lambda t: t.out_bytes) * np.exp(between * z[1]),
        "out_sd": inside,
    }


def _draw_sizes(world: World, rng: np.random.Generator, quota: int) -> dict[str, Any]:
    """Draw kinds and sizes of tasks until their jobs suffice."""
    n = MAX_BLOCK_TASKS
    kind = rng.choice(len(JOB_TYPES), n, p=per_type(lambda t: t.task_share)).astype(np.int64)
    u = rng.random((2, n))
    choices = [JOB_TYPES[k].files_per_job for k in range(len(JOB_TYPES))]
    width = np.array([len(c) for c in choices])[kind]
    table = np.array([np.resize(c, 4) for c in choices])
    per_job = table[kind, (u[0] * width).astype(np.int64)]
    files = np.ceil(np.exp(rng.normal(FILES_LN_MEAN, FILES_LN_SD, n)))
    n_jobs = np.ceil(np.minimum(files, 1e9) / per_job).astype(np.int64)
    n_jobs = np.minimum(n_jobs, world.settings.largest_task)
    merges = u[1] < of_kind(kind, lambda t: t.merge_share)
    group = np.where(merges, rng.choice([1, 2, 5], n), 0)
    n_merge = np.where(merges, -(-n_jobs // np.maximum(group, 1)), 0)
    total = np.cumsum(n_jobs + n_merge)
    used = int(np.searchsorted(total, quota * 1.02 + 20)) + 1
    drawn = {"kind": kind, "files_per_job": per_job, "n_jobs": n_jobs, "merge_group": group}
    return {name: values[:used] for name, values in drawn.items()}


def _spread(
    kind: IntArray,
    median: Callable[[JobType], float],
    sd: Callable[[JobType], float],
    z: FloatArray,
) -> FloatArray:
    """Draw a log-normal value per task around the median of its kind."""
    return np.asarray(of_kind(kind, median) * np.exp(of_kind(kind, sd) * z))


def _uniform(
    rng: np.random.Generator, kind: IntArray, bounds: Callable[[JobType], Range]
) -> FloatArray:
    """Draw uniformly from the range of each task's kind."""
    low, high = range_of_kind(kind, bounds)
    return np.asarray(low + (high - low) * rng.random(len(kind)))


def _pick(shares: tuple[float, ...], u: float) -> int:
    """Return the index that a uniform number selects."""
    return min(int(np.searchsorted(np.cumsum(shares), u)), len(shares) - 1)
