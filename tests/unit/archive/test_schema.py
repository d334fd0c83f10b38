"""Values, names and keys are held to the contract, all problems at once."""

from datetime import date, datetime

import polars as pl
import pytest

from brokerlab.archive import parsing
from brokerlab.archive.schema import problems_of_values, validate
from brokerlab.errors import SchemaError
from tests.sifting import split


def reasons(result):
    return result.quarantine["reason"].to_list()


@pytest.mark.parametrize(
    "text",
    [
        "2026-03-01 12:00:00",
        "2026-03-01T12:00:00",
        "2026-03-01T12:00:00Z",
        "2026-03-01 12:00:00.000",
        "2026-03-01T14:00:00+02:00",
        "2026-03-01T14:00:00+0200",
        "2026-03-01 11:30:00-00:30",
        "2026-03-01 14:00:00.000+02",  # as DuckDB and PostgreSQL write times with a zone
        " 2026-03-01 12:00:00 ",
    ],
)
def test_all_time_forms_become_utc(make_jobs, text):
    result = validate("jobs", make_jobs(1, statechangetime=[text]))
    assert result["statechangetime"].to_list() == [datetime(2026, 3, 1, 12)]


@pytest.mark.parametrize("text", ["", "NULL", "   ", "1970-01-01 00:00:00", "1970-01-01T00:00:00Z"])
def test_missing_times_are_null(make_jobs, text):
    assert validate("jobs", make_jobs(1, endtime=[text]))["endtime"].to_list() == [None]


@pytest.mark.parametrize("text", ["2026-03-01", "yesterday", "2026-13-01 00:00:00", "12:00:00"])
def test_other_times_are_refused_with_the_value(make_jobs, text):
    with pytest.raises(SchemaError, match=f"endtime '{text}' cannot be read as a time"):
        validate("jobs", make_jobs(1, endtime=[text]))


def test_typed_times_are_converted(make_jobs):
    zone = pl.Series([datetime(2026, 3, 1, 12)]).dt.replace_time_zone("Europe/Berlin")
    frame = make_jobs(1).with_columns(statechangetime=zone, activatedtime=pl.lit(date(2026, 3, 1)))
    result = validate("jobs", frame)
    assert result["statechangetime"][0] == datetime(2026, 3, 1, 11)
    assert result["activatedtime"][0] == datetime(2026, 3, 1)


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (["Y", "N", "y"], [True, False, True]),
        (["1", "0", "NULL"], [True, False, None]),
        (["true", "FALSE", ""], [True, False, None]),
        (["T", "f", "No"], [True, False, False]),
        ([1, 0, None], [True, False, None]),
        ([1.0, 0.0, None], [True, False, None]),
    ],
)
def test_booleans(values, expected):
    frame = pl.DataFrame({"name": ["a", "b", "c"], "value": [1.0] * 3, "throttled": values})
    assert validate("gshares", frame)["throttled"].to_list() == expected


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (["123.0", "7", "1e3"], [123, 7, 1000]),
        ([123.0, None, 5.0], [123, None, 5]),
        (["9007199254740993.0", "9007199254740993", ""], [9007199254740993] * 2 + [None]),
    ],
)
def test_whole_numbers_may_arrive_as_floats(make_jobs, values, expected):
    assert (
        validate("jobs", make_jobs(3, outputfilebytes=values))["outputfilebytes"].to_list()
        == expected
    )


@pytest.mark.parametrize("value", ["1.5", "x", "nan", "inf", "99999999999999999999"])
def test_other_numbers_are_refused(make_jobs, value):
    with pytest.raises(SchemaError, match=r"nevents '.*' cannot be read as a whole number"):
        validate("jobs", make_jobs(1, nevents=[value]))


def test_a_number_too_large_for_its_type_is_refused(make_jobs):
    with pytest.raises(SchemaError, match="corecount '3000000000' cannot be read as a whole"):
        validate("jobs", make_jobs(1, corecount=["3000000000"]))


def test_numbers_become_text_where_text_is_due(make_jobs):
    result = validate("jobs", make_jobs(2, transexitcode=[0.0, 65.0]))
    assert result["transexitcode"].to_list() == ["0", "65"]


def test_upper_case_names_and_aliases(make_jobs):
    frame = make_jobs(1).rename({"jeditaskid": "TASKID", "pandaid": "JobId"})
    result = validate("jobs", frame.rename(str.upper).rename({"JOBID": "JobId"}))
    assert result["jeditaskid"].to_list() == [7]
    assert result["pandaid"].to_list() == [1]


def test_an_alias_does_not_push_out_the_canonical_column(make_jobs):
    result = validate("jobs", make_jobs(1, taskid=[9]))
    assert result["jeditaskid"].to_list() == [7]
    assert result["taskid"].to_list() == [9]


@pytest.mark.parametrize("alias", ["siteid", "site", "nickname", "computingsite"])
def test_queue_aliases(alias):
    frame = pl.DataFrame({alias: ["Q"], "type": ["production"], "status": ["online"]})
    assert validate("queues", frame)["panda_queue"].to_list() == ["Q"]


