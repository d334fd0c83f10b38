"""Conversion of stored text, as the real look-up does it."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from brokerlab.gdpconfig.entry import convert, to_text
from brokerlab.schemas import digest_of

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@pytest.mark.parametrize(
    ("value", "value_json", "kind", "expected"),
    [
        (" 7 ", None, "int", 7),
        ("-3", None, "INTEGER", -3),
        ("1e3", None, "float", 1000.0),
        ("inf", None, "float", float("inf")),
        ("", None, "string", ""),
        ("12", None, "str", "12"),
        ("TRUE", None, "Boolean", True),
        ("yes", None, "bool", False),
        ("1", None, "bool", False),
        ("5", '{"a": 1}', "json", {"a": 1}),
    ],
)
def test_convert(value: str, value_json: str | None, kind: str, expected: object) -> None:
    found = convert(value, value_json, kind)
    assert found == expected
    assert type(found) is type(expected)


@pytest.mark.parametrize(
    ("value", "value_json", "kind", "message"),
    [
        ("3.5", None, "int", "'3.5' is not of type int"),
        ("x", None, "float", "'x' is not of type float"),
        ("nan", None, "float", "'nan' is not of type float"),
        ("1", None, "list", "type 'list' is unknown; allowed: str, string, int"),
        ("1", None, None, "type None is unknown"),
        (None, None, "int", "value is null, type is int"),
        ("5", None, "json", "value_json is null, type is json"),
        (None, "bad{", "json", "'bad{' is not of type json"),
        (None, "[" * 100_000, "json", "is not of type json"),
        ("9" * 10_000_000, None, "int", r"'9{40}\.\.\.' is not of type int"),
    ],
)
def test_what_cannot_be_converted(
    value: str | None, value_json: str | None, kind: str | None, message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        convert(value, value_json, kind)


@settings(derandomize=True, deadline=None)
@given(st.integers(-(10**18), 10**18) | st.floats(allow_nan=False) | st.booleans() | st.text())
def test_to_text_and_back(value: object) -> None:
    assert convert(*to_text(value)) == value
    assert type(convert(*to_text(value))) is type(value)


@settings(derandomize=True, deadline=None)
@given(st.lists(JSON, max_size=3) | st.dictionaries(st.text(), JSON, max_size=3))
def test_json_to_text_and_back(value: object) -> None:
    assert convert(*to_text(value)) == value


def test_digest_does_not_depend_on_the_order_of_names() -> None:
    assert digest_of({"b": 1, "a": "é"}) == digest_of({"a": "é", "b": 1})
    assert digest_of({"a": 1}).startswith("sha256:")
    assert len(digest_of([])) == 71
