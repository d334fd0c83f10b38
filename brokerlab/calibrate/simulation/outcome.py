"""Simulate a world under settings of choice, and what that says: jobs, tasks, queues, fairness, attempts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import polars as pl

from brokerlab.brokerage.replaying.userjobs import LABEL
from brokerlab.calibrate.simulation.loop import Copy, Loop
from brokerlab.calibrate.simulation.state import (
    CLOCK,
    DONE,
    FINISHED,
    NEVER,
    RUNNING,
    SECOND,
    UNPLACED,
    WAITING,
    instants,
    micros,
    slots_from,
)
from brokerlab.calibrate.simulation.world import World
from brokerlab.gdpconfig import Config
from brokerlab.numerics import FloatArray, IntArray
from brokerlab.results import Result, Shows

STATES = pl.Enum(["finished", "failed", "waiting", "running"])
_FINISHED, _FAILED, _WAITING, _RUNNING = range(4)
ENDS = ("finished", "killed_walltime", "killed_memory", "running", "waiting", "travelling")
"""Outcomes of attempts; the last three are those of attempts still open at the end of the simulation."""
_RUNS, _WAITS, _TRAVELS = 3, 4, 5


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
            start, or to the end of the simulation; null where none was ready), ``state`` (finished, failed, waiting, running at the end; a finished job's
            outputs may still be on their way: ``overtime`` is null).
        queues: One row per seed and queue, sorted, in the period: ``seed, panda_queue, used_core_s, capacity_core_s,
            utilisation`` (null without capacity), ``n_jobs`` (judged jobs last there).
        seeds: Of the worlds.
        config: The settings.
        world: What was simulated.
    """

    shows = Shows(
        about="simulated jobs, one row per seed and job",
        columns={
            "seed": "",
            "pandaid": "",
            "jeditaskid": "",
            "computingsite": "",
            "n_attempts": "",
            "waiting_s": "s",
            "running_s": "s",
            "lost_core_s": "",
            "state": "",
        },
        keys=(
            "seed",
            "pandaid",
        ),
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

        ``seed, jeditaskid, gshare, user_class, n_jobs, n_finished, turnaround_s`` (first creation to the last job being over, or to
        the end of the simulation: ``censored``), ``mean_waiting_s, transferred_bytes, lost_core_s``.
        """
        until = pl.lit(self.world.until, pl.Datetime("us"))
        over = pl.col("overtime").fill_null(until).max() - pl.col("creationtime").min()
        return (
            self.jobs.filter(pl.col("jeditaskid").is_not_null())
            .group_by("seed", "jeditaskid", maintain_order=True)
            .agg(
                pl.col("gshare", "user_class").first(),
                n_jobs=pl.len().cast(pl.Int64),
                n_finished=(pl.col("state") == "finished").sum().cast(pl.Int64),
                turnaround_s=over.dt.total_microseconds() / pl.lit(SECOND),
                censored=pl.col("overtime").null_count() > 0,
                mean_waiting_s=pl.col("waiting_s").mean(),
                transferred_bytes=pl.col("transferred_bytes").sum(),
                lost_core_s=pl.col("lost_core_s").sum(),
            )
            .sort("seed", "jeditaskid")
        )

    @cached_property
    def fairness(self) -> pl.DataFrame:
        """One row per seed, ``by`` (gshare, produsername, user_class) and ``measure``, sorted; none where nobody is known.

        ``n`` groups, ``jain``, ``lowest`` and ``highest`` value of a group. ``core_s``: core seconds of last attempts;
        ``speed``: mean over finished jobs of running / (waiting + running).
        """
        parts = [
            self._fair(by, measure)
            for by in ("gshare", "produsername", "user_class")
            for measure in ("core_s", "speed")
        ]
        return pl.concat(parts).sort("seed", "by", "measure")

    def _fair(self, by: str, measure: str) -> pl.DataFrame:
        ran = self.jobs.filter(pl.col(by).is_not_null() & (pl.col("running_s") > 0))
        value = (pl.col("running_s") * pl.col("corecount")).sum()
        if measure == "speed":
            ran = ran.filter(pl.col("state") == "finished")
            value = (pl.col("running_s") / (pl.col("waiting_s") + pl.col("running_s"))).mean()
        groups = ran.group_by("seed", by, maintain_order=True).agg(value=value).sort("seed", by)
        rows = []
        for (seed,), part in groups.group_by(["seed"], maintain_order=True):
            values = part["value"].to_numpy()
            rows.append((seed, by, measure, len(values), jain(values), values.min(), values.max()))
        kinds = [pl.Int64, pl.String, pl.String, pl.Int64, pl.Float64, pl.Float64, pl.Float64]
        names = ["seed", "by", "measure", "n", "jain", "lowest", "highest"]
        return pl.DataFrame(rows, schema=dict(zip(names, kinds, strict=True)), orient="row")

    def frame(self) -> pl.DataFrame:
        """Return one row per seed and job."""
        return self.jobs

    def headline(self) -> str:
        """Return what it says, in a line."""
        by = dict(self.jobs["state"].value_counts().iter_rows())
        counts = ", ".join(f"{by.get(name, 0):,} {name}" for name in STATES.categories)
        return f"jobs of {len(self.seeds)} simulations, one per seed: {counts}"


def run(
    world: World,
    *,
    config: Config | None = None,
    seeds: Sequence[int] = (1,),
) -> Outcome:
    """Simulate the period under settings.

    Jobs wait at their queue from their ready time on, and are offered to its slots after a start-up delay, which runs while
    they wait and holds no slot. Offered jobs start in the order of priority (higher first), ready time, pandaid, as the free
    cores allow (:class:`.QueueRules`). A job that needs more cores than its queue ever has waits for ever and holds nobody
    up. Where a queue shrinks below what is running, running jobs go on and nothing starts.

    An attempt ends after the true wall time, or is killed: at the smaller of the job's and the queue's limit of wall
    time; or, if the job's peak is above the smaller of its and the queue's limit of memory, at a fraction of its wall
    time drawn evenly from 0 to 1; whichever comes first (memory, if both come at once). A killed job tries again.

    Where the brokerage places jobs, at every cycle the queues stand where they are; its own rules decide once for all tasks
    with jobs that have no queue, in all worlds: the jobs made in the coming cycle, those that found no candidate before,
    killed ones that try again and those taken back. Each job draws one of its task's candidates by their shares (in the order of the
    queue's name). It waits at the queue from when it was made and its inputs are there. Timeouts and fast rebrokerage, asked
    at every cycle, take jobs back that wait too long: the brokerage places them again at once, by its rules as they stand
    then. All tasks of a cycle see the same numbers of jobs.

    Every draw depends on the seed, the job and how often it was placed or tried alone: common random numbers under any settings.

    Args:
        world: From :func:`of_archive` or :func:`of_tables`.
        config: The settings; None: those that ruled in the world. A history is read at the beginning of the period.
        seeds: One world each, 0 or more; the same seed gives the same world, alone or among others.

    Returns:
        The outcome of every world.

    Raises:
        ConfigError: No seeds, negative or repeated ones; settings that no rule can work with.
    """
    return next(run_each(world, [config], seeds=seeds))


def run_each(
    world: World, configs: Sequence[Config | None], *, seeds: Sequence[int] = (1,)
) -> Iterator[Outcome]:
    """Simulate the period under several settings side by side, which costs a part of one after the other.

    Args:
        world: As :func:`run`.
        configs: The settings, one or more.
        seeds: As :func:`run`.

    Yields:
        What :func:`run` returns for each of the settings, in order.

    Raises:
        ConfigError: As :func:`run`, and no settings.
    """
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

    Args:
        jobs: ``prodsourcelabel, workinggroup, produsername``.
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


def _jobs(world: World, copy: Copy, judged: IntArray, own: pl.DataFrame, seed: int) -> pl.DataFrame:
    """Return the judged jobs of a world; ``own``: what they are."""
    until, log, n = micros(world.until), copy.log, len(world.created)
    attempt, cores = copy.state.attempt[judged], copy.state.work["cores"]
    status, created, gone = attempt["status"], world.created[judged], copy.gone[judged]
    waits, runs = (status == WAITING) | (status == UNPLACED), status == RUNNING
    lost, killed = np.zeros(n, np.int64), log[log["outcome"] != FINISHED]
    np.add.at(lost, killed["job"], (killed["end"] - killed["start"]) * cores[killed["job"]])
    last = np.full(n, NEVER)
    last[log["job"]] = log["end"]  # the last one stays: the log is in the order of time
    end = np.where(waits | runs, NEVER, last[judged])
    start = np.where(waits, NEVER, attempt["start"])
    ran = np.where(waits, 0, np.minimum(end, until) - attempt["start"])
    state = np.where(attempt["outcome"] == FINISHED, _FINISHED, _FAILED)
    state[waits], state[runs] = _WAITING, _RUNNING
    queue = attempt["queue"]
    first_queue, first_wait = _first(copy, judged, until)
    numbers = pl.DataFrame(
        {
            "first_wait_s": pl.Series(first_wait / SECOND).fill_nan(None),
            "n_attempts": np.bincount(log["job"], minlength=n)[judged] + runs,
            "n_moves": attempt["moves"],
            "readytime": instants(np.where(status == UNPLACED, NEVER, attempt["ready"])),
            "starttime": instants(start),
            "endtime": instants(end),
            "overtime": instants(np.where(gone <= until, gone, NEVER)),
            "waiting_s": (np.minimum(start, until) - created) / SECOND,
            "transfer_s": copy.mover.spent[judged] / SECOND,
            "running_s": ran / SECOND,
            "transferred_bytes": copy.mover.moved[judged],
            "lost_core_s": lost[judged] / SECOND,
            "corecount": cores[judged],
        }
    )
    labels = own.select(
        pl.lit(seed, pl.Int64).alias("seed"),
        *("pandaid", "jeditaskid", "gshare", "produsername", "user_class", "brokered"),
        "creationtime",
        computingsite=_names(world, queue),
        first_site=_names(world, first_queue),
        state=pl.Series(state, dtype=pl.UInt8).cat.to(STATES),
    )
    return labels.hstack(numbers).select(
        *("seed", "pandaid", "jeditaskid", "gshare", "produsername", "user_class", "corecount"),
        "brokered",
        *("computingsite", "n_attempts", "n_moves", "creationtime", "readytime", "starttime"),
        *("endtime", "overtime", "waiting_s", "transfer_s", "running_s", "transferred_bytes"),
        *("lost_core_s", "first_site", "first_wait_s", "state"),
    )


def _names(world: World, queue: IntArray) -> pl.Series:
    """Return the names of queues, null for -1."""
    rows = pl.Series(queue)
    return world.queues["panda_queue"].gather(rows.set(rows < 0, None))


def _first(copy: Copy, judged: IntArray, until: int) -> tuple[IntArray, FloatArray]:
    """Return the queue of the first attempt of jobs (-1: none), and its wait [us] (NaN: it never was ready)."""
    attempt, n = copy.state.attempt, len(copy.state.attempt)
    queue, wait = np.full(n, -1), np.full(n, np.nan)
    now = (attempt["number"] == 1) & (attempt["queue"] >= 0) & (attempt["ready"] <= until)
    began = np.where(attempt["status"] == WAITING, until, attempt["start"])
    queue[now], wait[now] = attempt["queue"][now], (began - attempt["ready"])[now]
    first = copy.log[copy.log["number"] == 1]
    queue[first["job"]], wait[first["job"]] = first["queue"], first["start"] - first["ready"]
    return queue[judged], wait[judged]


def _used(world: World, copy: Copy, start: int, end: int, seed: int) -> pl.DataFrame:
    """Return the core seconds that every queue had and used in the period."""
    log, attempt = copy.log, copy.state.attempt
    running = np.flatnonzero(attempt["status"] == RUNNING)
    began = np.concatenate((log["start"], attempt["start"][running]))
    ended = np.concatenate((log["end"], np.full(len(running), end)))
    queue = np.concatenate((log["queue"], attempt["queue"][running]))
    cores = copy.state.work["cores"][np.concatenate((log["job"], running))]
    used = np.zeros(world.queues.height, np.int64)
    np.add.at(used, queue, (np.clip(ended, start, end) - np.clip(began, start, end)) * cores)
    until = pl.col("time").shift(-1).over("queue", order_by="time").fill_null(end)
    lasts = until.clip(upper_bound=end) - pl.col("time").clip(upper_bound=end)
    there = slots_from(world, start).group_by("queue", maintain_order=True)
    return world.queues.select(
        pl.lit(seed, pl.Int64).alias("seed"),
        "panda_queue",
        used_core_s=pl.Series(used / SECOND),
        capacity_core_s=there.agg(us=(lasts * pl.col("slots")).sum())["us"] / SECOND,
    )


def attempts_of(world: World, copy: Copy) -> pl.DataFrame:
    """Return every attempt of a simulated world, sorted by pandaid and attempt; jobs without a place have none.

    Returns:
        ``pandaid``, ``attempt`` (from 1), ``computingsite``, ``readytime`` (null: inputs still travel), ``starttime`` (null:
        not started), ``endtime`` (null: not ended), ``overtime`` (of a job's last attempt: outputs have arrived),
        ``outcome`` (see :data:`ENDS`), ``waiting_s`` (from ready to start, or to the end of the simulation), ``corecount``.
    """
    log, now, end = copy.log, copy.state.attempt, int(copy.state.events.counters[CLOCK])
    made = (now["ready"] <= end) | (world.created < end)
    rows = np.flatnonzero((now["status"] == RUNNING) | ((now["status"] == WAITING) & made))
    open_ = now[rows]
    running, ready = open_["status"] == RUNNING, open_["ready"] <= end
    job = np.concatenate((log["job"], rows))
    last = (now["status"] == DONE) & (copy.gone <= end)
    over = last[log["job"]] & (now["number"][log["job"]] == log["number"])
    never = np.full(len(rows), NEVER)

    def both(ended: IntArray, still: IntArray) -> IntArray:
        return np.concatenate((ended, still))

    frame = pl.DataFrame(
        {
            "pandaid": copy.state.work["pandaid"][job],
            "attempt": both(log["number"], open_["number"]),
            "computingsite": _names(world, both(log["queue"], open_["queue"])),
            "readytime": instants(both(log["ready"], np.where(ready, open_["ready"], NEVER))),
            "starttime": instants(both(log["start"], np.where(running, open_["start"], NEVER))),
            "endtime": instants(both(log["end"], never)),
            "overtime": instants(both(np.where(over, copy.gone[log["job"]], NEVER), never)),
            "outcome": pl.Series(ENDS).gather(
                both(log["outcome"], np.where(running, _RUNS, np.where(ready, _WAITS, _TRAVELS)))
            ),
            "corecount": copy.state.work["cores"][job],
        }
    )
    until = pl.col("starttime").fill_null(instants([end])[0])
    wait = (until - pl.col("readytime")).dt.total_microseconds() / pl.lit(SECOND)
    return frame.with_columns(waiting_s=wait).sort("pandaid", "attempt")


def jain(values: FloatArray) -> float:
    """Return Jain's index of fairness: (sum x)^2 / (n sum x^2), 1 when all are equal, 1/n when one has all.

    Args:
        values: What each user or share received, 0 or more; NaN where there are none or all are 0.

    Source: Jain, Chiu, Hawe, DEC Research Report TR-301 (1984).

    Example:
        >>> jain(np.array([1.0, 1.0, 1.0, 1.0])), jain(np.array([1.0, 0.0, 0.0, 0.0]))
        (1.0, 0.25)
    """
    square = float((values**2).sum())
    return float(values.sum()) ** 2 / (len(values) * square) if square > 0 else float("nan")
