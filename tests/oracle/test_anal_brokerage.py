"""Whole analysis brokerages against recorded vectors, under the rule set ``production``."""

from __future__ import annotations

import pytest

from tests.oracle import vectors
from tests.oracle.anal_brokerage import differences


@pytest.mark.filterwarnings("ignore::brokerlab.errors.BrokerlabWarning")
def test_every_brokerage_vector_agrees() -> None:
    cases = vectors.load("anal_brokerage")
    wrong = {case["id"]: found for case in cases if (found := differences(case))}
    vectors.report("anal_brokerage", len(cases), len(cases) - len(wrong))
    assert not wrong
