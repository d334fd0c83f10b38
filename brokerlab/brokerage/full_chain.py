"""Full chain: a workflow that stays at one nucleus (full-chain.md), for the task and the job brokerage.

Rules are written once, as functions of expressions.
"""

from __future__ import annotations

import polars as pl

from brokerlab.brokerage.rules import ProductionRules
from brokerlab.matching.catchall import BARE_MODES, read_catchalls

CAPABLE = "capable"
FULL_CHAIN = ("only", "require", CAPABLE)
PRODUCTION_TYPES = ("production", "unified")
"""Types of queues that run production."""


def _one_of(value: pl.Expr, allowed: tuple[str, ...]) -> pl.Expr:
    return value.is_in(allowed).fill_null(value=False)


def is_full_chain(fullchain: pl.Expr) -> pl.Expr:
    """Tell where a task is full chain; any other text counts as null."""
    return _one_of(fullchain, FULL_CHAIN)


def is_bare(bare_mode: pl.Expr) -> pl.Expr:
    """Tell where a nucleus is bare; any other value counts as null."""
    return _one_of(bare_mode, BARE_MODES)


def chained_where(fullchain: pl.Expr, bare_mode: pl.Expr) -> pl.Expr:
    """Tell where a task's jobs stay at its nucleus (full-chain.md 3); null: ordinary task, normal nucleus."""
    return is_full_chain(fullchain) & is_bare(bare_mode)


def only_nucleus(fullchain: pl.Expr, bare_mode: pl.Expr) -> pl.Expr:
    """F1: tell where a nucleus that takes full-chain workflows only meets an ordinary task."""
    return _one_of(bare_mode, ("only",)) & ~is_full_chain(fullchain)


def incapable(fullchain: pl.Expr, bare_mode: pl.Expr, rules: ProductionRules) -> pl.Expr:
    """F2: tell where a nucleus cannot take the task's kind of full chain (switch ``only_takes_allow``)."""
    needs_bare = _one_of(fullchain, ("only", "require")) & ~is_bare(bare_mode)
    if rules.only_takes_allow:
        return needs_bare
    return needs_bare | (_one_of(fullchain, ("only",)) & _one_of(bare_mode, ("allow",)))


def bound_to_parent(
    fullchain: pl.Expr, parent_fullchain: pl.Expr, parent_bare_mode: pl.Expr, rules: ProductionRules
) -> pl.Expr:
    """F3: tell where only the parent's nucleus may take the task (switches ``parent_flag_needed``, ``parent_binds``).

    Source: 002, Special Brokerage for ATLAS Full-chain: "When capable is set, the task is assigned to the same nucleus
    as that of the parent task only if the parent task was assigned to a bare nucleus."
    """
    asks = is_full_chain(fullchain)
    if rules.parent_binds == "capable":
        asks = _one_of(fullchain, (CAPABLE,))
    bound = asks & is_bare(parent_bare_mode)
    return bound & is_full_chain(parent_fullchain) if rules.parent_flag_needed else bound


def detail_where(rules: ProductionRules, *, away: pl.Expr) -> pl.Expr:
    """Return which of F1 to F3 keeps a task from a nucleus, ``away`` from that of its parent; null where none does.

    It reads ``fullchain, bare_mode, parent_fullchain, parent_bare_mode``.

    Source: 002, Special Brokerage for ATLAS Full-chain: "Otherwise, capable is ignored and the task can go to a normal
    nucleus."; docs/rules/full-chain.md.
    """
    fullchain, bare_mode = pl.col("fullchain"), pl.col("bare_mode")
    bound = bound_to_parent(
        fullchain, pl.col("parent_fullchain"), pl.col("parent_bare_mode"), rules
    )
    chain = fullchain
    if rules.capable_ignored:
        ignored = _one_of(fullchain, (CAPABLE,)) & ~bound
        chain = pl.when(~ignored).then(fullchain)
    return (
        pl.when(only_nucleus(chain, bare_mode))
        .then(pl.lit("F1"))
        .when(incapable(fullchain, bare_mode, rules))
        .then(pl.lit("F2"))
        .when(bound & away)
        .then(pl.lit("F3"))
    )


def bare_modes(queues: pl.DataFrame, *, rules: ProductionRules) -> pl.DataFrame:
    """Return what the queues say about their sites (row F-6, switch ``bare_mode_of``).

    The mode is that of ``any`` queue that has one (the first by name), or of the ``first`` queue loaded. One row per
    (``snapshot``,) ``nucleus`` with a production queue, sorted: ``bare_mode``, ``secondary_nucleus`` and ``mixed``: its queues
    do not agree on the mode.

    Source: full-chain.md 1 and 2.
    """
    when = [name for name in ("snapshot",) if name in queues.columns]
    runs_production = pl.col("type").fill_null("production").is_in(PRODUCTION_TYPES)
    own = queues.filter(runs_production & pl.col("pandasite").is_not_null())
    catchalls = read_catchalls(own).select("catchall", "params", "bare_mode", "secondary_nucleus")
    if "params" not in own.columns:
        own = own.with_columns(params=pl.lit(None, pl.String))
    own = own.join(
        catchalls, on=["catchall", "params"], how="left", nulls_equal=True, maintain_order="left"
    )
    columns = [pl.col("bare_mode"), pl.col("secondary_nucleus")]
    if rules.bare_mode_of == "any":
        own = own.sort(*when, "pandasite", "panda_queue")
        columns = [column.drop_nulls() for column in columns]
    sites = own.group_by(*when, nucleus="pandasite", maintain_order=True).agg(
        *(column.first() for column in columns), mixed=pl.col("bare_mode").n_unique() > 1
    )
    return sites.sort(*when, "nucleus")


def with_bare_modes(
    nuclei: pl.DataFrame, queues: pl.DataFrame, *, rules: ProductionRules
) -> pl.DataFrame:
    """Fill null ``bare_mode`` and ``secondary_nucleus`` of nuclei from their queues; add ``mixed``."""
    modes = bare_modes(queues, rules=rules).rename(
        {"bare_mode": "said_mode", "secondary_nucleus": "said_secondary"}
    )
    on = ["snapshot", "nucleus"]
    if not nuclei["snapshot"].null_count() and modes["snapshot"].null_count():
        modes, on = modes.drop("snapshot"), on[1:]
    joined = nuclei.join(modes, on=on, how="left", nulls_equal=True, maintain_order="left")
    return joined.with_columns(
        pl.coalesce("bare_mode", "said_mode").alias("bare_mode"),
        pl.coalesce("secondary_nucleus", "said_secondary").alias("secondary_nucleus"),
        pl.col("mixed").fill_null(value=False),
    ).drop("said_mode", "said_secondary")
