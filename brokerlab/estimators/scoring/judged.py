"""The jobs that estimators are judged on, and what a bound meant for each of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
import polars as pl

from brokerlab.errors import ConfigError, InsufficientDataError, nearest
from brokerlab.estimators.deployed.seen import Seen
from brokerlab.estimators.estimator import Predicted
from brokerlab.estimators.records import UNITS, Quantity
from brokerlab.estimators.replaying import codes, known, order
from brokerlab.estimators.scoring.attempts import COUNTED, ROUNDING, add_up
from brokerlab.numerics import BoolArray, FloatArray, IntArray
from brokerlab.scouts.quantities import floats
from brokerlab.units import HOUR_S, MB

Judge = Literal["production", "all"]
JUDGES: tuple[Judge, ...] = ("production", "all")


@dataclass(frozen=True)
class Judged:
    """The judged jobs as arrays, in the order of the records."""

    quantity: Quantity
    rows: IntArray  # (n,) their rows in the checked records
    task: IntArray  # (n,) code of the task
    tasks: IntArray  # (n_tasks,) jeditaskid of each code
    known: IntArray  # (n,) finished jobs of the task that were known
    cores: FloatArray  # (n,)
    used: FloatArray  # (n,) [MB or s]
    censored: BoolArray  # (n,) killed at a limit: used more than this
    # (n,) what a megabyte of memory (GB h) or a second of wall time (core h) weighs
    hours: FloatArray
    largest: FloatArray  # (n,) largest use seen of the task when the job was decided; NaN: none

    @classmethod
    def of(cls, records: pl.DataFrame, quantity: Quantity, judge: Judge) -> Judged:
        """Choose the judged jobs."""
        wrong = [f"quantity '{quantity}': {nearest(quantity, UNITS)}"] * (quantity not in UNITS)
        wrong += [f"judge '{judge}': {nearest(judge, JUDGES)}"] * (judge not in JUDGES)
        if wrong:
            raise ConfigError("; ".join(wrong))
        scouts = records["is_scout"].to_numpy()
        rows = np.flatnonzero(~scouts if judge == "production" else np.ones_like(scouts))
        if rows.size == 0:
            raise InsufficientDataError(
                f"records: none of {records.height} jobs is to be judged; all are scouts"
            )
        events = order(records)
        used, task = floats(records, "used"), codes(records, "jeditaskid")[0]
        largest = Seen(100, most=None).percentile(events, task, used)
        chosen = records[rows]
        task, n_tasks = codes(chosen, "jeditaskid")
        weight = chosen["wall_s" if quantity == "memory" else "cores"].to_numpy()
        return cls(
            quantity=quantity,
            rows=rows,
            task=task,
            tasks=chosen["jeditaskid"].unique(maintain_order=True).to_numpy()[:n_tasks],
            known=known(records, events)[rows],
            cores=floats(chosen, "cores"),
            used=used[rows],
            censored=chosen["censored"].to_numpy(),
            hours=weight * (MB / 1e9 if quantity == "memory" else 1.0) / HOUR_S,
            largest=largest[rows],
        )

    def sums(self, bound: FloatArray, rows: BoolArray | None = None) -> FloatArray:
        """Say what bounds meant, summed over the jobs of each task.

        A bound that is not finite is no answer. A job that was killed exceeds a bound at or below what it
        had used; above it nobody knows. Only finished jobs count for amounts.

        A job above its bound loses the whole attempt; the next one gets the largest use seen of its
        task, if that is larger, and then twice as much each time. Of memory an attempt lasts as long as
        the job; of wall time a killed attempt costs its bound on all cores.

        (n_tasks, len(COUNTED)): ``jobs, answered, unknown`` (killed below the bound), ``scored`` (the
        rest of the answered), ``exceed, at_limit`` (of these, killed exactly at the bound); of finished
        jobs ``used, bound, over`` (bound above use) [MB or s], ``usage, waste`` (allocated and not used,
        killed attempts whole), ``killed`` (their part) [GB h or core h], ``retries``.

        Source: sizing.md, section 3.
        """
        result = np.zeros((self.tasks.size, len(COUNTED)))
        counts = np.ones(bound.size, dtype=np.bool_) if rows is None else rows
        add_up(
            np.ascontiguousarray(bound), self.used, self.censored, self.hours, self.largest,
            self.task, counts, result,
        )  # fmt: skip
        return result

    def can_be_judged(self, bound: FloatArray) -> BoolArray:
        """Tell which jobs have an answer and are known to keep or to exceed it."""
        unknown = self.censored & (self.used < bound) & ~(self.used > bound * ROUNDING)
        return np.asarray(np.isfinite(bound) & ~unknown)

    def promises(self, predicted: Predicted, level: float) -> tuple[float, int, int]:
        """Return the share of jobs that had a bound of a level promised, how many of these kept it, and of how many that is known."""
        bound, own = predicted.at(level)[self.rows], predicted.promised(level)[self.rows]
        known = own & self.can_be_judged(bound)
        kept = self.used[known] <= bound[known] * ROUNDING
        return float(own.mean()), int(kept.sum()), int(known.sum())
