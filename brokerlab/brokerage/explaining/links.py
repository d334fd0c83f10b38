"""What is known of the link from a queue's storage to the nucleus."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import polars as pl

from brokerlab.brokerage.production_jobs.facts import World
from brokerlab.brokerage.words import number

LINK = ("t_nucleus", "t_nucleus_id", "t_express", "p_storage_id")
"""Columns of a pair that say which link it is."""
_WINDOWS = {"1h": "the last hour", "1d": "the last day", "1w": "the last week"}


def link(world: World, snapshot: int, pair: Mapping[str, Any]) -> str:
    """Say how fast outputs get to the nucleus.

    Args:
        world: What was decided on.
        snapshot: The instant.
        pair: :data:`LINK`.
    """
    if pair["t_nucleus"] is None:
        return "the task has no nucleus"
    if pair["p_storage_id"] == pair["t_nucleus_id"]:
        return "its storage is that of the nucleus"
    sites = world.ids.sites.filter(pl.col("id") == pair["p_storage_id"])["site"]
    if not len(sites):
        return "the site of its storage is not known"
    known = world.links.filter(
        pl.col("snapshot") == snapshot,
        pl.col("nucleus") == pair["t_nucleus"],
        pl.col("src") == sites[0],
        pl.col("express") == pair["t_express"],
    )
    name = f"from {sites[0]} to {pair['t_nucleus']}"
    if not known.height:
        return f"nothing is known of the link {name}"
    row = known.row(0, named=True)
    speed = f"closeness {number(row['closeness'])}" if row["closeness"] is not None else "no metric"
    if row["mbps"] is not None:
        speed = f"{number(row['mbps'])} MB/s over {_WINDOWS[row['window']]}"
    return (
        f"the link {name} weighs {number(row['throughput_weight'])} for its throughput ({speed}) and "
        f"{number(row['queued_weight'])} for its queue ({number(row['n_queued'])} files)"
    )
