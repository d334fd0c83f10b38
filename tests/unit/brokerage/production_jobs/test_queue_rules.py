"""What a queue is: status, policy, cores, software, memory, disk, connectivity, settings (rows 1, 2, 7, 9 to 20, 31 to 39).

Every test is made from the words that it quotes: of the page where a quotation is not marked, else of the chapter.
"""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.brokerage_toys import World
from tests.unit.brokerage.production_jobs.book import (
    ADDED,
    Found,
    added,
    ask,
    cases,
    one,
    parent,
    told,
)

SINGLE = {"site": "SITE"}
LISTED = {"site": "SITE,OTHER"}


def judged(task: dict[str, Any] | None = None, /, rules: Any = ADDED, **queue: Any) -> Found:
    """Ask about one task and one queue; the task's columns are positional."""
    return ask(one(task, **queue), rules)


def named(name: str, **task: Any) -> Found:
    return ask(World(**task).queue(name))


@cases(
    (named("ANALY_TEST"), "name_test"),
    (named("MyTestbed"), "name_test"),
    (named("contestant"), "name_test"),
    (named("ANALY_TES"), None),
    (ask(World(site="MyTestbed").queue("MyTestbed")), None),
    (ask(World().queue("MyTestbed"), "production"), None),
)
def test_queues_with_test_in_the_name_are_excluded(found: Found, expected: str | None) -> None:
    """Queues: "All queues while excluding any queue with case-insensitive 'test' in the name"."""
    assert found.check == expected


@cases(
    (judged(status="online"), None),
    *[
        (judged(status=status), "status_offline")
        for status in ("standby", "brokeroff", "test", None)
    ],
    *[(judged(SINGLE, status=status), None) for status in ("offline", "test", None)],
    (judged(rules="production", status="standby"), None),
    (judged(rules="production", status="brokeroff"), "status_offline"),
    (judged(rules="production", status=None), "status_offline"),
)
def test_the_status_is_online_unless_preassigned(found: Found, expected: str | None) -> None:
    """ "The queue status must be online unless the queues are pre-assigned." """
    assert found.check == expected


@cases(
    (judged({"currentpriority": 800}, pledgedcpu=-1), "opportunistic"),
    (judged({"currentpriority": 799}, pledgedcpu=-1), None),
    (judged({"currentpriority": 1, "use_scout": True}, pledgedcpu=-1), "opportunistic"),
    (judged({"currentpriority": None}, pledgedcpu=-1), None),
    (judged({"currentpriority": 800}, pledgedcpu=0), None),
    (judged({"currentpriority": 800}, pledgedcpu=None), None),
    (judged({"currentpriority": 800}, pledgedcpu=-2), None),
    (judged({"currentpriority": 800} | SINGLE, pledgedcpu=-1), None),
    (judged({"currentpriority": 800} | LISTED, pledgedcpu=-1), None),
)
def test_urgent_jobs_and_scouts_avoid_opportunistic_queues(
    found: Found, expected: str | None
) -> None:
    """ "If priority ≥ 800 or scout jobs, skip opportunistic queues (defined as queues with pledgedcpu=-1)." """
    assert found.check == expected


POLICY = "type=evgen:100%,type=simul:100%,type=any:0%"


@cases(
    (judged({"processingtype": "simul"}, fairsharepolicy=POLICY), None),
    (judged({"processingtype": "evgen"}, fairsharepolicy=POLICY), None),
    (judged({"processingtype": "pile"}, fairsharepolicy=POLICY), "zero_share"),
    (judged({"processingtype": "pile"}, fairsharepolicy=None), None),
    (judged({"processingtype": "pile"} | LISTED, fairsharepolicy=POLICY), "zero_share"),
    (judged({"processingtype": "pile", "currentpriority": 501}, fairsharepolicy="priority>500:0"), "zero_share"),
    (judged({"processingtype": "pile", "currentpriority": 500}, fairsharepolicy="priority>500:0"), None),
)  # fmt: skip
def test_zero_share(found: Found, expected: str | None) -> None:
    """ "For example type=evgen:100%,type=simul:100%,type=any:0%, in this case, only evgen or simul jobs can be assigned as others have zero shares." """
    assert found.check == expected


