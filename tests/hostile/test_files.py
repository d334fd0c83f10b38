"""Bad files of every kind that once ended in a trace, wrong numbers or a full memory: rows that add up, or an error of ours."""

from __future__ import annotations

import errno
import gzip
import io
import json
import os
import time
from collections.abc import Callable
from datetime import datetime, timedelta
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet
import pytest
from typer.testing import CliRunner

from benchmarks.attack_archives import Fate, run
from benchmarks.attack_files import MOST_MESSAGE, MOST_S, read_case
from brokerlab.archive import open as open_archive
from brokerlab.archive.ingestion import ingest
from brokerlab.cli import app
from brokerlab.errors import DataError, SchemaError

JOB = {
    "pandaid": 1, "jeditaskid": 7, "jobstatus": "finished", "creationtime": "2026-03-01 00:00:00",
    "modificationtime": "2026-03-01 04:00:00", "prodsourcelabel": "managed", "computingsite": "A", "maxpss": 2000,
}  # fmt: skip
HEADER = ",".join(JOB)
LINE = ",".join(map(str, JOB.values()))
CSV = f"{HEADER}\n{LINE}\n"


def nested(depth: int, key: str) -> bytes:
    return ('{"' + key + '":').encode() * depth + b"1" + b"}" * depth


def table(**columns: pa.Array) -> bytes:
    """Return a Parquet file of one job with other columns."""
    base = {name: pa.array([value]) for name, value in JOB.items()}
    buffer = io.BytesIO()
    pyarrow.parquet.write_table(pa.table(base | columns), buffer)
    return buffer.getvalue()


def doubled() -> bytes:
    """Return a Parquet file with two columns of one name."""
    arrays = [pa.array([value]) for value in JOB.values()]
    buffer = io.BytesIO()
    whole = pa.Table.from_arrays([*arrays, pa.array([5])], names=[*JOB, "maxpss"])
    pyarrow.parquet.write_table(whole, buffer)
    return buffer.getvalue()


def wide(n: int) -> bytes:
    names = ",".join(f"c{i}" for i in range(n))
    return f"{HEADER},{names}\n{LINE},{','.join('1' * n)}\n".encode()


FILES: dict[str, tuple[str, Callable[[], bytes] | bytes]] = {
    "empty": (".csv", lambda: b""),
    "a line break alone": (".csv", lambda: b"\n"),
    "UTF-16": (".csv", lambda: CSV.encode("utf-16")),
    "UTF-32": (".csv", lambda: CSV.encode("utf-32")),
    "latin-1": (".csv", lambda: CSV.replace("A", "\xe9").encode("latin-1")),
    "half characters": (".json", lambda: json.dumps([JOB | {"computingsite": "\ud800"}]).encode()),
    "null bytes": (".csv", lambda: CSV.replace("A", "\x00").encode()),
    "a line break in the header": (".csv", f'{HEADER},"a\nb"\n{LINE},1\n'.encode()),
    "a header of 200 kB": (".csv", f"{HEADER},{'x' * 200_000}\n{LINE},1\n".encode()),
    "a column twice": (".csv", f"{HEADER},maxpss\n{LINE},5\n".encode()),
    "a column twice in Parquet": (".parquet", doubled),
    "100,000 columns": (".csv", lambda: wide(100_000)),
    "one open quote": (".csv", lambda: f'{HEADER}\n"{LINE}\n'.encode() + CSV.encode() * 50),
    "dates out of range": (".csv", lambda: CSV.replace("2026", "99999").encode()),
    "a number of 400 digits": (".csv", lambda: CSV.replace("2000", "9" * 400).encode()),
    "nested 700 deep": (".json", lambda: nested(700, "a")),
    "nested 20,000 deep": (".json", lambda: nested(20_000, "a")),
    "nested addresses": (".json", lambda: nested(22, "http://x")),
    "nested addresses, deeper": (".json", lambda: nested(200, "http://x")),
    "a list of lists": (".json", lambda: b"[" * 5000 + b"]" * 5000),
    "a packed bomb": (".json.gz", lambda: gzip.compress(b"[" + b"1," * 25_000_000 + b"1]")),
    "a cut pack": (".csv.gz", lambda: gzip.compress(CSV.encode() * 1000)[:-20]),
    "no pack": (".csv.gz", lambda: b"\x1f\x8b" + b"x" * 50),
    "no Parquet": (".parquet", lambda: b"PAR1" + b"\x00" * 40 + b"PAR1"),
    "decimal256": (".parquet", lambda: table(maxpss=pa.array([Decimal(1)], pa.decimal256(60, 2)))),
    "a duration": (".parquet", lambda: table(maxpss=pa.array([timedelta(seconds=3)]))),
    "an unknown zone": (
        ".parquet", lambda: table(creationtime=pa.array([datetime(2026, 3, 1)], pa.timestamp("us", "Mars/Olympus"))),
    ),
    "a time out of range": (".parquet", lambda: table(creationtime=pa.array([2**62], pa.timestamp("us")))),
    "a map": (".parquet", lambda: table(maxpss=pa.array([[("a", 1)]], pa.map_(pa.string(), pa.int64())))),
    "a union of lists": (".parquet", lambda: table(maxpss=pa.array([[[1]]]))),
    "a million one-field lines": (".csv", lambda: b"pandaid\n" + b"1\n" * 1_000_000),
}  # fmt: skip
"""Name -> ending and bytes."""


