"""Refuse impossible parameters of the report before anything is loaded, all at once, by their own names."""

from __future__ import annotations

from collections.abc import Sequence

from brokerlab.brokerage.analysis_jobs import AnalysisRules
from brokerlab.report.replays.check import checked
from brokerlab.report.replays.kinds import ANALYSIS

USUAL_KEYS = (
    *("CAP_RUNNING_USER_JOBS", "CAP_RUNNING_USER_CORES", "BASE_EXPECTED_WAIT_HOUR_ON_PQ"),
    *("BASE_QUEUE_LENGTH_PER_PQ", "BASE_DEFAULT_QUEUE_LENGTH_PER_PQ_USER"),
    *("STATIC_MAX_QUEUE_RUNNING_RATIO", "MAX_EXPECTED_WAIT_HOUR", "MIN_BAD_JOBS_TO_SKIP_PQ"),
    *("IO_INTENSITY_CUTOFF_USER", "OVERLOAD_RATIO_OFFSET"),
)
"""Ten keys of different kinds: caps of users, the stabilizer, bad jobs, locality, overload."""


def check(
    *,
    keys: Sequence[str],
    rules: str,
    every: str,
    max_tasks: int,
    points: int,
    switch_sample: int,
    n_boot: int,
    seed: int,
    start: str = "",
    end: str = "",
) -> None:
    """Refuse impossible parameters; they are those of the notebook.

    Raises:
        ConfigError: Every parameter that is wrong, with what is allowed.

    Example:
        >>> check(keys=["CAP_RUNNING_USER_JOB"], rules="document", every="1h", max_tasks=0, points=7,
        ...     switch_sample=0, n_boot=500, seed=1)
        Traceback (most recent call last):
        brokerlab.errors.ConfigError: keys: 'CAP_RUNNING_USER_JOB' is no key of the analysis brokerage, did you mean 'CAP_RUNNING_USER_JOBS'?
    """
    checked(
        ANALYSIS, lambda: AnalysisRules(rules), keys=keys, every=every, start=start, end=end,
        numbers={"max_tasks": max_tasks, "points": points, "switch_sample": switch_sample, "n_boot": n_boot, "seed": seed},
    )  # fmt: skip
