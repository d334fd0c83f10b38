"""The decision: how many of the next levels make the next pilot job, or whether tasks go one by one."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from brokerlab.errors import ConfigError, DataError
from brokerlab.workflows.dag import Dag
from brokerlab.workflows.rules import PilotRules
from brokerlab.workflows.schedule import instant, makespan

Mode = Literal["pilot", "individual"]


@dataclass(frozen=True, kw_only=True)
class Candidate:
    """A group that was looked at: the first so many levels on so many hosts."""

    levels: int  # how many
    hosts: int  # of its pilot [hosts]
    exec: float  # its run time on them [s]
    request: float  # its run time and padding [s]
    wait: float  # estimated wait of what the ratio is made of [s]
    ratio: float  # wait over run time: small is good


@dataclass(frozen=True, kw_only=True)
class Decision:
    """What becomes of the next levels."""

    mode: Mode  # ``pilot``: one job for the tasks; ``individual``: a job per task
    whole: bool  # all levels that are left were taken, and the rule for that case decided
    levels: tuple[tuple[int, ...], ...]  # the tasks of each level of the group
    hosts: int  # of the pilot [hosts]
    exec: float  # run time of the group [s]
    request: float  # walltime of the pilot [s]
    wait: float  # its estimated wait [s]
    candidates: tuple[Candidate, ...] = ()  # groups looked at, smallest first
    ear: float = 0.0  # time until the running pilots end [s]
    time: float = math.nan  # when it was decided [s]

    @property
    def tasks(self) -> tuple[int, ...]:
        """The tasks of the group, level by level."""
        return tuple(task for level in self.levels for task in level)

    def to_dict(self, dag: Dag) -> dict[str, Any]:
        """Return the decision in names and numbers."""
        names = [dag.ids[task] for task in self.tasks]
        plain = {name: getattr(self, name) for name in ("time", "ear", "mode", "whole", "hosts", "exec", "request", "wait")}  # fmt: skip
        looked_at = [vars(candidate) for candidate in self.candidates]
        return {**plain, "levels": len(self.levels), "tasks": names, "candidates": looked_at}


@dataclass(frozen=True, kw_only=True)
class Scene:
    """What a decision goes by."""

    dag: Dag  # the workflow
    levels: tuple[tuple[int, ...], ...]  # of the tasks that are neither done nor in a running pilot
    machine: int  # hosts of the machine
    wait: Wait  # estimated wait of a request
    rules: PilotRules  # how levels are grouped
    ear: float = 0.0  # time until the running pilots end [s]
    # estimates that were corrected since [s]
    estimate: Mapping[int, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Ask for each request once, and refuse impossible answers."""
        object.__setattr__(self, "wait", asked_once(self.wait))

    @property
    def height(self) -> int:
        """Number of levels left."""
        return len(self.levels)

    def hosts(self, k: int) -> int:
        """Return the hosts of a pilot of the first k levels."""
        reach = self.height if self.rules.pilot_hosts == "dag_width" else k
        return min(self.machine, max(self.dag.width(tasks) for tasks in self.levels[:reach]))

    def run_time(self, k: int, n: int) -> float:
        """Return the run time [s] of the first k levels on n hosts."""
        return makespan(self.dag, self.levels[:k], n, mode=self.rules.exec, estimate=self.estimate)

    def candidate(self, k: int) -> Candidate:
        """Return the group of the first k levels."""
        n = self.hosts(k)
        run = self.run_time(k, n)
        request = padded(n, run, self.ear, self.wait, self.rules) if self._pads_search else run
        wait = self.wait(n, request)
        return Candidate(
            levels=k, hosts=n, exec=run, request=request, wait=wait, ratio=ratio(wait, run)
        )

    @property
    def _pads_search(self) -> bool:
        return self.rules.ratio_wait == "padded"


def ratio(wait: float, run: float) -> float:
    """Return the wait per run time; a group of length 0 is as good as can be if it does not wait."""
    if run:
        return wait / run
    return math.inf if wait else 0.0


