"""How much of a task's input lies where its queues can read it.

Source: production-jobs.md 4.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import polars as pl

from brokerlab.brokerage.inputs.completeness import real
from brokerlab.brokerage.inputs.frames import TASK, Schema, read
from brokerlab.brokerage.inputs.numbers import packed, starts
from brokerlab.brokerage.inputs.valid import for_tasks, valid_for

SUMS = ("avail", "navail", "avail_t", "navail_t")
ON_DISK = ("localdisk", "cache")
WITH_TAPE = (*ON_DISK, "localtape")

_FILES: Schema = {"datasetname": pl.String, "lfn": pl.String}
_FILE_FACTS: Schema = {**TASK, "fsize": pl.Int64}
_PLACES: Schema = {
    "datasetname": pl.String,
    "panda_queue": pl.String,
    "lfn": pl.String,
    "kind": pl.String,
}
_HERE: Schema = {"jeditaskid": pl.Int64, "panda_queue": pl.String} | dict.fromkeys(SUMS, pl.Int64)


def input_files(
    tasks: pl.DataFrame, datasets: pl.DataFrame | None, files: pl.DataFrame | None
) -> pl.DataFrame:
    """Return the files of the tasks' real datasets.

    Columns ``jeditaskid, datasetname, lfn, fsize``, and ``name``: number of the distinct (task, lfn).
    """
    tasks = read("tasks", tasks, TASK).unique()
    wanted = for_tasks(real(datasets, distributed=True), tasks)
    rows = for_tasks(read("files", files, _FILES, _FILE_FACTS), tasks)
    kept = rows.join(wanted, on=["jeditaskid", "datasetname"], how="semi").drop_nulls("lfn")
    kept = kept.with_columns(name=pl.Series(packed(kept.select("jeditaskid", "lfn"))))
    sizes = kept.group_by("name").agg(pl.col("fsize").max().fill_null(0))
    places = kept.select("jeditaskid", "lfn", "datasetname", "name")
    places = places[pl.Series(packed(places.select("name", "datasetname"))).arg_unique()]
    return places.join(sizes, on="name", how="inner")


def input_totals(tasks: pl.DataFrame, files: pl.DataFrame) -> pl.DataFrame:
    """Return the size of each task's input (:func:`input_files`): ``jeditaskid, total`` [B] ``, nfiles`` (i64; 0 without), sorted.

    A name in several datasets counts once, null ``fsize`` as 0.

    Source: production-jobs.md 4.
    """
    asked = read("tasks", tasks, TASK).unique()
    totals = (
        files.unique("name")
        .group_by("jeditaskid")
        .agg(total=pl.col("fsize").sum(), nfiles=pl.len().cast(pl.Int64))
    )
    return (
        asked.join(totals, on="jeditaskid", how="left")
        .with_columns(pl.col("total", "nfiles").fill_null(0))
        .sort("jeditaskid")
    )


def input_at_queues(
    files: pl.DataFrame, file_locations: pl.DataFrame | None, kinds: Sequence[str] = WITH_TAPE
) -> pl.DataFrame:
    """Return how much of each task's input (:func:`input_files`) each queue (parent name) has at places of some kinds.

    Kinds are localdisk, cache, localtape. One row per ``jeditaskid``, ``panda_queue`` with anything, sorted: ``avail``, ``navail`` on disk or in cache,
    ``avail_t``, ``navail_t`` with tape too; i64, [B] and [files].

    Source: production-jobs.md 4.
    """
    places = read("file_locations", file_locations, _PLACES, TASK).filter(
        pl.col("kind").is_in(kinds)
    )
    copies = places.select(
        "jeditaskid", "datasetname", "lfn", "panda_queue", disk=pl.col("kind").is_in(ON_DISK)
    )
    here = valid_for(files, copies, on=["datasetname", "lfn"], keys=["jeditaskid"], in_order=False)
    if here.is_empty():
        return pl.DataFrame(schema=_HERE)
    # sorted by place, then file: every file of a place counts once, and is on disk if any copy is
    key = packed(here.select("jeditaskid", "panda_queue", "name"))
    order = np.argsort(key, kind="stable")
    file = starts(key[order])
    row = order[file]
    on_disk = np.logical_or.reduceat(here["disk"].to_numpy()[order], file)
    size = here["fsize"].to_numpy()[row]
    place = starts(packed(here.select("jeditaskid", "panda_queue"))[row])
    sums = (size * on_disk, on_disk.astype(np.int64), size, np.ones_like(size))
    return here.select("jeditaskid", "panda_queue")[pl.Series(row[place])].with_columns(
        pl.Series(name, np.add.reduceat(each, place)) for name, each in zip(SUMS, sums, strict=True)
    )
