"""Cases of the section on the production job brokerage and of that on the network weight (002), worked out by hand."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

import polars as pl
import pytest

from brokerlab import brokerage
from brokerlab.brokerage.production_jobs.brokerage import decide
from brokerlab.brokerage.production_jobs.ranking import Decisions
from brokerlab.matching.catchall import parse_connectivity
from brokerlab.units import GB, MB
from tests.brokerage_toys import AT, World, reasons
from tests.unit.brokerage.production_jobs.book import PUBLISHED, ask, levelled, one, parent

NUC_DISK = {"ddm_endpoint_name": "NUC_DATADISK"}
DISK = {"ddm_endpoint_name": "SITE_DATADISK"}
SCOUT, MERGING = {"use_scout": True}, {"is_merging": True}


def why(world: World, **settings: Any) -> str | None:
    """Return why the only queue is skipped under the page's rules; null for a candidate."""
    (check,) = reasons(world.decided(**settings)).values()
    return check


def whys(*worlds: World, **settings: Any) -> list[str | None]:
    """Return the same of several worlds, decided at once."""
    asked = [ask(world, "document", **settings) for world in worlds]
    return [found.check for found in asked]


def weighed(world: World, **settings: Any) -> dict[str, Any]:
    """Return what is said of the weight of the only queue."""
    return world.decided(**settings).weighed.row(0, named=True)


def ranking(found: Decisions) -> list[str]:
    chosen = found.queues.filter(pl.col("rank").is_not_null()).sort("rank")
    return chosen["panda_queue"].cast(pl.String).to_list()


# ---- candidates


def test_test_queues_are_no_candidates():
    """002, ATLAS Production Job Brokerage: All queues while excluding any queue with case-insensitive ‘test’ in the
    name.
    """
    world = World().queue("CERN_Test1").queue("MYTEST").queue("CERN_PROD")
    expected = {"CERN_PROD": None, "CERN_Test1": "name_test", "MYTEST": "name_test"}
    assert reasons(world.decided()) == expected


def test_a_list_of_queues():
    """002, ATLAS Production Job Brokerage: A list of pre-assigned queues."""
    world = World(site="A,B").queue("A").queue("B").queue("C")
    assert reasons(world.decided()) == {"A": None, "B": None}


def test_unified_queues_are_resolved():
    """002, ATLAS Production Job Brokerage: Unified queues are resolved to pseudo-queues."""
    world = parent(World(site="UNIFIED"), "UNIFIED", {}, {})
    assert reasons(world.decided()) == {"UNIFIED/0": None, "UNIFIED/1": None}


def test_input_that_is_complete_nowhere():
    """production-jobs.md 1: whether the input is complete anywhere is not asked."""
    world = one().data(10, here={"SITE": 10}).change("replicas", found=0)
    assert why(world, MAX_MISSING_INPUT_FILES=0) is None


@pytest.mark.parametrize(("hours", "free"), [(23.9, False), (24, True), (100, True)])
def test_merge_jobs_are_freed_after_a_day(hours, free):
    """002, ATLAS Production Job Brokerage: Although merge jobs are pre-assigned to avoid transferring small pre-merged
    files, the pre-assignment is ignored if the relevant queues have been skipped for 24 hours.

    A task without queues waits since ``frozentime``; when its input changed says nothing.
    """
    since = {"frozentime": AT - timedelta(hours=hours), "master_modificationtime": AT}
    world = World(**MERGING, preassigned_site="A", **since).queue("A").queue("B")
    assert set(reasons(world.decided())) == ({"A", "B"} if free else {"A"})


# ---- checks: status, links, activity, pledges


@pytest.mark.parametrize("status", ["standby", "test", "brokeroff", "offline", None])
def test_queues_must_be_online(status):
    """002, ATLAS Production Job Brokerage: The queue status must be online unless the queues are pre-assigned."""
    assert whys(one(status="online"), one(status=status), one({"site": "SITE"}, status=status)) == [
        None,
        "status_offline",
        None,
    ]


def test_blocked_links():
    """002, ATLAS Production Job Brokerage: Skip queues if their links to the nucleus are blocked."""
    assert whys(one().link("SITE", closeness=-1), one().link("SITE", closeness=0)) == [
        "link_blocked",
        None,
    ]


def test_files_queued_on_a_link():
    """002, ATLAS Production Job Brokerage: Skip queues if over the NQUEUED_SAT_CAP(defined in gdpconfig) files queued on
    their links to the nucleus.
    """
    assert whys(
        one().link("SITE", queued=100), one().link("SITE", queued=101), NQUEUED_SAT_CAP=100
    ) == [None, "link_backlog"]


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


def test_files_queued_for_a_nucleus():
    """002, ATLAS Production Job Brokerage: Skip all queues if the number of files to be aggregated to the nucleus is
    larger than NQUEUED_NUC_CAP_FOR_JOBS(defined in gdpconfig).

    All: those of the nucleus too.
    """
    world = World().queue("FAR").queue("HOME", site="NUC")
    few = world.link("ELSEWHERE", queued=1000).decided(NQUEUED_NUC_CAP_FOR_JOBS=1000)
    assert reasons(few) == {"FAR": None, "HOME": None}
    many = world.link("ELSEWHERE", queued=1001).decided(NQUEUED_NUC_CAP_FOR_JOBS=1000)
    assert reasons(many) == {"FAR": "nucleus_backlog", "HOME": "nucleus_backlog"}


