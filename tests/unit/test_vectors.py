"""The helper itself: what counts as equal, which files are read, and that nothing passes unseen."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from tests.oracle import vectors


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("BROKERLAB_ORACLE", str(tmp_path))
    return tmp_path


def line(number: int, function: str = "double", expected: object = 4) -> str:
    return json.dumps(
        {"id": f"x-{number}", "function": function, "inputs": {"x": 2}, "expected": expected}
    )


@pytest.mark.parametrize(
    ("got", "expected", "equal"),
    [
        (1, 1, True),
        (1, 2, False),
        (True, 1, False),
        (1, True, False),
        (0.0, 0, True),
        (1.0, 1.0 + 1e-10, True),
        (1.0, 1.0 + 1e-8, False),
        (1e-300, 0.0, False),
        (None, None, True),
        (None, 0, False),
        (0.0, None, False),
        ("a", "a", True),
        ((1, 2.0), [1, 2.0], True),
        ([1], [1, 2], False),
        ({"a": [None]}, {"a": [None]}, True),
        ({"a": 1}, {"a": 1, "b": 2}, False),
    ],
)
def test_agrees(got: object, expected: object, *, equal: bool) -> None:
    assert vectors.agrees(got, expected) is equal


def test_reads_all_three_kinds_of_file(folder: Path) -> None:
    (folder / "some.jsonl").write_text(line(1) + "\n\n" + line(2))
    (folder / "some.jsonl.gz").write_bytes(gzip.compress(line(3).encode()))
    (folder / "some_more.json").write_text(f"[{line(4)}]")
    (folder / "something.jsonl").write_text(line(5))
    assert sorted(case["id"] for case in vectors.load("some")) == ["x-1", "x-2", "x-3", "x-4"]


def test_skips_by_name_without_the_file(folder: Path) -> None:
    with pytest.raises(pytest.skip.Exception, match="no vectors some in"):
        vectors.load("some")


def test_counts_and_names_what_differs(folder: Path) -> None:
    (folder / "some.jsonl").write_text(line(1) + "\n" + line(2, expected=5))
    with pytest.raises(AssertionError, match=r"some: 1 of 2 differ:\nx-2: .* -> 4, expected 5"):
        vectors.check("some", {"double": lambda x: 2 * x})
    assert vectors.counts.pop() == ("some", 2, 1)  # not a real file: keep it out of the summary


def test_unknown_function_is_a_failure(folder: Path) -> None:
    (folder / "some.jsonl").write_text(line(1) + "\n" + line(2, function="triple", expected=None))
    with pytest.raises(
        AssertionError, match=r"unknown functions \['triple'\]; known: \['double'\]"
    ):
        vectors.check("some", {"double": lambda x: 2 * x})
    assert vectors.counts.pop() == ("some", 2, 1)  # not a real file: keep it out of the summary


def test_order_does_not_matter_where_there_is_none(folder: Path) -> None:
    (folder / "some.jsonl").write_text(line(1, "pairs", [["a", 1], [None, 2]]))
    vectors.check("some", {"pairs": lambda x: [(None, x), ("a", 1)]}, unordered={"pairs"})
    assert vectors.counts.pop() == ("some", 1, 1)
