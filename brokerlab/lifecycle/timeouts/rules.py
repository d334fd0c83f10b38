"""The two rule sets of the timeouts and of fast rebrokerage, and every switch on which they differ."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from brokerlab.rulesets import RuleSet, Switch

_PAGE = "002, Timeout Rules"

SWITCHES: dict[str, Switch] = {
    "exemption_mode": Switch(
        "document",
        "production",
        _PAGE,
        ("document", "production"),
        sentence="disable all timeout rules when the queue status is paused or the queue has disableReassign in catchall",
    ),
    "holding_lo_any_priority": Switch(
        False, True, _PAGE, sentence="while days for holding jobs with job.currentPriority<800"
    ),
    "holding_hi_from_800": Switch(
        True, False, _PAGE, sentence="3 hours for holding jobs with job.currentPriority>=800"
    ),
    "running_since_creation": Switch(False, True, _PAGE, sentence="21 days for running jobs"),
    "transferring_fixed_limits": Switch(
        False,
        True,
        _PAGE,
        sentence="transtimehi days for transferring jobs with job.currentPriority>=800",
    ),
    "transferring_heartbeat_users": Switch(
        False,
        True,
        _PAGE,
        sentence="the above HEARTBEAT_TIMEOUT_<workflow> for transferring jobs with the workflow and own stage-out mechanism that sets not-null job.jobSubStatus",
    ),
    "heartbeat_stages": Switch(
        False, True, _PAGE, sentence="2 hours for heartbeats from running or starting jobs."
    ),
    "assigned_whole_table": Switch(False, True, _PAGE, sentence="12 hours for assigned jobs"),
    "label_limits": Switch(False, True, _PAGE, sentence="2 days for activated or starting jobs"),
    "fr_row_limit_bug": Switch(False, True, "docs/rules/waiting.md 4"),
    "fr_zero_running_triggers": Switch(
        True,
        True,
        _PAGE,
        sentence="nQueue_queue(gshare)/nRun_queue(gshare) is larger than FAST_REBRO_THRESHOLD_NQNR_RATIO",
    ),
    "analysis_rebrokerage": Switch(False, True, "docs/rules/waiting.md 3"),
    "heartbeat_two_checks": Switch(
        False,
        True,
        _PAGE,
        sentence="Each workflow can define own timeout value using HEARTBEAT_TIMEOUT_<workflow> in gdpconfig",
    ),
    "inactive_queue_two_steps": Switch(
        False,
        True,
        _PAGE,
        sentence="4 hours for activated or starting jobs with job.currentPriority>=800",
    ),
    "code_only_rules": Switch(False, True, "docs/rules/waiting.md 2.2"),
    "second_look": Switch(False, True, "docs/rules/waiting.md 2.2"),
}


@dataclass(frozen=True, init=False)
class TimeoutRules(RuleSet):
    """One rule set of the timeouts with its switches; part of every result's provenance.

    Both sets follow the code where the page gives no number: see docs/rules/waiting.md.

    Attributes:
        rules: ``document`` (the published page) or ``production`` (the deployed code).
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
