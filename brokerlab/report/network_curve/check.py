"""Refuse impossible parameters of the report before anything is loaded, all at once, by their own names."""

from __future__ import annotations

from brokerlab.brokerage.replay.plan import time_of
from brokerlab.errors import ConfigError

FEWEST_REPLICATES = 20
"""Bootstrap replicates below which an interval has no ends."""
MOST_STEPS = 30
FEWEST_UNSEEN, MOST_UNSEEN = 0.1, 0.9


def check(
    *,
    archive: str,
    transfers: str,
    start: str,
    end: str,
    steps: int,
    unseen_share: float,
    n_boot: int,
    seed: int,
) -> None:
    """Refuse impossible parameters; they are those of the notebook.

    Raises:
        ConfigError: Every parameter that is wrong, with what is allowed.

    Example:
        >>> check(archive="data/demo", transfers="", start="", end="", steps=0, unseen_share=0.5, n_boot=500,
        ...     seed=1)
        Traceback (most recent call last):
        brokerlab.errors.ConfigError: steps=0: must be from 1 to 30
    """
    told = []
    for name, value in (("start", start), ("end", end)):
        try:
            time_of(value or None, name)
        except ConfigError as problem:
            told.append(str(problem))
    share = f"a share from {FEWEST_UNSEEN} to {MOST_UNSEEN}, such as 0.5"
    for name, given, ok, allowed in (
        ("archive", archive, bool(archive or transfers), "an archive folder or a file, or give transfers"),
        ("steps", steps, 1 <= steps <= MOST_STEPS, f"from 1 to {MOST_STEPS}"),
        ("unseen_share", unseen_share, FEWEST_UNSEEN <= unseen_share <= MOST_UNSEEN, share),
        ("n_boot", n_boot, n_boot >= FEWEST_REPLICATES, f"{FEWEST_REPLICATES} or more"),
        ("seed", seed, seed >= 0, "0 or more"),
    ):  # fmt: skip
        if not ok:
            told.append(f"{name}={given!r}: must be {allowed}")
    if told:
        raise ConfigError("; ".join(told))
