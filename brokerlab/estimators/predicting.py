"""Bound the jobs of a file with a saved model, held to its levels: every row is predicted, or refused with its reason."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from brokerlab.errors import DataError
from brokerlab.estimators.estimator import check_levels
from brokerlab.estimators.held import HeldBounds
from brokerlab.estimators.jobfiles import Sifted, sift
from brokerlab.estimators.saving import Saved

HAS_FINISHED = "pandaid: is among the finished jobs"


@dataclass(frozen=True)
class Bounded:
    """What became of the rows of a file."""

    # ``pandaid, jeditaskid, seen, point``, ``bound_<level>`` [MB or s], ``promised_<level>``
    bounds: pl.DataFrame
    refused: pl.DataFrame  # ``file`` (``jobs`` or ``seen``), ``row``, ``pandaid``, ``reason``
    jobs: int  # rows of the file of jobs
    seen: int  # rows of the file of finished jobs


def bound_file(
    saved: Saved, jobs: Path, seen: Path | None = None, *, levels: Sequence[float]
) -> Bounded:
    """Bound the jobs of a file from a saved model and the jobs that have finished since: by `HeldBounds`."""
    asked = check_levels(levels)
    waiting = sift(jobs, "jobs")
    finished = sift(seen, "seen") if seen else None
    rows = waiting.records.height + waiting.refused.height
    held = HeldBounds(saved.estimator, saved.estimator.quantity, levels=asked)
    if finished:
        waiting = waiting.without(finished.records["pandaid"], HAS_FINISHED)
        held.update(finished.records)
    refused = _name(waiting, finished)
    if waiting.records.is_empty():
        first = f", the first one for: {refused['reason'][0]}" if refused.height else ""
        raise DataError(f"{jobs}: none of {rows} rows can be predicted{first}")
    result = held.predict(waiting.records, levels=asked)
    tasks = waiting.records.select("pandaid", "jeditaskid")
    return Bounded(
        tasks.join(result, on="pandaid", how="left", maintain_order="left"),
        refused,
        rows,
        finished.records.height + finished.refused.height if finished else 0,
    )


def _name(waiting: Sifted, finished: Sifted | None) -> pl.DataFrame:
    """Return the refused rows of both files."""
    parts = {"jobs": waiting, "seen": finished}
    return pl.concat(
        part.refused.select(pl.lit(name).alias("file"), "row", "pandaid", "reason")
        for name, part in parts.items()
        if part
    )
