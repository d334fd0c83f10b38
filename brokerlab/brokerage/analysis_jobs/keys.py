"""The gdpconfig keys that the analysis brokerage reads, by what they act on."""

from __future__ import annotations

from brokerlab.brokerage.production_jobs.settings import MIN_WEIGHT_KEY

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
