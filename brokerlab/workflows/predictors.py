"""Predict how long jobs of a log wait, and score what was predicted."""

from __future__ import annotations

import heapq
import math
from bisect import bisect_left, insort
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cache
from typing import Any, Protocol

import dataframely as dy
import narwhals.stable.v2 as nw
import numpy as np
import polars as pl

from brokerlab.archive.contracts._columns import f64, i64, text
from brokerlab.errors import ConfigError, DataError, InsufficientDataError
from brokerlab.frames import prepared
from brokerlab.lazy import Later
from brokerlab.units import HOUR_S
from brokerlab.workflows import batch

special = Later("scipy.special")

_NEAR = 1e-9  # probabilities closer than this are compared exactly


def check_probabilities(quantile: float, confidence: float) -> None:
    """Refuse what is no probability, all at once."""
    given = {"quantile": quantile, "confidence": confidence}
    problems = [f"{n}: {p}, allowed: above 0, below 1" for n, p in given.items() if not 0 < p < 1]
    if problems:
        raise ConfigError("; ".join(problems))


@cache
def place_of_bound(m: int, quantile: float, confidence: float) -> int | None:
    """Find which of m sorted values is an upper bound of a quantile.

    The smallest k with P(Binomial(m, quantile) <= k - 1) >= confidence.
    """
    check_probabilities(quantile, confidence)
    reached = special.bdtr(np.arange(m), m, quantile)
    k = 1 + int(np.searchsorted(reached, confidence - _NEAR))
    while k <= m and not _covers(k, m, quantile, confidence):
        k += 1
    return k if k <= m else None


def _covers(k: int, m: int, quantile: float, confidence: float) -> bool:
    """Tell whether P(Binomial(m, quantile) <= k - 1) >= confidence; of equal ones, too, for decimals as written."""
    about = float(special.bdtr(k - 1, m, quantile))
    if abs(about - confidence) > _NEAR:
        return about > confidence
    part = Fraction(str(quantile))
    up, down, whole = part.numerator, part.denominator - part.numerator, part.denominator
    ways = sum(math.comb(m, x) * up**x * down ** (m - x) for x in range(k))
    return Fraction(ways, whole**m) >= Fraction(str(confidence))


