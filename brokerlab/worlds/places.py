"""Where the jobs of a task run: its queues, their weights, and what each queue does to the jobs."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from brokerlab.numerics import BoolArray, FloatArray, IntArray
from brokerlab.worlds.jobtypes import of_kind
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
    user = (of_kind(kind, lambda t: t.label == "user") > 0)[:, None]
    several = (cores == 0)[:, None]
    wanted = cores[:, None]
    fits = np.where(
        several, world.cores >= 4, (world.cores == wanted) | (world.ucore & (wanted <= world.cores))
    )
    room = np.where(world.ucore, world.maxrss_mb / world.cores * job_cores, world.maxrss_mb)
    memory = need_mb[0][:, None] + need_mb[1][:, None] * job_cores
    allowed = np.where(user, world.analysis, world.production)
    return np.asarray(fits & allowed & world.usable & (memory * 1.25 <= room))
