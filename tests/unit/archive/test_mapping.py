"""Foreign names, units, defaults and dates: taken, or refused with what to type instead."""

import json
from datetime import datetime, timedelta

import polars as pl
import pytest

from brokerlab import archive
from brokerlab.archive import conversion
from brokerlab.archive.ingestion import ingest
from brokerlab.archive.mapping import Mapping
from brokerlab.errors import SchemaError

START = datetime(2026, 12, 14)
SAID = Mapping.of_options(
    map=["TaskID=jeditaskid", "submitted=creationtime", "cpu_time=cpuconsumptiontime", "MaxPSS_MB=maxpss"],
    default=["prodsourcelabel=managed"],
    unit=["maxpss=MB", "cpuconsumptiontime=min"],
)  # fmt: skip


def foreign(n=5, dates="%d/%m/%Y %H:%M", **columns):
    times = [START + timedelta(days=7 * i) for i in range(n)]
    base = {
        "PandaID": list(range(1, n + 1)),
        "TaskID": [7] * n,
        "job_status": ["finished"] * n,
        "submitted": [t.strftime(dates) for t in times],
        "start_time": [(t + timedelta(minutes=10)).strftime(dates) for t in times],
        "endtime": [(t + timedelta(minutes=70)).strftime(dates) for t in times],
        "cpu_time": [10.5] * n,
        "MaxPSS_MB": ["51.18"] * n,
    }
    return pl.DataFrame({**base, **columns})


def written(path, frame):
    path.parent.mkdir(parents=True, exist_ok=True)
    frame.write_csv(path)
    return path


def stored(folder, *columns):
    return archive.open(folder).scan("jobs").sort("pandaid").select(*columns).collect().rows()


def reasons(folder):
    return archive.open(folder).scan("quarantine").sort("row").collect()["reason"].to_list()


def test_a_jobs_file_with_foreign_names_units_and_dates(tmp_path):
    report = ingest(written(tmp_path / "jobs.csv", foreign(2)), tmp_path / "a", mapping=SAID)
    assert report.frame().row(0) == ("jobs.csv", "jobs", 2, 2, 0, 0)
    columns = ("jeditaskid", "jobstatus", "prodsourcelabel", "cpuconsumptiontime", "maxpss")
    assert stored(tmp_path / "a", *columns) == [(7, "finished", "managed", 630, 52408)] * 2
    assert stored(tmp_path / "a", "creationtime", "starttime", "modificationtime")[1] == (
        datetime(2026, 12, 21), datetime(2026, 12, 21, 0, 10), datetime(2026, 12, 21, 1, 10),
    )  # fmt: skip
    (source,) = report.sources
    assert set(source.notes) == {
        "column 'job_status' taken as jobstatus",
        "column 'start_time' taken as starttime",
        "modificationtime: not in the source, endtime, else starttime, else creationtime stands for it",
        "maxpss: MB converted to kB",
        "cpuconsumptiontime: min converted to s",
        "dates with the year at the end read day-first, as UTC",
    }
    assert report.not_taken == ()


def test_the_next_export_needs_no_options(tmp_path):
    first = written(tmp_path / "export_1.csv", foreign(3))
    ingest(first, tmp_path / "a", table="jobs", mapping=SAID)
    more = foreign(3, PandaID=[11, 12, 13])
    report = ingest(written(tmp_path / "export_2.csv", more), tmp_path / "a")
    assert report.frame().row(0) == ("export_2.csv", "jobs", 3, 3, 0, 0)
    assert stored(tmp_path / "a", "maxpss") == [(52408,)] * 6
    assert report.sources[0].notes[0].startswith("columns read as mappings/jobs-")


