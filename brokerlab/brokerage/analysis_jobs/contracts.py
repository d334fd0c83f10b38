"""Contracts of the tables that the analysis job brokerage reads (analysis-jobs.md 1).

A column that is not given is null; :data:`ABSENT` says what a table that is not given means. A table with ``snapshot`` says for
which instant its rows hold; without that column, or where it is null, they hold for every instant. Tables that the
production brokerage reads as well have its contracts.
"""

from functools import partial

import dataframely as dy

from brokerlab.archive import contracts as archive
from brokerlab.archive.contracts._columns import (
    NOT_ALLOWED,
    declared,
    f64,
    flag,
    i64,
    kept,
    names,
    text,
    ts,
)
from brokerlab.brokerage import contracts as shared
from brokerlab.brokerage.contracts import (
    AT_SITE,
    ATOM,
    DATASET,
    DECIDED,
    NJOBS,
    QUEUE,
    REQUEST,
    SITE,
    SNAPSHOT,
    STUCK,
    TASK,
    WALL_TIME,
)

_count = partial(kept, archive.TABLES["job_stats"])
_task = partial(kept, archive.TABLES["tasks"])
_state = partial(text, "ON, OFF, TEST", null="usable")
_total = partial(i64, null="unknown: no caps")

_SHARED = (
    *("files", "file_locations", "replicas", "storage_endpoints", "sw_tags", "worker_node_gpu"),
    *("worker_node_cpu_level", "site_activity", "worker_stats", "slots", "diskio_usage"),
)
_OWN = declared(
    __name__,
    {
        "tasks": (
            "A user task at one instant of brokerage, with the input considered (chapter section 1.1).",
            {
                **DECIDED,
                "prodsourcelabel": text("user, test..."),
                **_task(gshare=None, workinggroup="the user is the accounting unit"),
                "username": text("user, as in produsername"),
                "origusername": text("user, as registered", null="username"),
                **_task(taskpriority="0", currentpriority="unknown", processingtype="group others"),
                **_task(corecount="1", maxcorecount="no cap", ramcount="that of the chunk"),
                **_task(ramunit=None, baseramcount=None, mergeramcount="that of the chunk"),
                "outdiskcount": i64("output per MB of input, by outdiskunit", null="0"),
                "outdiskunit": text("GB, MB, kB first, else bytes", null="bytes"),
                "workdiskcount": i64("working directory, by workdiskunit", null="0"),
                "workdiskunit": text("GB, MB, kB, else bytes", null="bytes"),
                **WALL_TIME,
                "iointensity": f64("input and output per second", "kB/s", null="unknown"),
                **REQUEST,
                "transuses": text("base release", null="none"),
                "container_name": text("fat container", null="none"),
                "site": text("queue or endpoint", null="not pre-assigned"),
                **_task(cloud="any"),
                "includedsite": names("patterns of queues that may be used"),
                "excludedsite": names("patterns of queues that may not be used"),
                "limitedsites": flag("both lists are in force [LS]", null="no"),
                "usescout": flag("task with scouts [US]", null="no"),
                "chunk_usescout": flag("this chunk makes scouts", null="no"),
                "uselocalio": flag("copies to scratch [LI]", null="no"),
                "avoidvp": flag("avoids virtual placement [AV]", null="no"),
                "allowinputlan": text("use, only [IL]", null="copy to scratch"),
                "nsitesperjob": i64("queues per job [NS]", "queues", null="1"),
                **_task(nfilesperjob="not fixed", nmaxfilesperjob="200"),
                "ngbperjob": i64("input per job", "GB", null="not fixed"),
                "nfilespermergejob": i64("files per merge job", "files", null="not fixed"),
                **_task(neventsperjob="not fixed"),
                "allowincompleteinds": flag("incomplete input is accepted [AI]", null="no"),
                **STUCK,
                "chunk_ramcount": i64("requirement of the chunk", "MB", null="0"),
                **ATOM,
                "n_jobs_to_submit": i64("jobs that the chunk splits into", "jobs", null="0"),
            },
        ),
        "user_totals": (
            "Jobs and cores of users (rows without workinggroup) and of working groups.",
            {
                **SNAPSHOT,
                "origusername": text("user"),
                "workinggroup": text("working group", null="row of a user"),
                "nrunjobs": _total("running jobs", "jobs"),
                "nqueuedjobs": _total("queued jobs", "jobs"),
                "nruncores": _total("cores of running jobs", "cores"),
                "nqueuedcores": _total("cores of queued jobs", "cores"),
            },
        ),
        "task_class": (
            "Class of tasks (classes.md 5).",
            {
                **SNAPSHOT,
                "jeditaskid": i64("task", required=True),
                "class": i64("2 S, 1 A, 0 B, -1 C", null="A in weights, no throttle by class"),
                "timestamp": ts("when it was evaluated", null="just now"),
            },
        ),
        "gshare_usage": (
            "Usage of shares against their targets (classes.md 7).",
            {
                **SNAPSHOT,
                "gshare": text("share, L1 + blank + name for the first level", required=True),
                "usage_perc": f64("running over target", "fraction", null="unknown"),
                "eqiv_usage_perc": f64("equivalent, L1 rows", "fraction", null="unknown"),
                "timestamp": ts("when it was measured", null="just now"),
            },
        ),
        "user_eval": (
            "What is left to users below the thresholds (classes.md 4).",
            {
                **SNAPSHOT,
                "user": text("user", required=True),
                "rem_slots_a": f64("to threshold A", "slots", null="unknown"),
                "rem_slots_b": f64("to threshold B", "slots", null="unknown"),
                "timestamp": ts("when it was evaluated", null="just now"),
            },
        ),
        "quota": (
            "Disk quota of users and working groups.",
            {
                **SNAPSHOT,
                "username": text("user or working group", null="every one"),
                "global_quota_ok": flag("under the global quota", null="yes"),
                "near_global_limit": flag("close to it", null="no"),
                "local_quota_ok": flag("local quotas are known", null="yes"),
                "endpoints_over_local_quota": names("endpoints over the local quota"),
            },
        ),
        "datasets": (
            "Input datasets of a task.",
            {
                **TASK,
                **DATASET,
                "type": text("input, pseudo_input..."),
                "is_master": flag("the first dataset", null="no"),
                "is_distributed": flag("DDM says that it is distributed", null="no"),
            },
        ),
        "queues": (
            "Queues, one row per pseudo-queue (chapter sections 1.2, 1.5).",
            shared.TABLES["queues"].columns() | {"cloud": text("cloud")},
        ),
        "queue_endpoints": (
            "Endpoints of a queue, by its parent name; ``storage_endpoints`` goes before its states and space.",
            {
                **QUEUE,
                "direction": text("input, output", required=True),
                "scope": text("analysis, default", null="default"),
                **kept(
                    archive.TABLES["queue_endpoints"],
                    ddm_endpoint_name=NOT_ALLOWED,
                    is_default=None,
                ),
                "is_tape": flag("tape", null="no"),
                "space_usable": f64("space that can be used", "GB", null="unknown, no check"),
                **{name: _state() for name in ("read_lan", "write_lan", "read_wan", "write_wan")},
            },
        ),
        "job_stats": (
            "Jobs by queue, share, resource type and status.",
            shared.TABLES["job_stats"].columns() | _count(resource_type=None),
        ),
        "user_job_stats": (
            "Jobs of users by queue and share; no row: the user has none there.",
            {
                **AT_SITE,
                **_count(gshare=None),
                "produsername": text("user, as cleaned", required=True),
                "nqueue": i64("queued jobs", "jobs", null="0"),
                "nrunning": i64("running jobs", "jobs", null="0"),
            },
        ),
        "to_run_rate": (
            "Jobs that started at a queue over the last hours.",
            AT_SITE | {"jobs_per_hour": f64("rate", "jobs/h", null="0")},
        ),
        "failure_counts": (
            "Jobs of a task that ended lately, by queue.",
            {
                **SNAPSHOT,
                **TASK,
                **SITE,
                **NJOBS,
                "jobstatus": text("failed, closed, finished", required=True),
            },
        ),
        "sites_used": (
            "Queues that have output or log datasets of a task.",
            SNAPSHOT | TASK | SITE,
        ),
        "site_class": (
            "Class of queues (classes.md 3).",
            AT_SITE | {"class": i64("1 hi, 0 mid, -1 lo", null="0")},
        ),
    },
)
TABLES: dict[str, type[dy.Schema]] = {
    "tasks": _OWN["tasks"],
    **{name: shared.TABLES[name] for name in _SHARED},
    **_OWN,
}
"""Every input table of the analysis job brokerage."""

NEEDED: dict[str, tuple[str, ...]] = {
    "site_activity": ("nopilot",),
    "queue_endpoints": ("data_locality", "storage", "blacklist"),
    "replicas": ("data_locality", "input_incomplete"),
    "sw_tags": ("architecture", "cache", "regexpcmtconfig"),
    "user_eval": ("gshare_class_a",),
}
"""Table to the checks, and the ends of tasks, that cannot be decided without it: where it is missing they remove nothing."""

ABSENT: dict[str, str] = {
    **{name: text for name, text in shared.ABSENT.items() if name in TABLES},
    "storage_endpoints": "states and space are those of queue_endpoints",
    "file_locations": "no local file adds to the weight",
    "user_job_stats": "users have no jobs",
    "user_totals": "no cap holds",
    "to_run_rate": "no job has started lately",
    "failure_counts": "no job of the task has ended lately",
    "sites_used": "the task has used no queue",
    "site_class": "queues are of class 0 (mid)",
    "task_class": "the task is of class A in weights, and no class holds it back",
    "gshare_usage": "no class holds a task back",
    "quota": "no quota is exceeded",
}
"""Table to what is taken where it is not given; a table of :data:`NEEDED` is unknown then."""
