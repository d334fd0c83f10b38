"""What a replay of a period asks of the archive besides the brokerage's tables: which tasks, and what really ran."""

from __future__ import annotations

from datetime import datetime

from brokerlab.archive.store import Archive
from brokerlab.brokerage.studies.period import CYCLE, draw_tasks
from brokerlab.brokerage.studies.period import jobs_that_ran as ran
from brokerlab.times import grain

__all__ = ["CYCLE", "grain", "ran"]


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
