"""Queues, nuclei and storage as the brokerage reads them; pilots, workers, slots and links at every instant, starts and how jobs ended."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

import narwhals.stable.v2 as nw
import polars as pl

from brokerlab.archive.contracts import read_as
from brokerlab.brokerage.analysis_jobs.locality import usable_space
from brokerlab.brokerage.full_chain import PRODUCTION_TYPES
from brokerlab.brokerage.inputs.queues import pseudo_queues, scale_per_core
from brokerlab.brokerage.replaying import changes
from brokerlab.brokerage.replaying.changes import LAST, by_parent, span_changes
from brokerlab.brokerage.replaying.clock import Clock, as_of
from brokerlab.engines import TEXT, TIME, Types, collect, narrow
from brokerlab.lifecycle.states import COUNT_AS_STARTED
from brokerlab.units import HOUR_S

_QUEUES = read_as(
    "queues",
    *("panda_queue", "unified_name", "atlas_site", "role", "pandasite_state", "is_unified"),
    *("type", "status", "fairsharepolicy", "wnconnectivity", "jobseed", "capability"),
    *("workflow", "catchall", "params", "releases", "corecount", "maxtime", "mintime"),
    *("maxrss", "minrss", "maxwdir", "maxinputsize", "maxdiskio", "max_io_intensity"),
    *("pledgedcpu", "transferringlimit", "corepower", "direct_access_lan"),
    *("direct_access_wan",),
)
_LIMITS = ("maxrss", "minrss", "maxwdir", "maxdiskio", "max_io_intensity")
_ENDPOINTS = read_as(
    "ddm_endpoints",
    *("ddm_endpoint_name", "site_name", "type", "is_tape", "read_lan", "write_lan"),
    *("read_wan", "write_wan", "space_free", "space_expired", "space_min_free"),
    *("space_unavailable", "space_total"),
)
_LINKS = read_as(
    "queue_endpoints",
    *("panda_queue", "ddm_endpoint_name", "direction", "scope", "order_read"),
    *("order_write", "is_default", "is_local"),
)


def queues(
    frame: Any, resource_types: pl.DataFrame | None, clock: Clock, *, more: Types | None = None
) -> pl.DataFrame:
    """Return the queues at every instant, pseudo-queues included, limits of the whole slot (contract ``Queues``, ``more``)."""
    columns = {**_QUEUES, **(more or {})}
    held = as_of(frame, "queues", columns, clock, entity=["panda_queue"])
    typed = held.drop("ts").rename({"atlas_site": "pandasite"})
    typed = typed.with_columns(pl.col(name).cast(pl.Float64) for name in _LIMITS)
    whole = pseudo_queues(scale_per_core(typed), resource_types)
    lists = {text: _releases(text) for text in whole["releases"].unique()}
    kind = pl.List(pl.String)
    listed = pl.col("releases").replace_strict(lists, default=None, return_dtype=kind)
    return whole.drop("releases").with_columns(whole.select(listed))


def parents(queues: pl.DataFrame) -> dict[str, str]:
    """Return the parent of each pseudo-queue."""
    named = queues.select("panda_queue", "unified_name").unique("panda_queue").drop_nulls()
    return dict(named.iter_rows())


def _releases(text: str | None) -> list[str] | None:
    """Read a list of releases; what is no JSON is a comma list."""
    if text is None:
        return None
    try:
        value = json.loads(text)
    except ValueError:
        value = text.split(",")
    result = value if isinstance(value, list) else [value]
    return [str(item).strip() for item in result if item is not None]


def storage_endpoints(frame: Any, clock: Clock) -> pl.DataFrame:
    """Return the storage endpoints at every instant (contract ``StorageEndpoints``)."""
    held = as_of(frame, "ddm_endpoints", _ENDPOINTS, clock, entity=["ddm_endpoint_name"])
    return held.drop("ts")


def queue_endpoints(frame: Any) -> pl.DataFrame:
    """Return the endpoints of each queue for production: :func:`scoped_endpoints` of scope ``default``, without it."""
    return scoped_endpoints(frame).filter(pl.col("scope") == "default").drop("scope")


def scoped_endpoints(frame: Any) -> pl.DataFrame:
    """Return the endpoints of each queue: ``panda_queue, direction, scope, ddm_endpoint_name, is_default, is_local``.

    They are sorted by queue, direction and stored order; no scope is ``default``.
    """
    links = collect(narrow(frame, "queue_endpoints", _LINKS, tuple(_LINKS)[:3]))
    order = pl.when(pl.col("direction") == "input").then("order_read").otherwise("order_write")
    ordered = links.with_columns(pl.col("scope").fill_null("default"), order=order).sort(
        "panda_queue", "direction", "order", "ddm_endpoint_name", nulls_last=True
    )
    return ordered.select(
        *("panda_queue", "direction", "scope", "ddm_endpoint_name", "is_default", "is_local")
    )


def endpoints_with_storage(links: pl.DataFrame, storage: pl.DataFrame | None) -> pl.DataFrame:
    """Put beside the endpoints of queues what is known of each: tape or not, free space, what is up.

    Of an endpoint with a history the last row counts: ``is_tape``, ``space_usable`` [GB] (free + expired - to be kept free -
    unavailable, null = 0; null where none of the four is known), ``read_lan, write_lan, read_wan, write_wan``.

    Source: analysis-jobs.md 1; archive.md section 6.
    """
    names = ["is_tape", "read_lan", "write_lan", "read_wan", "write_wan"]
    if storage is None:
        unknown = [pl.lit(None, pl.Boolean), *(pl.lit(None, pl.String) for _ in names[1:])]
        columns = dict(zip(names, unknown, strict=True))
        return links.with_columns(space_usable=pl.lit(None, pl.Float64), **columns)
    last = storage.unique("ddm_endpoint_name", keep="last", maintain_order=True)
    own = last.select("ddm_endpoint_name", *names, space_usable=usable_space())
    return links.join(own, on="ddm_endpoint_name", how="left", maintain_order="left")


def queue_storage_site(links: pl.DataFrame, endpoints: pl.DataFrame) -> pl.DataFrame:
    """Return the site of each queue's default output endpoint, ``panda_queue``, ``site_name``, sorted."""
    sites = endpoints.select("ddm_endpoint_name", "site_name").drop_nulls().unique("ddm_endpoint_name", keep="first", maintain_order=True)  # fmt: skip
    written = links.filter((pl.col("direction") == "output") & pl.col("is_default"))
    result = written.join(sites, on="ddm_endpoint_name", maintain_order="left")
    return result.unique("panda_queue", keep="first", maintain_order=True).select(
        "panda_queue", "site_name"
    )