@cases(
    *[
        (judged({"processingtype": "pile", "gshare": share}, fairsharepolicy=POLICY), None)
        for share in ("test", "validation")
    ],
    (judged({"processingtype": "pile", "gshare": "validation", "site": "SITE"}, fairsharepolicy=POLICY), None),
    (
        judged(
            {"processingtype": "pile", "gshare": "test", "site": "SITE", "prodsourcelabel": "user"},
            fairsharepolicy=POLICY,
        ),
        "zero_share",
    ),
)  # fmt: skip
def test_zero_share_leaves_test_work_alone(found: Found, expected: str | None) -> None:
    """Chapter, row 9: "work queue name not `test`/`validation`, or site_preassigned and label not `managed`"."""
    assert found.check == expected


JUMBO = {"usejumbo": "W", "n_ready_events": 1000}


@cases(
    (judged(catchall="useJumboJobs"), "jumbo_only"),
    (judged({"usejumbo": "D"}, catchall="useJumboJobs"), "jumbo_only"),
    *[(judged({"usejumbo": letter}, catchall="useJumboJobs"), None) for letter in "WRPL"],
    (judged(SINGLE, catchall="useJumboJobs"), None),
    (judged(LISTED, catchall="useJumboJobs"), "jumbo_only"),
    (judged(JUMBO, catchall="useJumboJobs,minEventsForJumbo=1000"), None),
    (judged(JUMBO, catchall="useJumboJobs,minEventsForJumbo=1001"), "jumbo_few_events"),
    (judged(JUMBO, catchall="minEventsForJumbo=1001"), None),
    (judged(JUMBO | SINGLE, catchall="useJumboJobs,minEventsForJumbo=1001"), None),
    (judged({"usejumbo": "W"}, catchall="useJumboJobs,minEventsForJumbo=1001"), None),
)
def test_jumbo(found: Found, expected: str | None) -> None:
    """Chapter, rows 10 and 11: "useJumboJobs in catchall ... task not jumbo"; "minEventsForJumbo > ready events"."""
    assert found.check == expected


def writing(
    diskio: int | None,
    usage: float | None,
    *,
    cores: int | None = 8,
    limit: int = 500,
    **queue: Any,
) -> Found:
    """Ask about a task of ``diskio`` kB/s where running jobs use ``usage`` kB/s per core."""
    world = one({"diskio": diskio, "corecount": cores, "site": "SITE"}, **queue)
    world.add("diskio_usage", computingsite="SITE", diskio_per_core=usage)
    return ask(world, MAX_DISKIO_DEFAULT=limit)


@cases(
    (writing(8 * 501, 501.0), "diskio_overload"),
    (writing(8 * 501, 500.0), None),
    (writing(8 * 501 - 1, 501.0), None),
    (writing(501, 501.0, cores=1), "diskio_overload"),
    (writing(501, 501.0, cores=None), "diskio_overload"),
    (writing(8 * 501, 501.0, corecount=0), "diskio_overload"),
    (writing(500, 501.0, cores=1), None),
    (writing(None, 501.0), None),
    (writing(0, 501.0), None),
    (writing(8 * 501, None), None),
    (writing(8 * 501, 501.0, maxdiskio=600), None),
    (writing(8 * 501, 501.0, maxdiskio=400), "diskio_overload"),
    (writing(8 * 501, 501.0, maxdiskio=0), "diskio_overload"),
    (writing(8 * 501, 501.0, limit=0), None),
)
def test_disk_traffic(found: Found, expected: str | None) -> None:
    """ "when the average diskIO per core for running jobs in a queue exceeds the limit, the next cycles of job brokerage will exclude tasks with diskIO higher than the defined limit"; "It is possible to overwrite the limit for a particular queue through the maxDiskIO (in kB/sec per core) field"."""
    assert found.check == expected


def cored(asked: int | None, has: int | None, /, **task: Any) -> Found:
    return judged({"corecount": asked} | task, corecount=has)


MERGE = {"is_merging": True}


