"""Each sentence of the page's timeout rules, on both sides of its boundary, then what the code does otherwise."""

from __future__ import annotations

from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

import polars as pl
import pytest

from brokerlab.errors import ConfigError, SchemaError
from brokerlab.lifecycle.timeouts import TimeoutRules, decide, fast_rebrokerage
from brokerlab.lifecycle.timeouts.decide import SCHEMA
from tests.unit.lifecycle.timeouts.toys import (
    DAY,
    HOUR,
    NOW,
    SECOND,
    frame,
    job,
    judge,
    names,
    queue,
)

IDLE = {"site_data": [{"computingsite": "Q", "laststart": 2 * HOUR + SECOND}]}
LATE = {"modificationtime": 30 * DAY, "statechangetime": 30 * DAY}

PAGE = [
    ("1 hour for pending jobs", "pending", "kill", "creationtime", HOUR, {}, {}),
    ("4 hours for defined jobs", "defined", "reassign", "modificationtime", 4 * HOUR, {}, {}),
    ("12 hours for assigned jobs", "assigned", "reassign", "modificationtime", 12 * HOUR, {}, {}),
    ("7 days for throttled jobs", "throttled", "kill", "creationtime", 7 * DAY, {}, {}),
    ("2 days for activated", "activated", "reassign", "modificationtime", 2 * DAY, {}, {}),
    ("2 days for starting", "starting", "reassign", "statechangetime", 2 * DAY, {}, {}),
    ("4 hours for activated jobs with 800, laststart older than 2 hours",
     "inactive_queue", "reassign", "modificationtime", 4 * HOUR,
     {"jobstatus": "activated", "currentpriority": 800}, IDLE),
    ("4 hours for starting jobs with 800, queue offline",
     "inactive_queue", "reassign", "statechangetime", 4 * HOUR,
     {"jobstatus": "starting", "currentpriority": 800}, {"queues": [queue(status="offline")]}),
    ("4 hours for activated jobs with 800, queue in test",
     "inactive_queue", "reassign", "modificationtime", 4 * HOUR,
     {"jobstatus": "activated", "currentpriority": 800}, {"queues": [queue(status="test")]}),
    ("30 min for sent jobs", "sent", "fail", "modificationtime", HOUR / 2, {}, {}),
    ("21 days for running jobs", "running", "kill", "starttime", 21 * DAY, {}, {}),
    ("2 hours for heartbeats from running jobs",
     "heartbeat", "fail", "modificationtime", 2 * HOUR, {"jobstatus": "running"}, {}),
    ("2 hours for heartbeats from starting jobs",
     "heartbeat", "fail", "modificationtime", 2 * HOUR, {"jobstatus": "starting"}, {}),
    ("own timeout value using HEARTBEAT_TIMEOUT_<workflow>",
     "heartbeat", "fail", "modificationtime", 6 * HOUR, {"jobstatus": "running"},
     {"queues": [queue(workflow="push")], "config": {"HEARTBEAT_TIMEOUT_push": 6}}),
    ("the above for transferring jobs with the workflow and own stage-out",
     "heartbeat_transferring", "fail", "modificationtime", 6 * HOUR,
     {"jobstatus": "transferring", "jobsubstatus": "s3"},
     {"queues": [queue(workflow="push")], "config": {"HEARTBEAT_TIMEOUT_push": 6}}),
    ("3 hours for holding jobs with 800", "holding_hi", "fail", "modificationtime", 3 * HOUR,
     {"jobstatus": "holding", "currentpriority": 800}, {}),
    ("3 hours for holding jobs with 800, since the end", "holding_hi", "fail", "endtime", 3 * HOUR,
     {"jobstatus": "holding", "currentpriority": 800}, {}),
    ("days for holding jobs below 800", "holding_lo", "fail", "modificationtime", 48 * HOUR,
     {"jobstatus": "holding", "currentpriority": 799}, {}),
    ("a set limit of holding jobs", "holding_lo", "fail", "endtime", 24 * HOUR,
     {"jobstatus": "holding"}, {"config": {"TIMEOUT_holding": 24}}),
    ("transtimehi days for transferring jobs with 800", "transferring_hi", "fail", "endtime", 3 * DAY,
     {"jobstatus": "transferring", "currentpriority": 800}, {"queues": [queue(transtimehi=3)]}),
    ("transtimehi is 2 where the queue sets none", "transferring_hi", "fail", "starttime", 2 * DAY,
     {"jobstatus": "transferring", "currentpriority": 800}, {}),
    ("transtimelo days for transferring jobs below 800", "transferring_lo", "fail", "endtime", 8 * DAY,
     {"jobstatus": "transferring"}, {"queues": [queue(transtimelo=8)]}),
    ("transtimelo is 6 where the queue sets none", "transferring_lo", "fail", "endtime", 6 * DAY,
     {"jobstatus": "transferring", "currentpriority": None}, {}),
]  # fmt: skip


