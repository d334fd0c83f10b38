"""Does the simulation, with the archive's own placement, give the waits that were seen? Asked before any proposal.

Both sides have the same jobs at the same queues, so that what differs is the simulator: its slots, delays and order.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from brokerlab.calibrate.simulate.distances import Steps
from brokerlab.calibrate.simulate.inputs import Inputs
from brokerlab.calibrate.simulate.options import QueueRules
from brokerlab.calibrate.simulate.queues import run
from brokerlab.calibrate.simulate.summaries import RANKS, waiting_quantiles
from brokerlab.errors import ConfigError, InsufficientDataError

_HOUR = 3600.0


@dataclass(frozen=True)
class Limits:
    """What a simulation may be off to be believed.

    Attributes:
        wasserstein_h: Distance of the waiting times at a queue [h] ...
        relative: ... or this part of the mean wait seen there, whichever is more.
        ks: Kolmogorov-Smirnov distance of the waiting times at a queue.
        delay_h: Mean start-up delay of a queue [h]. Delays are fitted: where they are long, they and not the slots make the
            waits, whose distribution then agrees whatever the simulation does, and says nothing about another load.
        correlation: Spearman's, of the waits of the same jobs on both sides, at least; asked where the mean wait seen is
            above ``wasserstein_h``. It tells whether the jobs wait when they waited, which a distribution does not.
        utilisation: Difference of the used part of a queue's slots in the period.
        kills: Difference of the killed part of a queue's jobs.
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
    least_jobs: int = 50
    queues: float = 0.8

    def __post_init__(self) -> None:
        """Refuse limits that nothing or everything meets by their sign."""
        wrong = [f"{name} is {value}" for name, value in vars(self).items() if not value >= 0]
        if wrong or not 0 < self.queues <= 1:
            raise ConfigError(
                f"limits: {'; '.join(wrong) or f'queues is {self.queues}'}: 0 or more, queues above 0 to 1"
            )


@dataclass(frozen=True)
class Validation:
    """The answer, and what it rests on.

    Attributes:
        ok: The simulation may be used; reports propose nothing without it.
        sentence: The verdict in words, with numbers.
        passed_share: Part of the jobs of judged queues that are at queues within all limits.
        queues: One row per queue, sorted: ``panda_queue``, ``n_jobs``, ``mean_observed_h``, ``mean_simulated_h`` (waiting),
            ``wasserstein_h`` with ``wasserstein_low_h`` and ``wasserstein_high_h`` (95 %, bootstrap over tasks), ``ks``,
            ``correlation`` (Spearman, null where one side is constant), ``mean_delay_h`` (fitted start-up), ``utilisation_observed``, ``utilisation_simulated``, ``kills_observed``, ``kills_simulated`` (parts of the
            jobs), ``judged``, ``fails`` (what is beyond
            its limit: waiting, shape (ks), timing (correlation), unexplained (delays), utilisation, kills; comma list; empty where none or not judged).
        shares: The same distances by ``gshare``, for reading, not for the verdict.
        quantiles: ``computingsite``, ``gshare``, ``n``, ``rank``, ``observed_s``, ``simulated_s``.
        by_queue: The same by ``computingsite`` alone.
        limits: What it was held to.
        left_out: Jobs of the archive that no side has, by reason.
    """

    ok: bool
    sentence: str
    passed_share: float
    queues: pl.DataFrame
    shares: pl.DataFrame
    quantiles: pl.DataFrame
    by_queue: pl.DataFrame
    limits: Limits
    left_out: pl.DataFrame

    def to_dict(self) -> dict[str, Any]:
        """Return the verdict and its numbers."""
        judged = self.queues.filter(pl.col("judged"))
        return {
            "ok": self.ok,
            "sentence": self.sentence,
            "passed_share": self.passed_share,
            "queues_judged": judged.height,
            "queues_passed": judged.filter(pl.col("fails") == "").height,
            "limits": dict(vars(self.limits)),
        }


