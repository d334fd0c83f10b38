"""Many small worlds decided in one go: each at an instant of its own, with names of its own.

    found = ask(World(currentpriority=800).queue("A", pledgedcpu=-1))
    found.check  # "opportunistic"

Nothing is decided before the first answer is looked at; then all worlds asked about under the same rules and settings
are. Ask while the module is imported (in the arguments of ``parametrize``), and a module costs a call per rule set.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pytest

from brokerlab.brokerage.contracts import TABLES
from brokerlab.brokerage.production_jobs.ranking import Decisions
from brokerlab.brokerage.rules import JobRules, ProductionRules
from tests.brokerage_toys import QUEUE_ROW, TASK, TASK_ROW, Row, World

NAMES = {
    "panda_queue", "unified_name", "computingsite", "preassigned_site", "pandasite", "nucleus", "site_name", "src",
    "dst", "ddm_endpoint_name", "default_endpoint_out",
}  # fmt: skip
"""Columns with the name of a place."""
LISTS = {"queues", "input_endpoints", "output_endpoints"}
NUMBERS = {"jeditaskid", "workqueue_id"}
PER_WORLD = 1000
ADDITIONS = (
    "merging_freed_by", "preassigned_exempt", "backlog_spares_nucleus", "test_work_exempt", "io_check_strict",
    "io_check_relents", "io_check_exempts", "diskio_per_core", "memory_by_unit", "whole_numbers", "output_of_master",
    "maxwdir_per_core", "local_space", "datadisk_only", "wan_asked_at_nucleus", "nucleus_must_send",
    "ip_stack_strict", "transferring_spares", "any_negative_t1weight", "pilots_excused", "counted_jobs", "slots_per_core", "unknown_walltime_is_short",
    "many_assigned_plus_one", "nucleus_preferred", "hardware_preferred", "cap_mode", "bootstrap_first",
    "jumbo_queues", "code_only_checks",
)  # fmt: skip


def added(**switches: Any) -> ProductionRules:
    """Return the page's rules with what the deployed code adds to them; single switches may be set otherwise."""
    values = {name: JobRules.SWITCHES[name].production for name in ADDITIONS}
    return ProductionRules("document", **(values | switches))


ADDED = added()
"""Under these most tests here ask; tests/document holds the rules of the page alone."""
LEVEL = json.dumps(
    {"sw_platform": "x86_64-el9-gcc13-opt", "cpu_pref": {"preferred_architecture_level": "x86-64-v3"}}
)  # fmt: skip
PUBLISHED = {
    "cvmfs": ["any"], "containers": ["any"], "cmtconfigs": [], "tags": [],
    "architectures": [{"type": "cpu", "arch": ["x86_64"]}],
}  # fmt: skip


class Book:
    """Worlds asked about under one rule set and configuration."""

    def __init__(self, rules: str | ProductionRules, hint: bool, settings: Mapping[str, Any]):
        self.rules, self.hint, self.settings = rules, hint, settings
        self.waiting: list[Found] = []

    def decide(self) -> None:
        """Decide all that waits; worlds that cannot be decided fail here once, and have no answers afterwards."""
        asked, self.waiting = self.waiting, []
        together = merged([found.world for found in asked])
        answer(asked, together.decided(self.rules, hint=self.hint, **self.settings), hint=self.hint)


class Found:
    """What is decided on a world; of its task 1 where no other is named."""

    def __init__(self, world: World, book: Book):
        self.world, self.book = world, book
        self.by_task: dict[int, dict[str, Row]] = {}
        self.tasks: dict[int, Row] = {}
        book.waiting.append(self)

    def __repr__(self) -> str:
        """Name the case: what its task and queues have that no other has, and the settings."""
        of_task, *_ = own_columns(self.world.tables["tasks"], TASK_ROW)
        of_queues = own_columns(self.world.tables.get("queues", []), QUEUE_ROW)
        return f"{of_task} at {of_queues} {self.book.settings or ''}"

    def queues(self, task: int = TASK) -> dict[str, Row]:
        """Return what is said of each queue: ``check, weight, rank`` and, where weighed, its factors and counts."""
        self._decide()
        return self.by_task[task]

    def checks(self, task: int = TASK) -> dict[str, str | None]:
        """Return why each queue was skipped; null for candidates."""
        return {name: row["check"] for name, row in self.queues(task).items()}

    @property
    def only(self) -> Row:
        """Return what is said of the only queue."""
        (row,) = self.queues().values()
        return row

    @property
    def check(self) -> str | None:
        """Return why the only queue was skipped; null for a candidate."""
        return self.only["check"]  # type: ignore[no-any-return]

    @property
    def task(self) -> Row:
        """Return what is said of the task."""
        self._decide()
        return self.tasks[TASK]

    @property
    def ranking(self) -> list[str]:
        """Return the ranked queues, best first."""
        ranked = {row["rank"]: name for name, row in self.queues().items() if row["rank"]}
        return [ranked[rank] for rank in sorted(ranked)]

    def _decide(self) -> None:
        if self in self.book.waiting:
            self.book.decide()


