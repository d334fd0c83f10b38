"""Cases of the production task brokerage (002): nuclei A and B have room and are well unless a case says otherwise."""

from __future__ import annotations

from typing import Any

import pytest

from brokerlab.brokerage import plugins
from brokerlab.brokerage.production_tasks.brokerage import decide
from brokerlab.brokerage.rules import ProductionRules
from tests.unit.brokerage.production_jobs.book import cases
from tests.unit.brokerage.production_tasks.world import (
    AT,
    TB,
    Found,
    ask,
    at,
    decided,
    endpoint,
    frames,
    nucleus,
    reasons,
    replica,
    task,
    the_task,
    world,
)

PER_GB = 10 * 86400 / 0.25
"""Work that asks for one GB: 10 HS06 a core, 0.25 GB a core and day [HS06 s]."""
Tables = dict[str, list[dict[str, Any]]]


def reason(tables: Tables, rules: Any = "document", **settings: Any) -> str | None:
    """Return why nucleus A is skipped; null: it is not."""
    return reasons(decided(tables, rules, settings))["A"]


def of_input(*replicas: dict[str, Any], **columns: Any) -> Tables:
    """Return a world of a task that reads one dataset, much of it by the second."""
    return world(
        "A",
        "B",
        tasks=[task(**{"iointensity": 500} | columns)],
        datasets=[{"datasetname": "in", "is_master": True}],
        replicas=list(replicas),
    )


def nobody_has_it(**columns: Any) -> Tables:
    tables = of_input(replica("ELSEWHERE", 10), **columns)
    tables["storage_endpoints"] += [endpoint("ELSEWHERE_DATADISK")]
    return tables


def space(tables: Tables, **columns: Any) -> Tables:
    """Return the world with another storage at nucleus A."""
    tables["storage_endpoints"][0] |= columns
    return tables


def test_ours_are_plugins_as_those_of_an_organisation():
    """002, Brokerage: The brokerage has a plugin structure so that organizations can provide their algorithms"""
    names = set(plugins.available().filter(package="brokerlab")["name"])
    assert names == {"analysis-jobs", "production-jobs", "production-tasks"}
    for name in names:
        ours = plugins.get(name)
        assert ours.checks_table().height > 0
        assert ours.decide({}).tasks.height == 0


@cases(
    *(
        (ask(world("A", "B", nuclei=[nucleus("A", state=state), nucleus("B")])), "nucleus_inactive")
        for state in ("OFFLINE", "active", None)
    )
)
def test_only_active_nuclei(found, expected):
    """002, ATLAS Production Task Brokerage: Generate the primary list of nuclei in the ACTIVE status."""
    assert reasons(found) == {"A": expected, "B": None}


def backlog(t1weight: int | None, files: float) -> Tables:
    link = {"src": "S", "dst": "A", "key": "Production Output_queued", "ts": AT, "value": files}
    return world("A", "B", tasks=[task(t1weight=t1weight)], network_matrix=[link])


@cases(
    *(
        (ask(backlog(t1weight, files)), skipped and files > 2000)
        for t1weight, skipped in ((None, True), (0, True), (1, True), (-1, False))
        for files in (2001.0, 2000.0)
    )
)
def test_long_backlogs(found: Found, expected: bool):
    """002, ATLAS Production Task Brokerage: Nuclei are skipped if there are long transfer backlogs unless
    t1Weight of the task is negative.
    """
    assert (reasons(found)["A"] == "transfer_backlog") is expected


def test_a_nucleus_without_storage():
    """002, ATLAS Production Task Brokerage: Nuclei must have associated storages.

    The deployed code gives up where one has none, and the task gets no decision.
    """
    tables = world("A", "B", nuclei=[nucleus("A", output_endpoints=[]), nucleus("B")])
    assert reasons(decided(tables)) == {"A": "no_storage", "B": None}
    assert the_task(decided(tables, "production"))["outcome"] == "abort"


def test_storage_is_that_of_outputs():
    """002, ATLAS Production Task Brokerage: The storages associated to nuclei must have enough space:

    It is that of outputs, and of a task without outputs the first one.
    """
    tables = space(world("A", "B"), space_free=1.0)
    assert reason(tables) == reason(tables | {"output_datasets": []}) == "disk_space"
    known = frames(tables)
    del known["output_datasets"]
    assert reasons(decide(known))["A"] == "disk_space"
    assert reason(tables | {"output_datasets": []}, "production") is None
    away = [{"datasetname": "out", "storagetoken": "ddd:AWAY"}]
    assert reason(tables | {"output_datasets": away}) is None  # gathered nowhere
    del known["storage_endpoints"]
    found = decide(known)
    assert reasons(found)["A"] is None
    assert "disk_space" in found.world.unasked["storage_endpoints"]


