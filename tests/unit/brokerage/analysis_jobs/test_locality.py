"""Where the input is, and which queues that selects: analysis-jobs.md 4, sentence by sentence."""

from __future__ import annotations

from typing import Any

from brokerlab.brokerage.analysis_jobs import AnalysisRules
from tests.unit.brokerage.analysis_jobs.toys import Found, World, ask
from tests.unit.brokerage.production_jobs.book import cases, told

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


def chosen(found: Found) -> set[str]:
    """Return the queues that the check of locality leaves in the first loop."""
    return {name for name, check in found.first_checks().items() if check != "data_locality"}


def first(world: World) -> Found:
    return ask(world, TRY_FIRST)


COMPLETE = {(90, 100): None, (89, 100): "input_incomplete", (900, 1000): None, (899, 1000): "input_incomplete", (0, 5): "input_incomplete", (None, 5): "input_incomplete"}  # fmt: skip


@cases(
    *(
        (
            ask(
                data(World(allowincompleteinds=allowed).queue("A"), D={"A_DISK": files}),
                "production",
            ),
            None if allowed else rule,
        )
        for allowed in (False, True)
        for files, rule in COMPLETE.items()
    )
)
def test_ten_missing_files_or_ninety_percent_count_as_complete(
    found: Found, expected: str | None
) -> None:
    assert found.task["throttle"] == expected


@cases(
    *(
        (
            ask(
                data(World().queue("A", e_read_lan=lan, e_read_wan=wan), D={"A_DISK": (1, 1)}),
                "production",
            ),
            rule,
        )
        for lan, wan, rule in (
            ("OFF", "OFF", "input_incomplete"),
            ("OFF", "ON", None),
            (None, "TEST", None),
        )
    )
)
def test_a_copy_has_to_be_readable_over_lan_or_wan(found: Found, expected: str | None) -> None:
    assert found.task["throttle"] == expected


@told(
    page=ask(data(World().queue("A"), D_slash={"A_DISK": (1, 5)})),
    found=first(data(World().queue("A"), D_slash={"A_DISK": (1, 5)})),
)
def test_a_container_is_distributed_and_need_not_be_complete(page: Found, found: Found) -> None:
    assert page.task["throttle"] is None
    assert chosen(found) == {"A"}


@cases((first(data(World().queue("A").queue("B"), D={"A_DISK": (5, 5), "B_DISK": (4, 5)})), {"A"}))
def test_incomplete_copies_do_not_count_beside_complete_ones(found: Found, expected: Any) -> None:
    assert chosen(found) == expected


@cases(
    (
        first(
            data(
                reading(World().queue("A").queue("B"), "A", "A_TAPE"),
                D={"A_TAPE": (5, 5), "B_DISK": (4, 5)},
            )
        ),
        {"B"},
    )
)
def test_incomplete_copies_count_where_no_disk_is_complete(found: Found, expected: Any) -> None:
    """On disk only B has something, and B's part is allowed: the tape of A comes second."""
    assert chosen(found) == expected


@cases(
    (
        first(
            data(
                reading(World().queue("A").queue("V"), "V", "V_VP_DISK"),
                D={"A_DISK": (5, 5), "V_VP_DISK": (5, 5)},
            )
        ),
        {"A"},
    )
)
def test_vp_gives_way_to_a_complete_disk(found: Found, expected: Any) -> None:
    assert chosen(found) == expected


def on_tape_or_vp(**task: Any) -> World:
    world = reading(World(**task).queue("A").queue("V"), "V", "V_VP_DISK")
    return data(reading(world, "A", "A_TAPE"), D={"A_TAPE": (5, 5), "V_VP_DISK": (5, 5)})


@cases((first(on_tape_or_vp()), {"V"}))
def test_vp_serves_where_no_disk_is_complete(found: Found, expected: Any) -> None:
    assert chosen(found) == expected


@cases(
    *(
        (first(on_tape_or_vp(**task)), {"A", "V"})
        for task in (
            {"avoidvp": True},
            {"usescout": True},
            {"uselocalio": True},
            {"is_merging": True},
        )
    )
)
def test_these_tasks_do_not_take_vp_for_a_disk(found: Found, expected: Any) -> None:
    """Then VP stands beside tape, in the list of anything."""
    assert chosen(found) == expected


@cases(
    (
        first(
            data(
                World().queue("A").queue("B"),
                D={"A_DISK": (5, 5), "B_DISK": (5, 5)},
                E={"B_DISK": (5, 5)},
            )
        ),
        {"B"},
    )
)
def test_a_queue_needs_every_dataset(found: Found, expected: Any) -> None:
    assert chosen(found) == expected


def completed_by_tape() -> World:
    world = reading(World().queue("A").queue("B"), "A", "A_TAPE")
    return data(world, D={"A_DISK": (5, 5)}, E={"A_TAPE": (5, 5), "B_DISK": (5, 5)})


