"""What the carrier puts aside on this machine: compressed, the same when it is read, nothing left where it does not fit."""

from __future__ import annotations

import pickle
import resource
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
import polars as pl
import pyarrow as pa
import pytest
from polars.testing import assert_frame_equal

from brokerlab import carry
from brokerlab.errors import DataError

ROWS, MOST = 100_000, 100_000
"""Rows of the table, and bytes that a file may have on a disk that is full."""


@pytest.fixture
def scratch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(carry, "MOST_HELD_ROWS", 0)
    return tmp_path


@pytest.fixture
def make_full() -> Iterator[Callable[[], None]]:
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    yield lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (MOST, hard))
    resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def deal(**columns: Any) -> carry.Chunks[carry.Chunk]:
    table = pl.LazyFrame({"jeditaskid": np.arange(ROWS) % 10, **columns})
    return carry.deal({"jobs": nw.from_native(table)}, {}, least=2)


def noise() -> Any:
    return np.random.default_rng(0).random(ROWS)


def held(folder: Path) -> int:
    return sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())


def test_what_is_put_aside_is_compressed_and_comes_back_as_it_was(
    scratch: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(carry, "MOST_PLAIN_ROWS", ROWS - 1)
    chunks = deal(computingsite=["CERN-PROD_UCORE"] * ROWS, value=np.arange(ROWS) % 7)
    dealt = held(scratch)
    made = chunks.map(lambda chunk: (chunk["jobs"], chunk["jobs"]["value"].to_numpy()))
    assert dealt < sum(frame.estimated_size() for frame, _ in made) / 3
    kept = chunks.keep(lambda chunk: (chunk["jobs"], chunk["jobs"]["value"].to_numpy()))
    assert held(scratch) - dealt < sum(len(pickle.dumps(each, protocol=5)) for each in made) / 3
    for (frame, array), (same, as_before) in zip(kept.map(lambda each: each), made, strict=True):
        assert_frame_equal(frame, same)
        assert (array == as_before).all()
    del chunks, kept
    assert list(scratch.iterdir()) == []


def test_rows_that_do_not_fit_are_refused_with_what_is_needed(
    scratch: Path, make_full: Callable[[], None]
) -> None:
    value = noise()
    make_full()
    with pytest.raises(
        DataError,
        match=rf"^{scratch}/brokerlab-\w+: temporary rows do not fit: \d+\.\d GB written, .* needed, .* GB free; .* TMPDIR",
    ):
        deal(value=value)
    assert list(scratch.iterdir()) == []


def test_results_that_do_not_fit_are_refused_and_what_was_dealt_stays(
    scratch: Path, make_full: Callable[[], None]
) -> None:
    chunks = deal()
    before = sorted(scratch.rglob("*"))
    make_full()
    with pytest.raises(DataError, match=r"temporary rows do not fit: .* set TMPDIR"):
        chunks.keep(lambda chunk: noise()[: chunk["jobs"].height])
    assert sorted(scratch.rglob("*")) == before
    assert sum(chunks.map(lambda chunk: chunk["jobs"].height)) == ROWS


@pytest.mark.parametrize(
    ("least", "most_held", "files"), [(1, 0, 0), (7, 2 * ROWS, 0), (7, 2 * ROWS - 1, 14)]
)
def test_chunks_hold_what_is_made_of_each_row(
    scratch: Path, monkeypatch: pytest.MonkeyPatch, least: int, most_held: int, files: int
) -> None:
    monkeypatch.setattr(carry, "MOST_HELD_ROWS", most_held)
    monkeypatch.setattr(carry, "BATCH_ROWS", ROWS // 3)
    table = pl.DataFrame({"jeditaskid": np.arange(ROWS) % 10, "place": np.arange(ROWS)})

    def narrow(rows: pl.DataFrame) -> pl.DataFrame:
        return rows.select("jeditaskid", twice=pl.col("place") * 2)

    large = {name: nw.from_native(table.lazy()) for name in ("jobs", "files")}
    chunks = carry.deal(large, {}, least=least, narrow={"jobs": narrow})
    assert len(list(scratch.rglob("*-?"))) == files
    made = chunks.map(lambda chunk: chunk)
    for name, expected in (("jobs", narrow(table)), ("files", table)):
        dealt = pl.concat([chunk[name] for chunk in made])
        assert_frame_equal(dealt, expected, check_row_order=False)
        assert len(made) == least
        assert {chunk[name].n_chunks() for chunk in made} == {1}


def test_what_a_function_raises_is_as_it_was_and_nothing_is_left(scratch: Path) -> None:
    chunks = deal()
    before = sorted(scratch.rglob("*"))
    with pytest.raises(ZeroDivisionError):
        chunks.keep(lambda chunk: chunk["jobs"].height // 0)
    assert sorted(scratch.rglob("*")) == before


def test_without_a_folder_it_says_what_to_set(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "gone"))
    monkeypatch.setattr(carry, "MOST_HELD_ROWS", 0)
    with pytest.raises(DataError, match=rf"^{tmp_path}/gone: .* set TMPDIR"):
        deal()


def test_small_row_groups_are_dealt_out_in_large_batches(scratch: Path) -> None:
    duckdb = pytest.importorskip("duckdb")
    table = pl.DataFrame({"jeditaskid": np.arange(ROWS) % 10, "place": np.arange(ROWS)})
    table.write_parquet(scratch / "rows.parquet", row_group_size=2048)
    rows = duckdb.connect().read_parquet(str(scratch / "rows.parquet"))
    chunks = carry.deal({"jobs": nw.from_native(rows).lazy()}, {}, least=100)
    files = list(scratch.rglob("jobs-*"))
    assert {len(list(pa.ipc.open_stream(file.read_bytes()))) for file in files} == {0, 1}
    dealt = pl.concat(chunks.map(lambda chunk: chunk["jobs"]))
    assert_frame_equal(dealt, table, check_row_order=False)
