"""The checks of single queues, rows 1 to 42 of production-jobs.md 2.

Each is an expression over the columns of a pair: ``t_`` of the task, ``q_`` of the queue, ``p_`` of its unified
parent, ``s_`` state of the parent at the instant, ``l_`` link to the nucleus, ``x_`` of task and queue together.
"""

from __future__ import annotations

from functools import lru_cache

import polars as pl
from polars import col

from brokerlab.brokerage.engine.rule import Chapter, Rule, setting
from brokerlab.brokerage.engine.steps import setting_or
from brokerlab.brokerage.production_jobs.settings import MIN_FREE_GB, UNLIMITED_DISKIO
from brokerlab.brokerage.rules import ProductionRules
from brokerlab.units import HOUR_S

check = Chapter("production-jobs.md ")
RAM_COMPENSATION = 0.9
"""Jobs a little above the least memory of a slot do not go there."""
REJECTED, UNRESOLVED = 1, 2
"""Values of ``x_software``; 0 is accepted."""


def spared(rules: ProductionRules, name: str) -> pl.Expr:
    """Return whether a check passes a pre-assigned queue (``t_listed``; a single one: ``t_single``) without being asked."""
    return pl.col(name) if rules.preassigned_exempt else pl.lit(value=False)


def at_least_one(value: pl.Expr) -> pl.Expr:
    """Return the value, or 1 where it is 0 (undefined) or less."""
    return pl.when(value > 1).then(value).otherwise(pl.lit(1))


def near() -> pl.Expr:
    """Return whether a queue is of the nucleus or shares its storage; of any nucleus before there is one (hint mode)."""
    return pl.col("x_near") | (pl.col("t_hint") & pl.col("p_near_any"))


def status_checks(rules: ProductionRules) -> tuple[Rule, ...]:
    """Return ``name_test`` and ``status_offline``.

    Source: 002, ATLAS Production Job Brokerage: "The queue status must be online unless the queues are pre-assigned."
    """
    online = "online or standby" if rules.standby_online else "online"
    named = col("q_named_test") & ~col("t_listed") & pl.lit(value=rules.drop_test_queues)
    return (
        check("2", "name_test", "its name marks it as a test queue", named),
        check(
            "2", "status_offline", f"the queue's status is {{status}}, not {online}",
            ~col("q_online") & ~col("t_listed"),
        ),
    )  # fmt: skip


def opportunistic_check(rules: ProductionRules) -> Rule:
    """Return ``opportunistic``.

    Source: 002, ATLAS Production Job Brokerage: "If priority ≥ 800 or scout jobs, skip opportunistic queues".
    """
    return check(
        "2", "opportunistic",
        "the queue is opportunistic (pledgedcpu -1), which urgent tasks (priority 800 and more, here {t_prio}) and "
        "scouts avoid",
        (col("q_pledgedcpu") == -1) & col("t_urgent") & ~spared(rules, "t_listed"),
    )  # fmt: skip


def policy_checks(rules: ProductionRules) -> tuple[Rule, ...]:
    """Return ``zero_share``, ``jumbo_only``, ``jumbo_few_events``; without ``jumbo_queues`` the last two never skip.

    Source: 002, ATLAS Production Job Brokerage: "Zero Share, which is defined in the fairsharepolicy field in CRIC".
    """
    applies = col("t_policy_applies") if rules.test_work_exempt else pl.lit(value=True)
    jumbo = col("q_jumbo") & ~col("t_single") & pl.lit(value=rules.jumbo_queues)
    few = col("q_jumbo_events") > col("t_ready_events")
    return (
        check(
            "2", "zero_share",
            "the queue's fairsharepolicy ({q_fairsharepolicy}) gives no share to processing type {t_type} of share "
            "{t_gshare}",
            col("x_zero_share") & applies,
        ),
        check(
            "8", "jumbo_only", "the queue takes jumbo jobs only (useJumboJobs), the task has none",
            jumbo & ~col("t_jumbo"),
        ),
        check(
            "8", "jumbo_few_events",
            "the queue wants {q_jumbo_events} events ready for jumbo jobs (minEventsForJumbo), {t_ready_events} are",
            jumbo & col("t_jumbo") & few,
        ),
    )  # fmt: skip


