"""Whole analysis brokerages: what our decision on a recorded case has differently."""

from __future__ import annotations

import polars as pl

from brokerlab.brokerage.analysis_jobs.brokerage import AnalysisDecisions, decide
from brokerlab.brokerage.analysis_jobs.settings import AnalysisRules
from tests.oracle.anal_cases import Case, settings, tables
from tests.oracle.test_anal_stabilizer import close, weights_differ

OUTCOMES = {
    "candidates": "succeeded",
    "temporary_error": "failed",
    "fatal": "fatal",
    "throttled_waiting": "waiting",
}
STAGES = {
    "input data check": "data_locality",
    "preassign check": "nonpreassigned",
    "final check": None,
}
"""What a removal without criteria is called."""
NAMES = {("storage space check", "disk"): "storage", (None, "diskIO"): "diskio"}
RULES = AnalysisRules("production")
FINAL = ("badsite", "low_weight", "below_min_weight", "fileunavailable")


def differences(case: Case) -> list[str]:
    """Return what our decision on a case has differently."""
    inputs, expected = case["inputs"], case["expected"]
    decided = decide(
        tables(inputs), rules=RULES, config=settings(inputs.get("gdpconfig") or [])
    )  # fmt: skip
    task = decided.tasks.row(0, named=True)
    if task["throttle"] != expected["throttle"]:
        return [f"throttle| {task['throttle']}, expected {expected['throttle']}"]
    if OUTCOMES[task["outcome"]] != expected["status"]:
        found = [f"outcome| {task['outcome']}, expected {expected['status']}"]
    else:
        found = []
    if expected["throttle"] is not None:
        return found
    return _loops(decided, expected) + found + _candidates(decided, inputs, expected)


def _loops(decided: AnalysisDecisions, expected: Case) -> list[str]:
    parents = decided.world.facts.queues.select(
        pl.col("panda_queue").cast(pl.String), "parent"
    ).unique()
    walks = []
    for frame in (decided.first_loop, decided.queues):
        rows = frame.with_columns(pl.col("panda_queue", "check").cast(pl.String)).join(
            parents, on="panda_queue"
        )
        if frame.height:
            checks = rows.group_by("parent").agg("check").iter_rows()
            walks.append({name: set(some) for name, some in checks})
    return loops_differ(walks, expected)


def loops_differ(walks: list[dict[str, set[str | None]]], expected: Case) -> list[str]:
    """Return what the walks over the checks have differently.

    Args:
        walks: Per walk the checks (none: left) of the pseudo-queues of each unified queue.
        expected: As recorded.
    """
    if len(walks) != len(expected["loops"]):
        return [f"loops| {len(walks)}, expected {len(expected['loops'])}"]
    found = []
    for got, loop in zip(walks, expected["loops"], strict=True):
        for stage in loop["stages"]:
            for row in stage.get("removed", []):
                found += _removal(stage["stage"], row, got)
        gone = {row["queue"] for stage in loop["stages"] for row in stage.get("removed", [])}
        kept = {name for name, checks in got.items() if checks & {None, *FINAL}}
        found += [
            f"kept| {name} {got[name]} was removed"
            for name in sorted(kept & gone)
            if "final" not in str(loop["stages"][-1]["stage"])
        ]
        found += [
            f"lost| {name}: {checks}, stayed"
            for name, checks in sorted(got.items())
            if name not in gone and not checks & {None, *FINAL}
        ]
    return found


def _removal(stage: str, row: Case, got: dict[str, set[str | None]]) -> list[str]:
    name, criteria = row["queue"], row["criteria"]
    if stage == "final check" or name not in got:
        return []
    want = STAGES.get(stage) if criteria is None else criteria
    want = NAMES.get((stage, want)) or NAMES.get((None, want)) or want
    checks = got[name]
    if None in checks or (want not in checks):
        return [f"{stage} {want}| {name}: {checks}, expected {want}"]
    return []


def _candidates(decided: AnalysisDecisions, inputs: Case, expected: Case) -> list[str]:
    """Compare weights, marks, the final list and what fell out of it."""
    parents = decided.world.facts.queues.select(
        pl.col("panda_queue").cast(pl.String), "parent"
    ).unique("panda_queue")
    weighed = decided.weighed.with_columns(
        pl.col("panda_queue", "check").cast(pl.String), t_gshare=pl.lit(inputs["task"][0]["gshare"])
    ).join(parents, on="panda_queue")
    found = [
        f"weights| {text}"
        for text in weights_differ(weighed.filter(pl.col("new").is_not_null()), expected)
    ]
    rows = {row["panda_queue"]: row for row in weighed.iter_rows(named=True)}
    got = {name for name, row in rows.items() if row["check"] is None}
    want = {row["queue"]: row for row in expected["candidates"]}
    found += [f"candidates| {name} on one side" for name in sorted(got ^ want.keys())]
    for name in sorted(got & want.keys()):
        row = rows[name]
        if not close(row["weight"], want[name]["weight"]):
            found.append(f"weight| {name}: {row['weight']}, expected {want[name]['weight']}")
        if row["x_used"] is not want[name]["used"]:
            found.append(f"used| {name}")
    return found + [
        f"final| {row['queue']}: {rows[row['queue']]['check']}, expected {row['criteria']}"
        for row in expected["final_skips"]
        if row["queue"] in rows and rows[row["queue"]]["check"] != row["criteria"]
    ]
