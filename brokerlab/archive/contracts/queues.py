"""Contracts of queues, their software, storage, replicas, links and transfers (archive.md sections 5 to 7)."""

import dataframely as dy

from brokerlab.archive.contracts._columns import (
    MAX_TAGS,
    f64,
    flag,
    i32,
    i64,
    json_text,
    resource_type,
    text,
    ts,
)

_QUEUE_ALIASES = ("nickname", "siteid", "computingsite", "site")
_STORAGE_ALIASES = ("panda_site_name", "siteid", "computingsite")


class Queues(dy.Schema):
    """One row per queue (DB ``SCHEDCONFIG_JSON``, ``PANDA_SITE``, ``SITE``; CRIC)."""

    panda_queue = text("queue", loose_key=True, required=True, aliases=_QUEUE_ALIASES)
    unified_name = text("parent of a pseudo-queue", null="itself")
    is_unified = flag("parent with pseudo-queues", null="no")
    atlas_site = text("ATLAS site", aliases=("pandasite",))
    role = text("nucleus, satellite")
    pandasite_state = text("ACTIVE...")
    tier = text("tier")
    cloud = text("first item of the comma list")
    region = text("region")
    type = text(
        "production, analysis, unified, special; unknown: not in the source",
        required=True,
        values=("production", "analysis", "unified", "special", "unknown"),
    )
    resource_type_q = text("GRID, hpc, cloud... (not SCORE/MCORE)")
    status = text(
        "online, standby, brokeroff, offline, test, paused; unknown: not in the source",
        required=True,
        values=("online", "standby", "brokeroff", "offline", "test", "paused", "unknown"),
    )
    corecount = i32("cores of a slot", "cores", null="undefined; 0 likewise")
    corepower = f64("core power", "HS06/core", low=0, null="10 is used; 0 likewise")
    memory = i64("memory, whole slot", "MB", null="no limit")
    maxrss = i64("most memory, whole slot", "MB", null="no limit")
    minrss = i64("least memory, whole slot", "MB", null="no limit")
    maxtime = i64("most wall time; 0 = no limit", "s", null="no limit")
    mintime = i64("least wall time; 0 = no limit", "s", null="no limit")
    maxwdir = i64("work space, whole slot", "MB", null="0, no check")
    maxinputsize = i64("most input; -1 = always direct access", "MB", null="no limit")
    direct_access_lan = flag("reads over LAN", null="no")
    direct_access_wan = flag("reads over WAN", null="no")
    maxdiskio = i64("most local disk traffic per core", "kB/s per core", null="no limit")
    max_io_intensity = i64("most network traffic", "kB/s", null="no limit")
    pledgedcpu = i64("pledge; -1 = opportunistic", "cores")
    transferringlimit = i64("most transferring jobs", "jobs", null="default limit")
    fairsharepolicy = text("shares by type and group", null="no policy")
    wnconnectivity = text("network#stack", null="no restriction")
    jobseed = text("std, es, eshigh, all")
    capability = text("ucore...")
    workflow = text("pull_ups, push...")
    catchall = text("comma list", null="empty list")
    releases = json_text("list of software releases", null="none")
    is_cvmfs = flag("has CVMFS", null="no")
    transtimehi = i32("timeout of urgent transfers", "days")
    transtimelo = i32("timeout of other transfers", "days")
    params = json_text(
        "extra queue parameters; under 'schedconfig' what has no column of its own", null="none"
    )
    last_update = ts("last change in the source", version=True)
    ts = ts("time of validity", loose_key=True, null="whole replay")


class ResourceTypes(dy.Schema):
    """Resource types by cores and memory per core."""

    resource_name = resource_type(key=True, aliases=())
    mincore = i32("least cores", "cores", null="no limit")
    maxcore = i32("most cores", "cores", null="no limit")
    minrampercore = i64("least memory per core", "MB", null="no limit")
    maxrampercore = i64("most memory per core", "MB", null="no limit")


class SoftwareTags(dy.Schema):
    """Software of a queue (DB ``SW_TAGS``)."""

    panda_queue = text("queue", key=True, aliases=_QUEUE_ALIASES[1:])
    data = json_text("software and architectures", null="nothing published", longest=MAX_TAGS)


