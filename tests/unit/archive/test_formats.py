"""Records a line, hits of searches, databases, folders and frames: read whole, or refused with the reason."""

import json
import sqlite3
from datetime import datetime, timedelta
from decimal import Decimal

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from brokerlab import archive
from brokerlab.archive import ingest
from brokerlab.archive.readers import delimited, lines
from brokerlab.errors import DataError, SchemaError

JOB = {
    "pandaid": 1,
    "jobstatus": "finished",
    "prodsourcelabel": "user",
    "creationtime": "2026-01-01 00:00:00",
    "modificationtime": "2026-01-01 02:00:00",
}


def fate(report):
    return tuple(
        report.frame().select("rows", "accepted", "quarantined", "duplicates").sum().row(0)
    )


def reasons(folder):
    return archive.open(folder).scan("quarantine").sort("row").collect()["reason"].to_list()


def typed(**columns):
    time = [datetime(2026, 1, 1)]
    base = {name: [value] for name, value in JOB.items()} | {
        "creationtime": time,
        "modificationtime": time,
    }
    return pa.table({**base, **columns})


# records, one a line


def test_lines_that_hold_no_record_are_refused_by_their_number(tmp_path, monkeypatch):
    monkeypatch.setattr(lines, "BATCH_ROWS", 2)
    path = tmp_path / "jobs.ndjson"
    good = json.dumps(JOB)
    deep = '{"a":' * 5000 + "1" + "}" * 5000
    wrong = ["5", '{"pandaid": 1, "pandaid": 2}', '{"pandaid": 2', '{"pandaid": "\\ud800"}', deep]
    path.write_text("\n".join([good, *wrong, "", good.replace("1,", "9,", 1)]) + "\n")
    assert fate(ingest(path, tmp_path / "a")) == (7, 2, 5, 0)
    found = reasons(tmp_path / "a")
    assert found[0] == "is no record of names and values: 5"
    assert found[1] == "is no record of names and values: names occur twice: pandaid"
    assert found[2].startswith("line 4 is no JSON (")
    assert found[3] == "line 5 holds half a character (such as \\ud800)"
    assert found[4].startswith("line 6 is no JSON (")


def test_a_line_without_end_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(lines, "MAX_LINE", 100)
    path = tmp_path / "jobs.jsonl"
    path.write_text(json.dumps({**JOB, "note": "x" * 200}) + "\n")
    with pytest.raises(DataError, match=r"jobs\.jsonl: line 1 has more than"):
        ingest(path, tmp_path / "a")


def test_records_of_other_names_than_the_first_are_read(tmp_path, monkeypatch):
    monkeypatch.setattr(lines, "BATCH_ROWS", 1)
    path = tmp_path / "jobs.ndjson"
    path.write_text(json.dumps({"pandaid": 2}) + "\n" + json.dumps({**JOB, "gshare": "A"}) + "\n")
    assert fate(ingest(path, tmp_path / "a")) == (2, 1, 1, 0)
    assert archive.open(tmp_path / "a").scan("jobs").collect()["gshare"].to_list() == ["A"]


def test_more_names_than_a_table_can_have_are_refused(tmp_path):
    path = tmp_path / "jobs.ndjson"
    path.write_text("".join(json.dumps({f"k{i}": i}) + "\n" for i in range(5000)))
    with pytest.raises(SchemaError, match="4097 columns, allowed: 4096"):
        ingest(path, tmp_path / "a")


def test_nested_answers_by_address_are_read_once(tmp_path):
    path = tmp_path / "x.json"
    path.write_text('{"http://x": ' * 60 + "[]" + "}" * 60)
    with pytest.raises(DataError, match="neither jobs"):
        ingest(path, tmp_path / "a")


# hits of searches


def test_a_search_that_tells_of_more_hits_says_so(tmp_path):
    path = tmp_path / "export.json"
    hits = [{"_index": "i", "_id": "1", "_source": JOB, "sort": [1]}, {"_id": "2", "_source": None}]
    path.write_text(
        json.dumps({"timed_out": True, "hits": {"total": {"value": 10_000}, "hits": hits}})
    )
    report = ingest(path, tmp_path / "a")
    assert fate(report) == (2, 1, 1, 0)
    assert report.sources[0].notes == (
        "the answer tells of 10000 hits, 2 are in it: export the rest",
        "the search timed out: hits may be missing",
    )


