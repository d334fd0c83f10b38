"""Every switch of the analysis rules: one world that its two values decide differently, all else being equal."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from types import SimpleNamespace
from typing import Any

import polars as pl
import pytest

from brokerlab.brokerage.analysis_jobs import AnalysisDecisions, AnalysisRules
from brokerlab.units import MB
from tests.unit.brokerage.analysis_jobs.toys import AT, SHARE, World, decided_of

See = Callable[[AnalysisDecisions], Any]


def check(decided: AnalysisDecisions) -> Any:
    """Return why queue Q was skipped."""
    rows = decided.queues.select("panda_queue", "check").rows()
    return next(None if found is None else str(found) for name, found in rows if name == "Q")


def of_weight(column: str) -> See:
    return lambda decided: decided.weighed[column][0]


def of_task(column: str) -> See:
    return lambda decided: decided.tasks[column].item()


def waiting(running: int, queued: int) -> World:
    return World().queue("Q").jobs("Q", "running", running).jobs("Q", "activated", queued)


def ended(status: str, number: int) -> World:
    return (
        World().queue("Q").add("failure_counts", computingsite="Q", jobstatus=status, njobs=number)
    )


def users() -> World:
    """Alice has 60 of 300 jobs waiting and 10 of 100 running, bob the others; half of what runs is of another share."""
    world = waiting(100, 300).jobs("Q", "running", 100, gshare="Express Analysis")
    for user, queued, running in (("alice", 60, 10), ("bob", 240, 90)):
        world.add("user_job_stats", computingsite="Q", gshare=SHARE, produsername=user, nqueue=queued, nrunning=running)  # fmt: skip
    return world.add("to_run_rate", computingsite="Q", jobs_per_hour=10.0)


def urgent() -> World:
    world = World(taskpriority=2000).queue("Q").add("datasets", datasetname="D", is_master=True)
    return world.add("replicas", datasetname="D", ddm_endpoint_name="Q_DISK", found=1, total=1)


def urgent_without_wan() -> World:
    """The input is at Q, which takes nothing over WAN; the check of locality is suppressed."""
    world = urgent()
    for row in world.rows["queue_endpoints"]:
        row["write_wan"] = "OFF"
    return world


def slots(number: int) -> World:
    world = World(corecount=4).queue("Q", corecount=4)
    world.jobs("Q", "running", 9).jobs("Q", "starting", 4)
    return world.add("slots", panda_queue="Q", numslots=number)


def over_target() -> World:
    """The share uses 95 % of its target, its first level 85 % of the equivalent one; the task is in class C."""
    world = World().queue("Q").add("task_class", jeditaskid=1, **{"class": -1})
    world.add("gshare_usage", gshare=SHARE, usage_perc=0.95)
    return world.add("gshare_usage", gshare=f"L1 {SHARE}", eqiv_usage_perc=0.85)


def used() -> World:
    world = World().queue("P").queue("Q").jobs("P", "running", 5)
    return world.add("sites_used", computingsite="Q")


def of_class_a() -> World:
    """One queue of class hi: W_q is 1, W_s 10 by the page, 10 less 0.052 by the budgets."""
    world = World().queue("Q").add("site_class", computingsite="Q", **{"class": 1})
    for user in ("alice", "bob"):
        world.add("user_job_stats", computingsite="Q", gshare=SHARE, produsername=user)
    return world


def virtual(**task: Any) -> World:
    """The queue reads by VP in scope analysis, which counts where the queue has it."""
    endpoint = {"panda_queue": "Q", "direction": "input", "scope": "analysis"}
    world = World(**{"avoidvp": True} | task).queue("Q")
    return world.add("queue_endpoints", **endpoint, ddm_endpoint_name="Q_VP_DISK", is_default=True)


def new_weight(decided: AnalysisDecisions) -> str:
    row = decided.weighed.row(0, named=True)
    return "new_document" if row["weight"] == row["new_document"] else "new"


def other_share() -> World:
    """Ten jobs of another share run beside nine of the task's, four of it wait."""
    world = World().queue("Q").jobs("Q", "running", 9)
    world.jobs("Q", "running", 10, gshare="Express Analysis")
    return world.jobs("Q", "activated", 4, gshare="Express Analysis")


def with_input(*names: str, **task: Any) -> World:
    """The input is at Q alone."""
    world = World(**task).queue("P").queue("Q")
    for name in names:
        world.add("datasets", datasetname=name, is_master=name == names[0])
        world.add("replicas", datasetname=name, ddm_endpoint_name="Q_DISK", found=1, total=1)
    return world


