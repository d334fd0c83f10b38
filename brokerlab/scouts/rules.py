"""The two rule sets of the scout chapters and every switch on which they differ."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from brokerlab.rulesets import RuleSet, Switch

_RANK_KEYS = ("SCOUT_CPUTIME_RANK", "SCOUT_RAMCOUNT_RANK")

SWITCHES: dict[str, Switch] = {
    "cputime_rank_key": Switch(
        _RANK_KEYS[0],
        _RANK_KEYS[0],
        "003, cpuTime",
        _RANK_KEYS,
        sentence="The percentile rank can be defined as SCOUT_RAMCOUNT_RANK in gdpconfig.",
    ),
    "default_cpu_efficiency": Switch(
        90,
        100,
        "003, cpuTime",
        sentence="cpuEfficiency is a task parameter representing CPU efficiency and defaults to 90%",
    ),
    "pseudo_input_eligible": Switch(
        False,
        True,
        "003, cpuTime",
        sentence="Other scout jobs with fewer events and short execution time are ignored",
    ),
    "long_job_inclusive": Switch(
        True, False, "003, cpuTime", sentence="with fewer nEvents but endTime-startTime 6h"
    ),
    "ram_min_per_job": Switch(
        True,
        False,
        "003, ramCount",
        sentence="ramCount is calculated for each job using the following formula",
    ),
    "outdisk_capped": Switch(
        False,
        True,
        "003, outDiskCount and workDiskCount",
        sentence="The 75th percentile of the total output size per event of scout jobs outDiskCount is used",
    ),
    "io_intensity_per_core": Switch(
        False,
        True,
        "003, ioIntensity",
        sentence="ioIntensity is the total size of job input and output divided by the job execution time",
    ),
    "diskio_cap_per_job": Switch(
        True,
        False,
        "003, diskIO",
        sentence="diskIO is calculated for each job using the following formula",
    ),
    "ng_input_in_bytes": Switch(False, False, "003, nGBPerJob"),
    "ng_at_least_one": Switch(True, False, "003, nGBPerJob"),
    "second_trigger_counts": Switch(
        "after_avalanche",
        "whole_task",
        "003, introduction",
        ("after_avalanche", "whole_task"),
        sentence="when the first 100 jobs finished after the task avalanched",
    ),
    "checks_need_new_jobs": Switch(
        False,
        True,
        "003, exhausted",
        sentence="The task status is set to exhausted when scouts detect",
    ),
    "wrong_cputime": Switch(
        "differs",
        "exceeds_and_long",
        "003, exhausted",
        ("differs", "exceeds_and_long"),
        sentence="the calculated ramCount or cpuTime so different from preset values",
    ),
    "wrong_ramcount": Switch(
        "differs",
        "crosses_line",
        "003, exhausted",
        ("differs", "crosses_line"),
        sentence="the calculated ramCount or cpuTime so different from preset values",
    ),
    "leak_exhausts": Switch(True, False, "003, exhausted", sentence="huge memory leaks"),
    "short_jobs_exhaust": Switch(
        True,
        False,
        "003, exhausted",
        sentence="too many short jobs without being enforced to copy input files to scratch disk",
    ),
    "default_short_tenths": Switch(
        5,
        0,
        "003, exhausted",
        most=10,
        sentence="too many short jobs without being enforced to copy input files to scratch disk",
    ),
    "short_cutoff_counts": Switch(
        "new_jobs",
        "all_jobs",
        "003, exhausted",
        ("new_jobs", "all_jobs"),
        sentence="and a large number of new jobs expected",
    ),
    "edit_excuses_copies": Switch(
        True,
        False,
        "003, exhausted",
        sentence="If tasks meet the above condition and specify nGBPerJob or nFilesPerJob",
    ),
    "edit_raises_max_files": Switch(
        False,
        True,
        "003, exhausted",
        sentence="the system will automatically remove those parameters",
    ),
    "growth_needs_more_files": Switch(
        True,
        False,
        "003, exhausted",
        sentence="If new jobs after avalanche have more input files than scout jobs",
    ),
    "zero_attempts_reject": Switch(False, True, "docs/rules/exhausted.md 3"),
}


@dataclass(frozen=True, init=False)
class ScoutRules(RuleSet):
    """One rule set with its switches; part of every result's provenance.

    Attributes:
        rules: ``document`` (the page) or ``production`` (the deployed code).
        cputime_rank_key: gdpconfig key of the percentile rank of cpuTime. Page slip: the page names the key of
            ramCount; both sets read the key of cpuTime.
        default_cpu_efficiency: Used for a null ``cpuefficiency`` [%].
        pseudo_input_eligible: Jobs that read pseudo input count for cpuTime whatever their events and time.
        long_job_inclusive: Few-event jobs count from exactly 6 h on (else: above 6 h, full time stamp). The page's
            sign is lost; so is that of the events, which count from 10 per core on.
        ram_min_per_job: Margin and minimum of ramCount act on each job (else: on the percentile).
        outdisk_capped: outDiskCount is at most 10 MB, per event or per MB of input.
        io_intensity_per_core: ioIntensity is divided by the cores.
        diskio_cap_per_job: The cap of diskIO acts on each job (else: on the mean). The page does not say how jobs are
            combined: the mean.
        ng_input_in_bytes: nGBPerJob adds the input in bytes (else: MB and bytes mixed, as deployed). The page gives no
            formula: both sets follow the code.
        ng_at_least_one: nGBPerJob is at least 1 GB (else: a value below 1 becomes 0, as deployed).
        second_trigger_counts: The 100th job is counted ``after_avalanche`` or over the ``whole_task``.
        checks_need_new_jobs: The checks run only where more than 20 new jobs are expected.
        wrong_cputime: cpuTime is so different where it ``differs`` from the preset by more than the factor
            SCOUT_WRONG_CPUTIME_THRESHOLD, up or down, or where it ``exceeds_and_long``: only up, and the job ran over
            24 h. The page names no number.
        wrong_ramcount: ramCount is so different where it ``differs`` by more than the same factor, up or down, or where
            it ``crosses_line``: preset below and measured above RAM_THR_EXAUSTED. The page names no number.
        leak_exhausts: A memory leak exhausts the task (else: leaves a message only).
        short_jobs_exhaust: Many short jobs exhaust the task (else: only edit its split rule).
        default_short_tenths: How many short jobs are too many where SCOUT_NUM_SHORT is not set [tenths of the jobs]; 0:
            the check is off. The page names neither that key nor a number: half of the jobs.
        short_cutoff_counts: What SCOUT_THR_SHORT is held to: the ``new_jobs`` still to come, or ``all_jobs`` that are
            expected, those that ran included (by files or by events, whichever are fewer).
        edit_excuses_copies: The split rule is edited only where short jobs that need not copy their input are too many
            (else: where short jobs are).
        edit_raises_max_files: Editing the split rule raises MF below 200 to 200 too (else: removes NF and NG alone).
        growth_needs_more_files: Jobs that will run long enough are excused only where more files per job than the
            scouts' are possible: neither files nor events per job are fixed, nor is MF 1 (else: where events are not
            fixed). Time grows tenfold, as input per job does; the page names no factor.
        zero_attempts_reject: ``JOB_MAX_ATTEMPT`` of 0 rejects every retry (else: switches the rule off).

    Source: 003; docs/rules/scouts.md, docs/rules/exhausted.md.

    Example:
        >>> ScoutRules().io_intensity_per_core
        False
        >>> ScoutRules("document", io_intensity_per_core=True).io_intensity_per_core
        True
    """

    SWITCHES: ClassVar[Mapping[str, Switch]] = SWITCHES
    SUBJECT: ClassVar[str] = "scout rules"

    cputime_rank_key: str
    default_cpu_efficiency: float
    pseudo_input_eligible: bool
    long_job_inclusive: bool
    ram_min_per_job: bool
    outdisk_capped: bool
    io_intensity_per_core: bool
    diskio_cap_per_job: bool
    ng_input_in_bytes: bool
    ng_at_least_one: bool
    second_trigger_counts: str
    checks_need_new_jobs: bool
    wrong_cputime: str
    wrong_ramcount: str
    leak_exhausts: bool
    short_jobs_exhaust: bool
    default_short_tenths: float
    short_cutoff_counts: str
    edit_excuses_copies: bool
    edit_raises_max_files: bool
    growth_needs_more_files: bool
    zero_attempts_reject: bool
