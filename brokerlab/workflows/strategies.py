"""The ways to submit a workflow that are compared."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any, Literal

from brokerlab.errors import ConfigError, nearest
from brokerlab.workflows.dag import Dag
from brokerlab.workflows.decide import Decision, Scene, best_hosts, decide, padded, walltime
from brokerlab.workflows.queues import Queue
from brokerlab.workflows.rules import PilotRules

Again = Literal["start", "end", "never"]


@dataclass(frozen=True, kw_only=True)
class View:
    """What a strategy sees when a decision is due."""

    dag: Dag  # the workflow
    queue: Queue  # the queue, to be asked for waits
    tasks: frozenset[int]  # neither done nor in a job
    ear: float  # time until the running pilots end [s]
    rules: PilotRules  # of the strategy
    now: float  # the present [s]
    # estimates found too short, raised [s]
    estimate: Mapping[int, float] = field(default_factory=dict)

    @cached_property
    def scene(self) -> Scene:
        """The levels that are left, with what a decision about them goes by."""
        return Scene(
            dag=self.dag, levels=self.dag.levels_of(self.tasks), machine=self.queue.hosts, wait=self.queue.wait,
            rules=self.rules, ear=self.ear, estimate=self.estimate,
        )  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Strategy:
    """A way to submit a workflow."""

    label: str  # its name in results
    plan: Callable[[View], Decision]  # what to do when a decision is due
    # when the next one is: at the start of a pilot, at its end, or never (but after an expiry)
    again: Again
    rules: PilotRules  # of padding, walltimes and grouping
    records: bool = False  # whether its decisions are kept


def strategy(name: str, *, rules: PilotRules | None = None, **options: Any) -> Strategy:
    """Return a strategy by name (workflows.md 10)."""
    kind, _, variant = name.partition(":")
    if kind == "pilot_levels":
        if options or (rules is not None and variant):
            raise ConfigError(
                f"strategy {name!r}: give the rule set by name or by rules=, and no options; "
                f"these are rules={rules and rules.digest}, {', '.join(sorted(options)) or 'no options'}"
            )
        chosen = rules or _variant(variant or "notes")
        label = name if variant else _label(chosen)
        serial: Again = "end" if variant == "paper_serial" else "start"
        return Strategy(label=label, plan=_group, again=serial, rules=chosen, records=True)
    if kind not in _PLANS or variant:
        raise ConfigError(f"strategy {name!r}: {nearest(name, NAMES)}")
    plan, again, allowed = _PLANS[kind]
    unknown = sorted(options.keys() - allowed)
    if unknown:
        raise ConfigError(
            f"strategy {name!r}: {unknown[0]}: {nearest(unknown[0], allowed or ['no option'])}"
        )
    usual = rules or PilotRules("paper")
    return Strategy(label=name, plan=partial(plan, **options), again=again, rules=usual)


def partition(groups: tuple[int, ...]) -> Strategy:
    """Return the strategy that submits the levels in groups of these sizes, as ``level_overlap`` does with single ones.

    Source: workflows.md 10 (``best_partition``).
    """
    plan = partial(_partition, groups=groups)
    label = "partition:" + "+".join(map(str, groups))
    return Strategy(label=label, plan=plan, again="start", rules=PilotRules("paper"))


def _variant(name: str) -> PilotRules:
    if name == "paper_idle":
        return PilotRules("paper", cancel_idle=True)
    return PilotRules("paper" if name == "paper_serial" else name)


def _label(rules: PilotRules) -> str:
    changed = "".join(f",{name}={value}" for name, value in rules.changed.items())
    return f"pilot_levels:{rules.rules}{changed}"


def _group(view: View) -> Decision:
    return replace(decide(view.scene), time=view.now)


def _individual(view: View) -> Decision:
    return Decision(
        mode="individual", whole=True, levels=view.scene.levels, hosts=1, exec=math.nan, request=math.nan, wait=math.nan
    )  # fmt: skip


def _pilot(view: View, k: int, *, n: int = 0, pads: bool = True) -> Decision:
    """Return a pilot of the first k levels, on hosts for its widest level unless told otherwise."""
    scene = view.scene
    hosts = n or min(view.queue.hosts, max(view.dag.width(level) for level in scene.levels[:k]))
    run = scene.run_time(k, hosts)
    request = padded(hosts, run, view.ear, scene.wait, view.rules) if pads else run
    return Decision(
        mode="pilot", whole=k == scene.height, levels=scene.levels[:k], hosts=hosts, exec=run,
        request=walltime(request, view.rules), wait=math.nan, ear=view.ear, time=view.now,
    )  # fmt: skip


def _one_job(view: View) -> Decision:
    return _pilot(view, view.scene.height, pads=False)


def _one_job_best(view: View, waste_bound: float = math.inf) -> Decision:
    scene = view.scene
    n = best_hosts(scene, scene.height, waste_bound=waste_bound)
    return _pilot(view, scene.height, n=n, pads=False)


def _level(view: View) -> Decision:
    return _pilot(view, 1, pads=False)


def _level_overlap(view: View) -> Decision:
    return _pilot(view, 1)


def _partition(view: View, groups: tuple[int, ...]) -> Decision:
    """Take the levels up to the end of the group in which the first level left stands."""
    levels = view.scene.levels
    height, gone = sum(groups), 0
    first = height - len(levels)
    for size in groups:
        gone += size
        if gone > first:
            return _pilot(view, min(gone - first, len(levels)))
    return _pilot(view, len(levels))


_Plan = tuple[Callable[..., Decision], Again, tuple[str, ...]]
_PLANS: Mapping[str, _Plan] = {
    "one_job": (_one_job, "never", ()),
    "one_job_best": (_one_job_best, "never", ("waste_bound",)),
    "one_job_per_task": (_individual, "never", ()),
    "level": (_level, "end", ()),
    "level_overlap": (_level_overlap, "start", ()),
}
WORDS = {
    "pilot_levels:notes": "grouping (notes)",
    "pilot_levels:paper": "grouping (paper)",
    "pilot_levels:paper_idle": "grouping (paper), idle cancelled",
    "pilot_levels:paper_serial": "grouping (paper) without overlap",
    "pilot_levels:peer": "grouping (peer)",
    "one_job": "one job",
    "one_job_best": "one job, best width",
    "one_job_per_task": "one job per task",
    "level": "one job per level",
    "level_overlap": "job per level, overlapping",
    "best_partition": "best partition (hindsight)",
}
"""What each is called on a page."""
NAMES = tuple(WORDS)
"""What can be compared; ``best_partition`` is a search, see `brokerlab.workflows.manager`."""
