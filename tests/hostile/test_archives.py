"""Archives under attack, a few cases of each kind; the long runs try more, `python -m benchmarks.attack` many."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from benchmarks import attack_archives
from brokerlab.archive import ArchiveWriter, manifest, synthetic
from brokerlab.archive import open as open_archive
from brokerlab.archive.ingestion import ingest
from brokerlab.errors import DataError


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("source") / "archive"
    synthetic.synthesise(folder, jobs=300, days=1, seed=1)
    return folder


FEW = {
    "kills": 2, "interrupts": 3, "full_disks": 2, "lost_manifests": 2, "damage": 3, "readers": 1, "queries": 100
}  # fmt: skip
"""Attack to how many cases of it are tried in every run."""


@pytest.mark.parametrize(
    ("attack", "n"),
    [
        *FEW.items(),
        *(pytest.param(name, 5 * n, marks=pytest.mark.long) for name, n in FEW.items()),
    ],
)
def test_an_archive_holds(attack: str, n: int, source: Path, tmp_path: Path) -> None:
    rng = random.Random(attack)  # noqa: S311 - repeatable, no secret
    assert list(getattr(attack_archives, attack)(source, tmp_path, n, rng)) == []


def test_a_part_that_the_manifest_names_otherwise_is_not_swept_away(
    source: Path, tmp_path: Path
) -> None:
    """One changed letter of a path keeps the digest of the archive; what another table reads does not come by it."""
    sound, archive = open_archive(source), tmp_path / "archive"
    with ArchiveWriter(archive) as writer:
        writer.write("queues", sound.scan("queues").collect())
        writer.commit()
    part = archive / manifest.read(archive).tables["queues"][0].path
    about = archive / manifest.NAME
    about.write_text(
        about.read_text().replace(part.name, part.name.replace(".parquet", ".qarquet"))
    )
    jobs = tmp_path / "jobs.parquet"
    sound.scan("jobs").collect().write_parquet(jobs)
    with pytest.raises(
        DataError, match=r"do not fit the manifest.*\nqueues/part-.*\.qarquet: missing"
    ):
        ingest([jobs], archive)
    assert part.exists()
