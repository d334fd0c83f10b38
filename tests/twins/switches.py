"""The switches of the twin, as plain data: name -> (document, production); rows of the chapters' last tables."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

SWITCHES: dict[str, tuple[Any, Any]] = {
    "drop_test_queues": (True, False),  # J1
    "standby_online": (False, True),  # J2
    "backlog_inclusive": (False, True),  # J3
    "inactive_counts_starting": (False, True),  # J4
    "workdisk_adds": (False, True),  # J8
    "maxwdir_per_core": (False, False),  # J9
    "scratch_equal_passes": (False, True),  # J10
    "free_equal_passes": (False, True),  # J11
    "long_queue_by_capacity": (False, True),  # J13
    "zero_efficiency_rejects": (False, True),  # J14
    "zero_maxtime_limits": (False, True),  # J14b
    "other_status_up": (False, True),  # J15
    "ip_stack_strict": (False, False),  # J18
    "express_from_1000": (True, False),  # J20
    "shortage_counts_starting": (False, True),  # J21
    "io_check_strict": (False, False),  # J22
    "running_count": ("largest", "deployed"),  # J24, J31
    "cap_mode": ("limit", "limit"),  # J26
    "network_needs_active": (False, True),  # J28
    "bootstrap_first": (True, True),  # J29
    "single_t1_queue": (False, True),  # J30
    "parent_stays_in_list": (False, True),  # J37
    "throughput_step_50": (1.7, 1.6),  # D1
    "newest_window_first": (True, False),  # D3
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
