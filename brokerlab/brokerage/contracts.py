"""Contracts of the tables that the production job brokerage reads (production-jobs.md).

A column that is not given is null; :data:`ABSENT` says what a table that is not given means. A table with ``snapshot`` says for
which instant its rows hold; without that column, or where it is null, they hold for every instant. What a row says of a queue, an endpoint or a site
at an instant goes before what one says for all. Columns of the archive
are kept with their type, unit and sense; what a missing value means here stands beside their names.
"""

from functools import partial
from typing import TypeAlias

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

Columns: TypeAlias = dict[str, dy.Column]

_dataset = partial(kept, archive.TABLES["datasets"])
_endpoint = partial(kept, archive.TABLES["ddm_endpoints"])
_place = partial(kept, archive.TABLES["file_locations"])
_file = partial(kept, archive.TABLES["files"])
_count = partial(kept, archive.TABLES["job_stats"])
_network = partial(kept, archive.TABLES["network_matrix"])
_link = partial(kept, archive.TABLES["queue_endpoints"])
_queue = partial(kept, archive.TABLES["queues"])
_replica = partial(kept, archive.TABLES["replicas"])
_task = partial(kept, archive.TABLES["tasks"])
_gpu = partial(kept, archive.TABLES["worker_node_gpu"])

SNAPSHOT: Columns = {"snapshot": i64("instant", null="every instant")}
TASK: Columns = {"jeditaskid": i64("task", null="every task")}
QUEUE: Columns = {"panda_queue": text("queue, unified name", required=True)}
SITE: Columns = {"computingsite": text("queue, unified name", required=True)}
DATASET: Columns = {"datasetname": text("dataset", required=True)}
AT_SITE: Columns = SNAPSHOT | SITE
NJOBS = _count(jobstatus=NOT_ALLOWED, njobs="0")
DECIDED: Columns = {
    **_task(jeditaskid=NOT_ALLOWED),
    "snapshot": i64("instant whose state the task sees", null="0"),
    "at": ts("instant of brokerage", null="no age limits apply"),
    **_task(vo="not recorded"),
}
STUCK: Columns = {
    "frozentime": ts("stuck since", null="not stuck"),
    "is_merging": flag("merge chunk", null="no"),
}
WALL_TIME: Columns = {
    "cputime": f64("HS06 s per event, by cputimeunit", null="undefined"),
    **_task(cputimeunit="not in HS06"),
    "cpuefficiency": f64("CPU efficiency", "%", null="90"),
    "basewalltime": f64("wall time not scaling with events", "s", null="0"),
    "walltime": f64("wall time where not in HS06", "s per MB of input", null="undefined"),
    "walltimeunit": text("unit of walltime", null="undefined"),
}
REQUEST: Columns = {
    "diskio": f64("disk traffic", "kB/s", null="no check"),
    **_task(resource_type=None),
    "architecture": text("software platform and hardware request", null="none"),
    "transhome": text("software release", null="hardware and container only"),
}
ATOM: Columns = {
    "atom_size": i64("smallest job, all datasets", "B", null="0"),
    "atom_size_effective": f64("smallest job, master only, event range considered", "MB", null="0"),
    "atom_nevents": i64("smallest job, master only", "events", null="0"),
}

