"""Makes the tables of a replay, one query each, and keeps notes of what it had to do without."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

import polars as pl

from brokerlab.brokerage.analysis_jobs.locality import in_scope
from brokerlab.brokerage.full_chain import bare_modes
from brokerlab.brokerage.inputs.atoms import atoms
from brokerlab.brokerage.production_tasks.storage import remaining_work
from brokerlab.brokerage.replaying import places, task_tables
from brokerlab.brokerage.replaying.clock import Clock
from brokerlab.brokerage.replaying.counts import Counts, job_tables, recorded_counts
from brokerlab.brokerage.rules import ProductionRules
from brokerlab.engines import Types

if TYPE_CHECKING:
    from brokerlab.archive import Archive
    from brokerlab.brokerage.replaying.analysis import OfSettings
    from brokerlab.gdpconfig import Config
    from brokerlab.lifecycle.classification import ClassRules

_ABSENT = {
    "job_status_log": "all jobs are counted by their times",
    "site_data": "the activity of pilots is estimated from the jobs that ran",
    "task_status_log": "tasks are brokered when made and open until they end",
    "ddm_endpoints": "what endpoints can do and hold is unknown, and checks that need it remove nothing",
    "queue_endpoints": "endpoints of queues and nuclei are unknown, and checks that need them remove nothing",
    "network_matrix": "no link is known",
    "worker_stats": "no batch worker is known",
    "slots": "no slots are set",
    "software_tags": "what queues publish is unknown, and checks of software and hardware remove nothing",
    "replicas": "where input is complete is unknown, and checks that need it remove nothing",
    "datasets": "tasks have no input and no output",
    "files": "no file is known, and jobs have size 0",
    "resource_types": "unified queues have no pseudo-queues",
    "gshares": "no target of a share is known, and no task is held back by its class",
}
"""What follows from a table that the archive does not have."""


LOCATING = ("replicas", "queue_endpoints", "storage_endpoints")
"""Tables from which it is derived where files can be read."""


def of_files(stage: str, files: Any, tables: Mapping[str, pl.DataFrame]) -> dict[str, pl.DataFrame]:
    """Make the tables of a replay that follow from the files of its tasks, of all or of a chunk of them.

    ``files`` may be of any engine (null: there are none), ``tables`` are the other ones of the replay, of the same tasks.

    Returns:
        ``files``, ``tasks`` with what their input splits into, and ``file_locations`` where it is not known.
    """
    tasks, datasets = tables["tasks"], tables.get("datasets")
    made: dict[str, pl.DataFrame] = {}
    if files is not None and datasets is not None:
        own = made["files"] = task_tables.input_files(files, datasets)
        smallest = atoms(tasks, datasets, own)
        tasks = tasks.join(smallest, on="jeditaskid", how="left", maintain_order="left")
        if "file_locations" not in tables and all(name in tables for name in LOCATING):
            replicas, links, endpoints = (tables[name] for name in LOCATING)
            if stage == "analysis":
                columns = ("panda_queue", "direction", "ddm_endpoint_name", "is_local")
                links = in_scope(links).select(columns)
            made["file_locations"] = task_tables.file_locations(own, replicas, links, endpoints)
    if stage == "analysis":
        tasks = task_tables.with_number_of_jobs(tasks, datasets, made.get("files"))
    return made | {"tasks": tasks}


@dataclass(kw_only=True)
class Maker:
    """Makes tables of the production brokerage at some instants; ``make`` fills ``tables`` and ``notes``.

    Attributes:
        planned: Tasks and instants, see :func:`~.plan.planned`.
        instants: ``snapshot``, ``at``.
        merging: Merge chunks are brokered.
        config: The settings at the last instant.
        notes: What was approximated, and what is missing.
        of_settings: Makes the tables that depend on settings; null: none do.
    """

    archive: Archive
    planned: pl.DataFrame
    instants: pl.DataFrame
    stage: str
    merging: bool
    rules: ProductionRules
    class_rules: ClassRules | None
    resource_work_queues: pl.DataFrame | None
    config: Config
    tables: dict[str, pl.DataFrame] = field(default_factory=dict, init=False)
    notes: list[str] = field(default_factory=list, init=False)
    of_settings: OfSettings | None = field(default=None, init=False)
    more_of_queues: ClassVar[Types] = {}
    workers_within_s: ClassVar[int | None] = None

    def __post_init__(self) -> None:
        none = pl.DataFrame(schema={"workqueue_id": pl.Int64, "queue_name": pl.String})
        given = self.resource_work_queues
        self.tables["resource_work_queues"] = none if given is None else given
        self.clock = Clock.of(self.instants)

    @property
    def pairs(self) -> pl.DataFrame:
        """Tasks and instants."""
        return self.tables["tasks"].select("jeditaskid", "snapshot")

    def make(self, *, files: bool) -> None:
        """Make every table that the archive allows; without ``files`` those that do not follow from them."""
        self._make_tasks()
        self._make_places()
        self._make_counts()
        self._make_activity()
        self._make_network()
        self._make_input()
        if files:
            self._read_files()
        if self.stage == "tasks":
            self._make_work()
        else:
            self.tables["task_resource_types"] = task_tables.task_resource_types(
                self.archive.joinable("jobs"), self.pairs, self.instants, parents=self.parents
            )

    def _make_tasks(self) -> None:
        planned = self.planned
        own = task_tables.read_tasks(
            self.archive.joinable("tasks"), planned["jeditaskid"].unique().to_list()
        )
        known = planned.join(own, on="jeditaskid", how="semi")
        lost = planned["jeditaskid"].n_unique() - known["jeditaskid"].n_unique()
        if lost:
            self.notes.append(f"{lost:,} tasks with jobs are not in the table tasks: left out")
        rows = task_tables.task_rows(known, own, stage=self.stage)
        early = rows.height if self.stage == "tasks" else int(rows["use_scout"].sum())
        self.notes.append(
            "parameters of tasks, their priorities and the settings of scouts among them, are those of the end of the "
            f"archive; at {early:,} of {rows.height:,} brokerages before scouts, memory and CPU time are those submitted"
        )
        nowhere = rows["nucleus"].null_count() if self.stage == "jobs" else 0
        if nowhere:
            self.notes.append(
                f"{nowhere:,} of {rows.height:,} brokerages are of tasks without nucleus: no link, backlog or network weight "
                "acts on them"
            )
        self.tables["tasks"] = rows
        self.task_ids = rows["jeditaskid"].unique().sort().to_list()
        parents = rows["parent_tid"].drop_nulls().unique().to_list()
        family = task_tables.read_tasks(self.archive.joinable("tasks"), parents)
        self.tables["parent_tasks"] = task_tables.parents(family)

    def _make_places(self) -> None:
        queues = places.queues(
            self.archive.joinable("queues"),
            self._whole("resource_types"),
            self.clock,
            more=self.more_of_queues,
        )
        self.tables["queues"] = queues
        self.parents = places.parents(queues)
        if (result := self._lazy("ddm_endpoints")) is not None:
            self.tables["storage_endpoints"] = places.storage_endpoints(result, self.clock)
        if (result := self._lazy("queue_endpoints")) is not None:
            self._make_links(result)
        if (tags := self._whole("software_tags")) is not None:
            self.tables["sw_tags"] = tags
        for name in ("worker_node_gpu", "worker_node_cpu_level"):
            if self.archive.has(name):
                self.tables[name] = self.archive.scan(name).collect()
        if "worker_node_cpu_level" not in self.tables and self.archive.has("worker_nodes"):
            nodes = self.archive.scan("worker_nodes").collect()
            self.tables["worker_node_cpu_level"] = places.cpu_levels(nodes, queues)

    def _make_links(self, tables: Any) -> None:
        queues, links = self.tables["queues"], places.queue_endpoints(tables)
        self.tables["queue_endpoints"] = links
        endpoints = self.tables.get("storage_endpoints")
        if self.archive.has("queue_storage_site"):
            self.tables["queue_storage_site"] = self.archive.scan("queue_storage_site").collect()
        elif endpoints is not None:
            self.tables["queue_storage_site"] = places.queue_storage_site(links, endpoints)
        nuclei = places.nuclei(queues, links)
        # a nucleus keeps its endpoints, queues and mode over a replay of jobs
        if self.stage == "jobs":
            nuclei = nuclei.unique("nucleus", keep="last", maintain_order=True).drop(
                "snapshot", strict=False
            )
            last = queues.unique("panda_queue", keep="last", maintain_order=True)
            modes = bare_modes(last.drop("snapshot", strict=False), rules=self.rules)
            nuclei = nuclei.join(
                modes.drop("mixed"), on="nucleus", how="left", maintain_order="left"
            )
        self.tables["nuclei"] = nuclei

    def _make_counts(self) -> None:
        """Make the numbers of jobs; those recorded hold at the instants that they cover."""
        self.log = self._lazy("job_status_log")
        counts = Counts.of(
            self.archive.joinable("jobs"), self.log, self.instants, parents=self.parents
        )
        self.notes += counts.notes
        sites = counts.changes.sides[0].groups["computingsite"].drop_nulls().unique()
        strange = sites.filter(~sites.is_in([*self.parents, *self.parents.values()]))
        if strange.len():
            self.notes.append(
                f"{strange.len():,} of {sites.len():,} queues with jobs, such as {strange.sort().to_list()[0]}, are not in the table queues: "
                "they are no candidates"
            )
        self.tables |= self._job_tables(counts)
        if not self.archive.has("job_stats"):
            return
        known = recorded_counts(
            self.archive.joinable("job_stats"), self.instants, parents=self.parents
        )
        covered = pl.DataFrame({"snapshot": known.changes.clock.snapshots})
        self.notes.append(
            f"numbers of jobs are those recorded in job_stats at {len(covered):,} of {len(self.instants):,} instants"
        )
        for name, frame in self._job_tables(known).items():
            if name != "core_stats":  # cores are not recorded
                rebuilt = self.tables[name].join(covered, on="snapshot", how="anti")
                self.tables[name] = pl.concat([rebuilt, frame]).sort(frame.columns)

    def _job_tables(self, counts: Counts) -> dict[str, pl.DataFrame]:
        shares = self.tables["tasks"].select("snapshot", "gshare").unique()
        return job_tables(counts, self.tables["resource_work_queues"], shares=shares)

    def _make_activity(self) -> None:
        clock = self.clock
        if (result := self._lazy("site_data")) is not None:
            self.tables["site_activity"] = places.site_activity_of_data(result, clock)
        else:
            self.tables["site_activity"] = places.site_activity_of_jobs(
                self.archive.joinable("jobs"), clock, parents=self.parents
            )
        if (result := self._lazy("worker_stats")) is not None:
            self.tables["worker_stats"] = places.worker_stats(
                result, clock, seen_within_s=self.workers_within_s
            )
        if (result := self._lazy("slots")) is not None:
            self.tables["slots"] = places.slots(result, clock)

    def _make_network(self) -> None:
        if (result := self._lazy("network_matrix")) is not None:
            self.tables["network_matrix"] = places.network_matrix(
                result, self.clock, only=self._wanted_links()
            )

    def _wanted_links(self) -> pl.DataFrame:
        """Return what of the links is read: those to the tasks' nuclei, or the files queued for every nucleus."""
        if self.stage == "jobs":
            rows = self.tables["tasks"].select("snapshot", dst="nucleus")
            return rows.drop_nulls().unique()
        empty = pl.DataFrame(schema={"nucleus": pl.String})
        sites = self.tables.get("nuclei", empty).select(dst="nucleus").unique()
        queued = sites.with_columns(key=pl.lit(places.QUEUED))
        return self.instants.select("snapshot").join(queued, how="cross")

    def _make_input(self) -> None:
        if (table := self._lazy("datasets")) is None:
            return
        every = task_tables.read_datasets(table, self.task_ids)
        own = task_tables.input_datasets(every, merging=self.merging)
        self.tables["datasets"] = own
        self.tables["output_datasets"] = task_tables.output_datasets(every)
        rows = self.tables["tasks"].join(
            task_tables.master_times(every), on="jeditaskid", how="left", maintain_order="left"
        )
        self.tables["tasks"] = rows
        if self._lazy("files") is not None:
            self.notes.append(
                "all files of a task's input count as considered at each of its brokerages"
            )
        if (table := self._lazy("replicas")) is not None:
            copied = task_tables.replicas(table, self._copied(own), self.pairs, self.clock)
            self.tables["replicas"] = self._steady(copied)
        self._read_locations()

    def _read_files(self) -> None:
        files = self.archive.lazy("files") if self.archive.has("files") else None
        self.tables |= of_files(self.stage, files, self.tables)

    def _copied(self, datasets: pl.DataFrame) -> pl.DataFrame:
        """Return the input datasets, ``distributed`` where replicas are not asked for."""
        return datasets

    def _steady(self, replicas: pl.DataFrame) -> pl.DataFrame:
        """Keep one state of a task's replicas for the job brokerage, which reads its input once per task."""
        if self.stage == "tasks" or "snapshot" not in replicas.columns:
            return replicas
        self.notes.append("replicas of a task's input are those at its last brokerage")
        last = pl.col("snapshot") == pl.col("snapshot").max().over("jeditaskid")
        return replicas.filter(last).drop("snapshot")

    def _read_locations(self) -> None:
        """Read where files can be read from; without it, it is derived from the replicas."""
        if self.archive.has("file_locations"):
            names = self.tables["datasets"]["datasetname"].drop_nulls().unique().to_list()
            known = self.archive.scan("file_locations").filter(pl.col("datasetname").is_in(names))
            self.tables["file_locations"] = known.collect()
        elif self.archive.has("files") and all(name in self.tables for name in LOCATING):
            self.notes.append(
                "files are where their dataset is complete; partial copies are not seen"
            )

    def _make_work(self) -> None:
        if not self.archive.has("datasets"):
            return
        log = self._lazy("task_status_log")
        left = task_tables.open_tasks(
            self.archive.joinable("tasks"),
            self.archive.joinable("datasets"),
            self.archive.joinable("jobs"),
            self.instants,
            status_log=log,
        )
        rows = self.tables["tasks"]
        self.tables["remaining_work"] = remaining_work(left, rows, rules=self.rules)
        events = task_tables.master_events(self.archive.joinable("datasets"))
        self.tables["tasks"] = task_tables.with_task_work(rows, events)
        self.notes.append("events used by an instant are those of the jobs finished by then")

    def _lazy(self, name: str) -> Any:
        """Return a lazy table of the archive; none, with a note, where there is none."""
        if self.archive.has(name):
            return self.archive.joinable(name)
        self.notes.append(f"the archive has no {name}: {_ABSENT[name]}")
        return None

    def _whole(self, name: str) -> pl.DataFrame | None:
        """Return a small table of the archive; none, with a note, where there is none."""
        if self.archive.has(name):
            return self.archive.scan(name).collect()
        self.notes.append(f"the archive has no {name}: {_ABSENT[name]}")
        return None
