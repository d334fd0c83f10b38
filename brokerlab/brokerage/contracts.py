"""Contracts of the tables that the production job brokerage reads (production-jobs.md).

A column that is not given is null; :data:`ABSENT` says what a table that is not given means. A table with ``snapshot`` says for
which instant its rows hold; without that column, or where it is null, they hold for every instant.
"""

from functools import partial

import dataframely as dy

from brokerlab.archive import contracts as archive
from brokerlab.archive.contracts._columns import f64, flag, i64, like, text, ts

_dataset = partial(like, archive.TABLES["datasets"])
_endpoint = partial(like, archive.TABLES["ddm_endpoints"])
_place = partial(like, archive.TABLES["file_locations"])
_file = partial(like, archive.TABLES["files"])
_count = partial(like, archive.TABLES["job_stats"])
_network = partial(like, archive.TABLES["network_matrix"])
_link = partial(like, archive.TABLES["queue_endpoints"])
_site = partial(like, archive.TABLES["queue_storage_site"])
_queue = partial(like, archive.TABLES["queues"])
_replica = partial(like, archive.TABLES["replicas"])
_activity = partial(like, archive.TABLES["site_data"])
_slot = partial(like, archive.TABLES["slots"])
_task = partial(like, archive.TABLES["tasks"])
_cpu = partial(like, archive.TABLES["worker_node_cpu_level"])
_gpu = partial(like, archive.TABLES["worker_node_gpu"])
_worker = partial(like, archive.TABLES["worker_stats"])


class Tasks(dy.Schema):
    """A task at one instant of brokerage, with the input considered (chapter sections 1.1, 1.2)."""

    jeditaskid = _task("jeditaskid", required=True)
    snapshot = i64("instant whose state the task sees", null="0")
    at = ts("instant of brokerage", null="no age limits apply")
    vo = _task("vo", null="not recorded")
    prodsourcelabel = text("managed...")
    nucleus = _task("nucleus", null="not assigned")
    site = text("comma list of queues", null="not pre-assigned")
    gshare = _task("gshare")
    workqueue_id = _task("workqueue_id", null="statistics are per gshare")
    currentpriority = _task("currentpriority", null="0")
    processingtype = _task("processingtype", null="group others")
    workinggroup = _task("workinggroup")
    corecount = _task("corecount", null="1")
    mergecorecount = _task("mergecorecount", null="corecount")
    maxcorecount = _task("maxcorecount", null="no cap")
    ramcount = i64("memory, by ramcountunit", "MB", null="that of the chunk")
    ramcountunit = text("MB, MBPerCore, MBPerCoreFixed", null="MB")
    baseramcount = _task("baseramcount")
    mergeramcount = _task("mergeramcount", null="that of the chunk")
    outdiskcount = i64("output, by outdiskunit", null="0")
    outdiskunit = text("kB, MB, GB (else bytes) + PerEvent", null="bytes")
    workdiskcount = i64("working directory, by workdiskunit", null="0")
    workdiskunit = text("kB, MB, GB (else bytes)", null="bytes")
    cputime = f64("HS06 s per event, by cputimeunit", null="undefined")
    cputimeunit = _task("cputimeunit", null="not in HS06")
    cpuefficiency = f64("CPU efficiency", "%", null="90")
    basewalltime = f64("wall time not scaling with events", "s", null="0")
    walltime = f64("wall time where not in HS06", "s per MB of input", null="undefined")
    walltimeunit = text("unit of walltime", null="undefined")
    iointensity = f64("input and output per second", "kB/s", null="low")
    diskio = f64("disk traffic", "kB/s", null="no check")
    resource_type = _task("resource_type")
    architecture = text("software platform and hardware request", null="none")
    transhome = text("software release", null="hardware and container only")
    container_name = text("fat container", null="none")
    onlytagsforfc = flag("fat containers by tags only [OT]", null="no")
    ipconnectivity = text("full, http [IP], or with the stack, http#IPv4", null="no requirement")
    ipstack = text("IPv4, IPv6 [IK]", null="no requirement")
    allowinputlan = text("use, only [IL]", null="copy to scratch")
    uselocalio = flag("copies to scratch [LI]", null="no")
    t1weight = i64("preference for the nucleus [TW]", null="0")
    inputprestaging = flag("data carousel [IS]", null="no")
    mergeoutput = flag("outputs are merged [MO]", null="no")
    eventservice = _task("eventservice", null="no")
    usejobcloning = flag("job cloning [UC]", null="no")
    nesconsumers = i64("consumers of event service [EC]", null="1")
    maxattemptesjob = _task("maxattemptesjob", null="3; else value + 1")
    dynamicnumevents = i64("smallest granularity [DY]", "events", null="off")
    maxeventsperjob = _task("maxeventsperjob", null="off")
    usejumbo = text("W, R, P, L in use; D off", null="off")
    fullchain = text("only, require, capable [FU]", null="not full chain")
    frozentime = ts("stuck since", null="not stuck")
    is_merging = flag("merge chunk", null="no")
    use_scout = flag("makes scouts", null="no")
    chunk_ramcount = i64("requirement of the chunk", "MB", null="0")
    preassigned_site = text("queue of a pre-merge dataset", null="none")
    master_creationtime = ts("creation of the master dataset", null="never")
    master_modificationtime = ts("last change of the master dataset", null="never")
    atom_size = i64("smallest job, all datasets", "B", null="0")
    atom_size_effective = f64("smallest job, master only, event range considered", "MB", null="0")
    atom_nevents = i64("smallest job, master only", "events", null="0")
    max_consecutive_events = i64("longest gap-free run", "events", null="0")
    n_ready_events = i64("events ready for jumbo jobs", "events", null="0")


