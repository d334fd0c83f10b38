"""The job brokerage of many tasks at once against the plain loop, and against itself asked otherwise.

Worlds are random (:mod:`tests.twins.worlds`), so the properties run over seeds.
"""

from __future__ import annotations

import importlib
import pickle
from random import Random
from typing import Any

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from polars.testing import assert_frame_equal

from brokerlab.brokerage.engine.world import World
from brokerlab.brokerage.production_jobs.brokerage import BROKERAGE, decide
from brokerlab.brokerage.production_jobs.ranking import Decisions
from brokerlab.brokerage.rules import JobRules, ProductionRules
from tests.examples import examples
from tests.twins import compare, production_jobs
from tests.twins import switches as of_twin
from tests.twins.instants import with_instants
from tests.twins.worlds import random_world

pytestmark = pytest.mark.filterwarnings("ignore::brokerlab.errors.BrokerlabWarning")

N_TASKS, N_QUEUES = 16, 30
KEYS = ["jeditaskid", "snapshot", "panda_queue"]
COUNTS = ("nrunning", "nqueuedjobs", "nrunningjobscap", "platform", "network_weight", "maxwdir")
FLIPS = sorted(of_twin.SWITCHES)

Tables = dict[str, Any]
Frames = dict[str, pl.DataFrame]

seeds = st.integers(0, 10**6)
rule_sets = st.sampled_from(["document", "production"])


def flipped(name: str, rules: str) -> ProductionRules:
    """Return a rule set with one switch the other way."""
    own = getattr(ProductionRules(rules), name)
    other = next(value for value in of_twin.SWITCHES[name] if value != own)
    return ProductionRules(rules, **{name: other})


def decided(tables: Tables, frames: Frames, rules: ProductionRules, **more: Any) -> Decisions:
    return decide(frames, rules=rules, config=compare.config(tables), **more)


def disagreements(
    tables: Tables, rules: ProductionRules, found: Decisions | None = None
) -> list[str]:
    """Return what the plain loop decides differently from what is found, or is decided now."""
    found = found or decided(tables, compare.frames(tables), rules)
    rows = found.queues.join(found.weighed.select(*KEYS, *COUNTS), on=KEYS, how="left")
    loop = production_jobs.decide_all(tables, rules=rules)
    parents = {row["panda_queue"] for row in tables["queues"] if row["is_unified"]}
    return compare.differences(loop, rows.to_dicts(), found.tasks.to_dicts(), parents)


def same(one: Decisions, other: Decisions) -> None:
    """Hold two decisions to be the same, whatever the order in which tasks were asked for."""
    for name in ("queues", "weighed", "tasks"):
        ours, theirs = (_by_key(getattr(side, name)) for side in (one, other))
        assert_frame_equal(ours, theirs, check_exact=True)


def _by_key(frame: pl.DataFrame) -> pl.DataFrame:
    keys = [name for name in KEYS if name in frame.columns]
    texts = frame.with_columns(pl.col(pl.Enum, pl.Categorical).cast(pl.String))
    return texts.sort(keys) if keys else texts


def eased(tables: Tables) -> Tables:
    """Return the world with most of what skips queues taken away: the ranking has something to rank."""
    easy = {"status": "online", "type": "production", "fairsharepolicy": None, "maxrss": None, "minrss": None}  # fmt: skip
    easy |= {
        "maxwdir": 0,
        "mintime": 0,
        "maxtime": 0,
        "jobseed": "all",
        "wnconnectivity": "full#IPv4",
    }
    tasks = [
        task | {"transhome": None, "corecount": 0, "t1weight": -1 if number % 4 == 0 else 0, "site": None}
        for number, task in enumerate(tables["tasks"])
    ]  # fmt: skip
    caps = [{"component": "jobbroker", "key": "NQUEUED_NUC_CAP_FOR_JOBS", "value": 900}]
    closed = {"N2_DATADISK": {"write_wan": "OFF"}}
    endpoints = [
        row | closed.get(row["ddm_endpoint_name"], {}) for row in tables["storage_endpoints"]
    ]
    return tables | {
        "storage_endpoints": endpoints,
        "queues": [row | easy for row in tables["queues"]],
        "tasks": tasks,
        "gdpconfig": [row for row in tables["gdpconfig"] if row["key"] != caps[0]["key"]] + caps,
    }


