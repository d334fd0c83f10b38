"""Assemble what the checks and the weight read: tasks, queues, and the facts of pairs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import polars as pl

from brokerlab.brokerage.contracts import NEEDED
from brokerlab.brokerage.engine.decide import parts_of
from brokerlab.brokerage.engine.own import Own
from brokerlab.brokerage.engine.pairs import Facts, Side
from brokerlab.brokerage.engine.recipe import Recipe, checks_of
from brokerlab.brokerage.engine.settings import differing
from brokerlab.brokerage.engine.world import Evaluate, Lasting, Off, Part, World
from brokerlab.brokerage.inputs.completeness import Completeness, completeness, limits
from brokerlab.brokerage.inputs.data import input_totals
from brokerlab.brokerage.production_jobs import sides
from brokerlab.brokerage.production_jobs.candidates import listed
from brokerlab.brokerage.production_jobs.changing import changing, run_all
from brokerlab.brokerage.production_jobs.checks import queue_checks
from brokerlab.brokerage.production_jobs.counts import spread
from brokerlab.brokerage.production_jobs.ids import Ids
from brokerlab.brokerage.production_jobs.nucleus import (
    known_links,
    link_side,
    near_places,
    near_side,
    unwritable,
    with_near_any,
    with_nucleus,
    with_sites,
)
from brokerlab.brokerage.production_jobs.queue_facts import queue_facts
from brokerlab.brokerage.production_jobs.ranking import REPORTED, steps
from brokerlab.brokerage.production_jobs.repeated import one_row_per_key
from brokerlab.brokerage.production_jobs.settings import (
    COMPLETENESS_KEYS,
    NETWORK_KEYS,
    check_settings,
    of_tasks,
    place_of,
)
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
PRODUCTION = Recipe(name="production-jobs")
"""The production job brokerage of the documents."""


@dataclass(frozen=True, kw_only=True)
class JobLasting(Lasting):
    """What no setting changes of production jobs.

    Attributes:
        endpoints: ``queue_endpoints`` and ``storage_endpoints`` for every snapshot.
        rules: Rule set of the brokerage.
        links: Known links into the nuclei of the tasks, without weights.
        ids: The numbers by which facts are keyed.
    """

    NEEDED: ClassVar = NEEDED

    endpoints: Tables
    rules: ProductionRules
    links: pl.DataFrame
    ids: Ids


@dataclass(frozen=True, kw_only=True)
class JobWorld(World):
    """What the production job brokerage decides on.

    Attributes:
        complete: Where the input is complete, and its facts of pairs.
        network: Facts of links.
        outcomes: ``t, outcome, detail`` of tasks that end before any queue is looked at.
    """

    RANKS: ClassVar = {"weight": pl.Float64(), "rank": pl.Int64(), "jumbo": pl.Boolean()}
    ALSO_READ: ClassVar = REPORTED
    KEYS: ClassVar = (*COMPLETENESS_KEYS, *NETWORK_KEYS)
    LAST: ClassVar = "rank"

    lasting_facts: JobLasting
    complete: tuple[Completeness, Side]
    network: Side

    @property
    def rules(self) -> ProductionRules:
        """Rule set of the brokerage."""
        return self.lasting_facts.rules

    @property
    def links(self) -> pl.DataFrame:
        """Known links into the nuclei of the tasks, without weights."""
        return self.lasting_facts.links

    @property
    def ids(self) -> Ids:
        """The numbers by which facts are keyed."""
        return self.lasting_facts.ids

    @property
    def lasting(self) -> int:
        """See :attr:`brokerlab.brokerage.engine.world.World.lasting`."""
        return sum(1 << bit for bit, check in enumerate(self.checks) if check.kind == "persistent")

    @staticmethod
    def place_of(key: str) -> str:
        """See :meth:`brokerlab.brokerage.engine.world.World.place_of`."""
        return place_of(key)

    def with_config(self, config: Config) -> JobWorld:
        """See :meth:`brokerlab.brokerage.engine.world.World.with_config`."""
        known, complete, network = self.lasting_facts, self.complete, self.network
        check_settings(config)
        vos = known.tables["tasks"]["vo"]
        if not limits(vos, config).equals(limits(vos, self.config)):
            complete = _complete(known, config)
        if differing(config, self.config, NETWORK_KEYS, place_of):
            network = _network(known, config)
        return configured(known, complete, network, config)

    def parts(self, evaluate: Evaluate, *, off: Off | None = None) -> Iterator[Part]:
        """See :meth:`brokerlab.brokerage.engine.world.World.parts`."""
        return parts_of(self, self.facts, evaluate, off=off)


def configured(
    known: JobLasting, complete: tuple[Completeness, Side], network: Side, config: Config
) -> JobWorld:
    """Return the world with all that settings decide.

    Args:
        known: What no setting changes.
        complete: Where the input is complete under these settings, and its facts of pairs.
        network: Facts of links under these settings.
        config: The settings, held to :func:`~.settings.check_settings`.
    """
    found, complete_side = complete
    where = found.tasks.select(
        "jeditaskid", "snapshot", t_remote_source="remote_source_available",
        t_no_complete=~pl.col("any_complete"),
    )  # fmt: skip
    tasks = known.tasks.join(
        where, on=["jeditaskid", "snapshot"], how="left", maintain_order="left"
    ).with_columns(pl.col("t_remote_source", "t_no_complete").fill_null(value=True))
    tasks = known.with_facts_of_settings(tasks, of_tasks(known.rules), config, place_of)
    waiting = found.tasks if known.rules.code_only_checks else found.tasks.clear()
    outcomes = _outcomes(tasks, waiting, known.tables["nuclei"], hint=known.hint)
    outcomes = outcomes.filter(~pl.col("outcome").is_in(known.silent))
    lists = known.lists.join(outcomes, on="t", how="anti")
    nowhere = pl.col("t_listed") & ~pl.col("t").is_in(lists["t"].unique().implode())
    facts = Facts(
        tasks=tasks.filter(~nowhere).join(outcomes, on="t", how="anti", maintain_order="left"),
        queues=known.queues,
        listed=lists,
        sides=(
            *known.sides,
            complete_side,
            network,
        ),
    )
    facts = known.with_own_facts(facts)
    checks, then = known.in_order(facts)
    return JobWorld(
        lasting_facts=known,
        config=config,
        facts=facts,
        tasks=tasks,
        outcomes=outcomes,
        checks=checks,
        steps=then,
        complete=complete,
        network=network,
    )


def prepare(
    tables: Tables,
    *,
    rules: ProductionRules,
    matching: MatchingRules,
    config: Config,
    hint: bool = False,
    recipe: Recipe = PRODUCTION,
    own: tuple[Own, ...] = (),
    missing: frozenset[str] = frozenset(),
) -> JobWorld:
    """Prepare the facts of all tasks.

    Args:
        tables: Every input table, held to its contract.
        rules: Rule set.
        matching: Rule set of the text rules.
        config: The configuration.
        hint: Only ask which queues could run the tasks; no nucleus is looked at.
        recipe: What an organisation replaced.
        own: Rules that are added.
        missing: Names of tables that were not given.

    Returns:
        The world; ``t`` numbers the rows of ``tasks`` that are looked at. Settings are columns of the tasks, and so is
        what :func:`~.settings.of_tasks` makes of them.
    """
    check_settings(config)
    then = steps(rules, recipe)
    checks = checks_of(recipe, queue_checks, rules, then)
    instants = tables["tasks"].with_columns(pl.col("snapshot").fill_null(0))
    tables = one_row_per_key(tables | {"tasks": instants})
    tables = with_sites(tables, rules=rules)
    raw = tables["tasks"]
    history = tables["queues"]["snapshot"].is_not_null().any()
    snapshots = raw.select("snapshot").unique().sort("snapshot")
    state = {
        name: spread(tables[name], snapshots) if name in STATE_TABLES else tables[name]
        for name in tables
    } | {"queues": spread(tables["queues"], snapshots) if history else tables["queues"]}
    if "worker_node_gpu" in missing:
        del state["worker_node_gpu"]  # nobody looked, which is not the same as none seen
    tasks = task_facts(raw, tables["resource_work_queues"], rules=rules)
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
    ids = Ids.of(tasks, queues, tables)
    tasks, queues = ids.add(tasks, queues)
    links = known_links(tasks, state, rules=rules)
    tasks = _with_input(with_nucleus(tasks, state, links, rules=rules), tables)
    places = near_places(queues, state)
    queues = with_near_any(queues, places, state)
    lazy = {name: frame.lazy() for name, frame in state.items()}
    lost = unwritable(state, rules=rules).lazy()
    counted = run_all(changing(tasks.lazy(), queues.lazy(), lazy, ids, lost, rules=rules))
    known = JobLasting(
        tables=tables,
        endpoints={name: state[name] for name in ("queue_endpoints", "storage_endpoints")},
        rules=rules,
        matching=matching,
        hint=hint,
        recipe=recipe,
        checks=checks,
        steps=then,
        own=own,
        tasks=tasks,
        queues=queues,
        sides=(
            near_side(tasks, places),
            *sides.build(tasks, queues, state, ids, rules=rules, matching=matching),
            *counted,
        ),
        lists=lists.select("t", "q").drop_nulls("q"),
        links=links,
        ids=ids,
        missing=missing,
    )
    return configured(known, _complete(known, config), _network(known, config), config)


def _network(known: JobLasting, config: Config) -> Side:
    """Return the facts of links."""
    return link_side(known.tasks, known.links, known.ids, rules=known.rules, config=config)


def _complete(known: JobLasting, config: Config) -> tuple[Completeness, Side]:
    """Return where the input is complete, and its facts of pairs."""
    tables = known.tables
    found = completeness(
        tables["tasks"], tables["datasets"], tables["replicas"], tables["storage_endpoints"],
        config=config, rules=known.rules,
    )  # fmt: skip
    places = found.complete_locations
    return found, sides.complete_side(known.tasks, known.endpoints, places, known.ids)


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


def _with_input(tasks: pl.DataFrame, tables: Tables) -> pl.DataFrame:
    """Add the size of the input."""
    totals = input_totals(
        tasks.select("jeditaskid").unique(), tables["datasets"], tables["files"]
    ).rename({"total": "t_total", "nfiles": "t_nfiles"})
    joined = tasks.join(totals, on="jeditaskid", how="left", maintain_order="left")
    return joined.with_columns(pl.col("t_total", "t_nfiles").fill_null(0))


def _outcomes(
    tasks: pl.DataFrame, complete: pl.DataFrame, nuclei: pl.DataFrame, *, hint: bool
) -> pl.DataFrame:
    """Return the tasks that fail before any queue is looked at.

    Args:
        tasks: Facts of tasks.
        complete: Tasks whose input is complete nowhere, with ``outcome`` and ``detail``; none without the switch
            ``code_only_checks``: the page does not ask.
        nuclei: Input table ``nuclei``.
        hint: Nuclei are not looked at.
    """
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
