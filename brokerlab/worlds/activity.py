"""Pilots of a synthetic archive: what queues ask for, when a job last started there, workers, slots."""

from __future__ import annotations

import numpy as np
import polars as pl

from brokerlab.archive.contracts.jobs import OVER
from brokerlab.numerics import BoolArray, FloatArray, IntArray
from brokerlab.units import DAY_S
from brokerlab.worlds.frames_jobs import known
from brokerlab.worlds.links import snapshot_seconds
from brokerlab.worlds.queues import conform
from brokerlab.worlds.world import World

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
                        "computingsite": pl.Series(world.names)[pl.Series(queue)],
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
