"""The production job brokerage as a plain loop: task by task, check by check, queue by queue.

Written from the chapter alone, to be read beside it, and to be compared with and timed against the library's
vectorised form. No frame is used. ``index_world`` once, then ``decide`` per task; ``run`` for a recorded case.
"""

from __future__ import annotations

from typing import Any

from tests.twins.checks import STEPS, TEMPORARY, cores, scaled_wdir
from tests.twins.network import network_weight
from tests.twins.storage import input_state
from tests.twins.task import Task
from tests.twins.weights import (
    by_resource_type,
    data_factor,
    plain_weight,
    queued,
    running,
)
from tests.twins.world import Row, World

BEST = 10
GIGABYTE_MB = 1024


def index_world(tables: dict[str, Any], rules: Any = "document", snapshot: int | None = None) -> World:
    """Index the tables of section 1, once for any number of tasks.

    Args:
        tables: Table name -> list of rows (dicts), plus ``now`` (text or time) where tasks have no ``at``.
        rules: ``document``, ``production``, a dict or an object of switches.
        snapshot: Take the rows of this snapshot and those of none; every row where not given.
    """
    return World(tables, rules, snapshot)


def run(inputs: dict[str, Any], *, rules: Any = "document") -> dict[str, Any]:
    """Decide one recorded case: ``inputs`` has one ``task`` and its ``chunk``."""
    return decide(index_world(inputs, rules), case_task(inputs))


def case_task(inputs: dict[str, Any]) -> Row:
    """Return task and chunk of a recorded case as one row; the chunk's ``ramcount`` is ``chunk_ramcount``."""
    chunk = dict(inputs.get("chunk") or {})
    chunk["chunk_ramcount"] = chunk.pop("ramcount", None)
    return {**inputs["task"], **chunk, "n_ready_events": inputs.get("n_ready_events")}


def decide(world: World, row: Row, hint_queues: list[str] | None = None) -> dict[str, Any]:
    """Decide where one task's jobs may go.

    Args:
        world: What :func:`index_world` returned.
        row: Task and chunk (1.1, 1.2).
        hint_queues: Hint mode: the queues handed in.

    Returns:
        ``outcome``, ``stage`` (name of the step that left nothing), ``queues``: a row per candidate with
        ``panda_queue, skipped, check`` and, of those that got so far, ``weight, rank`` and the counts.
    """
    task = Task(world, row, hint=hint_queues is not None)
    if not task.hint and task.nucleus is not None and task.nucleus not in world.nuclei:
        return {"outcome": "unknown_nucleus", "stage": None, "queues": []}
    state = input_state(task)
    if state.incomplete:
        return {"outcome": "input_incomplete", "stage": None, "queues": []}
    names = hint_queues if hint_queues is not None else candidates(task)
    task.look_around(state)
    brokerage = Brokerage(task, names)
    brokerage.go()
    return brokerage.result()


def candidates(task: Task) -> list[str]:
    """Return the queues to look at, and set the flags of pre-assignment (3)."""
    world = task.world
    premerge = task.row.get("preassigned_site")
    if premerge and not task.premerge_timed_out():
        task.list_preassigned = True
        return [premerge, *world.readers(premerge)]
    if task.row.get("site") and not premerge:
        listed = [name.strip() for name in task.row["site"].split(",")]
        task.site_preassigned, task.list_preassigned = len(listed) == 1, len(listed) > 1
        return _expanded(world, listed)
    return [name for name in world.names if world.runs(name, "production")]


def _expanded(world: World, listed: list[str]) -> list[str]:
    """Replace unified names by their pseudo-queues (J37)."""
    found: dict[str, None] = {}
    for name in listed:
        children = [child for child in world.children.get(name, []) if child != name]
        if name in world.queues and (not children or world.rules.parent_stays_in_list):
            found[name] = None
        found.update(dict.fromkeys(children))
    return list(found)


