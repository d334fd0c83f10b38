"""Long work: each task ends with its result, its error or its killed process; results are kept whole or not at all."""

import os
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path

import polars as pl
import pytest

from brokerlab.errors import WARNED, BrokerlabWarning, DataError, warn_once
from brokerlab.long_work import CORES, Kept, cores_for, in_processes
from tests.unit.long_work_toys import core, times, warns


def test_a_killed_process_or_an_error_takes_its_own_task_and_no_other():
    ended = dict(in_processes(times, 10, [1, 0, -1, 2], workers=2, tries=2))
    assert (ended[1], ended[2]) == (10, 20)
    assert str(ended[0]) == "nothing to multiply"
    assert isinstance(ended[-1], BrokenProcessPool)
    assert list(in_processes(times, 10, [], workers=2)) == []


def test_what_was_warned_of_is_not_repeated_in_other_processes():
    with pytest.warns(BrokerlabWarning, match="said before"):
        warn_once("said before")
    try:
        assert list(in_processes(warns, 0, [1], workers=1)) == [(1, ["new in 1"])]
    finally:
        WARNED.discard("said before")


def test_who_wants_no_more_results_does_not_wait_for_them():
    results = in_processes(times, 10, [1, -1, -1, -1, -1], workers=1)
    assert next(results) == (1, 10)
    results.close()


def test_results_are_kept_whole_or_not_at_all(tmp_path):
    kept, frame = Kept(tmp_path / "results"), pl.DataFrame({"x": [1]})
    assert kept.load("one") is None
    kept.save("one", frame)
    assert kept.load("one").equals(frame)
    (tmp_path / "results" / "one.parquet").write_bytes(b"half")
    assert kept.load("one") is None
    assert [path.name for path in kept.folder.iterdir()] == ["one.parquet"]
    Kept(None).save("one", frame)
    assert Kept(None).load("one") is None
    (tmp_path / "file").touch()
    with pytest.raises(DataError, match="name a folder that can be made"):
        Kept(tmp_path / "file")


@pytest.mark.skipif(not hasattr(os, "sched_getaffinity"), reason="needs Linux")
def test_several_processes_of_one_thread_keep_to_a_core_each_and_others_to_none(monkeypatch):
    free = os.sched_getaffinity(0)
    monkeypatch.setenv("POLARS_MAX_THREADS", "1")
    assert {len(kept) for _, kept in in_processes(core, 0, [1, 2], workers=2)} == {1}
    assert set(cores_for(len(CORES) + 1)) == {*CORES}
    ((_, alone),) = in_processes(core, 0, [1], workers=1)
    assert set(alone) == free
    monkeypatch.setenv("POLARS_MAX_THREADS", "2")
    assert {kept for _, kept in in_processes(core, 0, [1, 2], workers=2)} == {tuple(free)}


@pytest.mark.parametrize("told", ["", "1 (x) S 1 2 3", "1 (x) " + "9 " * 36 + "x"])
def test_a_system_that_does_not_tell_the_core_keeps_nothing_to_it(told, monkeypatch):
    monkeypatch.setattr(Path, "read_text", lambda *_: told)
    assert cores_for(2) == [-1, -1]
