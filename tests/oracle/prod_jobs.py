"""The functions of ``prod_functions`` about single checks and the weight, many cases in one brokerage.

Every case is a task with a queue of its own at an instant (``snapshot``) of its own, so one call decides all cases
of one configuration.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

import polars as pl

from brokerlab.brokerage.contracts import TABLES
from brokerlab.brokerage.engine.decide import evaluated, settle
from brokerlab.brokerage.engine.world import World
from brokerlab.brokerage.production_jobs.brokerage import BROKERAGE
from brokerlab.brokerage.production_jobs.checks import queue_checks
from brokerlab.brokerage.production_jobs.ranking import reported
from brokerlab.brokerage.rules import ProductionRules
from brokerlab.frames import prepared
from brokerlab.matching.rules import MatchingRules
from tests.oracle.prod_cases import Case, frame, settings, task_row

RULES = ProductionRules("production")
NUCLEUS = "NUC0"
NAMES = {
    "check_memory": ("memory_max", "memory_min"),
    "check_scratch_disk": ("direct_access", "scratch_disk"),
    "check_walltime": ("walltime_max", "walltime_24h", "walltime_min"),
    "check_core_count": ("core_count", "core_count_max"),
    "check_connectivity": ("connectivity", "ip_stack"),
    "check_diskio": ("diskio_overload",),
    "check_transferring": ("transferring",),
}


def key(inputs: Case) -> str:
    return json.dumps(inputs, sort_keys=True)


def _world(cases: list[Case], rows: dict[str, list[Case]]) -> World:
    given = {name: frame(found) for name, found in rows.items() if found}
    return BROKERAGE.prepare(
        prepared(given, TABLES), rules=RULES, matching=MatchingRules("production"),
        config=settings(cases[0]["inputs"].get("gdpconfig") or []),
    )  # fmt: skip


def _by_config(cases: Iterable[Case]) -> list[list[Case]]:
    groups: dict[str, list[Case]] = {}
    for case in cases:
        groups.setdefault(key(case["inputs"].get("gdpconfig") or []), []).append(case)
    return list(groups.values())


def check_answers(cases: list[Case]) -> dict[str, Case]:
    """Return the answers of the ``check_*`` functions by inputs."""
    answers = {}
    for group in _by_config(cases):
        rows: dict[str, list[Case]] = {name: [] for name in (*TABLES,) if name != "gdpconfig"}
        for number, case in enumerate(group):
            _add_check(rows, number, case["inputs"])
        world = _world(group, rows)
        checks = queue_checks(RULES)
        failed = evaluated(world.facts, checks).join(
            world.facts.tasks.select("t", "jeditaskid"), on="t"
        )
        bits = dict(failed.select("jeditaskid", "failed").iter_rows())
        for number, case in enumerate(group):
            skips = {c.name for bit, c in enumerate(checks) if bits[number] >> bit & 1}
            first = next((name for name in NAMES[case["function"]] if name in skips), None)
            answers[key(case["inputs"])] = {"skip": first}
    return answers


def _add_check(rows: dict[str, list[Case]], number: int, inputs: Case) -> None:
    name, home = f"Q{number}", f"{number}/{NUCLEUS}"
    own = {"jeditaskid": number, "snapshot": number, "nucleus": home}
    rows["tasks"].append({"currentpriority": 500, **task_row(inputs), **own})
    rows["queues"].append(
        {"panda_queue": name, "status": "online", "snapshot": number, **inputs["queue"]}
    )
    rows["nuclei"].append({"nucleus": home, "queues": []})
    place = inputs.get("storage_site")
    if place is not None:
        site = home if place == NUCLEUS else place
        rows["queue_storage_site"].append({"panda_queue": name, "site_name": site})
    for nucleus in inputs.get("unwritable_nuclei", []):
        there = f"{number}/{nucleus}"
        if nucleus == NUCLEUS:
            rows["nuclei"].pop()
        rows["nuclei"].append({"nucleus": there, "default_endpoint_out": there, "queues": []})
        rows["storage_endpoints"].append({"ddm_endpoint_name": there, "write_wan": "OFF"})
    for row in inputs.get("transferring_by_nucleus", []):
        there = {"computingsite": name, "nucleus": f"{number}/{row['nucleus']}"}
        rows["transferring_by_nucleus"].append({**row, **there, "snapshot": number})
    for row in inputs.get("job_stats", []):
        rows["job_stats"].append({**row, "computingsite": name, "snapshot": number})
    usage = {"computingsite": name, "diskio_per_core": inputs.get("diskio_per_core")}
    rows["diskio_usage"].append({**usage, "snapshot": number})


def weight_answers(cases: list[Case]) -> dict[str, Case]:
    """Return the answers of ``job_weight`` by inputs."""
    answers = {}
    for group in _by_config(cases):
        rows: dict[str, list[Case]] = {name: [] for name in TABLES}
        for number, case in enumerate(group):
            _add_weight(rows, number, case["inputs"])
        world = _world(group, rows)
        streams = {n: case["inputs"]["pull_ups"] for n, case in enumerate(group)}
        queues = world.facts.queues.with_columns(
            q_streams=pl.col("q_version").replace_strict(streams, return_dtype=pl.Boolean)
        )
        facts = replace(world.facts, queues=queues)
        checks = queue_checks(RULES)
        passed = evaluated(facts, checks[:1]).with_columns(failed=pl.lit(0, dtype=pl.Int64))
        late = settle(world, facts, passed).late
        found = (
            late.select("t", **reported(RULES))
            .join(facts.tasks.select("t", "jeditaskid"), on="t")
            .sort("jeditaskid")
        )
        for case, row in zip(group, found.iter_rows(named=True), strict=True):
            kept = ("weight", "nrunning", "nqueuedjobs", "nrunningjobscap")
            numbers = {} if row["check"] else {name: row[name] for name in kept}
            answers[key(case["inputs"])] = {"skip": row["check"], **numbers}
    return answers


def _add_weight(rows: dict[str, list[Case]], number: int, inputs: Case) -> None:
    name = f"Q{number}"
    own = {"jeditaskid": number, "snapshot": number, "nucleus": NUCLEUS}
    scout = {"use_scout": inputs["use_scout"]}
    rows["tasks"].append({**task_row({"task": inputs["task"]}), **own, **scout})
    site = NUCLEUS if inputs["nucleus_queue"] else "SAT"
    cores = {"corecount": inputs["corecount"]}
    rows["queues"].append({"panda_queue": name, "snapshot": number, "pandasite": site, **cores})
    rows["nuclei"] = [{"nucleus": NUCLEUS, "queues": []}]
    place = {"computingsite": name, "snapshot": number}
    for table in ("job_stats", "job_stats_rt"):
        rows[table] += [{**row, **place} for row in inputs[table]]
    for table in ("slots", "worker_stats"):
        rows[table] += [{**row, "panda_queue": name, "snapshot": number} for row in inputs[table]]
    rows["task_resource_types"] += [
        {**row, "computingsite": name, "jeditaskid": number}
        for row in inputs.get("task_resource_types", [])
    ]
    rows["live"].append({"panda_queue": name, "snapshot": number, "njobs": inputs["live"]})
    rows["site_activity"].append({**place, "getjob": inputs["pilots"]})
    _add_files(rows, number, inputs)


def _add_files(rows: dict[str, list[Case]], number: int, inputs: Case) -> None:
    """Spread the sizes over as many files as were counted; the first file of each kind has all of it."""
    data = {"jeditaskid": number, "datasetname": f"D{number}"}
    rows["datasets"].append({**data, "is_master": True, "distributed": True})
    n_here, here = inputs["n_avail"], inputs["avail_size"]
    for i in range(inputs["n_files"]):
        lfn = {"lfn": f"f{i}"}
        whole = {0: here, n_here: inputs["total_size"] - here}
        rows["files"].append({**data, **lfn, "fsize": whole.get(i, 0)})
        if i < n_here:
            where = {"panda_queue": f"Q{number}", "kind": "localdisk"}
            rows["file_locations"].append({**data, **lfn, **where})


def functions(cases: list[Case]) -> dict[str, Callable[..., Any]]:
    """Return the functions of this module with the answers of all cases prepared."""
    checks = check_answers([case for case in cases if case["function"] in NAMES])
    weights = weight_answers([case for case in cases if case["function"] == "job_weight"])
    found: dict[str, Callable[..., Any]] = dict.fromkeys(
        NAMES, lambda **inputs: checks[key(inputs)]
    )
    return found | {"job_weight": lambda **inputs: weights[key(inputs)]}
