"""Rules of one's own in a brokerage, and what an organisation may put in the place of the page's: checks and a weight."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

import polars as pl

from brokerlab.brokerage.engine.rule import OWN, Rule
from brokerlab.brokerage.engine.steps import (
    LEFT,
    MARKED,
    Derived,
    Mark,
    Order,
    Step,
    made_by,
    names_of,
    reads_of,
    rules_of,
    walk,
)
from brokerlab.errors import ConfigError, nearest

if TYPE_CHECKING:
    from brokerlab.brokerage.engine.brokerage import Brokerage

WeightOf: TypeAlias = Callable[[Any], pl.Expr]
Item = TypeVar("Item", bound=Step)

MOST_CHECKS = 52
"""One bit each of a whole number that a float still holds exactly."""


def _name_of(step: Step) -> str | None:
    """Return the name of a rule, a mark or an order; null: it has none."""
    if isinstance(step, Mark):
        return step.rule.name
    return step.name if isinstance(step, Rule | Order) else None


def _place(steps: Sequence[Step], name: str) -> int:
    names = [_name_of(step) for step in steps]
    if name not in names:
        known = [each for each in names if each]
        raise ConfigError(f"checks: there is no {name!r}, {nearest(name, known)}")
    return names.index(name)


def without(steps: Sequence[Item], *names: str) -> tuple[Item, ...]:
    """Return the rules, or steps, but for those named; a name that there is not is refused, as by the next two.

    Example:
        >>> from brokerlab.brokerage.production_tasks.ranking import checks
        >>> from brokerlab.brokerage.rules import ProductionRules
        >>> [check.name for check in without(checks(ProductionRules()), "no_queue")][-1]
        'disk_space'
    """
    places = {_place(steps, name) for name in names}
    return tuple(step for place, step in enumerate(steps) if place not in places)


def replaced(steps: Sequence[Item], name: str, new: Item) -> tuple[Item, ...]:
    """Return the rules, or steps, with another one in the place of the one named."""
    place = _place(steps, name)
    return (*steps[:place], new, *steps[place + 1 :])


def inserted(steps: Sequence[Item], new: Item, *, after: str) -> tuple[Item, ...]:
    """Return the rules, or steps, with one more, which follows the one named."""
    place = _place(steps, after) + 1
    return (*steps[:place], new, *steps[place:])


@dataclass(frozen=True, eq=False)
class Own:
    """A rule that is added to a brokerage, and the name of the one that it follows."""

    rule: Rule
    after: str


def with_own(
    checks: Sequence[Rule], steps: Sequence[Step], own: Iterable[Own]
) -> tuple[tuple[Rule, ...], tuple[Step, ...]]:
    """Return checks and steps with rules of one's own; each may follow one before it.

    A rule that follows a check of single places is one itself and may not look at all places of a task.
    """
    result, then = tuple(checks), tuple(steps)
    for one in own:
        names = {check.name for check in result} | {_name_of(step) for step in then}
        if one.rule.name in names:
            raise ConfigError(f"own rule {one.rule.name}: there is one of that name, take another")
        of_pair = one.after in {check.name for check in result}
        if of_pair and one.rule.scope == "task":
            first = next(_name_of(step) for step in then if isinstance(step, Rule))
            raise ConfigError(
                f"own rule {one.rule.name} looks at all places of a task, which {one.after} does not: let it follow "
                f"a rule from {first} on"
            )
        if of_pair:
            result = inserted(result, one.rule, after=one.after)
        else:
            then = _behind_marks(inserted(then, one.rule, after=one.after), one.rule)
    if len(result) > MOST_CHECKS:
        raise ConfigError(f"{len(result)} checks of single places, allowed are {MOST_CHECKS}")
    return result, then


def _behind_marks(steps: tuple[Step, ...], rule: Rule) -> tuple[Step, ...]:
    """Return the steps with the rule behind the removal of marked places, where that would follow it."""
    place = steps.index(rule)
    if place + 1 == len(steps) or steps[place + 1] is not MARKED:
        return steps
    return (*steps[:place], MARKED, rule, *steps[place + 2 :])


def checks_of(
    brokerage: Brokerage[Any, Any], rules: Any, steps: Sequence[Step]
) -> tuple[Rule, ...]:
    """Return the checks of single places; refuse what cannot stand there.

    A rule about all places has a name of its own, unless both are from the same row of a page.
    """
    result = tuple(brokerage.checks(rules))
    problems = [
        f"{check!r} is a {type(check).__name__}, not a Rule"
        for check in result
        if not isinstance(check, Rule)
    ]
    if not 0 < len(result) <= MOST_CHECKS:
        problems.append(f"{len(result)} checks, allowed are 1 to {MOST_CHECKS}")
    names = [check.name for check in result if isinstance(check, Rule)]
    problems += [
        f"two checks are called {name}" for name in sorted({*names}) if names.count(name) > 1
    ]
    taken = {rule.name: rule.source for rule in rules_of(steps)}
    problems += [
        f"{check.name} is the name of a rule about all places"
        for check in result
        if isinstance(check, Rule) and taken.get(check.name, check.source) != check.source
    ]
    _refuse(f"brokerage {brokerage.name}: checks", problems)
    return result


def weighed_by(own: WeightOf | None, rules: Any, name: str = "weight") -> tuple[Step, ...]:
    """Return the steps that make a weight of one's own from the factors of the page's; none without one.

    They make a column ``name``, and ``weight_given`` and ``odd``, see :func:`refuse_weights`.
    """
    if own is None:
        return ()
    made = pl.col(name)
    ranks = (made.is_finite() & (made >= 0)).fill_null(value=False)
    return (
        Derived({name: own(rules).cast(pl.Float64)}),
        Derived({"weight_given": made, "odd": LEFT & ~ranks}),
    )


def refuse_weights(name: str, ranked: pl.DataFrame) -> None:
    """Refuse what cannot be ranked: places with the weight of :func:`weighed_by`."""
    odd = ranked.filter("odd")
    if odd.height:
        raise ConfigError(
            f"brokerage {name}: weight: {odd.height} of {ranked.height} places have one that cannot be ranked, such as "
            f"{odd['weight_given'][0]}: allowed are numbers from 0 on"
        )


def refuse_own(
    brokerage: Brokerage[Any, Any],
    checks: Sequence[Rule],
    steps: Sequence[Step],
    schema: Mapping[str, pl.DataType],
) -> None:
    """Refuse rules, checks and a weight of one's own that read what is not there (``schema``), or that say neither yes nor no."""
    added = [one.rule for one in brokerage.own]
    ours = tuple(rule for rule in checks if rule not in added)
    _refuse(f"brokerage {brokerage.name}: checks", _problems(ours, tuple(schema.items())))
    names = pl.Enum(names_of(checks, steps))
    every = {**dict.fromkeys(("t", "q"), pl.Int64()), "mark": names, **schema}

    def before(step: Step) -> pl.Schema:
        rows = pl.DataFrame(schema=every).lazy()
        return walk(rows, steps[: steps.index(step)], names).collect_schema()

    if brokerage.own_weight is not None:
        given = next(step for step in steps if "weight_given" in made_by([step]))
        weight = steps[steps.index(given) - 1]
        known = before(weight)
        unknown = sorted({*reads_of([weight])} - {*known})
        hints = [f"no column {name}, {nearest(name, {*known})}" for name in unknown]
        _refuse(f"brokerage {brokerage.name}: weight", hints)
    problems = []
    for rule in added:
        if rule in checks:
            problems += problems_of(rule, schema)
        else:
            problems += problems_of(rule, before(rule), known=made_by(steps))
    _refuse("own rules", problems)


