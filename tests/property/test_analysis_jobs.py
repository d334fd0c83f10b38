"""The analysis brokerage of many tasks at once against the plain loop, and against itself asked otherwise.

Worlds are random (:mod:`tests.twins.analysis_worlds`), so the properties run over seeds.
"""

from __future__ import annotations

from random import Random
from typing import Any

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from polars.testing import assert_frame_equal

from brokerlab.brokerage.analysis_jobs import AnalysisDecisions, AnalysisRules, decide
from tests.examples import examples
from tests.twins import analysis_compare as compare
from tests.twins import analysis_world as of_twin
from tests.twins.analysis_worlds import random_world

pytestmark = pytest.mark.filterwarnings("ignore::brokerlab.errors.BrokerlabWarning")

N_TASKS, N_QUEUES = 12, 15
KEYS = ["jeditaskid", "snapshot", "panda_queue"]
TABLES = ("queues", "first_loop", "weighed", "tasks")
FLIPS = sorted(of_twin.SWITCHES)
OUTCOMES = {"candidates", "temporary_error", "fatal", "throttled_waiting"}
THROTTLES = {
    "cap_running_jobs", "cap_queued_jobs", "cap_running_cores", "cap_queued_cores", "gshare_class_a", "gshare_class_b",
    "gshare_class_c", "global_quota", "near_global_quota", "quota_unavailable", "input_incomplete",
}  # fmt: skip

Tables = dict[str, Any]

seeds = st.integers(0, 10**6)
rule_sets = st.sampled_from(["document", "production"])


BITS = 6
"""Enough for the number of each switch; every switch is flipped in some worlds and not in others."""


def flipped(number: int, rules: str) -> AnalysisRules:
    """Return a rule set with half of the switches the other way: no two switches always go together."""
    own, bit, otherwise = AnalysisRules(rules), number % BITS, number >= BITS
    names = [name for place, name in enumerate(FLIPS, 1) if (place >> bit & 1) != otherwise]
    return AnalysisRules(rules, **{name: compare.other(name, getattr(own, name)) for name in names})


def by_key(frame: pl.DataFrame) -> pl.DataFrame:
    keys = [name for name in KEYS if name in frame.columns]
    return frame.with_columns(pl.col(pl.Enum, pl.Categorical).cast(pl.String)).sort(keys)


# ---- against the plain loop


WORLDS = (
    *((2, False), (3, False), (6, False), (9, False), (9, True)),
    *((11, False), (13, True), (16, False), (21, True)),
)
"""Seeds, found by trying."""


def test_the_loop_decides_the_same_and_every_rule_bites() -> None:
    """Both rule sets; every check and every throttle says no somewhere, so that agreement says something."""
    bites: set[str] = set()
    for seed, easy in WORLDS:
        rules = AnalysisRules("document" if (seed + easy) % 2 else "production")
        world = random_world(seed, 40, 25, easy=easy)
        found = compare.decided(world, rules)
        assert not compare.disagreements(world, rules, found)
        walks = (found.queues, found.first_loop)
        bites |= {str(check) for walk in walks for check in walk["check"].drop_nulls().unique()}
        bites |= set(found.tasks["throttle"].drop_nulls()) | set(found.tasks["outcome"])
    checks = set(found.queues.schema["check"].categories)
    assert bites == checks | THROTTLES | OUTCOMES


@given(seed=seeds, rules=rule_sets, easy=st.booleans())
@settings(max_examples=examples(3))
def test_the_loop_decides_the_same_at_every_instant(seed: int, rules: str, *, easy: bool) -> None:
    world = random_world(seed, N_TASKS, N_QUEUES, instants=True, easy=easy)
    assert not compare.disagreements(world, AnalysisRules(rules))


@pytest.mark.parametrize("number", range(2 * BITS))
def test_the_loop_decides_the_same_with_switches_flipped(number: int) -> None:
    world = random_world(100 + number, 3 * N_TASKS, N_QUEUES, easy=number % 3 == 0)
    rules = flipped(number, "production" if number % 2 else "document")
    assert not compare.disagreements(world, rules)


def test_every_switch_is_flipped_with_others_and_without_them() -> None:
    assert len(FLIPS) < 2**BITS - 1
    for rules in ("document", "production"):
        base = AnalysisRules(rules).to_dict()
        found = [flipped(number, rules).to_dict() for number in range(2 * BITS)]
        seen = [tuple(each[name] != base[name] for each in found) for name in FLIPS]
        assert all(any(each) and not all(each) for each in seen)
        assert len(set(seen)) == len(FLIPS)


def test_the_loop_knows_every_switch() -> None:
    assert of_twin.SWITCHES.keys() == AnalysisRules.SWITCHES.keys()
    for name, (document, production) in of_twin.SWITCHES.items():
        assert getattr(AnalysisRules("document"), name) == document
        assert getattr(AnalysisRules("production"), name) == production


# ---- against itself


@given(seed=seeds, rules=rule_sets, instants=st.booleans())
@settings(max_examples=examples(2))
def test_a_batch_of_tasks_decides_what_each_decides_alone(
    seed: int, rules: str, *, instants: bool
) -> None:
    world = random_world(seed, N_TASKS, N_QUEUES, instants=instants)
    frames, rule_set = compare.frames(world), AnalysisRules(rules)
    config = compare.config(world)
    whole = decide(frames, rules=rule_set, config=config)
    rng = Random(seed)  # noqa: S311 - test data
    number = pl.Series([rng.randrange(2) for _ in range(frames["tasks"].height)])
    alone = frames["tasks"].slice(rng.randrange(frames["tasks"].height), 1)
    for tasks in (frames["tasks"].filter(number == 0), alone):
        part = decide(frames | {"tasks": tasks}, rules=rule_set, config=config)
        keys = tasks.select("jeditaskid", "snapshot")
        for name in TABLES:
            kept = getattr(whole, name).join(keys, on=keys.columns, how="semi")
            assert_frame_equal(by_key(getattr(part, name)), by_key(kept), check_exact=True)


@given(seed=seeds, rules=rule_sets, instants=st.booleans())
@settings(max_examples=examples(2))
def test_rows_in_any_order(seed: int, rules: str, *, instants: bool) -> None:
    world = random_world(seed, N_TASKS, N_QUEUES, instants=instants)
    frames, rule_set = compare.frames(world), AnalysisRules(rules)
    shuffled = {
        name: frame.sample(fraction=1, shuffle=True, seed=seed) for name, frame in frames.items()
    }
    config = compare.config(world)
    same(
        decide(shuffled, rules=rule_set, config=config),
        decide(frames, rules=rule_set, config=config),
    )


def same(one: AnalysisDecisions, other: AnalysisDecisions) -> None:
    """Hold two decisions to be the same, whatever the order in which tasks were asked for."""
    for name in TABLES:
        assert_frame_equal(
            by_key(getattr(one, name)), by_key(getattr(other, name)), check_exact=True
        )
