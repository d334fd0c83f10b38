"""What each rank and margin would have told a task: the exact rule, for every task and setting at once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from brokerlab.calibrate.percentiles.parameters import Rule, Setting
from brokerlab.numerics import FloatArray, IntArray, SortedGroups
from brokerlab.scouts.parameters import whole_cputime, whole_outdisk_kb, whole_ram_mb
from brokerlab.scouts.rules import ScoutRules
from brokerlab.units import KB


@dataclass(frozen=True)
class Estimator:
    """The rule of one parameter, ready to be evaluated on a grid.

    Attributes:
        parameter: ``ramcount``, ``cputime`` or ``outdiskcount``.
        groups: Values of the scouts of every task, sorted: kB, HS06 s per event, or bytes per event.
        rules: Rule set; decides where the RAM margin and minimum act, and whether outdiskcount has a cap.
        rule: ``percentile``, or ``conformal``: the rank is then the promised coverage in per cent and the
            order statistic ceil((n+1) rank/100) is taken; where there are too few scouts, the largest.
    """

    parameter: str
    groups: SortedGroups
    rules: ScoutRules
    rule: Rule = "percentile"

    def grid(self, settings: Sequence[Setting], tasks: slice) -> IntArray:
        """Return the estimate of every task under every setting, as the whole number that is written.

        Args:
            settings: Ranks, margins and minima.
            tasks: Which groups.

        Returns:
            (n_tasks, n_settings) MB (ramcount; per core if the task's unit is), mHS06 s per event
            (cputime), kB per event or per MB (outdiskcount). Tasks without scouts: 0, to be masked by
            the caller.
        """
        groups = SortedGroups(self.groups.values, self.groups.start[tasks], self.groups.size[tasks])
        ranks = np.array([setting.rank for setting in settings], dtype=np.int64)
        margins = np.array([setting.margin_pct for setting in settings], dtype=np.int64)
        minima = np.array([-np.inf if s.minimum_mb is None else s.minimum_mb for s in settings])
        result = np.zeros((groups.size.size, ranks.size), dtype=np.int64)
        for rank in np.unique(ranks):  # at most a hundred; tasks and the rest are vectorised
            columns = np.flatnonzero(ranks == rank)
            lower, upper, k = self._statistics(groups, int(rank))
            result[:, columns] = self._finish(lower, upper, k, margins[columns], minima[columns])
        return result

    def falls_back(self, settings: Sequence[Setting], tasks: slice) -> np.ndarray:
        """Tell where the conformal rule asks for more scouts than there are: (n_tasks, n_settings)."""
        size = self.groups.size[tasks]
        if self.rule == "percentile":
            return np.zeros((size.size, len(settings)), dtype=bool)
        ranks = np.array([setting.rank for setting in settings], dtype=np.int64)
        return conformal_position(size[:, None], ranks[None, :]) >= size[:, None]

    def _statistics(
        self, groups: SortedGroups, rank: int
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return the two order statistics and the position between them, (n_tasks,) each."""
        if self.rule == "percentile":
            return groups.order_statistics(rank)
        position = np.minimum(conformal_position(groups.size, np.int64(rank)), groups.size - 1)
        at = np.clip(groups.start + position, 0, max(groups.values.size - 1, 0))
        values = groups.values[at] if groups.values.size else np.full(groups.size.shape, np.nan)
        values = np.where(groups.size == 0, np.nan, values)
        return values, values, position.astype(np.float64)

    def _finish(
        self,
        lower: FloatArray,
        upper: FloatArray,
        k: FloatArray,
        margins: IntArray,
        minima: FloatArray,
    ) -> IntArray:
        """Interpolate, apply margin and minimum and round as the parameter's chapter says."""
        lower, upper, k = lower[:, None], upper[:, None], k[:, None]
        if self.parameter == "ramcount":
            values = self._ramcount(lower, upper, k, margins[None, :], minima[None, :])
        elif self.parameter == "cputime":
            values = whole_cputime(_interpolate(lower, upper, k) * ((100 + margins[None, :]) / 100))
        else:
            values = whole_outdisk_kb(_interpolate(lower, upper, k), self.rules)
        return np.nan_to_num(values, nan=0.0).astype(np.int64)

    def _ramcount(
        self,
        lower: FloatArray,
        upper: FloatArray,
        k: FloatArray,
        margins: IntArray,
        least: FloatArray,
    ) -> FloatArray:
        """RAM in whole MB; ``ram_min_per_job`` says whether margin and minimum act per job (docs/rules/scouts.md 5.2)."""
        if self.rules.ram_min_per_job:
            factor = 1 + margins / 100
            lower = np.maximum(lower / KB * factor, least)
            upper = np.maximum(upper / KB * factor, least)
            whole = np.trunc(_interpolate(lower, upper, k))
            return np.where(whole < 0, 1.0, whole)
        return whole_ram_mb(_interpolate(lower, upper, k), margins, least)


def conformal_position(size: IntArray, rank: IntArray | np.int64) -> IntArray:
    """Return the 0-based place of the conformal order statistic ceil((n+1) rank/100), in whole numbers."""
    return np.asarray(-((-(size + 1) * rank) // 100) - 1)


def _interpolate(lower: FloatArray, upper: FloatArray, k: FloatArray) -> FloatArray:
    """Evaluate the percentile as scouts.md section 4 writes it: two products, then the sum."""
    f, c = np.floor(k), np.ceil(k)
    return np.where(f == c, lower, lower * (c - k) + upper * (k - f))
