"""Does the simulation, with the brokerage replayed under the archive's own settings, give what the archive saw?

Other than ``simulate.validate``, which leaves every job at its own queue, this asks of the brokerage as well: jobs are at
other queues than they were, so that queues are compared by the numbers and the waits of their jobs, not job by job.
"""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from brokerlab.calibrate.simulate.comparison import Sides
from brokerlab.calibrate.simulate.grid.outcome import GridOutcome
from brokerlab.calibrate.simulate.grid.running import run
from brokerlab.calibrate.simulate.grid.world import GridWorld
from brokerlab.calibrate.simulate.limits import Limits
from brokerlab.calibrate.simulate.validation import Validation, concluded
from brokerlab.errors import ConfigError, DataError, InsufficientDataError
from brokerlab.gdpconfig import Config

RUNS = tuple(range(1, 17))
"""Seeds: of 16 runs alike, what was seen is farther off than all the others one time in 17."""
MOST_RUNS = 64
"""Runs at most where fewer leave it open."""
_US = 1_000_000


def validate(
    world: GridWorld,
    *,
    config: Config | None = None,
    limits: Limits | None = None,
    seeds: Sequence[int] = RUNS,
    most_runs: int = MOST_RUNS,
    repeats: int = 100,
    seed: int = 0,
) -> Validation:
    """Simulate the period under the settings that ruled, and compare with what was seen.

    What was seen is one run of the world, with chances of its own: where the simulated runs are farther from one another
    than a limit, what was seen may be as far from them.

    Waits are those of first attempts, from a job's inputs being at its queue to its start; a job that still waits at the
    end counts with its wait so far, and kills after it do not count, on both sides, though the archive may know more. In
    place of the correlation job by job stands that of the mean waits of 24 parts of the period.

    Args:
        world: From :func:`of_archive`.
        config: The settings; None: those that ruled.
        limits: What the simulation may be off; ``placement`` counts, too.
        seeds: Runs that are compared together at first. Small grids need more of them, where chance decides more: where the
            answer is no but :attr:`~.validation.Validation.open`, there are twice as many, with the seeds that follow ...
        most_runs: ... and so on up to so many; at most as many as ``seeds``: no more.
        repeats: Bootstrap repeats over tasks, from 1.
        seed: Of the bootstrap.

    Returns:
        The verdict; no queue with enough jobs is no pass.

    Raises:
        ConfigError: No repeats, or seeds that cannot be.
        DataError: The world was not read from an archive.
        InsufficientDataError: No job of the period has run.
    """
    outcome = run(world, config=config, seeds=seeds)
    found = compare(outcome, limits=limits, repeats=repeats, seed=seed)
    while found.open and (n := min(2 * found.runs, most_runs) - found.runs) > 0:
        first = max(outcome.seeds) + 1
        outcome = outcome.joined(run(world, config=config, seeds=range(first, first + n)))
        found = compare(outcome, limits=limits, repeats=repeats, seed=seed)
    return found


def compare(
    outcome: GridOutcome, *, limits: Limits | None = None, repeats: int = 100, seed: int = 0
) -> Validation:
    """Compare an outcome with what the archive saw; arguments, result and errors as :func:`validate`."""
    world = outcome.world
    if repeats < 1:
        raise ConfigError(f"repeats is {repeats}, from 1")
    if world.seen.is_empty():
        raise DataError("the world was not read from an archive: nothing was seen to compare with")
    simulated, seen = _simulated(outcome), _observed(world)
    if seen.is_empty():
        raise InsufficientDataError(
            f"no job was made from {world.start} to {world.end} and has run"
        )
    return concluded(
        Sides(seen, simulated, paired=False, runs=len(outcome.seeds)),
        used=_used(outcome),
        delays=world.delays,
        limits=limits or Limits(),
        left_out=world.left_out,
        repeats=repeats,
        seed=seed,
    )


def _simulated(outcome: GridOutcome) -> pl.DataFrame:
    """Return the judged jobs that have a queue, with their waits there."""
    numbers = {seed: place for place, seed in enumerate(outcome.seeds)}
    return outcome.jobs.filter(pl.col("first_wait_s").is_not_null()).select(
        *("pandaid", "gshare"),
        computingsite="first_site",
        task=pl.coalesce("jeditaskid", -pl.col("pandaid")),
        when="creationtime",
        wait_s="first_wait_s",
        killed=pl.col("lost_core_s") > 0,
        run=pl.col("seed").replace_strict(numbers),
    )


def _observed(world: GridWorld) -> pl.DataFrame:
    """Return the same of what was seen."""
    made = pl.col("creationtime").is_between(world.start, world.end, closed="left")
    until = pl.lit(world.until, pl.Datetime("us"))
    wait = pl.min_horizontal("observed_start", until) - pl.col("observed_ready")
    killed = pl.col("observed_outcome").str.starts_with("killed")
    return (
        world.jobs.filter(made)
        .select("pandaid", "gshare", "jeditaskid", "creationtime")
        .join(world.seen, on="pandaid")
        .filter(pl.col("observed_ready") <= until)
        .select(
            "pandaid",
            "gshare",
            computingsite="observed_site",
            task=pl.coalesce("jeditaskid", -pl.col("pandaid")),
            when="creationtime",
            wait_s=wait.dt.total_microseconds() / pl.lit(_US),
            killed=killed & (pl.col("observed_end") <= until).fill_null(value=False),
        )
        .sort("computingsite", "pandaid")
    )


def _used(outcome: GridOutcome) -> pl.DataFrame:
    """Return the used part of every queue's slots in the period, on both sides."""
    world = outcome.world
    whole = [pl.lit(instant, pl.Datetime("us")) for instant in (world.start, world.end)]
    ended = pl.col("observed_end").fill_null(whole[1])
    lasts = ended.clip(*whole) - pl.col("observed_start").clip(*whole)
    core_us = lasts.dt.total_microseconds() * pl.col("observed_cores")
    seen = world.seen.group_by(panda_queue="observed_site").agg(
        observed=core_us.sum() / pl.lit(_US)
    )
    part, runs = pl.col("utilisation"), len(outcome.seeds)
    rest = (part.sum() - part) / max(runs - 1, 1)  # mean of the other runs
    made = outcome.queues.group_by("panda_queue", maintain_order=True).agg(
        pl.col("used_core_s").mean(),
        pl.col("capacity_core_s").first(),
        utilisation_spread=(part - rest).abs().max() if runs > 1 else pl.lit(0.0),
    )
    there = pl.col("capacity_core_s")
    return made.join(seen, on="panda_queue", how="left").select(
        "panda_queue",
        pl.col("utilisation_spread").fill_null(0.0),
        utilisation_observed=pl.when(there > 0).then(pl.col("observed").fill_null(0) / there),
        utilisation_simulated=pl.when(there > 0).then(pl.col("used_core_s") / there),
    )
