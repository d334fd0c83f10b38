"""The throttle of the analysis brokerage against recorded vectors, under the rule set ``production``."""

from __future__ import annotations

from brokerlab.brokerage.analysis_jobs import AnalysisRules
from tests.one_value import throttle
from tests.oracle import vectors
from tests.oracle.anal_cases import Case, settings, tables


def analysis_throttle(**inputs: Case) -> Case:
    found = throttle(
        tables(inputs), rules=AnalysisRules("production"),
        config=settings(inputs.get("gdpconfig") or []),
    )  # fmt: skip
    return found.select("throttle", "outcome").row(0, named=True)


def test_every_throttle_vector_agrees() -> None:
    vectors.check("anal_throttle", {"analysis_throttle": analysis_throttle})
