"""The two rule sets of the classification and every switch on which they differ."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from brokerlab.rulesets import RuleSet, Switch

SWITCHES: dict[str, Switch] = {
    "half_life_hours": Switch(6, 12, "docs/rules/classes.md 2"),
    "sample_status": Switch(
        "finished", "started", "docs/rules/classes.md 1.1", ("finished", "started")
    ),
    "wait_time": Switch(
        "first_seen", "first_seen", "docs/rules/classes.md 1.1", ("first_seen", "recorded")
    ),
    "effective_n": Switch("weights", "weights", "docs/rules/classes.md 2", ("weights", "jobs")),
    "long_q_status": Switch(
        "activated_starting",
        "activated_sent_push",
        "docs/rules/classes.md 1.2",
        ("activated_starting", "activated_sent_push"),
    ),
    "empty_long_queue": Switch("w_mean", "w_mean", "docs/rules/classes.md 2", ("w_mean", "none")),
    "hi_test": Switch("all", "either", "docs/rules/classes.md 3", ("all", "either")),
    "percentile_basis": Switch(
        "w_cl95upp", "grid_ranking", "docs/rules/classes.md 3", ("w_cl95upp", "grid_ranking")
    ),
    "percentile_low": Switch(0.33, 0.333, "docs/rules/classes.md 3", most=1),
    "percentile_high": Switch(0.67, 0.667, "docs/rules/classes.md 3", most=1),
    "hi_limit_hours": Switch(1, 1, "docs/rules/classes.md 3"),
    "lo_limit_hours": Switch(3, 3, "docs/rules/classes.md 3"),
    "short_queue_jobs": Switch(3, 3, "docs/rules/classes.md 3"),
    "empty_percentile": Switch("constants", "mid", "docs/rules/classes.md 3", ("constants", "mid")),
    "recent_activity": Switch(
        "analysis_start", "slot_rate", "docs/rules/classes.md 3", ("analysis_start", "slot_rate")
    ),
    "task_rules": Switch("share", "progress", "docs/rules/classes.md 5", ("share", "progress")),
    "threshold_inclusive": Switch(True, False, "docs/rules/classes.md 5"),
    "express_is_s": Switch(True, True, "docs/rules/classes.md 5"),
    "missing_usage": Switch("zero", "skip", "docs/rules/classes.md 5", ("zero", "skip")),
    "default_threshold_b": Switch(8000, 8000, "docs/rules/classes.md 1.3"),
}
"""The numbers on which both agree are switches too: another reading can be tried."""


@dataclass(frozen=True, init=False)
class ClassRules(RuleSet):
    """One rule set of the classification with its switches; part of every result's provenance.

    Attributes:
        rules: ``document`` (the published page, production where it is silent) or ``production``.
        half_life_hours: Half-life of a job's weight [h].
        sample_status: Jobs whose wait counts: ``finished`` ones, or all that have ``started`` (active: running,
            holding, merging, transferring, finished, failed, closed, cancelled; archived: any).
        wait_time: First running minus first activated of the status log (``first_seen``), or the job's own times
            even where there is a log (``recorded``).
        effective_n: Degrees of freedom: the sum of ``weights``, or the number of ``jobs`` less one.
        long_q_status: Jobs that queue: activated and starting ones, or activated and sent ones, with starting
            ones at queues whose workflow begins with ``push`` only.
        empty_long_queue: ``long_q_mean`` of a queue where nobody waits longer than the mean: the mean, or none.
        hi_test: ``all`` three conditions, strict; or ``either`` the ranking or limit and length, limits included.
        percentile_basis: Upper limits of all classified queues, or rankings of the queues of type GRID.
        percentile_low: Rank of the percentile below which a queue may be hi, a fraction.
        percentile_high: Rank of the percentile above which a queue is lo, a fraction.
        hi_limit_hours: A lower percentile below this counts as this [h].
        lo_limit_hours: An upper percentile below this counts as this [h].
        short_queue_jobs: A queue that is hi has fewer jobs that queue for long (``all``), or at most so many where its
            ranking is above the limit (``either``) [jobs].
        empty_percentile: Without a queue to take percentiles of: the ``constants`` alone, or every queue is ``mid``.
        recent_activity: A queue that is hi needs a start of an analysis job in 24 h, or a slot to-running rate.
        task_rules: S for User Analysis at 90 % (``share``), or by progress and remaining jobs of class A and B.
        threshold_inclusive: Slots equal to a threshold belong to the better class.
        express_is_s: Tasks of Express Analysis are S.
        missing_usage: A user without usage data has ``zero`` slots, or the task is not evaluated (``skip``) unless it is
            S by its share.
        default_threshold_b: USER_USAGE_THRESHOLD_B where the configuration has none [slots].

    Source: docs/rules/classes.md 8.

    Example:
        >>> ClassRules().half_life_hours, ClassRules("production").half_life_hours
        (6, 12)
    """

    SWITCHES: ClassVar[Mapping[str, Switch]] = SWITCHES
    SUBJECT: ClassVar[str] = "class rules"

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