def core_checks(rules: ProductionRules) -> tuple[Rule, ...]:
    """Return ``core_count`` and ``core_count_max``.

    Source: 002, ATLAS Production Job Brokerage: "CPU Core count matching amount site.coreCount, task.coreCount, and
        maxCoreCount of the task if defined."
    """
    asked = ~spared(rules, "t_single")
    cores, slot = col("t_cores"), col("q_corecount")
    multi = (cores > 1) | ((cores == 0) & col("t_first_class"))
    free = (cores == 0) & ~col("t_first_class")
    differs = (multi & (slot <= 1)) | (~multi & ~free & (slot > 1))
    return (
        check(
            "2", "core_count", "the task asks for slots of {t_cores} cores, those of the queue have {q_corecount}",
            differs & asked, numbers={"single": ~multi & ~free, "undefined": multi & (slot == 0)},
            variants={
                "single": "the task asks for slots of one core, those of the queue have {q_corecount}",
                "undefined": "the task asks for slots of several cores, the queue says nothing of its cores",
            },
        ),
        check(
            "2", "core_count_max",
            "the queue's slots have {q_corecount} cores, the task takes {t_maxcores} at most (maxcorecount)",
            (col("t_maxcores") != 0) & (slot > col("t_maxcores")) & asked,
        ),
    )  # fmt: skip


def software_checks() -> tuple[Rule, ...]:
    """Return ``software_hardware`` and ``platform_unresolved``."""
    lacks = "the queue lacks the software or hardware asked for ({x_software_reason})"
    release = "release {t_transhome:none}"
    return (
        check(
            "2", "software_hardware", f"{lacks}: {release}",
            col("x_software") == REJECTED,
            variants={
                "t_container_name": f"{lacks}: container {{t_container_name}}",
                "t_architecture": f"{lacks}: {release}, architecture {{t_architecture}}",
            },
        ),
        check(
            "2", "platform_unresolved", "no platform that the queue publishes fits the pattern {t_architecture}",
            col("x_software") == UNRESOLVED,
        ),
    )  # fmt: skip


def compensated(ram: pl.Expr, *, whole: bool) -> pl.Expr:
    """Return 90 % of a memory need [MB], ``whole``: truncated to whole MB."""
    need = ram * RAM_COMPENSATION
    return need.truncate() if whole else need


def slot_cores() -> pl.Expr:
    """Return the cores that memory is multiplied with: 1 where the queue says nothing."""
    return pl.when(col("q_corecount") != 0).then(col("q_corecount")).otherwise(pl.lit(1))


def needed_ram(*, whole: bool, base_alone: bool) -> pl.Expr:
    """Return the memory compared with the slot [MB], ``whole`` or exact; 0: no check.

    ``base_alone``: the base counts where no memory is asked for per core.
    """
    scaled = col("t_ram") * slot_cores() + col("t_base_ram")
    ram = pl.when(col("t_ram_per_core")).then(scaled).otherwise(col("t_ram"))
    need = compensated(ram, whole=whole)
    return need if base_alone else pl.when(col("t_ram") == 0).then(pl.lit(0.0)).otherwise(need)