def test_pages_of_a_scroll_and_hits_of_fields(tmp_path):
    fields = {name: [value] for name, value in {**JOB, "pandaid": 2}.items()}
    pages = [
        {"hits": {"hits": [hit]}}
        for hit in ({"_id": "1", "_source": JOB}, {"_id": "2", "fields": fields})
    ]
    (tmp_path / "pages.json").write_text(json.dumps(pages))
    (tmp_path / "pages.ndjson").write_text("\n".join(map(json.dumps, pages)))
    assert fate(ingest(tmp_path / "pages.json", tmp_path / "a")) == (2, 2, 0, 0)
    assert fate(ingest(tmp_path / "pages.ndjson", tmp_path / "b")) == (2, 2, 0, 0)


def test_fields_beside_the_record_of_a_hit_are_part_of_it(tmp_path):
    hit = {"_id": "1", "_source": JOB, "fields": {"pandaid": [9], "maxpss": [7], "tags": [1, 2]}}
    (tmp_path / "hits.ndjson").write_text(json.dumps(hit))
    ingest(tmp_path / "hits.ndjson", tmp_path / "a")
    jobs = archive.open(tmp_path / "a").scan("jobs").collect()
    assert jobs.select("pandaid", "maxpss").row(0) == (1, 7)
    assert "tags" in jobs.columns


# databases


def test_all_known_tables_of_a_database_are_read_and_others_named(tmp_path):
    with duckdb.connect(tmp_path / "x.duckdb") as connection:
        connection.register("v", typed())
        connection.execute("create table JOBSARCHIVED4 as from v")
        connection.execute("create table colours as select 'red' as name, 10.0 as value")
        connection.execute("create table resource_types as select 'SCORE' as resource_name")
        connection.execute("create view jobs as from read_csv('/etc/hostname')")
        connection.execute("create schema old")
        connection.execute("create table old.jobs as from v")
    report = ingest(tmp_path / "x.duckdb", tmp_path / "a")
    assert {table: n for _, table, n, *_ in report.frame().rows()} == {
        "jobs": 1,
        "resource_types": 1,
    }
    assert report.left_out == (
        "x.duckdb: table colours",
        "x.duckdb: table old.jobs",
        "x.duckdb: view jobs",
    )
    # a copy such as jobs_old is read as jobs, too: it must not go unseen
    assert [source.notes for source in report.sources] == [("table JOBSARCHIVED4 read as jobs",)]
    one = ingest(tmp_path / "x.duckdb", tmp_path / "b", table="resource_types")
    assert fate(one) == (1, 1, 0, 0)
    with pytest.raises(
        SchemaError, match="holds jobs, resource_types; say --table for which of them"
    ):
        ingest(tmp_path / "x.duckdb", tmp_path / "c", mapping={"units": {"maxpss": "MB"}})


def test_intervals_of_duckdb_are_lengths_of_time(tmp_path):
    with duckdb.connect(tmp_path / "jobs.duckdb") as connection:
        connection.register("v", typed())
        connection.execute(
            "create table jobs as select *, interval 90 minute as cpuconsumptiontime, "
            "interval 1 day as kept from v"
        )
    ingest(tmp_path / "jobs.duckdb", tmp_path / "a")
    jobs = archive.open(tmp_path / "a").scan("jobs")
    found = jobs.select("cpuconsumptiontime", "kept").collect().row(0)
    assert found == (5400, timedelta(days=1))


def test_intervals_of_a_relation_are_lengths_of_time(tmp_path):
    with duckdb.connect() as connection:
        connection.register("v", typed())
        made = connection.sql("select *, interval 90 minute as cpuconsumptiontime from v")
        ingest(made, tmp_path / "a", table="jobs")
    jobs = archive.open(tmp_path / "a").scan("jobs").collect()
    assert jobs["cpuconsumptiontime"].to_list() == [5400]


def test_a_database_without_a_known_table(tmp_path):
    with duckdb.connect(tmp_path / "x.duckdb") as connection:
        connection.execute("create table a as select 1 as x; create table b as select 1 as y")
    with pytest.raises(
        DataError, match=r"x\.duckdb: cannot tell which of its tables is 'jobs': it has a, b;"
    ):
        ingest(tmp_path / "x.duckdb", tmp_path / "a", table="jobs")


