"""Proposals on the percentiles of the scouts: the judge again, on tasks that they never saw."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

import polars as pl

from brokerlab.calibrate.drift.answer import (
    WORDS,
    Drift,
    NotRepeatableError,
    Status,
    apart_in_words,
    data_end,
    effects_beside,
    judged_in_words,
    refused,
    status_of,
    unmerged,
)
from brokerlab.calibrate.judge import MIN_UNITS, Judgement, Question, judge
from brokerlab.calibrate.percentiles.backtest import at_setting, backtest
from brokerlab.calibrate.percentiles.comparison import JUDGED, Comparison, compare, quantities_of
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
from brokerlab.errors import InsufficientDataError
from brokerlab.gdpconfig import Config
from brokerlab.gdpconfig.proposal import Change, Proposal
from brokerlab.gdpconfig.proposal.filters import tasks_in_words
from brokerlab.rulesets import NAMES
from brokerlab.scouts import ScoutRules
from brokerlab.words import days_of, short_percent

POOLED = ("First attempts killed", "share of jobs")
"""What older documents call the share of all jobs: now the mean over tasks has the shorter name."""


@dataclass(frozen=True)
class Asked:
    """What is to be scored again.

    Attributes:
        parameter: Which scout parameter.
        current: Setting before the proposal.
        proposed: Setting that it asks for; the same for a keep.
        rules: Rule set of the estimate.
        weights: Of the loss.
        question: How it was judged.
        since: End of the data that the proposal was made from; null = it tells none.
    """

    parameter: Parameter
    current: Setting
    proposed: Setting
    rules: ScoutRules
    weights: LossWeights
    question: Question
    since: datetime | None


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
    parameter = _parameter(proposal)
    if proposal.evidence.filters:
        raise NotRepeatableError(
            f"the proposal was measured on {tasks_in_words(proposal.evidence.filters)}: run its report again with that filter"
        )
    by_key = {change.key: change for change in proposal.changes}
    acting = current_setting(config, parameter.name)
    numbers = proposal.evidence.numbers or {}
    limit = numbers.get("max_exceed")
    if not isinstance(limit, int | float):
        raise NotRepeatableError("the proposal does not tell its limit (max_exceed)")
    told = {name: numbers.get(f"weight_{name}") for name in COMPONENTS}
    weights = {name: float(w) for name, w in told.items() if isinstance(w, int | float)}
    question = kills(
        float(limit),
        relevant=float(numbers.get("relevant") or Question().relevant),
        n_boot=int(numbers.get("bootstrap_replicates") or 2000),
        seed=int(numbers.get("seed") or 0),
    )
    return Asked(
        parameter=parameter,
        current=_setting(parameter, by_key, acting, new=False),
        proposed=_setting(parameter, by_key, acting, new=True),
        rules=_rules(proposal.digests.rules),
        weights=LossWeights.default(parameter.name, **weights),
        question=question,
        since=data_end(proposal),
    )


def is_of_percentiles(proposal: Proposal) -> bool:
    """Whether a proposal has keys of the scouts' percentiles only."""
    keys = {change.key for change in proposal.changes}
    return keys <= {key for p in PARAMETERS.values() for key in (p.rank_key, p.margin_key) if key}


def _parameter(proposal: Proposal) -> Parameter:
    keys = {change.key for change in proposal.changes}
    for parameter in PARAMETERS.values():
        if keys <= {parameter.rank_key, parameter.margin_key}:
            return parameter
    known = {key for p in PARAMETERS.values() for key in (p.rank_key, p.margin_key) if key}
    others = sorted(keys - known)
    raise NotRepeatableError(
        f"no back-test of an archive alone scores {', '.join(others)}: run its report again"
        if others
        else f"{', '.join(sorted(keys))} are of several parameters: ask of one at a time"
    )


def _setting(
    parameter: Parameter, by_key: dict[str, Change], acting: Setting, *, new: bool
) -> Setting:
    """Return rank and margin before or after; what the proposal leaves alone is as it acts."""
    values = []
    for key, acts in zip((parameter.rank_key, parameter.margin_key), acting.pair, strict=True):
        change = by_key.get(key or "")
        value = acts if change is None else change.new if new else change.old
        if not isinstance(value, int | float) or int(value) != value:
            raise NotRepeatableError(f"{key} = {value!r} is no whole number")
        values.append(int(value))
    return Setting(values[0], values[1], acting.minimum_mb)


def _rules(digest: str | None) -> ScoutRules:
    """Return the rule set of a digest; single switches that differ from it cannot be known from there."""
    for name in NAMES:
        rules = ScoutRules(rules=name)
        if rules.digest == digest:
            return rules
    raise NotRepeatableError(f"made under rules that are not those of this version: {digest}")


