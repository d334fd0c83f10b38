"""What the checks and weights read of a queue: ``q_`` its own columns, ``p_`` those of its unified parent."""

from __future__ import annotations

import polars as pl

from brokerlab.brokerage.full_chain import PRODUCTION_TYPES
from brokerlab.brokerage.rules import ProductionRules
from brokerlab.matching.catchall import read_catchalls
from brokerlab.matching.connectivity import parse_connectivity

TRANSFERRING_LIMIT = 2000

_OWN = {
    "q_corecount": pl.col("corecount").fill_null(0),
    "q_corepower": pl.col("corepower").fill_null(0),
    "q_maxtime": pl.col("maxtime").fill_null(0),
    "q_mintime": pl.col("mintime").fill_null(0),
    "q_maxrss": pl.col("maxrss").fill_null(0),
    "q_minrss": pl.col("minrss").fill_null(0),
    "q_pledgedcpu": pl.col("pledgedcpu").fill_null(0),
    "q_jobseed": pl.col("jobseed").fill_null("std"),
    "q_ucore": (pl.col("capability") == "ucore").fill_null(value=False),
    "q_streams": ((pl.col("capability") == "ucore") & (pl.col("workflow") == "pull_ups")).fill_null(
        value=False
    ),
    "q_max_io_intensity": pl.col("max_io_intensity"),
    "q_site": pl.col("pandasite"),
    "q_fairsharepolicy": pl.col("fairsharepolicy"),
}
_OF_PARENT = {
    "p_corecount": pl.col("corecount").fill_null(0),
    "p_maxdiskio": pl.col("maxdiskio").fill_null(0),
    "p_maxwdir": pl.col("maxwdir").fill_null(0),
    "p_maxinputsize": pl.col("maxinputsize").fill_null(0),
    "p_direct_lan": pl.col("direct_access_lan").fill_null(value=False),
    "p_pledgedcpu": pl.col("pledgedcpu").fill_null(0),
    "p_transferring_limit": pl.when(pl.col("transferringlimit").fill_null(0) != 0)
    .then("transferringlimit")
    .otherwise(TRANSFERRING_LIMIT),
    "p_releases": pl.col("releases"),
}


def queue_facts(tables: dict[str, pl.DataFrame], *, rules: ProductionRules) -> pl.DataFrame:
    """Return one row per queue, or per (snapshot, queue) where the table has snapshots, sorted.

    ``q`` (number of the row, i64), ``snapshot`` (null: every instant), ``panda_queue``, ``parent``, columns ``q_*`` and ``p_*``.
    """
    queues = tables["queues"].with_columns(
        parent=pl.coalesce("unified_name", "panda_queue"),
        is_unified=pl.col("is_unified").fill_null(value=False),
    )
    online = ["online", "standby"] if rules.standby_online else ["online"]
    own = queues.select(
        "snapshot", "panda_queue", "parent", "is_unified", "type", "status", **_OWN,
        q_production=pl.col("type").fill_null("production").is_in(PRODUCTION_TYPES),
        q_named_test=pl.col("panda_queue").str.to_lowercase().str.contains("test", literal=True),
        q_online=pl.col("status").is_in(online).fill_null(value=False),
        q_online_only=(pl.col("status") == "online").fill_null(value=False),
    )  # fmt: skip
    own = own.join(_from_text(queues), on=["snapshot", "panda_queue"], nulls_equal=True)
    own = own.with_columns(
        q_production=pl.col("q_production") | pl.col("q_grandly_unified"),
        q_runs_analysis=(pl.col("type") == "unified").fill_null(value=False),
    )
    parents = queues.select("snapshot", pl.col("panda_queue").alias("parent"), **_OF_PARENT)
    frame = own.join(parents, on=["snapshot", "parent"], how="left", nulls_equal=True)
    # a pseudo-queue whose parent is not listed stands for itself
    alone = pl.col("p_corecount").is_null()
    itself = queues.select("snapshot", "panda_queue", **_OF_PARENT)
    frame = frame.join(
        itself, on=["snapshot", "panda_queue"], how="left", nulls_equal=True, suffix="_own"
    ).with_columns(
        pl.when(alone).then(f"{name}_own").otherwise(name).alias(name) for name in _OF_PARENT
    )
    frame = frame.drop("^.*_own$").sort("snapshot", "panda_queue").with_row_index("q")
    return frame.with_columns(
        pl.col("q").cast(pl.Int64),
        q_version=pl.col("snapshot").fill_null(0),
        q_candidate=pl.col("q_production") & ~pl.col("is_unified"),
        q_pseudo=pl.col("panda_queue") != pl.col("parent"),
    )


def _from_text(queues: pl.DataFrame) -> pl.DataFrame:
    """Parse catchall and wnconnectivity, each distinct text once."""
    texts = queues["wnconnectivity"].unique()
    parsed = {text: parse_connectivity(text) for text in texts}

    def of_network(part: str) -> pl.Expr:
        known = {text: getattr(each, part) for text, each in parsed.items()}
        said = pl.col("wnconnectivity").replace_strict(known, default=None, return_dtype=pl.String)
        return said.fill_null("")

    flags = read_catchalls(queues.select("catchall", "params"))
    columns = queues.select("snapshot", "panda_queue", "catchall", "params", "wnconnectivity")
    return columns.join(flags, on=["catchall", "params"], how="left", nulls_equal=True).select(
        "snapshot",
        "panda_queue",
        q_jumbo=pl.col("use_jumbo_jobs"),
        q_jumbo_events=pl.col("min_events_for_jumbo"),
        q_local_only=pl.col("use_only_local_data"),
        q_bare=pl.col("bare_mode"),
        q_grandly_unified=pl.col("grandly_unified"),
        q_network=of_network("network"),
        q_stack=of_network("ip_stack"),
    )
