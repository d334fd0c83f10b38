"""Bound what jobs use by what like jobs of their task used: of a batch log, like jobs of their user."""

from __future__ import annotations

from typing import Any, NamedTuple, Self

import numpy as np
import polars as pl

from brokerlab.compiled import compiled, compiled_in_place
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


class Latest(NamedTuple):
    """Latest jobs, a ring: rows as of `walk`, and their places in two ascending orders."""

    rows: FloatArray  # (room, 4)
    by_use: IntArray  # (room,) of what they used; looked at of a task's own jobs
    by_share: IntArray  # (room,) of the share of their request, or what they used without one
    ended: int  # how many there were, ever


@compiled_in_place
def moved(rows: FloatArray, place: int, asked: float) -> float:
    """Return what a job would have used with another request."""
    requested, used = rows[place, _REQUEST], rows[place, _USED]
    if np.isfinite(asked) and np.isfinite(requested) and requested != asked:
        return float(used + (asked - requested))
    return float(used)


@compiled_in_place
def likeness(rows: FloatArray, place: int, asked: float, cores: float) -> float:
    """Return how much a job counts beside one of its own request and cores; 0 where only one of the two has a request."""
    requested = rows[place, _REQUEST]
    if np.isfinite(requested) != np.isfinite(asked):
        return 0.0
    far = abs(rows[place, _CORES] - cores) / CORES_WIDTH
    if np.isfinite(asked) and requested != asked:
        far += abs(requested - asked) / REQUEST_WIDTH
    return float(np.exp(-far))


@compiled_in_place
def put_in_order(by: IntArray, rows: FloatArray, asked: float, ended: int) -> None:
    """Put the latest of so many jobs into the order of what they used, or would have with another request; the oldest one leaves it."""
    held, place = min(ended - 1, by.size), (ended - 1) % by.size
    if held == by.size:
        taken = 0
        while by[taken] != place:
            taken += 1
        held -= 1
        for k in range(taken, held):
            by[k] = by[k + 1]
    value = moved(rows, place, asked)
    while held and moved(rows, by[held - 1], asked) > value:
        by[held] = by[held - 1]
        held -= 1
    by[held] = place


@compiled
def like_uses(
    own: Latest, every: Latest, job: FloatArray, reached: FloatArray
) -> tuple[FloatArray, float]:
    """Return what a job may use, ascending, and how many like jobs of its task there are.

    ``own`` are the latest jobs of its task, ``every`` of all. Written are the probabilities up to each value, a row per
    weight of `PLAIN`.
    """
    m, n = min(own.ended, own.by_use.size), min(every.ended, every.by_use.size)
    asked, cores, alike = job[_REQUEST], job[_CORES], 0.0
    faded, weight = np.empty((2, m))
    for k in range(m):
        place = (own.ended - 1 - k) % own.by_use.size
        faded[place] = np.exp(-k / FADING)
        weight[place] = likeness(own.rows, place, asked, cores) * faded[place]
        alike += weight[place]
    values, like, plain = np.empty(2 * m + n + 1), np.zeros(2 * m + n + 1), np.zeros(2 * m + n + 1)
    total, i, j, k, request = 0, 0, 0, 0, True
    while True:
        while i < m and not weight[own.by_share[i]]:
            i += 1
        while j < n and np.isfinite(every.rows[every.by_share[j], _REQUEST]) != np.isfinite(asked):
            j += 1
        if not request and i == m and j == n and k == m:
            break
        own_use = moved(own.rows, own.by_share[i], asked) if i < m else np.inf
        other_use = moved(every.rows, every.by_share[j], asked) if j < n else np.inf
        plain_use = own.rows[own.by_use[k], _USED] if k < m else np.inf
        value = min(own_use, other_use, plain_use)
        if request and asked <= value:
            value, like[total], request = asked, UNSEEN, False
        elif k < m and plain_use == value:
            plain[total] = faded[own.by_use[k]]
            k += 1
        elif i < m and own_use == value:
            like[total] = weight[own.by_share[i]]
            i += 1
        else:
            like[total] = likeness(every.rows, every.by_share[j], asked, cores) * OTHERS / ALL
            j += 1
        values[total] = value
        total += 1
    for w in range(PLAIN.size):
        above = 0.0
        for k in range(total):
            above += like[k] + PLAIN[w] * plain[k]
            reached[w, k] = above
        reached[w, :total] /= above
    return values[:total], alike


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
    by_use, by_share = np.empty((2, room.sum()), dtype=np.int64)
    latest, ended = np.empty((ALL, jobs.shape[1])), 0
    latest_by_share = np.empty(ALL, dtype=np.int64)
    reached = np.empty((PLAIN.size, 2 * OWN + ALL + 1))
    for event in events:
        row = event if event >= 0 else ~event
        t = task[row]
        part = slice(first[t], first[t] + room[t])
        own = Latest(kept[part], by_use[part], by_share[part], count[t])
        every = Latest(latest, latest_by_share, latest_by_share, ended)
        if row >= past:
            values, alike = like_uses(own, every, jobs[row], reached)
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
        kept[first[t] + count[t] % room[t]] = latest[ended % ALL] = jobs[row]
        count[t] += 1
        ended += 1
        put_in_order(own.by_use, own.rows, np.inf, count[t])
        put_in_order(own.by_share, own.rows, 0.0, count[t])
        put_in_order(every.by_share, latest, 0.0, ended)


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
