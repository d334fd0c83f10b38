"""The checks of single queues, rows 1 to 42 of production-jobs.md 2, in order.

Each is an expression over the columns of a pair: ``t_`` of the task, ``q_`` of the queue, ``p_`` of its unified
parent, ``s_`` state of the parent at the instant, ``l_`` link to the nucleus, ``x_`` of task and queue together.
"""

from __future__ import annotations

from functools import lru_cache

from brokerlab.brokerage.engine.rule import Rule
from brokerlab.brokerage.production_jobs import checks_queue as queue
from brokerlab.brokerage.production_jobs import checks_state as state
from brokerlab.brokerage.production_jobs.checks_queue import time_checks
from brokerlab.brokerage.rules import ProductionRules


@lru_cache(maxsize=64)  # made of many small expressions
def queue_checks(rules: ProductionRules) -> tuple[Rule, ...]:
    """Return the checks in the order in which they run."""
    return (
        *queue.status_checks(rules),
        *state.link_checks(rules),
        queue.opportunistic_check(rules),
        state.inactive_check(rules),
        *queue.policy_checks(rules),
        queue.diskio_check(per_core=rules.diskio_per_core, whole=rules.whole_numbers),
        *queue.core_checks(rules),
        *queue.software_checks(),
        *queue.memory_checks(whole=rules.whole_numbers, base_alone=not rules.memory_by_unit),
        *queue.disk_checks(rules),
        *state.storage_checks(rules),
        *time_checks(rules),
        *queue.network_checks(rules),
        *queue.event_service_checks(rules),
        state.transferring_check(rules),
        *state.shortage_checks(rules),
        *queue.nucleus_checks(rules),
        state.pilot_check(rules),
    )
