"""Why a user task is held back before any queue is looked at."""

from __future__ import annotations

from datetime import datetime

from brokerlab.brokerage.analysis_jobs import AnalysisDecisions
from brokerlab.brokerage.analysis_jobs.keys import place_of
from brokerlab.brokerage.analysis_jobs.throttle import WAITING
from brokerlab.brokerage.analysis_jobs.throttle_rules import is_of, throttle_rules
from brokerlab.brokerage.explaining.answer import Obstacle, obstacle, setting
from brokerlab.brokerage.explaining.selection import Subject

STOPPED_CLOCK = (
    "Waiting like this does not count towards the time after which a pending task is exhausted."
)


def held_back(decisions: AnalysisDecisions, who: Subject) -> Obstacle | None:
    """Return the rule that holds a task back, with the numbers compared; null: none does.

    Source: analysis-job-brokerage.md 2.
    """
    name = who.row["throttle"]
    if name is None:
        return None
    reason = next(each for each in throttle_rules() if each.name == name)
    world = decisions.world
    row = who.rows(world.throttle).with_columns(**reason.numbers)
    task = who.rows(world.tasks).row(0, named=True)
    scope = {"gshare": task["t_gshare"], "prodsourcelabel": task["t_label"]}
    keys = [key for key in reason.keys if is_of(key, group=task["t_group"] is not None)]
    settings = [setting(world.config, key, place_of(key), scope) for key in keys]
    return obstacle(reason, reason.clause(row.row(0, named=True)), settings)


def clock(outcome: str) -> list[str]:
    """Return the remark that waiting does not exhaust the task."""
    return [STOPPED_CLOCK] if outcome == WAITING else []


def until(at: datetime | None) -> list[str]:
    """Return when the task is tried again."""
    return [f"It is tried again from {at:%Y-%m-%d %H:%M} on."] if at else []
