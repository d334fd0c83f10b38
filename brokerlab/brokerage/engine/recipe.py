"""What an organisation may replace in a brokerage: checks, weight, tables and facts of its own.

decide(tables, recipe=Recipe(name="ours", checks=our_checks))
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import dataframely as dy
import polars as pl

from brokerlab.brokerage.engine.own import MOST_CHECKS, problems_of
from brokerlab.brokerage.engine.pairs import Facts
from brokerlab.brokerage.engine.rule import Rule
from brokerlab.brokerage.engine.steps import LEFT, Change, Derived, Step, rules_of
from brokerlab.errors import ConfigError, nearest

ChecksOf = Callable[[Any], Sequence[Rule]]
WeightOf = Callable[[Any], pl.Expr]
FactsOf = Callable[[Facts, Mapping[str, pl.DataFrame]], Facts]


def as_they_are(facts: Facts, tables: Mapping[str, pl.DataFrame]) -> Facts:  # noqa: ARG001 - one of many
    """Return the facts without any of one's own."""
    return facts


@dataclass(frozen=True, kw_only=True, eq=False)
class Recipe:
    """A brokerage: its checks, its weight, and what both read beside the facts there are.

    Attributes:
        name: Name of the brokerage; part of every result's provenance.
        checks: Function from the rule set to the checks of single places, in order; null: those of the page, see
            ``checks`` of the brokerage and :mod:`brokerlab.brokerage.engine.checklist`.
        weight: Function from the rule set to the weight of a place that passed: an expression of numbers from 0 on, over
            the columns of pairs and over the factors of the weight of the page. Null: that of the page. Of queues for
            production jobs those without any job (row 6.5) rank by name before all others, whatever it says; of nuclei
            it is all but the factor of the work, which changes as tasks are given a nucleus.
        tables: Contracts of input tables of one's own, or with columns of one's own.
        facts: Function from the facts and the input tables to the facts with columns added. By settled habit ``t_``
            begins a column of tasks and ``q_`` one of queues. It sees no settings: checks and weight name them, see
            :func:`~brokerlab.brokerage.engine.rule.setting`.
    """

    name: str
    checks: ChecksOf | None = None
    weight: WeightOf | None = None
    tables: Mapping[str, type[dy.Schema]] = field(default_factory=dict)
    facts: FactsOf = as_they_are


def with_own_facts(recipe: Recipe, facts: Facts, tables: Mapping[str, pl.DataFrame]) -> Facts:
    """Return the facts with those of the recipe.

    Raises:
        ConfigError: It added or took away tasks, queues or columns.
    """
    found = recipe.facts(facts, tables)
    problems = []
    for part, key in (("tasks", "t"), ("queues", "q")):
        before, after = getattr(facts, part), getattr(found, part)
        lost = sorted(set(before.columns) - set(after.columns))
        if lost:
            problems.append(f"{part} lost {', '.join(lost)}")
        elif not before[key].equals(after[key]):
            problems.append(
                f"{part} has {after.height} rows, {before.height} in order of {key} came in"
            )
    if problems:
        raise ConfigError(
            f"brokerage {recipe.name}: facts: {'; '.join(problems)}; only columns may be added"
        )
    return found


def checks_of(
    recipe: Recipe, usual: ChecksOf, rules: Any, steps: Sequence[Step]
) -> tuple[Rule, ...]:
    """Return the checks of a recipe, or the usual ones.

    Args:
        recipe: The recipe.
        usual: Function from the rule set to the checks of the page.
        rules: The rule set.
        steps: What follows the checks.

    Raises:
        ConfigError: No check or too many, something that is no check, names that occur twice or are taken.
    """
    ours = tuple(usual(rules))
    if recipe.checks is None:
        return ours
    found = tuple(recipe.checks(rules))
    problems = [
        f"{check!r} is a {type(check).__name__}, not a Rule"
        for check in found
        if not isinstance(check, Rule)
    ]
    if not 0 < len(found) <= MOST_CHECKS:
        problems.append(f"{len(found)} checks, allowed are 1 to {MOST_CHECKS}")
    names = [check.name for check in found if isinstance(check, Rule)]
    problems += [
        f"two checks are called {name}" for name in sorted({*names}) if names.count(name) > 1
    ]
    taken = {rule.name for rule in rules_of(steps)} - {check.name for check in ours}
    problems += [
        f"{name} is the name of a rule about all places" for name in names if name in taken
    ]
    if problems:
        raise _refused(recipe, problems)
    return found


def refuse_checks(recipe: Recipe, checks: Sequence[Rule], facts: Facts) -> None:
    """Refuse checks of one's own that cannot be evaluated and told.

    Args:
        recipe: The recipe.
        checks: Its checks.
        facts: What checks may read.

    Raises:
        ConfigError: Columns that nothing provides, expressions that say neither yes nor no.
    """
    if recipe.checks is None:
        return
    schema = facts.schema
    problems = [problem for check in checks for problem in problems_of(check, schema)]
    if problems:
        raise _refused(recipe, problems)


def _refused(recipe: Recipe, problems: Sequence[str]) -> ConfigError:
    return ConfigError(f"brokerage {recipe.name}: checks: {'; '.join(problems)}")


def own_weight(recipe: Recipe, rules: Any, name: str = "weight") -> tuple[Step, ...]:
    """Return the steps that make a weight of one's own from the factors of the page's; none without one.

    They also make ``weight_given`` and ``odd``, see :func:`refuse_weights`.

    Args:
        recipe: The recipe.
        rules: Its rule set.
        name: Column that it makes.
    """
    if recipe.weight is None:
        return ()
    weight, made = recipe.weight(rules), pl.col(name)
    known = partial(_with_known_columns, recipe.name, tuple(weight.meta.root_names()))
    ranks = (made.is_finite() & (made >= 0)).fill_null(value=False)
    return (
        Change(function=known),
        Derived({name: weight.cast(pl.Float64)}),
        Derived({"weight_given": made, "odd": LEFT & ~ranks}),
    )


def _with_known_columns(name: str, reads: Sequence[str], frame: pl.LazyFrame) -> pl.LazyFrame:
    """Return the frame; refuse a weight that reads what it does not have.

    Raises:
        ConfigError: It reads columns that nothing provides.
    """
    names = frame.collect_schema().names()
    unknown = sorted({*reads} - {*names})
    if unknown:
        hints = "; ".join(f"no column {column}, {nearest(column, names)}" for column in unknown)
        raise ConfigError(f"brokerage {name}: weight: {hints}")
    return frame


def refuse_weights(recipe: Recipe, ranked: pl.DataFrame) -> None:
    """Refuse what cannot be ranked.

    Args:
        recipe: The recipe.
        ranked: Places with the weight of :func:`own_weight`.

    Raises:
        ConfigError: The weight is no number from 0 on.
    """
    if recipe.weight is None:
        return
    odd = ranked.filter("odd")
    if odd.height:
        raise ConfigError(
            f"brokerage {recipe.name}: weight: {odd.height} of {ranked.height} places have one that cannot be "
            f"ranked, such as {odd['weight_given'][0]}: allowed are numbers from 0 on"
        )
