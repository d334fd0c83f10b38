"""Compiled steps of the hierarchical estimate: what is known of a task, one job at a time.

``known`` holds, per task, the sums of a linear model whose queue effects are integrated out, and per
(task, queue) what is needed to integrate them out again; ``scores`` the latest misses.

A miss is standardised in two steps. What is not known of location (task, queue) widens it differently
from job to job: by that it is divided when it is kept. The residual variance of a task is one number
that each job changes: earlier tasks' scores are multiplied by the latest. Were a task's own misses
divided by the variance of their time, one job far off would count twice: as a miss of many of the old
deviations, and in the new deviation that it is multiplied by.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from brokerlab.compiled import compiled
from brokerlab.estimators.seen import put_in, take_out
from brokerlab.numerics import BoolArray, FloatArray, IntArray

TASK_WINDOW, PAIR_WINDOW = 512, 128  # latest scores that are kept
PRIOR_JOBS = 50.0  # jobs that the scores of earlier tasks count as
PAIR_WEIGHT = 4.0  # jobs of the task that one of the same queue counts as
FEW = 20  # jobs of a queue up to which its scores are judged by those of young queues
CLASSES = 4  # nothing seen; the task; few jobs of its queue; more of them


class Known(NamedTuple):
    """What was seen of tasks (t) and of their queues (p, a pair of task and queue); d features."""

    jobs: IntArray  # (t,) that entered the sums
    finished: IntArray  # (t,) of them, jobs that were not killed
    xx: FloatArray  # (t, d, d) sums of the model whose queue effects are integrated out
    xy: FloatArray  # (t, d)
    yy: FloatArray  # (t,)
    coefficients: FloatArray  # (t, d) posterior mean
    covariance: FloatArray  # (t, d, d) in units of the residual variance
    variance: FloatArray  # (t,) of residuals
    fresh: BoolArray  # (t,) whether the three above follow from the sums
    pair_count: IntArray  # (p,)
    pair_x: FloatArray  # (p, d)
    pair_y: FloatArray  # (p,)


class Scores(NamedTuple):
    """The latest misses per task and per pair: in order of arrival, and ascending.

    Logarithms, divided by what widens a job's distribution beyond the residual deviation of its task.
    """

    task: FloatArray  # (t, TASK_WINDOW)
    task_sorted: FloatArray
    task_count: IntArray  # (t,) ever added
    pair: FloatArray  # (p, PAIR_WINDOW)
    pair_sorted: FloatArray
    pair_count: IntArray


class Jobs(NamedTuple):
    """What is known of jobs, and what they used."""

    task: IntArray  # (n,) numbers of their tasks
    pair: IntArray  # (n,) and of their tasks and queues
    x: FloatArray  # (n, d) rows of the linear model
    y: FloatArray  # (n,) logarithms of the use
    killed: BoolArray  # (n,)
    scout: BoolArray  # (n,)


class Decided(NamedTuple):
    """What was foreseen of jobs when they were decided."""

    bounds: FloatArray  # (n, levels) logarithms
    seen: IntArray  # (n,) finished jobs of the task
    score: FloatArray  # (n,) what the job's use turns out to be on the scale of that decision
    kind: IntArray  # (n,) class of the decision


class Prior(NamedTuple):
    """What earlier tasks say of the next one."""

    mean: FloatArray  # (d,) of coefficients
    precision: FloatArray  # (d,) of coefficients, in units of 1 / residual variance
    queue: float  # variance of queue effects, in units of the residual variance
    shape: float  # of the inverse gamma distribution of the residual variance
    rate: float
    atoms: FloatArray  # (CLASSES, g) ascending scores, in units of a job's foreseen deviation


@compiled
def refresh(known: Known, prior: Prior, t: int) -> None:
    """Solve for the coefficients and the residual variance of a task."""
    d = prior.mean.size
    precision = known.xx[t].copy()
    right = known.xy[t].copy()
    squares = known.yy[t]
    for i in range(d):
        precision[i, i] += prior.precision[i]
        right[i] += prior.precision[i] * prior.mean[i]
        squares += prior.precision[i] * prior.mean[i] ** 2
    known.covariance[t] = np.linalg.inv(precision)
    known.coefficients[t] = known.covariance[t] @ right
    left = max(squares - np.dot(known.coefficients[t], right), 0.0)
    known.variance[t] = (prior.rate + left / 2) / (prior.shape + known.jobs[t] / 2)
    known.fresh[t] = True


@compiled
def foresee(known: Known, prior: Prior, t: int, p: int, x: FloatArray) -> tuple[float, float]:
    """Return location and scale of a job of a task at a queue, on the scale of logarithms."""
    if not known.fresh[t]:
        refresh(known, prior, t)
    n = known.pair_count[p]
    share = prior.queue / (1 + n * prior.queue)
    moved = x - share * known.pair_x[p]
    location = np.dot(moved, known.coefficients[t]) + share * known.pair_y[p]
    spread = 1 + np.dot(moved, known.covariance[t] @ moved) + share
    return location, math.sqrt(known.variance[t] * spread)


@compiled
def learn(known: Known, prior: Prior, t: int, p: int, x: FloatArray, y: float) -> None:
    """Add one job to the sums of its task."""
    d = x.size
    n = known.pair_count[p]
    before = prior.queue / (1 + n * prior.queue)
    after = prior.queue / (1 + (n + 1) * prior.queue)
    old_x, old_y = known.pair_x[p], known.pair_y[p]
    new_y = old_y + y
    for i in range(d):
        new_i = old_x[i] + x[i]
        for j in range(d):
            new_j = old_x[j] + x[j]
            known.xx[t, i, j] += x[i] * x[j] + before * old_x[i] * old_x[j] - after * new_i * new_j
        known.xy[t, i] += x[i] * y + before * old_x[i] * old_y - after * new_i * new_y
    known.yy[t] += y * y + before * old_y * old_y - after * new_y * new_y
    for i in range(d):
        old_x[i] += x[i]
    known.pair_y[p] = new_y
    known.pair_count[p] = n + 1
    known.jobs[t] += 1
    known.fresh[t] = False


@compiled
def class_of(known: Known, t: int, p: int) -> int:
    """Return how much is known of a job's task and queue."""
    if known.jobs[t] == 0:
        return 0
    if known.pair_count[p] == 0:
        return 1
    return 2 if known.pair_count[p] < FEW else 3


