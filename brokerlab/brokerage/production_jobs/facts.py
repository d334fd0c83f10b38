"""Facts of production tasks, of queues and of nuclei, the candidates of tasks, and the tasks that end before any queue is looked at."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import polars as pl

from brokerlab.brokerage import network_weight as network
from brokerlab.brokerage.engine.lookup import Known
from brokerlab.brokerage.engine.pairs import run
from brokerlab.brokerage.full_chain import bare_modes
from brokerlab.brokerage.inputs.data import input_files
from brokerlab.brokerage.inputs.endpoints import up
from brokerlab.brokerage.inputs.valid import one_row_per_key
from brokerlab.brokerage.production_jobs.queue_facts import queue_facts
from brokerlab.brokerage.production_jobs.state import at_instants, has_history
from brokerlab.brokerage.production_jobs.task_facts import task_facts
from brokerlab.brokerage.rules import ProductionRules

WAITING_H = 24
"""Merge jobs whose queues were skipped for so long lose their pre-assignment [h]."""
UNTOUCHED_H, FROZEN_H = 24, 6
"""A pre-merge dataset untouched, and a task frozen, for longer lose their pre-assignment [h]."""


def listed(
    tasks: pl.DataFrame, facts: pl.DataFrame, queues: pl.DataFrame, tables: dict[str, pl.DataFrame],
    *, rules: ProductionRules,
) -> pl.DataFrame:  # fmt: skip
    """Return the candidates of the tasks that are pre-assigned (switches ``parent_stays_in_list`` and ``merging_freed_by``).

    ``t, q``, and ``single`` (a single queue was named); a row without ``q`` for each of these tasks, which may have no other.
    """
    asked = facts.select("t", "t_version").hstack(
        tasks.select("site", "preassigned_site", *_TIMES, "at")
    )
    merging = pl.col("preassigned_site").fill_null("") != ""
    names = pl.col("site").str.split(",").list.eval(pl.element().str.strip_chars())
    named = asked.filter(~merging & (pl.col("site").fill_null("") != "")).select(
        "t", "t_version", name=names, single=names.list.len() == 1
    )
    bound = asked.filter(merging & ~_loose(rules))
    if not named.height and not bound.height:
        return pl.DataFrame(schema={"t": pl.Int64, "q": pl.Int64, "single": pl.Boolean})
    parts = [
        pl.concat([named.select("t", "single"), bound.select("t", single=False)]).select(
            "t", pl.lit(None, pl.Int64).alias("q"), "single"
        ),
        _resolved(named.explode("name"), queues, rules),
        _of_merging(bound, queues, tables, rules),
    ]
    return pl.concat(parts).unique().sort("t", "q")


_TIMES = ("master_creationtime", "master_modificationtime", "frozentime")


def _loose(rules: ProductionRules) -> pl.Expr:
    """Tell where the pre-assignment is ignored.

    How long the queues have been skipped is how long the task has been waiting: since ``frozentime``.

    Source: 002, ATLAS Production Job Brokerage: "Although merge jobs are pre-assigned to avoid transferring small pre-merged
        files, the pre-assignment is ignored if the relevant queues have been skipped for 24 hours."
    """
    at = pl.col("at")
    if rules.merging_freed_by == "waiting":
        waiting = (at - pl.col("frozentime")) >= pl.duration(hours=WAITING_H)
        return waiting.fill_null(value=False)
    changed = pl.col("master_modificationtime")
    untouched = (at - changed) > pl.duration(hours=UNTOUCHED_H)
    later = changed != pl.col("master_creationtime")
    frozen = (at - pl.col("frozentime")) > pl.duration(hours=FROZEN_H)
    return (untouched & later & frozen).fill_null(value=False)


def _resolved(names: pl.DataFrame, queues: pl.DataFrame, rules: ProductionRules) -> pl.DataFrame:
    """Return ``t, q, single`` of queues by name; pseudo-queues take the place of a unified one, or join it."""
    columns = ["q", "q_version", "panda_queue", "parent", "is_unified"]
    by_name = names.join(
        queues.select(columns),
        left_on=["t_version", "name"], right_on=["q_version", "panda_queue"],
    )  # fmt: skip
    if not rules.parent_stays_in_list:
        by_name = by_name.filter(~pl.col("is_unified"))
    children = queues.filter(~pl.col("is_unified") & pl.col("q_pseudo"))
    by_parent = names.join(
        children.select(columns), left_on=["t_version", "name"], right_on=["q_version", "parent"]
    )
    return pl.concat([by_name.select("t", "q", "single"), by_parent.select("t", "q", "single")])


def _of_merging(
    bound: pl.DataFrame, queues: pl.DataFrame, tables: dict[str, pl.DataFrame],
    rules: ProductionRules,
) -> pl.DataFrame:  # fmt: skip
    """Return the queue of a pre-merge dataset and the online queues that read its default output storage.

    Unified queues stay as they are, or pseudo-queues take their place (switch ``parent_stays_in_list``).
    """
    links = tables["queue_endpoints"]
    output = links.filter((pl.col("direction") == "output") & pl.col("is_default")).select(
        "ddm_endpoint_name", home="panda_queue"
    )
    readers = links.filter(pl.col("direction") == "input").select(
        "ddm_endpoint_name", parent="panda_queue"
    )
    shared = output.join(readers, on="ddm_endpoint_name").select("home", "parent").unique()
    homes = bound.select("t", "t_version", name="preassigned_site").join(
        queues.select("q", "q_version", "panda_queue", "parent", "q_production", "q_runs_analysis"),
        left_on=["t_version", "name"], right_on=["q_version", "panda_queue"],
    )  # fmt: skip
    others = (
        homes.filter("q_production")
        .select("t", "t_version", home="parent", analysis="q_runs_analysis")
        .join(shared, on="home")
        .join(
            queues.select(
                "q", "q_version", "parent", "q_production", "q_runs_analysis", "q_online_only",
                parent_row="is_unified",
            ),
            left_on=["t_version", "parent"], right_on=["q_version", "parent"],
        )
        .filter(
            pl.col("q_online_only") & pl.col("q_production")
            & (~pl.col("analysis") | pl.col("q_runs_analysis"))
        )
    )  # fmt: skip
    if not rules.parent_stays_in_list:
        names = bound.select("t", "t_version", name="preassigned_site", single=False)
        homes, others = _resolved(names, queues, rules), others.filter(~pl.col("parent_row"))
    both = pl.concat([homes.select("t", "q"), others.select("t", "q")])
    return both.with_columns(single=pl.lit(value=False))


Tables = Mapping[str, pl.DataFrame]


def with_sites(
    tables: dict[str, pl.DataFrame], *, rules: ProductionRules
) -> dict[str, pl.DataFrame]:
    """Fill null ``pandasite`` of queues that a nucleus lists, and null ``bare_mode`` of nuclei from their queues.

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
        nuclei=asked.select("snapshot", nucleus="t_nucleus", express="t_express").unique(),
        rules=rules,
    )


