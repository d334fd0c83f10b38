"""Our sizer: the cheapest ladder of attempts under what the next run may need."""

from __future__ import annotations

from collections.abc import Sequence

from brokerlab.errors import ConfigError
from brokerlab.estimators.sizing.mixture import VIEWS, Mixture, View
from brokerlab.estimators.sizing.policy import Distribution, Ladder, cheapest_ladder
from brokerlab.estimators.sizing.sizer import History, Run

GBH_B_S = 1e9 * 3600
PRICE = 1.0


class CheapestAttempts:
    """Give first and later attempts so that expected waste and failures cost least.

    Args:
        price: Of a failed attempt besides its waste, in usages of a usual run of the trace: the delay
            and the scheduling of one more attempt cost the same whatever the run. 0 leaves failures
            to their waste alone.
        views: Of the predictive distribution, see :class:`mixture.Mixture`.

    Source: own; :mod:`mixture`, :func:`policy.cheapest_ladder`.
    """

    def __init__(self, *, price: float = PRICE, views: tuple[View, ...] = VIEWS) -> None:
        if not price >= 0:
            raise ConfigError(f"price of a failure {price}: allowed is 0 or more usual usages")
        self.price = price
        self.mixture = Mixture(views)

    def start(self, history: History) -> None:
        """Learn the history."""
        self.mixture.start(history)
        self.price_b_s = self.price * history.usual_gbh * GBH_B_S
        self.seconds = float(history.runtime_s.sum())
        self.runs = history.runtime_s.size

    def predict(self, run: Run) -> Distribution:
        """Return the distribution of a run's memory."""
        return self.mixture.predict(run)

    def allocate(self, run: Run) -> float:
        """Return the first rung [bytes]."""
        usual_s = self.seconds / self.runs
        self.ladder: Ladder = cheapest_ladder(
            self.predict(run), price_b=self.price_b_s / max(usual_s, 1e-9)
        )
        return self.ladder.first_b

    def retry(self, _run: Run, failed_b: Sequence[float]) -> float:
        """Return the next rung of the ladder of the last ``allocate`` [bytes]."""
        return self.ladder.after(failed_b[-1])

    def reveal(self, run: Run, memory_b: float, runtime_s: float) -> None:
        """See one run."""
        self.mixture.see(run, memory_b)
        self.seconds += runtime_s
        self.runs += 1
