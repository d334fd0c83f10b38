"""Toy worlds for the analysis brokerage: tasks and queues that are harmless unless a column says otherwise."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from brokerlab.brokerage.analysis_jobs import AnalysisDecisions, AnalysisRules, decide
from brokerlab.brokerage.analysis_jobs.contracts import TABLES
from brokerlab.gdpconfig import Config
from tests.unit.brokerage.production_jobs.book import own_columns

Row = dict[str, Any]

AT = datetime(2026, 6, 1, 12)
SHARE = "User Analysis"
TASK: Row = {
    "jeditaskid": 1, "at": AT, "prodsourcelabel": "user", "gshare": SHARE, "username": "alice", "corecount": 1,
    "ramcount": 2000, "ramunit": "MB", "resource_type": "SCORE", "cputime": 10.0, "cputimeunit": "HS06sPerEvent",
    "cpuefficiency": 100.0, "atom_size": 0, "atom_size_effective": 1.0, "atom_nevents": 100, "n_jobs_to_submit": 10,
}  # fmt: skip
QUEUE: Row = {
    "type": "analysis", "status": "online", "corecount": 1, "corepower": 10.0, "maxtime": 0, "mintime": 0,
    "maxrss": 0.0, "minrss": 0.0, "maxwdir": 0.0, "releases": ["ANY"],
}  # fmt: skip
ENDPOINT: Row = {"is_default": True, "is_tape": False, "space_usable": 5000.0}


WITH_CODE = AnalysisRules(code_only_checks=True, code_only_exemptions=True)
"""The page's rules, with the checks and exemptions that only the code has."""


class World:
    """Tables that grow row by row."""

    def __init__(self, **task: Any):
        self.rows: dict[str, list[Row]] = {"tasks": [TASK | task]}

    def add(self, table: str, **row: Any) -> World:
        self.rows.setdefault(table, []).append(row)
        return self

    def queue(self, name: str, **columns: Any) -> World:
        """Add a queue with one endpoint for input and output, and a pilot; ``e_NAME`` is a column of the endpoint."""
        endpoint = {key[2:]: value for key, value in columns.items() if key.startswith("e_")}
        own = {key: value for key, value in columns.items() if not key.startswith("e_")}
        self.add("queues", **(QUEUE | own | {"panda_queue": name}))
        for direction in ("input", "output"):
            row = {"panda_queue": name, "direction": direction, "ddm_endpoint_name": f"{name}_DISK"}
            self.add("queue_endpoints", **(row | ENDPOINT | endpoint))
        return self.add("site_activity", computingsite=name, getjob=1)

    def jobs(self, name: str, status: str, number: int, **more: Any) -> World:
        row = {"gshare": SHARE, "resource_type": "SCORE"} | more
        return self.add("job_stats", computingsite=name, jobstatus=status, njobs=number, **row)

    def tables(self) -> dict[str, list[Row]]:
        """Return the tables, all of them known."""
        return {name: self.rows.get(name, []) for name in TABLES}

    def decided(
        self, rules: str | AnalysisRules = "document", **settings: Any
    ) -> AnalysisDecisions:
        chosen = AnalysisRules(rules) if isinstance(rules, str) else rules
        values = {
            key if "/" in key else f"jedi/anal_jobbroker/{key}": value
            for key, value in settings.items()
        }
        return decide(self.tables(), rules=chosen, config=Config.empty().with_values(values))

    def checks(self, rules: str | AnalysisRules = "document", **settings: Any) -> dict[str, Any]:
        """Return why each queue was skipped; null for candidates."""
        rows = self.decided(rules, **settings).queues.select("panda_queue", "check").rows()
        return {name: None if check is None else str(check) for name, check in rows}


APART = 1000
"""Between the ids of tasks of two worlds."""
NAMES = ("panda_queue", "unified_name", "computingsite", "ddm_endpoint_name", "site")
LISTS = ("includedsite", "excludedsite", "endpoints_over_local_quota")