def test_the_weight_is_that_of_the_storage_without_outputs_too():
    """002, ATLAS Production Task Brokerage: spaceTotal is the total size of the storage."""
    tables = world("A", "B", output_datasets=[])
    tables["storage_endpoints"][0] |= {"space_free": 400.0 * TB, "space_total": 800.0 * TB}
    weight = 400 * 400 / (50 * 800)  # TB
    assert at(decided(tables), "A")["weight"] == pytest.approx(weight)


def test_storage_is_the_own():
    """full-chain.md 1: production lends full chains the storage of secondaryNucleus, of which the page is silent."""
    lender = nucleus("A", bare_mode="allow", secondary_nucleus="B")
    tables = world("A", "B", nuclei=[lender, nucleus("B")], tasks=[task(fullchain="require")])
    tables["storage_endpoints"][1]["read_wan"] = "OFF"
    assert reason(tables) is None
    assert reason(tables, ProductionRules(secondary_lends=True)) == "read_wan_down"
    assert reason(tables, "production") == "read_wan_down"


@cases(
    *(
        (
            ask(
                space(
                    world("A", "B"),
                    space_free=free,
                    space_expired=expired,
                    space_min_free=50.0 * TB,
                )
            ),
            skipped,
        )
        for free, expired, skipped in (
            (100.0 * TB, 0.0, True),
            (100.0 * TB, 0.1, False),
            (60.0 * TB, 41.0 * TB, False),
        )
    )
)
def test_space_is_above_the_threshold(found: Found, expected: bool):
    """002, ATLAS Production Task Brokerage: spaceFree + spaceExpired - normalizedExpOutSize × RW > diskThreshold

    What must stay free and what is unavailable are not part of it.
    """
    assert (reasons(found)["A"] == "disk_space") is expected


def test_work_asks_for_a_quarter_gb_per_core_and_day():
    """002, ATLAS Production Task Brokerage: normalizedExpOutSize is the expected size of the output file normalized
    by cpuTime × corePower × day (0.25)
    """
    work = [{"nucleus": "A", "rw": PER_GB * 10.5}]
    tables = world("A", "B", remaining_work=work)
    assert at(decided(tables), "A")["demand_gb"] == 10.5
    assert at(decided(tables, "production"), "A")["demand_gb"] == 10.0
    assert reason(space(tables, space_free=100.0 * TB + 10.5)) == "disk_space"
    assert reason(space(tables, space_free=100.0 * TB + 10.6)) is None


def test_all_work_of_the_nucleus_counts():
    """002, ATLAS Production Task Brokerage: RW is the total amount of exiting workload assigned to the nucleus

    Here and in the weight; the deployed weight counts the task's work queue, at its priority or above.
    """
    rows = [
        {"nucleus": "A", "rw": 200.0},
        {"nucleus": "A", "workqueue_name": "MC", "currentpriority_min": 500, "rw": 80.0},
    ]
    tables = world("A", "B", remaining_work=rows)
    assert [at(decided(tables, rules), "A")["rw"] for rules in ("document", "production")] == [
        200.0,
        80.0,
    ]
    assert at(decided(tables), "A")["work"] == 1 / 200


def test_work_given_in_the_same_cycle_counts_too():
    """A gap of the page: what tasks before it were given there is assigned to the nucleus, whatever their priority."""
    first, other = task(jeditaskid=1, task_rw=1000.0, gshare="X"), task(currentpriority=900)
    result = decided(world("A", tasks=[first, other]))
    assert result.nuclei["rw"].to_list() == [0.0, 1000.0]


def test_the_threshold_of_a_gshare():
    """002, ATLAS Production Task Brokerage: diskThreshold is the threshold defined per gshare as
    DISK_THRESHOLD_<gshare> in gdpconfig.
    """
    settings = {"DISK_THRESHOLD_MC": 600, "DISK_THRESHOLD_R": 1}
    tables = world("A", "B", tasks=[task(workqueue_name="R")])
    assert reason(tables, **settings) == "disk_space"
    assert reason(tables, "production", **settings) is None


