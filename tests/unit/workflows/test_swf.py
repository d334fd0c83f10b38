"""Logs in the Standard Workload Format, and rule R."""

from __future__ import annotations

import gzip
from datetime import datetime
from types import SimpleNamespace

import polars as pl
import pytest

from brokerlab.errors import ConfigError, DataError, InsufficientDataError
from brokerlab.workflows import load, swf

HEADER = """; Version: 2.2
;MaxNodes: 9
; MaxProcs:16
; UnixStartTime: 843480031
; Note: first
;       http://there/
; Note: second
"""


def line(job=1, submit=0, wait=5, run=60, used=4, requested=4, asked=100, status=1, more=""):
    return f" {job}  {submit} {wait}\t{run} {used} -1 -1 {requested} {asked} -1 {status} 7 8 9 1 2 -1 -1{more}"


def log(tmp_path, *lines, header=HEADER, pack=False):
    path = tmp_path / "log.swf"
    text = (header + "\n".join(lines) + "\n").encode("latin-1")
    path.write_bytes(gzip.compress(text) if pack else text)
    return swf.read(path)


@pytest.mark.parametrize("pack", [False, True])
def test_fields_header_and_unknowns(tmp_path, pack):
    found = log(
        tmp_path,
        line(run="60.5"),
        "",
        "   ; Where: Köln, not only at the top",
        line(2, wait=-1),
        pack=pack,
    )
    assert list(found.jobs.schema) == ["line", *swf.FIELDS]
    assert found.jobs["line"].to_list() == [8, 11]
    first, second = found.jobs.rows(named=True)
    assert (first["run_s"], first["wait_s"], first["hosts_used"], first["partition"]) == (
        60.5,
        5.0,
        4,
        2,
    )
    assert (second["wait_s"], second["memory_kb"], second["think_s"]) == (None, None, None)
    assert found.header["Where"][0].endswith("ln, not only at the top")
    assert found.header["Note"] == ("first", "http://there/", "second")
    assert (found.hosts, found.zero) == (16, datetime(1996, 9, 23, 12, 0, 31))
    assert (found.rows, len(found.quarantine)) == (2, 0)


def test_every_bad_line_is_told_with_all_that_is_wrong(tmp_path):
    found = log(
        tmp_path,
        line(),
        "1 2 3",
        line(run="6x", used=2.5, asked=-7),
        line(submit="nan", more=" {1,2} q"),
        line(used="1e300"),
    )
    reasons = dict(found.quarantine["line", "reason"].rows())
    assert found.rows == len(found.jobs) + len(found.quarantine) == 5
    assert reasons[9] == "3 fields, a job has 18"
    assert "field 4 (run_s) is 6x, no number" in reasons[10]
    assert "field 5 (hosts_used) is 2.5, allowed: a whole number" in reasons[10]
    assert "field 9 (requested_s) is -7, allowed: 0 or more, or -1 for unknown" in reasons[10]
    assert "field 2 (submit_s) is nan, no number" in reasons[11]
    assert "whole number" in reasons[12]
    assert "1 lines have more than 18 fields; those behind are left out" in found.notes


def test_notes_on_order_and_on_what_is_unknown_throughout(tmp_path):
    found = log(tmp_path, line(submit=9, asked=-1), line(2, submit=3, asked=-1))
    assert "1 lines were submitted before the line above; a log is in that order" in found.notes
    assert any("requested_s" in note for note in found.notes)


def test_files_that_are_no_logs(tmp_path):
    with pytest.raises(DataError, match="cannot be read as a log"):
        swf.read(tmp_path / "nowhere.swf")
    with pytest.raises(DataError, match="no job in it"):
        log(tmp_path, "; nothing")
    (tmp_path / "half.gz").write_bytes(gzip.compress(line().encode() * 50)[:-20])
    with pytest.raises(DataError, match="damaged"):
        swf.read(tmp_path / "half.gz")


