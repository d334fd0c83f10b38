"""Archives under attack, a few cases of each kind; `python -m benchmarks.attack` tries many."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from benchmarks import attack_archives
from brokerlab.archive import synthetic


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("source") / "archive"
    synthetic.synthesise(folder, jobs=300, days=1, seed=1)
    return folder


@pytest.mark.parametrize(
    ("attack", "n"),
    [
        ("kills", 4),
        ("interrupts", 10),
        ("full_disks", 4),
        ("lost_manifests", 4),
        ("damage", 6),
        ("readers", 1),
        ("queries", 400),
    ],
)
def test_an_archive_holds(attack: str, n: int, source: Path, tmp_path: Path) -> None:
    rng = random.Random(attack)  # noqa: S311 - repeatable, no secret
    assert list(getattr(attack_archives, attack)(source, tmp_path, n, rng)) == []
