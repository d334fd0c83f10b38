"""Read Parquet files, canonical or database exports, in bounded memory."""

from collections.abc import Iterator
from pathlib import Path

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

from brokerlab.archive.readers.batch import Batch, numbered
from brokerlab.archive.readers.detect import truncated
from brokerlab.archive.readers.units import settle_units
from brokerlab.errors import DataError

BATCH_ROWS = 250_000
"""Rows held at a time."""


def read(path: Path, table: str | None) -> Iterator[Batch]:
    """Read a Parquet file batch by batch.

    Args:
        path: The file.
        table: Its canonical table.

    Yields:
        One batch per 250,000 rows; one empty batch if the file has no rows.

    Raises:
        DataError: The file is truncated or damaged.
    """
    if table is None:
        raise DataError(f"{path}: say --table for this Parquet file")
    first = 1
    try:
        with pq.ParquetFile(path, page_checksum_verification=True) as source:
            for piece in source.iter_batches(batch_size=BATCH_ROWS):
                frame = pl.DataFrame(pl.from_arrow(pa.Table.from_batches([piece])))
                frame, notes = settle_units(table, frame)
                yield Batch(table, frame, numbered(frame, first), notes=notes)
                first += len(frame)
            if first == 1:
                frame = pl.DataFrame(pl.from_arrow(source.schema_arrow.empty_table()))
                yield Batch(table, frame, numbered(frame))
    except (pa.ArrowException, OSError) as error:
        raise truncated(path, "Parquet", error) from error
