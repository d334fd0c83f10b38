"""The scouts' formulas for one job, file or task in plain Python, as the documents write them: the twin of the engine's.

Source: docs/rules/scouts.md 1, 3 and 15.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from typing import Any

from brokerlab.scouts.checks import CPUTIME_UNITS
from brokerlab.scouts.retry import FAILURE_LABELS
from brokerlab.scouts.settings import tag_value
from brokerlab.units import GB, HOUR_S, KB, MB

MIN_FILE_MB = 1.0  # effective size of a file without a size
CLONING_TOKEN = "sc"  # noqa: S105 - of ``specialhandling``
DIRECT_INPUT_ONLY = -1  # ``maxinputsize`` of a queue that never copies its input
ALLOW_INPUT_LAN = {1: "use", 2: "only"}  # meaning of the numbers of ``IL``
WORKDISK_MARGIN_BYTES = 300 * MB  # added to every work directory

_CORE_COUNT = re.compile(r"coreCount=([0-9]+)")
_UNIT_BYTES = {"GB": GB, "MB": MB, "kB": KB}


def effective_file_size_mb(
    fsize: int | None, startevent: int | None, endevent: int | None, nevents: int | None
) -> float:
    """Return the size of the part of a file that a job reads.

    ``int(fsize * (endevent - startevent + 1) / nevents) / MB`` where the range is known, else ``fsize / MB``.

    Source: docs/rules/scouts.md 3.3.
    """
    if not fsize:
        return MIN_FILE_MB
    if startevent is None or endevent is None or not nevents:
        return fsize / MB
    size_bytes = int(fsize * (endevent - startevent + 1) / nevents)
    return size_bytes / MB if size_bytes else MIN_FILE_MB


def effective_num_events(startevent: int | None, endevent: int | None, nevents: int | None) -> int:
    """Return the number of events that a job reads from a file (docs/rules/scouts.md 3.3)."""
    if startevent is not None and endevent is not None:
        return max(endevent - startevent + 1, 1)
    return 1 if nevents is None else nevents


def core_count(actualcorecount: int | None, corecount: int | None, jobmetrics: str | None) -> int:
    """Return the number of cores of a job (docs/rules/scouts.md 3.1)."""
    if actualcorecount is not None:
        return actualcorecount
    found = _CORE_COUNT.search(jobmetrics or "")
    if found:
        return int(found[1])
    return corecount or 1


def duration_s(starttime: datetime | None, endtime: datetime | None) -> int | None:
    """Return ``endtime - starttime`` in whole seconds, fractions dropped; null if either is null."""
    if starttime is None or endtime is None:
        return None
    return (endtime - starttime) // timedelta(seconds=1)


def hs06sec(
    starttime: datetime | None,
    endtime: datetime | None,
    corepower: float,
    cores: float,
    basewalltime: float | None,
    cpuefficiency: float,
) -> float | None:
    """Return the work of a job that scales with its events, in HS06 seconds.

    ``(T - baseTime) * P * C * cpuefficiency / 100``; 0 if ``cpuefficiency`` is 0 or ``T <= baseTime``.

    Source: docs/rules/scouts.md 3.4.
    """
    if cpuefficiency == 0:
        return 0.0
    wall_s = duration_s(starttime, endtime)
    if wall_s is None:
        return None
    base_s = basewalltime or 0
    if wall_s <= base_s:
        return 0.0
    return (wall_s - base_s) * corepower * cores * cpuefficiency / 100


def direct_io(
    splitrule: str | None,
    maxinputsize: int | None,
    direct_access_lan: bool | None,
    *,
    is_merging: bool = False,
) -> bool:
    """Return whether a job at a queue reads its input directly, without a copy to scratch."""
    if is_merging:
        return False
    if maxinputsize == DIRECT_INPUT_ONLY:
        return True
    rule = parse(splitrule)
    return not rule.uselocalio and rule.allowinputlan is not None and bool(direct_access_lan)


def is_job_cloning(specialhandling: str | None) -> bool:
    """Return whether the cloning token ``sc``, alone or as ``sc:...``, is in the comma-separated list.

    Source: docs/rules/scouts.md 2.7.
    """
    tokens = (specialhandling or "").split(",")
    return any(token.split(":", 1)[0] == CLONING_TOKEN for token in tokens)


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


@dataclass(frozen=True)
class SplitRule:
    """A task's split rule in words; null means that the tag is absent.

    Attributes:
        usescout: Scouts are to be used, exactly ``US=2`` (``US=3``, after the avalanche, does not count).
        ispostscout: ``US=3``.
        nfilesperjob: Files per job: ``NF``, times ``EI // DY`` if ``EI > DY > 0``.
        neventsperjob: Events per job.
        ngbperjob: Input per job [GB].
        nmaxfilesperjob: Most files per job.
        tgtmaxoutputforng: Target size of the largest output [GB].
        scoutsuccessrate: Required success rate of the scouts [tenths].
        mincpuefficiency: Least CPU efficiency [%].
        uselocalio: Copy to scratch is forced: ``LI`` present and not 0.
        allowinputlan: Input over the local network: ``use``, ``only`` or null.
        mergeoutput: Output is merged: ``MO`` present.
        useexhausted: The task may be exhausted: ``UX`` present.
        disableautofinish: The task is not finished by itself: ``DF`` present.
        t1weight: Weight of tier-1 queues, may be negative; 0 if absent.
        dynamicnumevents: Granularity of a dynamic number of events.
        neventsperinput: Events per input file.
    """

    usescout: bool
    ispostscout: bool
    nfilesperjob: int | None
    neventsperjob: int | None
    ngbperjob: int | None
    nmaxfilesperjob: int | None
    tgtmaxoutputforng: int | None
    scoutsuccessrate: int | None
    mincpuefficiency: int | None
    uselocalio: bool
    allowinputlan: str | None
    mergeoutput: bool
    useexhausted: bool
    disableautofinish: bool
    t1weight: int
    dynamicnumevents: int | None
    neventsperinput: int | None

    @property
    def maxsizeperjob(self) -> int | None:
        """Input per job [bytes], null if ``NG`` is absent."""
        return None if self.ngbperjob is None else self.ngbperjob * GB


def _files_per_job(files: int | None, dynamic: int | None, per_input: int | None) -> int | None:
    """Return files per job: with a dynamic number of events a file counts once for each of its parts."""
    if files is None or not dynamic or per_input is None or per_input <= dynamic:
        return files
    return files * (per_input // dynamic)


def parse(splitrule: str | None) -> SplitRule:
    """Read a split rule (docs/rules/scouts.md 1 and 15)."""
    value = partial(tag_value, splitrule)
    lan = value("IL")
    return SplitRule(
        usescout=value("US") == 2,
        ispostscout=value("US") == 3,
        nfilesperjob=_files_per_job(value("NF"), value("DY"), value("EI")),
        neventsperjob=value("NE"),
        ngbperjob=value("NG"),
        nmaxfilesperjob=value("MF"),
        tgtmaxoutputforng=value("TN"),
        scoutsuccessrate=value("SS"),
        mincpuefficiency=value("MC"),
        uselocalio=bool(value("LI")),
        allowinputlan=None if lan is None else ALLOW_INPUT_LAN.get(lan),
        mergeoutput=value("MO") is not None,
        useexhausted=value("UX") is not None,
        disableautofinish=value("DF") is not None,
        t1weight=value("TW") or 0,
        dynamicnumevents=value("DY"),
        neventsperinput=value("EI"),
    )