@pytest.mark.parametrize(
    "task",
    [{"currentpriority": 800}, SCOUT, MERGING, {"mergeoutput": True}, {"site": "SITE", **SCOUT}],
)
def test_inactive_queues(task):
    """002, ATLAS Production Job Brokerage: If priority ≥ 800 or scout jobs or merging jobs or pre-merged jobs, skip
    inactive queues (where no jobs got started in the last 2 hours although activated jobs had been there).
    """

    def started(hours: float, **jobs: int) -> World:
        then = AT - timedelta(hours=hours)
        return one(task, **jobs).change("site_activity", laststart=then)

    assert whys(started(2.01), started(2), started(2.01, activated=0).jobs("SITE", starting=5)) == [
        "inactive",
        None,
        None,
    ]
    plain = one({"currentpriority": 799}).change("site_activity", laststart=AT - timedelta(hours=9))
    assert why(plain) is None


def test_opportunistic_queues():
    """002, ATLAS Production Job Brokerage: If priority ≥ 800 or scout jobs, skip opportunistic queues (defined as queues
    with pledgedcpu=-1).
    """
    for task in ({"currentpriority": 800}, SCOUT, {"currentpriority": 800, "site": "SITE"}):
        assert whys(one(task, pledgedcpu=-1), one(task, pledgedcpu=0)) == ["opportunistic", None]
    assert why(one({"currentpriority": 799}, pledgedcpu=-1)) is None


# ---- checks: input to move, disk traffic


def missing(files: int, size: int = GB, **task: Any) -> World:
    """Return a queue that holds none of so many files."""
    return one({"iointensity": 201} | task).data(files, size=size)


def test_size_of_missing_input():
    """002, ATLAS Production Job Brokerage: If the task ioIntensity is larger than IO_INTENSITY_CUTOFF(defined in
    gdpconfig), the total size of missing files must be less than SIZE_CUTOFF_TO_MOVE_INPUT(defined in gdpconfig)
    """
    assert whys(
        missing(4), missing(5), missing(5, iointensity=200), SIZE_CUTOFF_TO_MOVE_INPUT=5
    ) == [None, "input_to_move", None]
    assert why(missing(5, iointensity=300), IO_INTENSITY_CUTOFF=300) is None


def test_number_of_missing_files():
    """002, ATLAS Production Job Brokerage: and the number of missing files must be less than
    NUM_CUTOFF_TO_MOVE_INPUT(defined in gdpconfig).
    """
    assert whys(missing(29, 1), missing(30, 1), NUM_CUTOFF_TO_MOVE_INPUT=30) == [
        None,
        "input_to_move",
    ]


@pytest.mark.parametrize("task", [{}, MERGING, {"eventservice": 1}, {"site": "SITE"}])
def test_a_queue_that_needs_more_input_is_skipped(task):
    """002, ATLAS Production Job Brokerage: I.e., if a queue needs to transfer more input files, the queue is skipped.

    Whatever other queues need, and for every task.
    """
    assert why(missing(20, **task)) == "input_to_move"


def busy_disks(usage: float, diskio: float, **queue: Any) -> World:
    world = one({"diskio": diskio, "corecount": 1}, corecount=1, **queue)
    return world.add("diskio_usage", computingsite="SITE", diskio_per_core=usage)


def test_a_general_limit_of_disk_traffic():
    """002, ATLAS Production Job Brokerage: There is a general MAX_DISKIO_DEFAULT limit in gdpconfig."""
    assert why(busy_disks(500.0, 500), MAX_DISKIO_DEFAULT=400) == "diskio_overload"
    assert why(busy_disks(500.0, 500), MAX_DISKIO_DEFAULT=500) is None


def test_a_queue_may_have_its_own_limit():
    """002, ATLAS Production Job Brokerage: It is possible to overwrite the limit for a particular queue through the
    maxDiskIO(in kB/sec per core) field in CRIC.
    """
    assert why(busy_disks(500.0, 500, maxdiskio=300), MAX_DISKIO_DEFAULT=900) == "diskio_overload"
    assert why(busy_disks(500.0, 500, maxdiskio=900), MAX_DISKIO_DEFAULT=300) is None


@pytest.mark.parametrize(
    ("usage", "diskio", "expected"),
    [(401.0, 401, "diskio_overload"), (400.0, 401, None), (401.0, 400, None)],
)
def test_traffic_of_the_queue_and_of_the_task(usage, diskio, expected):
    """002, ATLAS Production Job Brokerage: The limit is applied in job brokerage: when the average diskIO per core for
    running jobs in a queue exceeds the limit, the next cycles of job brokerage will exclude tasks with diskIO higher
    than the defined limit to progressively get the diskIO under the threshold.
    """
    assert why(busy_disks(usage, diskio), MAX_DISKIO_DEFAULT=400) == expected


def test_traffic_of_a_task_of_several_cores():
    """002, ATLAS Production Job Brokerage: the next cycles of job brokerage will exclude tasks with diskIO higher than the
    defined limit

    The page compares what the task has; production divides it by the cores of the slot.
    """
    busy = one({"diskio": 401}).add("diskio_usage", computingsite="SITE", diskio_per_core=401.0)
    assert why(busy, MAX_DISKIO_DEFAULT=400) == "diskio_overload"
    assert reasons(busy.decided("production", MAX_DISKIO_DEFAULT=400))["SITE"] is None


# ---- checks: cores, software, memory


