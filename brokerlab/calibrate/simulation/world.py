"""The world of a simulation: what does not depend on the settings that are tried, and how slots are filled and data moved.

Names in its tables are PanDA's where PanDA has one. Times are UTC without zone, in microseconds; inside, every time is a whole
number of microseconds, so that equal times are equal.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import cached_property
from types import MappingProxyType
from typing import Any, Literal, get_args

import dataframely as dy
import numpy as np
import polars as pl

from brokerlab.archive.contracts._columns import f64, flag, i64, text, ts
from brokerlab.calibrate.simulation.capacity import LOWER
from brokerlab.calibrate.simulation.state import Arrays, State, arrays_of, initial_of
from brokerlab.engines import TEXT, collect, narrow
from brokerlab.errors import ConfigError, DataError, nearest
from brokerlab.frames import prepared
from brokerlab.gdpconfig import Config
from brokerlab.numerics import IntArray
from brokerlab.results import Result, Shows
from brokerlab.rulesets import NAMES, RuleSetName


class Jobs(dy.Schema):
    """A job as it truly is, and what the brokerage and the links need to know of it."""

    pandaid = i64("job", required=True)
    creationtime = ts("made, hence brokered, then", required=True)
    brokered = flag("the brokerage places it", null="no: it stays at its computingsite")
    computingsite = text("panda queue it waits at", null="the brokerage places it")
    readytime = ts("waits from here", null="the brokerage places it")
    walltime_s = f64("wall time that it needs", "s", required=True)
    corecount = i64("cores that it holds", "cores", null="1; so is 0")
    peak_memory_mb = f64("most memory that it uses", "MB", null="unknown: never killed for it")
    memory_limit_mb = f64("memory it asked for", "MB", null="only the queue's limit")
    walltime_limit_s = f64("wall time it asked for", "s", null="only the queue's limit")
    currentpriority = i64("higher starts first", null="0")
    gshare = text("leaf global share")
    produsername = text("user")
    jeditaskid = i64("task")
    prepared_s = f64("from creation to activation as seen", "s", null="0")
    input_bytes = i64("input", "B", null="0")
    output_bytes = i64("output", "B", null="0")
    nucleus = text("site that gathers the outputs", null="none: outputs stay")
    resource_type = text("SCORE, MCORE...")
    workqueue_id = i64("work queue")
    diskio = i64("disk traffic", "kB/s", null="does not count")
    prodsourcelabel = text("managed, user...")
    workinggroup = text("working group", null="none")
    processingtype = text("pmerge marks merge jobs")


class Queues(dy.Schema):
    """A panda queue."""

    panda_queue = text("panda queue", required=True)
    slots = i64("cores that run at once", "cores", required=True)
    startup_s = f64("from ready to its pilot being there, where no delays are given", "s", null="0")
    maxtime = i64("limit of wall time", "s", null="no limit; so is 0")
    maxrss = i64("limit of memory", "MB", null="no limit; so is 0")
    slowness = f64("wall time of a job that is brokered here, of what it needs", "1", null="1")


class Capacity(dy.Schema):
    """Slots of a queue from an instant on, until its next row; before its first row ``queues.slots`` hold."""

    panda_queue = text("panda queue", required=True)
    ts = ts("from here on", required=True)
    slots = i64("cores that run at once", "cores", required=True)


class Delays(dy.Schema):
    """Start-up delays seen at a queue; every attempt draws one of them."""

    panda_queue = text("panda queue", required=True)
    delay_s = f64("from ready to its pilot being there", "s", required=True)
    own = flag("seen at this queue, not at all of them together", null="yes")


class Links(dy.Schema):
    """Throughput between sites."""

    src = text("site", required=True)
    dst = text("site", required=True)
    mbps = f64("throughput", "MB/s", required=True)


class Sources(dy.Schema):
    """Sites from which a task's input can come."""

    jeditaskid = i64("task", required=True)
    site = text("site", required=True)


class Present(dy.Schema):
    """Part of a task's input that a queue has."""

    jeditaskid = i64("task", required=True)
    panda_queue = text("queue, unified name", required=True)
    part = f64("of the bytes, 0 to 1", required=True)


