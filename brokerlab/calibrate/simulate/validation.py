"""Does the simulation, with the archive's own placement, give the waits that were seen? Asked before any proposal.

Both sides have the same jobs at the same queues, so that what differs is the simulator: its slots, delays and order.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import polars as pl

from brokerlab.calibrate.simulate.comparison import Sides, judged
from brokerlab.calibrate.simulate.inputs import Inputs
from brokerlab.calibrate.simulate.limits import Limits
from brokerlab.calibrate.simulate.options import QueueRules
from brokerlab.calibrate.simulate.queues import run
from brokerlab.errors import ConfigError, InsufficientDataError

_HOUR = 3600.0
SPARE = 0.5
"""By this part the largest distance between runs may grow with more of them."""
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
STATES = (
    "within limits",
    "waits agree, not by slots",
    "waits differ",
    "use or kills differ",
    "too few jobs",
)
"""Of a queue; the second: other jobs wait than waited, or fitted delays and not slots make the waits."""


@dataclass(frozen=True)
class Validation:
    """The answer, and what it rests on.

    Attributes:
        ok: The simulation may be used; reports propose nothing without it.
        sentence: The verdict in words, with numbers.
        passed_share: Part of the jobs of judged queues that are at queues within all limits.
        queues: One row per queue, sorted: ``panda_queue``, ``n_jobs``, ``n_simulated`` (mean over runs),
            ``mean_observed_h``, ``mean_simulated_h`` (waiting), ``wasserstein_h`` with ``wasserstein_h_lo`` and
            ``wasserstein_h_hi`` (95 %, bootstrap over tasks), ``ks``, ``correlation`` (Spearman, job by job, or of the
            means of 24 parts of the period where the brokerage chose the queues; null where one side is constant),
            ``mean_delay_h`` (fitted start-up), ``utilisation_observed``, ``utilisation_simulated``, ``kills_observed``,
            ``kills_simulated`` (parts of the jobs). How far runs are from one another: ``wasserstein_spread_h``,
            ``ks_spread``, ``n_spread``, ``kills_spread``, ``utilisation_spread`` (0 for one run), ``correlation_lowest``
            (1 for one run). ``judged``, and ``fails``, what is beyond its limit and beyond that: placement (numbers of
            jobs), waiting, shape (ks), timing (correlation), unexplained (delays), utilisation, kills; comma list; empty
            where none or not judged.
        shares: The same distances by ``gshare``, for reading, not for the verdict.
        quantiles: ``computingsite``, ``gshare``, ``n``, ``rank``, ``observed_s``, ``simulated_s``.
        by_queue: The same by ``computingsite`` alone.
        limits: What it was held to.
        left_out: Jobs of the archive that no side has, by reason.
        runs: Simulated runs.
        open: No, but yes were the runs by `SPARE` farther from one another, as more of them may be.
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
    runs: int = 1
    open: bool = False

    def to_dict(self) -> dict[str, object]:
        """Return the verdict and its numbers."""
        return {
            "ok": self.ok,
            "sentence": self.sentence,
            "passed_share": self.passed_share,
            "queues_judged": self.n_judged,
            "queues_passed": self.n_passed,
            "limits": dict(vars(self.limits)),
            "runs": self.runs,
        }

    @property
    def n_judged(self) -> int:
        """Queues with enough jobs."""
        return self.queues.filter("judged").height

    @property
    def n_passed(self) -> int:
        """Those of them that are within all limits."""
        return self.queues.filter(pl.col("judged") & (pl.col("fails") == "")).height

    @property
    def n_undecided(self) -> int:
        """Judged queues where the limit of the waits lies inside the interval of the distance."""
        held = self.limits
        limit = pl.max_horizontal(
            pl.lit(held.wasserstein_h), pl.col("mean_observed_h") * held.relative
        )
        inside = (pl.col("wasserstein_h_lo") <= limit) & (pl.col("wasserstein_h_hi") > limit)
        return self.queues.filter("judged", inside).height

    @property
    def fitted(self) -> pl.DataFrame:
        """Queues where delays are too long to be a start-up, or other jobs wait than waited: another load says nothing."""
        return self.queues.filter(pl.col("fails").str.contains("unexplained|timing"))

    @property
    def states(self) -> dict[str, int]:
        """Of each of `STATES`, at how many queues."""
        found = self.waits([50.0])["state"]
        return {name: int((found == name).sum()) for name in STATES}

    def broken_limits(self) -> pl.DataFrame:
        """Return at how many queues each limit is broken.

        Returns:
            One row per limit of :data:`LIMITS`, most often broken first: ``limit``, ``value`` (of :class:`.limits.Limits`),
            ``n_queues``, ``n_jobs`` of these queues.
        """
        rows = []
        for name, entry in LIMITS.items():
            broken = self.queues.filter(pl.col("fails").str.split(", ").list.contains(name))
            n_jobs = int(broken["n_jobs"].sum())
            rows.append((name, float(getattr(self.limits, entry)), broken.height, n_jobs))
        schema = {"limit": pl.String, "value": pl.Float64, "n_queues": pl.Int64, "n_jobs": pl.Int64}
        return pl.DataFrame(rows, schema=schema, orient="row").sort(
            "n_queues", "limit", descending=[True, False]
        )

    def waits(self, ranks: Sequence[float] = (50.0, 90.0)) -> pl.DataFrame:
        """Return percentiles of the waits of every queue that has simulated jobs.

        Returns:
            One row per rank and queue, sorted by rank, state and queue: ``rank``, ``panda_queue``, ``observed_h``,
            ``simulated_h`` [h], ``state`` (of `STATES`).
        """
        fails = pl.col("fails")
        state = (
            pl.when(~pl.col("judged"))
            .then(pl.lit(STATES[4]))
            .when(fails == "")
            .then(pl.lit(STATES[0]))
            .when(fails.str.contains("placement|waiting|shape"))
            .then(pl.lit(STATES[2]))
            .when(fails.str.contains("timing|unexplained"))
            .then(pl.lit(STATES[1]))
            .otherwise(pl.lit(STATES[3]))
        )
        states = self.queues.select("panda_queue", state=state)
        return (
            self.by_queue.filter(pl.col("rank").is_in(ranks))
            .rename({"computingsite": "panda_queue"})
            .join(states, on="panda_queue", maintain_order="left")
            .select(
                "rank",
                "panda_queue",
                observed_h=pl.col("observed_s") / _HOUR,
                simulated_h=pl.col("simulated_s") / _HOUR,
                state="state",
            )
            .drop_nulls("simulated_h")
            .sort("rank", pl.col("state").cast(pl.Enum(STATES)), "panda_queue")
        )