def memory_checks(*, whole: bool = True, base_alone: bool = False) -> tuple[Rule, ...]:
    """Return ``memory_max`` and ``memory_min``; see :func:`needed_ram` and :func:`~.facts.memory`.

    Source: 002, ATLAS Production Job Brokerage: "Queues are skipped if the estimated memory usage is not included in the
        acceptable memory ranges."
    """
    need = needed_ram(whole=whole, base_alone=base_alone)
    based = col("t_ram_per_core") & (col("t_base_ram") != 0)
    numbers = {"need": need, "cores": slot_cores(), "based": based}

    def clauses(job_needs: str, slot_has: str) -> tuple[str, dict[str, str]]:
        times = f"times {RAM_COMPENSATION}"
        scaled = "{t_ram} MB per core x {cores} cores"
        plain, per_core, with_base = (
            f"{job_needs} {{need}} MB ({sum_}, {times}) and {slot_has}"
            for sum_ in ("{t_ram} MB", scaled, scaled + " + {t_base_ram} MB")
        )
        return plain, {"based": with_base, "t_ram_per_core": per_core}

    lacks = clauses("the job needs", "the slot offers {q_maxrss} MB (maxrss)")
    spare = clauses("the job needs only", "the slot is for {q_minrss} MB and more (minrss)")
    return (
        check(
            "5", "memory_max", lacks[0],
            (need != 0) & (col("q_maxrss") != 0) & (need > col("q_maxrss")), numbers=numbers,
            variants=lacks[1],
        ),
        check(
            "5", "memory_min", spare[0],
            (need != 0) & (col("q_minrss") != 0) & (need < col("q_minrss")), numbers=numbers,
            variants=spare[1],
        ),
    )  # fmt: skip


def reads_in_place(rules: ProductionRules) -> pl.Expr:
    """Return whether jobs read their input in place, without a copy on scratch (switch ``direct_asks_task``).

    Source: 002, ATLAS Production Job Brokerage: "inputDiskCount is zero if the queues are configured to read input files
        directly from the local storage."
    """
    always = col("p_maxinputsize") == -1
    if not rules.direct_asks_task:
        return always | col("p_direct_lan")
    return ~col("t_merging") & (always | (col("t_reads_lan") & col("p_direct_lan")))


def disk_checks(rules: ProductionRules) -> tuple[Rule, ...]:
    """Return ``direct_access`` and ``scratch_disk``.

    Source: 002, ATLAS Production Job Brokerage: "maxwdir is divided by coreCount at each queue and the resultant value must
        be larger than the expected disk usage."
    """
    in_place = reads_in_place(rules)
    scratch = pl.when(in_place).then(col("t_scratch_direct")).otherwise(col("t_scratch_copy"))
    shared = col("p_maxwdir") / at_least_one(col("p_corecount"))
    space = shared
    if not rules.maxwdir_per_core:
        space = pl.when(col("t_wdir_shared")).then(shared).otherwise(col("p_maxwdir"))
    more = "more than" if rules.scratch_equal_passes else "which is not less than"
    gets = f"{more} the {{space}} MB it gets (maxwdir {{p_maxwdir}} MB)"
    full = scratch > space if rules.scratch_equal_passes else scratch >= space
    return (
        check(
            "5", "direct_access",
            "the task reads its input in place only (allowinputlan), the queue copies it to scratch",
            col("t_lan_only") & ~col("p_direct_lan") & (col("p_maxinputsize") != -1),
        ),
        check(
            "5", "scratch_disk", f"the job needs {{scratch}} MB of scratch, its input included, {gets}",
            (col("p_maxwdir") != 0) & full,
            numbers={"scratch": scratch, "space": space, "in_place": in_place},
            variants={
                "in_place": f"the job needs {{scratch}} MB of scratch, reading its input in place, {gets}"
            },
        ),
    )  # fmt: skip


def network_checks(rules: ProductionRules) -> tuple[Rule, ...]:
    """Return ``connectivity`` and ``ip_stack``.

    Source: 002, ATLAS Production Job Brokerage: "wnconnectivity of the queue must be consistent if the task specifies
        ipConnectivity."
    """
    wants, has = col("t_ip"), col("q_network")
    good = (has == "full") | ((has == "http") & (wants == "http"))
    asks = col("t_asks_network") if rules.ip_stack_strict else col("t_stack") != ""
    asked = ~spared(rules, "t_single")
    return (
        check(
            "6", "connectivity", "the task asks for {t_ip} connectivity, that of the queue is {q_network}",
            (wants != "") & ~good & asked,
        ),
        check(
            "6", "ip_stack", "the task asks for ip stack {t_stack}, that of the queue is {q_stack}",
            asks & (col("t_stack") != col("q_stack")) & asked,
        ),
    )  # fmt: skip


