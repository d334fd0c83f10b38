"""The state at the instant: links, activity, storage, transfers, pledges, pilots (rows 3 to 6, 8, 21 to 27, 37, 38, 42).

Every test is made from the words that it quotes: of the page where a quotation is not marked, else of the chapter.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from tests.brokerage_toys import AT, World
from tests.unit.brokerage.production_jobs.book import ADDED, Found, ask, cases, one, parent, told

SINGLE = {"site": "SITE"}
LISTED = {"site": "SITE,OTHER"}
DISK = {"ddm_endpoint_name": "SITE_DATADISK"}
NUCLEUS_DISK = {"ddm_endpoint_name": "NUC_DATADISK"}


# links to the nucleus


@cases(
    *[
        (ask(one().change("storage_endpoints", NUCLEUS_DISK, write_wan=status)), expected)
        for status, expected in [
            ("ON", None),
            (None, None),
            ("OFF", "nucleus_unwritable"),
            ("TEST", "nucleus_unwritable"),
        ]
    ],
    (ask(one().change("storage_endpoints", NUCLEUS_DISK, read_wan="OFF")), None),
    (ask(one({"nucleus": None}).change("storage_endpoints", NUCLEUS_DISK, write_wan="OFF")), None),
)
def test_the_nucleus_must_receive_over_wan(found: Found, expected: str | None) -> None:
    """ "The nucleus storage endpoints must allow receivng and sending files over WAN" (sending: task brokerage)."""
    assert found.check == expected


def storage_sites() -> World:
    """Return queues whose storage is at the nucleus, elsewhere, or not known."""
    world = World().queue("AT", site="NUC").queue("NEAR").queue("FAR").queue("UNKNOWN")
    world.change("queue_storage_site", {"panda_queue": "NEAR"}, site_name="NUC")
    return world.change("queue_storage_site", {"panda_queue": "UNKNOWN"}, site_name=None)


@told(found=ask(storage_sites().change("storage_endpoints", NUCLEUS_DISK, write_wan="OFF")))
def test_only_queues_with_storage_elsewhere_use_links(found: Found) -> None:
    """Chapter, row 3: "storage site of queue known and not the nucleus"."""
    unwritable = {"FAR": "nucleus_unwritable"}
    assert found.checks() == {"AT": None, "NEAR": None, "UNKNOWN": None} | unwritable


def linked(task: dict[str, Any] | None = None, /, **link: Any) -> World:
    return one(task).link("SITE", **link)


@cases(
    (ask(linked(queued=150)), None),
    (ask(linked(queued=151)), "link_backlog"),
    (ask(linked(queued=50), NQUEUED_SAT_CAP=50), None),
    (ask(linked(queued=51), NQUEUED_SAT_CAP=50), "link_backlog"),
    (ask(linked(SINGLE, queued=151)), "link_backlog"),
    (ask(linked({"nucleus": None}, queued=151)), None),
    (ask(one().change("network_matrix", {"key": "Production Output_queued"}, value=151.0)), "link_backlog"),
    (ask(one({"processingtype": "urgent"}).change("network_matrix", {"key": "Production Output_queued"}, value=151.0)), None),
    (ask(one({"processingtype": "urgent"}).change("network_matrix", {"key": "Express_queued"}, value=151.0)), "link_backlog"),
    (ask(one().change("network_matrix", {"key": "Express_queued"}, value=151.0)), None),
    (ask(linked(queued=151).change("network_matrix", ts=AT - timedelta(minutes=61))), None),
    (ask(linked(queued=151).change("network_matrix", ts=AT - timedelta(minutes=59))), "link_backlog"),
    (ask(linked({"at": None}, queued=151).change("network_matrix", ts=AT - timedelta(minutes=61))), "link_backlog"),
)  # fmt: skip
def test_files_queued_on_the_link(found: Found, expected: str | None) -> None:
    """ "Skip queues if over the NQUEUED_SAT_CAP (defined in gdpconfig) files queued on their links to the nucleus." """
    assert found.check == expected


@cases(
    (ask(linked(queued=100).link("OTHER", queued=9900)), None),
    (ask(linked(queued=100).link("OTHER", queued=9901)), "nucleus_backlog"),
    (ask(linked(queued=100).link("OTHER", queued=9801).link("NUC", queued=100)), "nucleus_backlog"),
    (ask(linked(queued=10).link("OTHER", queued=11), NQUEUED_NUC_CAP_FOR_JOBS=20), "nucleus_backlog"),
    (ask(linked(queued=10).link("OTHER", queued=10), NQUEUED_NUC_CAP_FOR_JOBS=20), None),
    (ask(linked(queued=0).link("OTHER", dst="ELSEWHERE", queued=10_001)), None),
)  # fmt: skip
def test_files_queued_to_the_nucleus(found: Found, expected: str | None) -> None:
    """ "Skip all queues if the number of files to be aggregated to the nucleus is larger than NQUEUED_NUC_CAP_FOR_JOBS"."""
    assert found.check == expected


@told(found=ask(storage_sites().link("OTHER", queued=10_001)))
def test_the_backlog_of_the_nucleus_spares_its_own_queues(found: Found) -> None:
    """Chapter, row 4: "as 3", that is "storage site of queue known and not the nucleus"."""
    backlog = {"FAR": "nucleus_backlog"}
    assert found.checks() == {"AT": None, "NEAR": None, "UNKNOWN": None} | backlog


@cases(
    (ask(linked(closeness=-1)), "link_blocked"),
    (ask(linked(closeness=0)), None),
    (ask(linked(closeness=11)), None),
    (ask(linked(closeness=None)), None),
    (ask(linked(closeness=-1, queued=151)), "link_blocked"),
    (ask(linked({"nucleus": None}, closeness=-1)), None),
    (ask(linked(closeness=-1).link("OTHER", queued=10_001)), "nucleus_backlog"),
    (
        ask(linked(closeness=-1).change("storage_endpoints", NUCLEUS_DISK, write_wan="OFF")),
        "nucleus_unwritable",
    ),
)
def test_blocked_links(found: Found, expected: str | None) -> None:
    """ "Skip queues if their links to the nucleus are blocked." Chapter, row 5: "not 3-4"."""
    assert found.check == expected


# activity


def active(
    task: dict[str, Any] | None = None, /, *, seconds: int | None = 7201, rules: Any = ADDED,
    **jobs: int,
) -> Found:  # fmt: skip
    """Ask about a queue whose last start was so long ago; 1 job is activated unless said otherwise."""
    world = one({"currentpriority": 800} | (task or {}), running=0, activated=0)
    last = None if seconds is None else AT - timedelta(seconds=seconds)
    world.change("site_activity", laststart=last)
    return ask(world.jobs("SITE", **({"activated": 1} | jobs)), rules)


LOW = {"currentpriority": 799}


@cases(
    (active(), "inactive"),
    (active(seconds=7200), None),
    (active(seconds=None), None),
    (active(activated=0, starting=5), None),
    (active(activated=0, starting=5, rules="production"), "inactive"),
    (active(activated=0, rules="production"), None),
    (active(LOW), None),
    (active(LOW | {"use_scout": True}), "inactive"),
    (active(LOW | {"is_merging": True}), "inactive"),
    (active(LOW | {"mergeoutput": True}), "inactive"),
    (active(SINGLE), None),
    (active(LISTED), None),
    (active({"at": None}), None),
)
def test_inactive_queues(found: Found, expected: str | None) -> None:
    """ "If priority ≥ 800 or scout jobs or merging jobs or pre-merged jobs, skip inactive queues (where no jobs got started in the last 2 hours although activated jobs had been there)." """
    assert found.check == expected


def stale(**task: Any) -> World:
    """Return a queue without jobs whose last start was three hours ago."""
    world = one({"currentpriority": 800} | task, running=0, activated=0)
    return world.change("site_activity", laststart=AT - timedelta(hours=3))


@told(found=ask(stale().jobs("SITE", gshare="Other", activated=1)), idle=ask(stale()))
def test_jobs_of_every_share_wait_at_an_inactive_queue(found: Found, idle: Found) -> None:
    """The same: "activated jobs had been there", of whatever share."""
    assert (found.check, idle.check) == ("inactive", None)


# storage


def disk(rules: Any = ADDED, /, *, smallest: int | None = None, **columns: Any) -> Found:
    settings = {} if smallest is None else {"STORAGE_MIN_FREE_SIZE": smallest}
    return ask(one().change("storage_endpoints", DISK, **columns), rules, **settings)


@cases(
    (disk(space_free=200.0), "storage_space"),
    (disk(space_free=200.1), None),
    (disk("production", space_free=200.0), None),
    (disk("production", space_free=199.9), "storage_space"),
    (disk(space_free=None), "storage_space"),
    (disk(space_free=150.0, space_expired=50.1), None),
    (disk(space_free=300.0, space_min_free=100.0), "storage_space"),
    (disk(space_free=300.0, space_min_free=99.9), None),
    (disk(space_free=300.0, space_unavailable=100.0), "storage_space"),
    (disk(space_free=500.0, smallest=500), "storage_space"),
    (disk(space_free=500.1, smallest=500), None),
    (disk(space_free=200.0, smallest=0), "storage_space"),
    (disk(space_free=200.1, smallest=0), None),
)
def test_free_space(found: Found, expected: str | None) -> None:
    """ "DISK size check, free space in the local storage has to be over 200GB." """
    assert found.check == expected


OTHER_OUTPUT = {"panda_queue": "SITE", "direction": "output", "ddm_endpoint_name": "OTHER_DATADISK"}
FULL = one().change("storage_endpoints", DISK, space_free=1.0)


@told(
    other=ask(
        one().endpoint("OTHER_DATADISK", space_free=1.0).add("queue_endpoints", **OTHER_OUTPUT)
    ),
    unknown=ask(FULL.change("queue_endpoints", {"direction": "output"}, is_default=False)),
)
def test_only_the_default_output_endpoint_must_have_space(other: Found, unknown: Found) -> None:
    """Chapter, row 21: "default output endpoint known and space_usable < threshold"."""
    assert (other.check, unknown.check) == (None, None)


STATUSES = {"read_lan": "read_lan_down", "write_lan": "write_lan_down", "write_wan": "write_wan_down", "read_wan": "read_wan_down"}  # fmt: skip


@cases(
    *[
        (disk(rules, **{status: value}), check if skipped else None)
        for status, check in STATUSES.items()
        for rules, value, skipped in [
            ("document", "ON", False),
            ("document", None, False),
            ("document", "OFF", True),
            ("document", "TEST", True),
            ("document", "BROKEN", True),
            ("production", "BROKEN", False),
            ("production", None, False),
            ("production", "OFF", True),
            ("production", "TEST", True),
        ]
    ]
)
def test_endpoints_must_be_on(found: Found, expected: str | None) -> None:
    """ "Input endpoints must be locally readable over LAN (read_lan=ON). Output endpoints must be locally writable over LAN (write_lan=ON). ... Input endpoints must be able to receive files over WAN (write_wan=ON). Output endpoints must be able to send files over WAN (read_wan=ON)." J15: "ON or null"."""
    assert found.check == expected


ORDER: list[tuple[str, Any]] = [("space_free", 1.0), *((status, "OFF") for status in STATUSES)]


@cases(
    *zip(
        [disk(**dict(ORDER[first:])) for first in range(len(ORDER))],
        ["storage_space", *STATUSES.values()],
        strict=True,
    )
)
def test_the_first_of_the_storage_checks_is_the_reason(found: Found, expected: str) -> None:
    """Chapter, rows 22 to 25: "not 21", "not 21-22", "not 21-23", "not 21-24"."""
    assert found.check == expected


def endpoints(*rows: tuple[str, str, str, bool]) -> Found:
    """Ask about a queue with endpoints (direction, type, read_lan, is_default) of its own."""
    world = one()
    world.tables["queue_endpoints"].clear()
    for number, (direction, kind, read_lan, default) in enumerate(rows):
        name = f"E{number}"
        world.endpoint(name, type=kind, read_lan=read_lan)
        place = {"panda_queue": "SITE", "direction": direction, "ddm_endpoint_name": name}
        world.add("queue_endpoints", **place, is_default=default)
    return ask(world)


OUT = ("output", "DATADISK", "ON", True)


@cases(
    (endpoints(("input", "DATADISK", "ON", True), OUT), None),
    (endpoints(("input", "DATADISK", "OFF", True), ("input", "DATADISK", "ON", False), OUT), None),
    (endpoints(("input", "DATADISK", "OFF", True), ("input", "SCRATCHDISK", "ON", False), OUT), "read_lan_down"),
    (endpoints(OUT), "read_lan_down"),
    (endpoints(("input", "DATADISK", "ON", True)), "write_lan_down"),
    (endpoints(("input", "DATADISK", "ON", True), ("output", "SCRATCHDISK", "ON", True)), "write_lan_down"),
)  # fmt: skip
def test_one_good_datadisk_is_enough(found: Found, expected: str | None) -> None:
    """Chapter, J16: "only type DATADISK; one good endpoint suffices; none at all = down"."""
    assert found.check == expected


def at_nucleus(*, data_at: str | None = None, carousel: bool = False, **columns: Any) -> World:
    """Return a queue of the nucleus with a disk of its own, and input that is complete at ``data_at``."""
    world = (
        World(inputprestaging=carousel)
        .queue("AT", site="NUC")
        .endpoint("OWN_DATADISK", site_name="NUC", **columns)
    )
    world.change("queue_endpoints", ddm_endpoint_name="OWN_DATADISK")
    if data_at:
        world.data(1, here={"AT": 1}).endpoint("ARCHIVE_DATADISK")
        world.change("replicas", ddm_endpoint_name=data_at)
    return world


@cases(
    (ask(at_nucleus(write_wan="OFF")), None),
    (ask(at_nucleus(write_wan="OFF", data_at="OWN_DATADISK")), None),
    (ask(at_nucleus(write_wan="OFF", data_at="ARCHIVE_DATADISK")), "write_wan_down"),
    (ask(at_nucleus(write_wan="OFF", data_at="ARCHIVE_DATADISK", carousel=True)), "write_wan_down"),
    (ask(at_nucleus(read_wan="OFF")), None),
    (ask(at_nucleus(read_wan="OFF", data_at="ARCHIVE_DATADISK")), None),
    (ask(at_nucleus(write_wan="OFF", type="SCRATCHDISK")), "read_lan_down"),
    (ask(at_nucleus(read_lan="OFF")), "read_lan_down"),
    (ask(at_nucleus(write_lan="OFF")), "write_lan_down"),
)
def test_queues_of_the_nucleus_need_no_wan(found: Found, expected: str | None) -> None:
    """ "For satellite queues in addition". Chapter, row 24: "queue of the nucleus and (complete_locations empty or endpoint in it)"; row 25: "queues of the nucleus always pass if they have one"."""
    assert found.check == expected


def closed_source(*copies: str, **task: Any) -> Found:
    """Ask about a task whose input is at the nucleus, which cannot send it, and at these endpoints."""
    world = World(**task).queue("AT", site="NUC").queue("FAR").data(1, here={"FAR": 1})
    world.change("storage_endpoints", NUCLEUS_DISK, read_wan="OFF")
    for name in copies:
        copy = world.tables["replicas"][0] | {"ddm_endpoint_name": name}
        world.endpoint(name).add("replicas", **copy)
    return ask(world)


@cases(
    (closed_source(), "source_down"),
    (closed_source("COPY_DATADISK"), None),
    (closed_source(inputprestaging=True), None),
)
def test_input_that_only_its_site_can_read(found: Found, expected: str | None) -> None:
    """Chapter, row 27: "remote_source_available false and no endpoint of the queue got the nucleus exemption of 24 or 25"."""
    assert found.checks() == {"AT": None, "FAR": expected}


# transfers


def moving(number: int, *, running: int = 100, limit: int | None = 2000, **task: Any) -> World:
    world = one(task, running=running, transferringlimit=limit)
    return world.jobs("SITE", gshare="Other share", transferring=number)


@cases(
    (ask(moving(2000)), None),
    (ask(moving(2001)), "transferring"),
    (ask(moving(2001, limit=0)), "transferring"),
    (ask(moving(2000, limit=None)), None),
    (ask(moving(2001, limit=None)), "transferring"),
    (ask(moving(500, limit=500)), None),
    (ask(moving(501, limit=500)), "transferring"),
    (ask(moving(3000, running=1500)), None),
    (ask(moving(3001, running=1500)), "transferring"),
    (ask(moving(3001, running=1500).jobs("SITE", gshare="Third", running=1)), None),
    (ask(moving(2000).jobs("SITE", transferring=1)), "transferring"),
    (ask(moving(2001, site="SITE")), "transferring"),
    (ask(moving(2001).change("queue_storage_site", site_name=None)), None),
)
def test_too_many_transferring_jobs(found: Found, expected: str | None) -> None:
    """ "skip if transferring > max(transferring_limit, 2 x running), where transferring_limit limit is defined by site or 2000 if undefined"."""
    assert found.check == expected


def busy_links() -> World:
    """Return queues of 2001 transferring jobs each: of the nucleus, sharing, far, and bound to a closed nucleus."""
    world = World().queue("AT", site="NUC").queue("SHARING").queue("FAR").queue("BOUND")
    place = {"panda_queue": "AT", "direction": "input", "ddm_endpoint_name": "SHARING_DATADISK"}
    world.add("queue_endpoints", **place)
    for queue in ("AT", "SHARING", "FAR", "BOUND"):
        world.jobs(queue, transferring=2001)
    world.nucleus("BAD").change(
        "storage_endpoints", {"ddm_endpoint_name": "BAD_DATADISK"}, write_wan="OFF"
    )
    for queue, nucleus in (("BOUND", "BAD"), ("FAR", "NUC")):
        world.add("transferring_by_nucleus", computingsite=queue, nucleus=nucleus, njobs=1)
    return world


@told(found=ask(busy_links()))
def test_transferring_jobs_at_the_nucleus_do_not_count(found: Found) -> None:
    """Chapter, row 37: "not nucleus or sharing queue"; "tra = transferring - those bound to nuclei of check 3"."""
    far = {"FAR": "transferring"}
    assert found.checks() == {"AT": None, "SHARING": None, "BOUND": None} | far


# shortage of work


def pledged(
    pledge: int | None, *, short: bool = True, rules: Any = ADDED, task: dict[str, Any] | None = None,
    **cores: int,
) -> Found:  # fmt: skip
    world = one(task, pledgedcpu=pledge)
    for status, number in cores.items():
        world.add("core_stats", computingsite="SITE", jobstatus=status, ncores=number)
    return ask(world, rules, WORK_SHORTAGE=short)


@cases(
    (pledged(-1), "opportunistic_shortage"),
    (pledged(-1, short=False), None),
    (pledged(-1, task=SINGLE), None),
    (pledged(-1, task=LISTED), "opportunistic_shortage"),
    (pledged(1000, running=1000), None),
    (pledged(1000, running=1001), "pledge_exceeded"),
    (pledged(1000, running=1001, short=False), None),
    (pledged(1000, running=1001, task=SINGLE), None),
    (pledged(1000, running=1001, task=LISTED), "pledge_exceeded"),
    (pledged(1000, running=900, starting=101), None),
    (pledged(1000, running=900, starting=101, rules="production"), "pledge_exceeded"),
    (pledged(1000, running=900, starting=100, rules="production"), None),
    (pledged(0, running=1), None),
    (pledged(None, running=1), None),
    (pledged(-2, running=1), None),
    (pledged(1000), None),
)
def test_shortage_of_work(found: Found, expected: str | None) -> None:
    """ "When WORK_SHORTAGE in gdpconfig is set to True, the following queues are skipped: Opportunistic queues defined with pledgedcpu=-1. Partially pledged queues defined with positive pledgedcpu when the total number of running cores is larger than pledgedcpu." """
    assert found.check == expected


# pilots

SLOTS = {"panda_queue": "SITE", "numslots": 0}


def quiet(task: dict[str, Any] | None = None, /, **slots: Any) -> World:
    """Return a queue without pilots."""
    world = World(**(task or {})).queue("SITE", pilots=0)
    return world.add("slots", **(SLOTS | slots)) if slots else world


@cases(
    (ask(quiet()), "no_pilot"),
    (ask(quiet().change("site_activity", updatejob=1)), None),
    (ask(quiet().change("site_activity", getjob=1, updatejob=1)), None),
    (ask(quiet().change("site_activity", getjob=None, updatejob=None)), "no_pilot"),
    (ask(quiet(numslots=0)), None),
    (ask(quiet(numslots=0, resourcetype="MCORE")), None),
    (ask(quiet(numslots=0, resourcetype="SCORE")), "no_pilot"),
    (ask(quiet(numslots=0, gshare="MC 16 simul")), None),
    (ask(quiet(numslots=0, gshare="Other")), "no_pilot"),
    (ask(quiet(SINGLE)), None),
    (ask(quiet(LISTED)), None),
    (ask(quiet({"prodsourcelabel": "rc_test"})), None),
    (ask(quiet({"prodsourcelabel": "rc_test", "processingtype": "urgent"})), "no_pilot"),
    (ask(quiet({"usejumbo": "W"})), "no_pilot"),
    (ask(quiet({"usejumbo": "W"}).change("queues", catchall="useJumboJobs")), None),
)
def test_queues_without_pilots(found: Found, expected: str | None) -> None:
    """ "Skip queues without pilots for the last 3 hours." """
    assert found.check == expected


def unheard() -> World:
    """Return a queue of whose activity nothing is known."""
    world = one()
    world.tables["site_activity"].clear()
    return world


@told(found=ask(unheard()))
def test_a_queue_of_which_nothing_is_known_has_no_pilots(found: Found) -> None:
    """Chapter, row 42: "getjob + updatejob = 0 (missing = 0)"."""
    assert found.check == "no_pilot"


# temporary problems


TROUBLES: dict[str, Any] = {
    "nucleus_backlog": lambda world: world.link("OTHER", queued=10_001),
    "link_blocked": lambda world: world.link("SITE", closeness=-1),
    "link_backlog": lambda world: world.link("SITE", queued=151),
    "inactive": lambda world: world.change("site_activity", laststart=AT - timedelta(hours=3)),
    "core_count": lambda world: world.change("queues", corecount=1),
    "storage_space": lambda world: world.change("storage_endpoints", DISK, space_free=1.0),
    "transferring": lambda world: world.jobs("SITE", transferring=2001),
    "no_pilot": lambda world: world.change("site_activity", getjob=0),
    "io_intensity_max": lambda world: world.change("queues", max_io_intensity=9.0),
}


def troubled(*names: str) -> Found:
    world = one({"currentpriority": 800, "iointensity": 10})
    for name in names:
        TROUBLES[name](world)
    return ask(world)


@cases(
    (troubled("nucleus_backlog", "inactive"), "inactive"),
    (troubled("inactive", "storage_space"), "storage_space"),
    (troubled("inactive", "no_pilot"), "no_pilot"),
    (troubled("link_backlog", "transferring", "no_pilot"), "no_pilot"),
    (troubled("storage_space", "transferring"), "transferring"),
    (troubled("link_backlog", "core_count"), "core_count"),
    (troubled("no_pilot", "io_intensity_max"), "io_intensity_max"),
    (troubled("link_blocked", "core_count"), "link_blocked"),
    (troubled("link_blocked", "no_pilot"), "link_blocked"),
)
def test_the_last_mark_is_the_reason_unless_a_lasting_one_holds(
    found: Found, expected: str
) -> None:
    """Chapter 5: "the queue is only marked here and keeps going through the later checks; it is removed at step 43 with the reason of the **last** mark set. P = removed at once."."""
    assert found.check == expected


def pledge_of_parent() -> World:
    children = [{"corecount": 8, "maxwdir": 1.0, "pledgedcpu": 0}, {"corecount": 4}]
    world = parent(World(), "SITE", *children, maxwdir=3000.0, pledgedcpu=1)
    return world.add("core_stats", computingsite="SITE", jobstatus="running", ncores=2)


@cases(
    (ask(pledge_of_parent(), WORK_SHORTAGE=True), "pledge_exceeded"),
    (ask(parent(World(), "SITE", {"maxwdir": 0.0}, {}, maxwdir=1.0)), "scratch_disk"),
    (ask(parent(World(), "SITE", {}, {}).change("site_activity", getjob=0)), "no_pilot"),
)
def test_pseudo_queues_share_what_is_asked_of_their_parent(found: Found, expected: str) -> None:
    """Chapter 5: "Scope u: evaluated once per unified parent"; 1.6: "computingsite = parent name"."""
    assert found.checks() == {"SITE/0": expected, "SITE/1": expected}
