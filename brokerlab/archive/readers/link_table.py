"""Read flat tables of links, one row per link and a column per metric, into ``network_matrix``."""

from collections.abc import Iterator
from pathlib import Path

import polars as pl

from brokerlab.archive.readers import columnar, delimited
from brokerlab.archive.readers.batch import Batch
from brokerlab.archive.readers.detect import LINK_KEYS, Detected
from brokerlab.errors import SchemaError

_TIME = "mbps_timestamp"
_BASE = ["src", "dst"]


def read(path: Path, found: Detected) -> Iterator[Batch]:
    """Read a flat table block by block.

    Args:
        path: Parquet or CSV, with ``src, dst``, columns of ``detect.LINK_KEYS``, ``mbps_timestamp`` (the time of the three
            ``mbps``).
        found: What ``detect`` said.

    Yields:
        Batches of ``network_matrix``, one row per value that is there; rows are numbered by link.

    Raises:
        DataError: Truncated, damaged, or of a wrong encoding.
        SchemaError: A column of lists or structs.

    Source:
        archive.md section 7.
    """
    for frame, rows, refused in _pieces(path, found):
        named = frame.rename({name: name.strip().lower() for name in frame.columns})
        table, notes = _long(named.with_columns(rows.alias("row")))
        yield Batch("network_matrix", table.drop("row"), table["row"], refused, notes)


def _pieces(path: Path, found: Detected) -> Iterator[tuple[pl.DataFrame, pl.Series, pl.DataFrame]]:
    """Yield (rows, their numbers, refused rows)."""
    if found.delimiter:
        yield from delimited.pieces(path, found)
        return
    for piece in columnar.read(path, found):
        yield piece.frame, piece.rows, piece.refused


def _long(links: pl.DataFrame) -> tuple[pl.DataFrame, tuple[str, ...]]:
    """Turn columns into rows; values without a time of their own get the usual one of the table."""
    metrics = [name for name in LINK_KEYS if name in links.columns]
    nested = [name for name in metrics if links.schema[name].is_nested()]
    if nested:
        raise SchemaError(
            "\n".join(
                f"network_matrix.{n}: found type {links.schema[n]}, allowed: a number"
                for n in nested
            )
        )
    if _TIME not in links.columns:
        links = links.with_columns(pl.lit(None, dtype=pl.String).alias(_TIME))
    links = links.with_columns(
        pl.col(*metrics, _TIME).cast(pl.String).str.strip_chars().replace("", None)
    )
    usual = links[_TIME].drop_nulls().mode(maintain_order=True)
    when = usual[0] if len(usual) else None
    own = pl.col("key").str.starts_with("dashb_mbps")
    table = (
        links.unpivot(
            metrics, index=[*_BASE, "row", _TIME], variable_name="key", value_name="value"
        )
        .drop_nulls("value")
        .with_columns(pl.col("key").replace_strict(LINK_KEYS))
        .select(
            *_BASE,
            "key",
            "value",
            "row",
            pl.when(own).then(_TIME).otherwise(pl.lit(when)).alias("ts"),
        )
        .sort("row", maintain_order=True)
    )
    told = "closeness, files and bytes have no time in a flat table"
    notes = [f"{told}; the most frequent mbps_timestamp ({when}) stands for it"]
    silent = len(links) - table["row"].n_unique()
    if silent:
        notes.append(f"{silent} link(s) hold no value: no row")
    return table, tuple(notes)
