"""Facts that the production job brokerage looks up in counts of jobs, pilots and workers, in locks and traffic.

They may change from cycle to cycle. Everything is lazy until all of it is collected at once: these are many small steps.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, TypeAlias

import polars as pl

from brokerlab.brokerage.engine.lookup import Known, Lookup
from brokerlab.brokerage.inputs.valid import KEY, at_every, valid_for
from brokerlab.brokerage.production_jobs.lookups import PARENT, SLOTS
from brokerlab.brokerage.production_jobs.task_facts import EVERY_JOB
from brokerlab.brokerage.rules import ProductionRules

COUNTED = ("running", "defined", "assigned", "activated", "starting")
"""Statuses of the weight and the caps."""
AT_QUEUE = ("running", "activated", "starting", "transferring")
"""Statuses that are counted over all shares."""
KEYS = ("snapshot", "parent")
COUNT_TABLES = ("job_stats", "job_stats_workqueue", "job_stats_gshare_only")
RT_TABLES = ("job_stats_rt", "task_resource_types")
TAG = ("snapshot", "t_tag", "t_gshare", "t_counts_share_only")
RT = {"known": False, "running": 0, "queued": 0, "assigned": 0}
"""Jobs of the task's resource types at a parent: whether any are counted, and how many."""


COLUMNS = {"t_gshare": "gshare", "t_resource_type": "resource_type", "t_user": "produsername"}
"""Column of tasks to that of a table of counts."""
Sums: TypeAlias = dict[str, tuple[Any, pl.Expr]]
"""Fact to its value where there is no row, and how it is summed up of the rows."""


def summed(
    table: str,
    facts: Sums,
    task: tuple[str, ...] = ("snapshot",),
    *,
    place: tuple[str, ...] = PARENT,
    queue: str = "computingsite",
) -> Lookup:
    """Return facts that are sums of a table of counts, by columns of tasks and, most often, the parent, named by ``queue``."""
    keys = {name: COLUMNS.get(name, name) for name in task} | dict.fromkeys(place, queue)
    sums = {name: sum_ for name, (_, sum_) in facts.items()}
    otherwise = {name: value for name, (value, _) in facts.items()}
    rows = partial(_sums, table, keys, sums)
    return Lookup(task=task, place=place, facts=otherwise, rows=rows, tables=(table,))


def _sums(
    table: str, keys: Mapping[str, str], sums: Mapping[str, pl.Expr], known: Known
) -> pl.LazyFrame:
    by = [pl.col(column).alias(name) for name, column in keys.items()]
    return known.tables[table].group_by(by).agg(**sums)


def jobs_in(*statuses: str) -> pl.Expr:
    """Return the number of jobs in some statuses."""
    # a sum over nulls is several times as fast as one over filtered rows
    meant = pl.any_horizontal(pl.col("jobstatus") == status for status in statuses)
    return pl.when(meant).then("njobs").sum()


PILOTS: Sums = {
    "s_pilots": (0, pl.col("getjob").fill_null(0).sum() + pl.col("updatejob").fill_null(0).sum())
}
"""Pilots that asked for a job or told of one."""
DISKIO = summed("diskio_usage", {"s_diskio": (0.0, pl.col("diskio_per_core").last())})
"""Disk traffic of a parent."""
_SEEN = pl.col("status").is_in(["running", "submitted"])
WORKERS = summed(
    "worker_stats", {"s_workers": (0, pl.when(_SEEN).then("n_workers").sum())}, queue="panda_queue"
)
"""Batch workers of a parent."""


def of_state(rules: ProductionRules) -> tuple[Lookup, ...]:
    """Return what changes from cycle to cycle."""
    counted = {f"x_{status}": 0 for status in COUNTED}
    own = {f"x_rt_own_{name}": value for name, value in RT.items()}
    listed = {f"x_rt_{name}": value for name, value in RT.items()}
    return (
        summed("job_stats", {f"s_{status}": (0, jobs_in(status)) for status in AT_QUEUE}),
        summed("site_activity", PILOTS | {"s_laststart_s": (None, pl.col("laststart").max().dt.epoch("s"))}),
        Lookup(
            task=("snapshot",), place=PARENT, facts={"s_transferring_unwritable": 0}, rows=_moving,
            tables=("transferring_by_nucleus",), made=("lost",),
        ),
        summed("core_stats", {f"s_{status}_cores": (0, _cores(status)) for status in ("running", "starting")}),
        DISKIO,
        WORKERS,
        summed("live", {"s_live": (0, pl.col("njobs").sum())}, queue="panda_queue"),
        Lookup(
            task=("t",), place=("panda_queue",), facts={"x_locked": False}, rows=_locks,
            tables=("locks",), reads=("jeditaskid", "snapshot"),
        ),
        Lookup(
            task=TAG, place=("parent", "q_eshigh"), facts=counted, tables=COUNT_TABLES,
            rows=_all_jobs if rules.counted_jobs == "queue" else _jobs_by_tag,
        ),
        Lookup(task=SLOTS, place=PARENT, facts=own, rows=_of_own_type, tables=RT_TABLES),
        Lookup(
            task=("t",), place=PARENT, facts=listed | {"x_rt_listed": False}, tables=RT_TABLES,
            rows=_of_listed_types, reads=("jeditaskid", "snapshot", "t_queue_name"),
        ),
    )  # fmt: skip


def at_instants(
    tables: Mapping[str, pl.DataFrame], state: Sequence[str], snapshots: pl.DataFrame
) -> dict[str, pl.DataFrame]:
    """Return the tables, those of a state, and ``queues`` with a history, with rows for every snapshot."""
    names = {*state, *(["queues"] if has_history(tables) else [])}
    return {
        name: at_every(frame, snapshots, name) if name in names else frame
        for name, frame in tables.items()
    }


