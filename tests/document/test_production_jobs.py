"""Cases of the section on the production job brokerage and of that on the network weight (002), worked out by hand."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

import pytest

from brokerlab import brokerage
from brokerlab.brokerage.production_jobs.brokerage import decide
from brokerlab.matching.catchall import parse_connectivity
from brokerlab.units import GB, MB
from tests.brokerage_toys import AT, World, reasons
from tests.unit.brokerage.production_jobs.book import (
    PUBLISHED,
    Found,
    ask,
    cases,
    levelled,
    one,
    parent,
    told,
)  # fmt: skip

NUC_DISK = {"ddm_endpoint_name": "NUC_DATADISK"}
DISK = {"ddm_endpoint_name": "SITE_DATADISK"}
SCOUT, MERGING = {"use_scout": True}, {"is_merging": True}


def page(world: World, **settings: Any) -> Found:
    """Ask under the page's rules."""
    return ask(world, "document", **settings)


def deployed(world: World, **settings: Any) -> Found:
    """Ask under the rules of the deployed code."""
    return ask(world, "production", **settings)


def near(value: float) -> Any:
    return pytest.approx(value, rel=1e-12)


# ---- candidates


@cases(
    (
        page(World().queue("CERN_Test1").queue("MYTEST").queue("CERN_PROD")),
        {"CERN_PROD": None, "CERN_Test1": "name_test", "MYTEST": "name_test"},
    )
)
def test_test_queues_are_no_candidates(found, expected):
    """002, ATLAS Production Job Brokerage: All queues while excluding any queue with case-insensitive ‘test’ in the
    name.
    """
    assert found.checks() == expected


@cases((page(World(site="A,B").queue("A").queue("B").queue("C")), {"A": None, "B": None}))
def test_a_list_of_queues(found, expected):
    """002, ATLAS Production Job Brokerage: A list of pre-assigned queues."""
    assert found.checks() == expected


@cases(
    (page(parent(World(site="UNIFIED"), "UNIFIED", {}, {})), {"UNIFIED/0": None, "UNIFIED/1": None})
)
def test_unified_queues_are_resolved(found, expected):
    """002, ATLAS Production Job Brokerage: Unified queues are resolved to pseudo-queues."""
    assert found.checks() == expected


@cases(
    (
        page(
            one().data(10, here={"SITE": 10}).change("replicas", found=0), MAX_MISSING_INPUT_FILES=0
        ),
        None,
    )
)
def test_input_that_is_complete_nowhere(found, expected):
    """production-jobs.md 1: whether the input is complete anywhere is not asked."""
    assert found.check == expected


def merging(hours: float) -> World:
    since = {"frozentime": AT - timedelta(hours=hours), "master_modificationtime": AT}
    return World(**MERGING, preassigned_site="A", **since).queue("A").queue("B")


@cases(
    (page(merging(23.9)), {"A"}),
    (page(merging(24)), {"A", "B"}),
    (page(merging(100)), {"A", "B"}),
)
def test_merge_jobs_are_freed_after_a_day(found, expected):
    """002, ATLAS Production Job Brokerage: Although merge jobs are pre-assigned to avoid transferring small pre-merged
    files, the pre-assignment is ignored if the relevant queues have been skipped for 24 hours.

    A task without queues waits since ``frozentime``; when its input changed says nothing.
    """
    assert set(found.checks()) == expected


# ---- checks: status, links, activity, pledges


@cases(
    (page(one(status="online")), None),
    *(
        (page(one(task, status=status)), expected)
        for status in ("standby", "test", "brokeroff", "offline", None)
        for task, expected in (({}, "status_offline"), ({"site": "SITE"}, None))
    ),
)
def test_queues_must_be_online(found, expected):
    """002, ATLAS Production Job Brokerage: The queue status must be online unless the queues are pre-assigned."""
    assert found.check == expected


@cases(
    (page(one().link("SITE", closeness=-1)), "link_blocked"),
    (page(one().link("SITE", closeness=0)), None),
)
def test_blocked_links(found, expected):
    """002, ATLAS Production Job Brokerage: Skip queues if their links to the nucleus are blocked."""
    assert found.check == expected


@cases(
    (page(one().link("SITE", queued=100), NQUEUED_SAT_CAP=100), None),
    (page(one().link("SITE", queued=101), NQUEUED_SAT_CAP=100), "link_backlog"),
)
def test_files_queued_on_a_link(found, expected):
    """002, ATLAS Production Job Brokerage: Skip queues if over the NQUEUED_SAT_CAP(defined in gdpconfig) files queued on
    their links to the nucleus.
    """
    assert found.check == expected


def test_storage_of_queues_that_is_not_known():
    """002, ATLAS Production Job Brokerage: For sattelite queues in addition:

    Which queues are those of satellites is unknown without the table: checks that need it are named.
    """
    tables = one().link("SITE", queued=10_000).frames()
    del tables["queue_storage_site"]
    found = decide(tables)
    assert reasons(found) == {"SITE": None}
    named = ("nucleus_unwritable", "link_blocked", "link_backlog")
    assert found.world.unasked["queue_storage_site"] == named


@cases(
    *(
        (
            page(
                World().queue("FAR").queue("HOME", site="NUC").link("ELSEWHERE", queued=queued),
                NQUEUED_NUC_CAP_FOR_JOBS=1000,
            ),
            expected,
        )
        for queued, expected in ((1000, None), (1001, "nucleus_backlog"))
    )
)
def test_files_queued_for_a_nucleus(found, expected):
    """002, ATLAS Production Job Brokerage: Skip all queues if the number of files to be aggregated to the nucleus is
    larger than NQUEUED_NUC_CAP_FOR_JOBS(defined in gdpconfig).

    All: those of the nucleus too.
    """
    assert found.checks() == {"FAR": expected, "HOME": expected}


def started(hours: float, task: dict[str, Any], **jobs: int) -> World:
    return one(task, **jobs).change("site_activity", laststart=AT - timedelta(hours=hours))