@pytest.mark.parametrize(("settings", "skipped"), [({}, False), ({"DISK_THRESHOLD": 102}, True)])
def test_the_threshold_for_all(settings: dict[str, int], skipped: bool):
    """002, ATLAS Production Task Brokerage: If not specified per gshare, DISK_THRESHOLD defines it for all, with a
    default value of 100 TB.
    """
    tables = space(world("A", "B"), space_free=101.0 * TB)
    assert (reason(tables, DISK_THRESHOLD_Other=900, **settings) == "disk_space") is skipped


@cases(
    *(
        (
            ask(space(world("A", "B"), **{f"{side}_wan": status})),
            f"{side}_wan_down" if down else None,
        )
        for side in ("read", "write")
        for status, down in (("ON", False), ("OFF", True), ("TEST", True), ("DRAIN", True))
    )
)
def test_storages_are_open_over_wan(found: Found, expected: str | None):
    """002, ATLAS Production Task Brokerage: their read_wan and write_wan must be ON"""
    assert reasons(found)["A"] == expected


def of_two_datasets(second: str, on_master: bool | None) -> Tables:
    everywhere = [replica(site, 1) for site in "AB"]
    tables = of_input(
        *(row | {"found": 10, "asize": row["tsize"]} for row in everywhere),
        replica("B", 91, 91, dataset=second),
        taskbrokeronmaster=on_master,
    )
    tables["datasets"] += [{"datasetname": second, "is_master": False}]
    return tables


@cases(
    *(
        (ask(of_two_datasets(second, on_master), rules), skipped)
        for on_master in (None, False)
        for second in ("second", "ddo.conditions", "mc.1.a.b.log.x")
        # 10 of 101 GB
        for rules, skipped in (("document", True), ("production", second == "second"))
    )
)
def test_all_input_datasets_are_considered(found: Found, expected: bool):
    """002, ATLAS Production Task Brokerage: All input datasets are considered if the taskBrokerOnMaster task
    parameter is set to False or is unspecified.

    Conditions and logs too; the deployed code leaves them out.
    """
    assert reasons(found)["A"] == ("input_size" if expected else None)


def test_only_the_primary_dataset():
    """002, ATLAS Production Task Brokerage: Otherwise, only the primary input dataset is considered, i.e., secondary
    datasets are ignored.
    """
    tables = of_input(
        replica("A", 10), replica("B", 1000, 1000, dataset="second"), taskbrokeronmaster=True
    )
    tables["datasets"] += [{"datasetname": "second", "is_master": False}]
    assert reasons(decided(tables)) == {"A": None, "B": "input_size"}


@cases(
    *(
        (ask(of_input(replica("A", 1, 100), replica("B", 100, 100), inputprestaging=staged)), check)
        for staged, check in ((True, None), (False, "input_size"), (None, "input_size"))
    )
)
def test_incomplete_local_data_with_prestaging(found: Found, expected: str | None):
    """002, ATLAS Production Task Brokerage: Nuclei with incomplete local data can be used if the inputPreStaging task
    parameter is set to True
    """
    assert reasons(found)["A"] == expected


SMALL = {"asize": 1, "tsize": 1}


@cases(
    *(
        (ask(of_input(replica("B", 200, 200, **size), inputprestaging=True), rules), check)
        for size, deployed in (({}, "input_size"), (SMALL, "input_files"))
        for rules, check in (("document", None), ("production", deployed))
    )
)
def test_prestaging_ignores_both_rules(found: Found, expected: str | None):
    """002, ATLAS Production Task Brokerage: Those nuclei ignore the next two rules with the input data size and the
    number of input files.

    Also where nothing is local; the deployed code asks for one file.
    """
    assert reasons(found)["A"] == expected


@cases(
    *(
        (ask(of_input(replica("A", files), replica("B", 10)), **settings), check)
        for files, skipped in ((0, True), (1, True), (2, False))
        for settings, check in (
            ({}, "input_size" if skipped else None),
            ({"INPUT_SIZE_THRESHOLD": 10}, None),
        )
    )
)
def test_the_local_part_of_the_size(found: Found, expected: str | None):
    """002, ATLAS Production Task Brokerage: The fraction of the data size locally available divide by the total input
    size must be larger than INPUT_SIZE_FRACTION (defined in gdpconfig) if the total input size is larger than
    INPUT_SIZE_THRESHOLD

    By default 10 % above 1 GB; 10 GB are read.
    """
    assert reasons(found)["A"] == expected


