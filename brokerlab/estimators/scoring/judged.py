"""The jobs that estimators are judged on, what their bounds meant for them, and rates of that with intervals whose unit is the task."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal, NamedTuple

import numpy as np
import polars as pl

from brokerlab.compiled import compiled_in_place
from brokerlab.errors import ConfigError, DataError, InsufficientDataError, nearest
from brokerlab.estimators.estimator import Predicted, codes, known, order
from brokerlab.estimators.records import UNITS, Quantity
from brokerlab.estimators.seen import Seen
from brokerlab.intervals import ShareSums, bootstrap_totals, exact_share, percentile_interval
from brokerlab.numerics import BoolArray, FloatArray, IntArray
from brokerlab.scouts.quantities import floats
from brokerlab.units import HOUR_S, MB

Judge = Literal["production", "all"]
JUDGES: tuple[Judge, ...] = ("production", "all")


@dataclass(frozen=True)
class Judged:
    """The judged jobs as arrays, in the order of the records."""

    quantity: Quantity
    rows: IntArray  # (n,) their rows in the checked records
    task: IntArray  # (n,) code of the task
    tasks: IntArray  # (n_tasks,) jeditaskid of each code
    known: IntArray  # (n,) finished jobs of the task that were known
    cores: FloatArray  # (n,)
    used: FloatArray  # (n,) [MB or s]
    censored: BoolArray  # (n,) killed at a limit: used more than this
    # (n,) what a megabyte of memory (GB h) or a second of wall time (core h) weighs
    hours: FloatArray
    largest: FloatArray  # (n,) largest use seen of the task when the job was decided; NaN: none

    @classmethod
    def of(cls, records: pl.DataFrame, quantity: Quantity, judge: Judge) -> Judged:
        """Choose the judged jobs."""
        wrong = [f"quantity '{quantity}': {nearest(quantity, UNITS)}"] * (quantity not in UNITS)
        wrong += [f"judge '{judge}': {nearest(judge, JUDGES)}"] * (judge not in JUDGES)
        if wrong:
            raise ConfigError("; ".join(wrong))
        scouts = records["is_scout"].to_numpy()
        rows = np.flatnonzero(~scouts if judge == "production" else np.ones_like(scouts))
        if rows.size == 0:
            raise InsufficientDataError(
                f"records: none of {records.height} jobs is to be judged; all are scouts"
            )
        events = order(records)
        used, task = floats(records, "used"), codes(records, "jeditaskid")[0]
        largest = Seen(100, most=None).percentile(events, task, used)
        chosen = records[rows]
        task, n_tasks = codes(chosen, "jeditaskid")
        weight = chosen["wall_s" if quantity == "memory" else "cores"].to_numpy()
        return cls(
            quantity=quantity,
            rows=rows,
            task=task,
            tasks=chosen["jeditaskid"].unique(maintain_order=True).to_numpy()[:n_tasks],
            known=known(records, events)[rows],
            cores=floats(chosen, "cores"),
            used=used[rows],
            censored=chosen["censored"].to_numpy(),
            hours=weight * (MB / 1e9 if quantity == "memory" else 1.0) / HOUR_S,
            largest=largest[rows],
        )

    def sums(self, bound: FloatArray, rows: BoolArray | None = None) -> FloatArray:
        """Say what bounds meant, summed over the jobs of each task.

        A bound that is not finite is no answer. A job that was killed exceeds a bound at or below what it
        had used; above it nobody knows. Only finished jobs count for amounts.

        A job above its bound loses the whole attempt; the next one gets the largest use seen of its
        task, if that is larger, and then twice as much each time. Of memory an attempt lasts as long as
        the job; of wall time a killed attempt costs its bound on all cores.

        (n_tasks, len(COUNTED)): ``jobs, answered, unknown`` (killed below the bound), ``scored`` (the
        rest of the answered), ``exceed, at_limit`` (of these, killed exactly at the bound); of finished
        jobs ``used, bound, over`` (bound above use) [MB or s], ``usage, waste`` (allocated and not used,
        killed attempts whole), ``killed`` (their part) [GB h or core h], ``retries``.

        Source: sizing.md, section 3.
        """
        result = np.zeros((self.tasks.size, len(COUNTED)))
        counts = np.ones(bound.size, dtype=np.bool_) if rows is None else rows
        add_up(
            np.ascontiguousarray(bound), self.used, self.censored, self.hours, self.largest,
            self.task, counts, result,
        )  # fmt: skip
        return result

    def can_be_judged(self, bound: FloatArray) -> BoolArray:
        """Tell which jobs have an answer and are known to keep or to exceed it."""
        unknown = self.censored & (self.used < bound) & ~(self.used > bound * ROUNDING)
        return np.asarray(np.isfinite(bound) & ~unknown)

    def promises(self, predicted: Predicted, level: float) -> tuple[float, int, int]:
        """Return the share of jobs that had a bound of a level promised, how many of these kept it, and of how many that is known."""
        bound, own = predicted.at(level)[self.rows], predicted.promised(level)[self.rows]
        known = own & self.can_be_judged(bound)
        kept = self.used[known] <= bound[known] * ROUNDING
        return float(own.mean()), int(kept.sum()), int(known.sum())


@dataclass(frozen=True)
class Entry:
    """One bound per judged job."""

    estimator: str  # its name
    level: float | None  # of the bound; None for a rule that says one number at every level
    bound: FloatArray = field(repr=False)  # (n,) [MB or s]
    judged: Judged = field(repr=False)  # the jobs

    @cached_property
    def sums(self) -> FloatArray:
        """(n_tasks, len(COUNTED)) sums over the jobs of each task."""
        return self.judged.sums(self.bound)


def said(
    judged: Judged, predicted: Mapping[str, Predicted], levels: Sequence[float]
) -> list[Entry]:
    """List the bounds of every estimator at some of its levels; once for a rule without levels."""
    result = []
    for name, each in predicted.items():
        if without_levels(each):
            result.append(Entry(name, None, each.bounds[judged.rows, 0], judged))
            continue
        result += [Entry(name, at, each.at(at)[judged.rows], judged) for at in levels]
    return result


def without_levels(predicted: Predicted) -> bool:
    """Tell whether an estimator says the same number at every level; one that can refuse bounds has levels."""
    return predicted.own is None and bool((predicted.bounds == predicted.bounds[:, :1]).all())


def check_said(
    name: str, predicted: Predicted, pandaid: np.ndarray, levels: Sequence[float]
) -> None:
    """Refuse predictions that are not of all records, in their order, or lack a level, or hold NaN."""
    if not np.array_equal(predicted.pandaid, pandaid):
        raise DataError(
            f"predictions of '{name}': {predicted.pandaid.size} jobs, {pandaid.size} records in the order of"
            " their decision are needed; give those of `replay` on the same records"
        )
    if np.isnan(predicted.bounds).any():
        raise DataError(f"predictions of '{name}': NaN among the bounds; infinite means no answer")
    missing = [f"{each:g}" for each in levels if each not in predicted.levels]
    if missing and not without_levels(predicted):
        raise DataError(
            f"predictions of '{name}': levels {', '.join(missing)} are missing; replay at `all_levels`"
        )


N_BOOT = 2000
FEW_TASKS = 8

MEASURES: dict[str, tuple[str, str, bool]] = {
    "exceed": ("exceed", "scored", False),
    "exceed_task_mean": ("exceed", "scored", True),
    "over_allocation": ("over", "used", False),
    "over_allocation_task_mean": ("over", "used", True),
    "width": ("bound", "used", False),
    "waste_per_usage": ("waste", "usage", False),
    "killed_per_usage": ("killed", "usage", False),
    "retries_per_job": ("retries", "answered", False),
}
"""Name: what is summed, what it is divided by, whether the rates of the tasks are averaged."""


def parts(sums: FloatArray, measure: str) -> tuple[FloatArray, FloatArray]:
    """Return (n_tasks,) numerators and denominators; a measure is the ratio of their totals."""
    over, under, averaged = MEASURES[measure]
    top, bottom = sums[:, PLACE[over]], sums[:, PLACE[under]]
    if not averaged:
        return top, bottom
    some = bottom > 0
    return np.where(some, top / np.where(some, bottom, 1.0), 0.0), some.astype(np.float64)


def rate(sums: FloatArray, measure: str) -> float:
    """Return a measure over all tasks; NaN where nothing can be told."""
    top, bottom = parts(sums, measure)
    total = bottom.sum()
    return float(top.sum() / total) if total > 0 else float("nan")


class Interval(NamedTuple):
    """A share of jobs, or a number, with its bounds; NaN where they cannot be told."""

    value: float
    lo: float
    hi: float


UNKNOWN = Interval(math.nan, math.nan, math.nan)


def exact(hits: float, jobs: float, confidence: float) -> Interval:
    """Return a share of independent jobs with its exact interval."""
    if jobs <= 0:
        return UNKNOWN
    low, high = exact_share(hits, jobs, confidence)
    return Interval(hits / jobs, float(low), float(high))


def clustered(sums: FloatArray, confidence: float) -> Interval:
    """Return the share of jobs that exceed, with an interval whose unit of chance is the task.

    Source: :func:`intervals.share_interval`.
    """
    exceed, scored = sums[:, PLACE["exceed"]], sums[:, PLACE["scored"]]
    some = scored > 0
    if not some.any():
        return UNKNOWN
    share, lo, hi = ShareSums.of(exceed[some][:, None], scored[some]).interval(confidence)
    return Interval(float(share[0]), float(lo[0]), float(hi[0]))


def differences(
    one: FloatArray,
    other: FloatArray,
    measures: Sequence[str],
    *,
    confidence: float,
    n_boot: int,
    seed: int,
) -> list[dict[str, float]]:
    """Compare sums of the same jobs under two estimators, measure by measure.

    ``value`` of the one, ``reference`` of the other; ``difference, lo, hi`` (interval over tasks; NaN below two);
    ``ratio, ratio_lo, ratio_hi`` (NaN where the reference is 0, ends where it is 0 in more draws than lie beyond one);
    ``without_lo, without_hi``: least and largest ratio when one task is left out; NaN where one is to nothing.
    """
    some = (one[:, PLACE["jobs"]] > 0) | (other[:, PLACE["jobs"]] > 0)
    one, other = one[some], other[some]
    columns = np.column_stack(
        [each for name in measures for sums in (one, other) for each in parts(sums, name)]
    )
    drawn = (
        bootstrap_totals(columns, n_boot=n_boot, seed=seed)
        if len(columns) >= 2
        else np.empty((0, columns.shape[1]))
    )
    return [
        _difference(columns[:, at : at + 4], drawn[:, at : at + 4], confidence)
        for at in range(0, columns.shape[1], 4)
    ]


def _difference(columns: FloatArray, drawn: FloatArray, confidence: float) -> dict[str, float]:
    """Compare two ratios of sums over tasks; below two tasks that say anything, without intervals."""
    n_tasks = int(((columns[:, 1] > 0) | (columns[:, 3] > 0)).sum())
    with np.errstate(divide="ignore", invalid="ignore"):
        value, reference, less, ratio = (float(each) for each in _compare(columns.sum(axis=0)))
        ratio = ratio if np.isfinite(ratio) else math.nan
        ends, without = [UNKNOWN, UNKNOWN], np.array([np.nan])
        if n_tasks >= 2:
            replicates = _compare(drawn.T)[2:]
            ends = [
                _told(n, each, confidence, n_tasks)
                for n, each in zip((less, ratio), replicates, strict=True)
            ]
            without = _compare((columns.sum(axis=0) - columns).T)[3]
            without = without if np.isfinite(without).all() else np.array([np.nan])
    return {
        "value": value,
        "reference": reference,
        "difference": less,
        "lo": ends[0].lo,
        "hi": ends[0].hi,
        "ratio": ratio,
        "ratio_lo": ends[1].lo,
        "ratio_hi": ends[1].hi,
        "without_lo": float(without.min()),
        "without_hi": float(without.max()),
    }


def _told(value: float, replicates: FloatArray, confidence: float, n_tasks: int) -> Interval:
    """Return a number with its bootstrap interval; without one where draws that say nothing reach its ends."""
    finite = np.isfinite(replicates)
    if not np.isfinite(value) or (~finite).mean() > (1 - confidence) / 2:
        return Interval(value, np.nan, np.nan)
    lo, hi = percentile_interval(replicates[finite][:, None], confidence, n_tasks=n_tasks)
    return Interval(value, float(lo[0]), float(hi[0]))


def _compare(totals: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """Return a measure of the one, of the other, their difference and their ratio."""
    one, other = totals[0] / totals[1], totals[2] / totals[3]
    return one, other, one - other, one / other


COUNTED = (
    *("jobs", "answered", "unknown", "scored", "exceed", "at_limit"),
    *("used", "bound", "over", "usage", "waste", "killed", "retries"),
)
"""What is summed: see `Judged.sums`."""
PLACE = {name: i for i, name in enumerate(COUNTED)}
_JOBS, _ANSWERED, _UNKNOWN, _SCORED, _EXCEED, _AT_LIMIT = range(6)
_USED, _BOUND, _OVER, _USAGE, _WASTE, _KILLED, _RETRIES = range(6, len(COUNTED))

ROUNDING = 1 + 1e-9  # a use that is larger by the last bits of a product is as large
LEAST = 1.0  # MB or s; what is doubled where an estimate was 0 or less


@compiled_in_place
def add_up(
    bound: FloatArray,
    used: FloatArray,
    censored: BoolArray,
    hours: FloatArray,
    largest: FloatArray,
    task: IntArray,
    counts: BoolArray,
    sums: FloatArray,
) -> None:
    """Add the jobs that count to the sums of their tasks, one after the other."""
    for row in range(bound.size):
        if not counts[row]:
            continue
        t, given, need = task[row], bound[row], used[row]
        sums[t, _JOBS] += 1
        if not np.isfinite(given):
            continue
        sums[t, _ANSWERED] += 1
        above = need > given * ROUNDING
        if censored[row]:
            if above or need >= given:
                sums[t, _SCORED] += 1
                sums[t, _EXCEED] += 1
                sums[t, _AT_LIMIT] += not above
            else:
                sums[t, _UNKNOWN] += 1
            continue
        sums[t, _SCORED] += 1
        sums[t, _EXCEED] += above
        sums[t, _USED] += need
        sums[t, _BOUND] += given
        sums[t, _OVER] += max(given - need, 0.0)
        sums[t, _USAGE] += need * hours[row]
        lost, last = 0.0, given
        while need > last * ROUNDING:
            lost += max(last, 0.0)
            last = largest[row] if last == given and largest[row] > given else 2 * last
            last = max(last, LEAST)
            sums[t, _RETRIES] += 1
        sums[t, _KILLED] += lost * hours[row]
        sums[t, _WASTE] += (lost + max(last - need, 0.0)) * hours[row]
