"""Contracts of counts and activity (archive.md 8; matching.md 1)."""

import dataframely as dy

from brokerlab.archive.contracts import jobs, tasks
from brokerlab.archive.contracts._columns import f64, i32, i64, json_text, resource_type, text, ts

WORKER_STATUSES = ("submitted", "running", "ready", "idle", "finished", "failed", "cancelled", "missed")  # fmt: skip
"""Statuses of workers."""


class JobStats(dy.Schema):
    """Jobs by queue, share, status (DB ``JOBS_SHARE_STATS``, ``JOBSDEFINED_SHARE_STATS``)."""

    ts = ts("time of validity", loose_key=True, required=True)
    vo = text("virtual organisation", loose_key=True)
    computingsite = text("queue", loose_key=True)
    gshare = text("leaf global share", loose_key=True)
    workqueue_id = i32("work queue", loose_key=True)
    resource_type = resource_type(loose_key=True)
    nucleus = text("ATLAS site", loose_key=True)
    jobstatus = text("status", loose_key=True, required=True, values=jobs.STATUSES)
    njobs = i64("jobs", "jobs", required=True, low=0)
    maxpriority = i32("highest priority")
    prorated_diskio_avg = f64("disk traffic per core", "kB/s per core")
    prorated_mem_avg = f64("memory per core", "MB per core")
    hs = f64("core power in use", "HS06")


class JobCounts(dy.Schema):
    """Active jobs (DB ``MV_JOBSACTIVE4_STATS``)."""

    cur_date = ts("time of validity", loose_key=True, required=True, aliases=("ts",))
    computingsite = text("queue", loose_key=True)
    cloud = text("cloud", loose_key=True)
    vo = text("virtual organisation", loose_key=True)
    prodsourcelabel = text("managed, user...", loose_key=True)
    processingtype = text("processing type", loose_key=True)
    workinggroup = text("working group", loose_key=True)
    countrygroup = text("country group", loose_key=True)
    jobstatus = text("status", loose_key=True, required=True, values=jobs.STATUSES)
    resource_type = resource_type(loose_key=True)
    workqueue_id = i32("work queue", loose_key=True)
    currentpriority = i32("priority", loose_key=True)
    relocationflag = i32("forced assignment", loose_key=True)
    num_of_jobs = i64("jobs", "jobs", required=True, low=0)
    num_of_cores = i64("cores", "cores", low=0)


class SiteData(dy.Schema):
    """Pilot requests and jobs by queue (DB ``SITEDATA``)."""

    site = text("queue", loose_key=True, required=True, aliases=("computingsite",))
    flag = text("production, analysis, ...", loose_key=True)
    hours = i32("window", "h", loose_key=True, low=0)
    getjob = i64("pilot requests for jobs", "requests", low=0)
    updatejob = i64("pilot updates", "requests", low=0)
    nojob = i64("requests without job", "requests", low=0)
    getjobabs = i64("pilot requests, absolute", "requests", low=0)
    updatejobabs = i64("pilot updates, absolute", "requests", low=0)
    nstart = i64("started", "jobs", low=0)
    finished = i64("finished", "jobs", low=0)
    failed = i64("failed", "jobs", low=0)
    defined = i64("defined", "jobs", low=0)
    assigned = i64("assigned", "jobs", low=0)
    waiting = i64("waiting", "jobs", low=0)
    activated = i64("activated", "jobs", low=0)
    holding = i64("holding", "jobs", low=0)
    running = i64("running", "jobs", low=0)
    transferring = i64("transferring", "jobs", low=0)
    laststart = ts("last start")
    lastmod = ts("last change", loose_key=True)
    ts = ts("time of validity", loose_key=True, null="whole replay")


class Workers(dy.Schema):
    """Pilots' batch jobs (DB ``HARVESTER_WORKERS``)."""

    harvesterid = text("harvester", key=True)
    workerid = i64("worker", key=True)
    batchid = text("batch job")
    computingsite = text("queue", aliases=("panda_queue",))
    resourcetype = resource_type()
    jobtype = text("managed, user...")
    status = text("status", values=WORKER_STATUSES)
    ncore = i32("cores", "cores", low=0)
    njobs = i32("jobs", "jobs", low=0)
    minramcount = i64("memory", "MB", low=0)
    submittime = ts("submitted")
    starttime = ts("started", null="not started")
    endtime = ts("ended", null="not ended", after="starttime")
    lastupdate = ts("last change", version=True)
    pilotstarttime = ts("pilot started", null="not started")
    pilotendtime = ts("pilot ended", null="not ended", after="pilotstarttime")
    pilotstatus = text("status of the pilot")
    nodeid = text("node")
    errorcode = i32("error", null="no error; 0 likewise")
    nativestatus = text("status in the batch system")
    diagmessage = text("message", null="none")


class WorkerStats(dy.Schema):
    """Workers by queue (DB ``HARVESTER_WORKER_STATS``)."""

    harvester_id = text("harvester", loose_key=True)
    computingsite = text("queue", loose_key=True, required=True, aliases=("panda_queue",))
    resourcetype = resource_type(loose_key=True)
    jobtype = text("managed, user...", loose_key=True)
    status = text("status", loose_key=True, values=WORKER_STATUSES)
    n_workers = i64("workers", "workers", low=0)
    lastupdate = ts("last change", loose_key=True)
    ts = ts("time of validity", loose_key=True, null="whole replay")