def test_a_table_that_was_said_is_kept_too(tmp_path, make_jobs, write_csv):
    columns = ["pandaid", "jobstatus", "creationtime", "prodsourcelabel", "modificationtime"]
    wide = make_jobs(2).select(*columns, *[pl.lit(n).alias(f"x{n}") for n in range(9)])
    ingest(write_csv(wide, "first.csv"), tmp_path / "a", table="jobs")
    report = ingest(
        write_csv(wide.with_columns(pandaid=pl.lit(9)).head(1), "second.csv"), tmp_path / "a"
    )
    assert report.frame().row(0)[:4] == ("second.csv", "jobs", 1, 1)


def test_a_kept_mapping_is_not_guessed_for_other_columns(tmp_path):
    said = Mapping.of_options(unit=["maxpss=MB"])
    job = foreign(1).select("PandaID", jobstatus="job_status", creationtime="submitted")
    job = job.with_columns(prodsourcelabel=pl.lit("user"), maxpss=pl.lit(2))
    job = job.with_columns(creationtime=pl.lit("2026-12-01 00:00:00"))
    ingest(written(tmp_path / "jobs.csv", job), tmp_path / "a", mapping=said)
    other = written(
        tmp_path / "jobs_2.csv", job.with_columns(gshare=pl.lit("x"), PandaID=pl.lit(2))
    )
    with pytest.raises(
        SchemaError, match=r"more: gshare\); say --mapping .*json to use it, or --mapping none"
    ):
        ingest(other, tmp_path / "a")
    ingest(other, tmp_path / "a", mapping=Mapping())
    assert stored(tmp_path / "a", "pandaid", "maxpss") == [(1, 2048), (2, 2)]


def test_the_same_file_with_another_mapping_is_read_again(tmp_path):
    path = written(tmp_path / "jobs.csv", foreign(2, dates="%Y-%m-%d %H:%M"))
    bare = Mapping.of_options(map=["submitted=creationtime"], default=["prodsourcelabel=user"])
    ingest(path, tmp_path / "a", mapping=bare)
    assert stored(tmp_path / "a", "maxpss") == [(None,)] * 2
    more = Mapping.of_options(map=["MaxPSS_MB=maxpss"], unit=["maxpss=MB"])
    ingest(path, tmp_path / "a", mapping=bare.joined(more))
    assert stored(tmp_path / "a", "maxpss") == [(52408,)] * 2
    assert ingest(path, tmp_path / "a").skipped == ("jobs.csv",)


def test_columns_that_are_not_taken_are_listed_with_what_to_type(tmp_path):
    said = Mapping.of_options(map=["submitted=creationtime"], default=["prodsourcelabel=managed"])
    frame = foreign(1).with_columns(colour=pl.lit("red"))
    report = ingest(written(tmp_path / "jobs.csv", frame), tmp_path / "a", mapping=Mapping(**said.model_dump() | {"dates": "day-first"}))  # fmt: skip
    assert {column.column: column.suggestion for column in report.not_taken} == {
        "cpu_time": "--map cpu_time=cpuconsumptiontime",
        "MaxPSS_MB": "--map MaxPSS_MB=maxpss --unit maxpss=MB",
        "colour": "",
    }


def test_missing_columns_are_named_with_what_to_type(tmp_path):
    with pytest.raises(SchemaError) as caught:
        ingest(written(tmp_path / "jobs.csv", foreign()), tmp_path / "a")
    assert str(caught.value).splitlines() == [
        (
            "jobs.csv: jobs.prodsourcelabel: required column is missing; say --map NAME=prodsourcelabel "
            "or --default prodsourcelabel=managed (of all rows)"
        ),
        (
            "jobs.csv: jobs.creationtime: required column is missing; say --map submitted=creationtime "
            "or --default creationtime=starttime (another time stands for it; the wait of every job is 0 then, which says nothing)"
        ),
        "jobs.csv: near others: --map cpu_time=cpuconsumptiontime --map MaxPSS_MB=maxpss --unit maxpss=MB",
        (
            "jobs.csv: columns found: MaxPSS_MB, PandaID, TaskID, cpu_time, endtime, job_status, "
            "start_time, submitted"
        ),
    ]


