"""A run: queues go on to the next brokerage, the brokerage looks and decides, jobs travel to where they are sent.

Data travel over links that serve one transfer after the other: inputs to queues, outputs to nuclei (`Mover`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, replace

import numpy as np
import polars as pl

from brokerlab.brokerage.engine.pairs import Lazy, Plans
from brokerlab.calibrate.simulation import kernel
from brokerlab.calibrate.simulation.census import CENSUS, OVER, Users, look, tables_of
from brokerlab.calibrate.simulation.patience import Patience, take_back
from brokerlab.calibrate.simulation.state import (
    DONE,
    FINISHED,
    LOG,
    LOGGED,
    NEVER,
    RUNNING,
    RUNS,
    WAITS,
    Records,
    State,
    micros,
    state_of,
)
from brokerlab.calibrate.simulation.world import World
from brokerlab.compiled import compiled
from brokerlab.errors import ConfigError
from brokerlab.gdpconfig import Config
from brokerlab.lifecycle.timeouts import TimeoutRules
from brokerlab.numerics import BoolArray, FloatArray, IntArray, repeated


@dataclass
class Mover:
    """The links of a world, inputs and outputs apart, and what was moved for each job.

    Attributes:
        inputs_free: (links,) from when on each is free for inputs [us], ``outputs_free`` for outputs.
        moved: (jobs,) bytes that travelled for it.
        spent: (jobs,) time from its placements to its inputs being there [us].
    """

    world: World
    inputs_free: IntArray
    outputs_free: IntArray
    moved: IntArray
    spent: IntArray

    @classmethod
    def of(cls, world: World) -> Mover:
        """Let nothing be on its way."""
        links = len(world.arrays.us_per_byte) if world.transfers.mode == "links" else 0
        free = np.full(links, np.iinfo(np.int64).min)
        nothing = np.zeros(world.jobs.height, np.int64)
        return cls(world, free, free.copy(), nothing, nothing.copy())

    def parted(self) -> Mover:
        """Return links and numbers of its own that begin as these are."""
        arrays = (self.inputs_free, self.outputs_free, self.moved, self.spent)
        return Mover(self.world, *(array.copy() for array in arrays))

    def bring_inputs(self, job: IntArray, queue: IntArray, asked: IntArray) -> IntArray:
        """Return when the inputs of jobs, which ask from ``asked`` on and are served in this order, are at their queues [us]."""
        arrays, mode = self.world.arrays, self.world.transfers.mode
        if mode == "observed":
            self.spent[job] += arrays.prepared[job]
            return asked + arrays.prepared[job]
        if mode == "none" or not arrays.lacking.size:
            return asked
        task, site = arrays.task[job], arrays.site[queue]
        part = np.where(task >= 0, arrays.lacking[task, queue], 0.0)
        bytes_ = np.round(part * arrays.input_bytes[job]).astype(np.int64)
        source = np.where(task >= 0, arrays.source[task, site], -1)
        there = self._through(source, site, bytes_, asked, job, self.inputs_free)
        self.spent[job] += there - asked
        return there

    def send_outputs(self, state: State, log: Records, gone: IntArray) -> None:
        """Send off the outputs of the attempts that have ended, and fill in when each job's have arrived (``gone``) [us]."""
        job, end = log["job"].copy(), log["end"].copy()
        over = state.attempt["status"][job] == DONE
        over &= state.attempt["number"][job] == log["number"]
        gone[job[over]] = end[over]
        if self.world.transfers.mode != "links":
            return
        own = np.flatnonzero(over & (log["outcome"] == FINISHED))
        order = own[np.lexsort((job[own], end[own]))]
        job, end, queue = job[order], end[order], log["queue"][order]
        arrays = self.world.arrays
        site, home = arrays.site[queue], arrays.home[job]
        gone[job] = self._through(site, home, arrays.output_bytes[job], end, job, self.outputs_free)

    def _through(
        self,
        source: IntArray,
        target: IntArray,
        bytes_: IntArray,
        asked: IntArray,
        job: IntArray,
        free: IntArray,
    ) -> IntArray:
        """Send bytes from site to site; what stays at a site, or is nowhere, takes no time."""
        there, arrays = asked.copy(), self.world.arrays
        far = np.flatnonzero((source >= 0) & (target >= 0) & (source != target) & (bytes_ > 0))
        link = source[far] * len(arrays.sites) + target[far]
        lasts = np.round(bytes_[far] * arrays.us_per_byte[link]).astype(np.int64)
        there[far] = queue_up(link, asked[far], lasts, free)
        self.moved[job[far]] += bytes_[far]
        return there


