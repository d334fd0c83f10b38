"""Rows of one source, held to the contract and settled."""

from typing import NamedTuple

import polars as pl

from brokerlab.archive import merge


class Split(NamedTuple):
    accepted: pl.DataFrame
    quarantine: pl.DataFrame
    duplicates: int


def split(table: str, frame: pl.DataFrame, source: str = "") -> Split:
    rows = pl.int_range(1, len(frame) + 1, eager=True)
    good, bad = merge.split(table, frame, source=source, rows=rows)
    return Split(good, bad, len(frame) - len(good) - len(bad))
