"""A brokerage of queues that stands: prepared once, asked again and again with other counts."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import polars as pl

from brokerlab.brokerage.engine.again import changes
from brokerlab.brokerage.engine.brokerage import Brokerage
from brokerlab.brokerage.engine.decide import first_reasons, in_parts
from brokerlab.brokerage.engine.decide import named as in_words
from brokerlab.brokerage.engine.decisions import Results
from brokerlab.brokerage.engine.evaluation import asked_of
from brokerlab.brokerage.engine.lookup import (
    Known,
    LazySide,
    Lookup,
    lazy_sides,
    number_of,
    with_facts,
)
from brokerlab.brokerage.engine.pairs import Facts, looked_up
from brokerlab.brokerage.engine.plans import Frames, Lazy, Plans
from brokerlab.brokerage.engine.steps import Derived, names_of, reads_of, walk
from brokerlab.brokerage.engine.world import World, with_some_place
from brokerlab.brokerage.live.asked import (
    KEY,
    asked,
    at_instants,
    places,
    states,
    with_others,
)
from brokerlab.brokerage.live.kept import Kept, Plan, per_instant
from brokerlab.brokerage.live.ranked import Ranked, Tally, named, queue_names
from brokerlab.brokerage.production_jobs.ranking import shares
from brokerlab.gdpconfig import Config
from brokerlab.numerics import IntArray


@dataclass(frozen=True)
class Stage:
    """What of a brokerage changes from cycle to cycle.

    Attributes:
        world: Rules, settings, tables and facts.
    """

    world: World

    @cached_property
    def lookups(self) -> tuple[Lookup, ...]:
        """What is looked up in tables that may change."""
        return tuple(each for each in self.world.lookups if each.tables)

    @staticmethod
    def tables(brokerage: Brokerage[Any, Any]) -> tuple[str, ...]:
        """Return the tables that may change from cycle to cycle."""
        lookups = brokerage.lookups(brokerage.rule_set())
        names = (name for each in lookups for name in each.tables)
        return tuple(dict.fromkeys(names))

    @cached_property
    def results(self) -> Results:
        """What is kept of decisions, and how they end."""
        found: Results = self.world.brokerage.decisions.results(self.world)
        return found

    @cached_property
    def allowed(self) -> tuple[str, ...]:
        """The tables that may change."""
        return self.tables(self.world.brokerage)

    @cached_property
    def together(self) -> set[tuple[str, ...]]:
        """Tables that are read together: one that is not given is the one prepared."""
        return {each.tables for each in self.lookups}

    @cached_property
    def numbers(self) -> set[str]:
        """Numbers of tasks that stand for a state of the grid, too."""
        return {
            number_of(each.task)
            for each in self.lookups
            if each.of_pairs and "snapshot" in each.task
        }

    @cached_property
    def reads(self) -> set[str]:
        """Facts of tasks that what changes is made from."""
        looked_up = (name for each in self.lookups for name in (*each.task, *each.reads))
        ending = self.world.brokerage.before(self.world.rules)
        before = (name for rule in ending for name in rule.reads)
        return {*looked_up, *before, *reads_of(self.derived)}

    @cached_property
    def derived(self) -> tuple[Derived, ...]:
        """What is made of facts of tasks."""
        return self.world.brokerage.derived(self.world.rules)

    @cached_property
    def open(self) -> Facts:
        """The facts of the tasks that may be looked at, whatever of what may change held them back."""
        world = self.world
        ended = world.outcomes
        if self._may_free:
            ended = ended.filter(~pl.col("throttle").is_in([*self._may_free]))
        tasks = world.tasks.join(ended, on="t", how="anti", maintain_order="left")
        return with_some_place(replace(world.facts, tasks=tasks, listed=world.known.lists))

    @cached_property
    def _may_free(self) -> set[str]:
        """The rules before any queue is looked at that read what may change."""
        changing = self.facts_of(self.allowed)
        before = self.world.brokerage.before(self.world.rules)
        return {rule.name for rule in before if changing & {*rule.when.meta.root_names()}}

    def facts_of(self, tables: Collection[str]) -> set[str]:
        """Return the facts that are made from some of the tables."""
        return {name for each in self._made_of(tables) for name in each.facts}

    def sides(self, lazy: Lazy, tables: Collection[str]) -> Sequence[LazySide]:
        """Return the facts of pairs made from some of the tables."""
        chosen = [each for each in self._made_of(tables) if each.of_pairs]
        return lazy_sides(chosen, self._known(lazy["tasks"], lazy))

    def with_facts(self, tasks: pl.LazyFrame, lazy: Lazy, tables: Collection[str]) -> pl.LazyFrame:
        """Return tasks with their facts made from some of the tables."""
        for each in self._made_of(tables):
            if not each.place:
                tasks = with_facts(tasks, each, self._known(tasks, lazy))
        for derived in self.derived:
            tasks = tasks.with_columns(**derived.columns)
        return tasks

    def _made_of(self, tables: Collection[str]) -> list[Lookup]:
        return [each for each in self.lookups if {*each.tables} & {*tables}]

    def _known(self, tasks: pl.LazyFrame, lazy: Lazy) -> Known:
        made = {name: frame for name, frame in lazy.items() if name not in self.world.tables}
        return replace(self.world.known, tasks=tasks, tables=lazy, made=made)

    def frames(self, rows: pl.DataFrame) -> Frames:
        """Return what facts are made from besides tasks and state, at the instants of the rows."""
        made = {name: self.world.base.made[name] for each in self.lookups for name in each.made}
        return {name: at_instants(frame, rows, "snapshot") for name, frame in made.items()}

    def at(self, tasks: pl.DataFrame, at: pl.Series) -> pl.DataFrame:
        """Return tasks at other times; null: their own."""
        seconds = at.dt.epoch("s").alias("s")
        times = {"at": pl.coalesce(at, "at"), "t_at_s": pl.coalesce(seconds, "t_at_s")}
        return tasks.with_columns(
            **{name: time for name, time in times.items() if name in tasks.columns}
        )

    def ended(
        self, rows: pl.DataFrame, tasks: pl.DataFrame, known: pl.DataFrame, tables: Collection[str], plans: Plans,
    ) -> pl.DataFrame:  # fmt: skip
        """Return ``outcome`` (and why) of the rows that end before any queue is looked at; null: they do not.

        Args:
            rows: What is wanted.
            tasks: Its facts.
            known: ``t, setting, outcome`` (and why) of those that end so under what was prepared.
            tables: Names of the tables that change.
            plans: How it is found.
        """
        before = self.world.brokerage.before(self.world.rules)
        if not self.facts_of(tables) & {name for rule in before for name in rule.reads}:
            keys = ["t", "setting"]
            found = rows.select(keys).join(known, on=keys, how="left", maintain_order="left")
            return found.drop(keys)

        def make(lazy: Lazy) -> pl.LazyFrame:
            ended = self.world.brokerage.ends(self._known(lazy["tasks"], lazy))
            return lazy["tasks"].select("t").join(ended, on="t", how="left", maintain_order="left")

        return plans.frame("ends", {"tasks": tasks}, make).drop("t")

    def outcomes(self, tasks: pl.DataFrame, ended: pl.Series, tally: Tally) -> pl.Series:
        """Return how the rows end, as decisions say it of the checks that removed their queues."""
        results, how = self.results, tasks.with_columns(ended, n_candidates=pl.Series(tally.left))
        if results.sums:
            names = pl.Enum(names_of(self.world.checks, self.world.steps))
            row, check = np.nonzero(tally.counts)
            removed = pl.DataFrame({"t": row, "check": in_words(check, names)})
            sums = removed.group_by("t").agg(**results.sums)
            how = how.join(sums, on="t", how="left", maintain_order="left")
        return how.select(outcome=results.outcome)["outcome"]

    @property
    def loops(self) -> tuple[int, ...]:
        """Locality loops."""
        return (1,) if self.world.second is None else (1, 2)

    def in_loop(self, loop: int) -> Facts:
        """Return the facts of the tasks that may go through a loop."""
        world = replace(self.world, facts=self.open)
        return world.in_loop(self.open.tasks.select("t"), loop)


@dataclass(frozen=True)
class Loops:
    """What stands under some settings.

    Attributes:
        kept: Loop to what stands of the pairs.
        tasks: Loop to the numbers of its tasks.
    """

    kept: Mapping[int, Kept]
    tasks: Mapping[int, IntArray]

    def pairs(
        self, loop: int, rows: IntArray, numbers: IntArray
    ) -> tuple[IntArray, pl.DataFrame, IntArray]:
        """Return what stands of the tasks that go through a loop.

        Args:
            loop: Which.
            rows: Rows wanted.
            numbers: Their tasks.

        Returns:
            The rows that went through it; ``t`` (row), ``q, failed`` and the facts kept of their open pairs; pairs that each
            check removed before, by row that went through it.
        """
        place = places(self.tasks[loop], numbers)
        chosen, place = rows[place >= 0], place[place >= 0]
        found = self.kept[loop].pairs(place)
        found = found.with_columns(t=pl.Series(chosen[found["t"].to_numpy()]))
        return chosen, found, self.kept[loop].closed[place]


@dataclass(frozen=True)
class Cycle:
    """What is done at every question.

    Attributes:
        settings: What stands under each of the settings.
        plans: How the rest is found.
    """

    settings: tuple[Loops, ...]
    plans: Plans = field(default_factory=Plans)

    @property
    def plan(self) -> Plan:
        """Which checks stand, the same under any settings."""
        return self.settings[0].kept[1].plan

    def pairs(
        self, loop: int, rows: IntArray, setting: IntArray, numbers: IntArray
    ) -> tuple[IntArray, pl.DataFrame, IntArray]:
        """Return what stands of the tasks, sorted by row; see :meth:`Loops.pairs`."""
        if len(self.settings) == 1:
            return self.settings[0].pairs(loop, rows, numbers)
        parts = []
        for number, each in enumerate(self.settings):
            mine = setting == number
            parts.append(each.pairs(loop, rows[mine], numbers[mine]))
        chosen = np.concatenate([part[0] for part in parts])
        closed = np.concatenate([part[2] for part in parts])
        order = np.argsort(chosen)
        pairs = pl.concat([part[1] for part in parts]).sort("t", maintain_order=True)
        return chosen[order], pairs, closed[order]


@dataclass(frozen=True)
class Walk:
    """What a loop decided.

    Attributes:
        rows: The rows wanted that went through it.
        pairs: Row of each open pair.
        codes: Number of the rule that removed each open pair, -1 for candidates.
        closed: Pairs that each check removed before, by row that went through it.
        ranked: Queues that are ranked: ``t`` (the row wanted), ``q, weight, rank``.
    """

    rows: IntArray
    pairs: IntArray
    codes: IntArray
    closed: IntArray
    ranked: pl.DataFrame


@dataclass(frozen=True)
class Standing:
    """See :func:`brokerlab.brokerage.live.prepare`.

    Attributes:
        stages: What is decided, and what of it changes, under each of the settings.
        known: ``jeditaskid, snapshot, t`` of the tasks that may be asked for.
        names: ``q, name`` of queues.
        cycles: What is done at every question, by the names of the tables that change.
        root: The brokerage that this one differs from in its settings only; null: it is none of another's.
    """

    stages: tuple[Stage, ...]
    known: pl.DataFrame
    names: pl.DataFrame
    cycles: dict[frozenset[str], Cycle] = field(default_factory=dict)
    root: Standing | None = None

    @classmethod
    def of(cls, stage: Stage) -> Standing:
        """Make it from tables that are prepared."""
        world = stage.world
        known = world.tasks.unique(KEY[:2], keep="first", maintain_order=True)
        return cls((stage,), known.select(*KEY[:2], "t"), queue_names(world.facts.queues))

    @property
    def stage(self) -> Stage:
        """What is decided under the first settings; what no setting changes is the same under all."""
        return self.stages[0]

    @property
    def world(self) -> World:
        """Rules, the first settings, tables and facts."""
        return self.stage.world

    def decide(self, wanted: Any, state: Mapping[str, Any]) -> Ranked:
        """Decide for tasks in worlds; see :func:`brokerlab.brokerage.live.prepare`."""
        stage, world = self.stage, self.world
        rows = asked(wanted, self.known, len(self.stages))
        brokerage = world.brokerage
        given = states(state, brokerage.tables, stage.allowed, rows.select("world", "instant"))
        names = frozenset(given)
        cycle = self.cycle(names)
        tables = with_others(given, rows, world.tables, stage.together)
        tasks = self._tasks(rows, names, tables, cycle)
        ended = stage.ended(rows, tasks, self._known_ends, names, cycle.plans)
        facts = self._facts(rows, tasks, names, tables, cycle)
        setting = rows["setting"].to_numpy()
        walks = self._walks(facts, setting, ended["outcome"].is_null().to_numpy(), cycle)
        order = pl.Enum(names_of(world.checks, world.steps))
        tally = _tally(rows.height, walks, len(order.categories), len(world.checks))
        outcome = stage.outcomes(tasks, ended["outcome"], tally)
        told = tally.told(rows, outcome, order).with_columns(ended.drop("outcome").get_columns())
        best = walks[-1].ranked
        for earlier in walks[:-1]:
            again = pl.Series(walks[-1].rows, dtype=pl.Int64)
            best = pl.concat([earlier.ranked.filter(~pl.col("t").is_in(again.implode())), best])
        best = best.sort("t", "q").with_columns(share=shares(pl.col("weight")))
        return Ranked(named(best, rows, self.names), told)

    def with_config(self, *configs: Config) -> Standing:
        """Return the same brokerage under other settings, or under several at once; only what they change is worked out anew.

        Raises:
            ConfigError: Settings that no rule can work with.
        """
        root = self.root or self
        worlds = [root.world.with_config(config) for config in configs]
        stages = tuple(replace(root.stage, world=world) for world in worlds)
        return replace(root, stages=stages, cycles={}, root=root)

    def cycle(self, names: frozenset[str]) -> Cycle:
        """Return what is done while these tables change."""
        if names not in self.cycles:
            self.cycles[names] = Cycle(tuple(self._loops(stage, names) for stage in self.stages))
        return self.cycles[names]

    def _loops(self, stage: Stage, names: frozenset[str]) -> Loops:
        """Return what stands under some settings: what they do not change is taken from the root, if it has the same tasks."""
        world, root = stage.world, self.root
        loops = {loop: stage.in_loop(loop) for loop in stage.loops}
        numbers = {loop: facts.tasks["t"].to_numpy() for loop, facts in loops.items()}
        plan = Plan.of(
            world.checks, loops[1], stage.facts_of(names), world.step_reads, lasting=world.lasting
        )
        if root is not None:
            before = root.cycle(names).settings[0]
            if all(np.array_equal(before.tasks[loop], numbers[loop]) for loop in loops):
                changed = changes(root.stage.in_loop(1), loops[1])
                kept = {
                    loop: before.kept[loop].again(plan, facts, in_parts, changed)
                    for loop, facts in loops.items()
                }
                return Loops(kept, numbers)
        kept = {loop: Kept.of(plan, facts, in_parts) for loop, facts in loops.items()}
        return Loops(kept, numbers)

    @cached_property
    def _set(self) -> tuple[frozenset[str], pl.DataFrame]:
        """The facts of tasks that are not the same under all settings: their names, and their values, one setting after the other."""
        first, *others = (stage.world.tasks for stage in self.stages)
        names = [
            name
            for name in first.columns
            if any(not first[name].equals(other[name]) for other in others)
        ]
        parts = [frame.select(names) for frame in (first, *others)]
        return frozenset(names), pl.concat(parts, how="vertical_relaxed")

    @cached_property
    def _known_ends(self) -> pl.DataFrame:
        """The rows of ``World.outcomes`` under every setting, with its number."""
        return pl.concat(
            stage.world.outcomes.drop("detail", strict=False).with_columns(setting=pl.lit(number, pl.Int64))
            for number, stage in enumerate(self.stages)
        )  # fmt: skip

    def _tasks(
        self, rows: pl.DataFrame, names: frozenset[str], tables: Frames, cycle: Cycle
    ) -> pl.DataFrame:
        """Return the facts of the tasks wanted, one row each, as what changes is keyed by."""
        stage, world, plan = self.stage, self.world, cycle.plan
        read = {"t", "jeditaskid", "at", *stage.numbers, *stage.reads, *world.reads}
        read |= {name for bit in plan.asked for name in plan.checks[bit].reads}
        names_set, values = self._set
        chosen = world.tasks.select([name for name in world.tasks.columns if name in read])[
            rows["t"]
        ]
        if differ := [name for name in chosen.columns if name in names_set]:
            own = values.select(differ)[rows["setting"] * world.tasks.height + rows["t"]]
            chosen = chosen.with_columns(own.get_columns())
        placed = stage.at(chosen, rows["at"]).with_columns(number="t")
        keyed = per_instant(placed, rows["instant"].to_numpy(), stage.numbers)
        made = [each for each in stage.lookups if not each.place and names & {*each.tables}]
        of_tasks = {name for each in made for name in each.tables}
        if not of_tasks:
            return keyed
        read_there = {name: tables[name] for name in sorted(of_tasks)}
        return cycle.plans.frame(
            "tasks", {"plain": keyed, **read_there},
            lambda lazy: stage.with_facts(lazy["plain"], lazy, names),
        )  # fmt: skip

    def _facts(
        self, rows: pl.DataFrame, tasks: pl.DataFrame, names: frozenset[str], tables: Frames, cycle: Cycle,
    ) -> Facts:  # fmt: skip
        """Return the facts of what changes."""
        frames = {"tasks": tasks, **self.stage.frames(rows), **tables}
        sides = cycle.plans.sides("sides", frames, lambda lazy: self.stage.sides(lazy, names))
        return replace(self.world.facts, tasks=tasks, sides=sides)

    def _walks(self, facts: Facts, setting: IntArray, goes_on: Any, cycle: Cycle) -> list[Walk]:
        """Go through the loops as ``decide`` does; the second is there only if some task goes through it."""
        second = self.world.second
        if second is None:
            return [self._walk(1, np.flatnonzero(goes_on), setting, facts, cycle)]
        asked = facts.tasks.select(may=second.may, at_once=second.at_once)
        may, skips = (asked[name].to_numpy() for name in asked.columns)
        one = self._walk(1, np.flatnonzero(goes_on & ~skips), setting, facts, cycle)
        order = names_of(self.world.checks, self.world.steps)
        final = [order.index(name) for name in second.final]
        left = np.zeros(facts.tasks.height, dtype=bool)
        left[one.pairs[(one.codes < 0) | np.isin(one.codes, final)]] = True
        others = np.flatnonzero(goes_on & (skips | (may & ~left)))
        return [one, self._walk(2, others, setting, facts, cycle)] if len(others) else [one]

    def _walk(
        self, loop: int, wanted: IntArray, setting: IntArray, facts: Facts, cycle: Cycle
    ) -> Walk:
        """Decide one loop for some of the rows wanted."""
        world, plan, steps = self.world, cycle.plan, self.world.steps
        number = facts.tasks["number"].to_numpy()[wanted]
        chosen, pairs, closed = cycle.pairs(loop, wanted, setting[wanted], number)
        local = replace(facts, tasks=facts.tasks.with_columns(t_local=pl.lit(loop == 1)))
        checks = [plan.checks[bit] for bit in plan.asked]
        read = {*world.step_reads, *(name for check in checks for name in check.reads)}
        numbers = looked_up(local, pairs.select("t", "q"), read - set(plan.columns))
        found = pairs.hstack(numbers.drop("t", "q"))
        failed = found["failed"].to_numpy()
        if checks:
            bits = {plan.checks[bit].name: bit for bit in plan.asked}
            failed = failed | asked_of(found, checks, bits)["failed"].to_numpy()
        names = pl.Enum(names_of(world.checks, steps))
        codes, mark = first_reasons(failed, world.lasting)
        marked = found.drop("failed").with_columns(mark=in_words(mark, names))
        late = cycle.plans.frame(
            "ranking", {"left": marked.filter(pl.Series(codes < 0))}, lambda lazy: walk(lazy["left"], steps, names)
        )  # fmt: skip
        world.check_weights(late)
        codes = codes.copy()
        codes[codes < 0] = late["check"].to_physical().cast(pl.Int64).fill_null(-1).to_numpy()
        best = late.filter(pl.col("rank").is_not_null()).select("t", "q", "weight", "rank")
        return Walk(chosen, found["t"].to_numpy(), codes, closed, best)


def _tally(n_rows: int, walks: Sequence[Walk], n_names: int, n_checks: int) -> Tally:
    """Count why queues were skipped in the last loop of each row."""
    last = np.zeros(n_rows, dtype=np.int64)
    closed = np.zeros((n_rows, n_checks), dtype=np.int64)
    for number, each in enumerate(walks):
        last[each.rows] = number
        closed[each.rows] = each.closed
    kept = [last[each.pairs] == number for number, each in enumerate(walks)]
    codes = np.concatenate([each.codes[rows] for each, rows in zip(walks, kept, strict=True)])
    pairs = np.concatenate([each.pairs[rows] for each, rows in zip(walks, kept, strict=True)])
    return Tally.of(codes, pairs, closed, n_names)