def test_another_time_may_stand_for_a_missing_one(tmp_path):
    said = Mapping.of_options(default=["prodsourcelabel=user", "creationtime=starttime"])
    path = written(tmp_path / "jobs.csv", foreign(2).drop("submitted"))
    report = ingest(path, tmp_path / "a", mapping=said)
    assert report.frame().row(0)[2:4] == (2, 2)
    assert all(a == b for a, b in stored(tmp_path / "a", "creationtime", "starttime"))


WRONG = {
    "map": [
        "PandaID=nosuch", "TaskID=jeditaskid", "cpu_time=maxpss", "MaxPSS_MB=maxpss", "Colour=gshare",
        "job_status=jobstatus", "submitted=endtime",
    ],
    "default": ["maxpss=5", "corecount=many", "PandaID=1", "starttime=soon", "gco2_global=-1"],
    "unit": ["maxpss=min", "jobstatus=MB", "avgrss=GB", "nosuch=B", "endtime=h"],
    "dates": "european",
}  # fmt: skip


def test_options_that_do_not_fit_are_refused_all_at_once(tmp_path):
    path = written(tmp_path / "jobs.csv", foreign())
    with pytest.raises(SchemaError) as caught:
        ingest(path, tmp_path / "a", mapping=Mapping.of_options(**WRONG))
    assert str(caught.value).splitlines() == [
        "--map PandaID=nosuch: jobs has no column 'nosuch': 'brokerlab tables jobs' lists them",
        "--map MaxPSS_MB=maxpss: maxpss is mapped from 'cpu_time' too; keep one",
        (
            "--map Colour=gshare: jobs.csv has no column 'Colour': allowed: MaxPSS_MB, PandaID, TaskID, "
            "cpu_time, endtime, job_status, start_time, submitted"
        ),
        "--map submitted=endtime: jobs.csv has endtime already, as 'endtime'; keep one of them",
        "--default maxpss=5: maxpss is mapped from 'cpu_time' too; keep one",
        "--default corecount=many: corecount 'many' cannot be read as a whole number of 32 bits",
        "--default PandaID=1: jobs has no column 'PandaID': did you mean 'pandaid'?",
        "--default starttime=soon: jobs.csv has this column; leave the default out",
        "--default gco2_global=-1: gco2_global -1 is negative, allowed: 0 and above",
        "--unit maxpss=min: maxpss is in kB; allowed: B, GB, MB, TB, kB",
        "--unit jobstatus=MB: jobstatus has no unit",
        "--unit avgrss=GB: jobs.csv has no column avgrss; say --map NAME=avgrss",
        "--unit nosuch=B: jobs has no column 'nosuch': 'brokerlab tables jobs' lists them",
        "--unit endtime=h: endtime is a time; allowed: s, ms, us, ns since 1970-01-01 UTC",
        "--dates european: allowed: day-first, month-first",
    ]
    assert not (tmp_path / "a" / "manifest.json").exists()


@pytest.mark.parametrize("name", ["tasks.csv", "tasks.json"])
def test_a_default_does_not_overrule_the_split_rules(tmp_path, name):
    time = "2026-01-02 03:04:05"
    row = {"jeditaskid": 1, "vo": "atlas", "prodsourcelabel": "user", "status": "done",
           "creationdate": time, "modificationtime": time, "splitrule": "NF=2"}  # fmt: skip
    frame, path = pl.DataFrame([row]), tmp_path / name
    (frame.write_csv if name.endswith("csv") else frame.write_json)(path)
    with pytest.raises(
        SchemaError, match=r"--default nfilesperjob=5: .* has splitrule, which says"
    ):
        ingest([path], tmp_path / "a", mapping={"defaults": {"nfilesperjob": 5}})


