"""Rows as whole numbers: they are equal where rows are, and ascend with them."""

import polars as pl
import pytest
from polars.testing import assert_frame_equal

from brokerlab.brokerage.inputs.frames import in_order, packed, starts

ROWS = pl.DataFrame(
    {
        "name": ["b", None, "a", "b", "a", "", "b"],
        "number": [3, -(2**62), None, 2**62, 7, 7, 3],
        "flag": [True, False, None, True, True, False, True],
        "size": [0.5, None, 0.25, 0.5, 0.25, 1e300, 0.5],
    }
)
KEYS = [["name"], ["number"], ["flag"], ["size"], ROWS.columns, ROWS.columns[::-1]]


@pytest.mark.parametrize("columns", KEYS)
def test_numbers_are_equal_where_the_rows_are_and_ascend_with_them(columns):
    assert_frame_equal(in_order(ROWS, *columns), ROWS.sort(columns, maintain_order=True))
    numbers = packed(ROWS.select(columns))
    assert numbers.min() >= 0
    assert len({*numbers.tolist()}) == ROWS.select(columns).n_unique()


def test_numbers_stay_small_whatever_the_columns_hold():
    far = pl.DataFrame({name: [0, 2**31 - 2, 5] for name in "abcde"})
    numbers = packed(far)
    assert 0 <= numbers.min() < numbers.max() < 2**62
    assert pl.Series(numbers).rank("dense").to_list() == [1, 3, 2]


def test_many_names_are_numbered_as_few_are():
    many = pl.concat([ROWS] * 2000)
    assert (
        packed(many)[: ROWS.height].argsort(kind="stable").tolist()
        == packed(ROWS).argsort(kind="stable").tolist()
    )
    assert_frame_equal(in_order(many, *KEYS[4]), many.sort(KEYS[4], maintain_order=True))


def test_no_row_has_no_number():
    assert packed(ROWS.clear()).tolist() == []
    assert in_order(ROWS.clear(), "name", "number").is_empty()


def test_runs_start_where_the_number_changes():
    assert starts(pl.Series([0, 0, 4, 4, 4, 9]).to_numpy()).tolist() == [0, 2, 5]
