"""A world in arrays: codes in the place of names, rows of jobs in the order of pandaid, whole microseconds.

`State` is what the compiled event loop changes; `Arrays` is what no setting and no seed changes.
"""

from __future__ import annotations

from copy import deepcopy
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt
import polars as pl

from brokerlab.numerics import BoolArray, FloatArray, IntArray
from brokerlab.units import MB, SECOND_US

if TYPE_CHECKING:
    from brokerlab.calibrate.simulation.world import World

NEVER = 2**62
"""A time that does not come, and a limit that does not bind."""

UNPLACED, WAITING, RUNNING, DONE = range(4)  # status of a job
FINISHED, KILLED_WALLTIME, KILLED_MEMORY, RUNS, WAITS = range(5)  # outcome of an attempt
HEAP, LOG, CLOCK = range(3)  # places of the counters
END, CHANGE, READY, PILOT = range(4)  # kinds of events, at one time in this order
KIND = 2**40

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
FEW_MBPS, LEAST_MBPS = 10.0, 0.1
"""Throughput where no link is known, and below which none is taken to be [MB/s]."""

Records = npt.NDArray[np.void]
"""An array of one of the records below: what belongs together lies together."""

WORK = np.dtype(
    [
        ("pandaid", np.int64),
        ("wall", np.int64),
        ("cores", np.int64),
        ("width", np.int64),  # number of its core count among the different ones
        ("priority", np.int64),
        ("peak_mb", np.float64),  # NaN where unknown
        ("wall_limit", np.int64),
        ("home", np.int64),  # queue it came with, -1 where the brokerage places it
        ("fate", np.int64),  # outcome of the attempt if no limit ends it
    ]
)
"""What a job needs; a job is its row, rows are in the order of pandaid."""
ATTEMPT = np.dtype(
    [
        ("status", np.int64),
        ("queue", np.int64),
        ("number", np.int64),  # from 1
        ("ready", np.int64),
        ("start", np.int64),
        ("outcome", np.int64),
        ("limit_mb", np.float64),  # infinite where there is none
        ("child", np.int64),
        ("sibling", np.int64),
        ("moves", np.int64),  # times it was taken back while it waited
    ]
)
"""The present attempt of a job, and its links in the waiting line."""
QUEUE = np.dtype(
    [
        ("slots", np.int64),  # cores that may run now
        ("most_slots", np.int64),  # most that it ever has
        ("in_use", np.int64),  # cores running
        ("maxtime", np.int64),
        ("maxrss", np.float64),  # [MB]
        ("first_delay", np.int64),  # where its start-up delays begin
        ("n_delays", np.int64),
    ]
)
"""A queue; ``slots`` and ``in_use`` change with time."""
LOGGED = np.dtype(
    [(name, np.int64) for name in ("job", "number", "queue", "ready", "start", "end", "outcome")]
)
"""An attempt, in the log once it has ended."""


class Places(NamedTuple):
    """Queues and their waiting lines.

    Attributes:
        delay: Start-up delays of all queues, ascending inside a queue [us].
        widths: The different core counts of the jobs, ascending.
        change_queue: Queue of each change of slots ...
        change_slots: ... and its new slots.
        waiting: (n_queues * n_widths,) job at the head of each waiting line, -1 where it is empty.
        pilots: (n_queues * n_widths,) pilots that are there for each; with those to come as many as jobs wait in it.
    """

    queues: Records
    delay: IntArray
    widths: IntArray
    change_queue: IntArray
    change_slots: IntArray
    waiting: IntArray
    pilots: IntArray


class Events(NamedTuple):
    """A heap of events by time, then kind, then job or line; and the counters of the run."""

    time: IntArray
    what: IntArray  # kind * KIND + job, change of slots or line
    counters: IntArray


class Settings(NamedTuple):
    """The options of the run as numbers."""

    seed: int
    first_fit: bool
    attempts: int
    ladder_mb: FloatArray


class State(NamedTuple):
    """Everything the event loop knows."""

    work: Records
    places: Places
    attempt: Records
    log: Records
    events: Events
    settings: Settings


