"""The scouts' formulas, case by case; every row is a sentence of the documents."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from brokerlab.scouts.benchmarks import benchmark_corepower, clean_host_name, host_benchmarks
from brokerlab.units import MB
from tests.twins.scout_formulas import (
    core_count,
    direct_io,
    duration_s,
    effective_file_size_mb,
    effective_num_events,
    hs06sec,
    is_job_cloning,
)

BEGIN = datetime.fromisoformat("2026-03-01T00:00:00")


@pytest.mark.parametrize(
    ("fsize", "start", "end", "nevents", "size_mb"),
    [
        (None, None, None, None, 1.0),
        (0, 0, 9, 10, 1.0),
        (5 * MB, None, None, None, 5.0),
        (5 * MB, 0, None, 10, 5.0),
        (5 * MB, None, 9, 10, 5.0),
        (5 * MB, 0, 9, None, 5.0),
        (5 * MB, 0, 1, 10, 1.0),
        (5 * MB, 0, 9, 0, 5.0),  # production divides by zero
        (100, 1000, 999, 1, 1.0),  # an empty range: 0 bytes
        (1, 0, 0, 10, 1.0),  # a tenth of a byte: 0 bytes
        (10, 9, 0, 10, -8 / MB),
        (1, None, None, None, 1 / MB),
    ],
)
def test_effective_file_size(
    fsize: int | None, start: int | None, end: int | None, nevents: int | None, size_mb: float
) -> None:
    assert effective_file_size_mb(fsize, start, end, nevents) == size_mb


@pytest.mark.parametrize(
    ("start", "end", "nevents", "events"),
    [
        (0, 0, 99, 1),
        (0, 9, None, 10),
        (9, 0, 99, 1),
        (10, 9, 99, 1),
        (None, 9, 99, 99),
        (0, None, 99, 99),
        (None, None, 0, 0),
        (None, None, None, 1),
    ],
)
def test_effective_number_of_events(
    start: int | None, end: int | None, nevents: int | None, events: int
) -> None:
    assert effective_num_events(start, end, nevents) == events


@pytest.mark.parametrize(
    ("actual", "asked", "metrics", "cores"),
    [
        (0, 8, "coreCount=4", 0),
        (2, 8, "coreCount=4", 2),
        (None, 8, "coreCount=4", 4),
        (None, 8, "coreCount=0", 0),
        (None, 8, "x coreCount=12 coreCount=3", 12),
        (None, 8, "CoreCount=4", 8),
        (None, 8, "coreCount=", 8),
        (None, 8, "", 8),
        (None, 0, None, 1),
        (None, None, None, 1),
    ],
)
def test_core_count(actual: int | None, asked: int | None, metrics: str | None, cores: int) -> None:
    assert core_count(actual, asked, metrics) == cores


def test_duration() -> None:
    assert duration_s(None, BEGIN) is None
    assert duration_s(BEGIN, None) is None
    assert duration_s(BEGIN, BEGIN + timedelta(seconds=59, milliseconds=999)) == 59
    assert duration_s(BEGIN, BEGIN - timedelta(seconds=60)) == -60


@pytest.mark.parametrize(
    ("wall_s", "power", "cores", "base", "efficiency", "work"),
    [
        (7200, 10, 1, 600, 90, 59400.0),
        (10800, 10, 1, 600, 90, 91800.0),  # the worked check of the chapter
        (600, 10, 1, 600, 90, 0),
        (601, 10, 1, 600, 100, 10.0),
        (7200, 10, 1, None, 100, 72000.0),
        (7200, 10, 0, 0, 100, 0),
        (7200, 10, 1, 0, 0, 0),
        (None, 10, 1, 0, 0, 0),
        (None, 10, 1, 0, 90, None),
        (-60, 10, 1, 0, 90, 0),
    ],
)
def test_hs06sec(
    wall_s: float | None,
    power: float,
    cores: int,
    base: int | None,
    efficiency: int,
    work: float | None,
) -> None:
    end = None if wall_s is None else BEGIN + timedelta(seconds=wall_s)
    assert hs06sec(BEGIN, end, power, cores, base, efficiency) == work


@settings(derandomize=True, deadline=None)
@given(
    st.integers(0, 10**6),
    st.sampled_from([1.0, 8.5, 13.77]),
    st.integers(0, 64),
    st.integers(0, 7200),
)
def test_double_core_power_is_double_work(wall_s: int, power: float, cores: int, base: int) -> None:
    end = BEGIN + timedelta(seconds=wall_s)
    once, twice = (hs06sec(BEGIN, end, factor * power, cores, base, 90) for factor in (1, 2))
    assert once is not None
    assert twice == 2 * once


@pytest.mark.parametrize(
    ("rule", "maxinputsize", "lan", "merging", "direct"),
    [
        (None, None, None, False, False),
        (None, -1, None, False, True),
        ("LI=1", -1, False, False, True),
        ("LI=1", -1, True, True, False),
        ("IL=1", 14336, True, False, True),
        ("IL=2", None, True, False, True),
        ("IL=3", None, True, False, False),
        ("IL=1", 14336, False, False, False),
        ("IL=1", 14336, None, False, False),
        ("IL=1,LI=1", 14336, True, False, False),
        ("IL=1,LI=0", 14336, True, False, True),
        ("IL=1", 14336, True, True, False),
    ],
)
def test_direct_io(
    rule: str | None, maxinputsize: int | None, lan: bool | None, merging: bool, direct: bool
) -> None:
    assert direct_io(rule, maxinputsize, lan, is_merging=merging) is direct


@pytest.mark.parametrize(
    ("text", "cloning"),
    [
        (None, False),
        ("", False),
        ("sc", True),
        ("sj,sc:storeonce", True),
        ("sc:", True),
        ("scx", False),
        ("ej, sc", False),
        ("x:sc", False),
    ],
)
def test_is_job_cloning(text: str | None, cloning: bool) -> None:
    assert is_job_cloning(text) is cloning


@pytest.mark.parametrize(
    ("reported", "host"),
    [
        ("node1", "node1"),
        ("slot1@node1", "node1"),
        ("a@b@c", "b@c"),
        ("@node1", "node1"),
        ("a@", "a@"),
        ("", ""),
        ("slot1@atlprd55-xyz-abc.cern.ch", "abc.cern.ch"),
        ("atlprd55-x-y-abc.cern.ch", "y-abc.cern.ch"),
        ("atlprd-xyz-abc.cern.ch", "atlprd-xyz-abc.cern.ch"),
        ("ATLPRD55-xyz-abc.cern.ch", "ATLPRD55-xyz-abc.cern.ch"),
        ("atlprd55-xyz-abc.cern.ch.org", "atlprd55-xyz-abc.cern.ch.org"),
    ],
)
def test_clean_host_name(reported: str, host: str) -> None:
    assert clean_host_name(reported) == host


NODE = {
    "site": "S",
    "host_name": "n1",
    "cpu_model_normalized": "x",
    "threads_per_core": 2,
    "n_logical_cpus": 64,
}
SCORE = {
    "cpu_type_normalized": "x",
    "smt_enabled": 1,
    "ncores": 64,
    "site": "S-EXT",
    "score_per_core": 12.5,
}


@pytest.mark.parametrize(
    ("node", "score", "found"),
    [
        ({}, {}, [("S-EXT", 12.5)]),
        ({}, {"site": None}, [(None, 12.5)]),
        ({"site": "T"}, {}, []),
        ({"host_name": "n2"}, {}, []),
        ({"threads_per_core": 1}, {}, []),
        ({"threads_per_core": None}, {"smt_enabled": None}, []),
        ({"cpu_model_normalized": None}, {"cpu_type_normalized": None}, []),
        ({"n_logical_cpus": 32}, {}, []),
        ({}, {"score_per_core": None}, []),
    ],
)
def test_host_benchmarks(node: dict[str, Any], score: dict[str, Any], found: list[Any]) -> None:
    assert host_benchmarks("S", "slot1@n1", [NODE | node], [SCORE | score]) == found


def test_host_benchmarks_of_unknown_hosts_and_of_nodes_listed_twice() -> None:
    assert host_benchmarks(None, "n1", [NODE], [SCORE]) == []
    assert host_benchmarks("S", None, [NODE], [SCORE]) == []
    assert host_benchmarks("S", "n1", [NODE, NODE], [SCORE]) == [("S-EXT", 12.5)] * 2


def test_benchmark_corepower() -> None:
    assert benchmark_corepower("S", []) is None
    assert (
        benchmark_corepower("SITE-1", [(None, 9.0), ("SITE-1-EXT", 10.0), ("site-1", 11.0)]) == 10
    )
    assert benchmark_corepower("SITE-1", [("OTHER", 10.0), ("site", 11.0)]) == 11
    assert benchmark_corepower("SITE-1", [("OTHER", 10.0), (None, 11.0)]) == 10.5