@pytest.mark.parametrize(
    ("task", "slot", "expected"),
    [
        ({"corecount": 8}, 8, None),
        ({"corecount": 8}, 1, "core_count"),
        ({"corecount": 1}, 1, None),
        ({"corecount": 1}, 8, "core_count"),
        ({"corecount": 1, "site": "SITE"}, 8, "core_count"),
        ({"corecount": 8, "maxcorecount": 16}, 16, None),
        ({"corecount": 8, "maxcorecount": 15}, 16, "core_count_max"),
    ],
)
def test_cores(task, slot, expected):
    """002, ATLAS Production Job Brokerage: CPU Core count matching amount site.coreCount, task.coreCount, and maxCoreCount
    of the task if defined.
    """
    assert why(one(task | {"ramcount": 100}, corecount=slot)) == expected


def test_software():
    """002, ATLAS Production Job Brokerage: Availability of ATLAS release/cache."""

    def published(**more: Any) -> World:
        task = {"transhome": "Athena-25.0.1", "architecture": "x86_64-el9-gcc13-opt"}
        world = one(task, releases=["AUTO"])
        return world.add("sw_tags", panda_queue="SITE", data=json.dumps(PUBLISHED | more))

    assert whys(published(), published(cvmfs=[])) == [None, "software_hardware"]


def test_memory_is_published_per_core():
    """002, ATLAS Production Job Brokerage: Queues publish maximum (and minimum) memory size per core.

    ``maxrss`` and ``minrss`` are those of a slot: so many cores times that.
    """
    assert whys(one(maxrss=8 * 1800.0), one(maxrss=8 * 1799.0)) == [None, "memory_max"]


@pytest.mark.parametrize("task", [{"ramcountunit": "MBPerCore"}, {"ramcountunit": "MB"}, MERGING])
def test_memory_of_a_job(task):
    """002, ATLAS Production Job Brokerage: The expected memory site of each job is estimated for each queue as
    (baseRamCount + ramCount × coreCount) × compensation

    (1000 + 2000 × 8) × 0.9 = 15,300 MB, whatever the unit and the kind of job.
    """
    task = task | {"baseramcount": 1000}
    assert whys(one(task, maxrss=15_300.0), one(task, maxrss=15_299.0)) == [None, "memory_max"]


@pytest.mark.parametrize("ramcount", [0, None])
def test_memory_of_the_base_alone(ramcount):
    """002, ATLAS Production Job Brokerage: (baseRamCount + ramCount × coreCount) × compensation

    (4000 + 0 × 8) × 0.9 = 3600 MB; production looks at no queue of a task without ramCount.
    """
    world = one({"ramcount": ramcount, "baseramcount": 4000}, maxrss=3599.0)
    assert why(world) == "memory_max"
    assert reasons(world.decided("production"))["SITE"] != "memory_max"
    assert why(one({"ramcount": ramcount, "baseramcount": 4000}, maxrss=3600.0)) is None


def test_compensation():
    """002, ATLAS Production Job Brokerage: where compensation is 0.9, avoiding sending jobs to high-memory queues when
    their expected memory usage is close to the lower limit.

    2000 × 8 MB are over the lower limit of 15,000 MB, 90 % of it are not.
    """
    assert why(one(minrss=15_000.0)) == "memory_min"
    assert why(one({"ramcount": 2111}, maxrss=15_199.0)) == "memory_max"  # 15,199.2 MB


def test_range_of_memory():
    """002, ATLAS Production Job Brokerage: Queues are skipped if the estimated memory usage is not included in the
    acceptable memory ranges.
    """
    assert whys(
        one(minrss=14_400.0, maxrss=14_400.0), one(minrss=14_401.0), one(maxrss=14_399.0)
    ) == [None, "memory_min", "memory_max"]


# ---- checks: scratch disk


def test_direct_access():
    """002, ATLAS Production Job Brokerage: Skip queues if they don’t support direct access to read input files from the
    local storage, although the task is configured to use only direct access.
    """
    assert whys(
        one({"allowinputlan": "only"}, direct_access_lan=False),
        one({"allowinputlan": "only"}, direct_access_lan=True),
        one({"allowinputlan": "use"}, direct_access_lan=False),
    ) == ["direct_access", None, None]


def needs(mb: float, task: dict[str, Any], **queue: Any) -> None:
    """Hold a job to need so many MB of scratch: a slot of that size is skipped, one of a little more is not."""
    single = task | {"corecount": 1}
    assert why(one(single, corecount=1, maxwdir=float(mb), **queue)) == "scratch_disk"
    assert why(one(single, corecount=1, maxwdir=mb + 0.5, **queue)) is None


OUTPUT = {
    "atom_size": 100 * MB,
    "atom_nevents": 1000,
    "outdiskcount": 2,
    "outdiskunit": "MBPerEvent",
}


def test_disk_usage():
    """002, ATLAS Production Job Brokerage: The disk usage for a job is estimated as inputDiskCount + max (1.5 GB,
    outDiskCount × nEvents or outDiskCount × inputDiskCount) + max (300 MB, workDiskCount)
    """
    needs(100 + 2000 + 400, OUTPUT | {"workdiskcount": 400})
    needs(100 + 2000 + 300, OUTPUT | {"workdiskcount": 299})
    needs(100 + 2000 + 300, OUTPUT | {"workdiskcount": None})
    needs(100 + 1500 + 300, OUTPUT | {"outdiskcount": 1})


def test_size_of_the_input():
    """002, ATLAS Production Job Brokerage: inputDiskCount is the total size of job input files, a discrete function of
    nEvents.
    """
    needs(700 + 2000 + 300, OUTPUT | {"atom_size": 700 * MB})


