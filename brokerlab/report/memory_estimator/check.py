"""Refuse impossible parameters of the report before anything is loaded, all at once, by their own names."""

from __future__ import annotations

from collections.abc import Sequence

from brokerlab.errors import ConfigError
from brokerlab.estimators.learners import learners

FEWEST_REPLICATES = 100
MOST_SEEDS = 50


def check(
    *, seeds: Sequence[int], level: float, n_boot: int, seed: int, models: Sequence[str] = ()
) -> None:
    """Refuse impossible parameters; they are those of the notebook.

    Raises:
        ConfigError: Every parameter that is wrong, with what is allowed.

    Example:
        >>> check(seeds=[1, 1], level=0.95, n_boot=2000, seed=1)
        Traceback (most recent call last):
        brokerlab.errors.ConfigError: seeds=[1, 1]: must be 1 to 50 different numbers, 0 or more
    """
    fine = 0 < len(seeds) <= MOST_SEEDS and len(set(seeds)) == len(seeds) and min(seeds) >= 0
    told = [
        f"{name}={given!r}: must be {allowed}"
        for name, given, ok, allowed in (
            ("seeds", list(seeds), fine, f"1 to {MOST_SEEDS} different numbers, 0 or more"),
            ("level", level, 0.5 <= level < 1, "a share from 0.5 to below 1, such as 0.95"),
            ("n_boot", n_boot, n_boot >= FEWEST_REPLICATES, f"{FEWEST_REPLICATES} or more"),
            ("seed", seed, seed >= 0, "0 or more"),
        )
        if not ok
    ]
    try:
        learners("memory", *models)
    except ConfigError as problem:
        told.append(str(problem))
    if told:
        raise ConfigError("; ".join(told))
