"""Facts that the production job brokerage looks up: what stands for long, and what may change from cycle to cycle.

What may change is made of counts of jobs, pilots and workers, of locks and traffic, and lazy until all of it is collected at
once: these are many small steps.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, TypeAlias

import polars as pl

from brokerlab.brokerage import network_weight as network
from brokerlab.brokerage.engine.lookup import Known, Lookup, Made, made_rows
from brokerlab.brokerage.inputs.data import WITH_TAPE, completeness, input_at_queues, input_totals
from brokerlab.brokerage.inputs.frames import KEY, run, valid_for
from brokerlab.brokerage.inputs.queues import complete_here, endpoint_states, slot_counts
from brokerlab.brokerage.production_jobs.checks import REJECTED, UNRESOLVED
from brokerlab.brokerage.production_jobs.facts import EVERY_JOB
from brokerlab.brokerage.production_jobs.settings import COMPLETENESS_KEYS, NETWORK_KEYS
from brokerlab.brokerage.rules import ProductionRules
from brokerlab.matching.software_pairs import software_pairs
from brokerlab.matching.zero_share import TASK_COLUMNS, decide_pairs

PARENT = ("parent",)
SLOTS = ("snapshot", "t_queue_name", "t_resource_type")
POLICY = ("t_type", "t_group", "t_gshare", "t_prio", "t_merging")
"""What a policy of zero share looks at."""
SOFTWARE = ("t_architecture", "t_transhome", "t_container_name", "t_onlytagsforfc")
"""What a request for software and hardware consists of."""
OFFER = ("parent", "p_releases")
LINK = ("snapshot", "t_nucleus", "t_express")
INPUT_HERE = dict.fromkeys(("x_avail", "x_navail", "x_avail_tape", "x_navail_tape"), 0)


def of_nucleus() -> tuple[Lookup, ...]:
    """Return what is known of the nucleus of a task at the instant, and of the links and queues near it."""
    links = {"l_known": False, "l_closeness": None, "l_queued": 0.0, "l_weight": _unknown_weight}
    nucleus, yes = ("t_nucleus",), pl.lit(value=True)
    bare = partial(made_rows, "nuclei", t_nucleus="nucleus", t_bare="bare_mode")
    lost = partial(
        made_rows,
        "lost",
        snapshot="snapshot",
        t_nucleus="nucleus",
        t_nucleus_unwritable=yes,
    )
    near = partial(
        made_rows,
        "near",
        t_version="q_version",
        t_nucleus="nucleus",
        parent="parent",
        x_nucleus="x_nucleus",
        x_near=yes,
    )
    return (
        Lookup(task=nucleus, facts={"t_bare": None}, rows=bare),
        Lookup(task=LINK[:2], facts={"t_nucleus_unwritable": False}, rows=lost),
        Lookup(task=LINK, facts={"t_nucleus_queued": 0.0}, rows=_queued),
        Lookup(task=LINK, place=("p_storage",), facts=links, rows=_links, keys=NETWORK_KEYS),
        Lookup(place=("q_version", "parent"), facts={"p_near_any": False}, rows=_near_any),
        Lookup(
            task=("t_version", "t_nucleus"), place=PARENT,
            facts={"x_nucleus": False, "x_near": False}, rows=near,
        ),
    )  # fmt: skip


def of_places(rules: ProductionRules) -> tuple[Lookup, ...]:
    """Return what is known of storage, policies, software and slots."""
    up = ("s_read_lan", "s_write_lan", "s_write_wan", "s_read_wan")
    storage = dict.fromkeys(up, not rules.datadisk_only) | {"s_space": None}
    storage |= {"s_input_disk": False, "s_output_disk": False}
    software: dict[str, Any] = {"x_software": 0, "x_software_reason": None}
    software |= {"x_platform": None, "x_preference": 1.0}
    return (
        Lookup(task=("snapshot",), place=PARENT, facts=storage, rows=_storage),
        policies(),
        Lookup(task=SOFTWARE, place=OFFER, facts=software, rows=_software),
        slots(SLOTS),
    )


def of_input() -> tuple[Lookup, ...]:
    """Return where the input of a task is."""
    whole = {"t_remote_source": True, "t_no_complete": True}
    return (
        totals(),
        at_parents(),
        Lookup(task=KEY, facts=whole, rows=_whole, keys=COMPLETENESS_KEYS),
        Lookup(
            task=KEY, place=PARENT, facts={"x_complete": False}, rows=_complete,
            keys=COMPLETENESS_KEYS,
        ),
    )  # fmt: skip


def policies() -> Lookup:
    """Return which (kind of task, policy) pairs are a zero share."""
    return Lookup(
        task=POLICY, place=("q_fairsharepolicy",), facts={"x_zero_share": False}, rows=_policies
    )


def slots(task: tuple[str, ...]) -> Lookup:
    """Return the slots set for the task's share and resource type, told apart by columns of snapshot, tag and resource type."""
    facts = {"x_has_slots": False, "x_numslots": None}
    return Lookup(task=task, place=PARENT, facts=facts, rows=partial(_slots, task))


