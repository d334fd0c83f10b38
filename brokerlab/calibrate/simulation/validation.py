"""Does the simulation, under the archive's own settings, give what the archive saw? Asked before any proposal.

Where every job stays at its own queue, both sides have the same jobs there, so that what differs is the simulator: its slots,
delays and order. Where the brokerage is replayed, it is asked, too: jobs are at other queues than they were, so that
queues are compared by the numbers and the waits of their jobs, not job by job.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import polars as pl

from brokerlab.calibrate.simulation.comparison import LIMITS, Limits, Sides, judged
from brokerlab.calibrate.simulation.outcome import Outcome, run
from brokerlab.calibrate.simulation.world import World
from brokerlab.errors import ConfigError, DataError, InsufficientDataError
from brokerlab.gdpconfig import Config
from brokerlab.results import Result, Shows
from brokerlab.units import HOUR_S, SECOND_US

RUNS = tuple(range(1, 17))
"""Seeds: of 16 runs alike, what was seen is farther off than all the others one time in 17."""
MOST_RUNS = 64
"""Runs at most where fewer leave it open."""
SPARE = 0.5
"""By this part the largest distance between runs may grow with more of them."""
STATES = (
    "within limits",
    "waits agree, not by slots",
    "waits differ",
    "use or kills differ",
    "too few jobs",
)
"""Of a queue; the second: other jobs wait than waited, or fitted delays and not slots make the waits."""


@dataclass(frozen=True, repr=False)
class Validation(Result):
    """The answer, and what it rests on.

    Attributes:
        queues: One row per queue, sorted: ``panda_queue``, ``n_jobs``, ``n_simulated`` (mean over runs),
            ``mean_observed_h``, ``mean_simulated_h`` (waiting), ``wasserstein_h`` with ``wasserstein_h_lo`` and
            ``wasserstein_h_hi`` (95 %, bootstrap over tasks), ``ks``, ``correlation`` (Spearman, job by job, or of the
            means of 24 parts of the period where the brokerage chose the queues; null where one side is constant),
            ``mean_delay_h`` (fitted start-up), ``utilisation_observed``, ``utilisation_simulated``, ``kills_observed``,
            ``kills_simulated`` (parts of the jobs). How far a run is from the others: ``wasserstein_h_most``,
            ``wasserstein_h_usual`` (median), and so on, see :meth:`.comparison.Sides.distances`. ``judged``, ``reach``, see
            :func:`.comparison.judged`, and ``fails``, what is beyond its limit and beyond chance: placement (numbers of
            jobs), waiting, shape (ks), timing (correlation), unexplained (delays), utilisation, kills; comma list; empty
            where none or not judged.
        quantiles: ``panda_queue``, ``n``, ``rank``, ``observed_s``, ``simulated_s``.
        limits: What it was held to.
        runs: Simulated runs.
    """

    shows = Shows(
        about="is a simulation to be believed, one row per queue",
        columns=(
            "panda_queue, n_jobs, mean_observed_h [h], mean_simulated_h [h], wasserstein_h [h], ks [1], "
            "judged, fails"
        ),
        keys=("panda_queue",),
        next=(".quantiles", "calibrate.simulate(archive, config=...)"),
    )

    queues: pl.DataFrame
    quantiles: pl.DataFrame
    limits: Limits
    world: World
    runs: int

    @property
    def ok(self) -> bool:
        """The simulation may be used; reports propose nothing without it."""
        return self.n_judged > 0 and self.passed_share >= self.limits.queues

    @property
    def passed_share(self) -> float:
        """Part of the jobs of judged queues that are at queues within all limits."""
        return _passed(self.queues)

    @property
    def open(self) -> bool:
        """No, but yes were the runs by `SPARE` farther from one another, as more of them may be."""
        wider = judged(self.queues, self.limits, placed=self.world.brokered, spare=SPARE)
        return not self.ok and self.n_judged > 0 and _passed(wider) >= self.limits.queues

    @property
    def sentence(self) -> str:
        """The verdict in words, with numbers."""
        limits, n, share = self.limits, self.n_judged, self.passed_share
        if n == 0:
            return f"No answer: no queue has {limits.least_jobs} jobs in the period, so nothing can be judged."
        what = f"{'placement, ' if self.world.brokered else ''}waiting times, utilisation and kills"
        asked = round(100 * limits.queues)
        if self.ok:
            return (
                f"The simulation reproduces {what} at {self.n_passed} of {n} queues ({100 * share:.0f} % of their jobs; at least "
                f"{asked} % are asked for)."
            )
        return (
            f"No answer: the simulation does not reproduce {what} at {n - self.n_passed} of {n} queues ({100 - 100 * share:.0f} % "
            f"of their jobs; at most {100 - asked} % are allowed)."
        )

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
        result = self.waits([50.0])["state"]
        return {name: int((result == name).sum()) for name in STATES}

    def broken_limits(self) -> pl.DataFrame:
        """Return at how many queues each limit of :data:`LIMITS` is broken, most often broken first.

        ``limit``, ``value`` (of :class:`.comparison.Limits`), ``n_queues``, ``n_jobs`` of these queues.
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
        """Return percentiles of the waits of every queue that has simulated jobs, sorted by rank, state and queue.

        ``rank``, ``panda_queue``, ``observed_h``, ``simulated_h`` [h], ``state`` (of `STATES`).
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
            self.quantiles.filter(pl.col("rank").is_in(ranks))
            .join(states, on="panda_queue", maintain_order="left")
            .select(
                "rank",
                "panda_queue",
                observed_h=pl.col("observed_s") / HOUR_S,
                simulated_h=pl.col("simulated_s") / HOUR_S,
                state="state",
            )
            .drop_nulls("simulated_h")
            .sort("rank", pl.col("state").cast(pl.Enum(STATES)), "panda_queue")
        )

    def headline(self) -> str:
        """Return what it says, in a line."""
        return self.sentence


def worst_first(queues: pl.DataFrame) -> pl.DataFrame:
    """Sort queues, those of unknown and the largest distance first, with ``role`` (worst: the first; null: not)."""
    order = ("wasserstein_h", "panda_queue")
    role = pl.when(pl.int_range(pl.len()) == 0).then(pl.lit("worst"))
    return queues.sort(order, descending=[True, False], nulls_last=False).with_columns(role=role)


def validate(
    world: World,
    *,
    config: Config | None = None,
    limits: Limits | None = None,
    seeds: Sequence[int] | None = None,
    most_runs: int = MOST_RUNS,
    repeats: int = 100,
    seed: int = 0,
) -> Validation:
    """Simulate the period under the settings that ruled, and compare with what was seen.

    What was seen is one run of the world, with chances of its own: where the simulated runs are farther from one another
    than their limits, what was seen may be as far from them, see :func:`.comparison.judged`.

    Waits are those of first attempts, from a job's inputs being at its queue to its start; a job that still waits at the
    end counts with its wait so far, and kills after it do not count, on both sides, though the archive may know more. Where
    the brokerage chose the queues, the correlation is not job by job, but that of the mean waits of 24 parts of the period.

    Args:
        world: From :func:`of_archive`.
        config: The settings; None: those that ruled.
        limits: What the simulation may be off; ``placement`` counts where the brokerage chose the queues.
        seeds: Runs that are compared together at first; None: `RUNS`, or one where every job stays at its own queue. Small grids
            need more of them, where chance decides more: where the answer is no but :attr:`Validation.open`, there are twice
            as many, with the seeds that follow ...
        most_runs: ... and so on up to so many; at most as many as ``seeds``: no more.
        repeats: Bootstrap repeats over tasks, from 1.
        seed: Of the bootstrap.

    Raises:
        ConfigError: No repeats, or seeds that cannot be.
        DataError: The world was not read from an archive.
        InsufficientDataError: No job of the period has run.
    """
    first = (RUNS if world.brokered else RUNS[:1]) if seeds is None else seeds
    outcome = run(world, config=config, seeds=first)
    result = compare(outcome, limits=limits, repeats=repeats, seed=seed)
    while result.open and (n := min(2 * result.runs, most_runs) - result.runs) > 0:
        following = max(outcome.seeds) + 1
        outcome = outcome.joined(run(world, config=config, seeds=range(following, following + n)))
        result = compare(outcome, limits=limits, repeats=repeats, seed=seed)
    return result


def compare(
    outcome: Outcome, *, limits: Limits | None = None, repeats: int = 100, seed: int = 0
) -> Validation:
    """Compare an outcome with what the archive saw; arguments, result and errors as :func:`validate`."""
    world, held = outcome.world, limits or Limits()
    if repeats < 1:
        raise ConfigError(f"repeats is {repeats}, from 1")
    if world.seen.is_empty():
        raise DataError("the world was not read from an archive: nothing was seen to compare with")
    sides = _sides(outcome)
    if sides.observed.is_empty():
        raise InsufficientDataError(
            f"no job was made from {world.start} to {world.end} and has run"
        )
    fitted = world.delays.group_by("panda_queue").agg(
        mean_delay_h=pl.col("delay_s").mean() / HOUR_S
    )
    queues = (
        sides.distances(repeats, seed)
        .join(_used(outcome), on="panda_queue", how="left")
        .join(fitted, on="panda_queue", how="left")
    )
    queues = judged(queues, held, placed=world.brokered)
    return Validation(queues, sides.quantiles(), held, world, sides.runs)


def _passed(queues: pl.DataFrame) -> float:
    """Return the part of the jobs of judged queues that are at queues within all limits."""
    enough = queues.filter("judged")
    good = enough.filter(pl.col("fails") == "")
    n_good, n_judged = (int(frame["n_jobs"].sum()) for frame in (good, enough))
    return n_good / n_judged if n_judged else 0.0


def _sides(outcome: Outcome) -> Sides:
    """Return the judged jobs with their first waits on both sides; job by job, where each stays at its own queue."""
    world, runs = outcome.world, len(outcome.seeds)
    numbers = {seed: place for place, seed in enumerate(outcome.seeds)}
    task = pl.coalesce("jeditaskid", -pl.col("pandaid"))
    over = pl.lit(world.until, pl.Datetime("us"))
    later = world.seen.filter(pl.col("observed_ready") > over)[
        "pandaid"
    ]  # where it was is not seen
    known = pl.col("first_wait_s").is_not_null() & ~pl.col("pandaid").is_in(later.implode())
    simulated = outcome.jobs.filter(known).select(
        "pandaid",
        panda_queue="first_site",
        task=task,
        when="creationtime",
        wait_s="first_wait_s",
        killed=pl.col("lost_core_s") > 0,
        run=pl.col("seed").replace_strict(numbers),
    )
    wait = pl.min_horizontal("observed_start", over) - pl.col("observed_ready")
    killed = pl.col("observed_outcome").str.starts_with("killed")
    observed = (
        world.jobs.filter(pl.col("creationtime").is_between(world.start, world.end, closed="left"))
        .select("pandaid", "jeditaskid", "creationtime")
        .join(world.seen, on="pandaid")
        .filter(pl.col("observed_ready") <= over)
        .select(
            "pandaid",
            panda_queue="observed_site",
            task=task,
            when="creationtime",
            wait_s=wait.dt.total_microseconds() / pl.lit(SECOND_US),
            killed=killed & (pl.col("observed_end") <= over).fill_null(value=False),
        )
        .sort("panda_queue", "pandaid")
    )
    if world.brokered or runs > 1:
        return Sides(observed, simulated, paired=False, runs=runs)
    same = observed.select("pandaid").join(simulated, on="pandaid", maintain_order="left")
    return Sides(observed.join(same, on="pandaid", how="semi"), same, paired=True)


def _used(outcome: Outcome) -> pl.DataFrame:
    """Return the used part of every queue's slots in the period, on both sides."""
    world = outcome.world
    whole = [pl.lit(instant, pl.Datetime("us")) for instant in (world.start, world.end)]
    ended = pl.col("observed_end").fill_null(whole[1])
    lasts = ended.clip(*whole) - pl.col("observed_start").clip(*whole)
    core_us = lasts.dt.total_microseconds() * pl.col("observed_cores")
    seen = world.seen.group_by(panda_queue="observed_site").agg(
        observed=core_us.sum() / pl.lit(SECOND_US)
    )
    part, runs = pl.col("utilisation"), len(outcome.seeds)
    rest = (part.sum() - part) / max(runs - 1, 1)  # mean of the other runs
    apart = (part - rest).abs() if runs > 1 else pl.lit(0.0)
    made = outcome.queues.group_by("panda_queue", maintain_order=True).agg(
        pl.col("used_core_s").mean(),
        pl.col("capacity_core_s").first(),
        utilisation_most=apart.max(),
        utilisation_usual=apart.median(),
    )
    there = pl.col("capacity_core_s")
    return made.join(seen, on="panda_queue", how="left").select(
        "panda_queue",
        pl.col("utilisation_most", "utilisation_usual").fill_null(0.0),
        utilisation_observed=pl.when(there > 0).then(pl.col("observed").fill_null(0) / there),
        utilisation_simulated=pl.when(there > 0).then(pl.col("used_core_s") / there),
    )
