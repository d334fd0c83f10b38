"""Refuse impossible parameters of the report before anything is loaded, all at once, by their own names."""

from __future__ import annotations

from collections.abc import Sequence

from brokerlab.brokerage.replay.plan import time_of
from brokerlab.errors import ConfigError
from brokerlab.lifecycle.timeouts import TimeoutRules
from brokerlab.lifecycle.waiting.period import UNIT_COLUMNS as UNITS
from brokerlab.report.checks import FEWEST_REPLICATES, problems
from brokerlab.times import duration_us

MOST_SCALES = 12
"""Every scale judges all waits again, and is a point of a curve."""


def check(
    *,
    rules: str,
    scales: Sequence[float],
    soon_h: float,
    every: str,
    unit: str,
    n_boot: int,
    seed: int,
    start: str = "",
    end: str = "",
) -> None:
    """Refuse impossible parameters; they are those of the notebook.

    Raises:
        ConfigError: Every parameter that is wrong, with what is allowed.

    Example:
        >>> check(rules="document", scales=[1, 0], soon_h=1, every="6h", unit="queue", n_boot=500, seed=1)
        Traceback (most recent call last):
        brokerlab.errors.ConfigError: scales=[1, 0]: allowed are 1 to 12 numbers above 0
    """
    told = problems(
        lambda: TimeoutRules(rules),
        lambda: duration_us(every, "every"),
        lambda: time_of(start or None, "start"),
        lambda: time_of(end or None, "end"),
    )
    good = [isinstance(scale, int | float) and scale > 0 for scale in scales]
    for name, value, ok, allowed in (
        ("scales", list(scales), all(good) and 0 < len(good) <= MOST_SCALES,
         f"are 1 to {MOST_SCALES} numbers above 0"),
        ("soon_h", soon_h, soon_h > 0, "is a number above 0"),
        ("unit", unit, unit in UNITS, f"is {' or '.join(UNITS)}"),
        ("n_boot", n_boot, n_boot >= FEWEST_REPLICATES, f"is {FEWEST_REPLICATES} or more"),
        ("seed", seed, seed >= 0, "is 0 or more"),
    ):  # fmt: skip
        if not ok:
            told.append(f"{name}={value!r}: allowed {allowed}")
    if told:
        raise ConfigError("; ".join(told))