@pytest.mark.parametrize(
    ("rule", "action", "time", "limit", "columns", "context"),
    [row[1:] for row in PAGE],
    ids=[row[0] for row in PAGE],
)
def test_the_page(
    rule: str, action: str, time: str, limit: timedelta, columns: Any, context: Any
) -> None:
    own = {"jobstatus": rule, **columns}
    status = own.pop("jobstatus")
    at_limit = judge(job(status, **own, **{time: limit}), **context).fired
    assert rule not in at_limit["rule"]
    past = judge(job(status, **own, **{time: limit + SECOND}), **context).fired
    row = past.row(by_predicate=pl.col("rule") == rule, named=True)
    assert row["action"] == action
    assert row["limit_h"] == limit / HOUR
    assert row["age_h"] == pytest.approx((limit + SECOND) / HOUR, rel=1e-12)
    assert row["since"] == NOW - limit - SECOND


@pytest.mark.parametrize("off", [{"status": "paused"}, {"catchall": "a=1,disableReassign"}])
@pytest.mark.parametrize("row", PAGE, ids=[row[0] for row in PAGE])
def test_the_page_disables_all_at_these_queues(row: Any, off: dict[str, Any]) -> None:
    _, rule, _, time, limit, columns, context = row
    own = {"jobstatus": rule, **columns, time: limit + SECOND}
    queues = [{**place, **off} for place in context.get("queues", [queue()])]
    assert names(job(own.pop("jobstatus"), **own), **{**context, "queues": queues}) == []


@pytest.mark.parametrize("rules", ["document", "production"])
def test_defined_is_four_hours_where_the_key_is_zero(rules: str) -> None:
    late = job("defined", modificationtime=3 * HOUR)
    assert names(late, rules=rules) == []
    assert names(late, config={"TIMEOUT_defined": 0}, rules=rules) == []
    assert names(late, config={"TIMEOUT_defined": 2}, rules=rules) == ["defined"]


@pytest.mark.parametrize("rules", ["document", "production"])
def test_a_missing_time_never_matches(rules: str) -> None:
    times = dict.fromkeys(
        ["creationtime", "modificationtime", "statechangetime", "starttime", "endtime"]
    )
    statuses = {status for row in PAGE for status in [row[5].get("jobstatus", row[1])]}
    jobs = [job(status, pandaid=i, **times) for i, status in enumerate(sorted(statuses))]
    assert names(*jobs, rules=rules, **IDLE) == []


@pytest.mark.parametrize("rules", ["document", "production"])
def test_times_to_come_and_jobs_that_are_over_never_match(rules: str) -> None:
    future = [job(status, pandaid=i, **dict.fromkeys(LATE, -DAY))
              for i, status in enumerate(["sent", "running", "activated"])]  # fmt: skip
    over = [job(status, pandaid=9 + i, creationtime=99 * DAY, starttime=99 * DAY, **LATE)
            for i, status in enumerate(["finished", "failed", "cancelled", "closed", "unknown"])]  # fmt: skip
    assert names(*future, *over, rules=rules) == []


