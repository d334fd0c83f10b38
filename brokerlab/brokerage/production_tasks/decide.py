"""Choose the nucleus of production tasks, many at once (production-tasks.md)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from brokerlab.brokerage import contracts as shared
from brokerlab.brokerage.engine.decide import asking
from brokerlab.brokerage.engine.own import Own
from brokerlab.brokerage.engine.recipe import Recipe
from brokerlab.brokerage.inputs.given import read_given
from brokerlab.brokerage.production_tasks.contracts import OPTIONS, TABLES
from brokerlab.brokerage.production_tasks.decisions import TaskDecisions
from brokerlab.brokerage.production_tasks.facts import NUCLEI, prepare
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
    recipe: Recipe = NUCLEI,
    own: Sequence[Own] = (),
) -> TaskDecisions:
    """Choose a nucleus for every task.

    Args:
        tables: Input tables by name, see :data:`~.contracts.TABLES`; frames of any engine, lists of dicts or mappings of
            columns; tables and columns that only the job brokerage reads are let pass. A table that is missing is unknown: rules
            that need it (:data:`~.contracts.NEEDED`) remove nothing, and ``world.unasked`` of the result names them.
            Tasks of one ``snapshot`` are handled in one cycle, in the order of ``position``: a task that gets a nucleus
            makes it busier for those after it.
        rules: Rule set; null = ``document``.
        config: Settings; with a history, each task sees those of its instant. Null = the defaults.
        hint_queues: ``jeditaskid, snapshot, panda_queue`` of the queues that could run each task, from the job
            brokerage in hint mode; a task without rows has none. Null: check ``no_queue`` is left out.
        seed: Of the draws.
        draws: ``jeditaskid[, snapshot], draw`` in [0, 1), where they are known.
        recipe: What an organisation replaced: checks, weight, tables and facts of its own.
        own: Rules that are added, see :class:`~brokerlab.brokerage.engine.own.Own`.

    Returns:
        The decisions.

    Raises:
        SchemaError: Unknown tables and columns, values of another type.
        DataError: A task twice at one snapshot.
        ConfigError: A recipe, or rules of one's own, that cannot work.

    Source: production-tasks.md.
    """
    rules = rules or ProductionRules()
    options = {"hint_queues": hint_queues, "draws": draws}
    contracts = {**TABLES, **OPTIONS, **recipe.tables}
    more = {name: frame for name, frame in options.items() if frame is not None}
    given = read_given({**tables, **more}, contracts, later=OPTIONS, others=shared.TABLES)
    world = prepare(
        given.tables,
        missing=given.missing,
        rules=rules,
        config=config or Config.empty(),
        asked=hint_queues is not None and rules.hint_brokerage,
        seed=seed,
        recipe=recipe,
        own=tuple(own),
    )
    return TaskDecisions.of(world, world.parts(asking(world)))
