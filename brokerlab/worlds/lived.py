"""A world that was lived as an archive: the attempts of the life in the place of those that were drawn."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
import polars as pl

from brokerlab.numerics import IntArray
from brokerlab.units import DAY_S
from brokerlab.worlds.assemble import Drawn
from brokerlab.worlds.block import identify, measure
from brokerlab.worlds.chains import FINISHED, LOST, Attempts, Roots, take
from brokerlab.worlds.frames_jobs import not_over
from brokerlab.worlds.life import OPEN_RUNS, OPEN_WAITS, Lived
from brokerlab.worlds.small_jobs import LIGHT
from brokerlab.worlds.story_frames import USUAL_S, Path, Story, steps
from brokerlab.worlds.tasks import Tasks
from brokerlab.worlds.work import Work
from brokerlab.worlds.world import World

BEFORE_START_S = USUAL_S["defined"] + USUAL_S["assigned"] + USUAL_S["starting"]
"""Time that a job which is laid out spends in other statuses than activated before it runs [s]."""


def lived_blocks(
    world: World, parts: Sequence[Drawn], lived: Lived, copies: Sequence[pl.DataFrame]
) -> Iterator[Drawn]:
    """Put what happened in the place of what was drawn, block by block, with the copies of each block's input."""
    work = lived.work
    tasks_lived = _with_weights(work, lived, world)
    single = _singles(work, lived)
    first = 0
    for number, part in enumerate(parts):
        t0, t1 = work.first_task[number : number + 2]
        r0, r1 = work.first_root[number : number + 2]
        tasks = take(tasks_lived, slice(t0, t1))
        roots = take(work.roots, slice(r0, r1))
        roots = replace(roots, task=roots.task - t0)
        mine = np.flatnonzero((lived.job >= r0) & (lived.job < r1))
        rows, own = _attempts(roots, lived, mine, r0)
        created, pandaid = identify(
            lived.created_s[own].astype(np.float64), index=part.block.index, n_blocks=part.n_blocks
        )
        rows = replace(
            rows,
            created_s=created.astype(np.float64),
            active_s=np.maximum(lived.ready_s[own] - created, 0),
            queue_s=np.maximum(lived.start_s[own] - created, 0),
        )
        over = np.ones(tasks.n, np.bool_)
        over[roots.task[lived.unfinished[r0:r1]]] = False
        block = replace(
            part.block,
            tasks=tasks,
            roots=roots,
            rows=rows,
            requests=take(lived.requests, slice(t0, t1)),
            decided_s=np.minimum(lived.decided_s[t0:t1], world.settings.days * DAY_S),
            measures=measure(tasks, roots, rows),
            pandaid=pandaid,
            created=created,
            complete=part.block.complete & over,
        )
        n_light = sum(len(s.paths) for s in part.stories if s.name == LIGHT)
        begun = single[first : first + n_light + part.probes.height]
        first += len(begun)
        outcome = lived.outcome[own]
        yield replace(
            part,
            block=block,
            stories=_retold(part, begun[:n_light]),
            probes=_moved(part.probes, begun[n_light:], world),
            live=_live(pandaid, outcome),
            copies=copies[number],
        )


def _attempts(roots: Roots, lived: Lived, mine: IntArray, first: int) -> tuple[Attempts, IntArray]:
    """Return the attempts of a block in the order of its rows, and where each stands in the life."""
    root = lived.job[mine] - first
    order = np.lexsort((lived.attempt[mine], roots.seq[root], roots.phase[root], roots.task[root]))
    own = mine[order]
    root = lived.job[own] - first
    open_ = lived.outcome[own] < 0
    slot = lived.place[lived.work.roots.task[lived.job[own]], lived.queue[own]].astype(np.int64)
    return Attempts(
        root=root,
        attempt=lived.attempt[own],
        slot=slot,
        created_s=lived.created_s[own].astype(np.float64),
        active_s=np.zeros(len(own), np.int64),
        queue_s=np.zeros(len(own), np.int64),
        wall_s=lived.end_s[own] - lived.start_s[own],
        cores=lived.cores[own],
        mem_mb=lived.mem_mb[own],
        eff=lived.eff[own],
        outcome=np.where(open_, LOST, lived.outcome[own]),
        ram_scale=lived.ram_scale[own],
        wall_scale=lived.wall_scale[own],
        report_s=np.maximum(lived.gone_s[own] - lived.end_s[own], 0),
        last=lived.last[own].astype(np.bool_),
    ), own


