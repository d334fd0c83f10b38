"""Facts of production tasks, of queues and of nuclei, the candidates of tasks, and the tasks that end before any queue is looked at.

Of a task, prefix ``t_``, there is one row per decision, without nulls where none can be; of a queue ``q_`` are its own columns,
``p_`` those of its unified parent.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import polars as pl

from brokerlab.brokerage import network_weight as network
from brokerlab.brokerage.engine.lookup import Known
from brokerlab.brokerage.full_chain import PRODUCTION_TYPES, bare_modes
from brokerlab.brokerage.inputs import data
from brokerlab.brokerage.inputs.data import input_files
from brokerlab.brokerage.inputs.frames import at_every, one_row_per_key, run, yes
from brokerlab.brokerage.inputs.queues import up
from brokerlab.brokerage.rules import ProductionRules
from brokerlab.matching.catchall import parse_connectivity, read_catchalls
from brokerlab.units import MB

URGENT_TYPE = "urgent"
"""Processing type of express work."""
EVERY_JOB = ""
"""Tag of tasks that are counted with all jobs of a queue."""
PER_CORE_UNITS = ("MBPerCore", "MBPerCoreFixed")
DEFAULT_CPU_EFFICIENCY = 90
MERGE_MEMORY_MB = 2000
LEAST_OUTPUT_MB = 1500
URGENT, FIRST_CLASS, EXPRESS = 800, 900, 1000
IO_HEAVY_KBPS = 500
NUCLEUS_FACTOR_IO, NUCLEUS_FACTOR_URGENT = 4, 100


def number(name: str, null: float = 0) -> pl.Expr:
    """Return a column of numbers without nulls."""
    return pl.col(name).fill_null(null)


def text(name: str) -> pl.Expr:
    """Return a column of texts without nulls."""
    return pl.col(name).fill_null("")


def task_facts(
    tasks: pl.DataFrame, resource_queues: pl.DataFrame, *, rules: ProductionRules
) -> pl.DataFrame:
    """Return one row per decision: ``t`` (number of the row, i64), ``jeditaskid``, ``snapshot``, ``at`` and columns ``t_*``.

    Source: production-jobs.md 5 and 7.
    """
    frame = tasks.lazy().with_row_index("t").with_columns(
        pl.col("t").cast(pl.Int64), pl.col("snapshot").fill_null(0)
    )  # fmt: skip
    frame = frame.with_columns(**_kind(rules)).with_columns(**_count_by(resource_queues, rules))
    result = frame.select(
        "t", "jeditaskid", "snapshot", "at", pl.col("^t_.*$"), **_plain(), **memory(rules),
        **_disk(rules), **_time(), **_t1(rules),
    )  # fmt: skip
    return run(result)


def _kind(rules: ProductionRules) -> dict[str, pl.Expr]:
    prio, scout = number("currentpriority"), yes("use_scout")
    express = prio >= EXPRESS if rules.express_from_1000 else prio > EXPRESS
    kind = text("processingtype")
    urgent = kind.str.contains(URGENT_TYPE) if rules.urgent_is_pattern else kind == URGENT_TYPE
    event_service = pl.col("eventservice").is_in([1, 2]).fill_null(value=False)
    return {
        "t_prio": prio,
        "t_scout": scout,
        "t_merging": yes("is_merging"),
        "t_urgent": (prio >= URGENT) | scout,
        "t_first_class": (prio >= FIRST_CLASS) | scout,
        "t_express": urgent | express,
        "t_event_service": event_service,
        "t_es": event_service & ~yes("usejobcloning"),
        "t_nucleus": pl.when(text("nucleus") != "").then("nucleus"),
    }


def _count_by(resource_queues: pl.DataFrame, rules: ProductionRules) -> dict[str, pl.Expr]:
    """Which jobs are counted: all, or those of the task's share or resource work queue (switch ``counted_jobs``)."""
    own = pl.col("workqueue_id").is_in(resource_queues["workqueue_id"].implode())
    names = dict(resource_queues.select("workqueue_id", "queue_name").iter_rows())
    name = pl.col("workqueue_id").replace_strict(names, default=None, return_dtype=pl.String)
    by_queue = own.fill_null(value=False)
    tag = (
        pl.when(by_queue)
        .then(pl.format("workqueue:{}", "workqueue_id"))
        .otherwise(pl.concat_str(pl.lit("share:"), text("gshare")))
    )
    share_only = by_queue & pl.col("t_es") & pl.col("t_first_class")
    if rules.counted_jobs == "queue":
        tag, share_only = pl.lit(EVERY_JOB), pl.lit(value=False)
    return {
        "t_tag": tag,
        "t_queue_name": pl.when(by_queue).then(name).otherwise("gshare"),
        "t_counts_share_only": share_only,
    }


