"""Refuse impossible parameters of the report before anything is loaded, all at once, by their own names."""

from __future__ import annotations

from collections.abc import Sequence

from brokerlab.errors import ConfigError, nearest
from brokerlab.workflows.batch import POLICIES
from brokerlab.workflows.strategies import NAMES

FEWEST_TIMES, FEWEST_REPLICATES = 2, 100
MOST_WORKERS = 64


def check(
    *,
    policies: Sequence[str],
    strategies: Sequence[str],
    times: int,
    stretch: float,
    load: float,
    workers: int,
    n_boot: int,
    seed: int,
) -> None:
    """Refuse impossible parameters; they are those of the notebook.

    Raises:
        ConfigError: Every parameter that is wrong, with what is allowed.

    Example:
        >>> check(policies=["easy-bf"], strategies=[], times=30, stretch=1, load=0.8, workers=2, n_boot=500, seed=1)
        Traceback (most recent call last):
        brokerlab.errors.ConfigError: policies: 'easy-bf', did you mean 'easy'?
    """
    told = [f"policies: {name!r}, {nearest(name, POLICIES)}" for name in policies if name not in POLICIES]  # fmt: skip
    told += [f"strategies: {name!r}, {nearest(name, NAMES)}" for name in strategies if name not in NAMES]  # fmt: skip
    for names, what in ((policies, "policies"), (strategies, "strategies")):
        if len(set(names)) < len(names):
            told.append(f"{what}: each once, these are {', '.join(names)}")
    for name, given, ok, allowed in (
        ("policies", list(policies), bool(policies), "at least one"),
        ("times", times, times >= FEWEST_TIMES, f"{FEWEST_TIMES} or more"),
        ("stretch", stretch, 0 < stretch < 1e6, "above 0"),
        ("load", load, 0 < load < 1, "between 0 and 1"),
        ("workers", workers, 1 <= workers <= MOST_WORKERS, f"from 1 to {MOST_WORKERS}"),
        ("n_boot", n_boot, n_boot >= FEWEST_REPLICATES, f"{FEWEST_REPLICATES} or more"),
        ("seed", seed, seed >= 0, "0 or more"),
    ):
        if not ok:
            told.append(f"{name}={given!r}: must be {allowed}")
    if told:
        raise ConfigError("; ".join(told))
