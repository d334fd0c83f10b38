"""Rows in = accepted + quarantined + duplicates; twice is once; killed is nothing."""

import gzip
import itertools
import json
import subprocess
import sys
import textwrap
from datetime import date, datetime, timedelta

import duckdb
import polars as pl
import pytest

from brokerlab import archive
from brokerlab.archive import merge, spill
from brokerlab.archive.given import tables_of
from brokerlab.archive.ingestion import ingest
from brokerlab.archive.readers import delimited
from brokerlab.errors import BrokerlabError, DataError, SchemaError


def fates(report):
    return {(source, table): tuple(counts) for source, table, *counts in report.frame().iter_rows()}


def tree(folder):
    return {p: p.read_bytes() for p in folder.rglob("*") if p.is_file()}


def stored(folder, table, *columns):
    frame = archive.open(folder).scan(table).select(*columns).collect()
    return sorted(frame.rows(), key=repr)


def test_a_clean_source(tmp_path, make_jobs, write_csv):
    report = ingest([write_csv(make_jobs(5))], tmp_path / "a")
    assert fates(report) == {("jobs.csv", "jobs"): (5, 5, 0, 0)}
    assert archive.open(tmp_path / "a").manifest.counts["jobs"] == 5


def test_the_same_file_twice_changes_nothing(tmp_path, make_jobs, write_csv):
    source = write_csv(make_jobs(5, maxpss=[1, 2, 3, 4, -5]))
    ingest([source], tmp_path / "a")
    before = tree(tmp_path / "a")
    report = ingest([source], tmp_path / "a")
    assert report.skipped == ("jobs.csv",)
    assert report.sources == ()
    assert tree(tmp_path / "a") == before


def test_the_same_rows_in_another_file_change_no_table(tmp_path, make_jobs, write_csv):
    jobs = make_jobs(5)
    first = ingest([write_csv(jobs)], tmp_path / "a")
    upper = write_csv(jobs.reverse().rename(str.upper), "JOBSARCHIVED4.csv")
    second = ingest([upper], tmp_path / "a")
    assert fates(second) == {("JOBSARCHIVED4.csv", "jobs"): (5, 0, 0, 5)}
    assert second.manifest.digest == first.manifest.digest


def test_the_same_file_named_twice_is_read_once(tmp_path, make_jobs, write_csv):
    source = write_csv(make_jobs(5))
    report = ingest([source, source], tmp_path / "a")
    assert fates(report) == {("jobs.csv", "jobs"): (5, 5, 0, 0)}
    assert report.skipped == ("jobs.csv",)


def test_refused_rows_are_kept_with_reasons_and_the_counts_add_up(tmp_path, make_jobs, write_csv):
    bad = make_jobs(6, pandaid=[1, 1, 3, 4, 5, 6], maxpss=[1, 2, -3, 4, 5, 6])
    bad = bad.with_columns(jobstatus=pl.Series(["finished"] * 3 + [None, "failed", "closed"]))
    report = ingest([write_csv(bad)], tmp_path / "a")
    assert fates(report) == {("jobs.csv", "jobs"): (6, 3, 2, 1)}
    assert stored(tmp_path / "a", "quarantine", "source", "row", "key", "reason") == [
        ("jobs.csv", 3, "pandaid=3", "maxpss -3 is negative, allowed: 0 and above"),
        ("jobs.csv", 4, "pandaid=4", "jobstatus is null, it is required"),
    ]
    assert stored(tmp_path / "a", "jobs", "pandaid", "maxpss") == [(1, 2), (5, 5), (6, 6)]


def test_a_later_state_of_a_job_replaces_the_earlier_one(tmp_path, make_jobs, write_csv):
    old = make_jobs(4, jobstatus=["running"] * 4)
    ingest([write_csv(old)], tmp_path / "a")
    late = old.filter(pl.col("pandaid") <= 2).with_columns(
        jobstatus=pl.lit("finished"), modificationtime=pl.lit(datetime(2026, 4, 1))
    )
    report = ingest([write_csv(late, "jobs_late.csv")], tmp_path / "a")
    assert fates(report) == {("jobs_late.csv", "jobs"): (2, 2, 0, 0)}
    assert report.superseded == {"jobs": 2}
    assert stored(tmp_path / "a", "jobs", "pandaid", "jobstatus") == [
        (1, "finished"), (2, "finished"), (3, "running"), (4, "running"),
    ]  # fmt: skip
    # and the earlier state, read again later, changes nothing
    again = ingest([write_csv(old.reverse(), "jobs_again.csv")], tmp_path / "a")
    assert fates(again) == {("jobs_again.csv", "jobs"): (4, 0, 0, 4)}
    assert again.manifest.digest == report.manifest.digest


