"""Machines with their background load: of real logs, of an archive, or generated."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import polars as pl

from brokerlab.archive.store import open_archive
from brokerlab.errors import DataError, InsufficientDataError
from brokerlab.words import number
from brokerlab.workflows import load as loads
from brokerlab.workflows import swf, synthetic
from brokerlab.workflows.compare import BatchSystem
from brokerlab.workflows.load import BatchJobs

KTH, LCG = "kth_sp2.swf.gz", "LCG-2005.swf.gz"
LCG_SITES = (40, 52, 41)
"""Sites of the LCG log with most work; the first that the file has is taken."""
MADE_UP = (
    "The background load is generated: no log was at hand. How users ask and come is made up, so that the page shows what "
    "it would say of a log, and nothing about real queues."
)
GENERATED_HOSTS, GENERATED_DAYS = 64, 14.0
ARCHIVE_LOAD = "the archive does not tell how many slots the queue had"
DAY_S = 86400.0
JOBS = list(BatchJobs.columns())


@dataclass(frozen=True, kw_only=True)
class Machines:
    """Machines by name, where they are from, and what limits what they can tell."""

    systems: dict[str, BatchSystem]
    source: str
    synthetic: bool = False
    caveats: tuple[str, ...] = ()
    facts: dict[str, str] = field(default_factory=dict)


def recorded(folder: Path, policies: Sequence[str], *, load: float) -> Machines:
    """Return the KTH SP2 under every policy, and a site of the LCG under the first.

    Args:
        folder: Of the logs.
        policies: Names of policies.
        load: Load of the site: its hosts are not in the log.

    Raises:
        DataError: None of the logs is there.
    """
    systems: dict[str, BatchSystem] = {}
    facts, caveats, names = {}, [], []
    if (folder / KTH).is_file():
        found = loads.of_swf(swf.read(folder / KTH))
        jobs = found.jobs.select(JOBS)
        for policy in policies:
            systems[f"KTH, {policy}"] = BatchSystem(jobs, found.hosts, policy, "KTH")
        facts["KTH log"] = _counted(KTH, found)
        names.append("KTH SP2")
    if (folder / LCG).is_file():
        log = swf.read(folder / LCG)
        site, found = _site(log, folder / LCG, load)
        name = f"LCG {_named(site, log.header)}, {policies[0]}"
        systems[name] = BatchSystem(found.jobs.select(JOBS), found.hosts, policies[0], "LCG")
        days = (systems[name].span[1] - systems[name].span[0]) / DAY_S
        widest = int(found.jobs["hosts"].max())  # type: ignore[arg-type]
        widths = "one host" if widest == 1 else f"up to {number(widest)} hosts"
        facts["LCG log"] = _counted(LCG, found)
        names.append(f"LCG site {site}")
        caveats.append(
            f"The LCG log does not say how many hosts a site has: {name} has {number(found.hosts)}, so that its load is "
            f"{number(systems[name].load, 2)}. Its jobs take {widths} each, and its log spans {number(days)} days: instants share queues."
        )
    if not systems:
        raise DataError(f"{folder}: neither {KTH} nor {LCG} is there")
    caveats.append(
        "Background jobs come when the log says, and are scheduled anew: the real queue had its own policy, priorities and "
        "reservations, so that waits are those of the simulated machine."
    )
    return Machines(systems=systems, source=", ".join(names), caveats=tuple(caveats), facts=facts)


def _named(site: int, header: Mapping[str, Sequence[str]]) -> str:
    """Return the domain of a site, from the header of the log.

    Example:
        >>> _named(40, {"Partition": ("39 fe.infn.it", "40 lxgate13.cern.ch")}), _named(7, {})
        ('cern.ch', '7')
    """
    hosts = dict(words for line in header.get("Partition", ()) if len(words := line.split()) == 2)
    return ".".join(hosts.get(str(site), str(site)).split(".")[-2:])


def _site(log: swf.SwfLog, path: Path, load: float) -> tuple[int, loads.Load]:
    """Return the site with most work, on as many hosts as make the load."""
    present = set(log.jobs["partition"].unique().to_list())
    site = next((s for s in LCG_SITES if s in present), None)
    if site is None:
        raise DataError(f"{path}: none of the sites {', '.join(map(str, LCG_SITES))} is in it")
    wide = loads.of_swf(log, hosts=2**20, partition=site)
    return site, loads.of_swf(log, hosts=hosts_for(wide.jobs, load), partition=site)


def hosts_for(jobs: pl.DataFrame, load: float) -> int:
    """Return how many hosts make the load of jobs, and hold the widest.

    Example:
        >>> jobs = pl.DataFrame({"submit_s": [0.0, 100.0], "run_s": [100.0, 60.0], "hosts": [1, 1]})
        >>> hosts_for(jobs, 0.8)
        2
    """
    times = jobs["submit_s"].to_numpy()
    span = float(times.max() - times.min())
    used = float((jobs["run_s"] * jobs["hosts"]).sum())
    widest = int(jobs["hosts"].max())  # type: ignore[arg-type]
    return max(1, widest, round(used / max(span, 1.0) / load))


def archived(path: str, policy: str, *, load: float) -> Machines:
    """Return the busiest queue of an archive.

    Raises:
        InsufficientDataError: No job ran there.
    """
    archive = open_archive(path)
    ran = archive.scan("jobs").filter(pl.col("starttime").is_not_null())
    busiest = ran.group_by("computingsite").len().sort("len", "computingsite", descending=[True, False]).collect()  # fmt: skip
    if busiest.is_empty():
        raise InsufficientDataError(f"archive {path}: no job ran")
    queue = str(busiest["computingsite"][0])
    jobs = loads.of_archive(archive, queue, hosts=2**20).jobs
    hosts = hosts_for(jobs, load)
    name = f"{queue}, {policy}"
    return Machines(
        systems={name: BatchSystem(jobs.select(JOBS), hosts, policy, queue)},
        source=archive.path.as_posix(),
        synthetic=archive.synthetic,
        caveats=(
            f"{name}: {ARCHIVE_LOAD}; {number(hosts)} hosts of one core make a load of {number(load, 2)}."
            + (" Its jobs are generated: the archive is synthetic." if archive.synthetic else ""),
        ),
        facts={"Archive": f"{archive.path.as_posix()}, digest {archive.digest}"},
    )


def generated(policies: Sequence[str], *, seed: int) -> Machines:
    """Return a machine with a generated load under every policy."""
    jobs = synthetic.background(days=GENERATED_DAYS, hosts=GENERATED_HOSTS, seed=seed)
    return Machines(
        systems={
            f"generated, {policy}": BatchSystem(jobs, GENERATED_HOSTS, policy, "generated")
            for policy in policies
        },
        source="a generated load",
        synthetic=True,
        caveats=(MADE_UP,),
        facts={"Load": f"{jobs.height} generated jobs, seed {seed}"},
    )


def _counted(name: str, found: loads.Load) -> str:
    """Say what rule R did to a log."""
    touched = [f"{row['rule']} {row['n_rows']} ({row['effect']})" for row in found.counts.iter_rows(named=True) if row["n_rows"]]  # fmt: skip
    return (
        f"{name}: {found.jobs.height} of {found.rows} rows; {', '.join(touched) or 'none touched'}"
    )
