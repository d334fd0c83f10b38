"""Random tasks and their input, for :mod:`tests.twins.worlds`."""

from __future__ import annotations

from datetime import datetime, timedelta
from random import Random
from typing import Any

Row = dict[str, Any]

NOW = datetime(2026, 6, 1, 12)
PLATFORM = '{"sw_platform": "x86_64-el9-gcc13-opt"}'
ARCHITECTURES = (
    "x86_64-el9-gcc13-opt", "x86_64-el9-gcc99-opt", "x86_64-el9-gcc13-opt@el9", "#(x86_64-intel|aarch64)",
    "(x86_64|aarch64)-el9-gcc13-opt", "(x86_64|aarch64)-(el9|el8)-gc.*", "#&nvidia", "#&nvidia:vram>=40960",
    '{"cpu_pref": {"preferred_architecture_level": "x86-64-v3"}}', None,
)  # fmt: skip
SHARES = ("MC 16 simul", "Express", "Data Derivations", "Reprocessing", "test")
KINDS = ("plain", "plain", "plain", "scout", "merge", "es", "jumbo", "t1", "chain", "express", "listed", "heavy", "odd")  # fmt: skip


def often(rng: Random, common: Any, *rare: Any, p: float = 0.15) -> Any:
    """Return the common value, or with probability ``p`` one of the rare ones."""
    return rng.choice(rare) if rng.random() < p else common


def random_task(
    rng: Random, jeditaskid: int, queues: list[str], parents: list[str], nuclei: list[str]
) -> Row:
    """Return a task with its chunk; the kind decides which edge it stands at."""
    kind = rng.choice(KINDS)
    task: Row = {"jeditaskid": jeditaskid, "snapshot": 0, "at": NOW.isoformat(), "vo": "atlas"}
    task |= _plain(rng, nuclei) | _needs(rng) | _chunk(rng)
    if kind == "scout":
        task["use_scout"] = True
    if kind == "merge":
        task |= {"is_merging": True, "mergecorecount": rng.choice((None, 0, 1, 8)), "mergeramcount": rng.choice((None, 0, 1000, 3000))}  # fmt: skip
        _premerge(rng, task, queues)
    if kind == "es":
        task |= {"eventservice": rng.choice((1, 2)), "usejobcloning": often(rng, None, True), "nesconsumers": rng.choice((None, 2)), "maxattemptesjob": rng.choice((None, 0, 4)), "workqueue_id": rng.choice((None, 77))}  # fmt: skip
    if kind == "jumbo":
        task |= {"usejumbo": often(rng, "W", "R", "D", None, p=0.3), "njumbojobs": 5, "n_ready_events": rng.choice((None, 0, 500, 5000))}  # fmt: skip
    if kind == "t1":
        task["t1weight"] = rng.choice((-1, -2, 0, 2, 10, 200))
    if kind == "chain":
        task["fullchain"] = rng.choice(("only", "require", "capable"))
    if kind == "express":
        task |= {"currentpriority": rng.choice((999, 1000, 1001)), "processingtype": rng.choice(("urgent", "simul"))}  # fmt: skip
    if kind == "listed":
        task["site"] = ",".join(rng.sample(queues + parents, rng.choice((1, 1, 3, 12))))
    if kind == "heavy":
        task["iointensity"] = rng.choice((200, 201, 501, 2000))
    if kind == "odd":
        task |= {"nucleus": rng.choice((None, "", "NOWHERE", "S00")), "cputimeunit": rng.choice((None, "s")), "walltime": rng.choice((None, 0, 20, 300)), "walltimeunit": rng.choice((None, "kSI2kseconds"))}  # fmt: skip
    return task


def _plain(rng: Random, nuclei: list[str]) -> Row:
    return {
        "prodsourcelabel": often(rng, "managed", "prod_test", None, p=0.06),
        "nucleus": rng.choice(nuclei),
        "site": None,
        "gshare": often(rng, rng.choice(SHARES), None, p=0.03),
        "workqueue_id": often(rng, None, 77, 5, p=0.1),
        "currentpriority": rng.choice((100, 150, 200, 500, 501, 700, 799, 800, 900, 1000)),
        "processingtype": often(rng, "simul", "evgen", "deriv", "validation", None, "reco", p=0.6),
        "workinggroup": rng.choice((None, "AP_Higgs", "AP_MCGN")),
        "corecount": often(rng, 8, 0, 1, None, 64, p=0.35),
        "mergecorecount": None,
        "maxcorecount": often(rng, None, 4, 8, 16, 0),
        "resource_type": often(rng, "MCORE", "SCORE", None, p=0.3),
        "architecture": often(rng, PLATFORM, *ARCHITECTURES, p=0.3),
        "transhome": often(rng, "Athena-24.0.40", None, "Athena-main-2026-05-01T2101", p=0.2),
        "container_name": often(rng, None, "atlas-ml", "docker://x/y", p=0.1),
        "onlytagsforfc": often(rng, None, True),
        "ipconnectivity": often(rng, None, "full", "http", "none", "http#IPv4"),
        "ipstack": often(rng, None, "IPv4", "IPv6", ""),
        "t1weight": often(rng, None, 0),
        "mergeoutput": often(rng, None, True),
        "eventservice": None,
        "frozentime": None,
    }  # fmt: skip


