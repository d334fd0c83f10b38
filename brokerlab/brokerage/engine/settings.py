"""Settings as columns: the value of every gdpconfig key that an expression names, one per task."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any

import polars as pl

from brokerlab.brokerage.engine.rule import SETTING, Rule, setting
from brokerlab.brokerage.engine.steps import Derived, Mark, PerPlace, Step
from brokerlab.errors import ConfigError
from brokerlab.gdpconfig import Config
from brokerlab.gdpconfig.fallbacks import scope_names

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
        found = [values[texts] for texts in rows]
        columns.append(pl.Series(column, found, dtype=kind, strict=False))
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
