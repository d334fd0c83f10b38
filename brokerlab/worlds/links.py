"""Links to the nuclei of a synthetic archive: closeness, throughput, files queued, snapshot by snapshot."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import polars as pl

from brokerlab.numerics import BoolArray, FloatArray, IntArray
from brokerlab.units import DAY_S
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
        self.sites = pl.Series(world.sites)
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
            "src": links.sites[pl.Series(links.src[link])],
            "dst": links.sites[pl.Series(links.dst[link])],
            "key": pl.Series(KEYS)[pl.Series(key)],
            "value": value,
            "ts": world.times(seconds[at]),
        }
    )
    return conform("network_matrix", frame)
