"""Each filter in the words of the page (document rules), and where the deployed code differs."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest

from brokerlab.brokerage.engine.steps import rules_of
from brokerlab.brokerage.production_tasks.ranking import checks, steps
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
    nucleus,
    reasons,
    replica,
    task,
    the_task,
    world,
    would_help,
)

RULE_SETS = ("document", "production")


def queued(files: float, nucleus: str = "A", **columns: Any) -> list[dict[str, Any]]:
    row = {"src": "S", "dst": nucleus, "key": "Production Output_queued", "value": files, "ts": AT}
    return [row | columns]


def with_input(*replicas: dict[str, Any], **columns: Any) -> dict[str, list[dict[str, Any]]]:
    return world(
        "A",
        "B",
        tasks=[task(iointensity=500, **columns)],
        datasets=[{"datasetname": "in", "is_master": True}],
        replicas=list(replicas),
    )


def test_the_primary_list_is_of_nuclei_in_the_active_status() -> None:
    tables = world("A", "B", "C")
    tables["nuclei"][0]["state"], tables["nuclei"][1]["state"] = "OFFLINE", None
    result = decided(tables)
    assert reasons(result) == {"A": "nucleus_inactive", "B": "nucleus_inactive", "C": None}
    assert the_task(result)["nucleus"] == "C"


@cases(
    *(
        (
            ask(
                world("A", "B", tasks=[task(t1weight=t1weight)], network_matrix=queued(files)),
                rules,
            ),
            skipped,
        )
        for rules in RULE_SETS
        for files, t1weight, skipped in (
            (2001.0, None, True),
            (2001.0, 0, True),
            (2000.0, 0, False),
            (2001.0, -1, False),
        )
    )
)
def test_long_transfer_backlogs_skip_unless_t1weight_is_negative(
    found: Found, expected: bool
) -> None:
    assert (reasons(found)["A"] == "transfer_backlog") is expected


def test_the_backlog_is_the_sum_over_all_sources_of_the_last_hour() -> None:
    rows = queued(1500.0) + queued(501.0, src="T") + queued(9000.0, "B", ts=AT.replace(hour=10))
    result = decided(world("A", "B", network_matrix=rows))
    assert reasons(result) == {"A": "transfer_backlog", "B": None}
    assert at(result, "A")["queued_files"] == 2001.0


def test_nuclei_must_have_associated_storages() -> None:
    tables = world("A", "B")
    tables["nuclei"][0]["output_endpoints"] = []
    assert reasons(decided(tables)) == {"A": "no_storage", "B": None}


def test_production_gives_no_decision_where_a_storage_is_missing() -> None:
    tables = world("A", "B", "C", "D")
    tables["storage_endpoints"][0]["read_wan"] = "OFF"
    tables["nuclei"][1]["output_endpoints"] = []
    tables["nuclei"][3]["state"] = "OFFLINE"
    result = decided(tables, "production")
    assert the_task(result)["outcome"] == "abort"
    assert the_task(result)["pending_until"] is None
    assert reasons(result) == {
        "A": "read_wan_down",  # before it in the walk
        "B": "no_storage",
        "C": "not_reached",
        "D": "nucleus_inactive",
    }
    assert not result.nuclei["check"].has_nulls()


def stored(**columns: Any) -> dict[str, list[dict[str, Any]]]:
    """Return a world with another storage at nucleus A."""
    tables = world("A", "B")
    tables["storage_endpoints"][0] |= columns
    return tables


@cases(
    *(
        (ask(stored(**{f"{side}_wan": status}), rules), f"{side}_wan_down" if skipped else None)
        for side in ("read", "write")
        for status, document, production in (
            ("ON", False, False),
            (None, False, False),
            ("OFF", True, True),
            ("TEST", True, True),
            ("DRAIN", True, False),
        )
        for rules, skipped in (("document", document), ("production", production))
    )
)
def test_read_wan_and_write_wan_must_be_on(found: Found, expected: str | None) -> None:
    assert reasons(found)["A"] == expected


@cases(
    *(
        (ask(stored(space_free=free), rules), skipped)
        for free, document, production in (
            (100.0 * TB - 1, True, True),
            (100.0 * TB, True, False),
            (100.0 * TB + 1, False, False),
        )
        for rules, skipped in (("document", document), ("production", production))
    )
)
def test_space_must_be_above_the_threshold_of_100_tb(found: Found, expected: bool) -> None:
    """T5: equal to the threshold fails in the document and passes as deployed."""
    assert (reasons(found)["A"] == "disk_space") is expected


def test_expired_space_counts_and_what_must_stay_free_only_as_deployed() -> None:
    """T2."""
    tables = world("A", "B")
    space = {"space_free": 60.0 * TB, "space_expired": 60.0 * TB, "space_min_free": 30.0 * TB}
    tables["storage_endpoints"][0] |= space
    assert reasons(decided(tables))["A"] is None
    assert reasons(decided(tables, "production"))["A"] == "disk_space"


def test_work_assigned_takes_space_a_quarter_gb_per_core_and_day() -> None:
    """RW / 10 HS06 / day * 0.25 GB, truncated; without limit of priority or work queue."""
    tables = world("A", "B")
    per_gb = 10 * 86400 / 0.25
    tables["storage_endpoints"][0]["space_free"] = 100.0 * TB + 10
    tables["remaining_work"] = [{"nucleus": "A", "rw": per_gb * 10.9}]
    result = decided(tables, "production")
    assert at(result, "A")["demand_gb"] == 10.0
    assert reasons(result)["A"] is None
    assert reasons(decided(tables))["A"] == "disk_space"  # equal
    tables["remaining_work"][0] |= {"workqueue_name": "MC", "currentpriority_min": 500}
    assert at(decided(tables), "A")["demand_gb"] == 0.0


def test_the_threshold_of_the_work_queue_comes_first() -> None:
    """As deployed: of the work queue's name, which is the gshare unless it is a resource queue."""
    tables = world("A", "B")
    settings = {"DISK_THRESHOLD_MC": 600, "DISK_THRESHOLD_RESOURCE": 1, "DISK_THRESHOLD": 2}
    assert set(reasons(decided(tables, "production", settings)).values()) == {"disk_space"}
    tables["tasks"] = [task(workqueue_name="RESOURCE")]
    assert at(decided(tables, "production", settings), "A")["disk_threshold_gb"] == 1024.0


