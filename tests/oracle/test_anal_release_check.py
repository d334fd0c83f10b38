"""Releases of user tasks against recorded vectors, under the rule set ``production``."""

from __future__ import annotations

import pytest

from brokerlab.brokerage.analysis_jobs.contracts import TABLES
from brokerlab.frames import prepared
from brokerlab.matching.rules import MatchingRules
from brokerlab.matching.software_pairs import ANALYSIS_COLUMNS, software_pairs
from tests.oracle import vectors
from tests.oracle.anal_cases import Case, tables

CRITERIA = {"platform_unresolved": "regexpcmtconfig"}


def analysis_release_check(**inputs: list[Case]) -> Case:
    given = prepared(tables(inputs), TABLES)
    found = software_pairs(
        given["tasks"].select(ANALYSIS_COLUMNS), given["queues"], given["sw_tags"],
        given["worker_node_gpu"],
        rules=MatchingRules("production"), analysis=True,
    ).sort("panda_queue")  # fmt: skip
    rows = found.to_dicts()
    return {
        "passed": [row["panda_queue"] for row in rows if row["accept"]],
        "removed": [
            {"queue": row["panda_queue"], "criteria": CRITERIA.get(row["reason"], "cache")}
            for row in rows
            if not row["accept"]
        ],
    }


@pytest.mark.filterwarnings("ignore::brokerlab.errors.BrokerlabWarning")
def test_every_release_vector_agrees() -> None:
    vectors.check("anal_release_check", {"analysis_release_check": analysis_release_check})
