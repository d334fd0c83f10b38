"""What other settings and the other rule set would have decided: which keys matter, and which single switches."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from types import MappingProxyType
from typing import Any, TypeVar

import numpy as np
import polars as pl

from brokerlab.brokerage.comparison import (
    CHANGED,
    CHANGES,
    N_CHANGED,
    OTHER_BEST,
    OTHER_OUTCOME,
    compare,
)
from brokerlab.brokerage.engine.brokerage import Brokerage
from brokerlab.brokerage.engine.decisions import TASK, PlaceDecisions
from brokerlab.brokerage.replaying import Replay
from brokerlab.brokerage.sensitivities import Sensitivity, WhatIf, texts_of
from brokerlab.brokerage.studies.period import PRODUCTION, JobDecisions, Kind, kind_of
from brokerlab.brokerage.studies.removal import CANDIDATE
from brokerlab.errors import ConfigError, nearest
from brokerlab.gdpconfig import Config
from brokerlab.gdpconfig.keys import CatalogueKey, rows, rows_of
from brokerlab.gdpconfig.ranges import grid, scale_of
from brokerlab.intervals import N_BOOT, shares
from brokerlab.matching.rules import MatchingRules
from brokerlab.rulesets import (
    BY_SWITCH,
    RuleSet,
    changed_outcomes,
    single_switches,
    switch_by_switch,
)

SWITCHES = BY_SWITCH | {"shift": pl.Float64()}
"""Columns of `RuleSetComparison.switches`."""
DIFFERS = ("any", "outcome", "best")
"""In what brokerages differ."""
R = TypeVar("R", bound=RuleSet)


@dataclass(frozen=True, kw_only=True)
class RuleSetComparison:
    """What differs between a rule set and the other one.

    Attributes:
        current: Name of the rule set looked at.
        other: Name of the other one.
        totals: See :func:`brokerlab.intervals.shares`, of the pairs: decided differently (``pairs``), candidates under
            the other set only (``gained``), under this one only (``lost``), skipped for another reason
            (``other_reason``).
        brokerages: The same of brokerages that differ in anything (``any``), in their ``outcome``, in their ``best``
            queue.
        switches: Of every switch tried alone on a sample, those of the text rules too: see
            :func:`brokerlab.rulesets.switch_by_switch`, rows are pairs, with ``shift`` [1] (mean share of a task's expected
            jobs that it alone sends elsewhere).
        n_sample: Brokerages in that sample.
        n_sample_pairs: Pairs that differ between the rule sets there.
    """

    current: str
    other: str
    totals: pl.DataFrame
    brokerages: pl.DataFrame
    switches: pl.DataFrame
    n_sample: int
    n_sample_pairs: int


def compare_rule_sets(
    replay: Replay,
    decisions: JobDecisions,
    *,
    sample: int = 60,
    n_boot: int = N_BOOT,
    seed: int = 1,
) -> RuleSetComparison:
    """Decide under the other rule set and compare; try every difference alone on a ``sample`` of brokerages (0: none)."""
    rules, brokerage = decisions.world.rules, decisions.world.brokerage
    kind, tables = kind_of(decisions), replay.tables_of(brokerage.tables)
    there = brokerage.decide(tables, rules=other_rules(rules), config=replay.config)
    tried = try_switches(brokerage, replay, rules, only=kind.switches, sample=sample, seed=seed)
    return sum_up_differences(differences(decisions, there), rules, tried, n_boot=n_boot, seed=seed)


def other_rules(rules: R) -> R:
    """Return the other rule set of a brokerage: production for document."""
    return type(rules)("production" if rules.rules == "document" else "document")


def differences(here: JobDecisions, there: JobDecisions) -> dict[str, pl.DataFrame]:
    """Return what two rule sets decide differently on some tasks, by name.

    Returns:
        ``looked_at``: ``jeditaskid``, ``looked_at`` [pairs], under either rule set, and of these `CHANGES` and in all ``pairs``;
        ``brokerages``: ``jeditaskid, snapshot``, and as 0 or 1 ``any, outcome, best`` (what differs), ``brokerages`` (1).
    """
    every = compare(here, there).every
    flags = {"any": CHANGED, "outcome": OTHER_OUTCOME, "best": OTHER_BEST}
    looked_at = every.filter(pl.col("n_pairs") > 0).group_by("jeditaskid")
    return {
        "looked_at": looked_at.agg(
            pl.col(CHANGES).sum(), looked_at=pl.col("n_pairs").sum(), pairs=N_CHANGED.sum()
        ),
        "brokerages": every.select(
            *TASK,
            *(flags[name].cast(pl.Int64).alias(name) for name in DIFFERS),
            brokerages=pl.lit(1),
        ),
    }


def sum_up_differences(
    frames: Mapping[str, pl.DataFrame],
    rules: RuleSet,
    tried: tuple[pl.DataFrame, int, int],
    **dice: Any,
) -> RuleSetComparison:
    """Sum up :func:`differences` of all tasks, and what :func:`try_switches` ``tried``."""
    dice |= {"unit": "jeditaskid"}
    switches, n_sample, n_sample_pairs = tried
    return RuleSetComparison(
        current=rules.rules,
        other=other_rules(rules).rules,
        totals=shares(frames["looked_at"], ["pairs", *CHANGES], "looked_at", **dice),
        brokerages=shares(frames["brokerages"], DIFFERS, "brokerages", **dice),
        switches=switches,
        n_sample=n_sample,
        n_sample_pairs=n_sample_pairs,
    )


def draw_brokerages(tasks: pl.DataFrame, sample: int, *, seed: int) -> pl.DataFrame:
    """Draw some brokerages at random, at most one per task: ``jeditaskid, snapshot``."""
    ordered = tasks.select(TASK).sort(TASK)
    mixed = ordered.with_columns(draw=pl.Series(np.random.default_rng(seed).random(tasks.height)))
    once = mixed.sort("draw").unique("jeditaskid", keep="first", maintain_order=True).head(sample)
    return once.drop("draw").sort(TASK)


def try_switches(
    brokerage: Brokerage[Any, Any],
    replay: Replay,
    rules: RuleSet,
    *,
    only: Collection[str],
    texts: bool = True,
    sample: int,
    seed: int,
    options: Mapping[str, Any] = MappingProxyType({}),
) -> tuple[pl.DataFrame, int, int]:
    """Try switches on which the sets differ alone, with ``texts`` those of the text rules too, on a sample of brokerages.

    ``only``: switches of the rule set that count; ``options`` of the brokerage.

    Returns:
        The switches (`RuleSetComparison.switches`), the brokerages tried and the pairs that differ between the sets there.
    """
    if not sample:
        return pl.DataFrame(schema=SWITCHES), 0, 0
    some = replay.of(draw_brokerages(replay.tasks, sample, seed=seed))
    tables = some.tables_of(brokerage.tables)
    world = brokerage.prepare(tables, rules=rules, config=replay.config, **options)

    @cache
    def decide(one: RuleSet) -> PlaceDecisions:
        pair = (rules, one) if isinstance(one, MatchingRules) else (one, None)
        decisions: PlaceDecisions = brokerage.of(world.with_rules(*pair))
        return decisions

    def checks(one: RuleSet) -> pl.DataFrame:
        pairs = decide(one).pairs
        named = pl.all().exclude(TASK).cast(pl.String)
        return pairs.select(*TASK, named).with_columns(pl.col("check").fill_null(CANDIDATE))

    before, other = decide(rules), other_rules(rules)
    keys, there = [*TASK, before.place], checks(other)
    table = switch_by_switch(checks, rules, other, keys=keys, only=only, there=there)
    alone: dict[str, RuleSet] = {**single_switches(rules, other)}
    if texts:
        ours, theirs = MatchingRules(rules.rules), MatchingRules(other.rules)
        alone |= single_switches(ours, theirs)
        of_texts = switch_by_switch(checks, ours, theirs, keys=keys, there=there)
        table = pl.concat([table, of_texts])
    shifts = [compare(before, decide(alone[name])).weight_shift or 0.0 for name in table["switch"]]
    result = table.with_columns(shift=pl.Series(shifts, dtype=pl.Float64)).sort(
        "explained", "n_changed", "shift", "switch", descending=[True, True, True, False]
    )
    n_pairs = changed_outcomes(checks(rules), there, keys).height
    return result, tables["tasks"].height, n_pairs


JOBS, NUCLEI = "jobs", "nuclei"
"""What a key decides: where jobs go, or which nucleus a task gets."""
SCOPES = ("brokerage", "classification")
"""Parts of the system whose keys decide where work goes."""
WORTH = 0.01
"""A key is worth calibrating if, halved or doubled, the interval of the share it moves begins at so much or more [1]."""


@dataclass(frozen=True, kw_only=True)
class KeyEffects:
    """What other values of the keys would change.

    Attributes:
        keys: One row per key, the one that matters most first: ``key``, ``name`` (with its unit in brackets), ``decides`` (jobs, nuclei), ``unit``,
            ``scale``, ``current``, ``least`` and ``most`` tried; and of the value at which most goes elsewhere:
            ``at``, ``shift, shift_lo, shift_hi`` (share of the expected jobs that goes elsewhere), ``pairs`` (share
            decided differently), ``without`` (change of the share of brokerages without a queue), ``reachable`` (change
            of the mean share of slots; null for nuclei), all [1]; ``half, half_lo, half_hi`` and ``double, double_lo,
            double_hi``, the shares at half and twice the current value, within the range (null: there is no such
            value); ``worth`` (one of their lower ends reaches `WORTH`; of a key without such values, ``shift_lo``).
        curves: One row per key and value: ``key, decides, unit, scale, value, current, is_current``, ``shift,
            shift_lo, shift_hi, pairs, without, reachable``.
        skipped: ``key``, ``reason`` why it could not be tried: ``no_nuclei`` (the choice of the nucleus is not
            replayed), ``not_read`` (no check and no weight reads it under this rule set and these settings).
    """

    keys: pl.DataFrame
    curves: pl.DataFrame
    skipped: pl.DataFrame

    @property
    def steps(self) -> pl.DataFrame:
        """What moves at half the current value, at its double and at most, where there is such a value.

        ``key, value`` (halved, doubled, at the value that moves most), ``share, share_lo, share_hi`` [1].
        """
        names = {"half": "halved", "double": "doubled", "shift": "at the value that moves most"}
        return pl.concat(
            self.keys.select(
                "key",
                value=pl.lit(name),
                **{f"share{end}": f"{column}{end}" for end in ("", "_lo", "_hi")},
            )
            for column, name in names.items()
        ).drop_nulls("share")


def check_keys(keys: Iterable[str], kind: Kind = PRODUCTION) -> None:
    """Refuse keys that the catalogue does not know for a brokerage, all at once."""
    known = {row.key for row in _catalogue_rows(kind)}
    problems = [
        f"{key!r} is no key of the {kind.name} brokerage, {nearest(key, known)}"
        for key in keys
        if not _rows_of(key, kind)
    ]
    if problems:
        raise ConfigError("; ".join(problems))


def which_keys_matter(
    decisions: JobDecisions,
    keys: Sequence[str],
    *,
    replay: Replay | None = None,
    points: int = 5,
    **dice: Any,
) -> KeyEffects:
    """Try every key of a job brokerage over its range; those of the choice of the nucleus are skipped.

    A pattern of keys is set for every share that occurs; keys on which the tables of a ``replay`` depend are tried on it.
    Besides its own value, its half and its double, ``points`` are tried of each.
    """
    kind = kind_of(decisions)
    check_keys(keys, kind)
    world = decisions.world
    tries = plan_tries(keys, kind, {JOBS: world.tables["tasks"]}, world.config, points=points)
    remade = {each.key for each in tries if replay and each.row.key in kind.table_keys}
    tried = try_keys(Sensitivity.of(decisions), [one for one in tries if one.key not in remade])
    if remade and replay is not None:
        model = Sensitivity.of(replay, rules=world.rules, brokerage=world.brokerage)
        tried |= try_keys(model, [one for one in tries if one.key in remade])
    return sum_up_keys(tries, tried, **dice)


@dataclass(frozen=True, kw_only=True)
class Try:
    """A key to be tried.

    Attributes:
        key: The key, as it was asked for.
        row: Its row of the catalogue.
        decides: `JOBS` or `NUCLEI`.
        current: The value in force; of a key by share the one that most brokerages see.
        values: Values to try; none: the choice that it decides is not replayed.
        scopes: Placeholder to the values that the tasks have.
    """

    key: str
    row: CatalogueKey
    decides: str
    current: Any
    values: tuple[Any, ...]
    scopes: Mapping[str, Sequence[str]]


def plan_tries(
    keys: Iterable[str],
    kind: Kind,
    tasks: Mapping[str, pl.DataFrame],
    config: Config,
    *,
    points: int = 5,
) -> list[Try]:
    """Choose the values of every key, from all tasks that are decided.

    ``tasks``: ``gshare, prodsourcelabel`` of the brokerages of jobs (`JOBS`), and of nuclei (`NUCLEI`) where their choice is
    replayed.
    """
    tries = []
    for key in dict.fromkeys(keys):
        row = _rows_of(key, kind)[0]
        decides = NUCLEI if row.components == ("taskbrokerage",) else JOBS
        rows = tasks.get(decides)
        current, values, scopes = None, (), {}
        if rows is not None:
            current = _current(config, key, row, rows)
            values = tuple(grid(row, current, points))
            scopes = {name: texts_of(rows[name]) for name in ("gshare", "prodsourcelabel")}
        tries.append(
            Try(key=key, row=row, decides=decides, current=current, values=values, scopes=scopes)
        )
    return tries


def try_keys(model: Sensitivity, tries: Iterable[Try], decides: str = JOBS) -> dict[str, WhatIf]:
    """Try keys on some tasks: key to what it changes; those that the brokerage does not read are left out."""
    return {
        one.key: model.of_key(one.key, one.values, scopes=one.scopes)
        for one in tries
        if one.decides == decides and one.row.key in model.keys
    }


def sum_up_keys(tries: Sequence[Try], tried: Mapping[str, WhatIf], **dice: Any) -> KeyEffects:
    """Sum up what keys (of :func:`plan_tries`) change on all tasks."""
    curves = [_curve(one, tried[one.key], **dice) for one in tries if one.key in tried]
    every = pl.concat([pl.DataFrame(schema=_CURVE), *curves])
    skipped = [
        (one.key, "not_read" if one.values else "no_nuclei")
        for one in tries
        if one.key not in tried
    ]
    reasons = pl.DataFrame(
        skipped, schema=dict.fromkeys(("key", "reason"), pl.String), orient="row"
    )
    return KeyEffects(keys=_rank_keys(every), curves=every, skipped=reasons)


_CURVE = pl.Schema(
    {
        **dict.fromkeys(("key", "decides", "unit", "scale"), pl.String()),
        **dict.fromkeys(("value", "current"), pl.Float64()),
        "is_current": pl.Boolean(),
        **dict.fromkeys(("shift", "shift_lo", "shift_hi"), pl.Float64()),
        **dict.fromkeys(("pairs", "without", "reachable"), pl.Float64()),
    }
)


def _curve(one: Try, effect: WhatIf, **dice: Any) -> pl.DataFrame:
    tasks, current = effect.tasks, one.current
    n_without = tasks.height - int(tasks["placed"].sum())
    reach: Any = tasks["reachable"].mean()
    return (
        effect.totals()
        .hstack(_ends_of_shift(effect, **dice))
        .select(
            key=pl.lit(one.key),
            decides=pl.lit(one.decides),
            unit=pl.lit(one.row.unit),
            scale=pl.lit(scale_of(one.row)),
            value=pl.col("value").cast(pl.Float64),
            current=pl.lit(None if current is None else float(current), pl.Float64),
            is_current="is_current",
            shift=pl.col("weight_shift").fill_nan(None),
            shift_lo="shift_lo",
            shift_hi="shift_hi",
            pairs=pl.col("n_pairs") / max(int(tasks["n_pairs"].sum()), 1),
            without=(pl.col("n_without") - n_without) / max(tasks.height, 1),
            reachable=pl.col("slots_reachable") - pl.lit(reach, pl.Float64),
        )
        .cast(_CURVE)
    )


def _current(config: Config, key: str, row: CatalogueKey, tasks: pl.DataFrame) -> Any:
    """Return the value in force; of a key by share the one that most brokerages see."""
    place = {"app": row.app, "component": row.components[0], "vo": "atlas"}
    if row.key != key or row.pattern is None:
        return config.get(key, **place)
    scopes = (
        tasks.group_by("gshare", "prodsourcelabel")
        .len()
        .sort("len", "gshare", "prodsourcelabel", descending=[True, False, False])
    )
    seen: dict[Any, int] = {}
    for gshare, label, n in scopes.iter_rows():
        value = config.get(key, gshare=gshare, prodsourcelabel=label, **place)
        seen[value] = seen.get(value, 0) + n
    return max(seen, key=lambda value: seen[value])


def _ends_of_shift(effect: WhatIf, **dice: Any) -> pl.DataFrame:
    """Return the interval of the share of jobs that go elsewhere, one row per value."""
    steps = pl.DataFrame({"step": range(len(effect.values))})
    every = effect.tasks.select(*TASK, "weighed").join(steps, how="cross")
    weighed = pl.col("weighed") | pl.col("shift").is_not_null()
    table = every.join(effect.changes, on=["step", *TASK], how="left").select(
        "step",
        "jeditaskid",
        shift=pl.col("shift").fill_nan(None).fill_null(0.0),
        weighed=weighed.cast(pl.Int64),
    )
    result = shares(table, ["shift"], "weighed", unit="jeditaskid", by=["step"], **dice)
    return result.select(shift_lo="share_lo", shift_hi="share_hi")


def _rank_keys(curves: pl.DataFrame) -> pl.DataFrame:
    moved = pl.col("shift").fill_null(0)
    order = curves.sort("key", moved, "pairs", "value", descending=[False, True, True, False])
    ends = curves.group_by("key").agg(least=pl.col("value").min(), most=pl.col("value").max())
    first = order.unique("key", keep="first", maintain_order=True).rename({"value": "at"})
    result = first.drop("is_current").join(ends, on="key")
    near = curves.filter(pl.col("current") != 0)  # 0 has neither half nor double
    below = near.filter(pl.col("value") < pl.col("current")).sort("value", descending=True)
    above = near.filter(pl.col("value") > pl.col("current")).sort("value")
    for name, side in (("half", below), ("double", above)):
        step = side.unique("key", keep="first", maintain_order=True)
        columns = {f"{name}{end}": f"shift{end}" for end in ("", "_lo", "_hi")}
        result = result.join(step.select("key", **columns), on="key", how="left")
    no_steps = pl.col("half").is_null() & pl.col("double").is_null()
    least = pl.when(no_steps).then("shift_lo").otherwise(pl.max_horizontal("half_lo", "double_lo"))
    named = pl.format("{} [{}]", "key", "unit")
    return result.with_columns(
        worth=(least >= WORTH).fill_null(value=False),
        name=pl.when(pl.col("unit") == "").then("key").otherwise(named),
    ).sort(moved, "pairs", "key", descending=[True, True, False])


def _catalogue_rows(kind: Kind) -> list[CatalogueKey]:
    """Return the rows of the catalogue that a brokerage reads, those of its own components first."""
    places: dict[tuple[str, ...], int] = {(name,): n for n, name in enumerate(kind.components)}
    own = [row for row in rows() if row.components in places and row.scope in SCOPES]
    others = [row for row in rows() if row.key in kind.borrowed and row not in own]
    return [*sorted(own, key=lambda row: places[row.components]), *others]


def _rows_of(key: str, kind: Kind) -> list[CatalogueKey]:
    of_key = rows_of(key)
    return [row for row in _catalogue_rows(kind) if row in of_key]
