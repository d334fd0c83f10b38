"""Completeness of many tasks at once, outcomes and what they say."""

import polars as pl
import pytest
from polars.testing import assert_frame_equal

from brokerlab.brokerage.inputs.data import completeness
from brokerlab.brokerage.rules import ProductionRules
from brokerlab.gdpconfig import Config

ENDPOINTS = pl.DataFrame(
    {
        "ddm_endpoint_name": ["DISK", "TAPE", "LAN", "DEAD"],
        "is_tape": [False, True, False, None],
        "read_lan": ["ON", None, "ON", "OFF"],
        "read_wan": ["ON", "ON", "OFF", "TEST"],
    }
)


def replicas(*rows):
    schema = ["datasetname", "ddm_endpoint_name", "found", "total"]
    return pl.DataFrame(rows, schema=schema, orient="row")


def datasets(*names, **flags):
    return pl.DataFrame([{"datasetname": name, **flags} for name in names])


def tasks(**columns):
    return pl.DataFrame({"jeditaskid": [1], "snapshot": [0], **columns})


def outcome(found):
    return found.tasks.row(0, named=True)


def test_nowhere_complete():
    found = completeness(tasks(), datasets("A", "B"), replicas(("A", "DISK", 4, 4)), ENDPOINTS)
    assert outcome(found)["outcome"] == "input_incomplete"
    assert outcome(found)["detail"] == "B: complete at no endpoint"


def test_complete_where_nothing_can_be_read():
    copies = replicas(("A", "DEAD", 4, 4), ("A", "DISK", 0, 4), ("A", "GONE", 4, 4))
    found = outcome(completeness(tasks(), datasets("A"), copies, ENDPOINTS))
    assert found["outcome"] == "input_incomplete"
    assert found["detail"] == "A: complete only where nothing can be read: DEAD, GONE"


def test_every_dataset_is_named():
    found = outcome(completeness(tasks(), datasets("B", "A"), None, ENDPOINTS))
    assert found["detail"] == "A: complete at no endpoint; B: complete at no endpoint"


@pytest.mark.parametrize(
    ("flags", "prestaging"),
    [
        ({"distributed": True}, False),
        ({"pseudo": True}, False),
        ({"type": "pseudo_input"}, False),
        ({}, True),
    ],
)
def test_what_needs_no_complete_replica(flags, prestaging):
    found = completeness(tasks(inputprestaging=prestaging), datasets("A", **flags), None, ENDPOINTS)
    assert outcome(found)["outcome"] is None
    assert outcome(found)["remote_source_available"]


def test_prestaging_still_has_complete_locations():
    copies = replicas(("A", "DISK", 4, 4))
    found = completeness(tasks(inputprestaging=True), datasets("A"), copies, ENDPOINTS)
    assert found.complete_locations["ddm_endpoint_name"].to_list() == ["DISK"]
    assert outcome(found)["any_complete"]


def test_merge_chunks_are_no_exception():
    found = completeness(tasks(is_merging=True), datasets("A"), None, ENDPOINTS)
    assert outcome(found)["outcome"] == "input_incomplete"


def test_a_source_that_only_its_site_reads():
    copies = replicas(("A", "LAN", 4, 4), ("B", "DISK", 4, 4))
    found = outcome(completeness(tasks(), datasets("A", "B"), copies, ENDPOINTS))
    assert (found["outcome"], found["remote_source_available"]) == (None, False)


def test_locations_are_complete_for_every_dataset():
    copies = replicas(
        ("A", "DISK", 4, 4), ("A", "TAPE", 4, 4), ("B", "TAPE", 4, 4), ("B", "DISK", 1, 100)
    )
    found = completeness(tasks(), datasets("A", "B"), copies, ENDPOINTS)
    assert found.complete_locations["ddm_endpoint_name"].to_list() == ["TAPE"]


@pytest.mark.parametrize(
    ("found", "total", "missing", "percent", "complete"),
    [
        (90, 100, 10, 100, True),
        (89, 100, 10, 100, False),
        (89, 100, 10, 89, True),
        (58, 100, 10, 58, True),
        (0, 5, 10, 0, False),
        (None, None, 0, 100, True),
    ],
)
def test_limits(found, total, missing, percent, complete):
    values = {"MAX_MISSING_INPUT_FILES": missing, "MIN_INPUT_COMPLETENESS": percent}
    config = Config.empty().with_values({f"jedi/jobbroker/{k}": v for k, v in values.items()})
    copies = replicas(("A", "DISK", found, total))
    result = completeness(tasks(), datasets("A"), copies, ENDPOINTS, config=config)
    assert (outcome(result)["outcome"] is None) == complete


def test_a_replica_may_say_itself_what_can_be_read():
    copies = replicas(("A", "DEAD", 4, 4)).with_columns(readable_lan=True, is_tape=True)
    found = completeness(tasks(), datasets("A"), copies, ENDPOINTS).datasets.row(0, named=True)
    assert (found["complete_tape"], found["local_source"], found["remote_source"]) == (
        True,
        True,
        False,
    )


def test_other_states_are_readable_in_production_only():
    odd = ENDPOINTS.with_columns(read_lan=pl.lit("BROKEN"), read_wan=pl.lit("OFF"))
    copies = replicas(("A", "DISK", 4, 4))
    for rules, expected in (("document", "input_incomplete"), ("production", None)):
        found = completeness(tasks(), datasets("A"), copies, odd, rules=ProductionRules(rules))
        assert outcome(found)["outcome"] == expected


def test_many_tasks_are_as_one_at_a_time_in_any_order():
    many = pl.DataFrame({"jeditaskid": [3, 1, 2, 1], "snapshot": [5, 5, 6, 6], "vo": ["atlas"] * 4})
    of_task = pl.DataFrame({"jeditaskid": [1, 2, 2, None], "datasetname": ["A", "A", "B", "C"]})
    copies = pl.concat(
        [
            replicas(("A", "DISK", 4, 4), ("C", "DISK", 1, 1)).with_columns(
                snapshot=None, jeditaskid=None
            ),
            replicas(("B", "TAPE", 3, 3), ("A", "TAPE", 1, 4)).with_columns(
                snapshot=6, jeditaskid=2
            ),
        ],
        how="vertical_relaxed",
    )
    states = pl.concat(
        [
            ENDPOINTS.with_columns(snapshot=5, read_wan=pl.lit("OFF")),
            ENDPOINTS.with_columns(snapshot=6),
        ]
    )
    together = completeness(many, of_task, copies, states)
    again = completeness(many.reverse(), of_task.reverse(), copies.reverse(), states.reverse())
    for name in ("tasks", "complete_locations", "datasets"):
        table = getattr(together, name)
        assert_frame_equal(table, getattr(again, name))
        single = [getattr(completeness(many[i], of_task, copies, states), name) for i in range(4)]
        assert_frame_equal(
            table,
            pl.concat(single).sort(table.columns[:3] if name != "tasks" else table.columns[:2]),
        )
    assert together.tasks.select(
        "jeditaskid", "snapshot", "outcome", "remote_source_available"
    ).rows() == [
        (1, 5, None, False),
        (1, 6, None, True),
        (2, 6, None, True),
        (3, 5, None, False),
    ]