def test_both_archive_tables_may_hold_a_job(tmp_path, make_jobs, write_csv):
    jobs = make_jobs(3)
    report = ingest(
        [write_csv(jobs, "JOBSARCHIVED4.csv"), write_csv(jobs.head(2), "JOBSARCHIVED.csv")],
        tmp_path / "a",
    )
    assert fates(report) == {
        ("JOBSARCHIVED4.csv", "jobs"): (3, 3, 0, 0),
        ("JOBSARCHIVED.csv", "jobs"): (2, 0, 0, 2),
    }


def test_two_sources_that_contradict_each_other(tmp_path, make_jobs, write_csv):
    one = write_csv(make_jobs(3), "jobs_one.csv")
    two = write_csv(make_jobs(3, maxpss=[2_000_000, 5, 2_000_000]), "jobs_two.csv")
    report = ingest([one, two], tmp_path / "a")
    assert fates(report)[("jobs_two.csv", "jobs")] == (3, 0, 1, 2)
    assert stored(tmp_path / "a", "quarantine", "source", "row", "reason") == [
        ("jobs_two.csv", 2, "maxpss 5 contradicts 2000000 (kept, of jobs_one.csv)")
    ]
    three = write_csv(make_jobs(3, maxpss=[9, 2_000_000, 2_000_000]), "jobs_three.csv")
    ingest([three], tmp_path / "a")
    assert (
        "jobs_three.csv", 1, "maxpss 9 contradicts 2000000 (kept, of the archive)",
    ) in stored(tmp_path / "a", "quarantine", "source", "row", "reason")  # fmt: skip


def test_a_second_source_fills_what_the_first_left_open(tmp_path, make_jobs, write_csv):
    ingest([write_csv(make_jobs(2, gshare=[None, "A"]))], tmp_path / "a")
    more = write_csv(make_jobs(2, gshare=["B", None], colour=["x", "y"]), "jobs_more.csv")
    report = ingest([more], tmp_path / "a")
    assert fates(report) == {("jobs_more.csv", "jobs"): (2, 0, 0, 2)}
    assert stored(tmp_path / "a", "jobs", "pandaid", "gshare", "maxpss") == [
        (1, "B", 2_000_000), (2, "A", 2_000_000),
    ]  # fmt: skip


def test_a_row_of_the_archive_is_filled_in_columns_that_none_of_its_rows_has(tmp_path, make_jobs):
    ingest({"jobs": make_jobs(2)}, tmp_path / "a")
    ingest({"jobs": make_jobs(2, colour=["x", None])}, tmp_path / "a")
    assert stored(tmp_path / "a", "jobs", "pandaid", "colour") == [(1, "x"), (2, None)]


def test_a_column_beside_the_contract_stays_while_a_row_has_a_value_in_it(tmp_path, make_jobs):
    ingest({"jobs": make_jobs(2, colour=["x", "y"], size=[1, None])}, tmp_path / "a")
    ingest({"jobs": make_jobs(1, modificationtime=[datetime(2030, 1, 1)])}, tmp_path / "a")
    assert "size" not in archive.open(tmp_path / "a").scan("jobs").collect_schema()
    assert stored(tmp_path / "a", "jobs", "pandaid", "colour") == [(1, None), (2, "y")]


def task_row(**values):
    base = {
        "jeditaskid": [7],
        "vo": ["atlas"],
        "prodsourcelabel": ["managed"],
        "status": ["done"],
        "creationdate": ["2026-03-01 00:00:00"],
        "modificationtime": ["2026-03-02 00:00:00"],
        "ramunit": ["MBPerCore"],
    }
    return pl.DataFrame({**base, **values})


