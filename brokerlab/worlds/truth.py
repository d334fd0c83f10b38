"""The truth of each task: its own parameters, and the exact quantiles of what its jobs need, in closed form.

A task's jobs are a finite mixture (queues x levels of events) of a normal with one exponential tail on the
natural logarithm. The mixtures are built from the two truth tables, so whoever has the archive can
evaluate any probability exactly, not only the quantiles that are stored.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import polars as pl

from brokerlab.numerics import FloatArray, IntArray, noise_cdf
from brokerlab.units import KB
from brokerlab.worlds.block import Block
from brokerlab.worlds.frames_jobs import known, texts
from brokerlab.worlds.frames_tasks import Totals
from brokerlab.worlds.jobtypes import JOB_TYPES
from brokerlab.worlds.tasks import LEVELS, TAIL_SCALE, TAIL_SHARE, Tasks
from brokerlab.worlds.world import World

STEPS = 12
"""Steps of the root search; enough for a relative 1e-6, which a test checks."""


@dataclass(frozen=True)
class Mixture:
    """A quantity ``scale * (exp(mean + noise) - offset)``, at least 0, mixed over M places per task by ``weight``.

    The noise is normal with ``sd``; in a share of ``tail_share`` of the jobs an exponential of mean
    ``tail_scale`` is added (``tail_sign`` +1) or taken away (-1). ``weight, mean, scale`` are (tasks, M), the others (tasks,).
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
        whole = value[:, None] / self.scale + self.offset[:, None]
        ln = np.log(np.maximum(whole, 1e-300)) - self.mean
        p = noise_cdf(ln, self.sd, self.tail_share, self.tail_scale, self.tail_sign)
        return np.asarray((self.weight * p).sum(axis=1))

    def quantiles(self, levels: Sequence[float]) -> FloatArray:
        """Return the values that are not exceeded with each probability, (tasks, levels); all are sought together."""
        each: dict[str, Any] = {
            name: np.repeat(array, len(levels), axis=0)
            for name, array in vars(self).items()
            if name != "tail_sign"
        }
        result = replace(self, **each).quantile(np.tile(levels, len(self.sd)))
        return result.reshape(-1, len(levels))

    def quantile(self, level: FloatArray) -> FloatArray:
        """Return the value that is not exceeded with probability ``level``, of each task its own."""
        noise = self._noise_quantile(level)
        parts = self.scale * (np.exp(self.mean + noise[:, None]) - self.offset[:, None])
        used = self.weight > 0
        low = np.maximum(np.where(used, parts, np.inf).min(axis=1), 0.0)
        high = np.maximum(np.where(used, parts, -np.inf).max(axis=1), 0.0)
        return self._between(low, high, level)

    def _between(self, low: FloatArray, high: FloatArray, level: FloatArray) -> FloatArray:
        """Find the root between two bounds by false position with the Illinois step."""
        f_low, f_high = self._miss(low, level), self._miss(high, level)
        first, at_low = low, f_low >= 0  # that many jobs are at the lower bound, e.g. at 0
        was_below = np.full(len(low), 2)  # neither
        x = low
        for _ in range(STEPS):
            slope = f_high - f_low
            flat = (slope <= 0) | at_low
            x = np.where(flat, low, (low * f_high - high * f_low) / np.where(flat, 1.0, slope))
            f = self._miss(x, level)
            below = f < 0
            stuck = was_below == below
            f_high = np.where(below, np.where(stuck, f_high / 2, f_high), f)
            f_low = np.where(below, f, np.where(stuck, f_low / 2, f_low))
            low, high = np.where(below, x, low), np.where(below, high, x)
            was_below = below.astype(np.int64)
        return np.asarray(np.where(at_low, first, x))

    def _miss(self, value: FloatArray, level: FloatArray) -> FloatArray:
        """Compare -ln(share above ``value``) with the wanted one: close to a line in the tails."""
        above = np.maximum(1 - self.cdf(value), 1e-14)
        return np.asarray(np.log1p(-level) - np.log(above))

    def _noise_quantile(self, level: FloatArray) -> FloatArray:
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


