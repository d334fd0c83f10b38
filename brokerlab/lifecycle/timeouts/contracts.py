"""Contracts of the tables that timeouts and fast rebrokerage read (docs/rules/waiting.md 1)."""

import dataframely as dy

from brokerlab.archive.contracts._columns import f64, i64, text, ts


class Jobs(dy.Schema):
    """Jobs as they are at the instant; those that are over never match, but rule out section 3."""

    pandaid = i64("job", key=True)
    jeditaskid = i64("task", null="not a JEDI job")
    jobdefinitionid = i64("group of jobs of one task, queue and type")
    jobstatus = text("status", null="never matches")
    creationtime = ts("inserted", null="never matches")
    modificationtime = ts("last change; heartbeats count", null="never matches")
    statechangetime = ts("last change of status", null="never matches")
    starttime = ts("running on the node", null="not started")
    endtime = ts("end on the node", null="not ended")
    currentpriority = i64("priority", null="below 800")
    prodsourcelabel = text("managed, test, user, panda...")
    processingtype = text("pmerge marks merge jobs")
    workinggroup = text("working group", null="none")
    produsername = text("user")
    gshare = text("leaf global share", null="none: no fast rebrokerage")
    computingsite = text("queue", null="unknown queue")
    lockedby = text("jedi", null="not under JEDI")
    relocationflag = i64("2 = must stay", null="0; rule inactive_queue: no match")
    jobsubstatus = text("sub-status", null="no stage-out of its own; empty likewise")
    transformation = text("payload; 'build' in it marks build jobs")
    eventservice = i64("1, 2, 4, 5: kinds of event service", null="ordinary")


class Queues(dy.Schema):
    """Queues as they are at the instant."""

    panda_queue = text("queue", key=True)
    status = text("online, standby, brokeroff, offline, test, paused", null="unknown")
    catchall = text("comma list; disableReassign", null="none")
    workflow = text("pull_ups, push...", null="the default one")
    transtimehi = f64("limit of transferring, priority 800 and more", "days", null="2")
    transtimelo = f64("limit of transferring, below 800", "days", null="6")


class SiteData(dy.Schema):
    """The row of each queue with flag ``production`` and hours = 3."""

    computingsite = text("queue", key=True)
    laststart = ts("last start of a job", null="does not count as inactive")


class StatusLog(dy.Schema):
    """Changes of job status."""

    pandaid = i64("job", required=True)
    jobstatus = text("new status", required=True)
    modificationtime = ts("when", required=True)


class OutputReports(dy.Schema):
    """Jobs with an output report still to be worked on."""

    pandaid = i64("job", key=True)


class ShareJobStats(dy.Schema):
    """Number of jobs by queue, share and status."""

    computingsite = text("queue", required=True)
    gshare = text("leaf global share", required=True)
    jobstatus = text("status", required=True)
    njobs = i64("number of jobs", "jobs", required=True)
    workqueue_id = i64("work queue", null="none")


class ShareJobStatsAt(ShareJobStats):
    """The same at many instants."""

    snapshot = i64("number of the instant", required=True)


class Slots(dy.Schema):
    """Queues with slots set by hand (``Harvester_Slots``)."""

    pandaqueuename = text("queue", required=True)


class ResourceWorkQueues(dy.Schema):
    """Work queues that stand for a resource."""

    workqueue_id = i64("work queue", key=True)


TABLES: dict[str, type[dy.Schema]] = {
    "jobs": Jobs,
    "queues": Queues,
    "site_data": SiteData,
    "status_log": StatusLog,
    "output_reports": OutputReports,
}
"""What the timeout rules read."""

FAST_TABLES: dict[str, type[dy.Schema]] = {
    "jobs": Jobs,
    "queues": Queues,
    "share_job_stats": ShareJobStats,
    "slots": Slots,
    "resource_work_queues": ResourceWorkQueues,
}
"""What fast rebrokerage reads."""
