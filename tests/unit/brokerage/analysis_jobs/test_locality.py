"""Where the input is, and which queues that selects: analysis-jobs.md 4, sentence by sentence."""

from __future__ import annotations

from typing import Any

import pytest

from brokerlab.brokerage.analysis_jobs import AnalysisRules
from tests.unit.brokerage.analysis_jobs.toys import World, decided_of

TRY_FIRST = AnalysisRules(locality_mode="retry")


def data(world: World, **copies: dict[str, tuple[int | None, int]]) -> World:
    """Add datasets; of each, endpoint -> files found and in all."""
    for name, spread in copies.items():
        world.add("datasets", datasetname=name.replace("_slash", "/"), is_master=name == "D")
        for endpoint, (found, total) in spread.items():
            world.add("replicas", datasetname=name.replace("_slash", "/"), ddm_endpoint_name=endpoint, found=found, total=total, vp=endpoint.endswith("VP_DISK"))  # fmt: skip
    return world


def reading(world: World, queue: str, *endpoints: str, **columns: Any) -> World:
    """Add more input endpoints of a queue."""
    for name in endpoints:
        row = {"panda_queue": queue, "direction": "input", "ddm_endpoint_name": name}
        world.add("queue_endpoints", **row, is_default=False, is_tape=name.endswith("TAPE"), **columns)  # fmt: skip
    return world


def chosen(world: World, rules: AnalysisRules = TRY_FIRST) -> set[str]:
    """Return the queues that the check of locality leaves in the first loop."""
    decided = world.decided(rules)
    rows = (decided.first_loop if decided.first_loop.height else decided.queues).select(
        "panda_queue", "check"
    )
    return {name for name, check in rows.rows() if check != "data_locality"}


def ends(worlds: list[World]) -> list[str | None]:
    """Return which rule ends each task, all asked at once."""
    return decided_of(worlds, "production").tasks.sort("snapshot")["throttle"].to_list()


def test_ten_missing_files_or_ninety_percent_count_as_complete() -> None:
    cases = {(90, 100): None, (89, 100): "input_incomplete", (900, 1000): None, (899, 1000): "input_incomplete", (0, 5): "input_incomplete", (None, 5): "input_incomplete"}  # fmt: skip
    worlds = [
        data(World(allowincompleteinds=allowed).queue("A"), D={"A_DISK": found})
        for allowed in (False, True)
        for found in cases
    ]
    assert ends(worlds) == [*cases.values(), *[None] * len(cases)]


def test_a_copy_has_to_be_readable_over_lan_or_wan() -> None:
    flags = {("OFF", "OFF"): "input_incomplete", ("OFF", "ON"): None, (None, "TEST"): None}
    worlds = [
        data(World().queue("A", e_read_lan=lan, e_read_wan=wan), D={"A_DISK": (1, 1)})
        for lan, wan in flags
    ]
    assert ends(worlds) == list(flags.values())


def test_a_container_is_distributed_and_need_not_be_complete() -> None:
    world = data(World().queue("A"), D_slash={"A_DISK": (1, 5)})
    assert world.decided().tasks["throttle"].to_list() == [None]
    assert chosen(world) == {"A"}


def test_incomplete_copies_do_not_count_beside_complete_ones() -> None:
    world = data(World().queue("A").queue("B"), D={"A_DISK": (5, 5), "B_DISK": (4, 5)})
    assert chosen(world) == {"A"}


def test_incomplete_copies_count_where_no_disk_is_complete() -> None:
    """On disk only B has something, and B's part is allowed: the tape of A comes second."""
    world = reading(World().queue("A").queue("B"), "A", "A_TAPE")
    assert chosen(data(world, D={"A_TAPE": (5, 5), "B_DISK": (4, 5)})) == {"B"}


def test_vp_gives_way_to_a_complete_disk() -> None:
    world = reading(World().queue("A").queue("V"), "V", "V_VP_DISK")
    assert chosen(data(world, D={"A_DISK": (5, 5), "V_VP_DISK": (5, 5)})) == {"A"}


def test_vp_serves_where_no_disk_is_complete() -> None:
    world = reading(World().queue("A").queue("V"), "V", "V_VP_DISK")
    world = reading(world, "A", "A_TAPE")
    assert chosen(data(world, D={"A_TAPE": (5, 5), "V_VP_DISK": (5, 5)})) == {"V"}


@pytest.mark.parametrize("task", [{"avoidvp": True}, {"usescout": True}, {"uselocalio": True}, {"is_merging": True}])  # fmt: skip
def test_these_tasks_do_not_take_vp_for_a_disk(task: dict[str, Any]) -> None:
    """Then VP stands beside tape, in the list of anything."""
    world = reading(World(**task).queue("A").queue("V"), "V", "V_VP_DISK")
    world = reading(world, "A", "A_TAPE")
    assert chosen(data(world, D={"A_TAPE": (5, 5), "V_VP_DISK": (5, 5)})) == {"A", "V"}


