"""States of a queue's storage endpoints: what the checks ``storage_space`` to ``source_down`` compare.

Source: production-jobs.md and checks 21 to 27.
"""

from __future__ import annotations

import polars as pl

from brokerlab.brokerage.inputs.frames import SNAPSHOT, Schema, read, yes
from brokerlab.brokerage.inputs.valid import at_snapshots
from brokerlab.brokerage.rules import ProductionRules

DOWN = ("OFF", "TEST")

_LINKS: Schema = {
    "panda_queue": pl.String,
    "direction": pl.String,
    "ddm_endpoint_name": pl.String,
}
SPACES = ("space_free", "space_expired", "space_min_free", "space_unavailable")
_STATUS = ("read_lan", "write_lan", "read_wan", "write_wan")
_STORAGE: Schema = {
    **SNAPSHOT,
    "site_name": pl.String,
    "type": pl.String,
    "is_tape": pl.Boolean,
    **dict.fromkeys(_STATUS, pl.String),
    **dict.fromkeys(SPACES, pl.Float64),
}


def up(status: str, *, rules: ProductionRules) -> pl.Expr:
    """Return whether a status column lets traffic pass.

    Args:
        status: Column with ON, OFF, TEST, null or anything else.
        rules: ``other_status_up`` (J15): anything but OFF and TEST is up; else ON and null are.
    """
    if rules.other_status_up:
        return ~pl.col(status).fill_null("").is_in(DOWN)
    return pl.col(status).fill_null("ON") == "ON"


def space_usable() -> pl.Expr:
    """Return the usable space of an endpoint [GB]: free + expired - to be kept free - unavailable, nulls as 0."""
    free, expired, kept, lost = (pl.col(name).fill_null(0.0) for name in SPACES)
    return free + expired - kept - lost


def space_of_jobs(rules: ProductionRules) -> pl.Expr:
    """Return the space that jobs may fill [GB]: free, or usable (switch ``local_space``); nulls as 0."""
    return space_usable() if rules.local_space == "usable" else pl.col("space_free").fill_null(0.0)


def read_storage(storage_endpoints: pl.DataFrame | None) -> pl.DataFrame:
    """Return the table ``storage_endpoints`` with every column that is used here."""
    name: Schema = {"ddm_endpoint_name": pl.String}
    return read("storage_endpoints", storage_endpoints, name, _STORAGE)


def read_links(queue_endpoints: pl.DataFrame | None) -> pl.DataFrame:
    """Return the table ``queue_endpoints`` of scope ``default`` (null scope included)."""
    optional: Schema = {"is_default": pl.Boolean, "scope": pl.String}
    links = read("queue_endpoints", queue_endpoints, _LINKS, optional)
    return links.filter(pl.col("scope").fill_null("default") == "default").drop("scope")


