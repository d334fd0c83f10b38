"""What is answered when a proposal is asked whether it still holds: the judge again, with what was accepted as current."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from types import MappingProxyType
from typing import Any, Literal

import polars as pl

from brokerlab.calibrate.judge import MIN_UNITS, Judgement
from brokerlab.errors import InsufficientDataError
from brokerlab.gdpconfig.proposal import Proposal
from brokerlab.numerics import percent_of
from brokerlab.words import short_percent

Status = Literal["holds", "does_not_hold", "cannot_tell", "cannot_be_checked"]
WORDS: Mapping[Status, str] = MappingProxyType(
    {
        "holds": "Holds",
        "does_not_hold": "Does not hold",
        "cannot_tell": "Cannot tell",
        "cannot_be_checked": "Cannot be checked",
    }
)
WEIGHT: tuple[Status, ...] = ("holds", "cannot_be_checked", "cannot_tell", "does_not_hold")
"""Answers about parts, the last one decides about the whole."""
SCHEMA = {
    "quantity": pl.String,
    "unit": pl.String,
    **dict.fromkeys(
        [f"{side}{end}" for side in ("stated", "measured") for end in ("", "_lo", "_hi")],
        pl.Float64,
    ),
    "apart": pl.Boolean,
}
"""Columns of :attr:`Drift.effects`."""


class NotRepeatableError(InsufficientDataError):
    """Raised when a proof cannot be repeated on any archive."""


@dataclass(frozen=True)
class Drift:
    """Whether a proposal still holds.

    Attributes:
        status: ``holds``; ``does_not_hold`` (refuted by an interval); ``cannot_tell`` (this archive does not say);
            ``cannot_be_checked`` (no archive could: the proof cannot be repeated).
        sentence: With numbers and their certainty.
        effects: What the proposal states against what the later data show, one row per effect: ``quantity, unit`` (of
            the difference proposed minus current; totals in per cent of current, for archives differ in length)``,
            stated, stated_lo, stated_hi, measured, measured_lo, measured_hi, apart`` (the intervals do not meet; null = no interval).
        judgement: What the judge says of the accepted setting on the later data; null = it was not asked.
        window: First and last time of what was scored; null = nothing was, or it is not known.
    """

    status: Status
    sentence: str
    effects: pl.DataFrame = field(default_factory=lambda: pl.DataFrame(schema=SCHEMA))
    judgement: Judgement | None = None
    window: tuple[datetime, datetime] | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain values, times as text."""
        return {
            "status": self.status,
            "sentence": self.sentence,
            "effects": self.effects.to_dicts(),
            "window": None if self.window is None else [time.isoformat() for time in self.window],
            "judgement": None if self.judgement is None else self.judgement.to_dict(),
        }


@dataclass(frozen=True, kw_only=True)
class Again:
    """What a kind of setting brings to be asked again.

    Attributes:
        judgement: On later data, with what was accepted as the current setting.
        table: The setting before the proposal, of a keep the accepted one, and the accepted one on all units, see
            :meth:`Judgement.between`.
        where: The data, in words.
        findings: What the table says, in words.
        better: The setting that the judge proposes, in words.
        effects: Label and unit of an effect to its row, and whether it is a total, which is compared in per cent of before.
        units: What was judged on, in the plural.
        window: See `Drift`.
        notes: What the data cannot tell, in sentences.
    """

    judgement: Judgement
    table: pl.DataFrame
    where: str
    findings: str
    better: str
    effects: Mapping[tuple[str, str], tuple[Mapping[str, Any], bool]]
    units: str
    window: tuple[datetime, datetime]
    notes: Sequence[str] = ()


def answered(proposal: Proposal, again: Callable[[], Again]) -> Drift:
    """Return whether a proposal holds, by what its kind brings; where nothing can be scored, why not.

    ``does_not_hold``: another setting is shown to be better now, or the accepted one breaks a limit by its interval, or it
    costs more than the one before, which keeps the limits. ``holds``: nothing is better and an effect that matters would have
    been seen, or the limits are kept and, for a change, the setting before costs more or breaks a limit, by their
    intervals. ``cannot_tell``: anything between, or too few units.
    """
    try:
        asked = again()
    except InsufficientDataError as error:
        return refused(error)
    judgement = asked.judgement
    status = _status(judgement, asked.table, keep=proposal.kind == "keep")
    effects = _effects_beside(proposal, asked.effects)
    parts = [asked.findings, _judged_in_words(judgement, asked.better, asked.units)]
    known = effects.filter(pl.col("apart").is_not_null())
    if known.height:
        names = known.filter("apart")["quantity"].to_list()
        apart = f"{len(names)} of {known.height} effects lie apart from the proposal's"
        parts.append(": ".join([apart, ", ".join(names)]) if names else apart)
    sentence = " ".join([f"{WORDS[status]} on {asked.where}: {'; '.join(parts)}.", *asked.notes])
    return Drift(status, sentence, effects, judgement, asked.window)


