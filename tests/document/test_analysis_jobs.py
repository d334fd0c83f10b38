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
from tests.unit.brokerage.analysis_jobs.toys import AT, SHARE, Found, World, ask
from tests.unit.brokerage.production_jobs.book import cases, told

CAPS = {
    "CAP_RUNNING_USER_JOBS": 100,
    "CAP_RUNNING_USER_CORES": 200,
    "CAP_RUNNING_GROUP_JOBS": 1000,
    "CAP_RUNNING_GROUP_CORES": 2000,
}
PRODUCTION = "production"


def user(task: dict[str, Any] | None = None, **tables: Any) -> dict[str, dict[str, Any]]:
    """Return a task of alice, and a row of each table that is known."""
    row = {"at": AT, "username": "alice", "gshare": SHARE}
    return {"tasks": row | (task or {}), **tables}


def held(*users: dict[str, dict[str, Any]], rules: str = "document") -> list[str | None]:
    """Return which rule holds each task back; each is of an instant of its own."""
    config = Config.empty().with_values(
        {f"pandaserver/prio_mgr/{key}": value for key, value in CAPS.items()}
    )
    tables = {
        name: pl.DataFrame([row[name] | {"snapshot": n} for n, row in enumerate(users)])
        for name in users[0]
    }
    for name in ("tasks", "task_class"):
        if name in tables:
            tables[name] = tables[name].with_columns(jeditaskid="snapshot")
    found = throttle(tables, rules=AnalysisRules(rules), config=config)
    return found["throttle"].cast(pl.String).to_list()


def of_alice(**counts: int) -> dict[str, Any]:
    return {"origusername": "alice"} | counts


def of_class(task_class: int, usage: float) -> dict[str, Any]:
    return {
        "task_class": {"class": task_class},
        "gshare_usage": {"gshare": SHARE, "usage_perc": usage},
    }


def deployed(world: World, **settings: Any) -> Found:
    """Ask under the rules of the deployed code."""
    return ask(world, PRODUCTION, **settings)


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
    of_group = {"workinggroup": "higgs", "nrunjobs": 1001}
    assert held(
        user(user_totals=of_alice(nrunjobs=101)), user(task, user_totals=of_alice(nrunjobs=5000))
    ) == ["cap_running_jobs", None]
    assert held(user(task, user_totals=of_group)) == ["cap_running_jobs"]


def test_any_condition_throttles():
    """002, ATLAS Analysis Job Brokerage: if ANY of the following conditions holds

    Also where nothing else is known of the user, and for merge jobs, which the page does not exempt.
    """
    over = {
        "cap_running_jobs": {"nrunjobs": 101},
        "cap_queued_jobs": {"nqueuedjobs": 201},
        "cap_running_cores": {"nruncores": 201},
        "cap_queued_cores": {"nqueuedcores": 401},
    }
    for task in ({}, {"is_merging": True}):
        users = [user(task, user_totals=of_alice(**count)) for count in over.values()]
        assert held(*users) == [*over]
    plain = [user(user_totals=of_alice(**count)) for count in over.values()]
    assert held(*plain, rules=PRODUCTION) == [None] * 4


def test_the_cap_on_running_jobs():
    """002, ATLAS Analysis Job Brokerage: the number of running jobs is larger than CAP_RUNNING_USER_JOBS"""
    users = [user(user_totals=of_alice(nrunjobs=number)) for number in (100, 101)]
    assert held(*users) == [None, "cap_running_jobs"]


def test_the_cap_on_queued_jobs():
    """002, ATLAS Analysis Job Brokerage: the number of queued jobs is larger than 2 × CAP_RUNNING_USER_JOBS"""
    users = [user(user_totals=of_alice(nqueuedjobs=number)) for number in (200, 201)]
    assert held(*users) == [None, "cap_queued_jobs"]


def test_the_cap_on_running_cores():
    """002, ATLAS Analysis Job Brokerage: the number of running cores is larger than CAP_RUNNING_USER_CORES"""
    users = [user(user_totals=of_alice(nruncores=number)) for number in (200, 201)]
    assert held(*users) == [None, "cap_running_cores"]


def test_the_cap_on_queued_cores():
    """002, ATLAS Analysis Job Brokerage: the number of queued cores is larger than 2 × CAP_RUNNING_USER_CORES"""
    users = [user(user_totals=of_alice(nqueuedcores=number)) for number in (400, 401)]
    assert held(*users) == [None, "cap_queued_cores"]


def test_the_caps_of_working_groups():
    """002, ATLAS Analysis Job Brokerage: For the working group it uses CAP_RUNNING_GROUP_JOBS and
    CAP_RUNNING_GROUP_CORES instead.
    """
    counts = ({"nrunjobs": 1000, "nqueuedcores": 4000}, {"nqueuedjobs": 2001}, {"nruncores": 2001})
    group = {"workinggroup": "higgs"}
    users = [user(group, user_totals=group | count) for count in counts]
    assert held(*users) == [None, "cap_queued_jobs", "cap_running_cores"]


def test_the_global_disk_quota():
    """002, ATLAS Analysis Job Brokerage: the global disk quota exceeds

    The page names no other quota: being near it, or not knowing the local ones, throttles in production alone.
    """
    quotas = [{"near_global_limit": True}, {"local_quota_ok": False}]
    users = [user(quota=quota) for quota in ({"global_quota_ok": False}, *quotas)]
    assert held(*users) == ["global_quota", None, None]
    assert held(*users, rules=PRODUCTION)[1:] == ["near_global_quota", "quota_unavailable"]


def test_other_shares_are_immune():
    """002, ATLAS Analysis Job Brokerage: Currently this part of throttle is only for User Analysis share. Tasks
    in other shares are immune to it
    """
    users = [user({"gshare": share}, **of_class(-1, 9.0)) for share in (SHARE, "Express Analysis")]
    assert held(*users) == ["gshare_class_c", None]


def test_class_c():
    """002, ATLAS Analysis Job Brokerage: the User Analysis task is in class C , and User Analysis share usage >
    90% of its target
    """
    users = [user(**of_class(*case)) for case in ((-1, 0.90), (-1, 0.91), (2, 9.0))]
    assert held(*users) == [None, "gshare_class_c", None]  # class S is not named


