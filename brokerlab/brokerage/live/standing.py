"""A brokerage of queues that stands: prepared once, asked again and again with other counts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
import polars as pl

from brokerlab.brokerage.analysis_jobs.rules import AnalysisRules
from brokerlab.brokerage.engine.again import changes
from brokerlab.brokerage.engine.brokerage import Brokerage
from brokerlab.brokerage.engine.decide import named, parts
from brokerlab.brokerage.engine.decisions import Results, with_names
from brokerlab.brokerage.engine.evaluation import asked_of
from brokerlab.brokerage.engine.lookup import Known, Lookup, lazy_sides, number_of, with_facts
from brokerlab.brokerage.engine.pairs import Facts, looked_up
from brokerlab.brokerage.engine.plans import Frames, Lazy, Plans
from brokerlab.brokerage.engine.steps import Derived, names_of, reads_of
from brokerlab.brokerage.engine.world import World, with_some_place
from brokerlab.brokerage.live.asked import KEY, asked, at_instants, states, with_others
from brokerlab.brokerage.live.kept import Kept, Plan, per_instant
from brokerlab.brokerage.production_jobs.brokerage import BROKERAGE
from brokerlab.brokerage.production_jobs.ranking import shares
from brokerlab.brokerage.rules import ProductionRules
from brokerlab.errors import ConfigError
from brokerlab.gdpconfig import Config

STAGES = ("jobs", "analysis")
"""Stages that can stand."""


@dataclass(frozen=True)
class Ranked:
    """The queues that may receive jobs.

    Attributes:
        queues: One row per candidate that is ranked: ``jeditaskid, snapshot, world, panda_queue`` (Enum of all
            queues), ``weight``, ``share`` (of the task's jobs expected there; 1 in all of a task's candidates),
            ``rank``; sorted by the first four.
        outcomes: One row per row wanted, sorted: ``jeditaskid, snapshot, world``, ``outcome`` (``candidates``,
            ``no_candidates``..., as ``decide`` says), ``check`` (why most queues were skipped, the first of equals; null:
            none was), ``n_queues`` looked at, ``n_candidates``, and what else of it is said before any queue is looked at.
    """

    queues: pl.DataFrame
    outcomes: pl.DataFrame


def prepare(
    tables: Mapping[str, Any],
    *,
    brokerage: Brokerage[Any, Any] = BROKERAGE,
    rules: ProductionRules | AnalysisRules | str | None = None,
    config: Config | None = None,
) -> Standing:
    """Prepare a brokerage that is asked again and again with other counts.

    What does not change from cycle to cycle is worked out here and at the first question, the rest at every question, by
    the same functions as in ``decide``. ``tables`` are those of ``decide`` of the brokerage (of production jobs or of users);
    ``tasks`` has one row per (jeditaskid, snapshot), a snapshot being a time over which queues, endpoints, links and replicas
    stay as they are.

    Returns:
        The brokerage. ``standing.decide(wanted, state)`` answers with :class:`Ranked`:

        * ``wanted``: ``jeditaskid, snapshot`` (null = 0), ``world`` (i64: number of the simulated state that the task
          sees; of one snapshot), perhaps ``at`` (time of the cycle, for the age of what the state tells; null: that of
          the task's row). The same task may come with several worlds.
        * ``state``: some of the tables of :func:`tables_that_change` by name, ``world`` in the place of ``snapshot``. A table
          that is not given keeps what ``tables`` said, and has no rows if that did not have it either. Each new choice of
          tables costs as much as the first question.

        ``standing.with_config(config)`` is the same brokerage under other settings; ``standing.with_config(*configs)`` asks
        it under several at once, ``setting`` in ``wanted`` (i64, null = 0) being the number of a task's.

    Raises:
        SchemaError: Unknown tables, values of another type.
        ConfigError: Settings that no rule can work with, or another brokerage: the choice of a nucleus cannot stand.
    """
    if not isinstance(brokerage, Brokerage):
        raise ConfigError(
            f"brokerage={brokerage!r}: allowed are values of Brokerage, such as brokerage.plugins.get(name)"
        )
    if brokerage.stage not in STAGES:
        raise ConfigError(f"stage {brokerage.stage!r} cannot stand; allowed are {STAGES}")
    later = tables_that_change(brokerage)
    return Standing((brokerage.prepare(tables, rules=rules, config=config, later=later),))


@lru_cache(maxsize=16)
def tables_that_change(brokerage: Brokerage[Any, Any]) -> tuple[str, ...]:
    """Return the names of the input tables that may change from cycle to cycle."""
    lookups = brokerage.lookups(brokerage.rule_set())
    return tuple(dict.fromkeys(name for each in lookups for name in each.tables))


@dataclass(frozen=True)
class Cycle:
    """What stands while some tables change: lookups in them, which checks stand, by locality loop what stands of pairs."""

    lookups: tuple[Lookup, ...]
    plan: Plan
    kept: Mapping[int, Kept]
    plans: Plans = field(default_factory=Plans)

    def hopeful(self, numbers: pl.Series) -> pl.Series:
        """Tell of numbers of tasks whether one may find a queue, in some loop."""
        found = []
        for kept in self.kept.values():
            places = kept.places(numbers)
            found.append((places >= 0) & np.append(kept.hopeful, False)[places])
        return pl.Series(np.any(found, axis=0))


@dataclass(frozen=True)
class Standing:
    """See :func:`prepare`.

    Attributes:
        worlds: What is decided on, under each of the settings; what no setting changes is the same in all of them.
        root: The brokerage that this one differs from in its settings only; null: it is none of another's.
        cycles: What stands, by the names of the tables that change.
    """

    worlds: tuple[World, ...]
    root: Standing | None = None
    cycles: dict[frozenset[str], Cycle] = field(default_factory=dict)

    @property
    def world(self) -> World:
        """Rules, the first settings, tables and facts."""
        return self.worlds[0]

    def with_config(self, *configs: Config) -> Standing:
        """Return the same brokerage under other settings, or under several at once; only what they change is worked out anew."""
        root = self.root or self
        return Standing(tuple(root.world.with_config(config) for config in configs), root)

    def decide(self, wanted: Any, state: Mapping[str, Any], *, hopeless: bool = True) -> Ranked:
        """Decide for tasks in worlds; see :func:`prepare`.

        Without the ``hopeless`` ones, those that find no queue whatever changes, outcomes are of the others, and queues are the same.
        """
        world, n_tasks = self.world, self.world.tasks.height
        rows = asked(wanted, self._known, len(self.worlds))
        rows = rows.with_columns(number=pl.col("setting") * n_tasks + pl.col("t"))
        allowed = tables_that_change(world.brokerage)
        cycle = self.cycle(frozenset({*allowed} & state.keys()))
        if not hopeless:
            rows = rows.filter(cycle.hopeful(rows["number"]))
        given = states(state, world.brokerage.tables, allowed, rows.select("world", "instant"))
        tables = with_others(given, rows, world.tables, {each.tables for each in self._changing})
        tasks = self._tasks(rows, tables, cycle)
        ended = self._ended(rows, tasks, cycle)
        going = ended["outcome"].is_null() & pl.Series(cycle.kept[1].places(rows["number"]) >= 0)
        made = {name: world.base.made[name] for each in self._changing for name in each.made}
        made = {name: at_instants(frame, rows, "snapshot") for name, frame in made.items()}
        sides = cycle.plans.sides(
            "sides", {"tasks": tasks, **made, **tables},
            lambda lazy: lazy_sides(
                [each for each in cycle.lookups if each.of_pairs], self._made(lazy["tasks"], lazy)
            ),
        )  # fmt: skip
        none = world.facts.listed.clear()
        facts = replace(world.facts, tasks=tasks.filter(going), sides=sides, listed=none)
        order = pl.Enum(names_of(world.checks, world.steps))
        counts = np.zeros((rows.height, len(order.categories)), dtype=np.int64)
        left = np.zeros(rows.height, dtype=np.int64)
        bits = {cycle.plan.checks[bit].name: bit for bit in cycle.plan.asked}
        checks = [cycle.plan.checks[bit] for bit in cycle.plan.asked]
        read = {name for check in checks for name in check.when.meta.root_names()}

        def failures(part: Facts, loop: int) -> pl.DataFrame:
            """Ask the checks that do not stand about the pairs that are open; those that are closed only count."""
            kept, t = cycle.kept[loop], part.tasks["t"].to_numpy()
            places = kept.places(part.tasks["number"])
            counts[t] = 0
            counts[t, : kept.closed.shape[1]] = kept.closed[places]
            found = kept.pairs(t, places)
            numbers = looked_up(part, found.select("t", "q"), read - cycle.plan.columns)
            found = found.hstack(numbers.drop("t", "q"))
            if not checks:
                return found
            anew = asked_of(found, checks, bits)["failed"]
            return found.with_columns(pl.col("failed") | anew)

        ranked = [pl.DataFrame(schema={"t": pl.Int64, "q": pl.Int64, **world.brokerage.ranks})]
        for part in parts(replace(world, facts=facts), failures, brief=True):
            t, codes = part.pairs["t"].to_numpy(), part.pairs["check"].to_physical()
            removed = codes.is_not_null().to_numpy()
            np.add.at(counts, (t[removed], codes.drop_nulls().to_numpy()), 1)
            left += np.bincount(t[~removed], minlength=len(left))
            best = pl.col("rank").is_not_null() & pl.col("check").is_null()
            ranked.append(part.pairs.filter(best).select(ranked[0].columns))
        queues = pl.concat(ranked).sort("t", "q").with_columns(share=shares(pl.col("weight")))
        keys = rows.select(*KEY, t=pl.int_range(pl.len(), dtype=pl.Int64))
        named_queues = with_names(world.facts, keys, queues)
        skipped = counts.sum(axis=1)
        most = np.where(skipped > 0, counts.argmax(axis=1), -1)
        outcomes = rows.select(KEY).with_columns(
            outcome=self._outcomes(tasks, ended["outcome"], counts, left, order),
            check=named(most, order),
            n_queues=pl.Series(skipped + left),
            n_candidates=pl.Series(left),
        )
        return Ranked(
            named_queues.select(*KEY, "panda_queue", "weight", "share", "rank"),
            outcomes.with_columns(ended.drop("outcome").get_columns()),
        )

    def cycle(self, names: frozenset[str]) -> Cycle:
        """Return what stands while these tables change."""
        if names not in self.cycles:
            self.cycles[names] = self._cycle(names)
        return self.cycles[names]

    def _cycle(self, names: frozenset[str]) -> Cycle:
        """Work out what stands; what settings do not change is that of the root, where they leave the same tasks."""
        lookups = tuple(each for each in self._changing if names & {*each.tables})
        plan = Plan.of(self.world, {name for each in lookups for name in each.facts})
        loops = (1,) if self.world.second is None else (1, 2)
        kept: dict[int, list[Kept]] = {loop: [] for loop in loops}
        root = None if self.root is None else self.root.world
        before = {} if self.root is None else self.root.cycle(names).kept
        first = None if root is None else self._open(root)
        for world in self.worlds:
            facts = self._open(world)
            same = first is not None and first.tasks["t"].equals(facts.tasks["t"])
            changed = changes(first, facts) if first is not None and same else {}
            for loop in loops:
                local = replace(world, facts=facts).in_loop(facts.tasks.select("t"), loop)
                old = before[loop] if same else None
                kept[loop].append(Kept.of(plan, local, old, changed))
        n_tasks = self.world.tasks.height
        stacked = {loop: Kept.stacked(each, n_tasks) for loop, each in kept.items()}
        return Cycle(lookups, plan, stacked)

    @cached_property
    def _known(self) -> pl.DataFrame:
        """The tasks that may be asked for: ``jeditaskid, snapshot, t``."""
        tasks = self.world.tasks.select(*KEY[:2], "t")
        return tasks.unique(KEY[:2], keep="first", maintain_order=True)

    @cached_property
    def _changing(self) -> tuple[Lookup, ...]:
        """What is looked up in tables that may change."""
        return tuple(each for each in self.world.lookups if each.tables)

    @cached_property
    def _derived(self) -> tuple[Derived, ...]:
        """What is made of facts of tasks."""
        return self.world.brokerage.derived(self.world.rules)

    @cached_property
    def _results(self) -> Results:
        """How decisions end."""
        found: Results = self.world.brokerage.decisions.results(self.world)
        return found

    @cached_property
    def _numbers(self) -> set[str]:
        """Numbers of tasks that stand for a state of the grid, too."""
        pairs = (each.task for each in self._changing if each.of_pairs)
        return {number_of(task) for task in pairs if "snapshot" in task}

    @cached_property
    def _reads(self) -> set[str]:
        """Facts of tasks that are read at a question, but for those of checks."""
        made_of = (name for each in self._changing for name in (*each.task, *each.reads))
        before = self.world.brokerage.before(self.world.rules)
        ending = (name for rule in before for name in rule.reads)
        own = {"t", "jeditaskid", "at", *self._numbers, *self.world.reads}
        return {*own, *made_of, *ending, *reads_of(self._derived)}

    @cached_property
    def _set(self) -> pl.DataFrame:
        """The facts of tasks that are not the same under all settings, one setting after the other."""
        first, *others = (world.tasks for world in self.worlds)
        names = [
            name for name in first.columns if any(not first[name].equals(o[name]) for o in others)
        ]
        return pl.concat(
            [frame.select(names) for frame in (first, *others)], how="vertical_relaxed"
        )

    @cached_property
    def _known_ends(self) -> pl.DataFrame:
        """``number, outcome`` (and why) of the tasks that end before any queue is looked at, under what was prepared."""
        n_tasks = self.world.tasks.height
        return pl.concat(
            world.outcomes.drop("detail", strict=False).with_columns(pl.col("t") + setting * n_tasks)
            for setting, world in enumerate(self.worlds)
        ).rename({"t": "number"})  # fmt: skip

    def _open(self, world: World) -> Facts:
        """Return the facts of the tasks that may be looked at, whatever of what may change held them back."""
        changing = {name for each in self._changing for name in each.facts}
        before = world.brokerage.before(world.rules)
        free = [rule.name for rule in before if changing & {*rule.when.meta.root_names()}]
        ended = world.outcomes.filter(~pl.col("throttle").is_in(free)) if free else world.outcomes
        tasks = world.tasks.join(ended, on="t", how="anti", maintain_order="left")
        return with_some_place(replace(world.facts, tasks=tasks, listed=world.known.lists))

    def _made(self, tasks: pl.LazyFrame, lazy: Lazy) -> Known:
        """Return what is known at a question."""
        made = {name: frame for name, frame in lazy.items() if name not in self.world.tables}
        return replace(self.world.known, tasks=tasks, tables=lazy, made=made)

    def _tasks(self, rows: pl.DataFrame, tables: Frames, cycle: Cycle) -> pl.DataFrame:
        """Return the facts of the tasks wanted, one row each, as what changes is keyed by."""
        world, checks = self.world, cycle.plan.checks
        read = {*self._reads, *(name for bit in cycle.plan.asked for name in checks[bit].reads)}
        columns = [name for name in world.tasks.columns if name in read]
        chosen = world.tasks.select(columns)[rows["t"]]
        if differ := [name for name in columns if name in self._set.columns]:
            chosen = chosen.with_columns(self._set.select(differ)[rows["number"]].get_columns())
        own = {"at": rows["at"], "t_at_s": rows["at"].dt.epoch("s")}
        times = {name: pl.coalesce(at, name) for name, at in own.items() if name in columns}
        placed = chosen.with_columns(rows["number"], **times)
        keyed = per_instant(placed, rows["instant"].to_numpy(), self._numbers)
        of_tasks = [each for each in cycle.lookups if not each.place]
        if not of_tasks:
            return keyed

        def make(lazy: Lazy) -> pl.LazyFrame:
            tasks = lazy["plain"]
            for each in of_tasks:
                tasks = with_facts(tasks, each, self._made(tasks, lazy))
            for derived in self._derived:
                tasks = tasks.with_columns(**derived.columns)
            return tasks

        names = sorted({name for each in of_tasks for name in each.tables})
        frames = {"plain": keyed, **{name: tables[name] for name in names}}
        return cycle.plans.frame("tasks", frames, make)

    def _ended(self, rows: pl.DataFrame, tasks: pl.DataFrame, cycle: Cycle) -> pl.DataFrame:
        """Return ``outcome`` (and why) of the rows that end before any queue is looked at; null: they do not."""
        brokerage, rules = self.world.brokerage, self.world.rules
        reads = {name for rule in brokerage.before(rules) for name in rule.reads}
        if not reads & {name for each in cycle.lookups for name in each.facts}:
            numbers = rows.select("number")
            known = numbers.join(self._known_ends, on="number", how="left", maintain_order="left")
            return known.drop("number")

        def make(lazy: Lazy) -> pl.LazyFrame:
            ended = brokerage.ends(self._made(lazy["tasks"], lazy))
            return lazy["tasks"].select("t").join(ended, on="t", how="left", maintain_order="left")

        return cycle.plans.frame("ends", {"tasks": tasks}, make).drop("t")

    def _outcomes(
        self, tasks: pl.DataFrame, ended: pl.Series, counts: Any, left: Any, names: pl.Enum
    ) -> pl.Series:
        """Return how the rows end, as decisions say it of the checks that removed their queues."""
        how = tasks.with_columns(ended, n_candidates=pl.Series(left))
        if self._results.sums:
            row, check = np.nonzero(counts)
            removed = pl.DataFrame({"t": row, "check": named(check, names)})
            sums = removed.group_by("t").agg(**self._results.sums)
            how = how.join(sums, on="t", how="left", maintain_order="left")
        return how.select(outcome=self._results.outcome)["outcome"]
