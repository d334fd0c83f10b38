"""Read Parquet files, canonical or database exports, in bounded memory."""

from collections.abc import Iterator
from pathlib import Path

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

from brokerlab.archive.readers.detect import Detected, truncated
from brokerlab.archive.readers.records import Batch, numbered

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
                frame = pl.DataFrame(pl.from_arrow(pa.Table.from_batches([piece])))
                yield Batch(table, _with_path(frame, detected), numbered(frame, first))
                first += len(frame)
            if first == 1:
                frame = pl.DataFrame(pl.from_arrow(source.schema_arrow.empty_table()))
                yield Batch(table, _with_path(frame, detected), numbered(frame))
    except (pa.ArrowException, OSError) as error:
        raise truncated(path, "Parquet", error) from error


def _with_path(frame: pl.DataFrame, detected: Detected) -> pl.DataFrame:
    """Add the columns that stand in the path of the file."""
    return frame.with_columns(
        pl.lit(value, dtype=pl.String).alias(name)
        for name, value in detected.partition.items()
        if name not in frame.columns
    )
