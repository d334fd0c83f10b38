"""Contracts of the tables that the production job brokerage reads (production-job-brokerage.md 1).

Names are the chapter's. A table may be absent (empty), a column too (null). A table with ``snapshot`` says for
which instant its rows hold; without that column, or where it is null, they hold for every instant.
"""

import dataframely as dy

from brokerlab.archive.contracts._columns import f64, flag, i64, text, ts


class Tasks(dy.Schema):
    """A task at one instant of brokerage, with the input considered (chapter sections 1.1, 1.2)."""

    jeditaskid = i64("task", required=True)
    snapshot = i64("instant whose state the task sees", null="0")
    at = ts("instant of brokerage", null="no age limits apply")
    vo = text("virtual organisation")
    prodsourcelabel = text("managed...")
    nucleus = text("ATLAS site that gathers the outputs", null="not assigned")
    site = text("comma list of queues", null="not pre-assigned")
    gshare = text("leaf global share")
    workqueue_id = i64("work queue", null="statistics are per gshare")
    currentpriority = i64("priority", null="0")
    processingtype = text("processing type", null="group others")
    workinggroup = text("working group", null="none")
    corecount = i64("cores; 0 = any", "cores", null="1")
    mergecorecount = i64("cores of merge jobs", "cores", null="corecount")
    maxcorecount = i64("most cores [CC]", "cores", null="no cap")
    ramcount = i64("memory, by ramcountunit", "MB", null="that of the chunk")
    ramcountunit = text("MB, MBPerCore, MBPerCoreFixed", null="MB")
    baseramcount = i64("memory not scaling with cores", "MB", null="0")
    mergeramcount = i64("memory of merge jobs", "MB", null="that of the chunk")
    outdiskcount = i64("output, by outdiskunit", null="0")
    outdiskunit = text("kB, MB, GB (else bytes) + PerEvent", null="bytes")
    workdiskcount = i64("working directory, by workdiskunit", null="0")
    workdiskunit = text("kB, MB, GB (else bytes)", null="bytes")
    cputime = f64("HS06 s per event, by cputimeunit", null="undefined")
    cputimeunit = text("HS06sPerEvent, mHS06sPerEvent, each + Fixed", null="not in HS06")
    cpuefficiency = f64("CPU efficiency", "%", null="90")
    basewalltime = f64("wall time not scaling with events", "s", null="0")
    walltime = f64("wall time where not in HS06", "s per MB of input", null="undefined")
    walltimeunit = text("unit of walltime", null="undefined")
    iointensity = f64("input and output per second", "kB/s", null="low")
    diskio = f64("disk traffic", "kB/s", null="no check")
    resource_type = text("SCORE, MCORE...")
    architecture = text("software platform and hardware request", null="none")
    transhome = text("software release", null="nothing is checked")
    container_name = text("fat container", null="none")
    onlytagsforfc = flag("fat containers by tags only [OT]", null="no")
    ipconnectivity = text("full, http [IP]", null="no requirement")
    ipstack = text("IPv4, IPv6 [IK]", null="no requirement")
    allowinputlan = text("use, only [IL]", null="copy to scratch")
    uselocalio = flag("copies to scratch [LI]", null="no")
    t1weight = i64("preference for the nucleus [TW]", null="0")
    inputprestaging = flag("data carousel [IS]", null="no")
    mergeoutput = flag("outputs are merged [MO]", null="no")
    eventservice = i64("1, 2 = event service", null="no")
    usejobcloning = flag("job cloning [UC]", null="no")
    nesconsumers = i64("consumers of event service [EC]", null="1")
    maxattemptesjob = i64("attempts of event service jobs [XJ]", null="3; else value + 1")
    dynamicnumevents = i64("smallest granularity [DY]", "events", null="off")
    maxeventsperjob = i64("most events of a job [MX]", "events", null="off")
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

    jeditaskid = i64("task", null="every task")
    datasetname = text("dataset", required=True)
    distributed = flag("distributed or pseudo, without replicas", null="no")


class Files(dy.Schema):
    """Files of the input considered."""

    jeditaskid = i64("task", null="every task")
    datasetname = text("dataset", required=True)
    lfn = text("logical file name", required=True)
    fsize = i64("size", "B", null="0")


class FileLocations(dy.Schema):
    """Where a file can be read from a queue."""

    jeditaskid = i64("task", null="every task")
    datasetname = text("dataset", required=True)
    panda_queue = text("queue, unified name", required=True)
    lfn = text("logical file name", required=True)
    kind = text("localdisk, cache, localtape, remote", required=True)


class Replicas(dy.Schema):
    """Dataset replicas."""

    jeditaskid = i64("task", null="every task")
    datasetname = text("dataset", required=True)
    constituent = text("constituent of a container", null="no container")
    ddm_endpoint_name = text("endpoint", required=True)
    found = i64("files there", "files", null="0")
    total = i64("files of the dataset", "files", null="0")
    asize = i64("size there", "B", null="0")
    tsize = i64("size of the dataset", "B", null="0")
    vp = flag("virtual placement", null="no")


