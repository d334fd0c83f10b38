"""From what no single check removed to candidates: rules that look at all places of a task, facts between them, and settings as columns.

A brokerage lists its steps in order. Each works on one row per pair that is left: t, q (task and place, sorted;
``q`` ascends with the place's name), ``check`` (why it was skipped so far; null: it was not) and the facts. The value of every
gdpconfig key that an expression names is a column of the tasks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Any, TypeAlias

import polars as pl

from brokerlab.brokerage.engine.rule import OWN, SETTING, Rule, setting
from brokerlab.errors import ConfigError
from brokerlab.gdpconfig import Config
from brokerlab.gdpconfig.keys import scope_names

LEFT = pl.col("check").is_null()
"""The place is still left."""


def any_left(kind: pl.Expr) -> pl.Expr:
    """Return whether a task has a place of a kind left."""
    return (LEFT & kind).any().over("t")


@dataclass(frozen=True, eq=False)
class Derived:
    """Columns made from those before them: name to expression."""

    columns: Mapping[str, pl.Expr]


@dataclass(frozen=True, eq=False)
class Mark:
    """A rule that removes nothing by itself: it makes a column of its name that later rules read."""

    rule: Rule


@dataclass(frozen=True, kw_only=True, eq=False)
class Order:
    """The places of a task that are left, numbered from 1 on; null for others. Equals stand by their names.

    Attributes:
        name: Name of the column.
        by: Columns to sort by.
        descending: The largest is the first, for each column.
        among: Which of the places that are left are numbered.
    """

    name: str
    by: tuple[str, ...]
    descending: tuple[bool, ...]
    among: pl.Expr


@dataclass(frozen=True, kw_only=True, eq=False)
class PerPlace:
    """Columns of what several places that are left stand for together, told apart by ``by``.

    The one with most of ``largest`` is asked, over :data:`LEFT` places alone, and all are told.
    """

    by: str
    largest: str
    steps: tuple[Derived, ...]


Step: TypeAlias = Rule | Derived | Mark | Order | PerPlace


MARKED = Derived({"check": pl.coalesce("check", "mark")})
"""Here temporary checks of single places remove: ``mark`` is the last of them that said skip."""


def rules_of(steps: Iterable[Step]) -> tuple[Rule, ...]:
    """Return the rules that remove, in order."""
    return tuple(step for step in steps if isinstance(step, Rule))


def names_of(checks: Iterable[Rule], steps: Iterable[Step]) -> list[str]:
    """Return the names of all rules that remove, those of single places first; a name may be of both kinds."""
    return list(dict.fromkeys(rule.name for rule in (*checks, *rules_of(steps))))


def marks_of(steps: Iterable[Step]) -> tuple[Rule, ...]:
    """Return the rules that mark, in order."""
    return tuple(step.rule for step in steps if isinstance(step, Mark))


def made_by(steps: Iterable[Step]) -> set[str]:
    """Return the columns that steps make."""
    made: set[str] = set()
    for step in steps:
        match step:
            case Mark(rule):
                made.add(rule.name)
            case Derived(columns):
                made.update(columns)
            case Order():
                made.add(step.name)
            case PerPlace():
                made |= made_by(step.steps)
    return made


def _read_by(step: Step) -> Sequence[str]:
    match step:
        case Rule():
            return step.when.meta.root_names()
        case Mark(rule):
            return rule.when.meta.root_names()
        case Derived(columns):
            return [name for each in columns.values() for name in each.meta.root_names()]
        case Order():
            return [*step.by, *step.among.meta.root_names()]
        case PerPlace():
            return [step.by, step.largest, *reads_of(step.steps)]


def reads_of(steps: Iterable[Step]) -> tuple[str, ...]:
    """Return the facts of pairs that steps read, those that none of them makes."""
    wanted: dict[str, None] = {}
    made = {*OWN}
    for step in steps:
        wanted.update(dict.fromkeys(name for name in _read_by(step) if name not in made))
        made |= made_by([step])
    return tuple(name for name in wanted if name not in made)


def walk(
    frame: pl.LazyFrame,
    steps: Sequence[Step],
    names: pl.Enum,
    off: Mapping[str, pl.Expr] | None = None,
) -> pl.LazyFrame:
    """Take the steps, from ``t, q`` and the facts that they read, sorted by t, q; add ``check`` and all that they make.

    ``off``: what if: name of a rule to the rows that it lets pass.
    """
    lets_pass = off or {}
    frame = frame.with_columns(check=pl.lit(None, dtype=names))
    for of_pair, group in groupby(steps, key=_looks_at_one_pair):
        if of_pair:
            rules = [step for step in group if isinstance(step, Rule)]
            frame = _removed(frame, rules, names, lets_pass)
            continue
        for step in group:
            match step:
                case Rule():
                    frame = _removed(frame, [step], names, lets_pass)
                case Derived(columns):
                    frame = frame.with_columns(**columns)
                case Mark(rule):
                    frame = frame.with_columns(_holds(rule, lets_pass).alias(rule.name))
                case Order():
                    frame = _order(frame, step)
                case PerPlace():
                    frame = _ask_largest(frame, step)
    return frame


def _looks_at_one_pair(step: Step) -> bool:
    return isinstance(step, Rule) and step.scope == "pair"


def _holds(rule: Rule, lets_pass: Mapping[str, pl.Expr]) -> pl.Expr:
    when = rule.when.fill_null(value=False)
    return when & ~lets_pass[rule.name] if rule.name in lets_pass else when


def _removed(
    frame: pl.LazyFrame, rules: Sequence[Rule], names: pl.Enum, lets_pass: Mapping[str, pl.Expr]
) -> pl.LazyFrame:
    reasons = (
        pl.when(_holds(rule, lets_pass)).then(pl.lit(rule.name, dtype=names)) for rule in rules
    )
    return frame.with_columns(check=pl.coalesce("check", *reasons))


def _order(frame: pl.LazyFrame, order: Order) -> pl.LazyFrame:
    frame = frame.cache()
    # only what is sorted by: a sort and a join move every column that they are given
    rows = frame.select("t", "q", *order.by, among=LEFT & order.among).with_row_index("row").cache()
    numbered = (
        rows.filter("among")
        .sort("t", *order.by, "q", descending=[False, *order.descending, False])
        .select("row", pl.int_range(1, pl.len() + 1, dtype=pl.Int64).over("t").alias(order.name))
    )
    numbers = rows.select("row").join(numbered, on="row", how="left", maintain_order="left")
    return pl.concat([frame, numbers.select(order.name)], how="horizontal")


def _ask_largest(frame: pl.LazyFrame, step: PerPlace) -> pl.LazyFrame:
    frame = frame.cache()
    key = ["t", step.by]
    asked = frame.filter(LEFT).sort(*key, step.largest, "q", descending=[False, False, True, False])
    asked = asked.unique(key, keep="first", maintain_order=True)
    for derived in step.steps:
        asked = asked.with_columns(**derived.columns)
    results = asked.select(*key, *sorted(made_by(step.steps)))
    return frame.join(results, on=key, how="left", maintain_order="left")


SCOPES = {"gshare": "t_gshare", "prodsourcelabel": "t_label"}
"""Placeholder of a key to the column of the tasks that it stands for."""
WEIGHT = "weight"
"""Column whose keys are told as those of the weight, not of the rules that read it."""


def setting_or(key: str, otherwise: float | None) -> pl.Expr:
    """Return the value of a key, or what holds where it is 0 or absent; see :func:`~.rule.setting`."""
    return pl.when(setting(key) != 0).then(setting(key)).otherwise(otherwise)


def with_settings(
    tasks: pl.DataFrame, reads: Sequence[str], config: Config, place_of: Callable[[str], str]
) -> pl.DataFrame:
    """Add settings as columns, one value per task, of those columns that :func:`~.rule.setting` made.

    Where settings have a history, each task sees those of its instant, ``at``.

    Raises:
        ConfigError: A key that the catalogue does not have, a placeholder that tasks do not know.
    """
    if config.has_history:
        numbered = tasks.with_row_index("row")
        parts = numbered.partition_by("at", maintain_order=True) or [numbered]
        then = [
            with_settings(part, reads, _at_their_instant(config, part), place_of) for part in parts
        ]
        return pl.concat(then, how="vertical_relaxed").sort("row").drop("row")
    columns = []
    for column in dict.fromkeys(name for name in reads if name.startswith(SETTING)):
        key = column.removeprefix(SETTING)
        app, component = place_of(key).split("/")
        required, optional = scope_names(key)
        unknown = sorted(required - SCOPES.keys())
        if unknown:
            raise ConfigError(
                f"{key}: tasks have no {', '.join(unknown)}; known are {', '.join(SCOPES)}"
            )
        names = [name for name in sorted(required | optional) if name in SCOPES]
        scoped = [*zip(*(tasks[SCOPES[name]] for name in names), strict=True)]
        rows = scoped if names else [()] * tasks.height
        values = {
            texts: config.get(
                key, app=app, component=component, vo="atlas",
                **{name: text or "" for name, text in zip(names, texts, strict=True)},
            )
            for texts in (dict.fromkeys(scoped) if names else [()])
        }  # fmt: skip
        kind = pl.Series([*values.values()], strict=False).dtype
        kind = pl.Float64() if kind.is_integer() or kind == pl.Null else kind
        result = [values[texts] for texts in rows]
        columns.append(pl.Series(column, result, dtype=kind, strict=False))
    return tasks.with_columns(columns)


def _at_their_instant(config: Config, tasks: pl.DataFrame) -> Config:
    if tasks.height and tasks["at"][0] is None:
        raise ConfigError("tasks: at is null, and settings have a history: give the instant")
    return config.at(tasks["at"][0]) if tasks.height else Config.empty()


def value_at(
    config: Config, key: str, place_of: Callable[[str], str], vo: str | None = "atlas"
) -> Any:
    """Return the value of a key without placeholders where a brokerage looks it up."""
    app, component = place_of(key).split("/")
    return config.get(key, app=app, component=component, vo=vo)


def differing(
    one: Config,
    other: Config,
    keys: Iterable[str],
    place_of: Callable[[str], str],
    vos: Sequence[str | None] = ("atlas",),
) -> list[str]:
    """Return the keys without placeholders whose values differ where a brokerage looks them up, for any of the VOs."""
    return [
        key
        for key in keys
        if any(value_at(one, key, place_of, vo) != value_at(other, key, place_of, vo) for vo in vos)
    ]


def with_keys(steps: Sequence[Step]) -> tuple[Step, ...]:
    """Return steps whose rules name the keys behind derived columns too, but for those behind the weight."""
    behind = {name: keys_in(columns) for name, columns in columns_behind(steps).items()}

    def keyed(rule: Rule) -> Rule:
        more = [key for name in rule.reads if name != WEIGHT for key in behind.get(name, ())]
        return replace(rule, keys=(*rule.keys, *more)) if more else rule

    return tuple(
        keyed(step)
        if isinstance(step, Rule)
        else Mark(keyed(step.rule))
        if isinstance(step, Mark)
        else step
        for step in steps
    )


def keys_in(columns: Iterable[str]) -> tuple[str, ...]:
    """Return the keys of those of some columns that hold settings."""
    return tuple(name.removeprefix(SETTING) for name in columns if name.startswith(SETTING))


def columns_behind(steps: Iterable[Step]) -> dict[str, tuple[str, ...]]:
    """Return the columns that those which steps derive rest on, through all that are derived themselves, settings first."""
    behind: dict[str, tuple[str, ...]] = {}
    for step in steps:
        for derived in step.steps if isinstance(step, PerPlace) else (step,):
            if not isinstance(derived, Derived):
                continue
            for name, expression in derived.columns.items():
                names = expression.meta.root_names()
                own = [each for each in names if each.startswith(SETTING)]
                more = (column for each in names for column in behind.get(each, (each,)))
                behind[name] = tuple(dict.fromkeys([*own, *more]))
    return behind