def test_what_output_scales_with():
    """002, ATLAS Production Job Brokerage: nEvents is the smallest number of events in a single job allowed based on the
    task requirements and is used to estimate the output size by multiplying outDiskCount when outDiskCountUnit ends with
    “PerEvents”, otherwise, inputDiskCount is used.

    The unit is MBPerEvent, without the s. The input is all of it, whatever part of the master's files is used.
    """
    needs(100 + 2 * 900 + 300, OUTPUT | {"atom_nevents": 900})
    by_input = {"atom_size": 1000 * MB, "atom_size_effective": 10.0, "outdiskunit": "MB"}
    needs(1000 + 2 * 1000 + 300, OUTPUT | by_input)


def test_input_that_is_read_in_place():
    """002, ATLAS Production Job Brokerage: inputDiskCount is zero if the queues are configured to read input files
    directly from the local storage.

    In the first term; the output is what it is. Production asks the task too.
    """
    large = {"atom_size": 100 * GB}
    world = one(large, maxwdir=5000.0 * 8, direct_access_lan=True)
    assert whys(world, one(large, maxwdir=5000.0 * 8)) == [None, "scratch_disk"]
    assert reasons(world.decided("production")) == {"SITE": "scratch_disk"}
    needs(2000 + 300, OUTPUT, maxinputsize=-1)
    needs(2000 + 300, OUTPUT | {"allowinputlan": "use"}, direct_access_lan=True)
    needs(2 * 1000 + 300, OUTPUT | {"atom_size": 1000 * MB, "outdiskunit": "MB"}, maxinputsize=-1)


def test_maxwdir_is_shared_by_cores():
    """002, ATLAS Production Job Brokerage: maxwdir is divided by coreCount at each queue and the resultant value must be
    larger than the expected disk usage.

    100 + 1500 + 300 MB, for jobs of 8 cores too.
    """
    assert whys(one(maxwdir=8 * 1900.0), one(maxwdir=8 * 1900.5)) == ["scratch_disk", None]


# ---- checks: storage


def disk(**columns: Any) -> World:
    return one().change("storage_endpoints", DISK, **columns)


def test_free_space():
    """002, ATLAS Production Job Brokerage: DISK size check, free space in the local storage has to be over 200GB."""
    assert whys(
        disk(space_free=200.0),
        disk(space_free=200.1),
        disk(space_free=200.0, space_expired=900.0),
        disk(space_free=200.1, space_min_free=900.0, space_unavailable=900.0),
    ) == ["storage_space", None, "storage_space", None]


def test_endpoints_of_any_type():
    """002, ATLAS Production Job Brokerage: Skip queues if their storage endpoints are blacklisted:

    One good endpoint is enough; what a queue does not have is not blacklisted.
    """
    assert whys(disk(type="SCRATCHDISK"), disk(type=None, read_lan="OFF")) == [
        None,
        "read_lan_down",
    ]
    world = disk(read_lan="OFF").endpoint("OTHER")
    place = {"panda_queue": "SITE", "direction": "input", "ddm_endpoint_name": "OTHER"}
    assert why(world.add("queue_endpoints", **place)) is None
    bare = one()
    bare.tables["queue_endpoints"] = []
    assert why(bare) is None


@pytest.mark.parametrize("status", ["OFF", "TEST", "SOMETHING"])
def test_input_is_read_over_lan(status):
    """002, ATLAS Production Job Brokerage: Input endpoints must be locally readable over LAN (read_lan=ON)."""
    assert whys(disk(read_lan="ON"), disk(read_lan=status)) == [None, "read_lan_down"]


def test_output_is_written_over_lan():
    """002, ATLAS Production Job Brokerage: Output endpoints must be locally writable over LAN (write_lan=ON)."""
    assert why(disk(write_lan="OFF")) == "write_lan_down"


def test_queues_of_the_nucleus_use_no_wan():
    """002, ATLAS Production Job Brokerage: For sattelite queues in addition:"""
    world = World().queue("HOME", site="NUC").data(1).endpoint("X_DATADISK")
    world.change("replicas", ddm_endpoint_name="X_DATADISK")
    closed = world.change("storage_endpoints", NUC_DISK, write_wan="OFF", read_wan="OFF")
    assert reasons(closed.decided()) == {"HOME": None}


def test_satellites_receive_over_wan():
    """002, ATLAS Production Job Brokerage: Input endpoints must be able to receive files over WAN (write_wan=ON)."""
    assert why(disk(write_wan="OFF")) == "write_wan_down"


def test_satellites_send_over_wan():
    """002, ATLAS Production Job Brokerage: Output endpoints must be able to send files over WAN (read_wan=ON)."""
    assert why(disk(read_wan="OFF")) == "read_wan_down"


@pytest.mark.parametrize("access", ["write_wan", "read_wan"])
def test_the_nucleus_receives_and_sends_over_wan(access):
    """002, ATLAS Production Job Brokerage: The nucleus storage endpoints must allow receivng and sending files over WAN
    (write_wan=ON and read_wan=ON).

    Asked of its default output endpoint, for satellites.
    """
    world = World().queue("FAR").queue("HOME", site="NUC")
    found = world.change("storage_endpoints", NUC_DISK, **{access: "OFF"}).decided()
    assert reasons(found) == {"FAR": "nucleus_unwritable", "HOME": None}


# ---- checks: wall time


UNDEFINED = {"cputime": None}


