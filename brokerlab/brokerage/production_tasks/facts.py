"""Facts of production tasks and of nuclei, and those that are looked up (production-tasks.md 1 and 2)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial

import polars as pl

from brokerlab.brokerage import full_chain, network_weight
from brokerlab.brokerage.engine.lookup import Known, Lookup, made_rows
from brokerlab.brokerage.engine.pairs import Facts, matched, positions
from brokerlab.brokerage.engine.rule import SETTING
from brokerlab.brokerage.inputs.frames import (
    KEY,
    first_valid_for,
    one_row_per_key,
    run,
    valid_for,
    with_positions,
)
from brokerlab.brokerage.production_tasks import storage
from brokerlab.brokerage.production_tasks.ranking import THRESHOLD, output_checks, with_draws
from brokerlab.brokerage.rules import ProductionRules
from brokerlab.errors import DataError

SCHEMA = {"jeditaskid": pl.Int64, "snapshot": pl.Int64, "subject": pl.String, "finding": pl.String}


def gather(
    tasks: pl.DataFrame, tables: Mapping[str, pl.DataFrame], unreadable: pl.DataFrame
) -> pl.DataFrame:
    """Return the findings, sorted, each once: ``jeditaskid, snapshot, subject, finding``; null keys for what concerns all tasks."""
    stranger = pl.col("given_nucleus").is_not_null() & pl.col("assigned").is_null()
    parts = [
        _findings(
            tasks.filter(stranger).with_columns(nucleus="given_nucleus"),
            "nucleus",
            "names no nucleus or satellite: one is chosen",
        ),
        _findings(unreadable, "datasetname", "no complete copy that can be read over WAN"),
        *_of_tokens(tasks, tables["output_datasets"]),
    ]
    nobody = [pl.lit(None, pl.Int64).alias(key) for key in KEY]  # said once, not for every task
    mixed = tables["nuclei"].filter("mixed").with_columns(nobody)
    parts.append(_findings(mixed, "nucleus", "queues of the site do not agree on bareNucleus"))
    no_nuclei = tasks.join(
        valid_for(tasks.select(KEY), tables["nuclei"], keys=["snapshot"]), on=KEY, how="anti"
    )
    parts.append(
        _findings(no_nuclei.with_columns(at=pl.lit("nuclei")), "at", "none at this snapshot")
    )
    return pl.concat(parts).unique().sort(*SCHEMA)


def _findings(rows: pl.DataFrame, subject: str, finding: str) -> pl.DataFrame:
    return rows.select(*KEY, subject=pl.col(subject), finding=pl.lit(finding))


def _of_tokens(tasks: pl.DataFrame, outputs: pl.DataFrame) -> list[pl.DataFrame]:
    rows = valid_for(tasks.select(KEY), outputs).with_columns(
        dataset=pl.coalesce("datasetname", pl.col("datasetid").cast(pl.String), pl.lit("output")),
        pattern=storage.pattern_of(pl.col("storagetoken")),
    )
    null = rows.filter(pl.col("storagetoken").is_null())
    parts = [_findings(null, "dataset", "storagetoken is null: goes to the first endpoint")]
    for pattern in rows["pattern"].unique().sort():
        refusal = storage.refusal(pattern)
        if refusal is not None:
            same = rows.filter(pl.col("pattern") == pattern)
            parts.append(_findings(same, "dataset", f"taken for a name or type only: {refusal}"))
    return parts


NUCLEUS = pl.col("role") == "nucleus"
WORK = ("snapshot", "workqueue_name", "currentpriority")
_SHOWN = 5
_NUCLEI = ("nucleus", "role", "state", "bare_mode", "secondary_nucleus", "position")

Tables = Mapping[str, pl.DataFrame]


def facts(known: Known) -> Known:
    """Return it with the facts of tasks and nuclei, and the candidates of tasks of a full chain."""
    rules, given = known.rules, dict(known.given)
    # a task that stands twice is refused
    tables = {"tasks": given.pop("tasks"), **one_row_per_key(given)}
    tables["nuclei"] = full_chain.with_bare_modes(tables["nuclei"], tables["queues"], rules=rules)
    tasks = with_draws(_number_tasks(tables, rules), tables["draws"], known.options["seed"])
    unassigned = tasks.filter(pl.col("assigned").is_null())
    wanted = storage.counted_datasets(unassigned, tables["datasets"], rules)
    listed = storage.listed_replicas(wanted, tables["replicas"], tables["storage_endpoints"], rules)
    unreadable = storage.unreadable(wanted, listed)
    if known.missing & {"replicas", "storage_endpoints"}:
        unreadable = unreadable.clear()  # where the input is, or can be read, is unknown
    tasks = _with_input(with_parents(tasks, tables), wanted, listed, unreadable, rules)
    queues = nucleus_facts(tasks, tables, rules)
    lists = _with_satellites(tasks, queues, rules)
    pairs = _pair(tasks, queues, lists, rules)
    endpoints = storage.endpoints_of(tables["nuclei"], tables["nucleus_endpoints"])
    outputs = storage.outputs_asked(tasks, tables["output_datasets"], rules)
    result = replace(
        known,
        given=tables,
        tables={name: frame.lazy() for name, frame in tables.items()},
        tasks=tasks.lazy(),
        places=queues.lazy(),
        lists=lists,
    )
    return result.with_made(
        there=storage.at_nuclei(
            listed,
            endpoints.filter(pl.col("direction") == "input").select(
                "snapshot", "nucleus", "ddm_endpoint_name"
            ),
        ),
        outputs=storage.destinations(pairs, outputs, endpoints, tables["storage_endpoints"], rules),
        findings=gather(tasks, tables, unreadable),
    )


def ends(known: Known) -> pl.LazyFrame:
    """Return ``t, outcome`` of tasks that have a nucleus or whose input nobody can send."""
    return known.tasks.drop_nulls("ended").select("t", outcome="ended")


def lookups(rules: ProductionRules) -> tuple[Lookup, ...]:  # noqa: ARG001 - of one form
    """Return the facts that are looked up."""
    place = ("nucleus",)
    there = dict.fromkeys(storage.AVAILABLE, 0)
    return (
        Lookup(task=WORK, place=place, facts={"rw_prio": 0.0}, rows=_work),
        Lookup(task=KEY, place=place, facts={"n_hint_queues": _no_hint}, rows=_hints),
        Lookup(task=KEY, place=place, facts=there, rows=partial(made_rows, "there")),
        Lookup(
            task=("t",), place=place, facts=storage.MISSING, rows=_outputs, keys=(THRESHOLD,)
        ),
    )  # fmt: skip


def _number_tasks(tables: Tables, rules: ProductionRules) -> pl.DataFrame:
    """Return the tasks with ``t``, ``turn`` (their order in the cycle), and ``assigned``, the nucleus that they have."""
    tasks = with_positions(tables["tasks"]).with_columns(
        pl.col("snapshot").fill_null(0), workqueue_name=pl.coalesce("workqueue_name", "gshare")
    )
    twice = tasks.filter(pl.struct(KEY).is_duplicated()).select(KEY).unique().sort(KEY)
    if twice.height:
        shown = ", ".join(str(row) for row in twice.head(_SHOWN).rows())
        raise DataError(
            f"tasks: {twice.height} tasks stand twice at one snapshot, (jeditaskid, snapshot) {shown}: keep one"
        )
    named = valid_for(
        tasks.select(*KEY, "nucleus").drop_nulls("nucleus"),
        tables["nuclei"].drop_nulls("role").select("snapshot", "nucleus"),
        ["nucleus"],
        ["snapshot"],
    ).rename({"nucleus": "assigned"})
    tasks = tasks.join(named.unique(), on=KEY, how="left").rename({"nucleus": "given_nucleus"})
    number = pl.int_range(pl.len(), dtype=pl.Int64)
    tasks = tasks.sort("snapshot", "position", "jeditaskid").drop("position")
    tasks = tasks.with_columns(turn=number).sort(KEY).with_columns(t=number)
    return tasks.with_columns(
        t_version=pl.col("snapshot"),
        t_gshare=pl.col("gshare" if rules.threshold_of == "gshare" else "workqueue_name"),
        t_label=pl.lit(None, pl.String),
    )


def with_parents(tasks: pl.DataFrame, tables: Tables) -> pl.DataFrame:
    """Add ``parent_fullchain, parent_nucleus, parent_bare_mode`` and ``parent_unknown`` (F4) to tasks."""
    own = (pl.col("parent_tid") != pl.col("jeditaskid")).fill_null(value=False)
    parents = tables["parent_tasks"].rename(
        {"jeditaskid": "parent_tid", "fullchain": "parent_fullchain", "nucleus": "parent_nucleus"}
    )
    parents = parents.unique(["snapshot", "parent_tid"], keep="first", maintain_order=True)
    result = first_valid_for(
        tasks, parents.with_columns(known=pl.lit(value=True)), ["parent_tid"], ["snapshot"]
    )
    modes = tables["nuclei"].select(
        "snapshot", parent_nucleus="nucleus", parent_bare_mode="bare_mode"
    )
    result = first_valid_for(result, modes, ["parent_nucleus"], ["snapshot"])
    unknown = full_chain.is_full_chain(pl.col("fullchain")) & own & pl.col("known").is_null()
    columns = ("parent_fullchain", "parent_nucleus", "parent_bare_mode")
    return result.with_columns(
        *(pl.when(own).then(pl.col(name)).alias(name) for name in columns), parent_unknown=unknown
    ).drop("known")


def _with_input(
    tasks: pl.DataFrame,
    wanted: pl.DataFrame,
    listed: pl.DataFrame,
    unreadable: pl.DataFrame,
    rules: ProductionRules,
) -> pl.DataFrame:
    """Add what is known of the input of tasks, and ``ended``: how those end whose nuclei are not looked at."""
    lost = unreadable.select(KEY).unique().with_columns(unreadable=pl.lit(value=True))
    asks = wanted.select(KEY).unique().with_columns(has_input=pl.lit(value=True))
    known = tasks.lazy()
    for part in (lost, asks, storage.totals(listed, rules)):
        known = known.join(part.lazy(), on=KEY, how="left", maintain_order="left")
    ended = pl.when(pl.col("assigned").is_not_null()).then(pl.lit("nucleus"))
    waits = pl.col("unreadable") & rules.unreadable_input_waits
    result = known.with_columns(
        pl.col("has_input").fill_null(value=False),
        pl.col(storage.TOTALS).fill_null(0),
        ended=ended.when(waits).then(pl.lit("input_not_readable")),
    )
    return run(result.drop("unreadable"))


def queued_files(
    tasks: pl.DataFrame, nuclei: pl.DataFrame, matrix: pl.DataFrame, rules: ProductionRules
) -> pl.DataFrame:
    """Sum the files queued for every nucleus over all sources [files], as known in the last 60 minutes.

    ``snapshot, nucleus, queued_files``; nuclei without a recent value fall out.
    """
    instants = tasks.group_by("snapshot").agg(pl.col("at").min()).sort("snapshot")
    names = nuclei.select("nucleus").unique().with_columns(express=pl.lit(value=False))
    links = network_weight.links(matrix, instants=instants, nuclei=names, rules=rules)
    queued = network_weight.nucleus_total_queued(links)
    return queued.select("snapshot", "nucleus", queued_files="total_queued")


def nucleus_facts(tasks: pl.DataFrame, tables: Tables, rules: ProductionRules) -> pl.DataFrame:
    """Return every nucleus, and every bare satellite (F0), at every instant of brokerage, sorted by instant and name.

    ``q, q_version`` (the instant), ``q_candidate`` (a nucleus), the columns of the nucleus, ``position`` in the draw
    (satellites come last), ``queued_files``, ``rw_all`` [HS06 s] and ``demand_gb``.
    """
    instants = tasks.lazy().select("snapshot").unique().sort("snapshot")
    stored = with_positions(tables["nuclei"]).select("snapshot", *_NUCLEI)
    bare = full_chain.is_bare(pl.col("bare_mode"))
    is_nucleus = NUCLEUS.fill_null(value=False)
    rows = valid_for(instants, stored.filter(is_nucleus | bare), keys=["snapshot"])
    rows = rows.unique(["snapshot", "nucleus"], keep="first", maintain_order=True)
    rows = rows.sort("snapshot", ~is_nucleus, "position", "nucleus")
    queued = queued_files(tasks, tables["nuclei"], tables["network_matrix"], rules)
    rows = rows.join(queued.lazy(), on=["snapshot", "nucleus"], how="left", maintain_order="left")
    number = pl.int_range(pl.len(), dtype=pl.Int64)
    rows = rows.with_columns(
        pl.col("queued_files").fill_null(0.0), position=number.over("snapshot")
    )
    worked = storage.with_all_work(run(rows), tables["remaining_work"]).sort("snapshot", "nucleus")
    demand = storage.demand_gb(worked["rw_all"], rules)
    return worked.with_columns(q=number, q_candidate=is_nucleus, demand_gb=demand).rename(
        {"snapshot": "q_version"}
    )


def _with_satellites(
    tasks: pl.DataFrame, queues: pl.DataFrame, rules: ProductionRules
) -> pl.DataFrame:
    """Return the nuclei and bare satellites that are open to full-chain tasks, ``t, q``; switch ``bare_satellites``."""
    queues = queues if rules.bare_satellites else queues.filter("q_candidate")
    chained = tasks.filter(full_chain.is_full_chain(pl.col("fullchain")), pl.col("ended").is_null())
    every = chained.select("t", q_version="t_version").join(queues, on="q_version")
    return every.select("t", "q").sort("t", "q")


def _pair(
    tasks: pl.DataFrame, queues: pl.DataFrame, lists: pl.DataFrame, rules: ProductionRules
) -> pl.DataFrame:
    """Return what facts of pairs are looked up by: keys of task and nucleus, and ``site``, whose endpoints count for outputs.

    Switch ``secondary_lends``.
    """
    facts = Facts(tasks.filter(pl.col("ended").is_null()), queues, lists, ())
    pairs = matched(facts)
    of_task = tasks.select(*KEY, "fullchain")[pl.Series(positions(tasks["t"], pairs["t"]))]
    of_nucleus = queues.select("nucleus", "secondary_nucleus", "demand_gb")
    rows = [pairs, of_task, of_nucleus[pl.Series(positions(queues["q"], pairs["q"]))]]
    chain = full_chain.is_full_chain(pl.col("fullchain")) & rules.secondary_lends
    lender = pl.when(chain).then("secondary_nucleus")
    return pl.concat(rows, how="horizontal").with_columns(site=pl.coalesce(lender, "nucleus"))


def _work(known: Known) -> pl.LazyFrame:
    """Return ``rw_prio``, the work left of the task's work queue at its priority and above [HS06 s]."""
    asked = known.tasks.select(WORK).unique().sort(pl.all()).collect()
    asked = asked.with_columns(t_work=pl.int_range(pl.len(), dtype=pl.Int64))
    rows = storage.work_of_queues(asked, known.given["remaining_work"])
    return rows.join(asked, on="t_work").lazy()