def refused(error: InsufficientDataError) -> Drift:
    """Return the answer where nothing was scored."""
    status: Status = "cannot_be_checked" if isinstance(error, NotRepeatableError) else "cannot_tell"
    return Drift(status, f"{WORDS[status]}: {error}")


def _status(judgement: Judgement, table: pl.DataFrame, *, keep: bool) -> Status:
    """Return the answer that follows from the judge and from the settings before (``before``) and accepted (``after``)."""
    if judgement.case == "few":
        return "cannot_tell"
    objective = pl.col("quantity") == judgement.question.objective
    low, high = table.filter(objective).select("diff_lo", "diff_hi").row(0)
    limits = table.drop_nulls("limit")
    kept_before = (limits["before"] <= limits["limit"]).all()
    worse = not keep and low > 0 and kept_before
    if judgement.acts or judgement.case == "breach" or worse:
        return "does_not_hold"
    gained = keep or high < 0 or (limits["before_lo"] > limits["limit"]).any()
    kept = (limits["after"] <= limits["limit"]).all()
    return "holds" if judgement.kind == "keep" or (gained and kept) else "cannot_tell"


def _judged_in_words(judgement: Judgement, better: str, units: str) -> str:
    """Say what the judge says of the accepted setting."""
    if judgement.case == "few":
        return f"{MIN_UNITS} {units} are needed"
    if judgement.acts:
        return f"{better} is better now"
    if judgement.case == "breach":
        return "it breaks the limit, and no other setting is shown to be better"
    if judgement.case == "unconfirmed":
        return "settings chosen on earlier units were better, the last choice is not"
    if judgement.smallest_seen is None:
        return "no other setting keeps the limit"
    seen = short_percent(judgement.smallest_seen)
    if judgement.kind == "keep":
        return f"nothing tried is better, a gain of more than {seen} would have been seen"
    return f"nothing tried is shown to be better, a gain of up to {seen} is not excluded"


def unmerged(proposal: Proposal) -> None:
    """Refuse a proposal whose proof is that of others.

    Raises:
        NotRepeatableError: It was merged, or takes another back.
    """
    if proposal.sources or proposal.takes_back:
        how = "merged from others" if proposal.sources else "one that takes another back"
        raise NotRepeatableError(f"the proposal is {how}: ask of each of those it comes from")


def all_of(parts: Sequence[tuple[str, Drift]]) -> Drift:
    """Return the answer about a merged proposal: it holds if every part does.

    Args:
        parts: Title and answer of each part, in the order of the document.

    Returns:
        The worst answer, the effects of all with the number of their part in front.
    """
    worst = max((drift.status for _, drift in parts), key=WEIGHT.index)
    n = sum(drift.status == "holds" for _, drift in parts)
    sentences = " ".join(
        f"({i}) {title}: {drift.sentence}" for i, (title, drift) in enumerate(parts, start=1)
    )
    effects = [
        drift.effects.with_columns(pl.format("({}) {}", pl.lit(i), "quantity").alias("quantity"))
        for i, (_, drift) in enumerate(parts, start=1)
    ]
    head = f"{WORDS[worst]}: {n} of {len(parts)} parts hold"
    return Drift(worst, f"{head}. {sentences}", pl.concat(effects))


def data_end(proposal: Proposal) -> datetime | None:
    """Return the end of the data that a proposal was made from; null = it does not tell."""
    return max((window.end for window in proposal.evidence.windows), default=None)


def _effects_beside(
    proposal: Proposal, measured: Mapping[tuple[str, str], tuple[Mapping[str, Any], bool]]
) -> pl.DataFrame:
    """Set what a proposal says beside what is seen now, see :attr:`Drift.effects`."""
    rows = []
    for effect in proposal.evidence.effects:
        row, total = measured.get((effect.quantity, effect.unit), ({}, False))
        if not row or effect.difference is None:
            continue
        stated: list[float | None] = [effect.difference, effect.low, effect.high]
        if total:
            stated = [percent_of(end, effect.current) for end in stated]
        name = "diff_pct" if total else "diff"
        here = [row[f"{name}{end}"] for end in ("", "_lo", "_hi")]
        if stated[0] is None or here[0] is None:
            continue
        unit = "% of before" if total else effect.unit
        rows.append((effect.quantity, unit, *stated, *here))
    floats = [name for name, kind in SCHEMA.items() if kind == pl.Float64]
    frame = pl.DataFrame(
        rows, schema={name: SCHEMA[name] for name in ("quantity", "unit", *floats)}, orient="row"
    )
    below = pl.col("stated_hi") < pl.col("measured_lo")
    return frame.with_columns(apart=below | (pl.col("measured_hi") < pl.col("stated_lo")))
