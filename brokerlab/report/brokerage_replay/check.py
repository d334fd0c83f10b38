"""Refuse impossible parameters of the report before anything is loaded, all at once, by their own names."""

from __future__ import annotations

from collections.abc import Sequence

from brokerlab.brokerage.rules import ProductionRules
from brokerlab.report.replays.check import checked
from brokerlab.report.replays.kinds import PRODUCTION

USUAL_KEYS = (
    *("NQUEUED_SAT_CAP", "NQUEUED_NUC_CAP_FOR_JOBS", "IO_INTENSITY_CUTOFF"),
    *("SIZE_CUTOFF_TO_MOVE_INPUT", "STORAGE_MIN_FREE_SIZE", "MAX_DISKIO_DEFAULT"),
    *("NW_QUEUE_IMPORTANCE", "MIN_WEIGHT_managed", "DISK_THRESHOLD", "INPUT_SIZE_FRACTION"),
)
"""Ten keys of different kinds: links, nuclei, input, storage, disk traffic, weight, the choice of the nucleus."""


def check(
    *,
    keys: Sequence[str],
    rules: str,
    every: str,
    max_tasks: int,
    points: int,
    switch_sample: int,
    n_boot: int,
    seed: int,
    start: str = "",
    end: str = "",
) -> None:
    """Refuse impossible parameters; they are those of the notebook.

    Raises:
        ConfigError: Every parameter that is wrong, with what is allowed.

    Example:
        >>> check(keys=["NQUEUED_SAT_CAPP"], rules="document", every="1h", max_tasks=0, points=7,
        ...     switch_sample=0, n_boot=500, seed=1)
        Traceback (most recent call last):
        brokerlab.errors.ConfigError: keys: 'NQUEUED_SAT_CAPP' is no key of the production brokerage, did you mean 'NQUEUED_SAT_CAP'?
    """
    checked(
        PRODUCTION, lambda: ProductionRules(rules), keys=keys, every=every, start=start, end=end,
        numbers={"max_tasks": max_tasks, "points": points, "switch_sample": switch_sample, "n_boot": n_boot, "seed": seed},
    )  # fmt: skip
