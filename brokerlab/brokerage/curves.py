"""The two curves of the network weight, each a small table of breakpoints that a caller may replace.

Source: docs/rules/network-weight.md 1.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from brokerlab.errors import ConfigError
from brokerlab.numerics import FloatArray


def _problems(xs: Sequence[float], weights: Sequence[float], name: str) -> list[str]:
    problems = [
        f"{column} has {value!r}: allowed are finite numbers"
        for column, values in ((name, xs), ("weight", weights))
        for value in values
        if not math.isfinite(value)
    ]
    problems += [
        f"{name}: {b!r} stands after {a!r}; allowed is ascending order without repeats"
        for a, b in itertools.pairwise(xs)
        if not a < b
    ]
    return problems


def _refuse(kind: str, problems: Sequence[str]) -> None:
    if problems:
        raise ConfigError(f"{kind}: " + "; ".join(problems))


def _columns(frame: pl.DataFrame, names: Sequence[str], kind: str) -> list[list[float | None]]:
    missing = [name for name in names if name not in frame.columns]
    wrong = [
        f"column {name} is {frame.schema[name]}, not a number"
        for name in names
        if name in frame.columns and not frame.schema[name].is_numeric()
    ]
    _refuse(kind, [f"column {name} is missing" for name in missing] + wrong)
    return [frame[name].cast(pl.Float64).to_list() for name in names]


@dataclass(frozen=True)
class ThroughputCurve:
    """Steps of the throughput weight: intervals open on the left, closed on the right.

    Attributes:
        mbps_above: Left edges, ascending [MB/s].
        weight: Weight above each edge, up to and with the next one.
        lowest: Weight at and below the first edge.

    Raises:
        ConfigError: Edges that do not ascend, numbers that are not finite, no edge, unequal lengths.

    Source: docs/rules/network-weight.md 1.
    """

    mbps_above: tuple[float, ...]
    weight: tuple[float, ...]
    lowest: float

    def __post_init__(self) -> None:
        problems = _problems(self.mbps_above, (*self.weight, self.lowest), "mbps_above")
        if len(self.mbps_above) != len(self.weight):
            problems.append(f"{len(self.mbps_above)} edges, {len(self.weight)} weights")
        if not self.mbps_above:
            problems.append("no step")
        _refuse("throughput curve", problems)

    @classmethod
    def from_frame(cls, frame: pl.DataFrame) -> ThroughputCurve:
        """Read a table ``mbps_above`` [MB/s], ``weight``; the first row, with null, is the lowest step.

        Raises:
            ConfigError: See the class; or the first row alone must have null ``mbps_above``.
        """
        edges, weights = _columns(frame, ["mbps_above", "weight"], "throughput curve")
        problems = [] if edges[:1] == [None] else ["the first row must have mbps_above null"]
        if None in edges[1:]:
            problems.append("mbps_above is null below the first row")
        if None in weights:
            problems.append("weight is null")
        _refuse("throughput curve", problems)
        steps = [float(w) for w in weights if w is not None]
        return cls(tuple(e for e in edges if e is not None), tuple(steps[1:]), steps[0])

    def frame(self) -> pl.DataFrame:
        """Return the table that :meth:`from_frame` reads."""
        return pl.DataFrame(
            {"mbps_above": [None, *self.mbps_above], "weight": [self.lowest, *self.weight]},
            schema={"mbps_above": pl.Float64, "weight": pl.Float64},
        )

    def weights(self, mbps: FloatArray) -> FloatArray:
        """Return the weight of each throughput [MB/s]; NaN stays NaN."""
        steps = np.array((self.lowest, *self.weight))
        found = steps[np.searchsorted(np.array(self.mbps_above), mbps, side="left")]
        return np.where(np.isnan(mbps), np.nan, found)

    def of(self, mbps: float) -> float:
        """Return the weight of one throughput [MB/s]."""
        return float(self.weights(np.array([mbps], dtype=np.float64))[0])


@dataclass(frozen=True)
class QueuedCurve:
    """Line, or connected lines, of the queued weight over files queued / NQUEUED_SAT_CAP; by default that of the code.

    The first and the last line go on beyond the outermost points: nothing is clamped.

    Attributes:
        fraction: Files queued over the cap, ascending; at least two.
        weight: Weight at each.

    Source: docs/rules/network-weight.md 1.
    """

    fraction: tuple[float, ...] = (0.0, 1.0)
    weight: tuple[float, ...] = (2.0, 1.0)

    def __post_init__(self) -> None:
        problems = _problems(self.fraction, self.weight, "fraction")
        if len(self.fraction) != len(self.weight) or len(self.fraction) < 2:
            problems.append(
                f"{len(self.fraction)} fractions, {len(self.weight)} weights; at least 2 of each"
            )
        _refuse("queued curve", problems)

    def weights(self, n_queued: FloatArray, cap: float) -> FloatArray:
        """Return the weight of each number of queued files; ``cap`` is NQUEUED_SAT_CAP."""
        x, w = np.array(self.fraction), np.array(self.weight)
        slope = np.diff(w) / np.diff(x)
        at = n_queued / cap
        line = np.clip(np.searchsorted(x, at, side="left") - 1, 0, len(slope) - 1)
        weights: FloatArray = w[line] + (at - x[line]) * slope[line]
        return weights

    def of(self, n_queued: float, cap: float) -> float:
        """Return the weight of one number of queued files."""
        return float(self.weights(np.array([n_queued], dtype=np.float64), cap)[0])