@cases(
    *(
        (page(world), expected)
        for task in (
            {"currentpriority": 800},
            SCOUT,
            MERGING,
            {"mergeoutput": True},
            {"site": "SITE", **SCOUT},
        )
        for world, expected in (
            (started(2.01, task), "inactive"),
            (started(2, task), None),
            (started(2.01, task, activated=0).jobs("SITE", starting=5), None),
        )
    ),
    (page(started(9, {"currentpriority": 799})), None),
)
def test_inactive_queues(found, expected):
    """002, ATLAS Production Job Brokerage: If priority ≥ 800 or scout jobs or merging jobs or pre-merged jobs, skip
    inactive queues (where no jobs got started in the last 2 hours although activated jobs had been there).
    """
    assert found.check == expected


@cases(
    *(
        (page(one(task, pledgedcpu=pledged)), expected)
        for task in ({"currentpriority": 800}, SCOUT, {"currentpriority": 800, "site": "SITE"})
        for pledged, expected in ((-1, "opportunistic"), (0, None))
    ),
    (page(one({"currentpriority": 799}, pledgedcpu=-1)), None),
)
def test_opportunistic_queues(found, expected):
    """002, ATLAS Production Job Brokerage: If priority ≥ 800 or scout jobs, skip opportunistic queues (defined as queues
    with pledgedcpu=-1).
    """
    assert found.check == expected


# ---- checks: input to move, disk traffic


def missing(files: int, size: int = GB, **task: Any) -> World:
    """Return a queue that holds none of so many files."""
    return one({"iointensity": 201} | task).data(files, size=size)


@cases(
    (page(missing(4), SIZE_CUTOFF_TO_MOVE_INPUT=5), None),
    (page(missing(5), SIZE_CUTOFF_TO_MOVE_INPUT=5), "input_to_move"),
    (page(missing(5, iointensity=200), SIZE_CUTOFF_TO_MOVE_INPUT=5), None),
    (page(missing(5, iointensity=300), IO_INTENSITY_CUTOFF=300), None),
)
def test_size_of_missing_input(found, expected):
    """002, ATLAS Production Job Brokerage: If the task ioIntensity is larger than IO_INTENSITY_CUTOFF(defined in
    gdpconfig), the total size of missing files must be less than SIZE_CUTOFF_TO_MOVE_INPUT(defined in gdpconfig)
    """
    assert found.check == expected


@cases(
    (page(missing(29, 1), NUM_CUTOFF_TO_MOVE_INPUT=30), None),
    (page(missing(30, 1), NUM_CUTOFF_TO_MOVE_INPUT=30), "input_to_move"),
)
def test_number_of_missing_files(found, expected):
    """002, ATLAS Production Job Brokerage: and the number of missing files must be less than
    NUM_CUTOFF_TO_MOVE_INPUT(defined in gdpconfig).
    """
    assert found.check == expected


@cases(
    *(
        (page(missing(20, **task)), "input_to_move")
        for task in ({}, MERGING, {"eventservice": 1}, {"site": "SITE"})
    )
)
def test_a_queue_that_needs_more_input_is_skipped(found, expected):
    """002, ATLAS Production Job Brokerage: I.e., if a queue needs to transfer more input files, the queue is skipped.

    Whatever other queues need, and for every task.
    """
    assert found.check == expected


def busy_disks(usage: float, diskio: float, **queue: Any) -> World:
    world = one({"diskio": diskio, "corecount": 1}, corecount=1, **queue)
    return world.add("diskio_usage", computingsite="SITE", diskio_per_core=usage)


@cases(
    (page(busy_disks(500.0, 500), MAX_DISKIO_DEFAULT=400), "diskio_overload"),
    (page(busy_disks(500.0, 500), MAX_DISKIO_DEFAULT=500), None),
)
def test_a_general_limit_of_disk_traffic(found, expected):
    """002, ATLAS Production Job Brokerage: There is a general MAX_DISKIO_DEFAULT limit in gdpconfig."""
    assert found.check == expected


@cases(
    (page(busy_disks(500.0, 500, maxdiskio=300), MAX_DISKIO_DEFAULT=900), "diskio_overload"),
    (page(busy_disks(500.0, 500, maxdiskio=900), MAX_DISKIO_DEFAULT=300), None),
)
def test_a_queue_may_have_its_own_limit(found, expected):
    """002, ATLAS Production Job Brokerage: It is possible to overwrite the limit for a particular queue through the
    maxDiskIO(in kB/sec per core) field in CRIC.
    """
    assert found.check == expected


@cases(
    *(
        (page(busy_disks(usage, diskio), MAX_DISKIO_DEFAULT=400), expected)
        for usage, diskio, expected in (
            (401.0, 401, "diskio_overload"),
            (400.0, 401, None),
            (401.0, 400, None),
        )
    )
)
def test_traffic_of_the_queue_and_of_the_task(found, expected):
    """002, ATLAS Production Job Brokerage: The limit is applied in job brokerage: when the average diskIO per core for
    running jobs in a queue exceeds the limit, the next cycles of job brokerage will exclude tasks with diskIO higher
    than the defined limit to progressively get the diskIO under the threshold.
    """
    assert found.check == expected


def busy_disk_of_eight() -> World:
    busy = one({"diskio": 401})
    return busy.add("diskio_usage", computingsite="SITE", diskio_per_core=401.0)


@cases(
    (page(busy_disk_of_eight(), MAX_DISKIO_DEFAULT=400), "diskio_overload"),
    (deployed(busy_disk_of_eight(), MAX_DISKIO_DEFAULT=400), None),
)
def test_traffic_of_a_task_of_several_cores(found, expected):
    """002, ATLAS Production Job Brokerage: the next cycles of job brokerage will exclude tasks with diskIO higher than the
    defined limit

    The page compares what the task has; production divides it by the cores of the slot.
    """
    assert found.check == expected


# ---- checks: cores, software, memory


