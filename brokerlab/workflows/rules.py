"""The rule sets of grouping levels into pilot jobs, and one switch per row where their sources disagree."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

from brokerlab.rulesets import RuleSet

RulesName = Literal["notes", "paper", "peer"]


@dataclass(frozen=True, init=False)
class PilotRules(RuleSet, chapter="pilot jobs", table="workflows/switches.csv"):
    """How levels are grouped into pilot jobs: a rule set, then single switches; part of every result's provenance.

    Example:
        >>> PilotRules().whole_dag, PilotRules("paper").whole_dag
        ('long_wait_one_job', 'long_wait_individual')
        >>> PilotRules("paper", cancel_idle=True).changed
        {'cancel_idle': True}
    """

    NAMES: ClassVar[tuple[str, ...]] = ("notes", "paper", "peer")

    rules: RulesName  # type: ignore[assignment]
    pilot_hosts: Literal["group", "dag_width", "best"]
    whole_dag: Literal["long_wait_one_job", "long_wait_individual"]
    first_comparison: Literal["infinity", "whole"]
    ratio_wait: Literal["unpadded", "padded"]
    skip_long_waits: Literal["no", "exposed", "wait"]
    hidden_exempt: bool
    search_whole: bool
    first_rejected: Literal["whole", "before"]
    padding: Literal["none", "halving", "slack", "bisection"]
    exec: Literal["list", "barrier"]
    ear: Literal["remaining", "run_time", "requested"]
    replan: Literal["all", "expired"]
    cancel_idle: bool
    tie: Literal["continues", "stops"]
    margin: float
    round_to: Literal["second_up", "next_minute"]
    individual_permanent: bool
    search: Literal["first_rise", "global"]
    tolerance_s: float
    max_jobs: int
    retries: int
