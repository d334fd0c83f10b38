"""What a replay of a period asks of the archive besides the brokerage's tables: which tasks, and what really ran."""

from __future__ import annotations

from datetime import datetime, timedelta

from brokerlab.archive.store import Archive
from brokerlab.brokerage.studies.period import CYCLE, draw_tasks
from brokerlab.brokerage.studies.period import jobs_that_ran as ran

__all__ = ["CYCLE", "ran"]


def drawn(
    opened: Archive,
    first: datetime | None,
    last: datetime | None,
    *,
    label: str,
    most: int,
    seed: int,
) -> tuple[list[int] | None, int]:
    """Draw the tasks to replay."""
    return draw_tasks(opened, first, last, label=label, most=most, seed=seed)


def grain(window: tuple[datetime, datetime]) -> str:
    """Return the step of charts over time: days, weeks beyond two months.

    Example:
        >>> grain((datetime(2026, 3, 1), datetime(2026, 3, 28)))
        '1d'
    """
    return "1d" if window[1] - window[0] <= timedelta(days=62) else "1w"
