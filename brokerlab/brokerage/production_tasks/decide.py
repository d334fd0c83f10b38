"""Choose the nucleus of production tasks, many at once (production-task-brokerage.md)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import polars as pl

from brokerlab.brokerage import contracts as shared
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
from brokerlab.brokerage.production_tasks.contracts import TABLES
from brokerlab.brokerage.production_tasks.decisions import TaskDecisions
from brokerlab.brokerage.production_tasks.held import KEY, held, positioned
from brokerlab.brokerage.production_tasks.settings import with_settings
from brokerlab.brokerage.rules import ProductionRules
from brokerlab.brokerage.tables import prepared
from brokerlab.errors import DataError
from brokerlab.gdpconfig import Config

_SHOWN = 5


def decide(
    tables: Mapping[str, Any],
    *,
    rules: ProductionRules,
    config: Config,
    hint_queues: pl.DataFrame | None = None,
    seed: int = 0,
    draws: pl.DataFrame | None = None,
) -> TaskDecisions:
    """Choose a nucleus for every task.

    Args:
        tables: Name -> frame, see :mod:`contracts`; an absent table is empty, an absent column null. Tasks of one
            ``snapshot`` are handled in one cycle, in the order of ``position``: a task that gets a nucleus makes
            it busier for those after it.
        rules: Rule set.
        config: Settings; with a history, each task sees those of its instant.
        hint_queues: ``jeditaskid, snapshot, panda_queue`` of the queues that could run each task, from the job
            brokerage in hint mode; a task without rows has none. Null: check ``no_queue`` is left out.
        seed: Of the draws.
        draws: ``jeditaskid[, snapshot], draw`` in [0, 1), where they are known.

    Returns:
        The decisions.

    Raises:
        SchemaError: Unknown tables or columns of another type.
        DataError: A task twice at one snapshot.

    Source: production-task-brokerage.md, full-chain.md 2.
    """
    known = {k: v for k, v in tables.items() if k in TABLES or k not in shared.TABLES}
    inputs = prepared(known, TABLES)
    inputs["nuclei"] = with_bare_modes(
        inputs["nuclei"].unique(["snapshot", "nucleus"], keep="first", maintain_order=True),
        inputs["queues"],
        rules=rules,
    )
    tasks = _tasks(inputs, config)
    tasks = cycle.with_draws(tasks, draws, seed)
    unassigned = tasks.filter(pl.col("assigned").is_null())
    given = facts.input_of(unassigned, inputs, rules)
    brokered = unassigned.join(given.unreadable, on=KEY, how="anti", maintain_order="left")
    brokered = brokered.with_columns(
        has_input=pl.struct(KEY).is_in(given.wanted.select(pl.struct(KEY)).to_series().implode()),
        off_period=locality.off_period(),
    )
    hints = hint_queues if rules.hint_brokerage else None
    pairs = facts.of_pairs(brokered, inputs, given, hints, rules)
    pairs = judge.checked(pairs, facts.outputs_of_pairs(pairs, inputs, rules), rules)
    ends = judge.outcomes(brokered, pairs, asked=hints is not None, rules=rules)
    pairs = judge.with_reasons(pairs.join(ends, on=KEY, maintain_order="left"), rules)
    passed = weight.with_factors(pairs.filter("passed"), rules)
    weighed, chosen = cycle.weigh_and_draw(tasks, passed, rules)
    return TaskDecisions(
        tasks=results.of_tasks(tasks, pairs, ends, chosen, given, rules),
        nuclei=results.of_nuclei(pairs, weighed, rules),
        datasets=results.of_datasets(chosen, inputs),
        findings=findings.gather(tasks, inputs, given),
        rules=rules,
        config_digest=config.digest,
        seed=seed,
    )


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
        inputs["nuclei"].select("snapshot", "nucleus"),
        ["nucleus"],
        ["snapshot"],
    ).rename({"nucleus": "assigned"})
    tasks = tasks.join(named.unique(), on=KEY, how="left")
    return with_settings(tasks.sort("snapshot", "position", "jeditaskid"), config)
