"""``brokerlab tables`` and ``brokerlab ingest``: what they print, how they fail."""

import json
import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest
from typer.testing import CliRunner

from brokerlab import archive
from brokerlab.cli import app

ROWS = (
    "PANDAID,JEDITASKID,JOBSTATUS,PRODSOURCELABEL,CREATIONTIME,MODIFICATIONTIME,MAXPSS\n"
    "1,7,finished,managed,2026-03-01 00:00:00,2026-03-01 01:00:00,100\n"
    "1,7,running,managed,2026-03-01 00:00:00,2026-03-01 00:30:00,\n"
    "2,7,finished,managed,2026-03-01 00:00:00,2026-03-01 01:00:00,-5\n"
)


@pytest.fixture
def source(tmp_path):
    path = tmp_path / "JOBSARCHIVED4.csv"
    path.write_text(ROWS)
    return path


def run(*words):
    return CliRunner().invoke(app, [str(word) for word in words])


def test_tables_lists_all_tables():
    result = run("tables")
    assert result.exit_code == 0
    assert all(name in result.stdout for name in ("jobs", "expected_scouts", "gdpconfig"))


def test_tables_shows_one_table_with_units_and_null_meanings():
    result = run("tables", "jobs")
    assert result.exit_code == 0
    line = next(line for line in result.stdout.splitlines() if " maxpss " in line)
    cells = [cell.strip() for cell in line.split("│")[1:-1]]
    assert cells == ["maxpss", "i64", "not measured; 0 likewise", "kB", "largest PSS, whole job"]


def test_tables_of_a_brokerage_say_what_it_takes_where_one_is_missing():
    result = run("tables", "production-jobs")
    assert result.exit_code == 0
    words = " ".join(result.output.replace("│", " ").split())
    assert "unknown: inactive, no_pilot remove nothing" in words
    assert "no queue is locked" in words


def test_tables_shows_one_table_of_a_brokerage():
    result = run("tables", "analysis-jobs.queues")
    assert result.exit_code == 0
    assert "cores of a slot" in result.output
    wrong = run("tables", "analysis-jobs.queue")
    assert wrong.exit_code == 2
    assert (
        "analysis-jobs has no table 'queue': did you mean 'queues'?" in wrong.output + wrong.stderr
    )


def test_tables_names_the_nearest_table():
    result = run("tables", "job")
    assert result.exit_code == 2
    assert (
        result.stderr.splitlines()[-1] == "SchemaError: unknown table 'job': did you mean 'jobs'?"
    )


def test_ingest_prints_counts_that_add_up_and_reasons(source, tmp_path):
    result = run("ingest", source, "--into", tmp_path / "a")
    assert result.exit_code == 0
    lines = result.stdout.splitlines()
    assert "3 rows in = 1 accepted + 1 quarantined + 1 duplicates" in lines
    assert (
        "refused, JOBSARCHIVED4.csv row 3 (jobs): maxpss -5 is negative, allowed: 0 and above"
        in lines
    )
    assert "1 task(s) have no files: one stand-in per job, approximate = true" in lines
    digest = archive.open(tmp_path / "a").digest
    assert lines[-1].endswith(f"1 datasets, 1 files, 1 jobs, 1 quarantine; digest {digest}")


def test_ingest_again_says_so_and_changes_nothing(source, tmp_path):
    first = run("ingest", source, "--into", tmp_path / "a")
    again = run("ingest", source, "--into", tmp_path / "a")
    assert again.exit_code == 0
    assert again.stdout.startswith("JOBSARCHIVED4.csv: in the archive already, skipped\n")
    assert again.stdout.splitlines()[-1] == first.stdout.splitlines()[-1]


@pytest.mark.parametrize(
    ("name", "content", "code", "words"),
    [
        ("jobs.csv", b"", 3, r"is empty (0 bytes); remove it or export it again"),
        ("jobs.csv.gz", b"\x1f\x8b\x08\x00", 3, "truncated or damaged gzip"),
        ("jobs.json", b'{"jobs": [', 3, "truncated or damaged JSON"),
        ("jobs.parquet", b"PAR1abcdefgh", 3, "truncated or damaged Parquet"),
        ("dump.csv", b"a,b\n1,2\n", 3, "cannot tell its table from name or columns"),
        ("jobs.csv", b"pandaid\n1\n", 2, "jobs.modificationtime: required column is missing"),
    ],
)
def test_what_cannot_be_read_ends_with_its_code_and_no_archive(
    tmp_path, name, content, code, words
):
    path = tmp_path / name
    path.write_bytes(content)
    result = run("ingest", path, "--into", tmp_path / "a")
    assert result.exit_code == code
    assert words in result.stderr
    assert not (tmp_path / "a" / "manifest.json").exists()


