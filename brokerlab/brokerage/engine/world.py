"""What a brokerage decides on: facts, checks and steps under a configuration."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Self, TypeAlias

import polars as pl

from brokerlab.brokerage.engine.lookup import (
    Known,
    Lookup,
    Made,
    Reads,
    sides_of,
    watching,
    with_facts,
)
from brokerlab.brokerage.engine.own import refuse_own
from brokerlab.brokerage.engine.pairs import Facts, Side
from brokerlab.brokerage.engine.rule import SETTING, Rule
from brokerlab.brokerage.engine.steps import (
    MARKED,
    Step,
    differing,
    marks_of,
    reads_of,
    rules_of,
    with_settings,
)
from brokerlab.brokerage.inputs.frames import run
from brokerlab.gdpconfig import Config
from brokerlab.matching.rules import MatchingRules

if TYPE_CHECKING:
    from brokerlab.brokerage.engine.brokerage import Brokerage

Evaluate: TypeAlias = Callable[[Facts, int], pl.DataFrame]
"""Says which checks skip which pairs in a locality loop: ``t, q, failed``, sorted."""
Off: TypeAlias = Mapping[str, pl.Expr]
"""What if: name of a rule to the rows that it lets pass."""


@dataclass(frozen=True)
class Part:
    """What was decided on some tasks.

    Attributes:
        loop: Locality loop: 1; 2 where user tasks are decided again without locality.
        pairs: ``t, q, failed, check`` and the ranks of the brokerage, sorted by t, q.
        late: What the steps make of the pairs that no single check removed for good; null in hint mode.
    """

    loop: int
    pairs: pl.DataFrame
    late: pl.DataFrame | None


@dataclass(frozen=True, kw_only=True)
class SecondLoop:
    """Tasks that the first loop leaves nothing are decided again, ``t_local`` being false.

    Attributes:
        may: The tasks that may go through it.
        at_once: Those of them that skip the first loop.
        final: Rules that leave a task in its loop, whatever they remove.
    """

    may: pl.Expr
    at_once: pl.Expr
    final: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class World:
    """The settings and tables of a replay, and what was made of them.

    Attributes:
        given: What was given, before anything was looked up.
        base: What no setting changes.
        sides: Facts of pairs that no setting changes.
        read: What the base read of the rules.
        read_by_side: What each of the sides read of them besides.
        read_later: What that read of them which settings change.
        asked: The rules of the brokerage, before some are silenced: checks and steps.
        known: What is known under the configuration.
        facts: What the checks and steps read, of tasks that are looked at.
        tasks: Facts of all tasks.
        outcomes: ``t``, and how they ended, of tasks that end before any place is looked at.
    """

    brokerage: Brokerage[Any, Any]
    given: Known
    base: Known
    lookups: tuple[Lookup, ...]
    sides: tuple[Side, ...]
    read: Reads
    read_by_side: tuple[Reads, ...]
    read_later: Reads
    asked: tuple[tuple[Rule, ...], tuple[Step, ...]]
    known: Known
    config: Config
    facts: Facts
    tasks: pl.DataFrame
    outcomes: pl.DataFrame
    checks: tuple[Rule, ...]
    steps: tuple[Step, ...]
    second: SecondLoop | None

    @property
    def rules(self) -> Any:
        """Rule set of the brokerage."""
        return self.base.rules

    @property
    def tables(self) -> Mapping[str, pl.DataFrame]:
        """The input tables."""
        return self.base.given

    @property
    def matching(self) -> MatchingRules:
        """Rule set of the text rules."""
        return self.base.matching

    @property
    def hint(self) -> bool:
        """Only what could run is asked."""
        return bool(self.base.options.get("hint"))

    @property
    def unasked(self) -> dict[str, tuple[str, ...]]:
        """Rules that remove nothing, as a table that they need is missing: table to their names."""
        return self.brokerage.unasked(self.base.missing)

    @property
    def lasting(self) -> int:
        """Bits of the checks that remove at once; others mark, and the last mark removes later."""
        later = any(step is MARKED for step in self.steps)
        return sum(
            1 << bit
            for bit, check in enumerate(self.checks)
            if check.kind == "persistent" or not later
        )

    @property
    def keys(self) -> list[str]:
        """The gdpconfig keys that it reads, as the catalogue writes them, sorted."""
        read = (name for name in self.tasks.columns if name.startswith(SETTING))
        looked_up = (key for each in self.lookups for key in each.keys)
        behind = (*looked_up, *(key for each in self.brokerage.made for key in each.keys))
        return sorted({*behind, *(name.removeprefix(SETTING) for name in read)})

    @property
    def step_reads(self) -> frozenset[str]:
        """Facts of pairs that steps read."""
        return _reads(self.steps)

    @property
    def reads(self) -> set[str]:
        """Facts of pairs that steps read and results report."""
        return {*self.step_reads, *self.brokerage.also_read}

    @property
    def place_of(self) -> Callable[[str], str]:
        """Key to ``app/component`` in which the brokerage looks it up."""
        return self.brokerage.place_of

    def differ(self, rules: Any, matching: MatchingRules, read: Reads) -> bool:
        """Tell whether other rules differ from those of the world in anything that was ``read``."""
        pairs = ((self.rules, rules, read[0]), (self.matching, matching, read[1]))
        return any(getattr(a, name) != getattr(b, name) for a, b, names in pairs for name in names)

    def with_rules(self, rules: Any, matching: MatchingRules | None = None) -> World:
        """Return the world under other rules, and text rules (null: the set of the same name); only what they change is worked out anew."""
        texts = matching or MatchingRules(rules.rules)
        known = replace(self.given, rules=rules, matching=texts, config=self.config)
        return self.brokerage.world_of(known, self)

    def with_config(self, config: Config, same: World | None = None) -> World:
        """Return the world under another configuration; only what that changes is worked out anew.

        ``same``: a world of the same base under this configuration; where what settings change read nothing there in which the rules
        differ, it is taken over.
        """
        brokerage, lookups = self.brokerage, self.lookups
        if same is not None and same.differ(self.rules, self.matching, self.read_later):
            same = None
        before = same or self
        raw = self.base.given["tasks"]
        vos = raw["vo"].unique().to_list() if "vo" in raw.columns else ["atlas"]

        def stays(made: Lookup | Made) -> bool:
            """Tell whether no key behind it has another value."""
            if same is not None:
                return True
            if (
                any("<" in key for key in made.keys)
                or config.has_history
                or self.config.has_history
            ):
                return False
            return not differing(config, self.config, made.keys, brokerage.place_of, vos)

        known = replace(self.base, config=config)
        for each in brokerage.made:
            kept = each.name in before.known.made and stays(each)
            made = (
                before.known.made[each.name] if kept else each.of(watching(known, self.read_later))
            )
            known = known.with_made(**{each.name: made})
        frame = known.tasks
        for lookup in lookups:
            if lookup.keys and not lookup.place:
                frame = with_facts(frame, lookup, watching(known, self.read_later))
        tasks = with_settings_of(self, run(frame), config)
        known = replace(known, tasks=tasks.lazy())
        silent = frozenset(name for rules in self.unasked.values() for name in rules)
        outcomes = run(brokerage.ends(known)).filter(~pl.col("outcome").is_in([*silent]))
        if same is not None and not tasks.equals(same.tasks):  # of which the rest is made
            same, before = None, self
        changing = [each for each in lookups if each.of_pairs and each.keys]
        old = {tuple(side.missing): side for side in before.facts.sides[len(before.sides) :]}
        watched = watching(known, self.read_later)
        new = (
            old[tuple(each.facts)] if tuple(each.facts) in old and stays(each) else sides_of([each], watched)[0]
            for each in changing
        )  # fmt: skip
        facts = with_some_place(
            Facts(
                tasks=tasks.join(outcomes, on="t", how="anti", maintain_order="left"),
                queues=run(known.places),
                listed=known.lists.join(outcomes, on="t", how="anti"),
                sides=(*self.sides, *new),
            )
        )
        local = _local(facts, value=True) if brokerage.second else facts
        checks, then = _silenced(*self.asked, silent)
        refuse_own(brokerage, checks, then, local.schema)
        second = brokerage.second(known.rules, then) if brokerage.second else None
        return replace(
            self,
            known=known,
            config=config,
            facts=facts,
            tasks=tasks,
            outcomes=outcomes,
            checks=checks,
            steps=then,
            second=second,
        )

    def of_tasks(self, tasks: pl.DataFrame) -> Self:
        """Return what is known of some tasks, ``t``."""
        kept = {
            name: getattr(self, name).join(tasks, on="t", how="semi", maintain_order="left")
            for name in ("tasks", "outcomes")
        }
        return replace(self, facts=self.facts.of_tasks(tasks), **kept)

    def decided_with(self, tasks: pl.DataFrame) -> pl.DataFrame:
        """Return ``t`` of all tasks that are decided otherwise if these, ``t``, are: those of the same cycle."""
        cycle = self.brokerage.cycle(self.rules)
        if not cycle:
            return tasks
        cycles = self.tasks.join(tasks, on="t", how="semi").select(cycle).unique()
        return self.tasks.join(cycles, on=cycle, how="semi", nulls_equal=True).select("t")

    def in_loop(self, tasks: pl.DataFrame, loop: int) -> Facts:
        """Return the facts of some tasks, ``t``, in a locality loop."""
        facts = self.facts.of_tasks(tasks)
        return facts if self.second is None else _local(facts, value=loop == 1)


def _local(facts: Facts, *, value: bool) -> Facts:
    return replace(facts, tasks=facts.tasks.with_columns(t_local=pl.lit(value=value)))


def with_settings_of(world: World, tasks: pl.DataFrame, config: Config) -> pl.DataFrame:
    """Return facts of some tasks with the settings that are read, as columns, and what the brokerage makes of them."""
    reads = _reads_settings(world.brokerage, world.rules, world.asked)
    tasks = with_settings(tasks, reads, config, world.place_of)
    for each in world.brokerage.derived(world.rules):
        tasks = tasks.with_columns(**each.columns)
    return tasks


def with_some_place(facts: Facts) -> Facts:
    """Return the facts without tasks that have a list, but nothing on it."""
    named = facts.listed.drop_nulls("q")
    nowhere = facts.listed.join(named, on="t", how="anti")
    tasks = facts.tasks.join(nowhere, on="t", how="anti", maintain_order="left")
    return replace(facts, tasks=tasks, listed=named)


@lru_cache(maxsize=64)  # expressions are slow to ask
def _reads_settings(
    brokerage: Brokerage[Any, Any], rules: Any, asked: tuple[tuple[Rule, ...], tuple[Step, ...]]
) -> tuple[str, ...]:
    """Return the columns that are read, settings among them."""
    checks, then = asked
    every = (*checks, *rules_of(then), *marks_of(then))
    reads = reads_of([*brokerage.derived(rules), *then])
    return (*reads, *(name for rule in every for name in rule.reads))


@lru_cache(maxsize=64)
def _reads(steps: tuple[Step, ...]) -> frozenset[str]:
    return frozenset(reads_of(steps))


@lru_cache(maxsize=64)  # the same values again: plans are kept for them
def _silenced(
    checks: tuple[Rule, ...], steps: tuple[Step, ...], silent: frozenset[str]
) -> tuple[tuple[Rule, ...], tuple[Step, ...]]:
    """Return checks and steps; those that are not asked remove nothing."""

    def asked(rule: Rule) -> Rule:
        return replace(rule, when=rule.when & False) if rule.name in silent else rule

    return (
        tuple(asked(check) for check in checks),
        tuple(asked(step) if isinstance(step, Rule) else step for step in steps),
    )