class Places(dy.Schema):
    """Where queues are, and pseudo-queues' parents."""

    panda_queue = text("queue or pseudo-queue", required=True)
    unified_name = text("queue whose slots it has", null="itself")
    site = text("site", null="none: its data travel nowhere")


QUEUES: dict[str, type[dy.Schema]] = {
    "jobs": Jobs,
    "queues": Queues,
    "capacity": Capacity,
    "delays": Delays,
}
"""Jobs, and the queues where they wait."""
DATA: dict[str, type[dy.Schema]] = {
    "places": Places,
    "links": Links,
    "sources": Sources,
    "present": Present,
}
"""Where data are, and how they move."""


Fit = Literal["first", "strict"]
Mode = Literal["links", "observed", "none"]


@dataclass(frozen=True)
class QueueRules:
    """Options of the queues, the same for all of them.

    A killed job tries again at the queue it came with; one that the brokerage had placed is brokered again.

    Attributes:
        fit: ``first``: the first job in order that fits the free cores starts, wider ones wait. ``strict``: a job that
            does not fit holds up everyone behind it. The default is ``first``, since pilots of different widths ask
            the batch system independently and it does not keep cores empty while a narrower pilot is there; a site
            that drains nodes for wide jobs lies in between.
        attempts: Most attempts of a job, the first one counted; from 1.
        memory_ladder_mb: Memory limits, ascending [MB]: a job killed for memory asks for the next one above the limit
            that killed it, and for the same again where there is none.
    """

    fit: Fit = "first"
    attempts: int = 3
    memory_ladder_mb: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        """Refuse options that make no sense, all at once."""
        problems = []
        if self.fit not in get_args(Fit):
            problems.append(f"fit is '{self.fit}', allowed: {', '.join(get_args(Fit))}")
        if self.attempts < 1:
            problems.append(f"attempts is {self.attempts}, the first attempt counts: from 1")
        ladder = self.memory_ladder_mb
        if any(not rung > 0 for rung in ladder) or list(ladder) != sorted(set(ladder)):
            problems.append(f"memory_ladder_mb is {ladder}, it must ascend and be above 0")
        if problems:
            raise ConfigError("options of the queues: " + "; ".join(problems))


@dataclass(frozen=True)
class Transfers:
    """How inputs come to a queue and outputs to the nucleus.

    Attributes:
        mode: ``links``: what a queue lacks of a job's input comes over the link from the site with the best one, outputs
            go to the nucleus; one transfer at a time, first come first served, inputs and outputs apart. ``observed``: a
            job is ready as long after it was made as it was in the archive, wherever it goes; outputs take no time.
            ``none``: jobs are ready when they are placed.
        default_mbps: Throughput of links that the archive does not know [MB/s]; None: the median of those that it knows
            (10 where it knows none).
    """

    mode: Mode = "links"
    default_mbps: float | None = None

    def __post_init__(self) -> None:
        """Refuse what makes no sense, all at once."""
        problems = []
        if self.mode not in get_args(Mode):
            problems.append(f"mode is '{self.mode}', allowed: {', '.join(get_args(Mode))}")
        rate = 1.0 if self.default_mbps is None else self.default_mbps
        if not (math.isfinite(rate) and rate > 0):
            problems.append(f"default_mbps is {rate}, it must be above 0")
        if problems:
            raise ConfigError("transfers: " + "; ".join(problems))


STAGES = ("jobs", "analysis")
"""Brokerages that can place jobs: of production, of users."""
NOTHING: Mapping[str, pl.DataFrame] = MappingProxyType({})
_SHOWN = 5
_MOST_S = 1e9  # 31 years; longer is misread
_SECONDS = (0.0, _MOST_S, f"must be 0 to {_MOST_S:.0e} s")
_RANGES: dict[tuple[str, str], tuple[float, float, str]] = {
    ("jobs", "walltime_s"): _SECONDS,
    ("jobs", "walltime_limit_s"): _SECONDS,
    ("jobs", "corecount"): (0, 2**20, "must be 0 to 2^20 cores"),
    ("jobs", "peak_memory_mb"): (0, np.inf, "must be 0 or more"),
    ("jobs", "memory_limit_mb"): (0, np.inf, "must be 0 or more"),
    ("jobs", "pandaid"): (0, 2**62, "must be 0 or more"),
    ("queues", "slots"): (0, 2**40, "must be 0 or more"),
    ("queues", "startup_s"): _SECONDS,
    ("queues", "maxtime"): _SECONDS,
    ("queues", "maxrss"): (0, 2**40, "must be 0 or more"),
    ("capacity", "slots"): (0, 2**40, "must be 0 or more"),
    ("delays", "delay_s"): _SECONDS,
}
_KEYS = {"jobs": ["pandaid"], "queues": ["panda_queue"], "capacity": ["panda_queue", "ts"]}


