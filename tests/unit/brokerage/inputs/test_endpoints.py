"""Endpoint states of many queues at once, and the checks that read them."""

import polars as pl
import pytest
from polars.testing import assert_frame_equal

from brokerlab.brokerage.inputs.queues import (
    complete_here,
    endpoint_states,
)
from brokerlab.brokerage.rules import ProductionRules
from tests.oracle.prod_pairs import endpoint_status

DOCUMENT, PRODUCTION = ProductionRules(), ProductionRules("production")
GOOD = {
    "type": "DATADISK",
    "read_lan": "ON",
    "write_lan": "ON",
    "read_wan": "ON",
    "write_wan": "ON",
}


def both(**status):
    return [
        {"ddm_endpoint_name": f"E_{direction}", "direction": direction, **GOOD, **status}
        for direction in ("input", "output")
    ]


@pytest.mark.parametrize(
    ("status", "skip"),
    [
        ({}, None),
        ({"read_lan": "OFF"}, "read_lan_down"),
        ({"write_lan": "TEST"}, "write_lan_down"),
        ({"write_wan": "OFF"}, "write_wan_down"),
        ({"read_wan": "OFF"}, "read_wan_down"),
        ({"read_lan": "OFF", "read_wan": "OFF"}, "read_lan_down"),
        ({"read_wan": None, "read_lan": None}, None),
    ],
)
def test_first_check_that_skips(status, skip):
    for rules in (DOCUMENT, PRODUCTION):
        assert endpoint_status(both(**status), nucleus_queue=False, rules=rules) == skip


def test_only_production_asks_for_a_datadisk():
    scratch = both(type="SCRATCHDISK")
    assert endpoint_status(scratch, nucleus_queue=False, rules=PRODUCTION) == "read_lan_down"
    assert endpoint_status(scratch, nucleus_queue=False, rules=DOCUMENT) is None


def test_other_states_are_up_in_production_only():
    odd = both(read_lan="BROKEN")
    assert endpoint_status(odd, nucleus_queue=False, rules=PRODUCTION) is None
    assert endpoint_status(odd, nucleus_queue=False, rules=DOCUMENT) == "read_lan_down"


@pytest.mark.parametrize(
    ("nucleus", "locations", "skip"),
    [
        (True, [], None),
        (True, ["E_input"], None),
        (True, ["ELSEWHERE"], "write_wan_down"),
        (False, ["E_input"], "write_wan_down"),
    ],
)
def test_queues_of_the_nucleus_may_receive_over_a_dead_wan(nucleus, locations, skip):
    rows = both(write_wan="OFF")
    asked = {"nucleus_queue": nucleus, "complete_locations": locations}
    assert endpoint_status(rows, **asked, rules=PRODUCTION) == skip
    by_page = None if nucleus else "write_wan_down"
    assert endpoint_status(rows, **asked, rules=DOCUMENT) == by_page


def test_no_readable_source_hurts_satellites_only():
    assert endpoint_status(both(), nucleus_queue=False, remote_source_available=False) is None
    kwargs = {"remote_source_available": False, "rules": PRODUCTION}
    assert endpoint_status(both(), nucleus_queue=False, **kwargs) == "source_down"
    assert endpoint_status(both(), nucleus_queue=True, **kwargs) is None
    assert endpoint_status(both(), nucleus_queue=True, complete_locations=["X"], **kwargs) is None


LINKS = pl.DataFrame(
    [
        ("Q", "output", "Q_DISK", True, None),
        ("Q", "input", "Q_DISK", False, "default"),
        ("Q", "input", "Q_SCRATCH", True, "analysis"),
        ("P", "output", "P_DISK", False, None),
        ("LOST", "output", "UNKNOWN", True, None),
    ],
    schema=["panda_queue", "direction", "ddm_endpoint_name", "is_default", "scope"],
    orient="row",
)
STORAGE = pl.DataFrame(
    {
        "ddm_endpoint_name": ["Q_DISK", "P_DISK", "Q_SCRATCH"],
        "site_name": ["Q_SITE", "P_SITE", "Q_SITE"],
        "type": ["DATADISK", "DATADISK", "DATADISK"],
        "space_free": [500.0, 9.0, 1.0],
        "space_expired": [40.0, None, None],
        "space_min_free": [100.0, None, None],
        "space_unavailable": [None, 1.0, None],
        "read_lan": ["OFF", "ON", "ON"],
    }
)


def test_space_is_that_of_the_default_output():
    states = endpoint_states(LINKS, STORAGE, rules=DOCUMENT)
    assert states.select("panda_queue", "s_space").rows() == [("P", None), ("Q", 500.0)]
    usable = endpoint_states(LINKS, STORAGE, rules=PRODUCTION)
    assert usable["s_space"].to_list() == [None, 440.0]
    assert usable["s_read_lan"].to_list() == [False, False]
    # the scratch disk belongs to the scope of analysis
    assert states["s_read_lan"].to_list() == [True, False]  # P has no input endpoint
    assert states["s_input_disk"].to_list() == [False, True]


def test_row_order_does_not_matter():
    states = endpoint_states(LINKS, STORAGE, rules=DOCUMENT)
    assert_frame_equal(states, endpoint_states(LINKS.reverse(), STORAGE.reverse(), rules=DOCUMENT))


def test_states_of_several_instants():
    dated = pl.concat(
        [STORAGE.with_columns(snapshot=1), STORAGE.with_columns(snapshot=2, read_lan=pl.lit("ON"))]
    )
    states = endpoint_states(LINKS, dated, rules=DOCUMENT)
    first = states.filter(pl.col("snapshot") == 1).drop("snapshot")
    assert_frame_equal(first, endpoint_states(LINKS, STORAGE, rules=DOCUMENT))
    later = states.filter(snapshot=2, panda_queue="Q")
    assert later["s_read_lan"].to_list() == [True]


def test_nothing_known():
    assert endpoint_states(None, None, rules=DOCUMENT).is_empty()


def test_queues_with_the_whole_input():
    places = pl.DataFrame(
        {"jeditaskid": [1, 1, 2], "ddm_endpoint_name": ["Q_DISK", "Q_SCRATCH", "P_DISK"]}
    )
    assert complete_here(places, LINKS, STORAGE).rows() == [(1, "Q")]
