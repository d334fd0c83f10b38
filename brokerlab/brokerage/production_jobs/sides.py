"""Facts by task and queue together, each a narrow table that one whole-number key joins to the pairs."""

from __future__ import annotations

import polars as pl

from brokerlab.brokerage.inputs.data import input_at_queues
from brokerlab.brokerage.inputs.endpoints import complete_here, endpoint_states
from brokerlab.brokerage.inputs.slots import slot_counts
from brokerlab.brokerage.production_jobs import counts
from brokerlab.brokerage.production_jobs.checks_queue import REJECTED, UNRESOLVED
from brokerlab.brokerage.production_jobs.ids import POLICY, SOFTWARE, Ids
from brokerlab.brokerage.production_jobs.nucleus import link_side, unwritable
from brokerlab.brokerage.production_jobs.pairs import Side
from brokerlab.brokerage.rules import ProductionRules
from brokerlab.gdpconfig import Config
from brokerlab.matching.rules import MatchingRules
from brokerlab.matching.software_pairs import software_pairs
from brokerlab.matching.zero_share import TASK_COLUMNS, decide_pairs

Tables = dict[str, pl.DataFrame]
KEYS = ["snapshot", "parent"]
RT = ["x_rt_known", "x_rt_running", "x_rt_queued", "x_rt_assigned"]
"""Jobs of the task's resource types at a parent: whether any are counted, and how many."""


def build(
    tasks: pl.DataFrame, queues: pl.DataFrame, state: Tables, links: pl.DataFrame,
    complete: pl.DataFrame, ids: Ids,
    *, rules: ProductionRules, matching: MatchingRules, config: Config,
) -> tuple[Side, ...]:  # fmt: skip
    """Return every side but that of the nucleus.

    Args:
        tasks: Facts of tasks with their numbers.
        queues: Facts of queues with their numbers.
        state: The input tables, state tables for every snapshot.
        links: Known links, see :func:`brokerlab.brokerage.network_weight.links`.
        complete: ``jeditaskid, snapshot, ddm_endpoint_name``: where the whole input is.
        ids: The numbers.
        rules: Rule set.
        matching: Rule set of the text rules.
        config: The configuration.
    """
    return (
        _state(tasks, state, ids, rules),
        policies(tasks, queues, matching),
        _software(tasks, queues, state, matching),
        _complete(tasks, state, complete, ids),
        link_side(tasks, links, ids, rules=rules, config=config),
        slots(tasks, state, ids),
        _locks(tasks, queues, state),
        _counted(tasks, state, ids),
        *_by_resource_type(tasks, state, ids),
        inputs(tasks, state, ids),
    )


def keyed(rows: pl.DataFrame, ids: Ids) -> pl.DataFrame:
    """Replace the name of the parent by its number; rows of strangers are left out."""
    return rows.join(ids.parents, on="parent").drop("parent")


def _state(tasks: pl.DataFrame, state: Tables, ids: Ids, rules: ProductionRules) -> Side:
    """Return what is true of a parent at an instant, whatever the task."""
    storage = endpoint_states(state["queue_endpoints"], state["storage_endpoints"], rules=rules)
    if "snapshot" not in storage.columns:
        storage = tasks.select("snapshot").unique().join(storage, how="cross")
    activity = (
        state["site_activity"]
        .group_by("snapshot", parent="computingsite")
        .agg(
            s_pilots=pl.col("getjob").fill_null(0).sum() + pl.col("updatejob").fill_null(0).sum(),
            s_laststart_s=pl.col("laststart").max().dt.epoch("s"),
        )
    )
    lost = unwritable(state, rules=rules)
    moving = (
        state["transferring_by_nucleus"]
        .join(lost, on=["snapshot", "nucleus"])
        .group_by("snapshot", parent="computingsite")
        .agg(s_transferring_unwritable=pl.col("njobs").sum())
    )
    cores = (
        state["core_stats"]
        .group_by("snapshot", parent="computingsite")
        .agg(
            pl.col("ncores").filter(pl.col("jobstatus") == status).last().alias(f"s_{status}_cores")
            for status in ("running", "starting")
        )
    )
    diskio = (
        state["diskio_usage"]
        .group_by("snapshot", parent="computingsite")
        .agg(s_diskio=pl.col("diskio_per_core").last())
    )
    workers = state["worker_stats"].filter(pl.col("status").is_in(["running", "submitted"]))
    pilots = workers.group_by("snapshot", parent="panda_queue").agg(
        s_workers=pl.col("n_workers").fill_null(0).sum()
    )
    live = (
        state["live"].group_by("snapshot", parent="panda_queue").agg(s_live=pl.col("njobs").sum())
    )
    rows = tasks.select("snapshot", "t_state").unique().join(ids.parents, how="cross")
    parts = (
        storage.select(
            "snapshot", parent="panda_queue", s_space="space_usable", s_read_lan="read_lan_up",
            s_write_lan="write_lan_up", s_write_wan="receive_wan_up", s_read_wan="send_wan_up",
            s_input_disk="has_input_datadisk", s_output_disk="has_output_datadisk",
        ),
        counts.by_queue(state["job_stats"]), activity, moving, cores, diskio, pilots, live,
    )  # fmt: skip
    for part in parts:
        rows = rows.join(part, on=KEYS, how="left")
    missing = {
        **{f"s_{status}": 0 for status in ("running", "activated", "starting", "transferring")},
        **dict.fromkeys(("s_pilots", "s_transferring_unwritable", "s_workers", "s_live"), 0),
        **dict.fromkeys(("s_running_cores", "s_starting_cores"), 0),
        **dict.fromkeys(("s_read_lan", "s_write_lan", "s_write_wan", "s_read_wan"), False),
        **dict.fromkeys(("s_input_disk", "s_output_disk"), False),
        "s_diskio": 0.0,
        "s_space": None,
        "s_laststart_s": None,
    }
    rows = rows.drop("snapshot", "parent").with_columns(
        pl.col(name).fill_null(value) for name, value in missing.items() if value is not None
    )
    return Side("t_state", "p_id", rows, missing)


