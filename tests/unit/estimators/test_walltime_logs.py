"""Batch logs of a folder: what is read of them, strata by hand, and the worst day of a user."""

from __future__ import annotations

import gzip

import numpy as np
import polars as pl
import pytest

from brokerlab.errors import ConfigError
from brokerlab.estimators.deployed import log_rules
from brokerlab.estimators.offered import WORST
from brokerlab.estimators.sources import of_log
from brokerlab.estimators.walltime.logs import (
    BOUND,
    EXPERIENCE,
    MANY_JOBS,
    MEDIAN,
    WORST_USER,
    Log,
    LogComparison,
    _strata,
    compare_logs,
    compare_predictions,
    predict_log,
    read_logs,
)
from tests.unit.estimators.test_like_jobs import drawn, log


def swf_lines(n, *, wait=100, requested=1000):
    """Jobs of two users, one after the other."""
    rows = [
        f"{i + 1} {1000 * i} {wait} {100 + i} 1 -1 -1 1 {requested} -1 1 {i % 2 + 1} -1 -1 -1 -1 -1 -1"
        for i in range(n)
    ]
    return "\n".join(rows) + "\n"


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "swf-logs").mkdir()
    for name, text in (
        ("plain", swf_lines(20)),
        ("no_waits", swf_lines(20, wait=-1)),
        ("no_requests", swf_lines(20, requested=-1)),
    ):
        with gzip.open(tmp_path / "swf-logs" / f"{name}.swf.gz", "wt") as file:
            file.write(text)
    return tmp_path


def test_logs_are_read_or_left_out_with_a_reason(folder):
    logs, left_out = read_logs(folder, max_jobs=15)
    assert list(logs) == ["no_waits", "plain"]
    assert (logs["plain"].knows_waits, logs["no_waits"].knows_waits) == (True, False)
    assert (logs["plain"].jobs.height, logs["plain"].n_read) == (15, 20)
    started = logs["no_waits"].jobs
    assert started["started_s"].to_list() == started["decided_s"].to_list()
    assert list(left_out) == ["no_requests"]
    assert "none of 15 rows can be used; left out: no request: 15" in left_out["no_requests"]


def log_of(jobs):
    return Log(name="toy", jobs=of_log(jobs).records, n_read=jobs.height, knows_waits=True)


def test_scores_by_hand():
    records = of_log(log([1, 1, 100, 300])).records
    scored = compare_predictions(records, {"rule": np.full(4, 200.0)}, peers=["rule"], n_boot=2)
    assert scored.select(pl.exclude("^.*_lo|.*_hi$")).row(0, named=True) == {
        "method": "rule",
        "jobs": 2,
        "answered": 1.0,
        "mae_s": 100.0,
        "median_s": 100.0,
        "accuracy": pytest.approx((1 / 2 + 2 / 3) / 2),
        "under": 0.5,
        "over_allocation": 0.25,
        "best_peer": "rule",
        "ratio": 1.0,
    }


def test_a_refused_bound_is_not_scored():
    records = of_log(log([1, 1, 100, 300])).records
    said = {"rule": np.full(4, 200.0), "bound": np.array([np.inf, np.inf, np.inf, 200.0])}
    table = compare_predictions(records, said, peers=["rule"], n_boot=2)
    bound = table.filter(method="bound").row(0, named=True)
    assert (bound["jobs"], bound["answered"], bound["under"]) == (2, 0.5, 1.0)
    assert (bound["mae_s"], bound["ratio"]) == (100.0, 1.0)  # on the one job that has a bound
    none = compare_predictions(
        records, said | {"bound": np.full(4, np.inf)}, peers=["rule"], n_boot=2
    )
    assert none.filter(method="bound")["under"].to_list() == [None]


def test_a_peer_that_says_nothing_is_not_the_best():
    records = of_log(log([1, 1, 100, 300])).records
    said = {"silent": np.full(4, np.inf), "rule": np.full(4, 200.0)}
    table = compare_predictions(records, said, peers=["silent", "rule"], n_boot=2)
    assert table["best_peer"].to_list() == ["rule", "rule"]


def test_a_comparison_is_paired():
    records = of_log(drawn(600)).records
    table = compare_predictions(records, predict_log(records), n_boot=200)
    best = table.filter(method=table["best_peer"][0])
    assert best.select("ratio", "ratio_lo", "ratio_hi").row(0) == (1.0, 1.0, 1.0)
    assert (table["ratio_lo"] <= table["ratio"] + 1e-9).all()
    assert table["method"].to_list() == [*(each.name for each in log_rules()), MEDIAN, BOUND]


def test_peers_are_named():
    records = of_log(log([1, 2])).records
    for peers, message in ((["request"], "requested"), ([], "at least one peer")):
        with pytest.raises(ConfigError, match=message):
            compare_predictions(records, predict_log(records), peers=peers)