def event_service_checks(rules: ProductionRules) -> tuple[Rule, ...]:
    """Return the four checks of ``jobseed``.

    Source: 002, ATLAS Production Job Brokerage: "Settings for event service and the dynamic number of events."
    """
    es, seed = col("t_es"), col("q_jobseed")
    free = ~spared(rules, "t_single")
    return (
        check(
            "2", "event_service_std", "the queue takes no event service (jobseed {q_jobseed})",
            es & (seed == "std") & free,
        ),
        check(
            "2", "event_service_prio", "the queue takes event service of priority 900 and more only (jobseed {q_jobseed}), the task has {t_prio}",
            es & (seed == "eshigh") & ~col("t_first_class") & free,
        ),
        check(
            "2", "event_service_only", "the queue takes event service only (jobseed {q_jobseed})",
            ~es & (seed == "es") & free,
        ),
        check(
            "2", "event_service_child", "event service needs a pseudo-queue of several cores, this one has {q_corecount}",
            es & col("q_pseudo") & (col("q_corecount") == 1) & free,
        ),
    )  # fmt: skip


def io_intensity_check(rules: ProductionRules) -> Rule:
    """Return ``io_intensity_max`` (switch ``code_only_checks``)."""
    io = (col("t_iointensity") != 0) & (col("t_iointensity") > col("q_max_io_intensity"))
    return check(
        "8", "io_intensity_max",
        "the task's iointensity of {t_iointensity} kB/s is over the queue's limit of {q_max_io_intensity} kB/s",
        io & ~col("t_merging") & pl.lit(value=rules.code_only_checks),
    )  # fmt: skip


def nucleus_checks(rules: ProductionRules) -> tuple[Rule, ...]:
    """Return ``t1_weight``, ``io_intensity_max`` and the two checks of the full chain.

    Source: 002, ATLAS Production Job Brokerage: "Use only the queues associated with the nucleus if the task sets
        t1Weight=-1 and normal jobs are being generated."
    """
    outside = col("t_chained") & (col("t_nucleus_id") != col("q_site_id"))
    return (
        check(
            "2", "t1_weight",
            "the task stays at its nucleus {t_nucleus} (negative t1weight), the queue is neither there nor shares its storage",
            col("t_nucleus_only") & ~near(),
        ),
        io_intensity_check(rules),
        check(
            "2", "full_chain_outside", "the full chain stays at its nucleus {t_nucleus}, the queue is at {q_site}",
            outside & ~col("t_hint"),
        ),
        check(
            "2", "full_chain_only", "the queue takes full chains only (bareNucleus=only)",
            ~col("t_chained") & (col("q_bare") == "only") & ~col("t_hint"),
        ),
    )  # fmt: skip


def diskio_check(*, per_core: bool, whole: bool) -> Rule:
    """Return ``diskio_overload``; ``per_core``: the traffic of a task of several cores is divided by those of the slot.

    Source: 002, ATLAS Production Job Brokerage: "when the average diskIO per core for running jobs in a queue exceeds the
        limit, the next cycles of job brokerage will exclude tasks with diskIO higher than the defined limit".
    """
    own = pl.when(col("p_maxdiskio") > 0).then(col("p_maxdiskio"))
    limit = own.otherwise(setting_or("MAX_DISKIO_DEFAULT", UNLIMITED_DISKIO))
    asked = col("t_diskio")
    if per_core:
        several = (col("t_corecount") > 1) | (col("t_corecount") < 0)
        shared = asked / at_least_one(col("p_corecount"))
        shared = shared.floor() if whole else shared
        asked = pl.when(several & (col("p_corecount") != 0)).then(shared).otherwise(asked)
    return check(
        "2", "diskio_overload",
        "running jobs use {s_diskio} kB/s of disk per core and the task asks for {asked} kB/s; both are over the limit of "
        "{limit} kB/s",
        (asked != 0) & (col("s_diskio") != 0) & (col("s_diskio") > limit) & (asked > limit),
        kind="temporary", numbers={"limit": limit, "asked": asked},
    )  # fmt: skip


