"""The rule sets of grouping levels into pilot jobs, and one switch per row where their sources disagree."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, Literal

from brokerlab.errors import ConfigError, nearest
from brokerlab.gdpconfig.values import digest_of

RulesName = Literal["notes", "paper", "peer"]
NAMES = ("notes", "paper", "peer")


@dataclass(frozen=True, kw_only=True)
class Choice:
    """One question on which the sources disagree or are silent.

    Attributes:
        row: Of the chapter's table (section 9), or another section.
        values: Value in ``notes``, ``paper``, ``peer``.
        allowed: Values it may have; none: True and False, or a number.
        least: Smallest number.
        most: Largest number.
        meaning: What it decides.
    """

    row: str
    values: tuple[Any, Any, Any]
    meaning: str
    allowed: tuple[str, ...] = ()
    least: float = 0
    most: float = math.inf

    def problem(self, name: str, value: object) -> list[str]:
        """Return what is wrong with a value, as a list of none or one."""
        if self.allowed:
            good, say = value in self.allowed, " or ".join(self.allowed)
        elif isinstance(self.values[0], bool):
            good, say = isinstance(value, bool), "True or False"
        else:
            number = isinstance(value, int | float) and not isinstance(value, bool)
            good = number and self.least <= value <= self.most  # type: ignore[operator]
            say = f"a number of at least {self.least:g}"
            if isinstance(self.values[0], int):
                good, say = (
                    good and isinstance(value, int),
                    f"a whole number of at least {self.least:g}",
                )
        return [] if good else [f"{name}={value!r}: allowed is {say}"]


SWITCHES: Mapping[str, Choice] = {
    "pilot_hosts": Choice(row="W1", values=("group", "group", "group"), allowed=("group", "dag_width", "best"),
        meaning="hosts of a pilot: its widest level, the widest level left, or the number that is expected to end first"),
    "whole_dag": Choice(row="W2", values=("long_wait_one_job", "long_wait_individual", "long_wait_individual"),
        allowed=("long_wait_one_job", "long_wait_individual"),
        meaning="all levels taken and the wait more than twice the run time: one job, or one job per task"),
    "first_comparison": Choice(row="W3", values=("infinity", "whole", "infinity"), allowed=("infinity", "whole"),
        meaning="what the first group's ratio is compared with: nothing, or the ratio of the whole workflow (which then bounds every later one too)"),
    "ratio_wait": Choice(row="W4", values=("unpadded", "padded", "unpadded"), allowed=("unpadded", "padded"),
        meaning="the wait in the ratio: of the run time alone, or of the padded request"),
    "skip_long_waits": Choice(row="W5", values=("no", "exposed", "wait"), allowed=("no", "exposed", "wait"),
        meaning="groups that wait longer than they run are passed over until one does not: never, by the wait that is not hidden behind running pilots, by the whole wait"),
    "hidden_exempt": Choice(row="W6", values=(False, True, False),
        meaning="levels are added without a test while the wait is hidden behind running pilots"),
    "search_whole": Choice(row="W7", values=(True, False, True),
        meaning="the search looks at all levels together too"),
    "first_rejected": Choice(row="W8", values=("whole", "whole", "whole"), allowed=("whole", "before"),
        meaning="the first group that is not passed over is rejected at once: all levels, or those before it"),
    "padding": Choice(row="W9", values=("none", "halving", "slack"), allowed=("none", "halving", "slack", "bisection"),
        meaning="how the request grows for a pilot that would start before its predecessors end"),
    "exec": Choice(row="W10", values=("list", "list", "list"), allowed=("list", "barrier"),
        meaning="run time of a group: tasks start when their parents are done, or level by level"),
    "ear": Choice(row="W11", values=("remaining", "remaining", "remaining"), allowed=("remaining", "run_time", "requested"),
        meaning="time until running pilots end: walltime left, run time of the pilot started last, whole walltime less a minute"),
    "replan": Choice(row="W12", values=("all", "all", "all"), allowed=("all", "expired"),
        meaning="planned anew after an expiry: everything left, or the tasks of the expired and the cancelled pilot"),
    "cancel_idle": Choice(row="W13", values=(False, False, True),
        meaning="an expiry also cancels running pilots none of whose tasks has started"),
    "tie": Choice(row="W14", values=("continues", "continues", "continues"), allowed=("continues", "stops"),
        meaning="a ratio equal to the one before: goes on, or stops the search"),
    "margin": Choice(row="W15", values=(1.0, 1.0, 1.1), least=1.0, meaning="factor on the walltime"),
    "round_to": Choice(row="W15", values=("second_up", "second_up", "next_minute"), allowed=("second_up", "next_minute"),
        meaning="walltimes: rounded up to a second, or to the next minute even when whole"),
    "individual_permanent": Choice(row="W16", values=(True, True, True),
        meaning="once task by task, always; else a new decision when the tasks that were ready are done"),
    "search": Choice(row="6.4", values=("first_rise", "first_rise", "first_rise"), allowed=("first_rise", "global"),
        meaning="stop at the first rise of the ratio, or take the smallest of all"),
    "tolerance_s": Choice(row="7", values=(600, 600, 600), meaning="gap that padding leaves to a last step [s]"),
    "max_jobs": Choice(row="6.4", values=(0, 0, 0), meaning="jobs of the workflow in the queue at most, 0 for any"),
    "retries": Choice(row="8", values=(3, 3, 3), meaning="times that a task killed at its walltime gets twice the walltime"),
}  # fmt: skip
"""Name -> what it decides, with its value in each rule set (workflows.md 9; 6.4, 7 and 8)."""


@dataclass(frozen=True, init=False)
class PilotRules:
    """How levels are grouped into pilot jobs: a rule set, then single switches; part of every result's provenance.

    Example:
        >>> PilotRules().whole_dag, PilotRules("paper").whole_dag
        ('long_wait_one_job', 'long_wait_individual')
        >>> PilotRules("paper", cancel_idle=True).changed
        {'cancel_idle': True}
    """

    rules: RulesName
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

    def __init__(self, rules: str = "notes", **switches: Any) -> None:
        """Take a rule set, then single switches.

        Raises:
            ConfigError: Unknown rule set or switch, or a value that a switch cannot have.
        """
        problems = [] if rules in NAMES else [f"rules={rules!r}: {nearest(rules, NAMES)}"]
        for name, value in switches.items():
            if name in SWITCHES:
                problems += SWITCHES[name].problem(name, value)
            else:
                problems.append(f"{name}: no such switch, {nearest(name, SWITCHES)}")
        if problems:
            raise ConfigError("rules of pilot jobs: " + "; ".join(problems))
        object.__setattr__(self, "rules", rules)
        for name, choice in SWITCHES.items():
            default = choice.values[NAMES.index(rules)]
            object.__setattr__(self, name, switches.get(name, default))

    def to_dict(self) -> dict[str, Any]:
        """Return the name and every switch by name."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    @property
    def changed(self) -> dict[str, Any]:
        """Switches that differ from the rule set."""
        usual = PilotRules(self.rules)
        return {k: v for k, v in self.to_dict().items() if v != getattr(usual, k)}

    @property
    def digest(self) -> str:
        """The rule set's name and a digest of every switch."""
        return f"{self.rules} {digest_of(self.to_dict())}"
