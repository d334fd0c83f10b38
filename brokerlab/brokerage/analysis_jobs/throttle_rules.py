"""The rules of the throttle, T1 to T10, over facts of tasks, see :func:`.throttle.of_users`."""

from __future__ import annotations

import polars as pl

from brokerlab.brokerage.analysis_jobs.rules import AnalysisRules, asked_of
from brokerlab.brokerage.analysis_jobs.settings import of_tasks
from brokerlab.brokerage.engine.rule import Chapter, Rule
from brokerlab.brokerage.engine.settings import with_keys
from brokerlab.brokerage.engine.steps import Step, rules_of
from brokerlab.brokerage.production_jobs.expressions import col
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


def _limited(task_class: int) -> pl.Expr:
    return (col("t_gshare") == LIMITED_SHARE) & (col("class") == task_class)


def _class(row: str, letter: str, task_class: int, limit: int) -> Rule:
    waits = f"; tasks of class {letter.upper()} wait above {limit} %"
    return _rule(
        row, f"gshare_class_{letter}", _USES + waits,
        _limited(task_class) & (col("usage_pct") > limit),
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
        _limited(1) & (product > USAGE_A),
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


def is_of(key: str, *, group: bool) -> bool:
    """Tell whether a key of the throttle acts on groups, or on users."""
    return ("_GROUP_" if group else "_USER_") in key or not key.startswith("CAP_")
