"""Contracts of the tables that the grid simulator reads.

Names are PanDA's where PanDA has one. Times are UTC without zone, in microseconds; inside, every time is a whole
number of microseconds, so that equal times are equal.
"""

import dataframely as dy

from brokerlab.archive.contracts._columns import f64, i64, text, ts


class Jobs(dy.Schema):
    """A job as it truly is; where it runs and from when may be said later (``place``)."""

    pandaid = i64("job", required=True)
    computingsite = text("panda queue it waits at", null="placed later")
    readytime = ts("waits from here", null="placed later")
    walltime_s = f64("wall time that it needs", "s", required=True)
    corecount = i64("cores that it holds", "cores", null="1; so is 0")
    peak_memory_mb = f64("most memory that it uses", "MB", null="unknown: never killed for it")
    memory_limit_mb = f64("memory it asked for", "MB", null="only the queue's limit")
    walltime_limit_s = f64("wall time it asked for", "s", null="only the queue's limit")
    currentpriority = i64("higher starts first", null="0")
    gshare = text("leaf global share")
    produsername = text("user")
    jeditaskid = i64("task")


class Queues(dy.Schema):
    """A panda queue."""

    panda_queue = text("panda queue", required=True)
    slots = i64("cores that run at once", "cores", required=True)
    startup_s = f64(
        "from ready to being offered to the slots, where no delays are given", "s", null="0"
    )
    maxtime = i64("limit of wall time", "s", null="no limit; so is 0")
    maxrss = i64("limit of memory", "MB", null="no limit; so is 0")


class Capacity(dy.Schema):
    """Slots of a queue from an instant on, until its next row; before its first row ``queues.slots`` hold."""

    panda_queue = text("panda queue", required=True)
    ts = ts("from here on", required=True)
    slots = i64("cores that run at once", "cores", required=True)


class Delays(dy.Schema):
    """Start-up delays seen at a queue; every attempt draws one of them."""

    panda_queue = text("panda queue", required=True)
    delay_s = f64("from ready to being offered to the slots", "s", required=True)


class Placements(dy.Schema):
    """Where a job is sent, by a brokerage cycle."""

    pandaid = i64("job", required=True)
    computingsite = text("panda queue it waits at", required=True)
    readytime = ts("waits from here", required=True)


TABLES: dict[str, type[dy.Schema]] = {
    "jobs": Jobs,
    "queues": Queues,
    "capacity": Capacity,
    "delays": Delays,
}
