"""Proposals on thresholds: the judge again, on the old and the new values simulated on a later period."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import polars as pl

from brokerlab.calibrate.drift.answer import (
    WORDS,
    Drift,
    NotRepeatableError,
    apart_in_words,
    effects_beside,
    judged_in_words,
    refused,
    status_of,
    unmerged,
)
from brokerlab.calibrate.judge import Judgement, judge
from brokerlab.calibrate.thresholds import LIMITS, QUANTITIES, Options, Period, WhatIf, threshold_of
from brokerlab.calibrate.thresholds.calibration import Validated
from brokerlab.calibrate.thresholds.compare import Comparison, as_shown
from brokerlab.calibrate.thresholds.outcomes import OfCapacity, quantity_of
from brokerlab.calibrate.thresholds.runs import Runs
from brokerlab.calibrate.thresholds.settings import NOW, Key, Setting, Space
from brokerlab.calibrate.thresholds.simulations import LEAST_SPANS, PREFIX, Block, Simulations
from brokerlab.calibrate.thresholds.words import capacity_unknown, effects, small
from brokerlab.errors import ConfigError, InsufficientDataError
from brokerlab.gdpconfig import Config
from brokerlab.gdpconfig.proposal import Proposal
from brokerlab.words import days_of

LATER = 2_000_000
"""Seeds lie so far from those of the choice; those of the scored period lie between."""


def is_of_thresholds(proposal: Proposal) -> bool:
    """Whether a proposal was made by simulating thresholds."""
    numbers = proposal.evidence.numbers or {}
    return "objective" in numbers and "settings_tried" in numbers


def thresholds_drift(
    proposal: Proposal,
    what_if: WhatIf,
    period: Period,
    *,
    config: Config,
    validation: Validated | None = None,
) -> Drift:
    """Simulate the values before a proposal and those it asks for on a later period, and ask the judge.

    The accepted values are the current setting; the setting before is the other one, and what limits compare with. Where the
    slots of queues are unknown, the answer must be the same with the slots seen and with so many times as many as the
    proposal was made with.

    Args:
        proposal: Of :func:`brokerlab.calibrate.thresholds.calibrate`, of kind "change".
        what_if: The simulation.
        period: A period after the proposal's own data.
        config: The configuration of the later archive; for keys that are not in the proposal.
        validation: Whether the simulation gives back what was seen in that period; null: the caller vouches for it.

    Returns:
        A :class:`Drift`, see :func:`.answer.status_of`. ``cannot_tell`` also: the answer depends on unknown slots, or the
        simulation is not to be believed there. ``cannot_be_checked``: a keep, which compared many settings, or a document
        that does not tell its objective.

    Source: calibration.md, sections 2 and 4.
    """
    try:
        asked = _asked(proposal, config)
        if validation is not None and not validation.ok:
            return Drift("cannot_tell", f"Cannot tell: {validation.sentence.removeprefix('No answer: ')}")  # fmt: skip
        drift = _judged(proposal, asked, what_if, period)
        most = asked.options.capacity_most
        if not isinstance(what_if, OfCapacity) or most == 1 or drift.status == "cannot_tell":
            return drift
        if not (unknown := what_if.unknown()):
            return drift
        more = _judged(proposal, asked, what_if.larger(most), period)
    except InsufficientDataError as error:
        return refused(error)
    if more.status == drift.status:
        return drift
    reason = capacity_unknown(unknown, drift.sentence, more.sentence)
    return replace(drift, status="cannot_tell", sentence=f"{WORDS['cannot_tell']}: {reason}.")


@dataclass(frozen=True, kw_only=True)
class _Asked:
    """What is simulated again, as the document tells it."""

    space: Space
    setting: Setting
    options: Options


def _judged(proposal: Proposal, asked: _Asked, what_if: WhatIf, period: Period) -> Drift:
    """Ask the judge under one assumption about slots."""
    options = asked.options
    first = options.seed + LATER
    simulations = Simulations(
        asked.space,
        options,
        Runs(what_if),
        (Block(period, tuple(range(first, first + options.most_replications))),),
        current=asked.setting,
        least=2 * LEAST_SPANS,
    )
    settings = simulations.among([NOW])
    comparison = Comparison.of(simulations, settings)
    judgement = judge(comparison.outcomes, comparison.question)
    raw = comparison.raw(NOW, asked.setting)
    n_tasks = comparison.n_tasks()
    table = as_shown(raw, n_tasks)
    broken = raw.filter(pl.col("kept").not_())["quantity"].str.strip_prefix(PREFIX)
    status = status_of(
        judgement,
        raw.row(by_predicate=pl.col("quantity") == options.objective, named=True),
        keep=False,
        kept=broken.is_empty(),  # limits compare with the setting before, which keeps them
    )
    rows = {row["quantity"]: row for row in table.to_dicts()}
    beside = effects_beside(
        proposal, {(q.label, q.unit): (rows[q.name], q.total) for q in QUANTITIES}
    )
    where = f"{days_of(period.start, period.end)}, {n_tasks:,} tasks, {options.most_replications} simulations of each"
    limits = [small(quantity_of(LIMITS[name].quantity).label) for name in broken]
    beyond = f"; the limit on {' and '.join(limits)} is broken" if limits else ""
    sentence = (
        f"{WORDS[status]} on {where}: {effects(options.objective, table)}{beyond}; "
        f"{judged_in_words(judgement, _named(judgement))}; {apart_in_words(beside)}."
    )
    return Drift(status, sentence, beside, judgement, (period.start, period.end))


def _named(judgement: Judgement) -> str:
    """Name the setting that the judge speaks for: the only other one is that before the proposal."""
    return "the setting before" if judgement.setting == NOW else judgement.setting.name


def _asked(proposal: Proposal, config: Config) -> _Asked:
    """Read the document.

    Raises:
        NotRepeatableError: It does not tell what was compared.
    """
    unmerged(proposal)
    if proposal.kind == "keep":
        raise NotRepeatableError(
            "a keep of thresholds has compared many settings: run the report that wrote it on the later archive"
        )
    numbers = proposal.evidence.numbers or {}
    objective = str(numbers.get("objective"))
    if objective not in [quantity.name for quantity in QUANTITIES]:
        raise NotRepeatableError(f"the proposal does not tell its objective ({objective})")
    space, setting = _compared(proposal, config)
    replications = max(2, int(_number(numbers, "replications", 4)))
    limits = {name: numbers.get(f"{PREFIX}{name}") for name in LIMITS}
    fields = {
        "objective": objective,
        "limits": {
            n: most if isinstance(most, int | float) else None for n, most in limits.items()
        },
        "replications": replications,
        "most_replications": replications,
        "relevant": _number(numbers, "relevant", 0.0) or None,
        "alpha": numbers.get("alpha"),
        "n_boot": numbers.get("bootstrap_replicates"),
        "capacity_most": numbers.get("capacity_most"),
        "seed": int(_number(numbers, "seed", 0)),
    }
    known = {name: value for name, value in fields.items() if value is not None}
    return _Asked(space=space, setting=setting, options=Options.model_validate(known))


def _number(numbers: Mapping[str, Any], name: str, default: float) -> float:
    value = numbers.get(name, default)
    return float(value) if isinstance(value, int | float) else default


def _compared(proposal: Proposal, config: Config) -> tuple[Space, Setting]:
    """Return the configuration before the proposal with its keys, and the setting that it asks for."""
    changes = [change for change in proposal.changes if change.action != "none"]
    before = config.with_values(
        {change.place: None if change.before is None else change.old for change in changes}
    )
    try:
        keys = tuple(
            Key(change.place, threshold_of(change.key), (change.place,), change.old, mixed=False, grid=(change.old, change.new))
            for change in changes
        )  # fmt: skip
    except ConfigError as error:
        raise NotRepeatableError(str(error)) from error
    return Space(before, keys), Setting.of({change.place: change.new for change in changes})