def test_class_b():
    """002, ATLAS Analysis Job Brokerage: the User Analysis task is in class B , and User Analysis share usage >
    95% of its target
    """
    users = [user(**of_class(0, usage)) for usage in (0.95, 0.96)]
    assert held(*users) == [None, "gshare_class_b"]


def test_class_a():
    """002, ATLAS Analysis Job Brokerage: User Analysis share usage > max(USER_USAGE_THRESHOLD_A/(# of user’s
    running slots in hi-sites), 1)*100% of its target
    """
    expected = {
        (500, 2.0): None,  # max(1000 / 500, 1) * 100 % = 200 %
        (500, 2.01): "gshare_class_a",
        (1000, 1.0): None,  # max(1000 / 1000, 1) * 100 % = 100 %
        (1000, 1.01): "gshare_class_a",
        (0, 99.0): None,  # no slot: no limit
    }
    users = [
        user(**of_class(1, usage), user_eval={"user": "alice", "rem_slots_a": 1000.0 - slots})
        for slots, usage in expected
    ]
    assert dict(zip(expected, held(*users), strict=True)) == expected


def test_class_a_of_a_user_of_whom_nothing_runs():
    """002, ATLAS Analysis Job Brokerage: max(USER_USAGE_THRESHOLD_A/(# of user’s running slots in hi-sites), 1)

    No row is no running slot; production takes half of the threshold.
    """
    other = user(**of_class(1, 2.01), user_eval={"user": "bob"})
    assert held(other) == [None]
    assert held(other, rules=PRODUCTION) == ["gshare_class_a"]


# ---- preliminary candidates


@cases(
    *(
        (
            ask(World(excludedsite=["Q"], limitedsites=True).queue("Q", status="offline"), rules),
            name,
        )
        for rules, name in (("document", "excluded"), (PRODUCTION, "status"))
    )
)
def test_lists_come_before_the_filters(found, expected):
    """002, ATLAS Analysis Job Brokerage: Next, the brokerage generates the list of preliminary candidates"""
    assert found.check == expected


@cases(
    *(
        (ask(World().queue("P").queue("Q", type=kind, catchall="grandly_unified"), rules), there)
        for kind, expected in (("analysis", True), ("unified", True), ("production", False))
        for rules, there in (("document", expected), (PRODUCTION, True))
    )
)
def test_types_of_queues(found, expected):
    """002, ATLAS Analysis Job Brokerage: Take all queues with type=’analysis’ or ‘unified’."""
    assert ("Q" in found.checks()) == expected


@cases(
    (ask(World(excludedsite=["Q"]).queue("P").queue("Q")), "excluded"),
    (deployed(World(excludedsite=["Q"]).queue("P").queue("Q")), None),
)
def test_excluded_sites(found, expected):
    """002, ATLAS Analysis Job Brokerage: Exclude queues if excludedSite is specified and the queues are included in
    the list.
    """
    assert found.checks() == {"P": None, "Q": expected}


@cases(
    (ask(World(includedsite=["P"]).queue("P").queue("Q")), "notincluded"),
    (deployed(World(includedsite=["P"]).queue("P").queue("Q")), None),
)
def test_included_sites(found, expected):
    """002, ATLAS Analysis Job Brokerage: Exclude queues if includedSite is specified and the queues are not included
    in the list.
    """
    assert found.checks() == {"P": None, "Q": expected}


@cases(
    *(
        (ask(World(**task).queue("P").queue("Q", status="offline")), name)
        for task, name in (
            ({"includedsite": ["Q"]}, "notincluded"),
            ({"site": "Q"}, "nonpreassigned"),
        )
    )
)
def test_what_pre_assigns(found, expected):
    """002, ATLAS Analysis Job Brokerage: Pre-assigned queues are specified in includedSite or site."""
    assert found.checks() == {"P": expected, "Q": None}


# ---- filters for persistent issues


def test_two_types_of_filters():
    """002, ATLAS Analysis Job Brokerage: There are two types of filters, filters for persistent issues and filters
    for temporary issues.
    """
    kinds = {rule.name: rule.kind for rule in World().queue("Q").decided().reasons}
    temporary = {name for name, kind in kinds.items() if kind == "temporary"}
    assert temporary == {"cap_rt", "badsite", "tmp_user_problem"}


@cases(
    *(
        (ask(World(**task).queue("Q", status=status), rules), expected)
        for status in ("offline", "brokeroff", "test", "paused")
        for rules, task, expected in (
            ("document", {}, "status"),
            ("document", {"site": "Q"}, None),
            ("document", {"includedsite": ["Q"]}, None),
            (PRODUCTION, {"site": "Q"}, "status" if status == "offline" else None),
        )
    )
)
def test_status(found, expected):
    """002, ATLAS Analysis Job Brokerage: The queue status must be online unless the queues are pre-assigned."""
    assert found.check == expected


@cases((ask(with_input()), {"P": None, "Q": "data_locality"}))
def test_locality(found, expected):
    """002, ATLAS Analysis Job Brokerage: Input data locality check to skip queues if they don’t have input data
    locally.
    """
    assert found.checks() == expected


@cases(
    *(
        (
            ask(with_input(**task), rules, IO_INTENSITY_CUTOFF_USER=100, DATA_CHECK_TIMEOUT_USER=2),
            name,
        )
        for task, expected in (
            ({"taskpriority": 1999}, "data_locality"),
            ({"taskpriority": 2000}, None),
            ({"iointensity": 0.0}, None),
            ({"iointensity": 100.0}, None),
            ({"iointensity": 100.5}, "data_locality"),
            ({"frozentime": AT - timedelta(hours=2)}, "data_locality"),
            ({"frozentime": AT - timedelta(hours=2, seconds=1)}, None),
        )
        for rules, name in (("document", expected), (PRODUCTION, "data_locality"))
    )
)
def test_what_suppresses_locality(found, expected):
    """002, ATLAS Analysis Job Brokerage: This check is suppressed if taskPriority ≥ 2000, ioIntensity ≤
    IO_INTENSITY_CUTOFF_USER, or the last successful brokerage cycle happened more than DATA_CHECK_TIMEOUT_USER hours ago
    """
    assert found.check == expected


