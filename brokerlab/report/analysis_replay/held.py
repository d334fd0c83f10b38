"""Who is held back and why: by rule, over time, by user, group, share and class; and how near the limits are."""

from __future__ import annotations

import polars as pl

from brokerlab.brokerage.analysis_jobs import AnalysisDecisions
from brokerlab.brokerage.analysis_jobs.throttle import (
    LIMITED_SHARE,
    NO_TARGET_PCT,
    USAGE_A,
    USAGE_B,
    USAGE_C,
)
from brokerlab.report.analysis_replay.brokerages import FAMILIES, GO, RULES, flagged
from brokerlab.report.replays.shares import USER, shares

GROUPS = (*FAMILIES, GO)


def by_rule(rows: pl.DataFrame, *, n_boot: int, seed: int) -> pl.DataFrame:
    """Return the share of brokerages that each rule holds back.

    Args:
        rows: From `brokerages.brokerages`.
        n_boot: Bootstrap replicates over users.
        seed: Of the bootstrap.

    Returns:
        `shares` over users, parts `RULES` and `GO`; with ``jobs``, how many it holds back, ``tasks`` and ``units``
        (users or groups) that it meets.
    """
    parts = (*RULES, GO)
    found = shares(flagged(rows, "rule", parts), parts, "one", unit=USER, n_boot=n_boot, seed=seed)
    met = rows.group_by(part="rule").agg(
        jobs=pl.col("jobs").sum(),
        tasks=pl.col("jeditaskid").n_unique().cast(pl.Int64),
        units=pl.col("unit").n_unique().cast(pl.Int64),
    )
    joined = found.join(met, on="part", how="left", maintain_order="left")
    return joined.with_columns(pl.col("jobs", "tasks", "units").fill_null(0))


def by(rows: pl.DataFrame, column: str, *, n_boot: int, seed: int) -> pl.DataFrame:
    """Return the share of brokerages of each level of a column that each family of rules holds back.

    Args:
        rows: From `brokerages.brokerages`.
        column: Such as ``task_class``, ``gshare``, ``unit``.
        n_boot: Bootstrap replicates over users.
        seed: Of the bootstrap.

    Returns:
        `shares` over users by the column, parts `FAMILIES` and `GO`.
    """
    table = flagged(rows, "family", GROUPS)
    return shares(table, GROUPS, "one", by=[column], unit=USER, n_boot=n_boot, seed=seed)


def over_time(rows: pl.DataFrame, step: str, *, n_boot: int, seed: int) -> pl.DataFrame:
    """Return the share of brokerages that each family holds back, by day or week.

    Returns:
        `shares` over users by ``time``, families that hold anything back at all.
    """
    timed = rows.with_columns(time=pl.col("at").dt.truncate(step))
    found = [name for name in FAMILIES if (rows["family"] == name).any()]
    table = flagged(timed, "family", tuple(found))
    return shares(table, found, "one", by=["time"], unit=USER, n_boot=n_boot, seed=seed)


def of_users(rows: pl.DataFrame) -> pl.DataFrame:
    """Return how often each user or group is held back.

    Returns:
        One row per unit, those with most jobs held back first: ``unit``, ``brokerages``, ``held``, ``share`` of them
        held, ``jobs`` asked for, ``jobs_held``, and one column per rule of `RULES` [brokerages].
    """
    held = pl.col("rule") != GO
    return (
        rows.group_by("unit")
        .agg(
            brokerages=pl.len().cast(pl.Int64),
            held=held.sum().cast(pl.Int64),
            share=held.mean(),
            jobs=pl.col("jobs").sum(),
            jobs_held=pl.col("jobs").filter(held).sum(),
            **{rule: (pl.col("rule") == rule).sum().cast(pl.Int64) for rule in RULES},
        )
        .sort("jobs_held", "held", "unit", descending=[True, True, False])
    )


def margins(decisions: AnalysisDecisions) -> pl.DataFrame:
    """Return how near tasks come to each limit.

    Returns:
        One row per rule T1 to T7, in order: ``rule``, ``limited`` (brokerages for which the limit exists and the number
        is known; no target of 0), ``median`` and ``largest`` of the number over its limit [1]; null where there is none.
    """
    frame = decisions.world.throttle.join(
        decisions.world.tables["tasks"].select(
            "jeditaskid", pl.col("snapshot").fill_null(0), "gshare"
        ),
        on=["jeditaskid", "snapshot"], how="left",
    )  # fmt: skip
    mine = pl.col("gshare") == LIMITED_SHARE
    usage, one = pl.col("usage_pct"), pl.col("class")
    usage = pl.when(usage < NO_TARGET_PCT).then(usage)  # no part of a target of 0
    ratios = {
        "cap_running_jobs": pl.col("nrunjobs") / pl.col("cap_jobs"),
        "cap_queued_jobs": pl.col("nqueuedjobs") / (2 * pl.col("cap_jobs")),
        "cap_running_cores": pl.col("nruncores") / pl.col("cap_cores"),
        "cap_queued_cores": pl.col("nqueuedcores") / (2 * pl.col("cap_cores")),
        "gshare_class_c": pl.when(mine & (one == -1)).then(usage / USAGE_C),
        "gshare_class_b": pl.when(mine & (one == 0)).then(usage / USAGE_B),
        "gshare_class_a": pl.when(mine & (one == 1)).then(usage * pl.col("used_fraction") / USAGE_A),
    }  # fmt: skip
    rows = [
        frame.select(
            rule=pl.lit(name),
            limited=ratio.count().cast(pl.Int64),
            median=ratio.median().cast(pl.Float64),
            largest=ratio.max().cast(pl.Float64),
        )
        for name, ratio in ratios.items()
    ]
    return pl.concat(rows)
