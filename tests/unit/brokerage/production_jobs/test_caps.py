"""Caps on queued jobs (6.4, rows 46 and 48), and locks (row 44), with the order of the late checks.

Every test is made from the words that it quotes: of the page where a quotation is not marked, else of the chapter.
"""

from __future__ import annotations

from typing import Any

from tests.brokerage_toys import SHARE, World
from tests.unit.brokerage.production_jobs.book import (
    ADDED,
    Found,
    added,
    ask,
    cases,
    one,
    parent,
    told,
)

PAGE = added(cap_mode="twice_running")
EXPRESS = {"processingtype": "urgent"}
UCORE = {"capability": "ucore"}


def queued(
    running: int = 0, *, rules: Any = ADDED, task: dict[str, Any] | None = None, limit: int | None = None,
    input_here: bool | None = None, queue: dict[str, Any] | None = None, **jobs: int,
) -> Found:  # fmt: skip
    """Ask about a queue with jobs of the task's share.

    Args:
        running: Running jobs.
        rules: Rule set.
        task: Columns of the task.
        limit: NQUEUELIMITSITE of the share.
        input_here: The task has input, which is at the queue or not; null = it has none.
        queue: Columns of the queue.
        **jobs: Waiting jobs by status.
    """
    world = one(task, running=running, activated=0, **(queue or {})).jobs("SITE", **jobs)
    if input_here is not None:
        world.data(1, size=1, here={"SITE": 1} if input_here else {})
    settings = {} if limit is None else {f"NQUEUELIMITSITE_{SHARE}": limit}
    return ask(world, rules, **settings)


@cases(
    (queued(activated=20), None),
    (queued(activated=21), "queued_cap"),
    (queued(activated=10, starting=11), "queued_cap"),
    (queued(10, activated=20), None),
    (queued(10, activated=21), "queued_cap"),
    (queued(100, activated=200), None),
    (queued(100, activated=201), "queued_cap"),
    (queued(100, activated=200, defined=50), None),
    (queued(100, activated=200, assigned=50), None),
    (queued(100, activated=200, assigned=50, input_here=True), None),
    (queued(100, activated=200, assigned=1, input_here=False), "queued_cap"),
    (queued(100, activated=100, assigned=100, input_here=False), None),
    (queued(activated=50, limit=50), None),
    (queued(activated=51, limit=50), "queued_cap"),
    (queued(activated=5, limit=4), "queued_cap"),
    (queued(activated=20, limit=0), None),
    (queued(activated=21, limit=0), "queued_cap"),
    (queued(activated=999, task=EXPRESS), None),
    (queued(activated=999, queue=UCORE), None),
    (queued(activated=999, task={"site": "SITE"}), "queued_cap"),
    (queued(activated=21, task={"is_merging": True}), "queued_cap"),
)
def test_the_cap_of_a_share(found: Found, expected: str | None) -> None:
    """ "Skip queues if activated + starting > 2 × running." Chapter, row 46: "queued = V + T (+ A if useA); skip if queued > max(L, 2 * R). Defined jobs are not counted"."""
    assert found.check == expected


@cases(
    (queued(10, rules=PAGE, activated=20), None),
    (queued(10, rules=PAGE, activated=21), "queued_cap"),
    (queued(10, rules=PAGE, activated=10, starting=11), "queued_cap"),
    (queued(10, rules=PAGE, activated=20, defined=1), "queued_cap"),
    (queued(10, rules=PAGE, activated=15, defined=5), None),
    (queued(10, rules=PAGE, activated=20, assigned=9), None),
    (queued(10, rules=PAGE, activated=20, assigned=9, input_here=True), None),
    (queued(10, rules=PAGE, activated=20, assigned=1, input_here=False), "queued_cap"),
    (queued(10, rules=PAGE, activated=15, assigned=5, input_here=False), None),
    (queued(0, rules=PAGE), None),
    (queued(0, rules=PAGE, activated=1), "queued_cap"),
    (queued(10, rules=PAGE, activated=20, limit=50), None),
    (queued(10, rules=PAGE, activated=21, limit=50), "queued_cap"),
    (queued(10, rules=PAGE, activated=999, task=EXPRESS), "queued_cap"),
    (queued(10, rules=PAGE, activated=21, queue=UCORE), "queued_cap"),
)
def test_the_caps_of_the_page(found: Found, expected: str | None) -> None:
    """ "Skip queues if activated + starting > 2 × running. Skip queues if defined+activated+assigned+starting > 2 × running." Switch `cap_mode`, J26: "no L"."""
    assert found.check == expected


