"""Tasks as the brokerage reads them: one row per task and instant."""

from __future__ import annotations

from typing import Any

import narwhals.stable.v2 as nw
import polars as pl

from brokerlab.archive.contracts import read_as
from brokerlab.engines import collect, narrow

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
    "onlytagsforfc",
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
    """Collect tasks with every column of the contract, by id.

    Args:
        tasks: Table ``tasks`` of any engine.
        chosen: Ids; None takes all.

    Returns:
        Columns of the archive's table, sorted by ``jeditaskid``.

    Raises:
        SchemaError: There is no ``jeditaskid``.
    """
    lazy = narrow(tasks, "tasks", COLUMNS, ("jeditaskid",))
    if chosen is not None:
        lazy = lazy.filter(nw.col("jeditaskid").is_in(chosen))
    return collect(lazy).sort("jeditaskid")


def task_rows(schedule: pl.DataFrame, tasks: pl.DataFrame, *, stage: str) -> pl.DataFrame:
    """Put the tasks of the archive beside their instants, in the words of the chapters.

    What scouts measure is not known before they ran: at the choice of the nucleus and for chunks that make scouts,
    memory and CPU time are those submitted. ``frozentime`` counts where it was reached by the instant. At the choice
    of the nucleus the task has none.

    Args:
        schedule: ``jeditaskid, snapshot, at``, perhaps ``is_merging, use_scout``.
        tasks: Result of :func:`read_tasks`.
        stage: ``jobs`` or ``tasks``: the brokerage that is replayed.

    Returns:
        One row per row of ``schedule`` whose task is known, sorted by ``jeditaskid, snapshot``: its columns, those of
        contract ``Tasks``, ``workqueue_name`` (the gshare), and the other columns of the archive.

    Source:
        production-jobs.md; production-tasks.md 1.
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
    found = rows.with_columns(
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
    return found.with_columns(whole).sort("jeditaskid", "snapshot")


def parents(tasks: pl.DataFrame) -> pl.DataFrame:
    """Return parents of full-chain tasks (contract ``ParentTasks``), sorted.

    Args:
        tasks: Result of :func:`read_tasks`.
    """
    chain = pl.col("fullchain").replace_strict(
        WORDS["fullchain"], default=None, return_dtype=pl.String
    )
    return tasks.select("jeditaskid", "nucleus", fullchain=chain).sort("jeditaskid")
