"""Weight and caps of one queue (production-jobs.md 7)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tests.twins.world import Row

ACTIVE = ("defined", "assigned", "activated", "starting")


@dataclass
class Counts:
    """Jobs of the task's share or work queue at a queue."""

    running: int
    defined: int
    assigned: int
    activated: int
    starting: int

    def idle(self) -> bool:
        return not (
            self.running or self.defined or self.assigned or self.activated or self.starting
        )


def slots_lookup(slots: list[Row], tag: Any, resource_type: str | None) -> int | None:
    """Return the slots set for a share or work queue and a resource type; none where there is no entry (6.2)."""
    by_tag: dict[Any, dict[str | None, int]] = {row.get("gshare"): {} for row in slots}
    for row in slots:
        by_tag[row.get("gshare")][row.get("resourcetype")] = row.get("numslots") or 0
    found = by_tag.get(tag, by_tag.get(None))
    if found is None:
        return None
    if resource_type is None:
        return sum(found.values())
    return found.get(resource_type, found.get(None))


def running(
    counts: Counts,
    *,
    workers: int,
    slots: int | None,
    corecount: int,
    streams: bool,
    low_priority: bool,
    rules: Any,
) -> int:
    """Return the running jobs R that weight and caps are made of (6.2).

    Args:
        counts: Jobs.
        workers: Workers running and submitted.
        slots: Entry of ``slots``.
        corecount: Cores of the queue.
        streams: The queue is ucore and pull_ups and has had pilots.
        low_priority: The task may bootstrap.
        rules: The switches.
    """
    number = counts.running
    shares = (corecount or 1) if rules.slots_per_core else 1
    from_slots = 0 if slots is None else int(slots / shares)
    at_most = min(20, workers)
    if rules.running_count == "largest":
        from_workers = at_most if number < 20 and workers > number else 0
        return max(number, from_workers, counts.starting if slots == 0 else from_slots)
    if streams and low_priority and number < 20 and at_most > number:
        number = at_most
    if slots is not None and low_priority:
        number = number + counts.starting if slots == 0 else max(from_slots, number)
    return number


def many_assigned(counts: Counts, rules: Any) -> float:
    if not rules.many_assigned_plus_one:
        if not counts.activated:
            return 2 if counts.assigned else 1
        return max(1, min(2, counts.assigned / counts.activated))
    return max(1, min(2, (counts.assigned + 1) / (counts.activated + 1)))


def plain_weight(number: int, counts: Counts, *, local: bool, rules: Any) -> float:
    """Return the weight by running and waiting jobs alone (6.3)."""
    waiting = counts.activated + counts.starting + counts.defined + 10
    if local:
        return (number + 1) / waiting
    return (number + 1) / (waiting + counts.assigned) / many_assigned(counts, rules)


def data_factor(total: int, available: int, missing_files: int) -> float:
    return (total + available) / total / (missing_files / 100 + 1)


def queued(counts: Counts, *, local: bool) -> int:
    return counts.activated + counts.starting + (0 if local else counts.assigned)


def by_resource_type(
    rows: list[Row], types: set[str | None], *, local: bool
) -> tuple[int, int] | None:
    """Return running and queued jobs of some resource types; none without a row of one of them (6.4)."""
    rows = [row for row in rows if row.get("resource_type") in types]
    if not rows:
        return None
    statuses = ("defined", "activated", "starting") + (() if local else ("assigned",))
    n_running = sum(row["njobs"] or 0 for row in rows if row["jobstatus"] == "running")
    n_queued = sum(row["njobs"] or 0 for row in rows if row["jobstatus"] in statuses)
    return n_running, n_queued
