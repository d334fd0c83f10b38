"""The profile of an archive: tables made by hand, each fault planted once and counted exactly."""

from datetime import date, datetime, time, timedelta

import polars as pl
import pytest

from brokerlab import archive
from brokerlab.archive import profiling

START = datetime(2026, 3, 1)
ODD = 'A<b>&\n"💥"'


def jobs(n: int = 100) -> pl.DataFrame:
    """One job an hour, nothing odd about any."""
    number = pl.int_range(n, eager=True)
    created = START + number * timedelta(hours=1)
    return pl.DataFrame(
        {
            "pandaid": number + 1,
            "jeditaskid": number % 4 + 1,
            "jobstatus": ["finished"] * n,
            "prodsourcelabel": ["managed"] * n,
            "computingsite": ["Q1"] * n,
            "creationtime": created,
            "starttime": created + timedelta(minutes=5),
            "endtime": created + timedelta(minutes=65),
            "modificationtime": created + timedelta(minutes=66),
            "corecount": [1] * n,
            "maxpss": 1_000_000 + number,
            "maxrss": [2_000_000] * n,
            "minramcount": [2_000] * n,
            "cpuconsumptiontime": [3_000] * n,
            "inputfilebytes": [1_000] * n,
        },
        strict=False,
    )


def tasks() -> pl.DataFrame:
    return pl.DataFrame(
        {
            "jeditaskid": [1, 2, 3, 4],
            "vo": "atlas",
            "prodsourcelabel": "managed",
            "status": "done",
            "creationdate": START,
            "modificationtime": START,
        }
    )


def queues(*names: str) -> pl.DataFrame:
    return pl.DataFrame({"panda_queue": names, "type": "unified", "status": "online"})


@pytest.fixture
def profiled(tmp_path, monkeypatch):
    """Return a maker of profiles of tables, small ones in memory; further parts of a table stand in files of their own."""
    monkeypatch.setattr(profiling, "MOST_HELD_ROWS", 4)

    def make(*parts: tuple[str, pl.DataFrame]):
        for name, frame in parts:
            with archive.ArchiveWriter(tmp_path) as writer:
                writer.write(name, frame)
                writer.commit()
        return archive.open(tmp_path).profile()

    return make


def changed(frame: pl.DataFrame, row: int, **values: object) -> pl.DataFrame:
    """Return the frame with other values in one row."""
    here = pl.int_range(pl.len()) == row
    return frame.with_columns(
        pl.when(here).then(pl.lit(value, dtype=frame.schema[name])).otherwise(name).alias(name)
        for name, value in values.items()
    )


def test_nothing_odd_in_good_tables(profiled):
    found = profiled(("jobs", jobs()), ("tasks", tasks()), ("queues", queues("Q1")))
    assert found.frame().is_empty()
    assert "3 tables, 100 jobs; nothing odd" in found.headline()
    assert found.joins["matched_share"].drop_nulls().to_list() == [1.0, 1.0, 1.0]


def test_coverage(profiled):
    found = profiled(("jobs", jobs()), ("queues", queues("Q1")))
    first, second = found.tables.to_dicts()
    assert first == {
        "table": "jobs",
        "rows": 100,
        "time": "creationtime",
        "first": START,
        "last": datetime(2026, 3, 5, 3),
        "days": 5,
        "days_with": 5,
        "longest_gap_h": 1.0,
    }
    assert second["rows"] == 1
    assert second["time"] is None


def test_nulls_and_ranges_with_units(profiled):
    frame = changed(changed(jobs(), 3, maxpss=None), 4, maxpss=0)
    found = profiled(("jobs", frame)).columns.filter(table="jobs")
    row = found.row(by_predicate=pl.col("column") == "maxpss", named=True)
    known = frame["maxpss"].drop_nulls().sort()
    assert (row["unit"], row["type"]) == ("kB", "i64")
    assert (row["rows"], row["nulls"], row["null_share"], row["zeros"]) == (100, 1, 0.01, 1)
    assert (row["least"], row["most"]) == (0, 1_000_099)
    assert (row["p01"], row["median"], row["p99"]) == (known[0], known[49], known[98])
    assert row["null_means"] == "not measured; 0 likewise"
    time = found.row(by_predicate=pl.col("column") == "starttime", named=True)
    assert (time["first"], time["unit"]) == (datetime(2026, 3, 1, 0, 5), None)
    status = found.row(by_predicate=pl.col("column") == "jobstatus", named=True)
    assert (status["different"], status["median"]) == (1, None)
    missing = found.row(by_predicate=pl.col("column") == "gshare", named=True)
    assert missing["nulls"] == 100