@dataclass(frozen=True, kw_only=True, repr=False)
class World(Result):
    """Jobs, queues, data and links of a period, and what the brokerage reads that no decision changes.

    Attributes:
        jobs: As `Jobs`, by pandaid.
        queues: As `Queues`, by name.
        capacity: As `Capacity`, by queue and time.
        delays: As `Delays`, by queue and delay.
        tables: Input tables of the brokerage by the chapters' names; ``tasks`` has a row per task and epoch, other tables
            with ``snapshot`` hold for an epoch. Numbers of jobs in them are replaced by those of the simulation.
        epochs: ``snapshot``, ``at``: from when on its tables hold.
        data: ``places``, ``links``, ``sources``, ``present`` as in `DATA`.
        begin: First instant of the simulation.
        start: Jobs made from here on are judged.
        end: Jobs made from here on are not.
        until: Last instant; jobs come until then.
        stage: ``jobs`` (production) or ``analysis``.
        cycle: From one brokerage to the next.
        rules: Rule set that the brokerage and the timeouts decide by, ``document`` or ``production``.
        queueing: Options of the queues.
        transfers: How data move.
        config: The settings that ruled, used where a run names none.
        shares: Tree of the global shares (``name, value, parent``), for the brokerage of users; empty: not known.
        left_out: ``reason``, ``n_jobs``: jobs of the archive that the simulation does not have.
        seen: What the archive saw of the jobs, and of retries that the simulation makes itself: ``pandaid``,
            ``observed_start``, ``observed_end``, ``observed_outcome``, ``observed_site``, ``observed_ready``,
            ``observed_cores``; empty where there is no archive.
        sources: ``panda_queue``, ``source``: where the slots of the queues come from, also of those that ran nothing, see
            ``capacity.KNOWN`` and ``LOWER``; empty where there is no archive.
    """

    shows = Shows(
        about="jobs to be simulated, one row per job",
        keys=("pandaid",),
        next=(
            "calibrate.simulate(result, config=..., seeds=(1, 2))",
            "calibrate.simulation.validate(result)",
        ),
    )

    jobs: pl.DataFrame
    queues: pl.DataFrame
    capacity: pl.DataFrame
    delays: pl.DataFrame
    tables: Mapping[str, pl.DataFrame]
    epochs: pl.DataFrame
    data: Mapping[str, pl.DataFrame]
    begin: datetime
    start: datetime
    end: datetime
    until: datetime
    stage: str = "jobs"
    cycle: timedelta = timedelta(hours=1)
    rules: RuleSetName = "document"
    queueing: QueueRules = field(default_factory=QueueRules)
    transfers: Transfers = field(default_factory=Transfers)
    config: Config = field(default_factory=Config.empty)
    shares: pl.DataFrame = field(default_factory=pl.DataFrame)
    left_out: pl.DataFrame = field(default_factory=pl.DataFrame)
    seen: pl.DataFrame = field(default_factory=pl.DataFrame)
    sources: pl.DataFrame = field(default_factory=pl.DataFrame)

    def __post_init__(self) -> None:
        """Refuse what no simulation can have, all at once."""
        problems = []
        if self.stage not in STAGES:
            problems.append(f"stage is '{self.stage}', allowed: {', '.join(STAGES)}")
        if self.rules not in NAMES:
            problems.append(f"rules={self.rules!r}: {nearest(self.rules, NAMES)}")
        if not self.begin <= self.start < self.end <= self.until:
            problems.append(
                f"begin {self.begin}, start {self.start}, end {self.end}, until {self.until} are not in order"
            )
        if self.cycle < timedelta(minutes=1):
            problems.append(f"cycle is {self.cycle}, at least a minute")
        if problems:
            raise ConfigError("simulation: " + "; ".join(problems))

    @cached_property
    def arrays(self) -> Arrays:
        """What the loop works on, made once."""
        return arrays_of(self)

    @cached_property
    def initial(self) -> State:
        """The arrays that every run begins with, made once."""
        return initial_of(self)

    @cached_property
    def created(self) -> IntArray:
        """When the jobs were made [us since 1970]."""
        return self.jobs["creationtime"].to_physical().to_numpy()

    @cached_property
    def brokered(self) -> bool:
        """Whether the brokerage places some of the jobs; if not, every job stays at its queue."""
        return bool(self.jobs["brokered"].any())

    @property
    def n_unmade(self) -> int:
        """Jobs that the archive never made: the unused files of open tasks would make them."""
        if self.seen.is_empty():
            return 0
        return self.jobs.join(self.seen, on="pandaid", how="anti").height

    @property
    def unknown(self) -> tuple[str, ...]:
        """Queues of which only a lower bound of the slots is known."""
        if self.sources.is_empty():
            return ()
        return tuple(self.sources.filter(pl.col("source").is_in(LOWER))["panda_queue"])

    @cached_property
    def standing(self) -> Any:
        """The brokerage over the static tables, prepared once; settings are changed on it."""
        from brokerlab.brokerage import live, plugins  # heavy, and not needed to look at a world

        brokerage = plugins.of_stage(self.stage)
        rules = brokerage.rule_set(self.rules)
        return live.prepare(dict(self.tables), brokerage=brokerage, rules=rules, config=self.config)

    def headline(self) -> str:
        """Return what it says, in a line."""
        n = int(self.jobs["brokered"].sum())
        return (
            f"{self.jobs.height:,} jobs, {n:,} of them placed by the brokerage ({self.stage}) every {self.cycle}, at "
            f"{self.queues.height} queues, {self.begin} to {self.until}; judged are jobs made from {self.start} to {self.end}"
        )


