"""Paired differences between settings, with intervals that hold the draw of tasks and the draw of simulations.

Both settings have the same tasks and, by common random numbers, the same luck; what they share cancels. Tasks stand for
those that might have come; they are drawn again. Tasks of the same days meet the same queues, so that spans of time
are drawn too, and the wider of the two intervals counts. A simulation is one draw of many: the spread of the
difference between replications is added.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl
from scipy import stats

from brokerlab.calibrate.intervals import bootstrap_totals, percentile_interval, t_factor
from brokerlab.calibrate.thresholds.outcomes import OF_TASKS, QUANTITIES, Outcome, Quantity
from brokerlab.errors import DataError
from brokerlab.numerics import FloatArray, IntArray

MIN_TASKS = 10
"""Fewer tasks have no spread to speak of."""
SPANS = 10
"""Equal spans of a period that are drawn as wholes; fewer than `FEWEST_SPANS` with tasks say nothing."""
FEWEST_SPANS = 8
FEWEST_SEEDS = 2


@dataclass(frozen=True)
class Draw:
    """How intervals are made.

    Attributes:
        alpha: 1 - confidence, two-sided.
        n_boot: Bootstrap replicates.
        seed: Same seed, same intervals.
    """

    alpha: float = 0.05
    n_boot: int = 2000
    seed: int = 0

    @property
    def confidence(self) -> float:
        """Coverage that an interval promises."""
        return 1 - self.alpha


@dataclass(frozen=True)
class Pair:
    """The same tasks under two settings.

    Attributes:
        tasks: One row per task, sorted by ``jeditaskid``: labels of the tasks.
        before: Quantity to (n_seeds, n_tasks) values under the current setting.
        after: The same under the other one.
        system_before: Quantity to (n_seeds,) values of the system as a whole.
        system_after: The same under the other one.
    """

    tasks: pl.DataFrame
    before: dict[str, FloatArray]
    after: dict[str, FloatArray]
    system_before: dict[str, FloatArray]
    system_after: dict[str, FloatArray]

    @classmethod
    def of(cls, current: Outcome, other: Outcome) -> Pair:
        """Pair the replications and tasks of two settings.

        Raises:
            DataError: They are not of the same tasks, or have no seed in common.
        """
        seeds = sorted(set(current.seeds) & set(other.seeds))
        sides = [_sides(outcome, seeds) for outcome in (current, other)]
        if not seeds or not sides[0][0].equals(sides[1][0]):
            raise DataError(
                f"the simulations under two settings cannot be paired: {len(seeds)} seeds in common, "
                f"{sides[0][0].len()} and {sides[1][0].len()} tasks; simulate the same tasks with the same seeds"
            )
        labels = current.tasks.unique("jeditaskid", keep="first").sort("jeditaskid")
        return cls(labels, sides[0][1], sides[1][1], sides[0][2], sides[1][2])

    @property
    def n_tasks(self) -> int:
        """Number of tasks."""
        return self.tasks.height

    @property
    def n_seeds(self) -> int:
        """Number of replications."""
        return int(self.before[OF_TASKS[0]].shape[0])

    def some(self, index: IntArray) -> Pair:
        """Return the pair of some tasks, by their places; nothing of the system as a whole."""
        return Pair(
            self.tasks[index],
            {name: values[:, index] for name, values in self.before.items()},
            {name: values[:, index] for name, values in self.after.items()},
            {},
            {},
        )


def _sides(
    outcome: Outcome, seeds: list[int]
) -> tuple[pl.Series, dict[str, FloatArray], dict[str, FloatArray]]:
    """Return the tasks of a setting, (n_seeds, n_tasks) of each quantity, and (n_seeds,) of the system."""
    rows = outcome.tasks.filter(pl.col("seed").is_in(seeds)).sort("seed", "jeditaskid")
    ids = rows["jeditaskid"]
    shape = (len(seeds), len(ids) // max(len(seeds), 1))
    if shape[0] * shape[1] != len(ids) or (
        shape[0] and not (ids.to_numpy().reshape(shape) == ids.to_numpy()[: shape[1]]).all()
    ):
        raise DataError("the replications of a setting are not of the same tasks")
    values = {name: rows[name].to_numpy().reshape(shape) for name in OF_TASKS}
    system = outcome.system.filter(pl.col("seed").is_in(seeds)).sort("seed")
    return ids[: shape[1]], values, {"unfairness": system["unfairness"].to_numpy()}


def compared(pair: Pair, draw: Draw, *, spans: bool = True) -> pl.DataFrame:
    """Compare two settings by every quantity.

    Args:
        pair: The tasks under both.
        draw: How intervals are made.
        spans: Spans of time are drawn too; the wider interval counts.

    Returns:
        One row per quantity of `QUANTITIES`: ``quantity, label, unit, before, after, diff, lo, hi`` (interval of the
        difference; null below `MIN_TASKS` tasks or two replications), ``pct, pct_lo, pct_hi`` (of ``before``; null where
        that is 0), ``half_tasks`` and ``half_runs`` (half widths that the draw of tasks, and that of simulations, would
        give alone), ``p`` (two-sided, of no difference), ``wider`` (tasks, spans, runs: what was drawn).

    Source: Efron and Tibshirani, An Introduction to the Bootstrap (1993), section 13.3; batches of time: Schmeiser,
    Operations Research 30 (1982) 556, doi:10.1287/opre.30.3.556.
    """
    rows = [*_of_tasks(pair, draw, spans=spans), _of_system(pair, draw)]
    return pl.DataFrame(rows, schema=_SCHEMA, orient="row")


_SCHEMA = {
    **dict.fromkeys(("quantity", "label", "unit"), pl.String),
    **dict.fromkeys(("before", "after", "diff", "lo", "hi", "pct", "pct_lo", "pct_hi"), pl.Float64),
    **dict.fromkeys(("half_tasks", "half_runs", "p"), pl.Float64),
    "wider": pl.String,
}


def _of_tasks(pair: Pair, draw: Draw, *, spans: bool) -> list[tuple[object, ...]]:
    """Compare what tasks have."""
    n = pair.n_tasks
    means = [
        np.column_stack([side[name].mean(axis=0) for name in OF_TASKS])
        for side in (pair.before, pair.after)
    ]
    shifts = np.column_stack(
        [(pair.after[name] - pair.before[name]).mean(axis=1) for name in OF_TASKS]
    )
    found = []
    if n >= MIN_TASKS and pair.n_seeds >= FEWEST_SEEDS:
        noise = _noise(shifts, draw)
        found.append(_bounds(_replicates(means, np.ones(n), draw), noise, n, "tasks", draw))
        groups = _spans(pair) if spans else None
        if groups is not None:
            summed = [_sums(side, groups) for side in means]
            drawn = _replicates(summed, np.bincount(groups).astype(float), draw)
            found.append(_bounds(drawn, noise, SPANS, "spans", draw))
    rows = []
    for place, quantity in enumerate(q for q in QUANTITIES if q.name in OF_TASKS):
        times = n if quantity.total else 1
        before, after = (float(side[:, place].mean()) * times if n else 0.0 for side in means)
        one = [bounds[place] for bounds in found]
        widest = max(one, key=lambda bounds: bounds.hi - bounds.lo, default=None)
        runs = _half_runs(shifts[:, place], draw)
        rows.append(_row(quantity, before, after, widest, runs, times))
    return rows


@dataclass(frozen=True)
class _Bounds:
    """The interval of a mean difference per task, and in per cent of the mean before."""

    lo: float
    hi: float
    pct_lo: float | None
    pct_hi: float | None
    half: float
    p: float
    name: str


def _replicates(
    sides: list[FloatArray], weights: FloatArray, draw: Draw
) -> tuple[FloatArray, FloatArray]:
    """Return replicates of the mean difference per task and of the mean before, (n_boot, n_quantities) each."""
    totals = np.column_stack([*sides, weights])
    drawn = bootstrap_totals(totals, n_boot=draw.n_boot, seed=draw.seed)
    k = sides[0].shape[1]
    n = np.maximum(drawn[:, -1:], 1.0)
    return (drawn[:, k : 2 * k] - drawn[:, :k]) / n, drawn[:, :k] / n


def _spans(pair: Pair) -> IntArray | None:
    """Return which span of time each task is of; None where that is not known or too few have tasks."""
    created = pair.tasks["created_at"]
    if created.null_count() or pair.n_tasks < MIN_TASKS:
        return None
    at = created.dt.epoch("us").to_numpy().astype(np.float64)
    length = (at.max() - at.min()) / SPANS
    if length <= 0:
        return None
    span = np.minimum((at - at.min()) // length, SPANS - 1).astype(np.int64)
    return span if len(np.unique(span)) >= FEWEST_SPANS else None


def _sums(values: FloatArray, groups: IntArray) -> FloatArray:
    return np.column_stack([np.bincount(groups, weights=column) for column in values.T])


def _noise(shifts: FloatArray, draw: Draw) -> FloatArray:
    """Return draws of what another set of simulations would have added, (n_boot, n_quantities).

    Student's, with the standard error between replications; independent of the draw of tasks.
    """
    n = shifts.shape[0]
    error = shifts.std(axis=0, ddof=1) / np.sqrt(n)
    rng = np.random.default_rng([draw.seed, n])
    return np.asarray(rng.standard_t(n - 1, size=(draw.n_boot, 1)) * error)


def _half_runs(shifts: FloatArray, draw: Draw) -> float:
    """Return the half width that the replications alone would give; infinite for one."""
    n = len(shifts)
    if n < FEWEST_SEEDS or not np.isfinite(shifts).all():
        return float("inf")
    return t_factor(n, draw.confidence) * float(shifts.std(ddof=1)) / float(np.sqrt(n))


def _bounds(
    drawn: tuple[FloatArray, FloatArray], noise: FloatArray, n: int, name: str, draw: Draw
) -> list[_Bounds]:
    """Return the interval of every quantity's difference, in its unit and in per cent, and its p-value."""
    diffs, befores = drawn
    whole = diffs + noise
    known = np.atleast_1d((befores > 0).all(axis=0))
    parts = 100 * whole / np.where(known, befores, 1.0)
    k = diffs.shape[1]
    low, high = percentile_interval(
        np.column_stack([whole, parts, diffs]), draw.confidence, n_tasks=n
    )
    return [
        _Bounds(
            lo=float(low[q]),
            hi=float(high[q]),
            pct_lo=float(low[k + q]) if known[q] else None,
            pct_hi=float(high[k + q]) if known[q] else None,
            half=float(high[2 * k + q] - low[2 * k + q]) / 2,
            p=p_value(whole[:, q], n),
            name=name,
        )
        for q in range(k)
    ]


