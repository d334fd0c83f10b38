"""The class of every queue at every instant, with the slots and jobs that it concerns."""

from __future__ import annotations

from typing import Any

import polars as pl

from brokerlab.lifecycle import classes as lifecycle
from brokerlab.lifecycle.classes import ClassRules, SiteClasses
from brokerlab.report.site_classes.inputs import Inputs

CLASSES = ("hi", "mid", "lo")
NONE = "none"
"""A queue without class; the brokerage takes it for mid."""
DEFAULT = "mid"
NO_SAMPLE = "no_sample"
"""Why a queue has no class: no job of the sample ran there."""
KEYS = ["snapshot", "queue"]


def changed(rules: ClassRules, **switches: Any) -> ClassRules:
    """Return a rule set with single switches set otherwise."""
    values = {**rules.to_dict(), **switches}
    return ClassRules(values.pop("rules"), **values)


def classes_of(inputs: Inputs, stats: pl.DataFrame, rules: ClassRules) -> SiteClasses:
    """Rate the queues at every instant from statistics of their waits."""
    return lifecycle.site_classes(stats, inputs.queues, inputs.activity, rules=rules)


def cells(inputs: Inputs) -> pl.DataFrame:
    """Lay out every queue at every instant, and what its class concerns.

    Returns:
        One row per instant and queue, sorted: ``snapshot, queue, at, day``, ``slots`` (analysis slots that run there then),
        ``jobs`` (analysis jobs made until the next instant, without those of the sample's kind).
    """
    slots = inputs.user_slots.group_by("snapshot", queue="computingsite").agg(
        slots=pl.col("slotsrunning").sum()
    )
    jobs = inputs.made.filter(~pl.col("is_sample")).group_by(KEYS).agg(jobs=pl.len())
    every = inputs.instants.join(inputs.queues.select(queue="panda_queue"), how="cross")
    numbers = ["slots", "jobs"]
    return (
        every.join(slots, on=KEYS, how="left")
        .join(jobs, on=KEYS, how="left")
        .with_columns(pl.col(numbers).fill_null(0).cast(pl.Int64), day=pl.col("at").dt.date())
        .select(*KEYS, "at", "day", *numbers)
        .sort(KEYS)
    )


def rated(every: pl.DataFrame, stats: pl.DataFrame, found: SiteClasses) -> pl.DataFrame:
    """Give every queue its class.

    Args:
        every: From `cells`.
        stats: Statistics of the waits.
        found: Classes made from them.

    Returns:
        The cells with ``class_name`` (hi, mid, lo, none), ``used`` (as the brokerage takes it: none is mid), ``reason``
        (why there is none), ``n`` (jobs of the sample), ``sum_of_weights, w_mean, w_cl95upp, long_q_n, long_q_mean,
        ranking, starts`` (analysis jobs started in 24 h).
    """
    numbers = stats.select(*KEYS[:1], "computingsite", "n", "sum_of_weights", "w_mean")
    classes = found.classes.select(
        "snapshot",
        "computingsite",
        *["w_cl95upp", "long_q_n", "long_q_mean", "ranking", "class_name", "reason"],
        starts="analysis_starts_1d",
    )
    both = classes.join(numbers, on=["snapshot", "computingsite"], how="left")
    joined = every.join(both.rename({"computingsite": "queue"}), on=KEYS, how="left").sort(KEYS)
    known = pl.col("class_name").is_in(CLASSES).fill_null(value=False)
    return joined.with_columns(
        reason=pl.when(~known).then(pl.col("reason").fill_null(NO_SAMPLE)),
        class_name=pl.when(known).then("class_name").otherwise(pl.lit(NONE)),
        used=pl.when(known).then("class_name").otherwise(pl.lit(DEFAULT)),
    )


def used_by(every: pl.DataFrame, found: SiteClasses) -> pl.Series:
    """Return the class of every cell as the brokerage takes it, in the order of the cells."""
    rows = found.classes.select("snapshot", "class_name", queue="computingsite")
    joined = every.select(KEYS).join(rows, on=KEYS, how="left", maintain_order="left")
    name = joined["class_name"]
    return pl.Series(
        "used",
        pl.select(pl.when(name.is_in(CLASSES)).then(name).otherwise(pl.lit(DEFAULT))).to_series(),
    )
