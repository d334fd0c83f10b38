"""Sums over a sliding sample: every queue at every instant, in one pass over the jobs.

The weights of a sample change with every instant and the median has no running form, so no grouping can replace the
loop. The jobs of a queue come in the order of time in which they enter the sample; those inside are kept in that
order, so that sums have the same last bit for one instant and for many.

Source: docs/rules/classes.md 2.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from brokerlab.compiled import compiled
from brokerlab.numerics import FloatArray, IntArray

_US = 1_000_000


class Sample(NamedTuple):
    """Jobs of all queues, sorted by queue, then by entering."""

    begin: IntArray  # first row of each queue, and the number of rows at the end
    enter: IntArray  # the job belongs to the sample from here [us since 1970]
    leave: IntArray  # ... until before here
    time: IntArray  # start of waits, creation of queued jobs [us since 1970]
    value: FloatArray  # wait [s]
    basis: IntArray  # bit of what the wait was read from


@compiled
def moments(
    values: FloatArray, weights: FloatArray
) -> tuple[float, float, float, float, float, float]:
    """Return sum of weights, weighted mean and standard deviation, mean, standard deviation and median."""
    total = weighted = plain = 0.0
    for i in range(len(values)):
        total += weights[i]
        weighted += weights[i] * values[i]
        plain += values[i]
    mean = plain / len(values)
    w_mean = weighted / total if total > 0 else np.nan
    w_square = square = 0.0
    for i in range(len(values)):
        w_square += weights[i] * (values[i] - w_mean) ** 2
        square += (values[i] - mean) ** 2
    w_stdev = np.sqrt(w_square / total) if total > 0 else np.nan
    return total, w_mean, w_stdev, mean, np.sqrt(square / len(values)), np.median(values)


@compiled
def wait_moments(
    sample: Sample, at: IntArray, half_life_s: float
) -> tuple[IntArray, IntArray, FloatArray]:
    """Return number of jobs, bits of basis, and the moments of every queue (rows) at every instant (columns)."""
    queues, instants = len(sample.begin) - 1, len(at)
    count = np.zeros((queues, instants), np.int64)
    bits = np.zeros((queues, instants), np.int64)
    result = np.full((queues, instants, 6), np.nan)
    widest = 0
    for queue in range(queues):
        widest = max(widest, sample.begin[queue + 1] - sample.begin[queue])
    inside = np.empty(widest, np.int64)
    values, weights = np.empty(widest), np.empty(widest)
    for queue in range(queues):
        following, n = sample.begin[queue], 0
        for k in range(instants):
            following, n = _move(sample, queue, at[k], inside, following, n)
            if n == 0:
                continue
            basis = 0
            for place in range(n):
                row = inside[place]
                values[place] = sample.value[row]
                weights[place] = np.exp2(-((at[k] - sample.time[row]) // _US) / half_life_s)
                basis |= sample.basis[row]
            count[queue, k], bits[queue, k] = n, basis
            for number, value in enumerate(moments(values[:n], weights[:n])):
                result[queue, k, number] = value
    return count, bits, result


@compiled
def _move(
    sample: Sample, queue: int, now: int, inside: IntArray, following: int, n: int
) -> tuple[int, int]:
    """Bring the rows of a queue that are inside the sample up to an instant."""
    kept = 0
    for place in range(n):
        if sample.leave[inside[place]] > now:
            inside[kept] = inside[place]
            kept += 1
    while following < sample.begin[queue + 1] and sample.enter[following] <= now:
        if sample.leave[following] > now:
            inside[kept] = following
            kept += 1
        following += 1
    return following, kept


@compiled
def long_queue(sample: Sample, at: IntArray, limit_s: FloatArray) -> tuple[IntArray, IntArray]:
    """Count the jobs that have queued for longer than a limit, and add up how long [us].

    ``limit_s`` has a row per queue and a column per instant.
    """
    queues, instants = len(sample.begin) - 1, len(at)
    count = np.zeros((queues, instants), np.int64)
    total = np.zeros((queues, instants), np.int64)
    widest = 0
    for queue in range(queues):
        widest = max(widest, sample.begin[queue + 1] - sample.begin[queue])
    inside = np.empty(widest, np.int64)
    for queue in range(queues):
        following, n = sample.begin[queue], 0
        for k in range(instants):
            following, n = _move(sample, queue, at[k], inside, following, n)
            for place in range(n):
                waited = at[k] - sample.time[inside[place]]
                if waited / _US > limit_s[queue, k]:
                    count[queue, k] += 1
                    total[queue, k] += waited
    return count, total