def test_an_inactive_queue_is_one_that_is_known_to_start_nothing() -> None:
    late = job("activated", currentpriority=800, modificationtime=5 * HOUR)
    assert names(late) == []
    assert names(late, site_data=[{"computingsite": "Q", "laststart": None}]) == []
    assert names(late, site_data=[{"computingsite": "Q", "laststart": 2 * HOUR}]) == []
    assert names(late, **IDLE) == ["inactive_queue"]
    assert names({**late, "currentpriority": 799}, **IDLE) == []
    assert names({**late, "currentpriority": None}, **IDLE) == []
    assert names(late, queues=[], **IDLE) == ["inactive_queue"]


def test_a_starting_job_without_heartbeat_matches_three_rules_and_is_failed() -> None:
    found = judge(job("starting", currentpriority=900, **LATE), **IDLE)
    (row,) = found.by_job().to_dicts()
    assert row == {
        "pandaid": 1,
        "rules": ["starting", "inactive_queue", "heartbeat"],
        "first_rule": "starting",
        "action": "fail",
        "action_rule": "heartbeat",
    }


def test_killing_comes_before_reassigning() -> None:
    old = job("defined", creationtime=8 * DAY, modificationtime=5 * HOUR)
    (row,) = judge(old, rules="production").by_job().to_dicts()
    assert (row["first_rule"], row["action"], row["action_rule"]) == (
        "defined",
        "kill",
        "x_defined_7d",
    )


@pytest.mark.parametrize(
    ("label", "workflow", "limit"),
    [("user", "push", 3), ("panda", None, 3), ("managed", "push", 6), ("managed", "other", 4), ("managed", None, 4), (None, None, 4)],
)  # fmt: skip
def test_the_workflow_of_a_job(label: str | None, workflow: str | None, limit: int) -> None:
    keys = {
        "HEARTBEAT_TIMEOUT_push": 6,
        "HEARTBEAT_TIMEOUT_analysis": 3,
        "HEARTBEAT_TIMEOUT_production": 4,
    }
    context = {"queues": [queue(workflow=workflow)], "config": keys}
    for late, expected in ((0 * SECOND, []), (SECOND, ["heartbeat"])):
        silent = job("running", prodsourcelabel=label, modificationtime=limit * HOUR + late)
        assert names(silent, **context) == expected  # fmt: skip


def test_own_stage_out_needs_a_sub_status_and_a_limit_of_the_workflow() -> None:
    push = {"queues": [queue(workflow="push")], "config": {"HEARTBEAT_TIMEOUT_push": 6}}
    silent = job("transferring", modificationtime=7 * HOUR, jobsubstatus="s3")
    assert names(silent, **push) == ["heartbeat_transferring"]
    assert names({**silent, "jobsubstatus": None}, **push) == []
    assert names({**silent, "jobsubstatus": ""}, **push) == []
    assert names(silent) == []
    assert names(silent, config={"HEARTBEAT_TIMEOUT_production": 6}) == ["heartbeat_transferring"]


# what the code does otherwise


def test_labels_and_locks_of_the_code() -> None:
    late = job("activated", modificationtime=3 * DAY)
    assert names(late, rules="production") == ["activated"]
    for column, value in (("prodsourcelabel", "test"), ("lockedby", None), ("relocationflag", 2)):
        assert names({**late, column: value}, rules="production") == []
        assert names({**late, column: value}) == ["activated"]
    assert names({**late, "relocationflag": None}, rules="production") == ["activated"]
    assert names(
        job("defined", prodsourcelabel="test", modificationtime=5 * HOUR), rules="production"
    ) == ["defined"]
    urgent = job("activated", currentpriority=800, modificationtime=5 * HOUR)
    assert names(urgent, rules="production", **IDLE) == ["inactive_queue"]
    for column, value in (
        ("processingtype", "pmerge"),
        ("relocationflag", None),
        ("lockedby", None),
    ):
        assert names({**urgent, column: value}, rules="production", **IDLE) == []
        assert names({**urgent, column: value}, **IDLE) == ["inactive_queue"]  # fmt: skip


