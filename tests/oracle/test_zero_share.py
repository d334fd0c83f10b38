"""Every recorded zero share decision of the analysis vectors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from brokerlab.matching import MatchingRules, zero_share
from tests.oracle import vectors

PRODUCTION = MatchingRules("production")
COLUMNS = ("processingtype", "workinggroup", "gshare", "currentpriority")


def zero_share_case(
    queues: list[dict[str, Any]], task: list[dict[str, Any]], *, is_merging: bool
) -> dict[str, bool]:
    values = [task[0][column] for column in COLUMNS]
    policy = queues[0]["fairsharepolicy"]
    decision = zero_share(policy, *values, merging=is_merging, rules=PRODUCTION)
    return {
        "zero_share": decision.zero_share,
        "priority_error": decision.priority_error,
        "error": decision.reason == "error",
    }


FUNCTIONS: dict[str, Callable[..., Any]] = {"zero_share": zero_share_case}


def test_every_zero_share_vector_agrees() -> None:
    vectors.check("anal_zero_share", FUNCTIONS)
