"""Which share of the queues, and of their slots, offers as much as a job asks for."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl

from brokerlab.numerics import FloatArray


@dataclass(frozen=True)
class Offers:
    """What queues offer, in ascending order."""

    offered: FloatArray  # (n_queues,) ascending; infinite where a queue has no limit
    slots_above: FloatArray  # (n_queues + 1,) share of the slots at or above each place

    @classmethod
    def of(cls, offered: FloatArray, slots: FloatArray) -> Offers:
        """Sort queues by what they offer."""
        order = np.lexsort((slots, offered))  # the same sums in any order of the queues
        above = np.append(np.cumsum(slots[order][::-1])[::-1], 0.0)
        return cls(offered[order], above / max(above[0], np.finfo(float).tiny))

    def shares(self, demand: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the share of the queues, and of the slots, that offer at least each demand."""
        if self.offered.size == 0:
            return np.full(demand.shape, np.nan), np.full(demand.shape, np.nan)
        at = np.searchsorted(self.offered, demand.ravel(), side="left").reshape(demand.shape)
        return 1 - at / self.offered.size, self.slots_above[at]


def memory_per_core() -> pl.Expr:
    """Return the memory of a queue per core [MB] from ``maxrss``, else ``memory``, and ``corecount``.

    Null and 0 are no limit, and one core: the result is then null, or that of one core.
    """
    limit = pl.coalesce(positive("maxrss"), positive("memory"))
    return limit / pl.coalesce(positive("corecount"), 1)


def positive(name: str) -> pl.Expr:
    """Return a column with 0 and negative numbers as null: no limit, not known."""
    return pl.when(pl.col(name) > 0).then(pl.col(name))
