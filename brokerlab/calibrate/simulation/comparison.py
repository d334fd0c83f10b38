"""Compare the waits, use and kills of a simulation with those seen, and hold them to limits.

How far waits are apart has an interval over tasks. The values of both sides are sorted once; every bootstrap repeat is then
one sum over the steps between them, some ten times faster than sorting again (``scipy.stats.wasserstein_distance`` with
weights, which the tests hold it to).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any, Self

import numpy as np
import polars as pl

from brokerlab.compiled import compiled
from brokerlab.errors import ConfigError, nearest
from brokerlab.numerics import FloatArray, IntArray, SortedGroups
from brokerlab.units import HOUR_S

RANKS = (25.0, 50.0, 75.0, 90.0, 95.0)
_WINDOWS = 24
"""Parts of the period whose mean waits are correlated where jobs have no pair."""
_LEAST_WINDOWS = 5
LIMITS = {
    "placement": "placement",
    "waiting": "wasserstein_h",
    "shape": "ks",
    "timing": "correlation",
    "unexplained": "delay_h",
    "utilisation": "utilisation",
    "kills": "kills",
}
"""What is beyond its limit in ``fails``, and the limit it is held to."""
_OF_BOTH = (
    *("mean_simulated_h", "wasserstein_h", "wasserstein_h_lo", "wasserstein_h_hi"),
    *("ks", "correlation", "kills_simulated"),
)
"""What needs jobs on both sides."""
RUNS = ("wasserstein_h", "ks", "kills", "n", "unlike")
"""What runs are compared in: waits (distances, and 1 - correlation), killed part, numbers of jobs (part of those seen)."""


@dataclass(frozen=True)
class Limits:
    """What a simulation may be off to be believed.

    Attributes:
        wasserstein_h: Distance of the waiting times at a queue [h] ...
        relative: ... or this part of the mean wait seen there, whichever is more.
        ks: Kolmogorov-Smirnov distance of the waiting times at a queue; asked where a mean wait, seen or simulated, is above
            ``wasserstein_h``: two minutes instead of one are another shape, and no other wait.
        delay_h: Mean start-up delay of a queue [h]. Delays are fitted: where they are long, they and not the slots make the
            waits, whose distribution then agrees whatever the simulation does, and says nothing about another load.
        correlation: Spearman's, of the waits of the same jobs on both sides, at least; asked where the mean wait seen is
            above ``wasserstein_h``. It tells whether the jobs wait when they waited, which a distribution does not.
        utilisation: Difference of the used part of a queue's slots in the period.
        kills: Difference of the killed part of a queue's jobs.
        placement: Difference of the numbers of jobs at a queue, as a part of those seen; asked where the brokerage was
            simulated, too.
        least_jobs: Queues with fewer jobs are not judged.
        queues: Part of the jobs of judged queues that must be at queues within all limits.
    """

    wasserstein_h: float = 0.5
    relative: float = 0.25
    ks: float = 0.25
    delay_h: float = 0.25
    correlation: float = 0.3
    utilisation: float = 0.05
    kills: float = 0.01
    placement: float = 0.35
    least_jobs: int = 50
    queues: float = 0.8

    def __post_init__(self) -> None:
        """Refuse limits that nothing or everything meets by their sign."""
        wrong = [f"{name} is {value}" for name, value in vars(self).items() if not value >= 0]
        if wrong or not 0 < self.queues <= 1:
            raise ConfigError(
                f"limits: {'; '.join(wrong) or f'queues is {self.queues}'}: 0 or more, queues above 0 to 1"
            )

    @classmethod
    def of(cls, given: Mapping[str, float]) -> Self:
        """Return the defaults but for what is given by name; unknown names and values that make no sense are refused."""
        known = {entry.name: entry.type for entry in fields(cls)}
        unknown = [f"{name!r}: {nearest(name, list(known))}" for name in given if name not in known]
        if unknown:
            raise ConfigError(f"unknown {'; '.join(unknown)}")
        whole = {name: int(value) for name, value in given.items() if known[name] == "int"}
        return cls(**{**given, **whole})  # type: ignore[arg-type]


@dataclass(frozen=True)
class Steps:
    """The values of both sides in ascending order, ``gaps`` from each to the next, ``side`` 1 or -1, ``task`` from 0."""

    gaps: FloatArray
    side: IntArray
    task: IntArray

    @classmethod
    def of(cls, one: FloatArray, other: FloatArray, task: IntArray, task_other: IntArray) -> Steps:
        """Sort both sides, neither empty."""
        values = np.concatenate((one, other))
        order = np.argsort(values, kind="stable")
        side = np.repeat(np.array([1, -1]), [len(one), len(other)])[order]
        return cls(np.diff(values[order]), side, np.concatenate((task, task_other))[order])

    def wasserstein(self, weight: IntArray) -> float:
        """Return the area between the two distributions, in the unit of the values; NaN where a side has no weight."""
        return float(area(self.gaps, self.side, weight[self.task]))

    def kolmogorov_smirnov(self) -> float:
        """Return the largest difference of the two cumulated shares."""
        one, other = (np.cumsum(self.side == side) for side in (1, -1))
        between = np.abs(one / one[-1] - other / other[-1])[:-1]
        return float(between[self.gaps > 0].max(initial=0))

    def interval(self, repeats: int, seed: int) -> tuple[float, float]:
        """Return the 95 % interval of the Wasserstein distance when tasks are drawn again with all their jobs.

        The distance of two samples is never negative and grows with their noise, so that the interval may lie above
        the estimate where that is near 0. Draws that leave a side without jobs do not count.
        """
        n_tasks = int(self.task.max()) + 1
        rng = np.random.default_rng([seed, n_tasks, len(self.side)])
        drawn = rng.integers(0, n_tasks, (repeats, n_tasks))
        result = np.array([self.wasserstein(np.bincount(row, minlength=n_tasks)) for row in drawn])
        known = result[~np.isnan(result)]
        if not len(known):
            return float("nan"), float("nan")
        low, high = np.percentile(known, [2.5, 97.5])
        return float(low), float(high)


@compiled
def area(gaps: FloatArray, side: IntArray, weight: IntArray) -> float:
    """Return the area between the cumulated shares of two sides over the steps between their values; NaN where one has no weight."""
    whole_one, whole = 0, 0
    for place in range(len(side)):
        whole_one += weight[place] * (side[place] > 0)
        whole += weight[place]
    if whole_one in (0, whole):
        return np.nan
    one, other, total = 0, 0, 0.0
    for place in range(len(gaps)):
        own = weight[place] * (side[place] > 0)
        one += own
        other += weight[place] - own
        total += abs(one / whole_one - other / (whole - whole_one)) * gaps[place]
    return total


@dataclass(frozen=True)
class Sides:
    """The jobs of the period on both sides: ``pandaid, panda_queue, task, when`` (made), ``wait_s, killed``.

    Simulated ones of several runs have ``run``, from 0; ``paired``: row i of both is the same job at the same queue.
    """

    observed: pl.DataFrame
    simulated: pl.DataFrame
    paired: bool
    runs: int = 1

    def distances(self, repeats: int, seed: int) -> pl.DataFrame:
        """Return the distances of the jobs of every queue, sorted.

        ``panda_queue, n_jobs, n_simulated`` (per run), ``mean_observed_h, mean_simulated_h, wasserstein_h`` with
        ``wasserstein_h_lo, wasserstein_h_hi``, ``ks, correlation, kills_observed, kills_simulated``; what needs
        simulated jobs is null where there are none. And of each of `RUNS` how far a run is from the others together:
        ``<name>_most`` of all runs, ``<name>_usual`` (median); 0 for one run.
        """
        parts = self.simulated.partition_by("panda_queue", as_dict=True, maintain_order=True)
        rows = []
        ordered = self.observed.sort("panda_queue", maintain_order=True)
        for (name,), part in ordered.group_by(["panda_queue"], maintain_order=True):
            other = parts.get((name,), self.simulated.clear())
            rows.append({"panda_queue": name} | self._row(part, other, repeats, seed))
        return pl.DataFrame(rows, infer_schema_length=None)

    def _row(
        self, one: pl.DataFrame, other: pl.DataFrame, repeats: int, seed: int
    ) -> dict[str, Any]:
        observed, simulated = (part["wait_s"].to_numpy() / HOUR_S for part in (one, other))
        row: dict[str, Any] = {
            "n_jobs": one.height,
            "n_simulated": other.height / self.runs,
            "mean_observed_h": float(observed.mean()),
            "kills_observed": float(one["killed"].to_numpy().mean()),
            **dict.fromkeys(_OF_BOTH),
        }
        if other.height:
            tasks = pl.concat([one["task"], other["task"]]).rank("dense").cast(pl.Int64).to_numpy()
            steps = Steps.of(observed, simulated, tasks[: len(one)] - 1, tasks[len(one) :] - 1)
            numbers = (
                float(simulated.mean()),
                steps.wasserstein(np.ones(tasks.max(), np.int64)),
                *steps.interval(repeats, seed),
                steps.kolmogorov_smirnov(),
                self._correlation(one, other),
                float(other["killed"].to_numpy().mean()),
            )
            row |= zip(_OF_BOTH, numbers, strict=True)
        return row | self._between_runs(one, other)

    def _between_runs(self, seen: pl.DataFrame, part: pl.DataFrame) -> dict[str, float]:
        """Return how far one run is from the others together: the largest and the median of every distance."""
        apart: dict[str, list[float]] = {name: [] for name in RUNS}
        wait_s, killed = part["wait_s"].to_numpy(), part["killed"].to_numpy()
        waits = wait_s / HOUR_S
        windows = self._windows(part)
        for number in range(self.runs) if self.runs > 1 else ():
            own = part["run"].to_numpy() == number
            here, rest = int(own.sum()), int((~own).sum())
            apart["n"].append(abs(here - rest / (self.runs - 1)) / seen.height)
            if not (here and rest):
                continue  # what such a run's jobs would have waited is unknown
            none = np.zeros(1, np.int64)
            steps = Steps.of(waits[own], waits[~own], none.repeat(here), none.repeat(rest))
            alike = _of_windows((windows[own], wait_s[own]), (windows[~own], wait_s[~own]))
            apart["wasserstein_h"].append(steps.wasserstein(none + 1))
            apart["ks"].append(steps.kolmogorov_smirnov())
            apart["kills"].append(abs(float(killed[own].mean() - killed[~own].mean())))
            apart["unlike"].append(1.0 - (alike or 0.0))
        return {
            f"{name}_{what}": float(of(values)) if values else 0.0
            for name, values in apart.items()
            for what, of in (("most", max), ("usual", np.median))
        }

    def _correlation(self, one: pl.DataFrame, other: pl.DataFrame) -> float | None:
        """Return Spearman's correlation of the waits: job by job, or of the means of parts of the period."""
        if not self.paired:
            sides = [(self._windows(side), side["wait_s"].to_numpy()) for side in (one, other)]
            return _of_windows(*sides)
        both = pl.DataFrame({"one": one["wait_s"], "other": other["wait_s"]})
        return _spearman(both)

    @cached_property
    def _window(self) -> pl.Expr:
        """The part of the period that a job is in, from 0."""
        first, last = self.observed["when"].min(), self.observed["when"].max()
        span = pl.lit(last) - pl.lit(first)
        return (
            (pl.col("when") - pl.lit(first)).dt.total_microseconds()
            * _WINDOWS
            // (span.dt.total_microseconds() + 1)
        )

    def _windows(self, jobs: pl.DataFrame) -> IntArray:
        return jobs.select(part=self._window)["part"].to_numpy()

    def quantiles(self) -> pl.DataFrame:
        """Return percentiles of the waits by queue, both sides; ``n`` jobs are the observed ones."""
        observed, simulated = (
            quantiles(side, name)
            for side, name in ((self.observed, "observed_s"), (self.simulated, "simulated_s"))
        )
        return observed.join(
            simulated.drop("n"), on=["panda_queue", "rank"], how="left", maintain_order="left"
        )


