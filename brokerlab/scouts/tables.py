"""The tables that scouts read: their columns, and the resource type that a task's memory gives it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import narwhals.stable.v2 as nw
import polars as pl

from brokerlab import engines
from brokerlab.errors import SchemaError

INPUT_TYPES = ["input", "pseudo_input"]
MERGE_TYPES = ["trn_log", "trn_output"]

_I, _F, _S, _B, _T = nw.Int64(), nw.Float64(), nw.String(), nw.Boolean(), nw.Datetime("us")

FILE_COLUMNS = {
    **dict.fromkeys(["jeditaskid", "datasetid", "fileid", "pandaid", "fsize", "nevents"], _I),
    **dict.fromkeys(["startevent", "endevent", "attemptnr", "maxattempt"], _I),
    **dict.fromkeys(["failedattempt", "maxfailure"], _I),
    **dict.fromkeys(["type", "status"], _S),
}
DATASET_COLUMNS = {
    **dict.fromkeys(["jeditaskid", "datasetid", "masterid"], _I),
    **dict.fromkeys(["nfiles", "nfilesused", "nfilesfinished"], _I),
    "type": _S,
}
JOB_COLUMNS = {
    **dict.fromkeys(["pandaid", "jeditaskid", "eventservice", "jobsetid"], _I),
    **dict.fromkeys(["cpuconsumptiontime", "actualcorecount", "corecount", "maxpss"], _I),
    **dict.fromkeys(["nevents", "outputfilebytes", "inputfilebytes"], _I),
    **dict.fromkeys(["totrbytes", "totwbytes", "memory_leak"], _I),
    "memory_leak_x2": _F,
    **dict.fromkeys(["jobstatus", "specialhandling", "computingsite", "jobmetrics"], _S),
    **dict.fromkeys(["starttime", "endtime"], _T),
}
HISTORY_COLUMNS = dict.fromkeys(["creationtime", "modificationtime"], _T)
HOST_COLUMN = {"modificationhost": _S}
QUEUE_COLUMNS = {
    "panda_queue": _S,
    "atlas_site": _S,
    "corepower": _F,
    "maxinputsize": _I,
    "direct_access_lan": _B,
}
TASK_COLUMNS = {
    **dict.fromkeys(["jeditaskid", "baseramcount", "workdiskcount", "walltime"], _I),
    **dict.fromkeys(["basewalltime", "orig_ramcount", "orig_mergeramcount"], _I),
    **dict.fromkeys(["cpuefficiency", "orig_cputime"], _F),
    **dict.fromkeys(["prodsourcelabel", "status", "splitrule", "ramunit", "outdiskunit"], _S),
    **dict.fromkeys(["cputimeunit", "orig_cputimeunit"], _S),
}
JOBS_FILES_COLUMNS = {"pandaid": _I, "type": _S, "dataset": _S, "fsize": _I}

REQUIRED = {
    "files": ["jeditaskid", "datasetid", "pandaid", "type", "status"],
    "datasets": ["jeditaskid", "datasetid", "type", "masterid"],
    "jobs": ["pandaid", "jeditaskid", "jobstatus", "starttime", "endtime"],
    "queues": ["panda_queue"],
    "tasks": ["jeditaskid"],
    "jobs_files": ["pandaid", "type", "dataset", "fsize"],
    "resource_types": ["resource_name"],
}


def narrow(
    frame: Any, table: str, columns: Mapping[str, nw.dtypes.DType], problems: list[str]
) -> nw.LazyFrame[Any]:
    """Select the named columns in their types; an absent optional one becomes null.

    NaN and infinities become null too: they say nothing (``brokerlab ingest`` quarantines their rows).
    """
    typed = engines.narrow(frame, table, columns, REQUIRED[table], problems)
    return typed.with_columns(
        nw.when(nw.col(name).is_finite()).then(nw.col(name)).alias(name)
        for name, dtype in columns.items()
        if dtype == _F
    )


def raise_for(problems: list[str]) -> None:
    """Raise one SchemaError for all problems found."""
    if problems:
        raise SchemaError("scouts cannot read their tables: " + "; ".join(problems))


def small(frame: Any, table: str, columns: Mapping[str, nw.dtypes.DType]) -> pl.DataFrame:
    """Collect a task- or queue-sized table as Polars."""
    problems: list[str] = []
    lazy = narrow(frame, table, columns, problems)
    raise_for(problems)
    collected: pl.DataFrame = lazy.collect("polars").to_native()
    return collected


_TASKS = {"jeditaskid": _I, "corecount": _I, "ramcount": _I, "ramunit": _S}
_TYPES = {
    "resource_name": _S,
    **dict.fromkeys(["mincore", "maxcore", "minrampercore", "maxrampercore"], _I),
}
PER_CORE = ("MBPerCore", "MBPerCoreFixed")


def resource_types(tasks: Any, types: Any) -> pl.DataFrame:
    """Find the resource type of every task from its cores and its memory.

    A type matches where ``mincore <= cores <= maxcore`` and ``minrampercore <= memory per core <=
    maxrampercore``. The documents do not say what follows; here a null bound is open, no or 0 cores count as
    1, no memory counts as 0, and the first matching row of ``types`` is taken.

    ``jeditaskid, resource_type`` sorted by ``jeditaskid``; null where no type matches.

    Of ``tasks``: ``corecount``; ``ramcount`` [MB], per core by ``ramunit``, else of the whole job. Of ``types``: ``resource_name,
    mincore, maxcore`` [cores], ``minrampercore, maxrampercore`` [MB]. A missing column is a SchemaError.

    Source: docs/rules/scouts.md 9.
    """
    frame, table = small(tasks, "tasks", _TASKS), small(types, "resource_types", _TYPES)
    asked = pl.col("corecount").fill_null(0)
    cores = pl.when(asked > 0).then(asked).otherwise(1)
    memory = pl.col("ramcount").fill_null(0)
    # whole jobs are compared without a division
    scale = pl.when(pl.col("ramunit").is_in(PER_CORE)).then(1).otherwise(cores)
    matching = []
    for name, mincore, maxcore, minram, maxram in table.iter_rows():
        bounds = [
            cores >= (mincore or 0),
            pl.lit(value=True) if maxcore is None else cores <= maxcore,
            pl.lit(value=True) if minram is None else memory >= minram * scale,
            pl.lit(value=True) if maxram is None else memory <= maxram * scale,
        ]
        matching.append(pl.when(pl.all_horizontal(bounds)).then(pl.lit(name)))
    result = pl.coalesce(*matching, pl.lit(None, dtype=pl.String))
    return frame.select("jeditaskid", resource_type=result).sort("jeditaskid")