def nuclei(queues: pl.DataFrame, links: pl.DataFrame) -> pl.DataFrame:
    """Return the ATLAS sites that own production queues, nuclei and satellites (contract ``Nuclei``), sorted.

    The state is that of the site's first queue by name; a site is a nucleus if one of its production queues has that
    role. Endpoints come in the order of the queues and of each queue's list; only local output endpoints count. ``bare_mode``
    and ``secondary_nucleus`` follow from the queues by a rule (:func:`full_chain.bare_modes`).

    Source: production-tasks.md 1; full-chain.md 1.
    """
    when = [name for name in ("snapshot",) if name in queues.columns]
    own = queues.filter(
        pl.col("type").fill_null("production").is_in(PRODUCTION_TYPES)
        & pl.col("pandasite").is_not_null()
    ).sort(*when, "pandasite", "panda_queue")
    sites = own.group_by(*when, "pandasite", maintain_order=True).agg(
        role=pl.when((pl.col("role") == "nucleus").any()).then(pl.lit("nucleus")).otherwise(pl.col("role").first()),
        state=pl.col("pandasite_state").first(),
        queues=pl.col("panda_queue"),
    )  # fmt: skip
    stored = _endpoints_of_sites(own, links, when)
    full = sites.join(stored, on=[*when, "pandasite"], how="left", maintain_order="left")
    return full.rename({"pandasite": "nucleus"})


