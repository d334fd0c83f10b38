"""Every switch of the job brokerage and of the network weight: it alone turns one rule set's answer into the other's.

They are those of `brokerlab.brokerage.rules.JobRules`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta
from functools import cache
from typing import Any

import pytest

from brokerlab.brokerage.engine.world import World as EngineWorld
from brokerlab.brokerage.production_jobs.brokerage import BROKERAGE
from brokerlab.brokerage.rules import JobRules, ProductionRules
from brokerlab.units import GB, MB
from tests.brokerage_toys import AT, World, config
from tests.unit.brokerage.production_jobs.book import (
    Book,
    Found,
    answer,
    ask,
    levelled,
    merged,
    one,
    parent,
    told,
)  # fmt: skip

DAY = 86_400
DISK = {"ddm_endpoint_name": "SITE_DATADISK"}


@dataclass(frozen=True)
class Difference:
    """A world on which a switch shows.

    Attributes:
        switch: Its name.
        world: The world.
        first: Answer with the value that the rule set ``document`` has.
        second: Answer with the other value.
        reads: What of the answer.
        settings: gdpconfig keys.
        others: Other switches without which it has nothing to act on.
    """

    switch: str
    world: World
    first: Any
    second: Any
    reads: Callable[[Found], Any] = lambda found: found.check
    settings: dict[str, Any] = field(default_factory=dict)
    others: dict[str, Any] = field(default_factory=dict)

    def values(self) -> tuple[Any, Any]:
        """Return the switch's value in ``document``, and the other one."""
        switch = ProductionRules.SWITCHES[self.switch]
        if switch.document != switch.production:
            return switch.document, switch.production
        others = switch.allowed or (True, False)
        return switch.document, next(value for value in others if value != switch.document)

    def asked(self) -> dict[str, tuple[ProductionRules, ProductionRules]]:
        """Return both rule sets, and both with the switch turned, each with the set whose world it is asked of."""
        document, other = self.values()
        switch = ProductionRules.SWITCHES[self.switch]
        turned = {"document": other, "production": document}
        if switch.document == switch.production:
            turned["production"] = other
        result = {}
        for name, value in turned.items():
            plain = ProductionRules(name, **self.others)
            result[name] = plain, plain
            rules = ProductionRules(name, **self.others, **{self.switch: value})
            result[f"{name}, turned"] = plain, rules
        return result

    def expected(self) -> dict[str, Any]:
        """Return the answers in the same order."""
        same = (
            ProductionRules.SWITCHES[self.switch].document
            == ProductionRules.SWITCHES[self.switch].production
        )
        production = (self.first, self.second) if same else (self.second, self.first)
        answers = (self.first, self.second, *production)
        return dict(
            zip(
                ("document", "document, turned", "production", "production, turned"),
                answers, strict=True,
            )
        )  # fmt: skip


def starting() -> World:
    """Return a queue where only starting jobs wait and none has started for three hours."""
    world = one({"currentpriority": 800}, activated=0).jobs("SITE", starting=1)
    return world.change("site_activity", laststart=AT - timedelta(hours=3))


def no_slots() -> World:
    world = one({"currentpriority": 150}, running=5).jobs("SITE", starting=30)
    return world.add("slots", panda_queue="SITE", numslots=0)


def cores() -> World:
    world = one(pledgedcpu=10).add(
        "core_stats", computingsite="SITE", jobstatus="running", ncores=9
    )
    return world.add("core_stats", computingsite="SITE", jobstatus="starting", ncores=2)


def last_hour() -> World:
    world = one().link("SITE", mbps=250.0)
    rows = world.tables["network_matrix"]
    rows[:] = [row for row in rows if row["key"] not in ("dashb_mbps_1d", "dashb_mbps_1w")]
    return world


def other_share() -> World:
    """Return a queue where jobs of another share wait and none of the task's runs but five."""
    return one(running=5, activated=0).jobs("SITE", gshare="Other", activated=25)


def busy_disk() -> World:
    """Return a task of 8 cores that is over the limit of disk traffic, but not with each core."""
    busy = one({"diskio": 401})
    return busy.add("diskio_usage", computingsite="SITE", diskio_per_core=401.0)