def _slots(task: tuple[str, ...], known: Known) -> pl.LazyFrame:
    given = known.table("slots")
    names = dict(zip(task, ("snapshot", "tag", "resource_type"), strict=True))
    asked = known.kinds(*task).rename(names)
    on = [name for name in names.values() if name != "snapshot" or given[name].is_not_null().any()]
    places = given.select("panda_queue").unique()
    result = slot_counts(given, asked.select(on).unique().join(places, how="cross"))
    result = result.drop_nulls("numslots").select(*on, "panda_queue", "numslots")
    rows = asked.join(result, on=on, nulls_equal=True)
    rows = rows.rename({new: old for old, new in names.items()})
    return rows.lazy().with_columns(
        parent="panda_queue", x_numslots="numslots", x_has_slots=pl.lit(value=True)
    )


def totals() -> Lookup:
    """Return the size of a task's input."""
    return Lookup(task=("jeditaskid",), facts={"t_total": 0, "t_nfiles": 0}, rows=_totals)


def _totals(known: Known) -> pl.LazyFrame:
    result = input_totals(known.kinds("jeditaskid"), known.made["input"])
    return result.lazy().rename({"total": "t_total", "nfiles": "t_nfiles"})


def at_parents(kinds: tuple[str, ...] = WITH_TAPE) -> Lookup:
    """Return how much of a task's input a parent has, in places of kinds that count."""
    rows = partial(_at_parents, kinds)
    return Lookup(task=("jeditaskid",), place=PARENT, facts=INPUT_HERE, rows=rows)


def _at_parents(kinds: tuple[str, ...], known: Known) -> pl.LazyFrame:
    here = input_at_queues(known.made["input"], known.table("file_locations"), kinds)
    return here.lazy().select(
        "jeditaskid", parent="panda_queue", x_avail="avail", x_navail="navail",
        x_avail_tape="avail_t", x_navail_tape="navail_t",
    )  # fmt: skip


def _queued(known: Known) -> pl.LazyFrame:
    queued = network.nucleus_total_queued(known.made["links"]).lazy()
    return queued.select(
        "snapshot", t_nucleus="nucleus", t_express="express", t_nucleus_queued="total_queued"
    )


def _links(known: Known) -> pl.LazyFrame:
    """Return the links from storage sites to nuclei; the nucleus itself has its own weight."""
    kinds = known.kinds(*LINK).drop_nulls("t_nucleus")
    kinds = kinds.rename({"t_nucleus": "nucleus", "t_express": "express"})
    links: pl.DataFrame = known.made["links"]
    remote = links.filter(pl.col("src") != pl.col("nucleus")).rename({"src": "storage_site"})
    asked = kinds.with_columns(storage_site="nucleus")
    asked = pl.concat([remote.select(asked.columns), asked])
    weighed = network.at_links(asked, links, config=known.config, rules=known.rules)
    return weighed.lazy().drop_nulls("storage_site").select(
        "snapshot", t_nucleus="nucleus", t_express="express", p_storage="storage_site",
        l_known="link_known", l_closeness="closeness", l_queued="n_queued", l_weight="network_weight",
    )  # fmt: skip


