"""The world of a period of an archive."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any, Literal, get_args

import numpy as np
import polars as pl

from brokerlab.brokerage import plugins
from brokerlab.brokerage.analysis_jobs.facts import TYPES
from brokerlab.brokerage.full_chain import PRODUCTION_TYPES
from brokerlab.brokerage.inputs.data import input_at_queues, input_files, input_totals
from brokerlab.brokerage.network_weight import THROUGHPUT_KEYS
from brokerlab.brokerage.replaying.build import LABELS, Replay, build
from brokerlab.brokerage.rules import ProductionRules
from brokerlab.calibrate.simulation import history
from brokerlab.calibrate.simulation.capacity import KNOWN, LOWER, upper_slots, with_given
from brokerlab.calibrate.simulation.history import UNMADE, Period, limited
from brokerlab.calibrate.simulation.world import (
    STAGES,
    Mode,
    QueueRules,
    Transfers,
    World,
    of_tables,
)
from brokerlab.errors import ConfigError, InsufficientDataError
from brokerlab.gdpconfig import Config
from brokerlab.numerics import FloatArray, IntArray
from brokerlab.rulesets import RuleSetName
from brokerlab.times import duration_us, time_of
from brokerlab.units import SECOND_US

Brokerage = Literal["seen", "replayed"]
BROKERAGES: tuple[Brokerage, ...] = get_args(Brokerage)
TOGETHER = timedelta(seconds=10)
"""So close are jobs of one batch."""
SHOWN = 0.75
"""Part of the jobs that follow another one so closely, from which batches show."""
LEAST_BATCHES, WHOLE = 20, 0.9
"""So many batches, and this part of them whole cycles apart, show a cycle: twice as long ones hold half of them by chance."""
LEAST_CYCLE, LONGEST_CYCLE = timedelta(minutes=30), timedelta(hours=6)
"""Shortest and longest cycle that is read from an archive."""


def of_archive(
    archive: Any,
    *,
    start: datetime | str | None = None,
    end: datetime | str | None = None,
    brokerage: Brokerage = "replayed",
    stage: str = "jobs",
    cycle: str = "1h",
    epoch: str = "1d",
    warm_up: str = "2d",
    drain: str | None = None,
    window: str = "1d",
    quantile: float = 1.0,
    capacity: pl.DataFrame | None = None,
    capacity_most: float = 1.0,
    transfers: Transfers | Mode | None = None,
    rules: RuleSetName = "document",
    queueing: QueueRules | None = None,
) -> World:
    """Read a period of an archive; nothing in the world depends on the settings that will be tried.

    Where the brokerage is ``replayed``, jobs of the stage made from the beginning on are placed by it. Others stay where
    they were: those of other labels, merge jobs, scouts (what their task asks for is what they used where they ran), those whose
    task the archive does not know, and those made before the beginning, which wait or run on with what they had left of their
    wall time. Where it is as ``seen``, all jobs stay.

    What jobs need, slots and start-up delays: see :func:`.history.read`; queues are the parents of pseudo-queues. Where the
    simulation tries again itself, the archive's own retries of killed jobs are left out, and these need what their last
    retry needed. To queues that ran nothing, and whose slots nobody states, nothing is sent; ``capacity_most`` asks what
    would be if they and the others of unknown capacity had more.

    The brokerage of users sees quotas and classes of queues as they were, and everything else of users, their tasks and
    shares as simulated; tasks that it holds back (caps of users, classes) are asked again at the next cycle.

    A job that is sent elsewhere needs the wall time of such jobs there, as far as the archive shows how slow queues are
    (:func:`slowness`).

    State of queues, storage, links and replicas is that of the middle of each epoch (of its part before the end), as
    :func:`brokerlab.brokerage.replaying.build` rebuilds it; pilots, batch workers and files queued on links are those seen,
    whatever the simulation does.

    Args:
        archive: An archive, ``brokerlab.archive.open(path)``.
        start: Jobs made from here on are judged, naive UTC or such a text; null: from the middle of the archive on.
        end: Jobs made from here on are not; null: to its end.
        brokerage: ``seen``: jobs are at the queues where they were; ``replayed``: the brokerage of the stage places its jobs.
        stage: ``jobs`` (production) or ``analysis``.
        cycle: From one brokerage to the next; empty: see :func:`cycle_seen`.
        epoch: How long one state of queues, storage and links holds.
        warm_up: Simulated before ``start``, so that the period does not begin with empty queues; where the brokerage is
            replayed, from the beginning of that epoch on, so that epochs are whole days of the archive and not of the question.
        drain: Simulated after ``end``, with the jobs that came then; None: a day, or to the archive's end.
        window: Slots that are read from the archive are constant so long.
        quantile: Share of a window's time in which no more cores were in use than are taken for its slots, above 0 to 1.
        capacity: Slots over time (`world.Capacity`) of the queues where they are known, also of queues that
            ran nothing; those of others, or of all (None), are read from the archive.
        capacity_most: Where slots are a lower bound, so many times the busiest time is taken for them, see
            :func:`.capacity.upper_slots`; 1: the lower bound.
        transfers: How data move, or its mode alone; None: ``links`` where the archive knows replicas and files, else ``observed``; ``none`` where
            the brokerage is as seen.
        rules: Rule set that the brokerage and the timeouts decide by, ``document`` or ``production``.
        queueing: Options of the queues; default: three attempts, or one where the brokerage is as seen, as every retry is a
            job of its own in an archive.

    Raises:
        ConfigError: An argument that cannot be.
        MissingTableError: The archive lacks ``jobs`` or ``queues``.
        DataError: It lacks ``tasks``, or no task is brokered in the period.
        InsufficientDataError: No job of the period has run.
    """
    if isinstance(transfers, str):
        transfers = Transfers(mode=transfers)
    constant = _duration(window, "window")
    problems = []
    for name, value, allowed in (("stage", stage, STAGES), ("brokerage", brokerage, BROKERAGES)):
        if value not in allowed:
            problems.append(f"{name} is '{value}', allowed: {', '.join(allowed)}")
    if constant < timedelta(minutes=1) or not 0 < quantile <= 1:
        problems.append(f"window is {window}, quantile is {quantile}: from 1m, above 0 to 1")
    if not capacity_most >= 1:
        problems.append(
            f"capacity_most is {capacity_most}: from 1, times the busiest time of a queue"
        )
    if problems:
        raise ConfigError("; ".join(problems))
    period = _period(archive, start, end, _duration(warm_up, "warm_up"), drain)
    replayed = brokerage == "replayed"
    if replayed:
        whole = pl.Series([period.begin]).dt.truncate(epoch)
        period = replace(period, begin=whole[0])
        lasting = _duration(epoch, "epoch")
        every = _duration(cycle or cycle_seen(archive, stage), "cycle")
    retried = queueing or QueueRules(attempts=3 if replayed else 1)
    label = LABELS[stage] if replayed else None
    own, read = history.read(
        archive, period, window=constant, quantile=quantile, label=label, attempts=retried.attempts
    )
    there = _slots(read["known"], read["capacity"], capacity, capacity_most, stage)
    about: dict[str, Any] = {"transfers": transfers or Transfers(mode="none")}
    tasks = pl.Series(dtype=pl.Int64)
    if replayed:
        replay, epochs = _replay(archive, own, period, lasting, stage, rules)
        moving = transfers or Transfers(mode="links" if knows_inputs(replay) else "observed")
        tasks = replay.tasks["jeditaskid"].unique()
        about = {
            "tables": replay.tables_of(plugins.of_stage(stage).tables),
            "epochs": epochs,
            "cycle": every,
            "data": data_of(archive, replay, own, moving),
            "transfers": moving,
            "config": Config.recorded(archive, period.start),
        }
        if archive.has("gshares"):
            about["shares"] = archive.scan("gshares").collect()
    queues = _with_idle(read["known"], read["queues"], there)
    if replayed:
        queues = queues.join(_slowness(own), on="panda_queue", how="left")
    # others ran nothing and have no slots, read or given: they are left out
    named = pl.col("panda_queue").is_in(queues["panda_queue"].implode())
    return of_tables(
        _jobs(own, tasks, period, queues),
        queues,
        start=period.start,
        end=period.end,
        stage=stage,
        begin=period.begin,
        until=period.until,
        capacity=there.filter(named | (pl.col("slots") > 0)),
        delays=read["delays"],
        rules=rules,
        queueing=retried,
        left_out=read["left_out"],
        seen=read["seen"],
        sources=_sources(there),
        **about,
    )


def cycle_seen(archive: Any, stage: str = "jobs") -> str:
    """Return the time from one brokerage to the next of a stage where the archive shows it, else ``1h``.

    Scouts, merges and retries are not looked at: they are made when what they wait for is there.
    """
    jobs = archive.scan("jobs").filter(pl.col("prodsourcelabel") == LABELS[stage])
    names = jobs.collect_schema().names()
    placed = {
        "parentid": pl.col("parentid").is_null(),
        "processingtype": ~history.MERGES,
        "specialhandling": ~history.SCOUTS,
    }
    jobs = jobs.filter(*(here for name, here in placed.items() if name in names))
    shown = cycle_of(jobs.select("jeditaskid", "creationtime").collect())
    return "1h" if shown is None else f"{shown // timedelta(minutes=1)}m"


def cycle_of(jobs: pl.DataFrame) -> timedelta | None:
    """Return the time between two brokerages, where the creation of jobs that it places shows it; else null.

    The system makes jobs in batches, right after a brokerage, whatever the task: so batches of all tasks are whole cycles
    apart. It is the longest part of a day, in minutes, that `WHOLE` of the batches keep to, but at least `LEAST_CYCLE`, as
    shorter cycles take long to simulate. How long a task waits for its next batch does not show it: a queue has to be free.
    """
    gap = pl.col("creationtime").diff().over("jeditaskid")
    follows = (gap <= pl.lit(TOGETHER)).fill_null(value=False)
    ordered = jobs.drop_nulls().sort("jeditaskid", "creationtime").with_columns(follows=follows)
    if ordered.select(pl.col("follows").mean().fill_null(0.0)).item() < SHOWN:
        return None
    followed = pl.col("follows").shift(-1, fill_value=False)
    made = ordered.filter(~pl.col("follows") & followed)["creationtime"]
    if len(made) < LEAST_BATCHES:
        return None
    seconds = made.dt.epoch("s").to_numpy()
    day = timedelta(days=1) // timedelta(minutes=1)
    for minutes in range(LONGEST_CYCLE // timedelta(minutes=1), 1, -1):  # 1: times are rounded
        if day % minutes == 0 and _kept(seconds, 60 * minutes) >= WHOLE:
            return max(timedelta(minutes=minutes), LEAST_CYCLE)
    return None


def _kept(seconds: IntArray, cycle: int) -> float:
    """Return the largest part of the instants that are whole cycles apart, give or take `TOGETHER`."""
    phase = np.sort(seconds % cycle)
    twice = np.concatenate([phase, phase + cycle])
    last = np.searchsorted(twice, phase + TOGETHER // timedelta(seconds=1), side="right")
    return float((last - np.arange(len(phase))).max() / len(phase))


def _slots(
    known: pl.DataFrame, seen: pl.DataFrame, given: pl.DataFrame | None, most: float, stage: str
) -> pl.DataFrame:
    """Return the slots of all queues with their ``source``: those given, else read from the archive."""
    seen = with_given(seen, given)
    parents = pl.coalesce("unified_name", "panda_queue") == pl.col("panda_queue")
    types = PRODUCTION_TYPES if stage == "jobs" else TYPES
    asked = known.filter(parents, pl.col("status") == "online", pl.col("type").is_in(types))
    online = asked.select("panda_queue").unique()
    return upper_slots(seen, online.join(seen, on="panda_queue", how="anti"), most)


def _sources(slots: pl.DataFrame) -> pl.DataFrame:
    """Return where each queue's slots come from, of several sources the least sure."""
    order = pl.Enum([*KNOWN, *LOWER])
    return (
        slots.group_by("panda_queue")
        .agg(source=pl.col("source").cast(order).max().cast(pl.String))
        .sort("panda_queue")
    )