ASKED = AnalysisRules(data_counts_without_locality=False)


def moves(priority: int, **change: Any) -> World:
    world = with_input(taskpriority=priority)
    inputs, outputs = world.rows["queue_endpoints"][:2]
    inputs.update(change)
    outputs["ddm_endpoint_name"] = "P_OTHER"
    return world


@cases(
    *(
        (ask(moves(priority, **change), rules), name)
        for change, reason in (
            ({"write_wan": "OFF"}, "blacklist"),
            ({"space_usable": 100.0}, "storage"),
        )
        for priority, expected in ((1999, None), (2000, reason))
        for rules, name in (("document", None), (ASKED, expected))
    )
)
def test_suppression_takes_no_queue_that_holds_the_input(found, expected):
    """002, ATLAS Analysis Job Brokerage: This check is suppressed if taskPriority ≥ 2000

    The queue still holds the input: nothing has to move to it.
    """
    assert found.checks()["P"] == expected


@cases(
    *(
        (ask(with_input(iointensity=intensity), rules, IO_INTENSITY_CUTOFF_USER=100), expected)
        for intensity, rules, expected in (
            (0.0, "document", None),
            (0.0, AnalysisRules(zero_intensity_suppresses=False), "data_locality"),
            (None, "document", "data_locality"),
        )
    )
)
def test_an_intensity_of_zero_is_at_most_the_cutoff(found, expected):
    """002, ATLAS Analysis Job Brokerage: ioIntensity ≤ IO_INTENSITY_CUTOFF_USER

    In production 0 counts as unknown; an unknown one suppresses nothing in either set.
    """
    assert found.check == expected


def disk_traffic(asked: float, used: float, *, cores: int = 1, **queue: Any) -> World:
    world = World(diskio=asked, corecount=cores).queue("Q", corecount=cores, **queue)
    return world.add("diskio_usage", computingsite="Q", diskio_per_core=used)


TRAFFIC = {"jedi/jobbroker/MAX_DISKIO_DEFAULT": 500}


@cases(
    (ask(disk_traffic(501.0, 501.0), **TRAFFIC), "diskio"),
    (ask(disk_traffic(501.0, 500.0), **TRAFFIC), None),
)
def test_disk_traffic(found, expected):
    """002, ATLAS Analysis Job Brokerage: Check with MAX_DISKIO_DEFAULT limit defined in gdpconfig."""
    assert found.check == expected


@cases(
    (ask(disk_traffic(501.0, 501.0, maxdiskio=600.0), **TRAFFIC), None),
    (ask(disk_traffic(601.0, 601.0, maxdiskio=600.0), **TRAFFIC), "diskio"),
)
def test_disk_traffic_of_a_queue(found, expected):
    """002, ATLAS Analysis Job Brokerage: It is possible to overwrite the limit for a particular queue through the
    maxDiskIO (in kB/sec per core) field in CRIC.
    """
    assert found.check == expected


@cases(
    (ask(disk_traffic(500.0, 900.0), **TRAFFIC), None),
    (ask(disk_traffic(900.0, 500.0), **TRAFFIC), None),
    (ask(disk_traffic(501.0, 501.0), **TRAFFIC), "diskio"),
    (ask(disk_traffic(501.0, 501.0, cores=8), **TRAFFIC), "diskio"),
    # divided by the cores of the slot
    (deployed(disk_traffic(501.0, 501.0, cores=8), **TRAFFIC), None),
)
def test_only_tasks_over_the_limit_are_excluded(found, expected):
    """002, ATLAS Analysis Job Brokerage: when the average diskIO per core for running jobs in a queue exceeds the
    limit, the next cycles of job brokerage will exclude tasks with diskIO higher than the defined limit
    """
    assert found.check == expected


@cases(
    *(
        (ask(World(corecount=task).queue("Q", corecount=queue)), fits)
        for task, queue, fits in ((1, 1, True), (8, 8, True), (1, 8, False), (8, 1, False))
    )
)
def test_cores(found, expected):
    """002, ATLAS Analysis Job Brokerage: CPU Core count matching."""
    assert (found.check is None) == expected


def virtual(**task: Any) -> World:
    endpoint = {"panda_queue": "Q", "direction": "input", "ddm_endpoint_name": "Q_VP_DISK"}
    return World(**task).queue("P").queue("Q").add("queue_endpoints", **endpoint)


@cases(
    (ask(virtual(avoidvp=True)), "avoid_vp"),
    (ask(virtual()), None),
    (ask(virtual(is_merging=True)), None),
    (deployed(virtual(is_merging=True)), "avoid_vp"),
)
def test_avoid_vp(found, expected):
    """002, ATLAS Analysis Job Brokerage: Skip VP queues if the task specifies avoidVP

    Merge jobs avoid them in production alone.
    """
    assert found.checks() == {"P": None, "Q": expected}


@cases(
    (ask(virtual().jobs("Q", "activated", 21)), "overloaded_vp"),
    (ask(virtual().jobs("Q", "activated", 20)), None),
    (ask(World().queue("P").queue("Q").jobs("Q", "activated", 21)), None),
    (deployed(World().queue("P").queue("Q").jobs("Q", "activated", 21)), "overloaded"),
)
def test_overloaded_vp_queues(found, expected):
    """002, ATLAS Analysis Job Brokerage: Skip VP queues if the task specifies avoidVP or those queues are overloaded.

    What is overloaded is that of the code: more than 20 jobs of the share wait, and none runs, or more for each running
    one than 1.2 times those over all queues. Queues that are no VP queues are skipped for it in production alone.
    """
    assert found.checks() == {"P": None, "Q": expected}


def released(*releases: str) -> World:
    return World(architecture="x86_64-el9-gcc13-opt#aarch64&nvidia").queue(
        "Q", releases=[*releases]
    )


@cases(
    (ask(released("ANY")), None),
    (deployed(released("ANY")), "cache"),
    (ask(released("24.0.40")), "cache"),
)
def test_any_skips_the_software_check(found, expected):
    """002, ATLAS Analysis Job Brokerage: This check is skipped when queues have ANY in the releases filed in CRIC."""
    assert found.check == expected


