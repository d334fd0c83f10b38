"""The switches of the twin, as plain data: name -> (document, production)."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

SWITCHES: dict[str, tuple[Any, Any]] = {
    "drop_test_queues": (True, False),
    "parent_stays_in_list": (False, True),
    "merging_freed_by": ("waiting", "untouched"),
    "preassigned_exempt": (False, True),
    "standby_online": (False, True),
    "backlog_inclusive": (False, True),
    "backlog_spares_nucleus": (False, True),
    "inactive_counts_starting": (False, True),
    "test_work_exempt": (False, True),
    "io_check_strict": (True, False),
    "io_check_relents": (False, True),
    "io_check_exempts": (False, True),
    "diskio_per_core": (False, True),
    "memory_by_unit": (False, True),
    "whole_numbers": (False, True),
    "output_of_master": (False, True),
    "direct_asks_task": (False, True),
    "workdisk_adds": (False, True),
    "maxwdir_per_core": (True, False),
    "scratch_equal_passes": (False, True),
    "free_equal_passes": (False, True),
    "local_space": ("free", "usable"),
    "other_status_up": (False, True),
    "datadisk_only": (False, True),
    "wan_asked_at_nucleus": (False, True),
    "nucleus_must_send": (True, False),
    "long_queue_by_capacity": (False, True),
    "zero_efficiency_rejects": (False, True),
    "unknown_walltime_is_short": (False, True),
    "zero_maxtime_limits": (False, True),
    "ip_stack_strict": (True, False),
    "transferring_spares": (False, True),
    "any_negative_t1weight": (False, True),
    "single_t1_queue": (False, True),
    "pilots_excused": (False, True),
    "urgent_is_pattern": (True, False),
    "express_from_1000": (True, False),
    "network_needs_active": (False, True),
    "shortage_counts_starting": (False, True),
    "running_count": ("largest", "deployed"),
    "counted_jobs": ("queue", "share"),
    "slots_per_core": (False, True),
    "many_assigned_plus_one": (False, True),
    "nucleus_preferred": (False, True),
    "hardware_preferred": (False, True),
    "cap_mode": ("twice_running", "limit"),
    "bootstrap_first": (False, True),
    "jumbo_queues": (False, True),
    "code_only_checks": (False, True),
    "queued_line": ("plot", "cap"),
    "throughput_step_50": (1.7, 1.6),
    "newest_window_first": (True, False),
}


def switches(rules: Any = "document") -> Any:
    """Return an object with one attribute per switch.

    Args:
        rules: ``document``, ``production``, a dict of switches (the rest as in the set that its ``rules`` names, or ``document``), or any object
            that has the attributes.
    """
    if isinstance(rules, str):
        column = ("document", "production").index(rules)
        return SimpleNamespace(
            rules=rules, **{name: pair[column] for name, pair in SWITCHES.items()}
        )
    if isinstance(rules, dict):
        return SimpleNamespace(**{**vars(switches(rules.get("rules", "document"))), **rules})
    return rules