def test_values_of_any_type_in_a_column_of_sqlite(tmp_path):
    connection = sqlite3.connect(tmp_path / "x.db")
    connection.execute(
        'create table "my ""jobs""" (pandaid, jobstatus, prodsourcelabel, creationtime, modificationtime, maxpss)'
    )
    rows = [
        (1, "finished", "user", JOB["creationtime"], JOB["modificationtime"], "5"),
        (2, b"finished", "user", JOB["creationtime"], JOB["modificationtime"], 5.0),
        ("x", "finished", "user", JOB["creationtime"], 1767225600, b"\xff"),
    ]
    connection.executemany('insert into "my ""jobs""" values (?, ?, ?, ?, ?, ?)', rows)
    connection.execute("create view recent as select 1")
    connection.commit()
    connection.close()
    report = ingest(tmp_path / "x.db", tmp_path / "a")
    assert fate(report) == (3, 2, 1, 0)
    assert report.left_out == ("x.db: view recent",)
    assert reasons(tmp_path / "a")[0].startswith(
        "pandaid 'x' cannot be read as a whole number; modificationtime '1767225600'"
    )


def test_a_database_with_changes_beside_its_file_is_refused(tmp_path):
    connection = sqlite3.connect(tmp_path / "jobs.db")
    connection.execute("pragma journal_mode = wal")
    connection.execute("create table jobs (pandaid)")
    connection.commit()
    with pytest.raises(
        DataError, match=r"jobs\.db: has changes that are still in jobs\.db-wal; close"
    ):
        ingest(tmp_path / "jobs.db", tmp_path / "a")
    connection.close()
    with pytest.raises(SchemaError, match=r"jobs\.jobstatus: required column is missing"):
        ingest(tmp_path / "jobs.db", tmp_path / "a")


@pytest.mark.parametrize("name", ["jobs.duckdb", "jobs.sqlite"])
def test_a_damaged_database_is_named(tmp_path, name):
    magic = b"SQLite format 3\x00" if name.endswith("sqlite") else b"\x00" * 8 + b"DUCK"
    (tmp_path / name).write_bytes(magic + b"\x01" * 5000)
    with pytest.raises(DataError, match=f"{name}: truncated or damaged"):
        ingest(tmp_path / name, tmp_path / "a")


# folders


def test_a_folder_of_parquet_needs_no_names_and_tells_what_it_leaves_out(tmp_path):
    folder = tmp_path / "export"
    for day in (1, 2):
        place = folder / f"computingsite=Q%20{day}" / "deep"
        place.mkdir(parents=True)
        pl.from_arrow(typed(pandaid=[day])).write_parquet(place / "part-0.parquet")
    (folder / "_SUCCESS").touch()
    (folder / "notes.txt").write_text("x")
    report = ingest(folder, tmp_path / "a")
    assert fate(report) == (2, 2, 0, 0)
    assert report.left_out == ("notes.txt: no known suffix",)
    sites = archive.open(tmp_path / "a").scan("jobs").sort("pandaid").collect()["computingsite"]
    assert sites.to_list() == ["Q 1", "Q 2"]


def test_folders_whose_files_are_not_all_are_refused(tmp_path):
    pl.from_arrow(typed()).write_parquet(tmp_path / "x.parquet")
    ingest(tmp_path / "x.parquet", tmp_path / "a")
    with pytest.raises(DataError, match="is an archive; name folders of its tables"):
        ingest(tmp_path / "a", tmp_path / "b")
    (tmp_path / "delta" / "_delta_log").mkdir(parents=True)
    pl.from_arrow(typed()).write_parquet(tmp_path / "delta" / "x.parquet")
    with pytest.raises(DataError, match="is a Delta table"):
        ingest(tmp_path / "delta", tmp_path / "b")


# frames


def test_frames_by_table_and_several_at_once(tmp_path):
    first, second = typed(), typed(pandaid=[2])
    report = ingest({"jobs": [first, second.to_pandas()]}, tmp_path / "a")
    assert [source.name for source in report.sources] == ["pyarrow.Table", "pandas.DataFrame"]
    assert fate(ingest([first, second, first], tmp_path / "b")) == (2, 2, 0, 0)


