"""What a brokerage decides on: facts, checks and steps, whatever its chapter."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import ClassVar, Self, TypeAlias

import polars as pl

from brokerlab.brokerage.engine.own import Own, check_own, with_own
from brokerlab.brokerage.engine.pairs import Facts, Side
from brokerlab.brokerage.engine.recipe import (
    Recipe,
    refuse_checks,
    refuse_weights,
    with_own_facts,
)
from brokerlab.brokerage.engine.rule import SETTING, Rule
from brokerlab.brokerage.engine.settings import with_facts_of_settings
from brokerlab.brokerage.engine.steps import Derived, Step, reads_of
from brokerlab.gdpconfig import Config
from brokerlab.matching.rules import MatchingRules

Evaluate: TypeAlias = Callable[[Facts, int], pl.DataFrame]
"""Says which checks skip which pairs in a locality loop: ``t, q, failed``, sorted."""
Off: TypeAlias = Mapping[str, pl.Expr]
"""What if: name of a rule to the rows that it lets pass."""


@dataclass(frozen=True)
class Part:
    """What was decided on some tasks.

    Attributes:
        loop: Locality loop: 1; 2 where user tasks are decided again without locality.
        pairs: ``t, q, failed, check`` and :attr:`World.RANKS`, sorted by t, q.
        late: What the steps make of the pairs that no single check removed for good; null in hint mode.
    """

    loop: int
    pairs: pl.DataFrame
    late: pl.DataFrame | None


@dataclass(frozen=True, kw_only=True)
class Lasting:
    """What no setting changes.

    Attributes:
        tables: The input tables.
        matching: Rule set of the text rules.
        checks: The checks of single places, in order, without those of one's own.
        steps: What follows them, likewise.
        recipe: What an organisation replaced.
        own: Rules that are added.
        tasks: Facts of all tasks.
        queues: Facts of places.
        sides: Facts of pairs.
        lists: ``t, q`` of tasks whose candidates are a list.
        hint: Only what could run is asked.
        missing: Names of tables that were not given: nothing is known of what they would say.
    """

    NEEDED: ClassVar[Mapping[str, tuple[str, ...]]] = {}
    """Table to the rules that cannot be decided without it."""

    tables: dict[str, pl.DataFrame]
    matching: MatchingRules
    checks: tuple[Rule, ...]
    steps: tuple[Step, ...]
    recipe: Recipe
    own: tuple[Own, ...]
    tasks: pl.DataFrame
    queues: pl.DataFrame
    sides: tuple[Side, ...]
    lists: pl.DataFrame
    hint: bool = False
    missing: frozenset[str] = frozenset()

    @property
    def unasked(self) -> dict[str, tuple[str, ...]]:
        """Rules that remove nothing, as a table that they need is missing: table to their names."""
        return {table: names for table, names in self.NEEDED.items() if table in self.missing}

    @property
    def silent(self) -> frozenset[str]:
        """The names of these rules."""
        return frozenset(name for names in self.unasked.values() for name in names)

    def with_facts_of_settings(
        self,
        tasks: pl.DataFrame,
        made: Sequence[Derived],
        config: Config,
        place_of: Callable[[str], str],
    ) -> pl.DataFrame:
        """Add the settings that are read as columns of tasks, and what the brokerage makes of them.

        Args:
            tasks: Facts of tasks.
            made: What settings make of a task.
            config: The configuration.
            place_of: Key to ``app/component``.
        """
        return with_facts_of_settings(
            tasks, made, self.checks, self.steps, self.own, config, place_of
        )

    def with_own_facts(self, facts: Facts) -> Facts:
        """Return the facts with those of the recipe.

        Raises:
            ConfigError: It added or took away tasks, queues or columns.
        """
        return with_own_facts(self.recipe, facts, self.tables)

    def in_order(self, facts: Facts) -> tuple[tuple[Rule, ...], tuple[Step, ...]]:
        """Return checks and steps with rules of one's own; those that are not asked remove nothing.

        Raises:
            ConfigError: Rules that cannot be added, or that read what is not there.
        """
        refuse_checks(self.recipe, self.checks, facts)
        checks, steps = with_own(self.checks, self.steps, self.own)
        check_own(self.own, checks, steps, facts.schema)
        silent = self.silent

        def asked(rule: Rule) -> Rule:
            return replace(rule, when=rule.when & False) if rule.name in silent else rule

        return (
            tuple(asked(check) for check in checks),
            tuple(asked(step) if isinstance(step, Rule) else step for step in steps),
        )


@dataclass(frozen=True, kw_only=True)
class World(ABC):
    """The settings and tables of a replay, and what was prepared from them.

    Attributes:
        lasting_facts: What no setting changes.
        config: The configuration.
        facts: What the checks and steps read, of tasks that are looked at.
        tasks: Facts of all tasks.
        outcomes: ``t``, and how they ended, of tasks that end before any place is looked at.
        checks: The checks of single places, in order.
        steps: What follows them.
    """

    PLACE: ClassVar[str] = "panda_queue"
    """Column that names a place."""
    RANKS: ClassVar[Mapping[str, pl.DataType]]
    """What a pair has of its place: columns that steps make."""
    ALSO_READ: ClassVar[tuple[str, ...]] = ()
    """Facts that decide or are reported besides those that the steps read."""
    KEYS: ClassVar[tuple[str, ...]] = ()
    """Keys that act otherwise than as settings of tasks."""
    LAST: ClassVar[str | None] = None
    """The rule that keeps the best ones; behind it a queue counts as ranked."""
    MARKED: ClassVar[str | None] = None
    """The rule that stands for the marks."""

    lasting_facts: Lasting
    config: Config
    facts: Facts
    tasks: pl.DataFrame
    outcomes: pl.DataFrame
    checks: tuple[Rule, ...]
    steps: tuple[Step, ...]

    @property
    def tables(self) -> dict[str, pl.DataFrame]:
        """The input tables."""
        return self.lasting_facts.tables

    @property
    def matching(self) -> MatchingRules:
        """Rule set of the text rules."""
        return self.lasting_facts.matching

    @property
    def recipe(self) -> Recipe:
        """What an organisation replaced."""
        return self.lasting_facts.recipe

    @property
    def own(self) -> tuple[Own, ...]:
        """Rules that are added."""
        return self.lasting_facts.own

    @property
    def hint(self) -> bool:
        """Only what could run is asked."""
        return self.lasting_facts.hint

    @property
    def unasked(self) -> dict[str, tuple[str, ...]]:
        """Rules that remove nothing, as a table that they need is missing: table to their names."""
        return self.lasting_facts.unasked

    @property
    def lasting(self) -> int:
        """Bits of the checks that remove at once; others mark, and the last mark removes later."""
        return (1 << len(self.checks)) - 1

    @property
    def keys(self) -> list[str]:
        """The gdpconfig keys that it reads, as the catalogue writes them, sorted."""
        names = (name for name in self.tasks.columns if name.startswith(SETTING))
        return sorted({*self.KEYS, *(name.removeprefix(SETTING) for name in names)})

    @cached_property
    def step_reads(self) -> frozenset[str]:
        """Facts of pairs that steps read."""
        return frozenset(reads_of(self.steps))

    @property
    def reads(self) -> set[str]:
        """Facts of pairs that steps read and results report."""
        return {*self.step_reads, *self.ALSO_READ}

    @staticmethod
    @abstractmethod
    def place_of(key: str) -> str:
        """Return ``app/component`` in which the brokerage looks a key up."""

    @abstractmethod
    def with_config(self, config: Config) -> World:
        """Return the world under another configuration; only what that changes is worked out anew.

        Raises:
            ConfigError: Settings that no rule can work with.
        """

    @abstractmethod
    def parts(self, evaluate: Evaluate, *, off: Off | None = None) -> Iterator[Part]:
        """Decide.

        Args:
            evaluate: Asks the checks of single places.
            off: What if.
        """

    def of_tasks(self, tasks: pl.DataFrame) -> Self:
        """Return what is known of some tasks, ``t``."""
        kept = {
            name: getattr(self, name).join(tasks, on="t", how="semi", maintain_order="left")
            for name in ("tasks", "outcomes")
        }
        return replace(self, facts=self.facts.of_tasks(tasks), **kept)

    def decided_with(self, tasks: pl.DataFrame) -> pl.DataFrame:
        """Return ``t`` of all tasks that are decided otherwise if these, ``t``, are."""
        return tasks

    def in_loop(self, tasks: pl.DataFrame, loop: int) -> Facts:  # noqa: ARG002 - of user tasks
        """Return the facts of some tasks, ``t``, in a locality loop."""
        return self.facts.of_tasks(tasks)

    def check_weights(self, late: pl.DataFrame) -> None:
        """Refuse weights of a recipe that cannot be ranked."""
        refuse_weights(self.recipe, late)
