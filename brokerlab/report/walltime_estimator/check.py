"""Refuse impossible parameters of the report before anything is loaded, all at once, by their own names."""

from __future__ import annotations

from collections.abc import Sequence

from brokerlab.errors import ConfigError, nearest
from brokerlab.estimators.learners import learners
from brokerlab.report.walltime_estimator.tasks import OURS, QUANTITY

FEWEST_JOBS, FEWEST_REPLICATES = 100, 100


def check(
    *, estimators: Sequence[str] = (), max_jobs: int, ids_per_s: float, level: float, n_boot: int, seed: int
) -> None:  # fmt: skip
    """Refuse impossible parameters; they are those of the notebook.

    Raises:
        ConfigError: Every parameter that is wrong, with what is allowed.

    Example:
        >>> check(max_jobs=1, ids_per_s=10, level=0.95, n_boot=2000, seed=-1)
        Traceback (most recent call last):
        brokerlab.errors.ConfigError: max_jobs=1: must be 100 or more; seed=-1: must be 0 or more
    """
    known = list(learners(QUANTITY))
    told = [f"estimators: {name!r}, {nearest(name, known)}" for name in estimators if name not in known]  # fmt: skip
    if estimators and OURS not in estimators:
        told.append(f"estimators: {OURS!r} must be one of them")
    told += [
        f"{name}={given!r}: must be {allowed}"
        for name, given, ok, allowed in (
            ("max_jobs", max_jobs, max_jobs >= FEWEST_JOBS, f"{FEWEST_JOBS} or more"),
            ("ids_per_s", ids_per_s, 0 < ids_per_s < 1e6, "above 0"),
            ("level", level, 0.5 <= level < 1, "a share from 0.5 to below 1, such as 0.95"),
            ("n_boot", n_boot, n_boot >= FEWEST_REPLICATES, f"{FEWEST_REPLICATES} or more"),
            ("seed", seed, seed >= 0, "0 or more"),
        )
        if not ok
    ]
    if told:
        raise ConfigError("; ".join(told))
