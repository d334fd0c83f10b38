"""Software and hardware of user tasks at queues: checks ``cache``, ``regexpcmtconfig`` and ``architecture``."""

from __future__ import annotations

from collections.abc import Callable

import polars as pl

from brokerlab.brokerage.engine.pairs import Side
from brokerlab.brokerage.production_jobs.checks_queue import REJECTED, UNRESOLVED
from brokerlab.matching.rules import MatchingRules
from brokerlab.matching.software_pairs import ANALYSIS_COLUMNS, platform_pairs, software_pairs

Tables = dict[str, pl.DataFrame]


def software_side(
    tasks: pl.DataFrame, queues: pl.DataFrame, state: Tables, *, matching: MatchingRules
) -> Side:
    """Return what (request, parent) pairs are refused.

    Args:
        tasks: Facts of tasks with ``t_request``.
        queues: Facts of queues with ``q_offer``.
        state: The input tables.
        matching: Rule set of the text rules.

    Source:
        002, ATLAS Analysis Job Brokerage: "This check is skipped when queues have ANY in the releases filed in CRIC.";
        docs/rules/matching.md 9.
    """
    names = {f"t_{column}": column for column in ANALYSIS_COLUMNS}
    wanted = tasks.select(*names, "t_request").unique().sort("t_request").rename(names)
    decided = _at_offers(
        queues,
        lambda some: software_pairs(
            wanted, some, state["sw_tags"], state.get("worker_node_gpu"),
            rules=matching, analysis=True,
        ),
    )  # fmt: skip
    rows = decided.join(wanted, on=list(names.values()), nulls_equal=True)
    kept = rows.select(
        "t_request", "q_offer",
        x_software=pl.when("accept").then(0)
        .when(pl.col("reason") == "platform_unresolved").then(UNRESOLVED)
        .otherwise(REJECTED).cast(pl.Int64),
        x_software_reason="reason",
    )  # fmt: skip
    return Side("t_request", "q_offer", kept, {"x_software": 0, "x_software_reason": None})


def gpu_side(
    tasks: pl.DataFrame, queues: pl.DataFrame, state: Tables, *, matching: MatchingRules
) -> Side:
    """Return which platforms are not at which GPU queues.

    Args:
        tasks: Facts of tasks with ``t_platform``.
        queues: Facts of queues with ``q_offer``.
        state: The input tables.
        matching: Rule set of the text rules.
    """
    wanted = tasks.select("t_platform", architecture="t_architecture").unique().sort("t_platform")
    decided = _at_offers(
        queues.filter("q_gpu"),
        lambda some: platform_pairs(wanted, some, state["sw_tags"], rules=matching),
    )
    rows = decided.join(wanted, on="architecture", nulls_equal=True).filter(~pl.col("accept"))
    kept = rows.select("t_platform", "q_offer", x_platform_missing=pl.lit(value=True))
    return Side("t_platform", "q_offer", kept, {"x_platform_missing": False})


def _at_offers(
    queues: pl.DataFrame, decide: Callable[[pl.DataFrame], pl.DataFrame]
) -> pl.DataFrame:
    """Decide for distinct offers: one round, unless the releases of a queue change from instant to instant."""
    offers = queues.select("q_offer", panda_queue="parent", releases="p_releases").unique("q_offer")
    rounds = offers.sort("q_offer").with_columns(nth=pl.cum_count("q_offer").over("panda_queue"))
    parts = rounds.partition_by("nth", maintain_order=True) or [rounds]
    return pl.concat(decide(some).join(some, on="panda_queue") for some in parts)
