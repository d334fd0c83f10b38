"""The state of the grid, indexed once: what every task of a brokerage cycle looks things up in."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from datetime import datetime
from typing import Any

from brokerlab.matching.catchall import read_catchall
from tests.twins.switches import switches
from tests.twins.text import description, matching_rules, software_queue

Row = dict[str, Any]

DEFAULTS: dict[str, Any] = {
    "NQUEUED_SAT_CAP": 150,
    "NQUEUED_NUC_CAP_FOR_JOBS": 10000,
    "IO_INTENSITY_CUTOFF": 200,
    "SIZE_CUTOFF_TO_MOVE_INPUT": 10,
    "NUM_CUTOFF_TO_MOVE_INPUT": 100,
    "MAX_DISKIO_DEFAULT": 10**10,
    "STORAGE_MIN_FREE_SIZE": 200,
    "MAX_MISSING_INPUT_FILES": 10,
    "MIN_INPUT_COMPLETENESS": 90,
    "NW_ACTIVE": False,
    "NW_QUEUE_IMPORTANCE": 0.5,
    "NW_THRESHOLD": 1.7,
    "NW_WEIGHT_MULTIPLIER": 1,
    "MAX_PRIO_TO_BOOTSTRAP": 150,
    "WORK_SHORTAGE": False,
}
UNDEFINED_AT_ZERO = ("MAX_DISKIO_DEFAULT", "STORAGE_MIN_FREE_SIZE")


def when(time: str | datetime | None) -> datetime | None:
    """Return a time given as text or as a time."""
    return datetime.fromisoformat(time) if isinstance(time, str) else time


def grouped(rows: Iterable[Row], *keys: str) -> dict[Any, list[Row]]:
    """Return rows by the values of one column, or by the tuple of several."""
    groups: dict[Any, list[Row]] = defaultdict(list)
    for row in rows:
        groups[row.get(keys[0]) if len(keys) == 1 else tuple(row.get(key) for key in keys)].append(
            row
        )
    return groups


class World:
    """Tables of the production job brokerage (chapter section 1) by the names they are asked for."""

    def __init__(
        self, tables: dict[str, Any], rules: Any = "document", snapshot: int | None = None
    ):
        self.rules = switches(rules)
        self.matching = matching_rules(self.rules.rules)
        self.tables = tables
        self.snapshot = snapshot
        self.now = when(tables.get("now"))
        self.config = {
            (row.get("component") or "jobbroker", row["key"]): row["value"]
            for row in self.rows("gdpconfig")
        }
        self._index_queues()
        self._index_storage()
        self._index_counts()
        self._index_tasks()

    def rows(self, table: str) -> list[Row]:
        """Return the rows of a table that hold for the snapshot."""
        rows: list[Row] = self.tables.get(table) or []
        if self.snapshot is None:
            return rows
        return [row for row in rows if row.get("snapshot") in (None, self.snapshot)]

    def setting(self, key: str, component: str = "jobbroker") -> Any:
        """Return the value of a gdpconfig key, or its default."""
        found = self.config.get((component, key))
        if found is None or (found == 0 and key in UNDEFINED_AT_ZERO):
            return DEFAULTS[key]
        return found

    def _index_queues(self) -> None:
        self.queues = {row["panda_queue"]: row for row in self.rows("queues")}
        self.names = sorted(self.queues)
        self.parent = {name: row.get("unified_name") or name for name, row in self.queues.items()}
        self.children: dict[str, list[str]] = defaultdict(list)
        for name in self.names:
            self.children[self.parent[name]].append(name)
        self.catchall = {
            name: read_catchall(row.get("catchall"), row.get("params"))
            for name, row in self.queues.items()
        }
        self.nuclei = {row["nucleus"]: row for row in self.rows("nuclei")}
        tags = {row["panda_queue"]: row["data"] for row in self.rows("sw_tags")}
        gpus = grouped(self.rows("worker_node_gpu"), "panda_queue")
        levels = grouped(self.rows("worker_node_cpu_level"), "panda_queue")
        self.every_tag = description(tags["ALL"])[0] if "ALL" in tags else None
        self.software = {
            name: software_queue(row, tags, gpus.get(name, []), levels.get(name, []))
            for name, row in self.queues.items()
        }

    def _index_storage(self) -> None:
        self.endpoints = {row["ddm_endpoint_name"]: row for row in self.rows("storage_endpoints")}
        self.inputs: dict[str, list[Row]] = defaultdict(list)
        self.outputs: dict[str, list[Row]] = defaultdict(list)
        self.default_output: dict[str, str] = {}
        for row in self.rows("queue_endpoints"):
            queue, name = row["panda_queue"], row["ddm_endpoint_name"]
            endpoint = {"ddm_endpoint_name": name, **self.endpoints.get(name, {})}
            (self.inputs if row["direction"] == "input" else self.outputs)[queue].append(endpoint)
            if row["direction"] == "output" and row.get("is_default"):
                self.default_output.setdefault(queue, name)
        self.storage_site = {
            row["panda_queue"]: row["site_name"]
            for row in self.rows("queue_storage_site")
            if row.get("site_name")
        }
        self.links_to = grouped(_timed(self.rows("network_matrix"), "ts"), "dst")
        asked = ("write_wan", "read_wan") if self.rules.nucleus_must_send else ("write_wan",)
        self.unwritable_nuclei = {
            nucleus
            for nucleus, row in self.nuclei.items()
            if any(self.is_down(row.get("default_endpoint_out"), access) for access in asked)
        }

    def _index_counts(self) -> None:
        self.by_share = _counts(self.rows("job_stats"), "gshare")
        self.by_workqueue = _counts(self.rows("job_stats_workqueue"), "workqueue_id")
        self.by_share_only = _counts(self.rows("job_stats_gshare_only"), "gshare")
        self.all_shares: dict[Any, int] = defaultdict(int)
        for row in self.rows("job_stats"):
            self.all_shares[row["computingsite"], row["jobstatus"]] += row["njobs"] or 0
        self.by_resource_type = grouped(self.rows("job_stats_rt"), "computingsite")
        self.transferring_to = grouped(self.rows("transferring_by_nucleus"), "computingsite")
        self.cores: dict[Any, int] = defaultdict(int)
        for row in self.rows("core_stats"):  # of two rows with one key the last holds
            self.cores[row["computingsite"], row["jobstatus"]] = row["ncores"] or 0
        self.activity = {
            row["computingsite"]: row for row in _timed(self.rows("site_activity"), "laststart")
        }
        self.workers = grouped(self.rows("worker_stats"), "panda_queue")
        self.slots = grouped(self.rows("slots"), "panda_queue")
        self.diskio = {
            row["computingsite"]: row["diskio_per_core"] for row in self.rows("diskio_usage")
        }
        self.live: dict[str, int] = defaultdict(int)
        for row in self.rows("live"):
            self.live[row["panda_queue"]] += row["njobs"] or 0
        self.resource_queues = {
            row["workqueue_id"]: row.get("queue_name") for row in self.rows("resource_work_queues")
        }

    def _index_tasks(self) -> None:
        self.of_task = {
            table: grouped(self.rows(table), "jeditaskid")
            for table in (
                "datasets", "files", "file_locations", "replicas", "task_resource_types", "locks",
            )
        }  # fmt: skip

    def task_rows(self, table: str, jeditaskid: Any) -> list[Row]:
        """Return the rows of a table about one task, those about every task included."""
        groups = self.of_task[table]
        return groups.get(None, []) + (groups.get(jeditaskid, []) if jeditaskid is not None else [])

    def runs_production(self, name: str) -> bool:
        given = self.queues[name].get("type") or "production"
        return given in ("production", "unified") or self.catchall[name].grandly_unified

    def runs_analysis(self, name: str) -> bool:
        """Say whether a queue runs analysis beside production."""
        return self.queues[name].get("type") == "unified"

    def readers(self, name: str) -> list[str]:
        """Return compatible queues whose inputs include a queue's default output endpoint (3)."""
        written = self.default_output.get(self.parent.get(name, name))
        return [
            other
            for other in self._compatible(name)
            if written in (row["ddm_endpoint_name"] for row in self.inputs[self.parent[other]])
        ]

    def writers(self, name: str) -> list[str]:
        """Return compatible queues whose default output endpoint is among a queue's inputs (4.6)."""
        read = {row["ddm_endpoint_name"] for row in self.inputs[self.parent.get(name, name)]}
        return [
            other
            for other in self._compatible(name)
            if self.default_output.get(self.parent[other]) in read
        ]

    def owned(self, nucleus: str) -> set[str]:
        """Return the parents of the queues of a site."""
        return {
            self.parent[name]
            for name in self.names
            if self.queues[name].get("pandasite") == nucleus
        }

    def bare_mode(self, nucleus: str | None) -> str | None:
        """Return the bare mode of a nucleus: its own, else by the page that of its queues for production."""
        own: str | None = self.nuclei.get(nucleus or "", {}).get("bare_mode")
        if own or nucleus not in self.nuclei or self.rules.rules != "document":
            return own
        names = [
            name
            for name, queue in self.queues.items()
            if queue.get("pandasite") == nucleus
            and (queue.get("type") or "production") in ("production", "unified")
        ]
        return next(
            (mode for name in sorted(names) if (mode := self.catchall[name].bare_mode)), None
        )

    def sharing(self, nucleus: str) -> set[str]:
        """Return the parents of the queues that write where the nucleus's first queue reads (4.6)."""
        first = next(iter(self.nuclei.get(nucleus, {}).get("queues") or []), None)
        return {self.parent[name] for name in self.writers(first or "")}

    def near(self, nucleus: str) -> set[str]:
        return self.owned(nucleus) | self.sharing(nucleus)

    def _compatible(self, name: str) -> list[str]:
        """Return other online queues that run production, and analysis if the given queue does (3)."""
        if name not in self.queues or not self.runs_production(name):
            return []
        analysis = self.runs_analysis(name)
        return [
            other
            for other in self.names
            if other != name
            and self.queues[other].get("status") == "online"
            and self.runs_production(other)
            and (self.runs_analysis(other) or not analysis)
        ]

    def pilots(self, name: str) -> int:
        row = self.activity.get(name, {})
        return (row.get("getjob") or 0) + (row.get("updatejob") or 0)

    def active_workers(self, name: str) -> int:
        """Return workers running and submitted."""
        rows = self.workers.get(name, [])
        active = [row for row in rows if row.get("status") in ("running", "submitted")]
        return sum(row["n_workers"] or 0 for row in active)

    def network_counts(self) -> bool:
        """Say whether the network weight acts (J28)."""
        return bool(self.setting("NW_ACTIVE") or not self.rules.network_needs_active)

    def laststart(self, name: str) -> datetime | None:
        last: datetime | None = self.activity.get(name, {}).get("laststart")
        return last

    def is_down(self, endpoint: str | Row | None, access: str) -> bool:
        """Say whether an endpoint's access is down (chapter 1.5, J15); an unknown endpoint is not."""
        row = self.endpoints.get(endpoint) if isinstance(endpoint, str) else endpoint
        if row is None:
            return False
        status = row.get(access)
        if self.rules.other_status_up:
            return status in ("OFF", "TEST")
        return status not in ("ON", None)


def _timed(rows: list[Row], column: str) -> list[Row]:
    return [row | {column: when(row.get(column))} for row in rows]


def _counts(rows: list[Row], tag: str) -> dict[Any, int]:
    counts: dict[Any, int] = defaultdict(int)
    for row in rows:
        counts[row["computingsite"], row[tag], row["jobstatus"]] += row["njobs"] or 0
    return counts
