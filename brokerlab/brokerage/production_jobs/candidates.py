"""Which queues are looked at for a task at all (production-jobs.md 1)."""

from __future__ import annotations

import polars as pl

from brokerlab.brokerage.rules import ProductionRules

WAITING_H = 24
"""Merge jobs whose queues were skipped for so long lose their pre-assignment [h]."""
UNTOUCHED_H, FROZEN_H = 24, 6
"""A pre-merge dataset untouched, and a task frozen, for longer lose their pre-assignment [h]."""


def listed(
    tasks: pl.DataFrame, facts: pl.DataFrame, queues: pl.DataFrame, tables: dict[str, pl.DataFrame],
    *, rules: ProductionRules,
) -> pl.DataFrame:  # fmt: skip
    """Return the candidates of the tasks that are pre-assigned.

    Args:
        tasks: Input table ``tasks``.
        facts: Facts of the tasks: ``t, jeditaskid, snapshot, t_version``, rows as in ``tasks``.
        queues: Facts of the queues.
        tables: The input tables; ``queue_endpoints`` is read.
        rules: Switches ``parent_stays_in_list`` and ``merging_freed_by``.

    Returns:
        ``t, q``, and ``single`` (a single queue was named); a row without ``q`` for each of these tasks, which
        may have no other.
    """
    asked = facts.select("t", "t_version").hstack(
        tasks.select("site", "preassigned_site", *_TIMES, "at")
    )
    merging = pl.col("preassigned_site").fill_null("") != ""
    names = pl.col("site").str.split(",").list.eval(pl.element().str.strip_chars())
    named = asked.filter(~merging & (pl.col("site").fill_null("") != "")).select(
        "t", "t_version", name=names, single=names.list.len() == 1
    )
    bound = asked.filter(merging & ~_loose(rules))
    parts = [
        pl.concat([named.select("t", "single"), bound.select("t", single=False)]).select(
            "t", pl.lit(None, pl.Int64).alias("q"), "single"
        ),
        _resolved(named.explode("name"), queues, rules),
        _of_merging(bound, queues, tables, rules),
    ]
    return pl.concat(parts).unique().sort("t", "q")


_TIMES = ("master_creationtime", "master_modificationtime", "frozentime")


def _loose(rules: ProductionRules) -> pl.Expr:
    """Tell where the pre-assignment is ignored.

    How long the queues have been skipped is how long the task has been waiting: since ``frozentime``.

    Args:
        rules: Switch ``merging_freed_by``.

    Source: 002, ATLAS Production Job Brokerage: "Although merge jobs are pre-assigned to avoid transferring small pre-merged
        files, the pre-assignment is ignored if the relevant queues have been skipped for 24 hours."
    """
    at = pl.col("at")
    if rules.merging_freed_by == "waiting":
        waiting = (at - pl.col("frozentime")) >= pl.duration(hours=WAITING_H)
        return waiting.fill_null(value=False)
    changed = pl.col("master_modificationtime")
    untouched = (at - changed) > pl.duration(hours=UNTOUCHED_H)
    later = changed != pl.col("master_creationtime")
    frozen = (at - pl.col("frozentime")) > pl.duration(hours=FROZEN_H)
    return (untouched & later & frozen).fill_null(value=False)


def _resolved(names: pl.DataFrame, queues: pl.DataFrame, rules: ProductionRules) -> pl.DataFrame:
    """Return ``t, q, single`` of queues by name; pseudo-queues take the place of a unified one, or join it."""
    columns = ["q", "q_version", "panda_queue", "parent", "is_unified"]
    by_name = names.join(
        queues.select(columns),
        left_on=["t_version", "name"], right_on=["q_version", "panda_queue"],
    )  # fmt: skip
    if not rules.parent_stays_in_list:
        by_name = by_name.filter(~pl.col("is_unified"))
    children = queues.filter(~pl.col("is_unified") & pl.col("q_pseudo"))
    by_parent = names.join(
        children.select(columns), left_on=["t_version", "name"], right_on=["q_version", "parent"]
    )
    return pl.concat([by_name.select("t", "q", "single"), by_parent.select("t", "q", "single")])


def _of_merging(
    bound: pl.DataFrame, queues: pl.DataFrame, tables: dict[str, pl.DataFrame],
    rules: ProductionRules,
) -> pl.DataFrame:  # fmt: skip
    """Return the queue of a pre-merge dataset and the online queues that read its default output storage.

    Unified queues stay as they are, or pseudo-queues take their place (switch ``parent_stays_in_list``).
    """
    links = tables["queue_endpoints"]
    output = links.filter((pl.col("direction") == "output") & pl.col("is_default")).select(
        "ddm_endpoint_name", home="panda_queue"
    )
    readers = links.filter(pl.col("direction") == "input").select(
        "ddm_endpoint_name", parent="panda_queue"
    )
    shared = output.join(readers, on="ddm_endpoint_name").select("home", "parent").unique()
    homes = bound.select("t", "t_version", name="preassigned_site").join(
        queues.select("q", "q_version", "panda_queue", "parent", "q_production", "q_runs_analysis"),
        left_on=["t_version", "name"], right_on=["q_version", "panda_queue"],
    )  # fmt: skip
    others = (
        homes.filter("q_production")
        .select("t", "t_version", home="parent", analysis="q_runs_analysis")
        .join(shared, on="home")
        .join(
            queues.select(
                "q", "q_version", "parent", "q_production", "q_runs_analysis", "q_online_only",
                parent_row="is_unified",
            ),
            left_on=["t_version", "parent"], right_on=["q_version", "parent"],
        )
        .filter(
            pl.col("q_online_only") & pl.col("q_production")
            & (~pl.col("analysis") | pl.col("q_runs_analysis"))
        )
    )  # fmt: skip
    if not rules.parent_stays_in_list:
        names = bound.select("t", "t_version", name="preassigned_site", single=False)
        homes, others = _resolved(names, queues, rules), others.filter(~pl.col("parent_row"))
    both = pl.concat([homes.select("t", "q"), others.select("t", "q")])
    return both.with_columns(single=pl.lit(value=False))
