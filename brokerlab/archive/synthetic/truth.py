"""The truth of each task: its own parameters, and the exact quantiles of what its jobs need.

The model of :mod:`brokerlab.archive.synthetic.chains` is a finite mixture (queues x levels of events)
of a normal with one exponential tail, so its distribution function is known in closed form; quantiles are
found by bisection to a relative 1e-6.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl
from scipy.special import log_ndtr, ndtr

from brokerlab.archive.synthetic.block import Block
from brokerlab.archive.synthetic.frames_tasks import Totals
from brokerlab.archive.synthetic.jobtypes import JOB_TYPES
from brokerlab.archive.synthetic.tasks import LEVELS, TAIL_SCALE, TAIL_SHARE, Tasks
from brokerlab.archive.synthetic.world import World
from brokerlab.numerics import FloatArray, IntArray
from brokerlab.units import KB

QUANTILES = (0.5, 0.6, 0.7, 0.75, 0.8, 0.85, 0.9, 0.95, 0.975, 0.99, 0.995, 0.999)
"""Levels of the truth; the column of level 0.975 ends in ``_q975``, that of 0.5 in ``_q500``."""


@dataclass(frozen=True)
class Mixture:
    """A quantity ``scale * (exp(mean + noise) - offset)``, at least 0, mixed over M places per task.

    The noise is normal with ``sd``; in a share of ``tail_share`` of the jobs an exponential of mean
    ``tail_scale`` is added (``tail_sign`` +1) or taken away (-1).

    Attributes:
        weight: (tasks, M) probabilities.
        mean: (tasks, M) on the natural logarithm.
        scale: (tasks, M).
        offset: (tasks,).
        sd: (tasks,).
        tail_share: (tasks,).
        tail_scale: (tasks,).
        tail_sign: +1 or -1.
    """

    weight: FloatArray
    mean: FloatArray
    scale: FloatArray
    offset: FloatArray
    sd: FloatArray
    tail_share: FloatArray
    tail_scale: FloatArray
    tail_sign: int

    def cdf(self, value: FloatArray) -> FloatArray:
        """Return the probability of at most ``value``, one per task, value at least 0."""
        ln = np.log(value[:, None] / self.scale + self.offset[:, None]) - self.mean
        p = noise_cdf(ln, self.sd, self.tail_share, self.tail_scale, self.tail_sign)
        return np.asarray((self.weight * p).sum(axis=1))

    def quantile(self, level: float) -> FloatArray:
        """Return the value that is not exceeded with probability ``level``, one per task."""
        noise = self._noise_quantile(level)
        parts = self.scale * (np.exp(self.mean + noise[:, None]) - self.offset[:, None])
        used = self.weight > 0
        low = np.maximum(np.where(used, parts, np.inf).min(axis=1), 0.0)
        high = np.maximum(np.where(used, parts, -np.inf).max(axis=1), 0.0)
        for _ in range(22):
            middle = (low + high) / 2
            below = self.cdf(middle) < level
            low, high = np.where(below, middle, low), np.where(below, high, middle)
        return np.asarray((low + high) / 2)

    def _noise_quantile(self, level: float) -> FloatArray:
        """Invert the noise itself: every mixture quantile lies between those of its parts."""
        reach = 12 * self.sd + 25 * self.tail_scale
        low, high = -reach, reach.copy()
        for _ in range(45):
            middle = (low + high) / 2
            p = noise_cdf(
                middle[:, None], self.sd, self.tail_share, self.tail_scale, self.tail_sign
            )[:, 0]
            low, high = np.where(p < level, middle, low), np.where(p < level, high, middle)
        return (low + high) / 2


def noise_cdf(
    x: FloatArray, sd: FloatArray, share: FloatArray, scale: FloatArray, sign: int
) -> FloatArray:
    """Return P(normal(0, sd) + sign * tail <= x), the tail exponential in a share of the cases.

    ``F = (1-p) Phi(z) + p G(z)`` with ``G(z) = Phi(z) - exp(-a z s + (a s)^2/2) Phi(z - a s)`` for
    sign +1 (``z = x/s``, rate ``a``), mirrored for -1.

    Args:
        x: (tasks, M).
        sd: (tasks,), above 0.
        share: (tasks,) p.
        scale: (tasks,) mean of the tail, above 0.
        sign: +1 or -1.

    Returns:
        (tasks, M) probabilities.
    """
    z = x / sd[:, None]
    k = (sd / scale)[:, None]
    tail = np.exp(np.minimum(-sign * k * z + k * k / 2 + log_ndtr(sign * z - k), 0.0))
    return np.asarray(ndtr(z) - sign * share[:, None] * tail)


def places(tasks: Tasks, world: World) -> FloatArray:
    """Return the mix of queues of *finished* bulk jobs: site failures are retried elsewhere."""
    weight = tasks.slots.weight * (1 - world.fail[tasks.slots.queue])
    return np.asarray(weight / weight.sum(axis=1, keepdims=True))


def memory_mixture(tasks: Tasks, world: World, index: IntArray, *, levels: FloatArray) -> Mixture:
    """Return peak memory [kB] of the whole job at the task's core count (``ref_cores``).

    Args:
        tasks: The block's tasks.
        world: The queues.
        index: Tasks to evaluate.
        levels: Standard normal levels of the events, equally likely.
    """
    m = len(levels)
    events = np.round(tasks.events[index, None] * np.exp(tasks.events_sd[index, None] * levels))
    at = tasks.mem_base_mb + tasks.mem_core_mb * tasks.ref_cores
    size = at[index, None] + tasks.mem_event_mb[index, None] * np.maximum(events, 1)
    mean = np.log(size)[:, None, :] + tasks.slots.mem[index][:, :, None]
    n = len(index)
    return Mixture(
        weight=np.repeat(places(tasks, world)[index] / m, m, axis=1),
        mean=mean.reshape(n, -1),
        scale=np.full((n, 1), float(KB)),
        offset=np.zeros(n),
        sd=tasks.mem_sd[index],
        tail_share=tasks.light_share[index],
        tail_scale=tasks.light_scale[index],
        tail_sign=-1,
    )


def cputime_mixture(tasks: Tasks, world: World, index: IntArray, *, levels: FloatArray) -> Mixture:
    """Return HS06 seconds per event as the scout rule computes them, at each queue's cores."""
    m, n = len(levels), len(index)
    slots = tasks.slots
    events = np.round(tasks.events[index, None] * np.exp(tasks.events_sd[index, None] * levels))
    events = np.maximum(events, tasks.files_per_job[index, None])[:, None, :]
    cores = slots.cores[index][:, :, None]
    ratio = events / tasks.events[index, None, None] * tasks.ref_cores[index, None, None] / cores
    startup = tasks.startup[index, None, None]
    wall = tasks.wall_s[index, None, None] * (startup + (1 - startup) * ratio)
    rule = np.where(
        tasks.has_events[index, None, None], events, tasks.files_per_job[index, None, None]
    )
    power = world.corepower[slots.queue[index]][:, :, None]
    return Mixture(
        weight=np.repeat(places(tasks, world)[index] / m, m, axis=1),
        mean=(np.log(wall) + slots.wall[index][:, :, None]).reshape(n, -1),
        scale=(power * cores * 0.9 / rule).reshape(n, -1),
        offset=tasks.base_wall_s[index].astype(np.float64),
        sd=tasks.wall_sd[index],
        tail_share=np.full(n, TAIL_SHARE),
        tail_scale=np.full(n, TAIL_SCALE),
        tail_sign=1,
    )


