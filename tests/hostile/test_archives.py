"""Archives under attack, a few cases of each kind; the long runs try more, `python -m benchmarks.attack` many."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest

from benchmarks import attack_archives
from brokerlab import worlds
from brokerlab.archive import ArchiveWriter, manifest
from brokerlab.archive import open as open_archive
from brokerlab.archive.ingestion import ingest
from brokerlab.errors import DataError


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("source") / "archive"
    worlds.synthesise(folder, jobs=300, days=1, seed=1)
    return folder


FEW = {
    "kills": 2, "interrupts": 3, "full_disks": 2, "lost_manifests": 2, "damage": 3, "readers": 1, "queries": 100
}  # fmt: skip
"""Attack to how many cases of it are tried in every run."""


@pytest.mark.parametrize(
    ("attack", "n"),
    [
        *FEW.items(),
        *(pytest.param(name, 3 * n, marks=pytest.mark.long) for name, n in FEW.items()),
    ],
)
def test_an_archive_holds(attack: str, n: int, source: Path, tmp_path: Path) -> None:
    rng = random.Random(attack)  # noqa: S311 - repeatable, no secret
    assert list(getattr(attack_archives, attack)(source, tmp_path, n, rng)) == []


def changed(archive: Path, change: Callable[[str], str], *, sealed: bool = False) -> None:
    """Change the text of a manifest, of an archive of before that had no seal, or with the seal it had."""
    about = archive / manifest.NAME
    raw = json.loads(change(about.read_text()))
    if not sealed:
        del raw["seal"]
    about.write_text(json.dumps(raw))


@pytest.fixture
def two_parts(tmp_path: Path) -> Path:
    """Return an archive with a table of two parts of one size."""
    archive = tmp_path / "archive"
    with ArchiveWriter(archive) as writer:
        for name in ("AAAA", "BBBB"):
            writer.write("resource_types", pl.DataFrame({"resource_name": [name]}))
        writer.commit()
    return archive


def swapped(text: str) -> str:
    first, second = re.findall(r"part-\w+\.parquet", text)
    return text.replace(first, "other").replace(second, first).replace("other", second)


def test_parts_whose_paths_are_swapped_are_noticed(two_parts: Path) -> None:
    """Their digests do not fit, wherever a table is read; nothing else of the archive says so without a seal."""
    changed(two_parts, swapped)
    with pytest.raises(DataError, match=r"2 file\(s\) changed since they were written"):
        open_archive(two_parts).scan("resource_types")
    with pytest.raises(DataError, match=r"2 file\(s\) changed since they were written"):
        open_archive(two_parts).verify()


@pytest.mark.parametrize(
    "change",
    [
        swapped,
        lambda text: text.replace('"synthetic": false', '"synthetic": true'),
        lambda text: re.sub(r'"created": "20', '"created": "21', text),
        lambda text: text.replace('"rows": 1', '"rows": 2'),
    ],
    ids=["paths", "whose jobs", "date", "rows"],
)
def test_whatever_is_changed_in_a_manifest_is_noticed(
    change: Callable[[str], str], two_parts: Path
) -> None:
    changed(two_parts, str, sealed=True)
    assert len(open_archive(two_parts).scan("resource_types").collect()) == 2
    changed(two_parts, change, sealed=True)
    for asked in (open_archive, lambda folder: ArchiveWriter(folder).__enter__()):
        with pytest.raises(DataError, match="the manifest is damaged"):
            asked(two_parts)


def test_a_part_that_the_manifest_names_otherwise_is_not_swept_away(
    source: Path, tmp_path: Path
) -> None:
    """One changed letter of a path keeps the digest of the archive; what another table reads does not come by it."""
    sound, archive = open_archive(source), tmp_path / "archive"
    with ArchiveWriter(archive) as writer:
        writer.write("queues", sound.scan("queues").collect())
        writer.commit()
    part = archive / manifest.read(archive).tables["queues"][0].path
    changed(archive, lambda text: text.replace(part.name, part.name.replace(".parquet", ".qarquet")))  # fmt: skip
    jobs = tmp_path / "jobs.parquet"
    sound.scan("jobs").collect().write_parquet(jobs)
    with pytest.raises(
        DataError, match=r"do not fit the manifest.*\nqueues/part-.*\.qarquet: missing"
    ):
        ingest([jobs], archive)
    assert part.exists()
