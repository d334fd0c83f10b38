"""The throttle: is job generation of a task held back before any queue is looked at (analysis-jobs.md 2)?"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

import polars as pl

from brokerlab.brokerage.analysis_jobs.contracts import NEEDED, TABLES
from brokerlab.brokerage.analysis_jobs.keys import place_of
from brokerlab.brokerage.analysis_jobs.rules import AnalysisRules
from brokerlab.brokerage.analysis_jobs.settings import of_throttle
from brokerlab.brokerage.analysis_jobs.throttle_rules import (
    LIMITED_SHARE,
    TOTALS,
    throttle_rules,
    used_fraction,
)
from brokerlab.brokerage.engine.pairs import run
from brokerlab.brokerage.engine.settings import settings_read, with_settings
from brokerlab.brokerage.inputs.given import read_given
from brokerlab.brokerage.inputs.valid import at_every
from brokerlab.gdpconfig import Config

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
KEYS = ["jeditaskid", "snapshot"]


def throttle(
    tables: Mapping[str, Any], *, rules: AnalysisRules | None = None, config: Config | None = None
) -> pl.DataFrame:
    """Decide which tasks are held back.

    Args:
        tables: ``tasks``, ``user_totals``, ``task_class``, ``gshare_usage``, ``user_eval``, ``quota``; see
            :data:`~.contracts.TABLES`. Other tables are not looked at.
        rules: Rule set, switch ``use_l1_share`` and those of :func:`~.throttle_rules.throttle_rules`; null =
            ``document``.
        config: Settings; null = defaults.

    Returns:
        One row per task, sorted by ``jeditaskid, snapshot``: ``throttle`` (the first rule of :data:`OUTCOMES` that
        holds; null: none), ``outcome``, and what was compared: ``unit`` (user or working group), ``usage_pct`` (U; of a target of 0 :data:`NO_TARGET_PCT`), ``used_fraction`` (r),
        ``user_known`` (r is not the number that stands for an unknown user), ``class``,
        ``nrunjobs``, ``nqueuedjobs``, ``nruncores``, ``nqueuedcores``, ``cap_jobs``, ``cap_cores`` (null: no cap).

    Raises:
        SchemaError: Unknown tables, values of another type.

    Source:
        analysis-jobs.md 2.

    Example:
        >>> tables = {
        ...     "tasks": pl.DataFrame({"jeditaskid": [7], "gshare": "User Analysis"}),
        ...     "task_class": pl.DataFrame({"jeditaskid": [7], "class": [-1]}),
        ...     "gshare_usage": pl.DataFrame({"gshare": ["User Analysis"], "usage_perc": [0.91]}),
        ... }
        >>> throttle(tables).select("throttle", "outcome").row(0)
        ('gshare_class_c', 'throttled_waiting')
    """
    given = read_given(tables, TABLES)
    rules = rules or AnalysisRules()
    return throttled(
        given.tables, rules=rules, config=config or Config.empty(), missing=given.missing
    )


def throttled(
    tables: Mapping[str, pl.DataFrame],
    *,
    rules: AnalysisRules,
    config: Config,
    missing: Collection[str] = (),
) -> pl.DataFrame:
    """Decide as :func:`throttle` does, on tables held to their contracts; rules that need a missing one hold nobody back."""
    unasked = {name for table in missing for name in NEEDED.get(table, ())}
    tasks = tables["tasks"].with_columns(pl.col("snapshot").fill_null(0))
    tasks = with_settings(tasks, settings_read(of_throttle()), config, place_of)
    snapshots = tasks.select("snapshot").unique()
    state = {name: at_every(tables[name], snapshots).lazy() for name in STATE_TABLES}
    return run(planned(tasks.lazy(), state, rules=rules, unasked=unasked))


STATE_TABLES = ("user_totals", "task_class", "gshare_usage", "user_eval", "quota")
"""Tables that the throttle reads besides the tasks."""


def planned(
    tasks: pl.LazyFrame,
    state: Mapping[str, pl.LazyFrame],
    *,
    rules: AnalysisRules,
    unasked: Collection[str] = (),
) -> pl.LazyFrame:
    """Return the plan of :func:`throttled`.

    Args:
        tasks: Tasks, ``snapshot`` filled, with the settings that :func:`~.settings.of_throttle` reads.
        state: :data:`STATE_TABLES` for every snapshot.
        rules: Rule set.
        unasked: Names of rules that hold nobody back.
    """
    user = pl.coalesce("origusername", "username")
    frame = tasks.select(
        *KEYS, "at", "gshare", "workinggroup", *settings_read(of_throttle()), user=user,
        merging=pl.col("is_merging").fill_null(value=False),
    )  # fmt: skip
    for derived in of_throttle():
        frame = frame.with_columns(**derived.columns)
    frame = _with_totals(frame, state["user_totals"])
    frame = _with_class(frame, state)
    frame = _with_usage(frame, state["gshare_usage"], rules=rules)
    frame = _with_user(frame, state["user_eval"], rules=rules)
    frame = _with_quota(frame, state["quota"])
    found = frame.with_columns(
        throttle=pl.coalesce(
            pl.when(rule.when.fill_null(value=False)).then(pl.lit(rule.name))
            for rule in throttle_rules(rules)
            if rule.name in OUTCOMES and rule.name not in unasked
        )
    )
    outcome = pl.col("throttle").replace_strict(OUTCOMES, default=PASS, return_dtype=pl.String)
    return found.select(
        *KEYS, "throttle", "unit", "usage_pct", "used_fraction", "user_known", "class", *TOTALS, "cap_jobs", "cap_cores",
        outcome=outcome,
    ).sort(KEYS)  # fmt: skip


def fresh(minutes: int) -> pl.Expr:
    """Tell which metrics are young enough at the instant; without a time they are."""
    old = (pl.col("at") - pl.col("timestamp")) > pl.duration(minutes=minutes)
    return ~old.fill_null(value=False)


def _with_totals(frame: pl.LazyFrame, totals: pl.LazyFrame) -> pl.LazyFrame:
    """Add the jobs of the accounting unit, the group where the task has one."""
    groups = totals.drop_nulls("workinggroup").select("snapshot", "workinggroup", *TOTALS)
    users = totals.filter(pl.col("workinggroup").is_null())
    users = users.select("snapshot", *TOTALS, user="origusername")
    of_group = frame.filter(pl.col("workinggroup").is_not_null())
    of_user = frame.filter(pl.col("workinggroup").is_null())

    return pl.concat(
        [
            of_group.join(
                groups.unique(["snapshot", "workinggroup"], keep="last", maintain_order=True),
                on=["snapshot", "workinggroup"], how="left",
            ),
            of_user.join(
                users.unique(["snapshot", "user"], keep="last", maintain_order=True),
                on=["snapshot", "user"], how="left",
            ),
        ]
    )  # fmt: skip


def _with_class(frame: pl.LazyFrame, state: Mapping[str, pl.LazyFrame]) -> pl.LazyFrame:
    """Add the class of the task; null where unknown or out of date."""
    rows = state["task_class"].unique(KEYS, keep="last", maintain_order=True)
    joined = frame.join(rows, on=KEYS, how="left")
    return joined.with_columns(
        pl.when(fresh(CLASS_AGE_MIN)).then("class").alias("class")
    ).drop("timestamp")  # fmt: skip


def _with_usage(frame: pl.LazyFrame, usage: pl.LazyFrame, *, rules: AnalysisRules) -> pl.LazyFrame:
    """Add U, the usage of the limited share [% of its target] (2.1)."""
    for share, column, name in (
        (LIMITED_SHARE, "usage_perc", "own"),
        (LEVEL_1, "eqiv_usage_perc", "equivalent"),
    ):
        rows = usage.filter(pl.col("gshare") == share).unique(
            "snapshot", keep="last", maintain_order=True
        )
        frame = frame.join(
            rows.select("snapshot", "timestamp", **{name: column}), on="snapshot", how="left"
        ).with_columns(pl.when(fresh(USAGE_AGE_MIN)).then(100 * pl.col(name)).alias(name))
        frame = frame.drop("timestamp")
    least = pl.min_horizontal("own", "equivalent") if rules.use_l1_share else pl.col("own")
    return frame.with_columns(usage_pct=pl.when(pl.col("own").is_not_null()).then(least))


def _with_user(frame: pl.LazyFrame, users: pl.LazyFrame, *, rules: AnalysisRules) -> pl.LazyFrame:
    """Add r, the part of the threshold that the user's running jobs fill (2.3)."""
    rows = users.unique(["snapshot", "user"], keep="last", maintain_order=True)
    joined = frame.join(rows, on=["snapshot", "user"], how="left")
    known = fresh(USER_AGE_MIN) & pl.col("rem_slots_a").is_not_null()
    found = joined.with_columns(user_known=known)
    return found.with_columns(used_fraction=used_fraction(rules)).drop("timestamp")


def _with_quota(frame: pl.LazyFrame, quota: pl.LazyFrame) -> pl.LazyFrame:
    """Add the quota of the task's group or user; a row without name holds for all others."""
    flags = ["global_quota_ok", "near_global_limit", "local_quota_ok"]
    rows = quota.select("snapshot", "username", *flags).unique(
        ["snapshot", "username"], keep="last", maintain_order=True
    )
    named = rows.drop_nulls("username").rename({"username": "unit"})
    common = rows.filter(pl.col("username").is_null()).drop("username")
    joined = (
        frame.with_columns(unit=pl.coalesce("workinggroup", "user"))
        .join(named, on=["snapshot", "unit"], how="left")
        .join(common, on="snapshot", how="left", suffix="_common")
    )
    return joined.with_columns(pl.coalesce(name, f"{name}_common").alias(name) for name in flags)
