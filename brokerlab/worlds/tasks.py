"""Draw the tasks of one block: sizes, their own distributions, the queues they run at and what these do to their jobs, owners."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
from scipy.special import ndtri

from brokerlab.numerics import BoolArray, FloatArray, IntArray
from brokerlab.worlds.jobtypes import JOB_TYPES, JobType, Range, of_kind, range_of_kind
from brokerlab.worlds.world import World

MAX_SLOTS = 32
"""Most queues of one task, where its jobs are drawn to queues."""


@dataclass(frozen=True)
class Slots:
    """The queues of each task, (tasks, places) arrays; unused places have weight 0.

    ``weight`` sums to 1 per task; ``mem``, ``wall``, ``eff`` are effects on ln(peak memory), ln(wall time), ln(efficiency);
    ``scout``, (tasks, 2), holds the one or two places of the scouts.
    """

    queue: IntArray
    weight: FloatArray
    cores: IntArray
    mem: FloatArray
    wall: FloatArray
    eff: FloatArray
    scout: IntArray


def draw_slots(
    world: World,
    rng: np.random.Generator,
    *,
    kind: IntArray,
    cores: IntArray,
    n_jobs: IntArray,
    need_mb: tuple[FloatArray, FloatArray],
    mem_queue_sd: FloatArray,
    most: int = MAX_SLOTS,
) -> Slots:
    """Choose the queues of every task, most important first: able ones, larger ones more often, more for larger tasks.

    ``cores`` 0 = the queue's; ``need_mb`` is the memory of each task, base and per core; of ``most`` places those beyond the
    able queues have weight 0.
    """
    n, k_max = len(kind), min(most, world.n)
    job_cores = np.where(cores[:, None] > 0, cores[:, None], world.cores[None, :])
    able = _able(world, kind, cores, job_cores, need_mb)
    gumbel = -np.log(-np.log(rng.random((n, world.n))))
    score = np.where(able, 0.8 * np.log(world.size)[None, :] + gumbel, -1e9 + gumbel)
    queue = np.argsort(-score, axis=1, kind="stable")[:, :k_max]
    n_able = np.maximum(1, able.sum(axis=1))
    k_used = np.minimum(np.minimum(n_able, 1 + n_jobs // 12), min(k_max, MAX_SLOTS))
    used = np.arange(k_max)[None, :] < k_used[:, None]
    weight = np.where(used, world.size[queue] ** 0.6, 0.0)
    weight *= np.exp(0.5 * rng.standard_normal((n, k_max)))
    weight /= weight.sum(axis=1, keepdims=True)
    return Slots(
        queue=queue,
        weight=weight,
        cores=np.take_along_axis(job_cores, queue, axis=1),
        scout=_scout_places(world, rng, queue[:, :4], used[:, :4]),
        **_effects(world, rng, kind, queue, mem_queue_sd),
    )


def _effects(
    world: World,
    rng: np.random.Generator,
    kind: IntArray,
    queue: IntArray,
    mem_queue_sd: FloatArray,
) -> dict[str, FloatArray]:
    """Draw what each queue does to each task: part of it the queue's own, part of it the pair's.

    Slow queues are also inefficient ones, and core power explains the wall time in part only, so that
    CPU time differs less between queues than wall time and follows core power with about -0.67.
    """
    z = rng.standard_normal((3, *queue.shape))
    own = 0.62 * world.z_wall[queue] + 0.62 * z[0]
    wall_sd = world.settings.apart * of_kind(kind, lambda t: t.wall_queue_sd)[:, None]
    eff_sd = of_kind(kind, lambda t: t.eff_queue_sd)[:, None]
    return {
        "mem": mem_queue_sd[:, None] * np.sqrt(0.5) * (world.z_mem[queue] + z[1]),
        "wall": wall_sd * (-0.48 * world.z_power[queue] + own),
        "eff": eff_sd * (-0.8 * own / 0.877 + 0.6 * z[2]),
    }


def _scout_places(
    world: World, rng: np.random.Generator, queue: IntArray, used: BoolArray
) -> IntArray:
    """Return the one or two quickest of a task's first queues: scouts go where there is room; in a calm world to any two."""
    wait = rng.random(queue.shape) if world.settings.calm else world.queue_ln_mean[queue]
    quick = np.argsort(np.where(used, wait, np.inf), axis=1, kind="stable")[:, :2]
    two = (rng.random(len(queue)) < 0.4) & used[:, 1]
    return np.column_stack([quick[:, 0], np.where(two, quick[:, 1], quick[:, 0])])


