"""Storage that changes: at each instant its own space and states, else those of the table of endpoints."""

from __future__ import annotations

from typing import Any

from tests.unit.brokerage.analysis_jobs.toys import TASK, World


def reasons(world: World) -> dict[int, str | None]:
    rows = world.decided().queues.select("snapshot", "check").rows()
    return {snapshot: None if check is None else str(check) for snapshot, check in rows}


def world_of(*states: dict[str, Any], n: int = 2, **columns: Any) -> World:
    world = World(snapshot=0).queue("A", **columns)
    for snapshot in range(1, n):
        world.add("tasks", **(TASK | {"snapshot": snapshot}))
    for state in states:
        world.add("storage_endpoints", **({"ddm_endpoint_name": "A_DISK"} | state))
    return world


def test_space_is_that_of_the_instant() -> None:
    full = {"snapshot": 0, "space_free": 150.0, "space_expired": 40.0}
    emptied = {"snapshot": 1, "space_free": 250.0, "space_min_free": 40.0, "space_unavailable": 9.0}
    # 190 and 201 GB; more than 200 are asked for
    assert reasons(world_of(full, emptied)) == {0: "storage", 1: None}


def test_states_are_those_of_the_instant() -> None:
    space = {"space_free": 5000.0}
    up, down = {"snapshot": 0, "write_lan": "ON"}, {"snapshot": 1, "write_lan": "OFF"}
    world = world_of(space | up, space | down, e_write_lan="OFF")
    assert reasons(world) == {0: None, 1: "blacklist"}


def test_a_row_without_instant_holds_for_all() -> None:
    assert reasons(world_of({"space_free": 1.0})) == {0: "storage", 1: "storage"}


def test_where_the_instant_says_nothing_the_table_of_endpoints_does() -> None:
    full = {"snapshot": 0, "space_free": 1.0}
    assert reasons(world_of(full)) == {0: "storage", 1: None}
    other = world_of({"ddm_endpoint_name": "B_DISK", "snapshot": 0, "space_free": 1.0})
    assert reasons(other) == {0: None, 1: None}


def test_space_of_which_nothing_is_known_is_not_judged() -> None:
    unknown = {"snapshot": 0, "space_free": None, "read_lan": "ON"}
    assert reasons(world_of(unknown, {"snapshot": 1, "space_expired": 1.0})) == {
        0: None,
        1: "storage",
    }


def test_a_copy_is_read_where_its_storage_is_up_then() -> None:
    world = world_of(
        {"snapshot": 0, "space_free": 5000.0, "read_lan": "OFF", "read_wan": "OFF"},
        {"snapshot": 1, "space_free": 5000.0},
    )
    world.add("datasets", jeditaskid=1, datasetname="d", type="input", is_master=True)
    world.add("replicas", datasetname="d", ddm_endpoint_name="A_DISK", found=1, total=1)
    tasks = world.decided("production").tasks.select("snapshot", "throttle", "outcome").rows()
    assert tasks == [
        (0, "input_incomplete", "temporary_error"),
        (1, None, "candidates"),
    ]
