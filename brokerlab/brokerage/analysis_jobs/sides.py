"""Facts by user task and queue together, each a narrow table that one whole-number key joins to the pairs."""

from __future__ import annotations

import polars as pl

from brokerlab.brokerage.analysis_jobs.lists import listed_side
from brokerlab.brokerage.analysis_jobs.rules import AnalysisRules
from brokerlab.brokerage.analysis_jobs.software import gpu_side, software_side
from brokerlab.brokerage.inputs.data import WITH_TAPE
from brokerlab.brokerage.inputs.frames import for_tasks
from brokerlab.brokerage.production_jobs.counts import spread, wide
from brokerlab.brokerage.production_jobs.ids import Ids, numbered
from brokerlab.brokerage.production_jobs.pairs import Side
from brokerlab.brokerage.production_jobs.sides import inputs, keyed, of_tasks, policies, slots
from brokerlab.matching.rules import MatchingRules

Tables = dict[str, pl.DataFrame]
QUEUED = ("defined", "assigned", "activated", "starting")
"""Statuses of ``nq``."""
POLICY = ("t_type", "t_group", "t_gshare", "t_prio", "t_merging")
SOFTWARE = ("t_architecture", "t_transhome", "t_container_name", "t_transuses")
TASK_KEYS = {
    "t_state": ("snapshot",),
    "t_policy": POLICY,
    "t_request": SOFTWARE,
    "t_platform": ("t_architecture",),
    "t_share": ("snapshot", "t_gshare"),
    "t_types": ("snapshot", "t_gshare", "t_resource_type"),
    "t_slots": ("snapshot", "t_gshare", "t_resource_type"),
    "t_mine": ("snapshot", "t_gshare", "t_user"),
    "t_lists": ("t_list_key",),
}
"""Numbers of tasks, and what they number."""


def with_ids(tasks: pl.DataFrame, queues: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame, Ids]:
    """Add the numbers to tasks and queues."""
    for name, columns in TASK_KEYS.items():
        found = numbered(tasks.select(columns), name)
        tasks = tasks.join(found, on=columns, how="left", nulls_equal=True)
    parents = numbered(queues.select("parent"), "p_id")
    queues = queues.join(parents, on="parent", how="left")
    for name, columns in (
        ("q_policy", ("q_fairsharepolicy",)),
        ("q_offer", ("parent", "p_releases")),
    ):
        found = numbered(queues.select(columns), name)
        queues = queues.join(found, on=columns, how="left", nulls_equal=True)
    return tasks.sort("t"), queues.sort("q"), Ids(parents, pl.DataFrame(), pl.DataFrame())


def build(
    tasks: pl.DataFrame, queues: pl.DataFrame, state: Tables, places: pl.DataFrame, ids: Ids,
    *, rules: AnalysisRules, matching: MatchingRules,
) -> tuple[Side, ...]:  # fmt: skip
    """Return every side but that of locality.

    Args:
        tasks: Facts of tasks with their numbers.
        queues: Facts of queues with their numbers.
        state: The input tables, state tables for every snapshot.
        places: Facts of endpoints, see :func:`~.endpoints.endpoint_facts`.
        ids: The numbers.
        rules: Rule set.
        matching: Rule set of the text rules.
    """
    return (
        _state(tasks, state, ids),
        _endpoints(tasks, places, ids),
        policies(tasks, queues, matching),
        software_side(tasks, queues, state, rules=rules, matching=matching),
        gpu_side(tasks, queues, state, matching=matching),
        listed_side(tasks, ids),
        _quota(tasks, state, places, ids),
        slots(tasks, state, ids),
        *_shares(tasks, state, ids),
        *_users(tasks, state, ids),
        _ended(tasks, state, ids),
        inputs(tasks, state | {"file_locations": _without_cache(state["file_locations"])}, ids),
        _files(tasks, state, ids),
    )


def _without_cache(places: pl.DataFrame) -> pl.DataFrame:
    """Return where files are, without caches: the data factor counts local disk (6.4)."""
    return places.filter(pl.col("kind") != "cache")