DAY_S = 24 * 3600
REFERENCE_POWER = 10
"""Core power with which the deployed code turns a day into HS06 s [HS06/core]."""

CORES = {"cores": at_least_one(col("q_corecount"))}
"""Cores of a slot, as capacities are told."""
_SLOT = (
    "the queue's {0}time of {{q_{0}time}} s (less {{t_basewalltime}} s, x {{cores}} cores x {{q_corepower}} HS06 x "
    "efficiency {{t_efficiency}} %)"
)


def capacity(limit: str, *, whole: bool = True) -> pl.Expr:
    """Return the work that fits into ``q_maxtime`` or ``q_mintime``: HS06 s, ``whole`` or exact, else s x cores."""
    cores = at_least_one(col("q_corecount"))
    time = (col(limit) - col("t_basewalltime")) * cores
    power = time * col("q_corepower") * col("t_efficiency") / col("t_percent")
    power = power.truncate() if whole else power
    return pl.when(col("t_hs06")).then(power).otherwise(col(limit) * cores)


def time_checks(rules: ProductionRules) -> tuple[Rule, ...]:
    """Return ``walltime_max``, ``walltime_24h``, ``walltime_min``.

    Source: 002, ATLAS Production Job Brokerage: "The estimated walltime must be between mintime and maxtime at the queue."
    """
    most = capacity("q_maxtime", whole=rules.whole_numbers)
    no_scaling = (col("t_efficiency") == 0) & col("t_hs06")
    if rules.zero_efficiency_rejects:
        no_scaling = no_scaling & pl.lit(value=False)
    dynamic = col("t_dynamic") & (col("q_mintime") > 0)
    need = pl.when(dynamic).then(col("t_need_dyn")).otherwise(col("t_need"))
    longer = (need != 0) & (need > most)
    over = (no_scaling & (col("t_basewalltime") > col("q_maxtime"))) | (~no_scaling & longer)
    return (
        check(
            "5", "walltime_max",
            "the smallest job needs {need} core s, {fits} core s fit into the queue's maxtime of {q_maxtime} s",
            (col("q_maxtime") != 0) & over,
            numbers={"need": need, "fits": most, "no_scaling": no_scaling, **CORES},
            variants={
                "no_scaling": "the base wall time of {t_basewalltime} s alone is over the queue's maxtime of "
                "{q_maxtime} s",
                "t_hs06": f"the smallest job needs {{need}} HS06 s, {{fits}} HS06 s fit into {_SLOT.format('max')}",
            },
        ),
        _long_enough(rules),
        _not_too_short(no_scaling, rules),
    )  # fmt: skip


def _long_enough(rules: ProductionRules) -> Rule:
    applies = (col("t_scout") & ~spared(rules, "t_single")) | col("t_walltime_undefined")
    fits = capacity("q_maxtime")
    if rules.long_queue_by_capacity:
        applies = applies | col("t_merging")
        day = at_least_one(col("q_corecount")) * (DAY_S * REFERENCE_POWER)
        short = (fits != 0) & (fits < day)
        if not rules.zero_maxtime_limits:
            short = short & (col("q_maxtime") != 0)
        need = (
            f"scouts, merging and jobs of unknown wall time need 24 h at {REFERENCE_POWER} HS06 a core, that is {{day}} "
            "HS06 s; {fits} fit into "
        )
        says = need + "the queue's maxtime of {q_maxtime} s (x {cores} cores, whatever their power)"
        variants = {"t_hs06": need + _SLOT.format("max")}
    else:
        day = pl.lit(DAY_S)
        short = (col("q_maxtime") != 0) & (col("q_maxtime") < DAY_S)
        says = "scouts and jobs of unknown wall time need {day} s (24 h), the queue's maxtime is {q_maxtime} s"
        variants = {}
    numbers = {"day": day, "fits": fits, **CORES}
    return check("5", "walltime_24h", says, applies & short, numbers=numbers, variants=variants)