def _unknown_weight(known: Known) -> Any:
    """Return the weight of a link of which nothing is known."""
    row = {"snapshot": 0, "nucleus": "any", "express": False, "storage_site": None}
    asked = pl.DataFrame([row], schema_overrides={"storage_site": pl.String})
    links = known.made["links"].clear()
    return network.at_links(asked, links, config=known.config, rules=known.rules)[
        "network_weight"
    ].item()


def _near_any(known: Known) -> pl.LazyFrame:
    """Return the queues that are near some site of role nucleus."""
    nuclei = known.tables["nuclei"].filter(pl.col("role").fill_null("nucleus") == "nucleus")
    places: pl.DataFrame = known.made["near"]
    near = places.lazy().join(nuclei, on="nucleus", how="semi")
    return near.select("q_version", "parent").unique().with_columns(p_near_any=pl.lit(value=True))


def _storage(known: Known) -> pl.LazyFrame:
    """Return what is true of the storage of a parent at an instant."""
    result = endpoint_states(
        known.table("queue_endpoints"), known.table("storage_endpoints"), rules=known.rules
    )
    if "snapshot" not in result.columns:
        instants = known.kinds("snapshot")
        result = result.join(instants, how="cross")
    return result.lazy().rename({"panda_queue": "parent"})


def _policies(known: Known) -> pl.LazyFrame:
    names = dict(zip(TASK_COLUMNS, POLICY, strict=True))
    kinds = known.kinds(**names)
    policies = run(known.places.select("q_fairsharepolicy").unique(maintain_order=True))
    decided = decide_pairs(policies["q_fairsharepolicy"].to_list(), kinds, rules=known.matching)
    result = decided.filter("zero_share").rename({"policy": "q_fairsharepolicy", **names})
    return result.lazy().rename({"zero_share": "x_zero_share"})


def _software(known: Known) -> pl.LazyFrame:
    """Return what (request, parent) pairs are refused, and the preference of the others."""
    levels = known.table("worker_node_cpu_level")
    result = refused_pairs(known, SOFTWARE, worker_node_cpu_level=levels)
    weight = pl.col("preference_weight").fill_null(1.0)
    return result.with_columns(x_platform="platform", x_preference=weight).lazy()


def refused_pairs(known: Known, columns: tuple[str, ...], **more: Any) -> pl.DataFrame:
    """Return what software and hardware (request, parent) pairs lack; see :func:`brokerlab.matching.software_pairs.software_pairs`.

    ``columns`` (what a request consists of), ``parent, p_releases``, ``x_software`` (accepted, rejected, or of a platform that
    cannot be read), ``x_software_reason``, and what else that says.
    """
    names = {column: column.removeprefix("t_") for column in columns}
    requests = known.kinds(*columns).rename(names)
    gpus = known.table("worker_node_gpu") if "worker_node_gpu" in known.tables else None
    tags = known.table("sw_tags")
    decided = at_offers(
        run(known.places),
        lambda some: software_pairs(requests, some, tags, gpus, rules=known.matching, **more),
    )
    unread = pl.col("reason") == "platform_unresolved"
    refused = pl.when(unread).then(UNRESOLVED).otherwise(REJECTED)
    return decided.with_columns(
        parent="panda_queue", p_releases="releases", x_software_reason="reason", **names,
        x_software=pl.when("accept").then(0).otherwise(refused).cast(pl.Int64),
    )  # fmt: skip