class Datasets(dy.Schema):
    """Input datasets of a task."""

    jeditaskid = _dataset("jeditaskid", null="every task")
    datasetname = text("dataset", required=True)
    distributed = flag("distributed or pseudo, without replicas", null="no")


class Files(dy.Schema):
    """Files of the input considered."""

    jeditaskid = _file("jeditaskid", null="every task")
    datasetname = text("dataset", required=True)
    lfn = _file("lfn", required=True)
    fsize = _file("fsize", null="0")


class FileLocations(dy.Schema):
    """Where a file can be read from a queue."""

    jeditaskid = i64("task", null="every task")
    datasetname = _place("datasetname", required=True)
    panda_queue = text("queue, unified name", required=True)
    lfn = _place("lfn", required=True)
    kind = _place("kind", required=True)


class Replicas(dy.Schema):
    """Dataset replicas."""

    jeditaskid = i64("task", null="every task")
    datasetname = _replica("datasetname", required=True)
    constituent = text("constituent of a container", null="no container")
    ddm_endpoint_name = _replica("ddm_endpoint_name", required=True)
    found = _replica("found", null="0")
    total = _replica("total", null="0")
    asize = i64("size there", "B", null="0")
    tsize = i64("size of the dataset", "B", null="0")
    vp = _replica("vp")


