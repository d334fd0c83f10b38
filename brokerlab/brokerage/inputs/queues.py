"""What the tables say of a queue: its pseudo-queues, the states of its storage endpoints, its slots.

Source: production-jobs.md, its checks 21 to 27, and 7, item 2.
"""

from __future__ import annotations

import polars as pl

from brokerlab.brokerage.inputs.frames import (
    SNAPSHOT,
    Schema,
    at_snapshots,
    in_order,
    read,
    run,
    yes,
)
from brokerlab.brokerage.rules import ProductionRules
from brokerlab.matching.catchall import read_catchalls

PER_CORE_FLAG = "per_core_attr"
PER_CORE = ("maxrss", "minrss", "maxwdir")
UNIFIED_CAPABILITY = "ucore"

_TYPES: Schema = {"resource_name": pl.String}
_BOUNDS: Schema = {
    "mincore": pl.Int64,
    "maxcore": pl.Int64,
    "minrampercore": pl.Float64,
    "maxrampercore": pl.Float64,
}
_USED: Schema = {
    **SNAPSHOT,
    "unified_name": pl.String,
    "is_unified": pl.Boolean,
    "capability": pl.String,
    "corecount": pl.Int64,
    "maxrss": pl.Float64,
    "minrss": pl.Float64,
}


def with_used(queues: pl.DataFrame, used: Schema) -> pl.DataFrame:
    """Return the queues with the named columns added as null, or cast, and every other column untouched."""
    named = read("queues", queues, {"panda_queue": pl.String}, used)
    return queues.with_columns(named)


def pseudo_queues(queues: pl.DataFrame, resource_types: pl.DataFrame | None) -> pl.DataFrame:
    """Add the pseudo-queues of unified queues and mark their parents; ``unified_name`` and ``is_unified`` are filled.

    A queue of capability ``ucore`` that has none yet gets one pseudo-queue, ``PARENT/RESOURCE``, per
    resource type with mincore <= max(1, its cores):

    * corecount = max(min(parent, maxcore), mincore);
    * maxrss = min(corecount * maxrampercore, parent maxrss * corecount / parent cores);
    * minrss = max(corecount * minrampercore - corecount + 1, parent minrss * corecount / parent cores).

    Without a bound per core [MB] the parent's own value takes the place of the first term. Parent cores 0 and
    null are 1 in the divisions. A null maxrss or minrss of the parent is no limit. Other columns go over as they are.

    Source: production-jobs.md.
    """
    had_snapshot = "snapshot" in queues.columns
    rows = with_used(queues, _USED).with_columns(
        pl.coalesce("unified_name", "panda_queue").alias("unified_name"), yes("is_unified")
    )
    key = ["snapshot", "unified_name"]
    derived = rows.filter(pl.col("unified_name") != pl.col("panda_queue")).select(key).unique()
    is_parent = (pl.col("capability") == UNIFIED_CAPABILITY) & (
        pl.col("unified_name") == pl.col("panda_queue")
    )
    parents = rows.filter(is_parent).join(derived, on=key, how="anti", nulls_equal=True)
    types = read("resource_types", resource_types, _TYPES, _BOUNDS)
    children = _children(parents, types).select(rows.columns)
    marked = pl.concat([parents.select(key), derived]).with_columns(marked=pl.lit(value=True))
    old = rows.join(marked, on=key, how="left", nulls_equal=True).with_columns(
        is_unified=pl.col("is_unified")
        | (yes("marked") & (pl.col("unified_name") == pl.col("panda_queue")))
    )
    result = pl.concat([old.select(rows.columns), children]).sort("snapshot", "panda_queue")
    return result if had_snapshot else result.drop("snapshot")


def _children(parents: pl.DataFrame, types: pl.DataFrame) -> pl.DataFrame:
    cores = pl.col("parent_cores")
    pairs = (
        parents.with_columns(parent_cores=pl.col("corecount").fill_null(0))
        .join(types, how="cross")
        .filter(pl.col("mincore").fill_null(0) <= pl.max_horizontal(1, cores))
        .with_columns(
            corecount=pl.max_horizontal(pl.min_horizontal(cores, "maxcore"), "mincore"),
            divisor=pl.max_horizontal(1, cores).cast(pl.Float64),
        )
    )
    most = pl.col("corecount") * pl.col("maxrampercore")
    least = pl.col("corecount") * pl.col("minrampercore") - pl.col("corecount") + 1
    return pairs.with_columns(
        panda_queue=pl.col("panda_queue") + "/" + pl.col("resource_name"),
        is_unified=pl.lit(value=False),
        maxrss=pl.min_horizontal(
            pl.coalesce(most, "maxrss"), pl.col("maxrss") * pl.col("corecount") / pl.col("divisor")
        ),
        minrss=pl.max_horizontal(
            pl.coalesce(least, "minrss"), pl.col("minrss") * pl.col("corecount") / pl.col("divisor")
        ),
    )


