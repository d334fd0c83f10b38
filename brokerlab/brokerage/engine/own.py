"""Rules of one's own in a brokerage: one value each, of a pair or of all places of a task."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

import polars as pl

from brokerlab.brokerage.engine.checklist import inserted, name_of
from brokerlab.brokerage.engine.rule import OWN, Rule
from brokerlab.brokerage.engine.steps import MARKED, Step, made_by, names_of, walk
from brokerlab.errors import ConfigError, nearest

MOST_CHECKS = 52
"""One bit each of a whole number that a float still holds exactly."""


@dataclass(frozen=True, eq=False)
class Own:
    """A rule that is added to a brokerage.

    Attributes:
        rule: The rule.
        after: Name of the rule that it follows.
    """

    rule: Rule
    after: str


def with_own(
    checks: Sequence[Rule], steps: Sequence[Step], own: Iterable[Own]
) -> tuple[tuple[Rule, ...], tuple[Step, ...]]:
    """Return checks and steps with rules of one's own.

    A rule that follows a check of single places is one itself and may not look at all places of a task.

    Args:
        checks: The checks of single places.
        steps: What follows them.
        own: The rules; each may follow one before it.

    Raises:
        ConfigError: No rule of that name to follow, names that are taken, too many checks.
    """
    found, then = tuple(checks), tuple(steps)
    for one in own:
        names = {check.name for check in found} | {name_of(step) for step in then}
        if one.rule.name in names:
            raise ConfigError(f"own rule {one.rule.name}: there is one of that name, take another")
        of_pair = one.after in {check.name for check in found}
        if of_pair and one.rule.scope == "task":
            first = next(name_of(step) for step in then if isinstance(step, Rule))
            raise ConfigError(
                f"own rule {one.rule.name} looks at all places of a task, which {one.after} does not: let it follow "
                f"a rule from {first} on"
            )
        if of_pair:
            found = inserted(found, one.rule, after=one.after)
        else:
            then = _behind_marks(inserted(then, one.rule, after=one.after), one.rule)
    if len(found) > MOST_CHECKS:
        raise ConfigError(f"{len(found)} checks of single places, allowed are {MOST_CHECKS}")
    return found, then


def _behind_marks(steps: tuple[Step, ...], rule: Rule) -> tuple[Step, ...]:
    """Return the steps with the rule behind the removal of marked places, where that would follow it."""
    place = steps.index(rule)
    if place + 1 == len(steps) or steps[place + 1] is not MARKED:
        return steps
    return (*steps[:place], MARKED, rule, *steps[place + 2 :])


def check_own(
    own: Iterable[Own],
    checks: Sequence[Rule],
    steps: Sequence[Step],
    schema: Mapping[str, pl.DataType],
) -> None:
    """Refuse own rules that read what is not there, or that say neither yes nor no.

    Args:
        own: The rules.
        checks: The checks of single places, the own ones among them.
        steps: What follows them, the own rules among it.
        schema: Columns of pairs with their types, settings among them.

    Raises:
        ConfigError: What is wrong, of all rules.
    """
    rules = [one.rule for one in own]
    if not rules:
        return
    names = pl.Enum(names_of(checks, steps))
    every = {**dict.fromkeys(("t", "q"), pl.Int64()), "mark": names, **schema}
    made = made_by(steps)
    problems: list[str] = []
    for rule in rules:
        if rule in checks:
            problems += problems_of(rule, schema)
            continue
        before = walk(pl.DataFrame(schema=every).lazy(), steps[: steps.index(rule)], names)
        problems += problems_of(rule, before.collect_schema(), told=made)
    if problems:
        raise ConfigError(f"own rules: {'; '.join(problems)}")


def problems_of(
    rule: Rule, schema: Mapping[str, pl.DataType], *, told: Collection[str] = ()
) -> list[str]:
    """Return what is wrong with a rule.

    Args:
        rule: The rule.
        schema: Columns that there are where it is asked, with their types.
        told: Columns besides that its sentences may name.
    """
    evaluates = [name for name in rule.when.meta.root_names() if name in OWN]
    if evaluates and rule.scope == "pair":
        return [
            f"{rule.name} looks at {', '.join(dict.fromkeys(evaluates))}, which only a rule of scope task may"
        ]
    unknown = sorted({*rule.reads} - {*schema}) + sorted({*rule.columns()} - {*schema, *told})
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
