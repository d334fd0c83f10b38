"""Unit formulas of tasks and files; whether the input of a task is complete anywhere, and how much of it its queues can read.

Source: production-jobs.md 1, B2 and B3, 4 and 5.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from brokerlab.brokerage.inputs.frames import (
    KEY,
    SNAPSHOT,
    TASK,
    Schema,
    at_snapshots,
    for_tasks,
    packed,
    read,
    run,
    starts,
    valid_for,
    yes,
)
from brokerlab.brokerage.inputs.queues import read_storage, up
from brokerlab.brokerage.rules import ProductionRules
from brokerlab.gdpconfig import Config
from brokerlab.units import GB, KB, MB

WORK_MARGIN_B = 300 * MB
MILLI = 1000
MOST_B = 2**62

_DISK_FACTORS = {"kB": KB, "MB": MB, "GB": GB}
HS06_UNITS = ("HS06sPerEvent", "HS06sPerEventFixed", "mHS06sPerEvent", "mHS06sPerEventFixed")


def out_bytes() -> pl.Expr:
    """Return the output of a job per event or per MB of input [B]: the unit *starts* with kB, MB or GB, else bytes; null is 0."""
    factor = pl.lit(1, dtype=pl.Int64)
    for prefix, size in _DISK_FACTORS.items():
        starts = pl.col("outdiskunit").fill_null("").str.starts_with(prefix)
        factor = pl.when(starts).then(pl.lit(size, dtype=pl.Int64)).otherwise(factor)
    count = pl.col("outdiskcount").cast(pl.Int64).fill_null(0).clip(lower_bound=0)
    return _bytes(count, factor)


def work_count_bytes() -> pl.Expr:
    """Return ``workdiskcount`` [B], i64; null stays null. The unit *is* kB, MB or GB, else bytes."""
    factor = pl.lit(1, dtype=pl.Int64)
    for unit, size in _DISK_FACTORS.items():
        factor = (
            pl.when(pl.col("workdiskunit") == unit)
            .then(pl.lit(size, dtype=pl.Int64))
            .otherwise(factor)
        )
    return _bytes(pl.col("workdiskcount").cast(pl.Int64), factor)


def _bytes(count: pl.Expr, factor: pl.Expr) -> pl.Expr:
    """Return a count of a unit [B]; what whole numbers cannot hold, such as bytes called GB, is the most of them."""
    return count.clip(upper_bound=MOST_B // factor) * factor


def work_bytes(*, adds: bool) -> pl.Expr:
    """Return the working directory [B]: count + 300 MB (``adds``, switch ``workdisk_adds``, J8; null is 0), else the larger."""
    count = work_count_bytes()
    if adds:
        return (count + WORK_MARGIN_B).fill_null(0)
    return pl.max_horizontal(count, pl.lit(WORK_MARGIN_B, dtype=pl.Int64))


def scales_with_events() -> pl.Expr:
    """Return whether ``outdiskcount`` is per event (unit ends in PerEvent), else per MB of input."""
    return pl.col("outdiskunit").fill_null("").str.ends_with("PerEvent")


def hs06() -> pl.Expr:
    """Return whether the wall time comes from HS06 s per event."""
    return pl.col("cputimeunit").is_in(list(HS06_UNITS)).fill_null(value=False)


def cputime_s() -> pl.Expr:
    """Return the CPU time of an event [HS06 s], f64; null where undefined or not in HS06 mode."""
    value = pl.col("cputime").cast(pl.Float64)
    milli = pl.col("cputimeunit").str.starts_with("m")
    # by a column: Polars multiplies with the reciprocal of a number, which differs in the last bit
    scaled = value / pl.when(milli).then(float(MILLI)).otherwise(1.0)
    return pl.when(hs06()).then(scaled)


def nevents() -> pl.Expr:
    """Return the events of a file, i64: range used (at least 1), else ``nevents`` if > 0, else 1."""
    used = (pl.col("endevent") - pl.col("startevent") + 1).clip(lower_bound=1)
    whole = pl.when(pl.col("nevents") > 0).then(pl.col("nevents"))
    return pl.coalesce(used, whole, pl.lit(1)).cast(pl.Int64)


def effective_mb() -> pl.Expr:
    """Return the part of a file's size that its event range takes [MB], in whole bytes; all without range, and 0 B is 1 MB."""
    size = pl.col("fsize").cast(pl.Int64).fill_null(0)
    used = pl.col("endevent") - pl.col("startevent") + 1
    known = pl.col("nevents") > 0
    part = (size * used).cast(pl.Float64) / pl.when(known).then("nevents")
    in_range = used.is_not_null() & known
    effective = pl.when(in_range).then(part.cast(pl.Int64, strict=False)).otherwise(size)
    return pl.when(effective == 0).then(1.0).otherwise(effective / MB)


