"""The analysis job brokerage, standing: prepared once, asked again and again with other counts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import polars as pl

from brokerlab.brokerage.analysis_jobs import changing, ranking
from brokerlab.brokerage.analysis_jobs.contracts import TABLES
from brokerlab.brokerage.analysis_jobs.decisions import PREASSIGNED, outcome
from brokerlab.brokerage.analysis_jobs.endpoints import endpoint_facts
from brokerlab.brokerage.analysis_jobs.facts import AnalysisWorld, ended
from brokerlab.brokerage.analysis_jobs.keys import place_of
from brokerlab.brokerage.analysis_jobs.settings import of_throttle
from brokerlab.brokerage.analysis_jobs.throttle import STATE_TABLES as THROTTLE_TABLES
from brokerlab.brokerage.analysis_jobs.throttle import planned as throttle_planned
from brokerlab.brokerage.engine.again import changes
from brokerlab.brokerage.engine.decide import in_parts
from brokerlab.brokerage.engine.evaluation import asked_of, lowest_bit
from brokerlab.brokerage.engine.pairs import Facts, looked_up
from brokerlab.brokerage.engine.rule import Rule
from brokerlab.brokerage.engine.settings import settings_read, with_settings
from brokerlab.brokerage.engine.steps import names_of, reads_of, walk
from brokerlab.brokerage.live.asked import Known, asked, places, states, with_others
from brokerlab.brokerage.live.kept import Kept, Plan, per_instant
from brokerlab.brokerage.live.ranked import Ranked, Tally, named, queue_names
from brokerlab.brokerage.live.sides import SidePlans
from brokerlab.brokerage.production_jobs.ranking import shares
from brokerlab.gdpconfig import Config
from brokerlab.numerics import IntArray

Tables = dict[str, pl.DataFrame]

STATE_TABLES = tuple(dict.fromkeys([*changing.TABLES, *THROTTLE_TABLES]))
"""Tables that may change from cycle to cycle."""
KEYS = ("t_state", "t_share", "t_types", "t_mine")
"""Numbers of tasks that stand for a state of the grid, too."""
TOGETHER = (changing.ENDED_TABLES, THROTTLE_TABLES)
"""Tables that are read together: one that is not given is the one prepared."""
LOOPS = (1, 2)
"""With locality; without."""
_NAMES = ("t_gshare", "t_resource_type", "t_user", "t_unit", "t_incomplete", "t_incomplete_allowed")
_OUTCOME = ("t_preassigned", "t_second", "t_relaxed")


@dataclass(frozen=True)
class Cycle:
    """What is done at every question.

    Attributes:
        kept: What stands of the pairs in each loop.
        tasks: Numbers of the tasks of each loop.
        plans: How the rest is found.
    """

    kept: tuple[Kept, Kept]
    tasks: tuple[IntArray, IntArray]
    plans: SidePlans = field(default_factory=SidePlans)


@dataclass(frozen=True)
class Walk:
    """What a loop decided.

    Attributes:
        rows: The rows wanted that went through it.
        pairs: Row of each open pair.
        codes: Number of the rule that removed each open pair, -1 for candidates.
        closed: Pairs that each check removed before, by row that went through it.
        late: Queues that no single check removed, ranked; ``t`` is the row wanted.
    """

    rows: IntArray
    pairs: IntArray
    codes: IntArray
    closed: IntArray
    late: pl.DataFrame


@dataclass(frozen=True)
class AnalysisStanding:
    """See :func:`brokerlab.brokerage.live.prepare`.

    Attributes:
        world: Rules, settings, tables and facts.
        checks: The checks of single queues.
        known: The tasks that may be asked for.
        defaults: ``parent, e_out_name``: default output endpoints.
        names: ``q, name`` of queues.
        ended: ``throttle, outcome``: how each task ended before any queue was looked at, by number.
        cycles: What is done at every question, by the names of the tables that change.
        root: The brokerage that this one differs from in its settings only; null: it is none of another's.
    """

    world: AnalysisWorld
    checks: tuple[Rule, ...]
    known: Known
    defaults: pl.DataFrame
    names: pl.DataFrame
    ended: pl.DataFrame
    cycles: dict[frozenset[str], Cycle] = field(default_factory=dict)
    root: AnalysisStanding | None = None

    @classmethod
    def of(cls, world: AnalysisWorld) -> AnalysisStanding:
        """Make it from tables that are prepared."""
        snapshots = world.tasks.select("snapshot").unique()
        tables = world.tables["queue_endpoints"], world.tables["storage_endpoints"]
        defaults = endpoint_facts(*tables, snapshots).select("parent", "e_out_name").unique()
        checks = world.checks
        known = Known.of(world.tasks)
        return cls(world, checks, known, defaults, queue_names(world.facts.queues), _ended(world))

    def decide(self, wanted: Any, state: Mapping[str, Any]) -> Ranked:
        """Decide for tasks in worlds; see :func:`brokerlab.brokerage.live.prepare`."""
        rows = asked(wanted, self.known)
        given = states(state, TABLES, STATE_TABLES, rows.select("world", "instant"))
        names = frozenset(given)
        cycle = self.cycle(names)
        tables = with_others(given, rows, self.world.tables, TOGETHER)
        tasks = self._tasks(rows, names, tables, cycle)
        held = self._held(rows, tasks, names, tables, cycle)
        facts = self._facts(tasks, names, tables, cycle)
        first, second = self._walks(rows, facts, held["outcome"].is_null().to_numpy(), cycle)
        order = pl.Enum(names_of(self.checks, self.world.steps))
        tally = _tally(rows.height, first, second, len(order.categories), len(self.checks))
        last = order.categories.to_list().index(PREASSIGNED)
        how = pl.DataFrame(
            {
                "outcome": held["outcome"],
                "t_preassigned": tasks["t_preassigned"],
                "n_candidates": tally.left,
                "stranger": tally.counts[:, last] > 0,
                "past": tally.counts[:, last + 1 :].any(axis=1),
            }
        ).select(outcome=outcome())
        again = pl.Series(np.unique(second.pairs))
        late = pl.concat([first.late.filter(~pl.col("t").is_in(again.implode())), second.late])
        best = late.sort("t", "q").with_columns(share=shares(pl.col("weight")))
        told = tally.told(rows, how["outcome"], order).with_columns(throttle=held["throttle"])
        return Ranked(named(best, rows, self.names), told)

    def with_config(self, config: Config) -> AnalysisStanding:
        """Return the same brokerage under other settings; only what they change is worked out anew.

        Raises:
            ConfigError: Settings that no rule can work with.
        """
        root = self.root or self
        world = root.world.with_config(config)
        found = replace(root, world=world, checks=world.checks, ended=_ended(world), cycles={})
        about = ("t", "t_second", "t_incomplete")
        same = world.tasks.select(about).equals(root.world.tasks.select(about))
        return replace(found, root=root if same else None)

    def in_loop(self, loop: int) -> Facts:
        """Return the facts of the tasks that may go through a loop, were none held back by the throttle."""
        tasks = self.world.tasks.filter(~pl.col("t_incomplete") | pl.col("t_incomplete_allowed"))
        facts = replace(self.world.facts, tasks=tasks)
        some = tasks if loop == LOOPS[0] else tasks.filter("t_second")
        return replace(self.world, facts=facts).in_loop(some.select("t"), loop)

    def plan(self, names: frozenset[str]) -> Plan:
        """Return which checks stand while these tables change."""
        facts, made = self.in_loop(LOOPS[0]), changing.facts_of(names)
        every = (1 << len(self.checks)) - 1
        return Plan.of(self.checks, facts, made, reads_of(self.world.steps), lasting=every)

    def cycle(self, names: frozenset[str]) -> Cycle:
        """Return what is done while these tables change."""
        if names not in self.cycles:
            plan = self.plan(names)
            first, second = (self.in_loop(loop) for loop in LOOPS)
            if self.root is None:
                kept = Kept.of(plan, first, in_parts), Kept.of(plan, second, in_parts)
            else:
                before, old = self.root.cycle(names), self.root.in_loop(LOOPS[0])
                changed = changes(old, first)
                kept = (
                    before.kept[0].again(plan, first, in_parts, changed),
                    before.kept[1].again(plan, second, in_parts, changed),
                )
            numbers = first.tasks["t"].to_numpy(), second.tasks["t"].to_numpy()
            self.cycles[names] = Cycle(kept, numbers)
        return self.cycles[names]

    def _tasks(
        self, rows: pl.DataFrame, names: frozenset[str], tables: Tables, cycle: Cycle
    ) -> pl.DataFrame:
        """Return the facts of the tasks wanted, one row each, as what changes is keyed by."""
        plan = cycle.kept[0].plan
        read = {"t", "jeditaskid", "at", *KEYS, *_NAMES, *_OUTCOME}
        read |= {*reads_of(self.world.steps)}
        read |= {name for bit in plan.asked for name in plan.checks[bit].reads}
        tasks = self.world.tasks
        chosen = tasks.select([name for name in tasks.columns if name in read])[rows["t"]]
        chosen = chosen.with_columns(at=pl.coalesce(rows["at"], "at"))
        keyed = per_instant(chosen, rows["instant"].to_numpy(), KEYS)
        steps = {
            "job_stats": ("t_grand", changing.with_grand),
            "task_class": ("t_class", changing.with_class),
        }
        made = [steps[name] for name in sorted(names & steps.keys())]
        if not made:
            return keyed

        def make(lazy: dict[str, pl.LazyFrame]) -> pl.LazyFrame:
            found = lazy["plain"]
            for fact, step in made:
                found = step(found.drop(fact), lazy)
            return found

        read_there = {name: tables[name] for name in names & steps.keys()}
        return cycle.plans.frame("tasks", {"plain": keyed, **read_there}, make)

    def _held(
        self, rows: pl.DataFrame, tasks: pl.DataFrame, names: frozenset[str], tables: Tables, cycle: Cycle,
    ) -> pl.DataFrame:  # fmt: skip
        """Return how each row wanted ended before any queue was looked at: ``throttle, outcome`` (null: it did not)."""
        world = self.world
        if not names & set(THROTTLE_TABLES):
            return self.ended[rows["t"]]
        raw = world.tables["tasks"][rows["t"]].with_columns(
            snapshot=rows["instant"], at=tasks["at"]
        )
        raw = with_settings(raw, settings_read(of_throttle()), world.config, place_of)

        def make(lazy: dict[str, pl.LazyFrame]) -> pl.LazyFrame:
            held = throttle_planned(lazy["raw"], lazy, rules=world.rules)
            known = lazy["tasks"].select("t")
            found = ended(lazy["tasks"], held)
            return known.join(found, on="t", how="left", maintain_order="left")

        read = {name: tables[name] for name in THROTTLE_TABLES}
        found = cycle.plans.frame("throttle", {"raw": raw, "tasks": tasks, **read}, make)
        return found.select("throttle", "outcome")

    def _facts(
        self, tasks: pl.DataFrame, names: frozenset[str], tables: Tables, cycle: Cycle
    ) -> Facts:
        """Return the facts of what changes."""
        ids, defaults = self.world.ids, self.defaults
        made = [name for name in changing.TABLES if name in names]
        read = {name: tables[name] for name in changing.TABLES if name in tables}
        sides = cycle.plans.sides(
            "sides",
            {"tasks": tasks, **read},
            lambda lazy: changing.changing(lazy["tasks"], lazy, ids, defaults, made),
        )
        return replace(self.world.facts, tasks=tasks, sides=sides)

    def _walks(
        self, rows: pl.DataFrame, facts: Facts, goes_on: Any, cycle: Cycle
    ) -> tuple[Walk, Walk]:
        """Go through the loop that asks for input at the queue, then through the other one, as ``decide`` does."""
        second = facts.tasks["t_second"].to_numpy()
        suppressed = np.zeros(rows.height, dtype=bool)
        if self.world.rules.locality_mode == "suppress":
            suppressed = second & facts.tasks["t_relaxed"].is_not_null().to_numpy()
        one = self._walk(1, np.flatnonzero(goes_on & ~suppressed), rows, facts, cycle)
        order = names_of(self.checks, self.world.steps)
        final = [order.index(name) for name in ranking.final_of(self.world.steps)]
        left = np.zeros(rows.height, dtype=bool)
        left[one.pairs[(one.codes < 0) | np.isin(one.codes, final)]] = True
        others = np.flatnonzero(goes_on & (suppressed | (second & ~left)))
        if not len(others):  # most often
            return one, Walk(others, others, others, one.closed[:0], one.late.clear())
        return one, self._walk(2, others, rows, facts, cycle)

    def _walk(
        self, loop: int, chosen: IntArray, rows: pl.DataFrame, facts: Facts, cycle: Cycle
    ) -> Walk:
        """Decide one loop for some of the rows wanted."""
        kept, plan = cycle.kept[loop - 1], cycle.kept[loop - 1].plan
        place = places(cycle.tasks[loop - 1], rows["t"].to_numpy()[chosen])
        pairs = kept.pairs(place)
        pairs = pairs.with_columns(t=pl.Series(chosen[pairs["t"].to_numpy()]))
        local = replace(facts, tasks=facts.tasks.with_columns(t_local=pl.lit(loop == 1)))
        checks = [plan.checks[bit] for bit in plan.asked]
        read = {*reads_of(self.world.steps), *(name for check in checks for name in check.reads)}
        numbers = looked_up(local, pairs.select("t", "q"), read - set(plan.columns))
        found = pairs.hstack(numbers.drop("t", "q"))
        failed = found["failed"].to_numpy()
        if checks:
            bits = {plan.checks[bit].name: bit for bit in plan.asked}
            again = asked_of(found, checks, bits)
            failed = failed | again["failed"].to_numpy()
        codes = lowest_bit(failed).copy()
        steps = self.world.steps
        names = pl.Enum(names_of(self.checks, steps))
        late = cycle.plans.frame(
            "ranking",
            {"left": found.filter(pl.Series(codes < 0))},
            lambda lazy: walk(lazy["left"].sort("t", "q"), steps, names),
        )
        reasons = late["check"].to_physical().cast(pl.Int64).fill_null(-1)
        codes[codes < 0] = reasons.to_numpy()
        best = late.filter(pl.col("rank").is_not_null()).select("t", "q", "weight", "rank")
        return Walk(chosen, found["t"].to_numpy(), codes, kept.closed[place], best)


def _ended(world: AnalysisWorld) -> pl.DataFrame:
    """Return ``throttle, outcome`` of every task, by number; null: it did not end before queues were looked at."""
    rows = world.tasks.select("t").join(world.outcomes, on="t", how="left", maintain_order="left")
    return rows.sort("t").select("throttle", "outcome")


def _tally(n_rows: int, first: Walk, second: Walk, n_names: int, n_checks: int) -> Tally:
    """Count why queues were skipped in the last loop of each row."""
    again = np.zeros(n_rows, dtype=bool)
    again[second.rows] = True
    closed = np.zeros((n_rows, n_checks), dtype=np.int64)
    closed[first.rows] = first.closed
    closed[second.rows] = second.closed
    last = ~again[first.pairs]
    codes = np.concatenate([first.codes[last], second.codes])
    return Tally.of(codes, np.concatenate([first.pairs[last], second.pairs]), closed, n_names)
