"""What the checks and weights read of a queue: ``q_`` its own columns, ``p_`` those of its unified parent."""

from __future__ import annotations

import polars as pl

from brokerlab.brokerage.analysis_jobs.rules import AnalysisRules
from brokerlab.brokerage.production_jobs.queue_facts import queue_facts as shared_facts
from brokerlab.brokerage.rules import ProductionRules
from brokerlab.matching.catchall import has_flag

TYPES = ("analysis", "unified")
HOSPITAL = "_HOSPITAL"


def queue_facts(tables: dict[str, pl.DataFrame], *, rules: AnalysisRules) -> pl.DataFrame:
    """Return one row per queue, or per (snapshot, queue) where the table has snapshots.

    Args:
        tables: The input tables.
        rules: Switch ``grandly_unified_counts``.

    Returns:
        The columns of :func:`brokerlab.brokerage.production_jobs.queue_facts.queue_facts`, candidates being those of
        the analysis brokerage (P1), and ``q_status``, ``q_gpu``, ``q_cloud`` and ``q_hospital``.

    Source:
        002, ATLAS Analysis Job Brokerage: "Take all queues with type='analysis' or 'unified'";
        docs/rules/analysis-jobs.md 3.
    """
    facts = shared_facts(tables, rules=ProductionRules())
    own = tables["queues"].select("snapshot", "panda_queue", "cloud", "catchall")
    frame = facts.join(own, on=["snapshot", "panda_queue"], how="left", nulls_equal=True).sort("q")
    texts = frame["catchall"].unique().to_list()
    gpu = pl.DataFrame(
        {"catchall": texts, "q_gpu": [has_flag(text, "gpu") for text in texts]},
        schema={"catchall": pl.String, "q_gpu": pl.Boolean},
    )
    typed = pl.col("type").is_in(TYPES).fill_null(value=False)
    if rules.grandly_unified_counts:
        typed = typed | pl.col("q_grandly_unified")
    return (
        frame.join(gpu, on="catchall", how="left", nulls_equal=True, maintain_order="left")
        .with_columns(
            q_status=pl.col("status").fill_null(""),
            q_cloud=pl.col("cloud").fill_null(""),
            q_hospital=pl.col("parent").str.ends_with(HOSPITAL),
            q_candidate=typed & ~pl.col("is_unified"),
        )
        .drop("catchall", "cloud")
    )
