"""What another value of a gdpconfig key would have decided."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import polars as pl

from brokerlab.brokerage.analysis_jobs import keys as analysis_keys
from brokerlab.brokerage.comparison import Comparison, compare_views
from brokerlab.brokerage.deciding import AnyRules, decide
from brokerlab.brokerage.engine.again import redecided
from brokerlab.brokerage.engine.own import Own
from brokerlab.brokerage.engine.settings import SCOPES, differing
from brokerlab.brokerage.production_tasks.decisions import TaskDecisions
from brokerlab.brokerage.reach import reachable
from brokerlab.brokerage.replaying.build import Replay
from brokerlab.brokerage.view import PLACED, TASK, AnyDecisions, View, view
from brokerlab.errors import ConfigError, nearest
from brokerlab.gdpconfig import Config
from brokerlab.gdpconfig import keys as catalogue
from brokerlab.gdpconfig.fallbacks import expand, scope_names

Asked: TypeAlias = AnyDecisions | Replay


@dataclass(frozen=True)
class _Model:
    """A brokerage that can be asked what another configuration would decide.

    Attributes:
        base: What was decided.
        config: Under what configuration.
        keys: The keys it reads.
        component: Key to ``app/component`` where it is looked up.
        scopes: Placeholder to the values that occur.
        decided: Decisions under another configuration, at least of all tasks that it may change.
    """

    base: AnyDecisions
    config: Config
    keys: tuple[str, ...]
    component: Callable[[str], str]
    scopes: dict[str, list[str]]
    decided: Callable[[Config], AnyDecisions]


def keys_read(decisions: Asked, *, rules: AnyRules | None = None) -> list[str]:
    """Return the gdpconfig keys that decisions read, as the catalogue writes them, sorted.

    Args:
        decisions: Decisions, or a replay, of any brokerage.
        rules: Rule set of a replay; null = ``document``.
    """
    return sorted(_model(decisions, rules).keys)


def what_if(
    decisions: Asked,
    key: str,
    grid: Iterable[Any],
    *,
    rules: AnyRules | None = None,
    own: Sequence[Own] = (),
    **scope: str,
) -> pl.DataFrame:
    """Return what other values of one key would have decided.

    Only what depends on the key is computed again: the checks that read it, then the weights and ranks of the tasks it
    touches. For user tasks also the throttle, where it reads the key, and all their weights and ranks where checks,
    caps or the stabilizer read it. Tables of decisions on user tasks stay as they are, while those of a replay are
    made again for keys that they depend on (classes of tasks, slots of users, jobs that ended lately). Of a choice of the nucleus the tasks of one cycle, which see each other, are decided together, with the same
    draws.

    Args:
        decisions: Decisions of any brokerage; or a replay, which is decided first.
        key: Key of the catalogue, exact (``NQUEUELIMITSITE_Express``) or a pattern (``NQUEUELIMITSITE_<gshare>``).
        grid: Values to try.
        rules: Rule set of a replay; null = ``document``.
        own: Rules that are added where a replay is decided.
        **scope: Values of the placeholders (``gshare="Express"``); a required one that is not given takes every value
            that the tasks have, all set alike.

    Returns:
        One row per value, in the given order: ``value``; ``is_current`` (it is the setting in force); ``n_pairs`` decided differently, of these ``n_gained`` and ``n_lost`` candidates; ``n_tasks`` with any
        difference; ``n_outcomes`` that end otherwise; ``n_without`` tasks left without a queue (nucleus), whatever
        the reason; ``mean_candidates`` per task; ``slots_reachable``, see :func:`.reach.reachable` (null for nuclei);
        ``weight_shift``: mean share of a task's expected jobs that goes elsewhere, over tasks with candidates.

    Raises:
        ConfigError: A key that is unknown or that nothing here reads, a placeholder without a value, a value of
            another type or out of what the rules can work with, an empty grid.

    Source: calibration.md 2.
    """
    return what_if_by_task(decisions, key, grid, rules=rules, own=own, **scope)[0]


def what_if_by_task(
    decisions: Asked,
    key: str,
    grid: Iterable[Any],
    *,
    rules: AnyRules | None = None,
    own: Sequence[Own] = (),
    **scope: str,
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return :func:`what_if`, and what of it is whose, for intervals over tasks.

    Args:
        decisions: As there, like all others.
        key: Key of the catalogue.
        grid: Values to try.
        rules: Rule set of a replay.
        own: Rules that are added where a replay is decided.
        **scope: Values of the placeholders.

    Returns:
        The frame of :func:`what_if`; and one row per place in the grid and task that changes, sorted: ``step`` (0...),
        ``jeditaskid, snapshot``, ``n_pairs`` decided differently, ``shift`` (0 or null: nothing goes
        elsewhere), ``without`` (-1, 0, 1: gets a queue, as before, loses its last one).
    """
    model = _model(decisions, rules, own)
    values = list(grid)
    if not values:
        raise ConfigError(f"what_if of {key}: the grid is empty; give at least one value")
    places = _places(model, key, scope)
    tried = [model.config.with_values(dict.fromkeys(places, value)) for value in values]
    base = view(model.base)
    at_base = _Totals.of(model.base, base)
    rows, changes = [], []
    for step, (value, other) in enumerate(zip(values, tried, strict=True)):
        row, found = _row(model, base, at_base, other)
        rows.append({"value": value, "is_current": _holds(model.config, places, value), **row})
        changes.append(_by_task(step, found))
    return pl.DataFrame(rows, schema_overrides=_SCHEMA, infer_schema_length=None), pl.concat(
        changes
    )


