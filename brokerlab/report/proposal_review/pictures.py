"""The chart of the review: its frame, and a title that says what was found."""

from __future__ import annotations

from pathlib import Path

import polars as pl

from brokerlab.charts import proposals as charts
from brokerlab.charts import theme
from brokerlab.report.content import Picture
from brokerlab.report.proposal_review import sentences as say
from brokerlab.report.proposal_review.study import Item, Study
from brokerlab.words import number, thin

PER_PROPOSAL = 10
"""Effects drawn of each proposal, the first ones of its document."""
WHOLE_FROM = 10
"""Changes from here on are written without decimals [%]."""
SCHEMA = {
    **dict.fromkeys(["proposal", "quantity", "words"], pl.String),
    **dict.fromkeys(["diff_pct", "lo_pct", "hi_pct"], pl.Float64),
    "sure": pl.Boolean,
}


def draw(study: Study, folder: Path) -> dict[str, Picture]:
    """Draw the chart if there is anything to draw, and save it."""
    drawn = effects(study)
    if drawn is None:
        return {}
    chart, finding = drawn
    theme.save(chart, folder, "effects")
    return {"effects": Picture(chart="effects", alt=finding)}


def effects(study: Study) -> tuple[charts.Chart, str] | None:
    """Draw every effect of the agenda in per cent of what it is now; null without any."""
    shown = frame(study.decide)
    if shown.is_empty():
        return None
    told = say.all_effects(study)
    sure = sum(say.certainty(effect) == say.SURE for effect in told)
    finding = (
        f"{sure} of {say.counted(len(told), 'effect')} lie beyond doubt; the others may be nothing"
    )
    if sure == len(told):
        finding = f"{say.counted(sure, 'effect')}, beyond doubt on the proof periods"
    sample = "Change in per cent of the present value, with its interval; hollow: the interval includes no change"
    if left := len(told) - shown.height:
        sample += f". {say.counted(left, 'effect')} more in the tables"
    return charts.effects_chart(shown, finding=thin(finding), sample=thin(sample)), thin(finding)


def frame(items: tuple[Item, ...]) -> pl.DataFrame:
    """Return the effects that can be drawn, relative to what is now."""
    rows = []
    for item in items:
        usable = [e for e in item.effects if e.current and say.certainty(e) != "unchanged"]
        for effect in usable[:PER_PROPOSAL]:
            if not effect.current or effect.difference is None:
                continue
            scale = 100 / abs(effect.current)
            value = scale * effect.difference
            low, high = (None if end is None else scale * end for end in (effect.low, effect.high))
            rows.append(
                (f"{item.label}. {say.origin(item)}", effect.quantity, _words(value, low, high),
                 value, low, high, say.certainty(effect) == say.SURE)
            )  # fmt: skip
    return pl.DataFrame(rows, schema=SCHEMA, orient="row")


def _words(value: float, low: float | None, high: float | None) -> str:
    places = 1 if abs(value) < WHOLE_FROM else 0
    ends = ""
    if low is not None and high is not None and low != high:
        ends = f" ({_signed(low, places)} to {_signed(high, places)})"
    return f"{_signed(value, places)} %{ends}"


def _signed(value: float, places: int) -> str:
    text = number(value, places)
    return f"+{text}" if round(value, places) > 0 else text
