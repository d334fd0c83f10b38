"""A replay of tables that were decided on already."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import polars as pl

from brokerlab.brokerage.studies.kinds import JobDecisions

DICE = {"n_boot": 50, "seed": 1}


def replay_of(decisions: JobDecisions) -> Any:
    """Stand in for a replay: the tables that were decided on."""
    tables = decisions.world.tables
    tasks = tables["tasks"].with_columns(
        pl.col("snapshot").fill_null(0), brokerage_time=pl.col("at")
    )
    return SimpleNamespace(
        tables=tables,
        tasks=tasks,
        for_jobs=lambda: tables,
        for_analysis=lambda: tables,
        config=decisions.world.config,
    )


def totals(frame: pl.DataFrame, *where: pl.Expr) -> dict[str, float]:
    """Return the totals of the parts that are not 0."""
    return {row["part"]: row["total"] for row in frame.filter(*where).to_dicts() if row["total"]}