def test_options_that_are_none_are_refused_all_at_once():
    with pytest.raises(SchemaError) as caught:
        Mapping.of_options(
            map=["a", "b=", "c=x", "c=y"], default=["=1"], unit=["maxpss=MB", "maxpss=kB"]
        )
    assert str(caught.value).splitlines() == [
        "--map a: allowed: NAME=VALUE, e.g. --map TaskID=jeditaskid",
        "--map b=: allowed: NAME=VALUE, e.g. --map TaskID=jeditaskid",
        "--map c=y: 'c' is given twice, as x too; keep one",
        "--default =1: allowed: NAME=VALUE, e.g. --default prodsourcelabel=managed",
        "--unit maxpss=kB: 'maxpss' is given twice, as MB too; keep one",
    ]


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("m.json", "{", "is neither JSON nor TOML of a mapping"),
        ("m.json", "[1]", "is no mapping: the document: Input should be"),
        (
            "m.json",
            '{"columnz": {}}',
            "columnz: Extra inputs are not permitted; allowed: table, columns",
        ),
        ("m.json", '{"units": {"maxpss": [1]}}', "units.maxpss: Input should be a valid string"),
        ("m.toml", "units = 3", "units: Input should be a valid dictionary"),
        ("m.json", "[" * 100_000, "is neither JSON nor TOML"),
        ("m.json", '{"columns": {"\\ud800": "maxpss"}}', "holds half a character"),
        ("none.json", None, "cannot be read"),
    ],
)
def test_a_document_that_is_no_mapping(tmp_path, name, text, words):
    if text is not None:
        (tmp_path / name).write_text(text)
    with pytest.raises(SchemaError, match=r"(none|m)\.(json|toml): ") as caught:
        Mapping.read(tmp_path / name)
    assert words in str(caught.value)


def test_a_mapping_is_read_from_toml_and_json(tmp_path):
    (tmp_path / "m.toml").write_text(
        'dates = "day-first"\n[columns]\nTaskID = "jeditaskid"\n[units]\nmaxpss = "MB"\n'
    )
    found = Mapping.read(tmp_path / "m.toml")
    found.write(tmp_path / "m.json")
    assert Mapping.read(tmp_path / "m.json") == found
    assert json.loads((tmp_path / "m.json").read_text()) == {
        "columns": {"TaskID": "jeditaskid"},
        "units": {"maxpss": "MB"},
        "dates": "day-first",
    }


# dates


def times_of(tmp_path, texts, dates=""):
    frame = foreign(len(texts), submitted=texts).drop("start_time", "endtime")
    said = SAID.joined(Mapping.of_options(dates=dates))
    report = ingest(written(tmp_path / "jobs.csv", frame), tmp_path / "a", mapping=said)
    return report, [str(t) for (t,) in stored(tmp_path / "a", "creationtime")]


@pytest.mark.parametrize(
    ("texts", "read"),
    [
        (["31/12/2026 14:05", "01/02/2026 1:05"], ["2026-12-31 14:05:00", "2026-02-01 01:05:00"]),
        (["31.12.2026", "1.2.2026"], ["2026-12-31 00:00:00", "2026-02-01 00:00:00"]),
        (["12/31/2026 14:05:10", "01/02/2026"], ["2026-12-31 14:05:10", "2026-01-02 00:00:00"]),
        (["31-12-2026T14:05:00.5Z"], ["2026-12-31 14:05:00.500000"]),
        (["31/12/2026 14:05+02:00"], ["2026-12-31 12:05:00"]),
        (["2026-12-31", "2026/12/31 14:05"], ["2026-12-31 00:00:00", "2026-12-31 14:05:00"]),
    ],
)  # fmt: skip
def test_dates_of_one_order_are_read(tmp_path, texts, read):
    assert times_of(tmp_path, texts)[1] == read


def test_dates_of_both_orders_are_refused_with_what_to_type(tmp_path):
    with pytest.raises(SchemaError) as caught:
        times_of(tmp_path, ["03/04/2026 10:00", "01/02/2026"])
    assert str(caught.value) == (
        "jobs.csv: submitted '03/04/2026 10:00' (row 1) may be day/month or month/day, and no date "
        "of this source tells which; say --dates day-first or --dates month-first"
    )
    assert times_of(tmp_path, ["03/04/2026 10:00"], "day-first")[1] == ["2026-04-03 10:00:00"]