def state_of(world: World, seed: int) -> State:
    """Return arrays of its own for a run that has not begun."""
    first = world.initial
    log = np.empty(world.jobs.height * world.queueing.attempts, LOGGED)
    return deepcopy(first)._replace(log=log, settings=first.settings._replace(seed=seed))


def initial_of(world: World) -> State:
    """Build the arrays of a run that has not begun; its clock stands at the beginning, or at the first ready time before it."""
    jobs, n, rules = world.jobs, world.jobs.height, world.queueing
    ready = jobs["readytime"].to_physical().fill_null(NEVER).to_numpy()
    begin = int(ready.min(initial=micros(world.begin)))
    widths, width = np.unique(jobs["corecount"].to_numpy(), return_inverse=True)
    home = codes(jobs["computingsite"], world.queues["panda_queue"])
    work = _records(
        WORK,
        pandaid=jobs["pandaid"],
        wall=durations(jobs["walltime_s"], 0),
        cores=jobs["corecount"],
        width=width,
        priority=jobs["currentpriority"],
        peak_mb=jobs["peak_memory_mb"].fill_null(np.nan),
        wall_limit=durations(jobs["walltime_limit_s"], NEVER),
        home=home,
        fate=np.full(n, FINISHED),
    )
    places, changes = _places(world, widths, begin)
    attempt = _records(
        ATTEMPT,
        status=np.full(n, UNPLACED),
        queue=home,
        number=np.ones(n),
        ready=ready,
        start=np.full(n, NEVER),
        outcome=np.zeros(n),
        limit_mb=jobs["memory_limit_mb"].fill_null(np.inf),
        child=np.full(n, -1),
        sibling=np.full(n, -1),
        moves=np.zeros(n),
    )
    counters = np.zeros(3, np.int64)
    counters[HEAP], counters[CLOCK] = len(changes), begin
    room = np.empty((2, n + len(changes)), np.int64)
    room[0, : len(changes)] = changes
    room[1, : len(changes)] = CHANGE * KIND + np.arange(len(changes))
    settings = Settings(
        0,
        rules.fit == "first",
        rules.attempts,
        np.array(rules.memory_ladder_mb, np.float64),
    )
    none, events = np.empty(0, LOGGED), Events(room[0], room[1], counters)
    return State(work, places, attempt, none, events, settings)


def micros(instant: datetime) -> int:
    """Return an instant in whole microseconds since 1970."""
    return int(pl.Series([instant], dtype=pl.Datetime("us")).to_physical()[0])


def instant(time: pl.Expr) -> pl.Expr:
    """Return microseconds since 1970 as an instant, null for `NEVER`."""
    return pl.when(time < NEVER).then(time).cast(pl.Datetime("us"))


def instants(micros: npt.ArrayLike) -> pl.Series:
    """Return microseconds since 1970 as instants, null for `NEVER`."""
    time = pl.DataFrame({"time": np.asarray(micros, np.int64)})
    return time.select(instant(pl.col("time"))).to_series()


def durations(seconds: pl.Series, null: int) -> IntArray:
    """Return durations in whole microseconds."""
    rounded = (seconds.cast(pl.Float64) * SECOND_US).round().cast(pl.Int64)
    return rounded.fill_null(null).to_numpy(writable=True)


def codes(values: pl.Series, names: pl.Series) -> IntArray:
    """Return the place of every value among different names, -1 for none."""
    numbered = pl.DataFrame({"name": names}).with_columns(code=pl.int_range(pl.len()))
    result = values.to_frame("name").join(numbered, on="name", how="left", maintain_order="left")
    return result["code"].fill_null(-1).to_numpy(writable=True)


def _records(dtype: np.dtype[np.void], **columns: npt.ArrayLike) -> Records:
    """Lay columns side by side."""
    records = np.empty(len(np.asarray(next(iter(columns.values())))), dtype)
    for name, column in columns.items():
        records[name] = column
    return records


