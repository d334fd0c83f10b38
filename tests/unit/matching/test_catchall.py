"""Catchall: flags and values, and extra parameters that win."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest

from brokerlab.matching import read_catchall, read_catchalls


@pytest.mark.parametrize(
    ("catchall", "params", "field", "value"),
    [
        (None, None, "bare_mode", None),
        ("bareNucleus=only", None, "bare_mode", "only"),
        ("a,bareNucleus=allow,b", None, "bare_mode", "allow"),
        ("bareNucleus=maybe", None, "bare_mode", None),
        ("bareNucleus", None, "bare_mode", None),
        ("bareNucleus=", None, "bare_mode", None),
        ("xbareNucleus=only", None, "bare_mode", None),
        (" bareNucleus=only", None, "bare_mode", None),
        ("bareNucleus = only", None, "bare_mode", None),
        ("bareNucleus=only", {"bareNucleus": "allow"}, "bare_mode", "allow"),
        ("bareNucleus=only", '{"bareNucleus": "allow"}', "bare_mode", "allow"),
        ("bareNucleus=only", "not JSON", "bare_mode", "only"),
        ("bareNucleus=only", "[]", "bare_mode", "only"),
        ("bareNucleus=only", {"bareNucleus": None}, "bare_mode", "only"),
        ("secondaryNucleus=CERN", None, "secondary_nucleus", "CERN"),
        ("secondaryNucleus=", None, "secondary_nucleus", None),
        ("secondaryNucleus=CERN", {"secondaryNucleus": "BNL"}, "secondary_nucleus", "BNL"),
        ("x,useJumboJobs", None, "use_jumbo_jobs", True),
        ("useJumboJobs=1", None, "use_jumbo_jobs", True),
        ("x, useJumboJobs", None, "use_jumbo_jobs", False),
        ("", {"useJumboJobs": True}, "use_jumbo_jobs", True),
        ("useJumboJobs", {"useJumboJobs": False}, "use_jumbo_jobs", False),
        ("minEventsForJumbo=500", None, "min_events_for_jumbo", 500),
        ("minEventsForJumbo=many", None, "min_events_for_jumbo", None),
        ("minEventsForJumbo=" + "9" * 30, None, "min_events_for_jumbo", None),
        ("", {"minEventsForJumbo": 7}, "min_events_for_jumbo", 7),
        ("use_only_local_data", None, "use_only_local_data", True),
        ("per_core_attr", None, "per_core_attr", True),
        ("grandly_unified", None, "grandly_unified", True),
        ("jobseed=all,es_to_zip", None, "grandly_unified", False),
    ],
)
def test_read(catchall: str | None, params: Any, field: str, value: Any) -> None:
    assert getattr(read_catchall(catchall, params), field) == value


def test_batch_reads_distinct_catchalls() -> None:
    queues = pl.DataFrame(
        {
            "catchall": ["bareNucleus=only", None, "bareNucleus=only", "useJumboJobs"],
            "params": [None, '{"bareNucleus": "allow"}', None, None],
        }
    )
    frame = read_catchalls(queues)
    assert frame.height == 3
    joined = queues.join(
        frame, on=["catchall", "params"], nulls_equal=True, how="left", maintain_order="left"
    )
    assert joined["bare_mode"].to_list() == ["only", "allow", "only", None]
    assert read_catchalls(queues.drop("params"))["use_jumbo_jobs"].to_list() == [False, False, True]
    assert read_catchalls(queues.clear()).schema == frame.schema
