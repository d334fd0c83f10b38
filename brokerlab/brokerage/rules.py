"""The two rule sets of the production brokerage chapters and every switch on which they differ."""

from __future__ import annotations

from dataclasses import dataclass

from brokerlab.rulesets import RuleSet


@dataclass(frozen=True, init=False)
class JobRules(RuleSet, chapter="production job brokerage"):
    """The switches of the production job brokerage and the network weight."""

    drop_test_queues: bool
    parent_stays_in_list: bool
    merging_freed_by: str
    preassigned_exempt: bool
    standby_online: bool
    backlog_inclusive: bool
    backlog_spares_nucleus: bool
    inactive_counts_starting: bool
    test_work_exempt: bool
    io_check_strict: bool
    io_check_relents: bool
    io_check_exempts: bool
    diskio_per_core: bool
    memory_by_unit: bool
    whole_numbers: bool
    output_of_master: bool
    direct_asks_task: bool
    workdisk_adds: bool
    maxwdir_per_core: bool
    scratch_equal_passes: bool
    free_equal_passes: bool
    local_space: str
    other_status_up: bool
    datadisk_only: bool
    wan_asked_at_nucleus: bool
    nucleus_must_send: bool
    long_queue_by_capacity: bool
    zero_efficiency_rejects: bool
    unknown_walltime_is_short: bool
    zero_maxtime_limits: bool
    ip_stack_strict: bool
    transferring_spares: bool
    any_negative_t1weight: bool
    single_t1_queue: bool
    pilots_excused: bool
    urgent_is_pattern: bool
    express_from_1000: bool
    network_needs_active: bool
    shortage_counts_starting: bool
    running_count: str
    counted_jobs: str
    slots_per_core: bool
    many_assigned_plus_one: bool
    nucleus_preferred: bool
    hardware_preferred: bool
    cap_mode: str
    bootstrap_first: bool
    jumbo_queues: bool
    code_only_checks: bool
    queued_line: str
    throughput_step_50: float
    newest_window_first: bool


@dataclass(frozen=True, init=False)
class ProductionRules(JobRules, chapter="production brokerage"):
    """One rule set of the production brokerage, with the switches of jobs before those of tasks and full chain."""

    idle_work_is_one: bool
    usable_space: str
    weight_after_demand: bool
    demand_is_whole: bool
    disk_equal_passes: bool
    threshold_of: str
    fraction_equal_passes: bool
    prestaging_needs_local_files: bool
    input_num_of: str
    locality_ends: bool
    waiver_priority: str
    waiver_drops_data: bool
    conditions_and_logs_count: bool
    unreadable_input_waits: bool
    container_totals: str
    null_intensity_is_high: bool
    work_of_weight: str
    hint_brokerage: bool
    missing_endpoint: str
    storage_of: str
    milli_units_converted: bool
    only_takes_allow: bool
    parent_flag_needed: bool
    parent_binds: str
    capable_ignored: bool
    bare_satellites: bool
    missing_parent_waits: bool
    secondary_lends: bool
    bare_mode_of: str


AS_DEPLOYED = ProductionRules("production")
"""The rules of the deployed code, which the analysis brokerage shares where it has no switch of its own."""
