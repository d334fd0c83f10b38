"""Values of a key to try: from the least to the largest that the catalogue calls sensible."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from brokerlab.errors import ConfigError
from brokerlab.gdpconfig.keys import CatalogueKey

LINEAR_UNITS = frozenset(
    {
        *("%", "fraction", "percentile", "ratio", "factor", "h", "tenths of jobs"),
        # not named by the rule: ranges of one or two decades, 0 is an ordinary value
        *("min", "days", "weight", "priority", "attempts"),
    }
)
"""Units searched on a linear scale; all others (sizes, counts, rates) on a logarithmic one."""
APART = 1.5
"""Factor by which other values keep away from the half and the double of the current one."""
DECADES = 10**4
"""Range of a key that may be 0, on a logarithmic scale."""


def grid(row: CatalogueKey, current: Any, points: int) -> list[Any]:
    """Return values from the least to the largest sensible one, the current one, its half and its double among them.

    Values from a little below the half to a little above the double are left out, so that no two are nearly the same;
    so is a 0 that only means the default. ``points`` does not count the current one (null = none), its half and its double.
    A key that is no number, or has no bounds, is a ConfigError.

    Example:
        >>> from brokerlab.gdpconfig.keys import rows_of
        >>> grid(rows_of("NQUEUED_SAT_CAP")[0], 150, 4)
        [10, 75, 150, 300, 1000, 10000]
        >>> grid(rows_of("NW_QUEUE_IMPORTANCE")[0], 0.5, 5)
        [0.0, 0.25, 0.5, 1.0]
    """
    if row.type == "bool":
        return [False, True]
    if row.type not in ("int", "float") or row.minimum is None or row.maximum is None:
        raise ConfigError(f"{row.key}: the catalogue gives it no range to try")
    near = near_values(row, current)
    coarse = spread(row, points)
    inner = [
        value
        for value in coarse[1:-1]
        if not near or not near[0] / APART <= value <= near[-1] * APART
    ]
    values = [coarse[0], *inner, row.maximum, *near]
    return sorted({_cast(row, value) for value in values})


def near_values(row: CatalogueKey, current: Any) -> list[Any]:
    """Return half the current value, itself and its double, within the range; nothing where there is none.

    Example:
        >>> from brokerlab.gdpconfig.keys import rows_of
        >>> near_values(rows_of("INPUT_SIZE_FRACTION")[0], 60)
        [30, 60, 100]
    """
    if current is None or isinstance(current, bool):
        return []
    low, high = row.minimum or 0.0, row.maximum or 0.0
    values = [max(low, min(current / 2, high)), current, min(high, max(2 * current, low))]
    return sorted({_cast(row, value) for value in values})


def scale_of(row: CatalogueKey) -> Literal["linear", "log"]:
    """Return how a key is searched (docs/rules/gdpconfig.md, Calibration): ``linear`` or ``log`` (sizes, counts, rates)."""
    return "linear" if row.unit in LINEAR_UNITS or row.type == "bool" else "log"


def spread(row: CatalogueKey, points: int) -> list[float]:
    """Return values spread evenly over the range, on the scale of the key; a 0 that may be set is the first."""
    low, high = row.minimum or 0.0, row.maximum or 0.0
    if scale_of(row) == "linear":
        return [float(value) for value in np.linspace(low, high, points)]
    with_zero = low <= 0 and not row.zero_is_undefined
    first = low if low > 0 else max(1.0, high / DECADES)
    spread = [float(value) for value in np.geomspace(first, high, points - with_zero)]
    return [low, *spread] if with_zero else spread


def _cast(row: CatalogueKey, value: Any) -> int | float:
    """Return a value in the type of the key."""
    return round(value) if row.type == "int" else float(value)