@pytest.mark.parametrize("status", ["pending", "defined", "assigned", "waiting"])
def test_assigned_takes_the_whole_table_in_the_code(status: str) -> None:
    late = job(status, modificationtime=13 * HOUR)
    assert "assigned" in names(late, rules="production")
    assert ("assigned" in names(late)) == (status == "assigned")


def test_exemptions_of_the_code() -> None:
    stays, paused = [queue(catchall="disableReassign")], [queue(status="paused")]
    waiting = [job("activated", **LATE), job("starting", pandaid=2, modificationtime=HOUR, statechangetime=3 * DAY),
               job("activated", pandaid=3, currentpriority=900, modificationtime=5 * HOUR)]  # fmt: skip
    idle = IDLE["site_data"]
    assert names(*waiting, rules="production", queues=stays, site_data=idle) == []
    found = names(*waiting, rules="production", queues=paused, site_data=idle)
    assert found == ["activated", "starting", "inactive_queue"]
    silent = job("running", modificationtime=3 * HOUR)
    assert names(silent, rules="production", queues=stays) == ["heartbeat"]
    assert names(silent, rules="production", queues=paused) == []
    user = {**silent, "prodsourcelabel": "user"}
    assert names(user, rules="production", queues=paused) == ["heartbeat"]
    sent = job("sent", modificationtime=HOUR)
    assert names(sent, rules="production", queues=paused) == ["sent"]


def test_the_two_heartbeat_checks_of_the_code() -> None:
    keys = {
        "HEARTBEAT_TIMEOUT_push": 6,
        "HEARTBEAT_TIMEOUT_analysis": 9,
        "HEARTBEAT_TIMEOUT_production": 4,
    }
    silent = job("stagein", modificationtime=7 * HOUR)

    def found(workflow: str | None, status: str = "online", **columns: Any) -> list[float]:
        fired = judge(
            {**silent, **columns},
            rules="production",
            config=keys,
            queues=[
                queue(workflow=workflow, status=status),
                queue(panda_queue="P", workflow="push"),
            ],
        ).fired
        return fired["limit_h"].to_list()  # fmt: skip

    assert found("push") == [6.0]
    assert found(None) == [4.0]
    assert found("other") == [4.0]
    assert found("production") == []
    assert found("analysis") == []
    assert found("push", prodsourcelabel="user") == [6.0]  # the smaller limit, of the queue
    assert found("push", prodsourcelabel="user", modificationtime=10 * HOUR) == [6.0]
    assert found("production", prodsourcelabel="user", modificationtime=10 * HOUR) == [9.0]
    # workflows of queues that are not online are not collected: then the limit is that of production
    offline = judge(
        silent, rules="production", config=keys, queues=[queue(workflow="push", status="offline")]
    )
    assert offline.fired["limit_h"].to_list() == [4.0]  # fmt: skip


def test_one_late_job_opens_an_inactive_queue_in_the_code() -> None:
    opener = job("activated", currentpriority=900, modificationtime=5 * HOUR)
    other = job("activated", pandaid=2, currentpriority=900, statechangetime=5 * HOUR)
    assert judge(opener, other, rules="production", **IDLE).fired["pandaid"].to_list() == [1, 2]
    assert judge(other, rules="production", **IDLE).fired.is_empty()
    assert judge(opener, other, **IDLE).fired["pandaid"].to_list() == [1]
    elsewhere = {**other, "computingsite": "P"}
    both = {"site_data": [*IDLE["site_data"], {"computingsite": "P", "laststart": DAY}]}
    assert judge(opener, elsewhere, rules="production", **both).fired["pandaid"].to_list() == [1]


def test_holding_of_the_code() -> None:
    at_800 = job("holding", currentpriority=800, modificationtime=4 * HOUR)
    assert names(at_800) == ["holding_hi"]
    assert names(at_800, rules="production") == []
    above = {**at_800, "currentpriority": 801, "modificationtime": 3 * DAY}
    assert names(above) == ["holding_hi"]
    assert names(above, rules="production") == ["holding_hi", "holding_lo"]


