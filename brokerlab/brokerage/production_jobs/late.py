"""The reasons of the rules that look at all queues of a task together, rows 43a to 52, as values.

What they do is written in :mod:`.ranking`; here stands what they are called, what they read and how they are told. The
columns are those of :func:`.ranking.ranked`.
"""

from __future__ import annotations

from collections.abc import Mapping

import narwhals.stable.v2 as nw

from brokerlab.brokerage.check import Reason
from brokerlab.brokerage.production_jobs.expressions import CHAPTER, col
from brokerlab.brokerage.production_jobs.ranking import GB_IN_MB
from brokerlab.brokerage.production_jobs.settings import JobSettings
from brokerlab.brokerage.rules import ProductionRules

INPUT_KEYS = ("IO_INTENSITY_CUTOFF", "SIZE_CUTOFF_TO_MOVE_INPUT", "NUM_CUTOFF_TO_MOVE_INPUT")
NETWORK_KEYS = ("NW_QUEUE_IMPORTANCE", "NQUEUED_SAT_CAP")
THRESHOLD_KEYS = ("NW_THRESHOLD", "NW_WEIGHT_MULTIPLIER")
MIN_WEIGHT_KEY = "MIN_WEIGHT_<prodsourcelabel>[_<gshare>]"
LIMIT_KEY = "NQUEUELIMITSITE_<gshare>"
BOOTSTRAP_KEY = "MAX_PRIO_TO_BOOTSTRAP"
COMPLETENESS_KEYS = ("MAX_MISSING_INPUT_FILES", "MIN_INPUT_COMPLETENESS")
"""Keys that say when a replica is complete: they act before any queue is looked at, and on storage endpoints."""


def weight_keys(rules: ProductionRules) -> tuple[str, ...]:
    """Return the gdpconfig keys that the weight reads."""
    active = ("NW_ACTIVE",) if rules.network_needs_active else ()
    return (*active, *NETWORK_KEYS, BOOTSTRAP_KEY)


def late_reasons(rules: ProductionRules, settings: JobSettings) -> tuple[Reason, ...]:
    """Return the reasons in the order in which they are tested.

    Args:
        rules: Which caps are in force.
        settings: Limits in force.
    """
    return (
        _input_to_move(settings),
        _late("44", "locked", "another brokerage holds its lock", "x_locked"),
        _late(
            "45",
            "local_data_only",
            "it takes work with local input only (use_only_local_data), and {missing_mb} MB in {missing_files} files "
            "are missing there",
            "q_local_only missing_mb missing_files t_total",
        ),
        *_caps(rules, settings),
        _late(
            "50",
            "below_min_weight",
            "its weight of {weight} is under the least weight of {t_min_weight}",
            "weight t_min_weight bootstrap",
            keys=(MIN_WEIGHT_KEY,),
        ),
        _late(
            "51",
            "t1_not_largest",
            "the task keeps to one queue of its nucleus {t_nucleus} (negative t1weight), the one with most running "
            "jobs; this one has {s_running}",
            "t_nucleus_only s_running",
        ),
        _late("52", "rank", "its weight of {weight} is not among the best 10", "weight"),
    )


def _late(
    row: str,
    name: str,
    says: str,
    inputs: str,
    keys: tuple[str, ...] = (),
    numbers: Mapping[str, nw.Expr] | None = None,
    variants: Mapping[str, str] | None = None,
) -> Reason:
    return Reason(
        name=name,
        source=CHAPTER + row,
        says=says,
        inputs=tuple(inputs.split()),
        keys=keys,
        numbers=numbers or {},
        variants=variants or {},
    )


def _input_to_move(settings: JobSettings) -> Reason:
    limits = {
        "limit_mb": settings.size_cutoff_gb * GB_IN_MB,
        "limit_files": settings.num_cutoff,
        "cutoff": settings.io_intensity_cutoff,
    }
    return _late(
        "43a",
        "input_to_move",
        "{missing_mb} MB in {missing_files} files of the input would have to move there; a task of more than {cutoff} "
        "kB/s (this one: {t_iointensity}) may move {limit_mb} MB and {limit_files} files while other queues need no "
        "more",
        "missing_mb missing_files t_iointensity",
        keys=INPUT_KEYS,
        numbers={name: nw.lit(float(value)) for name, value in limits.items()},
    )


def _caps(rules: ProductionRules, settings: JobSettings) -> tuple[Reason, ...]:
    """Return ``queued_cap``, ``network_weight_low``, ``queued_cap_rt``."""
    larger = "the larger of {t_queue_limit} and twice the "
    twice = "twice the {running} running jobs"
    if rules.cap_mode == "document":
        waiting = col("x_activated") + col("x_starting")
        capped = _late(
            "46",
            "queued_cap",
            f"{{queued_all}} jobs are queued there, {{waiting}} of them activated or starting, more than {{cap}} ({twice})",
            "queued_all x_activated x_starting cap running",
            numbers={"waiting": waiting},
        )
    else:
        capped = _late(
            "46",
            "queued_cap",
            f"{{queued}} jobs are queued there, more than {{cap}} ({larger}{{running}} running jobs)",
            "queued cap t_queue_limit running",
            keys=(LIMIT_KEY,),
        )
    return (
        capped,
        _late(
            "47",
            "network_weight_low",
            "the network weight of {l_weight} is under {limit}, which express work asks for",
            "l_weight t_express t_network",
            keys=THRESHOLD_KEYS,
            numbers={"limit": nw.lit(settings.nw_limit)},
        ),
        _late(
            "48",
            "queued_cap_rt",
            f"{{queued_rt}} jobs of the task's resource types are queued there, more than {{cap_rt}} ({larger}"
            "running jobs)",
            "queued_rt cap_rt t_queue_limit",
            keys=(LIMIT_KEY,),
        ),
    )
