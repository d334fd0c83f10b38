"""Input that once got lost, got through or crashed: each is told, counted or refused."""

import json
from datetime import datetime
from decimal import Decimal

import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from brokerlab import archive
from brokerlab.archive import parsing, spill
from brokerlab.archive.conversion import settle_units
from brokerlab.archive.ingestion import ingest
from brokerlab.archive.readers import detect, read
from brokerlab.archive.schema import validate
from brokerlab.errors import DataError, SchemaError
from tests.examples import examples
from tests.sifting import split

HEADER = "pandaid,jeditaskid,jobstatus,prodsourcelabel,creationtime,modificationtime,note"
ROW = "{},7,finished,user,2026-01-01 00:00:00,2026-01-01 02:00:00,{}"
LEFT_OPEN = (
    "{} has line breaks; it takes in {} more line(s): is a quote left open? "
    "mend the file and read it again"
)
RECORD = {
    "pandaid": 1,
    "jobstatus": "finished",
    "prodsourcelabel": "user",
    "creationtime": "2026-01-01 00:00:00",
    "modificationtime": "2026-01-01 02:00:00",
}


def batches(path):
    return list(read(path, detect(path)))


def written(path, *lines):
    path.write_text("\n".join(lines) + "\n")
    return path


def reasons(folder):
    return archive.open(folder).scan("quarantine").sort("row").collect()["reason"].to_list()


# quotes left open


def test_a_quote_left_open_in_the_last_column_is_told(tmp_path):
    rows = [ROW.format(i, "x") for i in range(3, 53)]
    path = written(tmp_path / "jobs.csv", HEADER, ROW.format(1, "x"), ROW.format(2, '"open'), *rows)
    (batch,) = batches(path)
    assert batch.frame["pandaid"].to_list() == ["1"]
    assert batch.refused.rows() == [
        (
            2,
            None,
            LEFT_OPEN.format("note", 51),
        )
    ]


def test_two_stray_quotes_in_one_column_do_not_swallow_the_rows_between(tmp_path):
    rows = [ROW.format(i, "x") for i in range(3, 9)]
    stray = ROW.replace("finished", '"finished')
    lines = [HEADER, stray.format(2, "x"), *rows, stray.format(9, "x"), ROW.format(10, "x")]
    (batch,) = batches(written(tmp_path / "jobs.csv", *lines))
    assert batch.frame["pandaid"].to_list() == ["10"]
    assert batch.rows.to_list() == [2]
    assert "jobstatus has line breaks; it takes in 7 more line(s)" in batch.refused["reason"][0]


def test_a_quote_left_open_in_a_column_before_says_how_many_lines_are_gone(tmp_path):
    rows = [ROW.format(i, "x") for i in range(3, 9)]
    opened = ROW.replace("finished", '"finished').format(2, "x")
    (batch,) = batches(written(tmp_path / "jobs.csv", HEADER, opened, *rows))
    assert batch.frame.is_empty()
    assert "3 fields, the header has 7" in batch.refused["reason"][0]
    assert "it takes in 6 more line(s): is a quote left open?" in batch.refused["reason"][0]


def test_texts_with_line_breaks_that_are_no_rows_stay(tmp_path):
    texts = ['"first, second\nthird"', '"a\n\n\nb"', '"{""a"": [1, 2],\n""b"": 3}"']
    lines = [ROW.format(i, text) for i, text in enumerate(texts)]
    (batch,) = batches(written(tmp_path / "jobs.csv", HEADER, *lines))
    assert batch.frame["note"].to_list() == [
        "first, second\nthird",
        "a\n\n\nb",
        '{"a": [1, 2],\n"b": 3}',
    ]
    assert batch.refused.is_empty()


def test_json_columns_may_look_like_rows(tmp_path):
    header = "app,component,key,value,value_json,type"
    value = '"[1,2,3,4,5,6,\n1,2,3,4,5,6]"'
    (batch,) = batches(written(tmp_path / "gdpconfig.csv", header, f"jedi,dbproxy,K,,{value},json"))
    assert batch.frame["value_json"].to_list() == ["[1,2,3,4,5,6,\n1,2,3,4,5,6]"]


# JSON


