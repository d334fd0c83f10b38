"""Proposals on thresholds: the old and the new values simulated again, on later tasks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import polars as pl

from brokerlab.calibrate.drift.answer import (
    SCHEMA,
    WORDS,
    Drift,
    NotRepeatableError,
    Status,
    apart,
    refused,
    unmerged,
)
from brokerlab.calibrate.thresholds import (
    QUANTITIES,
    Limits,
    Period,
    Proof,
    Replications,
    WhatIf,
    threshold_of,
)
from brokerlab.calibrate.thresholds.calibration import Validated
from brokerlab.calibrate.thresholds.choice import LEAST, RELATIVE
from brokerlab.calibrate.thresholds.intervals import Draw
from brokerlab.calibrate.thresholds.proof import prove
from brokerlab.calibrate.thresholds.runs import Runs
from brokerlab.calibrate.thresholds.settings import Key, Setting, Space
from brokerlab.calibrate.thresholds.sweep import Sweep
from brokerlab.errors import ConfigError, InsufficientDataError
from brokerlab.gdpconfig import Config
from brokerlab.gdpconfig.proposal import Proposal
from brokerlab.numerics import percent_of
from brokerlab.words import days_of

LATER = 2_000_000
"""Seeds lie so far from those of the choice; those of the proof lie between."""
LIMIT = "limit_"
"""Begins the names of the document's limits."""


def is_of_thresholds(proposal: Proposal) -> bool:
    """Whether a proposal was proven by simulating thresholds."""
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
    """Simulate the values before a proposal and those it asks for on a later period.

    Args:
        proposal: Of :func:`brokerlab.calibrate.thresholds.calibrate`, of kind "change".
        what_if: The simulation.
        period: A period after the proposal's own data.
        config: The configuration of the later archive; for keys that are not in the proposal.
        validation: Whether the simulation gives back what was seen in that period; null: the caller vouches for it.

    Returns:
        A :class:`Drift`. ``holds``: what the proof asked is met again. ``does_not_hold``: the objective is higher, or a
        limit is broken, beyond doubt. ``cannot_tell``: anything between, too few tasks, or a simulation that is not to be
        believed there. ``cannot_be_checked``: a keep, which compared many settings, or a document that does not tell its
        objective and limits.

    Source: design.md, idea 6.
    """
    try:
        asked = _asked(proposal, config)
        if validation is not None and not validation.ok:
            return Drift("cannot_tell", f"Cannot tell: {validation.sentence.removeprefix('No answer: ')}")  # fmt: skip
        runs = Runs(what_if)
        sweep = Sweep(
            asked.space, runs, period, asked.objective, asked.replications, asked.draw, asked.seed
        )
        (proof,) = prove(sweep, [asked.setting], asked.limits, relevant=asked.relevant)
    except InsufficientDataError as error:
        return refused(error)
    status = _status(proof, asked)
    where = f"{days_of(period.start, period.end)}, {proof.n_tasks:,} tasks, {proof.replications} simulations of each"
    sentence = f"{WORDS[status]} on {where}: {proof.reason}"
    return Drift(status, sentence, _effects(proposal, proof), window=(period.start, period.end))


@dataclass(frozen=True, kw_only=True)
class _Asked:
    """What is simulated again, as the document tells it."""

    space: Space
    setting: Setting
    objective: str
    limits: Limits
    relevant: float
    draw: Draw
    replications: Replications
    seed: int


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
    first = max(2, int(_number(numbers, "replications", 4)))
    seed = int(_number(numbers, "seed", 0))
    return _Asked(
        space=space,
        setting=setting,
        objective=objective,
        limits=_limits(numbers),
        relevant=_number(numbers, "relevant", 0.0),
        draw=Draw(_number(numbers, "alpha", 0.05), int(_number(numbers, "bootstrap_replicates", 2000)), seed),
        replications=Replications(first=first, most=first),
        seed=seed + LATER,
    )  # fmt: skip


def _number(numbers: Mapping[str, Any], name: str, default: float) -> float:
    value = numbers.get(name, default)
    return float(value) if isinstance(value, int | float) else default


def _limits(numbers: Mapping[str, Any]) -> Limits:
    """Return the limits of the document; those that it does not tell do not hold."""
    told = {name.removeprefix(LIMIT): n for name, n in numbers.items() if name.startswith(LIMIT)}
    known = {name: told.get(name) for name in ("moved_pct", "lost_pct", "unfairness", "unfinished")}
    return Limits(**known, on="point")


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


def _status(proof: Proof, asked: _Asked) -> Status:
    if proof.status == "proven":
        return "holds"
    if proof.table.is_empty() or proof.status == "no_answer":
        return "cannot_tell"
    worse = proof.quantity(asked.objective)["diff_lo"]
    return (
        "does_not_hold"
        if (worse is not None and worse > 0) or _broken(proof, asked.limits)
        else "cannot_tell"
    )


def _broken(proof: Proof, limits: Limits) -> bool:
    """Whether a limit is passed by the whole interval."""
    for name, value in limits.values().items():
        row = proof.quantity(RELATIVE.get(name, name))
        relative = name in RELATIVE
        if row["diff_lo"] is None or (relative and row["before"] <= LEAST[row["quantity"]]):
            continue
        if row["diff_lo"] > (value * row["before"] / 100 if relative else value):
            return True
    return False


def _effects(proposal: Proposal, proof: Proof) -> pl.DataFrame:
    """Set what was told beside what was found; totals as shares of the setting before."""
    lines = {line.label: line for line in QUANTITIES}
    rows = []
    for effect in proposal.evidence.effects:
        line = lines.get(effect.quantity)
        if line is None or effect.difference is None or proof.table.is_empty():
            continue
        found = proof.quantity(line.name)
        told: list[float | None] = [effect.difference, effect.low, effect.high]
        here: list[float | None] = [found[name] for name in ("diff", "diff_lo", "diff_hi")]
        unit = effect.unit
        if line.total:
            told = [percent_of(end, effect.current, least=line.least) for end in told]
            here = [percent_of(end, found["before"], least=line.least) for end in here]
            unit = "% of before"
        if told[0] is None or here[0] is None:
            continue
        rows.append((effect.quantity, unit, *told, *here, apart(*told[1:], *here[1:])))
    return pl.DataFrame(rows, schema=SCHEMA, orient="row")