# ---- against the plain loop


@pytest.mark.parametrize("rules", ["document", "production"])
@pytest.mark.parametrize("seed", [8, 17])
def test_the_loop_decides_the_same(seed: int, rules: str) -> None:
    assert not disagreements(random_world(seed, 60, 50), ProductionRules(rules))


@given(seed=seeds, rules=rule_sets)
@settings(max_examples=examples(10), deadline=None)
def test_the_loop_decides_the_same_anywhere(seed: int, rules: str) -> None:
    assert not disagreements(random_world(seed, N_TASKS, N_QUEUES), ProductionRules(rules))


@given(seed=seeds, rules=rule_sets)
@settings(max_examples=examples(6), deadline=None)
def test_the_loop_ranks_the_same(seed: int, rules: str) -> None:
    assert not disagreements(eased(random_world(seed, N_TASKS, N_QUEUES)), ProductionRules(rules))


@given(seed=seeds, rules=rule_sets, queues_change=st.booleans())
@settings(max_examples=examples(8), deadline=None)
def test_the_loop_decides_the_same_at_every_instant(
    seed: int, rules: str, *, queues_change: bool
) -> None:
    world = with_instants(random_world(seed, N_TASKS, N_QUEUES), seed, queues_change=queues_change)
    assert not disagreements(world, ProductionRules(rules))


@given(seed=seeds, rules=rule_sets, name=st.sampled_from(FLIPS))
@settings(max_examples=examples(10), deadline=None)
def test_the_loop_decides_the_same_with_one_switch_flipped(
    seed: int, rules: str, name: str
) -> None:
    assert not disagreements(random_world(seed, N_TASKS, N_QUEUES), flipped(name, rules))


FLIPPED = random_world(5, 20, 30)


@pytest.fixture(scope="module")
def looked_up() -> World:
    frames, config = compare.frames(FLIPPED), compare.config(FLIPPED)
    return BROKERAGE.prepare(frames, rules="document", config=config)


@pytest.mark.parametrize("name", FLIPS)
def test_every_switch_of_the_loop_flips(name: str, looked_up: World) -> None:
    """What the switch does not change is looked up once; tests/unit/brokerage/engine/test_rules.py compares that with a whole decision,
    of every eighth switch and in long runs of all."""
    rules = flipped(name, "document")
    now = looked_up.with_rules(rules)
    assert not disagreements(FLIPPED, rules, BROKERAGE.of(now))


def test_decisions_are_the_same_after_a_pickle(looked_up: World) -> None:
    mine = BROKERAGE.of(looked_up)
    again = pickle.loads(pickle.dumps(mine))  # noqa: S301 - our own
    assert mine.places["check"].null_count()
    assert_frame_equal(again.places, mine.places, check_exact=True)
    assert_frame_equal(again.tasks, mine.tasks, check_exact=True)


def test_the_loop_knows_every_switch_of_the_job_brokerage() -> None:
    of_jobs = set(JobRules.SWITCHES)
    assert of_jobs == set(of_twin.SWITCHES)
    for name, (document, production) in of_twin.SWITCHES.items():
        assert getattr(ProductionRules("document"), name) == document
        assert getattr(ProductionRules("production"), name) == production


def test_random_worlds_are_odd_enough() -> None:
    """Every check bites somewhere, so that agreement says something."""
    bites: set[str] = set()
    worlds = (random_world(seed, 60, 50) for seed in range(4))
    for tables in (each for world in worlds for each in (world, eased(world))):
        for rules in ("document", "production"):
            found = decided(tables, compare.frames(tables), ProductionRules(rules))
            bites |= set(found.queues["check"].drop_nulls().cast(pl.String))
            every = set(found.queues.schema["check"].categories)
            if every == bites:
                return
    pytest.fail(f"never: {every - bites}")


