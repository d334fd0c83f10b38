"""Contracts of the tables that make a world, besides those of the brokerage.

Names are PanDA's where PanDA has one. Times are UTC without zone, in microseconds; inside, every time is a whole
number of microseconds, so that equal times are equal.
"""

import dataframely as dy

from brokerlab.archive.contracts._columns import f64, flag, i64, text, ts


class Jobs(dy.Schema):
    """A job as it truly is, and what the brokerage and the links need to know of it."""

    pandaid = i64("job", required=True)
    creationtime = ts("made, hence brokered, then", required=True)
    brokered = flag("the brokerage places it", null="no: it stays at its computingsite")
    computingsite = text("panda queue it waits at", null="the brokerage places it")
    readytime = ts("waits from here", null="the brokerage places it")
    walltime_s = f64("wall time that it needs", "s", required=True)
    corecount = i64("cores that it holds", "cores", null="1; so is 0")
    peak_memory_mb = f64("most memory that it uses", "MB", null="unknown: never killed for it")
    memory_limit_mb = f64("memory it asked for", "MB", null="only the queue's limit")
    walltime_limit_s = f64("wall time it asked for", "s", null="only the queue's limit")
    currentpriority = i64("higher starts first", null="0")
    gshare = text("leaf global share")
    produsername = text("user")
    jeditaskid = i64("task")
    prepared_s = f64("from creation to activation as seen", "s", null="0")
    input_bytes = i64("input", "B", null="0")
    output_bytes = i64("output", "B", null="0")
    nucleus = text("site that gathers the outputs", null="none: outputs stay")
    resource_type = text("SCORE, MCORE...")
    workqueue_id = i64("work queue")
    diskio = i64("disk traffic", "kB/s", null="does not count")
    prodsourcelabel = text("managed, user...")
    workinggroup = text("working group", null="none")
    processingtype = text("pmerge marks merge jobs")


class Queues(dy.Schema):
    """A panda queue."""

    panda_queue = text("panda queue", required=True)
    slots = i64("cores that run at once", "cores", required=True)
    startup_s = f64("from ready to its pilot being there, where no delays are given", "s", null="0")
    maxtime = i64("limit of wall time", "s", null="no limit; so is 0")
    maxrss = i64("limit of memory", "MB", null="no limit; so is 0")
    slowness = f64("wall time of a job that is brokered here, of what it needs", "1", null="1")


class Capacity(dy.Schema):
    """Slots of a queue from an instant on, until its next row; before its first row ``queues.slots`` hold."""

    panda_queue = text("panda queue", required=True)
    ts = ts("from here on", required=True)
    slots = i64("cores that run at once", "cores", required=True)


class Delays(dy.Schema):
    """Start-up delays seen at a queue; every attempt draws one of them."""

    panda_queue = text("panda queue", required=True)
    delay_s = f64("from ready to its pilot being there", "s", required=True)
    own = flag("seen at this queue, not at all of them together", null="yes")


class Links(dy.Schema):
    """Throughput between sites."""

    src = text("site", required=True)
    dst = text("site", required=True)
    mbps = f64("throughput", "MB/s", required=True)


class Sources(dy.Schema):
    """Sites from which a task's input can come."""

    jeditaskid = i64("task", required=True)
    site = text("site", required=True)


class Present(dy.Schema):
    """Part of a task's input that a queue has."""

    jeditaskid = i64("task", required=True)
    panda_queue = text("queue, unified name", required=True)
    part = f64("of the bytes, 0 to 1", required=True)


class Places(dy.Schema):
    """Where queues are, and pseudo-queues' parents."""

    panda_queue = text("queue or pseudo-queue", required=True)
    unified_name = text("queue whose slots it has", null="itself")
    site = text("site", null="none: its data travel nowhere")


QUEUES: dict[str, type[dy.Schema]] = {
    "jobs": Jobs,
    "queues": Queues,
    "capacity": Capacity,
    "delays": Delays,
}
"""Jobs, and the queues where they wait."""
DATA: dict[str, type[dy.Schema]] = {
    "places": Places,
    "links": Links,
    "sources": Sources,
    "present": Present,
}
"""Where data are, and how they move."""
