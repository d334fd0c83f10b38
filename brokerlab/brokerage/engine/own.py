"""Rules of one's own in a brokerage: one value each, of a pair or of all places of a task."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

import polars as pl

from brokerlab.brokerage.engine.checklist import inserted, name_of
from brokerlab.brokerage.engine.rule import OWN, SETTING, Rule
from brokerlab.brokerage.engine.steps import Step, made_by
from brokerlab.errors import ConfigError, nearest
from brokerlab.gdpconfig import Config
from brokerlab.gdpconfig.fallbacks import scope_names

MOST_CHECKS = 52
"""One bit each of a whole number that a float still holds exactly."""
SCOPES = {"gshare": "t_gshare", "prodsourcelabel": "t_label"}
"""Placeholder of a key to the column of the tasks that it stands for."""


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
            then = inserted(then, one.rule, after=one.after)
    if len(found) > MOST_CHECKS:
        raise ConfigError(f"{len(found)} checks of single places, allowed are {MOST_CHECKS}")
    return found, then


def check_own(own: Iterable[Own], schema: Mapping[str, pl.DataType], steps: Iterable[Step]) -> None:
    """Refuse own rules that read what is not there, or that say neither yes nor no.

    Args:
        own: The rules.
        schema: Columns of pairs with their types, settings among them.
        steps: Steps of the brokerage: what they make may be read too.

    Raises:
        ConfigError: What is wrong, of all rules.
    """
    made = made_by(steps)
    problems = [
        problem for one in own for problem in problems_of(one.rule, schema, made=made)
    ]  # fmt: skip
    if problems:
        raise ConfigError(f"own rules: {'; '.join(problems)}")


def problems_of(
    rule: Rule, schema: Mapping[str, pl.DataType], *, made: Collection[str] = ()
) -> list[str]:
    """Return what is wrong with a rule; see :func:`check_own`."""
    known = {*schema, *made}
    unknown = sorted({*rule.columns()} - known)
    if unknown:
        return [f"{rule.name}: no column {name}, {nearest(name, known)}" for name in unknown]
    reads = {*rule.when.meta.root_names()} - {*OWN}
    if reads & {*made}:
        return []  # types of what steps make are known only where they are made
    columns = {name: schema[name] for name in reads}
    empty = pl.DataFrame(
        schema={**dict.fromkeys(("t", "q"), pl.Int64), "check": pl.String, **columns}
    )
    try:
        kind = empty.select(when=rule.when).schema["when"]
    except pl.exceptions.PolarsError as error:
        why = str(error).strip().partition("\n")[0]
        return [f"{rule.name}: when cannot be evaluated: {why}"]
    return [] if kind == pl.Boolean() else [f"{rule.name}: when is {kind}, not true or false"]


def with_settings(
    tasks: pl.DataFrame,
    rules: Iterable[Rule],
    config: Config,
    place_of: Callable[[str], str],
    scopes: Mapping[str, str] = SCOPES,
) -> pl.DataFrame:
    """Add the settings that rules read as columns, one value per task.

    Args:
        tasks: Facts of tasks.
        rules: The rules.
        config: The configuration.
        place_of: Key to ``app/component``.
        scopes: Placeholder of a key to the column of the tasks that it stands for.

    Raises:
        ConfigError: A key that the catalogue does not have, a placeholder that tasks do not know.
    """
    columns = dict.fromkeys(
        name for rule in rules for name in rule.reads if name.startswith(SETTING)
    )
    for column in columns:
        key = column.removeprefix(SETTING)
        app, component = place_of(key).split("/")
        required, optional = scope_names(key)
        unknown = sorted(required - scopes.keys())
        if unknown:
            raise ConfigError(
                f"{key}: tasks have no {', '.join(unknown)}; known are {', '.join(scopes)}"
            )
        names = [name for name in sorted(required | optional) if name in scopes]
        of_tasks = tasks.select(pl.col(scopes[name]).alias(name) for name in names)
        values = {
            texts: config.get(
                key, app=app, component=component, vo="atlas",
                **{name: text or "" for name, text in zip(names, texts, strict=True)},
            )
            for texts in (of_tasks.unique().iter_rows() if names else [()])
        }  # fmt: skip
        rows = of_tasks.iter_rows() if names else [()] * tasks.height
        found = pl.Series(column, [values[texts] for texts in rows], strict=False)
        tasks = tasks.with_columns(found.cast(pl.Float64) if found.dtype.is_integer() else found)
    return tasks
