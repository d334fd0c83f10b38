"""Contracts of the tables that the analysis job brokerage reads (analysis-jobs.md 1).

A column that is not given is null; :data:`ABSENT` says what a table that is not given means. A table with ``snapshot`` says for
which instant its rows hold; without that column, or where it is null, they hold for every instant. Tables that the
production brokerage reads as well have its contracts.
"""

from functools import partial

import dataframely as dy

from brokerlab.archive import contracts as archive
from brokerlab.archive.contracts._columns import f64, flag, i64, like, text, ts
from brokerlab.brokerage import contracts as shared


def _names(meaning: str) -> dy.List:
    return dy.List(
        dy.String(nullable=True),
        nullable=True,
        metadata={"unit": "-", "null": "none", "meaning": meaning},
    )


def _class(meaning: str, null: str) -> dy.Int64:
    """Declare the column ``class``, a name that Python keeps for itself."""
    metadata = {"unit": "-", "null": null, "meaning": meaning}
    return dy.Int64(nullable=True, alias="class", metadata=metadata)


_dataset = partial(like, archive.TABLES["datasets"])
_count = partial(like, archive.TABLES["job_stats"])
_link = partial(like, archive.TABLES["queue_endpoints"])
_task = partial(like, archive.TABLES["tasks"])


class Tasks(dy.Schema):
    """A user task at one instant of brokerage, with the input considered (chapter section 1.1)."""

    jeditaskid = _task("jeditaskid", required=True)
    snapshot = i64("instant whose state the task sees", null="0")
    at = ts("instant of brokerage", null="no age limits apply")
    vo = _task("vo", null="not recorded")
    prodsourcelabel = text("user, test...")
    gshare = _task("gshare")
    workinggroup = _task("workinggroup", null="the user is the accounting unit")
    username = text("user, as in produsername")
    origusername = text("user, as registered", null="username")
    taskpriority = _task("taskpriority", null="0")
    currentpriority = _task("currentpriority", null="unknown")
    processingtype = _task("processingtype", null="group others")
    corecount = _task("corecount", null="1")
    maxcorecount = _task("maxcorecount", null="no cap")
    ramcount = _task("ramcount", null="that of the chunk")
    ramunit = _task("ramunit")
    baseramcount = _task("baseramcount")
    mergeramcount = _task("mergeramcount", null="that of the chunk")
    outdiskcount = i64("output per MB of input, by outdiskunit", null="0")
    outdiskunit = text("GB, MB, kB first, else bytes", null="bytes")
    workdiskcount = i64("working directory, by workdiskunit", null="0")
    workdiskunit = text("GB, MB, kB, else bytes", null="bytes")
    cputime = f64("HS06 s per event, by cputimeunit", null="undefined")
    cputimeunit = _task("cputimeunit", null="not in HS06")
    cpuefficiency = f64("CPU efficiency", "%", null="90")
    basewalltime = f64("wall time not scaling with events", "s", null="0")
    walltime = f64("wall time where not in HS06", "s per MB of input", null="undefined")
    walltimeunit = text("unit of walltime", null="undefined")
    iointensity = f64("input and output per second", "kB/s", null="unknown")
    diskio = f64("disk traffic", "kB/s", null="no check")
    resource_type = _task("resource_type")
    architecture = text("software platform and hardware request", null="none")
    transhome = text("software release", null="hardware and container only")
    transuses = text("base release", null="none")
    container_name = text("fat container", null="none")
    site = text("queue or endpoint", null="not pre-assigned")
    cloud = _task("cloud", null="any")
    includedsite = _names("patterns of queues that may be used")
    excludedsite = _names("patterns of queues that may not be used")
    limitedsites = flag("both lists are in force [LS]", null="no")
    usescout = flag("task with scouts [US]", null="no")
    chunk_usescout = flag("this chunk makes scouts", null="no")
    uselocalio = flag("copies to scratch [LI]", null="no")
    avoidvp = flag("avoids virtual placement [AV]", null="no")
    allowinputlan = text("use, only [IL]", null="copy to scratch")
    nsitesperjob = i64("queues per job [NS]", "queues", null="1")
    nfilesperjob = _task("nfilesperjob", null="not fixed")
    nmaxfilesperjob = _task("nmaxfilesperjob", null="200")
    ngbperjob = i64("input per job", "GB", null="not fixed")
    nfilespermergejob = i64("files per merge job", "files", null="not fixed")
    neventsperjob = _task("neventsperjob", null="not fixed")
    allowincompleteinds = flag("incomplete input is accepted [AI]", null="no")
    frozentime = ts("stuck since", null="not stuck")
    is_merging = flag("merge chunk", null="no")
    chunk_ramcount = i64("requirement of the chunk", "MB", null="0")
    atom_size = i64("smallest job, all datasets", "B", null="0")
    atom_size_effective = f64("smallest job, master only, event range considered", "MB", null="0")
    atom_nevents = i64("smallest job, master only", "events", null="0")
    n_jobs_to_submit = i64("jobs that the chunk splits into", "jobs", null="0")


class UserTotals(dy.Schema):
    """Jobs and cores of users (rows without workinggroup) and of working groups."""

    snapshot = i64("instant", null="every instant")
    origusername = text("user")
    workinggroup = text("working group", null="row of a user")
    nrunjobs = i64("running jobs", "jobs", null="unknown: no caps")
    nqueuedjobs = i64("queued jobs", "jobs", null="unknown: no caps")
    nruncores = i64("cores of running jobs", "cores", null="unknown: no caps")
    nqueuedcores = i64("cores of queued jobs", "cores", null="unknown: no caps")


