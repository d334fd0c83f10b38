"""The analysis job brokerage as a value."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import polars as pl

from brokerlab.brokerage.analysis_jobs import lookups, ranking, weights
from brokerlab.brokerage.analysis_jobs.checks import queue_checks
from brokerlab.brokerage.analysis_jobs.contracts import ABSENT, NEEDED, TABLES
from brokerlab.brokerage.analysis_jobs.decisions import AnalysisDecisions
from brokerlab.brokerage.analysis_jobs.facts import ends, facts
from brokerlab.brokerage.analysis_jobs.keys import place_of
from brokerlab.brokerage.analysis_jobs.rules import AnalysisRules
from brokerlab.brokerage.analysis_jobs.settings import of_tasks
from brokerlab.brokerage.analysis_jobs.state import of_state
from brokerlab.brokerage.analysis_jobs.throttle import PASS, of_users
from brokerlab.brokerage.analysis_jobs.throttle_rules import INCOMPLETE, TOTALS, throttle_rules
from brokerlab.brokerage.engine.brokerage import Brokerage, Weight
from brokerlab.brokerage.engine.lookup import Lookup
from brokerlab.brokerage.engine.own import WeightOf
from brokerlab.brokerage.inputs.given import absent_means
from brokerlab.brokerage.inputs.valid import KEY
from brokerlab.gdpconfig import Config

STABILIZED = ("x_users", "x_users_running", "x_nr", "s_running", "s_rate", "u_queued", "u_running")


def looked_up(rules: AnalysisRules) -> tuple[Lookup, ...]:  # noqa: ARG001 - of one form
    """Return the facts that are looked up."""
    return (*lookups.of_places(), *lookups.of_input(), *of_state(), *of_users())


def weight(rules: AnalysisRules, own: WeightOf | None) -> Weight:
    """Return what the basic weight in use and the data factor are made of."""
    reads: tuple[str, ...]
    if rules.basic_weight == "original":
        whose = "queue" if rules.counted_jobs == "queue" else "share"
        says = f"running against queued jobs of the {whose}"
        jobs = (name for one in weights.counted(rules).values() for name in one.meta.root_names())
        reads = (*jobs, "s_pilots", "s_workers", "x_numslots", "q_corecount")
    else:
        says = "jobs of the task for the class of the queue x what the stabilizer lets the user queue there"
        reads = ("t_n_jobs", "t_class", "t_gshare", "s_class", *STABILIZED)
    if rules.data_factor:
        says = f"{says} x input at hand"
        reads = (*reads, "t_total", "t_local", "t_union", "x_data_weight", "x_avail")
    keys = ranking.weight_keys(rules, own)
    return Weight(source="analysis-jobs.md 7", says=says, inputs=reads, keys=keys)


BROKERAGE = Brokerage(
    name="analysis-jobs",
    organisation="brokerlab",
    description="queues that may receive the jobs of user tasks",
    documentation="analysis-jobs.md",
    stage="analysis",
    rule_set=AnalysisRules,
    contracts=TABLES,
    needed=NEEDED,
    absent=absent_means(NEEDED, ABSENT),
    facts=facts,
    lookups=looked_up,
    made=(lookups.LOCALITY,),
    derived=of_tasks,
    place_of=place_of,
    ends=ends,
    before=throttle_rules,
    checks=queue_checks,
    steps=ranking.steps,
    second=ranking.second_loop,
    weight=weight,
    decisions=AnalysisDecisions,
    ranks={"weight": pl.Float64(), "rank": pl.Int64()},
    also_read=("t_relaxed", "t_second", "t_preassigned", "s_running", "u_known"),
    last="low_weight",
    marked="badsite",
)
"""The analysis job brokerage of the documents."""
decide = BROKERAGE.decide


def throttle(
    tables: Mapping[str, Any], *, rules: AnalysisRules | None = None, config: Config | None = None
) -> pl.DataFrame:
    """Decide which tasks are held back.

    Args:
        tables: ``tasks``, ``user_totals``, ``task_class``, ``gshare_usage``, ``user_eval``, ``quota``; see
            :data:`~.contracts.TABLES`.
        rules: Rule set, switch ``use_l1_share`` and those of :func:`~.throttle_rules.throttle_rules`; null =
            ``document``.
        config: Settings; null = defaults.

    Returns:
        One row per task, sorted by ``jeditaskid, snapshot``: ``throttle`` (the first rule of :data:`~.throttle.OUTCOMES`
        that holds; null: none), ``outcome``, and what was compared: ``unit`` (user or working group), ``usage_pct`` (U; of a
        target of 0 :data:`~.throttle_rules.NO_TARGET_PCT`), ``used_fraction`` (r), ``user_known`` (r is not the number
        that stands for an unknown user), ``class``, ``nrunjobs``, ``nqueuedjobs``, ``nruncores``, ``nqueuedcores``,
        ``cap_jobs``, ``cap_cores`` (null: no cap).

    Raises:
        SchemaError: Unknown tables, values of another type.

    Source:
        analysis-jobs.md 2.

    Example:
        >>> tables = {
        ...     "tasks": pl.DataFrame({"jeditaskid": [7], "gshare": "User Analysis"}),
        ...     "task_class": pl.DataFrame({"jeditaskid": [7], "class": [-1]}),
        ...     "gshare_usage": pl.DataFrame({"gshare": ["User Analysis"], "usage_perc": [0.91]}),
        ... }
        >>> throttle(tables).select("throttle", "outcome").row(0)
        ('gshare_class_c', 'throttled_waiting')
    """
    world = BROKERAGE.prepare(tables, rules=rules, config=config)
    held = world.outcomes.filter(pl.col("throttle") != INCOMPLETE)
    tasks = world.tasks.join(held, on="t", how="left")
    return tasks.sort(KEY).select(
        *KEY, "throttle", "usage_pct", "used_fraction", "user_known", "class", *TOTALS, "cap_jobs",
        "cap_cores", unit="t_unit", outcome=pl.col("outcome").fill_null(PASS),
    )  # fmt: skip