def test_ingest_with_a_table_and_a_fill(source, tmp_path):
    other = tmp_path / "dump.csv"
    other.write_text(ROWS)
    fill = tmp_path / "jobs.csv"
    fill.write_text("pandaid,gshare\n1,Express\n")
    result = run("ingest", other, "--table", "jobs", "--fill", fill, "--into", tmp_path / "a")
    assert result.exit_code == 0
    shares = archive.open(tmp_path / "a").scan("jobs").collect()["gshare"].to_list()
    assert shares == ["Express"]


FOREIGN = """TaskID;Job_ID;state;submitted;start_time;end_time;cpu_time;MaxPSS_MB;site
7;1;finished;14/12/2026 10:00;14/12/2026 11:00;14/12/2026 13:30;150;2000.5;Q1
7;2;failed;31/12/2026 10:00;31/12/2026 10:30;31/12/2026 11:30;60;1800;Q2
"""
OPTIONS = [
    "--map", "state=jobstatus", "--map", "submitted=creationtime", "--map", "cpu_time=cpuconsumptiontime",
    "--map", "MaxPSS_MB=maxpss", "--map", "site=computingsite", "--default", "prodsourcelabel=managed",
    "--unit", "maxpss=MB", "--unit", "cpuconsumptiontime=min",
]  # fmt: skip


def test_a_jobs_file_with_foreign_names_and_units_in_one_command(tmp_path):
    path = tmp_path / "jobs_december.csv"
    path.write_text(FOREIGN)
    result = run("ingest", path, "--into", tmp_path / "a", *OPTIONS)
    assert result.exit_code == 0, result.stderr
    lines = result.stdout.splitlines()
    assert "2 rows in = 2 accepted + 0 quarantined + 0 duplicates" in lines
    assert "note, jobs_december.csv: dates with the year at the end read day-first, as UTC" in lines
    assert any("the next export with these columns needs no options" in line for line in lines)
    jobs = archive.open(tmp_path / "a").scan("jobs").sort("pandaid").collect()
    assert jobs.select("pandaid", "jeditaskid", "maxpss", "cpuconsumptiontime", "computingsite").rows() == [
        (1, 7, 2048512, 9000, "Q1"), (2, 7, 1843200, 3600, "Q2"),
    ]  # fmt: skip
    january = tmp_path / "jobs_january.csv"
    january.write_text(FOREIGN.replace("7;", "8;").replace("2026", "2027").replace(";1;", ";11;"))
    again = run("ingest", january, "--into", tmp_path / "a")
    assert "2 rows in = 2 accepted + 0 quarantined + 0 duplicates" in again.stdout


def test_columns_that_are_not_taken_are_always_listed(source, tmp_path):
    text = (
        source.read_text()
        .replace("MAXPSS", "max_memory_mb")
        .replace("\n", ",x\n")
        .replace(",x", ",colour", 1)
    )
    source.write_text(text)
    result = run("ingest", source, "--into", tmp_path / "a")
    assert (
        "JOBSARCHIVED4.csv: 2 column(s) not taken as columns of jobs, kept beside: max_memory_mb, colour"
        in result.stdout.splitlines()
    )
    hint = "max_memory_mb: did you mean --map max_memory_mb=maxpss --unit maxpss=MB ?"
    assert hint in result.stdout.splitlines()
    found = json.loads(run("ingest", source, "--into", tmp_path / "b", "--json").stdout)
    assert [(one["column"], one["suggestion"]) for one in found["not_taken"]] == [
        ("max_memory_mb", "--map max_memory_mb=maxpss --unit maxpss=MB"), ("colour", ""),
    ]  # fmt: skip
    assert (found["rows"], found["accepted"], found["quarantined"], found["duplicates"]) == (
        3,
        2,
        0,
        1,
    )


def test_nothing_accepted_ends_with_2_the_reasons_and_the_first_value(source, tmp_path):
    source.write_text(
        source.read_text().replace("2026-03-01 01", "soon").replace("2026-03-01 00:30", "later")
    )
    result = run("ingest", source, "--into", tmp_path / "a", "--json")
    assert result.exit_code == 2
    assert result.stderr.splitlines()[-1].startswith(
        "SchemaError: nothing was accepted: 3 rows in, all refused; 2 row(s): modificationtime "
        "'soon:00:00' cannot be read as a time (YYYY-MM-DD HH:MM:SS, Z or offset)"
    )
    assert json.loads(result.stdout)["accepted"] == 0