def decided_of(
    worlds: Sequence[World], rules: str | AnalysisRules = "document", **settings: Any
) -> AnalysisDecisions:
    """Decide many worlds at once: an instant, names and tasks of its own for each."""
    together = World()
    together.rows.clear()
    for number, world in enumerate(worlds):
        for table, rows in world.rows.items():
            for row in rows:
                together.add(table, **_in_world(number, table, row))
    return together.decided(rules, **settings)


def checks_of(
    worlds: Sequence[World], rules: str | AnalysisRules = "document"
) -> list[dict[str, Any]]:
    """Return :meth:`World.checks` of many worlds, decided at once."""
    found: list[dict[str, Any]] = [{} for _ in worlds]
    rows = decided_of(worlds, rules).queues.select("snapshot", "panda_queue", "check").rows()
    for number, name, check in rows:
        found[number][name.split(".", 1)[1]] = None if check is None else str(check)
    return found


class Found:
    """What is decided on a world together with all that were asked about under the same rules and settings."""

    def __init__(self, world: World, rules: str | AnalysisRules, settings: Row):
        self.world, self.rules, self.settings = world, rules, settings
        self.waiting = WAITING.setdefault(repr((rules, sorted(settings.items()))), [])
        self.waiting.append(self)
        self._queues: dict[str, Row] = {}
        self._first: dict[str, str | None] = {}
        self._task: Row = {}

    def __repr__(self) -> str:
        """Name the case: what its task and queues have that no other has, and the settings."""
        of_task, *_ = own_columns(self.world.rows["tasks"], TASK)
        of_queues = own_columns(self.world.rows.get("queues", []), QUEUE)
        return f"{of_task} at {of_queues} {self.settings or ''}"

    def queues(self) -> dict[str, Row]:
        """Return what is said of each queue: ``check, rank`` and, where weighed, all that is reported."""
        self._decide()
        return self._queues

    def checks(self) -> dict[str, str | None]:
        """Return why each queue was skipped; null for candidates."""
        return {name: row["check"] for name, row in self.queues().items()}

    def first_checks(self) -> dict[str, str | None]:
        """Return the same of the first loop."""
        self._decide()
        return self._first or self.checks()

    @property
    def check(self) -> str | None:
        """Return why queue Q was skipped; null for a candidate."""
        return self.queues()["Q"]["check"]  # type: ignore[no-any-return]

    @property
    def task(self) -> Row:
        """Return what is said of the task."""
        self._decide()
        return self._task

    def _decide(self) -> None:
        if self not in self.waiting:
            return
        asked = [*self.waiting]
        self.waiting.clear()  # what cannot be decided fails once
        decisions = decided_of([found.world for found in asked], self.rules, **self.settings)
        for row in decisions.tasks.to_dicts():
            asked[row["snapshot"]]._task = row
        for row in (*decisions.weighed.to_dicts(), *decisions.queues.to_dicts()):
            name = row["panda_queue"].split(".", 1)[1]
            queues = asked[row["snapshot"]]._queues
            queues[name] = queues.get(name, {}) | row
        for row in decisions.first_loop.to_dicts():
            name = row["panda_queue"].split(".", 1)[1]
            asked[row["snapshot"]]._first[name] = row["check"]


WAITING: dict[str, list[Found]] = {}


def ask(world: World, rules: str | AnalysisRules = "document", **settings: Any) -> Found:
    """Ask what is decided on a world; leave it as it is from now on.

    Nothing is decided before the first answer is looked at. Ask while the module is imported (in the arguments of
    ``parametrize``), and a module costs one decision per rule set and settings.
    """
    return Found(world, rules, settings)


def _in_world(number: int, table: str, row: Row) -> Row:
    """Return a row as one of a world among others."""

    def own(name: Any) -> Any:
        return name if name in (None, "", "AUTO") or "*" in name else f"w{number}.{name}"

    moved = {name: own(row[name]) for name in NAMES if name in row}
    moved |= {name: [own(one) for one in row[name]] for name in LISTS if row.get(name)}
    if "snapshot" in TABLES[table].columns():
        moved["snapshot"] = number
    if "jeditaskid" in TABLES[table].columns():  # about any task: about the one of its world
        moved["jeditaskid"] = row.get("jeditaskid", TASK["jeditaskid"]) + APART * number
    return row | moved