def test_fill_completes_rows_and_tells_contradictions(tmp_path, write_csv):
    ingest([write_csv(task_row(), "tasks.csv")], tmp_path / "a")
    fill = write_csv(
        pl.DataFrame({"jeditaskid": [7, 8], "baseramcount": [2000, 1]}), "fill/tasks.csv"
    )
    report = ingest([], tmp_path / "a", fill=[fill])
    assert fates(report) == {(str(fill), "tasks"): (2, 0, 1, 1)}
    assert stored(tmp_path / "a", "tasks", "jeditaskid", "baseramcount") == [(7, 2000)]
    assert stored(tmp_path / "a", "quarantine", "row", "reason") == [
        (2, "fills nothing: the archive has no row with this key")
    ]
    other = write_csv(pl.DataFrame({"jeditaskid": [7], "ramunit": ["MB"]}), "fill2/tasks.csv")
    ingest([], tmp_path / "a", fill=[other])
    assert (1, "ramunit MB contradicts MBPerCore (kept, of the archive)") in stored(
        tmp_path / "a", "quarantine", "row", "reason"
    )


def test_fill_works_in_the_same_run_as_its_rows(tmp_path, write_csv):
    rows = write_csv(task_row(), "tasks.csv")
    fill = write_csv(pl.DataFrame({"jeditaskid": [7], "baseramcount": [2000]}), "fill/tasks.csv")
    ingest([rows], tmp_path / "a", fill=[fill])
    assert stored(tmp_path / "a", "tasks", "jeditaskid", "baseramcount") == [(7, 2000)]


def test_mixed_units_are_settled_and_told(tmp_path, make_jobs, write_csv):
    jobs = make_jobs(3, maxpss=[51.18, 60_000.0, 51.18], avgpss=[52_382, 52_382, None])
    report = ingest([write_csv(jobs)], tmp_path / "a")
    assert stored(tmp_path / "a", "jobs", "pandaid", "maxpss") == [(1, 52_408), (2, 60_000)]
    assert report.sources[0].notes == (
        "maxpss: 1 value(s) below avgpss/100 read as MB, converted to kB",
    )
    assert stored(tmp_path / "a", "quarantine", "row", "reason") == [
        (3, "maxpss '51.18' cannot be read as a whole number")
    ]


def test_tasks_without_files_get_stand_ins_until_real_files_come(tmp_path, make_jobs, write_csv):
    kinds = [None, None, None, "pmerge"]
    jobs = make_jobs(4, processingtype=kinds, jobstatus=["finished", "failed", "finished", "finished"],
                     inputfilebytes=[10, 20, None, 40], ninputdatafiles=[2, None, 1, 5],
                     nevents=[3, 0, None, 9])  # fmt: skip
    report = ingest([write_csv(jobs)], tmp_path / "a")
    assert report.approximated == 1
    assert stored(tmp_path / "a", "files", "pandaid", "datasetid", "type", "status", "fsize",
                  "nevents", "approximate") == [
        (1, 0, "input", "finished", 10, 3, True),
        (2, 0, "input", "failed", 20, None, True),
        (3, 0, "pseudo_input", "finished", None, None, True),
        (4, 1, "trn_output", "finished", 40, 9, True),
    ]  # fmt: skip
    assert stored(tmp_path / "a", "datasets", "datasetid", "type", "masterid", "nfiles",
                  "nfilesfinished", "nfilesfailed") == [
        (0, "input", None, 4, 3, 1), (1, "trn_output", None, 5, 5, 0),
    ]  # fmt: skip
    real = pl.DataFrame({"jeditaskid": [7], "datasetid": [50], "fileid": [1], "pandaid": [1],
                         "type": ["input"], "status": ["finished"], "fsize": [10]})  # fmt: skip
    report = ingest([write_csv(real, "files.csv")], tmp_path / "a")
    assert report.approximated == 0
    assert stored(tmp_path / "a", "files", "datasetid", "pandaid") == [(50, 1)]
    assert "datasets" not in archive.open(tmp_path / "a").manifest.counts