@cases(
    (cored(8, 8), None),
    (cored(8, 2), None),
    (cored(2, 8), None),
    (cored(8, 1), "core_count"),
    (cored(8, 0), "core_count"),
    (cored(8, None), "core_count"),
    (cored(1, 1), None),
    (cored(None, 1), None),
    (cored(1, 0), None),
    (cored(1, None), None),
    (cored(1, 2), "core_count"),
    (cored(None, 2), "core_count"),
    (cored(0, 8), None),
    (cored(0, 1), None),
    (cored(0, 0), None),
    (cored(0, 1, currentpriority=899), None),
    (cored(0, 1, currentpriority=900), "core_count"),
    (cored(0, 1, use_scout=True), "core_count"),
    (cored(0, 2, currentpriority=900), None),
    (cored(8, 8, mergecorecount=1), None),
    (cored(8, 8, mergecorecount=1, **MERGE), "core_count"),
    (cored(8, 1, mergecorecount=1, **MERGE), None),
    (cored(8, 1, **MERGE), "core_count"),
    (cored(1, 1, mergecorecount=0, **MERGE), None),
    (cored(1, 8, mergecorecount=0, **MERGE), None),
    (cored(8, 1, **SINGLE), None),
    (cored(8, 1, **LISTED), "core_count"),
)
def test_core_count(found: Found, expected: str | None) -> None:
    """ "CPU Core count matching amount site.coreCount, task.coreCount, and maxCoreCount of the task if defined." Chapter, row 13: "n > 1, or n = 0 with (prio >= 900 or scout): queue needs > 1 core; n = 0 otherwise: any; else: queue needs 0 or 1"."""
    assert found.check == expected


@cases(
    (judged({"maxcorecount": 8}), None),
    (judged({"maxcorecount": 7}), "core_count_max"),
    (judged({"maxcorecount": 0}), None),
    (judged({"maxcorecount": 7} | SINGLE), None),
    (judged({"maxcorecount": 7} | LISTED), "core_count_max"),
)
def test_core_count_max(found: Found, expected: str | None) -> None:
    """ "maxCoreCount of the task if defined"."""
    assert found.check == expected


PLATFORM = "x86_64-el9-gcc13-opt"
RELEASE = {"transhome": "Athena-25.0.1", "architecture": PLATFORM}
PUBLISHED = {
    "cvmfs": ["atlas"], "containers": [], "cmtconfigs": [PLATFORM], "tags": [],
    "architectures": [{"type": "cpu", "arch": ["x86_64"]}],
}  # fmt: skip
PATTERN = {"transhome": "Athena-25.0.1", "architecture": "x86_64-(el9|el8)-gcc13-opt"}


def software(task: dict[str, Any], releases: list[str] | None = None, **published: Any) -> Found:
    world = one(task, releases=releases or ["AUTO"])
    return ask(world.add("sw_tags", panda_queue="SITE", data=json.dumps(PUBLISHED | published)))


@cases(
    (software(RELEASE), None),
    (software(RELEASE, cmtconfigs=["x86_64-centos7-gcc8-opt"]), "software_hardware"),
    (software(RELEASE, ["ANY"], cmtconfigs=[]), None),
    (software(RELEASE, ["other"]), "software_hardware"),
    (software(RELEASE | {"transhome": None}, ["other"]), None),
    (software(RELEASE | SINGLE, ["other"]), "software_hardware"),
    (judged(RELEASE, releases=None), "software_hardware"),
    (software(RELEASE | {"architecture": f"{PLATFORM}#aarch64"}), "software_hardware"),
    (software(RELEASE | {"architecture": f"{PLATFORM}&nvidia"}), "software_hardware"),
    (software(PATTERN), None),
    (software(PATTERN, containers=["any"], cmtconfigs=[]), "platform_unresolved"),
    (software(PATTERN | SINGLE, containers=["any"], cmtconfigs=[]), "platform_unresolved"),
)
def test_software_and_hardware(found: Found, expected: str | None) -> None:
    """ "Availability of ATLAS release/cache. This check is skipped when queues have ANY in the releases field in CRIC." "The regexp in sw_platform is resolved to a relevant string in the cmtconfigs list of the queue." """
    assert found.check == expected


@told(found=software(PATTERN))
def test_the_platform_resolved_goes_with_the_candidate(found: Found) -> None:
    """ "The regexp in sw_platform is resolved to a relevant string in the cmtconfigs list of the queue." """
    assert found.only["platform"] == PLATFORM


def remembered(has: float | None, of: str = "maxrss", /, *, cores: int = 8, **task: Any) -> Found:
    return judged(task, corecount=cores, **{of: has})


MB_UNIT = {"ramcount": 16000, "ramcountunit": "MB"}


