"""Waits to expect, from the waits of jobs that have already started.

An estimator learns one known wait after the other, and tells the wait of a request. Asking changes nothing.

Source: workflows.md 4.2.
"""

from __future__ import annotations

import math
from bisect import bisect_left, insort
from collections import deque
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from brokerlab.errors import ConfigError, DataError, InsufficientDataError
from brokerlab.units import HOUR_S
from brokerlab.workflows.predictors.order import check_probabilities, fewest, place_of_bound


class Estimator(Protocol):
    """What `predict` can follow through a log."""

    def learn(self, hosts: int, requested_s: float, wait_s: float) -> None:
        """Take in the wait of a job that has just started."""
        ...

    def estimate(self, hosts: int, requested_s: float) -> Estimate | None:
        """Tell the wait of a request; None while too little is known."""
        ...


@dataclass(frozen=True)
class Estimate:
    """A wait to expect."""

    wait_s: float  # the wait [s]
    based_on: int  # known waits that it was read from
    category: str  # which jobs they were of


@dataclass(frozen=True)
class Classes:
    """How jobs are put into classes of similar size."""

    # largest number of hosts of each class; wider ones are a class more
    hosts: tuple[int, ...] = (1, 4, 8, 16, 64)
    # longest request of each class [s]; longer ones are a class more
    requested_s: tuple[float, ...] = (HOUR_S / 4, HOUR_S, 4 * HOUR_S, 12 * HOUR_S, 24 * HOUR_S)

    def __post_init__(self) -> None:
        """Refuse limits that do not rise."""
        for name, limits in (("hosts", self.hosts), ("requested_s", self.requested_s)):
            if not limits or list(limits) != sorted(set(limits)):
                raise ConfigError(
                    f"{name}: {limits} must be at least one, and rise from one to the next"
                )

    def of(self, hosts: int, requested_s: float) -> tuple[str, ...]:
        """Name the categories of a job, the narrowest first."""
        wide = _between(hosts, self.hosts, "hosts")
        long = _between(requested_s / HOUR_S, [s / HOUR_S for s in self.requested_s], "h")
        return (f"{wide}, {long}", wide, "all jobs")


def _between(value: float, limits: tuple[float, ...] | list[float], unit: str) -> str:
    """Name the class of a value."""
    place = bisect_left(limits, value)
    if place == len(limits):
        return f"above {limits[-1]:g} {unit}"
    return f"up to {limits[place]:g} {unit}"


@dataclass
class _Recent:
    """The most recent waits of a category, in order and sorted."""

    most: int
    waits: deque[float] = field(default_factory=deque)
    ordered: list[float] = field(default_factory=list)
    exceeded: int = 0

    def add(self, wait: float) -> None:
        """Take in a wait; the oldest one goes."""
        self.waits.append(wait)
        insort(self.ordered, wait)
        self.keep(self.most)

    def keep(self, n: int) -> None:
        """Forget all but the last n."""
        while len(self.waits) > n:
            del self.ordered[bisect_left(self.ordered, self.waits.popleft())]


