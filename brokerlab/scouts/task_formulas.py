"""Formulas for a whole task: disk needs and limits of its jobs, and how much of it failed.

Source: docs/rules/scouts.md 15.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from brokerlab.units import GB, HOUR_S, KB, MB

WORKDISK_MARGIN_BYTES = 300 * MB  # added to every work directory
CPUTIME_UNITS = ("HS06sPerEvent", "mHS06sPerEvent", "HS06sPerEventFixed", "mHS06sPerEventFixed")
"""Units of ``cputime`` that scale with HS06."""
FAILURE_LABELS = ("managed", "user")  # labels of the jobs whose failures count

_UNIT_BYTES = {"GB": GB, "MB": MB, "kB": KB}


@dataclass(frozen=True)
class DiskSizes:
    """What a job needs on disk."""

    workdisk: int  # work directory with its margin [bytes]
    outdisk: int  # output [bytes], per event if ``scales_with_events``, else per MB of input
    scales_with_events: bool  # the unit contains ``PerEvent``


def disk_sizes_bytes(
    workdiskcount: int | None,
    workdiskunit: str | None,
    outdiskcount: int | None,
    outdiskunit: str | None,
) -> DiskSizes:
    """Return the disk needs of a task's jobs in bytes."""
    unit = outdiskunit or ""
    work = 0
    if workdiskcount is not None:
        work = workdiskcount * _UNIT_BYTES.get(workdiskunit or "", 1) + WORKDISK_MARGIN_BYTES
    out = max(outdiskcount or 0, 0) * _UNIT_BYTES.get(unit[:2], 1)
    return DiskSizes(work, out, "PerEvent" in unit)


@dataclass(frozen=True)
class WalltimeLimit:
    """Limits given to one job."""

    maxwalltime: int  # wall time [s]
    maxcpucount: int  # CPU time [s]; the same number


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
    """Return the limit on the wall time of a job from the task's cputime."""
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
    """How much of a task failed; null = not known."""

    num_failed: int | None  # failed jobs
    single_failure_rate: float | None  # failed / (finished + failed) jobs, to three digits
    failed_hep_score_hour: int | None  # work of the failed jobs [HEP-score hours], truncated
    failed_hep_score_ratio: float | None  # the same ratio of work, to three digits


def task_failure_metrics(jeditaskid: int, jobs: Iterable[Mapping[str, Any]]) -> FailureMetrics:
    """Return the failure metrics of a task.

    The metrics. No job: all null. A ratio without denominator: null. ``hs06sec`` null for all jobs of any
    status: both HEP-score values null; single nulls count as 0.
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
