"""The funnel of queues in both locality loops."""

from __future__ import annotations

import polars as pl

from brokerlab.brokerage.analysis_jobs import AnalysisDecisions
from brokerlab.report.analysis_replay.brokerages import ROUTES, flagged
from brokerlab.report.replays.removal import CANDIDATE, KEYS, wide
from brokerlab.report.replays.shares import USER, shares


def pairs(decisions: AnalysisDecisions) -> pl.DataFrame:
    """Return every (task, queue) pair of either loop.

    Returns:
        ``jeditaskid, snapshot, loop``, ``check`` (`CANDIDATE`: not removed), ``n`` [pairs].
    """
    both = [
        frame.select(*KEYS, pl.col("loop").cast(pl.Int64), pl.col("check").cast(pl.String))
        for frame in (decisions.queues, decisions.first_loop)
    ]
    rows = pl.concat(both).with_columns(pl.col("check").fill_null(CANDIDATE))
    return rows.group_by(*KEYS, "loop", "check").len("n").sort(*KEYS, "loop", "check")


def by_loop(counted: pl.DataFrame, order: list[str], *, n_boot: int, seed: int) -> pl.DataFrame:
    """Return the share of the pairs of each loop that each check removes, in order.

    Args:
        counted: From `pairs`.
        order: Every check in the order of removal, candidates last.
        n_boot: Bootstrap replicates over tasks.
        seed: Of the bootstrap.

    Returns:
        `shares` by ``loop``, with ``left``, the share of pairs left after the check.
    """
    table = wide(counted, order, ["loop"])
    found = shares(table, order, "looked_at", by=["loop"], n_boot=n_boot, seed=seed)
    return found.with_columns(left=(1 - pl.col("share").cum_sum().over("loop")))


def routes(rows: pl.DataFrame, *, n_boot: int, seed: int) -> pl.DataFrame:
    """Return the share of brokerages by their way through the loops.

    Args:
        rows: From `brokerages.brokerages`.
        n_boot: Bootstrap replicates over users.
        seed: Of the bootstrap.

    Returns:
        `shares` over users, parts `brokerages.ROUTES`.
    """
    table = flagged(rows, "route", ROUTES)
    return shares(table, ROUTES, "one", unit=USER, n_boot=n_boot, seed=seed)
