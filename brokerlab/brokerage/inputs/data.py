"""How much of a task's input lies where its queues can read it.

Source: production-jobs.md 4.
"""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from brokerlab.brokerage.inputs.completeness import real
from brokerlab.brokerage.inputs.frames import TASK, Schema, read
from brokerlab.brokerage.inputs.valid import for_tasks

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


def _distinct_files(
    tasks: pl.DataFrame, datasets: pl.DataFrame | None, files: pl.DataFrame | None
) -> pl.DataFrame:
    """Return the files of the tasks' real datasets.

    Columns ``jeditaskid, datasetname, lfn, fsize``, and ``name``: number of the distinct (task, lfn).
    """
    wanted = for_tasks(real(datasets, distributed=True), tasks)
    rows = for_tasks(read("files", files, _FILES, _FILE_FACTS), tasks)
    kept = rows.join(wanted, on=["jeditaskid", "datasetname"], how="semi")
    names = kept.group_by("jeditaskid", "lfn").agg(pl.col("fsize").max().fill_null(0))
    places = kept.select("jeditaskid", "lfn", "datasetname").unique()
    return places.join(names.with_row_index("name"), on=["jeditaskid", "lfn"], how="inner")


def input_totals(
    tasks: pl.DataFrame, datasets: pl.DataFrame | None, files: pl.DataFrame | None
) -> pl.DataFrame:
    """Return the size of each task's input; a name in several datasets counts once, null ``fsize`` as 0.

    Returns:
        One row per task, sorted: ``jeditaskid``, ``total`` [B] i64, ``nfiles`` i64; 0 without input.

    Raises:
        SchemaError: A missing key column or a column of another type.

    Source: production-jobs.md 4.
    """
    asked = read("tasks", tasks, TASK).unique()
    totals = (
        _distinct_files(asked, datasets, files)
        .unique("name")
        .group_by("jeditaskid")
        .agg(total=pl.col("fsize").sum(), nfiles=pl.len().cast(pl.Int64))
    )
    return (
        asked.join(totals, on="jeditaskid", how="left")
        .with_columns(pl.col("total", "nfiles").fill_null(0))
        .sort("jeditaskid")
    )


def input_at_queues(
    tasks: pl.DataFrame,
    datasets: pl.DataFrame | None,
    files: pl.DataFrame | None,
    file_locations: pl.DataFrame | None,
    kinds: Sequence[str] = WITH_TAPE,
) -> pl.DataFrame:
    """Return how much of each task's input each queue (parent name) has at places of some kinds: localdisk, cache, localtape.

    Returns:
        One row per ``jeditaskid``, ``panda_queue`` with anything, sorted: ``avail``, ``navail`` on disk
        or in cache, ``avail_t``, ``navail_t`` with tape too; i64, [B] and [files]. A pair without a row
        has nothing.

    Raises:
        SchemaError: A missing key column or a column of another type.

    Source: production-jobs.md 4.
    """
    asked = read("tasks", tasks, TASK).unique()
    wanted = _distinct_files(asked, datasets, files)
    places = read("file_locations", file_locations, _PLACES, TASK).lazy()
    # as many rows as files times queues, with long names: streamed, so that these are not copied
    here = (
        for_tasks(places.filter(pl.col("kind").is_in(kinds)), asked.lazy())
        .join(wanted.lazy(), on=["jeditaskid", "datasetname", "lfn"], how="inner")
        .select("jeditaskid", "panda_queue", "name", "fsize", disk=pl.col("kind").is_in(ON_DISK))
        .group_by("jeditaskid", "panda_queue", "name")
        .agg(pl.col("fsize").first(), pl.col("disk").any())
    )
    return (
        here.group_by("jeditaskid", "panda_queue")
        .agg(
            avail=pl.col("fsize").filter("disk").sum(),
            navail=pl.col("disk").sum().cast(pl.Int64),
            avail_t=pl.col("fsize").sum(),
            navail_t=pl.len().cast(pl.Int64),
        )
        .sort("jeditaskid", "panda_queue")
        .collect(engine="streaming")
    )
