"""Decisions of any brokerage seen the same way: which places a task may go to, what removed the others."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import singledispatch
from typing import Final, TypeAlias

import polars as pl

from brokerlab.brokerage.analysis_jobs.decisions import AnalysisDecisions
from brokerlab.brokerage.engine.steps import names_of
from brokerlab.brokerage.production_jobs.decisions import Decisions, stages
from brokerlab.brokerage.production_tasks.decisions import TaskDecisions
from brokerlab.errors import ConfigError

AnyDecisions: TypeAlias = Decisions | AnalysisDecisions | TaskDecisions

TASK = ["jeditaskid", "snapshot"]
PLACED = ("candidates", "nucleus")
"""Outcomes of tasks that found a place."""
NOT_LOOKED_AT: Final = "not looked at"
"""Stands for the check at a place that was no candidate for the task to begin with."""


@dataclass(frozen=True)
class View:
    """Decisions, whatever brokerage made them.

    Attributes:
        brokerage: What decided: ``the job brokerage``, ``the analysis brokerage``, ``the task brokerage``.
        place: Column that names the place: ``panda_queue`` or ``nucleus``.
        pairs: One row per (task, place) looked at, sorted: ``jeditaskid, snapshot``, the place, ``check`` (null:
            candidate).
        shares: ``jeditaskid, snapshot``, the place, ``share`` of the task's expected jobs (nuclei: probability), of
            candidates; where all weigh 0, queues share alike and the first nucleus has all. The
            best of a task comes first.
        steps: ``check, stage, kind``, in the order in which they remove.
        tasks: One row per task: ``outcome``, ``best`` (the place ranked first; the nucleus chosen).
        about: One row per task: the columns that a result may be grouped by, those of the table of tasks first; of
            user tasks also ``throttle``, ``loop`` (that decided) and ``task_class`` (2 S, 1 A and unknown, 0 B, -1 C).
        places: Names of all places that the decisions know, candidates or not.
    """

    brokerage: str
    place: str
    pairs: pl.DataFrame
    shares: pl.DataFrame
    steps: pl.DataFrame
    tasks: pl.DataFrame
    about: pl.DataFrame
    places: frozenset[str]

    def of_tasks(self, tasks: pl.DataFrame) -> View:
        """Return the view of some tasks, ``jeditaskid, snapshot``."""
        parts = {
            name: getattr(self, name).join(tasks, on=TASK, how="semi", maintain_order="left")
            for name in ("pairs", "shares", "tasks", "about")
        }
        return replace(self, **parts)


@singledispatch
def view(decisions: AnyDecisions) -> View:
    """Return the view of decisions on queues or on nuclei."""
    raise ConfigError(f"these are no decisions of a brokerage: {type(decisions).__name__}")


@view.register
def _of_jobs(decisions: Decisions) -> View:
    kinds = {reason.name: reason.kind for reason in decisions.reasons}
    order = stages(decisions.checks, decisions.world.steps)
    steps = order.with_columns(kind=pl.col("check").cast(pl.String).replace_strict(kinds))
    weighed = decisions.weighed
    chosen = weighed.filter(pl.col("rank").is_not_null()) if weighed.width else None
    if chosen is None:  # hint mode: nothing is weighed
        keys = decisions.queues.select(*TASK, "panda_queue").clear()
        shares = keys.with_columns(share=pl.lit(None, pl.Float64))
        tasks = decisions.tasks.select(*TASK, "outcome", best=pl.lit(None, pl.String))
    else:
        shares = chosen.sort(*TASK, "rank").select(*TASK, "panda_queue", "share")
        best = chosen.filter(pl.col("rank") == 1).select(
            *TASK, best=pl.col("panda_queue").cast(pl.String)
        )
        tasks = decisions.tasks.select(*TASK, "outcome").join(
            best, on=TASK, how="left", maintain_order="left"
        )
    given = decisions.world.tables["tasks"].with_columns(pl.col("snapshot").fill_null(0))
    return View(
        brokerage="the job brokerage",
        place="panda_queue",
        pairs=decisions.queues.select(*TASK, "panda_queue", "check"),
        shares=shares,
        steps=steps.sort("step", "check").select("check", "stage", "kind"),
        tasks=tasks,
        about=given.with_columns(day=pl.col("at").dt.date()).join(
            decisions.tasks.select(*TASK, "outcome"), on=TASK, how="left", maintain_order="left"
        ),
        places=frozenset(decisions.world.facts.queues["panda_queue"].unique()),
    )


@view.register
def _of_analysis(decisions: AnalysisDecisions) -> View:
    world = decisions.world
    kinds = {reason.name: reason.kind for reason in decisions.reasons}
    order = decisions.queues.schema["check"]
    names = pl.Series(names_of(decisions.checks, decisions.world.steps))
    chosen = decisions.weighed.filter(pl.col("rank").is_not_null()).sort(*TASK, "rank")
    best = chosen.filter(pl.col("rank") == 1).select(
        *TASK, best=pl.col("panda_queue").cast(pl.String)
    )
    given = world.tables["tasks"].with_columns(
        pl.col("snapshot").fill_null(0), day=pl.col("at").dt.date()
    )
    ended = decisions.tasks.select(*TASK, "outcome", "throttle", "loop")
    classes = world.tasks.select(*TASK, task_class="t_class")
    return View(
        brokerage="the analysis brokerage",
        place="panda_queue",
        pairs=decisions.queues.select(*TASK, "panda_queue", "check"),
        shares=chosen.select(*TASK, "panda_queue", "share"),
        steps=pl.DataFrame(
            {"check": names.cast(order), "stage": names, "kind": [kinds[name] for name in names]}
        ),
        tasks=decisions.tasks.select(*TASK, "outcome").join(
            best, on=TASK, how="left", maintain_order="left"
        ),
        about=given.join(ended, on=TASK, how="left", maintain_order="left").join(
            classes, on=TASK, how="left", maintain_order="left"
        ),
        places=frozenset(world.facts.queues["panda_queue"].unique()),
    )  # fmt: skip


@view.register
def _of_tasks(decisions: TaskDecisions) -> View:
    order = decisions.nuclei.schema["check"]
    names = pl.Series(names_of(decisions.checks, decisions.world.steps))
    kinds = {reason.name: reason.kind for reason in decisions.reasons}
    tasks = decisions.tasks
    return View(
        brokerage="the task brokerage",
        place="nucleus",
        pairs=decisions.nuclei.select(*TASK, "nucleus", "check"),
        shares=decisions.nuclei.filter(pl.col("check").is_null())
        .select(*TASK, "nucleus", share="probability")
        .sort(*TASK, "share", "nucleus", descending=[False, False, True, False]),
        steps=pl.DataFrame(
            {"check": names.cast(order), "stage": names, "kind": [kinds[name] for name in names]}
        ),
        tasks=tasks.select(*TASK, "outcome", best="nucleus"),
        about=tasks,
        places=frozenset(decisions.world.facts.queues["nucleus"].unique()),
    )