@dataclass(frozen=True)
class Places:
    """The queues of each task as padded (tasks, places) arrays; padding has weight 0."""

    weight: FloatArray
    cores: FloatArray
    corepower: FloatArray
    mem: FloatArray
    wall: FloatArray

    @classmethod
    def of(cls, tasks: pl.DataFrame, queues: pl.DataFrame) -> Places:
        """Arrange the truth's ``queues`` rows by the tasks given, both in any order."""
        rows = tasks.select("jeditaskid").with_row_index("t").join(queues, on="jeditaskid")
        rows = rows.sort("t", "place")
        t = rows["t"].to_numpy().astype(np.int64)
        place = np.arange(len(t)) - np.searchsorted(t, t)
        shape = (len(tasks), int(place.max(initial=0)) + 1)
        padding = {"weight": 0, "cores": 1, "corepower": 1, "maxpss_effect": 0, "wall_effect": 0}
        arrays = []
        for name, value in padding.items():
            array = np.full(shape, float(value))
            array[t, place] = rows[name].to_numpy()
            arrays.append(array)
        return cls(*arrays)


def _memory(tasks: pl.DataFrame, places: Places, levels: FloatArray) -> Mixture:
    """Return peak memory [kB] of the whole job at the task's ``ref_cores``."""
    get = _getter(tasks)
    size = get("maxpss_base_mb") + get("maxpss_core_mb") * get("ref_cores")
    size = size[:, None] + get("maxpss_event_mb")[:, None] * _events(tasks, levels)
    mean = np.log(size)[:, None, :] + places.mem[:, :, None]
    n, m = len(tasks), len(levels)
    return Mixture(
        weight=np.repeat(places.weight / m, m, axis=1),
        mean=mean.reshape(n, -1),
        scale=np.full((n, 1), float(KB)),
        offset=np.zeros(n),
        sd=get("maxpss_ln_sd"),
        tail_share=get("maxpss_light_share"),
        tail_scale=get("maxpss_light_scale"),
        tail_sign=-1,
    )


def _cputime(tasks: pl.DataFrame, places: Places, levels: FloatArray) -> Mixture:
    """Return HS06 seconds per event as the scout rule computes them, at each queue's cores."""
    get = _getter(tasks)
    n, m = len(tasks), len(levels)
    events = _events(tasks, levels)[:, None, :]
    cores = places.cores[:, :, None]
    scaled = events / get("events_per_job")[:, None, None] * get("ref_cores")[:, None, None] / cores
    startup = get("wall_startup")[:, None, None]
    wall = get("wall_s")[:, None, None] * (startup + (1 - startup) * scaled)
    counted = _count(tasks, events[:, 0, :])[:, None, :]
    return Mixture(
        weight=np.repeat(places.weight / m, m, axis=1),
        mean=(np.log(wall) + places.wall[:, :, None]).reshape(n, -1),
        scale=(places.corepower[:, :, None] * cores * 0.9 / counted).reshape(n, -1),
        offset=get("base_wall_s"),
        sd=get("wall_ln_sd"),
        tail_share=get("wall_tail_share"),
        tail_scale=get("wall_tail_scale"),
        tail_sign=1,
    )


def _output(tasks: pl.DataFrame, places: Places, levels: FloatArray) -> Mixture:
    """Return output bytes per event as the scout rule counts events; the same at every queue."""
    del places
    get = _getter(tasks)
    n, m = len(tasks), len(levels)
    events = _events(tasks, levels)
    return Mixture(
        weight=np.full((n, m), 1 / m),
        mean=get("output_ln_mean")[:, None] + np.log(events / _count(tasks, events)),
        scale=np.ones((n, 1)),
        offset=np.zeros(n),
        sd=get("output_ln_sd"),
        tail_share=np.zeros(n),
        tail_scale=np.ones(n),
        tail_sign=1,
    )


