"""Recorded vectors: where they are, how they are read, compared and counted.

The folder is named by ``BROKERLAB_ORACLE`` (relative to the root of the repository, default
``tests/golden``). A file is ``NAME.jsonl``, ``NAME.jsonl.gz`` or ``NAME.json``; ``NAME_more.jsonl.gz``
belongs to NAME too.
"""

from __future__ import annotations

import gzip
import json
import math
import os
import re
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
SUFFIXES = (".jsonl", ".jsonl.gz", ".json")

Case = dict[str, Any]

counts: list[tuple[str, int, int]] = []
"""What :func:`report` was told and the test run has not yet collected."""


def folder() -> Path:
    return ROOT / os.environ.get("BROKERLAB_ORACLE", "tests/golden")


def files(prefix: str) -> list[Path]:
    """Return the vector files whose name starts with a prefix."""
    found = folder().rglob(f"{prefix}*")
    return sorted(path for path in found if path.name.endswith(SUFFIXES))


def belongs(path: Path, name: str) -> bool:
    return re.match(rf"{re.escape(name)}(?:[._-].*)?\.json", path.name) is not None


def read(path: Path) -> list[Case]:
    content = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    if path.suffix != ".json":
        return [json.loads(line) for line in content.splitlines() if line.strip()]
    document = json.loads(content)
    return document["cases"] if isinstance(document, dict) else document


def load(name: str) -> list[Case]:
    """Return the cases ``{"id", "function", "inputs", "expected"}`` of a file; skip the test without it."""
    paths = [path for path in files(name) if belongs(path, name)]
    if not paths:
        pytest.skip(f"no vectors {name} in {folder()}")
    return [case for path in paths for case in read(path)]


def report(name: str, n: int, agree: int) -> None:
    """Say how many vectors of a file agree, now and in the summary at the end of the run."""
    counts.append((name, n, agree))
    print(f"{name}: {n} vectors, {agree} agree")


def agrees(got: Any, expected: Any) -> bool:
    """Compare integers, strings and truth values exactly, floats to 1e-9 relative, lists in order."""
    if isinstance(expected, Mapping):
        return (
            isinstance(got, Mapping)
            and got.keys() == expected.keys()
            and all(agrees(got[key], value) for key, value in expected.items())
        )
    if isinstance(expected, list):
        return (
            isinstance(got, list | tuple)
            and len(got) == len(expected)
            and all(agrees(one, other) for one, other in zip(got, expected, strict=True))
        )
    if isinstance(expected, bool) or isinstance(got, bool):
        return got is expected
    if isinstance(expected, float) and isinstance(got, int | float):
        return math.isclose(got, expected, rel_tol=1e-9, abs_tol=0.0)
    return bool(got == expected)


def check(
    name: str, functions: Mapping[str, Callable[..., Any]], unordered: Collection[str] = ()
) -> None:
    """Run every case of a file through the function it names, report, and fail with all that differ.

    Args:
        name: Name of the file.
        functions: Name in the vectors -> what is called with the inputs as keywords.
        unordered: Functions whose result is a list without order.
    """
    cases = load(name)
    unknown = sorted({case["function"] for case in cases} - functions.keys())
    wrong = []
    for case in cases:
        function, expected = functions.get(case["function"]), case["expected"]
        got = None if function is None else function(**case["inputs"])
        if case["function"] in unordered:
            got, expected = (sorted(map(list, pairs), key=json.dumps) for pairs in (got, expected))
        if function is None or not agrees(got, expected):
            inputs = json.dumps(case["inputs"])[:300]
            wrong.append(f"{case['id']}: {inputs} -> {got}, expected {expected}")
    report(name, len(cases), len(cases) - len(wrong))
    assert not unknown, f"{name}: unknown functions {unknown}; known: {sorted(functions)}"
    assert not wrong, f"{name}: {len(wrong)} of {len(cases)} differ:\n" + "\n".join(wrong[:10])
