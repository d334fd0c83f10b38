"""Every deployed rule, held to what every estimator must keep."""

from __future__ import annotations

import pytest

from brokerlab.estimators import deployed
from tests.estimator_kit import assert_never_looks_ahead, random_records

RULES = [(q, rule) for q in ("memory", "walltime") for rule in deployed.rules(q, scouts=5)]
RULES += [("walltime", rule) for rule in deployed.log_rules()]


@pytest.mark.parametrize(("quantity", "rule"), RULES, ids=[f"{q} {r.name}" for q, r in RULES])
def test_a_rule_never_looks_ahead(quantity, rule):
    records = random_records(70, seed=3, tasks=3, quantity=quantity)
    assert_never_looks_ahead(rule, records, cuts=3)