def _not_too_short(no_scaling: pl.Expr, rules: ProductionRules) -> Rule:
    fits = capacity("q_mintime", whole=rules.whole_numbers)
    unknown = col("t_need").is_null() & pl.lit(value=rules.unknown_walltime_is_short)
    plain = unknown | (col("t_need") < fits).fill_null(value=False)
    dynamic = (col("t_need_dyn") < fits) & (col("t_need_dyn_max") < fits)
    scaled = pl.when(col("t_dynamic")).then(dynamic).otherwise(plain)
    fixed = no_scaling & (col("t_basewalltime") < col("q_mintime"))
    return check(
        "5", "walltime_min",
        "the smallest job needs only {need} core s, the queue's mintime of {q_mintime} s takes {fits} core s",
        (col("q_mintime") != 0) & (fixed | (~no_scaling & scaled)),
        numbers={
            "need": pl.when(col("t_dynamic")).then(col("t_need_dyn")).otherwise(col("t_need")),
            "fits": fits,
            "no_scaling": no_scaling,
            "undefined": col("t_need").is_null() & ~col("t_dynamic"),
            **CORES,
        },
        variants={
            "no_scaling": "the base wall time of {t_basewalltime} s is under the queue's mintime of {q_mintime} s",
            "undefined": "how long the job takes is not known, and the queue has a mintime of {q_mintime} s",
            "t_hs06": f"the smallest job needs only {{need}} HS06 s, {{fits}} HS06 s fit into {_SLOT.format('min')}",
        },
    )  # fmt: skip


INACTIVE_S = 2 * HOUR_S
"""A queue without a start for longer is inactive [s]."""
BLOCKED = -1
"""Closeness of a blocked link."""


def remote() -> pl.Expr:
    """Return whether the queue's outputs cross a link to the nucleus."""
    known = (col("t_nucleus_id") >= 0) & (col("p_storage_id") >= 0)
    return known & (col("t_nucleus_id") != col("p_storage_id"))


def link_checks(rules: ProductionRules) -> tuple[Rule, ...]:
    """Return ``nucleus_unwritable``, ``nucleus_backlog``, ``link_blocked``, ``link_backlog``.

    Source: 002, ATLAS Production Job Brokerage: "Skip all queues if the number of files to be aggregated to the nucleus is
        larger than NQUEUED_NUC_CAP_FOR_JOBS" and "over the NQUEUED_SAT_CAP ... files queued on their links to the nucleus".
    """

    def reached(value: pl.Expr, cap: pl.Expr) -> pl.Expr:
        return value >= cap if rules.backlog_inclusive else value > cap

    used = "written and read" if rules.nucleus_must_send else "written"
    reaches = "which reaches the limit of" if rules.backlog_inclusive else "more than"
    of_nucleus, of_link = setting("NQUEUED_NUC_CAP_FOR_JOBS"), setting("NQUEUED_SAT_CAP")
    unwritable = remote() & col("t_nucleus_unwritable")
    backlog = reached(col("t_nucleus_queued"), of_nucleus)
    has_nucleus = remote() if rules.backlog_spares_nucleus else col("t_nucleus_id") >= 0
    open_link = remote() & ~col("t_nucleus_unwritable") & ~backlog & col("l_known")
    blocked = (col("l_closeness") == BLOCKED).fill_null(value=False)
    queued = reached(col("l_queued"), of_link)
    return (
        check(
            "3", "nucleus_unwritable", f"the storage of nucleus {{t_nucleus}} cannot be {used} over WAN",
            unwritable, kind="temporary",
        ),
        check(
            "3", "nucleus_backlog", f"{{t_nucleus_queued}} files wait to be moved to nucleus {{t_nucleus}}, {reaches} {{limit}}",
            has_nucleus & ~unwritable & backlog,
            kind="temporary", numbers={"limit": of_nucleus},
        ),
        check(
            "3", "link_blocked", "the link to nucleus {t_nucleus} is blocked (closeness {l_closeness})",
            open_link & blocked,
        ),
        check(
            "3", "link_backlog", f"{{l_queued}} files wait on the link to nucleus {{t_nucleus}}, {reaches} {{limit}}",
            open_link & ~blocked & queued,
            kind="temporary", numbers={"limit": of_link},
        ),
    )  # fmt: skip


