"""The arrays of a grid simulation: codes in the place of names, rows of jobs in the order of pandaid."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import polars as pl

from brokerlab.calibrate.simulation.state import codes, durations
from brokerlab.numerics import FloatArray, IntArray
from brokerlab.units import MB

if TYPE_CHECKING:
    from brokerlab.calibrate.simulation.world import World

GROUPS = {
    "jobs": ["gshare", "resource_type", "workqueue_id", "nucleus", "corecount"],
    "analysis": [
        "gshare", "resource_type", "workqueue_id", "prodsourcelabel", "produsername", "workinggroup",
        "corecount",
    ],
}  # fmt: skip
"""What jobs are counted by, for the brokerage of a stage."""
DISKIO_UNIT = 1_000_000
"""Disk traffic per core is added up in whole millionths of kB/s."""
FEW_MBPS = 10.0
"""Throughput where no link is known [MB/s]."""


@dataclass(frozen=True)
class Arrays:
    """What the loop works on.

    Attributes:
        order: (jobs,) rows in the order of making.
        brokered: (jobs,) the brokerage places it.
        task: (jobs,) row of ``tasks``, -1 for none.
        group: (jobs,) row of ``groups``.
        prepared: (jobs,) from creation to activation as seen [us].
        input_bytes: (jobs,).
        output_bytes: (jobs,).
        home: (jobs,) site of the nucleus, -1 for none.
        diskio: (jobs,) per core, in millionths of kB/s, -1 unknown.
        tasks: Ids, ascending.
        snapshot: (epochs, tasks) row of the brokerage's ``tasks`` to ask for.
        epoch_at: (epochs,) from when on [us since 1970].
        groups: What jobs are counted by, see :data:`GROUPS`; rows may repeat but for their cores.
        group_cores: (groups,) cores of such a job.
        queue_names: Names of the queues, in the world's order.
        candidates: ``panda_queue`` (str), ``queue``: row of the queue whose slots a candidate has.
        site: (queues,) -1 for none.
        sites: Names.
        lacking: (tasks, queues) part of the input that the queue does not have; empty without data.
        source: (tasks, sites) site that the input comes from, by destination, -1 for none; empty without data.
        us_per_byte: (sites * sites,) by source and destination.
    """

    order: IntArray
    brokered: npt.NDArray[np.bool_]
    task: IntArray
    group: IntArray
    prepared: IntArray
    input_bytes: IntArray
    output_bytes: IntArray
    home: IntArray
    diskio: IntArray
    tasks: IntArray
    snapshot: IntArray
    epoch_at: IntArray
    groups: pl.DataFrame
    group_cores: IntArray
    queue_names: pl.Series
    candidates: pl.DataFrame
    site: IntArray
    sites: pl.Series
    lacking: FloatArray
    source: IntArray
    us_per_byte: FloatArray


def arrays_of(world: World) -> Arrays:
    """Make the arrays."""
    jobs, columns = world.jobs, GROUPS[world.stage]
    tasks, snapshot, task = _tasks(world)
    groups = jobs.select(columns).unique(maintain_order=True).with_row_index("group")
    group = jobs.select(columns).join(
        groups, on=columns, how="left", nulls_equal=True, maintain_order="left"
    )["group"]
    candidates, sites, site = _places(world)
    per_core = pl.col("diskio") * DISKIO_UNIT // pl.col("corecount")
    diskio = jobs.select(pl.when(pl.col("diskio") >= 0).then(per_core)).to_series()
    lacking, source, us_per_byte = _data(world, tasks, sites, site)
    return Arrays(
        order=np.argsort(world.created, kind="stable"),
        brokered=jobs["brokered"].to_numpy(writable=True),
        task=task,
        group=group.cast(pl.Int64).to_numpy(),
        prepared=durations(jobs["prepared_s"], 0),
        input_bytes=jobs["input_bytes"].fill_null(0).to_numpy(),
        output_bytes=jobs["output_bytes"].fill_null(0).to_numpy(),
        home=codes(jobs["nucleus"], sites),
        diskio=diskio.fill_null(-1).to_numpy(),
        tasks=tasks,
        snapshot=snapshot,
        epoch_at=world.epochs["at"].cast(pl.Datetime("us")).to_physical().to_numpy(),
        groups=groups.drop("group", "corecount"),
        group_cores=groups["corecount"].cast(pl.Int64).to_numpy(),
        queue_names=world.queues["panda_queue"],
        candidates=candidates,
        site=site,
        sites=sites,
        lacking=lacking,
        source=source,
        us_per_byte=us_per_byte,
    )


def _tasks(world: World) -> tuple[IntArray, IntArray, IntArray]:
    """Return ids of tasks, the snapshot of every epoch and task, and the task of every job.

    Where a task has no row for an epoch, the last one before holds, or else the first one after.
    """
    if "tasks" not in world.tables:
        none: IntArray = np.empty((0, 0), np.int64)
        return none.ravel(), none, np.full(world.jobs.height, -1)
    rows = world.tables["tasks"].select(
        pl.col("jeditaskid").cast(pl.Int64), pl.col("snapshot").fill_null(0).cast(pl.Int64)
    )
    tasks = rows["jeditaskid"].unique().sort()
    epochs = world.epochs["snapshot"].cast(pl.Int64)
    place = codes(rows["snapshot"], epochs)
    known = place >= 0
    table = np.full((epochs.len(), tasks.len()), -1, np.int64)
    table[place[known], np.searchsorted(tasks.to_numpy(), rows["jeditaskid"].to_numpy()[known])] = (
        place[known]
    )
    filled = np.maximum.accumulate(table, axis=0)
    later = np.where(table < 0, epochs.len(), table)
    following = np.minimum.accumulate(later[::-1], axis=0)[::-1]
    chosen = np.where(filled >= 0, filled, following)
    snapshot = np.append(epochs.to_numpy(), -1)[chosen]
    some = (snapshot >= 0).any(axis=0)
    ids = tasks.to_numpy()[some]
    return ids, snapshot[:, some], codes(world.jobs["jeditaskid"], pl.Series(ids))


def _places(world: World) -> tuple[pl.DataFrame, pl.Series, IntArray]:
    """Return the candidates with their queue's row, the names of sites, and the site of every queue."""
    names, places = world.queues["panda_queue"], world.data["places"]
    parents = places.with_columns(
        parent=pl.coalesce("unified_name", "panda_queue").str.split("/").list.first()
    )
    queue = codes(parents["parent"], names)
    candidates = parents.select("panda_queue", queue=pl.Series(queue))
    own = parents.select("parent", "site").drop_nulls().unique("parent", maintain_order=True)
    mentioned = [
        own["site"],
        world.jobs["nucleus"],
        world.data["links"]["src"],
        world.data["links"]["dst"],
        world.data["sources"]["site"],
    ]
    sites = pl.concat([part.alias("site") for part in mentioned]).drop_nulls().unique().sort()
    where = names.to_frame("parent").join(own, on="parent", how="left", maintain_order="left")
    return candidates, sites, codes(where["site"], sites)


