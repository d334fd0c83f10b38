"""Make every input table of the production brokerage from an archive."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import cached_property
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeVar, cast

import dataframely as dy
import polars as pl

from brokerlab import carry
from brokerlab.archive import kept as keeping
from brokerlab.archive.given import Source, archive_of
from brokerlab.brokerage.engine.steps import differing
from brokerlab.brokerage.replaying import plan, task_tables
from brokerlab.brokerage.replaying.maker import Maker, of_files
from brokerlab.brokerage.rules import ProductionRules
from brokerlab.errors import ConfigError, MissingTableError, nearest
from brokerlab.gdpconfig import Config
from brokerlab.lazy import call
from brokerlab.results import Result, Shows
from brokerlab.times import time_of

if TYPE_CHECKING:
    from brokerlab.archive import Archive
    from brokerlab.brokerage.replaying.analysis import OfSettings
    from brokerlab.lifecycle.classification import ClassRules

STAGES = ("jobs", "tasks", "analysis")
LABELS = {"jobs": plan.PRODUCTION_LABEL, "tasks": plan.PRODUCTION_LABEL, "analysis": "user"}
"""``prodsourcelabel`` of what a stage brokers."""
T = TypeVar("T")
OF_STAGE = "of the stage"
"""Stands for it."""
CHUNK_PAIRS = 250_000
"""Pairs of task and queue in a chunk, about; a pair that is decided takes some hundred bytes."""


@dataclass(frozen=True, repr=False)
class Replay(Result):
    """What the brokerage saw at every instant.

    Attributes:
        tables: The input tables by the chapters' names, ``tasks`` among them; what the archive lacks is not here.
        instants: ``snapshot``, ``at``.
        stage: ``jobs``, ``tasks`` or ``analysis``: the brokerage that is replayed.
        config: The configuration at the last instant.
        notes: What was approximated, and what is missing, in sentences.
        archive_digest: Digest of the archive.
        synthetic: The archive was generated.
        remake: Makes the tables that depend on settings, see :meth:`with_config`; None: none do, or, of user tasks, the
            jobs that they are made from are not at hand (chunks of :meth:`map`).
        unread: Archive whose files are still to be read, see :func:`build`; None: ``tables`` are complete.
    """

    shows = Shows(
        about="what a brokerage saw, one row per table",
        columns="table, rows, history",
        keys=("table",),
        rows=40,
        next=("brokerage.decide(result)", ".tables", ".notes"),
    )

    tables: Mapping[str, pl.DataFrame]
    instants: pl.DataFrame
    stage: str
    config: Config
    notes: tuple[str, ...]
    archive_digest: str
    synthetic: bool
    remake: OfSettings | None = field(default=None, repr=False, compare=False)
    unread: Archive | None = field(default=None, repr=False, compare=False)

    def with_config(self, config: Config) -> Replay:
        """Return the replay under other settings.

        Of the analysis brokerage's tables ``failure_counts`` (TW_DONE_JOB_STAT), ``user_eval`` and ``task_class``
        (thresholds of component ``analy_eval``) depend on them: they are made anew.

        Args:
            config: The settings, without a history.

        Raises:
            ConfigError: In a chunk of user tasks: settings under which these tables would be others.
        """
        if self.stage == "analysis" and self.remake is None:
            self._refuse_other_tables(config)
        changed = {} if self.remake is None else self.remake(config)
        tables = MappingProxyType({**self.tables, **changed})
        return replace(self, tables=tables, config=config)

    def _refuse_other_tables(self, config: Config) -> None:
        """Refuse settings under which tables that cannot be made here would be others."""
        from brokerlab.brokerage.analysis_jobs.settings import TABLE_KEYS, place_of

        other = differing(config, self.config, TABLE_KEYS, place_of)
        if other:
            raise ConfigError(
                f"{', '.join(other)}: tables of the replay depend on it and cannot be made again in a chunk of tasks; ask "
                "build(...).with_config"
            )

    @property
    def tasks(self) -> pl.DataFrame:
        """One row per task and instant."""
        return self.tables["tasks"]

    def tables_of(self, contracts: Mapping[str, type[dy.Schema]]) -> dict[str, pl.DataFrame]:
        """Return the tables of a brokerage, with the columns that it reads.

        Args:
            contracts: Its input tables, such as ``plugins.of_stage(stage).tables``.
        """
        seen = self._whole if self.unread is not None and "files" in contracts else self
        return {
            name: frame.select(key for key in contracts[name].columns() if key in frame.columns)
            for name, frame in seen.tables.items()
            if name in contracts
        }

    @cached_property
    def _whole(self) -> Replay:
        """The replay with what follows from the files of its tasks, where they are still to be read."""
        unread = self.unread
        files = unread.lazy("files") if unread is not None and unread.has("files") else None
        tables = {**self.tables, **of_files(self.stage, files, self.tables)}
        return replace(self, tables=MappingProxyType(tables), unread=None)

    def of(self, brokerages: pl.DataFrame) -> Replay:
        """Return the replay of some brokerages, ``jeditaskid, snapshot``."""
        tables = _at_instants(self.tables, brokerages["snapshot"])
        for name, table in tables.items():
            if _by_task(name, table):
                tables[name] = table.filter(_among("jeditaskid", brokerages["jeditaskid"]))
        keys = ["jeditaskid", "snapshot"]
        tables["tasks"] = self.tasks.join(brokerages, on=keys, how="semi", maintain_order="left")
        return replace(self, tables=MappingProxyType(tables))

    def map(self, function: Callable[..., T], **beside: pl.DataFrame) -> list[T]:
        """Return what :meth:`each` yields."""
        return list(self.each(function, **beside))

    def each(self, function: Callable[..., T], **beside: pl.DataFrame) -> Iterator[T]:
        """Apply a function to the replay of each chunk of tasks, one after the other, on this machine or on Spark.

        What is seen at queues travels with the function, and each chunk takes what holds at its instants; files that are
        still unread, of which there may be more than fit into memory, are dealt out by task and never come together. What
        the function returns should have the size of the tasks, e.g. decisions on them. Of an archive that was opened with a
        Spark session Spark carries the chunks.

        Args:
            function: Takes the replay of some tasks, perhaps of none, and the rows of ``beside`` by name. It sees these
                tasks only, while the choice of the nucleus looks at all tasks of a cycle: decide it on the whole.
            beside: Further tables with ``jeditaskid``.

        Yields:
            What the function returned, by chunk.
        """
        own = {name: table for name, table in self.tables.items() if _by_task(name, table)}
        shared = {name: table for name, table in self.tables.items() if name not in own}
        n_pairs = self.tasks.height * self.tables["queues"]["panda_queue"].n_unique()
        large, unread, stage = {}, self.unread is not None, self.stage
        if self.unread is not None and self.unread.has("files"):
            large["files"] = task_tables.files_read(self.unread.lazy("files"))
        bare = replace(self, tables={}, remake=None, unread=None)

        def of_chunk(chunk: carry.Chunk) -> T:
            of_tasks = {name: chunk[name] for name in own}
            tables = _at_instants(shared, of_tasks["tasks"]["snapshot"]) | of_tasks
            if unread:
                tables |= of_files(stage, chunk.get("files"), tables)
            return function(replace(bare, tables=tables), **{name: chunk[name] for name in beside})

        return carry.deal(large, own | beside, least=-(-n_pairs // CHUNK_PAIRS)).each(of_chunk)

    def frame(self) -> pl.DataFrame:
        """Return one row per table: ``table``, ``rows``, ``history`` (its rows hold for one instant each)."""
        rows = [(name, f.height, "snapshot" in f.columns) for name, f in self.tables.items()]
        return pl.DataFrame(rows, schema=["table", "rows", "history"], orient="row").sort("table")

    def to_dict(self) -> dict[str, Any]:
        """Return sizes, notes and provenance."""
        return {
            "stage": self.stage,
            "instants": len(self.instants),
            "rows": {name: frame.height for name, frame in self.tables.items()},
            "notes": list(self.notes),
            "archive": self.archive_digest,
            "config": self.config.digest,
            "synthetic": self.synthetic,
        }

    def headline(self) -> str:
        """Return what it says, in a line."""
        kind = "synthetic archive" if self.synthetic else "archive"
        return (
            f"{len(self.tasks):,} brokerages ({self.stage}) at {len(self.instants):,} instants, from the {kind} "
            f"{self.archive_digest[:12]}; {len(self.notes)} notes"
        )


@call("brokerage.replay")
def build(
    source: Source,
    *,
    start: datetime | str | None = None,
    end: datetime | str | None = None,
    at: datetime | str | None = None,
    tasks: Any = None,
    stage: str = "jobs",
    every: str | None = "10m",
    cycle: str = "1h",
    label: str | None = OF_STAGE,
    merging: bool = False,
    resource_work_queues: pl.DataFrame | None = None,
    rules: ProductionRules | str | None = None,
    class_rules: ClassRules | str | None = None,
    files: bool = True,
) -> Replay:
    """Rebuild the brokerage's input tables at every instant at which tasks were brokered.

    Each table is made in one query over the whole period, whatever the number of instants.

    Args:
        source: An archive, ``brokerlab.open(path)``, or its tables by name.
        start: First brokerage, naive UTC or such a text; None = the first there is.
        end: Brokerages before this time; None = to the last.
        at: One instant for all tasks, instead of their own: ``tasks``, or else (not ``stage="tasks"``) every task with
            jobs made by then and after.
        tasks: What to broker: ids of tasks, or a table of any engine: ``jeditaskid``, perhaps ``at`` (time of each brokerage,
            UTC) and with it ``is_merging``, ``use_scout``; None takes every task of the label.
        stage: ``jobs``: where jobs of production go; ``tasks``: the choice of the nucleus; ``analysis``: where jobs of
            users go.
        every: Grid to which instants are rounded down, so that tasks share them; None keeps each.
        cycle: Jobs of a task made in one such cycle of the clock come from one brokerage (not ``stage="tasks"``).
        label: ``prodsourcelabel``; by default that of the stage, managed or user; None takes all.
        merging: Broker the merge chunks instead of the ordinary ones (tables about a task's input are of one kind).
        resource_work_queues: ``workqueue_id``, ``queue_name`` of work queues that are resource queues.
        rules: Rule set, or its name: switches ``milli_units_converted`` (``remaining_work``) and, for jobs, ``bare_mode_of`` (``nuclei``);
            everything else is the same for every rule set.
        class_rules: Rule set of the classes of queues and tasks (``stage="analysis"``); by default that of the name of ``rules``.
        files: Read the files of the tasks at once; False: when they are asked for, see :meth:`Replay.map`.

    Returns:
        The replay.

    Raises:
        ConfigError: An argument that cannot be.
        SchemaError: Columns of ``tasks`` that are unknown or of another type.
        MissingTableError: The archive lacks ``jobs``, ``tasks`` or ``queues``.
        EmptyPeriodError: No task is brokered in the period, or a time lies outside of the archive's. (Both are a `DataError`.)

    Source:
        production-jobs.md; production-tasks.md 1; analysis-jobs.md
        section 1.
    """
    archive = archive_of(source)
    _check(archive, stage)
    switches = ProductionRules.of(rules)
    planned, numbered = plan.planned(
        archive,
        start=time_of(start, "start"),
        end=time_of(end, "end"),
        at=time_of(at, "at"),
        tasks=tasks,
        stage=stage,
        every=every,
        cycle=cycle,
        label=LABELS[stage] if label == OF_STAGE else label,
        merging=merging,
    )
    kind: type[Maker] = Maker
    if stage == "analysis":
        from brokerlab.brokerage.replaying.analysis import AnalysisMaker

        kind = AnalysisMaker
    maker = kind(
        archive=archive,
        planned=planned,
        instants=numbered,
        stage=stage,
        merging=merging,
        rules=switches,
        class_rules=_of_classes(stage, switches, class_rules),
        resource_work_queues=resource_work_queues,
        config=Config.recorded(archive, cast("datetime", numbered["at"].max())),
    )
    maker.make(files=files)
    return Replay(
        tables=MappingProxyType(maker.tables),
        instants=numbered,
        stage=stage,
        config=maker.config,
        notes=tuple(maker.notes),
        archive_digest=archive.digest,
        synthetic=archive.synthetic,
        remake=maker.of_settings,
        unread=None if files else archive,
    )


def build_once(
    archive: Archive,
    *,
    start: datetime | None = None,
    end: datetime | None = None,
    tasks: Sequence[int] | None = None,
    stage: str = "jobs",
    every: str | None = "10m",
    rules: ProductionRules | None = None,
    class_rules: ClassRules | None = None,
    files: bool = True,
) -> Replay:
    """Return a replay as :func:`build` makes it, keeping it beside the archive for the next report that asks for it."""
    asked: dict[str, Any] = {"start": start, "end": end, "tasks": tasks, "stage": stage}
    asked |= {"every": every, "files": files}
    rules = ProductionRules.of(rules)
    classes = _of_classes(stage, rules, class_rules)
    switches = {"rules": rules.to_dict(), "class_rules": classes and classes.to_dict()}

    def make() -> keeping.Result:
        made = build(archive, **asked, rules=rules, class_rules=classes)
        frames = {"instants": made.instants}
        frames |= {f"table-{name}": frame for name, frame in made.tables.items()}
        if made.remake is not None:
            frames |= {f"basis-{name}": frame for name, frame in made.remake.basis.items()}
        return keeping.Result(frames, made.notes)

    result = keeping.kept(archive, "replay", asked | switches, make)
    tables, basis = (
        {name.removeprefix(kind): frame for name, frame in result.frames.items() if kind in name}
        for kind in ("table-", "basis-")
    )
    instants, remake = result.frames["instants"], None
    if stage == "analysis":
        from brokerlab.brokerage.replaying.analysis import OfSettings

        remake = OfSettings(archive, tables, instants, basis, classes)
    return Replay(
        tables=MappingProxyType(tables),
        instants=instants,
        stage=stage,
        config=Config.recorded(archive, cast("datetime", instants["at"].max())),
        notes=result.texts,
        archive_digest=archive.digest,
        synthetic=archive.synthetic,
        remake=remake,
        unread=None if files else archive,
    )


def _of_classes(
    stage: str, rules: ProductionRules, class_rules: ClassRules | str | None
) -> ClassRules | None:
    """Return the rule set of classes, which rest on the life cycle: production does not need them."""
    if stage != "analysis":
        return None
    from brokerlab.lifecycle.classification import ClassRules

    return ClassRules.of(class_rules or rules.rules)


def _among(name: str, values: pl.Series) -> pl.Expr:
    """Keep rows that hold for one of some values, or for all."""
    return pl.col(name).is_null() | pl.col(name).is_in(values.unique().implode())


def _at_instants(
    tables: Mapping[str, pl.DataFrame], snapshots: pl.Series
) -> dict[str, pl.DataFrame]:
    """Return of tables with a history what holds at some instants."""
    return {
        name: table.filter(_among("snapshot", snapshots)) if "snapshot" in table.columns else table
        for name, table in tables.items()
    }


def _by_task(name: str, table: pl.DataFrame) -> bool:
    """Whether rows of a table are of single tasks of the replay."""
    return "jeditaskid" in table.columns and name != "parent_tasks"


def _check(archive: Archive, stage: str) -> None:
    if stage not in STAGES:
        raise ConfigError(f"stage={stage!r}: {nearest(stage, STAGES)}")
    missing = [name for name in ("jobs", "tasks", "queues") if not archive.has(name)]
    if missing:
        raise MissingTableError(
            f"a replay needs {', '.join(missing)}; ingest a source that holds them ({archive.path})"
        )
