"""Sums with intervals: whole queues, or tasks, are drawn again, since what waits at one place waits together."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from brokerlab.intervals import bootstrap_totals, percentile_interval
from brokerlab.numerics import FloatArray

CONFIDENCE = 0.95
"""Of every interval of the report."""
Numbers = Mapping[str, FloatArray]
"""Sums by measure: an array with one entry per group, or per replicate and group."""
Derived = Mapping[str, Callable[[Numbers], FloatArray]]
"""Name of a quantity to how it follows from sums."""


@dataclass(frozen=True)
class Draws:
    """How intervals are made.

    Attributes:
        units: Names of all units of the period, sorted; those without anything count as well.
        n_boot: Replicates.
        seed: Same seed, same replicates; the same ones for all sums, which makes differences paired.
    """

    units: pl.Series
    n_boot: int
    seed: int


@dataclass(frozen=True)
class Sums:
    """Sums of measures by group, and those of every replicate.

    Attributes:
        keys: One row per group.
        totals: Measure to (n_groups,).
        drawn: Measure to (n_boot, n_groups); empty where there are too few units to draw from.
        n_units: Units drawn from.
    """

    keys: pl.DataFrame
    totals: Numbers
    drawn: Numbers
    n_units: int

    def table(self, derived: Derived) -> pl.DataFrame:
        """Return quantities with their intervals.

        Args:
            derived: Quantities by name.

        Returns:
            The keys and, for each quantity, ``name, name_lo, name_hi`` (null where it is not defined; null ends
            with fewer than two units).
        """
        columns: list[pl.Series] = []
        for name, formula in derived.items():
            with np.errstate(invalid="ignore", divide="ignore"):
                value = np.asarray(formula(self.totals), dtype=np.float64)
                low, high = self._ends(formula, value)
            for suffix, numbers in (("", value), ("_lo", low), ("_hi", high)):
                known = np.where(np.isfinite(numbers), numbers, np.nan)
                columns.append(pl.Series(name + suffix, known).fill_nan(None))
        return self.keys.hstack(columns) if self.keys.width else pl.DataFrame(columns)

    def _ends(
        self, formula: Callable[[Numbers], FloatArray], value: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        none = np.full(value.shape, np.nan)
        if not self.drawn or not value.size:
            return none, none
        replicates = np.asarray(formula(self.drawn), dtype=np.float64)
        low, high = percentile_interval(replicates, CONFIDENCE, n_tasks=self.n_units)
        known = np.isfinite(value)
        return np.where(known, low, np.nan), np.where(known, high, np.nan)


def summed(
    frame: pl.DataFrame, by: Sequence[str], measures: Sequence[str], draws: Draws | None
) -> Sums:
    """Add up measures by group and draw the sums again.

    Args:
        frame: ``unit`` (text), ``by``, and whole numbers ``measures``: they add exactly, in any order.
        by: Columns of the groups; none: one group, also where there is no row.
        measures: Columns to add up.
        draws: How intervals are made; null: none are.

    Returns:
        The sums, groups sorted.
    """
    keys = frame.select(by).unique().sort(by) if by else pl.DataFrame()
    n_groups = keys.height if by else 1
    numbered = keys.with_row_index("group") if by else None
    place = (
        frame.join(numbered, on=list(by), nulls_equal=True)
        if numbered is not None
        else frame.with_columns(group=pl.lit(0, dtype=pl.UInt32))
    )
    whole = [pl.col(name).cast(pl.Int64).sum() for name in measures]
    per_unit = place.group_by("group", "unit").agg(whole)
    units = per_unit["unit"].unique().sort() if draws is None else draws.units
    row = {name: i for i, name in enumerate(units)}
    cells = np.zeros((len(units), n_groups, len(measures)))
    at = [row[name] for name in per_unit["unit"]]
    cells[at, per_unit["group"].to_numpy()] = per_unit.select(measures).to_numpy()
    totals = cells.sum(axis=0)
    drawn: dict[str, FloatArray] = {}
    if draws is not None and len(units) > 1 and n_groups:
        flat = bootstrap_totals(cells.reshape(len(units), -1), n_boot=draws.n_boot, seed=draws.seed)
        again = flat.reshape(-1, n_groups, len(measures))
        drawn = {name: again[:, :, i] for i, name in enumerate(measures)}
    return Sums(keys, {name: totals[:, i] for i, name in enumerate(measures)}, drawn, len(units))
