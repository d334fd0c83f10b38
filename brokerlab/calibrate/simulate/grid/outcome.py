"""What a grid simulation says: jobs, tasks, queues and fairness, for every seed."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from brokerlab.brokerage.replay.userjobs import LABEL
from brokerlab.calibrate.simulate.queues import micros_of
from brokerlab.calibrate.simulate.summaries import jain
from brokerlab.calibrate.simulate.world import (
    FINISHED,
    LOG,
    NEVER,
    RUNNING,
    UNPLACED,
    WAITING,
)
from brokerlab.gdpconfig import Config
from brokerlab.numerics import FloatArray, IntArray

if TYPE_CHECKING:
    from brokerlab.calibrate.simulate.grid.loop import Copy
    from brokerlab.calibrate.simulate.grid.world import GridWorld

STATES = pl.Enum(["finished", "failed", "waiting", "running"])
_FINISHED, _FAILED, _WAITING, _RUNNING = range(4)
_US = 1_000_000


@dataclass(frozen=True)
class GridOutcome:
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

    jobs: pl.DataFrame
    queues: pl.DataFrame
    seeds: tuple[int, ...]
    config: Config
    world: GridWorld

    def joined(self, other: GridOutcome) -> GridOutcome:
        """Return the worlds of both, which differ in their seeds alone."""
        return GridOutcome(
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
                turnaround_s=over.dt.total_microseconds() / pl.lit(_US),
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

    def to_dict(self) -> dict[str, Any]:
        """Return the numbers of all worlds together."""
        by = dict(self.jobs["state"].value_counts().iter_rows())
        used, there = (
            float(self.queues[name].sum()) for name in ("used_core_s", "capacity_core_s")
        )
        return {
            "start": self.world.start.isoformat(),
            "end": self.world.end.isoformat(),
            "stage": self.world.stage,
            "seeds": list(self.seeds),
            "config": self.config.digest,
            "archive": self.world.archive_digest,
            "jobs": {name: by.get(name, 0) for name in STATES.categories},
            "utilisation": used / there if there else None,
            "mean_waiting_s": self.jobs["waiting_s"].mean(),
        }

    def _repr_html_(self) -> str:
        numbers = self.to_dict()
        said = ", ".join(f"{n:,} {name}" for name, n in numbers["jobs"].items())
        return f"<p>Simulated with {len(self.seeds)} seeds: {said}.</p>"


def outcome_of(
    world: GridWorld, copies: list[Copy], seeds: tuple[int, ...], config: Config
) -> GridOutcome:
    """Put what the worlds did into tables."""
    judged = np.flatnonzero(
        (world.arrays.created >= micros_of(world.start))
        & (world.arrays.created < micros_of(world.end))
    )
    own = world.jobs[pl.Series(judged)]
    own = own.with_columns(user_classes(own))
    jobs = [_jobs(world, copy, seed, judged, own) for seed, copy in zip(seeds, copies, strict=True)]
    frame = pl.concat(jobs)
    counted = frame.group_by("seed", panda_queue="computingsite").agg(n_jobs=pl.len())
    queues = pl.concat(
        [_queues(world, copy, seed) for seed, copy in zip(seeds, copies, strict=True)]
    )
    there = _capacity(world)
    used = queues.join(there, on="panda_queue", how="left").join(
        counted, on=["seed", "panda_queue"], how="left"
    )
    summed = used.with_columns(
        pl.col("n_jobs").fill_null(0).cast(pl.Int64),
        utilisation=pl.when(pl.col("capacity_core_s") > 0).then(
            pl.col("used_core_s") / pl.col("capacity_core_s")
        ),
    ).select(
        "seed", "panda_queue", "used_core_s", "capacity_core_s", "utilisation", "n_jobs"
    )  # fmt: skip
    return GridOutcome(frame, summed.sort("seed", "panda_queue"), seeds, config, world)


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


def _jobs(
    world: GridWorld, copy: Copy, seed: int, judged: IntArray, own: pl.DataFrame
) -> pl.DataFrame:
    """Return the judged jobs of a world; ``own``: what they are."""
    until = micros_of(world.until)
    attempt, work = copy.state.world.attempt[judged], copy.state.world.work[judged]
    status, outcome = attempt["status"], attempt["outcome"]
    log = copy.state.world.log[: int(copy.state.world.events.counters[LOG])]
    n = len(world.arrays.created)
    ended = np.bincount(log["job"], minlength=n)[judged]
    lost = np.zeros(n, np.int64)
    killed = log["outcome"] != FINISHED
    core_us = (log["end"] - log["start"]) * copy.state.world.work["cores"][log["job"]]
    np.add.at(lost, log["job"][killed], core_us[killed])
    end = np.full(n, NEVER)
    end[log["job"]] = log["end"]  # the last one stays: the log is in the order of time
    end = np.where(
        (status == WAITING) | (status == UNPLACED) | (status == RUNNING), NEVER, end[judged]
    )
    start = np.where((status == WAITING) | (status == UNPLACED), NEVER, attempt["start"])
    state = np.where(outcome == FINISHED, _FINISHED, _FAILED)
    state[(status == WAITING) | (status == UNPLACED)] = _WAITING
    state[status == RUNNING] = _RUNNING
    gone = copy.gone[judged]
    created = world.arrays.created[judged]
    ran = np.where(start < NEVER, np.minimum(end, until) - np.where(start < NEVER, start, 0), 0)
    queue = attempt["queue"]
    first_queue, first_wait = _first(copy, judged, until)
    numbers = pl.DataFrame(
        {
            "first_wait_s": pl.Series(first_wait / _US).fill_nan(None),
            "n_attempts": ended + (status == RUNNING),
            "n_moves": attempt["moves"],
            "readytime": np.where(status == UNPLACED, NEVER, attempt["ready"]),
            "starttime": start,
            "endtime": end,
            "overtime": np.where(gone <= until, gone, NEVER),
            "waiting_s": (np.minimum(start, until) - created) / _US,
            "transfer_s": copy.mover.spent[judged] / _US,
            "running_s": ran / _US,
            "transferred_bytes": copy.mover.moved[judged],
            "lost_core_s": lost[judged] / _US,
            "corecount": work["cores"],
        }
    ).with_columns(
        pl.when(pl.col(name) < NEVER).then(name).cast(pl.Datetime("us")).alias(name)
        for name in ("readytime", "starttime", "endtime", "overtime")
    )
    sites = pl.concat([world.arrays.queue_names, pl.Series([None], dtype=pl.String)])
    labels = own.select(
        pl.lit(seed, pl.Int64).alias("seed"),
        *("pandaid", "jeditaskid", "gshare", "produsername", "user_class", "brokered"),
        computingsite=sites.gather(np.where(queue >= 0, queue, len(sites) - 1)),
        first_site=sites.gather(np.where(first_queue >= 0, first_queue, len(sites) - 1)),
        creationtime="creationtime",
        state=pl.Series(state, dtype=pl.UInt8).cat.to(STATES),
    )
    return labels.hstack(numbers).select(
        *("seed", "pandaid", "jeditaskid", "gshare", "produsername", "user_class", "corecount"),
        "brokered",
        *("computingsite", "n_attempts", "n_moves", "creationtime", "readytime", "starttime"),
        *("endtime", "overtime", "waiting_s", "transfer_s", "running_s", "transferred_bytes"),
        *("lost_core_s", "first_site", "first_wait_s", "state"),
    )


def _first(copy: Copy, judged: IntArray, until: int) -> tuple[IntArray, FloatArray]:
    """Return the queue of the first attempt of jobs (-1: none), and its wait [us] (NaN: it never was ready)."""
    world = copy.state.world
    attempt, n = world.attempt, len(world.attempt)
    log = world.log[: int(world.events.counters[LOG])]
    queue, wait = np.full(n, -1), np.full(n, np.nan)
    now = (attempt["number"] == 1) & (attempt["queue"] >= 0) & (attempt["ready"] <= until)
    began = np.where(attempt["status"] == WAITING, until, attempt["start"])
    queue[now], wait[now] = attempt["queue"][now], (began - attempt["ready"])[now]
    first = log[log["number"] == 1]
    queue[first["job"]], wait[first["job"]] = first["queue"], first["start"] - first["ready"]
    return queue[judged], wait[judged]


def _queues(world: GridWorld, copy: Copy, seed: int) -> pl.DataFrame:
    """Return the core seconds that every queue used in the period."""
    start, end = micros_of(world.start), micros_of(world.end)
    state = copy.state.world
    log = state.log[: int(state.events.counters[LOG])]
    running = np.flatnonzero(state.attempt["status"] == RUNNING)
    began = np.concatenate((log["start"], state.attempt["start"][running]))
    ended = np.concatenate((log["end"], np.full(len(running), end)))
    queue = np.concatenate((log["queue"], state.attempt["queue"][running]))
    cores = state.work["cores"][np.concatenate((log["job"], running))]
    used = np.zeros(len(world.arrays.queue_names), np.int64)
    np.add.at(used, queue, (np.clip(ended, start, end) - np.clip(began, start, end)) * cores)
    return pl.DataFrame(
        {"panda_queue": world.arrays.queue_names, "used_core_s": used / _US}
    ).select(pl.lit(seed, pl.Int64).alias("seed"), "panda_queue", "used_core_s")


def _capacity(world: GridWorld) -> pl.DataFrame:
    """Return the core seconds that every queue had in the period."""
    whole = [pl.lit(instant, pl.Datetime("us")) for instant in (world.start, world.end)]
    base = world.queues.select(
        "panda_queue", ts=pl.lit(world.start, pl.Datetime("us")), slots="slots"
    )
    rows = world.capacity.with_columns(pl.col("ts").clip(lower_bound=whole[0]))
    steps = (
        pl.concat([base, rows.select("panda_queue", "ts", "slots")])
        .unique(["panda_queue", "ts"], keep="last", maintain_order=True)
        .sort("panda_queue", "ts")
    )
    until = pl.col("ts").shift(-1).over("panda_queue", order_by="ts").fill_null(whole[1])
    lasts = (until.clip(*whole) - pl.col("ts").clip(*whole)).dt.total_microseconds()
    return steps.group_by("panda_queue").agg(
        capacity_core_s=(lasts * pl.col("slots")).sum() / pl.lit(_US)
    )
