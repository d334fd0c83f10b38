"""Random worlds for comparing the twin of the analysis brokerage with the library: every edge of the chapter in them.

Plain rows in the shape of the tables of analysis-jobs.md 1, and ``gdpconfig`` (component, key, value).
"""

from __future__ import annotations

from datetime import datetime, timedelta
from random import Random
from typing import Any

from tests.twins.analysis_world_tasks import USERS, random_input, random_task
from tests.twins.worlds import POLICIES, RESOURCE_TYPES, often

Row = dict[str, Any]
Tables = dict[str, Any]

NOW = datetime(2026, 6, 1, 12)
SHARES = ("User Analysis", "User Analysis", "Express Analysis", "Group Analysis")
STATUSES = ("running", "defined", "assigned", "activated", "starting", "transferring")
ACCESS = ("read_lan", "write_lan", "read_wan", "write_wan")
INSTANTS = 3
EASY: Row = {
    "status": "online", "type": "analysis", "fairsharepolicy": None, "maxrss": None, "minrss": None, "maxwdir": 0.0,
    "mintime": 0, "maxtime": 0, "releases": ["ANY"], "max_io_intensity": None,
}  # fmt: skip
EASY_TASK: Row = {
    "corecount": 0,
    "maxcorecount": None,
    "architecture": None,
    "transhome": None,
    "workinggroup": None,
}


