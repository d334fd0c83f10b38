"""Write what scouts said into the task, as PanDA does, and what becomes of the task then, and after it was exhausted.

Source: docs/rules/scouts.md 9 and 10, docs/rules/exhausted.md 1 and 3.
"""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime, timedelta
from typing import Any

import narwhals.stable.v2 as nw
import polars as pl

from brokerlab.engines import collect, lazy_of
from brokerlab.scouts.estimate import ScoutResult
from brokerlab.scouts.exhausted import STOPPABLE, ExhaustedResult
from brokerlab.scouts.settings import (
    AFTER_AVALANCHE,
    splitrule_after_scouts,
    splitrule_with,
    tag_column,
)
from brokerlab.scouts.tables import resource_types as match_resource_types
from brokerlab.scouts.tables import small
from brokerlab.times import time_of

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


SCOUTING = ("scouting", "ready")
NONE_SUCCEEDED = "no scout jobs succeeded"
TOO_FEW_SUCCEEDED = "not enough scout jobs succeeded"
EXHAUSTED_H = 48  # static setting: an exhausted task is finished after this time [h]

_S = nw.String()
_TASKS = {"jeditaskid": nw.Int64(), "status": _S, "oldstatus": _S, "splitrule": _S}

Tasks = bool | Collection[int]


def next_status(
    tasks: Any,
    scouts: ScoutResult,
    exhausted: ExhaustedResult,
    *,
    forced_avalanche: Tasks = False,
    tolerated: Tasks = False,
) -> pl.DataFrame:
    """Say which status a task has after its scouts were read.

    One row per task of ``scouts``, sorted by ``jeditaskid``: ``status``; ``oldstatus``, the status before
    where the task became exhausted, else as it was; ``splitrule`` with what the checks changed, and with
    ``US=3`` where the scouts succeeded in scouting; ``message``: the reason code, or why it is broken.

    An operator forces the avalanche (``forced_avalanche``), or failed scouts are tolerated for the source (``tolerated``): of
    all tasks, or of those with these ids.

    Source: docs/rules/exhausted.md 1, table of the resulting status.
    """
    frame = _before(tasks, scouts, exhausted)
    scouting = pl.col("status").is_in(SCOUTING)
    passed, fired = pl.col("succeeded"), pl.col("rule").is_not_null()
    excused = _choose(forced_avalanche) | _choose(tolerated)
    stopped = fired & pl.col("status").is_in(STOPPABLE)
    broken = scouting & ~passed & ~excused
    why_broken = pl.when(pl.col("SS").is_null()).then(pl.lit(NONE_SUCCEEDED))
    status = (
        pl.when(stopped)
        .then(pl.lit("exhausted"))
        .when(broken)
        .then(pl.lit("tobroken"))
        .when(scouting)
        .then(pl.lit("scouted"))
        .otherwise("status")
    )
    flagged = splitrule_after_scouts(frame.filter(scouting & passed))
    return (
        set_splitrule(frame, flagged)
        .select(
            "jeditaskid",
            status=status,
            oldstatus=pl.when(stopped).then("status").otherwise("oldstatus"),
            splitrule="splitrule",
            message=pl.when(broken)
            .then(why_broken.otherwise(pl.lit(TOO_FEW_SUCCEEDED)))
            .when(passed)
            .then("message_code"),
        )
        .sort("jeditaskid")
    )


def _before(tasks: Any, scouts: ScoutResult, exhausted: ExhaustedResult) -> pl.DataFrame:
    """Join to every task what its scouts said and the checks decided, its split rule edited."""
    succeeded = scouts.parameters.select("jeditaskid", "succeeded")
    verdicts = exhausted.verdicts.select("jeditaskid", "rule", "message_code", edited="splitrule")
    return (
        small(tasks, "tasks", _TASKS)
        .with_columns(tag_column("SS"))
        .join(succeeded, on="jeditaskid", how="inner")
        .join(verdicts, on="jeditaskid", how="left")
        .with_columns(splitrule=pl.coalesce("edited", "splitrule"))
    )


def _choose(tasks: Tasks) -> pl.Expr:
    """Tell whether a setting holds for a task."""
    if isinstance(tasks, bool):
        return pl.lit(tasks)
    return pl.col("jeditaskid").is_in(list(tasks))


def is_overdue(at: datetime | str, *, hours: float = EXHAUSTED_H) -> pl.Expr:
    """Tell whether an exhausted task goes to ``finishing`` by itself.

    Expression over ``status, statechangetime, splitrule`` of ``tasks``; False where the rule ``DF`` forbids it,
    or the time of the change is null.

    ``at`` [UTC] is the instant of the look, ``hours`` [h] how long a task may stay exhausted.

    Source: docs/rules/exhausted.md 3, last paragraph.
    """
    waited = pl.lit(time_of(at, "at"), dtype=pl.Datetime("us")) - pl.col("statechangetime")
    allowed = tag_column("DF").is_null()
    overdue = (pl.col("status") == "exhausted") & (waited > timedelta(hours=hours)) & allowed
    return overdue.fill_null(value=False)


def status_of_retry() -> pl.Expr:
    """Return the status that a retry gives back to an exhausted task.

    Expression over ``oldstatus, splitrule``: ``running``, or ``scouting`` unless the scouts had passed
    (``US=3``), then ``running`` too; null where the task was exhausted from anything else.

    Source: docs/rules/exhausted.md 3, last paragraph.
    """
    spoken = (tag_column("US") == AFTER_AVALANCHE).fill_null(value=False)
    old = pl.col("oldstatus")
    return (
        pl.when((old == "running") | ((old == "scouting") & spoken))
        .then(pl.lit("running"))
        .when(old == "scouting")
        .then(pl.lit("scouting"))
    )
