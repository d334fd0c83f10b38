"""Proposals on thresholds: the judge again, on the old and the new values simulated on a later period."""

from __future__ import annotations

from dataclasses import replace

import polars as pl
from pydantic import ValidationError

from brokerlab.calibrate.drift.answer import (
    WORDS,
    Again,
    Drift,
    NotRepeatableError,
    answered,
    refused,
    unmerged,
)
from brokerlab.calibrate.simulation import Validation
from brokerlab.calibrate.thresholds import LIMITS, QUANTITIES, Options, Period, WhatIf, threshold_of
from brokerlab.calibrate.thresholds.outcomes import OfCapacity, quantity_of
from brokerlab.calibrate.thresholds.runs import Block, Runs
from brokerlab.calibrate.thresholds.settings import NOW, Key, Setting, Space
from brokerlab.calibrate.thresholds.simulations import LEAST_SPANS, PREFIX, Simulations
from brokerlab.calibrate.thresholds.tables import as_shown
from brokerlab.calibrate.thresholds.words import capacity_unknown, effects, small
from brokerlab.errors import ConfigError, InsufficientDataError
from brokerlab.gdpconfig import Config
from brokerlab.gdpconfig.proposal import Proposal
from brokerlab.words import days_of

OPTIONS = {
    "objective": "objective",
    "relevant": "relevant",
    "alpha": "alpha",
    "n_boot": "bootstrap_replicates",
    "capacity_most": "capacity_most",
    "seed": "seed",
}
"""Option to the name of its number in a document."""
LATER = 2_000_000
"""Seeds lie so far from those of the choice; those of the scored period lie between."""


Asked = tuple[Space, Setting, Options]
"""The configuration before a proposal with its keys, the setting that it asks for, and how to simulate."""


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
    validation: Validation | None = None,
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
        A :class:`Drift`, see :func:`.answer.answered`. ``cannot_tell`` also: the answer depends on unknown slots, or the
        simulation is not to be believed there. ``cannot_be_checked``: a keep, which compared many settings, or a document
        that does not tell its objective.

    Source: calibration.md, sections 2 and 4.
    """
    try:
        asked = _asked(proposal, config)
    except InsufficientDataError as error:
        return refused(error)
    if validation is not None and not validation.ok:
        why = validation.sentence.removeprefix("No answer: ")
        return Drift("cannot_tell", f"{WORDS['cannot_tell']}: {why}")
    drift = answered(proposal, lambda: _again(asked, what_if, period))
    most = asked[2].capacity_most
    if not isinstance(what_if, OfCapacity) or most == 1 or drift.status == "cannot_tell":
        return drift
    if not (unknown := what_if.unknown()):
        return drift
    more = answered(proposal, lambda: _again(asked, what_if.larger(most), period))
    if more.status == drift.status or more.judgement is None:
        return more if more.judgement is None else drift
    reason = capacity_unknown(unknown, drift.sentence, more.sentence)
    return replace(drift, status="cannot_tell", sentence=f"{WORDS['cannot_tell']}: {reason}.")


def _again(asked: Asked, what_if: WhatIf, period: Period) -> Again:
    """Ask the judge under one assumption about slots."""
    space, setting, options = asked
    first = options.seed + LATER
    block = Block(period, tuple(range(first, first + options.most_replications)))
    simulations = Simulations(
        space, options, Runs(what_if), (block,), current=setting, least=2 * LEAST_SPANS
    )
    judgement = simulations.judge([NOW])
    table = judgement.between(NOW, setting)
    n_tasks = simulations.n_tasks()
    shown = as_shown(table, n_tasks)
    broken = table.filter(pl.col("kept").not_())["quantity"].str.strip_prefix(PREFIX)
    limits = [small(quantity_of(LIMITS[name].quantity).label) for name in broken]
    beyond = f"; the limit on {' and '.join(limits)} is broken" if limits else ""
    rows = {row["quantity"]: row for row in shown.to_dicts()}
    other = judgement.setting  # there is one: that before the proposal
    return Again(
        judgement=judgement,
        table=table,
        where=(
            f"{days_of(period.start, period.end)}, {n_tasks:,} tasks, {options.most_replications} simulations of each"
        ),
        findings=f"{effects(options.objective, shown)}{beyond}",
        better="the setting before" if other == NOW else other.name,
        effects={(q.label, q.unit): (rows[q.name], q.total) for q in QUANTITIES},
        units="spans of time",
        window=(period.start, period.end),
    )


def _asked(proposal: Proposal, config: Config) -> Asked:
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
    changes = [change for change in proposal.changes if change.action != "none"]
    before = config.with_values(
        {change.place: None if change.before is None else change.old for change in changes}
    )
    replications = numbers.get("replications", 4)
    fields = {
        **{name: numbers.get(key) for name, key in OPTIONS.items()},
        "replications": replications,
        "most_replications": replications,
        "limits": {name: numbers.get(f"{PREFIX}{name}") for name in LIMITS},
    }
    known = {name: value for name, value in fields.items() if value is not None}
    try:
        keys = tuple(
            Key(change.place, threshold_of(change.key), (change.place,), change.old, mixed=False, grid=(change.old, change.new))
            for change in changes
        )  # fmt: skip
        options = Options.model_validate(known)
    except ConfigError as error:
        raise NotRepeatableError(str(error)) from error
    except ValidationError as error:
        raise NotRepeatableError(f"the proposal's numbers are no options: {error}") from error
    setting = Setting.of({change.place: change.new for change in changes})
    return Space(before, keys), setting, options
