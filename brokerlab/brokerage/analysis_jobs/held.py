"""The reasons of the throttle, T1 to T10, as values; what they do is written in :mod:`.throttle`.

The columns are those of :func:`.throttle.throttle`.
"""

from __future__ import annotations

from brokerlab.brokerage.analysis_jobs.facts import INCOMPLETE
from brokerlab.brokerage.analysis_jobs.late import CAP_KEYS, CLASS_KEYS
from brokerlab.brokerage.analysis_jobs.throttle import LIMITED_SHARE, USAGE_A, USAGE_B, USAGE_C
from brokerlab.brokerage.check import Reason
from brokerlab.brokerage.production_jobs.expressions import col
from brokerlab.brokerage.production_jobs.late import COMPLETENESS_KEYS

CHAPTER = "analysis-job-brokerage.md 2, "
_TARGET = f"share {LIMITED_SHARE} uses {{usage_pct}} % of its target"


def throttle_reasons() -> tuple[Reason, ...]:
    """Return why tasks are held back, in the order in which it is tested, incomplete input last."""
    return (
        _cap("T1", "cap_running_jobs", "jobs", "nrunjobs"),
        _cap("T2", "cap_queued_jobs", "jobs", "nqueuedjobs"),
        _cap("T3", "cap_running_cores", "cores", "nruncores"),
        _cap("T4", "cap_queued_cores", "cores", "nqueuedcores"),
        _held(
            "T5", "gshare_class_c",
            f"{_TARGET}; tasks of class C wait above {USAGE_C} %",
            "gshare class usage_pct",
        ),
        _held(
            "T6", "gshare_class_b",
            f"{_TARGET}; tasks of class B wait above {USAGE_B} %",
            "gshare class usage_pct",
        ),
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


def _class_a() -> Reason:
    return Reason(
        name="gshare_class_a", source=CHAPTER + "T7", keys=CLASS_KEYS, kind="temporary",
        says=f"{_TARGET} and the running slots of {{unit}} fill {{used_pct}} % of the threshold, {{product}} % together; "
        f"tasks of class A wait above {USAGE_A} %",
        inputs=("gshare", "class", "usage_pct", "used_fraction"),
        numbers={
            "used_pct": 100 * col("used_fraction"),
            "product": col("usage_pct") * col("used_fraction"),
        },
    )  # fmt: skip


def is_of(key: str, *, group: bool) -> bool:
    """Tell whether a key of the throttle acts on groups, or on users."""
    return ("_GROUP_" if group else "_USER_") in key or not key.startswith("CAP_")