class TaskClass(dy.Schema):
    """Class of tasks (classes.md 5)."""

    snapshot = i64("instant", null="every instant")
    jeditaskid = i64("task", required=True)
    class_ = _class("2 S, 1 A, 0 B, -1 C", null="A in weights, no throttle by class")
    timestamp = ts("when it was evaluated", null="just now")


class GshareUsage(dy.Schema):
    """Usage of shares against their targets (classes.md 7)."""

    snapshot = i64("instant", null="every instant")
    gshare = text("share, L1 + blank + name for the first level", required=True)
    usage_perc = f64("running over target", "fraction", null="unknown")
    eqiv_usage_perc = f64("equivalent, L1 rows", "fraction", null="unknown")
    timestamp = ts("when it was measured", null="just now")


class UserEval(dy.Schema):
    """What is left to users below the thresholds (classes.md 4)."""

    snapshot = i64("instant", null="every instant")
    user = text("user", required=True)
    rem_slots_a = f64("to threshold A", "slots", null="unknown")
    rem_slots_b = f64("to threshold B", "slots", null="unknown")
    timestamp = ts("when it was evaluated", null="just now")


class Quota(dy.Schema):
    """Disk quota of users and working groups."""

    snapshot = i64("instant", null="every instant")
    username = text("user or working group", null="every one")
    global_quota_ok = flag("under the global quota", null="yes")
    near_global_limit = flag("close to it", null="no")
    local_quota_ok = flag("local quotas are known", null="yes")
    endpoints_over_local_quota = _names("endpoints over the local quota")


class Datasets(dy.Schema):
    """Input datasets of a task."""

    jeditaskid = _dataset("jeditaskid", null="every task")
    datasetname = text("dataset", required=True)
    type = text("input, pseudo_input...")
    is_master = flag("the first dataset", null="no")
    is_distributed = flag("DDM says that it is distributed", null="no")


class Queues(shared.Queues):
    """Queues, one row per pseudo-queue (chapter sections 1.2, 1.5)."""

    cloud = text("cloud")


class QueueEndpoints(dy.Schema):
    """Endpoints of a queue, by its parent name; ``storage_endpoints`` goes before its states and space."""

    panda_queue = text("queue, unified name", required=True)
    direction = text("input, output", required=True)
    scope = text("analysis, default", null="default")
    ddm_endpoint_name = _link("ddm_endpoint_name", required=True)
    is_default = _link("is_default")
    is_tape = flag("tape", null="no")
    space_usable = f64("space that can be used", "GB", null="unknown, no check")
    read_lan = text("ON, OFF, TEST", null="usable")
    write_lan = text("ON, OFF, TEST", null="usable")
    read_wan = text("ON, OFF, TEST", null="usable")
    write_wan = text("ON, OFF, TEST", null="usable")


class JobStats(shared.JobStats):
    """Jobs by queue, share, resource type and status."""

    resource_type = _count("resource_type")


class UserJobStats(dy.Schema):
    """Jobs of users by queue and share; no row: the user has none there."""

    snapshot = i64("instant", null="every instant")
    computingsite = text("queue, unified name", required=True)
    gshare = text("leaf global share")
    produsername = text("user, as cleaned", required=True)
    nqueue = i64("queued jobs", "jobs", null="0")
    nrunning = i64("running jobs", "jobs", null="0")


class ToRunRate(dy.Schema):
    """Jobs that started at a queue over the last hours."""

    snapshot = i64("instant", null="every instant")
    computingsite = text("queue, unified name", required=True)
    jobs_per_hour = f64("rate", "jobs/h", null="0")


class FailureCounts(dy.Schema):
    """Jobs of a task that ended lately, by queue."""

    snapshot = i64("instant", null="every instant")
    jeditaskid = i64("task", null="every task")
    computingsite = text("queue, unified name", required=True)
    jobstatus = text("failed, closed, finished", required=True)
    njobs = i64("jobs", "jobs", null="0")


class SitesUsed(dy.Schema):
    """Queues that have output or log datasets of a task."""

    snapshot = i64("instant", null="every instant")
    jeditaskid = i64("task", null="every task")
    computingsite = text("queue, unified name", required=True)


class SiteClass(dy.Schema):
    """Class of queues (classes.md 3)."""

    snapshot = i64("instant", null="every instant")
    computingsite = text("queue, unified name", required=True)
    class_ = _class("1 hi, 0 mid, -1 lo", null="0")


TABLES: dict[str, type[dy.Schema]] = {
    "tasks": Tasks,
    "datasets": Datasets,
    "files": shared.Files,
    "file_locations": shared.FileLocations,
    "replicas": shared.Replicas,
    "queues": Queues,
    "queue_endpoints": QueueEndpoints,
    "storage_endpoints": shared.StorageEndpoints,
    "sw_tags": shared.SwTags,
    "worker_node_gpu": shared.WorkerNodeGpu,
    "worker_node_cpu_level": shared.WorkerNodeCpuLevel,
    "site_activity": shared.SiteActivity,
    "job_stats": JobStats,
    "user_job_stats": UserJobStats,
    "user_totals": UserTotals,
    "to_run_rate": ToRunRate,
    "failure_counts": FailureCounts,
    "worker_stats": shared.WorkerStats,
    "slots": shared.Slots,
    "diskio_usage": shared.DiskioUsage,
    "sites_used": SitesUsed,
    "site_class": SiteClass,
    "task_class": TaskClass,
    "gshare_usage": GshareUsage,
    "user_eval": UserEval,
    "quota": Quota,
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
