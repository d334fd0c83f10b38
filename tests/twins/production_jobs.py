"""The production job brokerage as a plain loop: task by task, check by check, queue by queue.

Written from the chapter alone, to be read beside it, and to be compared with and timed against the library's
vectorised form. No frame is used. ``index_world`` once, then ``decide`` per task; ``run`` for a recorded case.
"""

from __future__ import annotations

from typing import Any

from tests.twins.checks import STEPS, TEMPORARY
from tests.twins.final import (
    LargestOnly,
    Weighed,
    bootstraps,
    candidate_counts,
    cap,
    first_checks,
    least_weight,
    to_move,
    weigh,
)
from tests.twins.storage import input_state
from tests.twins.task import Task
from tests.twins.world import Row, World

BEST = 10
GIGABYTE_MB = 1024


def index_world(
    tables: dict[str, Any], rules: Any = "document", snapshot: int | None = None
) -> World:
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


def decide(
    world: World, row: Row, hint_queues: list[str] | None = None, *, every_check: bool = False
) -> dict[str, Any]:
    """Decide where one task's jobs may go.

    Args:
        world: What :func:`index_world` returned.
        row: Task and chunk (1.1, 1.2).
        hint_queues: Hint mode: the queues handed in.
        every_check: Ask queues that are skipped the checks that follow, too; the answer is the same.

    Returns:
        ``outcome``, ``stage`` (name of the step that left nothing), ``queues``: a row per candidate with
        ``panda_queue, skipped, check`` and, of those that got so far, ``weight, rank`` and the counts.
    """
    task = Task(world, row, hint=hint_queues is not None)
    if not task.hint and task.nucleus is not None and task.nucleus not in world.nuclei:
        return {"outcome": "unknown_nucleus", "stage": None, "queues": []}
    state = input_state(task)
    if state.incomplete and world.rules.code_only_checks:
        return {"outcome": "input_incomplete", "stage": None, "queues": []}
    names = hint_queues if hint_queues is not None else candidates(task)
    task.look_around(state)
    brokerage = Brokerage(task, names, every_check)
    brokerage.go()
    return brokerage.result()


def decide_all(tables: dict[str, Any], *, rules: Any = "document") -> list[dict[str, Any]]:
    """Decide every row of ``tasks``, each in the world of its ``snapshot``.

    Returns:
        What :func:`decide` returns, with ``jeditaskid`` and ``snapshot``, in the order of ``tasks``.
    """
    worlds: dict[int, World] = {}
    found = []
    for row in tables["tasks"]:
        snapshot = row.get("snapshot") or 0
        if snapshot not in worlds:
            worlds[snapshot] = index_world(tables, rules, snapshot)
        key = {"jeditaskid": row["jeditaskid"], "snapshot": snapshot}
        found.append({**key, **decide(worlds[snapshot], row)})
    return found


def candidates(task: Task) -> list[str]:
    """Return the queues to look at, and set the flags of pre-assignment (3)."""
    world = task.world
    premerge = task.row.get("preassigned_site")
    if premerge and not task.premerge_timed_out():
        task.list_preassigned = True
        readers = [name for name in world.readers(premerge) if _may_stay(world, name)]
        own = _expanded(world, [premerge]) if not world.rules.parent_stays_in_list else [premerge]
        return [name for name in dict.fromkeys((*own, *readers)) if name in world.queues]
    if task.row.get("site") and not premerge:
        listed = [name.strip() for name in task.row["site"].split(",")]
        task.site_preassigned, task.list_preassigned = len(listed) == 1, len(listed) > 1
        return _expanded(world, listed)
    return [name for name in world.names if world.runs_production(name)]


