"""Facts that the analysis job brokerage looks up: what stands for long, and what may change from cycle to cycle.

What may change is made of counts of jobs, users and failures, of classes and quotas, and lazy until all of it is collected at
once: these are many small steps.
"""

from __future__ import annotations

from functools import partial

import polars as pl

from brokerlab.brokerage.analysis_jobs.facts import CLASS_A, name_parents
from brokerlab.brokerage.analysis_jobs.locality import Locality, locality
from brokerlab.brokerage.analysis_jobs.throttle import task_classes
from brokerlab.brokerage.engine.lookup import Known, Lookup, Made, made_rows
from brokerlab.brokerage.inputs.data import WITH_TAPE
from brokerlab.brokerage.inputs.frames import KEY as TASK
from brokerlab.brokerage.inputs.frames import for_tasks, run, valid_for
from brokerlab.brokerage.production_jobs.lookups import (
    DISKIO,
    OFFER,
    PARENT,
    PILOTS,
    WORKERS,
    Sums,
    at_offers,
    at_parents,
    jobs_in,
    policies,
    refused_pairs,
    slots,
    summed,
    totals,
)
from brokerlab.brokerage.production_jobs.settings import COMPLETENESS_KEYS
from brokerlab.matching.software_pairs import platform_pairs

SLOTS = ("snapshot", "t_gshare", "t_resource_type")
SOFTWARE = ("t_architecture", "t_transhome", "t_container_name", "t_transuses")
ON_DISK_OR_TAPE = ("localdisk", "localtape")
"""Kinds of places that count as local: a cache does not (6.4)."""
_UP = ("e_read_lan", "e_write_lan", "e_write_wan", "e_read_wan")
ENDPOINTS = {
    **dict.fromkeys(("e_output", "e_input", "e_same", *_UP, "e_vp", "e_vp_default"), False),
    **dict.fromkeys(("e_out_space", "e_in_space")),
}


def of_places() -> tuple[Lookup, ...]:
    """Return what is known of endpoints, lists, policies, software and slots."""
    named = {"x_included": False, "x_excluded": False}
    return (
        Lookup(task=("t_home",), place=PARENT, facts={"x_home": False}, rows=_home),
        Lookup(task=("snapshot",), place=PARENT, facts=ENDPOINTS, rows=partial(made_rows, "endpoints")),
        policies(),
        Lookup(
            task=SOFTWARE, place=OFFER, facts={"x_software": 0, "x_software_reason": None},
            rows=software,
        ),
        Lookup(
            task=("t_architecture",), place=OFFER, facts={"x_platform_missing": False},
            rows=_platforms,
        ),
        Lookup(task=("t_list_key",), place=PARENT, facts=named, rows=_name),
        slots(SLOTS),
    )  # fmt: skip


def of_input() -> tuple[Lookup, ...]:
    """Return where the input of a task is."""
    about = ("t_has_input", "t_distributed", "t_incomplete", "t_remote_source", "t_union")
    here = {"x_data": False, "x_data_weight": 0.0, "x_non_vp": False}
    keys = COMPLETENESS_KEYS
    return (
        totals(),
        Lookup(task=("jeditaskid",), facts={"t_files_known": False}, rows=_known_files),
        at_parents(ON_DISK_OR_TAPE),
        Lookup(task=("jeditaskid",), place=PARENT, facts={"x_whole": False}, rows=_whole),
        Lookup(task=("t",), facts=dict.fromkeys(about), rows=_about, keys=keys),
        Lookup(task=("t",), facts={"t_n_data": 0}, rows=_n_data, keys=keys),
        Lookup(task=("t",), place=PARENT, facts=here, rows=_data, keys=keys),
    )


def _locality(known: Known) -> Locality:
    """Find where the input of tasks is; where replicas are unknown, it is somewhere."""
    tasks, pool = run(known.tasks), known.made["pool"]
    result = locality(tasks, known.given, pool=pool, config=known.config)
    if "replicas" not in known.missing:
        return result
    some = pl.lit(value=True)
    about = result.tasks.with_columns(t_incomplete=~some, t_remote_source=some)
    return Locality(about, result.queues)


LOCALITY = Made(name="locality", of=_locality, keys=COMPLETENESS_KEYS)


def _about(known: Known) -> pl.LazyFrame:
    result: Locality = known.made["locality"]
    return result.tasks.lazy()


def _data(known: Known) -> pl.LazyFrame:
    result: Locality = known.made["locality"]
    return result.queues.lazy()


def _n_data(known: Known) -> pl.LazyFrame:
    parents = known.places.select("parent").unique()
    rows = _data(known).filter("x_data").join(parents, on="parent", how="semi")
    return rows.group_by("t").agg(t_n_data=pl.len().cast(pl.Int64))


def _home(known: Known) -> pl.LazyFrame:
    homes = known.tasks.select("t_home").drop_nulls().unique()
    return homes.with_columns(parent="t_home", x_home=pl.lit(value=True))


def software(known: Known) -> pl.LazyFrame:
    """Return what (request, parent) pairs are refused.

    Source:
        002, ATLAS Analysis Job Brokerage: "This check is skipped when queues have ANY in the releases filed in CRIC.";
        docs/rules/matching.md 9.
    """
    return refused_pairs(known, SOFTWARE, analysis=True).lazy()


def _platforms(known: Known) -> pl.LazyFrame:
    wanted = known.kinds(architecture="t_architecture")
    decided = at_offers(
        run(known.places.filter("q_gpu")),
        lambda some: platform_pairs(wanted, some, known.table("sw_tags"), rules=known.matching),
    )
    return decided.lazy().filter(~pl.col("accept")).select(
        parent="panda_queue", p_releases="releases", t_architecture="architecture",
        x_platform_missing=pl.lit(value=True),
    )  # fmt: skip


