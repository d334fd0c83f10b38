"""Read Parquet files, canonical or database exports, in bounded memory."""

import re
from collections.abc import Iterator
from pathlib import Path

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

from brokerlab.archive.readers.detect import Detected, truncated
from brokerlab.archive.readers.records import Batch, numbered
from brokerlab.errors import DataError

BATCH_ROWS = 131_072
"""Rows held at a time."""


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
