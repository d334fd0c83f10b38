"""What tasks read and write: datasets, files, replicas, and where files can be read."""

from __future__ import annotations

from typing import Any

import narwhals.stable.v2 as nw
import polars as pl

from brokerlab.archive.contracts import read_as
from brokerlab.brokerage.inputs.data import PSEUDO_TYPES
from brokerlab.brokerage.replaying.clock import Clock, as_of
from brokerlab.engines import collect, last_attempts, narrow

INPUTS = ("input", *PSEUDO_TYPES)
MERGED = ("trn_log", "trn_output")
"""What merge jobs read."""
OUTPUTS = ("output", "log")
COMPLETE = (pl.col("found") == pl.col("total")) & (pl.col("total") > 0)
"""No file of a replica is missing."""
_DATASETS = read_as(
    "datasets",
    *("jeditaskid", "datasetid", "masterid", "nfiles", "nevents", "datasetname"),
    *("containername", "type", "attributes", "storagetoken", "creationtime"),
    *("modificationtime",),
)
_FILES = read_as(
    "files",
    *("jeditaskid", "datasetid", "fileid", "lfn", "type", "fsize", "nevents", "startevent"),
    *("endevent", "boundaryid", "attemptnr"),
)
_REPLICAS = read_as(
    "replicas",
    *("datasetname", "ddm_endpoint_name", "found", "total", "bytes", "is_tape", "vp"),
    *("readable_lan", "readable_wan"),
)


def read_datasets(frame: Any, chosen: list[int]) -> pl.DataFrame:
    """Collect the datasets of some tasks, sorted by task and dataset."""
    lazy = narrow(frame, "datasets", _DATASETS, ("jeditaskid", "datasetid", "type"))
    return collect(lazy.filter(nw.col("jeditaskid").is_in(chosen))).sort("jeditaskid", "datasetid")


def input_datasets(datasets: pl.DataFrame, *, merging: bool = False) -> pl.DataFrame:
    """Return the input datasets of the tasks, or of merge jobs (contract ``Datasets``), with ``datasetid``, ``type``, ``pseudo``.

    Of their attributes ``ratio=N``, ``nosplit`` and ``distributed`` count.
    """
    kinds = MERGED if merging else INPUTS
    attributes = pl.col("attributes").fill_null("")
    pseudo = pl.col("type").is_in(PSEUDO_TYPES)
    ratio = attributes.str.extract(r"(?:^|,)ratio=(\d+)", 1).cast(pl.Int64)
    return datasets.filter(pl.col("type").is_in(kinds)).select(
        "jeditaskid",
        "datasetid",
        "datasetname",
        "type",
        is_master=pl.col("masterid").is_null(),
        pseudo=pseudo,
        distributed=pseudo | attributes.str.contains(r"(?:^|,)distributed(?:,|$)"),
        ratio=ratio,
        nosplit=attributes.str.contains(r"(?:^|,)nosplit(?:,|$)"),
    )


def output_datasets(datasets: pl.DataFrame) -> pl.DataFrame:
    """Return the datasets of type output and log (contract ``OutputDatasets``), by id."""
    own = datasets.filter(pl.col("type").is_in(OUTPUTS))
    return own.select("jeditaskid", "datasetid", "datasetname", "type", "storagetoken")


def master_times(datasets: pl.DataFrame) -> pl.DataFrame:
    """Return when the master input of each task was made and last changed: ``jeditaskid``, ``master_*time``."""
    master = datasets.filter(pl.col("type").is_in(INPUTS) & pl.col("masterid").is_null())
    return master.unique("jeditaskid", keep="first", maintain_order=True).select(
        "jeditaskid", master_creationtime="creationtime", master_modificationtime="modificationtime"
    )


def files_read(frame: Any) -> nw.LazyFrame[Any]:
    """Return the files that jobs read, of any task, in the engine of the table ``files``."""
    lazy = narrow(frame, "files", _FILES, ("jeditaskid", "datasetid"))
    return lazy.filter(nw.col("type").is_in((*INPUTS, *MERGED)))


