"""What other numbers and other rules would change about the classes of queues, and what sets the limits as they are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import polars as pl

from brokerlab.errors import ConfigError, nearest
from brokerlab.intervals import N_BOOT, Formula, clustered
from brokerlab.lifecycle.class_history.period import KEYS
from brokerlab.lifecycle.class_history.ratings import PARTS, RANK, STATISTICS, QueueRatings
from brokerlab.lifecycle.classification import ClassRules
from brokerlab.lifecycle.classification.wait_stats import LARGEST_S
from brokerlab.rulesets import single_switches, switch_by_switch
from brokerlab.units import HOUR_S

LIMITS = (
    "hi_test",
    "percentile_basis",
    "percentile_low",
    "percentile_high",
    "empty_percentile",
    "recent_activity",
)
"""Switches that alter what the statistics of the waits are compared with."""
NAMES = {
    "percentile_low": ("lower percentile", "%"),
    "percentile_high": ("upper percentile", "%"),
    "hi_limit_hours": ("least hi limit", "h"),
    "lo_limit_hours": ("least lo limit", "h"),
    "short_queue_jobs": ("long queue", "jobs"),
}
"""Number of the rules: what it is, its unit."""
_MOVED: dict[str, Formula] = {
    "differs": ("differs", "cell"),
    "better": ("better", "cell"),
    "worse": ("worse", "cell"),
    "slots": ("slots_moved", "slots"),
    "jobs": ("jobs_moved", "jobs"),
    "hi": ("hi", "cell"),
    "lo": ("lo", "cell"),
}
"""What another rating moves: shares of cells, of slots and jobs at them, and the classes that come of it."""


def compare_values(
    ratings: QueueRatings,
    values: Mapping[str, Sequence[float]],
    *,
    n_boot: int = N_BOOT,
    seed: int = 1,
) -> pl.DataFrame:
    """Rate the queues with other values of single numbers of the rules.

    One row per number, in their order, and value: ``key, value, current, is_current``, ``what`` (number and value in
    words, such as "least hi limit 2 h"); of all (queue, instant) cells
    the shares [1] ``differs`` (another class, a queue without class taken for mid), ``better``, ``worse``, ``hi`` and
    ``lo`` (then); ``slots, jobs`` (shares [1] of the slots and jobs that are at differing cells), all with ``_lo,
    _hi``; ``n_queues`` whose usual class changes; ``resampled, n_units``.
    """
    if unknown := [key for key in values if key not in NAMES and key not in ratings.rules.SWITCHES]:
        raise ConfigError(f"no number of the rules: {unknown[0]}, {nearest(unknown[0], NAMES)}")
    about, daily = [], []
    for place, (key, tried) in enumerate(values.items()):
        current = float(getattr(ratings.rules, key))
        for value in sorted({*map(float, tried), current}):
            switch: dict[str, Any] = {key: value}
            other = ratings.under(replace(ratings.rules, **switch)).cells
            number = {"place": place, "key": key, "value": value}
            about.append(
                {
                    **number,
                    "current": current,
                    "is_current": value == current,
                    "what": name_value(key, value),
                    "n_queues": _usually_moved(ratings.cells, other),
                }
            )
            literals = {name: pl.lit(part) for name, part in number.items()}
            daily.append(_daily(ratings.cells, other).with_columns(**literals))
    by = ["place", "key", "value"]
    moved = clustered(pl.concat(daily), _MOVED, unit="day", by=by, n_boot=n_boot, seed=seed)
    return pl.DataFrame(about).join(moved, on=by, maintain_order="left").drop("place")


def name_value(key: str, value: float) -> str:
    """Write a number of the rules and its value.

    Example:
        >>> name_value("percentile_low", 0.333), name_value("hi_limit_hours", 2.0), name_value("half_life_hours", 6)
        ('lower percentile 33.3 %', 'least hi limit 2 h', 'half_life_hours 6')
    """
    name, unit = NAMES.get(key, (key, ""))
    return f"{name} {100 * value if unit == '%' else value:g} {unit}".rstrip()


def next_to_current(values: pl.DataFrame) -> pl.DataFrame:
    """Return, of :func:`compare_values`, the rows of the values next below and next above the current ones."""
    place = pl.int_range(pl.len()).over("key")
    current = place.filter("is_current").first().over("key")
    return values.filter((place - current).abs() == 1)


@dataclass(frozen=True, kw_only=True)
class RuleSetComparison:
    """How two rule sets class the same queues."""

    here: QueueRatings  # ratings under the set that is looked at, `there` under the other one
    there: QueueRatings
    # one row per class by the set that is looked at: ``here``; ``hi, mid, lo, none``: the shares [1] of all
    # cells that have this class by the other one
    matrix: pl.DataFrame
    # one row as of `compare_values` without values: what the other set moves
    totals: pl.DataFrame
    # one row per switch on which the sets differ about queues, see `brokerlab.rulesets.switch_by_switch`,
    # with ``share, share_lo, share_hi`` [1] of the cells that it alone moves
    switches: pl.DataFrame


def compare_rule_sets(
    ratings: QueueRatings, other: ClassRules, *, n_boot: int = N_BOOT, seed: int = 1
) -> RuleSetComparison:
    """Class the same queues by another rule set, and by each of its differences alone."""
    other = replace(other, wait_time=ratings.rules.wait_time)
    there = ratings.under(other)
    totals = clustered(
        _daily(ratings.cells, there.cells), _MOVED, unit="day", n_boot=n_boot, seed=seed
    )
    return RuleSetComparison(
        here=ratings,
        there=there,
        matrix=_matrix(ratings.cells, there.cells),
        totals=totals,
        switches=_by_switch(ratings, other, n_boot=n_boot, seed=seed),
    )


def _matrix(here: pl.DataFrame, there: pl.DataFrame) -> pl.DataFrame:
    both = pl.DataFrame({"here": here["class_name"], "there": there["class_name"]})
    shares = {name: (pl.col("there") == name).sum() / max(both.height, 1) for name in PARTS}
    rows = both.group_by("here").agg(**shares)
    every = pl.DataFrame({"here": PARTS})
    return every.join(rows, on="here", how="left", maintain_order="left").fill_null(0.0)


def _by_switch(ratings: QueueRatings, other: ClassRules, *, n_boot: int, seed: int) -> pl.DataFrame:
    # switches that alter classes of tasks only are left as they are
    about_queues = {name: getattr(other, name) for name in (*STATISTICS, *LIMITS)}
    other = replace(ratings.rules, **about_queues)

    @cache
    def outcomes(rules: ClassRules) -> pl.DataFrame:
        return ratings.under(rules).cells.select(*KEYS, "day", "slots", "jobs", "used")

    def decided(rules: ClassRules) -> pl.DataFrame:
        return outcomes(rules).select(*KEYS, "used")

    switches = switch_by_switch(decided, ratings.rules, other, keys=KEYS)
    alone = single_switches(ratings.rules, other)
    if not alone:
        empty = dict.fromkeys(("share", "share_lo", "share_hi"), pl.lit(None, pl.Float64))
        return switches.with_columns(**empty)
    daily = [
        _daily(ratings.cells, outcomes(rules)).with_columns(switch=pl.lit(name))
        for name, rules in alone.items()
    ]
    share: dict[str, Formula] = {"share": ("differs", "cell")}
    moved = clustered(pl.concat(daily), share, unit="day", by=["switch"], n_boot=n_boot, seed=seed)
    return switches.join(
        moved.select("switch", "share", "share_lo", "share_hi"), on="switch", maintain_order="left"
    )


def _daily(here: pl.DataFrame, there: pl.DataFrame) -> pl.DataFrame:
    """Count by day what another rating of the same cells moves."""
    rank = pl.col("used").replace_strict(RANK, return_dtype=pl.Int64)
    table = here.select("day", "slots", "jobs", here=rank).with_columns(
        there.select(there=rank).to_series()
    )
    differs = (pl.col("here") != pl.col("there")).cast(pl.Int64)
    sums = {
        "cell": pl.len(),
        "differs": differs.sum(),
        "better": (pl.col("there") < pl.col("here")).sum(),
        "worse": (pl.col("there") > pl.col("here")).sum(),
        "slots": pl.col("slots").sum(),
        "slots_moved": (differs * pl.col("slots")).sum(),
        "jobs": pl.col("jobs").sum(),
        "jobs_moved": (differs * pl.col("jobs")).sum(),
        "hi": (pl.col("there") == RANK["hi"]).sum(),
        "lo": (pl.col("there") == RANK["lo"]).sum(),
    }
    return table.group_by("day").agg(**sums)


def _usually_moved(here: pl.DataFrame, there: pl.DataFrame) -> int:
    """Count the queues whose commonest class (ties: the better) is another one."""
    rank = pl.col("used").replace_strict(RANK, return_dtype=pl.Int64)
    both = here.select("queue", here=rank).with_columns(there.select(there=rank).to_series())
    usual = both.group_by("queue").agg(pl.col("here", "there").sort().mode().sort().first())
    return usual.filter(pl.col("here") != pl.col("there")).height


def binding_limits(ratings: QueueRatings, *, n_boot: int = N_BOOT, seed: int = 1) -> pl.DataFrame:
    """Say what sets the limits of hi and lo: a percentile of the queues, or the hours that count at least.

    Two rows, hi and lo, none without a limit: ``limit``, ``rank`` [1] of the percentile, ``percentile_s, limit_s``
    (medians over the instants [s]), ``hours_s`` (the limit at least [s]), ``in_class`` (share [1] of the cells with a
    class that have this one); shares [1] of the instants ``by_percentile`` and ``cut`` (the percentile is the
    999,999 s at which upper limits are cut) with ``_lo, _hi``; ``resampled, n_units``.
    """
    rules = ratings.rules
    timed = _limits(ratings)
    medians = timed.group_by("limit").agg(pl.col("percentile_s", "limit_s").median())
    percentile = pl.col("percentile_s")
    table = timed.filter(pl.col("limit_s").is_not_null()).select(
        "limit",
        day=pl.col("at").dt.date(),
        instant=pl.lit(1),
        by_percentile=(percentile > pl.col("hours_s")).fill_null(value=False),
        cut=(percentile >= LARGEST_S).fill_null(value=False),
    )
    formulas = {name: (name, "instant") for name in ("by_percentile", "cut")}
    shares = clustered(table, formulas, unit="day", by=["limit"], n_boot=n_boot, seed=seed)
    classed = ratings.cells["class_name"]
    rows = pl.DataFrame(
        {
            "limit": ["hi", "lo"],
            "in_class": [
                (classed == name).sum() / max(ratings.n_rated, 1) for name in ("hi", "lo")
            ],
            "rank": [float(rules.percentile_low), float(rules.percentile_high)],
            "hours_s": [rules.hi_limit_hours * float(HOUR_S), rules.lo_limit_hours * float(HOUR_S)],
        }
    )
    return rows.join(medians, on="limit", maintain_order="left").join(
        shares, on="limit", maintain_order="left"
    )


def _limits(ratings: QueueRatings) -> pl.DataFrame:
    """Return both limits at every instant: ``at, limit, percentile_s, limit_s, hours_s``."""
    rules = ratings.rules
    timed = ratings.found.percentiles.join(ratings.period.instants, on="snapshot")
    sides = (
        ("hi", "p33", "hi_limit_s", rules.hi_limit_hours),
        ("lo", "p67", "lo_limit_s", rules.lo_limit_hours),
    )
    return pl.concat(
        timed.select(
            "at",
            limit=pl.lit(name),
            percentile_s=percentile,
            limit_s=limit,
            hours_s=pl.lit(hours * float(HOUR_S)),
        )
        for name, percentile, limit, hours in sides
    )
