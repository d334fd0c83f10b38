"""A task's scouts trigger by trigger: each reads the task as the one before left it (docs/rules/scouts.md 7, 9)."""

from __future__ import annotations

from typing import Any

import polars as pl

from brokerlab.archive.given import Source, tables_of
from brokerlab.engines import collect, lazy_of
from brokerlab.errors import ConfigError
from brokerlab.scouts.estimate import OPTIONAL, TABLES, ScoutResult, estimate
from brokerlab.scouts.rules import ScoutRules
from brokerlab.scouts.settings import splitrule_after_scouts, tag_column, uses_scouts
from brokerlab.scouts.triggers import triggers
from brokerlab.scouts.write import set_splitrule, write_tasks

STAGES = (("T1", "T1b"), ("T2a", "T2"), ("T2b",))
"""Triggers in the order in which they come; of one stage a task has at most one."""


def replay(
    source: Source,
    *,
    at: pl.DataFrame | None = None,
    rules: ScoutRules | str | None = None,
    **options: Any,
) -> ScoutResult:
    """Estimate every task at every trigger, writing the task in between.

    Where the scouts succeeded the task does not use scouts any more (``US=3``) at the next trigger.

    Args:
        source: As for :func:`brokerlab.scouts.estimate`; its tasks as they were before any scout.
        at: ``jeditaskid, trigger, at`` [UTC]; default what :func:`brokerlab.scouts.triggers` finds.
        rules: Rule set, or its name; default the document's.
        options: Further arguments of ``estimate``.

    Returns:
        One row per task and trigger: ``jeditaskid, trigger, at``, then the columns of ``estimate``; tags
        with ``trigger`` too.

    Source: 003, introduction; docs/rules/scouts.md 7, 9, 13; docs/rules/exhausted.md 1 (scout flag).
    """
    rules = ScoutRules.of(rules)
    if at is not None and not {"jeditaskid", "trigger", "at"} <= set(at.columns):
        raise ConfigError(f"at has the columns {at.columns}, needed are jeditaskid, trigger, at")
    tables = tables_of(source, TABLES, OPTIONAL)
    read = (tables[name] for name in ("jobs", "files", "tasks", "datasets"))
    when = triggers(*read, rules=rules) if at is None else at
    current: pl.DataFrame = collect(lazy_of(tables["tasks"], "tasks"))
    parts, tags, digest = [], [], ""
    for names in STAGES:
        stage = when.filter(pl.col("trigger").is_in(names)).select("jeditaskid", "trigger", "at")
        result = estimate({**tables, "tasks": current}, at=stage, rules=rules, **options)
        current = _after_scouts(write_tasks(current, result), result)
        parts.append(stage.join(result.parameters, on="jeditaskid", how="inner"))
        tags.append(result.tags.join(stage.drop("at"), on="jeditaskid", how="inner"))
        digest = result.config_digest
    return ScoutResult(
        pl.concat(parts).sort("jeditaskid", "at", "trigger"),
        pl.concat(tags).sort("jeditaskid", "trigger", "pandaid", "parameter"),
        rules,
        digest,
    )


def _after_scouts(tasks: pl.DataFrame, scouts: ScoutResult) -> pl.DataFrame:
    """Set the scout flag of the tasks whose scouts succeeded."""
    succeeded = scouts.parameters.filter("succeeded")
    using = tasks.select("jeditaskid", "splitrule", tag_column("US")).filter(uses_scouts())
    spoken = using.join(succeeded, on="jeditaskid", how="semi")
    return set_splitrule(tasks, splitrule_after_scouts(spoken))
