"""Give a random world several instants: states and queues that change, the same task brokered more than once."""

from __future__ import annotations

from random import Random
from typing import Any

from tests.twins.worlds import CATCHALLS, POLICIES

Row = dict[str, Any]
Tables = dict[str, Any]

STATES = (
    "storage_endpoints", "site_activity", "job_stats", "job_stats_rt", "job_stats_workqueue",
    "job_stats_gshare_only", "task_resource_types", "transferring_by_nucleus", "core_stats", "diskio_usage",
    "worker_stats", "slots", "network_matrix", "locks", "live",
)  # fmt: skip
KEYS = (
    "snapshot", "ddm_endpoint_name", "site_name", "type", "is_tape", "computingsite", "panda_queue", "gshare",
    "workqueue_id", "jobstatus", "resource_type", "resourcetype", "nucleus", "status", "src", "dst", "key", "ts",
    "jeditaskid",
)  # fmt: skip
"""What says which row it is; the rest is the state."""
LOST = 0.1
"""Part of the rows that an instant lacks."""
CHANGES: dict[str, tuple[Any, ...]] = {
    "status": ("online", "standby", "offline", "test"),
    "fairsharepolicy": (None, *POLICIES),
    "catchall": (None, *CATCHALLS),
    "wnconnectivity": ("full#IPv4", "http", "none", None),
    "releases": (["AUTO"], ["ANY"], ["21.0"], None),
    "pledgedcpu": (0, -1, 1000, None),
    "transferringlimit": (0, None, 200),
    "maxdiskio": (None, 0, 300),
    "maxwdir": (0, 40000, 2500, None),
    "jobseed": ("all", "std", "es", "eshigh", None),
    "pandasite": ("N0", "N1", "S01"),
}


def with_instants(tables: Tables, seed: int, *, queues_change: bool = True) -> Tables:
    """Return the world at the instants 0, 1 and 2.

    Args:
        tables: A random world.
        seed: Same seed, same instants.
        queues_change: Queues have a history, too.
    """
    rng = Random(seed)  # noqa: S311 - test data
    found = dict(tables)
    for name in STATES:
        rows = tables.get(name) or []
        if rng.random() < 0.2:  # holds for every instant
            continue
        lost = 0 if name == "storage_endpoints" else LOST
        found[name] = [row for number in range(3) for row in _at(rng, rows, number, lost)]
    if queues_change:
        found["queues"] = [
            row for number in range(3) for row in _changed(rng, tables["queues"], number)
        ]
    found["tasks"] = [task | {"snapshot": rng.randrange(3)} for task in tables["tasks"]]
    again = rng.sample(found["tasks"], len(found["tasks"]) // 3)
    found["tasks"] += [task | {"snapshot": (task["snapshot"] + 1) % 3} for task in again]
    return found


def _at(rng: Random, rows: list[Row], snapshot: int, lost: float) -> list[Row]:
    """Return the rows of an instant: some are missing, some have the state of another row."""
    found = []
    for row in rows:
        if rng.random() < lost:
            continue
        other = rng.choice(rows) if rng.random() < 0.3 else row
        state = {name: value for name, value in other.items() if name not in KEYS and name in row}
        found.append({**row, **state, "snapshot": snapshot})
    return found


def _changed(rng: Random, rows: list[Row], snapshot: int) -> list[Row]:
    """Return the queues at an instant; a parent and its pseudo-queues change, or are missing, together."""
    names = sorted({row["unified_name"] or row["panda_queue"] for row in rows})
    changes = {
        name: {key: rng.choice(values) for key, values in CHANGES.items() if rng.random() < 0.1}
        for name in names
    }
    gone = set(rng.sample(names, len(names) // 10))
    return [
        row | changes[name] | {"snapshot": snapshot}
        for row in rows
        if (name := row["unified_name"] or row["panda_queue"]) not in gone
    ]
