"""A synthetic grid for the benchmark of the job brokerage: made of random numbers, the same for the same seed.

Shaped like a month of ATLAS production as far as it costs time: tasks in front of the same queues, hundreds of
instants with job counts of their own, some two hundred software requests, a few dozen policies.
"""

from __future__ import annotations

import json
from datetime import datetime, timedelta
from typing import Any

import numpy as np
import polars as pl

Tables = dict[str, pl.DataFrame]

START = datetime(2026, 3, 1)  # noqa: DTZ001 - UTC without zone, as everywhere
STEP = timedelta(hours=1)
SHARES = (
    "MC 16 simul", "MC 16 evgen", "MC Default", "Express", "Data Derivations", "Reprocessing default",
    "Overlay", "Validation",
)  # fmt: skip
RESOURCE_TYPES = ("SCORE", "SCORE_HIMEM", "MCORE", "MCORE_HIMEM")
STATUSES = ("running", "defined", "assigned", "activated", "starting", "transferring")
PLATFORMS = tuple(
    f"x86_64-{system}-gcc{version}-opt" for system in ("el9", "centos7", "slc6") for version in (62, 8, 11, 13)
)  # fmt: skip
N_NUCLEI, N_SITES, CHILDREN = 12, 80, len(RESOURCE_TYPES)


def make_world(n_tasks: int, n_queues: int, n_snapshots: int, seed: int = 1) -> Tables:
    """Return the input tables.

    Args:
        n_tasks: Tasks, spread evenly over the instants.
        n_queues: Candidate queues; three fifths are pseudo-queues, four to a parent.
        n_snapshots: Instants, an hour apart.
        seed: Same seed, same world.
    """
    rng = np.random.default_rng(seed)
    sites = np.array([f"SITE_{i:02}" for i in range(N_SITES)])
    queues = _queues(rng, sites, n_queues)
    parents = queues.filter(pl.col("unified_name").is_null())["panda_queue"].to_numpy()
    home = dict(queues.select("panda_queue", "pandasite").iter_rows())
    places = pl.DataFrame({"panda_queue": parents, "site": [home[name] for name in parents]})
    tables = {"queues": queues, **_places(sites, places, queues)}
    tables |= _software(rng, parents)
    tables |= _states(rng, parents, sites, n_snapshots)
    tables["storage_endpoints"] = _endpoints(rng, sites, n_snapshots)
    tables["tasks"] = _tasks(rng, sites, queues, n_tasks, n_snapshots)
    return tables | _inputs(rng, parents, sites, n_tasks)


def _pick(rng: np.random.Generator, n: int, values: Any, weights: Any = None) -> list[Any]:
    """Return ``n`` of the values, as plain Python values, null included."""
    shares = None if weights is None else np.array(weights) / sum(weights)
    return [values[i] for i in rng.choice(len(values), n, p=shares)]


def _queues(rng: np.random.Generator, sites: np.ndarray[Any, Any], n_queues: int) -> pl.DataFrame:
    """Return parents of pseudo-queues with their children, and plain queues."""
    n_unified = n_queues * 3 // 5 // CHILDREN
    n = n_queues - n_unified * CHILDREN + n_unified
    unified = np.arange(n) < n_unified
    cores = np.where(unified, _pick(rng, n, (8, 16, 32)), _pick(rng, n, (1, 8, 8)))
    policies = [None, "", "type=any:0", "type=evgen:100%,type=simul:100%,type=any:0%"]
    policies += [f"gshare={share}:0%" for share in SHARES]
    policies += [f"priority>{limit}:100%,type=any:0%" for limit in range(400, 900, 50)]
    frame = pl.DataFrame(
        {
            "panda_queue": [f"{'UCORE' if unified[i] else 'QUEUE'}_{i:03}" for i in range(n)],
            "is_unified": unified,
            "type": _pick(rng, n, ("production", "unified"), (1, 4)),
            "status": _pick(rng, n, ("online", "standby", "brokeroff", "offline"), (90, 3, 5, 2)),
            "pandasite": sites[np.arange(n) % N_SITES],
            "corecount": cores,
            "corepower": rng.uniform(8, 20, n).round(2),
            "maxtime": _pick(rng, n, (345600, 172800, 86400, 0)),
            "mintime": _pick(rng, n, (0, 0, 0, 3600)),
            "maxrss": cores * np.array(_pick(rng, n, (2000, 3000, 4000))),
            "minrss": 0,
            "maxwdir": cores * np.array(_pick(rng, n, (14336, 20000, 10000))),
            "maxinputsize": _pick(rng, n, (60000, -1, 14336)),
            "direct_access_lan": rng.random(n) < 0.5,
            "pledgedcpu": _pick(rng, n, (None, -1, 3000), (6, 2, 2)),
            "transferringlimit": _pick(rng, n, (2000, 4000, None)),
            "fairsharepolicy": _pick(rng, n, policies, [30, 5, *[1] * (len(policies) - 2)]),
            "wnconnectivity": _pick(rng, n, ("full", "http", "full#IPv6", None)),
            "jobseed": _pick(rng, n, ("std", "all", "es"), (70, 28, 2)),
            "capability": np.where(unified, "ucore", "score"),
            "workflow": _pick(rng, n, ("pull_ups", "push", None)),
            "catchall": _pick(rng, n, (None, "useJumboJobs", "use_only_local_data"), (90, 3, 3)),
            "releases": _pick(rng, n, (["AUTO"], ["ANY"]), (9, 1)),
        },
        strict=False,
    ).with_columns(unified_name=pl.lit(None, pl.String))
    parents = frame.filter("is_unified")
    children = [_children(parents, name) for name in RESOURCE_TYPES]
    return pl.concat([frame, *children])


