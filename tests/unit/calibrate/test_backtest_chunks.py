"""A back-test in chunks of tasks is the back-test of all of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from polars.testing import assert_frame_equal

from brokerlab import carry
from brokerlab.archive import ArchiveWriter
from brokerlab.archive.store import open_archive
from brokerlab.calibrate.nearest_setting import translate
from brokerlab.calibrate.percentiles import history as inputs
from brokerlab.calibrate.percentiles import kills, study
from brokerlab.calibrate.percentiles.backtest import Backtest, backtest
from brokerlab.errors import ConfigError
from brokerlab.worlds import synthesise
from tests.unit.calibrate import toys

PARAMETERS = ("ramcount", "cputime", "outdiskcount")


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("archive")
    synthesise(folder, jobs=4000, days=6, seed=3)
    return folder


@pytest.fixture(scope="module")
def whole_history(archive: Path) -> inputs.Inputs:
    return inputs.load(archive)


@pytest.fixture(scope="module")
def chunked_history(archive: Path) -> inputs.Inputs:
    """The same in chunks of some tasks."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(carry, "CHUNK_ROWS", 700)
        return inputs.load(archive)


def tried(data: inputs.Inputs, parameter: str) -> Backtest:
    return backtest(data, parameter, ranks=range(70, 100, 5))


@pytest.mark.parametrize("parameter", PARAMETERS)
def test_chunks_change_nothing(
    whole_history: inputs.Inputs,
    chunked_history: inputs.Inputs,
    parameter: str,
) -> None:
    whole = tried(whole_history, parameter)
    assert len(chunked_history.history.map(id)) > 5
    chunked = tried(chunked_history, parameter)
    for name in ("by_setting", "gap"):
        assert_frame_equal(getattr(chunked, name), getattr(whole, name), rel_tol=1e-12)
    some = [whole.current, whole.current._replace(margin_pct=0)]
    assert_frame_equal(chunked.under(some), whole.under(some), rel_tol=1e-12)
    assert chunked.counts == whole.counts
    assert chunked.caveats == whole.caveats
    ours, theirs = chunked.outcomes(), whole.outcomes()
    assert_frame_equal(ours.units, theirs.units)
    assert ours.settings == theirs.settings
    for name, values in theirs.values([0, 3]).items():
        np.testing.assert_allclose(ours.values([0, 3])[name], values, rtol=1e-9, atol=1e-12)


def test_what_jobs_say_is_the_same_in_chunks(
    whole_history: inputs.Inputs, chunked_history: inputs.Inputs
) -> None:
    assert len(chunked_history.history.map(id)) > 5
    assert_frame_equal(chunked_history.quantities, whole_history.quantities)


def test_the_latest_row_of_a_queue_counts_once(
    archive: Path, whole_history: inputs.Inputs, tmp_path: Path
) -> None:
    """Rows of earlier times, which stand last, know no limit: each would be a queue more that takes any task."""
    plain = open_archive(archive)
    queues = plain.scan("queues").collect()
    late, early = datetime(2026, 3, 1), datetime(2026, 2, 1)
    free = pl.lit(None, pl.Int32)
    older = queues.with_columns(ts=early, maxrss=free, maxtime=free, maxwdir=free)
    with ArchiveWriter(tmp_path / "both", synthetic=True) as writer:
        for name in plain.tables:
            if name != "queues":
                writer.write(name, plain.scan(name).collect(), trusted=True)
        rows = [queues.with_columns(ts=late), older.select(queues.columns)]
        writer.write("queues", pl.concat(rows, how="vertical_relaxed"))
        writer.commit()
    one, both = (
        tried(data, "ramcount") for data in (whole_history, inputs.load(tmp_path / "both"))
    )
    assert both.counts == one.counts
    assert_frame_equal(both.by_setting, one.by_setting)


def test_a_window_is_given_as_times_or_as_text_and_without_a_zone(
    archive: Path, whole_history: inputs.Inputs
) -> None:
    start = datetime(2026, 3, 3)
    tasks = inputs.load(archive, start=start).tasks
    assert 0 < tasks.height < whole_history.tasks.height
    assert inputs.load(archive, start="2026-03-03").tasks.equals(tasks)
    for wrong in ("yesterday", start.replace(tzinfo=UTC)):
        with pytest.raises(ConfigError, match="end="):
            inputs.load(archive, end=wrong)


class Elsewhere(carry.Chunks[Any]):
    """Chunks that functions are sent to, as to workers; they cannot be sent along themselves."""

    def __init__(self, contents: list[Any]) -> None:
        self.contents = contents

    def __reduce__(self) -> str:
        raise AssertionError("a function that is sent holds the chunks")

    def each(self, function: Callable[[Any], Any]) -> Iterator[Any]:
        cloudpickle = pytest.importorskip("cloudpickle")
        sent = cloudpickle.dumps(function)
        return (cloudpickle.loads(sent)(content) for content in self.contents)

    def keep(self, function: Callable[[Any], Any]) -> Elsewhere:
        return Elsewhere(self.map(function))


def test_what_a_study_sends_to_chunks_can_be_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    jobs, tasks = toys.quantities(30, 40, seed=7, hours_between=6), toys.tasks(30)
    parts = [jobs.filter(pl.col("jeditaskid") % 2 == place) for place in (0, 1)]
    whole = toys.inputs(jobs, tasks)
    chunks = [inputs.JobHistory(part, toys.NO_JOBS) for part in parts]
    far = replace(whole, history=Elsewhere(chunks))
    grid: dict[str, Any] = {"ranks": (75, 85), "margins": (5, 10)}
    made, same = (study(each, "ramcount", kills(n_boot=50), **grid) for each in (far, whole))
    assert_frame_equal(made.tried.by_setting, same.tried.by_setting)
    assert made.to_dict() == same.to_dict()
    module = import_module("brokerlab.calibrate.nearest_setting")
    exact = jobs.select("pandaid", allocated=pl.col("maxpss_kb") / 1024)
    tables = []
    for each in (far, whole):
        monkeypatch.setattr(module, "load", lambda *_, each=each, **__: each)
        found = translate(None, exact, question=kills(n_boot=50), minima=(None, 500), **grid)
        tables.append(found.table)
    assert_frame_equal(*tables)
