"""Compiled steps of the cheapest allocation: the distribution as atoms, attempts planned."""

from __future__ import annotations

import math

import numpy as np

from brokerlab.compiled import compiled
from brokerlab.numerics import FloatArray, IntArray

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
    """Find the cheapest first allocation of every job; a factor of 0: any larger allocation may follow. See `cheapest.cheapest`."""
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