def asked_for_queues(known: Known) -> bool:
    """Tell whether ``hint_queues`` says which queues could run the tasks."""
    return known.options["hint_queues"] is not None and bool(known.rules.hint_brokerage)


def _no_hint(known: Known) -> int | None:
    return 0 if asked_for_queues(known) else None


def _hints(known: Known) -> pl.LazyFrame:
    """Return ``n_hint_queues``, the queues of the nucleus that could run the task; null if nobody was asked.

    A queue belongs to the nucleus equal to its ``pandasite``; a nucleus's own list names queues that the table
    ``queues`` does not have.
    """
    tables = known.given
    sites = tables["queues"].select("snapshot", "panda_queue", nucleus="pandasite")
    listed = tables["nuclei"].select("snapshot", "nucleus", panda_queue="queues")
    listed = listed.explode("panda_queue").drop_nulls("panda_queue")
    listed = listed.join(sites, on="panda_queue", how="anti").select(sites.columns)
    owners = pl.concat([sites, listed]).drop_nulls("nucleus").unique()
    tasks = known.tasks.filter(pl.col("ended").is_null()).select(KEY).collect()
    hints = valid_for(tasks, tables["hint_queues"]).unique()
    named = valid_for(hints, owners, ["panda_queue"], ["snapshot"])
    counts = named.group_by(*KEY, "nucleus").agg(n_hint_queues=pl.len().cast(pl.Int64))
    return counts.lazy()


def _outputs(known: Known) -> pl.LazyFrame:
    threshold = known.tasks.select("t", f"{SETTING}{THRESHOLD}").collect()
    checks = output_checks(known.rules)
    return storage.deciding(known.made["outputs"], checks, threshold).lazy()