@pytest.mark.parametrize("task", [SCOUT, UNDEFINED, {"site": "SITE", **SCOUT}])
def test_scouts_and_unknown_jobs_need_a_day(task):
    """002, ATLAS Production Job Brokerage: For scout or walltime-undefined jobs, skip queues if their maxtime is less than
    24 hours.
    """
    assert why(one(task, maxtime=86_399)) == "walltime_24h"
    assert why(one(task, maxtime=86_400)) is None
    assert why(one(task, maxtime=0)) is None  # 0 is no limit
    assert why(one(MERGING, maxtime=86_399)) is None


TIME = {"cputime": 100.0, "atom_nevents": 1000, "basewalltime": 600.0, "cpuefficiency": 50.0}
"""100 × 1000 / (8 cores × 10 HS06 × 0.5) + 600 = 3100 s."""


def test_walltime_of_a_job():
    """002, ATLAS Production Job Brokerage: The estimated walltime for a job is (cpuTime × nEvents) / (C × P ×
    cpuEfficiency) + baseTime
    """
    assert whys(one(TIME, maxtime=3100), one(TIME, maxtime=3099)) == [None, "walltime_max"]


def test_events_of_the_walltime():
    """002, ATLAS Production Job Brokerage: nEvents is the same as the one used to estimate the disk usage."""
    half = TIME | {"atom_nevents": 500}
    assert whys(one(half, maxtime=1850), one(half, maxtime=1849)) == [None, "walltime_max"]


def test_walltime_lies_between_the_limits():
    """002, ATLAS Production Job Brokerage: The estimated walltime must be between mintime and maxtime at the queue."""
    assert whys(
        one(TIME, mintime=3100, maxtime=3100), one(TIME, mintime=3101), one(TIME, maxtime=3099)
    ) == [None, "walltime_min", "walltime_max"]


def test_unknown_walltimes_are_not_short():
    """002, ATLAS Production Job Brokerage: The estimated walltime must be between mintime and maxtime at the queue.

    What is not known is not estimated: another sentence is about walltime-undefined jobs.
    """
    world = one(UNDEFINED, mintime=3600)
    assert why(world) is None
    assert reasons(world.decided("production"))["SITE"] == "walltime_min"


# ---- checks: connectivity, event service


def connected(
    queue: str | None, network: str | None = None, stack: str | None = None
) -> str | None:
    return why(one({"ipconnectivity": network, "ipstack": stack}, wnconnectivity=queue))


def test_connectivity_matters_to_tasks_that_ask():
    """002, ATLAS Production Job Brokerage: wnconnectivity of the queue must be consistent if the task specifies
    ipConnectivity.
    """
    assert connected("none#IPv6", "full", "IPv4") == "connectivity"
    assert [connected(queue) for queue in ("none#IPv6", "http", "full#IPv4", None)] == [None] * 4


def test_format_of_connectivity():
    """002, ATLAS Production Job Brokerage: The format of wnconnectivity and ipConnectivity is
    network_connectivity#ip_stack.
    """
    found = parse_connectivity("http#IPv6")
    assert (found.network, found.ip_stack) == ("http", "IPv6")
    assert connected("http#IPv6", "http", "IPv6") is None
    assert connected("http#IPv6", "http#IPv6") is None
    assert connected("full#IPv4", "http#IPv6") == "ip_stack"
    assert connected("none#IPv6", "http#IPv6") == "connectivity"


def test_full_connectivity():
    """002, ATLAS Production Job Brokerage: full: to accept any tasks since outbound network connectivity is fully
    available,
    """
    assert [connected("full", asked) for asked in ("full", "http", "none", None)] == [None] * 4


def test_http_connectivity():
    """002, ATLAS Production Job Brokerage: http: to accept tasks with network_connectivity=http or none since only http
    access is available, or
    """
    assert [connected("http", asked) for asked in ("http", "none", None)] == [None] * 3
    assert connected("http", "full") == "connectivity"


def test_no_connectivity():
    """002, ATLAS Production Job Brokerage: none: to accept tasks with network_connectivity=none since no outbound network
    connectivity is available,
    """
    assert connected("none", "none") is None
    assert [connected("none", asked) for asked in ("http", "full")] == ["connectivity"] * 2


def test_ipv4():
    """002, ATLAS Production Job Brokerage: IPv4: to accept tasks with ip_stack=IPv4,"""
    assert connected("full#IPv4", "full", "IPv4") is None
    assert connected("full#IPv4", "full", "IPv6") == "ip_stack"
    assert connected("full#IPv4", "full") == "ip_stack"


def test_ipv6():
    """002, ATLAS Production Job Brokerage: IPv6: to accept tasks with ip_stack=IPv6, or"""
    assert connected("full#IPv6", "full", "IPv6") is None
    assert connected("full#IPv6", "full", "IPv4") == "ip_stack"


def test_no_ip_stack():
    """002, ATLAS Production Job Brokerage: ‘’ (unset): to accept tasks without specifying ip_stack."""
    assert connected("full", "full") is None
    assert connected("full", "full", "IPv4") == "ip_stack"


def test_event_service_and_dynamic_numbers_of_events():
    """002, ATLAS Production Job Brokerage: Settings for event service and the dynamic number of events.

    ``jobseed`` says who is welcome. Jobs of 10 to 1000 events fill 1250 s × 8 × 10 HS06 with the last of them.
    """
    assert whys(
        one({"eventservice": 1}, jobseed="std"),
        one({"eventservice": 1}, jobseed="es"),
        one(jobseed="es"),
    ) == ["event_service_std", None, "event_service_only"]
    dynamic = {"dynamicnumevents": 10, "atom_nevents": 10}
    assert whys(
        one(dynamic | {"max_consecutive_events": 1000}, mintime=1250),
        one(dynamic | {"max_consecutive_events": 999}, mintime=1250),
    ) == [None, "walltime_min"]