def _able(
    world: World,
    kind: IntArray,
    cores: IntArray,
    job_cores: IntArray,
    need_mb: tuple[FloatArray, FloatArray],
) -> BoolArray:
    """Decide for every (task, queue) whether the queue is in use, of the right kind and large enough."""
    user = of_users(kind)[:, None]
    several = (cores == 0)[:, None]
    wanted = cores[:, None]
    fits = np.where(
        several, world.cores >= 4, (world.cores == wanted) | (world.ucore & (wanted <= world.cores))
    )
    room = np.where(world.ucore, world.maxrss_mb / world.cores * job_cores, world.maxrss_mb)
    memory = need_mb[0][:, None] + need_mb[1][:, None] * job_cores
    allowed = np.where(user, world.analysis, world.production)
    return np.asarray(fits & allowed & world.usable & (memory * 1.25 <= room))


def of_users(kind: IntArray) -> BoolArray:
    """Return which tasks are of users."""
    return of_kind(kind, lambda t: t.label == "user") > 0


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
        return of_users(self.kind)

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
    user = of_users(kind)
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
    kinds = np.arange(len(JOB_TYPES))
    kind = rng.choice(kinds, n, p=of_kind(kinds, lambda t: t.task_share)).astype(np.int64)
    u = rng.random((2, n))
    choices = [one.files_per_job for one in JOB_TYPES]
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


N_USERS = 60
USERS = tuple(f"user{i:02d}" for i in range(N_USERS))
"""Invented names of the owners of user tasks, as in ``produsername``; the first ones own most of the work."""
PRODUCTION_USER = "production"
GROUPS = ("phys-higgs", "phys-susy", "phys-top", "perf-muons")
"""Working groups; user ``i`` below ``MEMBERS`` is in group ``i % 4``."""
MEMBERS = 24
HEAVY_USERS = 5
"""So many users own most of the large tasks."""
LARGE_TASK = 250
"""Tasks of more jobs are large."""
HEAVY_SHARE, GROUP_SHARE, EXPRESS_SHARE = 0.8, 0.3, 0.1
"""Shares: of large tasks with heavy users, of members' tasks for their group, of small tasks in the express share."""
RENAMED = 10
"""One user in so many is registered under a name that cleaning changes."""


def registered(user: int) -> str:
    """Return ``origusername`` of a user: most often the name itself; the last two are one person.

    Example:
        >>> registered(3), registered(7), registered(58), registered(59)
        ('user03', 'user07@synth.example', 'user58@synth.example', 'user58@synth.example')
    """
    if user >= N_USERS - 2:
        return f"{USERS[N_USERS - 2]}@synth.example"
    return f"{USERS[user]}@synth.example" if user % RENAMED == 7 else USERS[user]


@dataclass(frozen=True)
class Owners:
    """Who owns tasks: index in ``USERS`` (-1 = production), in ``GROUPS`` (-1 = none), whether in the share Express Analysis."""

    user: IntArray
    group: IntArray
    express: BoolArray


def activity() -> FloatArray:
    """Return the part of the ordinary tasks that each user owns."""
    weight = 1.0 / np.arange(1, N_USERS + 1) ** 1.1
    return np.asarray(weight / weight.sum())


def draw_users(rng: np.random.Generator, large: BoolArray) -> IntArray:
    """Draw an owner per task; large tasks belong to heavy users most of the time."""
    n = len(large)
    anyone = rng.choice(N_USERS, n, p=activity())
    heavy = rng.integers(0, HEAVY_USERS, n)
    return np.where(large & (rng.random(n) < HEAVY_SHARE), heavy, anyone).astype(np.int64)


def draw_groups(rng: np.random.Generator, user: IntArray) -> IntArray:
    """Draw whether the tasks of members are for their group."""
    chosen = (user >= 0) & (user < MEMBERS) & (rng.random(len(user)) < GROUP_SHARE)
    return np.where(chosen, user % len(GROUPS), -1)


def draw_owners(rng: np.random.Generator, tasks: Tasks) -> Owners:
    """Draw who owns the tasks of a block, with a generator of this part alone."""
    large = tasks.n_jobs > LARGE_TASK
    user = np.where(tasks.user, draw_users(rng, large), -1)
    express = tasks.user & ~large & (rng.random(tasks.n) < EXPRESS_SHARE)
    return Owners(user=user, group=draw_groups(rng, user), express=express)


def truth_users() -> pl.DataFrame:
    """Return the users: ``username, origusername, workinggroup`` (null = none), ``heavy``, ``share`` of small tasks."""
    return pl.DataFrame(
        {
            "username": USERS,
            "origusername": [registered(u) for u in range(N_USERS)],
            "workinggroup": [GROUPS[u % len(GROUPS)] if u < MEMBERS else None for u in range(N_USERS)],
            "heavy": [u < HEAVY_USERS for u in range(N_USERS)],
            "share": activity(),
        }
    )  # fmt: skip
