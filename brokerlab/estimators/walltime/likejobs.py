"""Our predictor: what like jobs of the user took, and a bound that is held to its level."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from brokerlab.compiled import compiled
from brokerlab.errors import ConfigError
from brokerlab.estimators.walltime.predictor import HeldLevel, Job, RollingQuantile
from brokerlab.estimators.walltime.running import ROUNDING, RunningJobs
from brokerlab.numerics import FloatArray

OWN, ALL = 200, 400  # latest jobs kept of a user, and of all users together
FADING = 40.0  # later jobs of the user after which one counts 1 / e
REQUEST_WIDTH, HOSTS_WIDTH = 0.5, 1.0  # in logarithms: a job that far off counts 1 / e
OTHERS = 1.0  # like jobs of the user that all users' together count as
UNSEEN = 0.01  # like jobs that the possibility of a run up to its limit counts as
MEDIAN = 0.5
TINY = 1e-12  # levels that differ by the last bits of a product are alike

LIKE_JOBS = "like jobs"


@compiled
def like_runs(
    own: FloatArray, n_own: int, every: FloatArray, n_every: int, job: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return shares of the request that like jobs ran, ascending, and the probability up to each.

    Rows of ``own`` and ``every`` are rings of (log request, log hosts, share run), the ``n``-th job
    at row n modulo its length; ``job`` is (log request, log hosts).
    """
    m = min(n_own, own.shape[0])
    total = m + min(n_every, every.shape[0])
    shares, weights = np.empty(total + 1), np.empty(total + 1)
    for k in range(total):
        if k < m:
            row = own[(n_own - 1 - k) % own.shape[0]]
            far, scale = k / FADING, 1.0
        else:
            row = every[k - m]
            far, scale = 0.0, OTHERS / every.shape[0]
        far += abs(row[0] - job[0]) / REQUEST_WIDTH + abs(row[1] - job[1]) / HOSTS_WIDTH
        shares[k], weights[k] = row[2], scale * math.exp(-far)
    shares[total], weights[total] = 1.0, UNSEEN
    order = np.argsort(shares)
    reached = np.cumsum(weights[order])
    return shares[order], reached / reached[-1]


class _Ring:
    """The latest jobs: log request, log hosts, share of the request that was run."""

    def __init__(self, size: int) -> None:
        self.rows = np.zeros((size, 3))
        self.n = 0

    def add(self, like: FloatArray, share: float) -> None:
        row = self.rows[self.n % len(self.rows)]
        row[:2], row[2] = like, share
        self.n += 1


