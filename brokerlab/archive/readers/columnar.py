"""Read Parquet files, canonical or database exports, in bounded memory; frames become such files, and are read as any other."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

from brokerlab.archive.readers.databases import relation_pieces
from brokerlab.archive.readers.detect import Detected, truncated
from brokerlab.archive.readers.records import Batch, numbered
from brokerlab.errors import DataError, SchemaError, reading
from brokerlab.frames import doubled

BATCH_ROWS = 131_072
"""Rows held at a time."""
FRAMES = "paths, and frames of pandas, Polars (eager or lazy), Arrow or DuckDB"
_INDEX = re.compile(r"__index_level_\d+__")


def read(path: Path, detected: Detected) -> Iterator[Batch]:
    """Read a Parquet file batch by batch; one empty batch if the file has no rows."""
    table = detected.table or ""
    first = 1
    try:
        # `pre_buffer` would hold the whole file in memory
        with pq.ParquetFile(
            path,
            page_checksum_verification=True,
            pre_buffer=False,
            binary_type=pa.binary_view(),
        ) as source:
            for piece in source.iter_batches(batch_size=BATCH_ROWS, use_threads=False):
                _refuse_broken_text(path, piece, first)
                frame = pl.DataFrame(pl.from_arrow(pa.Table.from_batches([piece])))
                yield Batch(table, _with_path(frame, detected), numbered(frame, first))
                first += len(frame)
            if first == 1:
                frame = pl.DataFrame(pl.from_arrow(source.schema_arrow.empty_table()))
                yield Batch(table, _with_path(frame, detected), numbered(frame))
    except (pa.ArrowException, OSError) as error:
        raise truncated(path, "Parquet", error) from error


def _refuse_broken_text(path: Path, piece: pa.RecordBatch, first: int) -> None:
    """Refuse text that is not UTF-8, by column and row: neither Arrow nor Polars looks at it, and what reads it later fails."""
    wrong = []
    for name, values in zip(piece.schema.names, piece.columns, strict=True):
        try:
            values.validate(full=True)
        except pa.ArrowInvalid as error:
            at = re.match(r"Invalid UTF8 sequence at string index (\d+)$", str(error))
            wrong.append(f"{name} of row {first + int(at[1])}" if at else f"{name}: {error}")
    if wrong:
        raise DataError(f"{path}: {', '.join(wrong)}: not UTF-8; write the file with text that is")


def _with_path(frame: pl.DataFrame, detected: Detected) -> pl.DataFrame:
    """Add the columns that stand in the path of the file."""
    return frame.with_columns(
        pl.lit(value, dtype=pl.String).alias(name)
        for name, value in detected.partition.items()
        if name not in frame.columns
    )


# --- frames -----------------------------------------------------------------------------------------------------------


def is_frame(source: object) -> bool:
    """Whether a source is a frame rather than a path."""
    return isinstance(source, pl.LazyFrame) or hasattr(source, "__arrow_c_stream__")


def kind_of(frame: object) -> str:
    """Name the kind of a frame, e.g. ``pandas.DataFrame``."""
    kind = type(frame)
    return f"{kind.__module__.split('.')[0].strip('_')}.{kind.__name__}"


def write_frame(frame: Any, path: Path) -> None:
    """Write what ``is_frame`` accepts as a Parquet file, part by part; an unnamed index of pandas is left out.

    Raises:
        DataError: Types that a file cannot hold, or a frame that fails when it is computed.
        SchemaError: Columns occur twice.
    """
    with reading(kind_of(frame)):
        if isinstance(frame, pl.LazyFrame):
            frame.sink_parquet(path)
        elif isinstance(frame, pl.DataFrame):
            frame.write_parquet(path)
        elif isinstance(frame, duckdb.DuckDBPyRelation):
            pieces = relation_pieces(frame)
            first = next(pieces).to_arrow()
            with pq.ParquetWriter(path, first.schema) as out:
                for piece in pieces:
                    out.write_table(piece.to_arrow())
        else:
            _write_arrow(frame, path)


def _write_arrow(frame: Any, path: Path) -> None:
    """Write what Arrow can stream."""
    if kind_of(frame) == "pandas.DataFrame":
        frame = _without_mixed(frame)
    with pa.RecordBatchReader.from_stream(frame) as stream:
        names = [name for name in stream.schema.names if not _INDEX.fullmatch(name)]
        if twice := doubled(names):
            raise SchemaError(f"{kind_of(frame)}: columns occur twice: {', '.join(twice)}")
        with pq.ParquetWriter(
            path, pa.schema([stream.schema.field(name) for name in names])
        ) as out:
            for batch in stream:
                out.write_batch(batch.select(names))


def _without_mixed(frame: Any) -> Any:
    """Write columns of pandas that hold values of several kinds as text, as a file would have them."""
    mixed = [
        place
        for place, kind in enumerate(frame.dtypes)
        if str(kind) == "object" and not _is_uniform(frame.iloc[:, place])
    ]
    frame = frame.copy(deep=False)
    frame.columns = [str(name) for name in frame.columns]
    for place in mixed:
        column = frame.iloc[:, place]
        frame.isetitem(place, column.map(str, na_action="ignore"))
    return frame


def _is_uniform(column: Any) -> bool:
    """Whether Arrow finds one type for a column."""
    try:
        pa.array(column, from_pandas=True)
    except pa.ArrowException:
        return False
    return True