def at_offers(queues: pl.DataFrame, decide: Callable[[pl.DataFrame], pl.DataFrame]) -> pl.DataFrame:
    """Decide for distinct ``panda_queue, releases`` of parents: one round, unless they change from instant to instant."""
    result = queues.select(panda_queue="parent", releases="p_releases").unique(maintain_order=True)
    rounds = result.with_columns(nth=pl.int_range(pl.len()).over("panda_queue"))
    parts = rounds.partition_by("nth", maintain_order=True, include_key=False) or [result]
    return pl.concat(decide(some).join(some, on="panda_queue") for some in parts)


def _find_complete(known: Known) -> Any:
    """Find where the whole input of tasks is."""
    return completeness(
        known.given["tasks"], known.given["datasets"], known.given["replicas"],
        known.given["storage_endpoints"], config=known.config, rules=known.rules,
    )  # fmt: skip


COMPLETE = Made(name="complete", of=_find_complete, keys=COMPLETENESS_KEYS)


def _whole(known: Known) -> pl.LazyFrame:
    result: pl.DataFrame = known.made["complete"].tasks
    return result.lazy().select(
        *KEY, t_remote_source="remote_source_available", t_no_complete=~pl.col("any_complete")
    )


def _complete(known: Known) -> pl.LazyFrame:
    """Return the queues that hold the whole input of a task."""
    places = known.made["complete"].complete_locations
    here = complete_here(places, known.table("queue_endpoints"), known.table("storage_endpoints"))
    here = here.rename({"panda_queue": "parent"}).with_columns(x_complete=pl.lit(value=True))
    if "snapshot" not in here.columns:
        here = here.join(known.kinds(*KEY), on="jeditaskid")
    return here.lazy()


COUNTED = ("running", "defined", "assigned", "activated", "starting")
"""Statuses of the weight and the caps."""
AT_QUEUE = ("running", "activated", "starting", "transferring")
"""Statuses that are counted over all shares."""
KEYS = ("snapshot", "parent")
COUNT_TABLES = ("job_stats", "job_stats_workqueue", "job_stats_gshare_only")
RT_TABLES = ("job_stats_rt", "task_resource_types")
TAG = ("snapshot", "t_tag", "t_gshare", "t_counts_share_only")
RT = {"known": False, "running": 0, "queued": 0, "assigned": 0}
"""Jobs of the task's resource types at a parent: whether any are counted, and how many."""


COLUMNS = {"t_gshare": "gshare", "t_resource_type": "resource_type", "t_user": "produsername"}
"""Column of tasks to that of a table of counts."""
Sums: TypeAlias = dict[str, tuple[Any, pl.Expr]]
"""Fact to its value where there is no row, and how it is summed up of the rows."""


def summed(
    table: str,
    facts: Sums,
    task: tuple[str, ...] = ("snapshot",),
    *,
    place: tuple[str, ...] = PARENT,
    queue: str = "computingsite",
) -> Lookup:
    """Return facts that are sums of a table of counts, by columns of tasks and, most often, the parent, named by ``queue``."""
    keys = {name: COLUMNS.get(name, name) for name in task} | dict.fromkeys(place, queue)
    sums = {name: sum_ for name, (_, sum_) in facts.items()}
    otherwise = {name: value for name, (value, _) in facts.items()}
    rows = partial(_sums, table, keys, sums)
    return Lookup(task=task, place=place, facts=otherwise, rows=rows, tables=(table,))


def _sums(
    table: str, keys: Mapping[str, str], sums: Mapping[str, pl.Expr], known: Known
) -> pl.LazyFrame:
    by = [pl.col(column).alias(name) for name, column in keys.items()]
    return known.tables[table].group_by(by).agg(**sums)


def jobs_in(*statuses: str) -> pl.Expr:
    """Return the number of jobs in some statuses."""
    # a sum over nulls is several times as fast as one over filtered rows
    meant = pl.any_horizontal(pl.col("jobstatus") == status for status in statuses)
    return pl.when(meant).then("njobs").sum()


