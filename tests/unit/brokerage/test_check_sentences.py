"""Every check can be told: each name in its sentences has a value, and numbers read what the check reads."""

from __future__ import annotations

import polars as pl
import pytest

from brokerlab import brokerage
from brokerlab.brokerage import checks_table
from brokerlab.brokerage.engine.decide import Waived, trial
from brokerlab.brokerage.explaining.question import subject
from brokerlab.brokerage.explaining.queues import OfJobs
from brokerlab.brokerage.explanations import OfNucleus
from brokerlab.brokerage.rules import ProductionRules
from brokerlab.brokerage.words import filled, names_in
from brokerlab.errors import ConfigError
from tests.brokerage_toys import TASK, World
from tests.unit.brokerage.production_tasks.world import decided, world

RULES = [
    ProductionRules("document"),
    ProductionRules("production"),
    ProductionRules("document", cap_mode="twice_running", maxwdir_per_core=True),
]


@pytest.mark.parametrize("rules", RULES, ids=["document", "production", "caps of the document"])
def test_every_name_in_a_sentence_has_a_value(rules: ProductionRules) -> None:
    decisions = World().queue("CERN_X").data().decided(rules)
    late = trial(decisions, 0)().late
    assert late is not None
    reasons = decisions.reasons
    question = OfJobs(decisions, subject(decisions.tasks, TASK, None))
    place = Waived(0, 0, tuple(reason.name for reason in reasons), late, late, {}, 1)
    for found in question.obstacles(place, -1):
        assert "{" not in found.text
    for reason in reasons:
        known = question.values(place, set(reason.reads))
        assert known.with_columns(**reason.numbers).height == 1
        for flag, clause in reason.variants.items():
            values = dict.fromkeys((*reason.columns(), *reason.numbers), False) | {flag: True}
            assert reason.clause(values) == filled(clause, values)
            assert set(names_in(clause)) <= {*reason.columns(), *reason.numbers}


def test_a_day_of_a_job_of_unknown_wall_time_is_compared_with_core_seconds() -> None:
    """Deployed, 172,800 s x 8 cores are compared with HS06 s: no base time, power and efficiency are in the number."""
    queue = {"panda_queue": "Q", "corecount": 8, "maxtime": 172_800}
    tables = brokerage.world([{"jeditaskid": 1, "corecount": 8}], [queue])
    said = brokerage.explain(
        brokerage.decide(tables, rules="production"), jeditaskid=1, panda_queue="Q"
    ).text
    fits = "1,382,400 fit into the queue's maxtime of 172,800 s (x 8 cores, whatever their power)"
    assert f"6,912,000 HS06 s; {fits}" in said


def test_a_slot_of_unknown_cores_is_told_as_the_one_core_that_counts() -> None:
    queue = {"panda_queue": "Q", "corecount": None, "corepower": 10.0, "maxtime": 100}
    task = {"jeditaskid": 1, "cputime": 2e3, "cputimeunit": "HS06sPerEvent", "atom_nevents": 1}
    tables = brokerage.world([task], [queue])
    said = brokerage.explain(brokerage.decide(tables), jeditaskid=1, panda_queue="Q").text
    assert "needs 2,000 HS06 s, 900 HS06 s fit" in said
    assert "100 s (less 0 s, x 1 core x 10 HS06 x efficiency 90 %)" in said


def test_every_sentence_about_a_nucleus_can_be_told() -> None:
    for rules in RULES:
        decisions = decided(world("N1"), rules)
        late = trial(decisions, 0)().late
        assert late is not None
        names = tuple(reason.name for reason in decisions.reasons)
        task = decisions.tasks["jeditaskid"].item()
        question = OfNucleus(decisions, subject(decisions.tasks, task, None))
        for found in question.obstacles(Waived(0, 0, names, late, late, {}, 1), -1):
            assert "{" not in found.text


def test_the_table_of_checks_has_every_check_in_order() -> None:
    table = checks_table()
    decisions = World().queue("A").decided()
    assert table["step"].to_list() == list(range(1, table.height + 1))
    assert table["check"].to_list() == [*(rule.name for rule in decisions.reasons), "weight"]
    late = [
        "input_to_move", "locked", "local_data_only", "queued_cap", "network_weight_low", "queued_cap_rt",
        "below_min_weight", "t1_not_largest", "rank",
    ]  # fmt: skip
    assert table["check"].to_list()[-len(late) - 1 : -1] == late
    scratch = table.filter(pl.col("check") == "scratch_disk").row(0, named=True)
    assert scratch["source"] == "production-jobs.md 5"
    assert "maxwdir" in scratch["queue_fields"]
    assert "outdiskcount" in scratch["task_fields"]
    nuclei = checks_table(stage="tasks")
    assert nuclei["check"].to_list()[0] == "nucleus_inactive"
    assert nuclei.filter(pl.col("check") == "disk_space")["keys"][0].to_list() == [
        "DISK_THRESHOLD[_<gshare>]"
    ]


def test_the_weight_reads_nw_active_where_the_rules_ask_for_it() -> None:
    keys = [
        checks_table(rules).filter(pl.col("check") == "weight")["keys"][0].to_list()
        for rules in RULES[:2]
    ]
    assert ["NW_ACTIVE" in each for each in keys] == [False, True]


def test_an_unknown_stage_is_refused() -> None:
    with pytest.raises(ConfigError, match="did you mean 'jobs'"):
        checks_table(stage="job")
