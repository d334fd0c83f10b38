"""Facts of pairs that change from cycle to cycle: made from counts of jobs, pilots and workers, from locks and traffic.

Everything is lazy until all of it is collected at once: these are many small steps.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from brokerlab.brokerage.engine.pairs import AS_WRITTEN, Side
from brokerlab.brokerage.production_jobs import counts
from brokerlab.brokerage.production_jobs.ids import Ids
from brokerlab.brokerage.production_jobs.sides import of_tasks
from brokerlab.brokerage.production_jobs.task_facts import EVERY_JOB
from brokerlab.brokerage.rules import ProductionRules

Tables = Mapping[str, pl.LazyFrame]

UNLOCKED = {"x_locked": False}
UNCOUNTED = {f"x_{status}": 0 for status in counts.COUNTED}
RT = ["x_rt_known", "x_rt_running", "x_rt_queued", "x_rt_assigned"]
"""Jobs of the task's resource types at a parent: whether any are counted, and how many."""
NONE_OF_TYPE = {RT[0]: False, **dict.fromkeys(RT[1:], 0)}
NONE_OF_OWN = {name.replace("x_rt", "x_rt_own"): value for name, value in NONE_OF_TYPE.items()}
NONE_LISTED = {**NONE_OF_TYPE, "x_rt_listed": False}
COUNT_TABLES = ("job_stats", "job_stats_workqueue", "job_stats_gshare_only")
RT_TABLES = ("job_stats_rt", "task_resource_types")


@dataclass(frozen=True)
class LazySide:
    """A :class:`.pairs.Side` whose rows are not collected yet."""

    task_key: str
    queue_key: str
    rows: pl.LazyFrame
    missing: dict[str, Any]


def collected(sides: Sequence[LazySide], frames: Sequence[pl.DataFrame]) -> tuple[Side, ...]:
    """Return the sides with their rows."""
    return tuple(
        Side(side.task_key, side.queue_key, rows, side.missing)
        for side, rows in zip(sides, frames, strict=True)
    )


def run_all(sides: Sequence[LazySide]) -> tuple[Side, ...]:
    """Collect the rows of all sides at once."""
    plans = [side.rows for side in sides]
    frames = pl.collect_all(plans, engine="in-memory", optimizations=AS_WRITTEN)
    return collected(sides, frames)


def changing(
    tasks: pl.LazyFrame, queues: pl.LazyFrame, state: Tables, ids: Ids, lost: pl.LazyFrame,
    *, rules: ProductionRules, tables: Collection[str] | None = None,
) -> tuple[LazySide, ...]:  # fmt: skip
    """Return the sides of what changes from cycle to cycle; see :func:`run_all`.

    Args:
        tasks: Facts of tasks with their numbers.
        queues: Facts of queues with their numbers.
        state: The input tables, state tables for every snapshot.
        ids: The numbers.
        lost: ``snapshot, nucleus`` of nuclei that cannot be written, see :func:`.nucleus.unwritable`.
        rules: Switch ``counted_jobs``.
        tables: Only what is made from these tables; null: all of :data:`TABLES`.
    """
    wanted = set(TABLES if tables is None else tables)
    sides: list[LazySide] = []
    if wanted & PARTS.keys():
        sides.append(_state(tasks, state, ids, lost, sorted(wanted & PARTS.keys())))
    if wanted & {"locks"}:
        sides.append(_locks(tasks, queues, state))
    if wanted & set(COUNT_TABLES):
        sides.append(_counted(tasks, state, ids, rules))
    if wanted & set(RT_TABLES):
        sides += _by_resource_type(tasks, state, ids)
    return tuple(sides)


def keyed(rows: pl.LazyFrame, ids: Ids) -> pl.LazyFrame:
    """Replace the name of the parent by its number; rows of strangers are left out."""
    return rows.join(ids.parents.lazy(), on="parent").drop("parent")


def _activity(state: Tables, lost: pl.LazyFrame) -> pl.LazyFrame:  # noqa: ARG001 - one of PARTS
    return (
        state["site_activity"]
        .group_by("snapshot", parent="computingsite")
        .agg(
            s_pilots=pl.col("getjob").fill_null(0).sum() + pl.col("updatejob").fill_null(0).sum(),
            s_laststart_s=pl.col("laststart").max().dt.epoch("s"),
        )
    )