def policies(tasks: pl.DataFrame, queues: pl.DataFrame, matching: MatchingRules) -> Side:
    """Return the pairs of (kind of task, policy) that are a zero share."""
    kinds = tasks.select(*POLICY, "t_policy").unique().sort("t_policy")
    policies = queues.select("q_fairsharepolicy", "q_policy").unique().sort("q_policy")
    decided = decide_pairs(
        policies["q_fairsharepolicy"].to_list(),
        kinds.rename(dict(zip(POLICY, TASK_COLUMNS, strict=True))).drop("t_policy"),
        rules=matching,
    )
    number = pl.int_range(pl.len(), dtype=pl.Int64)
    rows = decided.select(
        q_policy=number // max(kinds.height, 1), t_policy=number % max(kinds.height, 1),
        x_zero_share="zero_share",
    )  # fmt: skip
    return Side("t_policy", "q_policy", rows.filter("x_zero_share"), {"x_zero_share": False})


def _software(
    tasks: pl.DataFrame, queues: pl.DataFrame, state: Tables, matching: MatchingRules
) -> Side:
    """Return what (request, parent) pairs are refused, and the preference of the others."""
    wanted = tasks.select(*SOFTWARE, "t_request").unique().sort("t_request")
    names = {column: column.removeprefix("t_") for column in SOFTWARE}
    requests = wanted.filter(pl.col("t_transhome").is_not_null()).rename(names)
    published = (state["sw_tags"], state["worker_node_gpu"], state["worker_node_cpu_level"])
    offers = queues.select("q_offer", panda_queue="parent", releases="p_releases").unique("q_offer")
    # one round, unless the releases of a queue change from instant to instant
    rounds = offers.sort("q_offer").with_columns(nth=pl.cum_count("q_offer").over("panda_queue"))
    decided = [
        software_pairs(requests, some, *published, rules=matching).join(some, on="panda_queue")
        for some in rounds.partition_by("nth", maintain_order=True) or [rounds]
    ]
    rows = pl.concat(decided).join(requests, on=list(names.values()), nulls_equal=True).select(
        "t_request",
        "q_offer",
        x_software=pl.when("accept").then(0)
        .when(pl.col("reason") == "platform_unresolved").then(UNRESOLVED)
        .otherwise(REJECTED).cast(pl.Int64),
        x_software_reason="reason",
        x_platform="platform",
        x_preference=pl.col("preference_weight").fill_null(1.0),
    )  # fmt: skip
    missing = {"x_software": 0, "x_preference": 1.0, "x_software_reason": None, "x_platform": None}
    return Side("t_request", "q_offer", rows, missing)


def _complete(tasks: pl.DataFrame, state: Tables, complete: pl.DataFrame, ids: Ids) -> Side:
    """Return the queues that hold the whole input of a task."""
    here = complete_here(complete, state["queue_endpoints"], state["storage_endpoints"])
    keys = [name for name in ("jeditaskid", "snapshot") if name in here.columns]
    rows = here.rename({"panda_queue": "parent"}).join(tasks.select("t", *keys), on=keys)
    kept = keyed(rows, ids).select("t", "p_id", x_complete=pl.lit(value=True))
    return Side("t", "p_id", kept, {"x_complete": False})


def slots(tasks: pl.DataFrame, state: Tables, ids: Ids) -> Side:
    """Return the slots set for the task's share and resource type."""
    keys = tasks.select(
        "t_slots", "snapshot", tag="t_queue_name", resource_type="t_resource_type"
    ).unique()
    places = state["slots"].select("panda_queue").unique()
    found = slot_counts(state["slots"], keys.join(places, how="cross"))
    on = [name for name in ("snapshot", "tag", "resource_type") if name in found.columns]
    rows = (
        keys.join(found.drop_nulls("numslots"), on=on, nulls_equal=True)
        .select("t_slots", parent="panda_queue", x_numslots="numslots", x_has_slots=pl.lit(value=True))
    )  # fmt: skip
    return Side("t_slots", "p_id", keyed(rows, ids), {"x_has_slots": False, "x_numslots": None})


