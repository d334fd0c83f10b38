"""The throttle: is job generation of a task held back before any queue is looked at (analysis-jobs.md 2)?"""

from __future__ import annotations

from collections.abc import Collection

import polars as pl

from brokerlab.brokerage.analysis_jobs.contracts import NEEDED
from brokerlab.brokerage.analysis_jobs.rules import AnalysisRules
from brokerlab.brokerage.analysis_jobs.throttle_rules import (
    INCOMPLETE,
    LIMITED_SHARE,
    TOTALS,
    throttle_rules,
)
from brokerlab.brokerage.engine.lookup import Known, Lookup
from brokerlab.brokerage.inputs.valid import KEY

WAITING, ERROR, PASS = "throttled_waiting", "temporary_error", "pass"
"""Outcomes; the first does not start the clock that exhausts pending tasks."""
LEVEL_1 = f"L1 {LIMITED_SHARE}"
CLASS_AGE_MIN, USAGE_AGE_MIN, USER_AGE_MIN = 15, 15, 20
"""Metrics that are older count as missing [min]."""
OUTCOMES = {
    "cap_running_jobs": WAITING,
    "cap_queued_jobs": WAITING,
    "cap_running_cores": WAITING,
    "cap_queued_cores": WAITING,
    "gshare_class_c": WAITING,
    "gshare_class_b": WAITING,
    "gshare_class_a": WAITING,
    "global_quota": ERROR,
    "near_global_quota": ERROR,
    "quota_unavailable": ERROR,
}
"""The rules T1 to T10 in order, with their outcomes."""
TABLES = ("user_totals", "task_class", "gshare_usage", "user_eval", "quota")
"""Tables that the throttle reads besides the tasks."""
QUOTA = ("global_quota_ok", "near_global_limit", "local_quota_ok")


def of_users() -> tuple[Lookup, ...]:
    """Return what the throttle compares.

    Jobs of the accounting unit (:data:`.throttle_rules.TOTALS`), ``class`` of the task, ``usage_pct`` (U; of a target
    of 0 :data:`.throttle_rules.NO_TARGET_PCT`), ``user_known`` and ``rem_slots_a``, quota.
    """
    return (
        Lookup(
            task=("snapshot", "t_group", "t_registered"), facts=dict.fromkeys(TOTALS),
            rows=_totals, tables=TABLES,
        ),
        Lookup(task=KEY, facts={"class": None}, rows=task_classes, tables=TABLES, reads=("at",)),
        Lookup(task=("snapshot", "at"), facts={"usage_pct": None}, rows=_usage, tables=TABLES),
        Lookup(
            task=("snapshot", "at", "t_registered"),
            facts={"user_known": False, "rem_slots_a": None}, rows=_user, tables=TABLES,
        ),
        Lookup(
            task=("snapshot", "t_unit"), facts=dict.fromkeys(QUOTA), rows=_quota, tables=TABLES
        ),
    )  # fmt: skip


def ended(tasks: pl.LazyFrame, rules: AnalysisRules, missing: Collection[str] = ()) -> pl.LazyFrame:
    """Return ``t, throttle, outcome`` of tasks that are held back, or whose input is incomplete.

    Rules that need a table of ``missing`` hold nobody back.
    """
    unasked = {name for table in missing for name in NEEDED.get(table, ())}
    held = pl.coalesce(
        pl.when(rule.when.fill_null(value=False)).then(pl.lit(rule.name))
        for rule in throttle_rules(rules)
        if rule.name not in unasked
    )
    found = tasks.select("t", throttle=held).drop_nulls("throttle")
    outcomes = {**OUTCOMES, INCOMPLETE: ERROR}
    outcome = pl.col("throttle").replace_strict(outcomes, return_dtype=pl.String)
    return found.with_columns(outcome=outcome).sort("t")


