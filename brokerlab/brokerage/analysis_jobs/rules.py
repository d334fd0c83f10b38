"""The two rule sets of the analysis job brokerage and every switch on which they differ."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import polars as pl

from brokerlab.rulesets import RuleSet, Switch

_PAGE = "002, ATLAS Analysis Job Brokerage"
_CODE = "docs/rules/analysis-jobs.md 6"

SWITCHES: dict[str, Switch] = {
    "basic_weight": Switch(
        "original",
        "new",
        _PAGE,
        ("original", "new"),
        sentence="Currently original basic weight is used in brokerage.",
    ),
    "cap_rt_effective": Switch(
        True,
        False,
        _PAGE,
        sentence="Skip queues if defined+activated+assigned+starting > 2 × max(20, running).",
    ),
    "cap_rt_form": Switch(
        "twice_larger",
        "larger_of_twice",
        _PAGE,
        ("twice_larger", "larger_of_twice"),
        sentence="Skip queues if defined+activated+assigned+starting > 2 × max(20, running).",
    ),
    "counted_jobs": Switch(
        "queue",
        "share",
        _PAGE,
        ("queue", "share"),
        sentence="The actual number of running jobs at the queue, Rreal.",
    ),
    "bad_jobs_mode": Switch(
        "all",
        "after_stabilizer",
        _PAGE,
        ("all", "after_stabilizer"),
        sentence="(nFailed + nClosed) must be less than max(2 × nFinished,MIN_BAD_JOBS_TO_SKIP_PQ).",
    ),
    "locality_mode": Switch(
        "suppress",
        "retry",
        _PAGE,
        ("suppress", "retry"),
        sentence="This check is suppressed if taskPriority ≥ 2000",
    ),
    "zero_intensity_suppresses": Switch(
        True, False, _PAGE, sentence="ioIntensity ≤ IO_INTENSITY_CUTOFF_USER"
    ),
    "second_loop": Switch(
        "persistent",
        "always",
        _PAGE,
        ("persistent", "always"),
        sentence="If all queues are skipped due to the persistent issues",
    ),
    "count_total_row": Switch(False, True, _PAGE, sentence="1/nUsers(PQ)"),
    "stabilizer_running": Switch(
        "jobs", "users", _PAGE, ("jobs", "users"), sentence="STATIC_MAX_QUEUE_RUNNING_RATIO* nR(PQ)"
    ),
    "trr_scaled": Switch(
        False,
        True,
        _PAGE,
        sentence="number of jobs getting from queuing to running per hour in the PQ",
    ),
    "diskio_per_core": Switch(
        False,
        True,
        _PAGE,
        sentence="the next cycles of job brokerage will exclude tasks with diskIO higher than the defined limit",
    ),
    "use_base_ram": Switch(True, False, _PAGE, sentence="(baseRamCount + ramCount)"),
    "merge_memory": Switch(
        "task",
        "deployed",
        _PAGE,
        ("task", "deployed"),
        sentence="The expected memory site of each job is estimated for each queue",
    ),
    "whole_numbers": Switch(False, True, _CODE),
    "zero_efficiency_rejects": Switch(
        False,
        True,
        "003, cpuTime",
        sentence="Tasks can set cpuEfficiency to 0 to disable scaling with the number of events.",
    ),
    "min_capacity_mode": Switch(
        "maxtime",
        "capacity",
        _PAGE,
        ("maxtime", "capacity"),
        sentence="For scout, merge, or walltime-undefined jobs, skip queues if their maxtime is less than 24 hours.",
    ),
    "scratch_need": Switch(
        "sum",
        "deployed",
        _PAGE,
        ("sum", "deployed"),
        sentence="(0 or inputDiskCount) + outDiskCount × inputDiskCount + workDiskCount",
    ),
    "direct_asks_task": Switch(
        False,
        True,
        _PAGE,
        sentence="zero if the queues are configured to read input files directly from the local storage.",
    ),
    "maxwdir_mode": Switch(
        "per_core",
        "single_core",
        _PAGE,
        ("per_core", "single_core"),
        sentence="maxwdir is divided by coreCount at each queue and the resultant value must be larger",
    ),
    "slots_zero_mode": Switch(
        "larger",
        "sum",
        _PAGE,
        ("larger", "sum"),
        sentence="The number of starting jobs if numSlots is set to zero",
    ),
    "workers_need_pilots": Switch(
        False, True, _PAGE, sentence="min(nBatchJob, 20) if Rreal < 20 and nBatchJob"
    ),
    "slots_per_core": Switch(
        False, True, _PAGE, sentence="numSlots if it is set to a positive number for the queue"
    ),
    "use_l1_share": Switch(
        False, True, _PAGE, sentence="User Analysis share usage > 90% of its target"
    ),
    "caps_need_all_counts": Switch(
        False, True, _PAGE, sentence="if ANY of the following conditions holds"
    ),
    "unknown_user_fraction": Switch(
        0,
        0.5,
        _PAGE,
        most=1,
        sentence="max(USER_USAGE_THRESHOLD_A/(# of user’s running slots in hi-sites), 1)*100% of its target",
    ),
    "closed_skips": Switch(False, True, _PAGE, sentence="(nFailed + nClosed) must be less than"),
    "used_sites_first": Switch(
        False, True, _PAGE, sentence="the remaining candidates are sorted by weight"
    ),
    "best_ten_always": Switch(True, False, _PAGE, sentence="the best 10 candidates are taken"),
    "pending_min": Switch(20, 60, _PAGE, sentence="the task is pending for 20 min"),
    "preassigned_failure": Switch(
        "waits",
        "fatal",
        _PAGE,
        ("waits", "fatal"),
        sentence="If all queues are still skipped, the task is pending for 20 min.",
    ),
    "space_strict": Switch(
        True,
        False,
        _PAGE,
        sentence="DISK size check, free space in the local storage has to be over 200GB.",
    ),
    "local_space": Switch(
        "free", "usable", _PAGE, ("free", "usable"), sentence="free space in the local storage"
    ),
    "data_counts_without_locality": Switch(
        True, False, _PAGE, sentence="This check is suppressed if taskPriority ≥ 2000"
    ),
    "new_weight": Switch(
        "document", "budgets", _PAGE, ("document", "budgets"), sentence="New basic weight ="
    ),
    "data_factor": Switch(
        False, True, _PAGE, sentence="Currently original basic weight is used in brokerage."
    ),
    "lists_need_limitedsites": Switch(
        False,
        True,
        _PAGE,
        sentence="Exclude queues if excludedSite is specified and the queues are included in the list.",
    ),
    "lists_first": Switch(
        True,
        False,
        _PAGE,
        sentence="Next, the brokerage generates the list of preliminary candidates",
    ),
    "grandly_unified_counts": Switch(
        False, True, _PAGE, sentence="Take all queues with type=’analysis’ or ‘unified’."
    ),
    "status_mode": Switch(
        "online",
        "not_offline",
        _PAGE,
        ("online", "not_offline"),
        sentence="The queue status must be online unless the queues are pre-assigned.",
    ),
    "vp_avoided_by": Switch(
        "task",
        "more",
        _PAGE,
        ("task", "more"),
        sentence="Skip VP queues if the task specifies avoidVP",
    ),
    "vp_default_scope": Switch(
        False, True, _PAGE, sentence="Skip VP queues if the task specifies avoidVP"
    ),
    "overload_scope": Switch(
        "vp", "all", _PAGE, ("vp", "all"), sentence="or those queues are overloaded."
    ),
    "code_only_checks": Switch(False, True, _CODE),
    "code_only_exemptions": Switch(False, True, _CODE),
}


@dataclass(frozen=True, init=False)
class AnalysisRules(RuleSet):
    """One rule set of the analysis brokerage with its switches; part of every result's provenance.

    How the tables ``to_run_rate`` and ``user_job_stats`` are counted is no switch: they are inputs here.

    Attributes:
        rules: ``document`` (what the published pages say) or ``production`` (what the deployed code does).
        basic_weight: Which basic weight ranks.
        cap_rt_effective: Check ``cap_rt`` removes queues.
        cap_rt_form: Its limit: 2 max(20, running), or max(20, 2 running).
        counted_jobs: Where the page names no share, jobs are those of the queue; the code counts those of the share,
            in ``cap_rt`` those of the resource type. Of the original weight and of ``cap_rt``.
        bad_jobs_mode: Bad jobs that reach the limit mark every queue (``all``), or bad jobs over the limit mark the
            queues that the stabilizer looked at.
        locality_mode: A reason to suppress the check of locality does so, or the check is tried and then retried
            without.
        zero_intensity_suppresses: An ``iointensity`` of 0 is at most the cutoff (else: it counts as unknown).
        second_loop: Queues without the input are looked at where every queue has a persistent issue, or also where
            temporary ones took the last.
        count_total_row: The number of users of a queue counts the row of totals too.
        stabilizer_running: nR of the stabilizer: running jobs of the share at the queue, or the sum over its users.
        trr_scaled: The to-running rate of a queue is scaled to the share.
        diskio_per_core: The traffic of tasks of several cores is divided by the cores of the slot.
        use_base_ram: The memory need includes baseramcount.
        merge_memory: Merge jobs need what is set for them or else for the task, by its unit; or, as the code has it, at
            least 2000 MB where it is set for them, else that of the chunk, never per core.
        whole_numbers: Memory is cut to whole MB, capacities to whole HS06 s, before they are compared.
        zero_efficiency_rejects: cpuefficiency 0 means capacity 0 (else: the need is basewalltime alone).
        min_capacity_mode: 24 h compare with maxtime, or with its HS06 capacity.
        scratch_need: The page's sum, exact, or that of the code: 300 MB more, output by the effective size of the
            master dataset, at least ngbperjob, twice the input for merging, whole MB.
        direct_asks_task: Input is read in place only by tasks with allowinputlan, without uselocalio, that do not merge
            (else: wherever the queue is configured so).
        maxwdir_mode: Every job gets its cores' part of maxwdir and must leave something free, or single-core jobs only
            get a part and may fill it.
        slots_zero_mode: 0 slots count the larger of running and starting jobs, or their sum.
        workers_need_pilots: Batch workers count only where a pilot came in 3 h.
        slots_per_core: Slots are divided by the cores of the queue.
        use_l1_share: Usage is the lesser of that of the share and the equivalent of its first level.
        caps_need_all_counts: Caps act only where all four counts of the user are known.
        unknown_user_fraction: Part of USER_USAGE_THRESHOLD_A that counts as used where nothing is known of the user.
        closed_skips: One closed job of the task skips the queue.
        used_sites_first: Queues that the task already uses come first.
        best_ten_always: Ten candidates at most (else: more for distributed input and for several queues per job).
        pending_min: How long a task without candidates waits [min].
        preassigned_failure: A task whose own queue is skipped ``waits`` as any other one, or ends (``fatal``).
        space_strict: Space equal to the limit is too little.
        local_space: Space of ``storage_endpoints`` that is ``free``, or ``usable``: free and expired, less what must stay
            free or cannot be used.
        data_counts_without_locality: Queues that hold the input need no transfer, also where the check of locality is
            suppressed or given up (else: they are then asked for space and WAN as the others are).
        new_weight: New weight by the page's table, or by budgets per class with spill.
        data_factor: The basic weight is multiplied by a factor for input that is there.
        lists_need_limitedsites: Include and exclude lists count only with limitedsites.
        lists_first: Include and exclude lists act before all checks.
        grandly_unified_counts: Queues with ``grandly_unified`` in catchall are candidates, whatever their type.
        status_mode: Queues have to be online unless they are pre-assigned; or only not offline, and not resting.
        vp_avoided_by: VP queues are skipped for ``avoidvp`` alone, or ``more``: for merging, distributed input, input
            that no queue has whole, and queues that need not hold the input.
        vp_default_scope: Check ``avoid_vp`` looks for VP endpoints in scope default only.
        overload_scope: Overloaded queues are skipped if they are VP queues, or ``all`` are while others are left.
        code_only_checks: Checks that the page does not name: ``near_global_quota``, ``quota_unavailable``,
            ``input_incomplete``, ``zeroshare``, ``max_io_intensity``, ``architecture``, ``remoteio``, ``local_quota``,
            ``cloudmismatch``, ``hospital``, ``below_min_weight``, ``fileunavailable``.
        code_only_exemptions: Merge jobs are exempt from caps, wall time, stabilizer and bad jobs; pre-assigned tasks from
            software, the 24 h of scouts, ``cap_rt`` and marks; tasks labelled test from pilots.

    Example:
        >>> AnalysisRules().basic_weight, AnalysisRules("production").basic_weight
        ('original', 'new')
    """

    SWITCHES: ClassVar[Mapping[str, Switch]] = SWITCHES
    SUBJECT: ClassVar[str] = "analysis brokerage rules"

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
    """Return where a check is asked: everywhere, or, as the code does it, but for those who are exempt.

    Args:
        exempt: Who is exempt in the code; no null.
        rules: Switch ``code_only_exemptions``.
    """
    return ~exempt | pl.lit(value=not rules.code_only_exemptions)
