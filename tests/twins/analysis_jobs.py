"""The analysis job brokerage as a plain loop: task by task, check by check, queue by queue.

Written from the chapter alone, to be read beside it, and to be compared with the library's vectorised form. No frame
is used. :func:`decide_all` decides every row of ``tasks`` in the world of its instant.
"""

from __future__ import annotations

from typing import Any

from tests.twins.analysis_checks import (
    AUTO,
    STEPS,
    Loop,
    cloudmismatch,
    excluded,
    exempt,
    is_site,
)
from tests.twins.analysis_input import Input, Local, input_of, select
from tests.twins.analysis_task import Task
from tests.twins.analysis_throttle import throttle
from tests.twins.analysis_weights import State, data_factor, mark, overloaded, state_of, weigh
from tests.twins.analysis_world import Row, World

BEST = 10
COPIES = ("localdisk", "cache", "localtape")


def decide_all(tables: dict[str, Any], *, rules: Any = "document") -> list[dict[str, Any]]:
    """Decide every row of ``tasks``.

    Returns:
        What :func:`decide` returns, with ``jeditaskid`` and ``snapshot``, in the order of ``tasks``.
    """
    worlds: dict[int, World] = {}
    found = []
    for row in tables["tasks"]:
        snapshot = row.get("snapshot") or 0
        if snapshot not in worlds:
            worlds[snapshot] = World(tables, rules, snapshot)
        key = {"jeditaskid": row["jeditaskid"], "snapshot": snapshot}
        found.append({**key, **decide(worlds[snapshot], row)})
    return found


def decide(world: World, row: Row) -> dict[str, Any]:
    """Decide where one task's jobs may go.

    Returns:
        ``throttle``, ``outcome``, ``loops``: of each walk over the checks the queues with the check that skipped
        them, ``states``: the queues that were weighed, ``weights`` and ``ranks`` of the candidates.
    """
    held = throttle(world, row)
    if held is not None:
        return _nothing(*held)
    task = Task(world, row)
    names = candidates(task)
    pool = {world.parent[name] for name in names}
    state = input_of(world, row, pool)
    if state.incomplete:
        return _nothing("input_incomplete", "temporary_error")
    walks = []
    for locality in _loops(task, state):
        walk = Walk(task, state, names, locality=locality, again=bool(walks))
        walk.go(more=locality and bool(state.datasets) and state.source)
        walks.append(walk)
        if walk.left or walk.reached_end or walk.had_temporary_issue():
            break
    return _result(task, walks)


def _nothing(reason: str, outcome: str) -> dict[str, Any]:
    return {"throttle": reason, "outcome": outcome, "loops": [], "states": {}, "weights": {}, "ranks": {}}  # fmt: skip


def _loops(task: Task, state: Input) -> list[bool]:
    """Return the walks that there are to do: with locality, without (3)."""
    if not state.datasets:
        return [False]
    if not state.source:
        return [True]
    suppressed = task.world.rules.locality_mode == "suppress" and state.relaxation is not None
    return [False] if suppressed else [True, False]


def candidates(task: Task) -> list[str]:
    """Return the queues to look at, and settle what is pre-assigned or listed (3)."""
    world, row = task.world, task.row
    if row.get("limitedsites") or not world.rules.lists_need_limitedsites:
        task.include, task.exclude = row.get("includedsite"), row.get("excludedsite") or []
    known = {name for name, queue in world.queues.items() if not queue.get("is_unified")}
    names = [name for name in sorted(known) if _runs_analysis(world, name)]
    site = row.get("site")
    if site and site in world.queues:
        task.site = world.parent[site]
        mine = [name for name in sorted(known) if world.parent[name] == task.site]
        names = sorted({*names, *mine})
    elif site:
        listed = {
            parent
            for parent in world.parent.values()
            if site in {one["ddm_endpoint_name"] for one in world.inputs(parent)}
        }
        if listed:
            task.include, task.from_endpoint = sorted(listed), True
    return names


def _runs_analysis(world: World, name: str) -> bool:
    by_flag = world.rules.grandly_unified_counts and world.catchall[name].grandly_unified
    return by_flag or world.queues[name].get("type") in ("analysis", "unified")


