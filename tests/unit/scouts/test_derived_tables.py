"""What scouts say with tables that are made from the jobs, against what they say with the true ones."""

from pathlib import Path

import polars as pl
import pytest

from brokerlab import archive as archives
from brokerlab import scouts
from brokerlab.archive import Archive, ArchiveWriter, ingest
from brokerlab.worlds import synthesise

SET = ("ramcount", "outdiskcount", "cputime")


def equal(given: Archive, folder: Path) -> dict[str, float]:
    """Return the share of tasks with the same value, among those with one, by parameter."""
    with ArchiveWriter(folder) as writer:
        writer.write("jobs", given.scan("jobs").collect())
        writer.commit()
    derived = archives.open(folder).derive()
    both = (
        scouts.estimate(given)
        .parameters.select("jeditaskid", *SET)
        .join(scouts.estimate(derived).parameters, on="jeditaskid", how="left", suffix="_derived")
    )
    return {
        name: both.filter(pl.col(name).is_not_null())
        .select((pl.col(name) == pl.col(f"{name}_derived")).fill_null(value=False).mean())
        .item()
        for name in SET
    }


def test_most_synthetic_tasks_get_what_they_get_with_their_true_tables(tmp_path: Path) -> None:
    synthesise(tmp_path / "whole", jobs=3_000, days=7, seed=5)
    shares = equal(archives.open(tmp_path / "whole"), tmp_path / "jobs")
    assert all(share > 0.75 for share in shares.values()), shares


def test_real_tasks_get_what_the_reader_of_their_records_says(tmp_path: Path) -> None:
    data = kit_data()
    ingest(sorted(data.glob("job_records_*.csv.gz")), tmp_path / "whole")
    assert equal(archives.open(tmp_path / "whole"), tmp_path / "jobs") == dict.fromkeys(SET, 1.0)


def kit_data() -> Path:
    """Return the folder of real job records, or skip by name."""
    from brokerlab.report.kit import data_folder

    root = data_folder()
    folder = root / "panda-invex-jobs" if root else None
    if folder is None or not folder.is_dir():
        pytest.skip("real data 'panda-invex-jobs' is not here; set BROKERLAB_DATA")
    return folder
