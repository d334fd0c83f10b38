"""The endpoints of analysis queues: which scope counts, what is up, how much is free (analysis-job-brokerage.md 1.2, 4)."""

from __future__ import annotations

import polars as pl

from brokerlab.brokerage.inputs.endpoints import up
from brokerlab.brokerage.rules import ProductionRules

OTHER_UP = ProductionRules(other_status_up=True)
"""Null and whatever is neither OFF nor TEST counts as up."""
VP = "_VP_DISK"
OWN_SCOPE, DEFAULT_SCOPE = "analysis", "default"


def in_scope(queue_endpoints: pl.DataFrame) -> pl.DataFrame:
    """Return the endpoints that count: scope ``analysis`` where the queue has it, by direction, else ``default``.

    Args:
        queue_endpoints: Input table; null scope is ``default``.
    """
    rows = queue_endpoints.with_columns(pl.col("scope").fill_null(DEFAULT_SCOPE))
    own = (pl.col("scope") == OWN_SCOPE).any().over("panda_queue", "direction")
    wanted = pl.when(own).then(pl.lit(OWN_SCOPE)).otherwise(pl.lit(DEFAULT_SCOPE))
    return rows.filter(pl.col("scope") == wanted)


def storage_of(queue_endpoints: pl.DataFrame) -> pl.DataFrame:
    """Return each endpoint once, as the inputs of a brokerage want them."""
    names = ("is_tape", "read_lan", "read_wan", "write_lan", "write_wan")
    return queue_endpoints.group_by("ddm_endpoint_name").agg(pl.col(name).first() for name in names)


def endpoint_facts(queue_endpoints: pl.DataFrame) -> pl.DataFrame:
    """Sum up the endpoints of each queue.

    Returns:
        One row per ``parent``: ``e_output`` and ``e_input`` (there are any), ``e_out_space``, ``e_in_space`` [GB] of
        the defaults, ``e_same`` (one default for both), ``e_out_name``, ``e_read_lan``, ``e_write_lan``,
        ``e_write_wan``, ``e_read_wan`` (up), ``e_vp``, ``e_vp_default`` (a VP endpoint, in the scope that counts, in
        scope ``default``).
    """
    rows = in_scope(queue_endpoints)
    takes, gives = pl.col("direction") == "input", pl.col("direction") == "output"
    default = pl.col("is_default").fill_null(value=False)

    def of_default(column: str, direction: pl.Expr) -> pl.Expr:
        return pl.col(column).filter(default & direction).first()

    def any_up(status: str, direction: pl.Expr) -> pl.Expr:
        return (direction & up(status, rules=OTHER_UP)).any()

    vp = pl.col("ddm_endpoint_name").str.ends_with(VP)
    found = rows.sort("panda_queue", "ddm_endpoint_name").group_by(parent="panda_queue").agg(
        e_output=gives.any(),
        e_input=takes.any(),
        e_out_space=of_default("space_usable", gives),
        e_in_space=of_default("space_usable", takes),
        e_out_name=of_default("ddm_endpoint_name", gives),
        e_in_name=of_default("ddm_endpoint_name", takes),
        e_read_lan=any_up("read_lan", takes),
        e_write_lan=any_up("write_lan", gives),
        e_write_wan=any_up("write_wan", takes),
        e_read_wan=any_up("read_wan", gives),
        e_vp=(takes & vp).any(),
    )  # fmt: skip
    plain = queue_endpoints.filter(
        takes & vp & (pl.col("scope").fill_null(DEFAULT_SCOPE) == DEFAULT_SCOPE)
    )
    named = plain.select(parent="panda_queue").unique().with_columns(e_vp_default=True)
    return (
        found.join(named, on="parent", how="left")
        .with_columns(
            pl.col("e_vp_default").fill_null(value=False),
            e_same=(pl.col("e_in_name") == pl.col("e_out_name")).fill_null(value=False),
        )
        .drop("e_in_name")
        .sort("parent")
    )
