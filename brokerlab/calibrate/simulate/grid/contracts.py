"""Contracts of the tables that make the world of a grid simulation, besides those of the queues and of the brokerage."""

import dataframely as dy

from brokerlab.archive.contracts._columns import f64, flag, i64, text, ts
from brokerlab.calibrate.simulate.contracts import Jobs


class GridJobs(Jobs):
    """A job as it truly is, and what the brokerage and the links need to know of it."""

    creationtime = ts("made, hence brokered, then", required=True)
    brokered = flag("the brokerage places it", null="no: it stays at its computingsite")
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


class QueueSites(dy.Schema):
    """Where queues are, and pseudo-queues' parents."""

    panda_queue = text("queue or pseudo-queue", required=True)
    unified_name = text("queue whose slots it has", null="itself")
    site = text("site", null="none: its data travel nowhere")


TABLES: dict[str, type[dy.Schema]] = {
    "jobs": GridJobs,
    "places": QueueSites,
    "links": Links,
    "sources": Sources,
    "present": Present,
}
