"""The first allocation of least expected cost, for many jobs at once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from brokerlab.errors import ConfigError, DataError
from brokerlab.estimators.allocation import kernels
from brokerlab.estimators.allocation.distribution import Tail, checked_quantiles
from brokerlab.estimators.allocation.ladder import KINDS, Ladder
from brokerlab.estimators.allocation.prices import Prices
from brokerlab.numerics import FloatArray


@dataclass(frozen=True)
class Allocations:
    """What to give each job, and what that is expected to cost; arrays (n,).

    Where a row had no finite quantile, ``first`` is the maximum and everything else is not a number.

    Attributes:
        first: First allocation [MB or s].
        second: What follows if it fails; not a number where it cannot fail or nothing follows.
        cost: Expected, of all attempts, in the currency of the prices.
        attempts: Expected number of attempts.
        exceed: Probability that the first attempt fails.
        given_up: Probability that every attempt fails.
    """

    first: FloatArray
    second: FloatArray
    cost: FloatArray
    attempts: FloatArray
    exceed: FloatArray
    given_up: FloatArray


def cheapest(
    quantiles: Any,
    *,
    levels: Sequence[float],
    ladder: Ladder | None = None,
    prices: Prices | None = None,
    tail: Tail | None = None,
    amount: FloatArray | float = 1.0,
    cores: FloatArray | float = 1.0,
    core_hours: FloatArray | float = 0.0,
    wait_s: FloatArray | float = 0.0,
    largest: FloatArray | None = None,
) -> Allocations:
    r"""Choose each job's first allocation so that all its attempts together are expected to cost least.

    .. math:: \min_{a_1} \sum_k w \, a_k \, (c_i P(a_{k-1} < y \le a_k) + c_l P(y > a_k))
              + c_k P(y > a_k) - w c_i E[y]

    with a_2, a_3, ... from the ladder, :math:`c_i` and :math:`c_l` the prices of idle and lost amounts, w the
    amount per unit and :math:`c_k` everything a failure costs besides. Duration and need are taken to be
    independent.

    A job is taken to need just one of its quantiles, each with the probability that lies between its level
    and the one before: nothing is gained between two of them. The costs of allocations at quantiles are right
    whatever lies in between, but for what the use takes off all of them alike.

    Args:
        quantiles: (n, g) of what each job needs [MB or s], not falling along a row; infinite: not known.
        levels: (g,) rising, above 0; a last level of 1 says that nothing lies beyond.
        ladder: Of retries; None: any.
        prices: None: idle and lost amounts count 1, nothing else counts.
        tail: Where the needs above the last finite quantile lie.
        amount: (n,) or one: w, of :func:`amount_per_unit`; above 0.
        cores: (n,) or one, for ladders per core.
        core_hours: (n,) or one: of an attempt that fails, for ``prices.burnt``.
        wait_s: (n,) or one: expected wait of a retry in the queue [s], for ``prices.waiting_s``.
        largest: (n,) largest value seen, for that ladder; None, or not a number: the last finite quantile.

    Returns:
        One entry per row. Equal costs: the smaller allocation. None is below the least need: it would only fail,
        which could be cheap where giving up is.

    Raises:
        ConfigError: Impossible levels; a limit on attempts with giving up for nothing.
        DataError: Impossible quantiles, amounts, cores, core-hours or waits.

    Source: own; with one retry at the largest value seen it is the rule of Tovar et al., IEEE TPDS 29 (2018)
    240, doi:10.1109/TPDS.2017.2762310.

    Example:
        >>> found = cheapest([[1000.0, 5000.0]], levels=[0.9, 1.0])
        >>> float(found.first[0]), float(found.second[0]), round(float(found.exceed[0]), 3)
        (1000.0, 5000.0, 0.1)
        >>> float(cheapest([[1000.0, 5000.0]], levels=[0.9, 1.0], prices=Prices(failure=4e4)).first[0])
        5000.0
    """
    climbed, paid, beyond = ladder or Ladder(), prices or Prices(), tail or Tail()
    if climbed.attempts is not None and not paid.giving_up:
        raise ConfigError(
            f"attempts={climbed.attempts} with giving_up=0: giving up would be the cheapest way out; "
            "give it a price"
        )
    asked, found = checked_quantiles(quantiles, levels)
    per_job = _per_job(
        found.shape[0], amount=amount, cores=cores, core_hours=core_hours, wait_s=wait_s
    )
    scale = per_job["cores"] if climbed.per_core else np.ones(found.shape[0])
    answers = np.empty((found.shape[0], kernels.GIVEN_UP + 1))
    kernels.allocate(
        asked,
        found,
        beyond.halvings,
        beyond.multiple,
        KINDS.index(climbed.kind),
        climbed.factor,
        np.array(climbed.rungs, dtype=np.float64),
        scale,
        _largest(largest, found.shape[0]),
        climbed.maximum * scale,
        climbed.attempts or kernels.NO_LIMIT,
        _priced(paid, per_job),
        answers,
    )
    return Allocations(*(np.ascontiguousarray(column) for column in answers.T))


def _per_job(n: int, **given: FloatArray | float) -> dict[str, FloatArray]:
    """Lay out what is told per job; everything wrong at once."""
    laid, problems = {}, []
    for name, values in given.items():
        array = np.asarray(values, dtype=np.float64)
        if array.shape not in ((), (n,)):
            problems.append(f"{name} of shape {array.shape}: one number or ({n},) is needed")
            continue
        zero = name in ("core_hours", "wait_s")
        if not (np.isfinite(array) & ((array >= 0) if zero else (array > 0))).all():
            problems.append(
                f"{name}: finite numbers {'of at least' if zero else 'above'} 0 are needed"
            )
        laid[name] = np.broadcast_to(array, (n,)).astype(np.float64)
    if problems:
        raise DataError("cheapest allocation: " + "; ".join(problems))
    return laid


def _largest(given: FloatArray | None, n: int) -> FloatArray:
    """Return the largest values seen; not a number: not told."""
    if given is None:
        return np.full(n, np.nan)
    told = np.asarray(given, dtype=np.float64)
    if told.shape != (n,) or (told <= 0).any():
        raise DataError(f"largest of shape {told.shape}: ({n},) values above 0 are needed")
    return told


def _priced(prices: Prices, per_job: dict[str, FloatArray]) -> FloatArray:
    """Return the columns of prices that the kernel reads, (n, 5)."""
    amount = per_job["amount"]
    return np.column_stack(
        [
            prices.idle * amount,
            (prices.lost - prices.idle) * amount,
            prices.failure + prices.burnt * per_job["core_hours"],
            prices.waiting_s * per_job["wait_s"],
            np.full(amount.size, prices.giving_up),
        ]
    )