def _children(parents: pl.DataFrame, resource_type: str) -> pl.DataFrame:
    """Return the pseudo-queues of one resource type."""
    cores = pl.lit(1) if resource_type.startswith("SCORE") else pl.col("corecount")
    high = resource_type.endswith("HIMEM")
    return parents.with_columns(
        unified_name=pl.col("panda_queue"),
        panda_queue=pl.col("panda_queue") + f"/{resource_type}",
        is_unified=pl.lit(value=False),
        corecount=cores.cast(pl.Int64),
        maxrss=(cores * (4000 if high else 2000)).cast(pl.Int64),
        minrss=(cores * 2000 + 1 if high else pl.lit(0)).cast(parents.schema["minrss"]),
        maxwdir=(pl.col("maxwdir") * cores // pl.col("corecount")).cast(pl.Int64),
    ).select(parents.columns)


def _places(sites: np.ndarray[Any, Any], places: pl.DataFrame, queues: pl.DataFrame) -> Tables:
    """Return the endpoints of queues, and the nuclei."""
    disk, scratch = pl.col("site") + "_DATADISK", pl.col("site") + "_SCRATCHDISK"
    links = [
        places.select(
            "panda_queue", direction=pl.lit(direction), ddm_endpoint_name=name, is_default=pl.lit(default)
        )
        for direction in ("input", "output")
        for name, default in ((disk, True), (scratch, False))
    ]  # fmt: skip
    own = queues.group_by("pandasite").agg(pl.col("panda_queue").sort())
    nuclei = pl.DataFrame({"nucleus": sites[:N_NUCLEI]}).join(
        own.rename({"pandasite": "nucleus", "panda_queue": "queues"}), on="nucleus", how="left"
    )
    return {
        "queue_endpoints": pl.concat(links),
        "queue_storage_site": places.rename({"site": "site_name"}),
        "nuclei": nuclei.with_columns(
            default_endpoint_out=pl.col("nucleus") + "_DATADISK", bare_mode=pl.lit(None, pl.String)
        ),
    }


def _software(rng: np.random.Generator, parents: np.ndarray[Any, Any]) -> Tables:
    """Return what the queues publish: one of twenty descriptions each."""
    kinds = []
    for number in range(20):
        gpu = [{"type": "gpu", "vendor": ["nvidia"]}] if number % 5 == 0 else []
        cpu = {"type": "cpu", "arch": ["x86_64"], "vendor": ["intel"], "instr": ["avx2"]}
        kinds.append(
            json.dumps(
                {
                    "architectures": [cpu, *gpu],
                    "cmtconfigs": list(PLATFORMS[: 4 + number % 9]),
                    "containers": ["any", "/cvmfs"] if number % 3 else [],
                    "cvmfs": ["atlas", "nightlies"] if number % 4 else ["atlas"],
                    "tags": [],
                }
            )
        )
    names = [*parents, "ALL"]
    levels = pl.DataFrame({"panda_queue": parents}).with_columns(
        cpu_architecture_level=pl.lit("x86-64-v3"),
        pct_within_queue=pl.Series(rng.uniform(0, 100, len(parents)).round(1)),
    )
    return {
        "sw_tags": pl.DataFrame({"panda_queue": names, "data": _pick(rng, len(names), kinds)}),
        "worker_node_cpu_level": levels,
    }


def _crossed(**parts: Any) -> pl.DataFrame:
    """Return every combination of the values."""
    frame = pl.DataFrame({"one": [0]})
    for name, values in parts.items():
        frame = frame.join(pl.DataFrame({name: values}), how="cross")
    return frame.drop("one")


def _some(rng: np.random.Generator, frame: pl.DataFrame, part: float) -> pl.DataFrame:
    return frame.filter(pl.Series(rng.random(frame.height) < part))


def _states(
    rng: np.random.Generator, parents: np.ndarray[Any, Any], sites: np.ndarray[Any, Any], n: int
) -> Tables:
    """Return job counts, activity, workers and links at every instant."""
    snapshots = np.arange(n)

    def jobs(frame: pl.DataFrame, scale: float = 60) -> pl.Series:
        return pl.Series("njobs", rng.exponential(scale, frame.height).astype(np.int64))

    shares = _some(rng, _crossed(snapshot=snapshots, computingsite=parents, gshare=SHARES, jobstatus=STATUSES), 0.3)  # fmt: skip
    typed = _some(rng, shares, 0.7)
    kinds = pl.Series("resource_type", _pick(rng, typed.height, RESOURCE_TYPES, (5, 1, 5, 1)))
    here = _crossed(snapshot=snapshots, computingsite=parents)
    to_nuclei = _some(rng, here.join(pl.DataFrame({"nucleus": sites[:N_NUCLEI]}), how="cross"), 0.1)
    cores = here.join(pl.DataFrame({"jobstatus": ["running", "starting"]}), how="cross")
    workers = _crossed(
        snapshot=snapshots, panda_queue=parents, resource_type=["MCORE"], status=["running", "submitted"]
    )  # fmt: skip
    at = pl.lit(START) + pl.col("snapshot") * pl.duration(hours=1)
    activity = here.with_columns(
        getjob=pl.Series(rng.poisson(30, here.height) * (rng.random(here.height) < 0.97)),
        updatejob=pl.lit(5),
        laststart=at - pl.duration(minutes=pl.Series(rng.exponential(20, here.height))),
    )
    slots = pl.DataFrame({"panda_queue": parents[::5], "gshare": None, "resourcetype": "MCORE", "numslots": 500})  # fmt: skip
    return {
        "job_stats": shares.with_columns(jobs(shares)),
        "job_stats_rt": typed.with_columns(kinds, jobs(typed, 15)),
        "transferring_by_nucleus": to_nuclei.with_columns(jobs(to_nuclei)),
        "core_stats": cores.with_columns(jobs(cores, 2000).rename("ncores")),
        "worker_stats": workers.with_columns(jobs(workers, 10).rename("n_workers")),
        "diskio_usage": here.with_columns(
            diskio_per_core=pl.Series(rng.exponential(300, here.height).round(1))
        ),
        "site_activity": activity,
        "slots": slots.with_columns(pl.col("gshare").cast(pl.String)),
        "network_matrix": _links(rng, sites, snapshots),
    }


def _links(
    rng: np.random.Generator, sites: np.ndarray[Any, Any], snapshots: np.ndarray[Any, Any]
) -> pl.DataFrame:
    """Return the metrics of the links into the nuclei at every instant."""
    keys = ("AGIS_closeness", "Production Output_queued", "Express_queued", "dashb_mbps_1h", "dashb_mbps_1d")  # fmt: skip
    frame = _some(rng, _crossed(snapshot=snapshots, dst=sites[:N_NUCLEI], src=sites, key=keys), 0.8)
    number = rng.exponential(30, frame.height)
    value = pl.when(pl.col("key") == "AGIS_closeness").then(pl.Series(number.astype(int) % 12))
    return frame.with_columns(
        value=value.otherwise(pl.Series(number.round(1))).cast(pl.Float64),
        ts=pl.lit(START) + pl.col("snapshot") * pl.duration(hours=1) - pl.duration(minutes=10),
    )


def _endpoints(rng: np.random.Generator, sites: np.ndarray[Any, Any], n: int) -> pl.DataFrame:
    """Return the storage endpoints at every instant."""
    frame = _crossed(snapshot=np.arange(n), site_name=sites, type=["DATADISK", "SCRATCHDISK"])
    states = {
        access: pl.Series(_pick(rng, frame.height, ("ON", "OFF", "TEST"), (97, 2, 1)))
        for access in ("read_lan", "write_lan", "read_wan", "write_wan")
    }
    return frame.with_columns(
        **states,
        ddm_endpoint_name=pl.col("site_name") + "_" + pl.col("type"),
        is_tape=pl.lit(value=False),
        space_free=pl.Series(rng.exponential(200_000, frame.height).round()),
    )


def _tasks(
    rng: np.random.Generator, sites: np.ndarray[Any, Any], queues: pl.DataFrame, n: int, n_snapshots: int
) -> pl.DataFrame:  # fmt: skip
    """Return the tasks, each at one instant."""
    requests = [
        (platform, f"Athena-{major}.0.{minor}")
        for platform in PLATFORMS
        for major in (21, 24)
        for minor in range(8)
    ]  # some two hundred
    architecture, transhome = zip(*_pick(rng, n, requests), strict=True)
    snapshot = np.arange(n) * n_snapshots // n
    cores = np.array(_pick(rng, n, (8, 8, 8, 1)))
    names = queues.filter(~pl.col("is_unified"))["panda_queue"].to_list()
    named = [
        ",".join(_pick(rng, 1 + i % 3, names)) if i < n // 50 else None for i in rng.permutation(n)
    ]
    merging = rng.random(n) < 0.05
    return pl.DataFrame(
        {
            "jeditaskid": np.arange(1, n + 1),
            "snapshot": snapshot,
            "at": [START + int(hour) * STEP for hour in snapshot],
            "vo": "atlas",
            "prodsourcelabel": _pick(rng, n, ("managed", "prod_test"), (97, 3)),
            "nucleus": sites[rng.integers(0, N_NUCLEI, n)],
            "site": named,
            "gshare": _pick(rng, n, SHARES),
            "currentpriority": rng.integers(100, 1050, n),
            "processingtype": _pick(rng, n, ("simul", "evgen", "deriv", "reprocessing", "pile", "validation")),
            "workinggroup": _pick(rng, n, ("AP_Higgs", "AP_MCGN", None)),
            "corecount": cores,
            "ramcount": _pick(rng, n, (1000, 1700, 2000, 2500, 3500)),
            "ramcountunit": _pick(rng, n, ("MBPerCore", "MB"), (4, 1)),
            "baseramcount": _pick(rng, n, (0, 1000)),
            "outdiskcount": rng.integers(10, 3000, n),
            "outdiskunit": "kBPerEvent",
            "workdiskcount": _pick(rng, n, (None, 300, 2000)),
            "workdiskunit": "MB",
            "cputime": rng.exponential(300, n).round(1),
            "cputimeunit": _pick(rng, n, ("HS06sPerEvent", "mHS06sPerEvent", None), (8, 1, 1)),
            "cpuefficiency": _pick(rng, n, (90, 100)),
            "basewalltime": _pick(rng, n, (0, 600)),
            "iointensity": rng.exponential(150, n).round(),
            "diskio": rng.exponential(300, n).round(),
            "resource_type": np.where(cores > 1, "MCORE", "SCORE"),
            "architecture": architecture,
            "transhome": transhome,
            "ipconnectivity": _pick(rng, n, (None, "http", "full"), (8, 1, 1)),
            "allowinputlan": _pick(rng, n, ("use", "only", None), (6, 1, 3)),
            "mergeoutput": rng.random(n) < 0.2,
            "fullchain": _pick(rng, n, (None, "capable"), (98, 2)),
            "is_merging": merging,
            "use_scout": ~merging & (rng.random(n) < 0.1),
            "atom_size": rng.integers(10**8, 2 * 10**10, n),
            "atom_size_effective": rng.integers(100, 20000, n).astype(float),
            "atom_nevents": rng.integers(100, 5000, n),
        },
        strict=False,
    )  # fmt: skip


def _inputs(
    rng: np.random.Generator, parents: np.ndarray[Any, Any], sites: np.ndarray[Any, Any], n: int
) -> Tables:
    """Return the input of the tasks: one dataset, a dozen files, at some eight queues."""
    ids = np.arange(1, n + 1)
    datasets = pl.DataFrame({"jeditaskid": ids}).with_columns(
        datasetname=pl.format("mc26:task{}.EVNT", "jeditaskid")
    )
    n_files = rng.integers(1, 24, n)
    files = datasets[np.repeat(np.arange(n), n_files)].with_columns(
        lfn=pl.format("EVNT.{}.root", pl.Series(np.concatenate([np.arange(k) for k in n_files])))
    )
    files = files.with_columns(fsize=pl.Series(rng.integers(10**8, 10**10, files.height)))
    place = pl.DataFrame(
        {"jeditaskid": np.repeat(ids, 8), "panda_queue": rng.choice(parents, 8 * n)}
    )
    locations = files.drop("fsize").join(place.unique(maintain_order=True), on="jeditaskid")
    locations = _some(rng, locations, 0.9)
    kinds = pl.Series("kind", _pick(rng, locations.height, ("localdisk", "localtape", "remote"), (8, 1, 1)))  # fmt: skip
    copies = datasets[np.repeat(np.arange(n), 4)].select("jeditaskid", "datasetname")
    totals = pl.Series("total", np.repeat(n_files, 4))
    replicas = copies.with_columns(
        totals,
        ddm_endpoint_name=pl.Series(sites[rng.integers(0, N_SITES, 4 * n)]) + "_DATADISK",
        found=totals - pl.Series(rng.integers(0, 2, 4 * n)),
    )
    return {
        "datasets": datasets,
        "files": files,
        "file_locations": locations.with_columns(kinds),
        "replicas": replicas.unique(["jeditaskid", "ddm_endpoint_name"], maintain_order=True),
    }