@cases(
    *(
        (page(one(task | {"ramcount": 100}, corecount=slot)), expected)
        for task, slot, expected in (
            ({"corecount": 8}, 8, None),
            ({"corecount": 8}, 1, "core_count"),
            ({"corecount": 1}, 1, None),
            ({"corecount": 1}, 8, "core_count"),
            ({"corecount": 1, "site": "SITE"}, 8, "core_count"),
            ({"corecount": 8, "maxcorecount": 16}, 16, None),
            ({"corecount": 8, "maxcorecount": 15}, 16, "core_count_max"),
        )
    )
)
def test_cores(found, expected):
    """002, ATLAS Production Job Brokerage: CPU Core count matching amount site.coreCount, task.coreCount, and maxCoreCount
    of the task if defined.
    """
    assert found.check == expected


def published(**more: Any) -> World:
    task = {"transhome": "Athena-25.0.1", "architecture": "x86_64-el9-gcc13-opt"}
    world = one(task, releases=["AUTO"])
    return world.add("sw_tags", panda_queue="SITE", data=json.dumps(PUBLISHED | more))


@cases((page(published()), None), (page(published(cvmfs=[])), "software_hardware"))
def test_software(found, expected):
    """002, ATLAS Production Job Brokerage: Availability of ATLAS release/cache."""
    assert found.check == expected


@cases(
    (page(one(maxrss=8 * 1800.0)), None),
    (page(one(maxrss=8 * 1799.0)), "memory_max"),
)
def test_memory_is_published_per_core(found, expected):
    """002, ATLAS Production Job Brokerage: Queues publish maximum (and minimum) memory size per core.

    ``maxrss`` and ``minrss`` are those of a slot: so many cores times that.
    """
    assert found.check == expected


@cases(
    *(
        (page(one(task | {"baseramcount": 1000}, maxrss=maxrss)), expected)
        for task in ({"ramcountunit": "MBPerCore"}, {"ramcountunit": "MB"}, MERGING)
        for maxrss, expected in ((15_300.0, None), (15_299.0, "memory_max"))
    )
)
def test_memory_of_a_job(found, expected):
    """002, ATLAS Production Job Brokerage: The expected memory site of each job is estimated for each queue as
    (baseRamCount + ramCount × coreCount) × compensation

    (1000 + 2000 × 8) × 0.9 = 15,300 MB, whatever the unit and the kind of job.
    """
    assert found.check == expected


def of_base(ramcount: int | None, maxrss: float) -> World:
    return one({"ramcount": ramcount, "baseramcount": 4000}, maxrss=maxrss)


@cases(
    *((page(of_base(ramcount, 3599.0)), True) for ramcount in (0, None)),
    *((page(of_base(ramcount, 3600.0)), False) for ramcount in (0, None)),
    *((deployed(of_base(ramcount, 3599.0)), False) for ramcount in (0, None)),
)
def test_memory_of_the_base_alone(found, expected):
    """002, ATLAS Production Job Brokerage: (baseRamCount + ramCount × coreCount) × compensation

    (4000 + 0 × 8) × 0.9 = 3600 MB; production looks at no queue of a task without ramCount.
    """
    assert (found.check == "memory_max") == expected


@cases(
    (page(one(minrss=15_000.0)), "memory_min"),
    (page(one({"ramcount": 2111}, maxrss=15_199.0)), "memory_max"),  # 15,199.2 MB
)
def test_compensation(found, expected):
    """002, ATLAS Production Job Brokerage: where compensation is 0.9, avoiding sending jobs to high-memory queues when
    their expected memory usage is close to the lower limit.

    2000 × 8 MB are over the lower limit of 15,000 MB, 90 % of it are not.
    """
    assert found.check == expected


@cases(
    (page(one(minrss=14_400.0, maxrss=14_400.0)), None),
    (page(one(minrss=14_401.0)), "memory_min"),
    (page(one(maxrss=14_399.0)), "memory_max"),
)
def test_range_of_memory(found, expected):
    """002, ATLAS Production Job Brokerage: Queues are skipped if the estimated memory usage is not included in the
    acceptable memory ranges.
    """
    assert found.check == expected


# ---- checks: scratch disk


@cases(
    (page(one({"allowinputlan": "only"}, direct_access_lan=False)), "direct_access"),
    (page(one({"allowinputlan": "only"}, direct_access_lan=True)), None),
    (page(one({"allowinputlan": "use"}, direct_access_lan=False)), None),
)
def test_direct_access(found, expected):
    """002, ATLAS Production Job Brokerage: Skip queues if they don’t support direct access to read input files from the
    local storage, although the task is configured to use only direct access.
    """
    assert found.check == expected


def needs(mb: float, task: dict[str, Any], **queue: Any) -> list[tuple[Found, str | None]]:
    """Return cases of a job that needs so many MB of scratch: a slot of that size is skipped, one of a little more is not."""
    single = task | {"corecount": 1}
    return [
        (page(one(single, corecount=1, maxwdir=maxwdir, **queue)), expected)
        for maxwdir, expected in ((float(mb), "scratch_disk"), (mb + 0.5, None))
    ]


OUTPUT = {
    "atom_size": 100 * MB,
    "atom_nevents": 1000,
    "outdiskcount": 2,
    "outdiskunit": "MBPerEvent",
}


@cases(
    *needs(100 + 2000 + 400, OUTPUT | {"workdiskcount": 400}),
    *needs(100 + 2000 + 300, OUTPUT | {"workdiskcount": 299}),
    *needs(100 + 2000 + 300, OUTPUT | {"workdiskcount": None}),
    *needs(100 + 1500 + 300, OUTPUT | {"outdiskcount": 1}),
)
def test_disk_usage(found, expected):
    """002, ATLAS Production Job Brokerage: The disk usage for a job is estimated as inputDiskCount + max (1.5 GB,
    outDiskCount × nEvents or outDiskCount × inputDiskCount) + max (300 MB, workDiskCount)
    """
    assert found.check == expected


@cases(*needs(700 + 2000 + 300, OUTPUT | {"atom_size": 700 * MB}))
def test_size_of_the_input(found, expected):
    """002, ATLAS Production Job Brokerage: inputDiskCount is the total size of job input files, a discrete function of
    nEvents.
    """
    assert found.check == expected