def of_tasks(rows: pl.DataFrame, tasks: pl.DataFrame, name: str) -> pl.DataFrame:
    """Return rows about tasks and instants with ``t``; null task or instant means every one."""
    found = []
    for by_task in (True, False):
        for by_instant in (True, False):
            part = rows.filter(
                pl.col("jeditaskid").is_not_null() == by_task,
                pl.col("snapshot").is_not_null() == by_instant,
            )
            keys = ["jeditaskid"] * by_task + ["snapshot"] * by_instant
            part = part.select(
                *keys, *(c for c in rows.columns if c not in ("jeditaskid", "snapshot"))
            )
            who = tasks.select("t", *keys)
            found.append(
                who.join(part, on=keys).drop(keys) if keys else who.join(part, how="cross")
            )
    return pl.concat(found).rename({name: "parent"})


def _locks(tasks: pl.DataFrame, queues: pl.DataFrame, state: Tables) -> Side:
    """Return the queues locked for a task, by their own names: a parent's lock does not hold its pseudo-queues."""
    rows = of_tasks(state["locks"], tasks, "panda_queue").unique()
    kept = rows.join(queues.select("q", parent="panda_queue"), on="parent")
    return Side("t", "q", kept.select("t", "q", x_locked=pl.lit(value=True)), {"x_locked": False})


def _counted(tasks: pl.DataFrame, state: Tables, ids: Ids) -> Side:
    """Return the jobs that a task is counted with.

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
    rows = keyed(counts.by_tag(state).join(wanted, on=["snapshot", "tag"]), ids).select(
        "t_counted",
        q_counted=2 * pl.col("p_id") + pl.col("eshigh"),
        **{f"x_{status}": pl.col(status) for status in counts.COUNTED},
    )
    return Side("t_counted", "q_counted", rows, {f"x_{status}": 0 for status in counts.COUNTED})


def _by_resource_type(tasks: pl.DataFrame, state: Tables, ids: Ids) -> tuple[Side, Side]:
    """Return the jobs of the task's resource types at a parent (6.4): by its own type, and by the listed types."""
    stats = counts.by_resource_type(state)
    own = tasks.select(
        "t_slots", "snapshot", tag="t_queue_name", resource_type="t_resource_type"
    ).unique()
    by_type = _rt_rows(stats, own, ["t_slots", "parent"]).rename(
        {name: name.replace("x_rt", "x_rt_own") for name in RT}
    )
    listed = of_tasks(state["task_resource_types"], tasks, "computingsite").unique()
    several = listed.join(
        tasks.select("t", "snapshot", tag="t_queue_name"), on="t", maintain_order="left"
    )
    by_list = _rt_rows(stats, several, ["t", "parent"])
    places = listed.select("t", "parent").unique()
    by_list = places.join(by_list, on=["t", "parent"], how="left").with_columns(
        pl.col("x_rt_known").fill_null(value=False),
        pl.col(RT[1:]).fill_null(0),
        x_rt_listed=pl.lit(value=True),
    )
    zero = {RT[0]: False, **dict.fromkeys(RT[1:], 0)}
    zero_own = {name.replace("x_rt", "x_rt_own"): value for name, value in zero.items()}
    return (
        Side("t_slots", "p_id", keyed(by_type, ids), zero_own),
        Side("t", "p_id", keyed(by_list, ids), {**zero, "x_rt_listed": False}),
    )


def _rt_rows(stats: pl.DataFrame, wanted: pl.DataFrame, keys: list[str]) -> pl.DataFrame:
    """Sum the jobs of the resource types wanted; rows without share hold for every share."""
    on = [name for name in ("snapshot", "parent", "resource_type") if name in wanted.columns]
    parts = [
        wanted.join(stats.drop_nulls("gshare"), left_on=[*on, "tag"], right_on=[*on, "gshare"]),
        wanted.join(stats.filter(pl.col("gshare").is_null()).drop("gshare"), on=on),
    ]
    queued = pl.sum_horizontal("defined", "activated", "starting")
    return (
        pl.concat(parts, how="diagonal")
        .group_by(keys)
        .agg(
            x_rt_known=pl.lit(value=True),
            x_rt_running=pl.col("running").sum(),
            x_rt_queued=queued.sum(),
            x_rt_assigned=pl.col("assigned").sum(),
        )
    )


def inputs(tasks: pl.DataFrame, state: Tables, ids: Ids) -> Side:
    """Return how much of a task's input a parent has."""
    here = input_at_queues(
        tasks.select("jeditaskid").unique(),
        state["datasets"],
        state["files"],
        state["file_locations"],
    )
    rows = here.join(tasks.select("jeditaskid", "t"), on="jeditaskid").select(
        "t", parent="panda_queue", x_avail="avail", x_navail="navail",
        x_avail_tape="avail_t", x_navail_tape="navail_t",
    )  # fmt: skip
    missing = dict.fromkeys(("x_avail", "x_navail", "x_avail_tape", "x_navail_tape"), 0)
    return Side("t", "p_id", keyed(rows, ids), missing)
