"""What an organisation may replace in the job brokerage: checks, weight, tables and facts of its own.

decide(tables, recipe=replace(PRODUCTION, name="ours", checks=our_checks))
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

import dataframely as dy
import polars as pl

from brokerlab.brokerage.engine.own import MOST_CHECKS, problems_of
from brokerlab.brokerage.engine.pairs import Facts
from brokerlab.brokerage.engine.rule import Rule
from brokerlab.brokerage.engine.steps import LEFT, Change, Derived, Step, rules_of
from brokerlab.brokerage.production_jobs.checks import queue_checks
from brokerlab.brokerage.production_jobs.weights import product
from brokerlab.brokerage.rules import ProductionRules
from brokerlab.errors import ConfigError, nearest

ChecksOf = Callable[[ProductionRules], Sequence[Rule]]
WeightOf = Callable[[ProductionRules], pl.Expr]
FactsOf = Callable[[Facts, Mapping[str, pl.DataFrame]], Facts]


def as_they_are(facts: Facts, tables: Mapping[str, pl.DataFrame]) -> Facts:  # noqa: ARG001 - one of many
    """Return the facts without any of one's own."""
    return facts


@dataclass(frozen=True, kw_only=True, eq=False)
class Recipe:
    """A job brokerage: its checks, its weight, and what both read beside the facts there are.

    Attributes:
        name: Name of the brokerage; part of every result's provenance.
        checks: Function from the rule set to the checks of single queues, in order; see
            :func:`~.checks.queue_checks` and :mod:`brokerlab.brokerage.engine.checklist`.
        weight: Function from the rule set to the weight of a queue that passed: an expression of numbers from
            0 on, over the columns of pairs and over ``running``, ``work_factor``, ``data_factor``, ``t1_factor``,
            ``network_factor`` and ``preference_factor``; see :func:`~.weights.product`. Queues without any job
            (row 6.5) rank by name before all others, whatever it says.
        tables: Contracts of input tables of one's own, or with columns of one's own.
        facts: Function from the facts and the input tables to the facts with columns added. By settled habit ``t_``
            begins a column of tasks and ``q_`` one of queues. It sees no settings: checks and weight name them, see
            :func:`~brokerlab.brokerage.engine.rule.setting`.
    """

    name: str
    checks: ChecksOf = queue_checks
    weight: WeightOf = product
    tables: Mapping[str, type[dy.Schema]] = field(default_factory=dict)
    facts: FactsOf = as_they_are


PRODUCTION = Recipe(name="production-jobs")
"""The production job brokerage of the documents."""


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


def checks_of(recipe: Recipe, rules: ProductionRules) -> tuple[Rule, ...]:
    """Return the checks of a recipe.

    Raises:
        ConfigError: Something that is no check.
    """
    found = tuple(recipe.checks(rules))
    problems = [
        f"{check!r} is a {type(check).__name__}, not a Rule"
        for check in found
        if not isinstance(check, Rule)
    ]
    if problems:
        raise _refused(recipe, problems)
    return found


def refuse_checks(
    recipe: Recipe, checks: Sequence[Rule], steps: Sequence[Step], facts: Facts
) -> None:
    """Refuse checks of a recipe that cannot be evaluated and told.

    Args:
        recipe: The recipe.
        checks: Its checks.
        steps: What follows them.
        facts: What checks may read.

    Raises:
        ConfigError: No check or too many, names that occur twice or are taken, columns that nothing provides, expressions
            that say neither yes nor no.
    """
    if recipe.checks is queue_checks:
        return
    problems = []
    if not 0 < len(checks) <= MOST_CHECKS:
        problems.append(f"{len(checks)} checks, allowed are 1 to {MOST_CHECKS}")
    names = [check.name for check in checks]
    problems += [
        f"two checks are called {name}" for name in sorted({*names}) if names.count(name) > 1
    ]
    taken = {rule.name for rule in rules_of(steps)}
    problems += [
        f"{name} is the name of a rule about all queues" for name in names if name in taken
    ]
    schema = facts.schema
    problems += [problem for check in checks for problem in problems_of(check, schema)]
    if problems:
        raise _refused(recipe, problems)


def _refused(recipe: Recipe, problems: Sequence[str]) -> ConfigError:
    return ConfigError(f"brokerage {recipe.name}: checks: {'; '.join(problems)}")


def weight_step(recipe: Recipe, rules: ProductionRules) -> tuple[Step, ...]:
    """Return the step that makes the weight of a recipe from its factors.

    One of an organisation's own also makes ``weight_given`` and ``odd``, see :func:`refuse_weights`.
    """
    weight = recipe.weight(rules)
    if recipe.weight is product:
        return (Derived({"weight": weight}),)
    known = partial(_with_known_columns, recipe.name, tuple(weight.meta.root_names()))
    ranks = (pl.col("weight").is_finite() & (pl.col("weight") >= 0)).fill_null(value=False)
    return (
        Change(function=known),
        Derived({"weight": weight.cast(pl.Float64)}),
        Derived({"weight_given": pl.col("weight"), "odd": LEFT & ~ranks}),
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
        ranked: Queues with the weight of :func:`weight_step`.

    Raises:
        ConfigError: The weight is no number from 0 on.
    """
    if recipe.weight is product:
        return
    odd = ranked.filter("odd")
    if odd.height:
        raise ConfigError(
            f"brokerage {recipe.name}: weight: {odd.height} of {ranked.height} queues have one that cannot be "
            f"ranked, such as {odd['weight_given'][0]}: allowed are numbers from 0 on"
        )
