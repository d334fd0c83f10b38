"""The state of the grid as the analysis brokerage sees it at one instant, indexed once (analysis-jobs.md 1)."""

from __future__ import annotations

from collections import defaultdict
from datetime import datetime, timedelta
from types import SimpleNamespace
from typing import Any

from brokerlab.matching.catchall import read_catchall
from tests.twins.text import description, matching_rules, software_queue
from tests.twins.world import grouped, when

Row = dict[str, Any]

SWITCHES: dict[str, tuple[Any, Any]] = {
    "basic_weight": ("original", "new"),
    "cap_rt_effective": (True, False),
    "cap_rt_form": ("twice_larger", "larger_of_twice"),
    "counted_jobs": ("queue", "share"),
    "bad_jobs_mode": ("all", "after_stabilizer"),
    "locality_mode": ("suppress", "retry"),
    "zero_intensity_suppresses": (True, False),
    "second_loop": ("persistent", "always"),
    "count_total_row": (False, True),
    "stabilizer_running": ("jobs", "users"),
    "trr_scaled": (False, True),
    "diskio_per_core": (False, True),
    "use_base_ram": (True, False),
    "merge_memory": ("task", "deployed"),
    "whole_numbers": (False, True),
    "zero_efficiency_rejects": (False, True),
    "min_capacity_mode": ("maxtime", "capacity"),
    "scratch_need": ("sum", "deployed"),
    "direct_asks_task": (False, True),
    "maxwdir_mode": ("per_core", "single_core"),
    "slots_zero_mode": ("larger", "sum"),
    "workers_need_pilots": (False, True),
    "slots_per_core": (False, True),
    "use_l1_share": (False, True),
    "caps_need_all_counts": (False, True),
    "unknown_user_fraction": (0, 0.5),
    "closed_skips": (False, True),
    "used_sites_first": (False, True),
    "best_ten_always": (True, False),
    "pending_min": (20, 60),
    "preassigned_failure": ("waits", "fatal"),
    "space_strict": (True, False),
    "local_space": ("free", "usable"),
    "data_counts_without_locality": (True, False),
    "new_weight": ("document", "budgets"),
    "data_factor": (False, True),
    "lists_need_limitedsites": (False, True),
    "lists_first": (True, False),
    "grandly_unified_counts": (False, True),
    "status_mode": ("online", "not_offline"),
    "vp_avoided_by": ("task", "more"),
    "vp_default_scope": (False, True),
    "overload_scope": ("vp", "all"),
    "code_only_checks": (False, True),
    "code_only_exemptions": (False, True),
}
"""Name -> (document, production)."""

DEFAULTS: dict[str, Any] = {
    "USER_USAGE_THRESHOLD_A": 1000,
    "MIN_BAD_JOBS_TO_SKIP_PQ": 5,
    "MAX_MISSING_INPUT_FILES": 10,
    "MIN_INPUT_COMPLETENESS": 90,
    "BASE_QUEUE_LENGTH_PER_PQ": 100,
    "BASE_EXPECTED_WAIT_HOUR_ON_PQ": 8,
    "BASE_DEFAULT_QUEUE_LENGTH_PER_PQ_USER": 5,
    "BASE_QUEUE_RATIO_ON_PQ": 0.05,
    "STATIC_MAX_QUEUE_RUNNING_RATIO": 2.0,
    "MAX_EXPECTED_WAIT_HOUR": 12.0,
    "OVERLOAD_MIN_QUEUE": 20,
    "OVERLOAD_RATIO_OFFSET": 1.2,
    "STORAGE_MIN_FREE_SIZE_OUTPUT": 200,
    "STORAGE_MIN_FREE_SIZE": 200,
    "MAX_DISKIO_DEFAULT": 10**10,
}
UNDEFINED_AT_ZERO = ("STORAGE_MIN_FREE_SIZE_OUTPUT", "STORAGE_MIN_FREE_SIZE", "MAX_DISKIO_DEFAULT")
QUEUED = ("defined", "assigned", "activated", "starting")
VP = "_VP_DISK"


