"""Who is held back and why: by rule, over time, by user, group, share and class; and how near the limits are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import polars as pl

from brokerlab.brokerage.analysis_jobs import AnalysisDecisions
from brokerlab.brokerage.analysis_jobs.rules import AnalysisRules, asked_of
from brokerlab.brokerage.analysis_jobs.throttle import (
    LIMITED_SHARE,
    NO_TARGET_PCT,
    USAGE_A,
    USAGE_B,
    USAGE_C,
)
from brokerlab.brokerage.studies.removal import with_flags
from brokerlab.brokerage.studies.users import FAMILIES, HELD, PASSED, RULES, USER, in_order
from brokerlab.intervals import clustered, shares


def held_by_rule(rows: pl.DataFrame, **dice: Any) -> pl.DataFrame:
    """Return the share of brokerages that each rule holds back.

    Returns:
        `intervals.shares` over users, parts `RULES`, `HELD` (by any of them) and `PASSED`; with ``jobs`` of these
        brokerages, ``tasks`` and ``units`` (users or groups) that each meets.
    """
    parts = (*RULES, HELD, PASSED)
    flags = with_flags(rows, "rule", parts).with_columns((1 - pl.col(PASSED)).alias(HELD))
    held = shares(flags, parts, "one", unit=USER, **dice)
    any_rule = rows.filter(pl.col("rule") != PASSED).with_columns(rule=pl.lit(HELD))
    met = (
        pl.concat([rows, any_rule])
        .group_by(part="rule")
        .agg(
            jobs=pl.col("jobs").sum(),
            tasks=pl.col("jeditaskid").n_unique().cast(pl.Int64),
            units=pl.col("unit").n_unique().cast(pl.Int64),
        )
    )
    joined = held.join(met, on="part", how="left", maintain_order="left")
    return joined.with_columns(pl.col("jobs", "tasks", "units").fill_null(0))


def held_by_level(
    rows: pl.DataFrame, columns: Sequence[str] = ("task_class", "gshare"), **dice: Any
) -> pl.DataFrame:
    """Return the share of brokerages that each family of rules holds back, by level of some columns.

    Returns:
        One row per column and level, see `in_order`: ``column``, ``level``, ``brokerages``, ``jobs`` (asked for); of
        each of `FAMILIES`, of `HELD` (any of them) and `PASSED` the share of the brokerages with its ends (``caps,
        caps_lo, caps_hi``); ``resampled``, ``n_units``.
    """
    flags = with_flags(rows, "family", (*FAMILIES, PASSED))
    flags = flags.with_columns((1 - pl.col(PASSED)).alias(HELD))
    formulas = {name: (name, "one") for name in (*FAMILIES, HELD, PASSED)}
    parts = []
    for column in columns:
        held = clustered(flags, formulas, unit=USER, by=[column], **dice)
        counts = rows.group_by(column).agg(
            brokerages=pl.len().cast(pl.Int64), jobs=pl.col("jobs").sum()
        )
        levels = in_order(counts.join(held, on=column), column, "brokerages")
        names = levels.rename({column: "level"}).insert_column(0, pl.lit(column).alias("column"))
        parts.append(names)
    return pl.concat(parts)


def held_over_time(rows: pl.DataFrame, step: str, **dice: Any) -> pl.DataFrame:
    """Return the share of brokerages that each family of rules holds back, by day or week (``step`` 1d or 1w).

    Returns:
        `intervals.shares` over users by ``time``, of families that hold anything back at all.
    """
    timed = rows.with_columns(time=pl.col("at").dt.truncate(step))
    families = [name for name in FAMILIES if (rows["family"] == name).any()]
    flags = with_flags(timed, "family", families)
    return shares(flags, families, "one", by=["time"], unit=USER, **dice)


def held_by_unit(rows: pl.DataFrame) -> pl.DataFrame:
    """Return how often each user or group is held back.

    Returns:
        One row per unit, those with most jobs held back first: ``unit``, ``brokerages``, ``held``, ``share`` of them
        held, ``jobs`` asked for, ``jobs_held``, ``most_by`` (the rule that holds most of its brokerages; null: none), and
        one column per rule of `RULES` [brokerages].
    """
    held = pl.col("rule") != PASSED
    most = (
        rows.filter(held)
        .group_by("unit", most_by="rule")
        .len()
        .sort("len", "most_by", descending=[True, False])
        .unique("unit", keep="first", maintain_order=True)
        .drop("len")
    )
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
        .join(most, on="unit", how="left")
        .sort("jobs_held", "held", "unit", descending=[True, True, False])
    )


def limit_margins(decisions: AnalysisDecisions) -> pl.DataFrame:
    """Return how near tasks come to each limit of the throttle.

    Returns:
        One row per rule T1 to T7, in order: ``rule``, ``limited`` (brokerages for which the limit exists and the number
        is known; no target of 0, in production no cap for merging), ``median`` and ``largest`` of the number over its limit [1]; null where there is none.
    """
    frame = decisions.world.tasks
    rows = [
        frame.select(
            rule=pl.lit(name),
            limited=ratio.count().cast(pl.Int64),
            median=ratio.median().cast(pl.Float64),
            largest=ratio.max().cast(pl.Float64),
        )
        for name, ratio in _over_limit(decisions.world.rules).items()
    ]
    return pl.concat(rows)


def _over_limit(rules: AnalysisRules) -> dict[str, pl.Expr]:
    """Return, for rules T1 to T7, the number that is compared over its limit; null where there is none."""
    usage = pl.col("usage_pct")
    usage = pl.when(usage < NO_TARGET_PCT).then(usage)  # no part of a target of 0
    mine, its_class = pl.col("t_gshare") == LIMITED_SHARE, pl.col("class")
    used = usage * pl.col("used_fraction")
    capped = pl.when(asked_of(pl.col("t_merging"), rules))
    return {
        "cap_running_jobs": capped.then(pl.col("nrunjobs") / pl.col("cap_jobs")),
        "cap_queued_jobs": capped.then(pl.col("nqueuedjobs") / (2 * pl.col("cap_jobs"))),
        "cap_running_cores": capped.then(pl.col("nruncores") / pl.col("cap_cores")),
        "cap_queued_cores": capped.then(pl.col("nqueuedcores") / (2 * pl.col("cap_cores"))),
        "gshare_class_c": pl.when(mine & (its_class == -1)).then(usage / USAGE_C),
        "gshare_class_b": pl.when(mine & (its_class == 0)).then(usage / USAGE_B),
        "gshare_class_a": pl.when(mine & (its_class == 1)).then(used / USAGE_A),
    }
