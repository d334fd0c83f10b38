"""What is answered when a proposal is asked whether it still holds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from types import MappingProxyType
from typing import Any, Literal

import polars as pl

from brokerlab.calibrate.judge import Judgement
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
    **dict.fromkeys(["told", "told_lo", "told_hi", "found", "found_lo", "found_hi"], pl.Float64),
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
        effects: What the proposal told against what the later data say, one row per effect: ``quantity, unit`` (of
            the difference proposed minus current; totals in per cent of current, for archives differ in length)``,
            told, told_lo, told_hi, found, found_lo, found_hi, apart`` (the intervals do not meet; null = no interval).
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


def refused(error: InsufficientDataError) -> Drift:
    """Return the answer where nothing was scored."""
    status: Status = "cannot_be_checked" if isinstance(error, NotRepeatableError) else "cannot_tell"
    return Drift(status, f"{WORDS[status]}: {error}")


def status_of(
    judgement: Judgement,
    loss: Mapping[str, float | None],
    *,
    keep: bool,
    kept: bool = True,
    kept_before: bool = True,
    broken_before: bool = False,
) -> Status:
    """Return the answer that follows from the judge asked on later data, with the accepted setting as the current one.

    Args:
        judgement: Of the judge.
        loss: ``diff_lo, diff_hi``: objective of the accepted setting less that of the one before (null: no interval).
        keep: The proposal kept the setting, there is no other one before.
        kept: The accepted setting keeps its limits.
        kept_before: The one before keeps them.
        broken_before: The one before breaks one, by its interval.

    Returns:
        ``does_not_hold``: another setting is shown to be better now, or the accepted one breaks a limit by its interval, or it costs
        more than the one before, which keeps the limits. ``holds``: nothing is better and an effect that matters would have been seen,
        or the limits are kept and, for a change, the setting before costs more or breaks a limit, by their intervals.
        ``cannot_tell``: anything between, or too few units.
    """
    if judgement.case == "few":
        return "cannot_tell"
    low, high = loss["diff_lo"], loss["diff_hi"]
    worse = not keep and low is not None and low > 0 and kept_before
    if judgement.acts or judgement.case == "breach" or worse:
        return "does_not_hold"
    gained = keep or (high is not None and high < 0) or broken_before
    return "holds" if judgement.kind == "keep" or (gained and kept) else "cannot_tell"


def judged_in_words(judgement: Judgement, setting: str) -> str:
    """Say what the judge says of the accepted setting.

    Args:
        judgement: Of the judge.
        setting: The one that it proposes, in words.
    """
    if judgement.acts:
        return f"{setting} is better now"
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
    said = " ".join(
        f"({i}) {title}: {drift.sentence}" for i, (title, drift) in enumerate(parts, start=1)
    )
    effects = [
        drift.effects.with_columns(pl.format("({}) {}", pl.lit(i), "quantity").alias("quantity"))
        for i, (_, drift) in enumerate(parts, start=1)
    ]
    head = f"{WORDS[worst]}: {n} of {len(parts)} parts hold"
    return Drift(worst, f"{head}. {said}", pl.concat(effects))


def data_end(proposal: Proposal) -> datetime | None:
    """Return the end of the data that a proposal was made from; null = it does not tell."""
    return max((window.end for window in proposal.evidence.windows), default=None)


def apart(
    low: float | None, high: float | None, other_low: float | None, other_high: float | None
) -> bool | None:
    """Whether two intervals do not meet; null without two intervals.

    Example:
        >>> apart(1, 2, 3, 4), apart(1, 3, 2, 4), apart(1, 2, None, None)
        (True, False, None)
    """
    if low is None or high is None or other_low is None or other_high is None:
        return None
    return high < other_low or other_high < low


def effects_beside(
    proposal: Proposal, found: Mapping[tuple[str, str], tuple[Mapping[str, Any], bool]]
) -> pl.DataFrame:
    """Set what a proposal says beside what is seen now, see :attr:`Drift.effects`.

    Args:
        proposal: The proposal.
        found: Label and unit of an effect to its row, and whether it is a total, which is compared in per cent of before.
    """
    rows = []
    for effect in proposal.evidence.effects:
        row, total = found.get((effect.quantity, effect.unit), ({}, False))
        if not row or effect.difference is None:
            continue
        told: list[float | None] = [effect.difference, effect.low, effect.high]
        if total:
            told = [percent_of(end, effect.current) for end in told]
        name = "diff_pct" if total else "diff"
        here = [row[f"{name}{end}"] for end in ("", "_lo", "_hi")]
        if told[0] is None or here[0] is None:
            continue
        unit = "% of before" if total else effect.unit
        rows.append((effect.quantity, unit, *told, *here, apart(*told[1:], *here[1:])))
    return pl.DataFrame(rows, schema=SCHEMA, orient="row")


def apart_in_words(effects: pl.DataFrame) -> str:
    """Say how many effects lie apart from those that the proposal says."""
    known = effects.filter(pl.col("apart").is_not_null())
    names = known.filter("apart")["quantity"].to_list()
    told = f"{len(names)} of {known.height} effects lie apart from the proposal's"
    return f"{told}{': ' if names else ''}{', '.join(names)}"
