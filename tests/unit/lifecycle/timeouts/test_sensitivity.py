"""What other limits would do."""

from __future__ import annotations

import polars as pl
import pytest
from polars.testing import assert_frame_equal

from brokerlab.errors import ConfigError
from brokerlab.lifecycle.timeouts import TimeoutRules, other_limits, wasted_waiting, would_fire
from tests.unit.lifecycle.timeouts.test_history import END, SCHEMA, job


def table() -> pl.DataFrame:
    """Return jobs that were activated for 10, 30, 49 and 100 hours, and one that still is."""
    ended = [
        job(n, activatedtime=0, starttime=h, endtime=h + 1, modificationtime=h + 1)
        for n, h in enumerate((10, 30, 49, 100))
    ]
    live = job(9, status="activated", activatedtime=0, statechangetime=0, modificationtime=0)
    rows = [*ended, {**live, "computingsite": "P"}]
    return pl.DataFrame([{name: row.get(name) for name in SCHEMA} for row in rows], schema=SCHEMA)


def test_shorter_and_longer_limits() -> None:
    found = other_limits(table(), at=END, scales=[2, 0.5, 1, 0.5])
    assert found.select("scale", "rule", "jobs", "waited_h", "soon", "stuck").rows() == [
        (0.5, "activated", 4, 96.0, 0, 1),
        (1.0, "activated", 3, 144.0, 1, 1),
        (2.0, "activated", 2, 192.0, 0, 1),
    ]
    assert found["after_h"].to_list() == [6 + 25 + 76 + 936, 1 + 52 + 912, 4 + 864]


def test_the_scale_one_is_what_would_fire() -> None:
    fired = would_fire(table(), at=END, rules=TimeoutRules("production"))
    once = other_limits(
        table(), at=END, scales=[1], rules=TimeoutRules("production"), by=["computingsite"]
    )
    assert_frame_equal(once.drop("scale"), wasted_waiting(fired, by=["computingsite"]))
    assert set(once["computingsite"]) == {"P", "Q"}  # fmt: skip


def test_scaled_heartbeats_wait_for_the_second_look_along() -> None:
    live = job(status="running", starttime=1, statechangetime=1, modificationtime=9)
    jobs = pl.DataFrame([{name: live.get(name) for name in SCHEMA}], schema=SCHEMA)
    found = other_limits(jobs, at=END, scales=[0.5, 3], rules=TimeoutRules("production"))
    beats = found.filter(rule="heartbeat")
    assert beats["waited_h"].to_list() == [1.0, 6.0]


def test_bad_scales_are_refused() -> None:
    for scales in ([], [1, 0], [-1]):
        with pytest.raises(ConfigError, match="scales="):
            other_limits(table(), at=END, scales=scales)
