"""Disk needs, limits and failures of a task."""

from __future__ import annotations

from dataclasses import astuple
from typing import Any

import pytest

from brokerlab.units import GB, KB, MB
from tests.twins.scout_formulas import disk_sizes_bytes, job_max_walltime, task_failure_metrics

MARGIN = 300 * MB


@pytest.mark.parametrize(
    ("work", "work_unit", "out", "out_unit", "sizes"),
    [
        (None, "GB", None, None, (0, 0, False)),
        (0, None, 0, "kB", (MARGIN, 0, False)),
        (2, "GB", 3, "GBFixed", (2 * GB + MARGIN, 3 * GB, False)),
        (2, "GBytes", 3, "MBPerEvent", (2 + MARGIN, 3 * MB, True)),
        (2, "mb", -5, "kBPerEvent", (2 + MARGIN, 0, True)),
        (2, "kB", 3, "PerEvent", (2 * KB + MARGIN, 3, True)),
    ],
)
def test_disk_sizes(
    work: int | None,
    work_unit: str | None,
    out: int | None,
    out_unit: str | None,
    sizes: tuple[Any, ...],
) -> None:
    assert astuple(disk_sizes_bytes(work, work_unit, out, out_unit)) == sizes


PLAIN: dict[str, Any] = {
    "cputime": 100,
    "cputimeunit": "HS06sPerEvent",
    "cpuefficiency": 100,
    "basewalltime": 0,
    "nevents": 10,
    "corecount": 1,
    "corepower": 10,
    "maxtime": 86400,
}


@pytest.mark.parametrize(
    ("others", "limit"),
    [
        ({}, 100),
        ({"cputime": None}, 86400),
        ({"cputimeunit": "kSI2kseconds"}, 86400),
        ({"cputimeunit": None}, 86400),
        ({"cputimeunit": "mHS06sPerEventFixed", "nevents": 1000}, 10),
        ({"corecount": 8}, 12),
        ({"corecount": 0}, 100),
        ({"corecount": None}, 100),
        ({"corepower": None}, 1000),
        ({"corepower": 0}, 1000),
        ({"cpuefficiency": 50}, 200),
        ({"cpuefficiency": 0}, 100),
        ({"cpuefficiency": None}, 100),
        ({"basewalltime": 600}, 700),
        ({"basewalltime": None}, 100),
        ({"cputime": 0, "basewalltime": 600}, 600),
        ({"nevents": 0}, 0),
    ],
)
def test_job_max_walltime(others: dict[str, Any], limit: int) -> None:
    found = job_max_walltime(**(PLAIN | others))
    assert (found.maxwalltime, found.maxcpucount) == (limit, limit)


def job(status: str, work: int | None = None, label: str = "user", task: int = 1) -> dict[str, Any]:
    return {"jeditaskid": task, "jobstatus": status, "prodsourcelabel": label, "hs06sec": work}


@pytest.mark.parametrize(
    ("jobs", "metrics"),
    [
        ([], (None, None, None, None)),
        ([job("failed", 1, "test"), job("failed", 1, task=2)], (None, None, None, None)),
        ([job("closed", 0)], (0, None, 0, None)),
        ([job("closed")], (0, None, None, None)),
        ([job("failed"), job("finished")], (1, 0.5, None, None)),
        ([job("failed", 7199), job("finished"), job("finished")], (1, 0.333, 1, 1.0)),
        ([job("failed"), job("finished"), job("closed", 5)], (1, 0.5, 0, None)),
        ([job("failed", 3600, "managed"), job("finished", 7200)], (1, 0.5, 1, 0.333)),
    ],
)
def test_task_failure_metrics(jobs: list[dict[str, Any]], metrics: tuple[Any, ...]) -> None:
    assert astuple(task_failure_metrics(1, jobs)) == metrics