def _endpoints_of_sites(queues: pl.DataFrame, links: pl.DataFrame, when: list[str]) -> pl.DataFrame:
    parents = queues.select(
        *when, "pandasite", panda_queue=pl.coalesce("unified_name", "panda_queue")
    )
    joined = parents.unique(maintain_order=True).join(
        links, on="panda_queue", maintain_order="left_right"
    )
    name, output = pl.col("ddm_endpoint_name"), pl.col("direction") == "output"
    local = output & pl.col("is_local").fill_null(value=True)
    return joined.group_by(*when, "pandasite", maintain_order=True).agg(
        default_endpoint_out=name.filter(
            local & pl.col("is_default").fill_null(value=False)
        ).first(),
        input_endpoints=name.filter(~output).unique(maintain_order=True),
        output_endpoints=name.filter(local).unique(maintain_order=True),
    )


def cpu_levels(worker_nodes: pl.DataFrame, queues: pl.DataFrame) -> pl.DataFrame:
    """Return the share of logical CPUs of each architecture level at each queue (contract ``WorkerNodeCpuLevel``), sorted.

    Nodes are known by site: every queue of a site has the shares of the site.
    """
    sums = worker_nodes.group_by("site", "cpu_architecture_level").agg(
        cpus=pl.col("n_logical_cpus").fill_null(0).cast(pl.Int64).sum()
    )
    shares = sums.with_columns(all=pl.col("cpus").sum().over("site")).filter(pl.col("all") > 0)
    percent = (100 * shares["cpus"]).to_numpy() / shares["all"].to_numpy()
    levels = shares.with_columns(pct_within_queue=pl.Series(percent, dtype=pl.Float64))
    parents = queues.select(
        panda_queue=pl.coalesce("unified_name", "panda_queue"), site="pandasite"
    ).unique(maintain_order=True)
    keys = ["panda_queue", "cpu_architecture_level"]
    joined = parents.join(levels, on="site", maintain_order="left").drop_nulls(keys)
    first = joined.unique(keys, keep="first", maintain_order=True)  # a queue that moved
    return first.select(*keys, "pct_within_queue").sort(keys)


WINDOW_S = 3 * 3600
"""Window of the pilots' activity [s] (production-jobs.md)."""
LINK_AGE_S = 3600
"""Links count while they are younger [s] (network-weight.md 2)."""
_DATA = read_as("site_data", "site", "flag", "hours", "getjob", "updatejob", "laststart", "lastmod")
_WORKERS = read_as(
    "worker_stats",
    *("computingsite", "resourcetype", "status", "n_workers"),
    *("harvester_id", "jobtype", "lastupdate"),
)
_SLOTS = read_as("slots", "pandaqueuename", "gshare", "resourcetype", "numslots", "expirationtime")
_MATRIX = read_as("network_matrix", "src", "dst", "key", "value")
QUEUED = "Production Output_queued"
"""Key of the files that wait on a link."""
_ANALYSIS_QUEUE = "ANALY_"


def site_activity_of_data(site_data: Any, clock: Clock) -> pl.DataFrame:
    """Return what the pilots of each queue did in the last three hours, from the snapshots of the system.

    Rows of flag ``analysis`` count for queues named ``ANALY_...`` only, rows of another window than 3 h not at all.
    Where the last row is 3 h old or older no pilot has been seen; its last start stands. Of
    rows without ``ts`` those changed last count.

    Returns:
        ``snapshot`` (if there is a history), ``computingsite``, ``getjob``, ``updatejob``, ``laststart``, sorted.
    """
    hours = nw.coalesce("hours", nw.lit(3)) == 3
    flag = nw.coalesce("flag", nw.lit("production"))
    analysis = nw.col("site").str.starts_with(_ANALYSIS_QUEUE)
    meant = (analysis & (flag == "analysis")) | (~analysis & (flag == "production"))
    held = as_of(site_data, "site_data", _DATA, clock, entity=["site"], where=hours & meant)
    held = _silenced(_latest_exports(held, "lastmod", "getjob", "updatejob", "laststart"), clock)
    keys = [name for name in ("snapshot",) if name in held.columns]
    return held.group_by(*keys, computingsite="site", maintain_order=True).agg(
        pl.col("getjob", "updatejob").sum(), pl.col("laststart").max()
    )


