"""Connectivity: the format."""

from __future__ import annotations

import pytest

from brokerlab.matching import (
    Connectivity,
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
