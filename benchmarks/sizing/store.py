"""Results of slow methods that are kept: an interrupted comparison goes on, and another one reads them."""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl

import brokerlab
from benchmarks.sizing.trace import Order, Trace
from brokerlab.long_work import Kept

FORMAT = 1
"""Changes with the columns that are kept: older results are then not found."""


@dataclass(frozen=True)
class Store:
    """A folder with one Parquet file per (trace, order, method, truth) and version of the library.

    Empty the folder when a method was changed without a new version.

    Attributes:
        folder: Where.
        fills: Whether what is missing is computed and added. If not, a comparison leaves a slow method
            out where a result is missing.
    """

    folder: Path
    fills: bool = True

    def key(self, trace: Trace, order: Order, method: str, truth: str) -> str:
        """Return the name of a result."""
        what = [FORMAT, digest(trace), str(order), method, truth, brokerlab.__version__]
        key = hashlib.sha256(json.dumps(what).encode()).hexdigest()[:16]
        words = re.sub(r"[^A-Za-z0-9]+", "-", f"{trace.name} {order} {method} {truth}")
        return f"{words}-{key}"

    def get(self, trace: Trace, order: Order, method: str, truth: str) -> pl.DataFrame | None:
        """Return a result; None if it is not there, or its file is damaged."""
        return Kept(self.folder).load(self.key(trace, order, method, truth))

    def put(
        self, trace: Trace, order: Order, method: str, truth: str, result: pl.DataFrame
    ) -> None:
        """Keep a result.

        Raises:
            DataError: The folder cannot be made.
        """
        Kept(self.folder).save(self.key(trace, order, method, truth), result)


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