def worst_first(distances: pl.DataFrame, column: str) -> pl.DataFrame:
    """Sort distances, unknown ones and the largest first, with ``role`` (worst: the first; null: not).

    Args:
        distances: :attr:`Validation.queues` or :attr:`Validation.shares`.
        column: Whose they are; null becomes unknown.
    """
    worst = distances.sort("wasserstein_h", column, descending=[True, False], nulls_last=False)
    role = pl.when(pl.int_range(pl.len()) == 0).then(pl.lit("worst"))
    return worst.with_columns(pl.col(column).fill_null("unknown"), role=role)


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
    sides = _sides(inputs, done.attempts)
    if sides.observed.is_empty():
        raise InsufficientDataError(f"no job became ready from {inputs.start} to {inputs.end}")
    return concluded(
        sides,
        used=_used(inputs, done.attempts),
        delays=inputs.delays,
        limits=held,
        left_out=inputs.left_out,
        repeats=repeats,
        seed=seed,
    )


def concluded(
    sides: Sides,
    *,
    used: pl.DataFrame,
    delays: pl.DataFrame,
    limits: Limits,
    left_out: pl.DataFrame,
    repeats: int,
    seed: int,
) -> Validation:
    """Compare both sides and hold them to limits.

    Args:
        sides: The jobs.
        used: ``panda_queue``, ``utilisation_observed``, ``utilisation_simulated``, perhaps ``utilisation_spread``.
        delays: ``panda_queue``, ``delay_s``: fitted start-up delays.
        limits: What the simulation may be off.
        left_out: Jobs that no side has, by reason.
        repeats: Bootstrap repeats over tasks.
        seed: Of the bootstrap.
    """
    queues = sides.distances("computingsite", repeats, seed).rename(
        {"computingsite": "panda_queue"}
    )
    fitted = delays.group_by("panda_queue").agg(mean_delay_h=pl.col("delay_s").mean() / _HOUR)
    for more in (used, fitted):
        queues = queues.join(more, on="panda_queue", how="left")
    if "utilisation_spread" not in queues.columns:
        queues = queues.with_columns(utilisation_spread=pl.lit(0.0))
    wider = judged(queues, limits, placed=not sides.paired, spare=SPARE)
    queues = judged(queues, limits, placed=not sides.paired)
    enough, good, share = _within(queues)
    ok = enough.height > 0 and share >= limits.queues
    return Validation(
        ok,
        _sentence(good.height, enough.height, share, limits, placed=not sides.paired),
        share,
        queues,
        sides.distances("gshare", repeats, seed),
        sides.quantiles(("computingsite", "gshare")),
        sides.quantiles(("computingsite",)),
        limits,
        left_out,
        sides.runs,
        open=not ok and enough.height > 0 and _within(wider)[2] >= limits.queues,
    )