def test_missing_optional_columns_are_null_and_extra_ones_stay_at_the_end(make_jobs):
    result = validate("jobs", make_jobs(1, zebra=["x"]))
    assert result["gco2_global"].to_list() == [None]
    assert result.columns[-1] == "zebra"


def test_lazy_in_lazy_out(make_jobs):
    result = validate("jobs", make_jobs(2).lazy())
    assert isinstance(result, pl.LazyFrame)
    assert result.collect()["pandaid"].to_list() == [1, 2]


def test_missing_columns_and_wrong_types_are_reported_together(make_jobs):
    frame = make_jobs(1, maxpss=[[1]], creationtime=[5]).drop("pandaid", "jobstatus")
    with pytest.raises(SchemaError) as caught:
        validate("jobs", frame)
    lines = str(caught.value).splitlines()
    assert len(lines) == 4
    assert lines[0].startswith("jobs.pandaid: required column is missing; found: computingsite")
    assert "jobs.jobstatus: required column is missing" in lines[1]
    assert "jobs.creationtime: found type Int64, allowed: a time (YYYY" in lines[2]
    assert "jobs.maxpss: found type List(Int64), allowed: a whole number, or text" in lines[3]


def test_names_that_become_equal_are_refused(make_jobs):
    with pytest.raises(SchemaError, match=r"jobs\.maxpss: found twice, as 'maxpss' and 'MAXPSS'"):
        validate("jobs", make_jobs(1, MAXPSS=[1]))


def test_reserved_names_are_refused(make_jobs):
    with pytest.raises(SchemaError, match="names that begin with '__' are reserved"):
        validate("jobs", make_jobs(1, __row=[1]))


def test_all_row_problems_are_listed_with_counts_and_keys(make_jobs):
    frame = make_jobs(
        3,
        maxpss=[-1, -2, 3],
        jobstatus=[None, "finished", "finished"],
        meancorecount=[1.0, 1.0, float("nan")],
    )
    with pytest.raises(SchemaError) as caught:
        validate("jobs", frame)
    text = str(caught.value)
    assert (
        "jobs.maxpss: 2 row(s), e.g. row 1: maxpss -1 is negative, allowed: 0 and above (pandaid=1; pandaid=2)"
        in text
    )
    assert "jobs.jobstatus: 1 row(s), e.g. row 1: jobstatus is null, it is required" in text
    assert "jobs.meancorecount: 1 row(s), e.g. row 3: meancorecount NaN is not a number" in text


def test_duplicated_keys_are_an_error_in_a_frame_that_should_be_right(make_jobs):
    with pytest.raises(SchemaError, match=r"jobs: 1 key\(s\) occur more than once \(pandaid=5\)"):
        validate("jobs", make_jobs(3, pandaid=[5, 5, 6]))


# one row each of the bad input that the issue lists; the others of the batch are accepted


@pytest.mark.parametrize(
    ("column", "value", "reason"),
    [
        ("pandaid", None, "pandaid is null, it is required"),
        ("pandaid", "twelve", "pandaid 'twelve' cannot be read as a whole number"),
        ("jobstatus", "  ", "jobstatus is null, it is required"),
        ("cpuconsumptiontime", "-5", "cpuconsumptiontime -5 is negative"),
        ("inputfilebytes", "-1", "inputfilebytes -1 is negative"),
        (
            "endtime",
            "2020-01-01 00:00:00",
            "endtime 2020-01-01 00:00:00.000000 is before starttime",
        ),
        ("meancorecount", "NaN", "meancorecount NaN is not a number (NaN)"),
        ("meancorecount", "inf", "meancorecount inf is infinite"),
        ("meancorecount", "-inf", "meancorecount -inf is negative; meancorecount -inf is infinite"),
        ("nevents", "nan", "nevents 'nan' cannot be read as a whole number"),
        ("modificationtime", "soon", "modificationtime 'soon' cannot be read as a time"),
    ],
)
def test_a_bad_row_goes_to_quarantine_with_its_reason(make_jobs, column, value, reason):
    good = make_jobs(4).cast({"modificationtime": pl.String, "starttime": pl.String})
    values = good[column].cast(pl.String).to_list() if column in good.columns else ["1"] * 4
    result = split("jobs", good.with_columns(pl.Series(column, [*values[:3], value])), source="s")
    assert len(result.accepted) == 3
    assert result.quarantine.select("source", "row", "table").rows() == [("s", 4, "jobs")]
    found = reasons(result)[0]
    assert all(part in found for part in reason.split("; "))


def test_ten_megabytes_in_any_column_are_refused_without_being_shown(make_jobs):
    huge = "z" * 10_000_000
    for column in ("nevents", "starttime", "produsername", "something_else"):
        result = split("jobs", make_jobs(2, **{column: [huge, None]}))
        assert len(result.accepted) == 1
        assert len(reasons(result)[0]) < 200
    result = split("jobs", make_jobs(1, produsername=[huge]))
    assert reasons(result) == ["produsername has 10000000 bytes, allowed: 65536"]