BY_INPUT = {"atom_size": 1000 * MB, "atom_size_effective": 10.0, "outdiskunit": "MB"}


@cases(
    *needs(100 + 2 * 900 + 300, OUTPUT | {"atom_nevents": 900}),
    *needs(1000 + 2 * 1000 + 300, OUTPUT | BY_INPUT),
)
def test_what_output_scales_with(found, expected):
    """002, ATLAS Production Job Brokerage: nEvents is the smallest number of events in a single job allowed based on the
    task requirements and is used to estimate the output size by multiplying outDiskCount when outDiskCountUnit ends with
    “PerEvents”, otherwise, inputDiskCount is used.

    The unit is MBPerEvent, without the s. The input is all of it, whatever part of the master's files is used.
    """
    assert found.check == expected


LARGE = {"atom_size": 100 * GB}


@cases(
    (page(one(LARGE, maxwdir=5000.0 * 8, direct_access_lan=True)), None),
    (page(one(LARGE, maxwdir=5000.0 * 8)), "scratch_disk"),
    (deployed(one(LARGE, maxwdir=5000.0 * 8, direct_access_lan=True)), "scratch_disk"),
    *needs(2000 + 300, OUTPUT, maxinputsize=-1),
    *needs(2000 + 300, OUTPUT | {"allowinputlan": "use"}, direct_access_lan=True),
    *needs(2 * 1000 + 300, OUTPUT | {"atom_size": 1000 * MB, "outdiskunit": "MB"}, maxinputsize=-1),
)
def test_input_that_is_read_in_place(found, expected):
    """002, ATLAS Production Job Brokerage: inputDiskCount is zero if the queues are configured to read input files
    directly from the local storage.

    In the first term; the output is what it is. Production asks the task too.
    """
    assert found.check == expected


@cases(
    (page(one(maxwdir=8 * 1900.0)), "scratch_disk"),
    (page(one(maxwdir=8 * 1900.5)), None),
)
def test_maxwdir_is_shared_by_cores(found, expected):
    """002, ATLAS Production Job Brokerage: maxwdir is divided by coreCount at each queue and the resultant value must be
    larger than the expected disk usage.

    100 + 1500 + 300 MB, for jobs of 8 cores too.
    """
    assert found.check == expected


# ---- checks: storage


def disk(**columns: Any) -> World:
    return one().change("storage_endpoints", DISK, **columns)


@cases(
    (page(disk(space_free=200.0)), "storage_space"),
    (page(disk(space_free=200.1)), None),
    (page(disk(space_free=200.0, space_expired=900.0)), "storage_space"),
    (page(disk(space_free=200.1, space_min_free=900.0, space_unavailable=900.0)), None),
)
def test_free_space(found, expected):
    """002, ATLAS Production Job Brokerage: DISK size check, free space in the local storage has to be over 200GB."""
    assert found.check == expected


def with_another_endpoint() -> World:
    place = {"panda_queue": "SITE", "direction": "input", "ddm_endpoint_name": "OTHER"}
    return disk(read_lan="OFF").endpoint("OTHER").add("queue_endpoints", **place)


def bare() -> World:
    world = one()
    world.tables["queue_endpoints"] = []
    return world


@cases(
    (page(disk(type="SCRATCHDISK")), None),
    (page(disk(type=None, read_lan="OFF")), "read_lan_down"),
    (page(with_another_endpoint()), None),
    (page(bare()), None),
)
def test_endpoints_of_any_type(found, expected):
    """002, ATLAS Production Job Brokerage: Skip queues if their storage endpoints are blacklisted:

    One good endpoint is enough; what a queue does not have is not blacklisted.
    """
    assert found.check == expected


@cases(
    (page(disk(read_lan="ON")), None),
    *((page(disk(read_lan=status)), "read_lan_down") for status in ("OFF", "TEST", "SOMETHING")),
)
def test_input_is_read_over_lan(found, expected):
    """002, ATLAS Production Job Brokerage: Input endpoints must be locally readable over LAN (read_lan=ON)."""
    assert found.check == expected


@cases((page(disk(write_lan="OFF")), "write_lan_down"))
def test_output_is_written_over_lan(found, expected):
    """002, ATLAS Production Job Brokerage: Output endpoints must be locally writable over LAN (write_lan=ON)."""
    assert found.check == expected


def closed_nucleus() -> World:
    world = World().queue("HOME", site="NUC").data(1).endpoint("X_DATADISK")
    world.change("replicas", ddm_endpoint_name="X_DATADISK")
    return world.change("storage_endpoints", NUC_DISK, write_wan="OFF", read_wan="OFF")


@cases((page(closed_nucleus()), {"HOME": None}))
def test_queues_of_the_nucleus_use_no_wan(found, expected):
    """002, ATLAS Production Job Brokerage: For sattelite queues in addition:"""
    assert found.checks() == expected


@cases((page(disk(write_wan="OFF")), "write_wan_down"))
def test_satellites_receive_over_wan(found, expected):
    """002, ATLAS Production Job Brokerage: Input endpoints must be able to receive files over WAN (write_wan=ON)."""
    assert found.check == expected


@cases((page(disk(read_wan="OFF")), "read_wan_down"))
def test_satellites_send_over_wan(found, expected):
    """002, ATLAS Production Job Brokerage: Output endpoints must be able to send files over WAN (read_wan=ON)."""
    assert found.check == expected


@cases(
    *(
        (
            page(
                World()
                .queue("FAR")
                .queue("HOME", site="NUC")
                .change("storage_endpoints", NUC_DISK, **{access: "OFF"})
            ),
            {"FAR": "nucleus_unwritable", "HOME": None},
        )
        for access in ("write_wan", "read_wan")
    )
)
def test_the_nucleus_receives_and_sends_over_wan(found, expected):
    """002, ATLAS Production Job Brokerage: The nucleus storage endpoints must allow receivng and sending files over WAN
    (write_wan=ON and read_wan=ON).

    Asked of its default output endpoint, for satellites.
    """
    assert found.checks() == expected


# ---- checks: wall time


UNDEFINED = {"cputime": None}


