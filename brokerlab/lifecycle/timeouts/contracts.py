"""Contracts of the tables that timeouts and fast rebrokerage read (docs/rules/waiting.md 1).

Columns are those of the archive; what a missing value means here stands beside their names.
"""

from functools import partial

import dataframely as dy

from brokerlab.archive import contracts as archive
from brokerlab.archive.contracts._columns import NOT_ALLOWED, declared, f64, i64, kept, text

_job = partial(kept, archive.TABLES["jobs"])
_count = partial(kept, archive.TABLES["job_stats"])
_change = partial(kept, archive.TABLES["job_status_log"])
_COUNTED = {
    **_count(computingsite=NOT_ALLOWED, gshare=NOT_ALLOWED, jobstatus=NOT_ALLOWED),
    **_count(njobs=NOT_ALLOWED, workqueue_id="none"),
}
_NEVER = "never matches"

_ALL = declared(
    __name__,
    {
        "jobs": (
            "Jobs as they are at the instant; those that are over never match, but rule out section 3.",
            {
                **_job(pandaid=NOT_ALLOWED, jeditaskid="not a JEDI job"),
                "jobdefinitionid": i64("group of jobs of one task, queue and type"),
                **_job(jobstatus=_NEVER, creationtime=_NEVER, modificationtime=_NEVER),
                **_job(statechangetime=_NEVER, starttime="not started", endtime="not ended"),
                **_job(currentpriority="below 800", prodsourcelabel="not recorded"),
                **_job(processingtype=None, workinggroup=None, produsername=None),
                **_job(gshare="none: no fast rebrokerage", computingsite="unknown queue"),
                **_job(lockedby="not under JEDI"),
                "relocationflag": i64("2 = must stay", null="0; rule inactive_queue: no match"),
                **_job(jobsubstatus="no stage-out of its own; empty likewise"),
                **_job(transformation=None, eventservice="ordinary"),
            },
        ),
        "queues": (
            "Queues as they are at the instant; of several rows of one the latest counts.",
            {
                **kept(archive.TABLES["queues"], panda_queue=NOT_ALLOWED, status="unknown"),
                **kept(archive.TABLES["queues"], ts="before all others"),
                "catchall": text("comma list; disableReassign", null="none"),
                "workflow": text("pull_ups, push...", null="the default one"),
                "transtimehi": f64(
                    "limit of transferring, priority 800 and more", "days", null="2"
                ),
                "transtimelo": f64("limit of transferring, below 800", "days", null="6"),
            },
        ),
        "site_data": (
            "The row of each queue with flag ``production`` and hours = 3.",
            {
                "computingsite": text("queue", required=True),
                **kept(archive.TABLES["site_data"], laststart="does not count as inactive"),
            },
        ),
        "status_log": (
            "Changes of job status.",
            _change(pandaid=NOT_ALLOWED, jobstatus=NOT_ALLOWED, modificationtime=NOT_ALLOWED),
        ),
        "output_reports": (
            "Jobs with an output report still to be worked on.",
            _job(pandaid=NOT_ALLOWED),
        ),
        "share_job_stats": ("Number of jobs by queue, share and status.", _COUNTED),
        "share_job_stats_at": (
            "The same at many instants.",
            {**_COUNTED, "snapshot": i64("number of the instant", required=True)},
        ),
        "slots": (
            "Queues with slots set by hand (``Harvester_Slots``).",
            kept(archive.TABLES["slots"], pandaqueuename=NOT_ALLOWED),
        ),
        "resource_work_queues": (
            "Work queues that stand for a resource.",
            _count(workqueue_id=NOT_ALLOWED),
        ),
    },
)


def _some(*names: str) -> dict[str, type[dy.Schema]]:
    return {name: _ALL[name] for name in names}


TABLES = _some("jobs", "queues", "site_data", "status_log", "output_reports")
"""What the timeout rules read."""
FAST_TABLES = _some("jobs", "queues", "share_job_stats", "slots", "resource_work_queues")
"""What fast rebrokerage reads."""
AT_INSTANTS = {"share_job_stats": _ALL["share_job_stats_at"]}
"""What it reads instead where it is asked at many instants."""
