"""Small user tasks without scouts: of many light users, and of those whose large tasks run at the time."""

from __future__ import annotations

import numpy as np

from brokerlab.numerics import FloatArray, IntArray
from brokerlab.worlds.block import Block
from brokerlab.worlds.jobtypes import EXPRESS, USER_SHARE
from brokerlab.worlds.paths import HOUR, Path, steps
from brokerlab.worlds.roles import held
from brokerlab.worlds.story_frames import LEAD_S, Story
from brokerlab.worlds.users import LARGE_TASK, draw_groups, draw_users
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
WALL_S, WALL_LN_SD = 1400.0, 0.5


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
    wall = np.ceil(WALL_S * np.exp(WALL_LN_SD * rng.standard_normal(size))).astype(int)
    return [
        Path(steps(int(s), {"activated": max(int(w) - 165, 60), "running": int(t)}), int(q))
        for s, w, t, q in zip(second, wait, wall, queue, strict=True)
    ]