def inactive_check(rules: ProductionRules) -> Rule:
    """Return ``inactive``."""
    waiting = col("s_activated")
    if rules.inactive_counts_starting:
        waiting = waiting + col("s_starting")
    silent = (col("t_at_s") - col("s_laststart_s") > INACTIVE_S).fill_null(value=False)
    applies = col("t_urgent") | col("t_merging") | col("t_merges_output")
    applies = applies & ~spared(rules, "t_listed")
    return check(
        "2", "inactive",
        "no job has started there for {idle_h} h although {waiting} wait; urgent, merging and to be merged work avoids "
        "queues idle for more than 2 h",
        applies & silent & (waiting > 0),
        numbers={"waiting": waiting, "idle_h": (col("t_at_s") - col("s_laststart_s")) / HOUR_S},
        kind="temporary",
    )  # fmt: skip


def _exempt(rules: ProductionRules) -> tuple[pl.Expr, pl.Expr]:
    """Return where queues of the nucleus need not receive over WAN, and where they need not send."""
    if not rules.wan_asked_at_nucleus:
        return col("x_nucleus"), col("x_nucleus")
    complete = col("t_no_complete") | col("x_complete")
    receives = col("x_nucleus") & col("s_input_disk") & complete
    return receives, col("x_nucleus") & col("s_output_disk")


def storage_checks(rules: ProductionRules) -> tuple[Rule, ...]:
    """Return ``storage_space``, the four endpoint checks and ``source_down``; each needs the ones before passed.

    Of several endpoints one good one is enough, see :mod:`brokerlab.brokerage.inputs.queues`.

    Source: 002, ATLAS Production Job Brokerage: "DISK size check, free space in the local storage has to be over 200GB" and
        "Skip queues if their storage endpoints are blacklisted".
    """
    limit = setting_or("STORAGE_MIN_FREE_SIZE", MIN_FREE_GB)
    space = col("s_space")
    little = space < limit if rules.free_equal_passes else space <= limit
    must = "at least" if rules.free_equal_passes else "more than"
    little = little.fill_null(value=False)
    exempt_in, exempt_out = _exempt(rules)
    further = pl.lit(value=rules.code_only_checks)
    steps = (
        ("6", "storage_space", f"{{s_space}} GB are {rules.local_space} at its output endpoint, {must} {{limit}} GB must be", little),
        (
            "6", "read_lan_down", "none of its input endpoints can be read over LAN",
            ~col("s_read_lan"),
        ),
        (
            "6", "write_lan_down", "none of its output endpoints can be written over LAN",
            ~col("s_write_lan"),
        ),
        (
            "6", "write_wan_down", "none of its input endpoints can receive files over WAN",
            ~(col("s_write_wan") | exempt_in),
        ),
        (
            "6", "read_wan_down", "none of its output endpoints can send files over WAN",
            ~(col("s_read_wan") | exempt_out),
        ),
        (
            "6", "source_down", "the input can be read over LAN only where it is, and not from here",
            ~col("t_remote_source") & ~(exempt_in | exempt_out) & further,
        ),
    )  # fmt: skip
    result: list[Rule] = []
    before = pl.lit(value=False)
    for row, name, says, bad in steps:
        result.append(
            check(
                row, name, says, bad & ~before,
                kind="temporary", numbers={"limit": limit},
            )
        )  # fmt: skip
        before = before | bad
    return tuple(result)