@compiled
def keep(latest: FloatArray, ascending: FloatArray, count: int, score: float) -> None:
    """Add a score to a window of the latest ones, kept in order of arrival and ascending."""
    size, place = min(count, latest.size), count % latest.size
    if count >= latest.size:  # the oldest leaves
        size -= 1
        take_out(ascending, 0, size + 1, latest[place])
    put_in(ascending, 0, size, score)
    latest[place] = score


@compiled
def score_quantiles(
    prior: Prior,
    scores: Scores,
    kind: int,
    t: int,
    p: int,
    deviation: float,
    levels: FloatArray,
    result: FloatArray,
) -> None:
    """Find, of the mixture of earlier tasks', the task's and the queue's misses, the quantiles."""
    atoms = prior.atoms[kind] * deviation
    own = scores.task_sorted[t, : min(scores.task_count[t], TASK_WINDOW)]
    near = scores.pair_sorted[p, : min(scores.pair_count[p], PAIR_WINDOW)]
    each = PRIOR_JOBS / atoms.size
    total = PRIOR_JOBS + own.size + PAIR_WEIGHT * near.size
    # As far as scores are the task's own, the job itself is one more, above all of them for all that is
    # known: the rank of conformal prediction.
    one_more = 1 - PRIOR_JOBS / total
    i = j = k = 0
    reached, score = 0.0, atoms[0]
    for level in range(levels.size):
        wanted = min(levels[level] * (total + one_more), total) - 1e-9
        if level and levels[level] < levels[level - 1]:
            i = j = k = 0
            reached, score = 0.0, atoms[0]
        while reached < wanted:
            a = atoms[i] if i < atoms.size else np.inf
            b = own[j] if j < own.size else np.inf
            c = near[k] if k < near.size else np.inf
            if a <= b and a <= c:
                score, reached, i = a, reached + each, i + 1
            elif b <= c:
                score, reached, j = b, reached + 1, j + 1
            else:
                score, reached, k = c, reached + PAIR_WEIGHT, k + 1
        result[level] = score


@compiled
def score_of(
    prior: Prior, kind: int, location: float, scale: float, y: float, killed: np.bool_
) -> float:
    """Return how far a job is from what was foreseen; a killed one as far as any was, at least."""
    score = (y - location) / scale
    return max(score, prior.atoms[kind, -1]) if killed else score


@compiled
def see(
    known: Known,
    scores: Scores,
    prior: Prior,
    t: int,
    p: int,
    x: FloatArray,
    y: float,
    killed: np.bool_,
    scout: np.bool_,
) -> None:
    """See what a job used; what was foreseen just before gives its score."""
    location, scale = foresee(known, prior, t, p, x)
    kind = class_of(known, t, p)
    score = score_of(prior, kind, location, scale, y, killed)
    if killed:  # it enters the model with what jobs that reach so far use on average
        atoms = prior.atoms[kind]
        beyond = atoms[atoms > (y - location) / scale]
        if beyond.size:
            y = location + scale * float(beyond.mean())
    if not scout:  # scouts are no sample of the jobs that follow
        miss = score * math.sqrt(known.variance[t])
        keep(scores.task[t], scores.task_sorted[t], scores.task_count[t], miss)
        keep(scores.pair[p], scores.pair_sorted[p], scores.pair_count[p], miss)
        scores.task_count[t] += 1
        scores.pair_count[p] += 1
    known.finished[t] += 0 if killed else 1
    learn(known, prior, t, p, x, y)


@compiled
def bound(
    known: Known,
    scores: Scores,
    prior: Prior,
    t: int,
    p: int,
    x: FloatArray,
    levels: FloatArray,
    result: FloatArray,
) -> None:
    """Write the quantiles of what a job will use, as logarithms."""
    location, scale = foresee(known, prior, t, p, x)
    deviation = math.sqrt(known.variance[t])
    score_quantiles(prior, scores, class_of(known, t, p), t, p, deviation, levels, result)
    for level in range(levels.size):
        result[level] = location + scale / deviation * result[level]


@compiled
def walk(
    events: IntArray,
    jobs: Jobs,
    known: Known,
    scores: Scores,
    prior: Prior,
    levels: FloatArray,
    decided: Decided,
) -> None:
    """Go through decisions (~row) and ends (row) in their order, and write what was foreseen at decisions."""
    for event in events:
        row = event if event >= 0 else ~event
        t, p, x, y, killed = (
            jobs.task[row],
            jobs.pair[row],
            jobs.x[row],
            jobs.y[row],
            jobs.killed[row],
        )
        if event >= 0:
            see(known, scores, prior, t, p, x, y, killed, jobs.scout[row])
        else:
            decided.seen[row] = known.finished[t]
            decided.kind[row] = class_of(known, t, p)
            location, scale = foresee(known, prior, t, p, x)
            decided.score[row] = score_of(prior, decided.kind[row], location, scale, y, killed)
            bound(known, scores, prior, t, p, x, levels, decided.bounds[row])
