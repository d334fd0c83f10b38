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

MIN_FILE_MB = 1.0
"""Effective size of a file without a size."""
CLONING_TOKEN = "sc"  # noqa: S105
"""Token of ``specialhandling`` that marks job cloning."""
DIRECT_INPUT_ONLY = -1
"""``maxinputsize`` of a queue that never copies its input."""

_CORE_COUNT = re.compile(r"coreCount=([0-9]+)")
_SLOT = re.compile(r"@(.+)")
_CERN_SLOT = re.compile(r"atlprd[0-9]+-[A-Za-z0-9_]+-(.+\.cern\.ch)")


def effective_file_size_mb(
    fsize: int | None, startevent: int | None, endevent: int | None, nevents: int | None
) -> float:
    """Return the size of the part of a file that a job reads.

    ``int(fsize * (endevent - startevent + 1) / nevents) / MB`` where the range is known, else ``fsize / MB``.

    Args:
        fsize: Size of the file [bytes]; null and 0 count as 1 MB.
        startevent: First event of the range; null = the whole file.
        endevent: Last event of the range, inclusive; null = the whole file.
        nevents: Events in the file; null (and 0, on which production stops) = the whole file.

    Returns:
        Size [MB]; 1 if the integer number of bytes is 0. Negative if the range ends before it starts.

    Source: docs/rules/scouts.md 3.3.

    Example:
        >>> effective_file_size_mb(10 * 1024 * 1024, 0, 49, 100)
        5.0
        >>> effective_file_size_mb(None, None, None, None)
        1.0
    """
    if not fsize:
        return MIN_FILE_MB
    if startevent is None or endevent is None or not nevents:
        return fsize / MB
    size_bytes = int(fsize * (endevent - startevent + 1) / nevents)
    return size_bytes / MB if size_bytes else MIN_FILE_MB


def effective_num_events(startevent: int | None, endevent: int | None, nevents: int | None) -> int:
    """Return the number of events that a job reads from a file.

    Args:
        startevent: First event of the range; null = no range.
        endevent: Last event of the range, inclusive; null = no range.
        nevents: Events in the file; null = no information, 0 stays 0.

    Returns:
        Length of the range, at least 1; else the file's events; else 1.

    Source: docs/rules/scouts.md 3.3.

    Example:
        >>> effective_num_events(5, 9, 1000), effective_num_events(9, 5, 1000)
        (5, 1)
        >>> effective_num_events(None, None, 0), effective_num_events(None, None, None)
        (0, 1)
    """
    if startevent is not None and endevent is not None:
        return max(endevent - startevent + 1, 1)
    return 1 if nevents is None else nevents


def core_count(actualcorecount: int | None, corecount: int | None, jobmetrics: str | None) -> int:
    """Return the number of cores of a job.

    Args:
        actualcorecount: Cores really used; decides if not null, even as 0.
        corecount: Cores asked for; null and 0 count as unknown.
        jobmetrics: Text with ``coreCount=`` (case-sensitive, first match); null = none.

    Returns:
        Cores; 1 if nothing is known.

    Source: docs/rules/scouts.md 3.1.

    Example:
        >>> core_count(0, 8, "coreCount=4"), core_count(None, 8, "coreCount=4"), core_count(None, 8, None)
        (0, 4, 8)
    """
    if actualcorecount is not None:
        return actualcorecount
    found = _CORE_COUNT.search(jobmetrics or "")
    if found:
        return int(found[1])
    return corecount or 1


