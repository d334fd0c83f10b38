"""Class a period, and sum up what its classes hang on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import polars as pl

from brokerlab.report.replays.shares import N_BOOT
from brokerlab.report.site_classes import rating, rulesets, stability, targets, tasks, waits, whatif
from brokerlab.report.site_classes.check import NUMBERS
from brokerlab.report.site_classes.inputs import Inputs
from brokerlab.report.site_classes.rulesets import RuleSets
from brokerlab.report.site_classes.targets import Targets
from brokerlab.report.site_classes.tasks import Tasks
from brokerlab.report.site_classes.waits import Waits
from brokerlab.report.site_classes.whatif import WhatIf

STEPS = ("1h", "3h", "6h", "12h", "1d", "2d", "7d")
MOST_STEPS = 130
"""Steps of a chart over time, at most."""


@dataclass(frozen=True, kw_only=True)
class Study:
    """What the classes of a period say.

    Attributes:
        inputs: What it was made from.
        rows: Rated cells: every queue at every instant.
        marked: The same with flags, see `stability.flags`.
        percentiles: Percentiles and limits of every instant.
        limits: Their medians [s].
        overall, by_queue: Shares of the cells, and changes per day.
        spells: Of the queues shown, from when to when they had which class.
        what_if: What other numbers of the rules would do.
        rule_sets: Document against production rules.
        waits: Means, upper limits, and what jobs waited.
        slots: Analysis slots by class of queue over time.
        tasks: Classes of tasks; None where the archive has no tasks of users.
        targets: Shares against targets; None where it has no tree of shares.
        step: Step of charts over time.
    """

    inputs: Inputs
    rows: pl.DataFrame
    marked: pl.DataFrame
    percentiles: pl.DataFrame
    limits: dict[str, float | None]
    overall: pl.DataFrame
    by_queue: pl.DataFrame
    spells: pl.DataFrame
    what_if: WhatIf
    rule_sets: RuleSets
    waits: Waits
    slots: pl.DataFrame
    tasks: Tasks | None
    targets: Targets | None
    step: str

    @property
    def n_queues(self) -> int:
        """Queues looked at."""
        return self.inputs.queues.height

    @property
    def n_instants(self) -> int:
        """Instants."""
        return self.inputs.instants.height

    @property
    def n_rated(self) -> int:
        """(Queue, instant) cells with a class."""
        return int(self.marked.filter(pl.col("class_name") != rating.NONE).height)

    def rated(self, name: str) -> float | None:
        """Return the part of these cells that has some class; null without any."""
        return self.rows.filter(class_name=name).height / self.n_rated if self.n_rated else None


def study(
    inputs: Inputs,
    *,
    grids: Mapping[str, Sequence[float]],
    queues_shown: int = 30,
    n_boot: int = N_BOOT,
    seed: int = 1,
) -> Study:
    """Class the period.

    Args:
        inputs: From `load`.
        grids: Values to try by parameter, see `check.NUMBERS`.
        queues_shown: Queues in the chart of classes over time, those that most analysis jobs were made for.
        n_boot: Bootstrap replicates.
        seed: Of every bootstrap.

    Returns:
        The study.
    """
    dice = {"n_boot": n_boot, "seed": seed}
    stats = inputs.wait_stats(inputs.rules)
    found = rating.classes_of(inputs, stats, inputs.rules)
    every = rating.cells(inputs)
    rows = rating.rated(every, stats, found)
    marked = stability.flags(rows)
    by_queue = stability.by_queue(marked, inputs.step_days, **dice)
    shown = _shown(marked, queues_shown)
    numbers = {NUMBERS[name]: values for name, values in grids.items()}
    rule_sets = rulesets.studied(inputs, every, rows, stats, **dice)
    step = _step(inputs)
    theirs = rule_sets.rules, rule_sets.classes
    return Study(
        inputs=inputs,
        rows=rows,
        marked=marked,
        percentiles=found.percentiles,
        limits=whatif.limits(found.percentiles),
        overall=stability.overall(marked, inputs.step_days, **dice),
        by_queue=by_queue,
        spells=stability.spells(rows, shown, most=4500),
        what_if=whatif.tried(inputs, rows, stats, found, numbers, **dice),
        rule_sets=rule_sets,
        waits=waits.studied(rows, inputs.made, **dice),
        slots=tasks.slots_over_time(rows, step),
        tasks=tasks.studied(inputs, found, theirs, step, **dice),
        targets=targets.studied(inputs.share_usage, step, **dice),
        step=step,
    )


def _shown(marked: pl.DataFrame, most: int) -> list[str]:
    """Return the queues with most analysis jobs, the quickest class first."""
    table = marked.group_by("queue").agg(
        pl.col("jobs").sum(), *(pl.col(n).sum() for n in stability.PARTS)
    )
    busy = table.sort("jobs", "queue", descending=[True, False]).head(most)
    score = pl.col("hi") - pl.col("lo")
    ordered = busy.sort(score, "hi", "mid", "queue", descending=[True, True, True, False])
    return ordered["queue"].to_list()


def _step(inputs: Inputs) -> str:
    """Return the finest step of charts over time that is not too fine to read."""
    first, last = inputs.window
    seconds = (last - first).total_seconds()
    hours = {"h": 1, "d": 24}
    for step in STEPS:
        if seconds / (3600 * int(step[:-1]) * hours[step[-1]]) <= MOST_STEPS:
            return step
    return STEPS[-1]
