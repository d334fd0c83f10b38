"""Files of jobs, row by row: what is read as a number, and what is refused."""

from __future__ import annotations

from datetime import datetime

import polars as pl

from brokerlab.estimators.predicting import sift


def test_whole_numbers_are_read_as_pandas_writes_them_beside_nulls(tmp_path):
    path = tmp_path / "jobs.csv"
    path.write_text(
        "pandaid,jeditaskid,cores,events\n1,2,8.0,100.0\n2,2,1.5,\n9007199254740993,2,1,\n"
    )
    found = sift(path, "jobs")
    assert found.records.select("pandaid", "cores", "events").rows() == [
        (1, 8, 100),
        (9007199254740993, 1, None),
    ]
    assert found.refused.rows() == [
        (2, "2", "cores: '1.5' is no Int64; cores: null, a value is needed")
    ]


def test_a_time_is_no_number_of_seconds(tmp_path):
    """A timestamp would count microseconds, or days."""
    path = tmp_path / "seen.parquet"
    row = {
        "pandaid": 1,
        "jeditaskid": 2,
        "cores": 1,
        "used": 100.0,
        "ended_s": datetime(2026, 3, 1),
    }
    pl.DataFrame([row]).write_parquet(path)
    found = sift(path, "seen")
    assert found.records.is_empty()
    assert "ended_s: '2026-03-01 00:00:00.000000' is no Float64" in found.refused["reason"][0]
