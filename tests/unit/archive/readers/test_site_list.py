"""Site lists: what they say is read, what they do not say is called unknown."""

import json

import pytest


def sites(**changes):
    base = {
        "HOUSE": {"RSE": {"HOUSE_DATADISK": "120.50", "HOUSE_DATATAPE": 0}, "GFLOPS": 1000},
        "HOUSE_TEST": {"RSE": {"HOUSE_DATADISK": "120.50", "HOUSE_PHYS-X": "0.00"}, "GFLOPS": 5},
    }
    return {**base, **changes}


def test_queues_endpoints_and_relations(write, outcome):
    found = outcome(write(sites(), "site_info.json"))
    queues = (
        found.table("queues").select("panda_queue", "type", "status", "atlas_site", "params").rows()
    )
    assert queues == [
        ("HOUSE", "unknown", "unknown", None, '{"GFLOPS": 1000}'),
        ("HOUSE_TEST", "unknown", "unknown", None, '{"GFLOPS": 5}'),
    ]
    columns = ["ddm_endpoint_name", "site_name", "type", "is_tape", "space_total", "space_free"]
    assert found.table("ddm_endpoints").select(columns).rows() == [
        ("HOUSE_DATADISK", None, "DATADISK", False, 120_500.0, None),
        ("HOUSE_DATATAPE", None, "DATATAPE", True, None, None),
        ("HOUSE_PHYS-X", None, None, None, 0.0, None),
    ]
    relations = found.table("queue_endpoints").select(
        "panda_queue", "ddm_endpoint_name", "direction", "scope"
    )
    assert len(relations) == 4
    assert set(relations["direction"]) == set(relations["scope"]) == {"unknown"}
    assert found.counts["ddm_endpoints"] == (4, 3, 0, 1)
    assert any("sizes taken as TB" in note for note in found.notes)
    assert any("1 endpoint(s) have the number 0" in note for note in found.notes)


def test_sizes_that_contradict_or_are_none(write, outcome):
    data = sites(
        OTHER={"RSE": {"HOUSE_DATADISK": "7", "X": "much", "Y": [1], "Z": float("nan")}},
        EMPTY={"GFLOPS": 3},
        LIST={"RSE": ["X"]},
        NULL=None,
        NONE={"RSE": {"V": "inf", "W": None}, "GFLOPS": "?"},
    )
    found = outcome(write(data))
    other = "space_total 120500.0 contradicts 7000.0 (kept, of document.json)"
    assert [(table, row, reason) for table, row, _, reason in found.refused] == [
        ("ddm_endpoints", 1, other),
        ("ddm_endpoints", 2, other),
        ("ddm_endpoints", 3, "size of Y is [1], allowed: TB, as number or text"),
        ("ddm_endpoints", 3, "space_total 'much' cannot be read as a number"),
        (
            "ddm_endpoints",
            3,
            "space_total NaN is not a number (NaN), allowed: a finite number or null",
        ),
        ("ddm_endpoints", 7, "space_total Infinity is infinite, allowed: a finite number"),
        ("queues", 5, 'RSE is ["X"], allowed: endpoint -> size'),
        ("queues", 6, "is no record of names and values: null"),
    ]
    assert found.counts["queues"][2] == 2


def test_a_queue_record_with_a_time_replaces_an_unknown_queue(write, outcome):
    outcome(write(sites(), "site_info.json"))
    record = {
        "nickname": "HOUSE",
        "status": "online",
        "type": "unified",
        "last_modified": "2026-01-01T00:00:00",
    }
    found = outcome(write(record, "record.json"))
    rows = dict(found.table("queues").select("panda_queue", "status").rows())
    assert rows == {"HOUSE": "online", "HOUSE_TEST": "unknown"}


@pytest.mark.parametrize("size", [5, 5.25, "5.25", " 5.25 "])
def test_sizes_as_numbers_and_text(write, outcome, size):
    found = outcome(write({"Q": {"RSE": {"X_DATADISK": size}}}))
    assert found.table("ddm_endpoints")["space_total"].item() == float(size) * 1000
    assert found.table("queues")["params"].item() is None


def test_names_that_occur_twice(write, outcome):
    text = '{"A": {"RSE": {"X": "1"}}, "B": {"RSE": {"X": "1", "X": "2"}}}'
    found = outcome(write(text))
    assert found.refused == [
        ("queues", 2, "panda_queue=B", "RSE is names occur twice: X, allowed: endpoint -> size")
    ]
    assert json.loads(json.dumps(found.counts["queues"])) == [2, 1, 1, 0]
