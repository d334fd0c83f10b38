"""Formulas for a whole task: disk needs and limits of its jobs, and how much of it failed.

Source: docs/rules/scouts.md 15.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from brokerlab.units import GB, HOUR_S, KB, MB

WORKDISK_MARGIN_BYTES = 300 * MB
"""Added to every work directory."""
CPUTIME_UNITS = ("HS06sPerEvent", "mHS06sPerEvent", "HS06sPerEventFixed", "mHS06sPerEventFixed")
"""Units of ``cputime`` that scale with HS06."""
FAILURE_LABELS = ("managed", "user")
"""Labels of the jobs whose failures count."""

_UNIT_BYTES = {"GB": GB, "MB": MB, "kB": KB}


@dataclass(frozen=True)
class DiskSizes:
    """What a job needs on disk.

    Attributes:
        workdisk: Work directory with its margin [bytes].
        outdisk: Output [bytes], per event if ``scales_with_events``, else per MB of input.
        scales_with_events: The unit contains ``PerEvent``.
    """

    workdisk: int
    outdisk: int
    scales_with_events: bool


def disk_sizes_bytes(
    workdiskcount: int | None,
    workdiskunit: str | None,
    outdiskcount: int | None,
    outdiskunit: str | None,
) -> DiskSizes:
    """Return the disk needs of a task's jobs in bytes.

    Args:
        workdiskcount: Work directory [``workdiskunit``]; null = no need, not even the margin.
        workdiskunit: Exactly ``GB``, ``MB`` or ``kB``; anything else, also null, is bytes.
        outdiskcount: Output [``outdiskunit``]; null and negative count as 0.
        outdiskunit: Starts with ``GB``, ``MB`` or ``kB``; anything else, also null, is bytes.

    Returns:
        The two sizes.

    Source: docs/rules/scouts.md 15.

    Example:
        >>> disk_sizes_bytes(500, "kB", 3, "MBPerEvent")
        DiskSizes(workdisk=315084800, outdisk=3145728, scales_with_events=True)
    """
    unit = outdiskunit or ""
    work = 0
    if workdiskcount is not None:
        work = workdiskcount * _UNIT_BYTES.get(workdiskunit or "", 1) + WORKDISK_MARGIN_BYTES
    out = max(outdiskcount or 0, 0) * _UNIT_BYTES.get(unit[:2], 1)
    return DiskSizes(work, out, "PerEvent" in unit)


@dataclass(frozen=True)
class WalltimeLimit:
    """Limits given to one job.

    Attributes:
        maxwalltime: Wall time [s].
        maxcpucount: CPU time [s]; the same number.
    """

    maxwalltime: int
    maxcpucount: int


def job_max_walltime(
    *,
    cputime: float | None,
    cputimeunit: str | None,
    cpuefficiency: float | None,
    basewalltime: float | None,
    nevents: int,
    corecount: int | None,
    corepower: float | None,
    maxtime: int,
) -> WalltimeLimit:
    """Return the limit on the wall time of a job from the task's cputime.

    Args:
        cputime: Work per event [``cputimeunit``]; null = the queue's limit.
        cputimeunit: One of the four HS06 units, else the queue's limit.
        cpuefficiency: Efficiency of one core [%]; null and 0 are left out.
        basewalltime: Time that does not scale with events [s]; null counts as 0.
        nevents: Events of the job.
        corecount: Cores of the queue; null and 0 are left out.
        corepower: Core power of the queue [HS06 per core]; null and 0 are left out.
        maxtime: Limit of the queue [s].

    Returns:
        Both limits [s], truncated.

    Source: docs/rules/scouts.md 15.

    Example:
        >>> job_max_walltime(cputime=45000, cputimeunit="HS06sPerEvent", cpuefficiency=100,
        ...     basewalltime=600, nevents=1, corecount=1, corepower=13.77, maxtime=0)
        WalltimeLimit(maxwalltime=3867, maxcpucount=3867)
    """
    if cputime is None or cputimeunit not in CPUTIME_UNITS:
        return WalltimeLimit(maxtime, maxtime)
    wall_s = cputime / 1000 if cputimeunit.startswith("m") else float(cputime)
    if wall_s > 0:
        wall_s *= nevents
        if corecount is not None and corecount > 0:
            wall_s /= corecount
        if corepower:
            wall_s /= corepower
        if cpuefficiency:
            wall_s /= cpuefficiency / 100
    limit = int(wall_s + (basewalltime or 0))
    return WalltimeLimit(limit, limit)


@dataclass(frozen=True)
class FailureMetrics:
    """How much of a task failed; null = not known.

    Attributes:
        num_failed: Failed jobs.
        single_failure_rate: Failed / (finished + failed) jobs, to three digits.
        failed_hep_score_hour: Work of the failed jobs [HEP-score hours], truncated.
        failed_hep_score_ratio: The same ratio of work, to three digits.
    """

    num_failed: int | None
    single_failure_rate: float | None
    failed_hep_score_hour: int | None
    failed_hep_score_ratio: float | None


def task_failure_metrics(jeditaskid: int, jobs: Iterable[Mapping[str, Any]]) -> FailureMetrics:
    """Return the failure metrics of a task.

    Args:
        jeditaskid: The task.
        jobs: Rows with ``jeditaskid, jobstatus, prodsourcelabel, hs06sec``, an absent key is null; jobs of
            other tasks and of other labels than managed and user are left out.

    Returns:
        The metrics. No job: all null. A ratio without denominator: null. ``hs06sec`` null for all jobs of any
        status: both HEP-score values null; single nulls count as 0.

    Source: docs/rules/scouts.md 15.

    Example:
        >>> row = {"jeditaskid": 1, "prodsourcelabel": "user"}
        >>> task_failure_metrics(1, [row | {"jobstatus": "failed", "hs06sec": 7200},
        ...     row | {"jobstatus": "finished", "hs06sec": 14400}, row | {"jobstatus": "finished"}])
        FailureMetrics(num_failed=1, single_failure_rate=0.333, failed_hep_score_hour=2, failed_hep_score_ratio=0.333)
    """
    counted = [
        job
        for job in jobs
        if job.get("jeditaskid") == jeditaskid and job.get("prodsourcelabel") in FAILURE_LABELS
    ]
    if not counted:
        return FailureMetrics(None, None, None, None)
    failed = [job for job in counted if job["jobstatus"] == "failed"]
    done = failed + [job for job in counted if job["jobstatus"] == "finished"]
    rate = round(len(failed) / len(done), 3) if done else None
    if all(job.get("hs06sec") is None for job in counted):
        return FailureMetrics(len(failed), rate, None, None)
    failed_work = sum(job.get("hs06sec") or 0 for job in failed)
    done_work = sum(job.get("hs06sec") or 0 for job in done)
    ratio = round(failed_work / done_work, 3) if done_work else None
    return FailureMetrics(len(failed), rate, int(failed_work / HOUR_S), ratio)