def p_value(replicates: FloatArray, n: int) -> float:
    """Return the two-sided p-value of no difference that goes with :func:`percentile_interval`.

    The interval at level 1 - p ends at 0: the part of the replicates beyond 0 is turned back into the Student tail it
    stands for. Not below what the number of replicates can tell.

    Args:
        replicates: (n_boot,) of the difference.
        n: Number of units drawn from, from 2.

    Example:
        >>> draws = np.random.default_rng(1).normal(2.0, 1.0, 20_000)
        >>> 0.03 < p_value(draws, 1000) < 0.06
        True
    """
    if not replicates.any():
        return 1.0
    beyond = min((replicates >= 0).sum(), (replicates <= 0).sum())
    tail = min((1 + float(beyond)) / (1 + len(replicates)), 0.5)
    factor = -float(stats.norm.ppf(tail)) / float(np.sqrt(n / (n - 1)))
    return min(1.0, 2 * float(stats.t.sf(factor, n - 1)))


def _row(
    quantity: Quantity, before: float, after: float, found: _Bounds | None, runs: float, times: int
) -> tuple[object, ...]:
    """Return a row; bounds are per task and are multiplied for totals."""
    about = (quantity.name, quantity.label, quantity.unit, before, after, after - before)
    pct = 100 * (after - before) / before if before else None
    if found is None:
        return *about, None, None, pct, *[None] * 6
    ends = (found.lo * times, found.hi * times, pct, found.pct_lo, found.pct_hi)
    return *about, *ends, found.half * times, runs * times, found.p, found.name


def _of_system(pair: Pair, draw: Draw) -> tuple[object, ...]:
    """Compare what only the system as a whole has: the interval holds the draw of simulations alone."""
    quantity = QUANTITIES[-1]
    before, after = (side.get(quantity.name) for side in (pair.system_before, pair.system_after))
    if before is None or after is None or not np.isfinite([*before, *after]).all():
        empty: tuple[object, ...] = (None,) * 12
        return quantity.name, quantity.label, quantity.unit, *empty
    shifts = after - before
    middle, runs = float(shifts.mean()), _half_runs(shifts, draw)
    if not np.isfinite(runs):
        return _row(quantity, float(before.mean()), float(after.mean()), None, runs, 1)
    spread = float(shifts.std(ddof=1)) / float(np.sqrt(len(shifts)))
    p = (
        2 * float(stats.t.sf(abs(middle) / spread, len(shifts) - 1))
        if spread
        else float(not middle)
    )
    found = _Bounds(middle - runs, middle + runs, None, None, 0.0, min(p, 1.0), "runs")
    return _row(quantity, float(before.mean()), float(after.mean()), found, runs, 1)