def test_columns_of_no_contract_are_looked_at_too(profiled):
    found = profiled(("jobs", jobs().with_columns(pl.lit(7).alias('my "own"')))).columns
    row = found.row(by_predicate=pl.col("column") == 'my "own"', named=True)
    assert (row["least"], row["unit"], row["null_means"]) == (7, None, None)


def test_keys_that_lead_nowhere(profiled):
    frame = changed(jobs(), 0, computingsite=ODD)
    frame = changed(frame, 1, jeditaskid=99)
    frame = changed(frame, 2, jeditaskid=None)
    found = profiled(("jobs", frame), ("tasks", tasks()), ("queues", queues("Q1", "Q2", "Q3")))
    matched = found.joins.filter(pl.col("matched_rows").is_not_null()).to_dicts()
    by_task, by_queue, with_jobs, *_ = matched
    assert by_task["other"] == "tasks.jeditaskid"
    assert (by_task["rows"], by_task["null_rows"], by_task["matched_rows"]) == (100, 1, 98)
    assert by_task["matched_share"] == 98 / 99
    assert (by_task["keys"], by_task["matched_keys"], by_task["unused_keys"]) == (5, 4, 0)
    assert by_task["unmatched"] == ["99"]
    assert (by_queue["matched_rows"], by_queue["unused_keys"]) == (99, 2)
    assert by_queue["unmatched"] == [ODD]
    assert with_jobs["table"] == "tasks"
    assert found.frame().select("column", "rows", "example").rows() == [
        ("jeditaskid", 1, "99"),
        ("computingsite", 1, ODD),
    ]
    html = found._repr_html_()
    assert "2 things to look at" in html
    assert "A&lt;b&gt;&amp;" in html
    assert "<b>" not in html


def test_keys_into_absent_tables_are_unknown_not_bad(profiled):
    found = profiled(("jobs", jobs()))
    row = found.joins.filter(other="tasks.jeditaskid").row(0, named=True)
    assert (row["keys"], row["matched_rows"], row["matched_share"]) == (4, None, None)
    assert found.frame().is_empty()


OUTLIERS = [
    ("starttime", "before creationtime", {"starttime": START - timedelta(hours=1)}, None),
    (
        "endtime",
        "before creationtime",
        {"starttime": None, "endtime": START - timedelta(days=1)},
        None,
    ),
    ("cpuconsumptiontime", "more than 1.5", {"cpuconsumptiontime": 5_461}, "s"),
    ("maxpss", "above maxrss", {"maxpss": 2_000_001}, "kB"),
    ("maxpss", "outside 10 MB to 2 TB", {"maxpss": 9_999}, "kB"),
    ("minramcount", "outside 10 MB to 2 TB", {"minramcount": 9}, "MB"),
    ("corecount", "above 1,024 cores", {"corecount": 1_025}, "cores"),
    ("jobstatus", "finished without endtime", {"endtime": None}, None),
    ("jobstatus", "no status of PanDA", {"jobstatus": "completed"}, None),
    ("inputfilebytes", "above 100 × the 99th percentile", {"inputfilebytes": 100_001}, "B"),
    (
        "endtime",
        "more than 5 years from the median",
        {"endtime": datetime(2036, 1, 1), "modificationtime": datetime(2036, 1, 1)},
        None,
    ),
]


def each_in_a_row(*values: dict[str, object]) -> pl.DataFrame:
    """Return jobs of which the first ones have the values, each one of them."""
    frame = jobs()
    for row, each in enumerate(values):
        frame = changed(frame, row, **each)
    return frame


def test_each_outlier_is_counted_with_its_rule(profiled):
    found = profiled(("jobs", each_in_a_row(*(values for _, _, values, _ in OUTLIERS))))
    for number, (column, rule, _, unit) in enumerate(OUTLIERS, 1):
        rows = found.outliers.filter(pl.col("rule").str.starts_with(rule), column=column)
        (row,) = rows.to_dicts()
        assert (row["rows"], row["unit"], row["example"]) == (1, unit, str(number))
        assert row["rule"] in found.frame()["fault"].to_list()


