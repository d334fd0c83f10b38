"""What comes before the checks: outcomes of the whole task (section 2) and which queues are looked at (section 3).

Every test is made from the words that it quotes: of the page where a quotation is not marked, else of the chapter.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from tests.brokerage_toys import AT, World
from tests.unit.brokerage.production_jobs.book import ADDED, Found, ask, cases, one, parent, told

HOUR = timedelta(hours=1)

# outcomes of the task


@cases(
    (ask(one({"nucleus": "NOWHERE"})), "unknown_nucleus"),
    (ask(one({"nucleus": "NOWHERE"}), hint=True), "candidates"),
    (ask(one({"nucleus": "SAT"}).nucleus("SAT", role="satellite")), "candidates"),
    (ask(one({"nucleus": None})), "candidates"),
    (ask(one({"nucleus": ""})), "candidates"),
)
def test_the_nucleus_must_be_known(found: Found, expected: str) -> None:
    """Chapter, B1: "not hint mode, and nucleus is neither a nucleus nor a satellite: task fails this cycle"."""
    assert found.task["outcome"] == expected
    assert (found.task["n_queues"] == 0) is (expected == "unknown_nucleus")


def reading(task: dict[str, Any] | None = None, /, **replica: Any) -> World:
    """Return a world whose task reads 100 files of a dataset, complete at the nucleus unless said otherwise."""
    world = one(task).data(100, size=1, here={"SITE": 100})
    return world.change("replicas", **replica)


def limits(missing: int, percent: int) -> dict[str, Any]:
    return {"MAX_MISSING_INPUT_FILES": missing, "MIN_INPUT_COMPLETENESS": percent}


@cases(
    (ask(reading()), "candidates"),
    (ask(reading(found=90)), "candidates"),
    (ask(reading(found=89)), "input_incomplete"),
    (ask(reading(found=89), **limits(11, 90)), "candidates"),
    (ask(reading(found=89), **limits(10, 89)), "candidates"),
    (ask(reading(found=0, total=5)), "input_incomplete"),
    (ask(reading(vp=True)), "input_incomplete"),
    (ask(reading(found=89), hint=True), "input_incomplete"),
    (ask(reading({"inputprestaging": True}, found=0)), "candidates"),
    (ask(reading(found=89).change("datasets", distributed=True)), "candidates"),
    (ask(reading().change("replicas", datasetname="another")), "input_incomplete"),
    (ask(one()), "candidates"),
)
def test_input_must_be_complete_somewhere(found: Found, expected: str) -> None:
    """Chapter, B2: "found = total, or (found > 0 and (total - found <= MAX_MISSING_INPUT_FILES or 100 * found / total >= MIN_INPUT_COMPLETENESS))"; "not VP"; "task not inputprestaging"; "non-distributed"."""
    assert found.task["outcome"] == expected


def unreadable(rules: Any = ADDED, **statuses: Any) -> Found:
    place = {"ddm_endpoint_name": "NUC_DATADISK"}
    return ask(reading({"nucleus": None}).change("storage_endpoints", place, **statuses), rules)


@cases(
    (unreadable(read_lan="OFF"), "candidates"),
    (unreadable(read_lan="OFF", read_wan="OFF"), "input_incomplete"),
    (unreadable(read_lan="TEST", read_wan="OFF"), "input_incomplete"),
    (unreadable(read_lan=None, read_wan="OFF"), "no_candidates"),
    (unreadable(read_lan="BROKEN", read_wan="OFF"), "input_incomplete"),
    (unreadable("production", read_lan="BROKEN", read_wan="OFF"), "no_candidates"),
)
def test_complete_input_must_be_readable(found: Found, expected: str) -> None:
    """Chapter, B3: "complete replicas exist, but every one is unreadable over both LAN and WAN"; "the diagnosis names the endpoints"."""
    assert found.task["outcome"] == expected
    if expected == "input_incomplete":
        assert "NUC_DATADISK" in found.task["detail"]
    if expected == "no_candidates":
        assert found.check == "source_down"


@cases(
    (ask(one(status="offline")), AT + HOUR),
    (ask(reading(found=1)), AT + HOUR),
    (ask(one()), None),
)
def test_a_task_without_candidates_waits_an_hour(found: Found, expected: datetime | None) -> None:
    """ "If all queues are skipped, the task is pending for 1 hour." """
    assert found.task["pending_until"] == expected


# candidates


@cases(
    *[(ask(World().queue("SITE", type=kind)), ["SITE"]) for kind in ("production", "unified", None)],
    (ask(World().queue("SITE", type="analysis")), []),
    (ask(World().queue("SITE", type="analysis", catchall="grandly_unified")), ["SITE"]),
    (ask(World(site="SITE").queue("SITE", type="analysis")), ["SITE"]),
)  # fmt: skip
def test_queues_that_run_production(found: Found, expected: list[str]) -> None:
    """Chapter 3: "all queues of the cloud that run production (production, unified, catchall grandly_unified)"."""
    assert list(found.checks()) == expected


def unified(rules: Any = ADDED, **task: Any) -> Found:
    world = parent(World(**task), "SITE", {}, {"status": "offline"}).queue("OTHER")
    return ask(world, rules)


@cases(
    (unified(), {"SITE/0": None, "SITE/1": "status_offline", "OTHER": None}),
    (unified(site="SITE"), {"SITE/0": None, "SITE/1": None}),
    (unified(site="SITE/1"), {"SITE/1": None}),
    (unified(site="SITE, OTHER"), {"SITE/0": None, "SITE/1": None, "OTHER": None}),
    (unified(site="SITE,SITE/0"), {"SITE/0": None, "SITE/1": None}),
    (unified("production"), {"SITE/0": None, "SITE/1": "status_offline", "OTHER": None}),
    (unified("production", site="SITE"), {"SITE": None, "SITE/0": None, "SITE/1": None}),
)
def test_unified_queues_stand_for_their_pseudo_queues(
    found: Found, expected: dict[str, str | None]
) -> None:
    """ "A list of pre-assigned queues. Unified queues are resolved to pseudo-queues." J37: production keeps "the parent itself"."""
    assert found.checks() == expected


@cases((ask(one({"site": "GONE"})), {}), (ask(one({"site": "GONE,SITE"})), {"SITE": None}))
def test_a_list_of_unknown_queues_is_a_list(found: Found, expected: dict[str, str | None]) -> None:
    """Chapter 3: "task.site set: the listed queues"."""
    assert found.checks() == expected
    assert found.task["outcome"] == ("candidates" if expected else "no_candidates")


def flagged(site: str | None) -> Found:
    """Ask about a queue that a list spares (offline) and one that only a single name spares (1 core)."""
    return ask(World(site=site).queue("A", status="offline").queue("B", corecount=1))


@cases(
    (flagged("A,B"), {"A": None, "B": "core_count"}),
    (flagged("A"), {"A": None}),
    (flagged("B"), {"B": None}),
    (flagged(None), {"A": "status_offline", "B": "core_count"}),
)
def test_one_queue_is_site_preassigned_and_several_are_a_list(
    found: Found, expected: dict[str, str | None]
) -> None:
    """Chapter 3: "one queue: site_preassigned; several: list_preassigned"."""
    assert found.checks() == expected


# merging near the pre-merged files


def premerged(
    rules: Any = ADDED, *, home: str = "HOME", home_type: str = "production", **task: Any
) -> World:
    """Return queues that read the default output storage of HOME, or do not."""
    world = World(is_merging=True, preassigned_site=home, **task)
    for name, columns in {
        "HOME": {"type": home_type, "status": "offline"}, "READS": {}, "OFF": {"status": "brokeroff"},
        "ANALY": {"type": "analysis"}, "BOTH": {"type": "unified"}, "WRITES": {}, "APART": {},
    }.items():  # fmt: skip
        world.queue(name, **columns)
    for name, direction in [
        ("READS", "input"), ("OFF", "input"), ("ANALY", "input"), ("BOTH", "input"), ("WRITES", "output"),
    ]:  # fmt: skip
        place = {"panda_queue": name, "direction": direction, "ddm_endpoint_name": "HOME_DATADISK"}
        world.add("queue_endpoints", **place, is_default=False)
    return world


@cases(
    (ask(premerged()), ["BOTH", "HOME", "READS"]),
    (ask(premerged(home_type="unified")), ["BOTH", "HOME"]),
    (ask(premerged(home_type="analysis")), ["HOME"]),
    (ask(premerged(home="GONE")), []),
    (ask(premerged(site="APART")), ["BOTH", "HOME", "READS"]),
)
def test_merging_is_bound_to_the_pre_merged_files(found: Found, expected: list[str]) -> None:
    """ "merge jobs are pre-assigned to avoid transferring small pre-merged files". Chapter 3: "that queue + every online queue of compatible type that has its default output endpoint among its inputs: list_preassigned"."""
    assert sorted(found.checks()) == expected
    assert set(found.checks().values()) <= {None}


def premerged_at_unified(rules: str) -> Found:
    """Ask about files of a unified queue, whose storage it reads, as does another unified queue."""
    world = parent(
        World(is_merging=True, preassigned_site="SITE"), "SITE", {}, {"status": "offline"}
    )
    parent(world, "READS", {}, {"status": "offline"})
    place = {"panda_queue": "READS", "direction": "input", "ddm_endpoint_name": "SITE_DATADISK"}
    return ask(world.add("queue_endpoints", **place), rules)


@cases(
    (premerged_at_unified("document"), ["READS/0", "SITE/0", "SITE/1"]),
    (premerged_at_unified("production"), ["READS", "READS/0", "SITE", "SITE/0"]),
)
def test_merging_near_a_unified_queue_is_done_by_pseudo_queues(
    found: Found, expected: list[str]
) -> None:
    """ "Unified queues are resolved to pseudo-queues." J37: production keeps parents."""
    assert list(found.checks()) == expected


def two_storages() -> World:
    """Return a queue that reads one storage and writes another, each of which is read by one more."""
    world = World(is_merging=True, preassigned_site="HOME").queue("HOME").queue("IN").queue("OUT")
    world.endpoint("OUT_DISK").change(
        "queue_endpoints",
        {"panda_queue": "HOME", "direction": "output"},
        ddm_endpoint_name="OUT_DISK",
    )
    for reader, disk in (("IN", "HOME_DATADISK"), ("OUT", "OUT_DISK")):
        place = {"panda_queue": reader, "direction": "input", "ddm_endpoint_name": disk}
        world.add("queue_endpoints", **place)
    return world


@told(found=ask(two_storages()))
def test_the_output_storage_of_the_pre_merge_queue_counts(found: Found) -> None:
    """Chapter 3: "every online queue of compatible type that has its default output endpoint among its inputs"."""
    assert sorted(found.checks()) == ["HOME", "OUT"]


def waiting(
    *, created: float | None = 48, modified: float | None = 25, frozen: float | None = 7
) -> Found:
    """Ask about merging whose dataset was made and touched, and whose task froze, so many hours ago."""
    times = {
        "master_creationtime": created, "master_modificationtime": modified, "frozentime": frozen,
    }  # fmt: skip
    ago = {name: None if hours is None else AT - hours * HOUR for name, hours in times.items()}
    return ask(premerged(**ago))


BOUND, FREE = ["BOTH", "HOME", "READS"], ["APART", "BOTH", "READS", "WRITES"]


@cases(
    (waiting(), FREE),
    (waiting(modified=24), BOUND),
    (waiting(modified=24.01), FREE),
    (waiting(frozen=6), BOUND),
    (waiting(frozen=6.01), FREE),
    (waiting(created=25, modified=25), BOUND),
    (waiting(frozen=None), BOUND),
    (waiting(modified=None), BOUND),
)
def test_the_binding_is_ignored_after_24_hours(found: Found, expected: list[str]) -> None:
    """ "the pre-assignment is ignored if the relevant queues have been skipped for 24 hours". Chapter 3: "master modified, and not at creation, > 24 h ago, and task frozen > 6 h ago: all queues of the cloud"."""
    kept = [name for name, check in found.checks().items() if check is None]
    assert sorted(kept) == expected


# hint mode


def hinted(world: World, **settings: Any) -> Found:
    return ask(world, hint=True, **settings)


def many_ways() -> World:
    """Return queues of which two cannot run the task, and two only not now."""
    world = World(iointensity=1000).queue("GOOD").queue("SMALL", maxrss=1).queue("QUIET", pilots=0)
    world.queue("BUSY", activated=9999).queue("BACKLOG").link("BACKLOG", queued=9999)
    return world.data(200, here={"GOOD": 200}).add("locks", panda_queue="GOOD")


@told(found=hinted(many_ways()))
def test_hint_mode_says_which_queues_could_run_it(found: Found) -> None:
    """Chapter, purpose: "A second mode (hint) answers only 'which queues could run it', for task brokerage"; 5: "hint mode: remove temporary ones, return the list"."""
    checks = {"SMALL": "memory_max", "QUIET": "no_pilot"}
    assert found.checks() == {"GOOD": None, "BUSY": None, "BACKLOG": None, **checks}
    assert found.task["n_candidates"] == 3
    assert {row["rank"] for row in found.queues().values()} == {None}
    assert found.task["outcome"] == "candidates"


def bare_and_listed() -> World:
    world = World(site="A", fullchain="only").queue("A").queue("B", catchall="bareNucleus=only")
    return world.queue("OFF", status="offline").change("nuclei", bare_mode="only")


@told(found=hinted(bare_and_listed()))
def test_hint_mode_knows_no_list_and_no_nucleus(found: Found) -> None:
    """Chapter 3: "hint mode: queues handed in; flag: none"; 1.1: "nucleus null: no network rules (hint mode: must be null)"."""
    assert found.checks() == {"A": None, "B": None, "OFF": "status_offline"}


def near_some_nucleus() -> World:
    """Return queues of a nucleus, of a satellite, sharing the nucleus's storage, and for tests; many jobs are moved."""
    world = World(t1weight=-1, nucleus=None).queue("AT", site="NUC").queue("SHARING")
    world.nucleus("SAT", role="satellite", queues=["SAT"]).queue("SAT").queue("Testing", site="NUC")
    place = {"panda_queue": "AT", "direction": "input", "ddm_endpoint_name": "SHARING_DATADISK"}
    for name in ("AT", "SHARING", "SAT"):
        world.jobs(name, transferring=2001)
    return world.add("queue_endpoints", **place)


