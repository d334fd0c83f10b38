"""Records from job tables of whole tasks: units, clocks, scouts, and every row accounted for."""

from __future__ import annotations

import os
from pathlib import Path

import polars as pl
import pytest

from brokerlab.errors import ConfigError, DataError, InsufficientDataError, SchemaError
from brokerlab.estimators.sources import of_invex

REAL = (
    Path(__file__).parents[4]
    / os.environ.get("BROKERLAB_DATA", "../shared/data")
    / "panda-invex-jobs"
)
SCOUT, MERGE = 901, 5000


def table(**changed: object) -> pl.DataFrame:
    """Two scouts of 4 cores, three jobs of the task (one failed), one merge job."""
    columns = {
        "pandaid": [1000, 1001, 2000, 2010, 2020, 3000],
        "computingsite": ["A", "A", "A", "B", "B", "A"],
        "jobstatus": ["finished"] * 4 + ["failed", "finished"],
        "actualcorecount": [4, 4, 4, 8, 8, 1],
        "assignedpriority": [SCOUT, SCOUT, 500, 500, 500, MERGE],
        "minramcount": [11400, 11400, 9000, 18000, 18000, 0],
        "maxcpucount": [86400, 86400, 7200, 3600, 3600, 0],
        "maxpss": [8 * 2**20, 9 * 2**20, 10 * 2**20, 15 * 2**20, 2**20, 2**19],
        "avgpss": [2**20] * 5 + [2**18],
        "wall_time": [100, 200, 300, 400, 500, 60],
        "queue_time": [10, 20, 30, 40, 50, 60],
        "hs06sec": [4000, 8000, 12000, 48000, 60000, 600],
        "nevents": [10, 20, 30, 40, 0, 0],
        "inputfilebytes": [2**20] * 6,
    }
    return pl.DataFrame(columns | changed)


@pytest.fixture
def write(tmp_path):
    def written(frame: pl.DataFrame, task: int = 12345) -> Path:
        path = tmp_path / f"job_records_{task}.csv"
        frame.write_csv(path)
        return path

    return written


def test_memory_is_of_the_whole_job_and_the_clock_follows_the_ids(write):
    found = of_invex(write(table()), "memory", ids_per_s=10)
    records = found.records
    assert records["pandaid"].to_list() == [1000, 1001, 2000, 2010]
    assert records["used"].to_list() == [8192, 9216, 10240, 15360]
    assert records["decided_s"].to_list() == pytest.approx([0, 0.1, 100, 101])
    assert records["ended_s"].to_list() == pytest.approx([110, 220.1, 430, 541])
    assert records["is_scout"].to_list() == [True, True, False, False]
    assert records["jeditaskid"].unique().to_list() == [12345]
    assert records["corepower"].to_list() == [10, 10, 10, 15]
    assert not records["censored"].any()


def test_what_the_scouts_were_sent_with_was_asked_for_per_core(write):
    records = of_invex(write(table()), "memory").records
    assert records["requested"].to_list() == [11400, 11400, 11400, 22800]
    assert records["sent"].to_list() == [11400, 11400, 9000, 18000]


def test_walltime_has_the_limits_in_seconds(write):
    records = of_invex(write(table()), "walltime").records
    assert records["used"].to_list() == [100, 200, 300, 400]
    assert records["requested"].unique().to_list() == [86400]
    assert records["sent"].to_list() == [86400, 86400, 7200, 3600]


def test_no_limit_is_null_and_not_0(write):
    records = of_invex(write(table(maxcpucount=[0] * 6)), "walltime").records
    assert records["requested"].null_count() == records["sent"].null_count() == 4


def test_a_decision_at_the_start_comes_after_the_wait(write):
    path = write(table())
    at_start = of_invex(path, "memory", at="start", ids_per_s=100).records
    assert at_start["decided_s"].to_list() == pytest.approx([10, 20.01, 40, 50.1])
    assert at_start["ended_s"].to_list() == pytest.approx([110, 220.01, 340, 450.1])


def test_every_row_is_kept_or_counted(write):
    unknown = table(maxpss=[None, *table()["maxpss"][1:4], None, 1])
    counts = of_invex(write(unknown), "memory").counts
    assert counts.rows() == [
        ("kept", 3),
        ("failed, and no memory recorded", 1),
        ("merge job", 1),
        ("no memory recorded", 1),
    ]
    said = of_invex(write(table()), "memory").counts
    assert ("failed, though not at the limit of memory", 1) in said.rows()
    assert said["rows"].sum() == 6
    torn = pl.concat([table(wall_time=[str(n) for n in range(5)] + ["soon"])] * 2)
    assert of_invex(write(torn), "walltime").counts["rows"].sum() == 12


def test_tasks_share_one_clock(write):
    first = write(table(), 11111)
    write(table(pandaid=[n + 50_000 for n in table()["pandaid"]]), 22222)
    records = of_invex(first.parent, "memory", ids_per_s=10).records
    later = records.filter(pl.col("jeditaskid") == 22222)
    assert records.height == 8
    assert later["decided_s"].min() == 5000


def test_a_job_in_two_files_counts_once(write):
    found = of_invex([write(table(), 11111), write(table(), 22222)], "memory")
    assert ("recorded twice", 6) in found.counts.rows()
    assert found.records["jeditaskid"].unique().to_list() == [11111]


def test_scouts_of_a_task_above_900_are_known(write):
    high = [1101, 1101, 1100, 1100, 1100, MERGE]
    assert of_invex(write(table(assignedpriority=high)), "memory").records["is_scout"].sum() == 2


def test_nothing_is_asked_for_without_scouts(write):
    frame = table(assignedpriority=[500] * 5 + [MERGE])
    assert of_invex(write(frame), "memory").records["requested"].null_count() == 4


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"quantity": "disk"}, "quantity = 'disk'"),
        ({"at": "end"}, "at = 'end'"),
        ({"ids_per_s": 0.0}, "ids_per_s = 0"),
        ({"ids_per_s": float("nan")}, "ids_per_s = nan"),
    ],
)
def test_wrong_choices_are_refused(write, wrong, said):
    with pytest.raises(ConfigError, match=said):
        of_invex(write(table()), **({"quantity": "memory"} | wrong))


def test_other_files_are_refused(tmp_path, write):
    with pytest.raises(DataError, match="no file job_records"):
        of_invex(tmp_path, "memory")
    with pytest.raises((DataError, SchemaError)):
        of_invex(write(pl.DataFrame({"pandaid": [1], "x": [2]})), "memory")
    with pytest.raises(InsufficientDataError, match="merge job: 1"):
        of_invex(write(table().tail(1)), "memory")


@pytest.mark.real_data
@pytest.mark.skipif(not REAL.is_dir(), reason="real data 'panda-invex-jobs' is not here")
def test_real_tasks_have_their_ten_scouts_and_no_row_is_lost():
    found = of_invex(REAL, "memory")
    scouts = found.records.filter("is_scout").group_by("jeditaskid").len()
    assert scouts["len"].unique().to_list() == [10]
    assert found.counts["rows"].sum() >= 668 + 480 + 249 + 10886
    assert found.records["used"].is_between(1, 64_000).all()
    one = found.records.filter(pl.col("jeditaskid") == 13776794, "is_scout")
    assert one["requested"].unique().to_list() == [11400]
