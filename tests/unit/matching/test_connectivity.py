"""Connectivity: the format, checks 31 and 32, and the batch form."""

from __future__ import annotations

import polars as pl
import pytest

from brokerlab.matching import (
    Connectivity,
    check_connectivity,
    connectivity_pairs,
    parse_connectivity,
)


@pytest.mark.parametrize(
    ("text", "network", "ip_stack"),
    [
        (None, None, None),
        ("", None, None),
        ("full", "full", None),
        ("#IPv4", None, "IPv4"),
        ("http#IPv6", "http", "IPv6"),
        ("full#", "full", None),
        ("full#IPv4#x", "full", None),
        ("##", None, None),
    ],
)
def test_format(text: str | None, network: str | None, ip_stack: str | None) -> None:
    assert parse_connectivity(text) == Connectivity(network, ip_stack)


@pytest.mark.parametrize(
    ("asked", "stack", "offered", "skip"),
    [
        (None, None, None, None),
        (None, None, "none", None),
        ("full", None, "full", None),
        ("full", None, "http", "connectivity"),
        ("full", None, None, "connectivity"),
        ("http", None, "full", None),
        ("http", None, "http", None),
        ("http", None, "none", "connectivity"),
        ("none", None, "none", None),
        ("none", None, None, None),
        ("", "", "none#IPv4", None),
        (None, "IPv6", "full#IPv6", None),
        (None, "IPv6", "full#IPv4", "ip_stack"),
        (None, "IPv6", "full", "ip_stack"),
        ("full", "IPv6", "http", "connectivity"),
    ],
)
def test_checks(
    asked: str | None, stack: str | None, offered: str | None, skip: str | None
) -> None:
    assert check_connectivity(asked, stack, offered) == skip


def test_a_queue_with_a_stack_may_be_strict() -> None:
    assert check_connectivity(None, None, "full#IPv4", ip_stack_strict=True) == "ip_stack"
    assert check_connectivity(None, None, "full", ip_stack_strict=True) is None
    assert check_connectivity(None, "IPv4", "full#IPv4", ip_stack_strict=True) is None


def test_batch_decides_distinct_pairs() -> None:
    tasks = pl.DataFrame(
        {
            "jeditaskid": [1, 2, 3],
            "ipconnectivity": ["full", None, "full"],
            "ipstack": [None, "IPv6", None],
        }
    )
    queues = pl.DataFrame({"wnconnectivity": ["full#IPv6", None, "http", "http"]})
    frame = connectivity_pairs(tasks, queues)
    assert frame.height == 2 * 3
    for asked, stack, offered, skip in frame.iter_rows():
        assert check_connectivity(asked, stack, offered) == skip
    assert connectivity_pairs(tasks.clear(), queues).height == 0


def test_batch_takes_columns_without_any_value() -> None:
    nothing = pl.DataFrame({"ipconnectivity": [None], "ipstack": [None]})
    frame = connectivity_pairs(nothing, pl.DataFrame({"wnconnectivity": [None]}))
    assert frame.schema == dict.fromkeys(frame.columns, pl.String)
    assert frame["skip"].to_list() == [None]