@pytest.mark.filterwarnings("ignore:software matching")
@pytest.mark.parametrize("transhome", ["X", "AtlasOffline-21.0.1"])
def test_any_skips_it_for_a_home_that_names_no_release(transhome):
    """002, ATLAS Analysis Job Brokerage: This check is skipped when queues have ANY in the releases filed in CRIC."""
    world = World(transhome=transhome).queue("Q", releases=["ANY"])
    assert world.checks() == {"Q": None}
    assert world.checks(PRODUCTION) == {"Q": "cache"}


@cases(
    *(
        (ask(World(**task).queue("Q", releases=releases), rules), name)
        for releases in (["AUTO"], [], None)
        for task in ({}, {"architecture": "{}"}, {"architecture": "x86_64-el9-gcc13-opt"})
        for rules, name in (("document", None), (PRODUCTION, "cache"))
    ),
    *(
        (ask(World(architecture="#x86_64").queue("Q", releases=releases)), "cache")
        for releases in (["AUTO"], [], None)
    ),
)
def test_a_task_that_asks_for_no_software_runs_anywhere(found, expected):
    """002, ATLAS Analysis Job Brokerage: Availability of ATLAS release/cache.

    A task without release, container and hardware needs none; production asks for a queue that publishes something.
    """
    assert found.check == expected


def published(*cvmfs: str) -> World:
    task = {"transhome": "AnalysisTransforms-AthAnalysis_24.2.30", "architecture": "x86_64-el9"}
    data = {"cmtconfigs": ["x86_64-el9"], "containers": [], "tags": [], "architectures": []}
    world = World(**task).queue("Q", releases=["AUTO"])
    return world.add("sw_tags", panda_queue="Q", data=json.dumps(data | {"cvmfs": [*cvmfs]}))


@cases((ask(published("atlas")), None), (ask(published()), "cache"))
def test_auto_uses_what_is_published(found, expected):
    """002, ATLAS Analysis Job Brokerage: If queues have AUTO in the releases filed, the brokerage uses the
    information published in a json by CRIC
    """
    assert found.check == expected


PER_CORE = {"ramcount": 2000, "ramunit": "MBPerCore", "baseramcount": 800, "corecount": 8}


@cases(
    (ask(World(**PER_CORE).queue("Q", corecount=8, maxrss=15120.0)), True),
    (ask(World(**PER_CORE).queue("Q", corecount=8, maxrss=15119.0)), False),
)
def test_memory_per_core(found, expected):
    """002, ATLAS Analysis Job Brokerage: (baseRamCount + ramCount × coreCount) × compensation if ramCountUnit is
    MBPerCore

    (800 + 2000 × 8) × 0.9 = 15120.
    """
    assert (found.check is None) == expected


@cases(
    *(
        (
            ask(
                World(**(PER_CORE | {"ramunit": "MB"})).queue("Q", corecount=8, maxrss=maxrss),
                rules,
            ),
            fits,
        )
        for maxrss, of_page in ((2520.0, True), (2519.0, False))
        for rules, fits in (("document", of_page), (PRODUCTION, True))
    )
)
def test_memory_of_the_job(found, expected):
    """002, ATLAS Analysis Job Brokerage: (baseRamCount + ramCount) × compensation if ramCountUnit is MB, where
    compensation is 0.9

    (800 + 2000) × 0.9 = 2520; production leaves the base out.
    """
    assert (found.check is None) == expected


@cases(
    (ask(World(ramcount=2000).queue("Q", minrss=1800.0, maxrss=1800.0)), None),
    (ask(World(ramcount=2000).queue("Q", minrss=1801.0, maxrss=9000.0)), "highmemory"),
    (ask(World(ramcount=2000).queue("Q", minrss=0.0, maxrss=1799.0)), "lowmemory"),
)
def test_memory_ranges(found, expected):
    """002, ATLAS Analysis Job Brokerage: Queues are skipped if the estimated memory usage is not included in the
    acceptable memory ranges.
    """
    assert found.check == expected


@cases(
    (ask(World(ramcount=2223).queue("Q", maxrss=2000.0)), "lowmemory"),
    (deployed(World(ramcount=2223).queue("Q", maxrss=2000.0)), None),
)
def test_memory_is_not_cut(found, expected):
    """002, ATLAS Analysis Job Brokerage: Queues are skipped if the estimated memory usage is not included in the
    acceptable memory ranges.

    2223 × 0.9 = 2000.7; production cuts it to 2000.
    """
    assert found.check == expected


@cases(
    *(
        (ask(World(is_merging=True, **task).queue("Q", maxrss=1000.0), rules), name)
        for task, expected, in_code in (
            ({"mergeramcount": 100}, None, "lowmemory"),  # 90; the code asks for 2000 at least
            ({"ramcount": 5000}, "lowmemory", None),  # 4500; the code asks for nothing
            ({"mergeramcount": 1100, "ramunit": "MBPerCore"}, None, "lowmemory"),  # 990
        )
        for rules, name in (("document", expected), (PRODUCTION, in_code))
    )
)
def test_memory_of_merge_jobs(found, expected):
    """002, ATLAS Analysis Job Brokerage: The expected memory site of each job is estimated for each queue"""
    assert found.check == expected


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


@cases(
    (ask(World(**SCRATCH).queue("Q", maxwdir=1696.0)), None),
    (deployed(World(**SCRATCH).queue("Q", maxwdir=1696.0)), "disk"),
    (ask(World(**SCRATCH).queue("Q", maxwdir=1695.0)), "disk"),
)
def test_the_sum_of_disk(found, expected):
    """002, ATLAS Analysis Job Brokerage: The disk usage for a job is estimated as (0 or inputDiskCount) +
    outDiskCount × inputDiskCount + workDiskCount

    Production adds 300 MB, and takes the output by the effective size of the master dataset.
    """
    assert NEED_MB == 1695.3125
    assert found.check == expected


LARGE = {"atom_size": 1000 * MB, "atom_size_effective": 1.0}