# ---- checks: transfers, nucleus, pilots, network, shortage


@pytest.mark.parametrize("site", ["SITE", "NUC"])
def test_transferring_jobs(site):
    """002, ATLAS Production Job Brokerage: Too many transferring jobs: skip if transferring > max(transferring_limit, 2 x
    running), where transferring_limit limit is defined by site or 2000 if undefined.

    At the nucleus too, and wherever they go.
    """

    def moving(number: int, running: int, limit: int | None) -> str | None:
        world = World().queue("SITE", site=site, running=running, transferringlimit=limit)
        return why(world.jobs("SITE", transferring=number))

    assert (moving(2000, 100, None), moving(2001, 100, None)) == (None, "transferring")
    assert (moving(300, 100, 300), moving(301, 100, 300)) == (None, "transferring")
    assert (moving(200, 100, 150), moving(201, 100, 150)) == (None, "transferring")


def test_jobs_that_stay_at_the_nucleus():
    """002, ATLAS Production Job Brokerage: Use only the queues associated with the nucleus if the task sets t1Weight=-1 and
    normal jobs are being generated.
    """

    def kept(**task: Any) -> dict[str, str | None]:
        return reasons(World(**task).queue("HOME", site="NUC").queue("FAR").decided())

    assert kept(t1weight=-1) == {"HOME": None, "FAR": "t1_weight"}
    for task in ({"t1weight": -1} | MERGING, {"t1weight": -2}, {"t1weight": 1}, {}):
        assert kept(**task) == {"HOME": None, "FAR": None}


@pytest.mark.parametrize("task", [{}, {"site": "SITE"}, {"prodsourcelabel": "test"}])
def test_queues_without_pilots(task):
    """002, ATLAS Production Job Brokerage: Skip queues without pilots for the last 3 hours."""
    assert whys(
        one(task, pilots=1),
        one(task, pilots=0),
        one(task, pilots=0).add("slots", panda_queue="SITE", numslots=8),
    ) == [None, "no_pilot", "no_pilot"]


def test_express_work_needs_a_network():
    """002, ATLAS Production Job Brokerage: If processingType=*urgent* or priority ≥ 1000, the Network weight must be larger
    than or equal to NW_THRESHOLD×NW_WEIGHT_MULTIPLIER(both defined in gdpconfig).

    30 of 300 files and 30 MB/s weigh (1.9 + 1.5) / 2 = 1.7.
    """
    settings = {"NW_THRESHOLD": 1.7, "NW_WEIGHT_MULTIPLIER": 1}

    def linked(queued: float, **task: Any) -> World:
        return one(task).link("SITE", queued=queued, mbps=30.0)

    for task in (
        {"processingtype": "urgent"},
        {"processingtype": "evgen-urgent"},
        {"currentpriority": 1000},
    ):
        assert whys(linked(30, **task), linked(31, **task), **settings) == [
            None,
            "network_weight_low",
        ]
        assert why(linked(30, **task), NW_THRESHOLD=1.7, NW_WEIGHT_MULTIPLIER=2) is not None
    assert why(linked(149, currentpriority=999), **settings) is None


def test_shortage_of_work():
    """002, ATLAS Production Job Brokerage: When WORK_SHORTAGE in gdpconfig is set to True, the following queues are
    skipped: Opportunistic queues defined with pledgedcpu=-1.
    """
    for task in ({}, {"site": "SITE"}):
        assert why(one(task, pledgedcpu=-1), WORK_SHORTAGE=True) == "opportunistic_shortage"
        assert why(one(task, pledgedcpu=-1), WORK_SHORTAGE=False) is None


