"""Spark reads the tables of an archive as this machine does, also columns that files leave out."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from polars.testing import assert_frame_equal

import brokerlab.archive
from brokerlab.archive import ArchiveWriter

pytestmark = [pytest.mark.long, pytest.mark.spark]


def jobs(day: int, **columns: list[Any]) -> pl.DataFrame:
    time = [datetime(2026, 3, day)]
    fixed = {"pandaid": [day], "jobstatus": ["finished"], "prodsourcelabel": ["managed"]}
    return pl.DataFrame(fixed | {"creationtime": time, "modificationtime": time} | columns)


def test_columns_that_are_null_in_a_part(spark: Any, tmp_path: Path) -> None:
    parts = [jobs(1, hs06=[10], mine=["a"]), jobs(2, corecount=[8]), jobs(3, starttime=[datetime(2026, 3, 1)])]  # fmt: skip
    with ArchiveWriter(tmp_path) as writer:
        for part in parts:
            writer.write("jobs", part)
        writer.commit()
    here = brokerlab.archive.open(tmp_path).scan("jobs").sort("pandaid").collect()
    there = brokerlab.archive.open(tmp_path, spark=spark).jobs
    assert dict(there.dtypes) | {"mine": "string"} == dict(there.dtypes)
    assert {kind for _, kind in there.dtypes} == {"int", "bigint", "double", "string", "timestamp_ntz"}  # fmt: skip
    assert_frame_equal(pl.DataFrame(pl.from_arrow(there.toArrow())).sort("pandaid"), here)
