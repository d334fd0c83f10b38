"""How long jobs wait: the page's sentences, the boundaries, both rule sets."""

from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta
from typing import Any

import polars as pl
import pytest
from scipy import stats as scipy_stats

from brokerlab.errors import ConfigError, DataError, SchemaError
from brokerlab.lifecycle.classification import (
    ClassRules,
    Instants,
    wait_stats,
    weighted_upper_limit,
)
from tests.unit.lifecycle.classification.toys import LOG, NOW, ago, job, jobs, queued, waited

PRODUCTION = ClassRules("production")
QUEUES = pl.DataFrame({"panda_queue": ["Q", "PUSH"], "workflow": ["pull", "push_heartbeat"]})


def only(table: pl.DataFrame, rules: ClassRules | None = None, **more: Any) -> dict[str, Any]:
    found = wait_stats(table, QUEUES, at=NOW, rules=rules, **more)
    assert found.height == 1
    return found.row(0, named=True)


def counted(table: pl.DataFrame, rules: ClassRules | None = None, **more: Any) -> int:
    return int(wait_stats(table, QUEUES, at=NOW, rules=rules, **more)["n"].sum())


def test_a_weight_halves_with_every_half_life() -> None:
    two = jobs(waited(1, 100, age_s=0), waited(2, 400, age_s=6 * 3600))
    found = only(two)
    assert found["sum_of_weights"] == 1.5
    assert found["w_mean"] == 200  # (100 + 400 / 2) / 1.5
    assert found["w_stdev"] == pytest.approx(math.sqrt((100**2 + 200**2 / 2) / 1.5), rel=1e-15)
    late = only(two, PRODUCTION)
    assert late["sum_of_weights"] == 1 + 2**-0.5


def test_the_limit_bounds_one_wait_with_real_degrees_of_freedom() -> None:
    found = only(jobs(waited(1, 100), waited(2, 400, age_s=6 * 3600)))
    quantile = scipy_stats.t.ppf(0.95, 1.5)
    assert found["w_cl95upp"] == pytest.approx(200 + found["w_stdev"] * quantile, rel=1e-12)
    assert found["cl95upp"] == pytest.approx(250 + 150 * scipy_stats.t.ppf(0.95, 1), rel=1e-12)
    assert (found["mean"], found["stdev"], found["median"]) == (250, 150, 250)
    jobs_count = only(
        jobs(waited(1, 100), waited(2, 400, age_s=6 * 3600)), ClassRules(effective_n="jobs")
    )
    assert jobs_count["w_cl95upp"] == pytest.approx(
        200 + found["w_stdev"] * scipy_stats.t.ppf(0.95, 1)
    )


def test_old_jobs_alone_give_the_largest_limit() -> None:
    old = {"age_s": 95 * 3600}
    assert only(jobs(waited(1, 10, **old), waited(2, 20, **old)))["w_cl95upp"] == 999_999


@pytest.mark.parametrize("waits", [[7.3], [7.3, 7.3, 7.3], [0, 0]])
def test_equal_waits_have_no_limit(waits: list[float]) -> None:
    rows = [waited(n, wait, age_s=1234 * n) for n, wait in enumerate(waits)]
    found = only(jobs(*rows))
    assert (found["w_cl95upp"], found["cl95upp"], found["w_stdev"]) == (None, None, 0)
    assert found["reason"] == ("degenerate" if waits[0] else "no_wait")


def test_without_jobs_the_queue_does_not_appear() -> None:
    assert wait_stats(jobs(queued(1, 100)), at=NOW).is_empty()
    assert wait_stats(jobs(), at=NOW).is_empty()
    assert wait_stats(jobs(waited(1, 5)), at=[]).columns == wait_stats(jobs(), at=NOW).columns
    assert weighted_upper_limit([], []).w_mean is None


def test_a_mean_of_zero_has_no_long_queue() -> None:
    found = only(jobs(waited(1, 0), queued(2, 100)))
    assert (found["long_q_n"], found["long_q_mean"], found["reason"]) == (None, None, "no_wait")


