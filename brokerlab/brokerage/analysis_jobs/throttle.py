"""The throttle: is job generation of a task held back before any queue is looked at (analysis-jobs.md 2)?"""

from __future__ import annotations

from collections.abc import Collection

import polars as pl
from polars import col

from brokerlab.brokerage.analysis_jobs.contracts import NEEDED
from brokerlab.brokerage.analysis_jobs.settings import AnalysisRules, asked_of, of_tasks
from brokerlab.brokerage.engine.lookup import Known, Lookup
from brokerlab.brokerage.engine.rule import Chapter, Rule
from brokerlab.brokerage.engine.steps import Step, rules_of, with_keys
from brokerlab.brokerage.inputs.frames import KEY
from brokerlab.brokerage.production_jobs.settings import COMPLETENESS_KEYS

_rule = Chapter("analysis-jobs.md 2, ", kind="temporary")
LIMITED_SHARE = "User Analysis"
USAGE_C, USAGE_B, USAGE_A = 90, 95, 100
"""Usage of the share over which classes are held back [%]."""
NO_TARGET_PCT = 99_999_900.0
"""Usage where the target is 0, as where nothing runs at all: over every limit [%] (classes.md 7)."""
INCOMPLETE = "input_incomplete"
TOTALS = ("nrunjobs", "nqueuedjobs", "nruncores", "nqueuedcores")
_USES = f"share {LIMITED_SHARE} uses {{usage_pct}} % of its target"
_NO_TARGET = f"share {LIMITED_SHARE} has a target of 0 then (nothing runs, or it is due nothing), so any usage is too much"


def throttle_rules(rules: AnalysisRules) -> tuple[Rule, ...]:
    """Return why tasks are held back, in the order in which it is tested, incomplete input last.

    Source:
        002, ATLAS Analysis Job Brokerage: "The brokerage throttles the task (not going to submit jobs for the task) if
        ANY of the following conditions holds"; docs/rules/analysis-jobs.md 2.
    """
    further = (
        _rule(
            "T9", "near_global_quota", "{t_unit} is close to the global disk quota",
            col("near_global_limit") & ~col("t_merging"),
        ),
        _rule(
            "T10", "quota_unavailable", "the local disk quotas of {t_unit} are not known",
            ~col("local_quota_ok"),
        ),
        incomplete_input(rules),
    )  # fmt: skip
    known: tuple[Step, ...] = (
        *of_tasks(rules),
        _cap("T1", "cap_running_jobs", "jobs", "nrunjobs", rules),
        _cap("T2", "cap_queued_jobs", "jobs", "nqueuedjobs", rules),
        _cap("T3", "cap_running_cores", "cores", "nruncores", rules),
        _cap("T4", "cap_queued_cores", "cores", "nqueuedcores", rules),
        _class("T5", "c", -1, USAGE_C),
        _class("T6", "b", 0, USAGE_B),
        _class_a(),
        _rule(
            "T8", "global_quota", "{t_unit} is over the global disk quota", ~col("global_quota_ok")
        ),
        *(further if rules.code_only_checks else ()),
    )  # fmt: skip
    return rules_of(with_keys(known))


def incomplete_input(rules: AnalysisRules) -> Rule:
    """Return the rule that holds a task back whose input is complete nowhere (4.1b); of the code alone."""
    return Rule(
        name=INCOMPLETE,
        source="analysis-jobs.md 4",
        says="an input dataset is complete nowhere, and the task does not accept incomplete input",
        when=col("t_incomplete")
        & ~col("t_incomplete_allowed")
        & pl.lit(value=rules.code_only_checks),
        keys=COMPLETENESS_KEYS,
        kind="temporary",
    )


def _cap(row: str, name: str, what: str, column: str, rules: AnalysisRules) -> Rule:
    running = column.startswith("nrun")
    limit = f"a cap of {{cap_{what}}}" if running else f"{{limit}}, twice the cap of {{cap_{what}}}"
    verb = "running" if running else "waiting"
    most = col(f"cap_{what}") if running else 2 * col(f"cap_{what}")
    counts = asked_of(col("t_merging"), rules)
    if rules.caps_need_all_counts:
        counts = counts & pl.all_horizontal([col(total).is_not_null() for total in TOTALS])
    return _rule(
        row, name, f"{{t_unit}} has {{{column}}} {verb} {what}, more than {limit} running {what}",
        counts & (col(column) > most),
        numbers={} if running else {"limit": most},
    )  # fmt: skip


def _limit(task_class: int) -> pl.Expr:
    return (col("t_gshare") == LIMITED_SHARE) & (col("class") == task_class)


def _class(row: str, letter: str, task_class: int, limit: int) -> Rule:
    waits = f"; tasks of class {letter.upper()} wait above {limit} %"
    return _rule(
        row, f"gshare_class_{letter}", _USES + waits,
        _limit(task_class) & (col("usage_pct") > limit),
        numbers={"no_target": _no_target()}, variants={"no_target": _NO_TARGET + waits},
    )  # fmt: skip


def _class_a() -> Rule:
    known = "the running slots of {t_unit} fill {used_pct} % of the threshold"
    unknown = (
        "nothing is known of the slots of {t_unit}, which counts as {used_pct} % of the threshold"
    )
    both = f", {{product}} % together; tasks of class A wait above {USAGE_A} %"
    waits = "; tasks of class A wait unless no slot counts as used"
    product = col("usage_pct") * col("used_fraction")
    return _rule(
        "T7", "gshare_class_a", f"{_USES} and {unknown}{both}",
        _limit(1) & (product > USAGE_A),
        numbers={
            "used_pct": 100 * col("used_fraction"),
            "product": product,
            "no_target": _no_target() & col("user_known"),
            "neither": _no_target() & ~col("user_known"),
        },
        variants={
            "no_target": f"{_NO_TARGET}, and {known}{waits}",
            "neither": f"{_NO_TARGET}, and {unknown}{waits}",
            "user_known": f"{_USES} and {known}{both}",
        },
    )  # fmt: skip


def _no_target() -> pl.Expr:
    return col("usage_pct") >= NO_TARGET_PCT


WAITING, ERROR = "throttled_waiting", "temporary_error"
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

    Jobs of the accounting unit (:data:`TOTALS`), ``class`` of the task, ``usage_pct`` (U; of a target
    of 0 :data:`NO_TARGET_PCT`), ``user_known`` and ``rem_slots_a``, quota.
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
    result = tasks.select("t", throttle=held).drop_nulls("throttle")
    outcomes = {**OUTCOMES, INCOMPLETE: ERROR}
    outcome = pl.col("throttle").replace_strict(outcomes, return_dtype=pl.String)
    return result.with_columns(outcome=outcome).sort("t")


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
        result = kinds.filter(kind).join(last, on=["snapshot", whose])
        parts.append(result.select("snapshot", "t_group", "t_registered", *TOTALS))
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
