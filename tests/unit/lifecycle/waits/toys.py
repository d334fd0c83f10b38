"""An archive of a few jobs whose waits are known by heart."""

from __future__ import annotations

from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import polars as pl

from brokerlab.archive.contracts import polars_schema
from brokerlab.archive.store import Archive, open_archive
from brokerlab.archive.writer import ArchiveWriter

DAY_0 = datetime(2026, 3, 1)
END = 400.0
TIMES = ("creationtime", "activatedtime", "starttime", "endtime", "statechangetime", "modificationtime")  # fmt: skip
PLAIN = {
    "prodsourcelabel": "managed", "lockedby": "jedi", "processingtype": "simul", "gshare": "MC", "currentpriority": 500,
    "jobstatus": "finished", "creationtime": 0, "activatedtime": 0,
}  # fmt: skip


def at(hours: float | None) -> datetime | None:
    return None if hours is None else DAY_0 + timedelta(hours=hours)


def started(pandaid: int, queue: str, wait_h: float, **columns: Any) -> dict[str, Any]:
    """Return a job that waited activated, ran for an hour and finished."""
    over = {"starttime": wait_h, "endtime": wait_h + 1, "modificationtime": wait_h + 1}
    return PLAIN | {"pandaid": pandaid, "jeditaskid": pandaid % 2, "computingsite": queue} | over | columns  # fmt: skip


def waiting(pandaid: int, queue: str, since_h: float, **columns: Any) -> dict[str, Any]:
    """Return a job that is activated to this day."""
    times = dict.fromkeys(("creationtime", "activatedtime", *TIMES[4:]), since_h)
    row = PLAIN | {"pandaid": pandaid, "jeditaskid": pandaid % 2, "computingsite": queue}
    return row | {"jobstatus": "activated"} | times | columns


JOBS = [
    started(1, "A", 48.5),  # rule activated fires after 48 h: half an hour for nothing
    started(2, "A", 60),
    started(3, "B", 30),
    started(4, "B", 10),
    {**started(5, "B", 1), "jobstatus": "closed", "starttime": None, "endtime": None,
     "statechangetime": 50, "modificationtime": 50},  # closed where it waited
    waiting(6, "B", END - 48.25),  # due a quarter of an hour before the end
    waiting(7, "B", END - 100),
    waiting(8, "P", END - 60),  # a paused queue
    waiting(9, "B", END - 49, relocationflag=2),  # stays, under production rules
    {**waiting(10, "B", END - 1), "jobstatus": "running", "starttime": END - 9, "statechangetime": END - 9,
     "modificationtime": END - 5, "creationtime": END - 10},  # silent for five hours
    {**started(11, "B", END - 4), "jobstatus": "failed", "creationtime": END - 6, "activatedtime": END - 6,
     "endtime": END - 1, "modificationtime": END, "jobdispatchererrorcode": 100},
]  # fmt: skip
QUEUES = [{"panda_queue": name, "status": "paused" if name == "P" else "online"} for name in "ABP"]
BACKLOG = [started(n, "A", 20) for n in range(1, 31)] + [started(40, "B", 2)]
"""30 jobs that wait at one queue from 0 to 20 h, and one that takes part in the fraction at 0 h."""


def write(
    folder: Path,
    jobs: list[dict[str, Any]],
    queues: list[dict[str, Any]] | None = None,
    slots: list[str] | None = None,
) -> Archive:
    """Write jobs, their times in hours, queues, and names of queues with slots set by hand as an archive."""
    timed = [{n: at(v) if n in TIMES else v for n, v in row.items()} for row in jobs]
    by_hand = [{"pandaqueuename": name, "numslots": 10} for name in slots or []]
    with ArchiveWriter(folder, synthetic=True) as writer:
        for table, rows in (("jobs", timed), ("queues", queues or []), ("slots", by_hand)):
            schema = polars_schema(table)
            if rows:
                frame = pl.DataFrame([{n: r.get(n) for n in schema} for r in rows], schema=schema)
                writer.write(table, frame, trusted=True)
        writer.commit()
    return open_archive(folder)
