"""What another value of a gdpconfig key would have decided."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from types import MappingProxyType
from typing import Any, TypeAlias

import polars as pl

from brokerlab.brokerage.analysis_jobs.settings import TABLE_KEYS
from brokerlab.brokerage.comparison import CHANGED, N_CHANGED, OTHER_OUTCOME, compare
from brokerlab.brokerage.deciding import AnyRules, decide
from brokerlab.brokerage.engine.brokerage import Brokerage
from brokerlab.brokerage.engine.decide import redecide
from brokerlab.brokerage.engine.decisions import PLACED, TASK, PlaceDecisions, QueueDecisions
from brokerlab.brokerage.engine.pairs import looked_up
from brokerlab.brokerage.engine.steps import SCOPES, differing
from brokerlab.brokerage.engine.world import World
from brokerlab.brokerage.replaying.build import Replay
from brokerlab.errors import ConfigError, nearest
from brokerlab.gdpconfig import Config
from brokerlab.gdpconfig import keys as catalogue
from brokerlab.gdpconfig.keys import expand, scope_names

Asked: TypeAlias = PlaceDecisions | Replay
BEYOND_THE_BEST = ("rank", "low_weight")
"""Checks of candidates that are too many."""


@dataclass(frozen=True, kw_only=True)
class WhatIf:
    """What other values of a key would change, task by task: of some tasks, or put together of all.

    Attributes:
        values: The values tried.
        is_current: Of each whether it is the setting in force.
        tasks: Every task as it is decided now: ``jeditaskid, snapshot``, ``placed`` (it has a queue, or a nucleus),
            ``weighed`` (expected jobs are known), ``n_pairs`` looked at, ``n_candidates``, ``reachable`` (see
            :func:`reachable`; null for nuclei).
        changes: One row per value and task that changes, sorted: ``step`` (place of the value, from 0), ``jeditaskid,
            snapshot``, ``n_pairs`` decided differently, of these ``n_gained, n_lost`` candidates; ``ends`` (1: it ends
            otherwise), ``shift`` of the expected jobs (0 or null: nothing goes elsewhere), ``without`` (-1, 0, 1: gets a
            queue, as before, loses its last one), ``reach`` (reachable slots, then less now; null as there).
    """

    values: tuple[Any, ...]
    is_current: tuple[bool, ...]
    tasks: pl.DataFrame
    changes: pl.DataFrame

    @classmethod
    def joined(cls, parts: Sequence[WhatIf]) -> WhatIf:
        """Put what was tried on some tasks each together."""
        return cls(
            values=parts[0].values,
            is_current=tuple(map(all, zip(*(part.is_current for part in parts), strict=True))),
            tasks=pl.concat(part.tasks for part in parts).sort(TASK),
            changes=pl.concat(part.changes for part in parts).sort("step", *TASK),
        )

    def totals(self) -> pl.DataFrame:
        """Return one row per value, see :func:`what_if`."""
        tasks, n_tasks = self.tasks, self.tasks.height
        now = {name: int(tasks[name].sum()) for name in ("placed", "weighed", "n_candidates")}
        reach = tasks["reachable"].drop_nulls()
        newly = pl.col("shift").is_not_null() & ~pl.col("weighed")
        counts = ("n_pairs", "n_gained", "n_lost")
        sums = (
            self.changes.join(tasks.select(*TASK, "weighed"), on=TASK, maintain_order="left")
            .group_by("step", maintain_order=True)
            .agg(
                pl.col(*counts, "without", "reach").sum(),
                n_tasks=pl.len(),
                n_outcomes=pl.col("ends").sum(),
                shift=pl.col("shift").fill_null(0.0).sum(),
                newly=newly.sum(),
            )
        )
        steps = pl.DataFrame({"step": range(len(self.values))}, schema={"step": pl.Int64})
        every = steps.join(sums, on="step", how="left", maintain_order="left").fill_null(0)
        weighed = now["weighed"] + pl.col("newly").cast(pl.Int64)
        candidates = now["n_candidates"] + pl.col("n_gained") - pl.col("n_lost")
        result = every.select(
            pl.Series("value", self.values, strict=False),
            pl.Series("is_current", self.is_current, dtype=pl.Boolean),
            *counts,
            "n_tasks",
            "n_outcomes",
            n_without=n_tasks - now["placed"] + pl.col("without"),
            mean_candidates=candidates / n_tasks if n_tasks else None,
            slots_reachable=(reach.sum() + pl.col("reach")) / len(reach) if len(reach) else None,
            weight_shift=pl.when(weighed > 0).then(pl.col("shift") / weighed),
        )
        return result.cast(_SCHEMA)  # type: ignore[arg-type]


def keys_read(decisions: Asked, *, rules: AnyRules | None = None) -> list[str]:
    """Return the gdpconfig keys that decisions read, as the catalogue writes them, sorted.

    Args:
        decisions: Decisions, or a replay, of any brokerage.
        rules: Rule set of a replay; null = ``document``.
    """
    return sorted(Sensitivity.of(decisions, rules=rules).keys)


def what_if(
    decisions: Asked,
    key: str,
    grid: Iterable[Any],
    *,
    rules: AnyRules | None = None,
    brokerage: Brokerage[Any, Any] | None = None,
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
        brokerage: What decides a replay; null = the brokerage of its stage.
        **scope: Values of the placeholders (``gshare="Express"``); a required one that is not given takes every value
            that the tasks have, all set alike.

    Returns:
        One row per value, in the given order: ``value``; ``is_current`` (it is the setting in force); ``n_pairs`` decided differently, of these ``n_gained`` and ``n_lost`` candidates; ``n_tasks`` with any
        difference; ``n_outcomes`` that end otherwise; ``n_without`` tasks left without a queue (nucleus), whatever
        the reason; ``mean_candidates`` per task; ``slots_reachable``, see :func:`reachable` (null for nuclei);
        ``weight_shift``: mean share of a task's expected jobs that goes elsewhere, over tasks with candidates.

    Raises:
        ConfigError: A key that is unknown or that nothing here reads, a placeholder without a value, a value of
            another type or out of what the rules can work with, an empty grid.

    Source: calibration.md 2.
    """
    return (
        Sensitivity.of(decisions, rules=rules, brokerage=brokerage)
        .of_key(key, grid, scope)
        .totals()
    )


