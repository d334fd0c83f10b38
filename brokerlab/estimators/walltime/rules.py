"""Simple rules of deployed systems: each needs a user's own finished jobs only."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from brokerlab.estimators.walltime.predictor import Job, Predictor, RollingQuantile
from brokerlab.numerics import percentile

REQUESTED = "requested"
LAST_TWO = "last two"
SHORTEST_S = 1.0  # prediction that a run is divided by at least


@dataclass
class _User:
    """What has been seen of a user."""

    runs: deque[float] = field(default_factory=lambda: deque(maxlen=200))
    ratios: deque[float] = field(default_factory=lambda: deque(maxlen=20))
    total_s: float = 0.0
    n: int = 0


Rule = Callable[[_User, Job], float]

# name: jobs of the user that it needs, else the request is predicted; what it then predicts
_RULES: dict[str, tuple[int, Rule]] = {
    REQUESTED: (0, lambda _, job: job.requested_s),
    "last one": (1, lambda user, _: user.runs[-1]),
    "mean of the user": (1, lambda user, _: user.total_s / user.n),
    "largest of last 10": (1, lambda user, _: max(list(user.runs)[-10:])),
    "request x p95 of last 20": (5, lambda user, job: job.requested_s * _p95(user.ratios)),
    "p95 of last 200": (5, lambda user, _: _p95(user.runs)),
}


class UserRules:
    """Predict by every simple rule at once.

    A rule that has not yet seen enough jobs of the user predicts the request.

    Source: sizing.md, section 8.
    """

    names = tuple(_RULES)

    def __init__(self) -> None:
        self._users: dict[int, _User] = defaultdict(_User)

    def predict(self, job: Job) -> tuple[float, ...]:
        """Return one run time per rule [s]."""
        user = self._users[job.user]
        return tuple(
            rule(user, job) if user.n >= least else job.requested_s
            for least, rule in _RULES.values()
        )

    def begin(self, job: Job, start_s: float) -> None:
        """Learn nothing from jobs that run."""

    def see(self, job: Job, run_s: float) -> None:
        """Learn how long a job ran."""
        user = self._users[job.user]
        user.runs.append(run_s)
        user.ratios.append(run_s / job.requested_s)
        user.total_s += run_s
        user.n += 1


class LastTwo:
    """Predict the mean of the user's last two runs, and this times rolling conformal factors.

    Args:
        levels: Shares of jobs that are to run no longer than predicted.

    Source: sizing.md, section 8; Tsafrir, Etsion, Feitelson, IEEE TPDS 18 (2007) 789,
    doi:10.1109/TPDS.2007.70606.
    """

    def __init__(self, levels: Sequence[float] = (0.9, 0.95)) -> None:
        self.levels = tuple(levels)
        self.names = (LAST_TWO, *(f"last two x conformal {100 * level:g} %" for level in levels))
        self._runs: dict[int, deque[float]] = defaultdict(lambda: deque(maxlen=2))
        self._factors = RollingQuantile()
        self._open: dict[int, float] = {}

    def predict(self, job: Job) -> tuple[float, ...]:
        """Return the mean and its multiples [s]; the request as long as too little is known."""
        runs = self._runs[job.user]
        mean = min(sum(runs) / 2, job.requested_s) if len(runs) == 2 else job.requested_s
        self._open[job.number] = mean
        factors = [self._factors.at(level) for level in self.levels]
        return (mean, *(job.requested_s if f is None else mean * f for f in factors))

    def begin(self, job: Job, start_s: float) -> None:
        """Learn nothing from jobs that run."""

    def see(self, job: Job, run_s: float) -> None:
        """Learn how long a job ran, and by which factor the mean missed it."""
        self._runs[job.user].append(run_s)
        self._factors.add(run_s / max(self._open.pop(job.number), SHORTEST_S))


def simple_rules() -> list[Predictor]:
    """Return all simple rules, nothing learnt yet."""
    return [UserRules(), LastTwo()]


def _p95(values: Sequence[float]) -> float:
    return percentile(list(values), 95)[0]