def _plain() -> dict[str, pl.Expr]:
    cores = (
        pl.when("t_merging").then(pl.coalesce("mergecorecount", "corecount")).otherwise("corecount")
    )
    network = text("ipconnectivity").str.split("#")  # the page's format has the stack behind it
    stack = pl.when(network.list.len() == 2).then(network.list.last()).otherwise(pl.lit(""))
    jumbo = text("usejumbo").is_in(["W", "R", "P", "L"])
    return plain_facts() | {
        "t_type": text("processingtype"),
        "t_cores": cores.fill_null(1),
        "t_merges_output": yes("mergeoutput"),
        "t_ip": network.list.first().fill_null("").replace("none", ""),
        "t_stack": pl.when(text("ipstack") == "").then(stack).otherwise("ipstack"),
        "t_asks_network": (text("ipconnectivity") != "") | (text("ipstack") != ""),
        "t_jumbo": jumbo,
        "t_ready_events": pl.col("n_ready_events"),
        "t_fullchain": pl.col("fullchain"),
        "t_onlytagsforfc": yes("onlytagsforfc"),
    }


def memory(rules: ProductionRules) -> dict[str, pl.Expr]:
    """Return ``t_ram`` [MB] (0: no check), whether it scales with cores, and ``t_base_ram`` [MB].

    ``ramcount`` is that of the task or of the chunk, the larger one; of merge jobs it is ``mergeramcount`` where set.

    Source: 002, ATLAS Production Job Brokerage: "(baseRamCount + ramCount × coreCount) × compensation".
    """
    ram, chunk, merge = number("ramcount"), number("chunk_ramcount"), number("mergeramcount")
    if not rules.memory_by_unit:
        own = pl.when(pl.col("t_merging") & (merge != 0)).then(merge).otherwise(ram)
        needed = pl.max_horizontal(own, chunk)
        per_core = pl.lit(value=True)
        return {"t_ram": needed, "t_ram_per_core": per_core, "t_base_ram": number("baseramcount")}
    merged = (
        pl.when(merge != 0).then(pl.max_horizontal(merge, chunk, MERGE_MEMORY_MB)).otherwise(chunk)
    )
    plain = pl.when(ram != 0).then(pl.max_horizontal(ram, chunk)).otherwise(chunk)
    return {
        "t_ram": pl.when("t_merging").then(merged).otherwise(plain),
        "t_ram_per_core": ~pl.col("t_merging") & text("ramcountunit").is_in(PER_CORE_UNITS),
        "t_base_ram": number("baseramcount"),
    }


def _disk(rules: ProductionRules) -> dict[str, pl.Expr]:
    """Return the expected disk usage [MB] in copy mode and in direct mode.

    Only the first term is 0 where the input is read in place: the page says so of its formula for analysis.

    Source: 002, ATLAS Production Job Brokerage: "inputDiskCount + max (1.5 GB, outDiskCount × nEvents or outDiskCount ×
        inputDiskCount) + max (300 MB, workDiskCount)".
    """
    inputs = number("atom_size_effective")
    if not rules.output_of_master:
        inputs = number("atom_size") / MB
    events = number("atom_nevents").cast(pl.Float64)
    amount = pl.when(data.scales_with_events()).then(events).otherwise(inputs)
    out = data.out_bytes() * amount
    work = data.work_bytes(adds=rules.workdisk_adds)
    scratch = pl.max_horizontal(out, pl.lit(float(LEAST_OUTPUT_MB * MB))) + work
    direct, copy = scratch / MB, (scratch + number("atom_size")) / MB
    if rules.whole_numbers:
        direct, copy = direct.floor(), copy.floor()
    return {
        "t_scratch_direct": direct,
        "t_scratch_copy": copy,
        "t_wdir_shared": (number("corecount", 1) <= 1)
        & (number("corecount", 1) >= 0)
        & ~pl.col("t_event_service"),
    }


