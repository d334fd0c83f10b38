"""Walk through the files of many tasks and count the jobs they split into: one compiled loop.

A job takes files as long as every limit holds for the next one too, so there is no form with grouping and joins.

Source: analysis-jobs.md 7.
"""

from __future__ import annotations

from typing import NamedTuple

from brokerlab.brokerage.inputs.atom_kernel import BoolArray
from brokerlab.compiled import compiled
from brokerlab.numerics import FloatArray, IntArray

OUTPUT_RESERVE_B = 1500 * 1024**2
MAX_WALLTIME_S = 345_600


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