_SCHEMA = {
    "is_current": pl.Boolean,
    **dict.fromkeys(("n_pairs", "n_gained", "n_lost", "n_tasks", "n_outcomes"), pl.Int64),
    "n_without": pl.Int64,
    **dict.fromkeys(("mean_candidates", "slots_reachable", "weight_shift"), pl.Float64),
}


_NONE = pl.DataFrame(
    schema={
        **dict.fromkeys(
            ("step", *TASK, "n_pairs", "n_gained", "n_lost", "ends", "without"), pl.Int64
        ),
        **dict.fromkeys(("shift", "reach"), pl.Float64),
    }
)
"""No change, see :attr:`WhatIf.changes`."""


@dataclass(frozen=True)
class Sensitivity:
    """A brokerage that can be asked what another configuration would decide.

    Attributes:
        base: What was decided.
        asked: A replay that it was decided on, to be decided again for keys on which its tables depend; null: none.
        keys: The keys it reads.
    """

    base: PlaceDecisions
    asked: Replay | None
    keys: tuple[str, ...]

    @classmethod
    def of(
        cls,
        asked: Asked,
        *,
        rules: AnyRules | None = None,
        brokerage: Brokerage[Any, Any] | None = None,
    ) -> Sensitivity:
        """Take decisions, or decide a replay; see :func:`what_if`."""
        replay = asked if isinstance(asked, Replay) else None
        base = (
            decide(asked, rules=rules, brokerage=brokerage) if isinstance(asked, Replay) else asked
        )
        of_users = replay is not None and replay.stage == "analysis"
        keys = (*base.world.keys, *(TABLE_KEYS if of_users else ()))
        return cls(base, replay if of_users else None, tuple(dict.fromkeys(keys)))

    @cached_property
    def tasks(self) -> pl.DataFrame:
        """See :attr:`WhatIf.tasks`."""
        seen = self.base
        pairs = seen.pairs.group_by(TASK).agg(
            n_pairs=pl.len().cast(pl.Int64),
            n_candidates=pl.col("check").null_count().cast(pl.Int64),
        )
        weighed = seen.shares.select(TASK).unique().with_columns(weighed=pl.lit(value=True))
        counts = pl.col("n_pairs", "n_candidates").fill_null(0)
        return (
            seen.tasks.select(*TASK, placed=pl.col("outcome").is_in(PLACED))
            .join(weighed, on=TASK, how="left")
            .join(pairs, on=TASK, how="left")
            .join(reachable(self.base, self._slots), on=TASK, how="left")
            .with_columns(pl.col("weighed").fill_null(value=False), counts)
            .sort(TASK)
        )

    @cached_property
    def _slots(self) -> pl.DataFrame | None:
        """Size of each parent queue at each instant, which no setting changes; null for nuclei."""
        return slots(self.base.world) if isinstance(self.base, QueueDecisions) else None

    def of_key(
        self,
        key: str,
        grid: Iterable[Any],
        scope: Mapping[str, str] = MappingProxyType({}),
        *,
        scopes: Mapping[str, Sequence[str]] | None = None,
    ) -> WhatIf:
        """Try values of a key, see :func:`what_if`; ``scopes``: placeholder to the values that occur (null: in these tasks)."""
        values, config = tuple(grid), self.base.world.config
        if not values:
            raise ConfigError(f"what_if of {key}: the grid is empty; give at least one value")
        if scopes is None:
            tasks = self.base.world.tasks
            scopes = {name: texts_of(tasks[column]) for name, column in SCOPES.items()}
        places = _places(self, key, scopes, scope)
        tried = [config.with_values(dict.fromkeys(places, value)) for value in values]
        is_current = tuple(_holds(config, places, value) for value in values)
        changes = [
            self._changes(step, other) for step, other in enumerate(tried) if not is_current[step]
        ]
        return WhatIf(
            values=values,
            is_current=is_current,
            tasks=self.tasks,
            changes=pl.concat([_NONE, *changes]),
        )

    def _decided(self, config: Config) -> PlaceDecisions:
        """Return the decisions under another configuration, at least of all tasks that it may change."""
        world, remade = self.base.world, TABLE_KEYS
        if self.asked and differing(config, world.config, remade, world.place_of):
            return decide(self.asked, rules=world.rules, config=config, brokerage=world.brokerage)
        return redecide(self.base, config)

    def _changes(self, step: int, config: Config) -> pl.DataFrame:
        some = self._decided(config)
        result = compare(self.base.of_tasks(some.tasks), some).every.filter(CHANGED)
        if result.is_empty():
            return _NONE
        then = reachable(some, self._slots).rename({"reachable": "then"})
        reach = self.tasks.select(*TASK, "reachable"), then
        for each in reach:
            result = result.join(each, on=TASK, how="left", maintain_order="left")
        placed = [pl.col(f"outcome_{side}").is_in(PLACED).cast(pl.Int64) for side in "ab"]
        return result.select(
            pl.lit(step, pl.Int64).alias("step"),
            *TASK,
            n_pairs=N_CHANGED,
            n_gained="gained",
            n_lost="lost",
            ends=OTHER_OUTCOME.cast(pl.Int64),
            without=placed[0] - placed[1],
            shift="shift",
            reach=pl.col("then") - pl.col("reachable"),
        )


