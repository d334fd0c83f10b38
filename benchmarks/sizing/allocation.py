"""Our sizer: the cheapest ladder of attempts under what the next run may need."""

from __future__ import annotations

from collections.abc import Sequence

from benchmarks.sizing.policy import Ladder, cheapest_ladder
from benchmarks.sizing.sizer import History, Run
from brokerlab.errors import ConfigError
from brokerlab.estimators.mixture import VIEWS, Distribution, Mixture, View

GBH_B_S = 1e9 * 3600
PRICE = 1.0
POOLED = 50.0
"""Runs of the type that the usual usage of the trace counts as, in the price of a failure."""


class CheapestAttempts:
    """Give first and later attempts so that expected waste and failures cost least.

    Args:
        price: Of a failed attempt besides its waste, in usages of a usual run of the task type, drawn towards
            those of the trace: the runs seen of the type count as one each, the trace as 50 runs. 0 leaves
            failures to their waste alone.
        views: Of the predictive distribution, see :class:`mixture.Mixture`.

    Source: own; :mod:`mixture`, :func:`policy.cheapest_ladder`.
    """

    def __init__(self, *, price: float = PRICE, views: tuple[View, ...] = VIEWS) -> None:
        if not price >= 0:
            raise ConfigError(f"price of a failure {price}: allowed is 0 or more usual usages")
        self.price = price
        self.views = views

    def start(self, history: History) -> None:
        """Learn the history."""
        self.mixture = learnt(history, self.views)
        self.usual_b_s = history.usual_gbh * GBH_B_S
        self.used_b_s = float(history.memory_b @ history.runtime_s)
        self.seconds = float(history.runtime_s.sum())
        self.runs = history.runtime_s.size

    def predict(self, run: Run) -> Distribution:
        """Return the distribution of a run's memory."""
        return self.mixture.predict(run)

    def allocate(self, run: Run) -> float:
        """Return the first rung [bytes]."""
        usual_s = self.seconds / self.runs
        pooled_b_s = (self.used_b_s + POOLED * self.usual_b_s) / (self.runs + POOLED)
        price_b = self.price * pooled_b_s / max(usual_s, 1e-9)
        self.ladder: Ladder = cheapest_ladder(self.predict(run), price_b=price_b)
        return self.ladder.first_b

    def retry(self, _run: Run, failed_b: Sequence[float]) -> float:
        """Return the next rung of the ladder of the last ``allocate`` [bytes]."""
        return self.ladder.after(failed_b[-1])

    def reveal(self, run: Run, memory_b: float, runtime_s: float) -> None:
        """See one run."""
        self.mixture.see(run, memory_b)
        self.used_b_s += memory_b * runtime_s
        self.seconds += runtime_s
        self.runs += 1


def learnt(history: History, views: tuple[View, ...] = VIEWS) -> Mixture:
    """Return a mixture that has seen a history in its order; views are scored from its third on, at least five runs."""
    mixture = Mixture(views)
    scored_from = max(5, history.memory_b.size // 3)
    for k in range(history.memory_b.size):
        run = Run(float(history.input_b[k]), float(history.request_b[k]), history.tags[k])
        mixture.see(run, float(history.memory_b[k]), scored=k >= scored_from)
    return mixture
