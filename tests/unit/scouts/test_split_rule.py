"""Split rules: read, edited, and as columns."""

from __future__ import annotations

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from brokerlab.archive.contracts.tasks import SPLIT_RULE_TAGS
from brokerlab.scouts.settings import (
    SCOUT_TAGS,
    remove_tag,
    set_tag,
    tag_column,
    tag_columns,
    tag_value,
)
from brokerlab.units import GB
from tests.examples import examples
from tests.twins.scout_formulas import parse


@pytest.mark.parametrize(
    ("rule", "tag", "value"),
    [
        (None, "NF", None),
        ("", "NF", None),
        ("NF=3", "NF", 3),
        ("XNF=3", "NF", None),
        ("NF=3,NF=5", "NF", 3),
        ("NF=x,NF=5", "NF", 5),
        ("NF=", "NF", None),
        ("NF=-3", "NF", None),
        ("TW=-3", "TW", -3),
        ("TW=--3", "TW", None),
        ("AN=1,2,3,NF=5", "NF", 5),
        ("AN=1,2,3", "AN", 1),
        ("US=2, NF=3", "NF", 3),
        ("nf=3", "NF", None),
        ("NF=12abc", "NF", 12),
        ("NF=007", "NF", 7),
        ("NF=" + "9" * 18, "NF", 10**18 - 1),
        ("NF=" + "9" * 19, "NF", None),
        ("NF=\u0663", "NF", None),  # a digit of another script
        ("=3,,NF=4,", "NF", 4),
        ("x" * 10_000_000 + ",NF=6", "NF", 6),
    ],
)
def test_one_tag_alone_and_as_a_column(rule: str | None, tag: str, value: int | None) -> None:
    assert tag_value(rule, tag) == value
    frame = pl.DataFrame({"splitrule": [rule]}, schema={"splitrule": pl.String})
    assert frame.select(tag_column(tag)).item() == value


def test_columns_are_lazy_whole_numbers_under_the_tags_names() -> None:
    frame = pl.LazyFrame({"rule": ["US=2", None]}).select(tag_columns(splitrule="rule"))
    assert frame.collect_schema() == dict.fromkeys(SCOUT_TAGS, pl.Int64)


@pytest.mark.parametrize(
    ("rule", "field", "value"),
    [
        ("US=1", "usescout", False),
        ("US=2", "usescout", True),
        ("US=3", "usescout", False),
        ("US=3", "ispostscout", True),
        ("NG=14", "maxsizeperjob", 14 * GB),
        (None, "maxsizeperjob", None),
        ("LI=0", "uselocalio", False),
        ("LI=2", "uselocalio", True),
        ("IL=1", "allowinputlan", "use"),
        ("IL=2", "allowinputlan", "only"),
        ("IL=3", "allowinputlan", None),
        ("MO=0", "mergeoutput", True),
        ("UX=0", "useexhausted", True),
        ("DF=0", "disableautofinish", True),
        ("TW=-1", "t1weight", -1),
        (None, "t1weight", 0),
        ("NF=3,DY=10,EI=100", "nfilesperjob", 30),
        ("NF=3,DY=10,EI=25", "nfilesperjob", 6),
        ("NF=3,DY=10,EI=10", "nfilesperjob", 3),
        ("NF=3,DY=0,EI=100", "nfilesperjob", 3),
        ("NF=3,EI=100", "nfilesperjob", 3),
        ("DY=10,EI=100", "nfilesperjob", None),
    ],
)
def test_parse(rule: str | None, field: str, value: object) -> None:
    assert getattr(parse(rule), field) == value


@pytest.mark.parametrize(
    ("rule", "tag", "removed", "set_to_7"),
    [
        (None, "NF", "", "NF=7"),
        ("", "NF", "", "NF=7"),
        ("NF=3", "NF", "", "NF=7"),
        ("US=2,NF=3,MC=5", "NF", "US=2,MC=5", "US=2,NF=7,MC=5"),
        ("MF=50,MF=200", "MF", "", "MF=7,MF=7"),
        ("US=2", "NF", "US=2", "US=2,NF=7"),
        ("AN=1,2,3", "NF", "AN=1,2,3", "AN=1,2,3,NF=7"),
    ],
)
def test_edit(rule: str | None, tag: str, removed: str, set_to_7: str) -> None:
    assert remove_tag(rule, tag) == removed
    assert set_tag(rule, tag, 7) == set_to_7


TAGS = sorted(SPLIT_RULE_TAGS.values())
TAG = st.sampled_from(TAGS)
ITEM = st.one_of(
    st.builds(lambda tag, number: f"{tag}={number}", TAG, st.integers(-5, 10**20)),
    st.sampled_from(["2", "AN=1", "DE=rucio", "", "NF=", "US=x", " NF=3"]),
)
RULE = st.none() | st.lists(ITEM, max_size=8).map(",".join)


@settings(derandomize=True, deadline=None)
@given(RULE, TAG, st.integers(0, 10**17))
def test_what_is_set_is_read_and_the_rest_stays(rule: str | None, tag: str, value: int) -> None:
    new = set_tag(rule, tag, value)
    assert tag_value(new, tag) == value
    assert set_tag(new, tag, value) == new
    for other in set(TAGS) - {tag}:
        assert tag_value(new, other) == tag_value(rule, other)


@settings(derandomize=True, deadline=None)
@given(RULE, TAG)
def test_what_is_removed_is_gone_and_the_rest_stays(rule: str | None, tag: str) -> None:
    new = remove_tag(rule, tag)
    assert tag_value(new, tag) is None
    assert remove_tag(new, tag) == new
    for other in set(TAGS) - {tag}:
        assert tag_value(new, other) == tag_value(rule, other)


@settings(max_examples=examples(100), deadline=None)
@given(st.lists(RULE | st.text(max_size=30), max_size=20))
def test_columns_equal_the_scalar_form(rules: list[str | None]) -> None:
    frame = pl.DataFrame({"splitrule": rules}, schema={"splitrule": pl.String})
    columns = frame.select(tag_columns(TAGS))
    for tag in TAGS:
        assert columns[tag].to_list() == [tag_value(rule, tag) for rule in rules]