def test_what_is_no_record_is_quarantined(tmp_path):
    path = tmp_path / "answer.json"
    path.write_text(json.dumps({"jobs": [5, RECORD, None, "text", [1]]}))
    report = ingest([path], tmp_path / "a")
    assert report.frame().rows() == [("answer.json", "jobs", 5, 1, 4, 0)]
    words = "is no record of names and values: "
    assert reasons(tmp_path / "a") == [words + text for text in ("5", "null", '"text"', "[1]")]


def test_a_record_with_a_name_twice_is_quarantined(tmp_path):
    doubled = json.dumps(RECORD)[:-1] + ', "pandaid": 2}'
    path = tmp_path / "answer.json"
    path.write_text(f'{{"jobs": [{doubled}, {json.dumps({**RECORD, "pandaid": 3})}]}}')
    report = ingest([path], tmp_path / "a")
    assert report.frame().rows() == [("answer.json", "jobs", 2, 1, 1, 0)]
    assert reasons(tmp_path / "a") == [
        "is no record of names and values: names occur twice: pandaid"
    ]


def test_datasets_of_a_task_that_are_no_records_are_quarantined(tmp_path):
    task = {"taskname": "t", "status": "done", "vo": "atlas", "prodsourcelabel": "user"}
    task |= {"creationdate": "2026-01-01 00:00:00", "modificationtime": "2026-01-01 00:00:00"}
    good = {"jeditaskid": 1, "datasetid": 2, "type": "input"}
    tasks = [
        {**task, "jeditaskid": 1, "datasets": [good, 5]},
        {**task, "jeditaskid": 2, "datasets": "none"},
        {**task, "jeditaskid": 3, "datasets": None},
    ]
    path = tmp_path / "tasks.json"
    path.write_text(json.dumps(tasks))
    fates = {table: counts for _, table, *counts in ingest([path], tmp_path / "a").frame().rows()}
    assert fates == {"tasks": [3, 3, 0, 0], "datasets": [3, 1, 2, 0]}


def test_an_answer_without_jobs_is_a_table_without_rows(tmp_path):
    path = tmp_path / "answer.json"
    path.write_text('{"jobs": [], "selectionsummary": []}')
    assert ingest([path], tmp_path / "a").frame().rows() == [("answer.json", "jobs", 0, 0, 0, 0)]


def test_records_of_queues_are_settled_as_rows_of_csv_are(tmp_path):
    path = tmp_path / "queues.json"
    queue = {"panda_queue": "Q", "type": "production", "status": "online"}
    path.write_text(json.dumps([queue | {"cloud": "US,DE", "maxwdir": "x", "maxinputsize": 100}]))
    (batch,) = batches(path)
    assert batch.frame.select("cloud", "maxwdir").rows() == [("US", "2100")]


# values


TWO_DIGITS = "; write years with four digits: two can be read as day, month or year"


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("-2026-01-01 00:00:00", ""),
        ("26-01-01 00:00:00", TWO_DIGITS),
        ("1969-12-31 23:59:59", ""),
    ],
)
def test_times_that_cannot_be_true_are_refused(make_jobs, text, hint):
    result = split("jobs", make_jobs(1, statechangetime=[text]))
    assert result.quarantine["reason"].to_list() == [
        f"statechangetime {text} is no time that can be true, allowed: 1970-01-01 to 9999-12-31{hint}"
    ]


def test_typed_times_that_cannot_be_true_are_refused(make_jobs):
    result = split("jobs", make_jobs(1, statechangetime=[datetime(1960, 1, 1)]))
    assert "is no time that can be true" in result.quarantine["reason"][0]


def test_an_offset_that_does_not_exist_is_refused(make_jobs):
    result = split("jobs", make_jobs(1, statechangetime=["2026-01-01 00:00:00+99:99"]))
    assert "cannot be read as a time" in result.quarantine["reason"][0]


def test_an_unreadable_required_value_has_one_reason(make_jobs):
    frame = make_jobs(1).with_columns(creationtime=pl.lit("yesterday"))
    assert split("jobs", frame).quarantine["reason"].to_list() == [
        "creationtime 'yesterday' cannot be read as a time (YYYY-MM-DD HH:MM:SS, Z or offset)"
    ]


