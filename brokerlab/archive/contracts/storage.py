"""Contracts of storage, replicas, the network (archive.md sections 6 and 7) and transfers."""

import dataframely as dy

from brokerlab.archive.contracts._columns import f64, flag, i32, i64, text, ts

_QUEUE_ALIASES = ("panda_site_name", "siteid", "computingsite")


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

    panda_queue = text("queue", key=True, aliases=_QUEUE_ALIASES)
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

    panda_queue = text("queue", key=True, aliases=_QUEUE_ALIASES)
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
    panda_queue = text("queue", key=True, aliases=_QUEUE_ALIASES)
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