@told(
    found=first(completed_by_tape()),
    weighed=ask(completed_by_tape(), AnalysisRules(locality_mode="retry", data_factor=True)),
)
def test_tape_completes_an_intersection(found: Found, weighed: Found) -> None:
    assert chosen(found) == {"A"}
    factors = {name: row.get("data_factor") for name, row in weighed.queues().items()}
    assert factors == {"A": 1.001, "B": None}


def united() -> World:
    world = reading(World().queue("A").queue("B").queue("V"), "V", "V_VP_DISK")
    return data(world, D={"A_DISK": (5, 5)}, E={"B_DISK": (5, 5), "V_DISK": (5, 5)})


@cases((first(united()), None), (ask(united(), "production"), "avoid_vp"))
def test_without_a_queue_that_has_all_the_union_serves_and_vp_is_banned(
    found: Found, expected: str | None
) -> None:
    assert found.checks() == {"A": None, "B": None, "V": expected}


@cases(
    *(
        (
            first(
                data(
                    World(site=site).queue("A").queue("B").queue("C"),
                    D={"A_DISK": (5, 5)},
                    E={"B_DISK": (5, 5)},
                )
            ),
            kept,
        )
        for site, kept in (("A", {"A", "B"}), ("B", {"A", "B"}), ("C", set()))
    )
)
def test_a_preassigned_queue_is_kept_by_intersection_or_union_or_nothing_is(
    found: Found, expected: Any
) -> None:
    assert chosen(found) == expected


@cases(
    (
        first(
            data(
                World().queue("A").queue("B").queue("P", type="production"),
                D={"A_DISK": (5, 5), "P_DISK": (5, 5)},
                E={"B_DISK": (5, 5), "P_DISK": (5, 5)},
            )
        ),
        {"A", "B"},
    )
)
def test_only_candidates_are_asked_where_the_input_is(found: Found, expected: Any) -> None:
    """A production queue has everything, but is no candidate: the union of A and B has to serve."""
    assert chosen(found) == expected


@cases(
    (
        first(
            data(World().queue("A").queue("B"), D={"A_DISK": (5, 5), "B_DISK": (5, 5)}).add(
                "replicas", datasetname="D", ddm_endpoint_name="A_DISK", found=4, total=5, vp=False
            )
        ),
        {"B"},
    )
)
def test_the_last_record_of_an_endpoint_counts(found: Found, expected: Any) -> None:
    assert chosen(found) == expected


@cases(
    *(
        (
            ask(
                data(World().queue("A", maxtime=1, e_read_wan=wan).queue("B"), D={"A_DISK": (1, 1)})
            ),
            loop,
        )
        for wan, loop in (("ON", 2), ("OFF", 1))
    )
)
def test_a_second_loop_needs_a_source_over_wan(found: Found, expected: int) -> None:
    assert found.task["loop"] == expected


def merging_at(site: str | None) -> World:
    """A merging task whose first dataset is whole at VP endpoints of V alone, and whose second one is whole at B."""
    task = {"is_merging": True, "allowincompleteinds": True, "site": site}
    world = reading(World(**task).queue("B").queue("V"), "V", "V_VP_DISK")
    return data(world, D={"V_VP_DISK": (5, 5)}, E={"B_DISK": (5, 5)})


@told(found=ask(merging_at("V"), "production"), free=ask(merging_at(None), "production"))
def test_a_preassigned_queue_that_has_data_by_vp_brings_in_those_that_have_the_rest(
    found: Found, free: Found
) -> None:
    """What is on no disk of its site counts too; then V falls as a VP queue, and B as another one."""
    assert found.checks() == {"B": "nonpreassigned", "V": "avoid_vp"}
    assert found.task["outcome"] == "fatal"
    assert free.checks() == {"B": None, "V": "data_locality"}


@cases(
    (
        ask(
            data(
                reading(World(site="V").queue("A").queue("V"), "V", "V_VP_DISK"),
                D={"A_DISK": (5, 5)},
                E={"V_DISK": (5, 5)},
            ),
            "production",
        ),
        {"A": "nonpreassigned", "V": None},
    )
)
def test_the_union_of_a_preassigned_task_does_not_ban_vp(found: Found, expected: Any) -> None:
    """Only tasks that may go anywhere avoid VP where no queue has all of the input."""
    assert found.checks() == expected


@cases(
    (
        ask(
            data(
                reading(World(allowincompleteinds=True).queue("V"), "V", "V_VP_DISK"),
                D={"V_VP_DISK": (5, 5)},
                E={"V_DISK": (5, 5)},
            ).jobs("V", "activated", 30),
            "production",
        ),
        {"V": "overloaded_vp"},
    )
)
def test_a_queue_that_reads_one_dataset_by_vp_alone_is_overloaded_as_a_vp_queue(
    found: Found, expected: Any
) -> None:
    """It holds the other dataset on its disk; that does not make it a queue with all of the input."""
    assert found.checks() == expected