def duration_s(starttime: datetime | None, endtime: datetime | None) -> int | None:
    """Return ``endtime - starttime`` in whole seconds, fractions dropped; null if either is null.

    Example:
        >>> duration_s(datetime(2024, 3, 1), datetime(2024, 3, 1, 0, 1, 0, 999999))
        60
    """
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

    Args:
        starttime: Start on the node (UTC); null = unknown.
        endtime: End (UTC); null = unknown.
        corepower: Core power [HS06 per core].
        cores: Number of cores.
        basewalltime: Time that does not scale with events [s]; null counts as 0.
        cpuefficiency: Efficiency of one core [%].

    Returns:
        Work [HS06 s]; null if a time is unknown (unless the efficiency is 0).

    Source: docs/rules/scouts.md 3.4.

    Example:
        >>> begin = datetime(2024, 3, 1)
        >>> hs06sec(begin, begin + timedelta(seconds=7200), 10, 1, 600, 90)
        59400.0
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
    """Return whether a job at a queue reads its input directly, without a copy to scratch.

    Args:
        splitrule: Split rule of the task; null = no rule.
        maxinputsize: Of the queue [MB]; -1 = direct input only, null = unknown.
        direct_access_lan: The queue allows it; null = no.
        is_merging: Merge jobs always copy.

    Returns:
        True for direct input.

    Source: docs/rules/scouts.md 8.

    Example:
        >>> direct_io("IL=1", 14336, True), direct_io("LI=1,IL=1", 14336, True), direct_io("LI=1", -1, False)
        (True, False, True)
    """
    if is_merging:
        return False
    if maxinputsize == DIRECT_INPUT_ONLY:
        return True
    rule = split_rule.parse(splitrule)
    return not rule.uselocalio and rule.allowinputlan is not None and bool(direct_access_lan)


def is_job_cloning(specialhandling: str | None) -> bool:
    """Return whether the cloning token ``sc``, alone or as ``sc:...``, is in the comma-separated list.

    Source: docs/rules/scouts.md 2.7.

    Example:
        >>> is_job_cloning("sj,sc:storeonce"), is_job_cloning("ej, sc"), is_job_cloning(None)
        (True, False, False)
    """
    tokens = (specialhandling or "").split(",")
    return any(token.split(":", 1)[0] == CLONING_TOKEN for token in tokens)


def clean_host_name(modificationhost: str) -> str:
    """Return the name of the node from the name that a job reports.

    Everything up to the first ``@`` goes (unless nothing would be left), and
    ``atlprd<digits>-<word>-<rest>.cern.ch`` becomes ``<rest>.cern.ch``.

    Source: docs/rules/scouts.md 3.2.

    Example:
        >>> clean_host_name("slot1@node1.example.org"), clean_host_name("atlprd55-x-y-abc.cern.ch")
        ('node1.example.org', 'y-abc.cern.ch')
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
    """Return the benchmarks measured on processors like that of a job's host.

    Args:
        site: Site of the job; null = no benchmark.
        modificationhost: Host as the job reports it; null = no benchmark (production stops).
        worker_nodes: Rows ``site, host_name, cpu_model_normalized, threads_per_core, n_logical_cpus``.
        cpu_benchmarks: Rows ``cpu_type_normalized, smt_enabled (0, 1), ncores, site, score_per_core``.

    Returns:
        Pairs of the benchmark's site and score [HS06 per core], in the order of the benchmarks, once per
        matching node; empty if the node or its processor is unknown.

    Source: docs/rules/scouts.md 3.2.

    Example:
        >>> node = {"site": "S", "host_name": "n1", "cpu_model_normalized": "x", "threads_per_core": 2,
        ...         "n_logical_cpus": 64}
        >>> score = {"cpu_type_normalized": "x", "smt_enabled": 1, "ncores": 64, "site": "S-EXT",
        ...          "score_per_core": 12.5}
        >>> host_benchmarks("S", "slot1@n1", [node], [score])
        [('S-EXT', 12.5)]
    """
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
    """Choose the core power among the benchmarks of :func:`host_benchmarks`.

    Args:
        site: Site of the node.
        benchmarks: Pairs of site and score [HS06 per core].

    Returns:
        The first score whose site name contains, or is contained in, the node's (case not looked at); else the
        mean of all; null if there is none.

    Source: docs/rules/scouts.md 3.2.

    Example:
        >>> benchmark_corepower("SITE-1", [("OTHER", 10.0), ("site-1-ext", 12.5)])
        12.5
        >>> benchmark_corepower("SITE-1", [("OTHER", 10.0), (None, 12.5)])
        11.25
    """
    pairs = list(benchmarks)
    node = site.lower()
    for name, score in pairs:
        if name is not None and (name.lower() in node or node in name.lower()):
            return score
    return sum(score for _, score in pairs) / len(pairs) if pairs else None
