"""Parameters that all reports of replayed brokerages have."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from brokerlab.brokerage.replay.plan import time_of
from brokerlab.errors import ConfigError
from brokerlab.report.checks import FEWEST_REPLICATES, problems
from brokerlab.report.replays.kinds import Kind
from brokerlab.report.replays.settings import check_keys
from brokerlab.times import duration_us

LEAST = {
    "max_tasks": 0,
    "points": 3,  # both ends of the range of a key, and the current value
    "switch_sample": 0,
    "n_boot": FEWEST_REPLICATES,
    "seed": 0,
}
"""The least value of each number."""


def checked(
    kind: Kind, rules: Callable[[], object], *, keys: Sequence[str], every: str, start: str, end: str, numbers: Mapping[str, int]
) -> None:  # fmt: skip
    """Refuse impossible parameters.

    Args:
        kind: The brokerage.
        rules: Makes the rule set.
        keys: gdpconfig keys to vary.
        every: Grid of the instants; empty: none.
        start: First brokerage; empty: no bound.
        end: End of the period; empty: no bound.
        numbers: Values of the parameters of `LEAST`.

    Raises:
        ConfigError: Every parameter that is wrong, with what is allowed.
    """
    told = problems(
        lambda: check_keys(keys, kind),
        rules,
        lambda: duration_us(every, "every") if every else None,
        lambda: time_of(start or None, "start"),
        lambda: time_of(end or None, "end"),
    )
    told += [
        f"{name}={numbers[name]!r}: must be {least} or more"
        for name, least in LEAST.items()
        if numbers[name] < least
    ]
    if told:
        raise ConfigError("; ".join(told))