@pytest.mark.parametrize(
    ("changes", "in_page", "in_production"),
    [
        ({}, 1, 1),
        ({"processingtype": "run"}, 0, 0),
        ({"processingtype": "run", "produsername": "gangarbt"}, 1, 1),
        ({"prodsourcelabel": "managed"}, 0, 0),
        ({"gshare": "Express Analysis"}, 0, 0),
        ({"computingsite": None}, 0, 0),
        ({"starttime": None}, 0, 0),
        ({"activatedtime": None, "creationtime": None}, 0, 0),
        ({"starttime": ago(hours=2)}, 0, 0),  # before it was activated
        ({"starttime": NOW + timedelta(seconds=1)}, 0, 0),  # not yet
        ({"modificationtime": ago(days=4)}, 0, 0),
        ({"modificationtime": ago(days=4) + timedelta(seconds=1), "starttime": NOW}, 1, 1),
        ({"jobstatus": "failed"}, 0, 1),
        ({"jobstatus": "running"}, 0, 1),
        ({"jobstatus": "starting"}, 0, 0),
        ({"jobstatus": "starting", "table": "jobsArchived4"}, 0, 1),
    ],
)
def test_which_jobs_are_the_sample(
    changes: dict[str, Any], in_page: int, in_production: int
) -> None:
    table = jobs(waited(1, 1800, age_s=600, **changes))
    assert (counted(table), counted(table, PRODUCTION)) == (in_page, in_production)


def test_a_job_is_finished_from_its_last_change_on() -> None:
    table = jobs(waited(1, 60, age_s=3600, modificationtime=ago(minutes=10)))
    times = [ago(minutes=11), ago(minutes=10), ago(minutes=10) + timedelta(days=4)]
    assert wait_stats(table, at=times)["snapshot"].to_list() == [1]
    assert wait_stats(table, QUEUES, at=times, rules=PRODUCTION)["snapshot"].to_list() == [0, 1]


def test_the_status_log_tells_first_times() -> None:
    log = [(1, "activated", 500), (1, "activated", 300), (1, "running", 100), (1, "running", 200)]
    entries = pl.DataFrame(
        [(n, status, ago(seconds=before)) for n, status, before in log], schema=LOG, orient="row"
    )
    table = jobs(waited(1, 60), waited(2, 60))  # job 2 is not in the log
    found = only(table, status_log=entries)
    assert (found["n"], found["mean"], found["wait_basis"]) == (1, 300, "status_log")
    recorded = only(table, ClassRules(wait_time="recorded"), status_log=entries)
    assert (recorded["n"], recorded["wait_basis"]) == (2, "activatedtime")


def test_the_output_says_what_waits_were_read_from() -> None:
    found = only(jobs(waited(1, 60), waited(2, 60, activatedtime=None, creationtime=ago(hours=1))))
    assert (found["mean"], found["wait_basis"]) == (1830, "activatedtime+creationtime")


@pytest.mark.parametrize(
    ("changes", "in_page", "in_production"),
    [
        ({}, 1, 1),
        ({"jobstatus": "starting"}, 1, 0),
        ({"jobstatus": "sent"}, 0, 1),
        ({"jobstatus": "pending"}, 0, 0),
        ({"jobstatus": "running", "starttime": ago(seconds=5)}, 0, 0),
        ({"processingtype": "run", "produsername": "gangarbt"}, 0, 0),
        ({"creationtime": ago(seconds=100)}, 0, 0),  # exactly the mean
        ({"creationtime": ago(seconds=100.000001)}, 1, 1),
    ],
)
def test_which_jobs_queue_for_long(
    changes: dict[str, Any], in_page: int, in_production: int
) -> None:
    table = jobs(waited(1, 100), queued(2, 1000, **changes))
    found = only(table), only(table, PRODUCTION)
    assert [row["long_q_n"] for row in found] == [in_page, in_production]


def test_starting_jobs_of_push_queues_queue() -> None:
    rows = waited(1, 100), queued(2, 1000, jobstatus="starting")
    table = jobs(*rows).with_columns(computingsite=pl.lit("PUSH"))
    found = only(table, PRODUCTION)
    assert (found["long_q_n"], found["long_q_mean"]) == (1, 1000)


