"""Pseudo-queues: what the vectors do not show, and parameters per core."""

import polars as pl
from polars.testing import assert_frame_equal

from brokerlab.brokerage.inputs.queues import pseudo_queues, scale_per_core

TYPES = pl.DataFrame(
    {
        "resource_name": ["SCORE", "MCORE"],
        "mincore": [1, 2],
        "maxcore": [1, None],
        "maxrampercore": [2000, None],
    }
)
QUEUES = pl.DataFrame(
    {
        "panda_queue": ["U", "PLAIN", "OLD", "OLD/SCORE"],
        "unified_name": [None, None, "OLD", "OLD"],
        "capability": ["ucore", None, "ucore", "ucore"],
        "corecount": [8, 8, 8, 3],
        "maxrss": [None, 16000, 16000, 99],
        "status": ["online", "online", "test", "online"],
    }
)


def test_pseudo_queues_join_their_parents():
    table = pseudo_queues(QUEUES, TYPES)
    assert table.select("panda_queue", "unified_name", "is_unified", "corecount").rows() == [
        ("OLD", "OLD", True, 8),
        ("OLD/SCORE", "OLD", False, 3),
        ("PLAIN", "PLAIN", False, 8),
        ("U", "U", True, 8),
        ("U/MCORE", "U", False, 8),
        ("U/SCORE", "U", False, 1),
    ]
    assert "snapshot" not in table.columns


def test_other_columns_go_over_and_no_limit_stays_none():
    children = pseudo_queues(QUEUES, TYPES).filter(pl.col("panda_queue").str.starts_with("U/"))
    assert children["status"].to_list() == ["online", "online"]
    assert children["maxrss"].to_list() == [None, 2000.0]
    assert children["minrss"].to_list() == [None, None]


def test_deriving_twice_changes_nothing():
    once = pseudo_queues(QUEUES, TYPES)
    assert_frame_equal(pseudo_queues(once, TYPES), once)
    assert_frame_equal(pseudo_queues(QUEUES.reverse(), TYPES.reverse()), once)


def test_every_instant_by_itself():
    dated = pl.concat([QUEUES.with_columns(snapshot=pl.lit(i)) for i in (1, 2)])
    dated = dated.filter((pl.col("snapshot") == 1) | (pl.col("panda_queue") != "OLD/SCORE"))
    table = pseudo_queues(dated, TYPES)
    assert table.filter(snapshot=1, unified_name="OLD").height == 2
    assert table.filter(snapshot=2, unified_name="OLD").height == 3


def test_parameters_per_core():
    queues = pl.DataFrame(
        {
            "panda_queue": list("abcde"),
            "catchall": ["x,per_core_attr", "per_core_attr=1", None, "x, per_core_attr", None],
            "params": [None, '{"per_core_attr": false}', '{"per_core_attr": "true"}', None, "{}"],
            "corecount": [8, 8, 8, 8, 8],
            "maxrss": [2000.0] * 5,
            "maxwdir": [10, None, None, 10, 10],
        }
    )
    table = scale_per_core(queues)
    assert table["maxrss"].to_list() == [16000.0, 2000.0, 16000.0, 2000.0, 2000.0]
    assert table["maxwdir"].to_list() == [80.0, None, None, 10.0, 10.0]
