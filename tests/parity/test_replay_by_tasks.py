"""A replay carried by Spark in chunks of tasks: the decisions of this machine, rows of tasks at the driver."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from polars.testing import assert_frame_equal

import brokerlab.archive
from brokerlab import carry
from brokerlab.brokerage import replaying
from brokerlab.brokerage.production_jobs.brokerage import BROKERAGE, decide
from brokerlab.brokerage.replaying import Replay
from brokerlab.worlds import synthesise

pytestmark = [
    pytest.mark.long,
    pytest.mark.spark,
    pytest.mark.filterwarnings("ignore::brokerlab.errors.BrokerlabWarning"),
]


def decided(seen: Replay) -> pl.DataFrame:
    return decide(seen.tables_of(BROKERAGE.tables), config=seen.config).tasks


def test_spark_decides_as_this_machine(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synthesise(tmp_path / "archive", jobs=600, days=1, seed=3)
    monkeypatch.setattr(carry, "CHUNK_ROWS", 250)
    here = brokerlab.archive.open(tmp_path / "archive")
    there = brokerlab.archive.open(tmp_path / "archive", spark=spark)
    whole = decided(replaying.build(here, every="6h"))
    carried: list[int] = []

    def counted(*args: Any) -> Any:
        result = loads(*args)
        carried.append(len(result) if isinstance(result, pl.DataFrame) else 0)
        return result

    loads = pickle.loads
    monkeypatch.setattr(carry.pickle, "loads", counted)
    parts = replaying.build(there, every="6h", files=False).map(decided)
    keys = ["jeditaskid", "snapshot"]
    assert len(parts) > 1
    assert_frame_equal(pl.concat(parts).sort(keys), whole.sort(keys), check_exact=True)
    assert sum(carried) == whole.height
