"""What the three kinds of results have in common: a frame, plain values, a table in a notebook."""

from __future__ import annotations

import json

import pytest

from brokerlab import scouts
from brokerlab.gdpconfig import Config
from tests.scout_toys import Toy, by_name

CONFIG = Config.empty().with_values({"SCOUT_RAMCOUNT_RANK": 90})
RULES = scouts.ScoutRules("production", leak_exhausts=True)
Result = scouts.ScoutResult | scouts.ExhaustedResult | scouts.RetryResult


@pytest.fixture(params=["scouts", "exhausted", "retry"])
def result(request: pytest.FixtureRequest) -> Result:
    tables = Toy().job(1, maxpss=2048 * 1024).tables()
    found = scouts.estimate(by_name(tables), rules=RULES, config=CONFIG)
    if request.param == "exhausted":
        return scouts.exhausted({"tasks": tables[2]}, scouts=found, config=CONFIG)
    if request.param == "retry":
        return scouts.retry_checks(tables[2], tables[0], scouts=found, config=CONFIG)
    return found


def test_every_result_carries_its_provenance(result: Result) -> None:
    assert (result.rules, result.config_digest) == (RULES, CONFIG.digest)


def test_every_result_is_a_frame_plain_values_and_a_table(result: Result) -> None:
    plain = json.loads(json.dumps(result.to_dict()))
    assert plain["rules"]["leak_exhausts"] is True
    assert plain["config_digest"] == CONFIG.digest
    rows = plain.get("verdicts") or plain["parameters"]
    assert [row["jeditaskid"] for row in rows] == result.frame()["jeditaskid"].to_list() == [1]
    assert "<table" in result._repr_html_()