def asked_once(wait: Wait) -> Wait:
    """Return an estimate that remembers its answers and refuses impossible ones."""
    known: dict[tuple[int, float], float] = {}

    def asked(n: int, request: float) -> float:
        if (n, request) not in known:
            answer = wait(n, request)
            if not (math.isfinite(answer) and answer >= 0):
                raise DataError(
                    f"estimated wait of {n} hosts for {request:g} s: {answer!r}; a number of at least 0 [s] is allowed"
                )
            known[n, request] = answer
        return known[n, request]

    return asked


def decide(scene: Scene) -> Decision:
    """Group the next levels.

    Args:
        scene: What is left, the queue, the rules.

    Returns:
        The decision.

    Raises:
        ConfigError: No level is left.
        DataError: An impossible estimate.

    Source: workflows.md 6 (pages' ``groupByLevel`` and ``submitPilotJob``), 7.

    Example:
        >>> import polars as pl
        >>> from brokerlab.workflows.dag import workflow
        >>> tasks = pl.DataFrame({"task_id": ["A", "B"], "runtime": [4000, 1000]})
        >>> dag = workflow(tasks, pl.DataFrame({"parent": ["A"], "child": ["B"]}))
        >>> def wait(n, request):
        ...     return 700 if request <= 4500 else 4000
        >>> scene = Scene(dag=dag, levels=dag.levels, machine=4, wait=wait, rules=PilotRules("paper"))
        >>> found = decide(scene)
        >>> found.mode, len(found.levels), found.request
        ('pilot', 1, 4000)
    """
    if not scene.levels:
        raise ConfigError("nothing is left to be decided: every task is done or in a running pilot")
    taken, looked_at = group_levels(scene)
    if taken == 0 or taken == scene.height:
        return _whole(scene, looked_at)
    return _pilot(scene, taken, looked_at, whole=False)


def group_levels(scene: Scene) -> tuple[int, tuple[Candidate, ...]]:
    """Return how many levels are taken, and the groups looked at; 0 and all levels mean the whole.

    Source: workflows.md 6.1 to 6.4.
    """
    rules = scene.rules
    bound = _whole_ratio(scene) if rules.first_comparison == "whole" else math.inf
    previous, taken, viable = bound, 0, False
    looked_at: list[Candidate] = []
    last = scene.height if rules.search_whole else scene.height - 1
    for k in range(1, last + 1):
        result = scene.candidate(k)
        looked_at.append(result)
        if not viable and _too_short(scene, result) and not (k == scene.height and not taken):
            continue
        first, viable = not viable, True
        if _worse(scene, result, previous, bound):
            if rules.search == "global":
                continue
            if first and rules.first_rejected == "before":
                taken = k - 1
            break
        previous, taken = result.ratio, k
    return taken, tuple(looked_at)


def _whole_ratio(scene: Scene) -> float:
    """Return the ratio of all levels in one job, without padding."""
    n = scene.hosts(scene.height)
    run = scene.run_time(scene.height, n)
    return ratio(scene.wait(n, run), run)


def _too_short(scene: Scene, candidate: Candidate) -> bool:
    """Tell whether a group waits longer than it runs, so that it could not hide the next wait."""
    if scene.rules.skip_long_waits == "no":
        return False
    hidden = scene.ear if scene.rules.skip_long_waits == "exposed" else 0.0
    exposed = candidate.wait - hidden if candidate.wait >= hidden else candidate.wait
    return exposed > candidate.exec


def _worse(scene: Scene, candidate: Candidate, previous: float, bound: float) -> bool:
    """Tell whether a group is worse than the one before it, or than the whole where that bounds it."""
    if scene.rules.hidden_exempt and candidate.wait <= scene.ear:
        return False
    tied = scene.rules.tie == "stops" and candidate.ratio == previous and math.isfinite(previous)
    return tied or candidate.ratio > previous or candidate.ratio > bound


def _whole(scene: Scene, looked_at: Sequence[Candidate]) -> Decision:
    """Decide between one job and one per task."""
    n = scene.hosts(scene.height)
    run = scene.run_time(scene.height, n)
    wait = scene.wait(n, run)
    if scene.rules.whole_dag == "long_wait_one_job":
        individual = not run < wait / 2
    else:
        individual = wait > 2 * run
    if not individual:
        return _pilot(scene, scene.height, looked_at, whole=True)
    return Decision(
        mode="individual", whole=True, levels=scene.levels, hosts=n, exec=run,
        request=walltime(run, scene.rules), wait=wait,
        candidates=tuple(looked_at), ear=scene.ear,
    )  # fmt: skip


