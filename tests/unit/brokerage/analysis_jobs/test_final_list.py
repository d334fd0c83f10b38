"""New weight, data factor and final list by the words of analysis-jobs.md 7 and 8."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest

from brokerlab.brokerage.analysis_jobs import AnalysisRules, decide
from brokerlab.gdpconfig import Config
from brokerlab.units import GB
from tests.unit.brokerage.analysis_jobs.toys import SHARE, WITH_CODE, Found, World, ask
from tests.unit.brokerage.production_jobs.book import cases, told

TINY = 2.0**-20


def configured(world: World, keys: dict[str, float]) -> dict[str, Any]:
    """Return why each queue was skipped under keys with their component."""
    tables = {
        name: pl.DataFrame(rows, infer_schema_length=None) for name, rows in world.rows.items()
    }
    found = decide(tables, rules=WITH_CODE, config=Config.empty().with_values(keys))
    rows = found.queues.select("panda_queue", "check").rows()
    return {name: None if check is None else str(check) for name, check in rows}


def classed(task_class: int | None, jobs: int, **task: Any) -> World:
    """Return a world of one queue of each class; alice may have 50 more jobs waiting at each."""
    world = World(n_jobs_to_submit=jobs, **task)
    if task_class is not None:
        world.add("task_class", jeditaskid=1, **{"class": task_class})
    for name, value in (("H", 1), ("M", 0), ("L", -1)):
        world.queue(name).add("site_class", computingsite=name, **{"class": value})
        for user in ("alice", "bob"):
            world.add("user_job_stats", computingsite=name, gshare=task.get("gshare", SHARE), produsername=user)  # fmt: skip
    return world


def new(world: World) -> Found:
    """Ask for the new weight by budgets; two users share 100 jobs at each queue."""
    return ask(world, AnalysisRules("production", count_total_row=False))


def weights(found: Found) -> dict[str, float]:
    return {name: row["new"] for name, row in found.queues().items()}


@cases(
    (new(classed(1, 30)), {"H": 29.948, "M": 0.05, "L": 0.002}),
    (new(classed(1, 80)), {"H": 49.948, "M": 30.05, "L": 0.002}),
    (new(classed(None, 120)), {"H": 49.948, "M": 50.05, "L": 20.002}),
    (new(classed(0, 30)), {"H": 0.001, "M": 29.9, "L": 0.1}),
    (new(classed(0, 80)), {"H": 0.001, "M": 49.9, "L": 30.1}),
)
def test_what_a_class_cannot_take_goes_to_the_next(
    found: Found, expected: dict[str, float]
) -> None:
    """One queue a class: W_q = (50 - M) / (50 - M) = 1 while there is room, but at least 0.001 M; else 50 / 50."""
    for name, budget in expected.items():
        assert weights(found)[name] == pytest.approx(budget + TINY, rel=1e-9)


@told(found=new(classed(-1, 1000)))
def test_more_jobs_than_room_are_cut_to_the_room(found: Found) -> None:
    assert weights(found)["L"] == pytest.approx(150 * 1 + TINY, rel=1e-12)  # 50 / 50


@told(found=new(classed(1, 30, is_merging=True)))
def test_merging_weighs_by_room_alone(found: Found) -> None:
    """W_q = rem / Q_c = 1 for each."""
    assert weights(found)["H"] == pytest.approx(29.948 + TINY, rel=1e-12)


@told(found=new(classed(1, 30, gshare="Group Analysis")))
def test_other_shares_know_no_classes(found: Found) -> None:
    """(50 - 30/3) / (150 - 30) = 1/3 of 30 jobs."""
    assert weights(found) == pytest.approx(dict.fromkeys("HML", 10 + TINY), rel=1e-12)


def without_class_of_m() -> World:
    world = classed(0, 30)
    world.rows["site_class"] = [row for row in world.rows["site_class"] if row["computingsite"] != "M"]  # fmt: skip
    return world


@told(found=new(without_class_of_m()))
def test_a_queue_without_class_is_mid(found: Found) -> None:
    assert weights(found)["M"] == pytest.approx(29.9 + TINY, rel=1e-9)


def many(number: int, **task: Any) -> World:
    world = World(**task)
    for n in range(number):
        world.queue(f"Q{n:02}").jobs(f"Q{n:02}", "running", 100 - n)
    return world


def spread(number: int, name: str, total: int, **task: Any) -> World:
    """Return queues of which the first so many hold a copy of the input."""
    world = many(12 if number == 12 else 6, **task).add(
        "datasets", datasetname=name, is_master=True
    )
    for n in range(number):
        world.add(
            "replicas", datasetname=name, ddm_endpoint_name=f"Q{n:02}_DISK", found=1, total=total
        )
    return world


def candidates(found: Found) -> int:
    return sum(check is None for check in found.checks().values())


@cases((ask(spread(12, "D/", 2), "production"), 12), (ask(spread(12, "D/", 2)), 10))
def test_a_distributed_input_keeps_every_candidate(found: Found, expected: int) -> None:
    assert candidates(found) == expected


@cases(
    (ask(many(12, nsitesperjob=3), "production"), 3),
    (ask(many(12, nsitesperjob=3), "document"), 10),
    (ask(spread(4, "D", 1, nsitesperjob=3), "production"), 4),
)
def test_several_queues_per_job_keep_those_with_data_at_least(found: Found, expected: int) -> None:
    """No input: nobody has data, so as many as asked for; with data at 4 queues, 4."""
    assert candidates(found) == expected


def test_least_weight_comes_after_the_cut() -> None:
    """Twelve queues weigh 101 down to 90: ten stay, of these the ones under 95 go; nobody moves up."""
    world = many(12)
    checks = configured(world, {"jedi/jobbroker/MIN_WEIGHT_user": 95.0})
    assert [checks[f"Q{n:02}"] for n in (0, 6, 7, 9, 10, 11)] == [
        None, None, "below_min_weight", "below_min_weight", "low_weight", "low_weight",
    ]  # fmt: skip


def test_the_least_weight_of_the_share_goes_first() -> None:
    keys = {"jedi/jobbroker/MIN_WEIGHT_user": 95.0, f"jedi/jobbroker/MIN_WEIGHT_user_{SHARE}": 0.0}
    assert set(configured(many(8), keys).values()) == {None}


def test_data_at_a_queue_counts_by_the_gigabyte_without_locality() -> None:
    """3.9 GB on local disk count as 3, what is in cache or on tape does not."""
    world = World(taskpriority=2000).queue("A").queue("B").add("datasets", datasetname="D", is_master=True)  # fmt: skip
    world.add("replicas", datasetname="D", ddm_endpoint_name="A_DISK", found=1, total=1)
    for lfn, size, kind in (("f", 3.9, "localdisk"), ("g", 5.0, "localtape"), ("h", 5.0, "cache")):
        world.add("files", datasetname="D", lfn=lfn, fsize=int(size * GB))
        world.add("file_locations", datasetname="D", panda_queue="A", lfn=lfn, kind=kind)
    rules = AnalysisRules(data_factor=True)
    rows = world.decided(rules).weighed.select("panda_queue", "data_factor").rows()
    assert rows == [("A", 1.3), ("B", 1.0)]


def local_only(*kinds: str) -> World:
    world = World().queue("Q", catchall="use_only_local_data").add("datasets", datasetname="D", is_master=True)  # fmt: skip
    world.add("replicas", datasetname="D", ddm_endpoint_name="Q_DISK", found=2, total=2)
    for lfn, kind in zip("fg", kinds, strict=True):
        world.add("files", datasetname="D", lfn=lfn, fsize=1)
        world.add("file_locations", datasetname="D", panda_queue="Q", lfn=lfn, kind=kind)
    return world


@cases(
    *(
        (ask(local_only(*kinds), rules), expected)
        for kinds, check in (
            (("localdisk", "localdisk"), None),
            (("localtape", "localtape"), None),
            (("localdisk", "localtape"), "fileunavailable"),
            (("remote", "remote"), "fileunavailable"),
        )
        for rules, expected in ((WITH_CODE, check), ("document", None))
    )
)
def test_queues_that_use_local_data_only_need_all_of_it_in_one_place(
    found: Found, expected: str | None
) -> None:
    assert found.checks() == {"Q": expected}


def test_an_emptied_final_list_is_a_temporary_error() -> None:
    """The pre-assigned queue passed every check, so that it is not fatal."""
    world = World(site="Q").queue("Q").queue("R")
    keys = {"jedi/jobbroker/MIN_WEIGHT_user": 95.0}
    assert configured(world, keys) == {"Q": "below_min_weight", "R": "nonpreassigned"}


def test_ties_go_by_name() -> None:
    world = World().queue("B").queue("A")
    ranks = dict(world.decided().queues.select("panda_queue", "rank").rows())
    assert ranks == {"A": 1, "B": 2}