def test_rows_that_an_earlier_file_of_this_name_had_refused_are_not_told_again(source, tmp_path):
    run("ingest", source, "--into", tmp_path / "a")
    source.write_text(ROWS.replace("running", "").replace(",-5", ",5"))
    told = json.loads(run("ingest", source, "--into", tmp_path / "a", "--json").stdout)
    assert told["refused"] == [{"reason": "jobstatus is null, it is required", "rows": 1}]
    refused = archive.open(tmp_path / "a").scan("quarantine").collect()
    assert sorted(refused["source"]) == sorted([source.name, str(source)])


def test_dates_that_may_be_read_in_two_ways_are_refused_with_the_option(source, tmp_path):
    source.write_text(source.read_text().replace("2026-03-01", "01/03/2026"))
    result = run("ingest", source, "--into", tmp_path / "a")
    assert result.exit_code == 2
    assert (
        "CREATIONTIME '01/03/2026 00:00:00' (row 1) may be day/month or month/day" in result.stderr
    )
    assert "say --dates day-first or --dates month-first" in result.stderr
    assert run("ingest", source, "--into", tmp_path / "a", "--dates", "day-first").exit_code == 0


def test_refused_rows_of_a_first_try_are_gone_when_it_is_read_with_more_options(source, tmp_path):
    source.write_text(source.read_text().replace("100\n", "0.1\n").replace("-5\n", "0.2\n"))
    first = run("ingest", source, "--into", tmp_path / "a")
    assert "3 rows in = 0 accepted" not in first.stdout
    assert archive.open(tmp_path / "a").manifest.counts["quarantine"] == 2
    result = run("ingest", source, "--into", tmp_path / "a", "--unit", "maxpss=MB")
    assert result.exit_code == 0, result.stderr
    assert "quarantine" not in archive.open(tmp_path / "a").manifest.counts


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--map", "x"], "--map x: allowed: NAME=VALUE, e.g. --map TaskID=jeditaskid"),
        (["--map", "x=nosuch"], "--map x=nosuch: jobs has no column 'nosuch'"),
        (["--unit", "maxpss=s"], "--unit maxpss=s: maxpss is in kB; allowed: B, GB, MB, TB, kB"),
        (["--default", "maxpss=3"], "has this column; leave the default out"),
        (["--dates", "german"], "--dates german: allowed: day-first, month-first"),
        (["--mapping", "no.json"], "no.json: cannot be read"),
    ],
)
def test_options_that_do_not_fit_end_with_2(source, tmp_path, options, words):
    result = run("ingest", source, "--into", tmp_path / "a", *options)
    assert result.exit_code == 2
    assert words in result.stderr


def test_the_command_line_starts_without_the_heavy_libraries():
    script = "import sys, brokerlab.cli; print({'polars','duckdb','pyarrow'} & set(sys.modules))"
    done = subprocess.run(  # noqa: S603
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, cwd=Path.cwd()
    )
    assert done.stdout.strip() == "set()"


def test_verify_names_a_damaged_part(tmp_path):
    with archive.ArchiveWriter(tmp_path / "a") as writer:
        writer.write("resource_types", pl.DataFrame({"resource_name": ["SCORE"]}))
        writer.commit()
    result = run("verify", tmp_path / "a")
    assert result.exit_code == 0
    assert "1 files, " in result.stdout
    file = next((tmp_path / "a").rglob("*.parquet"))
    content = bytearray(file.read_bytes())
    content[10] ^= 1
    file.write_bytes(content)
    result = run("verify", tmp_path / "a")
    assert result.exit_code == 3
    assert f"1 file(s) changed since they were written: resource_types/{file.name}" in result.stderr


def test_a_report_does_not_start_on_a_damaged_archive(tmp_path):
    with archive.ArchiveWriter(tmp_path / "a") as writer:
        writer.write("resource_types", pl.DataFrame({"resource_name": ["SCORE"]}))
        writer.commit()
    file = next((tmp_path / "a").rglob("*.parquet"))
    content = bytearray(file.read_bytes())
    content[10] ^= 1
    file.write_bytes(content)
    result = run(
        "report", "site-classes", "-p", f"archive={tmp_path / 'a'}", "--out", tmp_path / "reports"
    )
    assert result.exit_code == 3
    assert f"changed since they were written: resource_types/{file.name}" in result.stderr
    assert not (tmp_path / "reports").exists()