def test_files_have_a_row_per_attempt_and_tables_given_by_name_no_row_twice(tmp_path, write_csv):
    """The key of files is task, dataset, file and attempt (archive.md, section 4)."""
    rows = pl.DataFrame({"jeditaskid": [7, 7], "datasetid": [50, 50], "fileid": [1, 2], "type": ["input"] * 2,
                         "status": ["ready", "finished"], "pandaid": [1, 2], "attemptnr": [0, 1]})  # fmt: skip
    later = rows.with_columns(pandaid=3, status=pl.lit("finished"), attemptnr=2).head(1)
    ingest([write_csv(rows, "files.csv"), write_csv(later, "files_later.csv")], tmp_path / "a")
    assert stored(tmp_path / "a", "files", "fileid", "attemptnr", "pandaid", "status") == [
        (1, 0, 1, "ready"), (1, 2, 3, "finished"), (2, 1, 2, "finished")
    ]  # fmt: skip
    tables = {"files": pl.concat([rows, later], how="vertical_relaxed")}
    assert tables_of(tables, ["files"])
    with pytest.raises(DataError, match=r"files: 2 rows have a key .*'fileid': 2, 'attemptnr': 1"):
        tables_of({"files": pl.concat([rows, rows.tail(1)])}, ["files"])
    assert tables_of({"files": rows.drop("fileid")}, ["files"])


def test_stand_ins_follow_when_more_jobs_of_a_task_come(tmp_path, make_jobs, write_csv):
    ingest([write_csv(make_jobs(2))], tmp_path / "a")
    ingest([write_csv(make_jobs(2, pandaid=[11, 12]), "jobs2.csv")], tmp_path / "a", table="jobs")
    assert stored(tmp_path / "a", "files", "pandaid") == [(1,), (11,), (12,), (2,)]
    assert stored(tmp_path / "a", "datasets", "datasetid", "nfiles") == [(0, 4)]


def test_a_folder_is_a_source(tmp_path, make_jobs, write_csv):
    write_csv(make_jobs(2), "in/jobs_a.csv")
    write_csv(make_jobs(2, pandaid=[3, 4]), "in/jobs_b.csv")
    (tmp_path / "in" / "README.md").write_text("no data")
    report = ingest([tmp_path / "in"], tmp_path / "a")
    assert [s.name for s in report.sources] == ["jobs_a.csv", "jobs_b.csv"]
    (tmp_path / "empty").mkdir()
    with pytest.raises(DataError, match=r"no file to read in it; allowed: \.parquet, \.csv"):
        ingest([tmp_path / "empty"], tmp_path / "a")


def test_files_of_one_name_are_told_apart(tmp_path, make_jobs, write_csv):
    one = write_csv(make_jobs(2), "x/jobs.csv")
    two = write_csv(make_jobs(2, maxpss=[1, 2_000_000]), "y/jobs.csv")
    report = ingest([one, two], tmp_path / "a")
    assert [s.name for s in report.sources] == ["jobs.csv", str(two)]
    assert report.sources[1].quarantined == {"jobs": 1}


def test_parquet_and_csv_give_the_same_archive(tmp_path, make_jobs, write_csv):
    jobs = make_jobs(20)
    jobs.write_parquet(tmp_path / "jobs.parquet")
    one = ingest([write_csv(jobs)], tmp_path / "a")
    two = ingest([tmp_path / "jobs.parquet"], tmp_path / "b")
    assert one.manifest.digest == two.manifest.digest


