"""Waiting has an end: timeouts and fast rebrokerage take jobs back from queues where they wait in vain."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from brokerlab.brokerage.engine.pairs import Plans
from brokerlab.calibrate.simulation import kernel
from brokerlab.calibrate.simulation.census import ACTIVATED, ASSIGNED, STATUSES, by_share
from brokerlab.calibrate.simulation.state import instants
from brokerlab.engines import INT, TEXT, collect, narrow
from brokerlab.frames import prepared
from brokerlab.gdpconfig import Config
from brokerlab.lifecycle.timeouts import TimeoutRule, TimeoutRules, fast_rebrokerage_at
from brokerlab.lifecycle.timeouts.catalogue import URGENT, timeout_rules
from brokerlab.lifecycle.timeouts.decide import YOUNGEST_S, analysis_rebrokerage, judging
from brokerlab.lifecycle.timeouts.facts import (
    DOWN,
    FRACTION,
    IDLE_S,
    RATIO,
    TABLES,
    Limits,
    facts,
    limits_of,
    number,
    share_threshold,
)
from brokerlab.numerics import BoolArray, FloatArray, IntArray
from brokerlab.units import SECOND_US

if TYPE_CHECKING:
    from brokerlab.calibrate.simulation.loop import Loop
    from brokerlab.calibrate.simulation.world import World

_QUEUES = ("snapshot", "panda_queue", "status", "catchall", "workflow")
_URGENT_ONLY = "inactive_queue"
"""The rule that looks at urgent jobs alone."""
_OF_JOBS = (
    *("jeditaskid", "creationtime", "currentpriority", "prodsourcelabel", "processingtype"),
    *("workinggroup", "produsername", "gshare"),
)


WAITS = pl.col("state") <= ACTIVATED
"""Jobs of a census that wait at their queue."""


@dataclass(frozen=True)
class Patience:
    """The rules about waiting under some settings; only jobs that the brokerage placed are taken back.

    Attributes:
        tables: ``queues`` and ``slots`` by snapshot (null: every one), ``resource_work_queues``.
        share: (groups,) share of the jobs of a group, from 0.
        crowd: (shares,) waiting jobs at a queue up to which fast rebrokerage moves none; infinite for a share without a
            threshold of its own.
        limits: Limits that the settings set.
        order: The timeouts that look at waiting jobs.
        least: (urgent, state) age below which no timeout fires [us].
        down: (queues,) by snapshot: the queue takes no jobs, so that it counts as idle.
        plans: What the timeouts say of jobs, made once.
    """

    rules: TimeoutRules
    config: Config
    tables: Mapping[str, pl.DataFrame]
    share: IntArray
    crowd: FloatArray
    limits: Limits
    order: tuple[TimeoutRule, ...]
    least: IntArray
    down: Mapping[int, BoolArray]
    plans: Plans = field(default_factory=Plans)

    @classmethod
    def of(cls, world: World, config: Config, rules: TimeoutRules) -> Patience:
        """Look up once what does not change."""
        names = world.arrays.groups["gshare"].to_list()
        shares = list(dict.fromkeys(names))
        thresholds = [
            (np.inf, True) if one is None else share_threshold(config, one) for one in shares
        ]
        crowd = np.array([np.inf if reporting else least for least, reporting in thresholds])
        tables = {
            "queues": _columns(world.tables.get("queues"), _QUEUES),
            "slots": _columns(world.tables.get("slots"), ("snapshot", "panda_queue")),
            "resource_work_queues": _columns(
                world.tables.get("resource_work_queues"), ("workqueue_id",)
            ),
        }
        down = {
            int(snapshot): world.arrays.queue_names.is_in(
                _held(tables["queues"], int(snapshot))
                .filter(pl.col("status").is_in(DOWN))["panda_queue"]
                .implode()
            ).to_numpy()
            for snapshot in world.epochs["snapshot"]
        }
        limits = limits_of(tables["queues"].drop("snapshot"), rules, config)
        waiting = {STATUSES[ASSIGNED], STATUSES[ACTIVATED]}
        order = tuple(
            rule for rule in timeout_rules(rules, limits) if waiting.intersection(rule.statuses)
        )
        share = np.array([shares.index(one) for one in names], np.int64)
        return cls(rules, config, tables, share, crowd, limits, order, _least(order), down)

    @property
    def key(self) -> Hashable:
        """What the settings say of jobs of production."""
        fast: tuple[float, ...] = ()
        if self.moves_fast:
            fast = *self.crowd, number(self.config, RATIO), number(self.config, FRACTION)
        return self.timeouts, fast

    @property
    def timeouts(self) -> Hashable:
        """What the settings say of the timeouts of jobs of production."""
        held = self.limits
        limits = tuple(sorted(held.heartbeat_s.items()))
        return held.defined_s, held.holding_s, limits, held.own

    @property
    def moves_fast(self) -> bool:
        """Whether any share has a threshold of its own, without which fast rebrokerage does nothing."""
        return bool(np.isfinite(self.crowd).any())

    def _crowded(self, loop: Loop, rows: pl.DataFrame) -> bool:
        """Tell whether more jobs of a share wait at any queue than its threshold, without which nothing is moved fast."""
        waits = rows.filter(WAITS)
        queue = waits["world"].to_numpy() * len(loop.arrays.queue_names) + waits["queue"].to_numpy()
        share = self.share[loop.arrays.group[waits["job"]]]
        waiting = np.bincount(queue * len(self.crowd) + share)
        at = np.flatnonzero(waiting)
        return bool((waiting[at] > self.crowd[at % len(self.crowd)]).any())

    def fast(
        self, loop: Loop, rows: pl.DataFrame, waits: pl.DataFrame, snapshot: int
    ) -> pl.DataFrame:
        """Return the jobs that fast rebrokerage takes back: the oldest of a queue and share that has too many."""
        if not self._crowded(loop, rows):
            return waits.clear()
        arrays = loop.arrays
        tables = {
            "share_job_stats": by_share(rows, arrays),
            "queues": _held(self.tables["queues"], snapshot),
            "slots": _held(self.tables["slots"], snapshot).select(pandaqueuename="panda_queue"),
            "resource_work_queues": self.tables["resource_work_queues"],
        }
        shares = fast_rebrokerage_at(tables, rules=self.rules, config=self.config)
        key = ["snapshot", "computingsite", "gshare"]
        jobs = waits.with_columns(
            snapshot="world",
            computingsite=arrays.queue_names.gather(waits["queue"]),
            gshare=arrays.groups["gshare"].gather(arrays.group[waits["job"]]),
        )
        wanted = shares.filter(pl.col("n_moved") > 0).select(*key, "n_moved")
        oldest = pl.int_range(pl.len()).over(key) < pl.col("n_moved")
        return jobs.join(wanted, on=key).sort("job").filter(oldest).select(waits.columns)

    def late(self, loop: Loop, waits: pl.DataFrame, now: int, snapshot: int) -> pl.DataFrame:
        """Return the jobs that a timeout takes back; one that would fail or be killed while it waits is brokered again, too."""
        since, state = waits["since"].to_numpy(), waits["state"].to_numpy()
        priority, age = loop.copies[0].state.work["priority"][waits["job"]], now - since
        old = age > self.least[0, state]
        urgent = ~old & (priority >= URGENT) & (age > self.least[1, state])
        if urgent.any():
            old |= urgent & self._idle(loop, waits, now, snapshot)
        rows = waits.filter(old)
        if rows.is_empty():
            return rows
        places = _places(loop, rows)
        tables = {
            "jobs": _jobs(loop, rows),
            "queues": self._queues(places, snapshot),
            "site_data": _last_starts(loop, places),
        }
        at = instants([now])[0]
        known = facts(prepared(tables, TABLES), at=at, rules=self.rules, limits=self.limits)
        judged = self.plans.frame(
            "judged",
            {"known": known.with_columns(now_us=now)},
            lambda lazy: judging(lazy["known"], self.order).filter("acts").select("pandaid"),
        )
        return rows[judged["pandaid"].unique()]

    def late_users(
        self, loop: Loop, placed: pl.DataFrame, waits: pl.DataFrame, now: int, snapshot: int
    ) -> pl.DataFrame:
        """Return the waiting jobs of users that are brokered again: groups of a task at a queue where nothing happens."""
        if not (now - waits["since"] > YOUNGEST_S * SECOND_US).any():
            return waits.clear()
        worlds = placed["world"].unique().sort()
        live = _jobs(loop, placed)
        since = now - YOUNGEST_S * SECOND_US
        over = loop.ended(worlds, loop.arrays.brokered, since)
        gone = _of_jobs(loop, over["job"].to_numpy()).with_columns(
            world=over["world"],
            pandaid=-1 - pl.int_range(pl.len()),  # not those of jobs that live
            name=over["computingsite"],
            jobstatus=over["jobstatus"],
            modificationtime=instants(over["end"]),
        )
        tables = {
            "jobs": pl.concat([live, _as_jobs(gone)], how="diagonal"),
            "queues": self._queues(_places(loop, placed), snapshot),
            "status_log": live.filter(pl.col("jobstatus") == "activated").select(
                "pandaid", "jobstatus", "modificationtime"
            ),
        }
        moved = analysis_rebrokerage(
            prepared(tables, TABLES), at=instants([now])[0], config=self.config
        )
        return waits.join(placed[moved["pandaid"].unique()], on=["world", "job"], how="semi")

    def _idle(self, loop: Loop, rows: pl.DataFrame, now: int, snapshot: int) -> BoolArray:
        """Tell of jobs whether their queue takes no jobs or has started none for long."""
        last, queue = np.stack([copy.last_start for copy in loop.copies]), rows["queue"].to_numpy()
        idle = now - last[rows["world"].to_numpy(), queue] > IDLE_S * SECOND_US
        return np.asarray(self.down[snapshot][queue] | idle)

    def _queues(self, places: pl.DataFrame, snapshot: int) -> pl.DataFrame:
        """Return the queues of worlds, by the names that :func:`_name` gives."""
        own = _held(self.tables["queues"], snapshot).unique("panda_queue", maintain_order=True)
        known = places.join(own, left_on="name", right_on="panda_queue")
        return known.with_columns(panda_queue=_name("name")).drop("world", "queue", "name")


def take_back(loop: Loop, rows: pl.DataFrame, now: int, snapshot: int) -> bool:
    """Take jobs of a census back in their worlds, at an instant [us since 1970]; tells whether some were."""
    placed = rows.filter(loop.arrays.brokered[rows["job"]])
    waits = placed.filter(WAITS)
    moved = (
        each.patience.fast(loop, each.of(rows), each.of(waits), snapshot)
        for each in loop.groups
        if each.patience.moves_fast
    )
    fast = pl.concat([waits.clear(), *moved])
    rest = waits
    if fast.height:
        rest = waits.join(fast, on=["world", "job"], how="anti", maintain_order="left")
    if loop.world.stage == "analysis":
        late = [
            each.patience.late_users(loop, each.of(placed), each.of(rest), now, snapshot)
            for each in loop.groups
        ]
    else:
        alike: dict[Hashable, tuple[Patience, list[int]]] = {}  # those of the same timeouts
        for each in loop.groups:
            alike.setdefault(each.patience.timeouts, (each.patience, []))[1].extend(each.worlds)
        late = [
            patience.late(loop, rest.filter(pl.col("world").is_in(worlds)), now, snapshot)
            for patience, worlds in alike.values()
        ]
    leaves = pl.concat([fast, *late]).partition_by("world", as_dict=True)
    for (world,), jobs in leaves.items():
        kernel.withdraw(loop.copies[world].state, np.sort(jobs["job"].to_numpy()), now)
    return bool(leaves)


def _least(order: Sequence[TimeoutRule]) -> IntArray:
    """Return the age below which no rule takes a waiting job, by urgency and state [us]."""
    result = np.zeros((2, ACTIVATED + 1), np.int64)
    for urgent in (0, 1):
        for state in (ASSIGNED, ACTIVATED):
            ages = [
                rule.least_s
                for rule in order
                if STATUSES[state] in rule.statuses and (urgent or rule.name != _URGENT_ONLY)
            ]
            result[urgent, state] = min(ages, default=2**40) * SECOND_US
    return result


def _columns(table: pl.DataFrame | None, names: Sequence[str]) -> pl.DataFrame:
    """Return some columns of a table, null where it lacks them."""
    kinds = {name: INT if name in ("snapshot", "workqueue_id") else TEXT for name in names}
    empty = pl.DataFrame({name: [] for name in names})
    return collect(narrow(empty if table is None else table, "table", kinds, ()))


def _held(table: pl.DataFrame, snapshot: int) -> pl.DataFrame:
    """Return the rows that hold at a snapshot."""
    own = pl.col("snapshot").is_null() | (pl.col("snapshot") == snapshot)
    return table.filter(own).drop("snapshot")


def _name(column: str) -> pl.Expr:
    """Return the name of a queue in a world, since the rules are asked for all worlds at once."""
    return pl.format("{} {}", "world", column)


def _jobs(loop: Loop, rows: pl.DataFrame) -> pl.DataFrame:
    """Return jobs as the timeouts read them; ``pandaid`` is the number of the row."""
    jobs = _of_jobs(loop, rows["job"].to_numpy()).with_columns(
        world=rows["world"],
        pandaid=pl.int_range(pl.len()),
        name=loop.arrays.queue_names.gather(rows["queue"]),
        jobstatus=STATUSES.gather(rows["state"]),
        modificationtime=instants(rows["since"]),
    )
    return _as_jobs(jobs)


def _of_jobs(loop: Loop, job: IntArray) -> pl.DataFrame:
    own = loop.world.jobs.select(*_OF_JOBS)[pl.Series(job)]
    return own.with_columns(creationtime=instants(loop.created[job]))


def _as_jobs(rows: pl.DataFrame) -> pl.DataFrame:
    """Name queues and sets of jobs by their world, and say what all jobs have in common."""
    return rows.with_columns(
        computingsite=_name("name"),
        jobdefinitionid="world",
        statechangetime="modificationtime",
        lockedby=pl.lit("jedi"),
        relocationflag=pl.lit(0),
    )


def _places(loop: Loop, rows: pl.DataFrame) -> pl.DataFrame:
    """Return where jobs are: ``world, queue`` and its ``name``."""
    places = rows.select("world", "queue").unique()
    return places.with_columns(name=loop.arrays.queue_names.gather(places["queue"]))


def _last_starts(loop: Loop, places: pl.DataFrame) -> pl.DataFrame:
    """Return the last start of a job at queues of worlds."""
    last = np.stack([copy.last_start for copy in loop.copies])[places["world"], places["queue"]]
    known = places.with_columns(last=last).filter(pl.col("last") >= 0)
    return known.select(
        computingsite=_name("name"), laststart=pl.col("last").cast(pl.Datetime("us"))
    )
