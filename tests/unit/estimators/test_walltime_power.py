"""Core power of real files and of archives: which of them is read, and whether it was generated."""

from __future__ import annotations

import polars as pl
import pytest

from brokerlab.archive import ArchiveWriter
from brokerlab.archive.store import open_archive
from brokerlab.errors import DataError
from brokerlab.estimators.walltime.power import PowerData, read_power, study_power
from tests.unit.estimators.sources.test_archived import jobs, tasks
from tests.unit.estimators.test_walltime_sites import planted


def archive(folder, rows, *, synthetic=False):
    with ArchiveWriter(folder, synthetic=synthetic) as writer:
        writer.write("jobs", rows.with_columns(cpuconsumptiontime=pl.lit(600)))
        writer.write("tasks", tasks())
        writer.commit()
    return open_archive(folder)


@pytest.mark.parametrize("synthetic", [True, False])
def test_jobs_of_an_archive_are_generated_only_where_it_says_so(tmp_path, synthetic):
    data = read_power(None, archive(tmp_path / "a", jobs(), synthetic=synthetic))
    assert data.from_archive
    assert data.synthetic is synthetic
    assert data.timed is not None
    assert set(data.timed.select("jeditaskid", "cpu_s").rows()) == {(1, 600.0), (2, 600.0)}
    study = study_power(data, n_boot=20)
    assert study is not None
    assert study.synthetic is synthetic
    assert study.slopes.is_empty()  # no core power is known


def test_an_archive_without_a_timed_job_has_nothing_to_say(tmp_path):
    rows = jobs().with_columns(endtime=pl.lit(None, pl.Datetime("us")))
    data = read_power(None, archive(tmp_path / "a", rows))
    assert data.timed is None
    assert study_power(data) is None


def test_a_folder_goes_before_the_archive(tmp_path):
    folder = tmp_path / "data"
    (folder / "panda-invex-jobs").mkdir(parents=True)
    pl.DataFrame(
        {
            "pandaid": [1, 2, 3],
            "computingsite": ["A"] * 3,
            "jobstatus": ["finished"] * 3,
            "actualcorecount": [1] * 3,
            "assignedpriority": [500] * 3,
            "minramcount": [2000] * 3,
            "maxcpucount": [7200] * 3,
            "maxpss": [1000] * 3,
            "cpuconsumptiontime": [90, 180, 270],
            "wall_time": [100, 200, 300],
            "queue_time": [60] * 3,
            "hs06sec": [1000, 2000, 3000],
            "inputfilebytes": [10**9] * 3,
            "nevents": [100] * 3,
        }
    ).write_csv(folder / "panda-invex-jobs" / "job_records_70000.csv")
    data = read_power(folder, archive(tmp_path / "a", jobs(), synthetic=True))
    assert not data.from_archive
    assert not data.synthetic
    assert data.timed is not None
    assert data.timed["cpu_s"].to_list() == [90.0, 180.0, 270.0]
    assert data.timed["corepower"].unique().to_list() == [10.0]


def test_tables_of_the_folder_are_read_or_refused(tmp_path):
    usage = tmp_path / "osg-apel-monthly"
    usage.mkdir()
    months = {"Site": ["A"], "Year": [2015], "Month": [2], "WallDuration": [10**6]}
    pl.DataFrame(months | {"NormalisedWallDuration": [10**7]}).write_parquet(usage / "a.parquet")
    data = read_power(tmp_path, None)
    assert data.usage is not None
    assert str(data.usage["month"][0]) == "2015-02-01"
    assert (data.timed, data.nodes, data.cpu_times) == (None, None, None)
    pl.DataFrame(months).write_parquet(usage / "b.parquet")
    with pytest.raises(DataError, match=r"b\.parquet: lacks a column"):
        read_power(tmp_path, None)


def test_what_is_said_of_sites_stands_in_one_frame(tmp_path):
    nodes = tmp_path / "gridka-node-benchmarks-2000"
    nodes.mkdir()
    pl.DataFrame({"jobslots": [10, 20], "hs06": [100.0, 300.0]}).write_csv(nodes / "nodes.csv")
    usage = tmp_path / "osg-apel-monthly"
    usage.mkdir()
    for month in (1, 2):
        pl.DataFrame(
            {
                "Site": ["A", "B"],
                "Year": [2015] * 2,
                "Month": [month] * 2,
                "WallDuration": [10**6] * 2,
                "NormalisedWallDuration": [10**7 * month, 12 * 10**6],
            }
        ).write_parquet(usage / f"{month}.parquet")
    data = read_power(tmp_path, archive(tmp_path / "a", jobs()))
    study = study_power(data, n_boot=20)
    assert study is not None
    numbers = {tuple(name.split(" ")): ends for name, *ends in study.sites.rows()}
    assert numbers["inside", "least"] == [10.0, None, None]
    assert numbers["inside", "most"] == [15.0, None, None]
    assert numbers["drift", "sites"][0] == 2
    assert numbers["drift", "at_default"][0] == 1
    moved, low, high = numbers["drift", "moved"]
    assert low < moved == 0.5 < high
    assert not [source for source, _ in numbers if source == "analysis"]
    assert study.scaling == {}


def test_tasks_that_scaling_helps_and_harms_are_counted():
    scales = planted(-1.0).with_columns(jeditaskid=pl.lit(1, pl.Int64))
    not_so = planted(0.0).with_columns(jeditaskid=pl.lit(2, pl.Int64))
    data = PowerData(
        timed=pl.concat([scales, not_so]),
        nodes=None,
        usage=None,
        cpu_times=None,
        from_archive=False,
        synthetic=False,
    )
    study = study_power(data, n_boot=200)
    assert study is not None
    counts = {"tasks": 2, "helps": 1, "harms": 1, "own": 2}
    assert study.scaling == counts | {"slopes": 2, "with_rule": 1, "with_none": 1}