@pytest.mark.parametrize(
    ("run", "settled", "compared"), [(1, 9, 1000), (1, 1000, 5), (1 << 30, 7, 11)]
)
def test_what_memory_does_not_hold_gives_the_same_rows(
    tmp_path, make_jobs, write_csv, monkeypatch, run, settled, compared
):
    monkeypatch.setattr(delimited, "BLOCK_BYTES", 2_000)
    jobs = make_jobs(36, pandaid=[i // 2 for i in range(36)]).with_columns(
        [pl.lit(datetime(2026, 3, 1, h)).alias(c) for h, c in enumerate(
            ["creationtime", "starttime", "endtime", "modificationtime"])]
    )  # fmt: skip
    source = write_csv(jobs)
    whole = ingest([source], tmp_path / "a")
    monkeypatch.setattr(spill, "RUN_BYTES", run)
    monkeypatch.setattr(merge, "SETTLED_ROWS", settled)
    monkeypatch.setattr(merge, "COMPARED_KEYS", compared)
    report = ingest([source], tmp_path / "b")
    assert fates(report) == {("jobs.csv", "jobs"): (36, 18, 0, 18)}
    assert report.manifest.digest == whole.manifest.digest
    late = jobs.with_columns(pl.col("modificationtime") + timedelta(days=400), gshare=pl.lit("x"))
    report = ingest([write_csv(late, "jobs_late.csv")], tmp_path / "b")
    assert report.superseded == {"jobs": 18}
    assert stored(tmp_path / "b", "jobs", "gshare") == [("x",)] * 18
    assert stored(tmp_path / "a", "jobs", "pandaid") == stored(tmp_path / "b", "jobs", "pandaid")


def test_a_job_of_two_tasks_and_days_is_one_row(tmp_path, make_jobs, write_csv, monkeypatch):
    monkeypatch.setattr(spill, "RUN_BYTES", 1)
    monkeypatch.setattr(delimited, "BLOCK_BYTES", 2_000)
    jobs = make_jobs(
        60, pandaid=[n % 30 for n in range(60)], jeditaskid=list(range(60)),
        modificationtime=[datetime(2026, 3, 1) + timedelta(days=n // 20) for n in range(60)],
    )  # fmt: skip
    report = ingest([write_csv(jobs)], tmp_path / "a")
    assert fates(report) == {("jobs.csv", "jobs"): (60, 30, 0, 30)}
    assert stored(tmp_path / "a", "jobs", "jeditaskid") == [(n,) for n in range(30, 60)]


@pytest.mark.parametrize("highest", [99, 2**63 - 1])
def test_rows_sorted_as_one_number_lie_as_sorted_by_columns(highest):
    rows = pl.DataFrame(
        {
            "day": [date(2026, 3, 1 + n % 3) for n in range(60)],
            "task": [None if n % 7 == 0 else n % 5 - 2 for n in range(60)],
            "job": [highest, *((37 * n) % 61 - 2**62 * (highest > 99) for n in range(1, 60))],
        }
    )
    for by in (["day", "task", "job"], ["task", "job"], ["job"]):
        expected = rows.sort(by, nulls_last=True)
        assert spill.in_order(rows.clone(), by).equals(expected)
        assert spill.in_order(expected.clone(), by).equals(expected)


def test_rows_that_are_settled_are_on_disk_once(tmp_path, monkeypatch):
    monkeypatch.setattr(spill, "RUN_BYTES", 1)
    staged = spill.Spill(tmp_path, "tasks")
    for key in ([1, 2], [3, 4], [5, 6]):
        staged.put(pl.DataFrame({"jeditaskid": key}))
    digests = staged.columns(spill.KEY).collect()[spill.KEY]
    taken = staged.split(digests.head(4).sort())
    assert len([*tmp_path.iterdir()]) == 3
    found = [pl.concat(rows.pieces(9))["jeditaskid"].sort().to_list() for rows in (taken, staged)]
    assert found == [[1, 2, 3, 4], [5, 6]]


def test_an_empty_table_is_no_error(tmp_path, make_jobs, write_csv):
    report = ingest([write_csv(make_jobs(0))], tmp_path / "a")
    assert fates(report) == {("jobs.csv", "jobs"): (0, 0, 0, 0)}


def test_missing_columns_are_named_and_nothing_is_changed(tmp_path, make_jobs, write_csv):
    ingest([write_csv(make_jobs(2))], tmp_path / "a")
    before = tree(tmp_path / "a")
    good = write_csv(make_jobs(2, pandaid=[8, 9]), "jobs_good.csv")
    bad = write_csv(make_jobs(2).drop("pandaid", "jobstatus"), "jobs_bad.csv")
    with pytest.raises(SchemaError) as caught:
        ingest([good, bad], tmp_path / "a")
    assert "jobs_bad.csv: jobs.pandaid: required column is missing" in str(caught.value)
    assert "jobs.jobstatus: required column is missing" in str(caught.value)
    assert tree(tmp_path / "a") == before


def test_after_a_refusal_the_same_folder_may_be_tried_again(tmp_path, make_jobs):
    one = make_jobs(2).with_columns(odd=pl.Series([[1], [2]]))
    two = make_jobs(2, pandaid=[8, 9]).with_columns(odd=pl.lit("text"))
    tasks = task_row()
    with pytest.raises(SchemaError, match="cannot stand in one table"):
        ingest({"tasks": tasks, "jobs": [one, two]}, tmp_path / "a")
    assert not [p for p in (tmp_path / "a").iterdir() if p.is_dir()]
    ingest({"tasks": tasks, "jobs": one}, tmp_path / "a")
    assert len(stored(tmp_path / "a", "jobs", "pandaid")) == 2


def test_all_files_that_cannot_be_recognised_are_named_at_once(tmp_path):
    (tmp_path / "jobs.csv").touch()
    with pytest.raises(DataError) as caught:
        ingest([tmp_path / "jobs.csv", tmp_path / "no.csv"], tmp_path / "a")
    assert "jobs.csv: is empty" in str(caught.value)
    assert "no.csv: no such file" in str(caught.value)


def test_what_is_wrong_in_several_sources_and_tables_is_told_at_once(
    tmp_path, make_jobs, write_csv
):
    wrong = {
        "a.jobs.csv": (make_jobs(2).drop("jobstatus"), "a.jobs.csv: jobs.jobstatus: required"),
        "b.jobs.csv": (
            make_jobs(2).with_columns(starttime=pl.Series(["02/03/2026 01:00:00"] * 2)),
            "b.jobs.csv: starttime '02/03/2026 01:00:00' (row 1) may be day/month or month/day",
        ),
        "tasks.csv": (task_row().drop("vo"), "tasks.csv: tasks.vo: required column is missing"),
    }
    sources = [write_csv(frame, name) for name, (frame, _) in wrong.items()]
    base = tmp_path / "x.duckdb"
    with duckdb.connect(base) as connection:
        for table in ("resource_types", "software_tags"):
            connection.execute(f"create table {table} as select 5 as mincore")
    good = write_csv(make_jobs(2), "0.jobs.csv")
    words = [
        *(said for _, said in wrong.values()),
        "x.duckdb: resource_types.resource_name: required column is missing",
        "x.duckdb: software_tags.panda_queue: required column is missing",
    ]
    for more, said in (([], []), ([tmp_path / "no.csv"], ["no.csv: no such file"])):
        with pytest.raises(BrokerlabError) as caught:
            ingest([good, *sources, base, *more], tmp_path / "a")
        for one in [*words, *said]:
            assert str(caught.value).count(one) == 1
    assert not [p for p in (tmp_path / "a").iterdir() if p.is_dir()]


def test_a_truncated_source_changes_nothing(tmp_path, make_jobs, write_csv):
    ingest([write_csv(make_jobs(2))], tmp_path / "a")
    before = tree(tmp_path / "a")
    packed = gzip.compress(write_csv(make_jobs(5000), "x.csv").read_bytes())
    cut = tmp_path / "jobs_cut.csv.gz"
    cut.write_bytes(packed[: len(packed) // 2])
    with pytest.raises(DataError, match=r"jobs_cut\.csv\.gz: truncated or damaged gzip"):
        ingest([cut], tmp_path / "a")
    assert tree(tmp_path / "a") == before


def test_ten_megabyte_strings_in_sources(tmp_path, make_jobs, write_csv):
    huge = "z" * 10_000_000
    in_csv = write_csv(make_jobs(2, produsername=[huge, "me"]))
    report = ingest([in_csv], tmp_path / "a")
    assert fates(report) == {("jobs.csv", "jobs"): (2, 1, 1, 0)}
    reason = stored(tmp_path / "a", "quarantine", "reason")
    assert reason == [("produsername has 10000000 bytes, allowed: 65536",)]
    task = task_row(taskname=[huge]).to_dicts()
    path = tmp_path / "t.json"
    path.write_text(json.dumps(task))
    report = ingest([path], tmp_path / "a")
    assert fates(report) == {("t.json", "tasks"): (1, 0, 1, 0)}
    files = [p for p in (tmp_path / "a").rglob("*") if p.is_file()]
    assert sum(p.stat().st_size for p in files) < 200_000


def test_an_archive_of_a_newer_schema_is_not_written_to(tmp_path, make_jobs, write_csv):
    source = write_csv(make_jobs(2))
    ingest([source], tmp_path / "a")
    manifest = tmp_path / "a" / "manifest.json"
    manifest.write_text(manifest.read_text().replace('"schema_version": 2', '"schema_version": 9'))
    before = tree(tmp_path / "a")
    with pytest.raises(
        DataError, match="written with archive schema 9, this brokerlab reads up to 2"
    ):
        ingest([write_csv(make_jobs(3), "jobs_b.csv")], tmp_path / "a")
    assert tree(tmp_path / "a") == before


@pytest.mark.parametrize(
    "where",
    [
        "brokerlab.archive.ingestion.merge",
        "brokerlab.archive.approximate.refresh",
        "brokerlab.archive.writer._switch",
    ],
)
def test_killed_at_any_moment_the_old_archive_stays(tmp_path, make_jobs, write_csv, where):
    folder = tmp_path / "a"
    first = ingest([write_csv(make_jobs(3))], folder)
    late = make_jobs(4).with_columns(pl.col("modificationtime") + timedelta(days=9))
    source = write_csv(late, "jobs_late.csv")
    script = textwrap.dedent(
        f"""
        import importlib, os, signal, sys
        from brokerlab.archive.ingestion import ingest
        home, name = "{where}".rsplit(".", 1)
        setattr(importlib.import_module(home), name, lambda *_: os.kill(os.getpid(), signal.SIGKILL))
        ingest([sys.argv[1]], sys.argv[2])
        """
    )
    done = subprocess.run(  # noqa: S603
        [sys.executable, "-c", script, str(source), str(folder)], check=False
    )
    assert done.returncode == -9
    assert archive.open(folder).digest == first.manifest.digest
    assert ingest([source], folder).superseded == {"jobs": 3}
    names = {p.relative_to(folder).as_posix() for p in folder.rglob("*") if p.is_file()}
    live = {file.path for file in archive.open(folder).manifest.files()}
    before = {file.path for file in first.manifest.files()}  # until the next commit
    assert names == live | before | {"manifest.json", ".lock"}


def test_progress_is_told(tmp_path, make_jobs, write_csv):
    told = []
    ingest([write_csv(make_jobs(3))], tmp_path / "a", progress=lambda *step: told.append(step))
    assert told == [(0, 1, "jobs.csv", 3)]


def test_rows_lie_by_task_whatever_their_order(tmp_path, make_jobs, write_csv, monkeypatch):
    """A task is in one file of each day, and files of a day hold neighbouring tasks."""
    tasks = [(37 * n) % 50 for n in range(400)]
    days = [datetime(2026, 3, 1, 12) + timedelta(days=n % 2) for n in range(400)]
    source = write_csv(make_jobs(400, jeditaskid=tasks, modificationtime=days))
    ingest([source], tmp_path / "whole")
    monkeypatch.setattr(spill, "RUN_BYTES", 1)
    monkeypatch.setattr(delimited, "BLOCK_BYTES", 4_000)
    monkeypatch.setattr(merge, "FILE_ROWS", 60)
    ingest([source], tmp_path / "a")
    assert stored(tmp_path / "a", "jobs", "*") == stored(tmp_path / "whole", "jobs", "*")
    for day in sorted((tmp_path / "a" / "jobs").iterdir()):
        found = [pl.read_parquet(file)["jeditaskid"] for file in day.glob("*.parquet")]
        assert len(found) == 4
        assert all(file.is_sorted() for file in found)
        held = [set(file) for file in sorted(found, key=min)]
        assert all(max(a) < min(b) for a, b in itertools.pairwise(held))


def test_rows_of_no_task_are_kept(tmp_path, make_jobs, write_csv, monkeypatch):
    monkeypatch.setattr(spill, "RUN_BYTES", 1)
    monkeypatch.setattr(delimited, "BLOCK_BYTES", 1_000)
    monkeypatch.setattr(merge, "FILE_ROWS", 10)
    source = write_csv(make_jobs(40, jeditaskid=[None if n % 3 else n for n in range(40)]))
    ingest([source], tmp_path / "a")
    assert archive.open(tmp_path / "a").manifest.counts["jobs"] == 40


def test_who_opened_the_archive_finishes_on_what_it_was(tmp_path, make_jobs, write_csv):
    """Files that a commit supersedes stay until the next one."""
    folder, jobs = tmp_path / "a", make_jobs(30)
    later = jobs.with_columns(pl.col("modificationtime") + pl.duration(minutes=1), maxpss=pl.lit(7))
    ingest([write_csv(jobs, "first.csv")], folder)
    opened = archive.open(folder)
    rows = opened.scan("jobs")
    ingest([write_csv(later, "second.csv")], folder)
    assert rows.collect()["maxpss"].to_list() != [7] * 30
    assert set(archive.open(folder).scan("jobs").collect()["maxpss"]) == {7}
    last = later.with_columns(pl.col("modificationtime") + pl.duration(minutes=1))
    ingest([write_csv(last, "third.csv")], folder)
    superseded = [file.path for file in opened.manifest.files() if file.path.startswith("jobs")]
    assert superseded
    assert not any((folder / path).exists() for path in superseded)
