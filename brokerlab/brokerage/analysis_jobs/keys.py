"""The gdpconfig keys that the analysis brokerage reads, by what they act on."""

from __future__ import annotations

from brokerlab.brokerage.analysis_jobs.rules import AnalysisRules
from brokerlab.brokerage.production_jobs.ranking import MIN_WEIGHT_KEY

CAP_KEYS = (
    "CAP_RUNNING_USER_JOBS", "CAP_RUNNING_USER_CORES", "CAP_RUNNING_GROUP_JOBS", "CAP_RUNNING_GROUP_CORES",
)  # fmt: skip
CLASS_KEYS = ("USER_USAGE_THRESHOLD_A",)
"""Keys of the throttle: they act before any queue is looked at."""
RATING_KEYS = (
    *CLASS_KEYS, "USER_USAGE_THRESHOLD_B", "PROGRESS_TO_BOOST_A", "PROGRESS_TO_BOOST_B", "MAX_REM_JOBS_TO_BOOST_A",
    "MAX_REM_JOBS_TO_BOOST_B",
)  # fmt: skip
TABLE_KEYS = ("TW_DONE_JOB_STAT", *RATING_KEYS)
"""Keys that decide what stands in the tables of a replay: how tasks' jobs ended lately, classes of tasks, users."""
RELAXATION_KEYS = ("IO_INTENSITY_CUTOFF_USER", "DATA_CHECK_TIMEOUT_USER")
OVERLOAD_KEYS = ("OVERLOAD_MIN_QUEUE", "OVERLOAD_RATIO_OFFSET")
EXEMPT_KEYS = ("BASE_QUEUE_LENGTH_PER_PQ", "BASE_EXPECTED_WAIT_HOUR_ON_PQ")
"""Keys that say which queues the stabilizer does not look at."""
LENGTH_KEYS = (
    "BASE_DEFAULT_QUEUE_LENGTH_PER_PQ_USER", "BASE_QUEUE_RATIO_ON_PQ",
    "STATIC_MAX_QUEUE_RUNNING_RATIO", "MAX_EXPECTED_WAIT_HOUR",
)  # fmt: skip
"""Keys of max_q_len, besides BASE_QUEUE_LENGTH_PER_PQ."""
STABILIZER_KEYS = (*EXEMPT_KEYS, *LENGTH_KEYS)
BAD_JOBS_KEY = "MIN_BAD_JOBS_TO_SKIP_PQ"
PLACES = {
    **dict.fromkeys(CAP_KEYS, "pandaserver/prio_mgr"),
    **dict.fromkeys(RATING_KEYS, "pandaserver/analy_eval"),
    **dict.fromkeys(("STORAGE_MIN_FREE_SIZE", "MAX_DISKIO_DEFAULT", MIN_WEIGHT_KEY), "jedi/jobbroker"),
}  # fmt: skip
"""App and component of the keys that are not read as those of the analysis brokerage."""
OWN_PLACE = "jedi/anal_jobbroker"


def place_of(key: str) -> str:
    """Return ``app/component`` in which the analysis brokerage looks a key up."""
    return PLACES.get(key, OWN_PLACE)


def weight_keys(rules: AnalysisRules) -> tuple[str, ...]:
    """Return the gdpconfig keys that the weight in use reads: none, or those of max_q_len."""
    return () if rules.basic_weight == "original" else ("BASE_QUEUE_LENGTH_PER_PQ", *LENGTH_KEYS)