def of_tables(
    jobs: Any,
    queues: Any,
    tables: Mapping[str, pl.DataFrame] = NOTHING,
    epochs: pl.DataFrame | None = None,
    *,
    start: datetime,
    end: datetime,
    begin: datetime | None = None,
    until: datetime | None = None,
    capacity: Any | None = None,
    delays: Any | None = None,
    data: Mapping[str, pl.DataFrame] = NOTHING,
    **about: Any,
) -> World:
    """Make a world of tables; :func:`of_archive` makes one of an archive. What is not described here is as in :class:`World` (``about``).

    ``jobs`` (`Jobs`) that are not ``brokered`` need ``computingsite`` and ``readytime``; ``queues``
    (`Queues`) are parents of pseudo-queues. Where the brokerage places jobs, ``tables`` and ``epochs`` are needed. Null:
    ``begin`` is ``start``, ``until`` is ``end``; queues without a row in ``capacity`` keep ``queues.slots``, those without one in
    ``delays`` take ``queues.startup_s``; without ``places`` in ``data`` the queues of ``tables`` say where they are.

    Raises:
        SchemaError: Columns are missing or of another type.
        ConfigError: The period is empty, the stage or the rule set unknown, the cycle shorter than a minute.
        DataError: Keys repeat, queues or tasks are unknown, numbers are out of range.

    Example:
        >>> when = [datetime(2026, 3, 1, hour) for hour in (0, 0, 1)]
        >>> jobs = pl.DataFrame(
        ...     {"pandaid": [1, 2, 3], "computingsite": "CERN", "creationtime": when, "readytime": when, "walltime_s": 7200.0}
        ... )
        >>> queues = pl.DataFrame({"panda_queue": ["CERN"], "slots": [1]})
        >>> from brokerlab.calibrate import simulation
        >>> done = simulation.run(of_tables(jobs, queues, start=when[0], end=datetime(2026, 3, 1, 6)))
        >>> done.jobs["waiting_s"].to_list(), done.queues["utilisation"].to_list()
        ([0.0, 7200.0, 10800.0], [1.0])
    """
    given = {"jobs": jobs, "queues": queues, "capacity": capacity, "delays": delays}
    held = prepared({name: frame for name, frame in given.items() if frame is not None}, QUEUES)
    none = pl.DataFrame(schema={"snapshot": pl.Int64, "at": pl.Datetime("us")})
    instants = none if epochs is None else epochs.sort("at", "snapshot")
    _check(held, _tasks(tables, instants))
    cores = pl.col("corecount").fill_null(1).replace(0, 1)
    free = pl.col("brokered").fill_null(value=False), pl.col("currentpriority").fill_null(0)
    return World(
        jobs=held["jobs"].with_columns(cores, *free).sort("pandaid"),
        queues=held["queues"].sort("panda_queue"),
        capacity=held["capacity"].sort("panda_queue", "ts"),
        delays=held["delays"].sort("panda_queue", "delay_s"),
        tables=MappingProxyType(dict(tables)),
        epochs=instants,
        data=MappingProxyType(prepared({"places": places_of(tables), **data}, DATA)),
        begin=begin or start,
        start=start,
        end=end,
        until=until or end,
        **about,
    )


