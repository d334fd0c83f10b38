"""The number of running jobs that weight and caps are made of (6.2), under both rule sets.

Every test is made from the words that it quotes: of the page where a quotation is not marked, else of the chapter.
"""

from __future__ import annotations

from typing import Any

from tests.brokerage_toys import SHARE, World
from tests.unit.brokerage.production_jobs.book import ADDED, Found, ask, cases, one, parent, told

NO_CAP = {f"NQUEUELIMITSITE_{SHARE}": 100_000}


def having(
    running: int, *, workers: int = 0, slots: int | None = None, start: int = 0, cores: int = 8,
    rules: Any = ADDED, pilots: int = 10, task: dict[str, Any] | None = None, **queue: Any,
) -> Found:  # fmt: skip
    """Ask about a queue with running jobs, batch workers, slots set, and starting jobs.

    Args:
        running: Running jobs.
        workers: Running workers; one more is submitted where there are any, and a hundred are finished.
        slots: Slots set; null = none are.
        start: Starting jobs.
        cores: Cores of the queue.
        rules: Rule set.
        pilots: Pilots of the last 3 hours.
        task: Columns of the task.
        **queue: Columns of the queue.
    """
    world = World(**({"currentpriority": 150, "corecount": 0} | (task or {})))
    world.queue("SITE", running=running, activated=1, pilots=pilots, corecount=cores, **queue)
    world.jobs("SITE", starting=start)
    if workers:
        for status, number in (("running", workers - 1), ("submitted", 1), ("finished", 100)):
            place = {"panda_queue": "SITE", "resource_type": "MCORE", "status": status}
            world.add("worker_stats", **place, n_workers=number)
    if slots is not None:
        world.add("slots", panda_queue="SITE", numslots=slots)
    return ask(world, rules, **NO_CAP)


@cases(
    (having(5), 5),
    (having(5, workers=15), 15),
    (having(5, workers=30), 20),
    (having(19, workers=30), 20),
    (having(20, workers=30), 20),
    (having(25, workers=30), 25),
    (having(15, workers=15), 15),
    (having(15, workers=14), 15),
    (having(0, workers=1), 1),
    (having(5, workers=15, pilots=0, slots=0), 15),
)
def test_batch_workers_count_up_to_twenty(found: Found, expected: int) -> None:
    """ "min(nBatchJob, 20) if Rreal < 20 and nBatchJob (the number of running+submitted batch workers at PQ) > Rreal." """
    assert found.only["nrunning"] == expected


@cases(
    (having(5, slots=80), 10),
    (having(5, slots=87), 10),
    (having(5, slots=39), 5),
    (having(5, slots=30, cores=0), 30),
    (having(5, slots=30, cores=1), 30),
    (having(5, slots=80, workers=15), 15),
    (having(5, slots=800, workers=15), 100),
    (having(5, slots=80, start=90), 10),
    (having(5, slots=800, task={"currentpriority": 999}), 100),
)
def test_slots_count_by_their_cores(found: Found, expected: int) -> None:
    """ "numSlots if it is set to a positive number for the queue to the proactive job assignment." J24: "slots divided by corecount"."""
    assert found.only["nrunning"] == expected


@cases(
    (having(5, slots=0, start=30), 30),
    (having(5, slots=0, start=4), 5),
    (having(5, slots=None, start=30), 5),
    (having(5, slots=0, start=12, workers=15), 15),
    (having(5, slots=0, start=30, task={"currentpriority": 999}), 30),
)
def test_starting_jobs_count_where_slots_are_zero(found: Found, expected: int) -> None:
    """ "The number of starting jobs if numSlots is set to zero"; "uses the largest one as the number of running jobs"."""
    assert found.only["nrunning"] == expected


STREAMS = {"capability": "ucore", "workflow": "pull_ups", "rules": "production"}
PRODUCTION = {"rules": "production"}
URGENT = {"task": {"currentpriority": 151}}


@cases(
    (having(5, workers=15, **STREAMS), 15),
    (having(5, workers=30, **STREAMS), 20),
    (having(20, workers=30, **STREAMS), 20),
    (having(15, workers=3, **STREAMS), 15),
    (having(5, workers=15, **PRODUCTION), 5),
    (having(5, workers=15, capability="ucore", **PRODUCTION), 5),
    (having(5, workers=15, workflow="pull_ups", **PRODUCTION), 5),
    (having(5, workers=15, **STREAMS, **URGENT), 5),
    (having(5, workers=15, **STREAMS, pilots=0, slots=0), 5),
    (having(5, workers=15, **STREAMS, task={"site": "SITE"}), 5),
    (having(5, slots=80, **PRODUCTION), 10),
    (having(5, slots=80, **PRODUCTION, **URGENT), 5),
    (having(5, slots=0, start=30, **PRODUCTION), 35),
    (having(5, slots=0, start=30, **PRODUCTION, **URGENT), 5),
    (having(5, slots=0, start=30, workers=15, **STREAMS), 45),
    (having(5, slots=800, workers=15, **STREAMS), 100),
    (having(5, slots=30, cores=0, **PRODUCTION), 30),
    (having(5, slots=None, start=30, **PRODUCTION), 5),
)
def test_production_counts_under_conditions(found: Found, expected: int) -> None:
    """Chapter 6.2: "if pilots > 0, R < 20, W > R, queue is ucore + pull_ups, prio <= MAX_PRIO_TO_BOOTSTRAP, then R = W"; "prio > MAX_PRIO_TO_BOOTSTRAP: ignored; n = 0: R = R + starting; n > 0: R = max(int(n / corecount), R)"."""
    assert found.only["nrunning"] == expected


