"""Simulate a world under settings of choice, and what that says: jobs, tasks, queues, fairness, attempts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import polars as pl

from brokerlab.brokerage.replaying.counts import LABEL
from brokerlab.calibrate.simulation.loop import Copy, Loop
from brokerlab.calibrate.simulation.state import (
    FINISHED,
    LOGGED,
    NEVER,
    RUNS,
    WAITS,
    instant,
    instants,
    micros,
    slots_from,
)
from brokerlab.calibrate.simulation.world import World
from brokerlab.gdpconfig import Config
from brokerlab.numerics import FloatArray, IntArray
from brokerlab.results import Result, Shows
from brokerlab.units import SECOND_US

STATES = pl.Enum(["finished", "failed", "waiting", "running"])


@dataclass(frozen=True, repr=False)
class Outcome(Result):
    """What happened, one world per seed. Jobs, tasks and fairness are those of jobs made in the period that is judged.

    Attributes:
        jobs: One row per seed and job, sorted: ``seed, pandaid, jeditaskid, gshare, produsername, user_class`` (see
            :func:`user_classes`), ``corecount, brokered``,
            ``computingsite`` (last queue, null: none), ``n_attempts`` (started), ``n_moves`` (times taken back while it
            waited), ``creationtime``, ``readytime`` (last time its inputs were at a queue), ``starttime``, ``endtime``
            (of the last attempt), ``overtime`` (its outputs had arrived, too), ``waiting_s`` (creation to last start, or
            to the end of the simulation), ``transfer_s`` (of inputs), ``running_s`` (last attempt), ``transferred_bytes``,
            ``lost_core_s`` (killed attempts), ``first_site`` and ``first_wait_s`` (of the first attempt: inputs there to
            start, or to the end of the simulation; null where none was ready), ``state`` (finished, failed, waiting, running
            at the end; a finished job's outputs may still be on their way: ``overtime`` is null).
        queues: One row per seed and queue, sorted, in the period: ``seed, panda_queue, used_core_s, capacity_core_s,
            utilisation`` (null without capacity), ``n_jobs`` (judged jobs last there).
    """

    shows = Shows(
        about="simulated jobs, one row per seed and job",
        columns=(
            "seed, pandaid, jeditaskid, computingsite, n_attempts, waiting_s [s], running_s [s], "
            "lost_core_s, state"
        ),
        keys=("seed", "pandaid"),
        next=(
            "calibrate.simulate(result.world, config=other)",
            ".tasks",
            ".queues",
            "compare(result, other)",
        ),
    )

    jobs: pl.DataFrame
    queues: pl.DataFrame
    seeds: tuple[int, ...]
    config: Config
    world: World

    def joined(self, other: Outcome) -> Outcome:
        """Return the worlds of both, which differ in their seeds alone."""
        return Outcome(
            pl.concat([self.jobs, other.jobs]).sort("seed", "pandaid"),
            pl.concat([self.queues, other.queues]).sort("seed", "panda_queue"),
            (*self.seeds, *other.seeds),
            self.config,
            self.world,
        )

    @cached_property
    def tasks(self) -> pl.DataFrame:
        """One row per seed and task, sorted.

        ``seed, jeditaskid, gshare, user_class, created_at`` (of its first job), ``n_jobs, n_finished, turnaround_s`` (until the last
        one is over, or to the end of the simulation: ``censored``), ``mean_waiting_s, transferred_bytes, lost_core_s, used_core_s``
        (of all attempts).
        """
        until = pl.lit(self.world.until, pl.Datetime("us"))
        created = pl.col("creationtime").min()
        over = pl.col("overtime").fill_null(until).max() - created
        killed = pl.col("state") == "failed"  # its last attempt is among the lost ones
        kept = pl.when(killed).then(0.0).otherwise(pl.col("running_s") * pl.col("corecount"))
        return (
            self.jobs.filter(pl.col("jeditaskid").is_not_null())
            .group_by("seed", "jeditaskid", maintain_order=True)
            .agg(
                pl.col("gshare", "user_class").first(),
                created_at=created,
                n_jobs=pl.len().cast(pl.Int64),
                n_finished=(pl.col("state") == "finished").sum().cast(pl.Int64),
                turnaround_s=over.dt.total_microseconds() / pl.lit(SECOND_US),
                censored=pl.col("overtime").null_count() > 0,
                mean_waiting_s=pl.col("waiting_s").mean(),
                transferred_bytes=pl.col("transferred_bytes").sum(),
                lost_core_s=pl.col("lost_core_s").sum(),
                used_core_s=(pl.col("lost_core_s") + kept).sum(),
            )
            .sort("seed", "jeditaskid")
        )

    @cached_property
    def fairness(self) -> pl.DataFrame:
        """One row per seed and ``by`` (gshare, produsername, user_class), sorted; none where nobody is known.

        ``n`` groups, ``jain``, ``lowest`` and ``highest`` speed of a group: mean over its jobs of running / (waiting + running), of
        which one that waits to the end has 0: who starves is slow.
        """
        parts = [self._fair(by) for by in ("gshare", "produsername", "user_class")]
        return pl.concat(parts).sort("seed", "by")

    def _fair(self, by: str) -> pl.DataFrame:
        there = pl.col("waiting_s") + pl.col("running_s")
        # null where nobody has waited or run yet
        value = (pl.col("running_s") / there).filter(there > 0).mean()
        known = self.jobs.filter(pl.col(by).is_not_null())
        groups = known.group_by("seed", by, maintain_order=True).agg(value=value)
        groups = groups.drop_nulls("value").sort("seed", by)
        rows = []
        for (seed,), part in groups.group_by(["seed"], maintain_order=True):
            values = part["value"].to_numpy()
            rows.append((seed, by, len(values), jain(values), values.min(), values.max()))
        kinds = [pl.Int64, pl.String, pl.Int64, pl.Float64, pl.Float64, pl.Float64]
        names = ["seed", "by", "n", "jain", "lowest", "highest"]
        return pl.DataFrame(rows, schema=dict(zip(names, kinds, strict=True)), orient="row")

    def headline(self) -> str:
        """Return what it says, in a line."""
        by = dict(self.jobs["state"].value_counts().iter_rows())
        counts = ", ".join(f"{by.get(name, 0):,} {name}" for name in STATES.categories)
        return f"jobs of {len(self.seeds)} simulations, one per seed: {counts}"


def run(world: World, *, config: Config | None = None, seeds: Sequence[int] = (1,)) -> Outcome:
    """Simulate the period under settings.

    Jobs wait at their queue from their ready time on. A pilot is sent for each, comes after a start-up delay, and takes a slot once
    one is free; it runs whose turn it is then of the jobs with so many cores: priority (higher first), ready time, pandaid
    (:class:`.QueueRules`). A job that needs more cores than its queue ever has waits for ever and holds nobody
    up. Where a queue shrinks below what is running, running jobs go on and nothing starts.

    An attempt ends after the true wall time, or is killed: at the smaller of the job's and the queue's limit of wall
    time; or, if the job's peak is above the smaller of its and the queue's limit of memory, at a fraction of its wall
    time drawn evenly from 0 to 1; whichever comes first (memory, if both come at once). A killed job tries again.

    Where the brokerage places jobs, at every cycle the queues stand where they are; its own rules decide once for all tasks
    with jobs that have no queue, in all worlds: the jobs made in the coming cycle, those that found no candidate before,
    killed ones that try again and those taken back. Each job draws one of its task's candidates by their shares (in the order
    of the queue's name). It waits at the queue from when it was made and its inputs are there. Timeouts and fast rebrokerage,
    asked at every cycle, take jobs back that wait too long: the brokerage places them again at once, by its rules as they stand
    then. All tasks of a cycle see the same numbers of jobs.

    Every draw depends on the seed, the job and how often it was placed or tried alone: common random numbers under any settings.

    Args:
        world: From :func:`of_archive` or :func:`of_tables`.
        config: The settings; None: those that ruled in the world. A history is read at the beginning of the period.
        seeds: One world each, 0 or more; the same seed gives the same world, alone or among others.

    Raises:
        ConfigError: No seeds, negative or repeated ones; settings that no rule can work with.
    """
    return next(run_each(world, [config], seeds=seeds))


def run_each(
    world: World, configs: Sequence[Config | None], *, seeds: Sequence[int] = (1,)
) -> Iterator[Outcome]:
    """Simulate the period under several settings side by side, which costs a part of one after the other; see :func:`run`."""
    wanted = tuple(int(seed) for seed in seeds)
    loop = Loop(world, configs, wanted)
    loop.run()
    start, end = micros(world.start), micros(world.end)
    judged = np.flatnonzero((world.created >= start) & (world.created < end))
    own = world.jobs[pl.Series(judged)]
    own = own.with_columns(user_classes(own))
    for number, config in enumerate(loop.configs):
        worlds = list(zip(wanted, loop.of_setting(number), strict=True))
        jobs = pl.concat([_jobs(world, copy, judged, own, seed) for seed, copy in worlds])
        used = pl.concat([_used(world, copy, start, end, seed) for seed, copy in worlds])
        counted = jobs.group_by("seed", panda_queue="computingsite").agg(n_jobs=pl.len())
        part = pl.col("used_core_s") / pl.col("capacity_core_s")
        queues = used.join(counted, on=["seed", "panda_queue"], how="left").select(
            *("seed", "panda_queue", "used_core_s", "capacity_core_s"),
            utilisation=pl.when(pl.col("capacity_core_s") > 0).then(part),
            n_jobs=pl.col("n_jobs").fill_null(0).cast(pl.Int64),
        )
        yield Outcome(jobs, queues.sort("seed", "panda_queue"), wanted, config, world)


def user_classes(jobs: pl.DataFrame) -> pl.Series:
    """Return ``user_class`` of jobs, which depends on no setting; null for jobs of no user.

    ``group``: made for a working group. Of other users, those with most jobs, down to where they have half of all together,
    are ``large``, the others ``small``.
    """
    users = (pl.col("prodsourcelabel") == LABEL) & pl.col("produsername").is_not_null()
    alone = users & pl.col("workinggroup").is_null()
    ranked = (
        jobs.filter(alone)
        .group_by("produsername")
        .len("n")
        .sort("n", "produsername", descending=[True, False])
    )
    before = pl.col("n").cum_sum() - pl.col("n")
    large = ranked.filter(before < pl.col("n").sum() / 2)["produsername"]
    named = (
        pl.when(users & pl.col("workinggroup").is_not_null())
        .then(pl.lit("group"))
        .when(alone & pl.col("produsername").is_in(large.implode()))
        .then(pl.lit("large"))
        .when(alone)
        .then(pl.lit("small"))
    )
    return jobs.select(user_class=named).to_series()


def attempts(copy: Copy) -> pl.DataFrame:
    """Return the attempts of a world, see :attr:`.loop.Copy.attempts`, as columns."""
    every = copy.attempts
    return pl.DataFrame({name: every[name] for name in LOGGED.names or ()})


def _jobs(world: World, copy: Copy, judged: IntArray, own: pl.DataFrame, seed: int) -> pl.DataFrame:
    """Return the judged jobs of a world; ``own``: what they are."""
    every, row = attempts(copy), np.full(len(world.created), -1)
    row[judged] = np.arange(len(judged))
    until, start, end = pl.lit(micros(world.until)), pl.col("start"), pl.col("end")
    begun = pl.min_horizontal(start, until)
    outcome = pl.col("outcome")
    killed = (end < NEVER) & (outcome != FINISHED)
    there = (pl.col("queue") >= 0) & (pl.col("ready") <= until)
    tried = (
        every.with_columns(row=row[every["job"]])
        .filter(pl.col("row") >= 0)
        .group_by("row", maintain_order=True)
        .agg(
            pl.col("queue", "outcome", "ready", "start", "end").last(),
            n_attempts=(start < NEVER).sum().cast(pl.Int64),
            waits=begun.last(),
            runs=(pl.min_horizontal(end, until) - begun).last(),
            lost=(end - start).filter(killed).sum(),
            first_queue=pl.when(there).then("queue").otherwise(-1).first(),
            first_wait=pl.when(there).then(begun - pl.col("ready")).first(),
        )
        .sort("row")
    )
    gone, cores = copy.gone[judged], copy.state.work["cores"][judged]
    states = {FINISHED: "finished", RUNS: "running", WAITS: "waiting"}
    return own.hstack(tried).select(
        pl.lit(seed, pl.Int64).alias("seed"),
        *("pandaid", "jeditaskid", "gshare", "produsername", "user_class"),
        corecount=cores,
        brokered="brokered",
        computingsite=names_of(world, tried["queue"]),
        n_attempts="n_attempts",
        n_moves=copy.state.attempt["moves"][judged],
        creationtime="creationtime",
        readytime=pl.when(pl.col("queue") >= 0).then(instant(pl.col("ready"))),
        starttime=instant(start),
        endtime=instant(end),
        overtime=instants(np.where(gone <= micros(world.until), gone, NEVER)),
        waiting_s=_seconds(tried["waits"] - world.created[judged]),
        transfer_s=copy.mover.spent[judged] / SECOND_US,
        running_s=_seconds(tried["runs"]),
        transferred_bytes=copy.mover.moved[judged],
        lost_core_s=_seconds(tried["lost"] * cores),
        first_site=names_of(world, tried["first_queue"]),
        first_wait_s=_seconds(tried["first_wait"]),
        state=outcome.replace_strict(states, default="failed", return_dtype=pl.String).cast(STATES),
    )


def _seconds(micros: pl.Series) -> pl.Series:
    """Return seconds, correctly rounded: Polars multiplies by the inverse of a number."""
    return pl.Series(micros.to_numpy() / SECOND_US, nan_to_null=True)


def names_of(world: World, queue: pl.Series) -> pl.Series:
    """Return the names of queues, null for -1."""
    return world.queues["panda_queue"].gather(queue.set(queue < 0, None))


def _used(world: World, copy: Copy, start: int, end: int, seed: int) -> pl.DataFrame:
    """Return the core seconds that every queue had and used in the period."""
    every = copy.attempts
    lasts = np.clip(every["end"], start, end) - np.clip(every["start"], start, end)
    used = np.zeros(world.queues.height, np.int64)
    np.add.at(used, every["queue"], lasts * copy.state.work["cores"][every["job"]])
    until = pl.col("time").shift(-1).over("queue", order_by="time").fill_null(end)
    there_us = (until.clip(upper_bound=end) - pl.col("time").clip(upper_bound=end)) * pl.col(
        "slots"
    )
    there = slots_from(world, start).group_by("queue", maintain_order=True).agg(us=there_us.sum())
    return world.queues.select(
        pl.lit(seed, pl.Int64).alias("seed"),
        "panda_queue",
        used_core_s=pl.Series(used / SECOND_US),
        capacity_core_s=there["us"] / SECOND_US,
    )


def jain(values: FloatArray) -> float:
    """Return Jain's index of fairness: (sum x)^2 / (n sum x^2), 1 when all are equal, 1/n when one has all; NaN of nothing.

    Source: Jain, Chiu, Hawe, DEC Research Report TR-301 (1984).

    Example:
        >>> jain(np.array([1.0, 1.0, 1.0, 1.0])), jain(np.array([1.0, 0.0, 0.0, 0.0]))
        (1.0, 0.25)
    """
    square = float((values**2).sum())
    return float(values.sum()) ** 2 / (len(values) * square) if square > 0 else float("nan")