_SCHEMA = {
    "is_current": pl.Boolean,
    **dict.fromkeys(("n_pairs", "n_gained", "n_lost", "n_tasks", "n_outcomes"), pl.Int64),
    "n_without": pl.Int64,
    **dict.fromkeys(("mean_candidates", "slots_reachable", "weight_shift"), pl.Float64),
}


@dataclass(frozen=True)
class _Totals:
    """Sums over tasks that a change of some tasks changes by their difference."""

    n_tasks: int
    without: int
    candidates: int
    weighed: int
    reach: pl.DataFrame | None

    @classmethod
    def of(cls, decisions: AnyDecisions | None, seen: View) -> _Totals:
        return cls(
            n_tasks=seen.tasks.height,
            without=seen.tasks.filter(~pl.col("outcome").is_in(PLACED)).height,
            candidates=seen.pairs["check"].null_count(),
            weighed=seen.shares.select(TASK).unique().height,
            reach=None
            if decisions is None or isinstance(decisions, TaskDecisions)
            else reachable(decisions),
        )


def _by_task(step: int, found: Comparison) -> pl.DataFrame:
    """Return what changes for each task."""
    pairs = found.pairs.group_by(TASK).agg(n_pairs=pl.len().cast(pl.Int64))
    placed = [pl.col(f"outcome_{side}").is_in(PLACED).cast(pl.Int64) for side in "ab"]
    tasks = found.tasks.select(*TASK, "shift", without=placed[0] - placed[1])
    both = pairs.join(tasks, on=TASK, how="full", coalesce=True)
    return both.select(
        pl.lit(step, pl.Int64).alias("step"), *TASK, pl.col("n_pairs").fill_null(0), "shift",
        pl.col("without").fill_null(0),
    ).sort(TASK)  # fmt: skip


def _row(
    model: _Model, base: View, at_base: _Totals, config: Config
) -> tuple[dict[str, Any], Comparison]:
    """Return the row of one value, and the comparison behind it."""
    some = model.decided(config)
    new = view(some)
    old = base.of_tasks(new.tasks)
    found = compare_views(old, new)
    before, after = _Totals.of(None, old), _Totals.of(some, new)
    weighed = pl.concat([side.shares.select(TASK) for side in (old, new)]).unique().height
    moved = (found.weight_shift or 0.0) * weighed
    row = {
        "n_pairs": found.n_changed(),
        "n_gained": found.n_changed("gained"),
        "n_lost": found.n_changed("lost"),
        "n_tasks": found.n_tasks_changed,
        "n_outcomes": found.n_outcomes,
        "n_without": at_base.without - before.without + after.without,
        "mean_candidates": _mean(
            at_base.candidates - before.candidates + after.candidates, at_base.n_tasks
        ),
        "slots_reachable": _reach(at_base.reach, after.reach, new.tasks),
        "weight_shift": _mean(moved, at_base.weighed - before.weighed + weighed),
    }
    return row, found


