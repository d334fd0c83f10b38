"""Facts by task and queue together, each a narrow table that one whole-number key joins to the pairs."""

from __future__ import annotations

import polars as pl

from brokerlab.brokerage.engine.pairs import Side
from brokerlab.brokerage.inputs.data import input_at_queues
from brokerlab.brokerage.inputs.endpoints import complete_here, endpoint_states
from brokerlab.brokerage.inputs.slots import slot_counts
from brokerlab.brokerage.production_jobs.checks_queue import REJECTED, UNRESOLVED
from brokerlab.brokerage.production_jobs.ids import POLICY, SOFTWARE, Ids
from brokerlab.brokerage.rules import ProductionRules
from brokerlab.matching.rules import MatchingRules
from brokerlab.matching.software_pairs import software_pairs
from brokerlab.matching.zero_share import TASK_COLUMNS, decide_pairs

Tables = dict[str, pl.DataFrame]


def build(
    tasks: pl.DataFrame, queues: pl.DataFrame, state: Tables, ids: Ids,
    *, rules: ProductionRules, matching: MatchingRules,
) -> tuple[Side, ...]:  # fmt: skip
    """Return the sides of what stands for long, whatever the settings; see :mod:`.changing` for what changes from cycle to cycle.

    Args:
        tasks: Facts of tasks with their numbers.
        queues: Facts of queues with their numbers.
        state: The input tables, state tables for every snapshot.
        ids: The numbers.
        rules: Rule set.
        matching: Rule set of the text rules.
    """
    return (
        _storage(tasks, state, ids, rules),
        policies(tasks, queues, matching),
        _software(tasks, queues, state, matching),
        slots(tasks, state, ids),
        inputs(tasks, state, ids),
    )


def keyed(rows: pl.DataFrame, ids: Ids) -> pl.DataFrame:
    """Replace the name of the parent by its number; rows of strangers are left out."""
    return rows.join(ids.parents, on="parent").drop("parent")


def _storage(tasks: pl.DataFrame, state: Tables, ids: Ids, rules: ProductionRules) -> Side:
    """Return what is true of the storage of a parent at an instant."""
    storage = endpoint_states(state["queue_endpoints"], state["storage_endpoints"], rules=rules)
    states = tasks.select("snapshot", "t_state").unique()
    on = ["snapshot"] if "snapshot" in storage.columns else []
    rows = storage.join(states, on=on) if on else storage.join(states, how="cross")
    named = rows.select(
        "t_state", parent="panda_queue", s_space="space_usable", s_read_lan="read_lan_up",
        s_write_lan="write_lan_up", s_write_wan="receive_wan_up", s_read_wan="send_wan_up",
        s_input_disk="has_input_datadisk", s_output_disk="has_output_datadisk",
    )  # fmt: skip
    flags = ("s_read_lan", "s_write_lan", "s_write_wan", "s_read_wan")
    missing = {
        **dict.fromkeys(flags, not rules.datadisk_only),
        **dict.fromkeys(("s_input_disk", "s_output_disk"), False),
        "s_space": None,
    }
    return Side("t_state", "p_id", keyed(named, ids), missing)


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
    requests = wanted.rename(names)
    published = (state["sw_tags"], state.get("worker_node_gpu"), state["worker_node_cpu_level"])
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


def complete_side(tasks: pl.DataFrame, state: Tables, complete: pl.DataFrame, ids: Ids) -> Side:
    """Return the queues that hold the whole input of a task.

    Args:
        tasks: Facts of tasks with their numbers.
        state: ``queue_endpoints`` and ``storage_endpoints`` for every snapshot.
        complete: ``jeditaskid, snapshot, ddm_endpoint_name``: where the whole input is.
        ids: The numbers.
    """
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


def of_tasks(rows: pl.LazyFrame, tasks: pl.LazyFrame, name: str, *more: str) -> pl.LazyFrame:
    """Return rows about tasks and instants with ``t``; null task or instant means every one.

    Args:
        rows: ``jeditaskid, snapshot``, a queue, and more.
        tasks: Facts of tasks.
        name: Column of the queue; it becomes ``parent``.
        more: Facts of tasks to be added.
    """
    found = []
    others = [c for c in rows.collect_schema().names() if c not in ("jeditaskid", "snapshot")]
    for by_task in (True, False):
        for by_instant in (True, False):
            part = rows.filter(
                pl.col("jeditaskid").is_not_null() == by_task,
                pl.col("snapshot").is_not_null() == by_instant,
            )
            keys = ["jeditaskid"] * by_task + ["snapshot"] * by_instant
            part = part.select(*keys, *others)
            who = tasks.select("t", *dict.fromkeys([*keys, *more]))
            both = who.join(part, on=keys) if keys else who.join(part, how="cross")
            found.append(both.select("t", *more, *others))
    return pl.concat(found).rename({name: "parent"})


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