@cases(
    (remembered(14_400), None),  # 2000 MB x 8 cores x 0.9
    (remembered(14_399), "memory_max"),
    (remembered(14_407, ramcount=2001), None),  # 14,407.2 is cut
    (remembered(14_406, ramcount=2001), "memory_max"),
    (remembered(15_300, baseramcount=1000), None),
    (remembered(15_299, baseramcount=1000), "memory_max"),
    (remembered(14_400, baseramcount=None), None),
    (remembered(14_399, ramcountunit="MBPerCoreFixed"), "memory_max"),
    (remembered(14_400, **MB_UNIT), None),
    (remembered(14_399, **MB_UNIT), "memory_max"),
    (remembered(14_400, baseramcount=1000, **MB_UNIT), None),
    (remembered(14_400, ramcount=16000, ramcountunit=None), None),
    (remembered(14_399, ramcount=16000, ramcountunit=None), "memory_max"),
    (remembered(14_400, chunk_ramcount=2001), "memory_max"),
    (remembered(14_400, chunk_ramcount=1999), None),
    (remembered(14_400, ramcount=None, chunk_ramcount=2000), None),
    (remembered(14_399, ramcount=0, chunk_ramcount=2000), "memory_max"),
    (remembered(1, ramcount=None), None),
    (remembered(0), None),
    (remembered(None), None),
    (remembered(1800, cores=0, corecount=0), None),
    (remembered(1799, cores=0, corecount=0), "memory_max"),
    (remembered(14_399, **SINGLE), "memory_max"),
)
def test_memory_at_most(found: Found, expected: str | None) -> None:
    """ "(baseRamCount + ramCount × coreCount) × compensation where compensation is 0.9 ... Queues are skipped if the estimated memory usage is not included in the acceptable memory ranges." """
    assert found.check == expected


@cases(
    (remembered(14_400, "minrss"), None),
    (remembered(14_401, "minrss"), "memory_min"),
    (remembered(14_408, "minrss", ramcount=2001), "memory_min"),
    (remembered(0, "minrss"), None),
    (remembered(None, "minrss"), None),
    (remembered(99_000, "minrss", ramcount=None), None),
)
def test_memory_at_least(found: Found, expected: str | None) -> None:
    """ "avoiding sending jobs to high-memory queues when their expected memory usage is close to the lower limit"."""
    assert found.check == expected


@cases(
    (remembered(1800, **MERGE, mergeramcount=1000), None),
    (remembered(1799, **MERGE, mergeramcount=1000), "memory_max"),
    (remembered(2699, **MERGE, mergeramcount=3000), "memory_max"),
    (remembered(2700, **MERGE, mergeramcount=3000, baseramcount=500), None),
    (remembered(3599, **MERGE, mergeramcount=3000, chunk_ramcount=4000), "memory_max"),
    (remembered(450, **MERGE, chunk_ramcount=500), None),
    (remembered(449, **MERGE, chunk_ramcount=500), "memory_max"),
    (remembered(1, **MERGE), None),
)
def test_memory_of_merging(found: Found, expected: str | None) -> None:
    """Chapter 4.2: "merge chunk: max(mergeramcount, chunk.ramcount, 2000), or chunk.ramcount if mergeramcount is falsy"."""
    assert found.check == expected


ONLY = {"allowinputlan": "only"}


@cases(
    (judged(ONLY), "direct_access"),
    (judged(ONLY, direct_access_lan=True), None),
    (judged(ONLY, direct_access_lan=None), "direct_access"),
    (judged(ONLY, maxinputsize=-1), None),
    (judged(ONLY, maxinputsize=None), "direct_access"),
    (judged(ONLY | MERGE), None),
    (judged(ONLY | SINGLE), "direct_access"),
    (judged({"allowinputlan": "use"}), None),
)
def test_direct_access(found: Found, expected: str | None) -> None:
    """ "Skip queues if they don't support direct access to read input files from the local storage, although the task is configured to use only direct access." """
    assert found.check == expected


def scratch(
    has: float | None,
    /,
    *,
    rules: Any = ADDED,
    queue: dict[str, Any] | None = None,
    **task: Any,
) -> Found:
    """Ask about a working directory of ``has`` MB; the job needs 100 MB of input, 1500 of output, 300 of work."""
    return judged(task, rules, maxwdir=has, **(queue or {}))


DIRECT = {"direct_access_lan": True}
ASKING = added(direct_asks_task=True)
ANY_CORES = {"corecount": 0}


