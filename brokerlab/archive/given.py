"""What public calls are given: an archive, or tables by name for those who have only frames."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import narwhals.stable.v2 as nw
import polars as pl

from brokerlab.archive import parsing
from brokerlab.archive.approximate import FROM_JOBS
from brokerlab.archive.contracts import TABLES, columns_of, key_columns
from brokerlab.archive.contracts._columns import about
from brokerlab.archive.schema import problems_of_values
from brokerlab.archive.store import Archive, open_archive
from brokerlab.archive.writer import ArchiveWriter
from brokerlab.engines import TEXT, collect, lazy_of
from brokerlab.errors import ConfigError, DataError, MissingTableError, SchemaError, nearest
from brokerlab.frames import polars_frame
from brokerlab.temporary import lasting

Source: TypeAlias = Archive | Mapping[str, Any]
"""An archive, or a mapping of tables by name: frames of any engine narwhals reads."""
FROM_END_TO_END = ("jobs", "files")
"""Tables of an archive that are dealt out whole by those who ask for them."""
_SHOWN, _TEXT = 5, pl.String()


def tables_of(
    source: Source, needed: Sequence[str], optional: Sequence[str] = ()
) -> dict[str, Any]:
    """Return tables by name, as they are given; one that is not there is not in the mapping.

    Raises:
        ConfigError: Neither an archive nor a mapping.
        SchemaError: A name in the mapping is that of no table, or values of its tables break their contracts (``brokerlab
            tables``): texts that are no number, known names in another letter case, and of tables in memory numbers that are too large.
        DataError: Files stand in a table twice.
        MissingTableError: A needed table is missing; all of them are named.
    """
    wanted = (*needed, *optional)
    if isinstance(source, Archive):
        result = {
            name: source.lazy(name) if name in FROM_END_TO_END else source.joinable(name)
            for name in wanted
            if source.has(name)
        }
        where = str(source.path)
    else:
        _check_names(source)
        result = {
            name: _frame(name, source[name]) for name in wanted if source.get(name) is not None
        }
        held = {name: _held(name, table) for name, table in result.items()}
        if problems := [line for _, lines in held.values() for line in lines]:
            raise SchemaError("\n".join(problems))
        result = {name: table for name, (table, _) in held.items()}
        if "files" in result:
            # doubled jobs, tasks and datasets are told where they are joined
            check_once("files", result["files"])
        where = "the mapping of tables"
    if missing := [name for name in needed if name not in result]:
        from_jobs = isinstance(source, Archive) and set(missing) <= {*FROM_JOBS}
        hint = "; archive.derive() makes stand-ins from its jobs" if from_jobs else ""
        raise MissingTableError(
            f"{where}: has no table '{missing[0]}'; needed are {', '.join(needed)}, missing {', '.join(missing)}{hint}"
        )
    return result


def _frame(name: str, table: Any) -> Any:
    """Return rows or columns of Python values as a frame; frames as they are."""
    if not isinstance(table, Mapping | Sequence):
        return table
    try:
        return polars_frame(table, TABLES[name])
    except SchemaError as error:
        raise SchemaError(f"{name}: {error}") from None


def _held(name: str, table: Any) -> tuple[Any, list[str]]:
    """Return a table whose texts for numbers are read as ``ingest`` reads them, and which texts, and numbers in memory, its contract does not allow.

    Nulls and NaN pass, and tables of Spark; DuckDB reads texts where it computes with them.
    """
    rows, columns = lazy_of(table, name), columns_of(name)
    if rows.implementation.is_pyspark():
        return table, []
    kinds = {c: kind for c, kind in rows.collect_schema().items() if c in columns}
    numbers = [c for c in kinds if columns[c].dtype.is_numeric()]
    named = [c for c in kinds if about(columns[c]).get("values")]
    problems = []
    unusual = {
        c: ~nw.col(c).cast(TEXT).is_in([*about(columns[c]).get("values", ())])
        for c in (*numbers, *named)
        if kinds[c] in (TEXT, nw.Categorical, nw.Enum)
    }
    if unusual:
        known = collect(rows.select(test.any().alias(c) for c, test in unusual.items()))
        for column in (c for c in unusual if known[c].item()):
            values = collect(rows.select(nw.col(column).cast(TEXT)).unique()).drop_nulls()
            problems += problems_of_values(name, values.sort(column))[:_SHOWN]
    limits: dict[str, Any] = {
        c: getattr(columns[c], "max", None)
        for c in numbers
        if kinds[c].is_integer() or kinds[c].is_float()
    }
    ranged = [c for c, limit in limits.items() if limit is not None]
    given = nw.from_native(table)
    if ranged and isinstance(given, nw.DataFrame):
        most = (
            given.select(ranged)
            .to_polars()
            .select(
                pl.when(pl.col(c).is_finite()).then(c).cast(columns[c].dtype, strict=False).max()
                for c in ranged
            )
        )
        # what is too large alone: below 0 has a meaning where scouts read it (docs/rules/scouts.md 12)
        if large := [c for c in ranged if (most[c].item() or 0) > limits[c]]:
            problems += problems_of_values(name, most.select(large))
    texts = [c for c in numbers if kinds[c] == TEXT and rows.implementation.is_polars()]
    if texts:
        read = {c: parsing.cleaned(pl.col(c), _TEXT) for c in texts}
        table = rows.to_native().with_columns(
            parsing.parsed(text, _TEXT, columns[c].dtype) for c, text in read.items()
        )
    return table, [f"{name}.{problem}; mend or leave out those rows" for problem in problems]


def check_once(name: str, table: Any) -> None:
    """Refuse rows given twice, which would count twice and which no archive has; tables without their key, and of Spark, pass."""
    rows, keys = lazy_of(table, name), key_columns(name)
    if rows.implementation.is_pyspark() or not {*keys} <= {*rows.collect_schema().names()}:
        return
    doubled = collect(rows.group_by(keys).agg(n=nw.len()).filter(nw.col("n") > 1).sort(keys))
    if doubled.height:
        result = doubled.drop("n").row(0, named=True)
        raise DataError(
            f"{name}: {doubled['n'].sum()} rows have a key that another one has, such as {result}; allowed is one row "
            "per key: keep the latest"
        )


def scans_of(
    source: Source, needed: Sequence[str], optional: Sequence[str] = ()
) -> dict[str, pl.LazyFrame]:
    """Return tables by name as Polars LazyFrames; otherwise as :func:`tables_of`."""
    result = tables_of(source, needed, optional)
    if isinstance(source, Archive):
        return {name: source.scan(name) for name in result}
    return {name: polars_frame(table, TABLES[name]).lazy() for name, table in result.items()}


def archive_of(source: Source) -> Archive:
    """Return an archive as it is, and tables by name as an archive in a folder of this process.

    Their rows are held to the contracts of the archive (``brokerlab tables``); columns that are absent are null. One error
    tells all that is wrong.
    """
    if isinstance(source, Archive):
        return source
    _check_names(source)
    folder = lasting()
    with ArchiveWriter(folder, note="tables given by name") as writer:
        problems = []
        for name, table in source.items():
            try:
                frame = polars_frame(table, TABLES[name])
            except SchemaError as error:
                problems.append(f"{name}: {error}")
                continue
            try:
                writer.write(name, frame)
            except SchemaError as error:
                problems.append(str(error))
        if problems:
            raise SchemaError("\n".join(problems))
        writer.commit()
    return open_archive(folder)


def _check_names(source: Any) -> None:
    """Refuse what is no mapping, and names of no table."""
    if not isinstance(source, Mapping):
        raise ConfigError(
            f"given is a {type(source).__name__}; allowed are an archive (brokerlab.open(folder)) "
            "and a mapping of tables by name, such as {'jobs': frame}"
        )
    unknown = [name for name in source if name not in TABLES]
    if unknown:
        raise SchemaError(
            "\n".join(f"unknown table '{name}': {nearest(str(name), TABLES)}" for name in unknown)
        )
