"""The two rule sets of the production brokerage chapters and every switch on which they differ."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from brokerlab.rulesets import RuleSet, Switch

SWITCHES: dict[str, Switch] = {
    "drop_test_queues": Switch(True, False, "J1"),
    "standby_online": Switch(False, True, "J2"),
    "backlog_inclusive": Switch(False, True, "J3"),
    "inactive_counts_starting": Switch(False, True, "J4"),
    "workdisk_adds": Switch(False, True, "J8"),
    "maxwdir_per_core": Switch(False, False, "J9"),
    "scratch_equal_passes": Switch(False, True, "J10"),
    "free_equal_passes": Switch(False, True, "J11"),
    "long_queue_by_capacity": Switch(False, True, "J13"),
    "zero_efficiency_rejects": Switch(False, True, "J14"),
    "zero_maxtime_limits": Switch(False, True, "J14b"),
    "other_status_up": Switch(False, True, "J15, T15"),
    "ip_stack_strict": Switch(False, False, "J18"),
    "express_from_1000": Switch(True, False, "J20, D7"),
    "shortage_counts_starting": Switch(False, True, "J21"),
    "io_check_strict": Switch(False, False, "J22"),
    "running_count": Switch("largest", "deployed", "J24, J31", ("largest", "deployed")),
    "cap_mode": Switch("limit", "limit", "J26", ("limit", "document")),
    "network_needs_active": Switch(False, True, "J28, D5"),
    "bootstrap_first": Switch(True, True, "J29"),
    "single_t1_queue": Switch(False, True, "J30"),
    "parent_stays_in_list": Switch(False, True, "J37"),
    "throughput_step_50": Switch(1.7, 1.6, "D1"),
    "newest_window_first": Switch(True, False, "D3"),
    "idle_work_is_one": Switch(False, True, "T1"),
    "usable_space": Switch("free_expired", "usable", "T2", ("free_expired", "usable")),
    "weight_after_demand": Switch(False, True, "T3"),
    "disk_equal_passes": Switch(False, True, "T5"),
    "fraction_equal_passes": Switch(False, True, "T8"),
    "waiver_priority": Switch(
        "taskpriority", "currentpriority", "T9", ("taskpriority", "currentpriority")
    ),
    "container_totals": Switch("sum", "last", "T10", ("sum", "last")),
    "null_intensity_is_high": Switch(False, True, "T12"),
    "hint_brokerage": Switch(True, True, "T13"),
    "missing_endpoint": Switch("skip", "abort", "T14", ("skip", "abort")),
    "milli_units_converted": Switch(True, False, "T18"),
    "only_takes_allow": Switch(False, True, "F-1"),
    "parent_flag_needed": Switch(True, True, "F-3"),
    "bare_mode_of": Switch("any", "first", "F-6", ("any", "first")),
}
"""Rows J of production-job-brokerage.md 9, D of network-weight.md 6, T of production-task-brokerage.md 7, F of full-chain.md 5."""


@dataclass(frozen=True, init=False)
class ProductionRules(RuleSet):
    """One rule set of the production brokerage with its switches; part of every result's provenance.

    Where the last column of a chapter's table recommends the code's fact, both rule sets follow it.

    Attributes:
        rules: ``document`` (the published pages, production where they are silent) or ``production``.
        drop_test_queues: J1, queues with ``test`` in the name are no candidates.
        standby_online: J2, status standby counts as online.
        backlog_inclusive: J3, backlog limits bite at the limit itself (else: above it).
        inactive_counts_starting: J4, starting jobs count as waiting in check ``inactive``.
        workdisk_adds: J8, working directory is workdiskcount + 300 MB, 0 without it (else: the
            larger of the two).
        maxwdir_per_core: J9, maxwdir is divided by the cores for every task (else: only for single-
            core tasks).
        scratch_equal_passes: J10, a job that fills maxwdir exactly passes.
        free_equal_passes: J11, space equal to STORAGE_MIN_FREE_SIZE passes.
        long_queue_by_capacity: J13, check ``walltime_24h`` compares the HS06 capacity and covers
            merging (else: maxtime itself).
        zero_efficiency_rejects: J14, cpuefficiency 0 means capacity 0 (else: the need is
            basewalltime alone).
        zero_maxtime_limits: J14b, maxtime 0 is a limit in check ``walltime_24h`` where basewalltime
            > 0.
        other_status_up: J15, T15, an endpoint is down at OFF or TEST only (else: up at ON or null
            only).
        ip_stack_strict: J18, a queue with an ip stack refuses tasks that ask for none.
        express_from_1000: J20, D7, priority 1000 itself is express.
        shortage_counts_starting: J21, starting cores count as running in check ``pledge_exceeded``.
        io_check_strict: J22, input to move equal to a cutoff fails.
        running_count: J24, J31, ``largest`` of the four counts, or the ``deployed`` conditions on
            pilots, pull_ups, priority.
        cap_mode: J26, caps with NQUEUELIMITSITE (``limit``) or twice the running jobs alone
            (``document``).
        network_needs_active: J28, D5, the network weight and its check act only with NW_ACTIVE.
        bootstrap_first: J29, queues without any job become candidates of weight 0, ranked first.
        single_t1_queue: J30, negative t1weight keeps one single queue.
        parent_stays_in_list: J37, a unified parent named in ``site`` stays beside its pseudo-
            queues.
        throughput_step_50: D1, throughput weight between 50 and 75 MB/s.
        newest_window_first: D3, throughput of hour, else day, else week (else: needs the week
            first).
        idle_work_is_one: T1, work term below the offset of 50 is 1 (else: 1/50).
        usable_space: T2, free + expired, or less what must stay free and what is unavailable.
        weight_after_demand: T3, space terms of the weight use usable space after the demand (else:
            free and expired).
        disk_equal_passes: T5, space equal to DISK_THRESHOLD passes.
        fraction_equal_passes: T8, a local fraction equal to the limit passes.
        waiver_priority: T9, priority that waives the locality check.
        container_totals: T10, totals of a container: sum of its constituents, or the last one's.
        null_intensity_is_high: T12, null iointensity counts as high in the weight.
        hint_brokerage: T13, nuclei without a queue that could run the task are skipped.
        missing_endpoint: T14, nucleus without an endpoint for an output: skip ``no_storage``, or
            abort the task as deployed.
        milli_units_converted: T18, mHS06 units are converted in the remaining work.
        only_takes_allow: F-1, fullChain=only is accepted at bareNucleus=allow.
        parent_flag_needed: F-3, the parent must be full chain itself to bind its children.
        bare_mode_of: F-6, bare mode of a site: of any of its queues, or of the first.

    Example:
        >>> ProductionRules().standby_online, ProductionRules("production").standby_online
        (False, True)
    """

    SWITCHES: ClassVar[Mapping[str, Switch]] = SWITCHES
    SUBJECT: ClassVar[str] = "production brokerage rules"

    drop_test_queues: bool
    standby_online: bool
    backlog_inclusive: bool
    inactive_counts_starting: bool
    workdisk_adds: bool
    maxwdir_per_core: bool
    scratch_equal_passes: bool
    free_equal_passes: bool
    long_queue_by_capacity: bool
    zero_efficiency_rejects: bool
    zero_maxtime_limits: bool
    other_status_up: bool
    ip_stack_strict: bool
    express_from_1000: bool
    shortage_counts_starting: bool
    io_check_strict: bool
    running_count: str
    cap_mode: str
    network_needs_active: bool
    bootstrap_first: bool
    single_t1_queue: bool
    parent_stays_in_list: bool
    throughput_step_50: float
    newest_window_first: bool
    idle_work_is_one: bool
    usable_space: str
    weight_after_demand: bool
    disk_equal_passes: bool
    fraction_equal_passes: bool
    waiver_priority: str
    container_totals: str
    null_intensity_is_high: bool
    hint_brokerage: bool
    missing_endpoint: str
    milli_units_converted: bool
    only_takes_allow: bool
    parent_flag_needed: bool
    bare_mode_of: str
