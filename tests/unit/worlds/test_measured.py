"""Shapes of an archive beside those measured on real ones."""

from datetime import datetime, timedelta
from pathlib import Path

import polars as pl
import pytest

import brokerlab.archive
from brokerlab import worlds
from brokerlab.archive import ArchiveWriter
from brokerlab.worlds.measured import MEASURED
from tests.unit.worlds.conftest import Made

T0 = datetime(2026, 3, 1)
HOUR = timedelta(hours=1)
PAGE = Path(__file__).parents[3] / "docs" / "worlds.md"


def test_values_are_those_of_the_jobs(tmp_path: Path) -> None:
    n, failed = 100, 4
    wall = [3 * HOUR if i < failed else 2 * HOUR for i in range(n)]
    jobs = pl.DataFrame(
        {
            "pandaid": range(n),
            "jeditaskid": 1,
            "prodsourcelabel": "managed",
            "computingsite": "Q",
            "nucleus": ["N"] * (n - 1) + ["OTHER"],
            "jobstatus": ["failed"] * failed + ["finished"] * (n - failed),
            "piloterrorcode": [1212, 1213, 1213, 0] + [None] * (n - failed),
            "creationtime": T0,
            "activatedtime": T0 + HOUR / 2,
            "starttime": T0 + 2 * HOUR,
            "endtime": [T0 + 2 * HOUR + one for one in wall],
            "modificationtime": [T0 + 2 * HOUR + one for one in wall],
            "actualcorecount": 1,
            "outputfilebytes": 10,
        }
    )
    with ArchiveWriter(tmp_path, synthetic=True, mode="replace") as writer:
        writer.write("jobs", jobs)
        writer.write_truth("capacity", pl.DataFrame({"panda_queue": ["Q"], "slots": [200]}))
        writer.commit()
    found = worlds.shapes(brokerlab.archive.open(tmp_path))
    here = dict(found.select("quantity", "here").iter_rows())
    assert here["median wait at the median queue"] == pytest.approx(1.5)
    assert here["time from a job's making to its input"] == pytest.approx(0.5)
    assert here["failed jobs"] == pytest.approx(4.0)
    assert here["killed for memory"] == pytest.approx(1.0)
    assert here["killed for wall time"] == pytest.approx(2.0)
    assert here["wall time of failed over finished jobs"] == pytest.approx(1.5)
    assert here["output over the busiest 1 % of links"] == pytest.approx(99.0)
    assert here["used part of the slots"] == pytest.approx(100 * (2 * n + failed) / (200 * 3))
    assert here["sd of ln peak memory inside a task"] is None
    differs = dict(found.select("quantity", "differs").iter_rows())
    assert differs["failed jobs"] is False
    assert differs["median wait at the median queue"] is True
    assert differs["killed for memory"] is None


def test_a_lived_world_has_all_of_them(made: Made) -> None:
    found = worlds.shapes(made.archive)
    assert found["here"].null_count() == 0
    assert 0 < found.filter(quantity="used part of the slots")["here"].item() < 100


def test_the_page_has_every_quantity_with_what_was_measured() -> None:
    lines = [line for line in PAGE.read_text().splitlines() if line.startswith("| ")]
    cells = {line.split(" | ")[0].removeprefix("| "): line for line in lines}
    for one in MEASURED:
        assert one.quantity in cells, one.quantity
        if one.low is not None:
            assert f"{one.low:g} to {one.high:g}" in cells[one.quantity]
