"""What a task is told under a rank and a margin, what its jobs then ask for, and what queues offer: per scout parameter.

A request is a straight line in the estimate x. The chapters write it as, before it is cut to whole numbers:

* ramcount: ``(x * C + base) * compensation`` MB, or ``x * compensation`` if the task's unit is not per core;
* cputime: ``x / 1000 * events / C / P / (eff / 100) + base`` seconds;
* outdiskcount: ``x * 1024 * events`` bytes (or per MB of input) and what a job may write besides.

Source: calibration.md 1; scouts.md sections 4, 5 and 15, job_max_walltime and disk_sizes_bytes; production-jobs.md, checks on
memory, walltime and scratch disk.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from brokerlab.numerics import FloatArray, IntArray, SortedGroups, interpolated
from brokerlab.scouts.parameters import whole_cputime, whole_outdisk_kb, whole_ram_mb
from brokerlab.scouts.rules import ScoutRules
from brokerlab.slots import memory_per_core, positive
from brokerlab.units import GB, HOUR_S, KB, MB

if TYPE_CHECKING:
    from brokerlab.calibrate.percentiles.parameters import Assumptions

DEFAULT_POWER = 10.0
"""Core power of a queue that says none [HS06]."""

# ---- what tasks are told: (n_tasks, n_margins) whole numbers of one rank; NaN without scouts


def ramcount_mb(
    scouts: SortedGroups, rank: int, margins: IntArray, least: FloatArray, rules: ScoutRules
) -> FloatArray:
    """Return RAM in whole MB; ``ram_min_per_job`` says whether margin and minimum act per job (docs/rules/scouts.md 5.2)."""
    if not rules.ram_min_per_job:
        return whole_ram_mb(scouts.percentile(rank)[:, None], margins, least)
    lower, upper, k = (each[:, None] for each in scouts.order_statistics(rank))
    low, high = (np.maximum(kb / KB * (1 + margins / 100), least) for kb in (lower, upper))
    whole = np.trunc(interpolated(low, high, k))
    return np.where(whole < 0, 1.0, whole)


def cputime_milli(
    scouts: SortedGroups, rank: int, margins: IntArray, _least: FloatArray, _rules: ScoutRules
) -> FloatArray:
    """Return mHS06 s per event."""
    return whole_cputime(scouts.percentile(rank)[:, None] * ((100 + margins) / 100))


def outdisk_kb(
    scouts: SortedGroups, rank: int, margins: IntArray, _least: FloatArray, rules: ScoutRules
) -> FloatArray:
    """Return kB per event or per MB of input; there is no margin."""
    whole = whole_outdisk_kb(scouts.percentile(rank)[:, None], rules)
    return np.broadcast_to(whole, (whole.size, margins.size))


# ---- what jobs ask for


@dataclass(frozen=True, kw_only=True)
class Line:
    """The requests of some jobs in the unit of their limit: MB of memory, s of walltime, bytes of output.

    Attributes:
        asked: (n_jobs,) estimates to requests, as the chapter writes it.
        slope: (n_jobs,) request per unit of the estimate.
        offset: (n_jobs,) request besides.
        used: (n_jobs,) what the job used.
        amount: (n_jobs,) amount reserved per unit of the request [amount unit].
        demand: (n_jobs,) what is asked of a queue per unit of the estimate: MB per core, HS06 s per core, MB.
        demand_besides: (n_jobs,) what is asked of a queue besides.
        base_s: (n_jobs,) time that the queue must give besides [s].
    """

    asked: Callable[[FloatArray], FloatArray]
    slope: FloatArray
    offset: FloatArray
    used: FloatArray
    amount: FloatArray
    demand: FloatArray
    demand_besides: FloatArray
    base_s: FloatArray

    @property
    def used_at_least(self) -> FloatArray:
        """What the job used, a run of 0 s as one of 1 s."""
        return np.where(self.used > 0, self.used, 1.0)


def memory(jobs: pl.DataFrame, made: Assumptions) -> Line:
    """Return the requests of memory, for the whole job."""
    cores, part = column(jobs, "cores"), made.compensation
    per_core = jobs["ram_per_core"].fill_null(value=False).to_numpy()
    times = np.where(per_core, cores, 1.0)
    base = np.where(per_core, column(jobs, "baseramcount", default=0.0), 0.0)
    return Line(
        asked=partial(_memory, times=times, base=base, part=part),
        slope=times * part,
        offset=base * part,
        used=column(jobs, "maxpss_kb") / KB,
        amount=column(jobs, "duration_s") / HOUR_S / KB,
        demand=np.where(per_core, part, part / cores),
        demand_besides=base * part / cores,
        base_s=np.zeros_like(cores),
    )


def _memory(x: FloatArray, times: FloatArray, base: FloatArray, part: float) -> FloatArray:
    return (x * times + base) * part


def walltime(jobs: pl.DataFrame, made: Assumptions) -> Line:
    """Return the limits of walltime; a job of 0 events counts as a whole one."""
    cores, power = column(jobs, "cores"), column(jobs, "corepower")
    events = np.maximum(column(jobs, "n_events"), 1.0)
    share = column(jobs, "cpuefficiency", default=made.rules.default_cpu_efficiency) / 100
    base = column(jobs, "basewalltime", default=0.0)
    return Line(
        asked=partial(_walltime, factors=(events, cores, power, share), base=base),
        slope=events / cores / power / share / 1000,
        offset=base,
        used=column(jobs, "duration_s"),
        amount=cores / HOUR_S,
        demand=events / cores / share / 1000,
        demand_besides=np.zeros_like(cores),
        base_s=base,
    )


def _walltime(x: FloatArray, factors: tuple[FloatArray, ...], base: FloatArray) -> FloatArray:
    events, cores, power, share = factors
    return x / 1000 * events / cores / power / share + base


def disk(jobs: pl.DataFrame, made: Assumptions) -> Line:
    """Return the room for output."""
    events = np.maximum(column(jobs, "n_events", default=1.0), 1.0)
    per_event = jobs["outdisk_per_event"].fill_null(value=False).to_numpy()
    size = np.where(per_event, events, column(jobs, "input_mb", default=1.0))
    besides = np.full_like(size, made.disk_allowance_mb * MB)
    return Line(
        asked=partial(_disk, size=size, besides=besides),
        slope=KB * size,
        offset=besides,
        used=column(jobs, "outputfilebytes"),
        amount=np.full_like(size, 1 / GB),
        demand=KB * size / MB,
        demand_besides=np.zeros_like(size),
        base_s=np.zeros_like(size),
    )


def _disk(x: FloatArray, size: FloatArray, besides: FloatArray) -> FloatArray:
    return x * KB * size + besides


def column(jobs: pl.DataFrame, name: str, *, default: float | None = None) -> FloatArray:
    """Return a column of jobs as floats."""
    values = jobs[name].cast(pl.Float64)
    return (values if default is None else values.fill_null(default)).to_numpy()


# ---- what queues offer


def offered_memory(_base_s: float) -> pl.Expr:
    """Return the memory per core of a queue [MB]; null: no limit."""
    return memory_per_core()


def offered_time(base_s: float) -> pl.Expr:
    """Return what a core of a queue can do after the base time [HS06 s]; null: no limit."""
    return (positive("maxtime") - base_s) * pl.coalesce(positive("corepower"), DEFAULT_POWER)


def offered_disk(_base_s: float) -> pl.Expr:
    """Return the work directory of a queue [MB]; null: no limit."""
    return positive("maxwdir")
