"""A page survives JSON, and broken JSON is refused with the place named."""

import json

import numpy as np
import pytest

from brokerlab.errors import ReportError
from brokerlab.report.content import (
    Column,
    Link,
    Listing,
    Num,
    Page,
    Part,
    Picture,
    Row,
    Table,
    Verdict,
    jsonable,
)


def page() -> Page:
    verdict = Verdict(kind="keep", sentence="Keep.", subject="ramCount")
    table = Table(
        name="t",
        caption="c",
        columns=(Column(key="a", label="A", unit="GB"),),
        rows=(
            Row(cells={"a": Num(value=1.5, lo=1.0)}),
            Row(cells={"a": "x"}),
            Row(cells={"a": Link(label="run 1", href="../1/index.html")}),
            Row(cells={"a": None}),
        ),
    )
    part = Part(
        name="p",
        title="P",
        verdict=verdict,
        picture=(Picture(chart="x", alt="y"), "text"),
        before_after=(table, Listing(caption="SQL", text="-- nothing\n")),
    )
    return Page(report="r", question="q", verdict=verdict, parts=(part,), cannot_tell=("s",))


def test_round_trip():
    assert Page.from_json(json.loads(json.dumps(page().to_json()))) == page()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda p: p.pop("question"), r"page is not a Page: missing \['question'\]"),
        (lambda p: p.update(extra=1), r"unknown \['extra'\]"),
        (lambda p: p["verdict"].update(kind="maybe"), r"page\.verdict\.kind is 'maybe'"),
        (lambda p: p["parts"][0].update(picture="x"), r"page\.parts\[0\]\.picture is 'x'"),
        (lambda p: p["parts"][0]["before_after"][0].update(rows=[{}]), r"missing \['cells'\]"),
    ],
)
def test_broken_content_is_named(change, message):
    plain = page().to_json()
    change(plain)
    with pytest.raises(ReportError, match=message):
        Page.from_json(plain)


def test_jsonable_numbers():
    plain = jsonable(
        {"a": np.float64("nan"), "b": np.int64(3), "c": (float("inf"), np.bool_(True))}
    )
    assert plain == {"a": None, "b": 3, "c": [None, True]}
    json.dumps(plain, allow_nan=False)


def test_a_part_may_name_its_sections_otherwise():
    part = Part(
        name="checks",
        title="Checks",
        verdict=Verdict(kind="finding", sentence="They decide."),
        picture=("p",),
        certainty=("c",),
        headings={"picture": "The funnel"},
    )
    assert [heading for heading, _ in part.sections] == ["The funnel", "How sure"]
    page = Page(report="r", question="q", verdict=part.verdict, parts=(part,))
    assert Page.from_json(json.loads(json.dumps(page.to_json()))) == page
