"""The slow twin of the production job brokerage against recorded vectors: what tests compare with must be right itself."""

from __future__ import annotations

import math
from typing import Any

import pytest

from tests.oracle import vectors
from tests.twins import checks, final, production_jobs
from tests.twins.storage import Input
from tests.twins.task import Task
from tests.twins.world import World

Case = dict[str, Any]

NUCLEUS = "NUC0"
SAMPLE = 40
EXACT = ("check", "rank", "nrunning", "nqueuedjobs", "nrunningjobscap", "jumbo", "platform")
FLOAT = ("weight", "network_weight", "maxwdir")


def differences(got: Case, expected: Case) -> list[str]:
    """Return what differs, queue by queue; floats to 1e-12 relative, only columns that were recorded."""
    found = []
    if got["outcome"] != expected["outcome"]:
        found.append(f"outcome {got['outcome']}, expected {expected['outcome']}")
    rows = {row["panda_queue"]: row for row in got["queues"]}
    wanted = {row["panda_queue"]: row for row in expected["queues"]}
    found += [f"{name}: only on one side" for name in rows.keys() ^ wanted.keys()]
    for name in rows.keys() & wanted.keys():
        row, want = rows[name], wanted[name]
        if row["skipped"] != want["skipped"]:
            found.append(f"{name}: {row['check']}, expected {want.get('check')}")
        for column in EXACT:
            if column in want and row.get(column) != want[column] and not _untold(column, want):
                found.append(f"{name}.{column}: {row.get(column)}, expected {want[column]}")
        for column in FLOAT:
            if not _close(row.get(column), want.get(column)):
                found.append(f"{name}.{column}: {row.get(column)}, expected {want[column]}")
    return found


def _untold(column: str, want: Case) -> bool:
    return column == "check" and want["skipped"] and want["check"] is None


def _close(value: float | None, want: float | None) -> bool:
    return want is None or (value is not None and math.isclose(value, want, rel_tol=1e-12))


def _task(inputs: Case) -> Task:
    """Return the task of a recorded single check, in a world of one queue ``Q``."""
    queue = {"panda_queue": "Q", "releases": ["AUTO"], **inputs["queue"]}
    tables = {
        "queues": [queue],
        "gdpconfig": inputs.get("gdpconfig", []),
        "diskio_usage": [{"computingsite": "Q", "diskio_per_core": inputs.get("diskio_per_core")}],
        "job_stats": [row | {"computingsite": "Q"} for row in inputs.get("job_stats", [])],
        "transferring_by_nucleus": [
            row | {"computingsite": "Q"} for row in inputs.get("transferring_by_nucleus", [])
        ],
        "queue_storage_site": [{"panda_queue": "Q", "site_name": inputs.get("storage_site")}],
        "nuclei": [{"nucleus": NUCLEUS, "queues": []}],
    }
    world = World(tables, "production")
    world.unwritable_nuclei = set(inputs.get("unwritable_nuclei", []))
    row = {"nucleus": NUCLEUS, **production_jobs.case_task(inputs)}
    task = Task(world, row)
    task.look_around(Input())
    return task


CHECKS = {
    "check_memory": checks.memory,
    "check_scratch_disk": lambda task, queue: (
        checks.direct_access(task, queue) or checks.scratch_disk(task, queue)
    ),
    "check_walltime": checks.walltime,
    "check_core_count": checks.core_count,
    "check_diskio": checks.diskio,
    "check_transferring": checks.transferring,
    "check_connectivity": checks.connectivity,
}


def job_weight(inputs: Case, monkeypatch: pytest.MonkeyPatch) -> Case:
    """Return weight and caps of one queue that passed every check before."""
    tag = inputs["task"]["gshare"]
    name = next((row["computingsite"] for row in inputs["job_stats"]), "Q")
    queue = {
        "panda_queue": name,
        "corecount": inputs["corecount"],
        "pandasite": NUCLEUS if inputs["nucleus_queue"] else "SAT",
    }
    world = World(
        {
            "queues": [queue],
            "gdpconfig": inputs["gdpconfig"],
            "nuclei": [{"nucleus": NUCLEUS, "queues": []}],
            "job_stats": inputs["job_stats"],
            "job_stats_rt": inputs["job_stats_rt"],
            "slots": [row | {"panda_queue": name} for row in inputs["slots"]],
            "worker_stats": [row | {"panda_queue": name} for row in inputs["worker_stats"]],
            "live": [{"panda_queue": name, "njobs": inputs["live"]}],
            "site_activity": [{"computingsite": name, "getjob": inputs["pilots"]}],
            "task_resource_types": inputs.get("task_resource_types", []),
        },
        "production",
    )
    row = {"nucleus": NUCLEUS, "use_scout": inputs["use_scout"], **inputs["task"], "gshare": tag}
    task = Task(world, row)
    task.look_around(Input())
    task.total, task.nfiles = inputs["total_size"], inputs["n_files"]
    monkeypatch.setattr(
        task, "available", lambda *_, **__: (inputs["avail_size"], inputs["n_avail"])
    )
    streams = inputs["pull_ups"] and inputs["pilots"] > 0
    monkeypatch.setattr(final, "streams", lambda *_: streams)
    brokerage = production_jobs.Brokerage(task, [name])
    brokerage._weigh()
    brokerage._rank()
    row = brokerage.rows[name]
    if row["check"] is not None:
        return {"skip": row["check"]}
    kept = ("weight", "nrunning", "nqueuedjobs", "nrunningjobscap")
    return {"skip": None, **{column: row[column] for column in kept}}


def test_whole_brokerages_agree() -> None:
    cases = vectors.load("prod_jobbrokerage")
    step = max(len(cases) // SAMPLE, 1)
    wrong = {}
    for case in cases[::step]:
        found = differences(
            production_jobs.run(case["inputs"], rules="production"), case["expected"]
        )
        if found:
            wrong[case["id"]] = found
    assert not wrong


@pytest.mark.parametrize("name", [*CHECKS, "job_weight"])
def test_single_checks_agree(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    cases = [case for case in vectors.load("prod_functions") if case["function"] == name]
    wrong = []
    for case in cases:
        inputs, expected = case["inputs"], case["expected"]
        if name == "job_weight":
            got = job_weight(inputs, monkeypatch)
        else:
            task = _task(inputs)
            got = {"skip": CHECKS[name](task, task.world.queues["Q"])}
        if not vectors.agrees(got, expected):
            wrong.append((case["id"], got, expected))
    assert cases
    assert not wrong
