"""Machines with their background load: of real logs, of an archive, or generated."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from brokerlab.archive.store import Archive
from brokerlab.errors import DataError, InsufficientDataError
from brokerlab.units import DAY_S
from brokerlab.workflows import load as loads
from brokerlab.workflows import swf, synthetic
from brokerlab.workflows.compare import BatchSystem
from brokerlab.workflows.load import BatchJobs, Load

KTH, LCG = "kth_sp2.swf.gz", "LCG-2005.swf.gz"
LCG_SITES = (40, 52, 41)
"""Sites of the LCG log with most work; the first that the file has is taken."""
GENERATED_HOSTS, GENERATED_DAYS = 64, 14.0
ANY_HOSTS = 2**20  # hosts of a machine whose number is not known yet: wider than any job
JOBS = list(BatchJobs.columns())
SOURCES = {
    "cluster": pl.String,
    "origin": pl.String,
    "source": pl.String,
    "hosts_known": pl.Boolean,
    "rows": pl.Int64,
    "jobs": pl.Int64,
    "widest": pl.Int64,
    "synthetic": pl.Boolean,
}
"""Columns of :attr:`Machines.sources`."""
CHANGES = {"cluster": pl.String, "rule": pl.String, "effect": pl.String, "n_rows": pl.Int64}
"""Columns of :attr:`Machines.changes`."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Machines:
    """Machines by name, and where their loads are from."""

    # by name; the same load under several policies has one ``cluster``
    systems: Mapping[str, BatchSystem]
    # one row per ``cluster``: ``origin`` (log, archive, generated), ``source`` (file, path), ``hosts_known``:
    # whether it tells how many hosts there are, else as many as make the load that was asked for; ``rows`` of
    # the source, ``jobs`` used, ``widest`` job [hosts], ``synthetic``
    sources: pl.DataFrame
    changes: pl.DataFrame  # what rule R left out or changed: ``cluster, rule, effect, n_rows``

    @property
    def synthetic(self) -> bool:
        """Whether any load was generated."""
        return bool(self.sources["synthetic"].any())

    def join(self, other: Machines) -> Machines:
        """Return the machines of both."""
        return Machines(
            systems={**self.systems, **other.systems},
            sources=pl.concat([self.sources, other.sources]),
            changes=pl.concat([self.changes, other.changes]),
        )

    def describe(self) -> pl.DataFrame:
        """Return one row per machine.

        ``system, cluster, policy``, ``hosts``, ``jobs`` (of the background), ``days`` (its length [d]), ``load``
        (host time used over host time there is [1]), ``asked`` (host time asked for over host time used [1]; null
        without load); the other columns of ``sources``.
        """
        rows = [
            {
                "system": name,
                "cluster": system.cluster,
                "policy": system.policy,
                "hosts": system.hosts,
                "days": (system.span[1] - system.span[0]) / DAY_S,
                "load": system.load,
                "asked": system.requested_load / system.load if system.load else None,
            }
            for name, system in self.systems.items()
        ]
        return pl.DataFrame(rows, infer_schema_length=None).join(
            self.sources, on="cluster", how="left", maintain_order="left"
        )


def recorded_machines(folder: str | Path, policies: Sequence[str], *, load: float) -> Machines:
    """Return the KTH SP2 under every policy, and a site of the LCG under the first."""
    folder = Path(folder)
    result: Machines | None = None
    if (folder / KTH).is_file():
        kth = loads.of_swf(swf.read(folder / KTH))
        result = _machines("KTH", "KTH", kth, kth.hosts, policies, origin="log", source=KTH)
    if (folder / LCG).is_file():
        log = swf.read(folder / LCG)
        site, one = _site(log, folder / LCG, load)
        name = f"LCG {_domain(site, log.header)}"
        lcg = _machines(
            "LCG", name, one, one.hosts, policies[:1], origin="log", source=LCG, hosts_known=False
        )
        result = lcg if result is None else result.join(lcg)
    if result is None:
        raise DataError(f"{folder}: neither {KTH} nor {LCG} is there")
    return result


def usual_machines(
    folder: str | Path | None, policies: Sequence[str], *, load: float, seed: int
) -> Machines:
    """Return the machines of the logs, or a generated one where there is no folder of logs."""
    if folder is None:
        return generated_machines(policies, seed=seed)
    return recorded_machines(folder, policies, load=load)