class Queues(dy.Schema):
    """Queues, one row per pseudo-queue (chapter section 1.4)."""

    snapshot = i64("instant", null="every instant")
    panda_queue = text("queue", required=True)
    unified_name = text("parent of a pseudo-queue", null="itself")
    is_unified = flag("parent of pseudo-queues", null="no")
    type = text("production, unified...", null="production")
    status = text("online, standby, offline, test, brokeroff", null="not online")
    pandasite = text("ATLAS site")
    corecount = i64("cores of a slot", "cores", null="0")
    corepower = f64("core power", "HS06/core", null="0")
    maxtime = i64("most wall time; 0 = no limit", "s", null="0")
    mintime = i64("least wall time; 0 = no limit", "s", null="0")
    maxrss = f64("most memory of the slot", "MB", null="no limit")
    minrss = f64("least memory of the slot", "MB", null="no limit")
    maxwdir = f64("work space of the slot", "MB", null="0, no check")
    maxinputsize = i64("most input; -1 = always direct access", "MB")
    direct_access_lan = flag("reads over LAN", null="no")
    pledgedcpu = i64("pledge; -1 = opportunistic", "cores", null="0")
    transferringlimit = i64("most transferring jobs; 0 = 2000", "jobs", null="2000")
    maxdiskio = f64("most disk traffic per core", "kB/s per core", null="the default")
    max_io_intensity = f64("most traffic", "kB/s", null="no limit")
    fairsharepolicy = text("shares by type and group", null="no policy")
    wnconnectivity = text("network#stack", null="none")
    jobseed = text("std, es, eshigh, all", null="std")
    capability = text("ucore...", null="none")
    workflow = text("pull_ups, push...", null="none")
    catchall = text("comma list", null="empty")
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
    ddm_endpoint_name = text("endpoint", required=True)
    is_default = flag("default of its direction", null="no")


class StorageEndpoints(dy.Schema):
    """Storage endpoints."""

    snapshot = i64("instant", null="every instant")
    ddm_endpoint_name = text("endpoint", required=True)
    site_name = text("ATLAS site")
    type = text("DATADISK, SCRATCHDISK...")
    is_tape = flag("tape", null="no")
    read_lan = text("ON, OFF, TEST")
    write_lan = text("ON, OFF, TEST")
    read_wan = text("ON, OFF, TEST")
    write_wan = text("ON, OFF, TEST")
    space_free = f64("free space", "GB", null="0")
    space_expired = f64("expired, can be freed", "GB", null="0")
    space_min_free = f64("to be kept free", "GB", null="0")
    space_unavailable = f64("cannot be used", "GB", null="0")
    space_total = f64("space", "GB", null="0")


class QueueStorageSite(dy.Schema):
    """Site of the default output endpoint of a queue."""

    panda_queue = text("queue, unified name", required=True)
    site_name = text("ATLAS site", null="unknown")


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

    panda_queue = text("queue", required=True)
    vendor = text("vendor")
    model = text("model")
    vram = i64("memory", "MB")
    architecture = text("microarchitecture")
    framework_version = text("CUDA toolkit")
    driver_version = text("kernel driver")


class WorkerNodeCpuLevel(dy.Schema):
    """CPU levels of worker nodes."""

    panda_queue = text("queue", required=True)
    cpu_architecture_level = text("such as x86-64-v2")
    pct_within_queue = f64("share of the logical CPUs", "%", null="0")


class SiteActivity(dy.Schema):
    """Pilots and last start, last 3 hours."""

    snapshot = i64("instant", null="every instant")
    computingsite = text("queue, unified name", required=True)
    getjob = i64("pilot requests", null="0")
    updatejob = i64("pilot updates", null="0")
    laststart = ts("last start", null="never")


class JobStats(dy.Schema):
    """Jobs by queue, share and status."""

    snapshot = i64("instant", null="every instant")
    computingsite = text("queue, unified name", required=True)
    gshare = text("leaf global share")
    jobstatus = text("status", required=True)
    njobs = i64("jobs", "jobs", null="0")


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
    status = text("status")
    n_workers = i64("workers", "workers", null="0")


class Slots(dy.Schema):
    """Slots set for a queue."""

    snapshot = i64("instant", null="every instant")
    panda_queue = text("queue, unified name", required=True)
    gshare = text("share or work queue", null="any")
    resourcetype = text("SCORE, MCORE...", null="any")
    numslots = i64("slots", "slots", null="0")


class NetworkMatrix(dy.Schema):
    """Links between ATLAS sites (network-weight.md 1)."""

    snapshot = i64("instant", null="every instant")
    src = text("ATLAS site", required=True)
    dst = text("ATLAS site", required=True)
    key = text("metric", required=True)
    value = f64("value, by key", null="missing")
    ts = ts("time of measurement", null="missing")


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
    "replicas": ("source_down", "input_incomplete"),
    "file_locations": ("input_to_move", "local_data_only"),
    "sw_tags": ("software_hardware", "platform_unresolved"),
    "network_matrix": ("network_weight_low",),
}
"""Table to the checks, and the ends of tasks, that cannot be decided without it: where it is missing they remove nothing."""
