"""A judgement on thresholds in words: what the sentence and the document of the judge say of this kind of setting."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any

import polars as pl

from brokerlab.calibrate.judge import Judgement, Kind
from brokerlab.calibrate.thresholds.case import Case
from brokerlab.calibrate.thresholds.outcomes import LIMITS, Period, quantity_of
from brokerlab.calibrate.thresholds.settings import NOW, Setting, Space, shown
from brokerlab.calibrate.verdict import Verdict, Wording, document_of, evidence_of, sentence_of
from brokerlab.gdpconfig.proposal import Affected, Evidence, Proposal, Window
from brokerlab.words import days_of

RULES = "document"
"""Name of the rule set that simulations decide with."""
NAMED = 5
"""Queues named in a sentence at most."""
LONG = 400
"""Characters of a title at most."""
COVERS = (
    "other tasks and hours like these, and the luck of the simulation; not another history of this system, of which there "
    "is one, and not a simulation that is wrong"
)
"""What an interval holds, and what it does not."""


def refused(case: Case, reason: str) -> Verdict:
    """Say that nothing can be told, for a reason."""
    sentence = reason if reason.startswith("No answer: ") else f"No answer: {small(reason)}"
    return _verdict(case, "no_answer", sentence, None)


def unchanged(case: Case) -> Verdict:
    """Keep keys of which no value changes any decision."""
    sentence = (
        f"Keep {as_is(case.space, case.names)}. No value between the guard rails that was tried changes any decision of "
        "the calibration period."
    )
    windows = _windows(case)[:1]
    evidence = Evidence(sentence, (), windows, (), (), _numbers(case), case.synthetic)
    document = Proposal.to_keep(case.space.config, _places(case), evidence=evidence, **_about(case, NOW))  # fmt: skip
    return _verdict(case, "keep", sentence, document)


def sentence_on(
    case: Case, judgement: Judgement, table: pl.DataFrame, n_tasks: int, unknown: str = ""
) -> str:
    """Put a judgement into a sentence.

    Args:
        case: What was asked.
        judgement: The judgement.
        table: The scored period before and after, see :func:`.compare.as_shown`.
        n_tasks: Its tasks.
        unknown: What the data cannot tell, and what would settle it.
    """
    quantity = quantity_of(case.options.objective)
    now = judgement.candidates.filter("is_current")[quantity.name][0]
    limits = [
        f"{name} +{most:g}{' %' if LIMITS[name].relative else ''}"
        for name, most in case.options.allowed.items()
    ]
    wording = Wording(
        actions=action(case.space, judgement.setting),
        kept=f"Keep {as_is(case.space, case.names)}",
        effects=f"{effects(quantity.name, table)}, {n_tasks:,} tasks of {days(case.periods[1])}",
        now=f"{small(quantity.label)} {now:.3g} {quantity.unit}",
        limit=", ".join(limits) or "none",
        loss=f"the {small(quantity.label)}",
        units="spans of time",
        unknown=unknown,
    )
    return sentence_of(judgement, wording)


def verdict_on(
    case: Case,
    judgement: Judgement,
    sentence: str,
    table: pl.DataFrame,
    strata: pl.DataFrame,
    queues: pl.DataFrame,
    numbers: Mapping[str, float | int | str | None],
) -> Verdict:
    """Return the verdict of a judgement, with its document.

    Args:
        case: What was asked.
        judgement: The judgement.
        sentence: Its sentence.
        table: The scored period before and after, see :func:`.compare.as_shown`.
        strata: See :func:`.compare.by_stratum`.
        queues: See :func:`.compare.by_queue`.
        numbers: Further numbers of the document.
    """
    evidence = evidence_of(
        judgement,
        sentence,
        effects=table,
        windows=_windows(case),
        units="spans",
        numbers={**_numbers(case), **numbers, "inner_limit": judgement.inner},
        helps=affected(strata, queues, ("gains", "emptier")),
        hurts=affected(strata, queues, ("loses", "fuller")),
        synthetic=case.synthetic,
    )
    document = document_of(
        judgement,
        case.space.config,
        case.space.entries(judgement.setting),
        _places(case),
        evidence=evidence,
        **_about(case, judgement.setting),
    )
    return _verdict(case, judgement.kind, sentence, document)


def _verdict(case: Case, kind: Kind, sentence: str, document: Proposal | None) -> Verdict:
    names = [key.name for key in case.space.keys if key.name in case.names]
    subject = ", ".join(names)
    if len(names) > 3:
        subject = f"{', '.join(names[:2])} and {len(names) - 2} more keys"
    return Verdict(kind, sentence, subject, document, information_only=False)


def _windows(case: Case) -> tuple[Window, ...]:
    choice, scored = case.periods
    return Window("choice", *choice), Window("scored", *scored)


def _places(case: Case) -> list[str]:
    return [place for key in case.space.keys if key.name in case.names for place in key.places]


def _about(case: Case, setting: Setting) -> dict[str, Any]:
    title = action(case.space, setting) or f"Keep {as_is(case.space, case.names)}"
    return {
        "title": title if len(title) <= LONG else f"{title[: LONG - 3]}...",
        "created_at": case.created_at,
        "archive_digest": case.archive_digest,
        "rules_digest": RULES,
    }


def _numbers(case: Case) -> dict[str, float | int | str | None]:
    options = case.options
    return {
        "objective": options.objective,
        "alpha": options.alpha,
        "replications": options.most_replications,
        "capacity_most": options.capacity_most,
        "intervals_hold": COVERS,
        "validation": case.why or "none: the caller vouched for the simulation",
        **{f"limit_{name}": value for name, value in options.allowed.items()},
    }


def capacity_unknown(queues: Sequence[str], seen: str, more: str) -> str:
    """Say that an answer depends on slots that nobody knows.

    Args:
        queues: Whose they are.
        seen: The answer with as many slots as were seen.
        more: The answer with more.
    """
    names = ", ".join(queues[:NAMED]) + (", ..." if len(queues) > NAMED else "")
    return (
        f"capacity of {len(queues)} queues unknown ({names}), and the answer depends on it. With the slots seen in use: {seen} "
        f"With more: {more} Their slots would settle it: in the table slots, or as capacity"
    )


def days(period: Period) -> str:
    """Write the days of a period; its end is not part of it.

    Example:
        >>> days(Period(datetime(2026, 3, 1), datetime(2026, 3, 11)))
        '1 to 10 March 2026'
    """
    return days_of(period.start, period.end - timedelta(microseconds=1))


def small(text: str) -> str:
    """Let a sentence go on in the middle of another."""
    return text[:1].lower() + text[1:]


def as_is(space: Space, names: Sequence[str]) -> str:
    """Say what the keys are now."""
    known = [key for key in space.keys if key.name in names]
    if len(known) > 3:
        return f"all {len(known)} keys as they are"
    return ", ".join(f"{key.name}{' as it is' if key.mixed else f' = {shown(key.current)}'}" for key in known)  # fmt: skip


def action(space: Space, setting: Setting) -> str:
    """Say what to do with each key: raise, lower, set; nothing of values that change nothing."""
    parts = []
    for name, value in setting.values:
        key = space.key(name)
        if not space.entries(Setting.of({name: value})):
            continue
        if key.mixed or key.current is None or value is None:
            parts.append(f"set {name} to {shown(value)}")
        else:
            word = "raise" if value > key.current else "lower"
            parts.append(f"{word} {name} from {shown(key.current)} to {shown(value)}")
    text = " and ".join(parts)
    return text[:1].upper() + text[1:]


def effects(objective: str, table: pl.DataFrame) -> str:
    """Say what changes: the objective, and what limits are on."""
    row = table.row(by_predicate=pl.col("quantity") == objective, named=True)
    label = small(row["label"])
    if row["diff_pct"] is not None and row["diff_pct_lo"] is not None:
        gain = (
            f"{label} {-row['diff_pct']:.1f} % less ({-row['diff_pct_hi']:.1f} to {-row['diff_pct_lo']:.1f}; "
            f"{row['before']:.3g} to {row['after']:.3g} {row['unit']})"
        )
    elif row["diff"] is None or row["diff_lo"] is None:
        gain = f"{label} compared without an interval"
    else:
        gain = f"{label} {row['diff']:+.3g} {row['unit']} ({row['diff_lo']:+.3g} to {row['diff_hi']:+.3g})"
    parts = [gain]
    for one in table.filter(pl.col("limit").is_not_null()).iter_rows(named=True):
        if not one["diff"]:
            continue
        relative = one["limit_unit"] == "% of now" and one["diff_pct"] is not None
        change = f"{one['diff_pct']:+.1f} % (limit +{one['limit']:g} %)" if relative else f"{one['diff']:+.3g} (limit +{one['limit']:g})"  # fmt: skip
        parts.append(f"{small(one['label'])} {change}")
    return ", ".join(parts)


def affected(
    strata: pl.DataFrame, queues: pl.DataFrame, verdicts: tuple[str, str]
) -> list[Affected]:
    """Name the levels whose objective falls, or rises, by its whole interval, and the queues that get emptier, or fuller."""
    if strata.is_empty():
        return []
    levels = [
        Affected(
            f"{row['stratum']} {row['level']}",
            f"{row['diff']:+.3g} ({row['diff_lo']:+.3g} to {row['diff_hi']:+.3g}), {row['n_tasks']} tasks",
        )
        for row in strata.filter(verdict=verdicts[0]).sort("stratum", "level").to_dicts()
    ]
    return levels + [
        Affected(
            f"queue {row['panda_queue']}",
            f"{verdicts[1]}: {100 * row['used_before']:.1f} to {100 * row['used_after']:.1f} % of its slots used",
        )
        for row in queues.filter(verdict=verdicts[1]).head(NAMED).to_dicts()
    ]