def quantiles(jobs: pl.DataFrame, name: str) -> pl.DataFrame:
    """Return percentiles of ``wait_s`` at `RANKS` by queue, by the name that is given, with ``n`` jobs and ``rank``; sorted."""
    ordered = jobs.sort("panda_queue", "wait_s")
    groups = ordered.group_by("panda_queue", maintain_order=True).agg(n=pl.len())
    number = np.repeat(np.arange(groups.height), groups["n"].to_numpy())
    values = SortedGroups.of(number, ordered["wait_s"].to_numpy(), groups.height)
    parts = [
        groups.with_columns(pl.lit(rank).alias("rank"), pl.Series(name, values.percentile(rank)))
        for rank in RANKS
    ]
    return pl.concat(parts).sort("panda_queue", "rank")


def _of_windows(
    one: tuple[IntArray, FloatArray], other: tuple[IntArray, FloatArray]
) -> float | None:
    """Return the correlation of the mean waits of parts of the period; null where few parts have jobs on both sides."""
    parts, codes = np.unique(np.concatenate((one[0], other[0])), return_inverse=True)
    sides = (codes[: len(one[0])], one[1]), (codes[len(one[0]) :], other[1])
    n = [np.bincount(code, minlength=len(parts)) for code, _ in sides]
    sums = [np.bincount(code, waits, minlength=len(parts)) for code, waits in sides]
    both = (n[0] > 0) & (n[1] > 0)
    if both.sum() < _LEAST_WINDOWS:
        return None
    means = [total[both] / count[both] for total, count in zip(sums, n, strict=True)]
    return _spearman(pl.DataFrame(means, schema=["one", "other"]))


