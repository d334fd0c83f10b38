"""Tasks and their progress as they were at one instant or many, rebuilt from an archive.

Source: docs/rules/classes.md 1.3 and 5.
"""

from __future__ import annotations

from typing import Any

import narwhals.stable.v2 as nw
import polars as pl

from brokerlab.archive.contracts.jobs import ENDED
from brokerlab.engines import INT, TEXT, TIME, Types, collect, last_attempts, narrow, same_engine
from brokerlab.lifecycle.classification.instants import At, Instants
from brokerlab.lifecycle.classification.levels import place_of_cell, with_cells
from brokerlab.lifecycle.classification.task_classes import STATUSES

_TASKS: Types = {
    "jeditaskid": INT,
    **dict.fromkeys(["username", "gshare", "tasktype", "prodsourcelabel", "status"], TEXT),
    **dict.fromkeys(["creationdate", "starttime", "endtime"], TIME),
    **dict.fromkeys(["statechangetime", "modificationtime"], TIME),
}
_LOG: Types = {"jeditaskid": INT, "status": TEXT, "modificationtime": TIME}
_FILES: Types = {
    **dict.fromkeys(["jeditaskid", "datasetid", "pandaid", "fileid", "attemptnr"], INT),
    "status": TEXT,
}
_DATASETS: Types = {
    **dict.fromkeys(["jeditaskid", "datasetid", "masterid", "nfiles"], INT),
    "type": TEXT,
}
_JOBS: Types = {"pandaid": INT, **dict.fromkeys(["creationtime", "modificationtime"], TIME)}
INPUT = ("input", "pseudo_input")
_KEPT = ("jeditaskid", "username", "gshare", "tasktype", "prodsourcelabel")


def task_states(tasks: Any, *, status_log: Any | None = None, at: At) -> pl.DataFrame:
    """Say which tasks were active at each instant: the input of ``task_classes``.

    A task's row tells its status from its last change on, before that the status log, entry by entry; a task without
    an entry counts as running from its start (else its creation) on. ``gshare`` is that of the row at all instants.

    One row per instant and task in a status that is rated, sorted: ``snapshot, at, jeditaskid, username, gshare,
    tasktype, prodsourcelabel, status, modificationtime`` (the instant itself where the task changed later).

    ``tasks`` of any engine: ``jeditaskid, username, gshare, tasktype, prodsourcelabel, status, modificationtime``, perhaps
    ``creationdate, starttime, statechangetime``; ``status_log`` of the same engine: ``jeditaskid, status, modificationtime``.
    """
    instants = Instants.of(at)
    required = (*_KEPT, "status", "modificationtime")
    table = narrow(tasks, "tasks", _TASKS, required)
    parts = [_own(table)]
    if status_log is None:
        parts.append(_running(table))
    else:
        log = narrow(status_log, "task_status_log", _LOG, tuple(_LOG))
        same_engine({"tasks": table, "task_status_log": log})
        entered = log.select("jeditaskid").unique()
        parts.append(_running(table.join(entered, on="jeditaskid", how="anti")))
        parts.append(_logged(table, log))
    rows = collect(nw.concat(parts).filter(nw.col("status").is_in(list(STATUSES))))
    when = pl.DataFrame(instants.columns(pl.int_range(len(instants), eager=True).to_numpy()))
    # a task is rated for days: rows are as many as the result has
    result = when.join_where(
        rows.with_columns(pl.col("enter").fill_null(pl.lit(0).cast(pl.Datetime("us")))),
        pl.col("enter") <= pl.col("at"),
        pl.col("leave").is_null() | (pl.col("leave") > pl.col("at")),
    )
    columns = ["snapshot", "at", *_KEPT, "status", "modificationtime"]
    return (
        result.with_columns(modificationtime=pl.min_horizontal("modificationtime", "at"))
        .select(columns)
        .sort("snapshot", "jeditaskid")
    )


def _own(tasks: nw.LazyFrame[Any]) -> nw.LazyFrame[Any]:
    """Return the status of the rows, from the last change on."""
    since = nw.coalesce("statechangetime", "modificationtime")
    never = nw.lit(None).cast(TIME)
    return tasks.select(*_KEPT, "status", "modificationtime", enter=since, leave=never)


def _running(tasks: nw.LazyFrame[Any]) -> nw.LazyFrame[Any]:
    """Return the time before the last change, as running."""
    since = nw.coalesce("statechangetime", "modificationtime")
    begun = nw.coalesce("starttime", "creationdate")
    spans = tasks.with_columns(status=nw.lit("running"), enter=begun, leave=since)
    return spans.filter(nw.col("enter") < nw.col("leave")).select(
        *_KEPT, "status", "modificationtime", "enter", "leave"
    )