def typed(
    *rows: tuple[str, str, int], running: int = 0, task: dict[str, Any] | None = None, rules: Any = ADDED,
    types: tuple[str, ...] = (), input_here: bool = True, share: str | None = SHARE,
) -> Found:  # fmt: skip
    """Ask about a ucore queue with (resource type, status, number) of jobs; the task is MCORE."""
    world = one(task, running=running, activated=0, **UCORE)
    for kind, status, number in rows:
        place = {"computingsite": "SITE", "gshare": share}
        world.add("job_stats_rt", **place, resource_type=kind, jobstatus=status, njobs=number)
    for kind in types:
        world.add("task_resource_types", jeditaskid=1, computingsite="SITE", resource_type=kind)
    return ask(world.data(1, size=1, here={"SITE": 1} if input_here else {}), rules)


RT = "queued_cap_rt"
WAIT_21 = ("MCORE", "activated", 21)
WAIT_20 = ("MCORE", "activated", 20)


@cases(
    (typed(WAIT_20), None),
    (typed(WAIT_21), RT),
    (typed(WAIT_20, ("MCORE", "starting", 1)), RT),
    (typed(WAIT_20, ("MCORE", "defined", 1)), RT),
    (typed(WAIT_20, ("MCORE", "assigned", 1)), None),
    (typed(WAIT_20, ("MCORE", "assigned", 1), input_here=False), RT),
    (typed(WAIT_21, ("MCORE", "running", 10)), RT),
    (typed(WAIT_21, ("MCORE", "running", 11)), None),
    (typed(WAIT_21, ("MCORE", "running", 3), running=11), None),
    (typed(WAIT_21, running=10), RT),
    (typed(("SCORE", "activated", 999)), None),
    (typed(WAIT_21, share="Other"), None),
    (typed(WAIT_21, share=None), RT),
    (typed(WAIT_21, types=("SCORE",)), None),
    (typed(("SCORE", "activated", 21), types=("SCORE",)), RT),
    (typed(("SCORE", "activated", 11), ("MCORE", "activated", 10), types=("SCORE", "MCORE")), RT),
    (typed(("SCORE", "activated", 11), ("MCORE", "activated", 10)), None),
    (typed(WAIT_21, task=EXPRESS), None),
    (typed(WAIT_21, task={"site": "SITE"}), RT),
    (typed(WAIT_21, rules=PAGE), None),
)
def test_the_cap_of_the_resource_types(found: Found, expected: str | None) -> None:
    """Chapter, row 48: "only if the parent has job_stats_rt rows for one of the task's resource types there: sum over those types of defined + activated + starting (+ assigned if useA) > max(L, 2 * max(running of those types, R))"."""
    assert found.check == expected


