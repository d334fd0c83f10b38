"""Which rules fire for how many jobs, where and when, and what became of those jobs."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from brokerlab.lifecycle.timeouts.catalogue import URGENT
from brokerlab.lifecycle.timeouts.rule import PRECEDENCE
from brokerlab.report.waiting_rules.inputs import HOUR_US, UNITS, Inputs
from brokerlab.report.waiting_rules.sums import Derived, Draws, summed

RULE = ("number", "rule", "action")
OUTCOMES = ("soon", "later", "ended", "still", "undecided")
"""What becomes of a job after a rule fired; every job is one of them."""
HEARTBEATS = ("heartbeat", "heartbeat_transferring", "x_transferring_user")
"""Rules that fire for silence."""
MEASURES = ("jobs", "waited_us", "after_us", *OUTCOMES)
HOURS: Derived = {
    "jobs": lambda n: n["jobs"],
    "waited_h": lambda n: n["waited_us"] / HOUR_US,
    "after_h": lambda n: n["after_us"] / HOUR_US,
    **{name: lambda n, name=name: n[name] for name in OUTCOMES},  # type: ignore[misc]
    "soon_share": lambda n: n["soon"] / (n["jobs"] - n["undecided"]),
}
"""Quantities of every table of firings."""


def prepared(fired: pl.DataFrame, inputs: Inputs) -> pl.DataFrame:
    """Keep the firings of the period and say what became of each.

    Args:
        fired: Result of :meth:`brokerlab.lifecycle.timeouts.Histories.fired`.
        inputs: The period, and what counts as soon.

    Returns:
        Its columns and ``unit``, ``MEASURES`` (0 or 1; whole microseconds), ``priority`` (``urgent``: 800 and more,
        ``other``), ``first`` (the rule is the job's first one; at the same instant fail comes before kill and reassign).
    """
    start, end = inputs.window
    inside = fired.filter(pl.col("fires") >= start, pl.col("fires") < end)
    fires, outcome = pl.col("fires"), pl.col("outcome")
    after = (pl.coalesce("left", pl.lit(inputs.until)) - fires).dt.total_microseconds()
    near = after <= int(inputs.soon_h * HOUR_US)
    waiting = outcome == "waiting"
    rows = inside.with_columns(
        unit=pl.col(UNITS[inputs.unit]).cast(pl.String).fill_null("none"),
        jobs=pl.lit(1),
        waited_us=(fires - pl.col("since")).dt.total_microseconds(),
        after_us=after,
        soon=((outcome == "went_on") & near).cast(pl.Int64),
        later=((outcome == "went_on") & ~near).cast(pl.Int64),
        ended=(outcome == "came_to_nothing").cast(pl.Int64),
        still=(waiting & ~near).cast(pl.Int64),
        undecided=(waiting & near).cast(pl.Int64),
        priority=pl.when(pl.col("currentpriority") >= URGENT)
        .then(pl.lit("urgent"))
        .otherwise(pl.lit("other")),
    )
    place = {name: i for i, name in enumerate(PRECEDENCE)}
    order = rows.with_columns(
        place=pl.col("action").replace_strict(place, return_dtype=pl.Int64)
    ).sort("pandaid", "fires", "place", "number")
    return order.drop("place").with_columns(first=pl.int_range(pl.len()).over("pandaid") == 0)


def by(rows: pl.DataFrame, columns: Sequence[str], draws: Draws | None) -> pl.DataFrame:
    """Add firings up by some columns.

    Args:
        rows: Result of `prepared`.
        columns: The groups.
        draws: How intervals are made; null: none are.

    Returns:
        The groups, sorted, with the quantities of `HOURS`.
    """
    return summed(rows, columns, MEASURES, draws).table(HOURS)


def medians(rows: pl.DataFrame) -> pl.DataFrame:
    """Return, by rule, what single jobs waited: ``waited_median_h``, ``waited_max_h``, ``after_median_h``."""
    hours = pl.lit(HOUR_US, dtype=pl.Float64)
    return (
        rows.group_by(RULE)
        .agg(
            waited_median_h=pl.col("waited_us").median() / hours,
            waited_max_h=pl.col("waited_us").max() / hours,
            after_median_h=pl.col("after_us").median() / hours,
        )
        .sort(RULE)
    )


def over_time(rows: pl.DataFrame, inputs: Inputs, step: str, draws: Draws | None) -> pl.DataFrame:
    """Count jobs by rule and day or week, those without any included.

    Returns:
        ``number, rule, time``, ``jobs, jobs_lo, jobs_hi``.
    """
    found = by(rows.with_columns(time=pl.col("fires").dt.truncate(step)), ["number", "rule", "time"], draws)  # fmt: skip
    # from the step that holds the beginning: one that is cut short at the end has firings as well
    start, end = pl.Series(inputs.window).dt.truncate(step)[0], inputs.window[1]
    times = pl.datetime_range(start, end, step, closed="left", eager=True)
    grid = found.select("number", "rule").unique().join(pl.DataFrame({"time": times}), how="cross")
    filled = grid.join(
        found.select("rule", "time", "jobs", "jobs_lo", "jobs_hi"), on=["rule", "time"], how="left"
    )
    quiet = pl.col("jobs").is_null()
    return filled.with_columns(
        pl.when(quiet).then(0.0).otherwise(pl.col(name)).alias(name)
        for name in ("jobs_lo", "jobs_hi", "jobs")
    ).sort("number", "time")


def total(rows: pl.DataFrame, draws: Draws | None) -> dict[str, float | None]:
    """Add up all firings, every job once, by its first rule."""
    first = rows.filter("first")
    return summed(first, [], MEASURES, draws).table(HOURS).row(0, named=True)


def silent(inputs: Inputs) -> int:
    """Count the live jobs that had been silent for longer than their limit at the end of the archive."""
    fired = inputs.read.fired().filter(pl.col("rule").is_in(HEARTBEATS), outcome="waiting")
    return fired["pandaid"].n_unique()


def exempted(inputs: Inputs, rows: pl.DataFrame) -> pl.DataFrame:
    """Return the firings that only paused queues and disableReassign prevent."""
    every = prepared(inputs.read.fired(exempt=False), inputs)
    return every.join(rows.select("pandaid", "rule", "action"), on=["pandaid", "rule", "action"], how="anti")  # fmt: skip
