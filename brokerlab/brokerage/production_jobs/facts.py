"""Assemble what the checks and the weight read: tasks, queues, and the facts of pairs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import polars as pl

from brokerlab.brokerage.engine.own import Ordered, Own, with_settings
from brokerlab.brokerage.engine.pairs import Facts
from brokerlab.brokerage.engine.rule import Rule
from brokerlab.brokerage.engine.steps import Step, rules_of
from brokerlab.brokerage.inputs.completeness import Completeness, completeness
from brokerlab.brokerage.inputs.data import input_totals
from brokerlab.brokerage.production_jobs import sides
from brokerlab.brokerage.production_jobs.candidates import listed
from brokerlab.brokerage.production_jobs.changing import changing, run_all
from brokerlab.brokerage.production_jobs.counts import spread
from brokerlab.brokerage.production_jobs.ids import Ids
from brokerlab.brokerage.production_jobs.nucleus import (
    known_links,
    near_places,
    near_side,
    unwritable,
    with_near_any,
    with_nucleus,
)
from brokerlab.brokerage.production_jobs.queue_facts import queue_facts
from brokerlab.brokerage.production_jobs.ranking import steps
from brokerlab.brokerage.production_jobs.recipe import (
    PRODUCTION,
    Recipe,
    checks_of,
    schema_of,
    with_own_facts,
)
from brokerlab.brokerage.production_jobs.repeated import one_row_per_key
from brokerlab.brokerage.production_jobs.settings import JobSettings, place_of
from brokerlab.brokerage.production_jobs.task_facts import task_facts
from brokerlab.brokerage.rules import ProductionRules
from brokerlab.gdpconfig import Config
from brokerlab.matching.rules import MatchingRules

Tables = dict[str, pl.DataFrame]

STATE_TABLES = (
    "site_activity", "job_stats", "job_stats_rt", "job_stats_workqueue", "job_stats_gshare_only",
    "transferring_by_nucleus", "core_stats", "diskio_usage", "worker_stats", "storage_endpoints", "live",
)  # fmt: skip
"""Tables whose rows without snapshot hold for every instant."""


@dataclass(frozen=True)
class World(Ordered):
    """The rules, settings and tables of a replay, and what was prepared from them.

    Attributes:
        tables: The input tables.
        rules: Rule set of the brokerage.
        matching: Rule set of the text rules.
        config: The configuration.
        settings: The keys read from it.
        facts: What the checks and the weight read.
        tasks: Facts of all tasks, those of ``outcomes`` included.
        outcomes: ``t, outcome, detail`` of tasks that end before any queue is looked at.
        hint: Only what could run is asked.
        links: Known links into the nuclei of the tasks.
        ids: The numbers by which facts are keyed.
        recipe: What the checks and the weight are.
        own: Rules that are added.
    """

    tables: Tables
    rules: ProductionRules
    matching: MatchingRules
    config: Config
    settings: JobSettings
    facts: Facts
    tasks: pl.DataFrame
    outcomes: pl.DataFrame
    hint: bool
    links: pl.DataFrame
    ids: Ids
    recipe: Recipe = PRODUCTION
    own: tuple[Own, ...] = ()

    def given(self) -> tuple[Sequence[Rule], Sequence[Step], Mapping[str, pl.DataType]]:
        """See :class:`~brokerlab.brokerage.engine.own.Ordered`."""
        then = steps(self.rules, self.settings, self.recipe)
        first = checks_of(self.recipe, self.rules, self.settings, self.facts, rules_of(then))
        return first, then, schema_of(self.facts)


def prepare(
    tables: Tables,
    *,
    rules: ProductionRules,
    matching: MatchingRules,
    config: Config,
    hint: bool = False,
    recipe: Recipe = PRODUCTION,
    own: tuple[Own, ...] = (),
) -> World:
    """Prepare the facts of all tasks.

    Args:
        tables: Every input table, held to its contract.
        rules: Rule set.
        matching: Rule set of the text rules.
        config: The configuration.
        hint: Only ask which queues could run the tasks; no nucleus is looked at.
        recipe: Adds facts of its own.
        own: Rules that are added; the settings that they read become columns of the tasks.

    Returns:
        The world; ``t`` numbers the rows of ``tasks`` that are looked at.
    """
    settings = JobSettings.of(config)
    instants = tables["tasks"].with_columns(pl.col("snapshot").fill_null(0))
    tables = one_row_per_key(tables | {"tasks": instants})
    raw = tables["tasks"]
    history = tables["queues"]["snapshot"].is_not_null().any()
    snapshots = raw.select("snapshot").unique().sort("snapshot")
    state = {
        name: spread(tables[name], snapshots) if name in STATE_TABLES else tables[name]
        for name in tables
    } | {"queues": spread(tables["queues"], snapshots) if history else tables["queues"]}
    tasks = task_facts(raw, tables["resource_work_queues"], rules=rules, config=config)
    tasks = tasks.with_columns(
        t_version=pl.col("snapshot") if history else pl.lit(0, dtype=pl.Int64),
        t_hint=pl.lit(value=hint),
        t_at_s=pl.col("at").dt.epoch("s"),
        t_nucleus=pl.lit(None, dtype=pl.String) if hint else pl.col("t_nucleus"),
    )
    queues = queue_facts(state, rules=rules)
    lists = listed(raw, tasks, queues, tables, rules=rules)
    if hint:
        lists = lists.clear()  # the queues asked about are all queues
    tasks = _with_lists(tasks, lists)
    found = completeness(
        raw, tables["datasets"], tables["replicas"], tables["storage_endpoints"],
        config=config, rules=rules,
    )  # fmt: skip
    ids = Ids.of(tasks, queues, tables)
    tasks, queues = ids.add(tasks, queues)
    links = known_links(tasks, state, rules=rules, config=config)
    tasks = with_nucleus(tasks, state, links, rules=rules, settings=settings)
    tasks = _with_input(tasks, tables, found)
    places = near_places(queues, state)
    queues = with_near_any(queues, places, state)
    outcomes = _outcomes(tasks, found.tasks, tables["nuclei"], hint=hint)
    lists = lists.select("t", "q").drop_nulls("q").join(outcomes, on="t", how="anti")
    nowhere = pl.col("t_listed") & ~pl.col("t").is_in(lists["t"].unique().implode())
    facts = Facts(
        tasks=tasks.filter(~nowhere).join(outcomes, on="t", how="anti", maintain_order="left"),
        queues=queues,
        listed=lists,
        sides=(
            near_side(tasks, places),
            *sides.build(
                tasks, queues, state, links, found.complete_locations, ids,
                rules=rules, matching=matching, config=config,
            ),
            *run_all(
                changing(
                    tasks.lazy(), queues.lazy(), {name: frame.lazy() for name, frame in state.items()}, ids,
                    unwritable(state, rules=rules).lazy(),
                )
            ),
        ),
    )  # fmt: skip
    facts = with_own_facts(recipe, facts, tables)
    given = (*recipe.checks(rules, settings), *(one.rule for one in own))
    read = [rule for rule in given if isinstance(rule, Rule)]  # others are refused by World
    facts = replace(facts, tasks=with_settings(facts.tasks, read, config, place_of))
    return World(
        tables, rules, matching, config, settings, facts, tasks, outcomes, hint, links, ids, recipe, own
    )  # fmt: skip


def _with_lists(tasks: pl.DataFrame, lists: pl.DataFrame) -> pl.DataFrame:
    """Add what depends on pre-assignment: ``t_single``, ``t_listed`` and the T1 factor."""
    flags = lists.group_by("t").agg(t_single=pl.col("single").first())
    tasks = tasks.join(flags, on="t", how="left", maintain_order="left").with_columns(
        t_listed=pl.col("t_single").is_not_null(),
        t_single=pl.col("t_single").fill_null(value=False),
    )
    urgent = pl.when("t_listed").then(1).otherwise("t_t1_urgent")
    test_queue = pl.col("t_queue_name").is_in(["test", "validation"]).fill_null(value=False)
    return tasks.with_columns(
        t_t1_factor=pl.max_horizontal("t_t1", urgent),
        t_policy_applies=~test_queue | (pl.col("t_single") & (pl.col("t_label") != "managed")),
        t_pilot_exempt=pl.col("t_label").str.contains("test", literal=True) & ~pl.col("t_express"),
    )


def _with_input(tasks: pl.DataFrame, tables: Tables, found: Completeness) -> pl.DataFrame:
    """Add the size of the input and where it is complete."""
    totals = input_totals(
        tasks.select("jeditaskid").unique(), tables["datasets"], tables["files"]
    ).rename({"total": "t_total", "nfiles": "t_nfiles"})
    where = found.tasks.select(
        "jeditaskid", "snapshot", t_remote_source="remote_source_available",
        t_no_complete=~pl.col("any_complete"),
    )  # fmt: skip
    return (
        tasks.join(totals, on="jeditaskid", how="left", maintain_order="left")
        .join(where, on=["jeditaskid", "snapshot"], how="left", maintain_order="left")
        .with_columns(
            pl.col("t_total", "t_nfiles").fill_null(0),
            pl.col("t_remote_source", "t_no_complete").fill_null(value=True),
        )
    )


def _outcomes(
    tasks: pl.DataFrame, complete: pl.DataFrame, nuclei: pl.DataFrame, *, hint: bool
) -> pl.DataFrame:
    """Return the tasks that fail before any queue is looked at (section 2)."""
    known = nuclei["nucleus"].implode()
    lost = pl.col("t_nucleus").is_not_null() & ~pl.col("t_nucleus").is_in(known)
    unknown = tasks.filter(lost & (not hint)).select(
        "t", outcome=pl.lit("unknown_nucleus"),
        detail=pl.format("nucleus {} is neither nucleus nor satellite", "t_nucleus"),
    )  # fmt: skip
    incomplete = (
        tasks.select("t", "jeditaskid", "snapshot")
        .join(complete.drop_nulls("outcome"), on=["jeditaskid", "snapshot"])
        .select("t", "outcome", "detail")
    )
    return pl.concat([unknown, incomplete.join(unknown, on="t", how="anti")])
