"""Probe jobs of a synthetic archive: small tests sent to every queue around the clock, outside of tasks."""

from __future__ import annotations

import numpy as np
import polars as pl

from brokerlab.numerics import BoolArray, IntArray
from brokerlab.units import KB
from brokerlab.worlds.block import PROBE_IDS, identify
from brokerlab.worlds.chains import activation_s
from brokerlab.worlds.frames_jobs import known, texts
from brokerlab.worlds.jobtypes import TEST_SHARE, USER_SHARE
from brokerlab.worlds.queues import conform
from brokerlab.worlds.roles import held
from brokerlab.worlds.world import World

PROBE_SHARE = 0.04
"""Share of jobs that are probes."""
ANALYSIS_SHARE = 0.75
"""Share of the probes that look like analysis, at queues that take it; the others are labelled as tests."""
PROBE_USER = "gangarbt"
"""Name under which probes are submitted (classes.md 1.1)."""
KINDS = ("gangarobot-celpft", "gangarobot-pft")
WALL_S, WALL_LN_SD, EFFICIENCY = 620.0, 0.35, 0.6
PRIORITY = 5000


def n_probes(rows: int) -> int:
    """Return how many of a block's rows are probes."""
    return round(PROBE_SHARE * rows)


def probe_jobs(world: World, *, index: int, n_blocks: int, count: int) -> pl.DataFrame:
    """Return the probes of one block as rows of ``jobs``: every queue gets one after the other, none is without for long."""
    rng = world.generator(103, index)
    length = world.settings.submit_s / n_blocks
    created_s = index * length + np.sort(rng.random(count)) * length
    second, pandaid = identify(created_s, index=index, n_blocks=n_blocks, room=PROBE_IDS)
    test = rng.random(count) >= ANALYSIS_SHARE
    queue = np.where(
        test,
        _in_turn(rng, world.usable, count),
        _in_turn(rng, world.usable & world.analysis, count),
    )
    wait = world.draw_waits(rng, queue)
    wait = held(world.spells, queue, second, np.clip(wait, 30, 86_400))
    wait_s = np.ceil(wait).astype(np.int64)
    wall_s = np.ceil(WALL_S * np.exp(WALL_LN_SD * rng.standard_normal(count))).astype(np.int64)
    failed = rng.random(count) < world.fail[queue]
    begun = second + wait_s
    gone = begun + wall_s + rng.integers(3, 25, count)
    power = world.corepower[queue]
    memory = np.round(np.exp(rng.normal(np.log(900), 0.1, count)) * KB).astype(np.int64)
    frame = pl.DataFrame(
        {
            "pandaid": pandaid,
            "jobstatus": texts(["finished", "failed"], failed.astype(np.int64)),
            "prodsourcelabel": texts(["user", "test"], test.astype(np.int64)),
            "processingtype": texts(KINDS, test.astype(np.int64)),
            "gshare": texts([USER_SHARE, TEST_SHARE], test.astype(np.int64)),
            "computingsite": texts(world.names, queue),
            "cloud": texts(world.queues["cloud"].to_list(), queue),
            "creationtime": world.times(second),
            "activatedtime": world.times(second + activation_s(wait_s)),
            "starttime": world.times(begun),
            "endtime": world.times(begun + wall_s),
            "modificationtime": world.times(gone),
            "statechangetime": world.times(gone),
            "hs06": np.round(power).astype(np.int64),
            "hs06sec": (wall_s * power).astype(np.int64),
            "cpuconsumptiontime": np.where(failed, 0, np.round(EFFICIENCY * wall_s).astype(np.int64)),
            "maxpss": known(memory, ~failed),
            "piloterrorcode": np.where(failed, 1305, 0),
        }
    )  # fmt: skip
    return conform("jobs", frame.with_columns(**_SAME)).sort("pandaid")


_SAME = {
    "vo": pl.lit("atlas"),
    "produsername": pl.lit(PROBE_USER),
    "resource_type": pl.lit("SCORE"),
    "transformation": pl.lit("runProbe"),
    "currentpriority": pl.lit(PRIORITY),
    "assignedpriority": pl.lit(PRIORITY),
    "attemptnr": pl.lit(1),
    "maxattempt": pl.lit(1),
    "corecount": pl.lit(1),
    "actualcorecount": pl.lit(1),
}
"""Columns of ``jobs`` that do not vary."""


def _in_turn(rng: np.random.Generator, able: BoolArray, count: int) -> IntArray:
    """Return queues, every able one once before any comes again."""
    queues = np.flatnonzero(able)
    rounds = -(-count // len(queues))
    order = np.concatenate([rng.permutation(queues) for _ in range(max(rounds, 1))])
    return np.asarray(order[:count], dtype=np.int64)
