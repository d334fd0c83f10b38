"""Every switch of the analysis rules: one world that its two values decide differently, all else being equal."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from brokerlab.brokerage.analysis_jobs import AnalysisDecisions, AnalysisRules
from brokerlab.brokerage.analysis_jobs.rules import SWITCHES
from brokerlab.units import MB
from tests.unit.brokerage.analysis_jobs.toys import AT, SHARE, World

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


def virtual() -> World:
    """The queue reads by VP in scope analysis, which counts where the queue has it."""
    endpoint = {"panda_queue": "Q", "direction": "input", "scope": "analysis"}
    world = World(avoidvp=True).queue("Q")
    return world.add("queue_endpoints", **endpoint, ddm_endpoint_name="Q_VP_DISK", is_default=True)


def new_weight(decided: AnalysisDecisions) -> str:
    row = decided.weighed.row(0, named=True)
    return "new_document" if row["weight"] == row["new_document"] else "new"


CASES: dict[str, tuple[World, See, Any, Any]] = {
    "basic_weight": (waiting(9, 4), of_weight("weight"), 2.0, None),
    "cap_rt_effective": (waiting(5, 41), check, "cap_rt", None),
    "cap_rt_form": (waiting(5, 30), check, None, "cap_rt"),
    "bad_jobs_mode": (ended("failed", 5), check, "badsite", None),
    "locality_mode": (urgent(), of_task("loop"), 2, 1),
    "count_total_row": (users(), of_weight("max_q_len"), 100.0, 200 * (1 / 3)),
    "trr_scaled": (users(), of_weight("trr"), 5.0, 10.0),
    "use_base_ram": (World(baseramcount=300).queue("Q", maxrss=2000.0), check, "lowmemory", None),
    "min_capacity_mode": (World(chunk_usescout=True).queue("Q", maxtime=86399, corepower=20.0), check, "scout_walltime", None),
    "maxwdir_mode": (World(corecount=8, atom_size=10 * MB).queue("Q", corecount=8, maxwdir=79.0), check, "disk", None),
    "slots_zero_mode": (slots(0), of_weight("running"), 9, 13),
    "slots_per_core": (slots(40), of_weight("running"), 40, 10),
    "use_l1_share": (over_target(), of_task("throttle"), "gshare_class_c", None),
    "closed_skips": (ended("closed", 1), check, None, "closed"),
    "used_sites_first": (used(), lambda decided: decided.queues["rank"].to_list(), [1, 2], [2, 1]),
    "pending_min": (World().queue("Q", status="offline"), lambda decided: (decided.tasks["pending_until"].item() - AT).seconds // 60, 20, 60),
    "space_strict": (World().queue("Q", e_space_usable=200.0), check, "storage", None),
    "new_weight": (of_class_a(), new_weight, "new_document", "new"),
    "lists_need_limitedsites": (World(excludedsite=["Q"]).queue("Q"), check, None, "excluded"),
    "status_mode": (World().queue("Q", status="paused"), check, "status", None),
    "any_mode": (World(architecture="x86_64-el9-gcc13-opt").queue("Q"), check, None, "cache"),
    "lists_first": (World(excludedsite=["Q"], limitedsites=True).queue("Q", status="offline"), check, "excluded", "status"),
    "vp_default_scope": (virtual(), check, "avoid_vp", None),
}  # fmt: skip
"""Switch -> world, what is looked at, and what is seen under either value."""
VALUES = {"trr_scaled": (True, False), "lists_need_limitedsites": (True, False)}
"""Of switches that both rule sets hold the same way."""
BESIDE: dict[str, dict[str, Any]] = {
    "new_weight": {"basic_weight": "new"},
    "count_total_row": {"cap_rt_effective": False},
    "trr_scaled": {"cap_rt_effective": False},
}


@pytest.mark.parametrize("name", SWITCHES)
def test_a_switch_alone_changes_the_decision(name: str) -> None:
    world, see, document, production = CASES[name]
    switch = SWITCHES[name]
    values = VALUES.get(name, (switch.document, switch.production))
    seen = [see(world.decided(AnalysisRules(**BESIDE.get(name, {}), **{name: value}))) for value in values]  # fmt: skip
    if name == "basic_weight":
        assert seen[0] == document
        assert seen[1] != document
    else:
        assert seen == [document, production]
