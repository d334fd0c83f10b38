"""Facts of user tasks and of queues, lists of queues, and the tasks that end before any queue is looked at."""

from __future__ import annotations

from dataclasses import replace

import polars as pl

from brokerlab.brokerage.analysis_jobs.locality import endpoint_facts, in_scope
from brokerlab.brokerage.analysis_jobs.settings import AnalysisRules
from brokerlab.brokerage.analysis_jobs.throttle import ended
from brokerlab.brokerage.engine.lookup import Known
from brokerlab.brokerage.inputs import data
from brokerlab.brokerage.inputs.data import input_files
from brokerlab.brokerage.inputs.frames import at_every, one_row_per_key, run, yes
from brokerlab.brokerage.production_jobs.facts import (
    PER_CORE_UNITS,
    at_instants,
    has_history,
    memory,
    number,
    plain_facts,
    text,
    time_facts,
)
from brokerlab.brokerage.production_jobs.facts import queue_facts as shared_facts
from brokerlab.brokerage.rules import AS_DEPLOYED, ProductionRules
from brokerlab.matching.catchall import has_flag
from brokerlab.matching.patterns import PatternError, compile_pattern
from brokerlab.units import GB, MB

CLASS_A = 1
"""Class of tasks without one."""


def task_facts(tasks: pl.DataFrame, *, rules: AnalysisRules) -> pl.DataFrame:
    """Return one row per decision: ``t`` (number of the row, i64), ``jeditaskid``, ``snapshot``, ``at`` and columns ``t_*``.

    Source: analysis-jobs.md 1 and 4.
    """
    frame = (
        tasks.lazy()
        .with_row_index("t")
        .with_columns(
            pl.col("t").cast(pl.Int64), t_merging=yes("is_merging"), ramcountunit="ramunit"
        )
    )
    plain = frame.select(
        "t", "jeditaskid", "snapshot", "at", "t_merging",
        **_plain(), **_memory(rules), **_disk(rules), **_time(),
    )  # fmt: skip
    return run(_with_base_ram(plain, rules))


def _plain() -> dict[str, pl.Expr]:
    return plain_facts() | {
        "t_prio": pl.col("currentpriority"),
        "t_type": pl.col("processingtype"),
        "t_queue_name": pl.col("gshare"),
        "t_user": pl.col("username"),
        "t_unit": pl.coalesce("workinggroup", "origusername", "username"),
        "t_registered": pl.coalesce("origusername", "username"),
        "t_cores": number("corecount", 1),
        "t_first_class": pl.lit(value=False),
        "t_single": pl.lit(value=False),
        "t_io_known": pl.col("iointensity").is_not_null(),
        "t_taskprio": number("taskpriority"),
        "t_frozen_s": (pl.col("at") - pl.col("frozentime")).dt.total_seconds(),
        "t_one": pl.lit(1.0),  # a column, to be divided by: see pairs.solid
        "t_scout": yes("chunk_usescout"),
        "t_avoids_vp": yes("avoidvp"),
        "t_uses_vp": ~(yes("is_merging") | yes("avoidvp") | yes("usescout") | yes("uselocalio")),
        "t_incomplete_allowed": yes("allowincompleteinds"),
        "t_site": pl.when(text("site") != "").then("site"),
        "t_cloud": pl.when(~text("cloud").is_in(["", "any"])).then("cloud"),
        "t_limited": yes("limitedsites"),
        "t_included": pl.col("includedsite"),
        "t_excluded": pl.col("excludedsite"),
        "t_nsites": number("nsitesperjob", 1),
        "t_n_jobs": number("n_jobs_to_submit"),
        "t_transuses": pl.col("transuses"),
    }


def _memory(rules: AnalysisRules) -> dict[str, pl.Expr]:
    """Return the memory a job needs, that of merge jobs by the page or by the code (4.8)."""
    if rules.merge_memory == "deployed":
        return memory(AS_DEPLOYED)
    return memory(ProductionRules(memory_by_unit=False)) | {
        "t_ram_per_core": text("ramcountunit").is_in(PER_CORE_UNITS)
    }


