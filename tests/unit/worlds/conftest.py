"""One small lived archive for all tests of this folder; nothing writes into it."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import brokerlab.archive
from brokerlab import worlds
from brokerlab.archive.manifest import Manifest

ASKED: dict[str, Any] = {
    "jobs": 4000, "days": 6.0, "seed": 3, "queues": 40, "network_every_h": 3.0, "lived": True,
    "planted": "none",
}  # fmt: skip

SMALL = {**ASKED, "jobs": 600, "days": 1.2, "planted": "wrong"}


@dataclass(frozen=True)
class Made:
    path: Path
    manifest: Manifest
    archive: Any
    jobs: pl.DataFrame
    capacity: pl.DataFrame

    def table(self, name: str) -> pl.DataFrame:
        return self.archive.scan(name).collect()

    @property
    def drawn(self) -> pl.DataFrame:
        """Jobs of tasks that were drawn, not laid out one by one."""
        return self.jobs.join(self.archive.truth("tasks"), on="jeditaskid", how="semi")


@pytest.fixture(scope="session")
def made(tmp_path_factory: pytest.TempPathFactory) -> Made:
    path = tmp_path_factory.mktemp("worlds") / "archive"
    manifest = worlds.synthesise(path, **ASKED)
    archive = brokerlab.archive.open(path)
    return Made(path, manifest, archive, archive.scan("jobs").collect(), archive.truth("capacity"))


@pytest.fixture(scope="session")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A smaller one with wrong values in force."""
    path = tmp_path_factory.mktemp("worlds") / "small"
    worlds.synthesise(path, **SMALL)
    return path