def _places(world: World, widths: IntArray, begin: int) -> tuple[Places, IntArray]:
    """Return the queues as they are at the beginning, and the times at which their slots change, ascending."""
    queues, names = world.queues, world.queues["panda_queue"]
    slots = slots_from(world, begin)
    changes = slots.filter(pl.col("time") > begin).sort("time", "queue")
    drawn = world.delays.select(
        queue=pl.Series(codes(world.delays["panda_queue"], names)), delay_s="delay_s"
    )
    constant = queues.select(
        queue=pl.int_range(pl.len()), delay_s=pl.col("startup_s").fill_null(0.0)
    ).join(drawn, on="queue", how="anti")
    delays = pl.concat([drawn, constant]).sort("queue", "delay_s")
    counts = np.bincount(delays["queue"].to_numpy(), minlength=len(names))
    maxrss = queues["maxrss"].replace(0, None).cast(pl.Float64)
    held = _records(
        QUEUE,
        slots=slots.filter(pl.col("time") == begin)["slots"],
        most_slots=slots.group_by("queue", maintain_order=True).agg(pl.col("slots").max())["slots"],
        in_use=np.zeros(len(names)),
        maxtime=durations(queues["maxtime"].replace(0, None), NEVER),
        maxrss=maxrss.fill_null(np.inf),
        first_delay=np.cumsum(counts) - counts,
        n_delays=counts,
    )
    return Places(
        queues=held,
        delay=durations(delays["delay_s"], 0),
        widths=widths,
        change_queue=changes["queue"].to_numpy(writable=True),
        change_slots=changes["slots"].to_numpy(writable=True),
        waiting=np.full(len(names) * len(widths), -1, np.int64),
        pilots=np.zeros(len(names) * len(widths), np.int64),
    ), changes["time"].to_numpy(writable=True)


def slots_from(world: World, begin: int) -> pl.DataFrame:
    """Return when each queue had how many slots, from ``begin`` on: ``queue`` (its row), ``time`` [us], ``slots``; sorted."""
    names = world.queues["panda_queue"]
    base = world.queues.select(
        queue=pl.int_range(pl.len()), time=pl.lit(-NEVER, pl.Int64), slots="slots"
    )
    changes = world.capacity.select(
        queue=pl.Series(codes(world.capacity["panda_queue"], names)),
        time=pl.col("ts").to_physical(),
        slots="slots",
    )
    return (
        pl.concat([base, changes])
        .with_columns(time=pl.col("time").clip(begin))
        .sort("queue", "time", maintain_order=True)
        .unique(["queue", "time"], keep="last", maintain_order=True)
    )


@dataclass(frozen=True)
class Arrays:
    """What the loop works on; -1 where there is none.

    Attributes:
        order: (jobs,) rows in the order of making.
        brokered: (jobs,) the brokerage places it.
        task: (jobs,) row of ``tasks``.
        group: (jobs,) row of ``groups``.
        prepared: (jobs,) from creation to activation as seen [us].
        home: (jobs,) site of the nucleus.
        diskio: (jobs,) per core, in millionths of kB/s.
        tasks: Ids, ascending.
        snapshot: (epochs, tasks) row of the brokerage's ``tasks`` to ask for.
        epoch_at: (epochs,) from when on [us since 1970].
        groups: What jobs are counted by, see :data:`GROUPS`; rows may repeat but for their cores.
        queue_names: In the world's order.
        candidates: ``panda_queue`` (str), ``queue``: row of the queue whose slots a candidate has.
        site: (queues,).
        lacking: (tasks, queues) part of the input that the queue does not have; empty without data.
        source: (tasks, sites) site that the input comes from, by destination; empty without data.
        us_per_byte: (sites * sites,) by source and destination.
    """

    order: IntArray
    brokered: BoolArray
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
    candidates, sites, site = _sites(world)
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


def _sites(world: World) -> tuple[pl.DataFrame, pl.Series, IntArray]:
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
    links, usual = world.data["links"], world.transfers.default_mbps
    known = links.filter(pl.col("mbps") > 0)
    if usual is None:
        median = known["mbps"].median()
        usual = FEW_MBPS if median is None else float(median)  # type: ignore[arg-type]
    rate = np.full((len(sites), len(sites)), float(usual))
    rate[codes(known["src"], sites), codes(known["dst"], sites)] = known["mbps"].to_numpy()
    return np.asarray(np.maximum(rate, LEAST_MBPS))


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
    first = np.flatnonzero(np.diff(task, prepend=-1))
    for row, own in zip(task[first], np.split(source, first[1:]), strict=True):
        best[row] = own[rate[own].argmax(axis=0)]
    return best