def _time() -> dict[str, pl.Expr]:
    """The work of the smallest job (4.4), shared by the consumers of event service, and with dynamic numbers of events."""
    facts, seconds = time_facts(), data.cputime_s()
    need = facts["t_need"]
    consumers = pl.when(number("nesconsumers") != 0).then("nesconsumers").otherwise(1)
    shared = consumers * (number("maxattemptesjob", 2) + 1)
    most = pl.when(number("maxeventsperjob") != 0).then("maxeventsperjob")
    longest = pl.min_horizontal(number("max_consecutive_events"), most)
    dynamic = data.hs06() & (number("dynamicnumevents") != 0) & seconds.is_not_null()
    return facts | {
        "t_need": pl.when("t_es").then(need / shared).otherwise(need),
        "t_need_dyn": pl.when(dynamic).then(seconds * pl.col("dynamicnumevents")),
        "t_need_dyn_max": pl.when(dynamic).then(seconds * longest),
        "t_dynamic": dynamic,
    }


def time_facts() -> dict[str, pl.Expr]:
    """The work of a job of all events: HS06 s in HS06 mode, else s x cores; null where undefined. Of any kind of task."""
    unit, hs06 = text("cputimeunit"), data.hs06()
    by_events = data.cputime_s() * number("atom_nevents")
    by_size = pl.col("walltime") * number("atom_size_effective")
    nothing = (number("walltime") == 0) & (text("walltimeunit") == "") & (unit == "")
    return {
        "t_hs06": hs06,
        "t_need": pl.when(hs06).then(by_events).otherwise(by_size),
        "t_basewalltime": number("basewalltime"),
        "t_efficiency": number("cpuefficiency", DEFAULT_CPU_EFFICIENCY),
        "t_percent": pl.lit(100.0),  # a column, to be divided by: see pairs.solid
        "t_walltime_undefined": nothing | ((unit != "") & (number("cputime") == 0)),
    }


def plain_facts() -> dict[str, pl.Expr]:
    """What is read of any kind of task as it stands."""
    reads_lan = text("allowinputlan")
    return {
        "t_gshare": pl.col("gshare"),
        "t_label": text("prodsourcelabel"),
        "t_group": pl.col("workinggroup"),
        "t_resource_type": pl.col("resource_type"),
        "t_maxcores": number("maxcorecount"),
        "t_corecount": number("corecount"),
        "t_iointensity": number("iointensity"),
        "t_diskio": number("diskio"),
        "t_lan_only": (reads_lan == "only") & ~pl.col("t_merging"),
        "t_reads_lan": (reads_lan != "") & ~yes("uselocalio"),
        **{f"t_{name}": pl.col(name) for name in ("architecture", "transhome", "container_name")},
    }


def _t1(rules: ProductionRules) -> dict[str, pl.Expr]:
    """Return the preference for the nucleus, before what depends on candidates.

    Source: 002, ATLAS Production Job Brokerage: "if the task sets t1Weight=-1 and normal jobs are being generated."
    """
    weight = number("t1weight")
    only = weight < 0 if rules.any_negative_t1weight else weight == -1
    io_heavy = number("iointensity") > IO_HEAVY_KBPS
    plain = pl.when(io_heavy).then(NUCLEUS_FACTOR_IO).otherwise(1)
    urgent = pl.col("t_first_class") & ~pl.col("t_event_service")
    return {
        "t_nucleus_only": only & ~pl.col("t_merging"),
        "t_t1": pl.when(weight == 0).then(plain).otherwise(weight),
        "t_t1_urgent": pl.when(urgent).then(NUCLEUS_FACTOR_URGENT).otherwise(1),
    }


TRANSFERRING_LIMIT = 2000