def test_decimals_keep_every_digit(make_jobs):
    big = 2**53 + 1  # the first whole number that a float cannot hold
    numbers = pl.Series([Decimal(big), Decimal("5.00")], dtype=pl.Decimal(38, 2))
    rows = validate("jobs", make_jobs(2, parentid=numbers))
    assert rows["parentid"].to_list() == [big, 5]
    broken = make_jobs(1, parentid=pl.Series([Decimal("5.50")], dtype=pl.Decimal(38, 2)))
    assert "cannot be read as a whole number" in split("jobs", broken).quarantine["reason"][0]


def test_numbers_of_jobs_that_lost_digits_are_refused_and_measures_stay(make_jobs):
    """Of 32 bits 6,000,000,001 to 6,000,000,003 are one number: three jobs would be one."""
    numbers, measures = pl.Series([6e9 + 1, 2.0]), pl.Series([3e9, 1.0])
    frame = make_jobs(2, pandaid=numbers.cast(pl.Float32), inputfilebytes=measures.cast(pl.Float32))
    result = split("jobs", frame)
    assert (
        "pandaid '6000000000.0' cannot be read as a whole number" in result.quarantine["reason"][0]
    )
    assert result.accepted.select("pandaid", "inputfilebytes").rows() == [(2, 1)]
    whole = validate("jobs", frame.with_columns(pandaid=pl.Series([1, 2])))
    assert whole["inputfilebytes"].to_list() == [3_000_000_000, 1]


def test_a_number_that_is_none_is_no_text(make_jobs):
    result = split("jobs", make_jobs(2, transexitcode=[float("nan"), 3.0]))
    assert result.quarantine["reason"].to_list() == ["transexitcode 'NaN' cannot be read as text"]
    assert result.accepted["transexitcode"].to_list() == ["3"]


def test_semicolons_in_a_value_do_not_cut_its_reason(make_jobs):
    with pytest.raises(SchemaError, match=r"^jobs\.maxpss: 1 row\(s\).*maxpss 'a; b' cannot be"):
        validate("jobs", make_jobs(1, maxpss=["a; b"]))


@pytest.mark.parametrize("name", ["*", "^.*$", "^job.*$"])
def test_columns_named_like_a_pattern_are_refused(tmp_path, make_jobs, name):
    path = written(tmp_path / "jobs.csv", HEADER.replace("note", name), ROW.format(1, "x"))
    with pytest.raises(SchemaError, match=r"columns mean other ones: .*; rename them"):
        ingest([path], tmp_path / "a")
    with pytest.raises(SchemaError, match="means other columns, not this one; rename it"):
        validate("jobs", make_jobs(1).with_columns(pl.Series(name, ["x"])))


# sources that contradict


def test_rows_that_contradict_each_other_but_not_the_kept_one_are_told():
    frame = pl.DataFrame(
        {"resource_name": ["A"] * 3, "mincore": [5, None, None], "maxcore": [None, 1, 2]}
    )
    result = split("resource_types", frame, source="s")
    assert result.accepted.row(0) == ("A", 5, 1, None, None)
    assert (len(result.quarantine), result.duplicates) == (1, 1)
    assert (
        result.quarantine["reason"][0]
        == "maxcore 2 contradicts 1 (kept, of s, completed by others)"
    )


def test_a_refused_row_completes_nothing():
    names = ["resource_name", "mincore", "maxcore", "minrampercore"]
    rows = [("A", 5, None, None), ("A", None, 1, None), ("A", None, 2, 9)]
    result = split("resource_types", pl.DataFrame(rows, schema=names, orient="row"))
    assert result.accepted.row(0) == ("A", 5, 1, None, None)


def test_columns_beside_the_contract_that_exclude_each_other_change_nothing(tmp_path, make_jobs):
    for number, value in ((1, [1]), (2, "text")):
        frame = make_jobs(1, pandaid=[number], mine=[value])
        frame.write_parquet(tmp_path / f"jobs_{number}.parquet")
    ingest([tmp_path / "jobs_1.parquet"], tmp_path / "a")
    with pytest.raises(SchemaError, match=r"cannot stand in one table \(mine: .*rename it in one"):
        ingest([tmp_path / "jobs_2.parquet"], tmp_path / "a")
    assert archive.open(tmp_path / "a").scan("jobs").collect()["pandaid"].to_list() == [1]