def drift(proposal: Proposal, inputs: Inputs) -> Drift:
    """Score a proposal's setting against the one before it on later tasks.

    Args:
        proposal: On ranks and margins of one scout parameter.
        inputs: Of the later archive, under the rule set of the proposal. Tasks created before the end of the proposal's own
            data are left out, and those without a ``creationdate``.

    Returns:
        A :class:`Drift`, by the judge with the proposed setting as the current one, see :func:`status_of`.
        ``cannot_be_checked``: the document does not say what the judge needs.

    Source: calibration.md 2.
    """
    try:
        asked = question_of(proposal, inputs.config)
        tried = backtest(
            inputs.history,
            _later(inputs.tasks, asked.since),
            inputs.queues,
            parameter=asked.parameter.name,
            current=asked.proposed,
            loss=asked.weights,
            assumptions=Assumptions(rules=asked.rules),
        )
        outcomes = tried.outcomes()
    except InsufficientDataError as error:
        return refused(error)
    judgement = judge(outcomes, asked.question)
    rows = outcomes.units.select(jeditaskid="unit", weight="weight").join(
        tried.replay.by_task(sorted({asked.current, asked.proposed}), asked.weights),
        on="jeditaskid",
        maintain_order="left",
    )
    before, after = (at_setting(rows, setting) for setting in (asked.current, asked.proposed))
    compared = compare(before, after, asked.parameter, asked.question)
    window = outcomes.units["time"][0], outcomes.units["time"][-1]
    effects = _effects(proposal, compared, asked.parameter)
    keep = proposal.kind == "keep"
    status = _status(judgement, compared, keep=keep)
    sentence = _sentence(status, judgement, compared, effects, window, keep=keep)
    return Drift(status, sentence, effects, judgement, window)


def _later(tasks: pl.DataFrame, since: datetime | None) -> pl.DataFrame:
    """Return the tasks that the proposal cannot have seen."""
    dated = tasks.filter(pl.col("creationdate").is_not_null())
    later = dated if since is None else dated.filter(pl.col("creationdate") >= since)
    if later.is_empty():
        raise InsufficientDataError(
            f"of {tasks.height} tasks none was created after the proposal's own data, which end {since} UTC"
        )
    return later


def _status(judgement: Judgement, compared: Comparison, *, keep: bool) -> Status:
    """Return the answer, with the share of first attempts killed as the limit."""
    exceed, limit = compared.quantity("exceed_rate"), limit_of(judgement)
    return status_of(
        judgement,
        compared.quantity("loss"),
        keep=keep,
        kept=exceed["after"] <= limit,
        kept_before=exceed["before"] <= limit,
        broken_before=exceed["before_lo"] is not None and exceed["before_lo"] > limit,
    )


def _sentence(
    status: Status,
    judgement: Judgement,
    compared: Comparison,
    effects: pl.DataFrame,
    window: tuple[datetime, datetime],
    *,
    keep: bool,
) -> str:
    where = f"{days_of(*window)}, {compared.n_tasks:,} tasks"
    exceed, loss = compared.quantity("exceed_rate"), compared.quantity("loss")
    limit = short_percent(limit_of(judgement))
    killed = f"{short_percent(exceed['after'])} of first attempts killed"
    if judgement.case == "few":
        return (
            f"{WORDS[status]} on {where}: {killed} (limit {limit}); {MIN_UNITS} tasks are needed."
        )
    ends = f"{short_percent(exceed['after_lo'])} to {short_percent(exceed['after_hi'])}"
    text = f"{WORDS[status]} on {where}: {killed} ({ends}; limit {limit})"
    if not keep:
        text += (
            f", {short_percent(exceed['before'])} under the setting before, loss {loss['diff']:+.4f} "
            f"({loss['diff_lo']:+.4f} to {loss['diff_hi']:+.4f})"
        )
    better = "rank {} with margin {} %".format(*Setting(*judgement.setting).pair)
    text += f"; {judged_in_words(judgement, better)}"
    return f"{text}." if keep else f"{text}; {apart_in_words(effects)}."


def _effects(proposal: Proposal, compared: Comparison, parameter: Parameter) -> pl.DataFrame:
    """Set what the proposal says beside what is seen now; totals as shares of the setting before."""
    lines = {(line.label, line.unit): line for line in quantities_of(parameter)}
    lines[POOLED] = next(line for line in lines.values() if line.name == "exceed_rate_jobs")
    return effects_beside(
        proposal,
        {
            about: (compared.quantity(line.name), not line.over and line.name not in JUDGED)
            for about, line in lines.items()
        },
    )