def _with_base_ram(frame: pl.LazyFrame, rules: AnalysisRules) -> pl.LazyFrame:
    """Count ``baseramcount`` where memory scales with cores and where it does not, or never (4.8)."""
    if not rules.use_base_ram:
        return frame.with_columns(t_base_ram=pl.lit(0, dtype=pl.Int64))
    flat = ~pl.col("t_ram_per_core") & (pl.col("t_ram") != 0)
    return frame.with_columns(t_ram=pl.col("t_ram") + pl.when(flat).then("t_base_ram").otherwise(0))


def _disk(rules: AnalysisRules) -> dict[str, pl.Expr]:
    """Expected disk [MB] in copy mode and in direct mode (4.9).

    Source:
        002, ATLAS Analysis Job Brokerage: "(0 or inputDiskCount) + outDiskCount × inputDiskCount + workDiskCount",
        "inputDiskCount is the total size of job input files"; docs/rules/analysis-jobs.md 4 for the units.
    """
    shared = {"t_wdir_shared": number("corecount") <= 1}
    if rules.scratch_need != "sum":
        return shared | _disk_of_code()
    input_ = number("atom_size") / MB
    direct = (data.out_bytes() * input_ + data.work_count_bytes().fill_null(0)) / MB
    return shared | {"t_scratch_copy": input_ + direct, "t_scratch_direct": direct}