@cache
def fewest(quantile: float, confidence: float) -> int:
    """Return the smallest number of values that bound a quantile at all."""
    check_probabilities(quantile, confidence)
    m = max(1, math.floor(math.log1p(-confidence) / math.log(quantile)))
    while place_of_bound(m, quantile, confidence) is None:
        m += 1
    return m


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
        return _known_wait(self.estimate(hosts, requested_s), self._fewest)

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
        waits = np.sort(known[near, 2])  # np.median takes ten times as long for so few
        median = (waits[(near.size - 1) // 2] + waits[near.size // 2]) / 2
        return Estimate(float(median), near.size, "nearest in size")

    def __call__(self, hosts: int, requested_s: float) -> float:
        """Tell the wait of a request [s]."""
        return _known_wait(self.estimate(hosts, requested_s), 1)


def _check(hosts: int, requested_s: float, wait_s: float = 0.0) -> None:
    """Refuse what no job can have."""
    if not (hosts >= 1 and 0 <= requested_s < math.inf and 0 <= wait_s < math.inf):
        raise DataError(
            f"hosts {hosts}, requested_s {requested_s}, wait_s {wait_s}; allowed: 1 or more, and numbers from 0"
        )


def _known_wait(estimate: Estimate | None, needed: int) -> float:
    """Return the wait, or say that nothing is known."""
    if estimate is None:
        raise InsufficientDataError(
            f"too few waits are known: a bound needs {needed}; learn more of them first"
        )
    return estimate.wait_s


PREDICTED = {
    "method": pl.String,
    "job_id": pl.String,
    "submit_s": pl.Float64,
    "hosts": pl.Int64,
    "requested_s": pl.Float64,
    "wait_s": pl.Float64,
    "predicted_s": pl.Float64,
    "based_on": pl.Int64,
    "category": pl.String,
}
"""Columns of predictions."""


class SeenJobs(dy.Schema):
    """Jobs whose waits are known, or will be."""

    job_id = text("job", required=True)
    submit_s = f64("when it was submitted", "s", required=True)
    start_s = f64("when it started", "s", null="never, or not yet")
    hosts = i64("hosts that it held", "hosts", required=True)
    requested_s = f64("its limit", "s", required=True)


_NEEDED = tuple(SeenJobs.columns())


def fit(jobs: Any, estimator: Estimator, *, at_s: float) -> None:
    """Let an estimator learn every wait that is known at an instant, in the order of starts.

    ``jobs``: ``job_id, submit_s, start_s`` [s; null: never], ``hosts, requested_s`` [s]. Of jobs that start at ``at_s`` [s] or later
    nothing is learnt, nor of those that still wait, which makes estimates short where waits grow. Other types and nulls are a
    SchemaError; missing columns, starts before submissions and values that no job can have a DataError.
    """
    known = _check_jobs(jobs).filter(pl.col("start_s") < at_s).sort("start_s", maintain_order=True)
    for submit, start, hosts, requested in known.select(_NEEDED[1:]).iter_rows():
        estimator.learn(hosts, requested, start - submit)


def predict(jobs: Any, estimators: Mapping[str, Estimator], *, since_s: float) -> pl.DataFrame:
    """Predict every job at its submission, from the waits that are known then.

    `PREDICTED`, one row per method and job that started, in the order of submission; ``predicted_s`` is null where
    the estimator knew too little.

    ``jobs`` and errors are those of `fit`; only jobs submitted from ``since_s`` [s] on are predicted, without any it is an
    InsufficientDataError.
    """
    rows = []
    started: list[tuple[float, int, tuple[int, float, float]]] = []
    ordered = _check_jobs(jobs).sort("submit_s", maintain_order=True)
    for place, (job_id, submit, start, hosts, requested) in enumerate(ordered.iter_rows()):
        while started and started[0][0] < submit:
            known = heapq.heappop(started)[2]
            for estimator in estimators.values():
                estimator.learn(*known)
        if start is None:
            continue
        wait = start - submit
        heapq.heappush(started, (start, place, (hosts, requested, wait)))
        if submit < since_s:
            continue
        for method, estimator in estimators.items():
            estimated = estimator.estimate(hosts, requested)
            columns = (
                (None, None, None)
                if estimated is None
                else (estimated.wait_s, estimated.based_on, estimated.category)
            )
            rows.append((method, job_id, submit, hosts, requested, wait, *columns))
    if not rows:
        raise InsufficientDataError(f"no job that started was submitted from {since_s} s on")
    return pl.DataFrame(rows, schema=PREDICTED, orient="row")


def carry_forward(
    jobs: Any, *, hosts: int, policy: str = "easy", since_s: float = -math.inf
) -> pl.DataFrame:
    """Simulate a log, and at each submission carry the queue forward with requested times.

    `PREDICTED` with method ``carried forward``; ``wait_s`` is the simulated wait.
    """
    sim = batch.start(jobs, hosts=hosts, policy=policy)
    expected = pl.Series(batch.run_asking(sim, since_s))
    asked = batch.results(sim).with_columns(predicted_s=expected - pl.col("submit_s"))
    columns = {"method": pl.lit("carried forward"), "based_on": None, "category": None}
    return (
        asked.filter(pl.col("submit_s") >= since_s)
        .with_columns(**columns)
        .select(pl.col(name).cast(dtype) for name, dtype in PREDICTED.items())
    )


def score(predictions: pl.DataFrame, *, by: tuple[str, ...] = ()) -> pl.DataFrame:
    """Compare predicted with seen waits.

    One row per ``method``, ``jobs`` ("all", "that waited") and group: ``n_jobs``, ``n_predicted``, ``coverage_pct``
    (waited no longer than predicted), ``tightness`` (median of (1 + predicted) / (1 + wait)), ``mae_s``,
    ``within_two_pct`` (1 + predicted at most twice and at least half of 1 + wait), ``median_wait_s``,
    ``median_predicted_s``.
    """
    predicted = pl.col("predicted_s").is_not_null()
    ratio = (1 + pl.col("predicted_s")) / (1 + pl.col("wait_s"))
    covered = (pl.col("wait_s") <= pl.col("predicted_s")).filter(predicted)
    waited = predictions.filter(pl.col("wait_s") > 0).with_columns(jobs=pl.lit("that waited"))
    both = pl.concat([predictions.with_columns(jobs=pl.lit("all")), waited])
    return (
        both.group_by("method", "jobs", *by)
        .agg(
            n_jobs=pl.len(),
            n_predicted=predicted.sum(),
            coverage_pct=covered.mean() * 100,
            tightness=ratio.median(),
            mae_s=(pl.col("predicted_s") - pl.col("wait_s")).abs().mean(),
            within_two_pct=ratio.is_between(0.5, 2).filter(predicted).mean() * 100,
            median_wait_s=pl.col("wait_s").median(),
            median_predicted_s=pl.col("predicted_s").median(),
        )
        .sort("method", "jobs", *by)
    )


def _check_jobs(jobs: Any) -> pl.DataFrame:
    """Return the columns that are needed, or say everything that is wrong."""
    table: pl.DataFrame = nw.from_native(jobs).lazy().collect("polars").to_native()
    absent = [name for name in _NEEDED if name not in table.columns]
    if absent:
        raise DataError(f"jobs: no column {', '.join(absent)}; needed: {', '.join(_NEEDED)}")
    table = prepared({"jobs": table}, {"jobs": SeenJobs})["jobs"]
    tests = {
        f"{name} is no number": ~pl.col(name).is_finite()
        for name in ("submit_s", "start_s", "requested_s")
    } | {
        "start_s is before submit_s": pl.col("start_s") < pl.col("submit_s"),
        "hosts is below 1": pl.col("hosts") < 1,
        "requested_s is negative": pl.col("requested_s") < 0,
    }
    problems = []
    for what, test in tests.items():
        bad = table.filter(test)["job_id"]
        if len(bad):
            problems.append(f"{what} in {len(bad)} rows ({', '.join(map(str, bad.head(3)))})")
    if problems:
        raise DataError(f"jobs: {'; '.join(problems)}; mend or leave out those rows")
    return table
