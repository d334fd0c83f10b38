"""What a standing brokerage answers."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl

from brokerlab.brokerage.live.asked import KEY
from brokerlab.brokerage.production_jobs.pairs import positions
from brokerlab.numerics import IntArray

CANDIDATES, NONE = "candidates", "no_candidates"


@dataclass(frozen=True)
class Ranked:
    """The queues that may receive jobs.

    Attributes:
        queues: One row per candidate that is ranked: ``jeditaskid, snapshot, world, panda_queue`` (Enum of all
            queues), ``weight``, ``share`` (of the task's jobs expected there; 1 in all of a task's candidates),
            ``rank``; sorted by the first four.
        outcomes: One row per row wanted, sorted: ``jeditaskid, snapshot, world``, ``outcome`` (``candidates``,
            ``no_candidates``..., as ``decide`` says), ``check`` (why most queues were skipped, the first of equals; null:
            none was), ``n_queues`` looked at, ``n_candidates``.
    """

    queues: pl.DataFrame
    outcomes: pl.DataFrame


def named(found: pl.DataFrame, asked: pl.DataFrame, queues: pl.DataFrame) -> pl.DataFrame:
    """Put names in the place of numbers.

    Args:
        found: ``t`` (row of ``asked``), ``q, weight, share, rank``, sorted.
        asked: ``jeditaskid, snapshot, world``.
        queues: ``q, name`` (Enum).
    """
    keys = asked.select(KEY)[found["t"].cast(pl.UInt32)]
    name = queues["name"].gather(pl.Series(positions(queues["q"], found["q"]))).alias("panda_queue")
    return keys.hstack([name, *found.select("weight", "share", "rank").get_columns()])


def names_of(queues: pl.DataFrame) -> pl.DataFrame:
    """Return ``q, name`` of the facts of queues."""
    names = queues["panda_queue"]
    return queues.select("q", name=names.cast(pl.Enum(names.unique().sort())))


def most_frequent(codes: IntArray, of: IntArray, closed: IntArray) -> tuple[IntArray, IntArray]:
    """Return why most queues of each task were skipped, and how many were not.

    Args:
        codes: Check of each open pair, -1 for candidates.
        of: Task of each open pair.
        closed: Pairs that each check (column; perhaps not all) removed before, by task (row).
    """
    n_checks = max(closed.shape[1], int(codes.max(initial=-1)) + 1)
    counts = np.zeros((len(closed), n_checks), dtype=np.int64)
    counts[:, : closed.shape[1]] = closed
    lost = codes >= 0
    np.add.at(counts, (of[lost], codes[lost]), 1)
    most = counts.argmax(axis=1) if n_checks else np.zeros(len(closed), dtype=np.int64)
    most = np.where(counts.any(axis=1), most, -1)
    left = np.bincount(of[~lost], minlength=len(closed))
    return most, left