def _latest_exports(held: pl.DataFrame, changed: str, *rows: str) -> pl.DataFrame:
    """Keep of rows without ``ts``, several exports, those ``changed`` last; those of one time hold together, as of harvesters without name."""
    same = [name for name in held.columns if name not in (changed, *rows)]
    last = pl.col(changed).eq_missing(pl.col(changed).max().over(same))
    return held.filter(pl.col("ts").is_not_null() | last)


def _silenced(held: pl.DataFrame, clock: Clock) -> pl.DataFrame:
    """Count no pilots where a queue's last row is too old to tell of the last three hours; its last start stands."""
    at = clock.instants
    oldest, latest = held["ts"].min(), at["at"].max()
    window = timedelta(seconds=WINDOW_S)
    if not isinstance(oldest, datetime) or not isinstance(latest, datetime):
        return held
    if oldest > latest - window:
        return held
    if "snapshot" not in held.columns:
        held = at.select("snapshot").join(held, how="cross")
    silent = (pl.col("ts") <= pl.col("at") - window).fill_null(value=False)
    pilots = [
        pl.when(silent).then(0).otherwise(name).alias(name) for name in ("getjob", "updatejob")
    ]
    return held.join(at, on="snapshot", maintain_order="left").with_columns(pilots)


def site_activity_of_jobs(
    jobs: Any, clock: Clock, *, parents: Mapping[str, str] | None = None
) -> pl.DataFrame:
    """Estimate what the pilots of each queue did in the last three hours from the jobs that ran.

    ``getjob`` counts the jobs started in ``(t - 3 h, t]``, ``updatejob`` those that ran in it: a pilot that found no
    job is not seen.

    Returns:
        ``snapshot, computingsite, getjob, updatejob`` (jobs), ``laststart`` (last start at or before the instant), for
        queues with a start by then; sorted.
    """
    names = ["snapshot", "computingsite", "getjob", "updatejob", "laststart"]
    table = narrow(jobs, "jobs", changes.JOB_COLUMNS, changes.JOB_REQUIRED)
    known = ~nw.col("starttime").is_null() & ~nw.col("computingsite").is_null()
    ran = changes.times(changes.prepared(table)).filter(known)
    by, keys, window = ["computingsite"], names[:2], nw.lit(timedelta(seconds=WINDOW_S))
    starts = clock.moments(ran.select(*by, time=nw.col("started"))).group_by(*by, "moment")
    started = collect(starts.agg(nw.col("time").max()))
    last = as_of(started, "jobs", {"computingsite": TEXT}, clock, entity=by, time="time", each=True)
    result = by_parent(last, parents).group_by(keys).agg(laststart=pl.col("time").max())
    for name, end in (("getjob", "started"), ("updatejob", "stopped")):
        spans = ran.select(*by, enter=nw.col("started"), leave=nw.col(end) + window)
        seen = span_changes(spans, clock, by).by_parent(parents).at_instants(by, ["njobs"])
        counted = seen.rename({"njobs": name})
        result = result.join(counted, on=keys, how="left").with_columns(pl.col(name).fill_null(0))
    return result.select(names).sort(keys)


def worker_stats(frame: Any, clock: Clock, *, seen_within_s: int | None = None) -> pl.DataFrame:
    """Return batch workers by queue, resource type and status at every instant (contract ``WorkerStats``).

    Of rows without ``ts`` those updated last count. Rows whose ``lastupdate`` was ``seen_within_s`` [s] old when they were recorded do not count.
    """
    held = as_of(frame, "worker_stats", _WORKERS, clock, entity=["computingsite"])
    held = _latest_exports(held, "lastupdate", "n_workers")
    # afterwards: what was recorded last holds, though it be too old to count
    if seen_within_s is not None:
        late = pl.col("lastupdate") + timedelta(seconds=seen_within_s) <= pl.col("ts")
        held = held.filter(~late.fill_null(value=False))
    keys = [name for name in ("snapshot",) if name in held.columns]
    named = held.rename({"computingsite": "panda_queue", "resourcetype": "resource_type"})
    keys += ["panda_queue", "resource_type", "status"]  # in which order they come
    return named.group_by(keys, maintain_order=True).agg(pl.col("n_workers").sum())


