"""What deployed systems give a job in memory and in wall time."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import polars as pl

from brokerlab.compiled import compiled_in_place
from brokerlab.estimators.deployed.seen import Seen
from brokerlab.estimators.replaying import codes
from brokerlab.numerics import FloatArray, IntArray
from brokerlab.scouts.parameters import CPUTIME_SAFETY, whole_cputime, whole_ram_mb
from brokerlab.scouts.quantities import DEFAULT_COREPOWER, LONG_JOB_S, floats
from brokerlab.units import KB


@dataclass(frozen=True)
class ScoutWalltime:
    """PanDA's cpuTime, HS06 seconds per event, as a limit on the wall time of a job.

    A finished job says ``h = (wall - base) x corepower x cores x efficiency / events``, 0 if it was not
    longer than the base; only if it had 10 events per core or ran 6 h, else it is one of those seen and says nothing. The percentile with its safety
    is rounded up, and a job gets ``int(h x events / (cores x corepower x efficiency) + base)``. A
    job of unknown events gets the percentile of the task's wall times, with the same safety: a log of a
    batch system knows no events. Jobs killed at a limit say nothing; an unknown core power is 10.

    Source: scouts.md, sections 3, 5.1 (production: S04) and 15; calibration.md 1.
    """

    seen: Seen  # which finished jobs, which rank
    safety: float = CPUTIME_SAFETY  # factor on the percentile
    base_s: float = 600.0  # wall time that does not grow with the events [s]
    efficiency_pct: float = 90.0  # CPU efficiency of one core [%], above 0

    def __call__(self, records: pl.DataFrame, events: IntArray) -> FloatArray:
        """Return the limit [s]; NaN where too few jobs have finished."""
        task, _ = codes(records, "jeditaskid")
        wall_s = np.where(records["censored"].to_numpy(), np.nan, floats(records, "used"))
        n_events, cores = floats(records, "events"), floats(records, "cores")
        n_events = np.where(n_events > 0, n_events, np.nan)
        power = floats(records.with_columns(pl.col("corepower").fill_null(0)), "corepower")
        power = np.where(power > 0, power, DEFAULT_COREPOWER)
        beyond = np.maximum(np.floor(wall_s) - self.base_s, 0.0)  # 3.1: fractions are dropped
        work = beyond * power * cores * self.efficiency_pct / 100
        eligible = (n_events >= 10 * cores) | (wall_s > LONG_JOB_S)
        per_event = np.where(eligible, work / n_events, np.nan)
        # jobs of few events are seen: they are of the first ones, and no later job takes their place
        per_event = np.where(self.seen.first(events, task, ~np.isnan(wall_s)), per_event, np.nan)
        result = replace(self.seen, least=1).percentile(events, task, per_event) * self.safety
        scale = cores * power * self.efficiency_pct / 100
        limit = np.trunc(whole_cputime(result) / 1000 * n_events / scale + self.base_s)
        plain = self.seen.percentile(events, task, wall_s) * self.safety
        return np.where(np.isnan(n_events) | np.isnan(plain), plain, limit)


@dataclass(frozen=True)
class PercentileWalltime:
    """A percentile of the wall times seen, of the task or of the user, at most the request.

    A job that was killed counts with the time it ran.

    Source: sizing.md, sections 7 and 8; Tsafrir, Etsion, Feitelson, IEEE TPDS 18 (2007) 789,
    doi:10.1109/TPDS.2007.70606.
    """

    seen: Seen  # which finished jobs, which rank
    of_request: bool = False  # take shares of the request instead, and multiply by the request

    def __call__(self, records: pl.DataFrame, events: IntArray) -> FloatArray:
        """Return the wall time [s]; NaN where too few jobs have finished."""
        task, _ = codes(records, "jeditaskid")
        used, requested = floats(records, "used"), floats(records, "requested")
        unit = np.where(requested > 0, requested, np.nan) if self.of_request else 1.0
        result = self.seen.percentile(events, task, used / unit) * unit
        return np.where(requested < result, requested, result)


@dataclass(frozen=True)
class MeanWalltime:
    """The mean of the wall times seen, of the task or of the user, at most the request."""

    def __call__(self, records: pl.DataFrame, events: IntArray) -> FloatArray:
        """Return the wall time [s]; NaN where no job has finished."""
        task, n_tasks = codes(records, "jeditaskid")
        used, requested = floats(records, "used"), floats(records, "requested")
        result = np.full(used.size, np.nan)
        _walk_mean(events, task, used, np.zeros(n_tasks), np.zeros(n_tasks, np.int64), result)
        return np.where(requested < result, requested, result)


@compiled_in_place
def _walk_mean(
    events: IntArray,
    task: IntArray,
    used: FloatArray,
    total: FloatArray,
    count: IntArray,
    means: FloatArray,
) -> None:
    for event in events:
        if event >= 0:
            total[task[event]] += used[event]
            count[task[event]] += 1
        elif count[task[~event]]:
            means[~event] = total[task[~event]] / count[task[~event]]


@dataclass(frozen=True)
class ScoutMemory:
    """PanDA's ramCount as an estimate of the whole job.

    Percentile of the finished jobs of the task, with margin, cut to whole MB. Where the job and those
    that were seen differ in cores: per core, after subtracting a base; the job then gets
    ``ramCount x cores + base``. Jobs killed at a limit say nothing, as in production.

    Source: scouts.md, section 5.2 (production); sizing.md, sections 6 and 7.
    """

    seen: Seen  # which finished jobs, which rank
    margin_pct: float = 10  # margin [%]
    minimum_mb: float | None = None  # SCOUT_RAMCOUNT_MIN [MB]; None: no minimum
    base_mb: float = 0.0  # memory that does not grow with the cores [MB]; above 0: always per core
    per_core: bool = False  # always per core, as in a task whose unit is MBPerCore

    def __call__(self, records: pl.DataFrame, events: IntArray) -> FloatArray:
        """Return the memory [MB]; NaN where too few jobs have finished."""
        task, _ = codes(records, "jeditaskid")
        cores = floats(records, "cores")
        used_kb = _finished(records) * KB
        per_core_kb = np.ceil((used_kb - self.base_mb * KB) / cores)
        per_core = self._megabytes(self.seen.percentile(events, task, per_core_kb))
        if self.per_core or self.base_mb > 0:
            return per_core * cores + self.base_mb
        whole = self._megabytes(self.seen.percentile(events, task, used_kb))
        several = several_cores(events, task, cores, used_kb, self.seen)
        return np.where(several, per_core * cores, whole)

    def _megabytes(self, kilobytes: FloatArray) -> FloatArray:
        minimum = -np.inf if self.minimum_mb is None else self.minimum_mb
        return whole_ram_mb(kilobytes, self.margin_pct, minimum)


@dataclass(frozen=True)
class PercentileMemory:
    """A percentile of what was seen, times a factor; per core where cores differ.

    A job that was killed counts with what it had used by then.

    Source: sizing.md, sections 4 and 6.
    """

    seen: Seen  # which finished jobs, which rank
    factor: float = 1.0  # margin as a factor
    minimum_mb: float = 0.0  # least answer [MB]

    def __call__(self, records: pl.DataFrame, events: IntArray) -> FloatArray:
        """Return the memory [MB]; NaN where too few jobs have finished."""
        task, _ = codes(records, "jeditaskid")
        cores, used = floats(records, "cores"), floats(records, "used")
        whole = self.seen.percentile(events, task, used)
        per_core = self.seen.percentile(events, task, used / cores)
        several = several_cores(events, task, cores, used, self.seen)
        result = np.where(several, per_core * cores, whole) * self.factor
        return np.maximum(result, self.minimum_mb)


def several_cores(
    events: IntArray, task: IntArray, cores: FloatArray, values: FloatArray, seen: Seen
) -> np.ndarray:
    """Tell where a job and the jobs that its estimate is made of do not all have as many cores."""
    counted = np.where(np.isnan(values), np.nan, cores)
    largest = replace(seen, rank=100)
    most = largest.percentile(events, task, counted)
    fewest = -largest.percentile(events, task, -counted)
    return np.asarray((fewest != cores) | (most != cores))


def _finished(records: pl.DataFrame) -> FloatArray:
    """Return what was used by jobs that were not killed at a limit; NaN for the others."""
    return np.where(records["censored"].to_numpy(), np.nan, floats(records, "used"))
