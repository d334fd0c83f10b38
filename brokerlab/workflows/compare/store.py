"""Cells on disk: a comparison that was broken off goes on where it was."""

from __future__ import annotations

import os
from pathlib import Path

import polars as pl
from polars.exceptions import PolarsError

from brokerlab.workflows.compare.cells import SCHEMA


class Store:
    """A folder with one Parquet file per finished cell.

    Args:
        folder: Made if it is not there; None keeps nothing.
    """

    def __init__(self, folder: str | Path | None) -> None:
        self.folder = None if folder is None else Path(folder)
        if self.folder is not None:
            self.folder.mkdir(parents=True, exist_ok=True)

    def load(self, key: str) -> pl.DataFrame | None:
        """Return a finished cell; None where there is none, or its file is not one of this version."""
        if self.folder is None:
            return None
        path = self.folder / f"{key}.parquet"
        if not path.is_file():
            return None
        try:
            frame = pl.read_parquet(path)
        except (OSError, PolarsError):
            return None
        return frame if dict(frame.schema) == SCHEMA else None

    def save(self, key: str, frame: pl.DataFrame) -> None:
        """Write a finished cell: under another name first, so that there is no half of one."""
        if self.folder is None:
            return
        unfinished = self.folder / f".{key}.{os.getpid()}.unfinished"
        try:
            frame.write_parquet(unfinished)
            unfinished.rename(self.folder / f"{key}.parquet")
        finally:
            unfinished.unlink(missing_ok=True)
