"""Proposals on the percentiles of the scouts, asked again on tasks that they never saw."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import polars as pl

from brokerlab.calibrate.drift.answer import (
    Again,
    Drift,
    NotRepeatableError,
    answered,
    data_end,
    unmerged,
)
from brokerlab.calibrate.judge import Judgement, Question, judge
from brokerlab.calibrate.percentiles.backtest import at_setting, backtest
from brokerlab.calibrate.percentiles.comparison import JUDGED, compare, quantities_of
from brokerlab.calibrate.percentiles.history import Inputs
from brokerlab.calibrate.percentiles.parameters import (
    COMPONENTS,
    PARAMETERS,
    Assumptions,
    LossWeights,
    Parameter,
    Setting,
    current_setting,
)
from brokerlab.calibrate.percentiles.study import kills
from brokerlab.calibrate.verdict import limit_of
from brokerlab.errors import ConfigError, InsufficientDataError
from brokerlab.gdpconfig import Config
from brokerlab.gdpconfig.proposal import Proposal
from brokerlab.gdpconfig.proposal.filters import tasks_in_words
from brokerlab.rulesets import NAMES
from brokerlab.scouts import ScoutRules
from brokerlab.words import days_of, short_percent

POOLED = ("First attempts killed", "share of jobs")
"""What older documents call the share of all jobs: now the mean over tasks has the shorter name."""
KEYS = {key: p for p in PARAMETERS.values() for key in (p.rank_key, p.margin_key) if key}
"""Key to its parameter."""


@dataclass(frozen=True)
class Asked:
    """What is to be scored again: two settings of a parameter (the same for a keep), and how they were judged."""

    parameter: Parameter
    current: Setting
    proposed: Setting
    assumptions: Assumptions
    weights: LossWeights
    question: Question


def is_of_percentiles(proposal: Proposal) -> bool:
    """Whether a proposal has keys of the scouts' percentiles only."""
    return {change.key for change in proposal.changes} <= KEYS.keys()


def question_of(proposal: Proposal, config: Config) -> Asked:
    """Return what a proposal on the percentiles of the scouts asks.

    Args:
        proposal: The proposal, of kind "change" or "keep".
        config: The configuration of the later archive, for the one of rank and margin that is not in the proposal.

    Raises:
        NotRepeatableError: It has other keys, is of several parameters, or does not tell its limit or rules: why it
            cannot be scored again.
    """
    unmerged(proposal)
    keys = sorted({change.key for change in proposal.changes})
    if others := ", ".join(key for key in keys if key not in KEYS):
        raise NotRepeatableError(
            f"no back-test of an archive alone scores {others}: run its report again"
        )
    parameter = KEYS[keys[0]]
    if len({KEYS[key].name for key in keys}) > 1:
        raise NotRepeatableError(
            f"{', '.join(keys)} are of several parameters: ask of one at a time"
        )
    if filters := proposal.evidence.filters:
        raise NotRepeatableError(
            f"the proposal was measured on {tasks_in_words(filters)}: run its report again with that filter"
        )
    numbers = proposal.evidence.numbers or {}
    limit = numbers.get("max_exceed")
    if not isinstance(limit, int | float):
        raise NotRepeatableError("the proposal does not tell its limit (max_exceed)")
    digest = proposal.digests.rules
    rules = [each for each in map(ScoutRules, NAMES) if each.digest == digest]
    if not rules:  # single switches that differ cannot be known from there
        raise NotRepeatableError(f"made under rules that are not those of this version: {digest}")
    stated = {name: numbers.get(f"weight_{name}") for name in COMPONENTS}
    weights = {name: float(w) for name, w in stated.items() if isinstance(w, int | float)}

    def setting(values: Mapping[str, Any]) -> Setting:
        """What the proposal leaves alone is as it acts."""
        try:
            return current_setting(config.with_values(values), parameter.name)
        except ConfigError as error:
            raise NotRepeatableError(str(error)) from error

    return Asked(
        parameter=parameter,
        current=setting({one.place: one.old for one in proposal.changes}),
        proposed=setting({one.place: one.new for one in proposal.changes}),
        assumptions=Assumptions(rules=rules[0]),
        weights=LossWeights.default(parameter.name, **weights),
        question=kills(
            float(limit),
            relevant=float(numbers.get("relevant") or Question().relevant),
            n_boot=int(numbers.get("bootstrap_replicates") or 2000),
            seed=int(numbers.get("seed") or 0),
        ),
    )