def _within(queues: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame, float]:
    """Return the judged queues, those within all limits, and the part of the jobs that are at these."""
    enough = queues.filter(pl.col("judged"))
    good = enough.filter(pl.col("fails") == "")
    n_good, n_judged = (int(frame["n_jobs"].sum()) for frame in (good, enough))
    return enough, good, n_good / n_judged if n_judged else 0.0


def _sentence(good: int, judged: int, share: float, limits: Limits, *, placed: bool) -> str:
    if judged == 0:
        return f"No answer: no queue has {limits.least_jobs} jobs in the period, so nothing can be judged."
    what = f"{'placement, ' if placed else ''}waiting times, utilisation and kills"
    asked = round(100 * limits.queues)
    if share >= limits.queues:
        return (
            f"The simulation reproduces {what} at {good} of {judged} queues ({100 * share:.0f} % of their jobs; at least "
            f"{asked} % are asked for)."
        )
    return (
        f"No answer: the simulation does not reproduce {what} at {judged - good} of {judged} queues ({100 - 100 * share:.0f} % "
        f"of their jobs; at most {100 - asked} % are allowed)."
    )


def _sides(inputs: Inputs, attempts: pl.DataFrame) -> Sides:
    """Return the jobs of the period with the waits of both sides and whether they were killed, job by job."""
    simulated = attempts.filter(pl.col("attempt") == 1).select(
        "pandaid",
        simulated_s="waiting_s",
        simulated_killed=pl.col("outcome").cast(pl.String).str.starts_with("killed"),
    )
    wait = (pl.col("observed_start") - pl.col("readytime")).dt.total_microseconds()
    both = (
        inputs.jobs.filter(pl.col("readytime").is_between(inputs.start, inputs.end, closed="left"))
        .with_columns(
            observed_s=wait / pl.lit(1_000_000),
            observed_killed=pl.col("observed_outcome").str.starts_with("killed"),
            task=pl.coalesce("jeditaskid", -pl.col("pandaid")),
            when="readytime",
        )
        .join(simulated, on="pandaid")
        .sort("computingsite", "pandaid")
    )
    sides = [
        both.select(
            *("pandaid", "computingsite", "gshare", "task", "when"),
            wait_s=f"{name}_s",
            killed=f"{name}_killed",
        )
        for name in ("observed", "simulated")
    ]
    return Sides(sides[0], sides[1], paired=True)


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