def test_duplicates_keep_the_latest_and_are_counted(make_jobs):
    frame = make_jobs(4, pandaid=[1, 1, 1, 2], maxpss=[10, 11, 11, 12])
    result = split("jobs", frame)
    assert result.accepted.select("pandaid", "maxpss").rows() == [(1, 11), (2, 12)]
    assert (result.duplicates, len(result.quarantine)) == (2, 0)


def test_rows_of_the_same_time_complete_each_other(make_jobs):
    same = [datetime(2026, 3, 5)] * 2
    frame = make_jobs(2, pandaid=[1, 1], modificationtime=same, endtime=[None] * 2,
                      starttime=[None] * 2, creationtime=same, maxpss=[None, 5],
                      gshare=["A", None])  # fmt: skip
    result = split("jobs", frame)
    assert result.accepted.select("maxpss", "gshare").rows() == [(5, "A")]
    assert result.duplicates == 1


def test_rows_of_the_same_time_that_contradict_are_told(make_jobs):
    same = [datetime(2026, 3, 5)] * 2
    frame = make_jobs(2, pandaid=[1, 1], modificationtime=same, starttime=same, endtime=same,
                      creationtime=same, maxpss=[4, 5])  # fmt: skip
    result = split("jobs", frame, source="one.csv")
    assert reasons(result) == ["maxpss 5 contradicts 4 (kept, of one.csv)"]
    assert (len(result.accepted), result.duplicates) == (1, 0)


@pytest.mark.parametrize("name", ["a{}", "{0}", "{"])
def test_a_column_with_braces_in_its_name_contradicts_like_others(name):
    frame = pl.DataFrame({"resource_name": ["A", "A"], name: ["x", "y"]})
    result = split("resource_types", frame, source="one.csv")
    assert reasons(result) == [f"{name} y contradicts x (kept, of one.csv)"]


def test_null_equals_null_in_a_key():
    frame = pl.DataFrame(
        {"jeditaskid": [1, 1], "datasetid": [2, 2], "fileid": [3, 3], "type": ["input"] * 2,
         "status": ["finished"] * 2}
    )  # fmt: skip
    assert split("files", frame).duplicates == 1


def test_numbers_in_a_text_column_are_text_also_where_rows_are_refused() -> None:
    rows = pl.DataFrame({"jobstatus": [5, None], "pandaid": [1, 2]})
    result = split(
        "job_status_log", rows.with_columns(modificationtime=pl.lit("2026-01-01 00:00:00"))
    )
    assert result.accepted["jobstatus"].to_list() == ["5"]
    assert result.quarantine["reason"].to_list() == ["jobstatus is null, it is required"]


@pytest.mark.parametrize(
    "odd", ["2026-03-01T12:00:00Z", "2026-03-01 12:00:00.1234567", "1969-12-31 23:59:59", "2026-02-30 00:00:00", "soon"]
)  # fmt: skip
def test_a_time_is_read_alike_whatever_stands_beside_it(odd):
    usual = ["2026-03-01 12:00:00", "2026-03-01T12:00:00.5", "9999-12-31 23:59:59.999999"]
    kinds = pl.String(), pl.Datetime("us")
    alone, beside = (
        pl.DataFrame({"t": texts}).select(parsing.parsed(pl.col("t"), *kinds))["t"].to_list()
        for texts in (usual, [*usual, odd])
    )
    assert beside[:3] == alone == [
        datetime(2026, 3, 1, 12), datetime(2026, 3, 1, 12, 0, 0, 500_000), datetime(9999, 12, 31, 23, 59, 59, 999_999),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("table", "column", "value", "meant"),
    [
        ("jobs", "jobstatus", "FINISHED", "finished"),
        ("jobs", "resource_type", "score_himem", "SCORE_HIMEM"),
        ("tasks", "status", "Exhausted", "exhausted"),
        ("files", "status", "Picked", "picked"),
        ("files", "type", "INPUT", "input"),
        ("queues", "status", "BrokerOff", "brokeroff"),
        ("task_status_log", "status", "READY", "ready"),
    ],
)
def test_known_names_in_another_letter_case_are_refused(table, column, value, meant):
    """No rule would find them; a name of another system stays."""
    message = f"{column} '{value}' is no value, did you mean '{meant}'?"
    assert problems_of_values(table, pl.DataFrame({column: [value]})) == [message]
    assert problems_of_values(table, pl.DataFrame({column: [meant, "of my own"]})) == []


@pytest.mark.parametrize(("table", "column", "most"), [("jobs", "maxpss", 10**15), ("tasks", "ramcount", 10**12), ("files", "fsize", 10**18), ("jobs", "diskio", 10**10), ("files", "nevents", 10**12)])  # fmt: skip
def test_nobody_has_more_than_an_exabyte(table, column, most):
    """Memory near 2**62 was below 0 times eight cores, and so were rates in millionths."""
    assert problems_of_values(table, pl.DataFrame({column: [most]})) == []
    for value in (most + 1, 2**62):
        message = f"{column} {value} is more than there is, allowed: up to {most}"
        assert problems_of_values(table, pl.DataFrame({column: [value]})) == [message]