def fresh(minutes: int) -> pl.Expr:
    """Tell which metrics are young enough at the instant; without a time they are."""
    old = (pl.col("at") - pl.col("timestamp")) > pl.duration(minutes=minutes)
    return ~old.fill_null(value=False)


def task_classes(known: Known) -> pl.LazyFrame:
    """Return ``class`` of the tasks where it is not out of date (4.13)."""
    rows = known.tables["task_class"].unique(KEY, keep="last", maintain_order=True)
    timed = rows.join(known.tasks.select(*KEY, "at"), on=[*KEY])
    return timed.with_columns(pl.when(fresh(CLASS_AGE_MIN)).then("class").alias("class"))


def _totals(known: Known) -> pl.LazyFrame:
    """Return the jobs of the accounting unit, the group where the task has one."""
    totals = known.tables["user_totals"]
    kinds = known.tasks.select("snapshot", "t_group", "t_registered").unique()
    grouped = pl.col("t_group").is_not_null()
    parts = []
    for kind, rows, name, whose in (
        (grouped, totals.drop_nulls("workinggroup"), "workinggroup", "t_group"),
        (~grouped, totals.filter(pl.col("workinggroup").is_null()), "origusername", "t_registered"),
    ):
        last = rows.select("snapshot", *TOTALS, **{whose: name}).unique(
            ["snapshot", whose], keep="last", maintain_order=True
        )
        found = kinds.filter(kind).join(last, on=["snapshot", whose])
        parts.append(found.select("snapshot", "t_group", "t_registered", *TOTALS))
    return pl.concat(parts)


def _usage(known: Known) -> pl.LazyFrame:
    """Return U, the usage of the limited share [% of its target] (2.1)."""
    frame = known.tasks.select("snapshot", "at").unique()
    for share, column, name in (
        (LIMITED_SHARE, "usage_perc", "own"),
        (LEVEL_1, "eqiv_usage_perc", "equivalent"),
    ):
        rows = known.tables["gshare_usage"].filter(pl.col("gshare") == share)
        rows = rows.unique("snapshot", keep="last", maintain_order=True)
        rows = rows.select("snapshot", "timestamp", **{name: column})
        frame = frame.join(rows, on="snapshot", how="left").with_columns(
            pl.when(fresh(USAGE_AGE_MIN)).then(100 * pl.col(name)).alias(name)
        )
        frame = frame.drop("timestamp")
    least = pl.col("own")
    if known.rules.use_l1_share:
        least = pl.min_horizontal("own", "equivalent")
    return frame.with_columns(usage_pct=pl.when(pl.col("own").is_not_null()).then(least))


def _user(known: Known) -> pl.LazyFrame:
    """Return the slots left to users below the threshold, and whether that is known (2.3)."""
    rows = known.tables["user_eval"].rename({"user": "t_registered"})
    rows = rows.unique(["snapshot", "t_registered"], keep="last", maintain_order=True)
    kinds = known.tasks.select("snapshot", "at", "t_registered").unique()
    known_now = fresh(USER_AGE_MIN) & pl.col("rem_slots_a").is_not_null()
    return kinds.join(rows, on=["snapshot", "t_registered"]).with_columns(user_known=known_now)


def _quota(known: Known) -> pl.LazyFrame:
    """Return the quota of the task's group or user; a row without name holds for all others."""
    rows = known.tables["quota"].select("snapshot", *QUOTA, t_unit="username")
    rows = rows.unique(["snapshot", "t_unit"], keep="last", maintain_order=True)
    named = rows.drop_nulls("t_unit")
    common = rows.filter(pl.col("t_unit").is_null()).drop("t_unit")
    joined = (
        known.tasks.select("snapshot", "t_unit")
        .unique()
        .join(named, on=["snapshot", "t_unit"], how="left")
        .join(common, on="snapshot", how="left", suffix="_common")
    )
    return joined.with_columns(pl.coalesce(name, f"{name}_common").alias(name) for name in QUOTA)
