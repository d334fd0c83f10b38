"""What to give jobs first, so that all their attempts together are expected to cost least, at any price of a failure."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any, NamedTuple

import numpy as np

from brokerlab.compiled import compiled
from brokerlab.errors import ConfigError, DataError
from brokerlab.estimators.estimator import Predicted
from brokerlab.estimators.records import Quantity
from brokerlab.numerics import FloatArray, IntArray
from brokerlab.units import HOUR_S, KB


@dataclass(frozen=True)
class Prices:
    r"""What one attempt at allocation a of a job that needs y costs, all in one currency.

    With w the amount per unit of the quantity (`amount_per_unit`), an attempt that succeeds costs ``idle * w * (a - y)``, one
    that fails ``lost * w * a + burnt * core-hours + failure``, and ``giving_up`` on top where no retry can follow.

    Source: sizing.md, section 3, is idle 1, lost 1 and nothing else.
    """

    idle: float = 1.0
    lost: float = 1.0  # of walltime: the core-hours until the limit
    failure: float = 0.0
    burnt: float = 0.0  # where the amount is not core-hours already: of memory
    giving_up: float = 0.0

    def __post_init__(self) -> None:
        """Refuse prices that are negative, not finite, or all 0."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        bad = [f"{name}={value}" for name, value in values.items() if not 0 <= value < float("inf")]
        if bad or not any(values.values()):
            raise ConfigError(
                f"prices {', '.join(bad) or 'all 0'}: allowed are finite numbers of at least 0, one of "
                "them above 0"
            )


def amount_per_unit(
    quantity: Quantity, *, wall_s: FloatArray | float = HOUR_S, cores: FloatArray | float = 1.0
) -> FloatArray:
    """Return the amount that one unit of an allocation holds: GB h per MB for the run, or core h per second on all cores.

    A run of less than a second counts as one.
    """
    if quantity == "memory":
        return np.maximum(np.asarray(wall_s, dtype=np.float64), 1.0) / HOUR_S / KB
    return np.asarray(cores, dtype=np.float64) / HOUR_S


class Allocations(NamedTuple):
    """What to give each job (n,); where nothing is known ``first`` is infinite, and the others are not a number."""

    first: FloatArray  # [MB or s]
    cost: FloatArray  # expected, of all attempts, in the currency of the prices
    given_up: FloatArray  # probability that every attempt fails


def cheapest(
    quantiles: Any,
    *,
    levels: Sequence[float],
    prices: Prices | None = None,
    retry_factor: float | None = None,
    amount: FloatArray | float = 1.0,
    core_hours: FloatArray | float = 0.0,
) -> Allocations:
    r"""Choose each job's first allocation so that all its attempts together are expected to cost least.

    .. math:: \min_{a_1} \sum_k w \, a_k \, (c_i P(a_{k-1} < y \le a_k) + c_l P(y > a_k))
              + c_k P(y > a_k) - w c_i E[y]

    with :math:`c_i` and :math:`c_l` the prices of idle and lost amounts, w the amount per unit and :math:`c_k` everything a
    failure costs besides. Duration and need are taken to be independent. Without a ``retry_factor`` any larger allocation may
    follow a failure; with one a job is tried once more at so many times the first, then given up.

    A job is taken to need just one of its quantiles (n, levels), not falling along a row, infinite where not known, each with
    the probability between its level and the one before. What is left above the last one falls off exponentially at the rate
    of the last two, see `fill_atoms`. Of equal costs the smaller allocation is taken; none is below the least need: it
    would only fail, which could be cheap where giving up is.

    A ``retry_factor`` that is not finite or not above 1, one with giving up for nothing, and levels that do not rise are a
    ConfigError; quantiles that are not above 0 or fall along a row, and amounts [of `amount_per_unit`] and core-hours of an
    attempt that fails, (n,) or one each, of another shape or below what is possible a DataError.

    Source: own, after the rule of Tovar et al., IEEE TPDS 29 (2018) 240, doi:10.1109/TPDS.2017.2762310, whose one retry
    gets the largest value seen.
    """
    paid = prices or Prices()
    if retry_factor is not None and not (1 < retry_factor < float("inf") and paid.giving_up):
        raise ConfigError(
            f"retry_factor={retry_factor} with giving_up={paid.giving_up}: a finite factor above 1 is allowed, and "
            "giving up must cost something, or it would be the cheapest way out"
        )
    asked, result = _check_quantiles(quantiles, levels)
    n = result.shape[0]
    amounts, hours = _per_job(n, amount=amount, core_hours=core_hours)
    priced = np.column_stack(
        [
            paid.idle * amounts,
            (paid.lost - paid.idle) * amounts,
            paid.failure + paid.burnt * hours,
            np.full(n, paid.giving_up),
        ]
    )
    answers = np.empty((n, GIVEN_UP + 1))
    allocate(asked, result, retry_factor or 0.0, priced, answers)
    return Allocations(*(np.ascontiguousarray(column) for column in answers.T))