def endpoint_states(
    queue_endpoints: pl.DataFrame | None,
    storage_endpoints: pl.DataFrame | None,
    *,
    rules: ProductionRules,
    snapshots: pl.DataFrame | None = None,
) -> pl.DataFrame:
    """Sum up the endpoints of each queue.

    Args:
        queue_endpoints: ``panda_queue`` (parent name), ``direction``, ``ddm_endpoint_name``,
            ``is_default``; rows whose ``scope`` is neither null nor ``default`` are left aside.
        storage_endpoints: ``ddm_endpoint_name``, ``type``, the four status columns and the space columns
            [GB]; may carry ``snapshot``. An endpoint that is not here is of no type and has no space.
        rules: ``other_status_up``, ``datadisk_only``, ``local_space``.
        snapshots: ``snapshot``, the instants wanted of a table with ``snapshot``; null = those it has.

    Returns:
        One row per [``snapshot``,] ``panda_queue``, sorted by it; ``snapshot`` only if
        ``storage_endpoints`` has one. A queue without endpoints has no row: storage unknown, every flag
        false.

        * ``storage_known``: the default output endpoint is known; ``space_usable`` [GB], f64, of it, null
          if not (the first in name order of several; free space alone with ``local_space="free"``);
          ``output_endpoint``, ``output_site`` of it;
        * ``read_lan_up``, ``receive_wan_up``: some input endpoint that counts has read_lan, write_wan up;
        * ``write_lan_up``, ``send_wan_up``: some output endpoint that counts has write_lan, read_wan up;
        * ``has_input_datadisk``, ``has_output_datadisk``: there is one that counts.

        Without ``datadisk_only`` every endpoint counts, and a direction without one is up: nothing is blacklisted.

    Raises:
        SchemaError: A missing key column or a column of another type.
    """
    links = read_links(queue_endpoints)
    storage, snapshot = at_snapshots(read_storage(storage_endpoints), snapshots)
    key = [*snapshot, "panda_queue"]
    joined = links.join(storage, on="ddm_endpoint_name", how="inner")
    disk = pl.col("type") == "DATADISK" if rules.datadisk_only else pl.lit(value=True)
    takes = disk & (pl.col("direction") == "input")
    gives = disk & (pl.col("direction") == "output")
    flags = {
        "read_lan_up": takes & up("read_lan", rules=rules),
        "receive_wan_up": takes & up("write_wan", rules=rules),
        "has_input_datadisk": takes,
        "write_lan_up": gives & up("write_lan", rules=rules),
        "send_wan_up": gives & up("read_wan", rules=rules),
        "has_output_datadisk": gives,
    }
    states = joined.group_by(key).agg(
        **{name: flag.fill_null(value=False).any() for name, flag in flags.items()}
    )
    if not rules.datadisk_only:
        none_in, none_out = ~pl.col("has_input_datadisk"), ~pl.col("has_output_datadisk")
        states = states.with_columns(
            pl.col("read_lan_up", "receive_wan_up") | none_in,
            pl.col("write_lan_up", "send_wan_up") | none_out,
        )
    defaults = (
        joined.filter(yes("is_default") & (pl.col("direction") == "output"))
        .sort("ddm_endpoint_name")
        .unique(key, keep="first", maintain_order=True)
        .select(
            *key,
            output_endpoint="ddm_endpoint_name",
            output_site="site_name",
            space_usable=space_of_jobs(rules),
            storage_known=pl.lit(value=True),
        )
    )
    return (
        states.join(defaults, on=key, how="left")
        .with_columns(yes("storage_known"))
        .sort(key)
        .select(
            *key,
            "storage_known",
            "space_usable",
            "output_endpoint",
            "output_site",
            *flags,
        )
    )


def complete_here(
    complete_locations: pl.DataFrame,
    queue_endpoints: pl.DataFrame | None,
    storage_endpoints: pl.DataFrame | None,
) -> pl.DataFrame:
    """Return the queues that own a DATADISK input endpoint with the whole input of a task.

    Args:
        complete_locations: ``jeditaskid``, ``ddm_endpoint_name``, perhaps ``snapshot``; see
            :func:`brokerlab.brokerage.inputs.completeness.completeness`.
        queue_endpoints: See :func:`endpoint_states`.
        storage_endpoints: See :func:`endpoint_states`; only the types matter.

    Returns:
        ``jeditaskid``, [``snapshot``,] ``panda_queue`` (parent name), one row per pair that has one, sorted.
    """
    key = [name for name in ("jeditaskid", "snapshot") if name in complete_locations.columns]
    disks = read_storage(storage_endpoints).filter(pl.col("type") == "DATADISK")
    inputs = (
        read_links(queue_endpoints)
        .filter(pl.col("direction") == "input")
        .join(disks.select("ddm_endpoint_name").unique(), on="ddm_endpoint_name", how="semi")
    )
    return (
        complete_locations.join(inputs, on="ddm_endpoint_name", how="inner")
        .select(*key, "panda_queue")
        .unique()
        .sort(*key, "panda_queue")
    )