def _with_idle(known: pl.DataFrame, queues: pl.DataFrame, capacity: pl.DataFrame) -> pl.DataFrame:
    """Add the queues of the archive that ran nothing, but that have slots; they have no start-up delay."""
    idle = capacity.filter(pl.col("slots") > 0).join(known, on="panda_queue", how="semi")
    idle = idle.select("panda_queue").join(queues, on="panda_queue", how="anti")
    return pl.concat([queues, limited(known, idle)]).sort("panda_queue")


def _duration(text: str, name: str) -> timedelta:
    """Read a duration such as 1h; 0 is one, too."""
    return (
        timedelta(0)
        if text.strip("smhd") == "0"
        else timedelta(microseconds=duration_us(text, name))
    )


def _period(
    archive: Any,
    start: datetime | str | None,
    end: datetime | str | None,
    warm_up: timedelta,
    drain: str | None,
) -> Period:
    if archive.manifest.window is None:
        raise InsufficientDataError(f"{archive.path}: no job has a time")
    opens, closes = (datetime.fromisoformat(text) for text in archive.manifest.window)
    first = time_of(start, "start") or opens + (closes - opens) / 2
    last = time_of(end, "end") or closes
    if first >= last:
        raise ConfigError(f"the period from {first} to {last} is empty: end it after its start")
    until = max(last, min(closes, last + timedelta(days=1)))
    if drain is not None:
        until = last + _duration(drain, "drain")
    return Period(first - warm_up, first, last, until)