def switches(rules: Any) -> Any:
    """Return an object with one attribute per switch, of a name of a rule set or as it is."""
    if not isinstance(rules, str):
        return rules
    column = ("document", "production").index(rules)
    values = {name: pair[column] for name, pair in SWITCHES.items()}
    return SimpleNamespace(rules=rules, **values)


class World:
    """Tables of the analysis job brokerage by the names they are asked for."""

    def __init__(
        self, tables: dict[str, Any], rules: Any = "document", snapshot: int | None = None
    ):
        self.rules = switches(rules)
        self.matching = matching_rules(self.rules.rules)
        self.tables = tables
        self.snapshot = snapshot
        self.config = {
            (row["component"], row["key"]): row["value"] for row in self.rows("gdpconfig")
        }
        self._index_queues()
        self._index_storage()
        self._index_counts()
        self.of_task = {
            table: grouped(self.rows(table), "jeditaskid")
            for table in ("datasets", "files", "file_locations", "replicas", "failure_counts", "sites_used", "task_class")
        }  # fmt: skip

    def rows(self, table: str) -> list[Row]:
        """Return the rows of a table that hold for the instant."""
        rows: list[Row] = self.tables.get(table) or []
        if self.snapshot is None:
            return rows
        return [row for row in rows if row.get("snapshot") in (None, self.snapshot)]

    def task_rows(self, table: str, jeditaskid: Any) -> list[Row]:
        """Return the rows of a table about one task, those about every task included."""
        groups = self.of_task[table]
        return groups.get(None, []) + groups.get(jeditaskid, [])

    def setting(self, component: str, key: str) -> Any:
        """Return the value of a gdpconfig key, or its default, None where it has none (1.4)."""
        found = self.config.get((component, key))
        if found is None or (found == 0 and key in UNDEFINED_AT_ZERO):
            return DEFAULTS.get(key)
        return found

    def broker(self, key: str) -> Any:
        return self.setting("anal_jobbroker", key)

    def _index_queues(self) -> None:
        self.queues = {row["panda_queue"]: row for row in self.rows("queues")}
        self.parent = {name: row.get("unified_name") or name for name, row in self.queues.items()}
        self.catchall = {
            name: read_catchall(row.get("catchall"), row.get("params"))
            for name, row in self.queues.items()
        }
        tags = {row["panda_queue"]: row["data"] for row in self.rows("sw_tags")}
        gpus = grouped(self.rows("worker_node_gpu"), "panda_queue")
        self.every_tag = description(tags["ALL"])[0] if "ALL" in tags else None
        self.software = {
            name: software_queue(row, tags, gpus.get(name, []), [])
            for name, row in self.queues.items()
        }

    def _index_storage(self) -> None:
        self.endpoints: dict[str, Row] = {}
        by_queue: dict[tuple[str, str], list[Row]] = defaultdict(list)
        for row in self.rows("queue_endpoints"):
            self.endpoints[row["ddm_endpoint_name"]] = row
            by_queue[row["panda_queue"], row["direction"]].append(row)
        self.attached: dict[tuple[str, str], list[Row]] = {}
        for key, rows in by_queue.items():
            own = [row for row in rows if row.get("scope") == "analysis"]
            self.attached[key] = own or [row for row in rows if row.get("scope") != "analysis"]
        self.vp_queues = {
            queue
            for (queue, direction), rows in by_queue.items()
            if direction == "input"
            for row in (self._default_scope(rows) if self.rules.vp_default_scope else self.attached[queue, direction])
            if is_vp(row)
        }  # fmt: skip

    def parent_row(self, queue: Row) -> Row:
        """Return the row of the parent of a queue; its own where the parent has none."""
        return self.queues.get(self.parent[queue["panda_queue"]], queue)

    @staticmethod
    def _default_scope(rows: list[Row]) -> list[Row]:
        return [row for row in rows if row.get("scope") != "analysis"]

    def inputs(self, parent: str) -> list[Row]:
        return self.attached.get((parent, "input"), [])

    def outputs(self, parent: str) -> list[Row]:
        return self.attached.get((parent, "output"), [])

    def _index_counts(self) -> None:
        self.jobs: dict[Any, int] = defaultdict(int)
        self.jobs_by_type: dict[Any, int] = defaultdict(int)
        self.running_everywhere: dict[str, int] = defaultdict(int)
        self.jobs_everywhere: dict[Any, int] = defaultdict(int)
        self.share_totals: dict[Any, list[int]] = defaultdict(lambda: [0, 0])
        for row in self.rows("job_stats"):
            site, share, status = row["computingsite"], row.get("gshare"), row["jobstatus"]
            number = row.get("njobs") or 0
            self.jobs[site, share, status] += number
            self.jobs_by_type[site, share, row.get("resource_type"), status] += number
            self.jobs_everywhere[site, status] += number
            if status == "running":
                self.running_everywhere[site] += number
                self.share_totals[share][1] += number
            elif status in QUEUED:
                self.share_totals[share][0] += number
        self.users: dict[Any, dict[str, Row]] = defaultdict(dict)
        for row in self.rows("user_job_stats"):
            self.users[row["computingsite"], row.get("gshare")][row["produsername"]] = row
        self.rates = {row["computingsite"]: row.get("jobs_per_hour") or 0 for row in self.rows("to_run_rate")}  # fmt: skip
        self.activity = {row["computingsite"]: row for row in self.rows("site_activity")}
        self.workers = grouped(self.rows("worker_stats"), "panda_queue")
        self.slots = grouped(self.rows("slots"), "panda_queue")
        self.diskio = {row["computingsite"]: row["diskio_per_core"] for row in self.rows("diskio_usage")}  # fmt: skip
        self.classes = {row["computingsite"]: row.get("class") or 0 for row in self.rows("site_class")}  # fmt: skip
        self.shares = {row["gshare"]: row for row in self.rows("gshare_usage")}
        self.evaluated = {row["user"]: row for row in self.rows("user_eval")}

    def queued(self, site: str, share: Any) -> int:
        """Return nq: jobs defined, assigned, activated, starting."""
        return sum(self.jobs[site, share, status] for status in QUEUED)

    def running(self, site: str, share: Any) -> int:
        return self.jobs[site, share, "running"]

    def counted(self, site: str, share: Any, status: str) -> int:
        """Return jobs of the queue, or of the share there, whichever count where the page names no share."""
        if self.rules.counted_jobs == "queue":
            return self.jobs_everywhere[site, status]
        return self.jobs[site, share, status]

    def pilots(self, site: str) -> int:
        row = self.activity.get(site, {})
        return (row.get("getjob") or 0) + (row.get("updatejob") or 0)

    def active_workers(self, site: str) -> int:
        """Return workers running and submitted."""
        rows = self.workers.get(site, [])
        return sum(row.get("n_workers") or 0 for row in rows if row["status"] in ("running", "submitted"))  # fmt: skip


def is_vp(endpoint: Row) -> bool:
    name: str = endpoint["ddm_endpoint_name"]
    return name.endswith(VP)


def up(endpoint: Row, access: str) -> bool:
    """Say whether an access of an endpoint works (1.2): null counts as usable."""
    return endpoint.get(access) not in ("OFF", "TEST")


def fresh(row: Row | None, at: datetime | None, minutes: float) -> Row | None:
    """Return a row that was made at most so many minutes ago; one without a time is new."""
    made = when(row.get("timestamp")) if row else None
    if made is not None and at is not None and at - made > timedelta(minutes=minutes):
        return None
    return row