def test_a_queue_needs_every_dataset() -> None:
    world = World().queue("A").queue("B")
    data(world, D={"A_DISK": (5, 5), "B_DISK": (5, 5)}, E={"B_DISK": (5, 5)})
    assert chosen(world) == {"B"}


def test_tape_completes_an_intersection() -> None:
    world = reading(World().queue("A").queue("B"), "A", "A_TAPE")
    data(world, D={"A_DISK": (5, 5)}, E={"A_TAPE": (5, 5), "B_DISK": (5, 5)})
    assert chosen(world) == {"A"}
    rules = AnalysisRules(locality_mode="retry", data_factor=True)
    weights = world.decided(rules).weighed.select("panda_queue", "data_factor").rows()
    assert weights == [("A", 1.001)]


def test_without_a_queue_that_has_all_the_union_serves_and_vp_is_banned() -> None:
    world = reading(World().queue("A").queue("B").queue("V"), "V", "V_VP_DISK")
    data(world, D={"A_DISK": (5, 5)}, E={"B_DISK": (5, 5), "V_DISK": (5, 5)})
    assert world.checks(TRY_FIRST) == {"A": None, "B": None, "V": None}
    assert world.checks("production") == {"A": None, "B": None, "V": "avoid_vp"}


def test_a_preassigned_queue_is_kept_by_intersection_or_union_or_nothing_is() -> None:
    def asked(site: str) -> set[str]:
        world = World(site=site).queue("A").queue("B").queue("C")
        return chosen(data(world, D={"A_DISK": (5, 5)}, E={"B_DISK": (5, 5)}))

    assert asked("A") == asked("B") == {"A", "B"}
    assert asked("C") == set()


def test_only_candidates_are_asked_where_the_input_is() -> None:
    """A production queue has everything, but is no candidate: the union of A and B has to serve."""
    world = World().queue("A").queue("B").queue("P", type="production")
    data(world, D={"A_DISK": (5, 5), "P_DISK": (5, 5)}, E={"B_DISK": (5, 5), "P_DISK": (5, 5)})
    assert chosen(world) == {"A", "B"}


def test_the_last_record_of_an_endpoint_counts() -> None:
    world = data(World().queue("A").queue("B"), D={"A_DISK": (5, 5), "B_DISK": (5, 5)})
    world.add("replicas", datasetname="D", ddm_endpoint_name="A_DISK", found=4, total=5, vp=False)
    assert chosen(world) == {"B"}


def test_a_second_loop_needs_a_source_over_wan() -> None:
    for wan, loop in (("ON", 2), ("OFF", 1)):
        world = World().queue("A", maxtime=1, e_read_wan=wan).queue("B")
        decided = data(world, D={"A_DISK": (1, 1)}).decided()
        assert decided.tasks["loop"].to_list() == [loop]


def merging_at(site: str | None) -> World:
    """A merging task whose first dataset is whole at VP endpoints of V alone, and whose second one is whole at B."""
    task = {"is_merging": True, "allowincompleteinds": True, "site": site}
    world = reading(World(**task).queue("B").queue("V"), "V", "V_VP_DISK")
    return data(world, D={"V_VP_DISK": (5, 5)}, E={"B_DISK": (5, 5)})


def test_a_preassigned_queue_that_has_data_by_vp_brings_in_those_that_have_the_rest() -> None:
    """What is on no disk of its site counts too; then V falls as a VP queue, and B as another one."""
    world = merging_at("V")
    assert world.checks("production") == {"B": "nonpreassigned", "V": "avoid_vp"}
    assert world.decided("production").tasks["outcome"].to_list() == ["fatal"]
    free = merging_at(None)
    assert free.checks("production") == {"B": None, "V": "data_locality"}


def test_the_union_of_a_preassigned_task_does_not_ban_vp() -> None:
    """Only tasks that may go anywhere avoid VP where no queue has all of the input."""
    world = reading(World(site="V").queue("A").queue("V"), "V", "V_VP_DISK")
    data(world, D={"A_DISK": (5, 5)}, E={"V_DISK": (5, 5)})
    assert world.checks("production") == {"A": "nonpreassigned", "V": None}


def test_a_queue_that_reads_one_dataset_by_vp_alone_is_overloaded_as_a_vp_queue() -> None:
    """It holds the other dataset on its disk; that does not make it a queue with all of the input."""
    world = reading(World(allowincompleteinds=True).queue("V"), "V", "V_VP_DISK")
    data(world, D={"V_VP_DISK": (5, 5)}, E={"V_DISK": (5, 5)}).jobs("V", "activated", 30)
    assert world.checks("production") == {"V": "overloaded_vp"}