def drift(proposal: Proposal, inputs: Inputs) -> Drift:
    """Score a proposal's setting against the one before it on later tasks.

    Args:
        proposal: On ranks and margins of one scout parameter.
        inputs: Of the later archive, under the rule set of the proposal. Tasks created before the end of the proposal's own
            data are left out, and those without a ``creationdate``.

    Returns:
        A :class:`Drift`, see :func:`.answer.answered`. ``cannot_be_checked``: the document does not say what the judge needs.

    Source: calibration.md 2.
    """
    return answered(proposal, lambda: _again(proposal, inputs))


def _again(proposal: Proposal, inputs: Inputs) -> Again:
    asked = question_of(proposal, inputs.config)
    before, accepted = asked.current, asked.proposed
    tried = backtest(
        inputs.history,
        _later(inputs.tasks, data_end(proposal)),
        inputs.queues,
        parameter=asked.parameter.name,
        current=accepted,
        detail=[before.pair],
        loss=asked.weights,
        assumptions=asked.assumptions,
    )
    outcomes = tried.outcomes()
    judgement = judge(outcomes, asked.question)
    table = judgement.between(before, accepted)
    rows = outcomes.units.select(jeditaskid="unit", weight="weight").join(
        tried.under(sorted({before, accepted})), on="jeditaskid", maintain_order="left"
    )
    now, then = (at_setting(rows, each) for each in (before, accepted))
    compared = compare(table, now, then, asked.parameter, asked.question)
    lines = {(line.label, line.unit): line for line in quantities_of(asked.parameter)}
    lines[POOLED] = next(line for line in lines.values() if line.name == "exceed_rate_jobs")
    window = outcomes.units["time"][0], outcomes.units["time"][-1]
    return Again(
        judgement=judgement,
        table=table,
        where=f"{days_of(*window)}, {outcomes.n_units:,} tasks",
        findings=_findings(judgement, table, keep=proposal.kind == "keep"),
        better="rank {} with margin {} %".format(*Setting(*judgement.setting).pair),
        effects={
            about: (compared.quantity(line.name), not line.over and line.name not in JUDGED)
            for about, line in lines.items()
        },
        units="tasks",
        window=window,
        notes=inputs.caveats,
    )


def _later(tasks: pl.DataFrame, since: datetime | None) -> pl.DataFrame:
    """Return the tasks that the proposal cannot have seen."""
    dated = tasks.filter(pl.col("creationdate").is_not_null())
    later = dated if since is None else dated.filter(pl.col("creationdate") >= since)
    if later.is_empty():
        raise InsufficientDataError(
            f"of {tasks.height} tasks none was created after the proposal's own data, which end {since} UTC"
        )
    return later


def _findings(judgement: Judgement, table: pl.DataFrame, *, keep: bool) -> str:
    rows = {row["quantity"]: row for row in table.iter_rows(named=True)}
    killed, loss = rows["exceed_rate"], rows["loss"]
    limit = f"limit {short_percent(limit_of(judgement))}"
    text = f"{short_percent(killed['after'])} of first attempts killed"
    if killed["after_lo"] is None:
        return f"{text} ({limit})"
    ends = f"{short_percent(killed['after_lo'])} to {short_percent(killed['after_hi'])}"
    text = f"{text} ({ends}; {limit})"
    if keep:
        return text
    return (
        f"{text}, {short_percent(killed['before'])} under the setting before, loss {loss['diff']:+.4f} "
        f"({loss['diff_lo']:+.4f} to {loss['diff_hi']:+.4f})"
    )
