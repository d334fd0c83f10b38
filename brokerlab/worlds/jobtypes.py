"""The kinds of work in a synthetic archive and the shapes measured on real jobs of each kind.

The numbers are those of the data statistics, section 3 (one real task per kind), widened to a population
of tasks by section 8. ``simul``, ``evgen`` and ``user`` have no real task there; theirs are set from
section 8 and from the seven requirements of section 10.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from brokerlab.numerics import FloatArray, IntArray

Range = tuple[float, float]

USER_SHARE, EXPRESS, TEST_SHARE = "User Analysis", "Express Analysis", "Test"
"""Leaf shares of user tasks, of urgent ones, and of tests."""


@dataclass(frozen=True, kw_only=True)
class JobType:
    """One kind of work: medians of a task and how far tasks of the kind lie apart."""

    name: str  # name in the truth table
    processingtype: str  # PanDA processing type
    label: str  # ``prodsourcelabel``
    gshare: str  # leaf global share
    transpath: str  # payload
    task_share: float  # share of tasks that are of this kind; the shares sum to 1
    cores: tuple[int, ...]  # core counts of tasks, 0 = the queue's [cores]
    cores_share: tuple[float, ...]  # probability of each core count
    ref_cores: int  # cores at which the wall time is quoted, and those of the truth where 0 [cores]
    files_per_job: tuple[int, ...] = (1,)  # input files of a job
    events_per_file: float  # median events of an input file
    events_job_sd: float = 0.0  # sd of ln(events of a job) inside a task
    no_events_share: float = 0.0  # share of tasks whose files carry no event information
    pseudo: bool = False  # input is a pseudo dataset: no bytes
    event_ranges: int = 1  # jobs that share one file by event ranges (1 = whole files)
    file_mb: float  # median size of an input file [MB]
    out_bytes: float  # median output per event [B]
    out_task_sd: float = 0.5  # sd of ln(output per event) between tasks
    out_job_sd: float = 0.05  # the same inside a task
    wall_s: float  # median wall time at ``ref_cores`` [s]
    wall_task_sd: float = 0.4  # sd of ln(wall time) between tasks
    wall_sd: Range = (0.10, 0.25)  # range of the sd of ln(wall time) given task and queue
    wall_queue_sd: float = 0.35  # sd of ln(wall time) between queues, given the task
    startup: float = 0.2  # part of the wall time that does not scale with events or cores
    eff: float  # median CPU efficiency per core
    eff_queue_sd: float = 0.10  # sd of ln(efficiency) between queues
    eff_sd: float = 0.05  # sd of ln(efficiency) inside a queue
    mem_base_mb: float  # peak memory that does not scale with cores [MB]
    mem_core_mb: float  # peak memory per core [MB]
    mem_event_mb: float = 0.0  # peak memory per event [MB]
    mem_task_sd: float = 0.15  # sd of ln(peak memory) between tasks
    # range of the sd of ln(peak memory) inside a task, queues included
    mem_sd: Range = (0.05, 0.12)
    light_share: float = 0.02  # share of light jobs, the left tail of memory
    light_scale: float = 0.10  # mean of how much lighter they are, on the natural logarithm
    gap_mem: Range  # mean and sd over tasks of ln(peak memory of scouts / of the rest)
    gap_wall: Range = (0.35, 0.20)  # the same for wall time, beyond what the scouts' queue does
    base_ram_mb: int = 0  # ``baseramcount`` of tasks [MB]
    pre_ram_mb: int  # memory asked for before scouting, per core [MB]
    rss_ratio: float  # maxpss / maxrss
    avg_ratio: float  # avgpss / maxpss
    vmem_ratio: float = 1.8  # maxvmem / maxrss
    # bytes read from local storage per byte of input (per MB where no input)
    read_factor: float = 1.0
    merge_share: float = 0.0  # share of tasks whose output is merged


JOB_TYPES: tuple[JobType, ...] = (
    JobType(
        name="derivation", processingtype="deriv", label="managed", gshare="Group Production",
        transpath="Derivation_tf.py", task_share=0.24, cores=(8,), cores_share=(1.0,), ref_cores=8,
        files_per_job=(1, 2, 5, 10), events_per_file=10_000, file_mb=2060, out_bytes=205,
        out_job_sd=0.06, wall_s=3434, wall_sd=(0.15, 0.25), eff=0.583, eff_queue_sd=0.18,
        eff_sd=0.12, mem_base_mb=1900, mem_core_mb=450, mem_sd=(0.08, 0.12), gap_mem=(0.06, 0.03),
        pre_ram_mb=2000, rss_ratio=0.47, avg_ratio=0.69, vmem_ratio=2.0, read_factor=0.65,
        merge_share=0.6,
    ),
    JobType(
        name="reconstruction", processingtype="reco", label="managed", gshare="MC 16 reco",
        transpath="Reco_tf.py", task_share=0.16, cores=(8, 4, 0), cores_share=(0.6, 0.2, 0.2),
        ref_cores=8, events_per_file=1000, file_mb=2780, out_bytes=938_000, out_job_sd=0.055,
        wall_s=7490, wall_sd=(0.10, 0.20), wall_queue_sd=0.30, startup=0.3, eff=0.835,
        eff_queue_sd=0.03, eff_sd=0.02, mem_base_mb=4924, mem_core_mb=1580, mem_sd=(0.05, 0.08),
        gap_mem=(0.07, 0.04), base_ram_mb=2000, pre_ram_mb=3000, rss_ratio=0.81, avg_ratio=0.64,
        read_factor=3.1,
    ),
    JobType(
        name="simulation", processingtype="simul", label="managed", gshare="MC 16 simul",
        transpath="Sim_tf.py", task_share=0.14, cores=(8, 1), cores_share=(0.9, 0.1), ref_cores=8,
        events_per_file=1000, event_ranges=10, file_mb=310, out_bytes=900_000, wall_s=14_000,
        wall_sd=(0.10, 0.20), startup=0.1, eff=0.93, eff_queue_sd=0.03, eff_sd=0.02,
        mem_base_mb=1300, mem_core_mb=420, mem_sd=(0.05, 0.08), gap_mem=(0.03, 0.03),
        pre_ram_mb=2000, rss_ratio=0.70, avg_ratio=0.70, read_factor=1.4,
    ),
    JobType(
        name="generation", processingtype="evgen", label="managed", gshare="MC 16 evgen",
        transpath="Gen_tf.py", task_share=0.10, cores=(1,), cores_share=(1.0,), ref_cores=1,
        pseudo=True, events_per_file=10_000, file_mb=0, out_bytes=31_000, wall_s=6000,
        wall_task_sd=0.9, eff=0.93, eff_queue_sd=0.05, eff_sd=0.03, mem_base_mb=500,
        mem_core_mb=400, mem_task_sd=0.35, mem_sd=(0.05, 0.09),
        gap_mem=(-0.02, 0.03), pre_ram_mb=2000, rss_ratio=0.93,
        avg_ratio=0.66, read_factor=300.0,
    ),
    JobType(
        name="short copy", processingtype="merge", label="managed", gshare="MC merge",
        transpath="HITSMerge_tf.py", task_share=0.06, cores=(1,), cores_share=(1.0,), ref_cores=1,
        events_per_file=10_000, file_mb=336, out_bytes=33_400, out_job_sd=0.005, wall_s=375,
        wall_task_sd=0.25, wall_sd=(0.15, 0.25), startup=0.6, eff=0.235, eff_queue_sd=0.20,
        eff_sd=0.15, mem_base_mb=150, mem_core_mb=105, mem_task_sd=0.2, mem_sd=(0.02, 0.05),
        light_share=0.15, light_scale=0.35, gap_mem=(0.03, 0.03), pre_ram_mb=2000, rss_ratio=0.96,
        avg_ratio=0.50, vmem_ratio=5.0, read_factor=0.95,
    ),
    JobType(
        name="short single core", processingtype="pile", label="managed", gshare="Data reprocessing",
        transpath="Reco_tf.py", task_share=0.07, cores=(1,), cores_share=(1.0,), ref_cores=1,
        events_per_file=17, events_job_sd=0.53, file_mb=20, out_bytes=2_700_000, out_job_sd=0.3,
        wall_s=850, wall_task_sd=0.3, wall_sd=(0.15, 0.25), wall_queue_sd=0.40, startup=0.66,
        eff=0.507, eff_queue_sd=0.25, eff_sd=0.18, mem_base_mb=557, mem_core_mb=2000,
        mem_event_mb=4.0, mem_sd=(0.06, 0.09), gap_mem=(0.08, 0.03), gap_wall=(0.45, 0.20),
        pre_ram_mb=4000, rss_ratio=0.98, avg_ratio=0.55, vmem_ratio=1.63, read_factor=120.0,
    ),
    JobType(
        name="user analysis", processingtype="panda-client-1.5.85-jedi-run", label="user",
        gshare=USER_SHARE, transpath="runGen-00-00-02", task_share=0.23, cores=(1, 8),
        cores_share=(0.97, 0.03), ref_cores=1, files_per_job=(1, 2, 5, 10), events_per_file=2000,
        events_job_sd=0.3, no_events_share=0.5, file_mb=700, out_bytes=1500, out_task_sd=1.8,
        out_job_sd=0.25, wall_s=3600, wall_task_sd=1.7, wall_sd=(0.20, 0.25), eff=0.80,
        eff_queue_sd=0.12, eff_sd=0.12, mem_base_mb=500, mem_core_mb=700, mem_task_sd=0.45,
        mem_sd=(0.07, 0.12), light_share=0.04, light_scale=0.2, gap_mem=(0.02, 0.04),
        pre_ram_mb=2000, rss_ratio=0.90, avg_ratio=0.60, merge_share=0.25,
    ),
)  # fmt: skip
"""All kinds, in the order of the codes used inside the generator."""


def of_kind(kind: IntArray, value: Callable[[JobType], float]) -> FloatArray:
    """Return one number of the kind for every task.

    Example:
        >>> of_kind(np.array([0, 6, 0]), lambda t: t.ref_cores)
        array([8., 1., 8.])
    """
    return np.array([value(t) for t in JOB_TYPES], dtype=np.float64)[kind]


def range_of_kind(
    kind: IntArray, value: Callable[[JobType], Range]
) -> tuple[FloatArray, FloatArray]:
    """Return a pair of numbers of the kind for every task."""
    return of_kind(kind, lambda t: value(t)[0]), of_kind(kind, lambda t: value(t)[1])


@dataclass(frozen=True)
class MergeType:
    """The merge jobs of derivation tasks (statistics section 3): memory has two modes."""

    wall_s: float = 343.0
    wall_sd: float = 0.147
    eff: float = 0.289
    eff_sd: float = 0.12
    low_mb: float = 238.0
    high_mb: float = 1230.0
    low_share: float = 0.16
    mem_sd: float = 0.07
    events: float = 280.0
    events_sd: float = 0.055
    rss_ratio: float = 0.99
    avg_ratio: float = 0.48
    input_mb: float = 26.9
    output_mb: float = 13.4


MERGE = MergeType()


@dataclass(frozen=True)
class BuildType:
    """The build job of a user task: it compiles what the others run."""

    task_share: float = 0.75
    transformation: str = "buildGen-00-00-02"
    label: str = "panda"
    wall_s: float = 170.0
    wall_sd: float = 0.4
    eff: float = 0.55
    mem_mb: float = 420.0
    mem_sd: float = 0.15
    output_mb: float = 12.0


BUILD_TYPE = BuildType()