@compiled
def queue_up(link: IntArray, asked: IntArray, lasts: IntArray, free: IntArray) -> IntArray:
    """Let transfers, in this order, pass their links: ``end = max(asked, end before) + lasts`` [us]; ``free`` is changed."""
    end = np.empty(len(link), np.int64)
    for row in range(len(link)):
        begin = max(asked[row], free[link[row]])
        end[row] = begin + lasts[row]
        free[link[row]] = end[row]
    return end


@dataclass
class Copy:
    """One of the simulated worlds, with its own seed.

    Attributes:
        settings: Numbers of the settings under which everything went alike so far.
        placed: (jobs,) when it was placed last [us].
        gone: (jobs,) when the outputs of a job have arrived [us].
        last_start: (queues,) last start of a job [us], -1 before.
        live: Jobs that are at queues or on their way, by place in the order of making ...
        made: ... of those before this place.
        unplaced: Jobs that ask for a queue.
        logged: Attempts in the log that the links know of.
    """

    state: State
    mover: Mover
    placed: IntArray
    gone: IntArray
    last_start: IntArray
    live: IntArray
    unplaced: IntArray
    made: int = 0
    logged: int = 0
    settings: tuple[int, ...] = (0,)

    @classmethod
    def of(cls, world: World, seed: int, settings: Sequence[int] = (0,)) -> Copy:
        """Set up a world; jobs with a queue of their own wait there from the beginning."""
        state = state_of(world, seed)
        kernel.announce_all(state, np.flatnonzero(state.attempt["queue"] >= 0))
        return cls(
            state,
            Mover.of(world),
            placed=world.created.copy(),
            gone=np.full(len(state.work), NEVER),
            last_start=np.full(world.queues.height, -1),
            live=np.empty(0, np.int64),
            unplaced=np.empty(0, np.int64),
            settings=tuple(settings),
        )

    def parted(self, settings: Sequence[int]) -> Copy:
        """Return a world of some of its settings, in which everything went as in this one so far."""
        log = np.empty_like(self.state.log)
        log[: len(self.log)] = self.log
        return replace(
            self,
            state=deepcopy(self.state._replace(log=log[:0]))._replace(log=log),
            mover=self.mover.parted(),
            placed=self.placed.copy(),
            gone=self.gone.copy(),
            last_start=self.last_start.copy(),
            settings=tuple(settings),
        )

    @property
    def log(self) -> Records:
        """The attempts that have ended, in the order of time."""
        return self.state.log[: int(self.state.events.counters[LOG])]

    @property
    def attempts(self) -> Records:
        """All attempts: those that have ended, in the order of time, then the open ones of jobs that are not done.

        An open one has the outcome `RUNS`, `WAITS` (queue -1: without a place), and times of `NEVER` that are not yet.
        """
        now = self.state.attempt
        rows = np.flatnonzero(now["status"] != DONE)
        runs = now["status"][rows] == RUNNING
        still = np.empty(len(rows), LOGGED)
        for name in ("number", "queue", "ready"):
            still[name] = now[name][rows]
        still["job"], still["end"] = rows, NEVER
        still["start"] = np.where(runs, now["start"][rows], NEVER)
        still["outcome"] = np.where(runs, RUNS, WAITS)
        return np.concatenate((self.log, still))

    def advance(self, now: int) -> None:
        """Let the queues run up to an instant [us], and send off the outputs of what ended."""
        kernel.advance(self.state, now)
        ended = self.log[self.logged :]
        self.mover.send_outputs(self.state, ended, self.gone)
        np.maximum.at(self.last_start, ended["queue"], ended["start"])
        self.logged += len(ended)

    def ended(self, since: int) -> Records:
        """The attempts that have ended since an instant [us]."""
        return self.log[np.searchsorted(self.log["end"], since) :]

    def recent_starts(self, since: int) -> tuple[IntArray, IntArray]:
        """Return when and where jobs started since an instant [us], with some that started before."""
        runs = self.state.attempt[self.state.attempt["status"] == RUNNING]
        both = (self.ended(since), runs)
        return (
            np.concatenate([part["start"] for part in both]),
            np.concatenate([part["queue"] for part in both]),
        )