def _jobs(state: Tables, lost: pl.LazyFrame) -> pl.LazyFrame:  # noqa: ARG001
    return counts.by_queue(state["job_stats"])


def _moving(state: Tables, lost: pl.LazyFrame) -> pl.LazyFrame:
    return (
        state["transferring_by_nucleus"]
        .join(lost, on=["snapshot", "nucleus"])
        .group_by("snapshot", parent="computingsite")
        .agg(s_transferring_unwritable=pl.col("njobs").sum())
    )


def _cores(state: Tables, lost: pl.LazyFrame) -> pl.LazyFrame:  # noqa: ARG001
    statuses = ("running", "starting")
    return (
        state["core_stats"]
        .group_by("snapshot", parent="computingsite")
        .agg(
            pl.col("ncores").filter(pl.col("jobstatus") == status).last().alias(f"s_{status}_cores")
            for status in statuses
        )
    )


def _diskio(state: Tables, lost: pl.LazyFrame) -> pl.LazyFrame:  # noqa: ARG001
    rows = state["diskio_usage"].group_by("snapshot", parent="computingsite")
    return rows.agg(s_diskio=pl.col("diskio_per_core").last())


def _workers(state: Tables, lost: pl.LazyFrame) -> pl.LazyFrame:  # noqa: ARG001
    workers = state["worker_stats"].filter(pl.col("status").is_in(["running", "submitted"]))
    return workers.group_by("snapshot", parent="panda_queue").agg(
        s_workers=pl.col("n_workers").fill_null(0).sum()
    )


def _live(state: Tables, lost: pl.LazyFrame) -> pl.LazyFrame:  # noqa: ARG001
    rows = state["live"].group_by("snapshot", parent="panda_queue")
    return rows.agg(s_live=pl.col("njobs").sum())


Part = Callable[[Tables, pl.LazyFrame], pl.LazyFrame]

PARTS: dict[str, tuple[Part, dict[str, Any]]] = {
    "job_stats": (
        _jobs,
        {f"s_{status}": 0 for status in ("running", "activated", "starting", "transferring")},
    ),
    "site_activity": (_activity, {"s_pilots": 0, "s_laststart_s": None}),
    "transferring_by_nucleus": (_moving, {"s_transferring_unwritable": 0}),
    "core_stats": (_cores, {"s_running_cores": 0, "s_starting_cores": 0}),
    "diskio_usage": (_diskio, {"s_diskio": 0.0}),
    "worker_stats": (_workers, {"s_workers": 0}),
    "live": (_live, {"s_live": 0}),
}
"""Table -> what it tells of a parent at an instant, whatever the task, and what holds without a row."""
TABLES = (*PARTS, "locks", *COUNT_TABLES[1:], *RT_TABLES)
"""Every table that these facts are made from."""


def facts_of(tables: Collection[str]) -> set[str]:
    """Return the names of the facts that are made from some of the tables."""
    found = {name for table in PARTS.keys() & set(tables) for name in PARTS[table][1]}
    groups = (
        (("locks",), (UNLOCKED,)),
        (COUNT_TABLES, (UNCOUNTED,)),
        (RT_TABLES, (NONE_OF_OWN, NONE_LISTED)),
    )
    for names, missing in groups:
        if set(names) & set(tables):
            found |= {name for values in missing for name in values}
    return found


def _state(
    tasks: pl.LazyFrame, state: Tables, ids: Ids, lost: pl.LazyFrame, names: Collection[str]
) -> LazySide:
    """Return what is true of a parent at an instant, whatever the task."""
    missing: dict[str, Any] = {}
    for name in names:
        missing |= PARTS[name][1]
    parts = [PARTS[name][0](state, lost) for name in names]
    return of_parents(parts, tasks, ids, missing)


def of_parents(
    parts: Sequence[pl.LazyFrame], tasks: pl.LazyFrame, ids: Ids, missing: dict[str, Any]
) -> LazySide:
    """Return the side of tables of (snapshot, parent)."""
    states = tasks.select("snapshot", "t_state").unique()
    rows = keyed(counts.by_parent(parts).join(states, on="snapshot"), ids)
    facts = [
        pl.col(name) if value is None else pl.col(name).fill_null(value)
        for name, value in missing.items()
    ]
    return LazySide("t_state", "p_id", rows.select("t_state", "p_id", *facts), missing)