INPUT_INCOMPLETE = "input_incomplete"

PSEUDO_NAMES = ("pseudo_dataset", "seq_number")
PSEUDO_TYPES = ("pseudo_input", "pp_input")

_TASKS: Schema = {**TASK, **SNAPSHOT, "vo": pl.String, "inputprestaging": pl.Boolean}
_DATASETS: Schema = {"datasetname": pl.String}
_DATASET_FLAGS: Schema = {
    **TASK,
    "distributed": pl.Boolean,
    "pseudo": pl.Boolean,
    "type": pl.String,
}
_REPLICAS: Schema = {"datasetname": pl.String, "ddm_endpoint_name": pl.String}
_REPLICA_FACTS: Schema = {
    **TASK,
    **SNAPSHOT,
    "found": pl.Int64,
    "total": pl.Int64,
    "vp": pl.Boolean,
    "is_tape": pl.Boolean,
    "readable_lan": pl.Boolean,
    "readable_wan": pl.Boolean,
}


@dataclass(frozen=True)
class Completeness:
    """Where the input of each task is complete.

    Attributes:
        tasks: ``jeditaskid``, ``snapshot`` (key, sorted), ``outcome`` (null or ``input_incomplete``),
            ``detail`` (which datasets, and where they are complete but unreadable; null without
            outcome), ``remote_source_available``, ``any_complete`` (has complete locations).
        complete_locations: ``jeditaskid``, ``snapshot``, ``ddm_endpoint_name``, sorted: endpoints complete for
            every real, non-distributed input dataset of the task, readable or not.
        datasets: One row per task, instant and such dataset, sorted: ``complete_disk``, ``complete_tape`` (a complete replica
            that is readable), ``truly_complete_disk`` (no file missing), ``local_source``, ``remote_source``, ``locations``
            (list of str: complete, readable or not).
    """

    tasks: pl.DataFrame
    complete_locations: pl.DataFrame
    datasets: pl.DataFrame


def real(datasets: pl.DataFrame | None, *, distributed: bool) -> pl.DataFrame:
    """Return the real input datasets, ``jeditaskid``, ``datasetname``: neither pseudo nor, unless asked for, distributed."""
    rows = read("datasets", datasets, _DATASETS, _DATASET_FLAGS).lazy()
    pseudo = (
        yes("pseudo")
        | pl.col("datasetname").is_in(PSEUDO_NAMES)
        | pl.col("type").fill_null("").is_in(PSEUDO_TYPES)
    )
    kept = rows.filter(~pseudo if distributed else ~pseudo & ~yes("distributed"))
    return run(kept.select("jeditaskid", "datasetname").unique(maintain_order=True))


