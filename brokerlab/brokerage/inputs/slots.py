"""Slots set for a queue: the look-up by share and resource type.

Source: production-jobs.md 7, item 2.
"""

from __future__ import annotations

import polars as pl

from brokerlab.brokerage.inputs.frames import SNAPSHOT, Schema, read
from brokerlab.brokerage.inputs.numbers import in_order
from brokerlab.brokerage.inputs.valid import at_snapshots

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
        rows.with_columns(pl.col("numslots").fill_null(0))
        .filter(pl.col("numslots") >= 0)
        .group_by(*queue, "gshare", "resourcetype")
        .agg(pl.col("numslots").max())
    )
    shares = entries.select(*queue, tag="gshare", own="gshare").drop_nulls("tag").unique()
    share = asked.join(shares, on=[*queue, "tag"], how="left").rename({"own": "gshare"})
    by_share = [*queue, "gshare"]
    by_type = [*by_share, "resourcetype"]
    sums = entries.group_by(by_share).agg(every_type=pl.col("numslots").sum())
    of_type = entries.drop_nulls("resourcetype").rename({"numslots": "this_type"})
    of_any = entries.filter(pl.col("resourcetype").is_null()).drop("resourcetype")
    found = (
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
    return in_order(found.select(*key, numslots=number), *key)
