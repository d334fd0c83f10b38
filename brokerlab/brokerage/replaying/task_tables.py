"""Tasks as the brokerage reads them, what they read and write, and the work that they have left at every instant."""

from __future__ import annotations

from typing import Any

import narwhals.stable.v2 as nw
import polars as pl

from brokerlab.archive.contracts import read_as
from brokerlab.brokerage.inputs.atoms import n_jobs
from brokerlab.brokerage.inputs.data import PSEUDO_TYPES
from brokerlab.brokerage.production_tasks import storage as chapter
from brokerlab.brokerage.replaying.changes import (
    JOB_COLUMNS,
    JOB_REQUIRED,
    LAST,
    MERGES,
    Changes,
    happened,
    prepared,
    span_changes,
    times,
)
from brokerlab.brokerage.replaying.clock import Clock, as_of
from brokerlab.brokerage.replaying.plan import PRODUCTION_LABEL
from brokerlab.engines import collect, last_attempts, narrow

WITH_SCOUTS = 2
"""Value of the rule US while scouts are to be made; afterwards it is 3."""


def with_number_of_jobs(
    rows: pl.DataFrame, datasets: pl.DataFrame | None, files: pl.DataFrame | None
) -> pl.DataFrame:
    """Add ``n_jobs_to_submit``: the jobs that were made, else those that the whole input splits into (analysis-jobs.md 7)."""
    made = pl.col("n_jobs") if "n_jobs" in rows.columns else pl.lit(None, pl.Int64)
    unknown = rows.filter(made.is_null())
    split = n_jobs(unknown, datasets, files).rename({"n_jobs_to_submit": "whole"})
    joined = rows.join(split, on="jeditaskid", how="left", maintain_order="left")
    return joined.with_columns(n_jobs_to_submit=pl.coalesce(made, "whole")).drop("whole")


COLUMNS = read_as("tasks")
"""Every column of the table ``tasks``."""
WORDS = {
    "fullchain": {1: "only", 2: "require", 3: "capable"},
    "allowinputlan": {1: "use", 2: "only"},
    "ipconnectivity": {1: "full", 2: "http"},
    "ipstack": {4: "IPv4", 6: "IPv6"},
}
"""Numbers of the split rule and the words of the chapters; any other number is no request."""
FLAGS = (
    *("uselocalio", "allowinputwan", "inputprestaging", "mergeoutput", "usejobcloning"),
    *("onlytagsforfc", "avoidvp", "allowincompleteinds", "limitedsites"),
)
"""Task parameters that are yes or no."""
SUBMITTED = {
    "ramcount": "orig_ramcount",
    "cputime": "orig_cputime",
    "cputimeunit": "orig_cputimeunit",
    "mergeramcount": "orig_mergeramcount",
}
"""Parameters that scouts set, and what was submitted."""


def read_tasks(tasks: Any, chosen: list[int] | None = None) -> pl.DataFrame:
    """Collect tasks with every column of the archive's table, sorted by ``jeditaskid``; None takes all."""
    lazy = narrow(tasks, "tasks", COLUMNS, ("jeditaskid",))
    if chosen is not None:
        lazy = lazy.filter(nw.col("jeditaskid").is_in(chosen))
    return collect(lazy).sort("jeditaskid")


def task_rows(schedule: pl.DataFrame, tasks: pl.DataFrame, *, stage: str) -> pl.DataFrame:
    """Put the tasks of the archive beside their instants, in the words of the chapters.

    What scouts measure is not known before they ran: at the choice of the nucleus and for chunks that make scouts,
    memory and CPU time are those submitted. ``frozentime`` counts where it was reached by the instant. At the choice
    of the nucleus the task has none.

    Returns:
        One row per row of ``schedule`` whose task is known, sorted by ``jeditaskid, snapshot``: its columns, those of
        contract ``Tasks``, ``workqueue_name`` (the gshare), and the other columns of the archive.
    """
    missing = [
        pl.lit(value=False).alias(name)
        for name in ("is_merging", "use_scout")
        if name not in schedule
    ]
    rows = schedule.with_columns(missing).join(tasks, on="jeditaskid", maintain_order="left")
    early = pl.lit(value=True) if stage == "tasks" else pl.col("use_scout")
    asked = pl.col("orig_cputime").is_not_null()
    unit = pl.when(asked).then(pl.coalesce("orig_cputimeunit", pl.lit("HS06sPerEvent")))
    submitted = [
        pl.when(early).then(pl.col(own).cast(pl.Float64)).otherwise(pl.col(name)).alias(name)
        for name, own in SUBMITTED.items()
        if name != "cputimeunit"
    ]
    words = [
        pl.col(name).replace_strict(known, default=None, return_dtype=pl.String).alias(name)
        for name, known in WORDS.items()
    ]
    flags = [(pl.col(name) != 0).alias(name) for name in FLAGS]
    nucleus = pl.lit(None, pl.String) if stage == "tasks" else pl.col("nucleus")
    frozen = pl.when(pl.col("frozentime") <= pl.col("at")).then("frozentime")
    result = rows.with_columns(
        *words,
        *flags,
        *submitted,
        pl.when(early).then(unit).otherwise("cputimeunit").alias("cputimeunit"),
        nucleus.alias("nucleus"),
        frozen.alias("frozentime"),
        ramcountunit=pl.col("ramunit"),
        workqueue_name=pl.col("gshare"),
        chunk_ramcount=pl.lit(0, pl.Int64),
    )
    whole = [pl.col(name).cast(pl.Int64) for name in ("ramcount", "mergeramcount")]
    result = result.with_columns(whole).sort("jeditaskid", "snapshot")
    if stage != "analysis":
        return result
    kept = (pl.col("usescout") == WITH_SCOUTS).fill_null(value=False)
    return result.with_columns(usescout=pl.col("use_scout") | kept, chunk_usescout="use_scout")


