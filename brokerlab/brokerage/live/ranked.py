"""What a standing brokerage answers."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl

from brokerlab.brokerage.engine.decide import named as in_words
from brokerlab.brokerage.engine.pairs import positions
from brokerlab.brokerage.live.asked import KEY
from brokerlab.numerics import IntArray


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


def queue_names(queues: pl.DataFrame) -> pl.DataFrame:
    """Return ``q, name`` of the facts of queues."""
    names = queues["panda_queue"]
    return queues.select("q", name=names.cast(pl.Enum(names.unique().sort())))


@dataclass(frozen=True)
class Tally:
    """Why queues were skipped, by row wanted.

    Attributes:
        counts: Queues that each check (column) removed.
        left: Queues that none did.
    """

    counts: IntArray
    left: IntArray

    @classmethod
    def of(cls, codes: IntArray, of: IntArray, closed: IntArray, n_names: int) -> Tally:
        """Count.

        Args:
            codes: Number of the rule that removed each open pair, -1 for candidates.
            of: Row of each open pair.
            closed: Pairs that each check (column; the first ones) removed before, by row.
            n_names: Number of checks.
        """
        counts = np.zeros((len(closed), n_names), dtype=np.int64)
        counts[:, : closed.shape[1]] = closed
        lost = codes >= 0
        np.add.at(counts, (of[lost], codes[lost]), 1)
        return cls(counts, np.bincount(of[~lost], minlength=len(closed)))

    def told(self, asked: pl.DataFrame, outcome: pl.Series, names: pl.Enum) -> pl.DataFrame:
        """Return :attr:`Ranked.outcomes` of the rows ``asked`` with these outcomes."""
        skipped = self.counts.sum(axis=1)
        most = np.where(skipped > 0, self.counts.argmax(axis=1), -1)
        return asked.select(KEY).with_columns(
            outcome=outcome,
            check=in_words(most, names),
            n_queues=pl.Series(skipped + self.left),
            n_candidates=pl.Series(self.left),
        )