def near_places(queues: pl.DataFrame, state: Tables) -> pl.DataFrame:
    """Return the queues of each site, and those that share its storage (4.6): ``q_version, nucleus, parent, x_nucleus``.

    Sharing queues (not ``x_nucleus``) are online, their default output endpoint is among the inputs of the nucleus's first queue,
    and their type is compatible with that one's.
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


STATE_TABLES = (
    "site_activity", "job_stats", "job_stats_rt", "job_stats_workqueue", "job_stats_gshare_only",
    "transferring_by_nucleus", "core_stats", "diskio_usage", "worker_stats", "storage_endpoints", "live",
)  # fmt: skip
"""Tables whose rows without snapshot hold for every instant."""
NOWHERE = -1
"""Number of the nucleus of a task without one."""
UNKNOWN = -2
"""Number of a site that is not known."""


def facts(known: Known) -> Known:
    """Return it with the facts of tasks and queues, and the candidates of pre-assigned tasks; of a hint without nuclei."""
    rules, hint = known.rules, known.options["hint"]
    instants = known.given["tasks"].with_columns(pl.col("snapshot").fill_null(0))
    given = with_sites(one_row_per_key({**known.given, "tasks": instants}), rules=rules)
    raw, history = given["tasks"], has_history(given)
    state = at_instants(given, STATE_TABLES, raw.select("snapshot").unique().sort("snapshot"))
    if "worker_node_gpu" in known.missing:
        del state["worker_node_gpu"]  # nobody looked, which is not the same as none seen
    tasks = task_facts(raw, given["resource_work_queues"], rules=rules).with_columns(
        t_version=pl.col("snapshot") if history else pl.lit(0, dtype=pl.Int64),
        t_hint=pl.lit(value=hint),
        t_at_s=pl.col("at").dt.epoch("s"),
        t_nucleus=pl.lit(None, dtype=pl.String) if hint else pl.col("t_nucleus"),
    )
    queues = queue_facts(state, rules=rules).with_columns(q_eshigh=pl.col("q_jobseed") == "eshigh")
    lists = listed(raw, tasks, queues, given, rules=rules)
    if hint:
        lists = lists.clear()  # the queues asked about are all queues
    tasks, queues = _with_sites(_with_lists(tasks, lists), queues, given)
    found = replace(
        known,
        given=given,
        tables={name: frame.lazy() for name, frame in state.items()},
        tasks=tasks.lazy(),
        places=queues.lazy(),
        lists=lists.select("t", "q"),
    )
    return found.with_made(
        input=input_files(raw, state["datasets"], state["files"]),
        links=known_links(tasks, state, rules=rules),
        lost=unwritable(state, rules=rules),
        near=near_places(queues, state),
    )


def _with_lists(tasks: pl.DataFrame, lists: pl.DataFrame) -> pl.DataFrame:
    """Add what depends on pre-assignment: ``t_single``, ``t_listed`` and the T1 factor."""
    flags = lists.group_by("t").agg(t_single=pl.col("single").first())
    tasks = tasks.join(flags, on="t", how="left", maintain_order="left").with_columns(
        t_listed=pl.col("t_single").is_not_null(),
        t_single=pl.col("t_single").fill_null(value=False),
    )
    urgent = pl.when("t_listed").then(1).otherwise("t_t1_urgent")
    test_queue = pl.col("t_queue_name").is_in(["test", "validation"]).fill_null(value=False)
    return tasks.with_columns(
        t_t1_factor=pl.max_horizontal("t_t1", urgent),
        t_policy_applies=~test_queue | (pl.col("t_single") & (pl.col("t_label") != "managed")),
        t_pilot_exempt=pl.col("t_label").str.contains("test", literal=True) & ~pl.col("t_express"),
    )


def _with_sites(
    tasks: pl.DataFrame, queues: pl.DataFrame, tables: dict[str, pl.DataFrame]
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Number the sites of nuclei, queues and storage: ``t_nucleus_id``, ``q_site_id``, ``p_storage_id``; and ``p_storage``."""
    storage = tables["queue_storage_site"].select(parent="panda_queue", p_storage="site_name")
    queues = queues.join(storage, on="parent", how="left", maintain_order="left")
    places = (
        queues["q_site"], queues["p_storage"], tasks["t_nucleus"], tables["nuclei"]["nucleus"],
    )  # fmt: skip
    names = pl.concat([place.rename("site") for place in places]).drop_nulls().unique().sort()
    sites = {site: number for number, site in enumerate(names)}

    def number(site: str, otherwise: int) -> pl.Expr:
        return pl.col(site).replace_strict(sites, default=otherwise, return_dtype=pl.Int64)

    return (
        tasks.with_columns(t_nucleus_id=number("t_nucleus", NOWHERE)),
        queues.with_columns(
            q_site_id=number("q_site", UNKNOWN), p_storage_id=number("p_storage", UNKNOWN)
        ),
    )


def ends(known: Known) -> pl.LazyFrame:
    """Return ``t, outcome, detail`` of tasks that fail before any queue is looked at.

    Of tasks whose input is complete nowhere only with the switch ``code_only_checks``: the page does not ask.
    """
    tasks = run(known.tasks)
    sites = known.given["nuclei"]["nucleus"].implode()
    lost = pl.col("t_nucleus").is_not_null() & ~pl.col("t_nucleus").is_in(sites)
    unknown = tasks.filter(lost & (not known.options["hint"])).select(
        "t", outcome=pl.lit("unknown_nucleus"),
        detail=pl.format("nucleus {} is neither nucleus nor satellite", "t_nucleus"),
    )  # fmt: skip
    waiting = known.made["complete"].tasks
    waiting = waiting if known.rules.code_only_checks else waiting.clear()
    incomplete = (
        tasks.select("t", "jeditaskid", "snapshot")
        .join(waiting.drop_nulls("outcome"), on=["jeditaskid", "snapshot"])
        .select("t", "outcome", "detail")
    )
    return pl.concat([unknown, incomplete.join(unknown, on="t", how="anti")]).lazy()