_OWN = {
    "q_corecount": pl.col("corecount").fill_null(0),
    "q_corepower": pl.col("corepower").fill_null(0),
    "q_maxtime": pl.col("maxtime").fill_null(0),
    "q_mintime": pl.col("mintime").fill_null(0),
    "q_maxrss": pl.col("maxrss").fill_null(0),
    "q_minrss": pl.col("minrss").fill_null(0),
    "q_pledgedcpu": pl.col("pledgedcpu").fill_null(0),
    "q_jobseed": pl.col("jobseed").fill_null("std"),
    "q_ucore": (pl.col("capability") == "ucore").fill_null(value=False),
    "q_streams": ((pl.col("capability") == "ucore") & (pl.col("workflow") == "pull_ups")).fill_null(
        value=False
    ),
    "q_max_io_intensity": pl.col("max_io_intensity"),
    "q_site": pl.col("pandasite"),
    "q_fairsharepolicy": pl.col("fairsharepolicy"),
}
_OF_PARENT = {
    "p_corecount": pl.col("corecount").fill_null(0),
    "p_maxdiskio": pl.col("maxdiskio").fill_null(0),
    "p_maxwdir": pl.col("maxwdir").fill_null(0),
    "p_maxinputsize": pl.col("maxinputsize").fill_null(0),
    "p_direct_lan": pl.col("direct_access_lan").fill_null(value=False),
    "p_pledgedcpu": pl.col("pledgedcpu").fill_null(0),
    "p_transferring_limit": pl.when(pl.col("transferringlimit").fill_null(0) != 0)
    .then("transferringlimit")
    .otherwise(TRANSFERRING_LIMIT),
    "p_releases": pl.col("releases"),
}


def queue_facts(tables: dict[str, pl.DataFrame], *, rules: ProductionRules) -> pl.DataFrame:
    """Return one row per queue, or per (snapshot, queue) where the table has snapshots, sorted.

    ``q`` (number of the row, i64), ``snapshot`` (null: every instant), ``panda_queue``, ``parent``, columns ``q_*`` and ``p_*``.
    """
    stored = tables["queues"].with_columns(
        parent=pl.coalesce("unified_name", "panda_queue"),
        is_unified=pl.col("is_unified").fill_null(value=False),
    )
    queues = stored.lazy()
    online = ["online", "standby"] if rules.standby_online else ["online"]
    own = queues.select(
        "snapshot", "panda_queue", "parent", "is_unified", "type", "status", **_OWN,
        q_production=pl.col("type").fill_null("production").is_in(PRODUCTION_TYPES),
        q_named_test=pl.col("panda_queue").str.to_lowercase().str.contains("test", literal=True),
        q_online=pl.col("status").is_in(online).fill_null(value=False),
        q_online_only=(pl.col("status") == "online").fill_null(value=False),
    )  # fmt: skip
    own = own.join(_from_text(stored), on=["snapshot", "panda_queue"], nulls_equal=True)
    own = own.with_columns(
        q_production=pl.col("q_production") | pl.col("q_grandly_unified"),
        q_runs_analysis=(pl.col("type") == "unified").fill_null(value=False),
    )
    parents = queues.select("snapshot", pl.col("panda_queue").alias("parent"), **_OF_PARENT)
    frame = own.join(parents, on=["snapshot", "parent"], how="left", nulls_equal=True)
    # a pseudo-queue whose parent is not listed stands for itself
    alone = pl.col("p_corecount").is_null()
    itself = queues.select("snapshot", "panda_queue", **_OF_PARENT)
    frame = frame.join(
        itself, on=["snapshot", "panda_queue"], how="left", nulls_equal=True, suffix="_own"
    ).with_columns(
        pl.when(alone).then(f"{name}_own").otherwise(name).alias(name) for name in _OF_PARENT
    )
    frame = frame.drop(f"{name}_own" for name in _OF_PARENT)
    frame = frame.sort("snapshot", "panda_queue").with_row_index("q")
    result = frame.with_columns(
        pl.col("q").cast(pl.Int64),
        q_version=pl.col("snapshot").fill_null(0),
        q_candidate=pl.col("q_production") & ~pl.col("is_unified"),
        q_pseudo=pl.col("panda_queue") != pl.col("parent"),
    )
    return run(result)