def test_outputs_are_looked_at_one_after_the_other() -> None:
    """The first failing output gives the reason; distributed outputs are passed over."""
    tables = world("A", "B")
    tables["nuclei"][0]["output_endpoints"] = ["A_DATADISK", "A_SCRATCH"]
    tables["storage_endpoints"] += [endpoint("A_SCRATCH", type="SCRATCHDISK", write_wan="OFF")]
    tables["storage_endpoints"][0]["space_free"] = 0.0
    first = [
        {"datasetname": "log", "storagetoken": "ATLASSCRATCHDISK"},
        {"datasetname": "out", "storagetoken": "ATLASDATADISK"},
    ]
    tables["nuclei"] = tables["nuclei"][:1]
    assert reasons(decided(tables | {"output_datasets": first})) == {"A": "write_wan_down"}
    assert reasons(decided(tables | {"output_datasets": first[::-1]})) == {"A": "disk_space"}
    only = [{"datasetname": "out", "storagetoken": "ddd:A_DATADISK"}]
    result = decided(tables | {"output_datasets": only})
    assert reasons(result) == {"A": None}
    assert at(result, "A")["weight"] == pytest.approx(1 / 50)  # no term of space
    assert result.datasets.is_empty()


def test_nuclei_without_a_queue_for_the_task_are_skipped() -> None:
    tables = world("A", "B")
    assert reasons(decided(tables, "production", hints=["B_Q"])) == {"A": "no_queue", "B": None}
    switched_off = ProductionRules("production", hint_brokerage=False)
    assert reasons(decided(tables, switched_off, hints=["B_Q"])) == {"A": None, "B": None}
    nothing = decided(tables, "production", hints=[])
    assert the_task(nothing)["outcome"] == "no_queue_at_all"
    assert the_task(nothing)["stage"] == "no_queue"


def test_a_queue_belongs_to_the_nucleus_that_is_its_pandasite() -> None:
    tables = world("A", "B", queues=[{"panda_queue": "A_Q", "pandasite": "B"}])
    assert reasons(decided(tables, "production", hints=["A_Q"])) == {"A": "no_queue", "B": None}


@cases(
    *(
        (ask(with_input(replica("A", files), replica("B", 10)), rules), skipped)
        for files, document, production in ((0, True, True), (1, True, False), (2, False, False))
        for rules, skipped in (("document", document), ("production", production))
    )
)
def test_the_local_fraction_of_the_size_must_be_larger(found: Found, expected: bool) -> None:
    """T8: 10 % itself fails in the document and passes as deployed."""
    assert (reasons(found)["A"] == "input_size") is expected


