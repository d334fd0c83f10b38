"""Data availability at nuclei (chapter section 3)."""

from __future__ import annotations

from typing import Any

import pytest

from brokerlab.brokerage.rules import ProductionRules
from tests.one_value import nucleus_availability

DISKS = [
    {"ddm_endpoint_name": "D1", "is_tape": False, "read_wan": "ON"},
    {"ddm_endpoint_name": "D2", "is_tape": False, "read_wan": "OFF"},
    {"ddm_endpoint_name": "T", "is_tape": True, "read_wan": "ON"},
]


def listed(
    name: str, found: int, total: int = 10, constituent: str | None = None
) -> dict[str, Any]:
    return {
        "datasetname": "d",
        "constituent": constituent,
        "ddm_endpoint_name": name,
        "found": found,
        "total": total,
        "asize": found * 100 + len(name),
        "tsize": total * 100,
    }


def available(*replicas: dict[str, Any], rules: str = "document") -> dict[str, Any]:
    at = [{"nucleus": "A", "ddm_endpoint_name": name} for name in ("D1", "D2", "T")]
    result = nucleus_availability(list(replicas), DISKS, at, ProductionRules(rules))
    row: dict[str, Any] = result["nuclei"][0]
    return row | {"readable": result["remote_source_available"]}


def test_a_complete_copy_on_disk_says_it_all() -> None:
    row = available(listed("T", 10), listed("D2", 10), listed("D1", 7))
    assert (row["ava_num_disk"], row["ava_num_any"], row["ava_size_any"]) == (10, 10, 1002)


def test_else_the_largest_copy_counts_the_first_on_ties() -> None:
    row = available(listed("T", 9), listed("D1", 4), listed("D2", 4))
    assert (row["ava_num_disk"], row["ava_size_disk"]) == (4, 402)
    assert (row["ava_num_any"], row["ava_size_any"]) == (9, 901)


def test_the_total_is_that_of_the_first_replica_with_one() -> None:
    row = available(listed("ELSEWHERE", 0, 0), listed("T", 1, 12), listed("D1", 1, 10))
    assert (row["tot_num"], row["tot_size"]) == (12, 1200)


@pytest.mark.parametrize(("rules", "total"), [("document", 15), ("production", 5)])
def test_totals_of_a_container(rules: str, total: int) -> None:
    """T10: the sum of the constituents, or as deployed what the last one has."""
    row = available(listed("D1", 10, 10, "c1"), listed("D1", 5, 5, "c2"), rules=rules)
    assert (row["tot_num"], row["ava_num_disk"]) == (total, 15)


def test_one_readable_complete_copy_is_enough() -> None:
    assert not available(listed("D2", 10))["readable"]
    assert available(listed("D2", 10), listed("T", 10))["readable"]
    assert not available(listed("D1", 0, 0))["readable"]
    assert not available()["readable"]
