"""The one interface of every walltime predictor: predict at submission, see at the end."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import deque
from dataclasses import dataclass
from math import ceil
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Job:
    """What is known of a job when it is submitted.

    Attributes:
        number: Tells it from all others.
        user: Who submits it.
        submit_s: When [s].
        requested_s: Limit that the user asks for [s], > 0.
        hosts: Hosts asked for, > 0.
    """

    number: int
    user: int
    submit_s: float
    requested_s: float
    hosts: int


class Predictor(Protocol):
    """Predicts the run times of jobs, in the order in which they are submitted."""

    @property
    def names(self) -> tuple[str, ...]:
        """Name each prediction that ``predict`` returns."""
        ...

    def predict(self, job: Job, /) -> tuple[float, ...]:
        """Return run times [s]; more than the request counts as the request."""
        ...

    def see(self, job: Job, run_s: float, /) -> None:
        """Learn how long a job ran [s], once it has finished; never more than its request.

        A run as long as the request was stopped there: how long it would have been is not known.
        """
        ...


class RollingQuantile:
    """Conformal quantile of the latest scores.

    Args:
        window: Scores that are kept.
        least: Scores below which there is no quantile.

    Source: sizing-benchmark.md, section 8; Vovk, Gammerman, Shafer, Algorithmic Learning in a Random
    World (2005), ISBN 0-387-00152-2, section 2.
    """

    def __init__(self, *, window: int = 2000, least: int = 100) -> None:
        self.least = least
        self._latest: deque[float] = deque(maxlen=window)
        self._sorted: list[float] = []

    def add(self, score: float) -> None:
        """Add the latest score, and forget the one that leaves the window."""
        if len(self._latest) == self._latest.maxlen:
            del self._sorted[bisect_left(self._sorted, self._latest[0])]
        self._latest.append(score)
        insort(self._sorted, score)

    def at(self, level: float) -> float | None:
        """Return the ceil((n + 1) level)-th smallest score, at most the largest; None with too few."""
        n = len(self._sorted)
        return None if n < self.least else self._sorted[min(ceil((n + 1) * level), n) - 1]
