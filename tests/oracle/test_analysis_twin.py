"""The slow twin of the analysis brokerage against recorded vectors: what tests compare with must be right itself."""

from __future__ import annotations

from typing import Any

import pytest

from tests.oracle import vectors
from tests.oracle.anal_brokerage import OUTCOMES, loops_differ
from tests.oracle.anal_cases import Case, tables
from tests.oracle.test_anal_stabilizer import close
from tests.twins import analysis_jobs
from tests.twins.analysis_world import World

SAMPLE = 40
NUMBERS = {"orig": "orig", "new": "new", "max_q_len": "max_q_len", "user_q_len": "user_queued",
           "rem_q_len": "rest", "user_r": "user_running", "nq": "nq", "nr": "running"}  # fmt: skip


def world_of(case: Case) -> dict[str, Any]:
    """Return the tables of a recorded case as rows."""
    frames = tables(case["inputs"])
    rows: dict[str, Any] = {name: frame.to_dicts() for name, frame in frames.items()}
    return rows | {"gdpconfig": case["inputs"].get("gdpconfig") or []}


def differences(case: Case) -> list[str]:
    """Return what the twin's decision on a case has differently."""
    given, expected = world_of(case), case["expected"]
    got = analysis_jobs.decide_all(given, rules="production")[0]
    if got["throttle"] != expected["throttle"]:
        return [f"throttle| {got['throttle']}, expected {expected['throttle']}"]
    found = []
    if OUTCOMES[got["outcome"]] != expected["status"]:
        found.append(f"outcome| {got['outcome']}, expected {expected['status']}")
    if expected["throttle"] is not None:
        return found
    parent = World(given, "production").parent
    walks = []
    for checks in got["loops"]:
        walk: dict[str, set[str | None]] = {}
        for name, check in checks.items():
            walk.setdefault(parent[name], set()).add(check)
        walks.append(walk)
    return (
        found + loops_differ(walks, expected) + _weights(got, expected) + _candidates(got, expected)
    )


def _weights(got: Case, expected: Case) -> list[str]:
    wanted = {row["queue"]: row for row in expected["basic_weights"]}
    states = got["states"]
    found = [f"weights| {name} on one side" for name in sorted(states.keys() ^ wanted.keys())]
    problems = {row["queue"]: set(row["reasons"]) for row in expected["problematic"]}
    for name in sorted(states.keys() & wanted.keys()):
        state = states[name]
        found += [
            f"{what}| {name}: {getattr(state, ours)}, expected {wanted[name][what]}"
            for what, ours in NUMBERS.items()
            if not close(getattr(state, ours), wanted[name][what])
        ]
        if state.marks != problems.get(name, set()):
            found.append(f"marks| {name}: {state.marks}, expected {problems.get(name)}")
    return found


def _candidates(got: Case, expected: Case) -> list[str]:
    want = {row["queue"]: row for row in expected["candidates"]}
    found = [
        f"candidates| {name} on one side" for name in sorted(got["ranks"].keys() ^ want.keys())
    ]
    found += [
        f"weight| {name}: {got['weights'][name]}, expected {want[name]['weight']}"
        for name in sorted(got["ranks"].keys() & want.keys())
        if not close(got["weights"][name], want[name]["weight"])
    ]
    last = got["loops"][-1] if got["loops"] else {}
    return found + [
        f"final| {row['queue']}: {last[row['queue']]}, expected {row['criteria']}"
        for row in expected["final_skips"]
        if row["queue"] in last and last[row["queue"]] != row["criteria"]
    ]


@pytest.mark.filterwarnings("ignore::brokerlab.errors.BrokerlabWarning")
def test_the_loop_agrees_with_brokerage_vectors() -> None:
    cases = vectors.load("anal_brokerage")
    sample = cases[:: max(len(cases) // SAMPLE, 1)]
    wrong = {case["id"]: found for case in sample if (found := differences(case))}
    assert not wrong