# ---- against itself


@given(seed=seeds, rules=rule_sets, instants=st.booleans())
@settings(max_examples=examples(6), deadline=None)
def test_tasks_do_not_see_each_other(seed: int, rules: str, *, instants: bool) -> None:
    """A batch of tasks decides what each part of it decides (one code path from one task to a month)."""
    tables = random_world(seed, N_TASKS, N_QUEUES)
    if instants:
        tables = with_instants(tables, seed)
    frames, rule_set = compare.frames(tables), ProductionRules(rules)
    whole = decided(tables, frames, rule_set)
    rng = Random(seed)  # noqa: S311 - test data
    number = pl.Series([rng.randrange(3) for _ in range(frames["tasks"].height)])
    parts = [frames["tasks"].filter(number == n) for n in range(3)]
    alone = rng.randrange(frames["tasks"].height)
    for tasks in (*parts, frames["tasks"].slice(alone, 1)):
        found = decided(tables, frames | {"tasks": tasks}, rule_set)
        keys = tasks.select("jeditaskid", "snapshot")
        for name in ("queues", "weighed", "tasks"):
            kept = getattr(whole, name).join(keys, on=keys.columns, how="semi")
            assert_frame_equal(_by_key(getattr(found, name)), _by_key(kept), check_exact=True)


def test_parts_of_the_pairs_are_put_together(monkeypatch: pytest.MonkeyPatch) -> None:
    tables = with_instants(random_world(2, N_TASKS, N_QUEUES), 2)
    frames = compare.frames(tables)
    whole = decided(tables, frames, ProductionRules("production"))
    module = importlib.import_module("brokerlab.brokerage.engine.decide")
    monkeypatch.setattr(module, "PAIRS_AT_ONCE", 200)
    same(decided(tables, frames, ProductionRules("production")), whole)


STORED_ORDER = {
    "core_stats": "of two rows of one queue and status the last holds (1.6)",
    "datasets": "messages name incomplete datasets in stored order",
}
"""Tables whose order says something; the random worlds have no such rows but in these."""


@given(seed=seeds, rules=rule_sets, instants=st.booleans())
@settings(max_examples=examples(6), deadline=None)
def test_rows_in_any_order(seed: int, rules: str, *, instants: bool) -> None:
    tables = random_world(seed, N_TASKS, N_QUEUES)
    if instants:
        tables = with_instants(tables, seed)
    frames, rule_set = compare.frames(tables), ProductionRules(rules)
    shuffled = {
        name: frame if name in STORED_ORDER else frame.sample(fraction=1, shuffle=True, seed=seed)
        for name, frame in frames.items()
    }
    same(decided(tables, shuffled, rule_set), decided(tables, frames, rule_set))


# ---- hint mode


@given(seed=seeds, rules=rule_sets)
@settings(max_examples=examples(6), deadline=None)
def test_hints_are_those_of_the_loop(seed: int, rules: str) -> None:
    tables = random_world(seed, N_TASKS, N_QUEUES)
    rule_set = ProductionRules(rules)
    found = decided(tables, compare.frames(tables), rule_set, hint=True)
    hints = found.queues.filter(pl.col("check").is_null())
    ours: dict[int, set[str]] = {}
    for jeditaskid, queue in hints.select("jeditaskid", "panda_queue").iter_rows():
        ours.setdefault(jeditaskid, set()).add(queue)
    world = production_jobs.index_world(tables, rule_set)
    names = [name for name in world.names if world.runs_production(name)]
    for task in tables["tasks"]:
        loop = production_jobs.decide(world, task | {"nucleus": None}, hint_queues=names)
        theirs = {row["panda_queue"] for row in loop["queues"] if not row["skipped"]}
        assert ours.get(task["jeditaskid"], set()) == theirs