@cases(
    *(
        (page(one(task, maxtime=maxtime)), expected)
        for task in (SCOUT, UNDEFINED, {"site": "SITE", **SCOUT})
        # 0 is no limit
        for maxtime, expected in ((86_399, "walltime_24h"), (86_400, None), (0, None))
    ),
    (page(one(MERGING, maxtime=86_399)), None),
)
def test_scouts_and_unknown_jobs_need_a_day(found, expected):
    """002, ATLAS Production Job Brokerage: For scout or walltime-undefined jobs, skip queues if their maxtime is less than
    24 hours.
    """
    assert found.check == expected


TIME = {"cputime": 100.0, "atom_nevents": 1000, "basewalltime": 600.0, "cpuefficiency": 50.0}
"""100 × 1000 / (8 cores × 10 HS06 × 0.5) + 600 = 3100 s."""


@cases(
    (page(one(TIME, maxtime=3100)), None),
    (page(one(TIME, maxtime=3099)), "walltime_max"),
)
def test_walltime_of_a_job(found, expected):
    """002, ATLAS Production Job Brokerage: The estimated walltime for a job is (cpuTime × nEvents) / (C × P ×
    cpuEfficiency) + baseTime
    """
    assert found.check == expected


@cases(
    (page(one(TIME | {"atom_nevents": 500}, maxtime=1850)), None),
    (page(one(TIME | {"atom_nevents": 500}, maxtime=1849)), "walltime_max"),
)
def test_events_of_the_walltime(found, expected):
    """002, ATLAS Production Job Brokerage: nEvents is the same as the one used to estimate the disk usage."""
    assert found.check == expected


@cases(
    (page(one(TIME, mintime=3100, maxtime=3100)), None),
    (page(one(TIME, mintime=3101)), "walltime_min"),
    (page(one(TIME, maxtime=3099)), "walltime_max"),
)
def test_walltime_lies_between_the_limits(found, expected):
    """002, ATLAS Production Job Brokerage: The estimated walltime must be between mintime and maxtime at the queue."""
    assert found.check == expected


@cases(
    (page(one(UNDEFINED, mintime=3600)), None),
    (deployed(one(UNDEFINED, mintime=3600)), "walltime_min"),
)
def test_unknown_walltimes_are_not_short(found, expected):
    """002, ATLAS Production Job Brokerage: The estimated walltime must be between mintime and maxtime at the queue.

    What is not known is not estimated: another sentence is about walltime-undefined jobs.
    """
    assert found.check == expected


# ---- checks: connectivity, event service


def connected(queue: str | None, network: str | None = None, stack: str | None = None) -> Found:
    return page(one({"ipconnectivity": network, "ipstack": stack}, wnconnectivity=queue))


@cases(
    (connected("none#IPv6", "full", "IPv4"), "connectivity"),
    *((connected(queue), None) for queue in ("none#IPv6", "http", "full#IPv4", None)),
)
def test_connectivity_matters_to_tasks_that_ask(found, expected):
    """002, ATLAS Production Job Brokerage: wnconnectivity of the queue must be consistent if the task specifies
    ipConnectivity.
    """
    assert found.check == expected


@cases(
    (connected("http#IPv6", "http", "IPv6"), None),
    (connected("http#IPv6", "http#IPv6"), None),
    (connected("full#IPv4", "http#IPv6"), "ip_stack"),
    (connected("none#IPv6", "http#IPv6"), "connectivity"),
)
def test_format_of_connectivity(found, expected):
    """002, ATLAS Production Job Brokerage: The format of wnconnectivity and ipConnectivity is
    network_connectivity#ip_stack.
    """
    parsed = parse_connectivity("http#IPv6")
    assert (parsed.network, parsed.ip_stack) == ("http", "IPv6")
    assert found.check == expected


@cases(*((connected("full", asked), None) for asked in ("full", "http", "none", None)))
def test_full_connectivity(found, expected):
    """002, ATLAS Production Job Brokerage: full: to accept any tasks since outbound network connectivity is fully
    available,
    """
    assert found.check == expected


@cases(
    *((connected("http", asked), None) for asked in ("http", "none", None)),
    (connected("http", "full"), "connectivity"),
)
def test_http_connectivity(found, expected):
    """002, ATLAS Production Job Brokerage: http: to accept tasks with network_connectivity=http or none since only http
    access is available, or
    """
    assert found.check == expected


@cases(
    (connected("none", "none"), None),
    *((connected("none", asked), "connectivity") for asked in ("http", "full")),
)
def test_no_connectivity(found, expected):
    """002, ATLAS Production Job Brokerage: none: to accept tasks with network_connectivity=none since no outbound network
    connectivity is available,
    """
    assert found.check == expected


@cases(
    (connected("full#IPv4", "full", "IPv4"), None),
    (connected("full#IPv4", "full", "IPv6"), "ip_stack"),
    (connected("full#IPv4", "full"), "ip_stack"),
)
def test_ipv4(found, expected):
    """002, ATLAS Production Job Brokerage: IPv4: to accept tasks with ip_stack=IPv4,"""
    assert found.check == expected


@cases(
    (connected("full#IPv6", "full", "IPv6"), None),
    (connected("full#IPv6", "full", "IPv4"), "ip_stack"),
)
def test_ipv6(found, expected):
    """002, ATLAS Production Job Brokerage: IPv6: to accept tasks with ip_stack=IPv6, or"""
    assert found.check == expected


@cases(
    (connected("full", "full"), None),
    (connected("full", "full", "IPv4"), "ip_stack"),
)
def test_no_ip_stack(found, expected):
    """002, ATLAS Production Job Brokerage: ‘’ (unset): to accept tasks without specifying ip_stack."""
    assert found.check == expected


DYNAMIC = {"dynamicnumevents": 10, "atom_nevents": 10}


