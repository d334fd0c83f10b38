"""Facts of production tasks and of queues, and the tasks that end before any queue is looked at."""

from __future__ import annotations

from dataclasses import replace

import polars as pl

from brokerlab.brokerage.engine.lookup import Known, numbered
from brokerlab.brokerage.production_jobs.candidates import listed
from brokerlab.brokerage.production_jobs.nucleus import (
    known_links,
    near_places,
    unwritable,
    with_sites,
)
from brokerlab.brokerage.production_jobs.queue_facts import queue_facts
from brokerlab.brokerage.production_jobs.repeated import one_row_per_key
from brokerlab.brokerage.production_jobs.state import at_instants, has_history
from brokerlab.brokerage.production_jobs.task_facts import task_facts

STATE_TABLES = (
    "site_activity", "job_stats", "job_stats_rt", "job_stats_workqueue", "job_stats_gshare_only",
    "transferring_by_nucleus", "core_stats", "diskio_usage", "worker_stats", "storage_endpoints", "live",
)  # fmt: skip
"""Tables whose rows without snapshot hold for every instant."""
NOWHERE = -1
"""Number of the nucleus of a task without one."""
UNKNOWN = -2
"""Number of a site that is not known."""


def facts(known: Known) -> Known:
    """Return it with the facts of tasks and queues, and the candidates of tasks that are pre-assigned.

    Args:
        known: Input tables and rules; option ``hint``: only what could run is asked, no nucleus is looked at.
    """
    rules, hint = known.rules, known.options["hint"]
    instants = known.given["tasks"].with_columns(pl.col("snapshot").fill_null(0))
    given = with_sites(one_row_per_key({**known.given, "tasks": instants}), rules=rules)
    raw, history = given["tasks"], has_history(given)
    tables = at_instants(given, STATE_TABLES, raw.select("snapshot").unique().sort("snapshot"))
    if "worker_node_gpu" in known.missing:
        del tables["worker_node_gpu"]  # nobody looked, which is not the same as none seen
    state = {name: frame.collect() for name, frame in tables.items()}
    tasks = task_facts(raw, given["resource_work_queues"], rules=rules).with_columns(
        t_version=pl.col("snapshot") if history else pl.lit(0, dtype=pl.Int64),
        t_hint=pl.lit(value=hint),
        t_at_s=pl.col("at").dt.epoch("s"),
        t_nucleus=pl.lit(None, dtype=pl.String) if hint else pl.col("t_nucleus"),
    )
    queues = queue_facts(state, rules=rules).with_columns(q_eshigh=pl.col("q_jobseed") == "eshigh")
    lists = listed(raw, tasks, queues, given, rules=rules)
    if hint:
        lists = lists.clear()  # the queues asked about are all queues
    tasks, queues = _with_sites(_with_lists(tasks, lists), queues, given)
    found = replace(
        known,
        given=given,
        tables=tables,
        tasks=tasks.lazy(),
        places=queues.lazy(),
        lists=lists.select("t", "q"),
    )
    return found.with_made(
        links=known_links(tasks, state, rules=rules),
        lost=unwritable(state, rules=rules),
        near=near_places(queues, state),
    )


def _with_lists(tasks: pl.DataFrame, lists: pl.DataFrame) -> pl.DataFrame:
    """Add what depends on pre-assignment: ``t_single``, ``t_listed`` and the T1 factor."""
    flags = lists.group_by("t").agg(t_single=pl.col("single").first())
    tasks = tasks.join(flags, on="t", how="left", maintain_order="left").with_columns(
        t_listed=pl.col("t_single").is_not_null(),
        t_single=pl.col("t_single").fill_null(value=False),
    )
    urgent = pl.when("t_listed").then(1).otherwise("t_t1_urgent")
    test_queue = pl.col("t_queue_name").is_in(["test", "validation"]).fill_null(value=False)
    return tasks.with_columns(
        t_t1_factor=pl.max_horizontal("t_t1", urgent),
        t_policy_applies=~test_queue | (pl.col("t_single") & (pl.col("t_label") != "managed")),
        t_pilot_exempt=pl.col("t_label").str.contains("test", literal=True) & ~pl.col("t_express"),
    )


def _with_sites(
    tasks: pl.DataFrame, queues: pl.DataFrame, tables: dict[str, pl.DataFrame]
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Number the sites of nuclei, queues and storage: ``t_nucleus_id``, ``q_site_id``, ``p_storage_id``; and ``p_storage``."""
    storage = tables["queue_storage_site"].select(parent="panda_queue", p_storage="site_name")
    queues = queues.join(storage, on="parent", how="left", maintain_order="left")
    places = (
        queues["q_site"], queues["p_storage"], tasks["t_nucleus"], tables["nuclei"]["nucleus"],
    )  # fmt: skip
    names = pl.concat([place.rename("site") for place in places]).drop_nulls().to_frame()
    sites = dict(numbered(names, "id").iter_rows())

    def number(site: str, otherwise: int) -> pl.Expr:
        return pl.col(site).replace_strict(sites, default=otherwise, return_dtype=pl.Int64)

    return (
        tasks.with_columns(t_nucleus_id=number("t_nucleus", NOWHERE)),
        queues.with_columns(
            q_site_id=number("q_site", UNKNOWN), p_storage_id=number("p_storage", UNKNOWN)
        ),
    )


def ends(known: Known) -> pl.DataFrame:
    """Return ``t, outcome, detail`` of tasks that fail before any queue is looked at.

    Of tasks whose input is complete nowhere only with the switch ``code_only_checks``: the page does not ask.
    """
    tasks = known.tasks.collect()
    sites = known.given["nuclei"]["nucleus"].implode()
    lost = pl.col("t_nucleus").is_not_null() & ~pl.col("t_nucleus").is_in(sites)
    unknown = tasks.filter(lost & (not known.options["hint"])).select(
        "t", outcome=pl.lit("unknown_nucleus"),
        detail=pl.format("nucleus {} is neither nucleus nor satellite", "t_nucleus"),
    )  # fmt: skip
    waiting = known.made["complete"].tasks
    waiting = waiting if known.rules.code_only_checks else waiting.clear()
    incomplete = (
        tasks.select("t", "jeditaskid", "snapshot")
        .join(waiting.drop_nulls("outcome"), on=["jeditaskid", "snapshot"])
        .select("t", "outcome", "detail")
    )
    return pl.concat([unknown, incomplete.join(unknown, on="t", how="anti")])
