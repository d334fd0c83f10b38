"""The two rule sets of the scout chapters and every switch on which they differ."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from brokerlab.rulesets import RuleSet, Switch

_RANK_KEYS = ("SCOUT_CPUTIME_RANK", "SCOUT_RAMCOUNT_RANK")

SWITCHES: dict[str, Switch] = {
    "cputime_rank_key": Switch(_RANK_KEYS[0], _RANK_KEYS[0], "S01", _RANK_KEYS),
    "default_cpu_efficiency": Switch(90, 100, "S02"),
    "pseudo_input_eligible": Switch(True, True, "S03"),
    "long_job_inclusive": Switch(True, False, "S04"),
    "ram_min_per_job": Switch(True, False, "S05"),
    "io_intensity_per_core": Switch(False, True, "S06"),
    "diskio_cap_per_job": Switch(True, False, "S07"),
    "ng_input_in_bytes": Switch(False, False, "S08"),
    "ng_at_least_one": Switch(True, False, "S08, the guard beside it"),
    "second_trigger_counts": Switch(
        "after_avalanche", "whole_task", "S09", ("after_avalanche", "whole_task")
    ),
    "leak_exhausts": Switch(True, False, "X3_enforced"),
    "short_jobs_exhaust": Switch(True, False, "X4_enforced"),
    "zero_attempts_reject": Switch(False, True, "E7"),
}
"""The S and X numbers are those of scouts.md 14 and exhausted.md 4."""


@dataclass(frozen=True, init=False)
class ScoutRules(RuleSet):
    """One rule set with its switches; part of every result's provenance.

    Attributes:
        rules: ``document`` (the published page, production where it is silent) or ``production``.
        cputime_rank_key: S01, gdpconfig key of the cpuTime percentile rank.
        default_cpu_efficiency: S02, used for a null ``cpuefficiency`` [%].
        pseudo_input_eligible: S03, jobs that read pseudo input always count for cpuTime.
        long_job_inclusive: S04, few-event jobs count from exactly 6 h on (else: above 6 h, full time stamp).
        ram_min_per_job: S05, margin and minimum of ramCount act on each job (else: on the percentile).
        io_intensity_per_core: S06, ioIntensity is divided by the cores.
        diskio_cap_per_job: S07, the cap of diskIO acts on each job (else: on the mean).
        ng_input_in_bytes: S08, nGBPerJob adds the input in bytes (else: MB and bytes mixed, as deployed).
        ng_at_least_one: nGBPerJob is at least 1 GB (else: a value below 1 becomes 0, as deployed).
        second_trigger_counts: S09, the 100th job is counted ``after_avalanche`` or over the ``whole_task``.
        leak_exhausts: X3_enforced, a memory leak exhausts the task (else: leaves a message only).
        short_jobs_exhaust: X4_enforced, many short jobs exhaust the task (else: only edit its split rule).
        zero_attempts_reject: E7, ``JOB_MAX_ATTEMPT`` of 0 rejects every retry (else: switches the rule off).

    Source: scouts.md 0 and 14, exhausted.md 3 and 4.

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
    io_intensity_per_core: bool
    diskio_cap_per_job: bool
    ng_input_in_bytes: bool
    ng_at_least_one: bool
    second_trigger_counts: str
    leak_exhausts: bool
    short_jobs_exhaust: bool
    zero_attempts_reject: bool