def archived_machine(archive: Archive, policy: str, *, load: float) -> Machines:
    """Return the busiest queue of an archive, on as many hosts of one core as make the load."""
    ran = archive.scan("jobs").filter(pl.col("starttime").is_not_null())
    counts = ran.group_by("computingsite").len().drop_nulls().collect()
    if counts.is_empty():
        raise InsufficientDataError("no job ran at any queue of the archive")
    queue = str(counts.sort("len", "computingsite", descending=[True, False])["computingsite"][0])
    jobs = loads.of_archive(archive, queue, hosts=ANY_HOSTS)
    return _machines(
        queue, queue, jobs, hosts_for(jobs.jobs, load), [policy],
        origin="archive", source=archive.path.as_posix(), hosts_known=False, synthetic=archive.synthetic,
    )  # fmt: skip


def generated_machines(policies: Sequence[str], *, seed: int) -> Machines:
    """Return a machine with a generated load under every policy."""
    jobs = synthetic.background(days=GENERATED_DAYS, hosts=GENERATED_HOSTS, seed=seed)
    made = Load(
        jobs,
        GENERATED_HOSTS,
        pl.DataFrame(schema={"rule": pl.String, "effect": pl.String, "n_rows": pl.Int64}),
        jobs.height,
    )
    return _machines(
        "generated", "generated", made, GENERATED_HOSTS, policies, origin="generated", source=f"seed {seed}", synthetic=True
    )  # fmt: skip


def hosts_for(jobs: pl.DataFrame, load: float) -> int:
    """Return how many hosts make the load of jobs, and hold the widest.

    Example:
        >>> jobs = pl.DataFrame({"submit_s": [0.0, 100.0], "run_s": [100.0, 60.0], "hosts": [1, 1]})
        >>> hosts_for(jobs, 0.8)
        2
    """
    times = jobs["submit_s"].to_numpy()
    span = float(times.max() - times.min())
    if not span:
        raise InsufficientDataError(
            f"load: all {jobs.height} jobs were submitted at one instant, no number of hosts makes a load of them"
        )
    used = float((jobs["run_s"] * jobs["hosts"]).sum())
    return max(1, _widest(jobs), round(used / max(span, 1.0) / load))


def _widest(jobs: pl.DataFrame) -> int:
    return int(jobs["hosts"].max())  # type: ignore[arg-type]


def _machines(
    cluster: str,
    name: str,
    load: Load,
    hosts: int,
    policies: Sequence[str],
    *,
    origin: str,
    source: str,
    hosts_known: bool = True,
    synthetic: bool = False,
) -> Machines:
    """Put a load under every policy."""
    jobs = load.jobs.select(JOBS)
    row = {
        "cluster": cluster,
        "origin": origin,
        "source": source,
        "hosts_known": hosts_known,
        "rows": load.rows,
        "jobs": jobs.height,
        "widest": _widest(jobs),
        "synthetic": synthetic,
    }
    changes = load.counts.filter(pl.col("n_rows") > 0).with_columns(cluster=pl.lit(cluster))
    return Machines(
        systems={
            f"{name}, {policy}": BatchSystem(jobs, hosts, policy, cluster) for policy in policies
        },
        sources=pl.DataFrame([row], schema=SOURCES),
        changes=changes.select(pl.col(column).cast(kind) for column, kind in CHANGES.items()),
    )


def _domain(site: int, header: Mapping[str, Sequence[str]]) -> str:
    """Return the domain of a site, from the header of the log.

    Example:
        >>> _domain(40, {"Partition": ("39 fe.infn.it", "40 lxgate13.cern.ch")}), _domain(7, {})
        ('cern.ch', '7')
    """
    hosts = dict(words for line in header.get("Partition", ()) if len(words := line.split()) == 2)
    return ".".join(hosts.get(str(site), str(site)).split(".")[-2:])


def _site(log: swf.SwfLog, path: Path, load: float) -> tuple[int, Load]:
    """Return the site with most work, on as many hosts as make the load."""
    present = set(log.jobs["partition"].unique().to_list())
    site = next((s for s in LCG_SITES if s in present), None)
    if site is None:
        raise DataError(f"{path}: none of the sites {', '.join(map(str, LCG_SITES))} is in it")
    wide = loads.of_swf(log, hosts=ANY_HOSTS, partition=site)
    return site, loads.of_swf(log, hosts=hosts_for(wide.jobs, load), partition=site)
