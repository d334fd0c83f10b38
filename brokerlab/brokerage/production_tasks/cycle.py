"""The weight of a nucleus, and the draw of every task in turn: a task that gets a nucleus makes it busier for those after it.

Source: production-tasks.md 4.
"""

from __future__ import annotations

from collections import defaultdict
from functools import reduce
from operator import mul
from typing import Any

import numpy as np
import polars as pl

from brokerlab.brokerage.engine.rule import setting
from brokerlab.brokerage.engine.steps import Derived
from brokerlab.brokerage.inputs.valid import KEY, first_valid_for
from brokerlab.brokerage.production_tasks.storage import GB_PER_TB
from brokerlab.brokerage.rules import ProductionRules
from brokerlab.numerics import FloatArray

RW_OFFSET = 50.0  # HS06 s
TAPE_WEIGHT = 0.001


def work_factor(rw: FloatArray, rules: ProductionRules) -> FloatArray:
    """Return the factor of the work left [HS06 s]: ``1 / max(50, rw)``, or 1 below 50 (switch ``idle_work_is_one``).

    Source: production-tasks.md 4.
    """
    factor = 1.0 / np.maximum(RW_OFFSET, rw)
    return np.where(rw < RW_OFFSET, 1.0, factor) if rules.idle_work_is_one else factor


def with_weight(rules: ProductionRules) -> tuple[Derived, ...]:
    """Return what makes the factors that do not change within a cycle, and ``factor``, their product.

    They are ``data, tape, space_fraction, space_amount``, 1 where the term does not apply. Data terms need input that
    counts; space below 0 counts as 0. ``rw`` is the work left, before the tasks of the cycle [HS06 s].
    """
    has_data = pl.col("has_input") & (pl.col("tot_size") > 0)
    if rules.waiver_drops_data:
        has_data &= ~pl.col("waived")
    work = "rw_all" if rules.work_of_weight == "all" else "rw_prio"
    high = pl.col("iointensity") > setting("MIN_IO_INTENSITY_WITH_LOCAL_DATA")
    high = high.fill_null(value=rules.null_intensity_is_high)
    on_tape = pl.col("ava_size_any") > pl.col("ava_size_disk")
    fraction, amount_tb = _space(rules)
    has_space = pl.col("space_total") > 0
    cut = pl.min_horizontal("free_disk_cutoff_tb", amount_tb.clip(lower_bound=0.0))
    factors = {
        "data": _where(has_data & high, pl.col("ava_size_any") / pl.col("tot_size")),
        "tape": _where(has_data & on_tape, pl.lit(TAPE_WEIGHT)),
        "space_fraction": _where(has_space, fraction.clip(lower_bound=0.0)),
        "space_amount": _where(has_space, cut),
    }
    return (
        Derived({"free_disk_cutoff_tb": setting("FREE_DISK_CUTOFF"), "rw": pl.col(work)}),
        Derived(factors),
        Derived({"factor": reduce(mul, map(pl.col, factors))}),
    )


def _space(rules: ProductionRules) -> tuple[pl.Expr, pl.Expr]:
    """Return the fraction of the endpoint that is free, and the free amount [TB]."""
    if rules.weight_after_demand:
        left = pl.col("usable_gb") - pl.col("demand_gb")
        return left / pl.col("space_total"), (left / GB_PER_TB).floor()
    free = pl.col("space_free")
    return (free + pl.col("space_expired")) / pl.col("space_total"), free / GB_PER_TB


def _where(applies: pl.Expr, factor: pl.Expr) -> pl.Expr:
    return pl.when(applies).then(factor).otherwise(1.0)


def probabilities(weights: FloatArray) -> FloatArray:
    """Return the chance of each nucleus, ``w / W``; all of it is the first one's where W is 0."""
    total = float(np.cumsum(weights)[-1]) if len(weights) else 0.0
    if total == 0.0:
        return np.eye(1, len(weights), dtype=np.float64).ravel()
    return weights / total


def drawn(weights: FloatArray, draw: float) -> int:
    """Return the place of the nucleus drawn: walk the weights in stored order, the first that uses up ``draw * W`` wins.

    It is the last one where rounding leaves something over, 0 where all weights are 0; ``draw`` is in [0, 1).

    Source: production-tasks.md 4.
    """
    total = np.cumsum(weights)[-1]  # one after the other: sums of NumPy are pairwise
    left = np.subtract.accumulate(np.concatenate(([draw * total], weights)))[1:]
    used_up = np.flatnonzero(left <= 0)
    return int(used_up[0]) if used_up.size else len(weights) - 1


_MASK = 2**64 - 1  # seeds are not negative


def cycle_of(rules: ProductionRules) -> tuple[str, ...]:
    """Return the columns in which tasks are alike that see each other (switch ``work_of_weight``)."""
    return ("snapshot",) if rules.work_of_weight == "all" else ("snapshot", "workqueue_name")


def with_draws(tasks: pl.DataFrame, draws: pl.DataFrame, seed: int) -> pl.DataFrame:
    """Add ``draw`` in [0, 1) to the tasks: as given, else from the seed, the same whatever else is decided with it."""
    joined = first_valid_for(tasks, draws.rename({"draw": "given"}))
    own = [
        np.random.default_rng([number & _MASK for number in (seed, *key)]).random()
        for key in joined.select(KEY).iter_rows()
    ]
    draw = pl.coalesce("given", pl.Series(own, dtype=pl.Float64))
    return joined.with_columns(draw=draw).drop("given")


def weigh_and_draw(
    tasks: pl.DataFrame, candidates: pl.DataFrame, rules: ProductionRules
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Weigh the nuclei left to every task and draw one, task by task in their ``turn``.

    Giving a task a nucleus adds its ``task_rw`` to the work left there as later tasks of its snapshot see it; where
    only work of the same work queue and of the same or higher priority counts, those of that queue and of the same or
    lower priority. ``factor`` of a candidate is the product of all but the factor of the work.

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
            work[of] = work_factor(seen[of], rules)
            weights = work[of] * factor[of]
            probability[of] = probabilities(weights)
            chosen = names[start + drawn(weights, row["draw"])]
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