def parents(tasks: pl.DataFrame) -> pl.DataFrame:
    """Return parents of full-chain tasks (contract ``ParentTasks``), sorted."""
    chain = pl.col("fullchain").replace_strict(
        WORDS["fullchain"], default=None, return_dtype=pl.String
    )
    return tasks.select("jeditaskid", "nucleus", fullchain=chain).sort("jeditaskid")


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

    Of their attributes ``ratio=N``, ``nosplit`` and ``distributed`` count; ``distributed`` holds for pseudo input too,
    ``is_distributed`` for real input alone.
    """
    kinds = MERGED if merging else INPUTS
    attributes = pl.col("attributes").fill_null("")
    pseudo = pl.col("type").is_in(PSEUDO_TYPES)
    marked = attributes.str.contains(r"(?:^|,)distributed(?:,|$)")
    ratio = attributes.str.extract(r"(?:^|,)ratio=(\d+)", 1).cast(pl.Int64)
    return datasets.filter(pl.col("type").is_in(kinds)).select(
        "jeditaskid",
        "datasetid",
        "datasetname",
        "type",
        is_master=pl.col("masterid").is_null(),
        pseudo=pseudo,
        distributed=pseudo | marked,
        ratio=ratio,
        nosplit=attributes.str.contains(r"(?:^|,)nosplit(?:,|$)"),
        is_distributed=marked & ~pseudo,
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


OPEN = ("ready", "scouting", "running", "pending")
"""Statuses of tasks whose work counts (production-tasks.md 1, ``remaining_work``)."""
OVER = ("done", "finished", "failed", "broken", "aborted", "exhausted", "passed")
"""Statuses in which a task has no work left for its nucleus."""
SMALLEST_SHARE = 0.2
"""Least share of a task's jobs at a queue that a resource type needs (production-jobs.md)."""
_TASKS = read_as(
    "tasks",
    *("jeditaskid", "currentpriority", "cputime", "prodsourcelabel", "nucleus", "gshare"),
    *("status", "cputimeunit", "creationdate", "endtime", "modificationtime"),
)
_MASTERS = read_as(
    "datasets", *("jeditaskid", "datasetid", "masterid", "nevents", "neventstobeused", "type")
)
_LOG = read_as("task_status_log", "jeditaskid", "status", "modificationtime")
_DONE = read_as(
    "jobs",
    *("pandaid", "jeditaskid", "nevents", "jobstatus", "processingtype", "statechangetime"),
    *("modificationtime", "endtime", "starttime"),
)


def open_tasks(
    tasks: Any,
    datasets: Any,
    jobs: Any,
    instants: pl.DataFrame,
    *,
    status_log: Any = None,
) -> pl.DataFrame:
    """Return the tasks of production with work left at every instant, and how many of their events were used by then.

    The archive keeps the last counters only. So ``neventsused`` is the sum of ``nevents`` of the jobs that had finished
    by the instant, merge jobs aside, and never more than the events of the master input. With a status log a task is
    open while its last entry is one of ``OPEN``; without, from after it was made until it ended.

    Returns:
        ``snapshot, jeditaskid, nucleus, workqueue_name`` (the gshare), ``currentpriority, nevents, neventsused, cputime,
        cputimeunit``, sorted; tasks without nucleus or events left are not in it.
    """
    clock = Clock.of(instants)
    lazy = narrow(tasks, "tasks", _TASKS, ("jeditaskid", "status", "creationdate"))
    lazy = lazy.filter(nw.col("prodsourcelabel") == PRODUCTION_LABEL)
    known = collect(lazy.filter(~nw.col("nucleus").is_null())).sort("jeditaskid")
    known = known.join(master_events(datasets), on="jeditaskid")
    spans = _spans_of_times(known)
    if status_log is not None:
        logged = _spans_of_log(status_log)
        spans = pl.concat([spans.join(logged, on="jeditaskid", how="anti"), logged])
    # one that ends before it begins would count the other way round
    spans = spans.drop_nulls("enter").filter(
        pl.col("leave").is_null() | (pl.col("leave") > pl.col("enter"))
    )
    keys = ["snapshot", "jeditaskid"]
    there = span_changes(nw.from_native(spans.lazy()), clock, keys[1:])
    pairs = there.at_instants(keys[1:], ["njobs"]).select(keys)
    used = used_events(jobs, clock).at_instants(keys[1:], ["neventsused"], only=pairs)
    full = (
        pairs.join(known, on="jeditaskid", maintain_order="left")
        .join(used, on=keys, how="left", maintain_order="left")
        .with_columns(
            neventsused=pl.min_horizontal(pl.col("neventsused").fill_null(0), "nevents"),
            workqueue_name="gshare",
        )
    )
    names = ["nucleus", "workqueue_name", "currentpriority", "nevents", "neventsused", "cputime"]
    left = full.filter(pl.col("neventsused") < pl.col("nevents"))
    return left.select(*keys, *names, "cputimeunit").sort(keys)


