"""Hi, mid and lo queues, and what queues started: the page's table, both rule sets, boundaries."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import polars as pl
import pytest

from brokerlab.errors import ConfigError, SchemaError
from brokerlab.lifecycle.classification import ClassRules, SiteClasses, queue_activity, site_classes
from tests.unit.lifecycle.classification.toys import NOW, ago, job, jobs

PRODUCTION = ClassRules("production")
HOUR = 3600.0


def rated(
    queues: dict[str, tuple[float | None, int, float | None]],
    *,
    rules: ClassRules | None = None,
    kinds: dict[str, str | None] | None = None,
    idle: tuple[str, ...] = (),
    **columns: Any,
) -> SiteClasses:
    """Rate queues given as limit, jobs that queue for long, their mean."""
    names = list(queues)
    schema = {"w_cl95upp": pl.Float64, "long_q_n": pl.Int64, "long_q_mean": pl.Float64}
    stats = pl.DataFrame(list(queues.values()), schema=schema, orient="row")
    stats = stats.with_columns(
        pl.Series("computingsite", names, dtype=pl.String),
        **{k: pl.Series(v) for k, v in columns.items()},
    )
    types = [(kinds or {}).get(name, "GRID") for name in names]
    known = pl.DataFrame(
        {"panda_queue": names, "resource_type": types},
        schema={"panda_queue": pl.String, "resource_type": pl.String},
    )
    busy = [name for name in names if name not in idle]
    activity = pl.DataFrame(
        {"computingsite": busy, "strr_1d": 1.0, "analysis_starts_1d": 1},
        schema={"computingsite": pl.String, "strr_1d": pl.Float64, "analysis_starts_1d": pl.Int64},
    )
    return site_classes(stats, known, activity, rules=rules)


def classes_of(*args: Any, **named: Any) -> dict[str, int | None]:
    found = rated(*args, **named).classes
    return dict(found.select("computingsite", "class").iter_rows())


@pytest.mark.parametrize(
    ("queue", "page", "production"),
    [
        ((HOUR - 1, 0, 1.0), 1, 1),
        ((HOUR, 0, 1.0), 0, 1),  # the page's test is strict
        ((1.0, 2, HOUR - 1), 1, 1),
        ((1.0, 3, HOUR - 1), 0, 1),
        ((1.0, 3, HOUR + 1), 0, 1),  # limit short and not more than three queue
        ((1.0, 4, HOUR + 1), 0, 0),
        ((1.0, 4, HOUR), 0, 1),
        ((3 * HOUR, 0, 1.0), 0, 0),
    ],
)
def test_one_queue_against_the_hours(
    queue: tuple[float, int, float], page: int, production: int
) -> None:
    """Other queues hold the percentiles below the constants."""
    quick = {f"F{n}": (1.0, 0, 1.0) for n in range(9)}
    assert classes_of({**quick, "Q": queue})["Q"] == page
    assert classes_of({**quick, "Q": queue}, rules=PRODUCTION)["Q"] == production


def test_lo_queues_rank_above_the_upper_percentile_and_three_hours() -> None:
    quick = {f"F{n}": (1.0, 0, 1.0) for n in range(9)}
    assert classes_of({**quick, "Q": (3 * HOUR + 1, 0, 1.0)})["Q"] == -1
    assert classes_of({**quick, "Q": (1.0, 5, 3 * HOUR + 1)})["Q"] == -1


def test_ranks_hours_and_the_length_of_a_queue_are_numbers_of_the_rules() -> None:
    queues = {"A": (2 * HOUR, 2, 1.0), "B": (4 * HOUR, 0, 1.0), "C": (8 * HOUR, 0, 1.0)}
    assert classes_of(queues) == {"A": 1, "B": 0, "C": -1}  # percentiles 3.3 and 5.4 h
    assert classes_of(queues, rules=ClassRules(short_queue_jobs=2))["A"] == 0
    assert classes_of(queues, rules=ClassRules(percentile_low=0)) == {"A": 0, "B": 0, "C": -1}
    assert classes_of(queues, rules=ClassRules(hi_limit_hours=5))["B"] == 1
    assert classes_of(queues, rules=ClassRules(lo_limit_hours=8))["C"] == 0
    either = ClassRules("production", percentile_low=0.5, hi_limit_hours=0)
    assert classes_of(queues, rules=either) == {"A": 1, "B": 1, "C": -1}
    with pytest.raises(
        ConfigError, match=r"percentile_low=33: allowed is .* at least 0 and at most 1"
    ):
        ClassRules(percentile_low=33)


def test_percentiles_interpolate_between_queues() -> None:
    limits = {f"Q{n}": (n * 10_000.0, 0, 1.0) for n in range(1, 6)}
    page = rated(limits).percentiles.row(0, named=True)
    assert page["n_ranked"] == 5
    assert page["p33"] == pytest.approx(10_000 + 4 * 0.33 * 10_000)
    assert page["p67"] == pytest.approx(10_000 + 4 * 0.67 * 10_000)
    code = rated(limits, rules=PRODUCTION).percentiles.row(0, named=True)
    assert code["p33"] == pytest.approx(10_000 + 4 * 0.333 * 10_000)
    assert classes_of(limits) == {"Q1": 1, "Q2": 1, "Q3": 0, "Q4": -1, "Q5": -1}


def test_the_page_takes_limits_of_all_queues_and_the_code_rankings_of_the_grid() -> None:
    queues = {"A": (20_000.0, 9, 50_000.0), "B": (30_000.0, 0, 1.0), "H": (90_000.0, 0, 1.0)}
    page, code = (
        rated(queues, rules=r, kinds={"H": "hpc"}).percentiles for r in (None, PRODUCTION)
    )
    assert page["n_ranked"].to_list() == [3]
    assert page["p33"][0] == pytest.approx(20_000 + 0.66 * 10_000)
    assert code["n_ranked"].to_list() == [2]
    assert code["p33"][0] == pytest.approx(30_000 + 0.333 * 20_000)


def test_without_a_grid_queue_the_code_rates_every_queue_mid() -> None:
    queues = {"A": (1.0, 0, 1.0), "B": (1e5, 0, 1.0)}
    kinds = {"A": "hpc", "B": "cloud"}
    assert classes_of(queues, rules=PRODUCTION, kinds=kinds) == {"A": 0, "B": 0}
    constants = ClassRules("production", empty_percentile="constants")
    assert classes_of(queues, rules=constants, kinds=kinds) == {"A": 1, "B": -1}


def test_a_queue_that_started_nothing_is_not_hi() -> None:
    queues = {"A": (1.0, 0, 1.0), "B": (1e5, 0, 1.0)}
    for rules in (ClassRules(), PRODUCTION):
        assert classes_of(queues, rules=rules, idle=("A", "B")) == {"A": 0, "B": -1}


def test_who_is_not_classified_and_why() -> None:
    queues = {
        "A": (1.0, 0, 1.0),
        "DEGENERATE": (None, 0, 1.0),
        "NO_WAIT": (1.0, 0, None),
        "STALE": (1e6, 0, 1.0),
        "STRANGE": (1e6, 0, 1.0),
        "LIMIT": (1.0, 0, 1.0),
    }
    ages = [10.0, 10.0, 10.0, 120.5, 10.0, 120.0]
    found = rated(queues, kinds={"STRANGE": None}, age_minutes=ages)
    assert found.percentiles["n_ranked"].to_list() == [2]
    told = {
        name: (kind, why)
        for name, kind, why in found.classes.select(
            "computingsite", "class_name", "reason"
        ).iter_rows()
    }
    assert told == {
        "A": ("hi", None),
        "DEGENERATE": ("unknown", "no_statistics"),
        "NO_WAIT": ("unknown", "no_statistics"),
        "STALE": ("unknown", "stale"),
        "STRANGE": ("unknown", "no_resource_type"),
        "LIMIT": ("hi", None),
    }


def test_no_queue_no_class() -> None:
    assert rated({}).classes.is_empty()


def test_the_page_needs_to_know_the_analysis_jobs() -> None:
    stats = pl.DataFrame(
        {"computingsite": ["A"], "w_cl95upp": [1.0], "long_q_n": [0], "long_q_mean": [1.0]}
    )
    queues = pl.DataFrame({"panda_queue": ["A"], "resource_type": ["GRID"]})
    unlabelled = jobs(job(1, computingsite="A", prodsourcelabel=None, starttime=ago(hours=2)))
    activity = queue_activity(unlabelled, at=NOW)
    with pytest.raises(SchemaError, match="analysis_starts_1d"):
        site_classes(stats, queues, activity)
    assert site_classes(stats, queues, activity, rules=PRODUCTION).classes["class"].to_list() == [1]


AT = datetime(2026, 3, 10, 12, 3, 20)


def rates(*starts: tuple[datetime, int | None, str], **more: Any) -> dict[str, Any]:
    rows = [
        job(n, starttime=start, corecount=cores, jobstatus=status)
        for n, (start, cores, status) in enumerate(starts)
    ]
    found = queue_activity(jobs(*rows), at=AT, **more)
    return found.row(0, named=True) if found.height else {}


def test_the_rate_counts_cores_per_hour_of_windows_on_ten_minutes() -> None:
    """At 12:03:20 the day's window is [12:00 yesterday, 11:50) and the short one [06:00, 11:50)."""
    day = AT.replace(minute=0, second=0) - timedelta(days=1)
    found = rates((day, 8, "finished"), (AT.replace(minute=0, second=0, hour=6), 4, "running"))
    assert found["strr_1d"] == pytest.approx(12 / (23 + 5 / 6))
    assert found["strr_6h"] == pytest.approx(4 / (5 + 5 / 6))
    early = rates(
        (day - timedelta(seconds=1), 8, "finished"),
        (AT.replace(minute=50, second=0, hour=11), 4, "running"),
    )
    assert not early or early["strr_1d"] == 0