def _name(known: Known) -> pl.LazyFrame:
    return name_parents(run(known.tasks), run(known.places)).lazy()


def _known_files(known: Known) -> pl.LazyFrame:
    files = known.tables["file_locations"].select("jeditaskid").unique()
    asked = known.kinds("jeditaskid")
    located = for_tasks(run(files), asked).select("jeditaskid").unique()
    return located.lazy().with_columns(t_files_known=pl.lit(value=True))


def _whole(known: Known) -> pl.LazyFrame:
    """Return where every dataset of which files are known has all of them: on disk, in cache or on tape (7)."""
    wanted = known.kinds("jeditaskid")
    key = ["jeditaskid", "datasetname"]
    number = for_tasks(known.table("files"), wanted).group_by(key).agg(n=pl.col("lfn").n_unique())
    places = for_tasks(known.table("file_locations"), wanted)
    own = pl.col("kind").is_in(WITH_TAPE)  # what is read from elsewhere is not there
    whole = (
        places.group_by(*key, "panda_queue", "kind")
        .agg(here=pl.col("lfn").n_unique())
        .join(number, on=key)
        .group_by(*key, "panda_queue")
        .agg(whole=(own & (pl.col("here") >= pl.col("n"))).any())
        .group_by("jeditaskid", parent="panda_queue")
        .agg(x_whole=pl.col("whole").all())
    )
    return whole.lazy()


QUEUED = ("defined", "assigned", "activated", "starting")
"""Statuses of ``nq``."""
ENDED_TABLES = ("failure_counts", "sites_used")
SHARE = ("snapshot", "t_gshare")
ENDED = ("failed", "closed", "finished")


def of_state() -> tuple[Lookup, ...]:
    """Return what changes from cycle to cycle."""
    nothing = {f"x_{status}": 0 for status in ENDED} | {"x_used": False}
    waiting, running = jobs_in(*QUEUED), jobs_in("running")
    at_queue = {
        "s_running": (0, running),
        "s_waiting": (0, waiting),
        "s_starting": (0, jobs_in("starting")),
    }
    users = {
        "x_users": (0, pl.col("produsername").n_unique().cast(pl.Int64)),
        "x_users_running": (0, pl.col("nrunning").sum()),
    }
    mine = {
        "u_queued": (0, pl.col("nqueue").sum()),
        "u_running": (0, pl.col("nrunning").sum()),
        "u_known": (False, pl.lit(value=True)),
    }
    # waiting per running job of the task's share over all queues (4.13)
    grand: Sums = {"t_grand": (None, pl.when(running > 0).then(waiting / running))}
    return (
        summed("job_stats", grand, SHARE, place=()),
        Lookup(
            task=TASK, facts={"t_class": CLASS_A}, rows=_class, tables=("task_class",), reads=("at",)
        ),
        summed("site_activity", PILOTS),
        WORKERS,
        summed("job_stats", at_queue),
        DISKIO,
        summed("to_run_rate", {"s_rate": (0.0, pl.col("jobs_per_hour").last())}),
        summed("site_class", {"s_class": (0, pl.col("class").last())}),
        Lookup(
            task=("t",), place=PARENT, facts={"x_over_quota": False}, rows=_quota,
            tables=("quota",), made=("endpoints",), reads=("snapshot", "t_unit"),
        ),
        summed("job_stats", _counts("x_"), SHARE),
        summed("job_stats", _counts("x_rt_"), SLOTS),
        summed("user_job_stats", users, SHARE),
        summed("user_job_stats", mine, (*SHARE, "t_user")),
        Lookup(
            task=("t",), place=PARENT, facts=nothing, rows=_ended, tables=ENDED_TABLES, reads=TASK
        ),
    )  # fmt: skip


def _counts(prefix: str) -> Sums:
    sums = {"nr": jobs_in("running"), "nq": jobs_in(*QUEUED), "starting": jobs_in("starting")}
    return {f"{prefix}{name}": (0, sum_) for name, sum_ in sums.items()}


def _class(known: Known) -> pl.LazyFrame:
    return task_classes(known).rename({"class": "t_class"})


def _quota(known: Known) -> pl.LazyFrame:
    """Return the queues whose default output endpoint is over the local quota of the task's user or group."""
    over = known.tables["quota"].select("snapshot", "username", name="endpoints_over_local_quota")
    over = over.explode("name").drop_nulls("name")
    who, of = known.tasks.select("t", "snapshot", "t_unit"), ["snapshot", "username"]
    result = pl.concat(
        [
            who.join(over, left_on=["snapshot", "t_unit"], right_on=of).select("t", "name"),
            who.join(over.filter(pl.col("username").is_null()), on="snapshot").select("t", "name"),
        ]
    )
    defaults = known.made["endpoints"].lazy().select("parent", name="e_out_name").unique()
    rows = result.join(defaults, on="name").select("t", "parent").unique()
    return rows.with_columns(x_over_quota=pl.lit(value=True))


def _ended(known: Known) -> pl.LazyFrame:
    """Return the jobs of the task that ended lately at a parent, and whether the task used it."""
    rows, used = (
        valid_for(known.tasks.select("t", *TASK), known.tables[name]) for name in ENDED_TABLES
    )
    ended = rows.group_by("t", parent="computingsite").agg(
        pl.col("njobs").filter(pl.col("jobstatus") == status).sum().alias(f"x_{status}")
        for status in ENDED
    )
    there = used.select("t", parent="computingsite").unique()
    there = there.with_columns(x_used=pl.lit(value=True))
    return ended.join(there, on=["t", "parent"], how="full", coalesce=True)