@cases(
    (page(one({"eventservice": 1}, jobseed="std")), "event_service_std"),
    (page(one({"eventservice": 1}, jobseed="es")), None),
    (page(one(jobseed="es")), "event_service_only"),
    (page(one(DYNAMIC | {"max_consecutive_events": 1000}, mintime=1250)), None),
    (page(one(DYNAMIC | {"max_consecutive_events": 999}, mintime=1250)), "walltime_min"),
)
def test_event_service_and_dynamic_numbers_of_events(found, expected):
    """002, ATLAS Production Job Brokerage: Settings for event service and the dynamic number of events.

    ``jobseed`` says who is welcome. Jobs of 10 to 1000 events fill 1250 s × 8 × 10 HS06 with the last of them.
    """
    assert found.check == expected


# ---- checks: transfers, nucleus, pilots, network, shortage


def moving(site: str, number: int, running: int, limit: int | None) -> World:
    world = World().queue("SITE", site=site, running=running, transferringlimit=limit)
    return world.jobs("SITE", transferring=number)


@cases(
    *(
        (page(moving(site, number, 100, limit)), expected)
        for site in ("SITE", "NUC")
        for most, limit in ((2000, None), (300, 300), (200, 150))
        for number, expected in ((most, None), (most + 1, "transferring"))
    )
)
def test_transferring_jobs(found, expected):
    """002, ATLAS Production Job Brokerage: Too many transferring jobs: skip if transferring > max(transferring_limit, 2 x
    running), where transferring_limit limit is defined by site or 2000 if undefined.

    At the nucleus too, and wherever they go.
    """
    assert found.check == expected


@cases(
    *(
        (page(World(**task).queue("HOME", site="NUC").queue("FAR")), expected)
        for task, expected in (
            ({"t1weight": -1}, "t1_weight"),
            ({"t1weight": -1} | MERGING, None),
            ({"t1weight": -2}, None),
            ({"t1weight": 1}, None),
            ({}, None),
        )
    )
)
def test_jobs_that_stay_at_the_nucleus(found, expected):
    """002, ATLAS Production Job Brokerage: Use only the queues associated with the nucleus if the task sets t1Weight=-1 and
    normal jobs are being generated.
    """
    assert found.checks() == {"HOME": None, "FAR": expected}


@cases(
    *(
        (page(world), expected)
        for task in ({}, {"site": "SITE"}, {"prodsourcelabel": "test"})
        for world, expected in (
            (one(task, pilots=1), None),
            (one(task, pilots=0), "no_pilot"),
            (one(task, pilots=0).add("slots", panda_queue="SITE", numslots=8), "no_pilot"),
        )
    )
)
def test_queues_without_pilots(found, expected):
    """002, ATLAS Production Job Brokerage: Skip queues without pilots for the last 3 hours."""
    assert found.check == expected


def linked(queued: float, **task: Any) -> World:
    return one(task).link("SITE", queued=queued, mbps=30.0)


@cases(
    *(
        (page(linked(queued, **task), NW_THRESHOLD=1.7, NW_WEIGHT_MULTIPLIER=times), expected)
        for task in (
            {"processingtype": "urgent"},
            {"processingtype": "evgen-urgent"},
            {"currentpriority": 1000},
        )
        for queued, times, expected in (
            (30, 1, None),
            (31, 1, "network_weight_low"),
            (30, 2, "network_weight_low"),
        )
    ),
    (page(linked(149, currentpriority=999), NW_THRESHOLD=1.7, NW_WEIGHT_MULTIPLIER=1), None),
)
def test_express_work_needs_a_network(found, expected):
    """002, ATLAS Production Job Brokerage: If processingType=*urgent* or priority ≥ 1000, the Network weight must be larger
    than or equal to NW_THRESHOLD×NW_WEIGHT_MULTIPLIER(both defined in gdpconfig).

    30 of 300 files and 30 MB/s weigh (1.9 + 1.5) / 2 = 1.7.
    """
    assert found.check == expected


@cases(
    *(
        (page(one(task, pledgedcpu=-1), WORK_SHORTAGE=short), expected)
        for task in ({}, {"site": "SITE"})
        for short, expected in ((True, "opportunistic_shortage"), (False, None))
    )
)
def test_shortage_of_work(found, expected):
    """002, ATLAS Production Job Brokerage: When WORK_SHORTAGE in gdpconfig is set to True, the following queues are
    skipped: Opportunistic queues defined with pledgedcpu=-1.
    """
    assert found.check == expected


def with_cores(running: int) -> World:
    world = one(pledgedcpu=10)
    for status, number in (("running", running), ("starting", 50)):
        world.add("core_stats", computingsite="SITE", jobstatus=status, ncores=number)
    return world


@cases(
    (page(with_cores(10), WORK_SHORTAGE=True), None),
    (page(with_cores(11), WORK_SHORTAGE=True), "pledge_exceeded"),
)
def test_pledges_in_a_shortage(found, expected):
    """002, ATLAS Production Job Brokerage: Partially pledged queues defined with positive pledgedcpu when the total number
    of running cores is larger than pledgedcpu.
    """
    assert found.check == expected


def test_queues_that_the_nucleus_lists_are_its_own():
    """002, ATLAS Production Job Brokerage: Use only the queues associated with the nucleus

    Where a queue says nothing of its site.
    """
    queues = [{"panda_queue": "OWN"}, {"panda_queue": "SAT"}]
    nuclei = [{"nucleus": "N", "queues": ["OWN"]}]
    found = decide(brokerage.world([{"nucleus": "N", "t1weight": -1}], queues, nuclei=nuclei))
    assert reasons(found) == {"OWN": None, "SAT": "t1_weight"}


# ---- the weight: running jobs