def test_running_of_the_code_counts_from_creation_and_is_spared_by_the_second_look() -> None:
    old = job("merging", creationtime=22 * DAY)
    assert names(old) == []
    found = judge(old, rules="production")
    assert found.fired.select("rule", "action").rows() == [("running", "kill")]
    assert found.spared.select("rule", "action").rows() == [("running", "fail")]
    silent = {**old, "jobstatus": "holding", "endtime": 22 * DAY, "currentpriority": 500}
    fired = judge(silent, rules="production").fired.filter(pl.col("rule") == "running")
    assert fired["action"].to_list() == ["fail", "kill"]


def test_transferring_of_the_code_has_fixed_limits_from_the_end() -> None:
    hi = job("transferring", currentpriority=800, endtime=3 * DAY, jobsubstatus="s3")
    long = [queue(transtimehi=9, transtimelo=9)]
    assert names(hi, queues=long) == []
    assert names(hi, queues=long, rules="production") == ["transferring_hi"]
    user = {**hi, "prodsourcelabel": "user"}
    assert names(user, rules="production") == []
    assert names({**user, "endtime": 7 * DAY}, rules="production") == ["transferring_lo"]
    assert names({**hi, "endtime": None, "starttime": 9 * DAY}, rules="production") == []


CODE = [
    ("x_holding_user", "holding", {"prodsourcelabel": "user", "modificationtime": HOUR}, "endtime", 3 * HOUR),
    ("x_transferring_user", "transferring", {"prodsourcelabel": "panda"}, "modificationtime", 2 * HOUR),
    ("x_defined_7d", "waiting", {}, "creationtime", 7 * DAY),
    ("x_activated_7d", "activated", {}, "creationtime", 7 * DAY),
    ("x_analysis_7d", "merging", {"prodsourcelabel": "test"}, "modificationtime", 7 * DAY),
    ("x_waiting", "waiting", {}, "creationtime", HOUR),
    ("x_es_waiting", "waiting", {"eventservice": 2}, "creationtime", HOUR / 6),
    ("x_es_24h", "running", {"eventservice": 2}, "statechangetime", DAY),
    ("x_es_24h", "starting", {"eventservice": 5, "currentpriority": 900}, "statechangetime", DAY),
    ("x_build", "defined", {"prodsourcelabel": "panda", "transformation": "a/buildGen"}, "creationtime", 4 * HOUR),
    ("x_build", "defined", {"lockedby": None}, "creationtime", 4 * HOUR),
]  # fmt: skip


@pytest.mark.parametrize(("rule", "status", "columns", "time", "limit"), CODE)
def test_rules_of_the_code_alone(
    rule: str, status: str, columns: Any, time: str, limit: timedelta
) -> None:
    assert rule not in names(job(status, **columns, **{time: limit}), rules="production")
    late = job(status, **{**columns, time: limit + SECOND})
    assert rule in names(late, rules="production")
    assert rule not in names(late)


def test_exceptions_of_the_rules_of_the_code_alone() -> None:
    user = job(
        "holding", prodsourcelabel="user", modificationtime=4 * HOUR, statechangetime=5 * HOUR
    )
    assert names(user, rules="production") == ["x_holding_user"]
    assert names({**user, "statechangetime": 4 * HOUR}, rules="production") == []
    assert names(user, rules="production", output_reports=[{"pandaid": 1}]) == []
    jumbo = job("waiting", eventservice=5, creationtime=2 * HOUR)
    assert names(jumbo, rules="production") == []
    calm = job("running", eventservice=1, currentpriority=899, statechangetime=2 * DAY)
    assert names(calm, rules="production") == []


def test_nothing_remains() -> None:
    for rules in ("document", "production"):
        found = judge(rules=rules)
        assert found.fired.schema == pl.Schema(SCHEMA)
        assert found.fired.is_empty()
        assert found.spared.schema == pl.Schema(SCHEMA)
        assert found.by_job().is_empty()