class DdmEndpoints(dy.Schema):
    """Storage endpoints (DB ``DDM_ENDPOINT``)."""

    ddm_endpoint_name = text("endpoint (RSE)", loose_key=True, required=True)
    site_name = text("ATLAS site")
    type = text("DATADISK, SCRATCHDISK, LOCALGROUPDISK, DATATAPE...")
    is_tape = flag("tape", null="no")
    space_total = f64("space", "GB")
    space_free = f64("free space", "GB", null="0")
    space_used = f64("used space", "GB")
    space_expired = f64("expired, can be freed", "GB", null="0")
    space_min_free = f64("to be kept free", "GB", null="0")
    space_unavailable = f64("cannot be used", "GB", null="0")
    space_timestamp = ts("when the space was measured", version=True)
    blacklisted = flag("excluded", null="no")
    blacklisted_read = flag("excluded for reading", null="no")
    blacklisted_write = flag("excluded for writing", null="no")
    read_lan = text("ON, OFF, TEST")
    write_lan = text("ON, OFF, TEST")
    read_wan = text("ON, OFF, TEST")
    write_wan = text("ON, OFF, TEST")
    delete = text("ON, OFF, TEST")
    ts = ts("time of validity", loose_key=True, null="whole replay")


class QueueEndpoints(dy.Schema):
    """Endpoints of a queue (DB ``PANDA_DDM_RELATION``)."""

    panda_queue = text("queue", key=True, aliases=_STORAGE_ALIASES)
    ddm_endpoint_name = text("endpoint", key=True)
    direction = text("input or output; unknown: not in the source", key=True)
    scope = text("default, analysis; unknown: not in the source", key=True)
    order_read = i32("order for reading", null="not for reading")
    order_write = i32("order for writing", null="not for writing")
    is_default = flag("default of its direction", null="no")
    is_local = flag(
        "endpoint of the queue's site", null="by ddm_endpoints.site_name, queues.atlas_site"
    )


class QueueStorageSite(dy.Schema):
    """Site of the default output endpoint of a queue."""

    panda_queue = text("queue", key=True, aliases=_STORAGE_ALIASES)
    site_name = text("ATLAS site of the default output endpoint", null="no such endpoint")


class Replicas(dy.Schema):
    """Dataset replicas; optional."""

    datasetname = text("dataset", loose_key=True, required=True)
    ddm_endpoint_name = text("endpoint", loose_key=True, required=True)
    found = i64("files there", "files", low=0)
    total = i64("files of the dataset", "files", low=0)
    bytes = i64("size", "B", low=0)
    is_tape = flag("on tape", null="no")
    vp = flag("virtual placement", null="no")
    readable_lan = flag("readable over LAN")
    readable_wan = flag("readable over WAN")
    ts = ts("time of validity", loose_key=True, null="whole replay")


class FileLocations(dy.Schema):
    """Where files can be read from a queue; optional."""

    datasetname = text("dataset", key=True)
    lfn = text("logical file name", key=True)
    panda_queue = text("queue", key=True, aliases=_STORAGE_ALIASES)
    kind = text("localdisk, cache, localtape, remote", key=True)


class NetworkMatrix(dy.Schema):
    """Links between ATLAS sites (DB ``NETWORK_MATRIX_KV``)."""

    src = text("ATLAS site", key=True)
    dst = text("ATLAS site", key=True)
    key = text(
        "AGIS_closeness (0 best, 11 worst, -1 blocked), dashb_mbps_1h|1d|1w (MB/s), "
        "<activity>_queued, _done_1h, _done_6h (files), _queued_bytes (B); activity total: all",
        key=True,
    )
    value = f64("value", "by key", null="as a missing row")
    ts = ts("time of measurement", key=True)


class Transfers(dy.Schema):
    """Bytes and files moved between sites in a window of time (ATLAS DDM dashboard)."""

    src_site = text("ATLAS site", key=True)
    dst_site = text("ATLAS site", key=True)
    window = text("name of the length: 12hours, 1day, week...")
    from_date = ts("start of the window", key=True)
    to_date = ts("end of the window", key=True, after="from_date")
    interval_min = i32("length of the window", "min", low=0)
    bytes_xs = i64("moved successfully", "B", low=0)
    files_xs = i64("moved successfully", "files", low=0)
    errors_xs = i64("failed attempts", "attempts", low=0)
