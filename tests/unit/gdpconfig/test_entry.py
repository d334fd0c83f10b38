"""Tables and files of entries, good ones and broken ones."""

from __future__ import annotations

import json
from datetime import datetime
from pathlib import Path

import duckdb
import polars as pl
import pytest

from brokerlab.errors import DataError, SchemaError
from brokerlab.gdpconfig import Config

HEADER = "APP,COMPONENT,KEY,VALUE,VALUE_JSON,TYPE,VO,DESCR\n"
LINE = "jedi,dbproxy,SCOUT_RAMCOUNT_RANK,80,,int,,a remark\n"
ROW = {
    "app": "jedi",
    "component": "dbproxy",
    "key": "SCOUT_RAMCOUNT_RANK",
    "value": "80",
    "type": "int",
}


def rank(config: Config) -> object:
    return config.get("SCOUT_RAMCOUNT_RANK")


@pytest.mark.parametrize("start", ["", "\ufeff"])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_csv(tmp_path: Path, start: str, end: str) -> None:
    file = tmp_path / "gdpconfig.CSV"
    file.write_bytes((start + HEADER + LINE).replace("\n", end).encode())
    entry = Config.from_file(file).entries[0]
    assert (entry.vo, entry.value_json, entry.descr) == (None, None, "a remark")
    assert rank(Config.from_file(file)) == 80


@pytest.mark.parametrize("wrap", [lambda rows: rows, lambda rows: {"gdpconfig": rows}])
def test_json(tmp_path: Path, wrap: object) -> None:
    rows = [
        {
            "APP": "jedi",
            "COMPONENT": "dbproxy",
            "KEY": "SCOUT_RAMCOUNT_RANK",
            "VALUE": 80,
            "TYPE": "int",
        },
        {**ROW, "key": "J", "value": None, "value_json": {"a": [1]}, "type": "json"},
        {**ROW, "key": "B", "value": True, "type": "bool"},
    ]
    file = tmp_path / "gdpconfig.json"
    file.write_bytes(b"\xef\xbb\xbf" + json.dumps(wrap(rows[1:] + rows[:1])).encode())  # type: ignore[operator]
    config = Config.from_file(file)
    assert rank(config) == 80
    assert config.look_up("jedi", "dbproxy", "J")[0] == {"a": [1]}
    assert config.look_up("jedi", "dbproxy", "B")[0] is True


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("x.csv", b"", "is empty; a header line is needed"),
        (
            "x.csv",
            b"app,component,value\n",
            "missing column.s. key, type; found: app, component, value",
        ),
        ("x.csv", b"app,APP,component,key,value,type\n", "column.s. app occur more than once"),
        ("x.csv", HEADER.encode() + b"jedi,\xff\xfe,a,b,c,d,e,f\n", "is not UTF-8 at byte 54"),
        (
            "x.csv",
            (HEADER + ",dbproxy,K,1,,int,,\njedi,,,1,,int,,\n").encode(),
            "2 unusable gdpconfig row",
        ),
        ("x.csv", (HEADER + "a,b\na,b,c,d,e,f,g,h,i,j\n").encode(), "is no proper CSV"),
        ("x.json", b"", "is no proper JSON"),
        ("x.json", b'[{"app": "jedi"', "is no proper JSON"),
        ("x.json", b"[1, 2]", "a list of objects is needed"),
        ("x.json", b'{"a": [], "b": []}', "a list of objects is needed"),
        ("x.json", b'[{"app": "jedi"}]', "missing column.s. component, key, value, type"),
        ("x.json", b"[" * 100_000, "is no proper JSON"),
        ("x.json", b'[{"app": "jedi", "app": "x"}]', "names occur twice in one object: app"),
        ("x.txt", b"", "unknown kind of file '.txt'; allowed: .csv, .json"),
    ],
)
def test_broken_files(tmp_path: Path, name: str, content: bytes, message: str) -> None:
    file = tmp_path / name
    file.write_bytes(content)
    with pytest.raises((DataError, SchemaError), match=message):
        Config.from_file(file)


@pytest.mark.parametrize("name", ["x.csv", "x.json"])
def test_the_word_null_is_null(tmp_path: Path, name: str) -> None:
    cells = {"app": "jedi", "component": "dbproxy", "key": "SCOUT_CPUTIME_RANK", "value": "90"}
    cells |= {"value_json": "NULL", "type": "int", "vo": "NULL", "valid_to": "null"}
    lines = f"{','.join(cells)}\n{','.join(cells.values())}\n"
    file = tmp_path / name
    file.write_text(lines if name == "x.csv" else json.dumps([cells]))
    (entry,) = Config.from_file(file).entries
    assert (entry.value, entry.value_json, entry.vo, entry.valid_to) == ("90", None, None, None)


def test_absent_file(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"none.csv: cannot be read: No such file"):
        Config.from_file(tmp_path / "none.csv")


def test_empty_tables_are_configurations() -> None:
    assert Config.from_frame(Config.empty().frame()) == Config.empty()
    assert Config.empty().frame().height == 0


def test_frames_of_all_kinds() -> None:
    frame = pl.DataFrame([ROW, {**ROW, "key": "K"}])
    expected = Config.from_frame(frame)
    assert rank(expected) == 80
    assert Config.from_frame(frame.lazy()) == expected
    assert Config.from_frame(frame.to_pandas()) == expected
    with pytest.raises(SchemaError, match="gdpconfig is a list; allowed are frames"):
        Config.from_frame(frame.to_dicts())  # type: ignore[arg-type]
    with duckdb.connect() as con:
        con.register("frame", frame.to_arrow())
        assert Config.from_frame(con.sql("select * from frame")) == expected


def test_whole_numbers_that_became_floats() -> None:
    frame = pl.DataFrame({**ROW, "value": [80.0]})
    assert rank(Config.from_frame(frame)) == 80
    assert Config.from_frame(frame.with_columns(value=pl.lit(0.5))).entries[0].value == "0.5"
    assert (
        Config.from_frame(frame.with_columns(value=pl.lit(float("nan")))).entries[0].value is None
    )


def test_frame_and_back() -> None:
    rows = [ROW, {**ROW, "vo": "atlas", "valid_from": "2026-01-01T00:00:00+01:00", "descr": "x"}]
    config = Config.from_rows(rows)
    assert config.entries[1].valid_from == datetime.fromisoformat("2025-12-31T23:00")
    assert Config.from_frame(config.frame()) == config


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ({**ROW, "key": None}, "row 1: key null or empty"),
        ({**ROW, "app": "", "component": None}, "row 1: app, component null or empty"),
        ({**ROW, "valid_from": "soon"}, "row 1: Invalid isoformat string: 'soon'"),
        (
            {**ROW, "valid_from": "2026-01-02", "valid_to": "2026-01-02"},
            "valid_from 2026-01-02 00:00:00 is not before valid_to 2026-01-02 00:00:00",
        ),
    ],
)
def test_unusable_rows(row: dict[str, object], message: str) -> None:
    with pytest.raises(DataError, match=message):
        Config.from_rows([row])


def test_many_unusable_rows_are_counted_and_five_are_shown() -> None:
    with pytest.raises(DataError) as error:
        Config.from_rows([{**ROW, "key": None}] * 7)
    assert "7 unusable" in str(error.value)
    assert str(error.value).count("row ") == 5