def test_the_edge_of_each_rule_is_no_outlier(profiled):
    edges = (
        {"cpuconsumptiontime": 5_460},
        {"maxpss": 2_000_000},
        {"maxpss": 10_000},
        {"maxpss": 0},
        {"minramcount": 10},
        {"minramcount": 0},
        {"inputfilebytes": 100_000},
        {"corecount": 8, "cpuconsumptiontime": 43_260},
    )
    assert profiled(("jobs", each_in_a_row(*edges))).outliers.is_empty()


def test_mistaken_units_stand_out(profiled):
    found = profiled(("jobs", jobs().with_columns(maxpss=pl.col("maxpss") // 1024)))  # MB as kB
    (row,) = found.outliers.to_dicts()
    assert (row["column"], row["rows"], row["share"]) == ("maxpss", 100, 1.0)


def test_doubled_ids(profiled):
    again = jobs().filter(pl.col("pandaid").is_in([7, 8]))
    found = profiled(("jobs", jobs()), ("jobs", again))
    (row,) = found.duplicates.to_dicts()
    assert row == {"table": "jobs", "key": "pandaid", "keys": 2, "rows": 4, "examples": ["7", "8"]}
    assert found.frame().filter(fault="key in several rows")["share"].to_list() == [4 / 102]


def test_of_a_key_of_several_columns_null_equals_null(profiled):
    found = profiled(("queues", queues("Q1", "Q2", "Q3")), ("queues", queues("Q2", "Q3")[:1]))
    (row,) = found.duplicates.to_dicts()
    assert (row["key"], row["keys"], row["rows"]) == ("panda_queue, ts", 1, 2)
    assert row["examples"] == ["Q2, None"]


def test_gaps_in_time(profiled):
    late = jobs().with_columns(
        pl.when(pl.col("pandaid") > 50)
        .then(pl.col(pl.Datetime) + timedelta(days=4))
        .otherwise(pl.col(pl.Datetime))
        .name.keep()
    )
    found = profiled(("jobs", late))
    (row,) = found.gaps.to_dicts()
    assert row["start"] == START + timedelta(hours=49)
    assert row["end"] == START + timedelta(hours=50, days=4)
    assert row["hours"] == 97.0
    assert found.tables["days_with"].to_list() == [6]
    assert found.tables["days"].to_list() == [9]
    assert found.frame()["example"].to_list() == ["from 2026-03-03 01:00 UTC"]


def test_few_rows_have_no_gaps(profiled):
    """Ten jobs in a month: a week without any is nothing odd."""
    few = jobs(10).with_columns(pl.col(pl.Datetime) + pl.col("pandaid") * timedelta(days=3))
    assert profiled(("jobs", few)).gaps.is_empty()


def test_an_empty_archive(tmp_path):
    with archive.ArchiveWriter(tmp_path) as writer:
        writer.commit()
    found = archive.open(tmp_path).profile()
    assert found.tables.is_empty()
    assert found.frame().is_empty()
    assert "0 tables, 0 jobs; nothing odd" in repr(found)


def test_times_of_other_kinds_are_looked_at_or_left(profiled):
    """Dates and times with a zone are times in UTC; clock times and lengths of time have no ends."""
    zoned = pl.datetime_range(START, START + timedelta(hours=99), "1h", eager=True)
    more = {
        "day": [date(2026, 3, 1)] * 99 + [date(2019, 3, 1)],
        "zoned": zoned.dt.replace_time_zone("Europe/Zurich"),
        "clock": [time(1, 2)] * 100,
        "length": [timedelta(hours=1)] * 100,
    }
    made = profiled(("jobs", jobs().with_columns(**{n: pl.Series(v) for n, v in more.items()})))
    ends = {
        row["column"]: (row["first"], row["last"])
        for row in made.columns.iter_rows(named=True)
        if row["column"] in more
    }
    assert ends == {
        "day": (datetime(2019, 3, 1), datetime(2026, 3, 1)),
        "zoned": (datetime(2026, 2, 28, 23), datetime(2026, 3, 5, 2)),
        "clock": (None, None),
        "length": (None, None),
    }
    assert made.outliers.select("column", "rows", "worst").rows() == [
        ("day", 1, "2019-03-01 00:00")
    ]


def test_a_column_of_negative_values_has_no_far_ones(profiled):
    found = profiled(("jobs", jobs().with_columns(memory_leak=pl.int_range(-104, -4))))
    assert found.outliers.is_empty()
    row = found.columns.row(by_predicate=pl.col("column") == "memory_leak", named=True)
    assert (row["least"], row["most"]) == (-104, -5)
