"""Read flat tables of links, one row per link and a column per metric, into ``network_matrix``."""

from collections.abc import Iterator
from pathlib import Path

import polars as pl

from brokerlab.archive.readers import columnar, delimited
from brokerlab.archive.readers.detect import LINK_KEYS, Detected
from brokerlab.archive.readers.records import Batch
from brokerlab.errors import SchemaError

_TIME = "mbps_timestamp"
_BASE = ["src", "dst"]


def read(path: Path, detected: Detected) -> Iterator[Batch]:
    """Read Parquet or CSV with ``src, dst``, columns of ``detect.LINK_KEYS`` and ``mbps_timestamp`` (the time of the three ``mbps``).

    Yields ``network_matrix``, one row per value that is there, numbered by link.

    Source:
        archive.md section 7.
    """
    for piece in (delimited if detected.delimiter else columnar).read(path, detected):
        named = piece.frame.rename({name: name.strip().lower() for name in piece.frame.columns})
        table, notes = _long(named.with_columns(piece.rows.alias("row")))
        yield Batch("network_matrix", table.drop("row"), table["row"], piece.refused, notes)


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
    note = "closeness, files and bytes have no time in a flat table"
    notes = [f"{note}; the most frequent mbps_timestamp ({when}) stands for it"]
    silent = len(links) - table["row"].n_unique()
    if silent:
        notes.append(f"{silent} link(s) hold no value: no row")
    return table, tuple(notes)
