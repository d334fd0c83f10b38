"""Read tables of DuckDB and SQLite files; views and what is in other files stay closed."""

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import duckdb
import polars as pl
import pyarrow as pa

from brokerlab.archive.readers import records
from brokerlab.archive.readers.detect import (
    Detected,
    TableOf,
    check_columns,
    table_of_name,
    truncated,
)
from brokerlab.archive.readers.records import Batch, numbered
from brokerlab.engines import quoted
from brokerlab.errors import DataError

BATCH_ROWS = 100_000
"""Rows held at a time."""
_LONGEST_VALUE = 16 << 20


def detected(path: Path, recognised: Detected, table_of: TableOf) -> Detected:
    """Find the canonical tables of a database, by the names of its tables or their columns; a given table picks one."""
    _refuse_open(path)
    columns: dict[str, list[str]] = {}
    for table, column in _asked(path, recognised.format, _COLUMNS[recognised.format]):
        columns.setdefault(table, []).append(column)
    tables: dict[str, str] = {}
    for name, inside in columns.items():
        check_columns(path, inside)
        canonical = table_of_name(name) or table_of(inside)
        if canonical is not None and recognised.table in (None, canonical):
            tables[name] = canonical
    if recognised.table and not tables and len(columns) == 1:
        tables = dict.fromkeys(columns, recognised.table)
    if not tables:
        shown = ", ".join(name[:60] for name in list(columns)[:20]) or "no table"
        wanted = f"'{recognised.table}'" if recognised.table else "one that is known"
        raise DataError(
            f"{path}: cannot tell which of its tables is {wanted}: it has {shown}; name it like "
            "'jobs', or leave one table in it and say --table"
        )
    left = tuple(f"table {name}" for name in columns if name not in tables)
    left += tuple(name for (name,) in _asked(path, recognised.format, _OTHERS[recognised.format]))
    only = next(iter(set(tables.values()))) if len(set(tables.values())) == 1 else None
    return replace(recognised, table=recognised.table or only, tables=tables, left_out=left)


def read(path: Path, recognised: Detected) -> Iterator[Batch]:
    """Read the tables of a database batch by batch."""
    pieces = _duckdb_pieces if recognised.format == "duckdb" else _sqlite_pieces
    for name, table in recognised.tables.items():
        first, notes = 1, () if name.lower() == table else (f"table {name} read as {table}",)
        for frame in pieces(path, name, table):
            yield Batch(table, frame, numbered(frame, first), notes=notes)
            first += len(frame)


def _refuse_open(path: Path) -> None:
    """Refuse a database with changes that are not in its file yet: there is a log of them beside it."""
    for log in (Path(f"{path}-wal"), Path(f"{path}.wal")):
        if log.exists() and log.stat().st_size:
            raise DataError(
                f"{path}: has changes that are still in {log.name}; close the program that writes it"
            )


_COLUMNS = {
    "duckdb": "select c.table_name, c.column_name from duckdb_columns() c join duckdb_tables() t "
    "using (database_name, schema_name, table_name) where not t.internal and not t.temporary "
    "and c.schema_name = 'main' order by c.table_name, c.column_index",
    "sqlite": "select m.name, c.name from sqlite_master m, pragma_table_info(m.name) c "
    "where m.type = 'table' and m.name not like 'sqlite_%' "
    "and upper(m.sql) not like 'CREATE VIRTUAL%' order by m.name, c.cid",
}
"""Tables and columns of a database, in its order."""
_OTHERS = {
    "duckdb": "select 'view ' || view_name from duckdb_views() where not internal and not temporary "
    "union all select 'table ' || schema_name || '.' || table_name from duckdb_tables() "
    "where not internal and not temporary and schema_name <> 'main' order by 1",
    "sqlite": "select 'view ' || name from sqlite_master where type = 'view' order by 1",
}
"""Views, and tables outside of the schema main: none of them is read."""


def _asked(path: Path, kind: str, query: str) -> list[tuple[str, ...]]:
    """Return the answer of a database."""
    with (_duckdb if kind == "duckdb" else _sqlite)(path) as connection:
        return connection.execute(query).fetchall()


@contextmanager
def _duckdb(path: Path) -> Iterator[duckdb.DuckDBPyConnection]:
    """Open a DuckDB file that cannot reach other files."""
    try:
        with duckdb.connect(
            str(path), read_only=True, config={"enable_external_access": False}
        ) as connection:
            yield connection
    except duckdb.Error as error:
        raise truncated(path, "DuckDB file", error) from error


def _duckdb_pieces(path: Path, name: str, _: str) -> Iterator[pl.DataFrame]:
    """Yield the rows of a table of DuckDB."""
    with _duckdb(path) as connection:
        yield from relation_pieces(connection.sql(f"from main.{quoted(name)}"))


def relation_pieces(relation: duckdb.DuckDBPyRelation) -> Iterator[pl.DataFrame]:
    """Yield the rows of a relation of DuckDB, first none of them; intervals are lengths of time."""
    kinds = zip(relation.columns, relation.types, strict=True)
    lengths = [column for column, kind in kinds if kind == "INTERVAL"]
    if lengths:  # intervals in months, days and the rest are no type of Polars
        made = ", ".join(f"epoch_us({quoted(n)}) as {quoted(n)}" for n in lengths)
        relation = relation.project(f"* replace ({made})")
    as_lengths = pl.col(lengths).cast(pl.Duration("us"))
    stream: pa.RecordBatchReader = relation.to_arrow_reader(BATCH_ROWS)
    yield pl.DataFrame(pl.from_arrow(stream.schema.empty_table())).with_columns(as_lengths)
    for piece in stream:
        frame = pl.DataFrame(pl.from_arrow(pa.Table.from_batches([piece])))
        yield frame.with_columns(as_lengths)


@contextmanager
def _sqlite(path: Path) -> Iterator[sqlite3.Connection]:
    """Open a SQLite file for reading."""
    database = None
    try:
        database = sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)
        database.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, _LONGEST_VALUE)
        database.execute("pragma trusted_schema = off")
        database.text_factory = _decode
        yield database
    except (sqlite3.Error, UnicodeError, OverflowError) as error:
        raise truncated(path, "SQLite file", error) from error
    finally:
        if database is not None:
            database.close()


def _sqlite_pieces(path: Path, name: str, table: str) -> Iterator[pl.DataFrame]:
    """Yield the rows of a table of SQLite, whose values may be of any type in any column."""
    with _sqlite(path) as database:
        cursor = database.execute(f"select * from {quoted(name)}")  # noqa: S608  (quoted)
        names = [column[0] for column in cursor.description]
        while True:
            rows = cursor.fetchmany(BATCH_ROWS)
            values: list[tuple[Any, ...]] = list(zip(*rows, strict=True)) or [()] * len(names)
            yield pl.DataFrame(
                [
                    records.source_column(table, column, [_plain(value) for value in inside])
                    for column, inside in zip(names, values, strict=True)
                ]
            )
            if len(rows) < BATCH_ROWS:
                return


def _plain(value: Any) -> Any:
    """Return a value as JSON may hold it; bytes as text."""
    return _decode(value) if isinstance(value, bytes) else value


def _decode(raw: bytes) -> str:
    """Read bytes as UTF-8; others are shown by their numbers."""
    return raw.decode("utf-8", errors="backslashreplace")
