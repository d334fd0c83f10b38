"""Records from batch logs: users as tasks, runs cut at the request."""

from __future__ import annotations

import polars as pl
import pytest

from brokerlab.errors import ConfigError, InsufficientDataError
from brokerlab.estimators.sources import of_log


def log(**changed: object) -> pl.DataFrame:
    columns = {
        "submit_s": [0.0, 10.0, 20.0, 30.0],
        "wait_s": [5.0, 5.0, 5.0, 5.0],
        "run_s": [50.0, 100.0, 120.0, 0.0],
        "requested_s": [100.0, 100.0, 100.0, 100.0],
        "hosts_requested": [1, None, 0, 4],
        "user": [7, 7, 8, 8],
    }
    return pl.DataFrame(columns | changed)


def test_a_run_is_cut_at_its_request_and_known_to_be_longer():
    found = of_log(log())
    records = found.records
    assert records["used"].to_list() == [50, 100, 100]
    assert records["censored"].to_list() == [False, True, True]
    assert records["ended_s"].to_list() == [55, 115, 145]
    assert records["jeditaskid"].to_list() == [7, 7, 8]
    assert records["cores"].to_list() == [1, 1, 1]
    assert records["requested"].to_list() == records["sent"].to_list() == [100] * 3
    assert found.counts.rows() == [("kept", 3), ("did not run", 1)]


def test_a_decision_may_be_at_the_start():
    assert of_log(log(), at="start").records["decided_s"].to_list() == [5, 15, 25]


def test_a_wait_that_nobody_knows_leaves_a_job_out_unless_one_is_given():
    unknown = log(wait_s=[None, 5.0, 5.0, 5.0])
    assert ("no wait", 1) in of_log(unknown).counts.rows()
    assert of_log(unknown, unknown_wait_s=0).records["ended_s"].to_list() == [50, 115, 145]
    with pytest.raises(ConfigError, match="unknown_wait_s = -1"):
        of_log(unknown, unknown_wait_s=-1)


def test_a_log_without_users_says_nothing():
    with pytest.raises(InsufficientDataError, match="no user: 4"):
        of_log(log(user=[None] * 4))