_MAKERS: dict[str, Callable[[pl.DataFrame, Places, FloatArray], Mixture]] = {
    "maxpss_kb": _memory,
    "hs06s_per_event": _cputime,
    "output_bytes_per_event": _output,
}
QUANTITIES = tuple(_MAKERS)
"""What the truth knows of every task."""


def evaluate(
    tasks: pl.DataFrame,
    queues: pl.DataFrame,
    quantity: str,
    function: Callable[[Mixture, IntArray], FloatArray],
) -> FloatArray:
    """Apply a function to the mixtures of all tasks and their positions in ``tasks``; the results come in the order of ``tasks``."""
    varied = tasks["events_ln_sd"].to_numpy() > 0
    results: list[tuple[IntArray, FloatArray]] = []
    for chosen, levels in ((varied, LEVELS), (~varied, np.zeros(1))):
        index = np.flatnonzero(chosen)
        if len(index):
            part = tasks[index]
            mixture = _MAKERS[quantity](part, Places.of(part, queues), levels)
            results.append((index, function(mixture, index)))
    if not results:
        return np.zeros(0)
    result = np.empty((len(tasks), *results[0][1].shape[1:]))
    for index, values in results:
        result[index] = values
    return result


def _getter(tasks: pl.DataFrame) -> Callable[[str], FloatArray]:
    return lambda name: tasks[name].to_numpy().astype(np.float64)


def _events(tasks: pl.DataFrame, levels: FloatArray) -> FloatArray:
    """Return the events of a job at each level, (tasks, levels)."""
    get = _getter(tasks)
    spread = np.exp(get("events_ln_sd")[:, None] * levels[None, :])
    events = np.round(get("events_per_job")[:, None] * spread)
    return np.asarray(np.maximum(events, get("files_per_job")[:, None]))


def _count(tasks: pl.DataFrame, events: FloatArray) -> FloatArray:
    """Return the events as the rule counts them: files without information count 1 each."""
    known = tasks["has_events"].to_numpy()[:, None]
    return np.where(known, events, _getter(tasks)("files_per_job")[:, None])


QUANTILES = (0.5, 0.6, 0.7, 0.75, 0.8, 0.85, 0.9, 0.95, 0.975, 0.99, 0.995, 0.999)
"""Levels of the truth; the column of level 0.975 ends in ``_q975``, that of 0.5 in ``_q500``."""


def final_mix(tasks: Tasks, world: World) -> FloatArray:
    """Return the mix of queues of *finished* bulk jobs: failures of a site are retried elsewhere."""
    weight = tasks.slots.weight * (1 - world.fail[tasks.slots.queue])
    return np.asarray(weight / weight.sum(axis=1, keepdims=True))


def truth_queues(world: World, block: Block, totals: Totals) -> pl.DataFrame:
    """Return the places of every task, by task and place.

    ``weight`` is the share of the finished bulk jobs and sums to 1, ``cores`` those of a job there, ``corepower`` [HS06/core],
    ``maxpss_effect`` and ``wall_effect`` on the natural logarithm.
    """
    slots = block.tasks.slots
    t, k = np.nonzero((slots.weight > 0) & (totals.rows > 0)[:, None])
    return pl.DataFrame(
        {
            "jeditaskid": block.taskid[t],
            "place": k,
            "panda_queue": texts(world.names, slots.queue[t, k]),
            "weight": final_mix(block.tasks, world)[t, k],
            "cores": slots.cores[t, k],
            "corepower": world.corepower[slots.queue[t, k]],
            "maxpss_effect": slots.mem[t, k],
            "wall_effect": slots.wall[t, k],
        }
    )


