"""Queues, nuclei and storage as the brokerage reads them."""

from __future__ import annotations

import json
from typing import Any

import polars as pl

from brokerlab.archive.contracts import read_as
from brokerlab.brokerage.analysis_jobs.locality import usable_space
from brokerlab.brokerage.full_chain import PRODUCTION_TYPES
from brokerlab.brokerage.inputs.queues import pseudo_queues, scale_per_core
from brokerlab.brokerage.replaying.clock import Clock, as_of
from brokerlab.engines import Types, collect, narrow

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
