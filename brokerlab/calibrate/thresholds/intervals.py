"""Paired differences between settings, with intervals that hold the draw of tasks and the draw of simulations.

Both settings have the same tasks and, by common random numbers, the same luck; what they share cancels. Tasks stand for
those that might have come; they are drawn again. Tasks of the same days meet the same queues, so that spans of time
are drawn too, and the wider of the two intervals counts. A simulation is one draw of many: Student's interval of the
difference between replications is added to either side as independent errors are, in squares.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import polars as pl

from brokerlab.calibrate.thresholds.outcomes import OF_TASKS, QUANTITIES, Outcome, Quantity
from brokerlab.errors import DataError
from brokerlab.intervals import bootstrap_totals, percentile_interval, t_factor
from brokerlab.numerics import FloatArray, IntArray, percent_of

MIN_TASKS = 10
"""Fewer tasks have no spread to speak of."""
SPANS = 10
"""Equal spans of a period that are drawn as wholes; fewer than `FEWEST_SPANS` with tasks say nothing."""
FEWEST_SPANS = 8
FEWEST_SEEDS = 2
HALVINGS = 14
"""Steps to a p-value."""


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
        One row per quantity of `QUANTITIES`: ``quantity, label, unit, before, after, diff, diff_lo, diff_hi`` (interval of the
        difference; null below `MIN_TASKS` tasks or two replications), ``diff_pct, diff_pct_lo, diff_pct_hi`` (of ``before``; null where
        that is almost nothing, see :attr:`.outcomes.Quantity.least`), ``half_tasks`` and ``half_runs`` (half widths that the draw of tasks, and that of simulations, would
        give alone), ``wider`` (tasks, spans, runs: what was drawn).

    Source: Efron and Tibshirani, An Introduction to the Bootstrap (1993), section 13.3; batches of time: Schmeiser,
    Operations Research 30 (1982) 556, doi:10.1287/opre.30.3.556; adding intervals: Zou and Donner, Statistics in Medicine
    27 (2008) 1693, doi:10.1002/sim.3095.
    """
    drawn = _Drawn.of(pair, draw, spans=spans)
    return _table(pair, drawn, draw)


_SCHEMA = {
    **dict.fromkeys(("quantity", "label", "unit"), pl.String),
    **dict.fromkeys(
        ("before", "after", "diff", "diff_lo", "diff_hi", "diff_pct", "diff_pct_lo", "diff_pct_hi"),
        pl.Float64,
    ),
    **dict.fromkeys(("half_tasks", "half_runs"), pl.Float64),
    "wider": pl.String,
}


def _table(pair: Pair, drawn: _Drawn, draw: Draw) -> pl.DataFrame:
    rows = [*_of_tasks(drawn, draw), _of_system(pair, draw)]
    return pl.DataFrame(rows, schema=_SCHEMA, orient="row")


@dataclass(frozen=True)
class _Drawn:
    """What intervals of any level are made from.

    Attributes:
        means: (n_tasks, n_quantities) before and after, means over replications.
        shifts: (n_seeds, n_quantities) differences, means over tasks.
        replicates: Of the mean difference and the mean before, how many units were drawn, and what they are.
    """

    means: list[FloatArray]
    shifts: FloatArray
    replicates: list[tuple[FloatArray, FloatArray, int, str]]

    @classmethod
    def of(cls, pair: Pair, draw: Draw, *, spans: bool) -> _Drawn:
        """Draw tasks, and spans of time."""
        n = pair.n_tasks
        means = [
            np.column_stack([side[name].mean(axis=0) for name in OF_TASKS])
            for side in (pair.before, pair.after)
        ]
        shifts = np.column_stack(
            [(pair.after[name] - pair.before[name]).mean(axis=1) for name in OF_TASKS]
        )
        replicates = []
        if n >= MIN_TASKS and pair.n_seeds >= FEWEST_SEEDS:
            replicates.append((*_replicates(means, np.ones(n), draw), n, "tasks"))
            groups = _spans(pair) if spans else None
            if groups is not None:
                summed = [_sums(side, groups) for side in means]
                weights = np.bincount(groups).astype(np.float64)
                replicates.append((*_replicates(summed, weights, draw), SPANS, "spans"))
        return cls(means, shifts, replicates)


def _of_tasks(drawn: _Drawn, draw: Draw) -> list[tuple[object, ...]]:
    """Compare what tasks have."""
    quantities = [q for q in QUANTITIES if q.name in OF_TASKS]
    n = len(drawn.means[0])
    least = np.array([q.least / n if q.total and n else q.least for q in quantities])
    found = [_bounds(*replicates, draw, least=least) for replicates in drawn.replicates]
    rows = []
    for place, quantity in enumerate(quantities):
        times = n if quantity.total else 1
        before, after = (float(side[:, place].mean()) * times if n else 0.0 for side in drawn.means)
        one = [bounds[place] for bounds in found]
        widest = max(one, key=lambda bounds: bounds.hi - bounds.lo, default=None)
        runs = _half_runs(drawn.shifts[:, place], draw)
        rows.append(_row(quantity, before, after, widest, runs, times))
    return rows