def truth_tasks(world: World, block: Block, totals: Totals, queues: pl.DataFrame) -> pl.DataFrame:
    """Return the truth of every task that has a job in the archive, by ``jeditaskid``.

    Parameters, and ``<quantity>_qNNN`` for the levels of ``QUANTILES``; both for the jobs after scouting. ``decided_at`` is null
    where scouts of a lived world were not over.
    """
    keep = np.flatnonzero(totals.rows > 0)
    tasks = block.tasks
    frame = pl.DataFrame(
        {
            "jeditaskid": block.taskid,
            "job_type": pl.Series([JOB_TYPES[k].name for k in tasks.kind]),
            "late": tasks.late,
            "decided_at": known(
                world.times(np.floor(block.decided_s).astype(np.int64)),
                (block.decided_s < world.settings.end_s) | (not world.settings.lived),
            ),
            "n_queues": (tasks.slots.weight > 0).sum(axis=1),
            "n_jobs": totals.jobs,
            "n_bulk": totals.bulk,
            "ref_cores": tasks.ref_cores,
            "files_per_job": tasks.files_per_job,
            "has_events": tasks.has_events,
            "events_per_job": tasks.events,
            "events_ln_sd": tasks.events_sd,
            **_memory_truth(tasks, final_mix(tasks, world)),
            **_wall_truth(tasks, final_mix(tasks, world)),
            "output_ln_mean": np.log(tasks.out_bytes),
            "output_ln_sd": tasks.out_sd,
        }
    )[keep]
    return frame.with_columns(**{
        name: pl.Series(values)
        for quantity in QUANTITIES
        for name, values in _quantiles(frame, queues, quantity).items()
    })  # fmt: skip


def _memory_truth(tasks: Tasks, mix: FloatArray) -> dict[str, FloatArray]:
    """Return the parameters of peak memory; the mean is of ln(kB) of the whole job, body only."""
    at_cores = tasks.mem_base_mb + tasks.mem_core_mb * tasks.ref_cores
    size_kb = (at_cores + tasks.mem_event_mb * tasks.events) * KB
    return {
        "maxpss_ln_mean": np.log(size_kb) + (mix * tasks.slots.mem).sum(axis=1),
        "maxpss_base_mb": tasks.mem_base_mb,
        "maxpss_core_mb": tasks.mem_core_mb,
        "maxpss_event_mb": tasks.mem_event_mb,
        "maxpss_ln_sd": tasks.mem_sd,
        "maxpss_ln_queue_sd": tasks.mem_queue_sd,
        "maxpss_light_share": tasks.light_share,
        "maxpss_light_scale": tasks.light_scale,
        "maxpss_scout_gap": tasks.gap_mem,
    }


def _wall_truth(tasks: Tasks, mix: FloatArray) -> dict[str, FloatArray]:
    """Return the parameters of wall time; ``wall_s`` is at ``ref_cores`` before effects of queues."""
    return {
        "wall_ln_mean": np.log(tasks.wall_s) + (mix * tasks.slots.wall).sum(axis=1),
        "wall_s": tasks.wall_s,
        "base_wall_s": tasks.base_wall_s.astype(np.float64),
        "wall_startup": tasks.startup,
        "wall_ln_sd": tasks.wall_sd,
        "wall_tail_share": np.full(tasks.n, TAIL_SHARE),
        "wall_tail_scale": np.full(tasks.n, TAIL_SCALE),
        "wall_scout_gap": tasks.gap_wall,
        "efficiency": tasks.eff,
    }


def _quantiles(frame: pl.DataFrame, queues: pl.DataFrame, quantity: str) -> dict[str, FloatArray]:
    """Return the quantiles of one quantity, one column per level."""
    values = evaluate(
        frame, queues, quantity,
        lambda mixture, _: mixture.quantiles(QUANTILES),
    )  # fmt: skip
    names = [f"{quantity}_q{round(1000 * q)}" for q in QUANTILES]
    return {name: values[:, i] for i, name in enumerate(names)}
