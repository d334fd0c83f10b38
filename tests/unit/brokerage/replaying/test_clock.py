"""Instants, and the moments that stand for times."""

from __future__ import annotations

from datetime import datetime, timedelta

import narwhals.stable.v2 as nw
import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from brokerlab import times as grids
from brokerlab.brokerage import replaying
from brokerlab.brokerage.replaying.clock import Clock
from brokerlab.engines import microseconds, microseconds_of_parts
from brokerlab.errors import ConfigError
from brokerlab.times import duration_us, time_of
from tests.unit.brokerage.replaying.toys import T0, at, instants_of


def test_instants_are_rounded_down_and_shared() -> None:
    tasks = pl.DataFrame({"at": [at(7), None, at(3), at(13), at(10)]})
    assert replaying.instants(tasks).rows() == [(0, T0), (1, at(10))]
    assert replaying.instants(tasks, every=None).height == 4
    assert replaying.instants(tasks, every="1h").height == 1


@pytest.mark.parametrize("text", ["", "m", "0m", "10", "1.5h", "-1m", "10 min", "٣m"])
def test_durations_that_are_none(text: str) -> None:
    with pytest.raises(ConfigError, match="whole number"):
        duration_us(text)


@pytest.mark.parametrize("value", ["noon", 5, datetime.now().astimezone(), "2026-03-01T12:00Z"])
def test_times_that_are_none(value: object) -> None:
    with pytest.raises(ConfigError, match="at="):
        time_of(value, "at")  # type: ignore[arg-type]


times = st.datetimes(datetime(1971, 1, 1), datetime(2199, 12, 31, 23, 59, 59, 999999))


@settings(deadline=None, max_examples=60)
@given(st.lists(times, min_size=1, max_size=20))
def test_microseconds(values: list[datetime]) -> None:
    frame = nw.from_native(pl.DataFrame({"t": pl.Series(values, dtype=pl.Datetime("us"))}))
    time = nw.col("t")
    found = frame.select(us=microseconds(frame, time), parts=microseconds_of_parts(time))
    expected = [(t - datetime(1970, 1, 1)) // timedelta(microseconds=1) for t in values]
    assert found["us"].to_list() == found["parts"].to_list() == expected


@settings(deadline=None, max_examples=60)
@given(
    st.lists(st.integers(-5, 400), min_size=1, max_size=9),
    st.sampled_from([60.0, 600.0, 1.0, 0.000001, 97.5]),
    st.lists(st.integers(-(10**9), 10**11), max_size=30),
    st.data(),
)
def test_no_instant_lies_between_a_time_and_its_moment(
    ticks: list[int], unit_s: float, offsets_us: list[int], data: st.DataObject
) -> None:
    instants = instants_of(*(tick * unit_s / 60 for tick in ticks))
    clock = Clock.of(instants)
    near = data.draw(
        st.lists(st.tuples(st.sampled_from(list(clock.at_us)), st.integers(-1, 1)), max_size=9)
    )
    when = [clock.first_us + offset for offset in offsets_us] + [int(t) + d for t, d in near]
    frame = nw.from_native(
        pl.DataFrame({"t": pl.Series(when, dtype=pl.Int64).cast(pl.Datetime("us"))})
    )
    found = (
        clock.moments(frame.lazy().with_row_index("row", order_by="t"), "t").collect().to_native()
    )
    expected = np.searchsorted(clock.at_us, np.sort(np.array(when, np.int64)), side="left")
    found = found.sort("row")
    assert found["row"].to_list() == np.flatnonzero(expected < len(clock)).tolist()
    assert clock.place(found["moment"]).to_list() == expected[expected < len(clock)].tolist()


def test_a_common_grid_needs_no_split_cells() -> None:
    clock = Clock.of(instants_of(0, 10, 40, 70))
    assert clock.step_us == 600_000_000
    assert clock.split_cells == []


def test_a_grid_of_too_many_instants_is_refused_with_the_step_that_is_allowed() -> None:
    begin, end = datetime(2026, 3, 1), datetime(2026, 3, 31)
    assert grids.instants_of(begin, end, "5m").height == 8_640
    with pytest.raises(
        ConfigError, match=r"every='1s': makes 2,592,000 instants .*: say 5m or longer"
    ):
        grids.instants_of(begin, end, "1s")
