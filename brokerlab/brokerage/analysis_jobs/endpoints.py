"""The endpoints of analysis queues: which scope counts, what is up, how much is free (analysis-jobs.md 1 and 4)."""

from __future__ import annotations

import polars as pl

from brokerlab.brokerage.analysis_jobs.rules import AnalysisRules
from brokerlab.brokerage.inputs.endpoints import SPACES, space_usable, up
from brokerlab.brokerage.inputs.valid import at_every
from brokerlab.brokerage.rules import ProductionRules

OTHER_UP = ProductionRules(other_status_up=True)
"""Null and whatever is neither OFF nor TEST counts as up."""
VP = "_VP_DISK"
OWN_SCOPE, DEFAULT_SCOPE = "analysis", "default"
STATES = ("read_lan", "read_wan", "write_lan", "write_wan")


def in_scope(queue_endpoints: pl.DataFrame) -> pl.DataFrame:
    """Return the endpoints that count: scope ``analysis`` where the queue has it, by direction, else ``default`` (or null)."""
    rows = queue_endpoints.with_columns(pl.col("scope").fill_null(DEFAULT_SCOPE))
    own = (pl.col("scope") == OWN_SCOPE).any().over("panda_queue", "direction")
    wanted = pl.when(own).then(pl.lit(OWN_SCOPE)).otherwise(pl.lit(DEFAULT_SCOPE))
    return rows.filter(pl.col("scope") == wanted)


def storage_of(queue_endpoints: pl.DataFrame, storage_endpoints: pl.DataFrame) -> pl.DataFrame:
    """Return each endpoint, as the inputs of a brokerage want them; what ``storage_endpoints`` knows of one goes first.

    ``snapshot`` (null: every instant), ``ddm_endpoint_name``, ``is_tape`` and the four states.
    """
    columns = ["snapshot", "ddm_endpoint_name", "is_tape", *STATES]
    known = storage_endpoints.select(columns)
    plain = (
        queue_endpoints.join(known, on="ddm_endpoint_name", how="anti")
        .group_by("ddm_endpoint_name")
        .agg(pl.col(name).first() for name in ("is_tape", *STATES))
        .with_columns(snapshot=pl.lit(None, pl.Int64))
    )
    return pl.concat([known, plain.select(columns)], rechunk=True)


def usable_space() -> pl.Expr:
    """Return the space that can be used [GB]: null counts as 0, all nulls as unknown (archive.md 6)."""
    known = pl.any_horizontal(pl.col(SPACES).is_not_null())
    return pl.when(known).then(space_usable())


def _space(rules: AnalysisRules) -> pl.Expr:
    """Return the space that counts [GB] (switch ``local_space``); nulls as in :func:`usable_space`."""
    usable = usable_space()
    free = pl.when(usable.is_not_null()).then(pl.col("space_free").fill_null(0.0))
    return usable if rules.local_space == "usable" else free


def _with_states(
    links: pl.DataFrame,
    storage_endpoints: pl.DataFrame,
    snapshots: pl.DataFrame,
    rules: AnalysisRules,
) -> pl.DataFrame:
    """Add ``snapshot`` and take states and space of the instant where they are known."""
    names = ("space_usable", *STATES)
    if storage_endpoints.is_empty():
        return links.with_columns(snapshot=pl.lit(None, pl.Int64))
    then = storage_endpoints.select(
        "snapshot", "ddm_endpoint_name",
        known=pl.lit(value=True), space_usable_then=_space(rules),
        **{f"{name}_then": pl.col(name) for name in STATES},
    )  # fmt: skip
    key = ["snapshot", "ddm_endpoint_name"]
    known = at_every(then, snapshots, "storage_endpoints")
    rows = links.join(snapshots, how="cross").join(known, on=key, how="left")
    return rows.with_columns(
        pl.when("known").then(f"{name}_then").otherwise(name).alias(name) for name in names
    ).drop("known", *(f"{name}_then" for name in names))


def endpoint_facts(
    queue_endpoints: pl.DataFrame,
    storage_endpoints: pl.DataFrame,
    snapshots: pl.DataFrame,
    *,
    rules: AnalysisRules,
) -> pl.DataFrame:
    """Sum up the endpoints of each queue; what ``storage_endpoints`` knows of one at an instant goes first.

    One row per ``snapshot`` (null: every instant) and ``parent``: ``e_output`` and ``e_input`` (there are any), ``e_out_space``,
    ``e_in_space`` [GB] of the defaults, ``e_same`` (one default for both), ``e_out_name``, ``e_read_lan``, ``e_write_lan``,
    ``e_write_wan``, ``e_read_wan`` (up), ``e_vp``, ``e_vp_default`` (a VP endpoint, in the scope that counts, or ``default``).
    """
    rows = _with_states(in_scope(queue_endpoints), storage_endpoints, snapshots, rules)
    takes, gives = pl.col("direction") == "input", pl.col("direction") == "output"
    default = pl.col("is_default").fill_null(value=False)

    def of_default(column: str, direction: pl.Expr) -> pl.Expr:
        return pl.col(column).filter(default & direction).first()

    def any_up(status: str, direction: pl.Expr) -> pl.Expr:
        return (direction & up(status, rules=OTHER_UP)).any()

    vp = pl.col("ddm_endpoint_name").str.ends_with(VP)
    ordered = rows.sort("panda_queue", "ddm_endpoint_name")
    found = ordered.group_by("snapshot", parent="panda_queue").agg(
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
        .sort("snapshot", "parent")
    )
