"""Random user tasks and their input, for :mod:`tests.twins.analysis_worlds`."""

from __future__ import annotations

from datetime import datetime, timedelta
from random import Random
from typing import Any

from tests.twins.worlds import often

Row = dict[str, Any]

NOW = datetime(2026, 6, 1, 12)
USERS = ("alice", "bob", "carol")
MB = 1024 * 1024
ARCHITECTURES = (
    None, "", "x86_64-centos7-gcc11-opt", "x86_64-el9-gcc99-opt", "x86_64-el9-gcc13-opt@el9", "#x86_64", "#&nvidia",
    "(x86_64|aarch64)-el9-gcc13-opt", "(x86_64|aarch64)-el8-.*", '{"sw_platform": "x86_64-el9-gcc13-opt"}',
    '{"sw_platform": "x86_64-el9-gcc13-opt", "cpu_specs": [{"arch": "x86_64"}]}',
)  # fmt: skip
KINDS = (
    "plain", "plain", "plain", "plain", "merge", "scout", "site", "lists", "lists", "no_input", "pseudo", "relaxed",
    "relaxed", "odd_time", "clone", "release", "virtual",
)  # fmt: skip


def random_task(rng: Random, jeditaskid: int, names: list[str], endpoints: list[str]) -> Row:
    """Return a task with its chunk; the kind decides which edge it stands at."""
    task: Row = {"jeditaskid": jeditaskid, "snapshot": 0, "at": NOW, "vo": "atlas"}
    task |= _who(rng) | _needs(rng) | _input_rules(rng)
    kind = rng.choice(KINDS)
    task["kind"] = kind
    if kind == "merge":
        task |= {"is_merging": True, "mergeramcount": rng.choice((None, 0, 1000, 3000))}
    if kind == "scout":
        task |= {"usescout": True, "chunk_usescout": often(rng, True, False, p=0.2)}
    if kind == "site":
        task["site"] = rng.choice((*names, *names, *endpoints, "NOWHERE"))
    if kind == "lists":
        _lists(rng, task, names)
    if kind == "relaxed":
        task |= rng.choice(
            (
                {"taskpriority": rng.choice((1999, 2000))},
                {"iointensity": rng.choice((199.0, 200.0, 500.0, 501.0))},
                {
                    "frozentime": NOW
                    - timedelta(seconds=rng.choice((6 * 3600, 6 * 3600 + 1, 86400, 86401)))
                },
            )
        )
    if kind == "odd_time":
        task |= {"cputimeunit": rng.choice((None, "s", "HS06sPerEvent")), "cputime": rng.choice((None, 0.0, 10.0)),
                 "walltime": rng.choice((None, 0.0, 20.0, 3000.0)), "walltimeunit": rng.choice((None, "kSI2kseconds"))}  # fmt: skip
    if kind == "clone":
        task["nsitesperjob"] = rng.choice((0, 1, 2, 3))
    if kind == "release":
        task |= {"transhome": rng.choice(("AnalysisTransforms", "AnalysisTransforms-AthAnalysis_21.2.100", "AnalysisTransforms-x", None)),
                 "transuses": rng.choice((None, "Atlas-21.0.38", "Atlas-21.0")), "container_name": rng.choice((None, "docker://x/y"))}  # fmt: skip
    return task


def _who(rng: Random) -> Row:
    user = rng.choice(USERS)
    return {
        "prodsourcelabel": often(rng, "user", "test", None, p=0.06),
        "gshare": rng.choice(("User Analysis", "User Analysis", "Express Analysis", "Group Analysis")),
        "workinggroup": often(rng, None, "higgs"),
        "username": user,
        "origusername": often(rng, user, None, *USERS),
        "taskpriority": often(rng, 1000, None, p=0.05),
        "currentpriority": rng.choice((100, 799, 800, 900)),
        "processingtype": often(rng, "panda-client-1.5", "ptest", "simul", None, p=0.3),
        "is_merging": False,
        "usescout": often(rng, False, True, None),
        "chunk_usescout": False,
    }  # fmt: skip


def _needs(rng: Random) -> Row:
    return {
        "corecount": often(rng, rng.choice((1, 8)), None, 0, 2, p=0.3),
        "maxcorecount": often(rng, None, 0, 4, 8),
        "ramcount": often(rng, rng.choice((500, 1500, 2000)), None, 0, 3000, 8000),
        "ramunit": often(rng, "MBPerCore", "MBPerCoreFixed", "MB", None, p=0.5),
        "baseramcount": often(rng, 0, 300, None, p=0.4),
        "mergeramcount": None,
        "chunk_ramcount": often(rng, None, 0, 2000),
        "outdiskcount": often(rng, 500, 0, None, -5, p=0.4),
        "outdiskunit": rng.choice(("kBFixed", "kB", "MB", "B", None)),
        "workdiskcount": often(rng, 0, None, 500, p=0.4),
        "workdiskunit": often(rng, "MB", "kB", None),
        "cputime": often(rng, rng.choice((10.0, 400.0)), None, 0.0, 200000.0, p=0.1),
        "cputimeunit": often(rng, "HS06sPerEvent", "HS06sPerEventFixed", "mHS06sPerEvent", "mHS06sPerEventFixed", p=0.4),
        "cpuefficiency": often(rng, 90.0, 100.0, 70.0, None, p=0.3),
        "basewalltime": often(rng, 60.0, 0.0, 600.0, None, p=0.4),
        "walltime": None,
        "walltimeunit": None,
        "iointensity": often(rng, 100.0, None, 0.0, 550.0, p=0.4),
        "diskio": often(rng, None, 0.0, 301.0, 401.0, 2400.0, 4000.0, p=0.6),
        "resource_type": often(rng, "SCORE", "MCORE", p=0.4),
        "architecture": often(rng, "x86_64-el9-gcc13-opt", *ARCHITECTURES, p=0.3),
        "transhome": often(rng, None, "AnalysisTransforms-main_2026-05-01T2101", "AnalysisTransforms-AthAnalysis_21.2.100", p=0.5),
        "transuses": None,
        "container_name": None,
        "ngbperjob": often(rng, None, 1, 10),
        "atom_size": rng.choice((0, 10**9, 6458179584, None)),
        "atom_size_effective": rng.choice((0.0, 1.0, 2935.0, None)),
        "atom_nevents": rng.choice((100, 1000, 20000, 0, None)),
        "n_jobs_to_submit": rng.choice((0, 1, 10, 200, 5000, None)),
    }  # fmt: skip