class QuantileBound:
    """An upper bound of a quantile of the wait, with a confidence, from recent jobs of similar size.

    The bound is an order statistic of the most recent known waits of the job's category; categories with too few are
    left for the next coarser one. When several new waits in a row exceed the bound the past no longer counts: the
    history is cut to as few as a bound needs. ``run_limit`` such waits cut it (None: never), which by chance alone happens with
    probability (1 - quantile) ** run_limit: quantiles far below 0.95 want a larger one. ``most`` waits are kept in a category.

    Source: workflows.md 4.2; Nurmi, Brevik, Wolski, QBETS, JSSPP 2007, doi:10.1007/978-3-540-78699-3_5. Its categories
    are found by clustering, ours are given.

    Example:
        >>> bound = QuantileBound(quantile=0.5, confidence=0.95)
        >>> for wait in (0, 10, 20, 30, 40):
        ...     bound.learn(4, 3600, wait)
        >>> bound.estimate(2, 3000)
        Estimate(wait_s=40, based_on=5, category='up to 4 hosts, up to 1 h')
    """

    def __init__(
        self,
        *,
        quantile: float = 0.95,
        confidence: float = 0.95,
        most: int = 500,
        run_limit: int | None = 3,
        classes: Classes | None = None,
    ) -> None:
        check_probabilities(quantile, confidence)
        self.quantile, self.confidence, self.run_limit = quantile, confidence, run_limit
        self._fewest = fewest(quantile, confidence)
        if most < self._fewest or (run_limit is not None and run_limit < 1):
            raise ConfigError(
                f"most: {most}, allowed: {self._fewest} or more; run_limit: {run_limit}, allowed: 1 or more"
            )
        self._most, self._classes = most, classes or Classes()
        self._recent: dict[str, _Recent] = {}

    def learn(self, hosts: int, requested_s: float, wait_s: float) -> None:
        """Take in the wait of a job that has just started."""
        _check(hosts, requested_s, wait_s)
        for category in self._classes.of(hosts, requested_s):
            recent = self._recent.setdefault(category, _Recent(self._most))
            bound = self._bound(recent)
            exceeds = bound is not None and wait_s > bound
            recent.exceeded = recent.exceeded + 1 if exceeds else 0
            recent.add(wait_s)
            if self.run_limit is not None and recent.exceeded >= self.run_limit:
                recent.keep(self._fewest)
                recent.exceeded = 0

    def estimate(self, hosts: int, requested_s: float) -> Estimate | None:
        """Tell the bound of a request; None while no category has enough known waits."""
        _check(hosts, requested_s)
        for category in self._classes.of(hosts, requested_s):
            recent = self._recent.get(category)
            bound = None if recent is None else self._bound(recent)
            if recent is not None and bound is not None:
                return Estimate(bound, len(recent.waits), category)
        return None

    def __call__(self, hosts: int, requested_s: float) -> float:
        """Tell the bound of a request [s]."""
        return _told(self.estimate(hosts, requested_s), self._fewest)

    def _bound(self, recent: _Recent) -> float | None:
        place = place_of_bound(len(recent.ordered), self.quantile, self.confidence)
        return None if place is None else recent.ordered[place - 1]


class Nearest:
    """The median wait of the jobs nearest in size among the most recent ones.

    Distance is Euclidean in (log hosts, log request); of equally near ones the later started counts.

    Source: workflows.md 4.2.
    """

    def __init__(self, *, k: int = 50, most: int = 1000) -> None:
        if not 1 <= k <= most:
            raise ConfigError(f"k: {k}, allowed: 1 to most ({most})")
        self._k, self._n = k, 0
        self._known = np.zeros((most, 3))

    def learn(self, hosts: int, requested_s: float, wait_s: float) -> None:
        """Take in the wait of a job that has just started."""
        _check(hosts, requested_s, wait_s)
        row = self._known[self._n % len(self._known)]
        row[:] = math.log(hosts), math.log(max(requested_s, 1.0)), wait_s
        self._n += 1

    def estimate(self, hosts: int, requested_s: float) -> Estimate | None:
        """Tell the wait of a request; None before the first is known."""
        _check(hosts, requested_s)
        size = min(self._n, len(self._known))
        if not size:
            return None
        known = self._known[:size]
        far = (known[:, 0] - math.log(hosts)) ** 2
        far += (known[:, 1] - math.log(max(requested_s, 1.0))) ** 2
        reach = np.partition(far, self._k - 1)[self._k - 1] if self._k < size else math.inf
        near = np.flatnonzero(far <= reach)
        age = (self._n - 1 - near) % len(self._known)
        near = near[np.lexsort((age, far[near]))[: self._k]]
        return Estimate(float(np.median(known[near, 2])), len(near), "nearest in size")

    def __call__(self, hosts: int, requested_s: float) -> float:
        """Tell the wait of a request [s]."""
        return _told(self.estimate(hosts, requested_s), 1)


def _check(hosts: int, requested_s: float, wait_s: float = 0.0) -> None:
    """Refuse what no job can have."""
    if not (hosts >= 1 and 0 <= requested_s < math.inf and 0 <= wait_s < math.inf):
        raise DataError(
            f"hosts {hosts}, requested_s {requested_s}, wait_s {wait_s}; allowed: 1 or more, and numbers from 0"
        )


def _told(estimate: Estimate | None, needed: int) -> float:
    """Return the wait, or say that nothing is known."""
    if estimate is None:
        raise InsufficientDataError(
            f"too few waits are known: a bound needs {needed}; learn more of them first"
        )
    return estimate.wait_s
