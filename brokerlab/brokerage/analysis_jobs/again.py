"""Decide again what a change of the configuration changes, and as little else as is simple."""

from __future__ import annotations

from dataclasses import replace

import polars as pl

from brokerlab.brokerage.analysis_jobs.decide import Evaluate, decide, decided
from brokerlab.brokerage.analysis_jobs.decisions import AnalysisDecisions
from brokerlab.brokerage.analysis_jobs.facts import INPUT_FACTS, World, ended, with_input
from brokerlab.brokerage.analysis_jobs.keys import RELAXATION_KEYS, place_of, weight_keys
from brokerlab.brokerage.analysis_jobs.settings import AnalysisSettings, ThrottleSettings
from brokerlab.brokerage.analysis_jobs.task_facts import BY_SETTINGS, by_settings
from brokerlab.brokerage.analysis_jobs.throttle import throttled
from brokerlab.brokerage.analysis_jobs.throttle_rules import throttle_rules
from brokerlab.brokerage.engine.evaluation import evaluated
from brokerlab.brokerage.engine.pairs import Facts, matched, run
from brokerlab.brokerage.engine.rule import Rule
from brokerlab.brokerage.production_jobs.again import facts_of, patched
from brokerlab.brokerage.production_jobs.ranking import COMPLETENESS_KEYS
from brokerlab.gdpconfig import Config

FIRST, SECOND = 1, 2
"""Locality loops."""
OF_TASKS = ("io_intensity_cutoff", "data_check_timeout_h")
"""Settings that act through facts of tasks alone."""


def keys_read(decisions: AnalysisDecisions) -> tuple[str, ...]:
    """Return the gdpconfig keys that decisions of these rules read, as the catalogue writes them."""
    reasons = (*throttle_rules(), *decisions.reasons, *decisions.marks)
    found = [key for reason in reasons for key in reason.keys]
    weight = weight_keys(decisions.world.rules)
    return tuple(dict.fromkeys([*COMPLETENESS_KEYS, *RELAXATION_KEYS, *found, *weight]))


def redecided(decisions: AnalysisDecisions, config: Config) -> AnalysisDecisions:
    """Return the decisions under another configuration of the tasks that it may touch; all others stay as they are.

    Checks of single queues that read no changed key are not asked again. Keys of the throttle, of relaxations, of
    completeness and of the least weight touch the tasks of which they change a fact, all others every task.

    Args:
        decisions: What was decided.
        config: The other configuration.

    Raises:
        ConfigError: Settings that no rule can work with.
    """
    old = decisions.world
    if old.own:  # they may read any key
        return decide(
            old.tables, rules=old.rules, matching=old.matching, config=config, own=old.own
        )
    world = with_config(old, config)
    moved, asked_anew = _moved(old, world)
    every = _plain(old.settings) != _plain(world.settings)
    tasks = world.tasks.select("t") if every else moved
    some = replace(
        world,
        facts=facts_of(world.facts, tasks),
        tasks=world.tasks.join(tasks, on="t", how="semi", maintain_order="left"),
        outcomes=world.outcomes.join(tasks, on="t", how="semi", maintain_order="left"),
    )
    checks = world.checks
    return decided(some, checks, _known(decisions, some, checks, asked_anew))


def with_config(world: World, config: Config) -> World:
    """Return the world under another configuration.

    Raises:
        ConfigError: Settings that no rule can work with.
    """
    settings = AnalysisSettings.of(config)
    new = by_settings(world.tables["tasks"], settings=settings, config=config)
    tasks = world.tasks.drop(BY_SETTINGS).hstack(new[world.tasks["t"]])
    data = world.facts.sides[0]
    if any(differs(key, world.config, config) for key in COMPLETENESS_KEYS):
        tasks, data = with_input(
            tasks.drop(INPUT_FACTS), world.tables, world.ids, world.pool, config
        )
    held = throttled(world.tables, rules=world.rules, settings=ThrottleSettings.of(config))
    outcomes = run(ended(tasks.lazy(), held.lazy()))
    facts = replace(
        world.facts,
        tasks=tasks.join(outcomes, on="t", how="anti", maintain_order="left"),
        sides=(data, *world.facts.sides[1:]),
    )
    return replace(
        world, config=config, settings=settings, facts=facts, tasks=tasks, outcomes=outcomes, throttle=held,
    )  # fmt: skip


