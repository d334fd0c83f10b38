"""The two rule sets of the analysis job brokerage and every switch on which they differ."""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from brokerlab.rulesets import RuleSet


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