def input_files(frame: Any, inputs: pl.DataFrame) -> pl.DataFrame:
    """Return the files of the tasks' inputs (contract ``Files``), each file and range once, sorted.

    All files of the task's input count as considered: the archive does not tell which of them one cycle took. A file
    without name is known by its number.
    """
    chosen = inputs["jeditaskid"].unique().to_list()
    mine = files_read(frame).filter(nw.col("jeditaskid").is_in(chosen))
    names = inputs.select("jeditaskid", "datasetid", "datasetname")
    own = collect(last_attempts(mine)).drop("attemptnr")
    result = own.join(names, on=["jeditaskid", "datasetid"]).drop("datasetid", "type")
    number = pl.format("file {}", "fileid")
    named = result.with_columns(lfn=pl.coalesce("lfn", number))
    known = named.drop_nulls(["lfn", "datasetname"])
    columns = ["jeditaskid", "datasetname", "lfn", "startevent", "endevent"]
    return known.sort(*columns, "fsize", "nevents", "fileid").unique(
        columns, keep="last", maintain_order=True
    )


def replicas(frame: Any, inputs: pl.DataFrame, tasks: pl.DataFrame, clock: Clock) -> pl.DataFrame:
    """Return the replicas of the tasks' inputs (contract ``Replicas``), sorted; with ``snapshot`` if they have a history.

    The size of a dataset is that of its largest complete replica, else scaled from the largest replica.
    """
    names = inputs.filter(~pl.col("distributed")).select("jeditaskid", "datasetname").drop_nulls()
    asked = names["datasetname"].unique().to_list()
    held = as_of(
        frame,
        "replicas",
        _REPLICAS,
        clock,
        entity=["datasetname", "ddm_endpoint_name"],
        where=nw.col("datasetname").is_in(asked),
    )
    when = [name for name in ("snapshot",) if name in held.columns]
    wanted = tasks.select("jeditaskid", *when).join(names, on="jeditaskid").unique()
    own = wanted.join(held, on=[*when, "datasetname"])
    whole = pl.col("bytes").filter(COMPLETE).max()
    scaled = (pl.col("bytes") * pl.col("total") / pl.col("found")).filter(pl.col("found") > 0).max()
    dataset = ["jeditaskid", *when, "datasetname"]
    sized = own.with_columns(
        tsize=pl.coalesce(whole, scaled.cast(pl.Int64)).over(dataset), asize=pl.col("bytes")
    )
    return sized.drop("ts", "bytes").sort(*dataset, "ddm_endpoint_name")


def file_locations(
    files: pl.DataFrame, replicas: pl.DataFrame, links: pl.DataFrame, endpoints: pl.DataFrame
) -> pl.DataFrame:
    """Derive where each file can be read: at every input endpoint of a queue with a complete replica.

    Returns:
        ``jeditaskid``, ``snapshot`` (if the replicas have it), ``datasetname, panda_queue, lfn, kind``: ``localdisk``,
        ``localtape`` for local endpoints (``cache`` for virtual placement), ``remote`` for others; sorted.

    Source:
        production-jobs.md.
    """
    tape = endpoints.select("ddm_endpoint_name", on_tape="is_tape").unique("ddm_endpoint_name")
    reads = links.filter(pl.col("direction") == "input").join(
        tape, on="ddm_endpoint_name", how="left"
    )
    complete = replicas.filter(COMPLETE)
    when = [name for name in ("snapshot",) if name in replicas.columns]
    kind = (
        pl.when(~pl.col("is_local").fill_null(value=True))
        .then(pl.lit("remote"))
        .when(pl.col("vp").fill_null(value=False))
        .then(pl.lit("cache"))
        .when(pl.coalesce("is_tape", "on_tape").fill_null(value=False))
        .then(pl.lit("localtape"))
        .otherwise(pl.lit("localdisk"))
    )
    keys = ["jeditaskid", *when, "datasetname", "panda_queue"]
    kinds = complete.join(reads, on="ddm_endpoint_name").select(*keys, kind=kind).unique()
    # many files in few places: sorted apart, and joined in order
    distinct = files.select("jeditaskid", "datasetname", "lfn").unique().sort("lfn")
    result = (
        kinds.select(keys)
        .unique()
        .sort(keys)
        .join(distinct, on=["jeditaskid", "datasetname"], maintain_order="left_right")
        .join(kinds.sort("kind"), on=keys, maintain_order="left_right")
    )
    return result.select(*keys, "lfn", "kind")