def _plain(settings: AnalysisSettings) -> AnalysisSettings:
    """Return the settings without those that act through facts of tasks alone."""
    return replace(settings, **dict.fromkeys(OF_TASKS, 0.0))


def _moved(old: World, new: World) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return ``t`` of tasks with other facts or another end before queues, and of those whose checks see other facts."""
    return (
        _different(_facts(old, (*BY_SETTINGS, *INPUT_FACTS)), _facts(new, (*BY_SETTINGS, *INPUT_FACTS))),
        _different(old.tasks.select("t", *INPUT_FACTS), new.tasks.select("t", *INPUT_FACTS)),
    )  # fmt: skip


def _facts(world: World, names: tuple[str, ...]) -> pl.DataFrame:
    return world.tasks.select("t", *names).join(
        world.outcomes, on="t", how="left", maintain_order="left"
    )


def _different(old: pl.DataFrame, new: pl.DataFrame) -> pl.DataFrame:
    """Return ``t`` of rows that differ."""
    same = new.join(old, on=new.columns, how="semi", nulls_equal=True)
    return new.select("t").join(same, on="t", how="anti", maintain_order="left")


def _known(
    decisions: AnalysisDecisions, world: World, checks: tuple[Rule, ...], anew: pl.DataFrame
) -> Evaluate:
    """Return a function that asks only what is not known from decisions.

    Args:
        decisions: What was decided.
        world: What is decided on now.
        checks: The checks now.
        anew: ``t`` of tasks of which nothing is known.
    """
    before = decisions.world.config
    changed = {key for check in checks for key in check.keys if differs(key, before, world.config)}
    bits = [bit for bit, check in enumerate(checks) if set(check.keys) & changed]
    known = {
        loop: pairs.join(anew, on="t", how="anti", maintain_order="left")
        for loop, pairs in _failed(decisions).items()
    }

    def evaluate(facts: Facts, loop: int) -> pl.DataFrame:
        have = known[loop].join(facts.tasks, on="t", how="semi", maintain_order="left")
        done = have.select("t").unique()
        if have.height:
            failed = patched(have["failed"].to_numpy(), facts_of(facts, done), checks, bits)
            have = have.with_columns(failed=pl.Series(failed))
        lost = facts.tasks.select("t").join(done, on="t", how="anti")
        if not lost.height:
            return have
        return pl.concat([have, evaluated(facts_of(facts, lost), checks)]).sort("t", "q")

    return evaluate


def _failed(decisions: AnalysisDecisions) -> dict[int, pl.DataFrame]:
    """Return what is known of each loop: ``t, q, failed``, sorted."""
    facts = decisions.world.facts
    # the tables of decisions have names in the place of numbers, in the order of the numbers
    last = matched(facts).hstack(decisions.queues.select("loop", "failed"))
    twice = last.filter(pl.col("loop") == SECOND).join(
        _numbers(decisions, decisions.first_loop), on="t", how="semi"
    )
    before = matched(facts_of(facts, twice.select("t").unique()))
    before = before.hstack(decisions.first_loop.select("failed"))
    return {
        FIRST: pl.concat([last.filter(pl.col("loop") == FIRST).drop("loop"), before]).sort("t", "q"),
        SECOND: last.filter(pl.col("loop") == SECOND).drop("loop"),
    }  # fmt: skip


def _numbers(decisions: AnalysisDecisions, frame: pl.DataFrame) -> pl.DataFrame:
    """Return ``t`` of the tasks of a table of decisions."""
    keys = ["jeditaskid", "snapshot"]
    tasks = decisions.world.tasks.select("t", *keys)
    return tasks.join(frame.select(keys).unique(), on=keys, how="semi").select("t")


def differs(key: str, old: Config, new: Config) -> bool:
    """Tell whether a key has another value."""
    app, component = place_of(key).split("/")
    before, now = (
        config.get(key, app=app, component=component, vo="atlas") for config in (old, new)
    )
    return bool(before != now)