@cases(
    (scratch(1900), "scratch_disk"),
    (scratch(1901), None),
    (scratch(0), None),
    (scratch(None), None),
    (scratch(1900, workdiskcount=None), "scratch_disk"),
    (scratch(1901, workdiskcount=None), None),
    (scratch(1900, workdiskcount=300), "scratch_disk"),
    (scratch(1901, workdiskcount=301), "scratch_disk"),
    (scratch(1902, workdiskcount=301), None),
    (scratch(1901, workdiskcount=310_000, workdiskunit="kB"), "scratch_disk"),
    (scratch(2625, workdiskcount=1, workdiskunit="GB"), None),
    (scratch(2624, workdiskcount=1, workdiskunit="GB"), "scratch_disk"),
    (scratch(2400, outdiskcount=2048), "scratch_disk"),  # 2,000 MB of output
    (scratch(2401, outdiskcount=2048), None),
    (scratch(2400, outdiskcount=20, outdiskunit="MB"), "scratch_disk"),  # x 100 MB of input
    (scratch(2401, outdiskcount=20, outdiskunit="MB"), None),
    (scratch(1901, outdiskcount=-2048), None),
    (scratch(1901, outdiskcount=None), None),
    (scratch(1900, atom_size=100 * 1024**2 - 1), None),  # whole MB
    (scratch(1801, atom_size=None), None),
)
def test_scratch_disk(found: Found, expected: str | None) -> None:
    """ "inputDiskCount + max (1.5 GB, outDiskCount × nEvents or outDiskCount × inputDiskCount) + max (300 MB, workDiskCount)"; "maxwdir ... must be larger than the expected disk usage"."""
    assert found.check == expected


@cases(
    (scratch(1801, queue={"maxinputsize": -1}), None),
    (scratch(1800, queue={"maxinputsize": -1}), "scratch_disk"),
    (scratch(1801, queue=DIRECT, allowinputlan="use"), None),
    (scratch(1801, queue=DIRECT, allowinputlan="only"), None),
    (scratch(1801, rules=ASKING, queue=DIRECT), "scratch_disk"),
    (scratch(1801, queue=DIRECT), None),
    (scratch(1801, allowinputlan="use"), "scratch_disk"),
    (
        scratch(1801, rules=ASKING, queue=DIRECT, allowinputlan="use", uselocalio=True),
        "scratch_disk",
    ),
    (scratch(1801, queue=DIRECT, allowinputlan="use", uselocalio=True), None),
    (scratch(1801, queue={"maxinputsize": -1}, uselocalio=True), None),
    (scratch(1801, rules=ASKING, queue={"maxinputsize": -1}, **MERGE), "scratch_disk"),
    (scratch(1801, queue={"maxinputsize": -1}, **MERGE), None),
)
def test_input_read_in_place_takes_no_scratch(found: Found, expected: str | None) -> None:
    """ "inputDiskCount is zero if the queues are configured to read input files directly from the local storage." """
    assert found.check == expected


@cases(
    (scratch(8 * 1901, **ANY_CORES), None),
    (scratch(8 * 1900, **ANY_CORES), "scratch_disk"),
    (scratch(1901, **ANY_CORES, queue={"corecount": 0}), None),
    (scratch(8 * 1900, corecount=1, site="SITE"), "scratch_disk"),
    (scratch(8 * 1900, corecount=None, site="SITE"), "scratch_disk"),
    (scratch(1901, corecount=8), None),
    (scratch(1901, **ANY_CORES, eventservice=1), None),
    (scratch(1900, **ANY_CORES, eventservice=1), "scratch_disk"),
)
def test_a_single_core_job_gets_its_share_of_maxwdir(found: Found, expected: str | None) -> None:
    """ "maxwdir is divided by coreCount at each queue"; chapter J9: "only for single-core tasks (whole maxwdir for multi-core)"."""
    assert found.check == expected


def connected(
    wants: str | None, has: str | None, /, *, stack: str | None = None, **task: Any
) -> Found:
    return judged({"ipconnectivity": wants, "ipstack": stack} | task, wnconnectivity=has)


@cases(
    *[(connected(wants, "full"), None) for wants in ("full", "http", "none", None)],
    (connected("full", "http"), "connectivity"),
    (connected("http", "http"), None),
    (connected("none", "http"), None),
    (connected("full", "none"), "connectivity"),
    (connected("http", "none"), "connectivity"),
    (connected("none", "none"), None),
    (connected(None, "none"), None),
    (connected("http", None), "connectivity"),
    (connected("http", "#IPv6"), "connectivity"),
    (connected("http", "full#IPv6"), None),
    (connected("full", None, **SINGLE), None),
    (connected("full", None, **LISTED), "connectivity"),
)
def test_connectivity(found: Found, expected: str | None) -> None:
    """ "full: to accept any tasks since outbound network connectivity is fully available, http: to accept tasks with network_connectivity=http or none since only http access is available, or none: to accept tasks with network_connectivity=none"."""
    assert found.check == expected


