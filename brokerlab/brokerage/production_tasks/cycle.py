"""The draw of every task in turn: a task that gets a nucleus makes it busier for those after it (production-tasks.md 4)."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import numpy as np
import polars as pl

from brokerlab.brokerage.inputs.valid import KEY, first_valid_for
from brokerlab.brokerage.production_tasks import weight
from brokerlab.brokerage.rules import ProductionRules
from brokerlab.numerics import FloatArray

_MASK = 2**64 - 1  # seeds are not negative


def cycle_of(rules: ProductionRules) -> tuple[str, ...]:
    """Return the columns in which tasks are alike that see each other (switch ``work_of_weight``)."""
    return ("snapshot",) if rules.work_of_weight == "all" else ("snapshot", "workqueue_name")


def draws_of(tasks: pl.DataFrame, seed: int) -> pl.Series:
    """Return one random number in [0, 1) per task, the same whatever else is decided with it."""
    numbers = [
        np.random.default_rng([number & _MASK for number in (seed, *key)]).random()
        for key in tasks.select(KEY).iter_rows()
    ]
    return pl.Series("draw", numbers, dtype=pl.Float64)


def with_draws(tasks: pl.DataFrame, draws: pl.DataFrame, seed: int) -> pl.DataFrame:
    """Add ``draw`` to the tasks: as given (contract ``Draws``), else from the seed."""
    joined = first_valid_for(tasks, draws.rename({"draw": "given"}))
    own = draws_of(joined, seed)
    return joined.with_columns(draw=pl.coalesce("given", own)).drop("given")


def weigh_and_draw(
    tasks: pl.DataFrame, candidates: pl.DataFrame, rules: ProductionRules
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Weigh the nuclei left to every task and draw one, task by task.

    Giving a task a nucleus adds its ``task_rw`` to the work left there as later tasks of its snapshot see it; where
    only work of the same work queue and of the same or higher priority counts, those of that queue and of the same or
    lower priority.

    Args:
        tasks: ``t, turn`` (the order in which they are handled), ``snapshot, workqueue_name, currentpriority, task_rw,
            draw`` and ``assigned``, the nucleus it has already (null = none).
        candidates: Nuclei left, ``t, q, position, nucleus, rw`` and ``factor``, the product of all but the factor of the
            work.
        rules: Switches ``idle_work_is_one`` and ``work_of_weight``.

    Returns:
        ``t, q`` of the candidates with ``rw`` as the task saw it, ``work``, ``weight`` and ``probability``; and
        ``t, nucleus`` of every task with a nucleus.

    Source: production-tasks.md 4.
    """
    tasks = tasks.sort("turn")
    ordered = tasks.select("t", "turn").join(candidates, on="t").sort("turn", "position")
    names = ordered["nucleus"].to_list()
    rw, factor = (ordered[name].to_numpy().astype(np.float64) for name in ("rw", "factor"))
    seen, work, probability = rw.copy(), np.ones_like(rw), np.ones_like(rw)
    counts = candidates.group_by("t").agg(size=pl.len().cast(pl.Int64))
    sizes = tasks.select("t").join(counts, on="t", how="left", maintain_order="left")
    sizes = sizes.select(
        size=pl.col("size").fill_null(0), end=pl.col("size").fill_null(0).cum_sum()
    )
    given: list[str | None] = []
    added = _Added(rules)
    for row, (size, end) in zip(tasks.iter_rows(named=True), sizes.iter_rows(), strict=True):
        start = end - size
        chosen = row["assigned"]
        if chosen is None and size:
            of = slice(start, end)
            seen[of] += added.to(row, names[of])
            work[of] = weight.work_factor(seen[of], rules)
            weights = work[of] * factor[of]
            probability[of] = weight.probabilities(weights)
            chosen = names[start + weight.drawn(weights, row["draw"])]
        if chosen is not None:
            added.take(row, chosen)
        given.append(chosen)
    columns = {"rw": seen, "work": work, "weight": work * factor, "probability": probability}
    weighed = ordered.select("t", "q").with_columns(
        pl.Series(name, values) for name, values in columns.items()
    )
    nuclei = tasks.select("t").with_columns(nucleus=pl.Series(given, dtype=pl.String))
    return weighed, nuclei.drop_nulls("nucleus")


class _Added:
    """Work given to nuclei within the cycles at hand."""

    def __init__(self, rules: ProductionRules) -> None:
        self._cycle, self._all = cycle_of(rules), rules.work_of_weight == "all"
        self._taken: dict[tuple[Any, ...], dict[tuple[str, int], float]] = defaultdict(dict)

    def take(self, row: dict[str, Any], nucleus: str) -> None:
        priority, rw = self._priority(row), row["task_rw"]
        if priority is None or not rw:
            return
        taken = self._taken[tuple(row[name] for name in self._cycle)]
        taken[nucleus, priority] = taken.get((nucleus, priority), 0.0) + rw

    def to(self, row: dict[str, Any], nuclei: list[str]) -> FloatArray:
        """Return what was added at each nucleus, where priority counts at the task's or above."""
        taken, least = (
            self._taken.get(tuple(row[name] for name in self._cycle)),
            self._priority(row),
        )
        if not taken or least is None:
            return np.zeros(len(nuclei))
        at: dict[str, float] = defaultdict(float)
        for (nucleus, priority), rw in taken.items():
            if priority >= least:
                at[nucleus] += rw
        return np.array([at[nucleus] for nucleus in nuclei])

    def _priority(self, row: dict[str, Any]) -> int | None:
        return 0 if self._all else row["currentpriority"]