def places_of(tables: Mapping[str, pl.DataFrame]) -> pl.DataFrame:
    """Return queue, parent and site of the brokerage's table of queues, as they are last."""
    if "queues" not in tables:
        return pl.DataFrame()
    kinds = dict.fromkeys(("panda_queue", "unified_name", "pandasite"), TEXT)
    queues = collect(narrow(tables["queues"], "queues", kinds, ("panda_queue",)))
    last = queues.unique("panda_queue", keep="last", maintain_order=True)
    return last.rename({"pandasite": "site"}).sort("panda_queue")


def _tasks(tables: Mapping[str, pl.DataFrame], epochs: pl.DataFrame) -> pl.Series:
    """Return the tasks that the brokerage knows in some epoch."""
    if "tasks" not in tables:
        return pl.Series(dtype=pl.Int64)
    known = pl.col("snapshot").fill_null(0).is_in(epochs["snapshot"].implode())
    return tables["tasks"].filter(known)["jeditaskid"].cast(pl.Int64)


def _check(held: Mapping[str, pl.DataFrame], tasks: pl.Series) -> None:
    """Refuse tables that contradict themselves or each other, all that is wrong at once."""
    problems = []

    def refuse(table: str, what: str, wrong: pl.Expr, key: str, do: str) -> None:
        rows = held[table].filter(wrong)
        if rows.height:
            shown = ", ".join(str(value) for value in rows[key].unique().sort().head(_SHOWN))
            problems.append(f"{table}: {what} in {rows.height} rows ({key} {shown}): {do}")

    known = held["queues"]["panda_queue"].implode()
    for table in held:
        if keys := _KEYS.get(table):
            again = ~pl.struct(keys).is_first_distinct()
            refuse(table, f"{', '.join(keys)} repeats", again, keys[0], "keep one row for each")
        if table != "queues":
            queue = "computingsite" if table == "jobs" else "panda_queue"
            missing = ~pl.col(queue).is_in(known)
            refuse(table, "queue is not in queues", missing, queue, "add it there")
    for (table, column), (low, high, do) in _RANGES.items():
        key = "pandaid" if table == "jobs" else "panda_queue"
        refuse(table, f"{column} is out of range", ~pl.col(column).is_between(low, high), key, do)
    brokered = pl.col("brokered").fill_null(value=False)
    at, since = pl.col("computingsite").is_not_null(), pl.col("readytime").is_not_null()
    lost = ~pl.col("jeditaskid").is_in(tasks.implode()).fill_null(value=False)
    do = "set brokered, computingsite and readytime"
    for what, wrong in {
        "only one of computingsite and readytime is known": at != since,
        "to be brokered, but the task is not among the brokerage's tasks of any epoch": brokered
        & lost,
        "to be brokered, but with a queue": brokered & at,
        "not to be brokered, but without a queue": ~brokered & ~at & ~since,
    }.items():
        refuse("jobs", what, wrong, "pandaid", do)
    if problems:
        raise DataError("simulation: " + "; ".join(problems))