PILOTS: Sums = {
    "s_pilots": (0, pl.col("getjob").fill_null(0).sum() + pl.col("updatejob").fill_null(0).sum())
}
"""Pilots that asked for a job or told of one."""
DISKIO = summed("diskio_usage", {"s_diskio": (0.0, pl.col("diskio_per_core").last())})
"""Disk traffic of a parent."""
_SEEN = pl.col("status").is_in(["running", "submitted"])
WORKERS = summed(
    "worker_stats", {"s_workers": (0, pl.when(_SEEN).then("n_workers").sum())}, queue="panda_queue"
)
"""Batch workers of a parent."""


def of_state(rules: ProductionRules) -> tuple[Lookup, ...]:
    """Return what changes from cycle to cycle."""
    counted = {f"x_{status}": 0 for status in COUNTED}
    own = {f"x_rt_own_{name}": value for name, value in RT.items()}
    listed = {f"x_rt_{name}": value for name, value in RT.items()}
    return (
        summed("job_stats", {f"s_{status}": (0, jobs_in(status)) for status in AT_QUEUE}),
        summed("site_activity", PILOTS | {"s_laststart_s": (None, pl.col("laststart").max().dt.epoch("s"))}),
        Lookup(
            task=("snapshot",), place=PARENT, facts={"s_transferring_unwritable": 0}, rows=_moving,
            tables=("transferring_by_nucleus",), made=("lost",),
        ),
        summed("core_stats", {f"s_{status}_cores": (0, _cores(status)) for status in ("running", "starting")}),
        DISKIO,
        WORKERS,
        summed("live", {"s_live": (0, pl.col("njobs").sum())}, queue="panda_queue"),
        Lookup(
            task=("t",), place=("panda_queue",), facts={"x_locked": False}, rows=_locks,
            tables=("locks",), reads=("jeditaskid", "snapshot"),
        ),
        Lookup(
            task=TAG, place=("parent", "q_eshigh"), facts=counted, tables=COUNT_TABLES,
            rows=_all_jobs if rules.counted_jobs == "queue" else _jobs_by_tag,
        ),
        Lookup(task=SLOTS, place=PARENT, facts=own, rows=_of_own_type, tables=RT_TABLES),
        Lookup(
            task=("t",), place=PARENT, facts=listed | {"x_rt_listed": False}, tables=RT_TABLES,
            rows=_of_listed_types, reads=("jeditaskid", "snapshot", "t_queue_name"),
        ),
    )  # fmt: skip


def wide(frame: pl.LazyFrame, keys: Sequence[str], statuses: Sequence[str]) -> pl.LazyFrame:
    """Return one row per key with a column per status: sums of ``njobs``, 0 where there is none."""
    return frame.group_by(keys).agg(**{status: jobs_in(status) for status in statuses})


def _moving(known: Known) -> pl.LazyFrame:
    moving = known.tables["transferring_by_nucleus"]
    moving = moving.join(known.made["lost"].lazy(), on=["snapshot", "nucleus"])
    of = moving.group_by("snapshot", parent="computingsite")
    return of.agg(s_transferring_unwritable=pl.col("njobs").sum())


def _cores(status: str) -> pl.Expr:
    return pl.col("ncores").filter(pl.col("jobstatus") == status).last()


def _locks(known: Known) -> pl.LazyFrame:
    """Return the queues locked for a task, by their own names: a parent's lock does not hold its pseudo-queues."""
    rows = valid_for(known.tasks.select("t", *KEY), known.tables["locks"])
    return rows.select("t", "panda_queue").unique().with_columns(x_locked=pl.lit(value=True))


def _all_jobs(known: Known) -> pl.LazyFrame:
    stats = known.tables["job_stats"].rename({"computingsite": "parent"})
    return _count(known, wide(stats, KEYS, COUNTED).with_columns(tag=pl.lit(EVERY_JOB)))


