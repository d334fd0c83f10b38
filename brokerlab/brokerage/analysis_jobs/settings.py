"""The rule sets of the analysis brokerage, the gdpconfig keys that it reads, by what they act on, and what they make of a user task."""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from brokerlab.brokerage.engine.rule import setting
from brokerlab.brokerage.engine.steps import Derived, setting_or
from brokerlab.brokerage.production_jobs.settings import MIN_WEIGHT_KEY, min_weight
from brokerlab.rulesets import RuleSet
from brokerlab.units import HOUR_S


@dataclass(frozen=True, init=False)
class AnalysisRules(RuleSet, chapter="analysis brokerage"):
    """One rule set of the analysis brokerage with its switches; part of every result's provenance.

    How the tables ``to_run_rate`` and ``user_job_stats`` are counted is no switch: they are inputs here.
    """

    basic_weight: str
    cap_rt_effective: bool
    cap_rt_form: str
    counted_jobs: str
    bad_jobs_mode: str
    locality_mode: str
    zero_intensity_suppresses: bool
    second_loop: str
    count_total_row: bool
    stabilizer_running: str
    trr_scaled: bool
    diskio_per_core: bool
    use_base_ram: bool
    merge_memory: str
    whole_numbers: bool
    zero_efficiency_rejects: bool
    min_capacity_mode: str
    scratch_need: str
    direct_asks_task: bool
    maxwdir_mode: str
    slots_zero_mode: str
    workers_need_pilots: bool
    slots_per_core: bool
    use_l1_share: bool
    caps_need_all_counts: bool
    unknown_user_fraction: float
    closed_skips: bool
    used_sites_first: bool
    best_ten_always: bool
    pending_min: float
    preassigned_failure: str
    space_strict: bool
    local_space: str
    data_counts_without_locality: bool
    new_weight: str
    data_factor: bool
    lists_need_limitedsites: bool
    lists_first: bool
    grandly_unified_counts: bool
    status_mode: str
    vp_avoided_by: str
    vp_default_scope: bool
    overload_scope: str
    code_only_checks: bool
    code_only_exemptions: bool


def asked_of(exempt: pl.Expr, rules: AnalysisRules) -> pl.Expr:
    """Return where a check is asked: everywhere, or, as the code does it, but for those who are exempt (no null)."""
    return ~exempt | pl.lit(value=not rules.code_only_exemptions)


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


COMPONENT = "anal_jobbroker"
HIGH_PRIORITY = 2000
"""Task priority from which locality is not asked for."""


def of_tasks(rules: AnalysisRules) -> tuple[Derived, ...]:
    """Return what settings make of a task.

    ``t_min_weight``; ``t_relaxed`` (why its input is not asked for), ``t_second`` (it may go through the second loop);
    for the throttle ``cap_jobs``, ``cap_cores``, ``threshold`` [running slots], ``used_fraction``.
    """
    second = pl.col("t_has_input") & pl.col("t_remote_source")
    relaxed = _relax(rules)
    caps = {f"cap_{unit.lower()}": cap_of(unit) for unit in ("JOBS", "CORES")}
    return (
        Derived({"t_min_weight": min_weight(), "t_relaxed": relaxed, "t_second": second}),
        Derived({**caps, "threshold": setting("USER_USAGE_THRESHOLD_A")}),
        Derived({"used_fraction": used_fraction(rules)}),
    )


def _relax(rules: AnalysisRules) -> pl.Expr:
    """Return the first reason not to ask for locality (4.1c); null: none.

    Source:
        002, ATLAS Analysis Job Brokerage: "This check is suppressed if taskPriority ≥ 2000, ioIntensity ≤
        IO_INTENSITY_CUTOFF_USER, or the last successful brokerage cycle happened more than DATA_CHECK_TIMEOUT_USER hours
        ago"; docs/rules/analysis-jobs.md 4: an unknown intensity suppresses nothing.
    """
    io, cutoff = pl.col("t_iointensity"), setting_or("IO_INTENSITY_CUTOFF_USER", None)
    known = pl.col("t_io_known") if rules.zero_intensity_suppresses else io != 0
    timeout_s = setting_or("DATA_CHECK_TIMEOUT_USER", None) * HOUR_S
    return (
        pl.when(pl.col("t_taskprio") >= HIGH_PRIORITY).then(pl.lit("priority"))
        .when(known & (io <= cutoff)).then(pl.lit("io_intensity"))
        .when(pl.col("t_frozen_s") > timeout_s).then(pl.lit("timeout"))
    )  # fmt: skip


def cap_of(unit: str) -> pl.Expr:
    """Return the cap on running jobs of the accounting unit, ``JOBS`` or ``CORES``; null: none."""
    of_user, of_group = (
        setting_or(f"CAP_RUNNING_{kind}_{unit}", None) for kind in ("USER", "GROUP")
    )
    return pl.when(pl.col("t_group").is_null()).then(of_user).otherwise(of_group)


def used_fraction(rules: AnalysisRules) -> pl.Expr:
    """Return r, the part of the threshold that the user's running jobs fill (2.3).

    Source:
        002, ATLAS Analysis Job Brokerage: "User Analysis share usage > max(USER_USAGE_THRESHOLD_A/(# of user's running
        slots in hi-sites), 1)*100% of its target", multiplied by r = min(slots / threshold, 1): no slot, no limit.
    """
    used = 1 - pl.col("rem_slots_a") / pl.col("threshold")
    return pl.when("user_known").then(used).otherwise(float(rules.unknown_user_fraction))