def counted(
    running: int, *, workers: int = 0, slots: int | None = None, starting: int = 0, **task: Any
) -> Found:
    """Ask about a queue of 8 cores with so many running jobs."""
    world = one({"currentpriority": 500} | task, running=running, activated=1)
    world.jobs("SITE", starting=starting)
    for status, number in (("running", workers // 2), ("submitted", workers - workers // 2)):
        world.add("worker_stats", panda_queue="SITE", status=status, n_workers=number)
    if slots is not None:
        world.add("slots", panda_queue="SITE", numslots=slots)
    return page(world)


def three() -> World:
    world = World(nucleus=None).queue("A", running=99, activated=15).queue("B", running=99)
    return world.queue("C", running=59, activated=10)


@cases((page(three()), ["B", "A", "C"]))  # 100 / 20, 100 / 25, 60 / 20
def test_the_weight_is_of_running_and_queued_jobs(found, expected):
    """002, ATLAS Production Job Brokerage: Calculate brokerage weight for remaining candidates. The initial weight is based
    on running vs queued jobs.
    """
    assert found.ranking == expected


@cases(
    (counted(15, workers=18, slots=17), 18),
    (counted(15, workers=16, slots=17), 17),
    (counted(15, workers=14, slots=13), 15),
)
def test_the_largest_number_of_running_jobs(found, expected):
    """002, ATLAS Production Job Brokerage: The brokerage uses the largest one as the number of running jobs among the
    following numbers:
    """
    assert found.only["nrunning"] == expected


@cases((counted(25), 25))
def test_the_actual_number_of_running_jobs(found, expected):
    """002, ATLAS Production Job Brokerage: The actual number of running jobs at the queue, Rreal."""
    assert found.only["nrunning"] == expected


def shares(running: int, **jobs: int) -> World:
    world = one({"nucleus": None, "currentpriority": 500}, running=25, activated=30)
    counts = {"activated": 30, "defined": 5, "starting": 5} | jobs
    return world.jobs("SITE", gshare="Other", running=running, **counts)


@told(
    found=page(shares(10)),
    many=page(shares(7)),  # 60 + 5 > 2 x 32
    few=page(shares(7, activated=0, starting=0)),
)
def test_jobs_of_all_shares_count(found, many, few):
    """002, ATLAS Production Job Brokerage: The actual number of running jobs at the queue, Rreal.

    The page names no share, neither here nor of what waits; production counts those of the task's share.
    """
    assert found.only["nrunning"] == 35
    assert found.only["work"] == near(36 / (60 + 5 + 5 + 10))
    assert (many.check, few.check) == ("queued_cap", None)


@cases(
    *(
        (counted(running, workers=workers, currentpriority=priority), expected)
        for running, workers, expected in (
            (5, 15, 15),
            (5, 30, 20),
            (19, 30, 20),
            (20, 30, 20),
            (5, 4, 5),
        )
        for priority in (500, 5000)
    )
)
def test_batch_workers(found, expected):
    """002, ATLAS Production Job Brokerage: min(nBatchJob, 20) if Rreal < 20 and nBatchJob (the number of running+submitted
    batch workers at PQ) > Rreal. Mainly for bootstrap.
    """
    assert found.only["nrunning"] == expected


@cases((counted(5, slots=80), 80))
def test_slots_that_are_set(found, expected):
    """002, ATLAS Production Job Brokerage: numSlots if it is set to a positive number for the queue to the proactive job
    assignment.
    """
    assert found.only["nrunning"] == expected


@cases(
    (counted(20, slots=0, starting=30), 30),
    (counted(20, slots=None, starting=30), 20),
)
def test_slots_that_are_zero(found, expected):
    """002, ATLAS Production Job Brokerage: The number of starting jobs if numSlots is set to zero, which is typically
    useful for Harvester to fetch jobs when the number of available slots dynamically changes.
    """
    assert found.only["nrunning"] == expected


# ---- the weight: factors


JOBS = {"defined": 2, "assigned": 15, "activated": 10, "starting": 3}


def full(held: int | None = None, task: dict[str, Any] | None = None, **jobs: int) -> World:
    """Return a queue with 49 running jobs that holds so many of 10 files of 1 GB; no input without a number."""
    world = one({"nucleus": None} | (task or {}), running=49).jobs("SITE", **(JOBS | jobs))
    return world if held is None else world.data(10, size=GB, here={"SITE": held})


@told(here=page(full(10)), elsewhere=page(full(9)), many=page(full(10, assigned=900)))
def test_assigned_jobs_where_the_input_is(here, elsewhere, many):
    """002, ATLAS Production Job Brokerage: The number of assigned jobs is ignored for the weight calculation and the
    subsequent filtering if the input for the jobs being considered is already available locally.
    """
    assert here.only["work"] == near(50 / (10 + 3 + 2 + 10))
    assert elsewhere.only["work"] == near(50 / (10 + 15 + 3 + 2 + 10) / 1.5)
    assert many.check is None


@cases(
    (page(full(10, assigned=84)), None),
    (page(full(9, assigned=84)), "queued_cap"),  # 99 jobs, 2 × 49 may
)
def test_jobs_that_wait_for_data_block_no_others(found, expected):
    """002, ATLAS Production Job Brokerage: Jobs waiting for data transfer do not block new jobs needing no transfer."""
    assert found.check == expected


@cases(
    *(
        (
            page(full(0, assigned=assigned, activated=activated)),
            near(50 / (activated + assigned + 3 + 2 + 10) / factor),
        )
        for assigned, activated, factor in (
            (15, 10, 1.5),
            (10, 10, 1),
            (0, 10, 1),
            (20, 10, 2),
            (30, 10, 2),
            (5, 0, 2),
            (0, 0, 1),
        )
    )
)
def test_many_assigned(found, expected):
    """002, ATLAS Production Job Brokerage: manyAssigned = max(1, min(2, assigned / activated))

    Without activated jobs it is the limit: 2, or 1 where none is assigned.
    """
    assert found.only["work"] == expected


@cases((page(full(0)), near((49 + 1) / ((10 + 15 + 3 + 2 + 10) * 1.5))))
def test_the_basic_weight(found, expected):
    """002, ATLAS Production Job Brokerage: weight = (running + 1) / ((activated + assigned + starting + defined + 10) ×
    manyAssigned)
    """
    assert found.only["work"] == expected


@told(found=page(full(6)))
def test_available_input(found):
    """002, ATLAS Production Job Brokerage: Take data availability into consideration. weight = weight × (availableSize +
    totalSize) / (totalSize × (numMissingFiles / 100 + 1))
    """
    row = found.only
    assert row["data"] == near((6 + 10) / (10 * (4 / 100 + 1)))
    assert row["weight"] == near(row["work"] * row["data"])


@cases(
    *(
        (page(world), near(101 / 20 * network))
        for task in ({"t1weight": 7}, {"iointensity": 501}, {"currentpriority": 900}, SCOUT)
        for world, network in (
            (one(task).link("SITE", queued=30, mbps=80.0), 1.85),  # (1.9 + 1.8) / 2
            (World(**task).queue("HOME", site="NUC"), 2.5),
        )
    ),
    (page(levelled(40.0)), near(101 / 20)),
)
def test_the_weight_is_the_product_of_three(found, expected):
    """002, ATLAS Production Job Brokerage: Apply a Network weight based on connectivity between nucleus and satellite,
    since the output files are aggregated to the nucleus. weight = weight × networkWeight

    Nothing else: neither the nucleus nor a preferred CPU counts more.
    """
    assert found.only["weight"] == expected


# ---- filters after the weight, ranks


KINDS = (({}, {}), ({"processingtype": "urgent"}, {}), ({}, {"capability": "ucore"}))
"""Columns of the task, of the queue: of plain work, express work and at a unified queue."""


def queued(kind: tuple[dict[str, Any], dict[str, Any]], running: int, **jobs: int) -> Found:
    task, queue = kind
    return page(one(task, running=running, **queue).jobs("SITE", **jobs), NW_THRESHOLD=0)


@cases(
    *(
        (queued(kind, running, **jobs), expected)
        for kind in KINDS
        for running, jobs, expected in (
            (10, {"activated": 15, "starting": 5}, None),
            (10, {"activated": 15, "starting": 6}, "queued_cap"),
            (0, {"activated": 0}, None),
            (0, {"activated": 1}, "queued_cap"),
        )
    )
)
def test_activated_and_starting_jobs(found, expected):
    """002, ATLAS Production Job Brokerage: Skip queues if activated + starting > 2 × running."""
    assert found.check == expected


@cases(
    *(
        (
            page(
                one(task, running=10, **queue)
                .jobs("SITE", activated=5, starting=5, assigned=5, defined=defined)
                .data(1),
                NW_THRESHOLD=0,
            ),
            expected,
        )
        for task, queue in KINDS
        for defined, expected in ((5, None), (6, "queued_cap"))
    )
)
def test_all_queued_jobs(found, expected):
    """002, ATLAS Production Job Brokerage: Skip queues if defined+activated+assigned+starting > 2 × running."""
    assert found.check == expected


@told(none=page(one(status="offline")), some=page(one()))
def test_a_task_without_queues_waits_an_hour(none, some):
    """002, ATLAS Production Job Brokerage: If all queues are skipped, the task is pending for 1 hour."""
    assert none.task["outcome"] == "no_candidates"
    assert none.task["pending_until"] == AT + timedelta(hours=1)
    assert some.task["pending_until"] is None


def twelve() -> World:
    world = World(nucleus=None, currentpriority=0)
    for number, running in enumerate((0, 5, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10)):
        world.queue(f"Q{number:02}", running=running, activated=0)
    return world


@told(found=page(twelve()))
def test_the_best_ten_by_weight(found):
    """002, ATLAS Production Job Brokerage: Otherwise, the remaining candidates are sorted by weight, and the best 10
    candidates are taken.

    A queue without any job stands where its weight puts it; equals stand by name.
    """
    best = ["Q11", "Q10", "Q09", "Q08", "Q07", "Q01", "Q06", "Q05", "Q04", "Q03"]
    assert found.ranking == best
    checks = found.checks()
    assert (checks["Q00"], checks["Q02"]) == ("rank", "rank")


# ---- the network weight


@cases(
    (page(one().link("SITE", mbps=80.0, closeness=11)), 1.8),
    (page(one().link("SITE", mbps=None, closeness=0)), 2),
)
def test_two_sources(found, expected):
    """002, Network Weight: the Network Weather Service as the dynamic source, and the CRIC closeness as a semi static
    source.

    Half the weight is that of the queue, 2 without files.
    """
    assert found.only["network"] == near((2 + expected) / 2)


def of_windows(*windows: str) -> World:
    speeds = {"1h": 250.0, "1d": 80.0, "1w": 5.0}
    world = one().link("SITE", mbps=None)
    for window in windows:
        place = {"src": "SITE", "dst": "NUC", "key": f"dashb_mbps_{window}"}
        world.add("network_matrix", **place, value=speeds[window], ts=AT)
    return world


@cases(
    (page(of_windows("1h", "1d", "1w")), 2.0),
    (page(of_windows("1h")), 2.0),
    (page(of_windows("1d", "1w")), 1.8),
    (page(of_windows("1d")), 1.8),
    (page(of_windows("1w")), 1.2),
)
def test_the_most_recent_data(found, expected):
    """002, Network Weight: It uses the most recent available data, so preferably data of the last 1 hour, if not available
    of last 1 day, if not available of last 1 week.
    """
    assert found.only["network"] == near((2 + expected) / 2)


def measured(*keys: str) -> World:
    world = one().link("SITE", mbps=None, closeness=11)
    for key in keys:
        world.add("network_matrix", src="SITE", dst="NUC", ts=AT, key=key, value=900.0)
    return world


@cases(
    (page(measured("perfsonar_mbps")), 1),
    (page(measured("perfsonar_mbps", "dashb_mbps_1h")), 2),
)
def test_throughput_is_that_of_transfers(found, expected):
    """002, Network Weight: FTS Mbps are used, which are filled from Chicago elastic search."""
    assert found.only["network"] == near((2 + expected) / 2)


@cases(
    *(
        (page(one().link("SITE", mbps=None, closeness=closeness)), expected)
        for closeness, expected in ((0, 2.0), (5.5, 1.5), (11, 1.0))
    )
)
def test_closeness_without_metrics(found, expected):
    """002, Network Weight: If there are no available network metrics, the AGIS closeness (0 best to 11 worst) is used in a
    normalized way
    """
    assert found.only["network"] == near((2 + expected) / 2)