def _jobs_by_tag(known: Known) -> pl.LazyFrame:
    """Return jobs by ``share:<gshare>``, ``workqueue:<id>`` or, without those of resource work queues, ``share only:<gshare>``.

    Source: production-jobs.md 7.
    """
    share = pl.col("gshare").fill_null("")
    tags = {
        "job_stats": ("share:", share),
        "job_stats_workqueue": ("workqueue:", pl.col("workqueue_id").cast(pl.String)),
        "job_stats_gshare_only": ("share only:", share),
    }
    parts = []
    for name, (prefix, key) in tags.items():
        rows = known.tables[name].select(
            "snapshot", "jobstatus", "njobs", parent="computingsite", key=key
        )
        tag = pl.concat_str(pl.lit(prefix), "key")
        parts.append(wide(rows, [*KEYS, "key"], COUNTED).select(*KEYS, *COUNTED, tag=tag))
    return _count(known, pl.concat(parts))


def _count(known: Known, jobs: pl.LazyFrame) -> pl.LazyFrame:
    """Return the jobs that a task is counted with (switch ``counted_jobs``).

    Event service of a resource work queue is counted by share at queues of jobseed ``eshigh`` if it is urgent.
    """
    kinds = known.tasks.select(TAG).unique()
    only = pl.concat_str(pl.lit("share only:"), pl.col("t_gshare").fill_null(""))
    tags = (pl.col("t_tag"), pl.when("t_counts_share_only").then(only).otherwise("t_tag"))
    wanted = pl.concat(
        kinds.with_columns(tag=tag, q_eshigh=pl.lit(bool(number)))
        for number, tag in enumerate(tags)
    )
    result = wanted.join(jobs, on=["snapshot", "tag"])
    return result.rename({status: f"x_{status}" for status in COUNTED})


def _of_own_type(known: Known) -> pl.LazyFrame:
    names = {"tag": "t_queue_name", "resource_type": "t_resource_type"}
    own = known.tasks.select("snapshot", **names).unique()
    rows = _of_types(known, own, ["snapshot", "resource_type"])
    return _sum(rows, ["snapshot", *names, "parent"], "x_rt_own").rename(names)


def _of_listed_types(known: Known) -> pl.LazyFrame:
    types = known.tables["task_resource_types"]
    who = known.tasks.select("t", *KEY, tag="t_queue_name")
    listed = valid_for(who, types).rename({"computingsite": "parent"}).unique().cache()
    none = listed.select("t", "parent", known=pl.lit(value=False))
    on = ["snapshot", "parent", "resource_type"]
    several = [*_of_types(known, listed, on, few=True), none]
    result = _sum(several, ["t", "parent"], "x_rt")
    return result.with_columns(x_rt_listed=pl.lit(value=True))


def _of_types(
    known: Known, wanted: pl.LazyFrame, on: list[str], *, few: bool = False
) -> list[pl.LazyFrame]:
    """Return the jobs of the resource types wanted, ``few`` of those that there are; rows without share hold for every share."""
    stats = known.tables["job_stats_rt"].rename({"computingsite": "parent"})
    if few:  # most often none
        stats = stats.join(wanted, on=on, how="semi")
    result = wide(stats, [*KEYS, "gshare", "resource_type"], COUNTED)
    result = result.with_columns(known=pl.lit(value=True)).cache()
    named = result.drop_nulls("gshare")
    common = result.filter(pl.col("gshare").is_null()).drop("gshare")
    return [
        wanted.join(named, left_on=[*on, "tag"], right_on=[*on, "gshare"]),
        wanted.join(common, on=on),
    ]


def _sum(parts: Sequence[pl.LazyFrame], keys: list[str], prefix: str) -> pl.LazyFrame:
    sums = {
        "known": pl.col("known").any(),
        "running": pl.col("running").sum(),
        "queued": pl.sum_horizontal("defined", "activated", "starting").sum(),
        "assigned": pl.col("assigned").sum(),
    }
    together = pl.concat(parts, how="diagonal").group_by(keys)
    return together.agg(**{f"{prefix}_{name}": value for name, value in sums.items()})
