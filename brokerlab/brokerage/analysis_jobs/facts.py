"""Facts of user tasks and of queues, and the tasks that end before any queue is looked at."""

from __future__ import annotations

from dataclasses import replace

import polars as pl

from brokerlab.brokerage.analysis_jobs.endpoints import endpoint_facts, in_scope
from brokerlab.brokerage.analysis_jobs.lists import pools, with_lists
from brokerlab.brokerage.analysis_jobs.queue_facts import queue_facts
from brokerlab.brokerage.analysis_jobs.task_facts import task_facts
from brokerlab.brokerage.analysis_jobs.throttle import ended
from brokerlab.brokerage.engine.lookup import Known
from brokerlab.brokerage.engine.pairs import run
from brokerlab.brokerage.inputs.valid import at_every
from brokerlab.brokerage.production_jobs.state import at_instants, has_history

STATE_TABLES = (
    "site_activity", "job_stats", "user_job_stats", "user_totals", "to_run_rate", "worker_stats",
    "diskio_usage", "site_class", "task_class", "gshare_usage", "user_eval", "quota",
)  # fmt: skip
"""Tables whose rows without snapshot hold for every instant."""


def facts(known: Known) -> Known:
    """Return it with the facts of tasks and queues, and the candidates of tasks that are pre-assigned."""
    given, rules = known.given, known.rules
    raw = given["tasks"].with_columns(pl.col("snapshot").fill_null(0))
    snapshots = raw.select("snapshot").unique().sort("snapshot")
    tables = at_instants(given, STATE_TABLES, snapshots)
    if "worker_node_gpu" in known.missing:
        del tables["worker_node_gpu"]  # nobody looked, which is not the same as none seen
    tasks = task_facts(raw, rules=rules).with_columns(
        t_version=pl.col("snapshot") if has_history(given) else pl.lit(0, dtype=pl.Int64)
    )
    queues = queue_facts({"queues": tables["queues"].collect()}, rules=rules)
    inputs = in_scope(given["queue_endpoints"]).filter(pl.col("direction") == "input")
    readers = inputs.select("ddm_endpoint_name", parent="panda_queue")
    tasks = with_lists(tasks, queues, readers, rules=rules)
    tasks, pool = pools(tasks, queues, rules=rules)
    endpoints = endpoint_facts(
        given["queue_endpoints"], given["storage_endpoints"], snapshots, rules=rules
    )
    found = replace(
        known,
        tables=tables,
        tasks=tasks.lazy(),
        places=queues.lazy(),
        lists=_with_own_queue(tasks, queues),
    )
    return found.with_made(pool=pool, endpoints=at_every(endpoints, snapshots))


def ends(known: Known) -> pl.DataFrame:
    """Return ``t, throttle, outcome`` of tasks that end before any queue is looked at."""
    return run(ended(known.tasks, known.rules, known.missing))


def _with_own_queue(tasks: pl.DataFrame, queues: pl.DataFrame) -> pl.DataFrame:
    """Return the candidates of tasks that are pre-assigned to a queue that is no candidate of others (P2)."""
    theirs = tasks.select("t", "t_version", "t_home").drop_nulls("t_home")
    usable = queues.filter(~pl.col("is_unified"))
    own = theirs.join(
        usable.filter(~pl.col("q_candidate")).select("q", "q_version", "parent"),
        left_on=["t_version", "t_home"], right_on=["q_version", "parent"],
    ).select("t", "q")  # fmt: skip
    others = theirs.join(own.select("t").unique(), on="t", how="semi").join(
        usable.filter("q_candidate").select("q", "q_version"),
        left_on="t_version", right_on="q_version",
    )  # fmt: skip
    return pl.concat([own, others.select("t", "q")]).sort("t", "q")
