"""Software and hardware of user tasks at queues: checks ``cache``, ``regexpcmtconfig`` and ``architecture``."""

from __future__ import annotations

from collections.abc import Callable

import polars as pl

from brokerlab.brokerage.analysis_jobs.rules import AnalysisRules
from brokerlab.brokerage.engine.pairs import Side
from brokerlab.brokerage.production_jobs.checks_queue import REJECTED, UNRESOLVED
from brokerlab.matching.architecture import parse_architecture
from brokerlab.matching.rules import MatchingRules
from brokerlab.matching.software_pairs import ANALYSIS_COLUMNS, platform_pairs, software_pairs

Tables = dict[str, pl.DataFrame]
EXPLICIT = "#&"
"""Characters that begin a request for hardware in the old format."""


def software_side(
    tasks: pl.DataFrame, queues: pl.DataFrame, state: Tables,
    *, rules: AnalysisRules, matching: MatchingRules,
) -> Side:  # fmt: skip
    """Return what (request, parent) pairs are refused.

    Args:
        tasks: Facts of tasks with ``t_request``.
        queues: Facts of queues with ``q_offer``.
        state: The input tables.
        rules: Switch ``any_mode``.
        matching: Rule set of the text rules; ANY is decided by ``rules``.
    """
    names = {f"t_{column}": column for column in ANALYSIS_COLUMNS}
    wanted = tasks.select(*names, "t_request").unique().sort("t_request").rename(names)
    switches = {**matching.to_dict(), "any_needs_no_request": True}
    decided = _at_offers(
        queues,
        lambda some: software_pairs(
            wanted, some, state["sw_tags"], state["worker_node_gpu"],
            rules=MatchingRules(**switches), analysis=True,
        ),
    )  # fmt: skip
    rows = decided.join(wanted, on=list(names.values()), nulls_equal=True)
    accept = pl.col("accept")
    if rules.any_mode == "explicit":
        free = [not explicit(text) for text in wanted["architecture"]]
        kinds = wanted.select("t_request", free=pl.Series(free, dtype=pl.Boolean))
        rows = rows.join(kinds, on="t_request", how="left")
        any_queue = (pl.col("releases").list.len() == 1) & (
            pl.col("releases").list.first() == "ANY"
        )
        accept = accept | (any_queue & pl.col("free")).fill_null(value=False)
    kept = rows.select(
        "t_request", "q_offer",
        x_software=pl.when(accept).then(0)
        .when(pl.col("reason") == "platform_unresolved").then(UNRESOLVED)
        .otherwise(REJECTED).cast(pl.Int64),
        x_software_reason="reason",
    )  # fmt: skip
    return Side("t_request", "q_offer", kept, {"x_software": 0, "x_software_reason": None})


def explicit(architecture: str | None) -> bool:
    """Tell whether an architecture asks for hardware itself, and not by its platform alone (D27).

    Example:
        >>> explicit("x86_64-el9-gcc13-opt"), explicit("x86_64-el9-gcc13-opt#x86_64"), explicit("&nvidia")
        (False, True, True)
    """
    request = parse_architecture(architecture)
    if request.is_json:
        return request.asks_for_hardware
    return any(character in (architecture or "") for character in EXPLICIT)


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