def _readable(
    copies: pl.LazyFrame, asked: pl.DataFrame, storage: pl.DataFrame | None, rules: ProductionRules
) -> pl.LazyFrame:
    endpoints, snapshot = at_snapshots(read_storage(storage), asked)
    states = endpoints.lazy().select(
        *snapshot,
        "ddm_endpoint_name",
        on_tape="is_tape",
        lan=up("read_lan", rules=rules),
        wan=up("read_wan", rules=rules),
    )
    joined = copies.join(states, on=[*snapshot, "ddm_endpoint_name"], how="left")
    return joined.with_columns(
        pl.coalesce("is_tape", "on_tape", pl.lit(value=False)).alias("is_tape"),
        pl.coalesce("readable_lan", "lan", pl.lit(value=False)).alias("lan"),
        pl.coalesce("readable_wan", "wan", pl.lit(value=False)).alias("wan"),
        pl.col("found", "total").fill_null(0),
    )


def _complete(frame: pl.LazyFrame) -> pl.LazyFrame:
    """Mark the replicas that count as complete and those without any missing file."""
    total = pl.when(pl.col("total") > 0).then("total")
    enough = (pl.col("total") - pl.col("found") <= pl.col("max_missing")) | (
        100 * pl.col("found") / total >= pl.col("min_percent")
    )
    whole = pl.col("found") == pl.col("total")
    usable = ~yes("vp")
    partly = ((pl.col("found") > 0) & enough).fill_null(value=False)
    return frame.with_columns(whole=usable & whole, complete=usable & (whole | partly))


def limits(vos: pl.Series, config: Config, component: str = "jobbroker") -> pl.DataFrame:
    """Return when a replica counts as complete, by VO: ``vo``, ``max_missing`` [files], ``min_percent`` [%]."""
    names = {"max_missing": "MAX_MISSING_INPUT_FILES", "min_percent": "MIN_INPUT_COMPLETENESS"}
    rows = [
        {"vo": vo}
        | {
            column: float(config.get(key, app="jedi", component=component, vo=vo))
            for column, key in names.items()
        }
        for vo in vos.unique().sort().to_list()
    ]
    return pl.DataFrame(rows, schema={"vo": pl.String, **dict.fromkeys(names, pl.Float64)})


def completeness(
    tasks: pl.DataFrame,
    datasets: pl.DataFrame | None,
    replicas: pl.DataFrame | None,
    storage_endpoints: pl.DataFrame | None,
    *,
    config: Config | None = None,
    rules: ProductionRules | None = None,
    component: str = "jobbroker",
) -> Completeness:
    """Decide for many tasks whether their input is complete somewhere it can be read.

    Of replicas ``is_tape``, ``readable_lan``, ``readable_wan`` go before those of the endpoint; null ``found`` and ``total`` are
    0. A replica at an endpoint that is not known, and that says nothing itself, cannot be read. Limits are those of the task's
    VO, of a ``component`` (``jobbroker``, ``anal_jobbroker``). Merge chunks are treated like the others; tasks with
    inputprestaging have complete locations but never an outcome.

    Source: production-jobs.md 1.
    """
    rows = read("tasks", tasks, TASK, {k: v for k, v in _TASKS.items() if k not in TASK})
    rows = rows.unique(["jeditaskid", "snapshot"], keep="first", maintain_order=True)
    of_vos = limits(rows["vo"], config or Config.empty(), component)
    rows = rows.join(of_vos, on="vo", how="left", nulls_equal=True)
    names = real(datasets, distributed=False)
    every = valid_for(rows.lazy(), names, keys=["jeditaskid"])
    asked = run(every.unique([*KEY, "datasetname"]))
    given, snapshot = at_snapshots(read("replicas", replicas, _REPLICAS, _REPLICA_FACTS), asked)
    on = ["datasetname", *snapshot]
    copies = valid_for(asked.lazy(), given, on, ["jeditaskid"], in_order=False)
    copies = _readable(copies, asked, storage_endpoints, rules or ProductionRules())
    per_dataset = run(_per_dataset(asked.lazy(), _complete(copies)))
    locations = run(_complete_everywhere(per_dataset.lazy()))
    outcomes = run(_outcomes(rows.lazy(), per_dataset.lazy(), locations.lazy()))
    return Completeness(outcomes, locations, per_dataset)


