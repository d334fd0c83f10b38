"""What deployed systems give a job in memory."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import polars as pl

from brokerlab.estimators.deployed.seen import Seen
from brokerlab.estimators.replaying import codes
from brokerlab.numerics import FloatArray, IntArray
from brokerlab.scouts.parameters import whole_ram_mb
from brokerlab.scouts.quantities import floats
from brokerlab.units import KB


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
        found = np.where(several, per_core * cores, whole) * self.factor
        return np.maximum(found, self.minimum_mb)


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
