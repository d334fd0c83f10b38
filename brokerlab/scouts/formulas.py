"""The scouts' formulas for one job or file, as the documents write them.

These are the readable reference. The engine-wide forms in the modules beside it do the same for whole
tables, and tests compare the two.

Source: docs/rules/scouts.md 3 and 8; what a whole task needs is in ``task_formulas``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from typing import Any

from brokerlab.scouts import split_rule
from brokerlab.units import MB

MIN_FILE_MB = 1.0  # effective size of a file without a size
CLONING_TOKEN = "sc"  # noqa: S105
"""Token of ``specialhandling`` that marks job cloning."""
DIRECT_INPUT_ONLY = -1  # ``maxinputsize`` of a queue that never copies its input

_CORE_COUNT = re.compile(r"coreCount=([0-9]+)")
_SLOT = re.compile(r"@(.+)")
_CERN_SLOT = re.compile(r"atlprd[0-9]+-[A-Za-z0-9_]+-(.+\.cern\.ch)")


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
    direct_access_lan: bool | None,  # noqa: FBT001  (a column of the queues)
    *,
    is_merging: bool = False,
) -> bool:
    """Return whether a job at a queue reads its input directly, without a copy to scratch."""
    if is_merging:
        return False
    if maxinputsize == DIRECT_INPUT_ONLY:
        return True
    rule = split_rule.parse(splitrule)
    return not rule.uselocalio and rule.allowinputlan is not None and bool(direct_access_lan)


def is_job_cloning(specialhandling: str | None) -> bool:
    """Return whether the cloning token ``sc``, alone or as ``sc:...``, is in the comma-separated list.

    Source: docs/rules/scouts.md 2.7.
    """
    tokens = (specialhandling or "").split(",")
    return any(token.split(":", 1)[0] == CLONING_TOKEN for token in tokens)


def clean_host_name(modificationhost: str) -> str:
    """Return the name of the node from the name that a job reports.

    Everything up to the first ``@`` goes (unless nothing would be left), and
    ``atlprd<digits>-<word>-<rest>.cern.ch`` becomes ``<rest>.cern.ch``.

    Source: docs/rules/scouts.md 3.2.
    """
    slot = _SLOT.search(modificationhost)
    host = slot[1] if slot else modificationhost
    cern = _CERN_SLOT.fullmatch(host)
    return cern[1] if cern else host


def host_benchmarks(
    site: str | None,
    modificationhost: str | None,
    worker_nodes: Iterable[Mapping[str, Any]],
    cpu_benchmarks: Iterable[Mapping[str, Any]],
) -> list[tuple[str | None, float]]:
    """Return the benchmarks measured on processors like that of a job's host (docs/rules/scouts.md 3.2)."""
    if site is None or modificationhost is None:
        return []
    host = clean_host_name(modificationhost)
    nodes = [
        (row.get("cpu_model_normalized"), row.get("threads_per_core"), row.get("n_logical_cpus"))
        for row in worker_nodes
        if row.get("site") == site and row.get("host_name") == host
    ]
    pairs = []
    for row in cpu_benchmarks:
        smt = row.get("smt_enabled")
        processor = (
            row.get("cpu_type_normalized"),
            None if smt is None else smt + 1,
            row.get("ncores"),
        )
        known = None not in processor and row.get("score_per_core") is not None
        if known:
            pairs += [(row.get("site"), row["score_per_core"])] * nodes.count(processor)
    return pairs


def benchmark_corepower(site: str, benchmarks: Iterable[tuple[str | None, float]]) -> float | None:
    """Choose the core power among the benchmarks of :func:`host_benchmarks` (docs/rules/scouts.md 3.2)."""
    pairs = list(benchmarks)
    node = site.lower()
    for name, score in pairs:
        if name is not None and (name.lower() in node or node in name.lower()):
            return score
    return sum(score for _, score in pairs) / len(pairs) if pairs else None
