"""Compiled steps of the cheapest allocation: the distribution as atoms, ladders walked, attempts planned."""

from __future__ import annotations

import math

import numpy as np

from brokerlab.compiled import compiled
from brokerlab.numerics import FloatArray, IntArray

FREE, FACTOR, LARGEST, RUNGS = range(4)
IDLE, EXTRA, FAILED, WAIT, GIVING_UP = range(5)
"""Columns of a job's prices: idle and lost - idle per unit, then per failure, per retry, per job given up."""
FIRST, SECOND, COST, ATTEMPTS, EXCEED, GIVEN_UP = range(6)
"""Columns of the answer."""
NEGLIGIBLE = 1e-12  # mass below which a level counts as certain
NO_LIMIT = 2**62  # attempts
ROUNDING = 1 + 1e-12  # an allocation this near below a need is enough for it


@compiled
def fill_atoms(
    levels: FloatArray,
    row: FloatArray,
    halvings: int,
    multiple: float,
    atoms: FloatArray,
    exceeded: FloatArray,
) -> int:
    """Write the needs that are told apart and the probability to need more; return how many there are."""
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
        for j in range(halvings + 1):
            atoms[count] = last + step * (j + 1)
            exceeded[count] = rest * 0.5 ** (j + 1)
            count += 1
        atoms[count - 1] = max(atoms[count - 1], multiple * last)
    exceeded[count - 1] = 0.0
    for i in range(count - 2, -1, -1):
        if atoms[i] == atoms[i + 1]:
            exceeded[i] = exceeded[i + 1]
    return count


@compiled
def cut(atoms: FloatArray, exceeded: FloatArray, count: int, maximum: float) -> int:
    """End the atoms at the largest allocation that exists; return how many are left."""
    if maximum >= atoms[count - 1]:
        return count
    kept = reached(atoms, 0, count, maximum)
    exceeded[kept] = exceeded[kept - 1] if kept > 0 else 1.0
    atoms[kept] = maximum
    return kept + 1