def _state(tasks: pl.DataFrame, state: Tables, ids: Ids) -> Side:
    """Return what is true of a parent at an instant, whatever the task."""
    key = ["snapshot", "parent"]
    activity = state["site_activity"].group_by("snapshot", parent="computingsite").agg(
        s_pilots=pl.col("getjob").fill_null(0).sum() + pl.col("updatejob").fill_null(0).sum()
    )  # fmt: skip
    seen = state["worker_stats"].filter(pl.col("status").is_in(["running", "submitted"]))
    workers = seen.group_by("snapshot", parent="panda_queue").agg(
        s_workers=pl.col("n_workers").fill_null(0).sum()
    )
    running = state["job_stats"].filter(pl.col("jobstatus") == "running")
    parts = (
        activity,
        workers,
        running.group_by("snapshot", parent="computingsite").agg(s_running=pl.col("njobs").sum()),
        _last(state["diskio_usage"], s_diskio="diskio_per_core"),
        _last(state["to_run_rate"], s_rate="jobs_per_hour"),
        _last(state["site_class"], s_class="class"),
    )
    rows = tasks.select("snapshot", "t_state").unique().join(ids.parents, how="cross")
    for part in parts:
        rows = rows.join(part, on=key, how="left")
    missing = {
        **dict.fromkeys(("s_pilots", "s_workers", "s_running", "s_class"), 0),
        **dict.fromkeys(("s_diskio", "s_rate"), 0.0),
    }
    rows = rows.select(
        "t_state", "p_id", *(pl.col(name).fill_null(v) for name, v in missing.items())
    )
    return Side("t_state", "p_id", rows, missing)


def _last(frame: pl.DataFrame, **columns: str) -> pl.DataFrame:
    """Return the last row of each queue at each instant."""
    found = frame.group_by("snapshot", parent="computingsite", maintain_order=True)
    return found.agg(**{name: pl.col(column).last() for name, column in columns.items()})


def _endpoints(tasks: pl.DataFrame, places: pl.DataFrame, ids: Ids) -> Side:
    """Return what holds of a parent's endpoints at an instant."""
    flags = (
        "e_output", "e_input", "e_same", "e_read_lan", "e_write_lan", "e_write_wan", "e_read_wan",
        "e_vp", "e_vp_default",
    )  # fmt: skip
    spaces = ("e_out_space", "e_in_space")
    rows = spread(places, tasks.select("snapshot").unique().sort("snapshot"))
    states = tasks.select("snapshot", "t_state").unique().sort("t_state")
    rows = states.join(rows.select("snapshot", "parent", *flags, *spaces), on="snapshot")
    return Side(
        "t_state",
        "p_id",
        keyed(rows.drop("snapshot"), ids),
        {**dict.fromkeys(flags, False), **dict.fromkeys(spaces)},
    )


def _quota(tasks: pl.DataFrame, state: Tables, places: pl.DataFrame, ids: Ids) -> Side:
    """Return the queues whose default output endpoint is over the local quota of the task's user or group."""
    over = state["quota"].select("snapshot", "username", name="endpoints_over_local_quota")
    over = over.explode("name").drop_nulls("name")
    who = tasks.select("t", "snapshot", "t_unit")
    found = pl.concat(
        [
            who.join(over, left_on=["snapshot", "t_unit"], right_on=["snapshot", "username"]).select("t", "name"),
            who.join(over.filter(pl.col("username").is_null()), on="snapshot").select("t", "name"),
        ]
    )  # fmt: skip
    defaults = places.select("parent", name="e_out_name").unique()
    rows = found.join(defaults, on="name").select("t", "parent")
    kept = keyed(rows.unique(), ids).with_columns(x_over_quota=pl.lit(value=True))
    return Side("t", "p_id", kept, {"x_over_quota": False})


