"""Tasks as the brokerage reads them: one row per task and instant."""

from __future__ import annotations

from typing import Any

import narwhals.stable.v2 as nw
import polars as pl

from brokerlab.archive.contracts import read_as
from brokerlab.brokerage.analysis_jobs.chunks import n_jobs
from brokerlab.brokerage.inputs.data import PSEUDO_TYPES
from brokerlab.engines import collect, narrow

WITH_SCOUTS = 2
"""Value of the rule US while scouts are to be made; afterwards it is 3."""
USER_FLAGS = ("avoidvp", "allowincompleteinds", "limitedsites")
"""Task parameters that are yes or no."""


def user_rows(rows: pl.DataFrame) -> pl.DataFrame:
    """Put tasks in the words of the analysis brokerage (contract ``Tasks``).

    Source: analysis-jobs.md 1.
    """
    kept = pl.col("usescout") == WITH_SCOUTS
    flags = [(pl.col(name) != 0).alias(name) for name in USER_FLAGS]
    return rows.with_columns(
        *flags,
        usescout=pl.col("use_scout") | kept.fill_null(value=False),
        chunk_usescout=pl.col("use_scout"),
    )


def user_datasets(datasets: pl.DataFrame) -> pl.DataFrame:
    """Put input datasets in the words of the analysis brokerage; their ``distributed`` holds for pseudo input too."""
    real = ~pl.col("type").is_in(PSEUDO_TYPES)
    return datasets.with_columns(is_distributed=pl.col("distributed") & real)


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
    return result.with_columns(whole).sort("jeditaskid", "snapshot")


def parents(tasks: pl.DataFrame) -> pl.DataFrame:
    """Return parents of full-chain tasks (contract ``ParentTasks``), sorted."""
    chain = pl.col("fullchain").replace_strict(
        WORDS["fullchain"], default=None, return_dtype=pl.String
    )
    return tasks.select("jeditaskid", "nucleus", fullchain=chain).sort("jeditaskid")