def _from_text(queues: pl.DataFrame) -> pl.LazyFrame:
    """Parse catchall and wnconnectivity, each distinct text once."""
    texts = queues["wnconnectivity"].unique()
    parsed = {text: parse_connectivity(text) for text in texts}

    def of_network(part: str) -> pl.Expr:
        known = {text: getattr(each, part) for text, each in parsed.items()}
        value = pl.col("wnconnectivity").replace_strict(known, default=None, return_dtype=pl.String)
        return value.fill_null("")

    flags = read_catchalls(queues.select("catchall", "params")).lazy()
    columns = queues.lazy().select(
        "snapshot", "panda_queue", "catchall", "params", "wnconnectivity"
    )
    return columns.join(flags, on=["catchall", "params"], how="left", nulls_equal=True).select(
        "snapshot",
        "panda_queue",
        q_jumbo=pl.col("use_jumbo_jobs"),
        q_jumbo_events=pl.col("min_events_for_jumbo"),
        q_local_only=pl.col("use_only_local_data"),
        q_bare=pl.col("bare_mode"),
        q_grandly_unified=pl.col("grandly_unified"),
        q_network=of_network("network"),
        q_stack=of_network("ip_stack"),
    )


def at_instants(
    tables: Mapping[str, pl.DataFrame], state: Sequence[str], snapshots: pl.DataFrame
) -> dict[str, pl.DataFrame]:
    """Return the tables, those of a state, and ``queues`` with a history, with rows for every snapshot."""
    names = {*state, *(["queues"] if has_history(tables) else [])}
    return {
        name: at_every(frame, snapshots, name) if name in names else frame
        for name, frame in tables.items()
    }


def has_history(tables: Mapping[str, pl.DataFrame]) -> bool:
    """Tell whether queues change from instant to instant."""
    return bool(tables["queues"]["snapshot"].is_not_null().any())


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
        _resolve(named.explode("name"), queues, rules),
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


def _resolve(names: pl.DataFrame, queues: pl.DataFrame, rules: ProductionRules) -> pl.DataFrame:
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
        homes, others = _resolve(names, queues, rules), others.filter(~pl.col("parent_row"))
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
    nuclei = tables["nuclei"]
    lists = nuclei.lazy().select(panda_queue="queues", site="nucleus").explode("panda_queue")
    listed = lists.group_by("panda_queue").agg(pl.col("site").min())
    placed = (
        tables["queues"].lazy().join(listed, on="panda_queue", how="left", maintain_order="left")
    )
    placed = placed.with_columns(pandasite=pl.coalesce("pandasite", "site"))
    queues = run(placed.drop("site"))
    if rules.bare_mode_of == "any":  # as deployed it is in the table, of the queue loaded first
        modes = bare_modes(queues.drop("snapshot"), rules=rules).select("nucleus", said="bare_mode")
        nuclei = nuclei.join(modes, on="nucleus", how="left", maintain_order="left")
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
    down = state["storage_endpoints"].lazy().filter(~works)
    places = state["nuclei"].lazy().select("nucleus", ddm_endpoint_name="default_endpoint_out")
    lost = places.join(down, on="ddm_endpoint_name").select("snapshot", "nucleus")
    return run(lost.unique())


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
    every, links = queues.lazy(), state["queue_endpoints"].lazy()
    own = every.select("q_version", "parent", nucleus="q_site").with_columns(x_nucleus=True)
    inputs = links.filter(pl.col("direction") == "input").select(
        "ddm_endpoint_name", first="panda_queue"
    )
    outputs = links.filter((pl.col("direction") == "output") & pl.col("is_default")).select(
        "ddm_endpoint_name", parent="panda_queue"
    )
    first = (
        state["nuclei"]
        .lazy()
        .select("nucleus", panda_queue=pl.col("queues").list.first())
        .join(every.filter("q_production"), on="panda_queue")
        .select("q_version", "nucleus", first="parent", first_q="q", analysis="q_runs_analysis")
    )
    others = every.filter(pl.col("q_online_only") & pl.col("q_production"))
    sharing = (
        first.join(inputs, on="first")
        .join(outputs, on="ddm_endpoint_name")
        .join(others, on=["q_version", "parent"])
        .filter(~pl.col("analysis") | pl.col("q_runs_analysis"), pl.col("q") != pl.col("first_q"))
        .select("q_version", "parent", "nucleus", x_nucleus=False)
    )
    return run(
        pl.concat([own, sharing])
        .drop_nulls("nucleus")
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
    result = replace(
        known,
        given=given,
        tables={name: frame.lazy() for name, frame in state.items()},
        tasks=tasks.lazy(),
        places=queues.lazy(),
        lists=lists.select("t", "q"),
    )
    return result.with_made(
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
