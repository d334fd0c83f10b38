"""Document against production rules: how often they class a queue otherwise, and by which difference."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import polars as pl

from brokerlab.lifecycle.classes import ClassRules, SiteClasses
from brokerlab.report.replays.shares import DAY, shares
from brokerlab.report.site_classes import rating
from brokerlab.report.site_classes.inputs import Inputs

STATISTICS = (
    "half_life_hours",
    "sample_status",
    "long_q_status",
    "effective_n",
    "empty_long_queue",
)
"""Switches that alter the statistics of the waits."""
LIMITS = (
    "hi_test",
    "percentile_basis",
    "percentile_low",
    "percentile_high",
    "empty_percentile",
    "recent_activity",
)
"""Switches that alter what they are compared with."""
TASKS = (
    "task_rules",
    "threshold_inclusive",
    "express_is_s",
    "missing_usage",
    "default_threshold_b",
)
"""Switches that alter the classes of tasks only."""


@dataclass(frozen=True, kw_only=True)
class RuleSets:
    """How two rule sets class the same queues.

    Attributes:
        current: Rule set of the study, `other` the one it is compared with.
        rules: The other one.
        matrix: ``here, there`` (classes under either, none included), ``cells``.
        totals: `shares` of the cells: ``differs`` (as the brokerage takes them), ``better, worse`` (under the other one);
            of slots and jobs at them: ``slots, jobs``.
        switches: One row per difference that alters a class alone: ``switch, row, here, there, share, lo, hi`` of the
            cells that it moves, ``explained``: of all cells that differ, the part that it alone brings to the other's
            class.
        classes: Classes of queues under the other one.
    """

    current: str
    other: str
    rules: ClassRules
    matrix: pl.DataFrame
    totals: pl.DataFrame
    switches: pl.DataFrame
    classes: SiteClasses


def studied(
    inputs: Inputs,
    every: pl.DataFrame,
    rows: pl.DataFrame,
    stats: pl.DataFrame,
    *,
    n_boot: int,
    seed: int,
) -> RuleSets:
    """Class the same queues by the other rule set, and by each difference alone.

    Args:
        inputs: From `load`.
        every: Cells.
        rows: Rated cells.
        stats: Statistics of the waits under the rules of the study.
        n_boot: Bootstrap replicates over days.
        seed: Of the bootstrap.
    """
    current = inputs.rules.rules
    other = "production" if current == "document" else "document"
    rules = ClassRules(other, wait_time=inputs.rules.wait_time)
    there = inputs.wait_stats(rules)
    classes = rating.classes_of(inputs, there, rules)
    others = rating.rated(every, there, classes)
    dice = {"n_boot": n_boot, "seed": seed}
    both = pl.DataFrame({"here": rows["class_name"], "there": others["class_name"]})
    return RuleSets(
        current=current,
        other=other,
        rules=rules,
        matrix=both.group_by("here", "there").len("cells").sort("here", "there"),
        totals=_totals(rows, others["used"], **dice),
        switches=_switches(inputs, rows, stats, rules, others["used"], **dice),
        classes=classes,
    )


def _totals(rows: pl.DataFrame, there: pl.Series, *, n_boot: int, seed: int) -> pl.DataFrame:
    rank = {"hi": 0, "mid": 1, "lo": 2}
    table = rows.select(
        "day",
        *("slots", "jobs"),
        cell=pl.lit(1),
        step=pl.lit(there).replace_strict(rank, return_dtype=pl.Int64)
        - pl.col("used").replace_strict(rank, return_dtype=pl.Int64),
    ).with_columns(
        differs=(pl.col("step") != 0).cast(pl.Int64),
        better=(pl.col("step") < 0).cast(pl.Int64),
        worse=(pl.col("step") > 0).cast(pl.Int64),
    )
    table = table.with_columns(
        slots_moved=pl.col("slots") * pl.col("differs"),
        jobs_moved=pl.col("jobs") * pl.col("differs"),
    )
    divided = partial(shares, unit=DAY, n_boot=n_boot, seed=seed)
    cells = divided(table, ["differs", "better", "worse"], "cell")
    concerned = [
        divided(table, [f"{name}_moved"], name).with_columns(part=pl.lit(name))
        for name in ("slots", "jobs")
    ]
    return pl.concat([cells, *concerned])


def _switches(
    inputs: Inputs,
    rows: pl.DataFrame,
    stats: pl.DataFrame,
    other: ClassRules,
    there: pl.Series,
    *,
    n_boot: int,
    seed: int,
) -> pl.DataFrame:
    """Set one switch at a time to what it is in the other rule set."""
    here = rows["used"]
    differs = here != there
    found = []
    for name in (*STATISTICS, *LIMITS):
        value, theirs = getattr(inputs.rules, name), getattr(other, name)
        if value == theirs:
            continue
        rules = rating.changed(inputs.rules, **{name: theirs})
        waits = inputs.wait_stats(rules) if name in STATISTICS else stats
        alone = rating.used_by(rows, rating.classes_of(inputs, waits, rules))
        table = rows.select("day", cell=pl.lit(1)).with_columns(
            moved=(alone != here).cast(pl.Int64)
        )
        row = shares(table, ["moved"], "cell", unit=DAY, n_boot=n_boot, seed=seed).to_dicts()[0]
        told = {"switch": name, "row": ClassRules.SWITCHES[name].row}
        told |= {"here": str(value), "there": str(theirs)}
        told |= {key: row[key] for key in ("share", "lo", "hi")}
        explained = int((differs & (alone == there)).sum()) / max(int(differs.sum()), 1)
        found.append({**told, "explained": explained})
    kinds = dict.fromkeys(["switch", "row", "here", "there"], pl.String)
    schema = kinds | dict.fromkeys(["share", "lo", "hi", "explained"], pl.Float64)
    return pl.DataFrame(found, schema=schema).sort("share", "switch", descending=[True, False])
