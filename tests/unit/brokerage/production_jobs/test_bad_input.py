"""What cannot be right is decided as the chapter says, or told; it never stops a month of tasks.

Every world here has a second, plain task, which has to be decided as if nothing were wrong.
"""

from __future__ import annotations

import json
import math
import warnings
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import polars as pl
import pytest

from brokerlab import brokerage
from brokerlab.brokerage import plugins, production_tasks
from brokerlab.brokerage.contracts import TABLES
from brokerlab.brokerage.production_jobs.brokerage import decide
from brokerlab.brokerage.production_jobs.ranking import Decisions
from brokerlab.brokerage.rules import ProductionRules
from brokerlab.errors import BrokerlabWarning, SchemaError
from tests.brokerage_toys import AT, NUCLEUS, TASK, World, reasons
from tests.twins import compare
from tests.twins.worlds import random_world
from tests.unit.brokerage.production_jobs.book import ADDED, Book, Found, ask, cases

PLAIN = 2
GOOD, BAD = "GOOD_Q", "BAD_Q"


def world(task: dict[str, Any] | None = None, **queue: Any) -> World:
    """Return a world of a task and a queue with something wrong, beside a plain task and a plain queue."""
    return World(**(task or {})).task(PLAIN).queue(GOOD).queue(BAD, **queue)


def outcome(decisions: Decisions, task: int = TASK) -> str:
    return str(decisions.tasks.filter(jeditaskid=task)["outcome"].item())


def of_odd(found: Found) -> tuple[str, dict[str, str | None]]:
    """Return outcome and reasons of the odd task; the plain task must not notice."""
    assert found.checks(PLAIN)[GOOD] is None
    assert found.tasks[PLAIN]["outcome"] == "candidates"
    return found.task["outcome"], found.checks()


def decided(odd: World) -> tuple[str, dict[str, str | None]]:
    """Return the same of a world that is decided alone, as it is told of."""
    return of_odd(Found(odd, Book(ADDED, False, {})))


