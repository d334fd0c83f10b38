"""From weights to candidates: bootstrap, the single queue of negative t1weight, ranks, shares, jumbo (6.5 to 6.7, 7).

Every test is made from the words that it quotes: of the page where a quotation is not marked, else of the chapter.
"""

from __future__ import annotations

import math
from typing import Any

import pytest

from brokerlab.brokerage.rules import ProductionRules
from tests.brokerage_toys import SHARE, World
from tests.unit.brokerage.production_jobs.book import ADDED, Found, added, ask, cases, told

IDLE = {"running": 0, "activated": 0}
LOW = {"currentpriority": 150}
NO_BOOTSTRAP = added(bootstrap_first=False)


def idle(
    task: dict[str, Any] | None = None, /, *, rules: Any = ADDED, settings: dict[str, Any] | None = None,
    live: int = 0, slots: int | None = None, **jobs: int,
) -> Found:  # fmt: skip
    """Ask about A, which is busy, and B, which has no jobs but these."""
    world = World(**(LOW | (task or {}))).queue("A").queue("B", **IDLE).jobs("B", **jobs)
    if live:
        world.add("live", panda_queue="B", njobs=live)
    if slots is not None:
        world.add("slots", panda_queue="B", numslots=slots)
    return ask(world, rules, **(settings or {}))


@cases(
    (idle(), True),
    (idle({"currentpriority": 151}), False),
    (idle({"currentpriority": 151}, settings={"MAX_PRIO_TO_BOOTSTRAP": 151}), True),
    (idle({"currentpriority": None}), True),
    (idle({"is_merging": True}), False),
    (idle({"processingtype": "urgent"}), False),
    (idle(running=1), False),
    (idle(activated=1), False),
    (idle(assigned=1), False),
    (idle(starting=1), False),
    (idle(defined=1), False),
    (idle(live=1), False),
    (idle(slots=8), False),
    (idle(slots=0), True),
    (idle(settings={"MIN_WEIGHT_managed": 1e-9}), True),
    (idle({"site": "A,B"}), True),
    (idle(rules="production"), True),
    (idle(rules=NO_BOOTSTRAP), False),
)
def test_queues_without_any_job_stand_first(found: Found, expected: bool) -> None:
    """Chapter 6.5: "R + V + A + T + D = 0, prio <= MAX_PRIO_TO_BOOTSTRAP, not merging, not express: weight := 0 ... stands **before** all others in the ranking"; J29 is the switch."""
    row = found.queues()["B"]
    assert row["bootstrap"] is expected
    assert found.ranking == (["B", "A"] if expected else ["A", "B"])
    assert (row["weight"] == 0) is expected


@told(found=idle(settings={"MIN_WEIGHT_managed": 1e9}))
def test_bootstrap_goes_whatever_the_least_weight_says(found: Found) -> None:
    """Chapter 6.5: "the queue becomes a candidate whatever checks 50-51 say"."""
    assert found.checks() == {"A": "below_min_weight", "B": None}


def held_back() -> World:
    """Return queues without jobs of the share: one is locked, the other is full by its resource types."""
    world = World(**LOW).queue("A", **IDLE).queue("B", **IDLE).add("locks", panda_queue="A")
    place = {"computingsite": "B", "gshare": SHARE, "jobstatus": "activated"}
    return world.add("job_stats_rt", **place, resource_type="MCORE", njobs=21)


@told(found=ask(held_back()))
def test_a_lock_and_a_cap_hold_a_queue_without_jobs_too(found: Found) -> None:
    """Chapter 5: bootstrap is row 49, after the lock (44) and the caps (46, 48)."""
    assert found.checks() == {"A": "locked", "B": "queued_cap_rt"}


# ranks


def crowd(*running: int, task: dict[str, Any] | None = None, **queue: Any) -> World:
    """Return queues Q00, Q01... with so many running jobs and none waiting; no nucleus."""
    world = World(**({"nucleus": None} | (task or {})))
    for number, jobs in enumerate(running):
        world.queue(f"Q{number:02}", running=jobs, activated=0, **queue)
    return world


@told(found=ask(crowd(*range(1, 13))))
def test_the_best_ten_are_taken(found: Found) -> None:
    """ "the remaining candidates are sorted by weight, and the best 10 candidates are taken"."""
    assert found.ranking == [f"Q{number:02}" for number in range(11, 1, -1)]
    checks = found.checks()
    assert (checks["Q00"], checks["Q01"], checks["Q02"]) == ("rank", "rank", None)
    rows = found.queues()
    assert (rows["Q00"]["rank"], rows["Q00"]["weight"]) == (None, pytest.approx(0.2))
    assert found.task["n_candidates"] == 10


@told(found=ask(crowd(5, 9, 5, 9, 5)))
def test_equal_weights_are_ranked_by_name(found: Found) -> None:
    """Chapter 6.7: "ties by panda_queue ascending"."""
    assert found.ranking == ["Q01", "Q03", "Q00", "Q02", "Q04"]


@told(two=ask(crowd(0, *range(1, 11), 0, task=LOW)), many=ask(crowd(*[0] * 11, 99, task=LOW)))
def test_bootstrap_takes_places_among_the_ten(two: Found, many: Found) -> None:
    """Chapter 6.7: "Weight 0 first, then weight descending ... First 10 are the candidates"."""
    assert two.ranking == ["Q00", "Q11", *(f"Q{number:02}" for number in range(10, 2, -1))]
    assert many.ranking == [f"Q{number:02}" for number in range(10)]
    assert (many.checks()["Q10"], many.checks()["Q11"]) == ("rank", "rank")


