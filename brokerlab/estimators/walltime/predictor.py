"""The one interface of every walltime predictor: predict at submission, see at the end."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from math import ceil
from typing import Protocol

import numpy as np

from brokerlab.compiled import compiled
from brokerlab.numerics import FloatArray


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

    def begin(self, job: Job, start_s: float, /) -> None:
        """Learn that a job runs, and since when [s]: how long it has run so far is known from then on."""
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

    Source: sizing.md, section 8; Vovk, Gammerman, Shafer, Algorithmic Learning in a Random
    World (2005), ISBN 0-387-00152-2, section 2.
    """

    def __init__(self, *, window: int = 2000, least: int = 100) -> None:
        self.least = least
        self._latest: deque[float] = deque(maxlen=window)
        self._sorted = np.empty(window)

    def add(self, score: float) -> None:
        """Add the latest score, and forget the one that leaves the window."""
        n, held = len(self._latest), self._sorted
        if n == self._latest.maxlen:
            gone = int(np.searchsorted(held[:n], self._latest[0]))
            held[gone : n - 1] = held[gone + 1 : n]
            n -= 1
        self._latest.append(score)
        place = int(np.searchsorted(held[:n], score))
        held[place + 1 : n + 1] = held[place:n]
        held[place] = score

    def at(self, level: float) -> float | None:
        """Return the ceil((n + 1) level)-th smallest score, at most the largest; None with too few."""
        n = len(self._latest)
        return None if n < self.least else float(self._sorted[min(ceil((n + 1) * level), n) - 1])

    def levels(self, at_least: FloatArray) -> tuple[FloatArray, FloatArray] | None:
        """Return all scores, ascending, and the level that each reaches; None with too few.

        Args:
            at_least: What the scores of jobs that have not ended are at least, ascending. Their weight goes
                to the scores above: leaving them out would tell of short jobs only.

        Source: Kaplan, Meier, JASA 53 (1958) 457, doi:10.1080/01621459.1958.10501452.
        """
        n = len(self._latest)
        if n < self.least:
            return None
        return self._sorted[:n], product_limit(self._sorted[:n], at_least)


@compiled
def product_limit(scores: FloatArray, at_least: FloatArray) -> FloatArray:
    """Return the probability up to each score, where of some only a lower bound is known; both ascending."""
    reached, above, below = np.empty(scores.size), 1.0, 0
    for k in range(scores.size):
        while below < at_least.size and at_least[below] < scores[k]:
            below += 1
        above *= 1 - 1 / (scores.size - k + at_least.size - below)
        reached[k] = 1 - above
    return reached


class HeldLevel:
    """Level to ask for, so that in the long run the stated share of jobs keeps its bound.

    After every job the share that may miss rises by rate x (1 - level), and falls by the rate if it missed.

    Args:
        level: Share of jobs that are to keep their bound.
        rate: Step; 0.005 is that of the source.

    Source: Gibbs, Candès, Adaptive conformal inference under distribution shift, NeurIPS 34 (2021),
    arXiv:2106.00208, equation 2.
    """

    def __init__(self, level: float, *, rate: float = 0.005) -> None:
        self.level, self.rate = level, rate
        self._missing = 1 - level

    @property
    def asked(self) -> float:
        """Level to ask for; 1 or more: only what no job exceeds will do."""
        return 1 - self._missing

    def kept(self) -> None:
        """Learn that a job kept its bound."""
        self._missing += self.rate * (1 - self.level)

    def missed(self, n: int = 1) -> None:
        """Learn that jobs ran longer than their bound."""
        self._missing -= n * self.rate * self.level