class Queues(dy.Schema):
    """Queues, one row per pseudo-queue (chapter section 1.4)."""

    snapshot = i64("instant", null="every instant")
    panda_queue = _queue("panda_queue", required=True)
    unified_name = _queue("unified_name")
    is_unified = _queue("is_unified")
    type = text("production, unified...", null="production")
    status = _queue("status", null="not online")
    pandasite = text("ATLAS site", null="that of the nucleus that lists it")
    corecount = _queue("corecount", null="0")
    corepower = _queue("corepower", null="0")
    maxtime = _queue("maxtime", null="0")
    mintime = _queue("mintime", null="0")
    maxrss = f64("most memory of the slot", "MB", null="no limit")
    minrss = f64("least memory of the slot", "MB", null="no limit")
    maxwdir = f64("work space of the slot", "MB", null="0, no check")
    maxinputsize = _queue("maxinputsize", null="not recorded")
    direct_access_lan = _queue("direct_access_lan")
    pledgedcpu = _queue("pledgedcpu", null="0")
    transferringlimit = _queue("transferringlimit", null="2000")
    maxdiskio = f64("most disk traffic per core", "kB/s per core", null="the default")
    max_io_intensity = f64("most traffic", "kB/s", null="no limit")
    fairsharepolicy = _queue("fairsharepolicy")
    wnconnectivity = _queue("wnconnectivity", null="none")
    jobseed = _queue("jobseed", null="std")
    capability = _queue("capability", null="none")
    workflow = _queue("workflow", null="none")
    catchall = _queue("catchall", null="empty")
    params = text("rest of the queue parameters, JSON", null="none")
    releases = dy.List(
        dy.String(nullable=True),
        nullable=True,
        metadata={"unit": "-", "null": "neither AUTO nor ANY", "meaning": "software releases"},
    )


class QueueEndpoints(dy.Schema):
    """Endpoints of a queue, by its parent name."""

    panda_queue = text("queue, unified name", required=True)
    direction = text("input, output", required=True)
    ddm_endpoint_name = _link("ddm_endpoint_name", required=True)
    is_default = _link("is_default")


class StorageEndpoints(dy.Schema):
    """Storage endpoints."""

    snapshot = i64("instant", null="every instant")
    ddm_endpoint_name = _endpoint("ddm_endpoint_name", required=True)
    site_name = _endpoint("site_name")
    type = _endpoint("type")
    is_tape = _endpoint("is_tape")
    read_lan = _endpoint("read_lan")
    write_lan = _endpoint("write_lan")
    read_wan = _endpoint("read_wan")
    write_wan = _endpoint("write_wan")
    space_free = _endpoint("space_free")
    space_expired = _endpoint("space_expired")
    space_min_free = _endpoint("space_min_free")
    space_unavailable = _endpoint("space_unavailable")
    space_total = _endpoint("space_total", null="0")


class QueueStorageSite(dy.Schema):
    """Site of the default output endpoint of a queue."""

    panda_queue = text("queue, unified name", required=True)
    site_name = _site("site_name", null="unknown")


class Nuclei(dy.Schema):
    """ATLAS sites that own production queues."""

    nucleus = text("ATLAS site", required=True)
    role = text("nucleus, satellite")
    state = text("ACTIVE...", null="not active")
    bare_mode = text("only, allow", null="normal nucleus")
    secondary_nucleus = text("ATLAS site", null="none")
    queues = dy.List(
        dy.String(nullable=True),
        nullable=True,
        metadata={"unit": "-", "null": "none", "meaning": "queues, pseudo-queues included"},
    )
    default_endpoint_out = text("default output endpoint", null="none")
    input_endpoints = dy.List(
        dy.String(nullable=True),
        nullable=True,
        metadata={"unit": "-", "null": "none", "meaning": "input endpoints in stored order"},
    )
    output_endpoints = dy.List(
        dy.String(nullable=True),
        nullable=True,
        metadata={"unit": "-", "null": "none", "meaning": "output endpoints in stored order"},
    )


class SwTags(dy.Schema):
    """Software published by a queue; the extra name ALL holds every tag."""

    panda_queue = text("queue, unified name", required=True)
    data = text("JSON object", null="nothing published")


class WorkerNodeGpu(dy.Schema):
    """GPUs seen on worker nodes."""

    panda_queue = _gpu("panda_queue", required=True)
    vendor = _gpu("vendor", null="not recorded")
    model = _gpu("model", null="not recorded")
    vram = _gpu("vram", null="not recorded")
    architecture = _gpu("architecture", null="not recorded")
    framework_version = _gpu("framework_version", null="not recorded")
    driver_version = _gpu("driver_version", null="not recorded")