def _replay(
    archive: Any,
    own: pl.DataFrame,
    period: Period,
    epoch: timedelta,
    stage: str,
    rules: RuleSetName,
) -> tuple[Replay, pl.DataFrame]:
    """Rebuild the brokerage's tables for the middle of every epoch.

    Each task has rows from the epoch in which its first job was made to the one after its last job was ready, or to the end
    where some were never made: jobs may wait for days until a queue can take them.
    """
    begin = pl.lit(period.begin, pl.Datetime("us"))
    length = epoch // timedelta(microseconds=1)
    first, then = (
        (pl.col(name) - begin).dt.total_microseconds() // length
        for name in ("creationtime", "readytime")
    )
    last = int((period.until - period.begin - timedelta(microseconds=1)) // epoch)
    unmade = (pl.col("observed_outcome") == UNMADE).any()
    after = pl.when(unmade).then(last + 1).otherwise(pl.max_horizontal(first, then).max() + 2)
    spans = (
        own.filter("ours")
        .group_by("jeditaskid")
        .agg(epoch=pl.int_ranges(first.min(), after).first())
    )
    rows = spans.explode("epoch").filter(pl.col("epoch") <= last)
    return replay_epochs(archive, rows, period.begin, period.until, epoch, stage, rules)


def replay_epochs(
    archive: Any,
    rows: pl.DataFrame,
    begin: datetime,
    until: datetime,
    epoch: timedelta,
    stage: str,
    rules: RuleSetName,
) -> tuple[Replay, pl.DataFrame]:
    """Rebuild the brokerage's tables for the middle of epochs; of ``rows`` each task has a state in its ``epoch`` (a number).

    With the replay comes ``snapshot``, ``at``: when its epoch begins, the first at ``begin``. No state is later than ``until``.
    """
    since = pl.lit(begin, pl.Datetime("us")) + pl.col("epoch") * pl.lit(epoch)
    middle = pl.min_horizontal(since + pl.lit(epoch / 2), pl.lit(until, pl.Datetime("us")))
    asked = rows.select(
        "jeditaskid",
        at=middle,
        since=since,
        use_scout=pl.lit(value=False),
        is_merging=pl.lit(value=False),
    ).sort("jeditaskid", "at")
    replay = build(
        archive,
        tasks=asked.drop("since"),
        stage=stage,
        every=None,
        label=None,
        rules=ProductionRules(rules),
    )
    epochs = replay.instants.join(asked.select("at", "since").unique(), on="at")
    return replay, epochs.select("snapshot", at="since")


def _slowness(jobs: pl.DataFrame) -> pl.DataFrame:
    """Return how slow queues are for jobs of the stage that ended by themselves."""
    wall = pl.col("observed_end") - pl.col("observed_start")
    return slowness(
        jobs.filter("ours", observed_outcome="finished", jobstatus="finished").select(
            "jeditaskid",
            "corecount",
            panda_queue="computingsite",
            wall_s=wall.dt.total_microseconds() / pl.lit(SECOND_US),
        )
    )


def _jobs(
    own: pl.DataFrame, tasks: pl.Series, period: Period, queues: pl.DataFrame
) -> pl.DataFrame:
    """Return the jobs of the world: the stage's without a queue, with what they need at a usual one; others at theirs."""
    if "slowness" in queues.columns:
        slow = own.select(panda_queue="computingsite").join(
            queues.select("panda_queue", "slowness"),
            on="panda_queue",
            how="left",
            maintain_order="left",
        )["slowness"]
        usual = pl.col("walltime_s") / slow.fill_null(1.0)
        own = own.with_columns(walltime_s=pl.when("ours").then(usual).otherwise("walltime_s"))
    brokered = pl.col("ours") & pl.col("jeditaskid").is_in(tasks.implode())
    begin = pl.lit(period.begin, pl.Datetime("us"))
    runs = (pl.col("observed_start") <= begin).fill_null(value=False)
    so_far = (begin - pl.col("observed_start")).dt.total_microseconds() / pl.lit(SECOND_US)
    prepared = (pl.col("readytime") - pl.col("creationtime")).dt.total_microseconds()
    free = pl.col("brokered")
    return own.with_columns(brokered=brokered).with_columns(
        pl.when(~free).then("computingsite").alias("computingsite"),
        pl.when(~free).then(pl.max_horizontal("readytime", begin)).alias("readytime"),
        walltime_s=pl.when(~free & runs)
        .then((pl.col("walltime_s") - so_far).clip(0))
        .otherwise("walltime_s"),
        prepared_s=(prepared / pl.lit(SECOND_US)).clip(0),
        input_bytes="inputfilebytes",
        output_bytes="outputfilebytes",
    )


# --- how slow queues are ----------------------------------------------------------------------------------------------


CELL = 20
"""Jobs of a task at a queue count as so many at most: a giant task says little of a queue."""
ROUNDS = 20


def slowness(jobs: pl.DataFrame) -> pl.DataFrame:
    """Estimate how much longer jobs run at a queue than the same jobs do at a usual one: ``panda_queue``, ``slowness``.

    The logarithm of the wall time is the sum of what the task needs (with so many cores) and of the queue; both are fitted
    in turns to the means of tasks at queues. Effects are drawn to none as far as chance alone makes queues differ
    (empirical Bayes), so that where queues do not differ all are usual (1).
    """
    known = jobs.drop_nulls().filter(pl.col("wall_s") > 0)
    cells = (
        known.group_by("jeditaskid", "corecount", "panda_queue")
        .agg(mean=pl.col("wall_s").log().mean(), n=pl.len().clip(upper_bound=CELL))
        .sort("jeditaskid", "corecount", "panda_queue")
    )
    names = cells["panda_queue"].unique().sort()
    work = cells.select(pl.struct("jeditaskid", "corecount").rank("dense") - 1)
    queue = cells.select(pl.col("panda_queue").rank("dense") - 1)
    effect = _fit(
        cells["mean"].to_numpy(),
        cells["n"].to_numpy().astype(np.float64),
        work.to_series().to_numpy().astype(np.int64),
        queue.to_series().to_numpy().astype(np.int64),
    )
    return pl.DataFrame({"panda_queue": names, "slowness": np.exp(effect)})


def _fit(mean: FloatArray, n: FloatArray, work: IntArray, queue: IntArray) -> FloatArray:
    if not len(mean):
        return np.zeros(0)
    n_work, n_queue = int(work.max()) + 1, int(queue.max()) + 1
    jobs_of_work = np.bincount(work, n, n_work)
    jobs_at_queue = np.bincount(queue, n, n_queue)
    effect: FloatArray = np.zeros(n_queue)
    need: FloatArray = np.zeros(n_work)
    for _ in range(ROUNDS):
        need = np.bincount(work, n * (mean - effect[queue]), n_work) / jobs_of_work
        effect = np.bincount(queue, n * (mean - need[work]), n_queue) / jobs_at_queue
    free = max(len(mean) - n_work - n_queue + 1, 1)
    noise = float((n * (mean - need[work] - effect[queue]) ** 2).sum()) / free
    chance = noise / jobs_at_queue
    centred = effect - np.average(effect, weights=jobs_at_queue)
    between = float(np.average(centred**2 - chance, weights=jobs_at_queue))
    if between <= 0:
        return np.zeros(n_queue)
    return np.asarray(centred * between / (between + chance))


# --- where the input of tasks is, and how quick links are -------------------------------------------------------------


NEEDED = ("files", "file_locations", "replicas", "storage_endpoints")
WINDOWS = ("1d", "1w", "1h")
"""Which throughput stands for a link, the first that is known."""


def knows_inputs(replay: Replay) -> bool:
    """Tell whether the archive knows where input is."""
    return all(name in replay.tables and not replay.tables[name].is_empty() for name in NEEDED)


def data_of(
    archive: Any, replay: Replay, jobs: pl.DataFrame, transfers: Transfers
) -> dict[str, pl.DataFrame]:
    """Return ``present``, ``sources`` and ``links`` where data are to travel, else nothing."""
    if transfers.mode != "links":
        return {}
    result = {"links": links(archive, jobs)}
    if knows_inputs(replay):
        result |= {"present": present(replay), "sources": sources(replay)}
    return result


def present(replay: Replay) -> pl.DataFrame:
    """Return the part of each task's input that each queue has, on disk or tape (contract ``Present``)."""
    tables = replay.tables
    tasks = tables["tasks"].select("jeditaskid").unique()
    files = input_files(tasks, tables["datasets"], tables["files"])
    here = input_at_queues(files, tables["file_locations"])
    total = input_totals(tasks, files).filter(pl.col("total") > 0)
    part = pl.col("avail_t") / pl.col("total")
    return here.join(total, on="jeditaskid").select(
        "jeditaskid", "panda_queue", part=part.clip(0, 1)
    )


def sources(replay: Replay) -> pl.DataFrame:
    """Return the sites with a complete replica of some input dataset of each task (contract ``Sources``)."""
    places = replay.tables["storage_endpoints"].select("ddm_endpoint_name", site="site_name")
    complete = (pl.col("found") == pl.col("total")) & (pl.col("total") > 0)
    return (
        replay.tables["replicas"]
        .filter(complete & pl.col("jeditaskid").is_not_null())
        .join(places.drop_nulls().unique(), on="ddm_endpoint_name")
        .select("jeditaskid", "site")
        .unique()
        .sort("jeditaskid", "site")
    )


def links(archive: Any, jobs: pl.DataFrame) -> pl.DataFrame:
    """Return the median throughput of every link in the time of the jobs, else before it (contract ``Links``).

    What was measured after the last job was made is not looked at.
    """
    nothing = pl.DataFrame(schema={"src": pl.String, "dst": pl.String, "mbps": pl.Float64})
    if not archive.has("network_matrix"):
        return nothing
    keys = [THROUGHPUT_KEYS[window] for window in WINDOWS]
    first, last = jobs["creationtime"].min(), jobs["creationtime"].max()
    measured = archive.scan("network_matrix").filter(pl.col("key").is_in(keys))
    rows = measured.select("src", "dst", "key", "value", "ts").collect()
    before = rows.filter((pl.col("ts") <= pl.lit(last)) | pl.col("ts").is_null())
    recent = before.filter(
        (pl.col("ts") >= pl.lit(first) - timedelta(days=1)) | pl.col("ts").is_null()
    )
    medians = (
        (recent if recent.height else before)
        .group_by("src", "dst", "key")
        .agg(pl.col("value").median())
    )
    rank = pl.col("key").replace_strict(dict(zip(keys, range(len(keys)), strict=True)))
    best = (
        medians.drop_nulls()
        .sort("src", "dst", rank)
        .unique(["src", "dst"], keep="first", maintain_order=True)
    )
    return best.select("src", "dst", mbps="value") if best.height else nothing
