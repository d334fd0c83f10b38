"""Draw the tasks of one block: sizes, their own distributions, and the queues they run at."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtri

from brokerlab.archive.synthetic._types import BoolArray
from brokerlab.archive.synthetic.jobtypes import JOB_TYPES, JobType, Range, per_type
from brokerlab.archive.synthetic.settings import SynthSettings
from brokerlab.archive.synthetic.world import World
from brokerlab.numerics import FloatArray, IntArray

MAX_SLOTS = 32
"""Most queues of one task."""
MAX_BLOCK_TASKS = 8192
"""Most tasks of one block: the room between the task ids of blocks."""
N_SCOUTS = 10
QUEUE_SHARE_OF_MEMORY = 0.17
"""Share of the variance of ln(peak memory) inside a task that lies between queues (section 4)."""
LEVELS: FloatArray = ndtri((np.arange(9) + 0.5) / 9)
"""Standard normal levels, equally likely, of the events of a job: finite so that the truth is exact."""
TAIL_SHARE, TAIL_SCALE = 0.015, 0.3
"""Heavy right tail of ln(wall time): share of jobs and mean size (section 10, item 2)."""


@dataclass(frozen=True)
class Slots:
    """The queues of each task, (tasks, MAX_SLOTS) arrays; unused places have weight 0.

    Attributes:
        queue: Index of the queue.
        weight: Probability that a job goes there; sums to 1 per task.
        cores: Cores of a job there.
        mem: Effect on ln(peak memory).
        wall: Effect on ln(wall time).
        eff: Effect on ln(efficiency).
        scout: (tasks, 2) the one or two places of the scouts.
    """

    queue: IntArray
    weight: FloatArray
    cores: IntArray
    mem: FloatArray
    wall: FloatArray
    eff: FloatArray
    scout: IntArray


@dataclass(frozen=True)
class Tasks:
    """The tasks of one block, one entry per task; names as in ``JobType`` where they are the same."""

    kind: IntArray
    created_s: FloatArray
    late: BoolArray
    files: IntArray
    files_per_job: IntArray
    n_jobs: IntArray
    merge_group: IntArray
    n_merge: IntArray
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
    def n_scouts(self) -> IntArray:
        """Scout jobs of each task: ten, or all jobs of a smaller task."""
        return np.minimum(self.n_jobs, N_SCOUTS)


def draw_tasks(
    settings: SynthSettings,
    world: World,
    rng: np.random.Generator,
    *,
    quota: int,
    begin_s: float,
    length_s: float,
) -> Tasks:
    """Draw the tasks of one block until they hold a little more jobs than the block is to give.

    Args:
        settings: The archive's settings.
        world: The queues.
        rng: Generator of this block.
        quota: Rows of ``jobs`` the block will give.
        begin_s: Start of the block's part of the period, from the first instant [s].
        length_s: Length of that part [s].

    Returns:
        Tasks in the order of their creation.
    """
    kind, files, per_job, n_jobs, group, n_merge = _draw_sizes(settings, rng, quota)
    n = len(kind)
    created = begin_s + np.sort(rng.random(n)) * length_s
    late = created >= settings.drift_at * settings.submit_s
    drift = np.where(late, settings.drift, 0.0)
    types = [JOB_TYPES[k] for k in kind]
    cores = np.array(
        [t.cores[_pick(t.cores_share, u)] for t, u in zip(types, rng.random(n), strict=True)],
        dtype=np.int64,
    )
    ref = np.where(cores > 0, cores, _of(kind, lambda t: t.ref_cores).astype(np.int64))
    z = rng.standard_normal((6, n))
    level = np.exp(_of(kind, lambda t: t.mem_task_sd) * z[0] + drift)
    sd_total = _uniform(rng, kind, lambda t: t.mem_sd)
    startup = _of(kind, lambda t: t.startup)
    wall_ref = np.clip(_spread(kind, lambda t: t.wall_s, lambda t: t.wall_task_sd, z[1]), 150, 6e4)
    scale = _of(kind, lambda t: t.ref_cores) / ref
    user = _of(kind, lambda t: t.label == "user") > 0
    gap_mean, gap_sd = _range(kind, lambda t: t.gap_mem)
    wall_gap = _range(kind, lambda t: t.gap_wall)
    mem_base = _of(kind, lambda t: t.mem_base_mb) * level
    mem_core = _of(kind, lambda t: t.mem_core_mb) * level
    slots = draw_slots(
        world, rng, kind=kind, cores=cores, n_jobs=n_jobs, need_mb=(mem_base, mem_core),
        mem_queue_sd=np.sqrt(QUEUE_SHARE_OF_MEMORY) * sd_total,
    )  # fmt: skip
    return Tasks(
        kind=kind,
        created_s=created,
        late=late,
        files=files,
        files_per_job=per_job,
        n_jobs=n_jobs,
        merge_group=group,
        n_merge=n_merge,
        cores=cores,
        ref_cores=ref,
        events=np.maximum(1.0, np.round(_of(kind, lambda t: t.events_per_file) * per_job)),
        events_sd=_of(kind, lambda t: t.events_job_sd),
        has_events=rng.random(n) >= _of(kind, lambda t: t.no_events_share),
        file_mb=_of(kind, lambda t: t.file_mb) * np.exp(0.3 * z[2]),
        out_bytes=_spread(kind, lambda t: t.out_bytes, lambda t: t.out_task_sd, z[3]),
        out_sd=_of(kind, lambda t: t.out_job_sd),
        wall_s=wall_ref * (startup + (1 - startup) * scale) * np.exp(drift),
        wall_sd=_uniform(rng, kind, lambda t: t.wall_sd),
        startup=startup,
        eff=np.minimum(_of(kind, lambda t: t.eff) * np.exp(0.03 * z[4]), 0.97),
        eff_sd=_of(kind, lambda t: t.eff_sd),
        mem_base_mb=mem_base,
        mem_core_mb=mem_core,
        mem_event_mb=_of(kind, lambda t: t.mem_event_mb) * level,
        mem_sd=np.sqrt(1 - QUEUE_SHARE_OF_MEMORY) * sd_total,
        mem_queue_sd=np.sqrt(QUEUE_SHARE_OF_MEMORY) * sd_total,
        light_share=_of(kind, lambda t: t.light_share),
        light_scale=_of(kind, lambda t: t.light_scale),
        gap_mem=gap_mean + gap_sd * z[5] - drift / 2,
        gap_wall=wall_gap[0] + wall_gap[1] * rng.standard_normal(n),
        base_ram_mb=_of(kind, lambda t: t.base_ram_mb).astype(np.int64),
        pre_ram_mb=_of(kind, lambda t: t.pre_ram_mb).astype(np.int64),
        base_wall_s=np.where(user, 60, 600),
        per_core=~user,
        priority=np.where(user, 1000, rng.choice([500, 560, 700, 880, 895, 1100], n)),
        slots=slots,
    )


def _draw_sizes(
    settings: SynthSettings, rng: np.random.Generator, quota: int
) -> tuple[IntArray, IntArray, IntArray, IntArray, IntArray, IntArray]:
    """Draw kinds and sizes until the jobs suffice: kind, files, files per job, jobs, merge group, merges."""
    n = MAX_BLOCK_TASKS
    kind = rng.choice(len(JOB_TYPES), n, p=per_type(lambda t: t.task_share)).astype(np.int64)
    u = rng.random((2, n))
    choices = [JOB_TYPES[k].files_per_job for k in range(len(JOB_TYPES))]
    width = np.array([len(c) for c in choices])[kind]
    table = np.array([np.resize(c, 4) for c in choices])
    per_job = table[kind, (u[0] * width).astype(np.int64)]
    files = np.ceil(np.exp(rng.normal(settings.files_ln_mean, settings.files_ln_sd, n)))
    n_jobs = np.ceil(np.minimum(files, 1e9) / per_job).astype(np.int64)
    n_jobs = np.minimum(n_jobs, settings.largest_task)
    merges = u[1] < _of(kind, lambda t: t.merge_share)
    group = np.where(merges, rng.choice([1, 2, 5], n), 0)
    n_merge = np.where(merges, -(-n_jobs // np.maximum(group, 1)), 0)
    total = np.cumsum(n_jobs + n_merge)
    used = int(np.searchsorted(total, quota * 1.02 + 20)) + 1
    n_files = n_jobs * per_job
    return tuple(a[:used] for a in (kind, n_files, per_job, n_jobs, group, n_merge))  # type: ignore[return-value]


def draw_slots(
    world: World,
    rng: np.random.Generator,
    *,
    kind: IntArray,
    cores: IntArray,
    n_jobs: IntArray,
    need_mb: tuple[FloatArray, FloatArray],
    mem_queue_sd: FloatArray,
) -> Slots:
    """Choose the queues of every task: able ones, larger ones more often, more for larger tasks.

    Args:
        world: The queues.
        rng: Generator of this block.
        kind: Kind of each task.
        cores: Cores of each task, 0 = the queue's.
        n_jobs: Jobs of each task.
        need_mb: Memory of each task, base and per core [MB].
        mem_queue_sd: sd of ln(peak memory) between queues of each task.

    Returns:
        The places of every task, most important first.
    """
    n, k_max = len(kind), min(MAX_SLOTS, world.n)
    job_cores = np.where(cores[:, None] > 0, cores[:, None], world.cores[None, :])
    able = _able(world, kind, cores, job_cores, need_mb)
    gumbel = -np.log(-np.log(rng.random((n, world.n))))
    score = np.where(able, 0.8 * np.log(world.size)[None, :] + gumbel, -1e9 + gumbel)
    queue = np.argsort(-score, axis=1, kind="stable")[:, :k_max]
    n_able = np.maximum(1, able.sum(axis=1))
    k_used = np.minimum(np.minimum(n_able, 1 + n_jobs // 12), k_max)
    used = np.arange(k_max)[None, :] < k_used[:, None]
    weight = np.where(used, world.size[queue] ** 0.6, 0.0)
    weight *= np.exp(0.5 * rng.standard_normal((n, k_max)))
    weight /= weight.sum(axis=1, keepdims=True)
    z = rng.standard_normal((3, n, k_max))
    own = 0.62 * world.z_wall[queue] + 0.62 * z[0]
    wall_sd = _of(kind, lambda t: t.wall_queue_sd)[:, None]
    eff_sd = _of(kind, lambda t: t.eff_queue_sd)[:, None]
    wait = np.where(used[:, :4], world.queue_ln_mean[queue[:, :4]], np.inf)
    quick = np.argsort(wait, axis=1, kind="stable")[:, :2]
    two = (rng.random(n) < 0.4) & (k_used > 1)
    return Slots(
        queue=queue,
        weight=weight,
        cores=np.take_along_axis(job_cores, queue, axis=1),
        mem=mem_queue_sd[:, None] * np.sqrt(0.5) * (world.z_mem[queue] + z[1]),
        wall=wall_sd * (-0.48 * world.z_power[queue] + own),
        eff=eff_sd * (-0.8 * own / 0.877 + 0.6 * z[2]),
        scout=np.column_stack([quick[:, 0], np.where(two, quick[:, 1], quick[:, 0])]),
    )


def _able(
    world: World,
    kind: IntArray,
    cores: IntArray,
    job_cores: IntArray,
    need_mb: tuple[FloatArray, FloatArray],
) -> BoolArray:
    """Decide for every (task, queue) whether the queue is in use, of the right kind and large enough."""
    user = (_of(kind, lambda t: t.label == "user") > 0)[:, None]
    several = (cores == 0)[:, None]
    wanted = cores[:, None]
    fits = np.where(
        several,
        world.cores >= 4,
        (world.cores == wanted) | (world.ucore & (wanted <= world.cores)),
    )
    room = np.where(world.ucore, world.maxrss_mb / world.cores * job_cores, world.maxrss_mb)
    memory = need_mb[0][:, None] + need_mb[1][:, None] * job_cores
    allowed = np.where(user, world.analysis, world.production)
    return np.asarray(fits & allowed & world.usable & (memory * 1.25 <= room))


def _of(kind: IntArray, value: Callable[[JobType], float]) -> FloatArray:
    """Return one number of the kind for every task."""
    return np.asarray(per_type(value)[kind])


def _range(kind: IntArray, value: Callable[[JobType], Range]) -> tuple[FloatArray, FloatArray]:
    """Return a pair of numbers of the kind for every task."""
    return _of(kind, lambda t: value(t)[0]), _of(kind, lambda t: value(t)[1])


def _spread(
    kind: IntArray,
    median: Callable[[JobType], float],
    sd: Callable[[JobType], float],
    z: FloatArray,
) -> FloatArray:
    """Draw a log-normal value per task around the median of its kind."""
    return np.asarray(_of(kind, median) * np.exp(_of(kind, sd) * z))


def _uniform(
    rng: np.random.Generator, kind: IntArray, bounds: Callable[[JobType], Range]
) -> FloatArray:
    """Draw uniformly from the range of each task's kind."""
    low, high = _range(kind, bounds)
    return np.asarray(low + (high - low) * rng.random(len(kind)))


def _pick(shares: tuple[float, ...], u: float) -> int:
    """Return the index that a uniform number selects."""
    return min(int(np.searchsorted(np.cumsum(shares), u)), len(shares) - 1)