def _may_stay(world: World, name: str) -> bool:
    return world.rules.parent_stays_in_list or not world.queues[name].get("is_unified")


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

    def __init__(self, task: Task, names: list[str], every_check: bool = False):
        self.task, self.world, self.every_check = task, task.world, every_check
        self.left = sorted(names)
        self.marks: dict[str, str] = {}
        self.rows: dict[str, Row] = {
            name: {"panda_queue": name, "check": None} for name in self.left
        }
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
        for name in list(self.rows if self.every_check else self.left):
            of = self.world.parent[name] if once else name
            if of not in answers:
                answers[of] = step(self.task, queues.get(of, queues[name]))
            check = answers[of]
            if self.every_check and name not in self.left:
                continue
            if check in TEMPORARY:
                self.marks[name] = check
            elif check is not None:
                self.skip(name, check)

    def _remove_marked(self) -> None:
        for name in list(self.left):
            if name in self.marks:
                self.skip(name, self.marks[name])

    def _input_to_move(self) -> None:
        """Check 43a: classes A, B, C of what would have to be moved."""
        task, world = self.task, self.world
        heavy = task.iointensity > world.setting("IO_INTENSITY_CUTOFF")
        exempt = task.site_preassigned or task.merging or task.es or not task.total
        if not heavy or (exempt and world.rules.io_check_exempts):
            return
        classes = {name: self._move_class(world.parent[name]) for name in self.left}
        best = min((found for found in classes.values() if found != "out"), default=None)
        if not world.rules.io_check_relents:
            best = "good"
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
                return bool(size >= size_limit or number >= number_limit)
            return bool(size > size_limit or number > number_limit)

        size, number = to_move(self.task, parent)
        size_t, number_t = to_move(self.task, parent, tape=True)
        if too_much(min(size, size_t), min(number, number_t)):
            return "out"
        return "tape" if too_much(size, number) else "good"

    def _weigh(self) -> None:
        """Checks 44 to 51, in this order queue by queue (6.2 to 6.6)."""
        task, least = self.task, least_weight(self.task)
        largest = LargestOnly(task)
        for name in list(self.left):
            jumbo = task.jumbo_at(name)
            check = None if jumbo else first_checks(task, name)
            if check is not None:
                self.skip(name, check)
                continue
            found = weigh(task, name)
            self._note(found)
            check = None if jumbo else cap(task, found)
            if check is not None:
                self.skip(name, check)
            elif bootstraps(task, found):
                self.bootstrap.append(name)
            elif jumbo:
                self.weighed[name] = found.weight
            elif least > 0 and found.weight < least:
                self.skip(name, "below_min_weight")
            else:
                self.weighed[name] = found.weight
                for other in largest.evicts(name, self.bootstrap) if largest.applies else ():
                    self._evict(other)

    def _note(self, found: Weighed) -> None:
        """Write down what a queue was weighed by."""
        row = self.rows[found.name]
        row |= {"weight": found.weight, "platform": found.platform}
        if found.network_weight is not None:
            row["network_weight"] = found.network_weight
        row |= candidate_counts(self.task, found)

    def _evict(self, name: str) -> None:
        self.weighed.pop(name, None)
        if name in self.bootstrap:
            self.bootstrap.remove(name)
        self.skip(name, "t1_not_largest")

    def _rank(self) -> None:
        """Best ten by weight, bootstrap first, ties by name (6.7)."""
        ordered = sorted(self.bootstrap)
        ordered += sorted(self.weighed, key=lambda name: (-self.weighed[name], name))
        for name in [name for name in ordered if self.task.jumbo_at(name)]:
            self.rows[name] |= {"jumbo": True, "rank": None}
            ordered.remove(name)
        for position, name in enumerate(ordered, 1):
            if position <= BEST:
                self.rows[name]["rank"] = position
            else:
                self.skip(name, "rank")
        for name in set(self.bootstrap) & set(self.left):
            self.rows[name]["weight"] = 0

    def result(self) -> dict[str, Any]:
        """Return the decision; a parent of pseudo-queues has a row only where it is a candidate (J37)."""
        outcome = "candidates" if self.left else "no_candidates"
        rows = []
        for name in sorted(self.rows):
            row = self.rows[name]
            skipped = row["check"] is not None
            if not (skipped and self.world.queues[name].get("is_unified")):
                rows.append({**row, "skipped": skipped})
        return {"outcome": outcome, "stage": self.stage, "queues": rows}