@cases(
    *(
        (
            ask(
                of_input(replica("A", percent * 2, 200, **SMALL), replica("B", 200, 200, **SMALL)),
                INPUT_NUM_FRACTION=fraction,
            ),
            check,
        )
        for percent in (7, 29, 57)
        for fraction, check in ((percent, "input_files"), (percent - 1, None))
    )
)
def test_a_part_that_is_equal_to_the_fraction_fails(found: Found, expected: str | None):
    """002, ATLAS Production Task Brokerage: The fraction of the number of files locally available divide by the total
    number of input files must be larger than INPUT_NUM_FRACTION
    """
    assert reasons(found)["A"] == expected


@cases(
    *(
        (
            ask(
                of_input(replica("A", 0, total, **SMALL), replica("B", total, total, **SMALL)),
                rules,
            ),
            check,
        )
        for total, skipped in ((100, None), (101, "input_files"))
        for rules, check in (("document", skipped), (ProductionRules(input_num_of="size"), None))
    )
)
def test_the_threshold_of_files_is_a_number(found: Found, expected: str | None):
    """002, ATLAS Production Task Brokerage: if the total input size is larger than INPUT_NUM_THRESHOLD

    A slip of the page: the key is a number of files, 100 by default. The switch compares the size [GB].
    """
    assert reasons(found)["A"] == expected


def unplaced(**columns: Any) -> Tables:
    tables = nobody_has_it()
    tables["tasks"][0] |= columns
    return tables


LIMIT = "MIN_INPUT_SIZE_WITH_LOCAL_DATA"


@cases(
    *(
        (ask(unplaced(**columns), **settings), disabled)
        for columns, settings, disabled in (
            ({"iointensity": 200}, {}, True),
            ({"iointensity": 201}, {}, False),
            ({"iointensity": 200}, {LIMIT: 10}, True),
            ({"iointensity": 200}, {LIMIT: 9}, False),
            ({"taskpriority": 800}, {}, True),
            ({"taskpriority": 799, "currentpriority": 900}, {}, False),
            ({"taskpriority": 800}, {LIMIT: 9}, True),
            ({"frozentime": AT.replace(year=2025)}, {}, False),
        )
    ),
    (ask(unplaced(frozentime=AT.replace(year=2025)), "production"), True),
)
def test_what_disables_the_check(found: Found, expected: bool):
    """002, ATLAS Production Task Brokerage: The entire data locality check is disabled if no nuclei pass and ioIntencity
    of the task is less than or equal to MIN_IO_INTENSITY_WITH_LOCAL_DATA and the total input size is less than or
    equal to MIN_INPUT_SIZE_WITH_LOCAL_DATA, or taskPriority of the task is larger than or equal to
    MAX_TASK_PRIO_WITH_LOCAL_DATA.

    And nothing else: the deployed code also ends it for tasks that are stuck for a week.
    """
    assert (reasons(found)["A"] is None) is expected


def test_the_check_stays_while_a_nucleus_passes():
    """002, ATLAS Production Task Brokerage: The entire data locality check is disabled if no nuclei pass"""
    tables = of_input(replica("B", 10), taskpriority=900)
    assert reason(tables) == "input_size"


def test_nuclei_are_chosen_by_weight():
    """002, ATLAS Production Task Brokerage: Calculate brokerage weight for remaining nuclei using the following formula
    to choose a nuclei based on that

    A gap of the page: drawn at random in proportion to the weight.
    """
    tables = space(world("A", "B"), space_free=250.0 * TB)  # a quarter of the weight of B
    assert at(decided(tables), "A")["probability"] == pytest.approx(0.2)
    names = [the_task(decided(tables, draw=draw))["nucleus"] for draw in (0.19, 0.21)]
    assert names == ["A", "B"]


def formula(**columns: Any) -> Tables:
    """Return a world in which nucleus A has 8 of 10 GB, 300 TB free, 100 TB expired of 1000 TB, and 200 HS06 s to do."""
    tables = of_input(replica("A", 8), replica("B", 10), **columns)
    tables["remaining_work"] = [{"nucleus": "A", "rw": 200.0}]
    return space(tables, space_free=300.0 * TB, space_expired=100.0 * TB)


