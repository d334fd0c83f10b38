"""Facts by user task and queue together, each a narrow table that one whole-number key joins to the pairs."""

from __future__ import annotations

import polars as pl

from brokerlab.brokerage.analysis_jobs.lists import listed_side
from brokerlab.brokerage.analysis_jobs.software import gpu_side, software_side
from brokerlab.brokerage.engine.pairs import Side
from brokerlab.brokerage.inputs.data import WITH_TAPE
from brokerlab.brokerage.inputs.frames import for_tasks
from brokerlab.brokerage.production_jobs.counts import spread
from brokerlab.brokerage.production_jobs.ids import Ids, numbered
from brokerlab.brokerage.production_jobs.sides import inputs, keyed, policies, slots
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
    *, matching: MatchingRules,
) -> tuple[Side, ...]:  # fmt: skip
    """Return the sides of what stands for long but that of locality; see :mod:`.changing` for the others.

    Args:
        tasks: Facts of tasks with their numbers.
        queues: Facts of queues with their numbers.
        state: The input tables, state tables for every snapshot.
        places: Facts of endpoints, see :func:`~.endpoints.endpoint_facts`.
        ids: The numbers.
        matching: Rule set of the text rules.
    """
    return (
        _endpoints(tasks, places, ids),
        policies(tasks, queues, matching),
        software_side(tasks, queues, state, matching=matching),
        gpu_side(tasks, queues, state, matching=matching),
        listed_side(tasks, ids),
        slots(tasks, state, ids),
        inputs(tasks, state | {"file_locations": _without_cache(state["file_locations"])}, ids),
        _files(tasks, state, ids),
    )


def _without_cache(places: pl.DataFrame) -> pl.DataFrame:
    """Return where files are, without caches: the data factor counts local disk (6.4)."""
    return places.filter(pl.col("kind") != "cache")


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
