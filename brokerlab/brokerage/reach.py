"""Which share of the running slots a task may reach."""

from __future__ import annotations

from dataclasses import replace

import polars as pl

from brokerlab.brokerage.engine.decisions import TASK, QueueDecisions
from brokerlab.brokerage.engine.pairs import looked_up
from brokerlab.brokerage.engine.world import World

BEYOND_THE_BEST = ("rank", "low_weight")
"""Checks of candidates that are too many."""


def slots(world: World) -> pl.DataFrame:
    """Return the size of each parent queue at each instant: cores of the jobs that run there.

    Cores in use where they are counted (table ``core_stats``, production brokerage), else running jobs of all shares
    times the cores of a slot: ``snapshot, parent``, ``slots`` [cores], of parents with a queue that could be a candidate.
    """
    instants = world.tasks.select("t", "snapshot", q_version="t_version").unique(
        "snapshot", keep="first", maintain_order=True
    )
    parents = (
        world.facts.queues.filter("q_candidate")
        .select("q", "q_version", "parent")
        .unique(["q_version", "parent"], keep="first", maintain_order=True)
    )
    pairs = instants.join(parents, on="q_version").sort("t", "q")
    facts = replace(world.facts, tasks=world.tasks)
    wanted = {"s_running", "s_running_cores", "p_corecount"}
    counted = looked_up(facts, pairs, wanted)
    if "s_running_cores" not in counted.columns:
        counted = counted.with_columns(s_running_cores=pl.lit(0, pl.Int64))
    guessed = pl.col("s_running") * pl.max_horizontal("p_corecount", 1)
    known = pl.col("s_running_cores") > 0
    sized = counted.select(
        "snapshot", "parent", slots=pl.when(known).then("s_running_cores").otherwise(guessed)
    )
    return sized.sort("snapshot", "parent")


def reachable(decisions: QueueDecisions) -> pl.DataFrame:
    """Return the share of the running slots that each task may reach: ``jeditaskid, snapshot, reachable`` (0 to 1), sorted.

    The slots (:func:`slots`) of the queues that are candidates, or would be if more than ten were taken (check
    ``rank``, for user tasks ``low_weight``), divided by those of all queues that run production (analysis) at that
    instant. Pseudo-queues of one parent count once. 0 for a task that ended before any queue was looked at; null where nothing runs anywhere.
    """
    sizes = slots(decisions.world)
    total = sizes.group_by("snapshot").agg(total=pl.col("slots").sum())
    queues = decisions.world.facts.queues
    names = queues.select(pl.col("panda_queue"), "parent").unique("panda_queue", keep="first")
    names = names.with_columns(pl.col("panda_queue").cast(decisions.queues.schema["panda_queue"]))
    could = pl.col("check").is_null() | pl.col("check").cast(pl.String).is_in(BEYOND_THE_BEST)
    places = decisions.queues.filter(could).join(names, on="panda_queue")
    places = places.select(*TASK, "parent").unique()
    found = places.join(sizes, on=["snapshot", "parent"]).group_by(TASK).agg(pl.col("slots").sum())
    tasks = decisions.tasks.select(TASK).join(found, on=TASK, how="left")
    share = pl.when(pl.col("total") > 0).then(pl.col("slots").fill_null(0) / pl.col("total"))
    return tasks.join(total, on="snapshot", how="left").select(*TASK, reachable=share).sort(TASK)
