"""What each job needed, turned round: the smallest estimate under which it would not have been killed.

A request is a rounded straight line in the task's estimate x. Solving it for x once per job makes every
setting a comparison of whole numbers: the job is killed where its need is above x. In the ledger jobs are sorted once
by task and need and their amounts summed up along the way; an estimate then splits a task's jobs in two, and every
quantity is a difference of two running sums.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import polars as pl

from brokerlab.calibrate.percentiles.parameters import Assumptions
from brokerlab.errors import ConfigError
from brokerlab.numerics import FloatArray, IntArray
from brokerlab.units import GB, HOUR_S, KB, MB

KEY_BITS = 40
NEVER = (
    2**KEY_BITS - 1
)  # above every estimate; leaves 23 bits for the number of a task in one int64 key
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


def scorable(parameter: str) -> pl.Expr:
    """Tell which jobs can be scored: everything their request and use are made of is known."""
    common = pl.col("duration_s").is_not_null() & (pl.col("cores") > 0)
    if parameter == "ramcount":
        return common & (pl.col("maxpss_kb") > 0)
    if parameter == "cputime":
        return common & pl.col("n_events").is_not_null() & (pl.col("corepower") > 0)
    size = pl.when("outdisk_per_event").then("n_events").otherwise("input_mb")
    return common & size.is_not_null() & (pl.col("outputfilebytes") > 0)


def needs_of(
    jobs: pl.DataFrame,
    parameter: str,
    made: Assumptions,
) -> Needs:
    """Solve the request of every job for the estimate.

    Requests (all evaluated as written, then truncated to whole numbers):

    * ramcount: ``int((x * C + base) * compensation)`` MB, or ``int(x * compensation)`` if the task's unit
      is not per core, against ``maxpss`` of the whole job;
    * cputime: ``int(x / 1000 * events / C / P / (eff / 100) + base)`` seconds against the duration;
    * outdiskcount: ``x * 1024 * events`` bytes (or per MB of input) and the allowance, against the output.

    A retry gets the stated multiple of the first request. Amounts reserved are taken before truncation,
    at most 1 MB or 1 s per job above.

    Args:
        jobs: Scored jobs: quantities with ``task`` (number of the task), ``baseramcount`` [MB],
            ``basewalltime`` [s], ``cpuefficiency`` [%], ``censored`` (use is a lower bound).
        parameter: Which.
        made: ``retry_factors`` (multiples of the retries, rising), ``compensation`` (factor on memory requests),
            ``disk_allowance_mb`` (what a job may write beyond its expected output [MB]), and of its rules the efficiency for
            a null ``cpuefficiency``.

    Source: calibration.md 1; scouts.md section 15, job_max_walltime and disk_sizes_bytes.
    """
    factors = (1.0, *made.retry_factors)
    if any(b <= a for a, b in pairwise(factors)):
        raise ConfigError(f"retry_factors={made.retry_factors}: allowed are rising factors above 1")
    if parameter == "ramcount":
        return _memory(jobs, factors, made.compensation)
    if parameter == "cputime":
        return _walltime(jobs, factors, made.rules.default_cpu_efficiency)
    return _disk(jobs, factors, made.disk_allowance_mb * MB)


def _memory(jobs: pl.DataFrame, factors: tuple[float, ...], compensation: float) -> Needs:
    kb, seconds = _array(jobs, "maxpss_kb"), _array(jobs, "duration_s")
    per_core = jobs["ram_per_core"].fill_null(value=False).to_numpy()
    cores = _array(jobs, "cores")
    times = np.where(per_core, cores, 1.0)
    base = np.where(per_core, _array(jobs, "baseramcount", default=0.0), 0.0)
    wanted_mb = np.ceil(
        kb / KB
    )  # int(request) >= kb/1024 exactly when request >= the next whole MB

    def request(x: FloatArray, factor: float) -> FloatArray:
        return np.asarray((x * times + base) * compensation * factor)

    need = np.stack(
        [
            _least(wanted_mb, request, f, about=(wanted_mb / (compensation * f) - base) / times)
            for f in factors
        ]
    )
    hours = seconds / HOUR_S / KB  # MB to GB
    mb = kb / KB
    return _assemble(
        jobs,
        need,
        factors,
        slope=times * compensation * hours,
        offset=base * compensation * hours,
        used=mb * hours,
        coreh=cores * seconds / HOUR_S,
        headroom=(times * compensation / mb, base * compensation / mb - 1),
        killed_at_limit=False,
    )


def _walltime(jobs: pl.DataFrame, factors: tuple[float, ...], default_pct: float) -> Needs:
    seconds = _array(jobs, "duration_s")
    cores, power = _array(jobs, "cores"), _array(jobs, "corepower")
    events = np.maximum(_array(jobs, "n_events"), 1.0)  # a job of 0 events counts as a whole
    share = _array(jobs, "cpuefficiency", default=default_pct) / 100
    base = _array(jobs, "basewalltime", default=0.0)
    per_unit = events / cores / power / share / 1000

    def limit(x: FloatArray, factor: float) -> FloatArray:
        return np.asarray((x / 1000 * events / cores / power / share + base) * factor)

    need = np.stack(
        [_least(seconds, limit, f, about=(seconds / f - base) / per_unit) for f in factors]
    )
    coreh = cores * seconds / HOUR_S
    positive = np.maximum(seconds, 1.0)
    return _assemble(
        jobs,
        need,
        factors,
        slope=per_unit * cores / HOUR_S,
        offset=base * cores / HOUR_S,
        used=coreh,
        coreh=coreh,
        headroom=(per_unit / positive, base / positive - 1),
        killed_at_limit=True,
    )


def _disk(jobs: pl.DataFrame, factors: tuple[float, ...], allowance: float) -> Needs:
    out = _array(jobs, "outputfilebytes")
    per_event = jobs["outdisk_per_event"].fill_null(value=False).to_numpy()
    events = np.maximum(_array(jobs, "n_events", default=1.0), 1.0)
    size = np.where(per_event, events, _array(jobs, "input_mb", default=1.0))

    def room(x: FloatArray, factor: float) -> FloatArray:
        return np.asarray((x * KB * size + allowance) * factor)

    need = np.stack(
        [_least(out, room, f, about=(out / f - allowance) / (KB * size)) for f in factors]
    )
    return _assemble(
        jobs,
        need,
        factors,
        slope=KB * size / GB,
        offset=np.full_like(size, allowance / GB),
        used=out / GB,
        coreh=_array(jobs, "cores") * _array(jobs, "duration_s") / HOUR_S,
        headroom=(KB * size / out, allowance / out - 1),
        killed_at_limit=False,
    )


def _least(
    wanted: FloatArray,
    given: Callable[[FloatArray, float], FloatArray],
    factor: float,
    *,
    about: FloatArray,
) -> IntArray:
    """Return the smallest whole x >= 0 with ``given(x, factor) >= wanted``.

    ``about`` is the solution in reals, off by rounding only: one step down and one up settle it.
    """
    x = np.clip(np.ceil(np.nan_to_num(about, nan=0.0, posinf=NEVER)), 0, NEVER)
    x = np.where((x > 0) & (given(x - 1, factor) >= wanted), x - 1, x)
    x = np.where(given(x, factor) < wanted, x + 1, x)
    return np.asarray(np.clip(x, 0, NEVER), dtype=np.int64)


def _assemble(
    jobs: pl.DataFrame,
    need: IntArray,
    factors: tuple[float, ...],
    *,
    slope: FloatArray,
    offset: FloatArray,
    used: FloatArray,
    coreh: FloatArray,
    headroom: tuple[FloatArray, FloatArray],
    killed_at_limit: bool,
) -> Needs:
    """Put the arrays together; a job killed before it was done needed more than was seen."""
    censored = jobs["censored"].to_numpy()
    return Needs(
        task=jobs["task"].to_numpy().astype(np.int64),
        need=np.minimum(need + censored[None, :], NEVER),
        factors=factors,
        slope=slope,
        offset=offset,
        used=used,
        coreh=coreh,
        headroom_slope=headroom[0],
        headroom_offset=headroom[1],
        killed_at_limit=killed_at_limit,
    )


def _array(jobs: pl.DataFrame, name: str, *, default: float | None = None) -> FloatArray:
    column = jobs[name].cast(pl.Float64)
    return (column if default is None else column.fill_null(default)).to_numpy()


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
