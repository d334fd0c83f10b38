"""The loop: queues run to the next brokerage, the brokerage looks and decides, jobs travel to where they are sent."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from brokerlab.calibrate.simulate import kernel as core
from brokerlab.calibrate.simulate.grid import kernel
from brokerlab.calibrate.simulate.grid.arrays import Arrays
from brokerlab.calibrate.simulate.grid.moves import Mover
from brokerlab.calibrate.simulate.grid.numbers import Census, tables_of
from brokerlab.calibrate.simulate.queues import BoolArray, State, micros_of
from brokerlab.calibrate.simulate.tables import world_of
from brokerlab.calibrate.simulate.world import LOG, NEVER, RUNNING
from brokerlab.numerics import IntArray

if TYPE_CHECKING:
    from brokerlab.calibrate.simulate.grid.patience import Patience
    from brokerlab.calibrate.simulate.grid.users import Users
    from brokerlab.calibrate.simulate.grid.world import GridWorld


@dataclass
class Copy:
    """One of the simulated worlds, with its own seed.

    Attributes:
        state: The queues.
        mover: The links.
        placed: (jobs,) when it was placed last [us].
        gone: (jobs,) when the outputs of a job have arrived [us].
        last_start: (queues,) last start of a job [us], -1 before.
        first: Place in the order of making before which all jobs are over.
        logged: Attempts in the log that the links know of.
        old: Attempts in the log that ended too long ago to be asked for.
    """

    state: State
    mover: Mover
    placed: IntArray
    gone: IntArray
    last_start: IntArray
    first: int = 0
    logged: int = 0
    old: int = 0

    def recent_starts(self, since: int) -> tuple[IntArray, IntArray]:
        """Return when and where jobs started since an instant [us], with some that started before.

        Args:
            since: The instant; never earlier than at the last call.
        """
        world = self.state.world
        log = world.log[self.old : int(world.events.counters[LOG])]
        runs = world.attempt[world.attempt["status"] == RUNNING]
        ended = np.searchsorted(log["end"], since)  # what ended before started before
        self.old += int(ended)
        both = (log[ended:], runs)
        return (
            np.concatenate([part["start"] for part in both]),
            np.concatenate([part["queue"] for part in both]),
        )


@dataclass(frozen=True)
class Pending:
    """Jobs of all worlds that the brokerage has to place; equal lengths.

    Attributes:
        world: Number of the world.
        job: Row of the job.
        ready: From when on it may have a queue [us].
    """

    world: IntArray
    job: IntArray
    ready: IntArray


class Loop:
    """All worlds in lockstep: one look and one decision for all of them at every cycle."""

    def __init__(
        self,
        world: GridWorld,
        standing: Any,
        seeds: tuple[int, ...],
        patience: Patience,
        users: Users | None = None,
    ) -> None:
        self.world, self.standing, self.patience, self.users = world, standing, patience, users
        self.arrays: Arrays = world.arrays
        self.begin, self.until = micros_of(world.begin), micros_of(world.until)
        self.step = micros_of(world.begin + world.cycle) - self.begin
        self.made = self.arrays.created[self.arrays.order]
        self.copies = [self._copy(seed) for seed in seeds]
        empty = pl.DataFrame(schema={"workqueue_id": pl.Int64, "queue_name": pl.String})
        self.resource = world.tables.get("resource_work_queues", empty)
        self.refused: list[pl.DataFrame] = []
        room = len(self.arrays.order)
        self._jobs, self._states = np.empty(room, np.int64), np.empty(room, np.int64)

    def _copy(self, seed: int) -> Copy:
        """Set up a world; jobs with a queue of their own wait there from the beginning."""
        tables = self.world.checked_tables
        begin = self.begin
        placed = self.world.jobs["readytime"].drop_nulls()
        if len(placed):
            begin = min(begin, int(placed.to_physical().to_numpy().min()))
        state = State(
            tables, world_of(tables, self.world.rules, seed, begin), begin, self.world.rules
        )
        core.announce_all(state.world, np.flatnonzero(state.world.attempt["queue"] >= 0))
        never = np.full(tables.jobs.height, NEVER)
        mover = Mover.of(self.arrays, self.world.transfers)
        return Copy(
            state, mover, self.arrays.created.copy(), never, np.full(tables.queues.height, -1)
        )

    def run(self) -> None:
        """Run to the end."""
        now = self.begin
        while now < self.until:
            self._advance(now)
            self._broker(now)
            now += self.step
        self._advance(self.until)

    def _advance(self, now: int) -> None:
        """Let the queues run up to an instant, and send off the outputs of what ended."""
        for copy in self.copies:
            world = copy.state.world
            core.advance(world, now)
            n = int(world.events.counters[LOG])
            copy.mover.send_outputs(world, copy.logged, n, copy.gone)
            ended = world.log[copy.logged : n]
            np.maximum.at(copy.last_start, ended["queue"], ended["start"])
            copy.logged = n

    def _broker(self, now: int) -> None:
        """Look at all worlds, move who waited too long, place the jobs that have no queue."""
        found, pending = self._look(now)
        epoch = max(int(np.searchsorted(self.arrays.epoch_at, now, side="right")) - 1, 0)
        snapshot = int(self.world.epochs["snapshot"][epoch])
        leaves = self.patience.act(self, found, now, snapshot)
        if leaves.any():
            found, pending = _moved(found, pending, leaves, now)
        if not len(pending.job):
            return
        task = self.arrays.task[pending.job]
        wanted, n_worlds = np.unique(task), len(self.copies)
        if self.users is not None:
            state = self.users.tables(self, found, wanted, now, snapshot)
        else:
            state = tables_of(found, self.arrays, n_worlds, wanted, self.resource)
        ranked = self._decide(task, pending, state, epoch)
        self._place(task, pending, ranked)

    def _look(self, now: int) -> tuple[Census, Pending]:
        """Take the census of every world."""
        last = int(np.searchsorted(self.made, now + self.step))
        there: list[tuple[IntArray, ...]] = []
        due: list[tuple[IntArray, ...]] = []
        for number, copy in enumerate(self.copies):
            attempt = copy.state.world.attempt
            n, copy.first = kernel.census(
                attempt, self.arrays.order, self.arrays.created, self.arrays.brokered, copy.gone,
                copy.first, last, now, self._jobs, self._states,
            )  # fmt: skip
            job, state = self._jobs[:n], self._states[:n]
            at = state != kernel.UNBROKERED
            free, job, state = job[~at], job[at], state[at]
            runs = job[state == kernel.IN_SLOTS]
            np.maximum.at(copy.last_start, attempt["queue"][runs], attempt["start"][runs])
            there.append((np.full(len(job), number), job, state, attempt["queue"][job]))
            ready = attempt["ready"][free]
            asked = np.where(ready < NEVER, ready, self.arrays.created[free])
            now_due = asked < now + self.step
            free, asked = free[now_due], np.maximum(asked[now_due], now)
            due.append((np.full(len(free), number), free, asked))
        return Census(*_joined(there)), Pending(*_joined(due))

    def _decide(
        self, task: IntArray, pending: Pending, state: Mapping[str, pl.DataFrame], epoch: int
    ) -> pl.DataFrame:
        """Ask the rules once for all tasks and worlds: ``task, world, queue, share``, by task, world and name."""
        n_worlds = len(self.copies)
        pairs = np.unique(task * n_worlds + pending.world)
        rows, worlds = pairs // n_worlds, pairs % n_worlds
        wanted = pl.DataFrame(
            {
                "jeditaskid": self.arrays.tasks[rows],
                "snapshot": self.arrays.snapshot[epoch, rows],
                "world": worlds,
            }
        )
        found = self.standing.decide(wanted, state)
        self.refused.append(found.outcomes.filter(pl.col("n_candidates") == 0))
        numbered = wanted.with_columns(pair=pl.Series(pairs))
        ranked: pl.DataFrame = (
            found.queues.with_columns(pl.col("panda_queue").cast(pl.String))
            .join(numbered, on=["jeditaskid", "snapshot", "world"])
            .join(self.arrays.candidates, on="panda_queue")
            .filter(pl.col("queue") >= 0)
            .sort("pair", "panda_queue")
            .select("pair", "queue", share=pl.col("share") / pl.col("share").sum().over("pair"))
        )
        return ranked

    def _place(self, task: IntArray, pending: Pending, ranked: pl.DataFrame) -> None:
        """Let every job draw a candidate by its share, and travel there."""
        pairs = ranked["pair"].to_numpy()
        own = task * len(self.copies) + pending.world
        first, last = np.searchsorted(pairs, own), np.searchsorted(pairs, own, side="right")
        share, queues = ranked["share"].to_numpy(), ranked["queue"].to_numpy()
        for number, copy in enumerate(self.copies):
            here = pending.world == number
            job = pending.job[here]
            world = copy.state.world
            times = world.attempt["number"][job] + world.attempt["moves"][job]
            drawn = kernel.draws(copy.state.world.settings.seed, world.work["pandaid"][job], times)
            chosen = kernel.choose(drawn, first[here], last[here], share)
            sent = chosen >= 0
            self._send(copy, job[sent], queues[chosen[sent]], pending.ready[here][sent])

    def _send(self, copy: Copy, job: IntArray, queue: IntArray, asked: IntArray) -> None:
        """Bring the input of jobs to their queues, where they wait from then on."""
        order = np.lexsort((job, asked))
        job, queue, asked = job[order], queue[order], asked[order]
        attempt = copy.state.world.attempt
        attempt["queue"][job], copy.placed[job] = queue, asked
        attempt["ready"][job] = copy.mover.bring_inputs(job, queue, asked)
        core.announce_all(copy.state.world, np.sort(job))


def _joined(parts: list[tuple[IntArray, ...]]) -> list[IntArray]:
    """Put the columns of all worlds one after the other."""
    return [np.concatenate(columns) for columns in zip(*parts, strict=True)]


def _moved(found: Census, pending: Pending, leaves: BoolArray, now: int) -> tuple[Census, Pending]:
    """Return what is at queues and what is to be placed after jobs were taken back."""
    world, job = found.world[leaves], found.job[leaves]
    kept = Census(
        *(column[~leaves] for column in (found.world, found.job, found.state, found.queue))
    )
    more = Pending(
        np.concatenate((pending.world, world)),
        np.concatenate((pending.job, job)),
        np.concatenate((pending.ready, np.full(len(job), now))),
    )
    return kept, more