def slots(frame: Any, clock: Clock) -> pl.DataFrame:
    """Return the slots set for queues at every instant: valid ones that are not negative (contract ``Slots``).

    A row without ``ts`` holds from its ``modificationtime``.
    """
    entity = ["pandaqueuename", "gshare", "resourcetype"]
    held = as_of(_timed_slots(frame), "slots", _SLOTS, clock, entity=entity, each=True)
    expiry = pl.col("expirationtime")
    valid = held.join(clock.instants, on="snapshot").filter(
        (expiry.is_null() | (expiry > pl.col("at"))) & (pl.col("numslots") >= 0)
    )
    keys = ["snapshot", "panda_queue", "gshare", "resourcetype"]
    return valid.rename({"pandaqueuename": "panda_queue"}).select(*keys, "numslots").sort(keys)


def first_slots(frame: Any, until: datetime) -> datetime | None:
    """Return when slots were first set for any queue, as :func:`slots` reads them; null: none ``until`` then, or without a time."""
    set_ = (nw.col("numslots") >= 0) & (nw.col("ts") <= until)
    result: datetime | None = collect(
        _timed_slots(frame).filter(set_).select(nw.col("ts").min())
    ).item()
    return result


def _timed_slots(frame: Any) -> nw.LazyFrame[Any]:
    """Return the rows of the table ``slots`` with the time from which they hold."""
    kinds = {**_SLOTS, "ts": TIME, "modificationtime": TIME}
    lazy = narrow(frame, "slots", kinds, ("pandaqueuename",))
    return lazy.with_columns(ts=nw.coalesce("ts", "modificationtime"))


def network_matrix(frame: Any, clock: Clock, *, only: pl.DataFrame | None = None) -> pl.DataFrame:
    """Return the links measured in the hour before every instant (contract ``NetworkMatrix``).

    ``only``: ``snapshot``, ``dst`` and perhaps ``key``: what is wanted; None takes all.
    """
    held = as_of(
        frame,
        "network_matrix",
        _MATRIX,
        clock,
        entity=["src", "dst", "key"],
        max_age_s=LINK_AGE_S,
        only=only,
    )
    return held.filter(pl.col("ts").is_not_null())


RATE_WINDOW_S, RATE_DELAY_S = 6 * HOUR_S, 300
"""Starts count from six hours to five minutes before the instant [s]."""
NOT_FAILED = 3
"""Value of ``relocationflag`` with which a closed job is nobody's failure."""
_US = timedelta(microseconds=1)
_TIMES = ("starttime", "endtime", "statechangetime", "modificationtime")
_STARTS = read_as("jobs", "computingsite", "jobstatus", *_TIMES)
_ENDS = read_as(
    "jobs",
    *("jeditaskid", "computingsite", "jobstatus", "jobsubstatus", "piloterrorcode"),
    *("relocationflag", *_TIMES),
)
_USED = read_as("jobs", "jeditaskid", "computingsite", "creationtime")


