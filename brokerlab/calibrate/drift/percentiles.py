"""Proposals on the percentiles of the scouts: their back-test again, on tasks that they never saw."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

import polars as pl

from brokerlab.calibrate.assumptions import Assumptions
from brokerlab.calibrate.backtest import backtest
from brokerlab.calibrate.choice import LimitOn
from brokerlab.calibrate.drift.answer import (
    SCHEMA,
    WORDS,
    Drift,
    NotRepeatableError,
    Status,
    apart,
    data_end,
    refused,
    unmerged,
)
from brokerlab.calibrate.loss import COMPONENTS, LossWeights
from brokerlab.calibrate.parameters import PARAMETERS, Parameter
from brokerlab.calibrate.proof import Proof, prove, quantities_of
from brokerlab.calibrate.replay import Setting
from brokerlab.calibrate.verdict import current_setting
from brokerlab.errors import InsufficientDataError
from brokerlab.gdpconfig import Config
from brokerlab.gdpconfig.proposal import Change, Proposal
from brokerlab.rulesets import NAMES
from brokerlab.scouts import ScoutRules
from brokerlab.words import days_of, short_percent


@dataclass(frozen=True)
class Question:
    """What is to be scored again.

    Attributes:
        parameter: Which scout parameter.
        current: Setting before the proposal.
        proposed: Setting that it asks for; the same for a keep.
        rules: Rule set of the estimate.
        weights: Of the loss.
        max_exceed: Limit on the exceed rate.
        limit_on: What of it must meet the limit.
        n_boot: Bootstrap replicates.
        seed: Of the bootstrap.
        since: End of the data that the proposal was made from; null = it tells none.
    """

    parameter: Parameter
    current: Setting
    proposed: Setting
    rules: ScoutRules
    weights: LossWeights
    max_exceed: float
    limit_on: LimitOn
    n_boot: int
    seed: int
    since: datetime | None


def question_of(proposal: Proposal, config: Config) -> Question:
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
    by_key = {change.key: change for change in proposal.changes}
    acting = current_setting(config, parameter.name)
    numbers = proposal.evidence.numbers or {}
    limit = numbers.get("max_exceed")
    if not isinstance(limit, int | float):
        raise NotRepeatableError("the proposal does not tell its limit (max_exceed)")
    told = {name: numbers.get(f"weight_{name}") for name in COMPONENTS}
    weights = {name: float(w) for name, w in told.items() if isinstance(w, int | float)}
    return Question(
        parameter=parameter,
        current=_setting(parameter, by_key, acting, new=False),
        proposed=_setting(parameter, by_key, acting, new=True),
        rules=_rules(proposal.digests.rules),
        weights=LossWeights.default(parameter.name, **weights),
        max_exceed=float(limit),
        limit_on="upper" if numbers.get("limit_on_proof") == "upper" else "point",
        n_boot=int(numbers.get("bootstrap_replicates") or 2000),
        seed=int(numbers.get("seed") or 0),
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
    for key, acts in zip((parameter.rank_key, parameter.margin_key), acting, strict=True):
        change = by_key.get(key or "")
        value = acts if change is None else change.new if new else change.old
        if not isinstance(value, int | float) or int(value) != value:
            raise NotRepeatableError(f"{key} = {value!r} is no whole number")
        values.append(int(value))
    return values[0], values[1]


def _rules(digest: str | None) -> ScoutRules:
    """Return the rule set of a digest; single switches that differ from it cannot be known from there."""
    for name in NAMES:
        rules = ScoutRules(rules=name)
        if rules.digest == digest:
            return rules
    raise NotRepeatableError(f"made under rules that are not those of this version: {digest}")


def drift(
    proposal: Proposal,
    quantities: pl.DataFrame,
    tasks: pl.DataFrame,
    queues: pl.DataFrame | None = None,
    jobs: Any | None = None,
    *,
    config: Config,
) -> Drift:
    """Score a proposal's setting against the one before it on later tasks.

    Args:
        proposal: On ranks and margins of one scout parameter.
        quantities: Of ``scouts.job_quantities``, under the rule set of the proposal.
        tasks: With ``creationdate``; those created before the end of the proposal's own data are left out, and those
            without a time. Other columns as for :func:`brokerlab.calibrate.backtest.backtest`.
        queues: As there.
        jobs: As there.
        config: The configuration of the later archive.

    Returns:
        A :class:`Drift`. ``holds``: the limit is met and, for a change, the loss is lower beyond its interval or the
        setting before breaks the limit, which is what the proof asked. ``does_not_hold``: the limit is broken, or the
        loss is higher, beyond doubt. ``cannot_tell``: anything between, or too few tasks. ``cannot_be_checked``: the
        document does not tell what its proof needs.

    Source: design.md, idea 6.
    """
    try:
        asked = question_of(proposal, config)
        later = _later(tasks, asked.since)
        scored = backtest(
            quantities,
            later,
            queues,
            jobs,
            parameter=asked.parameter.name,
            ranks=[asked.proposed[0]],
            margins=[asked.proposed[1]],
            current=asked.current,
            detail=[asked.proposed],
            loss=asked.weights,
            assumptions=Assumptions(rules=asked.rules, ram_min_mb=config.get("SCOUT_RAMCOUNT_MIN")),
            synthetic=proposal.evidence.synthetic,
        )
    except InsufficientDataError as error:
        return refused(error)
    proof = prove(
        scored,
        asked.proposed,
        max_exceed=asked.max_exceed,
        limit_on=asked.limit_on,
        n_boot=asked.n_boot,
        seed=asked.seed,
    )
    created = later.join(scored.by_task, on="jeditaskid", how="semi")["creationdate"].sort()
    window = (created[0], created[-1])
    effects = _effects(proposal, proof, asked.parameter)
    status = _status(proof, keep=proposal.kind == "keep")
    sentence = _sentence(status, proof, effects, window, keep=proposal.kind == "keep")
    return Drift(status, sentence, effects, proof, window)


def _later(tasks: pl.DataFrame, since: datetime | None) -> pl.DataFrame:
    """Return the tasks that the proposal cannot have seen."""
    dated = tasks.filter(pl.col("creationdate").is_not_null())
    later = dated if since is None else dated.filter(pl.col("creationdate") >= since)
    if later.is_empty():
        raise InsufficientDataError(
            f"of {tasks.height} tasks none was created after the proposal's own data, which end {since} UTC"
        )
    return later


def _status(proof: Proof, *, keep: bool) -> Status:
    exceed, loss = proof.quantity("exceed_rate"), proof.quantity("loss")
    if proof.status == "no_answer":
        return "cannot_tell"
    bound = exceed["after_hi" if proof.limit_on == "upper" else "after"]
    if proof.status == "proven" or (keep and bound <= proof.max_exceed):
        return "holds"
    refuted = exceed["after_lo"] > proof.max_exceed
    worse = not keep and loss["diff_lo"] > 0 and exceed["before"] <= proof.max_exceed
    return "does_not_hold" if refuted or worse else "cannot_tell"


def _sentence(
    status: Status,
    proof: Proof,
    effects: pl.DataFrame,
    window: tuple[datetime, datetime],
    *,
    keep: bool,
) -> str:
    where = f"{days_of(*window)}, {proof.n_tasks:,} tasks"
    exceed, loss = proof.quantity("exceed_rate"), proof.quantity("loss")
    text = (
        f"{WORDS[status]} on {where}: {short_percent(exceed['after'])} of first attempts killed "
        f"({short_percent(exceed['after_lo'])} to {short_percent(exceed['after_hi'])}; limit "
        f"{short_percent(proof.max_exceed)})"
    )
    if keep:
        return f"{text}."
    text += (
        f", {short_percent(exceed['before'])} under the setting before, loss {loss['diff']:+.4f}"
    )
    if loss["diff_lo"] is None:
        return f"{text} without an interval: {proof.reason}"
    text += f" ({loss['diff_lo']:+.4f} to {loss['diff_hi']:+.4f})"
    if status == "holds" and loss["diff_hi"] >= 0:
        text += ", where the limit decides, which the setting before breaks"
    compared = effects.filter(pl.col("apart").is_not_null())
    apart = compared.filter("apart")["quantity"].to_list()
    told = f"{len(apart)} of {compared.height} effects lie apart from what was told"
    return f"{text}; {told}{': ' if apart else ''}{', '.join(apart)}."


def _effects(proposal: Proposal, proof: Proof, parameter: Parameter) -> pl.DataFrame:
    """Set what was told beside what was found; totals as shares of the setting before."""
    lines = {line.label: line for line in quantities_of(parameter)}
    rows = []
    for effect in proposal.evidence.effects:
        line = lines.get(effect.quantity)
        if line is None or effect.difference is None:
            continue
        found = proof.quantity(line.name)
        total = not line.over
        if total and not effect.current:
            continue  # no share of nothing
        scale = 100 / effect.current if total and effect.current else 1.0
        ends = (effect.difference, effect.low, effect.high)
        told = [None if end is None else scale * end for end in ends]
        name = "diff_pct" if total else "diff"
        here = [found[f"{name}{end}"] for end in ("", "_lo", "_hi")]
        unit = "% of before" if total else effect.unit
        rows.append((effect.quantity, unit, *told, *here, apart(*told[1:], *here[1:])))
    return pl.DataFrame(rows, schema=SCHEMA, orient="row")