class WorkerNodeCpuLevel(dy.Schema):
    """CPU levels of worker nodes."""

    panda_queue = _cpu("panda_queue", required=True)
    cpu_architecture_level = _cpu("cpu_architecture_level", null="not recorded")
    pct_within_queue = _cpu("pct_within_queue")


class SiteActivity(dy.Schema):
    """Pilots and last start, last 3 hours."""

    snapshot = i64("instant", null="every instant")
    computingsite = text("queue, unified name", required=True)
    getjob = _activity("getjob", null="0")
    updatejob = _activity("updatejob", null="0")
    laststart = _activity("laststart", null="never")


class JobStats(dy.Schema):
    """Jobs by queue, share and status."""

    snapshot = i64("instant", null="every instant")
    computingsite = text("queue, unified name", required=True)
    gshare = _count("gshare")
    jobstatus = _count("jobstatus", required=True)
    njobs = _count("njobs", null="0")


class JobStatsRt(dy.Schema):
    """Jobs of the task's share or work queue by resource type."""

    snapshot = i64("instant", null="every instant")
    gshare = text("share or work queue counted", null="that of the task")
    computingsite = text("queue, unified name", required=True)
    resource_type = text("SCORE, MCORE...")
    jobstatus = text("status", required=True)
    njobs = i64("jobs", "jobs", null="0")


class JobStatsWorkqueue(dy.Schema):
    """Jobs by queue, work queue and status."""

    snapshot = i64("instant", null="every instant")
    computingsite = text("queue, unified name", required=True)
    workqueue_id = i64("work queue")
    jobstatus = text("status", required=True)
    njobs = i64("jobs", "jobs", null="0")


class JobStatsGshareOnly(dy.Schema):
    """Jobs by share without resource work queues."""

    snapshot = i64("instant", null="every instant")
    computingsite = text("queue, unified name", required=True)
    gshare = text("leaf global share")
    jobstatus = text("status", required=True)
    njobs = i64("jobs", "jobs", null="0")


class ResourceWorkQueues(dy.Schema):
    """Work queues that are resource queues."""

    workqueue_id = i64("work queue", required=True)
    queue_name = text("name")


class TaskResourceTypes(dy.Schema):
    """Resource types that hold at least 20 % of a task's jobs at a queue."""

    snapshot = i64("instant", null="every instant")
    jeditaskid = i64("task", null="every task")
    computingsite = text("queue, unified name", required=True)
    resource_type = text("SCORE, MCORE...")


class TransferringByNucleus(dy.Schema):
    """Jobs in transferring by queue and nucleus."""

    snapshot = i64("instant", null="every instant")
    computingsite = text("queue, unified name", required=True)
    nucleus = text("ATLAS site")
    njobs = i64("jobs", "jobs", null="0")


class CoreStats(dy.Schema):
    """Cores in use by queue and status."""

    snapshot = i64("instant", null="every instant")
    computingsite = text("queue, unified name", required=True)
    jobstatus = text("status", required=True)
    ncores = i64("cores", "cores", null="0")


class DiskioUsage(dy.Schema):
    """Disk traffic of running jobs."""

    snapshot = i64("instant", null="every instant")
    computingsite = text("queue, unified name", required=True)
    diskio_per_core = f64("mean over running jobs", "kB/s per core", null="unknown")


class WorkerStats(dy.Schema):
    """Batch workers by queue."""

    snapshot = i64("instant", null="every instant")
    panda_queue = text("queue", required=True)
    resource_type = text("SCORE, MCORE...")
    status = _worker("status")
    n_workers = _worker("n_workers", null="0")


class Slots(dy.Schema):
    """Slots set for a queue."""

    snapshot = i64("instant", null="every instant")
    panda_queue = text("queue, unified name", required=True)
    gshare = text("share or work queue", null="any")
    resourcetype = _slot("resourcetype")
    numslots = _slot("numslots", null="0")


class NetworkMatrix(dy.Schema):
    """Links between ATLAS sites (network-weight.md 2)."""

    snapshot = i64("instant", null="every instant")
    src = _network("src", required=True)
    dst = _network("dst", required=True)
    key = _network("key", required=True)
    value = _network("value", null="missing")
    ts = _network("ts", null="missing")