def capped() -> World:
    """Too many jobs wait where the input is."""
    return with_input("D").jobs("Q", "activated", 41)


def unlisted_jobs() -> World:
    """100 jobs run, those of known users are 60."""
    world = waiting(100, 300)
    for user, running in (("alice", 10), ("bob", 50)):
        world.add("user_job_stats", computingsite="Q", gshare=SHARE, produsername=user, nqueue=9, nrunning=running)  # fmt: skip
    return world


def of_unknown_user() -> World:
    world = World().queue("Q").add("task_class", jeditaskid=1, **{"class": 1})
    return world.add("gshare_usage", gshare=SHARE, usage_perc=2.01)


def spread_over(number: int) -> World:
    """The container is spread over many queues."""
    world = World().add("datasets", datasetname="D/", is_master=True)
    for n in range(number):
        world.queue(f"Q{n}")
        world.add("replicas", datasetname="D/", ddm_endpoint_name=f"Q{n}_DISK", found=1, total=2)
    return world


def overloaded() -> World:
    world = World().queue("Q").jobs("Q", "running", 10).jobs("Q", "activated", 40)
    return world.queue("R").jobs("R", "running", 90).jobs("R", "activated", 60)


def without_pilots() -> World:
    world = World(prodsourcelabel="test").queue("Q")
    world.rows["site_activity"][0]["getjob"] = 0
    return world


def of_several_cores() -> World:
    """The task is over the limit of disk traffic, but not with each of its cores."""
    world = World(diskio=501.0, corecount=8).queue("Q", corecount=8)
    return world.add("diskio_usage", computingsite="Q", diskio_per_core=501.0)


def names(decided: AnalysisDecisions) -> list[str]:
    return decided.queues["panda_queue"].cast(pl.String).to_list()