def validate(
    inputs: Inputs,
    *,
    limits: Limits | None = None,
    rules: QueueRules | None = None,
    repeats: int = 100,
    seed: int = 0,
) -> Validation:
    """Simulate the period of an archive and compare with what was seen.

    Args:
        inputs: From ``of_archive``; its jobs that became ready in the period are compared, first attempts only.
        limits: What the simulation may be off.
        rules: Options of the queues; default: one attempt, as every retry is a job of its own in an archive.
        repeats: Bootstrap repeats over tasks, from 1.
        seed: Of the simulation and the bootstrap.

    Returns:
        The verdict; no queue with enough jobs is no pass.

    Raises:
        ConfigError: No repeats, or limits that make no sense.
        InsufficientDataError: No job became ready in the period.
    """
    held = limits or Limits()
    if repeats < 1:
        raise ConfigError(f"repeats is {repeats}, from 1")
    done = run(
        inputs.jobs.drop("observed_start", "observed_end", "observed_outcome"),
        inputs.queues,
        capacity=inputs.capacity,
        delays=inputs.delays.drop("own", strict=False),
        rules=rules or QueueRules(attempts=1),
        seed=seed,
    )
    both = _both(inputs, done.attempts)
    if both.is_empty():
        raise InsufficientDataError(f"no job became ready from {inputs.start} to {inputs.end}")
    queues = _distances(both, "computingsite", repeats, seed).rename(
        {"computingsite": "panda_queue"}
    )
    delays = inputs.delays.group_by("panda_queue").agg(
        mean_delay_h=pl.col("delay_s").mean() / _HOUR
    )
    for more in (_used(inputs, done.attempts), delays):
        queues = queues.join(more, on="panda_queue", how="left")
    queues = _judged(queues, held)
    judged = queues.filter(pl.col("judged"))
    good = judged.filter(pl.col("fails") == "")
    n_good, n_judged = (int(frame["n_jobs"].sum()) for frame in (good, judged))
    share = n_good / n_judged if n_judged else 0.0
    ok = judged.height > 0 and share >= held.queues
    return Validation(
        ok,
        _sentence(good.height, judged.height, share, held),
        share,
        queues,
        _distances(both, "gshare", repeats, seed),
        _quantiles(both, ("computingsite", "gshare")),
        _quantiles(both, ("computingsite",)),
        held,
        inputs.left_out,
    )


def _sentence(good: int, judged: int, share: float, limits: Limits) -> str:
    if judged == 0:
        return f"No answer: no queue has {limits.least_jobs} jobs in the period, so nothing can be judged."
    what, asked = "waiting times, utilisation and kills", round(100 * limits.queues)
    if share >= limits.queues:
        return (
            f"The simulation reproduces {what} at {good} of {judged} queues ({100 * share:.0f} % of their jobs; at least "
            f"{asked} % are asked for)."
        )
    return (
        f"No answer: the simulation does not reproduce {what} at {judged - good} of {judged} queues ({100 - 100 * share:.0f} % "
        f"of their jobs; at most {100 - asked} % are allowed)."
    )


def _both(inputs: Inputs, attempts: pl.DataFrame) -> pl.DataFrame:
    """Return the jobs of the period with the waits of both sides [s] and whether they were killed."""
    simulated = attempts.filter(pl.col("attempt") == 1).select(
        "pandaid",
        simulated_s="waiting_s",
        simulated_killed=pl.col("outcome").cast(pl.String).str.starts_with("killed"),
    )
    wait = (pl.col("observed_start") - pl.col("readytime")).dt.total_microseconds()
    return (
        inputs.jobs.filter(pl.col("readytime").is_between(inputs.start, inputs.end, closed="left"))
        .with_columns(
            observed_s=wait / pl.lit(1_000_000),
            observed_killed=pl.col("observed_outcome").str.starts_with("killed"),
            task=pl.coalesce("jeditaskid", -pl.col("pandaid")),
        )
        .join(simulated, on="pandaid")
        .sort("computingsite", "pandaid")
    )