def test_rule_r_touches_rows_and_says_so(tmp_path):
    found = log(
        tmp_path,
        line(1, submit=50, run=0),
        line(2, submit=1, used=-1, requested=3),
        line(3, submit=2, run=200),
        line(4, submit=3, asked=-1),
        line(5, used=0, requested=-1),
        line(6, run=-1),
        line(7, submit=-1),
        line(8, used=17),
        line(9, submit=4, status=2),
        line(9, submit=4, status=1, run=90),
        line(10, submit=5, status=2),
        line(10, submit=6, status=3),
    )
    done = load.of_swf(found)
    rows = {row["job_id"]: row for row in done.jobs.rows(named=True)}
    assert list(rows) == ["2", "3", "4", "9/2", "10/1", "10/2", "1"]
    assert (rows["1"]["run_s"], rows["2"]["hosts"], rows["4"]["requested_s"]) == (1.0, 3, 60.0)
    assert (rows["3"]["run_s"], rows["3"]["requested_s"]) == (200.0, 200.0)
    assert (rows["3"]["seen_wait_s"], rows["3"]["seen_start_s"]) == (5.0, 7.0)
    left_out = done.counts.filter(pl.col("effect") == "left out")["n_rows"]
    assert left_out.to_list() == [1, 1, 1, 0, 1, 1]
    assert left_out.sum() + len(done.jobs) == done.rows == 12
    assert done.counts.filter(pl.col("effect") == "changed")["n_rows"].to_list() == [1, 1, 1]
    cut = load.of_swf(found, overrun="kill").jobs.filter(pl.col("job_id") == "3")
    assert cut["run_s", "requested_s"].rows() == [(100.0, 100.0)]


def test_settings_of_rule_r(tmp_path):
    found = log(tmp_path, line(), line(2), header="")
    with pytest.raises(ConfigError, match="how many it had"):
        load.of_swf(found)
    with pytest.raises(ConfigError, match="did you mean 'extend'"):
        load.of_swf(found, hosts=4, overrun="extent")
    with pytest.raises(InsufficientDataError, match="2 wider than the machine"):
        load.of_swf(found, hosts=3)
    with pytest.raises(InsufficientDataError, match="of 0"):
        load.of_swf(found, hosts=4, partition=99)


def panda(**changes):
    start = datetime(2026, 3, 1)
    rows = {
        "pandaid": [1, 2, 3],
        "creationtime": [start, start.replace(hour=1), start.replace(hour=2)],
        "starttime": [start.replace(hour=1), start.replace(hour=2), None],
        "endtime": [start.replace(hour=3), start.replace(hour=4), None],
        "actualcorecount": [8, None, None],
        "corecount": [1, 0, 8],
        "maxwalltime": [86400, 0, 0],
        "computingsite": ["Q", "Q", "Q"],
        "jobstatus": ["finished", "failed", "activated"],
    }
    return pl.DataFrame(rows | changes)


def test_a_table_of_panda_jobs_as_load():
    done = load.of_table(panda(), queue="Q")
    assert done.jobs.select("job_id", "submit_s", "run_s", "requested_s", "hosts").rows() == [
        ("1", 0.0, 7200.0, 86400.0, 8),
        ("2", 3600.0, 7200.0, 7200.0, 1),
    ]
    assert (done.hosts, done.rows, done.zero) == (9, 3, datetime(2026, 3, 1))
    assert done.counts.filter(pl.col("n_rows") > 0)["n_rows"].to_list() == [1, 1]
    halves = load.of_table(panda(), cores_per_host=3, hosts=5)
    assert halves.jobs["hosts"].to_list() == [3, 1]
    whole = load.of_archive(SimpleNamespace(jobs=panda().lazy()), "Q")
    assert whole.jobs.equals(done.jobs)


def test_a_table_of_seconds_under_other_names():
    table = pl.DataFrame({"id": ["a"], "q": [10.0], "s": [12], "e": [20], "n": [2]})
    names = {"job_id": "id", "submit": "q", "start": "s", "end": "e", "cores": "n"}
    done = load.of_table(table, columns=names)
    assert done.jobs.select("submit_s", "run_s", "hosts", "seen_wait_s").rows() == [
        (10.0, 8.0, 2, 2.0)
    ]


