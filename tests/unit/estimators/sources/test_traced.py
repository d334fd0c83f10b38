"""Records from workflow traces: processes as tasks, requests, what is left out."""

from __future__ import annotations

import polars as pl
import pytest

from brokerlab.errors import ConfigError, DataError
from brokerlab.estimators.sources import of_trace, read_runs

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