def test_results_tell_where_they_come_from() -> None:
    found = judge(job("sent", modificationtime=HOUR))
    assert found.fired.equals(found.frame())
    assert (found.at, found.rules.rules) == (NOW, "document")
    assert found.config_digest.startswith("sha256:")
    assert "sent" in found._repr_html_()


def test_bad_input_is_refused() -> None:
    rows = frame("jobs", [job("sent")])
    with pytest.raises(SchemaError, match=r"jobs\.currentpriority.*; unknown table 'queue'"):
        decide({"jobs": rows.with_columns(currentpriority=pl.lit("high")), "queue": rows}, at=NOW)
    with pytest.raises(ConfigError, match="zone"):
        decide({"jobs": rows}, at=NOW.replace(tzinfo=__import__("datetime").timezone.utc))
    with pytest.raises(ConfigError, match="second_look"):
        TimeoutRules(second_lok=True)


def test_the_rule_set_by_name_and_the_instant_as_text() -> None:
    jobs = [{"pandaid": 1, "jobstatus": "sent", "modificationtime": "2026-03-01T11:00"}]
    named = decide({"jobs": jobs}, at="2026-03-01T12:00", rules="production")
    given = decide({"jobs": jobs}, at=datetime(2026, 3, 1, 12), rules=TimeoutRules("production"))
    assert named.fired.equals(given.fired)
    assert named.spared.equals(given.spared)
    assert (named.at, named.rules) == (given.at, given.rules)
    assert named.config_digest == given.config_digest
    with pytest.raises(ConfigError, match="at='noon': allowed is a time"):
        decide({"jobs": jobs}, at="noon")


@pytest.mark.parametrize(
    ("column", "value", "message"),
    [
        ("modificationtime", 1_772_362_800, r"jobs\.modificationtime: is Int64, a time is needed"),
        ("modificationtime", 1.5, r"jobs\.modificationtime: is Float64, a time is needed"),
        ("pandaid", Decimal("1.5"), r"jobs\.pandaid: 1 values are no Int64 \(Decimal"),
    ],
)
@pytest.mark.parametrize("convert", [list, pl.DataFrame])
def test_numbers_for_times_and_parts_for_whole_numbers_are_refused(
    convert: Any, column: str, value: object, message: str
) -> None:
    row = {"pandaid": 1, "jobstatus": "sent", "modificationtime": datetime(2026, 3, 1)}
    with pytest.raises(SchemaError, match=message):
        decide({"jobs": convert([{**row, column: value}])}, at=datetime(2026, 3, 2))


@pytest.mark.parametrize("days", [float("nan"), float("inf"), None])
def test_a_limit_of_a_queue_that_is_no_number_is_not_set(days: float | None) -> None:
    """ "transtimelo days for transferring jobs with job.currentPriority<800": 6 where the queue sets none."""
    jobs = [
        {"pandaid": 1, "jobstatus": "transferring", "endtime": "2026-03-01", "computingsite": "Q"}
    ]
    queues = pl.DataFrame({"panda_queue": ["Q"], "transtimelo": [days]})
    found = decide({"jobs": jobs, "queues": queues}, at="2026-03-08").fired
    assert found.select("rule", "limit_h").rows() == [("transferring_lo", 144.0)]


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_of_a_queue_with_a_history_the_latest_row_counts(order: tuple[int, int]) -> None:
    """ "disable all timeout rules when the queue status is paused": it is paused since the second day."""
    jobs = [
        {"pandaid": 1, "jobstatus": "sent", "modificationtime": "2026-03-01", "computingsite": "Q"}
    ]
    rows = [
        {"panda_queue": "Q", "status": "online", "ts": datetime(2026, 3, 1)},
        {"panda_queue": "Q", "status": "paused", "ts": datetime(2026, 3, 2)},
    ]
    queues = [rows[place] for place in order]
    assert decide({"jobs": jobs, "queues": queues}, at="2026-03-05").fired.is_empty()
    counts = [{"computingsite": "Q", "gshare": "A", "jobstatus": "activated", "njobs": 20}]
    found = fast_rebrokerage({"share_job_stats": counts, "queues": queues}).shares
    assert found["exempt"].to_list() == [True]
