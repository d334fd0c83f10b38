"""The readers on files that nobody here wrote."""

import polars as pl
import pytest

from brokerlab import archive
from brokerlab.archive.ingestion import ingest

pytestmark = pytest.mark.real_data

JOBS = {13332803: 668, 13776794: 480, 14287024: 249, 15350577: 10886}


@pytest.fixture(scope="module")
def invex(tmp_path_factory, request):
    return tmp_path_factory.mktemp("invex") / "archive"


@pytest.fixture
def opened(real_data, invex):
    ingest([real_data("panda-invex-jobs")], invex)
    return archive.open(invex)


def test_every_job_record_is_accepted(opened):
    counted = opened.scan("jobs").group_by("jeditaskid").len().collect()
    assert dict(counted.iter_rows()) == JOBS
    assert opened.manifest.counts["tasks"] == 4
    assert not opened.has("quarantine")


def test_each_task_has_its_ten_scouts_and_they_are_the_first(opened):
    jobs = opened.scan("jobs").collect()
    for task in JOBS:
        own = jobs.filter(pl.col("jeditaskid") == task)
        scouts = own.filter(pl.col("specialhandling") == "sj")
        rest = own.filter(pl.col("specialhandling").is_null())
        assert len(scouts) == 10
        assert scouts["pandaid"].max() < rest["pandaid"].min()
        assert scouts["creationtime"].n_unique() == 1
        assert scouts["endtime"].max() < rest["creationtime"].min()


def test_merge_jobs_are_marked_and_read_their_own_dataset(opened):
    merge = opened.scan("jobs").filter(pl.col("processingtype") == "pmerge").collect()
    assert merge["jeditaskid"].unique().to_list() == [13332803]
    assert len(merge) == 334
    kinds = opened.scan("datasets").filter(pl.col("jeditaskid") == 13332803).collect()
    assert sorted(kinds.select("type", "nfiles").rows()) == [("input", 334), ("trn_output", 334)]


def test_core_power_reproduces_hs06sec(opened):
    queues = opened.scan("queues").select("panda_queue", "corepower")
    jobs = opened.scan("jobs").filter(pl.col("hs06sec") > 0, pl.col("actualcorecount") > 0)
    both = jobs.join(queues, left_on="computingsite", right_on="panda_queue").collect()
    wall = (both["endtime"] - both["starttime"]).dt.total_seconds()
    expected = (both["corepower"] * wall * both["actualcorecount"]).floor()
    error = (expected - both["hs06sec"]).abs()
    assert (error <= 1).mean() > 0.94
    assert (error / both["hs06sec"]).quantile(0.99) < 0.01
    power = dict(opened.scan("queues").select("panda_queue", "corepower").collect().iter_rows())
    assert power["CERN-PROD_T0_MCORE"] == 16.88
    assert power["FZK-LCG2_UCORE"] == 12.559
    assert power["RAL-LCG2_UCORE"] == 10.0


def test_the_recorded_ram_request_of_the_first_task(opened):
    scouts = opened.scan("jobs").filter(
        pl.col("jeditaskid") == 13332803, pl.col("specialhandling") == "sj"
    )
    per_core = scouts.select(pl.col("maxpss") / pl.col("actualcorecount")).collect().to_series()
    ramcount = int(per_core.quantile(0.75, "linear") * 1.1 / 1024)
    assert ramcount == 893
    later = opened.scan("jobs").filter(pl.col("jeditaskid") == 13332803).collect()
    assert (later["minramcount"] == int(ramcount * 8 * 0.95)).sum() == 198


def test_the_stored_answers_of_a_monitor(real_data, tmp_path):
    source = real_data("bigpanda-lsst-api-sample/panda_query_results.json.gz")
    report = ingest([source], tmp_path / "a")
    rows = {row["table"]: row for row in report.frame().iter_rows(named=True)}
    assert {name: row["accepted"] for name, row in rows.items()} == {
        "jobs": 102, "tasks": 3, "datasets": 3,
    }  # fmt: skip
    jobs = archive.open(tmp_path / "a").scan("jobs").collect()
    measured = jobs.filter(pl.col("avgpss") > 0)
    assert (measured["maxpss"] >= measured["avgpss"]).all()
    assert jobs["endtime"].null_count() == 0
    assert "skipped, neither jobs nor tasks" in report.sources[0].notes[0]


@pytest.mark.parametrize("table", ["jobs", "queues"])
def test_ingesting_the_real_files_twice_changes_nothing(real_data, invex, opened, table):
    before = opened.digest
    report = ingest([real_data("panda-invex-jobs")], invex)
    assert len(report.skipped) == 4
    assert archive.open(invex).digest == before
    assert archive.open(invex).has(table)
