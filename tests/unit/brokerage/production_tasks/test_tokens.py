"""Storage tokens (chapter section 1, ``output_datasets``)."""

from __future__ import annotations

import polars as pl
import pytest

from brokerlab.brokerage.production_tasks import storage
from tests.one_value import token_endpoint

ENDPOINTS = [
    ("BNL_TAPE", "DATATAPE"),
    ("BNL_SCRATCH", "SCRATCHDISK"),
    ("BNL_DATADISK", "DATADISK"),
    ("BNL_DATADISK2", "DATADISK"),
]


@pytest.mark.parametrize(
    ("token", "endpoint"),
    [
        ("ATLASDATADISK", "BNL_DATADISK"),
        ("dst:BNL_DATADISK2", "BNL_DATADISK2"),  # exact before pattern
        ("dst:CERN/ATLASSCRATCHDISK", "BNL_SCRATCH"),
        ("DATA.*2$", "BNL_DATADISK2"),
        ("", "BNL_TAPE"),
        (None, "BNL_TAPE"),
        ("CERN", None),
        ("BNL_(TAPE", None),  # no regular expression
        ("(?=BNL)", None),  # outside of the linear-time engine
    ],
)
def test_the_endpoint_of_a_token(token: str | None, endpoint: str | None) -> None:
    assert token_endpoint(token, ENDPOINTS) == endpoint


def test_a_hostile_pattern_is_matched_in_linear_time() -> None:
    assert token_endpoint("(a+)+$", [("a" * 5000 + "b", None)]) is None


def test_the_batch_asks_the_same_question() -> None:
    wanted = ["ATLASDATADISK", "CERN", ""]
    rows = [(0, "BNL", n, name, kind) for n, (name, kind) in enumerate(ENDPOINTS)]
    columns = ["state", "site", "position", "ddm_endpoint_name", "type"]
    listed = pl.DataFrame(rows[::-1], schema=columns, orient="row")
    asked = pl.DataFrame({"state": 0, "site": ["BNL"] * 3 + ["X"], "pattern": [*wanted, ""]})
    found = storage.resolve(asked, listed).select("site", "pattern", "ddm_endpoint_name")
    expected = {("BNL", name, storage.match(name, ENDPOINTS)) for name in wanted}
    assert set(found.rows()) == expected | {("X", "", None)}