def test_what_pandas_holds_is_read(tmp_path):
    frame = typed().to_pandas()
    frame["cpuconsumptiontime"] = pd.Timedelta("1h")
    frame["starttime"] = pd.Timestamp("2026-01-01 01:00", tz="Europe/Berlin")
    frame["gshare"] = pd.Categorical(["A"])
    frame["maxpss"] = float("nan")
    frame["computingsite"] = pd.array([pd.NA], dtype="string")
    assert fate(ingest(frame.set_index("pandaid"), tmp_path / "a")) == (1, 1, 0, 0)
    job = archive.open(tmp_path / "a").scan("jobs").collect().row(0, named=True)
    assert (job["pandaid"], job["cpuconsumptiontime"], job["gshare"]) == (1, 3600, "A")
    assert (job["maxpss"], job["computingsite"]) == (None, None)
    assert job["starttime"] == datetime(2026, 1, 1)


def test_a_column_of_pandas_with_values_of_several_kinds(tmp_path):
    frame = pd.concat([typed(pandaid=[n]).to_pandas() for n in (1, 2, 3)], ignore_index=True)
    frame["maxpss"] = [5, "7", "many"]
    assert fate(ingest(frame, tmp_path / "a")) == (3, 2, 1, 0)


@pytest.mark.parametrize(
    "source",
    [
        typed(note=pa.array([Decimal(1)], pa.decimal256(60, 2))),
        typed(starttime=pa.array([0], pa.timestamp("us", "Mars/Olympus"))),
        typed(starttime=pa.array([2**62], pa.timestamp("ms"))),
        typed(starttime=pa.array([2**55], pa.date64())),
        pl.from_arrow(typed()).with_columns(pl.Series("o", [object()], dtype=pl.Object)),
        pl.from_arrow(typed()).lazy().select("nope"),
        pl.scan_csv("no such file.csv"),
        5,
        None,
    ],
)
def test_frames_that_cannot_be_read_end_with_our_error(tmp_path, source):
    with pytest.raises(DataError, match=r"cannot be read|a source is a"):
        ingest([source], tmp_path / "a", table="jobs")
    assert not (tmp_path / "a" / "manifest.json").exists()


def test_columns_twice_are_refused(tmp_path):
    twice = pa.Table.from_arrays([pa.array([1]), pa.array([2])], names=["pandaid", "pandaid"])
    with pytest.raises(SchemaError, match=r"pyarrow\.Table: columns occur twice: pandaid"):
        ingest(twice, tmp_path / "a", table="jobs")


# texts of all kinds


@pytest.mark.parametrize("encoding", ["utf-32", "utf-16-le", "latin-1"])
@pytest.mark.parametrize("name", ["jobs.csv", "jobs.ndjson"])
def test_other_encodings_are_refused(tmp_path, encoding, name):
    text = (
        json.dumps({**JOB, "note": "é"}, ensure_ascii=False)
        if name.endswith("json")
        else "pandaid,é\n1,2\n"
    )
    (tmp_path / name).write_bytes(text.encode(encoding))
    with pytest.raises(DataError, match=r"wrong encoding|not text"):
        ingest(tmp_path / name, tmp_path / "a")


@pytest.mark.parametrize(
    ("header", "words"),
    [
        ("x" * 200_000, "the header cannot be read"),
        (",".join(f"c{n}" for n in range(100_000)), "100005 columns, allowed: 4096"),
    ],
)
def test_headers_without_end_are_refused(tmp_path, header, words):
    (tmp_path / "jobs.csv").write_text(f"{','.join(JOB)},{header}\n")
    with pytest.raises((DataError, SchemaError), match=words):
        ingest(tmp_path / "jobs.csv", tmp_path / "a")


def test_times_as_numbers_need_their_unit(tmp_path, monkeypatch):
    monkeypatch.setattr(delimited, "BLOCK_BYTES", 300)
    time = 1767225600000
    rows = [
        {**JOB, "pandaid": n, "creationtime": time + n, "modificationtime": time} for n in range(9)
    ]
    pl.DataFrame(rows).write_csv(tmp_path / "jobs.csv")
    assert fate(ingest(tmp_path / "jobs.csv", tmp_path / "a")) == (9, 0, 9, 0)
    units = {"creationtime": "ms", "modificationtime": "ms"}
    assert fate(ingest(tmp_path / "jobs.csv", tmp_path / "a", mapping={"units": units})) == (
        9,
        9,
        0,
        0,
    )
    jobs = archive.open(tmp_path / "a").scan("jobs").sort("pandaid").collect()
    assert jobs["creationtime"][8] == datetime(2026, 1, 1) + timedelta(milliseconds=8)