@cases(
    *(
        (ask(World(**(LARGE | more)).queue("Q", maxwdir=maxwdir)), expected)
        for more in ({}, {"ngbperjob": 5}, {"is_merging": True})
        for maxwdir, expected in ((1000.0, "disk"), (1000.5, None))
    )
)
def test_input_is_counted_whole(found, expected):
    """002, ATLAS Analysis Job Brokerage: inputDiskCount is the total size of job input files."""
    assert found.check == expected


@cases(
    *(
        (ask(World(**SCRATCH, **task).queue("Q", maxwdir=maxwdir, **direct)), expected)
        for maxwdir, expected in ((696.0, None), (695.0, "disk"))
        for task in ({}, {"allowinputlan": "use"}, {"uselocalio": True}, {"is_merging": True})
        for direct in ({"direct_access_lan": True}, {"maxinputsize": -1})
    ),
    (ask(World(**SCRATCH).queue("Q", maxwdir=696.0)), "disk"),
    (ask(World(**SCRATCH).queue("Q", maxwdir=1000.0, direct_access_lan=True)), None),
    # only tasks with allowinputlan
    (deployed(World(**SCRATCH).queue("Q", maxwdir=1000.0, direct_access_lan=True)), "disk"),
)
def test_direct_reading_needs_no_space_for_input(found, expected):
    """002, ATLAS Analysis Job Brokerage: The first term in the above formula is zero if the queues are configured
    to read input files directly from the local storage.
    """
    assert found.check == expected


@cases(
    *(
        (
            ask(
                World(corecount=cores, atom_size=100 * MB).queue(
                    "Q", corecount=cores, maxwdir=maxwdir
                ),
                rules,
            ),
            name,
        )
        for cores in (1, 8)
        for maxwdir, rules, name in (
            (100.0 * cores, "document", "disk"),
            (100.0 * cores + 1, "document", None),
            (100.0 * cores, PRODUCTION, None),
        )
    )
)
def test_maxwdir_is_shared_by_cores_and_must_be_larger(found, expected):
    """002, ATLAS Analysis Job Brokerage: maxwdir is divided by coreCount at each queue and the resultant value must
    be larger than the expected disk usage.
    """
    assert found.check == expected


@cases(
    (ask(World().queue("Q", e_space_usable=200.0)), "storage"),
    (ask(World().queue("Q", e_space_usable=200.5)), None),
    (deployed(World().queue("Q", e_space_usable=200.0)), None),
)
def test_free_space(found, expected):
    """002, ATLAS Analysis Job Brokerage: DISK size check, free space in the local storage has to be over 200GB."""
    assert found.check == expected


@cases(
    *(
        (
            ask(
                World().queue("Q").add("storage_endpoints", ddm_endpoint_name="Q_DISK", **space),
                rules,
            ),
            name,
        )
        for space, expected, in_code in (
            ({"space_free": 100.0, "space_expired": 500.0}, "storage", None),
            ({"space_free": 300.0, "space_min_free": 200.0}, None, "storage"),
        )
        for rules, name in (("document", expected), (PRODUCTION, in_code))
    )
)
def test_only_free_space_counts(found, expected):
    """002, ATLAS Analysis Job Brokerage: free space in the local storage has to be over 200GB.

    Production counts what can be used: free and expired, less what must stay free or cannot be used.
    """
    assert found.check == expected


@cases(
    *(
        (ask(World().queue("Q", **{f"e_{flag}": status})), expected)
        for flag in ("read_lan", "write_lan")
        for status, expected in (("OFF", "blacklist"), ("ON", None))
    )
)
def test_blacklisted_storage(found, expected):
    """002, ATLAS Analysis Job Brokerage: Skip blacklisted storage endpoints."""
    assert found.check == expected


LONG_JOB = {"atom_nevents": 80000, "cpuefficiency": 80.0, "basewalltime": 600.0}


@cases(
    *(
        (ask(World(is_merging=merging, **LONG_JOB).queue("Q", **limit)), expected)
        for merging in (False, True)
        for limit, expected in (
            ({"maxtime": 100600}, None),
            ({"maxtime": 100599}, "shortwalltime"),
            ({"mintime": 100600}, None),
            ({"mintime": 100601}, "longwalltime"),
        )
    )
)
def test_walltime(found, expected):
    """002, ATLAS Analysis Job Brokerage: The estimated walltime must be between mintime and maxtime at the queue.

    10 HS06 s x 80000 events / (1 core x 10 HS06 x 80 %) + 600 s = 100600 s; also of merge jobs, which production exempts.
    """
    assert found.check == expected


@cases(
    *(
        (
            ask(
                World(cputime=904.4, atom_nevents=1, cpuefficiency=90.0).queue(
                    "Q", corepower=10.05, maxtime=100
                ),
                rules,
            ),
            expected,
        )
        for rules, expected in (("document", None), (PRODUCTION, "shortwalltime"))
    )
)
def test_capacity_is_not_cut(found, expected):
    """002, ATLAS Analysis Job Brokerage: The estimated walltime must be between mintime and maxtime at the queue.

    100 s × 10.05 HS06 × 90 % = 904.5 HS06 s, and the job needs 904.4; production cuts 904.5 to 904.
    """
    assert found.check == expected


@cases(
    *(
        (
            ask(
                World(cpuefficiency=0.0, basewalltime=10.0, atom_nevents=10).queue("Q", **limit),
                rules,
            ),
            name,
        )
        for rules, limit, name in (
            ("document", {"maxtime": 100000}, None),
            ("document", {"maxtime": 10}, None),
            ("document", {"maxtime": 9}, "shortwalltime"),
            ("document", {"mintime": 10}, None),
            ("document", {"mintime": 11}, "longwalltime"),
            (PRODUCTION, {"maxtime": 100000}, "shortwalltime"),
        )
    )
)
def test_efficiency_of_zero(found, expected):
    """003, cpuTime: Tasks can set cpuEfficiency to 0 to disable scaling with the number of events.

    The base wall time is left: 10 s; in production nothing fits.
    """
    assert found.check == expected


