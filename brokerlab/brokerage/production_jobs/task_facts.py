"""What the checks and weights read of a task: one row per decision, prefix ``t_``, no nulls where none can be."""

from __future__ import annotations

import polars as pl

from brokerlab.brokerage.inputs import units
from brokerlab.brokerage.inputs.frames import yes
from brokerlab.brokerage.rules import ProductionRules
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
    frame = tasks.with_row_index("t").with_columns(
        pl.col("t").cast(pl.Int64), pl.col("snapshot").fill_null(0)
    )
    frame = frame.with_columns(**_kind(rules))
    frame = frame.with_columns(**_counted_by(resource_queues, rules))
    return frame.select(
        "t", "jeditaskid", "snapshot", "at", pl.col("^t_.*$"), **_plain(), **memory(rules),
        **_disk(rules), **_time(), **_t1(rules),
    )  # fmt: skip


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


def _counted_by(resource_queues: pl.DataFrame, rules: ProductionRules) -> dict[str, pl.Expr]:
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
    amount = pl.when(units.scales_with_events()).then(events).otherwise(inputs)
    out = units.out_bytes() * amount
    work = units.work_bytes(adds=rules.workdisk_adds)
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
    facts, seconds = time_facts(), units.cputime_s()
    need = facts["t_need"]
    consumers = pl.when(number("nesconsumers") != 0).then("nesconsumers").otherwise(1)
    shared = consumers * (number("maxattemptesjob", 2) + 1)
    most = pl.when(number("maxeventsperjob") != 0).then("maxeventsperjob")
    longest = pl.min_horizontal(number("max_consecutive_events"), most)
    dynamic = units.hs06() & (number("dynamicnumevents") != 0) & seconds.is_not_null()
    return facts | {
        "t_need": pl.when("t_es").then(need / shared).otherwise(need),
        "t_need_dyn": pl.when(dynamic).then(seconds * pl.col("dynamicnumevents")),
        "t_need_dyn_max": pl.when(dynamic).then(seconds * longest),
        "t_dynamic": dynamic,
    }


def time_facts() -> dict[str, pl.Expr]:
    """The work of a job of all events: HS06 s in HS06 mode, else s x cores; null where undefined. Of any kind of task."""
    unit, hs06 = text("cputimeunit"), units.hs06()
    by_events = units.cputime_s() * number("atom_nevents")
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
