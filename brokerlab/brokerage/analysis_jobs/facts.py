"""Assemble what the checks and the weights of the analysis brokerage read."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import polars as pl

from brokerlab.brokerage.analysis_jobs.changing import changing, with_class, with_grand
from brokerlab.brokerage.analysis_jobs.checks import queue_checks
from brokerlab.brokerage.analysis_jobs.contracts import NEEDED
from brokerlab.brokerage.analysis_jobs.endpoints import endpoint_facts, in_scope
from brokerlab.brokerage.analysis_jobs.keys import CAP_KEYS, CLASS_KEYS, place_of
from brokerlab.brokerage.analysis_jobs.lists import pools, with_lists
from brokerlab.brokerage.analysis_jobs.locality import locality
from brokerlab.brokerage.analysis_jobs.queue_facts import queue_facts
from brokerlab.brokerage.analysis_jobs.ranking import final_of, steps
from brokerlab.brokerage.analysis_jobs.rules import AnalysisRules
from brokerlab.brokerage.analysis_jobs.settings import of_tasks
from brokerlab.brokerage.analysis_jobs.sides import build, with_ids
from brokerlab.brokerage.analysis_jobs.task_facts import task_facts
from brokerlab.brokerage.analysis_jobs.throttle import PASS, throttled
from brokerlab.brokerage.analysis_jobs.throttle_rules import INCOMPLETE, incomplete_input
from brokerlab.brokerage.engine.decide import parts_of
from brokerlab.brokerage.engine.own import Own
from brokerlab.brokerage.engine.pairs import Facts, Side, run
from brokerlab.brokerage.engine.recipe import Recipe, checks_of
from brokerlab.brokerage.engine.settings import differing
from brokerlab.brokerage.engine.world import Evaluate, Lasting, Off, Part, World
from brokerlab.brokerage.inputs.data import input_totals
from brokerlab.brokerage.inputs.frames import for_tasks
from brokerlab.brokerage.production_jobs.changing import run_all
from brokerlab.brokerage.production_jobs.counts import spread
from brokerlab.brokerage.production_jobs.ids import Ids
from brokerlab.brokerage.production_jobs.settings import COMPLETENESS_KEYS
from brokerlab.brokerage.production_jobs.sides import keyed
from brokerlab.gdpconfig import Config
from brokerlab.matching.rules import MatchingRules

Tables = dict[str, pl.DataFrame]

STATE_TABLES = (
    "site_activity", "job_stats", "user_job_stats", "user_totals", "to_run_rate", "worker_stats",
    "diskio_usage", "site_class", "task_class", "gshare_usage", "user_eval", "quota",
)  # fmt: skip
"""Tables whose rows without snapshot hold for every instant."""
ANALYSIS = Recipe(name="analysis-jobs")
"""The analysis job brokerage of the documents."""


@dataclass(frozen=True, kw_only=True)
class AnalysisLasting(Lasting):
    """What no setting changes of user tasks.

    Attributes:
        rules: Rule set of the brokerage.
        pool: The queues among which the check of locality looks for the input, see :func:`~.lists.pools`.
        ids: The numbers by which facts are keyed.
    """

    NEEDED: ClassVar = NEEDED

    rules: AnalysisRules
    pool: pl.DataFrame
    ids: Ids


@dataclass(frozen=True, kw_only=True)
class AnalysisWorld(World):
    """What the analysis brokerage decides on.

    Attributes:
        data: Facts of tasks about their input as a whole, and where it is.
        throttle: See :func:`~.throttle.throttle`.
        outcomes: ``t, throttle, outcome`` of tasks that end before any queue is looked at.
    """

    RANKS: ClassVar = {"weight": pl.Float64(), "rank": pl.Int64()}
    ALSO_READ: ClassVar = ("t_relaxed", "t_second", "t_preassigned", "s_running", "u_known")
    KEYS: ClassVar = (*COMPLETENESS_KEYS, *CAP_KEYS, *CLASS_KEYS)
    LAST: ClassVar = "low_weight"
    MARKED: ClassVar = "badsite"

    lasting_facts: AnalysisLasting
    data: tuple[pl.DataFrame, Side]
    throttle: pl.DataFrame

    @property
    def rules(self) -> AnalysisRules:
        """Rule set of the brokerage."""
        return self.lasting_facts.rules

    @property
    def ids(self) -> Ids:
        """The numbers by which facts are keyed."""
        return self.lasting_facts.ids

    @staticmethod
    def place_of(key: str) -> str:
        """See :meth:`brokerlab.brokerage.engine.world.World.place_of`."""
        return place_of(key)

    def with_config(self, config: Config) -> AnalysisWorld:
        """See :meth:`brokerlab.brokerage.engine.world.World.with_config`."""
        data, known = self.data, self.lasting_facts
        if differing(config, self.config, COMPLETENESS_KEYS, place_of):
            data = _input(known, config)
        return configured(known, data, config)

    def parts(self, evaluate: Evaluate, *, off: Off | None = None) -> Iterator[Part]:
        """Decide the loop that asks for input at the queue, then the other one, of tasks that it leaves nothing."""
        tasks = self.facts.tasks
        suppressed = pl.lit(value=False)
        if self.rules.locality_mode == "suppress":
            suppressed = pl.col("t_relaxed").is_not_null() & pl.col("t_second")
        first = tasks.filter(~suppressed).select("t")
        final, left = final_of(self.steps, self.rules), []
        for part in parts_of(self, self.in_loop(first, 1), evaluate, off=off):
            left.append(_left(part.pairs, final))
            yield part
        lost = tasks.filter(~suppressed & pl.col("t_second")).join(
            pl.concat(left), on="t", how="anti"
        )
        others = pl.concat([tasks.filter(suppressed).select("t"), lost.select("t")])
        if others.height:  # most often not
            yield from parts_of(self, self.in_loop(others, 2), evaluate, loop=2, off=off)

    def in_loop(self, tasks: pl.DataFrame, loop: int) -> Facts:
        """Return the facts of some tasks, ``t``, in a locality loop."""
        facts = self.facts.of_tasks(tasks)
        local = facts.tasks.with_columns(t_local=pl.lit(loop == 1))
        return replace(facts, tasks=local)


def configured(
    known: AnalysisLasting, data: tuple[pl.DataFrame, Side], config: Config
) -> AnalysisWorld:
    """Return the world with all that settings decide.

    Args:
        known: What no setting changes.
        data: Facts of tasks about their input as a whole, and where it is, under these settings.
        config: The settings.
    """
    about, side = data
    tasks = known.tasks.join(about, on="t", how="left").sort("t")
    tasks = known.with_facts_of_settings(tasks, of_tasks(known.rules), config, place_of)
    held = throttled(known.tables, rules=known.rules, config=config, unasked=known.silent)
    outcomes = run(ended(tasks.lazy(), held.lazy(), known.rules))
    facts = Facts(
        tasks=tasks.join(outcomes, on="t", how="anti", maintain_order="left"),
        queues=known.queues,
        listed=known.lists,
        sides=(side, *known.sides),
    )
    facts = known.with_own_facts(facts)
    local = facts.tasks.clear().with_columns(t_local=pl.lit(value=True))
    checks, then = known.in_order(replace(facts, tasks=local))
    return AnalysisWorld(
        lasting_facts=known,
        config=config,
        facts=facts,
        tasks=tasks,
        outcomes=outcomes,
        checks=checks,
        steps=then,
        data=data,
        throttle=held,
    )


def _left(pairs: pl.DataFrame, final: Sequence[str]) -> pl.DataFrame:
    """Return ``t`` of the tasks that have a queue without a reason for the second loop.

    Args:
        pairs: ``t, check``.
        final: Reasons that are none, see :func:`~.ranking.final_of`.
    """
    listed = pl.col("check").is_null() | pl.col("check").is_in(final)
    return pairs.filter(listed).select("t").unique()


def prepare(
    tables: Tables,
    *,
    rules: AnalysisRules,
    matching: MatchingRules,
    config: Config,
    recipe: Recipe = ANALYSIS,
    own: tuple[Own, ...] = (),
    missing: frozenset[str] = frozenset(),
) -> AnalysisWorld:
    """Prepare the facts of all tasks.

    Args:
        tables: Every input table, held to its contract.
        rules: Rule set.
        matching: Rule set of the text rules.
        config: The configuration.
        recipe: What an organisation replaced.
        own: Rules that are added.
        missing: Names of tables that were not given.

    Returns:
        The world. Settings are columns of the tasks, and so is what :func:`~.settings.of_tasks` makes of them.
    """
    then = steps(rules, recipe)
    checks = checks_of(recipe, queue_checks, rules, then)
    raw = tables["tasks"].with_columns(pl.col("snapshot").fill_null(0))
    history = tables["queues"]["snapshot"].is_not_null().any()
    snapshots = raw.select("snapshot").unique().sort("snapshot")
    state = {
        name: spread(tables[name], snapshots) if name in STATE_TABLES else tables[name]
        for name in tables
    } | {"queues": spread(tables["queues"], snapshots) if history else tables["queues"]}
    if "worker_node_gpu" in missing:
        del state["worker_node_gpu"]  # nobody looked, which is not the same as none seen
    tasks = task_facts(raw, rules=rules).with_columns(
        t_version=pl.col("snapshot") if history else pl.lit(0, dtype=pl.Int64)
    )
    queues = queue_facts(state, rules=rules)
    inputs = in_scope(tables["queue_endpoints"]).filter(pl.col("direction") == "input")
    readers = inputs.select("ddm_endpoint_name", parent="panda_queue")
    tasks = with_lists(tasks, queues, readers, rules=rules)
    tasks, queues, ids = with_ids(tasks, queues)
    lazy = {name: frame.lazy() for name, frame in state.items()}
    tasks = run(with_class(with_grand(tasks.lazy(), lazy), lazy))
    tasks, pool = pools(tasks, queues, ids, rules=rules)
    places = endpoint_facts(
        tables["queue_endpoints"], tables["storage_endpoints"], snapshots, rules=rules
    )
    known = AnalysisLasting(
        tables=tables,
        rules=rules,
        matching=matching,
        checks=checks,
        steps=then,
        recipe=recipe,
        own=own,
        tasks=tasks,
        queues=queues,
        sides=(
            _home(tasks, ids),
            *build(tasks, queues, state, places, ids, matching=matching),
            *run_all(changing(tasks.lazy(), lazy, ids, places)),
        ),
        lists=_with_own_queue(tasks, queues),
        pool=pool,
        ids=ids,
        missing=missing,
    )
    return configured(known, _input(known, config), config)


def _input(known: AnalysisLasting, config: Config) -> tuple[pl.DataFrame, Side]:
    """Return facts of tasks about their input as a whole, and where it is."""
    tasks, state = known.tasks, known.tables
    found = locality(tasks, state, pool=known.pool, config=config)
    whole = found.tasks
    if "replicas" in known.missing:
        some = pl.lit(value=True)
        whole = whole.with_columns(t_incomplete=~some, t_remote_source=some)
    totals = input_totals(
        tasks.select("jeditaskid").unique(), state["datasets"], state["files"]
    ).rename({"total": "t_total", "nfiles": "t_nfiles"})
    rows = keyed(found.queues, known.ids)
    located = for_tasks(state["file_locations"], tasks.select("jeditaskid").unique())
    counts = rows.filter("x_data").group_by("t").agg(t_n_data=pl.len().cast(pl.Int64))
    about = (
        tasks.select("t", "jeditaskid")
        .join(whole, on="t", how="left")
        .join(totals, on="jeditaskid", how="left")
        .join(counts, on="t", how="left")
        .with_columns(
            pl.col("t_total", "t_nfiles", "t_n_data").fill_null(0),
            t_second=pl.col("t_has_input") & pl.col("t_remote_source"),
            t_files_known=pl.col("jeditaskid").is_in(located["jeditaskid"].implode()),
        )
        .drop("jeditaskid")
    )
    missing = {"x_data": False, "x_data_weight": 0.0, "x_non_vp": False}
    return about, Side("t", "p_id", rows, missing)


def ended(tasks: pl.LazyFrame, held: pl.LazyFrame, rules: AnalysisRules) -> pl.LazyFrame:
    """Return the tasks that are held back, and those whose input is incomplete."""
    joined = tasks.join(held, on=["jeditaskid", "snapshot"], how="left")
    lost = incomplete_input(rules).when
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