@pytest.mark.parametrize("name", FILES)
def test_a_bad_file_is_read_or_refused(name: str, tmp_path: Path) -> None:
    ending, made = FILES[name]
    path = tmp_path / f"jobs{ending}"
    path.write_bytes(made if isinstance(made, bytes) else made())
    begun = time.process_time()
    outcome = read_case("ingest", path, tmp_path)
    assert not outcome.failure, outcome
    assert time.process_time() - begun < MOST_S


@pytest.mark.parametrize(
    ("reader", "ending", "text"),
    [
        ("swf", ".swf", b"; UnixStartTime: 99999999999999999999\n" + b"1 " * 18 + b"\n"),
        ("swf", ".swf", b"; UnixStartTime: -1e400\n" + b"1 " * 18 + b"\n"),
        ("swf", ".swf", b"\xff\xfe" + b"1 2 3" * 10),
        ("slots", ".csv", b"panda_queue,slots\nA,99999999999999999999\n"),
        ("slots", ".csv", b"\xff\xfe\x00"),
        ("proposal", ".json", b'{"schema": "\\ud800"}'),
        ("proposal", ".json", nested(5000, "a")),
        ("proposal", ".json", b"\xff\xfe"),
        ("workflow", ".json", nested(5000, "a")),
        ("workflow", ".json", b'{"name": "\\ud800"}'),
        ("records", ".csv", b"pandaid,jeditaskid,cores,used,ended_s\n1,1,1,1,1e400\n"),
        ("records", ".csv", b"pandaid,pandaid\n1,1\n"),
        ("records", ".parquet", table(used=pa.array([Decimal(1)], pa.decimal256(60, 2)))),
    ],
)
def test_other_readers_do_the_same(reader: str, ending: str, text: bytes, tmp_path: Path) -> None:
    path = tmp_path / f"file{ending}"
    path.write_bytes(text)
    outcome = read_case(reader, path, tmp_path)
    assert not outcome.failure, outcome


