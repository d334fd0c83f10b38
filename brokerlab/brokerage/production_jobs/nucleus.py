"""What is known of a task's nucleus and of the links to it."""

from __future__ import annotations

import polars as pl

from brokerlab.brokerage import network_weight as network
from brokerlab.brokerage.full_chain import chained_where
from brokerlab.brokerage.inputs.endpoints import up
from brokerlab.brokerage.production_jobs.ids import Ids
from brokerlab.brokerage.production_jobs.pairs import Side
from brokerlab.brokerage.production_jobs.settings import JobSettings
from brokerlab.brokerage.rules import ProductionRules
from brokerlab.gdpconfig import Config

Tables = dict[str, pl.DataFrame]


def unwritable(state: Tables, *, rules: ProductionRules) -> pl.DataFrame:
    """Return ``snapshot, nucleus`` of nuclei whose default output endpoint cannot be written over WAN."""
    down = state["storage_endpoints"].filter(~up("write_wan", rules=rules))
    places = state["nuclei"].select("nucleus", ddm_endpoint_name="default_endpoint_out")
    return places.join(down, on="ddm_endpoint_name").select("snapshot", "nucleus").unique()


def known_links(
    tasks: pl.DataFrame, state: Tables, *, rules: ProductionRules, config: Config
) -> pl.DataFrame:
    """Return the links into the nuclei of the tasks at their instants."""
    asked = tasks.filter(pl.col("t_nucleus").is_not_null())
    return network.links(
        state["network_matrix"],
        instants=tasks.select("snapshot", "at").unique(
            "snapshot", keep="first", maintain_order=True
        ),
        nuclei=asked.select("snapshot", nucleus="t_nucleus").unique(),
        config=config,
        rules=rules,
    )


def with_nucleus(
    tasks: pl.DataFrame, state: Tables, links: pl.DataFrame,
    *, rules: ProductionRules, settings: JobSettings,
) -> pl.DataFrame:  # fmt: skip
    """Add what is known of the nucleus at the instant: unwritable, files queued, full chain."""
    bare = state["nuclei"].select(t_nucleus="nucleus", bare="bare_mode")
    down = unwritable(state, rules=rules).select(
        "snapshot", t_nucleus="nucleus", t_nucleus_unwritable=pl.lit(value=True)
    )
    queued = network.nucleus_total_queued(links).select(
        "snapshot", t_nucleus="nucleus", t_express="express", t_nucleus_queued="total_queued"
    )
    for known, keys in (
        (bare, ["t_nucleus"]),
        (down, ["snapshot", "t_nucleus"]),
        (queued, ["snapshot", "t_nucleus", "t_express"]),
    ):
        tasks = tasks.join(known, on=keys, how="left", maintain_order="left")
    active = settings.nw_active or not rules.network_needs_active
    return tasks.with_columns(
        pl.col("t_nucleus_unwritable").fill_null(value=False),
        pl.col("t_nucleus_queued").fill_null(0.0),
        t_chained=chained_where(pl.col("t_fullchain"), pl.col("bare")),
        t_network=pl.col("t_nucleus").is_not_null() & pl.lit(active),
    ).drop("bare")


def link_side(
    tasks: pl.DataFrame, links: pl.DataFrame, ids: Ids, *, rules: ProductionRules, config: Config
) -> Side:
    """Return the links from storage sites to nuclei; the nucleus itself has its own weight."""
    kinds = (
        tasks.filter(pl.col("t_nucleus_id") >= 0)
        .select("t_link", "snapshot", "t_nucleus_id", nucleus="t_nucleus", express="t_express")
        .unique()
    )
    keys = ["snapshot", "nucleus", "express"]
    remote = links.join(kinds, on=keys).select(*keys, "t_link", storage_site="src")
    own = kinds.select(*keys, "t_link", storage_site="nucleus")
    asked = (
        pl.concat([remote, own])
        .unique()
        .join(ids.sites.rename({"site": "storage_site", "id": "p_storage_id"}), on="storage_site")
    )
    weighed = network.at_links(asked, links, config=config, rules=rules)
    rows = weighed.select(
        "t_link", "p_storage_id", l_known="link_known", l_closeness="closeness",
        l_queued="n_queued", l_weight="network_weight",
    )  # fmt: skip
    unknown = network.network_weight(
        [], nucleus="any", storage_site=None, config=config, rules=rules
    )
    missing = {"l_known": False, "l_closeness": None, "l_queued": 0.0, "l_weight": unknown}
    return Side("t_link", "p_storage_id", rows, missing)


def near_side(queues: pl.DataFrame, state: Tables, ids: Ids) -> Side:
    """Return the queues of a nucleus, and those that share its storage (4.6).

    Sharing queues are online, their default output endpoint is among the inputs of the nucleus's first queue, and
    they run analysis if that one does.
    """
    parents = queues.select("p_id", "parent", "p_site", "p_online", "q_runs_analysis").unique(
        "p_id", keep="first", maintain_order=True
    )
    sites = ids.sites.rename({"site": "nucleus", "id": "t_nucleus_id"})
    own = parents.join(sites, left_on="p_site", right_on="nucleus").select(
        "t_nucleus_id", "p_id", x_nucleus=pl.lit(value=True)
    )
    links = state["queue_endpoints"]
    inputs = links.filter(pl.col("direction") == "input").select(
        "ddm_endpoint_name", first="panda_queue"
    )
    outputs = links.filter((pl.col("direction") == "output") & pl.col("is_default")).select(
        "ddm_endpoint_name", parent="panda_queue"
    )
    names = queues.select("panda_queue", "q_runs_analysis", first_parent="parent").unique()
    first = (
        state["nuclei"]
        .select("nucleus", panda_queue=pl.col("queues").list.first())
        .join(names, on="panda_queue")
        .select("nucleus", first="first_parent", first_analysis="q_runs_analysis")
    )
    sharing = (
        first.join(inputs, on="first")
        .join(outputs, on="ddm_endpoint_name")
        .join(parents.filter("p_online"), on="parent")
        .filter(~pl.col("first_analysis") | pl.col("q_runs_analysis"))
        .join(sites, on="nucleus")
        .select("t_nucleus_id", "p_id", x_nucleus=pl.lit(value=False))
    )
    rows = (
        pl.concat([own, sharing])
        .group_by("t_nucleus_id", "p_id")
        .agg(pl.col("x_nucleus").any())
        .with_columns(x_near=pl.lit(value=True))
    )
    return Side("t_nucleus_id", "p_id", rows, {"x_nucleus": False, "x_near": False})


def near_any(side: Side, state: Tables, ids: Ids) -> pl.DataFrame:
    """Return ``p_id, p_near_any`` of the queues that are near some site of role nucleus.

    Args:
        side: Result of :func:`near_side`.
        state: The input tables.
        ids: The numbers.
    """
    nuclei = state["nuclei"].filter(pl.col("role").fill_null("nucleus") == "nucleus")
    sites = ids.sites.rename({"site": "nucleus", "id": "t_nucleus_id"})
    wanted = sites.join(nuclei, on="nucleus", how="semi")
    near = side.rows.join(wanted, on="t_nucleus_id", how="semi")
    return near.select("p_id", p_near_any=pl.lit(value=True)).unique()