def scale_per_core(queues: pl.DataFrame) -> pl.DataFrame:
    """Multiply maxrss, minrss and maxwdir (f64) of queues flagged ``per_core_attr`` by their cores, once, when they are loaded.

    The flag is an item of ``catchall`` that starts with ``per_core_attr``; a parameter of that name in ``params`` (JSON)
    wins. Cores 0 and null count as 1.

    Source: production-jobs.md.
    """
    used: Schema = {
        "catchall": pl.String,
        "params": pl.String,
        "corecount": pl.Int64,
        **dict.fromkeys(PER_CORE, pl.Float64),
    }
    rows = with_used(queues, used)
    read_once = read_catchalls(rows).select("catchall", "params", flagged=PER_CORE_FLAG)
    cores = pl.max_horizontal(1, pl.col("corecount").fill_null(0))
    scaled = rows.join(
        read_once, on=["catchall", "params"], how="left", nulls_equal=True, maintain_order="left"
    ).with_columns(
        pl.when("flagged").then(pl.col(name) * cores).otherwise(pl.col(name)).alias(name)
        for name in PER_CORE
    )
    return scaled.drop("flagged")


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
    links = read_links(queue_endpoints).lazy()
    joined = links.join(storage.lazy(), on="ddm_endpoint_name").cache()
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
    first = defaults.sort("ddm_endpoint_name", maintain_order=True).unique(
        key, keep="first", maintain_order=True
    )
    usable = rules.local_space == "usable"
    space = first.select(
        *key, s_space=space_usable() if usable else pl.col("space_free").fill_null(0.0)
    )
    result = states.join(space, on=key, how="left").select(*key, "s_space", *flags)
    return in_order(run(result), *key)


def complete_here(
    complete_locations: pl.DataFrame,
    queue_endpoints: pl.DataFrame | None,
    storage_endpoints: pl.DataFrame | None,
) -> pl.DataFrame:
    """Return the queues that own a DATADISK input endpoint with the whole input of a task.

    ``jeditaskid``, [``snapshot``,] ``panda_queue`` (parent name), one row per pair that has one, sorted.
    """
    key = [name for name in ("jeditaskid", "snapshot") if name in complete_locations.columns]
    disks = read_storage(storage_endpoints).lazy().filter(pl.col("type") == "DATADISK")
    inputs = (
        read_links(queue_endpoints)
        .lazy()
        .filter(pl.col("direction") == "input")
        .join(disks.select("ddm_endpoint_name").unique(), on="ddm_endpoint_name", how="semi")
    )
    here = complete_locations.lazy().join(inputs, on="ddm_endpoint_name", how="inner")
    return run(here.select(*key, "panda_queue").unique().sort(*key, "panda_queue"))


_SLOTS: Schema = {"panda_queue": pl.String}
_FACTS: Schema = {**SNAPSHOT, "gshare": pl.String, "resourcetype": pl.String, "numslots": pl.Int64}
_WANTED: Schema = {"panda_queue": pl.String, "tag": pl.String}


def slot_counts(slots: pl.DataFrame | None, wanted: pl.DataFrame) -> pl.DataFrame:
    """Look up the slots of queues (parent name) for shares, or work queues, and resource types.

    Rows of the tag itself go before rows of any share (null), and hide them; among these the row of the
    resource type goes before that of any type (null). A null resource type asks for the sum over all types. Null ``numslots``
    is 0, rows below 0 are ignored, of several rows with the same key the largest counts.

    Returns:
        One row per distinct ``snapshot, panda_queue, tag, resource_type``, sorted by them, with ``numslots``
        i64; null = no entry. ``numslots`` not null is what check 42 (``no_pilot``) asks for.

    Source: production-jobs.md 7 item 2, check 42.
    """
    asked = read("wanted", wanted, _WANTED, {"resource_type": pl.String, **SNAPSHOT}).unique()
    rows, snapshot = at_snapshots(read("slots", slots, _SLOTS, _FACTS), asked)
    queue = [*snapshot, "panda_queue"]
    entries = (
        rows.lazy()
        .with_columns(pl.col("numslots").fill_null(0))
        .filter(pl.col("numslots") >= 0)
        .group_by(*queue, "gshare", "resourcetype")
        .agg(pl.col("numslots").max())
        .cache()
    )
    shares = entries.select(*queue, tag="gshare", own="gshare").drop_nulls("tag").unique()
    share = asked.lazy().join(shares, on=[*queue, "tag"], how="left").rename({"own": "gshare"})
    by_share = [*queue, "gshare"]
    by_type = [*by_share, "resourcetype"]
    sums = entries.group_by(by_share).agg(every_type=pl.col("numslots").sum())
    of_type = entries.drop_nulls("resourcetype").rename({"numslots": "this_type"})
    of_any = entries.filter(pl.col("resourcetype").is_null()).drop("resourcetype")
    result = (
        share.with_columns(resourcetype="resource_type")
        .join(sums, on=by_share, how="left", nulls_equal=True)
        .join(of_type, on=by_type, how="left", nulls_equal=True)
        .join(of_any.rename({"numslots": "any_type"}), on=by_share, how="left", nulls_equal=True)
    )
    number = (
        pl.when(pl.col("resource_type").is_null())
        .then("every_type")
        .otherwise(pl.coalesce("this_type", "any_type"))
    )
    key = ["snapshot", "panda_queue", "tag", "resource_type"]
    return in_order(run(result.select(*key, numslots=number)), *key)