def _locks(tasks: pl.LazyFrame, queues: pl.LazyFrame, state: Tables) -> LazySide:
    """Return the queues locked for a task, by their own names: a parent's lock does not hold its pseudo-queues."""
    rows = of_tasks(state["locks"], tasks, "panda_queue").unique()
    kept = rows.join(queues.select("q", parent="panda_queue"), on="parent")
    locked = kept.select("t", "q", x_locked=pl.lit(value=True))
    return LazySide("t", "q", locked, UNLOCKED)


def _counted(tasks: pl.LazyFrame, state: Tables, ids: Ids, rules: ProductionRules) -> LazySide:
    """Return the jobs that a task is counted with (switch ``counted_jobs``).

    Event service of a resource work queue is counted by share at queues of jobseed ``eshigh`` if it is urgent.
    """
    kinds = tasks.select(
        "snapshot", "t_counted", "t_tag", "t_gshare", "t_counts_share_only"
    ).unique("t_counted")
    only = pl.concat_str(pl.lit("share only:"), pl.col("t_gshare").fill_null(""))
    tags = (pl.col("t_tag"), pl.when("t_counts_share_only").then(only).otherwise("t_tag"))
    wanted = pl.concat(
        kinds.select("snapshot", "t_counted", tag=tag, eshigh=pl.lit(number, dtype=pl.Int64))
        for number, tag in enumerate(tags)
    )
    if rules.counted_jobs == "queue":
        jobs = counts.of_all(state["job_stats"], EVERY_JOB)
    else:
        jobs = counts.by_tag(state)
    found = jobs.join(wanted, on=["snapshot", "tag"])
    rows = keyed(found, ids).select(
        "t_counted",
        q_counted=2 * pl.col("p_id") + pl.col("eshigh"),
        **{f"x_{status}": pl.col(status) for status in counts.COUNTED},
    )
    return LazySide("t_counted", "q_counted", rows, UNCOUNTED)


def _by_resource_type(tasks: pl.LazyFrame, state: Tables, ids: Ids) -> tuple[LazySide, LazySide]:
    """Return the jobs of the task's resource types at a parent (6.4): by its own type, and by the listed types."""
    stats = counts.by_resource_type(state).cache()
    own = tasks.select(
        "t_slots", "snapshot", tag="t_queue_name", resource_type="t_resource_type"
    ).unique()
    by_type = _summed(_rt_rows(stats, own, ["snapshot", "resource_type"]), ["t_slots", "parent"])
    who = tasks.with_columns(tag="t_queue_name")
    listed = of_tasks(state["task_resource_types"], who, "computingsite", "snapshot", "tag")
    listed = listed.unique().cache()
    none = listed.select("t", "parent", known=pl.lit(value=False))
    several = [*_rt_rows(stats, listed, ["snapshot", "parent", "resource_type"]), none]
    by_list = _summed(several, ["t", "parent"]).with_columns(x_rt_listed=pl.lit(value=True))
    renamed = by_type.rename({name: name.replace("x_rt", "x_rt_own") for name in RT})
    return (
        LazySide("t_slots", "p_id", keyed(renamed, ids), NONE_OF_OWN),
        LazySide("t", "p_id", keyed(by_list, ids), NONE_LISTED),
    )


def _rt_rows(stats: pl.LazyFrame, wanted: pl.LazyFrame, on: list[str]) -> list[pl.LazyFrame]:
    """Return the jobs of the resource types wanted; rows without share hold for every share."""
    found = stats.with_columns(known=pl.lit(value=True))
    named = found.drop_nulls("gshare")
    common = found.filter(pl.col("gshare").is_null()).drop("gshare")
    return [
        wanted.join(named, left_on=[*on, "tag"], right_on=[*on, "gshare"]),
        wanted.join(common, on=on),
    ]


def _summed(parts: Sequence[pl.LazyFrame], keys: list[str]) -> pl.LazyFrame:
    """Add up rows of jobs."""
    queued = pl.sum_horizontal("defined", "activated", "starting")
    return (
        pl.concat(parts, how="diagonal")
        .group_by(keys)
        .agg(
            x_rt_known=pl.col("known").any(),
            x_rt_running=pl.col("running").sum(),
            x_rt_queued=queued.sum(),
            x_rt_assigned=pl.col("assigned").sum(),
        )
    )