def _spearman(both: pl.DataFrame) -> float | None:
    """Return the rank correlation of two columns, null where one of them is constant."""
    rho: float | None = both.select(
        pl.corr("one", "other", method="spearman").fill_nan(None)
    ).item()
    return rho


def judged(
    queues: pl.DataFrame, limits: Limits, *, placed: bool, spare: float = 0.0
) -> pl.DataFrame:
    """Say which limits every queue breaks.

    What was seen is one run of the world, and chance moves it as it moves the others. So each distance is held to its limit
    or to the usual distance between runs, whichever is more; and where one of the runs is beyond that in any of them,
    all of them are held to as many times as much. A simulation that is right fails so at one queue in as many as there are
    runs and one more, whatever the number of limits. ``reach``: times the limits, or the usual distances, that are allowed.

    Source: randomisation test with one statistic, the largest of standardised distances (Westfall and Young, Resampling-Based
        Multiple Testing, 1993).
    """
    observed = pl.col("mean_observed_h")
    more = (pl.col("n_simulated") - pl.col("n_jobs")).abs() / pl.col("n_jobs")
    waits = pl.max_horizontal(pl.lit(limits.wasserstein_h), observed * limits.relative)
    used = (pl.col("utilisation_observed") - pl.col("utilisation_simulated")).abs()
    killed = (pl.col("kills_observed") - pl.col("kills_simulated")).abs()
    unlike = 1.0 - pl.col("correlation").fill_null(0.0)
    measured = {  # distance, limit, distance between runs, whether it is asked for
        "placement": (more, pl.lit(limits.placement), "n", pl.lit(placed)),
        "waiting": (pl.col("wasserstein_h"), waits, "wasserstein_h", pl.lit(value=True)),
        "shape": (pl.col("ks"), pl.lit(limits.ks), "ks", pl.max_horizontal(observed, "mean_simulated_h") > limits.wasserstein_h),
        "timing": (unlike, pl.lit(1.0 - limits.correlation), "unlike", observed > limits.wasserstein_h),
        "utilisation": (used, pl.lit(limits.utilisation), "utilisation", pl.lit(value=True)),
        "kills": (killed, pl.lit(limits.kills), "kills", pl.lit(value=True)),
    }  # fmt: skip
    scales = {
        name: pl.max_horizontal(limit, f"{of}_usual")
        for name, (_, limit, of, _) in measured.items()
    }
    farthest = [
        pl.when(asked).then(pl.col(f"{of}_most") / scales[name])
        for name, (_, _, of, asked) in measured.items()
    ]
    reach = pl.max_horizontal(pl.lit(1.0), pl.max_horizontal(farthest) * (1 + spare))
    off = {
        name: asked & (distance > pl.col("reach") * scales[name])
        for name, (distance, _, _, asked) in measured.items()
    }
    off["waiting"] |= ~(pl.col("n_simulated") > 0)
    off["unexplained"] = pl.col("mean_delay_h") > limits.delay_h
    enough = pl.col("n_jobs") >= limits.least_jobs
    sentences = [
        pl.when(enough & off[name].fill_null(value=False)).then(pl.lit(name)) for name in LIMITS
    ]
    return (
        queues.with_columns(judged=enough, reach=reach)
        .with_columns(
            fails=pl.concat_str(sentences, separator=", ", ignore_nulls=True).fill_null("")
        )
        .sort("panda_queue")
    )
