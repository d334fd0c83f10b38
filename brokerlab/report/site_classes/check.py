"""Refuse impossible parameters of the report before anything is loaded, all at once, by their own names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from brokerlab.brokerage.replay.plan import time_of
from brokerlab.errors import ConfigError
from brokerlab.lifecycle.classes import ClassRules
from brokerlab.report.checks import FEWEST_REPLICATES, problems
from brokerlab.times import duration_us

NUMBERS = {
    "low_ranks": "percentile_low",
    "high_ranks": "percentile_high",
    "hi_hours": "hi_limit_hours",
    "lo_hours": "lo_limit_hours",
    "long_jobs": "short_queue_jobs",
}
"""Parameter with values to try -> number of the rules."""


def check(
    *,
    grids: Mapping[str, Sequence[float]],
    rules: str,
    every: str,
    queues_shown: int,
    n_boot: int,
    seed: int,
    start: str = "",
    end: str = "",
) -> None:
    """Refuse impossible parameters; they are those of the notebook.

    Args:
        grids: Values to try, by the names of `NUMBERS`.
        rules: Rule set.
        every: Step of the instants.
        queues_shown: Queues in the chart of classes over time.
        n_boot: Bootstrap replicates.
        seed: Of the bootstrap.
        start: First instant.
        end: Last instant.

    Raises:
        ConfigError: Every parameter that is wrong, with what is allowed.

    Example:
        >>> check(grids={"low_ranks": [33]}, rules="document", every="1h", queues_shown=30, n_boot=500, seed=1)
        Traceback (most recent call last):
        brokerlab.errors.ConfigError: low_ranks: 33: allowed is a number of at least 0 and at most 1
    """
    told = problems(
        lambda: ClassRules(rules),
        lambda: duration_us(every, "every"),
        lambda: time_of(start or None, "start"),
        lambda: time_of(end or None, "end"),
    )
    for name, values in grids.items():
        for value in values:
            wrong = problems(lambda name=name, value=value: _tried(name, value))  # type: ignore[misc]
            told += [f"{name}: {value!r}: {said.partition(': ')[2]}" for said in wrong]
    for name, number, least in (
        ("queues_shown", queues_shown, 1),
        ("n_boot", n_boot, FEWEST_REPLICATES),
        ("seed", seed, 0),
    ):
        if number < least:
            told.append(f"{name}={number!r}: must be {least} or more")
    if told:
        raise ConfigError("; ".join(told))


def _tried(name: str, value: float) -> None:
    problem = ClassRules.SWITCHES[NUMBERS[name]].problem(name, value)
    if problem:
        raise ConfigError(problem[0])
