"""Toy worlds for the production job brokerage: one task and a few queues, harmless unless a column says otherwise.

world = World(ramcount=4000).queue("CERN_X", maxrss=12000).queue("BNL_Y")
decisions = world.decided("production", NQUEUED_SAT_CAP=100)
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

import polars as pl

from brokerlab.brokerage.contracts import TABLES
from brokerlab.brokerage.production_jobs.brokerage import decide
from brokerlab.brokerage.production_jobs.ranking import Decisions
from brokerlab.brokerage.rules import ProductionRules
from brokerlab.gdpconfig import Config
from brokerlab.units import GB, MB

EMPTY = {name: contract.create_empty() for name, contract in TABLES.items()}

Row = dict[str, Any]

AT = datetime(2026, 6, 1, 12)
TASK = 1
NUCLEUS = "NUC"
SHARE = "MC 16 simul"
ACCESS = ("read_lan", "write_lan", "read_wan", "write_wan")
TASK_ROW: Row = {
    "snapshot": 0,
    "at": AT,
    "prodsourcelabel": "managed",
    "gshare": SHARE,
    "nucleus": NUCLEUS,
    "currentpriority": 500,
    "processingtype": "simul",
    "corecount": 8,
    "ramcount": 2000,
    "ramcountunit": "MBPerCore",
    "baseramcount": 0,
    "outdiskcount": 100,
    "outdiskunit": "kBPerEvent",
    "workdiskcount": 100,
    "workdiskunit": "MB",
    "cputime": 100.0,
    "cputimeunit": "HS06sPerEvent",
    "cpuefficiency": 100.0,
    "basewalltime": 0.0,
    "iointensity": 10,
    "resource_type": "MCORE",
    "atom_size": 100 * MB,
    "atom_size_effective": 100.0,
    "atom_nevents": 1000,
}
QUEUE_ROW: Row = {
    "is_unified": False,
    "type": "production",
    "status": "online",
    "corecount": 8,
    "corepower": 10.0,
    "maxtime": 345_600,
    "mintime": 0,
    "maxrss": 32_000.0,
    "minrss": 0.0,
    "maxwdir": 160_000.0,
    "maxinputsize": 60_000,
    "direct_access_lan": False,
    "pledgedcpu": 0,
    "transferringlimit": 2000,
    "jobseed": "all",
}


class World:
    """The input tables in the making; every method returns the world itself.

    Attributes:
        tables: Name of the table to its rows; add or change rows at will.
    """

    def __init__(self, **task: Any) -> None:
        """Start with task 1 and its nucleus ``NUC``, which has a disk and no queue; columns change the task."""
        self.tables: dict[str, list[Row]] = {}
        self.nucleus(NUCLEUS).task(TASK, **task)

    def add(self, table: str, **columns: Any) -> World:
        """Add a row to any table."""
        self.tables.setdefault(table, []).append(columns)
        return self

    def change(self, table: str, where: Mapping[str, Any] | None = None, **columns: Any) -> World:
        """Change the rows of a table that hold the values of ``where``; all of them without it."""
        for row in self.tables[table]:
            if all(row.get(name) == value for name, value in (where or {}).items()):
                row.update(columns)
        return self

    def task(self, number: int, **columns: Any) -> World:
        return self.add("tasks", **({"jeditaskid": number} | TASK_ROW | columns))

    def endpoint(self, name: str, **columns: Any) -> World:
        """Add a disk with 10,000 GB free where everything is on."""
        row = {
            "type": "DATADISK",
            "is_tape": False,
            "space_free": 10_000.0,
            "space_total": 50_000.0,
        }
        return self.add(
            "storage_endpoints",
            **({"ddm_endpoint_name": name} | row | dict.fromkeys(ACCESS, "ON") | columns),
        )

    def nucleus(self, name: str, **columns: Any) -> World:
        disk = f"{name}_DATADISK"
        row = {"nucleus": name, "role": "nucleus", "state": "ACTIVE", "default_endpoint_out": disk}
        lists = {"queues": [], "input_endpoints": [disk], "output_endpoints": [disk]}
        return self.add("nuclei", **(row | lists | columns)).endpoint(disk, site_name=name)

    def queue(
        self, name: str, *, site: str | None = None, running: int = 100, activated: int = 10,
        pilots: int = 10, **columns: Any,
    ) -> World:  # fmt: skip
        """Add an online queue of 8 cores at a site of its own, with a disk, pilots, jobs and a link to the nucleus.

        Args:
            name: Name of the queue.
            site: Its ATLAS site; null = the name up to the first ``_``.
            running: Running jobs of the share.
            activated: Activated jobs of the share.
            pilots: Pilots of the last 3 hours.
            **columns: Other columns of ``queues``.
        """
        site = site or name.partition("_")[0]
        disk = f"{site}_DATADISK"
        self.add("queues", **({"panda_queue": name, "pandasite": site} | QUEUE_ROW | columns))
        if disk not in {row["ddm_endpoint_name"] for row in self.tables["storage_endpoints"]}:
            self.endpoint(disk, site_name=site).link(site)
        for direction in ("input", "output"):
            place = {"panda_queue": name, "direction": direction, "ddm_endpoint_name": disk}
            self.add("queue_endpoints", **place, is_default=True)
        self.add("queue_storage_site", panda_queue=name, site_name=site)
        if site == NUCLEUS:
            self.tables["nuclei"][0]["queues"].append(name)
        self.activity(name, getjob=pilots)
        return self.jobs(name, running=running, activated=activated)

    def activity(self, queue: str, **columns: Any) -> World:
        row = {"getjob": 10, "updatejob": 0, "laststart": AT - timedelta(minutes=5)}
        return self.add("site_activity", **({"computingsite": queue} | row | columns))

    def jobs(self, queue: str, *, gshare: str = SHARE, **counts: int) -> World:
        """Count jobs of a share at a queue by status; replaces what was counted of these statuses."""
        place = {"computingsite": queue, "gshare": gshare}
        kept = [
            row
            for row in self.tables.get("job_stats", [])
            if not (row["jobstatus"] in counts and all(row[k] == v for k, v in place.items()))
        ]
        self.tables["job_stats"] = kept
        for status, number in counts.items():
            self.add("job_stats", **place, jobstatus=status, njobs=number)
        return self

    def link(
        self, src: str, *, dst: str = NUCLEUS, mbps: float | None = 80.0, queued: float = 0,
        closeness: float | None = 3,
    ) -> World:  # fmt: skip
        """Set what is known of a link, ten minutes old; a link set before is forgotten."""
        matrix = self.tables.setdefault("network_matrix", [])
        matrix[:] = [row for row in matrix if (row["src"], row["dst"]) != (src, dst)]
        values = {
            "AGIS_closeness": closeness,
            "dashb_mbps_1h": mbps,
            "dashb_mbps_1d": mbps,
            "dashb_mbps_1w": mbps,
            "Production Output_queued": queued,
            "Express_queued": queued,
        }
        for key, value in values.items():
            if value is not None:
                when = AT - timedelta(minutes=10)
                self.add("network_matrix", src=src, dst=dst, key=key, value=float(value), ts=when)
        return self

    def data(
        self, files: int = 10, *, size: int = GB, here: Mapping[str, int] | None = None,
        kind: str = "localdisk", task: int = TASK,
    ) -> World:  # fmt: skip
        """Give the task an input dataset, complete at the nucleus.

        Args:
            files: Its files.
            size: Bytes of each.
            here: Queue (unified name) to number of files that it holds.
            kind: How it holds them.
            task: The task.
        """
        own = {"jeditaskid": task, "datasetname": f"data{task}"}
        self.add("datasets", **own)
        sizes = {"found": files, "total": files, "asize": files * size, "tsize": files * size}
        self.add("replicas", **own, ddm_endpoint_name=f"{NUCLEUS}_DATADISK", **sizes)
        for number in range(files):
            self.add("files", **own, lfn=f"f{number}", fsize=size)
        for queue, held in (here or {}).items():
            for number in range(held):
                self.add("file_locations", **own, lfn=f"f{number}", panda_queue=queue, kind=kind)
        return self

    def frames(self) -> dict[str, pl.DataFrame]:
        """Return the tables, all of them known; unknown tables and columns are refused."""
        result = dict(EMPTY)
        for name, rows in self.tables.items():
            types = EMPTY[name].schema
            extra = {column for row in rows for column in row} - types.keys()
            if extra:
                raise KeyError(f"table {name} has no column {sorted(extra)}")
            columns = [{column: row.get(column) for column in types} for row in rows]
            result[name] = pl.DataFrame(columns, schema=types)
        return result

    def decided(
        self, rules: str | ProductionRules = "document", *, hint: bool = False, **settings: Any
    ) -> Decisions:
        """Decide; the other keywords are gdpconfig keys of component jobbroker."""
        return decide(
            self.frames(),
            rules=ProductionRules(rules) if isinstance(rules, str) else rules,
            config=config(**settings),
            hint=hint,
        )


def config(**settings: Any) -> Config:
    """Return a configuration of keys of component jobbroker; ``WORK_SHORTAGE`` is of component core."""
    shared = {"WORK_SHORTAGE"}
    return Config.empty().with_values(
        {
            f"jedi/{'core' if key in shared else 'jobbroker'}/{key}": value
            for key, value in settings.items()
        }
    )


def reasons(decisions: Decisions, task: int = TASK) -> dict[str, str | None]:
    """Return why each queue was skipped; null for candidates."""
    rows = decisions.queues.filter(pl.col("jeditaskid") == task)
    return dict(rows.select("panda_queue", "check").iter_rows())
