"""The toy archive, written once."""

from __future__ import annotations

import pytest

from brokerlab.archive.store import Archive
from brokerlab.lifecycle.waits import Waiting, read_waiting
from tests.unit.lifecycle.waits.toys import JOBS, QUEUES, write


@pytest.fixture(scope="session")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Archive:
    return write(tmp_path_factory.mktemp("waiting") / "toy", JOBS, QUEUES)


@pytest.fixture(scope="session")
def period(archive: Archive) -> Waiting:
    return read_waiting(archive, least=0.25)
