"""Records of batch logs and of workflow traces."""

from __future__ import annotations

import polars as pl
import pytest

from brokerlab.errors import ConfigError, DataError, InsufficientDataError
from brokerlab.estimators.sources import of_log, of_trace, read_runs


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


RUNS = pl.DataFrame(
    {
        "process": ["A:FASTQC", "B", "A:FASTQC", "B"],
        "submit": [1000, 2000, 3000, 4000],
        "complete": [9000, None, 8000, 9000],
        "realtime": [4000, 5000, 2000, 0],
        "cpus": [2, None, 1, 1],
        "peak_rss": [2**20, 2**21, 0, 2**20],
        "rchar": [2**20, 0, 5, 5],
        "memory": [2**22, None, 2**22, 2**22],
    }
)


def test_a_run_becomes_a_record():
    source = of_trace(RUNS, "memory")
    rows = source.records.select(
        *("pandaid", "kind", "cores", "input_mb", "requested", "decided_s", "ended_s", "used", "wall_s")
    ).rows()  # fmt: skip
    assert rows == [
        (0, "FASTQC", 2, 1.0, 4.0, 1.0, 9.0, 1.0, 4.0),
        (1, "B", 1, None, None, 2.0, 7.0, 2.0, 5.0),
    ]
    assert source.records["jeditaskid"].n_unique() == 2
    assert dict(source.counts.rows()) == {
        "kept": 2,
        "no memory recorded": 1,
        "no duration recorded": 1,
    }


def test_a_trace_holds_no_request_for_time():
    records = of_trace(RUNS, "walltime").records
    assert records["used"].to_list() == [4.0, 5.0, 2.0]
    assert records["requested"].is_null().all()


def test_what_is_no_trace_is_refused(tmp_path):
    with pytest.raises(DataError, match="a trace is a CSV file with the columns process"):
        read_runs(tmp_path / "none.csv")
    with pytest.raises(ConfigError, match="memory"):
        of_trace(RUNS, "memry")