def _refuse(what: str, problems: Sequence[str]) -> None:
    if problems:
        raise ConfigError(f"{what}: {'; '.join(problems)}")


@lru_cache(maxsize=64)  # many small expressions are asked what they are
def _problems(
    rules: tuple[Rule, ...], schema: tuple[tuple[str, pl.DataType], ...]
) -> tuple[str, ...]:
    known = dict(schema)
    # without a name of a column it may be one by its place, which would be a column that another rule reads
    nameless = [rule for rule in rules if not rule.when.meta.root_names()]
    named = [rule for rule in rules if rule.when.meta.root_names()]
    apart = nameless if _read_what_is_there(named, known) else rules
    return tuple(each for rule in apart for each in problems_of(rule, known))


def _read_what_is_there(rules: Sequence[Rule], schema: Mapping[str, pl.DataType]) -> bool:
    """Tell whether rules read columns that there are and say yes or no: all are asked at once, as most often they do."""
    if not {name for rule in rules for name in rule.columns()} <= schema.keys():
        return False
    reads = {name: schema[name] for rule in rules for name in rule.reads}
    answers = [rule.when.alias(str(number)) for number, rule in enumerate(rules)]
    try:
        kinds = pl.DataFrame(schema=reads).select(answers).dtypes
    except pl.exceptions.PolarsError:
        return False
    return kinds == [pl.Boolean()] * len(rules)


def problems_of(
    rule: Rule, schema: Mapping[str, pl.DataType], *, known: Collection[str] = ()
) -> list[str]:
    """Return what is wrong with a rule, where it is asked; ``known`` are columns besides that its sentences may name."""
    evaluates = [name for name in rule.when.meta.root_names() if name in OWN]
    if evaluates and rule.scope == "pair":
        return [
            f"{rule.name} looks at {', '.join(dict.fromkeys(evaluates))}, which only a rule of scope task may"
        ]
    unknown = sorted({*rule.reads} - {*schema}) + sorted({*rule.columns()} - {*schema, *known})
    if unknown:
        return [
            f"{rule.name}: no column {name}, {nearest(name, {*schema})}"
            for name in dict.fromkeys(unknown)
        ]
    reads = {name: schema[name] for name in rule.when.meta.root_names()}
    try:
        kind = pl.DataFrame(schema=reads).select(when=rule.when).schema["when"]
    except pl.exceptions.ColumnNotFoundError:
        return [f"{rule.name}: name the columns of its expression one by one, not several in one"]
    except pl.exceptions.PolarsError as error:
        why = str(error).strip().partition("\n")[0]
        return [f"{rule.name}: when cannot be evaluated: {why}"]
    return [] if kind == pl.Boolean() else [f"{rule.name}: when is {kind}, not true or false"]
