"""What the analysis brokerage reads of user tasks and their input."""

from __future__ import annotations

import polars as pl

from brokerlab.brokerage.analysis_jobs.chunks import n_jobs
from brokerlab.brokerage.inputs.completeness import PSEUDO_TYPES

WITH_SCOUTS = 2
"""Value of the rule US while scouts are to be made; afterwards it is 3."""
FLAGS = ("avoidvp", "allowincompleteinds", "limitedsites")
"""Task parameters that are yes or no."""


def user_rows(rows: pl.DataFrame) -> pl.DataFrame:
    """Put tasks in the words of the analysis brokerage (contract ``Tasks``).

    Args:
        rows: Result of :func:`taskrows.task_rows`.

    Source:
        analysis-jobs.md 1.
    """
    kept = pl.col("usescout") == WITH_SCOUTS
    flags = [(pl.col(name) != 0).alias(name) for name in FLAGS]
    return rows.with_columns(
        *flags,
        usescout=pl.col("use_scout") | kept.fill_null(value=False),
        chunk_usescout=pl.col("use_scout"),
    )


def user_datasets(datasets: pl.DataFrame) -> pl.DataFrame:
    """Put input datasets in the words of the analysis brokerage (contract ``Datasets``).

    Args:
        datasets: Result of :func:`inputs.input_datasets`, whose ``distributed`` holds for pseudo input too.
    """
    real = ~pl.col("type").is_in(PSEUDO_TYPES)
    return datasets.with_columns(is_distributed=pl.col("distributed") & real)


def with_number_of_jobs(
    rows: pl.DataFrame, datasets: pl.DataFrame | None, files: pl.DataFrame | None
) -> pl.DataFrame:
    """Add ``n_jobs_to_submit``: the jobs that were made, else those that the whole input splits into.

    Args:
        rows: Tasks, perhaps with ``n_jobs`` made from the brokerage (null: not known).
        datasets: Input datasets.
        files: Input files in order.

    Source:
        analysis-jobs.md 7.
    """
    made = pl.col("n_jobs") if "n_jobs" in rows.columns else pl.lit(None, pl.Int64)
    unknown = rows.filter(made.is_null())
    split = n_jobs(unknown, datasets, files).rename({"n_jobs_to_submit": "whole"})
    joined = rows.join(split, on="jeditaskid", how="left", maintain_order="left")
    return joined.with_columns(n_jobs_to_submit=pl.coalesce(made, "whole")).drop("whole")