@cases(
    *(
        (ask(World(site=site, **task).queue("Q", maxtime=maxtime)), fits)
        for task in ({"chunk_usescout": True}, {"is_merging": True}, {"cputime": None})
        for site in (None, "Q")  # pre-assigned queues are not exempt
        for maxtime, fits in ((86399, False), (86400, True))
    ),
    (ask(World().queue("Q", maxtime=86399)), True),
)
def test_a_day_for_what_is_unknown(found, expected):
    """002, ATLAS Analysis Job Brokerage: For scout, merge, or walltime-undefined jobs, skip queues if their maxtime
    is less than 24 hours.
    """
    assert (found.check is None) == expected


def pilots(number: int, label: str) -> World:
    world = World(prodsourcelabel=label).queue("Q")
    world.rows["site_activity"][0]["getjob"] = number
    return world


@cases(
    *(
        (ask(pilots(number, label), rules), expected)
        for label, excused in (("user", "nopilot"), ("test", None))
        for number, rules, expected in (
            (1, "document", None),
            (0, "document", "nopilot"),
            (0, PRODUCTION, excused),
        )
    )
)
def test_pilots(found, expected):
    """002, ATLAS Analysis Job Brokerage: Skip queues without pilots for the last 3 hours."""
    assert found.check == expected


@cases(
    *(
        (ask(World(**task).queue("Q", **queue), rules), expected)
        for task, queue, name in (
            ({}, {"fairsharepolicy": "type=any:0%"}, "zeroshare"),
            ({"iointensity": 501.0}, {"max_io_intensity": 500.0}, "max_io_intensity"),
            ({}, {"catchall": "gpu"}, "architecture"),
            ({"allowinputlan": "only"}, {}, "remoteio"),
            ({"cloud": "DE"}, {"cloud": "FR"}, "cloudmismatch"),
        )
        for rules, expected in (("document", None), (PRODUCTION, name))
    )
)
def test_no_further_check(found, expected):
    """002, ATLAS Analysis Job Brokerage: Skip queues without pilots for the last 3 hours.

    It is the last of the persistent filters; what production asks beyond them is not asked: policy, intensity, platform
    of GPU queues, direct reading, quota, cloud, hospital queues.
    """
    assert found.check == expected


# ---- filters for temporary issues


def ended(**jobs: int) -> World:
    world = World().queue("P").queue("Q")
    for status, number in jobs.items():
        world.add("failure_counts", computingsite="Q", jobstatus=status, njobs=number)
    return world


@cases(
    (ask(ended(closed=3, failed=2)), "badsite"),
    (ask(ended(closed=1)), None),
    (deployed(ended(closed=1)), "closed"),
)
def test_closed_and_failed_jobs_of_the_task(found, expected):
    """002, ATLAS Analysis Job Brokerage: Skip queues if there are many jobs from the task closed or failed for the
    last TW_DONE_JOB_STAT hours.

    One closed job is not many; in production it is.
    """
    assert found.check == expected


@cases(
    *(
        (ask(ended(failed=bad - 1, closed=1, finished=finished), MIN_BAD_JOBS_TO_SKIP_PQ=5), fits)
        for bad, finished, fits in ((4, 0, True), (5, 0, False), (9, 5, True), (10, 5, False))
    )
)
def test_bad_jobs(found, expected):
    """002, ATLAS Analysis Job Brokerage: (nFailed + nClosed) must be less than max(2 × nFinished

    Or less than MIN_BAD_JOBS_TO_SKIP_PQ, if that is larger.
    """
    assert (found.check is None) == expected


def waiting_of_all_shares(queued: int, running: int) -> World:
    world = World().queue("Q")
    kinds = (("defined", SHARE, "SCORE"), ("assigned", "A", "SCORE"), ("starting", "B", "MCORE"))
    for status, share, kind in kinds:
        world.jobs("Q", status, 10, gshare=share, resource_type=kind)
    world.jobs("Q", "activated", queued - 30, gshare="C")
    return world.jobs("Q", "running", running, gshare="D")


@cases(
    *(
        (ask(waiting_of_all_shares(queued, running), rules), expected)
        for queued, running, fits in (
            (40, 0, True),
            (41, 0, False),
            (60, 30, True),
            (61, 30, False),
        )
        for rules, expected in (("document", fits), (AnalysisRules(counted_jobs="share"), True))
    )
)
def test_the_cap_on_waiting_jobs(found, expected):
    """002, ATLAS Analysis Job Brokerage: Skip queues if defined+activated+assigned+starting > 2 × max(20, running).

    The page names no share and no resource type: all jobs of the queue count.
    """
    assert (found.check is None) == expected


LONG = AnalysisRules(cap_rt_effective=False)
"""Lets queues pass where more wait than the cap on all jobs allows."""


def of_two(queued: int = 201, other: int = 99, **jobs: Any) -> World:
    """Return a queue where jobs of alice and bob wait."""
    return with_users(waiting(300, 100, **jobs), alice=(queued, 10), bob=(other, 90))


@cases(
    (ask(of_two(), LONG), "badsite"),
    (ask(of_two(gshare="Express Analysis"), LONG), None),
)
def test_the_stabilizer_looks_at_queues_and_shares(found, expected):
    """002, ATLAS Analysis Job Brokerage: Skip queues if the user has too many queued jobs there. - Filters to
    control user queue length on each PQ per ghsare: Analysis Stabilizer
    """
    assert found.check == expected


@cases(
    (ask(of_two(), LONG, BASE_QUEUE_LENGTH_PER_PQ=301), None),
    (ask(of_two(), LONG, BASE_QUEUE_LENGTH_PER_PQ=300), "badsite"),
)
def test_short_queues_are_not_throttled(found, expected):
    """002, ATLAS Analysis Job Brokerage: The PQ will NOT be throttled if it does not have enough queuing jobs; that
    is, when any condition of the following is satisfied: nQ(PQ) < BASE_QUEUE_LENGTH_PER_PQ
    """
    assert found.check == expected


