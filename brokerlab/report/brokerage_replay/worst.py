"""Tasks that the replay leaves without a queue, though most jobs of theirs really ran."""

from __future__ import annotations

import polars as pl

from brokerlab.brokerage.production_jobs.decisions import Decisions
from brokerlab.report.brokerage_replay.removal import KEYS


def explained(decisions: Decisions, ran: pl.DataFrame, *, most: int) -> pl.DataFrame:
    """Explain the brokerages without a queue whose jobs were most, one per task.

    Args:
        decisions: Of the job brokerage.
        ran: From `history.placed`.
        most: How many.

    Returns:
        ``jeditaskid, snapshot, at, outcome, stage, n_jobs`` (that ran all the same), ``queue`` (where most of them
        did), ``why`` (a sentence); most jobs first.
    """
    busiest = ran.sort("n_jobs", "queue", descending=[True, False]).group_by(
        KEYS, maintain_order=True
    )
    jobs = busiest.agg(pl.col("queue").first(), pl.col("n_jobs").sum())
    without = decisions.tasks.filter(pl.col("outcome") != "candidates")
    chosen = (
        without.join(jobs, on=KEYS)
        .sort("n_jobs", *KEYS, descending=[True, False, False])
        .unique("jeditaskid", keep="first", maintain_order=True)
        .head(most)
    )
    why = [str(row["detail"] or row["stage"]) for row in chosen.iter_rows(named=True)]
    return chosen.select(*KEYS, "at", "outcome", "stage", "n_jobs", "queue").with_columns(
        why=pl.Series(why, dtype=pl.String)
    )
