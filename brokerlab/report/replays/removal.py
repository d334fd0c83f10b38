"""What each check removes, with the columns that the pages of before read."""

from __future__ import annotations

import polars as pl

from brokerlab.brokerage.studies import removal
from brokerlab.brokerage.studies.kinds import JobDecisions
from brokerlab.brokerage.studies.removal import CANDIDATE, NO_SHARE
from brokerlab.brokerage.view import TASK as KEYS
from brokerlab.report.replays.shares import as_before

__all__ = ["CANDIDATE", "KEYS", "NO_SHARE"]

counted = removal.count_removals
order = removal.removal_order
best_of_queue = removal.best_pseudo_queues


def wide(counts: pl.DataFrame, checks: list[str], extra: list[str] | None = None) -> pl.DataFrame:
    """Return one row per brokerage: its keys, one column per check [pairs] and ``looked_at``."""
    keys = [*KEYS, *(extra or [])]
    table = counts.group_by(keys).agg(
        *(pl.col("n").filter(pl.col("check") == name).sum().alias(name) for name in checks),
        looked_at=pl.col("n").sum(),
    )
    return table.sort(keys)


def by_check(counts: pl.DataFrame, checks: list[str], *, n_boot: int, seed: int) -> pl.DataFrame:
    """Return the share of pairs that each check removes, in order, and what is left after it."""
    return as_before(removal.removal_shares(counts, checks, n_boot=n_boot, seed=seed))


def over_time(
    counts: pl.DataFrame, checks: list[str], step: str, *, n_boot: int, seed: int
) -> pl.DataFrame:
    """Return the share of pairs that each of some checks removes, by day or week."""
    timed = counts.with_columns(time=pl.col("at").dt.truncate(step))
    result = removal.removal_shares(timed, checks, by=["time"], n_boot=n_boot, seed=seed)
    return as_before(result.drop("left"))


def by_gshare(counts: pl.DataFrame, checks: list[str], *, n_boot: int, seed: int) -> pl.DataFrame:
    """Return `shares` of the pairs of each ``gshare`` that each check removes."""
    result = removal.removal_shares(counts, checks, by=["gshare"], n_boot=n_boot, seed=seed)
    return as_before(result.drop("left"))


def stuck(
    decisions: JobDecisions, tasks: pl.DataFrame, by: list[str], *, n_boot: int, seed: int
) -> pl.DataFrame:
    """Return the share of brokerages that leave their task without a queue, by outcome."""
    return as_before(
        removal.shares_without_queue(decisions, tasks, by=by, n_boot=n_boot, seed=seed)
    )


def by_queue(
    best: pl.DataFrame, checks: list[str], queues: list[str], *, n_boot: int, seed: int
) -> pl.DataFrame:
    """Return, for some queues, the share of brokerages in which each check removed them."""
    rows = best.filter(pl.col("queue").is_in(queues))
    result = removal.removal_shares(rows, checks, by=["queue"], n_boot=n_boot, seed=seed)
    return as_before(result.drop("left"))
