"""A period at a glance: every rule of the set, the places where rules fire, and single numbers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import polars as pl

from brokerlab.lifecycle.timeouts import decision_table
from brokerlab.lifecycle.waits.firings import (
    HOUR_US,
    RULE,
    usual_limits,
    wait_of_jobs,
    wasted_waiting,
    with_names,
)
from brokerlab.lifecycle.waits.period import UNIT_COLUMNS, Waiting
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
