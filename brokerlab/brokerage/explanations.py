"""Decisions explained: why a task was, or was not, sent to a queue or given to a nucleus."""

from __future__ import annotations

from dataclasses import replace
from typing import overload

import polars as pl

from brokerlab.brokerage.analysis_jobs import AnalysisDecisions
from brokerlab.brokerage.explaining.analysis import explain_user_queue
from brokerlab.brokerage.explaining.answer import Explanation, TaskExplanation
from brokerlab.brokerage.explaining.nuclei import explain_nucleus
from brokerlab.brokerage.explaining.queues import explain_queue
from brokerlab.brokerage.explaining.ran import where_jobs_ran
from brokerlab.brokerage.explaining.tasks import explain_one_task
from brokerlab.brokerage.production_jobs.decisions import Decisions
from brokerlab.brokerage.production_tasks.decisions import TaskDecisions
from brokerlab.brokerage.view import AnyDecisions
from brokerlab.errors import ConfigError

__all__ = ["Explanation", "TaskExplanation", "explain", "explain_task"]


@overload
def explain(
    decisions: Decisions | AnalysisDecisions,
    *,
    jeditaskid: int,
    panda_queue: str,
    snapshot: int | None = None,
    ran: pl.DataFrame | None = None,
) -> Explanation: ...
@overload
def explain(
    decisions: TaskDecisions, *, jeditaskid: int, nucleus: str, snapshot: int | None = None
) -> Explanation: ...
def explain(
    decisions: AnyDecisions,
    *,
    jeditaskid: int,
    panda_queue: str | None = None,
    nucleus: str | None = None,
    snapshot: int | None = None,
    ran: pl.DataFrame | None = None,
) -> Explanation:
    """Answer why a task was, or was not, sent to a queue (given to a nucleus), with the numbers compared.

    What else stands in the way is told as well, and what the queue would be without it: weights, caps and ranks are
    computed again for that one task. Of a candidate: rank, weight, its factors and what ranks better. Jobs for a unified queue are
    brokered to its pseudo-queues: that of them which came furthest answers for it.

    Args:
        decisions: Of the job brokerage or of the analysis brokerage (``panda_queue``), or of the task brokerage
            (``nucleus``).
        jeditaskid: The task.
        panda_queue: Name of a queue.
        nucleus: Name of a nucleus.
        snapshot: The instant; null = the last one of the task.
        ran: Jobs that really started: ``jeditaskid, computingsite, made, n_jobs``
            (:func:`.studies.period.jobs_that_ran`); of a queue the answer then ends with where the task's jobs ran.

    Returns:
        The answer; ``str()`` of it is the text.

    Raises:
        ConfigError: No place given, or of the wrong kind.
        DataError: There is no such task. (A queue that does not exist is an answer, with the nearest names.)
    """
    wanted = "nucleus" if isinstance(decisions, TaskDecisions) else "panda_queue"
    given = {"panda_queue": panda_queue, "nucleus": nucleus}
    place = given.pop(wanted)
    other, extra = given.popitem()
    if place is None or extra is not None:
        raise ConfigError(
            f"explain: these are decisions on a {wanted}: give {wanted}=..., and no {other}"
        )
    if isinstance(decisions, TaskDecisions):
        return explain_nucleus(decisions, jeditaskid, place, snapshot)
    if isinstance(decisions, AnalysisDecisions):
        answer = explain_user_queue(decisions, jeditaskid, place, snapshot)
    else:
        answer = explain_queue(decisions, jeditaskid, place, snapshot)
    if ran is None or answer.outcome == "unknown":
        return answer
    jobs = where_jobs_ran(decisions, ran, jeditaskid, snapshot)
    return replace(answer, sentences=(*answer.sentences, jobs))


def explain_task(
    decisions: AnyDecisions,
    *,
    jeditaskid: int,
    snapshot: int | None = None,
    ran: pl.DataFrame | None = None,
) -> TaskExplanation:
    """Answer what became of a task: its outcome, what each check removed, and which single checks stand in the way.

    Args:
        decisions: Of any brokerage.
        jeditaskid: The task.
        snapshot: The instant; null = the last one of the task.
        ran: See :func:`explain`; not of the task brokerage.

    Returns:
        The answer; ``str()`` of it is the text.

    Raises:
        DataError: There is no such task.
    """
    answer = explain_one_task(decisions, jeditaskid, snapshot)
    if ran is None or isinstance(decisions, TaskDecisions):
        return answer
    jobs = where_jobs_ran(decisions, ran, jeditaskid, snapshot)
    return replace(answer, sentences=(*answer.sentences, jobs))