def at_home() -> World:
    world = World(t1weight=-1).queue("A", site="NUC", running=5)
    return world.queue("B", site="NUC", running=9)


def idle() -> World:
    return one({"currentpriority": 150}, running=0, activated=0)


def factor(found: Found) -> Any:
    return pytest.approx(found.only["network"], rel=1e-12)


def of(queue: str) -> Callable[[Found], Any]:
    return lambda found: found.checks()[queue]


def home(**task: Any) -> World:
    return World(**task).queue("HOME", site="NUC")


def small(maxwdir: float, **task: Any) -> World:
    """Return a queue of one core."""
    return one({"corecount": 1} | task, corecount=1, maxwdir=maxwdir)


def much_input(files: int, **task: Any) -> World:
    """Return a queue with all files of 1 GB, and one with none."""
    return (
        World(iointensity=201, **task).queue("ALL").queue("SOME").data(files, here={"ALL": files})
    )


def stuck() -> World:
    """Return merge jobs of queue A that have waited for a day although their input changed lately."""
    times = {"frozentime": AT - timedelta(hours=24), "master_modificationtime": AT}
    return World(is_merging=True, preassigned_site="A", **times).queue("A").queue("B")


def input_elsewhere() -> World:
    world = home().endpoint("X_DATADISK").data(1)
    world.change("replicas", ddm_endpoint_name="X_DATADISK")
    return world.change("storage_endpoints", NUC_DISK, write_wan="OFF")


def slots() -> World:
    world = one({"currentpriority": 150}, running=5, activated=0)
    return world.add("slots", panda_queue="SITE", numslots=80)


def assigned() -> World:
    return one().data(1).jobs("SITE", assigned=15)


def many(found: Found) -> Any:
    return pytest.approx(101 / (10 + 15 + 10) / found.only["work"], rel=1e-12)