def test_the_fraction_is_asked_only_above_the_threshold_of_the_size() -> None:
    tables = with_input(replica("A", 0), replica("B", 10))
    assert reasons(decided(tables, settings={"INPUT_SIZE_THRESHOLD": 10}))["A"] is None
    assert reasons(decided(tables, settings={"INPUT_SIZE_THRESHOLD": 9}))["A"] == "input_size"


SMALL = {"asize": 1, "tsize": 1}


@cases(
    *(
        (
            ask(with_input(replica("A", 0, total, **SMALL), replica("B", total, total, **SMALL))),
            skipped,
        )
        for total, skipped in ((100, False), (101, True))
    )
)
def test_the_local_fraction_of_the_files_must_be_larger(found: Found, expected: bool) -> None:
    """T7: the number of files is compared with the threshold of their number."""
    assert (reasons(found)["A"] == "input_files") is expected


def test_only_the_primary_dataset_counts_with_taskbrokeronmaster() -> None:
    tables = with_input(
        replica("A", 10),
        replica("A", 0, 1000, dataset="second"),
        replica("B", 1000, 1000, dataset="second"),
    )
    tables["datasets"] += [{"datasetname": "second", "is_master": False}]
    assert reasons(decided(tables))["A"] == "input_size"
    tables["tasks"][0]["taskbrokeronmaster"] = True
    assert reasons(decided(tables)) == {"A": None, "B": "input_size"}


def test_incomplete_local_data_are_enough_with_inputprestaging() -> None:
    tables = with_input(replica("A", 1, 100), replica("B", 100, 100), inputprestaging=True)
    assert reasons(decided(tables, settings={"INPUT_SIZE_FRACTION": 50})) == {"A": None, "B": None}
    tables["replicas"][0]["found"] = 0
    assert reasons(decided(tables, "production"))["A"] == "input_size"
    assert reasons(decided(tables))["A"] is None


def nobody_has_it(**columns: Any) -> dict[str, list[dict[str, Any]]]:
    tables = with_input(replica("ELSEWHERE", 10), **columns)
    tables["storage_endpoints"] += [endpoint("ELSEWHERE_DATADISK")]
    return tables


def unplaced(**columns: Any) -> dict[str, list[dict[str, Any]]]:
    tables = nobody_has_it()
    tables["tasks"][0] |= columns
    return tables


@cases(
    (ask(unplaced(iointensity=200)), True),
    (ask(unplaced(iointensity=201)), False),
    (ask(unplaced(iointensity=None)), True),
    (ask(unplaced(iointensity=201, taskpriority=800)), True),
    (ask(unplaced(iointensity=201, taskpriority=799)), False),
    (ask(unplaced(iointensity=201, taskpriority=None)), False),
)
def test_the_check_is_disabled_if_no_nucleus_passes(found: Found, expected: bool) -> None:
    told = the_task(found)
    assert told["outcome"] == ("nucleus" if expected else "no_candidates")
    assert told["locality"] == ("waived" if expected else None)
    assert told["stage"] == (None if expected else "input_size")


def test_a_large_input_is_not_waived_and_the_three_numbers_are_told() -> None:
    tables = nobody_has_it()
    tables["tasks"][0]["iointensity"] = 100
    result = decided(tables, settings={"MIN_INPUT_SIZE_WITH_LOCAL_DATA": 9})
    told = the_task(result)
    assert told["outcome"] == "no_candidates"
    assert (told["tot_size_gb"], told["min_input_size_gb"]) == (10.0, 9.0)
    assert (told["iointensity"], told["min_io_intensity"]) == (100.0, 200.0)
    assert (told["priority"], told["max_task_prio"]) == (500, 800.0)
    assert would_help(result) == ["input_size"]


def test_the_deployed_waiver_looks_at_the_current_priority() -> None:
    """T9."""
    tables = nobody_has_it()
    tables["tasks"][0] |= {"taskpriority": 100, "currentpriority": 800}
    assert the_task(decided(tables))["outcome"] == "no_candidates"
    assert the_task(decided(tables, "production"))["locality"] == "waived"


def test_the_check_is_not_waived_while_a_nucleus_passes() -> None:
    tables = with_input(replica("A", 10))
    tables["tasks"][0]["taskpriority"] = 900
    assert reasons(decided(tables)) == {"A": None, "B": "input_size"}
    tables["nuclei"][0]["state"] = "OFFLINE"
    result = decided(tables)
    assert the_task(result)["locality"] == "waived"
    assert reasons(result) == {"A": "nucleus_inactive", "B": None}