def test_columns_that_exclude_each_other_while_they_are_put_aside_keep_the_cause(
    tmp_path, make_jobs, monkeypatch
):
    monkeypatch.setattr(spill, "RUN_BYTES", 5_000)  # more than one row, less than a hundred
    frames = [make_jobs(1, pandaid=[1], mine=[[1]]), make_jobs(100, mine=["text"] * 100)]
    with pytest.raises(SchemaError, match="cannot stand in one table") as caught:
        ingest(frames, tmp_path / "a", table="jobs")
    assert isinstance(caught.value.__cause__, pl.exceptions.PolarsError)


# job tables of the InVEx kind

INVEX = "pandaid,wall_time,queue_time,actualcorecount"


def test_invex_without_queues_has_jobs_and_says_what_it_took(tmp_path):
    jobs, tasks = batches(written(tmp_path / "rec_12345.csv", INVEX, "1,10,5,1"))
    assert (jobs.table, tasks.table) == ("jobs", "tasks")
    assert jobs.notes[1] == "the file has no jobstatus: every job is taken as finished"


def test_invex_durations_beyond_every_calendar_are_refused(tmp_path):
    jobs = batches(written(tmp_path / "rec_12345.csv", INVEX, "1,1e30,5,1", "2,10,5,1"))[0]
    assert jobs.refused["reason"].to_list() == [
        "wall_time '1e30' is no duration, allowed: 0 to 1e9 s"
    ]
    assert len(jobs.frame) == 1


def test_invex_with_a_column_under_both_names(tmp_path):
    path = written(tmp_path / "rec_12345.csv", f"{INVEX},IObytesRead,totrbytes", "1,1,1,1,7,8")
    with pytest.raises(SchemaError, match="iobytesread and totrbytes are the same column"):
        batches(path)


def test_stand_ins_of_jobs_without_events_know_no_events(tmp_path, make_jobs):
    path = tmp_path / "jobs.parquet"
    make_jobs(2, nevents=pl.Series([None, 0], dtype=pl.Int64)).write_parquet(path)
    ingest([path], tmp_path / "a")
    assert archive.open(tmp_path / "a").scan("datasets").collect()["nevents"].to_list() == [None]


def test_an_exported_archive_can_be_read_again_from_csv(tmp_path, make_jobs, write_csv):
    ingest([write_csv(make_jobs(3))], tmp_path / "a")
    first = archive.open(tmp_path / "a")
    names = ("jobs", "files", "datasets")
    exports = [write_csv(first.scan(name).collect(), f"{name}.csv") for name in names]
    ingest(exports, tmp_path / "b")
    second = archive.open(tmp_path / "b")
    for name in names:
        assert second.scan(name).collect().equals(first.scan(name).collect())


def test_marks_of_stand_ins_that_are_no_flags_are_told():
    frame = pl.DataFrame({"APPROXIMATE": ["true", "0", "", "maybe"]})
    settled, notes = settle_units("files", frame)
    assert settled["APPROXIMATE"].to_list() == [True, False, None, None]
    assert notes == ("APPROXIMATE: 1 value(s) that are not Y/N, 1/0, T/F read as null: real rows",)
    with pytest.raises(SchemaError, match=r"approximate: found type List\(Int64\)"):
        settle_units("files", pl.DataFrame({"approximate": [[1]]}))


# folders


def test_tables_of_others_are_not_swept_away(tmp_path):
    theirs = tmp_path / "jobs" / "part-0000.parquet"
    theirs.parent.mkdir()
    theirs.write_bytes(b"precious")
    with pytest.raises(
        DataError, match=r"holds jobs but no manifest\.json; .* else choose another folder"
    ):
        archive.ArchiveWriter(tmp_path).__enter__()
    assert theirs.read_bytes() == b"precious"


def test_a_file_is_no_folder(tmp_path):
    (tmp_path / "a").write_text("x")
    with pytest.raises(DataError, match="cannot be used as an archive"):
        archive.ArchiveWriter(tmp_path / "a").__enter__()


