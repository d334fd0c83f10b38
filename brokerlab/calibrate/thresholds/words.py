"""Words on thresholds: what is to be done with keys, what it changes, for whom, and what an interval holds."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

import polars as pl

from brokerlab.calibrate.thresholds.outcomes import LIMITS, Period
from brokerlab.calibrate.thresholds.settings import Key, Setting, Space, shown
from brokerlab.gdpconfig.proposal import Affected
from brokerlab.words import days_of

NAMED = 5
"""Queues named in a sentence at most."""
COVERS = (
    "other tasks and hours like these, and the luck of the simulation; not another history of this system, of which there "
    "is one, and not a simulation that is wrong"
)
"""What an interval holds, and what it does not."""


def capacity_unknown(queues: Sequence[str], seen: str, more: str) -> str:
    """Say that an answer depends on slots that nobody knows."""
    names = ", ".join(queues[:NAMED]) + (", ..." if len(queues) > NAMED else "")
    return (
        f"capacity of {len(queues)} queues unknown ({names}), and the answer depends on it. With the slots seen in use: {seen} "
        f"With more: {more} Their slots would settle it: in the table slots, or as capacity"
    )


def days(period: Period) -> str:
    """Write the days of a period; its end is not part of it."""
    return days_of(period.start, period.end - timedelta(microseconds=1))


def small(text: str) -> str:
    """Let a sentence go on in the middle of another."""
    return text[:1].lower() + text[1:]


def as_is(keys: Sequence[Key]) -> str:
    """Say what keys are now."""
    if len(keys) > 3:
        return f"all {len(keys)} keys as they are"
    return ", ".join(
        f"{key.name}{' as it is' if key.mixed else f' = {shown(key.current)}'}" for key in keys
    )


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
    """Say what changes: the objective, what limits are on, and what they could be on and are not."""
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
    limits = {one.quantity: one for one in LIMITS.values()}
    for one in table.filter(pl.col("quantity") != objective).iter_rows(named=True):
        if not one["diff"] or one["quantity"] not in limits:
            continue
        of, size = limits[one["quantity"]].of, f"{one['diff']:+.3g}"
        if of:  # of almost nothing there is no per cent
            known = one["diff_pct"] is not None
            size = f"{one['diff_pct']:+.1f} %" if known else f"{size} {one['unit']}"
        limit = "not limited" if one["limit"] is None else f"limit +{one['limit']:g}"
        if of and one["limit"] is not None:
            limit = f"for the same work {one['limited']:+.1f} {one['limit_unit']}, {limit}"
        parts.append(f"{small(one['label'])} {size} ({limit})")
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
