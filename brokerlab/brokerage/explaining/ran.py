"""Where the jobs of a task really ran after it was brokered."""

from __future__ import annotations

import polars as pl

from brokerlab.brokerage.analysis_jobs import AnalysisDecisions
from brokerlab.brokerage.explaining.selection import subject
from brokerlab.brokerage.production_jobs.decisions import Decisions
from brokerlab.brokerage.words import listed, number

MOST_QUEUES = 5
"""Queues that are named."""


def where_jobs_ran(
    decisions: Decisions | AnalysisDecisions,
    ran: pl.DataFrame,
    jeditaskid: int,
    snapshot: int | None,
) -> str:
    """Say where the jobs made after a brokerage, and before the task's next one, really ran.

    Args:
        decisions: Of a job brokerage.
        ran: Jobs that started: ``jeditaskid, computingsite, made, n_jobs``.
        jeditaskid: The task.
        snapshot: The instant; null = the last one of the task.

    Raises:
        DataError: There is no such task.
    """
    who = subject(decisions.tasks, jeditaskid, snapshot)
    jobs = ran.filter(pl.col("jeditaskid") == jeditaskid)
    given = decisions.world.tables["tasks"].filter(pl.col("jeditaskid") == jeditaskid)
    instants = given["at"].drop_nulls().unique().sort() if "at" in given.columns else None
    here = who.rows(given)["at"].item() if instants is not None else None
    when = "that were made after this brokerage"
    if instants is not None and here is not None:
        jobs = jobs.filter(pl.col("made") >= here)
        later = instants.filter(instants > here)
        if len(later):
            jobs = jobs.filter(pl.col("made") < later[0])
            when += " and before the next one"
    queues = jobs.group_by("computingsite").agg(pl.col("n_jobs").sum())
    queues = queues.sort("n_jobs", "computingsite", descending=[True, False])
    n_jobs = int(queues["n_jobs"].sum())
    if not n_jobs:
        return f"None of its jobs {when} has started."
    if queues.height == 1:
        at = "at" if n_jobs == 1 else "all at"
        return f"Of its jobs {when}, {number(n_jobs)} started, {at} {queues['computingsite'][0]}."
    places = [f"{number(n)} at {name}" for name, n in queues.rows()]
    return f"Of its jobs {when}, {number(n_jobs)} started: {listed(places, most=MOST_QUEUES)}."
