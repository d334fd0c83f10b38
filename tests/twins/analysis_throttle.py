"""Whether job generation of a task is held back (analysis-jobs.md 2)."""

from __future__ import annotations

from typing import Any

from tests.twins.analysis_world import Row, World, fresh
from tests.twins.world import when

USER_ANALYSIS = "User Analysis"

Held = tuple[str, str] | None


def throttle(world: World, task: Row) -> Held:
    """Return the first rule that holds with its outcome; none where jobs may be generated."""
    for check, outcome in (
        (_caps, "throttled_waiting"),
        (_classes, "throttled_waiting"),
        (_quota, "temporary_error"),
    ):
        found = check(world, task)
        if found is not None:
            return found, outcome
    return None


def accounted(task: Row) -> str | None:
    """Return who the jobs of a task are counted for, the user or the working group."""
    return task.get("workinggroup") or user_of(task)


def user_of(task: Row) -> str | None:
    return task.get("origusername") or task.get("username")


def _caps(world: World, task: Row) -> str | None:
    """T1 to T4."""
    if task.get("is_merging") and world.rules.code_only_exemptions:
        return None
    group = task.get("workinggroup")
    kind = "GROUP" if group else "USER"
    totals = None
    for row in world.rows("user_totals"):
        if group and row.get("workinggroup") == group:
            totals = row
        if not group and not row.get("workinggroup") and row.get("origusername") == user_of(task):
            totals = row
    names = [f"{state}{unit}" for state in ("nrun", "nqueued") for unit in ("jobs", "cores")]
    if totals is None:
        return None
    if world.rules.caps_need_all_counts and any(totals.get(name) is None for name in names):
        return None
    for unit in ("jobs", "cores"):
        cap = world.setting("prio_mgr", f"CAP_RUNNING_{kind}_{unit.upper()}")
        if not cap:
            continue
        if (totals.get(f"nrun{unit}") or 0) > cap:
            return f"cap_running_{unit}"
        if (totals.get(f"nqueued{unit}") or 0) > 2 * cap:
            return f"cap_queued_{unit}"
    return None


def task_class(world: World, task: Row) -> int | None:
    """Return the class of a task, none where it is unknown or older than 15 min (2.2)."""
    rows = world.task_rows("task_class", task["jeditaskid"])
    found = fresh(rows[-1], when(task.get("at")), 15) if rows else None
    return None if found is None else found.get("class")


def _classes(world: World, task: Row) -> str | None:
    """T5 to T7."""
    level = task_class(world, task)
    usage = _usage(world, task)
    if task.get("gshare") != USER_ANALYSIS or level is None or usage is None:
        return None
    if level == -1 and usage > 90:
        return "gshare_class_c"
    if level == 0 and usage > 95:
        return "gshare_class_b"
    if level == 1 and usage * _ratio(world, task) > 100:
        return "gshare_class_a"
    return None


def _usage(world: World, task: Row) -> float | None:
    """Return U: how much of its target the share uses [%] (2.1)."""
    at = when(task.get("at"))
    own = fresh(world.shares.get(USER_ANALYSIS), at, 15) or {}
    if own.get("usage_perc") is None:
        return None
    usage: float = 100 * own["usage_perc"]
    first = fresh(world.shares.get(f"L1 {USER_ANALYSIS}"), at, 15) or {}
    if world.rules.use_l1_share and first.get("eqiv_usage_perc") is not None:
        usage = min(usage, 100 * first["eqiv_usage_perc"])
    return usage


def _ratio(world: World, task: Row) -> float:
    """Return r, the running slots of the user at hi sites as a part of threshold A (2.3)."""
    row = fresh(world.evaluated.get(user_of(task) or ""), when(task.get("at")), 20)
    if row is None or row.get("rem_slots_a") is None:
        return float(world.rules.unknown_user_fraction)
    ratio: float = 1 - row["rem_slots_a"] / world.setting("analy_eval", "USER_USAGE_THRESHOLD_A")
    return ratio


def quota_of(world: World, task: Row) -> Row:
    """Return what is known of the quota of who the task is accounted to."""
    found: Row = {}
    for row in world.rows("quota"):
        if row.get("username") in (None, accounted(task)):
            found = row
    return found


def _quota(world: World, task: Row) -> str | None:
    """T8 to T10."""
    quota: dict[str, Any] = quota_of(world, task)
    if quota.get("global_quota_ok") is False:
        return "global_quota"
    if not world.rules.code_only_checks:
        return None
    if quota.get("near_global_limit") and not task.get("is_merging"):
        return "near_global_quota"
    if quota.get("local_quota_ok") is False:
        return "quota_unavailable"
    return None
