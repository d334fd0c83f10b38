"""Results kept beside an archive: read again, made anew where they are damaged or something else is asked for."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest
from polars.testing import assert_frame_equal

import brokerlab.archive
from brokerlab.archive import ArchiveWriter, kept
from brokerlab.archive.kept import FOLDER, Result

FRAME = pl.DataFrame({"queue": ["A", None], "jobs": [3, 4], "names": [["x"], []]})


@pytest.fixture
def archive(tmp_path: Path) -> brokerlab.archive.Archive:
    with ArchiveWriter(tmp_path) as writer:
        writer.write("resource_types", pl.DataFrame({"resource_name": ["SCORE"]}))
        writer.commit()
    return brokerlab.archive.open(tmp_path)


class Maker:
    def __init__(self) -> None:
        self.calls = 0

    def __call__(self) -> Result:
        self.calls += 1
        return Result({"counts": FRAME}, ("two queues",))


def folders(archive: brokerlab.archive.Archive) -> list[Path]:
    return sorted((archive.path / FOLDER).iterdir())


def test_a_result_is_made_once(archive: brokerlab.archive.Archive) -> None:
    make = Maker()
    for _ in range(3):
        result = kept.kept(archive, "counts", {"stage": "jobs"}, make)
        assert_frame_equal(result.frames["counts"], FRAME)
        assert result.texts == ("two queues",)
    assert make.calls == 1
    assert len(folders(archive)) == 1


def test_another_question_code_or_content_has_another_result(
    archive: brokerlab.archive.Archive, monkeypatch: pytest.MonkeyPatch
) -> None:
    make = Maker()
    kept.kept(archive, "counts", {"stage": "jobs"}, make)
    kept.kept(archive, "counts", {"stage": "tasks"}, make)
    assert make.calls == 2
    with monkeypatch.context() as patch:
        patch.setattr(kept, "_sources", lambda: "newer")
        kept.kept(archive, "counts", {"stage": "jobs"}, make)
    assert make.calls == 3
    with ArchiveWriter(archive.path) as writer:
        writer.write("resource_types", pl.DataFrame({"resource_name": ["MCORE"]}))
        writer.commit()
    kept.kept(brokerlab.archive.open(archive.path), "counts", {"stage": "jobs"}, make)
    assert make.calls == 4
    assert len(folders(archive)) == 4


@pytest.mark.parametrize("file", ["counts.arrow", "index.json"])
@pytest.mark.parametrize("damage", ["cut", "changed", "gone"])
def test_a_damaged_result_is_made_anew(
    archive: brokerlab.archive.Archive, file: str, damage: str
) -> None:
    make = Maker()
    kept.kept(archive, "counts", {}, make)
    path = folders(archive)[0] / file
    content = path.read_bytes()
    if damage == "gone":
        path.unlink()
    else:
        half = len(content) // 2
        rest = b"" if damage == "cut" else bytes([content[half] ^ 1]) + content[half + 1 :]
        path.write_bytes(content[:half] + rest)
    for _ in range(2):
        assert_frame_equal(kept.kept(archive, "counts", {}, make).frames["counts"], FRAME)
    assert make.calls == 2
    assert len(folders(archive)) == 1


def test_a_result_that_fails_is_not_kept(archive: brokerlab.archive.Archive) -> None:
    def fail() -> Result:
        raise RuntimeError("no")

    with pytest.raises(RuntimeError):
        kept.kept(archive, "counts", {}, fail)
    assert not (archive.path / FOLDER).exists()


def test_nothing_is_kept_where_it_cannot_be(archive: brokerlab.archive.Archive) -> None:
    (archive.path / FOLDER).write_text("in the way")
    make = Maker()
    for _ in range(2):
        assert_frame_equal(kept.kept(archive, "counts", {}, make).frames["counts"], FRAME)
    assert make.calls == 2


def test_what_can_only_be_read_is_read(
    archive: brokerlab.archive.Archive, monkeypatch: pytest.MonkeyPatch
) -> None:
    make = Maker()
    kept.kept(archive, "counts", {}, make)

    def refuse(*_: object) -> None:
        raise PermissionError("of somebody else")

    monkeypatch.setattr(kept.os, "utime", refuse)
    assert_frame_equal(kept.kept(archive, "counts", {}, make).frames["counts"], FRAME)
    assert make.calls == 1


def test_the_oldest_give_way(
    archive: brokerlab.archive.Archive, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kept, "MOST", 2)
    make = Maker()
    for number in range(4):
        kept.kept(archive, "counts", {"number": number}, make)
    assert len(folders(archive)) == 2
    kept.kept(archive, "counts", {"number": 3}, make)
    assert make.calls == 4
