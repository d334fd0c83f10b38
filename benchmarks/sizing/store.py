"""Results of slow methods that are kept: an interrupted comparison goes on, and another one reads them."""

from __future__ import annotations

import hashlib
import json
import re
import uuid
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl

import brokerlab
from benchmarks.sizing.trace import Order, Trace
from brokerlab.errors import DataError

FORMAT = 1
"""Changes with the columns that are kept: older results are then not found."""


@dataclass(frozen=True)
class Store:
    """A folder with one Parquet file per (trace, order, method, truth) and version of the library.

    A file is written under a temporary name and renamed: there is no half result. Empty the folder when
    a method was changed without a new version.

    Attributes:
        folder: Where; made on the first result.
        fills: Whether what is missing is computed and added. If not, a comparison leaves a slow method
            out where a result is missing.
    """

    folder: Path
    fills: bool = True

    def place(self, trace: Trace, order: Order, method: str, truth: str) -> Path:
        """Return the file of a result."""
        what = [FORMAT, digest(trace), str(order), method, truth, brokerlab.__version__]
        key = hashlib.sha256(json.dumps(what).encode()).hexdigest()[:16]
        words = re.sub(r"[^A-Za-z0-9]+", "-", f"{trace.name} {order} {method} {truth}")
        return self.folder / f"{words}-{key}.parquet"

    def get(self, trace: Trace, order: Order, method: str, truth: str) -> pl.DataFrame | None:
        """Return a result; None if it is not there.

        Raises:
            DataError: The file is damaged.
        """
        file = self.place(trace, order, method, truth)
        if not file.exists():
            return None
        try:
            return pl.read_parquet(file)
        except (OSError, pl.exceptions.PolarsError) as error:
            raise DataError(f"{file}: {error}; remove it, and it is made again") from error

    def put(
        self, trace: Trace, order: Order, method: str, truth: str, result: pl.DataFrame
    ) -> None:
        """Keep a result.

        Raises:
            DataError: The folder cannot be made or written to.
        """
        file = self.place(trace, order, method, truth)
        temporary = file.with_name(f".{file.name}.{uuid.uuid4().hex}")
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise DataError(f"store {self.folder}: {error}; name a folder to write to") from error
        try:
            result.write_parquet(temporary)
            temporary.replace(file)
        except (OSError, pl.exceptions.PolarsError) as error:
            raise DataError(f"{file}: {error}; make room, or name another folder") from error
        finally:
            temporary.unlink(missing_ok=True)


def digest(trace: Trace) -> str:
    """Return a digest of all that methods see of a trace; its name is no part of it."""
    found = hashlib.sha256()
    for each in trace.types:
        found.update(json.dumps([each.process, each.tags]).encode())
        for column in (
            *(each.submit, each.input_b, each.request_b),
            *(each.rss_b, each.peak_rss_b, each.runtime_ms),
        ):
            found.update(np.ascontiguousarray(column).tobytes())
    return found.hexdigest()
