"""The checks of a brokerage as a table: documentation that cannot fall behind."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeAlias

import polars as pl

from brokerlab.brokerage.analysis_jobs import AnalysisRules, weights
from brokerlab.brokerage.analysis_jobs import ranking as analysis
from brokerlab.brokerage.analysis_jobs.checks import queue_checks as analysis_checks
from brokerlab.brokerage.analysis_jobs.throttle_rules import throttle_rules
from brokerlab.brokerage.engine.own import Own, with_own
from brokerlab.brokerage.engine.recipe import ChecksOf, Recipe, checks_of
from brokerlab.brokerage.engine.rule import SETTING, Rule
from brokerlab.brokerage.engine.steps import Mark, Step
from brokerlab.brokerage.origins import QUEUE, TASK, fields
from brokerlab.brokerage.production_jobs import ranking
from brokerlab.brokerage.production_jobs.checks import queue_checks
from brokerlab.brokerage.production_jobs.facts import PRODUCTION
from brokerlab.brokerage.production_tasks import ranking as nuclei
from brokerlab.brokerage.production_tasks.checks import checks as nucleus_checks
from brokerlab.brokerage.rules import ProductionRules
from brokerlab.brokerage.words import shown
from brokerlab.errors import ConfigError, nearest

STABILIZED = ("x_users", "x_users_running", "x_nr", "s_running", "s_rate", "u_queued", "u_running")
_Line: TypeAlias = tuple[object, ...]
_SCHEMA: dict[str, Any] = {
    "step": pl.Int64,
    **dict.fromkeys(("check", "kind", "looks_at", "source"), pl.String),
    **dict.fromkeys(("keys", "inputs", "queue_fields", "task_fields"), pl.List(pl.String)),
    "sentence": pl.String,
}


def checks_table(
    rules: ProductionRules | AnalysisRules | None = None,
    *,
    stage: str | None = None,
    own: Sequence[Own] = (),
    recipe: Recipe = PRODUCTION,
) -> pl.DataFrame:
    """Return the checks of a brokerage in the order in which they run.

    Args:
        rules: Rule set; null = ``document``.
        stage: ``jobs``: the checks of queues for production tasks; ``tasks``: of nuclei; ``analysis``: of queues for
            user tasks; null = ``analysis`` for analysis rules, else ``jobs``.
        own: Rules that are added, see :meth:`.plugins.Brokerage.with_rule`.
        recipe: What an organisation replaced.

    Returns:
        ``step`` (1...), ``check``, ``kind`` (``persistent, temporary``; ``throttle`` for a rule that holds a
        user task back, ``mark`` for a reason why a queue is problematic for it; ``weight`` for the row of what the weight reads), ``looks_at`` (``one place``, ``all places`` of a task together, ``the task``), ``source``, ``keys`` of gdpconfig,
        ``inputs`` (columns compared), ``queue_fields``, ``task_fields`` (what a person could change), ``sentence``
        (with the names of the numbers in braces).

    Raises:
        ConfigError: Unknown stage, or rules of another brokerage.
    """
    if stage is None:
        stage = "analysis" if isinstance(rules, AnalysisRules) else "jobs"
    if stage not in STAGES:
        raise ConfigError(f"stage={stage!r}: {nearest(stage, STAGES)}")
    kind, rows = STAGES[stage]
    if rules is not None and not isinstance(rules, kind):
        raise ConfigError(f"stage={stage!r} has {kind.__name__}, given are {type(rules).__name__}")
    numbered = [
        (step, *row) for step, row in enumerate(rows(rules or kind(), own, recipe), start=1)
    ]
    return pl.DataFrame(numbered, schema=_SCHEMA, orient="row")


def _of_jobs(rules: ProductionRules, own: Sequence[Own], recipe: Recipe) -> list[_Line]:
    reads = ["running", "x_activated", "x_assigned", "x_starting", "defined"]
    reads += ["t_total", "x_avail", "missing_files", "l_weight"]
    says = "running against queued jobs x input at hand x network"
    if rules.nucleus_preferred:
        reads, says = [*reads, "x_near", "t_t1_factor"], f"{says} x nucleus"
    if rules.hardware_preferred:
        reads, says = [*reads, "x_preference"], f"{says} x hardware preference"
    place = "production-jobs.md 7"
    weight = _line(
        "weight", "weight", "one place", place, ranking.weight_keys(rules, recipe), reads, says
    )
    checks, steps = _all(recipe, queue_checks, rules, ranking.steps(rules, recipe), own)
    return [*map(_row, checks), *_of_steps(steps), weight]


def _of_analysis(rules: AnalysisRules, own: Sequence[Own], recipe: Recipe) -> list[_Line]:
    checks, steps = _all(recipe, analysis_checks, rules, analysis.steps(rules, recipe), own)
    return [
        *(_row(rule, "throttle", "the task") for rule in throttle_rules(rules)),
        *map(_row, checks),
        *_of_steps(steps),
        _analysis_weight(rules, recipe),
    ]


def _all(
    recipe: Recipe, usual: ChecksOf, rules: Any, steps: Sequence[Step], own: Sequence[Own]
) -> tuple[tuple[Rule, ...], tuple[Step, ...]]:
    """Return checks and steps of a recipe with rules that are added."""
    return with_own(checks_of(recipe, usual, rules, steps), steps, own)


def _of_steps(steps: Iterable[Step]) -> list[_Line]:
    """Return the rules and marks among steps, in order."""
    return [
        _row(step.rule, "mark") if isinstance(step, Mark) else _row(step)
        for step in steps
        if isinstance(step, Rule | Mark)
    ]


def _analysis_weight(rules: AnalysisRules, recipe: Recipe) -> _Line:
    """Return what the basic weight in use and the data factor read."""
    counts: tuple[str, ...]
    if rules.basic_weight == "original":
        whose = "queue" if rules.counted_jobs == "queue" else "share"
        basic = f"running against queued jobs of the {whose}"
        jobs = (name for one in weights.counted(rules).values() for name in one.meta.root_names())
        counts = (*jobs, "s_pilots", "s_workers", "x_numslots", "q_corecount")
    else:
        basic = "jobs of the task for the class of the queue x what the stabilizer lets the user queue there"
        counts = ("t_n_jobs", "t_class", "t_gshare", "s_class", *STABILIZED)
    return _line(
        "weight", "weight", "one place", "analysis-jobs.md 7", analysis.weight_keys(rules, recipe),
        (*counts, *(("t_total", "t_local", "t_union", "x_data_weight", "x_avail") if rules.data_factor else ())),
        f"{basic} x input at hand" if rules.data_factor else basic,
    )  # fmt: skip


def _of_nuclei(rules: ProductionRules, own: Sequence[Own], recipe: Recipe) -> list[_Line]:
    weight = _line(
        "weight", "weight", "one place", "production-tasks.md 4", nuclei.weight_keys(rules, recipe),
        (
            *("rw", "iointensity", "ava_size_any", "ava_size_disk", "tot_size", "space_free"),
            *("space_expired", "space_total"),
        ),
        "input at hand x tape x free part of the storage x free space / work left",
    )  # fmt: skip
    checks, steps = _all(recipe, nucleus_checks, rules, nuclei.steps(rules, recipe), own)
    return [*map(_row, checks), *_of_steps(steps), weight]


LOOKS_AT = {"pair": "one place", "task": "all places"}


def _row(rule: Rule, kind: str | None = None, looks_at: str | None = None) -> _Line:
    return _line(
        rule.name, kind or rule.kind, looks_at or LOOKS_AT[rule.scope], rule.source, rule.keys,
        [name for name in rule.columns() if not name.startswith(SETTING)], rule.says,
    )  # fmt: skip


def _line(
    name: str, kind: str, looks_at: str, source: str, keys: Iterable[str], inputs: Iterable[str],
    says: str,
) -> _Line:  # fmt: skip
    columns = list(inputs)
    of_queue, of_task = fields(columns, QUEUE), fields(columns, TASK)
    return (name, kind, looks_at, source, list(keys), columns, of_queue, of_task, shown(says))


STAGES: dict[str, tuple[type[Any], Callable[[Any, Sequence[Own], Recipe], list[_Line]]]] = {
    "jobs": (ProductionRules, _of_jobs),
    "tasks": (ProductionRules, _of_nuclei),
    "analysis": (AnalysisRules, _of_analysis),
}
"""Brokerage to its rules and the lines of its checks."""
