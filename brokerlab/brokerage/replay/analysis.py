"""Makes the tables of a replay of user tasks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import polars as pl

from brokerlab.brokerage.analysis_jobs.endpoints import in_scope
from brokerlab.brokerage.analysis_jobs.settings import COMPONENT
from brokerlab.brokerage.production_jobs.settings import read
from brokerlab.brokerage.replay import pace, places, ratings, userjobs, userrows
from brokerlab.brokerage.replay.counts import Counts, disk_traffic
from brokerlab.brokerage.replay.maker import Maker
from brokerlab.brokerage.replay.recorded import recorded_counts
from brokerlab.brokerage.replay.tables import TEXT, Types
from brokerlab.brokerage.rules import ProductionRules
from brokerlab.gdpconfig import Config
from brokerlab.lifecycle.classes import ClassRules

if TYPE_CHECKING:
    from brokerlab.archive import Archive

SEEN_WITHIN_S = 3600
"""Batch workers that were seen within this time count [s] (analysis-job-brokerage.md 1.3)."""


class AnalysisMaker(Maker):
    """Makes the tables of the analysis brokerage, ``analysis_jobs.contracts.TABLES``."""

    more_of_queues: Types = {"cloud": TEXT}  # noqa: RUF012
    workers_within_s = SEEN_WITHIN_S

    def __init__(
        self,
        archive: Archive,
        planned: pl.DataFrame,
        instants: pl.DataFrame,
        *,
        merging: bool,
        config: Config,
        class_rules: ClassRules | None,
    ) -> None:
        super().__init__(
            archive,
            planned,
            instants,
            stage="analysis",
            merging=merging,
            resource_work_queues=None,
            rules=ProductionRules(),
        )
        self.config, self.class_rules = config, class_rules

    def make(self) -> None:
        """Make every table that the archive allows."""
        self._make_tasks()
        self._make_places()
        self._make_counts()
        self._make_users()
        self._make_pace()
        self._make_activity()
        self._make_input()
        self._make_ratings()
        self.notes.append(
            "the archive does not tell quotas, nor the lists of included and excluded queues: no such check can fail"
        )

    @property
    def pairs(self) -> pl.DataFrame:
        """Tasks and instants."""
        return self.tables["tasks"].select("jeditaskid", "snapshot")

    @property
    def units(self) -> pl.DataFrame:
        """Users and working groups of the tasks."""
        columns = ["snapshot", "username", "origusername", "workinggroup"]
        return self.tables["tasks"].select(columns).unique()

    def _make_tasks(self) -> None:
        """Make ``tasks``."""
        super()._make_tasks()
        self.tables["tasks"] = userrows.user_rows(self.tables["tasks"])

    def _make_links(self, found: Any) -> None:
        """Make ``queue_endpoints``, with what is known of each endpoint at the end."""
        links = places.scoped_endpoints(found)
        storage = self.tables.get("storage_endpoints")
        self.tables["queue_endpoints"] = places.endpoints_with_storage(links, storage)
        if storage is not None and "snapshot" in storage.columns:
            self.notes.append(
                "free space and state of storage endpoints are those of the last instant"
            )

    def _readers(self, links: pl.DataFrame) -> pl.DataFrame:
        """Return the endpoints of the scope that counts."""
        columns = ["panda_queue", "direction", "ddm_endpoint_name", "is_default", "is_local"]
        return in_scope(links).select(columns)

    def _make_counts(self) -> None:
        """Make ``job_stats`` and ``diskio_usage``."""
        counts = Counts.of(
            self.archive.jobs, self._lazy("job_status_log"), self.instants, parents=self.parents
        )
        self.notes += counts.notes
        self.tables |= _job_tables(counts)
        if self.archive.has("job_stats"):
            known = recorded_counts(self.archive.job_stats, self.instants, parents=self.parents)
            self._replace_counts(known, _job_tables(known))

    def _log(self) -> Any:
        """Return the status log; none where there is none."""
        has = self.archive.has("job_status_log")
        return self.archive.job_status_log if has else None

    def _make_users(self) -> None:
        """Make the numbers of jobs of users."""
        jobs = self.archive.jobs
        changes = userjobs.user_changes(jobs, self._log(), self.clock, parents=self.parents)
        shares = self.tables["tasks"].select("snapshot", "gshare").unique()
        self.tables["user_job_stats"] = userjobs.user_job_stats(changes, shares)
        self.tables["user_totals"] = userjobs.user_totals(changes, self.units)

    def _make_pace(self) -> None:
        """Make what happened in the last hours."""
        jobs, clock, parents = self.archive.jobs, self.clock, self.parents
        self.tables["to_run_rate"] = pace.to_run_rate(jobs, clock, parents=parents)
        hours = read(self.config, "TW_DONE_JOB_STAT", component=COMPONENT)
        self.tables["failure_counts"] = pace.failure_counts(
            jobs, self.pairs, clock, hours=hours, parents=parents
        )
        self.tables["sites_used"] = pace.sites_used(jobs, self.pairs, clock, parents=parents)
        self.notes.append(
            f"failed and closed jobs count for {hours:g} h (TW_DONE_JOB_STAT); queues where a task had jobs count as used"
        )

    def _copied(self, datasets: pl.DataFrame) -> pl.DataFrame:
        """Ask for the replicas of distributed datasets too: whether some queue has all of one decides."""
        return datasets.with_columns(distributed="pseudo")

    def _make_input(self) -> None:
        """Make what tasks read, and the jobs that it splits into."""
        super()._make_input()
        own, files = self.tables.get("datasets"), self.tables.get("files")
        if own is not None:
            own = self.tables["datasets"] = userrows.user_datasets(own)
        rows = userrows.with_number_of_jobs(self.tables["tasks"], own, files)
        self.tables["tasks"] = rows
        if "n_jobs" in rows.columns:
            self.notes.append(
                "a chunk splits into as many jobs as were made in its cycle, tried again ones included"
            )

    def _make_ratings(self) -> None:
        """Make the classes of queues and tasks, and the usage of users and shares."""
        jobs, instants, rules = self.archive.jobs, self.instants, self.class_rules
        log = self._log()
        log = log if log is not None and ratings.covered(jobs, log) else None
        queues = self.archive.scan("queues").collect()
        if "ts" in queues.columns:
            queues = queues.sort("ts", nulls_last=False, maintain_order=True)
        queues = queues.unique("panda_queue", keep="last", maintain_order=True)
        rated = ratings.site_ratings(jobs, queues, instants, status_log=log, rules=rules)
        known = rated.drop_nulls("class")
        self.tables["site_class"] = known.select("snapshot", "computingsite", "class")
        used = ratings.usage(jobs, rated, instants, config=self.config, status_log=log, rules=rules)
        self.tables["user_eval"] = used.table(self.units)
        if (shares := self._whole("gshares")) is not None:
            self.tables["gshare_usage"] = ratings.share_ratings(
                jobs, shares, instants, status_log=log
            )
        self.tables["task_class"] = ratings.task_ratings(
            {
                name: self.archive.relation(name) if self.archive.has(name) else None
                for name in ("tasks", "files", "datasets", "jobs", "task_status_log")
            },
            self.pairs,
            used,
            config=self.config,
            rules=rules,
        )
        self._say_ratings(rated, whole=log is not None)

    def _say_ratings(self, rated: pl.DataFrame, *, whole: bool) -> None:
        """Tell how classes were made."""
        basis = "the status log" if whole else "the times of jobs, no status log tells all of them"
        n, all_ = rated["class"].drop_nulls().len(), len(self.instants)
        self.notes.append(
            f"classes of queues are evaluated every {ratings.SITES_EVERY}, users, tasks and shares every "
            f"{ratings.USERS_EVERY}, from {basis}; {n:,} classes of queues at {all_:,} instants, every other queue is mid"
        )


def _job_tables(counts: Counts) -> dict[str, pl.DataFrame]:
    """Return the tables that the analysis brokerage reads of all jobs."""
    columns = ("computingsite", "gshare", "resource_type", "jobstatus")
    return {"job_stats": counts.table(*columns), "diskio_usage": disk_traffic(counts)}