def used_events(jobs: Any, clock: Clock) -> Changes:
    """Add up in the engine the events of finished jobs, ``neventsused``, by task; merge jobs use none."""
    table = narrow(jobs, "jobs", _DONE, ("pandaid", "jeditaskid", "jobstatus"))
    finished = table.filter((nw.col("jobstatus") == "finished") & ~MERGES & (nw.col("nevents") > 0))
    timed = finished.filter(~nw.col("jeditaskid").is_null())
    rows = timed.select("jeditaskid", neventsused=nw.col("nevents"), time=LAST)
    return happened(rows, clock, ["jeditaskid"], ["neventsused"])


def task_resource_types(
    jobs: Any, pairs: pl.DataFrame, instants: pl.DataFrame, *, parents: dict[str, str] | None = None
) -> pl.DataFrame:
    """Return the resource types that hold at least 20 % of a task's jobs at a queue (contract ``TaskResourceTypes``).

    Jobs that are not over count, by their times.
    """
    names = ["snapshot", "jeditaskid", "computingsite", "resource_type"]
    clock = Clock.of(instants)
    table = narrow(jobs, "jobs", JOB_COLUMNS, (*JOB_REQUIRED, "jeditaskid"))
    own = table.filter(nw.col("jeditaskid").is_in(pairs["jeditaskid"].unique().to_list()))
    timed = times(prepared(own))
    spans = timed.with_columns(enter=nw.col("created"), leave=nw.col("over_at"))
    changes = span_changes(spans, clock, names[1:]).by_parent(parents)
    counted = changes.at_instants(names[1:], ["njobs"], only=pairs.select("snapshot", "jeditaskid"))
    share = pl.col("njobs") / pl.col("njobs").sum().over(names[:3])
    return counted.filter(share >= SMALLEST_SHARE).select(names).sort(names)


def with_task_work(rows: pl.DataFrame, events: pl.DataFrame) -> pl.DataFrame:
    """Add ``task_rw`` [HS06 s]: the work of a task of which nothing is used yet (production-tasks.md 1)."""
    joined = rows.join(events, on="jeditaskid", how="left", maintain_order="left")
    whole = joined.with_columns(neventsused=pl.lit(0, pl.Int64))
    return whole.with_columns(task_rw=chapter.work_left()).drop("nevents", "neventsused")


def master_events(datasets: Any) -> pl.DataFrame:
    """Return the events of the master inputs of each task, where there are any: ``jeditaskid``, ``nevents``."""
    lazy = narrow(datasets, "datasets", _MASTERS, ("jeditaskid", "type"))
    master = lazy.filter(nw.col("masterid").is_null() & nw.col("type").is_in(INPUTS))
    events = nw.coalesce("nevents", "neventstobeused")
    summed = master.select("jeditaskid", n=events).group_by("jeditaskid")
    result = collect(summed.agg(nw.col("n").sum().cast(nw.Int64).alias("nevents")))
    return result.filter(pl.col("nevents") > 0)


def _spans_of_times(tasks: pl.DataFrame) -> pl.DataFrame:
    """Return when tasks are open by their times: ``jeditaskid``, ``enter``, ``leave`` (null: to this day)."""
    ended = pl.when(pl.col("status").is_in(OVER)).then(pl.coalesce("endtime", "modificationtime"))
    # strictly after it was made: it has no nucleus at the instant of its own brokerage
    made = pl.col("creationdate") + pl.duration(microseconds=1)
    return tasks.select("jeditaskid", enter=made, leave=ended)


def _spans_of_log(status_log: Any) -> pl.DataFrame:
    """Return when tasks are open by their status log."""
    log = collect(narrow(status_log, "task_status_log", _LOG, tuple(_LOG))).drop_nulls()
    # of entries of one time the one furthest on holds: an open status before an end
    rank = pl.col("status").is_in(OVER).cast(pl.Int8) - pl.col("status").is_in(OPEN).cast(pl.Int8)
    ordered = log.with_columns(rank=rank).sort("jeditaskid", "modificationtime", "rank", "status")
    following = pl.col("modificationtime").shift(-1).over("jeditaskid")
    spans = ordered.with_columns(leave=following).filter(pl.col("status").is_in(OPEN))
    return spans.select("jeditaskid", pl.col("modificationtime").alias("enter"), "leave")
