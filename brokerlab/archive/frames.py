"""Take frames of pandas, Polars, Arrow and DuckDB as sources: each becomes a Parquet file, read as any other."""

import re
from pathlib import Path
from typing import Any

import duckdb
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

from brokerlab.archive.readers.databases import relation_pieces
from brokerlab.errors import SchemaError, reading
from brokerlab.frames import doubled

ALLOWED = "paths, and frames of pandas, Polars (eager or lazy), Arrow or DuckDB"
_INDEX = re.compile(r"__index_level_\d+__")


def is_frame(source: object) -> bool:
    """Whether a source is a frame rather than a path."""
    return isinstance(source, pl.LazyFrame) or hasattr(source, "__arrow_c_stream__")


def kind_of(frame: object) -> str:
    """Name the kind of a frame, e.g. ``pandas.DataFrame``."""
    kind = type(frame)
    return f"{kind.__module__.split('.')[0].strip('_')}.{kind.__name__}"


def write(frame: Any, path: Path) -> None:
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
