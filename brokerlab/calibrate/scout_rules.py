"""What each switch between the rule sets of scouts does on an archive, task by task."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import polars as pl

from brokerlab.calibrate.stops import ScoutHistory
from brokerlab.rulesets import changed_outcomes, switch_by_switch
from brokerlab.scouts import ScoutRules

KEYS = ["jeditaskid", "what"]


@dataclass(frozen=True, kw_only=True)
class ScoutRuleComparison:
    """How two rule sets read the same scouts.

    Attributes:
        current: Name of the rule set that is looked at.
        other: Name of the other one.
        n_tasks: Tasks tried, as they stood at their first trigger.
        n_values: What is decided of them: parameters, whether they are stopped, and by which check.
        n_changed: Of these, what the other set decides otherwise.
        switches: See :func:`brokerlab.rulesets.switch_by_switch`; rows are these decisions.
    """

    current: str
    other: str
    n_tasks: int
    n_values: int
    n_changed: int
    switches: pl.DataFrame


def compare_scout_rules(
    history: ScoutHistory,
    *,
    sample: int = 300,
    seed: int = 1,
) -> ScoutRuleComparison:
    """Read the scouts of some tasks under the other rule set, and under each of its differences alone.

    Args:
        history: From :func:`brokerlab.calibrate.stops.read_scout_history`.
        sample: Tasks at most, drawn at random.
        seed: Of the draw.
    """
    few, rules = sample_tasks(history, sample, seed=seed), history.rules
    other = ScoutRules("production" if rules.rules == "document" else "document")

    def outcomes(rule_set: ScoutRules) -> pl.DataFrame:
        return decided(replace(few, rules=rule_set, _memo={}))

    here, there = outcomes(rules), outcomes(other)
    return ScoutRuleComparison(
        current=rules.rules,
        other=other.rules,
        n_tasks=few.tasks.height,
        n_values=here.height,
        n_changed=changed_outcomes(here, there, KEYS).height,
        switches=switch_by_switch(outcomes, rules, other, keys=KEYS, there=there),
    )


def sample_tasks(history: ScoutHistory, sample: int, *, seed: int) -> ScoutHistory:
    """Keep some tasks, drawn at random, with their jobs and files."""
    drawn = np.sort(np.random.default_rng(seed).permutation(history.tasks.height)[:sample])
    few = history.among(history.tasks[drawn])
    own = few.tables["jobs"].join(few.tasks.lazy(), on="jeditaskid", how="semi").collect().lazy()
    inputs = few.tables["files"].join(own, on="pandaid", how="semi").collect().lazy()
    return replace(few, tables={**few.tables, "jobs": own, "files": inputs})


def decided(history: ScoutHistory) -> pl.DataFrame:
    """Return what the scouts of every task decide: ``jeditaskid``, ``what`` (a parameter, ``rule`` or ``action``), ``value`` as text."""
    texts = history.decided(history.config).with_columns(pl.exclude("jeditaskid").cast(pl.String))
    return texts.unpivot(index="jeditaskid", variable_name="what", value_name="value")