def _per_job(n: int, **given: FloatArray | float) -> list[FloatArray]:
    """Lay out what is told per job; everything wrong at once."""
    laid, problems = [], []
    for name, values in given.items():
        array = np.asarray(values, dtype=np.float64)
        zero = name == "core_hours"
        if array.shape not in ((), (n,)):
            problems.append(f"{name} of shape {array.shape}: one number or ({n},) is needed")
        elif not (np.isfinite(array) & ((array >= 0) if zero else (array > 0))).all():
            problems.append(
                f"{name}: finite numbers {'of at least' if zero else 'above'} 0 are needed"
            )
        else:
            laid.append(np.broadcast_to(array, (n,)).astype(np.float64))
    if problems:
        raise DataError("cheapest allocation: " + "; ".join(problems))
    return laid


def _check_quantiles(quantiles: Any, levels: Sequence[float]) -> tuple[FloatArray, FloatArray]:
    """Return levels and quantiles as arrays."""
    asked = np.asarray(levels, dtype=np.float64)
    if asked.ndim != 1 or not asked.size or not (np.diff(np.r_[0.0, asked]) > 0).all() or asked[-1] > 1:  # fmt: skip
        raise ConfigError(f"levels {list(levels)[:5]}: rising numbers above 0 up to 1 are needed")
    result = np.ascontiguousarray(quantiles, dtype=np.float64)
    if result.ndim != 2 or result.shape[1] != asked.size:
        raise DataError(
            f"quantiles of shape {result.shape}: (jobs, {asked.size}) is needed, one column per level"
        )
    wrong = {
        "above 0 is allowed": ~(result > 0).all(axis=1),
        "a row must not fall": (result[:, 1:] < result[:, :-1]).any(axis=1),
    }
    problems = [
        _told(message, np.flatnonzero(rows)) for message, rows in wrong.items() if rows.any()
    ]
    if problems:
        raise DataError("quantiles: " + "; ".join(problems))
    return asked, result


def _told(message: str, rows: IntArray) -> str:
    return f"{message}, {rows.size} rows are wrong, such as {', '.join(map(str, rows[:5]))}"


PRICES = (0.2, 0.5, 1.0, 2.0, 3.0, 5.0, 10.0, 20.0, 50.0, 100.0, 200.0, 500.0)
"""Of a failed attempt, all in all, in uses of the job."""
PRICE = 2.0
"""The one of them where one has to be named: what the attempt held, about one use of the job, and as much for the delay."""


def level_of(price: float) -> float:
    """Return the level that stands for a price: of the bound that costs least where no retry follows."""
    return price / (1 + price)


def allocate_at_prices(predicted: Predicted, *, prices: Sequence[float] = PRICES) -> Predicted:
    """Give each job the first allocation of least expected cost, for each price of a failed attempt in uses of the job.

    The levels of what is returned stand for the prices, `level_of`: they promise no coverage. Costs count in uses of the job as
    it was guessed, so that small and large jobs weigh alike: what is held and not used by the attempt that succeeds, and the
    price of every one that fails. Durations are not known when a job is decided, so that every attempt is taken to last as long.
    """
    known = np.isfinite(predicted.point) & np.isfinite(predicted.bounds[:, 0])
    bounds = np.full((known.size, len(prices)), np.inf)
    for place, price in enumerate(prices) if known.any() else ():
        bounds[known, place] = cheapest(
            predicted.bounds[known],
            levels=predicted.levels,
            prices=Prices(lost=0.0, failure=price),
            amount=1 / predicted.point[known],
        ).first
    # dearer failures never ask for less; equal costs may be told apart by the last bits
    bounds = np.maximum.accumulate(bounds, axis=1)
    levels = tuple(level_of(price) for price in prices)
    return Predicted(predicted.pandaid, predicted.seen, levels, bounds, predicted.point)


def repeat_at_price(allocations: Predicted, price: float, levels: Sequence[float]) -> Predicted:
    """Return the allocations at one price as a rule that says the same at every level."""
    first: FloatArray = allocations.at(level_of(price))
    bounds = np.repeat(first[:, None], len(levels), axis=1)
    return Predicted(allocations.pandaid, allocations.seen, tuple(levels), bounds, first)


IDLE, EXTRA, FAILED, GIVING_UP = range(4)
"""Columns of a job's prices: idle and lost - idle per unit, then per failure, per job given up."""
FIRST, COST, GIVEN_UP = range(3)  # columns of the answer
HALVINGS, MULTIPLE = 6, 2.0
"""Beyond the last quantile half of what is left lies in each of so many steps; the rest at this multiple of it, or one step further if that is larger."""
NEGLIGIBLE = 1e-12  # mass below which a level counts as certain
ROUNDING = 1 + 1e-12  # an allocation this near below a need is enough for it


