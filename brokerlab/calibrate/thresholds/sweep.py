"""Settings against the current one on one period: replications are added until the differences are sharp enough."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import polars as pl

from brokerlab.calibrate.thresholds.intervals import MIN_TASKS, Draw, Pair, compared
from brokerlab.calibrate.thresholds.outcomes import QUANTITIES, Period
from brokerlab.calibrate.thresholds.runs import Runs
from brokerlab.calibrate.thresholds.settings import Setting, Space
from brokerlab.errors import ConfigError, InsufficientDataError

SMALL = 1 / 3
"""Replications are enough where alone they would give less than this part of the interval: the tasks decide."""


@dataclass(frozen=True)
class Replications:
    """How often a setting is simulated.

    Attributes:
        first: Replications of every setting, from 2.
        most: Of a setting at most.
        step: Added at a time.
        precision: Half width of the interval of the objective's difference that is asked for, as a part of the current
            value.
    """

    first: int = 4
    most: int = 16
    step: int = 4
    precision: float = 0.01


@dataclass
class Sweep:
    """Settings tried on a period.

    Attributes:
        space: The keys and the configuration that acts.
        runs: The simulations.
        period: The period.
        objective: Name of the quantity that is to be small.
        replications: How often each is simulated.
        draw: How intervals are made.
        seed: First seed of the simulations.
        found: Setting to its comparison with the current one, see :func:`.intervals.compared`.
        seeds_used: Setting to its number of replications.
        stopped: Setting to why no replications were added: ``sharp``, ``tasks`` (they decide), ``beaten`` (cannot be the
            best any more), ``limit``.
    """

    space: Space
    runs: Runs
    period: Period
    objective: str
    replications: Replications
    draw: Draw
    seed: int = 0
    found: dict[Setting, pl.DataFrame] = field(default_factory=dict)
    seeds_used: dict[Setting, int] = field(default_factory=dict)
    stopped: dict[Setting, str] = field(default_factory=dict)
    n_tasks: int = 0

    def seeds(self, n: int) -> tuple[int, ...]:
        """Return the first n seeds."""
        return tuple(range(self.seed, self.seed + n))

    def try_all(self, settings: Iterable[Setting]) -> None:
        """Simulate settings, and add replications to those that may be the best and are not sharp yet."""
        asked = list(dict.fromkeys(settings))
        self._run(asked, self.replications.first)
        while True:
            n = min((self.seeds_used[one] for one in self._open(asked)), default=None)
            if n is None:
                return
            more = [one for one in self._open(asked) if self.seeds_used[one] == n]
            self._run(more, min(n + self.replications.step, self.replications.most))

    def once(self, settings: Iterable[Setting]) -> None:
        """Simulate settings with the first number of replications, those that change something and are not known."""
        new = [one for one in dict.fromkeys(settings) if one not in self.found]
        self._run([one for one in new if self.space.entries(one)], self.replications.first)

    def _run(self, settings: Sequence[Setting], n: int) -> None:
        seeds = self.seeds(n)
        configs = {one: self.space.configured(one) for one in settings}
        self.runs.ensure([self.space.config, *configs.values()], seeds, self.period)
        current = self.runs.outcome(self.space.config, seeds, self.period)
        if current is None:
            raise InsufficientDataError(
                f"the settings as they are could not be simulated from {self.period.start} to {self.period.end}: "
                f"{self.runs.missing[0].reason if self.runs.missing else 'no result'}"
            )
        self.n_tasks = current.tasks["jeditaskid"].n_unique()
        for one, config in configs.items():
            outcome = self.runs.outcome(config, seeds, self.period)
            if outcome is not None:
                self.found[one] = compared(Pair.of(current, outcome), self.draw)
                self.seeds_used[one] = n

    def _open(self, asked: Iterable[Setting]) -> list[Setting]:
        """Return the settings that need more replications, and remember why the others do not."""
        known = [one for one in asked if one in self.found]
        rows = {one: self.row(one, self.objective) for one in known}
        best = min(
            (row["diff_hi"] for row in rows.values() if row["diff_hi"] is not None), default=None
        )
        missing = {gone.config for gone in self.runs.missing}
        left = []
        for one, row in rows.items():
            reason = self._enough(row, best, self.seeds_used[one])
            if reason is None and self.space.configured(one).digest in missing:
                reason = "missing"
            if reason is None:
                left.append(one)
            else:
                self.stopped[one] = reason
        return left

    def _enough(self, row: dict[str, Any], best: float | None, n: int) -> str | None:
        """Say why a setting needs no more replications; null if it does."""
        if row["diff_lo"] is None or best is None:
            return "tasks" if self.n_tasks < MIN_TASKS else "limit"
        if row["diff_hi"] - row["diff_lo"] <= 2 * self.replications.precision * abs(row["before"]):
            return "sharp"
        if row["diff_lo"] > max(best, 0.0):
            return "beaten"
        if row["half_runs"] < SMALL * (row["diff_hi"] - row["diff_lo"]) / 2:
            return "tasks"
        return "limit" if n >= self.replications.most else None

    def between(self, first: Setting, second: Setting) -> dict[str, Any] | None:
        """Compare two settings by the objective, second minus first, on replications that nothing was chosen on.

        The best of many was lucky in the replications that made it the best. Null: a simulation is missing.
        """
        n = self.replications
        seeds = tuple(seed + n.most for seed in self.seeds(n.first))
        configs = [self.space.configured(one) for one in (first, second)]
        self.runs.ensure(configs, seeds, self.period)
        sides = [self.runs.outcome(config, seeds, self.period) for config in configs]
        known = [side for side in sides if side is not None]
        if len(known) < len(sides):
            return None
        found = compared(Pair.of(*known), self.draw)
        return found.row(by_predicate=pl.col("quantity") == self.objective, named=True)

    def only(self, name: str) -> Sweep:
        """Return what was tried of one key alone."""
        kept = {one: frame for one, frame in self.found.items() if one.keys == (name,)}
        return replace(self, found=kept)

    def row(self, setting: Setting, quantity: str) -> dict[str, Any]:
        """Return a setting's comparison by one quantity.

        Raises:
            ConfigError: No such quantity.
        """
        rows = self.found[setting].filter(pl.col("quantity") == quantity)
        if rows.is_empty():
            raise ConfigError(f"no quantity {quantity!r}")
        return rows.row(0, named=True)

    def table(self) -> pl.DataFrame:
        """Return what was tried.

        Returns:
            One row per setting and quantity, in the order tried: ``setting`` (words), ``key`` and ``value`` (text; null
            for several keys), ``n_keys``, ``replications``, ``stopped`` and the columns of :func:`.intervals.compared`.
        """
        parts = [
            frame.select(
                pl.lit(one.name).alias("setting"),
                pl.lit(one.values[0][0] if len(one.values) == 1 else None, pl.String).alias("key"),
                pl.lit(_number(one), pl.Float64).alias("value"),
                pl.lit(len(one.values), pl.Int64).alias("n_keys"),
                pl.lit(self.seeds_used[one], pl.Int64).alias("replications"),
                pl.lit(self.stopped.get(one, ""), pl.String).alias("stopped"),
                pl.all(),
            )
            for one, frame in self.found.items()
        ]
        return pl.concat(parts) if parts else pl.DataFrame(schema={"setting": pl.String})

    def values(self, setting: Setting) -> dict[str, float | None]:
        """Return every quantity of a setting; of the current one what any comparison says."""
        if setting in self.found:
            return dict(self.found[setting].select("quantity", "after").iter_rows())
        first = next(iter(self.found.values()), None)
        if first is None:
            return dict.fromkeys(quantity.name for quantity in QUANTITIES)
        return dict(first.select("quantity", "before").iter_rows())


def _number(setting: Setting) -> float | None:
    """Return the value of a setting of one key."""
    if len(setting.values) != 1 or setting.values[0][1] is None:
        return None
    return float(setting.values[0][1])
