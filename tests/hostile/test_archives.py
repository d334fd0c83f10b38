"""Archives under attack, a few cases of each kind; the long runs try more, `python -m benchmarks.attack` many."""

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
