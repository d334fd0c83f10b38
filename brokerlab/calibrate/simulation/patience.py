"""Waiting has an end: timeouts and fast rebrokerage take jobs back from queues where they wait in vain."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from brokerlab.calibrate.simulation import kernel
from brokerlab.calibrate.simulation.census import ACTIVATED, ASSIGNED, STATUSES, Census, by_share
from brokerlab.calibrate.simulation.state import FINISHED, SECOND, instants
from brokerlab.frames import prepared
from brokerlab.gdpconfig import Config
from brokerlab.lifecycle.timeouts import TimeoutRule, TimeoutRules, fast_rebrokerage_at
from brokerlab.lifecycle.timeouts.analysis import YOUNGEST_S, analysis_rebrokerage
from brokerlab.lifecycle.timeouts.catalogue import URGENT, timeout_rules
from brokerlab.lifecycle.timeouts.contracts import TABLES
from brokerlab.lifecycle.timeouts.decide import judged
from brokerlab.lifecycle.timeouts.facts import DOWN, IDLE_S, facts, limits_of
from brokerlab.lifecycle.timeouts.settings import Limits, fast_settings
from brokerlab.numerics import BoolArray, IntArray

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
_OVER = pl.Series(["finished", "failed"])


@dataclass(frozen=True)
class Patience:
    """The rules about waiting under some settings; only jobs that the brokerage placed are taken back.

    Attributes:
        rules: The rule set.
        config: The settings.
        tables: ``queues`` and ``slots`` by snapshot (null: every one), ``resource_work_queues``.
        fast: What fast rebrokerage reads of the settings: share and threshold, ratio, fraction; empty: no share has a threshold
            of its own, without which it does nothing.
        limits: Limits that the settings set.
        order: The timeouts that look at waiting jobs.
        least: (urgent, state) age below which no timeout fires [us].
        down: (queues,) by snapshot: the queue takes no jobs, so that it counts as idle.
    """

    rules: TimeoutRules
    config: Config
    tables: Mapping[str, pl.DataFrame]
    fast: tuple[Hashable, ...]
    limits: Limits
    order: tuple[TimeoutRule, ...]
    least: IntArray
    down: Mapping[int, BoolArray]

    @classmethod
    def of(cls, world: World, config: Config, rules: TimeoutRules) -> Patience:
        """Look up once what does not change."""
        shares = world.arrays.groups["gshare"].drop_nulls().unique().sort()
        fast = fast_settings(config, shares)
        tables = {
            "queues": _columns(world.tables.get("queues"), _QUEUES),
            "slots": _columns(world.tables.get("slots"), ("snapshot", "panda_queue")),
            "resource_work_queues": _columns(
                world.tables.get("resource_work_queues"), ("workqueue_id",)
            ).cast({"workqueue_id": pl.Int64}),
        }
        names = world.arrays.queue_names
        down = {
            int(snapshot): names.is_in(
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
        return cls(rules, config, tables, fast, limits, order, _least(order), down)

    @property
    def key(self) -> Hashable:
        """What the settings say of jobs of production."""
        held = self.limits
        limits = tuple(sorted(held.heartbeat_s.items()))
        return held.defined_s, held.holding_s, limits, held.own, self.fast

    def act(self, loop: Loop, found: Census, worlds: IntArray, now: int, snapshot: int) -> bool:
        """Take jobs back in some worlds; tells whether some were.

        Args:
            loop: All worlds; changed.
            found: Jobs of those asked for.
            worlds: Their numbers.
            now: The instant [us since 1970].
            snapshot: Which state of the queues holds.
        """
        waits = loop.arrays.brokered[found.job] & (found.state <= ACTIVATED)
        leaves = np.zeros(len(found.job), np.bool_)
        if self.fast:
            leaves |= self._fast(loop, found, waits, snapshot)
        late = self._late_users if loop.world.stage == "analysis" else self._late
        leaves |= late(loop, found, worlds, waits & ~leaves, now, snapshot)
        for number in worlds:
            jobs = np.sort(found.job[leaves & (found.world == number)])
            if len(jobs):
                kernel.withdraw(loop.copies[number].state, jobs, now)
        return bool(leaves.any())

    def _fast(self, loop: Loop, found: Census, waits: BoolArray, snapshot: int) -> BoolArray:
        """Tell which jobs fast rebrokerage takes back: the oldest of a queue and share that has too many."""
        tables = {
            "share_job_stats": by_share(found, loop.arrays),
            "queues": _held(self.tables["queues"], snapshot),
            "slots": _held(self.tables["slots"], snapshot).select(pandaqueuename="panda_queue"),
            "resource_work_queues": self.tables["resource_work_queues"],
        }
        shares = fast_rebrokerage_at(tables, rules=self.rules, config=self.config)
        wanted = shares.filter(pl.col("n_moved") > 0)
        leaves = np.zeros(len(found.job), np.bool_)
        if wanted.is_empty():
            return leaves
        row = np.flatnonzero(waits)
        key = ["snapshot", "computingsite", "gshare"]
        jobs = pl.DataFrame(
            {
                "row": row,
                "job": found.job[row],
                "snapshot": found.world[row],
                "computingsite": loop.arrays.queue_names.gather(found.queue[row]),
                "gshare": loop.arrays.groups["gshare"].gather(loop.arrays.group[found.job[row]]),
            }
        )
        chosen = jobs.join(wanted.select(*key, "n_moved"), on=key).sort("job")
        kept = chosen.filter(pl.int_range(pl.len()).over(key) < pl.col("n_moved"))
        leaves[kept["row"].to_numpy()] = True
        return leaves

    def _late(
        self, loop: Loop, found: Census, worlds: IntArray, waits: BoolArray, now: int, snapshot: int
    ) -> BoolArray:
        """Tell which jobs a timeout takes back; one that would fail or be killed while it waits is brokered again, too."""
        row = np.flatnonzero(waits)
        since = changed(loop, found, row)
        priority = loop.copies[0].state.work["priority"][found.job[row]]
        state, age = found.state[row], now - since
        old = age > self.least[0, state]
        urgent = ~old & (priority >= URGENT) & (age > self.least[1, state])
        if urgent.any():
            old |= urgent & self._idle(loop, found, row, now, snapshot)
        leaves = np.zeros(len(found.job), np.bool_)
        row, since = row[old], since[old]
        if not len(row):
            return leaves
        tables = {
            "jobs": _jobs(loop, found, row, since),
            "queues": self._queues(snapshot, worlds),
            "site_data": _last_starts(loop, worlds),
        }
        at = instants([now])[0]
        known = facts(prepared(tables, TABLES), at=at, rules=self.rules, limits=self.limits)
        fired = judged(known, self.order, at=at).filter("acts")
        leaves[fired["pandaid"].unique().to_numpy()] = True
        return leaves

    def _late_users(
        self, loop: Loop, found: Census, worlds: IntArray, waits: BoolArray, now: int, snapshot: int
    ) -> BoolArray:
        """Tell which waiting jobs of users are brokered again: groups of a task at a queue where nothing happens."""
        leaves = np.zeros(len(found.job), np.bool_)
        waiting = np.flatnonzero(waits)
        if not (now - changed(loop, found, waiting) > YOUNGEST_S * SECOND).any():
            return leaves
        row = np.flatnonzero(loop.arrays.brokered[found.job])
        live = _jobs(loop, found, row, changed(loop, found, row))
        tables = {
            "jobs": pl.concat(
                [live, ended_lately(loop, worlds, now - YOUNGEST_S * SECOND)], how="diagonal"
            ),
            "queues": self._queues(snapshot, worlds),
            "status_log": live.filter(pl.col("jobstatus") == "activated").select(
                "pandaid", "jobstatus", "modificationtime"
            ),
        }
        moved = analysis_rebrokerage(
            prepared(tables, TABLES), at=instants([now])[0], config=self.config
        )
        leaves[moved["pandaid"].unique().to_numpy()] = True
        return leaves & waits

    def _idle(self, loop: Loop, found: Census, row: IntArray, now: int, snapshot: int) -> BoolArray:
        """Tell of rows of the census whether its queue takes no jobs or has started none for long."""
        last = np.stack([copy.last_start for copy in loop.copies])
        return np.asarray(
            self.down[snapshot][found.queue[row]]
            | (now - last[found.world[row], found.queue[row]] > IDLE_S * SECOND)
        )

    def _queues(self, snapshot: int, worlds: IntArray) -> pl.DataFrame:
        """Return the queues of worlds, by the names that :func:`_named` gives."""
        own = _held(self.tables["queues"], snapshot).unique("panda_queue", maintain_order=True)
        many = pl.DataFrame({"world": worlds}, schema={"world": pl.Int64}).join(own, how="cross")
        return many.with_columns(panda_queue=_named("panda_queue")).drop("world")


def _least(order: Sequence[TimeoutRule]) -> IntArray:
    """Return the age below which no rule takes a waiting job, by urgency and state [us]."""
    found = np.zeros((2, ACTIVATED + 1), np.int64)
    for urgent in (0, 1):
        for state in (ASSIGNED, ACTIVATED):
            ages = [
                rule.least_s
                for rule in order
                if STATUSES[state] in rule.statuses and (urgent or rule.name != _URGENT_ONLY)
            ]
            found[urgent, state] = min(ages, default=2**40) * SECOND
    return found


def _columns(table: pl.DataFrame | None, names: Sequence[str]) -> pl.DataFrame:
    """Return some columns of a table, null where it lacks them."""
    frame = pl.DataFrame() if table is None else table
    missing = [name for name in names if name not in frame.columns]
    kinds = {name: pl.Int64 if name == "snapshot" else pl.String for name in names}
    if frame.is_empty():
        return pl.DataFrame(schema=kinds)
    return frame.with_columns(pl.lit(None, kinds[name]).alias(name) for name in missing).select(
        names
    )


def _held(table: pl.DataFrame, snapshot: int) -> pl.DataFrame:
    """Return the rows that hold at a snapshot."""
    own = pl.col("snapshot").is_null() | (pl.col("snapshot") == snapshot)
    return table.filter(own).drop("snapshot")


def _named(column: str) -> pl.Expr:
    """Return the name of a queue in a world, since the rules are asked for all worlds at once."""
    return pl.format("{} {}", "world", column)


def changed(loop: Loop, found: Census, row: IntArray) -> IntArray:
    """Return when the jobs of some rows came into their state [us]; outputs under way since the start of the job."""
    since = np.zeros(len(row), np.int64)
    world, job, state = found.world[row], found.job[row], found.state[row]
    for number in np.unique(world):
        copy = loop.copies[number]
        attempt = copy.state.attempt
        for wanted, times in (
            (state == ASSIGNED, copy.placed),
            (state == ACTIVATED, attempt["ready"]),
            (state > ACTIVATED, attempt["start"]),
        ):
            here = wanted & (world == number)
            since[here] = times[job[here]]
    return since


def ended_lately(loop: Loop, worlds: IntArray, since: int) -> pl.DataFrame:
    """Return the jobs of worlds that ended since an instant, as the rules read them; ids are below 0."""
    parts = []
    for number in worlds.tolist():
        log = loop.copies[number].log
        lately = log[np.searchsorted(log["end"], since) :]
        own = lately[loop.arrays.brokered[lately["job"]]]
        parts.append(
            loop.world.jobs.select(*_OF_JOBS)[pl.Series(own["job"])].with_columns(
                pandaid=-1 - pl.int_range(pl.len()),
                creationtime=instants(loop.created[own["job"]]),
                world=pl.lit(number, pl.Int64),
                name=loop.arrays.queue_names.gather(own["queue"]),
                jobstatus=_OVER.gather((own["outcome"] != FINISHED).astype(np.int64)),
                modificationtime=instants(own["end"]),
            )
        )
    return _told(pl.concat(parts))


def _jobs(loop: Loop, found: Census, row: IntArray, since: IntArray) -> pl.DataFrame:
    """Return jobs as the timeouts read them; ``pandaid`` is the row of the census."""
    jobs, job = loop.world.jobs, pl.Series(found.job[row])
    own = jobs.select(*_OF_JOBS)[job].with_columns(creationtime=instants(loop.created[job]))
    numbers = pl.DataFrame(
        {
            "pandaid": row,
            "world": found.world[row],
            "name": loop.arrays.queue_names.gather(found.queue[row]),
            "jobstatus": STATUSES.gather(found.state[row]),
            "modificationtime": instants(since),
        }
    )
    return _told(own.hstack(numbers))


def _told(rows: pl.DataFrame) -> pl.DataFrame:
    """Name queues and sets of jobs by their world, and say what all jobs have in common."""
    return rows.with_columns(
        computingsite=_named("name"),
        jobdefinitionid="world",
        statechangetime="modificationtime",
        lockedby=pl.lit("jedi"),
        relocationflag=pl.lit(0),
    )


def _last_starts(loop: Loop, worlds: IntArray) -> pl.DataFrame:
    """Return the last start of a job at every queue of worlds."""
    parts = [
        pl.DataFrame(
            {
                "world": number,
                "name": loop.arrays.queue_names,
                "last": loop.copies[number].last_start,
            }
        )
        for number in worlds.tolist()
    ]
    known = pl.concat(parts).filter(pl.col("last") >= 0)
    return known.select(
        computingsite=_named("name"), laststart=pl.col("last").cast(pl.Datetime("us"))
    )
