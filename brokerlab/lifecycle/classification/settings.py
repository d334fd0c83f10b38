"""Thresholds of users and tasks, from gdpconfig, at every instant.

Source: docs/rules/classes.md 1.3; gdpconfig component ``analy_eval``.
"""

from __future__ import annotations

import polars as pl

from brokerlab.gdpconfig import Config
from brokerlab.lifecycle.classification.rules import ClassRules

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
