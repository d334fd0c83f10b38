"""The stabilizer and the weights of analysis-jobs.md 5 and 7, computed by hand."""

from __future__ import annotations

import pytest

from brokerlab.brokerage.analysis_jobs import AnalysisRules
from tests.unit.brokerage.analysis_jobs.toys import SHARE, Found, World, ask
from tests.unit.brokerage.production_jobs.book import cases, told


def _crowded(**task: object) -> World:
    """Return a world where alice has 60 of 300 jobs waiting and 10 of 100 running, with one other user."""
    world = World(**task).queue("Q").jobs("Q", "running", 100).jobs("Q", "activated", 300)
    for user, waiting, running in (("alice", 60, 10), ("bob", 240, 90)):
        world.add(
            "user_job_stats", computingsite="Q", gshare=SHARE, produsername=user, nqueue=waiting,
            nrunning=running,
        )  # fmt: skip
    return world.add("to_run_rate", computingsite="Q", jobs_per_hour=10.0)


CAP_OFF = AnalysisRules(cap_rt_effective=False)


@told(found=ask(_crowded(), CAP_OFF))
def test_max_q_len_of_the_document(found: Found) -> None:
    """nQ_max = max(100, 2 x 100, 12 x 10) = 200; two users share it."""
    row = found.queues()["Q"]
    assert (row["nq_max"], row["user_share"], row["max_q_len"]) == (200.0, 0.5, 100.0)
    assert row["rem_q_len"] == 40.0
    assert not row["user_queue"]


def test_the_row_of_totals_counts_in_production() -> None:
    row = _crowded().decided("production", OVERLOAD_MIN_QUEUE=1000).weighed.row(0, named=True)
    assert row["max_q_len"] == pytest.approx(200 / 3, rel=1e-15)


def _over(rate: float = 10.0) -> World:
    world = _crowded()
    world.rows["user_job_stats"][0]["nqueue"] = 101
    world.rows["to_run_rate"][0]["jobs_per_hour"] = rate
    return world


@cases(
    (ask(_over(), CAP_OFF), "badsite"),
    (ask(_over(), CAP_OFF, BASE_QUEUE_LENGTH_PER_PQ=301), None),  # few jobs wait
    (ask(_over(38.0), CAP_OFF), None),  # 300 < 8 x 38
)
def test_a_user_over_the_limit_marks_the_queue(found: Found, expected: str | None) -> None:
    assert found.checks() == {"Q": expected}


def _starting() -> World:
    return World().queue("Q").jobs("Q", "running", 9).jobs("Q", "starting", 4)


@cases(
    (ask(_starting()), 10 / 5),
    (ask(_starting().add("worker_stats", panda_queue="Q", status="running", n_workers=30)), 21 / 5),
)
def test_the_original_weight(found: Found, expected: float) -> None:
    assert found.queues()["Q"]["orig"] == expected


@cases(
    *(
        (
            ask(
                World(corecount=4)
                .queue("Q", corecount=4)
                .jobs("Q", "running", 9)
                .jobs("Q", "starting", 4)
                .add("slots", panda_queue="Q", numslots=slots),
                rules,
            ),
            running,
        )
        for slots, document, production in ((0, 9, 13), (40, 40, 10), (8, 9, 9))
        for rules, running in (("document", document), ("production", production))
    )
)
def test_slots_count_as_running_jobs(found: Found, expected: int) -> None:
    """9 running and 4 starting jobs in slots of 4 cores."""
    assert found.queues()["Q"]["running"] == expected


def _classed(task_class: int) -> World:
    """Return a world of one queue of each class; alice may have 50 jobs waiting at each, and submits 10."""
    world = World().add("task_class", jeditaskid=1, **{"class": task_class})
    for name, value in (("H", 1), ("M", 0), ("L", -1)):
        world.queue(name).add("site_class", computingsite=name, **{"class": value})
        for user in ("alice", "bob"):
            world.add("user_job_stats", computingsite=name, gshare=SHARE, produsername=user)
    return world


@cases(
    *(
        (ask(_classed(task_class), "production"), budgets)
        for task_class, budgets in (
            (2, (9.948, 0.05, 0.002)),
            (1, (9.948, 0.05, 0.002)),
            (0, (0.001, 9.9, 0.1)),
            (-1, (0.001, 0.001, 10.0)),
        )
    )
)
def test_budgets_by_class(found: Found, expected: tuple[float, ...]) -> None:
    row = found.queues()["H"]
    assert (row["budget_hi"], row["budget_mid"], row["budget_lo"]) == pytest.approx(expected)


@cases(
    (ask(_classed(1)), {"H": 10, "M": 0.05, "L": 0.002}),
    (ask(_classed(0)), {"H": 0.002, "M": 10, "L": 0.05}),
    (ask(_classed(-1)), {"H": 0.002, "M": 0.05, "L": 10}),
)
def test_the_new_weight_of_the_page(found: Found, expected: dict[str, float]) -> None:
    """Each queue has (50 - 10/3) / (150 - 10) of what is left."""
    part = (50 - 10 / 3) / 140
    for name, row in found.queues().items():
        assert row["new_document"] == pytest.approx(expected[name] * part, rel=1e-14)


def _used() -> World:
    world = World().queue("A").queue("B").jobs("A", "running", 5)
    return world.add("sites_used", computingsite="B")


@cases(
    (ask(_used()), ["A"]),
    (ask(_used(), AnalysisRules("production", basic_weight="original")), ["B"]),
)
def test_used_queues_come_first_in_production(found: Found, expected: list[str]) -> None:
    assert [name for name, row in found.queues().items() if row["rank"] == 1] == expected


def _twelve() -> World:
    world = World()
    for number in range(12):
        world.queue(f"Q{number:02}")
    return world


@cases((ask(_twelve()), ["Q10", "Q11"]))
def test_ten_candidates_are_kept(found: Found, expected: list[str]) -> None:
    assert [name for name, check in found.checks().items() if check == "low_weight"] == expected


def test_a_batch_decides_as_one_task_at_a_time() -> None:
    single = []
    batch = _classed(1)
    batch.rows["tasks"].clear()
    for number in (1, 2, 3):
        task = {"jeditaskid": number, "n_jobs_to_submit": 7 * number, "ramcount": 900 * number}
        world = _classed(1)
        world.rows["tasks"] = [world.rows["tasks"][0] | task]
        batch.rows["tasks"].append(world.rows["tasks"][0])
        single += world.decided("production").queues.rows()
    assert batch.decided("production").queues.rows() == single
