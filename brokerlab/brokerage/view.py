"""Decisions of any brokerage seen the same way: which places a task may go to, what removed the others."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final, TypeAlias

import polars as pl

from brokerlab.brokerage.analysis_jobs.decisions import AnalysisDecisions
from brokerlab.brokerage.engine.decisions import PlaceDecisions, stages
from brokerlab.brokerage.production_jobs.decisions import Decisions
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


CALLED = {"jobs": "the job brokerage", "analysis": "the analysis brokerage", "tasks": "the task brokerage"}  # fmt: skip


def view(decisions: AnyDecisions) -> View:
    """Return the view of decisions on queues or on nuclei."""
    if not isinstance(decisions, PlaceDecisions):
        raise ConfigError(f"these are no decisions of a brokerage: {type(decisions).__name__}")
    world, place = decisions.world, decisions.world.brokerage.place
    order = stages(decisions.checks, world.steps).sort("step", "check")
    return View(
        brokerage=CALLED[world.brokerage.stage],
        place=place,
        pairs=decisions.places.select(*TASK, place, "check"),
        shares=decisions.shares,
        steps=order.select("check", "stage", "kind"),
        tasks=decisions.tasks.select(*TASK, "outcome").join(
            decisions.best, on=TASK, how="left", maintain_order="left"
        ),
        about=decisions.about,
        places=frozenset(world.facts.queues[place].unique()),
    )
