"""All that can be said of the waiting of a period: its rules, other limits, places, fast rebrokerage, the other rule set."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from brokerlab.lifecycle.timeouts import decision_table
from brokerlab.lifecycle.waits.fast import FastOver, fast_rebrokerage_over
from brokerlab.lifecycle.waits.firings import (
    HOUR_US,
    RULE,
    firings_over_time,
    usual_limits,
    wait_of_jobs,
    wasted_waiting,
    with_names,
)
from brokerlab.lifecycle.waits.limits import (
    HALVED_AND_DOUBLED,
    SCALES,
    RuleSetComparison,
    compare_rule_sets,
    fired_before,
    limit_changes,
    other_limits,
    undecided_by_end,
)
from brokerlab.lifecycle.waits.period import UNIT_COLUMNS, Waiting
from brokerlab.times import grain
from brokerlab.units import HOUR_S

HEARTBEAT_RULES = ("heartbeat", "heartbeat_transferring", "x_transferring_user")
"""Rules that fire for silence."""
BEFORE_START = range(1, 9)
"""Numbers of the rules about jobs that have not started, ``pending`` to ``sent``."""
STRATA = {
    "computingsite": "queue",
    "gshare": "gshare",
    "prodsourcelabel": "label",
    "priority": "priority",
}
"""Columns by which firings are worth dividing, and what they are called."""


def by_rule(
    waiting: Waiting, firings: pl.DataFrame, *, n_boot: int = 0, seed: int = 1
) -> pl.DataFrame:
    """Add firings up by rule, those that never fire among them.

    One row per rule of the set, in order: the columns of :func:`brokerlab.lifecycle.waits.wasted_waiting` and of
    :func:`brokerlab.lifecycle.waits.wait_of_jobs`, ``limit_h`` (of most jobs where queues differ), ``spared`` with
    its ends (jobs that only paused queues and disableReassign save, null for none), ``name``. Of a rule that never
    fires ``jobs`` is 0, null where the archive has no job in its statuses; all else is null.
    """
    rule = list(RULE)
    draws: dict[str, Any] = {"units": waiting.units["unit"], "n_boot": n_boot, "seed": seed}
    table = wasted_waiting(firings, **draws)
    table = table.join(wait_of_jobs(firings), on=rule).join(usual_limits(firings), on=rule)
    none = pl.when("seen").then(0.0)
    quiet = quiet_rules(waiting, firings).select(*RULE, "limit_h", jobs=none)
    spared = wasted_waiting(waiting.exempted(firings), **draws).select(
        *RULE, pl.col("jobs", "jobs_lo", "jobs_hi").name.map(lambda n: n.replace("jobs", "spared"))
    )
    every = pl.concat([table, quiet], how="diagonal").join(spared, on=rule, how="left")
    return with_names(every.sort(rule))


def by_level(
    waiting: Waiting,
    firings: pl.DataFrame,
    strata: Mapping[str, str] = STRATA,
    *,
    n_boot: int = 0,
    seed: int = 1,
) -> pl.DataFrame:
    """Add firings up by rule and each of several columns.

    ``stratum`` (the name, in the given order), ``level`` (``none`` where null), the columns of
    :func:`brokerlab.lifecycle.waits.wasted_waiting`, ``name``; within a stratum most jobs first.
    """
    parts = []
    for column, name in strata.items():
        result = wasted_waiting(
            firings.with_columns(level=pl.col(column).fill_null("none")),
            by=["level", *RULE],
            units=waiting.units["unit"],
            n_boot=0 if column == UNIT_COLUMNS[waiting.unit] else n_boot,
            seed=seed,
        )
        ordered = result.sort("jobs", "level", "number", descending=[True, False, False])
        parts.append(ordered.select(pl.lit(name).alias("stratum"), pl.all()))
    return with_names(pl.concat(parts))


def numbers_of(waiting: Waiting, firings: pl.DataFrame) -> dict[str, float | None]:
    """Return the single numbers of the period by name.

    ``n_jobs``, ``n_fired`` (jobs that any rule times out), ``n_units``, ``n_queues``, ``n_exempt_queues``, ``n_unlogged``, ``n_live``, ``n_beating``, ``n_silent``,
    ``n_ran``, ``n_lost``, ``lost_h``, ``waited_h``, ``waited_before_start_h`` (of it, until a rule fired), ``fresh_h``.
    """
    return {
        "n_jobs": waiting.total("n_jobs"),
        "n_fired": firings["pandaid"].n_unique(),
        "n_units": waiting.units.height,
        "n_queues": waiting.histories.places.height,
        "n_exempt_queues": waiting.n_exempt_queues,
        "n_unlogged": waiting.n_unlogged,
        "n_live": waiting.n_live,
        "n_beating": waiting.n_beating,
        "n_silent": n_silent(waiting),
        "n_ran": waiting.total("n_ran"),
        "n_lost": waiting.total("n_lost"),
        "lost_h": waiting.total("lost_us") / HOUR_US,
        "waited_h": waiting.waited_h,
        "waited_before_start_h": waited_before_start_h(waiting, firings),
        "fresh_h": waiting.fresh_h,
    }


def n_silent(waiting: Waiting) -> int:
    """Count the live jobs silent for longer than their limit at the end of the archive, whatever the period."""
    fired = waiting.histories.fired()
    silent = fired.filter(pl.col("rule").is_in(HEARTBEAT_RULES), outcome="waiting")
    return silent["pandaid"].n_unique()


def waited_before_start_h(waiting: Waiting, firings: pl.DataFrame) -> float:
    """Add up what of `waited_h` jobs waited until a rule about jobs before their start fired, once each [h]."""
    first = firings.filter("first", pl.col("number").is_in(BEFORE_START))
    since = pl.max_horizontal("since", pl.lit(waiting.start))
    inside = first.select((pl.col("fires") - since).dt.total_microseconds().sum()).item()
    return float(inside) / HOUR_US


def quiet_rules(waiting: Waiting, firings: pl.DataFrame) -> pl.DataFrame:
    """Return the rules that never fire.

    ``number, rule, action, statuses`` (separated by blanks), ``limit_h``, ``seen`` (whether the archive has any
    job in one of these statuses).
    """
    table = decision_table(rules=waiting.rules, config=waiting.config)
    rest = table.join(firings, on=["rule", "action"], how="anti", maintain_order="left")
    seen = [bool(waiting.statuses.intersection(names)) for names in rest["statuses"]]
    return rest.select(
        *RULE, pl.col("statuses").list.join(" "), "limit_h", seen=pl.Series(seen, dtype=pl.Boolean)
    )  # fmt: skip


def late_rules(waiting: Waiting, limits: pl.DataFrame) -> pl.DataFrame:
    """Return the rules of which the doubled limit is more than half the period: they fire too seldom in it.

    ``rule, limit_h``.
    """
    half_h = (waiting.end - waiting.start).total_seconds() / HOUR_S / 2
    table = decision_table(rules=waiting.rules, config=waiting.config)
    own = limits.filter("is_current").select("rule", "action", own="limit_h")
    known = table.join(own, on=["rule", "action"], how="left", maintain_order="left")
    as_set = known.select("rule", limit_h=pl.coalesce("own", "limit_h"))
    late = as_set.filter(2 * pl.col("limit_h") > half_h)
    return late.unique("rule", keep="first", maintain_order=True)


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
