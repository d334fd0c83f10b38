"""Where the input of tasks is, and how quick links are, as an archive knows it."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import polars as pl

from brokerlab.brokerage.inputs.data import input_at_queues, input_files, input_totals
from brokerlab.brokerage.network_weight import THROUGHPUT_KEYS
from brokerlab.brokerage.replaying.build import Replay
from brokerlab.calibrate.simulation.world import Transfers

NEEDED = ("files", "file_locations", "replicas", "storage_endpoints")
WINDOWS = ("1d", "1w", "1h")
"""Which throughput stands for a link, the first that is known."""


def known(replay: Replay) -> bool:
    """Tell whether the archive knows where input is."""
    return all(name in replay.tables and not replay.tables[name].is_empty() for name in NEEDED)


def of_replay(
    archive: Any, replay: Replay, jobs: pl.DataFrame, transfers: Transfers
) -> dict[str, pl.DataFrame]:
    """Return ``present``, ``sources`` and ``links`` where data are to travel, else nothing."""
    if transfers.mode != "links":
        return {}
    result = {"links": links(archive, jobs)}
    if known(replay):
        result |= {"present": present(replay), "sources": sources(replay)}
    return result


def present(replay: Replay) -> pl.DataFrame:
    """Return the part of each task's input that each queue has, on disk or tape (contract ``Present``)."""
    tables = replay.tables
    tasks = tables["tasks"].select("jeditaskid").unique()
    files = input_files(tasks, tables["datasets"], tables["files"])
    here = input_at_queues(files, tables["file_locations"])
    total = input_totals(tasks, files).filter(pl.col("total") > 0)
    part = pl.col("avail_t") / pl.col("total")
    return here.join(total, on="jeditaskid").select(
        "jeditaskid", "panda_queue", part=part.clip(0, 1)
    )


def sources(replay: Replay) -> pl.DataFrame:
    """Return the sites with a complete replica of some input dataset of each task (contract ``Sources``)."""
    places = replay.tables["storage_endpoints"].select("ddm_endpoint_name", site="site_name")
    complete = (pl.col("found") == pl.col("total")) & (pl.col("total") > 0)
    return (
        replay.tables["replicas"]
        .filter(complete & pl.col("jeditaskid").is_not_null())
        .join(places.drop_nulls().unique(), on="ddm_endpoint_name")
        .select("jeditaskid", "site")
        .unique()
        .sort("jeditaskid", "site")
    )


def links(archive: Any, jobs: pl.DataFrame) -> pl.DataFrame:
    """Return the median throughput of every link in the time of the jobs, else before it (contract ``Links``).

    What was measured after the last job was made is not looked at.
    """
    nothing = pl.DataFrame(schema={"src": pl.String, "dst": pl.String, "mbps": pl.Float64})
    if not archive.has("network_matrix"):
        return nothing
    keys = [THROUGHPUT_KEYS[window] for window in WINDOWS]
    first, last = jobs["creationtime"].min(), jobs["creationtime"].max()
    measured = archive.scan("network_matrix").filter(pl.col("key").is_in(keys))
    rows = measured.select("src", "dst", "key", "value", "ts").collect()
    before = rows.filter((pl.col("ts") <= pl.lit(last)) | pl.col("ts").is_null())
    recent = before.filter(
        (pl.col("ts") >= pl.lit(first) - timedelta(days=1)) | pl.col("ts").is_null()
    )
    medians = (
        (recent if recent.height else before)
        .group_by("src", "dst", "key")
        .agg(pl.col("value").median())
    )
    rank = pl.col("key").replace_strict(dict(zip(keys, range(len(keys)), strict=True)))
    best = (
        medians.drop_nulls()
        .sort("src", "dst", rank)
        .unique(["src", "dst"], keep="first", maintain_order=True)
    )
    return best.select("src", "dst", mbps="value") if best.height else nothing