def has_history(tables: Mapping[str, pl.DataFrame]) -> bool:
    """Tell whether queues change from instant to instant."""
    return bool(tables["queues"]["snapshot"].is_not_null().any())


def wide(frame: pl.LazyFrame, keys: Sequence[str], statuses: Sequence[str]) -> pl.LazyFrame:
    """Return one row per key with a column per status: sums of ``njobs``, 0 where there is none."""
    return frame.group_by(keys).agg(**{status: jobs_in(status) for status in statuses})


def _moving(known: Known) -> pl.LazyFrame:
    moving = known.tables["transferring_by_nucleus"]
    moving = moving.join(known.made["lost"].lazy(), on=["snapshot", "nucleus"])
    of = moving.group_by("snapshot", parent="computingsite")
    return of.agg(s_transferring_unwritable=pl.col("njobs").sum())


def _cores(status: str) -> pl.Expr:
    return pl.col("ncores").filter(pl.col("jobstatus") == status).last()


def _locks(known: Known) -> pl.LazyFrame:
    """Return the queues locked for a task, by their own names: a parent's lock does not hold its pseudo-queues."""
    rows = valid_for(known.tasks.select("t", *KEY), known.tables["locks"])
    return rows.select("t", "panda_queue").unique().with_columns(x_locked=pl.lit(value=True))


def _all_jobs(known: Known) -> pl.LazyFrame:
    stats = known.tables["job_stats"].rename({"computingsite": "parent"})
    return _counted(known, wide(stats, KEYS, COUNTED).with_columns(tag=pl.lit(EVERY_JOB)))


def _jobs_by_tag(known: Known) -> pl.LazyFrame:
    """Return jobs by ``share:<gshare>``, ``workqueue:<id>`` or, without those of resource work queues, ``share only:<gshare>``.

    Source: production-jobs.md 7.
    """
    share = pl.col("gshare").fill_null("")
    tags = {
        "job_stats": ("share:", share),
        "job_stats_workqueue": ("workqueue:", pl.col("workqueue_id").cast(pl.String)),
        "job_stats_gshare_only": ("share only:", share),
    }
    parts = []
    for name, (prefix, key) in tags.items():
        rows = known.tables[name].select(
            "snapshot", "jobstatus", "njobs", parent="computingsite", key=key
        )
        tag = pl.concat_str(pl.lit(prefix), "key")
        parts.append(wide(rows, [*KEYS, "key"], COUNTED).select(*KEYS, *COUNTED, tag=tag))
    return _counted(known, pl.concat(parts))


def _counted(known: Known, jobs: pl.LazyFrame) -> pl.LazyFrame:
    """Return the jobs that a task is counted with (switch ``counted_jobs``).

    Event service of a resource work queue is counted by share at queues of jobseed ``eshigh`` if it is urgent.
    """
    kinds = known.tasks.select(TAG).unique()
    only = pl.concat_str(pl.lit("share only:"), pl.col("t_gshare").fill_null(""))
    tags = (pl.col("t_tag"), pl.when("t_counts_share_only").then(only).otherwise("t_tag"))
    wanted = pl.concat(
        kinds.with_columns(tag=tag, q_eshigh=pl.lit(bool(number)))
        for number, tag in enumerate(tags)
    )
    found = wanted.join(jobs, on=["snapshot", "tag"])
    return found.rename({status: f"x_{status}" for status in COUNTED})


def _of_own_type(known: Known) -> pl.LazyFrame:
    names = {"tag": "t_queue_name", "resource_type": "t_resource_type"}
    own = known.tasks.select("snapshot", **names).unique()
    rows = _of_types(known, own, ["snapshot", "resource_type"])
    return _summed(rows, ["snapshot", *names, "parent"], "x_rt_own").rename(names)


def _of_listed_types(known: Known) -> pl.LazyFrame:
    types = known.tables["task_resource_types"]
    who = known.tasks.select("t", *KEY, tag="t_queue_name")
    listed = valid_for(who, types).rename({"computingsite": "parent"}).unique().cache()
    none = listed.select("t", "parent", known=pl.lit(value=False))
    several = [*_of_types(known, listed, ["snapshot", "parent", "resource_type"]), none]
    found = _summed(several, ["t", "parent"], "x_rt")
    return found.with_columns(x_rt_listed=pl.lit(value=True))


def _of_types(known: Known, wanted: pl.LazyFrame, on: list[str]) -> list[pl.LazyFrame]:
    """Return the jobs of the resource types wanted; rows without share hold for every share."""
    stats = known.tables["job_stats_rt"].rename({"computingsite": "parent"})
    found = wide(stats, [*KEYS, "gshare", "resource_type"], COUNTED)
    found = found.with_columns(known=pl.lit(value=True)).cache()
    named = found.drop_nulls("gshare")
    common = found.filter(pl.col("gshare").is_null()).drop("gshare")
    return [
        wanted.join(named, left_on=[*on, "tag"], right_on=[*on, "gshare"]),
        wanted.join(common, on=on),
    ]


def _summed(parts: Sequence[pl.LazyFrame], keys: list[str], prefix: str) -> pl.LazyFrame:
    sums = {
        "known": pl.col("known").any(),
        "running": pl.col("running").sum(),
        "queued": pl.sum_horizontal("defined", "activated", "starting").sum(),
        "assigned": pl.col("assigned").sum(),
    }
    together = pl.concat(parts, how="diagonal").group_by(keys)
    return together.agg(**{f"{prefix}_{name}": value for name, value in sums.items()})