@cases(
    *(
        (ask(nobody_has_it(frozentime=AT.replace(day=31 - days + 1, month=5)), "production"), days)
        for days in (7, 8)
    )
)
def test_the_check_is_off_for_tasks_stuck_longer_than_the_period(
    found: Found, expected: int
) -> None:
    told, off = the_task(found), expected == 8
    assert told["locality"] == ("off_period" if off else None)
    assert told["outcome"] == ("nucleus" if off else "no_candidates")
    assert told["period_days_left"] == 7.0 - expected


def test_input_that_no_site_can_send_is_not_brokered() -> None:
    tables = with_input(replica("A", 10))
    tables["storage_endpoints"][0]["read_wan"] = "OFF"
    result = decided(tables, "production")
    assert the_task(result)["outcome"] == "input_not_readable"
    assert the_task(result)["pending_until"] == AT.replace(minute=30)
    assert result.nuclei.is_empty()
    assert result.findings["subject"].to_list() == ["in"]


@cases(
    *(
        (
            ask(
                world("A", datasets=[{"datasetname": name, "is_master": True} | column]),
                "production",
            ),
            "nucleus",
        )
        for name, column in (
            ("mc.1.a.b.log.x", {}),
            ("ddo.conditions", {}),
            ("in", {"pseudo": True}),
        )
    )
)
def test_conditions_logs_and_pseudo_datasets_do_not_count(found: Found, expected: str) -> None:
    assert the_task(found)["outcome"] == expected


def test_a_task_with_a_nucleus_keeps_it_unchecked() -> None:
    tables = world("A", "B", tasks=[task(nucleus="B")])
    tables["nuclei"][1]["state"] = "OFFLINE"
    result = decided(tables)
    told = the_task(result)
    assert (told["outcome"], told["nucleus"], told["already_assigned"]) == ("nucleus", "B", True)
    assert result.nuclei.is_empty()
    assert result.datasets["token"].to_list() == ["dst:B_DATADISK/ATLASDATADISK"]


def test_a_satellite_without_a_fitting_endpoint_takes_outputs_at_its_default() -> None:
    tables = world("A", "S", tasks=[task(nucleus="S")])
    tables["nuclei"][1] |= {"role": "satellite", "output_endpoints": ["S_SCRATCHDISK"]}
    assert decided(tables).datasets["ddm_endpoint_name"].to_list() == ["S_DATADISK"]


def test_all_skipped_means_pending_for_30_minutes() -> None:
    tables = world("A", "B")
    tables["nuclei"][0]["state"] = "OFFLINE"
    tables["storage_endpoints"][1]["space_free"] = 0.0
    result = decided(tables)
    told = the_task(result)
    assert told["outcome"] == "no_candidates"
    assert told["pending_until"] == AT.replace(minute=30)
    assert told["stage"] == "disk_space"
    assert would_help(result) == ["nucleus_inactive", "disk_space"]


def test_secondary_nucleus_lends_its_storage_to_full_chain_tasks() -> None:
    lender = nucleus("A", bare_mode="allow", secondary_nucleus="B")
    tables = world("A", "B", nuclei=[lender, nucleus("B")])
    tables["storage_endpoints"][1]["read_wan"] = "OFF"
    assert reasons(decided(tables)) == {"A": None, "B": "read_wan_down"}
    tables["tasks"] = [task(fullchain="capable")]
    rules = ProductionRules(secondary_lends=True)
    assert reasons(decided(tables, rules)) == {"A": "read_wan_down", "B": "read_wan_down"}


FLAGS = ("gathers_output", "read_wan_up", "write_wan_up")
NULL_FLAGS = ("lacks_size", "lacks_files", "waived", "parent_unknown")
TEXTS = ("state", "ddm_endpoint_name", "read_wan", "write_wan", "fullchain", "bare_mode")


@pytest.mark.parametrize("rules", RULE_SETS)
def test_nulls_are_no_reason(rules: str) -> None:
    """Only a state that is not known and an endpoint that does not exist are."""
    own = ProductionRules(rules)
    for check in (*checks(own), *rules_of(steps(own, None))):
        types = {
            name: pl.Boolean
            if name in (*FLAGS, *NULL_FLAGS)
            else pl.String
            if name in (*TEXTS, "check") or "detail" in name
            else pl.Float64
            for name in check.when.meta.root_names()
        }
        nothing = pl.DataFrame([dict.fromkeys(types)], schema=types)
        flags = [name for name in FLAGS if name in types]
        nothing = nothing.with_columns(pl.col(flags).fill_null(value=True))
        skipped = nothing.select(check.when.fill_null(value=False)).item()
        assert skipped is (check.name in ("nucleus_inactive", "no_storage")), check.name
        assert check.source