class LikeJobs:
    r"""Predict the median of what like jobs took, and a bound that few jobs exceed.

    The distribution of the share of the request that a job runs is that of the latest jobs of its
    user and, lightly, of all users, each weighted by

    .. math:: e^{-k / 40} \; e^{-|\ln(q / q_k)| / 0.5} \; e^{-|\ln(h / h_k)|}

    with q requested time, h hosts, and k later jobs of the same user. A job stopped at its request
    counts as one that runs up to any request.

    The bound is a quantile of this distribution. Of every finished job the probability given at its
    submission to shorter runs is its score; the quantile asked for is the one that the latest 2000
    scores say is held. Two things keep it at its level where jobs run for days and come in campaigns:
    a job that runs is known to have at least the score of the time that it has run (without it, scores
    of short jobs come first); and the level asked for moves after every job that kept or missed its
    bound, a job that runs longer than its bound being a miss from that instant. Up to 100 finished jobs
    the bound is the request.

    The widths were chosen on the first half of the KTH log. A campaign that is submitted at once, and
    is unlike what its user did before, is missed as a whole; the level is then held by the bounds of
    later jobs. So on wagap-2013 5.3 % exceed it (0.5 to 9.7 % over users), and 7 to 8 % would if the level
    moved some times faster or slower: a single day decides. More of a user's first fifty jobs exceed it
    than of later ones (KTH: 9 %).

    Args:
        levels: Shares of jobs that are to run no longer than their bound.

    Raises:
        ConfigError: A level is not between 0 and 1.

    Source: own; the scores follow Chernozhukov, Wüthrich, Zhu, PNAS 118 (2021) e2107794118,
    doi:10.1073/pnas.2107794118; the level :class:`predictor.HeldLevel`.
    """

    def __init__(self, levels: tuple[float, ...] = (0.95,)) -> None:
        wrong = [level for level in levels if not 0 < level < 1]
        if wrong:
            raise ConfigError(f"levels {wrong}: allowed is above 0 and below 1")
        self.levels = levels
        self.names = (
            f"{LIKE_JOBS}, median",
            *(f"{LIKE_JOBS}, bound {100 * level:g} %" for level in levels),
        )
        self._own: dict[int, _Ring] = {}
        self._all = _Ring(ALL)
        self._scores = RollingQuantile()
        self._held = [HeldLevel(level) for level in levels]
        self._open: dict[int, _Expected] = {}
        self._running = RunningJobs(len(levels), OWN + ALL + 1)

    def predict(self, job: Job) -> tuple[float, ...]:
        """Return the median and the bounds [s]; the request while nothing is known."""
        for held, passed in zip(self._held, self._running.newly_passed(job.submit_s), strict=True):
            held.missed(int(passed))
        own = self._own.get(job.user) or _Ring(1)
        shares, reached = like_runs(own.rows, own.n, self._all.rows, self._all.n, _like(job))
        known = self._scores.levels(self._running.scores(job.submit_s))
        bounds = np.full(len(self.levels), np.inf)
        if known is not None:
            bounds[:] = [_bound(shares, reached, known, each.asked) for each in self._held]
        self._open[job.number] = _Expected(shares, reached, bounds)
        found = [_quantile(shares, reached, MEDIAN), *np.minimum(bounds, 1.0).tolist()]
        return tuple(share * job.requested_s for share in found)

    def begin(self, job: Job, start_s: float) -> None:
        """Learn that a job runs."""
        expected = self._open[job.number]
        self._running.begin(
            *(job.number, (start_s, job.requested_s)),
            *((expected.shares, expected.reached), expected.bounds),
        )

    def see(self, job: Job, run_s: float) -> None:
        """Learn how long a job ran, and how likely it was held that it is shorter."""
        share = run_s / job.requested_s
        expected = self._open.pop(job.number)
        shorter = int(np.searchsorted(expected.shares, share))
        self._scores.add(float(expected.reached[shorter - 1]) if shorter else 0.0)
        self._own.setdefault(job.user, _Ring(OWN)).add(_like(job), share)
        self._all.add(_like(job), share)
        known = self._running.end(job.number)
        for held, bound, told in zip(self._held, expected.bounds, known, strict=True):
            if told or np.isinf(bound):
                continue  # counted when it passed its bound, or there was none
            if share > bound * ROUNDING:
                held.missed()
            else:
                held.kept()


@dataclass(frozen=True, slots=True)
class _Expected:
    """What was expected of a job: shares of its request, the probability up to each, bounds."""

    shares: FloatArray
    reached: FloatArray
    bounds: FloatArray


def _bound(
    shares: FloatArray, reached: FloatArray, known: tuple[FloatArray, FloatArray], level: float
) -> float:
    """Return the share of the request at the score that reaches a level; 1 where no score does."""
    scores, levels = known
    place = int(np.searchsorted(levels, level * (1 + 1 / scores.size) - TINY))
    if level >= 1:
        return 1.0
    return _quantile(shares, reached, float(scores[min(place, scores.size - 1)]))


def _like(job: Job) -> FloatArray:
    """Return by what jobs are alike."""
    return np.array([math.log(job.requested_s), math.log(job.hosts)])


def _quantile(shares: FloatArray, reached: FloatArray, level: float) -> float:
    """Return the least share that is reached with more than this probability."""
    place = int(np.searchsorted(reached, level, side="right"))
    return float(shares[min(place, shares.size - 1)])
