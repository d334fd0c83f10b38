"""The reasons of the throttle, T1 to T10, as values; what they do is written in :mod:`.throttle`.

The columns are those of :func:`.throttle.throttle`.
"""

from __future__ import annotations

import narwhals.stable.v2 as nw

from brokerlab.brokerage.analysis_jobs.facts import INCOMPLETE
from brokerlab.brokerage.analysis_jobs.late import CAP_KEYS, CLASS_KEYS
from brokerlab.brokerage.analysis_jobs.throttle import (
    LIMITED_SHARE,
    NO_TARGET_PCT,
    USAGE_A,
    USAGE_B,
    USAGE_C,
)
from brokerlab.brokerage.check import Reason
from brokerlab.brokerage.production_jobs.expressions import col
from brokerlab.brokerage.production_jobs.late import COMPLETENESS_KEYS

CHAPTER = "analysis-job-brokerage.md 2, "
_USES = f"share {LIMITED_SHARE} uses {{usage_pct}} % of its target"
_NO_TARGET = f"share {LIMITED_SHARE} has a target of 0 then (nothing runs, or it is due nothing), so any usage is too much"


def throttle_reasons() -> tuple[Reason, ...]:
    """Return why tasks are held back, in the order in which it is tested, incomplete input last."""
    return (
        _cap("T1", "cap_running_jobs", "jobs", "nrunjobs"),
        _cap("T2", "cap_queued_jobs", "jobs", "nqueuedjobs"),
        _cap("T3", "cap_running_cores", "cores", "nruncores"),
        _cap("T4", "cap_queued_cores", "cores", "nqueuedcores"),
        _class("T5", "c", USAGE_C),
        _class("T6", "b", USAGE_B),
        _class_a(),
        _held("T8", "global_quota", "{unit} is over the global disk quota", "global_quota_ok"),
        _held(
            "T9", "near_global_quota", "{unit} is close to the global disk quota",
            "near_global_limit merging",
        ),
        _held(
            "T10", "quota_unavailable", "the local disk quotas of {unit} are not known",
            "local_quota_ok",
        ),
        Reason(
            name=INCOMPLETE, source="analysis-job-brokerage.md 4.1b",
            says="an input dataset is complete nowhere, and the task does not accept incomplete input",
            inputs=("t_incomplete", "t_incomplete_allowed"), keys=COMPLETENESS_KEYS, kind="temporary",
        ),
    )  # fmt: skip


def _held(row: str, name: str, says: str, inputs: str, keys: tuple[str, ...] = ()) -> Reason:
    return Reason(
        name=name, source=CHAPTER + row, says=says, inputs=tuple(inputs.split()), keys=keys, kind="temporary",
    )  # fmt: skip


def _cap(row: str, name: str, what: str, column: str) -> Reason:
    running = column.startswith("nrun")
    limit = f"a cap of {{cap_{what}}}" if running else f"{{limit}}, twice the cap of {{cap_{what}}}"
    verb = "running" if running else "waiting"
    return Reason(
        name=name, source=CHAPTER + row, keys=tuple(key for key in CAP_KEYS if key.endswith(what.upper())), kind="temporary",
        says=f"{{unit}} has {{{column}}} {verb} {what}, more than {limit} running {what}",
        inputs=(column, f"cap_{what}", "merging"),
        numbers={} if running else {"limit": 2 * col(f"cap_{what}")},
    )  # fmt: skip


def _class(row: str, letter: str, limit: int) -> Reason:
    waits = f"; tasks of class {letter.upper()} wait above {limit} %"
    return Reason(
        name=f"gshare_class_{letter}", source=CHAPTER + row, kind="temporary",
        says=_USES + waits, inputs=("gshare", "class", "usage_pct"),
        numbers={"no_target": _no_target()}, variants={"no_target": _NO_TARGET + waits},
    )  # fmt: skip


def _class_a() -> Reason:
    known = "the running slots of {unit} fill {used_pct} % of the threshold"
    unknown = (
        "nothing is known of the slots of {unit}, which counts as {used_pct} % of the threshold"
    )
    both = f", {{product}} % together; tasks of class A wait above {USAGE_A} %"
    waits = "; tasks of class A wait unless no slot counts as used"
    return Reason(
        name="gshare_class_a", source=CHAPTER + "T7", keys=CLASS_KEYS, kind="temporary",
        says=f"{_USES} and {unknown}{both}",
        inputs=("gshare", "class", "usage_pct", "used_fraction", "user_known"),
        numbers={
            "used_pct": 100 * col("used_fraction"),
            "product": col("usage_pct") * col("used_fraction"),
            "no_target": _no_target() & col("user_known"),
            "neither": _no_target() & ~col("user_known"),
        },
        variants={
            "no_target": f"{_NO_TARGET}, and {known}{waits}",
            "neither": f"{_NO_TARGET}, and {unknown}{waits}",
            "user_known": f"{_USES} and {known}{both}",
        },
    )  # fmt: skip


def _no_target() -> nw.Expr:
    return col("usage_pct") >= NO_TARGET_PCT


def is_of(key: str, *, group: bool) -> bool:
    """Tell whether a key of the throttle acts on groups, or on users."""
    return ("_GROUP_" if group else "_USER_") in key or not key.startswith("CAP_")