class Slots(dy.Schema):
    """Slots set for a queue (DB ``HARVESTER_SLOTS``)."""

    pandaqueuename = text("queue", loose_key=True, required=True, aliases=("panda_queue",))
    gshare = text("leaf global share", loose_key=True, null="any")
    resourcetype = resource_type(loose_key=True, null="any")
    numslots = i64("slots; negative rows are ignored", "slots")
    modificationtime = ts("last change", loose_key=True)
    expirationtime = ts("valid until", null="no end")
    ts = ts("time of validity", loose_key=True, null="whole replay")


class Metrics(dy.Schema):
    """Outputs of the classification by queue and share (DB ``METRICS``)."""

    computingsite = text("queue", loose_key=True)
    gshare = text("leaf global share", loose_key=True)
    metric = text("name of the metric", loose_key=True, required=True)
    value_json = json_text("value")
    timestamp = ts("when written", loose_key=True, required=True)
    ts = ts("time of validity", loose_key=True, null="whole replay")


class TaskEvaluation(dy.Schema):
    """Outputs of the classification by task (DB ``TASK_EVALUATION``)."""

    jeditaskid = i64("task", loose_key=True, required=True, low=0)
    metric = text("name of the metric", loose_key=True, required=True)
    value_json = json_text("value")
    timestamp = ts("when written", loose_key=True, required=True)
    ts = ts("time of validity", loose_key=True, null="whole replay")


class JobStatusLog(dy.Schema):
    """Changes of job status (DB ``JOBS_STATUSLOG``)."""

    pandaid = i64("job", key=True, low=0)
    jobstatus = text("new status", key=True, values=jobs.STATUSES)
    modificationtime = ts("when", key=True)
    computingsite = text("queue", null="not assigned yet")
    prodsourcelabel = text("managed, user...")


class TaskStatusLog(dy.Schema):
    """Changes of task status (DB ``TASKS_STATUSLOG``)."""

    jeditaskid = i64("task", key=True, low=0)
    status = text("new status", key=True, values=tasks.STATUSES)
    modificationtime = ts("when", key=True)
    attemptnr = i32("attempt", low=0)
    reason = text("reason", null="none given")


class TaskAttempts(dy.Schema):
    """Attempts of tasks (DB ``TASK_ATTEMPTS``)."""

    jeditaskid = i64("task", key=True, low=0)
    attemptnr = i32("attempt", key=True, low=0)
    starttime = ts("started")
    endtime = ts("ended", null="not ended", after="starttime")
    startstatus = text("status at the start")
    endstatus = text("status at the end", null="not ended")


class WorkerNodes(dy.Schema):
    """Worker nodes (DB ``WORKER_NODE``)."""

    site = text("ATLAS site", key=True)
    host_name = text("node", key=True)
    cpu_model = text("CPU model")
    cpu_model_normalized = text("CPU model, normalised")
    n_logical_cpus = i32("logical CPUs", "cpus", low=0)
    threads_per_core = i32("threads per core", "threads", low=0)
    cpu_architecture = text("architecture")
    cpu_architecture_level = text("architecture level")
    total_memory = i64("memory", "MB", low=0)
    total_local_disk = i64("local disk", "GB", low=0)
    last_seen = ts("last seen", version=True)


class WorkerNodeGpu(dy.Schema):
    """GPUs of the worker nodes of a queue (DB ``MV_WORKER_NODE_GPU_SUMMARY``)."""

    panda_queue = text("queue", loose_key=True, required=True, aliases=("computingsite",))
    vendor = text("NVIDIA...", loose_key=True, null="satisfies no request on it")
    model = text("NVIDIA A100-SXM4-80GB...", loose_key=True, null="satisfies no request on it")
    architecture = text("Ampere...", loose_key=True, null="satisfies no request on it")
    vram = i64("memory of a GPU", "MB", loose_key=True, low=0, null="satisfies none; 0 too")
    framework_version = text(
        "CUDA toolkit version", loose_key=True, null="satisfies no request on it"
    )
    driver_version = text(
        "kernel driver version", loose_key=True, null="satisfies no request on it"
    )


class WorkerNodeCpuLevel(dy.Schema):
    """CPU levels of the worker nodes of a queue (DB ``MV_WORKER_NODE_SUMMARY``)."""

    panda_queue = text("queue", loose_key=True, required=True, aliases=("computingsite",))
    cpu_architecture_level = text("x86-64-v2...", loose_key=True, null="not reported")
    pct_within_queue = f64(
        "share of the queue's logical CPUs", "%", low=0, null="0", aliases=("pct_within_pq",)
    )


class CpuBenchmarks(dy.Schema):
    """Benchmarks by CPU (DB ``CPU_BENCHMARKS``)."""

    cpu_type_normalized = text("CPU model, normalised", loose_key=True, required=True)
    smt_enabled = i32("0 or 1", loose_key=True, low=0)
    ncores = i32("cores", "cores", loose_key=True, low=0)
    site = text("ATLAS site", loose_key=True)
    score_per_core = f64("score", "HS06 or HS23 per core", low=0)
    timestamp = ts("when", loose_key=True)
    source = text("who measured", loose_key=True)
