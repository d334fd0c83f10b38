"""The jobs of all simulated worlds at an instant, and their numbers as the brokerage's tables have them.

A census is a frame of the jobs at queues of all worlds, :data:`CENSUS`. The brokerage of users sees besides their own jobs, those
that ended lately, classes and usage (`Users`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import polars as pl

from brokerlab.brokerage.analysis_jobs.settings import place_of
from brokerlab.brokerage.engine.pairs import Plans
from brokerlab.brokerage.engine.steps import value_at
from brokerlab.brokerage.replaying.counts import LABEL
from brokerlab.brokerage.replaying.places import RATE_DELAY_S, RATE_WINDOW_S
from brokerlab.brokerage.replaying.task_tables import SMALLEST_SHARE
from brokerlab.calibrate.simulation.state import (
    DISKIO_UNIT,
    DONE,
    NEVER,
    RUNNING,
    WAITING,
    Arrays,
    Records,
)
from brokerlab.compiled import compiled
from brokerlab.gdpconfig import Config
from brokerlab.lifecycle.classification import share_usage, task_classes, user_usage
from brokerlab.lifecycle.classification.site_classes import GRID
from brokerlab.lifecycle.timeouts.rule import QUEUED
from brokerlab.numerics import BoolArray, IntArray
from brokerlab.units import HOUR_S, SECOND_US

if TYPE_CHECKING:
    from brokerlab.calibrate.simulation.loop import Loop
    from brokerlab.calibrate.simulation.world import World


ASSIGNED, ACTIVATED, MOVING_OUT, IN_SLOTS = range(4)
"""States of the jobs of a census."""
CENSUS = ("world", "job", "state", "queue", "since")
"""Number, row, state, row, and when the job came into the state [us]; outputs under way since the start of the job."""
STATUSES = pl.Series("jobstatus", ["assigned", "activated", "transferring", "running"])
"""By the states of the census."""
OVER = pl.Series("jobstatus", ["finished", "failed"])
"""Of ended attempts; a killed job counts as failed."""


@compiled
def look(
    world: int,
    attempt: Records,
    order: IntArray,
    created: IntArray,
    brokered: BoolArray,
    placed: IntArray,
    gone: IntArray,
    last_start: IntArray,
    live: IntArray,
    now: int,
    until: int,
    n: int,
    places: IntArray,
    due: IntArray,
) -> tuple[int, int, int]:
    """Write down the jobs of a world that are at queues at an instant, and take out of ``live`` who is none of these; times in us.

    ``live``: places in the ``order`` of making of jobs that may be at queues, or get one. Those that are over, whose outputs have
    arrived too (``gone``), are taken out; so are those that may have a queue before ``until``: ``due`` is filled with them.
    ``found``: columns of the census, filled from place ``n`` on. ``last_start`` of queues is brought up to date. Returns up to
    where ``found``, ``due`` and ``live`` are filled.
    """
    n_due, n_live = 0, 0
    for place in live:
        job = order[place]
        status = attempt["status"][job]
        state, since = -1, 0
        if status == DONE:
            if gone[job] <= now:
                continue
            state, since = MOVING_OUT, attempt["start"][job]
        elif status == RUNNING:
            state, since = IN_SLOTS, attempt["start"][job]
            queue = attempt["queue"][job]
            last_start[queue] = max(last_start[queue], since)
        elif status == WAITING:
            if created[job] <= now:
                state, since = ASSIGNED, placed[job]
                if attempt["ready"][job] <= now:
                    state, since = ACTIVATED, attempt["ready"][job]
        elif brokered[job] and (attempt["ready"][job] < until or attempt["ready"][job] == NEVER):
            due[n_due] = job
            n_due += 1
            continue
        live[n_live] = place
        n_live += 1
        if state >= 0:
            places[0, n], places[1, n], places[2, n] = world, job, state
            places[3, n], places[4, n] = attempt["queue"][job], since
            n += 1
    return n, n_due, n_live


class _Kinds:
    """Rows told apart by several whole numbers from 0 on, as one number: grouping by one column takes half as long."""

    def __init__(self, columns: Sequence[npt.ArrayLike]) -> None:
        """Number the rows; kinds ascend as the columns do, one after the other."""
        arrays = [np.asarray(column) for column in columns]
        self.most = [int(column.max(initial=0)) + 1 for column in arrays]
        self.numbers: IntArray = np.ravel_multi_index(arrays, self.most)

    def values(self, numbers: pl.Series) -> tuple[IntArray, ...]:
        """Return the values of the columns in kinds."""
        return np.unravel_index(numbers.to_numpy(), self.most)


def counted_of(rows: pl.DataFrame, arrays: Arrays) -> pl.DataFrame:
    """Count jobs by world, queue, status and every column of the groups; combinations may repeat.

    ``world, computingsite, jobstatus, njobs, ncores``, ``traffic`` per core of those ``measured`` jobs that have one, and
    the columns of the groups.
    """
    diskio, job = pl.col("diskio"), rows["job"]
    kinds = _Kinds((rows["world"], rows["queue"], arrays.group[job], rows["state"]))
    jobs = pl.DataFrame({"kind": kinds.numbers, "diskio": arrays.diskio[job]})
    counted = jobs.group_by("kind").agg(
        njobs=pl.len().cast(pl.Int64), traffic=diskio.clip(0).sum(), measured=(diskio >= 0).sum()
    )
    counted = counted.sort("kind")
    world, queue, group, state = kinds.values(counted["kind"])
    keys = {
        "world": world,
        "computingsite": arrays.queue_names[queue],
        "jobstatus": STATUSES[state],
        "njobs": counted["njobs"],
        "ncores": counted["njobs"].to_numpy() * arrays.group_cores[group],
        "traffic": counted["traffic"],
        "measured": counted["measured"],
    }
    return pl.DataFrame(keys).hstack(arrays.groups[group])


def by_share(rows: pl.DataFrame, arrays: Arrays) -> pl.DataFrame:
    """Count jobs by queue, share, work queue and status in every world, its ``snapshot``, as fast rebrokerage reads it.

    Jobs without share are left out.
    """
    known = counted_of(rows, arrays).drop_nulls("gshare").rename({"world": "snapshot"})
    return known.select("snapshot", "computingsite", "gshare", "workqueue_id", "jobstatus", "njobs")


def disk_traffic(base: pl.LazyFrame) -> pl.LazyFrame:
    """Return the mean disk traffic per core of running jobs that have one, by queue [kB/s]; ``base``: all jobs, counted."""
    running = base.filter(pl.col("jobstatus") == STATUSES[IN_SLOTS], pl.col("measured") > 0)
    return running.group_by("world", "computingsite").agg(
        diskio_per_core=pl.col("traffic").sum() / pl.col("measured").sum() / DISKIO_UNIT
    )


COUNTED = (
    *("job_stats", "job_stats_rt", "job_stats_workqueue", "job_stats_gshare_only"),
    *("transferring_by_nucleus", "core_stats", "diskio_usage", "task_resource_types"),
)
"""Count tables of the brokerage of production."""


def tables_of(
    counted: pl.DataFrame, arrays: Arrays, wanted: IntArray, resource: pl.DataFrame, plans: Plans
) -> dict[str, pl.DataFrame]:
    """Make the count tables of the brokerage of production from a census; ``task_resource_types`` is of the tasks wanted.

    Source: production-jobs.md.
    """
    frames = {
        "base": counted_of(counted, arrays),
        "of_tasks": _counted_of_tasks(counted, arrays, wanted),
    }
    tables = plans.run("tables", frames, lambda lazy: _tables(**lazy, resource=resource))
    return dict(zip(COUNTED, tables, strict=True))


def _tables(
    base: pl.LazyFrame, of_tasks: pl.LazyFrame, resource: pl.DataFrame
) -> list[pl.LazyFrame]:
    """Return the plans of the count tables, in their order."""
    site, status = "computingsite", "jobstatus"

    def summed(rows: pl.LazyFrame, *by: str, what: str = "njobs") -> pl.LazyFrame:
        return rows.group_by("world", *by).agg(pl.col(what).sum())

    names = resource.select(pl.col("workqueue_id").cast(pl.Int64), gshare="queue_name")
    mine = pl.col("workqueue_id").is_in(names["workqueue_id"].implode()).fill_null(value=False)
    own = base.filter(mine)
    rest = base.clear() if names.is_empty() else base.filter(~mine)
    by_share = summed(base, "gshare", site, "resource_type", status)
    by_queue = summed(own, "workqueue_id", site, "resource_type", status)
    by_queue = by_queue.join(names.lazy(), on="workqueue_id").select(
        "world", "gshare", site, "resource_type", status, "njobs"
    )
    moving = base.filter(pl.col(status) == STATUSES[MOVING_OUT]).drop_nulls("nucleus")
    running = base.filter(pl.col(status) == STATUSES[IN_SLOTS])
    share = pl.col("njobs") / pl.col("njobs").sum().over("world", site, "jeditaskid")
    return [
        summed(base, site, "gshare", status),
        pl.concat([by_share, by_queue]),
        summed(own, site, "workqueue_id", status),
        summed(rest, site, "gshare", status),
        summed(moving, site, "nucleus"),
        summed(running, site, status, what="ncores"),
        disk_traffic(base),
        summed(of_tasks, site, "jeditaskid", "resource_type")
        .filter(share >= SMALLEST_SHARE)
        .drop("njobs"),
    ]


def _counted_of_tasks(rows: pl.DataFrame, arrays: Arrays, wanted: IntArray) -> pl.DataFrame:
    """Count the jobs of the tasks wanted by world, queue, task and resource type; combinations may repeat."""
    asked = np.zeros(len(arrays.tasks) + 1, np.bool_)  # the last one stands for jobs of no task
    asked[wanted] = True
    places = np.flatnonzero(asked[arrays.task[rows["job"]]])
    job = rows["job"].to_numpy()[places]
    where = (rows[name].to_numpy()[places] for name in ("world", "queue"))
    kinds = _Kinds((*where, arrays.task[job], arrays.group[job]))
    counted = pl.DataFrame({"kind": kinds.numbers}).group_by("kind").len("njobs")
    world, queue, task, group = kinds.values(counted["kind"])
    return pl.DataFrame(
        {
            "world": world,
            "computingsite": arrays.queue_names[queue],
            "jeditaskid": pl.Series(arrays.tasks[task], dtype=pl.Int64),
            "resource_type": arrays.groups["resource_type"][group],
            "njobs": counted["njobs"].to_numpy().astype(np.int64),
        }
    )


# --- what the brokerage of users sees ---------------------------------------------------------------------------------


_STATUS = pl.col("jobstatus")
_CLASSED = ("jeditaskid", "username", "gshare", "tasktype", "prodsourcelabel")


@dataclass(frozen=True)
class Users:
    """What the settings and the static world say about users.

    Attributes:
        window: Jobs that ended so long ago count for their task (TW_DONE_JOB_STAT) [us].
        tasks: ``jeditaskid`` with what classes read of it, one row per task.
        units: ``jeditaskid, username, user`` (as registered), ``workinggroup``.
        site_class: ``snapshot`` (null: every one), ``computingsite, class``.
        shares: Tree of the global shares; empty: no usage of shares is known.
        n_jobs: (tasks,) jobs that each task has in all.
    """

    config: Config
    window: int
    tasks: pl.DataFrame
    units: pl.DataFrame
    site_class: pl.DataFrame
    shares: pl.DataFrame
    n_jobs: IntArray

    @classmethod
    def of(cls, world: World, config: Config) -> Users:
        """Look up once what does not change."""
        rows = world.tables["tasks"].unique("jeditaskid", keep="last", maintain_order=True)
        wanted = {*_CLASSED, "origusername", "workinggroup"}
        missing = [
            pl.lit("anal" if name == "tasktype" else None, pl.String).alias(name)
            for name in sorted(wanted - set(rows.columns))
        ]
        tasks = rows.with_columns(missing)
        none = pl.DataFrame(
            schema={"snapshot": pl.Int64, "computingsite": pl.String, "class": pl.Int64}
        )
        rated = world.tables.get("site_class", none)
        if "snapshot" not in rated.columns:
            rated = rated.with_columns(snapshot=pl.lit(None, pl.Int64))
        arrays = world.arrays
        known = arrays.task[arrays.task >= 0]
        return cls(
            config,
            round(value_at(config, "TW_DONE_JOB_STAT", place_of) * HOUR_S * SECOND_US),
            tasks.select(_CLASSED),
            tasks.select(
                *("jeditaskid", "username", "workinggroup"),
                user=pl.coalesce("origusername", "username"),
            ),
            rated,
            world.shares,
            np.bincount(known, minlength=len(arrays.tasks)),
        )

    def tables(
        self,
        loop: Loop,
        rows: pl.DataFrame,
        worlds: IntArray,
        wanted: IntArray,
        now: int,
        snapshot: int,
    ) -> dict[str, pl.DataFrame]:
        """Make the count tables of the brokerage of users, with ``world``, for the tasks ``wanted``.

        Files of a task's input count as its jobs where progress is asked for; queues of all types count for the usage of users;
        a killed job counts as failed.

        Source: analysis-jobs.md 1; classes.md 4, 5, 7.
        """
        base = counted_of(rows, loop.arrays)
        tasks = pl.DataFrame({"jeditaskid": loop.arrays.tasks[wanted]})
        asked = np.isin(loop.arrays.task, wanted)
        over = loop.ended(worlds.tolist(), asked, 0)
        over = over.with_columns(jeditaskid=loop.arrays.tasks[loop.arrays.task[over["job"]]])
        usage = self._usage(base, snapshot)
        summed = base.group_by("world", "computingsite", "gshare", "resource_type", "jobstatus")
        users = base.filter(
            (pl.col("prodsourcelabel") == LABEL) & pl.col("produsername").is_not_null()
        )
        names = ["world", "computingsite", "gshare", "produsername"]
        of_users = users.group_by(names).agg(
            nqueue=_sum("njobs", QUEUED), nrunning=_sum("njobs", ("running",))
        )
        return {
            "job_stats": summed.agg(pl.col("njobs").sum()),
            "diskio_usage": disk_traffic(base.lazy()).collect(),
            "user_job_stats": of_users,
            "user_totals": self._totals(users, tasks, worlds),
            "to_run_rate": _rate(loop, worlds, now),
            "failure_counts": over.filter(pl.col("end") > now - self.window)
            .group_by("world", "jeditaskid", "computingsite", "jobstatus")
            .agg(njobs=pl.len().cast(pl.Int64)),
            "sites_used": _used(loop, over, rows, wanted),
            "user_eval": self._left(usage),
            "task_class": self._classes(loop, worlds, usage, tasks, over, now),
            "gshare_usage": self._shares(base, worlds),
        }

    def _usage(self, base: pl.DataFrame, snapshot: int) -> pl.DataFrame:
        """Return what users occupy in every world (``snapshot`` is the world)."""
        here = pl.col("snapshot").is_null() | (pl.col("snapshot") == snapshot)
        rated = self.site_class.filter(here).drop("snapshot")
        classes = rated.with_columns(resource_type=pl.lit(GRID))
        mine = base.filter(pl.col("prodsourcelabel") == LABEL)
        slots = mine.group_by(
            "computingsite", "gshare", "produsername", snapshot="world"
        ).agg(
            nqueue=_sum("njobs", QUEUED),
            nrunning=_sum("njobs", ("running",)),
            slotsqueue=_sum("ncores", QUEUED),
            slotsrunning=_sum("ncores", ("running",)),
        )  # fmt: skip
        return user_usage(slots, classes, config=self.config).users

    @cached_property
    def _names(self) -> pl.DataFrame:
        """The names that jobs of each registered user have: ``user, produsername``."""
        return self.units.select("user", produsername="username").drop_nulls().unique()

    def _left(self, usage: pl.DataFrame) -> pl.DataFrame:
        """Return what is left to users; of several names of a user the last row, with the most left, counts."""
        columns = ["world", "user", "rem_slots_a", "rem_slots_b"]
        rows = usage.rename({"snapshot": "world"}).join(self._names, on="produsername")
        return rows.select(columns).sort(columns)

    def _totals(self, users: pl.DataFrame, tasks: pl.DataFrame, worlds: IntArray) -> pl.DataFrame:
        """Add up jobs and cores of the users, under all their names, and of the groups of tasks; 0 where there are none."""
        every = pl.DataFrame({"world": worlds}, schema={"world": pl.Int64})
        units = self.units.join(tasks, on="jeditaskid", how="semi")
        sums = {
            "nrunjobs": _sum("njobs", ("running",)),
            "nqueuedjobs": _sum("njobs", QUEUED),
            "nruncores": _sum("ncores", ("running",)),
            "nqueuedcores": _sum("ncores", QUEUED),
        }
        named = users.filter(pl.col("workinggroup").is_null()).join(self._names, on="produsername")
        alone = units.filter(pl.col("workinggroup").is_null())
        parts = []
        for column, jobs, wanted in (
            ("origusername", named.rename({"user": "origusername"}), alone["user"]),
            ("workinggroup", users, units["workinggroup"]),
        ):
            rows = every.join(wanted.drop_nulls().unique().to_frame(column), how="cross")
            counted = jobs.group_by("world", column).agg(**sums)
            parts.append(rows.join(counted, on=["world", column], how="left"))
        return pl.concat(parts, how="diagonal").select(
            "world", "origusername", "workinggroup", pl.col(*sums).fill_null(0)
        )

    def _classes(
        self, loop: Loop, worlds: IntArray, usage: pl.DataFrame, tasks: pl.DataFrame, over: pl.DataFrame, now: int,
    ) -> pl.DataFrame:  # fmt: skip
        at = pl.lit(now).cast(pl.Datetime("us"))
        instants = pl.DataFrame({"snapshot": worlds}, schema={"snapshot": pl.Int64}).with_columns(
            at=at
        )
        rows = self.tasks.join(tasks, on="jeditaskid", how="semi")
        whole = pl.DataFrame({"jeditaskid": loop.arrays.tasks, "nfiles": self.n_jobs}).with_columns(
            njobs="nfiles"
        )
        finished = over.filter(_STATUS == "finished").group_by("jeditaskid", snapshot="world")
        done = finished.agg(nfilesfinished=pl.len().cast(pl.Int64))
        progress = (
            instants.select("snapshot")
            .join(whole.join(tasks, on="jeditaskid"), how="cross")
            .join(done, on=["jeditaskid", "snapshot"], how="left")
        )
        active = rows.with_columns(status=pl.lit("running"), modificationtime=at)
        result = task_classes(active, progress, usage, at=instants, config=self.config).classes
        return result.drop_nulls("class").select("jeditaskid", "class", world="snapshot")

    def _shares(self, base: pl.DataFrame, worlds: IntArray) -> pl.DataFrame:
        """Hold what runs in each share against its target, cores in the place of HS06; also where nothing runs."""
        if self.shares.is_empty():
            kinds = dict.fromkeys(["usage_perc", "eqiv_usage_perc"], pl.Float64)
            return pl.DataFrame(schema={"world": pl.Int64, "gshare": pl.String, **kinds})
        stats = base.group_by("gshare", "jobstatus", snapshot="world").agg(
            hs=pl.col("ncores").sum().cast(pl.Float64)
        )
        nothing = pl.DataFrame(
            {"snapshot": worlds, "gshare": self.shares["name"][0]},
            schema={"snapshot": pl.Int64, "gshare": pl.String},
        ).with_columns(jobstatus=pl.lit("running"), hs=pl.lit(0.0))
        usage = share_usage(self.shares, pl.concat([stats, nothing], how="diagonal")).usage
        return usage.select("gshare", "usage_perc", "eqiv_usage_perc", world="snapshot")


def _sum(measure: str, statuses: tuple[str, ...]) -> pl.Expr:
    return pl.col(measure).filter(_STATUS.is_in(statuses)).sum().cast(pl.Int64)


def _used(loop: Loop, over: pl.DataFrame, rows: pl.DataFrame, wanted: IntArray) -> pl.DataFrame:
    """Return the queues at which tasks have or had jobs."""
    task = loop.arrays.task[rows["job"]]
    live = rows.select(
        "world",
        jeditaskid=loop.arrays.tasks[task],
        computingsite=loop.arrays.queue_names.gather(rows["queue"]),
    ).filter(np.isin(task, wanted))
    return pl.concat([live, over.select(live.columns)]).unique()


def _rate(loop: Loop, worlds: IntArray, now: int) -> pl.DataFrame:
    """Return how many jobs per hour started at each queue: from six hours to five minutes ago."""
    first, last = now - RATE_WINDOW_S * SECOND_US, now - RATE_DELAY_S * SECOND_US
    parts = []
    for number in worlds.tolist():
        starts, queues = loop.copies[number].recent_starts(first)
        seen = (starts >= first) & (starts < last)
        n = np.bincount(queues[seen], minlength=len(loop.arrays.queue_names))
        rows = np.flatnonzero(n)
        parts.append(
            pl.DataFrame(
                {
                    "world": np.full(len(rows), number),
                    "computingsite": loop.arrays.queue_names.gather(rows),
                    "jobs_per_hour": n[rows] / ((RATE_WINDOW_S - RATE_DELAY_S) / HOUR_S),
                }
            )
        )
    return pl.concat(parts)
