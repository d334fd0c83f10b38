"""Small sources for the archive's tests."""

import os
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path

import polars as pl
import pytest

EPOCH = datetime(2026, 3, 1)


@pytest.fixture
def make_jobs() -> Callable[..., pl.DataFrame]:
    """Return a maker of valid jobs as typed columns."""

    def make(n: int = 3, **columns: object) -> pl.DataFrame:
        times = [EPOCH + timedelta(hours=9 * i) for i in range(n)]
        base = {
            "pandaid": list(range(1, n + 1)),
            "jeditaskid": [7] * n,
            "jobstatus": ["finished"] * n,
            "prodsourcelabel": ["managed"] * n,
            "creationtime": times,
            "starttime": [t + timedelta(minutes=1) for t in times],
            "endtime": [t + timedelta(minutes=11) for t in times],
            "modificationtime": [t + timedelta(minutes=12) for t in times],
            "maxpss": [2_000_000] * n,
            "inputfilebytes": [1_000] * n,
            "computingsite": ["Q1"] * n,
        }
        return pl.DataFrame({**base, **columns})

    return make


@pytest.fixture
def write_csv(tmp_path: Path) -> Callable[..., Path]:
    """Return a writer of CSV sources; times in the plain form."""

    def write(frame: pl.DataFrame, name: str = "jobs.csv") -> Path:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        frame.write_csv(path, datetime_format="%Y-%m-%d %H:%M:%S")
        return path

    return write


@pytest.fixture
def real_data() -> Callable[[str], Path]:
    """Return a finder of the shared real data that skips by name where it is absent."""
    root = Path(os.environ.get("BROKERLAB_DATA", Path(__file__).parents[4] / "shared" / "data"))

    def find(name: str) -> Path:
        path = root / name
        if not path.exists():
            pytest.skip(f"real data '{name}' is not here; set BROKERLAB_DATA")
        return path

    return find