def _shares(tasks: pl.DataFrame, state: Tables, ids: Ids) -> tuple[Side, Side]:
    """Return the jobs of the task's share at a parent, and those of its resource type too."""
    stats = state["job_stats"].rename({"computingsite": "parent", "gshare": "t_gshare"})
    found = []
    for number, prefix, more in (("t_share", "x_", []), ("t_types", "x_rt_", ["resource_type"])):
        renamed = {"resource_type": "t_resource_type"} if more else {}
        keys = ["snapshot", "parent", "t_gshare", *more]
        counts = wide(stats.lazy(), keys, ("running", *QUEUED)).rename(renamed).collect()
        on = list(TASK_KEYS[number])
        wanted = tasks.select(number, *on).unique()
        rows = wanted.join(counts, on=on, nulls_equal=True).select(
            number, "parent",
            **{
                f"{prefix}nr": pl.col("running"),
                f"{prefix}nq": pl.sum_horizontal(QUEUED),
                f"{prefix}starting": pl.col("starting"),
            },
        )  # fmt: skip
        missing = {f"{prefix}{name}": 0 for name in ("nr", "nq", "starting")}
        found.append(Side(number, "p_id", keyed(rows, ids), missing))
    return found[0], found[1]


def _users(tasks: pl.DataFrame, state: Tables, ids: Ids) -> tuple[Side, Side]:
    """Return the users of the task's share at a parent, and the jobs of the task's own user."""
    stats = state["user_job_stats"].select(
        "snapshot", "nqueue", "nrunning", parent="computingsite", t_gshare="gshare",
        t_user="produsername",
    )  # fmt: skip
    sums = stats.group_by("snapshot", "parent", "t_gshare").agg(
        x_users=pl.col("t_user").n_unique().cast(pl.Int64), x_users_running=pl.col("nrunning").sum()
    )
    mine = stats.group_by("snapshot", "parent", "t_gshare", "t_user").agg(
        u_queued=pl.col("nqueue").sum(), u_running=pl.col("nrunning").sum(), u_known=pl.lit(value=True)
    )  # fmt: skip
    found = []
    for number, rows in (("t_share", sums), ("t_mine", mine)):
        on = list(TASK_KEYS[number])
        facts = [name for name in rows.columns if name[:2] in ("x_", "u_")]
        wanted = tasks.select(number, *on).unique()
        kept = wanted.join(rows, on=on, nulls_equal=True).select(number, "parent", *facts)
        missing = {name: False if name == "u_known" else 0 for name in facts}
        found.append(Side(number, "p_id", keyed(kept, ids), missing))
    return found[0], found[1]


def _ended(tasks: pl.DataFrame, state: Tables, ids: Ids) -> Side:
    """Return the jobs of the task that ended lately at a parent, and whether the task used it."""
    rows = of_tasks(state["failure_counts"].lazy(), tasks.lazy(), "computingsite").collect()
    ended = rows.group_by("t", "parent").agg(
        pl.col("njobs").filter(pl.col("jobstatus") == status).sum().alias(f"x_{status}")
        for status in ("failed", "closed", "finished")
    )
    used = of_tasks(state["sites_used"].lazy(), tasks.lazy(), "computingsite").collect()
    used = used.select("t", "parent").unique()
    both = ended.join(
        used.with_columns(x_used=pl.lit(value=True)), on=["t", "parent"], how="full", coalesce=True
    )
    missing = {"x_failed": 0, "x_closed": 0, "x_finished": 0, "x_used": False}
    filled = both.with_columns(pl.col(name).fill_null(value) for name, value in missing.items())
    return Side("t", "p_id", keyed(filled, ids), missing)


def _files(tasks: pl.DataFrame, state: Tables, ids: Ids) -> Side:
    """Return where every dataset of which files are known has all of them: on disk, in cache or on tape (7)."""
    wanted = tasks.select("jeditaskid").unique()
    key = ["jeditaskid", "datasetname"]
    number = for_tasks(state["files"], wanted).group_by(key).agg(n=pl.col("lfn").n_unique())
    places = for_tasks(state["file_locations"], wanted)
    own = pl.col("kind").is_in(WITH_TAPE)  # what is read from elsewhere is not there
    whole = (
        places.group_by(*key, "panda_queue", "kind")
        .agg(here=pl.col("lfn").n_unique())
        .join(number, on=key)
        .group_by(*key, "panda_queue")
        .agg(whole=(own & (pl.col("here") >= pl.col("n"))).any())
        .group_by("jeditaskid", parent="panda_queue")
        .agg(x_whole=pl.col("whole").all())
    )
    rows = whole.join(tasks.select("jeditaskid", "t"), on="jeditaskid").drop("jeditaskid")
    return Side("t", "p_id", keyed(rows, ids), {"x_whole": False})
