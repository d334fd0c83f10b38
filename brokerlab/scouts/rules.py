"""The two rule sets of the scout chapters and every switch on which they differ."""

from __future__ import annotations

from dataclasses import dataclass

from brokerlab.rulesets import RuleSet


@dataclass(frozen=True, init=False)
class ScoutRules(RuleSet, chapter="scouts"):
    """One rule set with its switches; part of every result's provenance.

    Source: 003; docs/rules/scouts.md, docs/rules/exhausted.md.

    Example:
        >>> ScoutRules().io_intensity_per_core
        False
        >>> ScoutRules("document", io_intensity_per_core=True).io_intensity_per_core
        True
    """

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
