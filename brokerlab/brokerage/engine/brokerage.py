"""A brokerage as a value: facts, rules, weight, and what is kept of the results."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any, Generic, TypeAlias, TypeVar

import dataframely as dy
import polars as pl

from brokerlab.brokerage.engine.decide import parts
from brokerlab.brokerage.engine.decisions import PlaceDecisions
from brokerlab.brokerage.engine.lookup import (
    Known,
    Lookup,
    Made,
    Reads,
    numbered_by,
    side_by_side,
    sides_of,
    watching,
    with_facts,
)
from brokerlab.brokerage.engine.own import Own, WeightOf, checks_of, with_own
from brokerlab.brokerage.engine.pairs import Facts, Side
from brokerlab.brokerage.engine.rule import Rule
from brokerlab.brokerage.engine.steps import Derived, Step, with_keys
from brokerlab.brokerage.engine.world import SecondLoop, World
from brokerlab.brokerage.inputs.frames import read_given, run
from brokerlab.errors import ConfigError, nearest
from brokerlab.gdpconfig import Config
from brokerlab.matching.rules import MatchingRules
from brokerlab.rulesets import RuleSet, watched

R = TypeVar("R", bound=RuleSet)
D = TypeVar("D", bound=PlaceDecisions)
Contracts: TypeAlias = Mapping[str, type[dy.Schema]]


def _none(rules: Any) -> tuple[()]:  # noqa: ARG001 - of one form
    return ()


@dataclass(frozen=True, kw_only=True)
class Weight:
    """What the weight of a place is made of, for the table of checks.

    Attributes:
        says: What it is, as a clause.
        column: Its column among the steps', which says what it reads.
        keys: gdpconfig keys behind facts that it reads.
    """

    source: str
    says: str
    column: str = "weight"
    keys: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True, eq=False)
class Brokerage(Generic[R, D]):
    """A brokerage: facts, rules, weight, and what is kept of the results.

    Attributes:
        name: Its name, the one of its entry point.
        organisation: Who answers for it.
        description: What it decides, in a line.
        documentation: Where its rules are written: an address, or chapters.
        stage: ``jobs``, ``tasks``, ``analysis``: what of a replay it is given.
        rule_set: Class of its rule sets.
        tables: Contracts of the input tables by name.
        later: Contracts of tables that are given as options.
        others: Contracts of another brokerage, whose tables and columns are let pass.
        options: What else may be asked, with what holds otherwise.
        needed: Table to the rules that cannot be decided without it.
        otherwise: Table that no rule needs to what is taken where it is not given.
        facts: Makes the facts of tasks and places.
        lookups: Function from the rule set to the facts that are looked up, in order.
        made: What facts under a configuration are made of.
        derived: Function from the rule set to what is made of a task's facts and settings.
        place_of: Key to ``app/component`` in which it is looked up.
        ends: ``t, outcome`` (and why) of tasks that end before any place is looked at; ``throttle``: the one of ``before``.
        before: Function from the rule set to the rules behind these ends.
        checks: Function from the rule set to the checks of single places, in order.
        steps: Function from rule set and a weight of one's own to what follows them.
        second: Function from rule set and steps to the second loop; null: there is none.
        cycle: Function from the rule set to the columns in which tasks are alike that see each other; none: nobody does.
        weight: Function from the rule set to what its weight is made of.
        decisions: What it answers with.
        place: Column that names a place.
        ranks: What a pair has of its place: columns that steps make.
        also_read: Facts that decide or are reported besides those that the steps read.
        last: The rule that keeps the best ones; behind it a place counts as ranked.
        marked: The rule that stands for the marks.
        own: Rules that were added, see :meth:`with_rule`.
        own_weight: Function from the rule set to the weight of a place that passed: an expression of numbers from 0 on,
            over the columns of pairs and over the factors of the weight of the page. Of queues for production jobs those
            without any job (row 6.5) rank by name before all others, whatever it says; of nuclei it is all but the factor
            of the work, which changes as tasks are given a nucleus.

    An organisation makes its own brokerage of one of these with :func:`dataclasses.replace`: a name, ``checks`` (lists are
    edited with :func:`.own.without`, :func:`.own.replaced` and :func:`.own.inserted`), ``own_weight``, ``tables`` of its own,
    and with one :class:`Lookup` more in ``lookups`` facts made of them.
    """

    name: str
    organisation: str
    description: str
    documentation: str
    stage: str
    rule_set: type[R]
    tables: Contracts
    later: Contracts = field(default_factory=dict)
    others: Contracts = field(default_factory=dict)
    options: Mapping[str, Any] = field(default_factory=dict)
    needed: Mapping[str, tuple[str, ...]]
    otherwise: Mapping[str, str]
    facts: Callable[[Known], Known]
    lookups: Callable[[R], tuple[Lookup, ...]]
    made: tuple[Made, ...] = ()
    derived: Callable[[R], tuple[Derived, ...]]
    place_of: Callable[[str], str]
    ends: Callable[[Known], pl.LazyFrame]
    before: Callable[[R], tuple[Rule, ...]] = _none
    checks: Callable[[R], Sequence[Rule]]
    steps: Callable[[R, WeightOf | None], tuple[Step, ...]]
    second: Callable[[R, Sequence[Step]], SecondLoop] | None = None
    cycle: Callable[[R], tuple[str, ...]] = _none
    weight: Callable[[R], Weight]
    decisions: type[D]
    place: str = "panda_queue"
    ranks: Mapping[str, pl.DataType]
    also_read: tuple[str, ...] = ()
    last: str | None = None
    marked: str | None = None
    own: tuple[Own, ...] = ()
    own_weight: WeightOf | None = None

    @property
    def absent(self) -> dict[str, str]:
        """Table to what is taken where it is not given."""
        unknown = {
            name: f"unknown: {', '.join(rules)} remove nothing"
            for name, rules in self.needed.items()
        }
        return {**self.otherwise, **unknown}

    def unasked(self, missing: Collection[str]) -> dict[str, tuple[str, ...]]:
        """Return the rules that remove nothing, as a table that they need is missing: table to their names."""
        return {table: names for table, names in self.needed.items() if table in missing}

    def with_rule(self, rule: Rule, *, after: str) -> Brokerage[R, D]:
        """Return the brokerage with one rule more; decisions, funnel, explanations and sensitivity know it.

        Args:
            rule: Of a pair, or (``scope="task"``) of all places of a task that are left: then its expression may use
                :data:`.engine.steps.LEFT`, :func:`.engine.steps.any_left` and windows ``.over("t")``.
            after: Name of the rule that it follows.

        Raises:
            ConfigError: When it decides: no rule of that name to follow, a name that is taken, columns that are not there.
        """
        return replace(self, own=(*self.own, Own(rule, after)))

    def checks_table(self, rules: R | None = None) -> pl.DataFrame:
        """Return the table of all rules, those that were added among them; see :func:`.check_table.checks_table`."""
        from brokerlab.brokerage.check_table import table_of  # loaded when it is first asked

        return table_of(self, rules)

    def decide(
        self,
        tables: Mapping[str, Any],
        *,
        rules: R | str | None = None,
        matching: MatchingRules | None = None,
        config: Config | None = None,
        **options: Any,
    ) -> D:
        """Decide for every task and every place: one task or a month of them, the same way.

        Args:
            tables: Input tables by name (``brokerlab tables``); frames of any engine, lists of dicts or mappings of
                columns. A table that is missing is unknown: checks that need it remove nothing, and ``world.unasked`` of
                the result names them.
            rules: Rule set, or its name; null = ``document``.
            matching: Rule set of the text rules; null = the set of the same name.
            config: Settings; with a history, each task sees those of its instant. Null = the defaults.
            **options: See the package of the brokerage.

        Returns:
            The decisions.

        Raises:
            SchemaError: Unknown tables and columns, values of another type.
            DataError: A task of production twice at one snapshot, where a nucleus is chosen.
            ConfigError: Rules of another brokerage, settings that no rule can work with, rules, checks or a weight of one's
                own that cannot work, an unknown option.
        """
        return self.of(
            self.prepare(tables, rules=rules, matching=matching, config=config, **options)
        )

    def of(self, world: World) -> D:
        """Return the decisions on what is prepared."""
        return self.decisions.of(world, parts(world))

    def prepare(
        self,
        tables: Mapping[str, Any],
        *,
        rules: R | str | None = None,
        matching: MatchingRules | None = None,
        config: Config | None = None,
        later: Collection[str] = (),
        **options: Any,
    ) -> World:
        """Return what is decided on; see :meth:`decide`. Tables named in ``later`` are given later and do not count as missing."""
        strange = sorted(options.keys() - self.options.keys())
        if strange:
            hint = nearest(strange[0], self.options) if self.options else "it has none"
            raise ConfigError(f"brokerage {self.name} has no option {strange[0]!r}: {hint}")
        asked = {**self.options, **options}
        frames = {name: asked[name] for name in self.later if asked[name] is not None}
        given, missing = read_given(
            {**tables, **frames}, {**self.tables, **self.later},
            later={*self.later, *later}, others=self.others,
        )  # fmt: skip
        if not isinstance(rules, self.rule_set | str | None):
            raise ConfigError(
                f"rules of brokerage {self.name} are {self.rule_set.__name__}, given are {type(rules).__name__}"
            )
        chosen: Any = self.rule_set.of(rules)
        known = Known(
            given=given,
            missing=missing,
            rules=chosen,
            matching=matching or MatchingRules(chosen.rules),
            config=Config.empty() if config is None else config,
            options=asked,
        )
        return self.world_of(known)

    def world_of(self, known: Known, before: World | None = None) -> World:
        """Look up all that no setting changes, then what settings decide.

        What was looked up for a world ``before``, of the same tables under other rules, is kept where it read nothing that differs.
        """
        rules, matching = known.rules, known.matching
        if before is not None and before.differ(rules, matching, before.read):
            before = None
        read: Reads = (set(), set()) if before is None else before.read
        later: Reads = (set(), set()) if before is None else before.read_later
        base = self._base(watching(known, read)) if before is None else before.base
        base = replace(base, rules=rules, matching=matching, config=known.config)
        of_pairs = [each for each in self.lookups(watched(rules, read[0])) if each.of_pairs]
        made = list[tuple[Side, Reads]]()
        for place, some in enumerate(side_by_side(each for each in of_pairs if not each.keys)):
            if before and not before.differ(rules, matching, before.read_by_side[place]):
                made.append((before.sides[place], before.read_by_side[place]))
            else:
                reads: Reads = (set(), set())
                made.append((sides_of(some, watching(base, reads))[0], reads))
        sides = tuple(side for side, _ in made)
        tasks, places = run(base.tasks), run(base.places)
        nothing = World(
            brokerage=self,
            given=known,
            base=base,
            lookups=self.lookups(watched(rules, later[0])),
            sides=sides,
            read=read,
            read_by_side=tuple(reads for _, reads in made),
            read_later=later,
            asked=rules_and_steps(self, base.rules),
            known=base,
            config=base.config,
            facts=Facts(tasks, places, base.lists, sides),
            tasks=tasks,
            outcomes=tasks.select("t").clear(),
            checks=(),
            steps=(),
            second=None,
        )
        return nothing.with_config(base.config, before)

    def _base(self, known: Known) -> Known:
        """Look up all that no setting changes but facts of pairs."""
        lookups = self.lookups(known.rules)
        known = self.facts(known)
        for each in lookups:
            # collected one by one: the next reads them many times
            if not each.keys and not each.place:
                tasks = run(with_facts(known.tasks, each, known))
                known = replace(known, tasks=self._once("t", tasks, each).lazy())
            elif not each.keys and not each.task:
                places = run(with_facts(known.places, each, known))
                known = replace(known, places=self._once("q", places, each).lazy())
        return numbered_by(known, lookups)

    def _once(self, number: str, rows: pl.DataFrame, lookup: Lookup) -> pl.DataFrame:
        """Refuse facts of tasks, or of places, of which a lookup has several rows."""
        if rows[number].n_unique() < rows.height:
            twice = rows.filter(rows[number].is_duplicated()).select(*lookup.task, *lookup.place)
            raise ConfigError(
                f"brokerage {self.name}: facts {', '.join(lookup.facts)}: {twice.n_unique()} of {', '.join(twice.columns)} "
                f"have several rows, such as {twice.row(0)}; allowed is one each"
            )
        return rows


@lru_cache(maxsize=64)  # made of many small expressions
def rules_and_steps(
    brokerage: Brokerage[Any, Any], rules: Any
) -> tuple[tuple[Rule, ...], tuple[Step, ...]]:
    """Return the checks and the steps of a rule set, with rules that were added."""
    derived = brokerage.derived(rules)
    then = (*derived, *brokerage.steps(rules, brokerage.own_weight))
    keyed = with_keys(then)[len(derived) :]
    return with_own(checks_of(brokerage, rules, keyed), keyed, brokerage.own)
