"""Compare the waits, use and kills of a simulation with those seen, and hold them to limits."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import polars as pl

from brokerlab.calibrate.simulate.distances import Steps
from brokerlab.calibrate.simulate.limits import Limits
from brokerlab.calibrate.simulate.summaries import RANKS, waiting_quantiles

_HOUR = 3600.0
_WINDOWS = 24
"""Parts of the period whose mean waits are correlated where jobs have no pair."""
_LEAST_WINDOWS = 5
SPREADS = ("wasserstein_spread_h", "ks_spread", "kills_spread", "n_spread")
"""How far runs are from one another."""


@dataclass(frozen=True)
class Sides:
    """The jobs of the period on both sides.

    Attributes:
        observed: ``pandaid, computingsite, gshare, task, when`` (ready), ``wait_s, killed``.
        simulated: The same; of several runs with ``run``, from 0.
        paired: Row i of both is the same job at the same queue.
        runs: How many simulated runs there are.
    """

    observed: pl.DataFrame
    simulated: pl.DataFrame
    paired: bool
    runs: int = 1

    def distances(self, by: str, repeats: int, seed: int) -> pl.DataFrame:
        """Return the distances of every group of observed jobs, sorted by group.

        Returns:
            ``by, n_jobs, n_simulated`` (per run), ``mean_observed_h, mean_simulated_h, wasserstein_h`` with
            ``wasserstein_h_lo, wasserstein_h_hi``, ``ks, correlation, kills_observed, kills_simulated``; what needs
            simulated jobs is null where there are none. And how far the runs are from one another, at most (0 for one
            run): ``wasserstein_spread_h, ks_spread, kills_spread, n_spread`` (part of the jobs); ``correlation_lowest`` of a
            run with the others (1 for one run).
        """
        parts = self.simulated.partition_by(by, as_dict=True, maintain_order=True)
        rows = []
        for (name,), part in self.observed.sort(by, maintain_order=True).group_by(
            [by], maintain_order=True
        ):
            other = parts.get((name,), self.simulated.clear())
            rows.append({by: name} | self._row(part, other, repeats, seed))
        return pl.DataFrame(rows, infer_schema_length=None)

    def _row(
        self, one: pl.DataFrame, other: pl.DataFrame, repeats: int, seed: int
    ) -> dict[str, Any]:
        """Return the distances of one group."""
        observed, simulated = (part["wait_s"].to_numpy() / _HOUR for part in (one, other))
        found: dict[str, Any] = {
            "n_jobs": one.height,
            "n_simulated": other.height / self.runs,
            "mean_observed_h": float(observed.mean()),
            "kills_observed": float(one["killed"].to_numpy().mean()),
        }
        empty = ["mean_simulated_h", "wasserstein_h", "wasserstein_h_lo", "wasserstein_h_hi"]
        if other.is_empty():
            nothing = [*empty, "ks", "correlation", "kills_simulated"]
            far = dict.fromkeys(SPREADS, 0.0) | {"correlation_lowest": 1.0}
            return found | dict.fromkeys(nothing) | far
        tasks = pl.concat([one["task"], other["task"]]).rank("dense").to_numpy().astype(np.int64)
        steps = Steps.of(observed, simulated, tasks[: len(one)] - 1, tasks[len(one) :] - 1)
        low, high = steps.interval(repeats, seed)
        numbers = [
            float(simulated.mean()),
            steps.wasserstein(np.ones(tasks.max(), np.int64)),
            low,
            high,
        ]
        return found | {
            **dict(zip(empty, numbers, strict=True)),
            "ks": steps.kolmogorov_smirnov(),
            "correlation": self._correlation(one, other),
            "kills_simulated": float(other["killed"].to_numpy().mean()),
            **self._spread(other),
        }

    def _spread(self, part: pl.DataFrame) -> dict[str, float]:
        """Return the largest distances of one run from the others together."""
        found = dict.fromkeys(SPREADS, 0.0) | {"correlation_lowest": 1.0}
        if self.runs < 2 or part.is_empty():
            return found
        waits, killed = part["wait_s"].to_numpy() / _HOUR, part["killed"].to_numpy()
        run = part["run"].to_numpy()
        for number in range(self.runs):
            own = run == number
            rest = float((~own).sum()) / (self.runs - 1)
            if rest == 0 or not own.any():
                found["n_spread"] = np.inf  # some runs send nothing there
                continue
            none = np.zeros(1, np.int64)
            steps = Steps.of(
                waits[own], waits[~own], none.repeat(own.sum()), none.repeat((~own).sum())
            )
            seen = (
                steps.wasserstein(none + 1),
                steps.kolmogorov_smirnov(),
                abs(float(killed[own].mean() - killed[~own].mean())),
                abs(float(own.sum()) - rest) / rest,
            )
            for name, value in zip(SPREADS, seen, strict=True):
                found[name] = max(found[name], float(value))
            alike = self._of_windows(part.filter(own), part.filter(~own))
            lowest = found["correlation_lowest"]
            found["correlation_lowest"] = min(lowest, 0.0 if alike is None else alike)
        return found

    def _correlation(self, one: pl.DataFrame, other: pl.DataFrame) -> float | None:
        """Return Spearman's correlation of the waits: job by job, or of the means of parts of the period."""
        if not self.paired:
            return self._of_windows(one, other)
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

    def _of_windows(self, one: pl.DataFrame, other: pl.DataFrame) -> float | None:
        """Return the correlation of the mean waits of parts of the period; null where few parts have jobs on both sides."""
        means = [
            side.group_by(part=self._window).agg(pl.col("wait_s").mean()) for side in (one, other)
        ]
        joined = means[0].join(means[1], on="part").sort("part")
        both = joined.select(one="wait_s", other="wait_s_right")
        return None if both.height < _LEAST_WINDOWS else _spearman(both)

    def quantiles(self, by: Sequence[str]) -> pl.DataFrame:
        """Return percentiles of the waits by group, both sides; ``n`` jobs are the observed ones."""
        sides = [
            waiting_quantiles(
                side.with_columns(
                    attempt=pl.lit(1), outcome=pl.lit("finished"), waiting_s="wait_s"
                ),
                by=by,
                ranks=RANKS,
            )
            .drop("n_waiting")
            .rename({"waiting_s": name})
            for side, name in ((self.observed, "observed_s"), (self.simulated, "simulated_s"))
        ]
        key = [*by, "rank"]
        return sides[0].join(
            sides[1].drop("n"), on=key, how="left", nulls_equal=True, maintain_order="left"
        )


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

    What was seen is one run of the world: a queue whose runs are farther from one another than a limit is held to their
    distance instead, one whose runs do not wait at the same times, to what they have in common.

    Args:
        queues: Of :meth:`Sides.distances` with ``mean_delay_h``, ``utilisation_observed``, ``utilisation_simulated``,
            ``utilisation_spread``.
        limits: The limits.
        placed: The simulation chose the queues, so that numbers of jobs may differ.
        spare: Take the distances between runs for larger by this part, and their lowest correlation for lower by so much.

    Returns:
        The queues with ``judged``, ``fails``, sorted.
    """

    def beyond(distance: pl.Expr, limit: float | pl.Expr, spread: str) -> pl.Expr:
        return distance > pl.max_horizontal(
            pl.lit(limit) if isinstance(limit, float) else limit, pl.col(spread) * (1 + spare)
        )

    there, observed = pl.col("n_simulated") > 0, pl.col("mean_observed_h")
    more = (pl.col("n_simulated") - pl.col("n_jobs")).abs() / pl.col("n_jobs")
    most_wait = pl.max_horizontal(pl.lit(limits.wasserstein_h), observed * limits.relative)
    used = (pl.col("utilisation_observed") - pl.col("utilisation_simulated")).abs()
    killed = (pl.col("kills_observed") - pl.col("kills_simulated")).abs()
    alike = pl.min_horizontal(pl.lit(limits.correlation), pl.col("correlation_lowest") - spare)
    unlike = pl.col("correlation").fill_null(0.0) < alike
    off = {
        "placement": pl.lit(placed) & beyond(more, limits.placement, "n_spread"),
        "waiting": ~there | beyond(pl.col("wasserstein_h"), most_wait, "wasserstein_spread_h"),
        "shape": beyond(pl.col("ks"), limits.ks, "ks_spread"),
        "timing": (observed > limits.wasserstein_h) & unlike,
        "unexplained": pl.col("mean_delay_h") > limits.delay_h,
        "utilisation": beyond(used, limits.utilisation, "utilisation_spread"),
        "kills": beyond(killed, limits.kills, "kills_spread"),
    }
    enough = pl.col("n_jobs") >= limits.least_jobs
    said = [
        pl.when(enough & broken.fill_null(value=False)).then(pl.lit(name))
        for name, broken in off.items()
    ]
    return queues.with_columns(
        judged=enough, fails=pl.concat_str(said, separator=", ", ignore_nulls=True).fill_null("")
    ).sort("panda_queue")
