"""What each job needed, turned round: the smallest estimate under which it would not have been killed.

A request is a rounded straight line in the task's estimate x. Solving it for x once per job makes every
setting a comparison of whole numbers: the job is killed where its need is above x. In the ledger jobs are sorted once
by task and need and their amounts summed up along the way; an estimate then splits a task's jobs in two, and every
quantity is a difference of two running sums.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import polars as pl

from brokerlab.calibrate.percentiles.parameters import Assumptions, Parameter
from brokerlab.calibrate.percentiles.requests import Line, column
from brokerlab.errors import ConfigError
from brokerlab.numerics import FloatArray, IntArray
from brokerlab.units import HOUR_S

KEY_BITS = 40  # of a need; leaves 23 bits for the number of a task in one int64 key
NEVER = 2**KEY_BITS - 1  # above every estimate
COUNT, SLOPE, OFFSET, USED, COREH = range(5)


@dataclass(frozen=True)
class Needs:
    """The scored jobs of all tasks as arrays of one length.

    Attributes:
        task: (n_jobs,) number of the task.
        need: (n_rungs, n_jobs) smallest estimate with which the attempt of that rung succeeds; rung 0 is
            the first attempt, the others the retries with more.
        factors: (n_rungs,) how much more each rung gets, 1 first.
        slope: (n_jobs,) amount reserved per unit of the estimate [amount unit].
        offset: (n_jobs,) amount reserved besides [amount unit].
        used: (n_jobs,) amount used [amount unit].
        coreh: (n_jobs,) core-hours of one complete run.
        headroom_slope: (n_jobs,) request / use per unit of the estimate.
        headroom_offset: (n_jobs,) request / use - 1 at estimate 0.
        killed_at_limit: A killed attempt ends when the limit is reached (walltime); else after the
            stated share of its run.
    """

    task: IntArray
    need: IntArray
    factors: tuple[float, ...]
    slope: FloatArray
    offset: FloatArray
    used: FloatArray
    coreh: FloatArray
    headroom_slope: FloatArray
    headroom_offset: FloatArray
    killed_at_limit: bool


def needs_of(jobs: pl.DataFrame, parameter: Parameter, made: Assumptions) -> Needs:
    """Solve the request of every job for the estimate.

    A retry gets the stated multiple of the first request. Amounts reserved are taken before truncation, at most 1 MB or 1 s
    per job above.

    Args:
        jobs: Scored jobs: quantities with ``task`` (number of the task), ``baseramcount`` [MB], ``basewalltime`` [s],
            ``cpuefficiency`` [%], ``censored`` (use is a lower bound: the job needed more).
        parameter: Which.
        made: What the requests are made with; ``retry_factors``, multiples of the retries, rising.
    """
    factors = (1.0, *made.retry_factors)
    if any(b <= a for a, b in pairwise(factors)):
        raise ConfigError(f"retry_factors={made.retry_factors}: allowed are rising factors above 1")
    line = parameter.line(jobs, made)
    wanted = np.ceil(line.used)  # int(request) >= use exactly when request >= the next whole number
    with np.errstate(divide="ignore", invalid="ignore"):  # a slope of 0: no estimate is enough
        need = np.stack([_least(wanted, line, factor) for factor in factors])
    censored = jobs["censored"].to_numpy()
    positive = np.where(line.used > 0, line.used, 1.0)  # a run of 0 s counts as one of 1 s
    return Needs(
        task=jobs["task"].to_numpy().astype(np.int64),
        need=np.minimum(need + censored[None, :], NEVER),
        factors=factors,
        slope=line.slope * line.amount,
        offset=line.offset * line.amount,
        used=line.used * line.amount,
        coreh=column(jobs, "cores") * column(jobs, "duration_s") / HOUR_S,
        headroom_slope=line.slope / positive,
        headroom_offset=line.offset / positive - 1,
        killed_at_limit=parameter.killed_at_limit,
    )


def _least(wanted: FloatArray, line: Line, factor: float) -> IntArray:
    """Return the smallest whole estimate of which the request, times a factor, is enough.

    The solution in reals is off by rounding only: one step down and one up settle it.
    """

    def enough(x: FloatArray) -> Any:
        return line.asked(x) * factor >= wanted

    about = (wanted / factor - line.offset) / line.slope
    x = np.clip(np.ceil(np.nan_to_num(about, nan=0.0, posinf=NEVER)), 0, NEVER)
    x = np.where((x > 0) & enough(x - 1), x - 1, x)
    x = np.where(~enough(x), x + 1, x)
    return np.asarray(np.clip(x, 0, NEVER), dtype=np.int64)


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

    def outcomes(self, estimate: IntArray, tasks: slice) -> dict[str, FloatArray]:
        """Return what the estimates would have done, sums over the jobs of each task.

        Args:
            estimate: (n_tasks_in_slice, n_settings) whole numbers.
            tasks: Which tasks.

        Returns:
            Arrays of the shape of the estimates: ``n_exceed`` (jobs whose first attempt is killed), ``n_lost`` (killed in
            every attempt), ``used`` (by the jobs that finish in some attempt), ``over`` (reserved and not used by that
            attempt), ``waste`` (reserved by killed attempts; reserved in all is the sum of the three) [amount unit],
            ``killed_coreh`` (of killed attempts), ``headroom`` (first request / use - 1, of all jobs).
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
        return {
            "n_exceed": exceed[0],
            "n_lost": exceed[-1],
            "used": served[..., USED],
            "over": over,
            "waste": waste,
            "killed_coreh": killed,
            "headroom": x * slope[:, None] + offset[:, None],
        }

    def _done(self, rung: int, estimate: IntArray, numbers: IntArray) -> FloatArray:
        """Sum the amounts of the jobs that the attempt of a rung serves: those with need <= x."""
        key = (numbers[:, None] << KEY_BITS) + estimate
        at = np.searchsorted(self.keys[rung], key.ravel(), side="right").reshape(key.shape)
        sums = self.sums[rung]
        return np.asarray(sums[at] - sums[self.start[numbers]][:, None, :])


def _reserved(x: FloatArray, amounts: FloatArray) -> FloatArray:
    """Return the amount reserved for one attempt of the given jobs at the first factor."""
    return np.asarray(x * amounts[..., SLOPE] + amounts[..., OFFSET])