def test_a_wide_job_of_no_length_makes_no_machine_too_small_for_it():
    table = pl.DataFrame({"id": ["a", "b"], "q": [0.0, 5.0], "s": [0, 5], "e": [9, 5], "n": [1, 4]})
    names = {"job_id": "id", "submit": "q", "start": "s", "end": "e", "cores": "n"}
    done = load.of_table(table, columns=names)
    assert (done.hosts, done.jobs["run_s"].to_list()) == (4, [9.0, 1.0])


def test_tables_that_are_no_load():
    with pytest.raises(
        ConfigError, match=r"unknown 'submits'.*'submit'.*'end' is needed.*cores_per_host"
    ):
        load.of_table(panda(), columns={"job_id": "pandaid", "submits": "x", "start": "y"}, cores_per_host=0)  # fmt: skip
    with pytest.raises(DataError, match="no columns endtime"):
        load.of_table(panda().drop("endtime"))
    with pytest.raises(InsufficientDataError, match="no job is left of 0: there is no row"):
        load.of_table(panda(), queue="elsewhere")


def test_tables_of_other_kinds_are_refused_and_numbers_that_are_none_left_out():
    """Timestamps beside seconds would be read as microseconds."""
    mixed = panda(creationtime=[0.0, 1.0, 2.0], corecount=["1", "8", "x"])
    with pytest.raises(DataError) as caught:
        load.of_table(mixed)
    told = str(caught.value)
    assert "jobs.corecount is String; allowed: numbers" in told
    assert "jobs.creationtime is Float64, jobs.starttime is Datetime" in told
    assert "seconds throughout" in told
    nan, seconds = float("nan"), panda(creationtime=[0, 1, 2]).drop("starttime", "endtime")
    table = seconds.with_columns(
        starttime=pl.Series([1.0, nan, 5.0]),
        endtime=pl.Series([3.0, 4.0, float("inf")]),
        maxwalltime=pl.Series([nan, 1.0, 1.0]),
        actualcorecount=pl.Series([1.5, 1.0, 1.0]),
    )
    done = load.of_table(table)
    assert done.jobs.select("job_id", "run_s", "requested_s", "hosts").rows() == [("1", 2.0, 2.0, 2)]  # fmt: skip
    assert done.counts.filter(pl.col("n_rows") > 0)["n_rows"].to_list() == [2, 1]


def test_a_day_is_no_instant():
    """Of a column of dates every job of a day would run for no time at all."""
    for days in (["creationtime"], ["creationtime", "starttime", "endtime"]):
        with pytest.raises(DataError, match=r"jobs.creationtime is Date.*timestamps throughout"):
            load.of_table(panda().with_columns(pl.col(days).cast(pl.Date)))


def test_second_0_is_told_in_utc_whatever_the_zone_of_the_table():
    times = pl.col("creationtime", "starttime", "endtime")
    zurich = panda().with_columns(
        times.dt.replace_time_zone("UTC").dt.convert_time_zone("Europe/Zurich")
    )
    done, plain = load.of_table(zurich), load.of_table(panda())
    assert (done.zero, done.jobs.rows()) == (plain.zero, plain.jobs.rows())
    coarse = load.of_table(panda().with_columns(pl.col("creationtime").cast(pl.Datetime("ms"))))
    assert coarse.jobs.equals(plain.jobs)


def test_cores_that_are_not_positive_are_not_known():
    """Rule R: the hosts that were used if > 0, else those requested."""
    done = load.of_table(panda(actualcorecount=[-1, -1, 8], corecount=[4, -1, 8]))
    assert done.jobs["hosts"].to_list() == [4, 1]


def test_a_zero_beyond_the_calendar_is_not_known(tmp_path):
    """Some write milliseconds."""
    path = tmp_path / "log.swf"
    path.write_text("; UnixStartTime: 843480031000\n; MaxProcs: 4\n" + " ".join(["1"] * 18))
    log = swf.read(path)
    assert log.zero is None
    assert load.of_swf(log).zero is None
