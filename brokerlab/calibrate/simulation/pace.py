"""How slow queues are: a job that is sent elsewhere needs the wall time that such jobs need there."""

from __future__ import annotations

import numpy as np
import polars as pl

from brokerlab.numerics import FloatArray, IntArray

CELL = 20
"""Jobs of a task at a queue count as so many at most: a giant task says little of a queue."""
ROUNDS = 20


def slowness(jobs: pl.DataFrame) -> pl.DataFrame:
    """Estimate how much longer jobs run at a queue than the same jobs do at a usual one.

    The logarithm of the wall time is the sum of what the task needs (with so many cores) and of the queue; both are fitted
    in turns to the means of tasks at queues. Effects are drawn to none as far as chance alone makes queues differ
    (empirical Bayes), so that where queues do not differ all are usual.

    Args:
        jobs: ``jeditaskid, corecount, panda_queue, wall_s`` of finished jobs.

    Returns:
        ``panda_queue``, ``slowness`` (1: usual), sorted.
    """
    known = jobs.drop_nulls().filter(pl.col("wall_s") > 0)
    cells = (
        known.group_by("jeditaskid", "corecount", "panda_queue")
        .agg(mean=pl.col("wall_s").log().mean(), n=pl.len().clip(upper_bound=CELL))
        .sort("jeditaskid", "corecount", "panda_queue")
    )
    names = cells["panda_queue"].unique().sort()
    work = cells.select(pl.struct("jeditaskid", "corecount").rank("dense") - 1)
    queue = cells.select(pl.col("panda_queue").rank("dense") - 1)
    effect = _fitted(
        cells["mean"].to_numpy(),
        cells["n"].to_numpy().astype(np.float64),
        work.to_series().to_numpy().astype(np.int64),
        queue.to_series().to_numpy().astype(np.int64),
    )
    return pl.DataFrame({"panda_queue": names, "slowness": np.exp(effect)})


def _fitted(mean: FloatArray, n: FloatArray, work: IntArray, queue: IntArray) -> FloatArray:
    """Return the effect of every queue."""
    if not len(mean):
        return np.zeros(0)
    n_work, n_queue = int(work.max()) + 1, int(queue.max()) + 1
    jobs_of_work = np.bincount(work, n, n_work)
    jobs_at_queue = np.bincount(queue, n, n_queue)
    effect: FloatArray = np.zeros(n_queue)
    need: FloatArray = np.zeros(n_work)
    for _ in range(ROUNDS):
        need = np.bincount(work, n * (mean - effect[queue]), n_work) / jobs_of_work
        effect = np.bincount(queue, n * (mean - need[work]), n_queue) / jobs_at_queue
    free = max(len(mean) - n_work - n_queue + 1, 1)
    noise = float((n * (mean - need[work] - effect[queue]) ** 2).sum()) / free
    chance = noise / jobs_at_queue
    centred = effect - np.average(effect, weights=jobs_at_queue)
    between = float(np.average(centred**2 - chance, weights=jobs_at_queue))
    if between <= 0:
        return np.zeros(n_queue)
    return np.asarray(centred * between / (between + chance))
