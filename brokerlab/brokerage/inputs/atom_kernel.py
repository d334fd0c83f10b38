"""Walk through the files of many tasks and cut them into the smallest jobs, or count jobs: compiled loops.

A job takes files as long as every limit holds for the next one too, and where it stopped the next job
begins: each step depends on all before it, so there is no form with grouping and joins.

Source: production-jobs.md 5; analysis-jobs.md 7.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from brokerlab.compiled import compiled
from brokerlab.numerics import FloatArray, IntArray

BoolArray = npt.NDArray[np.bool_]

UNKNOWN = -(2**62)
"""Stands for null in event numbers and limits."""

MAX_FILES_IN_TOTAL = 1000
MAX_SIZE_B = 20 * 1024**3
OUTPUT_RESERVE_B = 1500 * 1024**2
MAX_WALLTIME_S = 345_600


class Files(NamedTuple):
    """Files of all tasks, one array each; null numbers of events are UNKNOWN."""

    lfn: IntArray  # number of the name, equal names have equal numbers
    size_b: IntArray
    effective_mb: FloatArray
    events: IntArray  # at least 1
    start: IntArray
    last: IntArray
    nevents: IntArray


class Secondaries(NamedTuple):
    """Secondary datasets of all tasks, one array each."""

    begin: IntArray  # in the files
    end: IntArray
    ratio: FloatArray  # files per master file
    whole: BoolArray  # every job reads all files


class Jobs(NamedTuple):
    """Tasks, one array each: their files and how they are cut; 0 = not set, except ``max_files``."""

    master_begin: IntArray  # in the files
    master_end: IntArray
    first_secondary: IntArray  # in the secondaries
    end_secondary: IntArray
    fixed_files: IntArray
    max_files: IntArray
    max_events: IntArray


@compiled
def _breaks(next_start: int, start: int, same_file: bool) -> bool:  # noqa: FBT001
    """Tell whether events starting at ``start`` do not follow what was taken before."""
    if next_start == UNKNOWN:
        return False
    return next_start != start or (next_start != 0 and not same_file)


@compiled
def _after(last: int, nevents: int) -> int:
    """Return where the next events must start: after the end of a file, at 0 of the next one."""
    return 0 if last + 1 == nevents else last + 1


@compiled
def _longest_run(files: Files, begin: int, end: int) -> int:
    """Return the events in the longest run without gap of the files ``begin`` to ``end``."""
    longest, run, next_start, file = 0, 0, UNKNOWN, -1
    for m in range(begin, end):
        start, last = files.start[m], files.last[m]
        if start != UNKNOWN:
            if _breaks(next_start, start, files.lfn[m] == file):
                longest, run = max(longest, run), 0
            next_start = _after(last, files.nevents[m])
            run += last - start + 1
        elif last != UNKNOWN:
            run += last
        file = files.lfn[m]
    return max(longest, run)


@compiled
def _bring(
    files: Files,
    secondaries: Secondaries,
    used: IntArray,
    taken: IntArray,
    n_master: int,
    commit: bool,  # noqa: FBT001
) -> tuple[int, int, int]:
    """Return the files, bytes and events that secondary datasets add to a job of ``n_master`` files.

    ``used`` says where the files not used by earlier jobs begin, ``taken`` those that the job has taken, per dataset;
    ``commit`` takes them. The events are those of the first dataset that is split.
    """
    n_files, size, events, first = 0, 0, 0, True
    for d in range(len(used)):
        begin, end = used[d] + taken[d], secondaries.end[d]
        if secondaries.whole[d]:
            end = end if n_master == 1 else begin
        else:
            more = math.ceil(secondaries.ratio[d] * n_master) - taken[d]
            end = min(end, begin + max(more, 0))
            if commit:
                taken[d] += end - begin
        n_files += end - begin
        for i in range(begin, end):
            size += files.size_b[i]
            if first and not secondaries.whole[d]:
                known = files.start[i] != UNKNOWN and files.last[i] != UNKNOWN
                if known:
                    events += files.last[i] - files.start[i] + 1
                elif files.nevents[i] != UNKNOWN:
                    events += files.nevents[i]
        first = first and secondaries.whole[d]
    return n_files, size, events


@compiled
def _job(
    files: Files,
    secondaries: Secondaries,
    used: IntArray,
    taken: IntArray,
    begin: int,
    end: int,
    max_files: int,
    max_events: int,
) -> int:
    """Return how many master files from ``begin`` on make the next job that has no fixed number of files.

    A job takes files while, with the next one, it has at most ``max_files`` master files, 1000 files in all
    and ``max_events`` events, without a gap in the events. Events are those of ranges of the master, else of
    the first split secondary dataset. Without ``max_events`` the size is limited instead.
    """
    n, total, size, events = 0, 0, 0, 0
    next_start, file = UNKNOWN, -1
    while begin + n < end:
        m = begin + n
        start, last = files.start[m], files.last[m]
        ranged = start != UNKNOWN and last != UNKNOWN
        new_files, new_size, new_events = _bring(files, secondaries, used, taken, n + 1, False)  # noqa: FBT003
        new_files, new_size = new_files + 1, new_size + files.size_b[m]
        new_events = last - start + 1 if ranged else new_events
        if n > 0:
            gap = start != UNKNOWN and _breaks(next_start, start, files.lfn[m] == file)
            if max_events > 0 and gap:
                break
            if n + 1 > max_files or total + new_files > MAX_FILES_IN_TOTAL:
                break
            if max_events > 0 and events + new_events > max_events:
                break
            if max_events <= 0 and size + new_size > MAX_SIZE_B - OUTPUT_RESERVE_B:
                break
        _bring(files, secondaries, used, taken, n + 1, True)  # noqa: FBT003
        n, total, size, events = n + 1, total + new_files, size + new_size, events + new_events
        if ranged:
            next_start = _after(last, files.nevents[m])
            file = files.lfn[m]
    return n


@compiled
def _new_bytes(files: Files, begin: int, end: int, seen: IntArray, stamp: int) -> int:
    """Return the size of the files whose name the job ``stamp`` has not read yet."""
    size = 0
    for i in range(begin, end):
        if seen[files.lfn[i]] != stamp:
            seen[files.lfn[i]] = stamp
            size += files.size_b[i]
    return size


@compiled
def walk(
    files: Files,
    secondaries: Secondaries,
    jobs: Jobs,
    n_names: int,
    counts: IntArray,
    effective_mb: FloatArray,
) -> None:
    """Cut the files of every task into jobs and keep the maximum of each measure.

    Master files of a task, files of a dataset and datasets of a task stand together and in order. ``counts`` (n_tasks, 3) is
    filled with size [B] of distinct names, events, longest run of events, ``effective_mb`` (n_tasks,) with the effective size
    of the master files [MB].
    """
    seen = np.full(n_names, -1, dtype=np.int64)
    stamp = 0
    for t in range(len(jobs.master_begin)):
        mine = slice(jobs.first_secondary[t], jobs.end_secondary[t])
        own = Secondaries(
            secondaries.begin[mine],
            secondaries.end[mine],
            secondaries.ratio[mine],
            secondaries.whole[mine],
        )
        used = own.begin.copy()
        m, end = jobs.master_begin[t], jobs.master_end[t]
        counts[t, 2] = _longest_run(files, m, end)
        while m < end:
            taken = np.zeros(len(used), dtype=np.int64)
            if jobs.fixed_files[t] > 0:
                n = min(jobs.fixed_files[t], end - m)
                _bring(files, own, used, taken, n, True)  # noqa: FBT003
            else:
                n = _job(files, own, used, taken, m, end, jobs.max_files[t], jobs.max_events[t])
            size = _new_bytes(files, m, m + n, seen, stamp)
            for d in range(len(used)):
                stop = own.end[d] if own.whole[d] else used[d] + taken[d]
                size += _new_bytes(files, used[d], stop, seen, stamp)
                used[d] += taken[d]
            effective, events = 0.0, 0
            for i in range(m, m + n):
                effective += files.effective_mb[i]
                events += files.events[i]
            counts[t, 0] = max(counts[t, 0], size)
            counts[t, 1] = max(counts[t, 1], events)
            effective_mb[t] = max(effective_mb[t], effective)
            m += n
            stamp += 1


class MasterFiles(NamedTuple):
    """Master files of all tasks, one array each, those of a task together and in order."""

    size_b: IntArray
    output_b: IntArray
    walltime_s: IntArray
    secondary_b: IntArray  # of the files of secondary datasets that come with it
    n_secondary: IntArray


class Limits(NamedTuple):
    """Tasks, one array each: where their files stand, and the limits of a job."""

    begin: IntArray
    end: IntArray
    max_files: IntArray
    max_all: IntArray
    work_b: IntArray
    limit_b: IntArray
    base_s: FloatArray
    by_time: BoolArray


@compiled
def count_jobs(files: MasterFiles, limits: Limits, n_jobs: IntArray) -> None:
    """Fill ``n_jobs`` with the number of jobs of each task."""
    for t in range(len(limits.begin)):
        m, end = limits.begin[t], limits.end[t]
        limit = limits.limit_b[t]
        while m < end:
            n_files, n_all, output, time = 0, 0, 0, 0
            size = limits.work_b[t]
            first = m
            while m < end:
                new_size = size + files.size_b[m] + files.output_b[m] + files.secondary_b[m]
                new_output = output + files.output_b[m]
                new_time = time + files.walltime_s[m]
                new_all = n_all + 1 + files.n_secondary[m]
                if m > first and (
                    n_files + 1 > limits.max_files[t]
                    or new_size > limit
                    or (
                        new_output < OUTPUT_RESERVE_B
                        and limit - OUTPUT_RESERVE_B < new_size - new_output
                    )
                    or (limits.by_time[t] and limits.base_s[t] + new_time > MAX_WALLTIME_S)
                    or new_all > limits.max_all[t]
                ):
                    break
                n_files, n_all, output, time = n_files + 1, new_all, new_output, new_time
                size = new_size
                m += 1
            n_jobs[t] += 1
