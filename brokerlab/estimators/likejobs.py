"""Bound what jobs use by what like jobs of their task used: of a batch log, like jobs of their user."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
import polars as pl

from brokerlab.compiled import compiled
from brokerlab.estimators.estimator import Ordered, Past, Predicted, codes, known, order
from brokerlab.estimators.records import Quantity, check_quantity, checked
from brokerlab.numerics import FloatArray, IntArray
from brokerlab.scouts.quantities import floats

OWN, ALL = 200, 400  # latest jobs looked at of a task, and of all tasks together
FADING = 40.0  # later jobs of the task after which one counts 1 / e
REQUEST_WIDTH, CORES_WIDTH = 0.5, 1.0  # in logarithms: a job that far off counts 1 / e
OTHERS = 1.0  # like jobs of the task that those of all tasks together count as
UNSEEN = 0.01  # like jobs that the possibility of a use up to the request counts as
PLAIN = np.array([0.01, 0.0, 0.1, 1.0])
"""Like jobs that a job of the task, like or not, counts as with what it used, whatever it had requested; the first before anything is known."""
ALIKE = np.array([0.01, 0.1, 1.0])
"""Like jobs of the task between which one of these weights is chosen for itself."""
MEDIAN = 0.5
_REQUEST, _CORES, _USED, _LIMIT = range(4)


@compiled
def like_uses(
    own: FloatArray, every: FloatArray, job: FloatArray, reached: FloatArray
) -> tuple[FloatArray, float]:
    """Return what a job may use, ascending, and how many like jobs of its task there are.

    Rows of ``own`` (the latest first), ``every`` and ``job`` are those of `LikeJobs`. Written are the probabilities up to
    each value, a row per weight of `PLAIN`.
    """
    m, n = own.shape[0], every.shape[0]
    total = 2 * m + n + 1
    values, like, plain = np.empty(total), np.zeros(total), np.zeros(total)
    asked, alike = job[_REQUEST], 0.0
    for k in range(m + n):
        row = own[k] if k < m else every[k - m]
        far, use = abs(row[_CORES] - job[_CORES]) / CORES_WIDTH, row[_USED]
        comparable = np.isfinite(row[_REQUEST]) == np.isfinite(asked)
        if comparable and np.isfinite(asked) and row[_REQUEST] != asked:
            far += abs(row[_REQUEST] - asked) / REQUEST_WIDTH
            use += asked - row[_REQUEST]
        values[k] = use
        if k < m:
            like[k] = np.exp(-far - k / FADING) if comparable else 0.0
            alike += like[k]
            values[m + n + k], plain[m + n + k] = row[_USED], np.exp(-k / FADING)
        elif comparable:
            like[k] = np.exp(-far) * OTHERS / ALL
    values[total - 1], like[total - 1] = asked, UNSEEN
    by: IntArray = np.argsort(values)
    for w in range(PLAIN.size):
        above = 0.0
        for k in range(total):
            above += like[by[k]] + PLAIN[w] * plain[by[k]]
            reached[w, k] = above
        reached[w, :total] /= above
    ordered: FloatArray = values[by]
    return ordered, alike


@compiled
def quantile(values: FloatArray, reached: FloatArray, level: float) -> float:
    """Return the least value that is reached with more than this probability."""
    place = int(np.searchsorted(reached, level, side="right"))
    return float(values[min(place, values.size - 1)])


@compiled
def walk(
    events: IntArray,
    jobs: FloatArray,
    past: int,
    task: IntArray,
    room: IntArray,
    first: IntArray,
    losses: FloatArray,
    levels: FloatArray,
    means: FloatArray,
) -> None:
    """Go through decisions (~row) and ends (row): write quantiles, and add up what each weight of plain uses missed.

    ``jobs`` has rows of logarithms ``(request, cores, used, limit)``, the first ``past`` of them scored before; a task has ``room`` places from
    ``first`` on for its latest jobs.
    """
    kept, count = np.empty((room.sum(), jobs.shape[1])), np.zeros(room.size, dtype=np.int64)
    latest, ended = np.empty((ALL, jobs.shape[1])), 0
    own = np.empty((OWN, jobs.shape[1]))
    reached = np.empty((PLAIN.size, 2 * OWN + ALL + 1))
    for event in events:
        row = event if event >= 0 else ~event
        t = task[row]
        if row >= past:
            m = min(count[t], room[t])
            for k in range(m):
                own[k] = kept[first[t] + (count[t] - 1 - k) % room[t]]
            values, alike = like_uses(own[:m], latest[: min(ended, ALL)], jobs[row], reached)
            c = np.searchsorted(ALIKE, alike)
        if event < 0:
            best = np.argmin(losses[c])
            for k in range(levels.size):
                use = quantile(values, reached[best, : values.size], levels[k])
                means[row, k] = np.exp(min(use, jobs[row, _LIMIT]))
            continue
        if row >= past:
            for w in range(PLAIN.size):
                middle = quantile(values, reached[w, : values.size], MEDIAN)
                losses[c, w] += abs(
                    np.exp(min(middle, jobs[row, _LIMIT])) - np.exp(jobs[row, _USED])
                )
        kept[first[t] + count[t] % room[t]] = jobs[row]
        count[t] += 1
        latest[ended % ALL] = jobs[row]
        ended += 1


class LikeJobs(Ordered):
    r"""Estimate the median and quantiles of what a job uses from like jobs of its task.

    The distribution of the share of its request that a job uses is that of the latest jobs of its task and,
    lightly, of all tasks, each weighted by

    .. math:: e^{-k / 40} \; e^{-|\ln(q / q_k)| / 0.5} \; e^{-|\ln(h / h_k)|}

    with q the request, h the cores, and k later jobs of the same task. A job stopped at its request counts as
    one that uses up to any request. Where no like job was seen that says nothing: a user who asks for 62 days may run
    nine seconds. So each job of the task counts a little, too, with what it used, like or not; how much is the one of six
    weights under which the medians of the jobs that ended so far were nearest to what they used.

    It tells a distribution and promises nothing; `held.HeldBounds` holds its bounds to their levels.

    Source: own; the choice among weights by predictions made in advance: Dawid, J. R. Stat. Soc. A 147 (1984) 278,
    doi:10.2307/2981683. The widths were chosen on the first half of the KTH log.
    """

    name = "like jobs"

    def __init__(self, quantity: Quantity) -> None:
        check_quantity(quantity)
        self.quantity = quantity
        self._past = Past()
        self._losses = np.zeros((ALIKE.size + 1, PLAIN.size))

    def fit(self, records: Any) -> Self:
        """Learn from the finished jobs of earlier tasks how much plain uses count; forgets what was seen before."""
        self._past.clear()
        self._losses = np.zeros((ALIKE.size + 1, PLAIN.size))
        return self.update(records)

    def conformalize(self, records: Any) -> Self:
        """See finished jobs of other tasks; there is nothing to calibrate, see `held.HeldBounds`."""
        return self.update(records)

    def update(self, records: Any) -> Self:
        """See finished jobs, in the order of their ends; those without an end are not seen."""
        frame = checked(records).filter(pl.col("ended_s").is_not_null())
        _, self._losses = self._walk(frame, order(frame), ())
        self._past.add(frame)
        return self

    def bound_events(
        self, frame: pl.DataFrame, events: IntArray, levels: tuple[float, ...]
    ) -> Predicted:
        """Bound jobs; see :meth:`Ordered.bound_events`."""
        result, _ = self._walk(frame, events, (MEDIAN, *levels))
        together, walked, past = self._past.before(frame, events)
        seen = known(together, walked)[past:]
        return Predicted(frame["pandaid"].to_numpy(), seen, levels, result[:, 1:], result[:, 0])

    def _walk(
        self, frame: pl.DataFrame, events: IntArray, levels: tuple[float, ...]
    ) -> tuple[FloatArray, FloatArray]:
        """Return quantiles of the jobs of a frame, and what each weight of plain uses missed by then."""
        together, walked, past = self._past.before(frame, events)
        task, n_tasks = codes(together, "jeditaskid")
        room = np.minimum(np.bincount(task, minlength=n_tasks), OWN).astype(np.int64)
        requested = floats(together, "requested")
        requested = np.where(requested > 0, requested, np.inf)
        limit = requested if self.quantity == "walltime" else np.full(requested.size, np.inf)
        columns = (requested, floats(together, "cores"), floats(together, "used"), limit)
        jobs = np.log(np.column_stack(columns))
        losses, result = self._losses.copy(), np.empty((together.height, len(levels)))
        first = np.concatenate([[0], np.cumsum(room)[:-1]]).astype(np.int64)
        walk(walked, jobs, past, task, room, first, losses, np.array(levels), result)
        return result[past:], losses
