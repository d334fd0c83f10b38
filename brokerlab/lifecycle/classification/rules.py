"""The two rule sets of the classification, every switch on which they differ, and the thresholds that gdpconfig sets."""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from brokerlab.gdpconfig import Config
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


COMPONENT = "analy_eval"
KEYS = {
    "threshold_a": "USER_USAGE_THRESHOLD_A",
    "threshold_b": "USER_USAGE_THRESHOLD_B",
    "progress_a": "PROGRESS_TO_BOOST_A",
    "progress_b": "PROGRESS_TO_BOOST_B",
    "max_rem_jobs_a": "MAX_REM_JOBS_TO_BOOST_A",
    "max_rem_jobs_b": "MAX_REM_JOBS_TO_BOOST_B",
}
"""Column -> key."""


def class_settings(
    config: Config, rules: ClassRules, snapshots: pl.DataFrame | None = None
) -> pl.DataFrame:
    """Look the thresholds up.

    ``snapshot`` and the columns of ``KEYS`` (slots, slots, %, %, jobs, jobs), sorted by snapshot.

    Example:
        >>> class_settings(Config.empty(), ClassRules()).row(0)
        (0, 1000.0, 8000.0, 90.0, 95.0, 500.0, 200.0)
    """
    rows = pl.DataFrame({"snapshot": [0]}) if snapshots is None else snapshots
    timed = config.has_history and "at" in rows.columns
    schema = {"snapshot": pl.Int64, **dict.fromkeys(KEYS, pl.Float64)}
    result = []
    for row in rows.unique("snapshot").sort("snapshot").iter_rows(named=True):
        then = config.at(row["at"]) if timed else config
        result.append((row["snapshot"], *(_value(then, key, rules) for key in KEYS.values())))
    return pl.DataFrame(result, schema=schema, orient="row")


def _value(config: Config, key: str, rules: ClassRules) -> float:
    result = config.found(key, component=COMPONENT)
    if result.entry is None and key == KEYS["threshold_b"]:
        return rules.default_threshold_b
    return float(result.value)