@dataclass(frozen=True)
class _Bounds:
    """The interval of a mean difference per task, and in per cent of the mean before; without the draw of simulations."""

    lo: float
    hi: float
    pct_lo: float | None
    pct_hi: float | None
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


def _half_runs(shifts: FloatArray, draw: Draw) -> float:
    """Return the half width that the replications alone would give; infinite for one."""
    n = len(shifts)
    if n < FEWEST_SEEDS or not np.isfinite(shifts).all():
        return float("inf")
    return t_factor(n, draw.confidence) * float(shifts.std(ddof=1)) / float(np.sqrt(n))


def _bounds(
    diffs: FloatArray, currents: FloatArray, n: int, name: str, draw: Draw, *, least: FloatArray
) -> list[_Bounds]:
    """Return the interval of every quantity's difference, in its unit and in per cent of what is there in every replicate."""
    known = np.atleast_1d((currents > least).all(axis=0))
    parts = 100 * diffs / np.where(known, currents, 1.0)
    k = diffs.shape[1]
    low, high = percentile_interval(np.column_stack([diffs, parts]), draw.confidence, n_tasks=n)
    return [
        _Bounds(
            lo=float(low[q]),
            hi=float(high[q]),
            pct_lo=float(low[k + q]) if known[q] else None,
            pct_hi=float(high[k + q]) if known[q] else None,
            name=name,
        )
        for q in range(k)
    ]


def p_value(pair: Pair, quantity: str, draw: Draw) -> float | None:
    """Return the least alpha at which the interval of a difference does not hold 0, two-sided; null without interval.

    Not below what the number of bootstrap replicates can tell.

    Args:
        pair: The tasks under both settings.
        quantity: Name of the quantity.
        draw: How intervals are made; its alpha does not matter.
    """
    drawn = _Drawn.of(pair, draw, spans=True)

    def ends(alpha: float) -> tuple[float | None, float | None]:
        table = _table(pair, drawn, replace(draw, alpha=alpha))
        low, high = table.filter(pl.col("quantity") == quantity).select("diff_lo", "diff_hi").row(0)
        return low, high

    def apart(alpha: float) -> bool:
        low, high = ends(alpha)
        return low is not None and high is not None and (low > 0 or high < 0)

    if ends(draw.alpha)[0] is None:
        return None
    low, high = 2 / draw.n_boot, 1.0
    if apart(low):
        return low
    for _ in range(HALVINGS):
        middle = float(np.sqrt(low * high))
        low, high = (low, middle) if apart(middle) else (middle, high)
    return high


def _added(value: float, end: float, half: float) -> float:
    """Return how far an end of an interval moves from the value when an independent error is added."""
    return float(np.hypot(end - value, half))


def _row(
    quantity: Quantity, before: float, after: float, found: _Bounds | None, runs: float, times: int
) -> tuple[object, ...]:
    """Return a row; bounds are per task and are multiplied for totals."""
    diff = after - before
    about = (quantity.name, quantity.label, quantity.unit, before, after, diff)
    pct = percent_of(diff, before, least=quantity.least)
    if found is None:
        return *about, None, None, pct, *[None] * 5
    half = runs * times
    low = diff - _added(diff, found.lo * times, half)
    high = diff + _added(diff, found.hi * times, half)
    parts: list[float | None] = [None, None]
    if pct is not None and found.pct_lo is not None and found.pct_hi is not None:
        part = 100 * half / before
        parts = [pct - _added(pct, found.pct_lo, part), pct + _added(pct, found.pct_hi, part)]
    return *about, low, high, pct, *parts, (found.hi - found.lo) * times / 2, half, found.name


def _of_system(pair: Pair, draw: Draw) -> tuple[object, ...]:
    """Compare what only the system as a whole has: the interval holds the draw of simulations alone."""
    quantity = QUANTITIES[-1]
    before, after = (side.get(quantity.name) for side in (pair.system_before, pair.system_after))
    if before is None or after is None or not np.isfinite([*before, *after]).all():
        empty: tuple[object, ...] = (None,) * 11
        return quantity.name, quantity.label, quantity.unit, *empty
    runs = _half_runs(after - before, draw)
    middle = float((after - before).mean())
    found = _Bounds(middle, middle, None, None, "runs") if np.isfinite(runs) else None
    return _row(quantity, float(before.mean()), float(after.mean()), found, runs, 1)
