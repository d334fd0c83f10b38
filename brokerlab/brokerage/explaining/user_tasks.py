"""What became of a user task as a whole: held back, in which locality loop it was decided, for which class."""

from __future__ import annotations

from typing import Any

import polars as pl

from brokerlab.brokerage.analysis_jobs import AnalysisDecisions
from brokerlab.brokerage.analysis_jobs.ranking import MARKS
from brokerlab.brokerage.analysis_jobs.task_facts import HIGH_PRIORITY
from brokerlab.brokerage.explaining.held import clock, held_back
from brokerlab.brokerage.explaining.selection import Subject
from brokerlab.brokerage.words import counted, number, worded

ENDED = {
    "fatal": "the queue that it is pre-assigned to was skipped",
    "temporary_error": "nothing passed all checks",
}
_SHOWN = 3


def user_ending(decisions: AnalysisDecisions, who: Subject) -> str:
    """Say in a clause why a user task found no place."""
    held = held_back(decisions, who)
    if held is not None:
        return f"it is held back, because {held.text}"
    return f"{ENDED[who.row['outcome']]} ({who.row['outcome']})"


def user_remarks(decisions: AnalysisDecisions, who: Subject) -> list[str]:
    """Say how a task waits, which locality loop decided, and which marks its queues have."""
    tasks = who.rows(decisions.world.facts.tasks)
    if not tasks.height:
        return clock(who.row["outcome"])
    task = tasks.row(0, named=True)
    return [*_loops(decisions, who, task), *_marks(decisions, who)]


def _loops(decisions: AnalysisDecisions, who: Subject, task: dict[str, Any]) -> list[str]:
    if not task["t_has_input"]:
        return ["It has no input, so queues are not asked for it."]
    if who.row["loop"] == 1:
        return ["Decided in the first locality loop, which asks for queues that hold the input."]
    first = who.rows(decisions.first_loop)
    if not first.height:
        return [f"The input does not have to be at the queue: {relaxation(decisions, who, task)}."]
    counts = first["check"].drop_nulls().cast(pl.String).value_counts()
    most = counts.sort("count", "check", descending=[True, False])
    reasons = [f"{check} {number(n)}" for check, n in most.head(_SHOWN).iter_rows()]
    rest = int(most["count"][_SHOWN:].sum())
    other = [f"others {number(rest)}"] if rest else []
    return [
        (
            "Decided in the second locality loop, which does not ask for the input at the queue: the first one left none of "
            f"{counted(first.height, 'queue')} ({', '.join(reasons + other)})."
        )
    ]


def _marks(decisions: AnalysisDecisions, who: Subject) -> list[str]:
    """Say how many queues are marked problematic, and by what."""
    rows = who.rows(decisions.weighed).filter(pl.any_horizontal(MARKS))
    if not rows.height:
        return []
    found = [f"{name} {number(n)}" for name in MARKS if (n := int(rows[name].sum()))]
    verb = "is" if rows.height == 1 else "are"
    return [f"{counted(rows.height, 'queue')} {verb} marked as problematic: {', '.join(found)}."]


def relaxation(decisions: AnalysisDecisions, who: Subject, task: dict[str, Any]) -> str:
    """Say why the input of a task does not have to be at the queue (4.1c).

    Args:
        decisions: The decisions.
        who: The task.
        task: Its facts.
    """
    given = who.rows(decisions.world.tables["tasks"]).row(0, named=True)
    settings, why = decisions.world.settings, task["t_relaxed"]
    if why == "priority":
        return f"the task's priority of {worded(given['taskpriority'])} is {number(HIGH_PRIORITY)} or more"
    if why == "io_intensity":
        return (
            f"the task's I/O of {worded(given['iointensity'])} kB/s is at most IO_INTENSITY_CUTOFF_USER, "
            f"{number(settings.io_intensity_cutoff)} kB/s"
        )
    return (
        f"the task makes no progress since {given['frozentime']:%Y-%m-%d %H:%M}, longer than DATA_CHECK_TIMEOUT_USER, "
        f"{number(settings.data_check_timeout_h)} h"
    )
