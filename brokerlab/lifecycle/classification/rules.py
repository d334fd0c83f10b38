"""The two rule sets of the classification and every switch on which they differ."""

from __future__ import annotations

from dataclasses import dataclass

from brokerlab.rulesets import RuleSet


@dataclass(frozen=True, init=False)
class ClassRules(RuleSet, chapter="classes"):
    """One rule set of the classification with its switches; part of every result's provenance.

    Source: docs/rules/classes.md 8.

    Example:
        >>> ClassRules().half_life_hours, ClassRules("production").half_life_hours
        (6, 12)
    """

    half_life_hours: float
    sample_status: str
    wait_time: str
    effective_n: str
    long_q_status: str
    empty_long_queue: str
    hi_test: str
    percentile_basis: str
    percentile_low: float
    percentile_high: float
    hi_limit_hours: float
    lo_limit_hours: float
    short_queue_jobs: float
    empty_percentile: str
    recent_activity: str
    task_rules: str
    threshold_inclusive: bool
    express_is_s: bool
    missing_usage: str
    default_threshold_b: float