def to_run_rate(
    jobs: Any, clock: Clock, *, parents: Mapping[str, str] | None = None
) -> pl.DataFrame:
    """Return how many jobs per hour started at each queue: starts in ``[t - 6 h, t - 300 s)`` over that time.

    Jobs of all labels, shares and tables count, running or ended, but those that had failed or were closed by then.
    No row where nothing started (contract ``ToRunRate``).

    Source: analysis-jobs.md 1 (D7).
    """
    table = narrow(jobs, "jobs", _STARTS, ("computingsite", "jobstatus", "starttime"))
    began = nw.col("starttime")
    # a span begins when it is seen and ends when it is seen no more: after t - 300 s, up to t - 6 h, to the microsecond
    seen = began + nw.lit(timedelta(seconds=RATE_DELAY_S) + _US)
    past = began + nw.lit(timedelta(seconds=RATE_WINDOW_S) + _US)
    lost = nw.when(~nw.col("jobstatus").is_in(COUNT_AS_STARTED)).then(LAST)
    spans = (
        table.filter(~began.is_null() & ~nw.col("computingsite").is_null())
        .with_columns(enter=seen, past=past, lost=lost)
        .with_columns(leave=nw.min_horizontal("past", "lost"))
        .filter(nw.col("enter") < nw.col("leave"))
        .select("computingsite", "enter", "leave")
    )
    changes = span_changes(spans, clock, ["computingsite"]).by_parent(parents)
    result = changes.at_instants(["computingsite"], ["njobs"])
    rate = result["njobs"].to_numpy() / ((RATE_WINDOW_S - RATE_DELAY_S) / HOUR_S)
    return result.drop("njobs").with_columns(jobs_per_hour=pl.Series(rate, dtype=pl.Float64))


def failure_counts(
    jobs: Any,
    pairs: pl.DataFrame,
    clock: Clock,
    *,
    hours: float,
    parents: Mapping[str, str] | None = None,
) -> pl.DataFrame:
    """Count the jobs of tasks that ended in the hours before each instant, by queue (contract ``FailureCounts``).

    Finished ones; failed ones with an error of the pilot; closed ones that were to be assigned anew, by force
    (``relocationflag`` is neither null nor 3). The window is ``(t - hours, t]``, ``hours`` TW_DONE_JOB_STAT.

    Source: analysis-jobs.md 1.
    """
    table = narrow(jobs, "jobs", _ENDS, ("jeditaskid", "computingsite", "jobstatus"))
    status = nw.col("jobstatus")
    pilot = (nw.coalesce("piloterrorcode", nw.lit(0)) != 0) & (status == "failed")
    again = nw.coalesce("jobsubstatus", nw.lit("")) == "toreassign"
    forced = nw.coalesce("relocationflag", nw.lit(NOT_FAILED)) != NOT_FAILED
    counted = (status == "finished") | pilot | ((status == "closed") & again & forced)
    known = ~nw.col("computingsite").is_null()
    mine = nw.col("jeditaskid").is_in(pairs["jeditaskid"].unique().to_list())
    spans = table.filter(mine & known & counted).with_columns(enter=LAST)
    window = nw.lit(timedelta(hours=hours))
    by = ["jeditaskid", "computingsite", "jobstatus"]
    timed = spans.with_columns(leave=nw.col("enter") + window).select(*by, "enter", "leave")
    changes = span_changes(timed, clock, by).by_parent(parents)
    return changes.at_instants(by, ["njobs"], only=pairs.select("snapshot", "jeditaskid"))


def sites_used(
    jobs: Any, pairs: pl.DataFrame, clock: Clock, *, parents: Mapping[str, str] | None = None
) -> pl.DataFrame:
    """Return the queues at which a task had jobs by each instant: there its outputs have datasets (contract ``SitesUsed``).

    The archive knows of one queue per job, the last one.

    Source:
        analysis-jobs.md 1 and 8.
    """
    table = narrow(jobs, "jobs", _USED, tuple(_USED))
    mine = nw.col("jeditaskid").is_in(pairs["jeditaskid"].unique().to_list())
    first = (
        table.filter(mine & ~nw.col("computingsite").is_null())
        .group_by("jeditaskid", "computingsite")
        .agg(nw.col("creationtime").min().alias("since"))
    )
    keys = ["snapshot", "jeditaskid", "computingsite"]
    asked = pairs.select("jeditaskid", "snapshot").unique().join(clock.instants, on="snapshot")
    joined = asked.join(collect(first), on="jeditaskid").filter(pl.col("since") <= pl.col("at"))
    return by_parent(joined, parents).select(keys).unique().sort(keys)
