"""What a simulation may be off to be believed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Self

from brokerlab.errors import ConfigError, nearest


@dataclass(frozen=True)
class Limits:
    """What a simulation may be off to be believed.

    Attributes:
        wasserstein_h: Distance of the waiting times at a queue [h] ...
        relative: ... or this part of the mean wait seen there, whichever is more.
        ks: Kolmogorov-Smirnov distance of the waiting times at a queue.
        delay_h: Mean start-up delay of a queue [h]. Delays are fitted: where they are long, they and not the slots make the
            waits, whose distribution then agrees whatever the simulation does, and says nothing about another load.
        correlation: Spearman's, of the waits of the same jobs on both sides, at least; asked where the mean wait seen is
            above ``wasserstein_h``. It tells whether the jobs wait when they waited, which a distribution does not.
        utilisation: Difference of the used part of a queue's slots in the period.
        kills: Difference of the killed part of a queue's jobs.
        placement: Difference of the numbers of jobs at a queue, as a part of those seen; asked where the brokerage was
            simulated, too.
        least_jobs: Queues with fewer jobs are not judged.
        queues: Part of the jobs of judged queues that must be at queues within all limits.
    """

    wasserstein_h: float = 0.5
    relative: float = 0.25
    ks: float = 0.25
    delay_h: float = 0.25
    correlation: float = 0.3
    utilisation: float = 0.05
    kills: float = 0.01
    placement: float = 0.35
    least_jobs: int = 50
    queues: float = 0.8

    def __post_init__(self) -> None:
        """Refuse limits that nothing or everything meets by their sign."""
        wrong = [f"{name} is {value}" for name, value in vars(self).items() if not value >= 0]
        if wrong or not 0 < self.queues <= 1:
            raise ConfigError(
                f"limits: {'; '.join(wrong) or f'queues is {self.queues}'}: 0 or more, queues above 0 to 1"
            )

    @classmethod
    def of(cls, given: Mapping[str, float]) -> Self:
        """Return the defaults but for what is given by name.

        Raises:
            ConfigError: Unknown names, or values that make no sense.
        """
        known = {entry.name: entry.type for entry in fields(cls)}
        unknown = [f"{name!r}: {nearest(name, list(known))}" for name in given if name not in known]
        if unknown:
            raise ConfigError(f"unknown {'; '.join(unknown)}")
        whole = {name: int(value) for name, value in given.items() if known[name] == "int"}
        return cls(**{**given, **whole})  # type: ignore[arg-type]
