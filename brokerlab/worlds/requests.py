"""What the scouts of a task make of it: the production rule, vectorised over tasks.

Written apart from ``brokerlab.scouts`` on purpose: a second, plain writing of the rule (scouts.md 5.1 to 5.7) lets the
generator's requests be checked against it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from brokerlab.numerics import BoolArray, FloatArray, IntArray, SortedGroups
from brokerlab.units import KB, MB
from brokerlab.worlds.settings import SynthSettings

CPUTIME_RANK = 95
"""Percentile rank of the rule of CPU time."""


@dataclass(frozen=True)
class ScoutJobs:
    """Finished scouts that were known when the task was decided, one entry per job."""

    task: IntArray
    cores: IntArray
    wall_s: IntArray  # whole seconds from start to end
    corepower: FloatArray  # HS06 per core of the queue
    events: IntArray  # events by the rule (files without information count 1 each)
    pseudo: BoolArray  # job read a pseudo input
    input_mb: FloatArray  # effective input by the rule [MB]
    output_bytes: IntArray
    maxpss_kb: IntArray  # peak memory, whole job [kB]
    cpu_s: IntArray
    diskio_kb: IntArray  # read and written on local storage [kB]
    workdir_bytes: IntArray


@dataclass(frozen=True)
class Requests:
    """Task parameters after scouting, one entry per task; -1 = not set."""

    ram_mb: IntArray  # ``ramcount`` [MB], per core where the task asks per core
    cputime: IntArray  # ``cputime`` [HS06 s per event], or where ``milli`` [mHS06 s per event]
    milli: BoolArray
    outdisk_kb: IntArray  # ``outdiskcount`` [kB per event]
    workdisk_mb: IntArray
    iointensity: IntArray  # [kB/s]
    diskio: IntArray  # [kB/s]
    walltime: IntArray  # [s per MB]

    def limit_hs06(self) -> FloatArray:
        """Return the CPU time per event in HS06 seconds; 0 = no scaling, -1 = not set."""
        return np.where(self.milli, self.cputime / 1000, self.cputime)


def scout_requests(
    scouts: ScoutJobs,
    settings: SynthSettings,
    *,
    base_ram_mb: IntArray,
    per_core: BoolArray,
    base_wall_s: IntArray,
) -> Requests:
    """Apply the production scout rule to every task at once.

    Source:
        scouts.md sections 5.1 to 5.7, production column.
    """
    n = len(base_ram_mb)
    t = scouts.task
    kb = np.where(
        per_core[t],
        np.ceil((scouts.maxpss_kb - base_ram_mb[t] * 1024) / scouts.cores),
        scouts.maxpss_kb,
    )
    q = SortedGroups.of(t, kb, n).percentile(settings.ram_rank)
    ram = np.floor_divide(q * (100 + settings.ram_margin_pct), 100) / 1024
    cputime, milli = _cputime(scouts, base_wall_s, n)
    big = scouts.events >= 10
    per_event = np.ceil(scouts.output_bytes / scouts.events)
    out = SortedGroups.of(t[big], per_event[big], n).percentile(75) / KB
    io = (scouts.input_mb * 1024 + scouts.output_bytes / KB) / scouts.wall_s / scouts.cores
    count = np.bincount(t, minlength=n)
    disk = np.bincount(t, scouts.diskio_kb / scouts.wall_s, minlength=n)
    cpu = _largest(t, scouts.cpu_s.astype(np.float64), n)
    size = _largest(t, scouts.input_mb, n)
    wall = np.ceil(np.where(cpu < 3600, 0, cpu) / np.maximum(size, 1e-9) * 1.5)
    return Requests(
        ram_mb=_whole(np.maximum(np.trunc(ram), 1), ~np.isnan(q)),
        cputime=cputime,
        milli=milli,
        outdisk_kb=_whole(np.minimum(out, 10240), ~np.isnan(out)),
        workdisk_mb=_whole(_largest(t, scouts.workdir_bytes / MB, n), count > 0),
        iointensity=_whole(np.ceil(_largest(t, io, n)), count > 0),
        diskio=_whole(np.floor_divide(disk, np.maximum(count, 1.0)), count > 0),
        walltime=_whole(np.minimum(wall, 999_999_999), count > 0),
    )


def _cputime(scouts: ScoutJobs, base_wall_s: IntArray, n: int) -> tuple[IntArray, BoolArray]:
    """Return cputime and whether its unit is milli HS06 seconds (scouts.md 5.1)."""
    t = scouts.task
    busy = np.maximum(scouts.wall_s - base_wall_s[t], 0)
    hs06 = busy * scouts.corepower * scouts.cores * 90 / 100
    eligible = (scouts.events >= 10 * scouts.cores) | scouts.pseudo | (scouts.wall_s > 6 * 3600)
    per_event = (hs06 / scouts.events)[eligible]
    q = SortedGroups.of(t[eligible], per_event, n).percentile(CPUTIME_RANK) * 1.5
    milli = q < 10
    return _whole(np.ceil(np.where(milli, q * 1000, q)), ~np.isnan(q)), milli


def _largest(group: IntArray, values: FloatArray, n: int) -> FloatArray:
    """Return the largest value of every group, 0 for empty groups."""
    result = np.zeros(n)
    np.maximum.at(result, group, values)
    return result


def _whole(values: FloatArray, known: BoolArray) -> IntArray:
    """Truncate to integers, -1 where not known."""
    return np.where(known, np.nan_to_num(values), -1).astype(np.int64)