@cases(
    (queued(30, activated=7, starting=2), (9, 60)),
    (queued(5, activated=7), (7, 20)),
    (queued(30, activated=7, assigned=4, input_here=True), (7, 60)),
    (queued(30, activated=7, assigned=4, input_here=False), (11, 60)),
    (queued(30, activated=7, defined=4), (7, 60)),
    (queued(30, activated=7, task=EXPRESS), (7, None)),
    (queued(30, activated=7, limit=90), (7, 90)),
    (typed(running=30), (0, 20)),
    (typed(("MCORE", "running", 40), ("MCORE", "defined", 9)), (9, 80)),
    (typed(("MCORE", "running", 40), ("MCORE", "assigned", 9), input_here=False), (9, 80)),
    (typed(("MCORE", "running", 4), running=30), (0, 60)),
    (typed(("MCORE", "running", 40), task=EXPRESS), (0, None)),
)
def test_what_goes_with_a_candidate(found: Found, expected: tuple[int, int | None]) -> None:
    """Chapter 6.4: "The candidate carries nrunningjobscap = max(L, 2 * R) (ucore: 2 * the running of 48, 0 if no rows) and nqueuedjobs (ucore: sum of 48); express: no cap"."""
    assert (found.only["nqueuedjobs"], found.only["nrunningjobscap"]) == expected


@cases(
    (ask(one(maxwdir=16_000.0, corecount=8)), 16_000),
    (ask(one({"corecount": 0}, maxwdir=16_000.0)), 2000),
    (ask(one({"corecount": 0, "eventservice": 1}, maxwdir=16_000.0)), 16_000),
    (ask(one(maxwdir=0.0)), None),
)
def test_the_working_directory_that_a_candidate_offers(
    found: Found, expected: float | None
) -> None:
    """Chapter 4.3: "wdir = maxwdir * t / s", which goes with the candidate."""
    assert found.only["maxwdir"] == expected


# locks


def locked(world: World, *names: str) -> World:
    for name in names:
        world.add("locks", panda_queue=name)
    return world


def two_tasks() -> World:
    return World().queue("A").queue("B").task(2)


@told(
    own=ask(
        two_tasks()
        .add("locks", panda_queue="A", jeditaskid=1)
        .add("locks", panda_queue="B", jeditaskid=2)
    ),
    general=ask(locked(two_tasks(), "A")),
)
def test_queues_locked_by_another_brokerage(own: Found, general: Found) -> None:
    """Chapter, row 44: "locked by another brokerage"; a lock without task holds for every task."""
    assert own.checks() == {"A": "locked", "B": None}
    assert own.checks(2) == {"A": None, "B": "locked"}
    assert general.checks() == general.checks(2) == {"A": "locked", "B": None}


@told(found=ask(locked(parent(World(), "SITE", {}, {}), "SITE", "SITE/1")))
def test_the_lock_of_a_parent_does_not_hold_its_pseudo_queues(found: Found) -> None:
    """The same, by the names of candidates."""
    assert found.checks() == {"SITE/0": None, "SITE/1": "locked"}


def late(
    *, quiet: bool = False, lock: bool = False, data: bool = True, rt: bool = True, **queue: Any
) -> Found:
    """Ask about a queue where everything that is looked at late goes wrong, unless said otherwise."""
    world = World(iointensity=1)
    columns = {"catchall": "use_only_local_data", "activated": 999, "running": 0}
    world.queue("SITE", pilots=0 if quiet else 1, **(columns | queue))
    if rt:
        place = {"computingsite": "SITE", "gshare": SHARE, "jobstatus": "activated"}
        world.add("job_stats_rt", **place, resource_type="MCORE", njobs=999)
    if data:
        world.data(1)
    return ask(locked(world, *["SITE"] * lock), MIN_WEIGHT_managed=1e6)


@cases(
    (late(quiet=True, lock=True), "no_pilot"),
    (late(lock=True), "locked"),
    (late(), "local_data_only"),
    (late(data=False), "queued_cap"),
    (late(catchall=None), "queued_cap"),
    (late(catchall=None, **UCORE), "queued_cap_rt"),
    (late(catchall=None, **UCORE, rt=False), "below_min_weight"),
)
def test_the_late_checks_keep_their_order(found: Found, expected: str) -> None:
    """Chapter 5: "44-52 are tested in this order per queue; the first that holds is the reason"."""
    assert found.check == expected