class Brokerage:
    """The list of candidates of one task, and what became of each."""

    def __init__(self, task: Task, names: list[str]):
        self.task, self.world = task, task.world
        self.left = sorted(names)
        self.marks: dict[str, str] = {}
        self.rows: dict[str, Row] = {name: {"panda_queue": name, "check": None} for name in self.left}
        self.stage: str | None = None
        self.jumbo: list[str] = []
        self.bootstrap: list[str] = []
        self.weighed: dict[str, float] = {}

    def go(self) -> None:
        """Walk the steps until nothing is left (5)."""
        for step, once in STEPS:
            self._step(step, once)
            if not self.left:
                self.stage = step.__name__
                return
        if self.task.hint:
            self._remove_marked()
            return
        for method in (self._input_to_move, self._remove_marked, self._weigh):
            method()
            if not self.left:
                self.stage = method.__name__.strip("_")
                return
        self._rank()

    def skip(self, name: str, check: str) -> None:
        """Remove a queue for a reason."""
        self.left.remove(name)
        self.rows[name]["check"] = check
        if check == "parent":
            del self.rows[name]

    def _step(self, step: Any, once: bool) -> None:
        queues, answers = self.world.queues, {}
        for name in list(self.left):
            of = self.world.parent[name] if once else name
            if of not in answers:
                answers[of] = step(self.task, queues.get(of, queues[name]))
            check = answers[of]
            if check in TEMPORARY:
                self.marks[name] = check
            elif check is not None:
                self.skip(name, check)

    def _remove_marked(self) -> None:
        for name in list(self.left):
            if name in self.marks:
                self.skip(name, self.marks[name])

    def to_move(self, parent: str, *, tape: bool = False) -> tuple[int, int]:
        """Return what is not at a queue: MB and files (6.1)."""
        size, number = self.task.available(parent, tape=tape)
        return int((self.task.total - size) / 1048576), self.task.nfiles - number

    def _input_to_move(self) -> None:
        """Check 43a: classes A, B, C of what would have to be moved."""
        task, world = self.task, self.world
        heavy = task.iointensity > world.setting("IO_INTENSITY_CUTOFF")
        if task.site_preassigned or task.merging or task.es or not task.total or not heavy:
            return
        classes = {name: self._move_class(world.parent[name]) for name in self.left}
        best = min((found for found in classes.values() if found != "out"), default=None)
        if best is None:
            return
        for name, found in classes.items():
            if found != best:
                self.skip(name, "input_to_move")

    def _move_class(self, parent: str) -> str:
        size_limit = self.world.setting("SIZE_CUTOFF_TO_MOVE_INPUT") * GIGABYTE_MB
        number_limit = self.world.setting("NUM_CUTOFF_TO_MOVE_INPUT")
        strict = self.world.rules.io_check_strict

        def too_much(size: float, number: int) -> bool:
            if strict:
                return size >= size_limit or number >= number_limit
            return size > size_limit or number > number_limit

        (size, number), (size_t, number_t) = self.to_move(parent), self.to_move(parent, tape=True)
        if too_much(min(size, size_t), min(number, number_t)):
            return "out"
        return "tape" if too_much(size, number) else "good"

    def _weigh(self) -> None:
        """Checks 44 to 51 (6.2 to 6.6)."""
        least = self._least_weight()
        largest: tuple[int, str] | None = None
        evicted: list[str] = []
        for name in list(self.left):
            weight = self._weight_of(name)
            if weight is None:
                continue
            if name not in self.bootstrap and least > 0 and weight < least:
                self.skip(name, "below_min_weight")
                continue
            if name in self.bootstrap:
                continue
            if (self.task.row.get("t1weight") or 0) < 0 and not self.task.merging:
                if self.world.rules.single_t1_queue:
                    number = self.world.all_shares[self.world.parent[name], "running"]
                    if largest is None or number > largest[0]:
                        if largest is not None:
                            evicted.append(largest[1])
                        evicted += self.bootstrap
                        self.bootstrap = []
                        largest = (number, name)
                    else:
                        evicted.append(name)
                        continue
            self.weighed[name] = weight
        for name in evicted:
            self.weighed.pop(name, None)
            self.skip(name, "t1_not_largest")

    def _least_weight(self) -> float:
        label, share = self.task.label, self.task.row.get("gshare")
        for key in (f"MIN_WEIGHT_{label}_{share}", f"MIN_WEIGHT_{label}"):
            found = self.world.config.get(("jobbroker", key))
            if found is not None:
                return found
        return 0

    def _weight_of(self, name: str) -> float | None:
        """Return the weight of a queue; none, and the reason noted, where a check removes it."""
        task, world, rules = self.task, self.world, self.world.rules
        queue, parent = world.queues[name], world.parent[name]
        if name in task.locked:
            return self.skip(name, "locked")
        size, number = self.to_move(parent)
        if task.total and world.catchall[name].use_only_local_data and (size > 0 or number > 0):
            return self.skip(name, "local_data_only")
        counts = task.counts(parent, queue)
        available = task.available(parent)[0]
        local = task.total == 0 or available >= task.total
        many_running = running(
            counts,
            workers=self._workers(parent),
            slots=task.slots(parent),
            corecount=cores(queue),
            streams=self._streams(queue, parent),
            low_priority=task.prio <= world.setting("MAX_PRIO_TO_BOOTSTRAP"),
            rules=rules,
        )
        weight = plain_weight(many_running, counts, local=local)
        if task.total > 0:
            weight *= data_factor(task.total, available, number)
        if task.is_near_nucleus(parent):
            weight *= task.t1_factor()
        row = self.rows[name]
        active = world.setting("NW_ACTIVE") or not rules.network_needs_active
        if task.nucleus is not None:
            site = world.storage_site.get(parent)
            link = task.links.get(site)
            row["network_weight"] = network_weight(site, task.nucleus, link, task.express, world)
            if active:
                weight *= row["network_weight"]
        software = task.software(world.queues.get(parent, queue))
        weight *= software.preference
        row["weight"] = weight
        row["platform"] = software.platform
        self._note_counts(name, counts, many_running, local=local)
        check = self._cap(name, counts, many_running, local=local, active=active)
        if check is not None:
            return self.skip(name, check)
        if self._bootstraps(counts, many_running):
            self.bootstrap.append(name)
        return weight

    def _streams(self, queue: Row, parent: str) -> bool:
        """Say whether workers count as running: pilots seen by check 42, ucore and pull_ups (6.2)."""
        seen = not self.task.single_or_list and self.world.pilots(parent) > 0
        return seen and queue.get("capability") == "ucore" and queue.get("workflow") == "pull_ups"

    def _workers(self, parent: str) -> int:
        return sum(
            row["n_workers"] or 0
            for row in self.world.workers.get(parent, [])
            if row.get("status") in ("running", "submitted")
        )

    def _note_counts(self, name: str, counts: Any, many_running: int, *, local: bool) -> None:
        """Note the numbers that go with a candidate (6.4)."""
        task, world, row = self.task, self.world, self.rows[name]
        parent, queue = world.parent[name], world.queues[name]
        types = {r.get("resource_type") for r in task.resource_types.get(parent, [])} or {
            task.row.get("resource_type")
        }
        row["by_type"] = by_resource_type(
            world.by_resource_type.get(parent, []), types, local=local
        )
        limit = self.limit()
        row["nrunning"] = many_running
        if queue.get("capability") == "ucore":
            n_running, n_queued = row["by_type"] or (0, 0)
            if row["by_type"] is not None:
                n_running = max(n_running, many_running)
            row["nqueuedjobs"], cap = n_queued, max(limit, 2 * n_running)
        else:
            row["nqueuedjobs"] = queued(counts, local=local)
            cap = max(limit, 2 * many_running)
        row["nrunningjobscap"] = None if task.express else cap
        queue = world.queues.get(parent, queue)
        row["maxwdir"] = scaled_wdir(task, queue) if queue.get("maxwdir") else None

    def limit(self) -> int:
        return self.world.config.get(("jobbroker", f"NQUEUELIMITSITE_{self.task.row.get('gshare')}")) or 20

    def _cap(
        self, name: str, counts: Any, many_running: int, *, local: bool, active: bool
    ) -> str | None:
        """Checks 46 to 48 (6.4)."""
        task, world, row = self.task, self.world, self.rows[name]
        limit = self.limit() if world.rules.cap_mode == "limit" else 0
        ucore = world.queues[name].get("capability") == "ucore"
        waiting = queued(counts, local=local)
        if not task.express and not ucore and waiting > max(limit, 2 * many_running):
            return "queued_cap"
        if task.express and task.nucleus is not None and active:
            least = world.setting("NW_THRESHOLD") * world.setting("NW_WEIGHT_MULTIPLIER")
            if row["network_weight"] < least:
                return "network_weight_low"
        if not task.express and row["by_type"] is not None:
            n_running, n_queued = row["by_type"]
            if n_queued > max(limit, 2 * max(n_running, many_running)):
                return "queued_cap_rt"
        return None

    def _bootstraps(self, counts: Any, many_running: int) -> bool:
        """Say whether a queue without any job becomes a candidate of weight 0 (6.5)."""
        task, world = self.task, self.world
        nothing = not many_running and counts.idle()
        low = task.prio <= world.setting("MAX_PRIO_TO_BOOTSTRAP")
        plain = not task.merging and not task.express
        return bool(world.rules.bootstrap_first and nothing and low and plain)

    def _rank(self) -> None:
        """Best ten by weight, bootstrap first, ties by name (6.7)."""
        ordered = sorted(self.bootstrap)
        ordered += sorted(self.weighed, key=lambda name: (-self.weighed[name], name))
        if self.task.jumbo:
            for name in [name for name in ordered if self.world.catchall[name].use_jumbo_jobs]:
                self.rows[name] |= {"jumbo": True, "rank": None}
                if name in self.bootstrap:
                    self.rows[name]["weight"] = 0
                ordered.remove(name)
        for position, name in enumerate(ordered, 1):
            if position <= BEST:
                self.rows[name]["rank"] = position
                if name in self.bootstrap:
                    self.rows[name]["weight"] = 0
            else:
                self.skip(name, "rank")

    def result(self) -> dict[str, Any]:
        """Return the decision."""
        outcome = "candidates" if self.left else "no_candidates"
        rows = []
        for name in sorted(self.rows):
            row = self.rows[name]
            row.pop("by_type", None)
            rows.append({**row, "skipped": row["check"] is not None})
        return {"outcome": outcome, "stage": self.stage, "queues": rows}
