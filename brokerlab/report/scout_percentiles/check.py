"""Refuse impossible parameters of the report before anything is loaded, all at once, by their own names."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from brokerlab.calibrate.loss import LossWeights
from brokerlab.calibrate.parameters import PARAMETERS
from brokerlab.errors import ConfigError
from brokerlab.report.scout_percentiles.inputs import time_of
from brokerlab.report.scout_percentiles.study import grid, parameters_named
from brokerlab.scouts import ScoutRules

FEWEST_REPLICATES = 20
"""Bootstrap replicates below which an interval has no ends."""


def check(
    *,
    parameter: str,
    ranks: Iterable[int],
    margins: Iterable[int],
    loss: dict[str, float],
    alpha: float,
    limit_on: str,
    early_share: float,
    rules: str,
    n_boot: int,
    seed: int,
    window_start: str = "",
    window_end: str = "",
) -> None:
    """Refuse impossible parameters; they are those of the notebook.

    Raises:
        ConfigError: Every parameter that is wrong, with what is allowed.

    Example:
        >>> check(parameter="ramcount", ranks=[50, 99], margins=[0, 30], loss={}, alpha=2,
        ...     limit_on="upper", early_share=0.5, rules="document", n_boot=2000, seed=1)
        Traceback (most recent call last):
        brokerlab.errors.ConfigError: alpha=2: must be a share from 0 to 1, such as 0.02
    """
    name_of_weights = parameter if parameter in PARAMETERS else "ramcount"  # all have the same ones
    told = problems(
        lambda: parameters_named(parameter),
        lambda: grid(ranks, name="ranks", most=100),
        lambda: grid(margins, name="margins", most=1000),
        lambda: LossWeights.default(name_of_weights, **loss),
        lambda: ScoutRules(rules=rules),
        lambda: time_of("window_start", window_start),
        lambda: time_of("window_end", window_end),
    )
    for name, value, ok, allowed in (
        ("alpha", alpha, 0 <= alpha <= 1, "a share from 0 to 1, such as 0.02"),
        ("limit_on", limit_on, limit_on in ("upper", "point"), "upper or point"),
        ("early_share", early_share, 0 < early_share < 1, "a share between 0 and 1, such as 0.5"),
        ("n_boot", n_boot, n_boot >= FEWEST_REPLICATES, f"{FEWEST_REPLICATES} or more"),
        ("seed", seed, seed >= 0, "0 or more"),
    ):
        if not ok:
            told.append(f"{name}={value!r}: must be {allowed}")
    if told:
        raise ConfigError("; ".join(told))


def problems(*judged: Callable[[], object]) -> list[str]:
    """Return what each judgement complains of."""
    told = []
    for judge in judged:
        try:
            judge()
        except ConfigError as problem:
            told.append(str(problem))
    return told