class Locks(dy.Schema):
    """Queues locked by another brokerage."""

    snapshot = i64("instant", null="every instant")
    jeditaskid = i64("task", null="every task")
    panda_queue = text("queue", required=True)


class Live(dy.Schema):
    """Jobs submitted in this cycle."""

    snapshot = i64("instant", null="every instant")
    panda_queue = text("queue, unified name", required=True)
    njobs = i64("jobs", "jobs", null="0")


TABLES: dict[str, type[dy.Schema]] = {
    "tasks": Tasks,
    "datasets": Datasets,
    "files": Files,
    "file_locations": FileLocations,
    "replicas": Replicas,
    "queues": Queues,
    "queue_endpoints": QueueEndpoints,
    "storage_endpoints": StorageEndpoints,
    "queue_storage_site": QueueStorageSite,
    "nuclei": Nuclei,
    "sw_tags": SwTags,
    "worker_node_gpu": WorkerNodeGpu,
    "worker_node_cpu_level": WorkerNodeCpuLevel,
    "site_activity": SiteActivity,
    "job_stats": JobStats,
    "job_stats_rt": JobStatsRt,
    "job_stats_workqueue": JobStatsWorkqueue,
    "job_stats_gshare_only": JobStatsGshareOnly,
    "resource_work_queues": ResourceWorkQueues,
    "task_resource_types": TaskResourceTypes,
    "transferring_by_nucleus": TransferringByNucleus,
    "core_stats": CoreStats,
    "diskio_usage": DiskioUsage,
    "worker_stats": WorkerStats,
    "slots": Slots,
    "network_matrix": NetworkMatrix,
    "locks": Locks,
    "live": Live,
}
"""Every input table of the production job brokerage."""

_STORAGE = (
    "storage_space", "read_lan_down", "write_lan_down", "write_wan_down", "read_wan_down", "source_down",
)  # fmt: skip
NEEDED: dict[str, tuple[str, ...]] = {
    "site_activity": ("inactive", "no_pilot"),
    "queue_endpoints": _STORAGE,
    "storage_endpoints": (*_STORAGE, "nucleus_unwritable", "input_incomplete"),
    "nuclei": ("nucleus_unwritable", "unknown_nucleus"),
    "queue_storage_site": ("nucleus_unwritable", "link_blocked", "link_backlog"),
    "replicas": ("source_down", "input_incomplete"),
    "file_locations": ("input_to_move", "local_data_only"),
    "sw_tags": ("software_hardware", "platform_unresolved"),
    "network_matrix": ("nucleus_backlog", "link_blocked", "link_backlog", "network_weight_low"),
}
"""Table to the checks, and the ends of tasks, that cannot be decided without it: where it is missing they remove nothing."""

ABSENT: dict[str, str] = {
    "tasks": "nothing is decided",
    "queues": "there is no queue",
    "datasets": "tasks have no input",
    "files": "the input has size 0",
    "worker_node_gpu": "attributes of GPUs are not asked for",
    "worker_node_cpu_level": "no level of CPUs is preferred",
    "job_stats": "no job is known",
    "job_stats_rt": "no job is known by resource type",
    "job_stats_workqueue": "no job is known by work queue",
    "job_stats_gshare_only": "no job is known by share alone",
    "resource_work_queues": "no work queue is a resource queue",
    "task_resource_types": "the task's own resource type counts",
    "transferring_by_nucleus": "no job transfers to a nucleus that cannot be written",
    "core_stats": "no core is in use",
    "diskio_usage": "running jobs have no disk traffic",
    "worker_stats": "no worker is known",
    "slots": "no slots are set",
    "locks": "no queue is locked",
    "live": "no job was submitted in this cycle",
}
"""Table to what is taken where it is not given; a table of :data:`NEEDED` is unknown then."""