@cases(
    *(
        (
            ask(
                of_two().add("to_run_rate", computingsite="Q", jobs_per_hour=rate),
                LONG,
                BASE_EXPECTED_WAIT_HOUR_ON_PQ=100,
            ),
            expected,
        )
        for rate, expected in ((3.0, "badsite"), (3.01, None))
    )
)
def test_fast_queues_are_not_throttled(found, expected):
    """002, ATLAS Analysis Job Brokerage: nQ(PQ) < BASE_EXPECTED_WAIT_HOUR_ON_PQ* trr(PQ)"""
    assert found.check == expected


def rated(rate: float, running: int) -> World:
    return waiting(30, running).add("to_run_rate", computingsite="Q", jobs_per_hour=rate)


def of_two_shares() -> World:
    return rated(10.0, 100).jobs("Q", "running", 100, gshare="Express Analysis")


@cases((ask(of_two_shares()), 10.0), (deployed(of_two_shares()), 5.0))
def test_the_rate_is_that_of_the_queue(found, expected):
    """002, ATLAS Analysis Job Brokerage: number of jobs getting from queuing to running per hour in the PQ

    Half of what runs is of another share: production takes half of the rate.
    """
    assert found.queues()["Q"]["trr"] == expected


@cases(
    *(
        (ask(with_users(rated(rate, running), alice=(0, 1))), nq_max)
        for running, rate, nq_max in ((10, 1.0, 100.0), (60, 1.0, 120.0), (60, 11.0, 132.0))
    )
)
def test_the_longest_queue(found, expected):
    """002, ATLAS Analysis Job Brokerage: which is the max among the following values: BASE_QUEUE_LENGTH_PER_PQ
    STATIC_MAX_QUEUE_RUNNING_RATIO* nR(PQ) MAX_EXPECTED_WAIT_HOUR* trr(PQ)

    100, 2 nR, 12 trr; nR are the running jobs of the share, whether or not their users are known.
    """
    assert found.queues()["Q"]["nq_max"] == expected


@cases(
    *(
        (
            ask(
                with_users(waiting(30, 100), alice=(0, own), bob=(1, 0), carol=(1, 0), dora=(1, 0))
            ),
            percentage,
        )
        for own, percentage in ((10, 0.25), (40, 0.4))
    )
)
def test_the_part_of_the_user(found, expected):
    """002, ATLAS Analysis Job Brokerage: percentage(PQ, user) = max( nR(PQ, user)/nR(PQ) , 1/nUsers(PQ) )"""
    assert found.queues()["Q"]["user_share"] == expected


USERS = ("alice", "bob", "carol", "dora")


@cases(
    *(
        (
            ask(
                with_users(waiting(30, 100), **dict.fromkeys(USERS[:users], (0, 0))),
                **keys,
            ),
            most,
        )
        for users, keys, most in (
            (2, {}, 100.0),  # max(5, 0.05 x 100, 200 x 1/2)
            (2, {"BASE_DEFAULT_QUEUE_LENGTH_PER_PQ_USER": 101}, 101.0),
            (2, {"BASE_QUEUE_RATIO_ON_PQ": 1.5}, 150.0),
            (4, {}, 50.0),
        )
    )
)
def test_max_q_len(found, expected):
    """002, ATLAS Analysis Job Brokerage: Finally, the max value among the following, called max_q_len , will be
    used to throttle nQ(PQ, user) BASE_DEFAULT_QUEUE_LENGTH_PER_PQ_USER BASE_QUEUE_RATIO_ON_PQ* nR(PQ) nQ_max(PQ) *
    percentage(PQ, user)
    """
    assert found.queues()["Q"]["max_q_len"] == expected


@cases(
    (ask(of_two(100, 9), LONG), None),
    (ask(of_two(101, 9), LONG), "badsite"),
)
def test_a_user_with_enough_queuing_jobs(found, expected):
    """002, ATLAS Analysis Job Brokerage: Thus, if nQ(PQ, user) > max_q_len , the brokerage will temporarily exclude
    the PQs in which the user of the task already has enough queuing jobs
    """
    assert found.check == expected


# ---- the weight


def counted(running: int, **jobs: int) -> World:
    world = World().queue("Q").jobs("Q", "running", running)
    for status, number in jobs.items():
        world.jobs("Q", status, number)
    return world


@cases((ask(counted(29, activated=4, assigned=3, starting=2, defined=5)), 30 / 15))
def test_the_original_basic_weight(found, expected):
    """002, ATLAS Analysis Job Brokerage: weight = (running + 1) / (activated + assigned + starting + defined + 1)"""
    assert found.queues()["Q"]["weight"] == expected


@cases(
    (ask(counted(29).jobs("Q", "running", 10, gshare="Express Analysis")), 39),
    (deployed(counted(29).jobs("Q", "running", 10, gshare="Express Analysis")), 29),
)
def test_the_running_jobs_of_the_queue(found, expected):
    """002, ATLAS Analysis Job Brokerage: The actual number of running jobs at the queue, Rreal.

    The page names no share: all jobs of the queue count, in production those of the share.
    """
    assert found.queues()["Q"]["running"] == expected


def with_workers(running: int, workers: int) -> World:
    world = counted(running)
    for status, number in (("running", workers - 1), ("submitted", 1), ("finished", 50)):
        world.add("worker_stats", panda_queue="Q", status=status, n_workers=number)
    return world


@cases(
    *(
        (ask(with_workers(running, workers)), count)
        for running, workers, count in (
            (5, 12, 12),
            (5, 30, 20),
            (5, 4, 5),
            (20, 30, 20),
            (19, 30, 20),
        )
    )
)
def test_batch_workers(found, expected):
    """002, ATLAS Analysis Job Brokerage: min(nBatchJob, 20) if Rreal < 20 and nBatchJob (the number of
    running+submitted batch workers at PQ) > Rreal.
    """
    assert found.queues()["Q"]["running"] == expected


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


@cases(
    (ask(with_slots(80)), 80),
    (ask(with_slots(8)), 9),
    (deployed(with_slots(80)), 10),
)
def test_slots(found, expected):
    """002, ATLAS Analysis Job Brokerage: numSlots if it is set to a positive number for the queue

    Of the numbers the largest; production divides slots by the cores of the queue.
    """
    assert found.queues()["Q"]["running"] == expected