def transferring_check(rules: ProductionRules) -> Rule:
    """Return ``transferring``.

    Source: 002, ATLAS Production Job Brokerage: "Too many transferring jobs: skip if transferring > max(transferring_limit,
        2 x running), where transferring_limit limit is defined by site or 2000 if undefined."
    """
    waiting, asked = col("s_transferring"), pl.lit(value=True)
    if rules.transferring_spares:
        waiting = waiting - col("s_transferring_unwritable")
        away = (col("p_storage_id") >= 0) & (col("p_storage_id") != col("t_nucleus_id"))
        asked = away & ~near()
    twice = col("s_running") * 2
    own = col("p_transferring_limit")
    limit = pl.when(twice > own).then(twice).otherwise(own)
    return check(
        "2", "transferring",
        "{waiting} jobs are transferring, more than {limit} (the queue's limit of {p_transferring_limit}, or twice its "
        "{s_running} running jobs)",
        asked & (waiting > limit), kind="temporary", numbers={"waiting": waiting, "limit": limit},
    )  # fmt: skip


def shortage_checks(rules: ProductionRules) -> tuple[Rule, ...]:
    """Return ``opportunistic_shortage`` and ``pledge_exceeded``.

    Source: 002, ATLAS Production Job Brokerage: "When WORK_SHORTAGE in gdpconfig is set to True, the following queues are
        skipped".
    """
    short = ~spared(rules, "t_single") & setting("WORK_SHORTAGE")
    cores = col("s_running_cores")
    if rules.shortage_counts_starting:
        cores = cores + col("s_starting_cores")
    return (
        check(
            "2", "opportunistic_shortage", "work is short and the queue is opportunistic (pledgedcpu -1)",
            (col("p_pledgedcpu") == -1) & short,
        ),
        check(
            "2", "pledge_exceeded",
            "work is short and {cores} cores are in use, more than the pledge of {p_pledgedcpu}",
            (col("p_pledgedcpu") > 0) & (cores > col("p_pledgedcpu")) & short,
            numbers={"cores": cores},
        ),
    )  # fmt: skip


def pilot_check(rules: ProductionRules) -> Rule:
    """Return ``no_pilot``.

    Source: 002, ATLAS Production Job Brokerage: "Skip queues without pilots for the last 3 hours."
    """
    silent, says = col("s_pilots") == 0, "no pilot has come for 3 h"
    if rules.pilots_excused:
        jumbo = col("t_jumbo") & col("q_jumbo")
        silent = silent & ~col("x_has_slots") & ~jumbo & ~col("t_pilot_exempt")
        says += " and no slots are set for share {t_queue_name}, resource type {t_resource_type}"
    return check("2", "no_pilot", says, silent & ~spared(rules, "t_listed"), kind="temporary")


@lru_cache(maxsize=64)  # made of many small expressions
def queue_checks(rules: ProductionRules) -> tuple[Rule, ...]:
    """Return the checks in the order in which they run."""
    return (
        *status_checks(rules),
        *link_checks(rules),
        opportunistic_check(rules),
        inactive_check(rules),
        *policy_checks(rules),
        diskio_check(per_core=rules.diskio_per_core, whole=rules.whole_numbers),
        *core_checks(rules),
        *software_checks(),
        *memory_checks(whole=rules.whole_numbers, base_alone=not rules.memory_by_unit),
        *disk_checks(rules),
        *storage_checks(rules),
        *time_checks(rules),
        *network_checks(rules),
        *event_service_checks(rules),
        transferring_check(rules),
        *shortage_checks(rules),
        *nucleus_checks(rules),
        pilot_check(rules),
    )
