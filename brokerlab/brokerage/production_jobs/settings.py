"""The gdpconfig keys that the production job brokerage reads, and what they make of a task (production-jobs.md)."""

from __future__ import annotations

import polars as pl

from brokerlab.brokerage.engine.rule import setting
from brokerlab.brokerage.engine.steps import Derived, setting_or
from brokerlab.brokerage.full_chain import chained_where
from brokerlab.brokerage.rules import ProductionRules

UNLIMITED_DISKIO = 10**10
"""Limit of disk traffic where MAX_DISKIO_DEFAULT is 0 or absent [kB/s per core]."""
MIN_FREE_GB = 200
"""Free space asked for where the keys are 0 or absent [GB]."""
LEAST_QUEUED = 20
"""Jobs that may always wait where NQUEUELIMITSITE is 0 or absent."""
GB_IN_MB = 1024
MIN_WEIGHT_KEY = "MIN_WEIGHT_<prodsourcelabel>[_<gshare>]"
LIMIT_KEY = "NQUEUELIMITSITE_<gshare>"
NETWORK_KEYS = ("NW_QUEUE_IMPORTANCE", "NQUEUED_SAT_CAP")
"""Keys of the formula of the network weight."""
COMPLETENESS_KEYS = ("MAX_MISSING_INPUT_FILES", "MIN_INPUT_COMPLETENESS")
"""Keys that say when a replica is complete: they act before any queue is looked at, and on storage endpoints."""


def place_of(key: str) -> str:
    """Return ``app/component`` in which the job brokerage looks a key up."""
    return "jedi/core" if key == "WORK_SHORTAGE" else "jedi/jobbroker"


def min_weight() -> pl.Expr:
    """Return the least weight of a candidate; 0: none."""
    return setting(MIN_WEIGHT_KEY).fill_null(0.0)


def of_tasks(rules: ProductionRules) -> tuple[Derived, ...]:
    """Return what settings make of a task.

    ``t_chained`` (full chain at a bare nucleus), ``t_network`` (the network weight acts), ``t_network_limit`` (under which express work goes nowhere), ``t_io_heavy``
    (input to move is limited, to ``t_most_mb`` and ``t_most_files``), ``t_queue_limit`` [jobs], ``t_min_weight``,
    ``t_may_bootstrap``.
    """
    active = setting("NW_ACTIVE") if rules.network_needs_active else pl.lit(value=True)
    heavy = pl.col("t_io_heavy")
    moves = pl.col("t_iointensity") > setting("IO_INTENSITY_CUTOFF")
    if rules.io_check_exempts:
        exempt = pl.col("t_single") | pl.col("t_merging") | pl.col("t_es")
        moves = moves & ~exempt & (pl.col("t_total") > 0)
    return (
        Derived({
            "t_chained": chained_where(pl.col("t_fullchain"), pl.col("t_bare")),
            "t_network": (pl.col("t_nucleus_id") >= 0) & active,
            "t_io_heavy": moves,
            "t_queue_limit": setting_or(LIMIT_KEY, LEAST_QUEUED),
            "t_min_weight": min_weight(),
            "t_may_bootstrap": pl.col("t_prio") <= setting("MAX_PRIO_TO_BOOTSTRAP"),
        }),
        Derived({
            "t_network_limit": pl.when(pl.col("t_network") & pl.col("t_express")).then(
                setting("NW_THRESHOLD") * setting("NW_WEIGHT_MULTIPLIER")
            ),
            "t_most_mb": pl.when(heavy).then(setting("SIZE_CUTOFF_TO_MOVE_INPUT") * GB_IN_MB),
            "t_most_files": pl.when(heavy).then(setting("NUM_CUTOFF_TO_MOVE_INPUT")),
        }),
    )  # fmt: skip
