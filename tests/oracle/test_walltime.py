"""The printed figures of simple rules on the real KTH log, and what our predictor makes of it."""

from __future__ import annotations

import os
from pathlib import Path

import polars as pl
import pytest

from benchmarks.log_rules import all_log_rules
from brokerlab.estimators.sources import of_log
from brokerlab.estimators.walltime.logs import BOUND, MEDIAN, compare_predictions, predict_log
from brokerlab.workflows import swf

LOG = (
    Path(__file__).parents[2]
    / os.environ.get("BROKERLAB_DATA", "../shared/data")
    / "swf-logs/kth_sp2.swf.gz"
)

pytestmark = pytest.mark.real_data

# sizing.md, section 8: MAE, median absolute error [s], accuracy, under, over-allocation
PRINTED = {
    "requested": "5157 | 808 | 49.6 % | 0.0 % | 0.53",
    "last two": "5568 | 386 | 55.5 % | 48.1 % | 0.16",
    "last one": "5683 | 266 | 55.9 % | 50.0 % | 0.15",
    "mean of the user": "6249 | 910 | 47.6 % | 41.1 % | 0.15",
    "largest of last 10": "4820 | 434 | 56.1 % | 14.6 % | 0.34",
    "request x p95 of last 20": "4570 | 381 | 56.5 % | 11.3 % | 0.46",
    "p95 of last 200": "4855 | 599 | 52.3 % | 10.2 % | 0.38",
    "last two x conformal 90 %": "5083 | 587 | 49.2 % | 9.7 % | 0.37",
    "last two x conformal 95 %": "5184 | 638 | 48.4 % | 4.8 % | 0.44",
}


@pytest.fixture(scope="module")
def table():
    if not LOG.exists():
        pytest.skip("the log 'kth_sp2' is not here; set BROKERLAB_DATA")
    return compared(LOG)


def compared(log):
    records = of_log(swf.read(log).jobs).records
    rules = {each.name: each.replay(records, levels=(0.95,)).point for each in all_log_rules()}
    return compare_predictions(records, predict_log(records) | rules, peers=list(PRINTED))


@pytest.mark.parametrize("method", PRINTED)
def test_the_printed_figures(table, method):
    row = table.row(by_predicate=pl.col("method") == method, named=True)
    assert PRINTED[method] == (
        f"{row['mae_s']:.0f} | {row['median_s']:.0f} | {100 * row['accuracy']:.1f} %"
        f" | {100 * row['under']:.1f} % | {row['over_allocation']:.2f}"
    )


def test_the_jobs_scored(table):
    assert table["jobs"].unique().to_list() == [28_468 // 2]


def test_the_median_of_like_jobs_errs_least(table):
    ours = table.row(by_predicate=pl.col("method") == MEDIAN, named=True)
    assert ours["best_peer"] == "request x p95 of last 20"
    assert ours["mae_s"] < 4000  # the best rule of the chapter: 4570
    assert ours["ratio_hi"] < 1


def test_the_bound_keeps_its_level_and_errs_less_than_the_conformal_rule(table):
    """It aims at half of what may miss, since jobs that wait together miss together."""
    ours = table.row(by_predicate=pl.col("method") == BOUND, named=True)
    peer = table.row(by_predicate=pl.col("method") == "last two x conformal 95 %", named=True)
    assert 0.01 <= ours["under"] <= 0.05
    assert ours["mae_s"] < peer["mae_s"]


def test_the_bound_holds_where_jobs_run_for_days_and_come_in_campaigns():
    """Where misses count only as jobs end, and the level stays as it is, 8 % miss."""
    log = LOG.parent / "wagap-2013.swf.gz"
    if not log.exists():
        pytest.skip("the log 'wagap-2013' is not here; set BROKERLAB_DATA")
    ours = compared(log).row(by_predicate=pl.col("method") == BOUND, named=True)
    assert 0.01 <= ours["under"] <= 0.05


def test_the_median_of_like_jobs_errs_less_than_the_best_rule_on_another_system():
    """Users of MetaCentrum ask for up to 62 days and run seconds."""
    log = LOG.parent / "wagap-2013.swf.gz"
    if not log.exists():
        pytest.skip("the log 'wagap-2013' is not here; set BROKERLAB_DATA")
    ours = compared(log).row(by_predicate=pl.col("method") == MEDIAN, named=True)
    assert ours["ratio"] < 1
