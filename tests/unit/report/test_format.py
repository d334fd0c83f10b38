"""Numbers as a page shows them."""

from datetime import UTC, datetime, timedelta, timezone

import pytest

from brokerlab.words import (
    THIN,
    decimals_for,
    duration,
    instant,
    measured,
    number,
)


@pytest.mark.parametrize(
    ("value", "decimals", "text"),
    [
        (999, 0, "999"),
        (1904, 0, f"1{THIN}904"),
        (-1234.56, 1, f"−1{THIN}234.6"),
        (1234, -2, f"1{THIN}200"),
        (-0.001, 2, "0.00"),
        (float("nan"), 0, "–"),
        (float("inf"), 0, "–"),
        (None, 3, "–"),
    ],
)
def test_number(value, decimals, text):
    assert number(value, decimals) == text


@pytest.mark.parametrize(
    ("value", "lo", "hi", "decimals"),
    [
        (4.1, 3.2, 5.0, 1),  # half width 0.9: one digit
        (4.123, 4.0, 4.4, 2),  # 0.2: two digits
        (1234.0, 1000.0, 1400.0, 0),
        (0.0, 0.0, 0.0, 0),
        (0.01234, None, None, 4),
        (5.0, 5.0, None, 2),
        (None, None, None, 0),
        (4.0, float("nan"), 5.0, 2),
    ],
)
def test_decimals_are_what_the_interval_supports(value, lo, hi, decimals):
    assert decimals_for(value, lo, hi) == decimals


def test_measured_shares_decimals():
    assert measured(1.2345, 1.0, 1.5) == "1.23 (1.00 to 1.50)"
    assert measured(1.2345, 1.0, 1.5, decimals=1) == "1.2 (1.0 to 1.5)"
    assert measured(float("nan"), 1.0, 1.5) == "–"


def test_times_have_a_zone():
    paris = timezone(timedelta(hours=1))
    assert instant(datetime(2026, 3, 24, 13, tzinfo=paris)) == "2026-03-24 12:00 UTC"
    assert instant(datetime(2026, 3, 24, 12, tzinfo=UTC)) == "2026-03-24 12:00 UTC"
    assert instant(None) == "–"


def test_durations():
    assert duration(4.21) == f"4.2{THIN}s"
    assert duration(None) == "–"