def answer(asked: Sequence[Found], decisions: Decisions, *, hint: bool = False) -> None:
    """Give what is decided on merged worlds to each of them."""
    queues: dict[int, dict[str, Row]] = {}
    weighed = {} if hint else _by_queue(decisions.weighed.to_dicts())
    for row in decisions.queues.to_dicts():
        key = (row["jeditaskid"], row["panda_queue"])
        name = _own(row["panda_queue"])
        queues.setdefault(row["jeditaskid"], {})[name] = weighed.get(key, {}) | row
    tasks = {row["jeditaskid"]: row for row in decisions.tasks.to_dicts()}
    for number, found in enumerate(asked):
        first = number * PER_WORLD
        ids = range(first, first + PER_WORLD)
        found.by_task = {id_ - first: queues.get(id_, {}) for id_ in ids if id_ in tasks}
        found.tasks = {id_ - first: tasks[id_] for id_ in ids if id_ in tasks}


def own_columns(rows: Sequence[Row], usual: Row) -> list[Row]:
    """Return what rows have that is not as usual."""
    return [{k: v for k, v in row.items() if k not in usual or v != usual[k]} for row in rows]


BOOKS: dict[str, Book] = {}


def ask(
    world: World, rules: str | ProductionRules = ADDED, *, hint: bool = False, **settings: Any
) -> Found:
    """Ask what is decided on a world.

    Args:
        world: The world; leave it as it is from now on.
        rules: Rule set; the page's with all that the deployed code adds, unless said otherwise.
        hint: Hint mode.
        **settings: gdpconfig keys of component jobbroker.
    """
    key = repr((rules, hint, sorted(settings.items())))
    return Found(world, BOOKS.setdefault(key, Book(rules, hint, settings)))


def one(task: Mapping[str, Any] | None = None, /, **queue: Any) -> World:
    """Return a world of one task and one queue, ``SITE``."""
    return World(**(task or {})).queue("SITE", **queue)


def levelled(percent: float | None) -> World:
    """Return a queue of whose CPUs so many percent have the level that the task prefers."""
    task = {"nucleus": None, "transhome": "Athena-25.0.1", "architecture": LEVEL}
    world = one(task, releases=["AUTO"])
    world.add("sw_tags", panda_queue="SITE", data=json.dumps(PUBLISHED))
    level = {"panda_queue": "SITE", "cpu_architecture_level": "x86-64-v3"}
    return world.add("worker_node_cpu_level", **level, pct_within_queue=percent)


def parent(world: World, name: str, *children: Mapping[str, Any], **columns: Any) -> World:
    """Add a unified queue and its pseudo-queues ``NAME/0``, ``NAME/1``..., alike but for the columns of each.

    Args:
        world: The world.
        name: The unified queue; ``SITE`` is its site.
        *children: Columns of each pseudo-queue, ``panda_queue`` too if need be.
        **columns: Columns of the parent, and of the pseudo-queues that say nothing else.
    """
    world.queue(name, is_unified=True, **({"capability": "ucore"} | columns))
    whole = world.tables["queues"][-1]
    for number, own in enumerate(children):
        row = whole | {"panda_queue": f"{name}/{number}", "unified_name": name, "is_unified": False}
        world.add("queues", **(row | own))
    return world


def cases(*pairs: tuple[Found, Any]) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Parametrise a test by ``found`` and what is ``expected``."""
    # a set has no order
    known = (sorted(value) if isinstance(value, set) else value for _, value in pairs)
    ids = [f"{number}-{value}"[:40] for number, value in enumerate(known)]
    return pytest.mark.parametrize(("found", "expected"), pairs, ids=ids)


def told(**found: Found | list[Found]) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Give a test what it needs by name; asked for on import, so decided together with all the rest."""
    return pytest.mark.parametrize(tuple(found), [tuple(found.values())], ids=["told"])


def merged(worlds: list[World]) -> World:
    """Put worlds into one: world i at instant i, its names behind a prefix, its tasks from 1000 i on."""
    together = World()
    together.tables.clear()
    for number, world in enumerate(worlds):
        for table, rows in world.tables.items():
            dated = "snapshot" in TABLES[table].columns()
            for row in rows:
                own = {column: _renamed(column, row[column], number) for column in row}
                together.add(table, **(own | ({"snapshot": number} if dated else {})))
    return together


def _renamed(column: str, value: Any, number: int) -> Any:
    """Return a value as it stands among many worlds."""
    prefix = f"w{number:03}~"
    if value in (None, "") or column == "snapshot":
        return value
    if column in NAMES:
        return prefix + value
    if column in LISTS:
        return [prefix + name for name in value]
    if column == "site":
        return re.sub(r"[^,\s]+", lambda name: prefix + name.group(), value)
    if column in NUMBERS:
        return number * PER_WORLD + value
    return value


def _own(name: str) -> str:
    return name.partition("~")[2]


def _by_queue(rows: list[Row]) -> dict[tuple[int, str], Row]:
    return {(row["jeditaskid"], row["panda_queue"]): row for row in rows}