@pytest.mark.parametrize("name", ["a b 'c' \"d\"", "run [1]", "all*", "what?", "{a,b}", "<script>"])
def test_folders_of_any_name(tmp_path, make_jobs, name):
    path = tmp_path / "jobs'; drop table jobs;--.parquet"
    make_jobs(2).write_parquet(path)
    ingest([path], tmp_path / name)
    make_jobs(3).write_parquet(path)
    ingest([path], tmp_path / name)
    opened = archive.open(tmp_path / name)
    assert opened.sql("select count(*) from jobs").fetchall() == [(3,)]
    assert len(opened.scan("jobs").collect()) == 3
    assert "<script>" not in opened._repr_html_()
    if name == "<script>":  # it reads by opened.sql, as above
        assert name not in opened.profile()._repr_html_()


@pytest.mark.parametrize("path", ["../other/part.parquet", "/etc/passwd"])
def test_a_manifest_names_no_files_outside(tmp_path, make_jobs, path):
    with archive.ArchiveWriter(tmp_path / "a") as writer:
        writer.write("jobs", make_jobs(1))
        writer.commit()
    file = tmp_path / "a" / "manifest.json"
    raw = json.loads(file.read_text())
    raw["tables"]["jobs"][0]["path"] = path
    file.write_text(json.dumps(raw))
    with pytest.raises(DataError, match=f"the manifest is damaged .*'{path}' is outside"):
        archive.open(tmp_path / "a")


@pytest.mark.parametrize("version", ["1", 0, None, True, 1.0])
def test_a_schema_version_that_never_was(tmp_path, version):
    with archive.ArchiveWriter(tmp_path / "a") as writer:
        writer.commit()
    file = tmp_path / "a" / "manifest.json"
    file.write_text(json.dumps({**json.loads(file.read_text()), "schema_version": version}))
    with pytest.raises(DataError, match="the manifest is damaged"):
        archive.open(tmp_path / "a")


def test_a_manifest_nested_without_end(tmp_path):
    (tmp_path / "manifest.json").write_text("[" * 100_000)
    with pytest.raises(DataError, match=r"the manifest cannot be read \(RecursionError"):
        archive.open(tmp_path)


@pytest.mark.parametrize(
    ("peak", "average"), [("inf", "nan"), ("1", "nan"), ("1", "inf"), ("x", "")]
)
def test_peaks_beside_odd_averages_are_left_as_they_are(peak, average):
    frame = pl.DataFrame({"maxpss": [peak], "avgpss": [average]})
    assert settle_units("jobs", frame)[0]["maxpss"].to_list() == [peak]


def test_a_long_number_tells_the_unit_like_a_short_one():
    peak = "51.18".ljust(parsing.LONGEST_SCALAR, "0")
    frame = pl.DataFrame({"maxpss": [peak, f"{peak}0"], "avgpss": ["52382"] * 2})
    assert settle_units("jobs", frame)[0]["maxpss"].to_list() == ["52408", f"{peak}0"]


def test_work_space_beside_an_odd_input_size():
    frame = pl.DataFrame({"maxwdir": ["x"], "maxinputsize": ["inf"]})
    assert settle_units("queues", frame)[0]["maxwdir"].to_list() == [None]


def test_a_duration_beyond_every_calendar_makes_no_end(tmp_path):
    path = tmp_path / "answer.json"
    times = {"starttime": "2026-01-01 00:00:00", "endtime": None, "durationsec": 10**18}
    path.write_text(json.dumps({"jobs": [RECORD | times]}))
    assert batches(path)[0].frame["endtime"].to_list() == [None]


