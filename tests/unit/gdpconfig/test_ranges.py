"""Values of a key to try."""

from __future__ import annotations

import pytest

from brokerlab.errors import ConfigError
from brokerlab.gdpconfig.keys import rows_of
from brokerlab.gdpconfig.ranges import grid, near_values, scale_of


@pytest.mark.parametrize(
    ("key", "current", "expected"),
    [
        ("NQUEUED_SAT_CAP", 150, [10, 75, 150, 300, 10_000]),
        ("MIN_WEIGHT_<prodsourcelabel>[_<gshare>]", 0.0, [0.0, 5.0, 10.0]),
        ("STORAGE_MIN_FREE_SIZE", 200, [1, 100, 200, 400, 10_000]),
        ("MAX_DISKIO_DEFAULT", None, [100, 3162, 100_000]),
        ("DISK_THRESHOLD[_<gshare>]", 100, [0, 1, 50, 100, 200, 1000]),
        ("NW_ACTIVE", False, [False, True]),
    ],
)
def test_grid_of_a_key(key: str, current: object, expected: list[object]) -> None:
    assert grid(rows_of(key)[0], current, 3) == expected


def test_scale_of_a_key() -> None:
    """Shares, ranks, factors, hours and the like on a linear scale, sizes and counts on a logarithmic one."""
    scales = {
        key: scale_of(rows_of(key)[0]) for key in ("SCOUT_RAMCOUNT_RANK", "SCOUT_DISK_IO_CAP")
    }
    assert scales == {"SCOUT_RAMCOUNT_RANK": "linear", "SCOUT_DISK_IO_CAP": "log"}


def test_a_key_without_a_range_is_refused() -> None:
    row = rows_of("DATA_CAROUSEL_CONFIG")[0]
    with pytest.raises(ConfigError, match="no range to try"):
        grid(row, None, 3)


def test_values_near_none_are_none() -> None:
    row = rows_of("NQUEUED_SAT_CAP")[0]
    assert near_values(row, None) == []
    assert near_values(row, 6000) == [3000, 6000, 10_000]