def test_dates_in_two_orders_are_never_read_row_by_row(tmp_path):
    with pytest.raises(
        SchemaError, match=r"'31/12/2026' \(row 1\) and submitted '12/31/2026' \(row 2\)"
    ):
        times_of(tmp_path, ["31/12/2026", "12/31/2026"])
    report, read = times_of(tmp_path, ["31/12/2026", "12/31/2026"], "day-first")
    assert read == ["2026-12-31 00:00:00"]
    assert report.frame().row(0)[2:5] == (2, 1, 1)
    assert reasons(tmp_path / "a")[0].startswith(
        "creationtime '12/31/2026' cannot be read as a time"
    )


def test_a_day_that_does_not_exist_goes_to_quarantine(tmp_path):
    report, _ = times_of(tmp_path, ["31/12/2026", "30/02/2026", "soon"])
    assert report.frame().row(0)[2:5] == (3, 1, 2)


def test_the_order_is_told_by_the_whole_source(tmp_path, monkeypatch):
    from brokerlab.archive.readers import delimited

    monkeypatch.setattr(delimited, "BLOCK_BYTES", 200)
    texts = ["2026-03-01 00:00:00"] * 20 + ["03/04/2026"] * 20 + ["31/12/2026"]
    _, read = times_of(tmp_path, texts)
    assert read[20] == "2026-04-03 00:00:00"


# units


@pytest.mark.parametrize(
    ("column", "unit", "value", "result"),
    [
        ("maxpss", "MB", 51.18, "52408"),
        ("maxpss", "B", "1536", "2"),
        ("maxpss", "GB", 9007199254740993, "9444732965739291475968"),
        ("maxpss", "MB", "-5", "-5120"),
        ("maxpss", "MB", "abc", "abc MB"),
        ("maxpss", "MB", "nan", "nan MB"),
        ("maxpss", "MB", "1e999999999", "1e999999999 MB"),
        ("maxpss", "MB", "", ""),
        ("cpuconsumptiontime", "h", "0.1", "360"),
        ("raterbytes", "MB/s", "2", "2097152"),
        ("creationtime", "ms", 1767225600123, "2026-01-01 00:00:00.123000"),
        ("creationtime", "s", "1e25", "1e25 s"),
    ],
)
def test_conversions_are_exact_or_marked(column, unit, value, result):
    converted = conversion.converted("jobs", column, unit, pl.Series(column, [value]))
    assert converted.to_list() == [result]


def test_values_too_large_or_negative_after_conversion_are_refused(tmp_path):
    frame = foreign(4, MaxPSS_MB=["51.18", "-1", "9e18", "x"])
    report = ingest(written(tmp_path / "jobs.csv", frame), tmp_path / "a", mapping=SAID)
    assert report.frame().row(0)[2:5] == (4, 1, 3)
    assert reasons(tmp_path / "a") == [
        "maxpss -1024 is negative, allowed: 0 and above",
        "maxpss '9216000000000000000000' cannot be read as a whole number",
        "maxpss 'x MB' cannot be read as a whole number",
    ]


def test_a_kept_order_of_dates_is_not_used_against_the_dates(tmp_path):
    ingest(written(tmp_path / "jobs.csv", foreign(2)), tmp_path / "a", mapping=SAID)
    (kept,) = (tmp_path / "a" / "mappings").iterdir()
    american = written(tmp_path / "us" / "jobs.csv", foreign(9, dates="%m/%d/%Y %H:%M"))
    with pytest.raises(SchemaError) as refused:
        ingest(american, tmp_path / "a")
    assert str(refused.value) == (
        f"{american}: submitted '12/14/2026 00:00' (row 1) can only be read month-first, but {kept} keeps "
        f"day-first of an earlier export; say --mapping {kept} --dates month-first, or --dates "
        "day-first: rows that do not fit go to quarantine then"
    )
    said = Mapping.read(kept).joined(Mapping(dates="month-first"))
    assert ingest(american, tmp_path / "a", mapping=said).frame().row(0)[2:] == (9, 7, 0, 2)
    assert stored(tmp_path / "a", "creationtime")[8] == (START + timedelta(days=56),)


