"""What is known of a task's nucleus and of the links to it."""

from __future__ import annotations

import polars as pl

from brokerlab.brokerage import network_weight as network
from brokerlab.brokerage.engine.pairs import Side
from brokerlab.brokerage.full_chain import bare_modes, chained_where
from brokerlab.brokerage.inputs.endpoints import up
from brokerlab.brokerage.production_jobs.ids import Ids
from brokerlab.brokerage.rules import ProductionRules
from brokerlab.gdpconfig import Config

Tables = dict[str, pl.DataFrame]


def with_sites(tables: Tables, *, rules: ProductionRules) -> Tables:
    """Fill null ``pandasite`` of queues that a nucleus lists, and null ``bare_mode`` of nuclei from their queues.

    Args:
        tables: The input tables.
        rules: Switch ``bare_mode_of``.

    Source: 002, Special Brokerage for ATLAS Full-chain: "by adding bareNucleus=only or bareNucleus=allow in the catchall
        field in CRIC".
    """
    queues, nuclei = tables["queues"], tables["nuclei"]
    lists = nuclei.select(panda_queue="queues", site="nucleus").explode("panda_queue")
    listed = lists.group_by("panda_queue").agg(pl.col("site").min())
    queues = queues.join(listed, on="panda_queue", how="left", maintain_order="left")
    queues = queues.with_columns(pandasite=pl.coalesce("pandasite", "site")).drop("site")
    if rules.bare_mode_of == "any":  # as deployed it is in the table, of the queue loaded first
        said = bare_modes(queues.drop("snapshot"), rules=rules).select("nucleus", said="bare_mode")
        nuclei = nuclei.join(said, on="nucleus", how="left", maintain_order="left")
        nuclei = nuclei.with_columns(bare_mode=pl.coalesce("bare_mode", "said")).drop("said")
    return tables | {"queues": queues, "nuclei": nuclei}


def unwritable(state: Tables, *, rules: ProductionRules) -> pl.DataFrame:
    """Return ``snapshot, nucleus`` of nuclei whose default output endpoint cannot be used over WAN.

    Args:
        state: ``storage_endpoints`` and ``nuclei``.
        rules: Switches ``nucleus_must_send`` (else it must be written only) and ``other_status_up``.

    Source: 002, ATLAS Production Job Brokerage: "The nucleus storage endpoints must allow receivng and sending files over WAN
        (write_wan=ON and read_wan=ON)."
    """
    works = up("write_wan", rules=rules)
    if rules.nucleus_must_send:
        works = works & up("read_wan", rules=rules)
    down = state["storage_endpoints"].filter(~works)
    places = state["nuclei"].select("nucleus", ddm_endpoint_name="default_endpoint_out")
    return places.join(down, on="ddm_endpoint_name").select("snapshot", "nucleus").unique()


def known_links(tasks: pl.DataFrame, state: Tables, *, rules: ProductionRules) -> pl.DataFrame:
    """Return the links into the nuclei of the tasks at their instants, without weights: these depend on settings."""
    asked = tasks.filter(pl.col("t_nucleus").is_not_null())
    found = network.links(
        state["network_matrix"],
        instants=tasks.select("snapshot", "at").unique(
            "snapshot", keep="first", maintain_order=True
        ),
        nuclei=asked.select("snapshot", nucleus="t_nucleus").unique(),
        rules=rules,
    )
    return found.drop(network.WEIGHTS)


def with_nucleus(
    tasks: pl.DataFrame, state: Tables, links: pl.DataFrame, *, rules: ProductionRules
) -> pl.DataFrame:
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
    return tasks.with_columns(
        pl.col("t_nucleus_unwritable").fill_null(value=False),
        pl.col("t_nucleus_queued").fill_null(0.0),
        t_chained=chained_where(pl.col("t_fullchain"), pl.col("bare")),
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
    # one more stands for every link that is not known
    other = pl.DataFrame({"nucleus": ["any"], "express": [False]}).select(
        pl.col(name) if name in ("nucleus", "express") else pl.lit(None, kind).alias(name)
        for name, kind in asked.schema.items()
    )
    weighed = network.at_links(pl.concat([asked, other]), links, config=config, rules=rules)
    unknown = weighed["network_weight"][-1]
    rows = weighed[:-1].select(
        "t_link", "p_storage_id", l_known="link_known", l_closeness="closeness",
        l_queued="n_queued", l_weight="network_weight",
    )  # fmt: skip
    missing = {"l_known": False, "l_closeness": None, "l_queued": 0.0, "l_weight": unknown}
    return Side("t_link", "p_storage_id", rows, missing)


def near_places(queues: pl.DataFrame, state: Tables) -> pl.DataFrame:
    """Return the queues of each site, and those that share its storage (4.6).

    Sharing queues are online, their default output endpoint is among the inputs of the nucleus's first queue, and
    their type is compatible with that one's.

    Returns:
        ``q_version, nucleus, p_id, x_nucleus`` (of the site itself; else sharing).
    """
    own = queues.select("q_version", "p_id", nucleus="q_site").with_columns(x_nucleus=True)
    links = state["queue_endpoints"]
    inputs = links.filter(pl.col("direction") == "input").select(
        "ddm_endpoint_name", first="panda_queue"
    )
    outputs = links.filter((pl.col("direction") == "output") & pl.col("is_default")).select(
        "ddm_endpoint_name", parent="panda_queue"
    )
    first = (
        state["nuclei"]
        .select("nucleus", panda_queue=pl.col("queues").list.first())
        .join(queues.filter("q_production"), on="panda_queue")
        .select("q_version", "nucleus", first="parent", first_q="q", analysis="q_runs_analysis")
    )
    others = queues.filter(pl.col("q_online_only") & pl.col("q_production"))
    sharing = (
        first.join(inputs, on="first")
        .join(outputs, on="ddm_endpoint_name")
        .join(others, on=["q_version", "parent"])
        .filter(~pl.col("analysis") | pl.col("q_runs_analysis"), pl.col("q") != pl.col("first_q"))
        .select("q_version", "p_id", "nucleus", x_nucleus=False)
    )
    return (
        pl.concat([own, sharing])
        .group_by("q_version", "nucleus", "p_id")
        .agg(pl.col("x_nucleus").any())
        .sort("q_version", "nucleus", "p_id")
    )


def near_side(tasks: pl.DataFrame, places: pl.DataFrame) -> Side:
    """Return the queues near the nucleus of a task.

    Args:
        tasks: Facts of tasks with their numbers.
        places: Result of :func:`near_places`.
    """
    kinds = tasks.select("t_near", nucleus="t_nucleus", q_version="t_version").unique()
    rows = kinds.join(places, on=["nucleus", "q_version"]).select(
        "t_near", "p_id", "x_nucleus", x_near=pl.lit(value=True)
    )
    return Side("t_near", "p_id", rows, {"x_nucleus": False, "x_near": False})


def with_near_any(queues: pl.DataFrame, places: pl.DataFrame, state: Tables) -> pl.DataFrame:
    """Add ``p_near_any``: the queue is near some site of role nucleus.

    Args:
        queues: Facts of queues with their numbers.
        places: Result of :func:`near_places`.
        state: The input tables.
    """
    nuclei = state["nuclei"].filter(pl.col("role").fill_null("nucleus") == "nucleus")
    near = places.join(nuclei, on="nucleus", how="semi").select("q_version", "p_id").unique()
    joined = queues.join(
        near.with_columns(p_near_any=True),
        on=["q_version", "p_id"],
        how="left",
        maintain_order="left",
    )
    return joined.with_columns(pl.col("p_near_any").fill_null(value=False))