@cases(
    (connected(None, "full#IPv4", stack="IPv4"), None),
    (connected(None, "full#IPv6", stack="IPv4"), "ip_stack"),
    (connected(None, "full", stack="IPv6"), "ip_stack"),
    (connected(None, None, stack="IPv6"), "ip_stack"),
    (connected(None, "full#IPv6#x", stack="IPv6"), "ip_stack"),
    (connected(None, "full#IPv4"), None),
    (connected("full", "http#IPv6", stack="IPv4"), "connectivity"),
    (connected(None, "full#IPv6", stack="IPv4", **SINGLE), None),
    (connected(None, "full#IPv6", stack="IPv4", **LISTED), "ip_stack"),
)
def test_ip_stack(found: Found, expected: str | None) -> None:
    """ "IPv4: to accept tasks with ip_stack=IPv4, IPv6: to accept tasks with ip_stack=IPv6, or '' (unset): to accept tasks without specifying ip_stack." """
    assert found.check == expected


STRICT = added(ip_stack_strict=True)


@cases(
    (ask(one({"ipstack": "IPv4"}, wnconnectivity="full#IPv4"), STRICT), None),
    (ask(one({"ipstack": "IPv6"}, wnconnectivity="full#IPv4"), STRICT), "ip_stack"),
    (ask(one({"ipconnectivity": "full"}, wnconnectivity="full#IPv4"), STRICT), "ip_stack"),
    (ask(one({"ipconnectivity": "full"}, wnconnectivity="full"), STRICT), None),
    (ask(one({"ipstack": "IPv4"}, wnconnectivity="full"), STRICT), "ip_stack"),
    (ask(one(wnconnectivity="full#IPv4"), STRICT), None),
    (ask(one(SINGLE, wnconnectivity="full#IPv4"), STRICT), None),
    (ask(one(wnconnectivity="full"), STRICT), None),
    (ask(one(wnconnectivity=None), STRICT), None),
)
def test_ip_stack_read_strictly(found: Found, expected: str | None) -> None:
    """ "wnconnectivity of the queue must be consistent if the task specifies ipConnectivity"; "'' (unset): to accept tasks without specifying ip_stack"."""
    assert found.check == expected


ES = {"eventservice": 1}


@cases(
    (judged(ES, jobseed="std"), "event_service_std"),
    (judged(ES, jobseed=None), "event_service_std"),
    (judged({"eventservice": 2}, jobseed="std"), "event_service_std"),
    (judged({"eventservice": 3}, jobseed="std"), None),
    (judged(ES | {"usejobcloning": True}, jobseed="std"), None),
    (judged(ES, jobseed="es"), None),
    (judged(ES, jobseed="all"), None),
    (judged(ES | {"currentpriority": 899}, jobseed="eshigh"), "event_service_prio"),
    (judged(ES | {"currentpriority": 900}, jobseed="eshigh"), None),
    (judged(ES | {"use_scout": True}, jobseed="eshigh"), None),
    (judged(jobseed="es"), "event_service_only"),
    (judged(ES | {"usejobcloning": True}, jobseed="es"), "event_service_only"),
    (judged(jobseed="eshigh"), None),
    (judged(jobseed="std"), None),
    (judged(jobseed=None), None),
    (judged(ES | SINGLE, jobseed="std"), None),
    (judged(SINGLE, jobseed="es"), None),
    (judged(ES | LISTED, jobseed="std"), "event_service_std"),
)
def test_event_service(found: Found, expected: str | None) -> None:
    """ "Settings for event service". Chapter, rows 33 to 35: "es and jobseed std"; "es, jobseed eshigh and not (prio >= 900 or scout)"; "not es, jobseed es"."""
    assert found.check == expected


def split(task: dict[str, Any], *cores: int) -> Found:
    world = World(**({"corecount": 0} | task))
    return ask(parent(world, "SITE", *[{"corecount": number} for number in cores]))


