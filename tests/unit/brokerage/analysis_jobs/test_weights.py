"""The stabilizer and the weights of analysis-jobs.md 5 and 7, computed by hand."""

from __future__ import annotations

import pytest

from brokerlab.brokerage.analysis_jobs import AnalysisRules
from tests.unit.brokerage.analysis_jobs.toys import SHARE, World


def _crowded(**task: object) -> World:
    """Return a world where alice has 60 of 300 jobs waiting and 10 of 100 running, with one other user."""
    world = World(**task).queue("Q").jobs("Q", "running", 100).jobs("Q", "activated", 300)
    for user, waiting, running in (("alice", 60, 10), ("bob", 240, 90)):
        world.add(
            "user_job_stats", computingsite="Q", gshare=SHARE, produsername=user, nqueue=waiting,
            nrunning=running,
        )  # fmt: skip
    return world.add("to_run_rate", computingsite="Q", jobs_per_hour=10.0)


def test_max_q_len_of_the_document() -> None:
    """nQ_max = max(100, 2 x 100, 12 x 10) = 200; two users share it."""
    rules = AnalysisRules(cap_rt_effective=False)
    row = _crowded().decided(rules).weighed.row(0, named=True)
    assert (row["nq_max"], row["user_share"], row["max_q_len"]) == (200.0, 0.5, 100.0)
    assert row["rem_q_len"] == 40.0
    assert not row["user_queue"]


def test_the_row_of_totals_counts_in_production() -> None:
    row = _crowded().decided("production", OVERLOAD_MIN_QUEUE=1000).weighed.row(0, named=True)
    assert row["max_q_len"] == pytest.approx(200 / 3, rel=1e-15)


def test_a_user_over_the_limit_marks_the_queue() -> None:
    world = _crowded()
    world.rows["user_job_stats"][0]["nqueue"] = 101
    rules = AnalysisRules(cap_rt_effective=False)
    assert world.checks(rules) == {"Q": "badsite"}
    assert world.checks(rules, BASE_QUEUE_LENGTH_PER_PQ=301) == {"Q": None}  # few jobs wait
    world.rows["to_run_rate"][0]["jobs_per_hour"] = 38.0  # 300 < 8 x 38
    assert world.checks(rules) == {"Q": None}


def test_the_original_weight() -> None:
    world = World().queue("Q").jobs("Q", "running", 9).jobs("Q", "starting", 4)
    assert world.decided().weighed["orig"].to_list() == [10 / 5]
    world.add("worker_stats", panda_queue="Q", status="running", n_workers=30)
    assert world.decided().weighed["orig"].to_list() == [21 / 5]


@pytest.mark.parametrize(("slots", "document", "production"), [(0, 9, 13), (40, 40, 10), (8, 9, 9)])
def test_slots_count_as_running_jobs(slots: int, document: int, production: int) -> None:
    """9 running and 4 starting jobs in slots of 4 cores."""
    world = World(corecount=4).queue("Q", corecount=4)
    world.jobs("Q", "running", 9).jobs("Q", "starting", 4)
    world.add("slots", panda_queue="Q", numslots=slots)
    assert world.decided("document").weighed["running"].to_list() == [document]
    assert world.decided("production").weighed["running"].to_list() == [production]


def _classed(task_class: int) -> World:
    """Return a world of one queue of each class; alice may have 50 jobs waiting at each, and submits 10."""
    world = World().add("task_class", jeditaskid=1, **{"class": task_class})
    for name, value in (("H", 1), ("M", 0), ("L", -1)):
        world.queue(name).add("site_class", computingsite=name, **{"class": value})
        for user in ("alice", "bob"):
            world.add("user_job_stats", computingsite=name, gshare=SHARE, produsername=user)
    return world


@pytest.mark.parametrize(
    ("task_class", "budgets"),
    [(2, (9.948, 0.05, 0.002)), (1, (9.948, 0.05, 0.002)), (0, (0.001, 9.9, 0.1)), (-1, (0.001, 0.001, 10.0))],
)  # fmt: skip
def test_budgets_by_class(task_class: int, budgets: tuple[float, ...]) -> None:
    row = _classed(task_class).decided("production").weighed.row(0, named=True)
    assert (row["budget_hi"], row["budget_mid"], row["budget_lo"]) == pytest.approx(budgets)


@pytest.mark.parametrize(
    ("task_class", "site"),
    [(1, {"H": 10, "M": 0.05, "L": 0.002}), (0, {"H": 0.002, "M": 10, "L": 0.05}), (-1, {"H": 0.002, "M": 0.05, "L": 10})],
)  # fmt: skip
def test_the_new_weight_of_the_page(task_class: int, site: dict[str, float]) -> None:
    """Each queue has (50 - 10/3) / (150 - 10) of what is left."""
    rows = _classed(task_class).decided().weighed
    part = (50 - 10 / 3) / 140
    for name, weight in rows.select("panda_queue", "new_document").rows():
        assert weight == pytest.approx(site[name] * part, rel=1e-14)


def test_used_queues_come_first_in_production() -> None:
    world = World().queue("A").queue("B").jobs("A", "running", 5)
    world.add("sites_used", computingsite="B")
    weight = AnalysisRules("production", basic_weight="original")
    first = {
        name: found.filter(found["rank"] == 1)["panda_queue"].to_list()
        for name, found in (("document", world.decided().queues), ("production", world.decided(weight).queues))
    }  # fmt: skip
    assert first == {"document": ["A"], "production": ["B"]}


def test_ten_candidates_are_kept() -> None:
    world = World()
    for number in range(12):
        world.queue(f"Q{number:02}")
    checks = world.checks()
    assert [name for name, check in checks.items() if check == "low_weight"] == ["Q10", "Q11"]


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