def _per_dataset(asked: pl.LazyFrame, rows: pl.LazyFrame) -> pl.LazyFrame:
    readable = pl.col("lan") | pl.col("wan")
    disk = ~pl.col("is_tape")
    flags = {
        "complete_disk": pl.col("complete") & readable & disk,
        "complete_tape": pl.col("complete") & readable & ~disk,
        "truly_complete_disk": pl.col("whole") & readable & disk,
        "local_source": pl.col("complete") & pl.col("lan"),
        "remote_source": pl.col("complete") & pl.col("wan"),
    }
    places = pl.col("ddm_endpoint_name").filter("complete").unique().sort()
    facts = rows.group_by(*KEY, "datasetname").agg(
        **{name: flag.any() for name, flag in flags.items()}, locations=places
    )
    return (
        asked.join(facts, on=[*KEY, "datasetname"], how="left", nulls_equal=True)
        .select(
            *KEY,
            "datasetname",
            "inputprestaging",
            *(yes(name) for name in flags),
            pl.col("locations").fill_null(pl.lit([], dtype=pl.List(pl.String))),
        )
        .sort(*KEY, "datasetname")
    )


def _complete_everywhere(per_dataset: pl.LazyFrame) -> pl.LazyFrame:
    n_datasets = per_dataset.group_by(KEY).agg(n_datasets=pl.len())
    holds = (
        per_dataset.explode("locations")
        .drop_nulls("locations")
        .group_by(*KEY, ddm_endpoint_name="locations")
        .agg(n=pl.len())
    )
    return (
        holds.join(n_datasets, on=KEY, how="inner", nulls_equal=True)
        .filter(pl.col("n") == pl.col("n_datasets"))
        .select(*KEY, "ddm_endpoint_name")
        .sort(*KEY, "ddm_endpoint_name")
    )


def _outcomes(
    rows: pl.LazyFrame, per_dataset: pl.LazyFrame, locations: pl.LazyFrame
) -> pl.LazyFrame:
    checked = per_dataset.filter(~yes("inputprestaging"))
    missing = ~(pl.col("complete_disk") | pl.col("complete_tape"))
    somewhere = pl.col("locations").list.len() > 0
    sentence = pl.format(
        "{}: {}",
        "datasetname",
        pl.when(somewhere)
        .then(
            pl.format(
                "complete only where nothing can be read: {}", pl.col("locations").list.join(", ")
            )
        )
        .otherwise(pl.lit("complete at no endpoint")),
    )
    verdicts = checked.group_by(KEY, maintain_order=True).agg(
        incomplete=missing.any(),
        detail=sentence.filter(missing).str.join("; "),
        remote_source_available=pl.col("remote_source").filter(~missing).all(),
    )
    complete = locations.select(KEY).unique().with_columns(any_complete=pl.lit(value=True))
    return (
        rows.join(verdicts, on=KEY, how="left", nulls_equal=True)
        .join(complete, on=KEY, how="left", nulls_equal=True)
        .sort(KEY)
        .select(
            *KEY,
            outcome=pl.when(yes("incomplete")).then(pl.lit(INPUT_INCOMPLETE)),
            detail=pl.when(yes("incomplete")).then("detail"),
            remote_source_available=pl.col("remote_source_available").fill_null(value=True),
            any_complete=yes("any_complete"),
        )
    )


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
    own = rows.lazy().join(wanted.lazy(), on=["jeditaskid", "datasetname"], how="semi")
    kept = run(own.drop_nulls("lfn"))
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
    asked = read("tasks", tasks, TASK).lazy().unique()
    totals = (
        files.lazy()
        .unique("name")
        .group_by("jeditaskid")
        .agg(total=pl.col("fsize").sum(), nfiles=pl.len().cast(pl.Int64))
    )
    return run(
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
