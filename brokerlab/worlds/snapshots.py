"""What a synthetic archive measures snapshot by snapshot: links to the nuclei, pilots' requests, last starts, workers, slots."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import polars as pl

from brokerlab.archive.contracts.jobs import OVER
from brokerlab.numerics import BoolArray, FloatArray, IntArray
from brokerlab.units import DAY_S
from brokerlab.worlds.frames_jobs import known, texts
from brokerlab.worlds.queues import conform
from brokerlab.worlds.world import World

AFTER_H = 24
"""Hours after the period that are still covered: late decisions."""
CLOSENESS = (-1, 0, 2, 3, 4, 5, 6, 7, 9, 11, None)
CLOSENESS_SHARES = (0.012, 0.006, 0.006, 0.056, 0.111, 0.098, 0.108, 0.014, 0.009, 0.533, 0.047)
KNOWN_SHARES = (0.05, 0.21, 0.88, 0.76, 0.58, 0.41, 0.25, 0.21, 0.15, 0.05, 0.81)
"""Share of the links of each closeness with a throughput over a week (statistics section 6)."""
LN_MBPS = (0.26, 1.6, 3.99, 2.25, 0.63, -0.82, -2.04, -2.41, -3.0, 0.26, -0.12)
"""Mean of ln(MB/s) over a week at each closeness."""
LN_MBPS_SD = (2.9, 2.2, 2.07, 2.01, 2.04, 2.25, 2.17, 1.97, 2.0, 2.95, 2.57)
"""sd of the same."""
KEYS = (
    "AGIS_closeness",
    "dashb_mbps_1w",
    "dashb_mbps_1d",
    "dashb_mbps_1h",
    "Production Output_queued",
    "Express_queued",
    "Production Output_done_6h",
)
JAM = (0.55, 0.60)
"""Part of the period in which everything to the nucleus with most waiting files waits longer."""
JAM_LN = 2.8
"""How much more waits then, on the natural logarithm."""
CARRIES = 20.0
"""How many times as much a link carries as flowed over it when it was measured."""
LEAST_MBPS = 20.0
"""No link of a lived world carries less [MB/s]."""
QUEUED_SHARE = 0.85
"""Part of its links on which files are queued."""
NUCLEUS_QUEUED = (600.0, 5000.0, 5000.0, 600.0)
"""Files on their way to the nuclei of a lived world, the largest first and so on in turns: to half of them many, for good."""
SWING, SWING_LIVED = 0.9, 0.45
"""How far the files queued on a link swing, on the natural logarithm."""
LOST_SHARE = 0.01
"""Share of the links of a snapshot that were not measured."""
SNAPSHOTS_AT_ONCE = 200
"""Snapshots held in memory."""


def snapshot_seconds(world: World, every_h: float) -> IntArray:
    """Return the seconds from the first instant at which a table of snapshots is written."""
    last = world.settings.days * 24 + AFTER_H
    return np.round(np.arange(0, last, every_h) * 3600).astype(np.int64)


def network_matrix(world: World) -> Iterator[pl.DataFrame]:
    """Draw ``network_matrix``, snapshot by snapshot, for the links from sites with storage to sites that gather outputs.

    A link keeps its closeness; its week changes daily, its day and hour faster, its queues slowly. A
    quarter of the links has a throughput. Every row of a snapshot has the snapshot's time, so a
    decision sees fresh ones if ``network_every_h`` is at most 1. What was measured is what flowed, hardly ever what a
    link can carry: in a lived world, where outputs come from everywhere, `CARRIES` times as much is written, at least
    `LEAST_MBPS`, and files are queued on `QUEUED_SHARE` of the links, about `NUCLEUS_QUEUED` to each nucleus.

    Source:
        Data statistics, section 6; network-weight.md 2.
    """
    rng = world.generator(3)
    links = _Links(world, rng)
    seconds = snapshot_seconds(world, world.settings.network_every_h)
    days = int(seconds[-1]) // DAY_S + 1 if len(seconds) else 0
    weekly = links.weekly(rng, days)
    for first in range(0, len(seconds), SNAPSHOTS_AT_ONCE):
        part = seconds[first : first + SNAPSHOTS_AT_ONCE]
        values = links.snapshots(rng, part, weekly[part // DAY_S])
        if world.settings.lived:
            carried = [(np.maximum(v * CARRIES, LEAST_MBPS), known) for v, known in values[1:4]]
            values[1:4] = carried
        yield _frame(world, links, part, values)


class _Links:
    """What a link keeps over the whole period."""

    def __init__(self, world: World, rng: np.random.Generator) -> None:
        sources = np.unique(world.storage)
        gathering = world.nucleus | np.array([b is not None for b in world.bare])
        targets = np.intersect1d(np.flatnonzero(gathering), sources)
        self.src = np.repeat(sources, len(targets))
        self.dst = np.tile(targets, len(sources))
        n = self.n = len(self.src)
        code = rng.choice(len(CLOSENESS), n, p=CLOSENESS_SHARES)
        self.code = np.where(self.src == self.dst, CLOSENESS.index(0), code)
        self.week = rng.random(n) < np.array(KNOWN_SHARES)[self.code]
        self.day = np.where(self.week, rng.random(n) < 0.86, rng.random(n) < 0.006)
        self.hour = np.where(self.day, rng.random(n) < 0.55, rng.random(n) < 0.004)
        mean, sd = np.array(LN_MBPS)[self.code], np.array(LN_MBPS_SD)[self.code]
        self.level = mean + sd * np.clip(rng.standard_normal(n), -2.2, 2.2)
        busy = QUEUED_SHARE if world.settings.lived else np.where(self.week, 0.52, 0.05)
        self.queued = rng.random(n) < busy
        self.express = self.queued & (rng.random(n) < 0.25)
        target = 0.5 * rng.standard_normal(len(world.sites))
        self.waiting = 2.98 + 1.75 * rng.standard_normal(n) + target[self.dst]
        self.swing = SWING
        if world.settings.lived:
            self.swing, self.waiting = SWING_LIVED, self.waiting + self._steadied(world)
        self.phase = rng.random((2, n)) * 2 * np.pi
        self.period_s = rng.uniform([[20 * 3600], [60 * 3600]], [[50 * 3600], [200 * 3600]], (2, n))
        waiting = np.bincount(self.dst, weights=np.exp(self.waiting) * self.queued)
        self.jammed = self.dst == int(np.argmax(waiting))
        self.jam_s = np.array(JAM) * world.settings.days * DAY_S

    def _steadied(self, world: World) -> FloatArray:
        """Return what to add to ``waiting`` so that as many files as wanted are on their way to each nucleus."""
        n_sites = len(world.sites)
        place: IntArray = np.empty(n_sites, np.int64)
        place[np.lexsort((-world.site_size, ~world.nucleus))] = np.arange(n_sites)
        wanted = np.array(NUCLEUS_QUEUED)[place % len(NUCLEUS_QUEUED)]
        files = np.bincount(self.dst, np.exp(self.waiting) * self.queued, n_sites)
        return np.asarray(np.log(wanted / np.maximum(files, 1.0))[self.dst])

    def weekly(self, rng: np.random.Generator, days: int) -> FloatArray:
        """Return ln(MB/s) over a week, (days, links): a walk that forgets its start in some weeks."""
        steps = 0.12 * rng.standard_normal((days, self.n))
        walk = np.zeros((days, self.n))
        for day in range(1, days):
            walk[day] = 0.97 * walk[day - 1] + steps[day]
        return np.asarray(self.level + walk)

    def snapshots(
        self, rng: np.random.Generator, seconds: IntArray, weekly: FloatArray
    ) -> list[tuple[FloatArray, BoolArray]]:
        """Return values and whether they are known, (snapshots, links), in the order of ``KEYS``."""
        shape = weekly.shape
        daily = weekly - 0.16 + 1.31 * self._wave(seconds, 0)
        hourly = daily - 1.04 + 1.85 * rng.standard_normal(shape)
        backlog = (
            self.waiting + self.swing * self._wave(seconds, 1) + 0.15 * rng.standard_normal(shape)
        )
        jam = (seconds >= self.jam_s[0]) & (seconds < self.jam_s[1])
        backlog = backlog + JAM_LN * (jam[:, None] & self.jammed)
        express = 1.4 + 0.3 * (backlog - 2.98)
        done = 0.5 * (weekly + 3) + 1.5
        values = [np.broadcast_to([float(c or 0) for c in CLOSENESS], (shape[0], len(CLOSENESS)))[:, self.code]]  # fmt: skip
        values += [np.maximum(np.round(np.exp(x), 2), 0.01) for x in (weekly, daily, hourly)]
        values += [np.round(np.exp(x)) for x in (backlog, express, done)]
        seen = rng.random(shape) >= LOST_SHARE
        closeness = np.array([c is not None for c in CLOSENESS])[self.code]
        moving = rng.random(shape) < 0.85
        known = [closeness, self.week, self.day, self.hour & moving, self.queued, self.express,
                 self.queued & self.week]  # fmt: skip
        known[4:] = [k & (v >= 1) for k, v in zip(known[4:], values[4:], strict=True)]
        return [(v, np.broadcast_to(k, shape) & seen) for v, k in zip(values, known, strict=True)]

    def _wave(self, seconds: IntArray, which: int) -> FloatArray:
        """Return a slow wave per link of mean 0 and sd 1, (snapshots, links)."""
        turns = 2 * np.pi * seconds[:, None] / self.period_s[which]
        return np.asarray(np.sqrt(2) * np.sin(turns + self.phase[which]))


def _frame(
    world: World, links: _Links, seconds: IntArray, values: list[tuple[FloatArray, BoolArray]]
) -> pl.DataFrame:
    """Put known values into rows, by snapshot, key and link."""
    result = [np.nonzero(known) for _, known in values]
    at, link = (np.concatenate([f[i] for f in result]) for i in (0, 1))
    key = np.repeat(np.arange(len(values)), [len(f[0]) for f in result])
    value = np.concatenate([v[f] for (v, _), f in zip(values, result, strict=True)])
    order = np.lexsort((link, key, at))
    at, key, link, value = at[order], key[order], link[order], value[order]
    frame = pl.DataFrame(
        {
            "src": texts(world.sites, links.src[link]),
            "dst": texts(world.sites, links.dst[link]),
            "key": texts(KEYS, key),
            "value": value,
            "ts": world.times(seconds[at]),
        }
    )
    return conform("network_matrix", frame)


WINDOW_H = 3
"""Hours that ``site_data`` counts over."""
SPELLS_PER_DAY = 0.08
"""Spells of trouble per queue and day."""
SPELL_H, SPELL_LN_SD = 7.0, 0.8
"""Median and sd of ln of the length of a spell [h]."""
IN_USE = ("online", "brokeroff", "standby", "paused")
"""Status of queues with pilots."""
WORKERS_EVERY_H = 6.0
"""Time between snapshots of ``worker_stats`` [h]."""
POLLS_PER_H = 12
"""Requests of an idle queue."""

EVENTS = ("created", "activated", "started", "ended", "gone")


class Pulse:
    """Counts of jobs by queue between snapshots, added up while blocks are drawn."""

    def __init__(self, world: World) -> None:
        self.world = world
        self._queues = {name: place for place, name in enumerate(world.names)}
        self.seconds = snapshot_seconds(world, world.settings.pilots_every_h)
        self._edges = self.seconds, self.seconds - WINDOW_H * 3600
        shape = (2, len(self.seconds) + 1, world.n)
        names = (*EVENTS, "dropped", "finished")
        self._counts = {name: np.zeros(shape, dtype=np.int64) for name in names}
        self._last_start = np.full(shape[1:], -1, dtype=np.int64)

    def add(self, jobs: pl.DataFrame) -> None:
        """Add jobs: rows of ``jobs`` at queues of the archive, live ones without the times that are to come."""
        over = pl.col("jobstatus").is_in(OVER)
        unstarted = over & pl.col("starttime").is_null()
        gone = pl.when(over).then("modificationtime")
        moments = {
            "created": pl.col("creationtime"),
            "activated": pl.coalesce("activatedtime", pl.when(unstarted).then("modificationtime")),
            "started": pl.col("starttime"),
            "ended": pl.col("endtime"),
            "gone": pl.when(~unstarted).then(gone),
            "dropped": pl.when(unstarted).then(gone),
            "finished": pl.when(pl.col("jobstatus") == "finished").then("modificationtime"),
        }
        micro = jobs.select(
            pl.col("computingsite")
            .replace_strict(self._queues, return_dtype=pl.Int64)
            .alias("queue"),
            *(
                (m.cast(pl.Int64) - self.world.settings.start_us).alias(n) // 1_000_000
                for n, m in moments.items()
            ),
        )
        for name in moments:
            some = micro.select("queue", name).drop_nulls()
            queue, second = some["queue"].to_numpy(), some[name].to_numpy()
            places = [np.searchsorted(edge, second) for edge in self._edges]
            for counts, place in zip(self._counts[name], places, strict=True):
                np.add.at(counts, (place, queue), 1)
            if name == "started":
                np.maximum.at(self._last_start, (places[0], queue), second)

    def until(self, name: str) -> IntArray:
        """Return how often something had happened at each snapshot, (snapshots, queues)."""
        return np.cumsum(self._counts[name][0], axis=0)[:-1]

    def recent(self, name: str) -> IntArray:
        """Return how often it happened in the last ``WINDOW_H`` hours."""
        return np.asarray(self.until(name) - np.cumsum(self._counts[name][1], axis=0)[:-1])

    def last_start(self) -> IntArray:
        """Return the second of the last start at each snapshot, -1 = none."""
        return np.maximum.accumulate(self._last_start, axis=0)[:-1]


def site_data(pulse: Pulse, asked: Pulse | None = None) -> pl.DataFrame:
    """Return ``site_data``: pilots' requests of the last three hours, jobs by status (exact), last start; per snapshot and queue.

    Queues that are in use ask all the time, also for jobs that the archive has not; in a spell of trouble
    some go silent, some ask but start nothing unless the archive has a start. ``asked`` counts the jobs that requests and
    last starts show; None: all.
    """
    world, shown = pulse.world, pulse if asked is None else asked
    rng = world.generator(8)
    shape = (len(pulse.seconds), len(world.names))
    alive = np.isin(world.queues["status"].to_numpy(), IN_USE)
    silent, stuck = _trouble(rng, pulse.seconds, shape[1])
    for spell in world.spells:
        low, high = np.searchsorted(pulse.seconds, (spell.begin_s, spell.end_s))
        stuck[low:high, spell.queue] = True
    dead = ~alive[None, :] | silent
    requests = _requests(rng, shown.recent("started"), dead)
    last = _laststart(rng, shown, dead | stuck).ravel()
    at, queue = np.divmod(np.arange(shape[0] * shape[1]), shape[1])
    stamp = world.times(pulse.seconds[at])
    kind = world.queues.select(
        "panda_queue",
        flag=pl.when(pl.col("type") == "analysis")
        .then(pl.col("type"))
        .otherwise(pl.lit("production")),
    )[pl.Series(queue)]
    frame = pl.DataFrame(
        {
            "site": kind["panda_queue"],
            "flag": kind["flag"],
            **{name: values.ravel() for name, values in (requests | _jobs(pulse)).items()},
            "laststart": known(world.times(np.maximum(last, 0)), last >= 0),
            "lastmod": stamp,
            "ts": stamp,
        }
    )
    return conform("site_data", frame.with_columns(hours=pl.lit(WINDOW_H)))


def _requests(rng: np.random.Generator, started: IntArray, dead: BoolArray) -> dict[str, IntArray]:
    """Draw what pilots asked for in the window; where they are dead, only jobs that started show."""
    asked = rng.poisson(POLLS_PER_H * WINDOW_H, started.shape) + 2 * started
    requests = rng.poisson(3.0, started.shape) * 10 + 6 * started
    getjob = np.where(dead, started, asked)
    return {
        "getjob": getjob,
        "updatejob": np.where(dead, started, requests),
        "nojob": getjob - started,
    }


def _jobs(pulse: Pulse) -> dict[str, IntArray]:
    """Return the jobs by status at each snapshot, and those started and ended in the window."""
    count = {name: pulse.until(name) for name in (*EVENTS, "dropped")}
    finished = pulse.recent("finished")
    none = np.zeros_like(finished)
    return {
        "nstart": pulse.recent("started"),
        "finished": finished,
        "failed": pulse.recent("gone") - finished,
        "defined": none,
        "assigned": count["created"] - count["activated"],
        "activated": count["activated"] - count["started"] - count["dropped"],
        "holding": none,
        "running": count["started"] - count["ended"],
        "transferring": count["ended"] - count["gone"],
    }


def _trouble(
    rng: np.random.Generator, seconds: IntArray, n_queues: int
) -> tuple[BoolArray, BoolArray]:
    """Draw spells: (snapshots, queues) where pilots are silent, and where they ask but nothing starts."""
    end = int(seconds[-1]) + 1
    counts = rng.poisson(SPELLS_PER_DAY * end / DAY_S, n_queues)
    queue = np.repeat(np.arange(n_queues), counts)
    begin = rng.uniform(0, end, len(queue))
    length = SPELL_H * 3600 * np.exp(SPELL_LN_SD * rng.standard_normal(len(queue)))
    quiet = rng.random(len(queue)) < 0.5
    spells = [np.zeros((len(seconds), n_queues), dtype=np.bool_) for _ in range(2)]
    for q, b, n, s in zip(queue, begin, length, quiet, strict=True):
        low, high = np.searchsorted(seconds, (b, b + n))
        spells[0 if s else 1][low:high, q] = True
    return spells[0], spells[1]


def _laststart(rng: np.random.Generator, pulse: Pulse, idle: BoolArray) -> IntArray:
    """Return the last start at each snapshot [s]: a few minutes ago, or where it was when trouble began."""
    ago = rng.integers(20, 1500, idle.shape)
    usual = np.where(idle, -1, np.maximum(pulse.seconds[:, None] - ago, 0))
    before = np.maximum.accumulate(usual, axis=0)
    return np.maximum(before, pulse.last_start())


def worker_stats(pulse: Pulse, usual: IntArray | None = None) -> pl.DataFrame:
    """Return ``worker_stats``: batch workers running and submitted, every `WORKERS_EVERY_H` hours.

    ``usual`` ones run at each queue; None: as many as jobs. A queue that runs several core counts has workers of single
    and of multi core.
    """
    world = pulse.world
    rng = world.generator(9)
    seconds = snapshot_seconds(world, WORKERS_EVERY_H)
    at = np.searchsorted(pulse.seconds, seconds, side="right") - 1
    running = (pulse.until("started") - pulse.until("ended"))[at]
    if usual is not None:
        running = np.broadcast_to(usual, running.shape)
    alive = np.isin(world.queues["status"].to_numpy(), IN_USE)
    cores = world.queues["corecount"].to_numpy()
    split = rng.uniform(0.2, 0.6, len(cores))
    ucore = world.queues["is_unified"].to_numpy()
    parts = []
    for kind, code in (("SCORE", 0), ("MCORE", 1)):
        has = alive & (ucore | ((cores > 1) == bool(code)))
        part: FloatArray = np.where(ucore, split if code == 0 else 1 - split, 1.0)
        for status, spare in (("running", 0.7), ("submitted", 2.0)):
            base = running * part if status == "running" else 0.3 * running * part
            workers = np.round(base).astype(np.int64) + rng.poisson(spare, running.shape)
            when, queue = np.nonzero(np.broadcast_to(has, running.shape))
            stamp = world.times(seconds[when])
            parts.append(
                pl.DataFrame(
                    {
                        "computingsite": texts(world.names, queue),
                        "n_workers": workers[when, queue],
                        "lastupdate": stamp,
                        "ts": stamp,
                    }
                ).with_columns(resourcetype=pl.lit(kind), status=pl.lit(status))
            )
    frame = pl.concat(parts).with_columns(
        harvester_id=pl.lit("synth-harvester"), jobtype=pl.lit("managed")
    )
    return conform("worker_stats", frame.sort("ts", "computingsite", "resourcetype", "status"))


def slots(world: World) -> pl.DataFrame:
    """Return ``slots``: a few queues with a number of slots set; none, negative, expired and later ones too."""
    rng = world.generator(10)
    online = np.flatnonzero(world.queues["status"].to_numpy() == "online")
    free = np.setdiff1d(online, list(world.roles.values()))  # with slots they count differently
    online = free if len(free) else online
    chosen = rng.choice(online, min(8, len(online)), replace=False).tolist()
    names = [world.names[q] for q in chosen]
    end = world.settings.end_s
    rows = [
        (names[0], None, None, 400, 0, None),
        (names[1 % len(names)], None, "MCORE", 64, 0, None),
        (names[2 % len(names)], "MC 16 simul", None, 200, 0, None),
        (names[3 % len(names)], "MC 16 reco", "MCORE", 0, 0, None),
        (names[4 % len(names)], None, None, 0, 0, None),
        (names[5 % len(names)], None, "SCORE", -5, 0, None),
        (names[6 % len(names)], None, None, 300, 0, end // 4),
        (names[7 % len(names)], None, None, 100, 0, None),
        (names[7 % len(names)], None, None, 250, end // 2, None),
    ]
    columns = ["pandaqueuename", "gshare", "resourcetype", "numslots", "from_s", "to_s"]
    frame = pl.DataFrame(rows, schema=columns, orient="row")
    begin = world.times(frame["from_s"].to_numpy())
    until = world.times(frame["to_s"].fill_null(0).to_numpy())
    frame = frame.with_columns(modificationtime=begin, ts=begin, expirationtime=until)
    expires = pl.when(pl.col("to_s").is_not_null()).then("expirationtime")
    return conform("slots", frame.with_columns(expirationtime=expires))
