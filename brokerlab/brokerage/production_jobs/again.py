"""Decide again what a change of the configuration changes, and nothing else."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np
import polars as pl

from brokerlab.brokerage.engine.evaluation import evaluated
from brokerlab.brokerage.engine.pairs import Facts, matched
from brokerlab.brokerage.engine.rule import Rule
from brokerlab.brokerage.inputs.completeness import Completeness, completeness
from brokerlab.brokerage.production_jobs.decide import decide, in_parts, settled
from brokerlab.brokerage.production_jobs.decisions import Decisions, Part
from brokerlab.brokerage.production_jobs.facts import World
from brokerlab.brokerage.production_jobs.nucleus import link_side, network_acts
from brokerlab.brokerage.production_jobs.ranking import (
    BOOTSTRAP_KEY,
    COMPLETENESS_KEYS,
    INPUT_KEYS,
    LIMIT_KEY,
    MIN_WEIGHT_KEY,
    NETWORK_KEYS,
    THRESHOLD_KEYS,
    weight_keys,
)
from brokerlab.brokerage.production_jobs.recipe import PRODUCTION
from brokerlab.brokerage.production_jobs.settings import JobSettings, place_of, read, share_settings
from brokerlab.gdpconfig import Config
from brokerlab.numerics import IntArray

KEY = ["jeditaskid", "snapshot"]


def facts_of(facts: Facts, tasks: pl.DataFrame) -> Facts:
    """Return the facts of some tasks.

    Args:
        facts: The facts.
        tasks: ``t`` of the tasks.
    """
    kept = facts.tasks.join(tasks, on="t", how="semi", maintain_order="left")
    return replace(facts, tasks=kept, listed=facts.listed.join(tasks, on="t", how="semi"))


def keys_read(decisions: Decisions) -> tuple[str, ...]:
    """Return the gdpconfig keys that decisions of these rules read, as the catalogue writes them."""
    found = [key for reason in decisions.reasons for key in reason.keys]
    weight = weight_keys(decisions.world.rules)
    return tuple(dict.fromkeys([*COMPLETENESS_KEYS, *found, *weight]))


def with_config(world: World, config: Config) -> World:
    """Return the world under another configuration, as far as facts of tasks and links go.

    What the keys of completeness change is not looked at, see :func:`redecided`.

    Raises:
        ConfigError: Settings that no rule can work with.
    """
    settings = JobSettings.of(config)
    acts = network_acts(world.rules, settings)
    shares = share_settings(config, world.tasks.select("t_label", "t_gshare").iter_rows())
    shares = shares.rename({"prodsourcelabel": "t_label", "gshare": "t_gshare"})

    def changed(tasks: pl.DataFrame) -> pl.DataFrame:
        kept = tasks.drop("t_queue_limit", "t_min_weight").with_columns(t_network=acts)
        return kept.join(
            shares, on=["t_label", "t_gshare"], how="left", nulls_equal=True, maintain_order="left"
        )

    tasks = changed(world.tasks)
    links = link_side(tasks, world.links, world.ids, rules=world.rules, config=config)
    sides = tuple(links if "l_weight" in side.missing else side for side in world.facts.sides)
    facts = replace(world.facts, tasks=changed(world.facts.tasks), sides=sides)
    return replace(world, config=config, settings=settings, tasks=tasks, facts=facts)


def redecided(decisions: Decisions, config: Config) -> Decisions:
    """Return the decisions under another configuration of the tasks that it may touch; all others stay as they are.

    Only checks that read a changed key are evaluated again, and only tasks with a check that turned, or whose
    weight or caps read a changed key, are weighed and ranked again.

    Args:
        decisions: What was decided.
        config: The other configuration.

    Raises:
        ConfigError: Settings that no rule can work with.
    """
    if decisions.world.recipe is not PRODUCTION or decisions.world.own:
        # own weights do not tell which keys they read, own rules may read any
        return _anew(decisions, config, only_completeness=False)
    world = with_config(decisions.world, config)
    keys = _changed_keys(decisions, world)
    if keys & set(COMPLETENESS_KEYS):
        return _anew(decisions, config, only_completeness=keys <= set(COMPLETENESS_KEYS))
    checks = PRODUCTION.checks(world.rules, world.settings)
    again = [bit for bit, check in enumerate(checks) if set(check.keys) & keys]
    touched = world.facts.tasks.select("t").filter(_touched(decisions.world, world, keys))
    failed = decisions.queues["failed"].to_numpy()
    parts, start = [], 0
    for part in in_parts(world.facts):
        pairs = matched(part)
        old = failed[start : start + pairs.height]
        start += pairs.height
        new = patched(old, part, checks, again)
        pairs = pairs.with_columns(failed=pl.Series(new))
        turned = pairs.filter(pl.Series(new != old)).select("t").unique()
        tasks = pl.concat([touched, turned]).unique().join(part.tasks, on="t", how="semi")
        if tasks.height:
            left = pairs.join(tasks, on="t", how="semi", maintain_order="left")
            parts.append(settled(world, left, facts_of(part, tasks), checks))
    return _of_some(world, checks, parts)


def patched(
    failed: IntArray, part: Facts, checks: Sequence[Rule], again: Sequence[int]
) -> IntArray:
    """Return the failed checks with those numbered in ``again`` evaluated anew."""
    if not again:
        return failed
    found = evaluated(part, [checks[bit] for bit in again])["failed"].to_numpy()
    patched = failed & ~np.int64(sum(1 << bit for bit in again))
    for place, bit in enumerate(again):
        patched |= (found >> place & 1) << bit
    return patched


def _of_some(world: World, checks: Sequence[Rule], parts: Sequence[Part]) -> Decisions:
    """Return decisions on the tasks of the parts alone."""
    if not parts:
        empty = facts_of(world.facts, world.facts.tasks.select("t").clear())
        parts = [settled(world, evaluated(empty, checks), empty, checks)]
    done = pl.concat(part.pairs.select("t").unique() for part in parts)
    some = replace(
        world,
        facts=facts_of(world.facts, done),
        tasks=world.tasks.join(done, on="t", how="semi", maintain_order="left"),
        outcomes=world.outcomes.clear(),
    )
    return Decisions.of(some, checks, parts)


def _changed_keys(decisions: Decisions, world: World) -> set[str]:
    """Return the keys read whose value differs between the configurations of two worlds."""
    old, new = decisions.world, world
    by_share = {LIMIT_KEY: "t_queue_limit", MIN_WEIGHT_KEY: "t_min_weight"}
    read_once = set(keys_read(decisions)) - by_share.keys()
    found = {
        key for key, column in by_share.items() if not old.tasks[column].equals(new.tasks[column])
    }
    return (found & set(keys_read(decisions))) | differing(read_once, old.config, new.config)


def differing(keys: Iterable[str], old: Config, new: Config) -> set[str]:
    """Return the keys whose value differs between configurations; none of them is by share."""
    found = set()
    for key in keys:
        component = place_of(key).removeprefix("jedi/")
        if read(old, key, component) != read(new, key, component):
            found.add(key)
    return found


def _touched(old: World, new: World, keys: set[str]) -> pl.Series:
    """Return which tasks may be weighed, capped or ranked otherwise because of changed keys."""
    tasks = new.facts.tasks
    before = old.facts.tasks
    network = before["t_network"] | tasks["t_network"]

    def turns(column: str, a: float, b: float) -> pl.Series:
        return (tasks[column] > a) != (tasks[column] > b)

    limits = (new.settings.io_intensity_cutoff, old.settings.io_intensity_cutoff)
    prios = (new.settings.max_prio_to_bootstrap, old.settings.max_prio_to_bootstrap)
    tests = {
        INPUT_KEYS: (tasks["t_iointensity"] > min(limits)) & (tasks["t_total"] > 0),
        NETWORK_KEYS: network,
        ("NW_ACTIVE",): before["t_network"] != tasks["t_network"],
        THRESHOLD_KEYS: network & tasks["t_express"],
        (BOOTSTRAP_KEY,): turns("t_prio", *prios),
        (LIMIT_KEY,): before["t_queue_limit"] != tasks["t_queue_limit"],
        (MIN_WEIGHT_KEY,): before["t_min_weight"] != tasks["t_min_weight"],
    }
    touched = pl.repeat(value=False, n=tasks.height, eager=True)
    for names, test in tests.items():
        if keys & set(names):
            touched = touched | test
    return touched


def _anew(decisions: Decisions, config: Config, *, only_completeness: bool) -> Decisions:
    """Decide anew the tasks that see other complete replicas; all of them where other keys changed too."""
    world = decisions.world
    tables = dict(world.tables)
    if only_completeness:
        tasks = tables["tasks"].with_columns(pl.col("snapshot").fill_null(0))
        old, new = (_complete(world, tasks, each) for each in (world.config, config))
        moved = pl.concat([_different(old.tasks, new.tasks), _different(*_places(old, new))])
        tables["tasks"] = tasks.join(moved, on=KEY, how="semi", maintain_order="left")
    return decide(
        tables, rules=world.rules, matching=world.matching, config=config, hint=world.hint,
        recipe=world.recipe, own=world.own,
    )  # fmt: skip


def _complete(world: World, tasks: pl.DataFrame, config: Config) -> Completeness:
    tables = world.tables
    return completeness(
        tasks, tables["datasets"], tables["replicas"], tables["storage_endpoints"],
        config=config, rules=world.rules,
    )  # fmt: skip


def _places(old: Completeness, new: Completeness) -> tuple[pl.DataFrame, pl.DataFrame]:
    return old.complete_locations, new.complete_locations


def _different(old: pl.DataFrame, new: pl.DataFrame) -> pl.DataFrame:
    """Return the tasks of rows that only one of the frames has."""
    parts = [
        a.join(b, on=a.columns, how="anti", nulls_equal=True).select(KEY)
        for a, b in ((old, new), (new, old))
    ]
    return pl.concat(parts).unique()
