"""Cases of the analysis job brokerage (002); tasks and queues are harmless unless a case says otherwise."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

import polars as pl
import pytest

from brokerlab.brokerage.analysis_jobs import AnalysisRules, decide
from brokerlab.gdpconfig import Config
from brokerlab.units import MB
from tests.one_value import throttle
from tests.unit.brokerage.analysis_jobs.toys import AT, SHARE, World, checks_of

CAPS = {
    "CAP_RUNNING_USER_JOBS": 100,
    "CAP_RUNNING_USER_CORES": 200,
    "CAP_RUNNING_GROUP_JOBS": 1000,
    "CAP_RUNNING_GROUP_CORES": 2000,
}
PRODUCTION = "production"


def held(task: dict[str, Any] | None = None, *, rules: str = "document", **tables: Any) -> Any:
    """Return which rule holds a task of alice back."""
    row = {"jeditaskid": 1, "at": AT, "username": "alice", "gshare": SHARE} | (task or {})
    config = Config.empty().with_values(
        {f"pandaserver/prio_mgr/{key}": value for key, value in CAPS.items()}
    )
    frames = {name: pl.DataFrame([found]) for name, found in tables.items()}
    found = throttle(
        {"tasks": pl.DataFrame([row]), **frames}, rules=AnalysisRules(rules), config=config
    )
    return found["throttle"].item()


def of_alice(**counts: int) -> dict[str, Any]:
    return {"origusername": "alice"} | counts


def of_class(task_class: int, usage: float) -> dict[str, Any]:
    return {
        "task_class": {"jeditaskid": 1, "class": task_class},
        "gshare_usage": {"gshare": SHARE, "usage_perc": usage},
    }


def check(world: World, rules: str | AnalysisRules = "document", **settings: Any) -> Any:
    """Return why queue Q is skipped; null: it is a candidate."""
    return world.checks(rules, **settings)["Q"]


def checks(worlds: list[World], rules: str | AnalysisRules = "document") -> list[Any]:
    """Return the same of several worlds, decided at once."""
    return [found["Q"] for found in checks_of(worlds, rules)]


def weighed(world: World, rules: str | AnalysisRules = "document", **settings: Any) -> Any:
    """Return what is reported of queue Q, which no single check removed."""
    rows = world.decided(rules, **settings).weighed.filter(pl.col("panda_queue") == "Q")
    return rows.row(0, named=True)


def loop(world: World, rules: str | AnalysisRules = "document", **settings: Any) -> Any:
    """Return whether the first loop decided, which asks for the input, or the second one."""
    return world.decided(rules, **settings).tasks["loop"].item()


def with_input(**task: Any) -> World:
    """A task whose input is at P and not at Q."""
    world = World(**task).queue("P").queue("Q")
    world.add("datasets", datasetname="D", is_master=True)
    return world.add("replicas", datasetname="D", ddm_endpoint_name="P_DISK", found=1, total=1)


def waiting(number: int, running: int = 0, **jobs: Any) -> World:
    world = World().queue("Q").jobs("Q", "activated", number, **jobs)
    return world.jobs("Q", "running", running, **jobs)


def with_users(world: World, **users: tuple[int, int]) -> World:
    """Add the waiting and running jobs of users at Q."""
    for name, (queued, running) in users.items():
        row = {"computingsite": "Q", "gshare": SHARE, "produsername": name}
        world.add("user_job_stats", **row, nqueue=queued, nrunning=running)
    return world


# ---- the throttle


def test_the_jobs_of_the_working_group_count():
    """002, ATLAS Analysis Job Brokerage: for the user (or the working group if the task specifies workingGroup)"""
    task = {"workinggroup": "higgs"}
    assert held(user_totals=of_alice(nrunjobs=101)) == "cap_running_jobs"
    assert held(task, user_totals=of_alice(nrunjobs=5000)) is None
    of_group = {"workinggroup": "higgs", "nrunjobs": 1001}
    assert held(task, user_totals=of_group) == "cap_running_jobs"


@pytest.mark.parametrize(
    ("count", "rule"),
    [
        ({"nrunjobs": 101}, "cap_running_jobs"),
        ({"nqueuedjobs": 201}, "cap_queued_jobs"),
        ({"nruncores": 201}, "cap_running_cores"),
        ({"nqueuedcores": 401}, "cap_queued_cores"),
    ],
)
def test_any_condition_throttles(count, rule):
    """002, ATLAS Analysis Job Brokerage: if ANY of the following conditions holds

    Also where nothing else is known of the user, and for merge jobs, which the page does not exempt.
    """
    assert held(user_totals=of_alice(**count)) == rule
    assert held({"is_merging": True}, user_totals=of_alice(**count)) == rule
    assert held(user_totals=of_alice(**count), rules=PRODUCTION) is None


def test_the_cap_on_running_jobs():
    """002, ATLAS Analysis Job Brokerage: the number of running jobs is larger than CAP_RUNNING_USER_JOBS"""
    assert held(user_totals=of_alice(nrunjobs=100)) is None
    assert held(user_totals=of_alice(nrunjobs=101)) == "cap_running_jobs"


def test_the_cap_on_queued_jobs():
    """002, ATLAS Analysis Job Brokerage: the number of queued jobs is larger than 2 × CAP_RUNNING_USER_JOBS"""
    assert held(user_totals=of_alice(nqueuedjobs=200)) is None
    assert held(user_totals=of_alice(nqueuedjobs=201)) == "cap_queued_jobs"


def test_the_cap_on_running_cores():
    """002, ATLAS Analysis Job Brokerage: the number of running cores is larger than CAP_RUNNING_USER_CORES"""
    assert held(user_totals=of_alice(nruncores=200)) is None
    assert held(user_totals=of_alice(nruncores=201)) == "cap_running_cores"


def test_the_cap_on_queued_cores():
    """002, ATLAS Analysis Job Brokerage: the number of queued cores is larger than 2 × CAP_RUNNING_USER_CORES"""
    assert held(user_totals=of_alice(nqueuedcores=400)) is None
    assert held(user_totals=of_alice(nqueuedcores=401)) == "cap_queued_cores"


def test_the_caps_of_working_groups():
    """002, ATLAS Analysis Job Brokerage: For the working group it uses CAP_RUNNING_GROUP_JOBS and
    CAP_RUNNING_GROUP_CORES instead.
    """
    task, group = {"workinggroup": "higgs"}, {"workinggroup": "higgs"}
    assert held(task, user_totals=group | {"nrunjobs": 1000, "nqueuedcores": 4000}) is None
    assert held(task, user_totals=group | {"nqueuedjobs": 2001}) == "cap_queued_jobs"
    assert held(task, user_totals=group | {"nruncores": 2001}) == "cap_running_cores"


def test_the_global_disk_quota():
    """002, ATLAS Analysis Job Brokerage: the global disk quota exceeds

    The page names no other quota: being near it, or not knowing the local ones, throttles in production alone.
    """
    assert held(quota={"global_quota_ok": False}) == "global_quota"
    assert held(quota={"near_global_limit": True}) is None
    assert held(quota={"near_global_limit": True}, rules=PRODUCTION) == "near_global_quota"
    assert held(quota={"local_quota_ok": False}) is None
    assert held(quota={"local_quota_ok": False}, rules=PRODUCTION) == "quota_unavailable"


def test_other_shares_are_immune():
    """002, ATLAS Analysis Job Brokerage: Currently this part of throttle is only for User Analysis share. Tasks
    in other shares are immune to it
    """
    assert held(**of_class(-1, 9.0)) == "gshare_class_c"
    assert held({"gshare": "Express Analysis"}, **of_class(-1, 9.0)) is None


def test_class_c():
    """002, ATLAS Analysis Job Brokerage: the User Analysis task is in class C , and User Analysis share usage >
    90% of its target
    """
    assert held(**of_class(-1, 0.90)) is None
    assert held(**of_class(-1, 0.91)) == "gshare_class_c"
    assert held(**of_class(2, 9.0)) is None  # class S is not named


def test_class_b():
    """002, ATLAS Analysis Job Brokerage: the User Analysis task is in class B , and User Analysis share usage >
    95% of its target
    """
    assert held(**of_class(0, 0.95)) is None
    assert held(**of_class(0, 0.96)) == "gshare_class_b"


@pytest.mark.parametrize(
    ("slots", "usage", "rule"),
    [
        (500, 2.0, None),  # max(1000 / 500, 1) * 100 % = 200 %
        (500, 2.01, "gshare_class_a"),
        (1000, 1.0, None),  # max(1000 / 1000, 1) * 100 % = 100 %
        (1000, 1.01, "gshare_class_a"),
        (0, 99.0, None),  # no slot: no limit
    ],
)
def test_class_a(slots, usage, rule):
    """002, ATLAS Analysis Job Brokerage: User Analysis share usage > max(USER_USAGE_THRESHOLD_A/(# of user’s
    running slots in hi-sites), 1)*100% of its target
    """
    user = {"user": "alice", "rem_slots_a": 1000.0 - slots}
    assert held(**of_class(1, usage), user_eval=user) == rule


def test_class_a_of_a_user_of_whom_nothing_runs():
    """002, ATLAS Analysis Job Brokerage: max(USER_USAGE_THRESHOLD_A/(# of user’s running slots in hi-sites), 1)

    No row is no running slot; production takes half of the threshold.
    """
    others = {"user_eval": {"user": "bob"}}
    assert held(**of_class(1, 2.01), **others) is None
    assert held(**of_class(1, 2.01), **others, rules=PRODUCTION) == "gshare_class_a"


# ---- preliminary candidates


def test_lists_come_before_the_filters():
    """002, ATLAS Analysis Job Brokerage: Next, the brokerage generates the list of preliminary candidates"""
    world = World(excludedsite=["Q"], limitedsites=True).queue("Q", status="offline")
    assert check(world) == "excluded"
    assert check(world, PRODUCTION) == "status"


@pytest.mark.parametrize(
    ("kind", "there"), [("analysis", True), ("unified", True), ("production", False)]
)
def test_types_of_queues(kind, there):
    """002, ATLAS Analysis Job Brokerage: Take all queues with type=’analysis’ or ‘unified’."""
    world = World().queue("P").queue("Q", type=kind, catchall="grandly_unified")
    assert ("Q" in world.checks()) == there
    assert "Q" in world.checks(PRODUCTION)


def test_excluded_sites():
    """002, ATLAS Analysis Job Brokerage: Exclude queues if excludedSite is specified and the queues are included in
    the list.
    """
    world = World(excludedsite=["Q"]).queue("P").queue("Q")
    assert world.checks() == {"P": None, "Q": "excluded"}
    assert world.checks(PRODUCTION) == {"P": None, "Q": None}


def test_included_sites():
    """002, ATLAS Analysis Job Brokerage: Exclude queues if includedSite is specified and the queues are not included
    in the list.
    """
    world = World(includedsite=["P"]).queue("P").queue("Q")
    assert world.checks() == {"P": None, "Q": "notincluded"}
    assert world.checks(PRODUCTION) == {"P": None, "Q": None}


@pytest.mark.parametrize("task", [{"includedsite": ["Q"]}, {"site": "Q"}])
def test_what_pre_assigns(task):
    """002, ATLAS Analysis Job Brokerage: Pre-assigned queues are specified in includedSite or site."""
    world = World(**task).queue("P").queue("Q", status="offline")
    found = world.checks()
    assert found["Q"] is None
    assert found["P"] in {"notincluded", "nonpreassigned"}


# ---- filters for persistent issues


def test_two_types_of_filters():
    """002, ATLAS Analysis Job Brokerage: There are two types of filters, filters for persistent issues and filters
    for temporary issues.
    """
    kinds = {rule.name: rule.kind for rule in World().queue("Q").decided().reasons}
    temporary = {name for name, kind in kinds.items() if kind == "temporary"}
    assert temporary == {"cap_rt", "badsite", "tmp_user_problem"}


@pytest.mark.parametrize("status", ["offline", "brokeroff", "test", "paused"])
def test_status(status):
    """002, ATLAS Analysis Job Brokerage: The queue status must be online unless the queues are pre-assigned."""
    assigned = ({}, {"site": "Q"}, {"includedsite": ["Q"]})
    worlds = [World(**task).queue("Q", status=status) for task in assigned]
    assert checks(worlds) == ["status", None, None]
    assert (check(World(site="Q").queue("Q", status=status), PRODUCTION) is None) == (
        status != "offline"
    )


def test_locality():
    """002, ATLAS Analysis Job Brokerage: Input data locality check to skip queues if they don’t have input data
    locally.
    """
    assert with_input().checks() == {"P": None, "Q": "data_locality"}


@pytest.mark.parametrize(
    ("task", "suppressed"),
    [
        ({"taskpriority": 1999}, False),
        ({"taskpriority": 2000}, True),
        ({"iointensity": 0.0}, True),
        ({"iointensity": 100.0}, True),
        ({"iointensity": 100.5}, False),
        ({"frozentime": AT - timedelta(hours=2)}, False),
        ({"frozentime": AT - timedelta(hours=2, seconds=1)}, True),
    ],
)
def test_what_suppresses_locality(task, suppressed):
    """002, ATLAS Analysis Job Brokerage: This check is suppressed if taskPriority ≥ 2000, ioIntensity ≤
    IO_INTENSITY_CUTOFF_USER, or the last successful brokerage cycle happened more than DATA_CHECK_TIMEOUT_USER hours ago
    """
    keys = {"IO_INTENSITY_CUTOFF_USER": 100, "DATA_CHECK_TIMEOUT_USER": 2}
    expected = None if suppressed else "data_locality"
    assert check(with_input(**task), **keys) == expected
    assert check(with_input(**task), PRODUCTION, **keys) == "data_locality"


@pytest.mark.parametrize("priority", [1999, 2000])
def test_suppression_takes_no_queue_that_holds_the_input(priority):
    """002, ATLAS Analysis Job Brokerage: This check is suppressed if taskPriority ≥ 2000

    The queue still holds the input: nothing has to move to it.
    """
    asked = AnalysisRules(data_counts_without_locality=False)
    for change, reason in (
        ({"write_wan": "OFF"}, "blacklist"),
        ({"space_usable": 100.0}, "storage"),
    ):
        world = with_input(taskpriority=priority)
        inputs, outputs = world.rows["queue_endpoints"][:2]
        inputs.update(change)
        outputs["ddm_endpoint_name"] = "P_OTHER"
        assert world.checks()["P"] is None
        assert world.checks(asked)["P"] == (reason if priority == 2000 else None)


def test_an_intensity_of_zero_is_at_most_the_cutoff():
    """002, ATLAS Analysis Job Brokerage: ioIntensity ≤ IO_INTENSITY_CUTOFF_USER

    In production 0 counts as unknown; an unknown one suppresses nothing in either set.
    """
    keys = {"IO_INTENSITY_CUTOFF_USER": 100}
    zero = AnalysisRules(zero_intensity_suppresses=False)
    assert check(with_input(iointensity=0.0), **keys) is None
    assert check(with_input(iointensity=0.0), zero, **keys) == "data_locality"
    assert check(with_input(iointensity=None), **keys) == "data_locality"


def disk_traffic(asked: float, used: float, **queue: Any) -> World:
    world = World(diskio=asked).queue("Q", **queue)
    return world.add("diskio_usage", computingsite="Q", diskio_per_core=used)


def test_disk_traffic():
    """002, ATLAS Analysis Job Brokerage: Check with MAX_DISKIO_DEFAULT limit defined in gdpconfig."""
    key = {"jedi/jobbroker/MAX_DISKIO_DEFAULT": 500}
    assert check(disk_traffic(501.0, 501.0), **key) == "diskio"
    assert check(disk_traffic(501.0, 500.0), **key) is None


def test_disk_traffic_of_a_queue():
    """002, ATLAS Analysis Job Brokerage: It is possible to overwrite the limit for a particular queue through the
    maxDiskIO (in kB/sec per core) field in CRIC.
    """
    key = {"jedi/jobbroker/MAX_DISKIO_DEFAULT": 500}
    assert check(disk_traffic(501.0, 501.0, maxdiskio=600.0), **key) is None
    assert check(disk_traffic(601.0, 601.0, maxdiskio=600.0), **key) == "diskio"


def test_only_tasks_over_the_limit_are_excluded():
    """002, ATLAS Analysis Job Brokerage: when the average diskIO per core for running jobs in a queue exceeds the
    limit, the next cycles of job brokerage will exclude tasks with diskIO higher than the defined limit
    """
    key = {"jedi/jobbroker/MAX_DISKIO_DEFAULT": 500}
    assert check(disk_traffic(500.0, 900.0), **key) is None
    assert check(disk_traffic(900.0, 500.0), **key) is None
    assert check(disk_traffic(501.0, 501.0), **key) == "diskio"
    several = World(diskio=501.0, corecount=8).queue("Q", corecount=8)
    several.add("diskio_usage", computingsite="Q", diskio_per_core=501.0)
    assert check(several, **key) == "diskio"
    assert check(several, PRODUCTION, **key) is None  # divided by the cores of the slot


@pytest.mark.parametrize(
    ("task", "queue", "fits"), [(1, 1, True), (8, 8, True), (1, 8, False), (8, 1, False)]
)
def test_cores(task, queue, fits):
    """002, ATLAS Analysis Job Brokerage: CPU Core count matching."""
    assert (check(World(corecount=task).queue("Q", corecount=queue)) is None) == fits


def virtual(**task: Any) -> World:
    endpoint = {"panda_queue": "Q", "direction": "input", "ddm_endpoint_name": "Q_VP_DISK"}
    return World(**task).queue("P").queue("Q").add("queue_endpoints", **endpoint)


def test_avoid_vp():
    """002, ATLAS Analysis Job Brokerage: Skip VP queues if the task specifies avoidVP

    Merge jobs avoid them in production alone.
    """
    assert virtual(avoidvp=True).checks() == {"P": None, "Q": "avoid_vp"}
    assert check(virtual()) is None
    assert check(virtual(is_merging=True)) is None
    assert check(virtual(is_merging=True), PRODUCTION) == "avoid_vp"


def test_overloaded_vp_queues():
    """002, ATLAS Analysis Job Brokerage: Skip VP queues if the task specifies avoidVP or those queues are overloaded.

    What is overloaded is that of the code: more than 20 jobs of the share wait, and none runs, or more for each running
    one than 1.2 times those over all queues. Queues that are no VP queues are skipped for it in production alone.
    """
    world = virtual().jobs("Q", "activated", 21)
    assert world.checks() == {"P": None, "Q": "overloaded_vp"}
    assert check(virtual().jobs("Q", "activated", 20)) is None
    plain = World().queue("P").queue("Q").jobs("Q", "activated", 21)
    assert check(plain) is None
    assert check(plain, PRODUCTION) == "overloaded"


def test_any_skips_the_software_check():
    """002, ATLAS Analysis Job Brokerage: This check is skipped when queues have ANY in the releases filed in CRIC."""
    task = {"architecture": "x86_64-el9-gcc13-opt#aarch64&nvidia"}
    assert check(World(**task).queue("Q", releases=["ANY"])) is None
    assert check(World(**task).queue("Q", releases=["ANY"]), PRODUCTION) == "cache"
    assert check(World(**task).queue("Q", releases=["24.0.40"])) == "cache"


@pytest.mark.filterwarnings("ignore:software matching")
@pytest.mark.parametrize("transhome", ["X", "AtlasOffline-21.0.1"])
def test_any_skips_it_for_a_home_that_names_no_release(transhome):
    """002, ATLAS Analysis Job Brokerage: This check is skipped when queues have ANY in the releases filed in CRIC."""
    world = World(transhome=transhome).queue("Q", releases=["ANY"])
    assert check(world) is None
    assert check(world, PRODUCTION) == "cache"


@pytest.mark.parametrize("releases", [["AUTO"], [], None])
def test_a_task_that_asks_for_no_software_runs_anywhere(releases):
    """002, ATLAS Analysis Job Brokerage: Availability of ATLAS release/cache.

    A task without release, container and hardware needs none; production asks for a queue that publishes something.
    """
    none = ({}, {"architecture": "{}"}, {"architecture": "x86_64-el9-gcc13-opt"})
    *worlds, hardware = (
        World(**task).queue("Q", releases=releases) for task in (*none, {"architecture": "#x86_64"})
    )
    assert checks([*worlds, hardware]) == [None, None, None, "cache"]
    assert checks(worlds, PRODUCTION) == ["cache"] * 3


def test_auto_uses_what_is_published():
    """002, ATLAS Analysis Job Brokerage: If queues have AUTO in the releases filed, the brokerage uses the
    information published in a json by CRIC
    """
    task = {"transhome": "AnalysisTransforms-AthAnalysis_24.2.30", "architecture": "x86_64-el9"}
    published = {"cmtconfigs": ["x86_64-el9"], "containers": [], "tags": [], "architectures": []}
    worlds = [World(**task).queue("Q", releases=["AUTO"]) for _ in range(2)]
    for world, cvmfs in zip(worlds, (["atlas"], []), strict=True):
        world.add("sw_tags", panda_queue="Q", data=json.dumps(published | {"cvmfs": cvmfs}))
    assert checks(worlds) == [None, "cache"]


@pytest.mark.parametrize(("maxrss", "fits"), [(15120.0, True), (15119.0, False)])
def test_memory_per_core(maxrss, fits):
    """002, ATLAS Analysis Job Brokerage: (baseRamCount + ramCount × coreCount) × compensation if ramCountUnit is
    MBPerCore

    (800 + 2000 × 8) × 0.9 = 15120.
    """
    task = {"ramcount": 2000, "ramunit": "MBPerCore", "baseramcount": 800, "corecount": 8}
    assert (check(World(**task).queue("Q", corecount=8, maxrss=maxrss)) is None) == fits


@pytest.mark.parametrize(("maxrss", "fits"), [(2520.0, True), (2519.0, False)])
def test_memory_of_the_job(maxrss, fits):
    """002, ATLAS Analysis Job Brokerage: (baseRamCount + ramCount) × compensation if ramCountUnit is MB, where
    compensation is 0.9

    (800 + 2000) × 0.9 = 2520; production leaves the base out.
    """
    task = {"ramcount": 2000, "ramunit": "MB", "baseramcount": 800, "corecount": 8}
    world = World(**task).queue("Q", corecount=8, maxrss=maxrss)
    assert (check(world) is None) == fits
    assert check(world, PRODUCTION) is None


def test_memory_ranges():
    """002, ATLAS Analysis Job Brokerage: Queues are skipped if the estimated memory usage is not included in the
    acceptable memory ranges.
    """
    ranges = ((1800.0, 1800.0), (1801.0, 9000.0), (0.0, 1799.0))
    worlds = [World(ramcount=2000).queue("Q", minrss=low, maxrss=high) for low, high in ranges]
    assert checks(worlds) == [None, "highmemory", "lowmemory"]


def test_memory_is_not_cut():
    """002, ATLAS Analysis Job Brokerage: Queues are skipped if the estimated memory usage is not included in the
    acceptable memory ranges.

    2223 × 0.9 = 2000.7; production cuts it to 2000.
    """
    world = World(ramcount=2223).queue("Q", maxrss=2000.0)
    assert check(world) == "lowmemory"
    assert check(world, PRODUCTION) is None


@pytest.mark.parametrize(
    ("task", "expected", "deployed"),
    [
        ({"mergeramcount": 100}, None, "lowmemory"),  # 90; the code asks for 2000 at least
        ({"ramcount": 5000}, "lowmemory", None),  # 4500; the code asks for nothing
        ({"mergeramcount": 1100, "ramunit": "MBPerCore"}, None, "lowmemory"),  # 990
    ],
)
def test_memory_of_merge_jobs(task, expected, deployed):
    """002, ATLAS Analysis Job Brokerage: The expected memory site of each job is estimated for each queue"""
    world = World(is_merging=True, **task).queue("Q", maxrss=1000.0)
    assert check(world) == expected
    assert check(world, PRODUCTION) == deployed


SCRATCH = {
    "atom_size": 1000 * MB,
    "atom_size_effective": 100.0,
    "outdiskcount": 200,
    "outdiskunit": "kB",
    "workdiskcount": 500,
    "workdiskunit": "MB",
}
"""1000 MB of input, 200 kB of output for each MB of it, 500 MB to work in."""
NEED_MB = 1000 + 0.2 * 1000 * 1000 / 1024 + 500


def test_the_sum_of_disk():
    """002, ATLAS Analysis Job Brokerage: The disk usage for a job is estimated as (0 or inputDiskCount) +
    outDiskCount × inputDiskCount + workDiskCount

    Production adds 300 MB, and takes the output by the effective size of the master dataset.
    """
    world = World(**SCRATCH).queue("Q", maxwdir=1696.0)
    assert NEED_MB == 1695.3125
    assert check(world) is None
    assert check(world, PRODUCTION) == "disk"
    assert check(World(**SCRATCH).queue("Q", maxwdir=1695.0)) == "disk"


@pytest.mark.parametrize("more", [{}, {"ngbperjob": 5}, {"is_merging": True}])
def test_input_is_counted_whole(more):
    """002, ATLAS Analysis Job Brokerage: inputDiskCount is the total size of job input files."""
    task = {"atom_size": 1000 * MB, "atom_size_effective": 1.0} | more
    assert check(World(**task).queue("Q", maxwdir=1000.0)) == "disk"
    assert check(World(**task).queue("Q", maxwdir=1000.5)) is None


def test_direct_reading_needs_no_space_for_input():
    """002, ATLAS Analysis Job Brokerage: The first term in the above formula is zero if the queues are configured
    to read input files directly from the local storage.
    """
    enough, less = (
        [
            World(**SCRATCH, **task).queue("Q", maxwdir=maxwdir, **direct)
            for task in ({}, {"allowinputlan": "use"}, {"uselocalio": True}, {"is_merging": True})
            for direct in ({"direct_access_lan": True}, {"maxinputsize": -1})
        ]
        for maxwdir in (696.0, 695.0)
    )
    assert checks(enough) == [None] * 8
    assert checks([*less, World(**SCRATCH).queue("Q", maxwdir=696.0)]) == ["disk"] * 9
    world = World(**SCRATCH).queue("Q", maxwdir=1000.0, direct_access_lan=True)
    assert check(world) is None
    assert check(world, PRODUCTION) == "disk"  # only tasks with allowinputlan


@pytest.mark.parametrize("cores", [1, 8])
def test_maxwdir_is_shared_by_cores_and_must_be_larger(cores):
    """002, ATLAS Analysis Job Brokerage: maxwdir is divided by coreCount at each queue and the resultant value must
    be larger than the expected disk usage.
    """
    task = {"corecount": cores, "atom_size": 100 * MB}
    for maxwdir, expected in ((100.0 * cores, "disk"), (100.0 * cores + 1, None)):
        assert check(World(**task).queue("Q", corecount=cores, maxwdir=maxwdir)) == expected
    assert (
        check(World(**task).queue("Q", corecount=cores, maxwdir=100.0 * cores), PRODUCTION) is None
    )


def test_free_space():
    """002, ATLAS Analysis Job Brokerage: DISK size check, free space in the local storage has to be over 200GB."""
    assert check(World().queue("Q", e_space_usable=200.0)) == "storage"
    assert check(World().queue("Q", e_space_usable=200.5)) is None
    assert check(World().queue("Q", e_space_usable=200.0), PRODUCTION) is None


@pytest.mark.parametrize(
    ("space", "expected", "deployed"),
    [
        ({"space_free": 100.0, "space_expired": 500.0}, "storage", None),
        ({"space_free": 300.0, "space_min_free": 200.0}, None, "storage"),
    ],
)
def test_only_free_space_counts(space, expected, deployed):
    """002, ATLAS Analysis Job Brokerage: free space in the local storage has to be over 200GB.

    Production counts what can be used: free and expired, less what must stay free or cannot be used.
    """
    world = World().queue("Q").add("storage_endpoints", ddm_endpoint_name="Q_DISK", **space)
    assert check(world) == expected
    assert check(world, PRODUCTION) == deployed


@pytest.mark.parametrize("flag", ["read_lan", "write_lan"])
def test_blacklisted_storage(flag):
    """002, ATLAS Analysis Job Brokerage: Skip blacklisted storage endpoints."""
    assert check(World().queue("Q", **{f"e_{flag}": "OFF"})) == "blacklist"
    assert check(World().queue("Q", **{f"e_{flag}": "ON"})) is None


@pytest.mark.parametrize("merging", [False, True])
def test_walltime(merging):
    """002, ATLAS Analysis Job Brokerage: The estimated walltime must be between mintime and maxtime at the queue.

    10 HS06 s x 80000 events / (1 core x 10 HS06 x 80 %) + 600 s = 100600 s; also of merge jobs, which production exempts.
    """
    task = {"atom_nevents": 80000, "cpuefficiency": 80.0, "basewalltime": 600.0}
    task["is_merging"] = merging
    limits = ({"maxtime": 100600}, {"maxtime": 100599}, {"mintime": 100600}, {"mintime": 100601})
    found = checks([World(**task).queue("Q", **limit) for limit in limits])
    assert found == [None, "shortwalltime", None, "longwalltime"]


def test_capacity_is_not_cut():
    """002, ATLAS Analysis Job Brokerage: The estimated walltime must be between mintime and maxtime at the queue.

    100 s × 10.05 HS06 × 90 % = 904.5 HS06 s, and the job needs 904.4; production cuts 904.5 to 904.
    """
    task = {"cputime": 904.4, "atom_nevents": 1, "cpuefficiency": 90.0}
    world = World(**task).queue("Q", corepower=10.05, maxtime=100)
    assert check(world) is None
    assert check(world, PRODUCTION) == "shortwalltime"


def test_efficiency_of_zero():
    """003, cpuTime: Tasks can set cpuEfficiency to 0 to disable scaling with the number of events.

    The base wall time is left: 10 s; in production nothing fits.
    """
    task = {"cpuefficiency": 0.0, "basewalltime": 10.0, "atom_nevents": 10}
    expected = {
        ("maxtime", 100000): None,
        ("maxtime", 10): None,
        ("maxtime", 9): "shortwalltime",
        ("mintime", 10): None,
        ("mintime", 11): "longwalltime",
    }
    found = checks([World(**task).queue("Q", **dict([limit])) for limit in expected])
    assert found == [*expected.values()]
    assert check(World(**task).queue("Q", maxtime=100000), PRODUCTION) == "shortwalltime"


@pytest.mark.parametrize(
    "task", [{"chunk_usescout": True}, {"is_merging": True}, {"cputime": None}]
)
def test_a_day_for_what_is_unknown(task):
    """002, ATLAS Analysis Job Brokerage: For scout, merge, or walltime-undefined jobs, skip queues if their maxtime
    is less than 24 hours.
    """
    tasks = ({"site": None, **task}, {"site": "Q", **task})  # pre-assigned queues are not exempt
    less, enough = (
        [World(**each).queue("Q", maxtime=maxtime) for each in tasks] for maxtime in (86399, 86400)
    )
    assert None not in checks(less)
    assert checks([*enough, World().queue("Q", maxtime=86399)]) == [None] * 3


@pytest.mark.parametrize("label", ["user", "test"])
def test_pilots(label):
    """002, ATLAS Analysis Job Brokerage: Skip queues without pilots for the last 3 hours."""
    world = World(prodsourcelabel=label).queue("Q")
    assert check(world) is None
    world.rows["site_activity"][0]["getjob"] = 0
    assert check(world) == "nopilot"
    assert (check(world, PRODUCTION) is None) == (label == "test")


def test_no_further_check():
    """002, ATLAS Analysis Job Brokerage: Skip queues without pilots for the last 3 hours.

    It is the last of the persistent filters; what production asks beyond them is not asked: policy, intensity, platform
    of GPU queues, direct reading, quota, cloud, hospital queues.
    """
    queues = (
        ({}, {"fairsharepolicy": "type=any:0%"}, "zeroshare"),
        ({"iointensity": 501.0}, {"max_io_intensity": 500.0}, "max_io_intensity"),
        ({}, {"catchall": "gpu"}, "architecture"),
        ({"allowinputlan": "only"}, {}, "remoteio"),
        ({"cloud": "DE"}, {"cloud": "FR"}, "cloudmismatch"),
    )
    for task, queue, name in queues:
        assert check(World(**task).queue("Q", **queue)) is None
        assert check(World(**task).queue("Q", **queue), PRODUCTION) == name


# ---- filters for temporary issues


def ended(**jobs: int) -> World:
    world = World().queue("P").queue("Q")
    for status, number in jobs.items():
        world.add("failure_counts", computingsite="Q", jobstatus=status, njobs=number)
    return world


def test_closed_and_failed_jobs_of_the_task():
    """002, ATLAS Analysis Job Brokerage: Skip queues if there are many jobs from the task closed or failed for the
    last TW_DONE_JOB_STAT hours.

    One closed job is not many; in production it is.
    """
    assert check(ended(closed=3, failed=2)) == "badsite"
    assert check(ended(closed=1)) is None
    assert check(ended(closed=1), PRODUCTION) == "closed"


@pytest.mark.parametrize(
    ("bad", "finished", "fits"), [(4, 0, True), (5, 0, False), (9, 5, True), (10, 5, False)]
)
def test_bad_jobs(bad, finished, fits):
    """002, ATLAS Analysis Job Brokerage: (nFailed + nClosed) must be less than max(2 × nFinished

    Or less than MIN_BAD_JOBS_TO_SKIP_PQ, if that is larger.
    """
    world = ended(failed=bad - 1, closed=1, finished=finished)
    assert (check(world, MIN_BAD_JOBS_TO_SKIP_PQ=5) is None) == fits


@pytest.mark.parametrize(
    ("queued", "running", "fits"),
    [(40, 0, True), (41, 0, False), (60, 30, True), (61, 30, False)],
)
def test_the_cap_on_waiting_jobs(queued, running, fits):
    """002, ATLAS Analysis Job Brokerage: Skip queues if defined+activated+assigned+starting > 2 × max(20, running).

    The page names no share and no resource type: all jobs of the queue count.
    """
    world = World().queue("Q")
    kinds = (("defined", SHARE, "SCORE"), ("assigned", "A", "SCORE"), ("starting", "B", "MCORE"))
    for status, share, kind in kinds:
        world.jobs("Q", status, 10, gshare=share, resource_type=kind)
    world.jobs("Q", "activated", queued - 30, gshare="C").jobs("Q", "running", running, gshare="D")
    assert (check(world) is None) == fits
    assert check(world, AnalysisRules(counted_jobs="share")) is None


LONG = AnalysisRules(cap_rt_effective=False)
"""Lets queues pass where more wait than the cap on all jobs allows."""


def test_the_stabilizer_looks_at_queues_and_shares():
    """002, ATLAS Analysis Job Brokerage: Skip queues if the user has too many queued jobs there. - Filters to
    control user queue length on each PQ per ghsare: Analysis Stabilizer
    """
    world = with_users(waiting(300, 100), alice=(201, 10), bob=(99, 90))
    assert check(world, LONG) == "badsite"
    other = with_users(waiting(300, 100, gshare="Express Analysis"), alice=(201, 10), bob=(99, 90))
    assert check(other, LONG) is None


def test_short_queues_are_not_throttled():
    """002, ATLAS Analysis Job Brokerage: The PQ will NOT be throttled if it does not have enough queuing jobs; that
    is, when any condition of the following is satisfied: nQ(PQ) < BASE_QUEUE_LENGTH_PER_PQ
    """
    world = with_users(waiting(300, 100), alice=(201, 10), bob=(99, 90))
    assert check(world, LONG, BASE_QUEUE_LENGTH_PER_PQ=301) is None
    assert check(world, LONG, BASE_QUEUE_LENGTH_PER_PQ=300) == "badsite"


def test_fast_queues_are_not_throttled():
    """002, ATLAS Analysis Job Brokerage: nQ(PQ) < BASE_EXPECTED_WAIT_HOUR_ON_PQ* trr(PQ)"""
    for rate, expected in ((3.0, "badsite"), (3.01, None)):
        world = with_users(waiting(300, 100), alice=(201, 10), bob=(99, 90))
        world.add("to_run_rate", computingsite="Q", jobs_per_hour=rate)
        assert check(world, LONG, BASE_EXPECTED_WAIT_HOUR_ON_PQ=100) == expected


def test_the_rate_is_that_of_the_queue():
    """002, ATLAS Analysis Job Brokerage: number of jobs getting from queuing to running per hour in the PQ

    Half of what runs is of another share: production takes half of the rate.
    """
    world = waiting(30, 100).jobs("Q", "running", 100, gshare="Express Analysis")
    world.add("to_run_rate", computingsite="Q", jobs_per_hour=10.0)
    assert weighed(world)["trr"] == 10.0
    assert weighed(world, PRODUCTION)["trr"] == 5.0


@pytest.mark.parametrize(
    ("running", "rate", "nq_max"), [(10, 1.0, 100.0), (60, 1.0, 120.0), (60, 11.0, 132.0)]
)
def test_the_longest_queue(running, rate, nq_max):
    """002, ATLAS Analysis Job Brokerage: which is the max among the following values: BASE_QUEUE_LENGTH_PER_PQ
    STATIC_MAX_QUEUE_RUNNING_RATIO* nR(PQ) MAX_EXPECTED_WAIT_HOUR* trr(PQ)

    100, 2 nR, 12 trr; nR are the running jobs of the share, whether or not their users are known.
    """
    world = with_users(waiting(30, running), alice=(0, 1))
    world.add("to_run_rate", computingsite="Q", jobs_per_hour=rate)
    assert weighed(world)["nq_max"] == nq_max


@pytest.mark.parametrize(("own", "percentage"), [(10, 0.25), (40, 0.4)])
def test_the_part_of_the_user(own, percentage):
    """002, ATLAS Analysis Job Brokerage: percentage(PQ, user) = max( nR(PQ, user)/nR(PQ) , 1/nUsers(PQ) )"""
    world = with_users(waiting(30, 100), alice=(0, own), bob=(1, 0), carol=(1, 0), dora=(1, 0))
    assert weighed(world)["user_share"] == percentage


@pytest.mark.parametrize(
    ("users", "keys", "most"),
    [
        (2, {}, 100.0),  # max(5, 0.05 x 100, 200 x 1/2)
        (2, {"BASE_DEFAULT_QUEUE_LENGTH_PER_PQ_USER": 101}, 101.0),
        (2, {"BASE_QUEUE_RATIO_ON_PQ": 1.5}, 150.0),
        (4, {}, 50.0),
    ],
)
def test_max_q_len(users, keys, most):
    """002, ATLAS Analysis Job Brokerage: Finally, the max value among the following, called max_q_len , will be
    used to throttle nQ(PQ, user) BASE_DEFAULT_QUEUE_LENGTH_PER_PQ_USER BASE_QUEUE_RATIO_ON_PQ* nR(PQ) nQ_max(PQ) *
    percentage(PQ, user)
    """
    names = ("alice", "bob", "carol", "dora")[:users]
    world = with_users(waiting(30, 100), **dict.fromkeys(names, (0, 0)))
    assert weighed(world, **keys)["max_q_len"] == most


def test_a_user_with_enough_queuing_jobs():
    """002, ATLAS Analysis Job Brokerage: Thus, if nQ(PQ, user) > max_q_len , the brokerage will temporarily exclude
    the PQs in which the user of the task already has enough queuing jobs
    """
    for queued, expected in ((100, None), (101, "badsite")):
        world = with_users(waiting(300, 100), alice=(queued, 10), bob=(9, 90))
        assert check(world, LONG) == expected


# ---- the weight


def test_the_original_basic_weight():
    """002, ATLAS Analysis Job Brokerage: weight = (running + 1) / (activated + assigned + starting + defined + 1)"""
    world = World().queue("Q").jobs("Q", "running", 29)
    for status, number in (("activated", 4), ("assigned", 3), ("starting", 2), ("defined", 5)):
        world.jobs("Q", status, number)
    assert weighed(world)["weight"] == 30 / 15


def test_the_running_jobs_of_the_queue():
    """002, ATLAS Analysis Job Brokerage: The actual number of running jobs at the queue, Rreal.

    The page names no share: all jobs of the queue count, in production those of the share.
    """
    world = World().queue("Q").jobs("Q", "running", 29)
    world.jobs("Q", "running", 10, gshare="Express Analysis")
    assert weighed(world)["running"] == 39
    assert weighed(world, PRODUCTION)["running"] == 29


@pytest.mark.parametrize(
    ("running", "workers", "count"),
    [(5, 12, 12), (5, 30, 20), (5, 4, 5), (20, 30, 20), (19, 30, 20)],
)
def test_batch_workers(running, workers, count):
    """002, ATLAS Analysis Job Brokerage: min(nBatchJob, 20) if Rreal < 20 and nBatchJob (the number of
    running+submitted batch workers at PQ) > Rreal.
    """
    world = World().queue("Q").jobs("Q", "running", running)
    for status, number in (("running", workers - 1), ("submitted", 1), ("finished", 50)):
        world.add("worker_stats", panda_queue="Q", status=status, n_workers=number)
    assert weighed(world)["running"] == count


def test_batch_workers_count_without_pilots():
    """002, ATLAS Analysis Job Brokerage: min(nBatchJob, 20) if Rreal < 20 and nBatchJob (the number of
    running+submitted batch workers at PQ) > Rreal. Mainly for bootstrap.
    """
    world = World().queue("Q")
    world.add("worker_stats", panda_queue="Q", status="running", n_workers=15)
    del world.rows["site_activity"]
    tables = world.tables()
    del tables["site_activity"]
    for rules, running in (("document", 15), (PRODUCTION, 0)):
        decided = decide(tables, rules=AnalysisRules(rules), config=Config.empty())
        assert decided.weighed["running"].to_list() == [running]


def with_slots(number: int) -> World:
    world = (
        World(corecount=8).queue("Q", corecount=8).add("slots", panda_queue="Q", numslots=number)
    )
    return world.jobs("Q", "running", 9).jobs("Q", "starting", 12)


def test_slots():
    """002, ATLAS Analysis Job Brokerage: numSlots if it is set to a positive number for the queue

    Of the numbers the largest; production divides slots by the cores of the queue.
    """
    assert weighed(with_slots(80))["running"] == 80
    assert weighed(with_slots(8))["running"] == 9
    assert weighed(with_slots(80), PRODUCTION)["running"] == 10


def test_starting_jobs_where_slots_are_zero():
    """002, ATLAS Analysis Job Brokerage: The number of starting jobs if numSlots is set to zero

    Of the numbers the largest; production adds them.
    """
    assert weighed(with_slots(0))["running"] == 12
    assert weighed(with_slots(0), PRODUCTION)["running"] == 21


def test_the_weight_in_use():
    """002, ATLAS Analysis Job Brokerage: Currently original basic weight is used in brokerage.

    Nothing multiplies it; production weighs by the new one, and by the input that is there.
    """
    world = World().queue("Q").jobs("Q", "running", 29)
    for name in ("D", "E"):
        world.add("datasets", datasetname=name, is_master=name == "D")
        world.add("replicas", datasetname=name, ddm_endpoint_name="Q_DISK", found=1, total=1)
    row = weighed(world)
    assert row["weight"] == row["orig"] == 30.0
    deployed = weighed(world, PRODUCTION)
    assert deployed["weight"] == 2 * deployed["new"]


NEW = AnalysisRules(basic_weight="new")


def classed(task_class: int, **task: Any) -> World:
    """One queue of each class; alice may have 50 jobs waiting at each, and submits 10."""
    world = World(n_jobs_to_submit=10, **task)
    world.add("task_class", jeditaskid=1, **{"class": task_class})
    for name, value in (("HI", 1), ("MID", 0), ("LO", -1)):
        world.queue(name).add("site_class", computingsite=name, **{"class": value})
        for user in ("alice", "bob"):
            share = task.get("gshare", SHARE)
            world.add("user_job_stats", computingsite=name, gshare=share, produsername=user)
    return world


def new_weights(world: World) -> dict[str, float]:
    return dict(world.decided(NEW).weighed.select("panda_queue", "weight").iter_rows())


W_Q = (50 - 10 / 3) / (150 - 10)
"""W_q of each of the three queues."""


@pytest.mark.parametrize(
    ("task_class", "w_s"),
    [(2, (10, 1, 2)), (1, (10, 1, 2)), (0, (2, 10, 1)), (-1, (2, 1, 10))],
)
def test_the_new_weight(task_class, w_s):
    """002, ATLAS Analysis Job Brokerage: New basic weight = W_s · W_q , where W_s weight from site-class For jobs
    in User Analysis and Express Analysis: W_s is shown in the table

    10 stands for N_j, 1 and 2 for epsilon 1 and 2.
    """
    found = new_weights(classed(task_class))
    value = {10: 10.0, 1: 0.05, 2: 0.002}
    for name, which in zip(("HI", "MID", "LO"), w_s, strict=True):
        assert found[name] == pytest.approx(value[which] * W_Q, rel=1e-14)


def test_epsilons():
    """002, ATLAS Analysis Job Brokerage: ε_1, ε_2: some small positive numbers (not fixed) to avoid dead zero; ε_1
    > ε_2
    """
    found = new_weights(classed(1))
    assert found["HI"] > found["MID"] > found["LO"] > 0


def test_other_shares_know_no_classes():
    """002, ATLAS Analysis Job Brokerage: For other analysis shares (group shares, ART, etc.): W_s = N_j ."""
    found = new_weights(classed(1, gshare="Group Analysis"))
    assert found == pytest.approx(dict.fromkeys(found, 10 * W_Q), rel=1e-14)


def test_the_weight_of_the_queue_length():
    """002, ATLAS Analysis Job Brokerage: W_q = ( max_q_len(PQ, user) - nQ(PQ, user) - N_j / N_PQ ) / ( ( sum over
    candidate PQs ( max_q_len(PQ, user) - nQ(PQ, user) ) ) - N_j )
    """
    world = classed(1, gshare="Group Analysis")
    world.rows["user_job_stats"][0]["nqueue"] = 20  # alice at HI
    found = new_weights(world)
    assert found["HI"] == pytest.approx(10 * (50 - 20 - 10 / 3) / (130 - 10), rel=1e-14)
    assert found["LO"] == pytest.approx(10 * (50 - 10 / 3) / (130 - 10), rel=1e-14)


# ---- what is left


def test_a_persistent_issue_gives_up_locality():
    """002, ATLAS Analysis Job Brokerage: If all queues are skipped due to the persistent issues, the brokerage
    tries to find candidates without the input data locality check.

    A temporary one does not, but in production.
    """
    world = with_input()
    world.rows["queues"][0]["maxtime"] = 1
    assert (loop(world), check(world)) == (2, None)
    busy = with_input().jobs("P", "activated", 41)
    assert (loop(busy), check(busy)) == (1, "data_locality")
    bad = with_input().add("failure_counts", computingsite="P", jobstatus="failed", njobs=9)
    assert loop(bad) == 1


def test_a_task_without_candidates_waits():
    """002, ATLAS Analysis Job Brokerage: If all queues are still skipped, the task is pending for 20 min."""
    for rules, minutes in (("document", 20), (PRODUCTION, 60)):
        task = World().queue("Q", status="offline").decided(rules).tasks.row(0, named=True)
        assert task["pending_until"] == AT + timedelta(minutes=minutes)
        assert task["outcome"] == "temporary_error"


@pytest.mark.parametrize(
    ("rules", "outcome"), [("document", "temporary_error"), (PRODUCTION, "fatal")]
)
def test_a_preassigned_task_waits_too(rules, outcome):
    """002, ATLAS Analysis Job Brokerage: If all queues are still skipped, the task is pending for 20 min."""
    world = World(site="Q").queue("P").queue("Q", corecount=8)
    assert world.checks(rules) == {"P": "nonpreassigned", "Q": "cpucore"}
    assert world.decided(rules).tasks["outcome"].item() == outcome


def test_the_best_ten():
    """002, ATLAS Analysis Job Brokerage: Otherwise, the remaining candidates are sorted by weight, and the best 10
    candidates are taken.

    Also where the input is distributed, and whatever queues the task has used.
    """
    world = World().add("datasets", datasetname="D/", is_master=True)
    for n in range(12):
        name = f"Q{n:02}"
        world.queue(name).jobs(name, "running", 100 - n)
        world.add("replicas", datasetname="D/", ddm_endpoint_name=f"{name}_DISK", found=1, total=2)
    world.add("sites_used", computingsite="Q11")
    ranks = dict(world.decided().queues.select("panda_queue", "rank").iter_rows())
    assert ranks == {f"Q{n:02}": n + 1 if n < 10 else None for n in range(12)}
