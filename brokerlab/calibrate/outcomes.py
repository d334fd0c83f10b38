"""What every setting would have done to every task: sums over jobs by one search in sorted needs.

Jobs are sorted once by task and need and their amounts summed up along the way; an estimate x then splits
a task's jobs in two, and every quantity is a difference of two running sums.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from brokerlab.calibrate.needs import Needs
from brokerlab.numerics import FloatArray, IntArray

KEY_BITS = 40
COUNT, SLOPE, OFFSET, USED, COREH = range(5)


@dataclass(frozen=True)
class Outcomes:
    """One chunk of tasks under all settings; every array is (n_tasks, n_settings).

    Attributes:
        n_exceed: Jobs whose first attempt is killed.
        n_lost: Jobs killed in every attempt.
        used: Used by the jobs that finish in some attempt [amount unit].
        over: Reserved and not used by the attempt that finished.
        waste: Reserved by killed attempts. Reserved in all is used + over + waste.
        killed_coreh: Core-hours of killed attempts.
        headroom: Sum over all jobs of first request / use - 1.
    """

    n_exceed: FloatArray
    n_lost: FloatArray
    used: FloatArray
    over: FloatArray
    waste: FloatArray
    killed_coreh: FloatArray
    headroom: FloatArray


class Ledger:
    """Running sums of the jobs' amounts, in the order of their need, one ordering per rung."""

    def __init__(self, needs: Needs, n_tasks: int, *, killed_after: float) -> None:
        """Sort the jobs.

        Args:
            needs: The scored jobs.
            n_tasks: Number of tasks; those without scored jobs keep their place.
            killed_after: Share of its run after which a job over its memory or disk request is killed.
        """
        self.factors = needs.factors
        self.killed_share = 1.0 if needs.killed_at_limit else killed_after
        self.killed_at_limit = needs.killed_at_limit
        self.n_jobs: IntArray = np.bincount(needs.task, minlength=n_tasks).astype(np.int64)
        self.start = np.concatenate(([0], np.cumsum(self.n_jobs)))
        amounts = np.column_stack(
            [np.ones(needs.task.size), needs.slope, needs.offset, needs.used, needs.coreh]
        )
        self.keys: list[IntArray] = []
        self.sums: list[FloatArray] = []
        for need in needs.need:
            key = (needs.task << KEY_BITS) + need
            order = np.argsort(key, kind="stable")
            self.keys.append(key[order])
            zero = np.zeros((1, amounts.shape[1]))
            self.sums.append(np.concatenate([zero, np.cumsum(amounts[order], axis=0)]))
        ends = self.sums[0][self.start]
        self.totals: FloatArray = np.diff(ends, axis=0)
        self.headroom_slope = np.bincount(needs.task, needs.headroom_slope, minlength=n_tasks)
        self.headroom_offset = np.bincount(needs.task, needs.headroom_offset, minlength=n_tasks)

    @property
    def coreh(self) -> FloatArray:
        """Core-hours of one complete run of every scored job, (n_tasks,)."""
        return np.asarray(self.totals[:, COREH])

    def outcomes(self, estimate: IntArray, tasks: slice) -> Outcomes:
        """Return what the estimates would have done.

        Args:
            estimate: (n_tasks_in_slice, n_settings) whole numbers.
            tasks: Which tasks.
        """
        numbers = np.arange(self.n_jobs.size)[tasks]
        x = estimate.astype(np.float64)
        totals = self.totals[tasks][:, None, :]
        served = np.zeros((*x.shape, totals.shape[2]))  # of the jobs done before this rung
        over, waste, killed = np.zeros_like(x), np.zeros_like(x), np.zeros_like(x)
        exceed: list[FloatArray] = []
        for rung, factor in enumerate(self.factors):
            done = self._done(rung, estimate, numbers)
            gain = done - served
            over += factor * _reserved(x, gain) - gain[..., USED]
            left = totals - done
            lost = factor * _reserved(x, left) * self.killed_share
            waste += lost
            killed += lost if self.killed_at_limit else left[..., COREH] * self.killed_share
            exceed.append(left[..., COUNT])
            served = done
        slope, offset = self.headroom_slope[tasks], self.headroom_offset[tasks]
        return Outcomes(
            n_exceed=exceed[0],
            n_lost=exceed[-1],
            used=served[..., USED],
            over=over,
            waste=waste,
            killed_coreh=killed,
            headroom=x * slope[:, None] + offset[:, None],
        )

    def _done(self, rung: int, estimate: IntArray, numbers: IntArray) -> FloatArray:
        """Sum the amounts of the jobs that the attempt of a rung serves: those with need <= x."""
        key = (numbers[:, None] << KEY_BITS) + estimate
        at = np.searchsorted(self.keys[rung], key.ravel(), side="right").reshape(key.shape)
        sums = self.sums[rung]
        return np.asarray(sums[at] - sums[self.start[numbers]][:, None, :])


def _reserved(x: FloatArray, amounts: FloatArray) -> FloatArray:
    """Return the amount reserved for one attempt of the given jobs at the first factor."""
    return np.asarray(x * amounts[..., SLOPE] + amounts[..., OFFSET])
