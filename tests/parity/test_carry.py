"""What the carrier promises on Spark with two workers: this machine's results, few rows at the driver, lost work done again.

Slow: each session starts executors of its own. ``BROKERLAB_SPARK_JOBS=1000000,5000000`` counts the driver's rows at these sizes, too.
"""

from __future__ import annotations

import os
import pickle
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import narwhals.stable.v2 as nw
import polars as pl
import pytest
from polars.testing import assert_frame_equal

import brokerlab.archive
from brokerlab import carry, scouts
from brokerlab.calibrate.percentiles import history as inputs
from brokerlab.calibrate.percentiles.backtest import Backtest, backtest
from brokerlab.worlds import synthesise

pytestmark = [pytest.mark.long, pytest.mark.spark]
ASKED = [int(jobs) for jobs in os.environ.get("BROKERLAB_SPARK_JOBS", "").split(",") if jobs]
SIZES = (2_000, 6_000, *ASKED)
"""Jobs."""
CHUNKS = 4
"""At least so many of an archive."""
TABLES = ("jobs", "files", "tasks", "datasets", "queues")


@pytest.fixture(scope="module")
def cluster(spark_builder: Any) -> Iterator[Any]:
    from pyspark.sql import SparkSession

    running = SparkSession.getActiveSession()
    if running is not None:
        running.stop()
    session = (
        spark_builder.master("local-cluster[2,1,1536]")
        .appName("brokerlab-carry")
        .config("spark.executorEnv.PYTHONPATH", str(Path(carry.__file__).parents[1]))
        .config("spark.executor.memory", "1g")
        .config("spark.sql.shuffle.partitions", "2")
        .getOrCreate()
    )
    session.sparkContext.setLogLevel("OFF")
    yield session
    session.stop()


@pytest.fixture(scope="module", params=SIZES)
def archive(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("archive")
    synthesise(folder, jobs=request.param, days=6, seed=3)
    return folder


@pytest.fixture
def collected(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Count the rows that come to the driver, those of the frames in pickles included."""
    from pyspark.sql.classic.dataframe import DataFrame

    rows: list[int] = []

    def counted(method: Any) -> Any:
        def call(self: Any, *args: Any) -> Any:
            result = method(self, *args)
            rows.append(result.num_rows if method.__name__ == "toArrow" else len(result))
            if method.__name__ == "collect":
                rows.append(sum(frame_rows(pickle.loads(row["made"])) for row in result))  # noqa: S301 - our own
            return result

        return call

    for name in ("collect", "toArrow", "take"):
        monkeypatch.setattr(DataFrame, name, counted(getattr(DataFrame, name)))
    for name in ("toPandas", "toLocalIterator", "head", "first"):
        monkeypatch.setattr(DataFrame, name, None)
    return rows


def frame_rows(made: Any) -> int:
    """Count rows of frames and arrays anywhere in a result."""
    if isinstance(made, pl.DataFrame | pl.Series) or hasattr(made, "shape"):
        return len(made)
    if isinstance(made, dict):
        return sum(map(frame_rows, made.values()))
    return sum(map(frame_rows, made)) if isinstance(made, tuple | list | set) else 0


def estimated(archive: brokerlab.archive.Archive) -> scouts.ScoutResult:
    return scouts.estimate(archive)


def tried(archive: brokerlab.archive.Archive) -> Backtest:
    return backtest(inputs.load(archive), ranks=range(70, 100, 5))


def test_scouts_and_back_test_on_two_workers(
    cluster: Any, archive: Path, collected: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    here = brokerlab.archive.open(archive)
    n_jobs = here.scan("jobs").select(pl.len()).collect().item()
    monkeypatch.setattr(carry, "CHUNK_ROWS", min(carry.CHUNK_ROWS, n_jobs // CHUNKS))
    there = brokerlab.archive.open(archive, spark=cluster)
    n_tasks = here.scan("tasks").select(pl.len()).collect().item()
    ours, theirs = estimated(there), estimated(here)
    assert_frame_equal(ours.parameters, theirs.parameters, check_exact=True)
    assert_frame_equal(ours.tags, theirs.tags, check_exact=True)
    # a row per task, some ten tags each, and one per chunk
    assert n_tasks <= sum(collected) <= 16 * n_tasks
    collected.clear()
    ours_tried, theirs_tried = tried(there), tried(here)
    some = [theirs_tried.current, theirs_tried.current._replace(margin_pct=0)]
    assert_frame_equal(ours_tried.under(some), theirs_tried.under(some), check_exact=True)
    assert_frame_equal(ours_tried.gap, theirs_tried.gap, check_exact=True)
    found, expected = (one.outcomes() for one in (ours_tried, theirs_tried))
    assert_frame_equal(found.units, expected.units, check_exact=True)
    for name, values in expected.values([0, 3]).items():
        assert (found.values([0, 3])[name] == values).all()
    # six passes of several frames each, none of jobs
    assert sum(collected) <= 40 * n_tasks
    n_chunks = len(ours_tried.each(lambda _: True))
    collected.clear()
    assert_frame_equal(ours_tried.by_setting, theirs_tried.by_setting, check_exact=True)
    # of each chunk some thirty sums by setting, whatever its tasks and jobs
    assert sum(collected) <= n_chunks * 32 * len(ours_tried.grid)


def test_the_work_of_a_killed_worker_is_done_again(cluster: Any, tmp_path: Path) -> None:
    rows = pl.DataFrame({"jeditaskid": [n % 7 for n in range(4_000)], "value": range(4_000)})
    rows.write_parquet(tmp_path / "rows.parquet")
    table = nw.from_native(cluster.read.parquet(str(tmp_path / "rows.parquet"))).lazy()
    killed = tmp_path / "killed"

    def total(chunk: carry.Chunk) -> int:
        if chunk["jobs"]["jeditaskid"].is_in([3]).any() and not killed.exists():
            killed.touch()
            # the worker's parent is a Python daemon, whose parent is the executor
            status = Path(f"/proc/{os.getppid()}/stat").read_text()
            os.kill(int(status.rpartition(")")[2].split()[1]), signal.SIGKILL)
        return int(chunk["jobs"]["value"].sum())

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(carry, "CHUNK_ROWS", 600)
        chunks = carry.deal({"jobs": table, "files": table}, {})
        totals = chunks.map(total)
    assert killed.exists()
    assert len(totals) == 7
    assert sum(totals) == sum(range(4_000))
