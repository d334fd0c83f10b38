"""Small expressions that the checks share."""

from __future__ import annotations

import polars as pl

from brokerlab.brokerage.engine.rule import Chapter
from brokerlab.brokerage.rules import ProductionRules

check = Chapter("production-jobs.md ")


def truncated(value: pl.Expr) -> pl.Expr:
    """Round towards zero, as ``int`` does."""
    return pl.when(value >= 0).then(value.floor()).otherwise(value.ceil())


def spared(rules: ProductionRules, name: str) -> pl.Expr:
    """Return whether a check passes a pre-assigned queue (``t_listed``; a single one: ``t_single``) without being asked."""
    return pl.col(name) if rules.preassigned_exempt else pl.lit(value=False)


def at_least_one(value: pl.Expr) -> pl.Expr:
    """Return the value, or 1 where it is 0 (undefined) or less."""
    return pl.when(value > 1).then(value).otherwise(pl.lit(1))


def near() -> pl.Expr:
    """Return whether a queue is of the nucleus or shares its storage; of any nucleus before there is one (hint mode)."""
    return pl.col("x_near") | (pl.col("t_hint") & pl.col("p_near_any"))
