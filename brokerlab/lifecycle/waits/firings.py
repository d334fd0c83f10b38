"""Firings of waiting rules: what became of the jobs, added up by rule, queue, share or day."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime

import numpy as np
import polars as pl

from brokerlab.intervals import Formula, clustered
from brokerlab.lifecycle.timeouts.catalogue import URGENT
from brokerlab.lifecycle.timeouts.rule import PRECEDENCE
from brokerlab.units import HOUR_S

RULE = ("number", "rule", "action")  # columns that name a rule: one name may have several actions
OUTCOMES = ("soon", "later", "ended", "still", "undecided")
"""What becomes of a job after a rule fired; every job is one of them."""
MEASURES = ("jobs", "waited_us", "after_us", *OUTCOMES)
"""What is added up: whole numbers of each firing."""
HOUR_US = HOUR_S * 1_000_000


def hours_of(measure: str) -> Formula:
    """Return the total of a measure in microseconds as hours."""
    return lambda sums: sums[measure] / HOUR_US


def _soon_share(sums: Mapping[str, np.ndarray]) -> np.ndarray:
    return np.asarray(sums["soon"] / (sums["jobs"] - sums["undecided"]))


QUANTITIES: Mapping[str, Formula] = {
    "jobs": "jobs",
    "waited_h": hours_of("waited_us"),
    "after_h": hours_of("after_us"),
    **{outcome: outcome for outcome in OUTCOMES},
    "soon_share": _soon_share,
}
"""Quantities of firings, from the totals of `MEASURES`."""


def label_outcomes(
    fired: pl.DataFrame,
    *,
    until: datetime,
    start: datetime | None = None,
    end: datetime | None = None,
    soon_h: float = 1.0,
    unit: str = "computingsite",
) -> pl.DataFrame:
    """Say what became of each job after a rule fired.

    Its columns and ``unit`` (text; ``none`` where null); ``jobs`` (1), ``waited_us`` (until the rule fired [us]),
    ``after_us`` (from then to the end of the wait, or of the history [us]); one of the outcomes is 1, the others 0:
    ``soon`` (went on within ``soon_h``), ``later`` (went on after that), ``ended`` (came to nothing), ``still`` (waits at the end of
    the history), ``undecided`` (so does this one, but less than ``soon_h`` after the rule: nobody knows whether it goes on soon);
    ``priority`` (``urgent``: 800 and more, ``other``); ``first`` (the rule is the first of the job; at the same instant fail comes
    before kill and reassign). Sorted by job and time.

    ``until`` is the end of the history; firings count from ``start`` on and before ``end``; a job that goes on by itself within
    ``soon_h`` [h] was interrupted needlessly; ``unit`` is the column of what is drawn again for intervals.
    """
    inside = fired
    if start is not None:
        inside = inside.filter(pl.col("fires") >= start)
    if end is not None:
        inside = inside.filter(pl.col("fires") < end)
    fires, outcome = pl.col("fires"), pl.col("outcome")
    after = (pl.coalesce("left", pl.lit(until)) - fires).dt.total_microseconds()
    near, waiting = after <= int(soon_h * HOUR_US), outcome == "waiting"
    conditions = {
        "soon": (outcome == "went_on") & near,
        "later": (outcome == "went_on") & ~near,
        "ended": outcome == "came_to_nothing",
        "still": waiting & ~near,
        "undecided": waiting & near,
    }
    urgent = pl.col("currentpriority") >= URGENT
    rows = inside.with_columns(
        unit=pl.col(unit).cast(pl.String).fill_null("none"),
        jobs=pl.lit(1),
        waited_us=(fires - pl.col("since")).dt.total_microseconds(),
        after_us=after,
        priority=pl.when(urgent).then(pl.lit("urgent")).otherwise(pl.lit("other")),
        **{name: condition.cast(pl.Int64) for name, condition in conditions.items()},
    )
    place = pl.col("action").replace_strict(
        {action: place for place, action in enumerate(PRECEDENCE)}, return_dtype=pl.Int64
    )
    ordered = rows.sort("pandaid", "fires", place, "number")
    return ordered.with_columns(first=pl.int_range(pl.len()).over("pandaid") == 0)


def wasted_waiting(
    firings: pl.DataFrame,
    *,
    by: Sequence[str] = RULE,
    units: pl.Series | None = None,
    n_boot: int = 0,
    seed: int = 1,
) -> pl.DataFrame:
    """Add up what jobs waited in vain before a rule fired, and what came after.

    Args:
        firings: Result of :func:`label_outcomes`.
        by: Columns of the groups, the rule unless asked otherwise; none: one row for all firings.
        units: All units to draw again, also those without a firing; null: those of each group.
        n_boot: Bootstrap replicates; 0: no intervals.
        seed: Of the bootstrap.

    Returns:
        One row per group, sorted: ``by``; with ``_lo`` and ``_hi`` (95 %, null with fewer than two units) ``jobs``, ``waited_h``
        (until the rule fired, all jobs), ``after_h`` (from then until the wait ended or the history did, all jobs: what the
        rule spares, at least), the numbers of jobs by outcome, ``soon_share`` (part ``soon`` of the jobs but ``undecided``,
        null without any [1]); ``resampled``, ``n_units``.

    Example:
        >>> from datetime import datetime as at
        >>> fired = pl.DataFrame(
        ...     {"pandaid": [1, 2], "computingsite": "A", "currentpriority": 500, "number": 8, "rule": "sent", "action": "fail",
        ...      "since": at(2026, 3, 1, 0), "fires": at(2026, 3, 1, 2), "left": [at(2026, 3, 1, 3), at(2026, 3, 1, 8)],
        ...      "outcome": "went_on"}
        ... )
        >>> found = wasted_waiting(label_outcomes(fired, until=at(2026, 3, 2)))
        >>> found.select("rule", "jobs", "waited_h", "after_h", "soon", "soon_share").rows()
        [('sent', 2.0, 4.0, 7.0, 1.0, 0.5)]
    """
    return clustered(
        firings, QUANTITIES, unit="unit", by=by, measures=MEASURES, units=units, n_boot=n_boot, seed=seed
    )  # fmt: skip


def wait_of_jobs(firings: pl.DataFrame) -> pl.DataFrame:
    """Return what single jobs waited, by rule.

    ``number, rule, action``, ``waited_median_h``, ``waited_max_h`` (until the rule fired), ``after_median_h`` (from
    then on); sorted by rule.
    """
    hours = pl.lit(HOUR_US, dtype=pl.Float64)
    columns = {
        "waited_median_h": pl.col("waited_us").median() / hours,
        "waited_max_h": pl.col("waited_us").max() / hours,
        "after_median_h": pl.col("after_us").median() / hours,
    }
    return firings.group_by(RULE).agg(**columns).sort(RULE)


def with_names(frame: pl.DataFrame) -> pl.DataFrame:
    """Add ``name``: the rule, with its action where the rule takes several.

    Example:
        >>> rules = pl.DataFrame({"rule": ["sent", "held", "held"], "action": ["fail", "kill", "fail"]})
        >>> with_names(rules)["name"].to_list()
        ['sent', 'held (kill)', 'held (fail)']
    """
    several = pl.col("action").n_unique().over("rule") > 1
    full = pl.format("{} ({})", "rule", "action")
    return frame.with_columns(name=pl.when(several).then(full).otherwise("rule"))


def usual_limits(firings: pl.DataFrame) -> pl.DataFrame:
    """Return the limit that most firings of each rule have: some depend on the queue.

    ``number, rule, action, limit_h``; of limits with as many firings the longest. Sorted by rule.
    """
    counted = firings.group_by(*RULE, "limit_h").len().sort(*RULE, "len", "limit_h")
    return counted.group_by(RULE, maintain_order=True).agg(pl.col("limit_h").last())


def firings_over_time(
    firings: pl.DataFrame,
    *,
    every: str,
    start: datetime,
    end: datetime,
    units: pl.Series | None = None,
    n_boot: int = 0,
    seed: int = 1,
) -> pl.DataFrame:
    """Count the jobs that each rule times out, step by step, those without any included.

    ``number, rule, time`` (beginning of the step), ``jobs, jobs_lo, jobs_hi``; sorted by rule and time.
    """
    key = ["number", "rule", "time"]
    stepped = firings.with_columns(time=pl.col("fires").dt.truncate(every))
    counted = clustered(stepped, {"jobs": "jobs"}, unit="unit", by=key, units=units, n_boot=n_boot, seed=seed)  # fmt: skip
    # from the step that holds the beginning: one that is cut short at the end has firings as well
    first = pl.Series([start]).dt.truncate(every)[0]
    times = pl.datetime_range(first, end, every, closed="left", time_unit="us", eager=True)
    rules = counted.select("number", "rule").unique()
    grid = rules.join(pl.DataFrame({"time": times}), how="cross")
    numbers = ("jobs", "jobs_lo", "jobs_hi")
    filled = grid.join(counted.select(*key, *numbers), on=key, how="left")
    none = pl.col("jobs").is_null()
    zeros = [pl.when(none).then(0.0).otherwise(pl.col(name)).alias(name) for name in numbers]
    return filled.with_columns(zeros).sort(key)