class Walk:
    """One walk over the checks: who is left, and why the others are not."""

    def __init__(self, task: Task, state: Input, names: list[str], *, locality: bool, again: bool):
        self.task, self.world, self.state, self.again = task, task.world, state, again
        self.left = list(names)
        self.checks: dict[str, str | None] = dict.fromkeys(names)
        self.loop = Loop(task, state, locality or not state.datasets, bool(state.datasets))
        self.data_weights: dict[str, float] = {}
        self.states: dict[str, State] = {}
        self.weights: dict[str, float] = {}
        self.ranks: dict[str, int] = {}
        self.fatal = False
        self.reached_end = False

    def skip(self, name: str, check: str) -> None:
        self.left.remove(name)
        self.checks[name] = check

    def had_temporary_issue(self) -> bool:
        """Say whether a temporary issue took a queue, which then leaves no reason to look again."""
        taken = {"cap_rt"}
        if self.world.rules.overload_scope == "all":
            taken |= {"overloaded", "overloaded_vp"}
        only_persistent = self.world.rules.second_loop == "persistent"
        return only_persistent and bool(taken & set(self.checks.values()))

    def parents(self) -> list[str]:
        return sorted({self.world.parent[name] for name in self.left})

    def go(self, *, more: bool) -> None:
        """Walk the steps of section 4, then weigh and rank; ``more`` says whether another walk could follow."""
        if self.world.rules.lists_first:
            self._lists()
        if self.loop.locality and self.state.datasets:
            self._locality()
        elif self.state.datasets and self.world.rules.data_counts_without_locality:
            self.loop.held = self._selected().queues
        for step, once in STEPS:
            self._each(step, once)
        self._lists()
        self._each(cloudmismatch, once=True)
        self._reserve()
        self._preassigned()
        self._hospital()
        self._cap_rt()
        self._overload()
        for parent in self.parents():
            self.states[parent] = state_of(self.task, parent)
            mark(self.task, self.states[parent])
        if (
            more
            and self.left
            and self.state.relaxation
            and all(one.marks for one in self.states.values())
        ):
            for name in list(self.left):
                self.skip(name, "tmp_user_problem")
        if self.left:
            self.reached_end = True
            self._weigh()
            self._final()

    def _each(self, step: Any, once: bool) -> None:
        answers: dict[str, str | None] = {}
        for name in list(self.left):
            queue = self.world.queues[name]
            of = self.world.parent_row(queue) if once else queue
            key = of["panda_queue"]
            if key not in answers:
                answers[key] = step(self.loop, of)
            if answers[key] is not None:
                self.skip(name, str(answers[key]))

    def _locality(self) -> None:
        """Check 1."""
        found = self._selected()
        self.loop.union, self.loop.with_data = found.union, found.queues
        self.loop.without_vp, self.data_weights = found.without_vp, found.weights
        for name in list(self.left):
            if self.world.parent[name] not in found.queues:
                self.skip(name, "data_locality")

    def _selected(self) -> Local:
        """Return where the input is."""
        row = self.task.row
        use_vp = not (
            self.task.merging or row.get("avoidvp") or row.get("usescout") or row.get("uselocalio")
            or self.state.distributed
        )  # fmt: skip
        pool = set(self.parents())
        return select(self.world, self.state, pool, use_vp=use_vp, site=self.task.site)

    def _lists(self) -> None:
        """Check 19b, or P3 where lists come first."""
        for name in list(self.left):
            answer = excluded(self.task, self.world.parent[name])
            if answer not in (None, AUTO):
                self.skip(name, str(answer))

    def _reserve(self) -> None:
        """Drop what AUTO kept in reserve where some listed queue is left (4.15)."""
        reserve = [n for n in self.left if excluded(self.task, self.world.parent[n]) == AUTO]
        if len(reserve) < len(self.left):
            for name in reserve:
                self.skip(name, "notincluded")

    def _preassigned(self) -> None:
        """Check 20."""
        if self.task.site is None:
            return
        others = [n for n in self.left if not is_site(self.task, self.world.queues[n])]
        all_others = bool(others) and len(others) == len(self.left)
        self.fatal = all_others and self.world.rules.preassigned_failure == "fatal"
        for name in others:
            self.skip(name, "nonpreassigned")

    def _hospital(self) -> None:
        """Check 21."""
        if not self.world.rules.code_only_checks:
            return
        ill = [n for n in self.left if self.world.parent[n].endswith("_HOSPITAL")]
        if len(ill) < len(self.left):
            for name in ill:
                self.skip(name, "hospital")

    def _cap_rt(self) -> None:
        """Check 22."""
        rules, task = self.world.rules, self.task
        if exempt(task, task.site) or not rules.cap_rt_effective:
            return
        kind = task.row.get("resource_type")
        for name in list(self.left):
            key: tuple[Any, ...] = (self.world.parent[name], task.gshare, kind)
            jobs = self.world.jobs_by_type
            if rules.counted_jobs == "queue":
                key, jobs = key[:1], self.world.jobs_everywhere
            nq = sum(jobs[*key, one] for one in ("defined", "assigned", "activated", "starting"))
            nr = jobs[*key, "running"]
            limit = 2 * max(20, nr) if rules.cap_rt_form == "twice_larger" else max(20, 2 * nr)
            if nq > limit:
                self.skip(name, "cap_rt")

    def _overload(self) -> None:
        """Check 23."""
        found = overloaded(self.loop, self.parents())
        for name in list(self.left):
            if self.world.parent[name] in found:
                self.skip(name, found[self.world.parent[name]])

    def _weigh(self) -> None:
        rows: dict[str, list[Row]] = {}
        for name in self.left:
            rows.setdefault(self.world.parent[name], []).append(self.world.queues[name])
        weigh(self.task, list(self.states.values()), rows)
        kind = "orig" if self.world.rules.basic_weight == "original" else "new"
        for name in self.left:
            parent = self.world.parent[name]
            factor = data_factor(self.loop, parent, self.data_weights)
            self.weights[name] = getattr(self.states[parent], kind) * factor

    def _final(self) -> None:
        """Order the candidates and cut the list (7)."""
        used, task = self.task.used, self.task
        first = {n: self.world.parent[n] in used and self.world.rules.used_sites_first for n in self.left}  # fmt: skip
        order = sorted(self.left, key=lambda n: (not first[n], -self.weights[n], n))
        for name in list(order):
            site = is_site(task, self.world.queues[name])
            if self.states[self.world.parent[name]].marks and not exempt(task, site):
                order.remove(name)
                self.skip(name, "badsite")
        more = not self.world.rules.best_ten_always
        most = len(order) if self.state.distributed and more else BEST
        sites = task.row.get("nsitesperjob") or 1
        if sites > 1 and not self.state.distributed and more:
            most = max(len(self.loop.with_data), sites)
        least = self._least_weight()
        for name in order[most:]:
            self.skip(name, "low_weight")
        for name in order[:most]:
            asked = self.world.rules.code_only_checks
            if asked and least and least > 0 and self.weights[name] < least:
                self.skip(name, "below_min_weight")
            elif asked and self._lacks_files(name):
                self.skip(name, "fileunavailable")
        kept = [name for name in order if name in self.left]
        self.ranks = {name: rank for rank, name in enumerate(kept, 1)}

    def _least_weight(self) -> Any:
        label = self.task.row.get("prodsourcelabel")
        for key in (f"MIN_WEIGHT_{label}_{self.task.gshare}", f"MIN_WEIGHT_{label}"):
            found = self.world.setting("jobbroker", key)
            if found is not None:
                return found
        return None

    def _lacks_files(self, name: str) -> bool:
        """Say whether a queue that uses local data only has not all of it (7.5)."""
        files = self.world.task_rows("files", self.task.id)
        everywhere = self.world.task_rows("file_locations", self.task.id)
        only_local = self.world.catchall[name].use_only_local_data
        if not only_local or not everywhere or self.state.distributed:
            return False
        places = [row for row in everywhere if row["panda_queue"] == self.world.parent[name]]
        told = {row["datasetname"] for row in places}
        for dataset in told:
            wanted = {row["lfn"] for row in files if row["datasetname"] == dataset}
            whole = any(
                wanted <= {row["lfn"] for row in places if row["datasetname"] == dataset and row["kind"] == kind}
                for kind in COPIES
            )  # fmt: skip
            if not whole:
                return True
        return not told


def _result(task: Task, walks: list[Walk]) -> dict[str, Any]:
    last = walks[-1]
    outcome = "candidates" if last.left else "fatal" if last.fatal else "temporary_error"
    return {
        "throttle": None,
        "outcome": outcome,
        "loops": [walk.checks for walk in walks],
        "states": last.states if last.reached_end else {},
        "weights": last.weights,
        "ranks": last.ranks,
    }
