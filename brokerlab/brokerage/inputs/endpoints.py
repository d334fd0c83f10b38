"""States of a queue's storage endpoints: what the checks ``storage_space`` to ``source_down`` compare.

Source: production-jobs.md and checks 21 to 27.
"""

from __future__ import annotations

import polars as pl

from brokerlab.brokerage.inputs.frames import SNAPSHOT, Schema, read, yes
from brokerlab.brokerage.inputs.numbers import in_order
from brokerlab.brokerage.inputs.valid import at_snapshots
from brokerlab.brokerage.rules import ProductionRules

DOWN = ("OFF", "TEST")

_LINKS: Schema = {"panda_queue": pl.String, "direction": pl.String, "ddm_endpoint_name": pl.String}
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
    """Return whether a status (ON, OFF, TEST, null or anything else) lets traffic pass, by switch ``other_status_up`` (J15)."""
    if rules.other_status_up:
        return ~pl.col(status).fill_null("").is_in(DOWN)
    return pl.col(status).fill_null("ON") == "ON"


def space_usable() -> pl.Expr:
    """Return the usable space of an endpoint [GB]: free + expired - to be kept free - unavailable, nulls as 0."""
    free, expired, kept, lost = (pl.col(name).fill_null(0.0) for name in SPACES)
    return free + expired - kept - lost


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
) -> pl.DataFrame:
    """Sum up the endpoints of each queue; one that is not among ``storage_endpoints`` is of no type and has no space.

    Returns:
        One row per [``snapshot``,] ``panda_queue`` (parent name) with an endpoint, sorted by it; ``snapshot`` only if
        ``storage_endpoints`` has one.

        * ``s_space`` [GB], f64, of the default output endpoint, null if that is not known (the first in name order of
          several; free space alone with ``local_space="free"``);
        * ``s_read_lan``, ``s_write_wan``: some input endpoint that counts can be read over LAN, written over WAN;
        * ``s_write_lan``, ``s_read_wan``: some output endpoint that counts can be written over LAN, read over WAN;
        * ``s_input_disk``, ``s_output_disk``: there is one that counts.

        Without ``datadisk_only`` every endpoint counts, and a direction without one is up: nothing is blacklisted.
    """
    storage, snapshot = at_snapshots(read_storage(storage_endpoints), None)
    key = [*snapshot, "panda_queue"]
    joined = read_links(queue_endpoints).join(storage, on="ddm_endpoint_name", how="inner")
    disk = pl.col("type") == "DATADISK" if rules.datadisk_only else pl.lit(value=True)
    takes = disk & (pl.col("direction") == "input")
    gives = disk & (pl.col("direction") == "output")
    flags = {
        "s_read_lan": takes & up("read_lan", rules=rules),
        "s_write_wan": takes & up("write_wan", rules=rules),
        "s_input_disk": takes,
        "s_write_lan": gives & up("write_lan", rules=rules),
        "s_read_wan": gives & up("read_wan", rules=rules),
        "s_output_disk": gives,
    }
    states = joined.group_by(key).agg(
        **{name: flag.fill_null(value=False).any() for name, flag in flags.items()}
    )
    if not rules.datadisk_only:
        none_in, none_out = ~pl.col("s_input_disk"), ~pl.col("s_output_disk")
        states = states.with_columns(
            pl.col("s_read_lan", "s_write_wan") | none_in,
            pl.col("s_write_lan", "s_read_wan") | none_out,
        )
    defaults = joined.filter(yes("is_default") & (pl.col("direction") == "output"))
    first = in_order(defaults, "ddm_endpoint_name").unique(key, keep="first", maintain_order=True)
    usable = rules.local_space == "usable"
    space = first.select(
        *key, s_space=space_usable() if usable else pl.col("space_free").fill_null(0.0)
    )
    found = states.join(space, on=key, how="left").select(*key, "s_space", *flags)
    return in_order(found, *key)


def complete_here(
    complete_locations: pl.DataFrame,
    queue_endpoints: pl.DataFrame | None,
    storage_endpoints: pl.DataFrame | None,
) -> pl.DataFrame:
    """Return the queues that own a DATADISK input endpoint with the whole input of a task.

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