@compiled
def fill_atoms(levels: FloatArray, row: FloatArray, atoms: FloatArray, exceeded: FloatArray) -> int:
    """Write the needs that are told apart and the probability to need more; return how many there are.

    Above the last finite quantile they fall off exponentially at the rate of the last two; with these equal there is no rate,
    and all but the rest lies at them.
    """
    k = 0
    while k < row.size and row[k] < np.inf:
        atoms[k] = row[k]
        exceeded[k] = 1.0 - levels[k]
        k += 1
    if k == 0:
        return 0
    rest, last = exceeded[k - 1], atoms[k - 1]
    count = k
    if rest > NEGLIGIBLE:
        step = 0.0
        if k > 1 and atoms[k - 1] > atoms[k - 2]:
            step = (last - atoms[k - 2]) * math.log(2.0) / math.log(exceeded[k - 2] / rest)
        for j in range(HALVINGS + 1):
            atoms[count] = last + step * (j + 1)
            exceeded[count] = rest * 0.5 ** (j + 1)
            count += 1
        atoms[count - 1] = max(atoms[count - 1], MULTIPLE * last)
    exceeded[count - 1] = 0.0
    for i in range(count - 2, -1, -1):
        if atoms[i] == atoms[i + 1]:
            exceeded[i] = exceeded[i + 1]
    return count


@compiled
def plan(
    allocations: FloatArray,
    exceeded: FloatArray,
    idle: float,
    extra: float,
    price: float,
    beyond: float,
    steps: IntArray,
) -> float:
    """Find the attempts of least expected cost, the use not subtracted, from the largest candidate down.

    ``exceeded`` is the probability to need more than each candidate (ascending), ``extra`` how much more a unit of an attempt
    that fails costs, ``price`` that of a failure with a retry, ``beyond`` that of the largest candidate. ``steps`` (g + 1,) get the
    candidate tried first, and after candidate k - 1 failed; -1: beyond all.
    """
    last = allocations.size - 1
    costs = np.empty(last + 1)
    costs[last] = beyond * exceeded[last]
    steps[last + 1] = -1
    best = 0.0
    least = min(idle, idle + extra)
    for g in range(last - 1, -2, -1):
        missed = 1.0 if g < 0 else exceeded[g]
        best = np.inf
        for h in range(g + 1, last + 1):
            if least * allocations[h] * missed > best:
                break
            cost = idle * (allocations[h] * missed) + costs[h]
            if cost < best:
                best = cost
                steps[g + 1] = h
        if g >= 0:
            costs[g] = best + (price + extra * allocations[g]) * missed
    return best


@compiled
def mean_need(atoms: FloatArray, exceeded: FloatArray, since: int) -> float:
    """Return the sum of the needs from a place on, each times its probability."""
    total = 0.0
    for i in range(since, atoms.size):
        before = exceeded[i - 1] if i > 0 else 1.0
        total += (before - exceeded[i]) * atoms[i]
    return total


@compiled
def try_twice(
    atoms: FloatArray, exceeded: FloatArray, factor: float, price: FloatArray, answer: FloatArray
) -> None:
    """Choose the first of two attempts, the second ``factor`` times as large, among the needs and what the second makes one.

    Between two of these no attempt serves one need more, and a larger one only costs more.
    """
    answer[COST] = np.inf
    for i in range(2 * atoms.size):
        first = atoms[i] if i < atoms.size else atoms[i - atoms.size] / factor
        served = np.searchsorted(atoms, first * ROUNDING, side="right")
        if not served:
            continue
        missed, lost = exceeded[served - 1], 0.0
        cost = first * (price[IDLE] + price[EXTRA] * missed) + missed * price[FAILED]
        if missed > 0:
            second = first * factor
            served = np.searchsorted(atoms, second * ROUNDING, side="right")
            lost = exceeded[served - 1]
            cost += second * (price[IDLE] * missed + price[EXTRA] * lost)
            cost += lost * (price[FAILED] + price[GIVING_UP])
            if lost > 0:
                cost += price[IDLE] * mean_need(atoms, exceeded, served)  # not used
        if cost < answer[COST] or (cost == answer[COST] and first < answer[FIRST]):
            answer[FIRST], answer[COST], answer[GIVEN_UP] = first, cost, lost


@compiled
def allocate(
    levels: FloatArray,
    quantiles: FloatArray,
    factor: float,
    prices: FloatArray,
    answers: FloatArray,
) -> None:
    """Find the cheapest first allocation of every job; a factor of 0: any larger allocation may follow. See `cheapest`."""
    room = levels.size + HALVINGS + 1
    atoms, exceeded = np.empty(room), np.empty(room)
    steps = np.empty(room + 1, dtype=np.int64)
    for n in range(quantiles.shape[0]):
        price, answer = prices[n], answers[n]
        count = fill_atoms(levels, quantiles[n], atoms, exceeded)
        if count == 0:
            answer[:] = np.nan
            answer[FIRST] = np.inf
            continue
        needs, more = atoms[:count], exceeded[:count]
        if factor > 0:
            try_twice(needs, more, factor, price, answer)
        else:
            beyond = price[EXTRA] * needs[-1] + price[FAILED] + price[GIVING_UP]
            answer[COST] = plan(
                needs, more, price[IDLE], price[EXTRA], price[FAILED], beyond, steps
            )
            answer[FIRST], answer[GIVEN_UP] = needs[steps[0]], 0.0
        answer[COST] -= price[IDLE] * mean_need(needs, more, 0)
