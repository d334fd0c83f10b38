"""The thresholds that can be calibrated: what each trades, between which guard rails, and which values are tried.

The keys are package data (``keys.csv``); type, unit, default and guard rails are those of the catalogue, so that they stand
in one place only.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from importlib import resources
from math import floor, isfinite, log10
from typing import Any, Literal

from brokerlab.errors import ConfigError, nearest
from brokerlab.gdpconfig import keys as catalogue
from brokerlab.gdpconfig.keys import CatalogueKey
from brokerlab.gdpconfig.ranges import scale_of, spread

Stage = Literal["jobs", "tasks", "analysis", "lifecycle"]
STAGES: dict[str, str] = {
    "jobs": "production job brokerage",
    "tasks": "choice of the nucleus",
    "analysis": "analysis brokerage",
    "lifecycle": "fast rebrokerage",
}
"""Stages and what decides in them."""
HOLDS: dict[str, tuple[str, ...]] = {
    "jobs": ("jobs", "lifecycle"),
    "analysis": ("analysis", "lifecycle"),
}
"""Stage of a grid simulation to the stages whose keys it holds: what waits too long is moved in either."""
POINTS = 9
"""Values of a default grid, the current one not counted."""
APART = 1.3
"""Values of a logarithmic grid nearer than this factor to the current one are left out ..."""
THIRD = 1 / 3
"""... and those of a linear one nearer than this part of a step."""


@dataclass(frozen=True, kw_only=True)
class Threshold:
    """One key: where it is read, which decision reads it, what grows and what shrinks when it is raised."""

    key: str
    component: str
    stage: Stage
    grows: str
    shrinks: str

    @cached_property
    def row(self) -> CatalogueKey:
        """The catalogue's row."""
        return catalogue.find(self.key, component=self.component)

    @property
    def place(self) -> str:
        """``app/component``."""
        return f"{self.row.app}/{self.component}"

    @property
    def integer(self) -> bool:
        """Only whole numbers."""
        return self.row.type == "int"

    @property
    def scale(self) -> Literal["linear", "log"]:
        """How it is searched: evenly, or by factors (sizes, counts, rates)."""
        return scale_of(self.row)

    @property
    def rails(self) -> tuple[float, float]:
        """Guard rails [unit]; a 0 that only means the default is outside."""
        low, high = self.row.minimum or 0.0, self.row.maximum or 0.0
        return (1.0 if low <= 0 and self.row.zero_is_undefined else low), high

    @property
    def judged_by(self) -> str:
        """``simulation``, or ``screen``: no simulation of the grid holds what the key decides."""
        held = {stage for stages in HOLDS.values() for stage in stages}
        return "simulation" if self.stage in held else "screen"

    def problem(self, value: Any) -> str | None:
        """Say why a value cannot be tried; null if it can.

        Example:
            >>> threshold_of("NQUEUED_SAT_CAP").problem(5)
            'NQUEUED_SAT_CAP=5: outside the guard rails 10 to 10000 [files]'
        """
        if value is None:
            return None
        low, high = self.rails
        whole = isinstance(value, int) and not isinstance(value, bool)
        if not whole and (self.integer or not isinstance(value, float) or not isfinite(value)):
            kind = "a whole number" if self.integer else "a number"
            return f"{self.key}={value!r}: {kind} is needed [{self.row.unit}]"
        if not low <= value <= high:
            return f"{self.key}={value:g}: outside the guard rails {low:g} to {high:g} [{self.row.unit}]"
        return None

    def grid(self, current: Any = None, *, points: int = POINTS) -> tuple[Any, ...]:
        """Return values to try between the guard rails: ``points`` of them and the current one (null: none, it stands at the end).

        On a linear scale the half and the double of the current one are too: where it lies near an end, steps are too wide there.

        Example:
            >>> threshold_of("NQUEUED_SAT_CAP").grid(150, points=4)
            (10, 100, 150, 1000, 10000)
            >>> threshold_of("NW_QUEUE_IMPORTANCE").grid(0.5, points=3)
            (0.0, 0.25, 0.5, 1.0)
            >>> threshold_of("MAX_DISKIO_DEFAULT").grid(None, points=3)
            (100, 3200, 100000, None)
        """
        if points < 2:
            raise ConfigError(f"{self.key}: a grid of {points} values: allowed are 2 or more")
        values = {self.snapped(value) for value in spread(self.row, points)}
        if current is not None:
            times = (0.5, 2.0) if self.scale == "linear" else ()
            near = {self.snapped(current * factor) for factor in times} | {current}
            low, high = self.rails
            step = (high - low) / (points - 1)
            values = {v for v in values if not any(self._beside(v, n, step) for n in near)} | near
        return (*sorted(values), *([None] if current is None else []))

    def snapped(self, value: float) -> Any:
        """Return a value as a person would write it, two digits on a logarithmic scale, within the guard rails."""
        low, high = self.rails
        number = min(max(value, low), high)
        if self.scale == "log" and number not in (low, high):
            number = round(number, 1 - floor(log10(number)))
        return round(number) if self.integer else float(f"{number:.3g}")

    def _beside(self, value: float, near: float, step: float) -> bool:
        """Tell whether a value says nothing that a value near the current one does not."""
        if value in self.rails:
            return value == near
        if self.scale == "linear" or min(value, near) <= 0:
            return abs(value - near) < step * THIRD
        return max(value, near) < APART * min(value, near)


TEXT = resources.files("brokerlab.calibrate.thresholds").joinpath("keys.csv").read_text("utf-8")
ROWS: Iterable[dict[str, Any]] = csv.DictReader(TEXT.splitlines())
THRESHOLDS: tuple[Threshold, ...] = tuple(Threshold(**row) for row in ROWS)
"""The keys, those of the production job brokerage first."""


def threshold_of(name: str) -> Threshold:
    """Return what is known of a key: as the catalogue writes it, or one exact key of a pattern; ConfigError names the nearest.

    Example:
        >>> threshold_of("NQUEUELIMITSITE_Express").key
        'NQUEUELIMITSITE_<gshare>'
        >>> threshold_of("NQUEUED_SAT_CUP")
        Traceback (most recent call last):
        brokerlab.errors.ConfigError: no threshold 'NQUEUED_SAT_CUP': did you mean 'NQUEUED_SAT_CAP'?
    """
    known = {entry.key: entry for entry in THRESHOLDS}
    if name in known:
        return known[name]
    for row in catalogue.rows_of(name):
        if row.key in known:
            return known[row.key]
    raise ConfigError(f"no threshold {name!r}: {nearest(name, known)}")
