"""Choose the nucleus of production tasks, many at once (production-task-brokerage.md)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl

from brokerlab.brokerage import contracts as shared
from brokerlab.brokerage.engine.own import Own
from brokerlab.brokerage.full_chain import with_bare_modes
from brokerlab.brokerage.production_tasks import (
    cycle,
    facts,
    findings,
    judge,
    locality,
    results,
    weight,
)
from brokerlab.brokerage.production_tasks.checks import checks_with
from brokerlab.brokerage.production_tasks.contracts import OPTIONS, TABLES
from brokerlab.brokerage.production_tasks.decisions import TaskDecisions
from brokerlab.brokerage.production_tasks.held import KEY, held, positioned
from brokerlab.brokerage.production_tasks.settings import with_settings, with_settings_of
from brokerlab.brokerage.rules import ProductionRules
from brokerlab.errors import DataError
from brokerlab.frames import prepared
from brokerlab.gdpconfig import Config

_SHOWN = 5


def decide(
    tables: Mapping[str, Any],
    *,
    rules: ProductionRules | None = None,
    config: Config | None = None,
    hint_queues: Any = None,
    seed: int = 0,
    draws: Any = None,
    own: Sequence[Own] = (),
) -> TaskDecisions:
    """Choose a nucleus for every task.

    Args:
        tables: Name -> frame, see :mod:`contracts`; an absent table is empty, an absent column null. Tasks of one
            ``snapshot`` are handled in one cycle, in the order of ``position``: a task that gets a nucleus makes
            it busier for those after it.
        rules: Rule set; null = ``document``.
        config: Settings; with a history, each task sees those of its instant. Null = the defaults.
        hint_queues: ``jeditaskid, snapshot, panda_queue`` of the queues that could run each task, from the job
            brokerage in hint mode; a task without rows has none. Null: check ``no_queue`` is left out.
        seed: Of the draws.
        draws: ``jeditaskid[, snapshot], draw`` in [0, 1), where they are known.
        own: Rules that are added, see :class:`~brokerlab.brokerage.engine.own.Own`; none between the checks of outputs.

    Returns:
        The decisions.

    Raises:
        SchemaError: Unknown tables or columns of another type.
        DataError: A task twice at one snapshot.

    Source: production-task-brokerage.md, full-chain.md 2.
    """
    rules, config = rules or ProductionRules(), config or Config.empty()
    asked = hint_queues is not None and rules.hint_brokerage
    inputs = _inputs(tables, {"hint_queues": hint_queues, "draws": draws})
    inputs["nuclei"] = with_bare_modes(inputs["nuclei"], inputs["queues"], rules=rules)
    tasks = cycle.with_draws(_tasks(inputs, config), inputs["draws"], seed)
    unassigned = tasks.filter(pl.col("assigned").is_null())
    given = facts.input_of(unassigned, inputs, rules)
    brokered = unassigned.join(given.unreadable, on=KEY, how="anti", maintain_order="left")
    brokered = brokered.with_columns(
        has_input=pl.struct(KEY).is_in(given.wanted.select(pl.struct(KEY)).to_series().implode()),
        off_period=locality.off_period(),
    )
    pairs = facts.of_pairs(brokered, inputs, given, rules, asked=asked)
    order = checks_with(own, rules)
    pairs = with_settings_of(pairs, tasks, (one.rule for one in own), config)
    pairs = judge.checked(pairs, facts.outputs_of_pairs(pairs, inputs, rules), order, rules)
    ends = judge.outcomes(brokered, pairs, order, asked=asked, rules=rules)
    pairs = judge.with_reasons(pairs.join(ends, on=KEY, maintain_order="left"), order)
    passed = weight.with_factors(pairs.filter("passed"), rules)
    weighed, chosen = cycle.weigh_and_draw(tasks, passed, rules)
    return TaskDecisions(
        tasks=results.of_tasks(tasks, pairs, ends, chosen, given, order, rules),
        nuclei=results.of_nuclei(pairs, weighed, order, rules),
        datasets=results.of_datasets(chosen, inputs),
        findings=findings.gather(tasks, inputs, given),
        checks=order,
        rules=rules,
        config_digest=config.digest,
        seed=seed,
    )


def _inputs(tables: Mapping[str, Any], options: Mapping[str, Any]) -> dict[str, pl.DataFrame]:
    """Return the tables by their contracts; tables that only the job brokerage reads are let pass."""
    known = {k: v for k, v in tables.items() if k in TABLES or k not in shared.TABLES}
    given = {k: v for k, v in options.items() if v is not None}
    inputs = prepared(known | given, TABLES | OPTIONS)
    for name, column in (("nuclei", "nucleus"), ("storage_endpoints", "ddm_endpoint_name")):
        inputs[name] = inputs[name].unique(["snapshot", column], keep="first", maintain_order=True)
    return inputs


def _tasks(inputs: Mapping[str, pl.DataFrame], config: Config) -> pl.DataFrame:
    """Return the tasks in the order in which they are handled, with settings and ``assigned``."""
    tasks = positioned(inputs["tasks"]).with_columns(
        pl.col("snapshot").fill_null(0),
        workqueue_name=pl.coalesce("workqueue_name", "gshare"),
    )
    twice = tasks.filter(pl.struct(KEY).is_duplicated()).select(KEY).unique().sort(KEY)
    if twice.height:
        shown = ", ".join(str(row) for row in twice.head(_SHOWN).rows())
        raise DataError(
            f"tasks: {twice.height} tasks stand twice at one snapshot, (jeditaskid, snapshot) {shown}: keep one"
        )
    named = held(
        tasks.select(*KEY, "nucleus").drop_nulls("nucleus"),
        inputs["nuclei"].drop_nulls("role").select("snapshot", "nucleus"),
        ["nucleus"],
        ["snapshot"],
    ).rename({"nucleus": "assigned"})
    tasks = tasks.join(named.unique(), on=KEY, how="left")
    return with_settings(tasks.sort("snapshot", "position", "jeditaskid"), config)