def test_a_log_is_summed_up_by_what_is_known_of_users():
    compared = compare_logs({"toy": log_of(drawn(400))}, n_boot=50, seed=1)
    by_experience = compared.strata.filter(pl.col("user").is_null())
    assert by_experience["jobs"].sum() == 200
    assert set(by_experience["stratum"]) <= set(EXPERIENCE)
    bound = compared.row("toy", BOUND)
    answered = by_experience["answered"]
    assert answered.sum() == round(bound["answered"] * 200)
    missed = (by_experience["under"] * answered).sum() / answered.sum()
    assert bound["under"] == pytest.approx(missed)
    best = compared.row("toy", bound["best_peer"])
    assert best["ratio"] == 1.0
    ours = compared.each(MEDIAN).row(0, named=True)
    assert ours["ratio"] == pytest.approx(ours["mae_s"] / best["mae_s"])
    assert (bound["users"], bound["jobs"]) == (5, 200)
    assert compared.guesses["ratio"].is_sorted()
    assert compared.guesses.filter(role="proposed")["method"].to_list() == [MEDIAN]
    assert BOUND not in compared.guesses["method"]


def test_the_user_and_the_day_with_most_misses_are_found():
    """User 9 runs 10 s for long, then 900 s for one day: the bound learnt from the past is missed."""
    n = 600
    run = np.full(n, 10.0)
    run[500:520] = 900.0
    submit = np.arange(n) * 1000.0
    submit[500:] = 86400.0 * 7 + np.arange(n - 500) * 1.0
    jobs = pl.DataFrame(
        {
            "submit_s": submit,
            "wait_s": 0.0,
            "run_s": run,
            "requested_s": 1000.0,
            "hosts_requested": 1,
            "user": [9] * n,
        }
    )
    compared = compare_logs({"toy": log_of(jobs)}, n_boot=20, seed=1)
    day = compared.campaigns.row(0, named=True)
    assert (day["user"], day["jobs"], day["largest"]) == (9, 100, 20)
    assert day["missed"] >= day["largest"]
    worst = compared.strata.filter(stratum=WORST_USER).row(0, named=True)
    assert (worst["user"], worst["jobs"]) == (9, 300)
    assert worst["under"] == pytest.approx(day["missed"] / 300)


def test_a_refused_bound_is_kept_by_nobody():
    """Of the first jobs of a user every bound is refused: no share of misses, rather than none of them missed."""
    strata = compare_logs({"toy": log_of(drawn(400))}, n_boot=2).strata
    refused = strata.filter(answered=0)
    assert refused.height == refused["under"].null_count()
    scored = pl.DataFrame(
        {
            "user": [1, 1, 1, 2],
            "earlier": [0, 1, 60, 70],
            "error": [1.0, 1.0, 2.0, None],
            "best_error": [2.0, 2.0, 2.0, None],
            "missed": [None, None, True, False],
        }
    )
    first, late = _strata(scored).select("jobs", "answered", "under", "ratio").rows()
    assert first == (2, 0, None, 0.5)
    assert late == (2, 2, 0.5, 1.0)


def test_the_worst_user_is_the_one_whose_bounds_are_missed_most():
    """User 1 missed every second bound, most of user 2's were refused: these do not count as kept."""
    n = MANY_JOBS
    scored = pl.DataFrame(
        {
            "user": [1] * n + [2] * 3 * n,
            "earlier": [100] * 4 * n,
            "error": 1.0,
            "best_error": 1.0,
            "missed": [True, False] * (n // 2) + [True] * n + [None] * 2 * n,
        }
    )
    worst = _strata(scored).filter(stratum=WORST_USER).row(0, named=True)
    assert (worst["user"], worst["jobs"], worst["answered"], worst["under"]) == (2, 3 * n, n, 1.0)


def offer(ratio, *, answered, under, jobs=1000):
    rows = [
        {"log": "a", "method": MEDIAN, "jobs": jobs, "answered": 1.0, "under": 0.5, "ratio": ratio},
        {"log": "a", "method": BOUND, "jobs": jobs, "answered": answered, "under": under, "ratio": None},
    ]  # fmt: skip
    methods = pl.DataFrame(rows, schema_overrides={"under": pl.Float64, "ratio": pl.Float64})
    nothing = pl.DataFrame()
    return LogComparison(methods=methods, strata=nothing, campaigns=nothing).offer


@pytest.mark.parametrize(
    ("ratio", "answered", "under", "offered", "short"),
    [
        (1.0, 1.0, 0.05, True, []),
        (WORST, 1.0, 0.05, True, []),
        (1.06, 1.0, 0.05, False, []),
        (1.0, 1.0, 0.08, False, ["a"]),
        (1.0, 0.02, 0.08, True, []),  # 20 jobs: chance allows it
        (1.0, 0.0, None, True, []),  # nothing is promised
        (None, 1.0, 0.05, False, []),  # it cannot be compared
    ],
)
def test_like_jobs_are_offered_by_the_rule_of_all(ratio, answered, under, offered, short):
    row = offer(ratio, answered=answered, under=under)
    assert (row["offered"], row["short"]) == (offered, short)


def test_a_user_of_few_jobs_is_not_singled_out():
    compared = compare_logs({"toy": log_of(drawn(150))}, n_boot=20)
    assert compared.strata["user"].is_null().all()
