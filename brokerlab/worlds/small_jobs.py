"""Jobs beside the tasks that are drawn: small user tasks without scouts, and probes that every queue gets around the clock.

Small tasks are of many light users, and of those whose large tasks run at the time.
"""

from __future__ import annotations

import numpy as np
import polars as pl

from brokerlab.numerics import BoolArray, FloatArray, IntArray
from brokerlab.units import KB
from brokerlab.worlds.block import PROBE_IDS, Block, identify
from brokerlab.worlds.chains import activation_s
from brokerlab.worlds.frames_jobs import known, texts
from brokerlab.worlds.jobtypes import EXPRESS, TEST_SHARE, USER_SHARE
from brokerlab.worlds.queues import conform, held
from brokerlab.worlds.story_frames import HOUR, LEAD_S, Path, Story, steps
from brokerlab.worlds.tasks import LARGE_TASK, draw_groups, draw_users
from brokerlab.worlds.world import World

LIGHT = "light"
"""Name of their story."""
LIGHT_SHARE = 0.006
"""Share of jobs in such tasks."""
SIZES, SIZE_SHARES = (1, 2, 4, 8), (0.3, 0.3, 0.25, 0.15)
"""Jobs of such a task and how often."""
AFTER_LARGE = 0.6
"""Share of them whose owner's large task runs."""
WITHIN_S = 8 * HOUR
"""They come so soon after the large task was decided [s]."""
LONGEST_S = 12 * HOUR
LIGHT_WALL_S, LIGHT_WALL_LN_SD = 1400.0, 0.5


def n_light(rows: int) -> int:
    """Return how many of a block's rows are jobs of small user tasks."""
    return round(LIGHT_SHARE * rows)


def light_tasks(world: World, block: Block, *, n_blocks: int, count: int) -> list[Story]:
    """Lay small user tasks with ``count`` jobs out; the owners of the block's large tasks are followed."""
    rng = world.generator(104, block.index)
    sizes = _sizes(rng, count)
    begin = _begins(world, rng, len(sizes), block.index, n_blocks)
    user = draw_users(rng, np.zeros(len(sizes), np.bool_))
    large = np.flatnonzero((block.owners.user >= 0) & (block.tasks.n_jobs > LARGE_TASK))
    if len(large):
        follows = rng.random(len(sizes)) < AFTER_LARGE
        whose = large[rng.integers(0, len(large), len(sizes))]
        after = block.decided_s[whose] + rng.uniform(600, WITHIN_S, len(sizes))
        follows &= after < world.settings.submit_s / n_blocks * (block.index + 1)
        user = np.where(follows, block.owners.user[whose], user)
        begin = np.where(follows, np.maximum(after, begin.min()), begin)
    group = draw_groups(rng, user)
    express = rng.random(len(sizes)) < 0.1
    online = world.queues["status"].to_numpy() == "online"
    able = np.flatnonzero(
        world.usable & world.analysis & online & ((world.cores == 1) | world.ucore)
    )
    return [
        Story(
            name=LIGHT, label="user", user=int(user[i]), group=int(group[i]),
            columns={"gshare": EXPRESS if express[i] else USER_SHARE},
            paths=tuple(_paths(world, rng, able, int(begin[i]), size)),
        )
        for i, size in enumerate(sizes)
    ]  # fmt: skip


def _sizes(rng: np.random.Generator, count: int) -> list[int]:
    """Draw sizes of tasks that sum to a number."""
    result: list[int] = []
    while count > 0:
        result.append(min(int(rng.choice(SIZES, p=SIZE_SHARES)), count))
        count -= result[-1]
    return result


def _begins(
    world: World, rng: np.random.Generator, n: int, index: int, n_blocks: int
) -> FloatArray:
    """Draw when the first jobs are made, within the block's part of the period."""
    length = world.settings.submit_s / n_blocks
    low = min(LEAD_S, length / 2)
    return np.asarray(index * length + rng.uniform(low, length, n))


def _paths(
    world: World, rng: np.random.Generator, able: IntArray, begin: int, size: int
) -> list[Path]:
    """Lay the jobs of a task out; all of them finish."""
    queue = rng.choice(able, size)
    wait = np.clip(world.draw_waits(rng, queue), 300, LONGEST_S)
    second = begin + 10 * np.arange(size)
    wait = held(world.spells, queue, second, wait)
    wall = np.ceil(LIGHT_WALL_S * np.exp(LIGHT_WALL_LN_SD * rng.standard_normal(size))).astype(int)
    return [
        Path(steps(int(s), {"activated": max(int(w) - 165, 60), "running": int(t)}), int(q))
        for s, w, t, q in zip(second, wait, wall, queue, strict=True)
    ]


PROBE_SHARE = 0.04
"""Share of jobs that are probes."""
ANALYSIS_SHARE = 0.75
"""Share of the probes that look like analysis, at queues that take it; the others are labelled as tests."""
PROBE_USER = "gangarbt"
"""Name under which probes are submitted (classes.md 1.1)."""
KINDS = ("gangarobot-celpft", "gangarobot-pft")
PROBE_WALL_S, PROBE_WALL_LN_SD, EFFICIENCY = 620.0, 0.35, 0.6
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
    wall_s = np.ceil(PROBE_WALL_S * np.exp(PROBE_WALL_LN_SD * rng.standard_normal(count))).astype(
        np.int64
    )
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
