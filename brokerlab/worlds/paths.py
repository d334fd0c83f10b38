"""The course of one invented job through the statuses, second by second."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from brokerlab.archive.contracts.jobs import OVER

HOUR, DAY = 3600, 86_400
USUAL_S = {
    "defined": 20,
    "assigned": 25,
    "activated": 600,
    "starting": 120,
    "running": 1500,
    "holding": 15,
}
"""Statuses of an ordinary job and how long it stays in each [s]."""
ORDER = (
    *("pending", "waiting", "defined", "assigned", "throttled", "activated", "sent", "starting"),
    *("running", "merging", "holding", "transferring"),
)
"""Statuses that a path may have, in the order that jobs take them."""


@dataclass(frozen=True)
class Path:
    """The statuses of a job with the second at which each began, and what else its row says."""

    # ``(status, second)``, the last one holds at the end of the archive
    steps: tuple[tuple[str, int], ...]
    queue: int  # index of the queue
    # columns of ``jobs`` that differ from the usual ones of its task
    columns: Mapping[str, Any] = field(default_factory=dict)
    signed_s: int | None = None  # last sign of life, if later than the last change of status [s]
    # number of the job of the same task that this one tries again, in their order; None = none
    again: int | None = None

    @property
    def created_s(self) -> int:
        """Second of creation."""
        return self.steps[0][1]

    @property
    def status(self) -> str:
        """Status at the end of the archive."""
        return self.steps[-1][0]

    @property
    def changed_s(self) -> int:
        """Second of the last change of status."""
        return self.steps[-1][1]

    @property
    def live(self) -> bool:
        """The job is not over."""
        return self.status not in OVER

    def first(self, *statuses: str) -> int | None:
        """Return when the job was first in one of the statuses."""
        return next((second for status, second in self.steps if status in statuses), None)

    @property
    def ended_s(self) -> int | None:
        """Second at which the payload ended; None if it did not."""
        after = [i for i, (status, _) in enumerate(self.steps) if status == "running"]
        if not after or after[-1] + 1 == len(self.steps):
            return None
        return self.steps[after[-1] + 1][1]


def steps(
    begin_s: int,
    stays: Mapping[str, int] | None = None,
    *,
    last: str = "finished",
    skip: tuple[str, ...] = (),
) -> tuple[tuple[str, int], ...]:
    """Lay a path out from its creation; ``stays`` [s] are those that are not as usual, also in statuses that are not.

    A ``last`` status of ``ORDER`` ends the path there; ``skip`` are usual ones that the job does not take.

    Example:
        >>> steps(0, {"holding": 100}, skip=("defined", "assigned"))
        (('activated', 0), ('starting', 600), ('running', 720), ('holding', 2220), ('finished', 2320))
        >>> steps(0, {"activated": 50}, last="starting")
        (('defined', 0), ('assigned', 20), ('activated', 45), ('starting', 95))
    """
    length = {**USUAL_S, **(stays or {})}
    result, second = [], begin_s
    for status in ORDER:
        if status not in length or status in skip:
            continue
        result.append((status, second))
        if status == last:
            return tuple(result)
        second += length[status]
    return (*result, (last, second))


def until(
    end_s: int, status: str, stay_s: int, stays: Mapping[str, int] | None = None
) -> tuple[tuple[str, int], ...]:
    """Lay out the path of a job that at the end of the archive has been in a status for so long.

    Example:
        >>> until(1000, "activated", 900)
        (('defined', 55), ('assigned', 75), ('activated', 100))
    """
    length = {**(stays or {}), status: stay_s}
    at_zero = steps(0, length, last=status)
    shift = end_s - stay_s - at_zero[-1][1]
    return tuple((name, second + shift) for name, second in at_zero)