def test_a_full_disk_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Whatever a command writes to: the place and the reason, no trace."""

    def full(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(tmp_path / "a"))

    monkeypatch.setattr("brokerlab.archive.ingestion.ingest", full)
    done = CliRunner().invoke(app, ["ingest", str(tmp_path / "x.csv"), "--into", str(tmp_path)])
    assert done.exit_code == DataError.exit_code
    assert f"{tmp_path / 'a'}: No space left on device; make room" in done.stderr


@pytest.mark.parametrize(
    "words",
    [
        ["ingest", "nothing.csv", "--into", "archive", "--json"],
        ["check", "archive", "--json"],
        ["proposal", "list", "nothing", "--json"],
        ["proposal", "drift", "nothing.json", "--archive", "archive", "--json"],
    ],
)
def test_who_asks_for_json_gets_a_line_of_it_where_a_command_fails_too(
    words: list[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(app, words)
    told = json.loads(done.stdout)
    assert done.exit_code == told["exit_code"] != 0
    assert told["error"] == done.stderr.splitlines()[-1]


@pytest.mark.parametrize("most", [0, 100, 2000, 8000])
def test_no_room_is_an_error_that_names_the_place_and_changes_nothing(
    most: int, tmp_path: Path
) -> None:
    """A limit on the size of files stops the engines as a full disk does."""
    first, second, folder = tmp_path / "jobs_1.csv", tmp_path / "jobs_2.csv", tmp_path / "archive"
    first.write_text(CSV)
    second.write_text(CSV + "".join(f"{LINE.replace('1', str(n), 1)}\n" for n in range(2, 3000)))
    before = ingest([first], folder).manifest
    files = sorted(folder.rglob("*"))
    ended = run(["ingest", str(second), "--into", str(folder)], folder, Fate("full", most))
    assert ended.code == DataError.exit_code, ended.text
    assert f"DataError: {folder}" in ended.text
    assert "cannot be written" in ended.text
    assert "make room, or name another folder" in ended.text
    assert open_archive(folder).digest == before.digest
    assert sorted(folder.rglob("*")) == files


LATE = CSV + "".join(f"{LINE.replace('1', str(n), 1)}\n" for n in range(2, 30_000))
"""More than is looked at when a file is recognised."""


@pytest.mark.parametrize("line", [b"3,7,fin\xe9\n", LINE.replace("A", "X").encode().replace(b"X", b"\xe9") + b"\n", b"\xc3"])  # fmt: skip
def test_a_late_row_of_another_encoding_is_named_and_nothing_is_printed(
    line: bytes, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """Also where the row has too few fields, which Arrow hands on as text, or the file ends inside a character."""
    path = tmp_path / "jobs.csv"
    path.write_bytes(LATE.encode() + line)
    with pytest.raises(DataError, match=r"jobs\.csv: wrong encoding: not UTF-8; convert it"):
        ingest([path], tmp_path / "archive")
    assert capfd.readouterr() == ("", "")


def test_characters_of_several_bytes_may_lie_anywhere(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("brokerlab.archive.readers.delimited._DECODED", 7)
    path = tmp_path / "jobs.csv"
    path.write_text(LATE.replace("A", "\u00e9\U0001f600"), encoding="utf-8")
    ingest([path], tmp_path / "archive")
    sites = open_archive(tmp_path / "archive").scan("jobs").collect()["computingsite"]
    assert sites.unique().to_list() == ["\u00e9\U0001f600"]


@pytest.mark.parametrize(
    ("written", "way"),
    [
        ("1772323200", "where it counts from 1970, say --unit creationtime=s"),
        ("1.7723232e9", "where it counts from 1970, say --unit creationtime=s"),
        ("2026-03-01 02:05:00 PM", "write hours as 0 to 23, without AM and PM"),
        ("01/02/26 10:00", "write years with four digits"),
        ("26-03-01 10:00:00", "write years with four digits"),
        ("10:00 01.02.26", "write years with four digits"),
        ("01-MAR-2026", "write the month as a number"),
        ("20260301T100000Z", "write it with separators"),
    ],
)
def test_a_time_of_another_form_is_refused_with_what_to_do(
    written: str, way: str, tmp_path: Path
) -> None:
    path = tmp_path / "jobs.csv"
    path.write_text(CSV + LINE.replace(JOB["creationtime"], written).replace("1", "2", 1) + "\n")
    ingest([path], tmp_path / "archive")
    (reason,) = open_archive(tmp_path / "archive").scan("quarantine").collect()["reason"]
    assert written in reason
    assert f"; {way}" in reason


def test_a_wrong_unit_is_not_put_right_in_place_and_the_error_says_where_it_is(
    tmp_path: Path,
) -> None:
    path, folder = tmp_path / "jobs.csv", tmp_path / "archive"
    path.write_text(CSV)
    ingest([path], folder, mapping={"units": {"maxpss": "MB"}})
    done = CliRunner().invoke(app, ["ingest", str(path), "--into", str(folder), "--unit", "maxpss=kB"])  # fmt: skip
    assert done.exit_code == SchemaError.exit_code
    error = done.stderr[done.stderr.index("SchemaError") :]
    assert "maxpss 2000 contradicts 2048000" in error
    assert "to correct a unit or a value, read all sources into a new archive" in error


def test_our_own_errors_name_the_file_too(tmp_path: Path) -> None:
    path = tmp_path / "12hours_sites.json"
    path.write_text('{"transfers": {"key": {"src_site": "NULL"}, "rows": []}}')
    with pytest.raises(SchemaError) as caught:
        ingest([path], tmp_path / "archive")
    assert all(line.startswith(f"{path}: transfers.") for line in str(caught.value).splitlines())


def test_a_message_is_never_longer_than_a_person_reads() -> None:
    text = str(DataError("file.csv: " + "x" * 50_000))
    assert len(text) <= MOST_MESSAGE
    assert text.startswith("file.csv: xxx")
    assert "more characters" in text