def both(*worlds: tuple[World, str | None]) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Parametrise a test by why the odd queue of each world is skipped, which must not depend on the rule set."""
    return cases(
        *((ask(odd, rules), check) for odd, check in worlds for rules in ("document", "production"))
    )


def why_bad(found: Found) -> str | None:
    return of_odd(found)[1][BAD]


def together(worlds: dict[str, World]) -> dict[str, Found]:
    """Decide worlds together that the library warns of, by what is odd about each."""
    book = Book(ADDED, False, {})
    found = {name: Found(odd, book) for name, odd in worlds.items()}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", BrokerlabWarning)
        book.decide()
    return found


# ---- nuclei


@cases(
    *(
        (
            ask(world({"nucleus": nucleus}).link("BAD", closeness=-1).nucleus("OTHER")),
            ("candidates", {GOOD: None, BAD: None}),
        )
        for nucleus in (None, "")
    )
)
def test_a_task_without_nucleus_has_no_network_rules(found: Found, expected: Any) -> None:
    """1.1: "no network rules"."""
    assert of_odd(found) == expected


@pytest.mark.parametrize("nucleus", ["NOWHERE", " NUC", "nuc"])
def test_an_unknown_nucleus_fails_its_task_only(nucleus: str) -> None:
    """2, B1: "task fails this cycle"."""
    found = world({"nucleus": nucleus}).decided()
    assert outcome(found) == "unknown_nucleus"
    assert found.tasks["detail"][0] == f"nucleus {nucleus} is neither nucleus nor satellite"
    assert found.tasks["n_queues"].to_list() == [0, 2]
    assert outcome(found, PLAIN) == "candidates"


@cases(
    (
        ask(world({"nucleus": "EMPTY"}).add("nuclei", nucleus="EMPTY")),
        ("candidates", {GOOD: None, BAD: None}),
    )
)
def test_a_nucleus_without_queues_or_endpoints(found: Found, expected: Any) -> None:
    assert of_odd(found) == expected


def test_a_nucleus_told_twice_is_told_of_once() -> None:
    odd = (
        world().nucleus(NUCLEUS, default_endpoint_out="CLOSED").endpoint("CLOSED", write_wan="OFF")
    )
    with pytest.warns(BrokerlabWarning, match="nuclei: 1 rows repeat nucleus, the last one holds"):
        found = odd.decided()
    assert reasons(found) == {GOOD: "nucleus_unwritable", BAD: "nucleus_unwritable"}


# ---- queues


def without_endpoints() -> World:
    odd = world()
    odd.tables["queue_endpoints"] = [
        row for row in odd.tables["queue_endpoints"] if row["panda_queue"] != BAD
    ]
    return odd


@cases(
    (ask(without_endpoints(), "document"), None),
    (ask(without_endpoints(), "production"), "read_lan_down"),
)
def test_a_queue_without_endpoints_cannot_be_read(found: Found, expected: str | None) -> None:
    """Nothing that it has is blacklisted; the deployed code asks for a DATADISK input endpoint with read_lan up."""
    assert why_bad(found) == expected


@cases(
    *(
        (
            ask(
                world().change(
                    "queue_endpoints", {"panda_queue": BAD}, ddm_endpoint_name="LOST_DATADISK"
                ),
                rules,
            ),
            check,
        )
        for rules, check in (("document", None), ("production", "read_lan_down"))
    )
)
def test_endpoints_that_nobody_knows_count_for_nothing(found: Found, expected: str | None) -> None:
    assert why_bad(found) == expected


@both(
    (world().link("BAD", closeness=-1), "link_blocked"),
    (
        world()
        .link("BAD", closeness=-1)
        .change("queue_storage_site", {"panda_queue": BAD}, site_name=None),
        None,
    ),
)
def test_a_queue_without_storage_site_has_no_link(found: Found, expected: str | None) -> None:
    """5, 3: "storage site of queue known"."""
    assert why_bad(found) == expected


@both((world(corecount=None), "core_count"), (world(corecount=0), "core_count"))
def test_null_cores_are_a_single_core(found: Found, expected: str | None) -> None:
    """1.4: "0 = undefined (single core)"."""
    assert why_bad(found) == expected


@cases(
    *(
        (
            ask(
                world({"corecount": None}, corecount=cores).change(
                    "tasks", {"jeditaskid": TASK}, ramcount=20_000
                )
            ),
            # 20,000 MB are needed once, 32,000 there are
            {BAD: None, GOOD: "core_count"},
        )
        for cores in (None, 0)
    )
)
def test_a_task_without_cores_has_a_single_core(found: Found, expected: Any) -> None:
    assert of_odd(found)[1] == expected


@cases(
    (
        ask(
            world({"corecount": 0}, corecount=None, running=0).add(
                "slots", panda_queue=BAD, numslots=30
            ),
            "document",
        ),
        30,
    )
)
def test_null_cores_of_slots_divide_by_one(found: Found, expected: int) -> None:
    assert found.queues()[BAD]["nrunning"] == expected


@both(
    *(
        (odd, check)
        for power in (None, 0.0)
        for odd, check in (
            (world(corepower=power), "walltime_max"),
            (world(corepower=power, maxtime=0), None),
            (world({"cputimeunit": None, "walltime": 1.0}, corepower=power), None),
        )
    )
)
def test_zero_core_power_holds_no_work(found: Found, expected: str | None) -> None:
    """4.4: "corepower 0: capacity 0"."""
    assert why_bad(found) == expected


@cases(
    (
        ask(world().change("queues", {"panda_queue": BAD}, unified_name="GONE", maxwdir=1.0)),
        False,
    )
)
def test_a_pseudo_queue_whose_parent_is_missing_stands_for_itself(
    found: Found, expected: bool
) -> None:
    assert (why_bad(found) is None) == expected


def test_a_queue_told_twice_is_told_of_once() -> None:
    odd = world()
    odd.tables["queues"].append(odd.tables["queues"][1] | {"status": "offline"})
    with pytest.warns(BrokerlabWarning, match="queues: 1 rows repeat snapshot, panda_queue"):
        found = odd.decided()
    assert reasons(found, PLAIN) == {GOOD: None, BAD: "status_offline"}


# ---- lists of queues


@cases(
    *(
        (ask(world(task)), ("no_candidates", {}))
        for task in (
            {"site": "NOWHERE"},
            {"site": ","},
            {"is_merging": True, "preassigned_site": "NOWHERE"},
        )
    )
)
def test_a_list_of_unknown_queues_stays_a_list(found: Found, expected: Any) -> None:
    """3: "the listed queues"."""
    assert of_odd(found) == expected


@pytest.mark.parametrize("name", ["production-jobs", "analysis-jobs"])
def test_a_task_or_queue_told_twice_is_told_of_once_and_of_an_instant_first(name: str) -> None:
    small, large = {"panda_queue": BAD, "maxrss": 1000.0}, {"panda_queue": BAD}
    tasks = [{"jeditaskid": 1, "snapshot": 5, "ramcount": ram} for ram in (100, 3000)]
    brokers, skipped = plugins.get(name), "memory_max" if name[0] == "p" else "lowmemory"

    def found(tasks: Any, queues: Any) -> list[tuple[int, str, str | None]]:
        decided = brokers.decide(brokerage.world(tasks, queues, brokerage=name))
        return decided.places.select("jeditaskid", "panda_queue", "check").rows()

    with pytest.warns(
        BrokerlabWarning, match="tasks: 1 rows repeat jeditaskid, snapshot, the last"
    ):
        assert found(tasks, [small]) == [(1, BAD, skipped)]
    with pytest.warns(BrokerlabWarning, match="queues: 1 rows repeat snapshot, panda_queue, the l"):
        assert found(tasks[1:], [large, small]) == [(1, BAD, skipped)]
    for own, every, check in ((large, small, None), (small, large, skipped)):
        for queues in ([own | {"snapshot": 5}, every], [every, own | {"snapshot": 5}]):
            assert found(tasks[1:], queues) == [(1, BAD, check)]


def test_numbers_that_are_none_are_not_known() -> None:
    queues = pl.DataFrame({"panda_queue": [BAD], "minrss": [float("nan")], "maxrss": [4000.0]})
    for given in (queues, queues.to_dicts()):
        decided = decide(brokerage.world([{"ramcount": 2000}], given))
        assert decided.queues["check"].to_list() == [None]
    sites = [{"nucleus": name, "output_endpoints": [name]} for name in ("M", "N")]
    storage = [{"ddm_endpoint_name": "M"}, {"ddm_endpoint_name": "N", "space_expired": math.nan}]
    tables = brokerage.world(
        [{}], brokerage="production-tasks", nuclei=sites, storage_endpoints=storage
    )
    assert production_tasks.decide(tables).nuclei["probability"].to_list() == [0.5, 0.5]


@cases((ask(world({"site": f" {BAD} ,{BAD},"})), ("candidates", {BAD: None})))
def test_blanks_and_repeats_in_a_list(found: Found, expected: Any) -> None:
    assert of_odd(found) == expected


# ---- texts


@pytest.mark.parametrize(
    ("policy", "reason"),
    [
        ("type=simul:0%", "zero_share"),
        (" type=simul : 0% ", None),
        ("type=evgen:100%, type=any:0%", None),
        ("colour=red:0%", None),
        ("type=(:0%", None),
        ("type=sim.[:0%,type=any:0%", None),
        ("type=(simul)+$)(:0%", None),
        ("priority>abc:0%", "zero_share"),
        (":::,,:", None),
        ("0%", None),
    ],
)
def test_policies_that_cannot_be_read_give_a_share(policy: str, reason: str | None) -> None:
    """4.5: "An invalid regexp: not zero share"; "an unparsable comparison holds"."""
    odd = world(fairsharepolicy=policy)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        found = decided(odd)[1][BAD]
    assert (found == "zero_share") == (reason == "zero_share") or told
    if policy.startswith("type=simul"):
        assert not told
    if policy in ("type=(:0%", "colour=red:0%", "priority>abc:0%", "type=evgen:100%, type=any:0%"):
        assert any("fairsharepolicy" in str(warning.message) for warning in told)
        assert all(warning.category is BrokerlabWarning for warning in told)


def test_a_hostile_pattern_does_not_hang() -> None:
    odd = world({"workinggroup": "a" * 200}, fairsharepolicy="group=(a+)+$:0%")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", BrokerlabWarning)
        assert outcome(odd.decided(), PLAIN) == "candidates"


ALMOST_JSON = ("", "{", "[]", "null", '{"cmtconfigs": "x"}', "{'cmtconfigs': []}", '{"a": 1,}', "NaN")  # fmt: skip


def publishing(data: str) -> World:
    wanted = {"architecture": "x86_64-el9-gcc13-opt", "transhome": "Athena-24.0.40"}
    odd = world(wanted, releases=["AUTO"]).change("queues", {"panda_queue": GOOD}, releases=["ANY"])
    good = {"cmtconfigs": ["x86_64-el9-gcc13-opt"], "cvmfs": ["atlas"], "containers": [], "tags": [], "architectures": []}  # fmt: skip
    return odd.add("sw_tags", panda_queue=GOOD, data=json.dumps(good)).add(
        "sw_tags", panda_queue=BAD, data=data
    )


@pytest.fixture(scope="module")
def published() -> dict[str, Found]:
    return together({data: publishing(data) for data in ALMOST_JSON})


@pytest.mark.parametrize("data", ALMOST_JSON)
def test_almost_json_publishes_nothing(data: str, published: dict[str, Found]) -> None:
    """matching.md: a description that cannot be read is none."""
    assert why_bad(published[data]) == "software_hardware"


ALMOST_ARCHITECTURES = ("{", '{"sw_platform": }', "#&", "(x86_64", "@@", "x" * 300, '{"cpu_specs": 3}')  # fmt: skip


@pytest.fixture(scope="module")
def compiled() -> dict[str, Found]:
    return together(
        {
            text: world({"architecture": text, "transhome": "Athena-24.0.40"})
            for text in ALMOST_ARCHITECTURES
        }
    )


@pytest.mark.parametrize("architecture", ALMOST_ARCHITECTURES)
def test_almost_an_architecture_stops_nothing(
    architecture: str, compiled: dict[str, Found]
) -> None:
    assert of_odd(compiled[architecture])[0]


def test_a_release_without_dash_is_told() -> None:
    """J36: "transhome without `-`": "defaults of 1.1, warn"."""
    odd = world({"transhome": "Athena"}, releases=["AUTO"])
    with pytest.warns(BrokerlabWarning, match="transhome 'Athena'"):
        found = odd.decided()
    assert outcome(found, PLAIN) == "candidates"


ALMOST_PARAMETERS = ("{", "[1]", '{"use_only_local_data": "maybe"}', "null")


@pytest.fixture(scope="module")
def parametrised() -> dict[str, Found]:
    return together(
        {params: world(params=params, catchall=",,=,bareNucleus=") for params in ALMOST_PARAMETERS}
    )


@pytest.mark.parametrize("params", ALMOST_PARAMETERS)
def test_almost_json_among_the_parameters(params: str, parametrised: dict[str, Found]) -> None:
    assert why_bad(parametrised[params]) is None


# ---- links


def backwards() -> World:
    odd = world().link(NUCLEUS, dst="BAD", closeness=-1, queued=10**6)
    return odd.link(NUCLEUS, closeness=-1)


@both((backwards(), None), (backwards().link("BAD", closeness=-1), "link_blocked"))
def test_links_hold_in_their_direction_only(found: Found, expected: str | None) -> None:
    """network-weight.md 2: from the storage of the queue to the nucleus."""
    assert why_bad(found) == expected


@both(
    *(
        (world().link("BAD", closeness=-1).change("network_matrix", {"src": "BAD"}, ts=ts), None)
        for ts in (AT - timedelta(minutes=61), None)
    )
)
def test_stale_metrics_are_none(found: Found, expected: str | None) -> None:
    """network-weight.md 2: what is older than an hour does not count."""
    assert why_bad(found) == expected


@both(
    (world().add("network_matrix", src="BAD", dst=NUCLEUS, key="colour", value=-1.0, ts=AT), None)
)
def test_metrics_that_nobody_knows_count_for_nothing(found: Found, expected: str | None) -> None:
    assert why_bad(found) == expected


# ---- numbers and whole tables


ODD_NUMBERS = [
    {"cpuefficiency": 0.0}, {"cpuefficiency": None, "basewalltime": None, "baseramcount": None},
    {"atom_nevents": 0, "atom_size_effective": float("nan")}, {"nesconsumers": 0, "eventservice": 1},
    {"currentpriority": None, "corecount": None}, {"corecount": -1, "ramcount": -5},
    {"maxattemptesjob": -1, "eventservice": 2}, {"dynamicnumevents": 10, "cputime": None},
    {"outdiskunit": "parsec", "workdiskunit": "", "cputimeunit": "moons", "ramcountunit": "?"},
    {"cputime": float("inf")}, {"gshare": None, "prodsourcelabel": None, "processingtype": None},
]  # fmt: skip


@cases(
    *(
        (ask(world(task), rules), ("candidates", "no_candidates"))
        for task in ODD_NUMBERS
        for rules in ("document", "production")
    )
)
def test_odd_numbers_of_a_task_are_its_own_affair(found: Found, expected: tuple[str, ...]) -> None:
    assert of_odd(found)[0] in expected


@pytest.mark.parametrize("name", sorted(set(TABLES) - {"tasks"}))
def test_any_table_may_be_missing(name: str) -> None:
    tables = compare.frames(random_world(1, 6, 16))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", BrokerlabWarning)
        found = decide({key: frame for key, frame in tables.items() if key != name})
    assert found.tasks.height == tables["tasks"].height


def test_tables_in_pieces() -> None:
    """Polars 2.1 panics at texts made from columns with empty chunks."""
    tables = compare.frames(random_world(1, 6, 16))
    pieces = {
        name: pl.concat(
            [frame.head(0), frame.head(3), frame.head(0), frame.slice(3)], rechunk=False
        )
        for name, frame in tables.items()
    }
    assert decide(pieces).queues.equals(decide(tables).queues)


def test_what_cannot_be_a_table_is_refused_at_once() -> None:
    odd = world().frames()
    odd["site_activity"] = odd["site_activity"].with_columns(laststart=pl.lit("yesterday"))
    odd["queues"] = odd["queues"].with_columns(corecount=pl.lit("many"))
    with pytest.raises(SchemaError, match=r"queues\.corecount: .*site_activity\.laststart: "):
        decide(odd | {"quees": odd["queues"]}, rules=ProductionRules())
