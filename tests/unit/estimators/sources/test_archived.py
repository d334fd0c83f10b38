"""Records from an archive: who was killed at which limit, what was asked for, and every row accounted for."""

from __future__ import annotations

from datetime import datetime, timedelta

import polars as pl
import pytest

from brokerlab.archive import ArchiveWriter
from brokerlab.errors import ConfigError, InsufficientDataError
from brokerlab.estimators.sources import of_archive

T0 = datetime(2026, 3, 1)
MEMORY, WALLTIME = 1212, 1213
NAMES = ["scout", "plain", "per core", "merge", "memory", "limit", "walltime", "payload", "user"]


def jobs() -> pl.DataFrame:
    """One job of each sort, created a minute apart, started 10 min later, ended 20 min after that."""
    n = len(NAMES)
    created = [T0 + timedelta(minutes=i) for i in range(n)]
    failed = ["memory", "limit", "walltime", "payload"]
    return pl.DataFrame(
        {
            "pandaid": range(1, n + 1),
            "jeditaskid": [1, 1, 2, 1, 1, 1, 1, 1, 1],
            "parentid": [None] * n,
            "prodsourcelabel": ["managed"] * 8 + ["user"],
            "processingtype": ["reco"] * 3 + ["pmerge"] + ["reco"] * 5,
            "transformation": ["Reco_tf.py"] * n,
            "specialhandling": ["ddm,sj"] + [None] * 8,
            "jobstatus": ["failed" if name in failed else "finished" for name in NAMES],
            "piloterrorcode": [0, 0, 0, 0, MEMORY, 1235, WALLTIME, 1305, 0],
            "computingsite": ["A", "B", "A", "A", "A", "A", "A", "A", "A"],
            "actualcorecount": [1, 1, 8, 1, 1, 1, 1, 1, 1],
            "nevents": [10, 20, 30, 0, 0, 0, 0, 0, 10],
            "inputfilebytes": [2**20] * 8 + [0],
            "maxpss": [2**20, 2**21, 2**23, 2**20, 3 * 2**20, 0, 2**20, 2**20, 2**20],
            "minramcount": [2000, 0, 16000, 0, 2500, 2700, 2000, 2000, 2000],
            "maxwalltime": [0, 1200, 0, 0, 0, 0, 1100, 0, 0],
            "maxcpucount": [7200, 60, 0, 0, 0, 0, 1100, 0, 0],
            "creationtime": created,
            "starttime": [t + timedelta(minutes=10) for t in created],
            "endtime": [t + timedelta(minutes=30) for t in created],
            "modificationtime": [t + timedelta(minutes=31) for t in created],
        },
        strict=False,
    )


def tasks() -> pl.DataFrame:
    return pl.DataFrame(
        {
            "jeditaskid": [1, 2],
            "vo": ["atlas"] * 2,
            "prodsourcelabel": ["managed"] * 2,
            "status": ["done"] * 2,
            "ramunit": [None, "MBPerCore"],
            "orig_ramcount": [4000, 2000],
            "baseramcount": [500, 500],
            "maxwalltime": [None, 86_400],
            "creationdate": [T0] * 2,
            "modificationtime": [T0] * 2,
        }
    )


def inputs() -> dict[str, pl.DataFrame]:
    """Files of the killed jobs: two ranges (one exported twice) and a secondary input of one, nothing known of the other."""
    kinds = ["input", "input", "input", "output", "input", "input"]
    files = {
        "jeditaskid": [1] * 6,
        "datasetid": [10, 10, 11, 12, 10, 10],
        "fileid": [1, 2, 3, 4, 5, 2],
        "attemptnr": [1] * 5 + [0],
        "pandaid": [5, 5, 5, 5, 6, 5],
        "type": kinds,
        "status": ["failed"] * 5 + ["running"],
        "nevents": [100, 50, 1000, 7, None, 50],
        "startevent": [0, None, None, None, None, None],
        "endevent": [19, None, None, None, None, None],
    }
    datasets = {
        "jeditaskid": [1] * 3,
        "datasetid": [10, 11, 12],
        "type": ["input", "input", "output"],
        "masterid": [None, 10, None],
    }
    return {"files": pl.DataFrame(files), "datasets": pl.DataFrame(datasets)}


@pytest.fixture
def archive(tmp_path):
    def written(rows: pl.DataFrame, *, alone: bool = False):
        with ArchiveWriter(tmp_path / "archive") as writer:
            writer.write("jobs", rows)
            if not alone:
                writer.write("tasks", tasks())
                queues = {"panda_queue": ["A", "B"], "corepower": [12.5, 0.0]}
                online = {"type": ["production"] * 2, "status": ["online"] * 2}
                writer.write("queues", pl.DataFrame(queues | online))
                for table, frame in inputs().items():
                    writer.write(table, frame)
            writer.commit()
        return tmp_path / "archive"

    return written


