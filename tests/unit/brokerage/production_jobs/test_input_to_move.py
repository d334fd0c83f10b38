"""Input that would have to be moved (6.1, rows 43a and 45).

Every test is made from the words that it quotes: of the page where a quotation is not marked, else of the chapter.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from brokerlab.units import GB, MB
from tests.brokerage_toys import World
from tests.unit.brokerage.production_jobs.book import ADDED, Found, added, ask, cases, one, told

HEAVY = {"iointensity": 201}
STRICT = added(io_check_strict=True)
MOVES = "input_to_move"


def moving(
    files: int, size: int, /, here: Mapping[str, int] | None = None, *, rules: Any = ADDED,
    settings: Mapping[str, Any] | None = None, **task: Any,
) -> Found:  # fmt: skip
    """Ask about ALL, which has every file, and SOME, which has those of ``here``."""
    world = World(**(HEAVY | task)).queue("ALL").queue("SOME")
    held = {"ALL": files} | dict(here or {})
    return ask(world.data(files, size=size, here=held), rules, **(settings or {}))


def said(found: Found) -> str | None:
    checks = found.checks()
    assert checks["ALL"] is None
    return checks["SOME"]


@cases(
    (moving(10, GB), None),
    (moving(11, GB), MOVES),
    (moving(12, GB, {"SOME": 2}), None),
    (moving(12, GB, {"SOME": 1}), MOVES),
    (moving(1, 10 * GB + MB - 1), None),  # whole MB
    (moving(1, 10 * GB + MB), MOVES),
    (moving(100, 1), None),
    (moving(101, 1), MOVES),
    (moving(101, 1, {"SOME": 1}), None),
    (moving(3, GB, settings={"SIZE_CUTOFF_TO_MOVE_INPUT": 2}), MOVES),
    (moving(2, GB, settings={"SIZE_CUTOFF_TO_MOVE_INPUT": 2}), None),
    (moving(3, 1, settings={"NUM_CUTOFF_TO_MOVE_INPUT": 2}), MOVES),
    (moving(2, 1, settings={"NUM_CUTOFF_TO_MOVE_INPUT": 2}), None),
    (moving(10, GB, rules=STRICT), MOVES),
    (moving(9, GB, rules=STRICT), None),
    (moving(100, 1, rules=STRICT), MOVES),
    (moving(99, 1, rules=STRICT), None),
)
def test_heavy_input_is_not_moved(found: Found, expected: str | None) -> None:
    """ "the total size of missing files must be less than SIZE_CUTOFF_TO_MOVE_INPUT ... and the number of missing files must be less than NUM_CUTOFF_TO_MOVE_INPUT". J22: "equal passes", switch `io_check_strict`."""
    assert said(found) == expected


@cases(
    (moving(11, GB, iointensity=200), None),
    (moving(11, GB, iointensity=None), None),
    (moving(11, GB, iointensity=301, settings={"IO_INTENSITY_CUTOFF": 300}), MOVES),
    (moving(11, GB, iointensity=300, settings={"IO_INTENSITY_CUTOFF": 300}), None),
    (moving(11, GB, is_merging=True), None),
    (moving(11, GB, eventservice=1), None),
    (moving(11, GB, eventservice=1, usejobcloning=True), MOVES),
    (moving(11, GB, site="ALL,SOME"), MOVES),
    (moving(200, 0), None),
)
def test_whose_input_is_heavy(found: Found, expected: str | None) -> None:
    """ "If the task ioIntensity is larger than IO_INTENSITY_CUTOFF". Chapter 6.1: "not site_preassigned, total > 0, not merging, ... not es"."""
    assert said(found) == expected


def places(files: int, **held: tuple[str, int]) -> World:
    """Return a world of queues that hold (kind, number) of the files."""
    world = World(**HEAVY).data(files)
    for queue, (kind, number) in held.items():
        world.queue(queue)
        for file in range(number):
            place = {"lfn": f"f{file}", "panda_queue": queue, "kind": kind}
            world.add("file_locations", jeditaskid=1, datasetname="data1", **place)
    return world


DISK, CACHE, TAPE, FAR = (("localdisk", 11), ("cache", 11), ("localtape", 11), ("remote", 11))


@cases(
    (ask(places(11, A=DISK, B=CACHE, C=TAPE, D=FAR)), {"A": None, "B": None, "C": MOVES, "D": MOVES}),
    (ask(places(11, C=TAPE, D=FAR)), {"C": None, "D": MOVES}),
    (ask(places(11, D=FAR, E=("localdisk", 0))), {"D": None, "E": None}),
    (ask(places(12, C=TAPE, D=("localtape", 1))), {"C": None, "D": MOVES}),
)  # fmt: skip
def test_disk_goes_before_tape_and_tape_before_nothing(
    found: Found, expected: dict[str, str | None]
) -> None:
    """Chapter 6.1: "Class B: ... only good with tape. Class C: the rest. Keep C if not empty; else B; if both empty the check is switched off and everything stays"."""
    assert found.checks() == expected


def quiet(queue: str) -> Found:
    """Ask about A, which has the input, and D, which has it not; one of them has no pilots."""
    activity = {"computingsite": queue}
    return ask(places(11, A=DISK, D=FAR).change("site_activity", activity, getjob=0))


@cases(
    (quiet("A"), ({"A": "no_pilot", "D": MOVES}, "temporary problem")),
    (quiet("D"), ({"A": None, "D": MOVES}, None)),
)
def test_marked_queues_still_say_that_the_input_is_somewhere(
    found: Found, expected: tuple[dict[str, str | None], str | None]
) -> None:
    """Chapter 5: a marked queue "keeps going through the later checks; it is removed at step 43"."""
    assert (found.checks(), found.task["stage"]) == expected


def repeated() -> World:
    """Return 10 files of which two are in a second dataset too; 4 are at the queue."""
    world = one().data(10, here={"SITE": 4}).add("datasets", jeditaskid=1, datasetname="again")
    again = world.tables["replicas"][0] | {"datasetname": "again"}
    world.add("replicas", **again)
    for name in ("f0", "f9"):
        world.add("files", jeditaskid=1, datasetname="again", lfn=name, fsize=GB)
    return world


@told(found=ask(repeated()))
def test_a_name_in_two_datasets_counts_once(found: Found) -> None:
    """Chapter 6.1: "total = sum of fsize over distinct lfn of real input datasets; nfiles = number of distinct lfn"."""
    row = found.only
    assert (row["missing_files"], row["missing_mb"]) == (6, 6 * 1024)


def local(files: int, held: int, size: int = GB, **task: Any) -> Found:
    world = one({"iointensity": 1} | task, catchall="a,use_only_local_data")
    return ask(world.data(files, size=size, here={"SITE": held}))


@cases(
    (local(10, 10), None),
    (local(10, 9), "local_data_only"),
    (local(10, 9, size=1), "local_data_only"),
    (local(10, 9, size=0), None),
    (local(10, 9, site="SITE"), "local_data_only"),
    (ask(one(catchall="use_only_local_data")), None),
    (ask(one(catchall="no,x_use_only_local_data").data(1)), None),
)
def test_queues_that_take_local_input_only(found: Found, expected: str | None) -> None:
    """Chapter, row 45: "use_only_local_data in catchall and something to move (MB > 0 or files > 0) and total > 0"."""
    assert found.check == expected