def output_mixture(tasks: Tasks, world: World, index: IntArray, *, levels: FloatArray) -> Mixture:
    """Return output bytes per event as the scout rule counts events."""
    del world  # output does not depend on the queue
    m, n = len(levels), len(index)
    events = np.round(tasks.events[index, None] * np.exp(tasks.events_sd[index, None] * levels))
    events = np.maximum(events, tasks.files_per_job[index, None])
    rule = np.where(tasks.has_events[index, None], events, tasks.files_per_job[index, None])
    return Mixture(
        weight=np.full((n, m), 1 / m),
        mean=np.log(tasks.out_bytes[index, None] * events / rule),
        scale=np.ones((n, 1)),
        offset=np.zeros(n),
        sd=tasks.out_sd[index],
        tail_share=np.zeros(n),
        tail_scale=np.ones(n),
        tail_sign=1,
    )


_MIXTURES = {
    "maxpss_kb": memory_mixture,
    "hs06s_per_event": cputime_mixture,
    "output_bytes_per_event": output_mixture,
}


def truth_tasks(world: World, block: Block, totals: Totals) -> pl.DataFrame:
    """Return the truth of every task that has a job in the archive.

    Args:
        world: The queues.
        block: What was drawn.
        totals: Sums per task.

    Returns:
        One row per task, sorted by ``jeditaskid``: parameters, and ``<quantity>_qNNN`` for the
        levels of ``QUANTILES``.
    """
    keep = np.flatnonzero(totals.rows > 0)
    tasks = block.tasks
    mix = places(tasks, world)
    single = np.zeros(1)
    varied = tasks.events_sd[keep] > 0
    columns: dict[str, FloatArray] = {}
    for name, make in _MIXTURES.items():
        parts = [
            (np.flatnonzero(chosen), make(tasks, world, keep[chosen], levels=levels))
            for chosen, levels in ((varied, LEVELS), (~varied, single))
            if chosen.any()
        ]
        for level in QUANTILES:
            values = np.empty(len(keep))
            for place, mixture in parts:
                values[place] = mixture.quantile(level)
            columns[f"{name}_q{round(1000 * level)}"] = values
    frame = pl.DataFrame(
        {
            "jeditaskid": block.taskid,
            "job_type": pl.Series([JOB_TYPES[k].name for k in tasks.kind]),
            "late": tasks.late,
            "ref_cores": tasks.ref_cores,
            "n_queues": (tasks.slots.weight > 0).sum(axis=1),
            "n_jobs": totals.jobs,
            "n_bulk": totals.bulk,
            "decided_after_s": block.decided_s,
            "maxpss_ln_mean": np.log(
                (tasks.mem_base_mb + tasks.mem_core_mb * tasks.ref_cores
                 + tasks.mem_event_mb * tasks.events) * KB
            ) + (mix * tasks.slots.mem).sum(axis=1),
            "maxpss_base_mb": tasks.mem_base_mb,
            "maxpss_core_mb": tasks.mem_core_mb,
            "maxpss_event_mb": tasks.mem_event_mb,
            "maxpss_ln_sd": tasks.mem_sd,
            "maxpss_ln_queue_sd": tasks.mem_queue_sd,
            "maxpss_light_share": tasks.light_share,
            "maxpss_light_scale": tasks.light_scale,
            "maxpss_scout_gap": tasks.gap_mem,
            "wall_ln_mean": np.log(tasks.wall_s) + (mix * tasks.slots.wall).sum(axis=1),
            "wall_ln_sd": tasks.wall_sd,
            "wall_tail_share": np.full(tasks.n, TAIL_SHARE),
            "wall_tail_scale": np.full(tasks.n, TAIL_SCALE),
            "wall_startup": tasks.startup,
            "wall_scout_gap": tasks.gap_wall,
            "efficiency": tasks.eff,
            "events_per_job": tasks.events,
            "events_ln_sd": tasks.events_sd,
            "has_events": tasks.has_events,
            "output_ln_mean": np.log(tasks.out_bytes),
            "output_ln_sd": tasks.out_sd,
        }
    )[keep]  # fmt: skip
    return pl.concat([frame, pl.DataFrame(columns)], how="horizontal")


def truth_queues(world: World, block: Block, totals: Totals) -> pl.DataFrame:
    """Return the places of every task, from which any probability can be computed exactly.

    Returns:
        ``jeditaskid, panda_queue, weight`` (finished bulk jobs), ``cores, maxpss_effect,
        wall_effect`` (both on the natural logarithm), sorted by task and place.
    """
    keep = totals.rows > 0
    slots = block.tasks.slots
    t, k = np.nonzero((slots.weight > 0) & keep[:, None])
    return pl.DataFrame(
        {
            "jeditaskid": block.taskid[t],
            "panda_queue": pl.Series(world.names)[pl.Series(slots.queue[t, k])],
            "weight": places(block.tasks, world)[t, k],
            "cores": slots.cores[t, k],
            "maxpss_effect": slots.mem[t, k],
            "wall_effect": slots.wall[t, k],
        }
    )