def random_world(
    seed: int, n_tasks: int, n_queues: int, *, instants: bool = False, easy: bool = False
) -> Tables:
    """Return the tables of a world.

    Args:
        seed: Same seed, same world.
        n_tasks: Tasks.
        n_queues: Parents; pseudo-queues come on top.
        instants: States of the grid, and queues, at three instants; the same task may be asked for twice.
        easy: Most of what skips queues is taken away: there are some to mark, weigh and rank.
    """
    rng = Random(seed)  # noqa: S311 - test data
    tables: Tables = {"queues": [], "queue_endpoints": []}
    parents = [_name(rng, number) for number in range(n_queues)]
    endpoints = _endpoints(rng, n_queues)
    for number, name in enumerate(parents):
        tables["queue_endpoints"] += _attached(rng, number, name, endpoints)
    snapshots = range(INSTANTS) if instants else (None,)
    stored = {row["panda_queue"]: row for row in (_queue(rng, name) for name in parents)}
    for snapshot in snapshots:
        for name in parents:
            changed = _queue(rng, name) if snapshot and rng.random() < 0.2 else stored[name]
            if snapshot and rng.random() < 0.05:
                continue
            tables["queues"] += [row | {"snapshot": snapshot} for row in _expanded(changed)]
        for table, rows in _state(rng, parents).items():
            tables.setdefault(table, []).extend(row | {"snapshot": snapshot} for row in rows)
    tables["sw_tags"] = _software(rng, parents)
    tables["gdpconfig"] = _settings(rng)
    if easy:
        tables["queues"] = [row | EASY for row in tables["queues"]]
    names = sorted({row["panda_queue"] for row in tables["queues"]})
    tables["tasks"] = [random_task(rng, 1000 + i, names, sorted(endpoints)) for i in range(n_tasks)]
    if easy:
        tables["tasks"] = [task | EASY_TASK for task in tables["tasks"]]
    for task in tables["tasks"]:
        for table, rows in random_input(rng, task, parents, sorted(endpoints)).items():
            tables.setdefault(table, []).extend(rows)
    if instants:
        tables["tasks"] = [task | {"snapshot": rng.randrange(INSTANTS)} for task in tables["tasks"]]
        again = rng.sample(tables["tasks"], n_tasks // 3)
        tables["tasks"] += [
            task | {"snapshot": (task["snapshot"] + 1) % INSTANTS} for task in again
        ]
    return tables


def _name(rng: Random, number: int) -> str:
    return often(
        rng, f"SITE{number:02}", f"ANALY_SITE{number:02}", f"SITE{number:02}_HOSPITAL", p=0.2
    )


def _endpoints(rng: Random, n_sites: int) -> dict[str, Row]:
    found = {}
    for number in range(n_sites):
        for kind in ("DATADISK", "SCRATCHDISK", "DATATAPE", "VP_DISK"):
            row: Row = {"ddm_endpoint_name": f"S{number:02}_{kind}", "is_tape": kind == "DATATAPE"}
            row["space_usable"] = often(rng, 5000.0, 0.0, 199.9, 200.0, 200.1, 500.0, None, p=0.15)
            row |= {access: often(rng, "ON", "OFF", "TEST", None, p=0.08) for access in ACCESS}
            found[row["ddm_endpoint_name"]] = row
    return found


def _attached(rng: Random, number: int, name: str, endpoints: dict[str, Row]) -> list[Row]:
    """Return the endpoints of a queue: of its own site, some of another one, some of scope analysis."""
    if rng.random() < 0.02:
        return []
    rows = []
    home = f"S{number:02}" if rng.random() < 0.9 else rng.choice(sorted(endpoints))[:3]
    for direction in ("input", "output"):
        for scope in ("default", "analysis") if rng.random() < 0.15 else ("default",):
            if direction == "output" and rng.random() < 0.02:
                continue
            kinds = (
                ["SCRATCHDISK", "DATADISK"] if scope == "analysis" else ["DATADISK", "SCRATCHDISK"]
            )
            if direction == "input":
                kinds += [
                    kind for kind, p in (("DATATAPE", 0.3), ("VP_DISK", 0.3)) if rng.random() < p
                ]
            kept = [kind for kind in kinds if kind == kinds[0] or rng.random() < 0.7]
            rows += [
                {
                    **endpoints[f"{home}_{kind}"],
                    "panda_queue": name,
                    "direction": direction,
                    "scope": often(rng, scope, None, p=0.3) if scope == "default" else scope,
                    "is_default": kind == kept[0],
                }
                for kind in kept
            ]
    return rows


def _queue(rng: Random, name: str) -> Row:
    cores = often(rng, rng.choice((1, 8)), 0, None, 2, 16)
    scale = cores or 1
    return {
        "panda_queue": name,
        "unified_name": often(rng, None, name, p=0.3),
        "is_unified": False,
        "capability": "ucore" if rng.random() < 0.2 else None,
        "type": often(rng, "analysis", "unified", "production", None, p=0.5),
        "status": often(rng, "online", "offline", "brokeroff", "test", "paused", "standby", None, p=0.1),
        "cloud": rng.choice(("DE", "US")),
        "corecount": cores,
        "corepower": often(rng, rng.choice((8.0, 10.0, 12.5)), 0.0, None, p=0.03),
        "maxtime": often(rng, rng.choice((345600, 172800, 0)), 3600, 86399, 86400, 20000, None),
        "mintime": often(rng, 0, 1, 600, 3600, None, p=0.1),
        "maxrss": often(rng, 4000.0 * scale, 0.0, None, 2000.0 * scale, 1800.0 * scale, 900.0 * scale),
        "minrss": often(rng, 0.0, None, 1800.0 * scale, 500.0 * scale, p=0.1),
        "maxwdir": often(rng, rng.choice((0.0, 400000.0, 20000.0 * scale)), None, 300.0 * scale, 1300.0 * scale, 500.0),
        "maxinputsize": often(rng, 60000, -1, None),
        "direct_access_lan": rng.choice((True, False, None)),
        "maxdiskio": often(rng, None, 0.0, -1.0, 300.0, 50.0),
        "max_io_intensity": often(rng, None, 100.0, 500.0, 0.0, p=0.06),
        "fairsharepolicy": often(rng, None, "", *POLICIES, p=0.12),
        "catchall": often(rng, None, "", "gpu", "foo=1,gpu", "grandly_unified", "use_only_local_data", "disableReassign", p=0.2),
        "releases": often(rng, ["AUTO"], ["ANY"], ["21.0"], None, p=0.1),
    }  # fmt: skip


def _expanded(queue: Row) -> list[Row]:
    """Return a queue with its pseudo-queues (1.5); where it has some, it is unified."""
    if queue["capability"] != "ucore":
        return [queue]
    whole = max(1, queue["corecount"] or 0)
    rows = [queue | {"is_unified": True}]
    for kind in RESOURCE_TYPES:
        if kind["mincore"] > whole:
            continue
        cores = max(min(whole, kind["maxcore"] or whole), kind["mincore"])
        row = queue | {"corecount": cores, "unified_name": queue["panda_queue"]}
        row["panda_queue"] = f"{queue['panda_queue']}/{kind['resource_name']}"
        if queue["maxrss"]:
            row["maxrss"] = queue["maxrss"] * cores / whole
        if kind["minrampercore"]:
            row["minrss"] = float(cores * kind["minrampercore"] - cores + 1)
        rows.append(row)
    return rows


def _state(rng: Random, parents: list[str]) -> Tables:
    """Return what changes from instant to instant."""
    tables: Tables = {name: [] for name in ("job_stats", "user_job_stats", "to_run_rate", "failure_counts", "site_activity", "worker_stats", "slots", "diskio_usage", "sites_used", "site_class")}  # fmt: skip
    for name in parents:
        for table, rows in _state_of(rng, name).items():
            tables[table] += rows
    ages = [NOW - timedelta(seconds=s) for s in (0, 60, 900, 901, 1200, 1201)]
    tables["user_totals"] = [
        {"origusername": user, "workinggroup": None, **_totals(rng)}
        for user in USERS
        if rng.random() < 0.7
    ]
    tables["user_totals"] += [{"origusername": None, "workinggroup": "higgs", **_totals(rng)}]
    tables["gshare_usage"] = [
        {"gshare": share, "usage_perc": often(rng, rng.choice((0.9, 0.5, 0.91, 0.95, 0.96, 1.2, 2.5)), None, p=0.05),
         "eqiv_usage_perc": often(rng, rng.choice((0.9, 0.92, 1.1)), None, p=0.3), "timestamp": often(rng, None, *ages, p=0.4)}
        for share in ("User Analysis", "L1 User Analysis", "Group Analysis") if rng.random() < 0.9
    ]  # fmt: skip
    tables["user_eval"] = [
        {"user": user, "rem_slots_a": rng.choice((0.0, 100.0, 500.0, 1000.0, None)), "rem_slots_b": 0.0, "timestamp": often(rng, None, *ages, p=0.4)}
        for user in USERS if rng.random() < 0.7
    ]  # fmt: skip
    tables["task_class"] = [
        {"jeditaskid": 1000 + i, "class": often(rng, rng.choice((2, 1, 0, -1)), None, p=0.03), "timestamp": often(rng, None, *ages, p=0.4)}
        for i in range(40) if rng.random() < 0.6
    ]  # fmt: skip
    who = {user: {"username": user} for user in (*USERS, "higgs")}
    tables["quota"] = [
        {**who[user], "global_quota_ok": often(rng, True, False, None, p=0.12), "near_global_limit": often(rng, False, True, None, p=0.3),
         "local_quota_ok": often(rng, True, False, None, p=0.12), "endpoints_over_local_quota": often(rng, [], ["S00_DATADISK", "S03_SCRATCHDISK"], None, p=0.4)}
        for user in who if rng.random() < 0.8
    ]  # fmt: skip
    return tables


def _totals(rng: Random) -> Row:
    return {
        "nrunjobs": often(rng, 100, 500, 501, 501, 900, p=0.3),
        "nqueuedjobs": often(rng, 500, 1000, 1001, None, p=0.4),
        "nruncores": often(rng, 900, 2000, 2001, p=0.3),
        "nqueuedcores": often(rng, 900, 4000, 4001, p=0.4),
    }


def _state_of(rng: Random, name: str) -> Tables:
    tables: Tables = {"job_stats": [], "user_job_stats": [], "failure_counts": [], "worker_stats": [], "slots": []}  # fmt: skip
    site = {"computingsite": name}

    def count() -> int:
        return rng.choice((0, 0, 1, 3, 19, 20, 21, 40, 100, rng.randrange(300)))

    for share in dict.fromkeys(SHARES):
        if rng.random() < 0.1:
            continue
        quiet = rng.random() < 0.5
        for status in STATUSES:
            for kind in ("SCORE", "MCORE"):
                if rng.random() < 0.6:
                    number = count() // (10 if quiet and status != "running" else 1)
                    tables["job_stats"].append({**site, "gshare": share, "resource_type": kind, "jobstatus": status, "njobs": number})  # fmt: skip
        for user in USERS:
            if rng.random() < 0.5:
                row = {**site, "gshare": share, "produsername": user}
                tables["user_job_stats"].append(row | {"nqueue": rng.choice((0, 5, 6, 40, 400)), "nrunning": rng.choice((0, 0, 10, 100))})  # fmt: skip
    for jeditaskid in (None, *range(1000, 1012)):
        for status in ("failed", "closed", "finished"):
            if rng.random() < 0.06:
                number = rng.choice((0, 1, 4, 5, 6, 10, 20))
                tables["failure_counts"].append({**site, "jeditaskid": jeditaskid, "jobstatus": status, "njobs": number})  # fmt: skip
    for status in ("running", "submitted", "finished"):
        if rng.random() < 0.3:
            tables["worker_stats"].append({"panda_queue": name, "resource_type": "SCORE", "status": status, "n_workers": rng.choice((0, 3, 15))})  # fmt: skip
    for tag in (
        dict.fromkeys(often(rng, None, *SHARES, p=0.7) for _ in range(2))
        if rng.random() < 0.3
        else ()
    ):
        tables["slots"].append({"panda_queue": name, "gshare": tag, "resourcetype": rng.choice((None, "MCORE", "SCORE")), "numslots": rng.choice((0, 4, 80, 900))})  # fmt: skip
    tables["to_run_rate"] = [{**site, "jobs_per_hour": rng.choice((0.0, 0.5, 3.4142, 12.5, 80.0))}] if rng.random() < 0.9 else []  # fmt: skip
    tables["site_activity"] = [{**site, "getjob": often(rng, 40, 0, None, p=0.1), "updatejob": often(rng, 0, 7, None)}] if rng.random() < 0.97 else []  # fmt: skip
    tables["diskio_usage"] = [{**site, "diskio_per_core": rng.choice((0.0, 300.0, 399.5, 800.0, None))}] if rng.random() < 0.6 else []  # fmt: skip
    tables["sites_used"] = [{**site, "jeditaskid": rng.choice((None, 1000, 1001))}] if rng.random() < 0.1 else []  # fmt: skip
    tables["site_class"] = [{**site, "class": rng.choice((1, 0, -1, None))}] if rng.random() < 0.8 else []  # fmt: skip
    return tables


def _software(rng: Random, parents: list[str]) -> list[Row]:
    tags = [{"panda_queue": "ALL", "data": _description(rng)}]
    return tags + [{"panda_queue": n, "data": _description(rng)} for n in parents if rng.random() < 0.97]  # fmt: skip


def _description(rng: Random) -> Row:
    cpu = {"type": "cpu", "arch": ["x86_64", *(["excl"] if rng.random() < 0.04 else [])]}
    gpu = {"type": "gpu", "vendor": ["nvidia", *(["excl"] if rng.random() < 0.3 else [])]}
    return {
        "architectures": often(rng, [cpu, *([gpu] if rng.random() < 0.15 else [])], [], p=0.05),
        "cmtconfigs": often(rng, ["x86_64-el9-gcc13-opt"], ["x86_64-centos7-gcc11-opt"], [], p=0.2),
        "containers": often(rng, ["any"], ["/cvmfs"], [], ["/cvmfs/unpacked.cern.ch"], p=0.3),
        "cvmfs": often(rng, ["atlas", "nightlies"], ["atlas"], ["any"], [], p=0.15),
        "tags": [],
    }


def _settings(rng: Random) -> list[Row]:
    """Return some settings; the others have their defaults."""
    values: dict[tuple[str, str], tuple[Any, ...]] = {
        ("prio_mgr", "CAP_RUNNING_USER_JOBS"): (500, 500, 0),
        ("prio_mgr", "CAP_RUNNING_USER_CORES"): (2000,),
        ("prio_mgr", "CAP_RUNNING_GROUP_JOBS"): (500,),
        ("prio_mgr", "CAP_RUNNING_GROUP_CORES"): (2000, 0),
        ("analy_eval", "USER_USAGE_THRESHOLD_A"): (500, 2000),
        ("anal_jobbroker", "MIN_BAD_JOBS_TO_SKIP_PQ"): (10, 0),
        ("anal_jobbroker", "IO_INTENSITY_CUTOFF_USER"): (500, 200, 0),
        ("anal_jobbroker", "DATA_CHECK_TIMEOUT_USER"): (24, 6, 0),
        ("anal_jobbroker", "MAX_MISSING_INPUT_FILES"): (0, 1),
        ("anal_jobbroker", "MIN_INPUT_COMPLETENESS"): (50, 95),
        ("anal_jobbroker", "BASE_QUEUE_LENGTH_PER_PQ"): (10, 0),
        ("anal_jobbroker", "BASE_EXPECTED_WAIT_HOUR_ON_PQ"): (2, 0),
        ("anal_jobbroker", "BASE_DEFAULT_QUEUE_LENGTH_PER_PQ_USER"): (0, 50),
        ("anal_jobbroker", "BASE_QUEUE_RATIO_ON_PQ"): (0.5, 0.0),
        ("anal_jobbroker", "STATIC_MAX_QUEUE_RUNNING_RATIO"): (1.0, 0.0),
        ("anal_jobbroker", "MAX_EXPECTED_WAIT_HOUR"): (1.0, 24.0),
        ("anal_jobbroker", "OVERLOAD_MIN_QUEUE"): (100, 0, 500),
        ("anal_jobbroker", "OVERLOAD_RATIO_OFFSET"): (1.0, 3.0),
        ("anal_jobbroker", "STORAGE_MIN_FREE_SIZE_OUTPUT"): (500, 0),
        ("jobbroker", "STORAGE_MIN_FREE_SIZE"): (500, 0),
        ("jobbroker", "MAX_DISKIO_DEFAULT"): (0, 400),
        ("jobbroker", "MIN_WEIGHT_user"): (0.01, 0.5),
        ("jobbroker", "MIN_WEIGHT_user_User Analysis"): (0.0, 0.001, 1.0),
    }
    return [
        {"component": component, "key": key, "value": rng.choice(some)}
        for (component, key), some in values.items()
        if rng.random() < 0.4
    ]
