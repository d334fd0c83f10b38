"""Every row of one block: what is drawn, what is laid out one by one, and the probes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import polars as pl

from brokerlab.numerics import IntArray
from brokerlab.worlds.block import Block, delayed, draw_block, with_others
from brokerlab.worlds.frames_jobs import LIVE, jobs_frame, not_over
from brokerlab.worlds.frames_tasks import (
    datasets_frame,
    ends_of,
    files_frame,
    job_status_log,
    task_status_log,
    tasks_frame,
    totals_of,
)
from brokerlab.worlds.orders import Orders, UserRows, draw_orders, draw_user_orders
from brokerlab.worlds.queues import conform
from brokerlab.worlds.small_jobs import LIGHT, light_tasks, n_light, n_probes, probe_jobs
from brokerlab.worlds.storage import Reader, replicas, unmerged_replicas
from brokerlab.worlds.story_frames import Story, plant
from brokerlab.worlds.truth import truth_queues, truth_tasks
from brokerlab.worlds.world import World


@dataclass(frozen=True)
class Drawn:
    """A block, and all that is asked of the brokerage for its tasks."""

    block: Block  # its tasks that are drawn, with their jobs
    stories: list[Story]  # its tasks that are laid out one by one ...
    ids: IntArray  # ... and their ``jeditaskid``
    orders: Orders  # what production asks for
    of_users: Orders  # what users ask for
    probes: pl.DataFrame
    n_blocks: int
    # ``pandaid``, ``jobstatus`` of jobs of the block that are not over at the end of the archive
    live: pl.DataFrame = field(default_factory=lambda: pl.DataFrame(schema=LIVE))
    copies: pl.DataFrame | None = None  # the copies of the input; None: they are drawn


def draw(world: World, stories: Sequence[Story], *, index: int, n_blocks: int, quota: int) -> Drawn:
    """Draw one block of ``quota`` jobs; it depends on the seed and its number only, and a lived world does not read its waits."""
    mine = [s for s in stories if _block_of(world, s, n_blocks) == index]
    light = n_light(quota)
    apart = light + n_probes(quota) + sum(len(s.paths) for s in mine)
    block = draw_block(world, index=index, n_blocks=n_blocks, quota=quota - apart)
    mine += light_tasks(world, block, n_blocks=n_blocks, count=light)
    block, ids = with_others(block, np.array([s.created_s for s in mine], dtype=np.int64))
    block = delayed(block, world)
    return Drawn(
        block=block,
        stories=mine,
        ids=ids,
        orders=draw_orders(world, block),
        of_users=draw_user_orders(world, _of_users(block, mine, ids), index),
        probes=probe_jobs(world, index=index, n_blocks=n_blocks, count=n_probes(quota)),
        n_blocks=n_blocks,
    )


def tables_of(world: World, drawn: Drawn, *, truth: bool = True) -> dict[str, pl.DataFrame]:
    """Return the rows of one block: table to rows; those of the truth, which take long, are named ``truth/...``."""
    block, mine, ids = drawn.block, drawn.stories, drawn.ids
    planted = plant(world, mine, ids, index=block.index, n_blocks=drawn.n_blocks)
    tables = _draw(world, drawn, truth=truth)
    log = job_status_log(world, pl.concat([tables["jobs"], drawn.probes]))
    tables = _with_planted({**tables, "job_status_log": log}, planted)
    tables["jobs"] = pl.concat([drawn.of_users.complete_jobs(tables["jobs"]), drawn.probes])
    tables["tasks"] = conform("tasks", drawn.of_users.complete_tasks(tables["tasks"]))
    readers = _readers(block, drawn.orders, mine, ids)
    copies = drawn.copies
    if copies is None:
        copies = replicas(world, block.index, tables["files"], readers)
    both = pl.concat([copies, unmerged_replicas(world, tables["files"], readers)])
    tables["replicas"] = both.sort("datasetname", "ddm_endpoint_name")
    return tables


def _block_of(world: World, story: Story, n_blocks: int) -> int:
    """Return the block in whose part of the period a task is created; late ones are in the last."""
    return min(int(story.created_s / (world.settings.submit_s / n_blocks)), n_blocks - 1)


def _draw(world: World, drawn: Drawn, *, truth: bool) -> dict[str, pl.DataFrame]:
    """Return the rows of the tasks that were drawn."""
    block, orders = drawn.block, drawn.orders
    ends = ends_of(block, drawn.live)
    totals = totals_of(block, ends)
    tasks = tasks_frame(world, block, totals)
    jobs = not_over(jobs_frame(world, block), drawn.live)
    truths = {}
    if truth:
        queues = truth_queues(world, block, totals)
        truths = {"truth/queues": queues, "truth/tasks": truth_tasks(world, block, totals, queues)}
    return truths | {
        "jobs": orders.complete_jobs(jobs),
        "tasks": conform("tasks", orders.complete_tasks(tasks)),
        "files": files_frame(block, ends),
        "datasets": orders.complete_datasets(datasets_frame(world, block, totals)),
        "task_status_log": task_status_log(world, block, totals, tasks),
    }


def _with_planted(
    tables: dict[str, pl.DataFrame], planted: dict[str, pl.DataFrame]
) -> dict[str, pl.DataFrame]:
    """Add the rows of the tasks that were laid out."""
    order = {
        "tasks": ["jeditaskid"],
        "datasets": ["jeditaskid", "datasetid"],
        "task_status_log": ["jeditaskid"],
    }
    both = {
        name: pl.concat([tables[name], rows]) if name in tables else rows
        for name, rows in planted.items()
    }
    both |= {name: both[name].sort(keys, maintain_order=True) for name, keys in order.items()}
    return tables | both


def _of_users(block: Block, stories: Sequence[Story], ids: IntArray) -> UserRows:
    """Return the user tasks that ask for something: those drawn and the small ones; stories stay as they are told."""
    task, tasks = np.flatnonzero(block.owners.user >= 0), block.tasks
    small = [(i, s) for i, s in zip(ids.tolist(), stories, strict=True) if s.name == LIGHT]

    def column(own: IntArray, of_small: list[int]) -> IntArray:
        return np.concatenate([own, np.array(of_small, dtype=np.int64)])

    return UserRows(
        taskid=column(block.taskid[task], [i for i, _ in small]),
        created_s=column(
            np.floor(tasks.created_s[task]).astype(np.int64), [s.created_s for _, s in small]
        ),
        queue=column(tasks.slots.queue[task, 0], [s.paths[0].queue for _, s in small]),
        cores=column(tasks.cores[task], [s.cores for _, s in small]),
        merges=column((tasks.merge_group[task] > 0).astype(np.int64), [0] * len(small)),
    )


def _readers(
    block: Block, orders: Orders, stories: Sequence[Story], ids: IntArray
) -> dict[int, Reader]:
    """Return where tasks run and what decides about the place of their input."""
    wanted = orders.tasks.select("jeditaskid", "nucleus", pl.col("fullchain").is_not_null())
    chosen = {taskid: (name, chained) for taskid, name, chained in wanted.iter_rows()}
    slots, users = block.tasks.slots, block.owners.user >= 0
    result = {}
    for t, taskid in enumerate(block.taskid.tolist()):
        nucleus, chained = chosen.get(taskid, (None, False))
        queues = slots.queue[t].tolist()
        if users[t]:
            queues = queues[: int((slots.weight[t] > 0).sum())]
        result[taskid] = Reader(queues, not users[t], nucleus, chained)
    for taskid, story in zip(ids.tolist(), stories, strict=True):
        queues = [*dict.fromkeys(p.queue for p in story.paths), *story.data]
        copies = None if story.name == LIGHT else story.copies
        result[taskid] = Reader(queues, production=False, copies=copies)
    return result