# shares


@told(two=ask(crowd(1, 5)), twelve=ask(crowd(*range(1, 13))))
def test_jobs_are_spread_in_proportion_to_weight(two: Found, twelve: Found) -> None:
    """Chapter 7: "For a deterministic replay report the expected shares w_i / sum(w)"."""
    shares = {name: row["share"] for name, row in two.queues().items()}
    assert shares == pytest.approx({"Q00": 2 / 8, "Q01": 6 / 8})
    found = twelve.queues()
    assert found["Q00"]["share"] is None
    assert math.fsum(row["share"] or 0 for row in found.values()) == pytest.approx(1)


@told(one=ask(crowd(0, 5, task=LOW)), four=ask(crowd(0, 0, 0, 0, task=LOW)))
def test_a_share_where_all_weights_are_zero(one: Found, four: Found) -> None:
    """Chapter 7: "first each weight-0 candidate once (random order)": none goes before another."""
    assert {name: row["share"] for name, row in one.queues().items()} == {"Q00": 0.0, "Q01": 1.0}
    assert [row["share"] for row in four.queues().values()] == [0.25] * 4


# negative t1weight


def at_home(
    rules: Any = "production", task: dict[str, Any] | None = None, **running: tuple[int, int]
) -> Found:
    """Ask about queues of the nucleus with (jobs of the share, jobs of another share) running; 0, 0 has no job at all."""
    world = World(**({"t1weight": -1} | LOW | (task or {})))
    for name, (own, other) in running.items():
        world.queue(name, site="NUC", running=own, activated=int(own > 0))
        world.jobs(name, gshare="Other", running=other)
    return ask(world, rules)


NOT = "t1_not_largest"


@cases(
    (at_home(A=(5, 0), B=(9, 0), C=(7, 0)), {"A": NOT, "B": None, "C": NOT}),
    (at_home(A=(5, 0), B=(9, 0), C=(1, 9)), {"A": NOT, "B": NOT, "C": None}),
    (at_home(A=(9, 0), B=(9, 0)), {"A": None, "B": NOT}),
    (at_home(A=(0, 0), B=(9, 0), C=(0, 0)), {"A": NOT, "B": None, "C": None}),
    (at_home(A=(0, 0), B=(0, 0)), {"A": None, "B": None}),
    (at_home("document", A=(5, 0), B=(9, 0)), {"A": None, "B": None}),
    (at_home(added(single_t1_queue=True), A=(5, 0), B=(9, 0)), {"A": NOT, "B": None}),
    (at_home(ProductionRules("production", single_t1_queue=False), A=(5, 0), B=(9, 0)), {"A": None, "B": None}),
    (at_home(task={"t1weight": 1}, A=(5, 0), B=(9, 0)), {"A": None, "B": None}),
    (at_home(task={"is_merging": True}, A=(5, 0), B=(9, 0)), {"A": None, "B": None}),
)  # fmt: skip
def test_a_negative_t1weight_leaves_one_queue(
    found: Found, expected: dict[str, str | None]
) -> None:
    """Chapter 6.6: "keep only the one with the largest running over *all* shares and tags (first in name order on ties); a queue found to be larger also evicts bootstrap queues met before it"; J30: "a switch, default off"."""
    assert found.checks() == expected


def locked_largest() -> World:
    world = World(t1weight=-1).queue("A", site="NUC", running=5).queue("B", site="NUC", running=9)
    return world.add("locks", panda_queue="B")


@told(found=ask(locked_largest(), "production"))
def test_the_single_queue_is_one_that_no_check_removes(found: Found) -> None:
    """Chapter 6.6: "Among queues reaching 51"."""
    assert found.checks() == {"A": None, "B": "locked"}


# jumbo


def with_jumbo() -> World:
    world = crowd(*range(1, 12), task={"usejumbo": "W"})
    return world.queue("JUMBO", running=99, activated=0, catchall="useJumboJobs")


@told(found=ask(with_jumbo()))
def test_jumbo_queues_of_a_jumbo_task_take_no_place(found: Found) -> None:
    """Chapter 6.7: "Jumbo queues of a jumbo task are candidates for jumbo jobs outside the limit of 10"."""
    row = found.queues()["JUMBO"]
    assert (row["check"], row["rank"], row["jumbo"]) == (None, None, True)
    assert row["weight"] == pytest.approx(10.0)
    assert found.ranking == [f"Q{number:02}" for number in range(10, 0, -1)]
    assert found.task["n_candidates"] == 11


def full_jumbo() -> World:
    """Return queues for jumbo jobs: full, locked, without pilots, offline, and one for normal jobs that is full."""
    world = World(usejumbo="W").queue("A", catchall="useJumboJobs", activated=999, running=1)
    world.queue("B", catchall="useJumboJobs").add("locks", panda_queue="B")
    world.queue("C", catchall="useJumboJobs", pilots=0)
    world.queue("D", catchall="useJumboJobs", status="offline")
    return world.queue("E", activated=999, running=1)


@told(found=ask(full_jumbo(), "production", MIN_WEIGHT_managed=1e9))
def test_locks_caps_and_least_weight_hold_no_jumbo_job(found: Found) -> None:
    """production-jobs.md 8: locks, caps and the least weight are of a queue's normal jobs; the other checks hold, but for
    pilots (row 42).
    """
    expected = {"A": None, "B": None, "C": None, "D": "status_offline", "E": "queued_cap"}
    assert found.checks() == expected
    assert [row["jumbo"] for row in found.queues().values() if row["check"] is None] == [True] * 3
