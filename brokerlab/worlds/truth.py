"""The truth of each task: its own parameters, and the exact quantiles of what its jobs need."""

from __future__ import annotations

import numpy as np
import polars as pl

from brokerlab.numerics import FloatArray
from brokerlab.units import KB
from brokerlab.worlds.block import Block
from brokerlab.worlds.frames_jobs import known
from brokerlab.worlds.frames_tasks import Totals
from brokerlab.worlds.jobtypes import JOB_TYPES
from brokerlab.worlds.mixture import QUANTITIES, evaluate
from brokerlab.worlds.tasks import TAIL_SCALE, TAIL_SHARE, Tasks
from brokerlab.worlds.world import World

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
            "panda_queue": pl.Series(world.names)[pl.Series(slots.queue[t, k])],
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
        lambda mixture, _: np.column_stack([mixture.quantile(q) for q in QUANTILES]),
    )  # fmt: skip
    names = [f"{quantity}_q{round(1000 * q)}" for q in QUANTILES]
    return {name: values[:, i] for i, name in enumerate(names)}