def test_a_length_of_time_is_no_time(tmp_path):
    frame = foreign(2).with_columns(start_time=pl.lit(timedelta(hours=1)))
    with pytest.raises(SchemaError, match=r"jobs\.starttime: found type Duration"):
        ingest(frame, tmp_path / "a", table="jobs", mapping=SAID)


def test_numbers_for_times_are_refused_with_the_option_to_type(tmp_path):
    frame = foreign(2).with_columns(start_time=pl.lit(1_790_000_000_000))
    with pytest.raises(SchemaError, match=r"say --unit starttime=s \(or ms, us, ns\)"):
        ingest(frame, tmp_path / "a", table="jobs", mapping=SAID)


def test_another_unit_corrects_nothing_in_place_and_says_so(tmp_path, make_jobs):
    source = tmp_path / "jobs.csv"
    make_jobs(3, maxpss=[2000, 3000, 4000]).write_csv(source)
    wrong, right = Mapping.of_options(unit=["maxpss=kB"]), Mapping.of_options(unit=["maxpss=MB"])
    first = ingest(source, tmp_path / "a", mapping=wrong)
    assert not any("read before" in note for note in first.sources[0].notes)
    again = ingest(source, tmp_path / "a", mapping=right)
    assert archive.open(tmp_path / "a").scan("jobs").collect()["maxpss"].to_list() == [
        2000,
        3000,
        4000,
    ]
    assert again.frame()["quarantined"].sum() == 3
    assert again.sources[0].notes[0] == (
        "was read before, with other options: what they gave then stays, rows that say otherwise now are refused; "
        "to correct a unit or a value, read all sources into a new archive"
    )


def test_a_start_in_place_of_the_creation_says_that_it_makes_no_waits(tmp_path, make_jobs):
    source = tmp_path / "jobs.csv"
    jobs = make_jobs(3).with_columns(starttime="creationtime").drop("creationtime")
    jobs.write_csv(source)
    with pytest.raises(SchemaError, match="the wait of every job is 0 then, which says nothing"):
        ingest(source, tmp_path / "a")
    said = Mapping.of_options(default=["creationtime=starttime"])
    (entry,) = ingest(source, tmp_path / "a", mapping=said).sources
    assert (
        "creationtime: not in the source, starttime stands for it; the wait of every job is 0 then, which says nothing"
        in entry.notes
    )


@pytest.mark.parametrize(
    ("time", "hint"),
    [
        ("1767225600", "where it counts from 1970, say --unit starttime=s (or ms, us, ns)"),
        ("1767225600000.5", "where it counts from 1970, say --unit starttime=s (or ms, us, ns)"),
        ("2026-12-31 05:00 PM", "write hours as 0 to 23, without AM and PM"),
        ("12/31/2026 5:00:00 a.m.", "write hours as 0 to 23, without AM and PM"),
        ("31/12/26 17:00", "write years with four digits: two can be read as day, month or year"),
        ("03-04-05", "write years with four digits: two can be read as day, month or year"),
        ("soon", ""),
    ],
)
def test_times_that_nobody_can_read_for_sure_say_what_would_help(tmp_path, make_jobs, time, hint):
    source = tmp_path / "jobs.csv"
    make_jobs(2, starttime=[time, None]).write_csv(source)
    ingest(source, tmp_path / "a")
    (row,) = archive.open(tmp_path / "a").scan("quarantine").collect().to_dicts()
    reason = f"starttime '{time}' cannot be read as a time (YYYY-MM-DD HH:MM:SS, Z or offset)"
    assert row["reason"] == (f"{reason}; {hint}" if hint else reason)
