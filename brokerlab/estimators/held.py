"""Bounds that are held to their levels: what they missed so far moves the level that is asked for."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any, NamedTuple, Self

import numpy as np
import polars as pl

from brokerlab.compiled import compiled
from brokerlab.estimators.estimator import GRID, Estimator, Predicted, check_levels, order
from brokerlab.estimators.hierarchy.kernels import keep
from brokerlab.estimators.records import Quantity, checked
from brokerlab.numerics import BoolArray, FloatArray, IntArray
from brokerlab.scouts.quantities import floats

WINDOW = 2000  # latest scores that are kept
TRUSTED = 50.0  # jobs that the estimator's own promise counts as, beside the scores
RATE = 0.005
"""Step of the level after each job: that of the source, after the first 150 jobs; before, one over the jobs and `TRUSTED`."""
AIMED = 0.5
"""Part of the share that may miss that bounds aim at; the rest is for promises that are open together."""
CHANCE = 0.025
"""More promises are never missed than a sum of independent ones with the stated level exceeds with this probability."""
ROUNDING = 1 + 1e-9  # a use that is larger by the last bits of a product is as large
TINY = 1e-12  # of a logarithm or a level
_PROMISED = (np.arange(400) + 0.5) / 400


class Misses(NamedTuple):
    """What bounds missed so far: scores of the latest jobs, and the share that may still miss."""

    latest: FloatArray  # (WINDOW,) in the order of their arrival, a ring
    ascending: FloatArray  # (WINDOW,) the same, sorted
    added: IntArray  # (1,) how many, ever
    missing: FloatArray  # (levels,); 0 or less: the largest score is taken
    resolved: IntArray  # (levels,) promises of which it is known whether they were kept
    missed: IntArray  # (levels,) of these
    pending: IntArray  # (levels,) promises whose jobs have not ended


class Jobs(NamedTuple):
    """What the walk reads of jobs (n,), and of what the estimator told of them."""

    decided: FloatArray  # [s]
    started: FloatArray  # [s]; NaN: not known
    use: FloatArray  # [MB or s]
    limit: FloatArray  # no job uses more [MB or s]; infinite: not known
    killed: BoolArray
    asked: FloatArray  # what is given where no bound is promised [MB or s]; infinite: nothing
    seen: IntArray  # finished jobs of the task that were known
    bounds: FloatArray  # (n, levels of the grid) logarithms of bounds; infinite: none


@compiled
def score_of(grid: FloatArray, bounds: FloatArray, use: float) -> float:
    """Return where in its distribution a use (logarithm) lies: the level of the bound that is just as large.

    Between two levels on the line through them, beyond the last one more by the difference of the logarithms; NaN where
    nothing was told.
    """
    finite = np.searchsorted(bounds, np.inf)
    if finite == 0:
        return np.nan
    place = np.searchsorted(bounds[:finite], use - TINY)
    if place == finite:
        return float(grid[finite - 1] + use - bounds[finite - 1])
    if place == 0:
        return float(grid[0] * np.exp(use - bounds[0]))
    part = (use - bounds[place - 1]) / (bounds[place] - bounds[place - 1])
    return float(grid[place - 1] + min(part, 1.0) * (grid[place] - grid[place - 1]))


@compiled
def use_at(grid: FloatArray, bounds: FloatArray, score: float) -> float:
    """Return the use (logarithm) at a score: the inverse of `score_of`; infinite beyond what was told."""
    finite = np.searchsorted(bounds, np.inf)
    if finite == 0:
        return np.inf
    place = np.searchsorted(grid[:finite], score)
    if place == finite:
        more = score - grid[finite - 1]
        return np.inf if finite < grid.size else float(bounds[finite - 1] + more)
    if place == 0:
        return float(bounds[0] + np.log(score / grid[0]))
    part = (score - grid[place - 1]) / (grid[place] - grid[place - 1])
    return float(bounds[place - 1] + part * (bounds[place] - bounds[place - 1]))


@compiled
def reach(
    misses: Misses,
    promised: FloatArray,
    at_least: FloatArray,
    scores: FloatArray,
    reached: FloatArray,
) -> int:
    """Write all scores, ascending, and the probability up to each; return how many there are.

    ``promised`` are the scores that the estimator's promise amounts to, ``at_least`` what those of running jobs are at
    least, both ascending. The weight of these goes to the scores above: leaving them out would tell of short jobs only.
    """
    n = min(misses.added[0], misses.latest.size)
    each = TRUSTED / promised.size
    left, above = TRUSTED + n, 1.0
    i = j = below = total = 0
    while i < promised.size or j < n:
        own = i == promised.size or (j < n and misses.ascending[j] <= promised[i])
        score, weight = (misses.ascending[j], 1.0) if own else (promised[i], each)
        i, j = (i, j + 1) if own else (i + 1, j)
        while below < at_least.size and at_least[below] < score:
            below += 1
        above *= max(1 - weight / (left + at_least.size - below), 0.0)
        left -= weight
        scores[total], reached[total] = score, 1 - above
        total += 1
    return total


@compiled
def walk(
    events: IntArray,
    jobs: Jobs,
    by_start: IntArray,
    grid: FloatArray,
    promised: FloatArray,
    levels: FloatArray,
    misses: Misses,
    bounds: FloatArray,
    own: BoolArray,
    may_miss: IntArray,
) -> None:
    """Go through decisions (~row) and ends (row): write ``bounds`` (n, levels), and learn from what came.

    ``own``: whether a bound is promised; if not it is only tried. Of a task of which enough is known both move the level once
    the job has ended. ``may_miss`` (levels, promises and more): of so many promises. ``by_start``
    are the rows whose start is known, in its order: how long they have run is known at later decisions.
    """
    n = jobs.use.size
    passed, ended = np.zeros((n, levels.size), dtype=np.bool_), np.zeros(n, dtype=np.bool_)
    running, n_running, next_start = np.empty(n, dtype=np.int64), 0, 0
    scores, reached = np.empty((2, promised.size + misses.latest.size))
    aimed = AIMED * (1 - levels)
    fewest = np.ceil(levels / (1 - levels) - TINY)  # jobs of which one more is above with 1 - level
    total = 0  # scores that are valid; 0: to be computed anew
    for event in events:
        row = event if event >= 0 else ~event
        if event >= 0:
            total, ended[row] = 0, True
            use = np.log(jobs.use[row])
            score = score_of(grid, jobs.bounds[row], use)
            if np.isnan(score):
                continue
            if jobs.killed[row] and jobs.use[row] < jobs.limit[row]:
                score = np.inf  # it would have used more
            keep(misses.latest, misses.ascending, misses.added[0], score)
            misses.added[0] += 1
            step = max(RATE, 1 / (TRUSTED + misses.added[0]))
            for k in range(levels.size):
                if jobs.seen[row] < fewest[k]:
                    continue
                above = jobs.use[row] > bounds[row, k] * ROUNDING
                if own[row, k]:
                    misses.pending[k] -= 1
                    misses.missed[k] += above
                    misses.resolved[k] += above or not jobs.killed[row]  # else nobody knows
                if passed[row, k]:
                    continue  # counted when it passed its bound
                if above:
                    misses.missing[k] -= step * (1 - aimed[k])
                else:
                    misses.missing[k] += step * aimed[k]
            continue
        now = jobs.decided[row]
        while next_start < by_start.size and jobs.started[by_start[next_start]] < now:
            running[n_running] = by_start[next_start]
            n_running, next_start = n_running + 1, next_start + 1
        still = 0
        for k in range(n_running):
            if not ended[running[k]]:
                running[still] = running[k]
                still += 1
        n_running = still
        if n_running:
            total = 0
        at_least = np.empty(n_running)
        step = max(RATE, 1 / (TRUSTED + misses.added[0]))
        for place in range(n_running):
            other = running[place]
            so_far = min(now - jobs.started[other], jobs.limit[other])
            at_least[place] = score_of(grid, jobs.bounds[other], np.log(so_far))
            for k in range(levels.size):
                counts = jobs.seen[other] >= fewest[k] and not passed[other, k]
                if counts and so_far > bounds[other, k] * ROUNDING:
                    passed[other, k] = True
                    misses.missing[k] -= step * (1 - aimed[k])
        if not total:
            at_least = np.sort(at_least[~np.isnan(at_least)])
            total = reach(misses, promised, at_least, scores, reached)
        kept = min(misses.added[0], misses.latest.size)
        one_more = kept / (TRUSTED + kept) ** 2
        n_known = np.searchsorted(scores[:total], np.inf)  # of killed jobs nobody knows it
        for k in range(levels.size):
            resolved, missed = misses.resolved[k], misses.missed[k]
            most = max(may_miss[k, resolved], 1)
            left = min(max((most - missed) / (most - aimed[k] * resolved), 0.0), 1.0)
            asked = (1 - misses.missing[k]) * (1 + one_more) - TINY
            usual = np.searchsorted(reached[:total], asked)
            asked = (1 - misses.missing[k] * left) * (1 + one_more) - TINY
            place = min(np.searchsorted(reached[:total], asked), n_known - 1)
            at = scores[min(max(place, usual), total - 1)]
            bound = np.exp(use_at(grid, jobs.bounds[row], at))
            at_stake = misses.pending[k] + 1
            safe = missed + at_stake <= may_miss[k, resolved + at_stake] or at_stake == 1
            own[row, k] = jobs.seen[row] >= fewest[k] and bound < np.inf and safe
            misses.pending[k] += own[row, k]
            lower = bounds[row, k - 1] if k else 0.0
            bounds[row, k] = max(min(bound, jobs.limit[row]), lower)


class _OpenJob(NamedTuple):
    """What was told of a job that has not ended."""

    bounds: FloatArray  # (levels of the grid,) logarithms of bounds
    seen: int  # finished jobs of the task that were known
    by_level: dict[float, tuple[float, bool]]  # bound, and whether it is promised


_NO_BOUND = (np.inf, False)


class HeldBounds:
    r"""Hold the bounds of an estimator to their levels on whatever jobs come.

    Of every finished job the score is where it came out in the distribution that the estimator told of it. The bound of a
    level is the one at the score that the latest 2000 jobs kept with this probability; the estimator's own promise counts
    as 50 jobs among them. A job that runs is known to have at least the score of the time that it has run: without
    it, scores of short jobs come first. And the level asked for moves: after every job that has such a bound the share that
    may miss rises by a step times what is aimed at, half of 1 - level, and falls by the rest of the step if it missed (0.005; of the first jobs
    more, 0.02), of a run that is known to last longer from that instant on. So in the long run the stated share of jobs, and
    half of the others, keep their bound, whatever they are.

    The long run does not help jobs that are told their bounds together, before anyone knows what the first of them used: they
    keep or miss them together; the other half of what may miss is for them. A bound is promised only where the promises kept so far could still be said to be of the
    level if every promise that is open, this one among them, were missed: by the exact binomial interval of 95 %. One at a
    time is promised in any case, or a first miss would be the end; and as many jobs of the task must have finished as can hold
    the level (19 for 95 %, scouts among them). As the misses of promises rise from what is aimed at to what chance allows, the
    share that may miss is asked for in part only, at last none: bounds at the largest score that is known. Elsewhere a bound is refused: in
    its place is the request, infinite where nothing was requested.

    The guess is the estimator's; of walltime at most the request.

    Args:
        estimator: What tells the distributions; it learns, is calibrated and updated through this one.
        quantity: ``"memory"`` or ``"walltime"``.
        name: None: that of the estimator.
        levels: Bounds of these are tried from the first job on, of others from when they are first asked for.

    Source: own, from Chernozhukov, Wüthrich, Zhu, PNAS 118 (2021) e2107794118, doi:10.1073/pnas.2107794118 (scores);
    Gibbs, Candès, Adaptive conformal inference under distribution shift, NeurIPS 34 (2021), arXiv:2106.00208, equation 2
    (levels); Clopper, Pearson, Biometrika 26 (1934) 404, doi:10.1093/biomet/26.4.404 (what may be missed); Kaplan, Meier, JASA 53 (1958) 457, doi:10.1080/01621459.1958.10501452 (jobs that run).
    """

    def __init__(
        self,
        estimator: Estimator,
        quantity: Quantity,
        *,
        name: str | None = None,
        levels: Sequence[float] = (),
    ) -> None:
        self.estimator = estimator
        self.quantity = quantity
        self.name = name or estimator.name
        self.levels = check_levels(levels) if levels else ()
        self._forget()

    def _forget(self) -> None:
        self._latest, self._ascending = np.empty((2, WINDOW))
        self._count = np.zeros(1, dtype=np.int64)
        # by level: the share that may still miss, promises of which it is known whether they were kept, missed of these
        self._so_far = {level: (AIMED * (1 - level), 0, 0) for level in self.levels}
        self._open: dict[int, _OpenJob] = {}

    def fit(self, records: Any) -> Self:
        """Let the estimator learn; what was missed before is forgotten."""
        self.estimator = self.estimator.fit(records)
        self._forget()
        return self

    def conformalize(self, records: Any) -> Self:
        """Calibrate the estimator."""
        self.estimator = self.estimator.conformalize(records)
        return self

    def update(self, records: Any) -> Self:
        """See finished jobs: the estimator does, and what was told of them is held against what they used.

        Jobs that were not predicted are replayed first: each as it was decided.
        """
        frame = checked(records).filter(pl.col("ended_s").is_not_null()).sort("ended_s", "pandaid")
        new = frame.filter(~pl.col("pandaid").is_in(list(self._open)))
        if new.height:
            levels = tuple(sorted(self._so_far)) or GRID[-1:]
            misses = self._misses(levels)
            replayed = self.estimator.replay(new, levels=GRID)
            hold(new, replayed, self.quantity, levels=levels, misses=misses)
            self._keep(levels, misses)
        known = frame.filter(pl.col("pandaid").is_in(list(self._open)))
        if known.height:
            self._see(known, [self._open.pop(each) for each in known["pandaid"].to_list()])
        self.estimator = self.estimator.update(frame)
        return self

    def _keep(self, levels: tuple[float, ...], misses: Misses) -> None:
        columns = (misses.missing.tolist(), misses.resolved.tolist(), misses.missed.tolist())
        self._so_far |= dict(zip(levels, zip(*columns, strict=True), strict=True))

    def _see(self, frame: pl.DataFrame, opened: list[_OpenJob]) -> None:
        """Hold what was told of jobs against what they used."""
        levels = tuple(sorted(self._so_far))
        logarithms = np.array([each.bounds for each in opened])
        seen = np.array([each.seen for each in opened])
        tried = [[each.by_level.get(level, _NO_BOUND) for level in levels] for each in opened]
        shape = frame.height, len(levels)
        bounds = np.array([[bound for bound, _ in each] for each in tried]).reshape(shape)
        own = np.array([[own for _, own in each] for each in tried], dtype=np.bool_).reshape(shape)
        misses = self._misses(levels)
        for each in opened:  # those of jobs that have not ended are open still
            misses.pending[:] += [each.by_level.get(level, _NO_BOUND)[1] for level in levels]
        walk(
            np.arange(frame.height), _jobs(frame, logarithms, seen, self.quantity), np.empty(0, dtype=np.int64),
            np.array(GRID), _PROMISED, np.array(levels), misses, bounds, own, _may_miss(levels, misses, 0),
        )  # fmt: skip
        self._keep(levels, misses)

    def predict(self, records: Any, *, levels: Sequence[float]) -> pl.DataFrame:
        """Bound jobs that have not run; columns as :meth:`Estimator.predict` says."""
        frame, asked = checked(records), check_levels(levels)
        inner = self.estimator.predict(frame, levels=GRID)
        logarithms = np.log(inner.select(pl.selectors.starts_with("bound_")).to_numpy())
        seen, point = inner["seen"].to_numpy(), inner["point"].to_numpy()
        for level in asked:
            self._so_far.setdefault(level, (AIMED * (1 - level), 0, 0))
        for pandaid in frame["pandaid"].to_list():
            self._open.pop(pandaid, None)
        rows = np.arange(frame.height, dtype=np.int64)
        jobs = _jobs(frame, logarithms, seen, self.quantity)
        bounds, own = _walk(jobs, ~rows, asked, self._misses(asked), self.quantity)
        for row, pandaid in enumerate(frame["pandaid"].to_list()):
            each = zip(bounds[row].tolist(), own[row].tolist(), strict=True)
            by_level = dict(zip(asked, each, strict=True))
            self._open[pandaid] = _OpenJob(logarithms[row], int(seen[row]), by_level)
        return _promised(frame, seen, asked, bounds, own, point, jobs).frame()

    def replay(self, records: Any, *, levels: Sequence[float]) -> Predicted:
        """Bound every job as it is decided; see :meth:`Estimator.replay`."""
        frame, asked = checked(records), check_levels(levels)
        so_far = self._misses(asked)
        copies = {name: getattr(so_far, name).copy() for name in ("latest", "ascending", "added")}
        predicted = self.estimator.replay(frame, levels=GRID)
        return hold(frame, predicted, self.quantity, levels=asked, misses=so_far._replace(**copies))

    def _misses(self, levels: Sequence[float]) -> Misses:
        rows = [self._so_far.get(level, (AIMED * (1 - level), 0, 0)) for level in levels]
        missing = np.array([row[0] for row in rows])
        resolved, missed = np.array([row[1:] for row in rows], dtype=np.int64).T.copy()
        pending = np.zeros(len(levels), dtype=np.int64)
        for each in self._open.values():
            pending += [each.by_level.get(level, _NO_BOUND)[1] for level in levels]
        return Misses(
            self._latest, self._ascending, self._count, missing, resolved, missed, pending
        )


def hold(
    records: Any,
    predicted: Predicted,
    quantity: Quantity,
    *,
    levels: Sequence[float],
    misses: Misses | None = None,
) -> Predicted:
    """Hold what any estimator told of jobs, at the levels of `GRID` at least, to its levels.

    ``misses`` are what was missed before, and learn from the jobs; None: nothing.
    """
    frame, asked = checked(records), check_levels(levels)
    if misses is None:
        latest, ascending = np.empty((2, WINDOW))
        nothing = np.zeros((3, len(asked)), dtype=np.int64)
        missing = AIMED * (1 - np.array(asked))
        misses = Misses(latest, ascending, np.zeros(1, np.int64), missing, *nothing)
    logs = np.log(predicted.bounds[:, [predicted.levels.index(level) for level in GRID]])
    jobs = _jobs(frame, logs, predicted.seen, quantity)
    bounds, own = _walk(jobs, order(frame), asked, misses, quantity)
    return _promised(frame, predicted.seen, asked, bounds, own, predicted.point, jobs)


@cache
def _most_misses(level: float, size: int) -> IntArray:
    """Return how many of 0, 1, 2, ... promises may miss for the upper end of the exact interval of the share kept to reach the level."""
    most = np.empty(size, dtype=np.int64)
    count_misses(1 - level, most)
    return most


@compiled
def count_misses(rate: float, most: IntArray) -> None:
    """Write the least k that of n independent promises, each missed at this rate, no more are missed with all but `CHANCE`; n is the place.

    From n to n + 1 the probability of k misses or fewer falls by the rate times that of exactly k.
    """
    k, exactly, at_most = 0, 1.0, 1.0
    for n in range(most.size):
        if n:
            at_most -= rate * exactly
            exactly *= (1 - rate) * n / (n - k)
        while at_most < 1 - CHANCE:
            k += 1
            exactly *= (n - k + 1) / k * rate / (1 - rate)
            at_most += exactly
        most[n] = k


def _may_miss(levels: Sequence[float], misses: Misses, more: int) -> IntArray:
    """Return `_most_misses` of each level for all promises there are and so many more."""
    promises = int((misses.resolved + misses.pending).max()) + more + 1
    return np.array([_most_misses(level, 1 << promises.bit_length()) for level in levels])


def _jobs(frame: pl.DataFrame, bounds: FloatArray, seen: IntArray, quantity: Quantity) -> Jobs:
    asked = floats(frame, "requested")
    asked = np.where(asked > 0, asked, np.inf)
    return Jobs(
        decided=frame["decided_s"].to_numpy(),
        started=floats(frame, "started_s"),
        use=floats(frame, "used"),
        limit=asked if quantity == "walltime" else np.full(asked.size, np.inf),
        asked=asked,
        seen=seen,
        killed=frame["censored"].to_numpy(),
        bounds=np.ascontiguousarray(bounds),
    )


def _walk(
    jobs: Jobs, events: IntArray, levels: tuple[float, ...], misses: Misses, quantity: Quantity
) -> tuple[FloatArray, BoolArray]:
    """Return the bounds that are tried, and which of them are promised."""
    bounds = np.full((jobs.use.size, len(levels)), np.inf)
    own = np.zeros(bounds.shape, dtype=np.bool_)
    by_start = np.argsort(jobs.started, kind="stable")
    runs = quantity == "walltime" and bool((events >= 0).any())
    by_start = by_start[: int(np.isfinite(jobs.started).sum()) if runs else 0]
    walk(
        events, jobs, by_start, np.array(GRID), _PROMISED, np.array(levels), misses, bounds, own,
        _may_miss(levels, misses, jobs.use.size),
    )  # fmt: skip
    return bounds, own


def _promised(
    frame: pl.DataFrame, seen: IntArray, levels: tuple[float, ...], bounds: FloatArray, own: BoolArray,
    point: FloatArray, jobs: Jobs,
) -> Predicted:  # fmt: skip
    """Put the request where no bound is promised, at most the promised bound of a higher level; a higher level is never below a lower one."""
    higher = np.minimum.accumulate(np.where(own, bounds, np.inf)[:, ::-1], axis=1)[:, ::-1]
    given = np.where(own, bounds, np.minimum(jobs.asked[:, None], higher))
    given = np.maximum.accumulate(given, axis=1)
    guess = np.minimum(point, jobs.limit)
    return Predicted(frame["pandaid"].to_numpy(), seen, levels, given, guess, own)