def _distances(both: pl.DataFrame, by: str, repeats: int, seed: int) -> pl.DataFrame:
    """Return the distances of every group of jobs, sorted by group."""
    rows = []
    for (name,), part in both.sort(by, "pandaid").group_by([by], maintain_order=True):
        observed = part["observed_s"].to_numpy() / _HOUR
        simulated = part["simulated_s"].to_numpy() / _HOUR
        task = part["task"].rank("dense").to_numpy().astype(np.int64) - 1
        steps = Steps.of(observed, simulated, task)
        low, high = steps.interval(repeats, seed)
        rows.append(
            {
                by: name,
                "n_jobs": part.height,
                "mean_observed_h": float(observed.mean()),
                "mean_simulated_h": float(simulated.mean()),
                "wasserstein_h": steps.wasserstein(np.ones(task.max() + 1, np.int64)),
                "wasserstein_low_h": low,
                "wasserstein_high_h": high,
                "ks": steps.kolmogorov_smirnov(),
                "correlation": part.select(
                    pl.corr("observed_s", "simulated_s", method="spearman").fill_nan(None)
                ).item(),
                "kills_observed": float(part["observed_killed"].to_numpy().mean()),
                "kills_simulated": float(part["simulated_killed"].to_numpy().mean()),
            }
        )
    return pl.DataFrame(rows, infer_schema_length=None)


def _used(inputs: Inputs, attempts: pl.DataFrame) -> pl.DataFrame:
    """Return the used part of every queue's slots in the period, on both sides."""
    whole = [pl.lit(instant, pl.Datetime("us")) for instant in (inputs.start, inputs.end)]

    def core_s(start: str, end: str) -> pl.Expr:
        lasts = pl.col(end).clip(*whole) - pl.col(start).clip(*whole)
        return (lasts.dt.total_microseconds() * pl.col("corecount")).sum()

    seen = inputs.jobs.group_by(panda_queue="computingsite").agg(
        observed=core_s("observed_start", "observed_end")
    )
    made = attempts.group_by(panda_queue="computingsite").agg(
        simulated=core_s("starttime", "endtime")
    )
    until = pl.col("ts").shift(-1).over("panda_queue", order_by="ts").fill_null(inputs.end)
    lasts = (until.clip(*whole) - pl.col("ts").clip(*whole)).dt.total_microseconds()
    there = inputs.capacity.group_by("panda_queue").agg(there=(lasts * pl.col("slots")).sum())
    part = {
        f"utilisation_{side}": pl.col(side) / pl.col("there") for side in ("observed", "simulated")
    }
    return (
        there.join(seen, on="panda_queue", how="left")
        .join(made, on="panda_queue", how="left")
        .select("panda_queue", **{n: pl.when(pl.col("there") > 0).then(e) for n, e in part.items()})
    )


def _judged(queues: pl.DataFrame, limits: Limits) -> pl.DataFrame:
    """Say which limits every queue breaks."""
    off = {
        "waiting": pl.col("wasserstein_h")
        > pl.max_horizontal(
            pl.lit(limits.wasserstein_h), pl.col("mean_observed_h") * limits.relative
        ),
        "shape": pl.col("ks") > limits.ks,
        "timing": (pl.col("mean_observed_h") > limits.wasserstein_h)
        & (pl.col("correlation").fill_null(0.0) < limits.correlation),
        "unexplained": pl.col("mean_delay_h") > limits.delay_h,
        "utilisation": (pl.col("utilisation_observed") - pl.col("utilisation_simulated")).abs()
        > limits.utilisation,
        "kills": (pl.col("kills_observed") - pl.col("kills_simulated")).abs() > limits.kills,
    }
    judged = pl.col("n_jobs") >= limits.least_jobs
    said = [
        pl.when(judged & broken.fill_null(value=False)).then(pl.lit(name))
        for name, broken in off.items()
    ]
    return queues.with_columns(
        judged=judged, fails=pl.concat_str(said, separator=", ", ignore_nulls=True).fill_null("")
    ).sort("panda_queue")


def _quantiles(both: pl.DataFrame, by: tuple[str, ...]) -> pl.DataFrame:
    """Return percentiles of the waits by group, both sides."""
    plain = both.with_columns(attempt=pl.lit(1), outcome=pl.lit("finished"))
    sides = [
        waiting_quantiles(plain.with_columns(waiting_s=name), by=by, ranks=RANKS).rename(
            {"waiting_s": name}
        )
        for name in ("observed_s", "simulated_s")
    ]
    return sides[0].with_columns(sides[1]["simulated_s"]).drop("n_waiting")
