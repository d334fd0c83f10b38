"""A world under other rules: what is kept of what was looked up changes nothing of what is decided."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from polars.testing import assert_frame_equal

from brokerlab.brokerage import plugins
from brokerlab.gdpconfig import Config
from brokerlab.matching.rules import MatchingRules
from brokerlab.rulesets import single_switches, watched
from tests.twins import analysis_compare, analysis_worlds, compare
from tests.twins.worlds import random_world
from tests.unit.brokerage.production_tasks import world as nuclei

pytestmark = pytest.mark.filterwarnings("ignore::brokerlab.errors.BrokerlabWarning")

TABLES = {
    "jobs": lambda: compare.frames(random_world(2, 4, 8)),
    "analysis": lambda: analysis_compare.frames(analysis_worlds.random_world(9, 4, 8, easy=True)),
    "tasks": lambda: nuclei.frames(
        nuclei.world(
            "A", "B", queues=[
                {"panda_queue": f"Q{n}", "site": "A", "catchall": text, "status": "online"}
                for n, text in enumerate(("bareNucleus=allow", "", "bareNucleus=only"))
            ],
        )
    ),
}  # fmt: skip


@pytest.mark.parametrize("step", [8, pytest.param(1, marks=pytest.mark.long)])
@pytest.mark.parametrize("stage", ["jobs", "tasks", "analysis"])
def test_single_switches_decide_as_if_all_was_looked_up_for_them(stage: str, step: int) -> None:
    """Every eighth switch on which the rule sets differ, all of them in long runs, and the other set whole."""
    brokerage, tables = plugins.of_stage(stage), TABLES[stage]()
    ours, theirs = (brokerage.rule_set(name) for name in ("document", "production"))
    texts = MatchingRules("document"), MatchingRules("production")
    asked: list[tuple[Any, Any]] = [
        (one, None) for one in [*single_switches(ours, theirs).values()][::step]
    ]
    asked += [(theirs, None)]
    if stage != "tasks":
        asked += [(ours, one) for one in [*single_switches(*texts).values()][::step]]
    world = brokerage.prepare(tables, rules=ours)
    kept = 0
    for rules, matching in asked:
        now = world.with_rules(rules, matching)
        kept += all(one is other for one, other in zip(now.sides, world.sides, strict=True))
        mine = brokerage.of(now)
        whole = brokerage.decide(tables, rules=rules, matching=matching)
        assert_frame_equal(mine.places, whole.places, check_exact=True)
        assert_frame_equal(mine.tasks, whole.tasks, check_exact=True)
    assert 0 < kept < len(asked)


def test_other_rules_keep_the_configuration() -> None:
    brokerage, tables = plugins.of_stage("jobs"), TABLES["jobs"]()
    config = Config.empty().with_values({"jedi/jobbroker/NQUEUED_SAT_CAP": 1})
    rules = single_switches(brokerage.rule_set("document"), brokerage.rule_set("production"))
    for one in [*rules.values()][:3]:
        now = brokerage.prepare(tables).with_config(config).with_rules(one)
        mine = brokerage.of(now)
        whole = brokerage.decide(tables, rules=one, config=config)
        assert now.config is config
        assert_frame_equal(mine.places, whole.places, check_exact=True)


def test_what_is_read_of_a_rule_set() -> None:
    rules = MatchingRules("production")
    read = set[str]()
    copy = watched(rules, read)
    name = next(iter(rules.SWITCHES))
    assert isinstance(copy, MatchingRules)
    assert not read
    assert getattr(copy, name) == getattr(rules, name)
    assert read == {name}


def test_a_rule_set_made_of_one_that_is_watched() -> None:
    """A brokerage of one's own may turn a switch itself: what stays as it is was read."""
    rules, read = MatchingRules("production"), set[str]()
    first, *others = rules.SWITCHES
    made = replace(watched(rules, read), **{first: getattr(MatchingRules("document"), first)})
    assert read >= {*others}
    assert getattr(made, first) == getattr(MatchingRules("document"), first)