NO_SCALING = {"cpuefficiency": 0.0, "basewalltime": 1000.0}
BY_INPUT = {"outdiskcount": 20, "outdiskunit": "MB", "atom_size": 200 * MB}
NUC_DISK = {"ddm_endpoint_name": "NUC_DATADISK"}
EXPIRED = {"space_free": 100.0, "space_expired": 200.0}
DIFFERENCES = [
    Difference("drop_test_queues", World().queue("MyTest"), "name_test", None),
    Difference("standby_online", one(status="standby"), "status_offline", None),
    Difference("backlog_inclusive", one().link("SITE", queued=150), None, "link_backlog"),
    Difference("backlog_inclusive", one().link("X", queued=10_000), None, "nucleus_backlog"),
    Difference("inactive_counts_starting", starting(), None, "inactive"),
    Difference("direct_asks_task", one({"atom_size": 100 * GB}, maxwdir=20_000.0, direct_access_lan=True), None, "scratch_disk"),
    Difference("diskio_per_core", busy_disk(), "diskio_overload", None, settings={"MAX_DISKIO_DEFAULT": 400}),
    Difference("unknown_walltime_is_short", one({"cputime": None}, mintime=3600), None, "walltime_min"),
    Difference(
        "urgent_is_pattern", one({"processingtype": "evgen-urgent"}).link("SITE", queued=149), "network_weight_low", None,
        settings={"NW_THRESHOLD": 1.7, "NW_WEIGHT_MULTIPLIER": 1, "NW_ACTIVE": True},
    ),
    Difference("memory_by_unit", one({"ramcount": 0, "baseramcount": 4000}, maxrss=2000.0), "memory_max", None),
    Difference("workdisk_adds", small(1950.0), None, "scratch_disk"),
    Difference("workdisk_adds", small(1700.0, workdiskcount=None), "scratch_disk", None),
    Difference("maxwdir_per_core", one(maxwdir=8000.0), "scratch_disk", None),
    Difference("scratch_equal_passes", small(1900.0, workdiskcount=0), "scratch_disk", None),
    Difference("output_of_master", small(3000.0, **BY_INPUT), "scratch_disk", None),
    Difference("free_equal_passes", one().change("storage_endpoints", DISK, space_free=200.0), "storage_space", None),
    Difference("long_queue_by_capacity", one({"use_scout": True}, maxtime=DAY, corepower=5.0), None, "walltime_24h"),
    Difference("long_queue_by_capacity", one({"use_scout": True}, maxtime=DAY // 2, corepower=20.0), "walltime_24h", None),
    Difference("long_queue_by_capacity", one({"is_merging": True}, maxtime=DAY - 1), None, "walltime_24h"),
    Difference("zero_efficiency_rejects", one(NO_SCALING, maxtime=1000), None, "walltime_max"),
    Difference(
        "zero_maxtime_limits", one({"use_scout": True, "basewalltime": 1.0}, maxtime=0), None, "walltime_24h",
        others={"long_queue_by_capacity": True},
    ),
    Difference("other_status_up", one().change("storage_endpoints", DISK, read_lan="BROKEN"), "read_lan_down", None),
    Difference("ip_stack_strict", one({"ipconnectivity": "full"}, wnconnectivity="full#IPv4"), "ip_stack", None),
    Difference(
        "express_from_1000", one({"currentpriority": 1000}).link("SITE", queued=149), "network_weight_low", None,
        settings={"NW_ACTIVE": True},
    ),
    Difference("shortage_counts_starting", cores(), None, "pledge_exceeded", settings={"WORK_SHORTAGE": True}),
    Difference("io_check_strict", much_input(10), "input_to_move", None, of("SOME")),
    Difference("io_check_relents", World(iointensity=201).queue("SITE").data(11), "input_to_move", None),
    Difference("io_check_exempts", much_input(11, is_merging=True), "input_to_move", None, of("SOME")),
    Difference("running_count", no_slots(), 30, 35, lambda found: found.only["nrunning"]),
    Difference("cap_mode", one(running=0, activated=5), "queued_cap", None),
    Difference("merging_freed_by", stuck(), ["A", "B"], ["A"], lambda found: sorted(found.checks())),
    Difference("preassigned_exempt", one({"site": "SITE"}, pilots=0), "no_pilot", None),
    Difference("backlog_spares_nucleus", home().link("X", queued=10_001), "nucleus_backlog", None),
    Difference("test_work_exempt", one({"gshare": "test"}, fairsharepolicy="type=any:0%"), "zero_share", None),
    Difference("memory_by_unit", one({"ramcountunit": "MB"}, maxrss=10_000.0), "memory_max", None),
    Difference("whole_numbers", one({"ramcount": 1111}, maxrss=7999.0), "memory_max", None),
    Difference("local_space", one().change("storage_endpoints", DISK, **EXPIRED), "storage_space", None),
    Difference("datadisk_only", one().change("storage_endpoints", DISK, type=None), None, "read_lan_down"),
    Difference("wan_asked_at_nucleus", input_elsewhere(), None, "write_wan_down"),
    Difference("nucleus_must_send", one().change("storage_endpoints", NUC_DISK, read_wan="OFF"), "nucleus_unwritable", None),
    Difference("transferring_spares", home().jobs("HOME", transferring=2001), "transferring", None),
    Difference("any_negative_t1weight", one({"t1weight": -2}), None, "t1_weight"),
    Difference("pilots_excused", one(pilots=0).add("slots", panda_queue="SITE", numslots=8), "no_pilot", None),
    Difference("counted_jobs", other_share(), "queued_cap", None),
    Difference("slots_per_core", slots(), 80, 10, lambda found: found.only["nrunning"]),
    Difference("many_assigned_plus_one", assigned(), 1.5, 16 / 11, many),
    Difference("nucleus_preferred", home(t1weight=7), 1, 7, lambda found: found.only["t1"]),
    Difference("hardware_preferred", levelled(40.0), 1.0, 1.4, lambda found: found.only["preference"]),
    Difference("jumbo_queues", one(catchall="useJumboJobs"), None, "jumbo_only"),
    Difference("code_only_checks", one().add("locks", panda_queue="SITE"), None, "locked"),
    Difference("network_needs_active", one(), 1.9, 1.0, factor),
    Difference("bootstrap_first", idle(), False, True, lambda found: found.only["bootstrap"]),
    Difference("single_t1_queue", at_home(), None, "t1_not_largest", of("A")),
    Difference(
        "parent_stays_in_list", parent(World(site="SITE"), "SITE", {}), ["SITE/0"], ["SITE", "SITE/0"],
        lambda found: list(found.checks()),
    ),
    Difference("queued_line", one().link("SITE", queued=75, mbps=80.0), 1.775, 1.65, factor, {"NW_ACTIVE": True}),
    Difference("throughput_step_50", one().link("SITE", mbps=60.0), 1.85, 1.8, factor, {"NW_ACTIVE": True}),
    Difference("newest_window_first", last_hour(), 2.0, (2 + 1 + 8 / 11) / 2, factor, {"NW_ACTIVE": True}),
]  # fmt: skip
ALIKE: dict[str, list[Difference]] = {}
"""Differences with the same settings and other switches: their worlds are looked up together, once per rule set."""
for difference in DIFFERENCES:
    ALIKE.setdefault(repr((difference.settings, difference.others)), []).append(difference)


@cache
def looked_up(alike: str, rules: ProductionRules) -> EngineWorld:
    first, *_ = ALIKE[alike]
    worlds = [each.world for each in ALIKE[alike]]
    return BROKERAGE.prepare(merged(worlds).frames(), rules=rules, config=config(**first.settings))


@cache
def decided(alike: str, plain: ProductionRules, rules: ProductionRules) -> list[Found]:
    """Decide differences that are alike: only what ``rules`` change of ``plain`` is looked up anew."""
    world = looked_up(alike, plain)
    now = world if rules is plain else world.with_rules(rules)
    book = Book(rules, False, {})
    found = [Found(each.world, book) for each in ALIKE[alike]]
    answer(found, BROKERAGE.of(now))
    book.waiting.clear()
    return found


@pytest.mark.parametrize(
    "difference", DIFFERENCES, ids=[difference.switch for difference in DIFFERENCES]
)
def test_the_switch_alone_makes_the_difference(difference: Difference) -> None:
    """Every difference of the rule sets is one switch, settable alone."""
    alike = repr((difference.settings, difference.others))
    number = ALIKE[alike].index(difference)
    answers = {
        name: difference.reads(decided(alike, plain, rules)[number])
        for name, (plain, rules) in difference.asked().items()
    }
    assert answers == difference.expected()


def test_every_switch_is_shown_here() -> None:
    """Those of the task brokerage are tested there."""
    of_jobs = set(JobRules.SWITCHES)
    assert {difference.switch for difference in DIFFERENCES} == of_jobs


def everywhere() -> World:
    """Return a full chain at a bare nucleus with queues inside and outside."""
    world = World(fullchain="only", currentpriority=150).queue("OWN", site="NUC").queue("SAT")
    world.queue("IDLE", site="NUC", running=0, activated=0)
    return world.change("nuclei", bare_mode="allow")


TURNED = {
    name: switch.production if switch.production != switch.document else turned
    for name, switch in ProductionRules.SWITCHES.items()
    if name not in JobRules.SWITCHES
    for turned in [next(v for v in (switch.allowed or (True, False)) if v != switch.document)]
}


@told(plain=ask(everywhere(), "document"), turned=ask(everywhere(), ProductionRules(**TURNED)))
def test_switches_of_the_task_brokerage_change_no_job(plain: Found, turned: Found) -> None:
    """full-chain.md 2: rows F-1 to F-6 concern the choice of the nucleus; once there, "nucleus queues only"."""
    assert plain.checks() == {"OWN": None, "SAT": "full_chain_outside", "IDLE": None}
    assert turned.checks() == plain.checks()
    assert turned.ranking == plain.ranking == ["OWN", "IDLE"]


@told(
    both=ask(one(activated=4).jobs("SITE", running=2), "document"),
    limit=ask(one(activated=4).jobs("SITE", running=2), ProductionRules(cap_mode="limit")),
)
def test_the_cap_carried_follows_the_mode(both: Found, limit: Found) -> None:
    """production-jobs.md 8: only with ``limit`` is there a number that may always wait."""
    assert (both.only["nrunningjobscap"], limit.only["nrunningjobscap"]) == (4, 20)
