"""Makes the tables of a replay of user tasks, with the classes of queues and tasks and the usage of users and shares.

The deployed system evaluates queues every 30 minutes and the rest about every 10 (classes.md 3, 8). So
each is evaluated here on such a grid of the clock, and an instant sees the last evaluation: a value is up to 30 or 10
minutes old, and ``timestamp`` says when it was made.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

import narwhals.stable.v2 as nw
import polars as pl

from brokerlab.brokerage.analysis_jobs.settings import place_of
from brokerlab.brokerage.engine.steps import value_at
from brokerlab.brokerage.replaying import counts, places
from brokerlab.brokerage.replaying.clock import Clock
from brokerlab.brokerage.replaying.counts import Counts, disk_traffic
from brokerlab.brokerage.replaying.maker import Maker
from brokerlab.engines import INT, TEXT, Types, collect, narrow
from brokerlab.frames import latest
from brokerlab.gdpconfig import Config
from brokerlab.lifecycle import classification
from brokerlab.lifecycle.classification import ClassRules
from brokerlab.times import rounded

if TYPE_CHECKING:
    from brokerlab.archive import Archive


SITES_EVERY, USERS_EVERY = "30m", "10m"
"""How often queues, and users, tasks and shares are evaluated."""
PROGRESS = ("files", "datasets", "jobs")
"""Tables that tell the progress of tasks."""


@dataclass(frozen=True)
class Ticks:
    """The times of evaluation, ``snapshot, at``, that instants see: ``snapshot, at, tick`` (its number), ``timestamp``."""

    instants: pl.DataFrame
    ticks: pl.DataFrame

    @classmethod
    def of(cls, instants: pl.DataFrame, every: str) -> Ticks:
        """Round instants down to a grid of the clock."""
        timed = instants.select("snapshot", "at", timestamp=rounded(pl.col("at"), every))
        times = timed.select("timestamp").unique().sort("timestamp").with_row_index("tick")
        numbered = times.with_columns(pl.col("tick").cast(pl.Int64))
        joined = timed.join(numbered, on="timestamp", maintain_order="left")
        return cls(joined, numbered.select(snapshot="tick", at="timestamp"))

    def seen(self, rows: pl.DataFrame, *columns: str) -> pl.DataFrame:
        """Return for each instant the rows of its evaluation: ``snapshot``, the columns, ``timestamp``."""
        own = rows.select(*columns, tick="snapshot")
        joined = self.instants.select("snapshot", "tick", "timestamp").join(own, on="tick")
        return joined.select("snapshot", *columns, "timestamp").sort("snapshot", *columns)


def site_ratings(
    jobs: Any,
    queues: pl.DataFrame,
    instants: pl.DataFrame,
    *,
    status_log: Any,
    rules: classification.ClassRules | None = None,
) -> pl.DataFrame:
    """Rate the queues: ``snapshot, computingsite, resource_type, class`` (null: not classified), ``timestamp``, sorted.

    Unless every job is in the status log, waits are those of the jobs' own times (switch ``wait_time``).

    Source: classes.md 1 to 3.
    """
    at = Ticks.of(instants, SITES_EVERY)
    rules = classification.ClassRules() if rules is None else rules
    if status_log is not None and not covered(jobs, status_log):
        rules = classification.ClassRules(**{**rules.to_dict(), "wait_time": "recorded"})
    result = classification.site_classes_at(
        jobs, queues, status_log=status_log, at=at.ticks, rules=rules
    )
    return at.seen(result.classes, "computingsite", "resource_type", "class")


def users(
    jobs: Any, rated: pl.DataFrame, instants: pl.DataFrame, *, status_log: Any
) -> dict[str, pl.DataFrame]:
    """Return what users occupy at each evaluation, and the classes of queues then (classes.md 4).

    ``slots`` by queue, see :func:`brokerlab.lifecycle.classification.user_slots`, and ``rated``.
    """
    at = Ticks.of(instants, USERS_EVERY)
    slots = classification.user_slots(jobs, status_log=status_log, at=at.ticks)
    # instants of one tick lie in the same half hour and see the same classes
    first = at.instants.unique("tick", keep="first", maintain_order=True)
    known = first.select("snapshot", "tick").join(rated, on="snapshot").drop("snapshot")
    return {"slots": slots, "rated": known.rename({"tick": "snapshot"})}


def user_ratings(at: Ticks, usage: pl.DataFrame, units: pl.DataFrame) -> pl.DataFrame:
    """Return what is left to the users of tasks (contract ``UserEval``), sorted.

    ``usage`` is by evaluation, ``units`` are ``snapshot, username`` (as in ``produsername``), ``origusername`` (name of the
    row; null: ``username``).
    """
    seen = at.seen(usage, "produsername", "rem_slots_a", "rem_slots_b")
    names = units.select(
        "snapshot", produsername="username", user=pl.coalesce("origusername", "username")
    )
    joined = names.drop_nulls().unique().join(seen, on=["snapshot", "produsername"])
    columns = ["snapshot", "user", "rem_slots_a", "rem_slots_b", "timestamp"]
    return joined.select(columns).sort(columns)


def share_ratings(
    jobs: Any, shares: pl.DataFrame, instants: pl.DataFrame, *, status_log: Any
) -> pl.DataFrame:
    """Hold what runs in each share against its target (contract ``GshareUsage``; classes.md 7)."""
    at = Ticks.of(instants, USERS_EVERY)
    stats = classification.share_job_stats(jobs, status_log=status_log, at=at.ticks)
    result = classification.share_usage(shares, stats).usage
    return at.seen(result, "gshare", "usage_perc", "eqiv_usage_perc")


def task_ratings(
    at: Ticks, usage: pl.DataFrame, basis: Mapping[str, pl.DataFrame], pairs: pl.DataFrame, *,
    config: Config, rules: classification.ClassRules | None,
) -> pl.DataFrame:  # fmt: skip
    """Return the classes of the tasks asked for, ``pairs``, under thresholds (contract ``TaskClass``), sorted.

    A task that was not active at its evaluation, e.g. before it began, has no row.
    """
    result = classification.task_classes(
        basis["states"], basis.get("progress"), usage, at=at.ticks, config=config, rules=rules
    ).classes
    seen = at.seen(result, "jeditaskid", "class")
    theirs = seen.join(pairs, on=["jeditaskid", "snapshot"], how="semi")
    return theirs.sort("snapshot", "jeditaskid")


def active_tasks(
    tables: Mapping[str, Any], pairs: pl.DataFrame, at: Ticks
) -> dict[str, pl.DataFrame]:
    """Return the tasks to be brokered that are active at each evaluation, ``states``, and their ``progress`` where it is known.

    Without one of ``files``, ``datasets``, ``jobs`` among the tables it is not.

    Source: classes.md 5.
    """
    ids = pairs["jeditaskid"].unique().to_list()
    own = {
        name: nw.from_native(table).lazy().filter(nw.col("jeditaskid").is_in(ids)).to_native()
        for name, table in tables.items()
    }
    states = classification.task_states(
        own["tasks"], status_log=own.get("task_status_log"), at=at.ticks
    )
    asked = pairs.join(at.instants.select("snapshot", "tick"), on="snapshot")
    wanted = asked.select("jeditaskid", snapshot="tick").unique()
    active = states.join(wanted, on=["jeditaskid", "snapshot"], how="semi")
    if active.height and all(name in own for name in PROGRESS):
        progress = classification.task_progress(active, *(own[name] for name in PROGRESS))
        return {"states": active, "progress": progress}
    return {"states": active}


def covered(jobs: Any, status_log: Any) -> bool:
    """Whether every job has an entry in the status log."""
    ids = {"pandaid": INT}
    table = narrow(jobs, "jobs", ids, ("pandaid",))
    log = narrow(status_log, "job_status_log", ids, ("pandaid",))
    return collect(table.join(log, on="pandaid", how="anti").head(1)).is_empty()


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

    def _make_links(self, tables: Any) -> None:
        """Make ``queue_endpoints``, with what is known of each endpoint at last."""
        links = places.scoped_endpoints(tables)
        storage = self.tables.get("storage_endpoints")
        self.tables["queue_endpoints"] = places.endpoints_with_storage(links, storage)

    def _job_tables(self, counts: Counts) -> dict[str, pl.DataFrame]:
        columns = ("computingsite", "gshare", "resource_type", "jobstatus")
        return {"job_stats": counts.table(*columns), "diskio_usage": disk_traffic(counts)}

    def _make_users(self) -> None:
        jobs = self.archive.joinable("jobs")
        changes = counts.user_changes(jobs, self.log, self.clock, parents=self.parents)
        shares = self.tables["tasks"].select("snapshot", "gshare").unique()
        names = self.tables["tasks"]["username"].drop_nulls().unique()
        jobless = names.len() - names.is_in(changes.sides[0].groups["produsername"].implode()).sum()
        if jobless:
            self.notes.append(
                f"{jobless:,} of {names.len():,} users of tasks have no job of their name (tasks.username, jobs.produsername): "
                "no job counts for them"
            )
        self.tables["user_job_stats"] = counts.user_job_stats(changes, shares)
        self.tables["user_totals"] = counts.user_totals(changes, users_of(self.tables["tasks"]))

    def _make_pace(self) -> None:
        jobs, clock, parents = self.archive.joinable("jobs"), self.clock, self.parents
        self.tables["to_run_rate"] = places.to_run_rate(jobs, clock, parents=parents)
        self.tables["sites_used"] = places.sites_used(jobs, self.pairs, clock, parents=parents)
        self.notes.append("queues where a task had jobs count as those with datasets of its output")

    def _copied(self, datasets: pl.DataFrame) -> pl.DataFrame:
        """Ask for the replicas of distributed datasets too: whether some queue has all of one decides."""
        return datasets.with_columns(distributed="pseudo")

    def _make_input(self) -> None:
        super()._make_input()
        if "replicas" in self.tables:
            names = self.tables["datasets"].filter(~pl.col("pseudo")).select("datasetname")
            real = names.drop_nulls().unique()
            lost = real.join(self.tables["replicas"], on="datasetname", how="anti").height
            if lost:
                self.notes.append(
                    f"{lost:,} of {len(real):,} input datasets have no replica in the archive: they count as complete nowhere"
                )
        if "n_jobs" in self.tables["tasks"].columns:
            self.notes.append(
                "a chunk splits into as many jobs as were made in its cycle, tried again ones included"
            )

    def _make_ratings(self) -> None:
        """Make the classes of queues and tasks, and the usage of users and shares."""
        jobs, instants, log = self.archive.joinable("jobs"), self.instants, self.log
        queues = latest(self.archive.scan("queues").collect())
        rated = site_ratings(jobs, queues, instants, status_log=log, rules=self.class_rules)
        known = rated.drop_nulls("class")
        self.tables["site_class"] = known.select("snapshot", "computingsite", "class")
        if (shares := self._whole("gshares")) is not None:
            self.tables["gshare_usage"] = share_ratings(jobs, shares, instants, status_log=log)
        names = ("tasks", "task_status_log", *PROGRESS)
        tables = {name: self.archive.joinable(name) for name in names if self.archive.has(name)}
        at = Ticks.of(instants, USERS_EVERY)
        basis = users(jobs, rated, instants, status_log=log)
        basis |= active_tasks(tables, self.pairs, at)
        self.of_settings = OfSettings(
            self.archive, self.tables, self.instants, basis, self.class_rules
        )
        self.tables |= self.of_settings(self.config)
        recorded = [name for name in ("metrics", "task_evaluation") if self.archive.has(name)]
        if recorded:
            self.notes.append(f"{' and '.join(recorded)} of the archive are not read")
        self.notes.append(
            f"classes of queues are evaluated every {SITES_EVERY}, of tasks, with users and shares, every "
            f"{USERS_EVERY}, by the rule set {(self.class_rules or ClassRules()).rules}; "
            f"{len(known):,} classes of queues at {len(instants):,} instants, every other queue counts as mid"
        )


@dataclass(frozen=True)
class OfSettings:
    """Makes the tables of a replay (``tables``) that depend on settings.

    ``basis``: what thresholds are laid on: ``slots`` and ``rated`` (`users`), ``states`` and perhaps ``progress``
    (`active_tasks`).
    """

    archive: Archive
    tables: Mapping[str, pl.DataFrame]
    instants: pl.DataFrame
    basis: Mapping[str, pl.DataFrame]
    class_rules: ClassRules | None
    _ended: dict[float, pl.DataFrame] = field(default_factory=dict, repr=False, compare=False)

    def __call__(self, config: Config) -> dict[str, pl.DataFrame]:
        """Return ``failure_counts``, ``user_eval`` and ``task_class``."""
        tasks, basis = self.tables["tasks"], self.basis
        pairs = tasks.select("jeditaskid", "snapshot")
        at = Ticks.of(self.instants, USERS_EVERY)
        usage = classification.user_usage(
            basis["slots"], basis["rated"], config=config, rules=self.class_rules
        ).users
        hours = value_at(config, "TW_DONE_JOB_STAT", place_of)
        if hours not in self._ended:
            self._ended[hours] = places.failure_counts(
                self.archive.joinable("jobs"),
                pairs,
                Clock.of(self.instants),
                hours=hours,
                parents=places.parents(self.tables["queues"]),
            )
        return {
            "failure_counts": self._ended[hours],
            "user_eval": user_ratings(at, usage, users_of(tasks)),
            "task_class": task_ratings(
                at, usage, basis, pairs, config=config, rules=self.class_rules
            ),
        }


def users_of(tasks: pl.DataFrame) -> pl.DataFrame:
    """Return the users and working groups of tasks at their instants."""
    return tasks.select("snapshot", "username", "origusername", "workinggroup").unique()
