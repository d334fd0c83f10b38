"""Ask the job brokerage which queues could run tasks that have no nucleus yet."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import polars as pl

from brokerlab.brokerage.production_jobs.decide import decide
from brokerlab.brokerage.rules import ProductionRules
from brokerlab.gdpconfig import Config


def hint_queues(
    tables: Mapping[str, Any],
    *,
    rules: ProductionRules | None = None,
    config: Config | None = None,
) -> pl.DataFrame:
    """Return the queues that could run each task, as the choice of the nucleus asks for them.

    Args:
        tables: Input tables of the job brokerage, such as ``replay.for_jobs()``.
        rules: Rule set; null = ``document``.
        config: Settings; null = defaults.

    Returns:
        ``jeditaskid, snapshot, panda_queue``, sorted: ``hint_queues`` of ``production_tasks.decide``.

    Source: production-tasks.md 3, row 7; switch ``hint_brokerage``.
    """
    found = decide(tables, rules=rules, config=config, hint=True).queues
    named = ("jeditaskid", "snapshot", pl.col("panda_queue").cast(pl.String))
    return found.filter(pl.col("check").is_null()).select(*named)
