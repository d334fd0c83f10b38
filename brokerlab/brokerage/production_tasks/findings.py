"""What was odd in the input of the task brokerage and how it was taken; nothing of it stops a batch."""

from __future__ import annotations

from collections.abc import Mapping

import polars as pl

from brokerlab.brokerage.inputs.valid import KEY, valid_for
from brokerlab.brokerage.production_tasks import tokens

SCHEMA = {
    "jeditaskid": pl.Int64,
    "snapshot": pl.Int64,
    "subject": pl.String,
    "finding": pl.String,
}


def gather(
    tasks: pl.DataFrame, tables: Mapping[str, pl.DataFrame], unreadable: pl.DataFrame
) -> pl.DataFrame:
    """Return the findings, sorted, each once.

    Args:
        tasks: With ``given_nucleus``, and ``assigned``, the nucleus that each has.
        tables: Input tables.
        unreadable: Datasets that no site can send.

    Returns:
        ``jeditaskid, snapshot, subject, finding``; null keys for what concerns all tasks.
    """
    stranger = pl.col("given_nucleus").is_not_null() & pl.col("assigned").is_null()
    parts = [
        _said(
            tasks.filter(stranger).with_columns(nucleus="given_nucleus"),
            "nucleus",
            "names no nucleus or satellite: one is chosen",
        ),
        _said(unreadable, "datasetname", "no complete copy that can be read over WAN"),
        *_of_tokens(tasks, tables["output_datasets"]),
    ]
    nobody = [pl.lit(None, pl.Int64).alias(key) for key in KEY]  # said once, not for every task
    mixed = tables["nuclei"].filter("mixed").with_columns(nobody)
    parts.append(_said(mixed, "nucleus", "queues of the site do not agree on bareNucleus"))
    no_nuclei = tasks.join(
        valid_for(tasks.select(KEY), tables["nuclei"], keys=["snapshot"]), on=KEY, how="anti"
    )
    parts.append(_said(no_nuclei.with_columns(at=pl.lit("nuclei")), "at", "none at this snapshot"))
    return pl.concat(parts).unique().sort(*SCHEMA)


def _said(rows: pl.DataFrame, subject: str, finding: str) -> pl.DataFrame:
    return rows.select(*KEY, subject=pl.col(subject), finding=pl.lit(finding))


def _of_tokens(tasks: pl.DataFrame, outputs: pl.DataFrame) -> list[pl.DataFrame]:
    """Return what is odd about storage tokens."""
    rows = valid_for(tasks.select(KEY), outputs).with_columns(
        dataset=pl.coalesce("datasetname", pl.col("datasetid").cast(pl.String), pl.lit("output")),
        pattern=tokens.pattern_of(pl.col("storagetoken")),
    )
    null = rows.filter(pl.col("storagetoken").is_null())
    parts = [_said(null, "dataset", "storagetoken is null: goes to the first endpoint")]
    for pattern in rows["pattern"].unique().sort():
        refusal = tokens.refusal(pattern)
        if refusal is not None:
            same = rows.filter(pl.col("pattern") == pattern)
            parts.append(_said(same, "dataset", f"taken for a name or type only: {refusal}"))
    return parts