def bootstraps_at(priority: int) -> Found:
    world = one({"currentpriority": 300}, running=5).add("slots", panda_queue="SITE", numslots=800)
    return ask(world, "production", MAX_PRIO_TO_BOOTSTRAP=priority)


@cases((bootstraps_at(300), 100), (bootstraps_at(299), 5))
def test_the_priority_that_may_bootstrap_is_a_setting(found: Found, expected: int) -> None:
    """Chapter 1.7: "MAX_PRIO_TO_BOOTSTRAP | 150 | priority"."""
    assert found.only["nrunning"] == expected


def slotted(*rows: tuple[str | None, str | None, int], **task: Any) -> Found:
    world = one(task, running=1, activated=0)
    for share, kind, number in rows:
        place = {"panda_queue": "SITE", "gshare": share, "resourcetype": kind}
        world.add("slots", **place, numslots=8 * number)
    return ask(world)


@cases(
    (slotted((None, None, 9)), 9),
    (slotted((SHARE, None, 7), (None, None, 9)), 7),
    (slotted(("Other", None, 7), (None, None, 9)), 9),
    (slotted((SHARE, "MCORE", 5), (SHARE, None, 7)), 5),
    (slotted((SHARE, "SCORE", 5), (SHARE, None, 7)), 7),
    (slotted((SHARE, "SCORE", 5), (None, None, 9)), 1),
    (slotted((SHARE, "SCORE", 5), (SHARE, "MCORE", 7), resource_type=None), 12),
)
def test_slots_are_looked_up_by_share_then_by_type(found: Found, expected: int) -> None:
    """Chapter 6.2: "lookup: tag, else null gshare; then resource_type, else null type; a null task type sums"."""
    assert found.only["nrunning"] == expected


QUEUE_7 = {"workqueue_id": 7}


def queued_by(*, jobseed: str = "all", resource: bool = True, **task: Any) -> Found:
    """Ask about a task of work queue 7: 11 jobs of its share run, 22 of the queue, 33 of the share outside such queues."""
    world = one(QUEUE_7 | task, running=11, activated=0, jobseed=jobseed)
    place = {"computingsite": "SITE", "jobstatus": "running"}
    world.add("job_stats_workqueue", workqueue_id=7, njobs=22, **place)
    world.add("job_stats_workqueue", workqueue_id=8, njobs=44, **place)
    world.add("job_stats_gshare_only", gshare=SHARE, njobs=33, **place)
    world.add("resource_work_queues", workqueue_id=7 if resource else 8, queue_name="Resource")
    return ask(world)


ES_900 = {"eventservice": 1, "currentpriority": 900}


@cases(
    (queued_by(), 22),
    (queued_by(resource=False), 11),
    (queued_by(workqueue_id=None), 11),
    (queued_by(jobseed="eshigh", **ES_900), 33),
    (queued_by(jobseed="es", **ES_900), 22),
    (queued_by(jobseed="eshigh"), 22),
    (queued_by(jobseed="eshigh", eventservice=1, use_scout=True), 33),
    (queued_by(jobseed="eshigh", currentpriority=900), 22),
    (queued_by(jobseed="eshigh", resource=False, **ES_900), 11),
)
def test_jobs_are_counted_by_share_or_work_queue(found: Found, expected: int) -> None:
    """Chapter 6: "tag = gshare, or the resource work queue of the task. Exception: for a task of a resource work queue with es and (prio >= 900 or scout), queues of jobseed eshigh are counted by gshare"."""
    assert found.only["nrunning"] == expected


def of_parent() -> World:
    world = parent(World(corecount=0), "SITE", {"corecount": 8}, {"corecount": 1}, running=9)
    return world.add("slots", panda_queue="SITE", numslots=80)


@told(found=ask(of_parent()))
def test_pseudo_queues_count_the_jobs_of_their_parent(found: Found) -> None:
    """Chapter 6: "Per pseudo-queue; statistics by parent name"; slots are divided by the cores of each."""
    rows = found.queues()
    assert {name: row["nrunning"] for name, row in rows.items()} == {"SITE/0": 10, "SITE/1": 80}


@told(found=ask(one(running=3, activated=0).jobs("SITE", gshare="Other", running=50)))
def test_jobs_of_another_share_do_not_count(found: Found) -> None:
    """Chapter 6.2: "R = running of tag"."""
    assert found.only["nrunning"] == 3