def _live(pandaid: IntArray, outcome: IntArray) -> pl.DataFrame:
    """Return the jobs that are not over."""
    parts = [
        pl.DataFrame({"pandaid": pandaid[outcome == code]}).with_columns(jobstatus=pl.lit(name))
        for code, name in ((OPEN_RUNS, "running"), (OPEN_WAITS, "activated"))
    ]
    return pl.concat(parts)


def _with_weights(work: Work, lived: Lived, world: World) -> Tasks:
    """Give tasks of production the weights of the queues where their jobs finished: truth is what happened."""
    tasks, slots = work.tasks, work.tasks.slots
    own = (lived.outcome == FINISHED) & work.brokered[lived.job]
    t, queue = work.roots.task[lived.job[own]], lived.queue[own]
    place = np.argsort(slots.queue, axis=1, kind="stable")
    count = np.zeros(slots.weight.shape)
    np.add.at(count, (t, place[t, queue]), 1.0)
    count /= 1 - world.fail[slots.queue]
    total = count.sum(axis=1, keepdims=True)
    weight = np.where(total > 0, count / np.maximum(total, 1e-12), slots.weight)
    return replace(tasks, slots=replace(slots, weight=weight))


def _singles(work: Work, lived: Lived) -> IntArray:
    """Return when each single job was ready, began, and ended [s]; -1 where it did not."""
    result = np.full((work.n - work.n_roots, 3), -1)
    rows = np.flatnonzero(lived.job >= work.n_roots)
    job = lived.job[rows] - work.n_roots
    waits = lived.outcome[rows] == OPEN_WAITS
    runs = lived.outcome[rows] == OPEN_RUNS
    result[job, 0] = lived.ready_s[rows]
    result[job, 1] = np.where(waits, -1, lived.start_s[rows])
    result[job, 2] = np.where(waits | runs, -1, lived.end_s[rows])
    return result


def _retold(part: Drawn, begun: IntArray) -> list[Story]:
    """Let the jobs of small tasks wait as long as they did."""
    rows = iter(begun.tolist())

    def lived_path(path: Path) -> Path:
        _, start, ended = next(rows)
        created = path.created_s
        if start < 0:
            path_steps = steps(created, last="activated")
        else:
            wait = max(start - created - BEFORE_START_S, 1)
            ran = path.ended_s - path.first("running") if ended < 0 else ended - start  # type: ignore[operator]
            last = "running" if ended < 0 else "finished"
            path_steps = steps(created, {"activated": wait, "running": ran}, last=last)
        return replace(path, steps=path_steps)

    return [
        replace(story, paths=tuple(lived_path(path) for path in story.paths))
        if story.name == LIGHT
        else story
        for story in part.stories
    ]


def _moved(probes: pl.DataFrame, begun: IntArray, world: World) -> pl.DataFrame:
    """Let probes start when they did; those that did not are not over."""
    ready, start, end = (world.times(begun[:, column]) for column in range(3))
    gone = end + (probes["modificationtime"] - probes["endtime"])
    rows = probes.with_columns(
        activatedtime=ready,
        starttime=start,
        endtime=end,
        modificationtime=gone,
        statechangetime=gone,
    )
    outcome = np.where(begun[:, 1] < 0, OPEN_WAITS, np.where(begun[:, 2] < 0, OPEN_RUNS, FINISHED))
    return not_over(rows, _live(probes["pandaid"].to_numpy(), outcome))
