"""What a job may need, told by a few quantiles: how they are read, and what lies beyond the last one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from brokerlab.errors import ConfigError, DataError
from brokerlab.numerics import FloatArray, IntArray

GRID: tuple[float, ...] = (
    *(0.01, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5, 0.55, 0.6, 0.65, 0.7, 0.75),
    *(0.8, 0.825, 0.85, 0.875, 0.9, 0.91, 0.92, 0.93, 0.94, 0.95, 0.955, 0.96, 0.965, 0.97),
    *(0.975, 0.98, 0.985, 0.99, 0.9925, 0.995, 0.9975, 0.999),
)
"""Levels asked of an estimator: dense where the choice between one attempt and two is made."""


@dataclass(frozen=True)
class Tail:
    """Where the needs above the last finite quantile are taken to lie.

    They fall off exponentially, at the rate of the last two quantiles: half of what is left in each further step.
    What is left after ``halvings`` steps lies at ``multiple`` times the last quantile, or one step further if that
    is larger. With the last two quantiles equal there is no rate, and all but that rest lies at them.

    Attributes:
        halvings: Steps; 0: everything lies at the multiple.
        multiple: At least 1.
    """

    halvings: int = 6
    multiple: float = 2.0

    def __post_init__(self) -> None:
        """Refuse impossible values."""
        if not (0 <= self.halvings <= 60 and 1 <= self.multiple < float("inf")):
            raise ConfigError(
                f"tail halvings={self.halvings}, multiple={self.multiple}: allowed are 0 to 60 steps "
                "and a finite multiple of at least 1"
            )


def checked_quantiles(quantiles: Any, levels: Sequence[float]) -> tuple[FloatArray, FloatArray]:
    """Return levels and quantiles as arrays.

    Raises:
        ConfigError: Levels that do not rise, or are outside 0 to 1.
        DataError: Quantiles of another shape, not above 0, not a number, or falling along a row.
    """
    asked = np.asarray(levels, dtype=np.float64)
    if asked.ndim != 1 or not asked.size or not (np.diff(np.r_[0.0, asked]) > 0).all() or asked[-1] > 1:  # fmt: skip
        raise ConfigError(f"levels {list(levels)[:5]}: rising numbers above 0 up to 1 are needed")
    found = np.ascontiguousarray(quantiles, dtype=np.float64)
    if found.ndim != 2 or found.shape[1] != asked.size:
        raise DataError(
            f"quantiles of shape {found.shape}: (jobs, {asked.size}) is needed, one column per level"
        )
    wrong = {
        "above 0 is allowed": ~(found > 0).all(axis=1),
        "a row must not fall": (found[:, 1:] < found[:, :-1]).any(axis=1),
    }
    problems = [_told(said, np.flatnonzero(rows)) for said, rows in wrong.items() if rows.any()]
    if problems:
        raise DataError("quantiles: " + "; ".join(problems))
    return asked, found


def _told(said: str, rows: IntArray) -> str:
    return f"{said}, {rows.size} rows are wrong, such as {', '.join(map(str, rows[:5]))}"
