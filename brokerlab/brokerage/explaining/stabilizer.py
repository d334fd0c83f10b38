"""The Analysis Stabilizer told step by step: how many jobs a user may have waiting at a queue, and why."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from brokerlab.brokerage.analysis_jobs.facts import World
from brokerlab.brokerage.analysis_jobs.rules import AnalysisRules
from brokerlab.brokerage.analysis_jobs.settings import AnalysisSettings
from brokerlab.brokerage.words import counted, number, worded

Row = Mapping[str, Any]


def stabilizer(world: World, row: Row, user: str | None) -> list[str]:
    """Return the state of the stabilizer at a queue, a line each.

    Args:
        world: Rules and settings.
        row: Row of the ranking.
        user: The task's user.

    Source: analysis-job-brokerage.md 5.
    """
    settings, who = world.settings, worded(user)
    percent = f"{number(100 * row['user_share'])} %"
    return [
        (
            f"The stabilizer lets {who} have {number(row['max_q_len'])} jobs waiting there (max_q_len); "
            f"{number(row['u_queued'])} wait."
        ),
        f"  it acts {_acts(row, who, settings, world.rules)}",
        (
            f"  nQ_max {number(row['nq_max'])}: the largest of {counted(settings.base_queue_length, 'job')}, "
            f"{number(settings.max_queue_running_ratio)} x {_running(row)} and {number(settings.max_expected_wait_h)} h x "
            f"{_rate(row)}"
        ),
        f"  part of {who} {percent}: {_part(row, who, world.rules)}",
        (
            f"  max_q_len {number(row['max_q_len'])}: the largest of {counted(settings.base_queue_length_user, 'job')}, "
            f"{number(settings.base_queue_ratio)} x {_running(row)} and {percent} of nQ_max"
        ),
    ]


def _acts(row: Row, who: str, settings: AnalysisSettings, rules: AnalysisRules) -> str:
    """Say from how many jobs on it acts, and whether it does."""
    wait = settings.base_expected_wait_h * row["trr"]
    least = max(settings.base_queue_length, wait)
    says = (
        f"from {number(least)} waiting jobs of the share on (the larger of {counted(settings.base_queue_length, 'job')} and "
        f"{number(settings.base_expected_wait_h)} h x {_rate(row)}); {number(row['x_nq'])} wait"
    )
    if row["t_merging"]:
        return f"{says}, but merge jobs are not held back"
    if row["looked_at"]:
        return f"{says}, so it acts"
    if rules.bad_jobs_mode == "after_stabilizer" and not row["u_known"]:
        return f"{says}, but {who} has no job there, so it does not act"
    return f"{says}, so it does not act"


def _running(row: Row) -> str:
    return counted(row["running_users"], "running job")


def _rate(row: Row) -> str:
    return f"{number(row['trr'])} jobs/h that start"


def _part(row: Row, who: str, rules: AnalysisRules) -> str:
    """Say what the user's part of the queue is."""
    users = counted(row["x_users"], "user")
    if not row["x_users"]:
        return "no user has jobs of the share there"
    total = " and the row of totals" if rules.count_total_row else ""
    own = f"{number(row['u_running'])} of {_running(row)} are of {who}"
    return f"the larger of one of {users}{total}, and {own}"
