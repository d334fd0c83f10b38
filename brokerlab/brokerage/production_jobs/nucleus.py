"""What is known of a task's nucleus and of the links to it."""

from __future__ import annotations

from collections.abc import Mapping

import polars as pl

from brokerlab.brokerage import network_weight as network
from brokerlab.brokerage.full_chain import bare_modes
from brokerlab.brokerage.inputs.endpoints import up
from brokerlab.brokerage.rules import ProductionRules

Tables = Mapping[str, pl.DataFrame]


def with_sites(
    tables: dict[str, pl.DataFrame], *, rules: ProductionRules
) -> dict[str, pl.DataFrame]:
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
    return network.links(
        state["network_matrix"],
        instants=tasks.select("snapshot", "at").unique(
            "snapshot", keep="first", maintain_order=True
        ),
        nuclei=asked.select("snapshot", nucleus="t_nucleus").unique(),
        rules=rules,
    )


def near_places(queues: pl.DataFrame, state: Tables) -> pl.DataFrame:
    """Return the queues of each site, and those that share its storage (4.6).

    Sharing queues are online, their default output endpoint is among the inputs of the nucleus's first queue, and
    their type is compatible with that one's.

    Returns:
        ``q_version, nucleus, parent, x_nucleus`` (of the site itself; else sharing).
    """
    own = queues.select("q_version", "parent", nucleus="q_site").with_columns(x_nucleus=True)
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
        .select("q_version", "parent", "nucleus", x_nucleus=False)
    )
    return (
        pl.concat([own, sharing])
        .group_by("q_version", "nucleus", "parent")
        .agg(pl.col("x_nucleus").any())
        .sort("q_version", "nucleus", "parent")
    )