@pytest.mark.parametrize(("cores", "expected"), [(10, None), (11, "pledge_exceeded")])
def test_pledges_in_a_shortage(cores, expected):
    """002, ATLAS Production Job Brokerage: Partially pledged queues defined with positive pledgedcpu when the total number
    of running cores is larger than pledgedcpu.
    """
    world = one(pledgedcpu=10)
    for status, number in (("running", cores), ("starting", 50)):
        world.add("core_stats", computingsite="SITE", jobstatus=status, ncores=number)
    assert why(world, WORK_SHORTAGE=True) == expected


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
) -> int:
    """Return the running jobs that count at a queue of 8 cores."""
    world = one({"currentpriority": 500} | task, running=running, activated=1)
    world.jobs("SITE", starting=starting)
    for status, number in (("running", workers // 2), ("submitted", workers - workers // 2)):
        world.add("worker_stats", panda_queue="SITE", status=status, n_workers=number)
    if slots is not None:
        world.add("slots", panda_queue="SITE", numslots=slots)
    return int(weighed(world)["nrunning"])


def test_the_weight_is_of_running_and_queued_jobs():
    """002, ATLAS Production Job Brokerage: Calculate brokerage weight for remaining candidates. The initial weight is based
    on running vs queued jobs.
    """
    world = World(nucleus=None).queue("A", running=99, activated=15).queue("B", running=99)
    world.queue("C", running=59, activated=10)
    assert ranking(world.decided()) == ["B", "A", "C"]  # 100 / 20, 100 / 25, 60 / 20


def test_the_largest_number_of_running_jobs():
    """002, ATLAS Production Job Brokerage: The brokerage uses the largest one as the number of running jobs among the
    following numbers:
    """
    assert counted(15, workers=18, slots=17) == 18
    assert counted(15, workers=16, slots=17) == 17
    assert counted(15, workers=14, slots=13) == 15


def test_the_actual_number_of_running_jobs():
    """002, ATLAS Production Job Brokerage: The actual number of running jobs at the queue, Rreal."""
    assert counted(25) == 25


def test_jobs_of_all_shares_count():
    """002, ATLAS Production Job Brokerage: The actual number of running jobs at the queue, Rreal.

    The page names no share, neither here nor of what waits; production counts those of the task's share.
    """
    world = one({"nucleus": None, "currentpriority": 500}, running=25, activated=30)
    world.jobs("SITE", gshare="Other", running=10, activated=30, defined=5, starting=5)
    found = weighed(world)
    assert found["nrunning"] == 35
    assert found["work"] == near(36 / (60 + 5 + 5 + 10))
    world.jobs("SITE", gshare="Other", running=7)
    assert why(world) == "queued_cap"  # 60 + 5 > 2 x 32
    assert why(world.jobs("SITE", gshare="Other", activated=0, starting=0)) is None


@pytest.mark.parametrize(
    ("running", "workers", "expected"),
    [(5, 15, 15), (5, 30, 20), (19, 30, 20), (20, 30, 20), (5, 4, 5)],
)
def test_batch_workers(running, workers, expected):
    """002, ATLAS Production Job Brokerage: min(nBatchJob, 20) if Rreal < 20 and nBatchJob (the number of running+submitted
    batch workers at PQ) > Rreal. Mainly for bootstrap.
    """
    assert counted(running, workers=workers) == expected
    assert counted(running, workers=workers, currentpriority=5000) == expected


def test_slots_that_are_set():
    """002, ATLAS Production Job Brokerage: numSlots if it is set to a positive number for the queue to the proactive job
    assignment.
    """
    assert counted(5, slots=80) == 80


def test_slots_that_are_zero():
    """002, ATLAS Production Job Brokerage: The number of starting jobs if numSlots is set to zero, which is typically
    useful for Harvester to fetch jobs when the number of available slots dynamically changes.
    """
    assert counted(20, slots=0, starting=30) == 30
    assert counted(20, slots=None, starting=30) == 20


# ---- the weight: factors


JOBS = {"defined": 2, "assigned": 15, "activated": 10, "starting": 3}


def full(held: int | None = None, task: dict[str, Any] | None = None, **jobs: int) -> World:
    """Return a queue with 49 running jobs that holds so many of 10 files of 1 GB; no input without a number."""
    world = one({"nucleus": None} | (task or {}), running=49).jobs("SITE", **(JOBS | jobs))
    return world if held is None else world.data(10, size=GB, here={"SITE": held})


def near(value: float) -> Any:
    return pytest.approx(value, rel=1e-12)


def test_assigned_jobs_where_the_input_is():
    """002, ATLAS Production Job Brokerage: The number of assigned jobs is ignored for the weight calculation and the
    subsequent filtering if the input for the jobs being considered is already available locally.
    """
    assert weighed(full(10))["work"] == near(50 / (10 + 3 + 2 + 10))
    assert weighed(full(9))["work"] == near(50 / (10 + 15 + 3 + 2 + 10) / 1.5)
    assert why(full(10, assigned=900)) is None


def test_jobs_that_wait_for_data_block_no_others():
    """002, ATLAS Production Job Brokerage: Jobs waiting for data transfer do not block new jobs needing no transfer."""
    assert why(full(10, assigned=84)) is None
    assert why(full(9, assigned=84)) == "queued_cap"  # 99 jobs, 2 × 49 may


@pytest.mark.parametrize(
    ("assigned", "activated", "expected"),
    [(15, 10, 1.5), (10, 10, 1), (0, 10, 1), (20, 10, 2), (30, 10, 2), (5, 0, 2), (0, 0, 1)],
)
def test_many_assigned(assigned, activated, expected):
    """002, ATLAS Production Job Brokerage: manyAssigned = max(1, min(2, assigned / activated))

    Without activated jobs it is the limit: 2, or 1 where none is assigned.
    """
    found = weighed(full(0, assigned=assigned, activated=activated))
    assert found["work"] == near(50 / (activated + assigned + 3 + 2 + 10) / expected)


def test_the_basic_weight():
    """002, ATLAS Production Job Brokerage: weight = (running + 1) / ((activated + assigned + starting + defined + 10) ×
    manyAssigned)
    """
    assert weighed(full(0))["work"] == near((49 + 1) / ((10 + 15 + 3 + 2 + 10) * 1.5))


def test_available_input():
    """002, ATLAS Production Job Brokerage: Take data availability into consideration. weight = weight × (availableSize +
    totalSize) / (totalSize × (numMissingFiles / 100 + 1))
    """
    found = weighed(full(6))
    assert found["data"] == near((6 + 10) / (10 * (4 / 100 + 1)))
    assert found["weight"] == near(found["work"] * found["data"])


@pytest.mark.parametrize(
    "task", [{"t1weight": 7}, {"iointensity": 501}, {"currentpriority": 900}, SCOUT]
)
def test_the_weight_is_the_product_of_three(task):
    """002, ATLAS Production Job Brokerage: Apply a Network weight based on connectivity between nucleus and satellite,
    since the output files are aggregated to the nucleus. weight = weight × networkWeight

    Nothing else: neither the nucleus nor a preferred CPU counts more.
    """
    satellite = weighed(one(task).link("SITE", queued=30, mbps=80.0))
    assert satellite["weight"] == near(101 / 20 * 1.85)  # (1.9 + 1.8) / 2
    home = weighed(World(**task).queue("HOME", site="NUC"))
    assert home["weight"] == near(101 / 20 * 2.5)
    assert weighed(levelled(40.0))["weight"] == near(101 / 20)


# ---- filters after the weight, ranks


EXPRESS, UNIFIED = {"processingtype": "urgent"}, {"capability": "ucore"}


@pytest.mark.parametrize(("task", "queue"), [({}, {}), (EXPRESS, {}), ({}, UNIFIED)])
def test_activated_and_starting_jobs(task, queue):
    """002, ATLAS Production Job Brokerage: Skip queues if activated + starting > 2 × running."""

    def waiting(running: int, **jobs: int) -> str | None:
        return why(one(task, running=running, **queue).jobs("SITE", **jobs), NW_THRESHOLD=0)

    assert waiting(10, activated=15, starting=5) is None
    assert waiting(10, activated=15, starting=6) == "queued_cap"
    assert waiting(0, activated=0) is None
    assert waiting(0, activated=1) == "queued_cap"


@pytest.mark.parametrize(("task", "queue"), [({}, {}), (EXPRESS, {}), ({}, UNIFIED)])
def test_all_queued_jobs(task, queue):
    """002, ATLAS Production Job Brokerage: Skip queues if defined+activated+assigned+starting > 2 × running."""

    def waiting(defined: int) -> str | None:
        jobs = {"activated": 5, "starting": 5, "assigned": 5, "defined": defined}
        world = one(task, running=10, **queue).jobs("SITE", **jobs).data(1)
        return why(world, NW_THRESHOLD=0)

    assert (waiting(5), waiting(6)) == (None, "queued_cap")


def test_a_task_without_queues_waits_an_hour():
    """002, ATLAS Production Job Brokerage: If all queues are skipped, the task is pending for 1 hour."""
    tasks = one(status="offline").decided().tasks.row(0, named=True)
    assert (tasks["outcome"], tasks["pending_until"]) == ("no_candidates", AT + timedelta(hours=1))
    assert one().decided().tasks["pending_until"].item() is None


def test_the_best_ten_by_weight():
    """002, ATLAS Production Job Brokerage: Otherwise, the remaining candidates are sorted by weight, and the best 10
    candidates are taken.

    A queue without any job stands where its weight puts it; equals stand by name.
    """
    world = World(nucleus=None, currentpriority=0)
    for number, running in enumerate((0, 5, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10)):
        world.queue(f"Q{number:02}", running=running, activated=0)
    found = world.decided()
    best = ["Q11", "Q10", "Q09", "Q08", "Q07", "Q01", "Q06", "Q05", "Q04", "Q03"]
    assert ranking(found) == best
    checks = reasons(found)
    assert (checks["Q00"], checks["Q02"]) == ("rank", "rank")


# ---- the network weight


def network(world: World) -> float:
    return float(weighed(world)["network"])


def test_two_sources():
    """002, Network Weight: the Network Weather Service as the dynamic source, and the CRIC closeness as a semi static
    source.

    Half the weight is that of the queue, 2 without files.
    """
    dynamic = one().link("SITE", mbps=80.0, closeness=11)
    assert network(dynamic) == near((2 + 1.8) / 2)
    assert network(one().link("SITE", mbps=None, closeness=0)) == near((2 + 2) / 2)


@pytest.mark.parametrize(
    ("known", "expected"),
    [
        (("1h", "1d", "1w"), 2.0),
        (("1h",), 2.0),
        (("1d", "1w"), 1.8),
        (("1d",), 1.8),
        (("1w",), 1.2),
    ],
)
def test_the_most_recent_data(known, expected):
    """002, Network Weight: It uses the most recent available data, so preferably data of the last 1 hour, if not available
    of last 1 day, if not available of last 1 week.
    """
    speeds = {"1h": 250.0, "1d": 80.0, "1w": 5.0}
    world = one().link("SITE", mbps=None)
    for window in known:
        place = {"src": "SITE", "dst": "NUC", "key": f"dashb_mbps_{window}"}
        world.add("network_matrix", **place, value=speeds[window], ts=AT)
    assert network(world) == near((2 + expected) / 2)


def test_throughput_is_that_of_transfers():
    """002, Network Weight: FTS Mbps are used, which are filled from Chicago elastic search."""
    world = one().link("SITE", mbps=None, closeness=11)
    place = {"src": "SITE", "dst": "NUC", "ts": AT}
    world.add("network_matrix", **place, key="perfsonar_mbps", value=900.0)
    assert network(world) == near((2 + 1) / 2)
    world.add("network_matrix", **place, key="dashb_mbps_1h", value=900.0)
    assert network(world) == near((2 + 2) / 2)


@pytest.mark.parametrize(("closeness", "expected"), [(0, 2.0), (5.5, 1.5), (11, 1.0)])
def test_closeness_without_metrics(closeness, expected):
    """002, Network Weight: If there are no available network metrics, the AGIS closeness (0 best to 11 worst) is used in a
    normalized way
    """
    assert network(one().link("SITE", mbps=None, closeness=closeness)) == near((2 + expected) / 2)