@cases(
    (split(ES, 1, 8), {"SITE/0": "event_service_child", "SITE/1": None}),
    (split({}, 1, 8), {"SITE/0": None, "SITE/1": None}),
    (split(ES | SINGLE, 1), {"SITE/0": None}),
    (judged(ES | ANY_CORES, corecount=1), {"SITE": None}),
)
def test_event_service_wants_pseudo_queues_of_several_cores(
    found: Found, expected: dict[str, str | None]
) -> None:
    """Chapter, row 36: "es, pseudo-queue with corecount 1"; "not site_preassigned"."""
    assert found.checks() == expected


def around_nucleus(**task: Any) -> Found:
    """Ask about a queue of the nucleus, one that writes where that one reads, and one elsewhere."""
    world = World(**task).queue("AT", site="NUC").queue("SHARING").queue("ELSEWHERE")
    place = {"panda_queue": "AT", "direction": "input", "ddm_endpoint_name": "SHARING_DATADISK"}
    return ask(world.add("queue_endpoints", **place))


@pytest.mark.parametrize("found", [around_nucleus(t1weight=weight) for weight in (-1, -7)])
def test_negative_t1weight_keeps_the_queues_of_the_nucleus(found: Found) -> None:
    """ "Use only the queues associated with the nucleus if the task sets t1Weight=-1 and normal jobs are being generated." """
    assert found.checks() == {"AT": None, "SHARING": None, "ELSEWHERE": "t1_weight"}


@pytest.mark.parametrize(
    "found",
    [around_nucleus(t1weight=weight) for weight in (None, 0, 1)]
    + [around_nucleus(t1weight=-1, is_merging=True)],
)
def test_other_work_may_leave_the_nucleus(found: Found) -> None:
    """The same: "normal jobs", that is not merging."""
    assert found.checks() == {"AT": None, "SHARING": None, "ELSEWHERE": None}


def two_at_nucleus(first: str, /, site: str | None = None, **shared: Any) -> Found:
    """Ask about SHARED, whose storage SECOND reads, and OTHER, whose input storage AT reads, but not its output.

    Args:
        first: The first queue of the nucleus, AT or SECOND.
        site: List of queues.
        **shared: Columns of SHARED.
    """
    world = World(t1weight=-1, site=site).queue("AT", site="NUC").queue("SECOND", site="NUC")
    world.queue("SHARED", **shared).queue("OTHER").endpoint("OUT_DISK")
    output = {"panda_queue": "OTHER", "direction": "output"}
    world.change("queue_endpoints", output, ddm_endpoint_name="OUT_DISK")
    for reader, disk in (("AT", "OTHER_DATADISK"), ("SECOND", "SHARED_DATADISK")):
        place = {"panda_queue": reader, "direction": "input", "ddm_endpoint_name": disk}
        world.add("queue_endpoints", **place)
    return ask(world.change("nuclei", queues=[first]))


EVERY = "AT,SECOND,SHARED,OTHER"


@cases(
    (two_at_nucleus("SECOND"), None),
    (two_at_nucleus("AT"), "t1_weight"),
    (two_at_nucleus("SECOND", EVERY), None),
    (two_at_nucleus("SECOND", EVERY, status="offline"), "t1_weight"),
    (two_at_nucleus("SECOND", EVERY, type="analysis"), "t1_weight"),
)
def test_what_shares_the_storage_of_the_nucleus(found: Found, expected: str | None) -> None:
    """Chapter 4.6: "sharing queues := online queues whose default output endpoint is among the inputs of the nucleus's first queue"."""
    near = {"AT": None, "SECOND": None, "OTHER": "t1_weight"}
    assert found.checks() == near | {"SHARED": expected}


@cases(
    (judged({"iointensity": 500}, max_io_intensity=500), None),
    (judged({"iointensity": 501}, max_io_intensity=500), "io_intensity_max"),
    (judged({"iointensity": 501}, max_io_intensity=None), None),
    (judged({"iointensity": 0}, max_io_intensity=-1), None),
    (judged({"iointensity": None}, max_io_intensity=-1), None),
    (judged({"iointensity": 501} | MERGE, max_io_intensity=500), None),
    (judged({"iointensity": 501} | SINGLE, max_io_intensity=500), "io_intensity_max"),
)
def test_io_intensity_of_a_queue(found: Found, expected: str | None) -> None:
    """Chapter, row 39: "iointensity > max_io_intensity of the queue"; "iointensity truthy, not merging"."""
    assert found.check == expected