def _logged(tasks: nw.LazyFrame[Any], log: nw.LazyFrame[Any]) -> nw.LazyFrame[Any]:
    """Return the entries of the log before the last change, each until the next one."""
    known = log.filter(~nw.col("modificationtime").is_null())
    order = ["modificationtime", "status"]
    entries = known.with_columns(
        following=nw.col("modificationtime").shift(-1).over("jeditaskid", order_by=order)
    ).select("jeditaskid", "following", entry=nw.col("status"), enter=nw.col("modificationtime"))
    joined = tasks.join(entries, on="jeditaskid", how="inner").with_columns(
        since=nw.coalesce("statechangetime", "modificationtime")
    )
    end, following = nw.col("since"), nw.col("following")
    leave = nw.when(following.is_null() | (following > end)).then(end).otherwise(following)
    spans = joined.with_columns(leave=leave, status=nw.col("entry"))
    return spans.filter(nw.col("enter") < nw.col("leave")).select(
        *_KEPT, "status", "modificationtime", "enter", "leave"
    )


def task_progress(states: pl.DataFrame, files: Any, datasets: Any, jobs: Any) -> pl.DataFrame:
    """Count what of each task's input was finished or failed by each instant.

    A file that is finished or failed became so when its job was changed for the last time. Its last attempt counts:
    ``njobs`` leaves out jobs that were tried again by then.

    One row per row of states, sorted: ``snapshot, jeditaskid, nfiles, nfilesfinished, nfilesfailed`` (files of the
    master datasets of type input or pseudo_input), ``njobs`` (distinct jobs on them); 0 where there is none.

    Of one engine: ``files`` with ``jeditaskid, datasetid, pandaid, status``, perhaps ``fileid, attemptnr``, ``datasets`` with ``jeditaskid, datasetid, masterid, type,
    nfiles``, ``jobs`` with ``pandaid, creationtime, modificationtime``.
    """
    wanted = states.select("snapshot", "at", pl.col("jeditaskid").cast(pl.Int64))
    instants = Instants.of(wanted.select("snapshot", "at").unique())
    tables = {
        "files": narrow(files, "files", _FILES, ("jeditaskid", "datasetid", "pandaid", "status")),
        "datasets": narrow(datasets, "datasets", _DATASETS, tuple(_DATASETS)),
        "jobs": narrow(jobs, "jobs", _JOBS, tuple(_JOBS)),
    }
    same_engine(tables)
    masters = tables["datasets"].filter(
        nw.col("masterid").is_null() & nw.col("type").is_in(list(INPUT))
    )
    sizes = collect(
        masters.group_by("jeditaskid").agg(nw.col("nfiles").sum().alias("nfiles"))
    ).with_columns(pl.col("nfiles").cast(pl.Int64))
    events = _events(masters, tables["files"], tables["jobs"], instants)
    rows = pl.DataFrame({"snapshot": instants.snapshots}).with_row_index("place")
    keyed = wanted.join(rows.cast({"place": pl.Int64}), on="snapshot").sort("place", "jeditaskid")
    counted = keyed.join_asof(events, on="place", by="jeditaskid", check_sortedness=False)
    numbers = ["nfiles", "nfilesfinished", "nfilesfailed", "njobs"]
    return (
        counted.join(sizes, on="jeditaskid", how="left")
        .select("snapshot", "jeditaskid", pl.col(numbers).fill_null(0))
        .sort("snapshot", "jeditaskid")
    )


def _events(
    masters: nw.LazyFrame[Any],
    files: nw.LazyFrame[Any],
    jobs: nw.LazyFrame[Any],
    instants: Instants,
) -> pl.DataFrame:
    """Return the running counts of every task: ``jeditaskid, place`` and what is counted from that instant on."""
    names = ["nfilesfinished", "nfilesfailed", "njobs"]
    if not len(instants):
        schema: Any = dict.fromkeys(["jeditaskid", "place", *names], pl.Int64)
        return pl.DataFrame(schema=schema)
    used = files.join(masters.select("jeditaskid", "datasetid"), on=["jeditaskid", "datasetid"])
    timed = last_attempts(used).filter(~nw.col("pandaid").is_null()).join(jobs, on="pandaid")
    done = timed.filter(nw.col("status").is_in(ENDED)).select(
        "jeditaskid", kind=nw.col("status"), time=nw.col("modificationtime")
    )
    begun = (
        timed.select("jeditaskid", "pandaid", "creationtime")
        .unique(subset=["jeditaskid", "pandaid"])
        .select("jeditaskid", kind=nw.lit("job"), time=nw.col("creationtime"))
    )
    placed = nw.concat([done, begun]).filter(nw.col("time") <= nw.lit(instants.last))
    summed = (
        with_cells(placed, instants, "time")
        .group_by("jeditaskid", "kind", "time")
        .agg(nw.len().alias("n"))
    )
    rows = collect(summed).with_columns(pl.col("n").cast(pl.Int64))
    place = pl.Series("place", place_of_cell(rows["time"], instants, null=0))
    kinds = zip(names, ("finished", "failed", "job"), strict=True)
    counts = [
        pl.when(pl.col("kind") == kind).then("n").otherwise(0).sum().alias(name)
        for name, kind in kinds
    ]
    by_place = rows.with_columns(place).group_by("jeditaskid", "place").agg(counts)
    running = by_place.sort("jeditaskid", "place").with_columns(
        pl.col(names).cum_sum().over("jeditaskid")
    )
    return running.sort("place", "jeditaskid")