def _disk_of_code() -> dict[str, pl.Expr]:
    out = data.out_bytes() * number("atom_size_effective")
    work = data.work_bytes(adds=True)
    atom = number("atom_size")
    fixed_mb = number("ngbperjob") * (GB // MB)
    copied = pl.max_horizontal(((out + work + atom) / MB).floor(), fixed_mb)
    direct = ((out + work) / MB).floor()
    by_size = (data.out_bytes() * fixed_mb + work) / MB
    has_size = (number("ngbperjob") != 0) & ~yes("uselocalio")
    return {
        "t_scratch_copy": pl.when("t_merging").then((2 * atom / MB).floor()).otherwise(copied),
        "t_scratch_direct": pl.when(has_size)
        .then(pl.max_horizontal(direct, by_size))
        .otherwise(direct),
    }


def _time() -> dict[str, pl.Expr]:
    """The work of the largest sub-chunk (4.11), and whether wall time is undefined (4.12)."""
    facts = time_facts()
    other_unit = (text("cputimeunit") != "") & ~data.hs06()
    return facts | {"t_walltime_undefined": facts["t_walltime_undefined"] | other_unit}


AUTO = "AUTO"
ANYTHING = "*"
"""Marks a pattern."""


def with_lists(
    tasks: pl.DataFrame, queues: pl.DataFrame, places: pl.DataFrame, *, rules: AnalysisRules
) -> pl.DataFrame:
    """Add what a task says about queues; ``places`` are the input endpoints that count, ``ddm_endpoint_name, parent``.

    Returns:
        The tasks with ``t_home`` (parent of the queue that ``site`` names; null: not pre-assigned), the lists in
        force, ``t_has_list`` (the task may use some queues only), ``t_named`` (it names them itself), ``t_auto`` and
        ``t_list_key``.

    Source:
        002, ATLAS Analysis Job Brokerage: "Exclude queues if excludedSite is specified and the queues are included in
        the list.", "Exclude queues if includedSite is specified and the queues are not included in the list.",
        "Pre-assigned queues are specified in includedSite or site."; docs/rules/analysis-jobs.md 3.
    """
    every = queues.lazy()
    names = pl.concat(
        [
            every.select("q_version", "panda_queue", t_home="parent"),
            every.select("q_version", panda_queue="parent", t_home="parent"),
        ]
    ).unique(["q_version", "panda_queue"])
    around = (
        places.lazy()
        .group_by(t_site="ddm_endpoint_name")
        .agg(around=pl.col("parent").unique().sort())
    )
    in_force = pl.col("t_limited") | (not rules.lists_need_limitedsites)
    known = (
        tasks.lazy()
        .join(
            names, left_on=["t_version", "t_site"], right_on=["q_version", "panda_queue"],
            how="left",
        )
        .join(around, on="t_site", how="left")
        .with_columns(
            t_included=pl.when(pl.col("t_home").is_null() & pl.col("around").is_not_null())
            .then("around")
            .otherwise(pl.when(in_force & (pl.col("t_included").list.len() > 0)).then("t_included")),
            t_excluded=pl.when(in_force).then("t_excluded"),
        )
        .drop("around")
        .sort("t")
    )  # fmt: skip
    included = pl.col("t_included")
    # an endpoint in `site` lists queues, but does not let the task go to those that rest
    named = included.is_not_null() & (pl.col("t_site").is_null() | pl.col("t_home").is_not_null())
    result = known.with_columns(
        t_named=named,
        t_preassigned=pl.col("t_home").is_not_null(),
        t_has_list=included.is_not_null(),
        t_auto=included.list.contains(AUTO).fill_null(value=False),
        t_list_key=pl.struct("t_included", "t_excluded").struct.json_encode(),
    )
    return run(result)


def name_parents(tasks: pl.DataFrame, queues: pl.DataFrame) -> pl.DataFrame:
    """Return which parents the lists of tasks name: ``t_list_key, parent, x_included, x_excluded``."""
    kinds = tasks.select("t_list_key", "t_included", "t_excluded").unique("t_list_key")
    parents = queues["parent"].unique().sort().to_list()
    rows = [
        (key, name, *result)
        for key, included, excluded in kinds.sort("t_list_key").iter_rows()
        for name in parents
        if any(result := (matches(name, included), matches(name, excluded)))
    ]
    schema = {
        "t_list_key": pl.String, "parent": pl.String, "x_included": pl.Boolean,
        "x_excluded": pl.Boolean,
    }  # fmt: skip
    return pl.DataFrame(rows, schema=schema, orient="row")


def pools(
    tasks: pl.DataFrame, queues: pl.DataFrame, *, rules: AnalysisRules
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return the tasks with ``t_pool``, and the parents that the check of locality looks at: ``t_pool, parent``.

    Candidates of the task's instant, the pre-assigned queue, and, where the lists come first, nothing that they rule
    out; what AUTO keeps in reserve is looked at.
    """
    kind = ["t_version", "t_home", *(["t_list_key"] if rules.lists_first else [])]
    facts = [*kind, "t_has_list", "t_auto"] if rules.lists_first else kind
    kinds = tasks.select(facts).unique(kind).sort(kind).with_row_index("t_pool")
    usable = queues.filter(~pl.col("is_unified")).group_by("q_version", "parent").agg(
        pl.col("q_candidate").any()
    )  # fmt: skip
    pool = kinds.join(usable, left_on="t_version", right_on="q_version").filter(
        pl.col("q_candidate") | (pl.col("parent") == pl.col("t_home")).fill_null(value=False)
    )
    if rules.lists_first:
        out = pl.col("x_excluded") | (
            pl.col("t_has_list") & ~pl.col("t_auto") & ~pl.col("x_included")
        )
        pool = (
            pool.join(name_parents(tasks, queues), on=["t_list_key", "parent"], how="left")
            .with_columns(pl.col("x_included", "x_excluded").fill_null(value=False))
            .filter(~out)
        )
    numbered = tasks.join(kinds.select(*kind, "t_pool"), on=kind, how="left", nulls_equal=True)
    return numbered.sort("t"), pool.select("t_pool", "parent")


def matches(name: str, patterns: list[str | None] | None) -> bool:
    """Tell whether a list of patterns names a queue.

    A pattern with ``*`` is a regular expression, ``*`` standing for anything, looked for anywhere in the name; another
    one has to be equal. Empty patterns, and what is no regular expression, name nothing.
    """
    return any(_matches(name, pattern) for pattern in patterns or () if pattern)


def _matches(name: str, pattern: str) -> bool:
    if ANYTHING not in pattern:
        return name == pattern
    try:
        return compile_pattern(pattern.replace(ANYTHING, ".*")).search(name)
    except PatternError:
        return False


TYPES = ("analysis", "unified")
HOSPITAL = "_HOSPITAL"


def queue_facts(tables: dict[str, pl.DataFrame], *, rules: AnalysisRules) -> pl.DataFrame:
    """Return the queue facts of production with the candidates of the analysis brokerage (P1), and some of its own.

    Source:
        002, ATLAS Analysis Job Brokerage: "Take all queues with type='analysis' or 'unified'";
        docs/rules/analysis-jobs.md 3.
    """
    facts = shared_facts(tables, rules=ProductionRules())
    own = tables["queues"].select("snapshot", "panda_queue", "cloud", "catchall")
    frame = facts.join(own, on=["snapshot", "panda_queue"], how="left", nulls_equal=True).sort("q")
    gpu = {text: has_flag(text, "gpu") for text in frame["catchall"].unique()}
    typed = pl.col("type").is_in(TYPES).fill_null(value=False)
    if rules.grandly_unified_counts:
        typed = typed | pl.col("q_grandly_unified")
    return frame.with_columns(
        q_gpu=pl.col("catchall").replace_strict(gpu, default=None, return_dtype=pl.Boolean),
        q_status=pl.col("status").fill_null(""),
        q_cloud=pl.col("cloud").fill_null(""),
        q_hospital=pl.col("parent").str.ends_with(HOSPITAL),
        q_candidate=typed & ~pl.col("is_unified"),
    ).drop("catchall", "cloud")


STATE_TABLES = (
    "site_activity", "job_stats", "user_job_stats", "user_totals", "to_run_rate", "worker_stats",
    "diskio_usage", "site_class", "task_class", "gshare_usage", "user_eval", "quota",
)  # fmt: skip
"""Tables whose rows without snapshot hold for every instant."""


def facts(known: Known) -> Known:
    """Return it with the facts of tasks and queues, and the candidates of tasks that are pre-assigned."""
    rules = known.rules
    instants = known.given["tasks"].with_columns(pl.col("snapshot").fill_null(0))
    given = one_row_per_key({**known.given, "tasks": instants})
    raw = given["tasks"]
    snapshots = raw.select("snapshot").unique().sort("snapshot")
    tables = at_instants(given, STATE_TABLES, snapshots)
    if "worker_node_gpu" in known.missing:
        del tables["worker_node_gpu"]  # nobody looked, which is not the same as none seen
    tasks = task_facts(raw, rules=rules).with_columns(
        t_version=pl.col("snapshot") if has_history(given) else pl.lit(0, dtype=pl.Int64)
    )
    queues = queue_facts({"queues": tables["queues"]}, rules=rules)
    inputs = in_scope(given["queue_endpoints"]).filter(pl.col("direction") == "input")
    readers = inputs.select("ddm_endpoint_name", parent="panda_queue")
    tasks = with_lists(tasks, queues, readers, rules=rules)
    tasks, pool = pools(tasks, queues, rules=rules)
    endpoints = endpoint_facts(
        given["queue_endpoints"], given["storage_endpoints"], snapshots, rules=rules
    )
    result = replace(
        known,
        given=given,
        tables={name: frame.lazy() for name, frame in tables.items()},
        tasks=tasks.lazy(),
        places=queues.lazy(),
        lists=_with_own_queue(tasks, queues),
    )
    return result.with_made(
        endpoints=at_every(endpoints, snapshots),
        input=input_files(given["tasks"], tables["datasets"], tables["files"]),
        pool=pool,
    )


def ends(known: Known) -> pl.LazyFrame:
    """Return ``t, throttle, outcome`` of tasks that end before any queue is looked at."""
    return ended(known.tasks, known.rules, known.missing)


def _with_own_queue(tasks: pl.DataFrame, queues: pl.DataFrame) -> pl.DataFrame:
    """Return the candidates of tasks that are pre-assigned to a queue that is no candidate of others (P2)."""
    theirs = tasks.lazy().select("t", "t_version", "t_home").drop_nulls("t_home")
    usable = queues.lazy().filter(~pl.col("is_unified"))
    own = theirs.join(
        usable.filter(~pl.col("q_candidate")).select("q", "q_version", "parent"),
        left_on=["t_version", "t_home"], right_on=["q_version", "parent"],
    ).select("t", "q")  # fmt: skip
    others = theirs.join(own.select("t").unique(), on="t", how="semi").join(
        usable.filter("q_candidate").select("q", "q_version"),
        left_on="t_version", right_on="q_version",
    )  # fmt: skip
    return run(pl.concat([own, others.select("t", "q")]).sort("t", "q"))
