"""The production brokerage against recorded vectors, under the rule set ``production``."""

from __future__ import annotations

import math

import pytest

from brokerlab.brokerage.production_jobs.brokerage import decide, hint_queues
from brokerlab.brokerage.rules import ProductionRules
from tests.oracle import prod_facts, prod_jobs, prod_match, prod_nuclei, prod_pairs, vectors
from tests.oracle.prod_cases import Case, settings, tables

EXACT = ("rank", "nrunning", "nqueuedjobs", "nrunningjobscap", "platform")
FLOAT = ("weight", "network_weight", "maxwdir")
REL = 1e-12


def test_functions() -> None:
    cases = vectors.load("prod_functions")
    vectors.check(
        "prod_functions",
        {
            **prod_facts.functions(cases),
            **prod_match.FUNCTIONS,
            **prod_nuclei.FUNCTIONS,
            **prod_pairs.FUNCTIONS,
            **prod_jobs.functions(cases),
        },
    )


@pytest.mark.filterwarnings("ignore::brokerlab.errors.BrokerlabWarning")
def test_whole_brokerages() -> None:
    cases = vectors.load("prod_jobbrokerage")
    wrong = {case["id"]: found for case in cases if (found := differences(case))}
    vectors.report("prod_jobbrokerage", len(cases), len(cases) - len(wrong))
    assert not wrong


EARLY = (
    "nucleus_inactive",
    "transfer_backlog",
    "no_storage",
    "read_wan_down",
    "write_wan_down",
    "disk_space",
)
"""Filters of nuclei before the queues are asked."""
ENDED = ("nucleus", "no_candidates", "no_queue_at_all")


@pytest.mark.filterwarnings("ignore::brokerlab.errors.BrokerlabWarning")
def test_hint_mode() -> None:
    """The queues that the task brokerage was told could run a task, of the nuclei that were left then."""
    cases, wrong = [], []
    for case in vectors.load("prod_taskbrokerage"):
        inputs = case["inputs"]
        if inputs.get("hint_queues") is None or case["expected"]["outcome"] not in ENDED:
            continue  # else nuclei that were left have no row
        cases.append(case)
        found = hint_queues(
            tables(inputs), rules=ProductionRules("production"),
            config=settings(inputs.get("gdpconfig") or []),
        )  # fmt: skip
        site = {row["panda_queue"]: row["pandasite"] for row in inputs["queues"]}
        nuclei = case["expected"]["nuclei"]
        left = {row["nucleus"] for row in nuclei if row.get("check") not in EARLY}
        got = {name for name in found["panda_queue"] if site[name] in left}
        if got != set(inputs["hint_queues"]):
            wrong.append(case["id"])
    vectors.report("prod_taskbrokerage, hint mode", len(cases), len(cases) - len(wrong))
    assert not wrong


def differences(case: Case) -> list[str]:
    """Return what our decision on a case has differently."""
    inputs, expected = case["inputs"], case["expected"]
    decided = decide(
        tables(inputs), rules=ProductionRules("production"),
        config=settings(inputs.get("gdpconfig") or []),
    )  # fmt: skip
    found = []
    if decided.tasks["outcome"][0] != expected["outcome"]:
        found.append(f"outcome {decided.tasks['outcome'][0]}, expected {expected['outcome']}")
    numbers = decided.weighed.drop("check", "weight", "rank", "jumbo")
    keys = ["jeditaskid", "snapshot", "panda_queue"]
    rows = decided.queues.join(numbers, on=keys, how="left").to_dicts()
    got = {row["panda_queue"]: row for row in rows}
    wanted = {row["panda_queue"]: row for row in expected["queues"]}
    if not (inputs["task"].get("site") or inputs["chunk"].get("preassigned_site")):
        found += [f"{name}: only on one side" for name in got.keys() ^ wanted.keys()]
    # in a pre-assigned world the recorder has no row for queues it never looked at (README-prod)
    found += [f"{name}: missing" for name in wanted.keys() - got.keys()]
    for name in wanted.keys() & got.keys():
        found += [f"{name}.{what}" for what in _of_queue(got[name], wanted[name])]
    return found


def _of_queue(row: Case, want: Case) -> list[str]:
    passed = row["check"] is None
    if passed is want["skipped"] or (want.get("check") and row["check"] != want["check"]):
        return [f"check {row['check']}, expected {want.get('check')}"]
    weighed = passed or want.get("check") == "rank"
    found = [
        f"{column} {row[column]}, expected {want[column]}"
        for column in FLOAT
        if weighed and want.get(column) is not None and not _close(row[column], want[column])
    ]
    if want.get("jumbo"):
        return found if row["jumbo"] else [*found, "jumbo"]
    return found + [
        f"{column} {row[column]}, expected {want[column]}"
        for column in EXACT
        if passed and column in want and row[column] != want[column]
    ]


def _close(value: float | None, want: float) -> bool:
    return value is not None and math.isclose(value, want, rel_tol=REL, abs_tol=0.0)
