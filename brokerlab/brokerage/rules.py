"""The two rule sets of the production brokerage chapters and every switch on which they differ."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from brokerlab.rulesets import RuleSet, Switch

PAGE = "002, ATLAS Production Job Brokerage"
_NETWORK = "002, Network Weight"
_CHAIN = "002, Special Brokerage for ATLAS Full-chain"
_PLOT = "where the queued and throughput weight are calculated as in the plot below"
OWN = "production-jobs.md"


def _of_page(
    document: Any, production: Any, sentence: str, *, allowed: tuple[Any, ...] = ()
) -> Switch:
    """Return a switch with its sentence on production job brokerage."""
    return Switch(document, production, PAGE, allowed, sentence=sentence)


JOB_SWITCHES: dict[str, Switch] = {
    "drop_test_queues": _of_page(
        True,
        False,
        "All queues while excluding any queue with case-insensitive ‘test’ in the name.",
    ),
    "parent_stays_in_list": _of_page(False, True, "Unified queues are resolved to pseudo-queues."),
    "merging_freed_by": _of_page(
        "waiting",
        "untouched",
        "the pre-assignment is ignored if the relevant queues have been skipped for 24 hours.",
        allowed=("waiting", "untouched"),
    ),
    "preassigned_exempt": Switch(False, True, f"{OWN} 2"),
    "standby_online": _of_page(
        False, True, "The queue status must be online unless the queues are pre-assigned."
    ),
    "backlog_inclusive": _of_page(
        False,
        True,
        "Skip queues if over the NQUEUED_SAT_CAP(defined in gdpconfig) files queued on their links to the nucleus.",
    ),
    "backlog_spares_nucleus": _of_page(
        False,
        True,
        "Skip all queues if the number of files to be aggregated to the nucleus is larger than NQUEUED_NUC_CAP_FOR_JOBS(defined in gdpconfig).",
    ),
    "inactive_counts_starting": _of_page(
        False,
        True,
        "skip inactive queues (where no jobs got started in the last 2 hours although activated jobs had been there).",
    ),
    "test_work_exempt": Switch(False, True, f"{OWN} 2"),
    "io_check_strict": _of_page(
        True, False, "must be less than NUM_CUTOFF_TO_MOVE_INPUT(defined in gdpconfig)."
    ),
    "io_check_relents": _of_page(
        False, True, "I.e., if a queue needs to transfer more input files, the queue is skipped."
    ),
    "io_check_exempts": _of_page(
        False,
        True,
        "If the task ioIntensity is larger than IO_INTENSITY_CUTOFF(defined in gdpconfig)",
    ),
    "diskio_per_core": _of_page(
        False,
        True,
        "the next cycles of job brokerage will exclude tasks with diskIO higher than the defined limit",
    ),
    "memory_by_unit": _of_page(False, True, "(baseRamCount + ramCount × coreCount) × compensation"),
    "whole_numbers": Switch(False, True, f"{OWN} 5"),
    "output_of_master": _of_page(
        False,
        True,
        "by multiplying outDiskCount when outDiskCountUnit ends with “PerEvents”, otherwise, inputDiskCount is used.",
    ),
    "direct_asks_task": _of_page(
        False,
        True,
        "inputDiskCount is zero if the queues are configured to read input files directly from the local storage.",
    ),
    "workdisk_adds": _of_page(False, True, "max (300 MB, workDiskCount)"),
    "maxwdir_per_core": _of_page(True, False, "maxwdir is divided by coreCount at each queue"),
    "scratch_equal_passes": _of_page(
        False, True, "the resultant value must be larger than the expected disk usage."
    ),
    "free_equal_passes": _of_page(
        False, True, "DISK size check, free space in the local storage has to be over 200GB."
    ),
    "local_space": _of_page(
        "free", "usable", "free space in the local storage", allowed=("free", "usable")
    ),
    "other_status_up": _of_page(
        False, True, "Input endpoints must be locally readable over LAN (read_lan=ON)."
    ),
    "datadisk_only": _of_page(
        False, True, "Skip queues if their storage endpoints are blacklisted:"
    ),
    "wan_asked_at_nucleus": _of_page(False, True, "For sattelite queues in addition:"),
    "nucleus_must_send": _of_page(
        True,
        False,
        "The nucleus storage endpoints must allow receivng and sending files over WAN (write_wan=ON and read_wan=ON).",
    ),
    "long_queue_by_capacity": _of_page(
        False,
        True,
        "For scout or walltime-undefined jobs, skip queues if their maxtime is less than 24 hours.",
    ),
    "zero_efficiency_rejects": Switch(
        False,
        True,
        "003, cpuTime",
        sentence="Tasks can set cpuEfficiency to 0 to disable scaling with the number of events.",
    ),
    "unknown_walltime_is_short": _of_page(
        False, True, "The estimated walltime must be between mintime and maxtime at the queue."
    ),
    "zero_maxtime_limits": Switch(False, True, f"{OWN} 5"),
    "ip_stack_strict": _of_page(
        True, False, "‘’ (unset): to accept tasks without specifying ip_stack."
    ),
    "transferring_spares": _of_page(
        False,
        True,
        "Too many transferring jobs: skip if transferring > max(transferring_limit, 2 x running)",
    ),
    "any_negative_t1weight": _of_page(
        False, True, "if the task sets t1Weight=-1 and normal jobs are being generated."
    ),
    "single_t1_queue": _of_page(False, True, "Use only the queues associated with the nucleus"),
    "pilots_excused": _of_page(False, True, "Skip queues without pilots for the last 3 hours."),
    "urgent_is_pattern": _of_page(True, False, "If processingType=*urgent* or priority ≥ 1000"),
    "express_from_1000": _of_page(True, False, "If processingType=*urgent* or priority ≥ 1000"),
    "network_needs_active": _of_page(False, True, "weight = weight × networkWeight"),
    "shortage_counts_starting": _of_page(
        False, True, "when the total number of running cores is larger than pledgedcpu."
    ),
    "running_count": _of_page(
        "largest",
        "deployed",
        "The brokerage uses the largest one as the number of running jobs among the following numbers:",
        allowed=("largest", "deployed"),
    ),
    "counted_jobs": _of_page(
        "queue",
        "share",
        "The actual number of running jobs at the queue, Rreal.",
        allowed=("queue", "share"),
    ),
    "slots_per_core": _of_page(
        False,
        True,
        "numSlots if it is set to a positive number for the queue to the proactive job assignment.",
    ),
    "many_assigned_plus_one": _of_page(
        False, True, "manyAssigned = max(1, min(2, assigned / activated))"
    ),
    "nucleus_preferred": Switch(False, True, f"{OWN} 7"),
    "hardware_preferred": Switch(False, True, f"{OWN} 7"),
    "cap_mode": _of_page(
        "twice_running",
        "limit",
        "Skip queues if defined+activated+assigned+starting > 2 × running.",
        allowed=("twice_running", "limit"),
    ),
    "bootstrap_first": _of_page(False, True, "the remaining candidates are sorted by weight"),
    "jumbo_queues": Switch(False, True, f"{OWN} 8"),
    "code_only_checks": Switch(False, True, f"{OWN} 8"),
    "queued_line": Switch("plot", "cap", _NETWORK, ("plot", "cap"), sentence=_PLOT),
    "throughput_step_50": Switch(1.7, 1.6, _NETWORK, sentence=_PLOT),
    "newest_window_first": Switch(
        True,
        False,
        _NETWORK,
        sentence="so preferably data of the last 1 hour, if not available of last 1 day, if not available of last 1 week.",
    ),
}
"""Of the production job brokerage and the network weight."""
_NUCLEUS = "002, ATLAS Production Task Brokerage"
_WEIGHT = "tapeWeight × (spaceFree + spaceExpired) × min(spaceFreeCutoff, spaceFree) / (max(rwOffset, RW) × spaceTotal)"
_CHECK_OFF = "The entire data locality check is disabled if no nuclei pass and"
TASK_SWITCHES: dict[str, Switch] = {
    "idle_work_is_one": Switch(
        False, True, _NUCLEUS, sentence="rwOffset is 50 to have the minimum offset for RW"
    ),
    "usable_space": Switch(
        "free_expired",
        "usable",
        _NUCLEUS,
        ("free_expired", "usable"),
        sentence="spaceFree + spaceExpired - normalizedExpOutSize × RW > diskThreshold",
    ),
    "weight_after_demand": Switch(False, True, _NUCLEUS, sentence=_WEIGHT),
    "demand_is_whole": Switch(
        False,
        True,
        _NUCLEUS,
        sentence="normalizedExpOutSize is the expected size of the output file normalized by cpuTime × corePower × day (0.25)",
    ),
    "disk_equal_passes": Switch(
        False,
        True,
        _NUCLEUS,
        sentence="spaceFree + spaceExpired - normalizedExpOutSize × RW > diskThreshold",
    ),
    "threshold_of": Switch(
        "gshare",
        "workqueue",
        _NUCLEUS,
        ("gshare", "workqueue"),
        sentence="diskThreshold is the threshold defined per gshare as DISK_THRESHOLD_<gshare> in gdpconfig.",
    ),
    "fraction_equal_passes": Switch(
        False,
        True,
        _NUCLEUS,
        sentence="The fraction of the data size locally available divide by the total input size must be larger than "
        "INPUT_SIZE_FRACTION",
    ),
    "prestaging_needs_local_files": Switch(
        False,
        True,
        _NUCLEUS,
        sentence="Those nuclei ignore the next two rules with the input data size and the number of input files.",
    ),
    "input_num_of": Switch(
        "files",
        "files",
        _NUCLEUS,
        ("files", "size"),
        sentence="if the total input size is larger than INPUT_NUM_THRESHOLD",
    ),
    "locality_ends": Switch(False, True, _NUCLEUS, sentence=_CHECK_OFF),
    "waiver_priority": Switch(
        "taskpriority",
        "currentpriority",
        _NUCLEUS,
        ("taskpriority", "currentpriority"),
        sentence="taskPriority of the task is larger than or equal to MAX_TASK_PRIO_WITH_LOCAL_DATA",
    ),
    "waiver_drops_data": Switch(
        False,
        True,
        _NUCLEUS,
        sentence="tapeWeight is 0.001 if input data is on the tape storage, or 1 otherwise",
    ),
    "conditions_and_logs_count": Switch(
        True, False, _NUCLEUS, sentence="All input datasets are considered"
    ),
    "unreadable_input_waits": Switch(False, True, "production-tasks.md 2"),
    "container_totals": Switch("sum", "last", "production-tasks.md 2", ("sum", "last")),
    "null_intensity_is_high": Switch(
        False,
        True,
        _NUCLEUS,
        sentence="When ioIntencity of the task is greater than MIN_IO_INTENSITY_WITH_LOCAL_DATA",
    ),
    "work_of_weight": Switch(
        "all",
        "priority",
        _NUCLEUS,
        ("all", "priority"),
        sentence="RW is the total amount of exiting workload assigned to the nucleus",
    ),
    "hint_brokerage": Switch(False, True, "production-tasks.md 3"),
    "missing_endpoint": Switch(
        "skip",
        "abort",
        _NUCLEUS,
        ("skip", "abort"),
        sentence="Nuclei must have associated storages.",
    ),
    "storage_of": Switch(
        "nuclei",
        "outputs",
        _NUCLEUS,
        ("nuclei", "outputs"),
        sentence="The storages associated to nuclei must have enough space:",
    ),
    "milli_units_converted": Switch(True, False, "production-tasks.md 1"),
    "only_takes_allow": Switch(
        False, True, _CHAIN, sentence="only to be assigned to a nucleus with bareNucleus=only"
    ),
    "parent_flag_needed": Switch(
        False,
        True,
        _CHAIN,
        sentence="only if the parent task was assigned to a bare nucleus.",
    ),
    "parent_binds": Switch(
        "capable",
        "all",
        _CHAIN,
        ("capable", "all"),
        sentence="When capable is set, the task is assigned to the same nucleus as that of the parent task",
    ),
    "capable_ignored": Switch(
        True,
        False,
        _CHAIN,
        sentence="Otherwise, capable is ignored and the task can go to a normal nucleus.",
    ),
    "bare_satellites": Switch(
        False, True, _CHAIN, sentence="The nuclei are defined as bare nuclei"
    ),
    "missing_parent_waits": Switch(
        False,
        True,
        _CHAIN,
        sentence="Otherwise, capable is ignored and the task can go to a normal nucleus.",
    ),
    "secondary_lends": Switch(False, True, "full-chain.md 1"),
    "bare_mode_of": Switch(
        "any",
        "first",
        _CHAIN,
        ("any", "first"),
        sentence="by adding bareNucleus=only or bareNucleus=allow in the catchall field in CRIC",
    ),
}
"""Of the production task brokerage and full chain."""
SWITCHES: dict[str, Switch] = JOB_SWITCHES | TASK_SWITCHES
"""Every switch of the production brokerage."""


@dataclass(frozen=True, init=False)
class ProductionRules(RuleSet):
    """One rule set of the production brokerage with its switches; part of every result's provenance.

    Attributes:
        rules: ``document`` (the published pages) or ``production`` (the deployed code).
        drop_test_queues: Queues with ``test`` in the name are no candidates.
        parent_stays_in_list: A unified parent named in ``site`` stays beside its pseudo-queues.
        merging_freed_by: Merge jobs lose their queues after 24 h of ``waiting`` (``frozentime``; the page does not say how
            it is measured), or once their input is ``untouched`` for 24 h and the task waits for more than 6 h.
        preassigned_exempt: Pre-assigned queues pass more than the check of status: priority, activity, cores, wall time of
            scouts, connectivity, event service, pledges, pilots (else: status alone).
        standby_online: Status standby counts as online.
        backlog_inclusive: Limits of files queued, of links and of nuclei, bite at the limit itself (else: above it).
        backlog_spares_nucleus: Queues at a nucleus for which too many files wait, or of unknown storage, go on.
        inactive_counts_starting: Starting jobs count as waiting in check ``inactive``.
        test_work_exempt: Work queues or shares ``test`` and ``validation`` meet no zero share.
        io_check_strict: Input to move equal to a cutoff fails.
        io_check_relents: Where every queue has too much to move, those with the rest on tape stay, or else all.
        io_check_exempts: Merging, event service and a single pre-assigned queue may move any input.
        diskio_per_core: The traffic of tasks of several cores is divided by the cores of the slot.
        memory_by_unit: Cores and ``baseramcount`` count for units per core alone, and merge jobs need what is set for them,
            at least 2000 MB; without ramcount nothing is needed (else: one formula for all).
        whole_numbers: Needs are cut to whole MB, capacities to whole HS06 s, before they are compared.
        output_of_master: Output that scales with the input is reckoned from the master's files alone, and of these from
            the event range used.
        direct_asks_task: Input is read in place only by tasks with allowinputlan, without uselocalio, that do not merge
            (else: wherever the queue is configured so).
        workdisk_adds: Working directory is workdiskcount + 300 MB, 0 without it (else: the larger of the two).
        maxwdir_per_core: maxwdir is divided by the cores for every task (else: for single-core tasks).
        scratch_equal_passes: A job that fills maxwdir exactly passes.
        free_equal_passes: Space equal to STORAGE_MIN_FREE_SIZE passes.
        local_space: Space that is ``free``, or ``usable``: free and expired, less what must stay free or cannot be used.
        other_status_up: An endpoint is down at OFF or TEST only (else: up at ON or null only).
        datadisk_only: Only endpoints of type DATADISK count, and a queue without one is down (else: all that it has).
        wan_asked_at_nucleus: Queues of the nucleus must receive over WAN where the whole input is not at theirs.
        nucleus_must_send: The nucleus must send over WAN too.
        long_queue_by_capacity: Check ``walltime_24h`` compares the HS06 capacity and covers merging (else: maxtime itself).
        zero_efficiency_rejects: cpuefficiency 0 means capacity 0 (else: the need is basewalltime alone).
        unknown_walltime_is_short: Jobs of unknown wall time are under any mintime.
        zero_maxtime_limits: maxtime 0 is a limit in check ``walltime_24h`` where basewalltime > 0.
        ip_stack_strict: A task that says anything of connectivity needs a queue of its very ip stack, none included.
        transferring_spares: Queues near the nucleus may have any number of transferring jobs, and those bound to nuclei that
            cannot be written do not count.
        any_negative_t1weight: Every negative t1weight keeps jobs at the nucleus (else: -1).
        single_t1_queue: Negative t1weight keeps one single queue.
        pilots_excused: Slots set, jumbo jobs, and labels with ``test`` do without pilots.
        urgent_is_pattern: Work is express where its processing type holds ``urgent`` (else: where it is ``urgent``).
        express_from_1000: Priority 1000 itself is express.
        network_needs_active: The network weight and its check act only with NW_ACTIVE.
        shortage_counts_starting: Starting cores count as running in check ``pledge_exceeded``.
        running_count: ``largest`` of the four counts, or the ``deployed`` conditions on pilots, pull_ups, priority.
        counted_jobs: Jobs of the weight and of the filters after it: all of the queue, or those of the task's share or
            resource work queue. Slots are those of the share in both.
        slots_per_core: Slots set count divided by the cores of the queue.
        many_assigned_plus_one: One is added to both counts (else: without activated jobs it is 2, without assigned ones 1).
        nucleus_preferred: Queues of the nucleus weigh by t1weight, 4 times for much input, 100 times for urgent work.
        hardware_preferred: CPUs of a preferred level weigh more.
        cap_mode: Jobs queued: at most ``twice_running`` everywhere, both counts of the page; or the larger of that and the
            ``limit`` NQUEUELIMITSITE, without defined jobs, by resource type at unified queues, not for express work.
        bootstrap_first: Queues without any job become candidates of weight 0, ranked first.
        jumbo_queues: Queues for jumbo jobs take those alone, outside the best ten, whatever locks and caps say.
        code_only_checks: Checks that no page names: ``source_down``, ``io_intensity_max``, ``locked``, ``local_data_only``,
            ``below_min_weight``, and that a task whose input is complete nowhere waits (``input_incomplete``).
        queued_line: Queued weight falls from 2 to 1 at 300 files, as in the plot (``plot``), or at NQUEUED_SAT_CAP and goes
            on falling (``cap``).
        throughput_step_50: Throughput weight between 50 and 75 MB/s.
        newest_window_first: Throughput of hour, else day, else week (else: needs the week first).
        idle_work_is_one: Factor of the work left is 1 below the offset of 50 (else: 1/50).
        usable_space: Space of an endpoint: free + expired, or less what must stay free and what is
            unavailable.
        weight_after_demand: Space terms of the weight use usable space after the demand (else: free
            and expired).
        demand_is_whole: Space that the work left will need is cut to whole GB.
        disk_equal_passes: Space equal to DISK_THRESHOLD passes.
        threshold_of: DISK_THRESHOLD is that of the task's gshare, or of its work queue.
        fraction_equal_passes: A local fraction equal to the limit passes.
        prestaging_needs_local_files: inputPreStaging excuses only nuclei that have some file of the
            input (else: all).
        input_num_of: What is larger than INPUT_NUM_THRESHOLD: the number of files, or the size [GB]
            (page slip: the key is about a number).
        locality_ends: The check of locality is off for tasks stuck for longer than
            DATA_LOCATION_CHECK_PERIOD.
        waiver_priority: Priority that waives the locality check.
        waiver_drops_data: Where the check of locality is waived, the factors of data and tape are 1.
        conditions_and_logs_count: Conditions data (``ddo...``) and logs are input like any other.
        unreadable_input_waits: A task waits while a dataset has no complete copy that can be read over
            WAN.
        container_totals: Totals of a container: sum of its constituents, or the last one's.
        null_intensity_is_high: Null ioIntensity counts as high in the weight.
        work_of_weight: Work left in the weight: all that is assigned to the nucleus, or that of the
            task's work queue at its priority or above.
        hint_brokerage: Nuclei without a queue that could run the task are skipped.
        missing_endpoint: Nucleus without an endpoint for an output: skip ``no_storage``, or abort the
            task as deployed.
        storage_of: A task without outputs is asked for the first output endpoint of ``nuclei``, or for no storage: that
            of ``outputs`` counts alone.
        milli_units_converted: mHS06 units are converted in the remaining work.
        only_takes_allow: fullChain=only is accepted at bareNucleus=allow.
        parent_flag_needed: The parent must be full chain itself to bind its children.
        parent_binds: A parent at a bare nucleus binds children that are capable, or all that are full chain.
        capable_ignored: A task that is capable and not bound by its parent is an ordinary one in the choice of the
            nucleus (else: bare nuclei take it too).
        bare_satellites: Satellites with a bare mode are candidates of full chains.
        missing_parent_waits: A full chain whose parent is not known waits (else: it has no parent).
        secondary_lends: The site named by ``secondaryNucleus`` lends its storage to full chains (the page is silent).
        bare_mode_of: Bare mode of a site: of any of its queues, or of the first.

    Example:
        >>> ProductionRules().standby_online, ProductionRules("production").standby_online
        (False, True)
    """

    SWITCHES: ClassVar[Mapping[str, Switch]] = SWITCHES
    SUBJECT: ClassVar[str] = "production brokerage rules"

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
