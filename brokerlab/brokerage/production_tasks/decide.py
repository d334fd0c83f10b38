"""Choose the nucleus of production tasks, many at once (production-tasks.md)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from brokerlab.brokerage import contracts as shared
from brokerlab.brokerage.engine.decide import asking
from brokerlab.brokerage.engine.own import Own
from brokerlab.brokerage.inputs.given import read_given
from brokerlab.brokerage.production_tasks.contracts import OPTIONS, TABLES
from brokerlab.brokerage.production_tasks.decisions import TaskDecisions
from brokerlab.brokerage.production_tasks.facts import prepare
from brokerlab.brokerage.rules import ProductionRules
from brokerlab.gdpconfig import Config


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
        tables: Name -> frame, list of dicts or mapping of columns, see :mod:`contracts`; tables and columns that only
            the job brokerage reads are let pass. A table that is missing is unknown: checks that need it
            (:data:`~.contracts.NEEDED`) remove nothing, and ``world.unasked`` of the result names them. Tasks of one ``snapshot`` are handled in one cycle, in the order of
            ``position``: a task that gets a nucleus makes it busier for those after it.
        rules: Rule set; null = ``document``.
        config: Settings; with a history, each task sees those of its instant. Null = the defaults.
        hint_queues: ``jeditaskid, snapshot, panda_queue`` of the queues that could run each task, from the job
            brokerage in hint mode; a task without rows has none. Null: check ``no_queue`` is left out.
        seed: Of the draws.
        draws: ``jeditaskid[, snapshot], draw`` in [0, 1), where they are known.
        own: Rules that are added, see :class:`~brokerlab.brokerage.engine.own.Own`.

    Returns:
        The decisions.

    Raises:
        SchemaError: Unknown tables or columns, values of another type.
        DataError: A task twice at one snapshot.

    Source: production-tasks.md.
    """
    rules = rules or ProductionRules()
    options = {"hint_queues": hint_queues, "draws": draws}
    given = {name: frame for name, frame in options.items() if frame is not None}
    read = read_given({**tables, **given}, TABLES | OPTIONS, others=shared.TABLES)
    world = prepare(
        read.tables,
        missing=read.missing,
        rules=rules,
        config=config or Config.empty(),
        asked=hint_queues is not None and rules.hint_brokerage,
        seed=seed,
        own=tuple(own),
    )
    return TaskDecisions.of(world, world.parts(asking(world)))
