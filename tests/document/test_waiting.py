"""Cases of the section on timeouts (002): jobs on both sides of each limit, at a queue that is online."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import polars as pl
import pytest

from brokerlab.lifecycle.timeouts import TimeoutRules
from tests.unit.lifecycle.timeouts.test_fast import at, jobs_of, run, stats
from tests.unit.lifecycle.timeouts.toys import DAY, HOUR, SECOND, job, judge, names, queue


def fires(
    rule: str, status: str, since: str, limit: timedelta, *, columns: Any = None, **context: Any
) -> bool:
    """Return whether a rule fires a second after its limit, and not at it."""
    own = columns or {}
    early, late = (
        names(job(status, **own, **{since: limit + more}), **context)
        for more in (timedelta(0), SECOND)
    )
    assert rule not in early
    return rule in late


def test_pending():
    """002, Timeout Rules: 1 hour for pending jobs"""
    assert fires("pending", "pending", "creationtime", HOUR)


def test_defined():
    """002, Timeout Rules: 4 hours for defined jobs"""
    assert fires("defined", "defined", "modificationtime", 4 * HOUR)


def test_assigned():
    """002, Timeout Rules: 12 hours for assigned jobs

    Assigned ones alone; production takes every status before activation.
    """
    assert fires("assigned", "assigned", "modificationtime", 12 * HOUR)
    late = job("waiting", modificationtime=13 * HOUR)
    assert names(late) == []
    assert "assigned" in names(late, rules="production")


def test_throttled():
    """002, Timeout Rules: 7 days for throttled jobs"""
    assert fires("throttled", "throttled", "creationtime", 7 * DAY)


@pytest.mark.parametrize(
    ("status", "since"), [("activated", "modificationtime"), ("starting", "statechangetime")]
)
def test_activated_or_starting(status, since):
    """002, Timeout Rules: 2 days for activated or starting jobs"""
    assert fires(status, status, since, 2 * DAY)


IDLE = {"site_data": [{"computingsite": "Q", "laststart": 2 * HOUR + SECOND}]}
BUSY = {"site_data": [{"computingsite": "Q", "laststart": 2 * HOUR}]}


@pytest.mark.parametrize(
    ("status", "since"), [("activated", "modificationtime"), ("starting", "statechangetime")]
)
@pytest.mark.parametrize(
    "context",
    [IDLE, {"queues": [queue(status="test")]}, {"queues": [queue(status="offline")]}],
)
def test_urgent_jobs_at_inactive_queues(status, since, context):
    """002, Timeout Rules: 4 hours for activated or starting jobs with job.currentPriority>=800 at the queues where
    laststart in the SiteData table is older than 2 hours or the queue status is test or offline
    """
    urgent = {"currentpriority": 800}
    assert fires("inactive_queue", status, since, 4 * HOUR, columns=urgent, **context)
    late = {since: 5 * HOUR}
    assert names(job(status, **urgent, **late), **BUSY) == []
    assert names(job(status, currentpriority=799, **late), **context) == []


def test_sent():
    """002, Timeout Rules: 30 min for sent jobs"""
    assert fires("sent", "sent", "modificationtime", HOUR / 2)


def test_running():
    """002, Timeout Rules: 21 days for running jobs"""
    assert fires("running", "running", "starttime", 21 * DAY)


PUSH: dict[str, Any] = {
    "queues": [queue(workflow="push")],
    "config": {"HEARTBEAT_TIMEOUT_push": 6},
}


@pytest.mark.parametrize("status", ["running", "starting"])
def test_heartbeats(status):
    """002, Timeout Rules: 2 hours for heartbeats from running or starting jobs. Each workflow can define own timeout
    value using HEARTBEAT_TIMEOUT_<workflow> in gdpconfig
    """
    assert fires("heartbeat", status, "modificationtime", 2 * HOUR)
    assert fires("heartbeat", status, "modificationtime", 6 * HOUR, **PUSH)
    assert names(job("stagein", modificationtime=3 * HOUR)) == []


def test_heartbeats_of_transferring_jobs():
    """002, Timeout Rules: the above HEARTBEAT_TIMEOUT_<workflow> for transferring jobs with the workflow and own
    stage-out mechanism that sets not-null job.jobSubStatus
    """
    staged = {"jobsubstatus": "s3"}
    name = "heartbeat_transferring"
    assert fires(name, "transferring", "modificationtime", 6 * HOUR, columns=staged, **PUSH)
    assert names(job("transferring", modificationtime=7 * HOUR), **PUSH) == []
    assert names(job("transferring", **staged, modificationtime=7 * HOUR)) == []


@pytest.mark.parametrize(
    ("rule", "priority", "limit"), [("holding_hi", 800, 3 * HOUR), ("holding_lo", 799, 48 * HOUR)]
)
def test_holding(rule, priority, limit):
    """002, Timeout Rules: 3 hours for holding jobs with job.currentPriority>=800, while days for holding jobs with
    job.currentPriority<800

    The page has lost the number of days: 48 hours of the key's default stand for it.
    """
    assert fires(rule, "holding", "modificationtime", limit, columns={"currentpriority": priority})
    late = job("holding", currentpriority=priority, modificationtime=limit + SECOND)
    assert names(late) == [rule]


@pytest.mark.parametrize(
    ("rule", "priority", "days"), [("transferring_hi", 800, 3), ("transferring_lo", 799, 8)]
)
def test_transferring(rule, priority, days):
    """002, Timeout Rules: transtimehi days for transferring jobs with job.currentPriority>=800, while transtimelo
    days for transferring jobs with job.currentPriority<800
    """
    queues = [queue(transtimehi=3, transtimelo=8)]
    own = {"currentpriority": priority}
    assert fires(rule, "transferring", "endtime", days * DAY, columns=own, queues=queues)
    late = job("transferring", **own, endtime=days * DAY + SECOND)
    assert names(late, queues=queues) == [rule]


@pytest.mark.parametrize("off", [{"status": "paused"}, {"catchall": "a=1,disableReassign"}])
@pytest.mark.parametrize(
    "late",
    [
        job("defined", modificationtime=9 * DAY),
        job("activated", modificationtime=9 * DAY),
        job("running", starttime=30 * DAY, modificationtime=9 * DAY),
        job("transferring", endtime=30 * DAY),
    ],
)
def test_what_disables_all(late, off):
    """002, Timeout Rules: disable all timeout rules when the queue status is paused or the queue has
    disableReassign in catchall
    """
    assert names(late)
    assert names(late, queues=[queue(**off)]) == []


def test_only_the_rules_of_the_page():
    """002, Timeout Rules: 2 days for activated or starting jobs

    A rule that only the code has, 7 days since creation, fires in production alone.
    """
    old = job("activated", creationtime=8 * DAY)
    assert judge(old).fired.is_empty()
    assert judge(old, rules=TimeoutRules(code_only_rules=True)).fired.height == 1


# ---- fast rebrokerage: 50 jobs wait for 10 running ones, the limits are 3, 0.3 and 10


@pytest.mark.parametrize("status", ["defined", "assigned", "activated", "starting"])
def test_what_is_brokered_again(status):
    """002, Timeout Rules: fast rebrokerage for defined, assigned, activated, or starting jobs at the queues where"""
    found = run(stats(A=(50, 10)), jobs=jobs_of("A", 50, status=status))
    assert found.moved.height == 20
    assert run(stats(A=(50, 10)), jobs=jobs_of("A", 50, status="running")).moved.is_empty()


@pytest.mark.parametrize(
    ("queued", "running", "triggered"), [(30, 10, False), (31, 10, True), (31, 0, True)]
)
def test_queued_over_running(queued, running, triggered):
    """002, Timeout Rules: nQueue_queue(gshare)/nRun_queue(gshare) is larger than FAST_REBRO_THRESHOLD_NQNR_RATIO

    Without running jobs it is, whatever the limit.
    """
    assert at(run(stats(A=(queued, running))))["triggered"] == triggered


@pytest.mark.parametrize(("elsewhere", "triggered"), [(70, False), (69, True)])
def test_queued_over_all(elsewhere, triggered):
    """002, Timeout Rules: nQueue_queue(gshare)/nQueue_total(gshare) is larger than FAST_REBRO_THRESHOLD_NQUEUE_FRAC"""
    assert at(run(stats(A=(30, 1), B=(elsewhere, 100))))["triggered"] == triggered


def test_queued_over_the_threshold_of_the_share():
    """002, Timeout Rules: nQueue_queue(gshare) is larger than FAST_REBRO_THRESHOLD_NQUEUE_<gshare>. Unless the gshare
    defines the parameter it doesn’t trigger the fast rebrokerage
    """
    assert not at(run(stats(A=(10, 1))))["triggered"]
    assert at(run(stats(A=(11, 1))))["triggered"]
    assert not at(run(stats(A=(50, 1)), keys={}))["triggered"]


def test_queues_with_slots():
    """002, Timeout Rules: nSlots is not defined in the Harvester_Slots table since it intentionally cause large
    nQueue when nRun is small
    """
    slots = pl.DataFrame({"pandaqueuename": ["A"]})
    assert at(run(stats(A=(50, 10))))["triggered"]
    assert run(stats(A=(50, 10)), slots=slots).shares.filter("triggered").is_empty()