# queries


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("drop view jobs", "drop"),
        ("select 1; select 2", "select, select"),
        ("select 1; drop view jobs", "select, drop"),
        ("copy (select 1) to 'leak.csv'", "copy"),
        ("attach 'x.db'", "attach"),
        ("set threads = 1", "set"),
        ("explain analyze copy (select 1) to 'leak.csv'", "copy"),
        ("EXPLAIN (analyze, format json) copy (select 1) to 'leak.csv'", "copy"),
        ("/* a */ explain -- b\n analyze drop view jobs", "drop"),
        ("explain analyze set enable_external_access = true", "set"),
        ("-- nothing", "none"),
        ("", "none"),
    ],
)
def test_queries_only_read(tmp_path, make_jobs, query, found):
    with archive.ArchiveWriter(tmp_path) as writer:
        writer.write("jobs", make_jobs(2))
        writer.commit()
    opened = archive.open(tmp_path)
    with pytest.raises(DataError, match=f"query: {found}; allowed: one statement that reads"):
        opened.sql(query)
    assert opened.sql("from jobs").pl().shape[0] == 2
    assert opened.sql("describe jobs").pl().shape[0] == len(opened.jobs.columns)
    hostile = "finished' or 1=1; drop view jobs; --"
    found = opened.sql("select count(*) from jobs where jobstatus = $s", {"s": hostile})
    assert found.fetchall() == [(0,)]
    assert not (tmp_path / "leak.csv").exists()


@pytest.mark.parametrize(
    "query", ["explain from jobs", "explain analyze from jobs", "explain (from jobs)"]
)
def test_reading_can_be_explained(tmp_path, make_jobs, query):
    with archive.ArchiveWriter(tmp_path) as writer:
        writer.write("jobs", make_jobs(2))
        writer.commit()
    assert "plan" in archive.open(tmp_path).sql(query).fetchall()[0][0]


def test_other_files_are_read_only_where_asked(tmp_path, make_jobs, monkeypatch):
    with archive.ArchiveWriter(tmp_path / "run [1]") as writer:
        writer.write("jobs", make_jobs(2))
        writer.commit()
    mine = tmp_path / "mine.csv"
    mine.write_text("pandaid\n1\n")
    monkeypatch.chdir(tmp_path)
    opened = archive.open("run [1]")
    query = "select count(*) from jobs join read_csv($name) using (pandaid)"
    with pytest.raises(DataError, match=r"(?s)query: Permission Error.*others with outside=True"):
        opened.sql(query, {"name": str(mine)})
    assert opened.sql(query, {"name": str(mine)}, outside=True).fetchall() == [(1,)]
    assert opened.jobs.count("*").fetchall() == [(2,)]
    with pytest.raises(DataError, match="kinds does not exist"):  # no variable of ours is a table
        opened.sql("select * from kinds", outside=True)


# whatever comes, the counts add up

_ODD = ["", "NULL", "1", "2", "2.0", "-1", "x", "nan", "inf", "1e30", '"', "a,b", "\n"]
_TIMES = ["2026-01-01 00:00:00", "2026-01-01T01:00:00Z", "2026-01-02 00:00:00", "", "soon"]
_ROWS = st.lists(
    st.tuples(
        st.sampled_from(["1", "2", "3", "", "x"]),
        st.sampled_from(["finished", ""]),
        st.just("user"),
        st.just("2026-01-01 00:00:00"),
        st.sampled_from(_TIMES),
        *[st.sampled_from(_ODD)] * 3,
    ),
    max_size=12,
)
_NAMES = [*list(RECORD), "maxpss", "avgpss", "produsername"]


@settings(max_examples=examples(25), deadline=None, suppress_health_check=list(HealthCheck))
@given(first=_ROWS, second=_ROWS)
def test_counts_add_up_whatever_comes(tmp_path_factory, first, second):
    folder = tmp_path_factory.mktemp("counts")
    live = 0
    for number, rows in enumerate((first, second)):
        path = folder / f"jobs_{number}.csv"
        schema = dict.fromkeys(_NAMES, pl.String)
        pl.DataFrame(rows, schema=schema, orient="row").write_csv(path)
        report = ingest([path], folder / "a")
        if not report.sources:  # equal bytes are read once
            continue
        _, _, n, accepted, refused, doubled = report.frame().row(0)
        assert n == len(rows) == accepted + refused + doubled
        live += accepted - report.superseded.get("jobs", 0)
        counts = report.manifest.counts
        assert counts.get("jobs", 0) == live
    opened = archive.open(folder / "a")
    if opened.has("jobs"):
        jobs = opened.scan("jobs").collect()
        assert jobs["pandaid"].is_unique().all()
        validate("jobs", jobs)
