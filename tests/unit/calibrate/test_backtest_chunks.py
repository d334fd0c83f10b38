"""A back-test in chunks of tasks is the back-test of all of them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from polars.testing import assert_frame_equal

from brokerlab import carry
from brokerlab.archive.synthetic import synthesise
from brokerlab.calibrate.percentiles import history as inputs
from brokerlab.calibrate.percentiles.backtest import Backtest, backtest

PARAMETERS = ("ramcount", "cputime", "outdiskcount")


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("archive")
    synthesise(folder, jobs=4000, days=6, seed=3)
    return folder


def tried(data: inputs.Inputs, parameter: str) -> Backtest:
    return backtest(
        data.history, data.tasks, data.queues, parameter=parameter, ranks=range(70, 100, 5)
    )


@pytest.mark.parametrize("parameter", PARAMETERS)
def test_chunks_change_nothing(
    archive: Path, parameter: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = tried(inputs.load(archive), parameter)
    monkeypatch.setattr(carry, "CHUNK_ROWS", 700)
    data = inputs.load(archive)
    assert len(data.history.map(id)) > 5
    chunked = tried(data, parameter)
    for name in ("by_setting", "by_task", "gap", "gap_summary"):
        assert_frame_equal(getattr(chunked, name), getattr(whole, name), rel_tol=1e-12)
    assert chunked.counts == whole.counts
    assert chunked.caveats == whole.caveats
    ours, theirs = chunked.outcomes(), whole.outcomes()
    assert_frame_equal(ours.units, theirs.units)
    assert ours.settings == theirs.settings
    for name, values in theirs.values([0, 3]).items():
        np.testing.assert_allclose(ours.values([0, 3])[name], values, rtol=1e-9, atol=1e-12)


def test_what_jobs_say_is_the_same_in_chunks(
    archive: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = inputs.load(archive).quantities
    monkeypatch.setattr(carry, "CHUNK_ROWS", 700)
    assert_frame_equal(inputs.load(archive).quantities, whole)
