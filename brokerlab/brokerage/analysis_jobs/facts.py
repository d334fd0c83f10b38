"""Assemble what the checks and the weights of the analysis brokerage read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import polars as pl

from brokerlab.brokerage.analysis_jobs.changing import changing, with_class, with_grand
from brokerlab.brokerage.analysis_jobs.checks import queue_checks
from brokerlab.brokerage.analysis_jobs.endpoints import endpoint_facts, in_scope
from brokerlab.brokerage.analysis_jobs.keys import place_of
from brokerlab.brokerage.analysis_jobs.lists import pools, with_lists
from brokerlab.brokerage.analysis_jobs.locality import locality
from brokerlab.brokerage.analysis_jobs.queue_facts import queue_facts
from brokerlab.brokerage.analysis_jobs.ranking import steps
from brokerlab.brokerage.analysis_jobs.rules import AnalysisRules
from brokerlab.brokerage.analysis_jobs.settings import AnalysisSettings, ThrottleSettings
from brokerlab.brokerage.analysis_jobs.sides import build, with_ids
from brokerlab.brokerage.analysis_jobs.task_facts import task_facts
from brokerlab.brokerage.analysis_jobs.throttle import PASS, throttled
from brokerlab.brokerage.analysis_jobs.throttle_rules import INCOMPLETE, incomplete_input
from brokerlab.brokerage.engine.own import Ordered, Own, with_settings
from brokerlab.brokerage.engine.pairs import Facts, Side, run
from brokerlab.brokerage.engine.rule import Rule
from brokerlab.brokerage.engine.steps import Step
from brokerlab.brokerage.inputs.data import input_totals
from brokerlab.brokerage.inputs.frames import for_tasks
from brokerlab.brokerage.production_jobs.changing import run_all
from brokerlab.brokerage.production_jobs.counts import spread
from brokerlab.brokerage.production_jobs.ids import Ids
from brokerlab.brokerage.production_jobs.recipe import schema_of
from brokerlab.brokerage.production_jobs.sides import keyed
from brokerlab.gdpconfig import Config
from brokerlab.matching.rules import MatchingRules

Tables = dict[str, pl.DataFrame]

STATE_TABLES = (
    "site_activity", "job_stats", "user_job_stats", "user_totals", "to_run_rate", "worker_stats",
    "diskio_usage", "site_class", "task_class", "gshare_usage", "user_eval", "quota",
)  # fmt: skip
"""Tables whose rows without snapshot hold for every instant."""
INPUT_FACTS = (
    "t_has_input", "t_distributed", "t_incomplete", "t_remote_source", "t_union", "t_total", "t_nfiles", "t_n_data",
    "t_second", "t_files_known",
)  # fmt: skip
"""Facts of tasks about their input as a whole."""


@dataclass(frozen=True)
class World(Ordered):
    """The rules, settings and tables of a replay, and what was prepared from them.

    Attributes:
        tables: The input tables.
        rules: Rule set of the brokerage.
        matching: Rule set of the text rules.
        config: The configuration.
        settings: The keys read from it.
        facts: What the checks and the weights read, of tasks that are looked at.
        tasks: Facts of all tasks.
        outcomes: ``t, throttle, outcome`` of tasks that end before any queue is looked at.
        throttle: See :func:`~.throttle.throttle`.
        ids: The numbers by which facts are keyed.
        own: Rules that are added.
        pool: The queues among which the check of locality looks for the input, see :func:`~.lists.pools`.
    """

    tables: Tables
    rules: AnalysisRules
    matching: MatchingRules
    config: Config
    settings: AnalysisSettings
    facts: Facts
    tasks: pl.DataFrame
    outcomes: pl.DataFrame
    throttle: pl.DataFrame
    ids: Ids
    pool: pl.DataFrame
    own: tuple[Own, ...] = ()

    def given(self) -> tuple[Sequence[Rule], Sequence[Step], Mapping[str, pl.DataType]]:
        """See :class:`~brokerlab.brokerage.engine.own.Ordered`."""
        schema = {**schema_of(self.facts), "t_local": pl.Boolean()}
        return queue_checks(self.rules, self.settings), steps(self.rules, self.settings), schema


def prepare(
    tables: Tables,
    *,
    rules: AnalysisRules,
    matching: MatchingRules,
    config: Config,
    own: tuple[Own, ...] = (),
) -> World:
    """Prepare the facts of all tasks.

    Args:
        tables: Every input table, held to its contract.
        rules: Rule set.
        matching: Rule set of the text rules.
        config: The configuration.
        own: Rules that are added; the settings that they read become columns of the tasks.
    """
    settings = AnalysisSettings.of(config)
    raw = tables["tasks"].with_columns(pl.col("snapshot").fill_null(0))
    history = tables["queues"]["snapshot"].is_not_null().any()
    snapshots = raw.select("snapshot").unique().sort("snapshot")
    state = {
        name: spread(tables[name], snapshots) if name in STATE_TABLES else tables[name]
        for name in tables
    } | {"queues": spread(tables["queues"], snapshots) if history else tables["queues"]}
    tasks = task_facts(raw, rules=rules, settings=settings, config=config).with_columns(
        t_version=pl.col("snapshot") if history else pl.lit(0, dtype=pl.Int64)
    )
    queues = queue_facts(state)
    inputs = in_scope(tables["queue_endpoints"]).filter(pl.col("direction") == "input")
    readers = inputs.select("ddm_endpoint_name", parent="panda_queue")
    tasks = with_lists(tasks, queues, readers, rules=rules)
    tasks, queues, ids = with_ids(tasks, queues)
    lazy = {name: frame.lazy() for name, frame in state.items()}
    tasks = run(with_class(with_grand(tasks.lazy(), lazy), lazy))
    tasks, pool = pools(tasks, queues, ids, rules=rules)
    tasks, data = with_input(tasks, state, ids, pool, config)
    held = throttled(tables, rules=rules, settings=ThrottleSettings.of(config))
    outcomes = run(ended(tasks.lazy(), held.lazy()))
    places = endpoint_facts(tables["queue_endpoints"], tables["storage_endpoints"], snapshots)
    sides = build(
        tasks, queues, state, places, ids,
        rules=rules, matching=matching,
    )  # fmt: skip
    counted = run_all(changing(tasks.lazy(), lazy, ids, places))
    home = _home(tasks, ids)
    tasks = with_settings(tasks, (one.rule for one in own), config, place_of)
    facts = Facts(
        tasks=tasks.join(outcomes, on="t", how="anti", maintain_order="left"),
        queues=queues,
        listed=_with_own_queue(tasks, queues),
        sides=(data, home, *sides, *counted),
    )
    return World(
        tables, rules, matching, config, settings, facts, tasks, outcomes, held, ids, pool, own
    )  # fmt: skip


def in_loop(facts: Facts, tasks: pl.DataFrame, *, local: bool) -> Facts:
    """Return the facts of some tasks for one locality loop.

    Args:
        facts: Facts of all tasks.
        tasks: ``t`` of those wanted.
        local: Whether queues have to hold the input.
    """
    chosen = facts.tasks.join(tasks, on="t", how="semi", maintain_order="left").with_columns(
        t_local=pl.lit(value=local)
    )
    return replace(facts, tasks=chosen, listed=facts.listed.join(chosen, on="t", how="semi"))


def with_input(
    tasks: pl.DataFrame, state: Tables, ids: Ids, pool: pl.DataFrame, config: Config
) -> tuple[pl.DataFrame, Side]:
    """Add the size of the input and where it is."""
    found = locality(tasks, state, pool=pool, config=config)
    totals = input_totals(
        tasks.select("jeditaskid").unique(), state["datasets"], state["files"]
    ).rename({"total": "t_total", "nfiles": "t_nfiles"})
    rows = keyed(found.queues, ids)
    known = for_tasks(state["file_locations"], tasks.select("jeditaskid").unique())["jeditaskid"]
    counts = rows.filter("x_data").group_by("t").agg(t_n_data=pl.len().cast(pl.Int64))
    tasks = (
        tasks.join(found.tasks, on="t", how="left")
        .join(totals, on="jeditaskid", how="left")
        .join(counts, on="t", how="left")
        .with_columns(
            pl.col("t_total", "t_nfiles", "t_n_data").fill_null(0),
            t_second=pl.col("t_has_input") & pl.col("t_remote_source"),
            t_files_known=pl.col("jeditaskid").is_in(known.implode()),
        )
        .sort("t")
    )
    missing = {"x_data": False, "x_data_weight": 0.0, "x_non_vp": False}
    return tasks, Side("t", "p_id", rows, missing)


def ended(tasks: pl.LazyFrame, held: pl.LazyFrame) -> pl.LazyFrame:
    """Return the tasks that are held back, and those whose input is incomplete."""
    joined = tasks.join(held, on=["jeditaskid", "snapshot"], how="left")
    lost = incomplete_input().when
    return (
        joined.with_columns(
            throttle=pl.coalesce("throttle", pl.when(lost).then(pl.lit(INCOMPLETE))),
            outcome=pl.when(pl.col("outcome") != PASS)
            .then("outcome")
            .otherwise(pl.when(lost).then(pl.lit("temporary_error"))),
        )
        .drop_nulls("outcome")
        .select("t", "throttle", "outcome")
        .sort("t")
    )


def _home(tasks: pl.DataFrame, ids: Ids) -> Side:
    """Return the queue that a task is pre-assigned to."""
    rows = tasks.select("t", parent="t_home").drop_nulls("parent")
    return Side(
        "t", "p_id", keyed(rows.with_columns(x_home=pl.lit(value=True)), ids), {"x_home": False}
    )


def _with_own_queue(tasks: pl.DataFrame, queues: pl.DataFrame) -> pl.DataFrame:
    """Return the candidates of tasks that are pre-assigned to a queue that is no candidate of others (P2)."""
    theirs = tasks.select("t", "t_version", "t_home").drop_nulls("t_home")
    usable = queues.filter(~pl.col("is_unified"))
    own = theirs.join(
        usable.filter(~pl.col("q_candidate")).select("q", "q_version", "parent"),
        left_on=["t_version", "t_home"], right_on=["q_version", "parent"],
    ).select("t", "q")  # fmt: skip
    others = theirs.join(own.select("t").unique(), on="t", how="semi").join(
        usable.filter("q_candidate").select("q", "q_version"),
        left_on="t_version", right_on="q_version",
    )  # fmt: skip
    return pl.concat([own, others.select("t", "q")]).sort("t", "q")
