"""Random worlds for comparing the twin with the library: many tasks in front of the same queues, every edge in it.

Plain rows in the shape of the recorded vectors, but with a table ``tasks`` (task and chunk in one row, the chunk's
``ramcount`` as ``chunk_ramcount``), and ``jeditaskid`` in the tables about a task's input.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from random import Random
from typing import Any

from tests.twins.world_tasks import random_input, random_task

Row = dict[str, Any]
Tables = dict[str, Any]

NOW = datetime(2026, 6, 1, 12)
SHARES = ("MC 16 simul", "Express", "Data Derivations", "Reprocessing", "test")
JOB_STATUSES = ("running", "defined", "assigned", "activated", "starting", "transferring")
RESOURCE_TYPES: tuple[Row, ...] = (
    {"resource_name": "SCORE", "mincore": 1, "maxcore": 1, "minrampercore": None, "maxrampercore": 2000},
    {"resource_name": "SCORE_HIMEM", "mincore": 1, "maxcore": 1, "minrampercore": 2001, "maxrampercore": None},
    {"resource_name": "MCORE", "mincore": 2, "maxcore": None, "minrampercore": None, "maxrampercore": 2000},
    {"resource_name": "MCORE_HIMEM", "mincore": 2, "maxcore": None, "minrampercore": 2001, "maxrampercore": None},
)  # fmt: skip
POLICIES = (
    "type=evgen:100%,type=simul:100%,type=any:0%", "gshare=Express*:100%,gshare=any:0%", "type=any:0",
    "group=(AP_Higgs|AP_Susy):0%", "priority>=800:0%", "type=simul:priority<500:0%", "type=(:0%",
    "type=evgen:100%, type=any:0%", "type=any:100%",
)  # fmt: skip
CATCHALLS = (
    "useJumboJobs", "useJumboJobs,minEventsForJumbo=1000", "foo=1,useJumboJobs,minEventsForJumbo=10",
    "use_only_local_data", "bareNucleus=only", "bareNucleus=allow,foo=1", "grandly_unified", "foo=1",
    "bareNucleus=none", "secondaryNucleus=N1",
)  # fmt: skip
WORK_QUEUE = 77


def often(rng: Random, common: Any, *rare: Any, p: float = 0.15) -> Any:
    """Return the common value, or with probability ``p`` one of the rare ones."""
    return rng.choice(rare) if rng.random() < p else common


def random_world(seed: int, n_tasks: int, n_queues: int) -> Tables:
    """Return the tables of a world.

    Args:
        seed: Same seed, same world.
        n_tasks: Tasks.
        n_queues: Queues, pseudo-queues included; parents come on top.
    """
    rng = Random(seed)  # noqa: S311 - test data
    nuclei = [f"N{i}" for i in range(3)]
    sites = nuclei + [f"S{i:02}" for i in range(max(n_queues // 8, 4))]
    tables: Tables = {"now": NOW.isoformat(), "resource_types": list(RESOURCE_TYPES)}
    tables["storage_endpoints"] = _endpoints(rng, sites, nuclei)
    tables["queues"] = _queues(rng, sites, nuclei, n_queues)
    parents = sorted({row["unified_name"] or row["panda_queue"] for row in tables["queues"]})
    home = {row["unified_name"] or row["panda_queue"]: row["pandasite"] for row in tables["queues"]}
    tables |= _attached(rng, parents, home, tables)
    tables["nuclei"] = _nuclei(rng, sites, nuclei, tables)
    tables["network_matrix"] = _links(rng, sites, nuclei)
    tables |= _software(rng, parents)
    tables |= _statistics(rng, parents, nuclei)
    tables |= _settings(rng)
    names = [row["panda_queue"] for row in tables["queues"]]
    tables["locks"] = [{"panda_queue": name} for name in rng.sample(names, len(names) // 40)]
    tables["tasks"] = [random_task(rng, 1000 + i, names, parents, nuclei) for i in range(n_tasks)]
    for table in ("datasets", "files", "file_locations", "replicas", "task_resource_types"):
        tables[table] = []
    endpoints = [row["ddm_endpoint_name"] for row in tables["storage_endpoints"]]
    for task in tables["tasks"]:
        for table, rows in random_input(rng, task, parents, endpoints).items():
            tables[table] += rows
    return tables


def _endpoints(rng: Random, sites: list[str], nuclei: list[str]) -> list[Row]:
    rows = []
    for site in sites:
        for kind in ("DATADISK", "SCRATCHDISK", *(("DATATAPE",) if site in nuclei else ())):
            row = {"ddm_endpoint_name": f"{site}_{kind}", "site_name": site, "type": kind}
            row["is_tape"] = kind == "DATATAPE"
            for access in ("read_lan", "write_lan", "read_wan", "write_wan"):
                row[access] = often(rng, "ON", "OFF", "TEST", None, "AUTO", p=0.08)
            row["space_free"] = often(rng, rng.randrange(1000, 10**6), 0, 150, 200, 250, 1000, None)
            row["space_expired"] = rng.choice((0, 50, 5000, None))
            row["space_min_free"] = rng.choice((0, 50, None))
            row["space_unavailable"] = rng.choice((0, 50, None))
            rows.append(row)
    return rows


def _queues(rng: Random, sites: list[str], nuclei: list[str], n_queues: int) -> list[Row]:
    rows: list[Row] = []
    candidates = 0
    while candidates < n_queues:
        site = rng.choice(sites) if len(rows) >= len(sites) else sites[len(rows)]
        unified = rng.random() < 0.25
        queue = _queue(rng, f"{site}_{'UCORE' if unified else 'Q'}{len(rows):03}", site, nuclei)
        if unified:
            queue |= {"is_unified": True, "capability": "ucore"}
            children = _pseudo(queue)[: n_queues - candidates]
            candidates += len(children)
            rows += [queue, *children]
        else:
            candidates += 1
            rows.append(queue)
    return rows


def _queue(rng: Random, name: str, site: str, nuclei: list[str]) -> Row:
    cores = often(rng, rng.choice((1, 8, 8, 8)), 0, None, 2, 4, 16, 64)
    scale = cores or 1
    return {
        "panda_queue": often(rng, name, f"{name}_TEST", p=0.04),
        "unified_name": often(rng, None, None, p=0.5),
        "is_unified": False,
        "type": often(rng, "production", "unified", "analysis", None, p=0.4),
        "status": often(rng, "online", "standby", "offline", "test", "brokeroff", None, p=0.08),
        "pandasite": site,
        "role": "nucleus" if site in nuclei else "satellite",
        "pandasite_state": "ACTIVE",
        "corecount": cores,
        "corepower": often(rng, rng.choice((8, 10, 12.5, 15)), 0, None, p=0.04),
        "maxtime": often(rng, rng.choice((345600, 172800, 0)), None, 3600, 86399, 86400, 20000),
        "mintime": often(rng, 0, None, 1, 600, 3600, 80000),
        "maxrss": often(rng, 4000 * scale, None, 0, 2000 * scale, 900 * scale, 2000),
        "minrss": often(rng, 0, None, 2001 * scale, 500 * scale, p=0.1),
        "maxwdir": often(rng, rng.choice((0, 400000, 40000)), None, 500, 1800, 2500, 9000),
        "maxinputsize": often(rng, 60000, -1, None, p=0.3),
        "direct_access_lan": rng.choice((True, False, None)),
        "direct_access_wan": rng.choice((True, False, None)),
        "pledgedcpu": often(rng, 0, -1, 1000, 3000, None, p=0.3),
        "transferringlimit": often(rng, 0, None, 200, 3000),
        "maxdiskio": often(rng, None, 0, -1, 300, 4000),
        "max_io_intensity": often(rng, None, 100, 500, 0, p=0.06),
        "fairsharepolicy": often(rng, None, "", *POLICIES, p=0.3),
        "wnconnectivity": often(rng, "full#IPv4", None, "full", "http#IPv6", "#IPv4", "none", "full#a#b"),
        "jobseed": often(rng, "all", "std", None, "es", "eshigh", p=0.3),
        "capability": None,
        "workflow": rng.choice(("push", "pull_ups", None)),
        "catchall": often(rng, None, "", *CATCHALLS, p=0.35),
        "params": often(rng, None, '{"use_only_local_data": true}', '{"bareNucleus": "allow"}', p=0.04),
        "releases": often(rng, ["AUTO"], ["ANY"], ["21.0"], None, p=0.05),
    }  # fmt: skip


def _pseudo(parent: Row) -> list[Row]:
    """Return the pseudo-queues of a parent, one per resource type that fits (chapter 1.4)."""
    rows = []
    whole = max(1, parent["corecount"] or 0)
    for kind in RESOURCE_TYPES:
        if kind["mincore"] > whole:
            continue
        cores = max(min(whole, kind["maxcore"] or whole), kind["mincore"])
        row = dict(parent, is_unified=False, unified_name=parent["panda_queue"], corecount=cores)
        row["panda_queue"] = f"{parent['panda_queue']}/{kind['resource_name']}"
        for column in ("maxrss", "minrss"):
            if parent[column] is not None:
                row[column] = parent[column] * cores / whole
        if kind["maxrampercore"] and row["maxrss"]:
            row["maxrss"] = min(cores * kind["maxrampercore"], row["maxrss"])
        if kind["minrampercore"]:
            row["minrss"] = max(cores * kind["minrampercore"] - cores + 1, row["minrss"] or 0)
        rows.append(row)
    return rows


def _attached(rng: Random, parents: list[str], home: dict[str, str], tables: Tables) -> Tables:
    """Return endpoints and storage sites of the queues."""
    endpoints, storage_sites = [], []
    known = {row["ddm_endpoint_name"] for row in tables["storage_endpoints"]}
    for name in parents:
        site = often(rng, home[name], rng.choice(list(home.values())), p=0.05)
        if rng.random() < 0.03:  # a queue without any endpoint
            continue
        for direction, kinds in (("input", ("DATADISK", "SCRATCHDISK", "DATATAPE")), ("output", ("DATADISK", "SCRATCHDISK"))):  # fmt: skip
            for kind in kinds:
                endpoint = f"{site}_{kind}"
                if endpoint in known and rng.random() < (0.97 if kind == "DATADISK" else 0.3):
                    row = {
                        "panda_queue": name,
                        "direction": direction,
                        "ddm_endpoint_name": endpoint,
                    }
                    endpoints.append(row | {"is_default": kind == "DATADISK"})
        if rng.random() < 0.95:
            storage_sites.append({"panda_queue": name, "site_name": often(rng, site, None, p=0.03)})
    return {"queue_endpoints": endpoints, "queue_storage_site": storage_sites}


def _nuclei(rng: Random, sites: list[str], nuclei: list[str], tables: Tables) -> list[Row]:
    rows = []
    for site in sites:
        queues = sorted(
            row["panda_queue"]
            for row in tables["queues"]
            if row["pandasite"] == site and row["type"] != "analysis"
        )
        disk = f"{site}_DATADISK"
        rows.append(
            {
                "nucleus": site,
                "role": "nucleus" if site in nuclei else "satellite",
                "state": "ACTIVE",
                "bare_mode": often(rng, None, "only", "allow", p=0.3),
                "secondary_nucleus": None,
                "queues": queues,
                "default_endpoint_out": often(rng, disk, None, p=0.05),
                "input_endpoints": [disk],
                "output_endpoints": [disk],
            }
        )
    return rows


def _links(rng: Random, sites: list[str], nuclei: list[str]) -> list[Row]:
    rows = []
    for dst in nuclei:
        for src in sites:
            if rng.random() < 0.05:
                continue
            metrics = {
                "AGIS_closeness": rng.choice((-1, 0, 1, 4, 7, 11)),
                "Production Output_queued": rng.choice((0, 5, 30, 90, 149, 150, 151, 1000)),
                "Express_queued": rng.choice((0, 5, 150, 300)),
                "dashb_mbps_1h": rng.choice((0, 0.5, 1, 20, 50, 60, 75, 200, 300.5)),
                "dashb_mbps_1d": rng.choice((0, 2, 10, 33, 60, 100, 250)),
                "dashb_mbps_1w": rng.choice((0, 5, 15, 60, 88.5, 200, 201)),
            }
            for key, value in metrics.items():
                age = often(rng, rng.randrange(1, 59), 60, 61, 120, p=0.05)
                if rng.random() < 0.8:
                    time = (NOW - timedelta(minutes=age)).isoformat()
                    rows.append({"src": src, "dst": dst, "key": key, "value": value, "ts": time})
    return rows


def _software(rng: Random, parents: list[str]) -> Tables:
    tags, gpus, levels = [{"panda_queue": "ALL", "data": _description(rng)}], [], []
    for name in parents:
        if rng.random() < 0.97:
            tags.append({"panda_queue": name, "data": _description(rng)})
        if rng.random() < 0.2:
            gpus.append({"panda_queue": name, "vendor": "NVIDIA", "model": "NVIDIA A100-SXM4-80GB", "vram": 81920, "architecture": "Ampere", "framework_version": "12.4", "driver_version": "550.54.15"})  # fmt: skip
        if rng.random() < 0.3:
            percent = rng.choice((0, 25.5, 60, 100))
            levels.append({"panda_queue": name, "cpu_architecture_level": "x86-64-v3", "pct_within_queue": percent})  # fmt: skip
    return {"sw_tags": tags, "worker_node_gpu": gpus, "worker_node_cpu_level": levels}


def _description(rng: Random) -> Row:
    cpu = {"type": "cpu", "arch": [often(rng, "x86_64", "aarch64", "any")], "vendor": ["intel"], "instr": ["avx2"]}  # fmt: skip
    architectures = [cpu, *([{"type": "gpu", "vendor": ["nvidia"]}] if rng.random() < 0.2 else [])]
    return {
        "architectures": often(rng, architectures, [], p=0.05),
        "cmtconfigs": ["x86_64-centos7-gcc62-opt", *(["x86_64-el9-gcc13-opt"] if rng.random() < 0.8 else [])],
        "containers": often(rng, ["any", "/cvmfs"], [], ["/cvmfs/unpacked.cern.ch"], p=0.2),
        "cvmfs": often(rng, ["atlas", "nightlies"], ["atlas"], ["any"], [], p=0.2),
        "tags": [{"cmtconfig": "x86_64-el9-gcc13-opt", "container_name": "atlas-ml", "project": "Athena", "release": "24.0.40", "sources": ["/cvmfs/unpacked.cern.ch/atlas-ml:1.0"], "tag": "t"}],
    }  # fmt: skip


def _statistics(rng: Random, parents: list[str], nuclei: list[str]) -> Tables:
    tables: Tables = {name: [] for name in ("job_stats", "job_stats_rt", "job_stats_workqueue", "job_stats_gshare_only", "transferring_by_nucleus", "core_stats", "site_activity", "worker_stats", "slots", "diskio_usage", "live")}  # fmt: skip

    def count() -> int:
        return rng.choice((0, 0, 1, 3, 10, 19, 20, 21, 40, 100, rng.randrange(1000)))

    for name in parents:
        site = {"computingsite": name}
        busy = rng.random() < 0.9
        for share in SHARES if busy else ():
            for status in JOB_STATUSES:
                if rng.random() < 0.7:
                    row = {**site, "jobstatus": status, "njobs": count()}
                    tables["job_stats"].append({**row, "gshare": share})
                    tables["job_stats_gshare_only"].append(
                        {**row, "gshare": share, "njobs": count()}
                    )
                    for kind in ("SCORE", "MCORE") if rng.random() < 0.3 else ():
                        by_type = {**row, "resource_type": kind, "njobs": count()}
                        tables["job_stats_rt"].append({**by_type, "gshare": share})
        for status in JOB_STATUSES if busy else ():
            row = {**site, "jobstatus": status, "njobs": count()}
            tables["job_stats_workqueue"].append({**row, "workqueue_id": WORK_QUEUE})
            tables["job_stats_rt"].append(
                {**row, "resource_type": "MCORE", "gshare": "eventservice"}
            )
        for nucleus in nuclei if rng.random() < 0.3 else ():
            tables["transferring_by_nucleus"].append({**site, "nucleus": nucleus, "njobs": count()})
        for status in ("running", "starting"):
            cores = rng.choice((0, 100, 900, 1000, 1001, 2990))
            tables["core_stats"].append({**site, "jobstatus": status, "ncores": cores})
        if rng.random() < 0.97:
            start = NOW - timedelta(minutes=often(rng, 30, 119, 120, 121, 600))
            tables["site_activity"].append({**site, "getjob": often(rng, 40, 0, None), "updatejob": often(rng, 0, 7, None), "laststart": often(rng, start.isoformat(), None, p=0.05)})  # fmt: skip
        tables["worker_stats"] += [{"panda_queue": name, "resource_type": "MCORE", "status": status, "n_workers": rng.choice((0, 3, 15))} for status in ("running", "submitted", "finished") if rng.random() < 0.3]  # fmt: skip
        for tag in dict.fromkeys(often(rng, None, *SHARES, "eventservice", p=0.7) for _ in range(2)) if rng.random() < 0.3 else ():  # fmt: skip
            tables["slots"].append({"panda_queue": name, "gshare": tag, "resourcetype": rng.choice((None, "MCORE", "SCORE")), "numslots": rng.choice((0, 4, 80, 900, 20000))})  # fmt: skip
        if rng.random() < 0.5:
            tables["diskio_usage"].append({**site, "diskio_per_core": rng.choice((0.0, 300.0, 399.5, 800.0, None))})  # fmt: skip
        if rng.random() < 0.1:
            tables["live"].append({"panda_queue": name, "njobs": rng.randrange(50)})
    return tables


def _settings(rng: Random) -> Tables:
    settings = {
        "NW_ACTIVE": rng.choice((True, False)),
        "NW_QUEUE_IMPORTANCE": rng.choice((None, 0.0, 0.3, 0.7)),
        "NW_THRESHOLD": rng.choice((None, 1.5)),
        "NQUEUED_SAT_CAP": rng.choice((None, 100, 300)),
        "NQUEUED_NUC_CAP_FOR_JOBS": rng.choice((None, 4000)),
        "IO_INTENSITY_CUTOFF": rng.choice((None, 500)),
        "SIZE_CUTOFF_TO_MOVE_INPUT": rng.choice((None, 1)),
        "NUM_CUTOFF_TO_MOVE_INPUT": rng.choice((None, 3)),
        "MAX_DISKIO_DEFAULT": rng.choice((None, 0, 400)),
        "STORAGE_MIN_FREE_SIZE": rng.choice((None, 0, 500)),
        "MAX_PRIO_TO_BOOTSTRAP": rng.choice((None, 500)),
        "NQUEUELIMITSITE_Express": rng.choice((None, 0, 5)),
        "NQUEUELIMITSITE_Reprocessing": rng.choice((None, 400)),
        "MIN_WEIGHT_managed": rng.choice((None, 0.5)),
        "MIN_WEIGHT_managed_Reprocessing": rng.choice((None, 0.0, 1.0)),
    }
    rows = [
        {"component": "jobbroker", "key": key, "value": value}
        for key, value in settings.items()
        if value is not None
    ]
    rows.append({"component": "core", "key": "WORK_SHORTAGE", "value": rng.random() < 0.3})
    queues = [{"workqueue_id": WORK_QUEUE, "queue_name": "eventservice"}]
    return {"gdpconfig": rows, "resource_work_queues": queues}