@compiled
def reached(atoms: FloatArray, low: int, count: int, allocation: float) -> int:
    """Return how many of the needs, the first ``low`` of them in any case, an allocation is enough for."""
    high = count
    near = allocation * ROUNDING
    while low < high:
        middle = (low + high) // 2
        if atoms[middle] <= near:
            low = middle + 1
        else:
            high = middle
    return low


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
    """Find the free ladder of least expected cost, from the largest candidate down.

    Args:
        allocations: (g,) candidates, ascending.
        exceeded: (g,) probability to need more.
        idle: Price per unit of an attempt that succeeds.
        extra: How much more a unit of one that fails costs.
        price: Of a failure that is followed by a retry.
        beyond: Of a failure of the largest candidate.
        steps: (g + 1,) written: candidate tried first, and after candidate k - 1 failed; -1: beyond all.

    Returns:
        The expected cost, the use not subtracted.
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
def following(
    failed: float, kind: int, factor: float, rungs: FloatArray, scale: float, largest: float
) -> float:
    """Return what a ladder gives after a failed allocation; the same if nothing larger follows."""
    if kind == RUNGS:
        for rung in rungs:
            higher = float(rung) * scale
            if higher > failed * ROUNDING:
                return higher
        return failed
    if kind == LARGEST and failed < largest:
        return largest
    return failed * factor


@compiled
def mean_need(atoms: FloatArray, exceeded: FloatArray, since: int, count: int) -> float:
    """Return the sum of the needs from a place on, each times its probability."""
    total = 0.0
    for i in range(since, count):
        before = exceeded[i - 1] if i > 0 else 1.0
        total += (before - exceeded[i]) * atoms[i]
    return total


@compiled
def walk(
    first: float,
    atoms: FloatArray,
    exceeded: FloatArray,
    count: int,
    kind: int,
    factor: float,
    rungs: FloatArray,
    scale: float,
    largest: float,
    maximum: float,
    attempts: int,
    price: FloatArray,
    bound: float,
    answer: FloatArray,
) -> None:
    """Climb a ladder from a first allocation and write what it costs, the use not subtracted.

    Stops where the cost reaches a bound: the rest of the answer is then not written.
    """
    allocation, missed, tried, place = first, 1.0, 0, 0
    answer[FIRST], answer[SECOND], answer[COST] = first, np.nan, 0.0
    answer[ATTEMPTS], answer[GIVEN_UP] = 0.0, 0.0
    while True:
        tried += 1
        place = reached(atoms, place, count, allocation)
        chance = exceeded[place - 1] if place > 0 else 1.0
        answer[ATTEMPTS] += missed
        answer[COST] += allocation * (price[IDLE] * missed + price[EXTRA] * chance)
        answer[COST] += chance * price[FAILED]
        if tried == 1:
            answer[EXCEED] = chance
        if chance <= 0.0 or answer[COST] > bound:
            return
        after = min(following(allocation, kind, factor, rungs, scale, largest), maximum)
        if after <= allocation or tried == attempts:
            answer[COST] += chance * price[GIVING_UP]
            answer[COST] += price[IDLE] * mean_need(atoms, exceeded, place, count)  # not used
            answer[GIVEN_UP] = chance
            return
        if tried == 1:
            answer[SECOND] = after
        answer[COST] += chance * price[WAIT]
        allocation, missed = after, chance


@compiled
def cheapest_first(
    atoms: FloatArray,
    exceeded: FloatArray,
    count: int,
    kind: int,
    factor: float,
    rungs: FloatArray,
    scale: float,
    largest: float,
    maximum: float,
    attempts: int,
    price: FloatArray,
    answer: FloatArray,
) -> None:
    """Try every first allocation at which the cost of a given ladder can be least.

    Between two of them no attempt serves one need more, and a larger one only costs more: they are the
    needs, whatever a ladder turns into a need, and the ladder's own rungs.
    """
    idle = price[IDLE]
    best, chosen = np.inf, atoms[0]
    own = rungs.size if kind == RUNGS else 1 if kind == LARGEST else 0
    for i in range(count + own):
        if i < count:
            first = atoms[i]
        else:
            first = min(rungs[i - count] * scale if kind == RUNGS else largest, maximum)
        if first * ROUNDING < atoms[0]:
            continue
        bound = best + idle * first
        walk(first, atoms, exceeded, count, kind, factor, rungs, scale, largest,
             maximum, attempts, price, bound, answer)  # fmt: skip
        cost = answer[COST]
        if cost < best or (cost == best and first < chosen):
            best, chosen = cost, first
        if kind == RUNGS or cost > bound:
            continue
        least = atoms[0] if kind == FACTOR else max(atoms[0], largest)
        place = count
        while first / factor * ROUNDING >= least:
            after, first = first, first / factor
            if attempts < NO_LIMIT:
                walk(first, atoms, exceeded, count, kind, factor, rungs, scale, largest,
                     maximum, attempts, price, np.inf, answer)  # fmt: skip
                cost = answer[COST]
            else:  # one attempt more than before, the others known
                place = reached(atoms, 0, place, first)
                chance = exceeded[place - 1] if place > 0 else 1.0
                cost += idle * (first - after)
                cost += chance * (price[EXTRA] * first + price[FAILED])
                if chance > 0:
                    cost += chance * (price[WAIT] + idle * after)
            if cost < best or (cost == best and first < chosen):
                best, chosen = cost, first
    walk(chosen, atoms, exceeded, count, kind, factor, rungs, scale, largest,
         maximum, attempts, price, np.inf, answer)  # fmt: skip


@compiled
def plan_free(
    atoms: FloatArray, exceeded: FloatArray, price: FloatArray, steps: IntArray, answer: FloatArray
) -> None:
    """Choose all attempts at once and write what they cost, the use not subtracted."""
    last = atoms.size - 1
    beyond = price[EXTRA] * atoms[last] + price[FAILED] + price[GIVING_UP]
    retried = price[FAILED] + price[WAIT]
    answer[COST] = plan(atoms, exceeded, price[IDLE], price[EXTRA], retried, beyond, steps)
    first = steps[0]
    second = steps[first + 1]
    answer[FIRST], answer[EXCEED] = atoms[first], exceeded[first]
    answer[SECOND] = atoms[second] if second >= 0 and exceeded[first] > 0 else np.nan
    answer[ATTEMPTS], missed = 0.0, 1.0
    while first >= 0 and missed > 0:
        answer[ATTEMPTS] += missed
        missed = exceeded[first]
        first = steps[first + 1]
    answer[GIVEN_UP] = exceeded[last]


@compiled
def largest_named(row: FloatArray) -> float:
    """Return the largest finite quantile."""
    k = row.size - 1
    while row[k] == np.inf:
        k -= 1
    return float(row[k])


@compiled
def allocate(
    levels: FloatArray,
    quantiles: FloatArray,
    halvings: int,
    multiple: float,
    kind: int,
    factor: float,
    rungs: FloatArray,
    scale: FloatArray,
    largest: FloatArray,
    maximum: FloatArray,
    attempts: int,
    prices: FloatArray,
    answers: FloatArray,
) -> None:
    """Find the cheapest first allocation of every job; see :func:`cheapest.cheapest`."""
    room = levels.size + halvings + 2
    atoms, exceeded = np.empty(room), np.empty(room)
    steps = np.empty(room + 1, dtype=np.int64)
    for n in range(quantiles.shape[0]):
        price, answer = prices[n], answers[n]
        count = fill_atoms(levels, quantiles[n], halvings, multiple, atoms, exceeded)
        top = maximum[n]
        if count == 0:
            answer[:] = np.nan
            answer[FIRST] = top
            continue
        most = largest[n] if largest[n] == largest[n] else largest_named(quantiles[n])
        count = cut(atoms, exceeded, count, top)
        if kind == FREE:
            plan_free(atoms[:count], exceeded[:count], price, steps, answer)
        else:
            cheapest_first(atoms, exceeded, count, kind, factor, rungs, scale[n], most,
                           top, attempts, price, answer)  # fmt: skip
        answer[COST] -= price[IDLE] * mean_need(atoms, exceeded, 0, count)