def test_where_nobody_queues_for_long_the_mean_stands_in() -> None:
    table = jobs(waited(1, 100), queued(2, 50))
    assert (only(table)["long_q_n"], only(table)["long_q_mean"]) == (0, 100)
    assert only(table, ClassRules(empty_long_queue="none"))["long_q_mean"] is None


def test_an_archive_tells_who_queued_then() -> None:
    row = waited(2, 7200, age_s=3600, computingsite="Q")
    table = jobs(waited(1, 10, age_s=86_400, modificationtime=ago(hours=20)), row)
    found = wait_stats(table, at=[ago(hours=4), ago(hours=3), ago(hours=2), ago(hours=1)])
    assert found["long_q_n"].to_list() == [0, 0, 1, 0]
    assert found["long_q_mean"].to_list() == [10, 10, 3600, 10]
    log = pl.DataFrame(
        [
            (1, "activated", ago(hours=25)),
            (1, "running", ago(hours=24)),
            (2, "activated", ago(hours=3)),
            (2, "sent", ago(hours=2.5)),
            (2, "starting", ago(hours=1.5)),
            (2, "running", ago(hours=1)),
        ],
        schema=LOG,
        orient="row",
    )
    at = [ago(hours=hours) for hours in (2.75, 2, 1.25, 0.5)]
    page = wait_stats(table, QUEUES, status_log=log, at=at)  # the mean is an hour
    assert page["long_q_n"].to_list() == [0, 0, 1, 0]
    short = ClassRules(wait_time="recorded")
    assert wait_stats(table, QUEUES, status_log=log, at=at, rules=short)["long_q_n"].to_list() == [
        1,
        0,
        1,
        0,
    ]
    deployed = ClassRules("production", wait_time="recorded")
    seen = wait_stats(table, QUEUES, status_log=log, at=at, rules=deployed)
    assert seen["long_q_n"].to_list()[:3] == [1, 1, 0]


def test_bad_input_is_refused() -> None:
    with pytest.raises(SchemaError, match=r"jobs\.jobstatus"):
        wait_stats(jobs().drop("jobstatus"), at=NOW)
    with pytest.raises(ConfigError, match="zone"):
        wait_stats(jobs(), at=datetime(2026, 1, 1, tzinfo=UTC))
    with pytest.raises(DataError, match="share a number"):
        Instants.of(pl.DataFrame({"snapshot": [1, 1], "at": [NOW, NOW]}))
    with pytest.raises(DataError, match="missing"):
        Instants.of(pl.DataFrame({"at": [NOW]}))
    with pytest.raises(ConfigError, match="half_life_hours"):
        weighted_upper_limit([1], [1], half_life_hours=0)
    with pytest.raises(DataError, match="2 values and 1 ages"):
        weighted_upper_limit([1, 2], [1])
    for unknown in (math.nan, math.inf, None):
        with pytest.raises(DataError, match="values and ages: NaN, null or infinite ones"):
            weighted_upper_limit([1, unknown], [1, 2])  # type: ignore[list-item]
    with pytest.raises(ConfigError, match="hi_test"):
        ClassRules(hi_test="both")
    with pytest.raises(DataError, match="one engine"):
        wait_stats(_relation(), status_log=pl.DataFrame(schema=LOG), at=NOW)


def _relation() -> Any:
    import duckdb

    return duckdb.connect().from_arrow(jobs(job(1)).to_arrow())


def test_jobs_without_an_entry_in_the_log_are_told_by_their_times() -> None:
    times = {"activatedtime": ago(hours=9), "starttime": ago(minutes=5), "modificationtime": NOW}
    late = [waited(1, 60, age_s=600, modificationtime=ago(minutes=8))]
    late += [job(n, creationtime=ago(hours=9), **times) for n in (2, 3)]
    entries = [(3, "assigned", ago(hours=9)), (3, "running", ago(hours=8))]  # 3 never queued
    log = pl.DataFrame(entries, schema=LOG, orient="row")
    recorded = ClassRules(wait_time="recorded")
    at = ago(minutes=6)
    for logged, waiting in ((None, 2), (log, 1)):
        found = wait_stats(jobs(*late), status_log=logged, at=at, rules=recorded)
        assert found.select("n", "long_q_n").rows() == [(1, waiting)]
