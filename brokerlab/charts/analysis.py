"""Charts of the replay of user tasks, made from the frames of `brokerage.studies`."""

import polars as pl

from brokerlab.charts.primitives import Chart, bars, dots, line

LOOPS = {1: "with locality", 2: "without locality"}
QUANTITIES = {
    "asked": "jobs asked for",
    "let_through": "jobs that the throttle lets through",
    "placed": "jobs that find a queue",
    "core_h": "core hours that really ran",
    "equal": "all the same",
    "throttle": "change by the throttle",
    "checks": "change by the checks",
}
"""What is divided among users, and what changes its index, in words."""


def held_by_rule(held: pl.DataFrame) -> Chart:
    """Draw the share of brokerages that each rule of the throttle holds back: ``part, share``."""
    return bars(held, "share", "part", title="held back [% of brokerages]")


def held_over_time(held: pl.DataFrame) -> Chart:
    """Draw the share of brokerages held back over time, a panel per family of rules: ``time, part, share``."""
    return line(
        held,
        "time",
        "share",
        x_title="time (UTC)",
        y_title="[% of brokerages]",
        panels="part",
        points=True,
        height=330,
    )


def removed_by_loop(removed: pl.DataFrame) -> Chart:
    """Draw the share of pairs that each check removes in either locality loop: ``loop, part, share``."""
    loop = pl.col("loop").replace_strict(LOOPS, return_dtype=pl.String)
    shown = removed.with_columns(loop)
    return dots(shown, "share", "part", colour="loop", title="removed [% of pairs]")


def places_by_weight(places: pl.DataFrame, *, current: str) -> Chart:
    """Draw where jobs go under either basic weight, a panel per class of queues: ``weight, task_class, part, share``.

    ``current`` is the weight in use, original or new.
    """
    shown = places.select(
        pl.col("weight").replace(current, "current"),
        pl.format("class {}", "task_class").alias("task"),
        pl.format("at {} queues", "part").alias("queues"),
        pl.col("^share.*$"),
    )
    title = "expected jobs [%]"
    return dots(shown, "share", "task", colour="weight", panels="queues", title=title)


def lorenz(curves: pl.DataFrame) -> Chart:
    """Draw how much the users with least have together: ``quantity, users, part``."""
    shown = curves.with_columns(pl.col("quantity").replace(QUANTITIES))
    return line(
        shown,
        "users",
        "part",
        x_title="users, those with least first [%]",
        y_title="their part [%]",
        colour="quantity",
        height=340,
    )