TABLES: dict[str, type[dy.Schema]] = declared(
    __name__,
    {
        "tasks": (
            "A task at one instant of brokerage, with the input considered (chapter sections 1.1, 1.2).",
            {
                **DECIDED,
                "prodsourcelabel": text("managed..."),
                **_task(nucleus="not assigned"),
                "site": text("comma list of queues", null="not pre-assigned"),
                **_task(gshare=None, workqueue_id="statistics are per gshare", currentpriority="0"),
                **_task(processingtype="group others", workinggroup=None, corecount="1"),
                **_task(mergecorecount="corecount", maxcorecount="no cap"),
                "ramcount": i64("memory, by ramcountunit", "MB", null="that of the chunk"),
                "ramcountunit": text("MB, MBPerCore, MBPerCoreFixed", null="MB"),
                **_task(baseramcount=None, mergeramcount="that of the chunk"),
                "outdiskcount": i64("output, by outdiskunit", null="0"),
                "outdiskunit": text("kB, MB, GB (else bytes) + PerEvent", null="bytes"),
                "workdiskcount": i64("working directory, by workdiskunit", null="0"),
                "workdiskunit": text("kB, MB, GB (else bytes)", null="bytes"),
                **WALL_TIME,
                "iointensity": f64("input and output per second", "kB/s", null="low"),
                **REQUEST,
                "container_name": text("fat container", null="none"),
                "onlytagsforfc": flag("fat containers by tags only [OT]", null="no"),
                "ipconnectivity": text(
                    "full, http [IP], or with the stack, http#IPv4", null="no requirement"
                ),
                "ipstack": text("IPv4, IPv6 [IK]", null="no requirement"),
                "allowinputlan": text("use, only [IL]", null="copy to scratch"),
                "uselocalio": flag("copies to scratch [LI]", null="no"),
                "t1weight": i64("preference for the nucleus [TW]", null="0"),
                "inputprestaging": flag("data carousel [IS]", null="no"),
                "mergeoutput": flag("outputs are merged [MO]", null="no"),
                **_task(eventservice="no"),
                "usejobcloning": flag("job cloning [UC]", null="no"),
                "nesconsumers": i64("consumers of event service [EC]", null="1"),
                **_task(maxattemptesjob="3; else value + 1"),
                "dynamicnumevents": i64("smallest granularity [DY]", "events", null="off"),
                **_task(maxeventsperjob="off"),
                "usejumbo": text("W, R, P, L in use; D off", null="off"),
                "fullchain": text("only, require, capable [FU]", null="not full chain"),
                **STUCK,
                "use_scout": flag("makes scouts", null="no"),
                "chunk_ramcount": i64("requirement of the chunk", "MB", null="0"),
                "preassigned_site": text("queue of a pre-merge dataset", null="none"),
                "master_creationtime": ts("creation of the master dataset", null="never"),
                "master_modificationtime": ts("last change of the master dataset", null="never"),
                **ATOM,
                "max_consecutive_events": i64("longest gap-free run", "events", null="0"),
                "n_ready_events": i64("events ready for jumbo jobs", "events", null="0"),
            },
        ),
        "datasets": (
            "Input datasets of a task.",
            {
                **_dataset(jeditaskid="every task"),
                **DATASET,
                "distributed": flag("distributed or pseudo, without replicas", null="no"),
            },
        ),
        "files": (
            "Files of the input considered.",
            {**_file(jeditaskid="every task"), **DATASET, **_file(lfn=NOT_ALLOWED, fsize="0")},
        ),
        "file_locations": (
            "Where a file can be read from a queue.",
            {
                **TASK,
                **_place(datasetname=NOT_ALLOWED),
                **QUEUE,
                **_place(lfn=NOT_ALLOWED, kind=NOT_ALLOWED),
            },
        ),
        "replicas": (
            "Dataset replicas.",
            {
                **TASK,
                **_replica(datasetname=NOT_ALLOWED),
                "constituent": text("constituent of a container", null="no container"),
                **_replica(ddm_endpoint_name=NOT_ALLOWED, found="0", total="0"),
                "asize": i64("size there", "B", null="0"),
                "tsize": i64("size of the dataset", "B", null="0"),
                **_replica(vp=None),
            },
        ),
        "queues": (
            "Queues, one row per pseudo-queue (chapter section 1.4).",
            {
                **SNAPSHOT,
                **_queue(panda_queue=NOT_ALLOWED, unified_name=None, is_unified=None),
                "type": text("production, unified...", null="production"),
                **_queue(status="not online"),
                "pandasite": text("ATLAS site", null="that of the nucleus that lists it"),
                **_queue(corecount="0", corepower="0", maxtime="0", mintime="0"),
                "maxrss": f64("most memory of the slot", "MB", null="no limit"),
                "minrss": f64("least memory of the slot", "MB", null="no limit"),
                "maxwdir": f64("work space of the slot", "MB", null="0, no check"),
                **_queue(maxinputsize="not recorded", direct_access_lan=None, pledgedcpu="0"),
                **_queue(transferringlimit="2000"),
                "maxdiskio": f64("most disk traffic per core", "kB/s per core", null="the default"),
                "max_io_intensity": f64("most traffic", "kB/s", null="no limit"),
                **_queue(fairsharepolicy=None, wnconnectivity="none", jobseed="std"),
                **_queue(capability="none", workflow="none", catchall="empty"),
                "params": text("rest of the queue parameters, JSON", null="none"),
                "releases": names("software releases", null="neither AUTO nor ANY"),
            },
        ),
        "queue_endpoints": (
            "Endpoints of a queue, by its parent name.",
            {
                **QUEUE,
                "direction": text("input, output", required=True),
                **_link(ddm_endpoint_name=NOT_ALLOWED, is_default=None),
            },
        ),
        "storage_endpoints": (
            "Storage endpoints.",
            {
                **SNAPSHOT,
                **_endpoint(ddm_endpoint_name=NOT_ALLOWED, site_name=None, type=None, is_tape=None),
                **_endpoint(read_lan=None, write_lan=None, read_wan=None, write_wan=None),
                **_endpoint(space_free=None, space_expired=None, space_min_free=None),
                **_endpoint(space_unavailable=None, space_total="0"),
            },
        ),
        "queue_storage_site": (
            "Site of the default output endpoint of a queue.",
            QUEUE | kept(archive.TABLES["queue_storage_site"], site_name="unknown"),
        ),
        "nuclei": (
            "ATLAS sites that own production queues.",
            {
                "nucleus": text("ATLAS site", required=True),
                "role": text("nucleus, satellite"),
                "state": text("ACTIVE...", null="not active"),
                "bare_mode": text("only, allow", null="normal nucleus"),
                "secondary_nucleus": text("ATLAS site", null="none"),
                "queues": names("queues, pseudo-queues included"),
                "default_endpoint_out": text("default output endpoint", null="none"),
                "input_endpoints": names("input endpoints in stored order"),
                "output_endpoints": names("output endpoints in stored order"),
            },
        ),
        "sw_tags": (
            "Software published by a queue; the extra name ALL holds every tag.",
            {**QUEUE, "data": text("JSON object", null="nothing published")},
        ),
        "worker_node_gpu": (
            "GPUs seen on worker nodes.",
            {
                **_gpu(panda_queue=NOT_ALLOWED, vendor="not recorded", model="not recorded"),
                **_gpu(vram="not recorded", architecture="not recorded"),
                **_gpu(framework_version="not recorded", driver_version="not recorded"),
            },
        ),
        "worker_node_cpu_level": (
            "CPU levels of worker nodes.",
            kept(
                archive.TABLES["worker_node_cpu_level"],
                panda_queue=NOT_ALLOWED,
                cpu_architecture_level="not recorded",
                pct_within_queue=None,
            ),
        ),
        "site_activity": (
            "Pilots and last start, last 3 hours.",
            AT_SITE
            | kept(archive.TABLES["site_data"], getjob="0", updatejob="0", laststart="never"),
        ),
        "job_stats": ("Jobs by queue, share and status.", AT_SITE | _count(gshare=None) | NJOBS),
        "job_stats_rt": (
            "Jobs of the task's share or work queue by resource type.",
            {
                **SNAPSHOT,
                "gshare": text("share or work queue counted", null="that of the task"),
                **SITE,
                **_count(resource_type=None),
                **NJOBS,
            },
        ),
        "job_stats_workqueue": (
            "Jobs by queue, work queue and status.",
            AT_SITE | _count(workqueue_id=None) | NJOBS,
        ),
        "job_stats_gshare_only": (
            "Jobs by share without resource work queues.",
            AT_SITE | _count(gshare=None) | NJOBS,
        ),
        "resource_work_queues": (
            "Work queues that are resource queues.",
            {"workqueue_id": i64("work queue", required=True), "queue_name": text("name")},
        ),
        "task_resource_types": (
            "Resource types that hold at least 20 % of a task's jobs at a queue.",
            SNAPSHOT | TASK | SITE | _count(resource_type=None),
        ),
        "transferring_by_nucleus": (
            "Jobs in transferring by queue and nucleus.",
            AT_SITE | _count(nucleus=None, njobs="0"),
        ),
        "core_stats": (
            "Cores in use by queue and status.",
            AT_SITE | _count(jobstatus=NOT_ALLOWED) | {"ncores": i64("cores", "cores", null="0")},
        ),
        "diskio_usage": (
            "Disk traffic of running jobs.",
            AT_SITE
            | {"diskio_per_core": f64("mean over running jobs", "kB/s per core", null="unknown")},
        ),
        "worker_stats": (
            "Batch workers by queue.",
            {
                **SNAPSHOT,
                "panda_queue": text("queue", required=True),
                **_count(resource_type=None),
                **kept(archive.TABLES["worker_stats"], status=None, n_workers="0"),
            },
        ),
        "slots": (
            "Slots set for a queue.",
            {
                **SNAPSHOT,
                **QUEUE,
                "gshare": text("share or work queue", null="any"),
                **kept(archive.TABLES["slots"], resourcetype=None, numslots="0"),
            },
        ),
        "network_matrix": (
            "Links between ATLAS sites (network-weight.md 2).",
            {
                **SNAPSHOT,
                **_network(src=NOT_ALLOWED, dst=NOT_ALLOWED, key=NOT_ALLOWED),
                **_network(value="missing", ts="missing"),
            },
        ),
        "locks": (
            "Queues locked by another brokerage.",
            {**SNAPSHOT, **TASK, "panda_queue": text("queue", required=True)},
        ),
        "live": ("Jobs submitted in this cycle.", SNAPSHOT | QUEUE | _count(njobs="0")),
    },
)
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
