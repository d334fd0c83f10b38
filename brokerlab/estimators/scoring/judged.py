"""The jobs that estimators are judged on, and what a bound meant for each of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
import polars as pl

from brokerlab.errors import ConfigError, InsufficientDataError, nearest
from brokerlab.estimators.deployed.seen import Seen
from brokerlab.estimators.records import UNITS, Quantity
from brokerlab.estimators.replaying import codes, known, order
from brokerlab.numerics import BoolArray, FloatArray, IntArray
from brokerlab.scouts.quantities import floats
from brokerlab.units import HOUR_S, MB

Judge = Literal["production", "all"]
JUDGES: tuple[Judge, ...] = ("production", "all")
ROUNDING = 1 + 1e-9  # a use that is larger by the last bits of a product is as large
LEAST = 1.0  # MB or s; what is doubled where an estimate was 0 or less

COUNTED = (
    *("jobs", "answered", "unknown", "scored", "exceed", "at_limit"),
    *("used", "bound", "over", "usage", "waste", "killed", "retries"),
)
"""What is summed: see :meth:`Judged.counted`."""
PLACE = {name: i for i, name in enumerate(COUNTED)}


@dataclass(frozen=True)
class Judged:
    """The judged jobs as arrays, in the order of the records.

    Attributes:
        quantity: ``memory`` or ``walltime``.
        rows: (n,) their rows in the checked records.
        task: (n,) code of the task.
        tasks: (n_tasks,) jeditaskid of each code.
        known: (n,) finished jobs of the task that were known.
        cores: (n,).
        used: (n,) [MB or s].
        censored: (n,) killed at a limit: used more than this.
        hours: (n,) what a megabyte of memory (GB h) or a second of wall time (core h) weighs.
        largest: (n,) largest use seen of the task when the job was decided; NaN: none.
    """

    quantity: Quantity
    rows: IntArray
    task: IntArray
    tasks: IntArray
    known: IntArray
    cores: FloatArray
    used: FloatArray
    censored: BoolArray
    hours: FloatArray
    largest: FloatArray

    @classmethod
    def of(cls, records: pl.DataFrame, quantity: Quantity, judge: Judge) -> Judged:
        """Choose the judged jobs.

        Args:
            records: As :func:`records.checked` returns them.
            quantity: ``memory`` or ``walltime``.
            judge: ``production``: all but the scouts; ``all``: scouts, too.

        Raises:
            ConfigError: An unknown quantity or choice.
            InsufficientDataError: No job is left.
        """
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
        orderly = order(records)
        used, task = floats(records, "used"), codes(records, "jeditaskid")[0]
        largest = Seen(100, most=None).percentile(orderly.events, task, used)
        chosen = records[rows]
        task, n_tasks = codes(chosen, "jeditaskid")
        weight = chosen["wall_s" if quantity == "memory" else "cores"].to_numpy()
        return cls(
            quantity=quantity,
            rows=rows,
            task=task,
            tasks=chosen["jeditaskid"].unique(maintain_order=True).to_numpy()[:n_tasks],
            known=known(records, orderly)[rows],
            cores=floats(chosen, "cores"),
            used=used[rows],
            censored=chosen["censored"].to_numpy(),
            hours=weight * (MB / 1e9 if quantity == "memory" else 1.0) / HOUR_S,
            largest=largest[rows],
        )

    def counted(self, bound: FloatArray, *, ladder: bool = True) -> FloatArray:
        """Say what a bound meant for each job, in columns that can be summed.

        A bound that is not finite is no answer. A job that was killed exceeds a bound at or below what it
        had used; above it nobody knows. Only finished jobs count for amounts.

        A job above its bound loses the whole attempt; the next one gets the largest use seen of its
        task, if that is larger, and then twice as much each time. Of memory an attempt lasts as long as
        the job; of wall time a killed attempt costs its bound on all cores.

        Args:
            bound: (n,) [MB or s].
            ladder: Whether to count attempts, too; else their columns are 0.

        Returns:
            (n, len(COUNTED)): ``jobs, answered, unknown`` (killed below the bound), ``scored`` (the rest
            of the answered), ``exceed, at_limit`` (of these, killed exactly at the bound); of finished jobs ``used, bound, over`` (bound above use) [MB or s],
            ``usage, waste`` (allocated and not used, killed attempts whole), ``killed`` (their part) [GB h or
            core h], ``retries``.

        Source: sizing-benchmark.md, section 3.
        """
        result = np.zeros((bound.size, len(COUNTED)))
        answered = np.isfinite(bound)
        above = self.used > np.where(answered, bound, 0.0) * ROUNDING
        exceed = answered & (above | (self.censored & (self.used >= bound)))
        unknown = answered & self.censored & ~exceed
        finished = answered & ~self.censored
        amount = np.where(finished, bound, 0.0)
        used = np.where(finished, self.used, 0.0)
        columns = {
            "jobs": 1.0,
            "answered": answered,
            "unknown": unknown,
            "scored": answered & ~unknown,
            "exceed": exceed,
            "at_limit": exceed & ~above,
            "used": used,
            "bound": amount,
            "over": np.maximum(amount - used, 0.0),
            "usage": used * self.hours,
        }
        for name, values in columns.items():
            result[:, PLACE[name]] = values
        if ladder:
            self._climb(result, amount, used, failed=np.flatnonzero(finished & exceed))
        return result

    def _climb(
        self, result: FloatArray, amount: FloatArray, used: FloatArray, *, failed: IntArray
    ) -> None:
        """Add the attempts of finished jobs; nearly all succeed at once."""
        result[:, PLACE["waste"]] = result[:, PLACE["over"]] * self.hours
        first, need = amount[failed], used[failed]
        second = np.where(self.largest[failed] > first, self.largest[failed], 2 * first)
        second = np.maximum(second, LEAST)
        again = np.maximum(np.ceil(np.log2(need / second / ROUNDING)), 0.0)
        lost = first + second * (2.0**again - 1)
        last = second * 2.0**again
        result[failed, PLACE["killed"]] = lost * self.hours[failed]
        unused = np.maximum(last - need, 0.0)
        result[failed, PLACE["waste"]] = (lost + unused) * self.hours[failed]
        result[failed, PLACE["retries"]] = 1 + again

    def by_task(self, columns: FloatArray, rows: BoolArray | None = None) -> FloatArray:
        """Sum columns of :meth:`counted` over the jobs of each task, all or where ``rows`` holds."""
        task = self.task if rows is None else self.task[rows]
        chosen = columns if rows is None else columns[rows]
        return np.column_stack(
            [np.bincount(task, weights=each, minlength=self.tasks.size) for each in chosen.T]
        )
