"""Contracts of ``queues``, ``resource_types``, ``software_tags`` (archive.md section 5)."""

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
