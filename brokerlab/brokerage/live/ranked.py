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


def outcomes_of(
    asked: pl.DataFrame, ended: pl.Series, place: IntArray, codes: IntArray, of: IntArray,
    closed: IntArray, names: pl.Enum,
) -> pl.DataFrame:  # fmt: skip
    """Tell how the tasks ended.

    Args:
        asked: ``jeditaskid, snapshot, world``, one row per row wanted.
        ended: How each of them ended before any queue was looked at; null: it did not.
        place: Place of each among the tasks that are looked at; -1: it is not.
        codes: Check of each open pair, -1 for candidates.
        of: Which of the rows that are looked at each open pair is of.
        closed: Pairs that each check (column) removed before, by row that is looked at.
        names: Names of all checks.
    """
    counts = np.zeros((len(closed), len(names.categories)), dtype=np.int64)
    counts[:, : closed.shape[1]] = closed
    lost = codes >= 0
    np.add.at(counts, (of[lost], codes[lost]), 1)
    left = np.bincount(of[~lost], minlength=len(closed))
    skipped = counts.sum(axis=1)
    looked_at = place >= 0
    check = np.full(len(place), -1)
    check[looked_at] = np.where(skipped > 0, counts.argmax(axis=1), -1)
    n_queues, n_candidates = np.zeros((2, len(place)), dtype=np.int64)
    n_queues[looked_at], n_candidates[looked_at] = skipped + left, left
    some = pl.Series(np.where(n_candidates > 0, CANDIDATES, NONE), dtype=pl.String)
    return asked.select(KEY).with_columns(
        outcome=some.zip_with(ended.is_null(), ended),
        check=in_words(check, names),
        n_queues=pl.Series(n_queues),
        n_candidates=pl.Series(n_candidates),
    )


def in_words(codes: IntArray, names: pl.Enum) -> pl.Series:
    """Return the names of numbers; -1: null."""
    numbers = pl.Series(codes)
    return numbers.set(numbers < 0, None).cast(pl.UInt8).cat.to(names)
