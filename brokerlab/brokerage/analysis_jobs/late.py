"""The reasons of the rules that look at all queues of a task together, rows 19b, 21 to 26 and the final list, as values.

What they do is written in :mod:`.ranking`; here stands what they are called, what they read and how they are told. The
columns are those of :func:`.ranking.ranked`.
"""

from __future__ import annotations

from collections.abc import Mapping

import narwhals.stable.v2 as nw

from brokerlab.brokerage.analysis_jobs.ranking import LEAST_CAP
from brokerlab.brokerage.analysis_jobs.rules import AnalysisRules
from brokerlab.brokerage.analysis_jobs.settings import AnalysisSettings
from brokerlab.brokerage.check import Kind, Reason
from brokerlab.brokerage.production_jobs.expressions import at_least_one, col
from brokerlab.brokerage.production_jobs.late import MIN_WEIGHT_KEY

CHAPTER = "analysis-job-brokerage.md "
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
ALL_MARKED = "tmp_user_problem"
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


def late_reasons(rules: AnalysisRules, settings: AnalysisSettings) -> tuple[Reason, ...]:
    """Return the reasons in the order in which they are tested.

    Args:
        rules: Which cap is in force.
        settings: Limits in force.
    """
    return (
        _late(
            "4.15", "notincluded",
            "the task lists queues and AUTO, which keeps this one in reserve, and a listed one is left",
            "t_auto x_included",
        ),
        _late(
            "4, 21", "hospital", "it is a hospital queue, used only where no other is left",
            "q_hospital",
        ),
        _cap(rules),
        *_overload(settings),
        _late(
            "4, 26", ALL_MARKED,
            "every queue that is left is marked problematic, so queues without the input are looked at too",
            "user_queue bad_jobs no_running t_relaxed t_second t_local", kind="temporary",
        ),
        _late(
            "7, 2", "badsite", "it is marked problematic", "user_queue bad_jobs no_running t_preassigned",
            kind="temporary",
        ),
        _late(
            "7, 3", "low_weight", "its weight of {weight} is not among the best {most}",
            "weight x_used most",
        ),
        _late(
            "7, 4", "below_min_weight", "its weight of {weight} is under the least weight of {t_min_weight}",
            "weight t_min_weight", keys=(MIN_WEIGHT_KEY,),
        ),
        _late(
            "7, 5", "fileunavailable",
            "it takes work with local input only (use_only_local_data), and files of the input are missing there",
            "q_local_only t_files_known t_distributed x_whole",
        ),
    )  # fmt: skip


def mark_reasons(rules: AnalysisRules, settings: AnalysisSettings) -> tuple[Reason, ...]:
    """Return why queues are marked problematic, in the order of :data:`.ranking.MARKS`.

    Args:
        rules: How bad jobs are counted.
        settings: Limits in force.
    """
    bad = col("x_failed") + col("x_closed")
    twice = 2 * col("x_finished")
    least = nw.lit(int(settings.min_bad_jobs))
    all_bad = rules.bad_jobs_mode == "all"
    compared = "which reaches" if all_bad else "more than"
    stabilized = (
        "x_nq x_nr trr looked_at running_users nq_max user_share max_q_len u_queued u_running"
    )
    return (
        _late(
            "5", "user_queue",
            "{u_queued} jobs of user {t_user} wait there, more than the {max_q_len} that the stabilizer lets wait "
            "(max_q_len)",
            f"{stabilized} t_user t_merging", keys=STABILIZER_KEYS, kind="temporary",
        ),
        _late(
            "4.14", "bad_jobs",
            f"{{x_failed}} jobs of the task failed there lately and {{x_closed}} were closed, {{bad}} together, {compared} "
            "{limit} (the larger of twice the {x_finished} finished ones and {least})",
            "x_failed x_closed x_finished t_merging" + ("" if all_bad else " looked_at"),
            keys=(BAD_JOBS_KEY,) if all_bad else (BAD_JOBS_KEY, *EXEMPT_KEYS), kind="temporary",
            numbers={
                "bad": bad, "least": least,
                "limit": nw.when(twice > least).then(twice).otherwise(least),
            },
        ),
        _late(
            "4.13", "no_running", "{x_nq} jobs of the share wait there and none runs",
            "x_nq x_nr t_merging", keys=("OVERLOAD_MIN_QUEUE",), kind="temporary",
        ),
    )  # fmt: skip


def _late(
    row: str,
    name: str,
    says: str,
    inputs: str,
    *,
    keys: tuple[str, ...] = (),
    kind: Kind = "persistent",
    numbers: Mapping[str, nw.Expr] | None = None,
    variants: Mapping[str, str] | None = None,
) -> Reason:
    return Reason(
        name=name, source=CHAPTER + row, says=says, inputs=tuple(inputs.split()), keys=keys, kind=kind,
        numbers=numbers or {}, variants=variants or {},
    )  # fmt: skip


def _cap(rules: AnalysisRules) -> Reason:
    running = col("x_rt_nr")
    if rules.cap_rt_form == "twice_larger":
        limit = 2 * nw.when(running > LEAST_CAP).then(running).otherwise(nw.lit(LEAST_CAP))
        says = f"twice the larger of {LEAST_CAP} and the {{x_rt_nr}} running ones"
    else:
        twice = 2 * running
        limit = nw.when(twice > LEAST_CAP).then(twice).otherwise(nw.lit(LEAST_CAP))
        says = f"the larger of {LEAST_CAP} and twice the {{x_rt_nr}} running ones"
    return _late(
        "4, 22", "cap_rt",
        "{x_rt_nq} jobs of share {t_gshare} and resource type {t_resource_type} wait there, more than {limit} "
        f"({says})",
        "x_rt_nq x_rt_nr t_gshare t_resource_type t_preassigned", kind="temporary",
        numbers={"limit": limit},
    )  # fmt: skip


def _overload(settings: AnalysisSettings) -> tuple[Reason, ...]:
    """Return ``overloaded``, ``overloaded_vp``."""
    nothing = "{x_nq} jobs of the share wait there and none runs"
    numbers = {
        "ratio": col("x_nq") / at_least_one(col("x_nr")),
        "limit": col("t_grand") * settings.overload_ratio,
        "offset": nw.lit(float(settings.overload_ratio)),
        "none_runs": col("x_nr") == 0,
    }
    says = (
        "{x_nq} jobs of the share wait there and {x_nr} run: {ratio} waiting for each running one, more than {limit}, "
        "which is {offset} times the ratio over all queues"
    )
    inputs = "x_nq x_nr t_grand t_merging x_non_vp t_local t_has_input"
    return tuple(
        _late(
            "4, 23", name, says + why, inputs, keys=OVERLOAD_KEYS, kind="temporary", numbers=numbers,
            variants={"none_runs": nothing + why},
        )
        for name, why in (
            ("overloaded", "; other queues are less loaded"),
            ("overloaded_vp", "; it has the input through virtual placement only"),
        )
    )  # fmt: skip