def _pilot(scene: Scene, k: int, looked_at: Sequence[Candidate], *, whole: bool) -> Decision:
    n = best_hosts(scene, k) if scene.rules.pilot_hosts == "best" else scene.hosts(k)
    run = scene.run_time(k, n)
    request = padded(n, run, scene.ear, scene.wait, scene.rules)
    return Decision(
        mode="pilot",
        whole=whole,
        levels=scene.levels[:k],
        hosts=n,
        exec=run,
        request=walltime(request, scene.rules),
        wait=scene.wait(n, request if scene.rules.ratio_wait == "padded" else run),
        candidates=tuple(looked_at),
        ear=scene.ear,
    )


def best_hosts(scene: Scene, k: int, *, waste_bound: float = math.inf) -> int:
    """Return the hosts on which the first k levels are expected to end first; the fewest of equal ones.

    Source: workflows.md 6.4 (``prediction``), 10 (``one_job_best``).
    """
    tasks = [task for level in scene.levels[:k] for task in level]
    least = max(scene.dag.hosts[task] for task in tasks)
    widest = min(scene.machine, max(scene.dag.width(level) for level in scene.levels[:k]))
    work = sum(scene.dag.hosts[task] * scene.estimate.get(task, scene.dag.estimate[task]) for task in tasks)  # fmt: skip
    best, chosen = math.inf, least
    for n in range(least, widest + 1):
        run = scene.run_time(k, n)
        if n > least and run and 1 - work / (n * run) > waste_bound:
            continue
        end = max(scene.wait(n, run), scene.ear) + run
        if end < best:
            best, chosen = end, n
    return chosen


Wait = Callable[[int, float], float]
"""Estimated wait [s] of a request of so many hosts for so many seconds."""
ROUNDS = 64
"""Steps of padding at most: an estimate that falls as requests grow could swing for ever."""


def padded(n: int, run: float, ear: float, wait: Wait, rules: PilotRules) -> float:
    """Return the request of a pilot before margin and rounding.

    A pilot that would start before its predecessors are done needs the gap on top of its run time.

    Source: workflows.md 7; row W9.
    """
    if rules.padding == "none" or ear <= 0 or wait(n, run) >= ear:
        return run
    if rules.padding == "halving":
        return _halving(n, run, ear, wait, rules.tolerance_s)
    slack = ear - wait(n, run)
    if rules.padding == "slack":
        while slack > rules.tolerance_s and wait(n, run + slack / 2) > ear:
            slack /= 2
        return run + slack
    return run + _bisect(n, run, ear, wait, rules.tolerance_s)


def _halving(n: int, run: float, ear: float, wait: Wait, tolerance: float) -> float:
    request = run
    for _ in range(ROUNDS):
        gap = (ear + run) - (wait(n, request) + request)
        if gap <= tolerance:
            break
        request += gap / 2
    else:
        gap = (ear + run) - (wait(n, request) + request)
    return request + max(gap, 0.0)


def _bisect(n: int, run: float, ear: float, wait: Wait, tolerance: float) -> float:
    """Return a slack whose estimated start leaves a gap of 0 to the tolerance."""
    low, high = 0.0, ear - wait(n, run)
    for _ in range(ROUNDS):
        slack = (low + high) / 2
        gap = ear - (wait(n, run + slack) + slack)
        if 0 <= gap <= tolerance:
            return slack
        low, high = (slack, high) if gap > 0 else (low, slack)
    return high


def walltime(request: float, rules: PilotRules) -> int:
    """Return the walltime [s] that is submitted for a request (workflows.md 3; row W15)."""
    wanted = request * rules.margin
    if rules.round_to == "next_minute":
        return 60 * (1 + math.floor(instant(wanted) / 60))
    return whole(wanted)


def whole(seconds: float) -> int:
    """Return the first whole second that holds a run time; the noise of its decimals is none.

    Example:
        >>> whole(0.1 + 2.7 + 0.2), whole(4.001)
        (3, 5)
    """
    return math.ceil(instant(seconds))