@cases(
    (ask(with_slots(0)), 12),
    (deployed(with_slots(0)), 21),
)
def test_starting_jobs_where_slots_are_zero(found, expected):
    """002, ATLAS Analysis Job Brokerage: The number of starting jobs if numSlots is set to zero

    Of the numbers the largest; production adds them.
    """
    assert found.queues()["Q"]["running"] == expected


def with_copies() -> World:
    world = counted(29)
    for name in ("D", "E"):
        world.add("datasets", datasetname=name, is_master=name == "D")
        world.add("replicas", datasetname=name, ddm_endpoint_name="Q_DISK", found=1, total=1)
    return world


@told(page=ask(with_copies()), code=deployed(with_copies()))
def test_the_weight_in_use(page, code):
    """002, ATLAS Analysis Job Brokerage: Currently original basic weight is used in brokerage.

    Nothing multiplies it; production weighs by the new one, and by the input that is there.
    """
    row, in_code = page.queues()["Q"], code.queues()["Q"]
    assert row["weight"] == row["orig"] == 30.0
    assert in_code["weight"] == 2 * in_code["new"]


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


def new_weights(found: Found) -> dict[str, float]:
    return {name: row["weight"] for name, row in found.queues().items()}


W_Q = (50 - 10 / 3) / (150 - 10)
"""W_q of each of the three queues."""


@cases(
    *(
        (ask(classed(task_class), NEW), w_s)
        for task_class, w_s in ((2, (10, 1, 2)), (1, (10, 1, 2)), (0, (2, 10, 1)), (-1, (2, 1, 10)))
    )
)
def test_the_new_weight(found, expected):
    """002, ATLAS Analysis Job Brokerage: New basic weight = W_s · W_q , where W_s weight from site-class For jobs
    in User Analysis and Express Analysis: W_s is shown in the table

    10 stands for N_j, 1 and 2 for epsilon 1 and 2.
    """
    weights = new_weights(found)
    value = {10: 10.0, 1: 0.05, 2: 0.002}
    for name, which in zip(("HI", "MID", "LO"), expected, strict=True):
        assert weights[name] == pytest.approx(value[which] * W_Q, rel=1e-14)


@told(found=ask(classed(1), NEW))
def test_epsilons(found):
    """002, ATLAS Analysis Job Brokerage: ε_1, ε_2: some small positive numbers (not fixed) to avoid dead zero; ε_1
    > ε_2
    """
    weights = new_weights(found)
    assert weights["HI"] > weights["MID"] > weights["LO"] > 0


@told(found=ask(classed(1, gshare="Group Analysis"), NEW))
def test_other_shares_know_no_classes(found):
    """002, ATLAS Analysis Job Brokerage: For other analysis shares (group shares, ART, etc.): W_s = N_j ."""
    weights = new_weights(found)
    assert len(weights) == 3
    assert weights == pytest.approx(dict.fromkeys(weights, 10 * W_Q), rel=1e-14)


def filled() -> World:
    world = classed(1, gshare="Group Analysis")
    world.rows["user_job_stats"][0]["nqueue"] = 20  # alice at HI
    return world


@told(found=ask(filled(), NEW))
def test_the_weight_of_the_queue_length(found):
    """002, ATLAS Analysis Job Brokerage: W_q = ( max_q_len(PQ, user) - nQ(PQ, user) - N_j / N_PQ ) / ( ( sum over
    candidate PQs ( max_q_len(PQ, user) - nQ(PQ, user) ) ) - N_j )
    """
    weights = new_weights(found)
    assert weights["HI"] == pytest.approx(10 * (50 - 20 - 10 / 3) / (130 - 10), rel=1e-14)
    assert weights["LO"] == pytest.approx(10 * (50 - 10 / 3) / (130 - 10), rel=1e-14)


# ---- what is left


def short() -> World:
    world = with_input()
    world.rows["queues"][0]["maxtime"] = 1
    return world


def bad() -> World:
    return with_input().add("failure_counts", computingsite="P", jobstatus="failed", njobs=9)


@cases(
    (ask(short()), (2, None)),
    (ask(with_input().jobs("P", "activated", 41)), (1, "data_locality")),
    (ask(bad()), (1, "data_locality")),
)
def test_a_persistent_issue_gives_up_locality(found, expected):
    """002, ATLAS Analysis Job Brokerage: If all queues are skipped due to the persistent issues, the brokerage
    tries to find candidates without the input data locality check.

    A temporary one does not, but in production.
    """
    assert (found.task["loop"], found.check) == expected


@cases(
    (ask(World().queue("Q", status="offline")), 20),
    (deployed(World().queue("Q", status="offline")), 60),
)
def test_a_task_without_candidates_waits(found, expected):
    """002, ATLAS Analysis Job Brokerage: If all queues are still skipped, the task is pending for 20 min."""
    assert found.task["pending_until"] == AT + timedelta(minutes=expected)
    assert found.task["outcome"] == "temporary_error"


@cases(
    (ask(World(site="Q").queue("P").queue("Q", corecount=8)), "temporary_error"),
    (deployed(World(site="Q").queue("P").queue("Q", corecount=8)), "fatal"),
)
def test_a_preassigned_task_waits_too(found, expected):
    """002, ATLAS Analysis Job Brokerage: If all queues are still skipped, the task is pending for 20 min."""
    assert found.checks() == {"P": "nonpreassigned", "Q": "cpucore"}
    assert found.task["outcome"] == expected


def twelve() -> World:
    world = World().add("datasets", datasetname="D/", is_master=True)
    for n in range(12):
        name = f"Q{n:02}"
        world.queue(name).jobs(name, "running", 100 - n)
        world.add("replicas", datasetname="D/", ddm_endpoint_name=f"{name}_DISK", found=1, total=2)
    return world.add("sites_used", computingsite="Q11")


@told(found=ask(twelve()))
def test_the_best_ten(found):
    """002, ATLAS Analysis Job Brokerage: Otherwise, the remaining candidates are sorted by weight, and the best 10
    candidates are taken.

    Also where the input is distributed, and whatever queues the task has used.
    """
    ranks = {name: row["rank"] for name, row in found.queues().items()}
    assert ranks == {f"Q{n:02}": n + 1 if n < 10 else None for n in range(12)}