def test_the_weight_with_data():
    """002, ATLAS Production Task Brokerage: weight = localInputSize × tapeWeight × (spaceFree + spaceExpired)
    × min(spaceFreeCutoff, spaceFree) / (max(rwOffset, RW) × totalInputSize × spaceTotal)
    """
    row = at(decided(formula(iointensity=201)), "A")
    assert row["weight"] == pytest.approx(8 * 1 * 400 * 300 / (200 * 10 * 1000), rel=1e-12)


@cases(
    *(
        (ask(formula(iointensity=intensity)), 1 * 400 * 300 / (200 * 1000))
        for intensity in (200, None)
    )
)
def test_the_weight_without_data(found: Found, expected: float):
    """002, ATLAS Production Task Brokerage: Otherwise, weight = tapeWeight × (spaceFree + spaceExpired)
    × min(spaceFreeCutoff, spaceFree) / (max(rwOffset, RW) × spaceTotal)
    """
    assert at(found, "A")["weight"] == pytest.approx(expected, rel=1e-12)


def test_local_and_total_size():
    """002, ATLAS Production Task Brokerage: localInputSize is the size of input data locally available, totalInputSize
    is the total size of input data
    """
    row = at(decided(formula()), "A")
    assert (row["ava_size_any"], row["tot_size"], row["data"]) == (8 * 1024**3, 10 * 1024**3, 0.8)


@pytest.mark.parametrize("iointensity", [100, 500])
def test_input_on_tape(iointensity: int):
    """002, ATLAS Production Task Brokerage: tapeWeight is 0.001 if input data is on the tape storage, or 1 otherwise

    Whether the check of locality was disabled or not; the deployed code forgets it then.
    """
    tables = formula(iointensity=iointensity, taskpriority=900, currentpriority=900)
    tables["storage_endpoints"] += [endpoint("B_TAPE", is_tape=True)]
    tables["nuclei"][1]["input_endpoints"] = ["B_TAPE"]
    tables["replicas"][1]["ddm_endpoint_name"] = "B_TAPE"
    result = decided(tables)
    assert [at(result, name)["tape"] for name in "AB"] == [1.0, 0.001]
    waived = {"INPUT_SIZE_FRACTION": 100}
    assert at(decided(tables, settings=waived), "B")["tape"] == 0.001
    assert at(decided(tables, "production", {"INPUT_SIZE_FRACTION": 101}), "B")["tape"] == 1.0


def with_work(rw: float) -> Tables:
    return formula() | {"remaining_work": [{"nucleus": "A", "rw": rw}]}


@cases(
    (ask(with_work(0.0)), 1 / 50), (ask(with_work(50.0)), 1 / 50), (ask(with_work(51.0)), 1 / 51)
)
def test_the_offset_of_the_work(found: Found, expected: float):
    """002, ATLAS Production Task Brokerage: rwOffset is 50 to have the minimum offset for RW"""
    assert at(found, "A")["work"] == expected


def test_the_cutoff_and_the_total_of_the_space():
    """002, ATLAS Production Task Brokerage: spaceFreeCutoff is the maximum free disk space value that will be factored
    into the calculation (FREE_DISK_CUTOFF in gdpconfig), and spaceTotal is the total size of the storage.
    """
    row = at(decided(formula(), settings={"FREE_DISK_CUTOFF": 200}), "A")
    assert (row["space_amount"], row["space_fraction"]) == (200.0, 0.4)


def test_a_task_without_nucleus_waits():
    """002, ATLAS Production Task Brokerage: If all nuclei are skipped, the task is pending for 30 min and then gets
    retried.
    """
    tables = world("A", nuclei=[nucleus("A", state="OFFLINE")])
    row = the_task(decided(tables))
    assert (row["outcome"], row["pending_until"]) == ("no_candidates", AT.replace(minute=30))


def test_checks_of_the_code_alone_are_no_part_of_the_document():
    """Queues that could run the task, and input that no site can send, are asked about in production alone."""
    tables = of_input(replica("A", 9), replica("B", 9))
    for rules, outcome in (("document", "nucleus"), ("production", "input_not_readable")):
        assert the_task(decided(tables, rules))["outcome"] == outcome
    for rules, expected in (("document", None), ("production", "no_queue")):
        assert reasons(decided(world("A", "B"), rules, hints=["B_Q"]))["A"] == expected
