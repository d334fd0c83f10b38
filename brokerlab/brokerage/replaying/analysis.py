"""Makes the tables of a replay of user tasks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import polars as pl

from brokerlab.brokerage.analysis_jobs.settings import place_of
from brokerlab.brokerage.engine.steps import value_at
from brokerlab.brokerage.replaying import pace, places, ratings, taskrows, userjobs
from brokerlab.brokerage.replaying.clock import Clock
from brokerlab.brokerage.replaying.counts import Counts, disk_traffic
from brokerlab.brokerage.replaying.maker import Maker
from brokerlab.engines import TEXT, Types
from brokerlab.frames import latest
from brokerlab.gdpconfig import Config
from brokerlab.lifecycle import classification
from brokerlab.lifecycle.classification import ClassRules

if TYPE_CHECKING:
    from brokerlab.archive import Archive

SEEN_WITHIN_S = 3600
"""Batch workers that were seen within this time count [s] (analysis-jobs.md 1)."""


class AnalysisMaker(Maker):
    """Makes the tables of the analysis brokerage, ``analysis_jobs.contracts.TABLES``."""

    more_of_queues: ClassVar[Types] = {"cloud": TEXT}
    workers_within_s: ClassVar[int | None] = SEEN_WITHIN_S

    def make(self, *, files: bool) -> None:
        """Make every table that the archive allows; without ``files`` those that do not follow from them."""
        self._make_tasks()
        self._make_places()
        self._make_counts()
        self._make_users()
        self._make_pace()
        self._make_activity()
        self._make_input()
        if files:
            self._read_files()
        self._make_ratings()
        self.notes.append(
            "the archive does not tell quotas, nor the lists of included and excluded queues: no such check can fail"
        )

    def _make_tasks(self) -> None:
        super()._make_tasks()
        self.tables["tasks"] = taskrows.user_rows(self.tables["tasks"])

    def _make_links(self, tables: Any) -> None:
        """Make ``queue_endpoints``, with what is known of each endpoint at last."""
        links = places.scoped_endpoints(tables)
        storage = self.tables.get("storage_endpoints")
        self.tables["queue_endpoints"] = places.endpoints_with_storage(links, storage)

    def _job_tables(self, counts: Counts) -> dict[str, pl.DataFrame]:
        columns = ("computingsite", "gshare", "resource_type", "jobstatus")
        return {"job_stats": counts.table(*columns), "diskio_usage": disk_traffic(counts)}

    def _make_users(self) -> None:
        jobs = self.archive.jobs
        changes = userjobs.user_changes(jobs, self.log, self.clock, parents=self.parents)
        shares = self.tables["tasks"].select("snapshot", "gshare").unique()
        names = self.tables["tasks"]["username"].drop_nulls().unique()
        jobless = names.len() - names.is_in(changes.sides[0].groups["produsername"].implode()).sum()
        if jobless:
            self.notes.append(
                f"{jobless:,} of {names.len():,} users of tasks have no job of their name (tasks.username, jobs.produsername): "
                "no job counts for them"
            )
        self.tables["user_job_stats"] = userjobs.user_job_stats(changes, shares)
        self.tables["user_totals"] = userjobs.user_totals(changes, users_of(self.tables["tasks"]))

    def _make_pace(self) -> None:
        jobs, clock, parents = self.archive.jobs, self.clock, self.parents
        self.tables["to_run_rate"] = pace.to_run_rate(jobs, clock, parents=parents)
        self.tables["sites_used"] = pace.sites_used(jobs, self.pairs, clock, parents=parents)
        self.notes.append("queues where a task had jobs count as those with datasets of its output")

    def _copied(self, datasets: pl.DataFrame) -> pl.DataFrame:
        """Ask for the replicas of distributed datasets too: whether some queue has all of one decides."""
        return datasets.with_columns(distributed="pseudo")

    def _make_input(self) -> None:
        super()._make_input()
        if "datasets" in self.tables:
            own = self.tables["datasets"] = taskrows.user_datasets(self.tables["datasets"])
            self._count_unknown(own)
        if "n_jobs" in self.tables["tasks"].columns:
            self.notes.append(
                "a chunk splits into as many jobs as were made in its cycle, tried again ones included"
            )

    def _count_unknown(self, datasets: pl.DataFrame) -> None:
        if "replicas" not in self.tables:
            return
        real = datasets.filter(~pl.col("pseudo")).select("datasetname").drop_nulls().unique()
        lost = real.join(self.tables["replicas"], on="datasetname", how="anti").height
        if lost:
            self.notes.append(
                f"{lost:,} of {len(real):,} input datasets have no replica in the archive: they count as complete nowhere"
            )

    def _make_ratings(self) -> None:
        """Make the classes of queues and tasks, and the usage of users and shares."""
        jobs, instants, log = self.archive.jobs, self.instants, self.log
        rated = ratings.site_ratings(
            jobs, self._known_queues(), instants, status_log=log, rules=self.class_rules
        )
        known = rated.drop_nulls("class")
        self.tables["site_class"] = known.select("snapshot", "computingsite", "class")
        if (shares := self._whole("gshares")) is not None:
            self.tables["gshare_usage"] = ratings.share_ratings(
                jobs, shares, instants, status_log=log
            )
        names = ("tasks", "task_status_log", *ratings.PROGRESS)
        tables = {name: self.archive.relation(name) for name in names if self.archive.has(name)}
        at = ratings.Ticks.of(instants, ratings.USERS_EVERY)
        basis = ratings.users(jobs, rated, instants, status_log=log)
        basis |= ratings.active_tasks(tables, self.pairs, at)
        self.of_settings = OfSettings(
            self.archive, self.tables, self.instants, basis, self.class_rules
        )
        self.tables |= self.of_settings(self.config)
        recorded = [name for name in ("metrics", "task_evaluation") if self.archive.has(name)]
        if recorded:
            self.notes.append(f"{' and '.join(recorded)} of the archive are not read")
        self.notes.append(
            f"classes of queues are evaluated every {ratings.SITES_EVERY}, of tasks, with users and shares, every "
            f"{ratings.USERS_EVERY}, by the rule set {(self.class_rules or ClassRules()).rules}; "
            f"{len(known):,} classes of queues at {len(instants):,} instants, every other queue counts as mid"
        )

    def _known_queues(self) -> pl.DataFrame:
        """Return the last row of each queue of the archive."""
        return latest(self.archive.scan("queues").collect())


@dataclass(frozen=True)
class OfSettings:
    """Makes the tables of a replay (``tables``) that depend on settings.

    ``basis``: what thresholds are laid on: ``slots`` and ``rated`` (`ratings.users`), ``states`` and perhaps ``progress``
    (`ratings.active_tasks`).
    """

    archive: Archive
    tables: Mapping[str, pl.DataFrame]
    instants: pl.DataFrame
    basis: Mapping[str, pl.DataFrame]
    class_rules: ClassRules | None

    def __call__(self, config: Config) -> dict[str, pl.DataFrame]:
        """Return ``failure_counts``, ``user_eval`` and ``task_class``."""
        tasks, basis = self.tables["tasks"], self.basis
        pairs = tasks.select("jeditaskid", "snapshot")
        at = ratings.Ticks.of(self.instants, ratings.USERS_EVERY)
        usage = classification.user_usage(
            basis["slots"], basis["rated"], config=config, rules=self.class_rules
        ).users
        ended = pace.failure_counts(
            self.archive.jobs,
            pairs,
            Clock.of(self.instants),
            hours=value_at(config, "TW_DONE_JOB_STAT", place_of),
            parents=places.parents(self.tables["queues"]),
        )
        return {
            "failure_counts": ended,
            "user_eval": ratings.user_ratings(at, usage, users_of(tasks)),
            "task_class": ratings.task_ratings(
                at, usage, basis, pairs, config=config, rules=self.class_rules
            ),
        }


def users_of(tasks: pl.DataFrame) -> pl.DataFrame:
    """Return the users and working groups of tasks at their instants."""
    return tasks.select("snapshot", "username", "origusername", "workinggroup").unique()