def _holds(config: Config, places: Sequence[str], value: Any) -> bool:
    """Tell whether a value is the one in force at every place."""
    names = [place.split("/", 2) for place in places]
    now = [
        config.get(key, app=app, component=component, vo="atlas") for app, component, key in names
    ]
    return all(found == value for found in now)


def _mean(total: float, n: int) -> float | None:
    return total / n if n else None


def _reach(
    before: pl.DataFrame | None, after: pl.DataFrame | None, tasks: pl.DataFrame
) -> float | None:
    """Return the mean share of slots over all tasks, those decided again with their new share."""
    if before is None or after is None:
        return None
    kept = before.join(tasks, on=TASK, how="anti")
    value: float | None = pl.concat([kept, after]).sort(TASK)["reachable"].mean()  # type: ignore[assignment]
    return value


def _model(asked: Asked, rules: AnyRules | None, own: Sequence[Own] = ()) -> _Model:
    """Return the brokerage that made decisions, or that a replay is about."""
    base = decide(asked, rules=rules, own=own) if isinstance(asked, Replay) else asked
    world = base.world
    of_users = isinstance(asked, Replay) and asked.stage == "analysis"
    remade = analysis_keys.TABLE_KEYS if of_users else ()

    def decided(config: Config) -> AnyDecisions:
        if isinstance(asked, Replay) and differing(config, world.config, remade, world.place_of):
            return decide(asked, rules=world.rules, config=config, own=world.own)
        return redecided(base, config)

    return _Model(
        base=base,
        config=world.config,
        keys=tuple(dict.fromkeys([*world.keys, *remade])),
        component=world.place_of,
        scopes={name: _values(world.tasks[column]) for name, column in SCOPES.items()},
        decided=decided,
    )


def _values(column: pl.Series) -> list[str]:
    return [text for text in column.unique().sort().to_list() if text]


def _places(model: _Model, key: str, scope: dict[str, str]) -> list[str]:
    """Return ``app/component/KEY`` of every entry to set.

    Raises:
        ConfigError: Nothing here reads the key.
    """
    pattern = _pattern(model, key)
    component = model.component(pattern)
    if pattern != key:  # an exact key of a pattern
        return [f"{component}/{key}"]
    required, optional = scope_names(pattern)
    unknown = sorted(scope.keys() - required - optional)
    if unknown:
        hint = nearest(unknown[0], required | optional) if required | optional else "it has none"
        raise ConfigError(f"{key} has no placeholder '{unknown[0]}': {hint}")
    given = {name: [text] for name, text in scope.items()}
    given |= {name: model.scopes.get(name, []) for name in required - scope.keys()}
    names = sorted(given)
    keys = [
        expand(pattern, dict(zip(names, texts, strict=True)))[0]
        for texts in itertools.product(*(given[name] for name in names))
    ]
    if not keys:
        raise ConfigError(f"{key}: no task has a value for {', '.join(sorted(required))}")
    return [f"{component}/{name}" for name in dict.fromkeys(keys)]


def _pattern(model: _Model, key: str) -> str:
    """Return the key as the catalogue writes it."""
    if key in model.keys:
        return key
    rows = catalogue.rows_of(key)
    found = [row.key for row in rows if row.key in model.keys]
    if found:
        return found[0]
    if rows:
        raise ConfigError(
            f"gdpconfig key '{key}' is read by nothing here; read are {', '.join(sorted(model.keys))}"
        )
    raise ConfigError(f"gdpconfig key '{key}' is unknown: {nearest(key, model.keys)}")
