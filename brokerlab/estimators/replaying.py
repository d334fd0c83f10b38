"""The order in which estimators decide jobs and see them end, and group codes for their kernels."""

from __future__ import annotations

import numpy as np
import polars as pl

from brokerlab.compiled import compiled_in_place
from brokerlab.numerics import IntArray

_MANY_PIECES = 64


def order(records: pl.DataFrame) -> IntArray:
    """Merge decisions (~row) and ends (row) of checked records into one list of events that a compiled loop can walk.

    A job is known to another one if it ended at or before the other is decided: at one instant ends come
    first, by pandaid, then decisions, by pandaid. A job that ends at the instant of its own decision
    is seen right after it. A job without an end is never seen.
    """
    decided = records["decided_s"].to_numpy()
    ended = records["ended_s"].fill_null(float("nan")).to_numpy()
    rows = np.arange(records.height, dtype=np.int64)
    seen = rows[~np.isnan(ended)]
    at_once = ended[seen] == decided[seen]
    time = np.concatenate([decided, ended[seen]])
    # ends of earlier jobs before decisions; an end at once directly behind its own decision
    phase = np.concatenate([np.ones(rows.size, dtype=np.int64), at_once.astype(np.int64)])
    pandaid = records["pandaid"].to_numpy()
    tie = np.concatenate([rows, np.where(at_once, seen, pandaid[seen])])
    is_end = np.concatenate([np.zeros(rows.size, dtype=np.int64), np.ones(seen.size, np.int64)])
    events = np.concatenate([~rows, seen])
    ordered: IntArray = events[np.lexsort((is_end, tie, phase, time))]
    return ordered


class Past:
    """Finished jobs that an estimator has seen, kept to be put before those that it is asked of."""

    def __init__(self) -> None:
        self._pieces: list[pl.DataFrame] = []

    def clear(self) -> None:
        """Forget all of them."""
        self._pieces.clear()

    def add(self, records: pl.DataFrame) -> None:
        """Keep finished jobs, in the order of their ends; those without an end are left out."""
        ended = records.filter(pl.col("ended_s").is_not_null()).sort("ended_s", "pandaid")
        self._pieces.append(ended)
        if len(self._pieces) > _MANY_PIECES:
            self._pieces = [pl.concat(self._pieces)]

    def frame(self) -> pl.DataFrame | None:
        """Return all of them, as they came; None: nothing was seen."""
        return pl.concat(self._pieces) if self._pieces else None

    def before(
        self, records: pl.DataFrame, events: IntArray, *, others: bool = True
    ) -> tuple[pl.DataFrame, IntArray, int]:
        """Put what was seen before records: all rows, their events, and how many were seen; ``others``: of other tasks, too."""
        seen = self.frame()
        if seen is None:
            return records, events, 0
        if not others:
            seen = seen.filter(pl.col("jeditaskid").is_in(records["jeditaskid"].unique().implode()))
        past = seen.height
        shifted = np.where(events >= 0, events + past, events - past)
        walked = np.concatenate([np.arange(past, dtype=np.int64), shifted])
        return pl.concat([seen, records]), walked, past


def codes(records: pl.DataFrame, *columns: str) -> tuple[IntArray, int]:
    """Number groups of rows that are equal in some columns, from 0 as they first appear; return how many there are, too."""
    groups = records.select(columns).unique(maintain_order=True).with_row_index("code")
    result = records.select(columns).join(
        groups, on=columns, how="left", nulls_equal=True, maintain_order="left"
    )
    return result["code"].cast(pl.Int64).to_numpy(), groups.height


def known(records: pl.DataFrame, events: IntArray) -> IntArray:
    """Count the jobs of the same task, not killed at a limit, that are known to have ended when each job is decided."""
    task, n_tasks = codes(records, "jeditaskid")
    counts = np.zeros(records.height, dtype=np.int64)
    finished = ~records["censored"].to_numpy()
    _count(events, task, finished, np.zeros(n_tasks, dtype=np.int64), counts)
    return counts


@compiled_in_place
def _count(
    events: IntArray, task: IntArray, finished: np.ndarray, so_far: IntArray, counts: IntArray
) -> None:
    for event in events:
        if event < 0:
            counts[~event] = so_far[task[~event]]
        elif finished[event]:
            so_far[task[event]] += 1
