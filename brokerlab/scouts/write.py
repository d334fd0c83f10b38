"""Write what scouts said into the task, as PanDA does (docs/rules/scouts.md 9 and 10, docs/rules/exhausted.md 1)."""

from __future__ import annotations

from typing import Any

import polars as pl

from brokerlab.engines import collect, lazy_of
from brokerlab.scouts.estimate import ScoutResult
from brokerlab.scouts.exhausted import ExhaustedResult
from brokerlab.scouts.resource_type import resource_types as match_resource_types
from brokerlab.scouts.settings import splitrule_with

WRITTEN = (
    *("cputime", "cputimeunit", "ramcount", "ramunit", "outdiskcount", "outdiskunit"),
    *("workdiskcount", "workdiskunit", "iointensity", "iointensityunit", "diskio", "diskiounit"),
    *("walltime", "walltimeunit", "memory_leak_core", "memory_leak_x2"),
)
"""Columns of ``tasks`` that scouts replace; null leaves the task as it is."""

MERGE_WRITTEN = {
    "mergewalltime": "walltime",
    "mergewalltimeunit": "walltimeunit",
    "mergeramcount": "ramcount",
    "mergeramunit": "ramunit",
}
"""Columns of ``tasks`` that the scouts of merge jobs replace, and where they come from."""


def write_tasks(
    tasks: Any,
    scouts: ScoutResult,
    *,
    exhausted: ExhaustedResult | None = None,
    merge_scouts: ScoutResult | None = None,
    resource_types: Any = None,
) -> pl.DataFrame:
    """Replace the task columns by what the scouts said.

    All columns of ``tasks``, the written ones added where absent, sorted by ``jeditaskid``. Tasks
    without a result are unchanged.

    The status of ``exhausted`` is written, the one before goes to ``oldstatus``; ``merge_scouts`` is the result for merge jobs
    (``merge=True``); with ``resource_types`` the type is found again from the new memory: no match, or no table, and it stays.

    Source: docs/rules/scouts.md 9, 10; docs/rules/exhausted.md 1.
    """
    frame: pl.DataFrame = collect(lazy_of(tasks, "tasks"))
    absent = {name for name in ("splitrule", "status") if name not in frame.columns}
    frame = frame.with_columns(pl.lit(None, dtype=pl.String).alias(name) for name in sorted(absent))
    new = scouts.parameters.select("jeditaskid", *WRITTEN, "newng")
    frame = _replace(frame, new, {name: name for name in WRITTEN})
    frame = _write_ng(frame, new.select("jeditaskid", "newng").drop_nulls())
    if merge_scouts is not None:
        source = merge_scouts.parameters.select("jeditaskid", *MERGE_WRITTEN.values())
        frame = _replace(frame, source, MERGE_WRITTEN)
    if resource_types is not None:
        matched = match_resource_types(frame, resource_types)
        matched = matched.join(new, on="jeditaskid", how="semi")
        frame = _replace(frame, matched, {"resource_type": "resource_type"})
    if exhausted is not None:
        frame = _write_verdicts(frame, exhausted)
    return frame.sort("jeditaskid")


def _replace(frame: pl.DataFrame, new: pl.DataFrame, columns: dict[str, str]) -> pl.DataFrame:
    """Take the new value of each column where there is one."""
    renamed = new.select("jeditaskid", *(pl.col(s).alias(f"new_{t}") for t, s in columns.items()))
    joined = frame.join(renamed, on="jeditaskid", how="left", maintain_order="left")
    return joined.with_columns(
        pl.coalesce(f"new_{name}", name).alias(name)
        if name in frame.columns
        else pl.col(f"new_{name}").alias(name)
        for name in columns
    ).drop(f"new_{name}" for name in columns)


def _write_ng(frame: pl.DataFrame, new: pl.DataFrame) -> pl.DataFrame:
    """Put nGBPerJob into the split rule of the tasks that have one."""
    wanted = frame.join(new, on="jeditaskid", how="inner")
    return set_splitrule(frame, splitrule_with(wanted, "NG", pl.col("newng")))


def set_splitrule(tasks: pl.DataFrame, new: pl.DataFrame) -> pl.DataFrame:
    """Replace the split rule of the tasks in ``new`` (``jeditaskid, splitrule``)."""
    return _replace(tasks, new, {"splitrule": "splitrule"})


def _write_verdicts(frame: pl.DataFrame, exhausted: ExhaustedResult) -> pl.DataFrame:
    """Set the status of exhausted tasks and the split rule of edited ones."""
    verdicts = exhausted.verdicts
    edited = verdicts.filter(pl.col("action").is_not_null()).select("jeditaskid", "splitrule")
    fired = pl.col("rule").is_not_null() & (pl.col("status") == "exhausted")
    stopped = verdicts.filter(fired).select("jeditaskid", "status")
    old = frame.join(stopped.select("jeditaskid"), on="jeditaskid").select(
        "jeditaskid", oldstatus="status"
    )
    frame = _replace(set_splitrule(frame, edited), old, {"oldstatus": "oldstatus"})
    return _replace(frame, stopped, {"status": "status"})