@pytest.mark.parametrize(
    ("cores", "status", "rate"),
    [(None, "finished", 0), (0, "finished", 0), (2, "failed", 0), (2, "closed", 0), (2, "merging", 0)]
    + [(2, status, 2) for status in ("running", "holding", "transferring", "finished", "cancelled")],
)  # fmt: skip
def test_which_jobs_count_for_the_rate(cores: int | None, status: str, rate: int) -> None:
    found = rates((ago(hours=2), cores, status))
    assert found["strr_1d"] * (23 + 5 / 6) == pytest.approx(rate)
    assert found["analysis_starts_1d"] == 1


def test_a_failed_job_counts_until_it_failed() -> None:
    row = job(
        1, starttime=ago(hours=3), jobstatus="failed", modificationtime=ago(hours=1), corecount=2
    )
    found = queue_activity(jobs(row), at=[ago(hours=2), ago(hours=1), NOW])
    assert [rate > 0 for rate in found["strr_1d"]] == [True, False, False]


def test_a_start_counts_for_24_hours_from_its_instant() -> None:
    row = job(1, starttime=ago(hours=24), corecount=0)
    at = [ago(hours=24, seconds=1), ago(hours=24), ago(seconds=1), NOW]
    assert queue_activity(jobs(row), at=at)["snapshot"].to_list() == [1, 2]


def test_other_organisations_are_left_out() -> None:
    row = job(1, starttime=ago(hours=2), vo="cms")
    assert queue_activity(jobs(row), at=NOW, vo="atlas").is_empty()
    assert queue_activity(jobs(row), at=NOW).height == 1


@pytest.mark.parametrize("descending", [False, True])
def test_of_a_queue_with_a_history_the_latest_type_counts(descending: bool) -> None:
    stats = pl.DataFrame(
        {"computingsite": ["Q"], "w_cl95upp": [1.0], "long_q_n": [0], "long_q_mean": [1.0]}
    )
    queues = pl.DataFrame(
        {"panda_queue": "Q", "resource_type": ["hpc", "GRID"], "ts": [ago(hours=9), ago(hours=1)]}
    )
    known = queues.sort("ts", descending=descending)
    assert site_classes(stats, known).classes["resource_type"].to_list() == ["GRID"]
