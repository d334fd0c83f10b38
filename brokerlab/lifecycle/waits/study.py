"""All that can be said of the waiting of a period: its rules, other limits, places, fast rebrokerage, the other rule set."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from brokerlab.lifecycle.waits.fast import FastOver, fast_rebrokerage_over
from brokerlab.lifecycle.waits.firings import firings_over_time, wasted_waiting
from brokerlab.lifecycle.waits.limits import (
    HALVED_AND_DOUBLED,
    SCALES,
    fired_before,
    limit_changes,
    other_limits,
    undecided_by_end,
)
from brokerlab.lifecycle.waits.overview import by_level, by_rule, numbers_of
from brokerlab.lifecycle.waits.period import Waiting
from brokerlab.lifecycle.waits.rule_sets import RuleSetComparison, compare_rule_sets
from brokerlab.times import grain

FAST_NUMBERS = ("queued", "n_slots", "n_places_as_set", "moved_as_set")


@dataclass(frozen=True, kw_only=True)
class WaitingStudy:
    """What waiting costs in a period."""

    # row of `brokerlab.lifecycle.waits.wasted_waiting`: every job once, by its first rule
    total: dict[str, Any]
    rules: pl.DataFrame  # see `brokerlab.lifecycle.waits.by_rule`
    # see `brokerlab.lifecycle.waits.firings_over_time`; steps of a day, or of a week in long periods
    by_time: pl.DataFrame
    levels: pl.DataFrame  # see `brokerlab.lifecycle.waits.by_level`
    # what only paused queues and disableReassign prevent, by rule as in `total`
    exempted: pl.DataFrame
    limits: pl.DataFrame  # see `brokerlab.lifecycle.waits.other_limits`
    changes: pl.DataFrame  # see `brokerlab.lifecycle.waits.limit_changes`
    undecided: pl.DataFrame  # see `brokerlab.lifecycle.waits.undecided_by_end`
    fast: FastOver | None  # null where no queue and share ever has a job at an instant
    rule_sets: RuleSetComparison  # see `brokerlab.lifecycle.waits.compare_rule_sets`
    # those of `brokerlab.lifecycle.waits.numbers_of`; ``n_spared`` (jobs of `exempted`), ``n_instants``,
    # ``n_any`` and ``n_different`` of `rule_sets`; with `fast` its `FAST_NUMBERS`
    numbers: dict[str, Any]


def study_waiting(
    waiting: Waiting,
    counts: pl.DataFrame,
    instants: pl.DataFrame,
    *,
    scales: Sequence[float] = SCALES,
    n_boot: int = 0,
    seed: int = 1,
) -> WaitingStudy:
    """Judge the waiting of a period, read with ``least`` at most the smallest of ``scales`` (and a half), else a ConfigError."""
    again: dict[str, Any] = {"n_boot": n_boot, "seed": seed}
    draws: dict[str, Any] = {"units": waiting.units["unit"], **again}
    every_scale = sorted({*scales, 1.0, *HALVED_AND_DOUBLED})
    by_scale = {scale: waiting.firings(scale) for scale in every_scale}
    fired = by_scale[1.0]
    compared = compare_rule_sets(waiting, fired, **again)
    fast = fast_rebrokerage_over(waiting, counts, instants, **again)
    limits = other_limits(by_scale, **draws)
    spared = waiting.exempted(fired)
    numbers = numbers_of(waiting, fired) | {
        "n_spared": spared["pandaid"].n_unique(),
        "n_instants": instants.height,
        "n_halved_before": fired_before(fired, by_scale[HALVED_AND_DOUBLED[0]]),
        **{name: getattr(compared, name) for name in ("n_any", "n_different")},
        **({name: getattr(fast, name) for name in FAST_NUMBERS} if fast else {}),
    }
    return WaitingStudy(
        total=wasted_waiting(fired.filter("first"), by=(), **draws).row(0, named=True),
        rules=by_rule(waiting, fired, **again),
        by_time=firings_over_time(
            fired,
            every=grain((waiting.start, waiting.end)),
            start=waiting.start,
            end=waiting.end,
            **draws,
        ),
        levels=by_level(waiting, fired, **again),
        exempted=wasted_waiting(spared, **draws),
        limits=limits,
        changes=limit_changes(waiting, limits),
        undecided=undecided_by_end(by_scale),
        fast=fast,
        rule_sets=compared,
        numbers=numbers,
    )
