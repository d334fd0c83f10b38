"""Small grids whose waits are queueing: an archive of them, made by the simulator under a setting that is planted.

Ten queues, two of them at the nuclei that hold the tasks' inputs. What a task's jobs truly need is drawn; where and when
they ran is what the grid simulator says under the planted settings. The truth about any other value is then the same
simulation under it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

import brokerlab.archive
from brokerlab.archive import Archive, ArchiveWriter
from brokerlab.numerics import FloatArray, IntArray
from brokerlab.rulesets import RuleSetName

BEGIN = datetime(2026, 3, 1)
SHARE = "MC 16 simul"
NUCLEI = 2
GB = 10**9


@dataclass(frozen=True)
class Plan:
    """What is drawn.

    Attributes:
        days: Over which tasks come.
        slots: Cores of each queue; the first two are at the nuclei.
        tasks_per_day: Mean.
        jobs: Mean jobs of a task, of one core.
        wall_h: Mean wall time of a job [h].
        io: Share of tasks that read much: ``io_kbps`` [kB/s], ``job_gb`` of input per job [GB], others 1 % of it.
        mbps: Throughput of every link [MB/s].
        queued: Files queued on the links from each site.
        disk: Share of tasks with ``disk_kbps`` of disk traffic per core [kB/s], others 100.
        settings: Keys of ``jedi/jobbroker`` and their values.
        rules: Rule set that decides.
    """

    days: int = 8
    slots: tuple[int, ...] = (16, 16, 6, 6, 4, 4, 2, 2, 20, 20)
    tasks_per_day: float = 20.0
    jobs: float = 40.0
    wall_h: float = 1.5
    io: float = 0.0
    io_kbps: int = 800
    job_gb: float = 2.0
    mbps: float = 200.0
    queued: tuple[int, ...] = (5,) * 10
    disk: float = 0.0
    disk_kbps: int = 4000
    settings: Mapping[str, int] = field(default_factory=dict)
    rules: RuleSetName = "document"

    @property
    def sites(self) -> list[str]:
        """Names of the sites, the nuclei first."""
        return [f"{'N' if i < NUCLEI else 'S'}{i}" for i in range(len(self.slots))]

    @property
    def queues(self) -> list[str]:
        """Names of the queues, one per site."""
        return [f"{site}_Q" for site in self.sites]

    @property
    def capacity(self) -> pl.DataFrame:
        """Slots, as the simulator takes them."""
        since = BEGIN - timedelta(days=30)
        return pl.DataFrame({"panda_queue": self.queues, "ts": since, "slots": list(self.slots)})

    @property
    def hours(self) -> pl.DataFrame:
        """Instants at which states are recorded."""
        times = [BEGIN + timedelta(hours=h, minutes=-30) for h in range(24 * (self.days + 3))]
        return pl.DataFrame({"ts": times})


LOW_CAP = Plan(queued=(20, 20, 20, 20, 70, 70, 70, 70, 70, 70))
READING = Plan(io=0.6, mbps=500.0)
PLANTED: dict[str, tuple[Plan, int]] = {
    "NQUEUELIMITSITE_MC 16 simul": (Plan(rules="production"), 500),
    "NQUEUED_SAT_CAP": (LOW_CAP, 30),
    "IO_INTENSITY_CUTOFF": (READING, 200),
    "SIZE_CUTOFF_TO_MOVE_INPUT": (replace(READING, mbps=100.0), 10),
    "MAX_DISKIO_DEFAULT": (Plan(disk=0.9), 500),
}
"""Key to a grid that it rules, and a value that is wrong there; the page does not name NQUEUELIMITSITE."""


def write(into: Path, plan: Plan, *, seed: int) -> Archive:
    """Write what is drawn as an archive: every job begins at once at a queue drawn by size, which nobody queued for."""
    with ArchiveWriter(into, synthetic=True, mode="replace") as writer:
        for name, frame in frames(plan, seed=seed).items():
            writer.write(name, frame)
        writer.commit()
    return brokerlab.archive.open(into)


def frames(plan: Plan, *, seed: int) -> dict[str, pl.DataFrame]:
    """Draw the tables of the archive."""
    rng = np.random.default_rng(seed)
    tasks = _tasks(plan, rng)
    jobs = _jobs(plan, tasks, rng)
    tables = {**_places(plan), **_inputs(plan, tasks, jobs)}
    tables["tasks"] = tasks.drop("n", "hours", "job_bytes", "disk")
    tables["jobs"] = jobs
    tables["gshares"] = _one(name=SHARE, value=100.0, vo="atlas", prodsourcelabel="managed")
    tables["resource_types"] = _one(resource_name="SCORE", mincore=1, maxrampercore=4000)
    if plan.settings:
        tables["gdpconfig"] = settings_table(plan.settings)
    return tables


def settings_table(settings: Mapping[str, int]) -> pl.DataFrame:
    """Return the settings as the table ``gdpconfig``."""
    values = [str(value) for value in settings.values()]
    constant = _constant(app="jedi", component="jobbroker", type="int", vo="atlas")
    return pl.DataFrame({"key": list(settings), "value": values}).with_columns(**constant)


def _one(**columns: Any) -> pl.DataFrame:
    return pl.DataFrame({name: [value] for name, value in columns.items()})


def _constant(**columns: Any) -> dict[str, pl.Expr]:
    return {name: pl.lit(value) for name, value in columns.items()}


def _times(hours: FloatArray) -> pl.Series:
    """Return instants at whole seconds."""
    seconds = np.round(hours * 3600).astype("timedelta64[s]")
    return pl.Series(np.datetime64(BEGIN, "us") + seconds.astype("timedelta64[us]"))


def _places(plan: Plan) -> dict[str, pl.DataFrame]:
    """Return queues, storage and links, and pilots at every queue."""
    sites = pl.DataFrame({"site": plan.sites, "queue": plan.queues})
    role = (
        pl.when(pl.col("site").str.starts_with("N"))
        .then(pl.lit("nucleus"))
        .otherwise(pl.lit("satellite"))
    )
    disk = pl.col("site") + "_DATADISK"
    queues = sites.select(
        panda_queue="queue", atlas_site="site", role=role,
        **_constant(
            type="production", status="online", pandasite_state="ACTIVE", is_unified=False,
            resource_type_q="GRID", corecount=1, corepower=10.0, maxrss=4000, minrss=0, maxtime=345_600,
            mintime=0, maxwdir=50_000, maxinputsize=60_000, pledgedcpu=0, transferringlimit=2000,
            jobseed="all", last_update=BEGIN,
        ),
    )  # fmt: skip
    open_ways = ("read_lan", "write_lan", "read_wan", "write_wan")
    endpoints = sites.select(
        ddm_endpoint_name=disk, site_name="site",
        **_constant(
            type="DATADISK", is_tape=False, space_total=1e6, space_free=5e5, space_expired=0.0,
            space_min_free=0.0, space_unavailable=0.0, ts=BEGIN, **dict.fromkeys(open_ways, "ON"),
        ),
    )  # fmt: skip
    ends = pl.concat(
        sites.select(
            panda_queue="queue", ddm_endpoint_name=disk,
            **_constant(direction=way, scope="default", order_read=1, is_default=True, is_local=True),
        )
        for way in ("input", "output")
    )  # fmt: skip
    pilots = plan.hours.join(sites.select(site="queue"), how="cross").with_columns(
        laststart="ts", lastmod="ts",
        **_constant(flag="production", hours=3, getjob=50, updatejob=50),
    )  # fmt: skip
    return {
        "queues": queues,
        "ddm_endpoints": endpoints,
        "queue_endpoints": ends,
        "site_data": pilots,
        "network_matrix": _links(plan),
    }


def _links(plan: Plan) -> pl.DataFrame:
    """Return throughput between all sites, closeness and queued files of the links into nuclei."""
    queued = dict(zip(plan.sites, plan.queued, strict=True))
    rows = [
        (src, dst, key, value)
        for src in plan.sites
        for number, dst in enumerate(plan.sites)
        for key, value in (
            ("dashb_mbps_1d", plan.mbps),
            ("AGIS_closeness", 3.0),
            ("Production Output_queued", float(queued[src])),
        )
        if src != dst and (number < NUCLEI or key == "dashb_mbps_1d")
    ]
    links = pl.DataFrame(rows, schema=["src", "dst", "key", "value"], orient="row")
    return links.join(plan.hours, how="cross")


def _tasks(plan: Plan, rng: np.random.Generator) -> pl.DataFrame:
    """Draw tasks; ``n`` jobs, made from ``hours`` on, of ``job_bytes`` of input and ``disk`` traffic."""
    n = int(plan.tasks_per_day * plan.days)
    hours = np.sort(rng.uniform(0, plan.days * 24, n))
    ids = 1000 + np.arange(n)
    reads, disk = rng.random(n) < plan.io, rng.random(n) < plan.disk
    drawn = pl.DataFrame(
        {
            "jeditaskid": ids,
            "nucleus": pl.Series(plan.sites[:NUCLEI]).gather(rng.integers(0, NUCLEI, n)),
            "iointensity": np.where(reads, plan.io_kbps, 20),
            "disk": np.where(disk, plan.disk_kbps, 100),
            "diskio": np.where(disk, plan.disk_kbps, 100),
            "job_bytes": (np.where(reads, 1.0, 0.01) * plan.job_gb * GB).astype(np.int64),
            "n": np.maximum(rng.poisson(plan.jobs, n), 5),
            "hours": hours,
            "creationdate": _times(hours),
            "modificationtime": _times(hours + 24),
        }
    )
    return drawn.with_columns(
        **_constant(
            vo="atlas", prodsourcelabel="managed", tasktype="prod", processingtype="simul", gshare=SHARE,
            workqueue_id=1, status="done", taskpriority=500, currentpriority=500, corecount=1,
            resource_type="SCORE", ramcount=2000, ramunit="MB", baseramcount=0, cpuefficiency=90,
            basewalltime=60, outdiskcount=100, outdiskunit="kB", workdiskcount=100, workdiskunit="MB",
            cputime=10.0, cputimeunit="HS06sPerEvent", nfilesperjob=1,
        )
    )  # fmt: skip


def _jobs(plan: Plan, tasks: pl.DataFrame, rng: np.random.Generator) -> pl.DataFrame:
    """Draw the jobs of the tasks, made within an hour."""
    of = np.repeat(np.arange(tasks.height), tasks["n"])
    n = len(of)
    made = np.round((tasks["hours"].to_numpy()[of] + rng.uniform(0, 1, n)) * 3600) / 3600
    wall = rng.lognormal(np.log(plan.wall_h * 3600) - 0.08, 0.4, n).round() / 3600
    slots: IntArray = np.array(plan.slots)
    where = rng.choice(len(slots), n, p=slots / slots.sum())
    rows = tasks.select("jeditaskid", "nucleus", "diskio", inputfilebytes="job_bytes")[of]
    return rows.with_columns(
        pandaid=10_000 + pl.int_range(n), computingsite=pl.Series(plan.queues).gather(where),
        creationtime=_times(made), activatedtime=_times(made), starttime=_times(made),
        endtime=_times(made + wall), modificationtime=_times(made + wall),
        **_constant(
            attemptnr=1, maxattempt=3, jobstatus="finished", vo="atlas", prodsourcelabel="managed",
            processingtype="simul", produsername="prod", gshare=SHARE, workqueue_id=1, resource_type="SCORE",
            currentpriority=500, corecount=1, actualcorecount=1, maxpss=1_500_000, nevents=100,
            ninputdatafiles=1, noutputdatafiles=1, outputfilebytes=10**7, minramcount=2000,
        ),
    ).with_columns(statechangetime="modificationtime")  # fmt: skip


def _inputs(plan: Plan, tasks: pl.DataFrame, jobs: pl.DataFrame) -> dict[str, pl.DataFrame]:
    """Return one file per job, whole at the nucleus of its task."""
    name = pl.format("in.{}", "jeditaskid")
    datasets = tasks.select(
        "jeditaskid", datasetid=pl.col("jeditaskid") * 10, datasetname=name, nfiles="n", nfilestobeused="n",
        creationtime="creationdate", modificationtime="creationdate", **_constant(type="input", status="ready"),
    )  # fmt: skip
    files = jobs.select(
        "jeditaskid", "pandaid", datasetid=pl.col("jeditaskid") * 10, fileid="pandaid",
        lfn=pl.format("file.{}", "pandaid"), fsize="inputfilebytes",
        **_constant(
            type="input", status="finished", nevents=100, startevent=0, endevent=99, attemptnr=1,
            maxattempt=3, failedattempt=0,
        ),
    )  # fmt: skip
    replicas = tasks.select(
        datasetname=name, ddm_endpoint_name=pl.col("nucleus") + "_DATADISK", found="n", total="n",
        bytes=pl.col("n") * pl.col("job_bytes"), **_constant(is_tape=False, vp=False),
    )  # fmt: skip
    return {"datasets": datasets, "files": files, "replicas": replicas}