@told(found=hinted(near_some_nucleus()))
def test_in_hint_mode_queues_near_any_nucleus_count_as_near(found: Found) -> None:
    """ "All queues while excluding any queue with case-insensitive 'test' in the name"; "Use only the queues associated with the nucleus if the task sets t1Weight=-1": which one it will be is not known yet."""
    far = {"SAT": "t1_weight", "Testing": "name_test"}
    assert found.checks() == {"AT": None, "SHARING": None} | far


@told(found=hinted(one(status="offline")))
def test_hint_mode_without_any_queue_fails(found: Found) -> None:
    """Chapter 8: "Hint mode: failure"."""
    assert (found.task["outcome"], found.task["stage"]) == ("no_candidates", "status_offline")


# what emptied the list


@cases(
    (ask(World().queue("A", maxrss=1).queue("B", status="offline")), "memory_max"),
    (ask(World().queue("A", pilots=0).queue("B", status="offline")), "temporary problem"),
    (ask(World(t1weight=-1).queue("A", site="NUC", pilots=0).queue("B")), "temporary problem"),
    (ask(World().queue("A", activated=999).queue("B", pilots=0)), "queued_cap"),
    (ask(World().queue("A", status="offline")), "status_offline"),
    (ask(World().queue("A")), None),
)
def test_the_stage_that_emptied_the_list(found: Found, expected: str | None) -> None:
    """Chapter 8: "A replay records outcome ... and the stage that emptied the list"."""
    assert found.task["stage"] == expected


@told(found=ask(World()))
def test_a_grid_without_queues(found: Found) -> None:
    """Chapter 5: "If a step leaves nothing the task is pending"."""
    assert (found.task["outcome"], found.task["n_queues"]) == ("no_candidates", 0)