@dataclass(frozen=True)
class Group:
    """Worlds whose settings say the same of waiting and of users; without ``users`` where no brokerage of users is asked."""

    worlds: list[int]
    patience: Patience
    users: Users | None

    def of(self, rows: pl.DataFrame) -> pl.DataFrame:
        """Return the jobs of its worlds."""
        return rows.filter(pl.col("world").is_in(self.worlds))


class Loop:
    """All worlds in lockstep: one look and one decision for all of them at every cycle.

    Settings of a group begin with one world for every seed. It parts where they place jobs otherwise: until then a simulation of
    each would be the same.
    """

    def __init__(
        self,
        world: World,
        configs: Sequence[Config | None] = (None,),
        seeds: Sequence[int] = (1,),
    ) -> None:
        """Set the worlds up; arguments and errors as :func:`.outcome.run_each`."""
        if not seeds or min(seeds) < 0 or len(set(seeds)) < len(seeds):
            raise ConfigError(f"seeds are {list(seeds)}: name one or more, each once, from 0")
        if not configs:
            raise ConfigError("no settings: name one or more")
        given = [world.config if config is None else config for config in configs]
        self.configs = [one.at(world.start) if one.has_history else one for one in given]
        self.world = world
        self.seeds = tuple(seeds)
        self.begin, self.until = micros(world.begin), micros(world.until)
        self.step = micros(world.begin + world.cycle) - self.begin
        if not world.brokered:
            every = range(len(self.configs))
            self.copies = [Copy.of(world, seed, every) for seed in seeds]
            return
        self.arrays = world.arrays
        self.standing = world.standing.with_config(*self.configs)
        self.plans = Plans()
        self.copies = []
        self.groups = self._groups()
        self.created, self.order = world.created, self.arrays.order
        self.made, self.turn = self.created[self.order], np.argsort(self.order)
        self.asking = np.zeros((len(self.arrays.tasks), len(self.copies)), np.int64)
        slow = world.queues["slowness"]
        self.slowness = None if slow.null_count() == slow.len() else slow.fill_null(1.0).to_numpy()
        self.need = self.copies[0].state.work["wall"].copy()
        empty = pl.DataFrame(schema={"workqueue_id": pl.Int64, "queue_name": pl.String})
        self.resource = world.tables.get("resource_work_queues", empty)

    def run(self) -> None:
        """Run to the end; where the brokerage places no job, in one step."""
        now = self.begin
        while self.world.brokered and now < self.until:
            for copy in self.copies:
                copy.advance(now)
            self._broker(now)
            now += self.step
        for copy in self.copies:
            copy.advance(self.until)

    def of_setting(self, number: int) -> list[Copy]:
        """Return the worlds of a setting, by seed."""
        own = {copy.state.settings.seed: copy for copy in self.copies if number in copy.settings}
        return [own[seed] for seed in self.seeds]

    def ended(self, worlds: Iterable[int], asked: BoolArray, since: int) -> pl.DataFrame:
        """Return attempts that have ended since an instant [us]: ``world, job, computingsite, jobstatus, end`` [us].

        ``asked`` says of every job whether its attempts are wanted.
        """
        parts = []
        for number in worlds:
            log = self.copies[number].ended(since)
            log = log[asked[log["job"]]]
            part = pl.DataFrame({name: log[name] for name in ("job", "queue", "outcome", "end")})
            parts.append(part.select(pl.lit(number, pl.Int64).alias("world"), pl.all()))
        over = pl.concat(parts)
        return over.select(
            *("world", "job"),
            computingsite=self.arrays.queue_names.gather(over["queue"]),
            jobstatus=OVER.gather((over["outcome"] != FINISHED).cast(pl.Int64)),
            end="end",
        )

    def _groups(self) -> list[Group]:
        """Put settings together that may be asked together, and set up their worlds."""
        world, analysis = self.world, self.world.stage == "analysis"
        alike: dict[object, tuple[Patience, list[int]]] = {}
        for number, config in enumerate(self.configs):
            patience = Patience.of(world, config, TimeoutRules(world.rules))
            key = config.digest if analysis else patience.key
            alike.setdefault(key, (patience, []))[1].append(number)
        groups = []
        for patience, numbers in alike.values():
            users = Users.of(world, patience.config) if analysis else None
            first = len(self.copies)
            self.copies += [Copy.of(world, seed, numbers) for seed in self.seeds]
            groups.append(Group([*range(first, len(self.copies))], patience, users))
        return groups

    def _broker(self, now: int) -> None:
        """Look at all worlds, move who waited too long, place the jobs that have no queue."""
        result = self._look(now)
        epoch = max(int(np.searchsorted(self.arrays.epoch_at, now, side="right")) - 1, 0)
        snapshot = int(self.world.epochs["snapshot"][epoch])
        if take_back(self, result, now, snapshot):
            result = self._look(now)
        asked = np.flatnonzero(self.asking)
        if not len(asked):
            return
        wanted = np.flatnonzero(self.asking.any(axis=1))
        if self.world.stage == "analysis":
            parts = [
                each.users.tables(
                    self, each.of(result), np.array(each.worlds), wanted, now, snapshot
                )
                for each in self.groups
                if each.users is not None
            ]
            state = {name: pl.concat(part[name] for part in parts) for name in parts[0]}
        else:
            state = tables_of(result, self.arrays, wanted, self.resource, self.plans)
        self._place(self._part(self._decide(asked, state, epoch)), now)

    def _look(self, now: int) -> pl.DataFrame:
        """Take the census of every world; who has no place asks for one."""
        arrays, last, n = self.arrays, int(np.searchsorted(self.made, now + self.step)), 0
        for copy in self.copies:
            copy.live = np.sort(np.concatenate((copy.live, np.arange(copy.made, last))))
            copy.made = last
        room = [len(copy.live) for copy in self.copies]
        result = np.empty((len(CENSUS), sum(room)), np.int64)
        due = np.empty(max(room), np.int64)
        for number, copy in enumerate(self.copies):
            n, n_due, n_live = look(
                number, copy.state.attempt, self.order, self.created, arrays.brokered, copy.placed,
                copy.gone, copy.last_start, copy.live, now, now + self.step, n, result, due,
            )  # fmt: skip
            copy.live, job = copy.live[:n_live], due[:n_due]
            copy.unplaced = np.concatenate((copy.unplaced, job))
            self.asking[:, number] += np.bincount(arrays.task[job], minlength=len(self.asking))
        return pl.DataFrame(dict(zip(CENSUS, result[:, :n], strict=True)))

    def _decide(
        self, asked: IntArray, state: Mapping[str, pl.DataFrame], epoch: int
    ) -> pl.DataFrame:
        """Ask the rules once for pairs of task and world under each of its settings.

        ``task, world, setting, queue, share``, by these and name of the queue.
        """
        n = np.array([len(copy.settings) for copy in self.copies])
        settings = np.concatenate([copy.settings for copy in self.copies])
        first = np.cumsum(n) - n
        row, place = repeated(first[asked % len(n)], n[asked % len(n)])
        task, world = np.divmod(asked[row], len(n))
        wanted = pl.DataFrame(
            {
                "task": task,
                "state": world,
                "setting": settings[place],
                "world": world * len(self.configs) + settings[place],
                "jeditaskid": self.arrays.tasks[task],
                "snapshot": self.arrays.snapshot[epoch, task],
            }
        )
        result = self.standing.decide(wanted.drop("task"), state, hopeless=False)
        frames = {"queues": result.queues, "wanted": wanted}
        return self.plans.frame("placed", frames, self._places)

    def _places(self, lazy: Lazy) -> pl.LazyFrame:
        """Return the places of the world among the queues that were decided on, with their shares."""
        return (
            lazy["queues"].with_columns(pl.col("panda_queue").cast(pl.String))
            .join(lazy["wanted"], on=["jeditaskid", "snapshot", "world"])
            .join(self.arrays.candidates.lazy(), on="panda_queue")
            .filter(pl.col("queue") >= 0)
            .sort("task", "world", "panda_queue")
            .select(
                "task", "setting", "queue",
                pl.col("share") / pl.col("share").sum().over("task", "world"),
                world="state",
            )
        )  # fmt: skip

    def _part(self, ranked: pl.DataFrame) -> pl.DataFrame:
        """Part the worlds whose settings place jobs otherwise, and return ``pair, queue, share`` of pairs of task and world, sorted."""
        several = [number for number, copy in enumerate(self.copies) if len(copy.settings) > 1]
        asked = ranked.filter(pl.col("world").is_in(several)).partition_by(
            "world", "setting", include_key=False, maintain_order=True, as_dict=True
        )
        of_setting = np.full((len(self.copies), len(self.configs)), -1)
        for number, copy in enumerate(tuple(self.copies)):
            copy.settings, *others = _alike(number, copy.settings, asked)
            of_setting[number, copy.settings[0]] = number
            for settings in others:
                of_setting[number, settings[0]] = len(self.copies)
                self._add(number, settings)
        world = pl.Series(of_setting[ranked["world"].to_numpy(), ranked["setting"].to_numpy()])
        pairs = ranked.select("queue", "share", pair=pl.col("task") * len(self.copies) + world)
        return pairs.filter(world >= 0).sort("pair", maintain_order=True)

    def _add(self, number: int, settings: Sequence[int]) -> None:
        """Add a world of some settings of another one, which goes on as that does now."""
        group = next(each for each in self.groups if number in each.worlds)
        group.worlds.append(len(self.copies))
        self.copies.append(self.copies[number].parted(settings))
        self.asking = np.column_stack((self.asking, self.asking[:, number]))

    def _place(self, ranked: pl.DataFrame, now: int) -> None:
        """Let every job draw a candidate of its task and world by its share, and travel there."""
        ends = np.searchsorted(ranked["pair"].to_numpy(), np.arange(self.asking.size + 1))
        first, last = ends[:-1].reshape(self.asking.shape), ends[1:].reshape(self.asking.shape)
        some, share, queues = first < last, ranked["share"].to_numpy(), ranked["queue"].to_numpy()
        for number, copy in enumerate(self.copies):
            task, state = self.arrays.task[copy.unplaced], copy.state
            row = np.flatnonzero(some[:, number][task])
            job, task = copy.unplaced[row], task[row]
            times = state.attempt["number"][job] + state.attempt["moves"][job]
            drawn = kernel.placements(state.settings.seed, state.work["pandaid"][job], times)
            chosen = choose(drawn, first[task, number], last[task, number], share)
            sent = chosen >= 0
            job, ready = job[sent], state.attempt["ready"][job[sent]]
            copy.unplaced = np.delete(copy.unplaced, row[sent])
            copy.live = np.concatenate((copy.live, self.turn[job]))
            self.asking[:, number] -= np.bincount(task[sent], minlength=len(self.asking))
            asked = np.maximum(np.where(ready == NEVER, self.created[job], ready), now)
            self._send(copy, job, queues[chosen[sent]], asked)

    def _send(self, copy: Copy, job: IntArray, queue: IntArray, asked: IntArray) -> None:
        """Bring the input of jobs to their queues, where they wait from then on."""
        order = np.lexsort((job, asked))
        job, queue, asked = job[order], queue[order], asked[order]
        attempt = copy.state.attempt
        attempt["queue"][job], copy.placed[job] = queue, asked
        attempt["ready"][job] = self._arrive(copy, job, queue, asked)
        kernel.announce_all(copy.state, np.sort(job))

    def _arrive(self, copy: Copy, job: IntArray, queue: IntArray, asked: IntArray) -> IntArray:
        """Return when the inputs of jobs are at the queues that were chosen for them [us], and let them need its time."""
        if self.slowness is not None:
            wall = np.round(self.need[job] * self.slowness[queue]).astype(np.int64)
            copy.state.work["wall"][job] = wall
        return copy.mover.bring_inputs(job, queue, asked)


def _alike(
    world: int, settings: tuple[int, ...], asked: Mapping[tuple[object, ...], pl.DataFrame]
) -> list[tuple[int, ...]]:
    """Return the settings of a world, those together that place the same; ``asked``: what each of several places."""
    result: list[tuple[int, ...]] = []
    for setting in settings:
        own = asked.get((world, setting))
        for number, known in enumerate(result):
            other = asked.get((world, known[0]))
            if own is other or (own is not None and other is not None and own.equals(other)):
                result[number] = (*known, setting)
                break
        else:
            result.append((setting,))
    return result


@compiled
def choose(drawn: FloatArray, first: IntArray, last: IntArray, share: FloatArray) -> IntArray:
    """Return for every job the candidate whose part of [0, 1) its draw falls into; -1 without candidates.

    A job's candidates are ``first`` to before ``last``; ``share`` adds up to 1 over those of a task.
    """
    chosen = np.full(len(drawn), -1, np.int64)
    for row in range(len(drawn)):
        up_to = 0.0
        for candidate in range(first[row], last[row]):
            if share[candidate] <= 0.0:
                continue
            chosen[row] = candidate  # the last one, where the shares add up to a little less than 1
            up_to += share[candidate]
            if drawn[row] < up_to:
                break
    return chosen