def slots(world: World) -> pl.DataFrame:
    """Return the size of each parent queue at each instant: cores of the jobs that run there.

    Cores in use where they are counted (table ``core_stats``, production brokerage), else running jobs of all shares
    times the cores of a slot: ``snapshot, parent``, ``slots`` [cores], of parents with a queue that could be a candidate.
    """
    instants = world.tasks.select("t", "snapshot", q_version="t_version").unique(
        "snapshot", keep="first", maintain_order=True
    )
    parents = (
        world.facts.queues.filter("q_candidate")
        .select("q", "q_version", "parent")
        .unique(["q_version", "parent"], keep="first", maintain_order=True)
    )
    pairs = instants.join(parents, on="q_version").sort("t", "q")
    facts = replace(world.facts, tasks=world.tasks)
    wanted = {"s_running", "s_running_cores", "p_corecount"}
    counted = looked_up(facts, pairs, wanted)
    if "s_running_cores" not in counted.columns:
        counted = counted.with_columns(s_running_cores=pl.lit(0, pl.Int64))
    guessed = pl.col("s_running") * pl.max_horizontal("p_corecount", 1)
    known = pl.col("s_running_cores") > 0
    sized = counted.select(
        "snapshot", "parent", slots=pl.when(known).then("s_running_cores").otherwise(guessed)
    )
    return sized.sort("snapshot", "parent")


