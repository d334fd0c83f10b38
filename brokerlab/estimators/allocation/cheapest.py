"""The first allocation of least expected cost, for many jobs at once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any, NamedTuple

import numpy as np

from brokerlab.errors import ConfigError, DataError
from brokerlab.estimators.allocation import kernels
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
    of the last two, see `kernels.fill_atoms`. Of equal costs the smaller allocation is taken; none is below the least need: it
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
    answers = np.empty((n, kernels.GIVEN_UP + 1))
    kernels.allocate(asked, result, retry_factor or 0.0, priced, answers)
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