def _data(
    world: World, tasks: IntArray, sites: pl.Series, site: IntArray
) -> tuple[FloatArray, IntArray, FloatArray]:
    """Return the input that queues lack, where it comes from, and how slow links are."""
    present, sources = world.data["present"], world.data["sources"]
    rate = _rates(world, sites)
    us_per_byte = (1e6 / (rate * MB)).ravel()
    if present.is_empty() and sources.is_empty():
        return np.empty((0, 0)), np.empty((0, 0), np.int64), us_per_byte
    lacking = np.ones((len(tasks), len(site)))
    row = codes(present["jeditaskid"], pl.Series(tasks))
    queue = codes(present["panda_queue"], world.queues["panda_queue"])
    known = (row >= 0) & (queue >= 0)
    lacking[row[known], queue[known]] = 1 - present["part"].to_numpy()[known]
    without = np.setdiff1d(np.arange(len(tasks)), row)
    lacking[without] = 0.0  # input that nobody has cannot be moved
    return lacking, _best_sources(sources, tasks, sites, rate), us_per_byte


def _rates(world: World, sites: pl.Series) -> FloatArray:
    """Return the throughput of every link [MB/s]."""
    links, options = world.data["links"], world.transfers
    known = links.filter(pl.col("mbps") > 0)
    usual = options.default_mbps
    if usual is None:
        median = known["mbps"].median()
        usual = FEW_MBPS if median is None else float(median)  # type: ignore[arg-type]
    rate = np.full((len(sites), len(sites)), float(usual))
    rate[codes(known["src"], sites), codes(known["dst"], sites)] = known["mbps"].to_numpy()
    return np.asarray(np.maximum(rate, options.least_mbps))


def _best_sources(
    sources: pl.DataFrame, tasks: IntArray, sites: pl.Series, rate: FloatArray
) -> IntArray:
    """Return for every task and destination the source with the quickest link, the first by name of equal ones."""
    best = np.full((len(tasks), len(sites)), -1, np.int64)
    task = codes(sources["jeditaskid"], pl.Series(tasks))
    source = codes(sources["site"], sites)
    order = np.lexsort((source, task))
    order = order[(task[order] >= 0) & (source[order] >= 0)]
    task, source = task[order], source[order]
    if not len(task):
        return best
    # rank of a source among all of a destination: the slowest 0; of equal links the first by name is ranked highest
    slow_first = np.argsort(rate[::-1], axis=0, kind="stable")
    slow_first = len(sites) - 1 - slow_first
    rank = np.empty_like(slow_first)
    np.put_along_axis(rank, slow_first, np.arange(len(sites))[:, None], axis=0)
    first = np.flatnonzero(np.append(True, task[1:] != task[:-1]))
    top = np.maximum.reduceat(rank[source], first, axis=0)
    best[task[first]] = np.take_along_axis(slow_first, top, axis=0)
    return best
