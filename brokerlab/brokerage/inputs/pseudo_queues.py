"""Pseudo-queues of unified queues, one per resource type, and queue parameters given per core.

Source: production-jobs.md.
"""

from __future__ import annotations

import polars as pl

from brokerlab.brokerage.inputs.frames import SNAPSHOT, Schema, read, yes
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
