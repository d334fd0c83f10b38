"""The work of a world: tasks and jobs of all blocks side by side, as they were drawn, before anything ran.

Large tasks ask for what most queues have: the whole work of a grid does not hang on what is rare.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import polars as pl

from brokerlab.numerics import BoolArray, IntArray
from brokerlab.worlds.assemble import Drawn
from brokerlab.worlds.block import decide
from brokerlab.worlds.chains import (
    BUILD,
    BULK,
    MERGED,
    SCOUT,
    Roots,
    finished,
    join,
    merge_keys,
    needs,
    take,
)
from brokerlab.worlds.orders import OLD_LINUX, UNKNOWN_NUCLEUS, Orders, with_tags
from brokerlab.worlds.small_jobs import LIGHT
from brokerlab.worlds.tasks import Tasks
from brokerlab.worlds.world import World

COLUMNS = (
    *("prodsourcelabel", "processingtype", "produsername", "workinggroup", "gshare"),
    *("workqueue_id", "currentpriority", "nucleus", "resource_type", "diskio", "jeditaskid"),
    "corecount",
)
"""What the simulator reads of the jobs as they were drawn."""
_SINGLE = ("pandaid", "computingsite", "creationtime", "starttime", "endtime")


@dataclass(frozen=True)
class Work:
    """Tasks and jobs; those that are drawn first, then single ones: probes, and the small tasks of users."""

    tasks: Tasks
    roots: Roots  # jobs of the tasks; ``task`` counts through all blocks
    first_task: IntArray  # (blocks + 1,) where the tasks of each block begin
    first_root: IntArray  # (blocks + 1,) where its jobs begin
    taskid: IntArray
    has_build: BoolArray  # (tasks,) its scouts wait for a build
    # (jobs, single ones too) the brokerage of production places it; scouts go to one or two quick queues
    brokered: BoolArray
    group: IntArray  # (jobs,) number of the merge that waits for its output, -1: none
    merge: IntArray  # (merges,) the job that merges
    output_bytes: IntArray  # (jobs, single ones too), as ``input_bytes``
    input_bytes: IntArray
    jobs: pl.DataFrame  # `COLUMNS` of all jobs, single ones too
    single: pl.DataFrame  # ``pandaid, queue`` (its name), ``created_s, wall_s`` of the single ones

    @property
    def n_roots(self) -> int:
        """Jobs of tasks that are drawn."""
        return len(self.roots.task)

    @property
    def n(self) -> int:
        """All jobs."""
        return self.jobs.height


def seen(tables: dict[str, pl.DataFrame]) -> dict[str, pl.DataFrame]:
    """Keep what the life and its archive take from the tables of a block: of jobs, of single ones, the copies of the input."""
    return {
        "jobs": tables["jobs"].select(*_SINGLE, *COLUMNS),
        "truth/planted": tables["truth/planted"],
        "replicas": tables["replicas"].filter(~pl.col("datasetname").str.ends_with(".trn_output")),
    }


def work_of(
    parts: Sequence[Drawn], tables: Sequence[dict[str, pl.DataFrame]], start_us: int
) -> Work:
    """Put the blocks side by side, with what :func:`seen` kept of their tables; ``start_us`` is the first instant [us since 1970]."""
    tasks = join([part.block.tasks for part in parts])
    sizes = [part.block.tasks.n for part in parts]
    first_task = np.cumsum([0, *sizes])
    roots, pandaid, measures = [], [], []
    for part, offset in zip(parts, first_task, strict=False):
        block = part.block
        kept, row = np.unique(block.rows.root, return_index=True)
        own = take(block.roots, kept)
        roots.append(replace(own, task=own.task + offset))
        pandaid.append(block.pandaid[row])
        measures.append((block.measures, row))
    first_root = np.cumsum([0, *(len(r.task) for r in roots)])
    every = join(roots)
    singles = [_single(part, result, start_us) for part, result in zip(parts, tables, strict=True)]
    single = pl.concat(singles)
    drawn = pl.concat([result["jobs"].select("pandaid", *COLUMNS) for result in tables])
    ids = pl.DataFrame({"pandaid": np.concatenate([*pandaid, single["pandaid"].to_numpy()])})
    jobs = ids.join(drawn, on="pandaid", how="left", maintain_order="left").drop("pandaid")
    brokered = np.zeros(jobs.height, np.bool_)
    brokered[: len(every.task)] = tasks.managed[every.task] & (every.phase == BULK)
    group, merge = _groups(tasks, every)
    none = np.zeros(single.height, np.int64)
    return Work(
        tasks=tasks,
        roots=every,
        first_task=first_task,
        first_root=first_root,
        taskid=np.concatenate([part.block.taskid for part in parts]),
        has_build=np.bincount(every.task[every.phase == BUILD], minlength=tasks.n) > 0,
        brokered=brokered,
        group=group,
        merge=merge,
        output_bytes=np.concatenate([*(m.output_bytes[row] for m, row in measures), none]),
        input_bytes=np.concatenate([*(m.input_bytes[row] for m, row in measures), none]),
        jobs=jobs,
        single=single,
    )


def with_requests(world: World, drawn: Drawn) -> Drawn:
    """Return the block with what its tasks ask for once all of their scouts have finished.

    What a scout needs is known before it runs, since it goes to the queue it was drawn to: the brokerage of the life reads
    the same requests as the archive will hold.
    """
    block = drawn.block
    kept = np.unique(block.rows.root)
    scouts = kept[block.roots.phase[kept] == SCOUT]
    roots = take(block.roots, scouts)
    cores, wall, mem, eff = needs(block.tasks, roots, roots.slot)
    rows = finished(scouts, roots.slot, np.floor(wall).astype(np.int64), cores, mem, eff)
    requests = decide(world, block.tasks, block.roots, rows)
    return replace(drawn, block=replace(block, requests=requests))


def _single(part: Drawn, tables: dict[str, pl.DataFrame], start_us: int) -> pl.DataFrame:
    """Return the jobs of the small tasks of users in the order of their stories, then the probes."""
    small = tables["truth/planted"].filter(story=LIGHT).select("pandaid")
    light = small.join(tables["jobs"], on="pandaid", how="left", maintain_order="left")
    rows = pl.concat([light.select(_SINGLE), part.probes.select(_SINGLE)])
    micro = (pl.col("creationtime").cast(pl.Int64) - start_us) // 1_000_000
    return rows.select(
        "pandaid",
        queue="computingsite",
        created_s=micro,
        wall_s=(pl.col("endtime") - pl.col("starttime")).dt.total_seconds(),
    )


def _groups(tasks: Tasks, roots: Roots) -> tuple[IntArray, IntArray]:
    """Return the merge that waits for each job, and the job of each merge."""
    t, key, merge = roots.task, merge_keys(tasks, roots), np.flatnonzero(roots.phase == MERGED)
    keys = key[merge]
    order = np.argsort(keys)
    merge, keys = merge[order], keys[order]
    place = np.searchsorted(keys, key)
    member = np.isin(roots.phase, (SCOUT, BULK)) & (tasks.merge_group[t] > 0) & (place < len(keys))
    place = np.where(member, place, 0)
    if not len(keys):
        return np.full(len(t), -1), merge
    return np.where(member & (keys[place] == key), place, -1), merge


LARGE = 150
"""Tasks with more jobs are large."""
RARE = (
    *("container_name", "onlytagsforfc", "site", "uselocalio", "t1weight", "inputprestaging"),
    *("ipconnectivity", "ipstack", "maxcorecount"),
)
"""What few queues can give."""
RELEASE = {"transhome": "Athena-24.0.40", "transuses": "Atlas-24.0.40"}


def plain(drawn: Drawn) -> Drawn:
    """Return the block with the rare wishes of its large tasks of production left out; small ones keep theirs."""
    tasks = drawn.block.tasks
    large = drawn.block.taskid[np.flatnonzero(tasks.n_jobs > LARGE)]
    rows = drawn.orders.tasks.drop("tags")
    here = pl.col("jeditaskid").is_in(pl.Series(large).implode())
    lost = pl.col("nucleus").is_null() | (pl.col("nucleus") == UNKNOWN_NUCLEUS)
    nucleus = rows.filter(~lost)["nucleus"].mode().sort().head(1)
    changes = {
        **dict.fromkeys(RARE, pl.lit(None)),
        **{name: pl.lit(value) for name, value in RELEASE.items()},
        "architecture": pl.lit(OLD_LINUX),
        "nucleus": pl.when(lost).then(pl.lit(nucleus.first())).otherwise("nucleus"),
    }
    calm = rows.with_columns(
        pl.when(here).then(value).otherwise(name).cast(rows.schema[name]).alias(name)
        for name, value in changes.items()
    )
    return replace(drawn, orders=Orders(tasks=with_tags(calm), tokens=drawn.orders.tokens))
