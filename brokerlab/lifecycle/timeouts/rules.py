"""The two rule sets of the timeouts and of fast rebrokerage, and every switch on which they differ."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from brokerlab.rulesets import RuleSet, Switch

SWITCHES: dict[str, Switch] = {
    "exemption_mode": Switch(
        "document", "production", "paused / disableReassign", ("document", "production")
    ),
    "holding_lo_any_priority": Switch(False, True, "holding < 800"),
    "holding_hi_from_800": Switch(True, False, "priority 800 for holding"),
    "running_since_creation": Switch(False, True, "running 21 d"),
    "transferring_fixed_limits": Switch(False, True, "transferring limits"),
    "transferring_heartbeat_users": Switch(False, True, "heartbeat transferring"),
    "heartbeat_stages": Switch(False, True, "starting, stagein, stageout"),
    "assigned_whole_table": Switch(False, True, "assigned 12 h"),
    "label_limits": Switch(False, True, "label limits"),
    "fr_row_limit_bug": Switch(False, True, "fast rebrokerage count"),
    "fr_zero_running_triggers": Switch(True, True, "fast rebrokerage nr = 0"),
    "analysis_rebrokerage": Switch(True, True, "analysis 12 h rebrokerage"),
    "heartbeat_two_checks": Switch(False, True, "section 2.1"),
    "inactive_queue_two_steps": Switch(False, True, "section 2.3"),
    "code_only_rules": Switch(False, True, "section 2.2, the rules x_"),
    "second_look": Switch(False, True, "section 2.2, the failing component"),
}
"""Rows of timeouts-rebrokerage.md 6 by subject, then what its sections 2.1 to 2.3 say of the code alone.

The rows "reference times", "ES merge job" and "fast rebrokerage statuses" recommend one reading: no switch.
"""


@dataclass(frozen=True, init=False)
class TimeoutRules(RuleSet):
    """One rule set of the timeouts with its switches; part of every result's provenance.

    Where the last column of the chapter's table recommends the code, both rule sets follow it.

    Attributes:
        rules: ``document`` (the published page, production where it is silent) or ``production``.
        exemption_mode: ``document``: queues that are paused or have disableReassign are exempt from every rule and
            from fast rebrokerage; ``production``: paused from the heartbeat of production, disableReassign from
            ``activated``, ``starting`` and ``inactive_queue``.
        holding_lo_any_priority: ``holding_lo`` has no upper end of priority.
        holding_hi_from_800: ``holding_hi`` includes priority 800 itself.
        running_since_creation: ``running`` counts from creation, in any live status but those before activation
            (else: running jobs, from their start).
        transferring_fixed_limits: 2 and 6 days since endtime, users always the long one (else: the queue's, since
            endtime or starttime).
        transferring_heartbeat_users: Heartbeats of transferring jobs are asked of users alone
            (``x_transferring_user``; else: where a workflow has a limit of its own and the job a sub-status).
        heartbeat_stages: stagein and stageout need heartbeats as well.
        assigned_whole_table: ``assigned`` takes every status before activation.
        label_limits: Reassigning is for managed (and test) jobs under JEDI that may move.
        fr_row_limit_bug: Fast rebrokerage moves one job fewer than it computed.
        fr_zero_running_triggers: Without running jobs the ratio of queued to running counts as exceeded.
        analysis_rebrokerage: Waiting analysis jobs are brokered again (section 3).
        heartbeat_two_checks: Users are tested against the limit of their queue too; workflows are those of online
            queues; a queue whose workflow is literally production or analysis drops out once there is another key.
        inactive_queue_two_steps: One late job opens a queue for all its activated and starting ones.
        code_only_rules: The rules whose names begin with ``x_``.
        second_look: A job is failed only if what fails it agrees; ``running`` fails jobs besides killing them.

    Example:
        >>> TimeoutRules().holding_hi_from_800, TimeoutRules("production").holding_hi_from_800
        (True, False)
    """

    SWITCHES: ClassVar[Mapping[str, Switch]] = SWITCHES
    SUBJECT: ClassVar[str] = "timeout rules"

    exemption_mode: str
    holding_lo_any_priority: bool
    holding_hi_from_800: bool
    running_since_creation: bool
    transferring_fixed_limits: bool
    transferring_heartbeat_users: bool
    heartbeat_stages: bool
    assigned_whole_table: bool
    label_limits: bool
    fr_row_limit_bug: bool
    fr_zero_running_triggers: bool
    analysis_rebrokerage: bool
    heartbeat_two_checks: bool
    inactive_queue_two_steps: bool
    code_only_rules: bool
    second_look: bool