def _input_rules(rng: Random) -> Row:
    return {
        "site": None,
        "cloud": often(rng, None, "", "any", "DE", "US", p=0.3),
        "includedsite": None,
        "excludedsite": None,
        "limitedsites": None,
        "uselocalio": often(rng, None, True, False),
        "avoidvp": often(rng, None, True),
        "allowinputlan": rng.choice((None, "use", "only")),
        "nsitesperjob": None,
        "allowincompleteinds": often(rng, None, True, False, p=0.3),
        "frozentime": None,
    }


def _lists(rng: Random, task: Row, names: list[str]) -> None:
    parents = sorted({name.split("/")[0] for name in names})
    patterns = [
        *rng.sample(parents, min(4, len(parents))),
        "SITE0*",
        "*_SITE*",
        "",
        "SITE*1",
        "/SCORE",
    ]
    task["limitedsites"] = often(rng, True, False, None, p=0.3)
    if rng.random() < 0.7:
        extra = ["AUTO"] if rng.random() < 0.3 else []
        task["includedsite"] = rng.sample(patterns, rng.choice((1, 3, 5))) + extra
    if rng.random() < 0.5:
        task["excludedsite"] = rng.sample(patterns, rng.choice((1, 2)))


def random_input(
    rng: Random, task: Row, parents: list[str], endpoints: list[str]
) -> dict[str, list[Row]]:
    """Return the input of a task: datasets, files, where they are."""
    tables: dict[str, list[Row]] = {name: [] for name in ("datasets", "files", "file_locations", "replicas")}  # fmt: skip
    kind = task.pop("kind")
    if kind == "no_input":
        return tables
    key = {"jeditaskid": task["jeditaskid"]}
    single = kind in ("pseudo", "relaxed", "virtual")
    for number in range(1 if single else rng.choice((1, 1, 2, 3))):
        slash = "/" if rng.random() < 0.05 else ""
        name = {**key, "datasetname": f"user.x:data{number}.{task['jeditaskid']}{slash}"}
        dataset = {
            **name,
            "type": "pseudo_input" if kind == "pseudo" else "input",
            "is_master": number == 0,
        }
        tables["datasets"].append(
            dataset | {"is_distributed": often(rng, False, True, None, p=0.2)}
        )
        for table, rows in _spread(rng, name, parents, _chosen(rng, kind, endpoints)).items():
            tables[table] += rows
    return tables


def _chosen(rng: Random, kind: str, endpoints: list[str]) -> list[str]:
    """Return the endpoints that have records of a dataset: few, many, or such that queues have it by VP only."""
    if kind == "virtual":
        tapes = [name for name in endpoints if name.endswith("_DATATAPE")]
        return [name for name in endpoints if name.endswith("_VP_DISK")] + rng.sample(tapes, 3)
    number = rng.choice((1, 2, 3)) if kind == "relaxed" else rng.choice((0, 1, 6, 20, 40, 80))
    return rng.sample(endpoints, min(len(endpoints), number))


def _spread(
    rng: Random, name: Row, parents: list[str], endpoints: list[str]
) -> dict[str, list[Row]]:
    """Return replicas, files and places of one dataset."""
    files = [f"f{name['datasetname']}.{i}" for i in range(rng.choice((1, 3, 12)))]
    tables: dict[str, list[Row]] = {"files": [], "file_locations": [], "replicas": []}
    if rng.random() < 0.8:
        tables["files"] = [{**name, "lfn": lfn, "fsize": often(rng, 700 * MB, 0, None, 5 * 1024 * MB)} for lfn in files]  # fmt: skip
    if tables["files"] and rng.random() < 0.7:
        for parent in parents:
            if rng.random() < 0.6:
                there = files if rng.random() < 0.6 else files[: len(files) // 2]
                place = often(rng, "localdisk", "cache", "localtape", "remote", p=0.3)
                tables["file_locations"] += [{**name, "panda_queue": parent, "lfn": lfn, "kind": place} for lfn in there]  # fmt: skip
    total = rng.choice((3, 100))
    whole = rng.random() < 0.85
    for endpoint in endpoints:
        found = often(rng, total if whole else total - 1, 0, total // 2, total - 1, None, p=0.25)
        tables["replicas"].append({**name, "ddm_endpoint_name": endpoint, "found": found, "total": total, "vp": endpoint.endswith("_VP_DISK")})  # fmt: skip
    return tables
