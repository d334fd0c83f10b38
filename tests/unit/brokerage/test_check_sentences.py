"""Every check can be told: each name in its sentences has a value, and numbers read what the check reads."""

from __future__ import annotations

import narwhals.stable.v2 as nw
import polars as pl
import pytest

from brokerlab.brokerage import checks_table
from brokerlab.brokerage.explaining.pair import Pair
from brokerlab.brokerage.production_jobs.late import late_reasons
from brokerlab.brokerage.production_jobs.ranking import LATE_CHECKS
from brokerlab.brokerage.production_jobs.what_if import Trial
from brokerlab.brokerage.production_tasks import checks as nucleus_checks
from brokerlab.brokerage.rules import ProductionRules
from brokerlab.brokerage.words import filled, names_in
from brokerlab.errors import ConfigError
from tests.brokerage_toys import World
from tests.unit.brokerage.production_tasks.world import decided, world

RULES = [
    ProductionRules("document"),
    ProductionRules("production"),
    ProductionRules("document", cap_mode="document", maxwdir_per_core=True),
]


@pytest.mark.parametrize("rules", RULES, ids=["document", "production", "caps of the document"])
def test_every_name_in_a_sentence_has_a_value(rules: ProductionRules) -> None:
    decisions = World().queue("CERN_X").data().decided(rules)
    late = Trial.of(decisions, 0).settled().late
    assert late is not None
    reasons = (*decisions.checks, *late_reasons(rules, decisions.world.settings))
    pair = Pair(decisions.world, 0, 0, late)
    for found in pair.obstacles(reasons):
        assert "{" not in found.text
    for reason in reasons:
        known = pair.values(set(reason.inputs))
        assert nw.from_native(known).with_columns(**reason.numbers).shape[0] == 1
        for flag, clause in reason.variants.items():
            values = dict.fromkeys(reason.names(), False) | {flag: True}
            assert reason.clause(values) == filled(clause, values)
            assert set(names_in(clause)) <= reason.columns() | set(reason.numbers)


def test_every_sentence_about_a_nucleus_can_be_told() -> None:
    for rules in RULES:
        row = decided(world("N1"), rules).nuclei.row(0, named=True)
        for check in nucleus_checks(rules):
            assert "{" not in check.clause(row)


@pytest.mark.parametrize("rules", RULES)
def test_late_reasons_stand_in_the_order_of_the_ranking(rules: ProductionRules) -> None:
    decisions = World().queue("A").decided(rules)
    assert tuple(r.name for r in late_reasons(rules, decisions.world.settings)) == LATE_CHECKS


def test_the_table_of_checks_has_every_check_in_order() -> None:
    table = checks_table()
    decisions = World().queue("A").decided()
    assert table["step"].to_list() == list(range(1, table.height + 1))
    names = [check.name for check in decisions.checks]
    assert table["check"].to_list() == [*names, *LATE_CHECKS, "weight"]
    scratch = table.filter(pl.col("check") == "scratch_disk").row(0, named=True)
    assert scratch["source"] == "production-job-brokerage.md 5, 20"
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
