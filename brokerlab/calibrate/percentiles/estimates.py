"""What each rank and margin would have told a task: the exact rule, for every task and setting at once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from brokerlab.numerics import FloatArray, IntArray, SortedGroups
from brokerlab.scouts.parameters import whole_cputime, whole_outdisk_kb, whole_ram_mb
from brokerlab.scouts.rules import ScoutRules
from brokerlab.units import KB

if TYPE_CHECKING:
    from brokerlab.calibrate.percentiles.parameters import Parameter, Rule, Setting


@dataclass(frozen=True)
class Between:
    """Two neighbouring values of every task's scouts, and where between them the percentile lies: (n_tasks, 1) each."""

    lower: FloatArray
    upper: FloatArray
    k: FloatArray

    def value(
        self, change: FloatArray | float = 1.0, least: FloatArray | float = -np.inf
    ) -> FloatArray:
        """Return the percentile as scouts.md section 4 writes it: two products, then the sum; of changed values."""
        lower, upper = (np.maximum(side * change, least) for side in (self.lower, self.upper))
        f, c = np.floor(self.k), np.ceil(self.k)
        return np.where(f == c, lower, lower * (c - self.k) + upper * (self.k - f))


def ramcount_mb(
    found: Between, margins: IntArray, least: FloatArray, rules: ScoutRules
) -> FloatArray:
    """Return RAM in whole MB; ``ram_min_per_job`` says whether margin and minimum act per job (docs/rules/scouts.md 5.2)."""
    if not rules.ram_min_per_job:
        return whole_ram_mb(found.value(), margins, least)
    mb = Between(found.lower / KB, found.upper / KB, found.k)
    whole = np.trunc(mb.value(1 + margins / 100, least))
    return np.where(whole < 0, 1.0, whole)


def cputime_milli(
    found: Between, margins: IntArray, _least: FloatArray, _rules: ScoutRules
) -> FloatArray:
    """Return mHS06 s per event."""
    return whole_cputime(found.value() * ((100 + margins) / 100))


def outdisk_kb(
    found: Between, _margins: IntArray, _least: FloatArray, rules: ScoutRules
) -> FloatArray:
    """Return kB per event or per MB of input; there is no margin."""
    return whole_outdisk_kb(found.value(), rules)


@dataclass(frozen=True)
class Estimator:
    """The rule of one parameter, ready to be evaluated on a grid.

    Attributes:
        parameter: Which.
        groups: Values of the scouts of every task, sorted: kB, HS06 s per event, or bytes per event.
        rules: Rule set; decides where the RAM margin and minimum act, and whether outdiskcount has a cap.
        rule: ``percentile``, or ``conformal``: the rank is then the promised coverage in per cent and the
            order statistic ceil((n+1) rank/100) is taken; where there are too few scouts, the largest.
    """

    parameter: Parameter
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
            at = np.flatnonzero(ranks == rank)
            found = self._between(groups, int(rank))
            whole = self.parameter.whole(found, margins[None, at], minima[None, at], self.rules)
            result[:, at] = np.nan_to_num(whole, nan=0.0).astype(np.int64)
        return result

    def falls_back(self, settings: Sequence[Setting], tasks: slice) -> np.ndarray:
        """Tell where the conformal rule asks for more scouts than there are: (n_tasks, n_settings)."""
        size = self.groups.size[tasks]
        if self.rule == "percentile":
            return np.zeros((size.size, len(settings)), dtype=bool)
        ranks = np.array([setting.rank for setting in settings], dtype=np.int64)
        return conformal_position(size[:, None], ranks[None, :]) >= size[:, None]

    def _between(self, groups: SortedGroups, rank: int) -> Between:
        """Return the two order statistics and the position between them."""
        lower, upper, k = groups.order_statistics(rank)
        if self.rule == "conformal" and groups.values.size:
            place = np.minimum(conformal_position(groups.size, np.int64(rank)), groups.size - 1)
            at = np.clip(groups.start + place, 0, groups.values.size - 1)
            lower = upper = np.where(groups.size == 0, np.nan, groups.values[at])
            k = place.astype(np.float64)
        return Between(lower[:, None], upper[:, None], k[:, None])


def conformal_position(size: IntArray, rank: IntArray | np.int64) -> IntArray:
    """Return the 0-based place of the conformal order statistic ceil((n+1) rank/100), in whole numbers."""
    return np.asarray(-((-(size + 1) * rank) // 100) - 1)