def _needs(rng: Random) -> Row:
    """What a job needs: memory, disk, time."""
    return {
        "ramcount": often(rng, rng.choice((500, 1500, 1900)), None, 0, 4000),
        "ramcountunit": often(rng, "MBPerCore", "MBPerCoreFixed", "MB", None, p=0.4),
        "baseramcount": often(rng, 500, 0, None),
        "mergeramcount": None,
        "outdiskcount": often(rng, 50, 0, None, -5, 1200, p=0.4),
        "outdiskunit": rng.choice(("kBPerEvent", "kB", "MB", "BPerEvent", None)),
        "workdiskcount": often(rng, 300, None, 0, 2000, p=0.4),
        "workdiskunit": often(rng, "MB", "kB", None),
        "cputime": often(rng, rng.choice((5, 200, 900)), None, 0, 200000, p=0.1),
        "cputimeunit": often(rng, "HS06sPerEvent", "HS06sPerEventFixed", "mHS06sPerEvent", "mHS06sPerEventFixed", p=0.4),
        "cpuefficiency": often(rng, 90, 100, 80, 0, None, p=0.3),
        "basewalltime": often(rng, 60, 0, 600, None, p=0.4),
        "walltime": None,
        "walltimeunit": None,
        "iointensity": often(rng, 100, None, 0, 550, p=0.4),
        "diskio": often(rng, None, 0, 300, 4000, p=0.6),
        "allowinputlan": rng.choice((None, "use", "use", "only")),
        "uselocalio": often(rng, None, True),
        "inputprestaging": often(rng, None, True),
        "dynamicnumevents": often(rng, None, 10, 100),
        "maxeventsperjob": often(rng, None, 50, 1000),
    }  # fmt: skip


def _chunk(rng: Random) -> Row:
    return {
        "is_merging": False,
        "use_scout": False,
        "chunk_ramcount": often(rng, None, 0, 1700),
        "preassigned_site": None,
        "atom_size": rng.choice((0, 10**9, 6458179584, None)),
        "atom_size_effective": rng.choice((0.0, 1.0, 2935.0, None)),
        "atom_nevents": rng.choice((100, 1000, 1600, 0, None)),
        "max_consecutive_events": rng.choice((None, 0, 150, 1000)),
        "n_ready_events": None,
    }


def _premerge(rng: Random, task: Row, queues: list[str]) -> None:
    """Bind some merge chunks to a queue, and let some of those time out (3)."""
    if rng.random() < 0.5:
        return
    changed = NOW - timedelta(hours=rng.choice((1, 30)))
    task["preassigned_site"] = rng.choice(queues)
    task["master_modificationtime"] = changed.isoformat()
    task["master_creationtime"] = rng.choice((task["master_modificationtime"], (changed - timedelta(days=2)).isoformat()))  # fmt: skip
    task["frozentime"] = rng.choice((None, *((NOW - timedelta(hours=h)).isoformat() for h in (3, 6, 7))))  # fmt: skip


def random_input(
    rng: Random, task: Row, parents: list[str], endpoints: list[str]
) -> dict[str, list[Row]]:
    """Return the input of a task: datasets, files, where they are, and its resource types at queues."""
    key = {"jeditaskid": task["jeditaskid"]}
    tables: dict[str, list[Row]] = {name: [] for name in ("datasets", "files", "file_locations", "replicas", "task_resource_types")}  # fmt: skip
    for i in range(rng.choice((0, 1, 1, 2))):
        name = {**key, "datasetname": f"mc23:d{task['jeditaskid']}.{i}"}
        tables["datasets"].append({**name, "is_master": i == 0, "distributed": often(rng, False, True, None)})  # fmt: skip
        files = [f"f{i}.{j}" for j in range(rng.choice((1, 4, 12, 30)))]
        tables["files"] += [{**name, "lfn": lfn, "fsize": often(rng, 700 * 1024**2, 0, None, 5 * 1024**3), "nevents": 500} for lfn in files]  # fmt: skip
        share = rng.choice((0.0, 0.3, 1.0))
        for parent in parents:
            if rng.random() >= share:
                continue
            there = files if rng.random() < 0.5 else files[: len(files) // 2]
            kind = often(rng, "localdisk", "cache", "localtape", "remote", p=0.3)
            tables["file_locations"] += [{**name, "panda_queue": parent, "lfn": lfn, "kind": kind} for lfn in there]  # fmt: skip
        n = len(files)
        for endpoint in rng.sample(endpoints, rng.choice((0, 1, 6, 6, 6, 12))):
            found = often(rng, n, 0, n // 2, n - 1, None)
            tables["replicas"].append({**name, "ddm_endpoint_name": endpoint, "found": found, "total": n, "vp": often(rng, False, True, None)})  # fmt: skip
    for parent in rng.sample(parents, len(parents) // 5):
        kind = rng.choice(("SCORE", "MCORE"))
        tables["task_resource_types"].append(
            {**key, "computingsite": parent, "resource_type": kind}
        )
    return tables
