"""The two rule sets of the timeouts and of fast rebrokerage, and every switch on which they differ."""

from __future__ import annotations

from dataclasses import dataclass

from brokerlab.rulesets import RuleSet


@dataclass(frozen=True, init=False)
class TimeoutRules(RuleSet, chapter="waiting"):
    """One rule set of the timeouts with its switches; part of every result's provenance.

    Both sets follow the code where the page gives no number: see docs/rules/waiting.md.

    Example:
        >>> TimeoutRules().holding_hi_from_800, TimeoutRules("production").holding_hi_from_800
        (True, False)
    """

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