def by_name(records: pl.DataFrame) -> dict[str, dict]:
    return {NAMES[row["pandaid"] - 1]: row for row in records.rows(named=True)}


def test_memory_of_jobs_that_finished_or_were_killed_for_it(archive):
    found = by_name(of_archive(archive(jobs()), "memory").records)
    assert {name: row["used"] for name, row in found.items()} == {
        "scout": 1024,
        "plain": 2048,
        "per core": 8192,
        "memory": 3072,
        "limit": 2700,
    }
    assert [name for name, row in found.items() if row["censored"]] == ["memory", "limit"]
    assert [name for name, row in found.items() if row["is_scout"]] == ["scout"]
    assert found["plain"]["requested"] == 4000
    assert found["per core"]["requested"] == 8 * 2000 + 500
    assert found["plain"]["sent"] is None
    assert found["per core"]["sent"] == 16_000
    assert found["scout"]["kind"] == "reco Reco_tf.py"
    assert (found["scout"]["corepower"], found["plain"]["corepower"]) == (12.5, None)
    # as asked for: that nothing was processed is known only once a job was killed
    assert [found[n]["events"] for n in ("plain", "memory", "limit")] == [20, 70, None]


def test_walltime_of_jobs_that_finished_or_were_killed_for_it(archive):
    found = by_name(of_archive(archive(jobs()), "walltime").records)
    assert set(found) == {"scout", "plain", "per core", "walltime"}
    assert {row["used"] for row in found.values()} == {1200}
    assert [name for name, row in found.items() if row["censored"]] == ["walltime"]
    assert [found[n]["sent"] for n in ("scout", "plain", "per core")] == [7200, 1200, None]
    assert [found[n]["requested"] for n in ("scout", "per core")] == [None, 86_400]


def test_times_are_seconds_and_a_decision_may_be_at_the_start(archive):
    path = archive(jobs())
    submit, start = (of_archive(path, "memory", at=at).records[0] for at in ("submit", "start"))
    assert submit["ended_s"][0] - submit["decided_s"][0] == 1800
    assert start["ended_s"][0] - start["decided_s"][0] == start["wall_s"][0] == 1200
    assert submit["decided_s"][0] == (T0 - datetime(1970, 1, 1)).total_seconds()


def test_every_row_of_the_labels_is_kept_or_counted(archive):
    path = archive(jobs())
    counts = of_archive(path, "memory").counts
    assert counts.rows() == [
        ("kept", 5),
        ("failed, though not at the limit of memory", 2),
        ("merge job", 1),
    ]
    assert of_archive(path, "memory", labels=("managed", "user")).counts["rows"].sum() == 9


def test_a_killed_job_that_was_tried_again_is_left_to_the_new_try(archive):
    again = jobs().with_columns(parentid=pl.when(pl.col("pandaid") == 3).then(5))
    found = of_archive(archive(again), "memory")
    assert ("failed, and tried again", 1) in found.counts.rows()
    assert "memory" not in by_name(found.records)


def test_what_is_odd_is_counted(archive):
    frame = jobs().with_columns(
        jobstatus=pl.when(pl.col("pandaid") == 1).then(pl.lit("cancelled")).otherwise("jobstatus"),
        maxpss=pl.when(pl.col("pandaid") == 2).then(0).otherwise("maxpss"),
        starttime=pl.when(pl.col("pandaid") != 3).then("starttime"),
    )
    rows = of_archive(archive(frame), "memory").counts.rows()
    assert ("jobstatus is cancelled", 1) in rows
    assert ("no memory recorded", 1) in rows
    assert ("no start or end recorded", 1) in rows


def test_without_tasks_and_queues_nothing_was_requested(archive):
    found = of_archive(archive(jobs(), alone=True), "memory")
    assert found.records["requested"].null_count() == found.records.height
    assert found.records["corepower"].null_count() == found.records.height
    assert len(found.notes) == 3
    assert by_name(found.records)["memory"]["events"] is None


def test_wrong_questions_are_refused(archive):
    path = archive(jobs())
    with pytest.raises(ConfigError, match="quantity = 'disk'"):
        of_archive(path, "disk")
    with pytest.raises(ConfigError, match="labels = 'user'"):
        of_archive(path, "memory", labels="user")
    told = r"jobs\.prodsourcelabel: no job has test; there are managed, user"
    with pytest.raises(InsufficientDataError, match=told):
        of_archive(path, "memory", labels=("test",))
