"""A replay of tables that were decided on already."""

from __future__ import annotations

import polars as pl

from brokerlab.brokerage.replaying import Replay
from brokerlab.brokerage.studies.period import JobDecisions, kind_of

DICE = {"n_boot": 50, "seed": 1}


def replay_of(decisions: JobDecisions) -> Replay:
    """Return a replay of the tables that were decided on."""
    tables = decisions.world.tables
    tasks = tables["tasks"].with_columns(
        pl.col("snapshot").fill_null(0), brokerage_time=pl.col("at")
    )
    return Replay(
        tables=tables | {"tasks": tasks},
        instants=tasks.select("snapshot", "at").unique(),
        stage=kind_of(decisions).brokerage.stage,
        config=decisions.world.config,
        notes=(),
        archive_digest="",
        synthetic=True,
        remake=lambda _: {},
    )


def totals(frame: pl.DataFrame, *where: pl.Expr) -> dict[str, float]:
    """Return the totals of the parts that are not 0."""
    return {row["part"]: row["total"] for row in frame.filter(*where).to_dicts() if row["total"]}
