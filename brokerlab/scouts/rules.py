"""The two rule sets of the scout chapters and every switch on which they differ."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any, Literal

from brokerlab.errors import ConfigError, nearest
from brokerlab.gdpconfig.values import digest_of

RuleSet = Literal["document", "production"]

# switch: (document, production); the S and X numbers are those of scouts.md 14 and exhausted.md 4
SWITCHES: dict[str, tuple[Any, Any]] = {
    "cputime_rank_key": ("SCOUT_CPUTIME_RANK", "SCOUT_CPUTIME_RANK"),  # S01
    "default_cpu_efficiency": (90, 100),  # S02
    "pseudo_input_eligible": (True, True),  # S03
    "long_job_inclusive": (True, False),  # S04
    "ram_min_per_job": (True, False),  # S05
    "io_intensity_per_core": (False, True),  # S06
    "diskio_cap_per_job": (True, False),  # S07
    "ng_input_in_bytes": (False, False),  # S08
    "ng_at_least_one": (True, False),  # S08, the guard beside it
    "second_trigger_counts": ("after_avalanche", "whole_task"),  # S09
    "leak_exhausts": (True, False),  # X3_enforced
    "short_jobs_exhaust": (True, False),  # X4_enforced
    "zero_attempts_reject": (False, True),  # E7
}

ALLOWED: dict[str, tuple[Any, ...]] = {
    "cputime_rank_key": ("SCOUT_CPUTIME_RANK", "SCOUT_RAMCOUNT_RANK"),
    "second_trigger_counts": ("after_avalanche", "whole_task"),
}


@dataclass(frozen=True, init=False)
class ScoutRules:
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

    rules: RuleSet
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

    def __init__(self, rules: str = "document", **switches: Any) -> None:
        """Take a rule set, then single switches.

        Raises:
            ConfigError: Unknown rule set or switch, or a value that a switch cannot have.
        """
        problems = []
        if rules not in ("document", "production"):
            problems.append(f"rules={rules!r}: {nearest(rules, ['document', 'production'])}")
        problems += [
            f"{name}: no such switch, {nearest(name, SWITCHES)}"
            for name in switches
            if name not in SWITCHES
        ]
        for name, value in switches.items():
            if name in SWITCHES:
                problems += _switch_problem(name, value)
        if problems:
            raise ConfigError("scout rules: " + "; ".join(problems))
        object.__setattr__(self, "rules", rules)
        for name, (document, production) in SWITCHES.items():
            default = document if rules == "document" else production
            object.__setattr__(self, name, switches.get(name, default))

    def to_dict(self) -> dict[str, Any]:
        """Return every switch by name."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    @property
    def digest(self) -> str:
        """Return the rule set's name and a digest of every switch: single switches may differ from the set.

        Example:
            >>> ScoutRules().digest[:25], ScoutRules().digest == ScoutRules("production").digest
            ('document sha256:959d1990c', False)
        """
        return f"{self.rules} {digest_of(self.to_dict())}"


def _switch_problem(name: str, value: object) -> list[str]:
    """Return what is wrong with a switch's value, as a list of none or one."""
    if name in ALLOWED:
        good = value in ALLOWED[name]
        allowed = " or ".join(ALLOWED[name])
    elif name == "default_cpu_efficiency":
        good = isinstance(value, int | float) and not isinstance(value, bool) and value >= 0
        allowed = "a percentage of at least 0"
    else:
        good, allowed = isinstance(value, bool), "True or False"
    return [] if good else [f"{name}={value!r}: allowed is {allowed}"]
