"""Every recorded scout decision, those with the same settings in one call, under the production rule set."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.oracle import scout_vectors, vectors

SLICES = 8  # so that parallel workers share the long files

Answer = Callable[[list[vectors.Case]], list[dict[str, Any]]]
Compare = Callable[[dict[str, Any], dict[str, Any]], list[str]]

FUNCTIONS: dict[str, tuple[Answer, Compare]] = {
    "scout_data": (scout_vectors.answer_data, scout_vectors.differences),
    "scout_set": (scout_vectors.answer_set, scout_vectors.differences_set),
}


@pytest.mark.parametrize("part", range(SLICES))
@pytest.mark.parametrize("name", ["scout_data", "scout_set"])
def test_every_recorded_decision_agrees(name: str, part: int) -> None:
    batches = scout_vectors.batches(vectors.load(name))[part::SLICES]
    cases = [case for batch in batches for case in batch]
    unknown = sorted({case["function"] for case in cases} - FUNCTIONS.keys())
    wrong = []
    for batch in batches:
        if batch[0]["function"] in unknown:
            wrong += [f"{case['id']}: unknown function {case['function']}" for case in batch]
            continue
        answer, compare = FUNCTIONS[batch[0]["function"]]
        for case, ours in zip(batch, answer(batch), strict=True):
            found = compare(case["expected"], ours)
            if found:
                wrong.append(f"{case['id']}: " + "; ".join(found))
    vectors.report(name, len(cases), len(cases) - len(wrong))
    assert not unknown, f"{name}: unknown functions {unknown}; known: {sorted(FUNCTIONS)}"
    assert not wrong, f"{name}: {len(wrong)} of {len(cases)} differ:\n" + "\n".join(wrong[:10])


def test_where_production_crashed_we_answer() -> None:
    """The record holds crashes of the real code; they are not to be reproduced."""
    cases = vectors.load("scout_raises")
    answered = 0
    for case in cases:
        answer, _ = FUNCTIONS[case["function"]]
        answered += "data" in answer([case])[0]
    vectors.report("scout_raises", len(cases), answered)
    assert answered == len(cases)