def reachable(decisions: PlaceDecisions, sizes: pl.DataFrame | None = None) -> pl.DataFrame:
    """Return the share of the running slots that each task may reach: ``jeditaskid, snapshot, reachable`` (0 to 1), sorted.

    The slots (``sizes``; null: :func:`slots`) of the queues that are candidates, or would be if more than ten were taken (check
    ``rank``, for user tasks ``low_weight``), divided by those of all queues that run production (analysis) at that
    instant. Pseudo-queues of one parent count once. 0 for a task that ended before any queue was looked at; null where nothing runs anywhere, and for nuclei.
    """
    if not isinstance(decisions, QueueDecisions):
        return decisions.tasks.select(*TASK, reachable=pl.lit(None, pl.Float64))
    sizes = slots(decisions.world) if sizes is None else sizes
    total = sizes.group_by("snapshot").agg(total=pl.col("slots").sum())
    queues = decisions.world.facts.queues
    names = queues.select(pl.col("panda_queue"), "parent").unique("panda_queue", keep="first")
    names = names.with_columns(pl.col("panda_queue").cast(decisions.queues.schema["panda_queue"]))
    could = pl.col("check").is_null() | pl.col("check").cast(pl.String).is_in(BEYOND_THE_BEST)
    places = decisions.queues.filter(could).join(names, on="panda_queue")
    places = places.select(*TASK, "parent").unique()
    result = places.join(sizes, on=["snapshot", "parent"]).group_by(TASK).agg(pl.col("slots").sum())
    tasks = decisions.tasks.select(TASK).join(result, on=TASK, how="left")
    share = pl.when(pl.col("total") > 0).then(pl.col("slots").fill_null(0) / pl.col("total"))
    return tasks.join(total, on="snapshot", how="left").select(*TASK, reachable=share).sort(TASK)


def _holds(config: Config, places: Sequence[str], value: Any) -> bool:
    names = [place.split("/", 2) for place in places]
    now = [
        config.get(key, app=app, component=component, vo="atlas") for app, component, key in names
    ]
    return all(result == value for result in now)


def texts_of(column: pl.Series) -> list[str]:
    """Return the texts that occur in a column, sorted, empty ones aside."""
    return [text for text in column.unique().sort().to_list() if text]


def _places(
    model: Sensitivity, key: str, scopes: Mapping[str, Sequence[str]], scope: Mapping[str, str]
) -> list[str]:
    """Return ``app/component/KEY`` of every entry to set."""
    pattern = _pattern(model, key)
    component = model.base.world.place_of(pattern)
    if pattern != key:  # an exact key of a pattern
        return [f"{component}/{key}"]
    required, optional = scope_names(pattern)
    unknown = sorted(scope.keys() - required - optional)
    if unknown:
        hint = nearest(unknown[0], required | optional) if required | optional else "it has none"
        raise ConfigError(f"{key} has no placeholder '{unknown[0]}': {hint}")
    given: dict[str, Sequence[str]] = {name: [text] for name, text in scope.items()}
    given |= {name: scopes.get(name, ()) for name in required - scope.keys()}
    names = sorted(given)
    keys = [
        expand(pattern, dict(zip(names, texts, strict=True)))[0]
        for texts in itertools.product(*(given[name] for name in names))
    ]
    keys = [name for name in keys if scope or catalogue.rows_of(name)]  # not every name fits a key
    if not keys:
        raise ConfigError(f"{key}: no task has a value for {', '.join(sorted(required))}")
    return [f"{component}/{name}" for name in dict.fromkeys(keys)]


def _pattern(model: Sensitivity, key: str) -> str:
    """Return the key as the catalogue writes it."""
    if key in model.keys:
        return key
    rows = catalogue.rows_of(key)
    result = [row.key for row in rows if row.key in model.keys]
    if result:
        return result[0]
    if rows:
        raise ConfigError(
            f"gdpconfig key '{key}' is read by nothing here; read are {', '.join(sorted(model.keys))}"
        )
    raise ConfigError(f"gdpconfig key '{key}' is unknown: {nearest(key, model.keys)}")
