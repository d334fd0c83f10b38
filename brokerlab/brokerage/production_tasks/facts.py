"""The facts that the checks compare, one row per task and nucleus that could take it (chapter section 2)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import polars as pl

from brokerlab.brokerage import full_chain, network_weight
from brokerlab.brokerage.production_tasks import availability, locality, storage, work
from brokerlab.brokerage.production_tasks.held import KEY, held, held_left, positioned
from brokerlab.brokerage.rules import ProductionRules

NUCLEUS = pl.col("role") == "nucleus"

Tables = Mapping[str, pl.DataFrame]


@dataclass(frozen=True)
class Input:
    """What is known of the tasks' input.

    Attributes:
        wanted: Datasets that count, ``jeditaskid, snapshot, datasetname``.
        listed: Their replicas.
        unreadable: The wanted datasets that no site can send.
    """

    wanted: pl.DataFrame
    listed: pl.DataFrame
    unreadable: pl.DataFrame


def input_of(tasks: pl.DataFrame, tables: Tables, rules: ProductionRules) -> Input:
    """Gather the input of tasks; see :mod:`availability`."""
    wanted = availability.counted_datasets(tasks, tables["datasets"])
    listed = availability.listed_replicas(
        wanted, tables["replicas"], tables["storage_endpoints"], rules
    )
    return Input(wanted, listed, availability.unreadable(wanted, listed))


def with_parents(tasks: pl.DataFrame, tables: Tables) -> pl.DataFrame:
    """Add ``parent_fullchain, parent_nucleus, parent_bare_mode`` and ``parent_unknown`` (F4) to tasks."""
    own = full_chain.has_parent(pl.col("jeditaskid"), pl.col("parent_tid"))
    parents = tables["parent_tasks"].rename(
        {"jeditaskid": "parent_tid", "fullchain": "parent_fullchain", "nucleus": "parent_nucleus"}
    )
    parents = parents.unique(["snapshot", "parent_tid"], keep="first", maintain_order=True)
    found = held_left(
        tasks, parents.with_columns(known=pl.lit(value=True)), ["parent_tid"], ["snapshot"]
    )
    modes = tables["nuclei"].select(
        "snapshot", parent_nucleus="nucleus", parent_bare_mode="bare_mode"
    )
    found = held_left(found, modes, ["parent_nucleus"], ["snapshot"])
    unknown = full_chain.is_full_chain(pl.col("fullchain")) & own & pl.col("known").is_null()
    columns = ("parent_fullchain", "parent_nucleus", "parent_bare_mode")
    return found.with_columns(
        *(pl.when(own).then(pl.col(name)).alias(name) for name in columns), parent_unknown=unknown
    ).drop("known")


def candidates(tasks: pl.DataFrame, nuclei: pl.DataFrame) -> pl.DataFrame:
    """Pair every task with the nuclei that could take it: all, and for full chain the bare satellites (F0).

    Returns:
        Columns of the task, those of the nucleus, ``position`` in the draw (satellites come last) and
        ``site``, whose endpoints count for the outputs.
    """
    columns = ["snapshot", "nucleus", "role", "state", "bare_mode", "secondary_nucleus", "position"]
    stored = positioned(nuclei).select(columns)
    tasks = tasks.drop("nucleus", "position")
    bare = stored.filter(~NUCLEUS.fill_null(value=False) & full_chain.is_bare(pl.col("bare_mode")))
    full = tasks.filter(full_chain.is_full_chain(pl.col("fullchain")))
    pairs = pl.concat(
        [
            held(tasks, stored.filter(NUCLEUS), keys=["snapshot"]),
            held(full, bare, keys=["snapshot"]),
        ]
    )
    order = [(~NUCLEUS).fill_null(value=True), pl.col("position"), pl.col("nucleus")]
    pairs = pairs.unique([*KEY, "nucleus"], keep="first", maintain_order=True).sort(*KEY, *order)
    chain = full_chain.is_full_chain(pl.col("fullchain"))
    return pairs.with_columns(
        position=pl.int_range(pl.len(), dtype=pl.Int64).over(KEY),
        site=pl.coalesce(pl.when(chain).then("secondary_nucleus"), "nucleus"),
    )


def queued_files(
    tasks: pl.DataFrame, nuclei: pl.DataFrame, matrix: pl.DataFrame, rules: ProductionRules
) -> pl.DataFrame:
    """Sum the files queued for every nucleus over all sources [files], as known in the last 60 minutes.

    Returns:
        ``snapshot, nucleus, queued_files``; nuclei without a recent value fall out.
    """
    instants = tasks.group_by("snapshot").agg(pl.col("at").min()).sort("snapshot")
    names = nuclei.select("nucleus").unique().with_columns(express=pl.lit(value=False))
    links = network_weight.links(matrix, instants=instants, nuclei=names, rules=rules)
    queued = network_weight.nucleus_total_queued(links)
    return queued.select("snapshot", "nucleus", queued_files="total_queued")


def hinted(pairs: pl.DataFrame, tables: Tables) -> pl.DataFrame:
    """Add ``n_hint_queues``, the queues of the nucleus that could run the task.

    Args:
        pairs: Of :func:`candidates`.
        tables: A queue belongs to the nucleus equal to its ``pandasite``; a nucleus's own list names queues that
            the table ``queues`` does not have.
    """
    sites = tables["queues"].select("snapshot", "panda_queue", nucleus="pandasite")
    listed = tables["nuclei"].select("snapshot", "nucleus", panda_queue="queues")
    listed = listed.explode("panda_queue").drop_nulls("panda_queue")
    listed = listed.join(sites, on="panda_queue", how="anti").select(sites.columns)
    owners = pl.concat([sites, listed]).drop_nulls("nucleus").unique()
    hints = held(pairs.select(KEY).unique(), tables["hint_queues"]).unique()
    named = held(hints, owners, ["panda_queue"], ["snapshot"])
    counts = named.group_by(*KEY, "nucleus").agg(n_hint_queues=pl.len().cast(pl.Int64))
    counted = pairs.join(counts, on=[*KEY, "nucleus"], how="left", maintain_order="left")
    return counted.with_columns(pl.col("n_hint_queues").fill_null(0))


def of_pairs(
    tasks: pl.DataFrame,
    tables: Tables,
    given: Input,
    rules: ProductionRules,
    *,
    asked: bool,
) -> pl.DataFrame:
    """Return the facts of every task and nucleus; the outputs' follow in :mod:`storage`.

    Args:
        tasks: To be brokered, with settings, ``has_input`` and ``off_period``.
        tables: Input tables.
        given: Their input.
        rules: Rule set.
        asked: ``hint_queues`` says which queues could run the tasks; else ``n_hint_queues`` is null.
    """
    endpoints = storage.endpoints_of(tables["nuclei"], tables["nucleus_endpoints"])
    pairs = candidates(with_parents(tasks, tables), tables["nuclei"])
    queued = queued_files(tasks, tables["nuclei"], tables["network_matrix"], rules)
    pairs = pairs.join(queued, on=["snapshot", "nucleus"], how="left")
    pairs = pairs.with_columns(pl.col("queued_files").fill_null(0.0))
    pairs = work.with_remaining_work(pairs, tables["remaining_work"])
    none = pl.lit(None, pl.Int64)
    pairs = hinted(pairs, tables) if asked else pairs.with_columns(n_hint_queues=none)
    inputs = endpoints.filter(pl.col("direction") == "input")
    pairs = availability.with_availability(
        pairs, given.listed, inputs.select("snapshot", "nucleus", "ddm_endpoint_name"), rules
    )
    away = (pl.col("nucleus") != pl.col("parent_nucleus")).fill_null(value=True)
    pairs = pairs.with_columns(
        demand_gb=storage.demand_gb(pairs["rw_all"]),
        disk_threshold_gb=pl.col("disk_threshold_tb") * storage.GB_PER_TB,
        full_chain_detail=full_chain.detail_where(rules, away=away),
    )
    return locality.with_needs(pairs).sort(*KEY, "position")


def outputs_of_pairs(pairs: pl.DataFrame, tables: Tables, rules: ProductionRules) -> pl.DataFrame:
    """Return where each output would go at each nucleus; see :func:`storage.destinations`."""
    return storage.destinations(
        pairs,
        tables["output_datasets"],
        storage.endpoints_of(tables["nuclei"], tables["nucleus_endpoints"]),
        tables["storage_endpoints"],
        rules,
    )