CASES: dict[str, tuple[World, See, Any, Any]] = {
    "basic_weight": (waiting(9, 4), of_weight("weight"), 2.0, None),
    "cap_rt_effective": (waiting(5, 41), check, "cap_rt", None),
    "cap_rt_form": (waiting(5, 30), check, None, "cap_rt"),
    "bad_jobs_mode": (ended("failed", 5), check, "badsite", None),
    "locality_mode": (urgent(), of_task("loop"), 2, 1),
    "count_total_row": (users(), of_weight("max_q_len"), 100.0, 200 * (1 / 3)),
    "trr_scaled": (users(), of_weight("trr"), 10.0, 5.0),
    "diskio_per_core": (of_several_cores(), check, "diskio", None),
    "direct_asks_task": (World(atom_size=10 * MB).queue("Q", maxwdir=9.0, direct_access_lan=True), check, None, "disk"),
    "use_base_ram": (World(baseramcount=300).queue("Q", maxrss=2000.0), check, "lowmemory", None),
    "merge_memory": (World(is_merging=True, mergeramcount=100).queue("Q", maxrss=1000.0), check, None, "lowmemory"),
    "whole_numbers": (World(ramcount=2223).queue("Q", maxrss=2000.0), check, "lowmemory", None),
    "zero_efficiency_rejects": (World(cpuefficiency=0.0, basewalltime=10.0).queue("Q", maxtime=100000), check, None, "shortwalltime"),
    "min_capacity_mode": (World(chunk_usescout=True).queue("Q", maxtime=86399, corepower=20.0), check, "scout_walltime", None),
    "maxwdir_mode": (World(corecount=8, atom_size=10 * MB).queue("Q", corecount=8, maxwdir=79.0), check, "disk", None),
    "slots_zero_mode": (slots(0), of_weight("running"), 9, 13),
    "workers_need_pilots": (without_pilots().add("worker_stats", panda_queue="Q", status="running", n_workers=15), of_weight("running"), 15, 0),
    "slots_per_core": (slots(40), of_weight("running"), 40, 10),
    "use_l1_share": (over_target(), of_task("throttle"), "gshare_class_c", None),
    "closed_skips": (ended("closed", 1), check, None, "closed"),
    "used_sites_first": (used(), lambda decided: decided.queues["rank"].to_list(), [1, 2], [2, 1]),
    "pending_min": (World().queue("Q", status="offline"), lambda decided: (decided.tasks["pending_until"].item() - AT).seconds // 60, 20, 60),
    "preassigned_failure": (World(site="Q").queue("P").queue("Q", corecount=8), of_task("outcome"), "temporary_error", "fatal"),
    "space_strict": (World().queue("Q", e_space_usable=200.0), check, "storage", None),
    "local_space": (World().queue("Q").add("storage_endpoints", ddm_endpoint_name="Q_DISK", space_free=100.0, space_expired=500.0), check, "storage", None),
    "data_counts_without_locality": (urgent_without_wan(), check, None, "blacklist"),
    "new_weight": (of_class_a(), new_weight, "new_document", "new"),
    "lists_need_limitedsites": (World(excludedsite=["Q"]).queue("Q"), check, "excluded", None),
    "status_mode": (World().queue("Q", status="paused"), check, "status", None),
    "lists_first": (World(excludedsite=["Q"], limitedsites=True).queue("Q", status="offline"), check, "excluded", "status"),
    "vp_default_scope": (virtual(), check, "avoid_vp", None),
    "counted_jobs": (other_share(), of_weight("orig"), 20 / 5, 10 / 1),
    "zero_intensity_suppresses": (with_input("D", iointensity=0.0), of_task("loop"), 2, 1),
    "second_loop": (capped(), of_task("loop"), 1, 2),
    "stabilizer_running": (unlisted_jobs(), of_weight("nq_max"), 200.0, 120.0),
    "scratch_need": (World(atom_size=10 * MB, workdiskcount=1, workdiskunit="MB").queue("Q", maxwdir=100.0), check, None, "disk"),
    "caps_need_all_counts": (World().queue("Q").add("user_totals", origusername="alice", nrunjobs=2), of_task("throttle"), "cap_running_jobs", None),
    "unknown_user_fraction": (of_unknown_user(), of_task("throttle"), None, "gshare_class_a"),
    "best_ten_always": (spread_over(12), of_task("n_candidates"), 10, 12),
    "data_factor": (with_input("D", "E"), of_weight("data_factor"), 1.0, 2.0),
    "grandly_unified_counts": (World().queue("P").queue("Q", type="production", catchall="grandly_unified"), names, ["P"], ["P", "Q"]),
    "vp_avoided_by": (virtual(avoidvp=False, is_merging=True), check, None, "avoid_vp"),
    "overload_scope": (overloaded(), check, None, "overloaded"),
    "code_only_checks": (World(iointensity=2.0).queue("Q", max_io_intensity=1.0), check, None, "max_io_intensity"),
    "code_only_exemptions": (without_pilots(), check, "nopilot", None),
}  # fmt: skip
"""Switch -> world, what is looked at, and what is seen under either value."""
SETTINGS: dict[str, dict[str, float]] = {
    "diskio_per_core": {"jedi/jobbroker/MAX_DISKIO_DEFAULT": 500},
    "zero_intensity_suppresses": {"IO_INTENSITY_CUTOFF_USER": 100},
    "caps_need_all_counts": {"pandaserver/prio_mgr/CAP_RUNNING_USER_JOBS": 1},
}
BESIDE: dict[str, dict[str, Any]] = {
    "new_weight": {"basic_weight": "new"},
    "workers_need_pilots": {"code_only_exemptions": True},
    "count_total_row": {"cap_rt_effective": False},
    "trr_scaled": {"cap_rt_effective": False},
    "stabilizer_running": {"cap_rt_effective": False},
}


def needs(name: str) -> str:
    return repr((SETTINGS.get(name), BESIDE.get(name)))


@cache
def by_the_page(need: str) -> tuple[list[str], AnalysisDecisions]:
    """Return the cases that need the same settings and other switches, and what the page's rules decide of them."""
    first, *others = (name for name in CASES if needs(name) == need)
    worlds = [CASES[name][0] for name in (first, *others)]
    rules = AnalysisRules(**BESIDE.get(first, {}))
    return [first, *others], decided_of(worlds, rules, **SETTINGS.get(first, {}))


def alone(decided: AnalysisDecisions, number: int) -> SimpleNamespace:
    """Return the tables of one world among others, under its own names."""
    own = pl.col("panda_queue").cast(pl.String).str.split(".").list.last()
    tables = {}
    for name in ("queues", "tasks", "weighed"):
        rows = getattr(decided, name).filter(snapshot=number)
        tables[name] = rows.with_columns(own) if "panda_queue" in rows.columns else rows
    return SimpleNamespace(**tables)


@pytest.mark.parametrize("name", AnalysisRules.SWITCHES)
def test_a_switch_alone_changes_the_decision(name: str) -> None:
    _, see, document, production = CASES[name]
    value = AnalysisRules.SWITCHES[name].production
    names, page = by_the_page(needs(name))
    now = page.world.with_rules(AnalysisRules(**BESIDE.get(name, {}), **{name: value}))
    turned = now.brokerage.of(now)
    seen = [see(alone(each, names.index(name))) for each in (page, turned)]
    if name == "basic_weight":
        assert seen[0] == document
        assert seen[1] != document
    else:
        assert seen == [document, production]
